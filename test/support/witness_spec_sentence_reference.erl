-module(witness_spec_sentence_reference).
-moduledoc """
What a sentence says of a whole finite trace, by its definition: first-order sentences over the positions of the trace.

It shares no code with `m:witness_spec_sentence`: no expansion, no formula, no state that goes from event to event. All quantifiers
range over the positions, so it is slow, and for short traces. Actions have a matcher of their own.

A position has an event that the instance reads, and its time. Times do not go back. The scope of a sentence cuts the trace into
segments (`segments/3`), and its main part judges each one (`bad/6`). A sentence is *certainly violated* by a prefix if every trace that
begins with it violates the sentence. Of an open obligation with a deadline this is so when an event of the segment is later.

Each variable is free in each action, but for those of `per`, and for what actions in front have bound in `leads`, `never_within`.
""".

-export([judge/3, match/3, actions/1, variables/1, segments/3]).
-export_type([sentence/0, scope/0, main/0, action/0, trace/0, binding/0]).

-doc "A kind of message, its three parts, and a guard of one variable.".
-type action() :: {recv | send | cast, [part()], guard()}.
-type part() :: '_' | {var, atom()} | {lit, term()}.
-type guard() :: none | {more | even | one_or_three, atom()}.
-type duration() :: none | non_neg_integer().
-type sentence() :: {scope(), main()}.
-type scope() ::
    globally
  | {before, End :: action()}
  | {behind, Begin :: action()}
  | {until | between, Begin :: action(), End :: action()}.
-doc """
Of `precedes`, one chain has one action, and both have if there is a duration and the first one is longer. `never_within`, which is
`never A within D after Q` as `{never_within, Q, A, D}`, has no scope.
""".
-type main() ::
    {never | always, action()}
  | {leads | precedes, chain(), chain(), duration()}
  | {at_most | exactly, non_neg_integer(), action()}
  | {at_least, pos_integer(), action(), duration()}
  | {in_any, non_neg_integer(), action(), duration()}
  | {open, pos_integer(), action(), action()}
  | {unique, [atom(), ...], action()}
  | {increasing, strictly | weakly, atom(), action()}
  | {alternates, action(), action()}
  | {never_within, action(), action(), duration()}.
-type chain() :: [action(), ...].
-type event() :: {recv | send | cast, Message :: tuple()}.
-type trace() :: [{event(), Time :: integer()}].
-type binding() :: #{atom() => term()}.
-doc "Its positions, the one at which it begins, which is outside of it if it is that of a `Q`, and whether an `R` has closed it.".
-type segment() :: {[pos_integer()], Begin :: pos_integer(), closed | unclosed}.

-doc """
`{no, I}`: event `I` is the first one with which it is certainly violated. `no`: it is violated at the complete end. Otherwise
`yes`. The binding has the values of `per`.
""".
-spec judge(sentence(), binding(), trace()) -> {no, pos_integer()} | no | yes.
judge(Sentence, Per, Trace) ->
    Prefixes = [lists:sublist(Trace, I) || I <- lists:seq(1, length(Trace))],
    case [I || {I, Prefix} <- lists:enumerate(Prefixes), violated(Sentence, Per, list_to_tuple(Prefix), open)] of
        [I | _] -> {no, I};
        [] ->
            case violated(Sentence, Per, list_to_tuple(Trace), complete) of
                true -> no;
                false -> yes
            end
    end.

%% Whether all extensions of the trace violate the sentence (`open`), or the trace does (`complete`). A segment of `before` and
%% `between` counts when it is closed, and then all of it is known.
violated({Scope, Main}, Per, T, End) ->
    lists:any(fun({S, Begin, closed}) -> bad(Main, S, Begin, Per, T, complete);
                 ({S, Begin, unclosed}) -> not waits(Scope) andalso bad(Main, S, Begin, Per, T, End)
              end, segments(Scope, Per, T)).

waits({before, _}) -> true;
waits({between, _, _}) -> true;
waits(_) -> false.

-doc "The segments that a scope cuts out of a trace.".
-spec segments(scope(), binding(), tuple()) -> [segment()].
segments(globally, _, T) -> [{all(T), 1, unclosed}];
segments({before, R}, Per, T) -> [segment(0, 1, R, Per, T)];
segments({behind, Q}, Per, T) ->
    [{above(J, all(T)), J, unclosed} || J <- first(fun(J) -> is(Q, J, Per, T) end, all(T))];
segments({_, Q, R}, Per, T) ->
    Begins = fun(J) -> is(Q, J, Per, T) andalso not is(R, J, Per, T) end,
    [segment(J, J, R, Per, T) || J <- all(T), Begins(J),
                                 not exists(below(J, all(T)), fun(I) -> Begins(I) andalso not some(R, I, J, Per, T) end)].

