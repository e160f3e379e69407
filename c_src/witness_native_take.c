#include "witness_native_take.h"

/* Locked. */
static bool take_buffered(wn_partition *p, wn_taken *taken)
{
    p->notified = false;
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
        ws_budget_give(p->births, p->birth_bytes);
    p->batch = p->birth = NULL;
    p->bytes = p->charged = p->left = 0;
    p->count = 0;
    p->ended = p->end != WN_OPEN;
    return true;
}

/* Locked. */
static bool take(wn_partition *p, wn_taken *taken)
{
    ws_budget_give(&p->hub->budget, p->unhandled);
    p->unhandled = 0;
    bool something = take_buffered(p, taken);
    if (something)
        p->unhandled = taken->charged;
    return something;
}

bool wn_partition_take(wn_partition *p, uintptr_t consumer, wn_taken *taken)
{
    ws_lock_take(&p->lock);
    bool something = take(p, taken);
    if (!p->unread)
        p->consumer = consumer;
    ws_lock_give(&p->lock);
    return something;
}

bool wn_partition_take_gap(wn_partition *p, uintptr_t consumer, wn_taken *taken)
{
    ws_lock_take(&p->lock);
    bool something = p->end == WN_GAP && !p->batch && !p->birth && take(p, taken);
    if (!p->unread) {
        p->consumer = consumer;
        p->notified |= !something && !p->ended && (p->batch || p->birth || p->end != WN_OPEN);
    }
    ws_lock_give(&p->lock);
    return something;
}

bool wn_partition_take_in(wn_partition *p, const wn_shard *shard, wn_taken *taken)
{
    ws_lock_take(&p->lock);
    bool something = p->shard == shard && take_buffered(p, taken);
    ws_lock_give(&p->lock);
    return something;
}

bool wn_partition_is_known(wn_partition *p)
{
    ws_lock_take(&p->lock);
    bool is_known = !p->birth;
    ws_lock_give(&p->lock);
    return is_known;
}

void wn_partition_detach(wn_partition *p)
{
    ws_lock_take(&p->lock);
    p->shard = NULL;
    p->notified = false;
    ws_lock_give(&p->lock);
}
