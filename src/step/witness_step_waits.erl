-module(witness_step_waits).
-moduledoc """
Why a call got no answer in time: the processes that waited for each other, up to one that did not wait for an answer, and what this one
did last. It reads the trace.

A *request* is one of OTP's servers (`'$gen_call'`), or a message with the reference of a monitor that its sender has made for it. A
process *gives it up* with the `timeout` of a receive in the function that has sent it, before it has taken anything else.

The numbers of steps do not say how far a process was when another one gave up, because a replay waits for no time. So a server is
followed from the step that takes the request to the step that answers it, wherever these are in the trace, and no further than it can
be without the caller having given up (`witness_step_order:mark/3`).
""".

-export([cause/2, given_up_before/2]).

-record(request, {step :: pos_integer(), id :: pos_integer(), to :: non_neg_integer(), ref :: reference(), message :: term()}).

%% What a server did with a request. last: its last step that may be before the caller gave up. own: its steps from the take on, the
%% latest first, until it answered or took its next message (`next`). ended: its stack when a signal ended it.
-record(served, {request :: #request{},
                 marked :: witness_step_order:marked(),
                 last = 0 :: non_neg_integer(),
                 taken = 0 :: non_neg_integer(),
                 top = none :: none | mfa(),
                 own = [] :: [pos_integer()],
                 next = 0 :: non_neg_integer(),
                 answered = 0 :: non_neg_integer(),
                 ended = [] :: [tuple()]}).

%% Steps of a server during one request that are examined: the last ones.
-define(MAX_EXAMINED, 1_000).

