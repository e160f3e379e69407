#include "witness_native_names.h"

#include <stdlib.h>

static bool is_exact(const wn_pattern *pattern)
{
    return pattern->module && pattern->function && pattern->arity >= 0;
}

static size_t place(const wn_names *names, uintptr_t module, uintptr_t function, int arity)
{
    uint64_t hash = (uint64_t)module * UINT64_C(0x9E3779B97F4A7C15) + (uint64_t)function;
    hash = (hash ^ hash >> 29) * UINT64_C(0xBF58476D1CE4E5B9) + (uint64_t)(unsigned)arity;
    return (hash ^ hash >> 32) & names->mask;
}

static wn_pattern *find(const wn_names *names, uintptr_t module, uintptr_t function, int arity)
{
    size_t i = place(names, module, function, arity);
    while (names->exact[i].module) {
        wn_pattern *p = &names->exact[i];
        if (p->module == module && p->function == function && p->arity == arity)
            break;
        i = (i + 1) & names->mask;
    }
    return &names->exact[i];
}

bool wn_names_init(wn_names *names, const wn_pattern *patterns, size_t count)
{
    size_t size = 4;
    while (size < 2 * count + 1)
        size *= 2;
    *names = (wn_names){.exact = calloc(size, sizeof(wn_pattern)), .mask = size - 1, .wild = calloc(count + 1, sizeof(wn_pattern))};
    if (!names->exact || !names->wild) {
        wn_names_free(names);
        return false;
    }
    names->any = count > 0;
    for (const wn_pattern *p = patterns; p < patterns + count; p++) {
        names->any_group |= p->group;
        names->any_apart |= p->apart;
        if (is_exact(p)) {
            wn_pattern *q = find(names, p->module, p->function, p->arity);
            wn_pattern before = *q;
            *q = *p;
            q->group |= before.module && before.group;
            q->apart |= before.module && before.apart;
        } else {
            names->wild[names->wilds++] = *p;
        }
    }
    return true;
}

void wn_names_free(wn_names *names)
{
    free(names->exact);
    free(names->wild);
    *names = (wn_names){0};
}

wn_naming wn_names_find(const wn_names *names, uintptr_t module, uintptr_t function, int arity)
{
    const wn_pattern *p = find(names, module, function, arity);
    wn_naming naming = {.named = p->module != 0, .group = p->module && p->group, .apart = p->module && p->apart};
    for (const wn_pattern *w = names->wild; w < names->wild + names->wilds; w++) {
        if ((!w->module || w->module == module) && (!w->function || w->function == function) &&
            (w->arity < 0 || w->arity == arity)) {
            naming.named = true;
            naming.group |= w->group;
            naming.apart |= w->apart;
        }
    }
    return naming;
}

wn_naming wn_names_unknown(const wn_names *names)
{
    return (wn_naming){.named = names->any, .group = names->any_group, .apart = names->any_apart};
}
