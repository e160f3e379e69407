/*
 * Handles: a partition, as Erlang has it, for one consumer.
 *
 * Ownership: a resource with a reference to its partition. When its last copy is collected, or its consumer dies, the
 * partition is not read any more. A handle is used by one process at a time; which one that is may change.
 */
#ifndef WITNESS_NATIVE_HANDLE_H
#define WITNESS_NATIVE_HANDLE_H

#include "witness_native_take.h"
#include "witness_native_buffer.h"

#include <erl_nif.h>

typedef struct {
    wn_partition *partition;
    uintptr_t consumer; /* is monitored: when it dies, the partition is not read any more */
    wn_taken rest;      /* with a batch: what was taken and not handed over yet; `reading` says how far it was read */
    wn_reading reading;
} wn_handle;

extern ErlNifResourceType *wn_handle_type;

/* With a reference of its own. 0: there is no memory. */
ERL_NIF_TERM wn_handle_make(ErlNifEnv *env, wn_partition *partition);

/* NULL: the term is no handle. */
static inline wn_handle *wn_handle_of(ErlNifEnv *env, ERL_NIF_TERM term)
{
    void *handle;
    return enif_get_resource(env, term, wn_handle_type, &handle) ? handle : NULL;
}

/*
 * Sends {witness_batch, Events, Status} to the caller, and returns `ok`; `empty` if there is nothing. `only_gap`: nothing but
 * a gap with nothing before it. An exception: the message could not be made.
 */
ERL_NIF_TERM wn_handle_take(ErlNifEnv *env, wn_handle *handle, bool only_gap);

/* The callbacks of the resource: its destructor, and the end of its consumer. */
void wn_handle_destroy(ErlNifEnv *env, void *handle);
void wn_handle_down(ErlNifEnv *env, void *handle, ErlNifPid *pid, ErlNifMonitor *monitor);

#endif
