/*
 * The timer's visit to the partitions in the list of a hub (witness_native_hub.h), so that no event waits for long.
 *
 * Locking: the lock of one partition at a time. A partition that is visited is in no list; it is put back, or the reference
 * of the list is released.
 */
#ifndef WITNESS_NATIVE_TIMER_H
#define WITNESS_NATIVE_TIMER_H

#include "witness_native_partition.h"

/*
 * Notifies the consumers of partitions with an oldest event that is at least `age` ticks old. `notify` must not use
 * the partition. True: some are left, so there must be a next tick. False: the timer rests until WN_WAKE.
 */
bool wn_hub_tick(wn_hub *hub, uint32_t age, void (*notify)(void *, uintptr_t consumer), void *argument);

/* Empties the list, when there is no timer any more. */
void wn_hub_drain(wn_hub *hub);

#endif
