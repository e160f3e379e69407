/* Every step in the life of a partition, and the parts that it is made of, one at a time. */
#include "support.h"

#include "witness_native_names.h"
#include "witness_native_pids.h"
#include "witness_native_table.h"

#include <string.h>

#define LARGE ((size_t)1 << 30)
#define OVERHEAD 100u

static wn_hub *hub(size_t memory, size_t partition_limit, uint32_t events)
{
    wn_hub *made = wn_hub_new(memory, partition_limit, OVERHEAD, events, batch_drop);
    CHECK(made != NULL);
    return made;
}

/* A partition with a member, and a consumer that found it empty. The hub goes with it. */
static wn_partition *opened(wn_hub *of, uintptr_t consumer)
{
    wn_taken taken;
    wn_partition *p = wn_partition_new(of, false);
    CHECK(p != NULL);
    wn_partition_join(p);
    if (consumer)
        CHECK(!wn_partition_take(p, consumer, &taken));
    return p;
}

static void told_to(outcome o, uintptr_t consumer)
{
    EQUAL(o.todo & WN_NOTIFY, WN_NOTIFY);
    EQUAL(o.consumer, consumer);
}

static void not_told(outcome o)
{
    EQUAL(o.todo & WN_NOTIFY, 0);
}

/* Takes what must be there: this many events, then this end. */
static wn_taken takes(wn_partition *p, uint32_t count, wn_end end)
{
    wn_taken taken;
    CHECK(wn_partition_take(p, 7, &taken));
    EQUAL(taken.count, count);
    EQUAL(taken.end, end);
    EQUAL(taken.batch != NULL, count > 0);
    if (taken.batch) {
        EQUAL(((batch *)taken.batch)->count, count);
        batch_drop(taken.batch);
    }
    return taken;
}

static void takes_gap(wn_partition *p, wn_reason reason, uint64_t missing)
{
    wn_taken taken = takes(p, 0, WN_GAP);
    EQUAL(taken.reason, reason);
    EQUAL(taken.missing, missing);
}

static void takes_nothing(wn_partition *p)
{
    wn_taken taken;
    CHECK(!wn_partition_take(p, 7, &taken));
}

static void tell_none(void *argument, uintptr_t consumer)
{
    (void)argument;
    EQUAL(consumer, NOBODY);
}

static void tell_one(void *argument, uintptr_t consumer)
{
    uintptr_t *told = argument;
    EQUAL(*told, 0);
    *told = consumer;
}

/* Releases a hub and a partition with its consumer and only member; checks that nothing is left. */
static void finish(wn_hub *of, wn_partition *p)
{
    uintptr_t told = 0;
    (void)leave(p);
    wn_partition_unread(p);
    wn_partition_release(p);
    EQUAL(ws_budget_used(&of->budget), 0);
    while (wn_hub_tick(of, 0, tell_one, &told)) {
    }
    wn_hub_release(of);
    check_nothing_left();
}

/* --- lock and budget ------------------------------------------------------------- */

static void a_lock_can_be_taken_again(void)
{
    ws_lock fixed = WS_LOCK_INIT, zero, made;
    memset(&zero, 0, sizeof zero); /* the table relies on it */
    ws_lock_init(&made);
    ws_lock *locks[] = {&fixed, &zero, &made};
    for (int i = 0; i < 6; i++) {
        ws_lock_take(locks[i % 3]);
        CHECK(atomic_flag_test_and_set(&locks[i % 3]->held));
        ws_lock_give(locks[i % 3]);
    }
}

static void a_budget_is_a_hard_bound(void)
{
    ws_budget budget;
    size_t limits[] = {0, 1, 1000, SIZE_MAX - 1, SIZE_MAX};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        size_t limit = limits[i];
        ws_budget_init(&budget, limit);
        CHECK(ws_budget_take(&budget, 0));
        CHECK(ws_budget_take(&budget, limit));
        EQUAL(ws_budget_take(&budget, 1), false);
        EQUAL(ws_budget_take(&budget, SIZE_MAX), false);
        CHECK(ws_budget_take(&budget, 0));
        EQUAL(ws_budget_used(&budget), limit);
        ws_budget_give(&budget, limit);
        EQUAL(ws_budget_used(&budget), 0);
        EQUAL(ws_budget_take(&budget, SIZE_MAX), limit == SIZE_MAX);
    }
}

