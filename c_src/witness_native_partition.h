/*
 * Partitions: buffers of events, each with many writers (its processes) and one consumer.
 *
 * The contents of a batch are up to the user of this code: here it is a pointer, a number of events and a number of bytes.
 * This code decides whether an event may be added, when the consumer must be notified, and what it gets.
 *
 * Life of a partition, with its `end`:
 *
 *   OPEN --(its last member leaves)--> COMPLETE
 *     |  \--(wn_partition_stop)------> STOPPED
 *     |-----(an event does not fit)--> GAP          what is buffered is dropped, so that its memory is free at once
 *     \-----(a member hides itself)--> GAP          what is buffered stays: nothing before is missing
 *
 *   An end is taken once, with all that was buffered before it; nothing is added after an end. `unread` is independent of
 *   these: the consumer is gone or wants no more, so what is buffered is dropped, and nothing is added.
 *
 * The consumer is notified once that there is something to take (`notified`), and again only when it has taken all there was
 * and more has come: after `batch` events, at an end, or when the timer finds the partition in its hub's list.
 *
 * Instead of a consumer of its own a partition may have a *shard* (`wn_shard`, witness_native_shard.h), which takes from very
 * many. Then `notified` means that the partition is in the shard's list, and the shard's consumer is notified.
 *
 * Ownership: counted references. The handle that the consumer holds has one, each member one, the hub's list one while
 * the partition is in it, and the same for the table and the list of its shard. A partition has a reference to its hub.
 *
 * Locking: each function takes the partition's lock by itself, except between `wn_partition_begin` and
 * `wn_partition_added`. Meanwhile only the lock of the free blocks (witness_native_buffer.c) is taken.
 */
#ifndef WITNESS_NATIVE_PARTITION_H
#define WITNESS_NATIVE_PARTITION_H

#include "witness_native_hub.h"
#include "witness_shared_lock.h"

typedef struct wn_shard wn_shard;

typedef enum { WN_OPEN, WN_COMPLETE, WN_STOPPED, WN_GAP } wn_end;

typedef enum { WN_NO_GAP, WN_OVERFLOW, WN_MEMORY, WN_SIZE, WN_LOST, WN_SENSITIVE } wn_reason;

/* Kinds of events; a partition has those that its consumer wants. */
enum { WN_SEND = 1, WN_RECV = 2, WN_FORK = 4, WN_INIT = 8, WN_EXIT = 16, WN_CALL = 32, WN_RETURN = 64, WN_ALL = 127 };

/* An entry of the table of tracees (witness_native_table.h). */
typedef struct wn_tracee {
    struct wn_tracee *next;
    uintptr_t process;
    wn_partition *partition; /* NULL: its events are not read */
    bool held;               /* the run waits for its end, and for those of its children */
    bool launcher;           /* a process of Witness itself: it has no events, and the run waits for its children */
    bool hidden;             /* the VM reports nothing of it any more, so its end is watched for */
    bool embedded;           /* in its partition, and not in memory of its own */
    bool server;             /* a `wn_server`, which has no partition */
} wn_tracee;

/* What an event needs comes first, in two cache lines: with many partitions, misses are most of its cost. */
struct wn_partition {
    wn_tracee first; /* of the process that it was made for */
    ws_lock lock;
    uint8_t end;
    uint8_t reason;
    bool ended; /* the end was taken */
    bool notified;
    bool is_listed;
    bool grouped;       /* children of its members are its members; set before there are any */
    atomic_bool unread; /* changes with the lock */
    atomic_uchar kinds;
    uint32_t count; /* events in the batch */
    size_t bytes;   /* of the batch */
    size_t charged; /* to the budget for the batch, at least `bytes` */
    void *batch;
    uintptr_t *at; /* where the batch goes on, and for how many words: of the user, 0 in a new batch */
    size_t left;
    wn_hub *hub;
    size_t unhandled; /* charged for what the consumer has taken and not handled */
    uint32_t members;
    uintptr_t consumer;
    wn_partition *next;  /* in the hub's list */
    wn_shard *shard;     /* NULL, or the shard that takes from it, instead of a consumer of its own */
    wn_partition *ready; /* the next one in the shard's list */
    uint64_t place;      /* in the shard's table */
    void *birth;         /* not part of the batch, so that no gap drops it */
    size_t birth_bytes;  /* charged to `births` */
    ws_budget *births;
    uint64_t missing;
    uint32_t since; /* tick at which the oldest event of the batch came */
    atomic_uint_fast32_t refs;
};

/* How many there are in this process, for tests. */
extern atomic_int_fast64_t wn_count_partitions;

/* NULL when there is no memory. The caller has the first reference. */
wn_partition *wn_partition_new(wn_hub *hub, bool grouped);
void wn_partition_keep(wn_partition *partition);
void wn_partition_release(wn_partition *partition);

/*
 * To add an event of `bytes`: if `begin` returns true, the partition is locked. The caller puts the event into
 * `partition->batch` (which it makes if it is NULL), and calls `added`. Otherwise the event is not wanted, or lost in a gap.
 */
bool wn_partition_begin(wn_partition *partition, size_t bytes, unsigned *todo, uintptr_t *consumer);
unsigned wn_partition_added(wn_partition *partition, bool at_once, uintptr_t *consumer);
/* Instead of `added`, when the event could not be made. */
unsigned wn_partition_failed(wn_partition *partition, uintptr_t *consumer);

/* A member has a reference; one that leaves gives it back. */
void wn_partition_join(wn_partition *partition);
unsigned wn_partition_leave(wn_partition *partition, uintptr_t *consumer);

/* Ends that come from outside. */
unsigned wn_partition_stop(wn_partition *partition, uintptr_t *consumer);
unsigned wn_partition_gap(wn_partition *partition, wn_reason reason, uint64_t missing, uintptr_t *consumer);
/* From here on events are missing; those before are taken as usual. */
unsigned wn_partition_cut(wn_partition *partition, wn_reason reason, uintptr_t *consumer);
void wn_partition_unread(wn_partition *partition);
/* The same, if this is the consumer. */
void wn_partition_abandon(wn_partition *partition, uintptr_t consumer);
static inline bool wn_partition_is_unread(wn_partition *partition)
{
    return atomic_load_explicit(&partition->unread, memory_order_relaxed);
}

/* The consumer needs only these kinds. Others may have come before. */
static inline void wn_partition_narrow(wn_partition *partition, unsigned kinds)
{
    atomic_store_explicit(&partition->kinds, (unsigned char)kinds, memory_order_relaxed);
}

static inline bool wn_partition_wants(wn_partition *partition, unsigned kind)
{
    return atomic_load_explicit(&partition->kinds, memory_order_relaxed) & kind;
}

/* --- partitions of a shard ------------------------------------------------------- */

/*
 * The first event. It is charged to a budget of its own, since the reader must know of the process in any case. Must be
 * called before any other thread has the partition. False: it does not fit into the budget, and stays the caller's.
 */
bool wn_partition_birth(wn_partition *partition, void *birth, size_t bytes, ws_budget *births);
/* The birth has taken place, and counts as an event. */
unsigned wn_partition_born(wn_partition *partition);

/* --- the timer ------------------------------------------------------------------- */

/*
 * Decides about a partition of the hub's list at tick `now`. `consumer`: to be notified; 0: none. True: the partition stays in
 * the list. False: the reference of the list is the caller's.
 */
bool wn_partition_visit(wn_partition *partition, uint32_t now, uint32_t age, uintptr_t *consumer);

#endif
