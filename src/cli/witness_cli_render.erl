-module(witness_cli_render).
-moduledoc """
What the command line prints for people: violations, warnings, the summary.

Everything here is a pure function from data to text. A violation is a headline with the property, the place of its
definition, the process, its signature and the slice; a chart of what happened (`m:witness_cli_lanes`); and the action
that decided, in its line of the specification, as compilers show an error. The summary is a few aligned lines and one
sentence. It names actions that were never taken, since what never happened was not tested, but none whose first
occurrence is a violation.

All that comes from the system or from files is cut, and free of control characters.
""".

-export([verdict/2, warning/2, summary/3, progress/2, reason/1, bindings/1]).

-export_type([reasons/0]).

-doc "How often each reason (`reason/1`) has left a monitor undecided.".
-type reasons() :: #{binary() => pos_integer()}.

-define(TERM, 400).
-define(UNSEEN, 5).
-define(CRASH, ~"the monitor crashed: ").

-doc "A verdict with its explanation, as lines of text. The last line is empty.".
-spec verdict(witness:verdict(), witness_cli_text:look()) -> unicode:chardata().
verdict(Found, Look) ->
    #{verdict := Verdict, process := Process, signature := {Module, _, _}, steps := Steps, skipped := Skipped} = V =
        without_slice(Found),
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