/* --- the life of a partition ----------------------------------------------------- */

static void the_last_member_completes(void)
{
    wn_hub *of = hub(LARGE, LARGE, 64);
    wn_partition *p = opened(of, 7);
    wn_partition_join(p);
    CHECK(add(p, 10, 1, false).done);
    not_told(leave(p));
    CHECK(add(p, 10, 2, false).done);
    told_to(leave(p), 7);
    CHECK(!add(p, 10, 3, false).done);
    not_told(stop(p));
    not_told(lose(p));
    takes(p, 2, WN_COMPLETE);
    takes_nothing(p);
    wn_partition_join(p);
    finish(of, p);
}

static void stop_ends(void)
{
    wn_hub *of = hub(LARGE, LARGE, 64);
    wn_partition *p = opened(of, 7);
    CHECK(add(p, 10, 1, false).done);
    told_to(stop(p), 7);
    not_told(stop(p));
    not_told(lose(p));
    CHECK(!add(p, 10, 2, true).done);
    takes(p, 1, WN_STOPPED);
    takes_nothing(p);
    finish(of, p);
}

static void an_end_without_events_is_taken(void)
{
    wn_hub *of = hub(LARGE, LARGE, 64);
    wn_partition *p = opened(of, 7);
    told_to(stop(p), 7);
    takes(p, 0, WN_STOPPED);
    takes_nothing(p);
    finish(of, p);
}

static void an_end_is_taken_by_a_consumer_that_comes_later(void)
{
    wn_hub *of = hub(LARGE, LARGE, 64);
    wn_partition *p = opened(of, 0);
    CHECK(add(p, 10, 1, true).done);
    not_told(stop(p));
    takes(p, 1, WN_STOPPED);
    takes_nothing(p);
    finish(of, p);
}

/* What is buffered is missing too; events that come before the end is taken are counted, later ones are not. */
static void the_bound_of_a_partition_is_a_gap(void)
{
    size_t limit = OVERHEAD + 50;
    wn_hub *of = hub(LARGE, limit, 64);
    wn_partition *p = opened(of, 7);
    CHECK(add(p, 25, 1, false).done);
    CHECK(add(p, 25, 2, false).done);
    outcome o = add(p, 1, 3, false);
    CHECK(!o.done);
    told_to(o, 7);
    EQUAL(ws_budget_used(&of->budget), 0);
    EQUAL(atomic_load(&batches_alive), 0);
    o = add(p, 1, 4, true);
    CHECK(!o.done);
    EQUAL(o.todo, 0);
    not_told(stop(p));
    takes_gap(p, WN_OVERFLOW, 4);
    CHECK(!add(p, 1, 5, true).done);
    takes_nothing(p);
    finish(of, p);
}

static void an_event_that_never_fits_is_a_gap(void)
{
    size_t sizes[] = {1001 - OVERHEAD, 1001, SIZE_MAX / 2, SIZE_MAX - OVERHEAD, SIZE_MAX - OVERHEAD + 1, SIZE_MAX - 1, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int before = 0; before < 2; before++) {
            snprintf(doing, sizeof doing, "size %zu, %d before", sizes[i], before);
            wn_hub *of = hub(LARGE, 1000, 64);
            wn_partition *p = opened(of, 7);
            for (int k = 0; k < before; k++)
                CHECK(add(p, 1000 - OVERHEAD, 1, false).done);
            CHECK(!add(p, sizes[i], 2, false).done);
            takes_gap(p, WN_OVERFLOW, (uint64_t)before + 1);
            finish(of, p);
        }
    }
    doing[0] = 0;
}

/* Births have no bound. */
static void without_bounds_only_the_impossible_is_a_gap(void)
{
    wn_hub *of = wn_hub_new(SIZE_MAX, SIZE_MAX, 0, 1, batch_drop);
    wn_partition *p = opened(of, 7);
    for (uint64_t i = 0; i < 100; i++)
        CHECK(add(p, LARGE, i, true).done);
    takes(p, 100, WN_OPEN);
    takes_nothing(p);
    EQUAL(ws_budget_used(&of->budget), 0);
    CHECK(add(p, 1, 1, true).done);
    CHECK(!add(p, SIZE_MAX, 2, true).done);
    CHECK(wn_partition_take(p, 7, &(wn_taken){0}));
    finish(of, p);
}

