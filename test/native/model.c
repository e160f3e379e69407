/*
 * Partitions beside a model of them: bytes are read as operations, and after each both must have the same.
 *
 * The model knows what the header promises, and no more. Memory is charged in grains, and the implementation chooses
 * their size. So within SLACK of a bound either answer is right, and the model follows the one that it got.
 *
 * With libFuzzer (clang -fsanitize=fuzzer) the bytes come from there. Otherwise `model [INPUTS [SEED]]` draws them.
 */
#include "support.h"

#include <string.h>

#define PARTITIONS 4u
#define SLACK 8192u
#define MOST_EVENTS 512u

typedef struct {
    wn_partition *real; /* NULL: there is none in this place */
    bool handle;        /* a reference besides those of the members */
    uint32_t members;
    wn_end end;
    wn_reason reason;
    bool unread, ended, told;
    uintptr_t consumer;
    uint64_t missing;
    uint64_t events[MOST_EVENTS]; /* oldest first */
    uint32_t count, since;
    size_t bytes, unhandled;
} model;

typedef struct {
    const uint8_t *data;
    size_t size;
} input;

static struct {
    wn_hub *hub;
    size_t memory, partition_limit, overhead;
    uint32_t batch, now;
    bool ticking;   /* between a wake-up and a tick that says there is nothing left */
    size_t outside; /* taken from the budget, but not by a partition */
    uint64_t next_event, taken;
    model models[PARTITIONS];
    uintptr_t due[PARTITIONS]; /* the consumers that the next tick has to tell */
} world;

static uint8_t byte(input *in)
{
    if (in->size == 0)
        return 0;
    in->size--;
    return *in->data++;
}

/* --- the model ------------------------------------------------------------------- */

static void forget_events(model *m)
{
    m->count = 0;
    m->bytes = 0;
}

static bool must_tell(model *m)
{
    if (m->told || !m->consumer || m->unread)
        return false;
    m->told = true;
    return true;
}

static void expect(model *m, bool told, outcome o)
{
    EQUAL(o.todo & WN_NOTIFY, told ? WN_NOTIFY : 0);
    if (told)
        EQUAL(o.consumer, m->consumer);
    if (o.todo & WN_WAKE) {
        CHECK(!world.ticking);
        world.ticking = true;
    }
}

static bool gap_tells(model *m, wn_reason reason, uint64_t missing)
{
    m->missing += missing + m->count;
    forget_events(m);
    m->end = WN_GAP;
    m->reason = reason;
    /* The consumer is told also of a gap that replaces what it has been told of. */
    m->told = false;
    return must_tell(m);
}

/* What the model thinks that all buffers take, without what grains add. */
static size_t in_use(void)
{
    size_t sum = world.outside;
    for (model *m = world.models; m < world.models + PARTITIONS; m++)
        if (m->real)
            sum += m->bytes + m->unhandled;
    return sum;
}

/* Whether `more` above `used` must be refused, and whether it may be. */
static bool must_refuse(size_t used, size_t more, size_t limit)
{
    return more > limit || used > limit - more;
}

static bool may_refuse(size_t used, size_t more, size_t limit, size_t slack)
{
    return must_refuse(used, more, limit) || limit - more - used < slack;
}

/* --- operations ------------------------------------------------------------------ */

static size_t some_bytes(uint8_t choice)
{
    static const size_t sizes[] = {
        0, 1, 8, 64, 200, 1000, 2048, 4096, 10000, 30000, 100000, 1000000, (size_t)1 << 40, SIZE_MAX / 2, SIZE_MAX - 64, SIZE_MAX};
    return sizes[choice % (sizeof sizes / sizeof *sizes)];
}

static void op_add(model *m, size_t bytes, bool at_once, bool failing)
{
    bool wanted = !m->unread && m->end == WN_OPEN;
    size_t more = m->count == 0 && bytes <= SIZE_MAX - world.overhead ? bytes + world.overhead : bytes;
    uint64_t event = world.next_event++;
    outcome o = failing ? add_failing(m->real, bytes) : add(m->real, bytes, event, at_once);
    if (!wanted) {
        CHECK(!o.done);
        if (m->end == WN_GAP && !m->ended)
            m->missing++;
        expect(m, false, o);
    } else if (!o.done) {
        bool full = may_refuse(m->bytes + m->unhandled, more, world.partition_limit, SLACK);
        bool no_memory = may_refuse(in_use(), more, world.memory, PARTITIONS * SLACK);
        wn_reason reason = (wn_reason)m->real->reason;
        CHECK((reason == WN_OVERFLOW && full) || (reason == WN_MEMORY && no_memory));
        expect(m, gap_tells(m, reason, 1), o);
    } else {
        CHECK(!must_refuse(m->bytes + m->unhandled, more, world.partition_limit));
        CHECK(!must_refuse(in_use(), more, world.memory));
        if (failing) {
            expect(m, gap_tells(m, WN_MEMORY, 1), o);
            return;
        }
        m->bytes += more;
        if (m->count == 0)
            m->since = world.now;
        m->events[m->count++] = event;
        expect(m, (at_once || m->count >= world.batch) && must_tell(m), o);
    }
}

