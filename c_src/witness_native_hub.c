#include "witness_native_hub.h"

#include "witness_native_buffer.h"
#include "witness_native_partition.h"

#include <stdlib.h>

atomic_int_fast64_t wn_count_hubs;

wn_hub *wn_hub_new(size_t memory, size_t partition_limit, size_t overhead, uint32_t batch, void (*drop_batch)(void *))
{
    wn_hub *hub = calloc(1, sizeof *hub);
    if (!hub)
        return NULL;
    ws_budget_init(&hub->budget, memory);
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

void wn_hub_push(wn_hub *hub, wn_partition *p)
{
    p->next = atomic_load_explicit(&hub->listed, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&hub->listed, &p->next, p, memory_order_seq_cst, memory_order_relaxed)) {
    }
}

wn_partition *wn_hub_pop_all(wn_hub *hub)
{
    return atomic_exchange_explicit(&hub->listed, NULL, memory_order_seq_cst);
}

unsigned wn_hub_wake(wn_hub *hub)
{
    return atomic_load_explicit(&hub->waiting, memory_order_seq_cst) &&
                   atomic_exchange_explicit(&hub->waiting, false, memory_order_seq_cst)
               ? WN_WAKE
               : 0;
}
