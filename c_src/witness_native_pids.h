/*
 * A set of processes: an open hash table without gaps between the places of processes with the same hash. The caller has a lock for
 * it.
 */
#ifndef WITNESS_NATIVE_PIDS_H
#define WITNESS_NATIVE_PIDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zeros is the empty set. */
typedef struct {
    uintptr_t *places; /* 0: free */
    size_t size;       /* a power of two, or 0 */
    size_t count;
} wn_pids;

/* False: there is no memory. */
bool wn_pids_add(wn_pids *pids, uintptr_t process);
/* False: it was not there. */
bool wn_pids_remove(wn_pids *pids, uintptr_t process);
void wn_pids_clear(wn_pids *pids);

#endif
