-module(witness_recorded_marks).
-moduledoc """
Receives of messages with a reference that was just made, in a process in which very many messages wait. If the compiler has seen
that, a `receive` begins behind them. If not, it passes them one by one, which the VM counts as work of the process.
""".
-behaviour(gen_server).

-export([work/1]).
-export([init/1, handle_call/3, handle_cast/2]).

-define(TIMES, 20).

-doc "Reductions for each way to make a reference, of some calls with so many messages waiting.".
work(Waiting) ->
    %% On the heap, each garbage collection would read them.
    process_flag(message_queue_data, off_heap),
    {ok, Server} = gen_server:start(?MODULE, [], []),
    Echo = spawn(fun echo/0),
    _ = [self() ! {waits, I} || I <- lists:seq(1, Waiting)],
    Work = [{Name, reductions(fun() -> Do(Echo) end)} || {Name, Do} <- ways()]
        ++ [{call, reductions(fun() -> answer = gen_server:call(Server, question, infinity) end)}],
    exit(Echo, kill),
    ok = gen_server:stop(Server),
    Work.

reductions(Do) ->
    Before = own(),
    again(?TIMES, Do),
    own() - Before.

own() ->
    {reductions, N} = process_info(self(), reductions),
    N.

again(0, _) -> ok;
again(N, Do) ->
    _ = Do(),
    again(N - 1, Do).

ways() ->
    [{monitor, fun by_monitor/1}, {alias, fun by_alias/1}, {own_alias, fun by_own_alias/1}, {make_ref, fun by_reference/1},
     {spawn_monitor, fun by_birth/1}, {spawn_request, fun by_request/1}, {unknown, fun by_unknown/1}].

by_monitor(Echo) ->
    Ref = monitor(process, Echo),
    Echo ! {self(), Ref},
    receive
        {answer, Ref} -> demonitor(Ref, [flush]);
        {'DOWN', Ref, _, _, Reason} -> exit(Reason)
    end.

by_alias(Echo) ->
    Ref = monitor(process, Echo, [{alias, reply_demonitor}]),
    Echo ! {Ref, Ref},
    receive
        {answer, Ref} -> ok;
        {'DOWN', Ref, _, _, Reason} -> exit(Reason)
    end.

by_own_alias(Echo) ->
    Ref = alias([reply]),
    Echo ! {Ref, Ref},
    receive {answer, Ref} -> ok end.

by_reference(Echo) ->
    Ref = make_ref(),
    Echo ! {self(), Ref},
    receive {answer, Ref} -> ok end.

by_birth(_) ->
    {Pid, Ref} = spawn_monitor(fun() -> exit(done) end),
    receive {'DOWN', Ref, process, Pid, done} -> ok end.

by_request(_) ->
    Ref = spawn_request(fun() -> exit(done) end, [monitor]),
    receive {spawn_reply, Ref, ok, Pid} ->
        receive {'DOWN', Ref, process, Pid, done} -> ok end
    end.

%% The compiler cannot see where the reference comes from.
by_unknown(Echo) -> answered(hd([make_ref()]), Echo).

answered(Ref, Echo) ->
    Echo ! {self(), Ref},
    receive {answer, Ref} -> ok end.

echo() -> receive {To, Ref} -> To ! {answer, Ref}, echo() end.

-doc false.
init([]) -> {ok, none}.

-doc false.
handle_call(question, _, none) -> {reply, answer, none}.

-doc false.
handle_cast(_, none) -> {noreply, none}.
