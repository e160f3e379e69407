-module(witness_spec_sentence_reference).
-moduledoc """
What a sentence says of a whole finite trace, by its definition: first-order sentences over the positions of the trace.

It shares no code with `m:witness_spec_sentence`: no expansion, no formula, no state that goes from event to event. All quantifiers range over
the positions, so it is slow, and for short traces. Actions have a matcher of their own.

A position has an event that the instance reads, and its time. Times do not go back. A sentence is *certainly violated* by a prefix if every
trace that begins with this prefix violates it. Of an open obligation with a deadline this is so when an event is later than the deadline.

Each variable is free in each action, but for those of `per`, and for the second action of `leads`: it has the bindings of the first one.
""".

-export([judge/3, match/3, variables/1]).
-export_type([sentence/0, action/0, trace/0, binding/0]).

-doc "A kind of message, its three parts, and a guard of one variable.".
-type action() :: {recv | send | cast, [part()], guard()}.
-type part() :: '_' | {var, atom()} | {lit, term()}.
-type guard() :: none | {more | even | one_or_three, atom()}.
-type duration() :: none | non_neg_integer().
-type sentence() ::
    {never, action()}
  | {never_before, action(), End :: action()}
  | {never_after, action(), Begin :: action()}
  | {never_until, action(), Begin :: action(), End :: action()}
  | {never_between, action(), Begin :: action(), End :: action()}
  | {leads, action(), action(), duration()}
  | {precedes, action(), action(), duration()}
  | {at_most | exactly, non_neg_integer(), action()}
  | {at_least, pos_integer(), action(), duration()}
  | {in_any, non_neg_integer(), action(), duration()}
  | {open, pos_integer(), action(), action()}
  | {unique, [atom(), ...], action()}
  | {increasing, strictly | weakly, atom(), action()}
  | {alternates, action(), action()}.
-type event() :: {recv | send | cast, Message :: tuple()}.
-type trace() :: [{event(), Time :: integer()}].
-type binding() :: #{atom() => term()}.

