-module(witness_search_text).
-moduledoc """
What `witness search` prints for people: what went wrong, where the processes were, and what to do next. Pure.

The explanation of a violation comes between `head/2` and `tail/2`: it is that of a replay.
""".

-export([head/2, tail/2, failures/1, progress/2, step/1, order/1, event/2, syntax/1]).

-export_type([report/0]).

-doc """
The report of a search, or that it was interrupted, with its options: the folder, the seed, the strategies, the specifications. `tool`:
how the user calls the commands of Witness.
""".
-type report() :: #{outcome := interrupted | passed | unmonitored | failed | witness_search_scheduler:outcome(),
                    schedules := non_neg_integer(),
                    unfaithful := [term()], elapsed_ms := non_neg_integer(), dir := file:filename(), seed := integer(),
                    strategies := [atom()], specs := [file:filename()], tool => witness | mix | rebar3, atom() => term()}.

-define(MAX_REASON_CHARS, 2000).
-define(MAX_PROCESSES, 20).
-define(MAX_FRAMES, 10).
-define(MAX_STEP_CHARS, 150).

-doc "The progress, on one line.".
-spec progress(non_neg_integer(), Milliseconds :: non_neg_integer()) -> unicode:chardata().
progress(Schedules, Milliseconds) -> [count(Schedules), ~", ", rate(Schedules, Milliseconds)].

count(Schedules) -> witness_text:count(Schedules, ~"schedule", ~"schedules").

rate(Schedules, Milliseconds) -> [integer_to_binary(Schedules * 1000 div max(1, Milliseconds)), ~" a second"].

%% --- what went wrong -------------------------------------------------------------

