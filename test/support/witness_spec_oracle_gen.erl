-module(witness_spec_oracle_gen).
-moduledoc """
Random properties of the whole grammar, and random events that make their actions match often. All choices are those of
`m:rand` in the calling process, so that a seed brings them back.
""".

-export([property/1, among/1, with_values/1, signature/1, event/1, event/2, event/3, event_for/2, any_event/0, any_call/0, at/2,
         at/3, value/0, family/2, records/0, fields/1]).
-export_type([traces/0]).

-doc "Traces of fewer events, which mostly receive one of these messages, so much later than the latest one so far, or without a time.".
-type traces() :: #{events := pos_integer(), messages := [term(), ...], steps := [integer() | undefined, ...]}.

-define(FUNCTION_NAMES, [f, g]).
%% What processes call: functions that differ in the name, the module or the arity alone.
-define(FUNCTIONS, [{m, f, 1}, {m, f, 2}, {m, f, 0}, {m, g, 1}, {n, f, 1}, {n, f, 2}, {'Elixir.My.App', f, 1}]).
-define(ORDERS, ['<', '=<', '>', '>=']).
-define(EQUALITIES, ['=:=', '=/=', '==', '/=']).
%% Few names, so that they meet again; some are what generated code calls its own variables.
-define(NAMES, ['A', 'A', 'B', 'B', 'C', 'C', 'D', 'S', 'S', 'Event', 'State', '_Id', 'X']).

-doc "The records that specifications may use, as `{Name, Fields}`.".
records() -> [{point, [x, y]}, {empty, []}].

fields(Name) -> proplists:get_value(Name, records()).

one_of(List) -> lists:nth(rand:uniform(length(List)), List).
chance(Percent) -> rand:uniform(100) =< Percent.
between(Low, High) -> Low + rand:uniform(High - Low + 1) - 1.
times(N, Make) -> [Make() || _ <- lists:seq(1, N)].

%% What is drawn here changes nothing that is drawn elsewhere.
apart(Place, Choose) ->
    Before = rand:export_seed(),
    _ = rand:seed(exsss, erlang:phash2(Place, 1 bsl 32)),
    try Choose() after rand:seed(Before) end.

weighted(Choices) ->
    Total = lists:sum([Weight || {Weight, _} <- Choices]),
    weighted(rand:uniform(Total), Choices).

weighted(N, [{Weight, Make} | _]) when N =< Weight -> Make();
weighted(N, [{Weight, _} | Choices]) -> weighted(N - Weight, Choices).

%% Terms.

-doc "A term, mostly one of few.".
value() -> value(2).

value(0) ->
    weighted([{6, fun() -> one_of([0, 1, 2]) end}, {4, fun() -> one_of([a, b, ok]) end},
              {1, fun() -> one_of([-1, 97, 98, 1 bsl 70, 'an atom', true, false]) end},
              {1, fun() -> one_of([1.0, 0.0, -0.0, 2.5]) end},
              {1, fun() -> one_of(["", "ab", "abc", [1 | 2]]) end},
              {1, fun() -> one_of([<<>>, <<"ab">>, <<1, 2, 3>>, <<5:3>>, <<255, 0>>]) end},
              {1, fun() -> one_of([self(), tag()]) end}]);
value(Depth) ->
    Inner = fun() -> value(Depth - 1) end,
    weighted([{5, Inner},
              {4, fun() -> list_to_tuple(times(between(1, 3), Inner)) end},
              {2, fun() -> times(between(0, 3), Inner) end},
              {1, fun() -> maps:from_list([{Inner(), Inner()} || _ <- lists:seq(1, between(0, 2))]) end},
              {1, fun() -> {point, Inner(), Inner()} end}]).

%% A few references, the same in one process.
tag() ->
    Place = {?MODULE, rand:uniform(2)},
    case get(Place) of
        undefined -> Tag = make_ref(), put(Place, Tag), Tag;
        Tag -> Tag
    end.

message() ->
    Inner = fun() -> value(1) end,
    From = fun() -> one_of([{self(), tag()}, {self(), [alias | tag()]}, {self(), 1}, Inner()]) end,
    weighted([{8, fun value/0},
              {1, fun() -> {'$gen_call', From(), Inner()} end}, {1, fun() -> {'$gen_cast', Inner()} end},
              {1, fun() -> {one_of([tag(), [alias | tag()], [[alias | tag()] | 1], 1]), Inner()} end},
              {1, fun() -> one_of([{notify, Inner()}, {self(), From(), {sync_notify, Inner()}},
                                   {self(), From(), {call, a, Inner()}}, {system, From(), Inner()}]) end}]).