-doc """
`{no, I}`: event `I` is the first one with which it is certainly violated. `no`: it is violated at the complete end. Otherwise `yes`. The
binding has the values of `per`.
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

%% Whether all extensions of the trace violate the sentence (`open`), or the trace does (`complete`).
violated({never, A}, Per, T, _) -> exists(all(T), fun(I) -> is(A, I, Per, T) end);
violated({never_before, A, R}, Per, T, _) ->
    exists(all(T), fun(J) ->
        is(R, J, Per, T)
            andalso not exists(below(J), fun(K) -> is(R, K, Per, T) end)
            andalso exists(below(J), fun(I) -> is(A, I, Per, T) end)
    end);
violated({never_after, A, Q}, Per, T, _) ->
    exists(all(T), fun(I) -> is(A, I, Per, T) andalso exists(below(I), fun(J) -> is(Q, J, Per, T) end) end);
violated({never_until, A, Q, R}, Per, T, _) ->
    exists(all(T), fun(I) -> in_scope(I, A, Q, R, Per, T) end);
violated({never_between, A, Q, R}, Per, T, _) ->
    exists(all(T), fun(I) ->
        in_scope(I, A, Q, R, Per, T) andalso exists(above(I, T), fun(K) -> is(R, K, Per, T) end)
    end);
violated({leads, A, B, D}, Per, T, End) ->
    exists(all(T), fun(I) ->
        with(A, I, Per, T, fun(A1) ->
            not exists(above(I, T), fun(J) -> is(B, J, A1, T) andalso in_time(I, J, D, T) end)
                andalso (End =:= complete orelse not in_time(I, tuple_size(T), D, T))
        end)
    end);
violated({precedes, A, B, D}, Per, T, _) ->
    exists(all(T), fun(I) ->
        is(B, I, Per, T) andalso not exists([I | below(I)], fun(J) -> is(A, J, Per, T) andalso in_time(J, I, D, T) end)
    end);
violated({at_most, N, A}, Per, T, _) -> length(those(A, Per, T)) > N;
violated({at_least, N, A, D}, Per, T, End) ->
    length([I || I <- those(A, Per, T), in_time(1, I, D, T)]) < N
        andalso (End =:= complete orelse not in_time(1, tuple_size(T), D, T));
violated({exactly, N, A}, Per, T, End) ->
    violated({at_most, N, A}, Per, T, End) orelse violated({at_least, N, A, none}, Per, T, End);
violated({in_any, N, A, D}, Per, T, _) ->
    exists(those(A, Per, T), fun(I) -> length([J || J <- those(A, Per, T), J =< I, in_time(J, I, D, T)]) > N end);
violated({open, N, A, B}, Per, T, _) ->
    case (variables(A) -- (variables(A) -- variables(B))) -- maps:keys(Per) of
        [] -> exists(all(T), fun(I) -> adds(I, A, B, Per, T) =:= 1 andalso counter(I - 1, A, B, Per, T) >= N end);
        Names ->
            exists(all(T), fun(I) ->
                Open = open_keys(I - 1, Names, A, B, Per, T),
                opens(I, A, B, Per, T) andalso not lists:member(key(Names, A, I, Per, T), Open) andalso length(Open) >= N
            end)
    end;
violated({unique, Names, A}, Per, T, _) ->
    exists(those(A, Per, T), fun(J) ->
        exists(below(J), fun(I) -> is(A, I, Per, T) andalso key(Names, A, I, Per, T) =:= key(Names, A, J, Per, T) end)
    end);
violated({increasing, How, V, A}, Per, T, _) ->
    Wrong = fun(Before, Value) when How =:= strictly -> Value =< Before;
               (Before, Value) -> Value < Before
            end,
    exists(those(A, Per, T), fun(I) ->
        exists(below(I), fun(J) ->
            is(A, J, Per, T)
                andalso not exists(below(I), fun(K) -> K > J andalso is(A, K, Per, T) end)
                andalso Wrong(hd(key([V], A, J, Per, T)), hd(key([V], A, I, Per, T)))
        end)
    end);
violated({alternates, A, B}, Per, T, _) ->
    Both = fun(I) -> is(A, I, Per, T) andalso is(B, I, Per, T) end,
    Some = fun(I) -> is(A, I, Per, T) orelse is(B, I, Per, T) end,
    Last = fun(J, I) -> Some(J) andalso not exists(below(I), fun(K) -> K > J andalso Some(K) end) end,
    exists(all(T), fun(I) ->
        Both(I)
            orelse is(A, I, Per, T) andalso exists(below(I), fun(J) -> Last(J, I) andalso is(A, J, Per, T) end)
            orelse is(B, I, Per, T) andalso not exists(below(I), fun(J) -> Last(J, I) andalso is(A, J, Per, T) end)
    end).

%% Position I is an A of a scope that a Q has begun before it and no R has ended.
in_scope(I, A, Q, R, Per, T) ->
    is(A, I, Per, T) andalso not is(R, I, Per, T)
        andalso exists(below(I), fun(J) ->
            is(Q, J, Per, T) andalso not is(R, J, Per, T)
                andalso not exists(below(I), fun(K) -> K > J andalso is(R, K, Per, T) end)
        end).

%% Keys that are open behind position J: each has an A that opens it, and no B with this key behind it.
open_keys(J, Names, A, B, Per, T) ->
    lists:uniq([key(Names, A, I, Per, T)
                || I <- below(J + 1), opens(I, A, B, Per, T),
                   not exists(below(J + 1), fun(K) ->
                       K > I andalso is(B, K, Per, T) andalso key(Names, B, K, Per, T) =:= key(Names, A, I, Per, T)
                   end)]).

opens(I, A, B, Per, T) -> is(A, I, Per, T) andalso not is(B, I, Per, T).

%% A counter that is not taken below 0: the greatest sum of what any last positions up to J add.
counter(J, A, B, Per, T) ->
    lists:max([lists:sum([adds(K, A, B, Per, T) || K <- below(J + 1), K > I]) || I <- [0 | below(J + 1)]]).

adds(K, A, B, Per, T) ->
    case {is(A, K, Per, T), is(B, K, Per, T)} of
        {_, true} -> -1;
        {true, false} -> 1;
        {false, false} -> 0
    end.

those(A, Per, T) -> [I || I <- all(T), is(A, I, Per, T)].

all(T) -> lists:seq(1, tuple_size(T)).
below(I) -> lists:seq(1, I - 1).
above(I, T) -> lists:seq(I + 1, tuple_size(T)).

exists(Positions, Says) -> lists:any(Says, Positions).

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
