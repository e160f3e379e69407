-module(witness_called_arguments).
-moduledoc """
Arguments of the calls that inline monitoring weaves (`m:witness_weave_calls`), as `m:witness_recorded_arguments` has those of
recorded calls. In addition, an entry can be marked `mine`: only the process that has made the arguments can make the call.

Another process starts the servers that are called, so that the caller's events are only those of the call. The servers end with
the caller.
""".
-export([entries/1, failing/1, is_called/1, stack/1, seen/1]).
-export([stays/1, told/2, told_by/2, both/1, ends/1, acks/2, acks_not/1, woken/0, error_0/0]).

-import(witness_recorded_calls, [expect/1, expect_own/1, messages/0]).

-define(NAME, witness_called_name).
-define(SERVER, witness_called_server).
-define(LONG_MS, 60_000).

%% --- what is called --------------------------------------------------------------

-doc "The entries of a module. The first one of a function is the one that `failing/1` spoils.".
entries(erlang) ->
    [{same, Name, Arity, fun() -> [self(), m | More] end}
     || {Name, Arity, More} <- [{'!', 2, []}, {send, 2, []}, {send_nosuspend, 2, []},
                             {send, 3, [[]]}, {send_nosuspend, 3, [[]]}]] ++
    [Entry || Entry <- witness_recorded_arguments:entries(erlang),
              lists:member(element(2, Entry), ['!', send, send_nosuspend, get, get_keys, erase, make_fun])] ++
    [{same, get, 0, fun() -> _ = [put(K, v) || K <- [b, a, {c, d}]], [] end}, {same, get_keys, 0, fun() -> put(k, v), [] end},
     {same, get_keys, 1, fun() -> put(a, v), put(b, w), [v] end},
     {mine, hibernate, 3, fun() -> self() ! wake, [?MODULE, woken, []] end}, {mine, hibernate, 0, fun() -> self() ! wake, [] end},
     {same, spawn_opt, 4, fun() -> [?MODULE, stays, [self()], [other]] end}] ++
    spawns(erlang, [{spawn, []}, {spawn_link, []}, {spawn_monitor, []}, {spawn_request, []}]) ++
    options([{spawn_opt, Args, Opts}
             || Args <- [2, 3, 4, 5], Opts <- [[], [link], [monitor], [monitor, link, {priority, high}]]]) ++
    [{kind, spawn_request, Arity, fun() -> expect_own(1), Make() end}
     || {Arity, Make} <- [{1, fun() -> [staying()] end},
                          {2, fun() -> [staying(), [{tag, tag}, link]] end}, {2, fun() -> [node(), staying()] end},
                          {3, fun() -> [?MODULE, stays, [self()]] end}, {3, fun() -> [node(), staying(), [monitor]] end},
                          %% What looks like options is an argument here.
                          {3, fun() -> [?MODULE, ends, [{reply, no}]] end},
                          {4, fun() -> [?MODULE, stays, [self()], [{tag, tag}]] end},
                          {4, fun() -> [node(), ?MODULE, stays, [self()]] end},
                          {4, fun() -> [?MODULE, stays, [self()], [{reply, success_only}]] end},
                          {5, fun() -> [node(), ?MODULE, stays, [self()], []] end}]] ++
    [{kind, spawn_request, 4, fun() -> [?MODULE, stays, [self()], [{reply, no}]] end},
     {kind, spawn_request, 4, fun() -> [?MODULE, stays, [self()], [{reply, error_only}]] end},
     {same, spawn, ['a@b', ?MODULE, nowhere, []]},
     {kind, spawn_request, 5, fun() -> expect_own(1), ['a@b', ?MODULE, nowhere, [], [{tag, {tag, 1}}]] end}];
