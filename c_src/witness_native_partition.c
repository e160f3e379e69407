#include "witness_native_partition.h"

#include "witness_native_buffer.h"
#include "witness_native_shard.h"

#include <stdlib.h>
#include <string.h>

atomic_int_fast64_t wn_count_hubs, wn_count_partitions;

/* All threads share the budget, so a partition takes so many bytes of it at a time. */
#define GRAIN 2048u

wn_hub *wn_hub_new(size_t memory, size_t partition_limit, size_t overhead, uint32_t batch, void (*drop_batch)(void *))
{
    wn_hub *hub = calloc(1, sizeof *hub);
    if (!hub)
        return NULL;
    wn_budget_init(&hub->budget, memory);
    hub->partition_limit = partition_limit;
    hub->overhead = overhead;
    hub->batch = batch;
    hub->drop_batch = drop_batch;
    atomic_init(&hub->refs, 1);
    atomic_init(&hub->listed, NULL);
    atomic_init(&hub->waiting, true);
    atomic_init(&hub->now, 0);
    atomic_init(&hub->events, 0);
    atomic_fetch_add_explicit(&wn_count_hubs, 1, memory_order_relaxed);
    return hub;
}

void wn_hub_keep(wn_hub *hub)
{
    atomic_fetch_add_explicit(&hub->refs, 1, memory_order_relaxed);
}

void wn_hub_release(wn_hub *hub)
{
    if (atomic_fetch_sub_explicit(&hub->refs, 1, memory_order_acq_rel) != 1)
        return;
    free(hub);
    if (atomic_fetch_sub_explicit(&wn_count_hubs, 1, memory_order_relaxed) == 1)
        wn_buffer_drain();
}

wn_partition *wn_partition_new(wn_hub *hub, bool grouped)
{
    size_t line = 64, size = (sizeof(wn_partition) + line - 1) / line * line;
    wn_partition *p = aligned_alloc(line, size);
    if (!p)
        return NULL;
    memset(p, 0, size);
    wn_lock_init(&p->lock);
    atomic_init(&p->refs, 1);
    p->hub = hub;
    p->grouped = grouped;
    p->end = WN_OPEN;
    atomic_init(&p->kinds, WN_ALL);
    wn_hub_keep(hub);
    atomic_fetch_add_explicit(&wn_count_partitions, 1, memory_order_relaxed);
    return p;
}

void wn_partition_keep(wn_partition *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
}

/* Gives what is buffered to the caller, which frees it without the lock. */
static void *emptied(wn_partition *p)
{
    void *batch = p->batch;
    wn_budget_give(&p->hub->budget, p->charged);
    p->batch = NULL;
    p->bytes = p->charged = p->left = 0;
    p->count = 0;
    return batch;
}

static void dropped(wn_hub *hub, void *batch)
{
    if (batch)
        hub->drop_batch(batch);
}

void wn_partition_release(wn_partition *p)
{
    if (atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
        return;
    wn_hub *hub = p->hub;
    wn_budget_give(&hub->budget, p->lent);
    dropped(hub, emptied(p));
    if (p->birth) {
        wn_budget_give(p->births, p->birth_bytes);
        hub->drop_birth(p->birth);
    }
    free(p);
    wn_hub_release(hub);
    atomic_fetch_sub_explicit(&wn_count_partitions, 1, memory_order_relaxed);
}

static bool has_reader(const wn_partition *p)
{
    return p->lane || p->consumer;
}

/* Locked. Notifies the reader, unless it was notified already. Does nothing if there is none yet. */
static unsigned tell(wn_partition *p, uintptr_t *consumer)
{
    if (p->told || p->unread || !has_reader(p))
        return 0;
    p->told = true;
    if (p->lane) {
        wn_partition_keep(p);
        return wn_lane_push(p->lane, p, consumer);
    }
    *consumer = p->consumer;
    return WN_TELL;
}

/* Puts a partition into the list, which gets the caller's reference. */
static void push(wn_hub *hub, wn_partition *p)
{
    p->next = atomic_load_explicit(&hub->listed, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&hub->listed, &p->next, p, memory_order_seq_cst, memory_order_relaxed)) {
    }
}

unsigned wn_hub_wake(wn_hub *hub)
{
    return atomic_load_explicit(&hub->waiting, memory_order_seq_cst) &&
                   atomic_exchange_explicit(&hub->waiting, false, memory_order_seq_cst)
               ? WN_WAKE
               : 0;
}

/* Locked. The list has a reference. The timer checks for what was listed after it has said that it rests. */
static unsigned list(wn_partition *p)
{
    wn_hub *hub = p->hub;
    p->is_listed = true;
    wn_partition_keep(p);
    push(hub, p);
    return wn_hub_wake(hub);
}

/*
 * Locked. What is buffered is part of the gap: its memory must be free for others now, not when a slow consumer comes. A
 * consumer of its own is notified in any case: one that takes only gaps has ignored what it was notified of before.
 */
