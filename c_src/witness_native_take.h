/*
 * What a consumer takes from a partition: all that is buffered at that moment, and the end if there is one.
 *
 * A take clears `notified` under the lock of the partition and takes all there is. So what is added later notifies the
 * consumer again, and no event stays behind.
 *
 * Ownership: what was taken is the caller's. It stays charged to the budget until the next take.
 */
#ifndef WITNESS_NATIVE_TAKE_H
#define WITNESS_NATIVE_TAKE_H

#include "witness_native_partition.h"

typedef struct {
    void *batch; /* NULL: empty */
    size_t left;
    void *birth; /* NULL, or the first event of the process; the receiver owns it */
    uint32_t count;
    wn_end end;
    wn_reason reason;
    uint64_t missing;
    size_t charged; /* for a shard, which gives this back when the batch has been handled */
} wn_taken;

/* False: there is nothing; the consumer is notified when there is. What was taken before is given back to the budget. */
bool wn_partition_take(wn_partition *partition, uintptr_t consumer, wn_taken *taken);
/* The same for a gap with nothing before it. False: there is none. The consumer is not notified of what is there now. */
bool wn_partition_take_gap(wn_partition *partition, uintptr_t consumer, wn_taken *taken);

/* --- partitions of a shard ------------------------------------------------------- */

/* False, too, if the partition has left this shard. */
bool wn_partition_take_in(wn_partition *partition, const wn_shard *shard, wn_taken *taken);
/* Whether its birth was taken. */
bool wn_partition_is_known(wn_partition *partition);
/* From now on it has a consumer of its own: the next process that takes. */
void wn_partition_detach(wn_partition *partition);

#endif
