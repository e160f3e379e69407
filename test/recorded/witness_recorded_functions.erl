-module(witness_recorded_functions).
-moduledoc "Calls of functions of many kinds: its own, those of OTP, and those of the VM, each in a process of its own.".

-export([all/0, own/0, tables/0, processes/0, computed/0, library/0, raises/0, first/1]).
-export([takes/1, taker/2, halts/0]).
-export([killed/1, waits/0, spins/0, sends/0, calls/0, hidden/0, hides/0]).

-doc "One after the other.".
all() ->
    [begin
         {_, Ref} = spawn_monitor(?MODULE, Name, []),
         receive {'DOWN', Ref, process, _, normal} -> ok end
     end || Name <- [own, tables, processes, computed, library, raises]],
    ok.

-doc "Recursion, in tail position and not, and functions that are not exported.".
own() ->
    24 = factorial(4),
    0 = down(5),
    {self, Pid} = wrap(self()),
    Pid = self().

factorial(0) -> 1;
factorial(N) -> N * factorial(N - 1).

down(0) -> 0;
down(N) -> down(N - 1).

wrap(Term) -> {self, Term}.

-doc "Memory that processes share, and calls that raise.".
tables() ->
    Table = ets:new(table, [public]),
    true = ets:insert(Table, {a, 1}),
    [{a, 1}] = ets:lookup(Table, a),
    true = ets:delete(Table),
    badarg = reason(fun() -> ets:insert(Table, {b, 1}) end),
    ok = persistent_term:put(?MODULE, 1),
    1 = persistent_term:get(?MODULE),
    true = persistent_term:erase(?MODULE),
    badarg = reason(fun() -> persistent_term:get(?MODULE) end),
    true = os:putenv("WITNESS_RECORDED_FUNCTIONS", "1").

-doc "Links, monitors, names, timers and exits.".
processes() ->
    process_flag(trap_exit, true),
    Pid = spawn(fun() -> receive stop -> ok end end),
    true = link(Pid),
    true = unlink(Pid),
    Ref = monitor(process, Pid),
    true = register(witness_recorded_functions_name, Pid),
    badarg = reason(fun() -> register(witness_recorded_functions_name, Pid) end),
    true = exit(Pid, shutdown),
    receive {'DOWN', Ref, process, Pid, shutdown} -> ok end,
    badarg = reason(fun() -> exit(not_a_pid, shutdown) end),
    Timer = erlang:send_after(1_000_000, self(), late),
    true = is_integer(erlang:cancel_timer(Timer)).

-doc "Functions that are known only at run time.".
computed() ->
    Table = ets:new(table, [public]),
    true = apply(ets, insert, [Table, {apply, 1}]),
    Insert = fun ets:insert/2,
    true = Insert(Table, {external, 1}),
    [Module, Name] = binary_to_term(term_to_binary([ets, insert])),
    true = Module:Name(Table, {module, 1}),
    ok = lists:foreach(fun(Object) -> Insert(Table, Object) end, [{passed, 1}, {passed, 2}]),
    Own = fun factorial/1,
    2 = Own(2),
    ok = apply(?MODULE, first, [Table]),
    {_, Ref} = spawn_monitor(?MODULE, first, [Table]),
    receive {'DOWN', Ref, process, _, normal} -> ok end,
    {_, First} = spawn_monitor(ets, insert, [Table, {first, 1}]),
    receive {'DOWN', First, process, _, normal} -> ok end.

first(Table) ->
    true = ets:insert(Table, {own, 1}),
    ok.

-doc "OTP's functions, called here and by other functions of OTP.".
library() ->
    1 = proplists:get_value(a, [{a, 1}]),
    {ok, Pid} = gen_event:start([]),
    ok = gen_event:sync_notify(Pid, event),
    ok = gen_event:stop(Pid),
    [c] = proplists:get_keys([{c, 1}]),
    _ = ets:tab2list(ets:new(table, [{keypos, 1}])),
    ok.

-doc "Calls that end by an exception, and arguments without a clause.".
raises() ->
    [1, {error, 2}, 3] = [try odd(N) catch error:{even, N} -> {error, N} end || N <- [1, 2, 3]],
    function_clause = reason(fun() -> odd(none) end).

reason(Fun) -> try Fun() catch error:Reason -> Reason end.

odd(N) when N rem 2 =:= 0 -> error({even, N});
odd(N) when is_integer(N) -> N.

%% --- a race ------------------------------------------------------------------------

-doc "Two processes take a number each, and may take the same. What they do then: `ends`, `waits` or `sends`.".
takes(Then) ->
    Table = ets:new(table, [public]),
    true = ets:insert(Table, {free, 1}),
    Refs = [element(2, spawn_monitor(?MODULE, taker, [Table, Then])) || _ <- [1, 2]],
    [receive {'DOWN', Ref, process, _, normal} -> ok end || Ref <- Refs],
    ok.

taker(Table, Then) ->
    Number = take(Table),
    case Then of
        ends -> ok;
        waits -> receive after 10 -> Number end;
        sends -> self() ! Number
    end.

take(Table) ->
    [{free, Number}] = ets:lookup(Table, free),
    true = ets:insert(Table, {free, Number + 1}),
    Number.

-doc "It ends the VM after a call.".
halts() ->
    1 = odd(1),
    halt(0).

%% --- killed ----------------------------------------------------------------------

-doc "A process that is killed when it has said as often that it goes on.".
killed(Who) ->
    {Pid, Ref} = spawn_monitor(?MODULE, Who, []),
    Pid ! {go, self()},
    receive {said, Pid} -> ok end,
    _ = [until_it_waits(Pid) || Who =:= waits],
    exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, killed} -> ok end.

until_it_waits(Pid) ->
    case process_info(Pid, [status, message_queue_len]) of
        [{status, waiting}, {message_queue_len, 0}] -> ok;
        _ ->
            true = erlang:yield(),
            until_it_waits(Pid)
    end.

-doc "It calls before and after its last message, and waits: all has happened.".
waits() ->
    From = receive {go, Killer} -> Killer end,
    1 = odd(1),
    From ! {said, self()},
    3 = odd(3),
    receive never -> ok end.

-doc "Its last message was taken, and what it did before has happened. It might have done more.".
sends() ->
    From = receive {go, Killer} -> Killer end,
    1 = odd(1),
    From ! {said, self()},
    forever().

-doc "It calls after its last message.".
spins() ->
    From = receive {go, Killer} -> Killer end,
    From ! {said, self()},
    3 = odd(3),
    forever().

-doc "It calls forever.".
calls() ->
    From = receive {go, Killer} -> Killer end,
    From ! {said, self()},
    again(1).

again(N) ->
    N = odd(N),
    again(N + 2).

forever() -> forever().

%% --- outside -----------------------------------------------------------------------

-doc "A process that opens a port of the network: the VM links it, where that is not seen. Another one does not.".
hidden() ->
    [begin
         {_, Ref} = spawn_monitor(?MODULE, Name, []),
         receive {'DOWN', Ref, process, _, normal} -> ok end
     end || Name <- [hides, own]],
    ok.

hides() ->
    true = link(self()),
    {ok, Socket} = gen_udp:open(0),
    ok = gen_udp:close(Socket).
