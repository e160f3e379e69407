-module(witness_recorded_killed).
-moduledoc "A process that is killed when it has nothing more to do but to send, or to wait. How much it has sent by then is not in its log.".

-export([all/0, some/0, endless/0, worker/0, talker/0]).

-doc "All that it has sent is taken.".
all() -> killed(worker, 2).

-doc "One of two messages is.".
some() -> killed(worker, 1).

-doc "It sends for ever.".
endless() -> killed(talker, 3).

killed(Who, Taken) ->
    {Pid, Ref} = spawn_monitor(?MODULE, Who, []),
    Pid ! {go, self()},
    [receive {said, Pid, N} -> ok end || N <- lists:seq(1, Taken)],
    exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, killed} -> ok end.

worker() ->
    receive {go, From} -> [From ! {said, self(), N} || N <- [1, 2]] end,
    receive never -> ok end.

talker() ->
    receive {go, From} -> talk(From, 1) end.

talk(From, N) ->
    From ! {said, self(), N},
    talk(From, N + 1).