/* What the consumer has in hand counts for its partition and for all, until it takes again. */
static void what_is_taken_is_given_back_when_the_consumer_returns(void)
{
    wn_hub *of = hub(10 * 1000 * 1000, 10 * 1000 * 1000, 64);
    wn_partition *p = opened(of, 7), *q = opened(of, 8);
    CHECK(add(p, 6 * 1000 * 1000, 1, false).done);
    takes(p, 1, WN_OPEN);
    CHECK(ws_budget_used(&of->budget) >= 6 * 1000 * 1000);
    CHECK(!add(q, 6 * 1000 * 1000, 2, false).done);
    takes_nothing(p);
    EQUAL(ws_budget_used(&of->budget), 0);
    CHECK(add(p, 6 * 1000 * 1000, 3, false).done);
    takes(p, 1, WN_OPEN);
    CHECK(!add(p, 6 * 1000 * 1000, 4, false).done);
    takes_gap(p, WN_OVERFLOW, 1);
    (void)leave(q);
    wn_partition_unread(q);
    wn_partition_release(q);
    finish(of, p);
}

/* The memory of a gap is free at once: a partition that comes later works. */
static void a_gap_of_one_partition_makes_room_for_others(void)
{
    wn_hub *of = hub(100 * 1000, LARGE, 64);
    wn_partition *p = opened(of, 7), *q = opened(of, 8);
    CHECK(add(p, 60 * 1000, 1, false).done);
    CHECK(add(p, 10, 2, false).done);
    outcome o = add(q, 60 * 1000, 3, false);
    CHECK(!o.done);
    told_to(o, 8);
    CHECK(!add(p, 60 * 1000, 4, false).done);
    EQUAL(ws_budget_used(&of->budget), 0);
    wn_partition *r = opened(of, 9);
    CHECK(add(r, 60 * 1000, 5, false).done);
    takes_gap(p, WN_MEMORY, 3);
    takes_gap(q, WN_MEMORY, 1);
    takes(r, 1, WN_OPEN);
    wn_partition *others[] = {q, r};
    for (int i = 0; i < 2; i++) {
        (void)leave(others[i]);
        wn_partition_unread(others[i]);
        wn_partition_release(others[i]);
    }
    finish(of, p);
}

static void an_event_that_cannot_be_made_is_a_gap(void)
{
    for (int before = 0; before < 2; before++) {
        wn_hub *of = hub(LARGE, LARGE, 64);
        wn_partition *p = opened(of, 7);
        for (int k = 0; k < before; k++)
            CHECK(add(p, 10, 1, false).done);
        told_to(add_failing(p, 10), 7);
        EQUAL(ws_budget_used(&of->budget), 0);
        takes_gap(p, WN_MEMORY, (uint64_t)before + 1);
        finish(of, p);
    }
}

static void a_lost_event_is_a_gap(void)
{
    wn_hub *of = hub(LARGE, LARGE, 64);
    wn_partition *p = opened(of, 7);
    CHECK(add(p, 10, 1, false).done);
    told_to(lose(p), 7);
    not_told(lose(p));
    not_told(stop(p));
    CHECK(!add(p, 10, 2, true).done);
    not_told(leave(p));
    wn_partition_join(p);
    takes_gap(p, WN_LOST, 2);
    CHECK(!add(p, 10, 3, true).done);
    takes_nothing(p);
    finish(of, p);
}

