/*
 * Partitions and the table of tracees under many threads, which do what the tracer's callbacks, consumers and timer do:
 * writers are processes that are born into a partition, add events, have children there, exit, or are taken out of the
 * table by another thread; partitions are stopped or lose something at any moment; consumers take, are late, or do not
 * want to read any more; the memory is short in some rounds.
 *
 * A consumer must get exactly what each process has added, in its order, and no event before one that its process had
 * seen in the partition; an end says what is missing; nothing is left. `stress [SECONDS [SEED]]`.
 */
#define _POSIX_C_SOURCE 200809L
#include "support.h"

#include "witness_native_table.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>

#define PARTS 3u
#define WRITERS 4u
#define PROCESSES 200u /* of a partition, for the numbers of events */
#define MOST_EVENTS 300u
#define PATIENCE 20 /* seconds: a thread that waits longer was forgotten */

typedef enum { PROMPT, SLOW, ABSENT, LATE, WAITER, UNREADER, MODES } mode;

typedef struct {
    wn_partition *partition;
    mode mode;
    uint32_t first; /* as many writers have a process here from the beginning */
    sem_t bell;
    atomic_uint_fast32_t processes;
    atomic_uint_fast64_t tried, added, tells, takes;
    atomic_uint_fast64_t last; /* an event that is in the partition, or 0 */
    uint64_t next[PROCESSES];  /* what the consumer expects of each process */
    uint64_t taken;
    wn_taken end;
} part;

typedef struct {
    part *part;
    uintptr_t process;
    uint32_t number, seq, left;
} writer;

static struct {
    wn_hub *hub;
    wn_table table;
    part parts[PARTS];
    sem_t wake;
    atomic_bool quit, over;
    atomic_uint_fast32_t writing, working;
    uint64_t seed;
    pthread_barrier_t begin, end;
} world;

static void pause_for(uint32_t microseconds)
{
    struct timespec time = {0, (long)microseconds * 1000};
    nanosleep(&time, NULL);
}

/* --- telling --------------------------------------------------------------------- */

static void tell(void *argument, uintptr_t consumer)
{
    (void)argument;
    CHECK(consumer >= 1 && consumer <= PARTS);
    part *p = &world.parts[consumer - 1];
    atomic_fetch_add(&p->tells, 1);
    sem_post(&p->bell);
}

static void notify(outcome o)
{
    if (o.todo & WN_NOTIFY)
        tell(NULL, o.consumer);
    if (o.todo & WN_WAKE)
        sem_post(&world.wake);
}

static void wait_for(sem_t *bell, const char *what)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE;
    while (sem_timedwait(bell, &until) != 0) {
        snprintf(doing, sizeof doing, "waiting: %s", what);
        CHECK(errno == EINTR);
    }
}

/* Writers and consumers are done; the last of them needs no timer any more. */
static void finish_work(void)
{
    if (atomic_fetch_sub(&world.working, 1) == 1) {
        atomic_store(&world.over, true);
        sem_post(&world.wake);
    }
    pthread_barrier_wait(&world.end);
}

/* --- writers --------------------------------------------------------------------- */

/* 8 bits for the process, 24 for its number of events, and as many for an event that it has seen. */
static uint64_t event_of(const writer *w, uint64_t seen)
{
    return (uint64_t)(w->number + 1) << 56 | (uint64_t)w->seq << 32 | seen >> 32;
}

/* Under the lock of the slot, as the callbacks do it. */
static outcome write_event(writer *w, bool at_once, size_t bytes)
{
    uint64_t event = event_of(w, atomic_load(&w->part->last));
    atomic_fetch_add(&w->part->tried, 1);
    outcome o = add(w->part->partition, bytes, event, at_once);
    if (o.done) {
        w->seq++;
        atomic_fetch_add(&w->part->added, 1);
        atomic_store(&w->part->last, event);
    }
    return o;
}

static bool act(writer *w, uint64_t *random, bool exits)
{
    outcome o = {0}, ended = {0};
    wn_slot *slot = wn_table_slot(&world.table, w->process);
    ws_lock_take(&slot->lock);
    wn_tracee *tracee = wn_slot_find(slot, w->process);
    if (tracee) {
        CHECK(tracee->partition == w->part->partition);
        o = write_event(w, exits, random_below(random, 32) == 0 ? random_below(random, 4000) : random_below(random, 100));
        if (exits) {
            wn_slot_remove(slot, tracee);
            ended = leave(w->part->partition);
        }
    }
    ws_lock_give(&slot->lock);
    notify(o);
    notify(ended);
    return tracee != NULL && !exits;
}

