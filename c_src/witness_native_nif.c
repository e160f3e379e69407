/* The functions of `witness_trace_native` that are not callbacks, and what is set up when it is loaded. */
#include "witness_native_nif.h"

#include "witness_native_memory.h"

#include <stdint.h>
#include <stdlib.h>

#define WN_DEFINE(name) ERL_NIF_TERM am_##name;
WN_ATOMS(WN_DEFINE)
#undef WN_DEFINE
ERL_NIF_TERM am_agent, am_dynamic_supervisor, am_task;

ErlNifResourceType *wn_run_type, *wn_handle_type;
atomic_int_fast64_t wn_count_runs;

/* --- resources ------------------------------------------------------------------- */

static void run_gone(ErlNifEnv *env, void *object)
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
    if (run->hub)
        wn_hub_drain(run->hub);
    for (unsigned i = 0; run->shards && i < run->lane_count; i++)
        wn_lane_clear(&run->shards[i]);
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

static void hidden_down(ErlNifEnv *env, void *object, ErlNifPid *pid, ErlNifMonitor *monitor)
{
    (void)monitor;
    wn_hidden_down(env, object, pid->pid);
}

/* Drops what was taken and not handed over yet. */
static void forget_rest(wn_handle *handle)
{
    if (handle->rest.batch)
        wn_batch_drop(handle->rest.batch);
    handle->rest.batch = NULL;
}

static void handle_gone(ErlNifEnv *env, void *object)
{
    wn_handle *handle = object;
    (void)env;
    forget_rest(handle);
    wn_partition_unread(handle->partition);
    wn_partition_release(handle->partition);
}

static void consumer_down(ErlNifEnv *env, void *object, ErlNifPid *pid, ErlNifMonitor *monitor)
{
    wn_handle *handle = object;
    (void)env, (void)monitor;
    wn_partition_abandon(handle->partition, pid->pid);
}

/* 0: there is no memory. */
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

static wn_handle *handle_of(ErlNifEnv *env, ERL_NIF_TERM term)
{
    void *handle;
    return enif_get_resource(env, term, wn_handle_type, &handle) ? handle : NULL;
}

wn_run *wn_run_of(ErlNifEnv *env, ERL_NIF_TERM term)
{
    void *run;
    return enif_get_resource(env, term, wn_run_type, &run) ? run : NULL;
}

/* --- functions ------------------------------------------------------------------- */

/* [{Module | 0, Function | 0, Arity | -1, Group :: 0 | 1, Apart :: 0 | 1}] */
static bool read_names(ErlNifEnv *env, ERL_NIF_TERM list, wn_names *names)
{
    unsigned length;
    if (!enif_get_list_length(env, list, &length))
        return false;
    wn_pattern *patterns = calloc(length + 1, sizeof *patterns);
    ERL_NIF_TERM head;
    bool good = patterns != NULL;
    for (unsigned i = 0; good && i < length; i++) {
        const ERL_NIF_TERM *t;
        int size, group, apart;
        good = enif_get_list_cell(env, list, &head, &list) && enif_get_tuple(env, head, &size, &t) && size == 5 &&
               enif_get_int(env, t[2], &patterns[i].arity) && enif_get_int(env, t[3], &group) && enif_get_int(env, t[4], &apart);
        if (good) {
            patterns[i].module = enif_is_atom(env, t[0]) ? t[0] : 0;
            patterns[i].function = enif_is_atom(env, t[1]) ? t[1] : 0;
            patterns[i].group = group != 0;
            patterns[i].apart = apart != 0;
        }
    }
    good = good && wn_names_init(names, patterns, length);
    free(patterns);
    return good;
}

/* The consumer of a shard is notified of so many partitions before the timer ticks. */
#define LANE_ENOUGH 16u

/* NULL if none are asked for, or there is no memory. */
static wn_lane *shards(unsigned count, wn_hub *hub)
{
    wn_lane *made = count ? calloc(count, sizeof *made) : NULL;
    for (unsigned i = 0; made && i < count; i++)
        wn_lane_init(&made[i], hub, LANE_ENOUGH);
    return made;
}

