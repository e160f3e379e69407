-module(witness_agreement_SUITE).
-moduledoc """
Verdicts agree: the systems of `m:witness_sys` get the verdicts that are expected of them, run after run, in this VM and
in one with a single scheduler. Adding specifications and monitors changes nothing.

Each system is a group. Several are run at the same time, in lanes, so runs of Witness also stand beside each other;
the VM with one scheduler works at the same time. The environment variable `WITNESS_AGREEMENT_RUNS` says how often each
system is run, in both; `make agreement` runs each 100 times. One run in four is over the VM's tracing, the others over the
native source, where there is one.
""".

-include_lib("stdlib/include/assert.hrl").

-export([all/0, groups/0, suite/0, init_per_suite/1, end_per_suite/1, init_per_group/2, end_per_group/2]).
-export([verdicts_are_as_expected/1, more_specifications_change_nothing/1,
         the_set_has_at_least_thirty_systems/1]).
-export([prepare/0, runs/3]).

-define(LANES, 4).
-define(RUNS, 2).
-define(RUNS_WITH_MORE, 2).
-define(RUN_TIMEOUT, 120_000).

suite() -> [{timetrap, {minutes, 5 + how_often()}}].

all() ->
    [the_set_has_at_least_thirty_systems, {group, both}].

groups() ->
    Names = witness_share:inside(?MODULE, [Name || #{name := Name} <- witness_sys:all()]),
    Lanes = [{lane(N), [], [{group, Name} || {I, Name} <- lists:enumerate(Names), I rem ?LANES =:= N rem ?LANES]}
             || N <- lists:seq(1, ?LANES)],
    InLanes = [{group, Lane} || {Lane, _, _} <- Lanes],
    [{both, [parallel], [{group, all_schedulers}, {group, one_scheduler}]},
     {all_schedulers, [parallel], InLanes}, {one_scheduler, [parallel], InLanes}] ++ Lanes ++
        [{Name, [], [verdicts_are_as_expected, more_specifications_change_nothing]} || Name <- Names].

lane(N) -> list_to_atom("lane_" ++ integer_to_list(N)).

init_per_suite(Config) ->
    Before = prepare(),
    [{level, Before} | Config].

end_per_suite(Config) ->
    ok = logger:set_primary_config(level, proplists:get_value(level, Config)).

%% What crashes in the systems crashes on purpose; and a process that first has to load code sends and receives messages
%% for it.
prepare() ->
    #{level := Before} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, none),
    ok = code:ensure_modules_loaded(witness_sys:modules()),
    {ok, _} = application:ensure_all_started(witness),
    Before.

init_per_group(one_scheduler, Config) ->
    Paths = lists:append([["-pa", Dir] || Dir <- code:get_path(), filename:basename(Dir) =/= "."]),
    Erl = filename:join([code:root_dir(), "bin", "erl"]),
    {ok, Peer, _} = peer:start(#{connection => standard_io, exec => Erl, args => ["+S", "1" | Paths], wait_boot => ?RUN_TIMEOUT}),
    1 = peer:call(Peer, erlang, system_info, [schedulers]),
    _ = peer:call(Peer, ?MODULE, prepare, [], ?RUN_TIMEOUT),
    [{peer, Peer} | Config];
init_per_group(Group, Config) ->
    case [System || #{name := Name} = System <- witness_sys:all(), Name =:= Group] of
        [System] -> [{system, System} | Config];
        [] -> Config
    end.

end_per_group(one_scheduler, Config) ->
    peer:stop(proplists:get_value(peer, Config));
end_per_group(_, _) ->
    ok.

the_set_has_at_least_thirty_systems(_) ->
    Systems = witness_sys:all(),
    ?assert(length(Systems) >= 30),
    ?assertEqual(length(Systems), length(lists:usort([Name || #{name := Name} <- Systems]))).

verdicts_are_as_expected(Config) ->
    System = proplists:get_value(system, Config),
    agree(System, expected(System), runs(Config, System, #{}, how_often())).

%% How many runs over which source.
sources(N) ->
    case witness_trace_native:available() of
        ok -> [{native, N - max(1, N div 4)}, {evm, max(1, N div 4)}];
        {error, _} -> [{evm, N}]
    end.

how_often() ->
    witness_setting:number("WITNESS_AGREEMENT_RUNS", ?RUNS).

%% The verdicts of the added monitors are not compared, but none of them may be `no'.
more_specifications_change_nothing(Config) ->
    System = proplists:get_value(system, Config),
    %% Two groups do this for the same system at the same time.
    Where = case proplists:is_defined(peer, Config) of true -> "peer"; false -> "here" end,
    Added = more_specifications(System, filename:join(proplists:get_value(priv_dir, Config), Where)),
    More = #{specs => [witness_sys:spec_file("nothing.hml") | Added],
             monitors => [{{'_', '_', '_'}, {witness_sys_faulty, crash}}]},
    Results = runs(Config, System, More, ?RUNS_WITH_MORE),
    agree(System, without_more(expected(System)), [{Source, without_more(R)} || {Source, R} <- Results]).

expected(System) -> {witness_sys:outcome(System), witness_sys:expected(System)}.

agree(#{name := Name}, Expected, Results) ->
    Wrong = [{Source, I, R} || {I, {Source, R}} <- lists:enumerate(Results), R =/= Expected],
    ?assertEqual({Name, Expected, []}, {Name, Expected, lists:sublist(Wrong, 5)}).

%% One file reads the same processes; the group of the other file is the whole tree.
more_specifications(#{name := Name, specs := Specs, system := {M, F, A}}, Dir) ->
    Whole = ["[_ <- _, _] max X.([_ ? _] X and [_:_ ! _] X and [_ -> _, _] X and [_ <- _, _] X and [_ ** _] X).\n"],
    Same = [["more_", integer_to_list(I), ": with ", Signature, " check ", Whole]
            || {I, Signature} <- lists:enumerate(signatures(Specs))],
    Group = io_lib:format("more_group: with ~w:~w(~s) group check ~s",
                          [M, F, lists:join(", ", ["_" || _ <- A]), Whole]),
    [begin
         File = filename:join(Dir, lists:concat([Name, "_", Kind, ".hml"])),
         ok = filelib:ensure_dir(File),
         ok = file:write_file(File, unicode:characters_to_binary(Text)),
         File
     end || {Kind, Text} <- [{same, Same}, {group, Group}]].

signatures(Specs) ->
    lists:append([begin
                      {ok, #{entries := Entries} = Map, _} = witness_spec:compile_file(witness_sys:spec_file(Spec)),
                      ok = witness_spec:unload(Map),
                      [Signature || #{signature := Signature, action := monitor} <- Entries]
                  end || Spec <- Specs]).

without_more({error, _} = Error) ->
    Error;
without_more({Outcome, Counts}) ->
    {Outcome, [Count || {Property, Verdict, _} = Count <- Counts, not added(Property, Verdict)]}.

added(<<"more_", _/binary>>, Verdict) -> Verdict =/= no;
added(Property, _) -> Property =:= ~"witness_sys_faulty".

%% N runs of a system, here or in the peer.
runs(Config, System, More, N) ->
    lists:append([begin
                      Given = More#{source => Source},
                      Results = case proplists:get_value(peer, Config) of
                          undefined -> runs(System, Given, Times);
                          Peer -> peer:call(Peer, ?MODULE, runs, [System, Given, Times], 2 * N * ?RUN_TIMEOUT)
                      end,
                      [{Source, R} || R <- Results]
                  end || {Source, Times} <- sources(N)]).

%% After a run that did not end none is tried again.
runs(_, _, 0) ->
    [];
runs(System, More, N) ->
    case run(System, More) of
        {error, _} = Error -> [Error];
        Result -> [Result | runs(System, More, N - 1)]
    end.

run(#{system := MFA, specs := Specs, monitors := Monitors, scope := Scope}, More) ->
    Options = #{system => MFA, scope => Scope, log => false, source => maps:get(source, More),
                specs => [witness_sys:spec_file(S) || S <- Specs] ++ maps:get(specs, More, []),
                monitors => Monitors ++ maps:get(monitors, More, [])},
    case witness:start(maps:merge(Options, maps:with([instrument], More))) of
        {ok, Run} ->
            Ended = witness:await(Run, ?RUN_TIMEOUT),
            Counts = witness_sys:counts(witness:verdicts(Run)),
            _ = witness:stop(Run),
            result(Ended, Counts);
        {error, Reason} ->
            {error, unicode:characters_to_binary(witness:format_error(Reason))}
    end.

result({ok, #{system := {crashed, _}}}, Counts) -> {crashed, Counts};
result({ok, #{system := normal}}, Counts) -> {normal, Counts};
result({error, Reason}, Counts) -> {error, {Reason, Counts}}.
