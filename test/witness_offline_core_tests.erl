-module(witness_offline_core_tests).
-moduledoc """
RIARC over a log: every set-up of the paper's system (`m:witness_offline_system`), every log that keeps the order of
each process, in both modes. Logs with the same beginning share it: the state is data, so the tree of all logs is walked
once.
""".
-include_lib("eunit/include/eunit.hrl").

%% Of the whole system.
-define(LINES, 16).

-import(witness_offline_system, [set_ups/0, name/1, lives/0, lives_without_births/0, pid/1]).

%% --- every log, every set-up -----------------------------------------------------

%% The tracers' work differs only by the mode and by the set-up.
every_log_gives_every_monitor_its_exact_sequence_test_() ->
    {inparallel, 2,
     [{timeout, 60, {lists:concat([Mode, " ", name(SetUp)]), fun() -> all_logs(lives(), auto, Mode, SetUp, 27_720) end}}
      || Mode <- [outline, central], SetUp <- set_ups()]}.

%% Without an init, a birth is made from the fork, and has the line of the fork.
logs_without_births_give_the_same_sequences_test_() ->
    {timeout, 60, [fun() -> all_logs(lives_without_births(), [pid(p)], Mode, SetUp, 1260) end
                   || Mode <- [outline, central], SetUp <- set_ups(), not lists:any(fun reads_p/1, SetUp)]}.

%% In so short a log, the root is known only at the end; until then everything waits.
a_root_that_is_found_last_changes_no_sequence_test_() ->
    {timeout, 60, [fun() -> all_logs(lives_without_births(), auto, Mode, SetUp, 1260) end
                   || Mode <- [outline, central], SetUp <- set_ups(), not lists:any(fun reads_p/1, SetUp)]}.

%% Without its init P has no signature, and so no monitor.
reads_p(Partition) -> lists:member(p, Partition).

a_given_root_changes_no_sequence_test_() ->
    {timeout, 60, fun() -> all_logs(lives(), [pid(p)], outline, [[p], [q, r]], 27_720) end}.

%% Two maps, each of which has all three in another way: neither sees what the other does.
maps_are_independent_test_() ->
    {timeout, 60, [fun() ->
        Logs = [Log || {N, Log} <- lists:enumerate(logs()), N rem 200 =:= 0],
        lists:foreach(fun(Log) ->
            Alone = [given([SetUp], Mode, Log) || SetUp <- SetUps],
            ?assertEqual(lists:sort(lists:append(Alone)), lists:sort(given(SetUps, Mode, Log)))
        end, Logs)
    end || Mode <- [outline, central], SetUps <- [[[[p], [q], [r]], [[p, q, r]]], [[[p, q], [r]], [[q, r]], [[p]]]]]}.

%% The size of the pieces that items come in changes no output.
pieces_make_no_difference_test_() ->
    {timeout, 60, fun() ->
        Logs = [Log || {N, Log} <- lists:enumerate(logs()), N rem 300 =:= 0],
        lists:foreach(fun(Log) ->
            Items = lists:append([items(E) || E <- Log]),
            Whole = operations(fed([lists:enumerate(Items)], new([[[p], [q, r]]], outline, auto))),
            [?assertEqual(Whole, operations(fed(pieces(Size, Items), new([[[p], [q, r]]], outline, auto))))
             || Size <- [1, 2, 3, 7]]
        end, Logs)
    end}.

%% A state that is saved and restored at any place gives the same output.
a_state_that_was_saved_goes_on_as_before_test_() ->
    {timeout, 60, fun() ->
        Logs = [Log || {N, Log} <- lists:enumerate(logs()), N rem 500 =:= 0],
        lists:foreach(fun(Log) ->
            Pieces = pieces(1, lists:append([items(E) || E <- Log])),
            New = new([[[p], [q, r]]], outline, auto),
            ?assertEqual(operations(fed(Pieces, New)), fed_with_breaks(Pieces, New))
        end, Logs)
    end}.

