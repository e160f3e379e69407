-module(witness_cli_progress).
-moduledoc """
How far something has come, on standard error, for whoever waits.

On a terminal one line is written over again and again. Elsewhere (a file, a pipe, a build server) each text is a line that stays, so
few are written: none in the first five seconds, then one after 5, 15, 35 and 75 s, and one a minute from there on. What is quick says
nothing there.
""".

-export([new/0, new/1]).

-export_type([progress/0, options/0]).

-doc "Is given what was reached, by any process, as often as something was.".
-type progress() :: fun((unicode:chardata()) -> ok).

-doc "Whether it is shown on a terminal, what a text is given to, and the time in milliseconds.".
-type options() :: #{terminal := boolean(), note := fun((unicode:chardata()) -> term()), clock := fun(() -> integer())}.

-define(FIRST_MS, 5_000).
-define(LONGEST_MS, 60_000).

-doc "For what begins now.".
-spec new() -> progress().
new() ->
    new(#{terminal => witness_cli_io:terminal(stderr), note => fun witness_cli_io:note/1,
          clock => fun() -> erlang:monotonic_time(millisecond) end}).

-doc "The same, with the surroundings as they are given.".
-spec new(options()) -> progress().
new(#{terminal := true, note := Note}) ->
    fun(Text) ->
        _ = Note([$\r, Text, ~"\e[K"]),
        ok
    end;
new(#{terminal := false, note := Note, clock := Clock}) ->
    Begin = Clock(),
    %% When the next line is due, counted from the beginning.
    Due = atomics:new(1, []),
    ok = atomics:put(Due, 1, ?FIRST_MS),
    fun(Text) ->
        Now = Clock() - Begin,
        At = atomics:get(Due, 1),
        %% Of several processes one has the line. After a pause nothing is made up for.
        Now >= At andalso atomics:compare_exchange(Due, 1, At, Now + pause(Now)) =:= ok
            andalso Note([integer_to_binary(Now div 1000), ~" s: ", Text, $\n]),
        ok
    end.

%% Twice as long as the last one, about.
pause(Now) -> min(Now + ?FIRST_MS, ?LONGEST_MS).
