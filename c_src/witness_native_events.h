/*
 * Adds what the VM reports of a process to its partition.
 *
 * An event that cannot be added makes a gap. An event is {Kind, Process, Other, Term, Time}, or without Other.
 */
#ifndef WITNESS_NATIVE_EVENTS_H
#define WITNESS_NATIVE_EVENTS_H

#include "witness_native_batch.h"
#include "witness_native_run.h"

/* With the time, if the run has times. */
wn_event wn_events_make(const wn_run *run, ERL_NIF_TERM name, ERL_NIF_TERM process, ERL_NIF_TERM other, ERL_NIF_TERM term);

/* `kind`: one of WN_ALL. `other` is 0: without it. The process is local, so its pid is immediate. Returns what to do. */
unsigned wn_events_add(ErlNifEnv *env, const wn_run *run, wn_partition *partition, unsigned kind, ERL_NIF_TERM name,
                       ERL_NIF_TERM process, ERL_NIF_TERM other, ERL_NIF_TERM term, uintptr_t *consumer);

/*
 * From here on events of a process are missing. The partition that every process is born into goes on for the others:
 * there the gap is an item.
 */
unsigned wn_events_missed(ErlNifEnv *env, const wn_run *run, wn_partition *partition, ERL_NIF_TERM process, wn_reason reason,
                          uint64_t missing, uintptr_t *consumer);

/* The slot is locked. NULL if the partition is not read any more. */
static inline wn_partition *wn_events_partition(const wn_tracee *tracee)
{
    wn_partition *partition = tracee ? tracee->partition : NULL;
    return partition && !wn_partition_is_unread(partition) ? partition : NULL;
}

#endif
