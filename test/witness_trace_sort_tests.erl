-module(witness_trace_sort_tests).
-moduledoc """
What is sorted by its times against sorting the whole log, however it is divided; and runs over logs in no order against the same
logs in order.
""".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(RUN_TIMEOUT, 60_000).

%% --- the items -------------------------------------------------------------------

the_order_is_that_of_the_times_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_sorted(), [quiet, {numtests, 1000}, {to_file, user}]))}.

prop_sorted() ->
    ?FORALL({Window, Steps, Sizes}, {integer(0, 20), list({integer(0, 9), integer(0, 20)}), list(integer(0, 7))},
            begin
                Items = items(Window, Steps),
                {All, Greatest, Sort} = taken(divided(Items, Sizes), Window),
                {Rest, Empty} = witness_trace_sort:flush(Sort),
                {Passed, Out} = lists:partition(fun({_, Item}) -> element(1, Item) =:= passed end, All),
                Times = [witness_event:ts(Item) || {_, Item} <- Out ++ Rest],
                Ranks = [Rank || {{Rank, _}, _} <- All ++ Rest],
                %% Of equal times the line decides, and each goes on as soon as nothing can come before it.
                (lists:keysort(2, [{Line, witness_event:ts(Item), Item} || {Line, Item} <- lists:enumerate(Items)])
                    =:= [{Line, witness_event:ts(Item), Item} || {{_, Line}, Item} <- Out ++ Rest])
                    andalso Ranks =:= lists:seq(1, length(Ranks))
                    %% Behind a line with the greatest time so far: what comes next is not before.
                    andalso lists:all(fun({{Rank, _}, {passed, Time}}) ->
                                [] =:= [Item || {{Later, _}, Item} <- Out ++ Rest, Later > Rank, witness_event:ts(Item) < Time]
                            end, Passed)
                    andalso [Line || {{_, Line}, _} <- Passed] =:= records(Items)
                    andalso length([Time || Time <- Times, Time =< Greatest - Window]) =:= length(Out)
                    andalso witness_trace_sort:count(Sort) =:= length(Rest)
                    andalso witness_trace_sort:count(Empty) =:= 0
            end).

%% The lines with times that are greater than all before them.
records(Items) ->
    {Lines, _} = lists:foldl(fun({Line, Item}, {Before, Greatest}) ->
        case witness_event:ts(Item) of
            Time when Greatest =:= none; Time > Greatest -> {[Line | Before], Time};
            _ -> {Before, Greatest}
        end
    end, {[], none}, lists:enumerate(Items)),
    lists:reverse(Lines).

%% Times that go on by a step, and back by at most the window.
items(Window, Steps) ->
    {Items, _} = lists:mapfoldl(fun({On, Back}, Greatest) ->
        Time = Greatest + On - min(Back, Window),
        {event(Time), max(Time, Greatest)}
    end, 0, Steps),
    Items.

event(Time) -> {recv, {external, ~"p"}, undefined, rand:uniform(3), Time}.

divided([], _) -> [];
divided(Items, []) -> [Items];
divided(Items, [Size | Sizes]) ->
    {Now, Later} = lists:split(min(Size, length(Items)), Items),
    [Now | divided(Later, Sizes)].

%% Sometimes it is saved and loaded in between.
taken(Blocks, Window) ->
    {Out, _, Greatest, Sort} = lists:foldl(fun(Block, {Before, Base, Latest, Sort}) ->
        {ok, Sorted, Sort1} = witness_trace_sort:add(lists:enumerate(Block), {Base, 0}, binary_to_term(term_to_binary(Sort))),
        {Before ++ Sorted, Base + length(Block), lists:max([Latest | [witness_event:ts(Item) || Item <- Block]]), Sort1}
    end, {[], 0, -1_000_000, witness_trace_sort:new(Window)}, Blocks),
    {Out, Greatest, Sort}.

%% As an item with this time would, of which there is none.
a_time_lets_go_on_what_is_before_it_test() ->
    Items = lists:enumerate([event(9), event(5)]),
    {ok, [{{1, 1}, {passed, 4}}], Sort} = witness_trace_sort:add(Items, {0, 0}, witness_trace_sort:new(5)),
    ?assertMatch({[], Sort}, witness_trace_sort:pass(8, 2, Sort)),
    {[{{2, 2}, _}, {{3, 2}, {passed, 5}}], Sort1} = witness_trace_sort:pass(10, 2, Sort),
    ?assertMatch({refused, 3, _, [], [], _}, witness_trace_sort:add([{1, event(4)}], {2, 0}, Sort1)),
    ?assertMatch({ok, [{{4, 3}, _}], _}, witness_trace_sort:add([{1, event(5)}], {2, 0}, Sort1)),
    ?assertMatch({[{{2, 2}, _}, {{3, 1}, _}, {{4, 2}, {passed, 9}}], _}, witness_trace_sort:pass(14, 2, Sort)).

