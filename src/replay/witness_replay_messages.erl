-module(witness_replay_messages).
-moduledoc """
Receives and sends of replayed processes.

*Receives* (`take/4`, `wait/2`). The next entry in the log of the receiver names the message: the earliest one of a sender that
matches (`from`), one with its content (`content`), or none, since the time is over (`timeout`). Messages of other senders that
come meanwhile are queued, by sender (`m:witness_replay_process`). If the log has a hash or the contents of a message, the
message that was taken is compared with it.

*Sends* (`send/2`). A message goes to the live process of the receiver (`m:witness_replay_proxies`), with the identifier of the
sender. The sender may be throttled (`m:witness_replay_backpressure`). *Invariant:* each message comes from one source. Messages
that the recorder keeps with their contents come from the log, and are not sent.
""".

-export([take/4, wait/2, send/2]).

%% A process that has nothing left but its end, and sends, waits while more messages than this are in the mailbox of its
%% receiver.
-define(HIGH_WATER, 10_000).

%% --- receives --------------------------------------------------------------------

-doc "A `receive` of woven code, as `m:witness_weave_runtime` defines it.".
-spec take(module(), fun((tuple(), term()) -> boolean()) | none, tuple(), timeout() | term()) -> [term()] | timeout | term().
take(Module, Match, Bound, Time) ->
    case witness_replay_interpreter:current() of
        none ->
            case witness_replay_interpreter:resume(Module) of
                none -> receive_outside(Match, Bound, check_timeout(Time));
                P -> take(Module, Match, Bound, Time, P)
            end;
        P -> take(Module, Match, Bound, Time, P)
    end.

take(Module, Match, Bound, Time, P) ->
    case witness_replay_process:has_reached_limit(P) of
        false -> take_next(match_fun(Match, Bound), check_timeout(Time), P);
        true ->
            case witness_replay_breakpoint:wait_in_receive(Module, match_fun(Match, Bound), P) of
                {raised, P1} -> take_next(match_fun(Match, Bound), check_timeout(Time), P1);
                {request, Request} ->
                    witness_replay_interpreter:answer_request(Module, P),
                    [Request]
            end
    end.

match_fun(none, _) -> fun(_) -> false end;
match_fun(Match, Bound) -> fun(Msg) -> Match(Bound, Msg) end.

check_timeout(infinity) -> infinity;
check_timeout(Time) when is_integer(Time), Time >= 0, Time =< 16#ffffffff -> Time;
check_timeout(_) -> erlang:error(timeout_value).

receive_outside(none, _, Time) ->
    receive after Time -> timeout end;
receive_outside(Match, Bound, Time) ->
    prim_eval:'receive'(fun(Msg) -> case Match(Bound, Msg) of true -> [Msg]; false -> nomatch end end, Time).

take_next(Match, Time, P) ->
    case witness_replay_interpreter:next_entry(P) of
        {{from, From, _}, P1} ->
            case witness_replay_process:has_none(From, P1) of
                true -> take_arriving(From, Match, P1);
                false -> take_queued(From, Match, P1)
            end;
        {{content, Logged}, P1} ->
            Msg = witness_replay_results:local_funs(Logged),
            case Match(Msg) of
                true ->
                    ok = wait_for_end(Msg, P1),
                    witness_replay_emitter:report_take(
                        outside, P1, compare(Msg, handle_down(Msg, witness_replay_interpreter:pop_entry(P1))));
                false -> witness_replay_interpreter:diverge({content, Msg}, {'receive', Time}, P1)
            end;
        {{timeout, _}, P1} when Time =/= infinity ->
            ok = witness_replay_emitter:report_detail(timeout, P1),
            witness_replay_interpreter:put_state(witness_replay_interpreter:pop_entry(P1)),
            timeout;
        {Entry, P1} -> witness_replay_interpreter:handle_mismatch(Entry, {'receive', Time}, P1)
    end.

