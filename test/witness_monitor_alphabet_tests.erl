%% What a monitor is given: its alphabet, whatever the source delivers for others.
-module(witness_monitor_alphabet_tests).
-behaviour(witness_monitor).
-include_lib("eunit/include/eunit.hrl").

-export([init/3, handle_event/2, handle_end/2, alphabet/1]).

%% The monitor: remembers what it was given. Its argument is its alphabet.
init(_, _, _) -> {ok, []}.
handle_event(E, Seen) -> {ok, [E | Seen]}.
handle_end(_, Seen) -> {yes, lists:reverse(Seen)}.
alphabet(Fun) when is_function(Fun) -> Fun();
alphabet(Alphabet) -> Alphabet.

-define(EVENTS, [{init, p, q, {m, f, []}, 0}, {recv, p, q, {a, 1}, 1}, {recv, p, r, {a, 2}, 2}, {recv, p, q, b, 3},
                 {send, p, q, {a, 3}, 4}, {send, p, name, b, 5}, {fork, p, c, {m, g, [1]}, 6}, {exit, p, normal, 7}]).

a_monitor_is_given_its_alphabet_and_nothing_else_test_() ->
    [?_assertEqual(Given, [element(tuple_size(E), E) || E <- given(Alphabet)]) || {Alphabet, Given} <- [
        {all, [0, 1, 2, 3, 4, 5, 6, 7]},
        {[], []},
        {[exit, init], [0, 7]},
        {[recv, send], [1, 2, 3, 4, 5]},
        {[{recv, [{['_', {a, '_'}], [], []}]}], [1, 2]},
        {[{recv, [{['_', {a, '$1'}], [{'>', '$1', 1}], []}]}, {send, [{[name, '_'], [], []}]}, fork], [2, 5, 6]},
        {[{recv, [{['_', b], [], []}]}, {recv, [{[r, '_'], [], [ignored]}]}], [2, 3]},
        {[{recv, [{['_', b], [], []}]}, recv], [1, 2, 3]},
        {[{exit, [{['_', killed, '_'], [], []}]}], []}]].

%% More is never wrong: the source must not leave out what such a monitor needs.
what_makes_no_sense_is_everything_test_() ->
    [?_assertEqual({all, 8}, {witness_monitor_alphabet:of_monitor({?MODULE, Alphabet}), length(given(Alphabet))})
     || Alphabet <- [none, [1], [{recv, nonsense}], [{recv, [{['_', '_'], [{no_such_guard}], []}]}],
                     fun() -> error(crash) end]]
    ++ [?_assertEqual(all, witness_monitor_alphabet:of_monitor({no_such_module, x})),
        ?_assertEqual(all, witness_monitor_alphabet:of_monitor({witness_load_monitor, check}))].

the_source_delivers_what_one_of_them_wants_test() ->
    Union = fun(Alphabets) -> witness_trace_filter:union(Alphabets) end,
    A = {['_', a], [], []},
    B = {['_', b], [], []},
    None = #{send => [], recv => [], functions => #{}},
    ?assertEqual(None, Union([])),
    ?assertEqual(None, Union([[init], [exit, fork]])),
    ?assertEqual(None#{send := all, recv := [A, B]}, Union([[{recv, [A]}, send], [{recv, [B]}, {send, [A]}], [{recv, [A]}]])),
    ?assertEqual(None#{send := all, recv := all}, Union([[{recv, [A]}], all])),
    ?assertEqual(None#{send := all, recv := all}, witness_trace_filter:none()),
    ?assertEqual(None#{send := all, functions := #{{m, f, 1} => [call, return], {m, g, 2} => [return]}},
                 Union([[{return, {m, f, 1}}, send], [{call, {m, f, 1}}, {return, {m, g, 2}}], [{call, {m, f, 1}}]])).

%% Through the runner.
given(Alphabet) ->
    Runner = witness_monitor_runner:start(#{monitor => {?MODULE, Alphabet}, process => p, signature => {m, f, []},
                                            run => self(), explain => 1, ordered => false}),
    ok = witness_monitor_runner:send_events(Runner, [{none, E} || E <- ?EVENTS]),
    ok = witness_monitor_runner:complete(Runner),
    receive {verdict, Runner, #{verdict := yes, info := Seen}} -> Seen end.
