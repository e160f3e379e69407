/*
 * The functions of `witness_trace_native`: their table, their arguments and results, and what is set up when they are loaded.
 * The tracer's callbacks are in witness_native_callbacks.c.
 */
#include "witness_native_atoms.h"
#include "witness_native_awaited.h"
#include "witness_native_batch.h"
#include "witness_native_births.h"
#include "witness_native_callbacks.h"
#include "witness_native_exits.h"
#include "witness_native_handle.h"
#include "witness_native_pieces.h"
#include "witness_native_servers.h"
#include "witness_native_terms.h"
#include "witness_shared_memory.h"

#include <stdlib.h>

/* --- runs ------------------------------------------------------------------------ */

/* [{Module | 0, Function | 0, Arity | -1, Group :: 0 | 1, Apart :: 0 | 1}] */
static bool read_names(ErlNifEnv *env, ERL_NIF_TERM list, wn_names *names)
{
    unsigned length;
    if (!enif_get_list_length(env, list, &length))
        return false;
    wn_pattern *patterns = calloc(length + 1, sizeof *patterns);
    ERL_NIF_TERM head;
    bool good = patterns != NULL;
    for (unsigned i = 0; good && i < length; i++) {
        const ERL_NIF_TERM *t;
        int size, group, apart;
        good = enif_get_list_cell(env, list, &head, &list) && enif_get_tuple(env, head, &size, &t) && size == 5 &&
               enif_get_int(env, t[2], &patterns[i].arity) && enif_get_int(env, t[3], &group) && enif_get_int(env, t[4], &apart);
        if (good) {
            patterns[i].module = enif_is_atom(env, t[0]) ? t[0] : 0;
            patterns[i].function = enif_is_atom(env, t[1]) ? t[1] : 0;
            patterns[i].group = group != 0;
            patterns[i].apart = apart != 0;
        }
    }
    good = good && wn_names_init(names, patterns, length);
    free(patterns);
    return good;
}

/* new_run(Names, Wrappers, Memory, PartitionMemory, MessageSize, Batch, TimeStamps, Slots, Timer, Shards) -> {Run, Births} */
static ERL_NIF_TERM new_run(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifUInt64 memory, partition_memory, message_size;
    wn_run_options options = {.timestamps = argv[6] == am_true};
    wn_names names;
    wn_wrappers wrappers;
    ERL_NIF_TERM term;
    (void)argc;
    if (!enif_get_uint64(env, argv[2], &memory) || !enif_get_uint64(env, argv[3], &partition_memory) ||
        !enif_get_uint64(env, argv[4], &message_size) || !enif_get_uint(env, argv[5], &options.batch) ||
        !enif_get_uint(env, argv[7], &options.slots) || !enif_get_local_pid(env, argv[8], &options.timer) ||
        !enif_get_uint(env, argv[9], &options.shards) || !wn_wrappers_init(env, &wrappers, argv[1]))
        return enif_make_badarg(env);
    if (!read_names(env, argv[0], &names)) {
        wn_wrappers_free(&wrappers);
        return enif_make_badarg(env);
    }
    options.memory = memory;
    options.partition_memory = partition_memory;
    options.message_size = message_size;
    wn_run *run = wn_run_new(env, &options, &names, &wrappers, &term);
    ERL_NIF_TERM births = run ? wn_handle_make(env, run->births) : 0;
    return births ? enif_make_tuple2(env, term, births) : enif_make_badarg(env);
}

/* central_of(Run, Grouped) -> Partition */
static ERL_NIF_TERM central_of(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = wn_run_of(env, argv[0]);
    (void)argc;
    if (!run || run->central)
        return enif_make_badarg(env);
    wn_partition *central = wn_run_centralize(run, argv[1] == am_true);
    ERL_NIF_TERM handle = central ? wn_handle_make(env, central) : 0;
    return handle ? handle : enif_make_badarg(env);
}

/* watch(Run) -> ok. Before anything is traced. */
static ERL_NIF_TERM watch(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = wn_run_of(env, argv[0]);
    (void)argc;
    if (!run)
        return enif_make_badarg(env);
    run->watching = true;
    return am_ok;
}

/* serve(Run) -> ok. Before anything is traced. */
static ERL_NIF_TERM serve(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = wn_run_of(env, argv[0]);
    (void)argc;
    if (!run)
        return enif_make_badarg(env);
    run->servers = true;
    return am_ok;
}

