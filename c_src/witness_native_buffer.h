/*
 * A buffer of entries, each a run of words, in the order in which they were added. Its memory is allocated in blocks, so
 * that nothing is moved when it grows, and an entry touches few lines of the cache.
 *
 * Ownership: the code that made a buffer, or was given it; one thread at a time.
 */
#ifndef WITNESS_NATIVE_BUFFER_H
#define WITNESS_NATIVE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Words of a block that is not made for one large entry. */
#define WN_BLOCK_WORDS 116u

typedef struct wn_block {
    struct wn_block *next;
    size_t used, size;
    uintptr_t words[];
} wn_block;

typedef struct {
    wn_block *last;
    void *user; /* for the owner; NULL in a new buffer */
    /* Its first block follows it. */
} wn_buffer;

/* Bytes of an empty buffer, and the most that an entry of so many words adds. */
#define WN_BUFFER_BYTES (sizeof(wn_buffer) + sizeof(wn_block) + WN_BLOCK_WORDS * sizeof(uintptr_t))
static inline size_t wn_buffer_bytes(size_t words)
{
    /* What is left of a block when an entry does not fit is less than that entry. */
    return (words + (words < WN_BLOCK_WORDS ? words : WN_BLOCK_WORDS)) * sizeof(uintptr_t) + sizeof(wn_block);
}

/* NULL: there is no memory. */
wn_buffer *wn_buffer_new(void);
void wn_buffer_free(wn_buffer *buffer);
/* Gives back the memory that is kept for the next buffers. */
void wn_buffer_drain(void);

/* Room for an entry, in one piece. The first word of an entry must be its length. NULL: there is no memory. */
uintptr_t *wn_buffer_add(wn_buffer *buffer, size_t words);

/*
 * For an owner that adds entries itself while there is space. `open`: how many words are free in the last block, and where.
 * `close`: how many are left; must be called before the buffer is used again.
 */
static inline size_t wn_buffer_open(wn_buffer *buffer, uintptr_t **at)
{
    *at = &buffer->last->words[buffer->last->used];
    return buffer->last->size - buffer->last->used;
}

static inline void wn_buffer_close(wn_buffer *buffer, size_t left)
{
    buffer->last->used = buffer->last->size - left;
}

/* The entries in their order. `of` says how many words an entry has, by its first word. */
typedef struct {
    wn_block *block;
    size_t at;
} wn_reading;

static inline wn_reading wn_buffer_read(wn_buffer *buffer)
{
    return (wn_reading){.block = (wn_block *)(buffer + 1)};
}

/* NULL: there are no more. */
static inline uintptr_t *wn_buffer_next(wn_reading *reading, size_t (*of)(uintptr_t first))
{
    while (reading->at == reading->block->used) {
        reading->block = reading->block->next;
        reading->at = 0;
        if (!reading->block)
            return NULL;
    }
    uintptr_t *entry = &reading->block->words[reading->at];
    reading->at += of(*entry);
    return entry;
}

#endif
