-module(witness_inline_agreement_SUITE).
-moduledoc """
Inline monitoring gives the systems of `m:witness_sys` the verdicts of outline monitoring, wherever both see the same, and
otherwise what `m:witness_sys_inline` says and why. `make agreement` runs each system 100 times, here and in a VM with one
scheduler; the environment variable is that of `m:witness_agreement_SUITE`.
""".
-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2]).
-export([verdicts_are_as_expected/1, a_wrong_verdict_is_found/1]).
-export([disagreeing/1]).

-define(RUN_TIMEOUT, 120_000).

all() -> [a_wrong_verdict_is_found, {group, both}].

groups() ->
    [{both, [parallel], [{group, all_schedulers}, {group, one_scheduler}]},
     {all_schedulers, [], [verdicts_are_as_expected]}, {one_scheduler, [], [verdicts_are_as_expected]}].

suite() -> [{timetrap, {minutes, 5 + how_often()}}].

how_often() -> witness_setting:number("WITNESS_AGREEMENT_RUNS", 2).

init_per_suite(Config) -> [{level, witness_agreement_SUITE:prepare()} | Config].

end_per_suite(Config) -> ok = logger:set_primary_config(level, proplists:get_value(level, Config)).

init_per_group(one_scheduler, Config) ->
    Paths = lists:append([["-pa", Dir] || Dir <- code:get_path(), filename:basename(Dir) =/= "."]),
    Erl = filename:join([code:root_dir(), "bin", "erl"]),
    {ok, Peer, _} = peer:start(#{connection => standard_io, exec => Erl, args => ["+S", "1" | Paths]}),
    _ = peer:call(Peer, witness_agreement_SUITE, prepare, [], ?RUN_TIMEOUT),
    [{peer, Peer} | Config];
init_per_group(_, Config) ->
    Config.

end_per_group(one_scheduler, Config) -> peer:stop(proplists:get_value(peer, Config));
end_per_group(_, _) -> ok.

%% A module belongs to one run, and systems share theirs: one after the other.
verdicts_are_as_expected(Config) ->
    Runs = how_often(),
    Wrong = case proplists:get_value(peer, Config) of
        undefined -> disagreeing(Runs);
        Peer -> peer:call(Peer, ?MODULE, disagreeing, [Runs], infinity)
    end,
    ?assertEqual([], lists:sublist(Wrong, 5)).

disagreeing(Runs) ->
    [{Name, Source, Result, Expected} || #{name := Name} = System <- witness_share:inside(?MODULE, witness_sys:all()),
                                         Expected <- [witness_sys_inline:expected(System)],
                                         {Source, Times} <- sources(Runs), _ <- lists:seq(1, Times),
                                         Result <- [run(System, Source)],
                                         not as_expected(Result, witness_sys:outcome(System), Expected)].

sources(N) ->
    case witness_trace_native:available() of
        ok -> [{native, N - N div 3}, {evm, N div 3}];
        {error, _} -> [{evm, N}]
    end.

as_expected({error, Text}, _, {refused, Words}) -> binary:match(Text, Words) =/= nomatch;
as_expected({Outcome, Counts}, Outcome, Expected) when is_map(Expected) -> witness_sys_inline:agrees(Counts, Expected);
as_expected(_, _, _) -> false.

run(#{system := {Module, _, _} = MFA, specs := Specs, monitors := Monitors, scope := Scope}, Source) ->
    case witness:start(#{system => MFA, scope => Scope, log => false, source => Source, instrument => inline, weave => [Module],
                         specs => [witness_sys:spec_file(S) || S <- Specs], monitors => Monitors}) of
        {ok, Run} ->
            Ended = witness:await(Run, ?RUN_TIMEOUT),
            Counts = witness_sys:counts(witness:verdicts(Run)),
            {ok, _} = witness:stop(Run),
            case Ended of
                {ok, #{system := {crashed, _}}} -> {crashed, Counts};
                {ok, #{system := normal}} -> {normal, Counts};
                {error, Reason} -> {Reason, Counts}
            end;
        {error, Reason} ->
            {error, unicode:characters_to_binary(witness:format_error(Reason))}
    end.

a_wrong_verdict_is_found(_) ->
    [System] = [S || #{name := calc_wrong} = S <- witness_sys:all()],
    Expected = witness_sys_inline:expected(System),
    ?assertEqual(#{~"reply_is_result" => [[{no, 1}]]}, Expected),
    ?assert(as_expected({normal, [{~"reply_is_result", no, 1}]}, normal, Expected)),
    [?assertNot(as_expected(Result, normal, Expected))
     || Result <- [{normal, [{~"reply_is_result", yes, 1}]}, {normal, []}, {crashed, [{~"reply_is_result", no, 1}]},
                   {normal, [{~"other", no, 1}, {~"reply_is_result", no, 1}]}, {error, ~"refused"}]],
    %% Of what a signal ends, less may be known, and nothing else.
    [Links] = [S || #{name := links} = S <- witness_sys:all()],
    Burns = maps:with([~"burns"], witness_sys_inline:expected(Links)),
    [?assertEqual({Counts, Agrees},
                  {Counts, as_expected({normal, [{~"burns", Verdict, N} || {Verdict, N} <- Counts]}, normal, Burns)})
     || {Counts, Agrees} <- [{[{yes, 6}], true}, {[{inconclusive, 6}], true}, {[{inconclusive, 2}, {yes, 4}], true},
                             {[{no, 1}, {yes, 5}], false}, {[{inconclusive, 2}, {yes, 3}], false}, {[], false}]].
