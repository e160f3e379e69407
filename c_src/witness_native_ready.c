#include "witness_native_ready.h"

#include "witness_native_partition.h"

void wn_ready_init(wn_ready *ready, wn_hub *hub, uint32_t enough)
{
    *ready = (wn_ready){.hub = hub, .enough = enough};
    atomic_init(&ready->length, 0);
    atomic_init(&ready->listed, NULL);
    atomic_init(&ready->notified, false);
    atomic_init(&ready->consumer, 0);
}

static unsigned notify(wn_ready *ready, uintptr_t *consumer)
{
    if (atomic_load_explicit(&ready->notified, memory_order_seq_cst) ||
        atomic_exchange_explicit(&ready->notified, true, memory_order_seq_cst))
        return 0;
    *consumer = atomic_load_explicit(&ready->consumer, memory_order_seq_cst);
    return *consumer ? WN_NOTIFY : 0;
}

unsigned wn_ready_push(wn_ready *ready, wn_partition *p, uintptr_t *consumer)
{
    p->ready = atomic_load_explicit(&ready->listed, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&ready->listed, &p->ready, p, memory_order_seq_cst, memory_order_relaxed)) {
    }
    if (atomic_fetch_add_explicit(&ready->length, 1, memory_order_relaxed) + 1 >= ready->enough)
        return notify(ready, consumer);
    return atomic_load_explicit(&ready->notified, memory_order_seq_cst) ? 0 : wn_hub_wake(ready->hub);
}

unsigned wn_ready_tick(wn_ready *ready, uintptr_t *consumer)
{
    return atomic_load_explicit(&ready->listed, memory_order_seq_cst) ? notify(ready, consumer) : 0;
}

wn_partition *wn_ready_pop_all(wn_ready *ready)
{
    return atomic_exchange_explicit(&ready->listed, NULL, memory_order_seq_cst);
}

wn_partition *wn_ready_take(wn_ready *ready)
{
    atomic_store_explicit(&ready->notified, false, memory_order_seq_cst);
    atomic_store_explicit(&ready->length, 0, memory_order_relaxed);
    wn_partition *first = NULL, *p = wn_ready_pop_all(ready);
    while (p) {
        wn_partition *next = p->ready;
        p->ready = first;
        first = p;
        p = next;
    }
    if (first)
        atomic_store_explicit(&ready->notified, true, memory_order_seq_cst);
    return first;
}
