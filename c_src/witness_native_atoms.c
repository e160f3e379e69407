#include "witness_native_atoms.h"

#define WN_DEFINE(name) ERL_NIF_TERM am_##name;
WN_ATOMS(WN_DEFINE)
#undef WN_DEFINE
ERL_NIF_TERM am_agent, am_dynamic_supervisor, am_gen_call, am_task;

void wn_atoms_make(ErlNifEnv *env)
{
#define WN_MAKE(name) am_##name = enif_make_atom(env, #name);
    WN_ATOMS(WN_MAKE)
#undef WN_MAKE
    am_agent = enif_make_atom(env, "Elixir.Agent.Server");
    am_dynamic_supervisor = enif_make_atom(env, "Elixir.DynamicSupervisor");
    am_gen_call = enif_make_atom(env, "$gen_call");
    am_task = enif_make_atom(env, "Elixir.Task.Supervised");
}
