/*
 * What the writer of a recording takes: blocks of the streams as binaries, and whether the recording has ended.
 *
 * Ownership: a binary is the block itself. Its memory is freed when the binary is collected.
 */
#ifndef WITNESS_RECORD_WRITER_H
#define WITNESS_RECORD_WRITER_H

#include "witness_record_table.h"

#include <erl_nif.h>

/* False: the resource type could not be opened. */
bool wr_writer_load(ErlNifEnv *env, ErlNifResourceFlags flags);

/*
 * {[{processes | data | order, binary()}], running | {ended, Reason}}, with at most so many blocks. An exception: there was no
 * memory for a binary, and the block is lost.
 */
ERL_NIF_TERM wr_writer_take(ErlNifEnv *env, wr_output *output, unsigned most);

/* A map: the state of the recording, its memory, and what was recorded. */
ERL_NIF_TERM wr_writer_info(ErlNifEnv *env, wr_recorder *recorder);

#endif
