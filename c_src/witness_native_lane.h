/*
 * Lanes: one consumer for very many partitions.
 *
 * Whatever a partition would tell its consumer puts it into the list of its lane, once (`told` of the partition), and the
 * consumer of the lane is told once that the list has some, or by the next tick of the timer. It takes until it has found
 * the list empty, and is told again only after that: a partition that is listed later finds `told` cleared, or is found.
 *
 *   whoever lists a partition                       the consumer                    the timer
 *     list it                                         clear `told`                    tick
 *     some are listed? was `told` set? if not, tell   take the whole list; if there   is a list? was `told` set? if not, tell
 *     otherwise wake the timer, if it rests           is one, set `told`, and come    say that it rests, and look once more
 *                                                     again
 *
 * All of these are in one order that everybody agrees on (sequentially consistent), so one sees the other.
 *
 * A partition has a *place* in the table of its lane, by which the consumer names it: from its birth until its end was
 * taken, or until it leaves because nobody reads it any more, or has a consumer of its own. The name of the place has its
 * number in the lower WN_PLACE_BITS bits, and in those above how many have had it.
 *
 * Ownership: a reference for the table, and one for the list. Locking: the table by its lock, which is taken last. The
 * rest belongs to the consumer, or to who resets a lane that has none.
 */
#ifndef WITNESS_NATIVE_LANE_H
#define WITNESS_NATIVE_LANE_H

#include "witness_native_partition.h"

#define WN_PLACE_BITS 28

typedef struct {
    wn_partition *partition; /* NULL: the place is free */
    uint32_t next;           /* of the free places */
    uint32_t turn;           /* how many have had it, so that its name is never that of another one */
} wn_place;

struct wn_lane {
    _Atomic(wn_partition *) listed; /* newest first */
    atomic_bool told;
    atomic_uintptr_t consumer;      /* 0: there is none */
    atomic_uint_fast32_t length;    /* of the list, about */
    uint32_t enough;                /* so many are worth telling of */
    char apart[64];
    wn_partition *pending;          /* oldest first: taken from the list, but not handed over yet */
    size_t lent;                    /* charged for what the consumer has in hand */
    wn_hub *hub;
    wn_lock lock;
    wn_place *places;
    uint32_t count, free;           /* of the places; the first free one, or `count` */
};

/* The hub must outlive it. */
void wn_lane_init(wn_lane *lane, wn_hub *hub, uint32_t enough);
/* When nobody uses it any more. */
void wn_lane_clear(wn_lane *lane);

/* A new partition is the lane's. False: there is no memory. */
bool wn_lane_join(wn_lane *lane, wn_partition *partition);
/* NULL: there is none in this place. */
wn_partition *wn_lane_find(wn_lane *lane, uint64_t place);
/* Its place is free then. The reference of the table is the caller's. */
void wn_lane_leave(wn_lane *lane, wn_partition *partition);

/* The reference of the list is given. */
unsigned wn_lane_push(wn_lane *lane, wn_partition *partition, uintptr_t *consumer);

/* The timer: tells of what is listed, however little. */
unsigned wn_lane_tick(wn_lane *lane, uintptr_t *consumer);

/* The consumer comes: what it had in hand was handled. */
void wn_lane_begin(wn_lane *lane, uintptr_t consumer);
/*
 * The next partition that has something, with a reference, and what it has. False: the list was empty, and the consumer is
 * told when it is not.
 */
bool wn_lane_take(wn_lane *lane, wn_partition **partition, wn_taken *taken);

/* The consumer has died: nobody reads what it knew of, and these are so many. What it was not told of waits for the next one. */
uint32_t wn_lane_reset(wn_lane *lane);

#endif
