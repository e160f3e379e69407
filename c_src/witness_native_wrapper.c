#include "witness_native_wrapper.h"

#include "witness_native_atoms.h"

#include <stdlib.h>

static bool match(ErlNifEnv *env, ERL_NIF_TERM pattern, ERL_NIF_TERM term, wn_wrapped *found);

/* A list of pairs with atoms as keys. */
static bool is_keyword(ErlNifEnv *env, ERL_NIF_TERM list)
{
    ERL_NIF_TERM head;
    const ERL_NIF_TERM *t;
    int size;
    bool any = false;
    while (enif_get_list_cell(env, list, &head, &list)) {
        if (!enif_get_tuple(env, head, &size, &t) || size != 2 || !enif_is_atom(env, t[0]))
            return false;
        any = true;
    }
    return any && enif_is_empty_list(env, list);
}

static bool find_option(ErlNifEnv *env, ERL_NIF_TERM key, ERL_NIF_TERM list, ERL_NIF_TERM *value)
{
    ERL_NIF_TERM head;
    const ERL_NIF_TERM *t;
    int size;
    while (enif_get_list_cell(env, list, &head, &list)) {
        /* As `lists:keyfind/3`: the first tuple with the key decides. */
        if (enif_get_tuple(env, head, &size, &t) && size > 0 && enif_is_identical(t[0], key)) {
            *value = size == 2 ? t[1] : 0;
            return size == 2;
        }
    }
    return false;
}

static bool match_list(ErlNifEnv *env, ERL_NIF_TERM pattern, ERL_NIF_TERM term, wn_wrapped *found)
{
    ERL_NIF_TERM first, second, value;
    const ERL_NIF_TERM *t;
    int size;
    unsigned length;
    if (is_keyword(env, pattern)) {
        if (!enif_get_list_length(env, term, &length))
            return false;
        while (enif_get_list_cell(env, pattern, &first, &pattern)) {
            if (!enif_get_tuple(env, first, &size, &t) || !find_option(env, t[0], term, &value) || !match(env, t[1], value, found))
                return false;
        }
        return true;
    }
    while (enif_get_list_cell(env, pattern, &first, &pattern)) {
        if (!enif_get_list_cell(env, term, &second, &term) || !match(env, first, second, found))
            return false;
    }
    return enif_is_empty_list(env, pattern) && enif_is_empty_list(env, term);
}

static bool match_map(ErlNifEnv *env, ERL_NIF_TERM pattern, ERL_NIF_TERM term, wn_wrapped *found)
{
    ErlNifMapIterator iterator;
    ERL_NIF_TERM key, expected, value;
    bool good = enif_is_map(env, term) && enif_map_iterator_create(env, pattern, &iterator, ERL_NIF_MAP_ITERATOR_FIRST);
    if (!good)
        return false;
    for (; good && enif_map_iterator_get_pair(env, &iterator, &key, &expected); enif_map_iterator_next(env, &iterator))
        good = enif_get_map_value(env, term, key, &value) && match(env, expected, value, found);
    enif_map_iterator_destroy(env, &iterator);
    return good;
}

/* A project writes the patterns, so they are not deep. */
static bool match(ErlNifEnv *env, ERL_NIF_TERM pattern, ERL_NIF_TERM term, wn_wrapped *found)
{
    const ERL_NIF_TERM *p, *t;
    int wanted, size;
    if (enif_is_atom(env, pattern)) {
        if (pattern == am_any)
            return true;
        if (pattern == am_module) {
            found->module = term;
            return enif_is_atom(env, term) && term != am_nil && term != am_undefined && term != am_true && term != am_false;
        }
        if (pattern == am_function) {
            found->function = term;
            return enif_is_atom(env, term) || enif_is_fun(env, term);
        }
        if (pattern == am_args) {
            found->args = term;
            return true;
        }
        return pattern == term;
    }
    if (enif_get_tuple(env, pattern, &wanted, &p)) {
        if (!enif_get_tuple(env, term, &size, &t) || size != wanted)
            return false;
        for (int i = 0; i < size; i++) {
            if (!match(env, p[i], t[i], found))
                return false;
        }
        return true;
    }
    if (enif_is_map(env, pattern))
        return match_map(env, pattern, term, found);
    if (enif_is_list(env, pattern) && !enif_is_empty_list(env, pattern))
        return match_list(env, pattern, term, found);
    return enif_is_identical(pattern, term);
}

/* Whether what was found is enough to say what the process runs. */
static bool is_enough(ErlNifEnv *env, const wn_wrapper *row, const wn_wrapped *found)
{
    if (row->runs)
        return found->module;
    if (!found->function)
        return found->module;
    if (found->module)
        return enif_is_atom(env, found->function) && found->args && enif_is_list(env, found->args);
    return enif_is_fun(env, found->function) && (!found->args || enif_is_list(env, found->args));
}

const wn_wrapper *wn_wrappers_find(ErlNifEnv *env, const wn_wrappers *wrappers, ERL_NIF_TERM module, ERL_NIF_TERM function,
                                   const ERL_NIF_TERM *arguments, int count, wn_wrapped *found)
{
    for (const wn_wrapper *row = wrappers->rows; row < wrappers->rows + wrappers->count; row++) {
        if (row->module != module || row->function != function || row->arity != count)
            continue;
        ERL_NIF_TERM head, tail = row->patterns;
        bool good = true;
        *found = (wn_wrapped){0};
        for (int i = 0; good && i < count; i++)
            good = enif_get_list_cell(env, tail, &head, &tail) && match(env, head, arguments[i], found);
        if (good && is_enough(env, row, found))
            return row;
    }
    return NULL;
}

bool wn_wrappers_init(ErlNifEnv *env, wn_wrappers *wrappers, ERL_NIF_TERM rows)
{
    unsigned length;
    ERL_NIF_TERM head;
    if (!enif_get_list_length(env, rows, &length))
        return false;
    *wrappers = (wn_wrappers){.env = enif_alloc_env(), .rows = calloc(length + 1, sizeof *wrappers->rows)};
    bool good = wrappers->env && wrappers->rows;
    if (good)
        rows = enif_make_copy(wrappers->env, rows);
    for (; good && wrappers->count < length; wrappers->count++) {
        wn_wrapper *row = &wrappers->rows[wrappers->count];
        const ERL_NIF_TERM *t;
        int size;
        good = enif_get_list_cell(wrappers->env, rows, &head, &rows) && enif_get_tuple(wrappers->env, head, &size, &t) &&
               size == 6 && enif_get_int(wrappers->env, t[2], &row->arity) && enif_get_int(wrappers->env, t[5], &row->runs_arity);
        if (good) {
            row->module = t[0];
            row->function = t[1];
            row->patterns = t[3];
            row->runs = t[4] == am_same ? 0 : t[4];
        }
    }
    if (!good)
        wn_wrappers_free(wrappers);
    return good;
}

void wn_wrappers_free(wn_wrappers *wrappers)
{
    if (wrappers->env)
        enif_free_env(wrappers->env);
    free(wrappers->rows);
    *wrappers = (wn_wrappers){0};
}
