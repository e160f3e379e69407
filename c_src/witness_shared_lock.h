/* A lock for a few hundred nanoseconds of work, in one word; its holder never blocks. */
#ifndef WITNESS_NATIVE_LOCK_H
#define WITNESS_NATIVE_LOCK_H

#include <sched.h>
#include <stdatomic.h>

typedef struct {
    atomic_flag held;
} wn_lock;

#define WN_LOCK_INIT {ATOMIC_FLAG_INIT}

static inline void wn_lock_init(wn_lock *lock)
{
    atomic_flag_clear_explicit(&lock->held, memory_order_relaxed);
}

static inline void wn_lock_take(wn_lock *lock)
{
    unsigned tries = 0;
    while (atomic_flag_test_and_set_explicit(&lock->held, memory_order_acquire)) {
        /* The holder may have been preempted, or be copying a large message. */
        if (++tries % 64 == 0)
            sched_yield();
    }
}

static inline void wn_lock_give(wn_lock *lock)
{
    atomic_flag_clear_explicit(&lock->held, memory_order_release);
}

#endif