static void insert(const writer *w)
{
    wn_slot *slot = wn_table_slot(&world.table, w->process);
    ws_lock_take(&slot->lock);
    CHECK(wn_slot_find(slot, w->process) == NULL);
    /* The first process of a partition is inserted as such. */
    CHECK(wn_slot_insert(slot, w->process, w->part->partition, w->number == 0) != NULL);
    ws_lock_give(&slot->lock);
}

static writer member(part *p, uint32_t number, uint64_t *random)
{
    return (writer){.part = p,
                    .number = number,
                    .left = random_below(random, MOST_EVENTS),
                    .process = ((uintptr_t)(p - world.parts) * PROCESSES + number) << 4 | 3};
}

static bool named(writer *w, part *p, uint64_t *random)
{
    uint32_t number = (uint32_t)atomic_fetch_add(&p->processes, 1);
    if (number >= PROCESSES)
        return false;
    *w = member(p, number, random);
    return true;
}

/* A child is in the partition before its parent can leave it. */
static bool fork_child(const writer *parent, writer *child, uint64_t *random)
{
    wn_slot *slot = wn_table_slot(&world.table, parent->process);
    ws_lock_take(&slot->lock);
    bool born = wn_slot_find(slot, parent->process) && named(child, parent->part, random);
    if (born)
        wn_partition_join(parent->part->partition);
    ws_lock_give(&slot->lock);
    if (born)
        insert(child);
    return born;
}

/* Another thread ends the tracing of a process. */
static void take_out(uint64_t *random)
{
    uintptr_t process = (uintptr_t)random_below(random, PARTS * PROCESSES) << 4 | 3;
    outcome o = {0};
    wn_slot *slot = wn_table_slot(&world.table, process);
    ws_lock_take(&slot->lock);
    wn_tracee *tracee = wn_slot_find(slot, process);
    wn_partition *partition = tracee ? tracee->partition : NULL;
    if (tracee)
        wn_slot_remove(slot, tracee);
    ws_lock_give(&slot->lock);
    if (!partition)
        return;
    if (random_below(random, 2)) {
        o = leave(partition);
    } else {
        o = stop(partition);
        wn_partition_release(partition);
    }
    notify(o);
}

static void interfere(const writer *w, uint64_t *random)
{
    wn_slot *slot = wn_table_slot(&world.table, w->process);
    outcome o = {0};
    ws_lock_take(&slot->lock);
    if (wn_slot_find(slot, w->process))
        o = random_below(random, 2) ? stop(w->part->partition) : lose(w->part->partition);
    ws_lock_give(&slot->lock);
    notify(o);
}

static void *write_all(void *argument)
{
    size_t self = (size_t)(uintptr_t)argument;
    static writer all[WRITERS][PARTS * PROCESSES];
    for (;;) {
        pthread_barrier_wait(&world.begin);
        if (atomic_load(&world.quit))
            return NULL;
        uint64_t random = world.seed * 977 + self + 1;
        writer *own = all[self];
        uint32_t count = 0;
        for (part *p = world.parts; p < world.parts + PARTS; p++)
            if (self < p->first) {
                own[count] = member(p, (uint32_t)self, &random);
                insert(&own[count++]);
            }
        while (count > 0) {
            writer *w = &own[random_below(&random, count)];
            uint32_t what = random_below(&random, 4000);
            bool alive = true;
            if (w->left-- == 0)
                alive = act(w, &random, true);
            else if (what < 20 && count < PARTS * PROCESSES)
                count += fork_child(w, &own[count], &random);
            else if (what < 24)
                take_out(&random);
            else if (what == 24)
                interfere(w, &random);
            else
                alive = act(w, &random, false);
            if (!alive)
                *w = own[--count];
        }
        atomic_fetch_sub(&world.writing, 1);
        finish_work();
    }
}

/* --- consumers ------------------------------------------------------------------- */

static void read_batch(part *p, const wn_taken *taken)
{
    const batch *b = taken->batch;
    EQUAL(b->count, taken->count);
    for (uint32_t i = 0; i < b->count; i++) {
        uint64_t event = b->events[i], seen = event << 32;
        uint32_t number = (uint32_t)(event >> 56) - 1;
        CHECK(number < PROCESSES);
        EQUAL(event >> 32 & 0xFFFFFF, p->next[number]);
        p->next[number]++;
        /* What the process had seen comes before. */
        if (seen >> 56)
            CHECK(p->next[(seen >> 56) - 1] > (seen >> 32 & 0xFFFFFF));
    }
    p->taken += b->count;
    batch_drop(taken->batch);
}

