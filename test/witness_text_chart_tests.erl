-module(witness_text_chart_tests).
-moduledoc "Between which lanes a chart draws messages, and what it calls them.".

-include_lib("eunit/include/eunit.hrl").

reply_to_an_alias_goes_to_its_owner_without_the_request_test() ->
    [Server, Caller] = pids(["<0.91.0>", "<0.92.0>"]),
    Alias = make_ref(),
    Reply = {send, Server, Alias, {[alias | Alias], 7}, undefined},
    ?assertEqual({[Server, Caller], [{0, 1, ~"reply(_, 7)"}]},
                 arrows([Reply], known(#{}, #{Alias => Caller}), [Server, Caller])),
    ?assertEqual({[Server, Alias], [{0, 1, ~"reply(_, 7)"}]},
                 arrows([Reply], known(#{}, #{}), [Server, Alias])).

caller_of_a_reply_has_its_name_test() ->
    [Server, Caller] = pids(["<0.91.0>", "<0.92.0>"]),
    Alias = make_ref(),
    {Lanes, _} = witness_text_chart:sequence([step({send, Server, Alias, {[alias | Alias], 7}, undefined})],
                                             known(#{Caller => ~"till"}, #{Alias => Caller})),
    ?assertEqual([#{name => ~"<0.91.0>", title => undefined}, #{name => ~"<0.92.0>", title => ~"till"}], Lanes).

a_chart_of_elixir_has_the_notation_of_elixir_test() ->
    [Server, Caller] = pids(["<0.91.0>", "<0.92.0>"]),
    Steps = [step({init, Server, Caller, {'Elixir.Shop.Till', init, [[{name, 'Elixir.Shop.Till'}]]}, undefined}),
             step({recv, Server, Caller, {'$gen_call', {Caller, make_ref()}, #{'__struct__' => 'Elixir.Shop.Sale', id => 2}},
                   undefined}),
             step({exit, Server, {shutdown, closed}, undefined})],
    {Lanes, Arrows} = witness_text_chart:sequence(Steps, (known(#{}, #{}))#{syntax := elixir}),
    ?assertEqual([~"#PID<0.91.0>", ~"#PID<0.92.0>"], [Name || #{name := Name} <- Lanes]),
    ?assertEqual([~"starts Shop.Till.init([name: Shop.Till]), spawned by #PID<0.92.0>", ~"call(_, %Shop.Sale{id: 2})",
                  ~"ends: shutdown: :closed"], [Text || #{text := Text} <- Arrows]).

a_call_and_its_return_are_marks_on_the_line_of_their_process_test() ->
    [P] = pids(["<0.91.0>"]),
    Steps = [step({call, P, {m, f, [1]}, undefined}), step({return, P, {m, f, 1}, {ok, "a"}, undefined})],
    {[_], Arrows} = witness_text_chart:sequence(Steps, known(#{}, #{})),
    ?assertEqual([{0, undefined, undefined, false, ~"calls m:f(1)"},
                  {0, undefined, undefined, false, ~"returns m:f/1 -> {ok,\"a\"}"}],
                 [{Own, From, To, Ends, Text} || #{own := Own, from := From, to := To, ends := Ends, text := Text} <- Arrows]),
    Chart = witness_text_chart:chart(Steps, known(#{}, #{}), 1, #{colour => false, width => 80}),
    Rows = [unicode:characters_to_binary(Row) || Row <- Chart],
    ?assertEqual([~" => 1         *    calls m:f(1)", ~" => 1         *    returns m:f/1 -> {ok,\"a\"}"], lists:nthtail(2, Rows)),
    {_, Elixir} = witness_text_chart:sequence([step({call, P, {'Elixir.Calc', add, [1, [{a, 2}]]}, undefined}),
                                               step({return, P, {ets, insert, 2}, true, undefined})],
                                              (known(#{}, #{}))#{syntax := elixir}),
    ?assertEqual([~"calls Calc.add(1, [a: 2])", ~"returns :ets.insert/2 -> true"], [Text || #{text := Text} <- Elixir]).

%% The end of a module's name tells more than its beginning; what has no parts is cut.
a_long_name_keeps_its_last_parts_test() ->
    [P] = pids(["<0.91.0>"]),
    Title = fun(Name) ->
        Steps = [step({recv, P, undefined, hello, undefined})],
        [Heads] = [string:trim(Row) || Row <- lists:sublist(witness_text_chart:chart(Steps, known(#{P => Name}, #{}), undefined,
                                                                                     #{colour => false, width => 80}), 2, 1)],
        unicode:characters_to_binary(Heads)
    end,
    ?assertEqual(~"Shop.Till", Title('Elixir.Shop.Till')),
    ?assertEqual(~"...Worker.Supervisor", Title('Elixir.Shop.Warehouse.Inventory.Worker.Supervisor')),
    ?assertEqual(~"a_name_that_is_lo...", Title(~"a_name_that_is_longer_than_its_lane")).

known(Titles, Aliases) -> #{titles => Titles, aliases => Aliases, syntax => erlang}.

arrows(Events, Known, Parties) ->
    {Lanes, Arrows} = witness_text_chart:sequence([step(Event) || Event <- Events], Known),
    {[Party || #{name := Name} <- Lanes, Party <- Parties, shown(Party) =:= Name],
     [{From, To, Text} || #{from := From, to := To, text := Text} <- Arrows]}.

%% As the heading of a lane.
shown(Party) -> witness_event:format_term(Party, 15).

step(Event) -> #{index => 1, event => Event, formula => undefined, bindings => []}.

pids(Texts) -> [list_to_pid(Text) || Text <- Texts].