the_logs_are_all_that_keep_the_order_of_each_process_test() ->
    Logs = logs(),
    ?assertEqual(27_720, length(lists:usort(Logs))),        % 12! / (4! 5! 3!)
    [?assertEqual(Life, [E || E <- Log, lists:member(E, Life)]) || {N, Log} <- lists:enumerate(Logs), N rem 100 =:= 0,
                                                                  Life <- lives()].

%% A process has a monitor of its own, for itself or for a group, or is not named, or is cut out of groups.
the_set_ups_are_all_that_can_be_reached_test() ->
    Ways = [single, group, unnamed, cut],
    Reached = [witness_offline_system:set_up_of([{p, WayP}, {q, WayQ}, {r, WayR}], none, [])
               || WayP <- Ways, WayQ <- Ways, WayR <- Ways],
    ?assertEqual(lists:usort(Reached), lists:sort([lists:sort(SetUp) || SetUp <- set_ups()])).

%% --- what the log says of itself -----------------------------------------------------

%% What is wanted of the log, the items that it begins with, and what is said of it at which line.
heads_that_do_not_have_what_a_property_wants_are_refused_test_() ->
    Taken = {taken, "s:1"},
    F = {function, {m, f, 1}, "s:2"},
    G = {function, {m, g, 2}, "s:2"},
    Init = hd(items(p_init)),
    Call = {call, pid(p), {m, f, [1]}, undefined},
    Of = fun(Functions) -> {functions, Functions} end,
    [{lists:flatten(io_lib:format("~0p ~0p", [Wants, Items])), fun() -> said(Expected, head(Wants, Items, Size)) end}
     || Size <- [1, 2, 100], {Wants, Items, Expected} <- [
        {[], [Init, Call], ok},
        {[], [Of([{m, g, 2}]), Init, Call], ok},
        {[F], [], ok},
        {[F], [Of([{m, f, 1}]), Init, Call], ok},
        {[F, G], [Of([{m, g, 2}, {m, f, 1}]), Init], ok},
        {[Taken, F], [{receives, taken}, Of([{m, f, 1}]), Init], ok},
        {[Taken, F], [Of([{m, f, 1}]), {receives, taken}, Init], ok},
        {[Taken, F], [Of([{m, f, 1}]), {receives, delivered}, Init], {2, "s:1", "here each `recv` is a message that was delivered"}},
        {[Taken, F], [Of([{m, f, 1}]), Init], {2, "s:1", "does not say that each of its `recv`"}},
        {[Taken, F], [{receives, taken}, Init], {2, "s:2", "begin the log with the line functions([{m,f,1}]), or "
                                                           "{\"event\":\"functions\",\"functions\":[\"{m,f,1}\"]}"}},
        {[F, G], [Init], {1, "s:2", "is about calls of m:f/1, and the log does not say that it has all its calls and returns. If it has, "
                                    "begin the log with the line functions([{m,f,1},{m,g,2}]), or "}},
        %% Two properties in one line of a file.
        {[F, F], [Init], {1, "s:2", "the line functions([{m,f,1}]), or "}},
        {[F], [Of([{m, f, 2}]), Init], {1, "s:2", "the line `functions` of the log does not name this function"}},
        %% Another log begins: what the first one has said does not hold any more.
        {[F], [Of([{m, f, 1}]), Init, Of([{m, g, 2}]), Call], {3, "s:2", "does not name this function"}},
        {[F], [Of([{m, f, 1}]), Init, {receives, taken}, Call],
         {4, "s:2", "from here on the log does not say that it has all its calls and returns. In a log of `witness run` the module"}},
        {[F], [Of([{m, f, 1}]), Init, {receives, taken}, Of([{m, f, 1}]), Call], ok},
        {[Taken], [{receives, taken}, Init, Of([{m, f, 1}]), Call], {4, "s:1", "does not say that each of its `recv`"}},
        {[F], [Of([{m, f, 1}]), {receives, taken}, {receives, taken}, Init], {4, "s:2", "does not say that it has all its calls"}}
    ]].

said({Line, Spec, Part}, {Line, Spec, Text}) -> ?assertNotEqual(nomatch, string:find(Text, Part), Text);
said(Expected, Found) -> ?assertEqual(Expected, Found).

