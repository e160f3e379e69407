-module(witness_modes).
-moduledoc """
What the ways to connect monitors with a system cost, side by side in one run and interleaved: inline, central and outline,
the latter two over both sources.

Two loads of `m:witness_load`:

- `saturated` (`flat/4`): every process works as fast as possible; the system's own wall-clock counts;
- `paced` (`paced/5`): workers start at a steady rate that leaves the machine idle most of the time; the response time
  of requests counts.

Three analyses (`m:witness_load_monitor`), by a monitor for each process: `none` reads every event and does nothing with
it; `sequence` checks that the trace is sound; `5us` computes for five microseconds at each event. With `workers` beside a mode
the master has no monitor; with `nobody` no process has one. `predecessor` is the inline mode of detectEr, if it is on the code
path (`m:witness_modes_predecessor`); none of its monitors has a verdict, which counts as gaps.

In every run with `sequence` each monitor must find its trace sound. If a mode reaches its budget under load, monitors
have gaps: these are counted, but a wrong verdict is an error.

Usage: `witness_modes:main([Load, Repetitions, Modes, Analyses | Numbers])`: modes and analyses separated by commas; the
numbers are those of the load.
""".

-export([main/1]).

-spec main([string()]) -> no_return().
main([Load, Repetitions, Modes, Analyses | Numbers]) ->
    N = list_to_integer(Repetitions),
    Rounds = witness_bench_work:rounds(5),
    io:format("OTP ~s, ~w scheduler(s), ~s load ~s, medians of ~w~n",
              [erlang:system_info(otp_release), erlang:system_info(schedulers_online), Load,
               lists:join(" ", Numbers), N]),
    {Here, Absent} = lists:partition(fun available/1, string:split(Modes, ",", all)),
    _ = Absent =:= [] orelse io:format("not available here: ~ts~n", [lists:join(", ", Absent)]),
    Variants = [{untraced, none} | [{Mode, analysis(A, Rounds)} || A <- string:split(Analyses, ",", all), Mode <- Here]],
    Given = {list_to_existing_atom(Load), [list_to_integer(A) || A <- Numbers]},
    lists:foreach(fun(V) -> run(V, warm_up(Given)) end, Variants),
    Results = [{V, told(I, V, run(V, Given))} || I <- lists:seq(1, N), V <- Variants],
    table(Variants, maps:groups_from_list(fun({V, _}) -> V end, fun({_, R}) -> R end, Results)),
    halt(0).

available("predecessor" ++ _) -> witness_modes_predecessor:available();
available(_) -> true.

warm_up({Load, [Workers | Others]}) -> {Load, [min(Workers, 200) | Others]}.

analysis("none", _) -> {none, {witness_load_monitor, empty}};
analysis("sequence", _) -> {sequence, {witness_load_monitor, check}};
analysis("5us", Rounds) -> {'5us', {witness_load_busy, Rounds}}.

told(I, V, Result = #{system := T}) ->
    io:format(standard_error, "~w: ~ts ~.2f s~n", [I, name(V), T / 1.0e6]),
    Result.

name({untraced, none}) -> "untraced";
name({Mode, {Analysis, _}}) -> [Mode, " ", atom_to_list(Analysis)].

%% --- the table -------------------------------------------------------------------

table(Variants, Results) ->
    io:format("~-28s ~9s ~11s ~11s ~10s ~9s ~9s ~9s ~7s~n",
              ["", "system s", "x untraced", "x done", "x memory", "mean us", "x mean", "x p99", "gaps"]),
    #{{untraced, none} := Unit} = Medians = #{V => medians(Rs) || V := Rs <- Results},
    lists:foreach(fun(V) ->
        #{V := #{system := T, done := Done, peak := Peak, mean := Mean, p99 := P99, gaps := Gaps}} = Medians,
        io:format("~-28ts ~9.2f ~11s ~11s ~10s ~9.1f ~9s ~9s ~7w~n",
                  [name(V), T / 1.0e6, ratio(T, system, Unit), ratio(Done, system, Unit), ratio(Peak, peak, Unit),
                   Mean / 1000, ratio(Mean, mean, Unit), ratio(P99, p99, Unit), Gaps])
    end, Variants).

medians(Results) ->
    #{Key => witness_overhead:median([maps:get(Key, R) || R <- Results])
      || Key <- [system, done, peak, mean, p99, gaps]}.

