#include "witness_record_writer.h"

#include "witness_record_atoms.h"
#include "witness_shared_memory.h"

#include <string.h>

static ErlNifResourceType *block_type;

static void free_block(ErlNifEnv *env, void *object)
{
    (void)env;
    ws_free(*(wr_block **)object);
}

bool wr_writer_load(ErlNifEnv *env, ErlNifResourceFlags flags)
{
    ErlNifResourceTypeInit block = {.dtor = free_block};
    block_type = enif_open_resource_type_x(env, "witness_record_block", &block, flags, NULL);
    return block_type != NULL;
}

/* A block that is nearly empty is copied, so that it does not keep its memory until the binary is collected. */
#define SMALL_PART 8u

/* False: there is no memory. The block is freed in any case. */
static bool binary_of(ErlNifEnv *env, wr_block *block, ERL_NIF_TERM *binary)
{
    wr_block **object = block->used < block->size / SMALL_PART ? NULL : enif_alloc_resource(block_type, sizeof *object);
    if (object) {
        *object = block;
        *binary = enif_make_resource_binary(env, object, block->bytes, block->used);
        enif_release_resource(object);
        return true;
    }
    unsigned char *bytes = enif_make_new_binary(env, block->used, binary);
    if (bytes)
        memcpy(bytes, block->bytes, block->used);
    ws_free(block);
    return bytes != NULL;
}

static ERL_NIF_TERM state(ErlNifEnv *env, wr_output *output)
{
    const ERL_NIF_TERM reasons[] = {[WR_RUNNING] = am_running, [WR_BUDGET] = am_budget, [WR_MEMORY] = am_memory,
                                    [WR_IDS] = am_ids,         [WR_SENDER] = am_sender, [WR_STOPPED] = am_stopped};
    wr_reason reason = wr_ended(output);
    return reason == WR_RUNNING ? am_running : enif_make_tuple2(env, am_ended, reasons[reason]);
}

ERL_NIF_TERM wr_writer_take(ErlNifEnv *env, wr_output *output, unsigned most)
{
    const ERL_NIF_TERM names[] = {[WR_PROCESSES] = am_processes, [WR_DATA] = am_data, [WR_ORDER] = am_order};
    ERL_NIF_TERM list = enif_make_list(env, 0), binary, in_order, was = state(env, output);
    wr_taking taking = wr_take_begin(output, most);
    wr_block *block;
    wr_name name;
    bool good = true;
    while (good && (block = wr_take_next(output, &taking, &name))) {
        good = binary_of(env, block, &binary);
        if (good)
            list = enif_make_list_cell(env, enif_make_tuple2(env, names[name], binary), list);
    }
    return good && enif_make_reverse_list(env, list, &in_order) ? enif_make_tuple2(env, in_order, was) : enif_make_badarg(env);
}

/* The maps are new, so `put` cannot fail. */
ERL_NIF_TERM wr_writer_info(ErlNifEnv *env, wr_recorder *recorder)
{
    wr_output *output = &recorder->output;
    ERL_NIF_TERM map = enif_make_new_map(env), bytes = enif_make_new_map(env);
    (void)enif_make_map_put(env, bytes, am_order, enif_make_uint64(env, wr_stream_bytes(output, WR_ORDER)), &bytes);
    (void)enif_make_map_put(env, bytes, am_data, enif_make_uint64(env, wr_stream_bytes(output, WR_DATA)), &bytes);
    (void)enif_make_map_put(env, bytes, am_processes, enif_make_uint64(env, wr_stream_bytes(output, WR_PROCESSES)), &bytes);
    (void)enif_make_map_put(env, map, am_bytes, bytes, &map);
    (void)enif_make_map_put(env, map, am_state, state(env, output), &map);
    (void)enif_make_map_put(env, map, am_verify, atomic_load(&output->mode) == WR_VERIFY ? am_true : am_false, &map);
    (void)enif_make_map_put(env, map, am_used, enif_make_uint64(env, ws_budget_used(&output->budget)), &map);
    (void)enif_make_map_put(env, map, am_budget, enif_make_uint64(env, output->budget.limit), &map);
    (void)enif_make_map_put(env, map, am_born, enif_make_uint64(env, atomic_load(&recorder->born)), &map);
    (void)enif_make_map_put(env, map, am_ended, enif_make_uint64(env, atomic_load(&recorder->ended)), &map);
    return map;
}
