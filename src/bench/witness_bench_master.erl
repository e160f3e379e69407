-module(witness_bench_master).
-moduledoc """
The master of a model: it creates members as planned, gives them requests, and takes their responses (BenchCRV text,
section 3.1). There are three queues:

- *Order*: the number of members in each unit of time; part of the plan (`m:witness_bench_plan`);
- *Ready*: the points in time at which the members of the current unit are created;
- *Await*: the members with further requests, each with the rest of its batch.

It works in rounds:

1. If Ready is empty, it is filled from Order. The unit begins when the previous one should have ended, or now if
   that is over. A late master does not create many members at once: it is at most a tenth faster until it is in time.
2. Members that are due are created and appended to Await.
3. Each member in Await has a turn: it is sent requests while trials succeed with `pr_send`.
4. Responses are taken while trials succeed with `pr_recv`. This is repeated as many times as there are members, so that
   taking keeps up with sending.

When Order and Ready are empty, only steps 3 and 4 remain. When no member is left, the master ends.

The cost of a step depends only on its own work. A member leaves Await with its last request, and then only a count includes
it. No member is looked up, and no message is searched for behind others. If there is nothing to send, the master waits for a
message or for the next point in time, instead of drawing trials until one succeeds. Waiting has the VM's resolution
of one millisecond.

How late a member is created is measured against the original plan, in which no unit begins late.
A response time lasts from just before the request is sent until its response is taken.
""".

-export([start/3]).

-record(s, {module, setup, measures, local, plan, terms, crashing,
            origin, unit = 0, period, planned = 0, base = 0, scale = 1.0,   % nanoseconds
            id = 1, ready = [], await = [], members = 0, dead = #{},
            pr_send, sending, pr_recv, receiving, size, ending = 1}).

-doc "The master of a model, as `witness_bench_model:system/2` sets it up.".
-spec start(witness_bench_model:model(), witness_bench_member:setup(), witness_bench_response:measures()) -> ok.
start(Model, Setup, Measures) ->
    #{seed := Seed, period_ms := Period, pr_send := Send, pr_recv := Receive} = Model,
    Module = witness_bench_model:member(Model),
    %% Waiting responses are not on the master's heap.
    _ = process_flag(message_queue_data, off_heap),
    Plan = witness_bench_plan:new(Model),
    rounds(#s{module = Module, setup = Setup, measures = Measures, local = witness_bench_response:open(Measures),
              plan = Plan, terms = Module:terms(), crashing = maps:get(failures, Setup) =/= none,
              origin = clock(), period = Period * 1_000_000,
              pr_send = witness_bench_random:threshold(Send), sending = witness_bench_random:trials(sending, Seed),
              pr_recv = witness_bench_random:threshold(Receive),
              receiving = witness_bench_random:trials(receiving, Seed),
              size = Module:size(Model)}).

rounds(S) ->
    Now = clock(),
    case create_members(Now, scheduled(Now, S), []) of
        #s{plan = done, ready = [], members = 0, local = Local} -> witness_bench_response:close(Local);
        Next -> rounds(take_messages(sent(Next)))
    end.

clock() -> erlang:monotonic_time(nanosecond).

%% --- Order and Ready -------------------------------------------------------------

scheduled(Now, S = #s{ready = [], plan = Plan, unit = Unit, origin = Origin, period = Period}) when Plan =/= done ->
    Planned = Origin + Unit * Period,
    case witness_bench_plan:next(Plan) of
        done -> S#s{plan = done};
        {Ready, Next} ->
            Base = max(Planned, Now),
            Scale = max(0.9, (Planned + Period - Base) / Period),
            scheduled(Now, S#s{plan = Next, ready = Ready, unit = Unit + 1, planned = Planned, base = Base,
                               scale = Scale})
    end;
scheduled(_, S) -> S.

create_members(Now, S = #s{ready = [{At, Requests} | Ready], base = Base, scale = Scale}, Created)
  when Base + At * Scale =< Now ->
    #s{module = Module, setup = Setup, measures = Measures, planned = Planned, id = Id, members = Members,
       size = Size} = S,
    ok = witness_bench_response:lag(Measures, clock() - Planned - At),
    ok = times(Size, fun witness_bench_response:count_created/1, Measures),
    {To, Count, Ends} = Module:create(Id, Requests, Setup, Measures),
    Next = S#s{ready = Ready, id = Id + 1, members = Members + Ends, ending = Size div Ends},
    create_members(Now, Next, [{To, Id, 1, Count} || Count > 0] ++ Created);