/* In each state: nothing is added, no consumer is told, nothing is taken, no memory is kept. */
static void unread_in_every_state(void)
{
    enum { FRESH, EVENTS, TOLD, IN_HAND, COMPLETE, STOPPED, GAP, ENDED, STATES };
    for (int state = FRESH; state < STATES; state++) {
        snprintf(doing, sizeof doing, "state %d", state);
        wn_hub *of = hub(LARGE, LARGE, 64);
        wn_partition *p = opened(of, 7);
        if (state != FRESH)
            CHECK(add(p, 10, 1, state == TOLD).done);
        if (state == IN_HAND) {
            takes(p, 1, WN_OPEN);
            CHECK(add(p, 10, 2, false).done);
        } else if (state == COMPLETE) {
            told_to(leave(p), 7);
            wn_partition_join(p);
        } else if (state == GAP) {
            told_to(lose(p), 7);
        } else if (state == STOPPED || state == ENDED) {
            told_to(stop(p), 7);
            if (state == ENDED)
                takes(p, 1, WN_STOPPED);
        }
        CHECK(!wn_partition_is_unread(p));
        wn_partition_unread(p);
        CHECK(wn_partition_is_unread(p));
        EQUAL(ws_budget_used(&of->budget), 0);
        EQUAL(atomic_load(&batches_alive), 0);
        outcome o = add(p, 10, 3, true);
        CHECK(!o.done);
        EQUAL(o.todo, 0);
        takes_nothing(p);
        EQUAL(stop(p).todo, 0);
        EQUAL(lose(p).todo, 0);
        takes_nothing(p);
        wn_partition_unread(p);
        finish(of, p);
    }
    doing[0] = 0;
}

static void only_its_consumer_abandons_a_partition(void)
{
    wn_hub *of = hub(LARGE, LARGE, 64);
    wn_partition *p = opened(of, 5);
    CHECK(!wn_partition_take(p, 6, &(wn_taken){0}));
    CHECK(add(p, 10, 1, false).done);
    wn_partition_abandon(p, 5);
    CHECK(!wn_partition_is_unread(p));
    told_to(add(p, 10, 2, true), 6);
    wn_partition_abandon(p, 6);
    CHECK(wn_partition_is_unread(p));
    EQUAL(ws_budget_used(&of->budget), 0);
    CHECK(!add(p, 10, 3, true).done);
    takes_nothing(p);
    finish(of, p);
}

/* --- told once ------------------------------------------------------------------- */

static void a_consumer_is_told_when_a_batch_is_full(void)
{
    wn_hub *of = hub(LARGE, LARGE, 3);
    wn_partition *p = opened(of, 7);
    not_told(add(p, 1, 1, false));
    not_told(add(p, 1, 2, false));
    told_to(add(p, 1, 3, false), 7);
    not_told(add(p, 1, 4, false));
    not_told(add(p, 1, 5, true));
    not_told(stop(p));
    takes(p, 5, WN_STOPPED);
    finish(of, p);
}

static void a_consumer_is_told_again_only_after_it_has_taken(void)
{
    wn_hub *of = hub(LARGE, LARGE, 2);
    wn_partition *p = opened(of, 7);
    not_told(add(p, 1, 1, false));
    told_to(add(p, 1, 2, false), 7);
    takes(p, 2, WN_OPEN);
    not_told(add(p, 1, 3, false));
    told_to(add(p, 1, 4, false), 7);
    not_told(add(p, 1, 5, false));
    takes(p, 3, WN_OPEN);
    takes_nothing(p);
    told_to(add(p, 1, 6, true), 7);
    takes(p, 1, WN_OPEN);
    told_to(stop(p), 7);
    takes(p, 0, WN_STOPPED);
    finish(of, p);
}

static void no_event_is_told_before_there_is_a_consumer(void)
{
    wn_hub *of = hub(LARGE, LARGE, 2);
    wn_partition *p = opened(of, 0);
    for (uint64_t i = 0; i < 5; i++)
        not_told(add(p, 1, i, true));
    CHECK(!wn_hub_tick(of, 0, tell_none, NULL) || !wn_hub_tick(of, 0, tell_none, NULL));
    takes(p, 5, WN_OPEN);
    told_to(add(p, 1, 5, true), 7);
    takes(p, 1, WN_OPEN);
    finish(of, p);
}

static void the_last_to_take_is_the_consumer(void)
{
    wn_hub *of = hub(LARGE, LARGE, 1);
    wn_partition *p = opened(of, 5);
    CHECK(!wn_partition_take(p, 6, &(wn_taken){0}));
    told_to(add(p, 1, 1, false), 6);
    takes(p, 1, WN_OPEN);
    finish(of, p);
}

