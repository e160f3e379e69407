-module(witness_record_runtime).
-moduledoc """
What woven code calls while it is recorded (`m:witness_weave_runtime`), in the process that runs it.

A process that is recorded has an identifier, a small number that is not 0. It stands in its dictionary, under a key
that the program does not see, and it is the *label* of the process's token of sequential tracing, which the VM hands
on with every message and to every child. When a `receive` takes a message, its token becomes that of the process: so
the label then says who has sent it, and one call reads it and puts the own one back.

| `From`, the label after a message was taken | Who sent it | Recorded |
|---|---|---|
| another identifier | that process | its identifier |
| the own one, negated | the process itself: who sends to himself has this label for that moment | its identifier |
| the own one | nobody: a timer, a port, a signal, which leave the token as it is | the message |
| 0, or there is no token | a process that is not recorded | the message |

Messages that tell of the end of a process, and replies to requests to spawn, with whatever tag (`{_, reference(), ok,
pid()}`), are always recorded themselves: they have the label of a process that has not sent them. So are those that
only look like them.

**Who is outside.** A process that is not recorded has the identifier 0, whatever it does passes through, and only its
label is kept at 0, so that what it says is not taken for what a recorded process has said. Until `start/1`, nobody is
recorded and no native code is needed: woven modules of OTP run from the first moments of a VM.

**Who could lie.** What is not woven passes tokens on: other nodes, and modules that could not be woven. From the
first message to another node on, and whenever it was asked for (`verify/0`), the sender that the VM has noted in the
token is looked at as well before an identifier is believed, and the negated one is not: code that is not woven may
have taken the process's own message and left its token behind.

**Sequential tracing of the program itself** does not take place in woven code: there is no token for it, and setting
one has no effect. `process_info(_, sequential_trace_token)` shows the recorder's.
""".
-behaviour(witness_weave_runtime).

-export([start/1, stop/0, root/3, verify/0, is_recorded/0]).
-export([received/1, timeout/0, sent/2, send/3, spawn/3, dictionary/3, information/3, result/4, returned/2, foreign/4,
         wait/3, token/3, make_fun/3, halt/3, load/3, unseen/3, leave/3, leaving/2, apply/3, function/3]).
-compile({no_auto_import, [apply/3, spawn/3, halt/3]}).

