-module(witness_record_runtime).
-moduledoc """
The functions that woven code calls while it is recorded (`m:witness_weave_runtime`), in the process that runs it.

A recorded process has an identifier, a small number that is not 0. It is in the process dictionary, under a key that the
program does not see. It is also the *label* of the process's token of sequential tracing, which the VM passes on with every
message and to every child. When a `receive` takes a message, the process gets the token of that message. So the label then
names the sender. One call reads it and restores the process's own label.

| `From`, the label after a message was taken | The sender | Recorded |
|---|---|---|
| another identifier | that process | its identifier |
| the own one, negated | the process itself: it has this label while it sends to itself | its identifier |
| the own one | no process: a timer, a port, a signal, which leave the token as it is | the message |
| 0, or there is no token | a process that is not recorded | the message |

Messages about the end of a process, and replies to requests to spawn, with any tag (`{_, reference(), ok, pid()}`), are
always recorded themselves: they have the label of a process that has not sent them. So are messages that only look like
them.

**Outside.** A process that is not recorded has the identifier 0, and all its calls pass through. Only its label is kept at 0,
so that its messages are not taken for those of a recorded process. Until `start/1`, no process is recorded and no native code
is needed: woven modules of OTP run from the first moments of a VM.

**Wrong labels.** Code that is not woven passes tokens on: other nodes, and modules that could not be woven. From the first
message to another node on, and after `verify/0`, an identifier is trusted only if the sender that the VM has noted in the
token agrees. The negated one is not trusted then: code that is not woven may have taken the process's own message and left
its token behind.

**Sequential tracing by the program itself** does not work in woven code: there is no token for it, and setting one has no
effect. `process_info(_, sequential_trace_token)` shows the recorder's.
""".
-behaviour(witness_weave_runtime).

-export([start/1, stop/0, root/3, verify/0, is_recorded/0]).
-export([received/1, timeout/0, waits/1, sent/2, send/3, spawn/3, dictionary/3, information/3, result/4, returned/2, foreign/4,
         wait/3, token/3, make_fun/3, digest/3, halt/3, load/3, unseen/3, leave/3, leaving/2, hibernate/3, apply/3, function/3,
         stand_in/3, set_runtime/1]).
-export([first/3, next/3, awake/3, are_options/1, may_halt/1, may_hibernate/1]).
-export([elsewhere/1]).
-compile({no_auto_import, [apply/3, spawn/3, halt/3]}).

