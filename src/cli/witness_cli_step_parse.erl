-module(witness_cli_step_parse).
-moduledoc """
The commands of `witness replay --step`: their syntax, their meaning, completion and help. Pure.
""".

-export([parse/1, commands/0, help/1, complete/2]).

-export_type([command/0, kind/0, where/0, direction/0]).

-doc "The kind of a step.".
-type kind() :: any | send | take | spawn | call | timeout | exit.

-type direction() :: forward | back.

-doc "A destination: a step, an entry of a process, a function, a line of a file.".
-type where() :: {step, non_neg_integer()} | last | {place, Process :: binary(), Entry :: non_neg_integer()}
               | {function, binary()} | {line, File :: binary(), pos_integer()}.

-doc "A command. A process is the text that was typed.".
-type command() :: nothing | quit | where | breaks
                 | {help, all | binary()} | {list, pos_integer()} | {go, direction(), pos_integer(), kind(), any | binary()}
                     | {goto, where()}
                 | {verdict, any | violated, direction()} | {continue, direction()} | {processes, living | all}
                 | {mailbox | state | stack | links, binary()}
                 | {sequence, pos_integer() | infinity, text | mermaid} | {why, here | pos_integer(), pos_integer() | infinity}
                 | {calls, {binary(), binary(), arity() | any}, pos_integer() | infinity}
                 | {break, where() | {message, binary()} | {formula, binary()}} | {delete, pos_integer()}.

-define(DEFAULT_LIST, 5).
-define(DEFAULT_SEQUENCE, 20).
-define(DEFAULT_WHY, 20).
-define(DEFAULT_CALLS, 20).

-doc "The names of commands, their usage, and their purpose.".
-spec commands() -> [{Name :: binary(), Usage :: binary(), Help :: binary()}].
commands() ->
    [{~"help", ~"help [COMMAND]", ~"what there is"},
     {~"where", ~"where", ~"the event where you are, with the program's stack"},
     {~"list", ~"list [N]", ~"the N events before and behind it (5)"},
     {~"next", ~"next [N] [KIND] [of PROCESS]",
      ~"N events on (1); of this kind (send, take, spawn, call, timeout, exit), of this process"},
     {~"back", ~"back [N] [KIND] [of PROCESS]", ~"the same backwards"},
     {~"goto", ~"goto N | start | end | PROCESS:ENTRY | M:F/A | FILE:LINE",
      ~"to an event, to an entry of a process, to the next event in a function or at a line"},
     {~"verdict", ~"verdict [violated] [back]",
      ~"to the next verdict, with --spec or --monitor, or to the one before; to the next violation"},
     {~"processes", ~"processes [all]", ~"the processes that live, or all that have so far"},
     {~"mailbox", ~"mailbox PROCESS", ~"what was sent to it and not taken yet"},
     {~"state", ~"state PROCESS",
      ~"its state: of OTP behaviours as sys:get_state shows it, of others the variables at its receive"},
     {~"stack", ~"stack PROCESS", ~"where it was when it did something last"},
     {~"links", ~"links PROCESS", ~"its links, monitors and names"},
     {~"sequence", ~"sequence [N | all] [mermaid]",
      ~"the last N messages that were taken (20), as a chart or in the language of Mermaid"},
     {~"why", ~"why [N] [all]", ~"the chain of causes of this event, or of event N: its last 20 links, or all"},
     {~"calls", ~"calls M:F[/A] [N | all]", ~"the next N calls of a function (20), or all of the run, with arguments and results"},
     {~"break", ~"break M:F/A | FILE:LINE | message PATTERN | formula FILE.hml", ~"a breakpoint, for continue"},
     {~"breaks", ~"breaks", ~"the breakpoints there are"},
     {~"delete", ~"delete N", ~"without this breakpoint"},
     {~"continue", ~"continue [back]", ~"to the next breakpoint, or the one before"},
     {~"quit", ~"quit", ~"ends"}].