%% The items come in blocks of this size, and the state is saved and restored between them.
head(Wants, Items, Size) ->
    Config = (config([[[p]]], outline, auto))#{wants => Wants},
    head(pieces(Size, Items), 0, Config, witness_offline_core:new(Config)).

head([], _, _, _) -> ok;
head([Items | Pieces], Base, Config, L) ->
    case witness_offline_core:items(Items, Base, L) of
        {ok, L1} ->
            {_, L2} = witness_offline_core:take(L1),
            head(Pieces, Base + length(Items), Config, witness_offline_core:load(witness_offline_core:save(L2), Config));
        {unseen, Line, What, _} ->
            Text = unicode:characters_to_list(What),
            [Spec | _] = string:split(Text, " "),
            {Line, Spec, Text}
    end.

%% --- the instrumentation ---------------------------------------------------------

%% One map. A process that no monitor reads is cut out of its parent's group. Other tests check the properties of maps.
instrumentation(Map, SetUp) ->
    fun({sys, P, []}) ->
        case [Partition || Partition <- SetUp, lists:member(P, Partition)] of
            [[P | Rest]] -> [entry(Map, P, Rest =/= [])];
            [_] -> [];
            [] -> [none]
        end
    end.

entry(Map, P, Group) -> #{monitor => {?MODULE, P}, spec => integer_to_binary(Map), name => undefined, group => Group}.

new(SetUps, Mode, Roots) -> witness_offline_core:new(config(SetUps, Mode, Roots)).

config(SetUps, Mode, Roots) ->
    Numbered = lists:enumerate(SetUps),
    #{maps => [instrumentation(Map, SetUp) || {Map, SetUp} <- Numbered], mode => Mode, spread => 2, roots => Roots,
      properties => [entry(Map, P, Rest =/= []) || {Map, SetUp} <- Numbered, [P | Rest] <- SetUp]}.

logs() -> witness_offline_system:logs(lives()).

%% The second of two messages that follow each other is a call, or its return.
items(E) ->
    case witness_offline_system:items(E) of
        [First, {send, P, _, Message, Ts}] -> [First, {call, P, {m, f, [Message]}, Ts}];
        [First, {recv, P, _, Message, Ts}] -> [First, {return, P, {m, f, 1}, Message, Ts}];
        Items -> Items
    end.

%% --- the walk --------------------------------------------------------------------

all_logs(Lives, Roots, Mode, SetUp, Count) ->
    Known = case Roots of auto -> []; _ -> Roots end,
    Oracle = witness_offline_system:oracle(Known),
    ?assertEqual(Count, walk(Lives, 0, new([SetUp], Mode, Roots), Oracle, [], {Mode, SetUp})).

%% How many logs there are below.
walk([], Line, L, Oracle, Log, How) ->
    try at_end(L, Line, Oracle, How) catch
        Class:Reason:Stack -> erlang:raise(Class, {How, lists:reverse(Log), Reason}, Stack)
    end,
    1;
walk(Lives, Line, L, Oracle, Log, How) ->
    lists:sum([begin
        Items = items(E),
        {ok, L1} = witness_offline_core:items(lists:enumerate(Items), Line, L),
        Rest = [Life || Life <- [Tail | Lives -- [[E | Tail]]], Life =/= []],
        Oracle1 = witness_offline_system:arrived(lists:enumerate(Line + 1, Items), Oracle),
        walk(Rest, Line + length(Items), L1, Oracle1, [E | Log], How)
    end || [E | Tail] <- Lives]).

