#include "witness_native_batch.h"

#include "witness_native_atoms.h"
#include "witness_shared_memory.h"

#include <stdlib.h>
#include <string.h>

atomic_int_fast64_t wn_count_batches;

/* An entry: its length with its form, the time if it has one, and slots with their objects. */
enum { FIVE, FOUR, ITEM, FORM = 3, TIMED = 4, BIRTH = 8, FORM_BITS = 4 };
#define SLOTS(form) ((form) & TIMED ? 2u : 1u)

static unsigned slots_of(unsigned form)
{
    static const unsigned counts[] = {[FIVE] = 4, [FOUR] = 3, [ITEM] = 1};
    return counts[form & FORM];
}

static size_t length_of(uintptr_t first)
{
    return first >> FORM_BITS;
}

static void write_head(wn_code *code, unsigned form)
{
    code->words[0] = (ERL_NIF_TERM)code->count << FORM_BITS | form;
}

bool wn_event_write(ErlNifEnv *env, wn_code *code, const wn_event *event)
{
    unsigned form = (event->other ? FIVE : FOUR) | (event->timed ? TIMED : 0u) | (event->name == am_fork ? BIRTH : 0u);
    wn_code_word(code, 0);
    if (event->timed)
        wn_code_word(code, (ERL_NIF_TERM)event->time);
    wn_code_word(code, event->name);
    wn_code_word(code, event->process);
    if (event->other)
        wn_code_word(code, event->other);
    wn_code_word(code, event->term);
    if (!wn_code_slots(env, code, SLOTS(form)))
        return false;
    write_head(code, form);
    return true;
}

size_t wn_event_bytes(const wn_code *code)
{
    return wn_buffer_bytes(code->count) + code->other_bytes;
}

static wn_buffer *batch_of(wn_partition *partition)
{
    if (!partition->batch && (partition->batch = wn_buffer_new())) {
        atomic_fetch_add_explicit(&wn_count_batches, 1, memory_order_relaxed);
        partition->left = wn_buffer_open(partition->batch, &partition->at);
    }
    return partition->batch;
}

ErlNifEnv *wn_batch_env(wn_partition *partition)
{
    wn_buffer *buffer = batch_of(partition);
    if (buffer && !buffer->user)
        buffer->user = enif_alloc_env();
    return buffer ? buffer->user : NULL;
}

/* Puts the event into a new block. */
static uintptr_t *append_to_new_block(wn_partition *partition, size_t words)
{
    wn_buffer *buffer = batch_of(partition);
    if (!buffer)
        return NULL;
    wn_buffer_close(buffer, partition->left);
    uintptr_t *entry = wn_buffer_add(buffer, words);
    partition->left = wn_buffer_open(buffer, &partition->at);
    return entry;
}

/* For most events the buffer itself, and the head of its last block, are not read: they are not in the cache. */
static uintptr_t *append(wn_partition *partition, const wn_code *code)
{
    uintptr_t *entry = partition->at;
    if (code->count <= partition->left) {
        partition->at += code->count;
        partition->left -= code->count;
    } else if (!(entry = append_to_new_block(partition, code->count))) {
        return NULL;
    }
    memcpy(entry, code->words, code->count * sizeof *entry);
    return entry;
}

bool wn_batch_add(wn_partition *partition, const wn_code *code)
{
    if (code->others > 0 && !wn_batch_env(partition))
        return false;
    uintptr_t *entry = append(partition, code);
    if (entry && code->others > 0) {
        unsigned form = (unsigned)*entry;
        wn_code_move(((wn_buffer *)partition->batch)->user, entry, SLOTS(form) + slots_of(form), code->count);
    }
    return entry != NULL;
}

bool wn_batch_add_item(wn_partition *partition, ERL_NIF_TERM item)
{
    wn_code code;
    wn_code_init(&code, SIZE_MAX);
    wn_code_word(&code, 0);
    wn_code_batch_term(&code, item);
    write_head(&code, ITEM);
    return append(partition, &code) != NULL;
}