%% OTP's specification says that `erlang:seq_trace/2' returns what `seq_trace_info/1' does: it returns the value of before.
-dialyzer([{no_match, [taken/3]}, {no_unused, [calm/0, looked_at/3, is_sender/1, own/2, also/4]}]).

-define(KEY, '$witness_record').

%% One in so many births has its parent look after its heap.
-define(LOOK, 64).

%% --- the recorder ----------------------------------------------------------------

-doc """
From now on processes are recorded that were spawned by recorded ones, or by `root/3`.

- `calls`: the numbers of calls (`witness_record_calls:calls/1`), so that those known at run time only have theirs.
- `ending`: called before woven code ends the VM.
- `loading`: called with each module that is to be loaded, and its object code.
- `contents`, `hash`: whether messages of recorded senders are recorded themselves too, or a hash of them.
- `adopting`: a process that is outside, whose children are recorded;
- `calming`: a process of `m:witness_record_calm`.
""".
-spec start(#{calls => #{mfa() => non_neg_integer()}, ending => fun(() -> term()),
              loading => fun((module(), binary()) -> term()),
              contents => boolean(), hash => boolean(), adopting => pid(), calming => pid()}) -> ok.
start(Options) ->
    All = #{contents := Contents, hash := Hash} =
        maps:merge(#{calls => witness_record_calls:calls(), ending => fun() -> ok end, loading => fun(_, _) -> ok end,
                     contents => false, hash => false}, Options),
    #{verify := Verify} = witness_record_native:info(),
    %% Who has to tell more of a message than its sender comes by `looked_at/3' for that, and need not doubt the sender.
    Trusted = (Contents orelse Hash) andalso not Verify,
    _ = [witness_record_native:verify(on) || Trusted],
    persistent_term:put(?MODULE, All#{trusted => Trusted}).

-doc "From now on, that a message has a label is not enough to say who has sent it.".
-spec verify() -> ok.
verify() ->
    case persistent_term:get(?MODULE, off) of
        #{trusted := true} = All -> persistent_term:put(?MODULE, All#{trusted := false});
        _ -> ok
    end,
    witness_record_native:verify(on).

-doc "Nobody begins to be recorded any more.".
-spec stop() -> ok.
stop() ->
    _ = persistent_term:erase(?MODULE),
    ok.

-doc "Spawns a process that is recorded, from one that is not.".
-spec root(module(), atom(), [term()]) -> {pid(), reference(), Id :: pos_integer()}.
root(Module, Function, Args) ->
    Id = witness_record_native:child(),
    _ = erlang:seq_trace(label, Id),
    {Pid, Monitor} = spawn_monitor(Module, Function, Args),
    _ = erlang:seq_trace(sequential_trace_token, []),
    {Pid, Monitor, Id}.

-doc "Whether the calling process is recorded.".
-spec is_recorded() -> boolean().
is_recorded() -> me() =/= 0.

%% The identifier of the process. It is asked for once.
me() ->
    case get(?KEY) of
        undefined -> identified(persistent_term:get(?MODULE, off));
        Me -> Me
    end.

identified(off) ->
    0;
identified(#{}) ->
    Me = witness_record_native:identify(),
    put(?KEY, Me),
    Me.

%% --- messages --------------------------------------------------------------------

-doc false.
-spec received(term()) -> ok.
received(Msg) ->
    case get(?KEY) of
        undefined -> first(Msg, persistent_term:get(?MODULE, off));
        Me -> taken(Msg, erlang:seq_trace(label, Me), Me)
    end.

first(_, off) ->
    ok;
first(Msg, Started) ->
    Me = identified(Started),
    taken(Msg, erlang:seq_trace(label, Me), Me).

taken(_, _, 0) -> ok;
taken({'EXIT', _, _} = Msg, _, Me) -> witness_record_native:content(Me, Msg);
taken({'DOWN', _, _, _, _} = Msg, _, Me) -> witness_record_native:content(Me, Msg);
taken({spawn_reply, _, _, _} = Msg, _, Me) -> witness_record_native:content(Me, Msg);
%% The same, with a tag of the program's own.
taken({_, Request, ok, Child} = Msg, _, Me) when is_reference(Request), is_pid(Child) ->
    witness_record_native:content(Me, Msg);
taken(Msg, From, Me) when is_integer(From), From > 0, From =/= Me ->
    case witness_record_native:took(Me, From) of
        ok -> ok;
        calm -> calm();
        look -> witness_record_room:look();
        verify -> looked_at(Msg, From, Me)
    end;
taken(Msg, From, Me) when From =:= -Me ->
    case witness_record_native:took(Me, Me) of
        ok -> ok;
        calm -> calm();
        look -> witness_record_room:look();
        verify -> own(Msg, Me)
    end;
taken(Msg, _, Me) -> witness_record_native:content(Me, Msg).

calm() ->
    case persistent_term:get(?MODULE, off) of
        #{calming := Pid} -> witness_record_calm:ask(Pid);
        _ -> ok
    end.

own(Msg, Me) ->
    case persistent_term:get(?MODULE, off) of
        #{trusted := true} = Told -> also(Msg, Me, Me, Told);
        _ -> witness_record_native:content(Me, Msg)
    end.

%% The token names the process that has sent with it, whoever's label it has. Of one that has ended nobody knows who it
%% was: what it has sent is recorded itself, which is always right, if longer.
looked_at(Msg, From, Me) ->
    #{trusted := Trusted} = Told =
        persistent_term:get(?MODULE, #{contents => false, hash => false, trusted => false}),
    case Trusted orelse is_sender(From) of
        true -> also(Msg, From, Me, Told);
        false -> witness_record_native:content(Me, Msg)
    end.

also(Msg, From, Me, #{contents := Contents, hash := Hash}) ->
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
send(erlang, Function, [To | Rest] = Args) ->
    case me() of
        0 -> erlang:apply(erlang, Function, Args);
        Me ->
            case destination(To) of
                plain ->
                    ok = announce(To, Rest, Me),
                    erlang:apply(erlang, Function, Args);
                own ->
                    ok = announce(To, Rest, Me),
                    case Rest of
                        [Msg] -> to_own(Msg, Me);
                        _ -> erlang:apply(erlang, Function, Args)
                    end;
                {name, Name} -> named(Function, Name, To, Rest, Me);
                remote ->
                    ok = announce(To, Rest, Me),
                    remote(erlang, Function, Args, Me)
            end
    end.

destination(To) when To =:= self() -> own;
destination(To) when is_atom(To) -> {name, To};
destination({Name, Node}) when is_atom(Name), Node =:= node() -> {name, Name};
destination({Name, Node}) when is_atom(Name), is_atom(Node) -> remote;
destination(To) when is_pid(To), node(To) =/= node() -> remote;
destination(To) when is_reference(To), node(To) =/= node() -> remote;
destination(_) -> plain.

%% Nothing fails here: the label is always the own one again. With options it could, and the message is recorded itself.
to_own(Msg, Me) ->
    _ = erlang:seq_trace(label, -Me),
    self() ! Msg,
    _ = erlang:seq_trace(label, Me),
    Msg.

%% Before it is sent: whatever ends the process in between, nobody takes a message that was not announced.
announce(To, [Msg | _], Me) ->
    case persistent_term:get(?MODULE, off) of
        #{contents := true} -> witness_record_native:sent(Me, To, Msg);
        _ -> ok
    end.

%% What is looked up is what is sent to. If it ends in between, the message is lost, as it is when it ends just after.
named(Function, Name, To, Rest, Me) ->
    case whereis(Name) of
        undefined when is_atom(To) ->
            ok = witness_record_native:raise(Me, number(erlang, Function, length(Rest) + 1), {error, badarg}),
            erlang:raise(error, badarg, [{erlang, Function, [To | Rest], [{error_info, #{module => erl_erts_errors}}]}
                                         | element(2, process_info(self(), current_stacktrace))]);
        undefined ->
            ok = witness_record_native:named(Me, undefined),
            ok = announce(To, Rest, Me),
            erlang:apply(erlang, Function, [To | Rest]);
        Found when Found =:= self(), length(Rest) =:= 1 ->
            ok = witness_record_native:named(Me, Found),
            ok = announce(To, Rest, Me),
            to_own(hd(Rest), Me);
        Found ->
            ok = witness_record_native:named(Me, Found),
            ok = announce(To, Rest, Me),
            erlang:apply(erlang, Function, [Found | Rest])
    end.

%% Another node is told nothing of who is recorded here.
remote(Module, Function, Args, Me) ->
    ok = verify(),
    _ = erlang:seq_trace(sequential_trace_token, []),
    labelled_again(Module, Function, Args, fun(Value) -> sent(Function, Args, Value, Me) end, Me).

%% The token is another's while the call is done.
labelled_again(Module, Function, Args, Tell, Me) ->
    try erlang:apply(Module, Function, Args) of
        Value ->
            _ = erlang:seq_trace(label, Me),
            ok = Tell(Value),
            Value
    catch
        Class:Reason:Stack ->
            _ = erlang:seq_trace(label, Me),
            raised(Class, Reason, Stack, number(Module, Function, length(Args)), Me)
    end.

sent(_, [_, Msg], Msg, _) -> ok;
sent(Function, Args, Value, Me) -> witness_record_native:result(Me, number(erlang, Function, length(Args)), Value).

%% --- processes -------------------------------------------------------------------

-doc false.
-spec spawn(module(), atom(), [term()]) -> term().
spawn(erlang, Function, Args) ->
    case {me(), elsewhere(Args)} of
        {0, true} -> erlang:apply(erlang, Function, Args);
        {0, false} ->
            case persistent_term:get(?MODULE, off) of
                #{adopting := Parent} when Parent =:= self() -> child(Function, Args, 0);
                _ -> erlang:apply(erlang, Function, Args)
            end;
        {Me, true} -> remote(erlang, Function, Args, Me);
        {Me, false} -> child(Function, Args, Me)
    end.

%% With a node come a fun, or a module, a function and its arguments.
elsewhere([Node, Fun | _]) when is_function(Fun) -> Node =/= node();
elsewhere([Node, _, Function, _ | _]) when is_atom(Function) -> Node =/= node();
elsewhere(_) -> false.

%% The child is born with the label.
child(Function, Args, Me) ->
    Id = witness_record_native:child(),
    _ = [witness_record_room:look() || Id rem ?LOOK =:= 0],
    _ = erlang:seq_trace(label, Id),
    labelled_again(erlang, Function, Args, fun(Value) -> spawned(Function, Args, Value, Me) end, Me).

spawned(_, _, Child, _) when is_pid(Child) -> ok;
spawned(Function, Args, Value, Me) -> witness_record_native:result(Me, number(erlang, Function, length(Args)), Value).

%% --- results ---------------------------------------------------------------------

-doc false.
-spec result(non_neg_integer(), module(), atom(), [term()]) -> term().
result(Number, Module, Function, Args) ->
    case me() of
        0 -> erlang:apply(Module, Function, Args);
        Me ->
            try erlang:apply(Module, Function, Args) of
                Value ->
                    ok = witness_record_native:result(Me, Number, Value),
                    Value
            catch
                Class:Reason:Stack -> raised(Class, Reason, Stack, Number, Me)
            end
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
                Class:Reason:Stack -> raised(Class, Reason, Stack, Number, Me)
            end
    end.

-doc false.
-spec unseen(module(), atom(), [term()]) -> term().
unseen(Module, Function, Args) ->
    case me() of
        0 -> erlang:apply(Module, Function, Args);
        Me -> outside(fun() -> erlang:apply(Module, Function, Args) end, Me)
    end.

%% What is done meanwhile is no step of the process: messages that it takes, and what woven code does that it calls.
outside(Do, Me) ->
    put(?KEY, 0),
    _ = erlang:seq_trace(label, 0),
    try
        Do()
    after
        _ = erlang:seq_trace(label, Me),
        put(?KEY, Me)
    end.

-spec raised(error | exit | throw, term(), erlang:raise_stacktrace(), non_neg_integer(), pos_integer()) -> no_return().
raised(Class, Reason, Stack, Number, Me) ->
    ok = witness_record_native:raise(Me, Number, {Class, Reason}),
    erlang:raise(Class, Reason, Stack).

-doc false.
-spec information(module(), atom(), [term()]) -> term().
information(erlang, process_info, Args) ->
    case me() of
        0 -> shown(unmonitored(erlang:apply(erlang, process_info, Args)));
        Me ->
            Number = number(erlang, process_info, length(Args)),
            try unmonitored(erlang:apply(erlang, process_info, Args)) of
                Value ->
                    ok = witness_record_native:result(Me, Number, Value),
                    shown(Value)
            catch
                Class:Reason:Stack -> raised(Class, Reason, Stack, Number, Me)
            end
    end.

%% Before it is recorded: whoever replays it shows what was recorded.
unmonitored({monitored_by, [_ | _] = Pids} = Item) ->
    case persistent_term:get(?MODULE, off) of
        #{calming := Pid} -> {monitored_by, Pids -- [Pid]};
        _ -> Item
    end;
unmonitored([_ | _] = Items) -> [unmonitored(Item) || Item <- Items];
unmonitored(Item) -> Item.

shown({dictionary, Entries}) when is_list(Entries) -> {dictionary, [Entry || Entry <- Entries, not is_own(Entry)]};
shown([_ | _] = Items) -> [shown(Item) || Item <- Items];
shown(Item) -> Item.

is_own({Key, _}) -> is_own_key(Key).

is_own_key(Key) -> Key =:= ?KEY orelse witness_record_room:is_key(Key).

-doc false.
-spec dictionary(module(), atom(), [term()]) -> term().
dictionary(erlang, get, []) -> [Entry || Entry <- get(), not is_own(Entry)];
dictionary(erlang, get_keys, Args) -> [Key || Key <- erlang:apply(erlang, get_keys, Args), not is_own_key(Key)];
dictionary(erlang, erase, []) ->
    All = erase(),
    _ = [put(Key, Value) || {Key, Value} <- All, is_own_key(Key)],
    [Entry || Entry <- All, not is_own(Entry)].

-doc false.
-spec token(module(), atom(), [term()]) -> [] | 0 | {0, 0} | false.
token(erlang, seq_trace, [label, _]) -> 0;
token(erlang, seq_trace, [serial, _]) -> {0, 0};
token(erlang, seq_trace, [Flag, _]) when Flag =/= sequential_trace_token -> false;
token(erlang, seq_trace_print, _) -> false;
token(erlang, _, _) -> [].

-doc false.
-spec halt(module(), atom(), [term()]) -> no_return().
halt(erlang, halt, Args) ->
    %% Whoever it is: what all others have done is at stake.
    _ = case {me(), persistent_term:get(?MODULE, off)} of
        {0, #{ending := Ending}} -> Ending();
        {Me, #{ending := Ending}} -> outside(Ending, Me);
        _ -> nobody
    end,
    erlang:apply(erlang, halt, Args).

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

%% An error or a throw that ends the process leaves its stack trace in the reason. An exit leaves nothing that a
%% signal would not, but for `normal', by which no signal ends anybody.
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

%% --- what is known at run time only ----------------------------------------------

-doc false.
-spec apply(module(), atom(), [term()]) -> term().
apply(erlang, apply, [Module, Function, Args]) ->
    apply(Module, Function, Args);
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
        none -> erlang:make_fun(Module, Function, Arity);
        _ -> witness_weave_runtime:calling(Arity, fun(Args) -> apply(Module, Function, Args) end)
    end.

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
