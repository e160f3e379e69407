#include "witness_record_table.h"

#include "witness_shared_memory.h"

#include <stdlib.h>
#include <string.h>

/* Processes of a slab; each begins at a line of the cache. */
#define SLAB 63u
#define LINE 64u

struct wr_slab {
    struct wr_slab *next;
    wr_process processes[];
};

/* Records of the stream of processes. */
#define BIRTH 1u
#define END 2u
#define BORN_AT 5u

bool wr_recorder_init(wr_recorder *recorder, uint32_t most_ids)
{
    memset(recorder, 0, sizeof *recorder);
    recorder->most_ids = most_ids;
    recorder->leaves = calloc(most_ids / WR_LEAF_SIZE, sizeof *recorder->leaves);
    return recorder->leaves != NULL;
}

void wr_recorder_free(wr_recorder *recorder)
{
    wr_recorder_clear(recorder);
    wr_output_clear(&recorder->output);
    free(recorder->leaves);
}

static void clear(wr_recorder *recorder)
{
    for (size_t i = 0; recorder->slots && i <= recorder->mask; i++)
        for (wr_process *process = recorder->slots[i].first; process; process = process->next)
            wr_process_clear(&recorder->output, process);
    free(recorder->slots);
    recorder->slots = NULL;
    /* No id is larger than the last one that was allocated. */
    for (uint32_t i = 0; i <= recorder->ids / WR_LEAF_SIZE; i++) {
        wr_leaf *leaf = atomic_load(&recorder->leaves[i]);
        if (leaf)
            ws_free(leaf);
        atomic_store(&recorder->leaves[i], NULL);
    }
    for (wr_leaf *leaf = recorder->free_leaves, *next; leaf; leaf = next) {
        next = leaf->next;
        ws_free(leaf);
    }
    for (wr_slab *slab = recorder->slabs, *next; slab; slab = next) {
        next = slab->next;
        ws_free(slab);
    }
    recorder->free_leaves = NULL;
    recorder->free_processes = NULL;
    recorder->slabs = NULL;
}

void wr_recorder_clear(wr_recorder *recorder)
{
    ws_lock_take(&recorder->whole);
    clear(recorder);
    ws_lock_give(&recorder->whole);
}

bool wr_recorder_open(wr_recorder *recorder, size_t budget, uint32_t order, bool full_ids, wr_clock *clock, size_t slots)
{
    ws_lock_take(&recorder->whole);
    clear(recorder);
    wr_output_clear(&recorder->output);
    recorder->slots = calloc(slots, sizeof *recorder->slots);
    recorder->mask = slots - 1;
    recorder->ids = 0;
    recorder->adopting = 0;
    atomic_store(&recorder->outside, 0);
    atomic_store(&recorder->born, 0);
    atomic_store(&recorder->ended, 0);
    atomic_store(&recorder->shared, 0);
    bool good = recorder->slots != NULL;
    if (good)
        wr_output_open(&recorder->output, budget, order, full_ids, clock);
    ws_lock_give(&recorder->whole);
    return good;
}

/* --- memory, with the recorder's lock ------------------------------------------------ */

static bool new_slab(wr_recorder *recorder)
{
    wr_slab *slab = ws_alloc(sizeof *slab + SLAB * sizeof(wr_process) + LINE);
    if (!slab)
        return false;
    slab->next = recorder->slabs;
    recorder->slabs = slab;
    uintptr_t first = ((uintptr_t)slab->processes + LINE - 1) & ~(uintptr_t)(LINE - 1);
    for (uint32_t i = 0; i < SLAB; i++) {
        wr_process *process = (wr_process *)first + i;
        atomic_init(&process->pid, 0);
        process->next = recorder->free_processes;
        recorder->free_processes = process;
    }
    return true;
}

static wr_process *new_process(wr_recorder *recorder)
{
    if (!recorder->free_processes && !new_slab(recorder))
        return NULL;
    wr_process *process = recorder->free_processes;
    recorder->free_processes = process->next;
    return process;
}

static void give_back(wr_recorder *recorder, wr_process *process)
{
    process->next = recorder->free_processes;
    recorder->free_processes = process;
}

static wr_leaf *leaf_of(wr_recorder *recorder, uint32_t id)
{
    _Atomic(wr_leaf *) *place = &recorder->leaves[id >> WR_LEAF_BITS];
    wr_leaf *leaf = atomic_load_explicit(place, memory_order_relaxed);
    if (leaf)
        return leaf;
    leaf = recorder->free_leaves;
    if (leaf) {
        recorder->free_leaves = leaf->next;
    } else {
        leaf = ws_alloc(sizeof *leaf);
        if (!leaf)
            return NULL;
        for (uint32_t i = 0; i < WR_LEAF_SIZE; i++)
            atomic_init(&leaf->at[i], NULL);
        leaf->count = 0;
    }
    atomic_store_explicit(place, leaf, memory_order_release);
    return leaf;
}

