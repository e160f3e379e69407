-module(witness_bench_experiment).
-moduledoc """
An experiment: the measurements that a person has described in JSON (`docs/benchmarks.md`), and the resulting list of
benchmarks.

A whole file is checked before anything runs. A benchmark is one mode with one analysis on one model. Within a
repetition the modes take turns on the same model, and each repetition begins with another mode, so that slow
changes of the machine affect all of them alike. Every mode gets the identical workload, because the seed is
part of the model.
""".

-export([parse/2, read/1, benchmarks/2, probe/4, tables/0]).

-export_type([experiment/0, benchmark/0, mode/0, analysis/0, model/0]).

-doc "A model as in JSON, for `witness_bench_model:parse/1`.".
-type model() :: #{binary() => json:decode_value()}.
-doc "The tool that observes the system.".
-type mode() :: witness_bench_run:mode().
-doc "The work of monitors for an event.".
-type analysis() :: witness_bench_run:analysis().

-doc """
- `model`: the part that all benchmarks have in common; `t` may be `fit`;
- `seed`: that of all repetitions, or `free`: each has its own;
- `steps`: numbers of members, growing; `sizes`: if they are those of several series, the steps of each by its last one;
- `repetitions`: their number, or as many batches as the coefficient of variation needs (RIARC text, C.5.1);
- `source`: the value of the whole file.
""".
-type experiment() :: #{name := binary(), about := binary(), model := model(), modes := [mode(), ...],
                        analyses := [analysis(), ...], shapes := [{Label :: binary(), model()}, ...],
                        steps := [pos_integer(), ...], sizes := #{pos_integer() => [pos_integer(), ...]},
                        variants := [{Label :: binary(), model()}, ...],
                        repetitions := {fixed, pos_integer()}
                                     | {batches, #{batch := pos_integer(), most := pos_integer(), points := number()}},
                        warmup := non_neg_integer(), schedulers := pos_integer() | default,
                        interval_ms := pos_integer(), sample := number(),
                        memory_mb := pos_integer() | default, limit_s := pos_integer() | default,
                        tables := [atom(), ...], papers := high | moderate | none,
                        source := json:decode_value()}.

-doc "One benchmark. `id` names its files, and is the same each time; `seconds` is how long its members are created.".
-type benchmark() :: #{id := binary(), mode := mode(), mode_label := binary(), analysis := analysis(),
                       analysis_label := binary(), shape := binary(), variant := binary(), n := pos_integer(),
                       w := pos_integer(), t := pos_integer(), seconds := float(), seed := integer(),
                       repetition := pos_integer(), model := model()}.

-define(MAX_BENCHMARKS, 100_000). % benchmarks of an experiment
-define(SEED, 1).

-doc "The names of the tables that an experiment may ask for.".
-spec tables() -> [atom()].
tables() -> [overhead, steps, elasticity, response_fit, idle_time, variability].

%% Reading

-doc "The experiment of a file.".
-spec read(file:filename_all()) -> {ok, experiment(), Text :: binary()} | {error, unicode:chardata()}.
read(File) ->
    case file:read_file(File) of
        {ok, Text} ->
            case parse(Text, filename:dirname(File)) of
                {ok, Experiment} -> {ok, Experiment, Text};
                {error, Problem} -> {error, [File, ~": ", Problem]}
            end;
        {error, Reason} -> {error, [File, ~": ", file:format_error(Reason)]}
    end.

-doc "The experiment of a text. Relative file names in it start at the folder.".
-spec parse(binary(), Folder :: file:filename_all()) -> {ok, experiment()} | {error, unicode:chardata()}.
parse(Text, Folder) ->
    case witness_bench_json:decode(Text) of
        {ok, Source} ->
            try
                Experiment = experiment(Source, Folder),
                ok = models(Experiment),
                {ok, Experiment}
            catch
                throw:{wrong, Path, Expected} -> {error, [witness_bench_json:path(Path), ~": ", Expected]}
            end;
        {error, _} = Error -> Error
    end.

