/*
 * Recording by the VM's tracing alone: messages as they arrive and as they are sent, and timeouts of `receive`.
 * The VM calls this in the context of the tracee, in the order of what it does.
 */
#ifndef WITNESS_RECORD_TRACED_H
#define WITNESS_RECORD_TRACED_H

#include "witness_record_table.h"

#include <erl_nif.h>

/* Of a message: erlang:phash2(Msg) bor (erlang:phash2([Msg]) bsl 32), which every VM can compute */
static inline uint64_t wr_hash_of(ErlNifEnv *env, ERL_NIF_TERM message)
{
    return enif_hash(ERL_NIF_PHASH2, message, 0) | enif_hash(ERL_NIF_PHASH2, enif_make_list1(env, message), 0) << 32;
}

/* What is recorded of messages besides their senders, and the name of this node. Before any process is traced. */
void wr_traced_options(bool contents, bool hash, ERL_NIF_TERM node);

/* A message arrived; options: of the callback, with what the pattern of messages (witness_record_traced.erl) adds to it. */
void wr_traced_receive(wr_recorder *recorder, ErlNifEnv *env, ERL_NIF_TERM tracee, ERL_NIF_TERM message, ERL_NIF_TERM options);
/* A message is about to be sent; with contents only. */
void wr_traced_send(wr_recorder *recorder, ErlNifEnv *env, ERL_NIF_TERM tracee, ERL_NIF_TERM message, ERL_NIF_TERM options);

#endif