static void events_are_counted_when_they_are_taken(void)
{
    wn_hub *of = hub(LARGE, LARGE, 64);
    wn_partition *p = opened(of, 7);
    for (uint64_t i = 0; i < 3; i++)
        CHECK(add(p, 1, i, false).done);
    EQUAL(atomic_load(&of->events), 0);
    takes(p, 3, WN_OPEN);
    EQUAL(atomic_load(&of->events), 3);
    finish(of, p);
}

/* --- the timer ------------------------------------------------------------------- */

static void the_timer_is_woken_once_and_rests_again(void)
{
    wn_hub *of = hub(LARGE, LARGE, 64);
    wn_partition *p = opened(of, 7), *q = opened(of, 8);
    CHECK(!wn_hub_tick(of, 1, tell_none, NULL));
    for (int round = 0; round < 3; round++) {
        uintptr_t told = 0;
        EQUAL(add(p, 1, 1, false).todo, WN_WAKE);
        EQUAL(add(p, 1, 2, false).todo, 0);
        EQUAL(wn_hub_tick(of, 1, tell_one, &told), false);
        EQUAL(told, 7);
        EQUAL(add(p, 1, 3, false).todo, 0);
        takes(p, 3, WN_OPEN);
        EQUAL(wn_hub_tick(of, 1, tell_none, NULL), false);
    }
    EQUAL(add(p, 1, 1, false).todo, WN_WAKE);
    EQUAL(add(q, 1, 1, false).todo, 0);
    wn_partition_unread(q);
    (void)leave(q);
    wn_partition_release(q);
    takes(p, 1, WN_OPEN);
    EQUAL(wn_hub_tick(of, 0, tell_none, NULL), false);
    EQUAL(atomic_load(&wn_count_partitions), 1);
    finish(of, p);
}

static void the_timer_tells_of_what_is_old_enough(void)
{
    wn_hub *of = hub(LARGE, LARGE, 64);
    wn_partition *p = opened(of, 7), *q = opened(of, 8);
    EQUAL(add(p, 1, 1, false).todo, WN_WAKE);
    CHECK(wn_hub_tick(of, 3, tell_none, NULL));
    EQUAL(add(q, 1, 1, false).todo, 0);
    EQUAL(add(p, 1, 2, false).todo, 0);
    CHECK(wn_hub_tick(of, 3, tell_none, NULL));
    uintptr_t told = 0;
    CHECK(wn_hub_tick(of, 3, tell_one, &told));
    EQUAL(told, 7);
    told = 0;
    CHECK(!wn_hub_tick(of, 3, tell_one, &told));
    EQUAL(told, 8);
    /* The age is that of the batch that is there now. */
    takes(p, 2, WN_OPEN);
    EQUAL(add(p, 1, 3, false).todo, WN_WAKE);
    CHECK(wn_hub_tick(of, 2, tell_none, NULL));
    told = 0;
    CHECK(!wn_hub_tick(of, 2, tell_one, &told));
    EQUAL(told, 7);
    takes(q, 1, WN_OPEN);
    (void)leave(q);
    wn_partition_unread(q);
    wn_partition_release(q);
    finish(of, p);
}

/* The first `take` finds what came before; what comes after it must not wait for ever. */
static void a_consumer_that_comes_while_the_timer_rests_is_told(void)
{
    wn_hub *of = hub(LARGE, LARGE, 64);
    wn_partition *p = opened(of, 0);
    (void)add(p, 1, 1, false);
    for (int i = 0; i < 3; i++)
        (void)wn_hub_tick(of, 0, tell_none, NULL);
    takes(p, 1, WN_OPEN);
    (void)add(p, 1, 2, false);
    uintptr_t told = 0;
    (void)wn_hub_tick(of, 0, tell_one, &told);
    EQUAL(told, 7);
    finish(of, p);
}

/* --- references ------------------------------------------------------------------ */

/* As at the end of a run: nothing takes, leaves, or looks for readers any more. */
static void the_last_reference_frees_what_is_buffered(void)
{
    wn_hub *of = hub(LARGE, LARGE, 1);
    wn_partition *p = wn_partition_new(of, true), *q = wn_partition_new(of, false);
    CHECK(p->grouped && !q->grouped);
    CHECK(!wn_partition_take(p, 7, &(wn_taken){0}));
    told_to(add(p, 10, 1, true), 7);
    takes(p, 1, WN_OPEN);
    told_to(add(p, 10, 2, true), 7);
    EQUAL(atomic_load(&wn_count_partitions), 2);
    wn_partition_release(p);
    EQUAL(atomic_load(&wn_count_partitions), 1);
    EQUAL(atomic_load(&batches_alive), 0);
    EQUAL(ws_budget_used(&of->budget), 0);
    wn_hub_release(of);
    EQUAL(atomic_load(&wn_count_hubs), 1);
    wn_partition_release(q);
    check_nothing_left();
}

