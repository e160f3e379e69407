/*
 * What a run announces to the consumer of its births:
 *
 *   {birth, Partition, Grouped, Held, Child, MFA}   a process with a partition of its own
 *   ended                                           the last process that the run waits for has ended
 *   {hidden, Process}                               the VM reports nothing of this process any more
 *
 * If there is no memory, the partition of births has a gap: then the run ends every monitor with a gap. All return what to do
 * (WN_NOTIFY, WN_WAKE).
 */
#ifndef WITNESS_NATIVE_ANNOUNCE_H
#define WITNESS_NATIVE_ANNOUNCE_H

#include "witness_native_run.h"

/* `held`: whether the run waits for the child. The handle takes a reference of its own. */
unsigned wn_announce_birth(ErlNifEnv *env, wn_run *run, wn_partition *partition, bool held, ERL_NIF_TERM child, ERL_NIF_TERM mfa,
                           uintptr_t *consumer);
unsigned wn_announce_ended(wn_run *run, uintptr_t *consumer);
unsigned wn_announce_hidden(wn_run *run, ERL_NIF_TERM process, uintptr_t *consumer);
/* A process is not known, for this reason. */
unsigned wn_announce_gap(wn_run *run, wn_reason reason, uintptr_t *consumer);

#endif