wait_for_end({'DOWN', _, process, Pid, _}, P) when is_pid(Pid) ->
    Id = witness_replay_process:id(P),
    case witness_replay_proxies:receiver(Pid) of
        {Other, {Proxy, OtherFlow}} when Other =/= Id ->
            witness_replay_backpressure:wait_for_end(Id, witness_replay_process:flow(P), Other, Proxy, OtherFlow);
        _ -> ok
    end;
wait_for_end(_, _) -> ok.

%% If its monitor has ended, an alias may end too.
handle_down({'DOWN', Monitor, _, _, _}, P) when is_reference(Monitor) -> witness_replay_process:unalias({monitor, Monitor}, P);
handle_down(_, P) -> P.

take_queued(From, Match, P) ->
    case witness_replay_process:dequeue(From, Match, P) of
        {ok, Msg, P1} -> finish_take(From, Msg, P1);
        {none, P1} -> take_arriving(From, Match, P1)
    end.

%% The same if no queued message of this sender matches: these are not checked again, only new ones.
take_arriving(From, Match, P) ->
    case receive_message(From, P) of
        {From, Via, Msg} ->
            case witness_replay_process:would_take(Via, Msg, Match, P) of
                {true, P1} -> finish_take(From, Msg, P1);
                false -> take_arriving(From, Match, witness_replay_process:enqueue(From, Via, Msg, P));
                never -> take_arriving(From, Match, P)
            end;
        {Sender, Via, Msg} -> take_arriving(From, Match, witness_replay_process:enqueue(Sender, Via, Msg, P))
    end.

finish_take(From, Msg, P) ->
    ok = witness_replay_backpressure:count_taken(witness_replay_process:id(P), witness_replay_process:flow(P)),
    Passed = witness_replay_interpreter:pop_entry(P),
    case witness_replay_process:is_plain(P) of
        true -> put_taken(Msg, Passed);
        false -> witness_replay_emitter:report_take(From, P, compare(Msg, Passed))
    end.

%% The next message of any sender. No other message that comes is a list.
receive_message(From, P) ->
    receive
        [Sender | Msg] -> split_sender(Sender, Msg)
    after 0 ->
        Flow = witness_replay_process:flow(P),
        ok = witness_replay_backpressure:set_waiting(From, Flow),
        receive
            [Sender | Msg] ->
                ok = witness_replay_backpressure:set_running(Flow),
                split_sender(Sender, Msg)
        end
    end.

split_sender({Sender, Alias}, Msg) -> {Sender, Alias, Msg};
split_sender(Sender, Msg) -> {Sender, none, Msg}.

%% Compares the message with its hash or contents, if the log has them.
compare(Msg, P) ->
    case witness_replay_interpreter:config() of
        #{checked := false} -> put_taken(Msg, P);
        #{checked := true} ->
            case witness_replay_interpreter:peek_entry(P) of
                {{hash, Hash}, P1} ->
                    case <<(erlang:phash2(Msg) bor (erlang:phash2([Msg]) bsl 32)):64/little>> of
                        Hash -> compare(Msg, witness_replay_interpreter:pop_entry(P1));
                        _ -> witness_replay_interpreter:diverge({hash, Hash}, {took, Msg}, P1)
                    end;
                {{contents, Msg}, P1} -> compare(Msg, witness_replay_interpreter:pop_entry(P1));
                {{contents, Other}, P1} ->
                    case witness_replay_results:local_funs(Other) of
                        Msg -> compare(Msg, witness_replay_interpreter:pop_entry(P1));
                        _ -> witness_replay_interpreter:diverge({contents, Other}, {took, Msg}, P1)
                    end;
                {_, P1} -> put_taken(Msg, P1)
            end
    end.

put_taken(Msg, P) ->
    witness_replay_interpreter:put_state(P),
    [Msg].

