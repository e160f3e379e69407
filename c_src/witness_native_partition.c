#include "witness_native_partition.h"

#include "witness_native_shard.h"

#include <stdlib.h>
#include <string.h>

atomic_int_fast64_t wn_count_partitions;

/* All threads share the budget, so a partition takes so many bytes of it at a time. */
#define GRAIN 2048u

wn_partition *wn_partition_new(wn_hub *hub, bool grouped)
{
    size_t line = 64, size = (sizeof(wn_partition) + line - 1) / line * line;
    wn_partition *p = aligned_alloc(line, size);
    if (!p)
        return NULL;
    memset(p, 0, size);
    ws_lock_init(&p->lock);
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
static void *remove_batch(wn_partition *p)
{
    void *batch = p->batch;
    ws_budget_give(&p->hub->budget, p->charged);
    p->batch = NULL;
    p->bytes = p->charged = p->left = 0;
    p->count = 0;
    return batch;
}

static void drop_batch(wn_hub *hub, void *batch)
{
    if (batch)
        hub->drop_batch(batch);
}

void wn_partition_release(wn_partition *p)
{
    if (atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
        return;
    wn_hub *hub = p->hub;
    ws_budget_give(&hub->budget, p->unhandled);
    drop_batch(hub, remove_batch(p));
    if (p->birth) {
        ws_budget_give(p->births, p->birth_bytes);
        hub->drop_birth(p->birth);
    }
    free(p);
    wn_hub_release(hub);
    atomic_fetch_sub_explicit(&wn_count_partitions, 1, memory_order_relaxed);
}

static bool has_reader(const wn_partition *p)
{
    return p->shard || p->consumer;
}

/* Locked. Notifies the reader, unless it was notified already. Does nothing if there is none yet. */
static unsigned notify(wn_partition *p, uintptr_t *consumer)
{
    if (p->notified || p->unread || !has_reader(p))
        return 0;
    p->notified = true;
    if (p->shard) {
        wn_partition_keep(p);
        return wn_ready_push(&p->shard->ready, p, consumer);
    }
    *consumer = p->consumer;
    return WN_NOTIFY;
}

/* Locked. The list has a reference. The timer checks for what was listed after it has said that it rests. */
static unsigned enlist(wn_partition *p)
{
    wn_hub *hub = p->hub;
    p->is_listed = true;
    wn_partition_keep(p);
    wn_hub_push(hub, p);
    return wn_hub_wake(hub);
}

/*
 * Locked. What is buffered is part of the gap: its memory must be free for others now, not when a slow consumer comes. A
 * consumer of its own is notified in any case: one that takes only gaps has ignored what it was notified of before.
 */
static unsigned end_with_gap(wn_partition *p, wn_reason reason, uint64_t missing, void **batch, uintptr_t *consumer)
{
    p->missing += missing + p->count;
    *batch = remove_batch(p);
    p->end = WN_GAP;
    p->reason = (uint8_t)reason;
    if (p->shard || !p->notified)
        return notify(p, consumer);
    *consumer = p->consumer;
    return p->consumer ? WN_NOTIFY : 0;
}

/* Locked. */
static bool charge(wn_partition *p, size_t bytes)
{
    if (p->bytes + bytes <= p->charged)
        return true;
    size_t missing = p->bytes + bytes - p->charged;
    size_t more = missing > SIZE_MAX - GRAIN ? missing : (missing + GRAIN - 1) / GRAIN * GRAIN;
    if (!ws_budget_take(&p->hub->budget, more))
        return false;
    p->charged += more;
    return true;
}

bool wn_partition_begin(wn_partition *p, size_t bytes, unsigned *todo, uintptr_t *consumer)
{
    *todo = 0;
    ws_lock_take(&p->lock);
    if (p->unread || p->end != WN_OPEN) {
        if (p->end == WN_GAP && !p->ended)
            p->missing++;
        ws_lock_give(&p->lock);
        return false;
    }
    wn_reason reason = WN_NO_GAP;
    size_t limit = p->hub->partition_limit, used = p->bytes + p->unhandled;
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
    *todo = end_with_gap(p, reason, 1, &batch, consumer);
    wn_hub *hub = p->hub;
    ws_lock_give(&p->lock);
    drop_batch(hub, batch);
    return false;
}

unsigned wn_partition_added(wn_partition *p, bool at_once, uintptr_t *consumer)
{
    unsigned todo = 0;
    if (p->count++ == 0)
        p->since = (uint32_t)atomic_load_explicit(&p->hub->now, memory_order_relaxed);
    if (at_once || p->count >= p->hub->batch)
        todo = notify(p, consumer);
    /* Listed even before there is a consumer: one may come while the batch grows. */
    if (!p->notified && !p->is_listed)
        todo |= enlist(p);
    ws_lock_give(&p->lock);
    return todo;
}

unsigned wn_partition_failed(wn_partition *p, uintptr_t *consumer)
{
    void *batch;
    unsigned todo = end_with_gap(p, WN_MEMORY, 1, &batch, consumer);
    wn_hub *hub = p->hub;
    ws_lock_give(&p->lock);
    drop_batch(hub, batch);
    return todo;
}

void wn_partition_join(wn_partition *p)
{
    ws_lock_take(&p->lock);
    p->members++;
    ws_lock_give(&p->lock);
    wn_partition_keep(p);
}

unsigned wn_partition_leave(wn_partition *p, uintptr_t *consumer)
{
    unsigned todo = 0;
    ws_lock_take(&p->lock);
    if (--p->members == 0 && p->end == WN_OPEN) {
        p->end = WN_COMPLETE;
        todo = notify(p, consumer);
    }
    ws_lock_give(&p->lock);
    wn_partition_release(p);
    return todo;
}

unsigned wn_partition_stop(wn_partition *p, uintptr_t *consumer)
{
    unsigned todo = 0;
    ws_lock_take(&p->lock);
    if (p->end == WN_OPEN) {
        p->end = WN_STOPPED;
        todo = notify(p, consumer);
    }
    ws_lock_give(&p->lock);
    return todo;
}

unsigned wn_partition_gap(wn_partition *p, wn_reason reason, uint64_t missing, uintptr_t *consumer)
{
    void *batch = NULL;
    unsigned todo = 0;
    ws_lock_take(&p->lock);
    if (p->end == WN_OPEN && !p->unread)
        todo = end_with_gap(p, reason, missing, &batch, consumer);
    wn_hub *hub = p->hub;
    ws_lock_give(&p->lock);
    drop_batch(hub, batch);
    return todo;
}

unsigned wn_partition_cut(wn_partition *p, wn_reason reason, uintptr_t *consumer)
{
    unsigned todo = 0;
    ws_lock_take(&p->lock);
    if (p->end == WN_OPEN && !p->unread) {
        p->end = WN_GAP;
        p->reason = (uint8_t)reason;
        todo = notify(p, consumer);
    }
    ws_lock_give(&p->lock);
    return todo;
}

/* `consumer`: only if this is the consumer; 0: in any case. */
static void unread(wn_partition *p, uintptr_t consumer)
{
    void *batch = NULL;
    ws_lock_take(&p->lock);
    wn_hub *hub = p->hub;
    if (!consumer || p->consumer == consumer) {
        p->unread = true;
        p->consumer = 0;
        batch = remove_batch(p);
        ws_budget_give(&hub->budget, p->unhandled);
        p->unhandled = 0;
    }
    ws_lock_give(&p->lock);
    drop_batch(hub, batch);
}

void wn_partition_unread(wn_partition *p)
{
    unread(p, 0);
}

void wn_partition_abandon(wn_partition *p, uintptr_t consumer)
{
    unread(p, consumer);
}

bool wn_partition_birth(wn_partition *p, void *birth, size_t bytes, ws_budget *births)
{
    if (!ws_budget_take(births, bytes))
        return false;
    p->birth = birth;
    p->birth_bytes = bytes;
    p->births = births;
    return true;
}

unsigned wn_partition_born(wn_partition *p)
{
    unsigned todo;
    ws_lock_take(&p->lock);
    p->count = 1;
    p->since = (uint32_t)atomic_load_explicit(&p->hub->now, memory_order_relaxed);
    todo = enlist(p);
    ws_lock_give(&p->lock);
    return todo;
}

bool wn_partition_visit(wn_partition *p, uint32_t now, uint32_t age, uintptr_t *consumer)
{
    ws_lock_take(&p->lock);
    bool stays = false;
    *consumer = 0;
    if (!p->unread && !p->notified && p->count > 0) {
        /* Without a consumer there is no process to notify: the first `take` finds the events. */
        if (has_reader(p) && now - p->since >= age)
            notify(p, consumer);
        else
            stays = has_reader(p);
    }
    p->is_listed = stays;
    ws_lock_give(&p->lock);
    return stays;
}
