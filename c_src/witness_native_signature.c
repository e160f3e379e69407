#include "witness_native_signature.h"

#include "witness_native_atoms.h"

/* What one of these wraps may be wrapped itself, but not without end. */
#define MAX_DEPTH 12
/* Rows that lead to other ones (`witness_event_signature`). */
#define MAX_STEPS 8

/* A call: its arguments, if they are not too many for a row, and how many there are. */
typedef struct {
    ERL_NIF_TERM module, function;
    ERL_NIF_TERM arguments[WN_MAX_ARGUMENTS];
    int count; /* of the arguments that are kept */
    int arity; /* -1: they are no list */
} call;

static void set_arguments(ErlNifEnv *env, call *c, ERL_NIF_TERM list)
{
    unsigned length;
    ERL_NIF_TERM tail = list;
    c->count = 0;
    while (c->count < WN_MAX_ARGUMENTS && enif_get_list_cell(env, tail, &c->arguments[c->count], &tail))
        c->count++;
    c->arity = enif_get_list_length(env, list, &length) ? (int)length : -1;
}

static bool set_call(ErlNifEnv *env, call *c, ERL_NIF_TERM module, ERL_NIF_TERM function, ERL_NIF_TERM arguments)
{
    c->module = module;
    c->function = function;
    set_arguments(env, c, arguments);
    return enif_is_atom(env, module) && enif_is_atom(env, function);
}

static void set_argument(call *c, ERL_NIF_TERM argument)
{
    c->arguments[0] = argument;
    c->count = c->arity = 1;
}

/* The call of `gen:init_it': it becomes that of the callback `init'. */
static bool set_behaviour(ErlNifEnv *env, call *c)
{
    if (c->arity != 6 && c->arity != 7)
        return false;
    ERL_NIF_TERM callback = c->arguments[c->arity - 3], argument = c->arguments[c->arity - 2];
    if (!enif_is_atom(env, callback))
        return false;
    c->module = c->arguments[0] == am_gen_event ? am_gen_event : callback;
    c->function = am_init;
    set_argument(c, argument);
    return true;
}

static wn_spawned known(const call *c)
{
    return c->arity < 0 ? (wn_spawned){0}
                        : (wn_spawned){.known = true, .module = c->module, .function = c->function, .arity = c->arity};
}

/* A library's call becomes that of the author. False: it is none, or what it calls is not known here, which `end' says then. */
static bool unwrap(ErlNifEnv *env, const wn_wrappers *wrappers, call *c, wn_spawned *end)
{
    wn_wrapped found;
    const wn_wrapper *row = NULL;
    if (c->arity >= 0 && c->arity == c->count)
        row = wn_wrappers_find(env, wrappers, c->module, c->function, c->arguments, c->count, &found);
    if (!row) {
        *end = known(c);
        return false;
    }
    if (row->runs) {
        *end = (wn_spawned){.known = true, .module = found.module, .function = row->runs, .arity = row->runs_arity};
        return false;
    }
    if (found.function && !found.module) {
        *end = (wn_spawned){.fun = found.function};
        return false;
    }
    if (found.function)
        return set_call(env, c, found.module, found.function, found.args);
    c->module = found.module;
    if (found.args)
        set_argument(c, found.args);
    return true;
}

wn_spawned wn_signature(ErlNifEnv *env, const wn_wrappers *wrappers, ERL_NIF_TERM mfa)
{
    const ERL_NIF_TERM *t;
    int size, steps = 0;
    call c;
    if (!enif_get_tuple(env, mfa, &size, &t) || size != 3 || !set_call(env, &c, t[0], t[1], t[2]))
        return (wn_spawned){0};
    for (int depth = 0; depth < MAX_DEPTH; depth++) {
        const ERL_NIF_TERM *a = c.arguments;
        bool good;
        if (c.module == am_proc_lib && c.function == am_init_p && c.arity == 5) {
            bool is_behaviour = a[2] == am_gen && a[3] == am_init_it;
            good = set_call(env, &c, a[2], a[3], a[4]);
            if (good && is_behaviour && set_behaviour(env, &c) && c.module == am_gen_event)
                return known(&c);
        } else if (c.module == am_proc_lib && c.function == am_init_p && c.arity == 3) {
            return (wn_spawned){.fun = enif_is_fun(env, a[2]) ? a[2] : 0};
        } else if (c.module == am_erlang && c.function == am_apply && c.arity == 2) {
            return (wn_spawned){.fun = enif_is_fun(env, a[0]) ? a[0] : 0};
        } else if (c.module == am_erlang && c.function == am_apply && c.arity == 3) {
            good = set_call(env, &c, a[0], a[1], a[2]);
        } else if (c.module == am_erts_internal && c.function == am_spawn_init && c.arity == 1) {
            good = enif_get_tuple(env, a[0], &size, &t) && size == 3 && set_call(env, &c, t[0], t[1], t[2]);
        } else if (c.module == am_proc_lib || c.module == am_erlang || c.module == am_erts_internal) {
            return (wn_spawned){0};
        } else {
            wn_spawned end;
            if (++steps > MAX_STEPS)
                return known(&c);
            good = unwrap(env, wrappers, &c, &end);
            if (!good)
                return end;
        }
        if (!good)
            return (wn_spawned){0};
    }
    return (wn_spawned){0};
}
