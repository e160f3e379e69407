/* Where memory for events comes from: the C library's, until the VM's is set, which counts it. */
#ifndef WITNESS_NATIVE_MEMORY_H
#define WITNESS_NATIVE_MEMORY_H

#include <stddef.h>

extern void *(*wn_alloc)(size_t bytes);
extern void (*wn_free)(void *memory);

#endif
