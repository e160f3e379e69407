-module(witness_sys_counting).
-moduledoc """
A monitor in Erlang that reads a whole partition and knows how it has to look: `init` first, then messages
`{Tag, 1}`, `{Tag, 2}`, ... from each sender without a hole, `exit` last and nothing after it. A partition that
loses, doubles or swaps an event is found by it.
""".
-behaviour(witness_monitor).

-export([init/3, handle_event/2, handle_end/2]).

-type state() :: {born | alive | ended, Tag :: atom(), Last :: #{term() => pos_integer()}}.

-spec init(witness_event:signature(), witness_event:proc(), atom()) -> {ok, state()}.
init(_, _, Tag) -> {ok, {born, Tag, #{}}}.

-spec handle_event(witness_event:event(), state()) -> {ok, state()} | {verdict, no, term()}.
handle_event({init, _, _, _, _}, {born, Tag, Last}) ->
    {ok, {alive, Tag, Last}};
handle_event({recv, _, From, {Tag, N}, _}, {alive, Tag, Last}) ->
    case maps:get(From, Last, 0) of
        Before when N =:= Before + 1 -> {ok, {alive, Tag, Last#{From => N}}};
        Before -> {verdict, no, {expected, Before + 1, got, N}}
    end;
handle_event({exit, _, _, _}, {alive, Tag, Last}) ->
    {ok, {ended, Tag, Last}};
handle_event({Kind, _, _, _, _}, {alive, _, _} = State) when Kind =/= init ->
    {ok, State};
handle_event(Event, {Phase, _, _}) ->
    {verdict, no, {unexpected, Phase, Event}}.

-spec handle_end(complete | stopped, state()) -> {yes | no | inconclusive, term()}.
handle_end(complete, {ended, _, Last}) -> {yes, Last};
handle_end(complete, {Phase, _, _}) -> {no, {ended_while, Phase}};
handle_end(stopped, {_, _, Last}) -> {inconclusive, Last}.
