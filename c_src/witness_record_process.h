/*
 * What one process has recorded and not handed over yet: entries of its order, and data.
 *
 * The process itself appends entries, and callbacks of the VM do so on its thread. When it has ended, the process that
 * reports the end may append. So two never append at the same time.
 * So an entry takes no lock and no atomic read-modify-write. Its bytes are written after those that are there, and then
 * `state` says how many there are. It also counts the equal steps since then (a run), which only become bytes when
 * something else comes. A flush reads `state`, and writes out the bytes and the run *as they are at this moment*:
 *
 *                       taken           used                      state = used, kind and length of the run
 *   order  | a a a a a a | b b b b b b b |            + run 1..r   (atomic, stored by the process only)
 *            written out    to be written               `emitted` of the r were written out
 *
 * It never changes what the process reads, only `taken` and `emitted`, which are its own. If a run grows after that, the
 * process closes it with all its r steps, at the place `taken`. The next flush finds it there, and subtracts those that
 * were `emitted`. If there is no space, the process writes out itself, under the lock, and starts with an empty buffer.
 *
 * A sub-trace is: process id, number (0, 1, .. of this process and file), length, bytes. Items of data are never
 * divided. `again` refers to the sender of the last `from` of the process, whatever is in between, in any sub-trace.
 *
 * Locking: `lock` protects what is below it, and `order` against growing while it is written out. A stream's lock is
 * taken after it.
 */
#ifndef WITNESS_RECORD_PROCESS_H
#define WITNESS_RECORD_PROCESS_H

#include "witness_record_stream.h"

typedef enum { WR_FROM, WR_AGAIN, WR_CONTENT, WR_TIMEOUT, WR_SPAWN, WR_RESULT, WR_RAISE, WR_MARK } wr_kind;

typedef enum { WR_EXIT, WR_NAMED, WR_HASH, WR_SENT, WR_CONTENTS, WR_WAITED, WR_ORDERED, WR_TIME } wr_mark;

/* The forms of a result: an item of data, a number, and then those of a fixed list of terms. */
#define WR_FORM_DATA 0u
#define WR_FORM_NUMBER 1u
#define WR_FORM_FIXED 2u

/* The entries of most short-lived processes fit here. */
#define WR_INLINE_BYTES 40u
/* The most bytes of an entry that has no data, and of a run. */
#define WR_ENTRY_BYTES 24u
#define WR_RUN_BYTES 6u
/* The time of an entry. */
#define WR_TIME_BYTES 11u
#define WR_DATA_BYTES 4096u
/* After so many messages a process is asked to check its heap. The counter wraps at this number. */
#define WR_HEAP_CHECK_MESSAGES 256
/* After the first so many messages it is worth taking its trace flags off. */
#define WR_UNTRACE_MESSAGES 64
_Static_assert(WR_HEAP_CHECK_MESSAGES % WR_UNTRACE_MESSAGES == 0, "what is seen at once");
_Static_assert(WR_HEAP_CHECK_MESSAGES == UINT8_MAX + 1, "a counter of a byte");

typedef struct wr_process {
    _Atomic(uintptr_t) pid; /* the process that appends; 0: none, it is free */
    atomic_uint_fast64_t state;
    uint8_t *order;
    uint32_t id;       /* 0: it is not recorded, and is here only for its child */
    uint32_t last;     /* sender of the last `from`; 0: there was none */
    uint32_t capacity; /* of order */
    uint32_t children;
    uint32_t pending;  /* the id of its next child; 0: none */
    bool spawning;     /* a child with that id may come now */
    uint8_t messages;  /* how many it has taken, modulo WR_HEAP_CHECK_MESSAGES */
    bool untraced : 1; /* it was asked to have its flags taken off */
    bool waits : 1;    /* it has begun a `receive`, and has appended nothing since; only the process changes the two */
    ws_lock lock;
    uint32_t taken, emitted;
    uint32_t order_number, data_number;
    uint8_t *data;
    uint32_t data_used, data_capacity;
    struct wr_process *next; /* in its slot; of the free ones */
    uint8_t inline_order[WR_INLINE_BYTES];
} wr_process;
_Static_assert(sizeof(wr_process) <= 128 || sizeof(void *) != 8, "what one takes");

/* A process that no other thread knows yet. */
void wr_process_init(wr_process *process, uintptr_t pid, uint32_t id);
/* Frees its buffers. No other thread knows it any more. */
void wr_process_clear(wr_output *output, wr_process *process);

/* --- state: bytes used (20 bits), kind of the run (3 bits), its length ------------------- */

#define WR_MOST_ORDER 65536u
#define WR_MOST_RUN UINT32_C(0x7FFFFFFF)
#define WR_STATE(used, kind, run) ((uint64_t)(used) | (uint64_t)(kind) << 20 | (uint64_t)(run) << 23)
#define WR_USED(state) ((uint32_t)((state) & 0xFFFFFu))
#define WR_RUN_KIND(state) ((unsigned)((state) >> 20 & 7u))
#define WR_RUN(state) ((uint32_t)((state) >> 23))

/* --- numbers --------------------------------------------------------------------- */

#define WR_LEB_BYTES 10u

