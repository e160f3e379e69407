#include "witness_record_atoms.h"

#define WR_DEFINE(name) ERL_NIF_TERM am_##name;
WR_ATOMS(WR_DEFINE)
#undef WR_DEFINE
ERL_NIF_TERM am_down_message, am_exit_message;

void wr_atoms_make(ErlNifEnv *env)
{
#define WR_MAKE(name) am_##name = enif_make_atom(env, #name);
    WR_ATOMS(WR_MAKE)
#undef WR_MAKE
    am_down_message = enif_make_atom(env, "DOWN");
    am_exit_message = enif_make_atom(env, "EXIT");
}
