/*
 * Shards, and the buffers of events: first one step at a time, then under threads. Writers make partitions of a shard that
 * live for a few events; the consumer of the shard must be told of each of them first, get its events in their order, and its
 * end last. It lets some go, moves others out, and dies now and then; a timer tells of what is listed.
 *
 *   shards [SECONDS [SEED]]
 */
#define _POSIX_C_SOURCE 200809L
#include "support.h"

#include "witness_native_buffer.h"
#include "witness_native_shard.h"
#include "witness_shared_memory.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <time.h>

#define LARGE ((size_t)1 << 30)
#define CONSUMER 77u
#define READER 78u /* of those that have moved out */

/* A birth is a number here, too. */
static atomic_int_fast64_t births_alive;

static void birth_drop(void *birth)
{
    ws_free(birth);
    atomic_fetch_sub(&births_alive, 1);
}

static wn_hub *hub(size_t memory, uint32_t events)
{
    wn_hub *made = wn_hub_new(memory, memory, 100, events, batch_drop);
    CHECK(made != NULL);
    made->drop_birth = birth_drop;
    return made;
}

static ws_budget births;

/* A partition of a shard, for the process with this number. */
static wn_partition *born(wn_hub *of, wn_shard *shard, uint64_t number, outcome *o)
{
    wn_partition *p = wn_partition_new(of, false);
    uint64_t *birth = ws_alloc(sizeof *birth);
    CHECK(p && birth);
    *birth = number;
    atomic_fetch_add(&births_alive, 1);
    p->members = 1;
    CHECK(wn_partition_birth(p, birth, sizeof *birth, &births));
    CHECK(wn_shard_join(shard, p));
    *o = outcome_of(true, wn_partition_born(p), CONSUMER);
    return p;
}

/* What the taker says is the birth of this process. */
static void is_birth(wn_taken *taken, uint64_t number)
{
    CHECK(taken->birth != NULL);
    EQUAL(*(uint64_t *)taken->birth, number);
    birth_drop(taken->birth);
    taken->birth = NULL;
}

static void has_events(const wn_taken *taken, uint64_t first, uint32_t count)
{
    EQUAL(taken->batch != NULL, count > 0);
    if (!taken->batch)
        return;
    const batch *b = taken->batch;
    EQUAL(b->count, count);
    for (uint32_t i = 0; i < count; i++)
        EQUAL(b->events[i], first + i);
    batch_drop(taken->batch);
}

static wn_partition *takes(wn_shard *shard, wn_taken *taken)
{
    wn_partition *p;
    CHECK(wn_shard_take(shard, &p, taken));
    return p;
}

static void takes_nothing(wn_shard *shard)
{
    wn_partition *p;
    wn_taken taken;
    CHECK(!wn_shard_take(shard, &p, &taken));
}

/* The consumer is done with the partition. */
static void gone(wn_shard *shard, wn_partition *p)
{
    wn_shard_leave(shard, p);
    wn_partition_release(p);
}

static void tell_some(void *argument, uintptr_t consumer)
{
    bool *wanted = argument;
    EQUAL(consumer, CONSUMER);
    CHECK(*wanted);
    *wanted = false;
}

/* `enough`: the tick lists so many that it tells of them at once; `tells`: or it tells of what is listed. */
static void ticked(wn_hub *of, wn_shard *shard, bool enough, bool tells)
{
    uintptr_t consumer = NOBODY;
    (void)wn_hub_tick(of, 0, tell_some, &enough);
    EQUAL(enough, 0);
    EQUAL(wn_ready_tick(&shard->ready, &consumer) & WN_NOTIFY, tells ? WN_NOTIFY : 0);
    if (tells)
        EQUAL(consumer, CONSUMER);
}

static void finish(wn_hub *of, wn_shard *shard)
{
    wn_hub_drain(of);
    wn_shard_clear(shard);
    EQUAL(ws_budget_used(&of->budget), 0);
    EQUAL(ws_budget_used(&births), 0);
    wn_hub_release(of);
    EQUAL(atomic_load(&births_alive), 0);
    check_nothing_left();
}

/* --- buffers --------------------------------------------------------------------- */

