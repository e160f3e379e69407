/* Batches of events, as partitions have them: a buffer (witness_native_buffer.h) of terms in coded form. */
#ifndef WITNESS_NATIVE_BATCH_H
#define WITNESS_NATIVE_BATCH_H

#include "witness_native_buffer.h"
#include "witness_native_code.h"
#include "witness_native_take.h"

extern atomic_int_fast64_t wn_count_batches;

/* Bytes of a batch without events: its first block, and about what the VM takes for an environment, which few batches need. */
#define WN_BATCH_OVERHEAD 4096u

typedef struct {
    ERL_NIF_TERM name, process, other, term; /* no `other`: a tuple without it */
    ErlNifSInt64 time;
    bool timed;
} wn_event;

/* Writes an event with terms of `env`. False: it is larger than the limit of the code. */
bool wn_event_write(ErlNifEnv *env, wn_code *code, const wn_event *event);
/* The most bytes that it takes in a batch. */
size_t wn_event_bytes(const wn_code *code);
/* Adds it. The partition is locked. False: there is no memory, and nothing was added. */
bool wn_batch_add(wn_partition *partition, const wn_code *code);

/* An event by itself, in memory for `wn_partition_birth`. NULL: there is no memory, or it is larger than the limit. */
void *wn_birth_new(ErlNifEnv *env, const wn_event *event, size_t limit);
size_t wn_birth_bytes(const void *birth);
/* Makes the event; once. */
ERL_NIF_TERM wn_birth_read(ErlNifEnv *to, void *birth);
void wn_birth_drop(void *birth);

/* For items that are no events: they are made in this environment, and then added. NULL: there is no memory. */
ErlNifEnv *wn_batch_env(wn_partition *partition);
bool wn_batch_add_item(wn_partition *partition, ERL_NIF_TERM item);

/* What was taken can be read, once. */
wn_reading wn_batch_begin(const wn_taken *taken);
/* The list of the next events, at most `most`. `births`: whether there are forks among them. True: there may be more. */
bool wn_batch_read(ErlNifEnv *to, wn_reading *reading, uint32_t most, ERL_NIF_TERM *list, bool *births);
/* What comes after the batch: `open`, `complete`, `stopped`, or {gap, Reason, Missing}. */
ERL_NIF_TERM wn_batch_status(ErlNifEnv *env, const wn_taken *taken);
void wn_batch_drop(void *batch);

#endif
