#include "witness_record_terms.h"

#include <string.h>

enum {
    SMALL_INTEGER = 97,
    INTEGER = 98,
    SMALL_TUPLE = 104,
    NIL = 106,
    STRING = 107,
    LIST = 108,
    BINARY = 109,
    SMALL_BIG = 110,
    SMALL_ATOM_UTF8 = 119,
    VERSION = 131
};

bool wr_terms_are_known(ErlNifEnv *env)
{
    const int numbers[] = {0, 1, -1, 77, 1 << 26, -(1 << 26)};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        ERL_NIF_TERM term = enif_make_int(env, numbers[i]);
        if (!WR_IS_SMALL(term) || WR_SMALL(term) != numbers[i])
            return false;
    }
    return !WR_IS_SMALL(enif_make_atom(env, "ok")) && !WR_IS_SMALL(enif_make_list(env, 0)) &&
           !WR_IS_SMALL(enif_make_list1(env, enif_make_int(env, 1))) && !WR_IS_SMALL(enif_make_double(env, 1.5)) &&
           !WR_IS_SMALL(enif_make_uint64(env, UINT64_MAX));
}

/*
 * All below return where the next byte goes, or NULL if there is no space or the VM must do it. Each tuple or list takes at
 * least two bytes before its contents are written. So the use of the stack is bounded, however deep a term is.
 */
static uint8_t *number32(uint8_t *at, uint32_t number)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        *at++ = (uint8_t)(number >> shift);
    return at;
}

static uint8_t *integer(uint8_t *at, const uint8_t *end, int64_t number)
{
    if (end - at < 3 + 8)
        return NULL;
    if (number >= 0 && number <= 255) {
        *at++ = SMALL_INTEGER;
        *at++ = (uint8_t)number;
        return at;
    }
    if (number >= INT32_MIN && number <= INT32_MAX) {
        *at++ = INTEGER;
        return number32(at, (uint32_t)number);
    }
    uint64_t magnitude = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    uint8_t *count = at + 1;
    *at = SMALL_BIG;
    at += 3;
    count[1] = number < 0;
    for (; magnitude; magnitude >>= 8)
        *at++ = (uint8_t)magnitude;
    *count = (uint8_t)(at - count - 2);
    return at;
}

static uint8_t *atom(ErlNifEnv *env, uint8_t *at, const uint8_t *end, ERL_NIF_TERM term)
{
    char name[256];
    /* The size with the zero at the end; 0 for a longer atom. */
    int size = enif_get_atom(env, term, name, sizeof name, ERL_NIF_UTF8);
    if (size == 0 || end - at < 1 + size)
        return NULL;
    *at++ = SMALL_ATOM_UTF8;
    *at++ = (uint8_t)(size - 1);
    memcpy(at, name, (size_t)size - 1);
    return at + size - 1;
}

/* Writes a list of bytes as a string. NULL: it is no such list, or there is no space. */
static uint8_t *string(ErlNifEnv *env, uint8_t *at, const uint8_t *end, ERL_NIF_TERM list)
{
    ERL_NIF_TERM head, tail;
    uint8_t *first = at + 3;
    if (end - at < 3)
        return NULL;
    for (at = first; enif_get_list_cell(env, list, &head, &tail); list = tail) {
        if (!WR_IS_SMALL(head) || WR_SMALL(head) < 0 || WR_SMALL(head) > 255 || at == end)
            return NULL;
        *at++ = (uint8_t)WR_SMALL(head);
    }
    if (!enif_is_empty_list(env, list))
        return NULL;
    first[-3] = STRING;
    first[-2] = (uint8_t)((at - first) >> 8);
    first[-1] = (uint8_t)(at - first);
    return at;
}

static uint8_t *term_at(ErlNifEnv *env, uint8_t *at, const uint8_t *end, ERL_NIF_TERM term);

static uint8_t *list(ErlNifEnv *env, uint8_t *at, const uint8_t *end, ERL_NIF_TERM cells)
{
    ERL_NIF_TERM head, tail;
    uint32_t count = 0;
    uint8_t *text = string(env, at, end, cells), *first = at;
    if (text)
        return text;
    if (end - at < 5)
        return NULL;
    for (at += 5; at && enif_get_list_cell(env, cells, &head, &tail); cells = tail) {
        at = term_at(env, at, end, head);
        count++;
    }
    if (!at)
        return NULL;
    *first = LIST;
    number32(first + 1, count);
    return term_at(env, at, end, cells);
}

static uint8_t *term_at(ErlNifEnv *env, uint8_t *at, const uint8_t *end, ERL_NIF_TERM term)
{
    const ERL_NIF_TERM *elements;
    ErlNifBinary binary;
    int arity;
    if (WR_IS_SMALL(term))
        return integer(at, end, WR_SMALL(term));
    if (at == end)
        return NULL;
    if (enif_is_atom(env, term))
        return atom(env, at, end, term);
    if (enif_get_tuple(env, term, &arity, &elements)) {
        if (arity > 255 || end - at < 2)
            return NULL;
        *at++ = SMALL_TUPLE;
        *at++ = (uint8_t)arity;
        for (int i = 0; at && i < arity; i++)
            at = term_at(env, at, end, elements[i]);
        return at;
    }
    if (enif_is_empty_list(env, term)) {
        *at++ = NIL;
        return at;
    }
    if (enif_is_list(env, term))
        return list(env, at, end, term);
    if (enif_is_binary(env, term) && enif_inspect_binary(env, term, &binary)) {
        if (end - at < 5 || binary.size > (size_t)(end - at) - 5)
            return NULL;
        *at++ = BINARY;
        at = number32(at, (uint32_t)binary.size);
        memcpy(at, binary.data, binary.size);
        return at + binary.size;
    }
    return NULL;
}

bool wr_external_of(wr_output *output, ErlNifEnv *env, ERL_NIF_TERM term, wr_external *external)
{
    external->buffer[0] = VERSION;
    uint8_t *end = term_at(env, external->buffer + 1, external->buffer + WR_EXTERNAL_BYTES, term);
    external->is_binary = end == NULL;
    if (end) {
        external->bytes = external->buffer;
        external->size = (size_t)(end - external->buffer);
        return true;
    }
    if (!enif_term_to_binary(env, term, &external->binary)) {
        wr_end(output, WR_MEMORY);
        return false;
    }
    external->bytes = external->binary.data;
    external->size = external->binary.size;
    return true;
}