static void *consume(void *argument)
{
    part *p = argument;
    uintptr_t self = (uintptr_t)(p - world.parts) + 1;
    for (;;) {
        pthread_barrier_wait(&world.begin);
        if (atomic_load(&world.quit))
            return NULL;
        uint64_t random = world.seed * 991 + self;
        uint32_t enough = p->mode == UNREADER ? random_below(&random, 30) : UINT32_MAX;
        if (p->mode == ABSENT)
            pause_for(random_below(&random, 3000));
        while (p->mode == LATE && atomic_load(&world.writing) > 0)
            pause_for(200);
        while (p->end.end == WN_OPEN && enough-- > 0) {
            wn_taken taken;
            bool gap = p->mode == WAITER && wn_partition_take_gap(p->partition, self, &taken);
            if (p->mode == WAITER && !gap) /* for a turn */
                pause_for(random_below(&random, 500));
            atomic_fetch_add(&p->takes, 1);
            if (gap || wn_partition_take(p->partition, self, &taken)) {
                if (taken.batch)
                    read_batch(p, &taken);
                p->end = taken;
                if (p->mode == SLOW)
                    pause_for(random_below(&random, 500));
            } else {
                wait_for(&p->bell, "a consumer");
            }
        }
        wn_partition_unread(p->partition);
        wn_partition_release(p->partition);
        finish_work();
    }
}

/* --- the timer ------------------------------------------------------------------- */

static void *tick(void *argument)
{
    (void)argument;
    for (;;) {
        pthread_barrier_wait(&world.begin);
        if (atomic_load(&world.quit))
            return NULL;
        while (sem_wait(&world.wake) != 0) {
        }
        while (!atomic_load(&world.over)) {
            CHECK(ws_budget_used(&world.hub->budget) <= world.hub->budget.limit);
            pause_for(100);
            if (!wn_hub_tick(world.hub, 1, tell, NULL)) {
                while (sem_wait(&world.wake) != 0) {
                }
            }
        }
        pthread_barrier_wait(&world.end);
    }
}

/* --- rounds ---------------------------------------------------------------------- */

static void set_up(uint64_t seed)
{
    static const size_t memories[] = {SIZE_MAX, 1u << 20, 64u << 10, 20u << 10};
    static const size_t limits[] = {SIZE_MAX, 256u << 10, 16u << 10};
    static const uint32_t batches[] = {1, 8, 64, UINT32_MAX};
    uint64_t random = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    for (int i = 0; i < 4; i++)
        (void)random_next(&random);
    world.seed = random_next(&random);
    world.hub = wn_hub_new(memories[random_below(&random, 4)], limits[random_below(&random, 3)], 200,
                           batches[random_below(&random, 4)], batch_drop);
    CHECK(world.hub && wn_table_init(&world.table, random_below(&random, 2) ? 4 : 256));
    world.writing = WRITERS;
    world.working = WRITERS + PARTS;
    world.over = false;
    CHECK(sem_init(&world.wake, 0, 0) == 0);
    for (part *p = world.parts; p < world.parts + PARTS; p++) {
        memset(p, 0, sizeof *p);
        p->mode = (mode)random_below(&random, MODES);
        p->partition = wn_partition_new(world.hub, true);
        CHECK(p->partition && sem_init(&p->bell, 0, 0) == 0);
        p->first = 1 + random_below(&random, WRITERS);
        /* They have the first numbers: a late thread would find all numbers taken by the children of others. */
        p->processes = p->first;
        for (uint32_t i = 0; i < p->first; i++)
            wn_partition_join(p->partition);
    }
}

static void check_part(const part *p)
{
    snprintf(doing, sizeof doing, "mode %d, end %d", (int)p->mode, (int)p->end.end);
    CHECK(p->taken <= p->added && p->added <= p->tried);
    /* A consumer that was told and has not taken yet is told also of a gap. There is at most one gap. */
    CHECK(p->tells <= p->takes + (p->end.end == WN_GAP || p->mode == UNREADER));
    if (p->mode == UNREADER && p->end.end == WN_OPEN)
        return;
    CHECK(p->end.end != WN_OPEN);
    if (p->end.end != WN_GAP) {
        EQUAL(p->taken, p->added);
        EQUAL(p->end.missing, 0);
        if (p->end.end == WN_COMPLETE)
            EQUAL(p->taken, p->tried);
        return;
    }
    CHECK(p->end.reason >= WN_OVERFLOW && p->end.reason <= WN_LOST);
    CHECK(p->taken + p->end.missing >= p->added && p->taken + p->end.missing <= p->tried);
    /* No thread wrote any more when the gap was taken. */
    if (p->mode == LATE)
        EQUAL(p->taken + p->end.missing, p->tried);
}

