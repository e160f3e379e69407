/*
 * The tracer's callbacks. The VM calls them in the context of the tracee, which cannot go on before they return. Two
 * callbacks of one tracee never run at the same time. The parent's `spawn` and the child's `spawned` come before any other
 * callback of the child, while the child can neither run nor receive.
 */
#include "witness_native_nif.h"

/* The message only asks the consumer to take: if it is late or lost, no data is. */
void wn_notify(ErlNifEnv *env, const wn_run *run, unsigned todo, uintptr_t consumer)
{
    if (todo & WN_TELL) {
        ErlNifPid pid = {.pid = consumer};
        enif_send(env, &pid, NULL, am_witness_data);
    }
    if (todo & WN_WAKE)
        enif_send(env, &run->timer, NULL, am_witness_wake);
}

/* --- which events the VM should report ------------------------------------------- */

/* The VM calls this before it runs the match specification of a call that is traced in all processes. */
ERL_NIF_TERM wn_enabled(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc, (void)argv;
    return am_trace;
}

ERL_NIF_TERM wn_enabled_message(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc, (void)argv;
    return am_trace;
}

/* Only calls by which a process hides itself are traced. */
ERL_NIF_TERM wn_enabled_call(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc, (void)argv;
    return am_trace;
}

ERL_NIF_TERM wn_enabled_procs(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc;
    return argv[0] == am_spawn || argv[0] == am_spawned || argv[0] == am_exit ? am_trace : am_discard;
}

/* --- events ---------------------------------------------------------------------- */

static wn_event event(const wn_run *run, ERL_NIF_TERM name, ERL_NIF_TERM process, ERL_NIF_TERM other, ERL_NIF_TERM term)
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

/*
 * From here on events of a process are missing. The partition that every process is born into goes on for the others:
 * there the gap is an item.
 */
static unsigned missed(ErlNifEnv *env, const wn_run *run, wn_partition *partition, ERL_NIF_TERM process, wn_reason reason,
                       uint64_t missing, uintptr_t *consumer)
{
    if (partition != run->central)
        return wn_partition_gap(partition, reason, missing, consumer);
    ERL_NIF_TERM why = reason == WN_SIZE ? am_message_size : reason == WN_SENSITIVE ? am_sensitive : am_lost;
    wn_event gap = event(run, am_gap, process, why, am_unknown);
    wn_code code;
    wn_code_init(&code, run->message_size);
    /* Atoms and a local process: it always fits. */
    (void)wn_event_write(env, &code, &gap);
    return put(partition, &code, true, consumer);
}

/* {Kind, Process, Other, Term, Time}, or without Other. The process is local, so its pid is immediate. */
static unsigned add(ErlNifEnv *env, const wn_run *run, wn_partition *partition, unsigned kind, ERL_NIF_TERM name,
                    ERL_NIF_TERM process, ERL_NIF_TERM other, ERL_NIF_TERM term, uintptr_t *consumer)
{
    unsigned todo;
    if (!wn_partition_wants(partition, kind))
        return 0;
    wn_event added = event(run, name, process, other, term);
    wn_code code;
    wn_code_init(&code, run->message_size);
    if (wn_event_write(env, &code, &added))
        todo = put(partition, &code, kind == WN_EXIT, consumer);
    else
        todo = missed(env, run, partition, process, WN_SIZE, 1, consumer);
    wn_code_free(&code);
    return todo;
}

/* The slot is locked. NULL if the partition is not read any more. */
static wn_partition *partition_of(const wn_tracee *tracee)
{
    wn_partition *partition = tracee ? tracee->partition : NULL;
    return partition && !wn_partition_is_unread(partition) ? partition : NULL;
}

static ERL_NIF_TERM message(ErlNifEnv *env, const ERL_NIF_TERM argv[], unsigned kind, ERL_NIF_TERM name, ERL_NIF_TERM key)
{
    wn_run *run = wn_run_of(env, argv[1]);
    if (!run)
        return am_ok;
    unsigned todo = 0;
    uintptr_t consumer = 0;
    wn_slot *slot = wn_table_slot(&run->table, argv[2]);
    wn_lock_take(&slot->lock);
    wn_partition *partition = partition_of(wn_slot_find(slot, argv[2]));
    if (partition) {
        ERL_NIF_TERM other = am_undefined;
        enif_get_map_value(env, argv[4], key, &other);
        todo = add(env, run, partition, kind, name, argv[2], other, argv[3], &consumer);
    }
    wn_lock_give(&slot->lock);
    wn_notify(env, run, todo, consumer);
    return am_ok;
}

