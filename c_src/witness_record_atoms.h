/* The atoms of the native recorder, each named once. Set by `load`, then only read. They are the same in every environment. */
#ifndef WITNESS_RECORD_ATOMS_H
#define WITNESS_RECORD_ATOMS_H

#include <erl_nif.h>

/* clang-format off */
#define WR_ATOMS(X)                                                                                                    \
    X(born) X(budget) X(bytes) X(calm) X(data) X(discard) X(ended) X(error) X(exit) X(expired) X(extra) X(false)       \
    X(first) X(ids) X(infinity) X(look) X(match_spec_result) X(memory) X(none) X(ok) X(order) X(processes) X(running)  \
    X(sender) X(spawn_reply) X(spawned) X(state) X(stopped) X(trace) X(true) X(undefined) X(used) X(verify)            \
    X(witness_record_runtime)
/* clang-format on */

/* Hidden in the library, so that they are read without an indirection. */
#pragma GCC visibility push(hidden)
#define WR_DECLARE(name) extern ERL_NIF_TERM am_##name;
WR_ATOMS(WR_DECLARE)
#undef WR_DECLARE
/* The first elements of messages of the VM: 'DOWN', 'EXIT'. */
extern ERL_NIF_TERM am_down_message, am_exit_message;
#pragma GCC visibility pop

void wr_atoms_make(ErlNifEnv *env);

#endif