ratio(Value, Key, Unit) ->
    case Unit of
        #{Key := Of} when Of > 0 -> io_lib:format("~.2f", [Value / Of]);
        #{} -> "-"
    end.

%% --- one run ---------------------------------------------------------------------

run(Variant, {Load, Numbers}) ->
    Responses = counters:new(500, [write_concurrency]),
    {Function, Args} = system(Load, Numbers, Responses),
    Result = #{undecided := Gaps} = witness_overhead:measure(fun() -> measured(Variant, Function, Args) end),
    maps:merge(Result#{gaps => Gaps}, responses([counters:get(Responses, C) || C <- lists:seq(1, 500)])).

system(saturated, Numbers, _) -> {flat, [self() | Numbers]};
system(paced, Numbers, Responses) -> {paced, [self() | Numbers] ++ [Responses]}.

responses(Counts) ->
    case lists:sum(Counts) of
        0 -> #{mean => 0, p99 => 0};
        All ->
            Times = [{witness_load:response({counter, C}), N} || {C, N} <- lists:enumerate(Counts), N > 0],
            #{mean => lists:sum([T * N || {T, N} <- Times]) / All, p99 => percentile(Times, All * 0.99)}
    end.

percentile([{_, N} | Times], Rank) when N < Rank, Times =/= [] -> percentile(Times, Rank - N);
percentile([{T, _} | _], _) -> T.

measured({untraced, none}, Function, Args) ->
    {_, Ref} = spawn_monitor(witness_load, Function, Args),
    T = system(),
    receive {'DOWN', Ref, process, _, normal} -> {T, T, 0} end;
measured({Mode, {_, Monitor}}, Function, Args) ->
    {Way, Read} = case string:lexemes(Mode, " ") of
        [M] -> {M, [node, client, Function]};
        [M, "workers"] -> {M, [node, client]};
        [M, "nobody"] -> {M, [nobody]}
    end,
    Monitors = lists:sum([lists:nth(2, Args) || lists:member(node, Read)] ++ [1 || lists:member(Function, Read)]),
    watched(Way, Monitor, Function, Args, Read, Monitors).

watched("predecessor", Monitor, Function, Args, Read, Monitors) ->
    T = witness_modes_predecessor:run(Function, Args, Read, Monitor),
    {T, T, Monitors};
watched(Way, Monitor, Function, Args, Read, Monitors) ->
    Begin = erlang:monotonic_time(microsecond),
    {ok, Run} = witness:start((mode(Way))#{
        system => {witness_load, Function, Args}, max_verdicts => 0, drain => infinity, log => false,
        monitors => [{{witness_load, F, '_'}, Monitor} || F <- Read]}),
    T = system(),
    {ok, #{verdicts := #{no := 0, inconclusive := Undecided, yes := Sound}}} = witness:await(Run, infinity),
    Done = erlang:monotonic_time(microsecond) - Begin,
    {ok, _} = witness:stop(Run),
    %% If gathering was given up, later workers have no monitor at all.
    Unseen = Monitors - Sound - Undecided,
    true = Unseen =:= 0 orelse Undecided > 0,
    {T, Done, Undecided + Unseen}.

mode("inline") -> #{instrument => inline, weave => [witness_load]};
mode("central/" ++ Source) -> #{instrument => central, source => list_to_existing_atom(Source)};
mode("outline/" ++ Source) -> #{instrument => outline, source => list_to_existing_atom(Source)}.

system() -> receive {done, _, _, T} -> T end.
