-module(witness_sys_sup).
-moduledoc """
A `one_for_one` supervisor with a steady worker and one that is made to crash; each new worker makes itself known
to the root, which tells it to crash, a number of times. At the end the supervisor is shut down and ends both.
""".
-behaviour(supervisor).

-export([main/1, init/1, start_worker/2, worker/2]).

-spec main(non_neg_integer()) -> ok.
main(Crashes) ->
    process_flag(trap_exit, true),
    {ok, Sup} = supervisor:start_link(?MODULE, self()),
    receive {up, steady, _} -> ok end,
    crash(Crashes),
    receive {up, shaky, _} -> ok end,
    exit(Sup, shutdown),
    receive {'EXIT', Sup, shutdown} -> ok end.

crash(0) -> ok;
crash(N) ->
    receive {up, shaky, Pid} -> Pid ! crash end,
    crash(N - 1).

-spec init(pid()) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(Root) ->
    Child = fun(Name) -> #{id => Name, start => {?MODULE, start_worker, [Name, Root]}, shutdown => brutal_kill} end,
    Flags = #{strategy => one_for_one, intensity => 10, period => 1},
    {ok, {Flags, [Child(steady), (Child(shaky))#{shutdown => 5000}]}}.

-spec start_worker(atom(), pid()) -> {ok, pid()}.
start_worker(Name, Root) -> {ok, proc_lib:spawn_link(?MODULE, worker, [Name, Root])}.

-spec worker(atom(), pid()) -> no_return().
worker(Name, Root) ->
    Root ! {up, Name, self()},
    receive crash -> exit(crashed) end.