entries(proc_lib) ->
    spawns(proc_lib, [{spawn, []}, {spawn_link, []}]) ++
    options([{spawn_opt, Args, Opts} || Args <- [2, 3, 4, 5], Opts <- [[], [link], [link, {priority, high}]]]) ++
    [{mine, hibernate, 3, fun() -> self() ! wake, [?MODULE, woken, []] end}] ++
    [Entry || Function <- [start, start_link, start_monitor],
              Entry <- [{kind, Function, 3, fun() -> starting(), [?MODULE, acks, [self(), self]] end},
                        {kind, Function, 3, fun() -> starting(), [?MODULE, acks, [self(), {own, acked}]] end},
                        {same, Function, 3, fun() -> starting(), [?MODULE, acks_not, [nack]] end},
                        {same, Function, 3, fun() -> starting(), [?MODULE, ends, [error]] end},
                        {kind, Function, 3, fun() -> starting(), [erlang, apply, [fun acks/2, [self(), self]]] end},
                        {kind, Function, 4, fun() -> starting(), [?MODULE, acks, [self(), self], ?LONG_MS] end},
                        {same, Function, 4, fun() -> starting(), [?MODULE, stays, [self()], 0] end},
                        {kind, Function, 5, fun() -> starting(), [?MODULE, acks, [self(), self], ?LONG_MS, [{priority, high}]] end},
                        {same, Function, 5, fun() -> starting(), [?MODULE, acks, [self(), self], ?LONG_MS, [monitor]] end}]];
entries(timer) -> [{same, sleep, [0]}, {same, sleep, [1]}];
entries(gen) ->
    [{same, call, 3, fun() -> [server(), '$gen_call', m] end}, {same, call, 3, fun() -> [ended(), '$gen_call', m] end},
     {same, call, 4, fun() -> [server(), '$gen_call', m, infinity] end},
     {same, call, 4, fun() -> [named(), '$gen_call', m, ?LONG_MS] end},
     {same, call, 4, fun() -> [server(), '$gen_call', never, 0] end},
     {same, reply, 2, fun() -> [{self(), tag}, m] end} | aliased(reply, fun(From) -> [From, m] end)];
entries(gen_server) ->
    started(gen_server, [start, start_link, start_monitor]) ++ calls(gen_server) ++ casts(gen_server) ++ requests(gen_server) ++
    [{same, multi_call, 2, fun() -> [named(), m] end}, {same, multi_call, [nothing_has_this_name, m]},
     {same, multi_call, 3, fun() -> [[node()], named(), m] end}, {same, multi_call, 3, fun() -> [[], named(), m] end},
     {same, multi_call, 3, fun() -> [[node(), node()], named(), m] end},
     {same, multi_call, 3, fun() -> [[node(), 'a@b'], named(), m] end},
     {same, multi_call, 3, fun() -> [[node(), 1], named(), m] end},
     {same, multi_call, 3, fun() -> [[node() | node()], named(), m] end},
     {same, multi_call, 3, fun() -> [[node()], named(), {stop, normal}] end},
     {same, multi_call, 4, fun() -> [[node()], named(), m, ?LONG_MS] end},
     {same, multi_call, 4, fun() -> [[node()], named(), never, 0] end},
     {same, abcast, 2, fun() -> expect(1), [named(), {tell, self(), m}] end}, {same, abcast, [nothing_has_this_name, m]},
     {same, abcast, 3, fun() -> expect(1), [[node()], named(), {tell, self(), m}] end},
     {same, abcast, 3, fun() -> expect(1), [[node(), 1], named(), {tell, self(), m}] end},
     {same, abcast, 3, fun() -> expect(1), [[node() | node()], named(), {tell, self(), m}] end},
     {same, abcast, 3, fun() -> [['a@b'], named(), m] end},
     {same, reply, 2, fun() -> [{self(), tag}, m] end}, {same, reply, 2, fun() -> [{nothing_has_this_name, tag}, m] end},
     {same, reply, 2, fun() -> [{{nothing_has_this_name, node()}, tag}, m] end} | aliased(reply, fun(From) -> [From, m] end)];
entries(gen_statem) ->
    started(gen_statem, [start, start_link, start_monitor]) ++ calls(gen_statem) ++ casts(gen_statem) ++ requests(gen_statem) ++
    [{same, call, 3, fun() -> [server(gen_statem), m, {Kind, ?LONG_MS}] end}
     || Kind <- [clean_timeout, dirty_timeout, other_timeout]] ++
    [{same, call, 3, fun() -> [server(gen_statem), m, {clean_timeout, infinity}] end},
     {same, call, 3, fun() -> [server(gen_statem), never, {dirty_timeout, 0}] end},
     {mine, receive_response, 1, fun() -> [gen_statem:send_request(server(gen_statem), m)] end},
     {mine, wait_response, 1, fun() -> [gen_statem:send_request(server(gen_statem), m)] end},
     {same, reply, 1, fun() -> [{reply, {self(), tag}, m}] end},
     {same, reply, 1, fun() -> [[{reply, {self(), tag}, m}, {reply, {self(), tag}, n}]] end},
     {same, reply, 1, fun() -> [[{reply, {self(), tag}, m}, other]] end},
     {same, reply, 1, fun() -> [[{reply, {self(), tag}, m} | other]] end},
     {same, reply, 1, fun() -> [[{reply, {self(), tag}, m}, {reply, other, m}]] end}, {same, reply, [[]]},
     {same, reply, 2, fun() -> [{self(), tag}, m] end} | aliased(reply, fun(From) -> [From, m] end)];
