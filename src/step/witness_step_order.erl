-module(witness_step_order).
-moduledoc """
Which steps of a trace depend on which: by the order of each process, messages, births, and reported ends. It reads the trace.

The numbers of steps agree with the order of messages and births, and say nothing more. Of two steps that do not depend on each other,
either one may have been first in the run. A message about an end may have a smaller number than that end
(`witness_step_trace:skew/1`). Tables, names and the outside order steps as well, which does not count here.
""".

-export([are_concurrent/3, first/2, mark/3]).

-export_type([marked/0]).

-doc "The processes that have come to a step that depends on a given one, each with the first such step.".
-type marked() :: #{pos_integer() => pos_integer()}.

%% Steps that are examined: if there are more, it is not known whether one step depends on another.
-define(MAX_STEPS, 20_000).
%% A dependency may pass through this number of ends that have larger numbers than the messages about them.
-define(MAX_ENDS, 4).

-doc "Whether it is certain that neither of two steps depends on the other one.".
-spec are_concurrent(pos_integer(), pos_integer(), witness_step_trace:trace()) -> boolean().
are_concurrent(X, Y, Trace) ->
    Skew = ?MAX_ENDS * witness_step_trace:skew(Trace),
    Low = max(1, min(X, Y) - Skew),
    High = min(max(X, Y) + Skew, witness_step_trace:size(Trace)),
    High - Low =< ?MAX_STEPS andalso is_outside(X, Y, {Low, High}, Trace) andalso is_outside(Y, X, {Low, High}, Trace).

%% Whether the second step certainly does not depend on the first one.
is_outside(X, Y, Bounds, Trace) ->
    {Of, By} = {process(X, Trace), process(Y, Trace)},
    Of =/= By andalso look_back(add(By, Y, #{}, Bounds, Trace), {Of, X}, Bounds, Trace).

process(N, Trace) -> witness_step_trace:fold(fun(#{id := Id}, _) -> {stop, Id} end, 0, N, N, Trace).

%% Past: for each process its last step that the given one depends on. The end of a process may have a larger number than a step
%% that depends on it, so this is repeated until nothing is added.
look_back(Past, {Of, X} = Sought, {Low, High} = Bounds, Trace) ->
    Found = witness_step_trace:fold(fun(Step, Known) ->
        case look_at(Step, Known, Bounds, Trace) of
            unknown -> {stop, unknown};
            #{Of := Up} when Up >= X -> {stop, unknown};
            Now -> {next, Now}
        end
    end, Past, High, Low, Trace),
    case Found of
        unknown -> false;
        Past -> true;
        _ -> look_back(Found, Sought, Bounds, Trace)
    end.

look_at(#{number := N, id := Id} = Step, Past, Bounds, Trace) when is_map_key(Id, Past), map_get(Id, Past) >= N ->
    case Step of
        #{brief := {recv, outside, _, _}, cause := Cause} ->
            case origin(N, Id, Cause, Trace) of
                own -> Past;
                {Other, Sent} when Sent > 0 -> add(Other, Sent, Past, Bounds, Trace);
                _ -> unknown
            end;
        #{brief := {recv, From, _, _}, cause := Cause} when Cause > 0 -> add(From, Cause, Past, Bounds, Trace);
        #{brief := {recv, _, _, _}} -> unknown;
        %% It is not certain which signal has ended it.
        #{brief := {exit, killed, _}} -> unknown;
        #{} -> Past
    end;
look_at(_, Past, _, _) -> Past.

add(_, N, Past, {Low, _}, _) when N < Low -> Past;
add(Id, N, Past, _, _) when is_map_key(Id, Past), map_get(Id, Past) >= N -> Past;
add(Id, N, Past, Bounds, Trace) ->
    case witness_step_trace:process(Id, Trace) of
        #{parent := Parent, born := Born} when Parent > 0 -> add(Parent, Born, Past#{Id => N}, Bounds, Trace);
        #{} -> Past#{Id => N}
    end.

%% A timer, or a process outside that answers, sends what its process has asked for.
origin(N, Id, Cause, Trace) ->
    #{what := {recv, _, Msg}} = witness_step_trace:step(N, Trace),
    case witness_step_state:ended(Msg) of
        none -> asked_for(Msg, Id, Cause, Trace);
        Pid -> {witness_step_trace:process_id(Pid, Trace), witness_step_trace:exit_step(Pid, Trace)}
    end.

asked_for({timeout, Ref, _}, _, _, _) when is_reference(Ref) -> own;
asked_for({io_reply, _, _}, _, _, _) -> own;
asked_for({Tag, _}, _, _, _) when is_reference(Tag) -> own;
asked_for({[alias | Tag], _}, _, _, _) when is_reference(Tag) -> own;
asked_for(Msg, Id, Cause, Trace) when Cause > 0 ->
    case witness_step_trace:step(Cause, Trace) of
        #{id := Id, what := {send, _, Id, Msg, _}} -> own;
        _ -> unknown
    end;
asked_for(_, _, _, _) -> unknown.

-doc "The first step that may depend on this one.".
-spec first(pos_integer(), witness_step_trace:trace()) -> pos_integer().
first(N, Trace) when is_integer(N) -> max(1, N + 1 - ?MAX_ENDS * witness_step_trace:skew(Trace)).

-doc "Adds the process of a step if this step depends on one of those that are marked. Steps are passed in their order.".
-spec mark(witness_step_trace:brief(), marked(), witness_step_trace:trace()) -> marked().
mark(#{number := N, id := Id, brief := {spawn, Child, _}}, Marked, _) when is_map_key(Id, Marked) -> Marked#{Child => N};
mark(#{id := Id}, Marked, _) when is_map_key(Id, Marked) -> Marked;
mark(#{number := N, id := Id, cause := Cause, brief := {recv, From, _, none}}, Marked, _)
  when is_map_key(From, Marked), Cause >= map_get(From, Marked) -> Marked#{Id => N};
mark(#{number := N, id := Id, brief := {recv, outside, _, {_, _}}}, Marked, Trace) ->
    #{what := {recv, _, Msg}} = witness_step_trace:step(N, Trace),
    case is_map_key(witness_step_trace:process_id(witness_step_state:ended(Msg), Trace), Marked) of
        true -> Marked#{Id => N};
        false -> Marked
    end;
mark(_, Marked, _) -> Marked.
