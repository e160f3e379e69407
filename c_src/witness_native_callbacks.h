/*
 * The tracer's callbacks. The VM calls them in the context of the tracee, which cannot go on before they return. Two
 * callbacks of one tracee never run at the same time. The parent's `spawn` and the child's `spawned` come before any other
 * callback of the child, while the child can neither run nor receive.
 */
#ifndef WITNESS_NATIVE_CALLBACKS_H
#define WITNESS_NATIVE_CALLBACKS_H

#include <erl_nif.h>

/* Which events the VM is to report: (Kind, Run, Process) -> trace | discard */
ERL_NIF_TERM wn_enabled(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wn_enabled_call(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wn_enabled_message(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wn_enabled_procs(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

/* The events: (Kind, Run, Process, Term, Options) -> ok */
ERL_NIF_TERM wn_trace(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wn_trace_send(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wn_trace_receive(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wn_trace_procs(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
