-module(witness_inline_behaviour_request).
-moduledoc """
The messages that functions of OTP's behaviours, and of Elixir's libraries over them, send for their callers, and the
receivers of these messages. Also the functions that fetch replies later.
""".

-export([of_call/3, of_multi_call/1, of_cast/3, of_abcast/1, valid_nodes/1, target/1, receiver/1, perform/4]).

-doc """
The server, the first element of the message, the request, and the time-out for the reply. `refused`: nothing is sent.
""".
-spec of_call(module(), atom(), [term()]) -> {Server :: term(), Label :: term(), Request :: term(), timeout()} | refused.
of_call(gen, call, [Server, Label, Request]) -> {Server, Label, Request, 5_000};
of_call(gen, call, [Server, Label, Request, Timeout]) -> {Server, Label, Request, Timeout};
of_call(gen_statem, call, [Server, Request]) -> {Server, '$gen_call', Request, infinity};
of_call(gen_statem, call, [Server, Request, {Kind, Timeout}]) when Kind =:= clean_timeout; Kind =:= dirty_timeout ->
    {Server, '$gen_call', Request, Timeout};
of_call(gen_event, call, [Manager, Handler, Request]) -> {Manager, self(), {call, Handler, Request}, 5_000};
of_call(gen_event, call, [Manager, Handler, Request, Timeout]) -> {Manager, self(), {call, Handler, Request}, Timeout};
of_call(gen_event, which_handlers, [Manager]) -> {Manager, self(), which_handlers, infinity};
of_call(gen_event, add_sup_handler, [Manager, Handler, Args]) ->
    {Manager, self(), {add_sup_handler, Handler, Args, self()}, infinity};
of_call(gen_event, swap_handler, [Manager, {Handler1, Args1}, {Handler2, Args2}]) ->
    {Manager, self(), {swap_handler, Handler1, Args1, Handler2, Args2}, infinity};
of_call(gen_event, swap_sup_handler, [Manager, {Handler1, Args1}, {Handler2, Args2}]) ->
    {Manager, self(), {swap_sup_handler, Handler1, Args1, Handler2, Args2, self()}, infinity};
of_call(gen_event, Function, _) when Function =:= swap_handler; Function =:= swap_sup_handler -> refused;
of_call(gen_event, Function, [Manager | Args]) -> {Manager, self(), list_to_tuple([Function | Args]), infinity};
of_call(supervisor, Function, [Supervisor]) -> {Supervisor, '$gen_call', Function, infinity};
of_call(supervisor, Function, [Supervisor, Arg]) -> {Supervisor, '$gen_call', {Function, Arg}, infinity};
of_call('Elixir.Agent', _, [_, NoFun | Time]) when not is_function(NoFun, 1), length(Time) =< 1 -> refused;
of_call('Elixir.Agent', Function, [Agent, Fun]) -> {Agent, '$gen_call', {Function, Fun}, 5_000};
of_call('Elixir.Agent', Function, [Agent, Fun, Timeout]) -> {Agent, '$gen_call', {Function, Fun}, Timeout};
of_call('Elixir.Agent', Function, [Agent, M, F, A]) -> {Agent, '$gen_call', {Function, {M, F, A}}, 5_000};
of_call('Elixir.Agent', Function, [Agent, M, F, A, Timeout]) -> {Agent, '$gen_call', {Function, {M, F, A}}, Timeout};
of_call(_, call, [Server, Request]) -> {Server, '$gen_call', Request, 5_000};
of_call(_, call, [Server, Request, Timeout]) -> {Server, '$gen_call', Request, Timeout}.

-doc "The nodes of the call, the name there, the request, and the arguments behind that. `refused`: nothing is sent.".
-spec of_multi_call([term()]) -> {Nodes :: term(), Name :: atom(), Request :: term(), More :: [term()]} | refused.
of_multi_call([Name, Request]) when is_atom(Name) -> {[node() | nodes()], Name, Request, []};
of_multi_call([Nodes, Name, Request]) when is_list(Nodes), is_atom(Name) -> {Nodes, Name, Request, []};
of_multi_call([Nodes, Name, Request, Timeout])
  when is_list(Nodes), is_atom(Name), Timeout =:= infinity orelse is_integer(Timeout) andalso Timeout >= 0 ->
    {Nodes, Name, Request, [Timeout]};
of_multi_call(_) -> refused.

-doc "The receiver and the message.".
-spec of_cast(module(), atom(), [term()]) -> {Server :: term(), Message :: term()}.
of_cast(gen_event, notify, [Manager, Event]) -> {Manager, {notify, Event}};
of_cast('Elixir.Agent', cast, [Agent, M, F, A]) -> {Agent, {'$gen_cast', {cast, {M, F, A}}}};
of_cast('Elixir.Agent', cast, [Agent, Fun]) -> {Agent, {'$gen_cast', {cast, Fun}}};
of_cast(_, cast, [Server, Message]) -> {Server, {'$gen_cast', Message}}.

-doc "The nodes, the name, and the message. `refused`: nothing is sent.".
-spec of_abcast([term()]) -> {Nodes :: term(), Name :: atom(), Message :: term()} | refused.
of_abcast([Name, Message]) when is_atom(Name) -> {[node() | nodes()], Name, Message};
of_abcast([Nodes, Name, Message]) when is_list(Nodes), is_atom(Name) -> {Nodes, Name, Message};
of_abcast(_) -> refused.