/* close_run(Run) -> ok */
static ERL_NIF_TERM close_run(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = wn_run_of(env, argv[0]);
    (void)argc;
    if (!run)
        return enif_make_badarg(env);
    wn_run_close(env, run);
    return am_ok;
}

/* tick(Run, Age) -> boolean() */
static ERL_NIF_TERM tick(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = wn_run_of(env, argv[0]);
    unsigned age;
    (void)argc;
    if (!run || !enif_get_uint(env, argv[1], &age))
        return enif_make_badarg(env);
    return wn_run_tick(env, run, age) ? am_true : am_false;
}

/* --- partitions with a consumer of their own --------------------------------------- */

static ERL_NIF_TERM take_from(ErlNifEnv *env, ERL_NIF_TERM partition, bool only_gap)
{
    wn_handle *handle = wn_handle_of(env, partition);
    return handle ? wn_handle_take(env, handle, only_gap) : enif_make_badarg(env);
}

/* take(Partition) -> ok | empty */
static ERL_NIF_TERM take(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    return take_from(env, argv[0], false);
}

/* take_gap(Partition) -> ok | empty */
static ERL_NIF_TERM take_gap(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    return take_from(env, argv[0], true);
}

/* unread(Partition) -> ok */
static ERL_NIF_TERM unread(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_handle *handle = wn_handle_of(env, argv[0]);
    (void)argc;
    if (!handle)
        return enif_make_badarg(env);
    wn_partition_unread(handle->partition);
    return am_ok;
}

/* narrow_to(Partition, Kinds) -> ok */
static ERL_NIF_TERM narrow_to(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_handle *handle = wn_handle_of(env, argv[0]);
    unsigned kinds;
    (void)argc;
    if (!handle || !enif_get_uint(env, argv[1], &kinds) || kinds > WN_ALL)
        return enif_make_badarg(env);
    wn_partition_narrow(handle->partition, kinds);
    return am_ok;
}

/* --- shards ---------------------------------------------------------------------- */

static wn_shard *shard_of(ErlNifEnv *env, const ERL_NIF_TERM argv[], wn_run **run)
{
    unsigned number;
    *run = wn_run_of(env, argv[0]);
    return *run && enif_get_uint(env, argv[1], &number) && number < (*run)->shard_count ? &(*run)->shards[number] : NULL;
}

static wn_partition *place_of(ErlNifEnv *env, const ERL_NIF_TERM argv[], wn_run **run, wn_shard **shard)
{
    ErlNifUInt64 place;
    *shard = shard_of(env, argv, run);
    return *shard && enif_get_uint64(env, argv[2], &place) ? wn_shard_find(*shard, place) : NULL;
}

/* shard_take(Run, Number) -> [Piece] */
static ERL_NIF_TERM shard_take(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run;
    wn_shard *shard = shard_of(env, argv, &run);
    ErlNifPid self;
    (void)argc;
    if (!shard || !enif_self(env, &self))
        return enif_make_badarg(env);
    return wn_pieces_take(env, run, shard, self.pid);
}

/* shard_unread(Run, Number, Place) -> ok */
static ERL_NIF_TERM shard_unread(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run;
    wn_shard *shard;
    wn_partition *partition = place_of(env, argv, &run, &shard);
    (void)argc;
    if (!shard)
        return enif_make_badarg(env);
    if (partition) {
        wn_partition_unread(partition);
        wn_pieces_leave(run, shard, partition);
    }
    return am_ok;
}

/* shard_detach(Run, Number, Place) -> Partition. The next process that takes from it is its consumer. */
static ERL_NIF_TERM shard_detach(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run;
    wn_shard *shard;
    wn_partition *partition = place_of(env, argv, &run, &shard);
    ERL_NIF_TERM handle = partition ? wn_handle_make(env, partition) : 0;
    (void)argc;
    if (!handle)
        return enif_make_badarg(env);
    wn_partition_detach(partition);
    wn_pieces_leave(run, shard, partition);
    return handle;
}

/* shard_narrow(Run, Number, Place, Kinds) -> ok */
static ERL_NIF_TERM shard_narrow(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run;
    wn_shard *shard;
    unsigned kinds;
    wn_partition *partition = place_of(env, argv, &run, &shard);
    (void)argc;
    if (!shard || !enif_get_uint(env, argv[3], &kinds) || kinds > WN_ALL)
        return enif_make_badarg(env);
    if (partition)
        wn_partition_narrow(partition, kinds);
    return am_ok;
}