entries(gen_event) ->
    [Entry || Function <- [start, start_link, start_monitor],
              Entry <- [{kind, Function, []}, {kind, Function, 1, fun() -> [{local, free()}] end}, {kind, Function, [[]]},
                        {kind, Function, 1, fun() -> trapping(), [{local, named()}] end},
                        {kind, Function, 2, fun() -> [{local, free()}, []] end},
                        {same, Function, 2, fun() -> trapping(), [{local, named()}, []] end}]] ++
    requests(gen_event) ++
    [{same, call, 3, fun() -> [server(gen_event), ?SERVER, m] end}, {same, call, 3, fun() -> [named(gen_event), ?SERVER, m] end},
     {same, call, 3, fun() -> [server(gen_event), nothing, m] end}, {same, call, 3, fun() -> [ended(), ?SERVER, m] end},
     {same, call, 4, fun() -> [server(gen_event), ?SERVER, m, ?LONG_MS] end},
     {same, call, 4, fun() -> [server(gen_event), ?SERVER, m, infinity] end},
     {same, sync_notify, 2, fun() -> expect(1), [server(gen_event), {tell, self(), m}] end},
     {same, sync_notify, 2, fun() -> [ended(), m] end},
     {same, notify, 2, fun() -> expect(1), [server(gen_event), {tell, self(), m}] end},
     {same, notify, 2, fun() -> [ended(), m] end},
     {same, notify, 2, fun() -> expect(1), [{named(gen_event), node()}, {tell, self(), m}] end},
     {same, notify, [{global, nothing}, m]}, {same, notify, [nothing_has_this_name, m]},
     {same, add_handler, 3, fun() -> [server(gen_event), {?SERVER, two}, m] end},
     {same, add_handler, 3, fun() -> [server(gen_event), ?SERVER, m] end},
     {same, add_sup_handler, 3, fun() -> [server(gen_event), {?SERVER, two}, m] end},
     {same, delete_handler, 3, fun() -> [server(gen_event), ?SERVER, m] end},
     {same, delete_handler, 3, fun() -> [server(gen_event), nothing, m] end},
     {same, swap_handler, 3, fun() -> [server(gen_event), {?SERVER, m}, {{?SERVER, two}, m}] end},
     {same, swap_sup_handler, 3, fun() -> [server(gen_event), {?SERVER, m}, {{?SERVER, two}, m}] end},
     {same, which_handlers, 1, fun() -> [server(gen_event)] end}, {same, which_handlers, 1, fun() -> [ended()] end}];
entries(supervisor) ->
    [{kind, start_link, 2, fun() -> [?SERVER, {supervisor, self()}] end},
     {same, start_link, 2, fun() -> trapping(), [?SERVER, {supervisor, ignore}] end},
     {same, start_link, 2, fun() -> trapping(), [?SERVER, {supervisor, crash}] end},
     {kind, start_link, 3, fun() -> [{local, free()}, ?SERVER, {supervisor, self()}] end},
     {kind, start_link, 3, fun() -> trapping(), [{local, named()}, ?SERVER, {supervisor, self()}] end},
     {kind, start_child, 2, fun() -> [supervisor(), child(two, self())] end},
     {kind, start_child, 2, fun() -> [supervisor(), child(one, self())] end},
     {same, restart_child, 2, fun() -> [supervisor(), one] end}, {same, terminate_child, 2, fun() -> [supervisor(), one] end},
     {same, delete_child, 2, fun() -> [supervisor(), one] end}, {same, get_childspec, 2, fun() -> [supervisor(), one] end},
     {same, which_child, 2, fun() -> [supervisor(), one] end},
     {same, which_children, 1, fun() -> [supervisor()] end}, {same, which_children, 1, fun() -> [ended()] end},
     {same, count_children, 1, fun() -> [supervisor()] end}];