%% The lines of a second file begin anew. Without a time, what is no event goes on at once.
lines_are_those_of_their_file_test() ->
    Sort = witness_trace_sort:new(5),
    {ok, _, Sort1} = witness_trace_sort:add([{1, event(1)}, {2, event(2)}], {0, 0}, Sort),
    {ok, Out, Sort2} = witness_trace_sort:add([{1, event(2)}, {2, {gap, p, lost, 1, undefined}}, {3, event(9)}], {2, -2}, Sort1),
    ?assertMatch([{{_, 2}, {gap, _, _, _, _}}, {{_, 1}, {recv, _, _, _, 1}}, {{_, 2}, {recv, _, _, _, 2}},
                  {{_, 1}, {recv, _, _, _, 2}}, {{_, 3}, {passed, 4}}], Out),
    ?assertMatch({[{{_, 3}, _}], _}, witness_trace_sort:flush(Sort2)),
    ?assertMatch({ok, [{{1, 1}, {attached, _, _, _}}], _},
                 witness_trace_sort:add([{1, {attached, p, {m, f, 0}, undefined}}], {0, 0}, Sort)).

what_cannot_be_sorted_is_refused_at_its_line_test() ->
    Add = fun(Items) -> witness_trace_sort:add(lists:enumerate(Items), {10, 0}, witness_trace_sort:new(5)) end,
    Text = fun(What) -> unicode:characters_to_binary(What) end,
    Last = event(4),
    {refused, 13, Early, [{_, {passed, -4}}, {{2, 11}, _}, {_, {passed, 4}}], [{4, Last}], Sort} =
        Add([event(1), event(9), event(3), Last]),
    ?assertEqual(~"the time of this event is 6 ns before the greatest one so far (with --clock, that of the clock), which is more than --sort allows", Text(Early)),
    ?assertMatch({ok, [{{4, 14}, Last}], _}, witness_trace_sort:add([{4, Last}], {10, 0}, Sort)),
    {refused, 12, Timeless, [_], [], _} = Add([event(1), setelement(5, event(1), undefined)]),
    ?assertEqual(~"this event has no time, and cannot be sorted: expected one in each line, or no --sort", Text(Timeless)),
    %% What the log says of itself is no event.
    ?assertMatch({ok, [{{1, 11}, {receives, taken}}, {{2, 12}, {functions, []}}, {{3, 13}, {passed, -4}}], _},
                 Add([{receives, taken}, {functions, []}, event(1)])).

%% Events that wait do not make one head of the heads of two logs.
heads_with_an_event_between_them_do_not_touch_test() ->
    Items = lists:enumerate([{functions, [{m, f, 1}]}, event(4), {receives, taken}, event(3), event(2), {receives, taken},
                             event(4)]),
    [begin
         {Out, _} = lists:foldl(fun(Block, {Before, Sort}) ->
             {ok, Sorted, Sort1} = witness_trace_sort:add(Block, {0, 0}, Sort),
             {Before ++ Sorted, Sort1}
         end, {[], witness_trace_sort:new(5)}, Blocks),
         ?assertMatch([{functions, _}, {passed, -1}, {receives, taken}, {passed, -1}, {receives, taken}, {passed, -1}],
                      without_repeated([Item || {_, Item} <- Out]))
     end || Blocks <- [[Items], [[Item] || Item <- Items]]].

without_repeated([{passed, _} = Item, Item | Items]) -> without_repeated([Item | Items]);
without_repeated([Item | Items]) -> [Item | without_repeated(Items)];
without_repeated([]) -> [].

not_more_than_a_million_wait_test_() ->
    {timeout, 120, fun() ->
        Items = lists:enumerate([{recv, p, undefined, a, Time} || Time <- lists:seq(1, 1_000_002)]),
        {refused, 1_000_001, What, Passed, [{1_000_002, _}], Sort} =
            witness_trace_sort:add(Items, {0, 0}, witness_trace_sort:new(2_000_000)),
        ?assertEqual(~"more than 1000000 lines are within sort: expected a shorter time", unicode:characters_to_binary(What)),
        ?assertEqual([], [Item || {_, Item} <- Passed, element(1, Item) =/= passed]),
        {Rest, _} = witness_trace_sort:flush(Sort),
        ?assertEqual(1_000_000, length(Rest))
    end}.

%% --- whole runs ------------------------------------------------------------------

