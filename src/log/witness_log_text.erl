-module(witness_log_text).
-moduledoc """
The text format of logs: an event a line, in Erlang's notation (see `docs/logs.md`).
""".

-export([event/4]).

-define(IS_BLANK(C), (C =:= $\s orelse C =:= $\t orelse C =:= $\r)).
-define(IS_DIGIT(C), (C >= $0 andalso C =< $9)).

-doc """
The event of the line at an offset of a block, and the offset of the next line. `none` is a line without
an event: blank, or a comment.
""".
-spec event(Rest :: binary(), Block :: binary(), At :: non_neg_integer(), witness_log_atoms:atoms()) ->
    {witness_log:entry() | none, Next :: non_neg_integer()} | witness_log_term:malformed().
event(Rest, Block, At, Atoms) -> event(Rest, Block, At, Atoms, undefined).

event(<<"recv(", Rest/binary>>, Block, At, Atoms, Time) -> arguments(recv, Rest, Block, At + 5, Atoms, Time);
event(<<"send(", Rest/binary>>, Block, At, Atoms, Time) -> arguments(send, Rest, Block, At + 5, Atoms, Time);
event(<<"fork(", Rest/binary>>, Block, At, Atoms, Time) -> arguments(fork, Rest, Block, At + 5, Atoms, Time);
event(<<"init(", Rest/binary>>, Block, At, Atoms, Time) -> arguments(init, Rest, Block, At + 5, Atoms, Time);
event(<<"exit(", Rest/binary>>, Block, At, Atoms, Time) -> arguments(exit, Rest, Block, At + 5, Atoms, Time);
event(<<"call(", Rest/binary>>, Block, At, Atoms, Time) -> arguments(call, Rest, Block, At + 5, Atoms, Time);
event(<<"return(", Rest/binary>>, Block, At, Atoms, Time) -> arguments(return, Rest, Block, At + 7, Atoms, Time);
event(<<"gap(", Rest/binary>>, Block, At, Atoms, Time) -> arguments(gap, Rest, Block, At + 4, Atoms, Time);
event(<<"attached(", Rest/binary>>, Block, At, Atoms, Time) -> arguments(attached, Rest, Block, At + 9, Atoms, Time);
event(<<"root(", Rest/binary>>, Block, At, Atoms, Time) -> arguments(root, Rest, Block, At + 5, Atoms, Time);
event(<<"receives(", Rest/binary>>, Block, At, Atoms, undefined) -> arguments(receives, Rest, Block, At + 9, Atoms, undefined);
event(<<"clock(", Rest/binary>>, Block, At, Atoms, undefined) -> arguments(clock, Rest, Block, At + 6, Atoms, undefined);
event(<<"functions(", Rest/binary>>, Block, At, Atoms, undefined) ->
    arguments(functions, Rest, Block, At + 10, Atoms, undefined);
event(<<C, Rest/binary>>, Block, At, Atoms, Time) when ?IS_BLANK(C) -> event(Rest, Block, At + 1, Atoms, Time);
event(<<"@-", Rest/binary>>, Block, At, Atoms, undefined) -> time(Rest, Block, At + 2, Atoms, -1, 0);
event(<<"@", Rest/binary>>, Block, At, Atoms, undefined) -> time(Rest, Block, At + 1, Atoms, 1, 0);
event(<<"\n", _/binary>>, _, At, _, undefined) -> {none, At + 1};
event(<<"%", Rest/binary>>, Block, At, _, undefined) -> comment(Rest, Block, At + 1, none);
event(<<>>, _, At, _, undefined) -> {none, At};
event(_, Block, At, _, _) ->
    witness_log_term:expected(witness_log_item:kinds(), Block, At).

%% A time is below 2^63, some 292 years; so a time with many digits is rejected quickly.
time(<<C, Rest/binary>>, Block, At, Atoms, Sign, Time) when ?IS_DIGIT(C), Time < 1 bsl 60 ->
    time(Rest, Block, At + 1, Atoms, Sign, Time * 10 + C - $0);
time(<<C, Rest/binary>>, Block, At, Atoms, Sign, Time) when ?IS_BLANK(C), Time < 1 bsl 63 ->
    case binary:at(Block, At - 1) of
        Last when ?IS_DIGIT(Last) -> event(Rest, Block, At + 1, Atoms, Sign * Time);
        _ -> expect_time(Block, At)
    end;
time(_, Block, At, _, _, _) ->
    expect_time(Block, At).

expect_time(Block, At) -> witness_log_term:expected(~"a time in nanoseconds, below 2^63, and a blank", Block, At).

arguments(Kind, Rest, Block, At, Atoms, Time) ->
    case witness_log_term:arguments(Rest, Block, At, Atoms, Kind) of
        {malformed, _, _} = Malformed ->
            Malformed;
        {Arguments, Behind, Next} ->
            case item(Kind, Arguments, Time) of
                {expected, What, Where} -> witness_log_term:expected(What, Block, Where);
                {arguments, _} -> {malformed, At, [~"expected ", shape(Kind)]};
                Item -> last(Behind, Block, Next, Item)
            end
    end.

