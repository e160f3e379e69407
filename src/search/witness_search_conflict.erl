-module(witness_search_conflict).
-moduledoc """
Which steps depend on each other: those that touch the same thing, one of them changing it. Pure. If two steps are independent, both
orders lead to the same world. Too many dependences cost a strategy only its precision.
""".

-export([depends/3, meet/2, touches/2]).

-export_type([touch/0]).

-type touch() :: {reads | changes, term()}.

-doc "Whether the order of two possible steps matters.".
-spec depends(witness_search_world:step(), witness_search_world:step(), witness_search_world:world()) -> boolean().
depends(One, Two, World) -> meet(touches(One, World), touches(Two, World)).

-doc "Whether two steps that touch these things depend on each other.".
-spec meet([touch()], [touch()]) -> boolean().
meet([{How, What} | Touches], Others) -> meets(How, What, Others) orelse meet(Touches, Others);
meet([], _) -> false.

meets(How, What, [{Other, What} | Others]) -> How =:= changes orelse Other =:= changes orelse meets(How, What, Others);
meets(How, What, [_ | Others]) -> meets(How, What, Others);
meets(_, _, []) -> false.

-doc "What a possible step touches.".
-spec touches(witness_search_world:step(), witness_search_world:world()) -> [touch()].
touches({signal, _, To}, World) -> ending(To, World);
touches({timer, Ref}, World) ->
    [{changes, {timer, Ref}} | [{reads, Name} || {name, _} = Name <- [witness_search_world:timer_name(Ref, World)]]]
        ++ case witness_search_world:timer_receiver(Ref, World) of
               none -> [];
               Id -> [{changes, {mailbox, Id}}, {reads, {process, Id}}]
           end;
touches({timeout, Id}, _) -> [{reads, {process, Id}}, {reads, {mailbox, Id}}];
touches({process, Id}, World) ->
    [{reads, {process, Id}} | case witness_search_world:status(Id, World) of
        {finds, _, _} -> [];
        {waits, _, _} -> [{reads, {mailbox, Id}}];
        {wants, Operation} -> operation(Operation, Id, World)
    end].

operation({send, To, Message, _}, Own, World) ->
    [{reads, {name, To}} || is_atom(To)]
        ++ case witness_search_world:receiver(To, World) of
               none -> outside(Message, World);
               Id -> [{changes, {mailbox, Id}}, {reads, {process, Id}} | arriving(Own, Id, World)]
           end;
operation({adopt, Name, _, _}, _, _) -> [{changes, {name, Name}}];
operation({ended, _}, Id, World) -> ending(Id, World);
operation({Kind, Pid}, _, World) when Kind =:= link; Kind =:= unlink -> target(changes, Pid, World);
operation({monitor, Target, _}, _, World) -> [{reads, {name, Target}} || is_atom(Target)] ++ target(reads, Target, World);
operation({exit, Pid, _}, Own, World) ->
    case witness_search_world:receiver(Pid, World) of
        Own -> ending(Own, World);
        _ -> target(changes, Pid, World)
    end;
operation({is_alive, Pid}, Own, World) ->
    case witness_search_world:receiver(Pid, World) of
        none -> [];
        Id -> [{reads, {process, Id}} | arriving(Own, Id, World)]
    end;
%% What is told of a process includes whether it waits, and so depends on each of its steps.
operation({information, Pid}, Own, World) ->
    case witness_search_world:receiver(Pid, World) of
        none -> [];
        Id -> [{reads, {mailbox, Id}}, {changes, {process, Id}} | arriving(Own, Id, World)]
    end;
operation({cancel_timer, Ref}, _, _) -> [{changes, {timer, Ref}}];
operation({read_timer, Ref}, _, _) -> [{reads, {timer, Ref}}];
operation({leader, Pid, _}, _, World) -> target(changes, Pid, World);
operation({register, Name, Pid}, _, World) -> [{changes, {name, Name}} | target(changes, Pid, World)];
operation({unregister, Name}, _, World) -> [{changes, {name, Name}} | target(changes, Name, World)];
operation({whereis, Name}, _, _) -> [{reads, {name, Name}}];
operation({demonitor, _, _}, Id, _) -> [{changes, {mailbox, Id}}];
operation({trap_exit, _}, Id, _) -> [{changes, {process, Id}}];
operation({shared, {Module, Function, Args}}, _, _) -> [{shared(Module, Function), memory(Module, Args)}];
operation(_, _, _) -> [].

%% A request for output that is passed on: its sender is answered.
outside({io_request, From, _, _}, World) when is_pid(From) ->
    case witness_search_world:receiver(From, World) of
        none -> [];
        Id -> [{changes, {mailbox, Id}}, {reads, {process, Id}}]
    end;
outside(_, _) -> [].

%% Signals of the process to the other one are handled before.
arriving(Own, Id, World) ->
    case witness_search_world:is_pending(Own, Id, World) of
        true -> ending(Id, World);
        false -> []
    end.

%% A process may end: what it has goes with it.
ending(Id, World) ->
    {Name, Targets} = witness_search_world:has(Id, World),
    [{changes, {mailbox, Id}}, {changes, {process, Id}}] ++ [{changes, {name, Name}} || Name =/= []]
        ++ [{changes, {process, Target}} || Target <- Targets].

target(How, Pid, World) ->
    case witness_search_world:receiver(Pid, World) of
        none -> [];
        Id -> [{How, {process, Id}}]
    end.

%% A function that is not known may change something.
shared(Module, Function) ->
    case witness_record_shared:kind(Module, Function) of
        read -> reads;
        _ -> changes
    end.

memory(ets, [Table | _]) -> {table, Table};
memory(Module, [What | _]) -> {Module, What};
memory(Module, []) -> Module.
