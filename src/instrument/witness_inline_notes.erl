-module(witness_inline_notes).
-moduledoc """
Notes of processes that inline monitors were started in a short while ago.

To tell the host of each birth and each verdict by a message would cost a short-lived process more than its monitors do. So a
process leaves a note at its birth (`born/4`), and adds what has become of its only monitor if that is nothing that somebody
has to see by itself (`satisfied/4`). The host looks now and then: what is complete it counts, and who is still there at the
next look it announces and monitors, as everybody was that has something to tell.

A note is one row of a public table, and each step is one operation of the table. So a process that is killed at any place
has left a note that says what is known of it: no birth, a birth without an end, or both.

If the host dies, the table is the run's, which answers for those that are in it.
""".

-export([new/1, born/4, satisfied/4, take/2, open/1, open/2, complete/1, all/1, count/1, delete/1]).
-export_type([notes/0, note/0, life/0, found/0]).

-opaque notes() :: ets:table().

-doc "The number of the monitor that has said `yes`, whether that was vacuous, and the actions that it has taken.".
-type found() :: {N :: pos_integer(), Vacuous :: boolean(), Covered :: non_neg_integer()}.

-doc "The parent of the process, and where it leaves what is to be known when it is dead (`m:witness_inline_kept`).".
-type life() :: {Parent :: pid() | undefined, witness_inline_kept:cell()}.

-type note() :: {pid(), witness_event:signature(), [witness_inline_monitors:entry(), ...], none | found(), life()}.

-doc "Of the calling process; if that dies, `Heir` gets them with `{'ETS-TRANSFER', Table, Host, notes}`.".
-spec new(Heir :: pid()) -> notes().
new(Heir) ->
    ets:new(?MODULE, [public, {write_concurrency, true}, {decentralized_counters, true}, {heir, Heir, notes}]).

%% These two are called in the process that the note is of. Without a host there is no table.

-doc "These monitors begin. `false`: the process has a note already; `gone`: nobody wants it any more.".
-spec born(witness_event:signature(), [witness_inline_monitors:entry(), ...], life(), notes()) -> boolean() | gone.
born(Signature, Entries, Life, Notes) ->
    try ets:insert_new(Notes, {self(), Signature, Entries, none, Life})
    catch error:badarg -> gone
    end.

-doc "The only monitor is satisfied. `false`: the note was taken, and the host has to be told.".
-spec satisfied(N :: pos_integer(), Vacuous :: boolean(), Covered :: non_neg_integer(), notes()) -> boolean().
satisfied(N, Vacuous, Covered, Notes) ->
    try ets:update_element(Notes, self(), {4, {N, Vacuous, Covered}})
    catch error:badarg -> false
    end.

-doc "Takes a note away.".
-spec take(pid(), notes()) -> note() | none.
take(P, Notes) ->
    case ets:take(Notes, P) of
        [Note] -> Note;
        [] -> none
    end.

-doc "Whose monitors have not ended, as far as they have said.".
-spec open(notes()) -> [pid()].
open(Notes) -> ets:select(Notes, [{{'$1', '_', '_', none, '_'}, [], ['$1']}]).

-doc "The same of one process.".
-spec open(pid(), notes()) -> [pid()].
open(P, Notes) -> ets:select(Notes, [{{P, '_', '_', none, '_'}, [], [P]}]).

-doc "Those that are complete, without their signatures; they stay.".
-spec complete(notes()) -> [{pid(), [witness_inline_monitors:entry(), ...], found()}].
complete(Notes) -> ets:select(Notes, [{{'$1', '_', '$2', '$3', '_'}, [{'=/=', '$3', none}], [{{'$1', '$2', '$3'}}]}]).

-spec all(notes()) -> [note()].
all(Notes) -> ets:tab2list(Notes).

-doc "How many monitors have begun and not ended.".
-spec count(notes()) -> non_neg_integer().
count(Notes) ->
    try length(lists:append(ets:select(Notes, [{{'_', '_', '$1', none, '_'}, [], ['$1']}])))
    catch error:badarg -> 0
    end.

-doc "Afterwards nobody gets them.".
-spec delete(notes()) -> ok.
delete(Notes) ->
    true = ets:delete(Notes),
    ok.
