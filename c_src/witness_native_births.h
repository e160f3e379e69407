/*
 * Births: which partition a process belongs to. This is decided before the process can act.
 *
 * A child is born into the partition of its parent, if that is grouped; otherwise into one of its own, if a pattern may name
 * its signature; otherwise into none. A partition of its own is announced (witness_native_announce.h), or joins a shard. If
 * there is no memory, the partition of births has a gap: then the run ends every monitor with a gap.
 */
#ifndef WITNESS_NATIVE_BIRTHS_H
#define WITNESS_NATIVE_BIRTHS_H

#include "witness_native_run.h"

/* The parent has spawned a process: the event of the parent. `mfa`: what the child was spawned with. */
void wn_births_spawn(ErlNifEnv *env, wn_run *run, ERL_NIF_TERM parent, ERL_NIF_TERM child, ERL_NIF_TERM mfa);
/* The child is there, and can neither run nor receive. */
void wn_births_spawned(ErlNifEnv *env, wn_run *run, ERL_NIF_TERM child, ERL_NIF_TERM parent, ERL_NIF_TERM mfa);
/*
 * A process that runs already is one of the run from now on, as if its parent had spawned it now. The run waits for it. The process
 * is not traced yet.
 */
void wn_births_adopt(ErlNifEnv *env, wn_run *run, ERL_NIF_TERM process, ERL_NIF_TERM parent, ERL_NIF_TERM mfa);

#endif
