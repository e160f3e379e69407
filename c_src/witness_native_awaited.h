/*
 * The processes that a run waits for (`held`): those that it was given, and their descendants. When the last of them has
 * ended, this is announced.
 *
 * `held` of the run counts the entries with `held` of the table. A child is counted while its parent is in the table, so the
 * count is 0 only if no process is left.
 */
#ifndef WITNESS_NATIVE_AWAITED_H
#define WITNESS_NATIVE_AWAITED_H

#include "witness_native_run.h"

/*
 * Adds a process that is not read. The run waits for its children, and for the process itself, unless it is a launcher.
 * False: it was there, or there is no memory.
 */
bool wn_awaited_add(wn_run *run, uintptr_t process, bool is_launcher);
bool wn_awaited_has(wn_run *run, uintptr_t process);

/* In a run that only watches: a process was spawned. Whether the run waits for it. */
bool wn_awaited_spawned(ErlNifEnv *env, wn_run *run, uintptr_t parent, uintptr_t child);

/* The run waits for one process less, which is not in the table any more. The caller has no lock. */
void wn_awaited_release(ErlNifEnv *env, wn_run *run);

/*
 * The run waits no longer for processes that are dead; their children are in the table by then. The list of the processes
 * that it still waits for, at most `most`.
 */
ERL_NIF_TERM wn_awaited_sweep(ErlNifEnv *env, wn_run *run, unsigned most);

#endif