static size_t first_word(uintptr_t word)
{
    return word;
}

/* Whatever the sizes, entries come back whole and in order, and take no more memory than is accounted. */
static void entries_come_back(void)
{
    uint64_t random = 7;
    for (int round = 0; round < 300; round++) {
        uint32_t count = random_below(&random, 60);
        size_t sizes[60], said = WN_BUFFER_BYTES, real = WN_BUFFER_BYTES;
        wn_buffer *buffer = wn_buffer_new();
        CHECK(buffer && !buffer->user);
        for (uint32_t i = 0; i < count; i++) {
            static const uint32_t most[] = {3, 12, 80, 117, 2000};
            sizes[i] = 1 + random_below(&random, most[random_below(&random, 5)]);
            const wn_block *before = buffer->last;
            uintptr_t *entry = wn_buffer_add(buffer, sizes[i]);
            CHECK(entry != NULL);
            said += wn_buffer_bytes(sizes[i]);
            if (buffer->last != before)
                real += sizeof *before + buffer->last->size * sizeof(uintptr_t);
            for (size_t k = 0; k < sizes[i]; k++)
                entry[k] = k == 0 ? sizes[i] : i * 1000 + k;
        }
        CHECK(real <= said);
        wn_reading reading = wn_buffer_read(buffer);
        for (uint32_t i = 0; i < count; i++) {
            const uintptr_t *entry = wn_buffer_next(&reading, first_word);
            CHECK(entry != NULL);
            EQUAL(*entry, sizes[i]);
            for (size_t k = 1; k < sizes[i]; k++)
                EQUAL(entry[k], i * 1000 + k);
        }
        CHECK(wn_buffer_next(&reading, first_word) == NULL);
        wn_buffer_free(buffer);
    }
    wn_buffer_drain();
}

/* --- one step at a time ---------------------------------------------------------- */

static void a_shard_takes_in_order(void)
{
    outcome o;
    wn_shard shard;
    wn_taken taken;
    wn_hub *of = hub(LARGE, 2);
    wn_shard_init(&shard, of, 1);
    wn_shard_begin(&shard, CONSUMER);
    takes_nothing(&shard);
    wn_partition *p = born(of, &shard, 1, &o), *q = born(of, &shard, 2, &o);
    CHECK(add(q, 8, 20, true).todo & WN_NOTIFY);
    /* Told once, until the list was found empty. */
    EQUAL(add(p, 8, 10, true).todo & WN_NOTIFY, 0);
    EQUAL(add(p, 8, 11, true).todo & WN_NOTIFY, 0);
    CHECK(takes(&shard, &taken) == q);
    is_birth(&taken, 2);
    has_events(&taken, 20, 1);
    wn_partition_release(q);
    CHECK(takes(&shard, &taken) == p);
    is_birth(&taken, 1);
    has_events(&taken, 10, 2);
    wn_partition_release(p);
    EQUAL(leave(q).todo & WN_NOTIFY, 0);
    CHECK(takes(&shard, &taken) == q);
    EQUAL(taken.end, WN_COMPLETE);
    CHECK(!taken.batch && !taken.birth);
    gone(&shard, q);
    wn_partition_release(q);
    takes_nothing(&shard);
    outcome last = leave(p);
    EQUAL(last.todo & WN_NOTIFY, WN_NOTIFY);
    EQUAL(last.consumer, CONSUMER);
    CHECK(takes(&shard, &taken) == p);
    EQUAL(taken.end, WN_COMPLETE);
    gone(&shard, p);
    wn_partition_release(p);
    takes_nothing(&shard);
    finish(of, &shard);
}

