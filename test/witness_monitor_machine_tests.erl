-module(witness_monitor_machine_tests).
-moduledoc """
A monitor as data: what it says does not depend on how its events were divided, nor on whether it was saved in between.

What its callbacks may do to it is tested with `m:witness_monitor_runner`, which runs a machine. The monitor is this
module; its argument says of which kind it is. The state is the number of the events that it has seen.
""".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-export([init/3, among/2, handle_event/2, handle_end/2, slice/2, instance/2, slice_names/1, alphabet/1, describe/1]).

%% --- the monitor -------------------------------------------------------------------

init(undefined, undefined, All) when All =:= all; All =:= some -> {slices, {one, none}};
init({_, _, [ignore]}, _, _) -> ignore;
init({_, _, [crash]}, _, _) -> error(oops);
init(_, _, Kind) when Kind =:= plain; Kind =:= alphabet -> {ok, 0};
init({_, _, [Own]}, _, filter) -> {ok, 0, {filter, Own}};
init({_, _, [Own]}, _, one) -> {slices, {one, Own}};
init({_, _, [Own]}, _, two) -> {slices, {two, Own}}.

among(some, undefined) -> unknown;
among(some, {unknown, _, _, _}) -> unknown;
among(some, {_, _, [Number]}) -> is_integer(Number);
among(_, _) -> true.

handle_event({recv, _, _, {_, crash}, _}, _) -> error(oops);
handle_event({recv, _, _, {_, wrong}, _}, _) -> wrong;
handle_event({recv, _, _, {_, Verdict}, _}, N) when Verdict =:= no; Verdict =:= yes -> {verdict, Verdict, N};
handle_event(_, N) -> {ok, N + 1}.

handle_end(How, N) -> {no, {How, N}}.

slice({recv, _, _, {_, unsliced}, _}, _) -> error(unsliced);
slice({recv, _, _, {all, _}, _}, _) -> all;
slice(E, {one, none}) when element(1, E) =/= recv -> skip;
slice({recv, _, _, {Own, _}, _}, {_, Own}) -> skip;
slice(_, {filter, _}) -> all;
slice({recv, _, _, {Key, _}, _}, {one, _}) -> {slice, {Key}};
slice({recv, _, _, {Key, What}, _}, {two, _}) -> {slice, {Key, What =:= b}}.

instance(Key, _) -> tuple_size(Key).

slice_names({one, _}) -> [~"Key"];
slice_names({two, _}) -> [~"Key", ~"B"].

alphabet(alphabet) -> [{recv, [{['_', {'$1', '_'}], [{'=/=', '$1', 3}], ['$_']}]}];
alphabet(_) -> all.

describe(N) -> #{formula => integer_to_binary(N), bindings => []}.

kinds() -> [plain, alphabet, filter, one, two, all, some].

%% --- properties --------------------------------------------------------------------

outcomes_do_not_depend_on_the_division_of_the_events_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_division(), [quiet, {numtests, 2000}, {to_file, user}]))}.

