#include "witness_native_run.h"

#include "witness_native_atoms.h"
#include "witness_native_batch.h"
#include "witness_native_timer.h"

#include <stdlib.h>

ErlNifResourceType *wn_run_type;
atomic_int_fast64_t wn_count_runs;

/* The consumer of a shard is notified of so many partitions before the timer ticks. */
#define SHARD_ENOUGH 16u

/* NULL if none are asked for, or there is no memory. */
static wn_shard *shards(unsigned count, wn_hub *hub)
{
    wn_shard *made = count ? calloc(count, sizeof *made) : NULL;
    for (unsigned i = 0; made && i < count; i++)
        wn_shard_init(&made[i], hub, SHARD_ENOUGH);
    return made;
}

wn_run *wn_run_new(ErlNifEnv *env, const wn_run_options *options, wn_names *names, wn_wrappers *wrappers, ERL_NIF_TERM *term)
{
    wn_run *run = enif_alloc_resource(wn_run_type, sizeof *run);
    if (!run) {
        wn_names_free(names);
        wn_wrappers_free(wrappers);
        return NULL;
    }
    *run = (wn_run){.names = *names,
                    .wrappers = *wrappers,
                    .timer = options->timer,
                    .message_size = options->message_size,
                    .timestamps = options->timestamps};
    atomic_fetch_add(&wn_count_runs, 1);
    /* From here on the destructor frees what there is. */
    *term = enif_make_resource(env, run);
    enif_release_resource(run);
    run->hub = wn_hub_new(options->memory, options->partition_memory, WN_BATCH_OVERHEAD, options->batch, wn_batch_drop);
    run->births_hub = wn_hub_new(options->memory, options->memory, 0, 1, wn_batch_drop);
    run->shard_count = options->shards;
    if (run->hub) {
        run->hub->drop_birth = wn_birth_drop;
        run->shards = shards(options->shards, run->hub);
    }
    if (run->births_hub)
        run->births = wn_partition_new(run->births_hub, false);
    bool good = run->hub && run->births && wn_called_init(&run->called) && (!options->shards || run->shards) &&
                wn_table_init(&run->table, options->slots);
    return good ? run : NULL;
}

void wn_run_destroy(ErlNifEnv *env, void *object)
{
    wn_run *run = object;
    (void)env;
    if (run->table.slots) {
        for (size_t i = 0; i <= run->table.mask; i++) {
            wn_slot *slot = &run->table.slots[i];
            while (slot->first) {
                wn_partition *partition = slot->first->partition;
                wn_slot_remove(slot, slot->first);
                if (partition)
                    wn_partition_release(partition);
            }
        }
        wn_table_free(&run->table);
    }
    wn_names_free(&run->names);
    wn_wrappers_free(&run->wrappers);
    wn_called_free(&run->called);
    if (run->hub)
        wn_hub_drain(run->hub);
    for (unsigned i = 0; run->shards && i < run->shard_count; i++)
        wn_shard_clear(&run->shards[i]);
    free(run->shards);
    if (run->births)
        wn_partition_release(run->births);
    if (run->central)
        wn_partition_release(run->central);
    if (run->births_hub)
        wn_hub_release(run->births_hub);
    if (run->hub)
        wn_hub_release(run->hub);
    atomic_fetch_sub(&wn_count_runs, 1);
}

/* The run is a member of it, so that it ends only when the run is closed. */
wn_partition *wn_run_centralize(wn_run *run, bool grouped)
{
    run->central = wn_partition_new(run->hub, grouped);
    if (run->central)
        run->central->members = 1;
    return run->central;
}

/*
 * The message only asks the consumer to take: if it is late, no data is. It is lost only if the consumer is dead, and that is
 * noticed elsewhere: a consumer of its own is monitored (witness_native_handle.h), and that of a shard by its coordinator.
 */
static void notify_consumer(void *env, uintptr_t consumer)
{
    ErlNifPid pid = {.pid = consumer};
    (void)enif_send(env, &pid, NULL, am_witness_data);
}

void wn_run_notify(ErlNifEnv *env, const wn_run *run, unsigned todo, uintptr_t consumer)
{
    if (todo & WN_NOTIFY)
        notify_consumer(env, consumer);
    /* The timer ends only with the run, or with the process that opened it. Then no consumer needs it any more. */
    if (todo & WN_WAKE)
        (void)enif_send(env, &run->timer, NULL, am_witness_wake);
}

bool wn_run_tick(ErlNifEnv *env, wn_run *run, unsigned age)
{
    bool left = wn_hub_tick(run->hub, age, notify_consumer, env);
    for (unsigned i = 0; run->shards && i < run->shard_count; i++) {
        uintptr_t consumer;
        if (wn_ready_tick(&run->shards[i].ready, &consumer) & WN_NOTIFY)
            notify_consumer(env, consumer);
    }
    return left;
}

static void stop(ErlNifEnv *env, wn_run *run, wn_partition *partition)
{
    uintptr_t consumer = 0;
    unsigned todo = wn_partition_stop(partition, &consumer);
    wn_run_notify(env, run, todo, consumer);
}

void wn_run_close(ErlNifEnv *env, wn_run *run)
{
    atomic_store(&run->closed, true);
    for (size_t i = 0; i <= run->table.mask; i++) {
        wn_slot *slot = &run->table.slots[i];
        ws_lock_take(&slot->lock);
        while (slot->first) {
            wn_partition *partition = slot->first->partition;
            wn_slot_remove(slot, slot->first);
            if (partition && partition != run->central)
                stop(env, run, partition);
            if (partition)
                wn_partition_release(partition);
        }
        ws_lock_give(&slot->lock);
    }
    wn_hub_drain(run->hub);
    if (run->central)
        stop(env, run, run->central);
    stop(env, run, run->births);
}
