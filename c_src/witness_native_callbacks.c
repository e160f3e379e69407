#include "witness_native_callbacks.h"

#include "witness_native_atoms.h"
#include "witness_native_births.h"
#include "witness_native_events.h"
#include "witness_native_exits.h"
#include "witness_native_servers.h"

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

/*
 * Only calls of functions that monitors name are traced, and calls by which a process hides itself, or with which a server begins
 * to handle a message.
 */
ERL_NIF_TERM wn_enabled_call(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc, (void)argv;
    return am_trace;
}

ERL_NIF_TERM wn_enabled_procs(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc;
    return argv[0] == am_spawn || argv[0] == am_spawned || argv[0] == am_exit || argv[0] == am_register ? am_trace : am_discard;
}

/* --- events ---------------------------------------------------------------------- */

/* The option `key` has the other process: the receiver, or what the pattern of messages adds. Without it that is unknown. */
static ERL_NIF_TERM message(ErlNifEnv *env, const ERL_NIF_TERM argv[], unsigned kind, ERL_NIF_TERM name, ERL_NIF_TERM key)
{
    wn_run *run = wn_run_of(env, argv[1]);
    if (!run)
        return am_ok;
    unsigned todo = 0;
    uintptr_t consumer = 0;
    wn_slot *slot = wn_table_slot(&run->table, argv[2]);
    ws_lock_take(&slot->lock);
    wn_partition *partition = wn_events_partition(wn_slot_find(slot, argv[2]));
    if (partition) {
        ERL_NIF_TERM other = am_undefined;
        (void)enif_get_map_value(env, argv[4], key, &other);
        todo = wn_events_add(env, run, partition, kind, name, argv[2], other, argv[3], &consumer);
    }
    ws_lock_give(&slot->lock);
    wn_run_notify(env, run, todo, consumer);
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

/* The process has called a function that a monitor names, or has returned from it. `other`: as in `wn_events_add`. */
static void function(ErlNifEnv *env, wn_run *run, ERL_NIF_TERM process, unsigned kind, ERL_NIF_TERM name, ERL_NIF_TERM other,
                     ERL_NIF_TERM term)
{
    unsigned todo = 0;
    uintptr_t consumer = 0;
    wn_slot *slot = wn_table_slot(&run->table, process);
    ws_lock_take(&slot->lock);
    wn_partition *partition = wn_events_partition(wn_slot_find(slot, process));
    if (partition)
        todo = wn_events_add(env, run, partition, kind, name, process, other, term, &consumer);
    ws_lock_give(&slot->lock);
    wn_run_notify(env, run, todo, consumer);
}

/*
 * {erlang, process_flag, [Flag, Value]}. Of this function only the call that hides a process is traced. There is a
 * `process_flag/3`, too, which a monitor may name.
 */
static bool is_hiding(ErlNifEnv *env, ERL_NIF_TERM mfa)
{
    const ERL_NIF_TERM *t;
    int size;
    unsigned arity;
    return enif_get_tuple(env, mfa, &size, &t) && size == 3 && t[0] == am_erlang && t[1] == am_process_flag &&
           enif_get_list_length(env, t[2], &arity) && arity == 2;
}

/* The term is `{Module, Function, Arguments}`. */
static void call(ErlNifEnv *env, wn_run *run, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM result;
    unsigned position;
    if (enif_get_map_value(env, argv[4], am_match_spec_result, &result) && enif_get_uint(env, result, &position))
        wn_servers_handles(env, run, argv[2], argv[3], position);
    else if (is_hiding(env, argv[3]))
        wn_exits_hide(env, run, argv[2]);
    else
        function(env, run, argv[2], WN_CALL, am_call, 0, argv[3]);
}

/* The term is `{Module, Function, Arity}`, and an option has the value. */
static void return_from(ErlNifEnv *env, wn_run *run, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM value = am_undefined;
    (void)enif_get_map_value(env, argv[4], am_extra, &value);
    function(env, run, argv[2], WN_RETURN, am_return, argv[3], value);
}

/*
 * Events without a callback of their own. Calls must not have one: if they had, the VM would not run the match specification
 * of a call that is traced in all processes.
 */
ERL_NIF_TERM wn_trace(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = argv[0] == am_call || argv[0] == am_return_from ? wn_run_of(env, argv[1]) : NULL;
    (void)argc;
    if (run && argv[0] == am_call)
        call(env, run, argv);
    else if (run)
        return_from(env, run, argv);
    return am_ok;
}

/* What a process was spawned with. The VM always gives it; without it, no signature can be excluded. */
static ERL_NIF_TERM spawned_with(ErlNifEnv *env, ERL_NIF_TERM options)
{
    ERL_NIF_TERM mfa = am_undefined;
    (void)enif_get_map_value(env, options, am_extra, &mfa);
    return mfa;
}

ERL_NIF_TERM wn_trace_procs(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = wn_run_of(env, argv[1]);
    (void)argc;
    if (!run)
        return am_ok;
    if (argv[0] == am_exit)
        wn_exits_exit(env, run, argv[2], &argv[3]);
    else if (argv[0] == am_spawn)
        wn_births_spawn(env, run, argv[2], argv[3], spawned_with(env, argv[4]));
    else if (argv[0] == am_spawned)
        wn_births_spawned(env, run, argv[2], argv[3], spawned_with(env, argv[4]));
    else if (argv[0] == am_register)
        wn_called_registered(&run->called, argv[2], argv[3]);
    return am_ok;
}
