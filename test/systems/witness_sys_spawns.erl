-module(witness_sys_spawns).
-moduledoc """
Every way to spawn, one after the other from one process, which hears from each child before it spawns the next.
""".
-export([main/0, kid/2, asked/1, acking/1]).

-spec main() -> ok.
main() ->
    Self = self(),
    Kid = fun(Kind) -> [Kind, Self] end,
    done(spawn(?MODULE, kid, Kid(spawn))),
    done(spawn_link(?MODULE, kid, Kid(spawn_link))),
    down(spawn_monitor(?MODULE, kid, Kid(spawn_monitor))),
    done(spawn_opt(?MODULE, kid, Kid(spawn_opt), [{priority, high}, {fullsweep_after, 0}])),
    down(spawn_opt(?MODULE, kid, Kid(spawn_opt_monitor), [link, monitor])),
    done(spawn(node(), ?MODULE, kid, Kid(spawn_node))),
    done(proc_lib:spawn(?MODULE, kid, Kid(proc_lib_spawn))),
    done(proc_lib:spawn_link(?MODULE, kid, Kid(proc_lib_spawn_link))),
    done(proc_lib:spawn_opt(?MODULE, kid, Kid(proc_lib_spawn_opt), [{min_heap_size, 1000}])),
    done(apply(erlang, spawn, [?MODULE, kid, Kid(applied)])),
    requested(spawn_request(?MODULE, asked, [Self], [])),
    {ok, Started} = proc_lib:start_link(?MODULE, acking, [Self]),
    receive {done, Started, _} -> ok end.

done(Pid) -> receive {done, Pid, _} -> ok end.

down({Pid, Ref}) ->
    done(Pid),
    receive {'DOWN', Ref, process, Pid, _} -> ok end.

requested(Request) ->
    receive {spawn_reply, Request, ok, Pid} -> Pid ! go, done(Pid) end.

-spec kid(atom(), pid()) -> {done, pid(), atom()}.
kid(Kind, Root) -> Root ! {done, self(), Kind}.

-spec asked(pid()) -> {done, pid(), atom()}.
asked(Root) -> receive go -> kid(asked, Root) end.

-spec acking(pid()) -> {done, pid(), atom()}.
acking(Root) ->
    proc_lib:init_ack(Root, {ok, self()}),
    kid(acking, Root).
