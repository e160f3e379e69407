-module(witness_bench_model).
-moduledoc """
The subject of a benchmark: a system, and its load. A model is written as JSON, or as a map with binary
keys:

```json
{"kind": "master_worker", "n": 10000, "w": 100, "shape": "pulse", "spread": 25}
```

The keys, with their values and defaults, are listed in `docs/benchmarks.md`.

| Kind | Members |
|---|---|
| `master_worker` | workers that answer the master's requests (`m:witness_bench_worker`) |
| `peers` | groups of peers that all ask each other (`m:witness_bench_peers`) |
| `pipeline` | chains of stages; the last stage sends the response to the master (`m:witness_bench_pipeline`) |
| `tasks` | embarrassingly parallel: one request, with the work of a batch (`m:witness_bench_tasks`) |
| `tree` | processes that pass each request on to children of their own (`m:witness_bench_tree`) |
""".

-export([parse/1, of_shapes/0, prepare/1, fixed/1, plan/1, system/2, load/1]).
-export([modules/1, signatures/1, processes/1, member/1]).

-export_type([model/0, signature/0]).

-doc """
A checked model, with all defaults. `prepare/1` replaces a `seed` that is free, and adds the `node` of members
elsewhere.
""".
-type model() :: #{kind := master_worker | peers | pipeline | tasks | tree,
                   n := pos_integer(), w := pos_integer(), t := pos_integer(), period_ms := pos_integer(),
                   shape := witness_bench_shape:shape(), deviation := number(), creation_deviation := number(),
                   pr_send := number(), pr_recv := number(), seed := non_neg_integer() | free,
                   work_us := number(), payload_bytes := non_neg_integer(), crash := number(), loss := number(),
                   nodes := 1 | 2, share := number(), stages := pos_integer(), group := pos_integer(),
                   depth := non_neg_integer(), branch := pos_integer(), node => node()}.

-doc "A function that processes of the model are spawned with.".
-type signature() :: #{signature := mfa(), role := root | member}.

%% --- reading ---------------------------------------------------------------------

