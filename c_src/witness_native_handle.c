#include "witness_native_handle.h"

#include "witness_native_atoms.h"
#include "witness_native_batch.h"

ErlNifResourceType *wn_handle_type;

/* At most so many events become terms at a time; they take about a millisecond. */
#define MOST_EVENTS 10000u

ERL_NIF_TERM wn_handle_make(ErlNifEnv *env, wn_partition *partition)
{
    wn_handle *handle = enif_alloc_resource(wn_handle_type, sizeof *handle);
    if (!handle)
        return 0;
    wn_partition_keep(partition);
    *handle = (wn_handle){.partition = partition};
    ERL_NIF_TERM term = enif_make_resource(env, handle);
    enif_release_resource(handle);
    return term;
}

/* Drops what was taken and not handed over yet. */
static void drop_rest(wn_handle *handle)
{
    if (handle->rest.batch)
        wn_batch_drop(handle->rest.batch);
    handle->rest.batch = NULL;
}

void wn_handle_destroy(ErlNifEnv *env, void *object)
{
    wn_handle *handle = object;
    (void)env;
    drop_rest(handle);
    wn_partition_unread(handle->partition);
    wn_partition_release(handle->partition);
}

void wn_handle_down(ErlNifEnv *env, void *object, ErlNifPid *pid, ErlNifMonitor *monitor)
{
    wn_handle *handle = object;
    (void)env, (void)monitor;
    wn_partition_abandon(handle->partition, pid->pid);
}

/* Whether there is something to hand over. `only_gap`: whether that may only be a gap with nothing before it. */
static bool in_hand(wn_handle *handle, uintptr_t self, bool only_gap)
{
    if (handle->rest.batch && !wn_partition_is_unread(handle->partition))
        return !only_gap;
    drop_rest(handle);
    if (!(only_gap ? wn_partition_take_gap : wn_partition_take)(handle->partition, self, &handle->rest))
        return false;
    if (handle->rest.batch)
        handle->reading = wn_batch_begin(&handle->rest);
    return true;
}

/*
 * The batch is a message with an environment of its own, so that nothing is copied once more. A large one goes in pieces: the
 * handle keeps the rest.
 */
ERL_NIF_TERM wn_handle_take(ErlNifEnv *env, wn_handle *handle, bool only_gap)
{
    ErlNifPid self;
    if (!enif_self(env, &self))
        return enif_make_badarg(env);
    if (handle->consumer != self.pid) {
        /* Without a monitor the partition would be read for ever. */
        if (enif_monitor_process(env, handle, &self, NULL) != 0)
            return enif_make_badarg(env);
        handle->consumer = self.pid;
    }
    if (!in_hand(handle, self.pid, only_gap))
        return am_empty;
    ErlNifEnv *from = enif_alloc_env();
    if (!from)
        return enif_make_badarg(env);
    ERL_NIF_TERM events = enif_make_list(from, 0);
    bool births = false, more = handle->rest.batch && wn_batch_read(from, &handle->reading, MOST_EVENTS, &events, &births);
    if (!more)
        drop_rest(handle);
    bool sent = enif_send(env, &self, from,
                          enif_make_tuple3(from, am_witness_batch, events, more ? am_open : wn_batch_status(from, &handle->rest)));
    enif_free_env(from);
    return sent ? am_ok : enif_make_badarg(env);
}
