#include "witness_native_signature.h"

#include "witness_native_atoms.h"

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