%% OTP's specification says that `erlang:seq_trace/2' returns what `seq_trace_info/1' does, but it returns the previous value.
-dialyzer([{no_match, [record_taken/3]},
           {no_unused, [ask_exit_watch/0, check_sender/3, is_sender/1, record_own/2, record_contents/4]}]).

-define(KEY, '$witness_record').
%% The function that a process was spawned with, if it is a call of the table.
-define(FIRST, '$witness_record_first').
%% How often a process that asks for this of another one yields, so that the other one starts.
-define(MAX_YIELDS, 100).

%% At one in so many births the parent checks its heap.
-define(BIRTHS_PER_CHECK, 64).

%% --- the recorder ----------------------------------------------------------------

-doc """
Starts to record processes that are spawned by recorded ones, or by `root/3`.

- `calls`: the numbers of calls (`witness_record_calls:calls/1`), for those that are known only at run time.
- `ending`: called before woven code ends the VM.
- `loading`: called with each module that is to be loaded, and its object code.
- `contents`, `hash`: whether messages of recorded senders are recorded themselves too, or a hash of them.
- `adopting`: a process that is outside, though its children are recorded;
- `calming`: a process of `m:witness_record_exit_watch`.
""".
-spec start(#{calls => #{mfa() => non_neg_integer()}, ending => fun(() -> term()),
              loading => fun((module(), binary()) -> term()),
              contents => boolean(), hash => boolean(), adopting => pid(), calming => pid()}) -> ok.
start(Options) ->
    All = #{contents := Contents, hash := Hash} =
        maps:merge(#{calls => witness_record_calls:calls(), ending => fun() -> ok end, loading => fun(_, _) -> ok end,
                     contents => false, hash => false}, Options),
    #{verify := Verify} = witness_record_native:info(),
    %% If more than the sender is recorded, each message must come to `check_sender/3', which need not check the sender for that.
    Trusted = (Contents orelse Hash) andalso not Verify,
    _ = [witness_record_native:verify(on) || Trusted],
    persistent_term:put(?MODULE, All#{trusted => Trusted}).

-doc "From now on the label of a message is not enough to know its sender.".
-spec verify() -> ok.
verify() ->
    case persistent_term:get(?MODULE, off) of
        #{trusted := true} = All -> persistent_term:put(?MODULE, All#{trusted := false});
        _ -> ok
    end,
    witness_record_native:verify(on).

-doc "No further process is recorded.".
-spec stop() -> ok.
stop() ->
    _ = persistent_term:erase(?MODULE),
    ok.

-doc "Spawns a process that is recorded, from one that is not.".
-spec root(module(), atom(), [term()]) -> {pid(), reference(), Id :: pos_integer()}.
root(Module, Function, Args) ->
    Id = witness_record_native:child(),
    _ = erlang:seq_trace(label, Id),
    {First, Begin, With} = wrap_start(Module, Function, Args),
    {Pid, Monitor} = spawn_monitor(First, Begin, With),
    _ = erlang:seq_trace(sequential_trace_token, []),
    {Pid, Monitor, Id}.

-doc "Whether the calling process is recorded.".
-spec is_recorded() -> boolean().
is_recorded() -> me() =/= 0.

%% The identifier of the process. The recorder is asked for it once.
me() ->
    case get(?KEY) of
        undefined -> identify(persistent_term:get(?MODULE, off));
        Me -> Me
    end.

identify(off) ->
    0;
identify(#{}) ->
    Me = witness_record_native:identify(),
    put(?KEY, Me),
    Me.

%% --- messages --------------------------------------------------------------------

-doc false.
-spec received(term()) -> ok.
received(Msg) ->
    case get(?KEY) of
        undefined -> first(Msg, persistent_term:get(?MODULE, off));
        Me -> record_taken(Msg, erlang:seq_trace(label, Me), Me)
    end.

first(_, off) ->
    ok;
first(Msg, Started) ->
    Me = identify(Started),
    record_taken(Msg, erlang:seq_trace(label, Me), Me).

record_taken(_, _, 0) -> ok;
record_taken({'EXIT', _, _} = Msg, _, Me) -> witness_record_native:content(Me, Msg);
record_taken({'DOWN', _, _, _, _} = Msg, _, Me) -> witness_record_native:content(Me, Msg);
record_taken({spawn_reply, _, _, _} = Msg, _, Me) -> witness_record_native:content(Me, Msg);
%% The same, with a tag of the program's own.
record_taken({_, Request, ok, Child} = Msg, _, Me) when is_reference(Request), is_pid(Child) ->
    witness_record_native:content(Me, Msg);
record_taken(Msg, From, Me) when is_integer(From), From > 0, From =/= Me ->
    case witness_record_native:took(Me, From) of
        ok -> ok;
        calm -> ask_exit_watch();
        look -> witness_record_heap:fit();
        verify -> check_sender(Msg, From, Me)
    end;
record_taken(Msg, From, Me) when From =:= -Me ->
    case witness_record_native:took(Me, Me) of
        ok -> ok;
        calm -> ask_exit_watch();
        look -> witness_record_heap:fit();
        verify -> record_own(Msg, Me)
    end;
record_taken(Msg, _, Me) -> witness_record_native:content(Me, Msg).

ask_exit_watch() ->
    case persistent_term:get(?MODULE, off) of
        #{calming := Pid} -> witness_record_exit_watch:ask(Pid);
        _ -> ok
    end.

record_own(Msg, Me) ->
    case persistent_term:get(?MODULE, off) of
        #{trusted := true} = Told -> record_contents(Msg, Me, Me, Told);
        _ -> witness_record_native:content(Me, Msg)
    end.

%% The token names the process that sent with it, whatever its label. If that process has ended, its identifier is not known:
%% then the message itself is recorded, which is always right, if longer.
check_sender(Msg, From, Me) ->
    #{trusted := Trusted} = Told =
        persistent_term:get(?MODULE, #{contents => false, hash => false, trusted => false}),
    case Trusted orelse is_sender(From) of
        true -> record_contents(Msg, From, Me, Told);
        false -> witness_record_native:content(Me, Msg)
    end.

record_contents(Msg, From, Me, #{contents := Contents, hash := Hash}) ->
    ok = witness_record_native:from(Me, From),
    _ = [witness_record_native:contents(Me, Msg) || Contents],
    _ = [witness_record_native:hash(Me, Msg) || Hash],
    ok.

is_sender(From) ->
    {sequential_trace_token, {_, _, _, Sender, _}} = process_info(self(), sequential_trace_token),
    witness_record_native:identify(Sender) =:= From.

-doc false.
-spec timeout() -> ok.
timeout() ->
    case me() of
        0 -> ok;
        Me -> witness_record_native:timeout(Me)
    end.

%% Only where a `receive` surely begins: with another time it fails, and the process goes on without an entry.
-doc false.
-spec waits(Time) -> Time when Time :: term().
waits(Time) when Time =:= infinity; is_integer(Time), Time > 0, Time =< 16#ffffffff ->
    case me() of
        0 -> Time;
        Me ->
            ok = witness_record_native:waits(Me),
            Time
    end;
waits(Time) -> Time.

%% `waits/1' is not called: the function that decides whether a message matches is the program's code.
-doc false.
-spec wait(module(), atom(), [term()]) -> term().
wait(prim_eval, 'receive', [Match, Time]) ->
    Told = fun(Msg) -> case Match(Msg) of nomatch -> nomatch; Value -> {Msg, Value} end end,
    case prim_eval:'receive'(Told, Time) of
        timeout ->
            ok = timeout(),
            timeout;
        {Msg, Value} ->
            ok = received(Msg),
            Value
    end.

%% Only code that is woven to record contents calls this.
-doc false.
-spec sent(term(), term()) -> ok.
sent(To, Msg) ->
    case me() of
        0 -> ok;
        Me -> witness_record_native:sent(Me, To, Msg)
    end.

-doc false.
-spec send(module(), atom(), [term()]) -> term().
send(erlang, Function, [_, _ | Options] = Args) ->
    case me() of
        0 -> erlang:apply(erlang, Function, Args);
        Me ->
            case are_options(Options) of
                true -> send_to(Function, Args, Me);
                %% It fails, whatever the destination.
                false -> erlang:apply(erlang, Function, Args)
            end
    end.

-doc "Whether a send with these options, or without any, does not fail because of them. Nothing is delivered.".
-spec are_options([Options :: term()]) -> boolean().
are_options([]) -> true;
are_options([[]]) -> true;
are_options([[noconnect]]) -> true;
are_options([[nosuspend]]) -> true;
are_options([Options]) ->
    try erlang:send({'$witness_nobody', node()}, none, Options) of _ -> true catch error:badarg -> false end.

send_to(Function, [To | Rest] = Args, Me) ->
    case destination(To) of
        plain ->
            ok = announce(To, Rest, Me),
            call_and_record(Function, Args, Me);
        own ->
            ok = announce(To, Rest, Me),
            send_to_self(Function, Args, Me);
        {name, Name} -> send_to_name(Function, Name, To, Rest, Me);
        remote ->
            ok = announce(To, Rest, Me),
            remote(Function, Args, Me);
        nobody -> erlang:apply(erlang, Function, Args)
    end.

call_and_record(Function, Args, Me) ->
    Value = erlang:apply(erlang, Function, Args),
    ok = sent(Function, Args, Value, Me),
    Value.

destination(To) when To =:= self() -> own;
destination(To) when is_atom(To) -> {name, To};
destination({Name, Node}) when is_atom(Name), Node =:= node() -> {name, Name};
destination({Name, Node}) when is_atom(Name), is_atom(Node) -> remote;
destination(To) when is_pid(To), node(To) =/= node() -> remote;
destination(To) when is_reference(To), node(To) =/= node() -> remote;
destination(To) when is_pid(To); is_port(To); is_reference(To) -> plain;
destination(_) -> nobody.

%% Nothing fails here, so the label is always restored. With options the message is recorded itself.
send_to_self(Function, [_, Msg], Me) ->
    _ = erlang:seq_trace(label, -Me),
    self() ! Msg,
    _ = erlang:seq_trace(label, Me),
    case Function of send_nosuspend -> true; _ -> Msg end;
send_to_self(Function, Args, _) -> erlang:apply(erlang, Function, Args).

%% Recorded before the send: if the process ends in between, no process takes a message that was not announced.
announce(To, [Msg | _], Me) ->
    case persistent_term:get(?MODULE, off) of
        #{contents := true} -> witness_record_native:sent(Me, To, Msg);
        _ -> ok
    end.

%% The message goes to the process that was looked up. If that ends in between, the message is lost, as if it ended just after.
send_to_name(Function, Name, To, Rest, Me) ->
    case whereis(Name) of
        undefined when is_atom(To) ->
            ok = witness_record_native:raise(Me, number(erlang, Function, length(Rest) + 1), {error, badarg}),
            erlang:raise(error, badarg, [{erlang, Function, [To | Rest], [{error_info, #{module => erl_erts_errors}}]}
                                         | element(2, process_info(self(), current_stacktrace))]);
        undefined ->
            ok = witness_record_native:named(Me, undefined),
            ok = announce(To, Rest, Me),
            erlang:apply(erlang, Function, [To | Rest]);
        Found when Found =:= self() ->
            ok = witness_record_native:named(Me, Found),
            ok = announce(To, Rest, Me),
            send_to_self(Function, [Found | Rest], Me);
        Found ->
            ok = witness_record_native:named(Me, Found),
            ok = announce(To, Rest, Me),
            call_and_record(Function, [Found | Rest], Me)
    end.

%% Another node must not get the identifier of a process that is recorded here.
remote(Function, Args, Me) ->
    ok = verify(),
    _ = erlang:seq_trace(sequential_trace_token, []),
    call_labelled(Function, Args, Args, fun(Value) -> sent(Function, Args, Value, Me) end, Me).

%% During the call the process has another token, and the call may have other arguments than the program has given.
call_labelled(Function, Given, Args, Tell, Me) ->
    try erlang:apply(erlang, Function, Args) of
        Value ->
            _ = erlang:seq_trace(label, Me),
            ok = Tell(Value),
            Value
    catch
        Class:Reason:Stack ->
            _ = erlang:seq_trace(label, Me),
            Shown = [case Frame of {M, F, Args, Info} -> {M, F, Given, Info}; _ -> Frame end || Frame <- Stack],
            record_raise(Class, Reason, Shown, number(erlang, Function, length(Args)), Me)
    end.

%% The result of a send is recorded if it does not follow from its arguments: a port, or another node, may be busy.
sent(send_nosuspend, _, true, _) -> ok;
sent(send, [_, _, _], ok, _) -> ok;
sent(Function, [_, Msg], Msg, _) when Function =/= send_nosuspend -> ok;
sent(Function, Args, Value, Me) -> witness_record_native:result(Me, number(erlang, Function, length(Args)), Value).

%% --- processes -------------------------------------------------------------------

-doc false.
-spec spawn(module(), atom(), [term()]) -> term().
spawn(erlang, Function, Args) ->
    case {me(), elsewhere(Args)} of
        {0, true} -> erlang:apply(erlang, Function, Args);
        {0, false} ->
            case persistent_term:get(?MODULE, off) of
                #{adopting := Parent} when Parent =:= self() ->
                    case starts_witness(Args) of
                        true -> erlang:apply(erlang, Function, Args);
                        false -> child(Function, Args, 0)
                    end;
                _ -> erlang:apply(erlang, Function, Args)
            end;
        {Me, true} -> remote(Function, Args, Me);
        {Me, false} -> child(Function, Args, Me)
    end.

%% When the application controller spawns a process for an application, the application's record is among the arguments. These
%% differ between releases of OTP. Witness is never part of what it records, not even where the program starts it.
starts_witness([Head | Tail]) -> starts_witness(Head) orelse starts_witness(Tail);
starts_witness(Record) when is_tuple(Record), tuple_size(Record) > 2 ->
    lists:member(element(1, Record), [appl, appl_data]) andalso element(2, Record) =:= witness;
starts_witness(_) -> false.

%% A node is followed by a fun, or by a module, a function and its arguments.
-doc false.
-spec elsewhere([term()]) -> boolean().
elsewhere([Node, Fun | _]) when is_function(Fun) -> Node =/= node();
elsewhere([Node, _, Function, _ | _]) when is_atom(Function) -> Node =/= node();
elsewhere(_) -> false.

%% The child is born with the label.
child(Function, Args, Me) ->
    Id = witness_record_native:child(),
    _ = [witness_record_heap:fit() || Id rem ?BIRTHS_PER_CHECK =:= 0],
    _ = erlang:seq_trace(label, Id),
    call_labelled(Function, Args, wrap_start(Args), fun(Value) -> record_spawn_result(Function, Args, Value, Me) end, Me).

record_spawn_result(_, _, Child, _) when is_pid(Child) -> ok;
record_spawn_result(Function, Args, Value, Me) -> witness_record_native:result(Me, number(erlang, Function, length(Args)), Value).

%% The VM itself, and no woven code, calls the first function of a process. There a call of the table would not be recorded, and a
%% process that it spawns would have the label of its parent. So such a process starts in `first/3'. Invalid arguments stay.
wrap_start([Module, Function, Args | Rest]) when is_atom(Module), is_atom(Function), is_list(Args) ->
    {M, F, As} = wrap_start(Module, Function, Args),
    [M, F, As | Rest];
wrap_start([Node, Module, Function, Args | Rest]) when is_atom(Node), is_atom(Module), is_atom(Function), is_list(Args) ->
    [Node | wrap_start([Module, Function, Args | Rest])];
wrap_start(Args) -> Args.

wrap_start(Module, Function, Args) ->
    case is_woven_call(Module, Function, Args) of
        true -> {?MODULE, first, [Module, Function, Args]};
        false -> {Module, Function, Args}
    end.

%% Whether the VM would perform a call of the table if it called this.
is_woven_call(erlang, apply, [Module, Function, Args]) when is_atom(Module), is_atom(Function), is_list(Args) ->
    is_woven_call(Module, Function, Args);
is_woven_call(erlang, apply, [Fun, Args]) when is_function(Fun), is_list(Args) ->
    case erlang:fun_info(Fun, type) of
        {type, external} ->
            {_, Module} = erlang:fun_info(Fun, module),
            {_, Function} = erlang:fun_info(Fun, name),
            is_woven_call(Module, Function, Args);
        _ -> false
    end;
is_woven_call(Module, Function, Args) ->
    try class(Module, Function, length(Args)) =/= none catch error:badarg -> false end.

-doc "Starts a process with a call of the table.".
-spec first(module(), atom(), [term()]) -> term().
first(Module, Function, Args) ->
    put(?FIRST, {Module, Function, length(Args)}),
    next(Module, Function, Args).

-doc "Calls this as the VM would, with nothing of the program below it: stack traces do not show this module.".
-spec next(module(), atom(), [term()]) -> term().
next(Module, Function, Args) ->
    try
        apply(Module, Function, Args)
    catch
        Class:Reason:Stack -> erlang:raise(Class, Reason, [Frame || Frame <- Stack, element(1, Frame) =/= ?MODULE])
    end.

%% There is an entry before the process hibernates, and one when it has woken. If the first is there, the process has done all
%% that precedes the call. Unless the second is there, it has done nothing after the call.
-doc false.
-spec hibernate(module(), atom(), [term()]) -> term().
hibernate(erlang, hibernate, Args) ->
    case may_hibernate(Args) andalso me() of
        Me when is_integer(Me), Me > 0 ->
            Number = number(erlang, hibernate, length(Args)),
            ok = witness_record_native:result(Me, Number, ok),
            hibernates(Args, Number, Me);
        _ -> erlang:apply(erlang, hibernate, Args)
    end.

hibernates([] = Args, Number, Me) ->
    Value = erlang:apply(erlang, hibernate, Args),
    ok = witness_record_native:result(Me, Number, true),
    Value;
hibernates(MFA, _, _) -> erlang:hibernate(?MODULE, awake, MFA).

-doc "Whether such a call does not fail. OTP 27 has no `hibernate/0`.".
-spec may_hibernate([term()]) -> boolean().
may_hibernate([]) -> erlang:function_exported(erlang, hibernate, 0);
may_hibernate([Module, Function, Args]) when is_atom(Module), is_atom(Function), length(Args) =< 255 -> true;
may_hibernate(_) -> false.

-doc "The process has woken with an empty stack, and goes on in the program's function, which is the last on the stack again.".
-spec awake(module(), atom(), [term()]) -> term().
awake(Module, Function, Args) ->
    ok = witness_record_native:result(me(), number(erlang, hibernate, 3), true),
    case is_woven_call(Module, Function, Args) of
        true -> next(Module, Function, Args);
        false -> erlang:apply(Module, Function, Args)
    end.

%% --- results ---------------------------------------------------------------------

-doc false.
-spec result(non_neg_integer(), module(), atom(), [term()]) -> term().
%% For some flags the VM calls code of kernel, which is woven.
result(Number, Module, Function, Args) when Function =:= system_flag; Function =:= system_flag_scheduler_wall_time ->
    foreign(Number, Module, Function, Args);
result(Number, Module, Function, Args) ->
    case me() of
        0 -> erlang:apply(Module, Function, Args);
        Me ->
            case witness_record_shared:kind(Module, Function) of
                none -> result(Number, Module, Function, Args, Me);
                read ->
                    ok = witness_record_native:reads(Me),
                    result(Number, Module, Function, Args, Me);
                change -> change(Number, Module, Function, Args, Me)
            end
    end.

result(Number, Module, Function, Args, Me) ->
    try erlang:apply(Module, Function, Args) of
        Value ->
            ok = witness_record_native:result(Me, Number, Value),
            Value
    catch
        Class:Reason:Stack -> record_raise(Class, Reason, Stack, Number, Me)
    end.

change(Number, Module, Function, Args, Me) ->
    Begin = witness_record_native:changes(),
    try erlang:apply(Module, Function, Args) of
        Value ->
            ok = witness_record_native:changed(Me, Begin),
            ok = witness_record_native:result(Me, Number, Value),
            Value
    catch
        Class:Reason:Stack ->
            ok = witness_record_native:changed(Me, Begin),
            record_raise(Class, Reason, Stack, Number, Me)
    end.

-doc false.
-spec returned(non_neg_integer(), term()) -> ok.
returned(Number, Value) ->
    case me() of
        0 -> ok;
        Me -> witness_record_native:result(Me, Number, Value)
    end.

-doc false.
-spec foreign(non_neg_integer(), module(), atom(), [term()]) -> term().
foreign(Number, Module, Function, Args) ->
    case me() of
        0 -> erlang:apply(Module, Function, Args);
        Me ->
            try outside(fun() -> erlang:apply(Module, Function, Args) end, Me) of
                Value ->
                    ok = witness_record_native:result(Me, Number, Value),
                    Value
            catch
                Class:Reason:Stack -> record_raise(Class, Reason, Stack, Number, Me)
            end
    end.

-doc false.
-spec unseen(module(), atom(), [term()]) -> term().
unseen(Module, Function, Args) ->
    case me() of
        0 -> erlang:apply(Module, Function, Args);
        Me -> outside(fun() -> erlang:apply(Module, Function, Args) end, Me)
    end.

%% What happens meanwhile is no step of the process: neither messages that it takes, nor what the woven code does that it calls.
outside(Do, Me) ->
    put(?KEY, 0),
    _ = erlang:seq_trace(label, 0),
    try
        Do()
    after
        _ = erlang:seq_trace(label, Me),
        put(?KEY, Me)
    end.

-spec record_raise(error | exit | throw, term(), erlang:raise_stacktrace(), non_neg_integer(), pos_integer()) -> no_return().
record_raise(Class, Reason, Stack, Number, Me) ->
    ok = witness_record_native:raise(Me, Number, {Class, Reason}),
    erlang:raise(Class, Reason, Stack).

-doc false.
-spec information(module(), atom(), [term()]) -> term().
information(erlang, process_info, Args) ->
    case me() of
        0 -> shown(hidden_info(Args));
        Me ->
            Number = number(erlang, process_info, length(Args)),
            try hidden_info(Args) of
                Value ->
                    ok = witness_record_native:result(Me, Number, Value),
                    shown(Value)
            catch
                Class:Reason:Stack -> record_raise(Class, Reason, Stack, Number, Me)
            end
    end.

%% Hidden before the result is recorded, since a replay shows what was recorded.
hidden_info([Pid | _] = Args) -> hide_watch(erlang:apply(erlang, process_info, Args), Pid).

hide_watch({monitored_by, [_ | _] = Pids} = Item, _) ->
    case persistent_term:get(?MODULE, off) of
        #{calming := Pid} -> {monitored_by, Pids -- [Pid]};
        _ -> Item
    end;
hide_watch({initial_call, {?MODULE, first, 3}}, Pid) -> {initial_call, first_call(Pid, ?MAX_YIELDS)};
hide_watch([_ | _] = Items, Pid) -> [hide_watch(Item, Pid) || Item <- Items];
hide_watch(Item, _) -> Item.

%% The process stores it as soon as it runs. If it does not run, or has ended meanwhile, no more is known than of a fun.
first_call(Pid, Yields) ->
    case process_info(Pid, {dictionary, ?FIRST}) of
        {_, {_, _, _} = First} -> First;
        {_, undefined} when Yields > 0 ->
            erlang:yield(),
            first_call(Pid, Yields - 1);
        _ -> {erlang, apply, 2}
    end.

shown(Info) -> witness_record_dictionary:without_own(Info, fun is_own_key/1).

is_own_key(Key) -> Key =:= ?KEY orelse Key =:= ?FIRST orelse witness_record_heap:is_key(Key).

-doc false.
-spec dictionary(module(), atom(), [term()]) -> term().
dictionary(erlang, Function, Args) -> witness_record_dictionary:call(Function, Args, fun is_own_key/1).

-doc false.
-spec token(module(), atom(), [term()]) -> term().
token(erlang, Function, Args) ->
    case is_token_call(Function, Args) of
        true -> without_token(Function, Args);
        false -> erlang:apply(erlang, Function, Args)
    end.

%% Whether such a call does not fail.
is_token_call(seq_trace, [label, _]) -> true;
is_token_call(seq_trace, [serial, Serial]) -> is_tuple(Serial) andalso tuple_size(Serial) =:= 2;
is_token_call(seq_trace, [sequential_trace_token, _]) -> true;
is_token_call(seq_trace, [Flag, Value]) -> is_flag(Flag) andalso is_boolean(Value);
is_token_call(seq_trace_info, [Item]) -> Item =:= label orelse Item =:= serial orelse is_flag(Item);
is_token_call(seq_trace_print, _) -> true.

is_flag(Flag) ->
    lists:member(Flag, [send, 'receive', print, timestamp, monotonic_timestamp, strict_monotonic_timestamp]).

%% What such a call returns in a process that has no token.
without_token(seq_trace, [label, _]) -> 0;
without_token(seq_trace, [serial, _]) -> {0, 0};
without_token(seq_trace, [Flag, _]) when Flag =/= sequential_trace_token -> false;
without_token(seq_trace_print, _) -> false;
without_token(_, _) -> [].

-doc false.
-spec halt(module(), atom(), [term()]) -> no_return().
halt(erlang, halt, Args) ->
    %% In any process: what all others have done is at stake. A call that surely fails ends nothing.
    _ = case {me(), may_halt(Args) andalso persistent_term:get(?MODULE, off)} of
        {0, #{ending := Ending}} -> Ending();
        {Me, #{ending := Ending}} -> outside(Ending, Me);
        _ -> nobody
    end,
    erlang:apply(erlang, halt, Args).

-doc "Whether a call of `halt` with these arguments may end the VM; if not, it fails.".
-spec may_halt([term()]) -> boolean().
may_halt([]) -> true;
may_halt([Status | Options]) ->
    (is_integer(Status) andalso Status >= 0 orelse Status =:= abort orelse is_list(Status))
        andalso lists:all(fun is_list/1, Options).

-doc false.
-spec load(module(), atom(), [term()]) -> term().
load(erlang, Function, [Module, Code] = Args) ->
    _ = case persistent_term:get(?MODULE, off) of
        #{loading := Notice} when is_atom(Module), is_binary(Code) -> Notice(Module, Code);
        _ -> nobody
    end,
    erlang:apply(erlang, Function, Args).

%% --- ends ------------------------------------------------------------------------

-doc false.
-spec leave(module(), atom(), [term()]) -> no_return().
leave(erlang, Function, Args) ->
    ok = leaving(Function, Args),
    erlang:apply(erlang, Function, Args).

%% If an error or a throw ends the process, its stack trace is in the reason. An exit leaves nothing that a signal would not,
%% except for `normal': no signal ends a process with that reason.
-doc false.
-spec leaving(atom(), [term()]) -> ok.
leaving(exit, [normal]) -> ok;
leaving(raise, [exit, normal, _]) -> ok;
leaving(Function, [Class | _] = Args) when Function =:= exit; Class =:= exit ->
    case me() of
        0 -> ok;
        Me -> witness_record_native:result(Me, number(erlang, Function, length(Args)), ok)
    end;
leaving(raise, _) -> ok.

%% --- calls that are known at run time only ----------------------------------------

-doc false.
-spec apply(module(), atom(), [term()]) -> term().
apply(erlang, apply, [Module, Function, Args]) ->
    apply(Module, Function, Args);
apply(erlang, apply, [Fun, Args]) when is_function(Fun, length(Args)) ->
    case erlang:fun_info(Fun, type) of
        {type, external} -> apply(element(2, erlang:fun_info(Fun, module)), element(2, erlang:fun_info(Fun, name)), Args);
        _ -> erlang:apply(Fun, Args)
    end;
apply(Module, Function, Args) ->
    case class(Module, Function, length(Args)) of
        none -> erlang:apply(Module, Function, Args);
        {Class, Number} -> ?MODULE:Class(Number, Module, Function, Args);
        Class -> ?MODULE:Class(Module, Function, Args)
    end.

-doc false.
-spec make_fun(module(), atom(), [term()]) -> function().
make_fun(erlang, make_fun, [Module, Function, Arity]) -> function(Module, Function, Arity).

-doc false.
-spec function(module(), atom(), arity()) -> function().
function(Module, Function, Arity) ->
    case class(Module, Function, Arity) of
        none ->
            case witness_record_calls:is_steered(Module, Function, Arity) of
                true -> stand_in(Module, Function, Arity);
                false -> erlang:make_fun(Module, Function, Arity)
            end;
        _ -> stand_in(Module, Function, Arity)
    end.

-doc """
A fun that does what the run-time module of this VM does in the place of the function. This module makes it in a replay, too, so
that it is the same fun in both.
""".
-spec stand_in(module(), atom(), arity()) -> function().
stand_in(Module, Function, Arity) ->
    witness_weave_runtime:calling(Arity, fun(Args) ->
        (persistent_term:get({?MODULE, does}, ?MODULE)):apply(Module, Function, Args)
    end).

-doc "Sets the run-time module of this VM, if it is another one.".
-spec set_runtime(module()) -> ok.
set_runtime(Runtime) -> persistent_term:put({?MODULE, does}, Runtime).

-doc false.
-spec digest(module(), atom(), [term()]) -> term().
digest(erlang, Function, Args) -> witness_weave_funs:call(Function, Args).

class(Module, Function, Arity) ->
    case witness_record_calls:class(Module, Function, Arity) of
        none ->
            case persistent_term:get(?MODULE, off) of
                #{calls := #{{Module, Function, Arity} := Number}} -> {foreign, Number};
                _ -> none
            end;
        Class ->
            Class
    end.

number(Module, Function, Arity) -> witness_record_calls:number(Module, Function, Arity).