entries(supervisor_bridge) ->
    [{kind, start_link, 2, fun() -> [?SERVER, {bridge, self()}] end},
     {same, start_link, 2, fun() -> trapping(), [?SERVER, {bridge, ignore}] end},
     {kind, start_link, 3, fun() -> [{local, free()}, ?SERVER, {bridge, self()}] end}];
entries('Elixir.GenServer') ->
    [Entry || Function <- [start, start_link],
              Entry <- [{kind, Function, 2, fun() -> [?SERVER, {gen_server, self()}] end},
                        {same, Function, 2, fun() -> trapping(), [?SERVER, {gen_server, {stop, stopped}}] end},
                        {kind, Function, 3, fun() -> [?SERVER, {gen_server, self()}, [{name, free()}]] end}]] ++
    calls(gen_server)
        ++ [{same, cast, 2, fun() -> expect(1), [server(), {tell, self(), m}] end}, {same, cast, [nothing_has_this_name, m]},
                {same, cast, 2, fun() -> [ended(), m] end},
                {same, multi_call, 2, fun() -> [named(), m] end}, {same, multi_call, 3, fun() -> [[node()], named(), m] end},
                {same, multi_call, 4, fun() -> [[node()], named(), m, ?LONG_MS] end},
                {same, abcast, 2, fun() -> expect(1), [named(), {tell, self(), m}] end},
                {same, abcast, 3, fun() -> expect(1), [[node()], named(), {tell, self(), m}] end},
                {same, reply, 2, fun() -> [{self(), tag}, m] end} | aliased(reply, fun(From) -> [From, m] end)];
entries('Elixir.Agent') ->
    [Entry || Function <- [start, start_link],
              Entry <- [{kind, Function, 1, fun() -> [agent_state(self())] end},
                        {same, Function, 1, fun() -> trapping(), [fun error_0/0] end},
                        {kind, Function, 2, fun() -> [agent_state(self()), [{name, free()}]] end},
                        {kind, Function, 3, fun() -> [?SERVER, lives, [self()]] end},
                        {kind, Function, 4, fun() -> [?SERVER, lives, [self()], [{name, free()}]] end}]] ++
    [Entry || {Function, Fun, {M, F, As}} <- [{get, fun(State) -> State end, {erlang, '=:=', [ok]}},
                                              {update, fun(_) -> new end, {erlang, '=:=', [ok]}},
                                              {get_and_update, fun(State) -> {State, new} end, {?MODULE, both, []}}],
              Entry <- [{same, Function, 2, fun() -> [agent(), Fun] end},
                        {same, Function, 2, fun() -> [ended(), Fun] end},
                        {same, Function, 3, fun() -> [agent(), Fun, ?LONG_MS] end},
                        {same, Function, 4, fun() -> [agent(), M, F, As] end},
                        {same, Function, 5, fun() -> [agent(), M, F, As, ?LONG_MS] end}]] ++
    [{same, cast, 2, fun() -> Self = self(), expect(1), [agent(), fun(_) -> Self ! m end] end},
     {same, cast, 4, fun() -> expect(1), [agent(), ?MODULE, told_by, [self()]] end}];
entries('Elixir.Task') ->
    [Entry || Function <- [start, start_link],
              Entry <- [{kind, Function, 1, fun() -> [staying()] end}, {kind, Function, 3, fun() -> [?MODULE, stays, [self()]] end},
                        {kind, Function, 1, fun() -> expect(1), Self = self(), [fun() -> told(Self, m) end] end}]] ++
    [{kind, async, 1, fun() -> [staying()] end},
     {kind, async, 3, fun() -> [?MODULE, stays, [self()]] end},
     {mine, await, 1, fun() -> [task(erlang, abs, [-1])] end}, {mine, await, 2, fun() -> [task(erlang, abs, [-1]), ?LONG_MS] end},
     {mine, await, 2, fun() -> [task(?MODULE, stays, [self()]), 0] end},
     {mine, await, 1, fun() -> trapping(), expect(1), [task(?MODULE, ends, [exit])] end},
     {mine, yield, 1, fun() -> [task(erlang, abs, [-1])] end}, {mine, yield, 2, fun() -> [task(erlang, abs, [-1]), ?LONG_MS] end},
     {mine, yield, 2, fun() -> [task(?MODULE, stays, [self()]), 0] end},
     {mine, yield, 1, fun() -> trapping(), expect(1), [task(?MODULE, ends, [exit])] end}];
