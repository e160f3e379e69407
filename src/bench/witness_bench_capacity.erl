-module(witness_bench_capacity).
-moduledoc """
Finds a loading time with which an experiment's largest step does not saturate the machine (`"t": "fit"`): the 100
units of the papers, or more if needed.

A time is long enough if two conditions hold in untraced benchmarks of every shape. No member is created later than a period
after its time, and the average utilisation of the schedulers is below 70 %. Short probes, with the same creation rate of
members, first find the time to a tenth; then the benchmark itself must confirm it.
""".

-export([find/3, saved/1, save/3]).

-export_type([probe/0]).

-doc "The result of a probe: whether its loading time is long enough.".
-type probe() :: #{shape := binary(), n := pos_integer(), t := pos_integer(), fits := boolean(),
                   lag_max_ns => number(), utilisation => number()}.

-define(MAX_UTILISATION_PERCENT, 70).
-define(PROBE_S, 10).
-define(MIN_T_S, 100).
-define(MAX_T_S, 20_000).

-doc "The loading time. `Measure` runs an untraced benchmark; `Tell` is called with each probe.".
-spec find(witness_bench_experiment:experiment(), Measure, Tell) ->
    {ok, T :: pos_integer(), [probe()]} | interrupted | {error, unicode:chardata()}
        when Measure :: fun((witness_bench_experiment:benchmark()) ->
                                {ok, map()} | {failed | unsound, unicode:chardata()} | interrupted),
             Tell :: fun((probe()) -> term()).
find(#{steps := Steps} = Experiment, Measure, Tell) ->
    N = lists:last(Steps),
    Ask = fun(T, Length, Probes) -> ask(T, Length, N, Experiment, Measure, Tell, Probes) end,
    try
        {T, Probes} = search(?MIN_T_S, none, none, Ask, []),
        confirm(T, Ask, Probes)
    catch
        throw:interrupted -> interrupted;
        throw:{failed, Why} ->
            {error, [~"no loading time was found: an untraced benchmark could not be measured: ", Why]};
        throw:too_long ->
            {error, io_lib:format("no loading time was found: in ~b s this machine cannot do ~b members", [?MAX_T_S, N])}
    end.

%% `Bad' is too short, `Good' long enough.
search(_, Bad, Good, _, Probes) when is_number(Bad), is_number(Good), Good =< Bad * 1.1 -> {Good, Probes};
search(T, _, _, _, _) when T > ?MAX_T_S -> throw(too_long);
search(T, Bad, Good, Ask, Probes) ->
    case Ask(T, ?PROBE_S, Probes) of
        {true, More} when Bad =:= none -> {T, More};
        {true, More} -> halve(Bad, T, Ask, More);
        {false, More} when Good =:= none -> search(T * 2, T, none, Ask, More);
        {false, More} -> halve(T, Good, Ask, More)
    end.

halve(Bad, Good, Ask, Probes) -> search(max(Bad + 1, min(Good - 1, (Bad + Good) div 2)), Bad, Good, Ask, Probes).

confirm(T, _, _) when T > ?MAX_T_S -> throw(too_long);
confirm(T, Ask, Probes) ->
    case Ask(T, T, Probes) of
        {true, More} -> {ok, T, lists:reverse(More)};
        {false, More} -> confirm(ceil(T * 1.15), Ask, More)
    end.

%% Whether the time is long enough for all shapes, with the members of so many seconds.
ask(T, Length, N, #{shapes := Shapes} = Experiment, Measure, Tell, Probes) ->
    Seconds = min(T, Length),
    shapes(Shapes, max(1, round(N * Seconds / T)), Seconds, Experiment, Measure, Tell, Probes).

shapes([], _, _, _, _, _, Probes) -> {true, Probes};
shapes([{Label, _} = Shape | Shapes], N, T, Experiment, Measure, Tell, Probes) ->
    case Measure(witness_bench_experiment:probe(Experiment, Shape, N, T)) of
        {ok, #{lag := #{max := Lag}, windows := #{system := #{utilisation := Utilisation}}}} ->
            Fits = Lag < period(Experiment) * 1_000_000 andalso Utilisation < ?MAX_UTILISATION_PERCENT,
            Probe = #{shape => Label, n => N, t => T, fits => Fits, lag_max_ns => Lag, utilisation => Utilisation},
            Tell(Probe),
            case Fits of
                true -> shapes(Shapes, N, T, Experiment, Measure, Tell, [Probe | Probes]);
                false -> {false, [Probe | Probes]}
            end;
        {_, Why} -> throw({failed, Why});
        interrupted -> throw(interrupted)
    end.

period(#{model := Model}) -> maps:get(~"period_ms", Model, 1000).

-doc "The time that was found earlier.".
-spec saved(witness_bench_store:store()) -> {ok, pos_integer()} | none.
saved(Store) ->
    maybe
        {ok, Text} ?= witness_bench_store:saved(Store, "fit.json"),
        {ok, #{~"t" := T}} ?= witness_bench_json:decode(Text),
        true ?= is_integer(T) andalso T > 0,
        {ok, T}
    else
        _ -> none
    end.

-doc "Saves the time, with its probes.".
-spec save(witness_bench_store:store(), pos_integer(), [probe()]) -> ok.
save(Store, T, Probes) -> witness_bench_store:save(Store, "fit.json", witness_bench_json:lines(#{t => T, probes => Probes})).
