/*
 * What binds the recorder to the VM: terms, processes, and the tracer's callbacks. The functions that processes call to
 * record what they do never raise: a call for an id that is not the caller's own does nothing.
 */
#include "witness_record_traced.h"

#include <string.h>

#define WR_ATOMS(X)                                                                                                                \
    X(born)                                                                                                                        \
    X(budget) X(bytes) X(calm) X(data) X(discard) X(ended) X(error) X(exit) X(extra) X(false) X(ids) X(infinity) X(look) X(memory) \
        X(none) X(ok) X(order) X(processes) X(running) X(sender) X(spawned) X(state) X(stopped) X(trace) X(true) X(first)          \
            X(undefined) X(used) X(verify) X(witness_record_runtime)

#define WR_DEFINE(name) static ERL_NIF_TERM am_##name;
WR_ATOMS(WR_DEFINE)
#undef WR_DEFINE

/* The results that have a form of their own, in the order of their forms. */
#define WR_FIXED 8
static ERL_NIF_TERM fixed[WR_FIXED];

/* There is one in a VM. It outlives the module's versions, which pass it on. */
static wr_recorder *the;
static ErlNifResourceType *block_type;

/* --- terms ----------------------------------------------------------------------- */

/* The process of the caller, if it has this id and something is recorded. */
static inline wr_process *mine(ErlNifEnv *env, ERL_NIF_TERM id)
{
    ErlNifPid self;
    if (!wr_is_open(&the->output) || !WR_IS_SMALL(id) || !enif_self(env, &self))
        return NULL;
    return wr_mine(the, (uint64_t)WR_SMALL(id), self.pid);
}

/* A NIF may take about a millisecond. A process that records a much larger term loses the rest of its time slice. */
static bool external(ErlNifEnv *env, ERL_NIF_TERM term, wr_external *made)
{
    return wr_external_recorded(&the->output, env, term, made);
}

bool wr_external_recorded(wr_output *output, ErlNifEnv *env, ERL_NIF_TERM term, wr_external *made)
{
    if (wr_external_of(env, term, made))
        return true;
    wr_end(output, WR_MEMORY);
    return false;
}

#define TURN_BYTES 1000000u

static ERL_NIF_TERM recorded(ErlNifEnv *env, wr_external *term)
{
    if (term->size > TURN_BYTES / 100)
        enif_consume_timeslice(env, term->size < TURN_BYTES ? (int)(term->size * 100 / TURN_BYTES) : 100);
    wr_external_release(term);
    return am_ok;
}

/* --- what processes do ------------------------------------------------------------ */

static ERL_NIF_TERM sender_was(wr_process *process, ERL_NIF_TERM sender)
{
    if (!WR_IS_SMALL(sender) || WR_SMALL(sender) < 1 || WR_SMALL(sender) >= (int64_t)the->most_ids)
        wr_end(&the->output, WR_SENDER);
    else
        (void)wr_from(&the->output, process, (uint32_t)WR_SMALL(sender));
    return am_ok;
}

/* took(Me, From) -> ok | calm | look | verify */
static ERL_NIF_TERM took(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_process *process = mine(env, argv[0]);
    (void)argc;
    if (!process)
        return am_ok;
    if (atomic_load_explicit(&the->output.mode, memory_order_relaxed) == WR_VERIFY)
        return am_verify;
    (void)sender_was(process, argv[1]);
    uint8_t messages = ++process->messages;
    if (messages % WR_CALM)
        return am_ok;
    if (messages == 0)
        return am_look;
    if (process->calm)
        return am_ok;
    process->calm = true;
    return am_calm;
}

/* from(Me, From) -> ok */
static ERL_NIF_TERM from(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_process *process = mine(env, argv[0]);
    (void)argc;
    return process ? sender_was(process, argv[1]) : am_ok;
}

/* content(Me, Term) -> ok */
static ERL_NIF_TERM content(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_process *process = mine(env, argv[0]);
    wr_external term;
    (void)argc;
    if (!process || !external(env, argv[1], &term))
        return am_ok;
    (void)wr_content(&the->output, process, term.bytes, term.size);
    return recorded(env, &term);
}

/* timeout(Me) -> ok */
static ERL_NIF_TERM timed_out(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_process *process = mine(env, argv[0]);
    (void)argc;
    if (process)
        (void)wr_step(&the->output, process, WR_TIMEOUT);
    return am_ok;
}