static void a_shard_is_told_of_enough_or_by_the_timer(void)
{
    outcome o;
    wn_shard shard;
    wn_taken taken;
    wn_hub *of = hub(LARGE, 64);
    wn_partition *parts[3];
    wn_shard_init(&shard, of, 3);
    wn_shard_begin(&shard, CONSUMER);
    takes_nothing(&shard);
    for (uint64_t i = 0; i < 3; i++) {
        parts[i] = born(of, &shard, i, &o);
        EQUAL(o.todo & WN_WAKE, i == 0 ? WN_WAKE : 0);
    }
    ticked(of, &shard, true, false);
    for (uint64_t i = 0; i < 3; i++) {
        wn_partition *p = takes(&shard, &taken);
        is_birth(&taken, *(uint64_t *)taken.birth);
        wn_partition_release(p);
    }
    takes_nothing(&shard);
    EQUAL(add(parts[0], 8, 1, true).todo, WN_WAKE);
    ticked(of, &shard, false, true);
    ticked(of, &shard, false, false);
    CHECK(takes(&shard, &taken) == parts[0]);
    has_events(&taken, 1, 1);
    wn_partition_release(parts[0]);
    takes_nothing(&shard);
    for (uint64_t i = 0; i < 3; i++)
        EQUAL(leave(parts[i]).todo & WN_NOTIFY, i == 2 ? WN_NOTIFY : 0);
    for (uint64_t i = 0; i < 3; i++) {
        wn_partition *p = takes(&shard, &taken);
        EQUAL(taken.end, WN_COMPLETE);
        gone(&shard, p);
        wn_partition_release(p);
    }
    finish(of, &shard);
}

/* A gap replaces events, but not the birth: the consumer must know which process the gap is of. */
static void a_birth_is_no_part_of_a_gap(void)
{
    outcome o;
    wn_shard shard;
    wn_taken taken;
    wn_hub *of = hub(4000, 64);
    wn_shard_init(&shard, of, 1);
    wn_shard_begin(&shard, CONSUMER);
    wn_partition *p = born(of, &shard, 5, &o);
    CHECK(add(p, 100, 1, false).done);
    CHECK(!add(p, 8000, 2, false).done);
    CHECK(takes(&shard, &taken) == p);
    is_birth(&taken, 5);
    EQUAL(taken.end, WN_GAP);
    EQUAL(taken.missing, 3);
    CHECK(!taken.batch);
    gone(&shard, p);
    wn_partition_release(p);
    (void)leave(p);
    finish(of, &shard);
}

/* What the shard has in hand is charged until it comes again. */
static void what_a_shard_has_in_hand_is_charged(void)
{
    outcome o;
    wn_shard shard;
    wn_taken taken;
    wn_hub *of = hub(10 * 1000 * 1000, 64);
    wn_shard_init(&shard, of, 1);
    wn_shard_begin(&shard, CONSUMER);
    wn_partition *p = born(of, &shard, 5, &o);
    CHECK(add(p, 6 * 1000 * 1000, 1, true).done);
    CHECK(takes(&shard, &taken) == p);
    is_birth(&taken, 5);
    has_events(&taken, 1, 1);
    wn_partition_release(p);
    CHECK(ws_budget_used(&of->budget) >= 6 * 1000 * 1000);
    wn_shard_begin(&shard, CONSUMER);
    EQUAL(ws_budget_used(&of->budget), 0);
    wn_partition_unread(p);
    gone(&shard, p);
    (void)leave(p);
    finish(of, &shard);
}

/* The name of a place is never that of another partition, and one that was listed and has left is not handed over. */
static void a_process_that_has_left_is_not_named(void)
{
    outcome o;
    wn_shard shard;
    wn_taken taken;
    wn_hub *of = hub(LARGE, 64);
    wn_shard_init(&shard, of, 1);
    wn_shard_begin(&shard, CONSUMER);
    wn_partition *p = born(of, &shard, 1, &o);
    uint64_t name = p->place;
    CHECK(wn_shard_find(&shard, name) == p);
    CHECK(add(p, 8, 1, true).done);
    wn_partition_unread(p);
    gone(&shard, p);
    CHECK(wn_shard_find(&shard, name) == NULL);
    wn_partition *q = born(of, &shard, 2, &o);
    CHECK(q->place != name && wn_shard_find(&shard, name) == NULL);
    takes_nothing(&shard);
    (void)leave(p);
    (void)leave(q);
    CHECK(takes(&shard, &taken) == q);
    is_birth(&taken, 2);
    gone(&shard, q);
    wn_partition_release(q);
    finish(of, &shard);
}

