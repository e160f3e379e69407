-module(witness_cli_render).
-moduledoc """
What the command line prints for people: violations, warnings, the summary.

Everything here is a pure function from data to text. A violation is a headline with the property, the place of its
definition, the process and its signature; a chart of what happened (`m:witness_cli_lanes`); and the action that
decided, in its source line. The summary is a few aligned lines and one sentence.

All that comes from the system or from files is cut, and free of control characters.
""".

-export([verdict/2, warning/2, summary/3, reason/1, bindings/1]).

-export_type([look/0, reasons/0]).

-doc """
How to print. `source` gives a line of a specification by the path of the file and the number of the line, or
`undefined`.
""".
-type look() :: #{colour := boolean(), width := pos_integer(),
                  source => fun((File :: binary(), Line :: pos_integer()) -> binary() | undefined)}.

-doc "How often each reason (`reason/1`) has left a monitor undecided.".
-type reasons() :: #{binary() => pos_integer()}.

-define(TERM, 400).
-define(CRASH, ~"the monitor crashed: ").

-doc "A verdict with its explanation, as lines of text. The last line is empty.".
-spec verdict(witness:verdict(), look()) -> unicode:chardata().
verdict(#{verdict := Verdict, process := Process, signature := {Module, _, _}, steps := Steps, skipped := Skipped} = V, Look) ->
    lines([headline(Verdict, V, Look)]
          ++ [[~"  ", reason(V)] || Verdict =:= inconclusive]
          ++ [~"" || Steps =/= []]
          ++ [[~"    ... ", witness_cli_text:count(Skipped, ~"earlier event is not shown", ~"earlier events are not shown")]
              || Skipped > 0, Steps =/= []]
          ++ witness_cli_lanes:chart(last_formula(Steps), #{Process => Module}, decided(V), Look)
          ++ [witness_cli_text:style(bad, ~" => end: no event followed", Look)
              || maps:get(event, V) =:= undefined, Verdict =:= no, Steps =/= []]
          ++ decision(V, Look)
          ++ [~""]).

%% The chart is read at a glance: of the formulas, only the one that the deciding event met.
%% All of them are in the verdict, and in the output for programs.
last_formula(Steps) ->
    {Plain, Later} = lists:splitwith(fun(#{formula := Formula}) -> Formula =:= undefined end, lists:reverse(Steps)),
    case Later of
        [] -> Steps;
        [Step | Earlier] ->
            [S#{formula := undefined} || S <- lists:reverse(Earlier)] ++ [Step | lists:reverse(Plain)]
    end.

headline(Verdict, #{process := Process, signature := Signature} = V, Look) ->
    {Word, Style} = word(Verdict),
    [witness_cli_text:style(Style, Word, Look), ~" of ", property(V), ~"\n  by ",
     witness_event:format_term(Process, 40), ~", ", witness_event:format_signature(Signature)].

word(no) -> {~"VIOLATION", bad};
word(yes) -> {~"SATISFACTION", good};
word(inconclusive) -> {~"NO DECISION", doubtful}.

property(#{name := undefined, spec := Spec}) -> witness_cli_text:clean(Spec);
property(#{name := Name, spec := Spec}) ->
    [witness_cli_text:clean(Name), ~" (", witness_cli_text:clean(Spec), ~")"].

decided(#{event := #{index := Index}}) -> Index;
decided(#{event := undefined}) -> undefined.

%% The action that decided: where the monitor says so, in the line where it is written.
decision(#{info := #{line := Line} = Info, spec := Spec}, Look) when is_integer(Line) ->
    File = file(Spec),
    Column = maps:get(column, Info, undefined),
    [~"", [~"  decided at ", witness_cli_text:clean(File), ~":", integer_to_binary(Line), written(Info)]]
    ++ source(File, Line, Column, Look)
    ++ [[~"    with ", bindings(Bindings)] || #{bindings := [_ | _] = Bindings} <- [Info]];
decision(#{info := Info}, _) when Info =:= undefined; is_map(Info) -> [];
decision(#{info := Info}, _) -> [~"", [~"  the monitor says: ", witness_event:format_term(Info, ?TERM)]].

written(#{action := Action}) -> [~", ", witness_cli_text:cut(witness_cli_text:clean(Action), ?TERM)];
written(_) -> ~"".

%% `file:line` without the line.
file(Spec) ->
    case string:split(Spec, ~":", trailing) of
        [File, _] -> File;
        [File] -> File
    end.

source(File, Line, Column, #{source := Source}) ->
    case Source(File, Line) of
        undefined -> [];
        Text ->
            Number = integer_to_binary(Line),
            Margin = lists:duplicate(byte_size(Number), $\s),
            %% A tab becomes one blank, so the caret needs no knowledge of tab stops.
            [[~"    ", Number, ~" | ", witness_cli_text:clean(string:trim(Text, trailing))]
             | [[~"    ", Margin, ~" | ", lists:duplicate(Column - 1, $\s), ~"^"] || is_integer(Column)]]
    end;
source(_, _, _, #{}) -> [].

-doc "Bindings as text: `A = 1, B = 2`.".
-spec bindings([{Name :: binary(), Value :: term()}]) -> unicode:chardata().
bindings(Bindings) ->
    lists:join(~", ", [[witness_cli_text:clean(Name), ~" = ", witness_event:format_term(Value, 80)]
                       || {Name, Value} <- Bindings]).

-doc "Why a monitor could not decide, in words that are the same for all monitors with the same reason.".
-spec reason(witness:verdict()) -> binary().
reason(#{reason := stopped}) -> ~"watching stopped before a decision";
reason(#{reason := {gap, Why}}) -> of_term(~"events are missing: ", Why);
reason(#{reason := {crashed, {Class, Why, _Stack}}}) -> of_term(?CRASH, {Class, Why});
reason(#{reason := {crashed, Why}}) -> of_term(?CRASH, Why);
reason(#{reason := killed}) -> ~"the monitor was killed";
reason(#{reason := undefined}) -> ~"the monitor reached no decision";
reason(#{reason := Why}) -> of_term(~"", Why).

of_term(Before, Term) -> iolist_to_binary([Before, witness_event:format_term(Term, 120)]).

-doc "A warning.".
-spec warning(unicode:chardata(), look()) -> unicode:chardata().
warning(Text, Look) -> lines([[witness_cli_text:style(doubtful, ~"warning: ", Look), witness_cli_text:clean(Text)]]).

-doc "The summary of a run, with the sentence that says its result. `Code` is the exit code.".
-spec summary(witness:summary(), {Code :: 0..3, reasons()}, look()) -> unicode:chardata().
summary(#{processes := Processes, tracers := Tracers, events := Events, elapsed_ms := Elapsed,
          monitored := Monitored, gaps := Gaps} = Summary, {Code, Reasons}, Look) ->
    Rows = [[~"system", system(Summary)],
            [~"watched", [witness_cli_text:count(Processes, ~"process", ~"processes"), ~", ",
                          witness_cli_text:count(Events, ~"event", ~"events"), ~", in ", seconds(Elapsed), ~" (at most ",
                          witness_cli_text:count(Tracers, ~"tracer", ~"tracers"), ~" at once)"]],
            [~"monitors", [integer_to_binary(Monitored), results(Summary)]]
            | [[~"", [integer_to_binary(Count), ~" undecided: ", Reason]]
               || {Reason, Count} <- lists:sort(maps:to_list(Reasons))]]
           ++ [[~"gaps", integer_to_binary(Gaps)] || Gaps > 0],
    lines(witness_cli_text:columns(Rows) ++ [~"", judgement(Code, Summary, Reasons, Look)]).

system(#{system := normal}) -> ~"returned";
system(#{system := {crashed, Reason}}) -> [~"crashed: ", witness_event:format_term(Reason, ?TERM)];
system(#{system := _}) -> ~"still ran".

results(#{verdicts := #{no := No, yes := Yes, inconclusive := Inconclusive}, vacuous := Vacuous}) ->
    Vacuously = case Vacuous of 0 -> ~""; _ -> [~" (", integer_to_binary(Vacuous), ~" vacuously)"] end,
    Parts = [[integer_to_binary(No), ~" violated"] || No > 0]
            ++ [[integer_to_binary(Yes), ~" satisfied", Vacuously] || Yes > 0]
            ++ [[integer_to_binary(Inconclusive), ~" undecided"] || Inconclusive > 0],
    [[~": ", lists:join(~", ", Parts)] || Parts =/= []].

seconds(Milliseconds) when Milliseconds < 1000 -> [integer_to_binary(Milliseconds), ~" ms"];
seconds(Milliseconds) -> [float_to_binary(Milliseconds / 1000, [{decimals, 1}]), ~" s"].

%% The result in one sentence.
-spec judgement(Code :: 0..3, witness:summary(), reasons(), look()) -> unicode:chardata().
judgement(1, #{verdicts := #{no := No}}, _, Look) ->
    [witness_cli_text:style(bad, ~"VIOLATED", Look), ~": ",
     witness_cli_text:count(No, ~"monitor has seen a violation.", ~"monitors have seen violations.")];
judgement(0, #{verdicts := #{inconclusive := 0}}, _, Look) ->
    [witness_cli_text:style(good, ~"OK", Look), ~": nothing was violated."];
judgement(0, #{verdicts := #{inconclusive := Count}}, _, Look) ->
    [witness_cli_text:style(good, ~"OK", Look), ~": nothing was violated, ",
     witness_cli_text:count(Count, ~"monitor is undecided.", ~"monitors are undecided.")];
judgement(3, Summary, Reasons, Look) ->
    [witness_cli_text:style(doubtful, ~"NO RESULT", Look), ~": ", witness_cli_text:list(doubts(Summary, Reasons)), ~"."].

%% Why a run without violations says nothing.
doubts(#{monitored := Monitored, gaps := Gaps, system := System, warnings := Warnings}, Reasons) ->
    Doubts = [~"nothing was monitored" || Monitored =:= 0]
             ++ [~"events are missing" || Gaps > 0]
             ++ [~"the system crashed" || is_tuple(System)]
             ++ [~"a monitor crashed" || lists:any(fun is_crash/1, maps:keys(Reasons))],
    case Doubts of
        [] when Warnings =/= [] -> [~"see the warnings above"];
        [] -> [~"the run cannot be trusted"];
        _ -> Doubts
    end.

is_crash(Reason) -> string:prefix(Reason, ?CRASH) =/= nomatch.

lines(Lines) -> [[Line, $\n] || Line <- Lines].