/* waits(Me) -> ok. Nothing is appended: `wr_exit` reads the flag when the process has ended. */
static ERL_NIF_TERM waits(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_process *process = mine(env, argv[0]);
    (void)argc;
    if (process)
        process->waits = true;
    return am_ok;
}

static bool call_number(ERL_NIF_TERM term, uint64_t *call)
{
    *call = (uint64_t)WR_SMALL(term);
    return WR_IS_SMALL(term) && WR_SMALL(term) >= 0;
}

/* result(Me, Call, Term) -> ok. If this is the result of a spawn, the child is there, or will never be. */
static ERL_NIF_TERM result(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_process *process = mine(env, argv[0]);
    wr_external term;
    ErlNifSInt64 number;
    uint64_t call;
    (void)argc;
    if (!process || !call_number(argv[1], &call))
        return am_ok;
    process->spawning = false;
    if (WR_IS_SMALL(argv[2])) {
        (void)wr_result_number(&the->output, process, call, WR_SMALL(argv[2]));
        return am_ok;
    }
    for (unsigned i = 0; i < WR_FIXED; i++) {
        if (argv[2] == fixed[i]) {
            (void)wr_result_fixed(&the->output, process, call, WR_FORM_FIXED + i);
            return am_ok;
        }
    }
    if (enif_get_int64(env, argv[2], &number)) {
        (void)wr_result_number(&the->output, process, call, number);
        return am_ok;
    }
    if (!external(env, argv[2], &term))
        return am_ok;
    (void)wr_result_data(&the->output, process, call, term.bytes, term.size);
    return recorded(env, &term);
}

/* raise(Me, Call, {Class, Reason}) -> ok. If it was a spawn, there is no child. */
static ERL_NIF_TERM raise(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_process *process = mine(env, argv[0]);
    wr_external term;
    uint64_t call;
    (void)argc;
    if (!process || !call_number(argv[1], &call) || !external(env, argv[2], &term))
        return am_ok;
    process->spawning = false;
    (void)wr_raise(&the->output, process, call, term.bytes, term.size);
    return recorded(env, &term);
}

/* named(Me, To) -> ok. To: an id, or the process that has the name. */
static ERL_NIF_TERM named(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_process *process = mine(env, argv[0]);
    ErlNifPid pid;
    uint32_t to = 0;
    (void)argc;
    if (!process)
        return am_ok;
    if (WR_IS_SMALL(argv[1]) && WR_SMALL(argv[1]) > 0 && WR_SMALL(argv[1]) < (int64_t)the->most_ids)
        to = (uint32_t)WR_SMALL(argv[1]);
    else if (enif_get_local_pid(env, argv[1], &pid))
        to = wr_identify(the, pid.pid);
    (void)wr_named(&the->output, process, to);
    return am_ok;
}

static ERL_NIF_TERM marked(ErlNifEnv *env, wr_process *process, wr_mark mark, ERL_NIF_TERM what)
{
    wr_external term;
    if (!external(env, what, &term))
        return am_ok;
    (void)wr_marked(&the->output, process, mark, term.bytes, term.size);
    return recorded(env, &term);
}

/* sent(Me, To, Msg) -> ok */
static ERL_NIF_TERM sent(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_process *process = mine(env, argv[0]);
    (void)argc;
    return process ? marked(env, process, WR_SENT, enif_make_tuple2(env, argv[1], argv[2])) : am_ok;
}

/* contents(Me, Msg) -> ok */
static ERL_NIF_TERM contents(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_process *process = mine(env, argv[0]);
    (void)argc;
    return process ? marked(env, process, WR_CONTENTS, argv[1]) : am_ok;
}

/* hash(Me, Msg) -> ok */
static ERL_NIF_TERM hash(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_process *process = mine(env, argv[0]);
    (void)argc;
    if (process)
        (void)wr_hash(&the->output, process, wr_hash_of(env, argv[1]));
    return am_ok;
}

/* --- identity -------------------------------------------------------------------- */

/* identify() -> Id */
static ERL_NIF_TERM identify_self(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifPid self;
    (void)argc, (void)argv;
    return enif_make_uint(env, enif_self(env, &self) ? wr_identify(the, self.pid) : 0);
}

/* identify(pid()) -> Id */
static ERL_NIF_TERM identify(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifPid pid;
    (void)argc;
    return enif_make_uint(env, enif_get_local_pid(env, argv[0], &pid) ? wr_identify(the, pid.pid) : 0);
}