/* new_run(Names, Memory, PartitionMemory, MessageSize, Batch, TimeStamps, Slots, Timer, Lanes) -> {Run, Births} */
static ERL_NIF_TERM new_run(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifUInt64 memory, partition_memory, message_size;
    unsigned batch, slots, lane_count;
    ErlNifPid timer;
    (void)argc;
    if (!enif_get_uint64(env, argv[1], &memory) || !enif_get_uint64(env, argv[2], &partition_memory) ||
        !enif_get_uint64(env, argv[3], &message_size) || !enif_get_uint(env, argv[4], &batch) ||
        !enif_get_uint(env, argv[6], &slots) || !enif_get_local_pid(env, argv[7], &timer) ||
        !enif_get_uint(env, argv[8], &lane_count))
        return enif_make_badarg(env);
    wn_run *run = enif_alloc_resource(wn_run_type, sizeof *run);
    if (!run)
        return enif_make_badarg(env);
    *run = (wn_run){.timer = timer, .message_size = message_size, .timestamps = argv[5] == am_true};
    atomic_fetch_add(&wn_count_runs, 1);
    ERL_NIF_TERM result = enif_make_resource(env, run);
    enif_release_resource(run);
    run->hub = wn_hub_new(memory, partition_memory, WN_BATCH_OVERHEAD, batch, wn_batch_drop);
    run->births_hub = wn_hub_new(memory, memory, 0, 1, wn_batch_drop);
    run->lane_count = lane_count;
    if (run->hub) {
        run->hub->drop_birth = wn_birth_drop;
        run->shards = shards(lane_count, run->hub);
    }
    if (run->births_hub)
        run->births = wn_partition_new(run->births_hub, false);
    if (!run->hub || !run->births || (lane_count && !run->shards) || !wn_table_init(&run->table, slots) ||
        !read_names(env, argv[0], &run->names))
        return enif_make_badarg(env);
    ERL_NIF_TERM births = wn_handle_make(env, run->births);
    return births ? enif_make_tuple2(env, result, births) : enif_make_badarg(env);
}

/* central_of(Run, Grouped) -> Partition. The run is a member of it, so that it ends only when the run is closed. */
static ERL_NIF_TERM central_of(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = wn_run_of(env, argv[0]);
    (void)argc;
    if (!run || run->central)
        return enif_make_badarg(env);
    run->central = wn_partition_new(run->hub, argv[1] == am_true);
    if (!run->central)
        return enif_make_badarg(env);
    run->central->members = 1;
    ERL_NIF_TERM handle = wn_handle_make(env, run->central);
    return handle ? handle : enif_make_badarg(env);
}

static ERL_NIF_TERM status(ErlNifEnv *env, const wn_taken *taken)
{
    switch (taken->end) {
    case WN_COMPLETE:
        return am_complete;
    case WN_STOPPED:
        return am_stopped;
    case WN_GAP: {
        const ERL_NIF_TERM reasons[] = {[WN_OVERFLOW] = am_overflow,
                                        [WN_MEMORY] = am_memory,
                                        [WN_SIZE] = am_message_size,
                                        [WN_LOST] = am_lost,
                                        [WN_SENSITIVE] = am_sensitive};
        return enif_make_tuple3(env, am_gap, reasons[taken->reason], enif_make_uint64(env, taken->missing));
    }
    default:
        return am_open;
    }
}

/* At most so many events become terms at a time; they take about a millisecond. */
#define MOST_EVENTS 10000u

/* Whether there is something to hand over. `only_gap`: whether that may only be a gap with nothing before it. */
static bool in_hand(wn_handle *handle, uintptr_t self, bool only_gap)
{
    if (handle->rest.batch && !wn_partition_is_unread(handle->partition))
        return !only_gap;
    forget_rest(handle);
    if (!(only_gap ? wn_partition_take_gap : wn_partition_take)(handle->partition, self, &handle->rest))
        return false;
    if (handle->rest.batch)
        handle->reading = wn_batch_begin(&handle->rest);
    return true;
}

/*
 * The batch goes to the caller as a message with an environment of its own, so that nothing is copied once more. A large
 * one goes in pieces: the handle keeps the rest.
 */
