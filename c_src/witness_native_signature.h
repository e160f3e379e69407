/*
 * The signature of a process, from what it was spawned with: module, function and arity without the wrappers of OTP and of
 * libraries. This does as much of `witness_event_signature` as needs no name of a fun.
 */
#ifndef WITNESS_NATIVE_SIGNATURE_H
#define WITNESS_NATIVE_SIGNATURE_H

#include "witness_native_wrapper.h"

typedef struct {
    bool known; /* these: */
    ERL_NIF_TERM module, function;
    int arity;
    ERL_NIF_TERM fun; /* the fun that the process was spawned with, perhaps wrapped; otherwise 0 */
} wn_spawned;

wn_spawned wn_signature(ErlNifEnv *env, const wn_wrappers *wrappers, ERL_NIF_TERM mfa);

#endif