-doc "A signature for a property: one that it is about, mostly.".
signature(#{signatures := []}) -> {m, one_of(?FUNCTION_NAMES), times(between(0, 2), fun value/0)};
signature(#{signatures := Signatures}) ->
    {Pattern, _} = one_of(Signatures),
    case chance(90) of
        true -> instance(Pattern, #{});
        false -> {m, one_of(?FUNCTION_NAMES), times(between(0, 2), fun value/0)}
    end.

-doc #{equiv => event(Offers, [])}.
event(Offers) -> event(Offers, []).

-doc """
An event that may match one of these actions, after the events `Before`, the last one first. Before a reply with a request, it is the call.
""".
event([], _) -> any_event();
event(Offers, Before) ->
    {Action, Env} = one_of(Offers),
    case chance(85) of
        true -> answering(Action, Env, Before, event_for(Action, Env));
        false -> any_event()
    end.

-doc "An event for a trace of a property: mostly one of its messages, if it has some.".
event(#{traces := #{messages := Messages}}, Offers, Before) ->
    case chance(85) of
        true ->
            case chance(90) of
                true -> {recv, self(), undefined, one_of(Messages), 0};
                false -> {send, self(), process(), one_of(Messages), 0}
            end;
        false -> event(Offers, Before)
    end;
event(_, Offers, Before) -> event(Offers, Before).

answering({send, [_, _, {otp, reply, [From, _]}, {to, Request} | _], _}, Env, Before, {send, P, Q, {Tag, Reply}, _}) ->
    Open = witness_spec_oracle:open(Before),
    Answered = [Known || {send, _, _, {Known, _}, _} <- Before],
    Other = case From =:= '_' of
        true when Open =/= [] -> case chance(60) of true -> one_of(Open); false -> Tag end;
        true when Answered =/= [] -> case chance(40) of true -> one_of(Answered); false -> Tag end;
        _ -> Tag
    end,
    case lists:member(Other, Open) orelse lists:member(Other, Answered) of
        true -> {send, P, Q, {Other, Reply}, 0};
        false -> {recv, P, undefined, {'$gen_call', {self(), Other}, instance(Request, Env)}, 0}
    end;
answering(_, _, _, Event) -> Event.

any_event() ->
    Signature = fun() -> {m, one_of(?FUNCTION_NAMES), times(between(0, 2), fun value/0)} end,
    case one_of([fork, init, exit, send, send, send, recv, recv, recv]) of
        fork -> {fork, process(), process(), Signature(), 0};
        init -> {init, process(), one_of([process(), undefined]), Signature(), 0};
        exit -> {exit, process(), one_of([normal, value()]), 0};
        send -> {send, process(), process(), message(), 0};
        recv -> {recv, process(), undefined, message(), 0}
    end.

process() -> one_of([self(), self(), 0, 1, a]).

-doc "A call or a return, of any function.".
-spec any_call() -> witness_event:event().
any_call() -> any_call(one_of(?FUNCTIONS)).

any_call({Module, Function, Arity}) ->
    case one_of([call, return]) of
        call -> {call, process(), {Module, Function, times(Arity, fun value/0)}, 0};
        return -> {return, process(), {Module, Function, Arity}, value(), 0}
    end.

-doc "The event at a time not long after, or sometimes before, another one, or without a time; and the latest time so far.".
at(Event, Latest) ->
    Time = case rand:uniform(24) of
        1 -> undefined;
        2 -> Latest - between(0, 3);
        _ -> Latest + one_of([0, 0, 1, 1, 1, 2, 3, 5, 10, 1000])
    end,
    {setelement(tuple_size(Event), Event, Time), case Time of undefined -> Latest; _ -> max(Time, Latest) end}.

-doc "The same for a trace of a property, which may have times of its own.".
at(#{traces := #{steps := Steps}}, Event, Latest) ->
    case one_of(Steps) of
        undefined -> {setelement(tuple_size(Event), Event, undefined), Latest};
        Step -> {setelement(tuple_size(Event), Event, Latest + Step), max(Latest + Step, Latest)}
    end;
at(_, Event, Latest) -> at(Event, Latest).

-doc "An event for an action under a substitution: it matches as far as a few tries tell.".
event_for(Action, Env) -> event_for(Action, Env, 6).

event_for({'else', _, _}, _, _) -> any_event();
event_for({Kind, All, Guard} = Action, Env, Tries) ->
    %% Neither the request of a reply, nor the variable of a time.
    Patterns = lists:sublist(All, witness_spec_oracle:parts(Kind)),
    {Terms, _} = lists:mapfoldl(fun(Pattern, Now) ->
        Term = instance(Pattern, Now),
        {Term, case witness_spec_oracle:match({exit, ['_', Pattern], []}, {exit, x, Term, 0}, Now) of
                   {ok, Bound} -> Bound;
                   no -> Now
               end}
    end, Env, Patterns),
    Event = case {Kind, Terms} of
        {recv, [P, M]} -> {recv, P, undefined, M, 0};
        {Called, [P, Function | Value]} when Called =:= call; Called =:= return -> almost(Called, P, Function, Value);
        _ -> list_to_tuple([Kind | Terms] ++ [0])
    end,
    case Tries =:= 0 orelse Guard =:= [] orelse has_request(All) orelse witness_spec_oracle:match(Action, Event, Env) =/= no of
        true -> Event;
        false -> event_for(Action, Env, Tries - 1)
    end.

%% Now and then it is the call of another function, one argument more or less, or the other of call and return.
almost(call, P, {Module, Function, Arguments} = Call, []) ->
    weighted([{20, fun() -> {call, P, Call, 0} end},
              {1, fun() -> {call, P, {Module, Function, Arguments ++ [value(1)]}, 0} end},
              {1, fun() -> {call, P, {Module, Function, lists:nthtail(min(1, length(Arguments)), Arguments)}, 0} end},
              {1, fun() -> {call, P, {one_of([m, n]), one_of(?FUNCTION_NAMES), Arguments}, 0} end},
              {1, fun() -> {return, P, {Module, Function, length(Arguments)}, one_of([value(1) | Arguments]), 0} end}]);
almost(return, P, {Module, Function, Arity} = Returned, [Value]) ->
    weighted([{20, fun() -> {return, P, Returned, Value, 0} end},
              {1, fun() -> {return, P, {Module, Function, Arity + 1}, Value, 0} end},
              {1, fun() -> {return, P, {one_of([m, n]), one_of(?FUNCTION_NAMES), Arity}, Value, 0} end},
              {1, fun() -> {call, P, {Module, Function, times(Arity, fun() -> one_of([Value, value(1)]) end)}, 0} end}]).

has_request(Patterns) -> lists:any(fun({to, _}) -> true; (_) -> false end, Patterns).

%% A term that a pattern matches, or almost matches.
instance('_', _) -> value(1);
instance({var, X}, Env) when is_map_key(X, Env) ->
    case chance(88) of true -> map_get(X, Env); false -> value(0) end;
instance({var, _}, Env) ->
    case map_size(Env) > 0 andalso chance(30) of true -> one_of(maps:values(Env)); false -> value(1) end;
instance({lit, Term}, _) when is_float(Term) -> Term;
instance({lit, Term}, _) when is_integer(Term) -> case chance(95) of true -> Term; false -> float(Term) end;
instance({lit, Term}, _) -> Term;
instance({text, Text}, _) -> Text;
instance({prefix, Text, Tail}, Env) -> Text ++ instance(Tail, Env);
instance({tuple, Patterns}, Env) -> list_to_tuple(instances(Patterns, Env));
instance({list, Heads, nil}, Env) -> instances(Heads, Env);
instance({list, Heads, Tail}, Env) ->
    [Rest | Terms] = lists:reverse(instances(Heads ++ [Tail], Env)),
    lists:foldl(fun(Term, Acc) -> [Term | Acc] end, Rest, Terms);
instance({map, Fields}, Env) ->
    Extra = case chance(30) of true -> #{value(0) => value(0)}; false -> #{} end,
    lists:foldl(fun({Key, Pattern}, Map) ->
        case simple(Key, Env) of
            {ok, Known} -> Map#{Known => instance(Pattern, Env)};
            none -> Map
        end
    end, Extra, Fields);
instance({same, One, Other}, Env) ->
    case simpler(One) of true -> instance(Other, Env); false -> instance(One, Env) end;
instance({bin, Segments}, Env) -> bits(Segments, Env, <<>>);
instance({record, Name, Named, Others}, Env) ->
    Rest = case Others of none -> '_'; _ -> Others end,
    list_to_tuple([Name | [instance(proplists:get_value(F, Named, Rest), Env) || F <- fields(Name)]]);
instance({otp, Name, Patterns}, Env) -> otp(Name, Patterns, Env).

%% A variable that stands twice gets the same term.
instances([Pattern | Patterns], Env) ->
    Term = instance(Pattern, Env),
    Next = case Pattern of {var, X} when not is_map_key(X, Env) -> Env#{X => Term}; _ -> Env end,
    [Term | instances(Patterns, Next)];
instances([], _) -> [].

simpler('_') -> true;
simpler({var, _}) -> true;
simpler(_) -> false.

simple({lit, Term}, _) -> {ok, Term};
simple({var, X}, Env) when is_map_key(X, Env) -> {ok, map_get(X, Env)};
simple({tuple, [{lit, K}, {var, X}]}, Env) when is_map_key(X, Env) -> {ok, {K, map_get(X, Env)}};
simple({op, '+', [{var, X}, {lit, N}]}, Env) when is_map_key(X, Env), is_number(map_get(X, Env)) ->
    {ok, map_get(X, Env) + N};
simple(_, _) -> none.

bits([{text, Text} | Segments], Env, Acc) -> bits(Segments, Env, <<Acc/bits, (list_to_binary(Text))/bits>>);
bits([{int, Pattern, Size, _, Endian} | Segments], Env, Acc) ->
    N = case instance(Pattern, Env) of I when is_integer(I) -> I; _ -> between(-3, 255) end,
    Width = width(Size, Env),
    Bits = case Endian of big -> <<N:Width>>; little -> <<N:Width/little>> end,
    bits(Segments, known(Pattern, N, Env), <<Acc/bits, Bits/bits>>);
bits([{bytes, Pattern, Size} | Segments], Env, Acc) ->
    Width = width(Size, Env),
    Bytes = case instance(Pattern, Env) of
        Known when is_binary(Known), byte_size(Known) =:= Width -> Known;
        _ -> list_to_binary(times(Width, fun() -> between(0, 2) end))
    end,
    bits(Segments, Env, <<Acc/bits, Bytes/bits>>);
bits([{rest, Kind, Pattern}], Env, Acc) ->
    Rest = case instance(Pattern, Env) of
        Known when is_bitstring(Known) -> Known;
        _ when Kind =:= binary -> one_of([<<>>, <<"ab">>, <<1>>]);
        _ -> one_of([<<>>, <<5:3>>, <<1>>])
    end,
    <<Acc/bits, Rest/bits>>;
bits([], _, Acc) -> Acc.

known({var, X}, N, Env) when not is_map_key(X, Env) -> Env#{X => N};
known(_, _, Env) -> Env.

width({lit, N}, _) -> N;
width({var, X}, Env) ->
    case Env of #{X := N} when is_integer(N), N >= 0, N < 20 -> N; _ -> 1 end;
width({op, '*', [Size, {lit, N}]}, Env) -> width(Size, Env) * N.

otp(call, [From, Request], Env) -> {'$gen_call', from(From, Env), instance(Request, Env)};
otp(call, [From, Handler, Request], Env) ->
    {self(), from(From, Env), {call, instance(Handler, Env), instance(Request, Env)}};
otp(cast, [Message], Env) -> {'$gen_cast', instance(Message, Env)};
otp(notify, [Event], Env) -> {notify, instance(Event, Env)};
otp(sync_notify, [From, Event], Env) -> {self(), from(From, Env), {sync_notify, instance(Event, Env)}};
otp(reply, [{var, X}, Reply], Env) ->
    Tag = case Env of #{X := {_, Known}} -> Known; _ -> tag() end,
    {Tag, instance(Reply, Env)};
otp(reply, [{tuple, [_, Tag]}, Reply], Env) -> {instance(Tag, Env), instance(Reply, Env)};
otp(reply, [{tag, X}, Reply], Env) when is_map_key(X, Env) -> {map_get(X, Env), instance(Reply, Env)};
otp(reply, [{tag, _}, Reply], Env) -> otp(reply, ['_', Reply], Env);
otp(reply, ['_', Reply], Env) -> {one_of([tag(), [alias | tag()], [[alias | tag()] | 1], 1]), instance(Reply, Env)};
otp(info, [Message], Env) -> case chance(70) of true -> instance(Message, Env); false -> message() end.

from(Pattern, Env) ->
    case {Pattern, simpler(Pattern)} of
        {{var, X}, _} when is_map_key(X, Env) -> map_get(X, Env);
        {{tuple, ['_', {var, X}]}, _} when not is_map_key(X, Env) -> from('_', Env);
        {_, true} -> one_of([{self(), tag()}, {self(), [alias | tag()]}, {self(), [[alias | tag()] | 1]}, {self(), 1}]);
        _ -> instance(Pattern, Env)
    end.

%% Properties.

%% `tags` are the keys that represent tags of replies; `otp` says whether messages of OTP may be named.

-doc """
A property. In a `loose` one most actions match most events, so that many obligations are alive at a time; `alike` ones
are about actions that overlap, or nearly; `timed`, `asking` and `remaining` ones are rich in times, requests and `else`; `mixed` are all kinds.
In `calls`, `over` names functions that processes call; some of these have `let`s.
All of these have no `let`s. `values` are all kinds with `let`s, and more that are about the values alone, with traces of their own.
`leaving` are those with slices that end soon, so that values go on without them.
`clocks` are rich in deadlines, for clocks that differ: they compare no times. Some of them have `let`s without windows of time.
""".
-spec property(mixed | loose | alike | timed | asking | remaining | calls | values | leaving | clocks) ->
    witness_spec_oracle:property().
property(leaving) ->
    Property = leaving(),
    apart({each, Property}, fun() -> case chance(35) of true -> leaving_each(Property); false -> Property end end);
property(values) ->
    Property = case chance(60) of
        true -> telling();
        false -> with_values(property(weighted([{6, fun() -> mixed end}, {1, fun() -> asking end}, {1, fun() -> timed end},
                                                {1, fun() -> remaining end}])))
    end,
    apart({each, Property}, fun() -> case chance(35) of true -> keeping(); false -> Property end end);
property(calls) ->
    Options = #{tags => [], otp => true, focus => calls, requests => chance(10), pool => pool()},
    Signatures = times(one_of([0, 0, 0, 1, 1, 1, 1, 1, 2]), fun() -> signed(Options) end),
    Property = property(Signatures, one_of([monitor, check, check, check]), calls, Options),
    case chance(25) of
        true -> with_values(Property);
        false -> Property
    end;
property(mixed) ->
    property(weighted([{6, fun() -> plain end}, {2, fun() -> loose end}, {2, fun() -> alike end}, {1, fun() -> timed end}]));
property(clocks) ->
    Property = property_of(clocks),
    Valued = case chance(25) of true -> with_values(Property); false -> Property end,
    case has_time(maps:with([values, formula], Valued)) of true -> Property; false -> Valued end;
property(Focus) -> property_of(Focus).

%% A window of time, or an action with `at`.
has_time(#{} = Valued) -> has_time(maps:values(Valued));
has_time({time, _}) -> true;
has_time({Kind, [_ | _] = Patterns, Guard}) when is_atom(Kind), is_list(Guard) ->
    lists:any(fun({var, _}) -> true; (_) -> false end, lists:sublist(Patterns, witness_spec_oracle:parts(Kind) + 1, 2));
has_time(Tuple) when is_tuple(Tuple) -> has_time(tuple_to_list(Tuple));
has_time([Head | Tail]) -> has_time(Head) orelse has_time(Tail);
has_time(_) -> false.

property_of(Focus) ->
    Options = #{tags => [], otp => true, focus => Focus, requests => Focus =:= asking orelse chance(30)},
    Signatures = times(one_of([0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3]), fun() -> signed(Options) end),
    Dialect = weighted([{4, fun() -> monitor end}, {15, fun() -> check end}, {1, fun() -> none end}]),
    property(Signatures, Dialect, Focus, Options).

%% A property about all processes has slices.
property([], none, Focus, Options) -> property([], check, Focus, Options);
property(Signatures, Dialect, Focus, Options) ->
    Property = #{signatures => Signatures, dialect => Dialect,
                 group => Dialect =/= none andalso Signatures =/= [] andalso chance(15),
                 name => undefined, per => [], over => all},
    case Dialect of
        none -> Property;
        _ ->
            Scope = shared(Signatures),
            {Over, Per} = case Signatures of [] -> sliced(Scope, Options); _ -> over(Scope, Options) end,
            %% Only patterns of OTP know keys that represent tags.
            Tags = [X || {var, X} <- replies(Over)],
            Context = #{dialect => Dialect, scope => lists:usort(Per ++ Scope) -- Tags, loops => [], open => [], parameters => #{},
                        options => Options#{tags => Tags, named => witness_spec_oracle:functions(Over)}},
            Property#{over := Over, per := Per, formula => case Focus of
                plain -> formula(between(4, 40), Context);
                calls -> one_of([formula(between(4, 25), Context), branches(between(3, 12), Context)]);
                _ when Focus =:= timed; Focus =:= asking; Focus =:= clocks -> formula(between(4, 25), Context);
                remaining -> one_of([formula(between(4, 20), Context), branches(between(3, 12), Context)]);
                loose -> fixpoint(max, 'X', between(15, 45), Context);
                alike -> branches(between(3, 12), Context)
            end}
    end.

shared([]) -> [];
shared(Signatures) ->
    [First | Others] = [witness_spec_oracle:variables(Pattern) || {Pattern, _} <- Signatures],
    lists:foldl(fun(Names, Acc) -> [Name || Name <- Acc, lists:member(Name, Names)] end, First, Others).

%% Signatures share names, so that some are bound by all of them.
signed(Options) ->
    Pattern = called([], Options, one_of([0, 1, 1, 2])),
    {Pattern, guard(witness_spec_oracle:variables(Pattern), 15)}.

called(Scope, Options, Arguments) ->
    {tuple, [{lit, one_of([m, m, m, m, m, 'Elixir.My.App'])}, {lit, one_of(?FUNCTION_NAMES)},
             {list, times(Arguments, fun() -> pattern(1, Scope, Options) end), nil}]}.

-doc "Every other property about all processes is about some of them: its signatures have variables of their own.".
-spec among(witness_spec_oracle:property()) -> witness_spec_oracle:property().
among(#{signatures := []} = Property) ->
    Options = #{tags => [], otp => true, focus => plain, requests => false},
    Some = times(one_of([1, 1, 2, 3]), fun() ->
        case chance(5) of
            true -> {one_of(['_', {var, 'A'}]), []};
            false -> signed(Options)
        end
    end),
    case chance(50) of
        true ->
            %% Behind a guard, a variable alone would be a test.
            {Named, Any} = lists:partition(fun({{tuple, _}, _}) -> true; (_) -> false end, Some),
            Property#{among => renamed(Any ++ Named)};
        false -> Property
    end;
among(Property) -> Property.

renamed({var, Name}) -> {var, list_to_atom("Among" ++ atom_to_list(Name))};
renamed(Tuple) when is_tuple(Tuple) -> list_to_tuple(renamed(tuple_to_list(Tuple)));
renamed([Head | Tail]) -> [renamed(Head) | renamed(Tail)];
renamed(Other) -> Other.

%% The functions of which a property has the calls, and those of which it has the returns: few of them, or many that are alike.
pool() -> lists:sublist(shuffled([{Kind, Function} || Kind <- [call, return], Function <- ?FUNCTIONS]), one_of([1, 2, 2, 3, 4])).

%% An action for one of these.
of_function({call, {Module, Function, Arity}}, Scope, Options) ->
    Arguments = times(Arity, fun() -> pattern(one_of([0, 1]), Scope, Options) end),
    with_guard({call, [caller(Scope), {tuple, [{lit, Module}, {lit, Function}, {list, Arguments, nil}]}]}, Scope, Options);
of_function({return, Function}, Scope, Options) ->
    with_guard({return, [caller(Scope), {lit, Function}, pattern(1, Scope, Options)]}, Scope, Options).

caller(Scope) ->
    weighted([{8, fun() -> '_' end}, {3, fun() -> {var, one_of(['P', 'Q', 'A'])} end}, {1, fun() -> {lit, a} end},
              {1, fun() -> party(Scope) end}]).

with_guard({Kind, Patterns}, Scope, Options) -> {Kind, Patterns, guard(in_scope(Patterns, Scope, Options), 30)}.

%% One with the keys, if the function has an argument or a value for them. The process may be a key, too.
keyed_function(Named, [Key], Scope, Options) ->
    case {of_function(Named, Scope, Options), chance(30)} of
        {{Kind, ['_' | Patterns], Guard}, true} -> {Kind, [{var, Key} | Patterns], Guard};
        _ -> keyed_data(Named, [Key], Scope, Options)
    end;
keyed_function(Named, Per, Scope, Options) -> keyed_data(Named, Per, Scope, Options).

keyed_data({call, {_, _, 0}} = Named, _, Scope, Options) -> of_function(Named, Scope, Options);
keyed_data({call, {Module, Function, Arity}}, Per, Scope, Options) ->
    Keys = case [{var, X} || X <- Per] of
        Several when length(Several) > Arity -> [{tuple, Several}];
        Some -> Some
    end,
    Others = times(Arity - length(Keys), fun() -> pattern(1, Scope, Options) end),
    Arguments = {list, shuffled(Keys ++ Others), nil},
    with_guard({call, [caller(Scope), {tuple, [{lit, Module}, {lit, Function}, Arguments]}]}, Scope, Options);
keyed_data({return, Function}, Per, Scope, Options) ->
    Keys = [{var, X} || X <- Per],
    Value = case Keys of [Key] -> one_of([Key, Key, {tuple, [{lit, ok}, Key]}]); _ -> {tuple, shuffled(Keys)} end,
    with_guard({return, [caller(Scope), {lit, Function}, Value]}, Scope, Options).

%% The alphabet: with keys, each action binds all of them or none.
over(Scope, #{pool := Pool} = Options) ->
    case chance(55) of
        true ->
            Others = times(one_of([0, 0, 1, 2]), fun() -> action(Scope, Options) end),
            {shuffled([of_function(Named, Scope, Options) || Named <- Pool] ++ Others), []};
        false -> sliced(Scope, Options)
    end;
over(Scope, Options) ->
    case rand:uniform(10) of
        N when N > 4 -> {all, []};
        N when N > 2 -> {times(between(1, 3), fun() -> action(Scope, Options) end), []};
        _ -> sliced(Scope, Options)
    end.

sliced(Scope, #{pool := Pool} = Options) ->
    Per = lists:sublist(['K', 'L'], one_of([1, 1, 1, 2])),
    {Keyed, Unkeyed} = lists:partition(fun(_) -> chance(75) end, Pool),
    Others = [keyed(Per, Scope, Options) || chance(case Keyed of [] -> 100; _ -> 25 end)],
    With = [keyed_function(Named, Per, Scope, Options) || Named <- Keyed] ++ Others,
    Marked = [case chance(25) andalso lists:member(hd(Per), witness_spec_oracle:variables(Action)) of
                  true -> {'begin', Action};
                  false -> Action
              end || Action <- With],
    Without = [of_function(Named, Scope, Options) || Named <- Unkeyed] ++ [action(Scope, Options) || chance(20)],
    case lists:any(fun(Action) -> lists:member(hd(Per), witness_spec_oracle:variables(Action)) end, With) of
        true -> {shuffled(Marked ++ Without), Per};
        false -> sliced(Scope, Options)
    end;
sliced(Scope, Options) ->
    Per = case ['K', 'L'] of Keys -> lists:sublist(Keys, one_of([1, 1, 2])) end,
    Keyed = case {Per, rand:uniform(3)} of
        {[_], 1} -> tagged(Scope, Options);
        _ -> times(between(1, 2), fun() -> keyed(Per, Scope, Options) end)
    end,
    Unkeyed = [action(Scope, Options) || chance(50)],
    %% Without a mark, each action with a key begins an instance.
    Marked = [case chance(25) of true -> {'begin', Action}; false -> Action end || Action <- Keyed],
    {shuffled(Marked ++ Unkeyed), Per}.

replies(Over) ->
    [From || {_, Patterns, _} <- witness_spec_oracle:actions(Over), {otp, reply, [From, _]} <- Patterns].

%% Requests and replies.
tagged(Scope, Options) ->
    Inner = fun() -> pattern(1, Scope, Options) end,
    [{recv, ['_', {otp, call, [{var, 'K'}, Inner()]}], []},
     {send, answer(['_', '_', {otp, reply, [{var, 'K'}, Inner()]}], Scope, Options), []}].

keyed(Per, Scope, Options) ->
    Parts = shuffled([{var, X} || X <- Per] ++ times(between(0, 1), fun() -> pattern(1, Scope, Options) end)),
    Message = case Parts of [{var, _} = Whole] -> one_of([Whole, {tuple, [{lit, a}, Whole]}]); _ -> {tuple, Parts} end,
    {Kind, Patterns} = case one_of([{recv, ['_', Message]}, {recv, ['_', Message]}, {send, ['_', '_', Message]}]) of
        {send, [P, Q, _]} when map_get(requests, Options) ->
            Asked = pattern(1, Scope, Options),
            {send, [P, Q | one_of([[{otp, reply, ['_', Message]}, {to, Asked}], [{otp, reply, ['_', Asked]}, {to, Message}]])]};
        Other -> Other
    end,
    {Kind, Patterns, guard(witness_spec_oracle:variables(Patterns) ++ Scope, 20)}.

shuffled(List) -> [X || {_, X} <- lists:sort([{rand:uniform(), X} || X <- List])].

%% Formulas. `loops` are the recursion variables that an action guards, `open` those that are not yet guarded.
formula(Size, #{loops := Loops, open := Open} = Context) when Size < 3 ->
    %% A constant decides what is around it, so there are not many.
    case Loops -- Open =:= [] andalso Size > -3 andalso chance(85) of
        true -> modality(Size - 1, Context);
        false -> atom(Context)
    end;
formula(Size, #{dialect := Dialect, options := #{focus := Focus}} = Context) ->
    weighted([{1, fun() -> atom(Context) end},
              {6, fun() -> modality(Size, Context) end},
              {4, fun() -> operator(Size, Context) end},
              {4, fun() -> branches(Size, Context) end},
              {5, fun() ->
                      Fix = case Dialect of monitor -> max; check -> one_of([max, min]) end,
                      fixpoint(Fix, one_of(['X', 'X', 'Y', 'Z', 'A']), Size - 1, Context)
                  end}]
             ++ [{case Focus of timed -> 15; clocks -> 8; _ -> 4 end, fun() ->
                      {one_of([within, during]), one_of([0, 1, 1, 2, 3, 3, 5, 10, 1000]),
                       formula(Size - 1, Context#{loops := [], open := []})}
                  end} || Dialect =/= monitor]).

%% Half of them have parameters. A parameter may depend on those before it.
fixpoint(Fix, X, Size, #{open := Open, scope := Scope, parameters := Known, options := #{tags := Tags}} = Context) ->
    Names = case chance(50) of
        true -> lists:sublist(shuffled(['N', 'M', 'V'] -- (Scope ++ Tags)), one_of([1, 1, 2]));
        false -> []
    end,
    {Parameters, Inner} = lists:mapfoldl(fun(Name, Before) -> {{Name, first(Before)}, [Name | Before]} end, Scope, Names),
    {Fix, X, Parameters,
     formula(Size, Context#{open := [X | Open], scope := lists:usort(Inner), parameters := Known#{X => Names}})}.

first(Names) ->
    weighted([{6, fun() -> {lit, 0} end}, {1, fun() -> {lit, []} end}, {1, fun() -> {map, []} end},
              {2, fun() -> data(2, Names) end}]).

%% The next value of a parameter.
next(Name, Names) ->
    Own = {var, Name},
    weighted([{4, fun() -> {op, one_of(['+', '+', '-']), [Own, {lit, 1}]} end},
              {2, fun() -> Own end},
              {2, fun() -> {cons, data(1, Names), Own} end},
              {1, fun() -> {remote, maps, put, [data(1, Names), data(1, Names), Own]} end},
              {4, fun() -> data(2, Names) end}]).

data(Depth, Names) when Depth =:= 0; Names =:= [] -> plain(Names);
data(Depth, Names) ->
    Inner = fun() -> data(Depth - 1, Names) end,
    weighted([{6, fun() -> plain(Names) end},
              {4, fun() -> {op, one_of(['+', '-', '*', 'rem', '++']), [Inner(), Inner()]} end},
              {2, fun() -> {call, one_of([min, max]), [Inner(), Inner()]} end},
              {1, fun() -> {call, one_of([length, map_size, hd, tl]), [Inner()]} end},
              {1, fun() -> {tuple, times(between(0, 2), Inner)} end},
              {1, fun() -> {cons, Inner(), Inner()} end},
              {1, fun() -> {map, [{Inner(), Inner()}]} end},
              {1, fun() -> {update, Inner(), [{Inner(), Inner()}]} end},
              {1, fun() -> {remote, maps, remove, [Inner(), Inner()]} end},
              {1, fun() -> {remote, maps, get, [Inner(), Inner(), Inner()]} end},
              {1, fun() -> {remote, lists, one_of([member, delete]), [Inner(), Inner()]} end}]).

plain(Names) ->
    case Names =/= [] andalso chance(70) of
        true -> {var, one_of(Names)};
        false -> {lit, one_of([0, 1, 2, a, b, 1.0])}
    end.

modality(Size, #{scope := Scope, options := #{focus := Focus} = Options} = Context) ->
    Action = case chance(case Focus of remaining -> 25; _ -> 4 end) of
        true -> {'else', [], []};
        false -> timed(action(Scope, Options), Scope, Options)
    end,
    {modality(Context), Action, formula(Size - 1, behind(Action, Context))}.

%% Some actions know the time. Their guards compare it with another one.
timed({Kind, Patterns, Guard}, Scope, #{tags := Tags, focus := Focus}) ->
    case chance(case Focus of timed -> 50; clocks -> 0; _ -> 20 end) of
        true ->
            T = one_of(['T', 'U', 'T', 'N'] -- Tags),
            Names = (lists:usort(Scope ++ witness_spec_oracle:variables(Patterns)) -- Tags) -- [T],
            Test = {op, one_of(?ORDERS), [{op, '-', [{var, T}, one_of([{var, X} || X <- Names] ++ [{lit, 0}])]},
                                          {lit, between(0, 5)}]},
            {Kind, Patterns ++ [{var, T}], case {Guard, chance(60)} of
                {_, false} -> Guard;
                {[], _} -> [[Test]];
                {[Tests | Others], _} -> [[Test | Tests] | Others]
            end};
        false -> {Kind, Patterns, Guard}
    end.

modality(#{dialect := monitor}) -> box;
modality(_) -> one_of([box, box, dia]).

operator(Size, Context) ->
    N = weighted([{1, fun() -> 1 end}, {6, fun() -> 2 end}, {3, fun() -> 3 end}]),
    {operator(Context), times(N, fun() -> formula((Size + 3) div (N + 1), Context) end)}.

operator(#{dialect := monitor}) -> 'and';
operator(_) -> one_of(['and', 'or']).

%% Modalities with actions that are alike: they overlap, or a guard separates them. Boxes are mostly in conjunctions and
%% diamonds in disjunctions: one that does not match then leaves the others.
branches(Size, #{scope := Scope, options := #{focus := Focus} = Options} = Context) ->
    N = between(2, 4),
    Same = modality(Context),
    Op = case {Same, chance(80)} of {dia, true} -> 'or'; {box, true} -> 'and'; _ -> operator(Context) end,
    Actions = case Focus =:= timed andalso chance(40) of
        true -> apart(N, Scope, Options);
        false -> [timed(Alike, Scope, Options) || Alike <- family(N, {Scope, Options})]
    end,
    Rest = lists:duplicate(one_of(case Focus of remaining -> [1, 1, 2]; _ -> [0, 0, 0, 0, 0, 1, 1, 1, 1, 2] end), {'else', [], []}),
    Branches = [{case chance(85) of true -> Same; false -> modality(Context) end, Action,
                 formula((Size + 2) div N, behind(Action, Context))} || Action <- shuffled(Actions ++ Rest)],
    case rand:uniform(6) of
        1 ->
            {Some, Others} = lists:split(rand:uniform(length(Branches)), Branches),
            {Op, [{one_of([Op, operator(Context)]), Some} | Others]};
        _ -> {Op, Branches}
    end.

%% Actions that only the time of the event separates.
apart(N, Scope, #{tags := Tags} = Options) ->
    {Kind, Patterns, _} = action(Scope, Options),
    Names = (lists:usort(Scope ++ witness_spec_oracle:variables(Patterns)) -- Tags) -- ['T'],
    Sides = [{op, '-', [{var, 'T'}, one_of([{var, X} || X <- Names] ++ [{lit, 0}])]}, {lit, between(0, 5)}],
    case lists:member('T', Tags) of
        true -> family(N, {Scope, Options});
        false -> [{Kind, Patterns ++ [{var, 'T'}], [[{op, one_of(?ORDERS), Sides}]]} || _ <- lists:seq(1, N)]
    end.

behind({_, Patterns, _}, #{loops := Loops, open := Open, scope := Scope, options := Options} = Context) ->
    Context#{scope := in_scope(Patterns, Scope, Options),
             loops := lists:usort(Open ++ Loops), open := []}.

atom(#{loops := Loops, open := Open, scope := Scope, parameters := Parameters}) ->
    case Loops -- Open of
        [_ | _] = Usable ->
            case chance(80) of
                true ->
                    X = one_of(Usable),
                    {rec, X, [next(Name, Scope) || Name <- map_get(X, Parameters)]};
                false -> one_of([tt, ff])
            end;
        [] -> one_of([tt, ff])
    end.

%% Actions.

action(Scope, #{named := [_ | _] = Named} = Options) ->
    case chance(65) of
        true -> of_function(one_of(Named), Scope, Options);
        false -> action(Scope, Options#{named := []})
    end;
action(Scope, #{focus := loose} = Options) ->
    case chance(85) of
        true -> {recv, ['_', one_of(['_', '_', {var, one_of(['A', 'B'])}, {lit, 0}, {lit, 1}])], []};
        false -> action(Scope, Options#{focus := plain})
    end;
action(Scope, Options) ->
    {Kind, Patterns} = case one_of([fork, init, exit, send, send, send, recv, recv, recv, recv]) of
        fork -> {fork, [party(Scope), party(Scope), spawned(Scope, Options)]};
        init -> {init, [party(Scope), party(Scope), spawned(Scope, Options)]};
        exit -> {exit, [party(Scope), pattern(1, Scope, Options)]};
        send -> {send, answer([party(Scope), party(Scope), content(Scope, Options)], Scope, Options)};
        recv -> {recv, [party(Scope), content(Scope, Options)]}
    end,
    {Kind, Patterns, guard(in_scope(Patterns, Scope, Options), 45)}.

%% Replies with their requests.
answer([P, Q, Message], Scope, #{requests := true, focus := Focus} = Options) ->
    Reply = case Message of
        {otp, reply, _} -> Message;
        _ -> {otp, reply, ['_', pattern(1, Scope, Options)]}
    end,
    case chance(case Focus of asking -> 90; _ -> 60 end) of
        true -> [P, Q, Reply, {to, pattern(1, Scope, Options)}];
        false -> [P, Q, Message]
    end;
answer(Patterns, _, _) -> Patterns.

%% The variables that guards and later actions may use. Keys that represent tags may not be used freely.
in_scope(Patterns, Scope, #{tags := Tags}) -> lists:usort(Scope ++ witness_spec_oracle:variables(Patterns)) -- Tags.

party(Scope) -> weighted([{8, fun() -> '_' end}, {2, fun() -> {var, one_of(['P', 'Q'])} end},
                          {1, fun() -> simple_pattern(Scope) end}]).

spawned(Scope, Options) ->
    weighted([{2, fun() -> '_' end}, {1, fun() -> {var, one_of(['P', 'Q', 'D'])} end},
              {5, fun() -> called(Scope, Options, one_of([0, 1, 1, 2])) end}]).

content(Scope, #{otp := true, tags := Tags} = Options) ->
    case chance(case Tags of [] -> 20; _ -> 60 end) of
        true -> otp_pattern(Scope, Options);
        false -> pattern(2, Scope, Options)
    end;
content(Scope, Options) -> pattern(2, Scope, Options).

otp_pattern(Scope, #{tags := Tags} = Options) ->
    Inner = fun() -> pattern(1, Scope, Options) end,
    case one_of([call, call, cast, notify, sync_notify, call3, reply, reply, info]) of
        call when Tags =/= [] -> {otp, call, [{var, one_of(Tags)}, Inner()]};
        call -> {otp, call, [Inner(), Inner()]};
        call3 -> {otp, call, [Inner(), Inner(), Inner()]};
        sync_notify -> {otp, sync_notify, [Inner(), Inner()]};
        reply -> {otp, reply, [one_of(['_', {tuple, ['_', Inner()]}] ++ [{var, X} || X <- Scope ++ Tags]), Inner()]};
        One -> {otp, One, [Inner()]}
    end.

-doc "So many actions that are alike: in one guard, in one name, in one part, or not at all.".
family(N, {Scope, #{tags := Tags, focus := Focus} = Options}) ->
    Fixed = Scope ++ Tags,
    {Kind, Patterns, _} = Base = case chance(case Focus of alike -> 90; _ -> 30 end) of
        true -> {recv, ['_', one_of([{tuple, [{var, 'A'}, {var, 'B'}]}, {tuple, [{var, 'C'}, {var, 'S'}]}, {var, 'A'},
                                     {text, "ab"}, {list, [{var, 'A'}], {var, 'B'}}])], []};
        false -> action(Scope, Options)
    end,
    Names = in_scope(Patterns, Scope, Options),
    %% Opposite comparisons of the same two things; tests of the same thing; equality with different things.
    Compared = case Names of [] -> none; _ -> X = one_of(Names), {{var, X}, other(Names, X)} end,
    Comparisons = one_of([?ORDERS, ?EQUALITIES, ?ORDERS ++ ?EQUALITIES]),
    [case rand:uniform(11) of
         1 -> action(Scope, Options);
         2 -> Base;
         3 -> {Kind, renamed(Patterns, Fixed), []};
         4 -> {Kind, varied_data(Kind, Patterns), []};
         11 -> {Kind, varied_data(Kind, Patterns), []};
         5 when Compared =/= none ->
             {Left, _} = Compared,
             {Kind, Patterns, [[{op, '=:=', [Left, {lit, one_of([0, 1, a])}]}]]};
         6 when Compared =/= none ->
             {Left, Right} = Compared,
             Test = {op, one_of(['=:=', '<']), [Left, Right]},
             {Kind, Patterns, [[one_of([Test, {op, 'not', [Test]}])]]};
         _ when Compared =/= none ->
             {Left, Right} = Compared,
             Renamed = one_of([fun(X, _) -> X end, fun(X, _) -> X end, fun renamed/2]),
             Sides = one_of([[Left, Right], [Left, Right], [Right, Left]]),
             {Kind, Other, Guard} = Renamed({Kind, Patterns, [[{op, one_of(Comparisons), Sides}]]}, Fixed),
             {Kind, Other, Guard ++ guard(in_scope(Other, Scope, Options), 15)};
         _ -> Base
     end || _ <- lists:seq(1, N)].

other(Names, Not) ->
    one_of([{var, one_of(case Names -- [Not] of [] -> Names; Others -> Others end)}, {lit, one_of([0, 1, a])}]).

%% The variables that are not in scope under other names, consistently.
renamed(Term, Scope) ->
    Names = [X || X <- witness_spec_oracle:variables(Term), not lists:member(X, Scope)],
    Free = shuffled(lists:usort(?NAMES) -- Scope),
    Pairs = maps:from_list(lists:zip(lists:sublist(Names, length(Free)), lists:sublist(Free, length(Names)))),
    substituted(Term, Pairs).

substituted({var, X}, Pairs) -> {var, maps:get(X, Pairs, X)};
substituted(Tuple, Pairs) when is_tuple(Tuple) -> list_to_tuple(substituted(tuple_to_list(Tuple), Pairs));
substituted([Head | Tail], Pairs) -> [substituted(Head, Pairs) | substituted(Tail, Pairs)];
substituted(Other, _) -> Other.

%% The patterns of signatures stay as they are.
varied_data(Kind, Patterns) when Kind =:= fork; Kind =:= init -> Patterns;
varied_data(call, [P, {tuple, [Module, Function, {list, Arguments, nil}]}]) ->
    [varied(P), {tuple, [Module, Function, {list, varied(Arguments), nil}]}];
varied_data(return, [P, Function, Value]) -> [varied(P), Function, varied(Value)];
varied_data(send, [P, Q, Reply, {to, Request} | Time]) -> [varied(P), varied(Q), Reply, {to, varied(Request)} | Time];
varied_data(_, Patterns) -> varied(Patterns).

%% Parts become other patterns, which may match the same terms.
varied(List) when is_list(List) -> [varied(Pattern) || Pattern <- List];
varied(Pattern) ->
    case chance(25) of
        true -> one_of(['_', {var, one_of(['A', 'B', 'N'])}]);
        false -> other_part(Pattern)
    end.

other_part({lit, N}) when is_integer(N) -> {lit, one_of([N, 0, 1, 1.0])};
other_part({lit, Name}) when Name =:= a; Name =:= b; Name =:= ok -> {lit, one_of([a, b, 1])};
other_part({text, [C | _] = Text}) ->
    one_of([{text, Text}, {prefix, [C], '_'}, {list, [{lit, C}], '_'}, {list, [{var, 'A'}], {var, 'B'}},
            {list, ['_' || _ <- Text], nil}]);
other_part({list, [_ | _], Tail} = List) when Tail =/= nil -> one_of([List, {text, "ab"}, {list, ['_', '_'], nil}]);
other_part({tuple, Patterns}) -> {tuple, varied(Patterns)};
other_part(Pattern) -> Pattern.

%% Patterns. `Scope` are the variables that have a value before the action: keys and sizes may use them.
simple_pattern(_) ->
    weighted([{2, fun() -> '_' end}, {6, fun() -> {var, one_of(?NAMES)} end}, {4, fun literal/0}]).

literal() ->
    weighted([{5, fun() -> {lit, one_of([0, 1, 2])} end}, {4, fun() -> {lit, one_of([a, b, ok])} end},
              {1, fun() -> {lit, one_of([-1, 98, 1.0, 0.0, -0.0, 'an atom', 1 bsl 70])} end}]).

pattern(0, Scope, _) -> simple_pattern(Scope);
pattern(Depth, Scope, Options) ->
    Inner = fun() -> pattern(Depth - 1, Scope, Options) end,
    weighted([{6, fun() -> simple_pattern(Scope) end},
              {6, fun() -> {tuple, times(between(1, 3), Inner)} end},
              {2, fun() -> {list, times(between(0, 2), Inner), nil} end},
              {2, fun() -> {list, times(between(1, 2), Inner), Inner()} end},
              {1, fun() -> {text, one_of(["", "ab", "abc"])} end},
              {1, fun() -> {prefix, one_of(["ab", "a"]), Inner()} end},
              {2, fun() ->
                      Keys = lists:usort(times(between(0, 2), fun() -> key(Scope) end)),
                      {map, [{Key, Inner()} || Key <- Keys]}
                  end},
              {2, fun() -> record(Inner) end},
              {1, fun() -> {same, Inner(), simple_pattern(Scope)} end},
              {2, fun() -> {bin, segments(Scope)} end}]).

record(Inner) ->
    {Name, Fields} = one_of(records()),
    Named = [{Field, Inner()} || Field <- Fields, chance(60)],
    {record, Name, Named, case chance(25) andalso length(Named) < length(Fields) of true -> Inner(); false -> none end}.

key([]) -> {lit, one_of([0, 1, a, b, "ab", 1.0])};
key(Scope) ->
    X = {var, one_of(Scope)},
    weighted([{5, fun() -> key([]) end}, {3, fun() -> X end}, {1, fun() -> {tuple, [{lit, k}, X]} end},
              {1, fun() -> {op, '+', [X, {lit, 1}]} end}]).

segments(Scope) ->
    {Segments, _} = lists:mapfoldl(fun(_, Known) -> segment(Known) end, Scope, lists:seq(1, between(0, 2))),
    Segments ++ [one_of([{rest, binary, binary_part_pattern()}, {rest, bits, binary_part_pattern()}]) || chance(60)].

segment(Known) ->
    Size = fun(Fixed) ->
        case Known =/= [] andalso chance(30) of true -> {var, one_of(Known)}; false -> {lit, one_of(Fixed)} end
    end,
    weighted([{1, fun() -> {{text, one_of(["a", "ab"])}, Known} end},
              {4, fun() ->
                      Pattern = one_of(['_', {var, one_of(['A', 'B', 'N'])}, {lit, one_of([0, 1, 97])}]),
                      Bits = case Size([8, 8, 8, 16, 4, 3]) of
                          {var, _} = Name -> one_of([Name, {op, '*', [Name, {lit, 8}]}]);
                          Fixed -> Fixed
                      end,
                      {{int, Pattern, Bits, one_of([signed, unsigned, unsigned]), one_of([big, big, little])},
                       case Pattern of {var, X} -> lists:usort([X | Known]); _ -> Known end}
                  end},
              {1, fun() -> {{bytes, binary_part_pattern(), Size([0, 1, 2])}, Known} end}]).

binary_part_pattern() -> one_of(['_', {var, one_of(['B', 'C', 'Rest'])}]).

%% Guards over the variables that are bound; `Percent` is how often there is one. Mostly one that can be true.
guard(Names, Percent) ->
    case chance(Percent) of
        true -> guard(Names, 4, chance(90));
        false -> []
    end.

guard(Names, Tries, Possible) ->
    Guard = times(one_of([1, 1, 1, 2]), fun() -> times(one_of([1, 1, 1, 2]), fun() -> test(2, Names) end) end),
    case not Possible orelse Tries =:= 0 orelse lists:any(fun(_) -> can_be_true(Guard, Names) end, [1, 2, 3, 4, 5]) of
        true when Possible, Tries =:= 0 -> [];
        true -> Guard;
        false -> guard(Names, Tries - 1, Possible)
    end.

can_be_true(Guard, Names) ->
    Event = {exit, x, y, 0},
    witness_spec_oracle:match({exit, ['_', '_'], Guard}, Event, #{Name => value(1) || Name <- Names}) =/= no.

-define(TYPE_TESTS, [is_integer, is_atom, is_tuple, is_list, is_number, is_binary, is_map, is_float, is_boolean, is_pid,
                     is_reference]).
-define(ARITHMETIC, ['+', '-', '*', 'div', 'rem', '/', 'band', 'bor', 'bxor']).
-define(BIFS, [abs, length, tuple_size, hd, tl, byte_size, map_size, size, round, trunc, bit_size]).

test(_, []) -> compare([]);
test(0, Names) -> compare(Names);
test(Depth, Names) ->
    Inner = fun() -> test(Depth - 1, Names) end,
    weighted([{12, fun() -> compare(Names) end},
              {4, fun() -> {call, one_of(?TYPE_TESTS), [term(0, Names)]} end},
              {3, fun() -> {one_of(['andalso', 'orelse']), Inner(), Inner()} end},
              {2, fun() -> {op, one_of(['and', 'or', 'xor']), [Inner(), Inner()]} end},
              {2, fun() -> {op, 'not', [Inner()]} end},
              {1, fun() -> {lit, one_of([true, false])} end},
              {1, fun() -> {is_record, {var, one_of(Names)}, one_of([point, empty])} end},
              {1, fun() -> {call, is_map_key, [term(0, Names), term(0, Names)]} end}]).

compare(Names) -> {op, one_of(?ORDERS ++ ?EQUALITIES), [term(1, Names), term(1, Names)]}.

term(_, []) -> {lit, one_of([0, 1, 2, a, b, 1.0])};
term(0, Names) -> case chance(70) of true -> {var, one_of(Names)}; false -> term(0, []) end;
term(Depth, Names) ->
    Inner = fun() -> term(Depth - 1, Names) end,
    weighted([{25, Inner},
              {3, fun() -> {op, one_of(?ARITHMETIC), [Inner(), Inner()]} end},
              {1, fun() -> {op, one_of(['-', 'bnot']), [Inner()]} end},
              {2, fun() -> {call, one_of(?BIFS), [Inner()]} end},
              {1, fun() -> {call, element, [{lit, one_of([1, 2])}, Inner()]} end},
              {1, fun() -> {call, one_of([map_get, max, min]), [Inner(), Inner()]} end},
              {1, fun() -> {tuple, times(between(0, 2), Inner)} end},
              {1, fun() -> {cons, Inner(), Inner()} end},
              {1, fun() -> {field, {var, one_of(Names)}, point, one_of([x, y])} end},
              {1, fun() -> {map, [{Inner(), Inner()}]} end}]).

%% `let`s.

%% No other variables have these names.
-define(VALUES, ['Let1', 'Was', 'G']).
-define(EACH, ['Own', 'Its']).

-doc """
The property with one to three `let`s. The actions of its formula use them in guards and patterns; the values behind these actions
use them too. Half of the formulas are replaced by ones that read many events.
""".
-spec with_values(witness_spec_oracle:property()) -> witness_spec_oracle:property().
with_values(#{formula := Formula, over := Over, per := Per, signatures := Signatures, dialect := Dialect} = Property) ->
    Tags = [X || {var, X} <- replies(Over)],
    Options = #{tags => Tags, otp => true, focus => one_of([plain, loose]), requests => chance(15),
                named => witness_spec_oracle:functions(Over)},
    Scope = lists:usort(Per ++ shared(Signatures)) -- Tags,
    Seen = witness_spec_oracle:actions(Over),
    {Values, _} = lists:mapfoldl(fun(Name, Known) ->
        Value = value_of(Scope, Known, Seen, Options),
        {{Name, Value}, Known ++ [{Name, Value}]}
    end, [], lists:sublist(?VALUES, one_of([1, 1, 2, 2, 3]))),
    Chosen = case chance(50) of
        true -> lasting(#{dialect => Dialect, scope => Scope, loops => [], open => [], parameters => #{}, options => Options},
                        Seen);
        false -> Formula
    end,
    Valued = Property#{values => Values, formula := using(Chosen, Values, Tags, false)},
    apart({each, Valued}, fun() -> case chance(35) of true -> with_each(Valued, Scope, Options); false -> Valued end end);
with_values(Property) -> Property.

%% One more in front, with one or two variables, which guards of the formula ask for what their actions know.
with_each(#{values := Values, formula := Formula, over := Over} = Property, Scope, #{tags := Tags} = Options) ->
    Names = lists:sublist(?EACH, one_of([1, 1, 2])),
    Seen = witness_spec_oracle:actions(Over),
    Actions = times(one_of([1, 1, 2]), fun() -> binding(Names, Seen, 8, Scope, Options) end),
    Value = {each, Names, case one_of([previously, once, since, count, sum]) of
        previously -> {previously, {actions, Actions}};
        since -> {since, window(), {actions, [action(Scope, Options#{focus := loose})]}, {actions, Actions}};
        sum -> {sum, window(), {lit, one_of([1, 2])}, {actions, Actions}};
        Kind -> {Kind, window(), {actions, Actions}}
    end},
    Property#{values := [{'Each', Value} | Values], formula := asking_each(Formula, {'Each', Value}, Scope, Tags)}.

%% An action that binds these names, in the places of parts that bind none.
binding(Names, Seen, Tries, Scope, Options) ->
    {Kind, Patterns, _} = case Seen =/= [] andalso chance(60) of
        true -> one_of(Seen);
        false -> action(Scope, Options#{focus := plain})
    end,
    Bound = lists:foldl(fun(Name, Now) -> element(2, put_value(Kind, Now, [{Name, none}], 100)) end, Patterns, Names),
    case Names -- witness_spec_oracle:variables(Bound) of
        [] -> {Kind, Bound, []};
        _ when Tries > 0 -> binding(Names, Seen, Tries - 1, Scope, Options);
        _ -> {recv, ['_', {tuple, [{var, Name} || Name <- Names]}], []}
    end.

asking_each({Op, Formulas}, Let, Scope, Tags) when is_list(Formulas) -> {Op, [asking_each(F, Let, Scope, Tags) || F <- Formulas]};
asking_each({Modality, {Kind, Patterns, Guard} = Action, F}, Let, Scope, Tags) when Modality =:= box; Modality =:= dia ->
    Known = lists:usort(Scope ++ witness_spec_oracle:variables(Patterns)) -- Tags,
    {Modality, case Kind =/= 'else' andalso chance(60) of
         true -> {Kind, Patterns, with_test(asked(Let, fun() -> plain(Known) end), Guard)};
         false -> Action
     end, asking_each(F, Let, Known, Tags)};
asking_each({Before, Other, F}, Let, Scope, Tags) when Before =/= rec -> {Before, Other, asking_each(F, Let, Scope, Tags)};
asking_each({Fix, X, Parameters, F}, Let, Scope, Tags) ->
    {Fix, X, Parameters, asking_each(F, Let, [Name || {Name, _} <- Parameters] ++ Scope, Tags)};
asking_each(Other, _, _, _) -> Other.

%% A test of the value for these arguments.
asked({Name, {each, Names, Value}}, Argument) ->
    V = {ask, {var, Name}, [Argument() || _ <- Names]},
    case element(1, Value) of
        Truth when Truth =:= previously; Truth =:= once; Truth =:= since -> one_of([V, {op, 'not', [V]}]);
        _ -> {op, one_of(['=:=', '=/=', '>', '=<', '<']), [V, {lit, one_of([0, 1, 2, 3, none])}]}
    end.

%% A value behind those that are `Known`.
value_of(Scope, Known, Seen, Options) ->
    Condition = fun() -> condition(Scope, Known, Seen, Options) end,
    case one_of([previously, once, once, since, since, count, count, sum, sum, min, max, mean]) of
        previously -> {previously, Condition()};
        since -> {since, window(), Condition(), Condition()};
        Kind when Kind =:= once; Kind =:= count -> {Kind, window(), Condition()};
        Kind -> of_terms(Kind, Scope, Known, Options)
    end.

window() ->
    weighted([{4, fun() -> none end}, {3, fun() -> {time, one_of([0, 1, 1, 2, 3, 5, 10, 1000])} end},
              {3, fun() -> {events, one_of([1, 1, 2, 2, 3, 4])} end}]).

condition(Scope, Known, Seen, Options) ->
    Names = Scope ++ [Name || {Name, _} <- Known],
    case Names =/= [] andalso chance(case Known of [] -> 5; _ -> 35 end) of
        true -> {test, about(Known, Names)};
        false -> {actions, times(one_of([1, 1, 1, 2]), fun() -> for_value(Scope, Known, Seen, Options) end)}
    end.

%% An action of a `let`. Those of `over` read what there is to read.
for_value(Scope, Known, Seen, Options) ->
    {Kind, Patterns, Guard} = case Seen =/= [] andalso chance(40) of
        true -> one_of(Seen);
        false -> action(Scope, Options#{focus := one_of([plain, loose])})
    end,
    {Used, Pattern} = put_value(Kind, Patterns, Known, 15),
    Names = in_scope(Patterns, Scope, Options),
    {Kind, Pattern, case Known =/= [] andalso Used =:= none andalso chance(35) of
        true -> with_test(about(Known, Names), Guard);
        false -> Guard
    end}.

%% Numbers, and sometimes what is none. The first action that matches says what is known, so all of them bind the same.
of_terms(Kind, Scope, Known, Options) ->
    Names = Scope ++ [Name || {Name, _} <- Known],
    case Names =/= [] andalso chance(10) of
        true -> {Kind, window(), number_of(Names), condition(Scope, Known, [], Options)};
        false ->
            N = one_of(['A', 'B', 'Amount'] -- Scope),
            Numbers = [{call, is_integer, [{var, N}]}],
            Guards = weighted([{65, fun() -> [Numbers] end}, {10, fun() -> [[{call, is_number, [{var, N}]}]] end},
                               {15, fun() -> [Numbers, [{call, is_atom, [{var, N}]}]] end},
                               {10, fun() -> [] end}]),
            Actions = times(one_of([1, 1, 2, 3]), fun() ->
                Message = one_of([{var, N}, {var, N}, {tuple, [{lit, a}, {var, N}]}, {tuple, [{var, N}, '_']},
                                  {tuple, ['_', {var, N}]}, {list, [{var, N}], '_'}]),
                {Sort, Patterns} = one_of([{recv, ['_', Message]}, {recv, ['_', Message]}, {send, ['_', '_', Message]},
                                           {exit, ['_', Message]}]
                                          ++ lists:append([of_number(Named, {var, N}) || Named <- maps:get(named, Options, [])])),
                {Sort, Patterns, case Known =/= [] andalso Guards =/= [] andalso chance(25) of
                    true -> [[about(Known, [N | Scope]) | Tests] || Tests <- Guards];
                    false -> Guards
                end}
            end),
            {Kind, window(), weighted([{6, fun() -> {var, N} end}, {4, fun() -> number_of([N | Names]) end}]), {actions, Actions}}
    end.

%% A call or return with a number.
of_number({call, {_, _, 0}}, _) -> [];
of_number({call, {Module, Function, Arity}}, N) ->
    [{call, ['_', {tuple, [{lit, Module}, {lit, Function}, {list, lists:sublist([N, '_'], Arity), nil}]}]}];
of_number({return, Function}, N) -> [{return, ['_', {lit, Function}, N]}].

number_of(Names) ->
    X = {var, one_of(Names)},
    weighted([{2, fun() -> X end}, {1, fun() -> {lit, one_of([1, 2, -1])} end},
              {3, fun() -> {op, one_of(['+', '-', '*']), [X, one_of([{lit, 1}, {lit, 2}, {var, one_of(Names)}])]} end},
              {1, fun() -> {op, '-', [X]} end}, {1, fun() -> {call, one_of([abs, length]), [X]} end},
              {1, fun() -> {call, max, [X, {lit, 1}]} end}]).

%% A test of one of the values, as its kind has it, mostly alone.
about([], Names) -> test(1, Names);
about(Values, Names) ->
    {Name, Value} = one_of(Values),
    V = {var, Name},
    Number = {op, one_of(?ORDERS ++ ['=:=', '=/=']), [V, {lit, between(0, 3)}]},
    Own = case element(1, Value) of
        Truth when Truth =:= previously; Truth =:= once; Truth =:= since ->
            one_of([V, {op, 'not', [V]}, {op, '=:=', [V, {lit, true}]}]);
        Some when Some =:= count; Some =:= sum -> Number;
        _ -> one_of([Number, {op, one_of(['=:=', '=/=']), [V, {lit, none}]},
                     {op, one_of(?ORDERS), [V, {lit, one_of([0.5, 1.5, 2])}]}])
    end,
    weighted([{8, fun() -> Own end},
              {2, fun() -> {one_of(['andalso', 'orelse']), Own, about(Values, Names)} end},
              {1, fun() -> {op, one_of(['and', 'or', 'xor']), [Own, Own]} end},
              {2, fun() -> {op, one_of(?EQUALITIES ++ ?ORDERS), [V, {var, one_of([Name | Names])}]} end},
              {1, fun() -> {one_of(['andalso', 'orelse']), Own, test(1, [Name | Names])} end}]).

%% One of the values in the place of a pattern that binds nothing. Neither keys nor sizes are computed from it.
put_value(Kind, Patterns, Values, Percent) ->
    case Values =/= [] andalso chance(Percent) of
        true ->
            {Name, _} = one_of(Values),
            Last = witness_spec_oracle:parts(Kind),
            {Data, More} = lists:split(Last, Patterns),
            case {chance(15), More} of
                {true, [{to, Request} | Time]} -> {Name, Data ++ [{to, in_place(Name, Request)} | Time]};
                _ ->
                    {Before, [Message]} = lists:split(Last - 1, Data),
                    {Name, Before ++ [in_place(Name, Message) | More]}
            end;
        false -> {none, Patterns}
    end.

in_place(Name, Leaf) when Leaf =:= '_'; element(1, Leaf) =:= lit -> {var, Name};
%% The signature of a process has a module and a function.
in_place(Name, {tuple, [{lit, Module}, Function, {list, Arguments, nil}]})
  when Module =:= m; Module =:= n; Module =:= 'Elixir.My.App' ->
    {tuple, [{lit, Module}, Function, in_place(Name, {list, Arguments, nil})]};
in_place(Name, {tuple, [_ | _] = Patterns}) -> {tuple, in_one(Name, Patterns)};
in_place(Name, {list, [_ | _] = Patterns, Tail}) -> {list, in_one(Name, Patterns), Tail};
in_place(Name, {map, [{Key, Pattern} | Fields]}) -> {map, [{Key, in_place(Name, Pattern)} | Fields]};
in_place(Name, {record, Record, [{Field, Pattern} | Fields], Others}) ->
    {record, Record, [{Field, in_place(Name, Pattern)} | Fields], Others};
in_place(Name, {otp, Kind, Patterns}) ->
    {From, [Last]} = lists:split(length(Patterns) - 1, Patterns),
    {otp, Kind, From ++ [in_place(Name, Last)]};
in_place(_, Pattern) -> Pattern.

in_one(Name, Patterns) ->
    {Before, [Pattern | Behind]} = lists:split(rand:uniform(length(Patterns)) - 1, Patterns),
    Before ++ [in_place(Name, Pattern) | Behind].

with_test(Test, []) -> [[Test]];
with_test(Test, [Tests | Others]) ->
    weighted([{3, fun() -> [[Test | Tests] | Others] end}, {1, fun() -> [[Test], Tests | Others] end},
              {1, fun() -> [Tests ++ [Test] | Others] end}]).

%% The formula with uses of values. `Behind` says whether an action has bound them.
using({Op, Formulas}, Values, Tags, Behind) when is_list(Formulas) -> {Op, [using(F, Values, Tags, Behind) || F <- Formulas]};
using({rec, X, Nexts}, Values, _, _) -> {rec, X, [value_in(Next, Values) || Next <- Nexts]};
using({Modality, {'else', _, _} = Else, F}, Values, Tags, _) -> {Modality, Else, using(F, Values, Tags, true)};
using({Modality, {Kind, Patterns, Guard}, F}, Values, Tags, _) when Modality =:= box; Modality =:= dia ->
    {_, Put} = put_value(Kind, Patterns, Values, 15),
    Names = witness_spec_oracle:variables(Patterns) -- Tags,
    {Modality, {Kind, Put, case chance(55) of true -> with_test(about(Values, Names), Guard); false -> Guard end},
     using(F, Values, Tags, true)};
using({Timed, Length, F}, Values, Tags, Behind) when Timed =:= within; Timed =:= during ->
    {Timed, Length, using(F, Values, Tags, Behind)};
using({Fix, X, Parameters, F}, Values, Tags, Behind) ->
    {Fix, X, [{Name, case Behind of true -> value_in(First, Values); false -> First end} || {Name, First} <- Parameters],
     using(F, Values, Tags, Behind)};
using(Constant, _, _, _) -> Constant.

value_in(Expr, Values) ->
    {Name, _} = one_of(Values),
    weighted([{6, fun() -> Expr end}, {2, fun() -> {var, Name} end}, {1, fun() -> {op, '+', [{var, Name}, {lit, 1}]} end},
              {1, fun() -> {cons, {var, Name}, {lit, []}} end}, {1, fun() -> {tuple, [{var, Name}, Expr]} end}]).

%% A formula that reads events until an action decides.
lasting(#{dialect := Dialect, scope := Scope, options := #{tags := Tags} = Options} = Context, Seen) ->
    Names = case chance(30) of true -> lists:sublist(['N', 'M'] -- (Scope ++ Tags), 1); false -> [] end,
    Again = {rec, 'X', [next(Name, lists:usort([Name | Scope])) || Name <- Names]},
    {Fix, Modality, Op, Decided} = one_of(case Dialect of
        monitor -> [{max, box, 'and', ff}];
        check -> [{max, box, 'and', ff}, {max, box, 'and', ff}, {min, dia, 'or', tt}]
    end),
    Loop = Context#{scope := lists:usort(Names ++ Scope), loops := ['X'], parameters := #{'X' => Names}},
    Branches = times(one_of([1, 1, 2, 3]), fun() ->
        {Kind, Patterns, _} = Action = case Seen =/= [] andalso chance(60) of
            true -> one_of(Seen);
            false -> action(Scope, Options)
        end,
        Bare = case chance(50) of true -> {Kind, Patterns, []}; false -> Action end,
        {Modality, Bare, weighted([{4, fun() -> Decided end}, {2, fun() -> Again end},
                                   {3, fun() -> formula(between(2, 10), behind(Bare, Loop)) end}])}
    end),
    Whole = {Fix, 'X', [{Name, {lit, 0}} || Name <- Names], {Op, shuffled([{Modality, {'else', [], []}, Again} | Branches])}},
    case chance(25) of
        true -> {box, {'else', [], []}, Whole};
        false -> Whole
    end.

%% `let`s with values that decide.

%% Few messages and numbers, which meet again; windows with bounds that lie where events are, and times that go back. The formula
%% looks at the values at each event, and asks whether they are what they often are.
telling() ->
    Numbers = one_of([[1, 2, 3], [0, 1, 2, 4], [1, 2, 1.0, 2.0], [1, -1, 2], [1, 1.5, 2, 2.5]]),
    Keys = ['K' || chance(30)],
    Scope = Keys ++ ['S' || chance(50)],
    Context = #{keys => Keys, scope => Scope, numbers => Numbers},
    {Values, _} = lists:mapfoldl(fun(Name, Known) ->
        Named = {Name, telling_value(Known, Context)},
        {Named, Known ++ [Named]}
    end, [], lists:sublist(?VALUES, one_of([1, 1, 1, 2, 2, 3]))),
    Dialect = one_of([monitor, check, check]),
    #{signatures => [{{tuple, [{lit, m}, {lit, f}, {list, [{var, 'S'} || lists:member('S', Scope)], nil}]}, []}],
      dialect => Dialect, group => false, name => undefined, per => Keys,
      over => case Keys of
          [] -> one_of([all, all, [received('_', Context), {send, ['_', '_', '_'], []}]]);
          _ -> [received('_', Context)]
      end,
      values => Values, formula => telling_formula(Dialect, Values, Context), traces => telling_traces(Context)}.

telling_traces(#{keys := Keys, numbers := Numbers}) ->
    Messages = [a, a, b, b, c, c] ++ [{Name, N} || Name <- [a, a, b], N <- Numbers] ++ [{a, x} || chance(15)],
    #{events => 16, messages => case Keys of [] -> Messages; _ -> [{Key, Message} || Key <- [1, 1, 2], Message <- Messages] end,
      steps => one_of([[1], [0, 1], [0, 1, 1, 2, 3], [1, 1, 2, -1, -2], [1, 2, 3, -1, -2, -3],
                       [0, 1, 1, 1, 2, 2, 3, -1, undefined, 1, 1, 1, 1, 2, 2, 5]])}.

received(Pattern, Context) -> received(Pattern, [], Context).

received(Pattern, Guard, #{unkeyed := Unkeyed} = Context) ->
    case chance(Unkeyed) of
        true ->
            Message = case Pattern of {lit, _} -> one_of([Pattern, Pattern, Pattern, {var, 'K'}]); _ -> Pattern end,
            {recv, ['_', {tuple, [{lit, all}, Message]}], Guard};
        false -> received(Pattern, Guard, maps:remove(unkeyed, Context))
    end;
received(Pattern, Guard, #{keys := []}) -> {recv, ['_', Pattern], Guard};
received(Pattern, Guard, #{keys := [Key]}) -> {recv, ['_', {tuple, [{var, Key}, Pattern]}], Guard}.

telling_value(Known, #{numbers := Numbers} = Context) ->
    Condition = fun() -> telling_condition(Known, Context) end,
    Window = weighted([{2, fun() -> none end}, {4, fun() -> {time, one_of([0, 1, 2, 2, 3, 3])} end},
                       {3, fun() -> {events, one_of([1, 2, 3, 4])} end}]),
    case one_of([previously, once, once, since, since, since, count, count, sum, sum, min, min, max, max, mean, mean]) of
        previously -> {previously, Condition()};
        since ->
            While = case chance(70) of
                true -> {actions, [received({var, 'M'}, [[{op, '=/=', [{var, 'M'}, {lit, one_of([a, b, c])}]}]], Context)]};
                false -> Condition()
            end,
            {since, Window, While, Condition()};
        Kind when Kind =:= once; Kind =:= count -> {Kind, Window, Condition()};
        Kind ->
            N = {var, 'N'},
            Term = weighted([{6, fun() -> N end}, {1, fun() -> {op, '*', [N, N]} end}, {1, fun() -> {op, '-', [N]} end},
                             {1, fun() -> {op, '-', [N, {var, one_of(['N' | names(Known, Context)])}]} end}]),
            Guard = [[{op, one_of(['=/=', '>', '=<']), [N, {lit, one_of(Numbers)}]}] || chance(25)],
            Actions = one_of([[{tuple, [{lit, a}, N]}], [{tuple, [{lit, a}, N]}], [{tuple, ['_', N]}],
                              [{tuple, [{lit, b}, N]}, {tuple, [{lit, a}, N]}]]),
            {Kind, Window, Term, {actions, [received(Pattern, Guard, Context) || Pattern <- Actions]}}
    end.

names(Known, #{scope := Scope}) -> Scope ++ [Name || {Name, _} <- Known].

telling_condition(Known, Context) ->
    case Known =/= [] andalso chance(25) of
        true -> {test, telling_test(Known, Context)};
        false -> {actions, times(one_of([1, 1, 2]), fun() -> telling_action(Known, Context) end)}
    end.

telling_action(Known, #{numbers := Numbers} = Context) ->
    N = {var, 'N'},
    weighted([{4, fun() -> received({lit, one_of([a, b])}, Context) end},
              {2, fun() -> received({tuple, [{lit, a}, {lit, one_of(Numbers)}]}, Context) end},
              {2, fun() ->
                      received({tuple, [{lit, a}, N]}, [[{op, one_of(?ORDERS), [N, {lit, one_of(Numbers)}]}]], Context)
                  end}]
             ++ [{2, fun() -> received({tuple, ['_', {var, Name}]}, Context) end} || Name <- names(Known, Context)]
             ++ [{2, fun() -> received({lit, one_of([a, b])}, [[telling_test(Known, Context)]], Context) end} || Known =/= []]).

%% A test of one of the values.
telling_test(Values, #{numbers := Numbers}) ->
    {Name, Value} = one_of(Values),
    V = {var, Name},
    Some = fun(Count) -> times(Count, fun() -> one_of(Numbers) end) end,
    Ordered = fun(Number) -> {op, one_of(['=:=', '=:=', '=:=', '>', '<', '==']), [V, {lit, Number}]} end,
    case element(1, Value) of
        count -> one_of([Ordered(between(0, 4)), {op, '=:=', [{op, 'rem', [V, {lit, 2}]}, {lit, between(0, 1)}]}]);
        sum -> Ordered(lists:sum(Some(between(0, 3))));
        mean -> Ordered(case Some(one_of([1, 2, 2, 3])) of Several -> lists:sum(Several) / length(Several) end);
        Kind when Kind =:= min; Kind =:= max ->
            case chance(10) of true -> {op, '=:=', [V, {lit, none}]}; false -> Ordered(one_of(Numbers)) end;
        _ -> one_of([V, {op, 'not', [V]}])
    end.

telling_formula(Dialect, Values, Context) ->
    {Fix, Modality, Op, Decided} = one_of([{max, box, 'and', ff} | [{min, dia, 'or', tt} || Dialect =:= check]]),
    One = fun() -> {Name, _} = one_of(Values), {var, Name} end,
    %% A parameter is the value at the event before.
    Before = case chance(20) of true -> [{'Before', {lit, 0}}]; false -> [] end,
    Again = {rec, 'X', [One() || _ <- Before]},
    Looks = fun(Parameters) ->
        Test = weighted([{7, fun() -> telling_test(Values, Context) end}]
                        ++ [{3, fun() -> {op, one_of(['<', '=:=', '>']), [One(), {var, Old}]} end} || {Old, _} <- Parameters]),
        %% Every event would decide a truth at once.
        Every = case Test of {var, _} -> []; {op, 'not', _} -> []; _ -> ['_', '_', '_'] end,
        Tests = [Test | [telling_test(Values, Context) || chance(15)]],
        received(one_of(Every ++ [{lit, a}, {lit, c}, {tuple, [{lit, a}, '_']}]), [Tests], Context)
    end,
    Branches = times(one_of([1, 1, 2, 3]), fun() ->
        Action = case chance(10) of true -> received({tuple, ['_', One()]}, Context); false -> Looks(Before) end,
        {Modality, Action, weighted([{6, fun() -> Decided end},
                                     {1, fun() -> {Op, [Again, {Modality, Looks(Before), Decided}]} end}])}
    end),
    Loop = fun(Else) -> {Fix, 'X', Before, {Op, shuffled([{Modality, {'else', [], []}, Else} | Branches])}} end,
    weighted([{15, fun() -> Loop(Again) end}, {2, fun() -> Loop(Decided) end},
              %% Without a loop, there may be nothing to read.
              {2, fun() -> {Modality, Looks([]), Decided} end}]).

%% `let`s that have values for numbers in messages: they ask others for the same numbers, and for other ones; some conditions are
%% about all numbers at once. What the formula asks for is a part of its event, or one of the numbers.
keeping() ->
    Numbers = one_of([[1, 2, 3], [0, 1, 2], [1, 2, 1.0], [1, 2]]),
    Keys = ['K' || chance(30)],
    Context = #{keys => Keys, scope => Keys, numbers => Numbers},
    {Values, _} = lists:mapfoldl(fun(Name, Known) ->
        Named = {Name, kept_value(Known, Context)},
        {Named, Known ++ [Named]}
    end, [], lists:sublist(?VALUES ++ ['H'], one_of([1, 2, 2, 3, 3, 4]))),
    Dialect = one_of([monitor, check, check]),
    Plain = [a, b, c] ++ [{Kind, N} || Kind <- [a, a, b], N <- Numbers]
        ++ [{Kind, N, M} || Kind <- [a, a, b], N <- Numbers, M <- Numbers] ++ [{a, x, x} || chance(10)],
    Messages = case Keys of [] -> Plain; _ -> [{Key, Message} || Key <- [1, 1, 2], Message <- Plain] end,
    #{signatures => [{{tuple, [{lit, m}, {lit, f}, {list, [], nil}]}, []}],
      dialect => Dialect, group => false, name => undefined, per => Keys,
      over => case Keys of [] -> all; _ -> [received('_', Context)] end,
      values => Values, formula => kept_formula(Dialect, Values, Context),
      traces => #{events => 18, messages => Messages,
                  steps => one_of([[1], [1], [0, 1], [0, 1, 1, 2, 3], [1, 1, 2, -1, -2], [1, 2, 3, -1, -2, -3],
                                   [0, 1, 1, 1, 2, 2, 3, -1, undefined, 1, 1, 1, 1, 2, 2, 5]])}}.

kept_value(Known, Context) ->
    Names = one_of([[], ['Own'], ['Own'], ['Own'], ['Own', 'Its']]),
    Condition = fun() -> kept_condition(Names, Known, Context) end,
    Window = weighted([{4, fun() -> none end}, {3, fun() -> {time, one_of([0, 1, 2, 2, 3, 3])} end},
                       {3, fun() -> {events, one_of([1, 1, 2, 3, 4])} end}]),
    Value = case one_of([previously, once, once, since, since, since, since, count, count, sum, min, max, mean]) of
        previously -> {previously, Condition()};
        since ->
            %% Mostly until something happens to the same.
            Ends = [Name || {Name, {each, Several, {once, _, _}}} <- Known, length(Several) =:= length(Names)],
            While = case Ends =/= [] andalso chance(70) of
                true -> {test, {op, 'not', [{ask, {var, one_of(Ends)}, [{var, Name} || Name <- shuffled(Names)]}]}};
                false -> Condition()
            end,
            {since, one_of([none, Window]), While, Condition()};
        Kind when Kind =:= once; Kind =:= count -> {Kind, Window, Condition()};
        Kind ->
            {actions, Actions} = kept_actions(Names, one_of([1, 1, 2]), 80, Known, Context),
            Numbers = [{recv, Patterns, [[{call, is_number, [{var, 'N'}]} | Tests] || Tests <- Alternatives]}
                       || {recv, Patterns, Guard} <- [with_number(Action) || Action <- Actions],
                          Alternatives <- [case Guard of [] -> [[]]; _ -> Guard end]],
            {Kind, Window, one_of([{var, 'N'}, {var, 'N'}, {op, '*', [{var, 'N'}, {lit, 2}]}]), {actions, Numbers}}
    end,
    case {Names, Names -- witness_spec_oracle:variables(Value)} of
        {[], _} -> Value;
        {_, []} -> {each, Names, Value};
        _ -> kept_value(Known, Context)
    end.

%% The last part of the message is a number; if that is one of the names, both are.
with_number({recv, Patterns, Guard}) -> {recv, [numbered(Pattern) || Pattern <- Patterns], Guard}.

numbered('_') -> '_';
numbered({tuple, [{lit, Kind} | Parts]}) when Kind =:= a; Kind =:= b ->
    {Some, [Last]} = lists:split(length(Parts) - 1, Parts),
    {tuple, [{lit, Kind} | Some ++ [case Last of '_' -> {var, 'N'}; _ -> {same, Last, {var, 'N'}} end]]};
numbered({tuple, [Key, Message]}) -> {tuple, [Key, numbered(Message)]};
numbered({var, _} = Key) -> {same, Key, {var, 'N'}};
numbered({lit, _}) -> {tuple, [{lit, b}, {var, 'N'}]}.

kept_condition(Names, Known, Context) ->
    Asked = asked_for(Names, Known, Context),
    Same = [Ask || {{_, {each, Several, _}}, _} = Ask <- Asked, length(Several) =:= length(Names)],
    case Asked =/= [] andalso chance(case Same of [] -> 20; _ -> 60 end) of
        true -> {test, kept_test(case Same =/= [] andalso chance(80) of true -> Same; false -> Asked end)};
        false -> kept_actions(Names, one_of([1, 1, 2]), 85, Known, Context)
    end.

%% Most of them bind the names.
kept_actions(Names, Count, Percent, Known, Context) ->
    {actions, times(Count, fun() ->
        case Names =/= [] andalso chance(Percent) of
            true ->
                Vars = [{var, Name} || Name <- shuffled(Names)],
                Parts = case Vars of [V] -> one_of([[V], [V], [V, '_'], ['_', V], [V, V]]); _ -> Vars end,
                Terms = fun() -> one_of([{var, one_of(Names)}, {var, one_of(Names)}, {lit, one_of(map_get(numbers, Context))}]) end,
                Asked = [case Value of {each, _, _} -> asked(Let, Terms); _ -> about([Let], Names) end
                         || {_, Value} = Let <- Known],
                received({tuple, [{lit, one_of([a, b])} | Parts]},
                         [[one_of(Asked ++ [{op, '>', [Terms(), Terms()]}])] || chance(30)], Context);
            false ->
                Asked = asked_for(Names, Known, Context),
                received(one_of([{lit, b}, {lit, c}, {tuple, [{lit, b}, '_']}]),
                         [[kept_test(Asked)] || Asked =/= [], chance(40)], Context)
        end
    end)}.

%% What may be asked for all values of these names: `let`s for all of the names, and what does not depend on them.
asked_for(Names, Known, #{numbers := Numbers}) ->
    lists:append([case Value of
        {each, Several, _} when length(Several) =:= length(Names), Names =/= [] ->
            Order = shuffled(Names),
            [{Let, fun() -> {var, next_of(Order)} end} || Let <- [{Name, Value}]];
        {each, _, _} -> [{{Name, Value}, fun() -> {lit, one_of(Numbers)} end} || chance(30)];
        _ -> [{{Name, Value}, none}]
    end || {Name, Value} <- Known]).

%% One name behind the other.
next_of(Names) ->
    Number = case get({?MODULE, order}) of undefined -> 0; Before -> Before end,
    put({?MODULE, order}, Number + 1),
    lists:nth(Number rem length(Names) + 1, Names).

kept_test(Asked) ->
    Tests = fun() ->
        case one_of(Asked) of
            {Let, none} -> about([Let], []);
            {Let, Argument} ->
                erase({?MODULE, order}),
                asked(Let, Argument)
        end
    end,
    weighted([{5, Tests}, {1, fun() -> {one_of(['andalso', 'orelse']), Tests(), Tests()} end}]).

kept_formula(Dialect, Values, #{numbers := Numbers} = Context) ->
    {Fix, Modality, Op, Decided} = one_of([{max, box, 'and', ff} | [{min, dia, 'or', tt} || Dialect =:= check]]),
    Test = fun(Names) ->
        Term = fun() -> one_of([{lit, one_of(Numbers)} | [{var, Name} || Name <- Names ++ Names]]) end,
        case one_of(Values ++ [lists:last(Values), lists:last(Values)]) of
            {_, {each, _, _}} = Let -> asked(Let, Term);
            Let -> about([Let], Names)
        end
    end,
    Value = fun(Names) ->
        case one_of(Values) of
            {Name, {each, Several, _}} ->
                {ask, {var, Name}, [one_of([{lit, one_of(Numbers)} | [{var, N} || N <- Names]]) || _ <- Several]};
            {Name, _} -> {var, Name}
        end
    end,
    Before = case chance(25) of true -> [{'Before', {lit, 0}}]; false -> [] end,
    Looks = fun(Parameters) ->
        {Pattern, Names} = one_of([{'_', []}, {{lit, c}, []},
                                   {{tuple, [{lit, a}, {var, 'U'}]}, ['U']}, {{tuple, ['_', {var, 'U'}]}, ['U']},
                                   {{tuple, [{lit, a}, {var, 'U'}, {var, 'Own'}]}, ['U', 'Own']},
                                   {{tuple, ['_', {var, 'U'}, {var, 'Own'}]}, ['U', 'Own']}]),
        Tests = weighted([{6, fun() -> [Test(Names)] end}, {2, fun() -> [Test(Names), Test(Names)] end}]
                         ++ [{3, fun() -> [{op, one_of(['<', '=:=', '>']), [Value(Names), {var, Old}]}] end}
                             || {Old, _} <- Parameters]),
        {received(Pattern, [Tests | [[Test(Names)] || chance(15)]], Context), Names}
    end,
    Again = fun(Names) -> {rec, 'X', [Value(Names) || _ <- Before]} end,
    Branches = times(one_of([1, 1, 2, 3]), fun() ->
        {Action, Names} = Looks(Before),
        {Modality, Action, weighted([{6, fun() -> Decided end},
                                     {2, fun() ->
                                             {Next, _} = Looks(Before ++ [{Name, none} || Name <- Names]),
                                             {Op, [Again(Names), {Modality, Next, Decided}]}
                                         end}])}
    end),
    {Fix, 'X', Before, {Op, shuffled([{Modality, {'else', [], []}, Again([])} | Branches])}}.

%% Slices that end with their first event or soon, of few keys that come again; events without a key; slices that only some events
%% begin. Deadlines end some of them.
leaving() ->
    Numbers = one_of([[1, 2, 3], [0, 1, 2, 4], [1, -1, 2]]),
    Unkeyed = one_of([0, 20, 60]),
    Context = #{keys => ['K'], scope => ['K'], numbers => Numbers},
    Mixed = Context#{unkeyed => Unkeyed},
    {Values, _} = lists:mapfoldl(fun(Name, Known) ->
        Named = {Name, telling_value(Known, Mixed)},
        {Named, Known ++ [Named]}
    end, [], lists:sublist(?VALUES, one_of([1, 1, 2, 2, 3]))),
    Dialect = one_of([monitor, check]),
    Fixed = Context#{unkeyed => 0},
    Formula = case chance(60) of
        true ->
            Test = telling_test(Values, Fixed),
            {box, received(one_of(['_', {lit, a}, {lit, c}]), [[Test]], Fixed), ff};
        false -> telling_formula(Dialect, Values, Fixed)
    end,
    Timed = case Dialect =:= check andalso chance(25) of
        true -> {one_of([within, during]), one_of([1, 2, 3]), Formula};
        false -> Formula
    end,
    #{events := Events, messages := Messages, steps := Steps} = telling_traces(Context#{keys := []}),
    Keys = one_of([[1, 2], [1, 2, 3, 4, 5]]),
    #{signatures => [{{tuple, [{lit, m}, {lit, f}, {list, [], nil}]}, []}], dialect => Dialect, group => false, name => undefined,
      per => ['K'],
      over => [{recv, ['_', {tuple, [{lit, all}, '_']}], []} || Unkeyed > 0]
          ++ [{'begin', received(one_of([{lit, a}, {tuple, [{lit, a}, '_']}]), Fixed)} || chance(50)] ++ [received('_', Fixed)],
      values => Values, formula => Timed,
      traces => #{events => Events + 8, steps => Steps,
                  messages => [{Key, Message} || Key <- Keys, Message <- Messages]
                      ++ [{all, Message} || Unkeyed > 0, _ <- Keys, Message <- [a, a, b, c, 1, 2, {a, 1}, {a, 2}, {b, 1}]]}}.

%% One more `let`, with variables.
leaving_each(#{values := Values, formula := Formula, over := Over} = Property) ->
    Unkeyed = case Over of [{recv, ['_', {tuple, [{lit, all}, _]}], []} | _] -> 40; _ -> 0 end,
    case kept_value([], #{keys => ['K'], scope => ['K'], numbers => [1, 2], unkeyed => Unkeyed}) of
        {each, _, _} = Each ->
            Let = {'Each', Each},
            Property#{values := [Let | Values], formula := asking_each(Formula, Let, ['K'], [])};
        _ -> leaving_each(Property)
    end.