static ERL_NIF_TERM taken(ErlNifEnv *env, const ERL_NIF_TERM argv[], bool only_gap)
{
    wn_handle *handle = handle_of(env, argv[0]);
    ErlNifPid self;
    if (!handle || !enif_self(env, &self))
        return enif_make_badarg(env);
    /* A handle is used by one process at a time; which one that is may change. */
    if (handle->consumer != self.pid) {
        handle->consumer = self.pid;
        enif_monitor_process(env, handle, &self, NULL);
    }
    if (!in_hand(handle, self.pid, only_gap))
        return am_empty;
    ErlNifEnv *from = enif_alloc_env();
    ERL_NIF_TERM events = enif_make_list(from, 0);
    bool births = false, more = handle->rest.batch && wn_batch_read(from, &handle->reading, MOST_EVENTS, &events, &births);
    if (!more)
        forget_rest(handle);
    enif_send(env, &self, from, enif_make_tuple3(from, am_witness_batch, events, more ? am_open : status(from, &handle->rest)));
    enif_free_env(from);
    return am_ok;
}

static ERL_NIF_TERM take(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    return taken(env, argv, false);
}

static ERL_NIF_TERM take_gap(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    return taken(env, argv, true);
}

/* --- shards ---------------------------------------------------------------------- */

/* About how many events a shard takes at a time; they take less than a millisecond. */
#define LANE_EVENTS 2000u
/* A piece by itself costs as much as some events. */
#define PIECE_EVENTS 4u

static wn_lane *lane_of(ErlNifEnv *env, const ERL_NIF_TERM argv[], wn_run **run)
{
    unsigned number;
    *run = wn_run_of(env, argv[0]);
    return *run && enif_get_uint(env, argv[1], &number) && number < (*run)->lane_count ? &(*run)->shards[number] : NULL;
}

static wn_partition *place_of(ErlNifEnv *env, const ERL_NIF_TERM argv[], wn_run **run, wn_lane **lane)
{
    ErlNifUInt64 place;
    *lane = lane_of(env, argv, run);
    return *lane && enif_get_uint64(env, argv[2], &place) ? wn_lane_find(*lane, place) : NULL;
}

static void leave(wn_run *run, wn_lane *lane, wn_partition *partition)
{
    wn_lane_leave(lane, partition);
    wn_partition_release(partition);
    atomic_fetch_sub_explicit(&run->read, 1, memory_order_relaxed);
}

/* {Place, Births, Events, Status}, or with the first event of the process: {Place, Init, Births, Events, Status} */
static ERL_NIF_TERM piece(ErlNifEnv *env, uint64_t place, wn_taken *taken)
{
    ERL_NIF_TERM id = enif_make_uint64(env, place), birth = taken->birth ? wn_birth_read(env, taken->birth) : 0;
    ERL_NIF_TERM events = enif_make_list(env, 0);
    bool births = false;
    wn_birth_drop(taken->birth);
    if (taken->batch) {
        wn_reading reading = wn_batch_begin(taken);
        if (wn_batch_read(env, &reading, UINT32_MAX, &events, &births) && reading.block)
            taken->end = WN_GAP, taken->reason = WN_MEMORY;
        wn_batch_drop(taken->batch);
    }
    ERL_NIF_TERM has_births = births ? am_true : am_false;
    return birth ? enif_make_tuple5(env, id, birth, has_births, events, status(env, taken))
                 : enif_make_tuple4(env, id, has_births, events, status(env, taken));
}

/* lane_take(Run, Number) -> [Piece], in the order of taking. If it is empty, the caller is notified of the next one. */
static ERL_NIF_TERM lane_take(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run;
    wn_lane *lane = lane_of(env, argv, &run);
    ErlNifPid self;
    (void)argc;
    if (!lane || !enif_self(env, &self))
        return enif_make_badarg(env);
    ERL_NIF_TERM pieces[LANE_EVENTS / PIECE_EVENTS];
    wn_partition *partition;
    wn_taken taken;
    unsigned events = 0, count = 0;
    wn_lane_begin(lane, self.pid);
    while (events <= LANE_EVENTS - PIECE_EVENTS && wn_lane_take(lane, &partition, &taken)) {
        events += taken.count + PIECE_EVENTS;
        pieces[count++] = piece(env, partition->place, &taken);
        if (taken.end != WN_OPEN)
            leave(run, lane, partition);
        wn_partition_release(partition);
    }
    enif_consume_timeslice(env, 1 + (int)(events < LANE_EVENTS ? events * 50 / LANE_EVENTS : 50));
    return enif_make_list_from_array(env, pieces, count);
}