/* Without a timer, the list would keep the last reference of what is listed. */
static void a_drained_hub_keeps_nothing(void)
{
    wn_hub *of = hub(LARGE, LARGE, 64);
    wn_partition *p = opened(of, 7), *q = opened(of, 8);
    EQUAL(add(p, 10, 1, false).todo, WN_WAKE);
    EQUAL(add(q, 10, 2, false).todo, 0);
    told_to(stop(p), 7);
    wn_hub_drain(of);
    wn_hub_drain(of);
    takes(p, 1, WN_STOPPED);
    wn_partition *both[] = {p, q};
    for (int i = 0; i < 2; i++) {
        (void)leave(both[i]);
        wn_partition_release(both[i]);
    }
    wn_hub_release(of);
    check_nothing_left();
}

/* --- the table of tracees -------------------------------------------------------- */

static void tracees_are_found_until_they_are_removed(void)
{
    wn_table table;
    CHECK(wn_table_init(&table, 16));
    for (uintptr_t process = 1; process <= 1000; process++) {
        wn_slot *slot = wn_table_slot(&table, process << 4 | 3);
        ws_lock_take(&slot->lock);
        CHECK(wn_slot_find(slot, process << 4 | 3) == NULL);
        wn_tracee *tracee = wn_slot_insert(slot, process << 4 | 3, NULL, false);
        CHECK(tracee != NULL && tracee->partition == NULL && !tracee->held && !tracee->launcher);
        CHECK(wn_slot_find(slot, process << 4 | 3) == tracee);
        ws_lock_give(&slot->lock);
    }
    EQUAL(atomic_load(&wn_count_tracees), 1000);
    uint64_t seed = 1;
    bool gone[1001] = {false};
    for (int left = 1000; left > 0;) {
        uintptr_t process = 1 + random_below(&seed, 1000), word = process << 4 | 3;
        wn_slot *slot = wn_table_slot(&table, word);
        wn_tracee *tracee = wn_slot_find(slot, word);
        EQUAL(tracee == NULL, gone[process]);
        if (!tracee)
            continue;
        EQUAL(tracee->process, word);
        wn_slot_remove(slot, tracee);
        CHECK(wn_slot_find(slot, word) == NULL);
        gone[process] = true;
        EQUAL(atomic_load(&wn_count_tracees), --left);
    }
    for (size_t i = 0; i < 16; i++)
        CHECK(table.slots[i].first == NULL);
    wn_table_free(&table);
    CHECK(table.slots == NULL);
}

static void a_fresh_partition_has_room_for_an_entry(void)
{
    wn_table table;
    CHECK(wn_table_init(&table, 1));
    wn_hub *of = hub(LARGE, LARGE, 64);
    wn_partition *p = opened(of, 7);
    wn_slot *slot = wn_table_slot(&table, 1);
    wn_tracee *own = wn_slot_insert(slot, 1, p, true), *other = wn_slot_insert(slot, 2, p, false);
    CHECK(own == &p->first && other != own);
    CHECK(own->partition == p && other->partition == p);
    CHECK(wn_slot_find(slot, 1) == own && wn_slot_find(slot, 2) == other);
    EQUAL(atomic_load(&wn_count_tracees), 2);
    wn_slot_remove(slot, own);
    CHECK(wn_slot_find(slot, 1) == NULL && wn_slot_find(slot, 2) == other);
    wn_slot_remove(slot, other);
    EQUAL(atomic_load(&wn_count_tracees), 0);
    wn_table_free(&table);
    finish(of, p);
}

