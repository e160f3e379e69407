-module(witness_load_monitor).
-moduledoc """
Says whether a trace of `m:witness_load` is sound: complete and in order from `init` to
`exit` (RIARC text, Definition 1). Each number must follow the one before it between the
same two processes, and at the end each process must have seen what its arguments imply.

`no` carries `{Fault, Event or counts}`. With the argument `empty` it reads every event and
checks nothing: the cost of being monitored. Its steps are bounded (`m:witness_monitor_safety`).
""".
-behaviour(witness_monitor).

-export([init/3, handle_event/2, handle_end/2]).

%% parent: {Pid | none, sent, received, Requests}; children: {forked, open, expected};
%% open: child => {Sent, Received}
-record(s, {self, parent, requests, parent_sent = 0, parent_received = 0,
            forked = 0, expected, open = #{}, phase = new}).

-spec init(witness_event:signature(), pid(), check | empty) -> {ok, term()}.
init(_, _, empty) -> {ok, empty};
init({witness_load, chains, _}, _, check) -> {ok, empty};
init({witness_load, link, [_, Length, Ticks]}, P, check) -> {ok, {link, P, 0, 0, Ticks, min(Length, 1)}};
init({witness_load, node, [Parent, Depth, Branch, Requests]}, P, check) ->
    Expected = case Depth of 0 -> 0; _ -> Branch end,
    {ok, #s{self = P, parent = Parent, requests = Requests, expected = Expected}};
init({witness_load, client, [Parent, Requests, _]}, P, check) ->
    {ok, #s{self = P, parent = Parent, requests = Requests, expected = 0}};
init({witness_load, flat, [_, Workers, _, Requests]}, P, check) ->
    {ok, #s{self = P, parent = none, requests = Requests, expected = Workers}};
init({witness_load, paced, [_, Workers, _, Requests, _]}, P, check) ->
    {ok, #s{self = P, parent = none, requests = Requests, expected = Workers}};
init({witness_load, tree, [_, Rounds, _, Branch, Requests]}, P, check) ->
    {ok, #s{self = P, parent = none, requests = Requests, expected = Rounds * Branch}}.

-spec handle_event(witness_event:event(), term()) ->
    {ok, term()} | {verdict, yes | no, term()}.
handle_event({exit, _, _, _}, empty) -> {verdict, yes, empty};
handle_event(_, empty) -> {ok, empty};
handle_event({init, P, _, _, _}, {link, P, 0, 0, Ticks, Forks}) -> {ok, {link, P, 1, 1, Ticks, Forks}};
handle_event({send, P, P, {tick, N}, _}, {link, P, N, N, Ticks, Forks}) -> {ok, {link, P, N + 1, N, Ticks, Forks}};
handle_event({recv, P, _, {tick, N}, _}, {link, P, M, N, Ticks, Forks}) when M =:= N + 1 ->
    {ok, {link, P, M, M, Ticks, Forks}};
handle_event({fork, P, _, _, _}, {link, P, N, N, Ticks, 1}) when N =:= Ticks + 1 -> {ok, {link, P, N, N, Ticks, done}};
handle_event({send, P, _, chain_ended, _}, {link, P, N, N, Ticks, 0}) when N =:= Ticks + 1 -> {ok, {link, P, N, N, Ticks, done}};
handle_event({exit, P, normal, _}, {link, P, _, _, _, done}) -> {verdict, yes, sound};
handle_event(E, S) when element(1, S) =:= link -> fault({link, S}, E);
handle_event({init, P, _, _, _}, S = #s{self = P, phase = new}) -> {ok, S#s{phase = alive}};
handle_event(E, #s{phase = new}) -> fault(before_init, E);
handle_event(E, #s{self = P}) when element(2, E) =/= P -> fault(foreign, E);
handle_event({fork, _, C, _, _}, S = #s{open = Open, forked = Forked}) when not is_map_key(C, Open) ->
    {ok, S#s{forked = Forked + 1, open = Open#{C => {0, 0}}}};
handle_event({send, _, P, {msg, _, N, _}, _}, S = #s{parent = P, parent_sent = Sent}) when N =:= Sent + 1 ->
    {ok, S#s{parent_sent = N}};
handle_event({recv, _, _, {msg, P, N, _}, _}, S = #s{parent = P, parent_received = Received}) when N =:= Received + 1 ->
    {ok, S#s{parent_received = N}};
handle_event({send, _, C, {msg, _, N, _}, _} = E, S = #s{open = Open}) ->
    case Open of
        #{C := {Sent, Received}} when N =:= Sent + 1 -> {ok, S#s{open = Open#{C := {N, Received}}}};
        #{} -> fault(send, E)
    end;
handle_event({recv, _, _, {msg, C, N, What}, _} = E, S = #s{open = Open, requests = Requests}) ->
    case Open of
        #{C := {Sent, Received}} when N =:= Received + 1, What =:= ping -> {ok, S#s{open = Open#{C := {Sent, N}}}};
        #{C := {Sent, Requests}} when N =:= Requests + 1, What =:= done, Sent =:= N -> {ok, S#s{open = maps:remove(C, Open)}};
        #{} -> fault(recv, E)
    end;
handle_event({send, _, _, {done, _, _, _}, _}, S = #s{parent = none, phase = alive}) -> {ok, S#s{phase = told}};
handle_event({exit, _, normal, _}, S = #s{parent = none, phase = told}) -> finished(S);
handle_event({exit, _, normal, _}, S = #s{parent_sent = N, parent_received = N, requests = Requests})
  when N =:= Requests + 1 -> finished(S);
handle_event(E, _) -> fault(unexpected, E).

finished(#s{forked = N, expected = N, open = Open}) when map_size(Open) =:= 0 -> {verdict, yes, sound};
finished(#s{forked = N, expected = M, open = Open}) -> fault(incomplete, {N, M, maps:size(Open)}).

fault(Fault, What) -> {verdict, no, {Fault, What}}.

%% A sound trace is decided by its exit.
-spec handle_end(complete | stopped, term()) -> {no | inconclusive, term()}.
handle_end(complete, _) -> {no, no_exit};
handle_end(stopped, _) -> {inconclusive, stopped}.