-doc "The first lines of a search that has found a run that went wrong; nothing otherwise.".
-spec head(report(), witness_text:look()) -> unicode:chardata().
head(#{outcome := Outcome}, _) when Outcome =:= passed; Outcome =:= unmonitored; Outcome =:= interrupted -> ~"";
head(#{outcome := failed, schedules := Schedules, failures := Failures, omitted := Omitted, elapsed_ms := Elapsed}, Look) ->
    Failed = lists:sum([Count || #{count := Count} <- Failures]) + Omitted,
    lines([[witness_text:style(bad, ~"FAILED", Look), ~" in ", witness_text:count(length(Failures), ~"way", ~"ways"), ~": ",
            integer_to_binary(Failed), ~" of ", count(Schedules), ~" (", witness_text:seconds(Elapsed), $)], ~""]);
head(#{outcome := Outcome, place := {Place, Of}, count := Count} = Failure, Look) ->
    lines([witness_text:style(bad, [~"--- ", integer_to_binary(Place), ~" of ", integer_to_binary(Of), ~", in ", count(Count)], Look), ~""
           | outcome(Outcome, Failure, Look) ++ why(Failure, Look)]);
head(#{outcome := Outcome, schedules := Schedules, elapsed_ms := Elapsed} = Report, Look) ->
    lines([[sentence(Outcome, Look), ~" after ", count(Schedules), ~" (", witness_text:seconds(Elapsed), $)], ~""
           | outcome(Outcome, Report, Look) ++ why(Report, Look)]).

-doc "The reports of several failures, each with its folder and its place among them.".
-spec failures(report()) -> [report()].
failures(#{failures := Failures, dir := Dir} = Report) ->
    Common = (maps:without([failures, omitted, ended], Report))#{unfaithful := []},
    [maps:merge(Common, Failure#{place => {Place, length(Failures)}, dir => filename:join(Dir, integer_to_list(Place))})
     || {Place, Failure} <- lists:enumerate(Failures)];
failures(#{}) -> [].

%% What a violation needs comes after its explanation, which is that of a replay.
why(#{outcome := {violated, _, _}}, _) -> [];
why(Report, Look) ->
    [Line || Rows <- [order_rows(Report)], Rows =/= [], Line <- [~"" | rows(Rows)]]
        ++ [Line || #{explanation := #{steps := [_ | _]} = Explanation} <- [Report],
                    Line <- [~"" | chart(Explanation, Report, Look)]].

sentence(Outcome, Look) ->
    case witness_search_scheduler:is_result(Outcome) of
        true -> witness_text:style(bad, ~"FAILED", Look);
        false -> witness_text:style(doubtful, ~"NO RESULT", Look)
    end.

outcome({violated, _, _}, _, _) -> [];
outcome({crashed, 1, {application_not_started, App, Reason}}, _, Look) ->
    [[witness_text:style(bad, ~"CRASH", Look), ~": the application ", witness_event:format_term(App, 100), ~" does not start: ",
      witness_event:format_term(Reason, ?MAX_REASON_CHARS)]];
outcome({crashed, Id, Reason}, Report, Look) ->
    Syntax = syntax_of(Id, Reason, Report),
    {Why, Stack} = reason(Reason),
    [[witness_text:style(bad, ~"CRASH", Look), ~" of ", process(Id, Report)], [~"  ", told(Id, Report)],
     [~"  ends: ", witness_event:format_reason(case Syntax of elixir -> Reason; erlang -> Why end, ?MAX_REASON_CHARS, Syntax)]
     | frames(Stack, Syntax)];
outcome({unexpected, Id, Result}, #{expect := Expected} = Report, Look) ->
    Syntax = syntax_of(Id, none, Report),
    Term = fun(Value) -> witness_event:format_term(Value, ?MAX_REASON_CHARS, Syntax) end,
    [[witness_text:style(bad, ~"UNEXPECTED", Look), ~" result of ", process(Id, Report)],
     case Result of
         {returned, Value} -> [~"  returned: ", Term(Value)];
         {ended, Reason} -> [~"  has ended, and not returned: ", Term(Reason)]
     end,
     [~"  expected: ", Term(Expected)]];
outcome({deadlock, Ids}, Report, Look) ->
    [[witness_text:style(bad, ~"DEADLOCK", Look), ~": ",
      case lists:member(1, Ids) of true -> ~"the function has not returned"; false -> ~"the applications do not stop" end,
      ~", and nothing can happen any more. There ",
      case Ids of [_] -> ~"is"; _ -> ~"are" end, ~":"] | places(Ids, Report)];
outcome({circle, Ids}, Report, Look) ->
    [[witness_text:style(bad, ~"DEADLOCK", Look), ~": each of these processes waits for an answer of the next, and the last one of the first:"]
     | places(Ids, Report)];
outcome({left, Ids}, Report, Look) ->
    [[witness_text:style(bad, ~"LEFT", Look), ~": the function has returned, and these processes have not ended:"] | places(Ids, Report)];
outcome({not_taken, Ids}, Report, Look) ->
    [[witness_text:style(bad, ~"NOT TAKEN", Look), ~": the function has returned, and these processes never take messages that they have:"]
     | places(Ids, Report)];
outcome({halted, _, {application_controller, Reason}}, _, Look) ->
    [[witness_text:style(bad, ~"HALTED", Look), ~": with this end of an application, the VM ends: ", application_end(Reason)]];
outcome({halted, Id, Status}, Report, Look) ->
    [[witness_text:style(bad, ~"HALTED", Look), ~" by ", process(Id, Report), ~": it ends the VM with status ",
      witness_event:format_term(Status, 100)]];
outcome(steps, #{length := Length} = Report, Look) ->
    [[witness_text:style(bad, ~"NOT ENDED", Look), ~" after ", witness_text:count(Length, ~"step", ~"steps"),
      ~": the program runs for ever, or takes longer (--steps). There are:"] | places(alive(Report), Report)];
outcome({busy, Id, Stack}, Report, _) ->
    [[process(Id, Report), ~" has run for too long without doing anything that can be scheduled: a loop, or a call that takes long."]
     | frames(Stack, syntax_of(Id, {none, Stack}, Report))];
outcome({exceeded, Id, {What, Stack}}, Report, _) ->
    [[case What of
          memory -> ~"the run needs more memory than --memory allows";
          atoms -> ~"the program makes too many atoms, which stay from run to run"
      end, ~", while this process runs: ", process(Id, Report)] | frames(Stack, syntax_of(Id, {none, Stack}, Report))];
outcome({lost, Id, Reason}, Report, _) ->
    [[process(Id, Report), ~" was ended by something that is not controlled: ",
      witness_event:format_reason(Reason, ?MAX_REASON_CHARS, syntax_of(Id, Reason, Report))]];
outcome({refused, Id, {{_, _, _} = Called, Stack}}, Report, _) ->
    Syntax = syntax_of(Id, {none, Stack}, Report),
    [[process(Id, Report), ~" calls ", witness_event:format_function(Called, Syntax),
      ~", whose effects cannot be controlled: run a part of the program that does without"] | frames(Stack, Syntax)];
outcome(Outcome, _, _) -> [witness_event:format_term(Outcome, ?MAX_REASON_CHARS)].

%% The controller has it as text.
application_end(Reason) ->
    case io_lib:printable_unicode_list(Reason) of
        true -> witness_text:clean(Reason);
        false -> witness_event:format_term(Reason, ?MAX_REASON_CHARS)
    end.

told(1, _) -> ~"the function has failed";
told(_, #{crashes := any}) -> ~"its reason is not normal";
told(_, #{crashes := assertions}) -> ~"an assertion has failed";
told(_, _) -> ~"no process handled it".

%% The reason of an end, without the stack, and the stack.
reason({Why, [{Module, Function, _, Location} | _] = Stack} = Reason) when is_atom(Module), is_atom(Function), is_list(Location) ->
    case lists:all(fun(Frame) -> is_tuple(Frame) andalso tuple_size(Frame) =:= 4 end, Stack) of
        true -> {Why, Stack};
        false -> {Reason, []}
    end;
reason(Reason) -> {Reason, []}.

%% The notation of the program: that of the process, or of the modules that the reason names.
syntax_of(Id, Reason, #{processes := Processes}) ->
    case Processes of
        #{Id := #{signature := Signature}} ->
            case witness_event:syntax_of_function(Signature) of
                elixir -> elixir;
                erlang -> witness_event:syntax_of_reason(Reason)
            end;
        #{} -> witness_event:syntax_of_reason(Reason)
    end.

process(Id, #{processes := Processes}) ->
    case Processes of
        #{Id := #{pid := Pid, signature := Signature}} ->
            Syntax = witness_event:syntax_of_function(Signature),
            [witness_event:format_proc(Pid, Syntax), ~", ", witness_event:format_signature(Signature, Syntax)];
        #{} -> [~"process ", integer_to_binary(Id)]
    end.

frames(Stack, Syntax) ->
    More = length(Stack) - ?MAX_FRAMES,
    [[~"    in ", frame(Frame, Syntax)] || Frame <- lists:sublist(Stack, ?MAX_FRAMES)]
        ++ [[~"    and ", witness_text:count(More, ~"other", ~"others")] || More > 0].

%% The arguments are there if no clause of the function takes them.
frame({Module, Function, Args, Location}, Syntax) ->
    Called = {Module, Function, Args},
    [case is_list(Args) of
         true -> witness_event:format_signature(Called, Syntax);
         false -> witness_event:format_function(Called, Syntax)
     end,
     case {proplists:get_value(file, Location), proplists:get_value(line, Location)} of
         {File, Line} when is_list(File), is_integer(Line) ->
             [~" (", witness_text:clean(filename:basename(File)), $:, integer_to_binary(Line), $)];
         _ -> ~""
     end].

%% The processes that were alive at the end.
alive(#{processes := Processes}) -> lists:sort([Id || Id := #{stack := _} <- Processes]).

%% Servers that wait for a request come last: they rarely are the cause.
places(Ids, #{processes := Processes}) ->
    Described = [witness_search_cause:describe(Process) || Id <- Ids, #{Id := #{stack := _} = Process} <- [Processes]],
    {Servers, Others} = lists:partition(fun(#{state := State}) -> State =:= request end, Described),
    More = length(Described) - ?MAX_PROCESSES,
    [[~"  ", witness_run_remaining:format(Process)] || Process <- lists:sublist(Others ++ Servers, ?MAX_PROCESSES)]
        ++ [[~"  and ", witness_text:count(More, ~"other process", ~"other processes")] || More > 0].

%% --- the end ---------------------------------------------------------------------

-doc "The last lines.".
-spec tail(report(), witness_text:look()) -> unicode:chardata().
tail(#{outcome := interrupted, schedules := Schedules} = Report, Look) ->
    lines(rows([searched(Report)]) ++ [~"", [witness_text:style(doubtful, ~"INTERRUPTED", Look), ~": nothing had gone wrong in ",
                                             count(Schedules), $.]]);
tail(#{outcome := Outcome, schedules := Schedules} = Report, Look) when Outcome =:= passed; Outcome =:= unmonitored ->
    Judgement = case Outcome of
        passed -> [witness_text:style(good, ~"OK", Look), ~": nothing went wrong in ", count(Schedules),
                   ~". They are a sample of all schedules, and no proof."];
        unmonitored -> [witness_text:style(doubtful, ~"NO RESULT", Look), ~": nothing was monitored in ", count(Schedules), $.]
    end,
    Unseen = witness_text_coverage:unseen(maps:get(coverage, Report, []), Look),
    lines(warnings(Report) ++ rows([searched(Report) | Unseen ++ unfaithful_rows(Report)]) ++ [~"", Judgement]);
tail(#{outcome := failed, ended := Ended, omitted := Omitted, failures := Failures} = Report, Look) ->
    More = [{~"left out", [count(Omitted), ~" that failed in other ways than these ", integer_to_binary(length(Failures))]} || Omitted > 0],
    lines(warnings(Report) ++ rows([searched(Report) | More ++ unfaithful_rows(Report)]) ++ why_ended(Ended, Report, Look));
tail(#{number := Number, strategy := Strategy, length := Length, switches := Switches, dir := Dir} = Report, _) ->
    Rows = [{~"schedule", [integer_to_binary(Number), by(Strategy, Report), ~": ", witness_text:count(Length, ~"step", ~"steps"), ~", ",
                           witness_text:count(Switches, ~"preemption", ~"preemptions")]}
            | [{~"recorded", [~"in ", witness_text:clean(Dir)]} || is_map_key(recorded, Report)]
                  ++ lists:append([order_rows(Report) || #{outcome := {violated, _, _}} <- [Report]]) ++ unfaithful_rows(Report)],
    Spec = [[~" --spec ", quoted(File)] || #{outcome := {violated, _, _}, specs := Files} <- [Report], File <- Files],
    lines([~"" | rows(Rows)]
          ++ lists:append([[~"" | [[~"  ", Command, Spec, $\s, quoted(Dir)] || Command <- commands(Report)]]
                           || is_map_key(recorded, Report)])
          ++ [~"" || is_map_key(place, Report)]).

commands(#{tool := mix}) -> [~"mix witness.replay", ~"mix witness.step"];
commands(#{tool := rebar3}) -> [~"rebar3 witness replay", ~"rebar3 witness step"];
commands(#{}) -> [~"witness replay", ~"witness replay --step"].

why_ended(interrupted, _, Look) -> [~"", [witness_text:style(doubtful, ~"INTERRUPTED", Look), ~": this is what had been found."]];
why_ended({error, Reason}, _, Look) ->
    [~"", [witness_text:style(doubtful, ~"NO RESULT", Look), ~" of the other schedules: ", witness_search:format_error(Reason)]];
why_ended({no_result, #{outcome := Outcome} = Found}, Report, Look) ->
    [~"", [witness_text:style(doubtful, ~"NO RESULT", Look), ~" of the other schedules:"]
     | outcome(Outcome, maps:merge(Report, Found), Look)];
why_ended(_, _, _) -> [].

by(none, _) -> ~", the one in which each process goes on as long as it can";
by(Strategy, #{seed := Seed}) -> [~", by ", atom_to_binary(Strategy), ~" with seed ", integer_to_binary(Seed)].

searched(#{schedules := Schedules, elapsed_ms := Elapsed, strategies := Strategies, seed := Seed}) ->
    {~"searched", [count(Schedules), ~" in ", witness_text:seconds(Elapsed), ~", ", rate(Schedules, Elapsed), ~" (",
                   lists:join(~", ", [atom_to_binary(Strategy) || Strategy <- Strategies]), ~"; seed ", integer_to_binary(Seed), $)]}.

warnings(Report) -> [[~"warning: ", Text] || #{text := Text} <- maps:get(warnings, Report, [])].

unfaithful_rows(#{unfaithful := Found}) ->
    [{case Row of 1 -> ~"unfaithful"; _ -> ~"" end, witness_search_unfaithful:format(One)} || {Row, One} <- lists:enumerate(Found)].

rows(Rows) -> witness_text:columns([[Label, Text] || {Label, Text} <- Rows]).

%% Pairs of steps that are enough for the failure: these two, in this order.
order_rows(#{reversed := Pairs}) ->
    Lines = lists:append([order(Pair) || Pair <- Pairs]),
    [{case Row of 1 -> ~"order"; _ -> ~"" end, Text} || {Row, Text} <- lists:enumerate(Lines)];
order_rows(#{}) -> [].

-doc "A pair of steps, as lines.".
-spec order(witness_search:pair()) -> [unicode:chardata()].
order(#{first := First, second := Second, never := []}) -> [[~"first ", step(First)], [~"then ", step(Second)]];
order(#{first := First, second := Second, never := [second]}) -> [[~"first ", step(First)], [~"before ", step(Second), ~", which never happens here"]];
order(#{second := Second, never := [first]}) -> [[~"only when nothing else can happen: ", step(Second)]];
order(#{second := Second, never := [_, _]}) -> [[~"without ", step(Second), ~", which never happens here"]].

%% --- what led to it --------------------------------------------------------------

%% The steps of pairs are marked. If no step is the failure itself, the last line says what it is.
chart(#{steps := Steps, skipped := Skipped, decided := Decided, modules := Modules} = Explanation, #{outcome := Outcome}, Look) ->
    Syntax = syntax(Explanation),
    Most = lists:max([0 | [Number || #{role := Roles} <- Steps, {_, Number} <- Roles]]),
    Drawn = [Row#{event := drawn(Event, Syntax), formula => undefined, bindings => [],
                  label => iolist_to_binary([role(Role, Most) || Role <- Roles])}
             || #{event := Event, role := Roles} = Row <- Steps],
    Known = #{titles => Modules, aliases => #{}, syntax => Syntax},
    [[~"    ... ", witness_text:count(Skipped, ~"earlier event is not shown", ~"earlier events are not shown")] || Skipped > 0]
        ++ witness_text_chart:chart(Drawn, Known, case Decided of true -> length(Steps); false -> undefined end, Look)
        ++ [witness_text:style(bad, [~" => ", Then], Look) || not Decided, Then <- ending(Outcome)].

drawn({step, Pid, Step, Ts}, Syntax) -> {other, Pid, unicode:characters_to_binary(does(Step, Syntax)), Ts};
%% The stack is shown above.
drawn({exit, Pid, Reason, Ts}, erlang) -> {exit, Pid, element(1, reason(Reason)), Ts};
drawn(Event, _) -> Event.

role({Which, Number}, Most) ->
    [case Which of first -> ~"first"; second -> ~"then" end, [[~" (", integer_to_binary(Number), $)] || Most > 1], ~": "].

ending({circle, _}) -> [~"end: they wait for each other"];
ending({_, Ids}) when is_list(Ids) -> [~"end: nothing more can happen"];
ending({unexpected, _, {returned, _}}) -> [~"end: the function returns"];
ending({halted, _, _}) -> [~"end of the VM"];
ending(_) -> [].

-doc "The notation of an explanation.".
-spec syntax(witness_search_chart:explanation()) -> witness_event:syntax().
syntax(#{modules := Modules}) -> witness_event:syntax(lists:usort(maps:values(Modules))).

-doc "A step of the explanation, as text.".
-spec event(witness_search_chart:row(), witness_event:syntax()) -> unicode:chardata().
event(#{event := {step, Pid, Step, _}}, Syntax) -> [witness_event:format_proc(Pid, Syntax), does(Step, Syntax)];
event(#{event := Event}, Syntax) -> witness_event:format(Event, ?MAX_REASON_CHARS, Syntax).

-doc "What a process does in a step, or what happens to it, in its language.".
-spec step(witness_search:step()) -> unicode:chardata().
step(#{kind := timer, module := Module} = Step) -> does(Step, witness_event:syntax([Module]));
step(#{pid := Pid, module := Module} = Step) ->
    Syntax = witness_event:syntax([Module]),
    [case Pid of undefined -> ~"a process"; _ -> witness_event:format_proc(Pid, Syntax) end, does(Step, Syntax)].

%% The same without the process.
does(#{kind := Kind, what := What}, Syntax) ->
    Term = fun(Value) -> witness_event:format_term(Value, ?MAX_STEP_CHARS, Syntax) end,
    Call = fun(Signature) -> witness_event:format_signature(Signature, Syntax) end,
    case {Kind, What} of
        {timer, {_, To, Message}} -> [~"a timer sends to ", Term(To), ~": ", Term(Message)];
        {timeout, _} -> ~" has waited long enough";
        {signal, _} -> signal(What, Term);
        {process, _} -> operation(What, Term, Call)
    end.

signal({down, _, Object, Reason}, Term) -> [~" is told that ", Term(Object), ~" has ended: ", Term(Reason)];
signal({link, Reason}, Term) -> [~" is told that a process has ended to which it is linked: ", Term(Reason)];
signal({message, {_, _, Message}}, Term) -> [~" gets ", Term(Message)];
signal({exit, Reason}, Term) -> [~" gets an exit signal: ", Term(Reason)].

operation({send, Alias, Message, _}, Term, _) when is_reference(Alias) ->
    To = case witness_event_alias:owner(Alias) of {ok, Owner} -> Owner; none -> Alias end,
    [~" sends to ", Term(To), ~": ", case Message of
        {[alias | Tag], Reply} when is_reference(Tag) -> [~"reply(_, ", Term(Reply), $)];
        _ -> Term(Message)
    end];
operation({send, To, Message, _}, Term, _) -> [~" sends to ", Term(To), ~": ", Term(Message)];
operation({ended, Reason}, Term, _) -> [~" ends: ", Term(Reason)];
operation({shared, Called}, _, Call) -> [~" calls ", Call(Called)];
operation({adopt, Name, _, _}, Term, _) -> [~" looks up ", Term(Name), ~" for the first time"];
operation({spawn, Start, _, _}, _, Call) -> [~" spawns ", Call(Start)];
operation({From, _, Message}, Term, _) when is_integer(From); From =:= outside -> [~" takes ", Term(Message)];
operation(timeout, _, _) -> [~" takes no message: its time is over"];
operation('receive', _, _) -> [~" looks for a message"];
operation({register, Name, Of}, Term, _) -> [~" registers ", Term(Of), ~" as ", Term(Name)];
operation({unregister, Name}, Term, _) -> [~" unregisters ", Term(Name)];
operation({whereis, Name}, Term, _) -> [~" looks up ", Term(Name)];
operation({exit, To, Reason}, Term, _) -> [~" sends an exit signal to ", Term(To), ~": ", Term(Reason)];
operation({link, To}, Term, _) -> [~" links to ", Term(To)];
operation({unlink, To}, Term, _) -> [~" unlinks ", Term(To)];
operation({monitor, Of, _}, Term, _) -> [~" monitors ", Term(Of)];
operation({demonitor, Ref, _}, Term, _) -> [~" ends its monitor ", Term(Ref)];
operation({trap_exit, true}, _, _) -> [~" traps exits from now on"];
operation({trap_exit, false}, _, _) -> [~" traps exits no longer"];
operation({is_alive, Of}, Term, _) -> [~" asks whether ", Term(Of), ~" is alive"];
operation({information, Of}, Term, _) -> [~" asks for information about ", Term(Of)];
operation({timer, Kind, _, To, Message}, Term, _) -> [~" calls ", atom_to_binary(Kind), ~" for ", Term(To), ~": ", Term(Message)];
operation(Other, Term, _) -> [~": ", Term(Other)].

%% A word for a shell.
quoted(Name) ->
    Text = witness_text:clean(Name),
    case re:run(Text, "^[A-Za-z0-9_./:@%+=,-]+$", [{capture, none}]) of
        match -> Text;
        nomatch -> [$', string:replace(Text, ~"'", ~B"'\''", all), $']
    end.

lines(Lines) -> [[Line, $\n] || Line <- Lines].