/* Until its consumer says so, a partition wants everything. */
static void a_partition_wants_what_its_consumer_wants(void)
{
    wn_hub *of = hub(LARGE, LARGE, 64);
    wn_partition *p = opened(of, 7);
    for (unsigned kind = 1; kind < WN_ALL; kind *= 2)
        CHECK(wn_partition_wants(p, kind));
    wn_partition_narrow(p, WN_RECV | WN_EXIT);
    for (unsigned kind = 1; kind < WN_ALL; kind *= 2)
        EQUAL(wn_partition_wants(p, kind), kind == WN_RECV || kind == WN_EXIT);
    finish(of, p);
}

/* Names of processes are counted up: neighbours must not share a few slots. */
static void tracees_are_spread_over_the_slots(void)
{
    wn_table table;
    static unsigned used[1024];
    unsigned most = 0, empty = 0;
    CHECK(wn_table_init(&table, 1024));
    for (uintptr_t process = 0; process < 4096; process++) {
        unsigned *u = &used[wn_table_slot(&table, process << 4 | 3) - table.slots];
        if (++*u > most)
            most = *u;
    }
    for (size_t i = 0; i < 1024; i++)
        empty += used[i] == 0;
    CHECK(most <= 16);
    CHECK(empty <= 64);
    wn_table_free(&table);
}

/* --- names ----------------------------------------------------------------------- */

/* Against the plain array of what is in the set. The processes are few, and many of them have the same home. */
static void a_set_of_processes_has_what_was_added_and_not_removed(void)
{
    enum { PROCESSES = 200, STEPS = 20000 };
    wn_pids set = {0};
    bool there[PROCESSES] = {false};
    size_t count = 0;
    uint32_t random = 1;
    CHECK(!wn_pids_remove(&set, 16));
    for (int step = 0; step < STEPS; step++) {
        random = random * 1664525u + 1013904223u;
        size_t i = (random >> 8) % PROCESSES;
        uintptr_t process = (uintptr_t)(i % 10 + 1) << 4 | (uintptr_t)(i / 10) << 40;
        /* The set grows and shrinks again. */
        if ((random >> 28) % 4 < (step / 2000 % 2 ? 1u : 3u)) {
            CHECK(wn_pids_add(&set, process));
            count += !there[i];
            there[i] = true;
        } else {
            EQUAL(wn_pids_remove(&set, process), there[i]);
            count -= there[i];
            there[i] = false;
        }
        EQUAL(set.count, count);
    }
    for (size_t i = 0; i < PROCESSES; i++)
        EQUAL(wn_pids_remove(&set, (uintptr_t)(i % 10 + 1) << 4 | (uintptr_t)(i / 10) << 40), there[i]);
    EQUAL(set.count, 0);
    wn_pids_clear(&set);
    CHECK(!set.places);
}

static void nothing_is_named_without_patterns(void)
{
    wn_names names;
    CHECK(wn_names_init(&names, &(wn_pattern){0}, 0));
    CHECK(!wn_names_find(&names, 1, 2, 3).named);
    CHECK(!wn_names_unknown(&names).named && !wn_names_unknown(&names).group);
    wn_names_free(&names);
    wn_names_free(&names);
}

/* Compared with a linear search of the patterns. */
static void names_are_those_of_the_patterns(void)
{
    uint64_t seed = 3;
    wn_pattern patterns[60];
    for (int round = 0; round < 500; round++) {
        uint32_t count = random_below(&seed, 60), range = 1 + random_below(&seed, 8), wild = random_below(&seed, 3);
        bool any_group = false, any_apart = false;
        for (uint32_t i = 0; i < count; i++) {
            bool at_all = wild > 0 && random_below(&seed, 4) == 0;
            patterns[i] = (wn_pattern){.module = (1 + random_below(&seed, range)) << 6,
                                       .function = (1 + random_below(&seed, range)) << 6,
                                       .arity = (int)random_below(&seed, 4),
                                       .group = random_below(&seed, 4) == 0,
                                       .apart = random_below(&seed, 4) == 0};
            if (at_all && random_below(&seed, 2))
                patterns[i].module = 0;
            if (at_all && random_below(&seed, 2))
                patterns[i].function = 0;
            if (at_all && random_below(&seed, 2))
                patterns[i].arity = -1;
            any_group |= patterns[i].group;
            any_apart |= patterns[i].apart;
        }
        wn_names names;
        CHECK(wn_names_init(&names, patterns, count));
        EQUAL(wn_names_unknown(&names).named, count > 0);
        EQUAL(wn_names_unknown(&names).group, any_group);
        EQUAL(wn_names_unknown(&names).apart, any_apart);
        for (uintptr_t module = 1; module <= range + 1; module++) {
            for (uintptr_t function = 1; function <= range + 1; function++) {
                for (int arity = 0; arity < 5; arity++) {
                    bool named = false, group = false, apart = false;
                    for (uint32_t i = 0; i < count; i++) {
                        const wn_pattern *p = &patterns[i];
                        if ((!p->module || p->module == module << 6) && (!p->function || p->function == function << 6) &&
                            (p->arity < 0 || p->arity == arity)) {
                            named = true;
                            group |= p->group;
                            apart |= p->apart;
                        }
                    }
                    wn_naming found = wn_names_find(&names, module << 6, function << 6, arity);
                    snprintf(doing, sizeof doing, "round %d, %d patterns", round, (int)count);
                    EQUAL(found.named, named);
                    EQUAL(found.group, group);
                    EQUAL(found.apart, apart);
                }
            }
        }
        wn_names_free(&names);
    }
    doing[0] = 0;
}

