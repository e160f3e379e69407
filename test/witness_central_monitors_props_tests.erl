-module(witness_central_monitors_props_tests).
-moduledoc """
The monitors of central monitoring, as data, against the definition. On a random interleaving, each monitor reports what
it would report alone on its own events: the projection to its process, the whole trace, or, for one slice of a monitor of
all processes, the projection to the value. Events held back come in the order of their stamps, or the monitor has a gap.
""".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(HOST, {external, ~"host"}).

%% Two files, so that the marks of the second have the names of those of the first; each process has monitors of both.
-define(FIRST,
    "echo: with m:a(_) check max X.([_ <- _, _] X and [_ ? {N, _}] X and [_ : _ ! {N, odd}] ff and [_ : _ ! {_, even}] X).\n"
    "ends_well: with m:a(_), m:b(_) over _ ? {_, a}, _ ** _ check max X.([_ ? _] X and [{_ ** R when R =/= normal}] ff).\n"
    "bounded: with m:b(_) per N over _ ? {N, _}, _ : _ ! {N, _} check [_ ? _] <_ : _ ! {_, even}> tt.\n").
-define(SECOND,
    "few: with m:a(_) check [_ <- _, _] [_ ? _] [_ ? _] [_ ? _] ff.\n"
    "some: with m:b(_) check [_ <- _, _] <_ : _ ! {_, odd}> tt.\n").
-define(ALL,
    "paired: per N over begin P ? {N, _}, _ : _ ! {N, _}, _ ** crash\n"
    "check [P ? {_, W}] max X.([{_ : _ ! {_, V} when V =/= W}] X and [{_ : _ ! {_, V} when V =:= W}] tt\n"
    "  and [_ ? _] ff and [P ** _] ff and [{Q ** _ when Q =/= P}] X).\n").

props_test_() ->
    {setup, fun() -> [compile(Text) || Text <- [?FIRST, ?SECOND, ?ALL]] end,
     fun(Specs) -> lists:foreach(fun witness_spec:unload/1, Specs) end,
     fun(Specs) ->
         [{timeout, 120, {Name, ?_assert(proper:quickcheck(Property(Specs), [quiet, {numtests, 1000}, {to_file, user}]))}}
          || {Name, Property} <- [{"projections to processes", fun prop_projection/1},
                                  {"projections to values", fun prop_values/1},
                                  {"what is held back", fun prop_held_back/1}]]
     end}.

compile(Text) ->
    {ok, Spec, []} = witness_spec:compile_string(~"s", list_to_binary(Text)),
    Spec.

%% --- properties --------------------------------------------------------------------

%% With all outcomes, and what was taken: the marks of one property are not taken for those of another.
prop_projection([First, Second, All]) ->
    ?FORALL({Trace, Batches}, {trace(), list(integer(1, 9))},
            begin
                Specs = [First, Second],
                Found = isolated(fun() -> found(Trace, Batches, Specs, [All], false) end),
                Alone = lists:append([alone(P, Trace, Spec) || P <- processes(Trace), Spec <- Specs])
                    ++ isolated(fun() -> together(Trace, All) end),
                same(without_covered(lists:sort(Alone)), without_covered(Found))
                    andalso same(covered(Alone), covered(Found))
            end).

