/*
 * How many processes were spawned with each signature, by module, function and arity. For people, if a property has monitored
 * nothing.
 *
 * A table of fixed size that only grows. A signature that finds no place is not counted.
 */
#ifndef WITNESS_NATIVE_SEEN_H
#define WITNESS_NATIVE_SEEN_H

#include "witness_shared_lock.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WN_SEEN_PLACES 1024u

typedef struct {
    atomic_bool used; /* the words below are set before it */
    uintptr_t module, function;
    int arity; /* -1: a fun of the module; its name is not known */
    atomic_uint_fast64_t count;
} wn_sight;

typedef struct {
    ws_lock lock; /* of new signatures */
    wn_sight *places;
} wn_seen;

/* False: there is no memory, and nothing is left behind. */
bool wn_seen_init(wn_seen *seen);
void wn_seen_free(wn_seen *seen);

void wn_seen_add(wn_seen *seen, uintptr_t module, uintptr_t function, int arity);

/* The place with this number, or NULL. */
const wn_sight *wn_seen_get(const wn_seen *seen, size_t place);

#endif
