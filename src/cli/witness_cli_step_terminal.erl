-module(witness_cli_step_terminal).
-moduledoc """
Lines that somebody types on a terminal, with what the shell of Erlang has for that: editing, a history, and completion.

The shell gives each of its jobs a process of its own to read from. Here that process does nothing but read when it is asked, since
whoever steps has files and ports that belong to one process.
""".

-export([open/1, read/2]).
-export([start/2]).

-doc "Takes the terminal over, if there is one. `Complete` says what completes a line, from what stands before the cursor.".
-spec open(fun((binary()) -> {Typed :: binary(), [binary()]})) -> {ok, pid()} | none.
open(Complete) ->
    %% The shell would say which Erlang it is.
    ok = application:set_env(stdlib, shell_slogan, ""),
    case is_terminal(io:getopts(user)) andalso shell:start_interactive({?MODULE, start, [self(), Complete]}) of
        ok -> receive {?MODULE, Reader} -> {ok, Reader} after 5_000 -> none end;
        _ -> none
    end.

is_terminal(Options) when is_list(Options) -> lists:all(fun(Name) -> proplists:get_value(Name, Options, false) =:= true end, [stdin, stdout]);
is_terminal(_) -> false.

-doc false.
-spec start(pid(), fun((binary()) -> {binary(), [binary()]})) -> pid().
start(Owner, Complete) ->
    spawn_link(fun() ->
        ok = io:setopts([{expand_fun, fun(Before) -> expanded(Complete, Before) end}, binary, {encoding, unicode}]),
        %% Before OTP 28 there is no such option, and no history of such lines.
        _ = io:setopts([{line_history, true}]),
        Owner ! {?MODULE, self()},
        loop(Owner)
    end).

loop(Owner) ->
    receive
        {read, Prompt} ->
            Owner ! {?MODULE, io:get_line(Prompt)},
            loop(Owner)
    end.

%% The shell gives what stands before the cursor backwards.
expanded(Complete, Before) ->
    {Typed, Candidates} = Complete(unicode:characters_to_binary(lists:reverse(Before))),
    case Candidates of
        [] -> {no, "", []};
        _ ->
            Common = binary:longest_common_prefix(Candidates),
            Rest = binary:part(hd(Candidates), byte_size(Typed), Common - byte_size(Typed)),
            Blank = case Candidates of [_] -> " "; _ -> "" end,
            {yes, unicode:characters_to_list(Rest) ++ Blank,
             case Candidates of [_] -> []; _ -> [unicode:characters_to_list(Candidate) || Candidate <- Candidates] end}
    end.

-doc "The next line.".
-spec read(pid(), unicode:chardata()) -> unicode:chardata() | eof.
read(Reader, Prompt) ->
    Monitor = monitor(process, Reader),
    Reader ! {read, Prompt},
    receive
        {?MODULE, Line} ->
            true = demonitor(Monitor, [flush]),
            case Line of
                {error, _} -> eof;
                _ -> Line
            end;
        {'DOWN', Monitor, process, Reader, _} -> eof
    end.
