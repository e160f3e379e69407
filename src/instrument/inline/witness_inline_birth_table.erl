-module(witness_inline_birth_table).
-moduledoc """
Notes of processes in which inline monitors have started recently.

A message to the coordinator for each birth and each verdict would cost a short-lived process more than its monitors do. So a
process leaves a note when it starts (`insert/4`). If the verdict of its only monitor need not be shown individually, the process
adds it to the note (`put_verdict/4`). The coordinator checks the notes periodically. It counts the complete ones. If a note is
still open at the next check, the coordinator announces and monitors the process, as it does for each process that sends a report.

A note is one row of a public table, and each step is one operation of the table. So a process that is killed at any point
has left a note that says what is known of it: no birth, a birth without an end, or both.

If the coordinator dies, the run inherits the table, and handles the processes that are in it.
""".

-export([new/1, insert/4, put_verdict/4, take/2, open_processes/1, open_processes/2, complete_notes/1, all/1, count/1, delete/1]).
-export_type([table/0, note/0, life/0, found/0]).

-opaque table() :: ets:table().

-doc "The number of the monitor that has said `yes`, whether that was vacuous, and the actions that it has taken.".
-type found() :: {N :: pos_integer(), Vacuous :: boolean(), Covered :: non_neg_integer()}.

-doc "The parent of the process, and where it leaves what the coordinator needs after its death (`m:witness_inline_kept`).".
-type life() :: {Parent :: pid() | undefined, witness_inline_kept:cell()}.

-type note() :: {pid(), witness_event:signature(), [witness_inline_monitors:entry(), ...], none | found(), life()}.

-doc "A table of the calling process. If that dies, `Heir` gets the table with `{'ETS-TRANSFER', Table, Coordinator, notes}`.".
-spec new(Heir :: pid()) -> table().
new(Heir) ->
    ets:new(?MODULE, [public, {write_concurrency, true}, {decentralized_counters, true}, {heir, Heir, notes}]).

%% These two are called in the process that the note describes. Without a coordinator there is no table.

-doc "These monitors start. `false`: the process has a note already; `gone`: the table is gone, and so is the coordinator.".
-spec insert(witness_event:signature(), [witness_inline_monitors:entry(), ...], life(), table()) -> boolean() | gone.
insert(Signature, Entries, Life, Table) ->
    try ets:insert_new(Table, {self(), Signature, Entries, none, Life})
    catch error:badarg -> gone
    end.

-doc "The only monitor is satisfied. `false`: the note was taken, and the process has to send the verdict to the coordinator.".
-spec put_verdict(N :: pos_integer(), Vacuous :: boolean(), Covered :: non_neg_integer(), table()) -> boolean().
put_verdict(N, Vacuous, Covered, Table) ->
    try ets:update_element(Table, self(), {4, {N, Vacuous, Covered}})
    catch error:badarg -> false
    end.

-doc "Removes a note and returns it.".
-spec take(pid(), table()) -> note() | none.
take(P, Table) ->
    case ets:take(Table, P) of
        [Note] -> Note;
        [] -> none
    end.

-doc "The processes with notes that do not say that their monitors have ended.".
-spec open_processes(table()) -> [pid()].
open_processes(Table) -> ets:select(Table, [{{'$1', '_', '_', none, '_'}, [], ['$1']}]).

-doc "The same of one process.".
-spec open_processes(pid(), table()) -> [pid()].
open_processes(P, Table) -> ets:select(Table, [{{P, '_', '_', none, '_'}, [], [P]}]).

-doc "The complete notes, without their signatures; they stay in the table.".
-spec complete_notes(table()) -> [{pid(), [witness_inline_monitors:entry(), ...], found()}].
complete_notes(Table) -> ets:select(Table, [{{'$1', '_', '$2', '$3', '_'}, [{'=/=', '$3', none}], [{{'$1', '$2', '$3'}}]}]).

-spec all(table()) -> [note()].
all(Table) -> ets:tab2list(Table).

-doc "How many monitors have started and not ended.".
-spec count(table()) -> non_neg_integer().
count(Table) ->
    try length(lists:append(ets:select(Table, [{{'_', '_', '$1', none, '_'}, [], ['$1']}])))
    catch error:badarg -> 0
    end.

-doc "Deletes the table, so that the heir does not get it.".
-spec delete(table()) -> ok.
delete(Table) ->
    true = ets:delete(Table),
    ok.
