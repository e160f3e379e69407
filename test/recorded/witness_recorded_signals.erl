-module(witness_recorded_signals).
-moduledoc "Links, monitors, deaths at any point, and timers.".

-import(witness_recorded, [message/2, content/1, timeout/0, spawned/1, spawned/2, monitored/1, ended/2]).

-export([deaths/0, kills/0, timers/0, chains/0, forged/0, patience/0]).

-doc "Every way to end, as links and monitors tell of it.".
deaths() ->
    process_flag(trap_exit, true),
    Me = self(),
    lists:map(fun(How) ->
        Pid = spawned(fun() -> receive {die, Me} = M -> message(Me, M) end, die(How) end, [link]),
        Ref = monitor(process, Pid),
        Pid ! {die, Me},
        receive {'EXIT', Pid, Reason} = Exit -> content(Exit), ended(Pid, Reason) end,
        receive {'DOWN', Ref, process, Pid, _} = Down -> content(Down) end,
        %% A forged exit signal is a message like any other.
        self() ! {'EXIT', Pid, forged},
        receive {'EXIT', Pid, forged} = Forged -> content(Forged) end,
        How
    end, [normal, exit, throw, error, shutdown, kill, linked, noproc]).

die(normal) -> ok;
die(exit) -> exit({exited, self()});
die(throw) -> throw(thrown);
die(error) -> error(wrong, [nothing]);
die(shutdown) -> exit(shutdown);
die(kill) -> exit(self(), kill), receive after infinity -> ok end;
die(linked) -> _ = spawned(fun() -> exit(pulled) end, [link]), receive after infinity -> ok end;
die(noproc) -> gen_server:call(witness_recorded_nobody, hello).

-doc "Processes that send and receive all the time are killed at some point.".
kills() ->
    Me = self(),
    lists:map(fun(N) ->
        {Pid, Ref} = monitored(fun() -> chatter(Me, 0) end),
        receive {first, Pid} = First -> message(Pid, First) end,
        busy(N * 3000),
        exit(Pid, case N rem 3 of 0 -> kill; 1 -> {stop, N}; 2 -> shutdown end),
        Count = drain(Pid, 0),
        receive {'DOWN', Ref, process, Pid, Reason} = Down -> content(Down), ended(Pid, Reason) end,
        Count + drain(Pid, 0) > 0
    end, lists:seq(1, 12)).

chatter(Me, 0) ->
    Me ! {first, self()},
    chatter(Me, 1);
chatter(Me, N) ->
    self() ! {own, N},
    receive {own, N} = M -> message(self(), M) end,
    Me ! {count, self(), N},
    receive never -> ok after 0 -> timeout() end,
    chatter(Me, N + 1).

drain(Pid, N) ->
    receive {count, Pid, _} = M -> message(Pid, M), drain(Pid, N + 1) after 0 -> timeout(), N end.

busy(0) -> ok;
busy(N) -> busy(N - 1).

-doc "Ends that go from link to link.".
chains() ->
    process_flag(trap_exit, true),
    Me = self(),
    lists:map(fun(N) ->
        First = spawned(fun() -> receive never -> ok end end),
        Linked = spawned(fun() -> link(First), Me ! {linked, self()}, receive never -> ok end end, [link]),
        receive {linked, Linked} = M -> message(Linked, M) end,
        Trapping = spawned(fun() ->
            process_flag(trap_exit, true),
            link(First),
            Me ! {ready, self()},
            receive {'EXIT', First, _} = Exit -> content(Exit), Me ! {heard, self(), Exit} end
        end),
        receive {ready, Trapping} = Ready -> message(Trapping, Ready) end,
        exit(First, case N rem 3 of 0 -> kill; 1 -> boom; 2 -> {shutdown, N} end),
        receive {'EXIT', Linked, Reason} = End -> content(End), ended(Linked, Reason), ended(First, Reason) end,
        receive {heard, Trapping, _} = Heard -> message(Trapping, Heard) end
    end, lists:seq(1, 9)).

-doc "Messages that look like signals, but were sent: they are there with their contents, whichever process has sent them.".
forged() ->
    Me = self(),
    Ref = make_ref(),
    Forger = spawned(fun() ->
        [Me ! Msg || Msg <- [{'DOWN', Ref, process, Me, forged}, {'EXIT', Me, forged}, {spawn_reply, Ref, ok, Me},
                             {tagged, Ref, ok, Me}, {plain, Ref}]]
    end),
    receive {'DOWN', Ref, process, Me, forged} = Down -> content(Down) end,
    receive {'EXIT', Me, forged} = Exit -> content(Exit) end,
    receive {spawn_reply, Ref, ok, Me} = Reply -> content(Reply) end,
    receive {tagged, Ref, ok, Me} = Tagged -> content(Tagged) end,
    receive {plain, Ref} = Plain -> message(Forger, Plain) end,
    done.

-doc "Monitors, by pid and by name, of processes that end about when the monitoring process times out.".
patience() ->
    Me = self(),
    lists:map(fun(N) ->
        Pid = spawned(fun() ->
            N rem 2 =:= 0 andalso register(witness_recorded_brief, self()),
            Me ! {here, self()},
            busy(N * 7919 rem 40_000)
        end),
        receive {here, Pid} = Here -> message(Pid, Here) end,
        Ref = monitor(process, case N rem 2 of 0 -> witness_recorded_brief; 1 -> Pid end),
        Heard = receive {'DOWN', Ref, process, _, _} = Down -> content(Down), down
        after N rem 3 ->
            timeout(),
            demonitor(Ref, [flush]),
            receive {'DOWN', Ref, process, _, _} -> flushed after 0 -> timeout(), late end
        end,
        exit(Pid, kill),
        Gone = monitor(process, Pid),
        receive {'DOWN', Gone, process, Pid, _} = End -> content(End) end,
        Heard
    end, lists:seq(1, 60)).

-doc "Timers by their messages, timers that are cancelled, and waiting.".
timers() ->
    Me = self(),
    Started = erlang:start_timer(1, self(), started),
    Sent = erlang:send_after(2, self(), sent),
    receive {timeout, Started, started} = M1 -> content(M1) end,
    receive sent -> content(sent) end,
    Left = erlang:send_after(100_000, self(), never),
    true = is_integer(erlang:cancel_timer(Left)),
    false = erlang:cancel_timer(Sent),
    timer:sleep(1),
    timeout(),
    {ok, _} = timer:send_after(1, {from_timer, Me}),
    receive {from_timer, Me} = M2 -> message(whereis(timer_server), M2) end,
    receive after 3 -> timeout() end,
    [Me ! {tick, N} || N <- [1, 2, 3]],
    [receive {tick, N} = M -> message(Me, M) end || N <- [3, 1, 2]],
    done.
