-module(witness_web_bench_data).
-moduledoc """
The data for the page of a benchmark's report: from the rows of an experiment, its samples and its response times to
JSON. The page has the same types, in `assets/src/bench-data.ts`.

Long series are thinned: a time line to its maxima within 250 stretches of time, response times to their quantiles, the
arrivals to sums over at most 200 stretches. So the size of a page does not depend on the size of the raw data.
""".

-export([to_json/4]).

-define(MAX_STRETCHES, 200).
-define(MAX_MOMENTS, 250).
-define(QUANTILES, [0.001, 0.005 | [I / 100 || I <- lists:seq(1, 99)]] ++ [0.995, 0.999, 0.9999]).
-define(MAX_TEXT_CHARS, 2000).

-type raw() :: #{samples := fun((Id :: binary()) -> [#{binary() => binary()}]),
                 histogram := fun((Id :: binary()) -> [{integer(), integer(), integer()}])}.

-doc """
An experiment, with the value of its file, and what was measured. Throws
`{damaged, File}` if samples have no numbers; exceptions of `Raw` are passed on.
""".
-spec to_json(#{binary() => json:decode_value()}, witness_bench_experiment:experiment(),
              [witness_bench_result:row(), ...], raw()) -> #{atom() => witness_web_data:json()}.
