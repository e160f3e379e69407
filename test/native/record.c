/*
 * The recorder's plain C: first one promise at a time, then under threads. What is taken is decoded here, by the
 * formats of docs/internals/record-native.md and not by the recorder's code, and compared with what was recorded.
 *
 * Whatever a process does follows from a seed, so the check does it once more. Under threads writers have
 * processes that are born, record and end; one thread flushes, one takes, and one asks for processes that are not its
 * own.
 *
 *   record [SECONDS [SEED]]
 */
#define _POSIX_C_SOURCE 200809L
#include "support.h"

#include "witness_record_table.h"
#include "witness_shared_memory.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

/* --- memory ---------------------------------------------------------------------- */

static atomic_int_fast64_t pieces_alive;
static atomic_bool memory_is_gone;

static void *counted_alloc(size_t bytes)
{
    if (atomic_load(&memory_is_gone))
        return NULL;
    atomic_fetch_add(&pieces_alive, 1);
    return malloc(bytes);
}

static void counted_free(void *memory)
{
    atomic_fetch_sub(&pieces_alive, 1);
    free(memory);
}

/* --- what was recorded: bytes of each process, and births and ends ------------------------ */

typedef struct {
    uint8_t *bytes;
    size_t size, room, at;
} bytes;

static void append(bytes *to, const uint8_t *from, size_t size)
{
    if (to->size + size > to->room) {
        to->room = 2 * (to->size + size);
        to->bytes = realloc(to->bytes, to->room);
        CHECK(to->bytes != NULL);
    }
    memcpy(to->bytes + to->size, from, size);
    to->size += size;
}

typedef struct {
    bytes stream[2]; /* order, data */
    uint64_t numbers[2];
    bool born, ended;
    uint64_t parent, place, spawned;
    /* Of decoding: what is left of a run, and the last sender. */
    unsigned kind;
    uint64_t left, last;
    /* With times: of the birth, and of the last entry. */
    uint64_t born_at, at;
} trace;

typedef struct {
    trace *traces;
    uint64_t count;
    uint64_t taken;
    bool full_ids, times;
} recording;

static trace *trace_of(recording *r, uint64_t id)
{
    CHECK(id > 0 && id < (1u << 26));
    if (id >= r->count) {
        uint64_t count = 2 * id + 16;
        r->traces = realloc(r->traces, count * sizeof *r->traces);
        CHECK(r->traces != NULL);
        memset(r->traces + r->count, 0, (count - r->count) * sizeof *r->traces);
        r->count = count;
    }
    return &r->traces[id];
}

static void forget(recording *r)
{
    for (uint64_t i = 0; i < r->count; i++)
        for (int k = 0; k < 2; k++)
            free(r->traces[i].stream[k].bytes);
    free(r->traces);
    memset(r, 0, sizeof *r);
}

static uint64_t leb(const uint8_t **at, const uint8_t *end)
{
    uint64_t value = 0;
    unsigned shift = 0;
    for (;;) {
        CHECK(*at < end && shift < 64);
        uint8_t byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (!(byte & 0x80))
            return value;
        shift += 7;
    }
}

static void read_records(recording *r, const uint8_t *at, const uint8_t *end)
{
    while (at < end) {
        uint8_t kind = *at++;
        trace *t = trace_of(r, leb(&at, end));
        if (kind == 1) {
            EQUAL(t->born, 0);
            t->born = true;
            t->parent = leb(&at, end);
            t->place = leb(&at, end);
            uint64_t size = leb(&at, end);
            EQUAL(size, 8);
            CHECK(size <= (uint64_t)(end - at));
            memcpy(&t->spawned, at, 8);
            at += size;
        } else if (kind == 2) {
            CHECK(t->born && !t->ended);
            t->ended = true;
        } else {
            EQUAL(kind, 5);
            CHECK(t->born && r->times);
            t->born_at = leb(&at, end);
        }
    }
}

static void read_sub_traces(recording *r, int name, const uint8_t *at, const uint8_t *end)
{
    while (at < end) {
        trace *t = trace_of(r, leb(&at, end));
        EQUAL(leb(&at, end), t->numbers[name]++);
        uint64_t size = leb(&at, end);
        CHECK(size > 0 && size <= (uint64_t)(end - at));
        append(&t->stream[name], at, (size_t)size);
        at += size;
    }
}

/* At most so many blocks. False: there was none. */
static bool take(wr_output *from, recording *r, unsigned most)
{
    bool some = false;
    wr_taking taking = wr_take_begin(from, most);
    wr_block *block;
    wr_name name;
    while ((block = wr_take_next(from, &taking, &name))) {
        const uint8_t *end = block->bytes + block->used;
        CHECK(block->used > 0);
        r->taken += block->used;
        if (name == WR_PROCESSES)
            read_records(r, block->bytes, end);
        else
            read_sub_traces(r, name == WR_DATA, block->bytes, end);
        ws_free(block);
        some = true;
    }
    return some;
}