-doc """
The cause of giving up a call: of the timeout of its receive, or of the end or the exception that reports it. `none`: the step is
nothing of the kind.
""".
-spec cause(witness_step_trace:step(), witness_step_trace:trace()) -> witness_step_why:found() | none.
cause(#{number := N, id := Id, what := timeout} = Step, Trace) ->
    case given_up(Step, Trace) of
        none -> none;
        {_, First} when First < N -> {[], [{First, []}]};
        {Request, N} -> follow(Request, #{Id => N}, [Id], Trace)
    end;
cause(#{what := {exit, ended, Reason}} = Step, Trace) -> reported(Reason, Step, Trace);
cause(#{what := {raise, _, _, exit, Reason}} = Step, Trace) -> reported(Reason, Step, Trace);
cause(_, _) -> none.

reported({timeout, {Module, call, [_, Request | _]}}, Step, Trace) when is_atom(Module) -> find_given_up(Request, Step, Trace);
reported({Reason, _}, Step, Trace) -> reported(Reason, Step, Trace);
reported(_, _, _) -> none.

find_given_up(Message, #{number := N, id := Id}, Trace) ->
    latest_given_up(fun(#request{message = Given}) -> Given =:= Message end, Id, N, born(Id, Trace), Trace).

-doc "The step with which the process gave up a call after its last input, if any: what it did then follows from that.".
-spec given_up_before(witness_step_trace:step(), witness_step_trace:trace()) -> witness_step_why:found() | none.
given_up_before(#{what := {recv, _, _}}, _) -> none;
given_up_before(#{what := {exit, killed, _}}, _) -> none;
given_up_before(#{number := N, id := Id, cause := Heard}, Trace) when Heard > 0, Heard < N - 1 ->
    latest_given_up(fun(_) -> true end, Id, N, Heard + 1, Trace);
given_up_before(_, _) -> none.

latest_given_up(_, _, N, Down, _) when N - 1 < Down -> none;
latest_given_up(Test, Id, N, Down, Trace) ->
    witness_step_trace:fold(fun
        (#{number := At, id := Of, brief := timeout}, none) when Of =:= Id ->
            case given_up(witness_step_trace:step(At, Trace), Trace) of
                none -> {next, none};
                {Request, First} ->
                    case Test(Request) of
                        true -> {stop, {[], [{First, []}]}};
                        false -> {next, none}
                    end
            end;
        (_, none) -> {next, none}
    end, none, N - 1, Down, Trace).

born(Id, Trace) ->
    #{born := Born} = witness_step_trace:process(Id, Trace),
    Born.

%% --- requests --------------------------------------------------------------------

%% The request that a timeout gives up, and the first timeout that does so. Others may follow, with which the process looks for an
%% answer that has come meanwhile.
given_up(#{number := N, id := Id, stack := Stack}, Trace) ->
    Top = witness_step_place:innermost(Stack),
    {Found, First, _} = witness_step_trace:fold(fun(#{id := Of, brief := Brief} = Step, {none, First, Sends} = Acc) ->
        case Of =:= Id of
            true -> look_back(Brief, Step, Top, First, Sends, Trace);
            false -> {next, Acc}
        end
    end, {none, N, []}, N - 1, born(Id, Trace), Trace),
    case Found of
        #request{message = none} when First < N -> none;
        #request{} -> {Found, First};
        none -> none
    end.

look_back({recv, _, _, _}, _, _, First, _, _) -> {stop, {none, First, []}};
look_back(timeout, #{number := N}, Top, First, Sends, Trace) ->
    #{stack := Stack} = witness_step_trace:step(N, Trace),
    {next, {none, case witness_step_place:innermost(Stack) of Top when Top =/= none -> N; _ -> First end, Sends}};
look_back({send, _, _}, #{number := N}, Top, First, Sends, Trace) ->
    #{stack := Stack} = Step = witness_step_trace:step(N, Trace),
    case {witness_step_place:innermost(Stack), call(Step)} of
        {Top, #request{} = Request} -> {stop, {Request, First, Sends}};
        {Top, none} when Top =/= none -> {next, {none, First, [Step | Sends]}};
        _ -> {next, {none, First, Sends}}
    end;
look_back({call, {erlang, monitor, _}, _, Ref}, _, _, First, Sends, _) ->
    case [request(Step, Ref) || Step <- lists:reverse(Sends), is_about(Step, Ref)] of
        [Request | _] -> {stop, {Request, First, Sends}};
        [] -> {next, {none, First, Sends}}
    end;
look_back(_, _, _, First, Sends, _) -> {next, {none, First, Sends}}.

call(#{number := N, id := Id, what := {send, _, To, {'$gen_call', {_, Tag}, Message}, _}}) ->
    case witness_check_calls:reference(Tag) of
        none -> none;
        Ref -> #request{step = N, id = Id, to = To, ref = Ref, message = Message}
    end;
call(_) -> none.

request(#{number := N, id := Id, what := {send, _, To, _, _}}, Ref) ->
    #request{step = N, id = Id, to = To, ref = Ref, message = none}.

is_about(#{what := {send, _, _, Message, _}}, Ref) -> mentions(Ref, Message, 4);
is_about(#{what := {recv, _, Message}}, Ref) -> mentions(Ref, Message, 4).

mentions(Ref, Ref, _) -> true;
mentions(_, _, 0) -> false;
mentions(Ref, Term, Depth) when is_tuple(Term), tuple_size(Term) =< 8 ->
    lists:any(fun(Part) -> mentions(Ref, Part, Depth - 1) end, tuple_to_list(Term));
mentions(Ref, [Head | Tail], Depth) -> mentions(Ref, Head, Depth - 1) orelse mentions(Ref, Tail, Depth - 1);
mentions(_, _, _) -> false.

%% --- servers ---------------------------------------------------------------------

%% What became of a request, and the steps that lead from its server to the process that waits for no answer.
follow(#request{step = Step, to = 0}, _, _, _) ->
    {[{no_answer, #{request => Step, server => 0, taken => 0, answered => 0}}], []};
follow(#request{step = Step, to = To} = Request, Marked, Waiting, Trace) ->
    #served{taken = Taken, answered = Answered} = Served = serve(Request, Marked, Trace),
    {[{no_answer, #{request => Step, server => To, taken => Taken, answered => Answered}}],
     case lists:member(To, Waiting) of
         true -> [];
         false -> lead(blocked(Served, Trace), Marked, [To | Waiting], Trace)
     end}.

lead({step, N, Notes}, _, _, _) -> [{N, Notes}];
lead({call, #request{step = Step, to = To} = Request}, Marked, Waiting, Trace) ->
    {[{no_answer, #{answered := Answered}}] = Notes, Path} = follow(Request, Marked, Waiting, Trace),
    Circle = [{deadlock, lists:reverse(circle(To, Waiting))} || Answered =:= 0, lists:member(To, Waiting)],
    [{Step, Notes ++ Circle} | Path].

circle(To, [To | _]) -> [To];
circle(To, [Id | Waiting]) -> [Id | circle(To, Waiting)].

%% Follows a server from the request on, until it answers, ends, or depends on the caller having given up. One that answers for it
%% is followed too.
serve(#request{step = Step} = Request, Marked, Trace) ->
    witness_step_trace:fold(fun(Brief, #served{marked = Before} = Served) ->
        Now = witness_step_order:mark(Brief, Before, Trace),
        serve_step(Brief, Served#served{marked = Now}, Trace)
    end, #served{request = Request, marked = Marked}, witness_step_order:first(Step, Trace), witness_step_trace:size(Trace), Trace).

serve_step(#{number := N, id := By, brief := {send, To, _}}, #served{request = #request{id = To}, taken = Taken} = Served, Trace)
  when Taken > 0, By =/= To ->
    add_send(N, By, Served, Trace);
serve_step(#{id := Id}, #served{request = #request{to = To}} = Served, _) when Id =/= To -> {next, Served};
serve_step(#{number := N}, #served{request = #request{step = Step}} = Served, _) when N < Step -> {next, Served};
serve_step(#{id := Id}, #served{marked = Marked} = Served, _) when is_map_key(Id, Marked) -> {stop, Served};
serve_step(#{number := N, brief := {exit, killed, _}}, Served, Trace) ->
    #{stack := Stack} = witness_step_trace:step(N, Trace),
    {stop, Served#served{ended = Stack}};
serve_step(#{number := N, brief := {exit, ended, _}}, Served, _) -> {stop, add_own(N, Served)};
serve_step(#{number := N, cause := Step, brief := {recv, _, _, _}}, #served{request = #request{step = Step}} = Served, Trace) ->
    #{stack := Stack} = witness_step_trace:step(N, Trace),
    {next, Served#served{taken = N, top = witness_step_place:innermost(Stack), own = [N]}};
serve_step(#{number := N, brief := {recv, _, _, _}}, #served{taken = Taken, next = 0, top = Top} = Served, Trace) when Taken > 0 ->
    #{stack := Stack} = witness_step_trace:step(N, Trace),
    {next, case witness_step_place:innermost(Stack) of Top -> Served#served{next = N}; _ -> add_own(N, Served) end};
%% The caller may have ended, and its alias with it.
serve_step(#{number := N, id := Id, brief := {send, 0, _}}, #served{taken = Taken} = Served, Trace) when Taken > 0 ->
    add_send(N, Id, Served, Trace);
serve_step(#{number := N}, Served, _) -> {next, add_own(N, Served)}.

add_own(N, #served{taken = 0} = Served) -> Served#served{last = N};
add_own(N, #served{next = 0, own = Own} = Served) -> Served#served{own = [N | Own]};
add_own(_, Served) -> Served.

add_send(N, By, #served{request = #request{to = To, ref = Ref}} = Served, Trace) ->
    case is_about(witness_step_trace:step(N, Trace), Ref) of
        true -> {stop, Served#served{answered = N, next = case By of To -> Served#served.next; _ -> N end}};
        false when By =:= To -> {next, add_own(N, Served)};
        false -> {next, Served}
    end.

%% What kept a server from answering: a request of its own, or its last step. An answer that it gave later, or that another process
%% gave, has causes of its own.
blocked(#served{answered = Answered, next = Next}, _) when Answered > 0, Next > 0 -> {step, Answered, []};
blocked(#served{answered = Answered, taken = Taken, own = Own, top = Top, request = #request{to = Id}}, Trace) when Answered > 0 ->
    case waited(steps(lists:delete(Taken, Own), Trace), Trace) of
        none ->
            %% It answered at once. So it was busy before, if it was busy.
            case waited(own_steps(Id, Taken - 1, fun(Frame) -> Frame =:= Top end, Trace), Trace) of
                {step, #{what := timeout} = Step} -> last(taken, Taken, Step);
                {How, #request{} = Request} when How =:= pending; How =:= answered -> {call, Request};
                _ -> {step, Taken, []}
            end;
        {step, Step} -> last(answer, Answered, Step);
        {_, Request} -> {call, Request}
    end;
%% It has done nothing since the request was sent.
blocked(#served{taken = 0, request = #request{step = Sent, to = Id}, last = 0} = Served, Trace) ->
    stuck(own_steps(Id, Sent, fun(_) -> true end, Trace), Served#served{ended = ended(Id, Trace)}, Trace);
blocked(#served{taken = 0, request = #request{to = Id}, last = Last} = Served, Trace) ->
    stuck(own_steps(Id, Last, fun(_) -> true end, Trace), Served, Trace);
blocked(#served{own = Own} = Served, Trace) -> stuck(steps(Own, Trace), Served, Trace).

%% The end by a signal may have a smaller number than the request: the replay does not order signals.
ended(Id, Trace) ->
    case witness_step_trace:process(Id, Trace) of
        #{ended := Ended} when Ended > 0 ->
            case witness_step_trace:step(Ended, Trace) of
                #{what := {exit, killed, _}, stack := Stack} -> Stack;
                #{} -> []
            end;
        #{} -> []
    end.

stuck(Steps, #served{next = Next, ended = Ended, request = #request{to = Id}}, Trace) ->
    case {waited(Steps, Trace), Steps} of
        {{pending, Request}, _} -> {call, Request};
        {_, [Step | _]} when Next > 0 -> last(next, Next, Step);
        _ ->
            %% Of a process that has done nothing the birth is the last step, which is one of its parent.
            N = case Steps of [#{number := Own} | _] -> Own; [] -> born(Id, Trace) end,
            {step, N, [{last, #{process => Id, until => none, step => 0, stack => Ended}}]}
    end.

last(Until, Step, #{number := N, id := Id, stack := Stack}) ->
    {step, N, [{last, #{process => Id, until => Until, step => Step, stack => Stack}}]}.

%% Steps of a process, the latest first, without those that may not have happened.
steps(Numbers, Trace) ->
    [Step || N <- lists:sublist(Numbers, ?MAX_EXAMINED), #{what := What} = Step <- [witness_step_trace:step(N, Trace)],
             has_happened(What)].

has_happened(lost) -> false;
has_happened({send, _, _, _, Sure}) -> Sure =:= sure;
has_happened({exit, killed, _}) -> false;
has_happened(_) -> true.

%% The last steps up to a receive in such a function.
own_steps(Id, From, IsLoop, Trace) ->
    {_, Numbers} = witness_step_trace:fold(fun
        (#{number := N, id := Of, brief := {recv, _, _, _}}, {Count, Numbers}) when Of =:= Id ->
            #{stack := Stack} = witness_step_trace:step(N, Trace),
            IsLast = IsLoop(witness_step_place:innermost(Stack)) orelse Count >= ?MAX_EXAMINED,
            {case IsLast of true -> stop; false -> next end, {Count + 1, [N | Numbers]}};
        (#{number := N, id := Of}, {Count, Numbers}) when Of =:= Id ->
            {case Count >= ?MAX_EXAMINED of true -> stop; false -> next end, {Count + 1, [N | Numbers]}};
        (_, Acc) -> {next, Acc}
    end, {0, []}, From, born(Id, Trace), Trace),
    steps(lists:reverse(Numbers), Trace).

%% The last thing in these steps that the process may have waited for: the answer to a request, which it has got or not, another
%% message, or a timeout.
waited(Steps, Trace) ->
    Requests = requests(Steps),
    case {Requests, [Step || #{what := What} = Step <- Steps, is_wait(What)]} of
        {[], []} -> none;
        {[Request | _], []} -> {pending, Request};
        {[#request{step = Sent} = Request | _], [#{number := N} | _]} when Sent > N -> {pending, Request};
        {_, [#{what := timeout} = Step | _]} ->
            case given_up(Step, Trace) of
                {Request, _} -> {pending, Request};
                none -> {step, Step}
            end;
        {_, [Step | _]} ->
            case [Request || #request{ref = Ref} = Request <- Requests, is_about(Step, Ref)] of
                [Request | _] -> {answered, Request};
                [] -> {step, Step}
            end
    end.

is_wait(timeout) -> true;
is_wait({recv, _, _}) -> true;
is_wait(_) -> false.

requests(Steps) ->
    Refs = [Ref || #{what := {call, {erlang, monitor, _}, _, Ref}} <- Steps],
    lists:append([case call(Step) of
        #request{} = Request -> [Request];
        none -> lists:sublist([request(Step, Ref) || Ref <- Refs, is_about(Step, Ref)], 1)
    end || #{what := {send, _, _, _, _}} = Step <- Steps]).