-doc "A `receive` by a function, as `prim_eval` has it.".
-spec wait(fun((term()) -> term()), term()) -> term().
wait(Match, Time) ->
    case witness_replay_interpreter:current() of
        none -> prim_eval:'receive'(Match, Time);
        P ->
            case take_next(fun(Msg) -> Match(Msg) =/= nomatch end, check_timeout(Time), P) of
                [Msg] -> Match(Msg);
                timeout -> timeout
            end
    end.

%% --- sends -----------------------------------------------------------------------

-doc "A send by this function of `erlang`. The result is that of the function.".
-spec send(atom(), [term()]) -> term().
send(Function, [To, Msg | Options] = Args) ->
    case witness_replay_interpreter:current() of
        none -> erlang:apply(erlang, Function, Args);
        P ->
            case Function =:= send andalso Options =:= [] andalso witness_replay_process:peer(P) of
                {To, Id, Proxy} ->
                    deliver(Id, Proxy, none, Msg, P),
                    Msg;
                _ -> send(Function, To, Msg, Options, Args, P)
            end
    end.

send(Function, To, Msg, Options, Args, P) ->
    witness_record_runtime:are_options(Options) orelse witness_replay_results:raise(error, badarg, erlang, Function, Args),
    route(To, Msg, Function, Args, report_send(To, Msg, P)),
    skip_announced(witness_replay_interpreter:config()),
    case {Function, Options} of
        {send_nosuspend, _} -> logged_result(true, Function, Args);
        {send, [_]} -> logged_result(ok, Function, Args);
        {_, []} -> Msg
    end.

%% A result that does not follow from the arguments is in the log.
logged_result(Value, Function, Args) ->
    MFA = {erlang, Function, length(Args)},
    case witness_replay_interpreter:peek_entry(witness_replay_interpreter:current()) of
        {{result, MFA, Other}, P} ->
            witness_replay_interpreter:put_state(witness_replay_interpreter:pop_entry(P)),
            Other;
        {_, P} ->
            witness_replay_interpreter:put_state(P),
            Value
    end.