/* It goes on behind what was taken, with a consumer of its own. */
static void a_partition_moves_out(void)
{
    outcome o;
    wn_shard shard;
    wn_taken taken;
    wn_hub *of = hub(LARGE, 64);
    wn_shard_init(&shard, of, 1);
    wn_shard_begin(&shard, CONSUMER);
    wn_partition *p = born(of, &shard, 1, &o);
    CHECK(add(p, 8, 1, true).done);
    CHECK(takes(&shard, &taken) == p);
    is_birth(&taken, 1);
    has_events(&taken, 1, 1);
    wn_partition_release(p);
    CHECK(add(p, 8, 2, true).done); /* listed */
    wn_partition_detach(p);
    wn_shard_leave(&shard, p); /* the reference of the table is that of the handle now */
    takes_nothing(&shard);
    CHECK(wn_partition_take(p, 9, &taken));
    has_events(&taken, 2, 1);
    CHECK(!wn_partition_take(p, 9, &taken));
    o = add(p, 8, 3, true);
    EQUAL(o.todo & WN_NOTIFY, WN_NOTIFY);
    EQUAL(o.consumer, 9);
    CHECK(wn_partition_take(p, 9, &taken));
    has_events(&taken, 3, 1);
    EQUAL(leave(p).consumer, 9);
    wn_partition_unread(p);
    wn_partition_release(p);
    finish(of, &shard);
}

/* Partitions that a consumer knew become unread; those that it was not told of are the next one's. */
static void a_consumer_has_a_successor(void)
{
    outcome o;
    wn_shard shard;
    wn_taken taken;
    wn_hub *of = hub(LARGE, 64);
    wn_shard_init(&shard, of, 1);
    wn_shard_begin(&shard, CONSUMER);
    wn_partition *p = born(of, &shard, 1, &o);
    CHECK(add(p, 8, 1, true).done);
    CHECK(takes(&shard, &taken) == p);
    is_birth(&taken, 1);
    has_events(&taken, 1, 1);
    wn_partition_release(p);
    wn_partition *q = born(of, &shard, 2, &o);
    CHECK(add(p, 8, 2, true).done);
    CHECK(add(q, 8, 1, true).done);
    EQUAL(wn_shard_reset(&shard), 1);
    CHECK(wn_partition_is_unread(p) && !wn_partition_is_unread(q));
    CHECK(!add(p, 8, 3, true).done);
    EQUAL(add(q, 8, 2, true).todo & WN_NOTIFY, 0);
    wn_shard_begin(&shard, CONSUMER);
    CHECK(takes(&shard, &taken) == q);
    is_birth(&taken, 2);
    has_events(&taken, 1, 2);
    wn_partition_release(q);
    takes_nothing(&shard);
    (void)leave(p);
    EQUAL(leave(q).todo & WN_NOTIFY, WN_NOTIFY);
    CHECK(takes(&shard, &taken) == q);
    gone(&shard, q);
    wn_partition_release(q);
    finish(of, &shard);
}

/* A shard without a consumer frees what it has. */
static void what_is_left_of_a_shard_is_freed(void)
{
    outcome o;
    wn_shard shard;
    wn_hub *of = hub(LARGE, 64);
    wn_shard_init(&shard, of, 1);
    for (uint64_t i = 0; i < 200; i++) {
        wn_partition *p = born(of, &shard, i, &o);
        CHECK(add(p, 8, 1, i % 2).done);
        (void)stop(p);
        wn_partition_release(p);
    }
    finish(of, &shard);
}

/* --- under threads --------------------------------------------------------------- */

#define WRITERS 3u
#define KNOWN 100000u

static struct {
    wn_hub *hub;
    wn_shard shard;
    sem_t bell, wake;
    atomic_bool over;
    atomic_uint_fast32_t writing;
    atomic_uint_fast64_t number;
    uint64_t seed;
    uint32_t numbers;
    /* What the consumer has seen of each process: its next event, with the bits of how it goes on. */
    uint32_t *next;
    /* Written before the end of a process: its events, if they fitted. */
    _Atomic uint32_t *written;
} world;

enum { STARTED = 1 << 30, ENDED = 1 << 29, LEFT = 1 << 28, SEQ = (1 << 28) - 1 };

