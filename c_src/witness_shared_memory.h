/*
 * Where memory of the two libraries comes from: the C library, until `load` sets the functions of the VM, which counts it. So
 * tests without a VM use the same code. Memory is freed by the function that belongs to the one that allocated it.
 */
#ifndef WITNESS_SHARED_MEMORY_H
#define WITNESS_SHARED_MEMORY_H

#include <stddef.h>

/* NULL: there is no memory. */
extern void *(*ws_alloc)(size_t bytes);
extern void (*ws_free)(void *memory);

#endif