/* lane_unread(Run, Number, Place) -> ok */
static ERL_NIF_TERM lane_unread(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run;
    wn_lane *lane;
    wn_partition *partition = place_of(env, argv, &run, &lane);
    (void)argc;
    if (!lane)
        return enif_make_badarg(env);
    if (partition) {
        wn_partition_unread(partition);
        leave(run, lane, partition);
    }
    return am_ok;
}

/* lane_detach(Run, Number, Place) -> Partition. The next process that takes from it is its consumer. */
static ERL_NIF_TERM lane_detach(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run;
    wn_lane *lane;
    wn_partition *partition = place_of(env, argv, &run, &lane);
    ERL_NIF_TERM handle = partition ? wn_handle_make(env, partition) : 0;
    (void)argc;
    if (!handle)
        return enif_make_badarg(env);
    wn_partition_detach(partition);
    leave(run, lane, partition);
    return handle;
}

/* lane_narrow(Run, Number, Place, Kinds) -> ok */
static ERL_NIF_TERM lane_narrow(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run;
    wn_lane *lane;
    unsigned kinds;
    wn_partition *partition = place_of(env, argv, &run, &lane);
    (void)argc;
    if (!lane || !enif_get_uint(env, argv[3], &kinds) || kinds > WN_ALL)
        return enif_make_badarg(env);
    if (partition)
        wn_partition_narrow(partition, kinds);
    return am_ok;
}

/* lane_reset(Run, Number) -> ok. The process that took from it is dead. */
static ERL_NIF_TERM lane_reset(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run;
    wn_lane *lane = lane_of(env, argv, &run);
    (void)argc;
    if (!lane)
        return enif_make_badarg(env);
    atomic_fetch_sub_explicit(&run->read, wn_lane_reset(lane), memory_order_relaxed);
    return am_ok;
}

static ERL_NIF_TERM unread(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_handle *handle = handle_of(env, argv[0]);
    (void)argc;
    if (!handle)
        return enif_make_badarg(env);
    wn_partition_unread(handle->partition);
    return am_ok;
}

static ERL_NIF_TERM narrow_to(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_handle *handle = handle_of(env, argv[0]);
    unsigned kinds;
    (void)argc;
    if (!handle || !enif_get_uint(env, argv[1], &kinds) || kinds > WN_ALL)
        return enif_make_badarg(env);
    wn_partition_narrow(handle->partition, kinds);
    return am_ok;
}

/* Adds a process that is not read. The run waits for its children, and for the process itself, unless it is a launcher. */
static ERL_NIF_TERM add_unread(ErlNifEnv *env, const ERL_NIF_TERM argv[], bool is_launcher)
{
    wn_run *run = wn_run_of(env, argv[0]);
    ErlNifPid pid;
    if (!run || !enif_get_local_pid(env, argv[1], &pid))
        return enif_make_badarg(env);
    wn_slot *slot = wn_table_slot(&run->table, pid.pid);
    wn_lock_take(&slot->lock);
    wn_tracee *tracee = wn_slot_find(slot, pid.pid) ? NULL : wn_slot_insert(slot, pid.pid, NULL, false);
    if (tracee) {
        tracee->launcher = is_launcher;
        tracee->held = !is_launcher;
        if (tracee->held)
            atomic_fetch_add(&run->held, 1);
    }
    wn_lock_give(&slot->lock);
    return tracee ? am_ok : enif_make_badarg(env);
}

static ERL_NIF_TERM launcher(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    return add_unread(env, argv, true);
}

static ERL_NIF_TERM parent(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    return add_unread(env, argv, false);
}

/* watch(Run) -> ok. Before anything is traced. */
static ERL_NIF_TERM watch(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = wn_run_of(env, argv[0]);
    (void)argc;
    if (!run)
        return enif_make_badarg(env);
    run->watching = true;
    return am_ok;
}

/* is_held(Run, Pid) -> boolean() */
static ERL_NIF_TERM is_held(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = wn_run_of(env, argv[0]);
    ErlNifPid pid;
    (void)argc;
    if (!run || !enif_get_local_pid(env, argv[1], &pid))
        return enif_make_badarg(env);
    wn_slot *slot = wn_table_slot(&run->table, pid.pid);
    wn_lock_take(&slot->lock);
    wn_tracee *tracee = wn_slot_find(slot, pid.pid);
    bool held = tracee && tracee->held;
    wn_lock_give(&slot->lock);
    return held ? am_true : am_false;
}