experiment(Source, Folder) ->
    Fields = witness_bench_json:object(Source, [], #{
        ~"name" => fun label/2,
        ~"about" => {fun witness_bench_json:text/2, ~""},
        ~"model" => {fun common/2, #{}},
        ~"modes" => list_of(fun mode/2, 20),
        ~"analyses" => {list_of(fun analysis/2, 20), [sequence]},
        ~"shapes" => list_of(fun(Shape, Path) -> shape(Shape, Path, Folder) end, 20),
        ~"steps" => fun steps/2,
        ~"variants" => {list_of(fun variant/2, 50), [{~"", #{}}]},
        ~"repetitions" => {fun repetitions/2, {fixed, 3}},
        ~"warmup" => {integer(0, 100), 1},
        ~"schedulers" => {integer(1, 1024), default},
        ~"interval_ms" => {integer(10, 60_000), 500},
        ~"sample" => {fun(Value, Path) -> witness_bench_json:number(Value, Path, 0.001, 1) end, 0.1},
        ~"memory_mb" => {integer(1, 1_000_000_000), default},
        ~"limit_s" => {integer(1, 1_000_000), default},
        ~"tables" => {list_of(one_of(tables()), 10), [overhead]},
        ~"papers" => {one_of([high, moderate]), none}}),
    #{~"steps" := {Steps, Sizes}, ~"modes" := Modes, ~"analyses" := Analyses, ~"variants" := Variants,
      ~"shapes" := Shapes} = Fields,
    ok = different(Variants, ~"variants"),
    ok = different(Shapes, ~"shapes"),
    Single = length(Steps) * length(Modes) * length(Analyses) * length(Variants) * length(Shapes),
    Single =< ?MAX_BENCHMARKS
        orelse witness_bench_json:wrong([], io_lib:format("~b benchmarks are more than ~b", [Single, ?MAX_BENCHMARKS])),
    Plain = #{Key => maps:get(atom_to_binary(Key), Fields)
              || Key <- [name, about, model, modes, analyses, shapes, variants, repetitions, warmup, schedulers,
                         interval_ms, sample, memory_mb, limit_s, tables, papers]},
    Plain#{steps => Steps, sizes => Sizes, source => Source}.

list_of(Check, Most) -> fun(Values, Path) -> witness_bench_json:list(Values, Path, Check, Most) end.

integer(Least, Most) -> fun(Value, Path) -> witness_bench_json:integer(Value, Path, Least, Most) end.

one_of(Names) -> fun(Value, Path) -> witness_bench_json:one_of(Value, Path, [{atom_to_binary(N), N} || N <- Names]) end.

one_of(Value, Path, Names, Else) ->
    witness_bench_json:one_of(Value, Path, [{atom_to_binary(Name), Name} || Name <- Names], [Else]).

different(Labelled, Key) ->
    Labels = [Label || {Label, _} <- Labelled],
    case [I || {I, Label} <- lists:enumerate(Labels), lists:member(Label, lists:sublist(Labels, I - 1))] of
        [] -> ok;
        [I | _] -> witness_bench_json:wrong([Key, I], ~"has the label of another one")
    end.

%% Labels become parts of file names.
label(Value, Path) ->
    Matches = is_binary(Value) andalso re:run(Value, ~B"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}\z", [{capture, none}]),
    Matches =:= match orelse
        witness_bench_json:wrong(Path, Value, ~"a name of at most 40 letters, digits, _ and -"),
    Value.

common(Model, Path) ->
    case model(Model, Path) of
        #{~"t" := T} when T =/= ~"fit", not (is_integer(T) andalso T >= 1 andalso T =< 1_000_000) ->
            witness_bench_json:wrong(Path ++ [~"t"], T, ~B(a whole number from 1 to 1000000 or "fit"));
        Checked -> Checked
    end.

%% Keys that a step or a shape determines are not allowed in the model.
model(Model, Path) when is_map(Model) ->
    [witness_bench_json:wrong(Path ++ [Key], [~"is given by ", Where])
     || {Key, Where} <- [{~"n", ~"steps"}, {~"shape", ~"shapes"}], is_map_key(Key, Model)],
    [witness_bench_json:wrong(Path ++ [Key], [~"is for the shape ", Shape, ~", in shapes"])
     || {Key, Shape} <- witness_bench_model:of_shapes(), is_map_key(Key, Model)],
    Model;
model(Value, Path) -> witness_bench_json:wrong(Path, Value, ~"an object").

mode(#{~"adapter" := _} = Mode, Path) ->
    #{~"adapter" := Name} = witness_bench_json:object(Mode, Path, #{~"adapter" => fun witness_bench_json:text/2}),
    {adapter, adapter(Name, Path ++ [~"adapter"])};
mode(Mode, Path) -> one_of(Mode, Path, witness_bench_witness:modes(), ~B({"adapter": MODULE})).

%% A name becomes an atom only if there is such a module.
adapter(Name, Path) ->
    (re:run(Name, ~B"^[A-Za-z][A-Za-z0-9_.]{0,99}\z", [{capture, none}]) =:= match
        andalso code:where_is_file(binary_to_list(Name) ++ ".beam") =/= non_existing)
        orelse witness_bench_json:wrong(Path, [~"there is no module ", Name, ~" on the code path (see --pa)"]),
    Module = binary_to_atom(Name),
    case witness_bench_adapter:check(Module) of
        ok -> Module;
        {error, Problem} -> witness_bench_json:wrong(Path, Problem)
    end.

analysis(#{~"microseconds" := _} = Analysis, Path) ->
    Check = fun(Value, At) -> witness_bench_json:number(Value, At, 0, 1_000_000) end,
    #{~"microseconds" := Microseconds} = witness_bench_json:object(Analysis, Path, #{~"microseconds" => Check}),
    {microseconds, Microseconds};
analysis(Analysis, Path) -> one_of(Analysis, Path, [none, sequence, idle_time], ~B({"microseconds": NUMBER})).

%% The model checks the values of its parameters. The name of a file is made absolute.
shape(#{~"shape" := Name} = Shape, Path, Folder) ->
    Label = label(maps:get(~"label", Shape, Name), Path ++ [~"label"]),
    Own = [~"shape", ~"label", ~"lambda" | [Key || {Key, _} <- witness_bench_model:of_shapes()]],
    is_map_key(~"n", Shape) andalso witness_bench_json:wrong(Path ++ [~"n"], ~"is given by steps"),
    [witness_bench_json:no_key(Path, Key, Own) || Key <- lists:sort(maps:keys(Shape)), not lists:member(Key, Own)],
    {Label, case maps:remove(~"label", Shape) of
                #{~"file" := File} = Parameters when is_binary(File) ->
                    Parameters#{~"file" := unicode:characters_to_binary(filename:absname(File, Folder))};
                Parameters -> Parameters
            end};
shape(Name, Path, _) when is_binary(Name) -> {label(Name, Path), #{~"shape" => Name}};
shape(Value, Path, _) -> witness_bench_json:wrong(Path, Value, ~"the name of a shape, or an object with shape").

steps(#{} = Steps, Path) ->
    #{~"sizes" := Sizes, ~"count" := Count} =
        witness_bench_json:object(Steps, Path, #{~"sizes" => list_of(integer(1, 100_000_000), 20),
                                                 ~"count" => integer(1, 100)}),
    Least = lists:min(Sizes),
    Count =< Least
        orelse witness_bench_json:wrong(Path ++ [~"count"], Count,
                                        io_lib:format("at most the smallest of sizes, ~b,", [Least])),
    Series = #{Size => lists:usort([Size * I div Count || I <- lists:seq(1, Count)]) || Size <- Sizes},
    {lists:usort(lists:append(maps:values(Series))), Series};
steps(Steps, Path) ->
    Numbers = witness_bench_json:list(Steps, Path, integer(1, 100_000_000), 100),
    {lists:sort(Numbers), #{}}.

variant(Variant, Path) when is_map(Variant) ->
    is_map_key(~"label", Variant) orelse witness_bench_json:wrong(Path ++ [~"label"], ~"is missing"),
    Label = label(maps:get(~"label", Variant), Path ++ [~"label"]),
    maps:get(~"t", Variant, none) =:= ~"fit"
        andalso witness_bench_json:wrong(Path ++ [~"t"], ~"only model.t can be \"fit\""),
    {Label, model(maps:remove(~"label", Variant), Path)};
variant(Value, Path) -> witness_bench_json:wrong(Path, Value, ~"an object").

repetitions(Number, Path) when is_number(Number) -> {fixed, (integer(1, 1000))(Number, Path)};
repetitions(Object, Path) ->
    #{~"batch" := Batch, ~"most" := Most, ~"points" := Points} =
        witness_bench_json:object(Object, Path, #{
            ~"batch" => {integer(2, 100), 3}, ~"most" => {integer(2, 1000), 9},
            ~"points" => {fun(Value, At) -> witness_bench_json:number(Value, At, 0, 100) end, 1}}),
    Most >= Batch orelse witness_bench_json:wrong(Path ++ [~"most"], ~"must be at least one batch"),
    {batches, #{batch => Batch, most => Most, points => Points}}.

%% Every model that will be run is checked; an error has its place in the file.
models(#{shapes := Shapes, variants := Variants, steps := Steps} = Experiment) ->
    [case load(model(Experiment, Shape, Variant, N, 1)) of
         {ok, _} -> ok;
         {error, Within, Problem} ->
             witness_bench_json:wrong(place(Within, {IShape, Shape}, {IVariant, Variant}, N), Problem)
     end || {IShape, Shape} <- lists:enumerate(Shapes), {IVariant, Variant} <- lists:enumerate(Variants), N <- Steps],
    ok.

place([~"n"], _, _, N) -> [~"steps", integer_to_binary(N)];
place([Key], {IShape, {_, Shape}}, _, _) when is_map_key(Key, Shape), map_size(Shape) > 1 -> [~"shapes", IShape, Key];
place([~"shape"], {IShape, _}, _, _) -> [~"shapes", IShape];
place([Key | _] = Path, _, {IVariant, {_, Variant}}, _) when is_map_key(Key, Variant) -> [~"variants", IVariant | Path];
place(Path, _, _, _) -> [~"model" | Path].

%% If the loading time must still be found, any one will do.
load(#{~"t" := ~"fit"} = Model) -> witness_bench_model:parse(Model#{~"t" := 100});
load(Model) -> witness_bench_model:parse(Model).

%% Benchmarks

-doc "The benchmarks of a repetition, in the order in which they run.".
-spec benchmarks(experiment(), pos_integer()) -> [benchmark(), ...].
benchmarks(#{modes := Modes, analyses := Analyses, shapes := Shapes, variants := Variants, steps := Steps} = Experiment,
           Repetition) ->
    Turns = rotated(lists:append([turns(Mode, Analyses) || Mode <- Modes]), Repetition - 1),
    [benchmark(Experiment, Shape, Variant, N, Repetition, Turn)
     || Variant <- Variants, Shape <- Shapes, N <- Steps, Turn <- Turns].

turns(untraced, _) -> [{untraced, none}];
turns(Mode, Analyses) -> [{Mode, Analysis} || Analysis <- Analyses].

rotated(Turns, By) ->
    {Last, First} = lists:split(By rem length(Turns), Turns),
    First ++ Last.

benchmark(Experiment, {Shape, _} = S, {Variant, _} = V, N, Repetition, {Mode, Analysis}) ->
    #{~"seed" := Seed} = Model = model(Experiment, S, V, N, Repetition),
    {ok, #{w := W, t := T, period_ms := Period}} = load(Model),
    ModeLabel = mode_label(Mode),
    AnalysisLabel = analysis_label(Analysis),
    Parts = [Shape] ++ [Variant || Variant =/= ~""] ++ [integer_to_binary(N), ModeLabel, AnalysisLabel,
                                                        <<"r", (integer_to_binary(Repetition))/binary>>],
    #{id => iolist_to_binary(lists:join($., Parts)), mode => Mode, mode_label => ModeLabel, analysis => Analysis,
      analysis_label => AnalysisLabel, shape => Shape, variant => Variant, n => N, w => W, t => T,
      seconds => T * Period / 1000, seed => Seed, repetition => Repetition, model => Model}.

mode_label({adapter, Module}) -> atom_to_binary(Module);
mode_label(Mode) -> atom_to_binary(Mode).

analysis_label({microseconds, Microseconds}) -> iolist_to_binary(io_lib:format("~pus", [Microseconds]));
analysis_label(Analysis) -> atom_to_binary(Analysis).

model(#{model := Base}, {_, Shape}, {_, Variant}, N, Repetition) ->
    Model = maps:merge(maps:merge(Base, Variant), Shape#{~"n" => N}),
    case Model of
        #{~"seed" := ~"free"} -> Model#{~"seed" => erlang:phash2({free, Repetition}, 1 bsl 27)};
        #{~"seed" := _} -> Model;
        #{} -> Model#{~"seed" => ?SEED}
    end.

-doc "An untraced benchmark of a shape, a number of members and a loading time, to find the capacity of the machine.".
-spec probe(experiment(), {binary(), model()}, N :: pos_integer(), T :: pos_integer()) -> benchmark().
probe(#{variants := [Variant | _], model := Base} = Experiment, Shape, N, T) ->
    #{id := Id} = Benchmark =
        benchmark(Experiment#{model := Base#{~"t" => T}}, Shape, Variant, N, 1, {untraced, none}),
    Benchmark#{id := iolist_to_binary([~"fit.", Id, $., integer_to_binary(T)])}.