static ERL_NIF_TERM make_event(ErlNifEnv *to, ERL_NIF_TERM *entry)
{
    unsigned form = (unsigned)*entry, slots = SLOTS(form), count = slots_of(form);
    wn_code_make(to, entry, slots, slots + count, length_of(*entry));
    ERL_NIF_TERM *t = &entry[slots], time = am_undefined;
    if (form & TIMED)
        time = enif_make_int64(to, (ErlNifSInt64)entry[1]);
    switch (form & FORM) {
    case FIVE:
        return enif_make_tuple5(to, t[0], t[1], t[2], t[3], time);
    case FOUR:
        return enif_make_tuple4(to, t[0], t[1], t[2], time);
    default:
        return t[0];
    }
}

/* --- births ---------------------------------------------------------------------- */

typedef struct {
    ErlNifEnv *env; /* NULL: it needs none */
    size_t bytes;
    ERL_NIF_TERM words[];
} birth;

void *wn_birth_new(ErlNifEnv *env, const wn_event *event, size_t limit)
{
    wn_code code;
    birth *b = NULL;
    wn_code_init(&code, limit);
    if (wn_event_write(env, &code, event) && (b = ws_alloc(sizeof *b + code.count * sizeof *b->words))) {
        memcpy(b->words, code.words, code.count * sizeof *b->words);
        b->bytes = sizeof *b + wn_event_bytes(&code);
        b->env = code.others > 0 ? enif_alloc_env() : NULL;
        if (b->env) {
            unsigned form = (unsigned)b->words[0];
            b->bytes += WN_BATCH_OVERHEAD;
            wn_code_move(b->env, b->words, SLOTS(form) + slots_of(form), code.count);
        } else if (code.others > 0) {
            ws_free(b);
            b = NULL;
        }
    }
    wn_code_free(&code);
    return b;
}

size_t wn_birth_bytes(const void *data)
{
    return ((const birth *)data)->bytes;
}

ERL_NIF_TERM wn_birth_read(ErlNifEnv *to, void *data)
{
    return make_event(to, ((birth *)data)->words);
}

void wn_birth_drop(void *data)
{
    birth *b = data;
    if (b && b->env)
        enif_free_env(b->env);
    if (b)
        ws_free(b);
}

/* --- reading --------------------------------------------------------------------- */

wn_reading wn_batch_begin(const wn_taken *taken)
{
    wn_buffer_close(taken->batch, taken->left);
    return wn_buffer_read(taken->batch);
}

#define STACK_EVENTS 128u

bool wn_batch_read(ErlNifEnv *to, wn_reading *reading, uint32_t most, ERL_NIF_TERM *list, bool *births)
{
    ERL_NIF_TERM on_stack[STACK_EVENTS] = {0}, *terms = on_stack;
    size_t count = 0, capacity = STACK_EVENTS;
    bool more = true;
    while (more && count < most) {
        if (count == capacity) {
            ERL_NIF_TERM *wider = realloc(terms == on_stack ? NULL : terms, 2 * capacity * sizeof *wider);
            if (!wider)
                break; /* there is no memory; the rest comes next time */
            if (terms == on_stack)
                memcpy(wider, on_stack, sizeof on_stack);
            terms = wider;
            capacity *= 2;
        }
        uintptr_t *entry = wn_buffer_next(reading, length_of);
        more = entry != NULL;
        if (entry) {
            *births |= (*entry & BIRTH) != 0;
            terms[count++] = make_event(to, entry);
        }
    }
    *list = enif_make_list_from_array(to, terms, (unsigned)count);
    if (terms != on_stack)
        free(terms);
    return more;
}

ERL_NIF_TERM wn_batch_status(ErlNifEnv *env, const wn_taken *taken)
{
    switch (taken->end) {
    case WN_COMPLETE:
        return am_complete;
    case WN_STOPPED:
        return am_stopped;
    case WN_GAP: {
        const ERL_NIF_TERM reasons[] = {[WN_OVERFLOW] = am_overflow,
                                        [WN_MEMORY] = am_memory,
                                        [WN_SIZE] = am_message_size,
                                        [WN_LOST] = am_lost,
                                        [WN_SENSITIVE] = am_sensitive};
        return enif_make_tuple3(env, am_gap, reasons[taken->reason], enif_make_uint64(env, taken->missing));
    }
    default:
        return am_open;
    }
}

void wn_batch_drop(void *batch)
{
    wn_buffer *buffer = batch;
    if (buffer->user)
        enif_free_env(buffer->user);
    wn_buffer_free(buffer);
    atomic_fetch_sub_explicit(&wn_count_batches, 1, memory_order_relaxed);
}
