/*
 * Terms as words that belong to no environment, so that they can be in any memory.
 *
 * The form: some *slots*, then *objects*. A slot is an immediate term as it is, or the place of an object's head, which
 * follows the contents of the object:
 *
 *   a tuple           its slots, then the head
 *   a list            the slots of its elements and of its tail, then the head
 *   any other term    the term itself, in the environment of the batch, then the head
 *
 * An object always comes after the slot that refers to it. So terms are written without a stack, front to back, as a
 * copying collector does it. They are made again back to front, each after all that it contains.
 */
#ifndef WITNESS_NATIVE_CODE_H
#define WITNESS_NATIVE_CODE_H

#include <erl_nif.h>
#include <stdbool.h>
#include <stddef.h>

/* Most events have fewer words than this. */
#define WN_CODE_INLINE_WORDS 64u

typedef struct {
    ERL_NIF_TERM *words;
    size_t count, capacity;
    size_t size, limit; /* words of heap that the terms take, and may take */
    size_t others;      /* objects that are terms in an environment */
    size_t other_bytes; /* of these */
    ERL_NIF_TERM inline_words[WN_CODE_INLINE_WORDS];
} wn_code;

/* `limit`: bytes of heap. */
static inline void wn_code_init(wn_code *code, size_t limit)
{
    code->words = code->inline_words;
    code->count = code->size = code->others = code->other_bytes = 0;
    code->capacity = WN_CODE_INLINE_WORDS;
    code->limit = limit / sizeof(ERL_NIF_TERM);
}

void wn_code_free(wn_code *code);

/* A word that is not a slot; only before all slots, and within WN_CODE_INLINE_WORDS. */
static inline void wn_code_word(wn_code *code, ERL_NIF_TERM word)
{
    code->words[code->count++] = word;
}

/* A slot with a term that is in the environment of the batch already. */
void wn_code_batch_term(wn_code *code, ERL_NIF_TERM term);

/*
 * Writes the objects of the slots from this place on; the slots have terms of `env`. False: they are larger than the limit,
 * or there is no memory. What is shared within a term is written as often as it occurs, as copies have it, so the limit is
 * checked at each step.
 */
bool wn_code_slots(ErlNifEnv *env, wn_code *code, size_t from);

/* Copies the terms that are not written as words into an environment. The objects are from `objects` to `end`. */
void wn_code_move(ErlNifEnv *to, ERL_NIF_TERM *words, size_t objects, size_t end);

/* Makes all objects. Then the slots from `from` to `objects` are terms. The words can be used only once. */
void wn_code_make(ErlNifEnv *to, ERL_NIF_TERM *words, size_t from, size_t objects, size_t end);

#endif