static void op_take(model *m, uintptr_t consumer, bool only_gap)
{
    wn_taken taken;
    memset(&taken, 0xAA, sizeof taken);
    bool tried = !only_gap || (m->end == WN_GAP && m->count == 0);
    bool something = tried && !m->unread && !m->ended && (m->count > 0 || m->end != WN_OPEN);
    EQUAL((only_gap ? wn_partition_take_gap : wn_partition_take)(m->real, consumer, &taken), something);
    if (tried) {
        m->unhandled = 0;
        m->told = false;
    }
    if (!m->unread) {
        m->consumer = consumer;
        if (!tried && !m->ended && (m->count > 0 || m->end != WN_OPEN))
            m->told = true;
    }
    if (!something)
        return;
    EQUAL(taken.count, m->count);
    EQUAL(taken.end, m->end);
    if (m->end == WN_GAP) {
        EQUAL(taken.reason, m->reason);
        EQUAL(taken.missing, m->missing);
    }
    EQUAL(taken.batch != NULL, m->count > 0);
    if (taken.batch) {
        const batch *b = taken.batch;
        EQUAL(b->count, m->count);
        EQUAL(memcmp(b->events, m->events, m->count * sizeof *m->events), 0);
        batch_drop(taken.batch);
    }
    world.taken += m->count;
    m->unhandled = m->bytes;
    forget_events(m);
    m->ended = m->end != WN_OPEN;
}

static void no_process_reads(model *m)
{
    m->unread = true;
    m->consumer = 0;
    m->unhandled = 0;
    forget_events(m);
}

static void op_unread(model *m)
{
    wn_partition_unread(m->real);
    no_process_reads(m);
}

static void op_abandon(model *m, uintptr_t consumer)
{
    wn_partition_abandon(m->real, consumer);
    if (m->consumer == consumer)
        no_process_reads(m);
}

static void op_join(model *m)
{
    wn_partition_join(m->real);
    m->members++;
}

static void op_leave(model *m)
{
    m->members--;
    bool complete = m->members == 0 && m->end == WN_OPEN;
    if (complete)
        m->end = WN_COMPLETE;
    bool told = complete && must_tell(m);
    expect(m, told, leave(m->real));
    if (m->members == 0 && !m->handle)
        m->real = NULL;
}

static void op_stop(model *m)
{
    bool told = m->end == WN_OPEN;
    if (told)
        m->end = WN_STOPPED;
    expect(m, told && must_tell(m), stop(m->real));
}

static void op_lose(model *m)
{
    bool told = m->end == WN_OPEN && !m->unread && gap_tells(m, WN_LOST, 0);
    expect(m, told, lose(m->real));
}

/* As a handle that is collected. */
static void op_release(model *m)
{
    op_unread(m);
    m->handle = false;
    wn_partition_release(m->real);
    if (m->members == 0)
        m->real = NULL;
}

static void op_open(model *m)
{
    *m = (model){.real = wn_partition_new(world.hub, false), .handle = true, .end = WN_OPEN};
    CHECK(m->real != NULL);
    op_join(m);
}

static void due_tell(void *argument, uintptr_t consumer)
{
    (void)argument;
    for (size_t i = 0; i < PARTITIONS; i++) {
        if (world.due[i] == consumer && consumer) {
            world.due[i] = 0;
            return;
        }
    }
    EQUAL(consumer, NOBODY);
}

static void op_tick(uint32_t age)
{
    world.now++;
    for (size_t i = 0; i < PARTITIONS; i++) {
        model *m = &world.models[i];
        bool due = m->real && m->count > 0 && m->consumer && world.now - m->since >= age && must_tell(m);
        world.due[i] = due ? m->consumer : 0;
    }
    world.ticking = wn_hub_tick(world.hub, age, due_tell, NULL);
    for (size_t i = 0; i < PARTITIONS; i++)
        EQUAL(world.due[i], 0);
}

static void op_outside(size_t bytes)
{
    if (world.outside) {
        ws_budget_give(&world.hub->budget, world.outside);
        world.outside = 0;
    } else if (bytes < (size_t)1 << 41 && ws_budget_take(&world.hub->budget, bytes)) {
        world.outside = bytes;
    }
}

/* --- after each operation -------------------------------------------------------- */