%% The positions behind J that have no R between J and them, and are none.
segment(J, Begin, R, Per, T) ->
    {[I || I <- above(J, all(T)), not some(R, J, I + 1, Per, T)], Begin,
     case some(R, J, tuple_size(T) + 1, Per, T) of true -> closed; false -> unclosed end}.

%% Whether there is an action between two positions.
some(A, I, K, Per, T) -> exists(all(T), fun(J) -> J > I andalso J < K andalso is(A, J, Per, T) end).

%% Whether the positions S violate a main part: all of them, if they are `complete`, and however they go on, if they are `open`.
bad({never, A}, S, _, Per, T, _) -> those(A, S, Per, T) =/= [];
bad({always, A}, S, _, Per, T, _) -> those(A, S, Per, T) =/= S;
bad({leads, [A | As], Bs, D}, S, _, Per, T, End) ->
    exists(S, fun(I) ->
        with(A, I, Per, T, fun(Bound) ->
            case follow(As, I, S, Bound, T) of
                none -> false;
                {Last, All} ->
                    case follow(Bs, Last, S, All, T) of
                        {K, _} -> not in_time(Last, K, D, T);
                        none -> End =:= complete orelse late(Last, S, D, T)
                    end
            end
        end)
    end);
bad({precedes, As, [B | Bs], D}, S, _, Per, T, _) ->
    First = first(fun(K) -> is(B, K, Per, T) andalso not preceded(lists:reverse(As), K, S, D, Per, T) end, S),
    exists(First, fun(K) -> follow(Bs, K, S, Per, T) =/= none end);
bad({at_most, N, A}, S, _, Per, T, _) -> length(those(A, S, Per, T)) > N;
bad({at_least, N, A, D}, S, Begin, Per, T, End) ->
    length([I || I <- those(A, S, Per, T), in_time(Begin, I, D, T)]) < N andalso (End =:= complete orelse late(Begin, S, D, T));
bad({exactly, N, A}, S, Begin, Per, T, End) ->
    bad({at_most, N, A}, S, Begin, Per, T, End) orelse bad({at_least, N, A, none}, S, Begin, Per, T, End);
bad({in_any, N, A, D}, S, _, Per, T, _) ->
    Those = those(A, S, Per, T),
    exists(Those, fun(I) -> length([J || J <- Those, J =< I, in_time(J, I, D, T)]) > N end);
bad({open, N, A, B}, S, _, Per, T, _) ->
    case (variables(A) -- (variables(A) -- variables(B))) -- maps:keys(Per) of
        [] -> exists(S, fun(I) -> adds(I, A, B, Per, T) =:= 1 andalso counter(below(I, S), A, B, Per, T) >= N end);
        Names ->
            exists(S, fun(I) ->
                Open = open_keys(below(I, S), Names, A, B, Per, T),
                opens(I, A, B, Per, T) andalso not lists:member(key(Names, A, I, Per, T), Open) andalso length(Open) >= N
            end)
    end;
bad({unique, Names, A}, S, _, Per, T, _) ->
    Those = those(A, S, Per, T),
    exists(Those, fun(J) -> exists(below(J, Those), fun(I) -> key(Names, A, I, Per, T) =:= key(Names, A, J, Per, T) end) end);
bad({increasing, How, V, A}, S, _, Per, T, _) ->
    Wrong = fun(Before, Value) when How =:= strictly -> Value =< Before;
               (Before, Value) -> Value < Before
            end,
    Those = those(A, S, Per, T),
    exists(Those, fun(I) ->
        exists(below(I, Those), fun(J) ->
            not exists(below(I, Those), fun(K) -> K > J end)
                andalso Wrong(hd(key([V], A, J, Per, T)), hd(key([V], A, I, Per, T)))
        end)
    end);
bad({alternates, A, B}, S, _, Per, T, _) ->
    Both = fun(I) -> is(A, I, Per, T) andalso is(B, I, Per, T) end,
    Some = fun(I) -> is(A, I, Per, T) orelse is(B, I, Per, T) end,
    Last = fun(J, I) -> Some(J) andalso not exists(below(I, S), fun(K) -> K > J andalso Some(K) end) end,
    exists(S, fun(I) ->
        Both(I)
            orelse is(A, I, Per, T) andalso exists(below(I, S), fun(J) -> Last(J, I) andalso is(A, J, Per, T) end)
            orelse is(B, I, Per, T) andalso not exists(below(I, S), fun(J) -> Last(J, I) andalso is(A, J, Per, T) end)
    end);
bad({never_within, Q, A, D}, S, _, Per, T, _) ->
    exists(S, fun(I) ->
        with(Q, I, Per, T, fun(Bound) ->
            exists(above(I, S), fun(J) -> is(A, J, Bound, T) andalso in_time(I, J, D, T) end)
        end)
    end).

