#include "witness_native_births.h"

#include "witness_native_announce.h"
#include "witness_native_atoms.h"
#include "witness_native_awaited.h"
#include "witness_native_events.h"
#include "witness_native_exits.h"
#include "witness_native_servers.h"
#include "witness_native_signature.h"

void wn_births_spawn(ErlNifEnv *env, wn_run *run, ERL_NIF_TERM parent, ERL_NIF_TERM child, ERL_NIF_TERM mfa)
{
    if (run->watching) {
        wn_spawned spawned = wn_signature(env, &run->wrappers, mfa);
        wn_called_spawned(env, &run->called, child, &spawned, wn_awaited_spawned(env, run, parent, child));
        return;
    }
    unsigned todo = 0;
    uintptr_t consumer = 0;
    wn_slot *slot = wn_table_slot(&run->table, parent);
    ws_lock_take(&slot->lock);
    wn_partition *partition = wn_events_partition(wn_slot_find(slot, parent));
    if (partition)
        todo = wn_events_add(env, run, partition, WN_FORK, am_fork, parent, child, mfa, &consumer);
    ws_lock_give(&slot->lock);
    wn_run_notify(env, run, todo, consumer);
}

/* The reference is the caller's; `held`: whether the run waits for the child; `standing`: that of the parent for this child. */
static wn_partition *inherited(wn_run *run, ERL_NIF_TERM parent, ERL_NIF_TERM child, bool *held, wn_standing *standing)
{
    wn_slot *slot = wn_table_slot(&run->table, parent);
    ws_lock_take(&slot->lock);
    wn_tracee *tracee = wn_slot_find(slot, parent);
    wn_partition *partition = wn_events_partition(tracee);
    if (partition && partition->grouped)
        wn_partition_join(partition);
    else
        partition = NULL;
    *held = tracee && (tracee->held || tracee->launcher);
    *standing = wn_servers_standing(run, tracee, child);
    ws_lock_give(&slot->lock);
    return partition;
}

/* No process of the run: a server has spawned it for others, or a stranger has. */
static void spawned_outside(ErlNifEnv *env, wn_run *run, ERL_NIF_TERM child, bool is_server)
{
    unsigned todo = 0;
    uintptr_t consumer = 0;
    bool old_held = false;
    wn_slot *slot = wn_table_slot(&run->table, child);
    ws_lock_take(&slot->lock);
    wn_tracee *old = wn_slot_find(slot, child);
    if (old)
        todo = wn_exits_lost(env, run, slot, old, &consumer, &old_held);
    /* Without memory it is a stranger. */
    if (is_server && !atomic_load(&run->closed))
        (void)wn_slot_insert_server(slot, child);
    ws_lock_give(&slot->lock);
    wn_run_notify(env, run, todo, consumer);
    if (old_held)
        wn_awaited_release(env, run);
}

static wn_naming naming_of(const wn_run *run, const wn_spawned *spawned)
{
    return spawned->known ? wn_names_find(&run->names, spawned->module, spawned->function, spawned->arity)
                          : wn_names_unknown(&run->names);
}

/* The child is a member of it, with the first reference. NULL: there is no memory. */
static wn_partition *own_partition(wn_run *run, bool grouped)
{
    wn_partition *partition = wn_partition_new(run->hub, grouped);
    if (partition)
        partition->members = 1;
    return partition;
}

/* The partition joins a shard. The shard finds the birth in it: the `init` event, by which it knows the process. */
static unsigned join_shard(ErlNifEnv *env, wn_run *run, wn_partition *partition, ERL_NIF_TERM child, ERL_NIF_TERM parent,
                           ERL_NIF_TERM mfa, uintptr_t *consumer)
{
    unsigned shard = atomic_fetch_add_explicit(&run->next_shard, 1, memory_order_relaxed) % run->shard_count;
    wn_event init = wn_events_make(run, am_init, child, parent, mfa);
    void *birth = wn_birth_new(env, &init, run->message_size);
    if (birth && wn_partition_birth(partition, birth, wn_birth_bytes(birth), &run->births_hub->budget) &&
        wn_shard_join(&run->shards[shard], partition)) {
        int64_t read = atomic_fetch_add_explicit(&run->read, 1, memory_order_relaxed) + 1;
        if (read > atomic_load_explicit(&run->most_read, memory_order_relaxed))
            atomic_store_explicit(&run->most_read, read, memory_order_relaxed);
        return wn_partition_born(partition);
    }
    if (!partition->birth)
        wn_birth_drop(birth);
    wn_partition_unread(partition);
    return wn_announce_gap(run, birth ? WN_MEMORY : WN_SIZE, consumer);
}

