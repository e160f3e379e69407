#include "witness_native_pieces.h"

#include "witness_native_atoms.h"
#include "witness_native_batch.h"

/* About how many events a shard takes at a time; they take less than a millisecond. */
#define SHARD_EVENTS 2000u
/* A piece by itself costs as much as some events. */
#define PIECE_EVENTS 4u

void wn_pieces_leave(wn_run *run, wn_shard *shard, wn_partition *partition)
{
    wn_shard_leave(shard, partition);
    wn_partition_release(partition);
    atomic_fetch_sub_explicit(&run->read, 1, memory_order_relaxed);
}

/* If there is no memory for all events, the piece ends with a gap, and nothing more may come after it. */
static ERL_NIF_TERM piece(ErlNifEnv *env, wn_partition *partition, wn_taken *taken)
{
    ERL_NIF_TERM id = enif_make_uint64(env, partition->place), birth = taken->birth ? wn_birth_read(env, taken->birth) : 0;
    ERL_NIF_TERM events = enif_make_list(env, 0);
    bool births = false;
    wn_birth_drop(taken->birth);
    if (taken->batch) {
        wn_reading reading = wn_batch_begin(taken);
        if (wn_batch_read(env, &reading, UINT32_MAX, &events, &births)) {
            taken->end = WN_GAP, taken->reason = WN_MEMORY;
            wn_partition_unread(partition);
        }
        wn_batch_drop(taken->batch);
    }
    ERL_NIF_TERM has_births = births ? am_true : am_false;
    return birth ? enif_make_tuple5(env, id, birth, has_births, events, wn_batch_status(env, taken))
                 : enif_make_tuple4(env, id, has_births, events, wn_batch_status(env, taken));
}

ERL_NIF_TERM wn_pieces_take(ErlNifEnv *env, wn_run *run, wn_shard *shard, uintptr_t self)
{
    ERL_NIF_TERM pieces[SHARD_EVENTS / PIECE_EVENTS];
    wn_partition *partition;
    wn_taken taken;
    unsigned events = 0, count = 0;
    wn_shard_begin(shard, self);
    while (events <= SHARD_EVENTS - PIECE_EVENTS && wn_shard_take(shard, &partition, &taken)) {
        events += taken.count + PIECE_EVENTS;
        pieces[count++] = piece(env, partition, &taken);
        if (taken.end != WN_OPEN)
            wn_pieces_leave(run, shard, partition);
        wn_partition_release(partition);
    }
    /* It says whether the time slice is used up. There is nothing left to do here. */
    (void)enif_consume_timeslice(env, 1 + (int)(events < SHARD_EVENTS ? events * 50 / SHARD_EVENTS : 50));
    return enif_make_list_from_array(env, pieces, count);
}
