/*
 * The list of a shard: its partitions that have something for its consumer.
 *
 * If a partition has something, it is put into the list, once (`notified` of the partition). The shard's consumer is
 * notified once, when the list has enough, or by the next tick of the timer. It takes until it has found the list empty,
 * and is notified again only after that. So a partition that is listed later finds `notified` cleared, or is found.
 *
 *   a thread that lists a partition                 the consumer                    the timer
 *     list it                                         clear `notified`                tick
 *     enough listed? was `notified` set?              take the whole list; if there   is a list? was `notified` set?
 *     if not, notify; otherwise wake the              is one, set `notified`, and     if not, notify; say that it rests,
 *     timer, if it rests                              come again                      and check once more
 *
 * All of these are sequentially consistent: all threads agree on one order, so one sees the other.
 *
 * Ownership: the list has a reference to each partition in it.
 */
#ifndef WITNESS_NATIVE_READY_H
#define WITNESS_NATIVE_READY_H

#include "witness_native_hub.h"

typedef struct {
    _Atomic(wn_partition *) listed; /* newest first */
    atomic_bool notified;
    atomic_uintptr_t consumer;   /* 0: there is none */
    atomic_uint_fast32_t length; /* of the list, about */
    uint32_t enough;             /* the length from which on the consumer is notified */
    wn_hub *hub;
} wn_ready;

/* The hub must outlive it. */
void wn_ready_init(wn_ready *ready, wn_hub *hub, uint32_t enough);

/* The caller gives the reference of the list. Returns what to do: WN_NOTIFY, WN_WAKE. */
unsigned wn_ready_push(wn_ready *ready, wn_partition *partition, uintptr_t *consumer);
/* The timer: the consumer is to be notified of what is listed, however little. */
unsigned wn_ready_tick(wn_ready *ready, uintptr_t *consumer);

/* The whole list, oldest first, with its references. NULL: it is empty, and the consumer is notified when it is not. */
wn_partition *wn_ready_take(wn_ready *ready);
/* The whole list in any order, when there is no consumer any more. */
wn_partition *wn_ready_pop_all(wn_ready *ready);

#endif
