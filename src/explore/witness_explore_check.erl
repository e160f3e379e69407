-module(witness_explore_check).
-moduledoc """
What must hold in each state and at the end, apart from what the steps assert (`m:witness_explore_world`: the order and the
owner of each analysed event) and what the core asserts (I1 to I24).
""".

-export([hops/2, is_direct/2, routes/1, final/1, is_quiet/1]).

-type process() :: witness_explore_system:process().
-type tracer() :: witness_explore_world:tracer().

-doc "The next hop of each process that a tracer has a route for.".
-spec hops(module(), term()) -> #{process() => tracer()}.
hops(Module, Core) ->
    case erlang:function_exported(Module, maps, 1) of
        true ->
            #{route := Route} = Module:maps(Core),
            maps:map(fun(_, {live, Next}) -> Next;
                        (_, {cut, Next, _}) -> Next;
                        (_, {hop, _, Next}) -> Next
                     end, Route);
        false -> maps:from_list(Module:routes(Core))
    end.

-doc """
Whether a tracer analyses every event of its processes at once, as with a source that gives each process its partition
at birth: all are direct, there is no route, and nothing waits.
""".
-spec is_direct(module(), term()) -> boolean().
is_direct(Module, Core) ->
    not erlang:function_exported(Module, maps, 1) orelse
        begin
            #{own := Own, route := Route, stash := Stash} = Module:maps(Core),
            map_size(Route) =:= 0 andalso map_size(Stash) =:= 0 andalso
                lists:all(fun(Mode) -> element(1, Mode) =:= direct end, maps:values(Own))
        end.