/* --- decoding -------------------------------------------------------------------------- */

typedef struct {
    unsigned kind;
    uint64_t value; /* sender, child, call, mark */
    unsigned form;
    uint64_t number; /* a result, what a name stands for, a hash */
    const uint8_t *item;
    uint64_t size;
} entry;

static void item_of(trace *t, entry *e)
{
    bytes *data = &t->stream[1];
    const uint8_t *at = data->bytes + data->at, *end = data->bytes + data->size;
    e->size = leb(&at, end);
    CHECK(e->size <= (uint64_t)(end - at));
    e->item = at;
    data->at = (size_t)(at - data->bytes) + (size_t)e->size;
}

static uint64_t fixed64(const uint8_t **at, const uint8_t *end)
{
    uint64_t value = 0;
    CHECK(end - *at >= 8);
    for (int i = 0; i < 8; i++)
        value |= (uint64_t)*(*at)++ << 8 * i;
    return value;
}

/* One step. A run gives its steps one by one, and `again` gives the `from` that it repeats. False: there are no more. */
static bool step(recording *r, trace *t, entry *e)
{
    bytes *order = &t->stream[0];
    const uint8_t *at = order->bytes + order->at, *end = order->bytes + order->size;
    uint64_t before = t->at;
    memset(e, 0, sizeof *e);
    if (r->times && !t->left && at < end && *at == (WR_MARK << 5 | WR_TIME)) {
        at++;
        t->at = leb(&at, end);
        CHECK(t->at > before && at < end);
    }
    if (!t->left) {
        if (at == end)
            return false;
        t->kind = *at >> 5;
        uint64_t value = *at++ & 31;
        if (value == 31)
            value += leb(&at, end);
        if (t->kind == WR_AGAIN || t->kind == WR_CONTENT || t->kind == WR_TIMEOUT) {
            CHECK(value > 0);
            t->left = value;
        } else if (r->full_ids && (t->kind == WR_FROM || t->kind == WR_SPAWN)) {
            EQUAL(value, 0);
            value = fixed64(&at, end);
        }
        e->value = value;
    }
    e->kind = t->kind;
    if (r->times) {
        CHECK(t->left <= 1);
        EQUAL(t->at == before, e->kind == WR_MARK && (e->value == WR_HASH || e->value == WR_CONTENTS));
    }
    if (t->left) {
        t->left--;
        e->value = 0;
    }
    switch (e->kind) {
    case WR_FROM:
        t->last = e->value;
        break;
    case WR_AGAIN:
        CHECK(t->last > 0);
        e->kind = WR_FROM;
        e->value = t->last;
        break;
    case WR_CONTENT:
    case WR_RAISE:
        item_of(t, e);
        break;
    case WR_RESULT:
        CHECK(at < end);
        e->form = *at++;
        if (e->form == WR_FORM_DATA)
            item_of(t, e);
        if (e->form == WR_FORM_NUMBER)
            e->number = leb(&at, end);
        break;
    case WR_MARK:
        if (e->value == WR_NAMED)
            e->number = r->full_ids ? fixed64(&at, end) : leb(&at, end);
        else if (e->value == WR_HASH)
            e->number = fixed64(&at, end);
        else if (e->value != WR_WAITED)
            item_of(t, e);
        break;
    }
    order->at = (size_t)(at - order->bytes);
    return true;
}

/* --- what a process does, by its seed --------------------------------------------------- */

#define LARGEST 70000u

/* The bytes of an item are those of a number; few are large. */
static uint8_t item_byte(uint64_t number, uint64_t at)
{
    return (uint8_t)(number + at * 7);
}

static entry next_of(uint64_t *seed)
{
    static const unsigned kinds[] = {WR_FROM,    WR_FROM,    WR_FROM,   WR_FROM,   WR_FROM,  WR_FROM, WR_TIMEOUT,
                                     WR_TIMEOUT, WR_CONTENT, WR_RESULT, WR_RESULT, WR_RAISE, WR_MARK};
    entry e = {.kind = kinds[random_below(seed, sizeof kinds / sizeof *kinds)]};
    uint64_t dice = random_next(seed);
    switch (e.kind) {
    case WR_FROM:
        e.value = dice % 16 < 12 ? 5 : dice % 16 < 15 ? 1 + dice / 16 % 200 : 1 + dice / 16 % UINT32_C(4000000000);
        break;
    case WR_RESULT:
        e.value = dice / 64 % 400;
        e.form = dice % 3 == 0 ? WR_FORM_DATA : dice % 3 == 1 ? WR_FORM_NUMBER : WR_FORM_FIXED + dice / 8 % 8;
        if (e.form == WR_FORM_NUMBER)
            e.number = random_next(seed) >> random_below(seed, 64);
        break;
    case WR_RAISE:
        e.value = dice % 400;
        break;
    case WR_MARK:
        e.value = WR_NAMED + dice % 4;
        e.number = e.value == WR_NAMED ? dice / 8 % UINT32_C(4000000000) : e.value == WR_HASH ? random_next(seed) : 0;
        break;
    }
    bool has_item = e.kind == WR_CONTENT || e.kind == WR_RAISE || (e.kind == WR_RESULT && e.form == WR_FORM_DATA) ||
                    (e.kind == WR_MARK && (e.value == WR_SENT || e.value == WR_CONTENTS));
    if (has_item)
        e.size = 1 + (dice >> 32) % (dice >> 20 & 1023 ? dice >> 20 & 15 ? 40 : 1000 : LARGEST);
    return e;
}

