/*
 * The functions that recorded processes call to report what they do. `Me` is the id of the caller. They never raise: a call
 * for an id that is not the caller's own does nothing.
 *
 * An entry that cannot be made has ended the recording (witness_record_stream.h), and the writer learns of that. So what the
 * functions for entries return is not needed here.
 */
#ifndef WITNESS_RECORD_REPORTS_H
#define WITNESS_RECORD_REPORTS_H

#include "witness_record_table.h"

#include <erl_nif.h>

/*
 * There is one in a VM. It outlives the module's versions, which pass it on. It is hidden in the library, so that it is read
 * without an indirection.
 */
#pragma GCC visibility push(hidden)
extern wr_recorder *wr_vm_recorder;
#pragma GCC visibility pop

/* Of `load`. */
void wr_reports_load(ErlNifEnv *env);

ERL_NIF_TERM wr_report_took(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wr_report_from(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wr_report_content(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wr_report_timeout(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wr_report_waits(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wr_report_result(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wr_report_raise(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wr_report_named(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wr_report_sent(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wr_report_contents(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wr_report_reads(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wr_report_changes(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wr_report_changed(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wr_report_hash(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
