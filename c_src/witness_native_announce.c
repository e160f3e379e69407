#include "witness_native_announce.h"

#include "witness_native_atoms.h"
#include "witness_native_batch.h"
#include "witness_native_handle.h"
#include "witness_native_terms.h"

/* Bytes of a birth besides what the process was spawned with: its partition, the handle, the entry in the list. */
#define BIRTH_BYTES 512u

unsigned wn_announce_gap(wn_run *run, wn_reason reason, uintptr_t *consumer)
{
    return wn_partition_gap(run->births, reason, 1, consumer);
}

unsigned wn_announce_birth(ErlNifEnv *env, wn_run *run, wn_partition *partition, bool held, ERL_NIF_TERM child, ERL_NIF_TERM mfa,
                           uintptr_t *consumer)
{
    unsigned todo;
    wn_partition *births = run->births;
    size_t bytes = wn_size(env, mfa, run->message_size);
    if (bytes == WN_TOO_LARGE)
        return wn_announce_gap(run, WN_SIZE, consumer);
    if (!wn_partition_begin(births, bytes + BIRTH_BYTES, &todo, consumer))
        return todo;
    ErlNifEnv *to = wn_batch_env(births);
    ERL_NIF_TERM handle = to ? wn_handle_make(to, partition) : 0;
    if (!handle || !wn_batch_add_item(births, enif_make_tuple6(to, am_birth, handle, partition->grouped ? am_true : am_false,
                                                               held ? am_true : am_false, child, enif_make_copy(to, mfa))))
        return wn_partition_failed(births, consumer);
    return wn_partition_added(births, true, consumer);
}

/* An item of the births that is made of a process. */
static unsigned announce(wn_run *run, ERL_NIF_TERM (*item)(ErlNifEnv *, ERL_NIF_TERM), ERL_NIF_TERM process, uintptr_t *consumer)
{
    unsigned todo;
    wn_partition *births = run->births;
    if (!wn_partition_begin(births, 0, &todo, consumer))
        return todo;
    ErlNifEnv *to = wn_batch_env(births);
    if (!to || !wn_batch_add_item(births, item(to, process)))
        return wn_partition_failed(births, consumer);
    return wn_partition_added(births, true, consumer);
}

static ERL_NIF_TERM ended(ErlNifEnv *env, ERL_NIF_TERM process)
{
    (void)env, (void)process;
    return am_ended;
}

unsigned wn_announce_ended(wn_run *run, uintptr_t *consumer)
{
    return announce(run, ended, 0, consumer);
}

/* A local process is an immediate term. */
static ERL_NIF_TERM hidden(ErlNifEnv *env, ERL_NIF_TERM process)
{
    return enif_make_tuple2(env, am_hidden, process);
}

unsigned wn_announce_hidden(wn_run *run, ERL_NIF_TERM process, uintptr_t *consumer)
{
    return announce(run, hidden, process, consumer);
}
