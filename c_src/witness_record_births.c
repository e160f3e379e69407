#include "witness_record_births.h"

#include "witness_record_atoms.h"
#include "witness_record_terms.h"

/*
 * If a process was spawned with larger terms, only the function and the number of arguments are recorded. A replay takes the
 * arguments from the parent. If the parent is not recorded, they are nowhere else, so they are kept whole.
 */
#define MOST_SPAWNED 4096u

/* If a process begins with a recorded call, it begins in witness_record_runtime:first/3, with that call as arguments. */
static ERL_NIF_TERM first_call(ErlNifEnv *env, ERL_NIF_TERM mfa)
{
    const ERL_NIF_TERM *elements;
    ERL_NIF_TERM part[3], rest;
    int size;
    if (!enif_get_tuple(env, mfa, &size, &elements) || size != 3 || elements[0] != am_witness_record_runtime ||
        elements[1] != am_first)
        return mfa;
    rest = elements[2];
    for (int i = 0; i < 3; i++)
        if (!enif_get_list_cell(env, rest, &part[i], &rest))
            return mfa;
    return enif_make_tuple3(env, part[0], part[1], part[2]);
}

/* {Pid, {Module, Function, Arguments | Arity}}. The external form of a part begins with its version, which is left out. */
static void born(wr_recorder *recorder, ErlNifEnv *env, ERL_NIF_TERM pid, ERL_NIF_TERM parent, ERL_NIF_TERM mfa)
{
    static const uint8_t pair[] = {131, 104, 2}, triple[] = {104, 3};
    wr_output *output = &recorder->output;
    wr_external child, what, module, function;
    const ERL_NIF_TERM *elements;
    int size;
    unsigned arity;
    module.is_binary = function.is_binary = false;
    if (!wr_external_of(output, env, pid, &child))
        return;
    if (!wr_external_of(output, env, mfa, &what)) {
        wr_external_release(&child);
        return;
    }
    wr_piece pieces[6] = {{pair, sizeof pair}, {child.bytes + 1, child.size - 1}, {what.bytes + 1, what.size - 1}};
    uint8_t number[5] = {98};
    unsigned count = 3;
    bool shortened = what.size > MOST_SPAWNED && wr_find(recorder, parent)->id != 0 && enif_get_tuple(env, mfa, &size, &elements) &&
                     size == 3 && enif_get_list_length(env, elements[2], &arity) &&
                     wr_external_of(output, env, elements[0], &module) && wr_external_of(output, env, elements[1], &function);
    if (shortened) {
        for (int i = 0; i < 4; i++)
            number[1 + i] = (uint8_t)(arity >> (24 - 8 * i));
        pieces[2] = (wr_piece){triple, sizeof triple};
        pieces[3] = (wr_piece){module.bytes + 1, module.size - 1};
        pieces[4] = (wr_piece){function.bytes + 1, function.size - 1};
        pieces[5] = (wr_piece){number, sizeof number};
        count = 6;
    }
    wr_born(recorder, parent, pid, pieces, count);
    wr_external_release(&child);
    wr_external_release(&what);
    wr_external_release(&module);
    wr_external_release(&function);
}

/* The VM always gives what a process was spawned with; without it, that is recorded as unknown. */
void wr_births_spawned(wr_recorder *recorder, ErlNifEnv *env, ERL_NIF_TERM pid, ERL_NIF_TERM parent, ERL_NIF_TERM options)
{
    ERL_NIF_TERM mfa = am_undefined;
    if (!wr_expects(recorder, parent, pid))
        return;
    (void)enif_get_map_value(env, options, am_extra, &mfa);
    born(recorder, env, pid, parent, first_call(env, mfa));
}

void wr_births_ended(wr_recorder *recorder, ErlNifEnv *env, ERL_NIF_TERM pid, ERL_NIF_TERM reason)
{
    wr_process *process = wr_remove(recorder, pid);
    wr_external term;
    if (!process)
        return;
    if (process->id && wr_is_open(&recorder->output) && wr_external_of(&recorder->output, env, reason, &term)) {
        wr_end_process(recorder, process, term.bytes, term.size);
        wr_external_release(&term);
    } else {
        wr_end_process(recorder, process, NULL, 0);
    }
}
