#include "witness_native_table.h"

#include <stdlib.h>

atomic_int_fast64_t wn_count_tracees;

bool wn_table_init(wn_table *table, size_t size)
{
    table->slots = calloc(size, sizeof *table->slots);
    if (!table->slots)
        return false;
    table->mask = size - 1;
    /* A cleared flag is all zeros on these platforms. So pages are not allocated before they are used. */
    return true;
}

void wn_table_free(wn_table *table)
{
    free(table->slots);
    table->slots = NULL;
}

static void link_first(wn_slot *slot, wn_tracee *tracee)
{
    slot->first = tracee;
    atomic_fetch_add_explicit(&wn_count_tracees, 1, memory_order_relaxed);
}

wn_tracee *wn_slot_insert(wn_slot *slot, uintptr_t process, wn_partition *partition, bool fresh)
{
    wn_tracee *tracee = fresh ? &partition->first : calloc(1, sizeof *tracee);
    if (!tracee)
        return NULL;
    *tracee = (wn_tracee){.next = slot->first, .process = process, .partition = partition, .embedded = fresh};
    link_first(slot, tracee);
    return tracee;
}

wn_server *wn_slot_insert_server(wn_slot *slot, uintptr_t process)
{
    wn_server *server = calloc(1, sizeof *server);
    if (!server)
        return NULL;
    server->tracee = (wn_tracee){.next = slot->first, .process = process, .server = true};
    link_first(slot, &server->tracee);
    return server;
}

void wn_slot_remove(wn_slot *slot, wn_tracee *tracee)
{
    wn_tracee **link = &slot->first;
    while (*link != tracee)
        link = &(*link)->next;
    *link = tracee->next;
    /* The tracee is the first member of its server, so the two have one address. */
    if (tracee->server)
        wn_pids_clear(&((wn_server *)tracee)->started);
    if (!tracee->embedded)
        free(tracee);
    atomic_fetch_sub_explicit(&wn_count_tracees, 1, memory_order_relaxed);
}
