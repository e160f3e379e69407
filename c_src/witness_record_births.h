/*
 * Births and ends of recorded processes, with the terms that the VM reports: what a process was spawned with, and the reason
 * of its exit.
 */
#ifndef WITNESS_RECORD_BIRTHS_H
#define WITNESS_RECORD_BIRTHS_H

#include "witness_record_table.h"

#include <erl_nif.h>

/* On the thread of the parent; the child can neither run nor receive. `options`: of the callback. */
void wr_births_spawned(wr_recorder *recorder, ErlNifEnv *env, ERL_NIF_TERM pid, ERL_NIF_TERM parent, ERL_NIF_TERM options);
/* The process has ended, or is about to. Does nothing if its end is known already. */
void wr_births_ended(wr_recorder *recorder, ErlNifEnv *env, ERL_NIF_TERM pid, ERL_NIF_TERM reason);

#endif
