/* The atoms of the native tracer, each named once. Set by `load`, then only read. They are the same in every environment. */
#ifndef WITNESS_NATIVE_ATOMS_H
#define WITNESS_NATIVE_ATOMS_H

#include <erl_nif.h>

/* clang-format off */
#define WN_ATOMS(X)                                                                                                     \
    X(EXIT) X(apply) X(args) X(batches) X(birth) X(bytes) X(call) X(closed) X(complete) X(discard) X(empty) X(ended)    \
    X(erlang) X(erts_internal) X(events) X(exit) X(extra) X(false) X(fork) X(function) X(gap) X(gen) X(gen_event)       \
    X(held) X(hidden) X(hubs) X(init) X(init_it) X(init_p) X(lost) X(match_spec_result) X(memory) X(message_size)       \
    X(module) X(most_read) X(nil) X(ok) X(open) X(overflow) X(partitions) X(proc_lib) X(process_flag) X(processes)      \
    X(read) X(recv) X(register) X(return) X(return_from) X(runs) X(same) X(send) X(sensitive) X(spawn) X(spawn_init)    \
    X(spawned) X(stopped) X(trace) X(tracees) X(true) X(undefined) X(unknown) X(witness_batch) X(witness_data)          \
    X(witness_wake)
/* clang-format on */

/* Hidden in the library, so that they are read without an indirection. */
#pragma GCC visibility push(hidden)
#define WN_DECLARE(name) extern ERL_NIF_TERM am_##name;
WN_ATOMS(WN_DECLARE)
extern ERL_NIF_TERM am_any, am_gen_call;
#undef WN_DECLARE
#pragma GCC visibility pop

void wn_atoms_make(ErlNifEnv *env);

#endif