entries('Elixir.Supervisor') ->
    [{kind, start_link, 2, fun() -> [[], [{strategy, one_for_one}]] end},
     {kind, start_link, 2, fun() -> [?SERVER, {supervisor, self()}] end},
     {same, start_link, 2, fun() -> trapping(), [?SERVER, {supervisor, ignore}] end},
     {kind, start_link, 3, fun() -> [?SERVER, {supervisor, self()}, [{name, free()}]] end}];
entries('Elixir.DynamicSupervisor') ->
    [{kind, start_link, 2, fun() -> [?SERVER, {dynamic, self()}] end},
     {same, start_link, 2, fun() -> trapping(), [?SERVER, {dynamic, ignore}] end},
     {kind, start_link, 3, fun() -> [?SERVER, {dynamic, self()}, [{name, free()}]] end}];
entries(_) -> [].

%% Each way to say what begins, with each of the functions that take no options.
spawns(Module, Functions) ->
    [{case Function of spawn_monitor -> kind; spawn_request -> kind; _ -> same end, Function, Arity, Make}
     || {Function, []} <- Functions, Function =/= spawn_request,
        {Arity, Make} <- [{1, fun() -> [staying()] end}, {2, fun() -> [node(), staying()] end},
                          {3, fun() -> [?MODULE, stays, [self()]] end}, {4, fun() -> [node(), ?MODULE, stays, [self()]] end},
                          {3, fun() -> expect(1), [?MODULE, told, [self(), m]] end},
                          {3, fun() -> [erlang, apply, [staying(), []]] end},
                          {3, fun() -> [erlang, apply, [fun stays/1, [self()]]] end},
                          {4, fun() -> [node(), erlang, apply, [staying(), []]] end},
                          {3, fun() -> [erlang, apply, [?MODULE, stays, [self()]]] end}] ++
                         case Function of
                             spawn_monitor ->
                                 [{3, fun() -> expect_own(1), [?MODULE, ends, [How]] end} || How <- [normal, exit, error, throw]] ++
                                              [{1, fun() -> expect_own(1), [fun error_0/0] end},
                                               {1, fun() -> expect_own(1), [fun ?MODULE:error_0/0] end},
                                               {1, fun() -> [fun ended_with/1] end},
                                               {3, fun() -> expect_own(1), [erlang, apply, [fun ?MODULE:ends/1, [error]]] end}];
                             spawn_link when Module =:= erlang; Module =:= proc_lib ->
                                 [{3, fun() -> trapping(), expect_own(1), [?MODULE, ends, [How]] end}
                                  || How <- [normal, exit, error, throw]] ++
                                 [{1, fun() -> trapping(), expect_own(1), [fun error_0/0] end}];
                             _ -> []
                         end].

options(Spawns) ->
    [{case lists:member(monitor, Options) of true -> kind; false -> same end, Function, Arity, fun() -> Args() ++ [Options] end}
     || {Function, Arity, Options} <- Spawns,
        Args <- case Arity of
                    2 -> [fun() -> [staying()] end];
                    3 -> [fun() -> [node(), staying()] end];
                    4 -> [fun() -> [?MODULE, stays, [self()]] end, fun() -> [erlang, apply, [staying(), []]] end];
                    5 -> [fun() -> [node(), ?MODULE, stays, [self()]] end, fun() -> [node(), erlang, apply, [staying(), []]] end]
                end].

started(Behaviour, Functions) ->
    [Entry || Function <- Functions,
              Entry <- [{kind, Function, 3, fun() -> [?SERVER, {Behaviour, self()}, []] end}] ++
                       [{same, Function, 3, fun() -> trapping(), [?SERVER, {Behaviour, Fails}, []] end}
                        || Fails <- [ignore, crash, {stop, stopped}]] ++
                       [{kind, Function, 4, fun() -> [{local, free()}, ?SERVER, {Behaviour, self()}, []] end},
                        {kind, Function, 4, fun() -> trapping(), [{local, named()}, ?SERVER, {Behaviour, self()}, []] end}]].

