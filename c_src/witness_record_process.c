#include "witness_record_process.h"

#include <stddef.h>
#include <string.h>

void wr_process_init(wr_process *process, uintptr_t pid, uint32_t id)
{
    /* All but its pid, which any thread may read. */
    memset((uint8_t *)process + offsetof(wr_process, state), 0, sizeof *process - offsetof(wr_process, state));
    ws_lock_init(&process->lock);
    process->order = process->inline_order;
    process->capacity = WR_INLINE_BYTES;
    process->id = id;
    atomic_store_explicit(&process->pid, pid, memory_order_release);
}

void wr_process_clear(wr_output *output, wr_process *process)
{
    if (process->order != process->inline_order)
        wr_uncharged(output, process->order, process->capacity);
    if (process->data)
        wr_uncharged(output, process->data, process->data_capacity);
    process->order = process->inline_order;
    process->capacity = WR_INLINE_BYTES;
    process->data = NULL;
    process->data_used = process->data_capacity = 0;
}

/* --- sub-traces ------------------------------------------------------------------ */

/* The first of the pieces is filled in here. */
static bool sub_trace(wr_output *output, wr_name name, uint32_t id, uint32_t *number, wr_piece *pieces, unsigned count)
{
    uint8_t head[3 * WR_LEB_BYTES];
    size_t size = 0;
    for (unsigned i = 1; i < count; i++)
        size += pieces[i].size;
    if (size == 0)
        return true;
    pieces[0].bytes = head;
    pieces[0].size = (size_t)(wr_leb(wr_leb(wr_leb(head, id), *number), size) - head);
    if (!wr_stream_add(output, name, pieces, count))
        return false;
    ++*number;
    return true;
}

/* The length of a closed run, which begins with the first of these bytes. Returns where the next entry is. */
static const uint8_t *closed_run(const uint8_t *at, uint32_t *length)
{
    unsigned value = *at++ & 31u, shift = 0;
    if (value == 31) {
        uint8_t byte;
        do {
            byte = *at++;
            value += (byte & 0x7Fu) << shift;
            shift += 7;
        } while (byte & 0x80);
    }
    *length = value;
    return at;
}

/* Locked. `state` is the process's, as it is or was. */
static bool write_order(wr_output *output, wr_process *process, uint64_t state)
{
    uint8_t before[WR_RUN_BYTES], behind[WR_RUN_BYTES];
    const uint8_t *from = process->order + process->taken, *end = process->order + WR_USED(state);
    size_t before_size = 0, behind_size = 0;
    uint32_t run = WR_RUN(state), length;
    if (process->emitted && from < end) {
        wr_kind kind = (wr_kind)(*from >> 5);
        from = closed_run(from, &length);
        if (length > process->emitted)
            before_size = (size_t)(wr_head(before, kind, length - process->emitted) - before);
    } else {
        run -= process->emitted;
    }
    if (run)
        behind_size = (size_t)(wr_head(behind, (wr_kind)WR_RUN_KIND(state), run) - behind);
    wr_piece pieces[] = {{NULL, 0}, {before, before_size}, {from, (size_t)(end - from)}, {behind, behind_size}};
    if (!sub_trace(output, WR_ORDER, process->id, &process->order_number, pieces, 4))
        return false;
    process->taken = WR_USED(state);
    process->emitted = WR_RUN(state);
    return true;
}

/* Locked. With one more item, or none. */
static bool write_data(wr_output *output, wr_process *process, const wr_piece *item)
{
    wr_piece pieces[] = {{NULL, 0}, {process->data, process->data_used}, item[0], item[1]};
    if (!sub_trace(output, WR_DATA, process->id, &process->data_number, pieces, 4))
        return false;
    process->data_used = 0;
    return true;
}

static const wr_piece nothing[2];

/* Locked. Data first, since entries need theirs. */
static bool write_both(wr_output *output, wr_process *process)
{
    /* The state is read before the data: so the data has the items of all entries of that state. */
    uint64_t state = atomic_load_explicit(&process->state, memory_order_acquire);
    return write_data(output, process, nothing) && write_order(output, process, state);
}

bool wr_write_out(wr_output *output, wr_process *process)
{
    ws_lock_take(&process->lock);
    bool good = write_both(output, process);
    if (good && process->data) {
        wr_uncharged(output, process->data, process->data_capacity);
        process->data = NULL;
        process->data_capacity = 0;
    }
    ws_lock_give(&process->lock);
    return good;
}

/* --- space ----------------------------------------------------------------------- */

/* Locked. */
static bool grow(wr_output *output, wr_process *process)
{
    uint32_t capacity = 2 * process->capacity < 128 ? 128 : 2 * process->capacity;
    if (capacity > output->order)
        capacity = output->order;
    uint8_t *order = wr_charged(output, capacity);
    if (!order)
        return false;
    memcpy(order, process->order, WR_USED(atomic_load_explicit(&process->state, memory_order_relaxed)));
    if (process->order != process->inline_order)
        wr_uncharged(output, process->order, process->capacity);
    process->order = order;
    process->capacity = capacity;
    return true;
}

bool wr_reserve(wr_output *output, wr_process *process)
{
    bool good;
    ws_lock_take(&process->lock);
    if (process->capacity < output->order) {
        good = grow(output, process);
    } else {
        good = write_both(output, process);
        if (good) {
            /* All of it was written, the run too. The process itself runs this, so nothing has been appended since. */
            atomic_store_explicit(&process->state, 0, memory_order_relaxed);
            process->taken = process->emitted = 0;
        }
    }
    ws_lock_give(&process->lock);
    return good;
}

/* --- data ------------------------------------------------------------------------ */

