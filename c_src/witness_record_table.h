/*
 * The recorder: who is recorded, by id and by pid, and the births and ends.
 *
 * An id is a small number that no other process ever has. The table by id has two levels, of which the lower one (a
 * leaf) is there while one of its processes is. The memory of processes and of leaves is used again, but given back
 * only by `wr_recorder_clear`, when nobody appends: so whatever id somebody asks for, at whatever moment, what is
 * found is a process, and its `pid` tells whether it is the caller's. Whose it is cannot end while he asks.
 *
 * A process that spawns gets an id for its child first (`wr_child`), which stays reserved until a child comes: if the
 * spawn has failed, the next one uses it.
 *
 * Ownership: a process that is in a slot belongs to the recorder. Whoever takes it out of its slot has it alone, and
 * gives it back. Appending is its own affair (witness_record_process.h). Locking: `whole`, then a slot, then a
 * process, then a stream. `lock` of the recorder (ids, free memory) by itself.
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
    wn_lock lock;
    wr_process *first;
} wr_slot;

typedef struct wr_slab wr_slab;

typedef struct {
    wr_output output;
    uint32_t most_ids;          /* a multiple of the size of a leaf; as is: */
    _Atomic(wr_leaf *) *leaves; /* set before anybody else has the recorder, and stay; untouched ones take no memory */
    wr_slot *slots;
    size_t mask;
    wn_lock whole; /* who visits every slot; taken before all others */
    wn_lock lock;  /* of what is below */
    wr_leaf *free_leaves;
    wr_process *free_processes;
    wr_slab *slabs;
    uintptr_t adopting; /* children of this process are recorded, though it is not; 0: of nobody. Set before anybody is traced */
    uint32_t ids; /* so many were given away */
    atomic_uint_fast32_t outside; /* children of processes that are not recorded */
    atomic_uint_fast64_t born, ended;
} wr_recorder;

/* False: there is no memory. Nothing is recorded yet. */
bool wr_recorder_init(wr_recorder *recorder, uint32_t most_ids);
void wr_recorder_free(wr_recorder *recorder);
/* Nobody else appends, here and below. `slots`: a power of two. False: there is no memory. */
bool wr_recorder_open(wr_recorder *recorder, size_t budget, uint32_t order, bool full_ids, size_t slots);
/* Forgets all processes; what can be taken stays. */
void wr_recorder_clear(wr_recorder *recorder);

/* The process of the caller, if it has this id. */
static inline wr_process *wr_mine(wr_recorder *recorder, uint64_t id, uintptr_t self)
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

/* The process with this pid, or NULL. On its own thread, or in a callback of the VM that tells of it: it cannot end meanwhile. */
wr_process *wr_tracee(wr_recorder *recorder, uintptr_t pid);

/* From now on children of this process are recorded. False: there is no memory. */
bool wr_adopt(wr_recorder *recorder, uintptr_t pid);

/* The id of the next process that the caller spawns; 0: nothing is recorded. */
uint32_t wr_child(wr_recorder *recorder, uintptr_t self);
/* It did not spawn it. */
void wr_unborn(wr_recorder *recorder, uintptr_t self);

/* Forgets whoever had the child's pid: his end was never reported. Whether the child will be recorded. */
bool wr_expects(wr_recorder *recorder, uintptr_t parent, uintptr_t child);
/*
 * A child that is expected is there, but has not begun. On its parent's thread, and as its parent. `spawned`: external
 * term of whom and with what. A child that its parent has not announced is not told apart from him by the label of its
 * messages.
 */
void wr_born(wr_recorder *recorder, uintptr_t parent, uintptr_t child, const wr_piece *spawned, unsigned count);

/* A process ends. It is nobody's any more, and whoever has it ends it with `wr_gone`. NULL: it is not recorded. */
wr_process *wr_remove(wr_recorder *recorder, uintptr_t pid);
/* With its reason, or NULL, where it is not known. */
void wr_gone(wr_recorder *recorder, wr_process *process, const uint8_t *reason, size_t size);

/* All that processes hold, and all that streams have, can be taken. */
void wr_flush(wr_recorder *recorder);

#endif