create_members(_, S, []) -> S;
create_members(_, S = #s{await = Await}, Created) -> S#s{await = Await ++ lists:reverse(Created)}.

times(0, _, _) -> ok;
times(N, Count, Measures) -> ok = Count(Measures), times(N - 1, Count, Measures).

%% --- Await -----------------------------------------------------------------------

sent(S = #s{await = []}) -> S;
sent(S = #s{await = Await, sending = Sending, local = Local}) -> turns(Await, [], Sending, Local, S).

%% A dead member is in no later round.
turns([], Left, Sending, Local, S) ->
    S#s{await = lists:reverse(Left), sending = Sending, local = Local, dead = #{}};
turns([{To, _, _, _} | Await], Left, Sending, Local, S = #s{dead = Dead}) when is_map_key(To, Dead) ->
    turns(Await, Left, Sending, Local, S);
turns([{To, Id, Number, Requests} = Entry | Await], Left, Sending, Local, S = #s{pr_send = Threshold}) ->
    case witness_bench_random:trial(Threshold, Sending) of
        {false, Next} ->
            turns(Await, [Entry | Left], Next, Local, S);
        {true, Next} ->
            {Stamp, Started} = witness_bench_response:start(Local),
            ok = request(To, {Id, Number, Requests}, Stamp, S),
            case Number of
                Requests -> turns(Await, Left, Next, Started, S);
                _ -> turns([{To, Id, Number + 1, Requests} | Await], Left, Next, Started, S)
            end
    end.

request(To, Triple, Stamp, #s{setup = #{failures := Failures, payload := Payload}}) ->
    _ = witness_bench_member:is_lost(chunk, Triple, Failures)
            orelse (To ! {self(), {chunk, Triple, Stamp, Payload}}),
    ok.

%% --- responses -------------------------------------------------------------------

take_messages(S = #s{await = [], ready = Ready, plan = Plan}) ->
    receive
        Message -> dequeue(S#s.members, message(Message, S))
    after wait(Ready, Plan, S) -> S
    end;
take_messages(S = #s{members = Members}) -> dequeue(Members, S).

wait([{At, _} | _], _, #s{base = Base, scale = Scale}) -> max(0, ceil((Base + At * Scale - clock()) / 1_000_000));
wait([], done, #s{members = Members}) when Members > 0 -> infinity;
wait([], _, _) -> 0.

dequeue(Times, S = #s{receiving = Receiving, local = Local}) -> dequeue(Times, Receiving, Local, S).

dequeue(0, Receiving, Local, S) -> S#s{receiving = Receiving, local = Local};
dequeue(Times, Receiving, Local, S = #s{pr_recv = Threshold}) ->
    case witness_bench_random:trial(Threshold, Receiving) of
        {false, Next} -> dequeue(Times - 1, Next, Local, S);
        {true, Next} ->
            receive
                {_, {ack, _, Stamp, _}} -> dequeue(Times, Next, witness_bench_response:stop(Stamp, Local), S);
                Message ->
                    Taken = message(Message, S#s{local = Local}),
                    dequeue(Times, Next, Taken#s.local, Taken)
            after 0 -> S#s{receiving = Next, local = Local}
            end
    end.

message({_, {ack, _, Stamp, _}}, S = #s{local = Local}) -> S#s{local = witness_bench_response:stop(Stamp, Local)};
message({From, {'end', {Id, Requests, Requests}, Stamp, _}}, S = #s{local = Local, terms = Terms}) ->
    Stopped = S#s{local = witness_bench_response:stop(Stamp, Local)},
    #s{module = Module, setup = Setup, measures = Measures} = S,
    ok = witness_bench_response:messages(Measures, Module:inner(Requests, Setup)),
    case Terms of
        true ->
            From ! {self(), {term, {Id, Requests, Requests}}},
            witness_bench_response:messages(Measures, 1);
        false -> ok
    end,
    case S#s.crashing of
        true -> Stopped;
        false -> count_end(Stopped)
    end;
message({'DOWN', _, process, _, normal}, S) -> count_end(S);
message({'DOWN', _, process, Pid, crash}, S = #s{dead = Dead}) -> count_end(S#s{dead = Dead#{Pid => crash}}).

count_end(S = #s{members = Members, ending = Ending, measures = Measures}) ->
    ok = times(Ending, fun witness_bench_response:count_ended/1, Measures),
    S#s{members = Members - 1}.
