-module(witness_trace_filter).
-moduledoc """
Which events a source has to deliver: the union of what all monitors of a run read.

Monitors say it as their alphabet (`c:witness_monitor:alphabet/1`). A filter is for a whole run, not for a process. A child
inherits how its parent is traced, so an event that only the child's monitor needs would be lost before the child is known.
Events of the kinds `fork`, `init` and `exit` are always delivered, since the tracers need them.

Calls and returns are delivered only of the functions that an alphabet names. Which functions can be named, and whether one of them has
been loaded anew, is in `m:witness_trace_functions`.
""".

-export([none/0, union/1, apply/2, trace_spawns/1, knows_servers/0, trace_servers/1]).
-compile({no_auto_import, [apply/2]}).
-export_type([alphabet/0, filter/0, messages/0, functions/0]).

-doc """
The kinds of events that a monitor reads; a match specification has the head `[To, Message]` or `[From, Message]`. `all` has no calls and
no returns.
""".
-type alphabet() :: all | [Kind :: atom() | {Kind :: atom(), ets:match_spec()} | {call | return, mfa()}].

-doc "Which messages are delivered: those that match a specification.".
-type messages() :: all | ets:match_spec().

-doc "Of which functions calls, returns, or both are delivered. A list is sorted, and never empty.".
-type functions() :: #{mfa() => [call | return]}.

-doc "What a source delivers of messages, calls and returns.".
-type filter() :: #{send := messages(), recv := messages(), functions := functions()}.

-doc "Everything is delivered but calls and returns.".
-spec none() -> filter().
none() -> #{send => all, recv => all, functions => #{}}.

-doc "What at least one of the alphabets asks for.".
-spec union([alphabet()]) -> filter().
union(Alphabets) ->
    #{send => messages(send, Alphabets, []), recv => messages(recv, Alphabets, []), functions => functions(Alphabets)}.

functions(Alphabets) ->
    Named = [Part || Alphabet <- Alphabets, Alphabet =/= all,
                     {Kind, {_, _, _}} = Part <- Alphabet, lists:member(Kind, [call, return])],
    maps:groups_from_list(fun({_, MFA}) -> MFA end, fun({Kind, _}) -> Kind end, lists:usort(Named)).

messages(_, [], Specs) -> lists:usort(Specs);
messages(_, [all | _], _) -> all;
messages(Kind, [Alphabet | Alphabets], Specs) ->
    case lists:member(Kind, Alphabet) of
        true -> all;
        false -> messages(Kind, Alphabets, lists:append([Spec || {K, Spec} <- Alphabet, K =:= Kind]) ++ Specs)
    end.

%% The expiry of a receive's `after` is reported as a message `timeout' of the clock
%% service: it is no message. Every other message has its sender; a port is in the place
%% of the node.
-define(EXPIRY, {[clock_service, '_', timeout], [], [{message, false}]}).
%% A variable that the match specifications of alphabets do not use.
-define(SENDER, '$999').

%% From this call on the VM reports nothing of the process, so the call itself is reported, before it takes effect.
-define(HIDING_CALL, [{[sensitive, true], [], []}]).

-doc """
Has the VM leave out the messages of a session that no monitor reads, and report the sender of those that are received. If a
process hides itself (`sensitive`), that is reported as a call. The functions of the filter exist and are visible
(`witness_trace_functions:open/1`). Returns the flags with which a process of this session is traced.
""".
-spec apply(trace:session(), filter()) -> Flags :: [atom()].
apply(Session, #{send := Send, recv := Receive, functions := Functions}) ->
    _ = is_list(Send) andalso Send =/= [] andalso trace:send(Session, [send_clause(Clause) || Clause <- Send], []),
    _ = Receive =/= [] andalso trace:recv(Session, [?EXPIRY | receive_clauses(Receive)], []),
    _ = trace:function(Session, {erlang, process_flag, 2}, ?HIDING_CALL, []),
    maps:foreach(fun(MFA, Kinds) -> trace_function(Session, MFA, Kinds) end, Functions),
    [send || Send =/= []] ++ ['receive' || Receive =/= []] ++ [procs, call, set_on_spawn].

trace_function(Session, {M, _, _} = MFA, Kinds) ->
    {module, M} = code:ensure_loaded(M),
    1 = trace:function(Session, MFA, specification(Kinds), [local]).

%% Without a match specification a call costs a third less. Without a message the call itself is not reported, and its return is.
specification([call]) -> true;
specification([call, return]) -> [{'_', [], [{return_trace}]}];
specification([return]) -> [{'_', [], [{return_trace}, {message, false}]}].

-doc """
Has the VM trace only processes that spawn, for births only, from that call on, and report that a process hides itself.
""".
-spec trace_spawns(trace:session()) -> ok.
trace_spawns(Session) ->
    lists:foreach(fun({F, A} = Spawn) ->
        M = case Spawn of {spawn_request, 4} -> erts_internal; _ -> erlang end,
        1 = trace:function(Session, {M, F, A}, [{'_', [], [{message, false}, {enable_trace, procs}]}], [meta])
    end, [{spawn, 3}, {spawn_link, 3}, {spawn_opt, 4}, {spawn_request, 4}]),
    1 = trace:function(Session, {erlang, process_flag, 2}, ?HIDING_CALL, [meta]),
    ok.

%% The functions in which a `gen_server' handles a message, with the position of the message among the arguments, each without and
%% with debugging: those of OTP 29, then those of OTP 27.
-define(HANDLING, [{handle_msg, 3, 2}, {handle_msg, 4, 2}, {handle_msg, 6, 0}, {handle_msg, 7, 0}]).

-doc "Whether the functions are known in which a `gen_server` of this release handles a message.".
-spec knows_servers() -> boolean().
knows_servers() ->
    handling() =/= [].

handling() ->
    Functions = gen_server:module_info(functions),
    [Known || {F, A, _} = Known <- ?HANDLING, lists:member({F, A}, Functions)].

-doc """
Has the VM report, of the processes of a session, when a `gen_server` begins to handle a message: as a call, with the position of the
message among the arguments as the result of the match specification.
""".
-spec trace_servers(trace:session()) -> ok.
trace_servers(Session) ->
    lists:foreach(fun({F, A, At}) ->
        1 = trace:function(Session, {gen_server, F, A}, [{'_', [], [{message, At}]}], [local])
    end, handling()).

send_clause({Head, Guards, _}) -> {Head, Guards, []}.

receive_clauses(all) -> receive_clauses([{['_', '_'], [], []}]);
receive_clauses(Clauses) ->
    lists:append([[{[?SENDER, '_', Message], [{is_port, ?SENDER} | Guards], [{message, ?SENDER}]},
                   {['_', ?SENDER, Message], Guards, [{message, ?SENDER}]}]
                  || Clause <- Clauses, {Message, Guards} <- [message(Clause)]]).

%% Conditions on the sender are left to the monitor: more may be traced than is needed, never less.
message({['_', Message], Guards, _}) -> {Message, Guards};
message({[_, Message], _, _}) -> {Message, []};
message(_) -> {'_', []}.