prop_division() ->
    ?FORALL({Kind, Explain, Max, Idle}, {oneof(kinds()), integer(1, 4), integer(1, 3), oneof([infinity, 1, 3])},
    ?FORALL({Events, Sizes, End},
            {resize(200, list(event(Kind))), list(integer(1, 70)), oneof([complete, stopped, {gap, lost}])},
            begin
                Spec = spec(Kind, maps:merge(subject(Kind), #{explain => Explain, max_slices => Max, slice_idle => Idle})),
                Whole = outcomes([Events], End, Spec, fun(M) -> M end),
                Singly = outcomes([[E] || E <- Events], End, Spec, fun(M) -> M end),
                Divided = divided(Events, Sizes),
                Prepared = outcomes(Divided, End, witness_monitor_machine:prepare(Spec), fun(M) -> M end),
                Saved = outcomes(Divided, End, Spec, fun(M) -> saved(M, Spec) end),
                expect([Whole, Whole, Whole], [Singly, Prepared, Saved])
            end)).

%% More undecided slices than are explained.
many_slices_do_not_depend_on_the_division_of_the_events_test() ->
    Events = [recv({N, a}) || N <- lists:seq(11, 160)],
    Spec = spec(one, #{max_slices => 2, slice_idle => infinity}),
    [?assertMatch({Shown, #{max_slices := 48}, #{slices := 150}} when length(Shown) =:= 102,
                  outcomes(divided(Events, Sizes), complete, Spec, Between))
     || Sizes <- [[], [120], [101, 20], lists:duplicate(150, 1)], Between <- [fun(M) -> M end, fun(M) -> saved(M, Spec) end]].

subject(All) when All =:= all; All =:= some -> #{process => all, signature => all};
subject(_) -> #{}.

expect(Same, Same) -> true;
expect(Expected, Found) -> io:format(user, "~p~n~p~n", [Expected, Found]), false.

%% Long runs of events that decide nothing, too. Times need not grow.
event(All) when All =:= all; All =:= some ->
    ?LET({P, Kind, E}, {oneof([~"p", ~"q", ~"r"]), frequency([{1, exit}, {2, init}, {6, recv}]), event(one)},
         case Kind of
             exit -> {exit, {external, P}, bye, element(5, E)};
             init ->
                 Argument = case element(4, E) of {1, _} when All =:= some -> 1; Message -> Message end,
                 {init, {external, P}, undefined, {m, f, [Argument]}, element(5, E)};
             recv -> setelement(2, E, {external, P})
         end);
event(_) ->
    ?LET({Key, What, Time},
         {oneof([1, 1.0, 2, 3, all]),
          frequency([{40, a}, {40, b}, {1, no}, {1, yes}, {1, crash}, {1, wrong}, {1, unsliced}]),
          oneof([undefined, ?LET(N, integer(0, 20), N * 500_000)])},
         setelement(5, recv({Key, What}), Time)).

divided([], _) -> [];
divided(Events, []) -> [Events];
divided(Events, [Size | Sizes]) ->
    {Now, Later} = lists:split(min(Size, length(Events)), Events),
    [Now | divided(Later, Sizes)].

outcomes(Batches, End, Spec, Between) ->
    {ok, M} = witness_monitor_machine:new(Spec),
    {Slices, Final} = lists:foldl(fun
        (Batch, {Told, {ok, Machine}}) ->
            {Slices, Result} = witness_monitor_machine:run(Batch, Between(Machine)),
            {Told ++ Slices, Result};
        (_, Decided) ->
            Decided
    end, {[], {ok, M}}, Batches),
    case Final of
        {decided, Outcome} -> without_stacks({counted(Slices), Outcome});
        {ok, Last} ->
            {More, Outcome} = case End of
                {gap, _} -> witness_monitor_machine:inconclusive(End, Between(Last));
                _ -> witness_monitor_machine:finish(End, Between(Last))
            end,
            without_stacks({counted(Slices ++ More), Outcome})
    end.

%% Those that are only counted have a number for each part that the events were divided into. It is their sum that stays.
counted(Slices) ->
    {Counts, Others} = lists:partition(fun(Slice) -> is_tuple(Slice) andalso element(1, Slice) =:= undecided end, Slices),
    Numbers = maps:groups_from_list(fun({_, Reason, _}) -> Reason end, fun({_, _, N}) -> N end, Counts),
    {Others, maps:map(fun(_, Ns) -> lists:sum(Ns) end, Numbers)}.

%% A machine is loaded from the text of its data.
saved(M, Spec) ->
    {ok, [Saved]} = consult(io_lib:format("~w.", [witness_monitor_machine:save(M)])),
    {ok, Loaded} = witness_monitor_machine:load(Saved, maps:without([process, signature], Spec)),
    Loaded.

%% Neither funs nor references nor the names of modules; process identifiers have no text that reads back.
consult(Text) ->
    {ok, Tokens, _} = erl_scan:string(lists:flatten(Text)),
    {ok, [Expr]} = erl_parse:parse_exprs(Tokens),
    false = lists:keymember(?MODULE, 3, Tokens),
    {ok, [erl_parse:normalise(Expr)]}.

without_stacks({{Slices, Counts}, Final}) -> {[without_stack(Outcome) || Outcome <- Slices], Counts, without_stack(Final)}.

without_stack(#{reason := {crashed, {Class, Why, _}}} = Outcome) when Class =/= bad_return ->
    Outcome#{reason := {crashed, {Class, Why}}};
without_stack(Outcome) -> Outcome.

%% --- beginnings --------------------------------------------------------------------

a_monitor_may_refuse_its_process_test() ->
    ?assertEqual({decided, ignored}, witness_monitor_machine:new(spec(plain, #{signature => {m, f, [ignore]}}))).

a_crash_at_the_beginning_decides_test() ->
    ?assertMatch({decided, #{verdict := inconclusive, reason := {crashed, {error, oops, _}}, slice := undefined,
                             steps := []}},
                 witness_monitor_machine:new(spec(plain, #{signature => {m, f, [crash]}}))).

%% --- states ------------------------------------------------------------------------

the_steps_of_an_explanation_are_saved_test() ->
    Spec = spec(plain, #{explain => 3}),
    {ok, M} = witness_monitor_machine:new(Spec),
    {[], {ok, M1}} = witness_monitor_machine:run([recv({N, a}) || N <- lists:seq(1, 9)], M),
    {[], Final} = witness_monitor_machine:finish(stopped, saved(M1, Spec)),
    ?assertMatch(#{skipped := 6, steps := [#{index := 7, event := {recv, _, _, {7, a}, _}, formula := ~"7"},
                                           #{index := 8}, #{index := 9}]}, Final).

what_was_never_saved_is_refused_test() ->
    Saved = {0, 1, [{recv({1, a}), 1}]},
    One = fun(Slices) -> {sliced, {one, own}, Slices} end,
    [?assertEqual({Data, {error, damaged}}, {Data, witness_monitor_machine:load(Data, spec(one, #{}))}) ||
     Data <- [x, {whole, x}, {whole, {0, -1, []}}, {whole, {0, x, []}}, {whole, {0, 1, [x]}}, {whole, {0, 1, [{x, 1}]}},
              {whole, {0, 0, [{recv({1, a}), 1}]}}, {whole, {0, 2, [{recv({1, a}), 1} | x]}}, {filtered, x, x},
              One(x), One({1, 1, [{1, 1, Saved}]}), One({-1, 0, [], []}), One({x, 0, [], []}), One({1, 1, x, []}),
              One({1, 1, [x], []}), One({1, x, [], []}), One({1, 1, [{2, 1, Saved}], []}), One({1, 1, [{0, 1, Saved}], []}),
              One({1, 1, [{x, 1, Saved}], []}), One({1, 1, [{1, 1, x}], []}), One({1, 1, [{1, 1, Saved} | x], []}),
              One({1, 1, [{1, 1, Saved}], x}), One({1, 1, [{1, 1, Saved}], [{1, 5}]}),
              {sliced, {two, own}, {1, 1, [{1, 1, Saved}], []}}, {all, x, {whole, {0, 0, []}}}, {all, none, x}]],
    Load = fun(Data, Idle) -> witness_monitor_machine:load(Data, spec(one, #{slice_idle => Idle})) end,
    [?assertEqual({error, damaged}, Load(One({1, 1, [{1, 1, Saved}], Times}), 1)) || Times <- [x, [x], [{1, x}]]],
    ?assertMatch({ok, _}, Load(One({1, 1, [{1, 1, Saved}], []}), infinity)),
    ?assertMatch({ok, _}, Load(One({1, 1, [{1, 1, Saved}], [{1, 5}]}), 1)).

a_filter_that_has_no_names_is_refused_test() ->
    ?assertMatch({error, {crashed, {error, function_clause, _}}},
                 witness_monitor_machine:load({sliced, other, {0, 0, [], []}}, spec(one, #{}))).

%% --- all processes -----------------------------------------------------------------

ext(P) -> {external, P}.

a_verdict_about_all_processes_names_the_one_that_decided_test() ->
    {ok, M} = witness_monitor_machine:new(spec(all, subject(all))),
    Recv = fun(P, Message) -> {recv, ext(P), undefined, Message, undefined} end,
    {[One, Two, Three], {ok, M1}} = witness_monitor_machine:run(
        [{init, ext(~"p"), undefined, {m, f, [1]}, undefined}, Recv(~"p", {1, no}),
         {attached, ext(~"r"), {m, g, 0}, undefined}, Recv(~"r", {1, no}),
         {exit, ext(~"p"), normal, undefined}, Recv(~"q", {1, no}), Recv(~"q", {2, a})], M),
    ?assertMatch(#{process := {external, ~"p"}, signature := {m, f, [1]}, verdict := no}, One),
    ?assertMatch(#{process := {external, ~"r"}, signature := {m, g, _}}, Two),
    ?assertMatch(#{process := {external, ~"q"}, signature := undefined}, Three),
    {[Last], #{slices := 4}} = witness_monitor_machine:finish(stopped, M1),
    ?assertMatch(#{slice := [{~"Key", 2}], process := undefined, signature := undefined, reason := undefined,
                   verdict := no, info := {stopped, 2}}, Last).

%% It tells of the events of some processes what it would tell of a trace that has no others. Only how a trace ends depends on all.
only_some_of_all_processes_are_read_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_some(), [quiet, {numtests, 2000}, {to_file, user}]))}.

prop_some() ->
    ?FORALL({Births, Events, Sizes},
            {[frequency([{4, 1}, {4, a}, {1, '_'}]) || _ <- lists:seq(1, 3)], resize(200, list(event(some))), list(integer(1, 70))},
            begin
                Born = [{init, ext(P), undefined, {m, f, [Birth]}, undefined} || {P, Birth} <- lists:zip([~"p", ~"q", ~"r"], Births)],
                {Known, Unknown} = lists:splitwith(fun({_, {_, _, [Argument]}}) -> Argument =/= '_'; (_) -> false end,
                                                   signed(Born ++ Events, #{})),
                Read = [E || {E, Signature} <- Known, among(some, Signature)],
                Gap = {gap, case Unknown of [] -> lost; _ -> unknown_signature end},
                expect(outcomes([Read], Gap, spec(all, subject(all)), fun(M) -> M end),
                       outcomes(divided(Born ++ Events, Sizes), {gap, lost}, spec(some, subject(some)), fun(M) -> M end))
            end).

%% Each event with the signature that its process has then.
signed([E | Events], Known) ->
    P = element(2, E),
    Now = case E of {init, _, _, Signature, _} -> Known#{P => Signature}; _ -> Known end,
    [{E, maps:get(P, Now, undefined)}
     | signed(Events, case element(1, E) of exit -> maps:remove(P, Now); _ -> Now end)];
signed([], _) -> [].

%% Only then can nothing come any more.
the_trace_of_all_processes_is_complete_when_all_have_ended_test() ->
    Ends = fun(Events) ->
        {ok, M} = witness_monitor_machine:new(spec(all, subject(all))),
        {_, {ok, M1}} = witness_monitor_machine:run(Events, M),
        witness_monitor_machine:finish(stopped, M1)
    end,
    Recv = {recv, ext(~"p"), undefined, {1, a}, undefined},
    Exit = fun(P) -> {exit, ext(P), normal, undefined} end,
    Init = fun(P) -> {init, ext(P), undefined, {m, f, []}, undefined} end,
    ?assertMatch({[#{info := {complete, 2}}], #{slices := 1}}, Ends([Recv, Exit(~"p")])),
    ?assertMatch({[#{info := {stopped, 2}}], _}, Ends([Recv])),
    ?assertMatch({[#{info := {stopped, 2}}], _}, Ends([Recv, Init(~"q"), Exit(~"p")])),
    ?assertMatch({[#{info := {complete, 2}}], _}, Ends([Recv, Init(~"q"), Exit(~"p"), Exit(~"q")])),
    ?assertMatch({[], #{verdict := yes, vacuous := true, process := undefined}}, Ends([Init(~"q"), Exit(~"q")])),
    ?assertMatch({[], #{verdict := inconclusive, reason := stopped}}, Ends([])).

%% One that is not read may spawn one that is.
what_is_not_read_prolongs_the_trace_test() ->
    {ok, M} = witness_monitor_machine:new(spec(some, subject(some))),
    {_, {ok, M1}} = witness_monitor_machine:run(
        [{init, ext(~"p"), undefined, {m, f, [1]}, undefined}, {init, ext(~"q"), undefined, {m, f, [a]}, undefined},
         {recv, ext(~"p"), undefined, {1, a}, undefined}, {exit, ext(~"p"), normal, undefined}], M),
    ?assertMatch({[#{info := {stopped, 2}}], #{slices := 1}}, witness_monitor_machine:finish(stopped, M1)),
    {_, {ok, M2}} = witness_monitor_machine:run([{exit, ext(~"q"), normal, undefined}], M1),
    ?assertMatch({[#{info := {complete, 2}}], #{slices := 1}}, witness_monitor_machine:finish(stopped, M2)).

%% --- idle slices -------------------------------------------------------------------

a_slice_ends_when_nothing_has_come_for_its_value_test() ->
    {ok, M} = witness_monitor_machine:new(spec(one, #{slice_idle => 10})),
    At = fun(Key, Milliseconds) -> setelement(5, recv({Key, a}), Milliseconds * 1_000_000) end,
    {[], {ok, M1}} = witness_monitor_machine:run([At(1, 0), At(3, 1), At(1, 5), At(4, 11)], M),
    %% What is for all slices makes none of them younger, and neither does an event without a time; what the monitor skips
    %% tells the time as well.
    {[Three], {ok, M2}} = witness_monitor_machine:run([setelement(5, recv({all, a}), 11_000_001), recv({1, a})], M1),
    ?assertMatch(#{slice := [{~"Key", 3}], verdict := inconclusive, reason := slice_idle, event := undefined,
                   steps := [_]}, Three),
    {[#{slice := [{~"Key", 1}], reason := slice_idle, steps := [_, _, _, _]}], {ok, M3}} =
        witness_monitor_machine:run([At(2, 16)], M2),
    {[#{slice := [{~"Key", 4}], reason := slice_idle}], {ok, M4}} = witness_monitor_machine:run([At(1, 30)], M3),
    {[#{slice := [{~"Key", 1}], reason := undefined}], #{slices := 4}} = witness_monitor_machine:finish(complete, M4).

%% --- coverage ----------------------------------------------------------------------

marks_and_nothing_else_are_covered_test() ->
    Self = self(),
    spawn_link(fun() ->
        [put(Key, Value) || {Key, Value} <- [{'$witness_1', 1}, {'$witness_70', 70}, {'$witness_x', x},
                                             {'$witness_', -1}, {{1}, 1}, {a, 3}, {'$witness_2000000', 2_000_000}]],
        Self ! {covered, witness_monitor_machine:read_marks()}
    end),
    receive {covered, Mask} -> ?assertEqual(2#10 bor (1 bsl 70), Mask) end.

spec(Kind, More) ->
    maps:merge(#{monitor => {?MODULE, Kind}, process => self(), signature => {m, f, [2]}, explain => 12}, More).

%% Without process identifiers, which have no text that reads back.
recv(Message) -> {recv, {external, ~"p"}, undefined, Message, undefined}.