ERL_NIF_TERM wn_trace_send(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    return message(env, argv, WN_SEND, am_send, am_extra);
}

ERL_NIF_TERM wn_trace_receive(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    return message(env, argv, WN_RECV, am_recv, am_match_spec_result);
}

/* --- births ---------------------------------------------------------------------- */

/*
 * In a run that only watches, a process is not traced from its birth, but from its call of a spawn function on. The
 * parent is alive and stays in the table, so the run still waits for a process when the child is counted. An entry with
 * the child's pid belongs to a process that is dead: the child takes it over.
 */
static void begun(wn_run *run, ERL_NIF_TERM parent, ERL_NIF_TERM child)
{
    wn_slot *slot = wn_table_slot(&run->table, parent);
    wn_lock_take(&slot->lock);
    wn_tracee *tracee = wn_slot_find(slot, parent);
    bool held = tracee && (tracee->held || tracee->launcher);
    wn_lock_give(&slot->lock);
    if (!held)
        return;
    atomic_fetch_add_explicit(&run->processes, 1, memory_order_relaxed);
    atomic_fetch_add(&run->held, 1);
    slot = wn_table_slot(&run->table, child);
    wn_lock_take(&slot->lock);
    tracee = wn_slot_find(slot, child);
    bool is_new = !tracee && !atomic_load(&run->closed) && (tracee = wn_slot_insert(slot, child, NULL, false));
    if (tracee)
        tracee->held = true, tracee->hidden = false;
    wn_lock_give(&slot->lock);
    if (!is_new)
        atomic_fetch_sub(&run->held, 1);
}

static void forked(ErlNifEnv *env, wn_run *run, ERL_NIF_TERM parent, ERL_NIF_TERM child, ERL_NIF_TERM mfa)
{
    if (run->watching) {
        begun(run, parent, child);
        return;
    }
    unsigned todo = 0;
    uintptr_t consumer = 0;
    wn_slot *slot = wn_table_slot(&run->table, parent);
    wn_lock_take(&slot->lock);
    wn_partition *partition = partition_of(wn_slot_find(slot, parent));
    if (partition)
        todo = add(env, run, partition, WN_FORK, am_fork, parent, child, mfa, &consumer);
    wn_lock_give(&slot->lock);
    wn_notify(env, run, todo, consumer);
}

/* The reference is the caller's; `held`: whether the run waits for the child. */
static wn_partition *inherited(wn_run *run, ERL_NIF_TERM parent, bool *held)
{
    wn_slot *slot = wn_table_slot(&run->table, parent);
    wn_lock_take(&slot->lock);
    wn_tracee *tracee = wn_slot_find(slot, parent);
    wn_partition *partition = partition_of(tracee);
    if (partition && partition->grouped)
        wn_partition_join(partition);
    else
        partition = NULL;
    *held = tracee && (tracee->held || tracee->launcher);
    wn_lock_give(&slot->lock);
    return partition;
}

/* {birth, Partition, Grouped, Held, Child, MFA}. The handle takes a reference of its own. */
static unsigned announce(ErlNifEnv *env, wn_run *run, wn_partition *partition, bool held, ERL_NIF_TERM child, ERL_NIF_TERM mfa,
                         uintptr_t *consumer)
{
    unsigned todo;
    wn_partition *births = run->births;
    size_t bytes = wn_size(env, mfa, run->message_size);
    if (bytes == WN_TOO_LARGE)
        return wn_partition_gap(births, WN_SIZE, 1, consumer);
    if (!wn_partition_begin(births, bytes + WN_BIRTH_BYTES, &todo, consumer))
        return todo;
    ErlNifEnv *to = wn_batch_env(births);
    ERL_NIF_TERM handle = to ? wn_handle_make(to, partition) : 0;
    if (!handle || !wn_batch_add_item(births, enif_make_tuple6(to, am_birth, handle, partition->grouped ? am_true : am_false,
                                                               held ? am_true : am_false, child, enif_make_copy(to, mfa))))
        return wn_partition_failed(births, consumer);
    return wn_partition_added(births, true, consumer);
}

