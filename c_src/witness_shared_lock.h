/* A lock for a few hundred nanoseconds of work, in one word; its holder never blocks. */
#ifndef WITNESS_SHARED_LOCK_H
#define WITNESS_SHARED_LOCK_H

#include <sched.h>
#include <stdatomic.h>

typedef struct {
    atomic_flag held;
} ws_lock;

#define WS_LOCK_INIT {ATOMIC_FLAG_INIT}

static inline void ws_lock_init(ws_lock *lock)
{
    atomic_flag_clear_explicit(&lock->held, memory_order_relaxed);
}

static inline void ws_lock_take(ws_lock *lock)
{
    unsigned tries = 0;
    while (atomic_flag_test_and_set_explicit(&lock->held, memory_order_acquire)) {
        /* The holder may have been preempted, or be copying a large message. */
        if (++tries % 64 == 0)
            sched_yield();
    }
}

static inline void ws_lock_give(ws_lock *lock)
{
    atomic_flag_clear_explicit(&lock->held, memory_order_release);
}

#endif
