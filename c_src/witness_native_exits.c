#include "witness_native_exits.h"

#include "witness_native_announce.h"
#include "witness_native_atoms.h"
#include "witness_native_awaited.h"
#include "witness_native_events.h"

/* The slot is locked. */
static unsigned leave(wn_slot *slot, wn_tracee *tracee, uintptr_t *consumer, bool *was_held)
{
    wn_partition *partition = tracee->partition;
    *was_held = tracee->held;
    wn_slot_remove(slot, tracee);
    return partition ? wn_partition_leave(partition, consumer) : 0;
}

unsigned wn_exits_lost(ErlNifEnv *env, const wn_run *run, wn_slot *slot, wn_tracee *tracee, uintptr_t *consumer, bool *was_held)
{
    unsigned todo = 0;
    if (tracee->partition)
        todo = wn_events_missed(env, run, tracee->partition, tracee->process, WN_LOST, 0, consumer);
    return todo | leave(slot, tracee, consumer, was_held);
}

void wn_exits_exit(ErlNifEnv *env, wn_run *run, ERL_NIF_TERM process, const ERL_NIF_TERM *reason)
{
    unsigned todo = 0;
    uintptr_t consumer = 0;
    bool held = false;
    wn_slot *slot = wn_table_slot(&run->table, process);
    ws_lock_take(&slot->lock);
    wn_tracee *tracee = wn_slot_find(slot, process);
    if (tracee) {
        wn_partition *partition = wn_events_partition(tracee);
        if (reason && partition)
            todo = wn_events_add(env, run, partition, WN_EXIT, am_exit, process, 0, *reason, &consumer);
        todo |= leave(slot, tracee, &consumer, &held);
    }
    ws_lock_give(&slot->lock);
    wn_run_notify(env, run, todo, consumer);
    if (held)
        wn_awaited_release(env, run);
}

void wn_exits_forget(ErlNifEnv *env, wn_run *run, uintptr_t process)
{
    uintptr_t consumer = 0;
    unsigned todo = 0;
    bool held = false;
    wn_slot *slot = wn_table_slot(&run->table, process);
    ws_lock_take(&slot->lock);
    wn_tracee *tracee = wn_slot_find(slot, process);
    if (tracee) {
        held = tracee->held;
        wn_partition *partition = tracee->partition;
        wn_slot_remove(slot, tracee);
        if (partition && partition != run->central)
            todo = wn_partition_stop(partition, &consumer);
        if (partition)
            wn_partition_release(partition);
    }
    ws_lock_give(&slot->lock);
    wn_run_notify(env, run, todo, consumer);
    if (held)
        wn_awaited_release(env, run);
}

/* --- processes that hide themselves ----------------------------------------------- */

/* The end of a process that the VM does not report. If it is dead by now, it has ended. */
static void monitor(ErlNifEnv *env, wn_run *run, ERL_NIF_TERM process)
{
    ErlNifPid pid;
    if (!enif_get_local_pid(env, process, &pid) || enif_monitor_process(env, run, &pid, NULL) != 0)
        wn_exits_exit(env, run, process, NULL);
}

/*
 * The VM reports the call before it takes effect, and nothing of the process after it, its exit included. So its partition gets
 * a gap here, and a monitor reports its end.
 */
void wn_exits_hide(ErlNifEnv *env, wn_run *run, ERL_NIF_TERM process)
{
    unsigned todo = 0, todo_births = 0;
    uintptr_t consumer = 0, coordinator = 0;
    bool first = false;
    wn_slot *slot = wn_table_slot(&run->table, process);
    ws_lock_take(&slot->lock);
    wn_tracee *tracee = wn_slot_find(slot, process);
    if (tracee && !tracee->hidden && !tracee->launcher) {
        first = tracee->hidden = true;
        wn_partition *partition = wn_events_partition(tracee);
        if (partition && partition == run->central)
            todo = wn_events_missed(env, run, partition, process, WN_SENSITIVE, 0, &consumer);
        else if (partition)
            todo = wn_partition_cut(partition, WN_SENSITIVE, &consumer);
        if (partition || tracee->held)
            todo_births = wn_announce_hidden(run, process, &coordinator);
    }
    ws_lock_give(&slot->lock);
    wn_run_notify(env, run, todo_births, coordinator);
    wn_run_notify(env, run, todo, consumer);
    if (first)
        monitor(env, run, process);
}

/* If the process has shown itself again, its exit was reported, and it is not in the table any more. */
void wn_exits_down(ErlNifEnv *env, void *run, ErlNifPid *pid, ErlNifMonitor *which)
{
    (void)which;
    wn_exits_exit(env, run, pid->pid, NULL);
}