%% Those of `gen_server' and `gen_statem', and Elixir's.
calls(Behaviour) ->
    [{same, call, 2, fun() -> [server(Behaviour), m] end}, {same, call, 2, fun() -> [named(Behaviour), m] end},
     {same, call, 2, fun() -> [{named(Behaviour), node()}, m] end}, {same, call, 2, fun() -> [global(Behaviour), m] end},
     {same, call, 2, fun() -> [{via, global, element(2, global(Behaviour))}, m] end},
     {same, call, [nothing_has_this_name, m]}, {same, call, [{global, nothing}, m]}, {same, call, [{nothing, 'a@b'}, m]},
     {same, call, 2, fun() -> [ended(), m] end}, {mine, call, 2, fun() -> [self(), m] end},
     {same, call, 2, fun() -> [server(Behaviour), {stop, stopped}] end},
     {same, call, 2, fun() -> [server(Behaviour), {stop, normal}] end},
     {same, call, 3, fun() -> [server(Behaviour), m, ?LONG_MS] end}, {same, call, 3, fun() -> [server(Behaviour), m, infinity] end},
     {same, call, 3, fun() -> [{named(Behaviour), node()}, m, ?LONG_MS] end},
     {same, call, 3, fun() -> [server(Behaviour), {stop, {shutdown, stopped}}, infinity] end},
     {same, call, 3, fun() -> [server(Behaviour), never, 0] end}, {same, call, 3, fun() -> [server(Behaviour), m, -1] end},
     {same, call, 3, fun() -> [named(Behaviour), m, never] end}].

casts(Behaviour) ->
    [{same, cast, 2, fun() -> expect(1), [server(Behaviour), {tell, self(), m}] end},
     {same, cast, 2, fun() -> expect(1), [named(Behaviour), {tell, self(), m}] end},
     {same, cast, 2, fun() -> expect(1), [{named(Behaviour), node()}, {tell, self(), m}] end},
     {same, cast, 2, fun() -> expect(1), [global(Behaviour), {tell, self(), m}] end},
     {same, cast, [nothing_has_this_name, m]}, {same, cast, [{global, nothing}, m]}, {same, cast, [{nothing, 'a@b'}, m]},
     {same, cast, 2, fun() -> [ended(), m] end}].

