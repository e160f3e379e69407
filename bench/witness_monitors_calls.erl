-module(witness_monitors_calls).
-moduledoc "Each call is answered with its sum. There is a verdict for each call, so the slices are those of Witness.".
-behaviour(witness_monitor).
-export([init/3, slice/2, slice_names/1, instance/2, handle_event/2]).

init(_, _, _) -> {slices, none}.

slice({recv, _, _, {call, Id, _}, _}, _) -> {slice, {Id}};
slice({send, _, _, {reply, Id, _}, _}, _) -> {slice, {Id}};
slice(_, _) -> skip.

slice_names(_) -> [~"Id"].

instance(_, _) -> new.

handle_event({recv, _, _, {call, _, {add, A, B}}, _}, new) -> {ok, A + B};
handle_event(_, new) -> {verdict, yes, something_else};
handle_event({send, _, _, {reply, _, Sum}, _}, Sum) -> {verdict, yes, Sum};
handle_event({send, _, _, {reply, _, _}, _}, Sum) -> {verdict, no, Sum};
handle_event(_, _) -> {verdict, yes, something_else}.