static void check_world(void)
{
    size_t used = ws_budget_used(&world.hub->budget), least = in_use();
    CHECK(used <= world.memory);
    CHECK(least <= used && used - least <= PARTITIONS * SLACK);
    EQUAL(atomic_load(&world.hub->events), world.taken);
    int64_t batches = 0, partitions = 0;
    for (model *m = world.models; m < world.models + PARTITIONS; m++) {
        if (!m->real)
            continue;
        partitions++;
        batches += m->count > 0;
        EQUAL(wn_partition_is_unread(m->real), m->unread);
        /* No event may wait for ever: either the consumer has been told, or the timer runs. */
        if (m->count > 0 && m->consumer && !m->told)
            CHECK(world.ticking);
    }
    EQUAL(atomic_load(&batches_alive), batches);
    CHECK(atomic_load(&wn_count_partitions) >= partitions);
    if (!world.ticking)
        EQUAL(atomic_load(&wn_count_partitions), partitions);
}

static void step(input *in, uint32_t number)
{
    uint8_t what = byte(in), which = byte(in), how = byte(in);
    model *m = &world.models[which % PARTITIONS];
    uintptr_t consumer = (uintptr_t)(m - world.models) * 16 + 1 + which / PARTITIONS % 3;
    snprintf(doing, sizeof doing, "step %u: operation %u of partition %u with %u", number, what % 20u, which % PARTITIONS, how);
    if (!m->real) {
        op_open(m);
        return;
    }
    switch (what % 20u) {
    case 8:
    case 9:
    case 10:
        op_take(m, consumer, false);
        break;
    case 11:
        op_take(m, consumer, true);
        break;
    case 12:
        op_tick(how % 4u);
        break;
    case 13:
        op_tick(how % 4u);
        break;
    case 14:
        if (m->members > 0 && m->members < 5)
            op_join(m);
        break;
    case 15:
        if (m->members > 0)
            op_leave(m);
        break;
    case 16:
        if (how % 4u == 0)
            op_stop(m);
        else if (how % 4u == 1)
            op_lose(m);
        else if (how % 4u == 2)
            op_add(m, some_bytes(how >> 2), false, true);
        break;
    case 17:
        if (how % 4u == 0)
            op_unread(m);
        else
            op_abandon(m, consumer);
        break;
    case 18:
        if (how % 4u == 0 && m->handle)
            op_release(m);
        break;
    case 19:
        op_outside(some_bytes(how));
        break;
    default:
        /* Mostly events of ordinary size. */
        if (m->count < MOST_EVENTS)
            op_add(m, how < 240 ? some_bytes(how % 8u) : some_bytes(how), what % 20u == 7, false);
    }
}

static uint32_t run(input *in)
{
    static const size_t limits[] = {SIZE_MAX, 1u << 20, 300000, 100000, 20000, 4096, 1, SIZE_MAX - 1};
    static const size_t overheads[] = {0, 100, 3300};
    static const uint32_t batches[] = {1, 2, 5, 64, UINT32_MAX};
    memset(&world, 0, sizeof world);
    world.memory = limits[byte(in) % 8u];
    world.partition_limit = limits[byte(in) % 8u];
    world.overhead = overheads[byte(in) % 3u];
    world.batch = batches[byte(in) % 5u];
    world.hub = wn_hub_new(world.memory, world.partition_limit, world.overhead, world.batch, batch_drop);
    CHECK(world.hub != NULL);
    uint32_t steps = 0;
    while (in->size > 0) {
        step(in, steps++);
        check_world();
    }
    snprintf(doing, sizeof doing, "the end, after step %u", steps);
    for (model *m = world.models; m < world.models + PARTITIONS; m++) {
        if (m->real && m->handle)
            op_release(m);
        while (m->real)
            op_leave(m);
        check_world();
    }
    wn_hub_drain(world.hub);
    EQUAL(ws_budget_used(&world.hub->budget), world.outside);
    wn_hub_release(world.hub);
    check_nothing_left();
    return steps;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    (void)run(&in);
    return 0;
}

#ifndef LIBFUZZER
int main(int argc, char **argv)
{
    uint32_t inputs = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 2000;
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, steps = 0;
    static uint8_t data[3000];
    static char name[80];
    test_name = name;
    for (uint64_t seed = first; seed < first + inputs; seed++) {
        uint64_t state = seed * UINT64_C(0x9E3779B97F4A7C15) + 1;
        for (size_t i = 0; i < sizeof data; i++)
            data[i] = (uint8_t)(random_next(&state) >> 40);
        snprintf(name, sizeof name, "model 1 %" PRIu64, seed);
        input in = {data, 4 + random_below(&state, sizeof data - 4)};
        steps += run(&in);
    }
    printf("model: %u inputs, %" PRIu64 " steps passed\n", inputs, steps);
    return 0;
}
#endif
