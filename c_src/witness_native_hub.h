/*
 * The hub: what the partitions of a run share. That is their limits, their budget, and the list of those that have events for
 * which no consumer was notified. The timer (witness_native_timer.h) visits the list.
 *
 * The timer rests (`waiting`) while the list is empty. A thread that lists a partition reads `waiting` afterwards. The timer
 * sets it, and then reads the list once more. All of these are sequentially consistent, so one of the two sees the other.
 *
 * Ownership: counted references, of the run and of each partition. The list has a reference to each partition in it.
 */
#ifndef WITNESS_NATIVE_HUB_H
#define WITNESS_NATIVE_HUB_H

#include "witness_shared_budget.h"

#include <stdint.h>

typedef struct wn_partition wn_partition;

typedef struct {
    size_t partition_limit;          /* bytes */
    size_t overhead;                 /* bytes of a batch without events */
    uint32_t batch;                  /* events */
    void (*drop_batch)(void *batch); /* frees what is not taken */
    void (*drop_birth)(void *birth);
    char padding[64]; /* the fields below change all the time */
    ws_budget budget;
    atomic_uint_fast32_t refs;
    _Atomic(wn_partition *) listed; /* partitions with events, newest first */
    atomic_bool waiting;            /* the timer rests until something is listed */
    atomic_uint_fast32_t now;       /* ticks of the timer */
    atomic_uint_fast64_t events;    /* taken so far */
} wn_hub;

/* How many there are in this process, for tests. */
extern atomic_int_fast64_t wn_count_hubs;

/* What to do after a call: notify the consumer, wake the timer. */
#define WN_NOTIFY 1u
#define WN_WAKE 2u

/* NULL: there is no memory. The caller has the first reference. */
wn_hub *wn_hub_new(size_t memory, size_t partition_limit, size_t overhead, uint32_t batch, void (*drop_batch)(void *));
void wn_hub_keep(wn_hub *hub);
void wn_hub_release(wn_hub *hub);

/* Puts a partition into the list, which gets the caller's reference. */
void wn_hub_push(wn_hub *hub, wn_partition *partition);
/* The list, newest first, with its references. Then it is empty. */
wn_partition *wn_hub_pop_all(wn_hub *hub);

/* There is something for the timer. Returns WN_WAKE if it rests. */
unsigned wn_hub_wake(wn_hub *hub);

#endif