-doc """
In each state the routes of a process have no cycle, and end at the tracer that owns it or is to own it. Two other ends are
allowed. The tracer there does not know the process yet, but its fork is on the way there. Or the route is about to go: the
`discard` of a child that was born in two sessions, or the `eof` behind its duplicates, is on its way.
""".
-spec routes(witness_explore_world:view()) -> ok.
routes(View = #{tracers := Tracers, module := Module}) ->
    Hops = #{{T, P} => Next || T := {Core, _, _} <- Tracers, P := Next <- hops(Module, Core)},
    maps:foreach(fun({T, P}, _) -> route(P, T, [], Hops, View) end, Hops).

route(P, T, Way, Hops, View = #{dictated := Dictated}) ->
    lists:member(T, Way) andalso throw({violation, {circle, P, lists:reverse([T | Way])}}),
    case Hops of
        #{{T, P} := Next} -> route(P, Next, [T | Way], Hops, View);
        #{} ->
            T =:= element(P, Dictated) orelse is_coming(P, T, View) orelse is_going(P, View) orelse
                throw({violation, {route_to_nowhere, P, lists:reverse([T | Way])}}),
            ok
    end.

%% The tracers on the route of the parent get the fork of the child as one of the parent's events.
is_coming(P, T, #{mail := Mail, tracers := Tracers}) ->
    lists:any(fun(Message) -> is_about(P, Message) end, [M || {To, _} := Messages <- Mail, To =:= T, M <- Messages])
        orelse busy_with(P, map_get(T, Tracers)).

is_about(P, {routed, _, {_, {fork, _, P, _, _}}}) -> true;
is_about(P, {take, P, _, _, _, _}) -> true;
is_about(_, _) -> false.

%% The tracer has taken the fork, and is asking which tracer is to own the child.
busy_with(_, {_, _, none}) -> false;
busy_with(P, {_, _, {Op, Effects, _}}) ->
    is_tuple(Op) andalso tuple_size(Op) > 1 andalso element(2, Op) =:= P orelse
        lists:any(fun({send, _, M}) -> is_about(P, M); (_) -> false end, Effects).

is_going(P, #{mail := Mail, tracers := Tracers}) ->
    lists:any(fun({discard, Q}) -> Q =:= P;
                 ({routed, _, {eof, Q}}) -> Q =:= P;
                 (_) -> false
              end, [M || _ := Messages <- Mail, M <- Messages] ++
                   [M || _ := {_, _, {_, Effects, _}} <- Tracers, {send, _, M} <- Effects]).

-doc """
What must hold if no step is possible any more:

- Every process that was seen at all was analysed completely. If it has ended, its end was reported.
- No tracer is in the middle of anything, and nothing is undelivered.
- A process that has ended is in no map.
- A process that lives is on in the session of its owner. It is on in another session only while the tracer there has a
  route. No tracer has a route if the owner gets all events of the process directly.
- When all processes have ended, every tracer is done, and every one that was lent is free again.
""".
-spec final(witness_explore_world:view()) -> ok | {violation, term()}.
final(View) ->
    try
        lists:foreach(fun(Check) -> Check(View) end, [fun idle/1, fun delivered/1, fun complete/1, fun on/1,
                                                      fun empty/1, fun ended/1])
    catch
        throw:{violation, _} = Violation -> Violation
    end.

-spec violated(term()) -> no_return().
violated(What) -> throw({violation, What}).

idle(#{tracers := Tracers}) ->
    [violated({blocked, T, Pending}) || T := {_, _, Pending} <- Tracers, Pending =/= none].

delivered(#{mail := Mail, source := Source, tracers := Tracers, module := Module}) ->
    map_size(Mail) =:= 0 orelse violated({undelivered, hd(maps:keys(Mail))}),
    witness_explore_source:queues(Source) =:= [] orelse
        violated({undelivered, hd(witness_explore_source:queues(Source))}),
    erlang:function_exported(Module, lost, 1) andalso
        [violated({lost, T, hd(Lost)}) || T := {Core, _, _} <- Tracers, Lost <- [Module:lost(Core)], Lost =/= []].

complete(View = #{system := State, read := Read, closed := Closed}) ->
    [begin
         N = witness_explore_system:count(P, State),
         element(P, Read) =:= N orelse violated({incomplete, P, element(P, Read), N}),
         state(P, View) =:= dead andalso not lists:member(P, Closed) andalso violated({end_not_told, P})
     end || P <- seen(View)].

%% The processes that have to be seen.
seen(View = #{read := Read}) ->
    [P || P <- lists:seq(1, tuple_size(Read)), state(P, View) =/= unborn, element(P, Read) >= 0 orelse
     state(P, View) =:= alive].

state(P, #{system := State}) -> witness_explore_system:state(P, State).

on(View = #{owner := Owner, source := Source, tracers := Tracers, module := Module}) ->
    [begin
         On = witness_explore_source:on(P, Source),
         lists:member(element(P, Owner), On) orelse violated({not_on, P}),
         owned_directly(P, View) andalso [violated({routed_in_vain, P, T}) || T := {Core, _, _} <- Tracers,
                                          is_map_key(P, hops(Module, Core))],
         [violated({on_in_vain, P, T}) || T <- On, T =/= element(P, Owner),
                                          not is_map_key(P, hops(Module, element(1, map_get(T, Tracers))))]
     end || P <- seen(View), state(P, View) =:= alive].

%% The owner gets all events of the process from its own session.
owned_directly(P, #{owner := Owner, tracers := Tracers, module := Module}) ->
    {Core, _, _} = map_get(element(P, Owner), Tracers),
    erlang:function_exported(Module, direct, 2) andalso Module:direct(P, Core) =/= no.

empty(View = #{tracers := Tracers, module := Module}) ->
    [begin
         [violated({still_owned, P, T}) || {P, _} <- Module:owned(Core), state(P, View) =/= alive],
         [violated({still_routed, P, T}) || P := _ <- hops(Module, Core), state(P, View) =/= alive],
         [violated({still_kept, P, T}) || P <- kept_back(Module, Core)]
     end || T := {Core, _, _} <- Tracers].

%% Processes with a birth that has not been handled completely, although nothing is on its way any more. If the fork itself
%% is kept, so is the child: what a living process did waits as long as its handover lasts.
kept_back(Module, Core) ->
    case erlang:function_exported(Module, maps, 1) of
        true ->
            #{own := Own, stash := Stash, unpaired := Unpaired} = Module:maps(Core),
            Waiting = [Events || _ := {priority, _, _, Events, _} <- Own] ++ maps:values(Stash),
            (maps:keys(Stash) ++ maps:keys(Unpaired))
                -- [Child || Events <- Waiting, {_, {fork, _, Child, _, _}} <- Events];
        false -> []
    end.

ended(View = #{tracers := Tracers, free := Free, module := Module}) ->
    lists:any(fun(P) -> state(P, View) =:= alive end, seen(View)) orelse
        [begin
             Module:is_done(Core) orelse violated({not_done, T}),
             Lent andalso not lists:member(T, Free) andalso violated({not_given_back, T})
         end || T := {Core, Lent, _} <- Tracers].

-doc """
Whether everything has happened and nothing is left to do: the processes have no action left, all events were
analysed, nothing is on its way, and no tracer has a route.
""".
-spec is_quiet(witness_explore_world:view()) -> boolean().
is_quiet(#{system := State, source := Source, mail := Mail, tracers := Tracers, module := Module,
           structure := System}) ->
    witness_explore_system:steps(System, State) =:= [] andalso map_size(Mail) =:= 0 andalso
        witness_explore_source:queues(Source) =:= [] andalso
        lists:all(fun({Core, _, Pending}) -> Pending =:= none andalso map_size(hops(Module, Core)) =:= 0 end,
                  maps:values(Tracers)).