static void notify(outcome o)
{
    if (o.todo & WN_NOTIFY) {
        CHECK(o.consumer == CONSUMER || o.consumer == READER);
        if (o.consumer == CONSUMER)
            sem_post(&world.bell);
    }
    if (o.todo & WN_WAKE)
        sem_post(&world.wake);
}

static void wait_for(sem_t *bell, const char *what)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    while (sem_timedwait(bell, &until) != 0) {
        snprintf(doing, sizeof doing, "waiting: %s", what);
        CHECK(errno == EINTR);
    }
}

static void *writer(void *argument)
{
    uint64_t random = world.seed * 31 + (uintptr_t)argument;
    for (;;) {
        uint64_t number = atomic_fetch_add(&world.number, 1);
        if (number >= world.numbers)
            break;
        outcome o;
        wn_partition *p = born(world.hub, &world.shard, number, &o);
        notify(o);
        uint32_t events = random_below(&random, 20), written = 0;
        for (uint32_t i = 0; i < events; i++) {
            o = add(p, random_below(&random, 200), number << 32 | i, i + 1 == events);
            written += o.done;
            notify(o);
        }
        atomic_store(&world.written[number], written);
        if (random_below(&random, 5)) {
            notify(leave(p));
        } else {
            notify(stop(p));
            wn_partition_release(p);
        }
    }
    atomic_fetch_sub(&world.writing, 1);
    sem_post(&world.bell);
    return NULL;
}

static void tell(void *argument, uintptr_t consumer)
{
    (void)argument;
    notify(outcome_of(true, WN_NOTIFY, consumer));
}

static void *timer(void *argument)
{
    (void)argument;
    while (!atomic_load(&world.over)) {
        wait_for(&world.wake, "the timer");
        bool left;
        do {
            uintptr_t consumer = NOBODY;
            left = wn_hub_tick(world.hub, 1, tell, NULL);
            unsigned todo = wn_ready_tick(&world.shard.ready, &consumer);
            notify(outcome_of(true, todo, consumer));
        } while (left);
    }
    return NULL;
}

/* True: the process is done. */
static bool check_taken(wn_taken *taken, uint64_t *number)
{
    if (taken->birth) {
        *number = *(uint64_t *)taken->birth;
        EQUAL(world.next[*number], 0);
        world.next[*number] = STARTED;
        birth_drop(taken->birth);
    }
    if (taken->batch) {
        const batch *b = taken->batch;
        for (uint32_t i = 0; i < b->count; i++) {
            if (*number == UINT64_MAX)
                *number = b->events[i] >> 32;
            EQUAL(b->events[i] >> 32, *number);
            EQUAL(world.next[*number] & (STARTED | ENDED | LEFT), STARTED);
            EQUAL(b->events[i] & SEQ, world.next[*number] & SEQ);
            world.next[*number]++;
        }
        batch_drop(taken->batch);
    }
    return taken->end != WN_OPEN;
}

/* A partition that has moved out is read to its end at once. */
static void read_out(wn_partition *p, uint64_t number)
{
    wn_taken taken;
    wn_partition_detach(p);
    wn_shard_leave(&world.shard, p);
    for (;;) {
        bool something = wn_partition_take(p, READER, &taken);
        if (something && check_taken(&taken, &number))
            break;
        if (!something) {
            struct timespec time = {0, 10000};
            nanosleep(&time, NULL);
        }
    }
    world.next[number] |= ENDED;
    wn_partition_unread(p);
    wn_partition_release(p);
}