%% The receiver checks the message when it takes it, so it is not compared here.
skip_announced(#{announced := true}) ->
    case witness_replay_interpreter:peek_entry(witness_replay_interpreter:current()) of
        {{sent, _, _}, P} -> witness_replay_interpreter:put_state(witness_replay_interpreter:pop_entry(P));
        {_, P} -> witness_replay_interpreter:put_state(P)
    end;
skip_announced(#{announced := false}) -> ok.

%% A message is reported before it is sent. One to a name is reported when the log has said which process has the name. Other
%% terms are no receivers.
report_send(To, Msg, P) when is_reference(To) ->
    _ = [ok = witness_replay_emitter:report_before({leads, Id}, P)
         || witness_replay_emitter:is_whole(), Id <- [witness_replay_proxies:alias_owner(To)], Id =/= none],
    report_next_send(To, Msg, P);
report_send(To, Msg, P) when is_pid(To); is_port(To) -> report_next_send(To, Msg, P);
report_send({Name, Node} = To, Msg, P) when is_atom(Name), is_atom(Node), Node =/= node() -> report_next_send(To, Msg, P);
report_send(_, _, P) -> P.

report_next_send(To, Msg, P) ->
    case witness_replay_emitter:is_on() of
        false -> P;
        true ->
            {Entry, P1} = witness_replay_interpreter:peek_entry(P),
            witness_replay_interpreter:put_state(P1),
            ok = witness_replay_emitter:report_send(To, Msg, Entry, P1),
            P1
    end.

%% A message of a process to itself with options, or by an alias, comes from the log.
route(To, Msg, _, Args, P) when is_pid(To) ->
    case witness_replay_process:pid(P) of
        To when length(Args) =:= 3 -> ok;
        To -> deliver(witness_replay_process:id(P), {self(), witness_replay_process:flow(P)}, none, Msg, P);
        _ -> route_to_pid(To, Msg, P)
    end;
route(To, Msg, _, _, P) when is_reference(To) ->
    case witness_replay_proxies:alias_owner(To) of
        none -> send_outside(Msg);
        Id -> deliver(Id, witness_replay_proxies:proxy(Id), To, Msg, P)
    end;
route(To, Msg, _, _, _) when is_port(To) -> send_outside(Msg);
route(To, Msg, Function, Args, P) when is_atom(To) -> send_to_name(Msg, Function, Args, P);
route({Name, Node}, Msg, Function, Args, P) when is_atom(Name), Node =:= node() -> send_to_name(Msg, Function, Args, P);
route({Name, Node}, Msg, _, _, _) when is_atom(Name), is_atom(Node) -> send_outside(Msg);
route(_, _, Function, Args, _) -> witness_replay_results:raise(error, badarg, erlang, Function, Args).

route_to_pid(To, Msg, P) ->
    case witness_replay_proxies:receiver(To) of
        {_, none} -> ok;
        {Id, Proxy} ->
            P1 = witness_replay_process:set_peer({To, Id, Proxy}, P),
            witness_replay_interpreter:put_state(P1),
            deliver(Id, Proxy, none, Msg, P1);
        none -> send_outside(Msg)
    end.

send_to_name(Msg, Function, Args, P) ->
    MFA = {erlang, Function, length(Args)},
    case witness_replay_interpreter:next_entry(P) of
        {{named, 0}, P1} ->
            P2 = witness_replay_interpreter:pop_entry(P1),
            witness_replay_interpreter:put_state(P2),
            _ = report_next_send(hd(Args), Msg, P2),
            send_outside(Msg);
        {{named, Id}, P1} ->
            Passed = witness_replay_interpreter:pop_entry(P1),
            witness_replay_interpreter:put_state(Passed),
            ok = witness_replay_emitter:report_before({leads, Id}, Passed),
            P2 = report_next_send(hd(Args), Msg, Passed),
            case length(Args) =:= 3 andalso witness_replay_process:id(P2) =:= Id of
                true -> ok;
                false -> deliver(Id, witness_replay_proxies:proxy(Id), none, Msg, P2)
            end;
        {{raise, MFA, Class, Reason}, P1} ->
            witness_replay_interpreter:put_state(witness_replay_interpreter:pop_entry(P1)),
            witness_replay_results:raise(Class, Reason, erlang, Function, Args);
        {Entry, P1} -> witness_replay_interpreter:handle_mismatch(Entry, {send, hd(Args)}, P1)
    end.

%% Messages that the recorder keeps with their contents, whichever process has sent them, come from the log.
deliver(_, _, _, {'EXIT', _, _}, _) -> ok;
deliver(_, _, _, {'DOWN', _, _, _, _}, _) -> ok;
deliver(_, _, _, {spawn_reply, _, _, _}, _) -> ok;
deliver(_, _, _, {_, Request, ok, Child}, _) when is_reference(Request), is_pid(Child) -> ok;
deliver(_, none, _, _, _) -> ok;
deliver(Id, {Proxy, ToFlow}, Via, Msg, P) ->
    case witness_replay_process:id(P) of
        Id when Via =/= none -> ok;
        Me ->
            Proxy ! [case Via of none -> Me; _ -> {Me, Via} end | Msg],
            case witness_replay_process:may_be_killed(P) of
                true -> throttle(Proxy);
                false -> witness_replay_backpressure:throttle(Me, witness_replay_process:flow(P), Id, ToFlow)
            end
    end.

%% A process that was killed while it did nothing but send would go on forever.
throttle(Proxy) ->
    case process_info(Proxy, message_queue_len) of
        {message_queue_len, N} when N > ?HIGH_WATER -> receive after 10 -> throttle(Proxy) end;
        _ -> ok
    end.

%% Nothing is sent to the outside. Output is reported, if that is wanted.
send_outside({io_request, _, _, Request}) -> witness_replay_interpreter:report_output(Request);
send_outside(_) -> ok.