%% What is left of collections has references as keys.
requests(Behaviour) ->
    Send = fun(Server, Request) -> request(Behaviour, Server, Request) end,
    Labelled = fun(Server, Request, Label, Before) ->
        Args = [Server] ++ [?SERVER || Behaviour =:= gen_event] ++ [Request, Label, Before],
        put(answered, true),
        apply(Behaviour, send_request, Args)
    end,
    Two = fun() -> Labelled(server(Behaviour), m, a, Labelled(waiting(Behaviour), m, b, #{})) end,
    More = [?SERVER || Behaviour =:= gen_event],
    Arity = length(More),
    [{kind, send_request, Arity + 2, fun() -> expect_own(1), [Server()] ++ More ++ [m] end}
     || Server <- [fun() -> server(Behaviour) end, fun() -> named(Behaviour) end, fun() -> {named(Behaviour), node()} end,
                   fun ended/0, fun() -> nothing_has_this_name end, fun() -> {global, nothing} end,
                   fun() -> {nothing, 'a@b'} end]] ++
    [{kind, send_request, Arity + 4, fun() -> expect_own(1), [server(Behaviour)] ++ More ++ [m, label, #{}] end},
     {kind, send_request, Arity + 4, fun() ->
         %% One answer comes to the process that has made the first request, also if another one makes the second.
         expect(1),
         expect_own(2),
         [server(Behaviour)] ++ More ++ [m, label, Labelled(server(Behaviour), m, label, #{})]
     end},
     {kind, send_request, Arity + 4, fun() -> expect_own(1), [nothing_has_this_name] ++ More ++ [m, label, #{}] end}] ++
    [Entry || Function <- [receive_response, wait_response],
              Entry <- [{mine, Function, 2, fun() -> [Send(server(Behaviour), m), ?LONG_MS] end},
                        {mine, Function, 2, fun() -> [Send(server(Behaviour), m), infinity] end},
                        {mine, Function, 2,
                         fun() -> [Send(server(Behaviour), m), {abs, erlang:monotonic_time(millisecond) + ?LONG_MS}] end},
                        {mine, Function, 2, fun() -> [Send(waiting(Behaviour), m), 0] end},
                        {mine, Function, 2, fun() -> [Send(ended(), m), ?LONG_MS] end},
                        {mine, Function, 2, fun() -> [Send(nothing_has_this_name, m), ?LONG_MS] end},
                        {mine, Function, 3, fun() -> [Two(), ?LONG_MS, true] end},
                        {mine, Function, 3, fun() -> [Two(), ?LONG_MS, false] end},
                        {mine, Function, 3, fun() -> [#{}, ?LONG_MS, true] end},
                        {mine, Function, 3, fun() -> Args = [Two(), -1, false], put(answered, late), Args end},
                        {mine, Function, 3, fun() -> [Labelled(ended(), m, a, #{}), ?LONG_MS, false] end},
                        {mine, Function, 3, fun() -> [Labelled(nothing_has_this_name, m, a, #{}), ?LONG_MS, true] end},
                        {mine, Function, 3, fun() -> [Labelled(waiting(Behaviour), m, a, #{}), 0, true] end}]].

request(Behaviour, Server, Request) ->
    put(answered, true),
    apply(Behaviour, send_request, [Server] ++ [?SERVER || Behaviour =:= gen_event] ++ [Request]).

%% A server that does not answer.
waiting(Behaviour) ->
    elsewhere(fun(Owner) ->
        Server = begun(Behaviour, [], Owner),
        ok = sys:suspend(Server),
        Server
    end).

aliased(Function, Args) ->
    [{same, Function, 2, fun() -> Args({self(), Tag(alias())}) end}
     || Tag <- [fun(Alias) -> [alias | Alias] end, fun(Alias) -> [[alias | Alias] | make_ref()] end]].

%% --- calls that fail -------------------------------------------------------------

-doc "Arguments with which a call fails: none that makes sense, and each of them in turn.".
failing({_, _, 0}) -> [];
failing({M, F, Arity}) ->
    [First | _] = [Entry || Entry <- entries(M), element(2, Entry) =:= F, arity(Entry) =:= Arity],
    [fun() -> trapping(), lists:duplicate(Arity, {witness_wrong}) end || not waits({M, F, Arity}, 1) orelse Arity > 1] ++
    [fun() -> wrong(I, First) end || I <- lists:seq(1, Arity), not waits({M, F, Arity}, I)].

arity({_, _, Args}) -> length(Args);
arity({_, _, Arity, _}) -> Arity.

wrong(I, {_, Function, Args}) -> wrong(I, Function, Args);
wrong(I, {_, Function, _, Make}) -> wrong(I, Function, Make()).

wrong(I, Function, Args) ->
    erase(expected),
    %% The server answers a wrong request, too, and nothing waits for the answer.
    _ = get(answered) =:= undefined andalso Function =/= send_request orelse put(answered, late),
    trapping(),
    lists:sublist(Args, I - 1) ++ [{witness_wrong} | lists:nthtail(I, Args)].

%% With a wrong request, the call would wait for a response.
waits({_, Function, Arity}, 1) when Function =:= receive_response; Function =:= wait_response -> Arity < 3;
waits({gen, call, _}, 2) -> true;
waits(_, _) -> false.

-doc """
Whether a call is made in this way. If the function itself begins a process, the call is not woven, and what begins is the same
whatever the arguments. So some of them are enough.

A process that links itself to one that fails, and does not trap exits, may be ended by the other one before the call returns, or
not: the arguments are not those of a function that fails unless the process that made them, which traps exits, makes the call.
""".
is_called({_, 1, _}) -> true;
is_called({{_, Function, _} = MFA, N, Way}) ->
    witness_recorded_calls:is_by_maker(Way)
        orelse not lists:member(Function, [start_link, spawn_link, async])
                   andalso (witness_recorded_calls:is_woven(Way)
                            orelse N =:= length(witness_recorded_calls:cases(?MODULE, MFA))).

-doc "What is compared of the stack trace of a call: all of it.".
stack(Stack) -> Stack.

%% --- what is there before --------------------------------------------------------

staying() ->
    Owner = self(),
    fun() -> stays(Owner) end.

%% What another process does, before this one goes on.
elsewhere(Make) ->
    Owner = self(),
    Ref = make_ref(),
    _ = spawn(fun() -> Owner ! {Ref, Make(Owner)} end),
    receive {Ref, Made} -> Made end.

server() -> server(gen_server).

server(Behaviour) -> elsewhere(fun(Owner) -> begun(Behaviour, [], Owner) end).

named() -> named(gen_server).

named(Behaviour) ->
    put(names, not get(first)),
    elsewhere(fun(Owner) ->
        freed(),
        begun(Behaviour, [{local, ?NAME}], Owner),
        ?NAME
    end).

global(Behaviour) ->
    elsewhere(fun(Owner) ->
        _ = global:unregister_name(?NAME),
        begun(Behaviour, [{global, ?NAME}], Owner),
        {global, ?NAME}
    end).

begun(gen_event, Name, Owner) ->
    {ok, Manager} = apply(gen_event, start, Name),
    ok = gen_event:add_handler(Manager, ?SERVER, {gen_event, Owner}),
    Manager;
begun(Behaviour, Name, Owner) ->
    {ok, Server} = apply(Behaviour, start, Name ++ [?SERVER, {Behaviour, Owner}, []]),
    Server.

%% It has one child, which is dead until it is started again.
supervisor() ->
    elsewhere(fun(Owner) ->
        {ok, Supervisor} = gen_server:start(supervisor, {self, ?SERVER, {supervisor, Owner}}, []),
        {ok, _} = supervisor:start_child(Supervisor, child(one, Owner)),
        ok = supervisor:terminate_child(Supervisor, one),
        Supervisor
    end).

child(Id, Owner) -> #{id => Id, start => {?SERVER, child, [Owner]}}.

%% It may end, and with it the link, before the caller reads its links.
task(M, F, Args) ->
    put(ending, true),
    put(answered, true),
    'Elixir.Task':async(M, F, Args).

agent() -> elsewhere(fun(Owner) -> {ok, Agent} = 'Elixir.Agent':start(agent_state(Owner)), Agent end).

agent_state(Owner) -> fun() -> ?SERVER:lives(Owner) end.

ended() -> elsewhere(fun(_) ->
    {Pid, Ref} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', Ref, process, Pid, _} -> Pid end
end).

free() ->
    put(names, not get(first)),
    elsewhere(fun(_) -> freed(), ?NAME end).

freed() ->
    case whereis(?NAME) of
        undefined -> ok;
        Pid ->
            Ref = monitor(process, Pid),
            exit(Pid, kill),
            receive {'DOWN', Ref, process, Pid, _} -> ok end
    end.

%% A linked server that does not start must not end the process that starts it.
trapping() -> process_flag(trap_exit, true).

%% If the call does not wait for the start, the server may start all the same.
starting() ->
    put(answered, true),
    trapping().

%% --- what begins -----------------------------------------------------------------

-doc false.
stays(Owner) ->
    Ref = monitor(process, Owner),
    receive {'DOWN', Ref, process, Owner, _} -> ok end.

-doc false.
told(To, Message) ->
    To ! Message,
    stays(To).

-doc false.
told_by(_, To) -> To ! m.

-doc false.
both(State) -> {State, State}.

-doc false.
ends(exit) -> exit(left);
ends(error) -> error(failed);
ends(throw) -> throw(thrown);
ends(_) -> ok.

-doc false.
error_0() -> ends(error).

ended_with(_) -> ok.

-doc false.
acks(Owner, How) ->
    proc_lib:init_ack(case How of self -> {ok, self()}; {own, Ack} -> Ack end),
    stays(Owner).

-doc false.
acks_not(Reason) -> proc_lib:init_fail({error, Reason}, {exit, normal}).

-doc false.
woken() ->
    receive wake -> ok end,
    exit({outcome, {value, woken}, seen([])}).

%% --- what was done ---------------------------------------------------------------

-doc "What the process can see of what a call has done.".
seen(Args) ->
    Messages = messages(),
    [{links, Links}, {monitors, Monitors}] = process_info(self(), [links, monitors]),
    #{arguments => length(Args), links => case get(ending) of true -> ending; _ -> length(Links) end,
      monitors => case get(answered) of late -> late; _ -> length(Monitors) end, dictionary => lists:sort(get()),
      named => get(names) =:= true andalso whereis(?NAME) =/= undefined,
      messages => case get(answered) of late -> late; _ -> Messages end}.
