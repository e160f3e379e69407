-module(witness_log_recording_times).
-moduledoc """
The times of entries of a recording, by their places. Places of each process must be asked for in their order.

*Invariant:* a time belongs to the entry that was asked for. Whatever else is at a place, or was asked for there before, has none. In
memory is a cursor for each process between its first entry that was asked for and its end.
""".

-export([with_times/2, find/3]).

-export_type([times/0, kind/0]).

-doc "What an entry is: a message that was sent, one that was taken, a birth, an end.".
-type kind() :: sent | taken | spawn | exit.

%% at: where each process is, and its last entry; `none': it was asked for.
-record(times, {open :: fun((pos_integer()) -> {ok, witness_log_recording_cursor:cursor() | none} | {error, term()}),
                at = #{} :: #{pos_integer() => {Index :: non_neg_integer(), kind() | other | none,
                                                witness_log_recording_cursor:cursor() | done}}}).

-opaque times() :: none | #times{}.

-doc "Calls the fun, in the same process, with the times of this recording. They are valid until it returns.".
-spec with_times(fun((times()) -> Result), witness_log_recording:recording()) -> Result | {error, witness_log_recording:error()}.
with_times(Fun, R) ->
    case witness_log_recording:has_times(R) of
        true -> witness_log_recording:with_cursors(fun(Open) -> Fun(#times{open = Open}) end, R);
        false -> Fun(none)
    end.

-doc "The time of the entry at this place, in nanoseconds since the recording was opened, if it is of this kind.".
-spec find(witness_log_recording_events:place(), kind(), times()) -> {undefined | non_neg_integer(), times()}.
find(_, _, none) -> {undefined, none};
find({Id, Index}, Kind, #times{open = Open, at = At} = T) ->
    case advance(Index, start(Id, At, Open)) of
        {Index, exit, Cursor} when Kind =:= exit -> {time(Cursor), T#times{at = maps:remove(Id, At)}};
        {Index, Kind, Cursor} -> {time(Cursor), T#times{at = At#{Id => {Index, none, Cursor}}}};
        Reached -> {undefined, T#times{at = At#{Id => Reached}}}
    end.

start(Id, At, Open) ->
    case At of
        #{Id := Reached} -> Reached;
        #{} ->
            case Open(Id) of
                {ok, Cursor} when Cursor =/= none -> {0, none, Cursor};
                _ -> {0, none, done}
            end
    end.

%% What cannot be read has no time. The reader of the replay reports the error.
advance(Index, {Reached, _, Cursor}) when Reached < Index, Cursor =/= done ->
    case witness_log_recording_cursor:next(Cursor) of
        {ok, Entry, Next} -> advance(Index, {Reached + witness_log_recording_cursor:count(Entry), kind(Entry), Next});
        _ -> {Reached, none, done}
    end;
advance(_, Reached) -> Reached.

time(done) -> undefined;
time(Cursor) -> witness_log_recording_cursor:time(Cursor).

kind({sent, _, _}) -> sent;
kind({from, _, 1}) -> taken;
kind({content, _}) -> taken;
kind({spawn, _}) -> spawn;
kind({exit, _}) -> exit;
kind(_) -> other.