static const uint8_t *item_bytes(uint64_t number, uint64_t size)
{
    static _Thread_local uint8_t made[LARGEST + 1];
    for (uint64_t i = 0; i < size; i++)
        made[i] = item_byte(number, i);
    return made;
}

static int64_t unzigzag(uint64_t number)
{
    return (int64_t)(number >> 1 ^ -(number & 1));
}

static bool record(wr_output *to, wr_process *p, const entry *e, uint64_t number)
{
    const uint8_t *item = item_bytes(number, e->size);
    switch (e->kind) {
    case WR_FROM:
        return wr_from(to, p, (uint32_t)e->value);
    case WR_TIMEOUT:
        return wr_step(to, p, WR_TIMEOUT);
    case WR_CONTENT:
        return wr_content(to, p, item, e->size);
    case WR_RESULT:
        return e->form == WR_FORM_DATA     ? wr_result_data(to, p, e->value, item, e->size)
               : e->form == WR_FORM_NUMBER ? wr_result_number(to, p, e->value, unzigzag(e->number))
                                           : wr_result_fixed(to, p, e->value, e->form);
    case WR_RAISE:
        return wr_raise(to, p, e->value, item, e->size);
    default:
        return e->value == WR_NAMED  ? wr_named(to, p, (uint32_t)e->number)
               : e->value == WR_HASH ? wr_hash(to, p, e->number)
                                     : wr_marked(to, p, (wr_mark)e->value, item, e->size);
    }
}

static void is_entry(const entry *found, const entry *expected, uint64_t number)
{
    EQUAL(found->kind, expected->kind);
    EQUAL(found->value, expected->value);
    EQUAL(found->form, expected->form);
    EQUAL(found->number, expected->number);
    EQUAL(found->size, expected->size);
    for (uint64_t i = 0; i < found->size; i++)
        EQUAL(found->item[i], item_byte(number, i));
}

/* The process did these steps, and then ended, or not. */
static void did(recording *r, uint64_t id, uint64_t seed, uint64_t steps, bool ended)
{
    trace *t = trace_of(r, id);
    entry found;
    snprintf(doing, sizeof doing, "process %" PRIu64, id);
    for (uint64_t i = 0; i < steps; i++) {
        entry expected = next_of(&seed);
        CHECK(step(r, t, &found));
        is_entry(&found, &expected, i);
    }
    if (ended) {
        entry expected = {.kind = WR_MARK, .value = WR_EXIT, .size = 3};
        CHECK(step(r, t, &found));
        is_entry(&found, &expected, steps);
    }
    CHECK(!step(r, t, &found));
    EQUAL(t->stream[1].at, t->stream[1].size);
    EQUAL(t->ended, ended);
    doing[0] = 0;
}

/* --- a recorder and its processes ------------------------------------------------------ */

#define MANY (1u << 22)
#define LARGE ((size_t)1 << 30)
#define PID(number) ((uintptr_t)(number) << 4 | 3)
#define MAIN PID(1) /* is not recorded */

static recording taken;

static wr_recorder *opened_with(size_t budget, uint32_t order, bool full_ids, wr_clock *clock)
{
    wr_recorder *r = calloc(1, sizeof *r);
    CHECK(r && wr_recorder_init(r, MANY));
    CHECK(wr_recorder_open(r, budget, order, full_ids, clock, 64));
    memset(&taken, 0, sizeof taken);
    taken.full_ids = full_ids;
    taken.times = clock != NULL;
    return r;
}

static wr_recorder *opened(size_t budget, uint32_t order, bool full_ids)
{
    return opened_with(budget, order, full_ids, NULL);
}

/* Each call comes later. */
static int64_t ticks;

static int64_t ticking(void)
{
    return ++ticks;
}