-doc "The nodes that get the message: those before the first element that is not a node.".
-spec valid_nodes(Nodes :: term()) -> [node()].
valid_nodes([Node | Nodes]) when is_atom(Node) -> [Node | valid_nodes(Nodes)];
valid_nodes(_) -> [].

-doc "The receiver of a call's request: a name of this node is looked up first. `none` if there is no such process.".
-spec target(Server :: term()) -> pid() | {atom(), node()} | none.
target(Name) when is_atom(Name) -> pid_or_none(whereis(Name));
target({Name, Node}) when is_atom(Name), Node =:= node() -> pid_or_none(whereis(Name));
target({Name, Node}) when is_atom(Name), Name =/= global, is_atom(Node), node() =:= nonode@nohost -> none;
target(Server) -> receiver(Server).

-doc "The receiver of a cast's message: the VM looks up the name.".
-spec receiver(Server :: term()) -> pid() | atom() | {atom(), node()} | none.
receiver(Process) when is_pid(Process) -> Process;
receiver(Name) when is_atom(Name) -> case pid_or_none(whereis(Name)) of none -> none; _ -> Name end;
receiver({global, Name}) -> pid_or_none(global:whereis_name(Name));
receiver({via, Module, Name}) ->
    %% A failure of a registry is ignored here: the call itself fails, too.
    try pid_or_none(Module:whereis_name(Name)) catch _:_ -> none end;
receiver({Name, Node} = Server) when is_atom(Name), is_atom(Node) -> Server;
receiver(_) -> none.

pid_or_none(Process) when is_pid(Process) -> Process;
pid_or_none(_) -> none.

-doc "Does the call, and passes its events to `See`.".
-spec perform(module(), atom(), [term()], fun((witness_inline_behaviour:seen()) -> term())) -> term().
perform(Module, send_request, [Server | Args], See) ->
    Result = apply(Module, send_request, [Server | Args]),
    {Label, Request, More} = case {Module, Args} of
        {gen_event, [Handler, Asked | Others]} -> {self(), {call, Handler, Asked}, Others};
        {_, [Asked | Others]} -> {'$gen_call', Asked, Others}
    end,
    case target(Server) of
        %% The caller itself sends the `DOWN' message to itself.
        none -> See({send, self(), {'DOWN', id(Result, More), process, Server, down_reason(Server)}});
        To -> See({send, To, {Label, {self(), [alias | id(Result, More)]}, Request}})
    end,
    Result;
perform('Elixir.Task', Function, [#{ref := Ref, pid := Process} | _] = Args, See) ->
    try {Function, apply('Elixir.Task', Function, Args)} of
        {await, Reply} -> See({recv, {Ref, Reply}}), Reply;
        {yield, {ok, Reply} = Result} -> See({recv, {Ref, Reply}}), Result;
        {yield, {exit, Reason} = Result} -> See({recv, {'DOWN', Ref, process, Process, Reason}}), Result;
        {yield, Result} -> Result
    catch
        exit:{Reason, {'Elixir.Task', await, _} = By}:Stack ->
            _ = case Reason of
                timeout -> ok;
                {nodedown, _} -> See({recv, {'DOWN', Ref, process, Process, noconnection}});
                _ -> See({recv, {'DOWN', Ref, process, Process, Reason}})
            end,
            erlang:raise(exit, {Reason, By}, Stack)
    end;
perform(Module, Function, [Requests, Timeout, Delete], See) when is_map(Requests), is_boolean(Delete) ->
    %% The rest of the collection shows which request got a reply.
    case apply(Module, Function, [Requests, Timeout, true]) of
        {Response, Label, Left} ->
            [Id] = maps:keys(maps:without(maps:keys(Left), Requests)),
            report_response(Module, Response, Id, See),
            {Response, Label, case Delete of true -> Left; false -> Requests end};
        Other -> Other
    end;
perform(Module, Function, [Id | _] = Args, See) ->
    Response = apply(Module, Function, Args),
    report_response(Module, Response, Id, See),
    Response.

down_reason({Name, Node}) when is_atom(Name), Name =/= global, Node =/= node() -> {nodedown, Node};
down_reason(_) -> noproc.

%% A new request is the one that the collection did not have.
id(Id, []) -> Id;
id(Requests, [_Label, Before]) -> [Id] = maps:keys(maps:without(maps:keys(Before), Requests)), Id.

report_response(_, {reply, Reply}, Id, See) -> See({recv, {[alias | Id], Reply}});
report_response(gen_event, {error, Why} = Reply, Id, See) ->
    %% If a handler fails, the error is a reply, and contains no process.
    case Why of
        {Reason, Server} when Reason =/= 'EXIT', is_pid(Server) orelse is_atom(Server) orelse is_tuple(Server) ->
            See({recv, {'DOWN', Id, process, Server, Reason}});
        _ -> See({recv, {[alias | Id], Reply}})
    end;
report_response(_, {error, {Reason, Server}}, Id, See) -> See({recv, {'DOWN', Id, process, Server, Reason}});
report_response(_, _, _, _) -> ok.
