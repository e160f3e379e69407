%% Data sources, where nothing is recorded.
-module(witness_record_source_tests).
-behaviour(witness_record_source).

-include_lib("eunit/include/eunit.hrl").

-export([event/1, read/2]).

event(Data) -> {measured, map_size(Data)}.

read(all, Data) -> Data;
read(Key, Data) -> map_get(Key, Data).

%% In a process of its own: its mailbox has no messages of other tests.
parts_are_read_until_it_is_answered_test_() -> {spawn, fun parts_are_read_until_it_is_answered/0}.

parts_are_read_until_it_is_answered() ->
    Test = self(),
    {Pid, Ref} = spawn_monitor(fun() ->
        Event = receive {measured, E, 2} -> E end,
        Test ! {event, Event},
        [{ok, 1}, {ok, 2}, {ok, 1}] = [witness_record_source:read(Event, Key) || Key <- [a, b, a]],
        {error, {error, {badkey, c}}} = witness_record_source:read(Event, c),
        ok = witness_record_source:answer(Event, thanks),
        [{error, closed} = witness_record_source:read(Event, a) || _ <- [1, 2]],
        {error, closed} = witness_record_source:answer(Event, again),
        exit(done)
    end),
    ?assertEqual({ok, thanks}, witness_record_source:deliver(?MODULE, Pid, #{a => 1, b => 2}, infinity)),
    receive {event, _} -> ok end,
    receive {'DOWN', Ref, process, Pid, Reason} -> ?assertEqual(done, Reason) end,
    ?assertEqual([], messages()).

by_name_test() ->
    {Pid, Ref} = spawn_monitor(fun() ->
        receive {measured, Event, 0} -> ok = witness_record_source:answer(Event, named) end
    end),
    true = register(?MODULE, Pid),
    ?assertEqual({ok, named}, witness_record_source:deliver(?MODULE, ?MODULE, #{}, 5000)),
    receive {'DOWN', Ref, process, Pid, normal} -> ok end,
    ?assertEqual({error, noproc}, witness_record_source:deliver(?MODULE, ?MODULE, #{}, 5000)),
    ?assertEqual({error, noproc}, witness_record_source:deliver(?MODULE, Pid, #{}, 5000)).

a_process_that_ends_or_does_not_answer_is_an_error_test_() -> {spawn, fun a_process_that_ends_or_does_not_answer_is_an_error/0}.

a_process_that_ends_or_does_not_answer_is_an_error() ->
    Silent = spawn(fun() -> receive {measured, _, _} -> exit(tired) end end),
    ?assertEqual({error, {down, tired}}, witness_record_source:deliver(?MODULE, Silent, #{}, infinity)),
    Slow = spawn(fun() -> receive {measured, _, _} -> receive stop -> ok end end end),
    ?assertEqual({error, timeout}, witness_record_source:deliver(?MODULE, Slow, #{}, 1)),
    Slow ! stop,
    ?assertEqual([], messages()).

%% A process that waits for a part gets `closed` when no process can answer any more.
an_owner_that_dies_test() ->
    Test = self(),
    Owner = spawn(fun() -> witness_record_source:deliver(?MODULE, Test, #{a => 1}, infinity) end),
    Event = receive {measured, E, 1} -> E end,
    ?assertEqual({ok, 1}, witness_record_source:read(Event, a)),
    exit(Owner, kill),
    ?assertEqual({error, closed}, read_until_closed(Event)).

read_until_closed(Event) ->
    case witness_record_source:read(Event, a) of
        {ok, 1} -> read_until_closed(Event);
        Other -> Other
    end.

messages() -> element(2, process_info(self(), messages)).
