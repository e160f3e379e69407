/* What the VM's representation of a term tells without its contents, and how large a copy of the term is. */
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
 * occurs, as copies have it. Also WN_TOO_LARGE if there is no memory to count it.
 */
#define WN_TOO_LARGE SIZE_MAX
size_t wn_size(ErlNifEnv *env, ERL_NIF_TERM term, size_t limit);

#endif
