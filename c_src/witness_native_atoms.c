#include "witness_native_atoms.h"

#define WN_DEFINE(name) ERL_NIF_TERM am_##name;
WN_ATOMS(WN_DEFINE)
#undef WN_DEFINE
ERL_NIF_TERM am_any, am_gen_call;

void wn_atoms_make(ErlNifEnv *env)
{
#define WN_MAKE(name) am_##name = enif_make_atom(env, #name);
    WN_ATOMS(WN_MAKE)
#undef WN_MAKE
    am_any = enif_make_atom(env, "_");
    am_gen_call = enif_make_atom(env, "$gen_call");
}