%% The values of the slice stand in the headline, and are the same everywhere.
without_slice(#{slice := undefined} = V) -> V;
without_slice(#{slice := Slice, steps := Steps, info := Info} = V) ->
    Without = fun(#{bindings := Bindings} = Known) -> Known#{bindings := Bindings -- Slice}; (Other) -> Other end,
    V#{steps := [Without(Step) || Step <- Steps], info := Without(Info)}.

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
     witness_event:format_proc(Process), ~", ", witness_event:format_signature(Signature), slice(V), log(V)].

log(#{log := Place}) -> [~"\n  at ", witness_cli_text:clean(Place)];
log(_) -> ~"".

slice(#{slice := undefined}) -> ~"";
slice(#{slice := Values}) -> [~"\n  slice ", bindings(Values)].

word(no) -> {~"VIOLATION", bad};
word(yes) -> {~"SATISFACTION", good};
word(inconclusive) -> {~"NO DECISION", doubtful}.

property(#{name := undefined, spec := Spec}) -> witness_cli_text:clean(Spec);
property(#{name := Name, spec := Spec}) ->
    [witness_cli_text:clean(Name), ~" (", witness_cli_text:clean(Spec), ~")"].

decided(#{event := #{index := Index}}) -> Index;
decided(#{event := undefined}) -> undefined.

%% The action that decided, as a compiler shows an error: its place, the line, and the action underlined.
decision(#{source := #{file := File, line := Line, column := Column, text := Text}, info := Info} = V, Look) ->
    Action = maps:get(action, Info, ~""),
    [~"", [~"  ", witness_cli_text:style(strong, place(File, Line, Column), Look), ~" ", decided_by(V),
           [[~": ", witness_cli_text:cut(witness_cli_text:clean(Action), ?TERM)] || Action =/= ~""]]
     | excerpt(Line, Column, Text, Action, Look)]
    ++ [[~"    with ", bindings(Bindings)] || #{bindings := [_ | _] = Bindings} <- [Info]];
decision(#{info := Info}, _) when Info =:= undefined; is_map(Info) -> [];
decision(#{info := Info}, _) -> [~"", [~"  the monitor says: ", witness_event:format_term(Info, ?TERM)]].

place(File, Line, Column) ->
    [witness_cli_text:clean(File), $:, integer_to_binary(Line),
     [[$:, integer_to_binary(Column)] || is_integer(Column)], $:].

decided_by(#{verdict := no, info := #{matched := true}}) -> ~"this must not happen";
decided_by(#{verdict := no, info := #{matched := false}}) -> ~"this should have happened";
decided_by(_) -> ~"decided here".

excerpt(Line, Column, Text, Action, Look) ->
    Number = integer_to_binary(Line),
    Margin = lists:duplicate(byte_size(Number), $\s),
    {Before, Marked, After} = marked(unicode:characters_to_list(string:trim(Text, trailing)), Column, Action),
    [[~"    ", Number, ~" | ", Before, witness_cli_text:style(bad, Marked, Look), After]
     | [[~"    ", Margin, ~" | ", lists:duplicate(string:length(Before), $\s),
         witness_cli_text:style(bad, carets(Marked), Look)] || is_integer(Column)]].

%% A line in three pieces: before the action, the action where it stands on this line as it is, and the rest. Each piece
%% is cleaned by itself, so the mark stays in its place whatever that does to the length of the first.
marked(Line, undefined, _) -> {witness_cli_text:clean(Line), ~"", ~""};
marked(Line, Column, Action) ->
    {Before, Rest} = lists:split(min(Column - 1, length(Line)), Line),
    {Marked, After} = case string:prefix(Rest, Action) of
        nomatch -> {"", Rest};
        Behind -> {Action, Behind}
    end,
    {witness_cli_text:clean(Before), witness_cli_text:clean(Marked), witness_cli_text:clean(After)}.

carets(Marked) -> lists:duplicate(max(1, string:length(Marked)), $^).

%% `file:line` without the line.
file(Spec) ->
    case string:split(Spec, ~":", trailing) of
        [File, _] -> File;
        [File] -> File
    end.

-doc "Bindings as text: `A = 1, B = 2`.".
-spec bindings([{Name :: binary(), Value :: term()}]) -> unicode:chardata().
bindings(Bindings) ->
    lists:join(~", ", [[witness_cli_text:clean(Name), ~" = ", witness_event:format_term(Value, 80)]
                       || {Name, Value} <- Bindings]).

-doc "Why a monitor could not decide, in words that are the same for all monitors with the same reason.".
-spec reason(witness:verdict()) -> binary().
reason(#{reason := stopped}) -> ~"watching stopped before a decision";
reason(#{reason := {gap, Why}}) -> gap(Why);
reason(#{reason := {crashed, {Class, Why, _Stack}}}) -> of_term(?CRASH, {Class, Why});
reason(#{reason := {crashed, Why}}) -> of_term(?CRASH, Why);
reason(#{reason := max_slices}) -> ~"another slice took its place: there were more than --max-slices allows";
reason(#{reason := undefined, info := #{reason := too_many_obligations}}) ->
    ~"too much was left to satisfy: there were more obligations than --max-obligations allows";
reason(#{reason := undefined}) -> ~"the monitor reached no decision";
reason(#{reason := Why}) -> of_term(~"", Why).

gap(Why) -> iolist_to_binary([~"events are missing: ", witness_tally:describe_gap(Why)]).

of_term(Before, Term) -> iolist_to_binary([Before, witness_event:format_term(Term, 120)]).

-doc "A warning. One about a specification is a diagnostic of the compiler, in its own format.".
-spec warning(witness:warning(), witness_cli_text:look()) -> unicode:chardata().
warning(#{code := specification, text := Text}, _) ->
    lines([witness_cli_text:clean(Line) || Line <- string:split(Text, ~"\n", all)]);
warning(#{text := Text}, Look) ->
    lines([[witness_cli_text:style(doubtful, ~"warning: ", Look), witness_cli_text:clean(Text)]]).

-doc "The summary of a run, which may have been that of an `application`, with the sentence that says its result. `Code` is the exit code.".
-spec summary(witness:summary() | #{application := atom(), _ => _}, {Code :: 0..3, reasons()}, witness_cli_text:look()) -> unicode:chardata().
summary(#{processes := Processes, tracers := Tracers, events := Events, elapsed_ms := Elapsed,
          monitored := Monitored, gaps := Gaps} = Summary, {Code, Reasons}, Look) ->
    Rows = [system(Summary),
            [~"watched", [witness_cli_text:count(Processes, ~"process", ~"processes"), ~", ",
                          witness_cli_text:count(Events, ~"event", ~"events"), ~", in ", seconds(Elapsed), ~" (at most ",
                          witness_cli_text:count(Tracers, ~"tracer", ~"tracers"), ~" at once)"]],
            [~"monitors", [integer_to_binary(Monitored), slices(Summary), results(Summary)]]
            | [[~"", [integer_to_binary(Count), ~" undecided: ", Reason]]
               || {Reason, Count} <- lists:sort(maps:to_list(Reasons))]]
           ++ [[~"gaps", integer_to_binary(Gaps)] || Gaps > 0]
           ++ unseen(Summary, Look),
    lines(witness_cli_text:columns(Rows) ++ [~"", judgement(Code, Summary, Reasons, Look)]).

system(#{lines := Lines, system := System, refused := Refused}) ->
    Whole = case {System, Refused} of
        {normal, undefined} -> ~", to its end";
        _ -> ~", not to its end"
    end,
    [~"log", [witness_cli_text:count(Lines, ~"line", ~"lines"), Whole]];
system(#{system := System} = Summary) ->
    {Name, Ended} = case Summary of
        #{application := App} -> {[witness_cli_text:clean(atom_to_binary(App)), $\s], ~"has stopped"};
        #{} -> {~"", ~"returned"}
    end,
    [~"system", [Name | case System of
        normal -> Ended;
        {crashed, Reason} -> [~"crashed: ", witness_event:format_term(Reason, ?TERM)];
        undefined -> ~"still ran"
    end]].

-doc "How far the reading of a log has come, on one line.".
-spec progress(#{lines := non_neg_integer(), events := non_neg_integer(), read := non_neg_integer(),
                 size := pos_integer() | unknown, verdicts := map(), _ => _}, Milliseconds :: pos_integer()) ->
    unicode:chardata().
progress(#{lines := Lines, events := Events, read := Read, size := Size, verdicts := Verdicts}, Milliseconds) ->
    Rate = Events * 1000 div max(1, Milliseconds),
    [witness_cli_text:count(Lines, ~"line", ~"lines"), ~", ", witness_cli_text:count(Rate, ~"event", ~"events"), ~" a second",
     share(Read, Size, Milliseconds), ~", ",
     witness_cli_text:count(maps:get(no, Verdicts, 0), ~"violation", ~"violations"), ~"\e[K"].

share(Read, Size, Milliseconds) when is_integer(Size), Read > 0, Read =< Size ->
    Left = (Size - Read) * Milliseconds div Read div 1000,
    [~", ", integer_to_binary(Read * 100 div Size), ~" %, ", witness_cli_text:count(Left, ~"second", ~"seconds"), ~" left"];
share(_, _, _) -> ~"".

results(#{verdicts := #{no := No, yes := Yes, inconclusive := Inconclusive}, vacuous := Vacuous}) ->
    Vacuously = case Vacuous of 0 -> ~""; _ -> [~" (", integer_to_binary(Vacuous), ~" vacuously)"] end,
    Parts = [[integer_to_binary(No), ~" violated"] || No > 0]
            ++ [[integer_to_binary(Yes), ~" satisfied", Vacuously] || Yes > 0]
            ++ [[integer_to_binary(Inconclusive), ~" undecided"] || Inconclusive > 0],
    [[~": ", lists:join(~", ", Parts)] || Parts =/= []].

slices(#{slices := 0}) -> ~"";
slices(#{slices := Slices}) -> [~", ", witness_cli_text:count(Slices, ~"slice", ~"slices")].

%% An action that violates by itself is one that nobody wants to see.
unseen(#{coverage := Coverage}, Look) ->
    Unseen = lists:usort([{file(Spec), Line, Column, Text}
                          || #{spec := Spec, actions := Actions} <- Coverage,
                             #{taken := false, decides := Decides, line := Line, column := Column, text := Text} <- Actions,
                             Decides =/= no]),
    Shown = case length(Unseen) of
        Number when Number > ?UNSEEN ->
            [action(A, Look) || A <- lists:sublist(Unseen, ?UNSEEN - 1)]
                ++ [[~"and ", integer_to_binary(Number - ?UNSEEN + 1), ~" more; --json lists all"]];
        _ -> [action(A, Look) || A <- Unseen]
    end,
    [[case Row of 1 -> ~"unseen"; _ -> ~"" end, Text] || {Row, Text} <- lists:enumerate(Shown)].

action({File, Line, Column, Text}, #{width := Width}) ->
    Place = [witness_cli_text:clean(File), $:, integer_to_binary(Line), $:, integer_to_binary(Column), ~": "],
    [Place, witness_cli_text:cut(witness_cli_text:clean(Text), max(20, Width - 10 - string:length(Place)))].

seconds(Milliseconds) when Milliseconds < 1000 -> [integer_to_binary(Milliseconds), ~" ms"];
seconds(Milliseconds) -> [float_to_binary(Milliseconds / 1000, [{decimals, 1}]), ~" s"].

%% The result in one sentence.
-spec judgement(Code :: 0..3, witness:summary(), reasons(), witness_cli_text:look()) -> unicode:chardata().
judgement(2, #{verdicts := #{no := No}}, _, Look) ->
    [witness_cli_text:style(doubtful, ~"REFUSED", Look), ~": the log is wrong, and was not read on",
     [[~"; before that, ", witness_cli_text:count(No, ~"violation was seen", ~"violations were seen")] || No > 0], ~"."];
judgement(1, #{verdicts := #{no := No}, slices := Slices}, _, Look) when Slices > 0 ->
    [witness_cli_text:style(bad, ~"VIOLATED", Look), ~": ",
     witness_cli_text:count(No, ~"violation was seen.", ~"violations were seen.")];
judgement(1, #{verdicts := #{no := No}}, _, Look) ->
    [witness_cli_text:style(bad, ~"VIOLATED", Look), ~": ",
     witness_cli_text:count(No, ~"monitor has seen a violation.", ~"monitors have seen violations.")];
judgement(0, #{verdicts := #{inconclusive := 0}}, _, Look) ->
    [witness_cli_text:style(good, ~"OK", Look), ~": nothing was violated."];
judgement(0, #{verdicts := #{inconclusive := Count}, slices := Slices}, _, Look) when Slices > 0 ->
    [witness_cli_text:style(good, ~"OK", Look), ~": nothing was violated, ", integer_to_binary(Count), ~" undecided."];
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
