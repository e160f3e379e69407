-module(witness_monitor_requests_tests).
-moduledoc """
The requests of replies: what a monitor is given of them, in a machine. The monitor is this module; its state is what it has been given.
""".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-export([init/3, handle_event/2, handle_end/2, slice/2, instance/2, slice_names/1, alphabet/1]).

-define(MOST, 10_000).

init(_, _, nested) -> {requests, {requests, {ok, []}}};
init(_, _, ignore) -> {requests, ignore};
init(_, _, sliced) -> {requests, {slices, none}};
init(_, _, _) -> {requests, {ok, []}}.

handle_event({send, _, _, {_, violate}, _, _} = E, Seen) -> {verdict, no, lists:reverse([E | Seen])};
handle_event(E, Seen) -> {ok, [E | Seen]}.

handle_end(_, Seen) -> {yes, lists:reverse(Seen)}.

slice({send, _, _, {_, _}, {request, Request}, _}, none) -> {slice, {Request}};
slice(_, _) -> skip.

instance(_, _) -> [].

slice_names(_) -> [~"Request"].

alphabet(replies) -> [{send, [{['_', {'_', '_'}], [], []}]}];
alphabet(_) -> all.

call(Tag, Request) -> {recv, server, client, {'$gen_call', {client, Tag}, Request}, undefined}.
reply(Tag, Reply) -> {send, server, client, {Tag, Reply}, undefined}.
answers(Request, {send, P, Q, M, Ts}) -> {send, P, Q, M, Request, Ts}.

spec(Kind) -> #{monitor => {?MODULE, Kind}, process => server, signature => {m, f, []}, explain => 3}.

run(Events, Kind) ->
    {ok, M} = witness_monitor_machine:new(spec(Kind)),
    witness_monitor_machine:run(Events, M).

