#include "witness_record_reports.h"

#include "witness_record_atoms.h"
#include "witness_record_terms.h"
#include "witness_record_traced.h"

wr_recorder *wr_vm_recorder;

/* The results that have a form of their own, in the order of their forms. */
#define FIXED 8u
static ERL_NIF_TERM fixed[FIXED];

void wr_reports_load(ErlNifEnv *env)
{
    const ERL_NIF_TERM forms[FIXED] = {am_true,  am_false,    am_undefined, am_ok, enif_make_list(env, 0),
                                       am_error, am_infinity, am_none};
    for (unsigned i = 0; i < FIXED; i++)
        fixed[i] = forms[i];
}

/* The process of the caller, if it has this id and something is recorded. */
static inline wr_process *caller(ErlNifEnv *env, ERL_NIF_TERM id)
{
    ErlNifPid self;
    if (!wr_is_open(&wr_vm_recorder->output) || !WR_IS_SMALL(id) || !enif_self(env, &self))
        return NULL;
    return wr_own_process(wr_vm_recorder, (uint64_t)WR_SMALL(id), self.pid);
}

static bool external(ErlNifEnv *env, ERL_NIF_TERM term, wr_external *made)
{
    return wr_external_of(&wr_vm_recorder->output, env, term, made);
}

/* A NIF may take about a millisecond. So a process that records a much larger term loses the rest of its time slice. */
#define TIME_SLICE_BYTES 1000000u

static ERL_NIF_TERM recorded(ErlNifEnv *env, wr_external *term)
{
    if (term->size > TIME_SLICE_BYTES / 100)
        (void)enif_consume_timeslice(env, term->size < TIME_SLICE_BYTES ? (int)(term->size * 100 / TIME_SLICE_BYTES) : 100);
    wr_external_release(term);
    return am_ok;
}

static ERL_NIF_TERM record_sender(wr_process *process, ERL_NIF_TERM sender)
{
    if (!WR_IS_SMALL(sender) || WR_SMALL(sender) < 1 || WR_SMALL(sender) >= (int64_t)wr_vm_recorder->most_ids)
        wr_end(&wr_vm_recorder->output, WR_SENDER);
    else
        (void)wr_from(&wr_vm_recorder->output, process, (uint32_t)WR_SMALL(sender));
    return am_ok;
}

/* took(Me, From) -> ok | calm | look | verify */
ERL_NIF_TERM wr_report_took(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_process *process = caller(env, argv[0]);
    (void)argc;
    if (!process)
        return am_ok;
    if (atomic_load_explicit(&wr_vm_recorder->output.mode, memory_order_relaxed) == WR_VERIFY)
        return am_verify;
    (void)record_sender(process, argv[1]);
    uint8_t messages = ++process->messages;
    if (messages % WR_UNTRACE_MESSAGES)
        return am_ok;
    if (messages == 0)
        return am_look;
    if (process->untraced)
        return am_ok;
    process->untraced = true;
    return am_calm;
}

/* from(Me, From) -> ok */
ERL_NIF_TERM wr_report_from(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_process *process = caller(env, argv[0]);
    (void)argc;
    return process ? record_sender(process, argv[1]) : am_ok;
}

/* content(Me, Term) -> ok */
ERL_NIF_TERM wr_report_content(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_process *process = caller(env, argv[0]);
    wr_external term;
    (void)argc;
    if (!process || !external(env, argv[1], &term))
        return am_ok;
    (void)wr_content(&wr_vm_recorder->output, process, term.bytes, term.size);
    return recorded(env, &term);
}

/* timeout(Me) -> ok */
ERL_NIF_TERM wr_report_timeout(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_process *process = caller(env, argv[0]);
    (void)argc;
    if (process)
        (void)wr_step(&wr_vm_recorder->output, process, WR_TIMEOUT);
    return am_ok;
}

