-module(witness_monitors_both).
-moduledoc """
There is no error, and each answer has the reference of its request. The state says which of the two are watched,
and has the reference of the request that waits.
""".
-behaviour(witness_monitor).
-export([init/3, handle_event/2]).

init(_, _, _) -> {ok, both}.

handle_event({recv, _, _, {_, Ref}, _}, both) -> {ok, {both, Ref}};
handle_event({send, _, _, {ok, Ref}, _}, {both, Ref}) -> {ok, both};
handle_event({send, _, _, {ok, _}, _}, {both, _}) -> {verdict, no, another};
handle_event({send, _, _, {error, _}, _}, _) -> {verdict, no, error};
handle_event({recv, _, _, _, _}, _) -> {ok, no_error};
handle_event({send, _, _, {ok, _}, _}, both) -> {ok, no_error};
handle_event({send, _, _, {ok, _}, _}, no_error) -> {ok, no_error};
handle_event({send, _, _, {_, Ref}, _}, {both, Ref}) -> {ok, {references, ready}};
handle_event(_, no_error) -> {verdict, yes, something_else};
handle_event({recv, _, _, {_, Ref}, _}, {references, ready}) -> {ok, {references, Ref}};
handle_event({send, _, _, {_, Ref}, _}, {references, Ref}) -> {ok, {references, ready}};
handle_event({send, _, _, {_, _}, _}, {_, _}) -> {verdict, no, another};
handle_event(_, _) -> {verdict, yes, something_else}.
