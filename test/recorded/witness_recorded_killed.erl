-module(witness_recorded_killed).
-moduledoc "A process that is killed when it has nothing more to do but to send, or to wait. How much it has sent by then is not in its log.".

-export([all/0, some/0, waits/0, endless/0, worker/0, computer/0, talker/0]).

-doc "All that it has sent is taken.".
all() -> killed(worker, 2).

-doc "One of two messages is.".
some() -> killed(computer, 1).

-doc "The same, and it waits when it is killed.".
waits() ->
    {Pid, Ref} = spawn_monitor(?MODULE, worker, []),
    Pid ! {go, self()},
    receive {said, Pid, 1} -> ok end,
    until_it_waits(Pid),
    exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, killed} -> ok end.

until_it_waits(Pid) ->
    case process_info(Pid, [status, message_queue_len]) of
        [{status, waiting}, {message_queue_len, 0}] -> ok;
        _ ->
            true = erlang:yield(),
            until_it_waits(Pid)
    end.

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

computer() ->
    receive {go, From} -> [From ! {said, self(), N} || N <- [1, 2]] end,
    forever().

forever() -> forever().

talker() ->
    receive {go, From} -> talk(From, 1) end.

talk(From, N) ->
    From ! {said, self(), N},
    talk(From, N + 1).