static void finish(uint64_t ends[])
{
    for (part *p = world.parts; p < world.parts + PARTS; p++) {
        check_part(p);
        ends[p->end.end]++;
        sem_destroy(&p->bell);
    }
    snprintf(doing, sizeof doing, "the end");
    EQUAL(ws_budget_used(&world.hub->budget), 0);
    EQUAL(atomic_load(&wn_count_tracees), 0);
    wn_hub_drain(world.hub);
    wn_table_free(&world.table);
    wn_hub_release(world.hub);
    sem_destroy(&world.wake);
    check_nothing_left();
}

/* --- waking the timer ------------------------------------------------------------ */

static void *tick_at_once(void *argument)
{
    (void)argument;
    for (;;) {
        wait_for(&world.wake, "the timer");
        if (atomic_load(&world.over))
            return NULL;
        while (wn_hub_tick(world.hub, 0, tell, NULL)) {
        }
    }
}

/* The thread that is told adds the next event while the timer still decides whether to rest. */
static void no_wake_up_is_lost(void)
{
    pthread_t timer;
    wn_taken taken;
    part *p = &world.parts[0];
    test_name = "no_wake_up_is_lost";
    world.hub = wn_hub_new(SIZE_MAX, SIZE_MAX, 0, UINT32_MAX, batch_drop);
    CHECK(world.hub && (p->partition = wn_partition_new(world.hub, false)));
    CHECK(sem_init(&world.wake, 0, 0) == 0 && sem_init(&p->bell, 0, 0) == 0);
    CHECK(!wn_partition_take(p->partition, 1, &taken));
    CHECK(pthread_create(&timer, NULL, tick_at_once, NULL) == 0);
    for (uint64_t i = 0; i < 20000; i++) {
        notify(add(p->partition, 8, i, false));
        wait_for(&p->bell, "the consumer of one event");
        CHECK(wn_partition_take(p->partition, 1, &taken) && taken.count == 1);
        batch_drop(taken.batch);
    }
    atomic_store(&world.over, true);
    sem_post(&world.wake);
    pthread_join(timer, NULL);
    wn_hub_drain(world.hub);
    wn_partition_release(p->partition);
    wn_hub_release(world.hub);
    sem_destroy(&world.wake);
    sem_destroy(&p->bell);
    check_nothing_left();
}

int main(int argc, char **argv)
{
    no_wake_up_is_lost();
    time_t until = time(NULL) + (argc > 1 ? strtol(argv[1], NULL, 10) : 5);
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, seed = first, ends[4] = {0}, events = 0;
    static char name[80];
    pthread_t threads[WRITERS + PARTS + 1];
    test_name = name;
    CHECK(pthread_barrier_init(&world.begin, NULL, WRITERS + PARTS + 2) == 0);
    CHECK(pthread_barrier_init(&world.end, NULL, WRITERS + PARTS + 2) == 0);
    for (uintptr_t i = 0; i < WRITERS; i++)
        CHECK(pthread_create(&threads[i], NULL, write_all, (void *)i) == 0);
    for (size_t i = 0; i < PARTS; i++)
        CHECK(pthread_create(&threads[WRITERS + i], NULL, consume, &world.parts[i]) == 0);
    CHECK(pthread_create(&threads[WRITERS + PARTS], NULL, tick, NULL) == 0);
    for (; time(NULL) < until; seed++) {
        snprintf(name, sizeof name, "stress 1 %" PRIu64, seed);
        set_up(seed);
        pthread_barrier_wait(&world.begin);
        pthread_barrier_wait(&world.end);
        for (size_t i = 0; i < PARTS; i++)
            events += world.parts[i].taken;
        finish(ends);
    }
    atomic_store(&world.quit, true);
    pthread_barrier_wait(&world.begin);
    for (size_t i = 0; i < WRITERS + PARTS + 1; i++)
        pthread_join(threads[i], NULL);
    printf("stress: %" PRIu64 " rounds, %" PRIu64 " events taken; %" PRIu64 " complete, %" PRIu64 " stopped, %" PRIu64
           " with a gap, %" PRIu64 " unread: passed\n",
           seed - first, events, ends[WN_COMPLETE], ends[WN_STOPPED], ends[WN_GAP], ends[WN_OPEN]);
    return 0;
}