static void closed(wr_recorder *r)
{
    wr_end(&r->output, WR_STOPPED);
    wr_flush(r);
    while (take(&r->output, &taken, 100)) {
    }
    wr_recorder_clear(r);
    EQUAL(ws_budget_used(&r->output.budget), 0);
    wr_recorder_free(r);
    free(r);
    forget(&taken);
    EQUAL(atomic_load(&pieces_alive), 0);
}

static bool comes(wr_recorder *r, uintptr_t parent, uintptr_t child)
{
    uint64_t spawned = child;
    wr_piece piece = {&spawned, sizeof spawned};
    if (!wr_expects(r, parent, child))
        return false;
    wr_born(r, parent, child, &piece, 1);
    return true;
}

/* The id of a process that the parent spawns. */
static uint32_t spawns(wr_recorder *r, uintptr_t parent, uintptr_t child)
{
    uint32_t id = wr_child(r, parent);
    CHECK(id > 0);
    CHECK(comes(r, parent, child));
    EQUAL(wr_identify(r, child), id);
    return id;
}

static void ends(wr_recorder *r, uintptr_t pid, uint64_t steps)
{
    wr_process *p = wr_remove(r, pid);
    CHECK(p != NULL);
    wr_end_process(r, p, item_bytes(steps, 3), 3);
    EQUAL(wr_identify(r, pid), 0);
}

static void take_all(wr_recorder *r)
{
    wr_flush(r);
    while (take(&r->output, &taken, 3)) {
    }
}

static void is_birth(uint32_t id, uint32_t parent, uint32_t place, uintptr_t pid)
{
    trace *t = trace_of(&taken, id);
    CHECK(t->born);
    EQUAL(t->parent, parent);
    EQUAL(t->place, place);
    EQUAL(t->spawned, pid);
}

/* --- ids and births ---------------------------------------------------------------------- */

static void a_child_has_the_id_that_its_parent_asked_for(void)
{
    wr_recorder *r = opened(LARGE, 64, false);
    uint32_t a = spawns(r, MAIN, PID(2)), b = spawns(r, MAIN, PID(3));
    uint32_t c = spawns(r, PID(2), PID(4)), d = spawns(r, PID(2), PID(5));
    EQUAL(wr_identify(r, MAIN), 0);
    EQUAL(wr_identify(r, PID(9)), 0);
    CHECK(wr_own_process(r, c, PID(4)) != NULL);
    CHECK(wr_own_process(r, c, PID(5)) == NULL);
    CHECK(wr_own_process(r, 0, MAIN) == NULL);
    CHECK(wr_own_process(r, MANY, PID(4)) == NULL);
    CHECK(wr_own_process(r, UINT64_MAX, PID(4)) == NULL);
    take_all(r);
    is_birth(a, 0, 0, PID(2));
    is_birth(b, 0, 1, PID(3));
    is_birth(c, a, 0, PID(4));
    is_birth(d, a, 1, PID(5));
    entry e;
    CHECK(step(&taken, trace_of(&taken, a), &e) && e.kind == WR_SPAWN && e.value == c);
    CHECK(step(&taken, trace_of(&taken, a), &e) && e.kind == WR_SPAWN && e.value == d);
    CHECK(!step(&taken, trace_of(&taken, a), &e));
    EQUAL(atomic_load(&r->output.mode), WR_OPEN);
    closed(r);
}

static void a_spawn_that_failed_leaves_its_id_to_the_next_one(void)
{
    wr_recorder *r = opened(LARGE, 64, false);
    uint32_t a = spawns(r, MAIN, PID(2)), c = wr_child(r, PID(2));
    EQUAL(wr_child(r, PID(2)), c);
    CHECK(wr_child(r, MAIN) != c);
    EQUAL(spawns(r, PID(2), PID(4)), c);
    take_all(r);
    entry e;
    CHECK(step(&taken, trace_of(&taken, a), &e) && e.kind == WR_SPAWN && e.value == c);
    CHECK(!step(&taken, trace_of(&taken, a), &e));
    closed(r);
}

static void a_child_that_was_not_announced_is_recorded_and_must_be_verified(void)
{
    wr_recorder *r = opened(LARGE, 64, false);
    uint32_t a = spawns(r, MAIN, PID(2)), c = wr_child(r, PID(2));
    wr_unborn(r, PID(2));
    EQUAL(atomic_load(&r->output.mode), WR_OPEN);
    CHECK(comes(r, PID(2), PID(4)));
    EQUAL(atomic_load(&r->output.mode), WR_VERIFY);
    EQUAL(wr_identify(r, PID(4)), c);
    CHECK(comes(r, PID(4), PID(5)));
    uint32_t d = wr_identify(r, PID(5));
    CHECK(d != 0 && d != c && d != a);
    take_all(r);
    is_birth(c, a, 0, PID(4));
    is_birth(d, c, 0, PID(5));
    closed(r);
}