given(Events) ->
    {[], {ok, M}} = run(Events, whole),
    {[], #{info := Given}} = witness_monitor_machine:finish(complete, M),
    Given.

a_reply_has_the_request_of_its_call_whatever_the_tag_is_test_() ->
    Ref = make_ref(),
    [{lists:flatten(io_lib:format("~w", [Tag])), fun() ->
        Reply = reply(Tag, ok),
        ?assertEqual([call(Tag, {next, 1}), answers({request, {next, 1}}, Reply)], given([call(Tag, {next, 1}), Reply]))
     end} || Tag <- [Ref, [alias | Ref], [[alias | Ref] | label], 1]].

a_reply_ends_the_call_test() ->
    Events = [call(a, one), call(b, two), reply(b, ok), reply(a, ok), reply(a, again), reply(c, ok)],
    ?assertEqual([{request, two}, {request, one}, none, none], requests(Events)).

another_process_may_reply_test() ->
    ?assertEqual([{request, one}], requests([call(a, one), {send, worker, client, {a, ok}, undefined}])).

a_call_that_comes_again_has_its_last_request_test() ->
    ?assertEqual([{request, two}, none], requests([call(a, one), call(a, two), reply(a, ok), reply(a, ok)])).

what_is_no_call_or_no_reply_has_no_request_test() ->
    Sent = [{send, server, client, M, undefined} || M <- [{'$gen_call', {client, a}, sent}, {a, b, c}, a, [a | b]]],
    ?assertEqual([none, none, none, none, none, {request, one}],
                 requests([{recv, server, client, {'$gen_call', x, one}, undefined},
                           {recv, server, client, {'$gen_cast', a}, undefined}, reply(x, ok), call(a, one)]
                          ++ Sent ++ [reply(a, ok)])).

%% 1 and 1.0 are different tags.
tags_are_compared_exactly_test() ->
    ?assertEqual([none, {request, one}], requests([call(1, one), reply(1.0, ok), reply(1, ok)])).

requests(Events) -> [Request || {send, _, _, _, Request, _} <- given(Events)].

an_outcome_has_the_events_as_they_were_test() ->
    Reply = reply(a, violate),
    {[], {decided, #{verdict := no, info := [_, {send, _, _, _, {request, one}, _}], event := #{event := Reply},
                     steps := [#{event := {recv, _, _, _, _}}, #{event := Reply}]}}} = run([call(a, one), Reply], whole),
    {[#{slice := [{~"Request", one}], event := #{event := Reply}, steps := [#{event := Reply}]}], {ok, _}} =
        run([call(a, one), Reply], sliced),
    {[], {ok, M}} = run([call(a, one), reply(a, ok)], sliced),
    [{[#{steps := [#{event := {send, _, _, {a, ok}, undefined}}]}], _} = End ||
        End <- [witness_monitor_machine:finish(complete, M), witness_monitor_machine:inconclusive({gap, lost}, M)]].

a_call_need_not_be_in_what_the_monitor_chooses_test() ->
    {[], {ok, M}} = run([call(a, one), reply(a, ok), {recv, server, client, other, undefined}], replies),
    ?assertMatch({[], #{info := [{send, _, _, {a, ok}, {request, one}, undefined}]}}, witness_monitor_machine:finish(complete, M)).

what_is_wrong_at_the_beginning_decides_test_() ->
    [?_assertMatch({decided, #{verdict := inconclusive, reason := {crashed, {bad_return, init, {requests, _}}}}},
                   witness_monitor_machine:new(spec(Kind))) || Kind <- [nested, ignore]].

damaged_data_are_refused_test() ->
    ?assertEqual({error, damaged}, witness_monitor_machine:load({requests, x, {whole, {[], 0, []}}}, spec(whole))),
    ?assertEqual({error, damaged}, witness_monitor_machine:load({requests, #{}, x}, spec(whole))).

%% What was read before the call that is too much still counts.
too_many_open_calls_end_the_monitor_test() ->
    Calls = [call(N, N) || N <- lists:seq(1, ?MOST)],
    {[], {ok, M}} = run(Calls, whole),
    {[], {ok, _}} = witness_monitor_machine:run([reply(1, ok), call(again, 1), call(again, 2)], M),
    ?assertMatch({[], {decided, #{verdict := inconclusive, reason := too_many_requests, event := undefined}}},
                 witness_monitor_machine:run([call(more, 1), reply(1, violate)], M)),
    ?assertMatch({[], {decided, #{verdict := no}}}, witness_monitor_machine:run([reply(1, violate), call(1, 1), call(2.0, 1)], M)),
    {[], {ok, Sliced}} = run(Calls ++ [reply(1, ok), call(1, 1)], sliced),
    ?assertMatch({[#{slice := [{_, 1}], verdict := inconclusive, reason := too_many_requests,
                     steps := [#{event := {send, _, _, _, _}}]}],
                  {decided, #{verdict := inconclusive, reason := too_many_requests}}},
                 witness_monitor_machine:run([call(more, 1)], Sliced)).

a_state_differs_by_the_calls_that_are_open_test() ->
    Key = fun(Events) -> {[], {ok, M}} = run(Events, sliced), witness_monitor_machine:state_key(M) end,
    ?assertNotEqual(Key([]), Key([call(a, one)])),
    ?assertNotEqual(Key([call(a, two)]), Key([call(a, one)])),
    ?assertEqual(Key([call(a, one), call(b, two)]), Key([call(b, two), call(a, one)])).

what_is_given_does_not_depend_on_the_division_of_the_events_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_division(), [quiet, {numtests, 1000}, {to_file, user}]))}.

prop_division() ->
    ?FORALL({Events, Sizes, Kind}, {list(event()), list(integer(1, 5)), oneof([whole, sliced])},
            begin
                Expected = outcomes([Events], fun(M) -> M end, Kind),
                Naive = lists:reverse(naive(lists:reverse(Events))),
                Expected =:= outcomes([[E] || E <- Events], fun(M) -> M end, Kind)
                    andalso Expected =:= outcomes(divided(Events, Sizes), fun(M) -> saved(M, Kind) end, Kind)
                    andalso (Kind =:= sliced orelse given(Events) =:= Naive)
            end).

event() ->
    oneof([?LET({Tag, N}, {tag(), integer()}, call(Tag, N)), ?LET(Tag, tag(), reply(Tag, ok)), {exit, server, normal, undefined}]).

tag() -> oneof([a, b, [alias | c]]).

%% By what came before, the last event first.
naive([{send, _, _, {Tag, _}, _} = E | Before]) -> [answers(last_request(Tag, Before), E) | naive(Before)];
naive([E | Before]) -> [E | naive(Before)];
naive([]) -> [].

last_request(Tag, [{recv, _, _, {'$gen_call', {_, Tag}, Request}, _} | _]) -> {request, Request};
last_request(Tag, [{send, _, _, {Tag, _}, _} | _]) -> none;
last_request(Tag, [_ | Before]) -> last_request(Tag, Before);
last_request(_, []) -> none.

divided([], _) -> [];
divided(Events, []) -> [Events];
divided(Events, [Size | Sizes]) ->
    {Now, Later} = lists:split(min(Size, length(Events)), Events),
    [Now | divided(Later, Sizes)].

outcomes(Batches, Between, Kind) ->
    {ok, M} = witness_monitor_machine:new(spec(Kind)),
    Last = lists:foldl(fun(Batch, Machine) ->
        {[], {ok, Next}} = witness_monitor_machine:run(Batch, Between(Machine)),
        Next
    end, M, Batches),
    witness_monitor_machine:finish(complete, Last).

saved(M, Kind) ->
    {ok, Loaded} = witness_monitor_machine:load(binary_to_term(term_to_binary(witness_monitor_machine:save(M))),
                                                maps:without([process, signature], spec(Kind))),
    Loaded.
