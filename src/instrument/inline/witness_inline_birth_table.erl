-module(witness_inline_birth_table).
-moduledoc """
Notes of processes in which inline monitors have started recently.

A message to the host for each birth and each verdict would cost a short-lived process more than its monitors do. So a process
leaves a note when it starts (`born/4`). If the verdict of its only monitor need not be shown individually, the process adds
it to the note (`satisfied/4`). The host checks the notes periodically. It counts the complete ones. If a note is still open at
the next check, the host announces and monitors the process, as it does for each process that sends a report.

A note is one row of a public table, and each step is one operation of the table. So a process that is killed at any point
has left a note that says what is known of it: no birth, a birth without an end, or both.

If the host dies, the run inherits the table, and handles the processes that are in it.
""".

-export([new/1, born/4, satisfied/4, take/2, open/1, open/2, complete/1, all/1, count/1, delete/1]).
-export_type([notes/0, note/0, life/0, found/0]).

-opaque notes() :: ets:table().

-doc "The number of the monitor that has said `yes`, whether that was vacuous, and the actions that it has taken.".
-type found() :: {N :: pos_integer(), Vacuous :: boolean(), Covered :: non_neg_integer()}.

-doc "The parent of the process, and where it leaves what the host needs after its death (`m:witness_inline_kept`).".
-type life() :: {Parent :: pid() | undefined, witness_inline_kept:cell()}.

-type note() :: {pid(), witness_event:signature(), [witness_inline_monitors:entry(), ...], none | found(), life()}.

-doc "A table of the calling process. If that dies, `Heir` gets the table with `{'ETS-TRANSFER', Table, Host, notes}`.".
-spec new(Heir :: pid()) -> notes().
new(Heir) ->
    ets:new(?MODULE, [public, {write_concurrency, true}, {decentralized_counters, true}, {heir, Heir, notes}]).

%% These two are called in the process that the note describes. Without a host there is no table.

-doc "These monitors start. `false`: the process has a note already; `gone`: the table is gone, and so is the host.".
-spec born(witness_event:signature(), [witness_inline_monitors:entry(), ...], life(), notes()) -> boolean() | gone.
born(Signature, Entries, Life, Notes) ->
    try ets:insert_new(Notes, {self(), Signature, Entries, none, Life})
    catch error:badarg -> gone
    end.

-doc "The only monitor is satisfied. `false`: the note was taken, and the process has to send the verdict to the host.".
-spec satisfied(N :: pos_integer(), Vacuous :: boolean(), Covered :: non_neg_integer(), notes()) -> boolean().
satisfied(N, Vacuous, Covered, Notes) ->
    try ets:update_element(Notes, self(), {4, {N, Vacuous, Covered}})
    catch error:badarg -> false
    end.

-doc "Removes a note and returns it.".
-spec take(pid(), notes()) -> note() | none.
take(P, Notes) ->
    case ets:take(Notes, P) of
        [Note] -> Note;
        [] -> none
    end.

-doc "The processes with notes that do not say that their monitors have ended.".
-spec open(notes()) -> [pid()].
open(Notes) -> ets:select(Notes, [{{'$1', '_', '_', none, '_'}, [], ['$1']}]).

-doc "The same of one process.".
-spec open(pid(), notes()) -> [pid()].
open(P, Notes) -> ets:select(Notes, [{{P, '_', '_', none, '_'}, [], [P]}]).

-doc "The complete notes, without their signatures; they stay in the table.".
-spec complete(notes()) -> [{pid(), [witness_inline_monitors:entry(), ...], found()}].
complete(Notes) -> ets:select(Notes, [{{'$1', '_', '$2', '$3', '_'}, [{'=/=', '$3', none}], [{{'$1', '$2', '$3'}}]}]).

-spec all(notes()) -> [note()].
all(Notes) -> ets:tab2list(Notes).

-doc "How many monitors have started and not ended.".
-spec count(notes()) -> non_neg_integer().
count(Notes) ->
    try length(lists:append(ets:select(Notes, [{{'_', '_', '$1', none, '_'}, [], ['$1']}])))
    catch error:badarg -> 0
    end.

-doc "Deletes the table, so that the heir does not get it.".
-spec delete(notes()) -> ok.
delete(Notes) ->
    true = ets:delete(Notes),
    ok.