/* child() -> Id */
static ERL_NIF_TERM child(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifPid self;
    (void)argc, (void)argv;
    return enif_make_uint(env, enif_self(env, &self) ? wr_child(the, self.pid) : 0);
}

/* unborn() -> ok */
static ERL_NIF_TERM unborn(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifPid self;
    (void)argc, (void)argv;
    if (enif_self(env, &self))
        wr_unborn(the, self.pid);
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

/*
 * If a process was spawned with larger terms, only the function and the number of arguments are recorded. A replay takes the
 * arguments from the parent. If the parent is not recorded, they are nowhere else, so they are kept whole.
 */
#define MOST_SPAWNED 4096u

/* If a process begins with a recorded call, it begins in witness_record_runtime:first/3, with that call as arguments. */
static ERL_NIF_TERM meant(ErlNifEnv *env, ERL_NIF_TERM mfa)
{
    const ERL_NIF_TERM *elements;
    ERL_NIF_TERM part[3], rest;
    int size;
    if (!enif_get_tuple(env, mfa, &size, &elements) || size != 3 || elements[0] != am_witness_record_runtime ||
        elements[1] != am_first)
        return mfa;
    rest = elements[2];
    for (int i = 0; i < 3; i++)
        if (!enif_get_list_cell(env, rest, &part[i], &rest))
            return mfa;
    return enif_make_tuple3(env, part[0], part[1], part[2]);
}

/* {Pid, {Module, Function, Arguments | Arity}}. The external form of a part begins with its version, which is left out. */
static void spawned(ErlNifEnv *env, ERL_NIF_TERM pid, ERL_NIF_TERM parent, ERL_NIF_TERM mfa)
{
    static const uint8_t pair[] = {131, 104, 2}, triple[] = {104, 3};
    wr_external who, what, module, function;
    const ERL_NIF_TERM *elements;
    int size;
    unsigned arity;
    module.is_far = function.is_far = false;
    if (!external(env, pid, &who))
        return;
    if (!external(env, mfa, &what)) {
        wr_external_release(&who);
        return;
    }
    wr_piece pieces[6] = {{pair, sizeof pair}, {who.bytes + 1, who.size - 1}, {what.bytes + 1, what.size - 1}};
    uint8_t number[5] = {98};
    unsigned count = 3;
    bool shortened = what.size > MOST_SPAWNED && wr_tracee(the, parent)->id != 0 && enif_get_tuple(env, mfa, &size, &elements) &&
                     size == 3 && enif_get_list_length(env, elements[2], &arity) && external(env, elements[0], &module) &&
                     external(env, elements[1], &function);
    if (shortened) {
        for (int i = 0; i < 4; i++)
            number[1 + i] = (uint8_t)(arity >> (24 - 8 * i));
        pieces[2] = (wr_piece){triple, sizeof triple};
        pieces[3] = (wr_piece){module.bytes + 1, module.size - 1};
        pieces[4] = (wr_piece){function.bytes + 1, function.size - 1};
        pieces[5] = (wr_piece){number, sizeof number};
        count = 6;
    }
    wr_born(the, parent, pid, pieces, count);
    wr_external_release(&who);
    wr_external_release(&what);
    wr_external_release(&module);
    wr_external_release(&function);
}

static void exited(ErlNifEnv *env, ERL_NIF_TERM pid, ERL_NIF_TERM reason)
{
    wr_process *process = wr_remove(the, pid);
    wr_external term;
    if (!process)
        return;
    if (process->id && wr_is_open(&the->output) && external(env, reason, &term)) {
        wr_gone(the, process, term.bytes, term.size);
        wr_external_release(&term);
    } else {
        wr_gone(the, process, NULL, 0);
    }
}

/* trace_procs(exit, State, Pid, Reason, Options), trace_procs(spawned, State, Pid, Parent, Options) */
static ERL_NIF_TERM trace_procs(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM mfa = am_undefined;
    (void)argc;
    if (argv[0] == am_exit) {
        exited(env, argv[2], argv[3]);
    } else if (argv[0] == am_spawned && wr_expects(the, argv[3], argv[2])) {
        enif_get_map_value(env, argv[4], am_extra, &mfa);
        spawned(env, argv[2], argv[3], meant(env, mfa));
    }
    return am_ok;
}

/* ended(pid(), Reason) -> ok. Called by a process that monitors the other one, which the VM does not report. */
static ERL_NIF_TERM ended(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifPid pid;
    (void)argc;
    if (enif_get_local_pid(env, argv[0], &pid))
        exited(env, pid.pid, argv[1]);
    return am_ok;
}

/* trace_receive('receive', State, Pid, Msg, Options) */
static ERL_NIF_TERM trace_receive(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    wr_traced_receive(the, env, argv[2], argv[3], argv[4]);
    return am_ok;
}

/* trace_send(send | send_to_non_existing_process, State, Pid, Msg, Options) */
static ERL_NIF_TERM trace_send(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    wr_traced_send(the, env, argv[2], argv[3], argv[4]);
    return am_ok;
}

static ERL_NIF_TERM trace(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc, (void)argv;
    return am_ok;
}

/* --- start and end ------------------------------------------------------------------- */

/*
 * open(Budget, Order, FullIds, Slots) -> ok | running | memory. No other thread runs code of the recorder, except for a
 * flush.
 */
static ERL_NIF_TERM open_recorder(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifUInt64 budget, slots;
    unsigned order;
    (void)argc;
    if (!enif_get_uint64(env, argv[0], &budget) || !enif_get_uint(env, argv[1], &order) || order > WR_MOST_ORDER || order < 64 ||
        !enif_get_uint64(env, argv[3], &slots))
        return enif_make_badarg(env);
    if (wr_is_open(&the->output))
        return am_running;
    return wr_recorder_open(the, budget, order, argv[2] == am_true, slots) ? am_ok : am_memory;
}

/* close() -> ok: nothing is appended any more */
static ERL_NIF_TERM close_recorder(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc, (void)argv;
    wr_end(&the->output, WR_STOPPED);
    return am_ok;
}

/* clear() -> ok. No other thread runs code of the recorder, except for a flush. */
static ERL_NIF_TERM clear(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc, (void)argv;
    wr_recorder_clear(the);
    return am_ok;
}

/* verify(on) -> ok */
static ERL_NIF_TERM verify(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc, (void)argv;
    wr_verify(&the->output);
    return am_ok;
}

/* traced(Contents, Hash, Adopting, Node) -> ok | memory. Before any process is traced. */
static ERL_NIF_TERM traced(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifPid pid;
    (void)argc;
    wr_traced_options(argv[0] == am_true, argv[1] == am_true, argv[3]);
    if (enif_get_local_pid(env, argv[2], &pid) && !wr_adopt(the, pid.pid))
        return am_memory;
    return am_ok;
}

/* --- the writer ------------------------------------------------------------------ */

static void block_gone(ErlNifEnv *env, void *object)
{
    (void)env;
    wr_free(*(wr_block **)object);
}

/* A block that is nearly empty is copied, so that it does not keep its memory until the binary is collected. */
#define SMALL_PART 8u

static ERL_NIF_TERM binary_of(ErlNifEnv *env, wr_block *block)
{
    ERL_NIF_TERM binary;
    wr_block **object = block->used < block->size / SMALL_PART ? NULL : enif_alloc_resource(block_type, sizeof *object);
    if (object) {
        *object = block;
        binary = enif_make_resource_binary(env, object, block->bytes, block->used);
        enif_release_resource(object);
    } else {
        memcpy(enif_make_new_binary(env, block->used, &binary), block->bytes, block->used);
        wr_free(block);
    }
    return binary;
}

static ERL_NIF_TERM state(ErlNifEnv *env)
{
    const ERL_NIF_TERM reasons[] = {[WR_RUNNING] = am_running, [WR_BUDGET] = am_budget, [WR_MEMORY] = am_memory,
                                    [WR_IDS] = am_ids,         [WR_SENDER] = am_sender, [WR_STOPPED] = am_stopped};
    wr_reason reason = wr_ended(&the->output);
    return reason == WR_RUNNING ? am_running : enif_make_tuple2(env, am_ended, reasons[reason]);
}

/* take(Max) -> {[{processes | data | order, binary()}], running | {ended, Reason}} */
static ERL_NIF_TERM take(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    const ERL_NIF_TERM names[] = {[WR_PROCESSES] = am_processes, [WR_DATA] = am_data, [WR_ORDER] = am_order};
    unsigned most;
    (void)argc;
    if (!enif_get_uint(env, argv[0], &most))
        return enif_make_badarg(env);
    ERL_NIF_TERM list = enif_make_list(env, 0), in_order, was = state(env);
    wr_taking taking = wr_take_begin(&the->output, most);
    wr_block *block;
    wr_name name;
    while ((block = wr_take_next(&the->output, &taking, &name)))
        list = enif_make_list_cell(env, enif_make_tuple2(env, names[name], binary_of(env, block)), list);
    enif_make_reverse_list(env, list, &in_order);
    return enif_make_tuple2(env, in_order, was);
}

/* flush() -> ok */
static ERL_NIF_TERM flush(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env, (void)argc, (void)argv;
    wr_flush(the);
    return am_ok;
}

/* info() -> map() */
static ERL_NIF_TERM info(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_output *output = &the->output;
    ERL_NIF_TERM map = enif_make_new_map(env), bytes = enif_make_new_map(env);
    (void)argc, (void)argv;
    enif_make_map_put(env, bytes, am_order, enif_make_uint64(env, wr_stream_bytes(output, WR_ORDER)), &bytes);
    enif_make_map_put(env, bytes, am_data, enif_make_uint64(env, wr_stream_bytes(output, WR_DATA)), &bytes);
    enif_make_map_put(env, bytes, am_processes, enif_make_uint64(env, wr_stream_bytes(output, WR_PROCESSES)), &bytes);
    enif_make_map_put(env, map, am_bytes, bytes, &map);
    enif_make_map_put(env, map, am_state, state(env), &map);
    enif_make_map_put(env, map, am_verify, atomic_load(&output->mode) == WR_VERIFY ? am_true : am_false, &map);
    enif_make_map_put(env, map, am_used, enif_make_uint64(env, wn_budget_used(&output->budget)), &map);
    enif_make_map_put(env, map, am_budget, enif_make_uint64(env, output->budget.limit), &map);
    enif_make_map_put(env, map, am_born, enif_make_uint64(env, atomic_load(&the->born)), &map);
    enif_make_map_put(env, map, am_ended, enif_make_uint64(env, atomic_load(&the->ended)), &map);
    return map;
}

/* --- loading --------------------------------------------------------------------- */

static int set_up(ErlNifEnv *env, ErlNifResourceFlags flags)
{
    wr_alloc = enif_alloc;
    wr_free = enif_free;
#define WR_MAKE(name) am_##name = enif_make_atom(env, #name);
    WR_ATOMS(WR_MAKE)
#undef WR_MAKE
    const ERL_NIF_TERM forms[WR_FIXED] = {am_true,  am_false,    am_undefined, am_ok, enif_make_list(env, 0),
                                          am_error, am_infinity, am_none};
    memcpy(fixed, forms, sizeof fixed);
    wr_traced_set_up(env);
    ErlNifResourceTypeInit block = {.dtor = block_gone};
    block_type = enif_open_resource_type_x(env, "witness_record_block", &block, flags, NULL);
    return block_type && wr_terms_are_known(env) ? 0 : 1;
}

static int load(ErlNifEnv *env, void **data, ERL_NIF_TERM term)
{
    (void)term;
    if (set_up(env, ERL_NIF_RT_CREATE) != 0)
        return 1;
    wr_recorder *made = enif_alloc(sizeof *made);
    if (!made || !wr_recorder_init(made, UINT32_MAX - UINT32_MAX % WR_LEAF_SIZE)) {
        enif_free(made);
        return 1;
    }
    the = made;
    *data = made;
    return 0;
}

/* The new version continues the recording. */
static int upgrade(ErlNifEnv *env, void **data, void **old, ERL_NIF_TERM term)
{
    (void)term;
    if (set_up(env, ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER) != 0)
        return 1;
    the = *old;
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
    {"took", 2, took, 0},
    {"from", 2, from, 0},
    {"content", 2, content, 0},
    {"timeout", 1, timed_out, 0},
    {"waits", 1, waits, 0},
    {"result", 3, result, 0},
    {"raise", 3, raise, 0},
    {"named", 2, named, 0},
    {"sent", 3, sent, 0},
    {"contents", 2, contents, 0},
    {"hash", 2, hash, 0},
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
    {"open", 4, open_recorder, 0},
    {"close", 0, close_recorder, 0},
    {"clear", 0, clear, 0},
    {"verify", 1, verify, 0},
    {"take", 1, take, 0},
    {"flush", 0, flush, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"info", 0, info, 0},
};

ERL_NIF_INIT(witness_record_native, functions, load, NULL, upgrade, unload)
