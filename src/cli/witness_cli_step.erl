-module(witness_cli_step).
-moduledoc """
`witness replay --step`: moves through a recorded run, by commands (`m:witness_cli_step_parse`).

Commands come from the terminal, with completion and a history, from `--command`, or from standard input, one per line. Results
go to standard output, errors to standard error.

| Exit code | Meaning |
|---|---|
| 0 | every command was answered |
| 1 | the replay has diverged |
| 2 | a command was wrong, or a recording that cannot be replayed |
| 3 | a command had no answer, such as an event that is not there; or it was interrupted: the progress until then was printed |
""".

-export([run/3]).

-export_type([options/0]).

-doc "Options of the command line: `commands` replace typed ones; `properties` are monitored for verdicts.".
-type options() :: #{commands => [string()], properties := none | map()}.

%% The most processes that can complete a line by name.
-define(MAX_COMPLETIONS, 500).

-record(s, {session :: witness_step:session(),
            replay :: witness_replay:options(),
            properties :: none | map(),
            out :: witness_cli_io:out(),
            look :: witness_text:look(),
            breaks = [] :: [{pos_integer(), Text :: unicode:chardata(), fun((witness_step:step()) -> boolean())}],
            verdicts = unknown :: unknown | [witness_cli_step_verdicts:placed()],
            number = 1 :: pos_integer(),
            code = 0 :: 0..3}).

