-module(witness_recorded_monitor).
-moduledoc """
Satisfied with whatever a process does, and says what that was, without what differs between runs: processes, references
and functions. Its argument names functions of which it reads calls and returns, too.
""".
-behaviour(witness_monitor).

-export([alphabet/1, init/3, handle_event/2, handle_end/2]).

alphabet([]) -> all;
alphabet(Functions) -> [fork, init, exit, send, recv | [{Kind, Function} || Function <- Functions, Kind <- [call, return]]].

init(_, _, _) -> {ok, []}.

handle_event({init, _, _, Signature, _}, Seen) -> {ok, [{init, plain(Signature)} | Seen]};
handle_event({fork, _, _, Signature, _}, Seen) -> {ok, [{fork, plain(Signature)} | Seen]};
handle_event({call, _, Call, _}, Seen) -> {ok, [{call, plain(Call)} | Seen]};
handle_event({return, _, Function, Value, _}, Seen) -> {ok, [{return, Function, plain(Value)} | Seen]};
handle_event({exit, _, Reason, _}, Seen) -> {ok, [{exit, plain(Reason)} | Seen]};
%% These come when they come, which is not when they are taken.
handle_event({recv, _, _, {'DOWN', _, _, _, _}, _}, Seen) -> {ok, Seen};
%% A VM loads a module when it is needed, once.
handle_event({send, _, code_server, _, _}, Seen) -> {ok, Seen};
handle_event({recv, _, _, {code_server, _}, _}, Seen) -> {ok, Seen};
handle_event({send, _, To, Msg, _}, Seen) -> {ok, [{send, plain(To), plain(Msg)} | Seen]};
handle_event({recv, _, _, Msg, _}, Seen) -> {ok, [{recv, plain(Msg)} | Seen]}.

handle_end(complete, Seen) -> {yes, lists:reverse(Seen)};
handle_end(stopped, Seen) -> {inconclusive, lists:reverse(Seen)}.

plain(Pid) when is_pid(Pid) -> pid;
plain(Ref) when is_reference(Ref) -> ref;
plain(Port) when is_port(Port) -> port;
plain(Fun) when is_function(Fun) -> function;
plain([Head | Tail]) -> [plain(Head) | plain(Tail)];
plain(Tuple) when is_tuple(Tuple) -> list_to_tuple(plain(tuple_to_list(Tuple)));
plain(Map) when is_map(Map) -> maps:from_list(plain(maps:to_list(Map)));
plain(Term) -> Term.