static inline uint8_t *wr_leb(uint8_t *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

/* The first byte of an entry, and what its value takes beyond it. */
static inline uint8_t *wr_head(uint8_t *at, wr_kind kind, uint64_t value)
{
    if (value < 31) {
        *at++ = (uint8_t)((unsigned)kind << 5 | (unsigned)value);
        return at;
    }
    *at++ = (uint8_t)((unsigned)kind << 5 | 31u);
    return wr_leb(at, value - 31);
}

static inline uint64_t wr_zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static inline uint8_t *wr_bytes64(uint8_t *at, uint64_t value)
{
    for (int i = 0; i < 8; i++)
        *at++ = (uint8_t)(value >> 8 * i);
    return at;
}

/* The first byte of an entry that has an id. */
static inline uint8_t *wr_head_id(const wr_output *output, uint8_t *at, wr_kind kind, uint32_t id)
{
    if (!output->full_ids)
        return wr_head(at, kind, id);
    return wr_bytes64(wr_head(at, kind, 0), id);
}

/* --- entries, appended by the process. False: the recording has ended ---------------- */

/* Reserves space for a run, a time and an entry. Changes `state`. */
bool wr_reserve(wr_output *output, wr_process *process);

/* Room for an entry, after the run, which is closed; NULL: the recording has ended. The entry has the time of the one before. */
static inline uint8_t *wr_begin_untimed(wr_output *output, wr_process *process)
{
    uint64_t state = atomic_load_explicit(&process->state, memory_order_relaxed);
    process->waits = false;
    if (WR_USED(state) + WR_RUN_BYTES + WR_ENTRY_BYTES + (wr_has_times(output) ? WR_TIME_BYTES : 0) > process->capacity) {
        if (!wr_reserve(output, process))
            return NULL;
        state = atomic_load_explicit(&process->state, memory_order_relaxed);
    }
    uint8_t *at = process->order + WR_USED(state);
    return WR_RUN(state) ? wr_head(at, (wr_kind)WR_RUN_KIND(state), WR_RUN(state)) : at;
}

static inline uint8_t *wr_time(uint8_t *at, uint64_t now)
{
    return wr_leb(wr_head(at, WR_MARK, WR_TIME), now);
}

/* The same, after the time of the entry, if entries have times. */
static inline uint8_t *wr_begin(wr_output *output, wr_process *process)
{
    uint8_t *at = wr_begin_untimed(output, process);
    return at && wr_has_times(output) ? wr_time(at, wr_now(output)) : at;
}

/* The entry is complete. */
static inline void wr_done(wr_process *process, const uint8_t *end)
{
    atomic_store_explicit(&process->state, WR_STATE(end - process->order, 0, 0), memory_order_release);
}

/* One more step of this kind. With times each has its own, so a run has one step. */
static inline bool wr_step(wr_output *output, wr_process *process, wr_kind kind)
{
    uint64_t state = atomic_load_explicit(&process->state, memory_order_relaxed);
    process->waits = false;
    if (WR_RUN_KIND(state) == (unsigned)kind && WR_RUN(state) < WR_MOST_RUN && !wr_has_times(output)) {
        atomic_store_explicit(&process->state, state + WR_STATE(0, 0, 1), memory_order_release);
        return true;
    }
    uint8_t *at = wr_begin(output, process);
    if (!at)
        return false;
    atomic_store_explicit(&process->state, WR_STATE(at - process->order, kind, 1), memory_order_release);
    return true;
}

static inline bool wr_from(wr_output *output, wr_process *process, uint32_t sender)
{
    if (sender == process->last)
        return wr_step(output, process, WR_AGAIN);
    uint8_t *at = wr_begin(output, process);
    if (!at)
        return false;
    process->last = sender;
    wr_done(process, wr_head_id(output, at, WR_FROM, sender));
    return true;
}

/* At the time of the birth. */
bool wr_spawn(wr_output *output, wr_process *process, uint32_t child, uint64_t now);
bool wr_result_number(wr_output *output, wr_process *process, uint64_t call, int64_t number);
bool wr_result_fixed(wr_output *output, wr_process *process, uint64_t call, unsigned form);
bool wr_named(wr_output *output, wr_process *process, uint32_t to);
/* Of the message that was taken last, like WR_CONTENTS: both have its time. */
bool wr_hash(wr_output *output, wr_process *process, uint64_t hash);
/* The place of the next result in the order of calls on shared memory. */
bool wr_ordered(wr_output *output, wr_process *process, uint64_t begin, uint64_t end);

/* With an item of data, which is added before its entry: a reader that finds the entry finds the item. */
bool wr_content(wr_output *output, wr_process *process, const uint8_t *item, size_t size);
bool wr_result_data(wr_output *output, wr_process *process, uint64_t call, const uint8_t *item, size_t size);
bool wr_raise(wr_output *output, wr_process *process, uint64_t call, const uint8_t *item, size_t size);
/* WR_SENT, WR_CONTENTS. */
bool wr_marked(wr_output *output, wr_process *process, wr_mark mark, const uint8_t *item, size_t size);

/* The last entry, after WR_WAITED if it waits. It is in no table any more. Afterwards all that it had is in the streams. */
bool wr_exit(wr_output *output, wr_process *process, const uint8_t *item, size_t size);

/* --- handing over ---------------------------------------------------------------- */

/* By any thread. If this fails since the recording has just ended, a second call can succeed. */
bool wr_write_out(wr_output *output, wr_process *process);

#endif
