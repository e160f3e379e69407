/*
 * Shards (`wn_shard`): one consumer for very many partitions.
 *
 * Partitions that have something for the consumer are in the shard's list (witness_native_ready.h).
 *
 * A partition has a *place* in the table of its shard, by which the consumer names it. It has the place from its birth
 * until its end was taken, or until it leaves: because it is not read any more, or has a consumer of its own. The name of
 * a place has its number in the lower WN_PLACE_BITS bits. The bits above count the partitions that have had the place.
 *
 * Ownership: a reference for the table, and one for the list. Locking: the table by its lock, which is taken last. The
 * rest belongs to the consumer, or to the thread that resets a shard without a consumer.
 */
#ifndef WITNESS_NATIVE_SHARD_H
#define WITNESS_NATIVE_SHARD_H

#include "witness_native_partition.h"
#include "witness_native_ready.h"
#include "witness_native_take.h"

#define WN_PLACE_BITS 28

typedef struct {
    wn_partition *partition; /* NULL: the place is free */
    uint32_t next;           /* of the free places */
    uint32_t generation;     /* how many have had it, so that no two partitions have the same name */
} wn_place;

struct wn_shard {
    wn_ready ready;
    char padding[64];
    wn_partition *pending; /* oldest first: taken from the list, but not handed over yet */
    size_t unhandled;      /* charged for what the consumer has taken and not handled */
    ws_lock lock;
    wn_place *places;
    uint32_t count, free; /* of the places; the first free one, or `count` */
};

/* The hub must outlive it. */
void wn_shard_init(wn_shard *shard, wn_hub *hub, uint32_t enough);
/* When it is not used any more. */
void wn_shard_clear(wn_shard *shard);

/* Adds a new partition to the shard. False: there is no memory. */
bool wn_shard_join(wn_shard *shard, wn_partition *partition);
/* NULL: there is none in this place. */
wn_partition *wn_shard_find(wn_shard *shard, uint64_t place);
/* Frees its place. The caller gets the reference of the table. */
void wn_shard_leave(wn_shard *shard, wn_partition *partition);

/* The consumer comes: what it had taken was handled. */
void wn_shard_begin(wn_shard *shard, uintptr_t consumer);
/*
 * The next partition that has something, with a reference, and what it has. False: the list was empty; the consumer is
 * notified when it is not.
 */
bool wn_shard_take(wn_shard *shard, wn_partition **partition, wn_taken *taken);

/* The consumer has died: the partitions that it knew are not read any more. Returns how many; others wait for the next one. */
uint32_t wn_shard_reset(wn_shard *shard);

#endif
