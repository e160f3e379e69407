/*
 * Shards (`wn_lane`): one consumer for very many partitions.
 *
 * If a partition has something for its consumer, it is put into the list of its shard, once (`told` of the partition). The
 * shard's consumer is notified once, when the list has enough, or by the next tick of the timer. It takes until it has
 * found the list empty, and is notified again only after that. So a partition that is listed later finds `told` cleared,
 * or is found.
 *
 *   a thread that lists a partition                 the consumer                    the timer
 *     list it                                         clear `told`                    tick
 *     enough listed? was `told` set? if not, notify   take the whole list; if there   is a list? was `told` set? if not, notify
 *     otherwise wake the timer, if it rests           is one, set `told`, and come    say that it rests, and check once more
 *                                                     again
 *
 * All of these are sequentially consistent: all threads agree on one order, so one sees the other.
 *
 * A partition has a *place* in the table of its shard, by which the consumer names it. It has the place from its birth
 * until its end was taken, or until it leaves: because it is not read any more, or has a consumer of its own. The name of
 * a place has its number in the lower WN_PLACE_BITS bits. The bits above count the partitions that have had the place.
 *
 * Ownership: a reference for the table, and one for the list. Locking: the table by its lock, which is taken last. The
 * rest belongs to the consumer, or to the thread that resets a shard without a consumer.
 */
#ifndef WITNESS_NATIVE_LANE_H
#define WITNESS_NATIVE_LANE_H

#include "witness_native_partition.h"

#define WN_PLACE_BITS 28

typedef struct {
    wn_partition *partition; /* NULL: the place is free */
    uint32_t next;           /* of the free places */
    uint32_t turn;           /* how many have had it, so that no two partitions have the same name */
} wn_place;

struct wn_lane {
    _Atomic(wn_partition *) listed; /* newest first */
    atomic_bool told;
    atomic_uintptr_t consumer;   /* 0: there is none */
    atomic_uint_fast32_t length; /* of the list, about */
    uint32_t enough;             /* the length from which on the consumer is notified */
    char apart[64];
    wn_partition *pending; /* oldest first: taken from the list, but not handed over yet */
    size_t lent;           /* charged for what the consumer has taken and not handled */
    wn_hub *hub;
    wn_lock lock;
    wn_place *places;
    uint32_t count, free; /* of the places; the first free one, or `count` */
};

/* The hub must outlive it. */
void wn_lane_init(wn_lane *lane, wn_hub *hub, uint32_t enough);
/* When it is not used any more. */
void wn_lane_clear(wn_lane *lane);

/* Adds a new partition to the shard. False: there is no memory. */
bool wn_lane_join(wn_lane *lane, wn_partition *partition);
/* NULL: there is none in this place. */
wn_partition *wn_lane_find(wn_lane *lane, uint64_t place);
/* Frees its place. The caller gets the reference of the table. */
void wn_lane_leave(wn_lane *lane, wn_partition *partition);

/* The caller gives the reference of the list. */
unsigned wn_lane_push(wn_lane *lane, wn_partition *partition, uintptr_t *consumer);

/* The timer: notifies the consumer of what is listed, however little. */
unsigned wn_lane_tick(wn_lane *lane, uintptr_t *consumer);

/* The consumer comes: what it had taken was handled. */
void wn_lane_begin(wn_lane *lane, uintptr_t consumer);
/*
 * The next partition that has something, with a reference, and what it has. False: the list was empty; the consumer is
 * notified when it is not.
 */
bool wn_lane_take(wn_lane *lane, wn_partition **partition, wn_taken *taken);

/* The consumer has died: the partitions that it knew are not read any more. Returns how many; others wait for the next one. */
uint32_t wn_lane_reset(wn_lane *lane);

#endif
