-module(witness_spec_filter).
-moduledoc """
The events that a monitor reads, from the actions of its `over`, for `c:witness_monitor:alphabet/1`.

A source of events filters with match specifications, which are weaker than Erlang's patterns. What they cannot express
is left open, so an alphabet has at least the events that the monitor reads; the monitor itself skips the rest.
""".

-export([alphabet/2]).
-export_type([alphabet/0]).

-type alphabet() :: all | [Kind :: witness_event:kind() | {send | recv, ets:match_spec()} | {call | return, mfa()}].

-doc """
The alphabet of these actions; its match specifications have the head `[To, Message]` or `[From, Message]`. With `Requests` it has the
calls that are received, and whatever may be a reply to one.
""".
-spec alphabet(all | [witness_spec_action:action()], Requests :: boolean()) -> alphabet().
alphabet(all, _) -> all;
alphabet(Actions, Requests) ->
    [Part || Kind <- [fork, init, send, recv, exit],
             Patterns <- [[Pattern || #{kind := Of, pattern := Pattern} <- Actions, Of =:= Kind]],
             More <- [case Requests of true -> calls(Kind); false -> [] end], Patterns =/= [] orelse More =/= [],
             Part <- [kind(Kind, Patterns, More)]]
        ++ lists:usort([Called || Action <- Actions, {_, _} = Called <- [witness_spec_action:called(Action)]]).

calls(recv) -> [['_', {'$gen_call', '_', '_'}]];
calls(send) -> [['_', {'_', '_'}]];
calls(_) -> [].

kind(Kind, Patterns, More) when Kind =:= send; Kind =:= recv ->
    Heads = lists:usort(More ++ [[head(Peer), head(Message)] || {tuple, _, [_, _, Peer, Message | _]} <- Patterns]),
    case lists:member(['_', '_'], Heads) of
        true -> Kind;
        false -> {Kind, [{Head, [], []} || Head <- Heads]}
    end;
kind(Kind, _, _) -> Kind.

%% Variables are left open even if one occurs twice, and so are numbers that may be equal but not identical.
head({atom, _, Name}) -> atom(Name, atom_to_list(Name));
head({integer, _, Value}) -> Value;
head({char, _, Value}) -> Value;
head({string, _, Value}) -> Value;
head({nil, _}) -> [];
head({cons, _, Head, Tail}) -> [head(Head) | head(Tail)];
head({tuple, _, Elements}) -> list_to_tuple([head(Element) || Element <- Elements]);
head({match, _, Left, Right}) ->
    case head(Left) of
        '_' -> head(Right);
        Head -> Head
    end;
head(_) -> '_'.

%% Atoms that are variables of a match specification are left open; the atom `'_'` is open anyway.
atom(Name, [$$ | Digits]) ->
    case Digits =/= [] andalso lists:all(fun(C) -> C >= $0 andalso C =< $9 end, Digits) of
        true -> '_';
        false -> Name
    end;
atom(Name, _) -> Name.