-doc """
Checks a model and completes it.

An error has its place, as the keys from the outermost one on, and what was expected. A key of another
shape is an error; a key of another kind is one too, unless it has its default.
""".
-spec parse(#{binary() => term()}) -> {ok, model()} | {error, Path :: [binary()], Text :: binary()}.
parse(Given) when is_map(Given) ->
    try
        [witness_bench_json:no_key([], Key, names())
         || Key <- lists:sort(maps:keys(Given)), not lists:member(Key, names())],
        Values = #{Key => value(Key, Given, Default) || {Key, Default} <- keys()},
        {ok, consistent(timeline(Values, Given), Given)}
    catch
        throw:{wrong, Path, Text} -> {error, Path, unicode:characters_to_binary(Text)}
    end;
parse(_) -> {error, [], ~"an object is expected"}.

-doc "The keys that belong to a shape, with the name of the shape.".
-spec of_shapes() -> [{Key :: binary(), Shape :: binary()}].
of_shapes() ->
    [{~"spread", ~"pulse"}, {~"pinch", ~"burst"}, {~"from", ~"ramp"}, {~"to", ~"ramp"}, {~"file", ~"file"}].

names() ->
    [~"lambda", ~"shape", ~"t" | [Key || {Key, _} <- of_shapes()]] ++ [atom_to_binary(Key) || {Key, _} <- keys()].

keys() ->
    [{kind, ~"master_worker"}, {n, 10_000}, {w, 100}, {deviation, 0.02}, {period_ms, 1000}, {creation_deviation, 0.1},
     {pr_send, 0.9}, {pr_recv, 0.9}, {seed, 1}, {work_us, 0}, {payload_bytes, 0}, {crash, 0}, {loss, 0}, {nodes, 1},
     {share, 1}, {stages, 5}, {group, 10}, {depth, 3}, {branch, 2}].

value(Key, Given, Default) ->
    Name = atom_to_binary(Key),
    Value = maps:get(Name, Given, Default),
    case check(Key, Value) of
        {ok, Checked} -> Checked;
        {expected, What} -> witness_bench_json:wrong([Name], Value, What)
    end.

check(kind, Name) ->
    Models = [master_worker, peers, pipeline, tasks, tree],
    {ok, witness_bench_json:one_of(Name, [~"kind"], [{atom_to_binary(M), M} || M <- Models])};
check(n, N) -> whole(N, 1, 10_000_000);
check(w, W) -> whole(W, 1, 10_000_000);
check(t, T) -> whole(T, 1, 1_000_000);
check(period_ms, P) -> whole(P, 1, 3_600_000);
check(seed, ~"free") -> {ok, free};
check(seed, Seed) ->
    case whole(Seed, 0, 16#ffffffff) of
        {ok, _} = Ok -> Ok;
        {expected, What} -> {expected, [What, ~" or \"free\""]}
    end;
check(payload_bytes, Bytes) -> whole(Bytes, 0, 1 bsl 26);
check(nodes, Nodes) -> whole(Nodes, 1, 2);
check(stages, Stages) -> whole(Stages, 1, 1000);
check(group, Group) -> whole(Group, 2, 1000);
check(depth, Depth) -> whole(Depth, 0, 16);
check(branch, Branch) -> whole(Branch, 1, 1000);
check(work_us, Microseconds) -> between(Microseconds, 0, 1_000_000);
check(deviation, Deviation) -> between(Deviation, 0, 1);
check(creation_deviation, Deviation) -> between(Deviation, 0, 1);
%% Below 0.001 the master would make almost no progress.
check(Pr, P) when Pr =:= pr_send; Pr =:= pr_recv -> between(P, 0.001, 1);
check(Probability, P) when Probability =:= crash; Probability =:= loss; Probability =:= share -> between(P, 0, 1);
check(lambda, Rate) -> above(Rate);
check(spread, Spread) -> between(Spread, 0.1, 10_000);
check(pinch, Pinch) -> between(Pinch, 0.1, 10_000);
check(Ramp, Rate) when Ramp =:= from; Ramp =:= to -> between(Rate, 0, 1_000_000).

whole(N, Min, Max) when is_integer(N), N >= Min, N =< Max -> {ok, N};
whole(_, Min, Max) -> {expected, io_lib:format("a whole number from ~w to ~w", [Min, Max])}.

between(X, Min, Max) when is_number(X), X >= Min, X =< Max -> {ok, X};
between(_, Min, Max) -> {expected, io_lib:format("a number from ~w to ~w", [Min, Max])}.

above(X) when is_number(X), X > 0, X < 1.0e9 -> {ok, X};
above(_) -> {expected, ~"a number above 0 and below 1e9"}.

timeline(Values = #{n := N}, Given) ->
    Shape = shape(maps:get(~"shape", Given, ~"steady"), Given),
    T = case {Shape, Given} of
        {{counts, Counts}, #{~"t" := T0}} when T0 =/= length(Counts) ->
            witness_bench_json:wrong([~"t"], io_lib:format("the file has ~w units of time: these, or no t, are expected",
                                                           [length(Counts)]));
        {_, #{~"t" := _, ~"lambda" := _}} -> witness_bench_json:wrong([~"lambda"], ~"t and lambda exclude each other");
        {{counts, Counts}, #{}} when not is_map_key(~"lambda", Given) -> length(Counts);
        {steady, #{~"lambda" := _}} -> max(1, ceil(N / value(lambda, Given, undefined)));
        {_, #{~"lambda" := _}} -> of_another(~"lambda", ~"shape", ~"steady");
        {_, #{~"t" := _}} -> value(t, Given, undefined);
        {_, #{}} -> max(100, ceil(N / 5000))
    end,
    T =< 1_000_000 orelse witness_bench_json:wrong([~"lambda"], ~"is too small: t would be more than 1000000"),
    case {Shape, is_map_key(~"n", Given)} of
        {{counts, All}, false} -> Values#{shape => Shape, t => T, n := lists:sum(All)};
        _ -> Values#{shape => Shape, t => T}
    end.

shape(~"steady", _) -> steady;
shape(~"pulse", Given) -> {pulse, value(spread, Given, 25)};
shape(~"burst", Given) -> {burst, value(pinch, Given, 100)};
shape(~"ramp", Given) ->
    case {value(from, Given, 0), value(to, Given, 1)} of
        {From, To} when From == 0, To == 0 ->
            witness_bench_json:wrong([~"to"], To, ~"a number above 0, where from is 0,");
        {From, To} -> {ramp, From, To}
    end;
shape(~"file", #{~"file" := Path}) when is_binary(Path) ->
    case file:read_file(Path) of
        {ok, Text} -> arrivals(Path, witness_bench_shape:csv(Text));
        {error, Reason} -> witness_bench_json:wrong([~"file"], [Path, ~": ", file:format_error(Reason)])
    end;
shape(~"file", #{~"file" := Name}) -> witness_bench_json:wrong([~"file"], Name, ~"the name of a file");
shape(~"file", _) -> witness_bench_json:wrong([~"file"], ~"is missing");
shape(Name, _) -> witness_bench_json:wrong([~"shape"], Name, ~B("steady", "pulse", "burst", "ramp" or "file")).

arrivals(_, {ok, Counts}) -> {counts, Counts};
arrivals(Path, {error, 0, Text}) -> witness_bench_json:wrong([~"file"], [Path, ~": ", Text]);
arrivals(Path, {error, Line, Text}) ->
    witness_bench_json:wrong([~"file"], [Path, ~":", integer_to_binary(Line), ~": ", Text]).

-spec of_another(binary(), binary(), binary()) -> no_return().
of_another(Key, What, Name) -> witness_bench_json:wrong([Key], [~"is for the ", What, $\s, Name]).

%% Keys that belong only to one kind, or one shape.
consistent(Values = #{kind := Kind, n := N}, Given) ->
    Shape = maps:get(~"shape", Given, ~"steady"),
    [of_another(Key, ~"shape", Of) || {Key, Of} <- of_shapes(), is_map_key(Key, Given), Of =/= Shape],
    [of_another(atom_to_binary(Key), ~"kind", atom_to_binary(Of))
     || {Key, Of} <- [{crash, master_worker}, {loss, master_worker}, {nodes, master_worker}, {stages, pipeline},
                      {group, peers}, {depth, tree}, {branch, tree}],
        is_map_key(atom_to_binary(Key), Given), Of =/= Kind,
        maps:get(Key, Values) =/= proplists:get_value(Key, keys())],
    case Values of
        #{nodes := 2, crash := Crash} when Crash > 0 ->
            witness_bench_json:wrong([~"crash"], Crash, ~"0, where there are two nodes,");
        #{} -> ok
    end,
    N * (member(Values)):size(Values) =< 10_000_000
        orelse witness_bench_json:wrong([~"n"], ~"is too large: it comes to more than 10000000 processes"),
    Values.

%% --- using -----------------------------------------------------------------------

-doc "The model with a seed, drawn if it is `free`: from then on its workload is always the same.".
-spec fixed(model()) -> model().
fixed(Model = #{seed := free}) -> Model#{seed := witness_bench_random:seed()};
fixed(Model) -> Model.

-doc """
The whole workload: for each unit of time, each member with its time of creation in nanoseconds from the beginning of
the unit and the size of its batch. It takes memory for each member, unlike the master's plan
(`m:witness_bench_plan`).
""".
-spec plan(model()) -> [[witness_bench_plan:member()]].
plan(Model) -> units(witness_bench_plan:new(fixed(Model))).

units(Plan) ->
    case witness_bench_plan:next(Plan) of
        done -> [];
        {Members, Next} -> [Members | units(Next)]
    end.

-doc """
Prepares a measurement: the seed is fixed, and with two `nodes` the other one is
started, which makes this node a distributed one (`m:witness_bench_nodes`). It ends with the calling process.
""".
-spec prepare(model()) -> {ok, model()} | {error, {no_second_node, term()}}.
prepare(Model = #{nodes := 1}) -> {ok, fixed(Model)};
prepare(Model = #{nodes := 2}) ->
    case witness_bench_nodes:start() of
        {ok, Node} -> {ok, (fixed(Model))#{node => Node}};
        {error, Reason} -> {error, {no_second_node, Reason}}
    end.

-doc """
The first process of the system, as `witness:start/1` takes it, of a prepared model. If the model has work to do, the speed
of this node is measured.
""".
-spec system(model(), witness_bench_response:measures()) -> {module(), atom(), [term()]}.
system(Model = #{seed := Seed, work_us := Work, payload_bytes := Bytes}, Measures) when is_integer(Seed) ->
    Setup = (maps:with([share, stages, group, depth, branch], Model))#{
        seed => Seed, rounds => witness_bench_work:rounds(Work), node => maps:get(node, Model, node()),
        payload => binary:copy(<<0>>, Bytes), failures => witness_bench_member:failures(Model)},
    ok = load(modules(Model)),
    {witness_bench_master, start, [Model, Setup, Measures]}.

-doc """
Loads the given modules, those of the benchmarks, and all that they call. The first call of a module sends a message
to the code server, which would be an event of the trace.
""".
-spec load([module()]) -> ok.
load(Modules) ->
    _ = application:load(witness),
    {ok, Ours} = application:get_key(witness, modules),
    Bench = [M || M <- Ours, lists:prefix("witness_bench_", atom_to_list(M))],
    Called = [M || Caller <- Modules ++ Bench,
                   {ok, {_, [{imports, Calls}]}} <- [beam_lib:chunks(code:which(Caller), [imports])],
                   {M, _, _} <- Calls],
    lists:foreach(fun code:ensure_loaded/1, lists:usort(Modules ++ Bench ++ Called)).

-doc "The modules that the processes of a model run in: those that inline monitoring weaves.".
-spec modules(model()) -> [module()].
modules(Model) -> [witness_bench_master, member(Model)].

-doc """
The functions that monitored processes are spawned with. With a `share` below 1 only some of the members
are spawned with them, the same ones in every mode. Workers on another node have no monitor.
""".
-spec signatures(model()) -> [signature()].
signatures(Model) ->
    [#{signature => {witness_bench_master, start, 3}, role => root}
     | [#{signature => MFA, role => member}
        || maps:get(nodes, Model) =:= 1, {start, MFA} <- (member(Model)):functions()]].

-doc "The number of processes that the model has on this node in total, including the master.".
-spec processes(model()) -> pos_integer().
processes(#{nodes := 2}) -> 1;
processes(Model = #{n := N}) when is_integer(N) ->
    case (member(Model)):size(Model) of
        Size when is_integer(Size) -> 1 + N * Size
    end.

-doc "The module of the members (`m:witness_bench_member`).".
-spec member(#{kind := atom(), _ => _}) -> module().
member(#{kind := master_worker}) -> witness_bench_worker;
member(#{kind := peers}) -> witness_bench_peers;
member(#{kind := pipeline}) -> witness_bench_pipeline;
member(#{kind := tasks}) -> witness_bench_tasks;
member(#{kind := tree}) -> witness_bench_tree.
