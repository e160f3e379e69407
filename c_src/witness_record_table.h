/*
 * The recorder: the processes that are recorded, by id and by pid, and their births and ends.
 *
 * An id is a small number that no other process ever has. The table by id has two levels. A lower one (a leaf) is there
 * while one of its processes is. The memory of processes and of leaves is reused. Only `wr_recorder_clear` and
 * `wr_recorder_open` free it, when no thread appends. So a look-up of any id, at any time, finds a process or nothing, and
 * the `pid` tells whether it is the caller's. The caller's own process cannot end during the look-up.
 *
 * A process that spawns gets an id for its child first (`wr_child`). The id stays reserved until a child comes: if the
 * spawn fails, the next child gets it.
 *
 * Ownership: a process in a slot belongs to the recorder. The thread that takes it out of its slot has it alone, and gives
 * it back. For appending see witness_record_process.h. Locking: `whole`, then a slot, then a process, then a stream. `lock`
 * of the recorder (ids, free memory) is taken with no other lock.
 */
#ifndef WITNESS_RECORD_TABLE_H
#define WITNESS_RECORD_TABLE_H

#include "witness_record_process.h"

#define WR_LEAF_BITS 8
#define WR_LEAF_SIZE (1u << WR_LEAF_BITS)

typedef struct wr_leaf {
    struct wr_leaf *next; /* of the free ones */
    uint32_t count;
    _Atomic(wr_process *) at[WR_LEAF_SIZE];
} wr_leaf;

typedef struct {
    ws_lock lock;
    wr_process *first;
} wr_slot;

typedef struct wr_slab wr_slab;

typedef struct {
    wr_output output;
    uint32_t most_ids;          /* a multiple of the size of a leaf; set before any other thread has the recorder, and stays */
    _Atomic(wr_leaf *) *leaves; /* set at the same time, and stays; untouched places take no memory */
    wr_slot *slots;
    size_t mask;
    ws_lock whole; /* for a visit to every slot; taken before all others */
    ws_lock lock;  /* of what is below */
    wr_leaf *free_leaves;
    wr_process *free_processes;
    wr_slab *slabs;
    uintptr_t adopting;           /* not recorded, but its children are; 0: there is none. Set before any process is traced */
    uint32_t ids;                 /* how many were allocated */
    atomic_uint_fast32_t outside; /* children of processes that are not recorded */
    atomic_uint_fast64_t born, ended;
    char padding[64];
    atomic_uint_fast64_t shared; /* how many changes of shared memory have begun, and how many have ended: both together */
} wr_recorder;

/* False: there is no memory. Nothing is recorded yet. */
bool wr_recorder_init(wr_recorder *recorder, uint32_t most_ids);
void wr_recorder_free(wr_recorder *recorder);
/* No other thread appends, here and below. `slots`: a power of two. False: there is no memory. */
bool wr_recorder_open(wr_recorder *recorder, size_t budget, uint32_t order, bool full_ids, wr_clock *clock, size_t slots);
/* Forgets all processes; what can be taken stays. */
void wr_recorder_clear(wr_recorder *recorder);

/* The process of the caller, if it has this id. */
static inline wr_process *wr_own_process(wr_recorder *recorder, uint64_t id, uintptr_t self)
{
    if (id >= recorder->most_ids)
        return NULL;
    wr_leaf *leaf = atomic_load_explicit(&recorder->leaves[id >> WR_LEAF_BITS], memory_order_acquire);
    if (!leaf)
        return NULL;
    wr_process *process = atomic_load_explicit(&leaf->at[id & (WR_LEAF_SIZE - 1)], memory_order_acquire);
    return process && atomic_load_explicit(&process->pid, memory_order_acquire) == self ? process : NULL;
}

/* 0: it is not recorded, or has ended. */
uint32_t wr_identify(wr_recorder *recorder, uintptr_t pid);

/* The process with this pid, or NULL. On its own thread, or in a callback of the VM about it: it cannot end meanwhile. */
wr_process *wr_find(wr_recorder *recorder, uintptr_t pid);

/* From now on children of this process are recorded. False: there is no memory. */
bool wr_adopt(wr_recorder *recorder, uintptr_t pid);

/* The id of the next process that the caller spawns; 0: nothing is recorded. */
uint32_t wr_child(wr_recorder *recorder, uintptr_t self);
/* It did not spawn that process. */
void wr_unborn(wr_recorder *recorder, uintptr_t self);

/* Forgets an earlier process with the child's pid: its end was never reported. Returns whether the child will be recorded. */
bool wr_expects(wr_recorder *recorder, uintptr_t parent, uintptr_t child);
/*
 * An expected child is there, but has not started. On its parent's thread, and as its parent. `spawned`: external term of
 * the child and its function. If the parent has not announced the child, both have the same label on their messages.
 */
void wr_born(wr_recorder *recorder, uintptr_t parent, uintptr_t child, const wr_piece *spawned, unsigned count);

/* A process ends. It is in no slot any more, and the caller ends it with `wr_end_process`. NULL: it is not in the table. */
wr_process *wr_remove(wr_recorder *recorder, uintptr_t pid);
/* With its reason, or NULL, if it is not known. */
void wr_end_process(wr_recorder *recorder, wr_process *process, const uint8_t *reason, size_t size);

/* Afterwards all that processes had buffered, and all that streams have, can be taken. */
void wr_flush(wr_recorder *recorder);

#endif