-doc "Replays, and executes the commands; returns the exit code.".
-spec run(witness_replay:options(), witness_cli_io:out(), options()) -> {ok, 0..3} | {error, witness_replay:error()}.
run(Replay, Out, Options) ->
    case witness_cli_step_watch:run(fun() ->
        open_session(Replay#{on_progress => witness_cli_step_watch:progress()}, Out, Options)
    end) of
        {ok, Result} -> Result;
        interrupted -> {ok, 3}
    end.

open_session(Replay, Out, #{properties := Properties} = Options) ->
    ok = witness_cli_step_watch:busy(~"replays the recording"),
    Opened = witness_step:open(Replay),
    ok = witness_cli_step_watch:idle(),
    case Opened of
        {ok, Session} ->
            S = #s{session = Session, replay = Replay, properties = Properties, out = Out, look = witness_cli_io:look()},
            Begun = print_greeting(witness_step:report(Session), S),
            #s{code = Code} = Ended = run_commands(Options, Begun),
            ok = witness_step:close(Ended#s.session),
            {ok, Code};
        {error, _} = Error -> Error
    end.

print_greeting(#{outcome := Outcome, processes := Processes}, #s{session = Session} = S) ->
    print([[witness_text:count(witness_step:size(Session), ~"event", ~"events"), ~" of ",
            witness_text:count(Processes, ~"process", ~"processes"),
            [~"; the replay has diverged behind the last one" || Outcome =:= diverged]]], S),
    case Outcome of
        diverged -> set_code(1, S);
        identical -> S
    end.

%% If several codes apply, the first of 2, 1, 3 wins.
set_code(Code, #s{code = Before} = S) -> S#s{code = hd([Worst || Worst <- [2, 1, 3], Worst =:= Code orelse Worst =:= Before])}.

run_commands(#{commands := Commands}, S) -> run_all(Commands, S);
run_commands(_, #s{session = Session} = S) ->
    {ok, Last} = witness_step:goto(last, Session),
    Names = lists:append([[witness_cli_step_text:name(Id, Session), integer_to_binary(Id)]
                          || #{id := Id} <- lists:sublist(witness_step:processes(Last), ?MAX_COMPLETIONS)]),
    case witness_cli_step_terminal:open(fun(Before) -> witness_cli_step_parse:complete(Before, Names) end) of
        %% The user has seen the errors, so they do not change the exit code.
        {ok, Reader} -> (read_line(fun(Prompt) -> witness_cli_step_terminal:read(Reader, Prompt) end, "", S))#s{code = S#s.code};
        %% On standard input an empty line is ignored.
        none -> read_line(fun(_) -> read() end, "", S)
    end.

run_all([], S) -> S;
run_all([Command | Commands], S) ->
    case line(Command, S) of
        {stop, S1} -> S1;
        S1 -> run_all(Commands, S1)
    end.

%% On a terminal, which has a prompt, an empty line repeats the previous command.
read_line(Read, Before, #s{session = Session} = S) ->
    Prompt = [~"(", integer_to_binary(witness_step:at(Session)), ~"/", integer_to_binary(witness_step:size(Session)), ~") "],
    case Read(Prompt) of
        Line when is_binary(Line); is_list(Line) ->
            Typed = case string:trim(Line) of Empty when Empty =:= ~""; Empty =:= "" -> Before; _ -> Line end,
            case line(Typed, S) of
                {stop, S1} -> S1;
                S1 -> read_line(Read, Typed, S1)
            end;
        _ -> S
    end.

read() ->
    case io:get_line("") of
        Line when is_binary(Line); is_list(Line) ->
            case string:trim(Line) of Empty when Empty =:= ~""; Empty =:= "" -> "# "; _ -> Line end;
        Other -> Other
    end.

line(Line, S) ->
    case witness_cli_step_parse:parse(Line) of
        {ok, quit} -> {stop, S};
        {ok, Command} ->
            ok = witness_cli_step_watch:busy([witness_text:clean(string:trim(Line)), ~" goes through the run"]),
            Done = run_command(Command, S),
            ok = witness_cli_step_watch:idle(),
            print_answer(Done, S);
        {error, Text} -> wrong(2, Text, S)
    end.

print_answer({ok, Lines, S}, _) ->
    print(Lines, S),
    S;
print_answer({none, Text}, S) -> wrong(3, Text, S);
print_answer({error, Text}, S) -> wrong(2, Text, S).

wrong(Code, Text, S) ->
    witness_cli_io:note([Text, $\n]),
    set_code(Code, S).

print(Lines, #s{out = Out}) -> witness_cli_io:print(Out, [[Line, $\n] || Line <- Lines]).

%% --- commands --------------------------------------------------------------------

run_command(nothing, S) -> {ok, [], S};
run_command({help, What}, S) ->
    case witness_cli_step_parse:help(What) of
        {ok, Lines} -> {ok, Lines, S};
        {error, _} = Error -> Error
    end;
run_command(where, S) -> {ok, where(S), S};
run_command({list, N}, #s{session = Session, look = Look} = S) ->
    {ok, witness_cli_step_text:list(witness_step:at(Session), N, Session, Look), S};
run_command({go, Direction, N, Kind, Of}, S) ->
    with_process(Of, S, fun(Id) -> move(Direction, N, witness_step_place:kind(Kind, Id), S) end);
run_command({goto, Where}, S) -> run_goto(Where, S);
run_command({verdict, _, _}, #s{properties = none}) ->
    {error, ~"nothing is monitored: name a specification with --spec FILE.hml"};
run_command({verdict, _, _} = Command, #s{verdicts = unknown, properties = Properties, replay = Replay, session = Session} = S) ->
    case witness_cli_step_verdicts:find(Properties, Replay, Session) of
        {ok, Verdicts} -> run_command(Command, S#s{verdicts = Verdicts});
        {error, _} = Error -> Error
    end;
run_command({verdict, Which, Direction}, #s{verdicts = Verdicts, session = Session} = S) ->
    At = witness_step:at(Session),
    Wanted = [V || {_, Verdict, _} = V <- Verdicts, Which =:= any orelse Verdict =:= no],
    Sought = case Direction of
        forward -> [V || {N, _, _} = V <- Wanted, N > At];
        back -> lists:reverse([V || {N, _, _} = V <- Wanted, N < At])
    end,
    case Sought of
        [{N, _, _} | _] ->
            {ok, Lines, S1} = go_to(N, S),
            {ok, [Text || {Own, _, Text} <- Wanted, Own =:= N] ++ Lines, S1};
        [] ->
            {none, [~"there is no ", case Which of any -> ~"verdict"; violated -> ~"violation" end,
                    case Direction of forward -> ~" behind"; back -> ~" before" end, ~" this event"]}
    end;
run_command({continue, _}, #s{breaks = []}) -> {error, ~"there is no breakpoint: break makes one"};
run_command({continue, Direction}, #s{breaks = Breaks} = S) ->
    move(Direction, 1, fun(Step) -> lists:any(fun({_, _, Test}) -> Test(Step) end, Breaks) end, S);
run_command({processes, Which}, #s{session = Session, look = Look} = S) ->
    {ok, witness_cli_step_text:processes(Which, Session, Look), S};
run_command({mailbox, Process}, #s{session = Session, look = Look} = S) ->
    with_process(Process, S, fun(Id) -> {ok, witness_cli_step_text:mailbox(Id, Session, Look), S} end);
run_command({state, Process}, #s{session = Session} = S) ->
    with_process(Process, S, fun(Id) ->
        case witness_step:process_state(Id, Session) of
            {{ok, Answer}, Asked} -> {ok, witness_cli_step_text:state(Answer, Id, Session), S#s{session = Asked}};
            {{error, none}, _} -> {none, [witness_cli_step_text:name(Id, Session), ~" does not live here"]};
            {{error, Text}, _} -> {none, [~"its state is not known: ", Text]}
        end
    end);
run_command({links, Process}, #s{session = Session, look = Look} = S) ->
    with_process(Process, S, fun(Id) -> {ok, witness_cli_step_text:links(Id, Session, Look), S} end);
run_command({stack, Process}, #s{session = Session, look = Look} = S) ->
    with_process(Process, S, fun(Id) ->
        case witness_step:latest(witness_step_place:kind(any, Id), Session) of
            {ok, There} -> {ok, witness_cli_step_text:where(There, Look), S};
            {error, none} -> {none, [witness_cli_step_text:name(Id, Session), ~" has done nothing so far"]}
        end
    end);
run_command({sequence, N, As}, #s{session = Session, look = Look} = S) ->
    {ok, witness_cli_step_text:sequence(As, witness_step:messages(N, all, Session), Session, Look), S};
run_command({why, Of, N}, #s{session = Session, look = Look} = S) ->
    case case Of of here -> {ok, Session}; _ -> witness_step:goto(Of, Session) end of
        {ok, There} -> {ok, witness_cli_step_text:chain(witness_step:why(N, There), There, Look), S};
        {error, none} -> {none, no_event(S)}
    end;
run_command({calls, Function, N}, #s{session = Session} = S) ->
    {Answer, Asked} = witness_step:calls(Function, Session),
    case Answer of
        {ok, Calls, Complete} -> print_calls(Function, N, Calls, Complete, S#s{session = Asked});
        {error, Text} -> {error, witness_text:clean(Text)}
    end;
run_command({break, Where}, S) -> add_break(Where, S);
run_command(breaks, #s{breaks = []} = S) -> {ok, [~"there is no breakpoint"], S};
run_command(breaks, #s{breaks = Breaks} = S) ->
    {ok, [[integer_to_binary(N), ~"  ", Text] || {N, Text, _} <- lists:reverse(Breaks)], S};
run_command({delete, N}, #s{breaks = Breaks} = S) ->
    case lists:keytake(N, 1, Breaks) of
        {value, _, Left} -> {ok, [], S#s{breaks = Left}};
        false -> {error, [~"there is no breakpoint ", integer_to_binary(N)]}
    end.

where(#s{session = Session, look = Look}) -> witness_cli_step_text:where(Session, Look).

with_process(any, _, Fun) -> Fun(any);
with_process(Process, #s{session = Session}, Fun) ->
    %% The process may not have started yet at this step.
    {ok, Last} = witness_step:goto(last, Session),
    case {witness_step:find_process(Process, Session), witness_step:find_process(Process, Last)} of
        {{ok, Id}, _} -> Fun(Id);
        {_, {ok, Id}} -> Fun(Id);
        _ -> {error, [~"there is no process '", witness_text:cut(witness_text:clean(Process), 60),
                      ~"': processes shows those there are"]}
    end.

print_calls(Function, _, [], _, _) -> {none, [witness_cli_step_text:function(Function), ~" is not called in this run"]};
print_calls(Function, N, Calls, Complete, #s{session = Session, look = Look} = S) ->
    At = witness_step:at(Session),
    case [Call || #{number := Number} = Call <- Calls, N =:= infinity orelse Number >= At] of
        [] -> {none, [witness_cli_step_text:function(Function), ~" is not called from here on: calls ",
                      witness_cli_step_text:function(Function),
                      ~" all shows ", witness_text:count(length(Calls), ~"call", ~"calls")]};
        Next -> {ok, witness_cli_step_text:calls(Function, Next, N, Complete, Session, Look), S}
    end.

move(_, 0, _, S) -> {ok, where(S), S};
move(Direction, N, Test, #s{session = Session} = S) ->
    Reached = case Direction of forward -> witness_step:next(Test, Session); back -> witness_step:back(Test, Session) end,
    case Reached of
        {ok, There} -> move(Direction, N - 1, Test, S#s{session = There});
        {error, none} ->
            {none, [~"there is no such event ", case Direction of forward -> ~"behind"; back -> ~"before" end, ~" this one"]}
    end.

run_goto({place, Process, Entry}, S) -> with_process(Process, S, fun(Id) -> go_to({Id, Entry}, S) end);
run_goto({step, N}, S) -> go_to(N, S);
run_goto(last, S) -> go_to(last, S);
run_goto(Where, S) ->
    case test(Where) of
        {ok, Test} -> move(forward, 1, Test, S);
        {error, _} = Error -> Error
    end.

go_to(Where, #s{session = Session} = S) ->
    case witness_step:goto(Where, Session) of
        {ok, There} -> {ok, where(S#s{session = There}), S#s{session = There}};
        {error, none} -> {none, no_event(S)}
    end.

no_event(#s{session = Session}) -> [~"there is no such event: the last one is ", integer_to_binary(witness_step:size(Session))].

test({function, Text}) ->
    case witness_step_place:function(Text) of
        {ok, _} = Ok -> Ok;
        {error, unknown} -> {error, [~"no function '", witness_text:cut(witness_text:clean(Text), 100), ~"' is called in this run"]}
    end;
test({line, File, Line}) -> {ok, witness_step_place:line(File, Line)}.

add_break(Where, #s{breaks = Breaks, number = N} = S) ->
    case parse_test(Where, S) of
        {ok, Test} ->
            Text = [integer_to_binary(N), ~"  ", break_text(Where)],
            {ok, [Text], S#s{breaks = [{N, break_text(Where), Test} | Breaks], number = N + 1}};
        {error, _} = Error -> Error
    end.

parse_test({message, Text}, _) ->
    case witness_step_place:message(Text) of
        {ok, _} = Ok -> Ok;
        {error, Why} -> {error, [~"a pattern of Erlang is expected, such as {add, _, 2}: ", Why]}
    end;
parse_test({formula, File}, #s{replay = Replay, session = Session}) ->
    case witness_cli_step_verdicts:find(#{specs => [unicode:characters_to_list(File)], monitors => []}, Replay, Session) of
        {ok, Verdicts} ->
            Steps = #{N => [] || {N, _, _} <- Verdicts},
            {ok, fun(#{number := N}) -> is_map_key(N, Steps) end};
        {error, _} = Error -> Error
    end;
parse_test(Where, _) -> test(Where).

break_text({message, Text}) -> [~"message ", witness_text:clean(Text)];
break_text({formula, File}) -> [~"formula ", witness_text:clean(File)];
break_text({function, Text}) -> witness_text:clean(Text);
break_text({line, File, Line}) -> [witness_text:clean(File), $:, integer_to_binary(Line)].
