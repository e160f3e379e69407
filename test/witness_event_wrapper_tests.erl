-module(witness_event_wrapper_tests).
-moduledoc "Which arguments of a library's function are the module and the argument of the author: the rows, and their errors.".
-include_lib("eunit/include/eunit.hrl").

-define(MY, 'Elixir.MyServer').

row(Patterns) -> {?MY, init, Patterns}.

resolved(Args, Patterns) ->
    {ok, Table} = witness_event_wrapper:table([row(Patterns)]),
    witness_event_signature:resolve({?MY, init, Args}, Table).

%% --- rows that match ---------------------------------------------------------------

a_row_says_where_the_module_and_its_argument_are_test_() ->
    [{lists:flatten(io_lib:format("~0tp", [Patterns])),
      ?_assertEqual(Expected, resolved(Args, Patterns))}
     || {Expected, Args, Patterns} <-
        [{{cart, init, [1]}, [{cart, 1}], [{module, args}]},
         {{cart, init, [1]}, [cart, 1], [module, args]},
         {{cart, init, [1]}, [[cart, 1, x]], [[module, args, '_']]},
         {{cart, init, [1]}, [{start, cart, {x, 1}}], [{start, module, {'_', args}}]},
         {{cart, init, [#{m => cart, a => 1, z => 2}]}, [#{m => cart, a => 1, z => 2}], [#{m => module}]},
         {{cart, init, [1]}, [#{m => cart, a => 1, z => 2}], [#{m => module, a => args}]},
         {{cart, init, [1]}, [[{z, 1}, odd, {a, 1}, {m, cart}]], [[{m, module}, {a, args}]]},
         %% The words are keys here, and what is searched for there.
         {{cart, init, [1]}, [[{module, cart}, {args, 1}]], [[{module, module}, {args, args}]]},
         {{cart, run, [1, 2]}, [{cart, run, [1, 2]}], [{module, function, args}]},
         {{lists, map, [1, 2]}, [fun lists:map/2, [1, 2]], [function, args]},
         {{lists, map, []}, [{fun lists:map/2}], [{function}]}]].

a_row_that_does_not_match_changes_nothing_test_() ->
    [?_assertEqual({?MY, init, Args}, resolved(Args, Patterns))
     || {Args, Patterns} <-
        [{[{cart, 1, 2}], [{module, args}]}, {[cart], [{module, args}]}, {[{"cart", 1}], [{module, args}]},
         {[{nil, 1}], [{module, args}]}, {[{undefined, 1}], [{module, args}]}, {[{true, 1}], [{module, args}]},
         {[[cart, 1]], [[module, args, '_']]}, {[[cart, 1 | 2]], [[module, args, '_']]},
         {[{stop, cart}], [{start, module}]}, {[#{}], [#{m => module}]}, {[[{m, cart} | x]], [[{m, module}]]},
         {[[{m, cart, 1}]], [[{m, module}]]}, {[{cart, run, not_a_list}], [{module, function, args}]},
         {[{cart, 1, 2}, 3], [{module, args}]}, {[{lists, map}], [{module, 1}]},
         %% Only a fun runs without a module.
         {[{run}], [{function}]}]].

the_first_row_that_matches_decides_test() ->
    {ok, Table} = witness_event_wrapper:table([row([{start, module}]), row([{module, args}]), row(['_', module])]),
    [?assertEqual(Expected, witness_event_signature:resolve({?MY, init, Args}, Table))
     || {Expected, Args} <- [{{cart, init, [{start, cart}]}, [{start, cart}]}, {{stop, init, [cart]}, [{stop, cart}]},
                             {{cart, init, [x, cart]}, [x, cart]}]].

%% A gen_server of the project in a stage of a library, which is in a gen_server of OTP.
rows_lead_to_other_rows_test() ->
    {ok, Table} = witness_event_wrapper:table([row([{module, args}])]),
    Raw = {proc_lib, init_p, [self(), [], gen, init_it, [gen_server, self(), self(), 'Elixir.GenStage', {?MY, {cart, 1}}, []]]},
    ?assertEqual({cart, init, [1]}, witness_event_signature:resolve(Raw, Table)),
    ?assertEqual({?MY, init, [{cart, 1}]}, witness_event_signature:resolve(Raw)),
    %% With rows or without them first.
    ?assertEqual({cart, init, [1]}, witness_event_signature:resolve(witness_event_signature:resolve(Raw), Table)).

a_row_that_leads_to_itself_ends_test() ->
    {ok, Table} = witness_event_wrapper:table([row([{module, '_'}])]),
    ?assertEqual({?MY, init, [{?MY, 1}]}, witness_event_signature:resolve({?MY, init, [{?MY, 1}]}, Table)).

%% --- rows that are built in --------------------------------------------------------

processes_of_libraries_are_those_of_the_author_test_() ->
    Options = [{topology_name, t}, {module, 'Elixir.Shop'}, {context, []}],
    [{atom_to_list(Module), ?_assertEqual(Expected, witness_event_signature:resolve(
        {proc_lib, init_p, [self(), [], gen, init_it, [gen_server, self(), self(), Module, Arg, []]]}))}
     || {Expected, Module, Arg} <-
        [{{'Elixir.Shop', init, [1]}, 'Elixir.GenStage', {'Elixir.Shop', 1}},
         {{'Elixir.Shop', init, [1]}, 'Elixir.GenStage', {'Elixir.ConsumerSupervisor', {'Elixir.Shop', 1, nil}}},
         {{'Elixir.ConsumerSupervisor.Default', init, [x]}, 'Elixir.GenStage',
          {'Elixir.ConsumerSupervisor', {'Elixir.ConsumerSupervisor.Default', x, nil}}},
         {{'Elixir.Shop', init, [1]}, 'Elixir.GenStage',
          {'Elixir.Broadway.Topology.ProducerStage', {[{module, {'Elixir.Shop', 1}}], 0}}},
         {{'Elixir.Shop', handle_message, ['_', '_', '_']}, 'Elixir.GenStage',
          {'Elixir.Broadway.Topology.Subscriber', {'Elixir.Broadway.Topology.ProcessorStage', [p], Options, []}}},
         {{'Elixir.Shop', handle_batch, ['_', '_', '_', '_']}, 'Elixir.GenStage',
          {'Elixir.Broadway.Topology.Subscriber', {'Elixir.Broadway.Topology.BatchProcessorStage', [p], Options, []}}},
         {{'Elixir.Broadway.Topology.BatcherStage', init, [Options]}, 'Elixir.GenStage',
          {'Elixir.Broadway.Topology.Subscriber', {'Elixir.Broadway.Topology.BatcherStage', [p], Options, []}}},
         {{'Elixir.Shop', connect, ['_']}, 'Elixir.DBConnection.Connection', {'Elixir.Shop', [], self(), t}},
         {{'Elixir.Shop', init, [1]}, 'Elixir.Phoenix.Tracker.Shard', ['Elixir.Shop', 1, []]},
         {{'Elixir.Phoenix.Channel.Server', init, [{e, {self(), t}}]}, 'Elixir.Phoenix.Channel.Server', {e, {self(), t}}}]].

%% --- errors ------------------------------------------------------------------------

a_wrong_row_says_what_is_expected_test_() ->
    [{lists:flatten(io_lib:format("~0tp", [Rows])),
      fun() ->
          {error, {witness_event_wrapper, Reason}} = witness_event_wrapper:table(Rows),
          Text = unicode:characters_to_binary(witness_event_wrapper:format_error(Reason)),
          ?assertMatch({_, _}, binary:match(Text, Expected), Text)
      end}
     || {Rows, Expected} <-
        [{wrong, ~"a list of rows is expected"},
         {[row([])], ~"{MyServer, :init, []}: there are 0 arguments; 1 to 8"},
         {[row(lists:duplicate(9, module))], ~"there are 9 arguments"},
         {[{m, f}], ~"{m,f}: a row is {Module, Function, Arguments}, such as {MyServer, :init, [{:module, :args}]}"},
         {[{m, "f", [module]}], ~"a row is {Module, Function, Arguments}"},
         {[{m, f, [module | args]}], ~"a row is {Module, Function, Arguments}"},
         {[row([{modul, args}])], ~"no argument says where the module"},
         {[row([{module, module}])], ~"the atom module is there twice"},
         {[row([{args, {module, [args]}}])], ~"the atom args is there twice"},
         {[row([{module, function}])], ~"has to have args too"},
         {[row([{module, lists:seq(1, 1000)}])], ~"words of memory; at most 1000"},
         {lists:duplicate(101, row([module])), ~"there are 101 rows; at most 100"}]].

an_option_with_a_wrong_row_is_refused_test() ->
    Start = fun(Rows) -> witness:start(#{system => {erlang, node, []}, signatures => Rows}) end,
    {error, Error} = Start([row([{x}])]),
    ?assertMatch(<<"option signatures: {MyServer, :init, [{:x}]}: no argument", _/binary>>,
                 unicode:characters_to_binary(witness:format_error(Error))),
    [?assertEqual({error, {witness_option, {bad_option, signatures,
                                            "a list of {Module, Function, Arguments}, such as {my_server, init, [{module, args}]}"}}},
                  Start(Wrong))
     || Wrong <- [row([{module, args}]), [{a, b}], #{}]].

%% --- other uses ----------------------------------------------------------------------

a_written_row_is_read_as_it_was_test_() ->
    [?_assertEqual({ok, #{signatures => [Row]}},
                   witness_cli_call:signatures(#{signatures => [unicode:characters_to_list(witness_event_wrapper:format(Row))]}))
     || Row <- [row([{module, args}]), {my_server, 'start it', [module, '_', [{a, args}], #{b => function}]},
                {'Elixir.Größe', init, [{"text", ~"bytes", module}]}]].

rows_on_the_command_line_may_be_wrong_test_() ->
    [?_assertMatch({error, _}, witness_cli_call:signatures(#{signatures => [Text]})) || Text <- ["m:f(", "m:f(x)", "m:f()"]]
        ++ [?_assertEqual(<<"option --signature: {m,f,[x]}: no argument says where the module of the author is: one has to have the atom "
                     "module, or function for a fun">>,
                   unicode:characters_to_binary(element(2, witness_cli_call:signatures(#{signatures => ["m:f(x)"]}))))].

%% A module may have no function of its own with the name of the row.
functions_of_rows_exist_in_any_module_test() ->
    Of = witness_event_wrapper:exports(fun(m) -> [{f, 1}]; (n) -> unknown end,
                                       [row([{module, args}]), {?MY, run, [module, '_']}, {?MY, go, [{module, function, args}]}]),
    ?assertEqual([{f, 1}, {init, 1}, {run, 2}], lists:sort(Of(m))),
    ?assertEqual(unknown, Of(n)).