%% By property, what any of its monitors has taken.
covered(Found) ->
    lists:foldl(fun({{_, Name, _}, _, #{covered := Mask}}, A) ->
        maps:update_with(Name, fun(M) -> M bor Mask end, Mask, A)
    end, #{}, Found).

prop_values([_, _, All]) ->
    ?FORALL({Trace, Batches}, {trace(), list(integer(1, 9))},
            begin
                Outcomes = fun(Events) ->
                    lists:append([Slices || {_, Slices, _} <- found(Events, Batches, [], [All], false)])
                end,
                Whole = Outcomes(Trace),
                lists:all(fun(N) ->
                    Of = fun(Slices) -> [without_index(O) || #{slice := [{_, V}]} = O <- Slices, V =:= N] end,
                    same(Of(Outcomes([E || E <- Trace, is_of(N, E)])), Of(Whole))
                end, numbers())
            end).

%% Too early: with a window of 1, an event may come after a later event of another process was released.
prop_held_back([First, Second, All]) ->
    ?FORALL({Trace, Delays, Batches}, {trace(), list(integer(0, 12)), list(integer(1, 9))},
            begin
                Specs = [grouped(First), grouped(Second)],
                Expected = found(Trace, Batches, Specs, [All], false),
                {Arrival, Window} = delayed(Trace, Delays),
                InTime = found({Arrival, Window + 1}, Batches, Specs, [All], true),
                TooEarly = found({Arrival, 1}, Batches, Specs, [All], true),
                same(without_covered(Expected), without_covered(InTime))
                    andalso lists:all(fun({A, B}) -> same_or_late(A, B) end,
                                      lists:zip(without_covered(Expected), without_covered(TooEarly)))
            end).

same(Same, Same) -> true;
same(Expected, Found) ->
    io:format(user, "~nexpected ~p~nfound ~p~n", [Expected -- Found, Found -- Expected]),
    false.

%% The outcome is the same, or it says that an event was late.
same_or_late(Same, Same) -> true;
same_or_late(_, {_, _, #{reason := {gap, late}}}) -> true;
same_or_late(Expected, Found) -> same([Expected], [Found]).

%% --- central -----------------------------------------------------------------------

%% For each monitor: its property and process, the outcomes of its slices, and what ended it; sorted.
found(Trace, Batches, Specs, All, Ordered) when is_list(Trace) ->
    found({[{{I, E}, I} || {I, E} <- lists:enumerate(Trace)], 1}, Batches, Specs, All, Ordered);
found({Arrival, Window}, Batches, Specs, All, Ordered) ->
    isolated(fun() ->
        M = witness_central_monitors:new(#{host => ?HOST, all => lists:append([entries(S) || S <- All]), ordered => Ordered,
                                           explain => 3}),
        Maps = [map(S) || S <- Specs],
        {Reports, {M1, _, _}} = lists:mapfoldl(fun(Batch, A) ->
            {M2, Labels, Alive} = lists:foldl(fun(S, B) -> arrived(S, Maps, Window, B) end, A, Batch),
            {New, M3} = worked(M2),
            {New, {M3, Labels, Alive}}
        end, {M, #{}, #{}}, divided(Arrival, Batches)),
        {Last, _} = worked(witness_central_monitors:stop(M1)),
        read(lists:append(Reports) ++ Last)
    end).

worked(M) ->
    Next = witness_central_monitors:work(fun(Reports) -> self() ! {told, Reports} end, M),
    {told(), Next}.

told() -> receive {told, Reports} -> Reports ++ told() after 0 -> [] end.

%% The marks are in the dictionary of the process.
isolated(Fun) ->
    {Pid, Ref} = spawn_monitor(fun() -> exit({result, Fun()}) end),
    receive {'DOWN', Ref, process, Pid, {result, Result}} -> Result end.

%% `Clock': the time when it comes; what is older than the window has come.
arrived({{I, E}, Clock}, Maps, Window, {M, Labels, Alive}) ->
    P = element(2, E),
    {Label, M1, Alive1} = case E of
        {init, P, _, Signature, _} ->
            New = witness_instrument_map:new(Maps, #{held => true, signature => Signature}),
            {{L, A}, Started} = witness_central_monitors:start(P, {Signature, #{}}, {New, Alive}, M),
            {L, Started, A};
        _ -> {map_get(P, Labels), M, Alive}
    end,
    Readers = witness_instrument_map:label(readers, Label),
    M2 = witness_central_monitors:add_events(Readers, [{I, E}], M1),
    M3 = lists:foldl(fun(C, A) -> witness_central_monitors:add_clock(C, Clock - Window, A) end, M2,
                     witness_central_monitors:clocks(Readers, M2)),
    case E of
        {exit, P, _, _} ->
            {Complete, Alive2} = witness_instrument_monitors:handle_end(Label, Alive1),
            {witness_central_monitors:complete(Complete, M3), Labels, Alive2};
        _ -> {M3, Labels#{P => Label}, Alive1}
    end.

%% Each monitor is announced once, then has its slices, then its end.
read(Reports) ->
    Started = [{Reader, {maps:get(spec, Meta), maps:get(name, Meta), maps:get(process, Meta, all)}}
               || {monitor, {?HOST, _} = Reader, Meta} <- Reports],
    lists:sort([begin
                    Of = [R || R <- Reports, element(2, R) =:= Reader],
                    [{monitor, _, _} | Said] = Of,
                    {Slices, [{verdict, _, Final}]} = lists:split(length(Said) - 1, Said),
                    {Id, [O || {slice, _, O} <- Slices], Final}
                end || {Reader, Id} <- Started]).

entries(#{module := Module, entries := Entries}) ->
    [#{monitor => {Module, I}, spec => ~"s", name => Name, group => false} || #{index := I, name := Name} <- Entries].

map(#{module := Module, grouped := true} = Spec) ->
    fun(Signature) -> [(lists:nth(I, entries(Spec)))#{group := true} || I <- Module:match(Signature)] end;
map(#{module := Module} = Spec) ->
    fun(Signature) -> [lists:nth(I, entries(Spec)) || I <- Module:match(Signature)] end.

%% A group of one process, which is put in order as any other.
grouped(Spec) -> Spec#{grouped => true}.

%% --- alone -------------------------------------------------------------------------

alone(P, Trace, #{module := Module} = Spec) ->
    Events = [E || E <- Trace, element(2, E) =:= P],
    {init, P, _, Signature, _} = hd(Events),
    How = case lists:last(Events) of {exit, _, _, _} -> complete; _ -> stopped end,
    isolated(fun() ->
        [{{~"s", Name, P}, Slices, Final#{covered => witness_monitor_machine:take_marks()}}
         || I <- Module:match(Signature), #{name := Name} <- [lists:nth(I, entries(Spec))],
            {Slices, Final} <- [machine(Events, How, #{monitor => {Module, I}, process => P, signature => Signature})]]
    end).

together(Trace, #{module := Module} = Spec) ->
    [#{name := Name}] = entries(Spec),
    {Slices, Final} = machine(Trace, stopped, #{monitor => {Module, 1}, process => all, signature => all}),
    [{{~"s", Name, all}, Slices, Final#{covered => witness_monitor_machine:read_marks()}}].

machine(Events, How, Spec) ->
    {ok, Machine} = witness_monitor_machine:new(Spec#{explain => 3}),
    case witness_monitor_machine:run(Events, Machine) of
        {Slices, {decided, Final}} -> {Slices, Final};
        {Slices, {ok, Next}} ->
            {Last, Final} = witness_monitor_machine:finish(How, Next),
            {Slices ++ Last, Final}
    end.

without_covered(Found) -> [{Id, Slices, maps:remove(covered, Final)} || {Id, Slices, Final} <- Found].

%% --- traces ------------------------------------------------------------------------

numbers() -> [1, 1.0, 2, 3].

processes(Trace) -> [P || {init, P, _, _, _} <- Trace].

%% Processes with a beginning, and perhaps with an end, each in its order; stamps are their places.
trace() ->
    ?LET(Locals, ?LET(N, integer(1, 5), [local(I) || I <- lists:seq(1, N)]),
         ?LET(Choices, vector(lists:sum([length(L) || L <- Locals]), integer(1, 1000)),
              stamped(interleaved(Locals, Choices)))).

local(I) ->
    P = {external, <<"p", (integer_to_binary(I))/binary>>},
    ?LET({Kind, Messages, End}, {oneof([a, b]), list(message()), oneof([alive, normal, crash])},
         [{init, P, undefined, {m, Kind, [I]}, 0}] ++ [message(P, M) || M <- Messages]
         ++ [{exit, P, End, 0} || End =/= alive]).

message() -> {oneof([send, recv]), {oneof(numbers()), oneof([odd, even, a])}}.

message(P, {send, M}) -> {send, P, other, M, 0};
message(P, {recv, M}) -> {recv, P, undefined, M, 0}.

interleaved(Locals, [Choice | Choices]) ->
    Left = [L || L <- Locals, L =/= []],
    {Before, [[E | Rest] | After]} = lists:split(Choice rem length(Left), Left),
    [E | interleaved(Before ++ [Rest | After], Choices)];
interleaved(_, []) -> [].

stamped(Trace) -> [setelement(tuple_size(E), E, I) || {I, E} <- lists:enumerate(Trace)].

is_of(N, {Kind, _, _, {V, _}, _}) when Kind =:= send; Kind =:= recv -> V =:= N;
is_of(_, _) -> true.

%% Only the events of other values are missing, which this slice counts nowhere else than here.
without_index(#{event := #{event := E}} = O) -> O#{event := E};
without_index(O) -> O.

%% Each comes so much later than it happened, and after those of the same process. `Window': the longest of these times.
delayed(Trace, Delays) ->
    {Timed, _} = lists:mapfoldl(fun({I, E}, {At, Left}) ->
        P = element(2, E),
        {Delay, Others} = case Left of [] -> {0, []}; [D | Ds] -> {D, Ds} end,
        Time = max(I + Delay, maps:get(P, At, 0)),
        {{{I, E}, Time}, {At#{P => Time}, Others}}
    end, {#{}, Delays}, lists:enumerate(Trace)),
    {lists:keysort(2, Timed), lists:max([0 | [Time - I || {{I, _}, Time} <- Timed]])}.

divided([], _) -> [];
divided(Events, []) -> [Events];
divided(Events, [Size | Sizes]) ->
    {Now, Later} = lists:split(min(Size, length(Events)), Events),
    [Now | divided(Later, Sizes)].
