-module(witness_trace_log_props_tests).
-moduledoc """
The source that is a log against a naive one, which scans a buffer as the RIARC text does in appendix B.1.

Logs are those of random systems, in a random order that keeps the order of each process. In the naive engine no two
processes have the same name, so it cannot mix up names that are used again.

A second kind of logs is not consistent at all. There nothing may crash, nothing may be delivered out of place, and each
accepted event must be delivered, missing with a gap, or an orphan's.
""".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(SIG, {m, f, []}).

consistent_logs_are_delivered_as_by_the_naive_engine_test_() ->
    holds(1_500, ?FORALL({Steps, Order}, {steps(), order()}, as_naive(Steps, Order))).

causal_logs_pass_unchanged_test_() ->
    holds(500, ?FORALL(Steps, steps(), unchanged(Steps))).

a_root_is_found_as_if_it_had_been_given_test_() ->
    holds(500, ?FORALL({Steps, Order}, {steps(), order()}, found(Steps, Order))).

a_log_that_was_saved_and_loaded_has_the_same_rest_test_() ->
    holds(1_500, ?FORALL({Wild, At}, {wild(oneof([wild_item(), wild_call()])), range(0, 30)}, same_rest(Wild, At))).

nothing_is_lost_or_out_of_place_in_any_log_test_() ->
    holds(3_000, ?FORALL(Wild, wild(wild_item()), accounted(Wild))).

holds(Tests, Property) ->
    {timeout, 120, fun() ->
        Holds = proper:quickcheck(Property, [{numtests, Tests}, {max_size, 60}, quiet]),
        ?assertEqual(true, Holds orelse proper:counterexample())
    end}.

%% --- the properties ---------------------------------------------------------------

as_naive(Steps, Order) ->
    Log = merged(causal_log(Steps), Order),
    Names = names(Log),
    case naive([p(0)], Log, Names) of
        overtaken -> true;
        Expected ->
            {Out, Refused, Orphans, _} = run(new([p(0)]), renamed(Log, Names)),
            ?WHENFAIL(io:format("~p~nnot~n~p~nrefused ~p~n", [Out, Expected, Refused]),
                      {deliveries(Out), Refused, Orphans} =:= {Expected, [], []})
    end.

unchanged(Steps) ->
    Log = with_inits(causal_log(Steps)),
    Items = renamed(Log, names(Log)),
    {Out, [], [], _} = run(new([p(0)]), Items),
    Items =:= [Item || {_, Item} <- deliveries(Out)].

