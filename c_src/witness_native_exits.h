/*
 * The ends of processes in the table of tracees: their exits, the identifier of a dead one that is used again, the end of
 * tracing. And processes that hide themselves, which have no exit that the VM reports.
 */
#ifndef WITNESS_NATIVE_EXITS_H
#define WITNESS_NATIVE_EXITS_H

#include "witness_native_run.h"

/* The VM reports the end of a process. `reason`: NULL if the end is not an event. */
void wn_exits_exit(ErlNifEnv *env, wn_run *run, ERL_NIF_TERM process, const ERL_NIF_TERM *reason);

/*
 * The process with this entry is dead, but its exit was never reported, so its trace is incomplete. The slot is locked.
 * Returns what to do, and whether the run waited for the process.
 */
unsigned wn_exits_lost(ErlNifEnv *env, const wn_run *run, wn_slot *slot, wn_tracee *tracee, uintptr_t *consumer, bool *was_held);

/* The process is not traced any more; its events until now are in its partition. */
void wn_exits_forget(ErlNifEnv *env, wn_run *run, uintptr_t process);

/* The process calls the function that hides it. */
void wn_exits_hide(ErlNifEnv *env, wn_run *run, ERL_NIF_TERM process);

/* The callback of the run as a resource: a process that has hidden itself has ended. */
void wn_exits_down(ErlNifEnv *env, void *run, ErlNifPid *pid, ErlNifMonitor *monitor);

#endif
