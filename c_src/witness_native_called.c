#include "witness_native_called.h"

#include "witness_native_atoms.h"

#include <stdlib.h>
#include <string.h>

#define MODULES 16384u
#define REGISTERED 4096u
/* Characters of a module's name: a longer one is not remembered. */
#define MAX_NAME 128

struct wn_calling {
    ws_lock lock;
    ERL_NIF_TERM process, name; /* of a process and an atom, which are words */
};

bool wn_called_init(wn_called *called)
{
    /* A cleared flag is all zeros on these platforms. */
    *called = (wn_called){.modules = calloc(MODULES, sizeof(wn_calling)), .registered = calloc(REGISTERED, sizeof(wn_calling))};
    if (called->modules && called->registered && wn_seen_init(&called->seen))
        return true;
    wn_called_free(called);
    return false;
}

void wn_called_free(wn_called *called)
{
    free(called->modules);
    free(called->registered);
    wn_seen_free(&called->seen);
    *called = (wn_called){0};
}

/* The lowest bits of a process's number are bits 7 and up of its word, as long as there are few processes. */
static wn_calling *place(wn_calling *table, unsigned size, ERL_NIF_TERM process)
{
    return &table[(process >> 7 ^ process >> 4 ^ process >> 28) & (size - 1)];
}

static void put(wn_calling *table, unsigned size, ERL_NIF_TERM process, ERL_NIF_TERM name)
{
    wn_calling *calling = place(table, size, process);
    ws_lock_take(&calling->lock);
    calling->process = process;
    calling->name = name;
    ws_lock_give(&calling->lock);
}

static ERL_NIF_TERM get(wn_calling *table, unsigned size, ERL_NIF_TERM process)
{
    wn_calling *calling = place(table, size, process);
    ws_lock_take(&calling->lock);
    ERL_NIF_TERM name = calling->process == process ? calling->name : am_undefined;
    ws_lock_give(&calling->lock);
    return name;
}

/*
 * The module of a fun, of which the interface for native code only gives the text: `#Fun<Module.Index.Unique>`, or
 * `fun Module:Function/Arity`. A name that needs quotes and has a backslash is left out.
 */
static bool fun_module(ErlNifEnv *env, ERL_NIF_TERM fun, ERL_NIF_TERM *module)
{
    char text[MAX_NAME + 64];
    int length = enif_snprintf(text, sizeof text, "%T", fun);
    if (length <= 0 || (size_t)length >= sizeof text)
        return false;
    bool local = strncmp(text, "#Fun<", 5) == 0;
    if (!local && strncmp(text, "fun ", 4) != 0)
        return false;
    char *begin = text + (local ? 5 : 4), *end;
    if (*begin == '\'') {
        end = strchr(++begin, '\'');
    } else {
        end = strrchr(begin, local ? '.' : ':');
        /* Before the last point there is the index. */
        if (local && end) {
            *end = '\0';
            end = strrchr(begin, '.');
        }
    }
    if (!end || memchr(begin, '\\', (size_t)(end - begin)))
        return false;
    return enif_make_existing_atom_len(env, begin, (size_t)(end - begin), module, ERL_NIF_UTF8) != 0;
}

void wn_called_spawned(ErlNifEnv *env, wn_called *called, ERL_NIF_TERM process, const wn_spawned *spawned, bool count)
{
    ERL_NIF_TERM module = spawned->module;
    if (!spawned->known && !(spawned->fun && fun_module(env, spawned->fun, &module)))
        return;
    put(called->modules, MODULES, process, module);
    if (count)
        wn_seen_add(&called->seen, module, spawned->known ? spawned->function : am_any, spawned->known ? spawned->arity : -1);
}

void wn_called_registered(const wn_called *called, ERL_NIF_TERM process, ERL_NIF_TERM name)
{
    put(called->registered, REGISTERED, process, name);
}

ERL_NIF_TERM wn_called_find(ErlNifEnv *env, const wn_called *called, ERL_NIF_TERM process)
{
    return enif_make_tuple2(env, get(called->registered, REGISTERED, process), get(called->modules, MODULES, process));
}

ERL_NIF_TERM wn_called_seen(ErlNifEnv *env, const wn_called *called)
{
    ERL_NIF_TERM list = enif_make_list(env, 0);
    for (size_t i = 0; i < WN_SEEN_PLACES; i++) {
        const wn_sight *sight = wn_seen_get(&called->seen, i);
        if (!sight)
            continue;
        ERL_NIF_TERM arity = sight->arity < 0 ? am_any : enif_make_int(env, sight->arity);
        ERL_NIF_TERM count = enif_make_uint64(env, atomic_load_explicit(&sight->count, memory_order_relaxed));
        list = enif_make_list_cell(env, enif_make_tuple4(env, sight->module, sight->function, arity, count), list);
    }
    return list;
}
