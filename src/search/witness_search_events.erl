-module(witness_search_events).
-moduledoc """
The events that monitors see of a step of a search, and of the calls that a process makes until it is parked. Pure. They are those that
a replay of a recording of the run has.
""".

-export([first/1, of_step/4, of_report/3]).

-export_type([report/0]).

-doc "What a process reports. `hidden`: a call of a module that may call a function that is observed (`m:witness_replay_functions`).".
-type report() :: {call, {module(), atom(), [term()]}} | {return, mfa(), Value :: term()} | hidden.

-doc "The birth of the first process.".
-spec first(witness_search_world:world()) -> [witness_event:item()].
first(World) -> [{init, witness_search_world:pid(1, World), undefined, signature(1, World), witness_search_world:clock(World)}].

-doc "The events of a step, from the world before it, its effects, and the world after it.".
-spec of_step(witness_search_world:step(), Before :: witness_search_world:world(), [witness_search_world:effect()],
              After :: witness_search_world:world()) ->
    [witness_event:item()].
of_step(Step, Before, Effects, After) ->
    Ts = witness_search_world:clock(After),
    lists:append([of_effect(Effect, Step, Before, After, Ts) || Effect <- Effects]).

of_effect({answer, Id, {message, {From, _, Content}}}, _, _, After, Ts) ->
    [{recv, pid(Id, After), case From of outside -> undefined; _ -> pid(From, After) end, Content, Ts}];
of_effect({answer, Id, Answer}, {process, Id}, Before, After, Ts) ->
    case witness_search_world:status(Id, Before) of
        {wants, {send, To, Message, _}} when Answer =/= badarg, Answer =/= noname -> [{send, pid(Id, After), To, Message, Ts}];
        _ -> []
    end;
of_effect({start, Child, _, _}, _, _, After, Ts) ->
    Signature = signature(Child, After),
    case witness_search_world:birth(Child, After) of
        #{parent := 0} -> [{init, pid(Child, After), undefined, Signature, Ts}];
        #{parent := Id} ->
            Parent = pid(Id, After),
            [{fork, Parent, pid(Child, After), Signature, Ts}, {init, pid(Child, After), Parent, Signature, Ts}]
    end;
of_effect({Kind, Id, Reason}, _, _, After, Ts) when Kind =:= ended -> [{exit, pid(Id, After), Reason, Ts}];
of_effect({kill, Id, Reason, _}, _, _, After, Ts) -> [{exit, pid(Id, After), Reason, Ts}];
of_effect(_, _, _, _, _) -> [].

-doc "The event of a report.".
-spec of_report(report(), witness_search_world:id(), witness_search_world:world()) -> witness_event:item().
of_report(What, Id, World) ->
    {Pid, Ts} = {pid(Id, World), witness_search_world:clock(World)},
    case What of
        {call, Call} -> {call, Pid, Call, Ts};
        {return, Function, Value} -> {return, Pid, Function, Value, Ts};
        hidden -> {gap, Pid, hidden_calls, unknown, Ts}
    end.

pid(Id, World) -> witness_search_world:pid(Id, World).

signature(Id, World) ->
    #{start := Start} = witness_search_world:birth(Id, World),
    witness_event_signature:resolve(Start).
