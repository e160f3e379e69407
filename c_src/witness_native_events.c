#include "witness_native_events.h"

#include "witness_native_atoms.h"

/* The threads of callbacks are schedulers, so there always is a time. */
wn_event wn_events_make(const wn_run *run, ERL_NIF_TERM name, ERL_NIF_TERM process, ERL_NIF_TERM other, ERL_NIF_TERM term)
{
    return (wn_event){.name = name,
                      .process = process,
                      .other = other,
                      .term = term,
                      .timed = run->timestamps,
                      .time = run->timestamps ? enif_monotonic_time(ERL_NIF_NSEC) : 0};
}

/* The event is encoded before. So the partition is locked only while words are copied. */
static unsigned put(wn_partition *partition, const wn_code *code, bool at_once, uintptr_t *consumer)
{
    unsigned todo;
    if (!wn_partition_begin(partition, wn_event_bytes(code), &todo, consumer))
        return todo;
    if (!wn_batch_add(partition, code))
        return wn_partition_failed(partition, consumer);
    return wn_partition_added(partition, at_once, consumer);
}

unsigned wn_events_missed(ErlNifEnv *env, const wn_run *run, wn_partition *partition, ERL_NIF_TERM process, wn_reason reason,
                          uint64_t missing, uintptr_t *consumer)
{
    if (partition != run->central)
        return wn_partition_gap(partition, reason, missing, consumer);
    ERL_NIF_TERM why = reason == WN_SIZE ? am_message_size : reason == WN_SENSITIVE ? am_sensitive : am_lost;
    wn_event gap = wn_events_make(run, am_gap, process, why, am_unknown);
    wn_code code;
    wn_code_init(&code, run->message_size);
    /* Atoms and a local process: it always fits, and has no memory of its own. */
    (void)wn_event_write(env, &code, &gap);
    return put(partition, &code, true, consumer);
}

unsigned wn_events_add(ErlNifEnv *env, const wn_run *run, wn_partition *partition, unsigned kind, ERL_NIF_TERM name,
                       ERL_NIF_TERM process, ERL_NIF_TERM other, ERL_NIF_TERM term, uintptr_t *consumer)
{
    unsigned todo;
    if (!wn_partition_wants(partition, kind))
        return 0;
    wn_event added = wn_events_make(run, name, process, other, term);
    wn_code code;
    wn_code_init(&code, run->message_size);
    if (wn_event_write(env, &code, &added))
        todo = put(partition, &code, kind == WN_EXIT, consumer);
    else
        todo = wn_events_missed(env, run, partition, process, WN_SIZE, 1, consumer);
    wn_code_free(&code);
    return todo;
}
