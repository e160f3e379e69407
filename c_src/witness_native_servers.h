/*
 * Servers: processes that ran before, and answer calls of the processes of a run. What a server spawns while it handles a call
 * of a process of the run belongs to the run: the server then acts `for_run`. What it spawns at any other time is a server, too.
 * A process that a supervisor restarts belongs to the run if the one before did.
 *
 * Every process of such a run (`servers` of the run) is in the table of tracees, so a process that is not there is none of it.
 *
 * A server is a `gen_server`. It handles a call until it handles the next message. That it begins to handle a message is reported
 * by a call inside `gen_server`, in its own process and before that call takes effect. So nothing comes between the message and
 * what is spawned for it.
 */
#ifndef WITNESS_NATIVE_SERVERS_H
#define WITNESS_NATIVE_SERVERS_H

#include "witness_native_run.h"

/* What the parent of a new process is. A stranger is a process that the run knows nothing of. */
typedef enum { WN_MEMBER, WN_SERVER, WN_STRANGER } wn_standing;

/*
 * Adds a server, or changes one. `always`: everything that it spawns from now on belongs to the run. False: the process is of
 * the run, or there is no memory.
 */
bool wn_servers_add(wn_run *run, uintptr_t process, bool always);

/* Whether the process is one of the run. */
bool wn_servers_is_member(wn_run *run, uintptr_t process);

/* What the parent is for its new child; the slot is that of the parent, and is locked. `tracee`: NULL if it is not in the table. */
wn_standing wn_servers_standing(const wn_run *run, wn_tracee *tracee, uintptr_t child);

/* The process begins to handle a message: `{Module, Function, Arguments}`, with the message at this position of the arguments. */
void wn_servers_handles(ErlNifEnv *env, wn_run *run, ERL_NIF_TERM process, ERL_NIF_TERM mfa, unsigned position);

#endif
