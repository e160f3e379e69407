-module(witness_replay_runtime).
-moduledoc """
What woven code calls while it is replayed (`m:witness_weave_runtime`), in the process that runs it.

A process that is replayed has what it needs in its dictionary, under a key that the program does not see (that of the
recorder, so that the dictionary has the same order). Everybody else is outside, and passes through: a `receive` receives.

What a process asks for, the next entry of its log answers:

| The program | The log | Then |
|---|---|---|
| receives | `from` X | the earliest message of X that matches; it waits until there is one |
| receives | `content` M | M, which has to match |
| receives | `timeout` | the time is over |
| calls a function of the table | `result`, `raise` of this function | that; nothing is executed |
| sends to a name | `named` | to the process that had the name |
| spawns | `spawn` C | a process that is C |
| anything | `exit`, but not `normal` | it was killed at some point before this, and ends here |
| anything | nothing more | the recording was cut here, and so it ends here |
| anything | anything else | a divergence |

Processes have the pids of the recording, and so have references: none of them is known to the VM. Sends go to the process
that stands for the receiver, with the sender's identifier. Links, monitors, exit signals and timers are not there: what
comes of them is in the log.
""".
-behaviour(witness_weave_runtime).

-export([begin_all/1, known/1, slot/1, signalled/2]).
-export([take/4, self/0, stack/1, caught/1, send/3, spawn/3, dictionary/3, information/3, result/4, foreign/4, wait/3, token/3,
         make_fun/3, halt/3, load/3, effect/3, unseen/3, leave/3, leaving/2,
         hibernate/3, apply/3, function/3]).
-export([place/1, awake/1]).
-compile({no_auto_import, [self/0, apply/3, spawn/3, halt/3]}).

-include("src/replay/witness_replay_process.hrl").

%% That of the recorder.
-define(KEY, '$witness_record').
-define(SLOTS, witness_replay_slots).
-define(PIDS, witness_replay_pids).
-define(BORN, witness_replay_born).
-define(ALIASES, witness_replay_aliases).
-define(SIGNALS, witness_replay_signals).
%% Messages that may wait at a process for which one sends that has nothing else left to do.
-define(CROWD, 10_000).

-doc """
Makes the tables; the caller is told what happens, as `{witness_replay, What}`.

- `processes`: those of the recording;
- `calls`: the numbers of calls, for those that are known at run time only;
- `checked`: the log has hashes or contents of messages; `announced`: it has what was sent;
- `marked`: it has exits that processes raise themselves;
- `mirror`: the controller wants to have what is printed.
""".
-spec begin_all(#{processes := [witness_log_recording:process()], calls := #{mfa() => non_neg_integer()},
                  checked := boolean(), announced := boolean(), marked := boolean(), mirror := boolean()}) -> ok.