static void children_of_those_outside_are_outside_unless_announced(void)
{
    wr_recorder *r = opened(LARGE, 64, false);
    CHECK(!comes(r, MAIN, PID(2)));
    uint32_t c = wr_child(r, MAIN);
    wr_unborn(r, MAIN);
    CHECK(!comes(r, MAIN, PID(2)));
    EQUAL(wr_identify(r, PID(2)), 0);
    EQUAL(spawns(r, MAIN, PID(3)), c);
    CHECK(!comes(r, MAIN, PID(6)));
    EQUAL(atomic_load(&r->output.mode), WR_OPEN);
    wr_process *p = wr_remove(r, MAIN);
    CHECK(p != NULL);
    wr_end_process(r, p, item_bytes(0, 3), 3);
    take_all(r);
    is_birth(c, 0, 0, PID(3));
    EQUAL(trace_of(&taken, c)->ended, 0);
    closed(r);
}

static void an_end_that_was_not_reported_is_none(void)
{
    wr_recorder *r = opened(LARGE, 64, false);
    uint32_t a = spawns(r, MAIN, PID(2));
    CHECK(wr_from(&r->output, wr_own_process(r, a, PID(2)), 9));
    uint32_t b = spawns(r, MAIN, PID(2));
    CHECK(a != b && !wr_own_process(r, a, PID(2)));
    take_all(r);
    entry e;
    CHECK(step(&taken, trace_of(&taken, a), &e) && e.kind == WR_FROM && e.value == 9);
    CHECK(!step(&taken, trace_of(&taken, a), &e));
    EQUAL(trace_of(&taken, a)->ended, 0);
    closed(r);
}

static void memory_of_those_that_ended_is_used_again(void)
{
    wr_recorder *r = opened(LARGE, 64, false);
    int64_t before = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t id = spawns(r, MAIN, PID(2 + i));
        EQUAL(id, i + 1);
        for (int k = 0; k < 100; k++)
            CHECK(wr_from(&r->output, wr_own_process(r, id, PID(2 + i)), 100 + (uint32_t)k));
        ends(r, PID(2 + i), 0);
        take_all(r);
        if (i == 1000)
            before = atomic_load(&pieces_alive);
    }
    EQUAL(atomic_load(&pieces_alive), before);
    closed(r);
}

static void there_is_an_end_of_ids(void)
{
    wr_recorder *r = calloc(1, sizeof *r);
    CHECK(r && wr_recorder_init(r, WR_LEAF_SIZE) && wr_recorder_open(r, LARGE, 64, false, NULL, 64));
    for (uint32_t i = 1; i < WR_LEAF_SIZE; i++)
        EQUAL(spawns(r, MAIN, PID(1 + i)), i);
    EQUAL(wr_ended(&r->output), WR_RUNNING);
    EQUAL(wr_child(r, MAIN), 0);
    EQUAL(wr_ended(&r->output), WR_IDS);
    CHECK(!comes(r, PID(3), PID(7777)));
    closed(r);
}

/* --- entries ------------------------------------------------------------------------------- */

static void runs_take_few_bytes(void)
{
    wr_recorder *r = opened(LARGE, 64, false);
    uint32_t id = spawns(r, MAIN, PID(2));
    wr_process *p = wr_own_process(r, id, PID(2));
    for (int i = 0; i < 1000000; i++)
        CHECK(wr_from(&r->output, p, 1));
    take_all(r);
    EQUAL(trace_of(&taken, id)->stream[0].size, 1 + 1 + 3);
    for (int i = 0; i < 1000000; i++)
        CHECK(wr_from(&r->output, p, 1) && wr_step(&r->output, p, WR_TIMEOUT));
    take_all(r);
    EQUAL(trace_of(&taken, id)->stream[0].size, 5 + 2000000);
    closed(r);
}

/* A birth and the entry of the parent have one time. The contents of a message have that of the message. */
static void entries_have_the_times_at_which_they_were_made(void)
{
    ticks = -1000;
    wr_recorder *r = opened_with(LARGE, 64, false, ticking);
    int64_t opened_at = ticks;
    ticks += 500;
    uint32_t a = spawns(r, MAIN, PID(2));
    ticks = opened_at + 70000;
    uint32_t b = spawns(r, PID(2), PID(3));
    wr_process *p = wr_own_process(r, a, PID(2));
    ticks = opened_at + 80000;
    CHECK(wr_from(&r->output, p, b) && wr_marked(&r->output, p, WR_CONTENTS, item_bytes(0, 3), 3));
    CHECK(wr_from(&r->output, p, b) && wr_hash(&r->output, p, 7) && wr_step(&r->output, p, WR_TIMEOUT));
    wr_flush(r);
    CHECK(wr_step(&r->output, p, WR_TIMEOUT) && wr_marked(&r->output, p, WR_SENT, item_bytes(1, 3), 3));
    ticks = opened_at + (INT64_C(1) << 40);
    p->waits = true;
    ends(r, PID(2), 0);
    take_all(r);
    trace *t = trace_of(&taken, a);
    EQUAL(t->born_at, 501);
    EQUAL(trace_of(&taken, b)->born_at, 70001);
    const uint64_t times[] = {70001, 80001, 80001, 80002, 80002, 80003, 80004, 80005, (UINT64_C(1) << 40) + 1};
    entry e;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        CHECK(step(&taken, t, &e));
        EQUAL(t->at, times[i]);
    }
    CHECK(e.kind == WR_MARK && e.value == WR_WAITED);
    closed(r);
}

