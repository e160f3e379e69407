-module(witness_replay_breakpoint).
-moduledoc """
Stops replayed processes when they have passed a number of entries of their logs, and asks them for their state. So
`m:witness_step_live` can inspect a run at one point.

A process stops when it wants its next entry. If it stops in a `receive` of an OTP behaviour, it is asked for its state as `sys`
does: it gets the request as a message, answers, and comes back to the same `receive`. *Invariant:* no request is an entry.
Until the process is back, it counts as one that is not replayed. So its calls have no entries, and its answer really goes to
the controller. The module with the `receive` has to handle such messages (it exports `system_continue/3`): others would take
the request for a message of the program. Any other process answers with its stack.
""".

-export([start/1, is_on/0, set_limit/1, wait/1, wait_in_receive/3, raise/2, ask/2, inspect/1]).

-define(LIMITS, witness_replay_limits).

-doc "Limits of processes, by their identifiers; others stop before their first entry. `none`: no process stops.".
-spec start(#{pos_integer() => non_neg_integer() | infinity} | none) -> ok.
start(none) -> ok;
start(Limits) ->
    ?LIMITS = ets:new(?LIMITS, [named_table, public, {read_concurrency, true}]),
    ok = persistent_term:put(?MODULE, self()),
    true = ets:insert(?LIMITS, maps:to_list(Limits)),
    %% A stopped process takes nothing and does not end. Processes that send to it, or spawn, have to come to their own limits,
    %% so none may be throttled.
    witness_replay_backpressure:disable().

-spec is_on() -> boolean().
is_on() -> persistent_term:get(?MODULE, off) =/= off.

-doc "A process with its current limit.".
-spec set_limit(witness_replay_process:process()) -> witness_replay_process:process().
set_limit(P) ->
    case is_on() of
        true -> witness_replay_process:set_limit(ets:lookup_element(?LIMITS, witness_replay_process:id(P), 2, 0), P);
        false -> P
    end.

-doc "A process that has reached its limit waits here until that is raised.".
-spec wait(witness_replay_process:process()) -> witness_replay_process:process().
wait(P) ->
    P1 = set_limit(P),
    case witness_replay_process:has_reached_limit(P1) of
        false -> P1;
        true ->
            receive
                witness_raised -> wait(P1);
                {witness_ask, Ref} ->
                    send_state(Ref, elsewhere),
                    wait(P1)
            end
    end.

-doc "The same in a `receive`: the process may take a request for its state first.".
-spec wait_in_receive(module(), witness_replay_process:match(), witness_replay_process:process()) ->
    {raised, witness_replay_process:process()} | {request, term()}.
wait_in_receive(Module, Match, P) ->
    P1 = set_limit(P),
    case witness_replay_process:has_reached_limit(P1) of
        false -> {raised, P1};
        true ->
            receive
                witness_raised -> wait_in_receive(Module, Match, P1);
                {witness_ask, Ref} ->
                    Request = {system, {controller(), {witness_state, Ref}}, get_state},
                    case erlang:function_exported(Module, system_continue, 3) andalso Match(Request) of
                        true -> {request, Request};
                        false ->
                            send_state(Ref, in_receive),
                            wait_in_receive(Module, Match, P1)
                    end
            end
    end.

%% The process reads its own stack.
send_state(Ref, Where) ->
    {current_stacktrace, Stack} = process_info(self(), current_stacktrace),
    {backtrace, Backtrace} = process_info(self(), backtrace),
    controller() ! {{witness_state, Ref}, {Where, witness_replay_stack:of_program(Stack), Backtrace}},
    ok.

%% The process that has called `start/1`.
controller() -> persistent_term:get(?MODULE).

-doc "Raises limits, and lets live processes go on to them.".
-spec raise(#{pos_integer() => non_neg_integer() | infinity}, [pid()]) -> ok.
raise(Limits, Proxies) ->
    true = ets:insert(?LIMITS, maps:to_list(Limits)),
    lists:foreach(fun(Proxy) -> Proxy ! witness_raised end, Proxies).

-doc """
Asks a process for its state. When it has stopped, the controller gets the answer as `{{witness_state, Ref}, Answer}`. `Answer`
is `{ok, State}`, or where the process is, its stack, and the stack with the values on it.
""".
-spec ask(pid(), term()) -> ok.
ask(Proxy, Ref) ->
    Proxy ! {witness_ask, Ref},
    ok.

-doc "The same for a process that does not stop.".
-spec inspect(pid()) -> {running, [tuple()], binary()}.
inspect(Proxy) ->
    case process_info(Proxy, [current_stacktrace, backtrace]) of
        [{_, Stack}, {_, Backtrace}] -> {running, witness_replay_stack:of_program(Stack), Backtrace};
        undefined -> {running, [], ~""}
    end.
