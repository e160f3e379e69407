#include "witness_native_terms.h"

#include "witness_native_atoms.h"

#include <stdlib.h>
#include <string.h>

bool wn_terms_are_known(ErlNifEnv *env)
{
    ErlNifPid self;
    ERL_NIF_TERM cell = enif_make_list1(env, am_ok), pair = enif_make_tuple2(env, am_ok, am_ok);
    return WN_TAG(am_ok) == WN_TAG_IMMEDIATE && WN_TAG(enif_make_int(env, -1)) == WN_TAG_IMMEDIATE &&
           WN_TAG(enif_make_list(env, 0)) == WN_TAG_IMMEDIATE && WN_TAG(cell) == WN_TAG_LIST && WN_TAG(pair) == 2u &&
           (!enif_self(env, &self) || WN_TAG(self.pid) == WN_TAG_IMMEDIATE);
}

/* Terms that are still to be counted. Most have none, so the first ones are on the stack. */
#define STACK_TERMS 32u

typedef struct {
    ERL_NIF_TERM on_stack[STACK_TERMS], *terms;
    size_t count, capacity;
} wn_rest;

static bool put(wn_rest *rest, ERL_NIF_TERM term)
{
    if (WN_TAG(term) == WN_TAG_IMMEDIATE)
        return true;
    if (rest->count == rest->capacity) {
        bool moves = rest->terms == rest->on_stack;
        ERL_NIF_TERM *terms = realloc(moves ? NULL : rest->terms, 2 * rest->capacity * sizeof *terms);
        if (!terms)
            return false;
        if (moves)
            memcpy(terms, rest->on_stack, sizeof rest->on_stack);
        rest->terms = terms;
        rest->capacity *= 2;
    }
    rest->terms[rest->count++] = term;
    return true;
}

static size_t map_words(ErlNifEnv *env, ERL_NIF_TERM term, wn_rest *rest)
{
    size_t sum = 4;
    ErlNifMapIterator iterator;
    ERL_NIF_TERM key, value;
    if (!enif_map_iterator_create(env, term, &iterator, ERL_NIF_MAP_ITERATOR_FIRST))
        return WN_TOO_LARGE;
    /* `get_pair` says where the map ends, so what `next` returns is not needed. */
    while (sum != WN_TOO_LARGE && enif_map_iterator_get_pair(env, &iterator, &key, &value)) {
        sum += 4; /* a large map is a tree, in which a pair takes up to four words */
        if (!put(rest, key) || !put(rest, value))
            sum = WN_TOO_LARGE;
        (void)enif_map_iterator_next(env, &iterator);
    }
    enif_map_iterator_destroy(env, &iterator);
    return sum;
}

/*
 * What only the external form tells, in bytes. It has a byte for each byte of a number, and at least one for each word.
 * WN_TOO_LARGE: there is no memory for it.
 */
static size_t external_size(ErlNifEnv *env, ERL_NIF_TERM term)
{
    ErlNifBinary binary;
    if (!enif_term_to_binary(env, term, &binary))
        return WN_TOO_LARGE;
    size_t size = binary.size;
    enif_release_binary(&binary);
    return size;
}

/* WN_TOO_LARGE stays what it is. */
static size_t sum_of(size_t words, size_t more)
{
    return more == WN_TOO_LARGE ? more : words + more;
}

static size_t words_of(size_t bytes)
{
    return bytes == WN_TOO_LARGE ? bytes : bytes / sizeof(ERL_NIF_TERM);
}

#define EXTERNAL_BITSTRING 77

/*
 * A fun, a bitstring that is no binary, a native record, or a kind of term that a later VM has. The external form has at least a
 * byte for two words: for an element of a list, or for a part of a pair of a map.
 */
static size_t unknown_words(ErlNifEnv *env, ERL_NIF_TERM term)
{
    ErlNifBinary binary;
    if (!enif_term_to_binary(env, term, &binary))
        return WN_TOO_LARGE;
    size_t words = binary.size > 1 && binary.data[1] == EXTERNAL_BITSTRING ? binary.size / sizeof(ERL_NIF_TERM) : 2 * binary.size;
    enif_release_binary(&binary);
    return 16 + words;
}

/*
 * `enif_term_type` ends the VM for a native record, so the kinds are asked for one after the other. A copy of a large binary refers
 * to the same bytes, but keeps them alive.
 */
static size_t other_words(ErlNifEnv *env, ERL_NIF_TERM term, wn_rest *rest)
{
    ErlNifBinary binary;
    ErlNifSInt64 number;
    double real;
    if (enif_is_map(env, term))
        return map_words(env, term, rest);
    if (enif_is_binary(env, term))
        return sum_of(16, words_of(enif_inspect_binary(env, term, &binary) ? binary.size : external_size(env, term)));
    if (enif_get_int64(env, term, &number) || enif_get_double(env, term, &real))
        return 2;
    if (enif_is_number(env, term))
        return sum_of(3, words_of(external_size(env, term)));
    return enif_is_pid(env, term) || enif_is_ref(env, term) || enif_is_port(env, term) ? 8 : unknown_words(env, term);
}

static size_t words(ErlNifEnv *env, wn_rest *rest, size_t limit)
{
    size_t sum = 0;
    while (rest->count > 0 && sum <= limit) {
        ERL_NIF_TERM term = rest->terms[--rest->count], head, tail;
        const ERL_NIF_TERM *elements;
        int arity;
        while (WN_TAG(term) == WN_TAG_LIST && sum <= limit && enif_get_list_cell(env, term, &head, &tail)) {
            sum += 2;
            if (!put(rest, head))
                return WN_TOO_LARGE;
            term = tail;
        }
        if (WN_TAG(term) == WN_TAG_IMMEDIATE || WN_TAG(term) == WN_TAG_LIST)
            continue;
        if (!enif_get_tuple(env, term, &arity, &elements)) {
            size_t more = other_words(env, term, rest);
            if (more == WN_TOO_LARGE)
                return more;
            sum += more;
            continue;
        }
        sum += 1 + (size_t)arity;
        for (int i = 0; i < arity; i++)
            if (!put(rest, elements[i]))
                return WN_TOO_LARGE;
    }
    return sum > limit ? WN_TOO_LARGE : sum;
}

/*
 * A copy of a term with shared parts may be larger than any memory, so counting ends at the limit. A batch grows by pieces of
 * heap for what is copied and 200 words; the rest of a piece is lost if the next copy does not fit.
 */
size_t wn_size(ErlNifEnv *env, ERL_NIF_TERM term, size_t limit)
{
    if (WN_TAG(term) == WN_TAG_IMMEDIATE)
        return 0;
    wn_rest rest; /* not initialized as a whole: this is done for each message */
    rest.capacity = STACK_TERMS;
    rest.terms = rest.on_stack;
    rest.on_stack[0] = term;
    rest.count = 1;
    size_t sum = words(env, &rest, limit / sizeof(ERL_NIF_TERM));
    if (rest.terms != rest.on_stack)
        free(rest.terms);
    return sum == WN_TOO_LARGE ? sum : (sum + (sum < 192 ? sum / 2 : 208)) * sizeof(ERL_NIF_TERM);
}