/* Whatever was done, and whenever a flush came meanwhile. */
static void entries_are_those_that_were_recorded(void)
{
    uint64_t random = 77;
    for (int round = 0; round < 300; round++) {
        uint32_t orders[] = {64, 65, 100, 256, 65536};
        wr_recorder *r = opened_with(LARGE, orders[round % 5], round % 3 == 0, round % 2 ? ticking : NULL);
        uint32_t ids[4];
        uint64_t seeds[4], states[4], steps[4];
        for (uint32_t k = 0; k < 4; k++) {
            ids[k] = spawns(r, MAIN, PID(2 + k));
            seeds[k] = states[k] = random_next(&random);
            steps[k] = 0;
        }
        uint32_t often = 1 + random_below(&random, 200);
        for (int i = 0; i < 2000; i++) {
            uint32_t k = random_below(&random, 4);
            entry e = next_of(&states[k]);
            CHECK(record(&r->output, wr_own_process(r, ids[k], PID(2 + k)), &e, steps[k]++));
            if (random_below(&random, often) == 0)
                wr_flush(r);
            if (random_below(&random, often) == 0)
                CHECK(wr_write_out(&r->output, wr_own_process(r, ids[1], PID(3))));
            if (random_below(&random, 100) == 0)
                take(&r->output, &taken, 2);
        }
        for (uint32_t k = 0; k < 3; k++)
            ends(r, PID(2 + k), steps[k]);
        take_all(r);
        for (uint32_t k = 0; k < 4; k++)
            did(&taken, ids[k], seeds[k], steps[k], k < 3);
        closed(r);
    }
}

/* --- the end --------------------------------------------------------------------------------- */

static void a_recording_without_room_ends_and_keeps_what_it_has(void)
{
    size_t budgets[] = {0, 63, 4000, 70000, 140000, 200000, 300000, 1000000, 3000000};
    for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++) {
        snprintf(doing, sizeof doing, "budget %zu", budgets[i]);
        wr_recorder *r = opened(budgets[i], 100, false);
        uint64_t seed = 5, state = seed, steps = 0;
        uint32_t id = wr_child(r, MAIN);
        CHECK(comes(r, MAIN, PID(2)));
        EQUAL(wr_ended(&r->output), budgets[i] < 65536 ? WR_BUDGET : WR_RUNNING);
        wr_process *p = wr_own_process(r, id, PID(2));
        while (wr_is_open(&r->output)) {
            entry e = next_of(&state);
            if (!record(&r->output, p, &e, steps))
                break;
            steps++;
        }
        EQUAL(wr_ended(&r->output), WR_BUDGET);
        EQUAL(wr_child(r, PID(2)), 0);
        wr_end(&r->output, WR_STOPPED);
        EQUAL(wr_ended(&r->output), WR_BUDGET);
        /* Its last entry may be there without its data, or the other way round. */
        take_all(r);
        for (uint64_t k = 0; k < steps; k++) {
            entry found, expected = next_of(&seed);
            CHECK(step(&taken, trace_of(&taken, id), &found));
            is_entry(&found, &expected, k);
        }
        ends(r, PID(2), steps);
        take_all(r);
        entry found;
        CHECK(!step(&taken, trace_of(&taken, id), &found));
        CHECK(!trace_of(&taken, id)->ended);
        closed(r);
    }
    doing[0] = 0;
}

static void a_flush_that_ends_the_recording_hands_over_what_there_is(void)
{
    wr_recorder *r = opened(100000, 64, false);
    uint32_t id = spawns(r, MAIN, PID(2));
    CHECK(wr_from(&r->output, wr_own_process(r, id, PID(2)), 7));
    wr_flush(r);
    EQUAL(wr_ended(&r->output), WR_BUDGET);
    while (take(&r->output, &taken, 1)) {
    }
    entry e;
    CHECK(step(&taken, trace_of(&taken, id), &e) && e.kind == WR_FROM && e.value == 7);
    closed(r);
}

