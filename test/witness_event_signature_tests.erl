-module(witness_event_signature_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% The behaviours that are started here call back into this module.
-export([init/1, callback_mode/0, handle_call/3, handle_cast/2, handle_event/4, terminate/2, terminate/3]).
-export([wait/0, wait/1]).

-define(M, ?MODULE).

%% Processes without a behaviour

a_plain_spawn_is_unchanged_test_() ->
    born([
        {{?M, wait, []}, fun() -> spawn(?M, wait, []) end},
        {{?M, wait, [1]}, fun() -> spawn_link(?M, wait, [1]) end},
        {{?M, wait, [1]}, fun() -> spawn(node(), ?M, wait, [1]) end},
        {{?M, wait, [1]}, fun() -> element(1, spawn_monitor(?M, wait, [1])) end},
        {{?M, wait, [1]}, fun() -> spawn_opt(?M, wait, [1], [link, {priority, low}]) end},
        {{?M, wait, [1]}, fun() -> requested(spawn_request(?M, wait, [1], [])) end}
    ]).

%% Its name is in the code. The module of this one, in its place in the external format, is another's of the same length.
a_fun_whose_code_is_not_loaded_has_no_name_test() ->
    Fun = fun() -> wait(1) end,
    Absent = binary_to_term(binary:replace(term_to_binary(Fun), atom_to_binary(?M), ~"witness_aloof_signature_tests", [global])),
    ?assertEqual({module, witness_aloof_signature_tests}, erlang:fun_info(Absent, module)),
    ?assertEqual({erlang, apply, [Absent, []]}, witness_event_signature:resolve({erlang, apply, [Absent, []]})).

a_fun_is_named_by_its_module_and_function_test_() ->
    Fun = fun() -> wait(1) end,
    {name, Name} = erlang:fun_info(Fun, name),
    Unary = fun(X) -> wait(X) end,
    {name, NameOfUnary} = erlang:fun_info(Unary, name),
    born([
        {{?M, Name, []}, fun() -> spawn(Fun) end},
        {{?M, Name, []}, fun() -> spawn_link(Fun) end},
        {{?M, Name, []}, fun() -> spawn_opt(Fun, [link]) end},
        {{?M, Name, []}, fun() -> requested(spawn_request(Fun)) end},
        {{?M, Name, []}, fun() -> proc_lib:spawn(Fun) end},
        {{?M, Name, []}, fun() -> spawn(erlang, apply, [Fun, []]) end},
        {{?M, NameOfUnary, [1]}, fun() -> spawn(erlang, apply, [Unary, [1]]) end},
        {{?M, wait, []}, fun() -> spawn(fun wait/0) end},
        {{?M, wait, []}, fun() -> spawn(fun ?M:wait/0) end},
        {{?M, wait, [1]}, fun() -> spawn(erlang, apply, [fun ?M:wait/1, [1]]) end}
    ]).

an_applied_function_is_the_function_test_() ->
    born([
        {{?M, wait, [1]}, fun() -> spawn(erlang, apply, [?M, wait, [1]]) end},
        {{?M, wait, [1]}, fun() -> proc_lib:spawn(erlang, apply, [?M, wait, [1]]) end}
    ]).

proc_lib_shows_the_function_that_it_runs_test_() ->
    born([
        {{?M, wait, []}, fun() -> proc_lib:spawn(fun ?M:wait/0) end},
        {{?M, wait, [1]}, fun() -> proc_lib:spawn(?M, wait, [1]) end},
        {{?M, wait, [1]}, fun() -> proc_lib:spawn_link(?M, wait, [1]) end},
        {{?M, wait, [1]}, fun() -> proc_lib:spawn_opt(?M, wait, [1], [link]) end},
        {{?M, init, [acknowledge]}, fun() -> ok(proc_lib:start(?M, init, [acknowledge])) end},
        {{?M, init, [acknowledge]}, fun() -> ok(proc_lib:start_link(?M, init, [acknowledge])) end},
        {{?M, init, [acknowledge]}, fun() -> ok(element(1, proc_lib:start_monitor(?M, init, [acknowledge]))) end}
    ]).

%% Behaviours of OTP

a_gen_server_is_the_init_of_its_callback_module_test_() -> generic(gen_server).

a_gen_statem_is_the_init_of_its_callback_module_test_() -> generic(gen_statem).

generic(Behaviour) ->
    Args = {Behaviour, [1]},
    Options = [{timeout, 5000}, {spawn_opt, [{priority, normal}]}, {hibernate_after, 5000}],
    born(
        [
            {{?M, init, [Args]}, fun() -> ok(Behaviour:Start(?M, Args, Given)) end}
         || Start <- [start, start_link, start_monitor], Given <- [[], Options]
        ] ++
            [
                {{?M, init, [Args]}, fun() -> ok(Behaviour:Start(Name, ?M, Args, Given)) end}
             || Start <- [start, start_link, start_monitor], Given <- [[], Options], Name <- names()
            ]
    ).

a_gen_event_manager_shows_its_name_test_() ->
    born(
        [
            {{gen_event, init, [undefined]}, fun() -> ok(Start()) end}
         || Start <- [
                fun gen_event:start/0, fun gen_event:start_link/0, fun gen_event:start_monitor/0,
                fun() -> gen_event:start_link([{hibernate_after, 5000}]) end
            ]
        ] ++
            [
                {{gen_event, init, [Name]}, fun() -> ok(gen_event:Start(Name, [])) end}
             || Start <- [start, start_link, start_monitor], Name <- names()
            ]
    ).

a_supervisor_is_the_init_of_its_callback_module_test_() ->
    born(
        [{{?M, init, [supervisor]}, fun() -> ok(supervisor:start_link(?M, supervisor)) end}] ++
            [
                {{?M, init, [supervisor]}, fun() -> ok(supervisor:start_link(Name, ?M, supervisor)) end}
             || Name <- names()
            ]
    ).

a_supervisor_bridge_is_the_init_of_its_callback_module_test_() ->
    born(
        [{{?M, init, [bridge]}, fun() -> ok(supervisor_bridge:start_link(?M, bridge)) end}] ++
            [
                {{?M, init, [bridge]}, fun() -> ok(supervisor_bridge:start_link(Name, ?M, bridge)) end}
             || Name <- names()
            ]
    ).

the_child_of_a_supervisor_is_itself_test_() ->
    Spec = #{id => child, start => {gen_server, start_link, [?M, {gen_server, 1}, []]}},
    born([
        {{?M, init, [{gen_server, 1}]}, fun() ->
            {ok, Supervisor} = supervisor:start_link(?M, supervisor),
            ok(supervisor:start_child(Supervisor, Spec))
        end}
    ]).

%% Shapes that are no shapes of OTP

odd_arguments_are_left_as_they_are_test_() ->
    [
        ?_assertEqual(Raw, witness_event_signature:resolve(Raw))
     || Raw <- [
            {erlang, apply, [not_a_fun, []]},
            {erlang, apply, [fun lists:map/2, not_a_list]},
            {erlang, apply, []},
            {erlang, apply, [1, 2, 3]},
            {proc_lib, init_p, [a, b, c]},
            {proc_lib, init_p, [a, b, "m", f, []]},
            {proc_lib, init_p, not_a_list},
            {proc_lib, init_p, [a | b]},
            {proc_lib, other, [a, b, fun lists:map/2]},
            {erts_internal, dist_spawn_init, [{m, f, 1}]},
            {'Elixir.Task.Supervised', reply, [owner, [], nomonitor]},
            {'Elixir.Task.Supervised', noreply, [owner, [], [], not_a_function]},
            {'Elixir.Task.Supervised', noreply, not_a_list},
            {m, f, improper}
        ]
    ].

odd_arguments_of_a_behaviour_lose_only_what_is_around_them_test_() ->
    [
        ?_assertEqual(Expected, witness_event_signature:resolve({proc_lib, init_p, [p, [], gen, init_it, Args]}))
     || {Expected, Args} <- [
            {{gen, init_it, [a, b]}, [a, b]},
            {{gen, init_it, [gen_server, a, b, "mod", c, []]}, [gen_server, a, b, "mod", c, []]},
            {{supervisor, init, [odd]}, [gen_server, a, b, supervisor, odd, []]},
            {{supervisor, init, [{self, "mod", x}]}, [gen_server, a, b, supervisor, {self, "mod", x}, []]},
            {{supervisor_bridge, init, [odd]}, [gen_server, a, b, supervisor_bridge, odd, []]},
            {{'Elixir.Agent.Server', init, [odd]}, [gen_server, a, b, 'Elixir.Agent.Server', odd, []]},
            {{m, init, [x]}, [my_behaviour, a, b, m, x, []]}
        ]
    ].

no_shape_makes_it_fail_test_() ->
    Property = ?FORALL(Raw, spawned(), begin
        case witness_event_signature:resolve(Raw) of
            Raw -> true;
            {Module, Function, Resolved} -> is_atom(Module) andalso is_atom(Function) andalso is_list(Resolved)
        end
    end),
    {timeout, 60, ?_assert(proper:quickcheck(Property, [{numtests, 3000}, {to_file, user}, nocolors]))}.

%% What the VM reported, with parts of it replaced by anything.
spawned() ->
    ?LET(Shape, oneof(shapes()), ?LET(Mutated, mutated(Shape), exactly(Mutated))).

mutated({M, F, Args}) -> {weighted(M), weighted(F), mutated_args(Args)}.

mutated_args(Args) ->
    frequency([
        {10, [mutated_arg(Arg) || Arg <- Args]},
        {1, ?LET({Kept, Tail}, {range(0, length(Args)), term()}, lists:sublist(Args, Kept) ++ Tail)},
        {1, term()}
    ]).

mutated_arg(Arg) when is_list(Arg) -> frequency([{6, mutated_args(Arg)}, {1, term()}]);
mutated_arg(Arg) when is_tuple(Arg) ->
    frequency([{6, ?LET(List, mutated_args(tuple_to_list(Arg)), loose(List))}, {1, term()}]);
mutated_arg(Arg) -> weighted(Arg).

loose(List) when is_list(List), length(List) >= 0 -> list_to_tuple(List);
loose(Other) -> Other.

weighted(Value) -> frequency([{8, exactly(Value)}, {1, term()}]).

shapes() ->
    Fun = fun() -> ok end,
    Gen = [
        [gen_server, self(), self(), m, args, []],
        [gen_event, self(), self, {local, n}, 'no callback module', [], []],
        [gen_server, self(), self(), {local, n}, supervisor, {{local, n}, m, args}, []],
        [gen_server, self(), self(), supervisor_bridge, [m, args, self], []],
        [gen_server, self(), self(), 'Elixir.DynamicSupervisor', {m, args, nil}, []],
        [gen_server, self(), self(), 'Elixir.Agent.Server', Fun, []],
        [gen_server, self(), self(), 'Elixir.Agent.Server', {m, f, [1]}, []]
    ],
    [
        {m, f, [1, 2]},
        {erlang, apply, [Fun, []]},
        {erts_internal, spawn_init, [{m, f, [1]}]},
        {erlang, apply, [erlang, apply, [m, f, [1]]]},
        {proc_lib, init_p, [self(), [], Fun]},
        {proc_lib, init_p, [self(), [], m, f, [1]]},
        {'Elixir.Task.Supervised', noreply, [{node(), self()}, [], {erlang, apply, [Fun, []]}]},
        {'Elixir.Task.Supervised', noreply, [{node(), self()}, [], [], {m, f, [1]}]},
        {proc_lib, init_p, [self(), [], 'Elixir.Task.Supervised', noreply, [{node(), self()}, [], [], {m, f, [1]}]]}
      | [{proc_lib, init_p, [self(), [], gen, init_it, Args]} || Args <- Gen]
    ].

%% Helpers

born(Cases) ->
    [?_assertEqual(Expected, witness_event_births:signature(Start)) || {Expected, Start} <- Cases].

%% A global name is given back some time after the process has gone: each is used once.
names() -> [{local, ?M}, {global, make_ref()}, {via, global, make_ref()}].

ok({ok, {Pid, _Monitor}}) -> Pid;
ok({ok, Pid}) -> Pid.

requested(Request) ->
    receive
        {spawn_reply, Request, ok, Pid} -> Pid
    end.

wait() -> receive after infinity -> ok end.
wait(_) -> wait().

%% Callbacks

init(acknowledge) -> proc_lib:init_ack({ok, self()}), wait();
init({gen_server, _}) -> {ok, state};
init({gen_statem, _}) -> {ok, state, data};
init(supervisor) -> {ok, {#{}, []}};
init(bridge) -> {ok, spawn_link(?M, wait, []), state}.

callback_mode() -> handle_event_function.
handle_event(_, _, _, _) -> keep_state_and_data.
handle_call(_, _, State) -> {reply, ok, State}.
handle_cast(_, State) -> {noreply, State}.
terminate(_, _) -> ok.
terminate(_, _, _) -> ok.

%% What is no signature of a process, as in a list that is improper, is not looked into.
unknown_arguments_are_told_test() ->
    ?assertEqual({unknown, m, f, 2}, witness_event_signature:known(witness_event_signature:unknown({m, f, 2}))),
    ?assertEqual({unknown, m, f, 2}, witness_event_signature:known({m, f, [1, '_']})),
    [?assertEqual(Known, witness_event_signature:known(Known))
     || Known <- [{m, f, []}, {m, f, [1]}, {m, f, [1 | '_']}, {1.0, 1, [1 | 2]}, {m, f, 1}, undefined]].
