/*
 * How much memory the buffers of a run may take: a hard bound. What is taken never exceeds the limit, however many
 * threads take at the same time.
 */
#ifndef WITNESS_SHARED_BUDGET_H
#define WITNESS_SHARED_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct {
    atomic_size_t used;
    size_t limit;
} ws_budget;

static inline void ws_budget_init(ws_budget *budget, size_t limit)
{
    atomic_init(&budget->used, 0);
    budget->limit = limit;
}

static inline bool ws_budget_take(ws_budget *budget, size_t bytes)
{
    size_t used = atomic_load_explicit(&budget->used, memory_order_relaxed);
    do {
        if (bytes > budget->limit || used > budget->limit - bytes)
            return false;
    } while (
        !atomic_compare_exchange_weak_explicit(&budget->used, &used, used + bytes, memory_order_relaxed, memory_order_relaxed));
    return true;
}

static inline void ws_budget_give(ws_budget *budget, size_t bytes)
{
    atomic_fetch_sub_explicit(&budget->used, bytes, memory_order_relaxed);
}

static inline size_t ws_budget_used(ws_budget *budget)
{
    return atomic_load_explicit(&budget->used, memory_order_relaxed);
}

#endif
