#include "witness_native_shard.h"

#include <stdlib.h>

#define PLACE_MASK ((1u << WN_PLACE_BITS) - 1)
/* Turn and place in one word are an immediate term. */
#define TURN_MASK ((1u << 30) - 1)

void wn_lane_init(wn_lane *lane, wn_hub *hub, uint32_t enough)
{
    *lane = (wn_lane){.hub = hub, .enough = enough};
    atomic_init(&lane->length, 0);
    atomic_init(&lane->listed, NULL);
    atomic_init(&lane->told, false);
    atomic_init(&lane->consumer, 0);
    wn_lock_init(&lane->lock);
}

static void release_list(wn_partition *p)
{
    while (p) {
        wn_partition *next = p->ready;
        wn_partition_release(p);
        p = next;
    }
}

void wn_lane_clear(wn_lane *lane)
{
    release_list(atomic_exchange_explicit(&lane->listed, NULL, memory_order_seq_cst));
    release_list(lane->pending);
    lane->pending = NULL;
    for (uint32_t i = 0; i < lane->count; i++)
        if (lane->places[i].partition)
            wn_partition_release(lane->places[i].partition);
    free(lane->places);
    lane->places = NULL;
    lane->count = lane->free = 0;
    wn_budget_give(&lane->hub->budget, lane->lent);
    lane->lent = 0;
}

/* Locked. */
static bool grown(wn_lane *lane)
{
    uint32_t count = lane->count ? 2 * lane->count : 64;
    wn_place *places = count <= PLACE_MASK ? realloc(lane->places, count * sizeof *places) : NULL;
    if (!places)
        return false;
    for (uint32_t i = lane->count; i < count; i++)
        places[i] = (wn_place){.next = i + 1};
    lane->places = places;
    lane->count = count;
    return true;
}

bool wn_lane_join(wn_lane *lane, wn_partition *p)
{
    wn_lock_take(&lane->lock);
    bool joins = lane->free < lane->count || grown(lane);
    if (joins) {
        wn_place *place = &lane->places[lane->free];
        p->lane = lane;
        place->turn = (place->turn + 1) & TURN_MASK;
        p->place = (uint64_t)place->turn << WN_PLACE_BITS | lane->free;
        lane->free = place->next;
        place->partition = p;
        wn_partition_keep(p);
    }
    wn_lock_give(&lane->lock);
    return joins;
}

wn_partition *wn_lane_find(wn_lane *lane, uint64_t name)
{
    uint32_t number = (uint32_t)name & PLACE_MASK;
    wn_lock_take(&lane->lock);
    wn_partition *p = number < lane->count ? lane->places[number].partition : NULL;
    if (p && p->place != name)
        p = NULL;
    wn_lock_give(&lane->lock);
    return p;
}

void wn_lane_leave(wn_lane *lane, wn_partition *p)
{
    wn_lock_take(&lane->lock);
    uint32_t number = (uint32_t)p->place & PLACE_MASK;
    lane->places[number].partition = NULL;
    lane->places[number].next = lane->free;
    lane->free = number;
    wn_lock_give(&lane->lock);
}

static unsigned tell(wn_lane *lane, uintptr_t *consumer)
{
    if (atomic_load_explicit(&lane->told, memory_order_seq_cst) ||
        atomic_exchange_explicit(&lane->told, true, memory_order_seq_cst))
        return 0;
    *consumer = atomic_load_explicit(&lane->consumer, memory_order_seq_cst);
    return *consumer ? WN_TELL : 0;
}

unsigned wn_lane_push(wn_lane *lane, wn_partition *p, uintptr_t *consumer)
{
    p->ready = atomic_load_explicit(&lane->listed, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&lane->listed, &p->ready, p, memory_order_seq_cst, memory_order_relaxed)) {
    }
    if (atomic_fetch_add_explicit(&lane->length, 1, memory_order_relaxed) + 1 >= lane->enough)
        return tell(lane, consumer);
    return atomic_load_explicit(&lane->told, memory_order_seq_cst) ? 0 : wn_hub_wake(lane->hub);
}

unsigned wn_lane_tick(wn_lane *lane, uintptr_t *consumer)
{
    return atomic_load_explicit(&lane->listed, memory_order_seq_cst) ? tell(lane, consumer) : 0;
}

void wn_lane_begin(wn_lane *lane, uintptr_t consumer)
{
    atomic_store_explicit(&lane->consumer, consumer, memory_order_seq_cst);
    wn_budget_give(&lane->hub->budget, lane->lent);
    lane->lent = 0;
}

/* The list, oldest first. */
static wn_partition *whole(wn_lane *lane)
{
    atomic_store_explicit(&lane->length, 0, memory_order_relaxed);
    wn_partition *first = NULL, *p = atomic_exchange_explicit(&lane->listed, NULL, memory_order_seq_cst);
    while (p) {
        wn_partition *next = p->ready;
        p->ready = first;
        first = p;
        p = next;
    }
    return first;
}

bool wn_lane_take(wn_lane *lane, wn_partition **partition, wn_taken *taken)
{
    for (;;) {
        if (!lane->pending) {
            atomic_store_explicit(&lane->told, false, memory_order_seq_cst);
            lane->pending = whole(lane);
            if (!lane->pending)
                return false;
            atomic_store_explicit(&lane->told, true, memory_order_seq_cst);
        }
        wn_partition *p = lane->pending;
        lane->pending = p->ready;
        if (wn_partition_take_in(p, lane, taken)) {
            lane->lent += taken->charged;
            *partition = p;
            return true;
        }
        wn_partition_release(p);
    }
}

uint32_t wn_lane_reset(wn_lane *lane)
{
    uint32_t unread = 0;
    wn_lane_begin(lane, 0);
    for (uint32_t i = 0;; i++) {
        wn_lock_take(&lane->lock);
        bool is_place = i < lane->count;
        wn_partition *p = is_place ? lane->places[i].partition : NULL;
        /* Other processes may be born meanwhile. Once its birth was taken, a partition stays known. */
        if (p)
            wn_partition_keep(p);
        wn_lock_give(&lane->lock);
        if (!is_place)
            return unread;
        if (p && wn_partition_is_known(p)) {
            wn_partition_unread(p);
            wn_lane_leave(lane, p);
            wn_partition_release(p);
            unread++;
        }
        if (p)
            wn_partition_release(p);
    }
}