/* waits(Me) -> ok. Nothing is appended: `wr_exit` reads the flag when the process has ended. */
ERL_NIF_TERM wr_report_waits(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_process *process = caller(env, argv[0]);
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
ERL_NIF_TERM wr_report_result(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_process *process = caller(env, argv[0]);
    wr_external term;
    ErlNifSInt64 number;
    uint64_t call;
    (void)argc;
    if (!process || !call_number(argv[1], &call))
        return am_ok;
    process->spawning = false;
    if (WR_IS_SMALL(argv[2])) {
        (void)wr_result_number(&wr_vm_recorder->output, process, call, WR_SMALL(argv[2]));
        return am_ok;
    }
    for (unsigned i = 0; i < FIXED; i++) {
        if (argv[2] == fixed[i]) {
            (void)wr_result_fixed(&wr_vm_recorder->output, process, call, WR_FORM_FIXED + i);
            return am_ok;
        }
    }
    if (enif_get_int64(env, argv[2], &number)) {
        (void)wr_result_number(&wr_vm_recorder->output, process, call, number);
        return am_ok;
    }
    if (!external(env, argv[2], &term))
        return am_ok;
    (void)wr_result_data(&wr_vm_recorder->output, process, call, term.bytes, term.size);
    return recorded(env, &term);
}

/* raise(Me, Call, {Class, Reason}) -> ok. If it was a spawn, there is no child. */
ERL_NIF_TERM wr_report_raise(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_process *process = caller(env, argv[0]);
    wr_external term;
    uint64_t call;
    (void)argc;
    if (!process || !call_number(argv[1], &call) || !external(env, argv[2], &term))
        return am_ok;
    process->spawning = false;
    (void)wr_raise(&wr_vm_recorder->output, process, call, term.bytes, term.size);
    return recorded(env, &term);
}

/* named(Me, To) -> ok. To: an id, or the process that has the name. */
ERL_NIF_TERM wr_report_named(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_process *process = caller(env, argv[0]);
    ErlNifPid pid;
    uint32_t to = 0;
    (void)argc;
    if (!process)
        return am_ok;
    if (WR_IS_SMALL(argv[1]) && WR_SMALL(argv[1]) > 0 && WR_SMALL(argv[1]) < (int64_t)wr_vm_recorder->most_ids)
        to = (uint32_t)WR_SMALL(argv[1]);
    else if (enif_get_local_pid(env, argv[1], &pid))
        to = wr_identify(wr_vm_recorder, pid.pid);
    (void)wr_named(&wr_vm_recorder->output, process, to);
    return am_ok;
}

static ERL_NIF_TERM marked(ErlNifEnv *env, wr_process *process, wr_mark mark, ERL_NIF_TERM what)
{
    wr_external term;
    if (!external(env, what, &term))
        return am_ok;
    (void)wr_marked(&wr_vm_recorder->output, process, mark, term.bytes, term.size);
    return recorded(env, &term);
}

/* sent(Me, To, Msg) -> ok */
ERL_NIF_TERM wr_report_sent(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_process *process = caller(env, argv[0]);
    (void)argc;
    return process ? marked(env, process, WR_SENT, enif_make_tuple2(env, argv[1], argv[2])) : am_ok;
}

/* contents(Me, Msg) -> ok */
ERL_NIF_TERM wr_report_contents(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_process *process = caller(env, argv[0]);
    (void)argc;
    return process ? marked(env, process, WR_CONTENTS, argv[1]) : am_ok;
}

/* hash(Me, Msg) -> ok */
ERL_NIF_TERM wr_report_hash(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_process *process = caller(env, argv[0]);
    (void)argc;
    if (process)
        (void)wr_hash(&wr_vm_recorder->output, process, wr_hash_of(env, argv[1]));
    return am_ok;
}

/*
 * The order of calls on memory that processes share. A number grows when a change begins, and when it has ended. A call that only
 * reads has the number when it begins: the changes that had ended by then were before it.
 */

/* reads(Me) -> ok. Before the call; its result is the next entry. */
ERL_NIF_TERM wr_report_reads(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wr_process *process = caller(env, argv[0]);
    (void)argc;
    if (process) {
        uint64_t now = atomic_load(&wr_vm_recorder->shared);
        (void)wr_ordered(&wr_vm_recorder->output, process, now, now);
    }
    return am_ok;
}

/* changes() -> Begin. Before the call. */
ERL_NIF_TERM wr_report_changes(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    return enif_make_uint64(env, atomic_fetch_add(&wr_vm_recorder->shared, 1) + 1);
}

/* changed(Me, Begin) -> ok. After the call, and before its result. */
ERL_NIF_TERM wr_report_changed(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    uint64_t end = atomic_fetch_add(&wr_vm_recorder->shared, 1) + 1;
    wr_process *process = caller(env, argv[0]);
    (void)argc;
    if (process && WR_IS_SMALL(argv[1]) && WR_SMALL(argv[1]) >= 0 && (uint64_t)WR_SMALL(argv[1]) <= end)
        (void)wr_ordered(&wr_vm_recorder->output, process, (uint64_t)WR_SMALL(argv[1]), end);
    return am_ok;
}
