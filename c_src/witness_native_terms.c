/* Terms: their size, and what a process was spawned with. */
#include "witness_native_nif.h"

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

/* --- size ------------------------------------------------------------------------ */

/* Terms that are still to be counted. Most have none, so the first ones are on the stack. */
#define NEAR 32u

typedef struct {
    ERL_NIF_TERM near[NEAR], *terms;
    size_t count, room;
} wn_rest;

static bool put(wn_rest *rest, ERL_NIF_TERM term)
{
    if (WN_TAG(term) == WN_TAG_IMMEDIATE)
        return true;
    if (rest->count == rest->room) {
        bool moves = rest->terms == rest->near;
        ERL_NIF_TERM *terms = realloc(moves ? NULL : rest->terms, 2 * rest->room * sizeof *terms);
        if (!terms)
            return false;
        if (moves)
            memcpy(terms, rest->near, sizeof rest->near);
        rest->terms = terms;
        rest->room *= 2;
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
        return sum;
    for (; enif_map_iterator_get_pair(env, &iterator, &key, &value); enif_map_iterator_next(env, &iterator)) {
        sum += 4; /* a large map is a tree, in which a pair takes up to four words */
        if (!put(rest, key) || !put(rest, value))
            sum = WN_TOO_LARGE;
    }
    enif_map_iterator_destroy(env, &iterator);
    return sum;
}

/* What only the external form tells. It has a byte for each byte of a number, and at least one for each word. */
static size_t external_size(ErlNifEnv *env, ERL_NIF_TERM term)
{
    ErlNifBinary binary;
    if (!enif_term_to_binary(env, term, &binary))
        return 0;
    size_t size = binary.size;
    enif_release_binary(&binary);
    return size;
}

/* A copy of a large binary refers to the same bytes, but keeps them alive. */
static size_t other_words(ErlNifEnv *env, ERL_NIF_TERM term, wn_rest *rest)
{
    ErlNifBinary binary;
    ErlNifSInt64 number;
    switch (enif_term_type(env, term)) {
    case ERL_NIF_TERM_TYPE_MAP:
        return map_words(env, term, rest);
    case ERL_NIF_TERM_TYPE_BITSTRING:
        return 16 + (enif_inspect_binary(env, term, &binary) ? binary.size : external_size(env, term)) / sizeof term;
    case ERL_NIF_TERM_TYPE_FUN:
        return 16 + external_size(env, term);
    case ERL_NIF_TERM_TYPE_INTEGER:
        return enif_get_int64(env, term, &number) ? 2 : 3 + external_size(env, term) / sizeof term;
    default:
        return 8;
    }
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
    rest.room = NEAR;
    rest.terms = rest.near;
    rest.near[0] = term;
    rest.count = 1;
    size_t sum = words(env, &rest, limit / sizeof(ERL_NIF_TERM));
    if (rest.terms != rest.near)
        free(rest.terms);
    return sum == WN_TOO_LARGE ? sum : (sum + (sum < 192 ? sum / 2 : 208)) * sizeof(ERL_NIF_TERM);
}

/* --- signatures ------------------------------------------------------------------ */

#define MOST_ARGUMENTS 8

static int list_elements(ErlNifEnv *env, ERL_NIF_TERM list, ERL_NIF_TERM elements[MOST_ARGUMENTS])
{
    int count = 0;
    ERL_NIF_TERM tail;
    while (count < MOST_ARGUMENTS && enif_get_list_cell(env, list, &elements[count], &tail)) {
        list = tail;
        count++;
    }
    return count;
}

static bool behaviour(ErlNifEnv *env, const ERL_NIF_TERM *a, int count, ERL_NIF_TERM *module, ERL_NIF_TERM *function, int *arity)
{
    if (count != 6 && count != 7)
        return false;
    ERL_NIF_TERM callback = a[count - 3];
    if (!enif_is_atom(env, callback))
        return false;
    if (a[0] == am_gen_event)
        callback = am_gen_event;
    else if (callback == am_supervisor || callback == am_supervisor_bridge || callback == am_dynamic_supervisor ||
             callback == am_agent)
        return false;
    *module = callback;
    *function = am_init;
    *arity = 1;
    return true;
}

bool wn_signature(ErlNifEnv *env, ERL_NIF_TERM mfa, ERL_NIF_TERM *module, ERL_NIF_TERM *function, int *arity)
{
    const ERL_NIF_TERM *t;
    ERL_NIF_TERM a[MOST_ARGUMENTS], m, f, arguments;
    int size;
    unsigned length;
    if (!enif_get_tuple(env, mfa, &size, &t) || size != 3)
        return false;
    m = t[0], f = t[1], arguments = t[2];
    /* What one of these wraps may be wrapped itself, but not without end. */
    for (int depth = 0; depth < 8; depth++) {
        if (m == am_task || !enif_is_atom(env, m) || !enif_is_atom(env, f))
            return false;
        if (m != am_proc_lib && m != am_erlang && m != am_erts_internal) {
            *module = m;
            *function = f;
            if (!enif_get_list_length(env, arguments, &length))
                return false;
            *arity = (int)length;
            return true;
        }
        int count = list_elements(env, arguments, a);
        if (m == am_proc_lib && f == am_init_p && count == 5) {
            if (a[2] == am_gen && a[3] == am_init_it)
                return behaviour(env, a, list_elements(env, a[4], a), module, function, arity);
            m = a[2], f = a[3], arguments = a[4];
        } else if (m == am_erlang && f == am_apply && count == 3) {
            m = a[0], f = a[1], arguments = a[2];
        } else if (m == am_erts_internal && f == am_spawn_init && count == 1 && enif_get_tuple(env, a[0], &size, &t) && size == 3) {
            m = t[0], f = t[1], arguments = t[2];
        } else {
            return false;
        }
    }
    return false;
}