to_json(Source, #{papers := Papers} = Experiment, Rows, #{samples := Samples, histogram := Histogram}) ->
    #{name => text(maps:get(name, Experiment)), about => text(maps:get(about, Experiment)),
      parameters => [[text(Key), text(json:encode(Value))]
                     || {Key, Value} <- lists:sort(maps:to_list(maps:without([~"name", ~"about"], Source)))],
      runs => [run(Row) || Row <- Rows],
      steps => [step(Step) || Step <- witness_bench_evaluate:steps(Rows)],
      growth => [growth(Metric, G) || Metric <- [response_mean_ns, system_memory_mean, system_utilisation],
                                      #{slope := _} = G <- witness_bench_evaluate:growth(Metric, Rows)],
      arrivals => arrivals(Experiment, Rows),
      timelines => [(series(Row))#{id => text(Id), repetition => Repetition, samples => timeline(Id, Samples(Id))}
                    || #{id := Id, repetition := Repetition} = Row <- witness_bench_evaluate:largest_of(~"", Rows)],
      responses => responses(Rows, Histogram),
      idle => idle(Experiment, Rows),
      variability => [(series(V))#{first => First, variation => #{Metric => float(X) || Metric := X <- Variation}}
                      || #{first := First, variation := Variation} = V <- witness_bench_evaluate:variability(Rows)],
      papers => [[text(Shape), [text(Line) || Line <- Lines]]
                 || Shape <- lists:uniq([Shape || #{shape := Shape} <- Rows]),
                    [_ | _] = Lines <- [witness_bench_papers:overhead(Papers, Shape)]],
      paper_growth => witness_bench_papers:growth(),
      paper_variability => witness_bench_papers:variability()}.

%% The properties that distinguish series in a drawing.
series(Of) ->
    Texts = #{Key => text(Text) || Key := Text <- maps:with([shape, variant, mode, analysis], Of)},
    maps:merge(Texts, maps:with([n], Of)).

run(#{status := Status} = Row) ->
    (series(Row))#{id => text(maps:get(id, Row)), status => atom_to_binary(Status),
                   reason => text(maps:get(reason, Row, undefined)), trouble => text(maps:get(trouble, Row, undefined)),
                   sound => case Row of #{sound := ~"true"} -> true; #{sound := _} -> false; #{} -> null end,
                   numbers => maps:with([repetition, attempt, gaps, events, analysed, yes, no, inconclusive, messages,
                                         members, lag_max_ns, seed], Row)}.

step({#{w := W, t := T} = Place, Compared}) ->
    (series(Place))#{w => W, t => T, load_ms => maps:get(load_ms, Place, null),
                     compared => [(series(C))#{repetitions => Repetitions, gaps => Gaps, problems => length(Problems),
                                               metrics => maps:map(fun metric/2, Metrics)}
                                  || #{repetitions := Repetitions, gaps := Gaps, problems := Problems,
                                       metrics := Metrics} = C <- Compared]}.

metric(_, #{median := Median, spread := {Low, High}} = Metric) ->
    [Median, Low, High | case Metric of
        #{overhead := Overhead, overheads := {Least, Most}} -> [Overhead, Least, Most];
        #{} -> []
    end].

growth(Metric, #{slope := Slope, r2 := R2, points := Points} = Growth) ->
    (series(Growth))#{metric => atom_to_binary(Metric), slope => Slope,
                      %% Two points always lie on a line.
                      r2 => case Points of [_, _] -> null; _ -> R2 end}.

%% --- load shapes ----------------------------------------------------------------

%% The arrivals of each series at its largest step, by the seed of the first row.
arrivals(Experiment, Rows) ->
    Largest = [lists:last(lists:sort(fun(#{n := A}, #{n := B}) -> A =< B end, Of))
               || Of <- witness_bench_result:groups(fun(#{shape := S, variant := V}) -> {S, V} end, Rows)],
    Planned = #{{S, V, N} => Model || #{shape := S, variant := V, n := N, model := Model}
                                          <- witness_bench_experiment:benchmarks(Experiment, 1)},
    [(series(maps:without([mode, analysis], Row)))#{seconds => T * Period / 1000, counts => sum_stretches(Order)}
     || #{shape := S, variant := V, n := N} = Row <- Largest,
        #{{S, V, N} := Json} <- [Planned],
        {ok, #{t := T, shape := Shape, period_ms := Period, seed := Seed}} <- [witness_bench_model:parse(Json)],
        Order <- [witness_bench_shape:order(Shape, N, T, witness_bench_random:stream(shape, Seed))]].

%% Sums over stretches of units of time. Each has its start and its end, as fractions of the whole.
sum_stretches(Order) ->
    Units = length(Order),
    Length = max(1, ceil(Units / ?MAX_STRETCHES)),
    sum_stretches(Order, 0, Units, Length).

sum_stretches([], _, _, _) -> [];
sum_stretches(Order, At, Units, Length) ->
    {Now, Later} = lists:split(min(Length, length(Order)), Order),
    [[At / Units, (At + length(Now)) / Units, lists:sum(Now)] | sum_stretches(Later, At + length(Now), Units, Length)].

%% --- over time ------------------------------------------------------------------

timeline(Id, Samples) ->
    Columns = [~"memory", ~"utilisation", ~"members", ~"tracers", ~"messages_per_s", ~"events", ~"gaps"
               | scheduler_columns(Samples)],
    Rows = try [{parse_number(~"time_ms", S), maps:get(~"window", S), [parse_number(C, S) || C <- Columns]} || S <- Samples]
           catch error:_ -> throw({damaged, [~"samples/", Id, ~".csv"]})
           end,
    #{columns => Columns, rows => thin(Rows, max(1, ceil(length(Rows) / ?MAX_MOMENTS)))}.

scheduler_columns([]) -> [];
scheduler_columns([Sample | _]) ->
    [Column || N <- lists:seq(1, map_size(Sample)), Column <- [<<"scheduler_", (integer_to_binary(N))/binary>>],
     is_map_key(Column, Sample)].

%% A peak that lasts for one sample must stay.
thin([], _) -> [];
thin(Rows, Every) ->
    {Now, Later} = lists:split(min(Every, length(Rows)), Rows),
    {Time, Window, _} = lists:last(Now),
    [Most | Others] = [Numbers || {_, _, Numbers} <- Now],
    [[Time, Window =:= ~"system" | lists:foldl(fun(A, B) -> lists:zipwith(fun erlang:max/2, A, B) end, Most, Others)]
     | thin(Later, Every)].

parse_number(Column, Sample) ->
    Text = maps:get(Column, Sample),
    try binary_to_integer(Text) catch error:badarg -> binary_to_float(Text) end.

%% --- response times ---------------------------------------------------------------

%% All repetitions of a combination at its largest step, merged.
responses(Rows, Histogram) ->
    Cells = witness_bench_result:groups(fun witness_bench_result:cell/1, [Row || #{status := ok} = Row <- Rows]),
    Largest = #{{S, V} => lists:max([N || #{n := N, shape := S1, variant := V1} <- Rows, S1 =:= S, V1 =:= V])
                || #{shape := S, variant := V} <- Rows},
    [(series(Row))#{quantiles => [[Q, quantile_ms(Q, Buckets)] || Q <- ?QUANTILES],
                    count => witness_bench_statistics:count(Buckets), fits => fits(Mode, Buckets)}
     || [#{shape := S, variant := V, n := N, mode := Mode} = Row | _] = Cell <- Cells, map_get({S, V}, Largest) =:= N,
        [_ | _] = Buckets <- [merge_histograms([Histogram(Id) || #{id := Id} <- Cell])]].

quantile_ms(Q, Buckets) -> max(1, witness_bench_statistics:quantile(Q, Buckets)) / 1.0e6.

merge_histograms(Histograms) ->
    Counts = lists:foldl(fun({Low, High, Count}, Sums) ->
                             maps:update_with({Low, High}, fun(Sum) -> Sum + Count end, Count, Sums)
                         end, #{}, lists:append(Histograms)),
    [{Low, High, Count} || {{Low, High}, Count} <- lists:sort(maps:to_list(Counts))].

%% Only the response times of the untraced system are fitted.
fits(~"untraced", Buckets) ->
    Fits = witness_bench_evaluate:best_fit(Buckets),
    [#{family => atom_to_binary(element(1, D)), parameters => [element(2, D), element(3, D)], d => Distance,
       shares => [witness_bench_statistics:cdf(D, quantile_ms(Q, Buckets)) || Q <- ?QUANTILES]}
     || #{distribution := D, d := Distance} <- Fits];
fits(_, _) -> [].

idle(#{sizes := Sizes, steps := Steps}, Rows) ->
    [#{size => Size, shape => text(Shape), mode => text(Mode), metric => atom_to_binary(Metric),
       points => [[N, Ns] || {N, Ns} <- Points],
       fit => case Fit of
           none -> null;
           #{coefficients := Coefficients, r2 := R2} -> #{degree => length(Coefficients) - 1, r2 => R2}
       end}
     || #{size := Size, shape := Shape, mode := Mode, metric := Metric, points := [_ | _] = Points, fit := Fit}
            <- witness_bench_evaluate:idle_time(Sizes, Steps, Rows)].

text(undefined) -> null;
text(Text) -> unicode:characters_to_binary(witness_text:cut(witness_text:clean(Text), ?MAX_TEXT_CHARS)).
