#include "witness_native_shard.h"

#include <stdlib.h>

#define PLACE_MASK ((1u << WN_PLACE_BITS) - 1)
/* Generation and place in one word are an immediate term. */
#define GENERATION_MASK ((1u << 30) - 1)

void wn_shard_init(wn_shard *shard, wn_hub *hub, uint32_t enough)
{
    *shard = (wn_shard){.pending = NULL};
    wn_ready_init(&shard->ready, hub, enough);
    ws_lock_init(&shard->lock);
}

static void release_list(wn_partition *p)
{
    while (p) {
        wn_partition *next = p->ready;
        wn_partition_release(p);
        p = next;
    }
}

void wn_shard_clear(wn_shard *shard)
{
    release_list(wn_ready_pop_all(&shard->ready));
    release_list(shard->pending);
    shard->pending = NULL;
    for (uint32_t i = 0; i < shard->count; i++)
        if (shard->places[i].partition)
            wn_partition_release(shard->places[i].partition);
    free(shard->places);
    shard->places = NULL;
    shard->count = shard->free = 0;
    ws_budget_give(&shard->ready.hub->budget, shard->unhandled);
    shard->unhandled = 0;
}

/* Locked. */
static bool add_places(wn_shard *shard)
{
    uint32_t count = shard->count ? 2 * shard->count : 64;
    wn_place *places = count <= PLACE_MASK ? realloc(shard->places, count * sizeof *places) : NULL;
    if (!places)
        return false;
    for (uint32_t i = shard->count; i < count; i++)
        places[i] = (wn_place){.next = i + 1};
    shard->places = places;
    shard->count = count;
    return true;
}

bool wn_shard_join(wn_shard *shard, wn_partition *p)
{
    ws_lock_take(&shard->lock);
    bool joins = shard->free < shard->count || add_places(shard);
    if (joins) {
        wn_place *place = &shard->places[shard->free];
        p->shard = shard;
        place->generation = (place->generation + 1) & GENERATION_MASK;
        p->place = (uint64_t)place->generation << WN_PLACE_BITS | shard->free;
        shard->free = place->next;
        place->partition = p;
        wn_partition_keep(p);
    }
    ws_lock_give(&shard->lock);
    return joins;
}

wn_partition *wn_shard_find(wn_shard *shard, uint64_t name)
{
    uint32_t number = (uint32_t)name & PLACE_MASK;
    ws_lock_take(&shard->lock);
    wn_partition *p = number < shard->count ? shard->places[number].partition : NULL;
    if (p && p->place != name)
        p = NULL;
    ws_lock_give(&shard->lock);
    return p;
}

void wn_shard_leave(wn_shard *shard, wn_partition *p)
{
    ws_lock_take(&shard->lock);
    uint32_t number = (uint32_t)p->place & PLACE_MASK;
    shard->places[number].partition = NULL;
    shard->places[number].next = shard->free;
    shard->free = number;
    ws_lock_give(&shard->lock);
}

void wn_shard_begin(wn_shard *shard, uintptr_t consumer)
{
    atomic_store_explicit(&shard->ready.consumer, consumer, memory_order_seq_cst);
    ws_budget_give(&shard->ready.hub->budget, shard->unhandled);
    shard->unhandled = 0;
}

bool wn_shard_take(wn_shard *shard, wn_partition **partition, wn_taken *taken)
{
    for (;;) {
        if (!shard->pending) {
            shard->pending = wn_ready_take(&shard->ready);
            if (!shard->pending)
                return false;
        }
        wn_partition *p = shard->pending;
        shard->pending = p->ready;
        if (wn_partition_take_in(p, shard, taken)) {
            shard->unhandled += taken->charged;
            *partition = p;
            return true;
        }
        wn_partition_release(p);
    }
}

uint32_t wn_shard_reset(wn_shard *shard)
{
    uint32_t unread = 0;
    wn_shard_begin(shard, 0);
    for (uint32_t i = 0;; i++) {
        ws_lock_take(&shard->lock);
        bool is_place = i < shard->count;
        wn_partition *p = is_place ? shard->places[i].partition : NULL;
        /* Other processes may be born meanwhile. Once its birth was taken, a partition stays known. */
        if (p)
            wn_partition_keep(p);
        ws_lock_give(&shard->lock);
        if (!is_place)
            return unread;
        if (p && wn_partition_is_known(p)) {
            wn_partition_unread(p);
            wn_shard_leave(shard, p);
            wn_partition_release(p);
            unread++;
        }
        if (p)
            wn_partition_release(p);
    }
}
