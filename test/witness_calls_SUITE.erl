-module(witness_calls_SUITE).
-moduledoc """
A recorded program does what it does unrecorded, and its replay does the same: every call of the table of recorded calls, in every
way to call it, with arguments that succeed and that fail. The program is generated from the table.
""".
-include_lib("stdlib/include/assert.hrl").

-compile([export_all, nowarn_export_all]).

-define(A, witness_recorded_arguments).
-define(WRITTEN, witness_recorded_written).

suite() -> [{timetrap, {minutes, 10}}].

all() -> [every_row_has_arguments, recorded_and_replayed_as_unrecorded].

init_per_suite(Config) ->
    Out = filename:join(proplists:get_value(priv_dir, Config), "programs"),
    ok = witness_record_programs:compile(Out),
    true = code:add_patha(Out),
    ok = witness_calls_program:write(?WRITTEN, rows(), Out),
    [{programs, Out} | Config].

end_per_suite(Config) ->
    _ = code:del_path(proplists:get_value(programs, Config)),
    ok.

rows() -> [MFA || MFA <- witness_record_calls:rows(), witness_calls_program:is_there(MFA)] -- ?A:never().

%% --- cases -----------------------------------------------------------------------

every_row_has_arguments(_) ->
    Given = lists:usort(?A:only_failing() ++ [{M, F, arity(Entry)} || M <- lists:usort([M || {M, _, _} <- rows()]),
                                                                      Entry <- ?A:entries(M), F <- [element(2, Entry)]]),
    ?assertEqual([], rows() -- Given),
    %% Those of another OTP may have no row here.
    ?assertEqual([], [MFA || MFA <- Given, witness_calls_program:is_there(MFA)] -- rows()).

arity({_, _, Args}) -> length(Args);
arity({_, _, Arity, _}) -> Arity.

modules() -> witness_share:inside(?MODULE, lists:usort([M || {M, _, _} <- rows()])).

recorded_and_replayed_as_unrecorded(Config) ->
    Out = proplists:get_value(programs, Config),
    Files = filename:join(proplists:get_value(priv_dir, Config), "files"),
    ok = filelib:ensure_path(Files),
    true = os:putenv("WITNESS_ARGUMENTS_DIR", Files),
    Unrecorded = unrecorded(Out),
    %% What is said to succeed does.
    Called = [MFA || {M, _, _} = MFA <- rows(), lists:member(M, modules())],
    Fails = (Called -- [MFA || {{MFA, _, direct}, {outcome, {value, _}, _}} <- Unrecorded]) --
        (?A:only_failing() ++ [{erlang, exit, 1}, {erlang, raise, 3}]),
    ?assertEqual([], [Odd || {_, Outcome} = Odd <- Unrecorded, element(1, Outcome) =/= outcome]),
    Dir = filename:join(proplists:get_value(priv_dir, Config), "recording"),
    {ok, #{outcome := recorded}} =
        witness_record:record(#{run => {witness_recorded_calls, run, [?WRITTEN, ?A, modules()]}, dir => Dir, pa => [Out]}),
    {ok, Recording} = witness_log_recording:open(Dir),
    {ok, {outcomes, Recorded}} =
        witness_log_recording:fold(fun({exit, Reason}, _) -> Reason; (_, Found) -> Found end, none, 1, Recording),
    Differ = [{Key, One, Other} || {{Key, One}, {Key, Other}} <- lists:zip(Unrecorded, Recorded), One =/= Other],
    ?assertEqual([], Fails),
    ?assertEqual([], Differ),
    ?assertMatch({ok, #{outcome := identical, complete := true}}, witness_replay:replay(#{dir => Dir})).

unrecorded(Out) ->
    Witness = filename:dirname(code:which(witness_record_calls)),
    {ok, Peer, _} = peer:start_link(#{connection => standard_io, args => ["-pa", Out, Witness]}),
    try
        peer:call(Peer, witness_recorded_calls, outcomes, [?WRITTEN, ?A, modules()], infinity)
    after
        peer:stop(Peer)
    end.
