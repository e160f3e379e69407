-module(witness_event_tests).

-include_lib("eunit/include/eunit.hrl").

-define(P, {external, ~"p"}).
-define(C, {external, ~"c"}).

%% Every event and mark, and its text.
examples() ->
    [
        {{fork, ?P, ?C, {m, f, [1, 2]}, 10}, fork, ~"p -> c, m:f(1,2)"},
        {{init, ?C, ?P, {m, f, [1, 2]}, 10}, init, ~"c <- p, m:f(1,2)"},
        {{init, ?C, undefined, {m, f, []}, 10}, init, ~"c <- _, m:f()"},
        {{exit, ?C, {shutdown, normal}, 10}, exit, ~"c ** {shutdown,normal}"},
        {{send, ?C, ?P, {ok, 3}, 10}, send, ~"c : p ! {ok,3}"},
        {{send, ?C, server, stop, 10}, send, ~"c : server ! stop"},
        {{send, ?C, {server, 'n@host.x'}, stop, 10}, send, ~"c : {server,'n@host.x'} ! stop"},
        {{recv, ?C, ?P, "abc", 10}, recv, ~"c ? \"abc\""},
        {{recv, ?C, undefined, timeout, 10}, recv, ~"c ? timeout"},
        {{call, ?C, {m, f, [1, "ab"]}, 10}, call, ~"c calls m:f(1,\"ab\")"},
        {{call, ?C, {'Elixir.Calc', add, []}, 10}, call, ~"c calls Calc.add()"},
        {{return, ?C, {m, f, 2}, {ok, 3}, 10}, return, ~"c returns m:f/2 -> {ok,3}"},
        {{gap, ?C, overload, 1, 10}, gap, ~"c gap, 1 event missing: overload"},
        {{gap, ?C, overload, 20, 10}, gap, ~"c gap, 20 events missing: overload"},
        {{gap, ?C, sensitive, unknown, 10}, gap, ~"c gap, an unknown number of events missing: sensitive"},
        {{attached, ?C, {m, loop, 2}, 10}, attached, ~"c attached, in m:loop/2"}
    ].

each_kind_of_event_is_written_in_the_notation_of_specifications_test_() ->
    [?_assertEqual(Text, witness_event:format(Event)) || {Event, _, Text} <- examples()].

accessors_read_every_event_test_() ->
    [
        ?_assertEqual({Kind, element(2, Event), 10},
            {witness_event:kind(Event), witness_event:proc(Event), witness_event:ts(Event)})
     || {Event, Kind, _} <- examples()
    ].

an_event_without_a_time_says_so_test() ->
    ?assertEqual(undefined, witness_event:ts({exit, ?P, normal, undefined})).

processes_and_aliases_of_the_vm_are_written_as_the_shell_does_test() ->
    Alias = make_ref(),
    Expected = iolist_to_binary([pid_to_list(self()), " : ", ref_to_list(Alias), " ! ok"]),
    ?assertEqual(Expected, witness_event:format({send, self(), Alias, ok, 1})).

ports_as_destinations_test() ->
    [Port | _] = erlang:ports(),
    Expected = iolist_to_binary([pid_to_list(self()), " : ", port_to_list(Port), " ! ok"]),
    ?assertEqual(Expected, witness_event:format({send, self(), Port, ok, 1})).

each_part_of_an_event_is_cut_on_its_own_test() ->
    Long = lists:duplicate(10_000, a),
    Text = witness_event:format({recv, ?C, ?P, Long, 1}),
    ?assertMatch(<<"c ? [a,a,", _/binary>>, Text),
    ?assertEqual(byte_size(~"c ? ") + 200, byte_size(Text)),
    ?assertEqual(~"c ? [a,a...", witness_event:format({recv, ?C, ?P, Long, 1}, 7)),
    ?assertEqual(~"p -> c, m:f(...", witness_event:format({fork, ?P, ?C, {m, f, [Long]}, 1}, 7)),
    ?assertEqual(~"c calls m:f(...", witness_event:format({call, ?C, {m, f, [Long]}, 1}, 7)),
    ?assertEqual(~"c returns m:fu... -> [a,a...", witness_event:format({return, ?C, {m, function, 1}, Long, 1}, 7)).

names_from_a_log_cannot_reach_the_terminal_test_() ->
    Format = fun(Name) -> witness_event:format({exit, {external, Name}, normal, 1}) end,
    [
        ?_assertEqual(~"\\e[2Jx ** normal", Format(~"\e[2Jx")),
        ?_assertEqual(~"a\\nb ** normal", Format(~"a\nb")),
        ?_assertEqual(~"<<255,97>> ** normal", Format(<<255, "a">>)),
        ?_assertEqual(~"Ünï ** normal", Format(~"Ünï")),
        ?_assertEqual(<<(binary:copy(~"n", 197))/binary, "... ** normal">>, Format(binary:copy(~"n", 1_000_000)))
    ].

signatures_are_written_as_calls_test_() ->
    [
        ?_assertEqual(Text, witness_event:format_signature(Signature))
     || {Text, Signature} <- [
            {~"calc_server:loop(10)", {calc_server, loop, [10]}},
            {~"m:f()", {m, f, []}},
            {~"m:f([97,b],\"ab\")", {m, f, [[97, b], "ab"]}},
            {~"m:f(97,98)", {m, f, "ab"}},
            {~"m:'-start/1-fun-0-'()", {m, '-start/1-fun-0-', []}},
            {~"'My Mod':'Fun'(1)", {'My Mod', 'Fun', [1]}}
        ]
    ].

modules_of_elixir_are_written_by_their_alias_test_() ->
    [
        ?_assertEqual(Text, witness_event:format_signature(Signature))
     || {Text, Signature} <- [
            {~"MyApp.Server.init([1])", {'Elixir.MyApp.Server', init, [[1]]}},
            {~"'Elixir.MyApp':'-start/1-fun-0-'()", {'Elixir.MyApp', '-start/1-fun-0-', []}},
            {~"'Elixir.my':f()", {'Elixir.my', f, []}},
            {~"'Elixir.A..B':f()", {'Elixir.A..B', f, []}},
            {~"'Elixir.':f()", {'Elixir.', f, []}},
            {~"'Elixir.A\\e':f()", {'Elixir.A\e', f, []}}
        ]
    ].

a_malformed_signature_is_written_all_the_same_test_() ->
    [
        ?_assertEqual(~"m:f(1|2)", witness_event:format_signature({m, f, [1 | 2]})),
        ?_assertEqual(~"m:f(|x)", witness_event:format_signature({m, f, x})),
        ?_assertEqual(~"1:<<\"f\">>(x)", witness_event:format_signature({1, ~"f", [x]}))
    ].
