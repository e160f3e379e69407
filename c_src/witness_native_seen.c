#include "witness_native_seen.h"

#include <stdlib.h>

/* Places that a signature may have. */
#define TRIES 16u

bool wn_seen_init(wn_seen *seen)
{
    /* A cleared flag, a false and a 0 are all zeros on these platforms. */
    *seen = (wn_seen){.lock = WS_LOCK_INIT, .places = calloc(WN_SEEN_PLACES, sizeof(wn_sight))};
    return seen->places != NULL;
}

void wn_seen_free(wn_seen *seen)
{
    free(seen->places);
    *seen = (wn_seen){.lock = WS_LOCK_INIT};
}

static bool is_used(const wn_sight *sight)
{
    return atomic_load_explicit(&sight->used, memory_order_acquire);
}

void wn_seen_add(wn_seen *seen, uintptr_t module, uintptr_t function, int arity)
{
    uint64_t hash = (uint64_t)module * UINT64_C(0x9E3779B97F4A7C15) + (uint64_t)function * 31 + (uint64_t)(unsigned)arity;
    hash ^= hash >> 29;
    for (unsigned i = 0; i < TRIES; i++) {
        wn_sight *sight = &seen->places[(hash + i) & (WN_SEEN_PLACES - 1)];
        if (!is_used(sight)) {
            ws_lock_take(&seen->lock);
            if (!is_used(sight)) {
                sight->module = module;
                sight->function = function;
                sight->arity = arity;
                atomic_store_explicit(&sight->used, true, memory_order_release);
            }
            ws_lock_give(&seen->lock);
        }
        if (sight->module == module && sight->function == function && sight->arity == arity) {
            atomic_fetch_add_explicit(&sight->count, 1, memory_order_relaxed);
            return;
        }
    }
}

const wn_sight *wn_seen_get(const wn_seen *seen, size_t place)
{
    return place < WN_SEEN_PLACES && is_used(&seen->places[place]) ? &seen->places[place] : NULL;
}
