-module(witness_replay_stop).
-moduledoc """
Stops processes that are replayed when they have passed a number of entries of their log, and asks them what they are at: so one can look at
a run at a point of it.

A process stops when it wants its next entry. One that stops in a `receive` of a behaviour of OTP is asked for its state as `sys` does: it
gets the request as a message, answers, and comes back to the same `receive`. Until then it counts as one that is not replayed, so what it
calls is no entry, and its answer really goes to who has asked. The receive has to be that of a module that handles such messages (it exports
`system_continue/3`): others would take the request for a message of the program.
""".

-export([start/1, is_on/0, limited/1, wait/1, wait_in/3, raise/2, ask/2, look/1]).

-include("src/replay/witness_replay_process.hrl").

-define(LIMITS, witness_replay_limits).

-doc "Limits of processes, by their numbers; others are not to begin. `none`: nobody stops.".
-spec start(#{pos_integer() => non_neg_integer() | infinity} | none) -> ok.
start(none) -> ok;
start(Limits) ->
    ?LIMITS = ets:new(?LIMITS, [named_table, public, {read_concurrency, true}]),
    ok = persistent_term:put(?MODULE, on),
    true = ets:insert(?LIMITS, maps:to_list(Limits)),
    %% One that has stopped takes nothing and does not end, and who sends to it or begins others has to come to its own limit.
    witness_replay_flow:let_go().

-spec is_on() -> boolean().
is_on() -> persistent_term:get(?MODULE, off) =:= on.

-doc "A process that begins, with its limit.".
-spec limited(#process{}) -> #process{}.
limited(#process{id = Id} = P) ->
    case is_on() of
        true -> P#process{limit = ets:lookup_element(?LIMITS, Id, 2, 0)};
        false -> P
    end.

-doc "A process that has passed its limit waits here until that is raised.".
-spec wait(#process{}) -> #process{}.
wait(P) ->
    case limited(P) of
        #process{at = At, limit = Limit} = P1 when At < Limit -> P1;
        P1 ->
            receive
                witness_raised -> wait(P1);
                {witness_ask, Ref} ->
                    answer(Ref, elsewhere),
                    wait(P1)
            end
    end.

-doc "The same in a `receive`: it may take a request for its state first.".
-spec wait_in(module(), witness_replay_process:match(), #process{}) -> #process{} | [term(), ...].
wait_in(Module, Match, P) ->
    case limited(P) of
        #process{at = At, limit = Limit} = P1 when At < Limit -> P1;
        P1 ->
            receive
                witness_raised -> wait_in(Module, Match, P1);
                {witness_ask, Ref} ->
                    Request = {system, {controller(), {witness_state, Ref}}, get_state},
                    case erlang:function_exported(Module, system_continue, 3) andalso Match(Request) of
                        true -> [Request];
                        false ->
                            answer(Ref, in_receive),
                            wait_in(Module, Match, P1)
                    end
            end
    end.

%% It looks at itself, since its stack is its own.
answer(Ref, Where) ->
    {current_stacktrace, Stack} = process_info(self(), current_stacktrace),
    {backtrace, Backtrace} = process_info(self(), backtrace),
    controller() ! {{witness_state, Ref}, {Where, witness_replay_course:stack(Stack), Backtrace}},
    ok.

controller() ->
    #{controller := Controller} = witness_replay_course:given(),
    Controller.

-doc "Lets processes go on to other limits, these that live among them.".
-spec raise(#{pos_integer() => non_neg_integer() | infinity}, [pid()]) -> ok.
raise(Limits, Slots) ->
    true = ets:insert(?LIMITS, maps:to_list(Limits)),
    lists:foreach(fun(Slot) -> Slot ! witness_raised end, Slots).

-doc """
Asks a process what it is at. The answer comes when it has stopped: `{ok, State}`, or where it is, its stack and that with the values
on it, as `{{witness_state, Ref}, Answer}` to who looks after the replay.
""".
-spec ask(pid(), term()) -> ok.
ask(Slot, Ref) ->
    Slot ! {witness_ask, Ref},
    ok.

-doc "The same of one that does not stop.".
-spec look(pid()) -> {running, [tuple()], binary()}.
look(Slot) ->
    case process_info(Slot, [current_stacktrace, backtrace]) of
        [{_, Stack}, {_, Backtrace}] -> {running, witness_replay_course:stack(Stack), Backtrace};
        undefined -> {running, [], ~""}
    end.
