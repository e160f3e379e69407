-module(witness_trace_function_cases).
-moduledoc """
For tests: calls and returns, as every source has them.

A source here is a function: given of which functions it delivers calls and returns, what a process does after the message `go`, and
what the test does meanwhile, it returns the process and the events of it and of its descendants, in an order that respects that of each
process, but without the `init` of the process itself.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

-type source() :: fun((witness_trace_filter:functions(), fun(() -> term()), Meanwhile :: fun((pid()) -> term())) ->
                          {pid(), [witness_event:event()]}).
-export_type([source/0]).

-define(BOTH, [call, return]).

events(Source, Functions, Fun) -> Source(maps:from_keys(Functions, ?BOTH), Fun, fun(_) -> ok end).

%% The calls, returns and messages of a process.
events_of(P, Events) -> [E || E <- Events, element(2, E) =:= P, not lists:member(element(1, E), [init, fork, exit])].

mfa(F, A) -> {?MODULE, F, A}.

%% --- what a call is ------------------------------------------------------------------

calls_enclose_what_they_do(Source) ->
    {P, Events} = events(Source, [mfa(says, 1), mfa(inner, 1)], fun() -> says(1), inner(2) end),
    Says = mfa(says, 1),
    Inner = mfa(inner, 1),
    ?assertMatch([{recv, P, _, go, _},
                  {call, P, {?MODULE, says, [1]}, _}, {send, P, P, {said, 1}, _}, {recv, P, P, {said, 1}, _},
                  {call, P, {?MODULE, inner, [1]}, _}, {return, P, Inner, {inner, 1}, _},
                  {return, P, Says, [{inner, 1}], _},
                  {call, P, {?MODULE, inner, [2]}, _}, {return, P, Inner, {inner, 2}, _}],
                 events_of(P, Events)).

says(N) ->
    self() ! {said, N},
    receive {said, N} -> [inner(N)] end.

inner(N) -> {inner, N}.

%% Of the first function only calls are delivered, of the second only returns, of the third both, of the fourth nothing.
kinds_that_no_monitor_reads_are_left_out(Source) ->
    Functions = #{mfa(one, 1) => [call], mfa(two, 1) => [return], mfa(three, 1) => ?BOTH},
    {P, Events} = Source(Functions, fun() -> {one(1), two(2), three(3), inner(4)} end, fun(_) -> ok end),
    Two = mfa(two, 1),
    Three = mfa(three, 1),
    ?assertMatch([{recv, P, _, go, _}, {call, P, {?MODULE, one, [1]}, _}, {return, P, Two, {2}, _},
                  {call, P, {?MODULE, three, [3]}, _}, {return, P, Three, {3}, _}],
                 events_of(P, Events)).

one(N) -> {N}.
two(N) -> {N}.
three(N) -> {N}.

%% However a function is called.
calls_of_every_form_are_delivered(Source) ->
    Table = ets:new(table, [public]),
    Forms = [fun() -> one(1) end, fun() -> ?MODULE:one(1) end, fun() -> apply(?MODULE, one, [1]) end,
             fun() -> F = fun ?MODULE:one/1, F(1) end, fun() -> F = fun one/1, F(1) end, fun() -> {{1}} = {one(1)} end,
             fun() -> lists:map(fun one/1, [1]) end, fun() -> [one(N) || N <- [1]] end,
             fun() -> try one(1) catch _:_ -> none end end,fun() -> spawn_and_wait(?MODULE, one, [1]) end],
    {_, Events} = events(Source, [mfa(one, 1)], fun() -> [Form() || Form <- Forms] end),
    ?assertEqual(length(Forms), length([x || {call, _, {?MODULE, one, [1]}, _} <- Events])),
    ?assertEqual(length(Forms), length([x || {return, _, {?MODULE, one, 1}, {1}, _} <- Events])),
    ets:delete(Table).

spawn_and_wait(M, F, Args) ->
    {_, Ref} = spawn_monitor(M, F, Args),
    receive {'DOWN', Ref, _, _, normal} -> ok end.

%% Functions of OTP: in Erlang, in C, and such that go on after a pause.
calls_of_otp_are_delivered(Source) ->
    Table = ets:new(table, [public]),
    Many = [{N, N} || N <- lists:seq(1, 50_000)],
    {ok, Server} = gen_server:start(?MODULE, [], []),
    Calls = [{ets, insert, [Table, {k, v}]}, {ets, insert, [Table, Many]}, {ets, lookup, [Table, 7]},
             {persistent_term, put, [?MODULE, 1]}, {erlang, monitor, [process, Server]}, {erlang, link, [Server]},
             {erlang, unlink, [Server]}, {erlang, register, [?MODULE, self()]}, {erlang, unregister, [?MODULE]},
             {erlang, put, [k, v]}, {erlang, send_after, [60_000, Server, x]}, {erlang, spawn, [?MODULE, one, [1]]},
             {gen_server, call, [Server, ask]}, {erlang, send, [Server, x]}, {lists, keyfind, [x, 1, Many]}],
    {P, Events} = events(Source, lists:usort([{M, F, length(Args)} || {M, F, Args} <- Calls]), fun() ->
        [apply(M, F, Args) || {M, F, Args} <- Calls]
    end),
    persistent_term:erase(?MODULE),
    gen_server:stop(Server),
    Named = [{M, F, length(Args)} || {M, F, Args} <- Calls],
    ?assertEqual(Named, [{M, F, length(Args)} || {call, Q, {M, F, Args}, _} <- Events, Q =:= P]),
    ?assertEqual(Named, [MFA || {return, Q, MFA, _, _} <- Events, Q =:= P]),
    ets:delete(Table).

init([]) -> {ok, []}.
handle_call(ask, _, S) -> {reply, answer, S}.
handle_cast(_, S) -> {noreply, S}.
handle_info(_, S) -> {noreply, S}.

%% --- calls that do not return as others do ---------------------------------------------

%% A tail call has no place to return to but that of its caller. So the last call returns first.
tail_calls_return_in_reverse(Source) ->
    {P, Events} = events(Source, [mfa(counts_down, 1)], fun() -> counts_down(3) end),
    ?assertEqual([{call, 3}, {call, 2}, {call, 1}, {call, 0}, {return, none}, {return, none}, {return, none}, {return, none}],
                 lists:append([case E of
                     {call, Q, {_, counts_down, [N]}, _} when Q =:= P -> [{call, N}];
                     {return, Q, {_, counts_down, 1}, Value, _} when Q =:= P -> [{return, Value}];
                     _ -> []
                 end || E <- Events])).

counts_down(0) -> none;
counts_down(N) -> counts_down(N - 1).

a_call_that_raises_has_no_return(Source) ->
    Raises = fun() -> try raises(1) catch error:one -> inner(raises(2)) end end,
    {P, Events} = events(Source, [mfa(raises, 1), mfa(inner, 1)], Raises),
    Inner = mfa(inner, 1),
    ?assertMatch([{recv, P, _, go, _}, {call, P, {_, raises, [1]}, _}, {call, P, {_, raises, [2]}, _},
                  {return, P, {_, raises, 1}, two, _}, {call, P, {_, inner, [two]}, _}, {return, P, Inner, {inner, two}, _}],
                 events_of(P, Events)).

raises(1) -> error(one);
raises(2) -> two.

a_call_of_a_process_that_is_killed_has_no_return(Source) ->
    {P, Events} = events(Source, [mfa(waits, 1)], fun() ->
        {C, Ref} = spawn_monitor(?MODULE, waits, [self()]),
        receive waits -> exit(C, kill) end,
        receive {'DOWN', Ref, _, _, killed} -> ok end
    end),
    [C] = [C || {fork, Q, C, _, _} <- Events, Q =:= P],
    ?assertMatch([{init, C, P, _, _}, {call, C, {_, waits, [P]}, _}, {send, C, P, waits, _}, {exit, C, killed, _}],
                 [E || E <- Events, element(2, E) =:= C]).

waits(From) ->
    From ! waits,
    receive never -> ok end.

%% --- load ------------------------------------------------------------------------------

%% Several processes call, send and receive as fast as they can. Each call and return comes once, in the order of its process, and
%% between the right messages.
load(Source, Processes, Steps) ->
    Table = ets:new(table, [public]),
    {_, Events} = events(Source, [mfa(step, 3), mfa(nested, 1), {ets, insert, 2}], fun() ->
        Workers = [spawn_monitor(?MODULE, worker, [Table, Steps]) || _ <- lists:seq(1, Processes)],
        Peers = [W || {W, _} <- Workers],
        [W ! {peers, Peers} || W <- Peers],
        [receive {'DOWN', Ref, _, _, normal} -> ok end || {_, Ref} <- Workers]
    end),
    ets:delete(Table),
    ByProcess = maps:groups_from_list(fun(E) -> element(2, E) end, Events),
    Workers = [P || {init, P, _, {?MODULE, worker, _}, _} <- Events],
    ?assertEqual(Processes, length(Workers)),
    lists:foreach(fun(P) ->
        #{P := Of} = ByProcess,
        [{peers, Peers}] = [M || {recv, _, _, {peers, _} = M, _} <- Of],
        ?assertEqual(expected(P, Peers, Table, Steps), [untimed(E) || E <- Of, lists:member(element(1, E), [call, return, send])]),
        ?assertEqual(lists:sort([{Q, N} || N <- lists:seq(1, Steps), Q <- Workers, peer(Peers, Q, N) =:= P]),
                     lists:sort([{Q, N} || {recv, _, Q, {step, N}, _} <- Of]))
    end, Workers),
    Events.

worker(Table, Steps) ->
    Peers = receive {peers, All} -> All end,
    [N = step(Table, peer(Peers, self(), N), N) || N <- lists:seq(1, Steps)],
    [receive {step, N} -> ok end || N <- lists:seq(1, Steps), Q <- Peers, peer(Peers, Q, N) =:= self()].

%% Each process sends to all others in turn.
peer(Peers, P, N) ->
    At = length(lists:takewhile(fun(Q) -> Q =/= P end, Peers)),
    lists:nth((At + N) rem length(Peers) + 1, Peers).

step(Table, Peer, N) ->
    Peer ! {step, N},
    {N} = nested(N),
    true = ets:insert(Table, {self(), N}),
    N.

nested(N) -> {N}.

expected(P, Peers, Table, Steps) ->
    lists:append([begin
        Peer = peer(Peers, P, N),
        [{call, P, {?MODULE, step, [Table, Peer, N]}}, {send, P, Peer, {step, N}},
         {call, P, {?MODULE, nested, [N]}}, {return, P, {?MODULE, nested, 1}, {N}},
         {call, P, {ets, insert, [Table, {P, N}]}}, {return, P, {ets, insert, 2}, true},
         {return, P, {?MODULE, step, 3}, N}]
    end || N <- lists:seq(1, Steps)]).

untimed(E) -> erlang:delete_element(tuple_size(E), E).

%% With so many schedulers.
with_schedulers(Count, Fun) ->
    Before = erlang:system_flag(schedulers_online, Count),
    try Fun() after erlang:system_flag(schedulers_online, Before) end.
