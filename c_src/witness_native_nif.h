/* What binds the partitions to the VM: the state of a run, terms, and the tracer's callbacks. */
#ifndef WITNESS_NATIVE_NIF_H
#define WITNESS_NATIVE_NIF_H

#include "witness_native_batch.h"
#include "witness_native_shard.h"
#include "witness_native_names.h"
#include "witness_native_table.h"
#include "witness_native_terms.h"

#define WN_ATOMS(X)                                                                                                                \
    X(apply)                                                                                                                       \
    X(birth) X(call) X(closed) X(complete) X(discard) X(empty) X(ended) X(erlang) X(erts_internal) X(events) X(exit) X(extra)      \
        X(false) X(fork) X(gap) X(gen) X(gen_event) X(held) X(hidden) X(hubs) X(init) X(init_it) X(init_p) X(lost)                 \
            X(match_spec_result) X(memory) X(message_size) X(ok) X(open) X(overflow) X(partitions) X(proc_lib) X(processes)        \
                X(recv) X(runs) X(send) X(sensitive) X(spawn) X(spawn_init) X(spawned) X(stopped) X(supervisor)                    \
                    X(supervisor_bridge) X(trace) X(tracees) X(true) X(undefined) X(unknown) X(batches) X(bytes) X(read)           \
                        X(most_read) X(witness_batch) X(witness_data) X(witness_wake)

#define WN_DECLARE(name) extern ERL_NIF_TERM am_##name;
WN_ATOMS(WN_DECLARE)
extern ERL_NIF_TERM am_agent, am_dynamic_supervisor, am_task;
#undef WN_DECLARE

extern ErlNifResourceType *wn_run_type, *wn_handle_type;
extern atomic_int_fast64_t wn_count_runs;

/* One trace session. The tracer's state refers to it, so it lives as long as callbacks may come. */
typedef struct {
    wn_table table;
    wn_names names;
    wn_hub *hub;
    wn_hub *births_hub;
    wn_partition *births;
    wn_lane *shards; /* NULL: there are none */
    unsigned lane_count;
    atomic_uint next_lane;
    wn_partition *central; /* NULL, or the partition that every process is born into; set before anything is traced */
    ErlNifPid timer;
    size_t message_size; /* bytes; a larger message is a gap */
    bool timestamps;
    bool watching;      /* no process is read, and the run only waits for processes; set before anything is traced */
    atomic_bool closed; /* set before `close` visits the slots: a process that is born after the visit sees it */
    atomic_int_fast64_t held, processes;
    atomic_int_fast64_t read, most_read; /* partitions of shards: now, and at most */
} wn_run;

/* A partition, as Erlang has it. When its last copy is collected, the partition is not read any more. */
typedef struct {
    wn_partition *partition;
    uintptr_t consumer; /* is monitored: when it dies, the partition is not read any more */
    wn_taken rest;      /* with a batch: what was taken and not handed over yet; `reading` says how far it was read */
    wn_reading reading;
} wn_handle;

/* Bytes of a birth besides what the process was spawned with: its partition, the handle, the entry in the list. */
#define WN_BIRTH_BYTES 512u

/* NULL: the term is no run. */
wn_run *wn_run_of(ErlNifEnv *env, ERL_NIF_TERM term);

void wn_notify(ErlNifEnv *env, const wn_run *run, unsigned todo, uintptr_t consumer);
/* The run waits for one process less. */
void wn_release_held(ErlNifEnv *env, wn_run *run);
/* A process that the VM stopped reporting has ended. */
void wn_hidden_down(ErlNifEnv *env, wn_run *run, uintptr_t process);
ERL_NIF_TERM wn_handle_make(ErlNifEnv *env, wn_partition *partition);

ERL_NIF_TERM wn_enabled(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wn_enabled_call(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wn_enabled_message(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wn_enabled_procs(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wn_trace(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wn_trace_send(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wn_trace_receive(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
ERL_NIF_TERM wn_trace_procs(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

#endif
