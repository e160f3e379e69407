/*
 * The functions of `witness_record_native`: their table, their arguments and results, the tracer's callbacks, and what is set up
 * when they are loaded. What recorded processes call is in witness_record_reports.c.
 */
#include "witness_record_atoms.h"
#include "witness_record_births.h"
#include "witness_record_reports.h"
#include "witness_record_terms.h"
#include "witness_record_traced.h"
#include "witness_record_writer.h"
#include "witness_shared_memory.h"

/* --- identity -------------------------------------------------------------------- */

/* identify() -> Id */
static ERL_NIF_TERM identify_self(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifPid self;
    (void)argc, (void)argv;
    return enif_make_uint(env, enif_self(env, &self) ? wr_identify(wr_vm_recorder, self.pid) : 0);
}

/* identify(pid()) -> Id */
static ERL_NIF_TERM identify(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifPid pid;
    (void)argc;
    return enif_make_uint(env, enif_get_local_pid(env, argv[0], &pid) ? wr_identify(wr_vm_recorder, pid.pid) : 0);
}

/* child() -> Id */
static ERL_NIF_TERM child(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifPid self;
    (void)argc, (void)argv;
    return enif_make_uint(env, enif_self(env, &self) ? wr_child(wr_vm_recorder, self.pid) : 0);
}

/* unborn() -> ok */
static ERL_NIF_TERM unborn(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifPid self;
    (void)argc, (void)argv;
    if (enif_self(env, &self))
        wr_unborn(wr_vm_recorder, self.pid);
    return am_ok;
}

/* --- the tracer's callbacks ---------------------------------------------------------- */

/*
 * The VM calls them in the context of the tracee, which cannot go on before they return. Two callbacks of one tracee never
 * run at the same time. `spawned` comes within the parent's call, while the child can neither run nor receive.
 */
static ERL_NIF_TERM enabled(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc, (void)argv;
    return am_trace;
}

static ERL_NIF_TERM enabled_procs(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc;
    return argv[0] == am_spawned || argv[0] == am_exit ? am_trace : am_discard;
}

/* trace_procs(exit, State, Pid, Reason, Options), trace_procs(spawned, State, Pid, Parent, Options) */
static ERL_NIF_TERM trace_procs(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    if (argv[0] == am_exit)
        wr_births_ended(wr_vm_recorder, env, argv[2], argv[3]);
    else if (argv[0] == am_spawned)
        wr_births_spawned(wr_vm_recorder, env, argv[2], argv[3], argv[4]);
    return am_ok;
}

/* ended(pid(), Reason) -> ok. Called by a process that monitors the other one, which the VM does not report. */
static ERL_NIF_TERM ended(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifPid pid;
    (void)argc;
    if (enif_get_local_pid(env, argv[0], &pid))
        wr_births_ended(wr_vm_recorder, env, pid.pid, argv[1]);
    return am_ok;
}

/* trace_receive('receive', State, Pid, Msg, Options) */
static ERL_NIF_TERM trace_receive(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    wr_traced_receive(wr_vm_recorder, env, argv[2], argv[3], argv[4]);
    return am_ok;
}

/* trace_send(send | send_to_non_existing_process, State, Pid, Msg, Options) */
static ERL_NIF_TERM trace_send(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    wr_traced_send(wr_vm_recorder, env, argv[2], argv[3], argv[4]);
    return am_ok;
}

static ERL_NIF_TERM trace(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc, (void)argv;
    return am_ok;
}

/* --- start and end ------------------------------------------------------------------- */

static int64_t monotonic(void)
{
    return enif_monotonic_time(ERL_NIF_NSEC);
}

/*
 * open(Budget, Order, FullIds, Times, Slots) -> ok | running | memory. No other thread runs code of the recorder, except for a
 * flush.
 */
static ERL_NIF_TERM open_recorder(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifUInt64 budget, slots;
    unsigned order;
    (void)argc;
    if (!enif_get_uint64(env, argv[0], &budget) || !enif_get_uint(env, argv[1], &order) || order > WR_MOST_ORDER || order < 64 ||
        !enif_get_uint64(env, argv[4], &slots))
        return enif_make_badarg(env);
    if (wr_is_open(&wr_vm_recorder->output))
        return am_running;
    wr_clock *clock = argv[3] == am_true ? monotonic : NULL;
    return wr_recorder_open(wr_vm_recorder, budget, order, argv[2] == am_true, clock, slots) ? am_ok : am_memory;
}

/* close() -> the time, or none if entries have none: nothing is appended any more */
static ERL_NIF_TERM close_recorder(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_output *output = &wr_vm_recorder->output;
    (void)argc, (void)argv;
    wr_end(output, WR_STOPPED);
    return wr_has_times(output) ? enif_make_uint64(env, wr_now(output)) : am_none;
}

