#include "witness_record_traced.h"

#include "witness_record_atoms.h"
#include "witness_record_terms.h"

/* Set while no process is traced. */
static bool with_contents, with_hash;
static ERL_NIF_TERM node;

void wr_traced_options(bool contents, bool hash, ERL_NIF_TERM own)
{
    node = own;
    with_contents = contents;
    with_hash = hash;
}

/* The table knows a process by the term of its local pid. */
static wr_process *tracee_of(wr_recorder *recorder, ERL_NIF_TERM tracee)
{
    wr_process *process = wr_is_open(&recorder->output) ? wr_find(recorder, tracee) : NULL;
    return process && process->id ? process : NULL;
}

/* Messages of the VM about a process are always recorded themselves: their sender is that process, which sent nothing. */
static bool is_of_the_vm(ErlNifEnv *env, ERL_NIF_TERM message)
{
    const ERL_NIF_TERM *elements;
    int size;
    if (!enif_is_tuple(env, message) || !enif_get_tuple(env, message, &size, &elements))
        return false;
    switch (size) {
    case 3:
        return elements[0] == am_exit_message;
    case 4:
        return elements[0] == am_spawn_reply ||
               (elements[2] == am_ok && enif_is_ref(env, elements[1]) && enif_is_pid(env, elements[3]));
    case 5:
        return elements[0] == am_down_message;
    default:
        return false;
    }
}

/*
 * 0: it is not recorded, or has ended, so that its id is not known. Most messages have the same sender as the one before.
 * That is checked without a lock, since the memory of processes is not freed (witness_record_table.h).
 */
static uint32_t sender_of(wr_recorder *recorder, const wr_process *process, ErlNifEnv *env, ERL_NIF_TERM from)
{
    ErlNifPid pid;
    if (!enif_get_local_pid(env, from, &pid))
        return 0;
    if (process->last && wr_own_process(recorder, process->last, pid.pid))
        return process->last;
    return wr_identify(recorder, pid.pid);
}

void wr_traced_receive(wr_recorder *recorder, ErlNifEnv *env, ERL_NIF_TERM tracee, ERL_NIF_TERM message, ERL_NIF_TERM options)
{
    wr_output *output = &recorder->output;
    wr_process *process = tracee_of(recorder, tracee);
    ERL_NIF_TERM from = am_undefined;
    wr_external term;
    if (!process)
        return;
    /* Without it the sender is not known, and the message itself is recorded. */
    (void)enif_get_map_value(env, options, am_match_spec_result, &from);
    if (from == am_expired) {
        (void)wr_step(output, process, WR_TIMEOUT);
        return;
    }
    uint32_t sender = is_of_the_vm(env, message) ? 0 : sender_of(recorder, process, env, from);
    if (sender) {
        (void)wr_from(output, process, sender);
        if (with_hash)
            (void)wr_hash(output, process, wr_hash_of(env, message));
        if (!with_contents)
            return;
    }
    if (!wr_external_of(output, env, message, &term))
        return;
    if (sender)
        (void)wr_marked(output, process, WR_CONTENTS, term.bytes, term.size);
    else
        (void)wr_content(output, process, term.bytes, term.size);
    wr_external_release(&term);
}

/* Finds the process that has the name. A name with a node counts if that was this node when the options were set. */
static bool is_named(ErlNifEnv *env, ERL_NIF_TERM to, ErlNifPid *found)
{
    const ERL_NIF_TERM *elements;
    int size;
    if (enif_is_tuple(env, to) && enif_get_tuple(env, to, &size, &elements) && size == 2 && elements[1] == node)
        to = elements[0];
    return enif_is_atom(env, to) && enif_whereis_pid(env, to, found);
}

void wr_traced_send(wr_recorder *recorder, ErlNifEnv *env, ERL_NIF_TERM tracee, ERL_NIF_TERM message, ERL_NIF_TERM options)
{
    wr_output *output = &recorder->output;
    wr_process *process = tracee_of(recorder, tracee);
    ERL_NIF_TERM to = am_undefined;
    ErlNifPid found;
    wr_external term;
    if (!process)
        return;
    /* The VM always gives the receiver. */
    (void)enif_get_map_value(env, options, am_extra, &to);
    if (!wr_external_of(output, env, enif_make_tuple2(env, to, message), &term))
        return;
    if (is_named(env, to, &found))
        (void)wr_named(output, process, wr_identify(recorder, found.pid));
    (void)wr_marked(output, process, WR_SENT, term.bytes, term.size);
    wr_external_release(&term);
}