%% With a window for the whole log: nothing is delivered before all of it was read.
found(Steps, Order) ->
    Log = merged(causal_log(Steps), Order),
    {Out, [], [], _} = run(auto(), Log),
    [{root, P, _} | _] = Out ++ [{root, p(0), none}],
    Expected = naive_scan(naive_state([p(0)], #{}), lists:enumerate(Log)),
    P =:= p(0) andalso deliveries(Out) =:= Expected.

same_rest({Options, Items}, At) ->
    {First, Second} = lists:split(min(At, length(Items)), Items),
    {_, _, Log} = through(1, witness_trace_log:new(Options), First),
    Data = binary_to_term(term_to_binary(witness_trace_log:save(Log))),
    rest(length(First) + 1, Log, Second) =:= rest(length(First) + 1, witness_trace_log:load(Data), Second).

rest(Line, Log, Items) ->
    {Out, Refused, Log1} = through(Line, Log, Items),
    {Out1, Log2} = drain(witness_trace_log:settle(Log1), []),
    {Orphans, Log3} = witness_trace_log:finish(Log2),
    {Out, Refused, Out1, Orphans, witness_trace_log:save(Log3)}.

accounted({Options, Items}) ->
    {Out, Refused, Orphans, Log} = run(witness_trace_log:new(Options), Items),
    Accepted = [Line || {Line, Item} <- lists:enumerate(Items), element(1, Item) =/= root, not lists:member(Line, Refused)],
    Delivered = deliveries(Out),
    Whole = [Line || {Line, Item} <- Delivered, lists:nth(Line, Items) =:= Item],
    Gaps = [Gap || {_, {gap, _, orphaned, _, _} = Gap} <- Delivered],
    Missing = lists:sum([N || {gap, _, _, N, _} <- Gaps]),
    Orphaned = lists:sum([N || {_, N} <- Orphans]),
    #{procs := Procs, waits := Waits, held := Held, lost := Lost} = witness_trace_log:save(Log),
    ?WHENFAIL(io:format("~p~nout ~p~nrefused ~p~norphans ~p~n~p~n", [Items, Out, Refused, Orphans, Log]),
              length(Accepted) =:= length(Whole) + Missing + Orphaned
              andalso length(Whole) =:= length(lists:usort(Whole))
              andalso [] =:= Whole -- Accepted
              andalso in_place(Out, #{}, #{}, given(Options))
              andalso {Waits, Held, Lost} =:= {[], 0, 0}
              andalso [] =:= [P || P := {lives, _} <- Procs]).

given(#{roots := auto}) -> [];
given(#{roots := Roots}) -> Roots.

%% Each process is reported as a root or spawned before it acts, begins with its init, and does nothing after its exit. Its
%% lines grow within a life. Only a root that was given can be alive when it is spawned, once.
in_place([], _, _, _) ->
    true;
in_place([{root, P, _} | Out], Live, New, Given) ->
    not is_map_key(P, Live) andalso in_place(Out, Live#{P => 0}, New, Given);
in_place([{t, Line, {init, P, _, _, _}} | Out], Live, New, Given) when is_map_key(P, New) ->
    Last = case New of
               #{P := Line} -> 0;
               #{} -> Line
           end,
    in_place(Out, Live#{P => Last}, maps:remove(P, New), Given -- [P]);
in_place([{t, Line, Item} | Out], Live, New, Given) ->
    P = witness_event:proc(Item),
    Live1 = Live#{P => Line},
    maps:get(P, Live, none) < Line andalso
        case Item of
            {fork, _, C, _, _} when is_map_key(C, Live) ->
                lists:member(C, Given) andalso in_place(Out, Live1, New, Given -- [C]);
            {fork, _, C, _, _} -> in_place(Out, Live1, New#{C => Line}, Given);
            {exit, _, _, _} -> in_place(Out, maps:remove(P, Live), New, Given -- [P]);
            _ -> in_place(Out, Live1, New, Given)
        end.

%% --- the naive engine ---------------------------------------------------------------

%% Traced: the processes with events that are delivered. New: those without a delivered event so far, with their fork.
-record(naive, {traced, new = #{}, names, buffer = [], out = []}).

naive_state(Traced, Names) -> #naive{traced = Traced, names = Names}.

%% Each event is appended to the buffer, and the buffer is scanned from its beginning until nothing is found in it.
naive(Roots, Log, Names) ->
    Read = fun(Entry, #naive{buffer = Buffer} = N) -> scan(N#naive{buffer = Buffer ++ [Entry]});
              (_, overtaken) -> overtaken
           end,
    case lists:foldl(Read, naive_state(Roots, Names), lists:enumerate(Log)) of
        overtaken -> overtaken;
        #naive{buffer = [], out = Out} -> [{Line, rename(Item, Names)} || {Line, Item} <- lists:reverse(Out)]
    end.

naive_scan(Naive, Entries) ->
    #naive{buffer = [], out = Out} = scan(Naive#naive{buffer = Entries}),
    lists:reverse(Out).

scan(#naive{buffer = Buffer, traced = Traced} = N) ->
    case lists:search(fun({_, Item}) -> lists:member(element(2, Item), Traced) end, Buffer) of
        {value, {_, {fork, _, C, _, _}} = Entry} ->
            case overtakes(C, N) of
                true -> overtaken;
                false -> scan(take(Entry, N))
            end;
        {value, Entry} -> scan(take(Entry, N));
        false -> N
    end.

take({Line, Item} = Entry, #naive{buffer = Buffer, traced = Traced, new = New, out = Out} = N) ->
    P = element(2, Item),
    Made = case New of
               #{P := {ForkLine, {fork, Parent, P, Sig, Ts}}} when element(1, Item) =/= init ->
                   [{ForkLine, {init, P, Parent, Sig, Ts}}];
               #{} -> []
           end,
    N1 = N#naive{buffer = Buffer -- [Entry], new = maps:remove(P, New), out = [Entry | Made ++ Out]},
    case Item of
        {fork, _, C, _, _} -> N1#naive{traced = [C | Traced], new = (N1#naive.new)#{C => {Line, Item}}};
        {exit, _, _, _} -> N1#naive{traced = Traced -- [P]};
        _ -> N1
    end.

%% A process begins while events of another one with the same name wait for their spawn.
overtakes(C, #naive{buffer = Buffer, names = Names}) ->
    [] =/= [P || {_, Item} <- Buffer, P <- [element(2, Item)], P =/= C, rename(P, Names) =:= rename(C, Names)].

%% --- random systems -------------------------------------------------------------------

%% Which process does what; each state of the system interprets the numbers.
steps() -> list({range(0, 99), oneof([fork, fork, recv, recv, send, call, exit])}).

order() -> list(range(0, 99)).

%% The log of the system in the order in which things happen. A third of the processes log their init.
causal_log(Steps) -> causal_log(Steps, [0], 1).

causal_log([], _, _) -> [];
causal_log(_, [], _) -> [];
causal_log([{Which, What} | Steps], Live, Next) ->
    N = lists:nth(1 + Which rem length(Live), Live),
    case What of
        fork when length(Live) < 12 ->
            [fork(N, Next) | [init(N, Next) || Next rem 3 =:= 0]] ++ causal_log(Steps, [Next | Live], Next + 1);
        exit -> [{exit, p(N), normal, undefined} | causal_log(Steps, Live -- [N], Next)];
        send -> [{send, p(N), p(Which), hello, undefined} | causal_log(Steps, Live, Next)];
        call -> [{call, p(N), {m, f, [Which]}, undefined}, {return, p(N), {m, f, 1}, ok, undefined}
                 | causal_log(Steps, Live, Next)];
        _ -> [{recv, p(N), undefined, hello, undefined} | causal_log(Steps, Live, Next)]
    end.

fork(P, C) -> {fork, p(P), p(C), ?SIG, C}.
init(P, C) -> {init, p(C), p(P), ?SIG, C}.

p(N) -> {external, integer_to_binary(N)}.

with_inits(Log) ->
    Inits = [C || {init, C, _, _, _} <- Log],
    lists:append([case Item of
                      {fork, P, C, Sig, Ts} -> [Item | [{init, C, P, Sig, Ts} || not lists:member(C, Inits)]];
                      _ -> [Item]
                  end || Item <- Log]).

%% The same events in another order, that of each process kept.
merged(Log, Order) ->
    merge([[I || I <- Log, element(2, I) =:= P] || P <- lists:usort([element(2, I) || I <- Log])], Order).

merge([], _) -> [];
merge(Traces, []) -> lists:append(Traces);
merge(Traces, [Pick | Order]) ->
    {Before, [[Item | Trace] | After]} = lists:split(Pick rem length(Traces), Traces),
    [Item | merge(Before ++ [Trace || Trace =/= []] ++ After, Order)].

%% Names for processes: one that has ended in the log passes its name on to one that is forked later, and does nothing
%% before that. The fork of the one that has ended must have come, too.
names(Log) -> names(Log, [], #{}, []).

names([], _, Names, _) -> Names;
names([{fork, _, C, _, _} = Item | Log], Free, Names, Seen) ->
    Acted = [x || I <- Seen, element(2, I) =:= C] =/= [],
    case Free of
        [Name | Others] when not Acted -> names(Log, Others, Names#{C => Name}, [Item | Seen]);
        _ -> names(Log, Free ++ [rename(C, Names) || ended(C, Seen)], Names, [Item | Seen])
    end;
names([{exit, P, _, _} = Item | Log], Free, Names, Seen) ->
    Forked = P =:= p(0) orelse [x || {fork, _, C, _, _} <- Seen, C =:= P] =/= [],
    names(Log, Free ++ [rename(P, Names) || Forked], Names, [Item | Seen]);
names([Item | Log], Free, Names, Seen) ->
    names(Log, Free, Names, [Item | Seen]).

ended(P, Seen) -> lists:any(fun(I) -> element(1, I) =:= exit andalso element(2, I) =:= P end, Seen).

renamed(Log, Names) -> [rename(Item, Names) || Item <- Log].

rename({external, _} = P, Names) -> maps:get(P, Names, P);
rename(Item, Names) when element(1, Item) =:= fork; element(1, Item) =:= init ->
    setelement(3, setelement(2, Item, rename(element(2, Item), Names)), rename(element(3, Item), Names));
rename(Item, Names) -> setelement(2, Item, rename(element(2, Item), Names)).

%% --- logs without sense -----------------------------------------------------------------

wild(Item) ->
    ?LET({Roots, Waiting, Window}, {oneof([auto, [p(0)], [p(0), p(1)]]), range(1, 6), range(1, 8)},
         {#{roots => Roots, top => t, waiting => Waiting, window => Window}, list(Item)}).

wild_item() ->
    ?LET({P, C, Kind}, {wild_proc(), wild_proc(), oneof([fork, fork, init, exit, recv, recv, call])},
         case Kind of
             fork -> {fork, P, C, ?SIG, undefined};
             init -> {init, P, oneof([undefined, C]), ?SIG, undefined};
             exit -> {exit, P, normal, undefined};
             call -> oneof([{call, P, {m, f, [C]}, undefined}, {return, P, {m, f, 1}, C, undefined}]);
             recv -> oneof([{recv, P, C, hello, undefined}, {attached, P, {m, f, 1}, undefined}, {root, P, undefined}])
         end).

wild_call() ->
    oneof([{on, wild_proc(), oneof([t, u])}, {off, wild_proc()}, settle]).

wild_proc() -> ?LET(N, range(0, 5), p(N)).

%% --- running a log ----------------------------------------------------------------------

new(Roots) -> witness_trace_log:new(#{roots => Roots, top => t}).
auto() -> witness_trace_log:new(#{roots => auto, top => t}).

run(Log, Items) ->
    {Out, Refused, Log1} = through(1, Log, Items),
    {Out1, Log2} = drain(witness_trace_log:settle(Log1), []),
    {Orphans, Log3} = witness_trace_log:finish(Log2),
    {Out ++ Out1, Refused, Orphans, Log3}.

through(Line, Log, Items) ->
    {Out, Refused, Log1} = lists:foldl(fun through/2, {[], [], Log}, lists:enumerate(Line, Items)),
    {lists:append(lists:reverse(Out)), lists:reverse(Refused), Log1}.

through({_, {on, P, Tracer}}, {Out, Refused, Log}) ->
    after_call(Out, Refused, witness_trace_log:on(P, Tracer, Log));
through({_, {off, P}}, {Out, Refused, Log}) ->
    after_call(Out, Refused, witness_trace_log:off(P, Log));
through({_, settle}, {Out, Refused, Log}) ->
    after_call(Out, Refused, witness_trace_log:settle(Log));
through({Line, Item}, {Out, Refused, Log}) ->
    case witness_trace_log:add(Line, Item, Log) of
        {ok, Log1} ->
            {Now, Log2} = drain(Log1, []),
            {[Now | Out], Refused, Log2};
        {error, What, Log} ->
            true = is_binary(unicode:characters_to_binary(What)),
            {Out, [Line | Refused], Log}
    end.

after_call(Out, Refused, Log) ->
    {Now, Log1} = drain(Log, []),
    {[Now | Out], Refused, Log1}.

drain(Log, Out) ->
    case witness_trace_log:next(Log) of
        {deliver, T, Line, Item, Log1} -> drain(Log1, [{T, Line, Item} | Out]);
        {root, P, Signature, _, Log1} -> drain(Log1, [{root, P, Signature} | Out]);
        {none, Log1} -> {lists:reverse(Out), Log1}
    end.

deliveries(Out) -> [{Line, Item} || {t, Line, Item} <- Out].
