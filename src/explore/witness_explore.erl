-module(witness_explore).
-moduledoc """
Exhaustive exploration of the choreography: every interleaving of a small system, a source of events and the tracers.

The search is breadth-first, so it finds a shortest path. A state is known by a hash of 118 bits of its canonical form
(`m:witness_explore_world`), and kept whole only until its successors are known. 59 of these bits are the key of a state;
the others are compared, so two states with the same 59 bits end the search as incomplete. The probability that a state is
taken for another one by chance is about N*N/2^119 for N states: 10^-23 for a million.

At the end the graph of all states is searched for cycles. In a cycle the tracers would work for ever without any progress
of the system. The system's own steps are finite, so every run ends if there is no cycle.
""".

-export([run/2]).

-export_type([result/0, stats/0, options/0, path/0]).

-doc """
What was explored. `steps` counts all steps from all states, `ends` the states without a step; `fingerprint` is the hash of
all these end states, by which searches can be compared; `depth` is that of the last layer, `frontier` its number of states;
`rate` is states a second. `estimate` is how many states there will be: layers grow and then shrink, much as they grew. As
long as they grow, the estimate is at least twice as many as so far.
""".
-type stats() :: #{states := non_neg_integer(), steps := non_neg_integer(), ends := non_neg_integer(),
                   fingerprint := non_neg_integer(), depth := non_neg_integer(), frontier := non_neg_integer(),
                   seconds := float(), rate := float(), estimate := {about | at_least, pos_integer()}}.

-doc "Each step of the path, with what happened in it.".
-type path() :: [{witness_explore_world:step(), [witness_explore_world:note()]}].

-type result() :: {ok, stats()} | {violation, term(), path(), stats()} | {incomplete, Reason :: term(), stats()}
                | {reached, path(), stats()}.

-doc """
Limits (each may be missing): `max_depth`, `max_states`, `max_seconds`. `progress` is called after each layer, and
every 5,000 states. With `until` the search ends with the shortest path to a state for which it is true.
""".
-type options() :: #{max_depth => pos_integer(), max_states => pos_integer(), max_seconds => number(),
                     progress => fun((stats()) -> term()), until => fun((witness_explore_world:view()) -> boolean())}.

-record(search, {setting :: witness_explore_world:setting(),
                 known :: ets:table(),
                 next = 1 :: pos_integer(),
                 parents = <<>> :: binary(),
                 edges = <<>> :: binary(),
                 degrees = <<>> :: binary(),
                 steps = 0 :: non_neg_integer(),
                 ends = 0 :: non_neg_integer(),
                 fingerprint = 0 :: non_neg_integer(),
                 depth = 0 :: non_neg_integer(),
                 frontier = 1 :: non_neg_integer(),
                 widths = [] :: [pos_integer()],
                 begun :: integer(),
                 options :: options()}).

-doc "Explores a world.".
-spec run(witness_explore_world:options(), options()) -> result().
run(Given, Options) ->
    {World, Setting} = witness_explore_world:new(Given),
    Known = ets:new(?MODULE, [set, private]),
    S = #search{setting = Setting, known = Known, begun = erlang:monotonic_time(), options = Options},
    try
        Packed = pack(World),
        {Key, Check} = hash(Packed),
        true = ets:insert_new(Known, {Key, Check, 0}),
        layers([Packed], S)
    catch
        throw:{found, livelock, Index, Around, S1} ->
            {violation, livelock, path(World, Index, Around, none, S1), stats(S1)};
        throw:{reached, Index, S1} -> {reached, path(World, Index, [], none, S1), stats(S1)};
        throw:{found, What, Index, Last, S1} -> {violation, What, path(World, Index, [], Last, S1), stats(S1)};
        throw:{limit, Reason, S1} -> {incomplete, Reason, stats(S1)}
    after
        ets:delete(Known)
    end.

pack(World) -> term_to_binary(World, [{minor_version, 2}]).

hash(Packed) ->
    <<Key:59, Check:59, _:10>> = erlang:md5(Packed),
    {Key, Check}.

%% The states of a layer have consecutive numbers.
layers([], S) ->
    case circle(S) of
        none -> {ok, stats(S)};
        {Index, Around} -> throw({found, livelock, Index, Around, S})
    end;
