-module(witness_inline_system).
-moduledoc "Systems for `m:witness_inline_SUITE`: what processes do that are monitored from within.".

-export([start/2, worker/2, worker/3, counting/2, echo/1, sleeper/1, dictionary/2, raising/2, first/1, spawner/2, hibernating/1,
         awake/1, sends/2, words/1, main/2, crowd/2, numbers/1, endless/1, killing/2, answers/0, ended_while_it_waits/0]).

-doc "A process that only starts others, one after the other, and waits for their ends.".
main(Collector, Spawns) ->
    [begin
         {P, Ref} = spawn_monitor(M, F, A),
         Collector ! {started, F, P},
         receive {'DOWN', Ref, process, P, Reason} -> Collector ! {ended, F, P, Reason} end
     end || {M, F, A} <- Spawns],
    ok.

-doc "So many workers, every tenth of which waits.".
crowd(Collector, N) ->
    Refs = [begin
                {_, Ref} = spawn_monitor(?MODULE, worker, [1, case I rem 10 of 0 -> {wait, Collector}; _ -> normal end]),
                Ref
            end || I <- lists:seq(1, N)],
    lists:foreach(fun(Ref) -> receive {'DOWN', Ref, process, _, _} -> ok end end, Refs).

start(Collector, {M, F, A}) ->
    {P, Ref} = spawn_monitor(M, F, A),
    Collector ! {started, self(), P},
    receive {'DOWN', Ref, process, P, Reason} -> Collector ! {ended, P, Reason} end.

-doc "Sends itself `{n, 1}` to `{n, N}`, and ends as it is told.".
worker(N, How) -> worker(1, N, How).

worker(I, N, normal) when I > N -> ok;
worker(I, N, {exit, Reason}) when I > N -> exit(Reason);
worker(I, N, {throw, Value}) when I > N -> throw(Value);
worker(I, N, divide) when I > N -> 1 / (I - I);
worker(I, N, {wait, Collector}) when I > N -> Collector ! {waiting, self()}, receive {n, go} -> ok end;
worker(I, N, How) ->
    self() ! {n, I},
    receive {n, I} -> worker(I + 1, N, How) end.

-doc "An entry function that calls itself so often; what the process takes in the end is sent.".
counting(Collector, 0) ->
    erlang:garbage_collect(),
    Collector ! {counted, process_info(self(), [stack_size, total_heap_size, message_queue_len])};
counting(Collector, N) when N rem 100_000 =:= 0 ->
    self() ! {n, N},
    receive {n, N} -> counting(Collector, N - 1) end;
counting(Collector, N) ->
    counting(Collector, N - 1).

-doc "Answers until it is told to stop.".
echo(N) ->
    receive
        {ask, From, What} -> From ! {answer, What, N}, echo(N + 1);
        stop -> ok
    end.

sleeper(Collector) ->
    Collector ! {sleeping, self()},
    receive wake -> ok end.

-doc "What woven code, or other code, makes of its dictionary.".
dictionary(Collector, How) ->
    put(mine, 1),
    Seen = get(),
    Keys = get_keys(),
    Of = get_keys(1),
    self() ! {n, 1},
    receive {n, 1} -> ok end,
    Erased = case How of
        woven -> erase();
        elsewhere -> witness_inline_elsewhere:erased()
    end,
    self() ! {n, 2},
    receive {n, 2} -> ok end,
    Collector ! {dictionary, Seen, Keys, Of, Erased, get()}.

-doc "Ends with an exception from deep inside.".
raising(Class, Value) ->
    ok = first({Class, Value}),
    ok.

first(What) -> {_} = {second(What)}, ok.

second({error, badmatch}) -> ok = nothing();
second({error, Reason}) -> error(Reason, [Reason]);
second({exit, Reason}) -> exit(Reason);
second({throw, Value}) -> throw(Value);
second({clause, Value}) -> no_clause(Value).

no_clause(never) -> ok.

