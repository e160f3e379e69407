/*
 * What a recording hands to its writer: three streams of blocks, and one budget for all its memory.
 *
 * A block has whole sub-traces, or whole records, one after the other. They are in their stream in the order in which they
 * were added. So the sub-traces of one process come in their order, whichever thread added them.
 *
 *            add                 no space, or flush                take
 *   bytes ---------> open block ---------------------> sealed ---------> the writer's
 *
 * Ownership: a block belongs to its stream until it is taken; then its memory is the taker's. It stays charged until the
 * next take, which says that the blocks before were handled.
 * Locking: each stream by its lock, under which only bytes of small pieces are copied; the sum of what the writer has by
 * `taking`. The lock of a process may be taken before these, never after them.
 *
 * The end: when the budget is exceeded (or for another reason) the recording ends, once, for the first reason. Nothing
 * is appended after it. What processes held at that moment can still be written out: it was charged, and so is
 * bounded.
 */
#ifndef WITNESS_RECORD_STREAM_H
#define WITNESS_RECORD_STREAM_H

#include "witness_shared_budget.h"
#include "witness_shared_lock.h"

#include <stdint.h>

/* In the order in which they are taken. */
typedef enum { WR_PROCESSES, WR_DATA, WR_ORDER } wr_name;
#define WR_STREAMS 3

/* WR_VERIFY: recording, but the label of a message may not be its sender's. */
typedef enum { WR_CLOSED, WR_OPEN, WR_VERIFY } wr_mode;

/* WR_IDS: there are no more ids. WR_SENDER: the id of a sender was invalid. */
typedef enum { WR_RUNNING, WR_BUDGET, WR_MEMORY, WR_IDS, WR_SENDER, WR_STOPPED } wr_reason;

/* Nanoseconds. What was caused by something before is never less. */
typedef int64_t wr_clock(void);

typedef struct wr_block {
    struct wr_block *next;
    size_t used, size;
    uint8_t bytes[];
} wr_block;

#define WR_BLOCK_BYTES ((size_t)65536 - sizeof(wr_block))

typedef struct {
    ws_lock lock;
    wr_block *open, *first, *last; /* the one that is added to; those that are sealed, oldest first */
    uint64_t sealed;               /* how many are sealed */
    uint64_t bytes;                /* added in all */
    char padding[64];
} wr_stream;

typedef struct {
    atomic_int mode;   /* wr_mode */
    atomic_int reason; /* wr_reason */
    uint32_t order;    /* most bytes of entries of a process; this and what follows are set before there are processes */
    bool full_ids;
    wr_clock *clock; /* NULL: entries have no times */
    int64_t opened;  /* what it said then */
    char padding[64];
    ws_budget budget;
    wr_stream streams[WR_STREAMS];
    ws_lock taking;
    size_t unhandled;
} wr_output;

/* No other thread uses it. What it had must have been cleared. */
void wr_output_open(wr_output *output, size_t budget, uint32_t order, bool full_ids, wr_clock *clock);
/* No other thread uses it. Drops what was not taken. */
void wr_output_clear(wr_output *output);

static inline bool wr_is_open(wr_output *output)
{
    return atomic_load_explicit(&output->mode, memory_order_relaxed) != WR_CLOSED;
}

static inline bool wr_has_times(const wr_output *output)
{
    return output->clock != NULL;
}

/* Nanoseconds since it was opened. */
static inline uint64_t wr_now(const wr_output *output)
{
    return (uint64_t)(output->clock() - output->opened);
}

/* The first reason stays. */
void wr_end(wr_output *output, wr_reason reason);
static inline wr_reason wr_ended(wr_output *output)
{
    return (wr_reason)atomic_load(&output->reason);
}
/* From now on `wr_mode` is WR_VERIFY, unless the recording has ended. */
void wr_verify(wr_output *output);

/* Memory within the budget; NULL: the recording has ended. After its end what was charged before may still move. */
void *wr_charged(wr_output *output, size_t bytes);
void wr_uncharged(wr_output *output, void *memory, size_t bytes);

typedef struct {
    const void *bytes;
    size_t size;
} wr_piece;

/* The pieces, side by side in one block. False: the recording has just ended, and they were not added. */
bool wr_stream_add(wr_output *output, wr_name name, const wr_piece *pieces, unsigned count);
/* What is in the open block can be taken. */
void wr_stream_seal(wr_output *output, wr_name name);

/* Bytes that were added in all. */
uint64_t wr_stream_bytes(wr_output *output, wr_name name);

/*
 * The writer comes: what it had taken was handled. It takes at most so many blocks. Births and data that an entry refers
 * to were added before it. So the blocks of entries that are there when the writer comes are taken after all that was
 * added to the other streams by then; if those are too many, none is taken.
 */
typedef struct {
    unsigned most;
    wr_name name;
    uint64_t entries; /* so many blocks of them may be taken */
} wr_taking;

wr_taking wr_take_begin(wr_output *output, unsigned most);
/* The next block, and its stream. The caller frees it with `ws_free`. NULL: there are no more. */
wr_block *wr_take_next(wr_output *output, wr_taking *taking, wr_name *name);

#endif
