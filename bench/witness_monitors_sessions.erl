-module(witness_monitors_sessions).
-moduledoc "Each session answers one call after the other with its sum; the sums that are due are in a map.".
-behaviour(witness_monitor).
-export([init/3, handle_event/2]).

init(_, _, _) -> {ok, #{}}.

handle_event({recv, _, _, {call, Id, {add, A, B}}, _}, Due) when not is_map_key(Id, Due) -> {ok, Due#{Id => A + B}};
handle_event({send, _, _, {reply, Id, Sum}, _}, Due) ->
    case Due of
        #{Id := Sum} -> {ok, maps:remove(Id, Due)};
        #{Id := _} -> {verdict, no, {Id, Sum}};
        #{} -> {ok, Due}
    end;
handle_event(_, Due) -> {ok, Due}.