/* clear() -> ok. No other thread runs code of the recorder, except for a flush. */
static ERL_NIF_TERM clear(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc, (void)argv;
    wr_recorder_clear(wr_vm_recorder);
    return am_ok;
}

/* verify(on) -> ok */
static ERL_NIF_TERM verify(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc, (void)argv;
    wr_verify(&wr_vm_recorder->output);
    return am_ok;
}

/* traced(Contents, Hash, Adopting, Node) -> ok | memory. Before any process is traced. */
static ERL_NIF_TERM traced(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifPid pid;
    (void)argc;
    wr_traced_options(argv[0] == am_true, argv[1] == am_true, argv[3]);
    if (enif_get_local_pid(env, argv[2], &pid) && !wr_adopt(wr_vm_recorder, pid.pid))
        return am_memory;
    return am_ok;
}

/* --- the writer ------------------------------------------------------------------ */

/* take(Max) -> {[{processes | data | order, binary()}], running | {ended, Reason}} */
static ERL_NIF_TERM take(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    unsigned most;
    (void)argc;
    return enif_get_uint(env, argv[0], &most) ? wr_writer_take(env, &wr_vm_recorder->output, most) : enif_make_badarg(env);
}

/* flush() -> ok */
static ERL_NIF_TERM flush(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc, (void)argv;
    wr_flush(wr_vm_recorder);
    return am_ok;
}

/* info() -> map() */
static ERL_NIF_TERM info(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return wr_writer_info(env, wr_vm_recorder);
}

/* --- loading --------------------------------------------------------------------- */

static int set_up(ErlNifEnv *env, ErlNifResourceFlags flags)
{
    ws_alloc = enif_alloc;
    ws_free = enif_free;
    wr_atoms_make(env);
    wr_reports_load(env);
    return wr_writer_load(env, flags) && wr_terms_are_known(env) ? 0 : 1;
}

static int load(ErlNifEnv *env, void **data, ERL_NIF_TERM term)
{
    (void)term;
    if (set_up(env, ERL_NIF_RT_CREATE) != 0)
        return 1;
    wr_recorder *made = enif_alloc(sizeof *made);
    if (!made || !wr_recorder_init(made, UINT32_MAX - UINT32_MAX % WR_LEAF_SIZE)) {
        if (made)
            enif_free(made);
        return 1;
    }
    wr_vm_recorder = made;
    *data = made;
    return 0;
}

/* The new version continues the recording. */
static int upgrade(ErlNifEnv *env, void **data, void **old, ERL_NIF_TERM term)
{
    (void)term;
    if (set_up(env, ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER) != 0)
        return 1;
    wr_vm_recorder = *old;
    if (wr_has_times(&wr_vm_recorder->output))
        wr_vm_recorder->output.clock = monotonic; /* the old version may be unloaded */
    *data = *old;
    *old = NULL;
    return 0;
}

static void unload(ErlNifEnv *env, void *data)
{
    (void)env;
    if (data) {
        wr_recorder_free(data);
        enif_free(data);
    }
}

static ErlNifFunc functions[] = {
    {"took", 2, wr_report_took, 0},
    {"from", 2, wr_report_from, 0},
    {"content", 2, wr_report_content, 0},
    {"timeout", 1, wr_report_timeout, 0},
    {"waits", 1, wr_report_waits, 0},
    {"result", 3, wr_report_result, 0},
    {"raise", 3, wr_report_raise, 0},
    {"named", 2, wr_report_named, 0},
    {"sent", 3, wr_report_sent, 0},
    {"contents", 2, wr_report_contents, 0},
    {"hash", 2, wr_report_hash, 0},
    {"reads", 1, wr_report_reads, 0},
    {"changes", 0, wr_report_changes, 0},
    {"changed", 2, wr_report_changed, 0},
    {"identify", 0, identify_self, 0},
    {"identify", 1, identify, 0},
    {"child", 0, child, 0},
    {"unborn", 0, unborn, 0},
    {"ended", 2, ended, 0},
    {"enabled", 3, enabled, 0},
    {"enabled_procs", 3, enabled_procs, 0},
    {"trace", 5, trace, 0},
    {"trace_receive", 5, trace_receive, 0},
    {"trace_send", 5, trace_send, 0},
    {"traced", 4, traced, 0},
    {"trace_procs", 5, trace_procs, 0},
    {"open", 5, open_recorder, 0},
    {"close", 0, close_recorder, 0},
    {"clear", 0, clear, 0},
    {"verify", 1, verify, 0},
    {"take", 1, take, 0},
    {"flush", 0, flush, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"info", 0, info, 0},
};

ERL_NIF_INIT(witness_record_native, functions, load, NULL, upgrade, unload)
