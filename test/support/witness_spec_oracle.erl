-module(witness_spec_oracle).
-moduledoc """
The meaning of specifications, written from docs/internals/semantics.md alone. It shares no code, no representation and no
intermediate result with the compiler. It is slow and direct.

- `machine/3`, `time/2`, `event/2` and `finish/1` are a monitor: they follow the rules S, M and N of that page.
- `satisfies/4` is the definition of the sets of traces, without any rule. It judges the monitors.
""".

-export([actions/1, functions/1, is_member/2, machine/2, machine/3, time/2, event/2, finish/1, offers/1, obligations/1,
         bounds/2, coverage/1, decides/1, heavy/1, failed/1, drop/2, asked/2, open/1, definition/1, values/1, project/2, valued/4,
         satisfies/4, binding/2, match/3, value/2, slice/2, ts/1, parts/1, variables/1, normal/1]).
-export_type([asked/0, property/0, formula/0, action/0, pattern/0, expr/0, guard/0, verdict/0, machine/0, env/0, residual/0]).

-doc """
Without a signature it is about all processes: what it reads are the events of all of them, or of those that are `among` signatures.
`traces` says which random traces it is given. By `clocks` nanoseconds the clocks of its events may differ: such a property has two bounds, its
formula where deadlines are as much against it as may be, and where they are as much for it.
""".
-type property() :: #{signatures := [{pattern(), guard()}], dialect := monitor | check | none, formula => formula(),
                      among => [{pattern(), guard()}], group := boolean(), per := [atom()],
                      over := all | [action() | {'begin', action()}],
                      name := undefined | atom(), values => witness_spec_oracle_values:values(),
                      traces => witness_spec_oracle_gen:traces(), clocks => non_neg_integer(),
                      written => {[witness_spec_oracle_define:definition()], Over :: term(), Values :: term(), Formula :: term()}}.
-type formula() :: tt | ff | {rec, atom(), [expr()]} | {'and' | 'or', [formula()]}
    | {max | min, atom(), Parameters :: [{atom(), expr()}], formula()}
    | {within | during, Nanoseconds :: non_neg_integer(), formula()}
    | {box | dia, action(), formula()}.
-doc """
The patterns stand in the order of the table of actions. `{to, Pattern}` behind that of a message is for the request of a reply. One more
is the variable behind `at`. An `else` is written without others. Behind the process, a `call` has the pattern of `{M, F, Arguments}`, as a
signature has it, and a `return` the literal `{M, F, Arity}`, and the pattern of the value.
""".
-type action() :: {fork | init | exit | send | recv | call | return, [pattern() | {to, pattern()}], guard()}
    | {'else', [], Others :: [action()]}.
-doc "An event with the request that it answers, or none.".
-type asked() :: {answers, witness_event:event(), [Request :: term()]}.
-doc "What the actions of a formula read: an event with the values of the `let`s at its place, if they are known.".
-type valued() :: {valued, asked(), env() | unknown}.
-type pattern() :: '_' | {var, atom()} | {lit, atom() | number() | mfa()} | {tuple, [pattern()]}
    | {list, [pattern()], nil | pattern()} | {text, string()} | {prefix, string(), pattern()}
    | {map, [{expr(), pattern()}]} | {same, pattern(), pattern()} | {bin, [segment()]}
    | {record, atom(), [{atom(), pattern()}], none | pattern()} | {otp, atom(), [pattern()]}.
-type segment() :: {int, '_' | {var, atom()} | {lit, integer()}, Bits :: expr(), signed | unsigned, big | little}
    | {bytes, '_' | {var, atom()}, expr()} | {rest, binary | bits, '_' | {var, atom()}} | {text, string()}.
-type expr() :: {var, atom()} | {lit, term()} | {op, atom(), [expr()]} | {call, atom(), [expr()]}
    | {'andalso' | 'orelse', expr(), expr()} | {tuple, [expr()]} | {cons, expr(), expr()} | {map, [{expr(), expr()}]}
    | {ask, Let :: {var, atom()}, [expr()]} | {field, expr(), atom(), atom()} | {is_record, expr(), atom()}
    | {remote, module(), atom(), [expr()]} | {update, expr(), [{expr(), expr()}]}.
-type guard() :: [[expr()]].
-type env() :: #{atom() => term()}.

-doc "`key` is `none` without slices; `event` is `end` at the complete end.".
-type verdict() :: {Key :: none | tuple(), yes | no | inconclusive, Vacuous :: boolean()}.
-opaque machine() :: map().

%% Actions.