/* Announces it to a shard. The shard finds the birth in the partition: the `init` event, by which it knows the process. */
static unsigned announce_in(ErlNifEnv *env, wn_run *run, wn_partition *partition, ERL_NIF_TERM child, ERL_NIF_TERM parent,
                            ERL_NIF_TERM mfa, uintptr_t *consumer)
{
    unsigned lane = atomic_fetch_add_explicit(&run->next_lane, 1, memory_order_relaxed) % run->lane_count;
    wn_event init = event(run, am_init, child, parent, mfa);
    void *birth = wn_birth_new(env, &init, run->message_size);
    if (birth && wn_partition_birth(partition, birth, wn_birth_bytes(birth), &run->births_hub->budget) &&
        wn_lane_join(&run->shards[lane], partition)) {
        int64_t read = atomic_fetch_add_explicit(&run->read, 1, memory_order_relaxed) + 1;
        if (read > atomic_load_explicit(&run->most_read, memory_order_relaxed))
            atomic_store_explicit(&run->most_read, read, memory_order_relaxed);
        return wn_partition_born(partition);
    }
    if (!partition->birth)
        wn_birth_drop(birth);
    wn_partition_unread(partition);
    return wn_partition_gap(run->births, birth ? WN_MEMORY : WN_SIZE, 1, consumer);
}

static wn_naming naming_of(ErlNifEnv *env, const wn_run *run, ERL_NIF_TERM mfa)
{
    ERL_NIF_TERM module, function;
    int arity;
    return wn_signature(env, mfa, &module, &function, &arity) ? wn_names_find(&run->names, module, function, arity)
                                                              : wn_names_unknown(&run->names);
}

static ERL_NIF_TERM all_ended(ErlNifEnv *env, ERL_NIF_TERM process)
{
    (void)env, (void)process;
    return am_ended;
}

static ERL_NIF_TERM is_hidden(ErlNifEnv *env, ERL_NIF_TERM process)
{
    return enif_make_tuple2(env, am_hidden, process);
}

/* Another item for the births. */
static unsigned told(wn_run *run, ERL_NIF_TERM (*item)(ErlNifEnv *, ERL_NIF_TERM), ERL_NIF_TERM process, uintptr_t *consumer)
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

/* The slot is locked. If the exit of a process was never reported (`lost`), its trace is incomplete. */
static unsigned forget(ErlNifEnv *env, const wn_run *run, wn_slot *slot, wn_tracee *tracee, bool lost, uintptr_t *consumer,
                       bool *was_held)
{
    unsigned todo = 0;
    wn_partition *partition = tracee->partition;
    ERL_NIF_TERM process = tracee->process;
    *was_held = tracee->held;
    wn_slot_remove(slot, tracee);
    if (partition) {
        if (lost)
            todo = missed(env, run, partition, process, WN_LOST, 0, consumer);
        todo |= wn_partition_leave(partition, consumer);
    }
    return todo;
}

void wn_release_held(ErlNifEnv *env, wn_run *run)
{
    uintptr_t consumer = 0;
    if (atomic_fetch_sub(&run->held, 1) != 1)
        return;
    /* The last process that the run waits for has ended. */
    unsigned todo = told(run, all_ended, 0, &consumer);
    wn_notify(env, run, todo, consumer);
}

static void born(ErlNifEnv *env, wn_run *run, ERL_NIF_TERM child, ERL_NIF_TERM parent, ERL_NIF_TERM mfa)
{
    unsigned todo = 0, todo_births = 0;
    uintptr_t consumer = 0, coordinator = 0;
    bool held, is_new = false, old_held = false;
    wn_partition *partition = inherited(run, parent, &held);
    wn_naming naming = {0};
    if (!partition && (naming = naming_of(env, run, mfa)).named) {
        if (run->central) {
            partition = run->central;
            wn_partition_join(partition);
        } else {
            partition = wn_partition_new(run->hub, naming.group);
            is_new = partition != NULL;
            if (is_new)
                partition->members = 1; /* with the first reference */
        }
    }
    atomic_fetch_add_explicit(&run->processes, 1, memory_order_relaxed);
    if (held)
        atomic_fetch_add(&run->held, 1);
    wn_slot *slot = wn_table_slot(&run->table, child);
    wn_lock_take(&slot->lock);
    wn_tracee *old = wn_slot_find(slot, child);
    if (old) {
        todo = forget(env, run, slot, old, true, &consumer, &old_held);
        wn_notify(env, run, todo, consumer);
        todo = 0;
    }
    wn_tracee *tracee = NULL;
    if (!atomic_load(&run->closed) && (partition || held))
        tracee = wn_slot_insert(slot, child, partition, is_new);
    if (tracee) {
        tracee->held = held;
        if (is_new && run->shards && !naming.group && !naming.apart) {
            todo = announce_in(env, run, partition, child, parent, mfa, &consumer);
        } else if (partition) {
            if (is_new)
                todo_births = announce(env, run, partition, held, child, mfa, &coordinator);
            todo = add(env, run, partition, WN_INIT, am_init, child, parent, mfa, &consumer);
        }
    }
    wn_lock_give(&slot->lock);
    if (!tracee && partition)
        wn_partition_leave(partition, &consumer);
    wn_notify(env, run, todo_births, coordinator);
    wn_notify(env, run, todo, consumer);
    if (old_held)
        wn_release_held(env, run);
}

