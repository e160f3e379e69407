-module(witness_step_timers).
-moduledoc """
The call that started the timer of a message, and whether the process had cancelled this timer when it took the message. It reads the
trace.

`{timeout, Ref, Msg}` names its timer. A message of `erlang:send_after` does not: several timers may have sent it. A timer is *running*
from its start until its message is taken, or until it is cancelled in time. If one timer with this message was running, or if one had
fired before the others were started, it is certain which it was.
""".

-export([cause/2]).

%% Steps before the latest start of a timer in which earlier ones with the same message are sought.
-define(EARLIER_STEPS, 20_000).

%% fired: the step that cancelled it too late; cancelled: an asynchronous cancellation, which may have been too late.
-record(timer, {step :: pos_integer(), id :: pos_integer(), ref :: term(),
                now = running :: running | cancelled | {fired, pos_integer()}}).

-doc "`none`: no timer of the recording sent it.".
-spec cause(witness_step_trace:step(), witness_step_trace:trace()) -> witness_step_why:found() | none.
cause(#{number := N, id := Id, what := {recv, outside, {timeout, Ref, _}}} = Step, Trace) when is_reference(Ref) ->
    #{born := Born} = witness_step_trace:process(Id, Trace),
    case witness_step_trace:fold(fun(Brief, Found) -> find_start(Ref, Brief, Found) end, {0, 0}, N - 1, Born, Trace) of
        {0, _} -> message(Step, Trace);
        {Start, Late} -> {late(Late), [{Start, []}]}
    end;
cause(#{what := {recv, outside, _}} = Step, Trace) -> message(Step, Trace);
cause(_, _) -> none.

find_start(Ref, #{number := N, brief := {call, {erlang, start_timer, _}, _, Ref}}, {_, Late}) -> {stop, {N, Late}};
find_start(Ref, #{number := N, brief := {call, {erlang, cancel_timer, _}, [Ref | Options], Value}}, {_, Late}) ->
    {next, {0, case is_late(Options, Value) of true -> N; false -> Late end}};
find_start(_, _, Found) -> {next, Found}.

late(0) -> [];
late(N) -> [{cancelled_too_late, N}].

%% Its message was taken later, so a cancellation that waited for the outcome found that the timer had fired.
is_late(_, false) -> true;
is_late([Options], ok) -> not lists:member({async, true}, Options);
is_late(_, _) -> false.

%% --- messages of send_after ------------------------------------------------------

message(#{number := N, id := Id, cause := Known, what := {recv, outside, Msg}}, Trace) ->
    case is_own_send(Id, Known, Trace) of
        true -> none;
        false ->
            #{pid := Pid, born := Born} = witness_step_trace:process(Id, Trace),
            Hash = erlang:phash2(Msg),
            Collect = fun(Brief, Found) -> collect(Brief, Id, Hash, Found) end,
            {_, Collected} = witness_step_trace:fold(Collect, {none, []}, N - 1, Born, Trace),
            Events = [Event || Event <- Collected, not is_taken_from(Id, Event, Trace)],
            Names = fun() ->
                [Name || Name := Owner <- witness_step_state:names(witness_step_trace:state(N, Trace)), Owner =:= Id]
            end,
            run(Events, fun(Start) -> is_for(Start, Pid, Msg, Names, Trace) end, Id, {[], certain})
    end.

%% A message to itself with options, or by an alias, comes from the log too.
is_own_send(_, 0, _) -> false;
is_own_send(Id, Known, Trace) ->
    witness_step_trace:fold(fun(#{id := Sender, brief := Brief}, _) ->
        {stop, Sender =:= Id andalso element(1, tuple(Brief)) =:= send}
    end, false, Known, Known, Trace).

is_taken_from(Id, {take, _, Known}, Trace) -> is_own_send(Id, Known, Trace);
is_taken_from(_, _, _) -> false.

tuple(Brief) when is_tuple(Brief) -> Brief;
tuple(Brief) -> {Brief}.

%% Starts with this message, its takes, and cancellations, the earliest first.
collect(#{number := N}, _, _, {Start, _} = Found) when is_integer(Start), N < Start - ?EARLIER_STEPS -> {stop, Found};
collect(#{number := N, id := By, brief := {call, {erlang, send_after, _}, [Hash], Ref}}, _, Hash, {Start, Events}) ->
    {next, {case Start of none -> N; _ -> Start end, [{start, #timer{step = N, id = By, ref = Ref}} | Events]}};
collect(#{number := N, brief := {call, {erlang, cancel_timer, _}, [Ref | Options], Value}}, _, _, {Start, Events}) ->
    {next, {Start, [{cancel, N, Ref, Options, Value} | Events]}};
collect(#{number := N, id := Id, cause := Known, brief := {recv, outside, Hash, _}}, Id, Hash, {Start, Events}) ->
    {next, {Start, [{take, N, Known} | Events]}};
collect(_, _, _, Found) -> {next, Found}.

is_for(#timer{step = N}, Pid, Msg, Names, Trace) ->
    #{what := {call, _, [_, To, Sent | _], _}} = witness_step_trace:step(N, Trace),
    Sent =:= Msg andalso (To =:= Pid orelse is_atom(To) andalso lists:member(To, Names())).

%% Timers that run, the earliest start first. After a take of which it is not certain which timer sent it, nothing is certain until
%% none runs.
run([], _, Id, {Timers, Certain}) ->
    case {pick(Timers, Id), Certain} of
        {none, _} -> none;
        {{certain, #timer{step = Start, now = Now}}, certain} ->
            {case Now of {fired, N} -> late(N); _ -> [] end, [{Start, []}]};
        _ ->
            #timer{step = Latest} = lists:last(Timers),
            {[{one_timer_of, [Step || #timer{step = Step} <- Timers]} || length(Timers) > 1], [{Latest, []}]}
    end;
run([{start, Timer} | Events], IsFor, Id, {Timers, Certain}) ->
    run(Events, IsFor, Id, {Timers ++ [Timer || IsFor(Timer)], Certain});
run([{cancel, N, Ref, Options, Value} | Events], IsFor, Id, {Timers, Certain}) ->
    Left = lists:append([case Timer of
        #timer{ref = Ref} when is_integer(Value) -> [];
        #timer{ref = Ref, now = running} ->
            [Timer#timer{now = case is_late(Options, Value) of true -> {fired, N}; false -> cancelled end}];
        _ -> [Timer]
    end || Timer <- Timers]),
    run(Events, IsFor, Id, {Left, Certain});
run([{take, _, _} | Events], IsFor, Id, {Timers, Certain}) ->
    {Left, Now} = case pick(Timers, Id) of
        none -> {[], Certain};
        {certain, Timer} -> {lists:delete(Timer, Timers), Certain};
        {uncertain, Timer} -> {lists:delete(Timer, Timers), uncertain}
    end,
    run(Events, IsFor, Id, {Left, case Left of [] -> certain; _ -> Now end}).

%% A timer that was found to have fired is earlier than those that the same process has started since.
pick([], _) -> none;
pick([Timer], _) -> {certain, Timer};
pick([#timer{id = Id, now = {fired, N}} = First | Others], Id) ->
    case lists:all(fun(#timer{step = Step, id = By}) -> By =:= Id andalso Step > N end, Others) of
        true -> {certain, First};
        false -> {uncertain, First}
    end;
pick([First | _], _) -> {uncertain, First}.