/* The process is one of the run. `partition`: its parent's, with a reference for the process, or NULL. */
static void enter(ErlNifEnv *env, wn_run *run, ERL_NIF_TERM child, ERL_NIF_TERM parent, ERL_NIF_TERM mfa, const wn_spawned *spawned,
                  wn_partition *partition, bool held)
{
    unsigned todo = 0, todo_births = 0;
    uintptr_t consumer = 0, coordinator = 0;
    bool is_new = false, is_lost = false, old_held = false;
    wn_naming naming = {0};
    if (!partition && (naming = naming_of(run, spawned)).named) {
        if (run->central) {
            partition = run->central;
            wn_partition_join(partition);
        } else {
            partition = own_partition(run, naming.group);
            is_new = partition != NULL;
            is_lost = !is_new;
        }
    }
    atomic_fetch_add_explicit(&run->processes, 1, memory_order_relaxed);
    if (held)
        atomic_fetch_add(&run->held, 1);
    wn_slot *slot = wn_table_slot(&run->table, child);
    ws_lock_take(&slot->lock);
    wn_tracee *old = wn_slot_find(slot, child);
    if (old) {
        todo = wn_exits_lost(env, run, slot, old, &consumer, &old_held);
        wn_run_notify(env, run, todo, consumer);
        todo = 0;
    }
    wn_tracee *tracee = NULL;
    if (!atomic_load(&run->closed) && (partition || held || run->servers)) {
        tracee = wn_slot_insert(slot, child, partition, is_new);
        is_lost |= !tracee;
    }
    if (tracee) {
        tracee->held = held;
        if (is_new && run->shards && !naming.group && !naming.apart) {
            todo = join_shard(env, run, partition, child, parent, mfa, &consumer);
        } else if (partition) {
            if (is_new)
                todo_births = wn_announce_birth(env, run, partition, held, child, mfa, &coordinator);
            todo = wn_events_add(env, run, partition, WN_INIT, am_init, child, parent, mfa, &consumer);
        }
    }
    ws_lock_give(&slot->lock);
    if (!tracee && partition)
        wn_partition_leave(partition, &consumer);
    if (is_lost)
        todo_births |= wn_announce_gap(run, WN_MEMORY, &coordinator);
    wn_run_notify(env, run, todo_births, coordinator);
    wn_run_notify(env, run, todo, consumer);
    if (old_held)
        wn_awaited_release(env, run);
}

void wn_births_spawned(ErlNifEnv *env, wn_run *run, ERL_NIF_TERM child, ERL_NIF_TERM parent, ERL_NIF_TERM mfa)
{
    bool held;
    wn_standing standing;
    wn_spawned spawned = wn_signature(env, &run->wrappers, mfa);
    wn_partition *partition = inherited(run, parent, child, &held, &standing);
    wn_called_spawned(env, &run->called, child, &spawned, standing == WN_MEMBER);
    if (standing == WN_MEMBER)
        enter(env, run, child, parent, mfa, &spawned, partition, held);
    else
        spawned_outside(env, run, child, standing == WN_SERVER);
}

void wn_births_adopt(ErlNifEnv *env, wn_run *run, ERL_NIF_TERM process, ERL_NIF_TERM parent, ERL_NIF_TERM mfa)
{
    wn_spawned spawned = wn_signature(env, &run->wrappers, mfa);
    wn_called_spawned(env, &run->called, process, &spawned, true);
    enter(env, run, process, parent, mfa, &spawned, NULL, true);
}
