/*
 * Terms in the external term format. Most that are recorded are small, and made of atoms, integers, tuples, lists and
 * binaries. These are written here, on the stack, in a fraction of the time that the VM takes for a binary of its own. The
 * VM writes all others. Either way it is the VM's own format, byte by byte.
 */
#ifndef WITNESS_RECORD_TERMS_H
#define WITNESS_RECORD_TERMS_H

#include "witness_record_stream.h"

#include <erl_nif.h>

/* How small integers look is internal to the VM, so `load` checks it (wr_terms_are_known). */
#define WR_SMALL_TAG 15u
#define WR_IS_SMALL(term) (((term) & 15u) == WR_SMALL_TAG)
#define WR_SMALL(term) ((int64_t)(intptr_t)(term) >> 4)

bool wr_terms_are_known(ErlNifEnv *env);

#define WR_EXTERNAL_BYTES 320u

typedef struct {
    const uint8_t *bytes;
    size_t size;
    bool is_binary;
    ErlNifBinary binary;
    uint8_t buffer[WR_EXTERNAL_BYTES];
} wr_external;

/* False: there is no memory, and the recording has ended. Otherwise it must be released. */
bool wr_external_of(wr_output *output, ErlNifEnv *env, ERL_NIF_TERM term, wr_external *external);
static inline void wr_external_release(wr_external *external)
{
    if (external->is_binary)
        enif_release_binary(&external->binary);
}

#endif
