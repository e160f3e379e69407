-module(witness_sys_names).
-moduledoc """
Messages by registered name, by name and node, by alias, and by an alias that is no longer active; to a process
that is dead, and from a process to itself.
""".
-export([main/0, echo/1, asker/1, talks_to_the_dead/1, to_itself/1, monitors_the_dead/1]).

-spec main() -> ok.
main() ->
    {Echo, Ref} = spawn_monitor(?MODULE, echo, [self()]),
    receive registered -> ok end,
    {Dead, DeadRef} = spawn_monitor(fun() -> ok end),
    receive {'DOWN', DeadRef, process, Dead, _} -> ok end,
    Pids = [spawn_monitor(?MODULE, F, [A]) || {F, A} <- [{asker, name}, {asker, node}, {asker, pid}, {asker, alias},
                                                         {talks_to_the_dead, Dead}, {monitors_the_dead, Dead},
                                                         {to_itself, 10}]],
    _ = [receive {'DOWN', R, process, P, normal} -> ok end || {P, R} <- Pids],
    Echo ! stop,
    receive {'DOWN', Ref, process, Echo, _} -> ok end.

-spec echo(pid()) -> ok.
echo(Root) ->
    true = register(?MODULE, self()),
    Root ! registered,
    echo_loop().

echo_loop() ->
    receive
        {echo, To, Msg} -> To ! {echoed, Msg}, echo_loop();
        stop -> ok
    end.

-doc "Asks the echo in one of four ways.".
-spec asker(name | node | pid | alias) -> ok.
asker(name) -> ?MODULE ! {echo, self(), by_name}, echoed(by_name);
asker(node) -> {?MODULE, node()} ! {echo, self(), by_node}, echoed(by_node);
asker(pid) -> whereis(?MODULE) ! {echo, self(), by_pid}, echoed(by_pid);
asker(alias) ->
    Alias = alias([reply]),
    ?MODULE ! {echo, Alias, one},
    echoed(one),
    %% The alias went with the first reply: this one gets no answer, the next one does.
    ?MODULE ! {echo, Alias, lost},
    ?MODULE ! {echo, self(), two},
    echoed(two).

echoed(Msg) -> receive {echoed, Msg} -> ok end.

-spec talks_to_the_dead(pid()) -> ok.
talks_to_the_dead(Dead) ->
    Dead ! hello,
    _ = erlang:send(Dead, are_you_there, [noconnect]),
    self() ! no,
    receive no -> ok end.

-spec monitors_the_dead(pid()) -> ok.
monitors_the_dead(Dead) ->
    Ref = monitor(process, Dead),
    receive {'DOWN', Ref, process, Dead, noproc} -> ok end.

-spec to_itself(non_neg_integer()) -> ok.
to_itself(0) -> ok;
to_itself(N) ->
    self() ! {countdown, N},
    receive {countdown, M} -> to_itself(M - 1) end.
