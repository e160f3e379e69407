#include "witness_native_timer.h"

bool wn_hub_tick(wn_hub *hub, uint32_t age, void (*notify)(void *, uintptr_t), void *argument)
{
    uint32_t now = (uint32_t)atomic_fetch_add_explicit(&hub->now, 1, memory_order_relaxed) + 1;
    bool left = false;
    wn_partition *p = wn_hub_pop_all(hub);
    while (p) {
        wn_partition *next = p->next;
        uintptr_t consumer;
        if (wn_partition_visit(p, now, age, &consumer)) {
            left = true;
            wn_hub_push(hub, p);
        } else {
            if (consumer)
                notify(argument, consumer);
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
    wn_partition *p = wn_hub_pop_all(hub);
    while (p) {
        wn_partition *next = p->next;
        wn_partition_release(p);
        p = next;
    }
}
