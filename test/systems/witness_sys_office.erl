-module(witness_sys_office).
-moduledoc """
An office with two departments, each with clerks, and in one of them a workshop with helpers that make noise: a tree of
which specifications take groups, cut parts out, or name inner processes.
""".
-export([office/0, department/2, clerk/1, workshop/1, helper/1]).

-spec office() -> ok.
office() ->
    Self = self(),
    wait([spawn(?MODULE, department, [Name, Self]) || Name <- [sales, works]]).

-spec department(sales | works, pid()) -> gone.
department(Name, Up) ->
    Self = self(),
    Clerks = [spawn(?MODULE, clerk, [Self]) || _ <- [1, 2, 3]],
    Shop = [spawn(?MODULE, workshop, [Self]) || Name =:= works],
    wait(Clerks ++ Shop),
    leave(Up).

-spec clerk(pid()) -> gone.
clerk(Up) ->
    Up ! quiet_please,
    leave(Up).

-spec workshop(pid()) -> gone.
workshop(Up) ->
    Self = self(),
    wait([spawn(?MODULE, helper, [Self]) || _ <- [1, 2]]),
    leave(Up).

-spec helper(pid()) -> gone.
helper(Up) ->
    Up ! noise,
    leave(Up).

wait(Pids) -> _ = [receive {left, Pid} -> ok end || Pid <- Pids], ok.

leave(Up) -> Up ! {left, self()}, gone.
