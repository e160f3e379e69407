-module(witness_cli_progress).
-moduledoc """
Shows the progress of an operation on standard error.

On a terminal one line is overwritten. Elsewhere (a file, a pipe, a build server) each text is a line that stays, so few are
written: none in the first five seconds, then one after 5, 15, 35 and 75 s, and one a minute from there on. An operation that
takes less than five seconds prints nothing there.
""".

-export([new/0, new/1]).

-export_type([progress/0, options/0]).

-doc "Any process calls this function with its progress, as often as there is some.".
-type progress() :: fun((unicode:chardata()) -> ok).

-doc "Whether the output is a terminal, the function that prints a text, and the time in milliseconds.".
-type options() :: #{terminal := boolean(), note := fun((unicode:chardata()) -> term()), clock := fun(() -> integer())}.

-define(FIRST_MS, 5_000).
-define(MAX_PAUSE_MS, 60_000).

-doc "For an operation that starts now.".
-spec new() -> progress().
new() ->
    new(#{terminal => witness_cli_io:terminal(stderr), note => fun witness_cli_io:note/1,
          clock => fun() -> erlang:monotonic_time(millisecond) end}).

-doc "The same, with the given environment.".
-spec new(options()) -> progress().
new(#{terminal := true, note := Note}) ->
    fun(Text) ->
        _ = Note([$\r, Text, ~"\e[K"]),
        ok
    end;
new(#{terminal := false, note := Note, clock := Clock}) ->
    Begin = Clock(),
    %% When the next line is due, in milliseconds since the start.
    Due = atomics:new(1, []),
    ok = atomics:put(Due, 1, ?FIRST_MS),
    fun(Text) ->
        Now = Clock() - Begin,
        At = atomics:get(Due, 1),
        %% If several processes call this, one of them prints. After a pause, missed lines are not printed.
        Now >= At andalso atomics:compare_exchange(Due, 1, At, Now + pause(Now)) =:= ok
            andalso Note([integer_to_binary(Now div 1000), ~" s: ", Text, $\n]),
        ok
    end.

%% About twice as long as the last one.
pause(Now) -> min(Now + ?FIRST_MS, ?MAX_PAUSE_MS).