static void without_memory_it_ends(void)
{
    wr_recorder *r = opened(LARGE, 256, false);
    uint32_t id = spawns(r, MAIN, PID(2));
    wr_process *p = wr_own_process(r, id, PID(2));
    CHECK(wr_from(&r->output, p, 1));
    atomic_store(&memory_is_gone, true);
    CHECK(!wr_content(&r->output, p, item_bytes(1, 100), 100));
    EQUAL(wr_ended(&r->output), WR_MEMORY);
    wr_flush(r);
    atomic_store(&memory_is_gone, false);
    take_all(r);
    entry e;
    CHECK(step(&taken, trace_of(&taken, id), &e) && e.kind == WR_FROM && e.value == 1);
    closed(r);
}

/* With or without flushes, and however few blocks are taken at a time: what is taken can be decoded as it comes. */
static void data_and_births_are_taken_before_their_entries(void)
{
    uint64_t random = 99;
    for (unsigned most = 1; most <= 17; most += 4) {
        wr_recorder *r = opened(LARGE, 64, false);
        uint64_t seeds[3], steps[3] = {0}, seen[3] = {0}, left[3];
        uint32_t ids[3];
        for (uint32_t k = 0; k < 3; k++) {
            ids[k] = spawns(r, MAIN, PID(2 + k));
            seeds[k] = left[k] = random_next(&random);
        }
        for (int i = 0; i < 300000; i++) {
            uint32_t k = random_below(&random, 3);
            entry e = next_of(&seeds[k]), found;
            CHECK(record(&r->output, wr_own_process(r, ids[k], PID(2 + k)), &e, steps[k]++));
            while (i % 1000 == 0 && take(&r->output, &taken, most)) {
                for (k = 0; k < 3; k++) {
                    trace *t = trace_of(&taken, ids[k]);
                    CHECK(t->born || t->stream[0].size == 0);
                    for (; step(&taken, t, &found); seen[k]++) {
                        e = next_of(&left[k]);
                        is_entry(&found, &e, seen[k]);
                    }
                }
            }
        }
        CHECK(seen[0] > 0);
        closed(r);
    }
}

/* What was taken counts until the taker comes again. */
static void what_the_writer_has_is_charged_until_it_comes_again(void)
{
    wr_recorder *r = opened(LARGE, 64, false);
    (void)spawns(r, MAIN, PID(2));
    wr_flush(r);
    size_t used = ws_budget_used(&r->output.budget);
    CHECK(used >= 65536);
    CHECK(take(&r->output, &taken, 1));
    EQUAL(ws_budget_used(&r->output.budget), used);
    CHECK(!take(&r->output, &taken, 1));
    CHECK(ws_budget_used(&r->output.budget) <= used - 65536);
    closed(r);
}

static void it_can_begin_again(void)
{
    wr_recorder *r = opened(LARGE, 64, false);
    uint32_t id = spawns(r, MAIN, PID(2));
    for (int i = 0; i < 1000; i++)
        CHECK(wr_from(&r->output, wr_own_process(r, id, PID(2)), 1 + (uint32_t)i));
    CHECK(wr_recorder_open(r, LARGE, 64, false, NULL, 128));
    EQUAL(wr_identify(r, PID(2)), 0);
    CHECK(!wr_own_process(r, id, PID(2)));
    EQUAL(spawns(r, MAIN, PID(3)), 1);
    take_all(r);
    is_birth(1, 0, 0, PID(3));
    EQUAL(trace_of(&taken, 1)->stream[0].size, 0);
    closed(r);
}

/* --- threads --------------------------------------------------------------------------------- */

#define WRITERS 3u
#define EACH 6u /* processes of a writer that are alive */

typedef struct {
    uint64_t seed, steps;
    bool ended;
} deed;

static struct {
    wr_recorder *recorder;
    atomic_bool over, done;
    deed *deeds; /* by id; each is set by one writer */
    uint64_t seed;
} work;

static void *writer(void *argument)
{
    uint64_t random = work.seed + 1000 * (1 + (uintptr_t)argument), pids = 0;
    uintptr_t base = 1000000000u * (1 + (uintptr_t)argument);
    wr_recorder *r = work.recorder;
    struct {
        uintptr_t pid;
        uint32_t id;
        uint64_t state;
    } mine[EACH] = {0};
    while (!atomic_load(&work.over)) {
        uint32_t k = random_below(&random, EACH);
        if (!mine[k].id) {
            mine[k].pid = PID(base + ++pids);
            uint64_t seed = random_next(&random);
            uint32_t id = spawns(r, PID(base), mine[k].pid);
            if (id >= MANY - 1000)
                break;
            mine[k].id = id;
            mine[k].state = seed;
            work.deeds[id].seed = seed;
        }
        for (uint32_t i = random_below(&random, 30); i > 0; i--) {
            entry e = next_of(&mine[k].state);
            CHECK(record(&r->output, wr_own_process(r, mine[k].id, mine[k].pid), &e, work.deeds[mine[k].id].steps++));
        }
        if (random_below(&random, 20) == 0) {
            ends(r, mine[k].pid, work.deeds[mine[k].id].steps);
            work.deeds[mine[k].id].ended = true;
            mine[k].id = 0;
        }
    }
    return NULL;
}

