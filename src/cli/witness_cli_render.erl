-module(witness_cli_render).
-moduledoc """
What the command line prints for people in addition to verdicts (`m:witness_text_verdict`): warnings, progress, the summary.

Everything here is a pure function from data to text. The summary is a few aligned lines and one sentence. It names
actions that were never taken, since they were not tested, except those that are a violation when they first occur.

All that comes from the system or from files is cut, and free of control characters.
""".

-export([warning/2, summary/3, facts/2, sentence/3, results/1, recording/3, progress/2]).

-export_type([reasons/0]).

-doc "How often each reason (`witness_text_verdict:reason/1`) has left a monitor undecided.".
-type reasons() :: #{binary() => pos_integer()}.

-define(MAX_TERM_CHARS, 400).
-define(MAX_WANTED, 5).
-define(MAX_PROPERTIES, 20).
-define(MAX_FORMULA_CHARS, 200).

-doc "A warning. One about a specification is a diagnostic of the compiler, in its own format.".
-spec warning(witness:warning(), witness_text:look()) -> unicode:chardata().
warning(#{code := specification, text := Text}, _) ->
    lines([witness_text:clean(Line) || Line <- string:split(Text, ~"\n", all)]);
warning(#{text := Text}, Look) ->
    lines([[witness_text:style(doubtful, ~"warning: ", Look), witness_text:clean(Text)]]).

-doc """
The summary of a run, which may have been that of an `application`, with the sentence about its result. `Code` is
the exit code.
""".
-spec summary(witness:summary() | #{application := atom(), _ => _}, {Code :: 0..3, reasons()}, witness_text:look()) ->
    unicode:chardata().
summary(Summary, Result, Look) ->
    #{coverage := Coverage} = Summary,
    Rows = facts(Summary, Result) ++ witness_text_coverage:unseen(Coverage, Look),
    lines(witness_text:columns([[Label, Text] || {Label, Text} <- Rows]) ++ [~"", sentence(Summary, Result, Look)]).

-doc "The rows of the summary, except that for actions never taken: labels, which are empty if a row continues the one before, and texts.".
-spec facts(witness:summary() | #{application := atom(), _ => _}, {Code :: 0..3, reasons()}) ->
    [{Label :: unicode:chardata(), unicode:chardata()}].
facts(#{processes := Processes, tracers := Tracers, events := Events, elapsed_ms := Elapsed,
        monitored := Monitored, gaps := Gaps} = Summary, {_, Reasons}) ->
    [system(Summary),
     {~"watched", [witness_text:count(Processes, ~"process", ~"processes"), ~", ",
                   witness_text:count(Events, ~"event", ~"events"), ~", in ", witness_text:seconds(Elapsed), ~" (at most ",
                   witness_text:count(Tracers, ~"tracer", ~"tracers"), ~" at once)"]},
     {~"monitors", [integer_to_binary(Monitored), slices(Summary), results(Summary)]}]
    ++ [{~"", Text} || Text <- properties(maps:get(properties, Summary, []))]
    ++ [{~"", [integer_to_binary(Count), ~" undecided: ", Reason]} || {Reason, Count} <- lists:sort(maps:to_list(Reasons))]
    ++ wanted(maps:get(wanted, Summary, []))
    ++ [{~"gaps", integer_to_binary(Gaps)} || Gaps > 0]
    ++ [{case Row of 1 -> ~"alive"; _ -> ~"" end, Text}
        || #{alive := Remaining} <- [Summary], {Row, Text} <- lists:enumerate(witness_run_remaining:shown(Remaining))].

-doc "The sentence about the result.".
-spec sentence(witness:summary() | #{application := atom(), _ => _}, {Code :: 0..3, reasons()}, witness_text:look()) ->
    unicode:chardata().
sentence(Summary, {Code, Reasons}, Look) -> judgement(Code, Summary, Reasons, Look).

system(#{lines := Lines, system := System, refused := Refused} = Summary) ->
    Whole = case {System, Refused} of
        {normal, undefined} -> ~", to its end";
        _ -> ~", not to its end"
    end,
    case Summary of
        #{recording := true} -> {~"recording", [witness_text:count(Lines, ~"event", ~"events"), Whole]};
        #{} -> {~"log", [witness_text:count(Lines, ~"line", ~"lines"), Whole]}
    end;
system(#{system := System} = Summary) ->
    {Name, Ended} = case Summary of
        #{application := App} -> {[witness_text:clean(atom_to_binary(App)), $\s], ~"has stopped"};
        #{attached := true} -> {~"", ~"all that was watched has ended"};
        #{} -> {~"", ~"returned"}
    end,
    {~"system", [Name | case System of
        normal -> Ended;
        {crashed, {not_started, _, _}} -> ~"did not start";
        {crashed, Reason} ->
            [~"crashed: ", witness_event:format_reason(Reason, ?MAX_TERM_CHARS, witness_event:syntax_of_reason(Reason))];
        undefined -> ~"still ran";
        starting -> ~"had not started yet"
    end]}.

-doc "The progress of reading a log, on one line.".
-spec progress(#{lines := non_neg_integer(), events := non_neg_integer(), read := non_neg_integer(),
                 size := pos_integer() | unknown, verdicts := map(), _ => _}, Milliseconds :: pos_integer()) ->
    unicode:chardata().
progress(#{lines := Lines, events := Events, read := Read, size := Size, verdicts := Verdicts}, Milliseconds) ->
    Rate = Events * 1000 div max(1, Milliseconds),
    [witness_text:count(Lines, ~"line", ~"lines"), ~", ", witness_text:count(Rate, ~"event", ~"events"), ~" a second",
     share(Read, Size, Milliseconds), ~", ",
     witness_text:count(maps:get(no, Verdicts, 0), ~"violation", ~"violations"), ~"\e[K"].

share(Read, Size, Milliseconds) when is_integer(Size), Read > 0, Read =< Size ->
    Left = (Size - Read) * Milliseconds div Read div 1000,
    [~", ", integer_to_binary(Read * 100 div Size), ~" %, ", witness_text:count(Left, ~"second", ~"seconds"), ~" left"];
share(_, _, _) -> ~"".

-doc "The numbers of verdicts behind a colon; nothing if there are none.".
-spec results(#{verdicts := #{witness_monitor:verdict() => non_neg_integer()}, vacuous := non_neg_integer(), _ => _}) ->
    unicode:chardata().
results(#{verdicts := #{no := No, yes := Yes, inconclusive := Inconclusive}, vacuous := Vacuous}) ->
    Vacuously = case Vacuous of 0 -> ~""; _ -> [~" (", integer_to_binary(Vacuous), ~" vacuously)"] end,
    Parts = [[integer_to_binary(No), ~" violated"] || No > 0]
            ++ [[integer_to_binary(Yes), ~" satisfied", Vacuously] || Yes > 0]
            ++ [[integer_to_binary(Inconclusive), ~" undecided"] || Inconclusive > 0],
    [[~": ", lists:join(~", ", Parts)] || Parts =/= []].

%% A row for each property, if there are several: those that were violated come first.
properties(Properties) when length(Properties) < 2 -> [];
properties(Properties) ->
    Ranked = [{{-No, -Inconclusive}, Of} || #{verdicts := #{no := No, inconclusive := Inconclusive}} = Of <- Properties],
    Sorted = [Of || {_, Of} <- lists:keysort(1, Ranked)],
    More = length(Sorted) - ?MAX_PROPERTIES,
    [[witness_text_verdict:property(Of), version(Of), results(Of)] || Of <- lists:sublist(Sorted, ?MAX_PROPERTIES)]
        ++ [[~"and ", witness_text:count(More, ~"other property", ~"other properties"), ~"; --json lists all"] || More > 0].

version(#{version := 1}) -> ~"";
version(#{version := Version}) -> [~", version ", integer_to_binary(Version)].

%% The properties of undecided monitors, with what each still waits for.
wanted(Wanted) ->
    Known = lists:sort(fun({A, N}, {B, M}) -> {-N, A} =< {-M, B} end, [Of || {Key, _} = Of <- Wanted, Key =/= others]),
    More = length(Known) - ?MAX_WANTED,
    Lines = [wanted(Key, Count) || {Key, Count} <- lists:sublist(Known, ?MAX_WANTED)]
        ++ [[~"and of ", witness_text:count(More, ~"other formula", ~"other formulas")] || More > 0],
    [{~"", Text} || Text <- Lines].

wanted({Spec, Name, Wanted}, Count) ->
    [integer_to_binary(Count), ~" of ", witness_text_verdict:property(#{name => Name, spec => Spec}),
     case Wanted of
         none -> ~"";
         {to_come, Action} -> [~", to come: ", short(Action)];
         {to_hold, Formula} -> [~", to hold: ", short(Formula)]
     end].

short(Text) -> witness_text:cut(witness_text:clean(Text), ?MAX_FORMULA_CHARS).

slices(#{slices := 0}) -> ~"";
slices(#{slices := Slices}) -> [~", ", witness_text:count(Slices, ~"slice", ~"slices")].

-doc "The summary of a recording, with its folder, its duration, and the exit code.".
-spec recording(#{dir := file:filename(), elapsed_ms := non_neg_integer(), atom() => term()}, 0 | 3, witness_text:look()) ->
    unicode:chardata().
recording(#{dir := Dir, elapsed_ms := Elapsed, ended := Ended, vm := Status} = Summary, Code, Look) ->
    Rows = [[~"program", ended(Ended, Status)],
            [~"recorded", [[[witness_text:count(Count, ~"process", ~"processes"), ~", "] || #{born := Count} <- [Summary]],
                           ~"in ", witness_text:seconds(Elapsed)]]]
           ++ [[~"files", [size(Kind, Files) || Kind <- [order, data, processes]]]
               || #{files := Files} <- [Summary], is_map(Files)],
    lines(witness_text:columns(Rows) ++ [~"", recorded(Code, Summary, witness_text:clean(Dir), Look)]).

ended({returned, normal}, _) -> ~"returned";
ended({returned, Reason}, _) -> [~"crashed: ", Reason];
ended({stopped, App, normal}, _) -> [~"the application ", atom_to_binary(App), ~" has stopped"];
ended({stopped, App, Reason}, _) -> [~"the application ", atom_to_binary(App), ~" has ended: ", Reason];
ended(halted, Status) -> [~"its VM has ended, with status ", integer_to_binary(Status)];
ended(stopped, _) -> ~"was stopped".

size(order, #{order := #{bytes := Bytes}}) -> [~"ordering ", bytes(Bytes)];
size(Kind, Files) ->
    #{Kind := #{bytes := Bytes}} = Files,
    [~", ", atom_to_binary(Kind), $\s, bytes(Bytes)].

bytes(Bytes) when Bytes < 1000 -> [integer_to_binary(Bytes), ~" B"];
bytes(Bytes) when Bytes < 1_000_000 -> [float_to_binary(Bytes / 1000, [{decimals, 1}]), ~" kB"];
bytes(Bytes) -> [float_to_binary(Bytes / 1_000_000, [{decimals, 1}]), ~" MB"].

recorded(0, _, Dir, Look) -> [witness_text:style(good, ~"RECORDED", Look), ~" in ", Dir, ~"."];
recorded(3, Summary, Dir, Look) ->
    lists:join($\n, [[witness_text:style(doubtful, ~"INCOMPLETE", Look), ~", in ", Dir, ~": ", witness_text:list(Missing), ~"."]
                     || [_ | _] = Missing <- [missing(Summary)]]
                    ++ [[witness_text:style(doubtful, ~"NOT REPLAYABLE", Look), ~", in ", Dir, ~": ", lists:join(~"; ", Refused),
                         ~"."]
                        || [_ | _] = Refused <- [refused(Summary)]]).

missing(#{outcome := Outcome, ended := Ended} = Summary) ->
    [missing_reason(Reason) || {ended, Reason} <- [Outcome]]
        ++ [~"the program was stopped" || Ended =:= stopped, not maps:get(planned, Summary, false)].

%% The reasons that the user has chosen by options are left out.
refused(Summary) ->
    [witness_log_recording_refusal:format(Reason) || Reason <- maps:get(refused, Summary, []),
                                                     not witness_log_recording_refusal:is_chosen(Reason)].

missing_reason({vm, Status}) -> [~"the VM has ended with status ", integer_to_binary(Status), ~" in the middle of it"];
missing_reason(budget) -> ~"the disk was slower than the program for too long";
missing_reason({file, File, Reason}) -> [witness_text:clean(File), ~": ", file:format_error(Reason)];
missing_reason(Reason) -> [~"the recorder has ended: ", witness_event:format_term(Reason, ?MAX_TERM_CHARS)].

%% The result in one sentence.
-spec judgement(Code :: 0..3, witness:summary(), reasons(), witness_text:look()) -> unicode:chardata().
judgement(2, #{verdicts := #{no := No}} = Summary, _, Look) ->
    Log = case Summary of #{recording := true} -> ~"recording"; #{} -> ~"log" end,
    [witness_text:style(doubtful, ~"REFUSED", Look), ~": the ", Log, ~" is wrong, and was not read on",
     [[~"; before that, ", witness_text:count(No, ~"violation was seen", ~"violations were seen")] || No > 0], ~"."];
judgement(1, #{verdicts := #{no := No}, slices := Slices}, _, Look) when Slices > 0 ->
    [witness_text:style(bad, ~"VIOLATED", Look), ~": ",
     witness_text:count(No, ~"violation was seen.", ~"violations were seen.")];
judgement(1, #{verdicts := #{no := No}}, _, Look) ->
    [witness_text:style(bad, ~"VIOLATED", Look), ~": ",
     witness_text:count(No, ~"monitor has seen a violation.", ~"monitors have seen violations.")];
judgement(0, #{verdicts := #{inconclusive := 0}}, _, Look) ->
    [witness_text:style(good, ~"OK", Look), ~": nothing was violated."];
judgement(0, #{verdicts := #{inconclusive := Count}, slices := Slices}, Reasons, Look) ->
    Undecided = case Slices of
        0 -> witness_text:count(Count, ~"monitor is undecided", ~"monitors are undecided");
        _ -> [integer_to_binary(Count), ~" undecided"]
    end,
    case pending(Reasons) of
        0 -> [witness_text:style(good, ~"OK", Look), ~": nothing was violated, ", Undecided, $.];
        Pending ->
            Of = case Pending of Count -> ~": "; _ -> [~"; for ", integer_to_binary(Pending), ~" of them, "] end,
            [witness_text:style(doubtful, ~"UNDECIDED", Look), ~": nothing was violated, ", Undecided, Of, ~"what has to come had not come."]
    end;
judgement(3, Summary, Reasons, Look) ->
    [witness_text:style(doubtful, ~"NO RESULT", Look), ~": ", witness_text:list(doubts(Summary, Reasons)), ~"."].

%% How many were undecided although the trace so far would be a violation.
pending(Reasons) -> maps:get(witness_text_verdict:reason(#{reason => pending, info => undefined}), Reasons, 0).

%% Why a run without violations has no result.
doubts(#{monitored := Monitored, gaps := Gaps, system := System, warnings := Warnings, verdicts := Verdicts} = Summary, Reasons) ->
    Doubts = [~"nothing was monitored" || Monitored =:= 0]
             ++ [~"events are missing" || Gaps > 0]
             ++ case System of
                    {crashed, {not_started, _, _}} -> [~"the system did not start"];
                    {crashed, _} -> [~"the system crashed"];
                    _ -> []
                end
             ++ [witness_text:count(Undecided, ~"verdict is undecided", ~"verdicts are undecided")
                 || #{must_decide := true, outcome := ok} <- [Summary], #{inconclusive := Undecided} <- [Verdicts], Undecided > 0]
             ++ [~"a monitor crashed" || lists:any(fun witness_text_verdict:is_crash/1, maps:keys(Reasons))],
    case Doubts of
        [] when Warnings =/= [] -> [~"see the warnings above"];
        [] -> [~"the run cannot be trusted"];
        _ -> Doubts
    end.

lines(Lines) -> [[Line, $\n] || Line <- Lines].
