/*
 * The table of tracees: which partition a process belongs to.
 *
 * A hash table of fixed size with one lock for each slot. A callback of a process keeps its slot locked from the look-up
 * until its event is in the partition. When a process is taken out of the table (its exit, `off`, the end of the run), its
 * slot is locked. So no event of it is under way then.
 *
 * Ownership: an entry has a reference to its partition, which goes to the caller with `wn_slot_remove`.
 * Locking order: a slot, then a partition. Never two slots.
 */
#ifndef WITNESS_NATIVE_TABLE_H
#define WITNESS_NATIVE_TABLE_H

#include "witness_native_partition.h"
#include "witness_native_pids.h"

typedef struct {
    ws_lock lock;
    wn_tracee *first;
} wn_slot;

typedef struct {
    wn_slot *slots;
    size_t mask;
} wn_table;

/*
 * An entry for a process that is none of the run (witness_native_servers.h). `started`: processes of the run that it has spawned.
 */
typedef struct {
    wn_tracee tracee;
    bool always;
    bool for_run;
    wn_pids started;
} wn_server;

extern atomic_int_fast64_t wn_count_tracees;

/* `size`: a power of two. False: there is no memory. */
bool wn_table_init(wn_table *table, size_t size);
/* The table must be empty. */
void wn_table_free(wn_table *table);

static inline wn_slot *wn_table_slot(wn_table *table, uintptr_t process)
{
    return &table->slots[(process >> 4 ^ process >> 28) & table->mask];
}

/* These need the slot's lock. */
static inline wn_tracee *wn_slot_find(wn_slot *slot, uintptr_t process)
{
    wn_tracee *tracee = slot->first;
    while (tracee && tracee->process != process)
        tracee = tracee->next;
    return tracee;
}

/*
 * The process must not be there. If the partition is `fresh`, and so has no entry yet, this is the partition's own one: then
 * a callback finds all that it needs side by side. NULL: there is no memory.
 */
wn_tracee *wn_slot_insert(wn_slot *slot, uintptr_t process, wn_partition *partition, bool fresh);
/* The process must not be there. NULL: there is no memory. */
wn_server *wn_slot_insert_server(wn_slot *slot, uintptr_t process);
/* The caller gets the reference to its partition, which must still be there. */
void wn_slot_remove(wn_slot *slot, wn_tracee *tracee);

#endif