begin_all(#{processes := Processes} = Given) ->
    _ = [ets:new(Table, [named_table, public, {read_concurrency, true}]) || Table <- [?SLOTS, ?PIDS, ?BORN, ?ALIASES]],
    _ = ets:new(?SIGNALS, [named_table, public, bag]),
    lists:foreach(fun(#{id := Id, pid := Pid, signature := Signature}) ->
        ets:insert(?PIDS, {Pid, Id}),
        ets:insert(?BORN, {Id, Pid, Signature})
    end, Processes),
    ok = witness_replay_flow:start(lists:max([0 | [Id || #{id := Id} <- Processes]])),
    persistent_term:put(?MODULE, (maps:remove(processes, Given))#{controller => erlang:self()}).

%% --- processes -------------------------------------------------------------------

-doc "The pid of a process in the recording, and what it was spawned with.".
-spec known(pos_integer()) -> {pid(), Signature :: term()} | none.
known(Id) ->
    case ets:lookup(?BORN, Id) of
        [{_, Pid, Signature}] -> {Pid, Signature};
        [] -> none
    end.

-doc "The process of this VM that stands for one of the recording. It is made when it is needed first.".
-spec slot(pos_integer()) -> pid().
slot(Id) ->
    case ets:lookup(?SLOTS, Id) of
        [{_, Slot}] -> Slot;
        [] ->
            Slot = erlang:spawn(?MODULE, place, [Id]),
            case ets:insert_new(?SLOTS, {Id, Slot}) of
                true -> Slot;
                false ->
                    exit(Slot, kill),
                    slot(Id)
            end
    end.

-doc false.
-spec place(pos_integer()) -> no_return().
place(Id) ->
    receive
        {witness_begin, {Module, Function, Args}} ->
            {Pid, _} = known(Id),
            Flow = witness_replay_flow:here(),
            #{checked := Checked, announced := Announced} = persistent_term:get(?MODULE),
            Plain = not (Checked orelse Announced orelse witness_replay_tell:is_on()),
            {_, P} = looked(witness_replay_process:new(Id, Pid, Flow, Plain)),
            keep(witness_replay_stop:limited(P)),
            run(Module, Function, Args)
    end.

%% Nothing may come behind the call but this: what catches is not the program's.
-spec run(module(), atom(), [term()]) -> no_return().
run(Module, Function, Args) ->
    try ?MODULE:apply(Module, Function, Args) of
        _ -> finished(normal)
    catch
        throw:Reason:Stack -> finished({{nocatch, Reason}, stack(Stack)});
        error:Reason:Stack -> finished({Reason, stack(Stack)});
        exit:Reason -> finished(Reason)
    end.

-spec finished(term()) -> no_return().
finished(Reason) ->
    {Entry, P} = peeked(get(?KEY)),
    case Entry of
        done -> stopped(ended, P);
        {exit, Recorded} ->
            case witness_replay_reason:same(Recorded, Reason) of
                true -> stopped(ended, witness_replay_process:pop(P));
                false ->
                    case was_killed(Recorded, P) of
                        true -> suspected(Recorded, Entry, {exits, Reason}, P);
                        false -> diverged(Entry, {exits, Reason}, P)
                    end
            end;
        _ -> diverged(Entry, {exits, Reason}, P)
    end.

%% A signal with the reason `normal' kills nobody. A reason with a stack trace is that of a crash: its own, or one that came
%% over a link, and then somebody else has it too.
was_killed(normal, _) -> false;
was_killed(Reason, #process{id = Id}) ->
    not witness_replay_reason:has_stack(Reason)
        orelse witness_replay_log:shared(Id, fun(Other) -> witness_replay_reason:same(Other, Reason) end).

%% It has ended by itself, where the log has another reason: so a signal came at the last moment. Whether anybody has sent one
%% is known when all have done what they did.
-spec suspected(term(), witness_log_recording:run(), term(), #process{}) -> no_return().
suspected(Reason, Entry, Wanted, #process{pid = Pid} = P) ->
    told({suspected, Pid, Reason, told_of_divergence(Entry, Wanted, P)}),
    stopped(killed, witness_replay_process:pop(P)).

-doc "Whether a process that was replayed has sent an exit signal to this one, by which it may have ended with this reason.".
-spec signalled(pid(), term()) -> boolean().
signalled(Pid, Reason) ->
    lists:any(fun({_, kill}) -> Reason =:= killed;
                 ({_, Sent}) -> witness_replay_reason:same(Reason, Sent)
              end, ets:lookup(?SIGNALS, Pid)).

%% It has nobody to tell but whoever looks after all, and runs no code of the program any more.
-spec stopped(ended | killed | cut, #process{}) -> no_return().
stopped(How, #process{id = Id, at = At, flow = Flow} = P) ->
    ok = witness_replay_flow:ended(Id, Flow),
    ok = witness_replay_tell:ended(How, P),
    witness_replay_log:forget(Id),
    told({ended, Id, How, At}),
    gone().

-spec gone() -> no_return().
gone() ->
    exit(erlang:self(), kill),
    receive after infinity -> gone() end.

told(What) ->
    #{controller := Controller} = persistent_term:get(?MODULE),
    Controller ! {witness_replay, What}.

keep(P) -> put(?KEY, P).

peeked(#process{at = At, limit = Limit} = P) when At >= Limit -> peeked(witness_replay_stop:wait(P));
peeked(P) -> looked(P).

%% Without being stopped.
looked(P) ->
    case witness_replay_process:peek(P) of
        {error, Error} ->
            told({unreadable, Error}),
            gone();
        Peeked -> Peeked
    end.

%% The entry is none that answers what the program wants.
-spec unanswered(witness_log_recording:run() | done, term(), #process{}) -> no_return().
unanswered(done, _, P) -> stopped(cut, P);
unanswered({exit, Reason} = Entry, Wanted, P) ->
    case was_killed(Reason, P) of
        true -> stopped(killed, witness_replay_process:pop(P));
        false -> diverged(Entry, Wanted, P)
    end;
unanswered(Entry, Wanted, P) -> diverged(Entry, Wanted, P).

-spec diverged(witness_log_recording:run() | done, term(), #process{}) -> no_return().
diverged(Entry, Wanted, P) ->
    told({diverged, told_of_divergence(Entry, Wanted, P)}),
    gone().

told_of_divergence(Entry, Wanted, #process{id = Id, at = At, recent = Recent}) ->
    {current_stacktrace, Stack} = process_info(erlang:self(), current_stacktrace),
    #{id => Id, at => At + 1, log => Entry, program => Wanted, stack => stack(Stack),
      recent => lists:reverse(lists:sublist(Recent, 10))}.

-doc false.
-spec self() -> pid().
self() ->
    case get(?KEY) of
        #process{pid = Pid} -> Pid;
        _ -> erlang:self()
    end.

-doc false.
spawn(erlang, Function, Args) ->
    case get(?KEY) of
        #process{} = P -> spawned(Function, Args, peeked(P));
        _ -> erlang:apply(erlang, Function, Args)
    end.

spawned(Function, Args, {{spawn, Child}, P}) ->
    ok = witness_replay_flow:begins(P#process.id, P#process.flow),
    {Pid, _} = known(Child),
    Start = started_with(Args),
    ok = witness_replay_tell:leads({with, Function, lists:last(Args)}, P),
    ok = witness_replay_tell:spawned(Child, Start, P),
    begun(Child, Start),
    P1 = witness_replay_process:pop(P),
    MFA = {erlang, Function, length(Args)},
    case looked(P1) of
        {{result, MFA, Value}, P2} -> returned(MFA, Args, Value, P2);
        {_, P2} ->
            keep(P2),
            Pid
    end;
spawned(Function, Args, {Entry, P}) -> answered({Entry, P}, erlang, Function, Args).

%% With a node or without one, a fun or a function with its arguments.
started_with([Fun | _]) when is_function(Fun) -> {erlang, apply, [Fun, []]};
started_with([_, Fun | _]) when is_function(Fun) -> {erlang, apply, [Fun, []]};
started_with([Module, Function, Args | _]) when is_list(Args) -> {Module, Function, Args};
started_with([_, Module, Function, Args | _]) -> {Module, Function, Args}.

begun(Id, MFA) ->
    Slot = slot(Id),
    told({begun, Id, Slot}),
    ok = witness_replay_flow:begun(Id, witness_replay_flow:here()),
    Slot ! {witness_begin, MFA},
    ok.

-doc false.
hibernate(erlang, hibernate, Args) ->
    case {get(?KEY), Args} of
        {#process{}, []} -> ok;
        {#process{}, MFA} ->
            %% The stack is thrown away: whoever sleeps again and again does not grow.
            erlang:self() ! witness_awake,
            erlang:hibernate(?MODULE, awake, [MFA]);
        _ -> erlang:apply(erlang, hibernate, Args)
    end.

-doc false.
-spec awake([term()]) -> no_return().
awake([Module, Function, Args]) ->
    receive witness_awake -> run(Module, Function, Args) end.

%% --- messages --------------------------------------------------------------------

-doc false.
take(Module, Match, Bound, Time) ->
    case get(?KEY) of
        #process{at = At, limit = Limit} = P when At >= Limit ->
            case witness_replay_stop:wait_in(Module, matching(Module, Match, Bound), P) of
                #process{} = P1 -> taken(matching(Module, Match, Bound), timed(Time), P1);
                Request ->
                    put(?KEY, {asked, Module, P}),
                    Request
            end;
        %% Until it is back here it was outside.
        {asked, Module, P} ->
            keep(P),
            take(Module, Match, Bound, Time);
        #process{} = P -> taken(matching(Module, Match, Bound), timed(Time), P);
        _ -> received(Module, Match, Bound, timed(Time))
    end.

matching(_, none, _) -> fun(_) -> false end;
matching(Module, Match, Bound) -> fun(Msg) -> Module:Match(Bound, Msg) end.

timed(infinity) -> infinity;
timed(Time) when is_integer(Time), Time >= 0, Time =< 16#ffffffff -> Time;
timed(_) -> erlang:error(timeout_value).

received(_, none, _, Time) ->
    receive after Time -> timeout end;
received(Module, Match, Bound, Time) ->
    prim_eval:'receive'(fun(Msg) -> case Module:Match(Bound, Msg) of true -> [Msg]; false -> nomatch end end, Time).

taken(Match, Time, P) ->
    case peeked(P) of
        {{from, From, _}, P1} ->
            case witness_replay_process:has_none(From, P1) of
                true -> next(From, Match, P1);
                false -> from(From, Match, P1)
            end;
        {{content, Logged}, P1} ->
            Msg = known_funs(Logged),
            case Match(Msg) of
                true ->
                    ok = followed(Msg, P1),
                    witness_replay_tell:took(outside, P1, checked(Msg, told_of(Msg, witness_replay_process:pop(P1))));
                false -> diverged({content, Msg}, {'receive', Time}, P1)
            end;
        {{timeout, _}, P1} when Time =/= infinity ->
            ok = witness_replay_tell:did(timeout, P1),
            keep(witness_replay_process:pop(P1)),
            timeout;
        {Entry, P1} -> unanswered(Entry, {'receive', Time}, P1)
    end.

followed({'DOWN', _, process, Pid, _}, #process{id = Id, flow = Flow}) when is_pid(Pid) ->
    case ets:lookup(?PIDS, Pid) of
        [{_, Other}] when Other =/= Id -> witness_replay_flow:follows(Id, Other, slot(Other), Flow);
        _ -> ok
    end;
followed(_, _) -> ok.

%% An alias goes with its monitor.
told_of({'DOWN', Monitor, _, _, _}, P) when is_reference(Monitor) -> witness_replay_process:unalias({monitor, Monitor}, P);
told_of(_, P) -> P.

from(From, Match, P) ->
    case witness_replay_process:queued(From, Match, P) of
        {ok, Msg, P1} -> took(From, Msg, P1);
        {none, P1} ->
            {Sender, Via, Msg} = arrival(From, P1),
            from(From, Match, arrived(From, Sender, Via, Msg, P1))
    end.

%% The same where nothing is there of this sender: what comes first mostly is what is wanted.
next(From, Match, P) ->
    case arrival(From, P) of
        {From, none, Msg} ->
            case Match(Msg) of
                true -> took(From, Msg, P);
                false -> from(From, Match, witness_replay_process:arrived(From, none, Msg, P))
            end;
        {From, Via, Msg} -> from(From, Match, witness_replay_process:arrived(From, Via, Msg, P));
        {Sender, Via, Msg} -> next(From, Match, witness_replay_process:arrived(Sender, Via, Msg, P))
    end.

took(From, Msg, #process{id = Id, flow = Flow, plain = Plain} = P) ->
    ok = witness_replay_flow:took(Id, Flow),
    Passed = witness_replay_process:pop(P),
    case Plain of
        true -> taken_is(Msg, Passed);
        false -> witness_replay_tell:took(From, P, checked(Msg, Passed))
    end.

%% The next message of anybody.
arrival(From, #process{id = Id, flow = Flow}) ->
    receive
        {witness_sent, Sender, Via, Msg} -> {Sender, Via, Msg}
    after 0 ->
        ok = witness_replay_flow:waits(Id, From, Flow),
        receive
            {witness_sent, Sender, Via, Msg} ->
                ok = witness_replay_flow:runs(Id, Flow),
                {Sender, Via, Msg}
        end
    end.

%% With all that came before the next one of the sender that is waited for.
arrived(From, From, Via, Msg, P) -> witness_replay_process:arrived(From, Via, Msg, P);
arrived(From, Sender, Via, Msg, P) ->
    {Next, NextVia, NextMsg} = arrival(From, P),
    arrived(From, Next, NextVia, NextMsg, witness_replay_process:arrived(Sender, Via, Msg, P)).

%% What the log says of the message besides.
checked(Msg, P) ->
    case persistent_term:get(?MODULE) of
        #{checked := false} -> taken_is(Msg, P);
        #{checked := true} ->
            case looked(P) of
                {{hash, Hash}, P1} ->
                    case <<(erlang:phash2(Msg) bor (erlang:phash2([Msg]) bsl 32)):64/little>> of
                        Hash -> checked(Msg, witness_replay_process:pop(P1));
                        _ -> diverged({hash, Hash}, {took, Msg}, P1)
                    end;
                {{contents, Msg}, P1} -> checked(Msg, witness_replay_process:pop(P1));
                {{contents, Other}, P1} -> diverged({contents, Other}, {took, Msg}, P1);
                {_, P1} -> taken_is(Msg, P1)
            end
    end.

taken_is(Msg, P) ->
    keep(P),
    [Msg].

-doc false.
wait(prim_eval, 'receive', [Match, Time]) ->
    case get(?KEY) of
        #process{} = P ->
            case taken(fun(Msg) -> Match(Msg) =/= nomatch end, timed(Time), P) of
                [Msg] -> Match(Msg);
                timeout -> timeout
            end;
        _ -> prim_eval:'receive'(Match, Time)
    end.

-doc false.
send(erlang, Function, [To, Msg | _] = Args) ->
    case get(?KEY) of
        #process{plain = true, peer = {To, Id, Slot}} = P when Function =:= send, tl(tl(Args)) =:= [] ->
            delivered(Id, Slot, none, Msg, P),
            Msg;
        #process{} = P ->
            routed(To, Msg, Function, Args, told_sent(To, Msg, P)),
            announced(persistent_term:get(?MODULE)),
            case {Function, Args} of
                {send_nosuspend, _} -> true;
                {send, [_, _, _]} -> ok;
                {_, _} -> Msg
            end;
        _ -> erlang:apply(erlang, Function, Args)
    end.

%% What was sent is seen where it is taken, so it is not compared here.
announced(#{announced := true}) ->
    case looked(get(?KEY)) of
        {{sent, _, _}, P} -> keep(witness_replay_process:pop(P));
        {_, P} -> keep(P)
    end;
announced(#{announced := false}) -> ok.

%% Before it is on its way. What is sent to a name is told when the name was found, and other terms are nobody.
told_sent(To, Msg, P) when is_reference(To) ->
    _ = [ok = witness_replay_tell:leads({leads, Id}, P) || witness_replay_tell:is_whole(), {_, Id} <- aliased(To)],
    surely_sent(To, Msg, P);
told_sent(To, Msg, P) when is_pid(To); is_port(To) -> surely_sent(To, Msg, P);
told_sent({Name, Node} = To, Msg, P) when is_atom(Name), is_atom(Node), Node =/= node() -> surely_sent(To, Msg, P);
told_sent(_, _, P) -> P.

surely_sent(To, Msg, P) ->
    case witness_replay_tell:is_on() of
        false -> P;
        true ->
            {Entry, P1} = looked(P),
            keep(P1),
            ok = witness_replay_tell:sent(To, Msg, Entry, P1),
            P1
    end.

%% What a process sends to itself with options, or by an alias, comes from the log.
routed(To, _, _, [_, _, _], #process{pid = To}) -> ok;
routed(To, Msg, _, _, P) when is_pid(To) ->
    case ets:lookup(?PIDS, To) of
        [{_, Id}] ->
            Slot = slot(Id),
            P1 = P#process{peer = {To, Id, Slot}},
            keep(P1),
            delivered(Id, Slot, none, Msg, P1);
        [] -> outward(Msg)
    end;
routed(To, Msg, _, _, P) when is_reference(To) ->
    case aliased(To) of
        [{_, Id}] -> delivered(Id, slot(Id), To, Msg, P);
        [] -> outward(Msg)
    end;
routed(To, Msg, _, _, _) when is_port(To) -> outward(Msg);
routed(To, Msg, Function, Args, P) when is_atom(To) -> named(Msg, Function, Args, P);
routed({Name, Node}, Msg, Function, Args, P) when is_atom(Name), Node =:= node() -> named(Msg, Function, Args, P);
routed({Name, Node}, Msg, _, _, _) when is_atom(Name), is_atom(Node) -> outward(Msg);
routed(_, _, Function, Args, _) -> raised(error, badarg, erlang, Function, Args).

named(Msg, Function, Args, P) ->
    MFA = {erlang, Function, length(Args)},
    case peeked(P) of
        {{named, 0}, P1} ->
            P2 = witness_replay_process:pop(P1),
            keep(P2),
            _ = surely_sent(hd(Args), Msg, P2),
            outward(Msg);
        {{named, Id}, P1} ->
            Passed = witness_replay_process:pop(P1),
            keep(Passed),
            ok = witness_replay_tell:leads({leads, Id}, Passed),
            P2 = surely_sent(hd(Args), Msg, Passed),
            case {Args, P2} of
                {[_, _, _], #process{id = Id}} -> ok;
                _ -> delivered(Id, slot(Id), none, Msg, P2)
            end;
        {{raise, MFA, Class, Reason}, P1} ->
            keep(witness_replay_process:pop(P1)),
            raised(Class, Reason, erlang, Function, Args);
        {Entry, P1} -> unanswered(Entry, {send, hd(Args)}, P1)
    end.

%% Messages that the recorder keeps with their contents, whoever has sent them, come from the log.
delivered(_, _, _, {'EXIT', _, _}, _) -> ok;
delivered(_, _, _, {'DOWN', _, _, _, _}, _) -> ok;
delivered(_, _, _, {spawn_reply, _, _, _}, _) -> ok;
delivered(_, _, _, {_, Request, ok, Child}, _) when is_reference(Request), is_pid(Child) -> ok;
delivered(Id, _, Via, _, #process{id = Id}) when Via =/= none -> ok;
delivered(Id, Slot, Via, Msg, #process{id = Me, flow = Flow} = P) ->
    Slot ! {witness_sent, Me, Via, Msg},
    case witness_replay_process:may_be_killed(P) of
        true -> throttled(Slot);
        false -> witness_replay_flow:sent(Me, Id, Flow)
    end.

%% A process that was killed while it did nothing but send would go on for ever.
throttled(Slot) ->
    case process_info(Slot, message_queue_len) of
        {message_queue_len, N} when N > ?CROWD -> receive after 10 -> throttled(Slot) end;
        _ -> ok
    end.

%% Nobody is told outside but, if that is wanted, whoever watches.
outward({io_request, _, _, Request}) -> printed(Request);
outward(_) -> ok.

printed(Request) ->
    case persistent_term:get(?MODULE) of
        #{mirror := true} -> told({output, Request});
        #{mirror := false} -> ok
    end,
    ok.

%% --- results ---------------------------------------------------------------------

-doc false.
result(_, Module, Function, Args) ->
    case get(?KEY) of
        #process{} = P -> answered(peeked(P), Module, Function, Args);
        _ -> erlang:apply(Module, Function, Args)
    end.

%% What such functions do inside is outside. Processes that they start are told by the log.
-doc false.
foreign(_, Module, Function, Args) ->
    case get(?KEY) of
        #process{} = P -> foreign_answered(peeked(P), Module, Function, Args);
        _ -> erlang:apply(Module, Function, Args)
    end.

foreign_answered({{spawn, Child}, P}, Module, Function, Args) ->
    case known(Child) of
        {_, {_, _, Arguments} = MFA} when is_list(Arguments) ->
            ok = witness_replay_flow:begins(P#process.id, P#process.flow),
            ok = witness_replay_tell:spawned(Child, MFA, P),
            begun(Child, MFA),
            foreign_answered(peeked(witness_replay_process:pop(P)), Module, Function, Args);
        _ -> diverged({spawn, Child}, {call, Module, Function, Args}, P)
    end;
foreign_answered(Peeked, Module, Function, Args) -> answered(Peeked, Module, Function, Args).

answered({Entry, P}, Module, Function, Args) ->
    MFA = {Module, Function, length(Args)},
    case Entry of
        {result, MFA, Value} -> returned(MFA, Args, Value, P);
        {raise, MFA, Class, Reason} ->
            ok = witness_replay_tell:did({raise, MFA, Args, Class, Reason}, P),
            keep(witness_replay_process:pop(P)),
            raised(Class, Reason, Module, Function, Args);
        _ -> unanswered(Entry, {call, Module, Function, Args}, P, MFA)
    end.

%% Of calls that make a reference only those that return are in the log. They fail where their arguments are wrong.
-spec unanswered(witness_log_recording:run() | done, term(), #process{}, mfa()) -> no_return().
unanswered(Entry, Call, P, {erlang, Function, _}) when Function =:= monitor; Function =:= alias; Function =:= make_ref ->
    {call, Module, Function, Args} = Call,
    try erlang:apply(Module, Function, Args) of
        Ref ->
            true = is_reference(Ref) andalso erlang:demonitor(Ref, [flush]),
            unanswered(Entry, Call, P)
    catch
        error:Reason -> raised(error, Reason, Module, Function, Args)
    end;
unanswered(Entry, Call, P, _) -> unanswered(Entry, Call, P).

returned(MFA, Args, Value, P) ->
    ok = witness_replay_tell:did({call, MFA, Args, Value}, P),
    keep(remembered(MFA, Args, Value, witness_replay_process:pop(P))),
    real(MFA, Args, Value).

%% What is made of these is only good for functions that are executed.
real({ets, match_spec_compile, 1}, Args, _) -> erlang:apply(ets, match_spec_compile, Args);
real(_, _, Value) -> known_funs(Value).

known_funs(Value) when is_atom(Value); is_number(Value); is_pid(Value); is_reference(Value); is_binary(Value) -> Value;
known_funs(Value) -> unseen(witness_replay_fun, local, [Value]).

%% Which aliases are active.
remembered({erlang, monitor, 3}, [_, _, Options], Ref, P) -> monitored(Options, Ref, P);
remembered({erlang, alias, 0}, _, Ref, P) -> alias(Ref, explicit, P);
remembered({erlang, alias, 1}, [Options], Ref, P) ->
    alias(Ref, case lists:member(reply, Options) of true -> once; false -> explicit end, P);
remembered({erlang, unalias, 1}, [Ref], _, P) -> witness_replay_process:unalias({any, Ref}, P);
remembered({erlang, demonitor, 2}, [Ref, _], _, P) -> witness_replay_process:unalias({monitor, Ref}, P);
remembered({erlang, Spawn, _}, Args, {_, Ref}, P) when Spawn =:= spawn_opt, is_reference(Ref) -> requested(Args, Ref, P);
remembered({erlang, Spawn, _}, Args, Ref, P) when Spawn =:= spawn_request, is_reference(Ref) -> requested(Args, Ref, P);
remembered(_, _, _, P) -> P.

requested(Args, Ref, P) ->
    case lists:last(Args) of
        Options when is_list(Options) ->
            case lists:keyfind(monitor, 1, [Option || Option <- Options, is_tuple(Option)]) of
                {monitor, Given} when is_list(Given) -> monitored(Given, Ref, P);
                _ -> P
            end;
        _ -> P
    end.

monitored(Options, Ref, P) ->
    case lists:keyfind(alias, 1, Options) of
        {alias, explicit_unalias} -> alias(Ref, explicit, P);
        {alias, demonitor} -> alias(Ref, monitor, P);
        {alias, reply_demonitor} -> alias(Ref, once, P);
        _ -> P
    end.

alias(Ref, How, #process{id = Id} = P) ->
    _ = ets:insert_new(?ALIASES, {witness_replay_process:owner(Ref), Id}),
    %% Another one's there would be told by the end of this process.
    [{_, Id}] = aliased(Ref),
    witness_replay_process:alias(Ref, How, P).

%% A row for each process that has made one, instead of one for each call.
aliased(Ref) -> ets:lookup(?ALIASES, witness_replay_process:owner(Ref)).

-spec raised(error | exit | throw, term(), module(), atom(), [term()]) -> no_return().
raised(Class, Reason, Module, Function, Args) ->
    {current_stacktrace, Stack} = process_info(erlang:self(), current_stacktrace),
    erlang:raise(Class, Reason, [{Module, Function, Args, []} | stack(Stack)]).

-doc false.
information(erlang, process_info, Args) -> shown(result(0, erlang, process_info, Args)).

shown({dictionary, Entries}) when is_list(Entries) -> {dictionary, [Entry || Entry <- Entries, not is_own(Entry)]};
shown([_ | _] = Items) -> [shown(Item) || Item <- Items];
shown(Item) -> Item.

is_own({?KEY, _}) -> true;
is_own(_) -> false.

-doc false.
dictionary(erlang, get, []) -> [Entry || Entry <- get(), not is_own(Entry)];
dictionary(erlang, get_keys, Args) -> [Key || Key <- erlang:apply(erlang, get_keys, Args), Key =/= ?KEY];
dictionary(erlang, erase, []) ->
    All = erase(),
    _ = [put(?KEY, P) || {?KEY, P} <- All],
    [Entry || Entry <- All, not is_own(Entry)].

%% As while it was recorded.
-doc false.
token(erlang, seq_trace, [label, _]) -> 0;
token(erlang, seq_trace, [serial, _]) -> {0, 0};
token(erlang, seq_trace, [Flag, _]) when Flag =/= sequential_trace_token -> false;
token(erlang, seq_trace_print, _) -> false;
token(erlang, _, _) -> [].

-doc false.
halt(erlang, halt, Args) ->
    case get(?KEY) of
        #process{} = P ->
            {Entry, P1} = peeked(P),
            unanswered(Entry, {call, erlang, halt, Args}, P1);
        _ -> erlang:apply(erlang, halt, Args)
    end.

-doc false.
effect(erlang, Function, Args) ->
    case get(?KEY) of
        #process{} = P ->
            true = possible(Function, Args),
            ok = witness_replay_tell:acts({effect, {erlang, Function, length(Args)}, Args}, P),
            effected(Function, Args, P);
        _ -> erlang:apply(erlang, Function, Args)
    end.

possible(Function, [To | _] = Args) when Function =:= exit; Function =:= exit_signal ->
    is_pid(To) orelse is_port(To) orelse is_reference(To) orelse raised(error, badarg, erlang, Function, Args);
possible(unlink, [To] = Args) -> is_pid(To) orelse is_port(To) orelse raised(error, badarg, erlang, unlink, Args);
possible(demonitor, [Ref] = Args) -> is_reference(Ref) orelse raised(error, badarg, erlang, demonitor, Args);
possible(_, _) -> true.

%% A signal to itself has come when the call returns.
effected(Function, [Pid | _], #process{pid = Pid} = P) when Function =:= exit; Function =:= exit_signal ->
    case peeked(P) of
        {{exit, _}, P1} -> stopped(killed, witness_replay_process:pop(P1));
        {_, P1} ->
            keep(P1),
            true
    end;
effected(Function, [Pid, Reason | _], _) when Function =:= exit; Function =:= exit_signal ->
    ets:insert(?SIGNALS, {Pid, Reason});
effected(demonitor, [Ref], P) ->
    keep(witness_replay_process:unalias({monitor, Ref}, P)),
    true;
effected(display, [Term], _) ->
    printed({put_chars, unicode, io_lib, format, ["~tw\n", [Term]]}),
    true;
effected(_, _, _) -> true.

%% Code that a program itself has loaded was not woven: such a recording is refused.
-doc false.
load(erlang, Function, Args) -> erlang:apply(erlang, Function, Args).

-doc false.
unseen(Module, Function, Args) ->
    case get(?KEY) of
        #process{} = P ->
            put(?KEY, outside),
            try
                erlang:apply(Module, Function, Args)
            after
                put(?KEY, P)
            end;
        _ -> erlang:apply(Module, Function, Args)
    end.

-doc false.
leave(erlang, Function, Args) ->
    ok = leaving(Function, Args),
    erlang:apply(erlang, Function, Args).

-doc false.
leaving(exit, [normal]) -> ok;
leaving(raise, [exit, normal, _]) -> ok;
leaving(Function, [Class | _] = Args) when Function =:= exit; Class =:= exit ->
    case {get(?KEY), persistent_term:get(?MODULE, off)} of
        {#process{} = P, #{marked := true}} ->
            MFA = {erlang, Function, length(Args)},
            case peeked(P) of
                {{result, MFA, ok}, P1} ->
                    keep(witness_replay_process:pop(P1)),
                    ok;
                {Entry, P1} -> unanswered(Entry, {call, erlang, Function, Args}, P1)
            end;
        _ -> ok
    end;
leaving(raise, _) -> ok.

%% --- exceptions ------------------------------------------------------------------

-doc false.
stack(Stack) -> [Frame || Frame <- Stack, not is_own_frame(Frame)].

is_own_frame(Frame) when is_tuple(Frame), tuple_size(Frame) > 0 ->
    lists:member(element(1, Frame), [?MODULE, witness_replay_process, witness_replay_flow, witness_replay_log,
                                     witness_replay_tell, witness_replay_stop]);
is_own_frame(_) -> false.

-doc false.
caught({'EXIT', {Reason, [Frame | _] = Stack}}) when tuple_size(Frame) =:= 4 -> {'EXIT', {Reason, stack(Stack)}};
caught(Value) -> Value.

%% --- what is known at run time only ----------------------------------------------

-doc false.
apply(erlang, apply, [Module, Function, Args]) ->
    apply(Module, Function, Args);
apply(Module, Function, Args) ->
    case get(?KEY) of
        #process{} ->
            case class(Module, Function, length(Args)) of
                none -> erlang:apply(Module, Function, Args);
                self -> self();
                {Class, Number} -> ?MODULE:Class(Number, Module, Function, Args);
                Class -> ?MODULE:Class(Module, Function, Args)
            end;
        _ -> erlang:apply(Module, Function, Args)
    end.

-doc false.
make_fun(erlang, make_fun, [Module, Function, Arity]) -> function(Module, Function, Arity).

-doc false.
function(Module, Function, Arity) ->
    case class(Module, Function, Arity) of
        none -> erlang:make_fun(Module, Function, Arity);
        _ -> witness_weave_runtime:calling(Arity, fun(Args) -> apply(Module, Function, Args) end)
    end.

class(Module, Function, Arity) ->
    case witness_replay_calls:known(Module, Function, Arity) of
        none ->
            case persistent_term:get(?MODULE, off) of
                #{calls := #{{Module, Function, Arity} := Number}} -> {foreign, Number};
                _ -> none
            end;
        Class -> Class
    end.