static uint32_t consume(void)
{
    uint64_t random = world.seed * 77;
    uint32_t ended = 0;
    /* Which process is in which place, by its number there. */
    static uint64_t of_place[KNOWN];
    while (ended < world.numbers) {
        wn_partition *p;
        wn_taken taken;
        wn_shard_begin(&world.shard, CONSUMER);
        uint32_t some = 1 + random_below(&random, 50);
        bool more = true;
        while (some-- > 0 && (more = wn_shard_take(&world.shard, &p, &taken))) {
            uint32_t place = (uint32_t)p->place & ((1u << WN_PLACE_BITS) - 1);
            CHECK(place < KNOWN);
            uint64_t number = taken.birth ? UINT64_MAX : of_place[place];
            bool done = check_taken(&taken, &number);
            of_place[place] = number;
            if (done) {
                /* Nothing that was written is missing, but in a gap. */
                if (taken.end != WN_GAP)
                    EQUAL(world.next[number] & SEQ, atomic_load(&world.written[number]));
                world.next[number] |= ENDED;
                gone(&world.shard, p);
                ended++;
            } else if (random_below(&random, 30) == 0) {
                CHECK(wn_shard_find(&world.shard, p->place) == p);
                world.next[number] |= LEFT;
                wn_partition_unread(p);
                gone(&world.shard, p);
                ended++;
            } else if (random_below(&random, 60) == 0) {
                read_out(p, number);
                ended++;
            }
            wn_partition_release(p);
        }
        if (random_below(&random, 2000) == 0) {
            /* Births go on meanwhile. */
            uint32_t unread = wn_shard_reset(&world.shard), found = 0;
            for (uint32_t i = 0; i < world.numbers; i++) {
                if ((world.next[i] & (STARTED | ENDED | LEFT)) == STARTED) {
                    world.next[i] |= LEFT;
                    found++;
                }
            }
            EQUAL(found, unread);
            ended += unread;
        } else if (!more && ended < world.numbers) {
            wait_for(&world.bell, "the shard");
        }
    }
    return ended;
}

static uint64_t round_of(uint64_t seed)
{
    static const size_t memories[] = {LARGE, 200u << 10, 20u << 10};
    static const uint32_t batches[] = {1, 4, 64};
    uint64_t random = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
    pthread_t threads[WRITERS + 1];
    (void)random_next(&random);
    world.seed = random_next(&random);
    world.hub = hub(memories[random_below(&random, 3)], batches[random_below(&random, 3)]);
    wn_shard_init(&world.shard, world.hub, 1 + random_below(&random, 20));
    world.numbers = 2000;
    world.number = 0;
    world.over = false;
    world.writing = WRITERS;
    world.next = calloc(world.numbers, sizeof *world.next);
    world.written = calloc(world.numbers, sizeof *world.written);
    CHECK(world.next && world.written && sem_init(&world.bell, 0, 0) == 0 && sem_init(&world.wake, 0, 0) == 0);
    CHECK(pthread_create(&threads[WRITERS], NULL, timer, NULL) == 0);
    for (uintptr_t i = 0; i < WRITERS; i++)
        CHECK(pthread_create(&threads[i], NULL, writer, (void *)i) == 0);
    uint32_t ended = consume();
    EQUAL(ended, world.numbers);
    for (size_t i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&world.over, true);
    sem_post(&world.wake);
    pthread_join(threads[WRITERS], NULL);
    CHECK(ws_budget_used(&world.hub->budget) <= world.hub->budget.limit);
    finish(world.hub, &world.shard);
    free(world.next);
    free(world.written);
    sem_destroy(&world.bell);
    sem_destroy(&world.wake);
    return ended;
}

int main(int argc, char **argv)
{
    static void (*const steps[])(void) = {entries_come_back,
                                          a_shard_takes_in_order,
                                          a_shard_is_told_of_enough_or_by_the_timer,
                                          a_birth_is_no_part_of_a_gap,
                                          what_a_shard_has_in_hand_is_charged,
                                          a_process_that_has_left_is_not_named,
                                          a_partition_moves_out,
                                          a_consumer_has_a_successor,
                                          what_is_left_of_a_shard_is_freed};
    static char name[80];
    test_name = name;
    ws_budget_init(&births, SIZE_MAX);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        snprintf(name, sizeof name, "shards, step %zu", i);
        steps[i]();
    }
    time_t until = time(NULL) + (argc > 1 ? strtol(argv[1], NULL, 10) : 5);
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, seed = first, processes = 0;
    do {
        snprintf(name, sizeof name, "shards 1 %" PRIu64, seed);
        processes += round_of(seed++);
    } while (time(NULL) < until);
    printf("shards: %" PRIu64 " rounds, %" PRIu64 " processes: passed\n", seed - first, processes);
    return 0;
}
