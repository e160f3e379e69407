-module(witness_inline_behaviour_client).
%% The tags of OTP.
-dialyzer({no_improper_lists, [tag/2, multi_call/2]}).
-moduledoc """
What calls of OTP's behaviours and of Elixir's libraries send and receive, in a process that is monitored.

The function itself is called with its original arguments. Its messages are made in OTP's modules. So this module reports the
events as the VM would trace them: the receiver as the function looks it up, the message as it builds it. If the caller
gets the tag of a request (`send_request`), the event has the real one. Otherwise this module makes one of the same form,
the same in the request and in its reply.

Not reported: a reply that comes too late, the `'DOWN'` of a `multi_call`, and the messages with which processes are
started (`ack`) and stopped.
""".

-export([start/3, call/3, cast/3, reply/3, request/3]).

-type seen() :: witness_inline_behaviour:seen().

-doc "Starts a process. If the result contains the pid of the child, that is a `fork`.".
-spec start(module(), atom(), [term()]) -> term().
start(Module, Function, Args) ->
    Result = apply(Module, Function, wrap_arguments(Module, Args)),
    case is_reported(spawning_module(Module)) andalso child(Result) of
        false -> ok;
        Child -> witness_inline_process:report_event({fork, self(), Child, signature(Module, Function, Args), undefined})
    end,
    Result.

%% The module that spawns, and may be woven.
spawning_module('Elixir.Task') -> 'Elixir.Task.Supervised';
spawning_module(Module) -> Module.

wrap_arguments(proc_lib, Args) -> witness_inline_spawn:wrap(Args);
wrap_arguments(_, Args) -> Args.

%% A task that is awaited gets its function by message.
signature('Elixir.Task', async, _) -> {'Elixir.Task.Supervised', reply, ['_', '_', '_']};
signature(Module, _, Args) -> witness_inline_behaviour_child:signature(Module, Args).

