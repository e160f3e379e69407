/*
 * What processes are called: the module that each was spawned with, and its registered name. The run asks for processes that have
 * ended by the time a violation is reported; of live ones it asks the VM. And how many there were with each signature.
 *
 * Two tables of fixed size, in which a later process takes the place of an earlier one. Names have a table of their own, so that
 * a registered process is not forgotten after many births of other processes. Pages are not allocated before they are used.
 */
#ifndef WITNESS_NATIVE_CALLED_H
#define WITNESS_NATIVE_CALLED_H

#include "witness_native_seen.h"
#include "witness_native_signature.h"
#include "witness_shared_lock.h"

#include <erl_nif.h>
#include <stdbool.h>

typedef struct wn_calling wn_calling;

typedef struct {
    wn_calling *modules, *registered;
    wn_seen seen;
} wn_called;

/* False: there is no memory, and nothing is left behind. */
bool wn_called_init(wn_called *called);
void wn_called_free(wn_called *called);

/* `count`: the process belongs to the system. */
void wn_called_spawned(ErlNifEnv *env, wn_called *called, ERL_NIF_TERM process, const wn_spawned *spawned, bool count);
void wn_called_registered(const wn_called *called, ERL_NIF_TERM process, ERL_NIF_TERM name);

/* {Name, Module}; `undefined` for what is not known. */
ERL_NIF_TERM wn_called_find(ErlNifEnv *env, const wn_called *called, ERL_NIF_TERM process);

/* [{Module, Function, Arity, Count}]; function and arity are `_` for funs. */
ERL_NIF_TERM wn_called_seen(ErlNifEnv *env, const wn_called *called);

#endif
