-module(witness_test_result).
-moduledoc """
Turns the result of a run into the result of its test: passed, or failed and why, as lines for people. Pure.
""".

-export([judge/2, lines/1]).

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
judge(Result = #{summary := #{warnings := Warnings} = Summary}, Rules) ->
    Problems = [{Problem, Text} || {Problem, Text} <- problems(Result, Rules), Text =/= []],
    Shown = [Text || #{code := Code, text := Text} <- Warnings, is_shown(Code, Rules, Summary)],
    case Problems of
        [] -> {ok, Shown};
        [{Problem, _} | _] -> {{failed, Problem, lines(lists:join("\n", [Text || {_, Text} <- Problems]))}, Shown}
    end.

%% Without the warnings that the test counts as failures or ignores.
is_shown(vacuous, #{vacuous := Rule}, _) -> Rule =:= warn;
is_shown(nothing_monitored, #{unmonitored := fail}, #{monitored := 0}) -> false;
is_shown(nothing_monitored, #{unmonitored := Rule}, _) -> Rule =/= ignore;
is_shown(system_crashed, _, _) -> false;
is_shown(_, _, _) -> true.

problems(#{summary := Summary, verdicts := Verdicts, running := Running}, Rules) ->
    [{violation, violations([V || V = #{verdict := no} <- Verdicts])},
     {still_running, still_running(Running, Rules)},
     {no_result, doubts(Summary, Verdicts, Rules)},
     {nothing_monitored, nothing_monitored(Summary, Rules)},
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
     [["  ", witness_run_remaining:format(Process), "\n"] || Process <- Running],
     "Have the test end them, or do not wait for them: option wait => false.\n"].

%% A violation remains a violation, whatever is missing; without one the missing part might have it.
doubts(#{outcome := untrusted, warnings := Warnings} = Summary, Verdicts, _) ->
    Reasons = lists:uniq([witness_text_verdict:reason(V) || V = #{verdict := inconclusive} <- Verdicts, is_doubt(V)]),
    Codes = [Text || #{code := Code, text := Text} <- Warnings,
                     not lists:member(Code, [specification, no_native, vacuous, nothing_monitored, system_crashed,
                                             verdicts_dropped])],
    case {Reasons ++ Codes, Summary} of
        {[], #{monitored := 0}} -> [];
        {[], #{system := {crashed, _}}} -> [];
        {[], _} -> "NO RESULT: the run cannot be trusted.\n";
        {Doubts, _} -> ["NO RESULT, since not all was seen or judged:\n", [["  ", Doubt, "\n"] || Doubt <- Doubts]]
    end;
doubts(_, _, _) -> [].

is_doubt(#{reason := {gap, _}}) -> true;
is_doubt(#{reason := {crashed, _}}) -> true;
is_doubt(_) -> false.

nothing_monitored(#{monitored := 0, warnings := Warnings}, #{unmonitored := fail} = Rules) ->
    ["NO RESULT: nothing was monitored.\n",
     [["  ", Text, "\n"] || #{code := nothing_monitored, text := Text} <- Warnings],
     [["Only the test's process and its descendants were watched, and what running processes have started while they handled a call of\n"
       "these (over the source native): option scope => node watches every process of the node.\n"] || #{scope := tree} <- [Rules]],
     "If the test may do without: option unmonitored => warn, or ignore.\n"];
nothing_monitored(_, _) -> [].

vacuous(#{warnings := Warnings}, #{vacuous := fail}) ->
    [["NO RESULT: ", Text, "\n"] || #{code := vacuous, text := Text} <- Warnings];
vacuous(_, _) -> [].

-doc "Text as lines, without an empty one at the end.".
-spec lines(unicode:chardata()) -> [binary()].
lines(Text) ->
    string:split(string:trim(unicode:characters_to_binary(Text), trailing, "\n"), "\n", all).
