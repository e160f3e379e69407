/* What can be found out about a term without its contents, and how large it is. */
#ifndef WITNESS_NATIVE_TERMS_H
#define WITNESS_NATIVE_TERMS_H

#include <erl_nif.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The low bits of a term are its type. They are internal to the VM, so `load` checks them (wn_terms_are_known). */
#define WN_TAG(term) ((term) & 3u)
#define WN_TAG_LIST 1u
#define WN_TAG_IMMEDIATE 3u

/* Whether terms look as expected here. Immediate terms are the same in every environment. */
bool wn_terms_are_known(ErlNifEnv *env);

/*
 * Bytes that a copy of the term takes, WN_TOO_LARGE if more than the limit. A shared part is counted as often as it
 * occurs, as copies have it.
 */
#define WN_TOO_LARGE SIZE_MAX
size_t wn_size(ErlNifEnv *env, ERL_NIF_TERM term, size_t limit);

/* Whether the signature of a process can be found here, as `witness_event_signature` resolves it. */
bool wn_signature(ErlNifEnv *env, ERL_NIF_TERM mfa, ERL_NIF_TERM *module, ERL_NIF_TERM *function, int *arity);

#endif