/*
 * sweep_run(Run, Most) -> [Pid]. The run waits no longer for processes that are dead; their children are in the table by
 * then. Returns at most so many of the processes that it still waits for.
 */
static ERL_NIF_TERM sweep(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = wn_run_of(env, argv[0]);
    unsigned most, count = 0;
    (void)argc;
    if (!run || !enif_get_uint(env, argv[1], &most))
        return enif_make_badarg(env);
    ERL_NIF_TERM alive = enif_make_list(env, 0);
    for (size_t i = 0; i <= run->table.mask; i++) {
        wn_slot *slot = &run->table.slots[i];
        unsigned dead = 0;
        if (!slot->first)
            continue;
        wn_lock_take(&slot->lock);
        for (wn_tracee *tracee = slot->first, *next; tracee; tracee = next) {
            ErlNifPid pid = {.pid = tracee->process};
            next = tracee->next;
            if (!tracee->held)
                continue;
            if (!enif_is_process_alive(env, &pid)) {
                wn_slot_remove(slot, tracee);
                dead++;
            } else if (count < most) {
                alive = enif_make_list_cell(env, enif_make_pid(env, &pid), alive);
                count++;
            }
        }
        wn_lock_give(&slot->lock);
        while (dead--)
            wn_release_held(env, run);
    }
    return alive;
}

/* The process is not traced any more; its events until now are in its partition. */
static ERL_NIF_TERM forget(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = wn_run_of(env, argv[0]);
    ErlNifPid pid;
    uintptr_t consumer = 0;
    unsigned todo = 0;
    bool held = false;
    (void)argc;
    if (!run || !enif_get_local_pid(env, argv[1], &pid))
        return enif_make_badarg(env);
    wn_slot *slot = wn_table_slot(&run->table, pid.pid);
    wn_lock_take(&slot->lock);
    wn_tracee *tracee = wn_slot_find(slot, pid.pid);
    if (tracee) {
        held = tracee->held;
        wn_partition *partition = tracee->partition;
        wn_slot_remove(slot, tracee);
        if (partition && partition != run->central)
            todo = wn_partition_stop(partition, &consumer);
        if (partition)
            wn_partition_release(partition);
    }
    wn_lock_give(&slot->lock);
    wn_notify(env, run, todo, consumer);
    if (held)
        wn_release_held(env, run);
    return am_ok;
}

/* See wn_run for why no process is missed. */
static ERL_NIF_TERM close_run(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = wn_run_of(env, argv[0]);
    uintptr_t consumer = 0;
    (void)argc;
    if (!run)
        return enif_make_badarg(env);
    atomic_store(&run->closed, true);
    for (size_t i = 0; i <= run->table.mask; i++) {
        wn_slot *slot = &run->table.slots[i];
        wn_lock_take(&slot->lock);
        while (slot->first) {
            wn_partition *partition = slot->first->partition;
            wn_slot_remove(slot, slot->first);
            if (partition && partition != run->central) {
                unsigned todo = wn_partition_stop(partition, &consumer);
                wn_notify(env, run, todo, consumer);
            }
            if (partition)
                wn_partition_release(partition);
        }
        wn_lock_give(&slot->lock);
    }
    wn_hub_drain(run->hub);
    if (run->central) {
        unsigned todo = wn_partition_stop(run->central, &consumer);
        wn_notify(env, run, todo, consumer);
    }
    unsigned todo = wn_partition_stop(run->births, &consumer);
    wn_notify(env, run, todo, consumer);
    return am_ok;
}

static void tell(void *env, uintptr_t consumer)
{
    ErlNifPid pid = {.pid = consumer};
    enif_send(env, &pid, NULL, am_witness_data);
}

static ERL_NIF_TERM tick(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = wn_run_of(env, argv[0]);
    unsigned age;
    (void)argc;
    if (!run || !enif_get_uint(env, argv[1], &age))
        return enif_make_badarg(env);
    bool left = wn_hub_tick(run->hub, age, tell, env);
    for (unsigned i = 0; run->shards && i < run->lane_count; i++) {
        uintptr_t consumer;
        if (wn_lane_tick(&run->shards[i], &consumer) & WN_TELL)
            tell(env, consumer);
    }
    return left ? am_true : am_false;
}

static ERL_NIF_TERM map_of(ErlNifEnv *env, const ERL_NIF_TERM *keys, const int64_t *values, size_t count)
{
    ERL_NIF_TERM map = enif_make_new_map(env);
    for (size_t i = 0; i < count; i++)
        enif_make_map_put(env, map, keys[i], enif_make_int64(env, values[i]), &map);
    return map;
}

