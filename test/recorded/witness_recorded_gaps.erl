-module(witness_recorded_gaps).
-moduledoc "Processes that are ended by a signal, which has come while they waited or while they did not, beside one that is not.".

-export([waits/0, hibernates/1, wakes_and_waits/0, wakes_and_computes/0, computes/0, silent/0, computes_and_ends/0,
         computes_and_waits/0, large/0]).
-export([refused/0]).
-export([worker/2, listener/1, awake/2, init/1, handle_info/2]).

-doc "Two messages, of which one is never taken, and then a `receive`.".
waits() -> ended(fun(_) -> receive never -> ok end end, fun until_it_waits/1).

-doc "The same, and then it hibernates. When it wakes, which it never does, it says what is wrong.".
hibernates(How) -> ended(fun(Listener) -> hibernate(How, Listener) end, fun until_it_waits/1).

hibernate(erlang, Listener) -> erlang:hibernate(?MODULE, awake, [Listener, bad]);
hibernate(proc_lib, Listener) -> proc_lib:hibernate(?MODULE, awake, [Listener, bad]);
hibernate(value, Listener) ->
    apply(erlang, hibernate, [?MODULE, awake, [Listener, bad]]);
hibernate(call, Listener) -> erlang:hibernate(erlang, send, [Listener, bad]);
hibernate(bare, Listener) ->
    ok = erlang:hibernate(),
    awake(Listener, bad);
hibernate(bare_value, Listener) ->
    Hibernate = fun erlang:hibernate/0,
    ok = Hibernate(),
    awake(Listener, bad);
hibernate(server, Listener) -> serve(Listener, [], hibernate);
hibernate(server_after, Listener) -> serve(Listener, [{hibernate_after, 0}], infinity).

serve(Listener, Options, Time) ->
    put('$ancestors', [Listener]),
    gen_server:enter_loop(?MODULE, Options, Listener, Time).

awake(Listener, Says) -> Listener ! Says.

init(_) -> ignore.

handle_info(_, Listener) ->
    Listener ! bad,
    {noreply, Listener}.

-doc "It hibernates, a message that it does not take wakes it, and it says what is wrong, and waits.".
wakes_and_waits() -> woken(fun() -> receive never -> ok end end, waiting).

-doc "The same, and then it does not wait: it may have been ended before.".
wakes_and_computes() -> woken(fun forever/0, running).

woken(Then, Status) ->
    ended(fun(Listener) -> erlang:hibernate(erlang, apply, [fun() -> Listener ! bad, Then() end, []]) end,
          fun(Pid) ->
              until_it_waits(Pid),
              Pid ! wake,
              until_awake(Pid, Status)
          end).

until_awake(Pid, Status) ->
    case process_info(Pid, [current_function, status]) of
        [{current_function, Function}, {status, Is}] when Function =/= {erlang, hibernate, 3},
        Is =:= Status orelse Status =:= running -> ok;
        [_, _] ->
            true = erlang:yield(),
            until_awake(Pid, Status)
    end.

-doc "Calls that fail.".
refused() ->
    [try apply(erlang, hibernate, Args) catch Class:Reason -> {Class, Reason} end
     || Args <- [[1, f, []], [m, 1, []], [m, f, 1], [m, f, [a | b]], [m, f]]].

-doc "The same, and then it does not wait.".
computes() -> ended(fun(_) -> forever() end, fun(_) -> ok end).

-doc "It has sent nothing since it took something, but might have.".
silent() ->
    {Pid, Ref} = spawn_monitor(?MODULE, worker, [self(), fun forever/0]),
    Pid ! go,
    %% It has taken that.
    taken(Pid),
    exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, Why} -> Why end.

-doc "It computes for longer than a replay waits for what does not move, and then does what is wrong.".
computes_and_ends() ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(?MODULE, worker, [self(), fun() -> fib(41), Self ! bad end]),
    Pid ! go,
    receive {'DOWN', Ref, process, Pid, Why} -> Why end.

-doc "The same, and then it waits.".
computes_and_waits() ->
    Self = self(),
    {Pid, Ref} = spawn_monitor(?MODULE, worker, [self(), fun() -> fib(41), Self ! bad, receive never -> ok end end]),
    Pid ! go,
    until_it_waits(Pid),
    exit(Pid, stopped),
    receive {'DOWN', Ref, process, Pid, Why} -> Why end.

-doc "More than a million words.".
large() ->
    {Pid, Ref} = spawn_monitor(fun() -> L = lists:seq(1, 1_000_000), exit(length(L) + hd(L)) end),
    receive {'DOWN', Ref, process, Pid, Why} -> Why end.

ended(Then, Before) ->
    Listener = spawn(?MODULE, listener, [self()]),
    {Pid, Ref} = spawn_monitor(?MODULE, worker, [Listener, fun() -> Listener ! one, Listener ! {said, 2}, Then(Listener) end]),
    Pid ! go,
    receive done -> ok end,
    Before(Pid),
    exit(Pid, shutdown),
    receive {'DOWN', Ref, process, Pid, Why} -> Why end.

worker(_, Do) -> receive go -> Do() end.

listener(To) -> receive one -> To ! done end.

until_it_waits(Pid) ->
    case process_info(Pid, [status, message_queue_len]) of
        [{status, waiting}, {message_queue_len, 0}] -> ok;
        [_, _] ->
            true = erlang:yield(),
            until_it_waits(Pid)
    end.

taken(Pid) ->
    case process_info(Pid, message_queue_len) of
        {message_queue_len, 0} -> ok;
        _ ->
            true = erlang:yield(),
            taken(Pid)
    end.

forever() -> forever().

fib(N) when N < 2 -> N;
fib(N) -> fib(N - 1) + fib(N - 2).
