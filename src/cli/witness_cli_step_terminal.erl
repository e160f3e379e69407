-module(witness_cli_step_terminal).
-moduledoc """
Reads lines from a terminal, with the editing, history and completion of the Erlang shell.

The shell gives each of its jobs a process of its own to read from. Here that process only reads, on request, since the
stepping process has files and ports that belong to it.
""".

-export([open/1, read/2]).
-export([start/2]).

-doc "Takes over the terminal, if there is one. `Complete` returns completions for the text before the cursor.".
-spec open(fun((binary()) -> {Typed :: binary(), [binary()]})) -> {ok, pid()} | none.
open(Complete) ->
    %% Without a slogan, as the shell would print its Erlang version.
    ok = application:set_env(stdlib, shell_slogan, ""),
    case is_terminal(io:getopts(user)) andalso shell:start_interactive({?MODULE, start, [self(), Complete]}) of
        ok -> receive {?MODULE, Reader} -> {ok, Reader} after 5_000 -> none end;
        _ -> none
    end.

is_terminal(Options) when is_list(Options) ->
    lists:all(fun(Name) -> proplists:get_value(Name, Options, false) =:= true end, [stdin, stdout]);
is_terminal(_) -> false.

-doc false.
-spec start(pid(), fun((binary()) -> {binary(), [binary()]})) -> pid().
start(Owner, Complete) ->
    spawn_link(fun() ->
        ok = io:setopts([{expand_fun, fun(Before) -> expanded(Complete, Before) end}, binary, {encoding, unicode}]),
        %% OTP before 28 does not have this option, and no history of such lines.
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

%% The shell passes the text before the cursor reversed.
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