/* NULL: there is no memory. */
static wr_process *enter(wr_recorder *recorder, uintptr_t pid, uint32_t id)
{
    ws_lock_take(&recorder->lock);
    wr_process *process = new_process(recorder);
    wr_leaf *leaf = process && id ? leaf_of(recorder, id) : NULL;
    if (process && id && !leaf) {
        give_back(recorder, process);
        process = NULL;
    }
    if (process)
        wr_process_init(process, pid, id);
    if (leaf) {
        leaf->count++;
        atomic_store_explicit(&leaf->at[id & (WR_LEAF_SIZE - 1)], process, memory_order_release);
    }
    ws_lock_give(&recorder->lock);
    if (!process)
        wr_end(&recorder->output, WR_MEMORY);
    return process;
}

static void leave(wr_recorder *recorder, wr_process *process)
{
    uint32_t id = process->id;
    wr_process_clear(&recorder->output, process);
    atomic_store_explicit(&process->pid, 0, memory_order_release);
    ws_lock_take(&recorder->lock);
    if (id) {
        _Atomic(wr_leaf *) *place = &recorder->leaves[id >> WR_LEAF_BITS];
        wr_leaf *leaf = atomic_load_explicit(place, memory_order_relaxed);
        atomic_store_explicit(&leaf->at[id & (WR_LEAF_SIZE - 1)], NULL, memory_order_relaxed);
        if (--leaf->count == 0) {
            atomic_store_explicit(place, NULL, memory_order_relaxed);
            leaf->next = recorder->free_leaves;
            recorder->free_leaves = leaf;
        }
    }
    give_back(recorder, process);
    ws_lock_give(&recorder->lock);
}

/* 0: there are no more, and the recording has ended. */
static uint32_t new_id(wr_recorder *recorder)
{
    ws_lock_take(&recorder->lock);
    uint32_t id = recorder->ids + 1 < recorder->most_ids ? ++recorder->ids : 0;
    ws_lock_give(&recorder->lock);
    if (!id)
        wr_end(&recorder->output, WR_IDS);
    return id;
}

/* --- slots ----------------------------------------------------------------------- */

static wr_slot *slot_of(wr_recorder *recorder, uintptr_t pid)
{
    return &recorder->slots[(pid >> 4 ^ pid >> 28) & recorder->mask];
}

/* The slot is locked. */
static wr_process **link_of(wr_slot *slot, uintptr_t pid)
{
    wr_process **link = &slot->first;
    while (*link && atomic_load_explicit(&(*link)->pid, memory_order_relaxed) != pid)
        link = &(*link)->next;
    return link;
}

/* The process itself may go on with what it finds: no other thread ends it. */
wr_process *wr_find(wr_recorder *recorder, uintptr_t pid)
{
    if (!recorder->slots)
        return NULL;
    wr_slot *slot = slot_of(recorder, pid);
    ws_lock_take(&slot->lock);
    wr_process *process = *link_of(slot, pid);
    ws_lock_give(&slot->lock);
    return process;
}

static void insert(wr_recorder *recorder, wr_process *process)
{
    wr_slot *slot = slot_of(recorder, atomic_load_explicit(&process->pid, memory_order_relaxed));
    ws_lock_take(&slot->lock);
    process->next = slot->first;
    slot->first = process;
    ws_lock_give(&slot->lock);
}

uint32_t wr_identify(wr_recorder *recorder, uintptr_t pid)
{
    if (!recorder->slots)
        return 0;
    wr_slot *slot = slot_of(recorder, pid);
    ws_lock_take(&slot->lock);
    wr_process *process = *link_of(slot, pid);
    uint32_t id = process ? process->id : 0;
    ws_lock_give(&slot->lock);
    return id;
}

/* --- births ---------------------------------------------------------------------- */

/* As a parent, which may not be recorded. NULL: there is no memory. */
static wr_process *parent_of(wr_recorder *recorder, uintptr_t pid)
{
    wr_process *process = wr_find(recorder, pid);
    if (!process && (process = enter(recorder, pid, 0)))
        insert(recorder, process);
    return process;
}

bool wr_adopt(wr_recorder *recorder, uintptr_t pid)
{
    recorder->adopting = pid;
    return parent_of(recorder, pid) != NULL;
}

uint32_t wr_child(wr_recorder *recorder, uintptr_t self)
{
    wr_process *process = wr_is_open(&recorder->output) ? parent_of(recorder, self) : NULL;
    if (!process)
        return 0;
    if (!process->pending)
        process->pending = new_id(recorder);
    process->spawning = process->pending != 0;
    return process->pending;
}

