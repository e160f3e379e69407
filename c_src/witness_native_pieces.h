/*
 * Pieces: what the consumer of a shard takes from its partitions.
 *
 *   {Place, Births, Events, Status}, or with the first event of the process: {Place, Init, Births, Events, Status}
 *
 * `Births`: whether there are forks among the events. After a status that is not `open` the partition has left the shard.
 */
#ifndef WITNESS_NATIVE_PIECES_H
#define WITNESS_NATIVE_PIECES_H

#include "witness_native_run.h"

/* The pieces in the order of taking. If the list is empty, the caller is notified of the next one. */
ERL_NIF_TERM wn_pieces_take(ErlNifEnv *env, wn_run *run, wn_shard *shard, uintptr_t self);

/* The partition leaves the shard, which has a reference to it. */
void wn_pieces_leave(wn_run *run, wn_shard *shard, wn_partition *partition);

#endif