logs_in_no_order_have_the_verdicts_of_those_in_order_test_() ->
    {timeout, 120, fun() ->
        {ok, _} = application:ensure_all_started(witness),
        with_files(fun(Dir, Specs) ->
            [begin
                 Lines = lines(),
                 Window = lists:nth(rand:uniform(4), [0, 3_000_000, 40_000_000, 1_000_000_000]),
                 Shuffled = shuffled(Lines, Window),
                 Expected = found(Dir, Lines, Specs, More#{skew => 0}),
                 ?assert(length(Expected) > 20),
                 expect(Expected, found(Dir, Shuffled, Specs, More#{sort => Window div 1_000_000})),
                 expect(Expected, in_parts(Dir, Shuffled, Window, Specs, More))
             end || More <- [#{}, #{instrument => central}, #{block => 64}, #{block => 700}]]
        end)
    end}.

expect(Expected, Found) -> ?assertEqual({[], [], Expected =:= Found}, {Expected -- Found, Found -- Expected, true}).

with_files(Fun) ->
    Dir = string:trim(os:cmd("mktemp -d")),
    Specs = [filename:join(Dir, Name) || Name <- ["workers.hml", "group.hml"]],
    [ok = file:write_file(Spec, Text) || {Spec, Text} <- lists:zip(Specs, [
        """
        never: with m:w(_) over _ ? {_, bad} check [_ ? _] ff.
        in_time: with m:w(_) check [_ <- _, _] [_ ? {_, _}] within 25 ms <_ ? {_, _}> tt.
        """,
        "again: with m:main() group per K over _ ? {K, _} check [_ ? _] [_ ? _] ff."])],
    try Fun(Dir, Specs) after file:del_dir_r(Dir) end.

%% Workers that take messages, a millisecond apart; each line with its time.
lines() ->
    Workers = [io_lib:format("<0.~b.0>", [N]) || N <- lists:seq(11, 20)],
    Events = [~"init(<0.1.0>, undefined, {m, main, []})."]
        ++ lists:append([[io_lib:format("fork(<0.1.0>, ~s, {m, w, [~b]}).", [W, N]),
                          io_lib:format("init(~s, <0.1.0>, {m, w, [~b]}).", [W, N])]
                         || {N, W} <- lists:enumerate(Workers)])
        ++ [io_lib:format("recv(~s, {~b, ~s}).", [some(Workers), rand:uniform(60), some(["bad", "good", "good", "good"])])
            || _ <- lists:seq(1, 300)]
        ++ [io_lib:format("exit(~s, normal).", [W]) || W <- ["<0.1.0>" | Workers]],
    [{Time * 1_000_000, iolist_to_binary(Event)} || {Time, Event} <- lists:enumerate(Events)].

some(List) -> lists:nth(rand:uniform(length(List)), List).

%% Times go back by at most the window.
shuffled(Lines, Window) ->
    [Line || {_, Line} <- lists:keysort(1, [{Time + rand:uniform(Window + 1) - 1, Line} || {Time, _} = Line <- Lines])].

%% Verdicts with the times of the lines that have decided.
found(Dir, Lines, Specs, Options) ->
    File = filename:join(Dir, "whole.log"),
    ok = file:write_file(File, text(Lines)),
    checked(File, Lines, Specs, Options).

checked(File, Lines, Specs, Options) ->
    {ok, Run} = witness:start(Options#{system => {log, {file, File}}, format => text, specs => Specs, log => false}),
    {ok, #{refused := undefined}} = witness:await(Run, ?RUN_TIMEOUT),
    Found = [{Name, Verdict, P, Slice, Event, time(Log, Lines)}
             || #{name := Name, verdict := Verdict, process := P, slice := Slice, event := Event, log := Log}
                    <- witness:verdicts(Run), Verdict =/= inconclusive],
    {ok, _} = witness:stop(Run),
    Found.

time(Log, Lines) ->
    [_, Line] = string:split(Log, ":", trailing),
    element(1, lists:nth(binary_to_integer(Line), Lines)).

text(Lines) -> [[$@, integer_to_binary(Time), $\s, Line, $\n] || {Time, Line} <- Lines].

%% The log grows, and a second run goes on where the first has ended. It judges again what has waited until then.
in_parts(Dir, Lines, Window, Specs, Options) ->
    {File, Position} = {filename:join(Dir, "parts.log"), filename:join(Dir, "parts.position")},
    {Begin, End} = lists:split(rand:uniform(length(Lines) - 1), Lines),
    Sorted = Options#{sort => Window div 1_000_000},
    ok = file:write_file(File, text(Begin)),
    First = checked(File, Lines, Specs, Sorted#{save => Position}),
    ok = file:write_file(File, text(End), [append]),
    Second = checked(File, Lines, Specs, Sorted#{from => Position}),
    Until = lists:max([Time || {Time, _} <- Begin]) - Window,
    [Found || Found <- First, element(6, Found) =< Until] ++ Second.
