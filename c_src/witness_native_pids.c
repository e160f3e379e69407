#include "witness_native_pids.h"

#include <stdlib.h>

#define FIRST_SIZE 8u

static size_t home(const wn_pids *pids, uintptr_t process)
{
    return (process >> 4 ^ process >> 28) & (pids->size - 1);
}

/* The place of the process, or the free place for it. There always is a free one. */
static size_t find(const wn_pids *pids, uintptr_t process)
{
    size_t i = home(pids, process);
    while (pids->places[i] && pids->places[i] != process)
        i = (i + 1) & (pids->size - 1);
    return i;
}

static bool grow(wn_pids *pids)
{
    wn_pids larger = {.size = pids->size ? 2 * pids->size : FIRST_SIZE, .count = pids->count};
    larger.places = calloc(larger.size, sizeof *larger.places);
    if (!larger.places)
        return false;
    for (size_t i = 0; i < pids->size; i++)
        if (pids->places[i])
            larger.places[find(&larger, pids->places[i])] = pids->places[i];
    free(pids->places);
    *pids = larger;
    return true;
}

bool wn_pids_add(wn_pids *pids, uintptr_t process)
{
    if (2 * (pids->count + 1) > pids->size && !grow(pids))
        return false;
    size_t i = find(pids, process);
    pids->count += !pids->places[i];
    pids->places[i] = process;
    return true;
}

/* The processes behind it move up, unless that would be before their home: so a search never meets a gap too early. */
bool wn_pids_remove(wn_pids *pids, uintptr_t process)
{
    if (!pids->count)
        return false;
    size_t mask = pids->size - 1, i = find(pids, process);
    if (!pids->places[i])
        return false;
    for (size_t j = (i + 1) & mask; pids->places[j]; j = (j + 1) & mask) {
        if (((j - home(pids, pids->places[j])) & mask) >= ((j - i) & mask)) {
            pids->places[i] = pids->places[j];
            i = j;
        }
    }
    pids->places[i] = 0;
    pids->count--;
    return true;
}

void wn_pids_clear(wn_pids *pids)
{
    free(pids->places);
    *pids = (wn_pids){0};
}