%% Where the last action of a chain is, and all values, if each one is at the next position behind the one before that it matches.
follow([], I, _, Bound, _) -> {I, Bound};
follow([A | As], I, S, Bound, T) ->
    case first(fun(J) -> is(A, J, Bound, T) end, above(I, S)) of
        [J] -> with(A, J, Bound, T, fun(More) -> follow(As, J, S, More, T) end);
        [] -> none
    end.

%% Whether the actions, the last one of the text first, are at positions that go back from K, the first of these at most D earlier.
preceded([], _, _, _, _, _) -> true;
preceded([A | As], K, S, D, Per, T) ->
    exists(below(K + 1, S), fun(I) ->
        is(A, I, Per, T) andalso in_time(I, K, D, T) andalso preceded(As, I - 1, S, none, Per, T)
    end).

%% Keys that are open behind the positions S: each has an A that opens it, and no B with this key behind it.
open_keys(S, Names, A, B, Per, T) ->
    lists:uniq([key(Names, A, I, Per, T)
                || I <- S, opens(I, A, B, Per, T),
                   not exists(those(B, above(I, S), Per, T), fun(K) -> key(Names, B, K, Per, T) =:= key(Names, A, I, Per, T) end)]).

opens(I, A, B, Per, T) -> is(A, I, Per, T) andalso not is(B, I, Per, T).

%% A counter that is not taken below 0: the greatest sum of what any last ones of the positions S add.
counter(S, A, B, Per, T) ->
    lists:max([lists:sum([adds(K, A, B, Per, T) || K <- above(I, S)]) || I <- [0 | S]]).

adds(K, A, B, Per, T) ->
    case {is(A, K, Per, T), is(B, K, Per, T)} of
        {_, true} -> -1;
        {true, false} -> 1;
        {false, false} -> 0
    end.

those(A, S, Per, T) -> [I || I <- S, is(A, I, Per, T)].

all(T) -> lists:seq(1, tuple_size(T)).
below(I, S) -> [J || J <- S, J < I].
above(I, S) -> [J || J <- S, J > I].
first(Says, S) -> lists:sublist(lists:filter(Says, S), 1).

exists(Positions, Says) -> lists:any(Says, Positions).

%% Whether a position is so late that nothing behind it is in time.
late(J, S, D, T) -> exists(S, fun(I) -> not in_time(J, I, D, T) end).

in_time(_, _, none, _) -> true;
in_time(J, I, D, T) -> element(2, element(I, T)) - element(2, element(J, T)) =< D.

is(A, I, Binding, T) -> with(A, I, Binding, T, fun(_) -> true end).

with(A, I, Binding, T, Says) ->
    case match(A, element(1, element(I, T)), Binding) of
        no -> false;
        Bound -> Says(Bound)
    end.

key(Names, A, I, Per, T) ->
    Bound = match(A, element(1, element(I, T)), Per),
    [map_get(Name, Bound) || Name <- Names].

-doc "The actions of a scope or a main part, in the order of the text.".
-spec actions(scope() | main()) -> [action()].
actions(globally) -> [];
actions({never_within, Q, A, _}) -> [A, Q];
actions(Part) ->
    lists:append([case Element of
                      {_, [_ | _], _} -> [Element];
                      [{_, [_ | _], _} | _] -> Element;
                      _ -> []
                  end || Element <- tuple_to_list(Part)]).

-doc "The variables of an action.".
-spec variables(action()) -> [atom()].
variables({_, Parts, _}) -> lists:usort([Name || {var, Name} <- Parts]).

-doc "The binding with what the action binds, if it matches the event.".
-spec match(action(), event(), binding()) -> binding() | no.
match({Kind, Parts, Guard}, {Kind, Message}, Binding) when length(Parts) =:= tuple_size(Message) ->
    case parts(lists:zip(Parts, tuple_to_list(Message)), Binding) of
        no -> no;
        Bound ->
            case guard(Guard, Bound) of
                true -> Bound;
                false -> no
            end
    end;
match(_, _, _) -> no.

parts([], Binding) -> Binding;
parts([{'_', _} | Parts], Binding) -> parts(Parts, Binding);
parts([{{lit, Term}, Value} | Parts], Binding) when Term =:= Value -> parts(Parts, Binding);
parts([{{var, Name}, Value} | Parts], Binding) when not is_map_key(Name, Binding); map_get(Name, Binding) =:= Value ->
    parts(Parts, Binding#{Name => Value});
parts(_, _) -> no.

guard(none, _) -> true;
guard({more, Name}, Bound) -> map_get(Name, Bound) > 1;
guard({even, Name}, #{} = Bound) ->
    Value = map_get(Name, Bound),
    is_integer(Value) andalso Value rem 2 =:= 0;
guard({one_or_three, Name}, Bound) -> lists:member(map_get(Name, Bound), [1, 3]).
