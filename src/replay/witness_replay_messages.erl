-module(witness_replay_messages).
-moduledoc """
Receives and sends of replayed processes.

*Receives* (`take/4`, `wait/2`). The next entry in the log of the receiver names the message: the earliest one of a sender that
matches (`from`), one with its content (`content`), or none, since the time is over (`timeout`). Messages of other senders that
come meanwhile are queued, by sender (`m:witness_replay_process`). If the log has a hash or the contents of a message, the
message that was taken is compared with it.

*Sends* (`send/3`). A message goes to the live process of the receiver (`m:witness_replay_proxies`), with the identifier of the
sender. The sender may be throttled (`m:witness_replay_backpressure`). *Invariant:* each message comes from one source. Messages that
the recorder keeps with their contents come from the log, and are not sent.
""".

-export([take/4, wait/2, send/3]).

-include("src/replay/witness_replay_process.hrl").

%% A process that has nothing left but its end, and sends, waits while more messages than this are in the mailbox of its
%% receiver.
-define(CROWD, 10_000).

%% --- receives --------------------------------------------------------------------

-doc "A `receive` of woven code, as `m:witness_weave_runtime` defines it.".
-spec take(module(), fun((tuple(), term()) -> boolean()) | none, tuple(), timeout() | term()) -> [term()] | timeout | term().
take(Module, Match, Bound, Time) ->
    case get(?KEY) of
        #process{at = At, limit = Limit} = P when At >= Limit ->
            case witness_replay_breakpoint:wait_in(Module, matching(Match, Bound), P) of
                #process{} = P1 -> taken(matching(Match, Bound), timed(Time), P1);
                Request ->
                    put(?KEY, {asked, Module, P}),
                    Request
            end;
        %% The process has answered a request for its state (`m:witness_replay_breakpoint`). Until it is back here it was outside.
        {asked, Module, P} ->
            witness_replay_interpreter:keep(P),
            take(Module, Match, Bound, Time);
        #process{} = P -> taken(matching(Match, Bound), timed(Time), P);
        _ -> received(Match, Bound, timed(Time))
    end.

matching(none, _) -> fun(_) -> false end;
matching(Match, Bound) -> fun(Msg) -> Match(Bound, Msg) end.

timed(infinity) -> infinity;
timed(Time) when is_integer(Time), Time >= 0, Time =< 16#ffffffff -> Time;
timed(_) -> erlang:error(timeout_value).

received(none, _, Time) ->
    receive after Time -> timeout end;
received(Match, Bound, Time) ->
    prim_eval:'receive'(fun(Msg) -> case Match(Bound, Msg) of true -> [Msg]; false -> nomatch end end, Time).

taken(Match, Time, P) ->
    case witness_replay_interpreter:peeked(P) of
        {{from, From, _}, P1} ->
            case witness_replay_process:has_none(From, P1) of
                true -> next(From, Match, P1);
                false -> from(From, Match, P1)
            end;
        {{content, Logged}, P1} ->
            Msg = witness_replay_results:known_funs(Logged),
            case Match(Msg) of
                true ->
                    ok = followed(Msg, P1),
                    witness_replay_emitter:took(outside, P1, checked(Msg, told_of(Msg, witness_replay_process:pop(P1))));
                false -> witness_replay_interpreter:diverged({content, Msg}, {'receive', Time}, P1)
            end;
        {{timeout, _}, P1} when Time =/= infinity ->
            ok = witness_replay_emitter:did(timeout, P1),
            witness_replay_interpreter:keep(witness_replay_process:pop(P1)),
            timeout;
        {Entry, P1} -> witness_replay_interpreter:unanswered(Entry, {'receive', Time}, P1)
    end.

