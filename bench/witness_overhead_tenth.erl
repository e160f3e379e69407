-module(witness_overhead_tenth).
-moduledoc """
A monitor of `m:witness_load` that reads one message in ten, those with a number that ends in 0,
and knows how many that must be. The VM leaves out the others.
""".
-behaviour(witness_monitor).

-export([init/3, handle_event/2, alphabet/1]).

-spec init(witness_event:signature(), pid(), term()) -> {ok, {Missing :: non_neg_integer()}}.
init({witness_load, node, [_, 0, _, Requests]}, _, _) -> {ok, {read_by_worker(Requests)}};
init({witness_load, flat, [_, Workers, _, Requests]}, _, _) -> {ok, {Workers * read_by_worker(Requests)}}.

%% Each direction has one message more than requests.
read_by_worker(Requests) -> 2 * ((Requests + 1) div 10).

-spec handle_event(witness_event:event(), {integer()}) -> {ok, {integer()}} | {verdict, yes | no, term()}.
handle_event({_, _, _, {msg, _, N, _}, _}, {Missing}) when N rem 10 =:= 0 -> {ok, {Missing - 1}};
handle_event({exit, _, normal, _}, {0}) -> {verdict, yes, complete};
handle_event(E, {Missing}) -> {verdict, no, {Missing, E}}.

-spec alphabet(term()) -> [atom() | {send | recv, ets:match_spec()}].
alphabet(_) ->
    Tenth = [{['_', {msg, '_', '$1', '_'}], [{'=:=', {'rem', '$1', 10}, 0}], []}],
    [{send, Tenth}, {recv, Tenth}, exit].
