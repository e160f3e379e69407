#include "witness_native_servers.h"

#include "witness_native_atoms.h"

/* NULL: the process is one of the run, or is not there. */
static wn_server *server_of(wn_tracee *tracee)
{
    return tracee && tracee->server ? (wn_server *)tracee : NULL;
}

bool wn_servers_add(wn_run *run, uintptr_t process, bool always)
{
    wn_slot *slot = wn_table_slot(&run->table, process);
    ws_lock_take(&slot->lock);
    wn_tracee *tracee = wn_slot_find(slot, process);
    wn_server *server = tracee || atomic_load(&run->closed) ? server_of(tracee) : wn_slot_insert_server(slot, process);
    if (server)
        server->always |= always;
    ws_lock_give(&slot->lock);
    return server != NULL;
}

static bool acts_for_run(wn_tracee *tracee)
{
    const wn_server *server = server_of(tracee);
    return !server || server->always || server->for_run;
}

static bool is_for_run(wn_run *run, uintptr_t process)
{
    wn_slot *slot = wn_table_slot(&run->table, process);
    ws_lock_take(&slot->lock);
    wn_tracee *tracee = wn_slot_find(slot, process);
    bool found = tracee && acts_for_run(tracee);
    ws_lock_give(&slot->lock);
    return found;
}

bool wn_servers_is_member(wn_run *run, uintptr_t process)
{
    wn_slot *slot = wn_table_slot(&run->table, process);
    ws_lock_take(&slot->lock);
    wn_tracee *tracee = wn_slot_find(slot, process);
    bool member = tracee && !tracee->server;
    ws_lock_give(&slot->lock);
    return member;
}

wn_standing wn_servers_standing(const wn_run *run, wn_tracee *tracee, uintptr_t child)
{
    if (!run->servers)
        return WN_MEMBER;
    if (!tracee)
        return WN_STRANGER;
    if (!acts_for_run(tracee))
        return WN_SERVER;
    /* Without memory a restart is not known to be one: the process in the place of the child is a server. */
    if (tracee->server)
        (void)wn_pids_add(&server_of(tracee)->started, child);
    return WN_MEMBER;
}

/* {'EXIT', Pid, Reason} */
static bool is_exit(ErlNifEnv *env, ERL_NIF_TERM message, ERL_NIF_TERM *process)
{
    const ERL_NIF_TERM *t;
    int size;
    if (!enif_get_tuple(env, message, &size, &t) || size != 3 || t[0] != am_EXIT || !enif_is_pid(env, t[1]))
        return false;
    *process = t[1];
    return true;
}

/* {'$gen_call', {Pid, Tag}, Request} */
static bool is_call(ErlNifEnv *env, ERL_NIF_TERM message, ERL_NIF_TERM *process)
{
    const ERL_NIF_TERM *t, *from;
    int size;
    if (!enif_get_tuple(env, message, &size, &t) || size != 3 || t[0] != am_gen_call || !enif_get_tuple(env, t[1], &size, &from) ||
        size != 2 || !enif_is_pid(env, from[0]))
        return false;
    *process = from[0];
    return true;
}

/* The element of a list; false if there is none. */
static bool element(ErlNifEnv *env, ERL_NIF_TERM list, unsigned position, ERL_NIF_TERM *found)
{
    ERL_NIF_TERM rest;
    while (enif_get_list_cell(env, list, found, &rest)) {
        if (position-- == 0)
            return true;
        list = rest;
    }
    return false;
}

void wn_servers_handles(ErlNifEnv *env, wn_run *run, ERL_NIF_TERM process, ERL_NIF_TERM mfa, unsigned position)
{
    const ERL_NIF_TERM *t;
    ERL_NIF_TERM message, of = 0;
    int size;
    /* Processes of the run inherit that their calls are reported. */
    if (wn_servers_is_member(run, process))
        return;
    if (!enif_get_tuple(env, mfa, &size, &t) || size != 3 || !element(env, t[2], position, &message))
        return;
    /*
     * Two slots are never locked at the same time. A caller waits for its answer, so it is in the table, unless it was killed: then
     * nothing of the run waits for what is spawned.
     */
    bool for_run = is_call(env, message, &of) && is_for_run(run, of);
    bool ended = is_exit(env, message, &of);
    wn_slot *slot = wn_table_slot(&run->table, process);
    ws_lock_take(&slot->lock);
    wn_server *server = server_of(wn_slot_find(slot, process));
    if (server)
        server->for_run = for_run || (ended && wn_pids_remove(&server->started, of));
    ws_lock_give(&slot->lock);
}
