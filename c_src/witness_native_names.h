/*
 * The signatures that a monitor may read: the instrumentation map as far as modules, functions and arities determine it.
 * Built once, then only read, by any thread. Atoms are words here.
 */
#ifndef WITNESS_NATIVE_NAMES_H
#define WITNESS_NATIVE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uintptr_t module, function; /* 0: any */
    int arity;                  /* -1: any */
    bool group;
    bool apart; /* a monitor that must not share a shard may read it */
} wn_pattern;

typedef struct {
    wn_pattern *exact; /* a hash table without wildcards; unused places have the module 0 */
    size_t mask;
    wn_pattern *wild;
    size_t wilds;
    bool any, any_group, any_apart;
} wn_names;

typedef struct {
    bool named, group, apart;
} wn_naming;

/* False: there is no memory, and nothing is left behind. */
bool wn_names_init(wn_names *names, const wn_pattern *patterns, size_t count);
void wn_names_free(wn_names *names);

wn_naming wn_names_find(const wn_names *names, uintptr_t module, uintptr_t function, int arity);
/* For an unknown signature: everything that is possible. */
wn_naming wn_names_unknown(const wn_names *names);

#endif
