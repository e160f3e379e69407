-module(witness_step_races).
-moduledoc """
Messages that lost a race. Another sender sent such a message, the same function took it later, or never, and neither of the two sends
depends on the other one. It reads the trace.

Nothing is said unless that is certain (`witness_step_order:are_concurrent/3`).
""".

-export([note/2]).

%% Steps after a receive in which other messages are sought; and how many of these messages.
-define(MAX_STEPS, 2_000).
-define(MAX_MESSAGES, 20).

-doc "A note if the step takes a message that won a race: about the earliest of those that lost it.".
-spec note(witness_step:step(), witness_step_trace:trace()) -> [witness_step_why:note()].
note(#{number := N, id := Id, cause := Sent, what := {recv, From, Message}, stack := [_ | _] = Stack} = Step, Trace)
  when is_integer(From), From =/= Id, Sent > 0 ->
    Top = witness_step_place:innermost(Stack),
    Lost = [Race || {Other, _} = Race <- taken_later(N, Id, From, Top, Trace) ++ never_taken(Id, Trace), Other =/= Sent],
    first(lists:sort(Lost), Top, Message, Step, Trace);
note(_, _) -> [].

taken_later(N, Id, From, Top, Trace) ->
    {_, Found} = witness_step_trace:fold(fun
        (#{number := At, id := Of, cause := Sent, brief := {recv, Other, _, none}}, {Count, Found})
          when Of =:= Id, is_integer(Other), Other =/= From, Sent > 0 ->
            #{stack := Stack} = witness_step_trace:step(At, Trace),
            Next = case witness_step_place:innermost(Stack) of Top -> {Count + 1, [{Sent, At} | Found]}; _ -> {Count, Found} end,
            {case Next of {?MAX_MESSAGES, _} -> stop; _ -> next end, Next};
        (_, Acc) -> {next, Acc}
    end, {0, []}, N + 1, min(N + ?MAX_STEPS, witness_step_trace:size(Trace)), Trace),
    Found.

never_taken(Id, Trace) ->
    End = case witness_step_trace:process(Id, Trace) of
        #{ended := 0} -> witness_step_trace:size(Trace);
        #{ended := Ended} -> Ended - 1
    end,
    [{Sent, 0} || Sent <- lists:sublist(witness_step_state:mailbox(Id, witness_step_trace:state(End, Trace)), ?MAX_MESSAGES)].

first([], _, _, _, _) -> [];
first([{Other, Taken} | Lost], Top, Message, #{id := Id, cause := Sent, what := {recv, From, _}} = Step, Trace) ->
    %% If the other send depends on this receive, it depends on the send of the message that was taken here.
    case witness_step_trace:step(Other, Trace) of
        #{id := By, what := {send, _, _, Left, Sure}} when By =/= From, By =/= Id, Taken > 0 orelse Sure =:= sure ->
            case matches(Top, Message, Left) andalso witness_step_order:are_concurrent(Other, Sent, Trace) of
                true -> [{race, #{from => By, sent => Other, message => Left, taken => Taken}}];
                false -> first(Lost, Top, Message, Step, Trace)
            end;
        #{} -> first(Lost, Top, Message, Step, Trace)
    end.

%% Whether the receive could have taken the other message instead. That of a behaviour takes all. Otherwise the trace does not have
%% the patterns: messages with the same tag are of a kind, unless they have different processes or references. The receive may want
%% one of these.
matches({Module, _, _}, _, _) when Module =:= gen_server; Module =:= gen_statem; Module =:= gen_event -> true;
matches(_, A, B) when is_tuple(A), is_tuple(B), tuple_size(A) =:= tuple_size(B), tuple_size(A) > 0, is_atom(element(1, A)) ->
    element(1, A) =:= element(1, B)
        andalso lists:all(fun({X, Y}) -> X =:= Y orelse not (is_identity(X) orelse is_identity(Y)) end,
                          lists:zip(tuple_to_list(A), tuple_to_list(B)));
matches(_, A, B) -> A =:= B.

is_identity(Term) -> is_pid(Term) orelse is_reference(Term).