at_end(L0, Lines, Oracle0, {Mode, SetUp}) ->
    {Orphans, L} = witness_offline_core:finish(Lines, L0),
    ?assertEqual([], Orphans),
    Oracle = witness_offline_system:root(Oracle0),
    ?assertEqual(0, witness_offline_system:waits(Oracle)),
    {Batch, L1} = witness_offline_core:take(L),
    Found = given(Batch),
    ?assertEqual(lists:sort([witness_offline_system:expected(Partition, Oracle) || Partition <- SetUp]), Found),
    nothing_is_left(L1),
    Births = witness_offline_system:births_made(Oracle),
    ?assertMatch(#{processes := 3, alive := 0, events := Events} when Events =:= Lines + Births,
                 witness_offline_core:counts(L1)),
    #{tracers := Tracers} = witness_offline_core:counts(L1),
    case Mode of
        central -> ?assertEqual(1, Tracers);
        outline -> ?assert(Tracers =< 1 + length(SetUp -- [[p], [p, q], [p, q, r]]))
    end.

%% All maps are empty: the tracers' own, those of the source, those of the monitors.
nothing_is_left(L) ->
    #{tracers := Tracers, source := Source, plain := Plain, alive := Alive} = witness_offline_core:save(L),
    ?assertEqual({#{0 => #{own => #{}, route => #{}, stash => #{}, unpaired => #{}}}, #{}, #{}},
                 {Tracers, Plain, Alive}),
    ?assertMatch(#{procs := Procs, ready := [], waits := [], held := 0, lost := 0, dropped := []}
                 when map_size(Procs) =:= 0, Source).

%% What the monitor of a process was told, with lines, in the order of the processes.
given(Batch) -> lists:sort([{P, Told} || {#{process := P}, Told} <- told_of([Batch])]).

given(SetUps, Mode, Log) ->
    Items = lists:append([items(E) || E <- Log]),
    Given = operations(fed([lists:enumerate(Items)], new(SetUps, Mode, auto))),
    [{P, spec(Map, SetUps), Told} || {#{process := P, spec := Map}, Told} <- Given].

%% The set-up identifies a map, wherever it is in the list.
spec(Map, SetUps) -> lists:nth(binary_to_integer(Map), SetUps).

operations(L0) ->
    {[], L} = witness_offline_core:finish(?LINES, L0),
    {Batch, _} = witness_offline_core:take(L),
    told_of([Batch]).

%% The lines of each monitor's operations. The key by which a shard orders its operations never decreases.
told_of(Batches) ->
    Shards = maps:groups_from_list(fun({Shard, _}) -> Shard end, fun({_, Of}) -> Of end,
                                  [{Shard, Of} || #{operations := Operations} <- Batches, Shard := Of <- Operations]),
    Placed = [[{witness_offline_core:place(Place), Id, What} || {Place, Id, What} <- lists:append(Ofs)]
              || _ := Ofs <- Shards],
    [?assertEqual(lists:sort(Order), Order) || Of <- Placed, Order <- [[At || {{At, _}, _, _} <- Of]]],
    [{Meta, [{Line, What} || {{_, Line}, Of, What} <- lists:append(Placed), Of =:= Id]}
     || #{started := Started} <- Batches, {Id, _, Meta} <- Started].

fed(Pieces, L) ->
    {_, Fed} = lists:foldl(fun(Items, {Base, A}) ->
        {ok, A1} = witness_offline_core:items(Items, Base, A),
        {Base + length(Items), A1}
    end, {0, L}, Pieces),
    Fed.

%% Before each piece the pending operations are taken, and the state is saved and restored.
fed_with_breaks(Pieces, New) ->
    Config = config([[[p], [q, r]]], outline, auto),
    {_, Last, Batches} = lists:foldl(fun(Items, {Base, A, Batches}) ->
        {Batch, A1} = witness_offline_core:take(A),
        Data = binary_to_term(term_to_binary(witness_offline_core:save(A1))),
        {ok, A2} = witness_offline_core:items(Items, Base, witness_offline_core:load(Data, Config)),
        {Base + length(Items), A2, [Batch | Batches]}
    end, {0, New, []}, Pieces),
    {[], Finished} = witness_offline_core:finish(?LINES, Last),
    {Batch, _} = witness_offline_core:take(Finished),
    told_of(lists:reverse([Batch | Batches])).

pieces(_, []) -> [];
pieces(Size, Items) ->
    {Piece, Rest} = lists:split(min(Size, length(Items)), Items),
    [lists:enumerate(Piece) | pieces(Size, Rest)].
