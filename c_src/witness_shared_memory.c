#include "witness_shared_memory.h"

#include <stdlib.h>

void *(*ws_alloc)(size_t bytes) = malloc;
void (*ws_free)(void *memory) = free;