/* Locked. */
static bool reserve_data(wr_output *output, wr_process *process, size_t total)
{
    uint32_t capacity = process->data_capacity ? process->data_capacity : 64;
    while (capacity - process->data_used < total)
        capacity *= 2;
    if (capacity == process->data_capacity)
        return true;
    uint8_t *data = wr_charged(output, capacity);
    if (!data)
        return false;
    if (process->data) {
        memcpy(data, process->data, process->data_used);
        wr_uncharged(output, process->data, process->data_capacity);
    }
    process->data = data;
    process->data_capacity = capacity;
    return true;
}

static bool add_item(wr_output *output, wr_process *process, const uint8_t *item, size_t size)
{
    uint8_t head[WR_LEB_BYTES];
    wr_piece pieces[] = {{head, (size_t)(wr_leb(head, size) - head)}, {item, size}};
    size_t total = pieces[0].size + size;
    bool good = true;
    ws_lock_take(&process->lock);
    if (total > WR_DATA_BYTES - process->data_used) {
        /* What does not fit is written at once, after what was there before it. */
        good = write_data(output, process, pieces);
    } else if ((good = reserve_data(output, process, total))) {
        memcpy(process->data + process->data_used, head, pieces[0].size);
        memcpy(process->data + process->data_used + pieces[0].size, item, size);
        process->data_used += (uint32_t)total;
    }
    ws_lock_give(&process->lock);
    return good;
}

/* --- entries --------------------------------------------------------------------- */

bool wr_spawn(wr_output *output, wr_process *process, uint32_t child, uint64_t now)
{
    uint8_t *at = wr_begin_untimed(output, process);
    if (at && wr_has_times(output))
        at = wr_time(at, now);
    if (at)
        wr_done(process, wr_head_id(output, at, WR_SPAWN, child));
    return at != NULL;
}

bool wr_result_number(wr_output *output, wr_process *process, uint64_t call, int64_t number)
{
    uint8_t *at = wr_begin(output, process);
    if (!at)
        return false;
    at = wr_head(at, WR_RESULT, call);
    *at++ = WR_FORM_NUMBER;
    wr_done(process, wr_leb(at, wr_zigzag(number)));
    return true;
}

bool wr_result_fixed(wr_output *output, wr_process *process, uint64_t call, unsigned form)
{
    uint8_t *at = wr_begin(output, process);
    if (!at)
        return false;
    at = wr_head(at, WR_RESULT, call);
    *at++ = (uint8_t)form;
    wr_done(process, at);
    return true;
}

bool wr_named(wr_output *output, wr_process *process, uint32_t to)
{
    uint8_t *at = wr_begin(output, process);
    if (!at)
        return false;
    at = wr_head(at, WR_MARK, WR_NAMED);
    wr_done(process, output->full_ids ? wr_bytes64(at, to) : wr_leb(at, to));
    return true;
}

bool wr_hash(wr_output *output, wr_process *process, uint64_t hash)
{
    uint8_t *at = wr_begin_untimed(output, process);
    if (at)
        wr_done(process, wr_bytes64(wr_head(at, WR_MARK, WR_HASH), hash));
    return at != NULL;
}

bool wr_ordered(wr_output *output, wr_process *process, uint64_t begin, uint64_t end)
{
    uint8_t *at = wr_begin(output, process);
    if (at)
        wr_done(process, wr_leb(wr_leb(wr_head(at, WR_MARK, WR_ORDERED), begin), end - begin));
    return at != NULL;
}

bool wr_content(wr_output *output, wr_process *process, const uint8_t *item, size_t size)
{
    return add_item(output, process, item, size) && wr_step(output, process, WR_CONTENT);
}

static bool head_only(wr_process *process, uint8_t *at, wr_kind kind, uint64_t value)
{
    if (at)
        wr_done(process, wr_head(at, kind, value));
    return at != NULL;
}

bool wr_result_data(wr_output *output, wr_process *process, uint64_t call, const uint8_t *item, size_t size)
{
    if (!add_item(output, process, item, size))
        return false;
    return wr_result_fixed(output, process, call, WR_FORM_DATA);
}

bool wr_raise(wr_output *output, wr_process *process, uint64_t call, const uint8_t *item, size_t size)
{
    return add_item(output, process, item, size) && head_only(process, wr_begin(output, process), WR_RAISE, call);
}

bool wr_marked(wr_output *output, wr_process *process, wr_mark mark, const uint8_t *item, size_t size)
{
    if (!add_item(output, process, item, size))
        return false;
    uint8_t *at = mark == WR_CONTENTS ? wr_begin_untimed(output, process) : wr_begin(output, process);
    return head_only(process, at, WR_MARK, mark);
}

bool wr_exit(wr_output *output, wr_process *process, const uint8_t *item, size_t size)
{
    uint8_t head[WR_LEB_BYTES];
    wr_piece pieces[] = {{head, (size_t)(wr_leb(head, size) - head)}, {item, size}};
    bool good = false;
    ws_lock_take(&process->lock);
    /* The item is written with the data that is there: it needs no space of its own. */
    if (wr_is_open(output) && write_data(output, process, pieces)) {
        ws_lock_give(&process->lock);
        bool waited = process->waits;
        uint8_t *at = wr_begin(output, process);
        if (at && waited)
            at = wr_head(at, WR_MARK, WR_WAITED);
        if (at)
            wr_done(process, wr_head(at, WR_MARK, WR_EXIT));
        good = at != NULL;
        ws_lock_take(&process->lock);
    }
    if (!write_both(output, process))
        good = write_both(output, process) && good; /* the recording has just ended, so it can be now */
    ws_lock_give(&process->lock);
    return good;
}