-doc "The substitution of an action for an event, if it matches.".
-spec match(action(), valued() | asked() | witness_event:event(), env()) -> {ok, env()} | no | unknown.
match(Action, {valued, Event, #{} = Values}, Env) -> match(Action, Event, maps:merge(Env, Values));
match({'else', [], Others}, Event, Env) ->
    Results = [match(Other, Event, Env) || Other <- Others],
    case {lists:any(fun is_tuple/1, Results), lists:member(unknown, Results)} of
        {true, _} -> no;
        {false, true} -> unknown;
        {false, false} -> {ok, Env}
    end;
match({Kind, [P, Q, M, {to, Request} | Behind], Guard}, {answers, Event, [Asked]}, Env) ->
    matched({Kind, [P, Q, M, Request | Behind], Guard}, data(Event, [Asked]), ts(Event), Env);
match({_, [_, _, _, {to, _} | _], _}, _, _) -> no;
match(Action, Event, Env) -> matched(Action, data(Event), ts(Event), Env).

matched({Kind, Patterns, Guard}, Data, Known, Env) ->
    case {Data, case Patterns =/= [] andalso lists:last(Patterns) of '_' -> 0; _ -> Known end} of
        {{Kind, Terms}, _} when length(Terms) =:= length(Patterns) -> guarded(patterns(Patterns, Terms, Env, Env), Guard);
        {{Kind, Terms}, undefined} ->
            Used = variables(lists:last(Patterns)),
            Without = [[Test || Test <- Tests, Used -- variables(Test) =:= Used] || Tests <- Guard],
            case guarded(patterns(lists:droplast(Patterns), Terms, Env, Env), Without) of
                {ok, _} -> unknown;
                no -> no
            end;
        {{Kind, Terms}, Time} -> guarded(patterns(Patterns, Terms ++ [Time], Env, Env), Guard);
        _ -> no
    end.

%% Requests.

-doc "The event with the request that it answers, after the events before it, the last one first.".
-spec asked(witness_event:event(), [witness_event:event()]) -> asked().
asked({send, _, _, {Tag, _}, _} = Event, Before) -> {answers, Event, last_request(Tag, Before)};
asked(Event, _) -> {answers, Event, []}.

last_request(Tag, [{recv, _, _, {'$gen_call', {_, Called}, Request}, _} | _]) when Tag =:= Called -> [Request];
last_request(Tag, [{send, _, _, {Sent, _}, _} | _]) when Tag =:= Sent -> [];
last_request(Tag, [_ | Before]) -> last_request(Tag, Before);
last_request(_, []) -> [].

-doc "The tags of the calls that these events have left open, the last event first.".
-spec open([witness_event:event()]) -> [Tag :: term()].
open(Events) -> [Tag || {recv, _, _, {'$gen_call', {_, Tag}, _}, _} <- Events, last_request(Tag, Events) =/= []].

%% Time. A deadline is kept as what it is counted from, how long it is, and the value behind it. With clocks that differ, `@error`
%% makes each deadline the easier to meet the greater it is.

deadline(Length, Value, #{'@now' := Now} = Env) ->
    Env#{'@deadline' => case Env of
        #{'@deadline' := {From, Outer, _} = Around} when is_integer(From), is_integer(Now), From + Outer =< Now + Length -> Around;
        #{'@deadline' := {Now, Outer, _} = Around} when Outer =< Length -> Around;
        _ -> {Now, Length, Value}
    end}.

%% What is known at an event: the same as before, or the value of what has a deadline.
at_event({valued, _, unknown}, _) -> unknown;
at_event(Event, #{'@deadline' := {start, Length, Value}} = Env) ->
    at_event(Event, Env#{'@deadline' := {ts(Event), Length, Value}});
at_event(Event, #{'@deadline' := {From, Length, Value}} = Env) ->
    Time = ts(Event),
    if
        From =:= undefined; Time =:= undefined -> unknown;
        Time > From + Length -> Value;
        true -> Env
    end;
at_event(_, Env) -> Env.

at_end(_, #{'@deadline' := {_, _, Value}}) -> Value;
at_end(box, _) -> tt;
at_end(dia, _) -> ff.

late(within) -> ff;
late(during) -> tt.

longest(within, Length, Env) -> Length + maps:get('@error', Env, 0);
longest(during, Length, Env) -> Length - maps:get('@error', Env, 0).

-doc "The substitutions for the two bounds of a formula, the lower one first; for one formula if clocks do not differ.".
-spec bounds(env(), property()) -> [env(), ...].
bounds(Env, #{clocks := Error, formula := Formula}) when Error > 0 ->
    case has_deadline(Formula) of
        true -> [Env#{'@error' => -Error}, Env#{'@error' => Error}];
        false -> [Env]
    end;
bounds(Env, _) -> [Env].

has_deadline({Timed, _, _}) when Timed =:= within; Timed =:= during -> true;
has_deadline({rec, _, _}) -> false;
has_deadline({_, Formulas}) when is_list(Formulas) -> lists:any(fun has_deadline/1, Formulas);
has_deadline({_, _, F}) -> has_deadline(F);
has_deadline({_, _, _, F}) -> has_deadline(F);
has_deadline(_) -> false.

-doc "How many patterns an action of this kind has, without those behind `to` and `at`.".
-spec parts(fork | init | exit | send | recv | call | return) -> 2 | 3.
parts(Kind) when Kind =:= exit; Kind =:= recv; Kind =:= call -> 2;
parts(_) -> 3.

-doc "The time of an event.".
-spec ts(valued() | asked() | witness_event:event()) -> integer() | undefined.
ts({valued, Event, _}) -> ts(Event);
ts({answers, Event, _}) -> witness_event:ts(Event);
ts(Event) -> witness_event:ts(Event).

data(Event, More) ->
    {Kind, Terms} = data(Event),
    {Kind, Terms ++ More}.

data({valued, Event, _}) -> data(Event);
data({answers, Event, _}) -> data(Event);
data({fork, P, C, Signature, _}) -> {fork, [P, C, Signature]};
data({init, C, P, Signature, _}) -> {init, [C, P, Signature]};
data({exit, P, Reason, _}) -> {exit, [P, Reason]};
data({send, P, To, Message, _}) -> {send, [P, To, Message]};
data({recv, P, _, Message, _}) -> {recv, [P, Message]};
data({call, P, {_, _, Arguments} = Called, _}) when is_list(Arguments) -> {call, [P, Called]};
data({return, P, {_, _, Arity} = Function, Value, _}) when is_integer(Arity) -> {return, [P, Function, Value]}.

guarded({ok, Env}, Guard) -> case holds(Guard, Env) of true -> {ok, Env}; false -> no end;
guarded(no, _) -> no.

holds([], _) -> true;
holds(Alternatives, Env) ->
    lists:any(fun(Tests) -> lists:all(fun(Test) -> value(Test, Env) =:= {ok, true} end, Tests) end, Alternatives).

-doc "The value of an expression; `error` if it fails.".
-spec value(expr(), env()) -> {ok, term()} | error.
value(Expr, Env) ->
    try {ok, operand(Expr, Env)} catch error:_ -> error end.

%% A test, or an operand of `andalso` or `orelse`: false where a variable is not the record that it is used as.
operand(Expr, Env) ->
    case lists:all(fun(Access) -> is_such(Access, Env) end, accesses(Expr)) of
        true -> eval(Expr, Env);
        false -> false
    end.

accesses({field, _, _, _} = Access) -> [Access];
accesses({Short, _, _}) when Short =:= 'andalso'; Short =:= 'orelse' -> [];
accesses({lit, _}) -> [];
accesses(Tuple) when is_tuple(Tuple) -> accesses(tuple_to_list(Tuple));
accesses([Head | Tail]) -> accesses(Head) ++ accesses(Tail);
accesses(_) -> [].

is_such({field, Expr, Record, _}, Env) -> eval({is_record, Expr, Record}, Env).

eval({var, X}, Env) -> map_get(X, Env);
eval({lit, Term}, _) -> Term;
eval({ask, Let, Args}, Env) -> (eval(Let, Env))([eval(Arg, Env) || Arg <- Args]);
eval({op, Op, Args}, Env) -> apply(erlang, Op, [eval(Arg, Env) || Arg <- Args]);
eval({call, Bif, Args}, Env) -> apply(erlang, Bif, [eval(Arg, Env) || Arg <- Args]);
eval({'andalso', Left, Right}, Env) -> case operand(Left, Env) of true -> operand(Right, Env); false -> false end;
eval({'orelse', Left, Right}, Env) -> case operand(Left, Env) of true -> true; false -> operand(Right, Env) end;
eval({tuple, Exprs}, Env) -> list_to_tuple([eval(Expr, Env) || Expr <- Exprs]);
eval({cons, Head, Tail}, Env) -> [eval(Head, Env) | eval(Tail, Env)];
eval({map, Fields}, Env) -> maps:from_list([{eval(Key, Env), eval(Value, Env)} || {Key, Value} <- Fields]);
eval({remote, Module, Function, Args}, Env) -> apply(Module, Function, [eval(Arg, Env) || Arg <- Args]);
eval({update, Map, Fields}, Env) ->
    maps:merge(eval(Map, Env), maps:from_list([{eval(Key, Env), eval(Value, Env)} || {Key, Value} <- Fields]));
eval({field, Expr, Record, Field}, Env) ->
    element(position(Field, witness_spec_oracle_gen:fields(Record)) + 1, eval(Expr, Env));
eval({is_record, Expr, Record}, Env) ->
    is_record(eval(Expr, Env), Record, length(witness_spec_oracle_gen:fields(Record)) + 1).

position(Field, [Field | _]) -> 1;
position(Field, [_ | Fields]) -> 1 + position(Field, Fields).

%% `Outer` is the substitution before the action: keys are computed from it.
patterns([Pattern | Patterns], [Term | Terms], Env, Outer) ->
    case pattern(Pattern, Term, Env, Outer) of
        {ok, Next} -> patterns(Patterns, Terms, Next, Outer);
        no -> no
    end;
patterns([], [], Env, _) -> {ok, Env};
patterns(_, _, _, _) -> no.

pattern('_', _, Env, _) -> {ok, Env};
pattern({var, X}, Term, Env, _) ->
    case Env of
        #{X := Known} when Known =:= Term -> {ok, Env};
        #{X := _} -> no;
        _ -> {ok, Env#{X => Term}}
    end;
pattern({lit, Literal}, Term, Env, _) -> equal(Literal, Term, Env);
pattern({text, Text}, Term, Env, _) -> equal(Text, Term, Env);
pattern({tuple, Patterns}, Term, Env, Outer) when is_tuple(Term) -> patterns(Patterns, tuple_to_list(Term), Env, Outer);
pattern({list, [], nil}, Term, Env, _) -> equal([], Term, Env);
pattern({list, [], Tail}, Term, Env, Outer) -> pattern(Tail, Term, Env, Outer);
pattern({list, [Head | Heads], Tail}, [First | Rest], Env, Outer) ->
    patterns([Head, {list, Heads, Tail}], [First, Rest], Env, Outer);
pattern({prefix, [C | Text], Tail}, [First | Rest], Env, Outer) when C =:= First ->
    pattern({prefix, Text, Tail}, Rest, Env, Outer);
pattern({prefix, [], Tail}, Term, Env, Outer) -> pattern(Tail, Term, Env, Outer);
pattern({map, Fields}, Term, Env, Outer) when is_map(Term) ->
    lists:foldl(fun
        (_, no) -> no;
        ({Key, Pattern}, {ok, Now}) ->
            case value(Key, Outer) of
                {ok, Known} when is_map_key(Known, Term) -> pattern(Pattern, map_get(Known, Term), Now, Outer);
                _ -> no
            end
    end, {ok, Env}, Fields);
pattern({same, One, Other}, Term, Env, Outer) -> patterns([One, Other], [Term, Term], Env, Outer);
pattern({bin, Segments}, Term, Env, Outer) when is_bitstring(Term) -> segments(Segments, Term, Env, Outer);
pattern({record, Name, Named, Others}, Term, Env, Outer) ->
    Rest = case Others of none -> '_'; _ -> Others end,
    Patterns = [proplists:get_value(Field, Named, Rest) || Field <- witness_spec_oracle_gen:fields(Name)],
    pattern({tuple, [{lit, Name} | Patterns]}, Term, Env, Outer);
pattern({otp, Name, Patterns}, Term, Env, Outer) -> otp(Name, Patterns, Term, Env, Outer);
pattern(_, _, _, _) -> no.

equal(Term, Other, Env) when Term =:= Other -> {ok, Env};
equal(_, _, _) -> no.

%% Sizes are computed from what was known before the action and from earlier segments of the same binary.
segments(Segments, Bits, Env, Outer) -> segments(Segments, Bits, Env, Outer, Outer).

segments([{text, Text} | Segments], Bits, Env, Sizes, Outer) ->
    Size = length(Text) * 8,
    case Bits of
        <<Taken:Size/bits, Rest/bits>> ->
            case list_to_binary(Text) =:= Taken of
                true -> segments(Segments, Rest, Env, Sizes, Outer);
                false -> no
            end;
        _ -> no
    end;
segments([{int, Pattern, Expr, Signed, Endian} | Segments], Bits, Env, Sizes, Outer) ->
    case taken(value(Expr, Sizes), 1, Bits) of
        {Taken, Rest} -> segment(Pattern, integer(Signed, Endian, Taken), Segments, Rest, Env, Sizes, Outer);
        no -> no
    end;
segments([{bytes, Pattern, Expr} | Segments], Bits, Env, Sizes, Outer) ->
    case taken(value(Expr, Sizes), 8, Bits) of
        {Taken, Rest} -> segment(Pattern, Taken, Segments, Rest, Env, Sizes, Outer);
        no -> no
    end;
segments([{rest, binary, _}], Bits, _, _, _) when not is_binary(Bits) -> no;
segments([{rest, _, Pattern}], Bits, Env, Sizes, Outer) -> segment(Pattern, Bits, [], <<>>, Env, Sizes, Outer);
segments([], <<>>, Env, _, _) -> {ok, Env};
segments([], _, _, _, _) -> no.

segment(Pattern, Term, Segments, Rest, Env, Sizes, Outer) ->
    case pattern(Pattern, Term, Env, Outer) of
        {ok, Next} ->
            Known = case Pattern of {var, X} -> Sizes#{X => Term}; _ -> Sizes end,
            segments(Segments, Rest, Next, Known, Outer);
        no ->
            no
    end.

taken({ok, N}, Unit, Bits) when is_integer(N), N >= 0, N * Unit =< bit_size(Bits) ->
    Size = N * Unit,
    <<Taken:Size/bits, Rest/bits>> = Bits,
    {Taken, Rest};
taken(_, _, _) -> no.

integer(Signed, Endian, Bits) ->
    Size = bit_size(Bits),
    Value = case Endian of
        big -> lists:foldl(fun(Bit, Acc) -> Acc * 2 + Bit end, 0, [Bit || <<Bit:1>> <= Bits]);
        little -> <<V:Size/little>> = Bits, V
    end,
    case Signed of
        signed when Size > 0, Value >= 1 bsl (Size - 1) -> Value - (1 bsl Size);
        _ -> Value
    end.

%% Messages of OTP.
otp(call, [From, Request], Term, Env, Outer) -> tagged('$gen_call', [From, Request], Term, Env, Outer);
otp(cast, [Message], Term, Env, Outer) -> tagged('$gen_cast', [Message], Term, Env, Outer);
otp(notify, [Event], Term, Env, Outer) -> tagged(notify, [Event], Term, Env, Outer);
otp(sync_notify, [From, Event], {_, Sender, {sync_notify, Term}}, Env, Outer) ->
    patterns([From, Event], [Sender, Term], Env, Outer);
otp(call, [From, Handler, Request], {_, Sender, {call, To, Term}}, Env, Outer) ->
    patterns([From, Handler, Request], [Sender, To, Term], Env, Outer);
otp(reply, [{tuple, ['_', Tag]}, Reply], {Sent, Term}, Env, Outer) -> patterns([Tag, Reply], [Sent, Term], Env, Outer);
otp(reply, ['_', Reply], {Tag, Term}, Env, Outer) ->
    case is_tag(Tag) of true -> pattern(Reply, Term, Env, Outer); false -> no end;
otp(reply, [{var, From}, Reply], {Tag, Term}, Env, Outer) ->
    case value({call, element, [{lit, 2}, {var, From}]}, Env) of
        {ok, Tag} -> pattern(Reply, Term, Env, Outer);
        _ -> no
    end;
otp(reply, [{tag, X}, Reply], {Tag, Term}, Env, Outer) ->
    case is_tag(Tag) of true -> patterns([{var, X}, Reply], [Tag, Term], Env, Outer); false -> no end;
otp(info, [Pattern], Term, Env, Outer) ->
    case Term of
        {'$gen_call', _, _} -> no;
        {'$gen_cast', _} -> no;
        {system, _, _} -> no;
        {notify, _} -> no;
        {[alias | _], _} -> no;
        {[[alias | _] | _], _} -> no;
        {P, {Q, _}, Request} when is_pid(P), is_pid(Q) ->
            case is_request(Request) of true -> no; false -> pattern(Pattern, Term, Env, Outer) end;
        _ -> pattern(Pattern, Term, Env, Outer)
    end;
otp(_, _, _, _, _) -> no.

is_tag([alias | _]) -> true;
is_tag([[alias | _] | _]) -> true;
is_tag(Tag) -> is_reference(Tag).

%% The requests of gen_event.
is_request(Request) when is_tuple(Request), tuple_size(Request) > 1 ->
    lists:member(element(1, Request), [sync_notify, call, add_handler, add_sup_handler, delete_handler, swap_handler,
                                       swap_sup_handler]);
is_request(Request) -> Request =:= which_handlers orelse Request =:= get_modules.

-doc "The actions of `over`, marked or not.".
-spec actions(all | [action() | {'begin', action()}]) -> [action()].
actions(all) -> [];
actions(Over) -> [case Seen of {'begin', Action} -> Action; Action -> Action end || Seen <- Over].

-doc "The functions that `over` names, each with what is an event: the call or the return.".
-spec functions(all | [action() | {'begin', action()}]) -> [{call | return, mfa()}].
functions(Over) ->
    lists:usort(lists:flatmap(fun
        ({call, [_, {tuple, [{lit, Module}, {lit, Function}, {list, Arguments, nil}]} | _], _}) ->
            [{call, {Module, Function, length(Arguments)}}];
        ({return, [_, {lit, Function} | _], _}) -> [{return, Function}];
        (_) -> []
    end, actions(Over))).

%% What the formula means: with tags, and with the others of each `else`.
meant(Property) ->
    #{formula := Formula} = Tagged = with_tags(maps:merge(#{values => []}, Property)),
    Tagged#{formula := others(Formula)}.

others({Op, [Single]}) -> {Op, [others(Single)]};
others({Op, Formulas} = Whole) when is_list(Formulas) -> put_others(Op, described(Op, Whole), Whole);
others({Modality, {'else', _, _}, F}) -> {Modality, {'else', [], []}, others(F)};
others({Before, Other, F}) -> {Before, Other, others(F)};
others({Fix, X, Parameters, F}) when Fix =/= rec -> {Fix, X, Parameters, others(F)};
others(Other) -> Other.

%% The actions of the modalities of a combination. What stands alone in a combination of its own is a member of the one around it.
described(Op, {_, [Single]}) -> described(Op, Single);
described(Op, {Op, Formulas}) -> lists:append([described(Op, F) || F <- Formulas]);
described(_, {Modality, {Kind, _, _} = Action, _}) when Modality =:= box; Modality =:= dia -> [Action || Kind =/= 'else'];
described(_, _) -> [].

put_others(Op, Known, {One, [Single]}) -> {One, [put_others(Op, Known, Single)]};
put_others(Op, Known, {Op, Formulas}) -> {Op, [put_others(Op, Known, F) || F <- Formulas]};
put_others(_, Known, {Modality, {'else', _, _}, F}) -> {Modality, {'else', [], Known}, others(F)};
put_others(_, _, F) -> others(F).

%% A key that is the `From` of a reply in `over` represents a tag.
with_tags(#{over := Over, per := Per, formula := Formula} = Property) when is_list(Over) ->
    case [X || {_, Patterns, _} <- actions(Over), {otp, reply, [{var, X}, _]} <- Patterns, lists:member(X, Per)] of
        [] -> Property;
        Tags ->
            Property#{over := [tags(Action, tag, Tags) || Action <- Over],
                      formula := tags(Formula, known, Tags), values => tags(maps:get(values, Property, []), known, Tags)}
    end;
with_tags(Property) -> Property.

tags({otp, reply, [{var, X}, Reply]} = Pattern, How, Tags) ->
    case {lists:member(X, Tags), How} of
        {true, tag} -> {otp, reply, [{tag, X}, Reply]};
        {true, known} -> {otp, reply, [{tuple, ['_', {var, X}]}, Reply]};
        _ -> Pattern
    end;
tags({otp, Name, [{var, X} | Patterns]} = Pattern, _, Tags) ->
    case lists:member(X, Tags) of true -> {otp, Name, [{tuple, ['_', {var, X}]} | Patterns]}; false -> Pattern end;
tags(Tuple, How, Tags) when is_tuple(Tuple) -> list_to_tuple(tags(tuple_to_list(Tuple), How, Tags));
tags([Head | Tail], How, Tags) -> [tags(Head, How, Tags) | tags(Tail, How, Tags)];
tags(Other, _, _) -> Other.

tagged(Tag, Patterns, Term, Env, Outer) when element(1, Term) =:= Tag ->
    patterns(Patterns, tl(tuple_to_list(Term)), Env, Outer);
tagged(_, _, _, _, _) -> no.

%% Variables that patterns, guards and actions name.
-doc "All variables named in a pattern, an expression, a guard, or a list of them.".
-spec variables(term()) -> [atom()].
variables(Term) -> lists:usort(named(Term)).

named({var, X}) -> [X];
named({tag, X}) -> [X];
named({lit, _}) -> [];
named({text, _}) -> [];
named({prefix, _, Pattern}) -> named(Pattern);
named(Tuple) when is_tuple(Tuple) -> named(tuple_to_list(Tuple));
named([Head | Tail]) -> named(Head) ++ named(Tail);
named(_) -> [].

%% The first substitution, from the signature.

-doc "The substitution that a property begins with for a process of this signature.".
-spec binding(property(), witness_event:signature()) -> {ok, env()} | no.
binding(#{signatures := []}, _) -> {ok, #{}};
binding(#{signatures := Signatures}, Signature) ->
    Shared = shared(Signatures),
    first([fun() ->
        case guarded(pattern(Pattern, Signature, #{}, #{}), Guard) of
            {ok, Env} -> {ok, maps:with(Shared, Env)};
            no -> no
        end
    end || {Pattern, Guard} <- Signatures]).

-doc "Whether a property over all processes reads one with this signature, which is `undefined` if it is not known.".
-spec is_member(property(), witness_event:signature() | undefined) -> boolean() | unknown.
is_member(#{among := Among} = Property, Signature) ->
    case binding(Property#{signatures := Among}, Signature) of
        {ok, _} -> true;
        no when Signature =:= undefined -> unknown;
        no -> false
    end;
is_member(_, _) -> true.

shared([]) -> [];
shared(Signatures) ->
    [First | Others] = [variables(Pattern) || {Pattern, _} <- Signatures],
    lists:foldl(fun(Names, Acc) -> [Name || Name <- Acc, lists:member(Name, Names)] end, First, Others).

first([]) -> no;
first([Try | Tries]) -> case Try() of no -> first(Tries); Found -> Found end.

%% Formulas with what the rules need to know of each place: {Number, Variables, Recursions, Form}. Recursion variables
%% get unique names. The names of the `let`s are among those of the recursion variables.

prepared(Formula, Scope, Values) ->
    {Node, _} = number(simplified(Formula), Scope, named_values(Values), 1),
    Node.

named_values(Values) -> #{'@values' => [Name || {Name, _} <- Values]}.

%% S1 to S4.
simplified({Op, Formulas}) when Op =:= 'and'; Op =:= 'or' ->
    {Neutral, Zero} = case Op of 'and' -> {tt, ff}; 'or' -> {ff, tt} end,
    Members = [simplified(F) || F <- Formulas],
    case lists:member(Zero, Members) of
        true -> Zero;
        false ->
            case [M || M <- Members, M =/= Neutral] of
                [] -> Neutral;
                [Single] -> Single;
                Several -> {Op, Several}
            end
    end;
simplified({Fix, X, Parameters, F}) when Fix =:= max; Fix =:= min ->
    Inner = simplified(F),
    case {occurs(X, Inner), Inner} of
        {false, {rec, Y, Values}} ->
            {rec, Y, lists:foldr(fun({Name, First}, Now) -> replaced(Name, First, Now) end, Values, Parameters)};
        {Occurs, _} when Occurs; Parameters =/= [], not is_atom(Inner) -> {Fix, X, Parameters, Inner};
        _ -> Inner
    end;
simplified({Modality, Action, F}) when Modality =:= box; Modality =:= dia -> {Modality, Action, simplified(F)};
simplified({Timed, Length, F}) when Timed =:= within; Timed =:= during ->
    case simplified(F) of
        Constant when is_atom(Constant) -> Constant;
        Inner -> {Timed, Length, Inner}
    end;
simplified(F) -> F.

replaced(Name, Value, {var, Name}) -> Value;
replaced(_, _, {lit, _} = Literal) -> Literal;
replaced(Name, Value, Tuple) when is_tuple(Tuple) -> list_to_tuple(replaced(Name, Value, tuple_to_list(Tuple)));
replaced(Name, Value, [Head | Tail]) -> [replaced(Name, Value, Head) | replaced(Name, Value, Tail)];
replaced(_, _, Other) -> Other.

occurs(X, {rec, Y, _}) -> X =:= Y;
occurs(X, {Fix, Y, _, F}) when Fix =:= max; Fix =:= min -> X =/= Y andalso occurs(X, F);
occurs(X, {_, Formulas}) when is_list(Formulas) -> lists:any(fun(F) -> occurs(X, F) end, Formulas);
occurs(X, {_, _, F}) -> occurs(X, F);
occurs(_, _) -> false.

number({rec, X, Values}, Scope, Loops, N) ->
    {Unique, Timed} = map_get(X, Loops),
    Times = ['@now' || Timed] ++ ['@deadline' || lists:member('@deadline', Scope)],
    {{N, lists:usort(Times ++ variables(Values)), [Unique], {rec, Unique, Values}}, N + 1};
number({Timed, Length, F}, Scope, Loops, N) when Timed =:= within; Timed =:= during ->
    {{_, Vars, Recs, _} = Node, Next} = number(F, lists:usort(['@deadline' | Scope]), Loops, N + 1),
    Outer = ['@deadline' || lists:member('@deadline', Scope)],
    Error = ['@error' || lists:member('@error', Scope)],
    {{N, lists:usort(['@now' | Error ++ Outer] ++ (Vars -- ['@deadline'])), Recs, {Timed, Length, Node}}, Next};
number({Op, Formulas}, Scope, Loops, N) ->
    {Nodes, Next} = lists:mapfoldl(fun(F, I) -> number(F, Scope, Loops, I) end, N + 1, Formulas),
    {{N, lists:usort(lists:append([Vars || {_, Vars, _, _} <- Nodes])),
      lists:usort(lists:append([Recs || {_, _, Recs, _} <- Nodes])), {Op, Nodes}}, Next};
number({Fix, X, Parameters, F}, Scope, Loops, N) when Fix =:= max; Fix =:= min ->
    {Names, _} = lists:unzip(Parameters),
    {{_, Vars, Recs, _} = Node, Next} = number(F, lists:usort(Names ++ Scope), Loops#{X => {N, begins_timed(F, Loops)}}, N + 1),
    %% The first value of a parameter that is not needed is not needed either.
    Needed = lists:foldl(fun({Name, Value}, Some) ->
        case lists:member(Name, Some) of true -> lists:usort(variables(Value) ++ Some) -- [Name]; false -> Some end
    end, Vars, lists:reverse(Parameters)),
    {{N, Needed, Recs -- [N], {Fix, N, Parameters, Node}}, Next};
number({Modality, {_, Patterns, Guard} = Action, F}, Around, #{'@values' := Values} = Loops, N) ->
    %% Each action binds the values anew.
    Scope = Around -- Values,
    Bound = lists:usort(Scope ++ Values ++ variables(Patterns)),
    {{_, Vars, Recs, _} = Node, Next} = number(F, Bound, Loops, N + 1),
    Used = [X || X <- lists:usort(['@deadline'] ++ variables([Patterns | Guard]) ++ Vars), lists:member(X, Scope)],
    {{N, Used, Recs, {Modality, Action, Node}}, Next};
number(Constant, _, _, N) ->
    {{N, [], [], Constant}, N + 1}.

%% Whether a deadline begins with the formula.
begins_timed({Timed, _, _}, _) when Timed =:= within; Timed =:= during -> true;
begins_timed({Op, Formulas}, Loops) when Op =:= 'and'; Op =:= 'or' -> lists:any(fun(F) -> begins_timed(F, Loops) end, Formulas);
begins_timed({Fix, X, _, F}, Loops) when Fix =:= max; Fix =:= min -> begins_timed(F, maps:remove(X, Loops));
begins_timed({rec, X, _}, Loops) when is_map_key(X, Loops) -> element(2, map_get(X, Loops));
begins_timed(_, _) -> false.

%% Residuals: tt, ff, unknown, {ob, Node, Env, Loops}, {'and' | 'or', Residuals}. Loops maps recursion variables to their fixpoints,
%% each with the variables and loops outside of it. The fixpoints around an obligation share its place.

behind({_, _, _, Constant}, _, _) when is_atom(Constant) -> Constant;
behind({_, _, _, {rec, X, Values}}, Env, Loops) ->
    {{_, _, _, {_, _, Parameters, _}} = Fixpoint, Outer, Outside} = map_get(X, Loops),
    Given = [{Name, value(Value, Env)} || {{Name, _}, Value} <- lists:zip(Parameters, Values)],
    enter(Fixpoint, Given, maps:merge(Outer, maps:with(['@now', '@deadline'], Env)), Outside);
behind({_, _, _, {Timed, Length, Node}}, Env, Loops) when Timed =:= within; Timed =:= during ->
    behind(Node, deadline(longest(Timed, Length, Env), late(Timed), Env), Loops);
behind({_, _, _, {Fix, _, Parameters, _}} = Fixpoint, Env, Loops) when Fix =:= max; Fix =:= min ->
    {Given, _} = lists:mapfoldl(fun({Name, Value}, Known) ->
        case value(Value, Known) of
            {ok, Term} -> {{Name, {ok, Term}}, Known#{Name => Term}};
            error -> {{Name, error}, maps:remove(Name, Known)}
        end
    end, Env, Parameters),
    enter(Fixpoint, Given, Env, Loops);
behind({_, Vars, Recs, _} = Node, Env, Loops) -> {ob, Node, maps:with(Vars, Env), maps:with(Recs, Loops)}.

%% Only parameters that are needed have to have a value.
enter({_, _, _, {_, X, _, {_, Vars, Recs, _} = Node}} = Fixpoint, Given, Env, Loops) ->
    case [Name || {Name, error} <- Given, lists:member(Name, Vars)] of
        [] ->
            {Names, _} = lists:unzip(Given),
            Loop = {Fixpoint, maps:with((Vars -- Names) -- ['@now', '@deadline'], Env), maps:with(Recs -- [X], Loops)},
            behind(Node, maps:merge(Env, #{Name => Term || {Name, {ok, Term}} <- Given}), Loops#{X => Loop});
        _ -> unknown
    end.

%% A formula of which clocks decide has a residual for each bound: `{bounds, Lower, Upper}`. What is between them is unknown.
%% Both begin inside of this one, so parameters get their values with the first event.
begun(Root, #{env := Env, clocked := Clocked}, Own) ->
    case bounds(maps:merge(Env, Own), Clocked) of
        [One] -> behind(Root, One, #{});
        [Lower, Upper] -> {bounds, inside(Root, Lower), inside(Root, Upper)}
    end.

inside({_, _, _, Constant}, _) when is_atom(Constant) -> Constant;
inside(Root, Env) -> {ob, Root, Env, #{}}.

in_bounds(Change, {bounds, Lower, Upper}) -> between(Change(Lower), Change(Upper));
in_bounds(Change, Residual) -> Change(Residual).

between(tt, _) -> tt;
between(Lower, Upper) when Lower =:= unknown; Upper =:= unknown -> unknown;
between(ff, Upper) when is_atom(Upper) -> case Upper of tt -> unknown; ff -> ff end;
between(Lower, Upper) -> {bounds, Lower, Upper}.

whole({bounds, Lower, Upper}) -> {'or', [Lower, {'and', [Upper, unknown]}]};
whole(Residual) -> Residual.

%% M3: a residual as the combination of its modalities.
unfolded({bounds, _, _} = Residual) -> unfolded(whole(Residual));
unfolded({Op, Residuals}) when is_list(Residuals) -> {Op, [unfolded(R) || R <- Residuals]};
unfolded({ob, {_, _, _, {Op, Nodes}}, Env, Loops}) when is_list(Nodes) -> {Op, [member(Node, Env, Loops) || Node <- Nodes]};
unfolded({ob, Node, Env, Loops}) -> member(Node, Env, Loops);
unfolded(Constant) -> Constant.

member({Number, _, _, {Modality, Action, Behind}}, Env, Loops) when Modality =:= box; Modality =:= dia ->
    #{number => Number, modality => Modality, action => Action, env => Env,
      behind => fun(Time, Inner) -> behind(Behind, Inner#{'@now' => Time}, Loops) end};
member(Node, Env, Loops) ->
    unfolded(behind(Node, Env, Loops)).

mapped(Change, {Op, Members}) -> {Op, [mapped(Change, M) || M <- Members]};
mapped(Change, #{} = Modality) -> Change(Modality);
mapped(_, Constant) -> Constant.

modalities({_, Members}) -> lists:append([modalities(M) || M <- Members]);
modalities(#{} = Modality) -> [Modality];
modalities(_) -> [].

%% M1 and M2.
stepped(Event, #{modality := Modality, action := Action, env := Before, behind := Behind}) ->
    case at_event(Event, Before) of
        #{} = Env ->
            case match(Action, Event, Env) of
                {ok, Inner} -> Behind(ts(Event), Inner);
                unknown -> unknown;
                no when Modality =:= box -> tt;
                no -> ff
            end;
        Late -> Late
    end.

%% Whether the event may engage the obligation: it is in time.
in_time(Event, #{env := Env}) -> is_map(at_event(Event, Env)).

%% When time passes, at the end or before an event at this time. No parameter is computed then. What has a deadline is what its
%% passing makes of it.
ended(When, {Op, Residuals}) when is_list(Residuals) -> normal({Op, [ended(When, R) || R <- Residuals]});
ended(When, {ob, Node, Env, Loops}) -> ending(When, Node, Env, Loops);
ended(_, Constant) -> Constant.

ending(When, {_, _, _, {Op, Nodes}}, Env, Loops) when is_list(Nodes) ->
    normal({Op, [ending(When, Node, Env, Loops) || Node <- Nodes]});
ending(When, {_, _, _, {rec, X, _}}, Env, Loops) ->
    {{_, _, _, {_, _, _, Node}}, Outer, Outside} = map_get(X, Loops),
    ending(When, Node, maps:merge(Outer, maps:with(['@now', '@deadline'], Env)), maps:merge(Outside, Loops));
ending(When, {_, _, _, {Fix, X, _, Node}} = Fixpoint, Env, Loops) when Fix =:= max; Fix =:= min ->
    ending(When, Node, Env, Loops#{X => {Fixpoint, maps:without(['@now', '@deadline'], Env), Loops}});
ending(When, {_, _, _, {Timed, Length, Node}}, Env, Loops) when Timed =:= within; Timed =:= during ->
    ending(When, Node, deadline(longest(Timed, Length, Env), late(Timed), Env), Loops);
ending('end', {_, _, _, {Modality, _, _}}, Env, _) -> at_end(Modality, Env);
ending(Time, _, #{'@deadline' := {From, Length, Value}}, _) when is_integer(From), Time > From + Length -> Value;
ending(_, Node, _, _) -> {ob, Node, #{}, #{}}.

%% A parameter that cannot be computed leaves open what a combination is, if no other member decides it.
settled({Op, Residuals}) when is_list(Residuals) ->
    Members = [settled(R) || R <- Residuals],
    Zero = case Op of 'and' -> ff; 'or' -> tt end,
    case {lists:member(Zero, Members), lists:member(unknown, Members)} of
        {true, _} -> Zero;
        {false, true} -> unknown;
        {false, false} -> normal_constants({Op, Members})
    end;
settled(Residual) -> Residual.

normal_constants({Op, Members}) ->
    Neutral = case Op of 'and' -> tt; 'or' -> ff end,
    case [M || M <- Members, M =/= Neutral] of
        [] -> Neutral;
        Some -> {Op, Some}
    end.

%% The numbers of the modalities that surely count as taken: no member beside them decides without them.
taken(Event, {Op, Members}) ->
    Zero = case Op of 'and' -> ff; 'or' -> tt end,
    {Results, Taken} = lists:unzip([taken(Event, M) || M <- Members]),
    case lists:member(Zero, Results) of
        true -> {Zero, []};
        false ->
            Open = [R || R <- Results, R =:= open],
            {case Open of [] -> hd(Results); _ -> open end, lists:append(Taken)}
    end;
taken(Event, #{number := Number} = Modality) ->
    case {stepped(Event, Modality), match(maps:get(action, Modality), Event, maps:get(env, Modality))} of
        {Result, no} -> {Result, []};
        {unknown, unknown} -> {open, []};
        {Result, _} when is_atom(Result) ->
            case in_time(Event, Modality) of
                true when Result =:= unknown -> {open, [Number]};
                true -> {Result, [Number]};
                false when Result =:= unknown -> {open, []};
                false -> {Result, []}
            end;
        _ -> {open, [Number]}
    end;
taken(_, unknown) -> {open, []};
taken(_, Constant) -> {Constant, []}.

-type residual() :: tt | ff | unknown | {ob, Place :: term(), env(), Loops :: map()} | {'and' | 'or', [residual()]}.
-doc "N1 to N4, until nothing changes.".
-spec normal(residual()) -> residual().
normal(Residual) when is_tuple(Residual), tuple_size(Residual) =:= 2 ->
    case reduced(Residual, [], []) of
        Residual -> Residual;
        Other -> normal(Other)
    end;
normal(Residual) -> Residual.

%% `True` and `False` are the obligations that combinations around demand or offer.
reduced({ob, _, _, _} = Obligation, True, False) ->
    case {lists:member(Obligation, True), lists:member(Obligation, False)} of
        {true, _} -> tt;
        {_, true} -> ff;
        _ -> Obligation
    end;
reduced({Op, Residuals}, True, False) ->
    Flat = lists:append([case R of {Op, Inner} -> Inner; _ -> [R] end || R <- Residuals]),
    Own = [O || {ob, _, _, _} = O <- Flat],
    {Neutral, Zero, Demanded, Offered} = case Op of
        'and' -> {tt, ff, Own ++ True, False};
        'or' -> {ff, tt, True, Own ++ False}
    end,
    Members = [case R of
        {ob, _, _, _} -> reduced(R, True, False);
        _ -> reduced(R, Demanded, Offered)
    end || R <- Flat],
    case lists:member(Zero, Members) of
        true -> Zero;
        false ->
            case distinct([M || M <- Members, M =/= Neutral]) of
                [] -> Neutral;
                [Single] -> Single;
                Several -> {Op, Several}
            end
    end;
reduced(Constant, _, _) -> Constant.

%% Not lists:usort/1: it takes 1 and 1.0 for the same, which obligations that hold them are not.
distinct(Members) ->
    lists:foldr(fun(M, Acc) -> case lists:any(fun(Other) -> same(M, Other) end, Acc) of true -> Acc; false -> [M | Acc] end end,
                [], Members).

%% The members of a combination have no order. They are distinct in both.
same({Op, Members}, {Op, Others}) when length(Members) =:= length(Others) ->
    lists:all(fun(M) -> lists:any(fun(Other) -> same(M, Other) end, Others) end, Members);
same(One, Other) -> One =:= Other.

%% What is unknown between the bounds counts as one.
size_of({bounds, Lower, Upper}) -> 1 + lists:sum([size_of(R) || R <- [Lower, Upper], not is_atom(R)]);
size_of({_, Residuals}) when is_list(Residuals) -> lists:sum([size_of(R) || R <- Residuals]);
size_of(_) -> 1.

%% The obligations that a monitor puts together, in whatever way, before N3 and N4 have removed any.
raw_size({Op, Residuals}) when is_list(Residuals) ->
    Zero = case Op of 'and' -> ff; 'or' -> tt end,
    case [normal(R) || R <- Residuals, normal(R) =:= Zero] of
        [] -> lists:sum([raw_size(R) || R <- Residuals]);
        _ -> 0
    end;
raw_size({ob, _, _, _}) -> 1;
raw_size(_) -> 0.

combined_size(Raw, {bounds, Lower, Upper}) -> 1 + raw_size(Raw(Lower)) + raw_size(Raw(Upper));
combined_size(Raw, Residual) -> raw_size(Raw(Residual)).

%% Monitors.

-spec machine(property(), witness_event:signature()) -> {ok, machine()} | no.
machine(Property, Signature) -> machine(Property, Signature, infinity).

-doc "A monitor for a process; `no` if the property is not about it. `Bound` is for obligations.".
-spec machine(property(), witness_event:signature(), pos_integer() | infinity) -> {ok, machine()} | no.
machine(Property, Signature, Bound) ->
    #{formula := Formula, over := Over, per := Per, values := Values} = Clocked = meant(Property),
    case binding(Property, Signature) of
        {ok, Given} ->
            Env = Given#{'@now' => start},
            Known = lists:usort(lists:append([maps:keys(maps:remove('@now', Either)) || Either <- bounds(Env, Clocked)])),
            Root = prepared(Formula, Per ++ Known, Values),
            Machine = #{clocked => maps:with([clocks, formula], Clocked),
                        root => Root, env => Env, over => Over, per => Per, bound => Bound, had => false, live => #{},
                        taken => {[], []}, heavy => [], values => Values, failed => #{}, projected => [], last => []},
            {ok, case Per of
                [] ->
                    Residual = begun(Root, Machine, #{}),
                    Machine#{live := #{none => {Residual, only_forbidden(Over, Residual)}}};
                _ -> Machine
            end};
        no ->
            no
    end.

%% Where the alphabet has nothing but kinds of what is forbidden.
only_forbidden(all, _) -> false;
only_forbidden(Over, Residual) ->
    Beginning = modalities(unfolded(Residual)),
    lists:all(fun is_forbidding/1, Beginning)
        andalso lists:all(fun({Kind, _, _}) ->
                              lists:any(fun(#{action := {Other, _, _}}) -> is_kind(Other, Kind) end, Beginning)
                          end,
                          actions(Over)).

%% `else` is of every kind.
is_kind('else', _) -> true;
is_kind(Kind, Other) -> Kind =:= Other.

is_forbidding(#{modality := box, behind := Behind, env := Env, action := {_, Patterns, _}}) ->
    ff =:= Behind(0, maps:merge(maps:from_keys(variables(Patterns), 0), Env));
is_forbidding(_) -> false.

-doc "The instances to which an event belongs. Calls and returns are events only where `over` names their functions.".
-spec slice(asked(), machine()) -> skip | all | {slice | live, tuple()}.
slice(Event, #{over := all}) ->
    case data(Event) of
        {Kind, _} when Kind =:= call; Kind =:= return -> skip;
        _ -> all
    end;
slice(Event, #{over := Over, per := Per, env := Env}) ->
    Marked = lists:any(fun(Seen) -> element(1, Seen) =:= 'begin' end, Over),
    first_slice(Over, Marked, Per, Event, Env).

first_slice([Seen | Others], Marked, Per, Event, Env) ->
    [{_, Patterns, _} = Action] = actions([Seen]),
    case match(Action, Event, Env) of
        {ok, Inner} ->
            Key = list_to_tuple([map_get(X, Inner) || X <- Per, is_map_key(X, Inner)]),
            case [X || X <- Per, lists:member(X, variables(Patterns))] of
                [] -> all;
                _ when Marked, Seen =:= Action -> {live, Key};
                _ -> {slice, Key}
            end;
        no ->
            first_slice(Others, Marked, Per, Event, Env)
    end;
first_slice([], _, _, _, _) -> skip.

-doc "Reads an event. The verdicts are those of the instances that it decides.".
-spec event(asked(), machine()) -> {[verdict()], machine()}.
event(Event, #{live := Live, root := Root, last := Last} = Machine) ->
    Now = project(Event, Machine),
    case slice(Event, Machine) of
        skip -> {[], Machine};
        all -> advance(Event, maps:keys(Live), Now);
        {live, Key} -> advance(Event, [Key || is_map_key(Key, Live)], Now);
        {slice, Key} ->
            case lists:member(Key, Last) of
                true -> advance(Event, [], Now);
                false ->
                    Fresh = {begun(Root, Machine, keyed(Key, Machine)), false},
                    advance(Event, [Key], Now#{live := maps:merge(#{Key => Fresh}, Live), had := true})
            end
    end.

-doc "The monitor with one more event of the projected trace, which no instance has read yet.".
-spec project(asked(), machine()) -> machine().
project(_, #{values := []} = Machine) -> Machine;
project(Event, #{projected := Before} = Machine) ->
    case slice(Event, Machine) of
        skip -> Machine;
        Slice -> Machine#{projected := [{Event, Slice} | Before]}
    end.

%% An instance that is inconclusive is the last one of its key.
advance(Event, Keys, Machine) ->
    {Verdicts, After} = lists:foldl(fun(Key, {Verdicts, #{live := Live} = Now}) ->
        {More, After} = advance(Event, Key, map_get(Key, Live), Now),
        {More ++ Verdicts, After}
    end, {[], Machine#{heavy := [], failed := #{}}}, Keys),
    {Verdicts, lists:foldl(fun drop/2, After, [Key || {Key, inconclusive, _} <- Verdicts])}.

advance(Event, Key, Instance, #{values := []} = Now) -> step(Event, Key, Instance, Now);
advance(Event, Key, Instance, #{live := Live, failed := Failed} = Now) ->
    case values_now(Key, Now) of
        #{} = Values -> step({valued, Event, Values}, Key, Instance, Now);
        {failed, Reasons} ->
            {[{Key, inconclusive, false}], Now#{live := maps:remove(Key, Live), failed := Failed#{Key => Reasons}}}
    end.

%% The values of a key at the last place of its events.
values_now(Key, Machine) -> lists:last(places(Key, Machine)).

%% The values at each place of the events of a key: all events of the projected trace so far that have this key or none.
places(Key, #{values := Values, projected := Projected, per := Per} = Machine) ->
    Trace = lists:enumerate(lists:reverse(Projected)),
    Events = [{I, Event, Slice} || {I, {Event, Slice}} <- Trace,
                                   Key =:= none orelse Slice =:= all orelse element(2, Slice) =:= Key],
    First = lists:min(['end' | [I || {I, _, Slice} <- Events, is_tuple(Slice)]]),
    witness_spec_oracle_values:places(Values, [
        {Event, #{'@latest' => latest(I, Trace), '@missing' => if I < First -> Per; true -> [] end}} || {I, Event, _} <- Events
    ], keyed(Key, Machine)).

%% The greatest time so far. No atom is less than a number.
latest(I, Trace) -> lists:foldl(fun max/2, -1 bsl 63, [ts(Event) || {J, {Event, _}} <- Trace, J =< I, is_integer(ts(Event))]).

keyed(none, #{env := Env}) -> Env;
keyed(Key, #{env := Env, per := Per}) -> maps:merge(Env, maps:from_list(lists:zip(Per, tuple_to_list(Key)))).

-doc "What an instance with this key reads, with the values: the last `Count` events of the key, and more that it reads.".
-spec valued(none | tuple(), [asked()], Extension :: [asked()], machine()) -> [asked() | valued()].
valued(_, Read, Extension, #{values := []}) -> Read ++ Extension;
valued(Key, Read, Extension, #{projected := Projected} = Machine) ->
    All = places(Key, Machine#{projected := [{Event, all} || Event <- lists:reverse(Extension)] ++ Projected}),
    Events = Read ++ Extension,
    [{valued, Event, case Known of {failed, _} -> unknown; _ -> Known end}
     || {Event, Known} <- lists:zip(Events, lists:nthtail(length(All) - length(Events), All))].

step(Event, Key, {Residual, Engaged}, #{bound := Bound, live := Live, taken := {Sure, Maybe}} = Now) ->
    Tree = unfolded(Residual),
    InTime = [Modality || Modality <- modalities(Tree), in_time(Event, Modality)],
    Matched = [Modality || #{action := Action, env := Env} = Modality <- InTime, is_tuple(match(Action, Event, Env))],
    {Happened, _} = data(Event),
    Could = [Modality || #{action := {Kind, _, _}} = Modality <- InTime, is_kind(Kind, Happened), is_forbidding(Modality)],
    Active = Engaged orelse Happened =/= init andalso Matched ++ Could =/= [],
    {_, Taken} = taken(Event, Tree),
    After = Now#{taken := {lists:usort(Taken ++ Sure), lists:usort([N || #{number := N} <- Matched] ++ Maybe)}},
    Raw = fun(One) -> mapped(fun(Modality) -> stepped(Event, Modality) end, unfolded(One)) end,
    case in_bounds(fun(One) -> normal(settled(Raw(One))) end, Residual) of
        unknown -> {[{Key, inconclusive, false}], After#{live := maps:remove(Key, Live)}};
        tt -> {[{Key, yes, not Active}], After#{live := maps:remove(Key, Live)}};
        ff -> {[{Key, no, false}], After#{live := maps:remove(Key, Live)}};
        Next ->
            case size_of(Next) > Bound of
                true -> {[{Key, inconclusive, false}], After#{live := maps:remove(Key, Live)}};
                false ->
                    Heavy = case combined_size(Raw, Residual) > Bound of true -> [Key]; false -> [] end,
                    {[], After#{live := Live#{Key := {Next, Active}},
                              heavy := Heavy ++ map_get(heavy, After)}}
            end
    end.

-doc "The verdicts of deadlines that the time of an event passes, for the instances that are to read it; they fall before it.".
-spec time(asked(), machine()) -> {[verdict()], machine()}.
time(Event, #{live := Live} = Machine) ->
    Keys = case slice(Event, Machine) of
        skip -> [];
        all -> maps:keys(Live);
        {_, Key} -> [Key || is_map_key(Key, Live)]
    end,
    Verdicts = lists:append([begin
        {Residual, Engaged} = map_get(Key, Live),
        case passed(Time, Residual) of
            %% What no event has to decide falls with the first one.
            Residual -> [];
            tt -> [{Key, yes, not Engaged}];
            ff -> [{Key, no, false}];
            _ -> []
        end
    end || Time <- [ts(Event)], is_integer(Time), Key <- Keys]),
    {Verdicts, Machine#{live := maps:without([Key || {Key, _, _} <- Verdicts], Live)}}.

passed(Time, {bounds, Lower, Upper} = Residual) ->
    case {ended(Time, Lower), ended(Time, Upper)} of
        {Lower, Upper} -> Residual;
        {tt, _} -> tt;
        {_, ff} -> ff;
        _ -> open
    end;
passed(Time, Residual) -> ended(Time, Residual).

-doc "The verdicts at the complete end.".
-spec finish(machine()) -> [verdict()].
finish(#{had := false, per := [_ | _]}) -> [{none, yes, true}];
finish(#{live := Live}) ->
    [case in_bounds(fun(One) -> ended('end', One) end, Residual) of
         tt -> {Key, yes, not Engaged};
         ff -> {Key, no, false};
         unknown -> {Key, inconclusive, false}
     end || Key := {Residual, Engaged} <- Live].

-doc "Actions that may come next, with what is known: for generators of traces.".
-spec offers(machine()) -> [{action(), env()}].
offers(#{live := Live, over := Over, env := Env, values := Values} = Machine) ->
    Keys = [keyed(Key, Machine) || Key := _ <- Live, is_tuple(Key)],
    [{Action, Known} || Action <- actions(Over), Known <- [Env | Keys]]
        ++ [{Action, maps:merge(likely(Key, Machine), Known)} || Key := {Residual, _} <- Live,
                               #{action := Action, env := Known} <- modalities(unfolded(Residual))]
        ++ [{Action, maps:merge(Env, Known)} || _ <- [once, again], Action <- witness_spec_oracle_values:actions(Values),
                                                Known <- [#{} | [maps:merge(likely(Key, Machine), keyed(Key, Machine))
                                                                 || Key := _ <- Live]]].

%% The values at an event are mostly those at the one before.
likely(_, #{values := []}) -> #{};
likely(Key, #{values := Values} = Machine) ->
    case places(Key, Machine) of
        [] -> #{Name => witness_spec_oracle_values:of_none(Value) || {Name, Value} <- Values};
        Places -> lists:last(Places)
    end.

-doc "The places of the modalities, from left to right: those surely taken, and those that may count as taken.".
-spec coverage(machine()) -> {[pos_integer()], [pos_integer()]}.
coverage(#{root := Root, taken := {Sure, Maybe}}) ->
    Places = maps:from_list([{Number, Place} || {Place, Number} <- lists:enumerate(numbers(Root))]),
    {[map_get(N, Places) || N <- Sure], [map_get(N, Places) || N <- Maybe]}.

numbers({N, _, _, {Modality, _, Node}}) when Modality =:= box; Modality =:= dia -> [N | numbers(Node)];
numbers({_, _, _, {Timed, _, Node}}) when Timed =:= within; Timed =:= during -> numbers(Node);
numbers({_, _, _, {_, Nodes}}) when is_list(Nodes) -> lists:append([numbers(Node) || Node <- Nodes]);
numbers({_, _, _, {_, _, _, Node}}) -> numbers(Node);
numbers(_) -> [].

-doc """
The instances that keep to the bound in the normal form, but not before N3 and N4: a monitor may give up on them.
""".
-spec heavy(machine()) -> [none | tuple()].
heavy(#{heavy := Keys}) -> Keys.

-doc "The instances that the last event has ended because a value of a `let` is not known there, with the reasons.".
-spec failed(machine()) -> #{none | tuple() => [no_time | argument]}.
failed(#{failed := Failed}) -> Failed.

-doc "The monitor without this instance, which is the last one of its key.".
-spec drop(none | tuple(), machine()) -> machine().
drop(Key, #{live := Live, last := Last} = Machine) -> Machine#{live := maps:remove(Key, Live), last := [Key | Last]}.

-doc "What each modality, from left to right, decides where it matches.".
-spec decides(machine()) -> [yes | no | undefined].
decides(#{root := Root}) -> deciding(Root).

deciding({_, _, _, {Modality, _, {_, _, _, Form} = Node}}) when Modality =:= box; Modality =:= dia ->
    [case Form of tt -> yes; ff -> no; _ -> undefined end | deciding(Node)];
deciding({_, _, _, {Timed, _, Node}}) when Timed =:= within; Timed =:= during -> deciding(Node);
deciding({_, _, _, {_, Nodes}}) when is_list(Nodes) -> lists:append([deciding(Node) || Node <- Nodes]);
deciding({_, _, _, {_, _, _, Node}}) -> deciding(Node);
deciding(_) -> [].

-doc "How many obligations each live instance has.".
-spec obligations(machine()) -> [pos_integer()].
obligations(#{live := Live}) -> [size_of(Residual) || _ := {Residual, _} <- Live].

%% The sets of traces.

-doc "The formula that defines the sets of traces for the monitor of a property.".
-spec definition(property()) -> formula().
definition(Property) -> map_get(formula, meant(Property)).

-doc "The `let`s of a property, as its monitor reads them.".
-spec values(property()) -> witness_spec_oracle_values:values().
values(Property) -> map_get(values, meant(Property)).

-doc """
Whether a complete finite trace satisfies the formula behind these `let`s, by the definition. Fixpoints are unfolded. The result is
`unknown` if it depends on a parameter or a value that cannot be computed.
""".
-spec satisfies(formula(), witness_spec_oracle_values:values(), [asked() | valued()], env()) -> boolean() | unknown.
satisfies(Formula, Values, Trace, Env) ->
    {Node, _} = number(Formula, maps:keys(Env), named_values(Values), 1),
    Table = ets:new(?MODULE, [private]),
    try
        in(Node, Trace, Env#{'@now' => start}, #{}, Table)
    after
        ets:delete(Table)
    end.

in({_, _, _, tt}, _, _, _, _) -> true;
in({_, _, _, ff}, _, _, _, _) -> false;
in({_, _, _, {'and', Nodes}}, Trace, Env, Loops, Table) ->
    combined(false, [in(Node, Trace, Env, Loops, Table) || Node <- Nodes]);
in({_, _, _, {'or', Nodes}}, Trace, Env, Loops, Table) ->
    combined(true, [in(Node, Trace, Env, Loops, Table) || Node <- Nodes]);
in({_, _, _, {Timed, Length, Node}}, Trace, Env, Loops, Table) when Timed =:= within; Timed =:= during ->
    in(Node, Trace, deadline(longest(Timed, Length, Env), late(Timed), Env), Loops, Table);
in({_, _, _, {Modality, _, _}}, [], Env, _, _) when Modality =:= box; Modality =:= dia -> at_end(Modality, Env) =:= tt;
in({_, _, _, {Modality, Action, Node}}, [Event | Trace], Before, Loops, Table) when Modality =:= box; Modality =:= dia ->
    case at_event(Event, Before) of
        unknown -> unknown;
        Late when is_atom(Late) -> Late =:= tt;
        Env ->
            case match(Action, Event, Env) of
                {ok, Inner} -> in(Node, Trace, Inner#{'@now' => ts(Event)}, Loops, Table);
                unknown -> unknown;
                no -> Modality =:= box
            end
    end;
%% What follows the last event depends on no data.
in({_, _, _, {rec, X, _}}, [], Env, Loops, Table) ->
    {_, Node, _, _} = map_get(X, Loops),
    in(Node, [], Env, Loops, Table);
in({_, _, _, {_, X, Parameters, Node}}, [], Env, Loops, Table) ->
    in(Node, [], Env, Loops#{X => {Parameters, Node, Env, Loops}}, Table);
in({_, _, _, {rec, X, Values}}, Trace, Env, Loops, Table) ->
    {Parameters, Node, Outer, Outside} = map_get(X, Loops),
    Given = [{Name, value(Value, Env)} || {{Name, _}, Value} <- lists:zip(Parameters, Values)],
    within(X, Parameters, Node, Given, Trace, maps:merge(Outer, maps:with(['@now', '@deadline'], Env)), Outside, Table);
in({_, _, _, {_, X, Parameters, Node}}, Trace, Env, Loops, Table) ->
    {Given, _} = lists:mapfoldl(fun({Name, Value}, Known) ->
        case value(Value, Known) of
            {ok, Term} -> {{Name, {ok, Term}}, Known#{Name => Term}};
            error -> {{Name, error}, Known}
        end
    end, Env, Parameters),
    within(X, Parameters, Node, Given, Trace, Env, Loops, Table).

%% Branches that meet again at the same place of the trace are not followed twice.
within(X, Parameters, {_, Needed, _, _} = Node, Given, Trace, Env, Loops, Table) ->
    case [Name || {Name, error} <- Given, lists:member(Name, Needed)] of
        [] ->
            Known = maps:merge(Env, #{Name => Term || {Name, {ok, Term}} <- Given}),
            Place = {X, terms(Known), terms_of_loops(Loops), length(Trace)},
            case ets:lookup(Table, Place) of
                [{_, Result}] -> Result;
                [] ->
                    Result = in(Node, Trace, Known, Loops#{X => {Parameters, Node, Env, Loops}}, Table),
                    ets:insert(Table, {Place, Result}),
                    Result
            end;
        _ -> unknown
    end.

%% The values of `let`s with variables are functions, and follow from the place.
terms(Env) -> #{X => Term || X := Term <- Env, not is_function(Term)}.

terms_of_loops(Loops) ->
    #{X => {Parameters, Node, terms(Env), terms_of_loops(Outside)} || X := {Parameters, Node, Env, Outside} <- Loops}.

combined(Zero, Results) ->
    case {lists:member(Zero, Results), lists:member(unknown, Results)} of
        {true, _} -> Zero;
        {false, true} -> unknown;
        {false, false} -> not Zero
    end.
