#include "witness_native_awaited.h"

#include "witness_native_announce.h"

bool wn_awaited_add(wn_run *run, uintptr_t process, bool is_launcher)
{
    wn_slot *slot = wn_table_slot(&run->table, process);
    ws_lock_take(&slot->lock);
    wn_tracee *tracee = wn_slot_find(slot, process) ? NULL : wn_slot_insert(slot, process, NULL, false);
    if (tracee) {
        tracee->launcher = is_launcher;
        tracee->held = !is_launcher;
        if (tracee->held)
            atomic_fetch_add(&run->held, 1);
    }
    ws_lock_give(&slot->lock);
    return tracee != NULL;
}

bool wn_awaited_has(wn_run *run, uintptr_t process)
{
    wn_slot *slot = wn_table_slot(&run->table, process);
    ws_lock_take(&slot->lock);
    wn_tracee *tracee = wn_slot_find(slot, process);
    bool held = tracee && tracee->held;
    ws_lock_give(&slot->lock);
    return held;
}

/*
 * A process is not traced from its birth, but from its call of a spawn function on. The parent is alive and stays in the
 * table, so the run still waits for a process when the child is counted. An entry with the child's pid belongs to a process
 * that is dead: the child takes it over.
 */
bool wn_awaited_spawned(ErlNifEnv *env, wn_run *run, uintptr_t parent, uintptr_t child)
{
    wn_slot *slot = wn_table_slot(&run->table, parent);
    ws_lock_take(&slot->lock);
    wn_tracee *tracee = wn_slot_find(slot, parent);
    bool held = tracee && (tracee->held || tracee->launcher);
    ws_lock_give(&slot->lock);
    if (!held)
        return false;
    atomic_fetch_add_explicit(&run->processes, 1, memory_order_relaxed);
    atomic_fetch_add(&run->held, 1);
    slot = wn_table_slot(&run->table, child);
    ws_lock_take(&slot->lock);
    wn_tracee *old = wn_slot_find(slot, child);
    bool closed = atomic_load(&run->closed);
    tracee = old || closed ? old : wn_slot_insert(slot, child, NULL, false);
    if (tracee)
        tracee->held = true, tracee->hidden = false;
    ws_lock_give(&slot->lock);
    if (old || !tracee)
        atomic_fetch_sub(&run->held, 1);
    if (!tracee && !closed) {
        uintptr_t consumer = 0;
        unsigned todo = wn_announce_gap(run, WN_MEMORY, &consumer);
        wn_run_notify(env, run, todo, consumer);
    }
    return true;
}

void wn_awaited_release(ErlNifEnv *env, wn_run *run)
{
    uintptr_t consumer = 0;
    if (atomic_fetch_sub(&run->held, 1) != 1)
        return;
    unsigned todo = wn_announce_ended(run, &consumer);
    wn_run_notify(env, run, todo, consumer);
}

/* Removes the dead processes of a slot, and adds others to the list while it is short. Returns how many were removed. */
static unsigned sweep_slot(ErlNifEnv *env, wn_slot *slot, unsigned most, unsigned *count, ERL_NIF_TERM *alive)
{
    unsigned dead = 0;
    ws_lock_take(&slot->lock);
    for (wn_tracee *tracee = slot->first, *next; tracee; tracee = next) {
        ErlNifPid pid = {.pid = tracee->process};
        next = tracee->next;
        if (!tracee->held)
            continue;
        if (!enif_is_process_alive(env, &pid)) {
            wn_slot_remove(slot, tracee);
            dead++;
        } else if (*count < most) {
            *alive = enif_make_list_cell(env, enif_make_pid(env, &pid), *alive);
            ++*count;
        }
    }
    ws_lock_give(&slot->lock);
    return dead;
}

ERL_NIF_TERM wn_awaited_sweep(ErlNifEnv *env, wn_run *run, unsigned most)
{
    unsigned count = 0;
    ERL_NIF_TERM alive = enif_make_list(env, 0);
    for (size_t i = 0; i <= run->table.mask; i++) {
        /* Read without its lock: what is added meanwhile is for the next sweep. */
        unsigned dead = run->table.slots[i].first ? sweep_slot(env, &run->table.slots[i], most, &count, &alive) : 0;
        while (dead--)
            wn_awaited_release(env, run);
    }
    return alive;
}