/* `reason`: NULL if the end is not an event. */
static void exited(ErlNifEnv *env, wn_run *run, ERL_NIF_TERM process, const ERL_NIF_TERM *reason)
{
    unsigned todo = 0;
    uintptr_t consumer = 0;
    bool held = false;
    wn_slot *slot = wn_table_slot(&run->table, process);
    wn_lock_take(&slot->lock);
    wn_tracee *tracee = wn_slot_find(slot, process);
    if (tracee) {
        wn_partition *partition = partition_of(tracee);
        if (reason && partition)
            todo = add(env, run, partition, WN_EXIT, am_exit, process, 0, *reason, &consumer);
        todo |= forget(env, run, slot, tracee, false, &consumer, &held);
    }
    wn_lock_give(&slot->lock);
    wn_notify(env, run, todo, consumer);
    if (held)
        wn_release_held(env, run);
}

/* --- processes that hide themselves ----------------------------------------------- */

/*
 * The VM reports the call before it takes effect, and nothing of the process after it, its exit included. So its partition gets
 * a gap here, and a monitor reports its end.
 */
static void hides(ErlNifEnv *env, wn_run *run, ERL_NIF_TERM process)
{
    unsigned todo = 0, todo_births = 0;
    uintptr_t consumer = 0, coordinator = 0;
    bool first = false;
    wn_slot *slot = wn_table_slot(&run->table, process);
    wn_lock_take(&slot->lock);
    wn_tracee *tracee = wn_slot_find(slot, process);
    if (tracee && !tracee->hidden && !tracee->launcher) {
        first = tracee->hidden = true;
        wn_partition *partition = partition_of(tracee);
        if (partition && partition == run->central)
            todo = missed(env, run, partition, process, WN_SENSITIVE, 0, &consumer);
        else if (partition)
            todo = wn_partition_cut(partition, WN_SENSITIVE, &consumer);
        if (partition || tracee->held)
            todo_births = told(run, is_hidden, process, &coordinator);
    }
    wn_lock_give(&slot->lock);
    wn_notify(env, run, todo_births, coordinator);
    wn_notify(env, run, todo, consumer);
    ErlNifPid pid;
    if (first && enif_get_local_pid(env, process, &pid))
        enif_monitor_process(env, run, &pid, NULL);
}

/* If the process has shown itself again, its exit was reported, and it is not in the table any more. */
void wn_hidden_down(ErlNifEnv *env, wn_run *run, uintptr_t process)
{
    exited(env, run, process, NULL);
}

/*
 * Events without a callback of their own. Calls must not have one: if they had, the VM would not run the match specification
 * of a call that is traced in all processes.
 */
ERL_NIF_TERM wn_trace(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = argv[0] == am_call ? wn_run_of(env, argv[1]) : NULL;
    (void)argc;
    if (run)
        hides(env, run, argv[2]);
    return am_ok;
}

ERL_NIF_TERM wn_trace_procs(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM mfa = am_undefined;
    wn_run *run = wn_run_of(env, argv[1]);
    (void)argc;
    if (!run)
        return am_ok;
    if (argv[0] == am_exit) {
        exited(env, run, argv[2], &argv[3]);
    } else if (enif_get_map_value(env, argv[4], am_extra, &mfa)) {
        if (argv[0] == am_spawn)
            forked(env, run, argv[2], argv[3], mfa);
        else if (argv[0] == am_spawned)
            born(env, run, argv[2], argv[3], mfa);
    }
    return am_ok;
}