-doc "Parses a line that was typed. An error is text for people.".
-spec parse(unicode:chardata()) -> {ok, command()} | {error, unicode:chardata()}.
parse(Line) ->
    case unicode:characters_to_binary(Line) of
        Text when is_binary(Text) ->
            case string:lexemes(Text, " \t\r\n") of
                [] -> {ok, nothing};
                [<<$#, _/binary>> | _] -> {ok, nothing};
                [Typed | Args] -> named(Typed, Args, Text)
            end;
        _ -> {error, ~"the line is not UTF-8"}
    end.

named(~"int", _, _) -> refused();
named(<<"int:", _/binary>>, _, _) -> refused();
named(Typed, Args, Text) ->
    All = [Name || {Name, _, _} <- commands()],
    case lists:member(Typed, All) of
        true -> command(Typed, Args, Text);
        false ->
            case [Name || Name <- All, string:prefix(Name, Typed) =/= nomatch] of
                [Name] -> command(Name, Args, Text);
                [] -> {error, [~"there is no command '", clean(Typed), ~"': help shows those there are"]};
                Several -> {error, [~"'", clean(Typed), ~"' may be ", lists:join(~" or ", Several)]}
            end
    end.

refused() ->
    {error, [~"int, the debugger of Erlang, interprets modules in the place of those that were woven for the replay: what they receive ",
             ~"and hear from calls would not come from the recording. Use break M:F/A or break FILE:LINE"]}.

command(Name, Args, Text) ->
    case parse_command(Name, Args, Text) of
        error ->
            {_, Usage, _} = lists:keyfind(Name, 1, commands()),
            {error, [~"expected: ", Usage]};
        {error, _} = Error -> Error;
        Command -> {ok, Command}
    end.

parse_command(~"help", [], _) -> {help, all};
parse_command(~"help", [Name], _) -> {help, Name};
parse_command(~"where", [], _) -> where;
parse_command(~"list", [], _) -> {list, ?DEFAULT_LIST};
parse_command(~"list", [N], _) -> counted(N, fun(Count) -> {list, Count} end);
parse_command(~"next", Args, _) -> going(forward, Args);
parse_command(~"back", Args, _) -> going(back, Args);
parse_command(~"goto", [Where], _) ->
    case place(Where) of error -> error; Place -> {goto, Place} end;
parse_command(~"verdict", [~"violated" | Args], _) -> directed(Args, fun(Direction) -> {verdict, violated, Direction} end);
parse_command(~"verdict", Args, _) -> directed(Args, fun(Direction) -> {verdict, any, Direction} end);
parse_command(~"continue", Args, _) -> directed(Args, fun(Direction) -> {continue, Direction} end);
parse_command(~"processes", [], _) -> {processes, living};
parse_command(~"processes", [~"all"], _) -> {processes, all};
parse_command(Name, [Process], _) when Name =:= ~"mailbox"; Name =:= ~"state"; Name =:= ~"stack"; Name =:= ~"links" ->
    {binary_to_existing_atom(Name), Process};
parse_command(~"sequence", Args, _) -> sequence(Args, ?DEFAULT_SEQUENCE, text);
parse_command(~"why", Args, _) -> why(Args, here, ?DEFAULT_WHY);
parse_command(~"calls", [Function], _) -> calls(Function, ?DEFAULT_CALLS);
parse_command(~"calls", [Function, ~"all"], _) -> calls(Function, infinity);
parse_command(~"calls", [Function, N], _) -> counted(N, fun(Count) -> calls(Function, Count) end);
parse_command(~"break", [~"message", _ | _], Text) -> {break, {message, rest(~"message", Text)}};
parse_command(~"break", [~"formula", File], _) -> {break, {formula, File}};
parse_command(~"break", [Where], _) ->
    case place(Where) of
        {Kind, _} = Place when Kind =:= function -> {break, Place};
        {line, _, _} = Place -> {break, Place};
        _ -> error
    end;
parse_command(~"breaks", [], _) -> breaks;
parse_command(~"delete", [N], _) -> counted(N, fun(Number) -> {delete, Number} end);
parse_command(~"quit", [], _) -> quit;
parse_command(_, _, _) -> error.

%% The text after the first of these words.
rest(Word, Text) ->
    [_, Rest] = string:split(Text, Word),
    string:trim(Rest).

counted(Text, Meant) ->
    case number(Text) of
        N when is_integer(N), N > 0 -> Meant(N);
        _ -> error
    end.

number(Text) ->
    try binary_to_integer(Text) of
        N when N >= 0 -> N;
        _ -> none
    catch
        error:badarg -> none
    end.

directed([], Meant) -> Meant(forward);
directed([~"back"], Meant) -> Meant(back);
directed(_, _) -> error.

going(Direction, Args) -> going(Args, Direction, 1, any).

going([], Direction, N, Kind) -> {go, Direction, N, Kind, any};
going([~"of", Process], Direction, N, Kind) -> {go, Direction, N, Kind, Process};
going([Arg | Args], Direction, 1, any) ->
    case {number(Arg), kind(Arg)} of
        {N, _} when is_integer(N), N > 0 -> going(Args, Direction, N, any);
        {_, Kind} when Kind =/= none -> going(Args, Direction, 1, Kind);
        _ -> error
    end;
going([Arg | Args], Direction, N, any) ->
    case kind(Arg) of
        none -> error;
        Kind -> going(Args, Direction, N, Kind)
    end;
going(_, _, _, _) -> error.

kind(~"send") -> send;
kind(~"take") -> take;
kind(~"spawn") -> spawn;
kind(~"call") -> call;
kind(~"timeout") -> timeout;
kind(~"exit") -> exit;
kind(_) -> none.

sequence([], N, As) -> {sequence, N, As};
sequence([~"all" | Args], _, As) -> sequence(Args, infinity, As);
sequence([~"mermaid" | Args], N, _) -> sequence(Args, N, mermaid);
sequence([Arg | Args], _, As) -> counted(Arg, fun(N) -> sequence(Args, N, As) end).

why([], Of, N) -> {why, Of, N};
why([~"all" | Args], Of, _) -> why(Args, Of, infinity);
why([Arg | Args], _, N) -> counted(Arg, fun(Of) -> why(Args, Of, N) end).

calls(Text, N) ->
    case witness_step_place:named(Text) of
        none -> error;
        Function -> {calls, Function, N}
    end.

%% A number; a process and one of its entries; a function, with its arity after a slash; a file and a line.
place(~"start") -> {step, 0};
place(~"end") -> last;
place(Text) ->
    case {number(Text), re:run(Text, "^(.*):([0-9]+)$", [{capture, all_but_first, binary}, unicode])} of
        {N, _} when is_integer(N) -> {step, N};
        {none, {match, [Before, Number]}} ->
            case re:run(Before, "^([0-9]+|(#PID)?<[0-9.]+>|[a-z][A-Za-z0-9_@]*)$", [unicode]) of
                {match, _} -> {place, Before, binary_to_integer(Number)};
                nomatch when Number =:= ~"0"; Before =:= ~"" -> error;
                nomatch -> {line, Before, binary_to_integer(Number)}
            end;
        {none, nomatch} ->
            case re:run(Text, "^[^/]+[:.][^/]+/[0-9]+$", [unicode]) of
                {match, _} -> {function, Text};
                nomatch -> error
            end
    end.

-doc "The help for a command, or for all.".
-spec help(all | binary()) -> {ok, [unicode:chardata()]} | {error, unicode:chardata()}.
help(all) ->
    {ok, witness_text:columns([[Usage, Help] || {_, Usage, Help} <- commands()])
         ++ [~"", ~"PROCESS: its pid in the recording, its number, or a name that it has registered. Commands may be shortened."]};
help(Name) ->
    case [[Usage, $\n, ~"    ", Help] || {Own, Usage, Help} <- commands(), string:prefix(Own, Name) =/= nomatch] of
        [] -> {error, [~"there is no command '", clean(Name), ~"': help shows those there are"]};
        Helps -> {ok, Helps}
    end.

-doc "Completions of the last word of a line: names of commands, and of processes after the commands that need one.".
-spec complete(binary(), Processes :: [binary()]) -> {Typed :: binary(), [binary()]}.
complete(Before, Processes) ->
    Words = binary:split(Before, ~" ", [global]),
    Last = lists:last(Words),
    {Last, [Word || Word <- candidates(lists:droplast(Words), Processes), string:prefix(Word, Last) =/= nomatch]}.

candidates([], _) -> [Name || {Name, _, _} <- commands()];
candidates([~"help"], _) -> [Name || {Name, _, _} <- commands()];
candidates([Name], Processes) when Name =:= ~"mailbox"; Name =:= ~"state"; Name =:= ~"stack"; Name =:= ~"links" -> Processes;
candidates([Name | Words], Processes) when Name =:= ~"next"; Name =:= ~"back" ->
    case Words =/= [] andalso lists:last(Words) of
        ~"of" -> Processes;
        _ -> [~"send", ~"take", ~"spawn", ~"call", ~"timeout", ~"exit", ~"of"]
    end;
candidates([~"goto"], _) -> [~"start", ~"end"];
candidates([~"verdict"], _) -> [~"violated", ~"back"];
candidates([~"verdict", ~"violated"], _) -> [~"back"];
candidates([~"continue"], _) -> [~"back"];
candidates([~"break"], _) -> [~"message", ~"formula"];
candidates([~"processes"], _) -> [~"all"];
candidates([~"sequence" | _], _) -> [~"all", ~"mermaid"];
candidates([~"why" | _], _) -> [~"all"];
candidates([~"calls", _], _) -> [~"all"];
candidates(_, _) -> [].

clean(Text) -> witness_text:cut(witness_text:clean(Text), 60).