child({ok, Child}) when is_pid(Child) -> Child;
child({ok, {Child, Monitor}}) when is_pid(Child), is_reference(Monitor) -> Child;
child({{ok, Child}, Monitor}) when is_pid(Child), is_reference(Monitor) -> Child;
child({ok, Child, _}) when is_pid(Child) -> Child;
child({{ok, Child, _}, Monitor}) when is_pid(Child), is_reference(Monitor) -> Child;
child(#{'__struct__' := 'Elixir.Task', pid := Child}) when is_pid(Child) -> Child;
child(_) -> false.

-doc "A request and its reply.".
-spec call(module(), atom(), [term()]) -> term().
call(Module, multi_call, Args) ->
    case is_reported(Module) of
        false -> apply(Module, multi_call, Args);
        true -> multi_call(Module, Args)
    end;
call(Module, Function, Args) ->
    case is_reported(Module) andalso request_of(Module, Function, Args) of
        false ->
            apply(Module, Function, Args);
        {To, Message, Tag} ->
            report({send, To, Message}),
            ok = mark_waiting(hd(Args)),
            try apply(Module, Function, Args) of
                Result ->
                    ok = witness_inline_process:mark_acting(),
                    report({recv, {Tag, reply_of(Module, Result)}}),
                    Result
            catch
                Class:Reason:Stack ->
                    ok = witness_inline_process:mark_acting(),
                    _ = [report({recv, {'DOWN', monitor_of(Tag), process, To, Down}}) || Class =:= exit,
                         Down <- down_reasons(Reason)],
                    erlang:raise(Class, Reason, Stack)
            end
    end.

%% The request is reported, and the process waits for its reply. A `via' name is looked up by code that is not OTP's, and may act.
mark_waiting({via, _, _}) -> ok;
mark_waiting(_) -> witness_inline_process:mark_waiting().

%% The reason in the `'DOWN'' of the server. A time-out has no such message. OTP's modules add the call to the reason.
down_reasons({Reason, {Module, Function, Args}}) when is_atom(Module), is_atom(Function), is_list(Args) -> down_reasons(Reason);
down_reasons(timeout) -> [];
down_reasons({nodedown, _}) -> [noconnection];
down_reasons(Reason) -> [Reason].

monitor_of([alias | Monitor]) -> Monitor;
monitor_of(Monitor) -> Monitor.

%% `gen:call/4' returns the reply in `ok'.
reply_of(gen, {ok, Reply}) -> Reply;
reply_of(_, Reply) -> Reply.

%% The receiver, the message and the tag of a request. `false': the call sends nothing.
request_of(Module, Function, Args) ->
    case witness_inline_behaviour_request:of_call(Module, Function, Args) of
        %% The call also refuses an invalid time-out before it sends anything.
        {Server, Label, Request, Timeout} when Timeout =:= infinity; is_integer(Timeout), Timeout >= 0 ->
            case witness_inline_behaviour_request:target(Server) of
                none -> false;
                To when To =:= self() -> false;
                To ->
                    Tag = tag(Timeout, To),
                    {To, {Label, {self(), Tag}, Request}, Tag}
            end;
        _ -> false
    end.

%% As `gen:call/4': a call that may time out uses an alias.
tag(infinity, To) when not is_pid(To); node(To) =:= node() -> make_ref();
tag(_, _) -> [alias | make_ref()].

%% The caller takes replies in the reverse order of the requests. If an element is not a node, the call fails after it has sent
%% requests, and the replies that it took are not known.
multi_call(Module, Args) ->
    case witness_inline_behaviour_request:of_multi_call(Args) of
        refused -> apply(Module, multi_call, Args);
        {Nodes, Name, Request, More} ->
            Alias = make_ref(),
            Tags = [{Node, [[alias | Alias] | make_ref()]} || Node <- witness_inline_behaviour_request:valid_nodes(Nodes)],
            [report({send, {Name, Node}, {'$gen_call', {self(), Tag}, Request}}) || {Node, Tag} <- Tags],
            try apply(Module, multi_call, [Nodes, Name, Request | More]) of
                {Replies, _} = Result ->
                    [report({recv, Reply}) || Reply <- tag_replies(lists:reverse(Tags), lists:reverse(Replies))],
                    Result
            catch
                Class:Reason:Stack ->
                    _ = Tags =/= [] andalso witness_inline_process:report_gap(multi_call),
                    erlang:raise(Class, Reason, Stack)
            end
    end.

tag_replies([{Node, Tag} | Tags], [{Node, Reply} | Replies]) -> [{Tag, Reply} | tag_replies(Tags, Replies)];
tag_replies([_ | Tags], Replies) -> tag_replies(Tags, Replies);
tag_replies([], _) -> [].

-doc "A message without a reply.".
-spec cast(module(), atom(), [term()]) -> term().
cast(Module, abcast, Args) ->
    case is_reported(Module) of
        false -> apply(Module, abcast, Args);
        true ->
            case witness_inline_behaviour_request:of_abcast(Args) of
                refused -> apply(Module, abcast, Args);
                {Nodes, Name, Message} ->
                    [report({send, {Name, Node}, {'$gen_cast', Message}}) ||
                     Node <- witness_inline_behaviour_request:valid_nodes(Nodes)],
                    apply(Module, abcast, [Nodes, Name, Message])
            end
    end;
cast(Module, Function, Args) ->
    case is_reported(Module) of
        false -> apply(Module, Function, Args);
        true ->
            {Server, Message} = witness_inline_behaviour_request:of_cast(Module, Function, Args),
            To = witness_inline_behaviour_request:receiver(Server),
            Result = apply(Module, Function, Args),
            To =:= none orelse report({send, To, Message}),
            Result
    end.

-doc "The reply to a request, or replies to several.".
-spec reply(module(), atom(), [term()]) -> term().
reply(Module, Function, Args) ->
    %% An invalid reply makes the call fail after it has sent the replies before it.
    try apply(Module, Function, Args)
    after
        is_reported(Module) andalso
            [report(witness_inline_behaviour_server:reply_event(From, Reply)) || {From, Reply} <- replies(Args)]
    end.

replies([{_, _} = From, Reply]) -> [{From, Reply}];
replies([{reply, {_, _} = From, Reply}]) -> [{From, Reply}];
replies([[{reply, {_, _} = From, Reply} | Replies]]) -> [{From, Reply} | replies([Replies])];
replies(_) -> [].

-doc "Sends a request to fetch its reply later, or fetches the reply.".
-spec request(module(), atom(), [term()]) -> term().
request(Module, Function, Args) ->
    case is_reported(Module) of
        false -> apply(Module, Function, Args);
        true -> witness_inline_behaviour_request:perform(Module, Function, Args, fun report/1)
    end.

%% Whether this module reports the calls of `Module'. If `Module' is woven, its own sends and receives are reported instead.
is_reported(Module) -> witness_inline_process:is_active() andalso not is_woven(Module).

is_woven(Module) when Module =:= gen; Module =:= gen_server; Module =:= gen_statem; Module =:= gen_event;
                   Module =:= proc_lib; Module =:= supervisor; Module =:= supervisor_bridge -> false;
is_woven(Module) -> witness_weave:woven(Module) =/= no.

-spec report(seen()) -> ok.
report({recv, Message}) -> witness_inline_process:report_event({recv, self(), undefined, Message, undefined});
report({send, To, Message}) -> witness_inline_process:report_event({send, self(), To, Message, undefined}).
