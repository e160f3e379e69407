-module(witness_run_names_tests).
-moduledoc "What the processes of a violation are called.".

-include_lib("eunit/include/eunit.hrl").

-export([library/1, waiting/0]).

processes_are_called_by_their_name_their_label_or_their_module_test() ->
    with_processes(fun(Named, Labelled, Text, Spawned, Fun, Gone) ->
        ?assertEqual(#{Named => ~"'names test'", Labelled => ~"{worker,7}", Text => ~"Shop.Client",
                       Spawned => ~"witness_run_names_tests"},
                     names([{recv, Named, Labelled, hello, undefined}, {fork, Text, Spawned, {m, f, []}, undefined},
                            {init, Fun, Gone, {m, f, []}, undefined}, {recv, Named, undefined, tick, undefined},
                            {send, Named, unknown, hello, undefined}, {exit, Gone, normal, undefined}], false))
    end).

processes_that_have_ended_may_be_known_test() ->
    with_processes(fun(Named, _, _, _, _, Gone) ->
        ?assertEqual(#{Named => ~"'names test'", Gone => ~"Shop.Till"},
                     names([{recv, Named, Gone, hello, undefined}],
                           fun(P) when P =:= Gone -> ['Elixir.Shop.Till']; (_) -> [lists] end, false))
    end).

labels_may_be_data_test() ->
    with_processes(fun(Named, Labelled, _, _, _, _) ->
        ?assertEqual(#{Named => ~"'names test'", Labelled => ~"witness_run_names_tests"},
                     names([{recv, Named, Labelled, hello, undefined}], true))
    end).

a_label_has_the_notation_of_its_process_test() ->
    Module = 'Elixir.Shop.Labelled',
    {ok, Module, Code} = compile:forms([{attribute, 1, module, Module}, {attribute, 2, export, [{init, 1}]},
        merl:quote(3, "init(Parent) -> proc_lib:set_label({worker, <<\"ann\">>}), Parent ! labelled, receive stop -> ok end.")]),
    {module, Module} = code:load_binary(Module, "labelled.beam", Code),
    P = spawn(Module, init, [self()]),
    receive labelled -> ok end,
    Event = {recv, P, undefined, tick, undefined},
    try
        ?assertEqual(#{P => ~"{:worker, \"ann\"}"}, names([Event], false)),
        ok = witness_event:use_syntax(erlang),
        ?assertEqual(#{P => ~"{worker,<<\"ann\">>}"}, names([Event], false))
    after
        ok = witness_event:use_syntax(auto),
        P ! stop,
        true = code:delete(Module)
    end.

only_violations_are_asked_about_and_only_so_many_test() ->
    Violation = outcome(no, [{exit, self(), normal, undefined}]),
    #{steps := Steps} = Violation,
    [?assertEqual({Message, 5}, witness_run_names:add(Message, 5, fun(_) -> [] end, #{redact => false, signatures => []}))
     || Message <- [{verdict, self(), outcome(yes, [])}, {verdict, self(), Violation#{verdict := yes}},
                    {verdict, self(), Violation#{steps := []}}, {slice, self(), {undecided, stopped, 3}},
                    {monitor, self(), #{}}, {input, check}, {flushed, self(), none}]],
    Reports = [{slice, self(), Violation}, {satisfied, #{}, 1, 0, 0}, {verdict, self(), Violation}, {verdict, self(), Violation}],
    {{reports, [{slice, _, First}, Satisfied, {verdict, _, Second}, {verdict, _, Third}]}, 0} =
        witness_run_names:add({reports, Reports}, 2, fun(_) -> [] end, #{redact => false, signatures => []}),
    ?assertEqual(lists:nth(2, Reports), Satisfied),
    ?assertMatch(#{steps := Steps, names := _}, First),
    ?assertMatch(#{names := _}, Second),
    ?assertEqual(Violation, Third).

owner_of_an_alias_has_a_name_test() ->
    with_processes(fun(Named, Labelled, _, _, _, _) ->
        Labelled ! {alias, self()},
        Alias = receive {alias, A} -> A end,
        Send = {send, Named, Alias, {[alias | Alias], 7}, undefined},
        ?assertEqual(#{Named => ~"'names test'", Labelled => ~"{worker,7}"}, names([Send], false)),
        ?assertEqual(#{Alias => Labelled}, witness_run_names:aliases(#{steps => [#{event => Send}]}, false)),
        ?assertEqual(#{}, witness_run_names:aliases(#{steps => [#{event => {send, Named, make_ref(), x, undefined}}]}, false))
    end).

%% A process that lives in a library's function: its name is the module of the author, which only the run knows.
a_process_in_the_function_of_a_row_has_the_name_of_its_author_test() ->
    P = spawn(?MODULE, library, [author]),
    Name = fun(Rows, Called) ->
        {{verdict, _, #{names := #{P := Of}}}, 0} =
            witness_run_names:add({verdict, self(), outcome(no, [{exit, P, normal, undefined}])}, 1, fun(_) -> Called end,
                                  #{redact => false, signatures => Rows}),
        Of
    end,
    Rows = [{?MODULE, library, [module]}],
    ?assertEqual([~"witness_run_names_tests", ~"author", ~"witness_run_names_tests"],
                 [Name([], [author]), Name(Rows, [author]), Name(Rows, [])]),
    exit(P, kill).

library(_) -> waiting().

names(Events, Redact) -> names(Events, fun(_) -> [] end, Redact).

names(Events, Called, Redact) ->
    {{verdict, _, #{names := Names}}, 0} =
        witness_run_names:add({verdict, self(), outcome(no, Events)}, 1, Called, #{redact => Redact, signatures => []}),
    Names.

outcome(Verdict, Events) -> #{verdict => Verdict, steps => [#{event => Event} || Event <- Events]}.

with_processes(Test) ->
    Named = spawn(?MODULE, waiting, []),
    true = register('names test', Named),
    Labelled = labelled({worker, 7}),
    Text = labelled(~"Shop.Client"),
    Spawned = spawn(?MODULE, waiting, []),
    Fun = spawn(fun() -> waiting() end),
    {Gone, Ref} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Ref, process, Gone, _} -> ok end,
    try Test(Named, Labelled, Text, Spawned, Fun, Gone)
    after
        %% The next test registers the name again.
        [begin exit(P, kill), witness_await:down(P) end || P <- [Named, Labelled, Text, Spawned, Fun]]
    end.

labelled(Label) ->
    Self = self(),
    P = proc_lib:spawn(fun() -> proc_lib:set_label(Label), Self ! {labelled, self()}, waiting() end),
    receive {labelled, P} -> P end.

waiting() ->
    receive
        {alias, From} -> From ! {alias, alias()}, waiting();
        stop -> ok
    end.
