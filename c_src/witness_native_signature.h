/*
 * The signature of a process, from what it was spawned with: module, function and arity without the wrappers of OTP. This
 * does as much of `witness_event_signature` as needs no contents of arguments.
 */
#ifndef WITNESS_NATIVE_SIGNATURE_H
#define WITNESS_NATIVE_SIGNATURE_H

#include <erl_nif.h>
#include <stdbool.h>

/* False: the signature cannot be decided here. */
bool wn_signature(ErlNifEnv *env, ERL_NIF_TERM mfa, ERL_NIF_TERM *module, ERL_NIF_TERM *function, int *arity);

#endif
