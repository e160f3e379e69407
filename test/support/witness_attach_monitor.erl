-module(witness_attach_monitor).
-moduledoc """
Asserts the trace of a worker (`m:witness_attach_worker`), from its beginning or from the middle: the numbers of what it
is sent follow each other, so do those of what it answers, none is answered before it came, and it ends with the last.
""".
-behaviour(witness_monitor).

-export([init/3, attached/3, handle_event/2, handle_end/2]).

init({witness_attach_worker, init, [_]}, _, _) -> {ok, {born, 0, 0}}.

attached({witness_attach_worker, init, 1}, _, _) -> {ok, {attached, unknown, unknown}}.

handle_event({init, _, _, _, _}, {born, 0, 0} = S) -> {ok, S};
handle_event({recv, _, _, {hit, _, N}, _}, {How, In, Out}) when In =:= unknown; N =:= In + 1 -> {ok, {How, N, Out}};
handle_event({recv, _, _, {hit, _, N}, _}, S) -> {verdict, no, {came, N, S}};
handle_event({send, _, _, {done, N}, _}, {attached, In, unknown}) when In =:= unknown; N =< In ->
    {ok, {attached, In, N}};
handle_event({send, _, _, {done, N}, _}, {attached, unknown, Out}) when N =:= Out + 1 -> {ok, {attached, unknown, N}};
handle_event({send, _, _, {done, N}, _}, {How, In, Out}) when N =:= Out + 1, N =< In -> {ok, {How, In, N}};
handle_event({send, _, _, {done, N}, _}, S) -> {verdict, no, {answered, N, S}};
handle_event({exit, _, {crash, _}, _}, {attached, _, unknown}) -> {verdict, yes, ended};
handle_event({exit, _, {crash, N}, _}, {_, _, N}) -> {verdict, yes, ended};
handle_event({exit, _, {crash, N}, _}, S) -> {verdict, no, {crashed, N, S}};
handle_event({exit, _, shutdown, _}, _) -> {verdict, yes, shut_down};
handle_event({exit, _, Reason, _}, _) -> {verdict, no, Reason};
handle_event(_, S) -> {ok, S}.

handle_end(stopped, _) -> {yes, watched}.