void wr_unborn(wr_recorder *recorder, uintptr_t self)
{
    wr_process *process = wr_find(recorder, self);
    if (process)
        process->spawning = false;
}

/* Length and term follow the numbers; if there are times, a record with that of the birth follows. */
static void record_birth(wr_recorder *recorder, uint32_t id, uint32_t parent, uint32_t place, const wr_piece *spawned,
                         unsigned count, uint64_t now)
{
    uint8_t head[1 + 4 * WR_LEB_BYTES], born[1 + 2 * WR_LEB_BYTES] = {BORN_AT}, *at = head;
    wr_piece pieces[8] = {{head, 0}};
    uint64_t size = 0;
    for (unsigned i = 0; i < count; i++) {
        pieces[i + 1] = spawned[i];
        size += spawned[i].size;
    }
    *at++ = BIRTH;
    at = wr_leb(wr_leb(wr_leb(wr_leb(at, id), parent), place), size);
    pieces[0].size = (size_t)(at - head);
    if (wr_has_times(&recorder->output))
        pieces[++count] = (wr_piece){born, (size_t)(wr_leb(wr_leb(born + 1, id), now) - born)};
    (void)wr_stream_add(&recorder->output, WR_PROCESSES, pieces, count + 1);
}

bool wr_expects(wr_recorder *recorder, uintptr_t parent_pid, uintptr_t child_pid)
{
    wr_process *old = wr_remove(recorder, child_pid);
    if (old)
        wr_end_process(recorder, old, NULL, 0);
    if (!wr_is_open(&recorder->output))
        return false;
    /* A child of a process outside is outside, unless it was announced, or the parent is the one that adopts. */
    wr_process *parent = wr_find(recorder, parent_pid);
    return parent && (parent->spawning || parent->id != 0 || parent_pid == recorder->adopting);
}

void wr_born(wr_recorder *recorder, uintptr_t parent_pid, uintptr_t child_pid, const wr_piece *spawned, unsigned count)
{
    wr_process *parent = wr_find(recorder, parent_pid);
    bool announced = parent->spawning;
    uint32_t id = parent->pending ? parent->pending : new_id(recorder);
    if (!id)
        return;
    if (!announced)
        wr_verify(&recorder->output);
    parent->pending = 0;
    parent->spawning = false;
    uint32_t place =
        parent->id ? parent->children++ : (uint32_t)atomic_fetch_add_explicit(&recorder->outside, 1, memory_order_relaxed);
    wr_process *child = enter(recorder, child_pid, id);
    if (!child)
        return;
    uint64_t now = wr_has_times(&recorder->output) ? wr_now(&recorder->output) : 0;
    record_birth(recorder, id, parent->id, place, spawned, count, now);
    if (parent->id)
        (void)wr_spawn(&recorder->output, parent, id, now);
    insert(recorder, child);
    atomic_fetch_add_explicit(&recorder->born, 1, memory_order_relaxed);
}

/* --- ends ------------------------------------------------------------------------ */

wr_process *wr_remove(wr_recorder *recorder, uintptr_t pid)
{
    if (!recorder->slots)
        return NULL;
    wr_slot *slot = slot_of(recorder, pid);
    ws_lock_take(&slot->lock);
    wr_process **link = link_of(slot, pid), *process = *link;
    if (process)
        *link = process->next;
    ws_lock_give(&slot->lock);
    return process;
}

void wr_end_process(wr_recorder *recorder, wr_process *process, const uint8_t *reason, size_t size)
{
    if (process->id) {
        if (reason && wr_exit(&recorder->output, process, reason, size)) {
            uint8_t record[1 + WR_LEB_BYTES] = {END};
            wr_piece piece = {record, (size_t)(wr_leb(record + 1, process->id) - record)};
            (void)wr_stream_add(&recorder->output, WR_PROCESSES, &piece, 1);
        } else if (!reason && !wr_write_out(&recorder->output, process)) {
            (void)wr_write_out(&recorder->output, process); /* the recording has just ended, so it can be now */
        }
        atomic_fetch_add_explicit(&recorder->ended, 1, memory_order_relaxed);
    }
    leave(recorder, process);
}

void wr_flush(wr_recorder *recorder)
{
    ws_lock_take(&recorder->whole);
    for (size_t i = 0; recorder->slots && i <= recorder->mask; i++) {
        wr_slot *slot = &recorder->slots[i];
        ws_lock_take(&slot->lock);
        for (wr_process *process = slot->first; process; process = process->next)
            if (process->id && !wr_write_out(&recorder->output, process))
                (void)wr_write_out(&recorder->output, process); /* as above */
        ws_lock_give(&slot->lock);
    }
    for (int name = 0; name < WR_STREAMS; name++)
        wr_stream_seal(&recorder->output, (wr_name)name);
    ws_lock_give(&recorder->whole);
}
