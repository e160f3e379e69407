-module(witness_check_calls).
-moduledoc """
The monitor of the check `calls`: whether each call of its process gets an answer.

A call is a request of OTP's servers (`'$gen_call'`) that the process itself sends. It is answered by a message with its tag, or by
the message that the server has ended, which may have another first element than `'DOWN'`. It has *no answer* if the process gives it
up (its timeout ends the process), or if the process, or the run, comes to its end first. A process that is shut down, or that ends by an error, needs no answer any more.
""".
-behaviour(witness_monitor).

-export([init/3, attached/3, handle_event/2, handle_end/2, alphabet/1, reference/1]).

-export_type([report/0]).

-doc "The server of a call without an answer, and why there is none.".
-type report() :: #{unanswered := witness_event:destination(), why := given_up | never}.

-type state() :: #{reference() => Server :: witness_event:destination()}.

-doc false.
-spec init(witness_event:signature(), witness_event:proc(), undefined) -> {ok, state()}.
init(_, _, _) -> {ok, #{}}.

-doc false.
-spec attached(mfa(), witness_event:proc(), undefined) -> {ok, state()}.
attached(_, _, _) -> {ok, #{}}.

-doc false.
-spec alphabet(undefined) -> [witness_event:kind() | {witness_event:kind(), ets:match_spec()}].
alphabet(_) ->
    [init, exit, {send, [{['_', {'$gen_call', '_', '_'}], [], [true]}]},
     {recv, [{['_', {'_', '_'}], [], [true]}, {['_', {'_', '_', process, '_', '_'}], [], [true]}]}].

-doc false.
-spec handle_event(witness_event:event(), state()) -> {ok, state()} | {verdict, yes | no, undefined | report()}.
handle_event({send, P, To, {'$gen_call', {P, Tag}, _}, _}, Pending) ->
    case reference(Tag) of
        none -> {ok, Pending};
        Call -> {ok, maps:put(Call, To, Pending)}
    end;
handle_event({recv, _, _, {Tag, _}, _}, Pending) -> {ok, maps:remove(reference(Tag), Pending)};
handle_event({recv, _, _, {_, Call, process, _, _}, _}, Pending) -> {ok, maps:remove(Call, Pending)};
handle_event({exit, _, {timeout, {M, F, _}}, _}, Pending) when is_atom(M), is_atom(F), map_size(Pending) > 0 ->
    {verdict, no, #{unanswered => server(Pending), why => given_up}};
handle_event({exit, _, normal, _}, Pending) -> judge(Pending);
handle_event({exit, _, _, _}, _) -> {verdict, yes, undefined};
handle_event(_, Pending) -> {ok, Pending}.

judge(Pending) when map_size(Pending) =:= 0 -> {verdict, yes, undefined};
judge(Pending) -> {verdict, no, #{unanswered => server(Pending), why => never}}.

-doc false.
-spec handle_end(complete | stopped, state()) -> {yes | no | inconclusive, undefined | report()}.
handle_end(stopped, Pending) when map_size(Pending) > 0 -> {inconclusive, undefined};
handle_end(_, Pending) ->
    {verdict, Verdict, Info} = judge(Pending),
    {Verdict, Info}.

%% Any one of them.
server(Pending) ->
    [Server | _] = maps:values(Pending),
    Server.

-doc "The reference of a call, by the tag that its request and its reply have.".
-spec reference(Tag :: term()) -> reference() | none.
reference([alias | Ref]) when is_reference(Ref) -> Ref;
%% `multi_call' has one alias for all servers, and monitors each.
reference([[alias | _] | Monitor]) when is_reference(Monitor) -> Monitor;
reference(Ref) when is_reference(Ref) -> Ref;
reference(_) -> none.
