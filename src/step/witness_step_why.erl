-module(witness_step_why).
-moduledoc """
The chain of causes of a step, from a symptom back to what caused it, with notes about what a reader must know of a step. It reads the
trace.

The cause of a step is what the first rule finds (`rules/0`), and otherwise the one that the trace has: of taking a message the step that
sent it, of anything else the last message that the process has taken, or its birth. A rule may find several steps that lead there.

To add a kind of cause, add a rule; to add a remark about a step, add it to `remarks/0`.
""".

-export([chain/3]).

-export_type([entry/0, note/0, found/0]).

-doc "A step of the chain; `cause`: the number of the next one, 0 if there is none.".
-type entry() :: #{number := pos_integer(), id := pos_integer(), entry := non_neg_integer(), cause := non_neg_integer(),
                   stack := [tuple()], what := witness_step_state:what(), notes := [note()]}.

-doc """
A remark about a step. Numbers are those of steps and processes; 0: there is none.

- `cancelled_too_late`: the process had cancelled the timer of this message, at that step. The timer had fired.
- `one_timer_of`: one of these calls started the timer of this message, and it is not known which.
- `no_answer`: the process waited for the answer of `server` (0: not in the recording) to its request. It is not known whether the server
  took it before the process gave up, if it did.
- `deadlock`: these processes wait for each other, each one for the next.
- `last`: the last step of the server `process` before it answered (`answer`), took the request (`taken`), or took its `next` message, at the step `step`;
  or at all (`none`). `stack`: where it was then, if that is known.
- `overwrites`: the process had read before this step, at `read`, and another process had changed the same at `change`, which this step
  overwrites.
- `at_the_same_time`: this call and that one were under way at the same time, so it is not certain that this one has read it.
- `race`: the process also got `message`. Its send and that of the message that was taken here do not depend on each other. It was
  taken later, at the step `taken`, or never.
""".
-type note() :: {cancelled_too_late, pos_integer()}
              | {one_timer_of, [pos_integer(), ...]}
              | {no_answer, #{request := pos_integer(), server := non_neg_integer(), taken := non_neg_integer(),
                              answered := non_neg_integer()}}
              | {deadlock, [pos_integer(), ...]}
              | {last, #{process := pos_integer(), until := answer | taken | next | none, step := non_neg_integer(),
                         stack := [tuple()]}}
              | {overwrites, #{change := pos_integer(), read := pos_integer()}}
              | {at_the_same_time, pos_integer()}
              | {race, #{from := pos_integer(), sent := pos_integer(), message := term(), taken := non_neg_integer()}}.

-doc "Notes about the step, and the steps that lead to its cause, the nearest one first, with their notes. None: the trace has the cause.".
-type found() :: {[note()], [{pos_integer(), [note()]}]}.

-type rule() :: fun((witness_step:step(), witness_step_trace:trace()) -> found() | none).

-spec rules() -> [rule(), ...].
rules() ->
    [fun ended/2,
     fun witness_step_timers:cause/2,
     fun witness_step_waits:cause/2,
     fun witness_step_waits:given_up_before/2,
     fun shared/2,
     fun news/2].

-spec remarks() -> [fun((witness_step:step(), witness_step_trace:trace()) -> [note()]), ...].
remarks() -> [fun witness_step_races:note/2].

-doc "The chain of causes of a step, this step first, with a maximum length.".
-spec chain(pos_integer() | infinity, pos_integer(), witness_step_trace:trace()) -> [entry()].
chain(Count, N, Trace) -> chain(Count, [{N, []}], Trace, #{}, []).

%% It is not certain which signal has ended a process, so each step is visited once. If it was visited, its cause in the trace comes
%% next, which has a smaller number. The steps of a path are causes by themselves; only its last one has a cause that is sought.
chain(0, _, _, _, Chain) -> lists:reverse(Chain);
chain(_, [{0, _} | _], _, _, Chain) -> lists:reverse(Chain);
chain(Count, [{N, Notes} | Path], Trace, Seen, Chain) ->
    Step = witness_step_trace:step(N, Trace),
    {Found, [{Cause, _} | _] = Next} = case Path of
        [] -> cause(Step, Seen#{N => []}, Trace);
        _ -> {[], Path}
    end,
    Remarks = lists:append([Remark(Step, Trace) || Remark <- remarks()]),
    Entry = Step#{cause := Cause, notes => Notes ++ Found ++ Remarks},
    chain(case Count of infinity -> infinity; _ -> Count - 1 end, Next, Trace, Seen#{N => []}, [Entry | Chain]).

cause(#{cause := Known} = Step, Seen, Trace) ->
    {Notes, Path} = case first(rules(), Step, Trace) of
        none -> {[], []};
        Found -> Found
    end,
    case lists:takewhile(fun({N, _}) -> not is_map_key(N, Seen) end, Path) of
        [] when Path =:= [] -> {Notes, [{unseen(Known, Seen, Trace), []}]};
        [] -> {Notes, [{unseen(element(1, hd(Path)), Seen, Trace), []}]};
        Unseen -> {Notes, Unseen}
    end.

unseen(N, Seen, Trace) when is_map_key(N, Seen) ->
    #{cause := Cause} = witness_step_trace:step(N, Trace),
    unseen(Cause, Seen, Trace);
unseen(N, _, _) -> N.

first([], _, _) -> none;
first([Rule | Rules], Step, Trace) ->
    case Rule(Step, Trace) of
        none -> first(Rules, Step, Trace);
        Found -> Found
    end.

%% A message about an end has that end as its cause, and an end by a signal the last signal that was sent explicitly.
ended(#{what := {recv, outside, Msg}}, Trace) -> known(witness_step_trace:exit_step(witness_step_state:ended(Msg), Trace));
ended(#{id := Id, what := {exit, killed, _}}, Trace) -> known(witness_step_trace:signal(Id, Trace));
ended(_, _) -> none.

%% A call that reads shared memory has the last change as its cause. The cause of one that overwrites a change is what its process
%% had read before.
shared(#{number := N, what := What}, Trace) when element(1, What) =:= call; element(1, What) =:= raise ->
    case witness_step_shared:found(N, witness_step_trace:shared(Trace)) of
        #{source := Change, sure := Sure} -> {[{at_the_same_time, Change} || not Sure], [{Change, []}]};
        #{lost := {Change, Read}} -> {[{overwrites, #{change => Change, read => Read}}], [{Read, []}]};
        #{} -> none
    end;
shared(_, _) -> none.

%% What a process has read of others is an input, as a message is.
news(#{what := {recv, From, _}}, _) when is_integer(From) -> none;
news(#{number := N, id := Id, cause := Known}, Trace) ->
    case witness_step_shared:last_news(Id, N, witness_step_trace:shared(Trace)) of
        Read when Read > Known -> known(Read);
        _ -> none
    end.

known(0) -> none;
known(N) -> {[], [{N, []}]}.