/* shard_reset(Run, Number) -> ok. The process that took from it is dead. */
static ERL_NIF_TERM shard_reset(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run;
    wn_shard *shard = shard_of(env, argv, &run);
    (void)argc;
    if (!shard)
        return enif_make_badarg(env);
    atomic_fetch_sub_explicit(&run->read, wn_shard_reset(shard), memory_order_relaxed);
    return am_ok;
}

/* --- processes ------------------------------------------------------------------- */

static ERL_NIF_TERM add_unread(ErlNifEnv *env, const ERL_NIF_TERM argv[], bool is_launcher)
{
    wn_run *run = wn_run_of(env, argv[0]);
    ErlNifPid pid;
    if (!run || !enif_get_local_pid(env, argv[1], &pid) || !wn_awaited_add(run, pid.pid, is_launcher))
        return enif_make_badarg(env);
    return am_ok;
}

/* add_launcher(Run, Pid) -> ok */
static ERL_NIF_TERM add_launcher(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    return add_unread(env, argv, true);
}

/* add_parent(Run, Pid) -> ok */
static ERL_NIF_TERM add_parent(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    return add_unread(env, argv, false);
}

/* adopt_process(Run, Pid, Parent, MFArgs) -> ok */
static ERL_NIF_TERM adopt_process(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = wn_run_of(env, argv[0]);
    (void)argc;
    if (!run || !enif_is_pid(env, argv[1]) || !enif_is_pid(env, argv[2]))
        return enif_make_badarg(env);
    wn_births_adopt(env, run, argv[1], argv[2], argv[3]);
    return am_ok;
}

/* is_held(Run, Pid) -> boolean() */
static ERL_NIF_TERM is_held(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = wn_run_of(env, argv[0]);
    ErlNifPid pid;
    (void)argc;
    if (!run || !enif_get_local_pid(env, argv[1], &pid))
        return enif_make_badarg(env);
    return wn_awaited_has(run, pid.pid) ? am_true : am_false;
}

/* add_server(Run, Pid, Always) -> boolean(). False: it is a process of the run, or the run has ended. */
static ERL_NIF_TERM add_server(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = wn_run_of(env, argv[0]);
    ErlNifPid pid;
    (void)argc;
    if (!run || !run->servers || !enif_get_local_pid(env, argv[1], &pid))
        return enif_make_badarg(env);
    return wn_servers_add(run, pid.pid, argv[2] == am_true) ? am_true : am_false;
}

/* member_of(Run, Pid) -> boolean(), or `undefined' if the run has no servers, and so does not know all its processes. */
static ERL_NIF_TERM member_of(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = wn_run_of(env, argv[0]);
    ErlNifPid pid;
    (void)argc;
    if (!run || !enif_get_local_pid(env, argv[1], &pid))
        return enif_make_badarg(env);
    return !run->servers ? am_undefined : wn_servers_is_member(run, pid.pid) ? am_true : am_false;
}

/* sweep_run(Run, Most) -> [Pid] */
static ERL_NIF_TERM sweep_run(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = wn_run_of(env, argv[0]);
    unsigned most;
    (void)argc;
    if (!run || !enif_get_uint(env, argv[1], &most))
        return enif_make_badarg(env);
    return wn_awaited_sweep(env, run, most);
}

/* forget(Run, Pid) -> ok */
static ERL_NIF_TERM forget(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = wn_run_of(env, argv[0]);
    ErlNifPid pid;
    (void)argc;
    if (!run || !enif_get_local_pid(env, argv[1], &pid))
        return enif_make_badarg(env);
    wn_exits_forget(env, run, pid.pid);
    return am_ok;
}

/* --- counts ---------------------------------------------------------------------- */

/* The map is new, so `put` cannot fail. */
static ERL_NIF_TERM map_of(ErlNifEnv *env, const ERL_NIF_TERM *keys, const int64_t *values, size_t count)
{
    ERL_NIF_TERM map = enif_make_new_map(env);
    for (size_t i = 0; i < count; i++)
        (void)enif_make_map_put(env, map, keys[i], enif_make_int64(env, values[i]), &map);
    return map;
}

/* counts_of(Run) -> map() */
static ERL_NIF_TERM counts(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = wn_run_of(env, argv[0]);
    (void)argc;
    if (!run)
        return enif_make_badarg(env);
    ERL_NIF_TERM keys[] = {am_processes, am_held, am_events, am_bytes, am_read, am_most_read};
    int64_t values[] = {atomic_load(&run->processes),
                        atomic_load(&run->held),
                        (int64_t)atomic_load(&run->hub->events),
                        (int64_t)ws_budget_used(&run->hub->budget),
                        atomic_load(&run->read),
                        atomic_load(&run->most_read)};
    return map_of(env, keys, values, 6);
}

