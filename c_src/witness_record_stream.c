#include "witness_record_stream.h"

#include "witness_shared_memory.h"

#include <string.h>

void wr_output_open(wr_output *output, size_t budget, uint32_t order, bool full_ids, wr_clock *clock)
{
    memset(output->streams, 0, sizeof output->streams); /* a lock that is free is all zeros */
    ws_budget_init(&output->budget, budget);
    ws_lock_init(&output->taking);
    output->unhandled = 0;
    output->order = order;
    output->full_ids = full_ids;
    output->clock = clock;
    output->opened = clock ? clock() : 0;
    atomic_store(&output->reason, WR_RUNNING);
    atomic_store(&output->mode, WR_OPEN);
}

void wr_output_clear(wr_output *output)
{
    for (int name = 0; name < WR_STREAMS; name++) {
        wr_stream *stream = &output->streams[name];
        for (wr_block *block = stream->first, *next; block; block = next) {
            next = block->next;
            ws_free(block);
        }
        if (stream->open)
            ws_free(stream->open);
        stream->open = stream->first = stream->last = NULL;
        stream->sealed = 0;
    }
}

void wr_end(wr_output *output, wr_reason reason)
{
    int none = WR_RUNNING;
    atomic_compare_exchange_strong(&output->reason, &none, reason);
    atomic_store(&output->mode, WR_CLOSED);
}

void wr_verify(wr_output *output)
{
    int open = WR_OPEN;
    atomic_compare_exchange_strong(&output->mode, &open, WR_VERIFY);
}

/* --- memory ---------------------------------------------------------------------- */

void *wr_charged(wr_output *output, size_t bytes)
{
    if (!ws_budget_take(&output->budget, bytes)) {
        if (wr_is_open(output)) {
            wr_end(output, WR_BUDGET);
            return NULL;
        }
        /* What is moved now was charged before, and nothing new comes. */
        atomic_fetch_add_explicit(&output->budget.used, bytes, memory_order_relaxed);
    }
    void *memory = ws_alloc(bytes);
    if (!memory) {
        ws_budget_give(&output->budget, bytes);
        wr_end(output, WR_MEMORY);
    }
    return memory;
}

void wr_uncharged(wr_output *output, void *memory, size_t bytes)
{
    ws_free(memory);
    ws_budget_give(&output->budget, bytes);
}

/* --- blocks ---------------------------------------------------------------------- */

static wr_block *block_new(wr_output *output, size_t size)
{
    if (size > SIZE_MAX - sizeof(wr_block)) {
        wr_end(output, WR_BUDGET);
        return NULL;
    }
    wr_block *block = wr_charged(output, sizeof *block + size);
    if (block) {
        block->next = NULL;
        block->used = 0;
        block->size = size;
    }
    return block;
}

static void copy(wr_block *block, const wr_piece *pieces, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (pieces[i].size == 0)
            continue;
        memcpy(block->bytes + block->used, pieces[i].bytes, pieces[i].size);
        block->used += pieces[i].size;
    }
}

/* The stream is locked, here and below. */
static void link_block(wr_stream *stream, wr_block *block)
{
    if (stream->last)
        stream->last->next = block;
    else
        stream->first = block;
    stream->last = block;
    stream->sealed++;
}

static void seal(wr_stream *stream)
{
    if (!stream->open || stream->open->used == 0)
        return;
    link_block(stream, stream->open);
    stream->open = NULL;
}

/* Large pieces have a block of their own, so that no other thread waits while they are copied. */
static bool add_large(wr_output *output, wr_stream *stream, const wr_piece *pieces, unsigned count, size_t total)
{
    wr_block *block = block_new(output, total);
    if (!block)
        return false;
    copy(block, pieces, count);
    ws_lock_take(&stream->lock);
    seal(stream);
    link_block(stream, block);
    stream->bytes += total;
    ws_lock_give(&stream->lock);
    return true;
}

bool wr_stream_add(wr_output *output, wr_name name, const wr_piece *pieces, unsigned count)
{
    wr_stream *stream = &output->streams[name];
    wr_block *fresh = NULL;
    size_t total = 0;
    for (unsigned i = 0; i < count; i++)
        total += pieces[i].size;
    if (total > WR_BLOCK_BYTES / 4)
        return add_large(output, stream, pieces, count, total);
    ws_lock_take(&stream->lock);
    while (!stream->open || stream->open->size - stream->open->used < total) {
        if (fresh) {
            seal(stream);
            stream->open = fresh;
            fresh = NULL;
            break;
        }
        /* Memory is allocated without the lock; meanwhile another thread may have added a block. */
        ws_lock_give(&stream->lock);
        fresh = block_new(output, WR_BLOCK_BYTES);
        if (!fresh)
            return false;
        ws_lock_take(&stream->lock);
    }
    copy(stream->open, pieces, count);
    stream->bytes += total;
    ws_lock_give(&stream->lock);
    if (fresh)
        wr_uncharged(output, fresh, sizeof *fresh + fresh->size);
    return true;
}

void wr_stream_seal(wr_output *output, wr_name name)
{
    wr_stream *stream = &output->streams[name];
    ws_lock_take(&stream->lock);
    seal(stream);
    ws_lock_give(&stream->lock);
}

uint64_t wr_stream_bytes(wr_output *output, wr_name name)
{
    wr_stream *stream = &output->streams[name];
    ws_lock_take(&stream->lock);
    uint64_t bytes = stream->bytes;
    ws_lock_give(&stream->lock);
    return bytes;
}

/* --- the writer ------------------------------------------------------------------ */

static void give_back_taken(wr_output *output)
{
    ws_lock_take(&output->taking);
    ws_budget_give(&output->budget, output->unhandled);
    output->unhandled = 0;
    ws_lock_give(&output->taking);
}

static wr_block *take_first(wr_output *output, wr_name name)
{
    wr_stream *stream = &output->streams[name];
    ws_lock_take(&stream->lock);
    wr_block *block = stream->first;
    if (block) {
        stream->first = block->next;
        stream->sealed--;
        if (!stream->first)
            stream->last = NULL;
    }
    ws_lock_give(&stream->lock);
    return block;
}

wr_taking wr_take_begin(wr_output *output, unsigned most)
{
    wr_stream *order = &output->streams[WR_ORDER];
    give_back_taken(output);
    ws_lock_take(&order->lock);
    wr_taking taking = {.most = most, .name = WR_PROCESSES, .entries = order->sealed};
    ws_lock_give(&order->lock);
    if (taking.entries) {
        wr_stream_seal(output, WR_PROCESSES);
        wr_stream_seal(output, WR_DATA);
    }
    return taking;
}

wr_block *wr_take_next(wr_output *output, wr_taking *taking, wr_name *name)
{
    while (taking->most > 0) {
        wr_block *block = taking->name == WR_ORDER && !taking->entries ? NULL : take_first(output, taking->name);
        if (block) {
            taking->most--;
            taking->entries -= taking->name == WR_ORDER;
            ws_lock_take(&output->taking);
            output->unhandled += sizeof *block + block->size;
            ws_lock_give(&output->taking);
            *name = taking->name;
            return block;
        }
        if (taking->name == WR_ORDER)
            return NULL;
        taking->name++;
    }
    return NULL;
}
