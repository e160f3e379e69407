/*
 * Processes that start in a function of a library, which calls a function of the author's module: the rows of
 * `witness_event_wrapper`. Built once, then only read, by any thread.
 */
#ifndef WITNESS_NATIVE_WRAPPER_H
#define WITNESS_NATIVE_WRAPPER_H

#include <erl_nif.h>
#include <stdbool.h>
#include <stddef.h>

/* Arguments of a row. */
#define WN_MAX_ARGUMENTS 8

typedef struct {
    ERL_NIF_TERM module, function, patterns; /* patterns: a list of `arity` terms */
    ERL_NIF_TERM runs;                       /* the function that the process runs, or 0: that of the row */
    int arity, runs_arity;
} wn_wrapper;

typedef struct {
    ErlNifEnv *env; /* of the patterns */
    wn_wrapper *rows;
    size_t count;
} wn_wrappers;

/* What a row has found in the arguments; 0: not there. */
typedef struct {
    ERL_NIF_TERM module, function, args;
} wn_wrapped;

/* [{Module, Function, Arity, Patterns, same | Function, Arity}]. False: wrong, or no memory, and nothing is left behind. */
bool wn_wrappers_init(ErlNifEnv *env, wn_wrappers *wrappers, ERL_NIF_TERM rows);
void wn_wrappers_free(wn_wrappers *wrappers);

/* The first row with patterns that match these arguments, and what it has found. NULL: there is none. */
const wn_wrapper *wn_wrappers_find(ErlNifEnv *env, const wn_wrappers *wrappers, ERL_NIF_TERM module, ERL_NIF_TERM function,
                                   const ERL_NIF_TERM *arguments, int count, wn_wrapped *found);

#endif