static unsigned gap(wn_partition *p, wn_reason reason, uint64_t missing, void **batch, uintptr_t *consumer)
{
    p->missing += missing + p->count;
    *batch = emptied(p);
    p->end = WN_GAP;
    p->reason = (uint8_t)reason;
    if (p->lane || !p->told)
        return tell(p, consumer);
    *consumer = p->consumer;
    return p->consumer ? WN_TELL : 0;
}

/* Locked. */
static bool charge(wn_partition *p, size_t bytes)
{
    if (p->bytes + bytes <= p->charged)
        return true;
    size_t missing = p->bytes + bytes - p->charged;
    size_t more = missing > SIZE_MAX - GRAIN ? missing : (missing + GRAIN - 1) / GRAIN * GRAIN;
    if (!wn_budget_take(&p->hub->budget, more))
        return false;
    p->charged += more;
    return true;
}

bool wn_partition_begin(wn_partition *p, size_t bytes, unsigned *todo, uintptr_t *consumer)
{
    *todo = 0;
    wn_lock_take(&p->lock);
    if (p->unread || p->end != WN_OPEN) {
        if (p->end == WN_GAP && !p->ended)
            p->missing++;
        wn_lock_give(&p->lock);
        return false;
    }
    wn_reason reason = WN_NO_GAP;
    size_t limit = p->hub->partition_limit, used = p->bytes + p->lent;
    if (!p->batch)
        used += p->hub->overhead;
    if (bytes > limit || used > limit - bytes) {
        reason = WN_OVERFLOW;
    } else {
        if (!p->batch)
            bytes += p->hub->overhead;
        if (!charge(p, bytes))
            reason = WN_MEMORY;
    }
    if (reason == WN_NO_GAP) {
        p->bytes += bytes;
        return true;
    }
    void *batch;
    *todo = gap(p, reason, 1, &batch, consumer);
    wn_hub *hub = p->hub;
    wn_lock_give(&p->lock);
    dropped(hub, batch);
    return false;
}

unsigned wn_partition_added(wn_partition *p, bool at_once, uintptr_t *consumer)
{
    unsigned todo = 0;
    if (p->count++ == 0)
        p->since = (uint32_t)atomic_load_explicit(&p->hub->now, memory_order_relaxed);
    if (at_once || p->count >= p->hub->batch)
        todo = tell(p, consumer);
    /* Listed even before there is a consumer: one may come while the batch grows. */
    if (!p->told && !p->is_listed)
        todo |= list(p);
    wn_lock_give(&p->lock);
    return todo;
}

unsigned wn_partition_failed(wn_partition *p, uintptr_t *consumer)
{
    void *batch;
    unsigned todo = gap(p, WN_MEMORY, 1, &batch, consumer);
    wn_hub *hub = p->hub;
    wn_lock_give(&p->lock);
    dropped(hub, batch);
    return todo;
}

void wn_partition_join(wn_partition *p)
{
    wn_lock_take(&p->lock);
    p->members++;
    wn_lock_give(&p->lock);
    wn_partition_keep(p);
}

unsigned wn_partition_leave(wn_partition *p, uintptr_t *consumer)
{
    unsigned todo = 0;
    wn_lock_take(&p->lock);
    if (--p->members == 0 && p->end == WN_OPEN) {
        p->end = WN_COMPLETE;
        todo = tell(p, consumer);
    }
    wn_lock_give(&p->lock);
    wn_partition_release(p);
    return todo;
}

unsigned wn_partition_stop(wn_partition *p, uintptr_t *consumer)
{
    unsigned todo = 0;
    wn_lock_take(&p->lock);
    if (p->end == WN_OPEN) {
        p->end = WN_STOPPED;
        todo = tell(p, consumer);
    }
    wn_lock_give(&p->lock);
    return todo;
}

unsigned wn_partition_gap(wn_partition *p, wn_reason reason, uint64_t missing, uintptr_t *consumer)
{
    void *batch = NULL;
    unsigned todo = 0;
    wn_lock_take(&p->lock);
    if (p->end == WN_OPEN && !p->unread)
        todo = gap(p, reason, missing, &batch, consumer);
    wn_hub *hub = p->hub;
    wn_lock_give(&p->lock);
    dropped(hub, batch);
    return todo;
}

unsigned wn_partition_cut(wn_partition *p, wn_reason reason, uintptr_t *consumer)
{
    unsigned todo = 0;
    wn_lock_take(&p->lock);
    if (p->end == WN_OPEN && !p->unread) {
        p->end = WN_GAP;
        p->reason = (uint8_t)reason;
        todo = tell(p, consumer);
    }
    wn_lock_give(&p->lock);
    return todo;
}

/* `consumer`: only if this is the consumer; 0: in any case. */
static void unread(wn_partition *p, uintptr_t consumer)
{
    void *batch = NULL;
    wn_lock_take(&p->lock);
    wn_hub *hub = p->hub;
    if (!consumer || p->consumer == consumer) {
        p->unread = true;
        p->consumer = 0;
        batch = emptied(p);
        wn_budget_give(&hub->budget, p->lent);
        p->lent = 0;
    }
    wn_lock_give(&p->lock);
    dropped(hub, batch);
}

void wn_partition_unread(wn_partition *p)
{
    unread(p, 0);
}

