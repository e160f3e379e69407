-module(witness_test_result).
-moduledoc """
Turns the result of a run into the result of its test: passed, or failed and why, as lines for people. Pure.
""".

-export([nothing_monitored/2, vacuous/1, judge/2, lines/1]).

-export_type([result/0, problem/0, rules/0]).

-doc "How the run ended, its verdicts, and the processes that still run although they should have ended.".
-type result() :: #{summary := witness:summary(), verdicts := [witness:verdict()], running := [witness_run_remaining:process()]}.

-doc """
The name of a failure: a violation, processes that still run, a result that cannot be relied on, nothing that was
monitored, or vacuous verdicts.
""".
-type problem() :: violation | still_running | no_result | nothing_monitored | vacuous.

-doc "The options of the test: `fail`, `warn` or `ignore`, and its timeout.".
-type rules() :: #{unmonitored := fail | warn | ignore, vacuous := fail | warn | ignore, timeout := timeout(), _ => _}.

%% Violations that are shown in full.
-define(MAX_CHARTS, 3).
-define(LOOK, #{colour => false, width => 100}).

-doc "Passed, or the worst problem; with the warnings, which do not fail the test.".
-spec judge(result(), rules()) -> {ok | {failed, problem(), Lines :: [binary()]}, Warnings :: [binary()]}.
judge(Result = #{summary := #{warnings := Warnings} = Summary, verdicts := Verdicts}, Rules) ->
    Problems = [{Problem, Text} || {Problem, Text} <- problems(Result, Rules), Text =/= []],
    IsDoubted = lists:keymember(no_result, 1, Problems),
    Shown = [Text || #{code := Code, text := Text} <- Warnings, is_shown(Code, Rules, Summary),
                     not (IsDoubted andalso is_doubt(Code))]
        ++ lists:usort([without_verdict(V) || V <- Verdicts, is_ended_by_signal(V)]),
    case Problems of
        [] -> {ok, Shown};
        [{Problem, _} | _] -> {{failed, Problem, lines(lists:join("\n", [Text || {_, Text} <- Problems]))}, Shown}
    end.

%% Without the warnings that the test counts as failures or ignores.
is_shown(vacuous, #{vacuous := Rule}, _) -> Rule =:= warn;
is_shown(nothing_monitored, #{unmonitored := fail}, #{monitored := 0}) -> false;
is_shown(nothing_monitored, #{unmonitored := Rule}, _) -> Rule =/= ignore;
is_shown(system_crashed, _, _) -> false;
%% Without the processes, which differ in each test.
is_shown(signal, _, _) -> false;
%% ExUnit runs some of the code that is woven, such as that of tasks. It does what it did before.
is_shown(unrestored, _, _) -> false;
is_shown(_, _, _) -> true.

%% Without the process, so that many tests may say the same.
without_verdict(#{signature := Signature} = V) ->
    Of = [[~" on ", witness_event:format_function({M, F, length(Args)}, witness_event:syntax_of_function(Signature))]
          || {M, F, Args} <- [Signature]],
    unicode:characters_to_binary([witness_text_verdict:property(V), ~" has no verdict", Of, ~": ", witness_text_verdict:reason(V),
                                  ~" (docs/inline.md says when inline monitors have one)"]).

problems(#{summary := Summary, verdicts := Verdicts, running := Running}, Rules) ->
    [{violation, violations([V || V = #{verdict := no} <- Verdicts])},
     {still_running, still_running(Running, Rules)},
     {no_result, doubts(Summary, Verdicts, Rules)},
     {nothing_monitored, unmonitored(Summary, Rules)},
     {vacuous, vacuous(Summary, Rules)}].

violations(Violations) ->
    {Shown, Others} = lists:split(min(?MAX_CHARTS, length(Violations)), Violations),
    lists:join("\n", [witness_text_verdict:verdict(V, ?LOOK) || V <- Shown])
        ++ [["\nand ", witness_text:count(length(Others), "more violation", "more violations"), "\n"] || Others =/= []].

still_running([], _) -> [];
still_running(Running, #{timeout := Timeout}) ->
    [witness_text:count(length(Running), "process that the test has started still runs ",
                        "processes that the test has started still run "),
     integer_to_list(Timeout), " ms after its end:\n",
     [["  ", witness_run_remaining:format(Process), maps:get(origin, Process, ""), "\n"] || Process <- Running],
     "Have the test end them, or do not wait for them: option wait => false.\n"].

%% A violation remains a violation, whatever is missing; without one the missing part might have it.
doubts(#{outcome := untrusted, warnings := Warnings} = Summary, Verdicts, _) ->
    Reasons = lists:uniq([witness_text_verdict:reason(V) || V = #{verdict := inconclusive} <- Verdicts, is_doubtful(V)]),
    Codes = [Text || #{code := Code, text := Text} <- Warnings, is_doubt(Code)],
    case {Reasons ++ Codes, Summary} of
        {[], #{monitored := 0}} -> [];
        {[], #{system := {crashed, _}}} -> [];
        {[], _} -> [~"NO RESULT: the run cannot be trusted.\n" || not are_signals_alone(Warnings)];
        {Doubts, _} -> ["NO RESULT, since not all was seen or judged:\n", [["  ", Doubt, "\n"] || Doubt <- Doubts]]
    end;
doubts(_, _, _) -> [].

%% Whether a warning of this code says that something is missing.
is_doubt(Code) ->
    not lists:member(Code, [specification, no_native, on_behalf, vacuous, nothing_monitored, system_crashed, verdicts_dropped,
                            signal, unrestored]).

is_doubtful(#{reason := {gap, _}} = V) -> not is_ended_by_signal(V);
is_doubtful(#{reason := {crashed, _}}) -> true;
is_doubtful(_) -> false.

%% A supervisor ends its children by signals, at the end of each test that has some. An inline monitor of such a process may have no
%% verdict. It is undecided like others at the end of a test: it has not seen a violation, and does not say that there was none.
is_ended_by_signal(#{verdict := inconclusive, reason := {gap, Why}}) -> lists:member(Why, [signal, signal_reason, signal_state]);
is_ended_by_signal(_) -> false.

%% Among verdicts that were not kept there may be one with another reason.
are_signals_alone(Warnings) ->
    Codes = [Code || #{code := Code} <- Warnings],
    lists:member(signal, Codes) andalso not lists:member(verdicts_dropped, Codes).

unmonitored(#{monitored := 0, warnings := Warnings}, #{unmonitored := fail} = Rules) ->
    nothing_monitored([Warning || #{code := nothing_monitored} = Warning <- Warnings],
     [["Only the test's process and its descendants were watched, and what running processes have started while they handled a call of\n"
       "these (over the source native): option scope => node watches every process of the node.\n"] || #{scope := tree} <- [Rules]]);
unmonitored(_, _) -> [].

-doc "Says that nothing was monitored, by the warnings about the properties, and what may be the reason.".
-spec nothing_monitored([witness:warning()], unicode:chardata()) -> unicode:chardata().
nothing_monitored(Warnings, Why) ->
    ["NO RESULT: nothing was monitored.\n", [["  ", Text, "\n"] || #{text := Text} <- Warnings], Why,
     "If the test may do without: option unmonitored => warn, or ignore.\n"].

vacuous(#{warnings := Warnings}, #{vacuous := fail}) -> vacuous(Warnings);
vacuous(_, _) -> [].

-doc "Says of which properties a test has said nothing.".
-spec vacuous([witness:warning()]) -> [unicode:chardata()].
vacuous(Warnings) -> [["NO RESULT: ", Text, "\n"] || #{code := vacuous, text := Text} <- Warnings].

-doc "Text as lines, without an empty one at the end.".
-spec lines(unicode:chardata()) -> [binary()].
lines(Text) ->
    string:split(string:trim(unicode:characters_to_binary(Text), trailing, "\n"), "\n", all).
