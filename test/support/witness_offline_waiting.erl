-module(witness_offline_waiting).
-moduledoc """
Three processes that take a message of each key, and wait. A module of its own: inline monitoring weaves every module that the
system's code names, and a suite names most of the tests.
""".
-export([run/1, waits/1]).

-doc "Starts them. Each of the four processes says that it waits, and ends when it gets `over`.".
-spec run({pid(), non_neg_integer()}) -> ok.
run({Test, Keys}) ->
    Waiting = [spawn(?MODULE, waits, [Test]) || _ <- [1, 2, 3]],
    [Pid ! {Key, open} || Key <- lists:seq(1, Keys), Pid <- Waiting],
    [Pid ! last || Pid <- Waiting],
    wait(Test).

-doc false.
-spec waits(pid()) -> ok.
waits(Test) ->
    receive
        {_, open} -> waits(Test);
        last -> wait(Test)
    end.

wait(Test) ->
    Test ! {waits, self()},
    receive over -> ok end.