followed({'DOWN', _, process, Pid, _}, #process{id = Id, flow = Flow}) when is_pid(Pid) ->
    case witness_replay_proxies:receiver(Pid) of
        {Other, {Slot, OtherFlow}} when Other =/= Id -> witness_replay_backpressure:follows(Id, Flow, Other, Slot, OtherFlow);
        _ -> ok
    end;
followed(_, _) -> ok.

%% If its monitor has ended, an alias may end too.
told_of({'DOWN', Monitor, _, _, _}, P) when is_reference(Monitor) -> witness_replay_process:unalias({monitor, Monitor}, P);
told_of(_, P) -> P.

from(From, Match, P) ->
    case witness_replay_process:queued(From, Match, P) of
        {ok, Msg, P1} -> took(From, Msg, P1);
        {none, P1} -> next(From, Match, P1)
    end.

%% The same if no queued message of this sender matches: these are not checked again, only new ones.
next(From, Match, P) ->
    case arrival(From, P) of
        {From, Via, Msg} ->
            case witness_replay_process:would_take(Via, Msg, Match, P) of
                {true, P1} -> took(From, Msg, P1);
                false -> next(From, Match, witness_replay_process:arrived(From, Via, Msg, P));
                never -> next(From, Match, P)
            end;
        {Sender, Via, Msg} -> next(From, Match, witness_replay_process:arrived(Sender, Via, Msg, P))
    end.

took(From, Msg, #process{id = Id, flow = Flow, plain = Plain} = P) ->
    ok = witness_replay_backpressure:took(Id, Flow),
    Passed = witness_replay_process:pop(P),
    case Plain of
        true -> taken_is(Msg, Passed);
        false -> witness_replay_emitter:took(From, P, checked(Msg, Passed))
    end.

%% The next message of any sender. No other message that comes is a list.
arrival(From, #process{flow = Flow}) ->
    receive
        [Sender | Msg] -> sent_by(Sender, Msg)
    after 0 ->
        ok = witness_replay_backpressure:waits(From, Flow),
        receive
            [Sender | Msg] ->
                ok = witness_replay_backpressure:runs(Flow),
                sent_by(Sender, Msg)
        end
    end.

sent_by({Sender, Alias}, Msg) -> {Sender, Alias, Msg};
sent_by(Sender, Msg) -> {Sender, none, Msg}.

%% Compares the message with its hash or contents, if the log has them.
checked(Msg, P) ->
    case witness_replay_interpreter:given() of
        #{checked := false} -> taken_is(Msg, P);
        #{checked := true} ->
            case witness_replay_interpreter:looked(P) of
                {{hash, Hash}, P1} ->
                    case <<(erlang:phash2(Msg) bor (erlang:phash2([Msg]) bsl 32)):64/little>> of
                        Hash -> checked(Msg, witness_replay_process:pop(P1));
                        _ -> witness_replay_interpreter:diverged({hash, Hash}, {took, Msg}, P1)
                    end;
                {{contents, Msg}, P1} -> checked(Msg, witness_replay_process:pop(P1));
                {{contents, Other}, P1} ->
                    case witness_replay_results:known_funs(Other) of
                        Msg -> checked(Msg, witness_replay_process:pop(P1));
                        _ -> witness_replay_interpreter:diverged({contents, Other}, {took, Msg}, P1)
                    end;
                {_, P1} -> taken_is(Msg, P1)
            end
    end.

taken_is(Msg, P) ->
    witness_replay_interpreter:keep(P),
    [Msg].

-doc "A `receive` by a function, as `prim_eval` has it.".
-spec wait(fun((term()) -> term()), term()) -> term().
wait(Match, Time) ->
    case get(?KEY) of
        #process{} = P ->
            case taken(fun(Msg) -> Match(Msg) =/= nomatch end, timed(Time), P) of
                [Msg] -> Match(Msg);
                timeout -> timeout
            end;
        _ -> prim_eval:'receive'(Match, Time)
    end.

%% --- sends -----------------------------------------------------------------------

-doc "A send by this function of `erlang`. The result is that of the function.".
-spec send(atom(), [term()], witness_replay_process:process() | undefined) -> term().
send(Function, [To, Msg | Options] = Args, Process) ->
    case Process of
        #process{plain = true, peer = {To, Id, Slot}} = P when Function =:= send, Options =:= [] ->
            delivered(Id, Slot, none, Msg, P),
            Msg;
        #process{} = P ->
            witness_record_runtime:are_options(Options) orelse witness_replay_results:raised(error, badarg, erlang, Function, Args),
            routed(To, Msg, Function, Args, told_sent(To, Msg, P)),
            announced(witness_replay_interpreter:given()),
            case {Function, Options} of
                {send_nosuspend, _} -> returned(true, Function, Args);
                {send, [_]} -> returned(ok, Function, Args);
                {_, []} -> Msg
            end;
        _ -> erlang:apply(erlang, Function, Args)
    end.

%% A result that does not follow from the arguments is in the log.
returned(Value, Function, Args) ->
    MFA = {erlang, Function, length(Args)},
    case witness_replay_interpreter:looked(get(?KEY)) of
        {{result, MFA, Other}, P} ->
            witness_replay_interpreter:keep(witness_replay_process:pop(P)),
            Other;
        {_, P} ->
            witness_replay_interpreter:keep(P),
            Value
    end.

%% The receiver checks the message when it takes it, so it is not compared here.
announced(#{announced := true}) ->
    case witness_replay_interpreter:looked(get(?KEY)) of
        {{sent, _, _}, P} -> witness_replay_interpreter:keep(witness_replay_process:pop(P));
        {_, P} -> witness_replay_interpreter:keep(P)
    end;
announced(#{announced := false}) -> ok.

%% A message is reported before it is sent. One to a name is reported when the log has said which process has the name. Other
%% terms are no receivers.
told_sent(To, Msg, P) when is_reference(To) ->
    _ = [ok = witness_replay_emitter:leads({leads, Id}, P)
         || witness_replay_emitter:is_whole(), Id <- [witness_replay_proxies:aliased(To)], Id =/= none],
    surely_sent(To, Msg, P);
told_sent(To, Msg, P) when is_pid(To); is_port(To) -> surely_sent(To, Msg, P);
told_sent({Name, Node} = To, Msg, P) when is_atom(Name), is_atom(Node), Node =/= node() -> surely_sent(To, Msg, P);
told_sent(_, _, P) -> P.

surely_sent(To, Msg, P) ->
    case witness_replay_emitter:is_on() of
        false -> P;
        true ->
            {Entry, P1} = witness_replay_interpreter:looked(P),
            witness_replay_interpreter:keep(P1),
            ok = witness_replay_emitter:sent(To, Msg, Entry, P1),
            P1
    end.

%% A message of a process to itself with options, or by an alias, comes from the log.
routed(To, _, _, [_, _, _], #process{pid = To}) -> ok;
routed(To, Msg, _, _, #process{pid = To, id = Id, flow = Flow} = P) -> delivered(Id, {self(), Flow}, none, Msg, P);
routed(To, Msg, _, _, P) when is_pid(To) ->
    case witness_replay_proxies:receiver(To) of
        {_, none} -> ok;
        {Id, Slot} ->
            P1 = P#process{peer = {To, Id, Slot}},
            witness_replay_interpreter:keep(P1),
            delivered(Id, Slot, none, Msg, P1);
        none -> outward(Msg)
    end;
routed(To, Msg, _, _, P) when is_reference(To) ->
    case witness_replay_proxies:aliased(To) of
        none -> outward(Msg);
        Id -> delivered(Id, witness_replay_proxies:slot(Id), To, Msg, P)
    end;
routed(To, Msg, _, _, _) when is_port(To) -> outward(Msg);
routed(To, Msg, Function, Args, P) when is_atom(To) -> named(Msg, Function, Args, P);
routed({Name, Node}, Msg, Function, Args, P) when is_atom(Name), Node =:= node() -> named(Msg, Function, Args, P);
routed({Name, Node}, Msg, _, _, _) when is_atom(Name), is_atom(Node) -> outward(Msg);
routed(_, _, Function, Args, _) -> witness_replay_results:raised(error, badarg, erlang, Function, Args).

named(Msg, Function, Args, P) ->
    MFA = {erlang, Function, length(Args)},
    case witness_replay_interpreter:peeked(P) of
        {{named, 0}, P1} ->
            P2 = witness_replay_process:pop(P1),
            witness_replay_interpreter:keep(P2),
            _ = surely_sent(hd(Args), Msg, P2),
            outward(Msg);
        {{named, Id}, P1} ->
            Passed = witness_replay_process:pop(P1),
            witness_replay_interpreter:keep(Passed),
            ok = witness_replay_emitter:leads({leads, Id}, Passed),
            P2 = surely_sent(hd(Args), Msg, Passed),
            case {Args, P2} of
                {[_, _, _], #process{id = Id}} -> ok;
                _ -> delivered(Id, witness_replay_proxies:slot(Id), none, Msg, P2)
            end;
        {{raise, MFA, Class, Reason}, P1} ->
            witness_replay_interpreter:keep(witness_replay_process:pop(P1)),
            witness_replay_results:raised(Class, Reason, erlang, Function, Args);
        {Entry, P1} -> witness_replay_interpreter:unanswered(Entry, {send, hd(Args)}, P1)
    end.

%% Messages that the recorder keeps with their contents, whichever process has sent them, come from the log.
delivered(_, _, _, {'EXIT', _, _}, _) -> ok;
delivered(_, _, _, {'DOWN', _, _, _, _}, _) -> ok;
delivered(_, _, _, {spawn_reply, _, _, _}, _) -> ok;
delivered(_, _, _, {_, Request, ok, Child}, _) when is_reference(Request), is_pid(Child) -> ok;
delivered(Id, _, Via, _, #process{id = Id}) when Via =/= none -> ok;
delivered(_, none, _, _, _) -> ok;
delivered(Id, {Slot, Other}, Via, Msg, #process{id = Me, flow = Flow} = P) ->
    Slot ! [case Via of none -> Me; _ -> {Me, Via} end | Msg],
    case witness_replay_process:may_be_killed(P) of
        true -> throttled(Slot);
        false -> witness_replay_backpressure:sent(Me, Flow, Id, Other)
    end.

%% A process that was killed while it did nothing but send would go on forever.
throttled(Slot) ->
    case process_info(Slot, message_queue_len) of
        {message_queue_len, N} when N > ?CROWD -> receive after 10 -> throttled(Slot) end;
        _ -> ok
    end.

%% Nothing is sent to the outside. Output is reported, if that is wanted.
outward({io_request, _, _, Request}) -> witness_replay_interpreter:printed(Request);
outward(_) -> ok.
