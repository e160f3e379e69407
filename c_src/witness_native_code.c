#include "witness_native_code.h"
#include "witness_native_terms.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Heads look like immediate terms, so that a pass over slots skips them. */
enum { TUPLE, LIST, OTHER };
#define HEAD(kind, count) ((ERL_NIF_TERM)(count) << 4 | (ERL_NIF_TERM)(kind) << 2 | WN_TAG_IMMEDIATE)
#define HEAD_KIND(head) ((head) >> 2 & 3u)
#define HEAD_COUNT(head) ((head) >> 4)
/* The term of another object must not be taken for a slot either: this turns its tag 2 into that of an immediate. */
#define HIDDEN(term) ((term) ^ 1u)
/* A slot with the place of a head. */
#define PLACE(at) ((ERL_NIF_TERM)(at) << 2)
#define PLACE_AT(slot) ((slot) >> 2)

/* --- writing --------------------------------------------------------------------- */

/* Reserves space for so many more words. `heap`: how many more words of heap the terms take. */
static bool reserve(wn_code *code, size_t words, size_t heap)
{
    code->size += heap;
    if (code->size > code->limit)
        return false;
    if (code->count + words <= code->capacity)
        return true;
    size_t wanted = 2 * (code->count + words);
    bool is_inline = code->words == code->inline_words;
    ERL_NIF_TERM *more = realloc(is_inline ? NULL : code->words, wanted * sizeof *more);
    if (!more)
        return false;
    if (is_inline)
        memcpy(more, code->inline_words, code->count * sizeof *more);
    code->words = more;
    code->capacity = wanted;
    return true;
}

void wn_code_free(wn_code *code)
{
    if (code->words != code->inline_words)
        free(code->words);
}

static void head(wn_code *code, size_t slot, ERL_NIF_TERM head_word)
{
    code->words[slot] = PLACE(code->count);
    code->words[code->count++] = head_word;
}

static bool write_tuple(wn_code *code, size_t slot, const ERL_NIF_TERM *elements, int arity)
{
    if (!reserve(code, (size_t)arity + 1, (size_t)arity + 1))
        return false;
    for (int i = 0; i < arity; i++)
        code->words[code->count + (size_t)i] = elements[i];
    code->count += (size_t)arity;
    head(code, slot, HEAD(TUPLE, arity));
    return true;
}

static bool write_list(ErlNifEnv *env, wn_code *code, size_t slot, ERL_NIF_TERM cells)
{
    ERL_NIF_TERM first, rest;
    size_t count = 0;
    while (WN_TAG(cells) == WN_TAG_LIST && enif_get_list_cell(env, cells, &first, &rest)) {
        if (!reserve(code, 3, 2))
            return false;
        code->words[code->count++] = first;
        cells = rest;
        count++;
    }
    code->words[code->count++] = cells;
    head(code, slot, HEAD(LIST, count));
    return true;
}

static bool write_other(ErlNifEnv *env, wn_code *code, size_t slot, ERL_NIF_TERM term)
{
    size_t left = (code->limit - code->size) * sizeof term, bytes = wn_size(env, term, left);
    if (bytes == WN_TOO_LARGE || !reserve(code, 2, bytes / sizeof term))
        return false;
    code->others++;
    code->other_bytes += bytes;
    code->words[code->count++] = HIDDEN(term);
    head(code, slot, HEAD(OTHER, 0));
    return true;
}

void wn_code_batch_term(wn_code *code, ERL_NIF_TERM term)
{
    size_t slot = code->count;
    wn_code_word(code, term);
    if (WN_TAG(term) != WN_TAG_IMMEDIATE) {
        wn_code_word(code, HIDDEN(term));
        head(code, slot, HEAD(OTHER, 0));
    }
}

bool wn_code_slots(ErlNifEnv *env, wn_code *code, size_t from)
{
    for (size_t at = from; at < code->count; at++) {
        ERL_NIF_TERM term = code->words[at];
        const ERL_NIF_TERM *elements;
        int arity;
        bool fits;
        if (WN_TAG(term) == WN_TAG_IMMEDIATE)
            continue;
        if (WN_TAG(term) == WN_TAG_LIST)
            fits = write_list(env, code, at, term);
        else if (enif_get_tuple(env, term, &arity, &elements))
            fits = write_tuple(code, at, elements, arity);
        else
            fits = write_other(env, code, at, term);
        if (!fits)
            return false;
    }
    return true;
}

void wn_code_move(ErlNifEnv *to, ERL_NIF_TERM *words, size_t objects, size_t end)
{
    for (size_t at = end; at > objects;) {
        ERL_NIF_TERM head_word = words[--at];
        switch (HEAD_KIND(head_word)) {
        case TUPLE:
            at -= HEAD_COUNT(head_word);
            break;
        case LIST:
            at -= HEAD_COUNT(head_word) + 1;
            break;
        default:
            at--;
            words[at] = HIDDEN(enif_make_copy(to, HIDDEN(words[at])));
        }
    }
}

/* --- reading --------------------------------------------------------------------- */

static void fill(ERL_NIF_TERM *words, size_t from, size_t to)
{
    for (size_t at = from; at < to; at++)
        if (WN_TAG(words[at]) != WN_TAG_IMMEDIATE)
            words[at] = words[PLACE_AT(words[at])];
}

void wn_code_make(ErlNifEnv *to, ERL_NIF_TERM *words, size_t from, size_t objects, size_t end)
{
    for (size_t at = end; at > objects;) {
        size_t result = --at, count = HEAD_COUNT(words[result]);
        ERL_NIF_TERM term;
        switch (HEAD_KIND(words[result])) {
        case TUPLE:
            at -= count;
            fill(words, at, result);
            term = enif_make_tuple_from_array(to, &words[at], (unsigned)count);
            break;
        case LIST:
            at -= count + 1;
            fill(words, at, result);
            term = words[result - 1];
            while (count > 0)
                term = enif_make_list_cell(to, words[at + --count], term);
            break;
        default:
            at--;
            term = enif_make_copy(to, HIDDEN(words[at]));
        }
        words[result] = term;
    }
    fill(words, from, objects);
}