layers(Layer, S = #search{depth = Depth, options = Options}) ->
    progress(S),
    Depth < maps:get(max_depth, Options, infinity) orelse throw({limit, {depth, Depth}, S}),
    First = S#search.next - length(Layer),
    {Next, S1} = layer(Layer, First, [], S),
    layers(lists:reverse(Next), S1#search{depth = Depth + 1, frontier = length(Next),
                                          widths = [length(Layer) | S1#search.widths]}).

layer([], _, Next, S) -> {Next, S};
layer([Packed | Layer], Index, Next, S = #search{setting = Setting}) ->
    Index rem 5_000 =:= 0 andalso within_limits(S),
    World = witness_event_external:decode(Packed),
    is_reached(World, S) andalso throw({reached, Index, S}),
    {Next1, S1} = case witness_explore_world:steps(World, Setting) of
        [] ->
            View = witness_explore_world:view(World, Setting),
            case witness_explore_check:final(View) of
                ok ->
                    {Key, _} = hash(Packed),
                    {Next, S#search{ends = S#search.ends + 1,
                                    fingerprint = S#search.fingerprint bxor Key,
                                    degrees = <<(S#search.degrees)/binary, 0>>}};
                {violation, What} -> throw({found, What, Index, none, S})
            end;
        Steps ->
            successors(Steps, 0, World, Index, Next, S#search{degrees = <<(S#search.degrees)/binary, (length(Steps))>>})
    end,
    layer(Layer, Index + 1, Next1, S1).

is_reached(World, #search{setting = Setting, options = #{until := Until}}) ->
    Until(witness_explore_world:view(World, Setting));
is_reached(_, _) -> false.

successors([], _, _, _, Next, S) -> {Next, S};
successors([Step | Steps], I, World, Index, Next, S = #search{setting = Setting, known = Known, next = New,
                                                              edges = Edges}) ->
    {After, _} = try witness_explore_world:step(Step, World, Setting)
                 catch throw:{violation, What} -> throw({found, What, Index, Step, S})
                 end,
    Packed = pack(After),
    {Key, Check} = hash(Packed),
    S1 = S#search{steps = S#search.steps + 1},
    case ets:lookup(Known, Key) of
        [] ->
            true = ets:insert(Known, {Key, Check, New}),
            successors(Steps, I + 1, World, Index, [Packed | Next],
                       S1#search{next = New + 1, edges = <<Edges/binary, New:32>>,
                                 parents = <<(S#search.parents)/binary, Index:32, I>>});
        [{_, Check, Old}] ->
            successors(Steps, I + 1, World, Index, Next, S1#search{edges = <<Edges/binary, Old:32>>});
        [{_, _, _}] ->
            throw({limit, hash_collision, S})
    end.

within_limits(S = #search{options = Options, next = States}) ->
    progress(S),
    States < maps:get(max_states, Options, infinity) orelse throw({limit, {states, States}, S}),
    Seconds = seconds(S),
    Seconds < maps:get(max_seconds, Options, infinity) orelse throw({limit, {seconds, Seconds}, S}).

progress(S = #search{options = #{progress := Progress}}) -> Progress(stats(S));
progress(_) -> ok.

seconds(#search{begun = Begun}) -> (erlang:monotonic_time() - Begun) / erlang:convert_time_unit(1, second, native).

stats(S = #search{next = States, steps = Steps, ends = Ends, fingerprint = Fingerprint,
                  depth = Depth, frontier = Frontier}) ->
    Seconds = seconds(S),
    #{states => States, steps => Steps, ends => Ends, fingerprint => Fingerprint,
      depth => Depth, frontier => Frontier, seconds => Seconds,
      rate => States / max(Seconds, 1.0e-3), estimate => estimate(States, Frontier, S#search.widths)}.

%% Widths: of the layers so far, newest first.
estimate(States, _, []) -> {at_least, 2 * States};
estimate(States, Frontier, Widths) ->
    Widest = lists:max(Widths),
    case Frontier < Widest of
        true -> {about, States + lists:sum(lists:takewhile(fun(Width) -> Width < Frontier end, lists:reverse(Widths)))};
        false -> {at_least, 2 * States}
    end.

%% --- the path to a state ---------------------------------------------------------

%% The indices of the steps are known; the states are computed again. More: the indices of steps after that state.
path(World, Index, More, Last, S = #search{setting = Setting}) ->
    {Path, Before} = lists:mapfoldl(
        fun(I, W) ->
                Step = lists:nth(I + 1, witness_explore_world:steps(W, Setting)),
                {After, Notes} = witness_explore_world:step(Step, W, Setting),
                {{Step, Notes}, After}
        end, World, places(Index, More, S)),
    case Last of
        none -> Path;
        _ -> Path ++ [{Last, witness_explore_world:begin_step(Last, Before)}]
    end.

places(0, Places, _) -> Places;
places(Index, Places, S = #search{parents = Parents}) ->
    <<Parent:32, I>> = binary:part(Parents, (Index - 1) * 5, 5),
    places(Parent, [I | Places], S).

%% --- cycles ----------------------------------------------------------------------

%% A state from which the tracers can work for ever, with the indices of the steps that lead back to it. States that no
%% remaining edge leads to are removed, one after the other (Kahn). What remains has a cycle, or is reached from one. Going
%% back from it ends in a cycle.
circle(S = #search{next = States}) ->
    Offsets = offsets(S#search.degrees, 0, <<>>),
    Ways = counters:new(States, []),
    count_ways(S#search.edges, Ways),
    case taken_away([0 || counters:get(Ways, 1) =:= 0], 0, Offsets, Ways, S) of
        States -> none;
        _ ->
            Before = predecessors(0, States, Offsets, Ways, S, #{}),
            Index = go_back(first_left(1, Ways), #{}, Before),
            {Index, around(map_get(Index, Before), Index, Index, Before, Offsets, S, [])}
    end.

offsets(<<Degree, Degrees/binary>>, Offset, Offsets) ->
    offsets(Degrees, Offset + Degree, <<Offsets/binary, Offset:32>>);
offsets(<<>>, _, Offsets) -> Offsets.

count_ways(<<To:32, Edges/binary>>, Ways) -> counters:add(Ways, To + 1, 1), count_ways(Edges, Ways);
count_ways(<<>>, _) -> ok.

targets(Index, Offsets, #search{edges = Edges, degrees = Degrees}) ->
    <<Offset:32>> = binary:part(Offsets, Index * 4, 4),
    [To || <<To:32>> <= binary:part(Edges, Offset * 4, binary:at(Degrees, Index) * 4)].

taken_away([], Count, _, _, _) -> Count;
taken_away([Index | Rest], Count, Offsets, Ways, S) ->
    Free = lists:foldl(fun(To, Acc) ->
                               counters:sub(Ways, To + 1, 1),
                               case counters:get(Ways, To + 1) of 0 -> [To | Acc]; _ -> Acc end
                       end, Rest, targets(Index, Offsets, S)),
    taken_away(Free, Count + 1, Offsets, Ways, S).

first_left(I, Ways) ->
    case counters:get(Ways, I) of
        0 -> first_left(I + 1, Ways);
        _ -> I - 1
    end.

%% For each state a predecessor that remains, if there is one.
predecessors(States, States, _, _, _, Before) -> Before;
predecessors(I, States, Offsets, Ways, S, Before) ->
    Before1 = case counters:get(Ways, I + 1) of
        0 -> Before;
        _ -> lists:foldl(fun(To, B) -> B#{To => I} end, Before, targets(I, Offsets, S))
    end,
    predecessors(I + 1, States, Offsets, Ways, S, Before1).

go_back(Index, Seen, _) when is_map_key(Index, Seen) -> Index;
go_back(Index, Seen, Before) -> go_back(map_get(Index, Before), Seen#{Index => []}, Before).

around(From, To, Index, Before, Offsets, S, Places) ->
    Place = length(lists:takewhile(fun(Target) -> Target =/= To end, targets(From, Offsets, S))),
    case From of
        Index -> [Place | Places];
        _ -> around(map_get(From, Before), From, Index, Before, Offsets, S, [Place | Places])
    end.