/* called_of(Run, Pid) -> {Name | undefined, Module | undefined} */
static ERL_NIF_TERM called(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = wn_run_of(env, argv[0]);
    ErlNifPid pid;
    (void)argc;
    if (!run || !enif_get_local_pid(env, argv[1], &pid))
        return enif_make_badarg(env);
    return wn_called_find(env, &run->called, argv[1]);
}

/* seen_of(Run) -> [{Module, Function | '_', Arity | '_', Count}] */
static ERL_NIF_TERM seen(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = wn_run_of(env, argv[0]);
    (void)argc;
    if (!run)
        return enif_make_badarg(env);
    return wn_called_seen(env, &run->called);
}

/* resources() -> map() */
static ERL_NIF_TERM resources(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM keys[] = {am_runs, am_hubs, am_partitions, am_tracees, am_batches};
    int64_t values[] = {atomic_load(&wn_count_runs), atomic_load(&wn_count_hubs), atomic_load(&wn_count_partitions),
                        atomic_load(&wn_count_tracees), atomic_load(&wn_count_batches)};
    (void)argc, (void)argv;
    return map_of(env, keys, values, 5);
}

/* --- loading --------------------------------------------------------------------- */

static int set_up(ErlNifEnv *env, ErlNifResourceFlags flags)
{
    ws_alloc = enif_alloc;
    ws_free = enif_free;
    wn_atoms_make(env);
    ErlNifResourceTypeInit run = {.dtor = wn_run_destroy, .down = wn_exits_down},
                           handle = {.dtor = wn_handle_destroy, .down = wn_handle_down};
    wn_run_type = enif_open_resource_type_x(env, "witness_run", &run, flags, NULL);
    wn_handle_type = enif_open_resource_type_x(env, "witness_partition", &handle, flags, NULL);
    return wn_run_type && wn_handle_type && wn_terms_are_known(env) ? 0 : 1;
}

static int load(ErlNifEnv *env, void **data, ERL_NIF_TERM info)
{
    (void)data, (void)info;
    return set_up(env, ERL_NIF_RT_CREATE);
}

static int upgrade(ErlNifEnv *env, void **data, void **old, ERL_NIF_TERM info)
{
    (void)data, (void)old, (void)info;
    return set_up(env, ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER);
}

static ErlNifFunc functions[] = {
    {"enabled", 3, wn_enabled, 0},
    {"enabled_call", 3, wn_enabled_call, 0},
    {"enabled_send", 3, wn_enabled_message, 0},
    {"enabled_receive", 3, wn_enabled_message, 0},
    {"enabled_procs", 3, wn_enabled_procs, 0},
    {"trace", 5, wn_trace, 0},
    {"trace_send", 5, wn_trace_send, 0},
    {"trace_receive", 5, wn_trace_receive, 0},
    {"trace_procs", 5, wn_trace_procs, 0},
    {"new_run", 10, new_run, 0},
    {"central_of", 2, central_of, 0},
    {"take", 1, take, 0},
    {"take_gap", 1, take_gap, 0},
    {"unread", 1, unread, 0},
    {"narrow_to", 2, narrow_to, 0},
    {"shard_take", 2, shard_take, 0},
    {"shard_unread", 3, shard_unread, 0},
    {"shard_detach", 3, shard_detach, 0},
    {"shard_narrow", 4, shard_narrow, 0},
    {"shard_reset", 2, shard_reset, 0},
    {"add_launcher", 2, add_launcher, 0},
    {"add_parent", 2, add_parent, 0},
    {"watch", 1, watch, 0},
    {"serve", 1, serve, 0},
    {"add_server", 3, add_server, 0},
    {"member_of", 2, member_of, 0},
    {"adopt_process", 4, adopt_process, 0},
    {"is_held", 2, is_held, 0},
    {"sweep_run", 2, sweep_run, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"forget", 2, forget, 0},
    {"close_run", 1, close_run, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"tick", 2, tick, 0},
    {"counts_of", 1, counts, 0},
    {"called_of", 2, called, 0},
    {"seen_of", 1, seen, 0},
    {"resources", 0, resources, 0},
};

ERL_NIF_INIT(witness_trace_native, functions, load, NULL, upgrade, NULL)
