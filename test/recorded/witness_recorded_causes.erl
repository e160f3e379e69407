-module(witness_recorded_causes).
-moduledoc """
Programs with a symptom in one process and its cause in another one, or earlier: a timer that was cancelled too late, a call that is
given up, two senders. Each has a twin without the fault.
""".
-behaviour(gen_server).

-export([main/1, client/1, patient/1, plain_server/0, silent/0, send_later/1, send_last/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% When a caller gives up, its request has come to the last server, and no answer, also where a thread stands still for two seconds.
-define(GIVEN_UP_MS, 3000).
-define(LATE_MS, 6000).

-spec main(atom()) -> term().
%% The timer has fired when the process cancels it.
main(stale_timer) ->
    Ref = erlang:start_timer(1, self(), old),
    receive after 50 -> ok end,
    false = erlang:cancel_timer(Ref),
    take_timeout();
main(timer) ->
    _ = erlang:start_timer(1, self(), new),
    take_timeout();
%% The next timer has the same message.
main(stale_message) ->
    Ref = erlang:send_after(1, self(), expired),
    receive after 50 -> ok end,
    false = erlang:cancel_timer(Ref),
    _ = erlang:send_after(60_000, self(), expired),
    take_expired();
main(message) ->
    Ref = erlang:send_after(60_000, self(), expired),
    _ = erlang:cancel_timer(Ref),
    _ = erlang:send_after(1, self(), expired),
    take_expired();
%% Which of the two comes first only the clock knows.
main(two_timers) ->
    _ = erlang:send_after(1, self(), expired),
    _ = erlang:send_after(1, self(), expired),
    take_expired();
%% Another process starts the timer, to a name.
main(named_timer) ->
    true = register(witness_recorded_causes, self()),
    _ = spawn_link(?MODULE, send_later, [self()]),
    receive ready -> ok end,
    take_expired();
%% A call through servers: each waits for the next one, and the last one for nothing in time.
main({late, Last}) ->
    process_flag(trap_exit, true),
    {B, Reason} = call_servers(Last),
    {next, _} = sys:get_state(B, infinity),
    exit(Reason);
main({servers, Last}) ->
    process_flag(trap_exit, true),
    {_, Reason} = call_servers(Last),
    exit({ended, Reason});
%% The client goes on with an error that has no reason any more.
main(caught) ->
    process_flag(trap_exit, true),
    {ok, B} = gen_server:start_link(?MODULE, sleep, []),
    Self = self(),
    _ = spawn_link(fun() -> Self ! {answer, try client(B) catch exit:_ -> failed end} end),
    receive {answer, Answer} -> exit(Answer) end;
%% A request and a server without a behaviour.
main(plain) ->
    B = spawn(?MODULE, plain_server, []),
    exit(plain_request(B));
%% The process has done nothing since its birth.
main(silent) -> client(spawn_link(?MODULE, silent, []));
%% Two servers that call each other.
main(deadlock) ->
    process_flag(trap_exit, true),
    {ok, B} = gen_server:start_link(?MODULE, wait, []),
    {ok, C} = gen_server:start_link(?MODULE, {next, B}, []),
    ok = gen_server:call(B, {next, C}),
    A = spawn_link(?MODULE, client, [B]),
    receive {'EXIT', A, Reason} -> exit(Reason) end;
%% Two processes count in one table, and each has read it before the other one writes.
main(lost_update) -> exit({counted, count(fun(Table, Parent) ->
        [{n, N}] = ets:lookup(Table, n),
        Parent ! {read, self()},
        receive write -> ets:insert(Table, {n, N + 1}) end
    end)});
main(counters) -> exit({counted, count(fun(Table, Parent) ->
        Parent ! {read, self()},
        receive write -> ets:update_counter(Table, n, 1) end
    end)});
%% What was read with all the others is of a process that no message has come from.
main(whole_table) ->
    Table = ets:new(counts, [public]),
    Writer = spawn_link(fun() -> ets:insert(Table, {written, true}), receive stop -> ok end end),
    Found = wait_for(Table),
    Writer ! stop,
    exit({found, Found});
main(own_table) ->
    Table = ets:new(counts, []),
    true = ets:insert(Table, {own, true}),
    exit({found, ets:lookup(Table, own)});
main(race) ->
    take_value(start_race());
%% The loser is never taken.
main(lost_race) ->
    Taken = start_race(),
    [receive {sent, N} -> ok end || N <- [1, 2]],
    exit(Taken);
main(no_race) ->
    _ = spawn_link(?MODULE, send_last, [self(), 1]),
    First = take_value(none),
    _ = spawn_link(?MODULE, send_last, [self(), 2]),
    take_value(First).

count(Count) ->
    Table = ets:new(counts, [public]),
    true = ets:insert(Table, {n, 0}),
    Self = self(),
    Workers = [spawn_link(fun() -> Count(Table, Self), Self ! {done, self()} end) || _ <- [1, 2]],
    [receive {read, Worker} -> ok end || Worker <- Workers],
    [begin Worker ! write, receive {done, Worker} -> ok end end || Worker <- Workers],
    ets:lookup_element(Table, n, 2).

wait_for(Table) ->
    case ets:tab2list(Table) of
        [] -> receive after 1 -> wait_for(Table) end;
        Found -> Found
    end.

start_race() ->
    Self = self(),
    _ = [spawn_link(?MODULE, send_last, [Self, N]) || N <- [1, 2]],
    take_value(none).

call_servers(Last) ->
    {ok, D} = gen_server:start_link(?MODULE, Last, []),
    {ok, C} = gen_server:start_link(?MODULE, {next, D}, []),
    {ok, B} = gen_server:start_link(?MODULE, {next, C}, []),
    case Last of
        busy -> gen_server:cast(D, sleep);
        _ -> ok
    end,
    A = case Last of
        prompt -> spawn_link(?MODULE, patient, [B]);
        _ -> spawn_link(?MODULE, client, [B])
    end,
    receive {'EXIT', A, Reason} -> {B, Reason} end.

plain_request(Server) ->
    Ref = monitor(process, Server),
    Server ! {request, {self(), Ref}, work},
    receive
        {Ref, Answer} -> Answer;
        {'DOWN', Ref, _, _, Reason} -> Reason
    after ?GIVEN_UP_MS ->
        true = demonitor(Ref, [flush]),
        no_answer
    end.

plain_server() ->
    receive
        {request, {From, Ref}, work} ->
            receive after ?LATE_MS -> ok end,
            From ! {Ref, done},
            ok
    after ?LATE_MS -> ok
    end.

silent() -> receive never -> ok end.

client(Server) -> gen_server:call(Server, work, ?GIVEN_UP_MS).

patient(Server) -> gen_server:call(Server, work, infinity).

send_later(Pid) ->
    _ = erlang:send_after(1, witness_recorded_causes, expired),
    Pid ! ready.

send_last(To, N) ->
    To ! {value, N},
    To ! {sent, N}.

take_timeout() -> receive {timeout, _, What} -> exit({took, What}) end.

take_expired() -> receive expired -> exit(took) end.

take_value(_) -> receive {value, N} -> N end.

init(State) -> {ok, State}.

handle_call({next, Pid}, _, _) -> {reply, ok, {next, Pid}};
handle_call(work, _, {next, Pid} = State) -> {reply, gen_server:call(Pid, work, infinity), State};
handle_call(work, _, sleep) ->
    timer:sleep(?LATE_MS),
    {reply, done, sleep};
handle_call(work, _, forget) -> {noreply, forget};
handle_call(work, _, State) -> {reply, done, State}.

handle_cast(sleep, State) ->
    receive never -> {noreply, State} end.

handle_info(_, State) -> {noreply, State}.