nothing() -> nothing.

-doc "Spawns in some way a process that answers, and waits for the answer.".
spawner(Collector, How) ->
    Self = self(),
    Child = case How of
        function -> spawn(?MODULE, sends, [Self, How]);
        link -> spawn_link(fun() -> sends(Self, How) end);
        'fun' -> spawn(fun() -> sends(Self, How) end);
        proc_lib -> proc_lib:spawn(fun() -> sends(Self, How) end);
        monitor -> {P, _} = spawn_monitor(?MODULE, sends, [Self, How]), P;
        node -> spawn(node(), ?MODULE, sends, [Self, How]);
        applied -> erlang:apply(erlang, spawn, [?MODULE, sends, [Self, How]]);
        request ->
            Request = spawn_request(?MODULE, sends, [Self, How], []),
            receive {spawn_reply, Request, ok, P} -> P end;
        untold ->
            _ = spawn_request(?MODULE, sends, [Self, How], [{reply, no}]),
            receive {sent, P, untold} -> self() ! {sent, P, untold}, P end
    end,
    receive {sent, Child, How} -> Collector ! {spawned, How, Child} end.

sends(To, What) -> To ! {sent, self(), What}.

hibernating(Collector) ->
    Collector ! {hibernating, self()},
    erlang:hibernate(?MODULE, awake, [Collector]).

awake(Collector) ->
    receive {n, awake} -> Collector ! {awake, self()}, exit(slept_well) end.

-doc "Sends itself, in ways that are known only when it runs, what a function that sends returns when it does not.".
words(Erlang) ->
    [begin
         _ = Send(self(), Word),
         receive Word -> ok end
     end || Send <- [fun erlang:send/2, fun erlang:'!'/2, fun(To, Word) -> Erlang:send(To, Word) end,
                     fun(To, Word) -> Erlang:send(To, Word, [nosuspend]) end, fun erlang:send_nosuspend/2],
            Word <- [nosuspend, noconnect, false, ok]].

-doc "Answers with the numbers that it is given, until a signal ends it.".
answers() ->
    receive {From, N} -> From ! {answer, N}, answers() end.

-doc "Starts such a process, has three answers of it, and ends it while it waits.".
ended_while_it_waits() ->
    {P, Ref} = spawn_monitor(?MODULE, answers, []),
    lists:foreach(fun(N) -> P ! {self(), N}, receive {answer, N} -> ok end end, [1, 2, 3]),
    witness_await:waits(P),
    exit(P, kill),
    receive {'DOWN', Ref, process, P, killed} -> ok end.

-doc "Sends each number that it takes to the process that has given it.".
numbers(Collector) ->
    receive N -> Collector ! {number, self(), N}, numbers(Collector) end.

-doc "Takes one number, and does not wait any more until it is ended.".
endless(Collector) ->
    receive N -> Collector ! {number, self(), N}, spin() end.

spin() -> spin().

-doc "Ends so many of these, every second one while it waits, others at whatever moment, and tells for each how many numbers it had sent.".
killing(Told, Count) ->
    lists:foreach(fun(I) ->
        {P, Ref} = spawn_monitor(?MODULE, numbers, [self()]),
        lists:foreach(fun(N) -> P ! N end, lists:seq(1, 4)),
        Waited = I rem 2 =:= 0,
        case Waited of
            true -> receive {number, P, 4} -> witness_await:waits(P) end;
            false -> busy(rand:uniform(3000))
        end,
        exit(P, kill),
        receive {'DOWN', Ref, process, P, killed} -> ok end,
        Told ! {sent, P, numbers_of(P, case Waited of true -> 4; false -> 0 end), Waited}
    end, lists:seq(1, Count)).

busy(0) -> ok;
busy(N) -> busy(N - 1).

numbers_of(P, Last) ->
    receive {number, P, N} -> numbers_of(P, max(N, Last))
    after 0 -> Last
    end.