void wn_partition_abandon(wn_partition *p, uintptr_t consumer)
{
    unread(p, consumer);
}

/* Locked. */
static bool taken_from(wn_partition *p, wn_taken *taken)
{
    p->told = false;
    if (p->unread || p->ended || (!p->batch && !p->birth && p->end == WN_OPEN))
        return false;
    *taken = (wn_taken){.batch = p->batch,
                        .left = p->left,
                        .birth = p->birth,
                        .count = p->count,
                        .end = (wn_end)p->end,
                        .reason = (wn_reason)p->reason,
                        .missing = p->missing,
                        .charged = p->charged};
    atomic_fetch_add_explicit(&p->hub->events, p->count, memory_order_relaxed);
    if (p->birth)
        wn_budget_give(p->births, p->birth_bytes);
    p->batch = p->birth = NULL;
    p->bytes = p->charged = p->left = 0;
    p->count = 0;
    p->ended = p->end != WN_OPEN;
    return true;
}

/* Locked. */
static bool take(wn_partition *p, wn_taken *taken)
{
    wn_budget_give(&p->hub->budget, p->lent);
    p->lent = 0;
    bool something = taken_from(p, taken);
    if (something)
        p->lent = taken->charged;
    return something;
}

bool wn_partition_take(wn_partition *p, uintptr_t consumer, wn_taken *taken)
{
    wn_lock_take(&p->lock);
    bool something = take(p, taken);
    if (!p->unread)
        p->consumer = consumer;
    wn_lock_give(&p->lock);
    return something;
}

bool wn_partition_take_gap(wn_partition *p, uintptr_t consumer, wn_taken *taken)
{
    wn_lock_take(&p->lock);
    bool something = p->end == WN_GAP && !p->batch && !p->birth && take(p, taken);
    if (!p->unread) {
        p->consumer = consumer;
        p->told |= !something && !p->ended && (p->batch || p->birth || p->end != WN_OPEN);
    }
    wn_lock_give(&p->lock);
    return something;
}

bool wn_partition_birth(wn_partition *p, void *birth, size_t bytes, wn_budget *births)
{
    if (!wn_budget_take(births, bytes))
        return false;
    p->birth = birth;
    p->birth_bytes = bytes;
    p->births = births;
    return true;
}

unsigned wn_partition_born(wn_partition *p)
{
    unsigned todo;
    wn_lock_take(&p->lock);
    p->count = 1;
    p->since = (uint32_t)atomic_load_explicit(&p->hub->now, memory_order_relaxed);
    todo = list(p);
    wn_lock_give(&p->lock);
    return todo;
}

bool wn_partition_take_in(wn_partition *p, const wn_lane *lane, wn_taken *taken)
{
    wn_lock_take(&p->lock);
    bool something = p->lane == lane && taken_from(p, taken);
    wn_lock_give(&p->lock);
    return something;
}

bool wn_partition_is_known(wn_partition *p)
{
    wn_lock_take(&p->lock);
    bool is_known = !p->birth;
    wn_lock_give(&p->lock);
    return is_known;
}

void wn_partition_detach(wn_partition *p)
{
    wn_lock_take(&p->lock);
    p->lane = NULL;
    p->told = false;
    wn_lock_give(&p->lock);
}

/* Whether the partition stays in the list; if not, the list's reference goes. */
static bool visit(wn_partition *p, uint32_t now, uint32_t age, uintptr_t *consumer)
{
    wn_lock_take(&p->lock);
    bool stays = false;
    *consumer = 0;
    if (!p->unread && !p->told && p->count > 0) {
        /* Without a consumer there is no process to notify: the first `take` finds the events. */
        if (has_reader(p) && now - p->since >= age)
            tell(p, consumer);
        else
            stays = has_reader(p);
    }
    p->is_listed = stays;
    wn_lock_give(&p->lock);
    return stays;
}

bool wn_hub_tick(wn_hub *hub, uint32_t age, void (*tell_consumer)(void *, uintptr_t), void *argument)
{
    uint32_t now = (uint32_t)atomic_fetch_add_explicit(&hub->now, 1, memory_order_relaxed) + 1;
    bool left = false;
    wn_partition *p = atomic_exchange_explicit(&hub->listed, NULL, memory_order_seq_cst);
    while (p) {
        wn_partition *next = p->next;
        uintptr_t consumer;
        if (visit(p, now, age, &consumer)) {
            left = true;
            push(hub, p);
        } else {
            if (consumer)
                tell_consumer(argument, consumer);
            wn_partition_release(p);
        }
        p = next;
    }
    if (left)
        return true;
    atomic_store_explicit(&hub->waiting, true, memory_order_seq_cst);
    /* A thread that still saw the timer run may have listed a partition in between. */
    return atomic_load_explicit(&hub->listed, memory_order_seq_cst) && wn_hub_wake(hub);
}

void wn_hub_drain(wn_hub *hub)
{
    wn_partition *p = atomic_exchange_explicit(&hub->listed, NULL, memory_order_seq_cst);
    while (p) {
        wn_partition *next = p->next;
        wn_partition_release(p);
        p = next;
    }
}
