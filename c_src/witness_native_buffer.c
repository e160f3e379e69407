#include "witness_native_buffer.h"

#include "witness_shared_lock.h"
#include "witness_shared_memory.h"

/*
 * Blocks that were given back last are taken first: they are in the cache. All are of ordinary size, and there are at most
 * SPARE of them. A thread locks them only for a few instructions.
 */
#define SPARE 1024u

static ws_lock spare_lock = WS_LOCK_INIT;
static unsigned spare_count;
static void *spare[SPARE];

static void *piece_new(void)
{
    void *piece = NULL;
    ws_lock_take(&spare_lock);
    if (spare_count > 0)
        piece = spare[--spare_count];
    ws_lock_give(&spare_lock);
    return piece ? piece : ws_alloc(WN_BUFFER_BYTES);
}

static void piece_free(void *piece)
{
    ws_lock_take(&spare_lock);
    bool kept = spare_count < SPARE;
    if (kept)
        spare[spare_count++] = piece;
    ws_lock_give(&spare_lock);
    if (!kept)
        ws_free(piece);
}

void wn_buffer_drain(void)
{
    ws_lock_take(&spare_lock);
    while (spare_count > 0)
        ws_free(spare[--spare_count]);
    ws_lock_give(&spare_lock);
}

wn_buffer *wn_buffer_new(void)
{
    wn_buffer *buffer = piece_new();
    if (!buffer)
        return NULL;
    buffer->user = NULL;
    buffer->last = (wn_block *)(buffer + 1);
    *buffer->last = (wn_block){.size = WN_BLOCK_WORDS};
    return buffer;
}

void wn_buffer_free(wn_buffer *buffer)
{
    wn_block *block = ((wn_block *)(buffer + 1))->next;
    while (block) {
        wn_block *next = block->next;
        if (block->size == WN_BLOCK_WORDS)
            piece_free(block);
        else
            ws_free(block);
        block = next;
    }
    piece_free(buffer);
}

static bool add_block(wn_buffer *buffer, size_t words)
{
    size_t size = words < WN_BLOCK_WORDS ? WN_BLOCK_WORDS : words;
    wn_block *block = size == WN_BLOCK_WORDS ? piece_new() : ws_alloc(sizeof *block + size * sizeof *block->words);
    if (!block)
        return false;
    *block = (wn_block){.size = size};
    buffer->last->next = block;
    buffer->last = block;
    return true;
}

uintptr_t *wn_buffer_add(wn_buffer *buffer, size_t words)
{
    if (words > buffer->last->size - buffer->last->used && !add_block(buffer, words))
        return NULL;
    uintptr_t *entry = &buffer->last->words[buffer->last->used];
    buffer->last->used += words;
    return entry;
}