/* --------------------------------------------------------------------------------- */

#define TESTS(X)                                                                                                                   \
    X(a_lock_can_be_taken_again)                                                                                                   \
    X(a_budget_is_a_hard_bound)                                                                                                    \
    X(the_last_member_completes)                                                                                                   \
    X(stop_ends)                                                                                                                   \
    X(an_end_without_events_is_taken)                                                                                              \
    X(an_end_is_taken_by_a_consumer_that_comes_later)                                                                              \
    X(the_bound_of_a_partition_is_a_gap)                                                                                           \
    X(an_event_that_never_fits_is_a_gap)                                                                                           \
    X(without_bounds_only_the_impossible_is_a_gap)                                                                                 \
    X(what_is_taken_is_given_back_when_the_consumer_returns)                                                                       \
    X(a_gap_of_one_partition_makes_room_for_others)                                                                                \
    X(an_event_that_cannot_be_made_is_a_gap)                                                                                       \
    X(a_lost_event_is_a_gap)                                                                                                       \
    X(unread_in_every_state)                                                                                                       \
    X(only_its_consumer_abandons_a_partition)                                                                                      \
    X(a_consumer_is_told_when_a_batch_is_full)                                                                                     \
    X(a_consumer_is_told_again_only_after_it_has_taken)                                                                            \
    X(no_event_is_told_before_there_is_a_consumer)                                                                                 \
    X(the_last_to_take_is_the_consumer)                                                                                            \
    X(events_are_counted_when_they_are_taken)                                                                                      \
    X(the_timer_is_woken_once_and_rests_again)                                                                                     \
    X(the_timer_tells_of_what_is_old_enough)                                                                                       \
    X(a_consumer_that_comes_while_the_timer_rests_is_told)                                                                         \
    X(the_last_reference_frees_what_is_buffered)                                                                                   \
    X(a_drained_hub_keeps_nothing)                                                                                                 \
    X(a_partition_wants_what_its_consumer_wants)                                                                                   \
    X(tracees_are_found_until_they_are_removed)                                                                                    \
    X(a_fresh_partition_has_room_for_an_entry)                                                                                     \
    X(tracees_are_spread_over_the_slots)                                                                                           \
    X(a_set_of_processes_has_what_was_added_and_not_removed)                                                                       \
    X(nothing_is_named_without_patterns)                                                                                           \
    X(names_are_those_of_the_patterns)

static const struct {
    const char *name;
    void (*run)(void);
} tests[] = {
#define ENTRY(name) {#name, name},
    TESTS(ENTRY)
#undef ENTRY
};

/* All of them, or those that are named. */
int main(int argc, char **argv)
{
    int ran = 0;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        bool wanted = argc < 2;
        for (int k = 1; k < argc; k++)
            wanted |= strcmp(argv[k], tests[i].name) == 0;
        if (!wanted)
            continue;
        test_name = tests[i].name;
        tests[i].run();
        check_nothing_left();
        ran++;
    }
    printf("unit: %d tests passed\n", ran);
    return ran > 0 ? 0 : 2;
}