static void *flusher(void *argument)
{
    (void)argument;
    while (!atomic_load(&work.over))
        wr_flush(work.recorder);
    return NULL;
}

static void *taker(void *argument)
{
    (void)argument;
    while (!atomic_load(&work.done))
        take(&work.recorder->output, &taken, 5);
    return NULL;
}

/* Asks for processes that there are, or were, or will be; none of them is its own. */
static void *stranger(void *argument)
{
    uint64_t random = work.seed;
    (void)argument;
    while (!atomic_load(&work.over)) {
        uint32_t id = random_below(&random, 1 + (uint32_t)atomic_load(&work.recorder->born));
        CHECK(wr_own_process(work.recorder, id, PID(5)) == NULL);
        EQUAL(wr_identify(work.recorder, PID(5)), 0);
    }
    return NULL;
}

static void what_threads_record_is_what_they_did(unsigned seconds, uint64_t seed)
{
    pthread_t writers[WRITERS], flushing, taking, asking;
    struct timespec rest = {.tv_sec = (time_t)seconds};
    test_name = "what_threads_record_is_what_they_did";
    work.recorder = opened((size_t)1 << 40, 100, seed % 2 == 1);
    work.deeds = calloc(MANY, sizeof *work.deeds);
    work.seed = seed;
    CHECK(work.deeds != NULL);
    EQUAL(pthread_create(&taking, NULL, taker, NULL), 0);
    EQUAL(pthread_create(&flushing, NULL, flusher, NULL), 0);
    EQUAL(pthread_create(&asking, NULL, stranger, NULL), 0);
    for (uintptr_t i = 0; i < WRITERS; i++)
        EQUAL(pthread_create(&writers[i], NULL, writer, (void *)i), 0);
    nanosleep(&rest, NULL);
    atomic_store(&work.over, true);
    for (unsigned i = 0; i < WRITERS; i++)
        pthread_join(writers[i], NULL);
    pthread_join(flushing, NULL);
    pthread_join(asking, NULL);
    atomic_store(&work.done, true);
    pthread_join(taking, NULL);
    take_all(work.recorder);
    uint64_t steps = 0, born = atomic_load(&work.recorder->born);
    CHECK(born > 0);
    for (uint64_t id = 1; id <= born; id++) {
        did(&taken, id, work.deeds[id].seed, work.deeds[id].steps, work.deeds[id].ended);
        steps += work.deeds[id].steps;
    }
    printf("record: %" PRIu64 " processes, %" PRIu64 " steps, %" PRIu64 " bytes under threads\n", born, steps, taken.taken);
    free(work.deeds);
    closed(work.recorder);
}

/* --- all ------------------------------------------------------------------------------------- */

#define TESTS(X)                                                                                                                   \
    X(a_child_has_the_id_that_its_parent_asked_for)                                                                                \
    X(a_spawn_that_failed_leaves_its_id_to_the_next_one)                                                                           \
    X(a_child_that_was_not_announced_is_recorded_and_must_be_verified)                                                             \
    X(children_of_those_outside_are_outside_unless_announced)                                                                      \
    X(an_end_that_was_not_reported_is_none)                                                                                        \
    X(memory_of_those_that_ended_is_used_again)                                                                                    \
    X(there_is_an_end_of_ids)                                                                                                      \
    X(runs_take_few_bytes)                                                                                                         \
    X(entries_have_the_times_at_which_they_were_made)                                                                              \
    X(entries_are_those_that_were_recorded)                                                                                        \
    X(a_recording_without_room_ends_and_keeps_what_it_has)                                                                         \
    X(a_flush_that_ends_the_recording_hands_over_what_there_is)                                                                    \
    X(without_memory_it_ends)                                                                                                      \
    X(data_and_births_are_taken_before_their_entries)                                                                              \
    X(what_the_writer_has_is_charged_until_it_comes_again)                                                                         \
    X(it_can_begin_again)

static const struct {
    const char *name;
    void (*run)(void);
} tests[] = {
#define ENTRY(name) {#name, name},
    TESTS(ENTRY)
#undef ENTRY
};

int main(int argc, char **argv)
{
    unsigned seconds = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 2;
    ws_alloc = counted_alloc;
    ws_free = counted_free;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        test_name = tests[i].name;
        tests[i].run();
    }
    printf("record: %zu tests passed\n", sizeof tests / sizeof *tests);
    what_threads_record_is_what_they_did(seconds, argc > 2 ? strtoul(argv[2], NULL, 10) : 77);
    return 0;
}