static ERL_NIF_TERM counts(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    wn_run *run = wn_run_of(env, argv[0]);
    (void)argc;
    if (!run)
        return enif_make_badarg(env);
    ERL_NIF_TERM keys[] = {am_processes, am_held, am_events, am_bytes, am_read, am_most_read};
    int64_t values[] = {atomic_load(&run->processes),
                        atomic_load(&run->held),
                        (int64_t)atomic_load(&run->hub->events),
                        (int64_t)wn_budget_used(&run->hub->budget),
                        atomic_load(&run->read),
                        atomic_load(&run->most_read)};
    return map_of(env, keys, values, 6);
}

static ERL_NIF_TERM resources(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM keys[] = {am_runs, am_hubs, am_partitions, am_tracees, am_batches};
    int64_t values[] = {atomic_load(&wn_count_runs), atomic_load(&wn_count_hubs), atomic_load(&wn_count_partitions),
                        atomic_load(&wn_count_tracees), atomic_load(&wn_count_batches)};
    (void)argc, (void)argv;
    return map_of(env, keys, values, 5);
}

/* --- loading --------------------------------------------------------------------- */

static int set_up(ErlNifEnv *env, ErlNifResourceFlags flags)
{
    wn_alloc = enif_alloc;
    wn_free = enif_free;
#define WN_MAKE(name) am_##name = enif_make_atom(env, #name);
    WN_ATOMS(WN_MAKE)
#undef WN_MAKE
    am_agent = enif_make_atom(env, "Elixir.Agent.Server");
    am_dynamic_supervisor = enif_make_atom(env, "Elixir.DynamicSupervisor");
    am_task = enif_make_atom(env, "Elixir.Task.Supervised");
    ErlNifResourceTypeInit run = {.dtor = run_gone, .down = hidden_down}, handle = {.dtor = handle_gone, .down = consumer_down};
    wn_run_type = enif_open_resource_type_x(env, "witness_run", &run, flags, NULL);
    wn_handle_type = enif_open_resource_type_x(env, "witness_partition", &handle, flags, NULL);
    return wn_run_type && wn_handle_type && wn_terms_are_known(env) ? 0 : 1;
}

static int load(ErlNifEnv *env, void **data, ERL_NIF_TERM info)
{
    (void)data, (void)info;
    return set_up(env, ERL_NIF_RT_CREATE);
}

static int upgrade(ErlNifEnv *env, void **data, void **old, ERL_NIF_TERM info)
{
    (void)data, (void)old, (void)info;
    return set_up(env, ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER);
}

static ErlNifFunc functions[] = {
    {"enabled", 3, wn_enabled, 0},
    {"enabled_call", 3, wn_enabled_call, 0},
    {"enabled_send", 3, wn_enabled_message, 0},
    {"enabled_receive", 3, wn_enabled_message, 0},
    {"enabled_procs", 3, wn_enabled_procs, 0},
    {"trace", 5, wn_trace, 0},
    {"trace_send", 5, wn_trace_send, 0},
    {"trace_receive", 5, wn_trace_receive, 0},
    {"trace_procs", 5, wn_trace_procs, 0},
    {"new_run", 9, new_run, 0},
    {"central_of", 2, central_of, 0},
    {"take", 1, take, 0},
    {"take_gap", 1, take_gap, 0},
    {"unread", 1, unread, 0},
    {"narrow_to", 2, narrow_to, 0},
    {"lane_take", 2, lane_take, 0},
    {"lane_unread", 3, lane_unread, 0},
    {"lane_detach", 3, lane_detach, 0},
    {"lane_narrow", 4, lane_narrow, 0},
    {"lane_reset", 2, lane_reset, 0},
    {"add_launcher", 2, launcher, 0},
    {"add_parent", 2, parent, 0},
    {"watch", 1, watch, 0},
    {"is_held", 2, is_held, 0},
    {"sweep_run", 2, sweep, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"forget", 2, forget, 0},
    {"close_run", 1, close_run, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"tick", 2, tick, 0},
    {"counts_of", 1, counts, 0},
    {"resources", 0, resources, 0},
};

ERL_NIF_INIT(witness_trace_native, functions, load, NULL, upgrade, NULL)