%% An event may be followed by a full stop, and a comment.
last(<<"\n", _/binary>>, _, At, Item) -> {Item, At + 1};
last(<<>>, _, At, Item) -> {Item, At};
last(<<C, Rest/binary>>, Block, At, Item) when ?IS_BLANK(C) -> last(Rest, Block, At + 1, Item);
last(<<".", Rest/binary>>, Block, At, Item) -> after_full_stop(Rest, Block, At + 1, Item);
last(<<"%", Rest/binary>>, Block, At, Item) -> comment(Rest, Block, At + 1, Item);
last(_, Block, At, _) -> witness_log_term:expected(~"the end of the line", Block, At).

after_full_stop(<<".", _/binary>>, Block, At, _) -> witness_log_term:expected(~"the end of the line", Block, At);
after_full_stop(Rest, Block, At, Item) -> last(Rest, Block, At, Item).

comment(<<"\n", _/binary>>, _, At, Item) -> {Item, At + 1};
comment(<<C, Rest/binary>>, Block, At, Item) when C < 16#80 -> comment(Rest, Block, At + 1, Item);
comment(<<C/utf8, Rest/binary>>, Block, At, Item) -> comment(Rest, Block, At + byte_size(<<C/utf8>>), Item);
comment(<<>>, _, At, Item) -> {Item, At};
comment(_, _, At, _) -> witness_log_term:unreadable(At).

%% The item from its arguments, in reverse, each followed by its offset.
item(recv, [Msg, _, P, At], Time) ->
    witness_log_item:check({recv, peer(P), undefined, Msg, Time}, [At, At]);
item(recv, [Msg, _, From, AtFrom, P, At], Time) ->
    witness_log_item:check({recv, peer(P), peer(From), Msg, Time}, [At, AtFrom]);
item(send, [Msg, _, To, AtTo, P, At], Time) ->
    witness_log_item:check({send, peer(P), peer(To), Msg, Time}, [At, AtTo]);
item(fork, [Signature, AtSignature, Child, AtChild, P, At], Time) ->
    witness_log_item:check({fork, peer(P), peer(Child), Signature, Time}, [At, AtChild, AtSignature]);
item(init, [Signature, AtSignature, Parent, AtParent, P, At], Time) ->
    witness_log_item:check({init, peer(P), peer(Parent), Signature, Time}, [At, AtParent, AtSignature]);
item(exit, [Reason, _, P, At], Time) ->
    witness_log_item:check({exit, peer(P), Reason, Time}, [At]);
item(call, [Call, AtCall, P, At], Time) ->
    witness_log_item:check({call, peer(P), Call, Time}, [At, AtCall]);
item(return, [Value, _, Function, AtFunction, P, At], Time) ->
    witness_log_item:check({return, peer(P), Function, Value, Time}, [At, AtFunction]);
item(gap, [Reason, AtReason, P, At], Time) ->
    witness_log_item:check({gap, peer(P), Reason, unknown, Time}, [At, AtReason, AtReason]);
item(gap, [Missing, AtMissing, Reason, AtReason, P, At], Time) ->
    witness_log_item:check({gap, peer(P), Reason, Missing, Time}, [At, AtReason, AtMissing]);
item(attached, [Function, AtFunction, P, At], Time) ->
    witness_log_item:check({attached, peer(P), Function, Time}, [At, AtFunction]);
item(root, [P, At], Time) ->
    witness_log_item:check({root, peer(P), Time}, [At]);
item(receives, [What, _], _) when What =:= taken; What =:= delivered ->
    {receives, What};
item(functions, [Functions, At], _) ->
    witness_log_item:functions(Functions, At);
item(clock, [Time, At], _) ->
    witness_log_item:clock(Time, At);
item(Kind, _, _) ->
    {arguments, Kind}.

peer(P) when is_pid(P) -> P;
peer(P) -> witness_log_item:peer(P).

shape(recv) -> ~"recv(Process,Message) or recv(Process,From,Message)";
shape(send) -> ~"send(From,To,Message)";
shape(fork) -> ~"fork(Parent,Child,{m,f,[Argument]})";
shape(init) -> ~"init(Child,Parent,{m,f,[Argument]})";
shape(exit) -> ~"exit(Process,Reason)";
shape(call) -> ~"call(Process,{m,f,[Argument]})";
shape(return) -> ~"return(Process,{m,f,Arity},Value)";
shape(gap) -> ~"gap(Process,Reason) or gap(Process,Reason,Missing)";
shape(attached) -> ~"attached(Process,{m,f,Arity})";
shape(root) -> ~"root(Process)";
shape(receives) -> ~"receives(taken) or receives(delivered)";
shape(functions) -> ~"functions([{m,f,Arity},...])";
shape(clock) -> ~"clock(Nanoseconds)".
