/* What the tests of the native tracer's plain C share: checks, repeatable random numbers, batches of numbered events. */
#ifndef SUPPORT_H
#define SUPPORT_H

#include "witness_native_take.h"
#include "witness_native_timer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* --- checks ---------------------------------------------------------------------- */

/* What the test was doing, for the message of a failure. */
static const char *test_name = "";
static _Thread_local char doing[200] = "";

static inline void check_equal(const char *file, int line, const char *what, uint64_t found, uint64_t expected)
{
    if (found == expected)
        return;
    fprintf(stderr, "%s:%d: %s: %s is %" PRIu64 " and should be %" PRIu64 "%s%s\n", file, line, test_name, what, found, expected,
            doing[0] ? ", at " : "", doing);
    abort();
}

#define EQUAL(found, expected) check_equal(__FILE__, __LINE__, #found, (uint64_t)(found), (uint64_t)(expected))
#define CHECK(condition) check_equal(__FILE__, __LINE__, #condition, (condition) ? 1 : 0, 1)

/* --- random numbers (xorshift) --------------------------------------------------- */

static inline uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

static inline uint32_t random_below(uint64_t *state, uint32_t limit)
{
    return (uint32_t)((random_next(state) >> 32) % limit);
}

/* --- batches --------------------------------------------------------------------- */

/* An event is a number here. */
typedef struct {
    uint32_t count, room;
    uint64_t *events;
} batch;

static atomic_int_fast64_t batches_alive;

static inline void batch_drop(void *data)
{
    batch *b = data;
    free(b->events);
    free(b);
    atomic_fetch_sub(&batches_alive, 1);
}

static inline void batch_put(void **place, uint64_t event)
{
    batch *b = *place;
    if (!b) {
        b = *place = calloc(1, sizeof *b);
        CHECK(b != NULL);
        atomic_fetch_add(&batches_alive, 1);
    }
    if (b->count == b->room) {
        b->room = b->room ? 2 * b->room : 4;
        b->events = realloc(b->events, b->room * sizeof *b->events);
        CHECK(b->events != NULL);
    }
    b->events[b->count++] = event;
}

/* --- partitions ------------------------------------------------------------------ */

#define NOBODY UINT64_C(0xBAD)

/* What a call asked for, and the consumer to tell, or `NOBODY`. */
typedef struct {
    bool done;
    unsigned todo;
    uintptr_t consumer;
} outcome;

static inline outcome outcome_of(bool done, unsigned todo, uintptr_t consumer)
{
    CHECK((todo & ~(WN_NOTIFY | WN_WAKE)) == 0);
    return (outcome){done, todo, todo & WN_NOTIFY ? consumer : (uintptr_t)NOBODY};
}

/* As the callbacks of the tracer add an event. */
static inline outcome add(wn_partition *partition, size_t bytes, uint64_t event, bool at_once)
{
    unsigned todo = 0;
    uintptr_t consumer = NOBODY;
    if (!wn_partition_begin(partition, bytes, &todo, &consumer))
        return outcome_of(false, todo, consumer);
    batch_put(&partition->batch, event);
    todo = wn_partition_added(partition, at_once, &consumer);
    return outcome_of(true, todo, consumer);
}

/* An event for which there was room, but that could not be made. */
static inline outcome add_failing(wn_partition *partition, size_t bytes)
{
    unsigned todo = 0;
    uintptr_t consumer = NOBODY;
    if (!wn_partition_begin(partition, bytes, &todo, &consumer))
        return outcome_of(false, todo, consumer);
    todo = wn_partition_failed(partition, &consumer);
    return outcome_of(true, todo, consumer);
}

#define ENDING(name)                                                                                                               \
    static inline outcome name(wn_partition *partition)                                                                            \
    {                                                                                                                              \
        uintptr_t consumer = NOBODY;                                                                                               \
        unsigned todo = wn_partition_##name(partition, &consumer);                                                                 \
        return outcome_of(true, todo, consumer);                                                                                   \
    }
ENDING(leave)
ENDING(stop)
#undef ENDING

static inline outcome lose(wn_partition *partition)
{
    uintptr_t consumer = NOBODY;
    unsigned todo = wn_partition_gap(partition, WN_LOST, 0, &consumer);
    return outcome_of(true, todo, consumer);
}

/* Everything that was made is gone. */
static inline void check_nothing_left(void)
{
    EQUAL(atomic_load(&wn_count_partitions), 0);
    EQUAL(atomic_load(&wn_count_hubs), 0);
    EQUAL(atomic_load(&batches_alive), 0);
}

#endif
