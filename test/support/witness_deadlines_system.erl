-module(witness_deadlines_system).
-moduledoc "Servers that answer in time, late, or not at all, for deadlines that pass while nothing happens.".

-export([quiet/1, near/2, init/1]).

-doc "Asks servers that never answer, sends them to the caller, and waits until that says that it may end.".
-spec quiet(Caller :: pid()) -> ok.
quiet(Caller) ->
    Servers = [spawn(?MODULE, init, [quiet]) || _ <- [1, 2]],
    [Server ! {ask, self(), N} || N <- [1, 2, 3], Server <- Servers],
    Caller ! {asked, self(), Servers},
    receive finish -> ok end,
    [begin Ref = monitor(process, Server), Server ! stop, receive {'DOWN', Ref, process, _, _} -> ok end end || Server <- Servers],
    ok.

-doc """
So many requests to each of several servers, each of which answers after a time that is close to so many microseconds, some before and some
behind. Meanwhile other processes are busy, so that any of them may be late.
""".
-spec near(Requests :: pos_integer(), Microseconds :: pos_integer()) -> ok.
near(Requests, Microseconds) ->
    Busy = [spawn(fun Spin() -> _ = lists:seq(1, 1000), Spin() end) || _ <- [1, 2]],
    Servers = [begin
        {Server, Ref} = spawn_monitor(?MODULE, init, [Microseconds]),
        _ = [Server ! {ask, self(), {Server, N}} || N <- lists:seq(1, Requests)],
        Server ! stop,
        Ref
    end || _ <- lists:seq(1, 4)],
    [receive {'DOWN', Ref, process, _, _} -> ok end || Ref <- Servers],
    _ = [exit(Pid, kill) || Pid <- Busy],
    ok.

-doc false.
-spec init(quiet | pos_integer()) -> ok.
init(quiet) ->
    receive stop -> ok end;
init(Microseconds) ->
    receive
        {ask, From, N} ->
            self() ! {work, N},
            receive {work, N} -> ok end,
            spin(erlang:monotonic_time(microsecond) + Microseconds + rand:uniform(41) - 31),
            From ! {answer, N},
            init(Microseconds);
        stop -> ok
    end.

spin(Until) ->
    case erlang:monotonic_time(microsecond) < Until of
        true -> spin(Until);
        false -> ok
    end.
