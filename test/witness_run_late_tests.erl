-module(witness_run_late_tests).
-moduledoc "Answers that come late, by the events of the processes that call and those that answer.".

-include_lib("eunit/include/eunit.hrl").

-define(MS, 1_000_000).

an_answer_after_a_call_was_given_up_is_late_test() ->
    Call = make_ref(),
    Caller = events([asks(Call, server, 1), {exit, self(), {timeout, {gen_server, call, []}}, 6 * ?MS}]),
    Server = fun(Events) -> events(Events ++ [{exit, self(), normal, 9 * ?MS}]) end,
    Late = ~"it had given up its call of server when the answer came from <0.2.0>, 7.00 ms after the call",
    ?assertEqual([{caller, no, Late}], judged([{caller, Caller}, {pid(), Server([answers(Call, 8)])}])),
    ?assertEqual([{caller, no, Late}], judged([{pid(), Server([answers(Call, 8)])}, {caller, Caller}])),
    ?assertEqual([{caller, yes, none}], judged([{caller, Caller}, {pid(), Server([answers(make_ref(), 8)])}])).

what_else_ends_a_call_is_no_violation_test() ->
    Call = make_ref(),
    Server = {pid(), events([answers(Call, 8), {exit, self(), normal, 9}])},
    Judged = fun(Events) -> judged([{caller, events([asks(Call, server, 1) | Events])}, Server]) end,
    ?assertEqual([], Judged([{recv, self(), pid(), {[alias | Call], ok}, 9}, {exit, self(), normal, 9}])),
    ?assertEqual([], Judged([{recv, self(), pid(), {'DOWN', Call, process, pid(), normal}, 9}, {exit, self(), normal, 9}])),
    ?assertEqual([], Judged([{exit, self(), shutdown, 9}])),
    ?assertMatch([{caller, no, _}], Judged([{exit, self(), normal, 9}])).

%% When observation stops it may still wait, or have given up.
a_call_without_an_answer_at_the_end_test() ->
    Call = make_ref(),
    End = fun(Why) -> {yes, Report} = witness_check_late:handle_end(Why, state([asks(Call, server, 1)])), Report end,
    Server = {pid(), events([answers(Call, 8), {exit, self(), normal, 9}])},
    ?assertEqual([{caller, inconclusive, none}], judged([{caller, End(stopped)}, Server])),
    ?assertMatch([{caller, no, _}], judged([{caller, End(complete)}, Server])).

%% An answer that is not known may be the one to a call that was given up.
answers_that_are_not_known_leave_it_open_test() ->
    Calls = [make_ref() || _ <- lists:seq(1, 1001)],
    [First | _] = Calls,
    Server = {pid(), events([answers(Call, 8) || Call <- Calls] ++ [{exit, self(), normal, 9}])},
    Caller = fun(Call) -> {caller, events([asks(Call, server, 1), {exit, self(), normal, 9}])} end,
    ?assertEqual([{caller, inconclusive, none}], judged([Caller(First), Server])),
    ?assertMatch([{caller, no, _}], judged([Caller(lists:last(Calls)), Server])),
    ?assertEqual([{caller, inconclusive, none}], judged([Caller(First)], stopped)),
    Known = #{Call => 8 || Call <- [make_ref() || _ <- lists:seq(1, 100_001)]},
    Many = {pid(), #{given_up => #{}, waits => false, answers => Known, more => false}},
    ?assertEqual([{caller, inconclusive, none}], judged([Caller(First), Many])).

pid() -> list_to_pid("<0.2.0>").

asks(Call, To, Ms) -> {send, self(), To, {'$gen_call', {self(), [alias | Call]}, what}, Ms * ?MS}.

answers(Call, Ms) -> {send, pid(), Call, {[alias | Call], ok}, Ms * ?MS}.

state(Events) ->
    {ok, State} = witness_check_late:init({m, f, []}, self(), undefined),
    lists:foldl(fun(Event, Acc) -> {ok, Next} = witness_check_late:handle_event(Event, Acc), Next end, State, Events).

events(Events) ->
    {verdict, yes, Report} = witness_check_late:handle_event(lists:last(Events), state(lists:droplast(Events))),
    Report.

%% What is not reported at once.
judged(Reports) -> judged(Reports, none).

judged(Reports, Missing) ->
    Outcome = #{verdict => yes, reason => undefined},
    Late = lists:foldl(fun({P, Report}, Acc) ->
        {_, Next} = witness_run_late:add(Outcome#{info => Report}, #{process => P}, Acc),
        Next
    end, witness_run_late:new(), Reports),
    [{P, Verdict, maps:get(note, Judged, none)}
     || {#{verdict := Verdict} = Judged, #{process := P}} <- witness_run_late:conclude(Missing, Late)].
