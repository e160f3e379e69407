/*
 * A run of the native tracer: one trace session, with its table of tracees, its partitions and its consumers.
 *
 * Ownership: it is a resource. The tracer's state refers to it, so it lives as long as callbacks may come.
 */
#ifndef WITNESS_NATIVE_RUN_H
#define WITNESS_NATIVE_RUN_H

#include "witness_native_called.h"
#include "witness_native_names.h"
#include "witness_native_shard.h"
#include "witness_native_table.h"

#include <erl_nif.h>

typedef struct {
    wn_table table;
    wn_names names;
    wn_wrappers wrappers;
    wn_called called;
    wn_hub *hub;
    wn_hub *births_hub;
    wn_partition *births;
    wn_shard *shards; /* NULL: there are none */
    unsigned shard_count;
    atomic_uint next_shard;
    wn_partition *central; /* NULL, or the partition that every process is born into; set before anything is traced */
    ErlNifPid timer;
    size_t message_size; /* bytes; a larger message is a gap */
    bool timestamps;
    bool watching;      /* no process is read, and the run only waits for processes; set before anything is traced */
    bool servers;       /* there may be some (witness_native_servers.h); set before anything is traced */
    atomic_bool closed; /* set before `close` visits the slots: a process that is born after the visit sees it */
    atomic_int_fast64_t held, processes;
    atomic_int_fast64_t read, most_read; /* partitions of shards: now, and at most */
} wn_run;

typedef struct {
    uint64_t memory, partition_memory, message_size; /* bytes */
    unsigned batch;                                  /* events */
    unsigned slots;                                  /* of the table of tracees; a power of two */
    unsigned shards;
    bool timestamps;
    ErlNifPid timer;
} wn_run_options;

extern ErlNifResourceType *wn_run_type;
/* How many there are in this process, for tests. */
extern atomic_int_fast64_t wn_count_runs;

/* The names and the wrappers are the run's from now on. NULL: there is no memory. */
wn_run *wn_run_new(ErlNifEnv *env, const wn_run_options *options, wn_names *names, wn_wrappers *wrappers, ERL_NIF_TERM *term);
/* The destructor of the resource. */
void wn_run_destroy(ErlNifEnv *env, void *run);

/* NULL: the term is no run. */
static inline wn_run *wn_run_of(ErlNifEnv *env, ERL_NIF_TERM term)
{
    void *run;
    return enif_get_resource(env, term, wn_run_type, &run) ? run : NULL;
}

/* Makes the partition that every process is born into. NULL: there is no memory. */
wn_partition *wn_run_centralize(wn_run *run, bool grouped);

/* Sends what a call asked for (WN_NOTIFY, WN_WAKE). The caller has no lock. */
void wn_run_notify(ErlNifEnv *env, const wn_run *run, unsigned todo, uintptr_t consumer);
/* A tick of the timer. True: there must be a next one. */
bool wn_run_tick(ErlNifEnv *env, wn_run *run, unsigned age);
/* Ends every partition that has not ended; for why no process is missed see `closed`. */
void wn_run_close(ErlNifEnv *env, wn_run *run);

#endif
