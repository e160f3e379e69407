-module(witness_check_restarts).
-moduledoc """
The monitor of the check `restarts`: whether its process gives up on a child that it has started again.

A supervisor that has started children again too often (its restart intensity) ends with the reason `shutdown`, which its parent has
not asked for. So its process *gives up* if it ends with this reason, if it has started a child again after the end of one with the
same signature, if the last child of which it was told has ended by an error, and if neither its parent nor `sys:terminate/2` has told it to
end.
""".
-behaviour(witness_monitor).

-export([init/3, attached/3, handle_event/2, handle_end/2, alphabet/1]).

-export_type([report/0]).

-doc "The child that ended last: what it ran, its reason, and how often a child with this signature was started again.".
-type report() :: #{child := mfa(), reason := term(), restarts := pos_integer()}.

%% children: those that are alive, with what they run; ended: what children that have ended ran
%% restarts: how often a child that runs this was started after one had ended; last: the child that ended last
%% told: whether it was told to end
-record(state, {parent :: undefined | witness_event:proc(),
                children = #{} :: #{witness_event:proc() => mfa()},
                ended = #{} :: #{mfa() => []},
                restarts = #{} :: #{mfa() => pos_integer()},
                last = none :: none | {mfa(), Reason :: term()},
                told = false :: boolean()}).

-doc false.
-spec init(witness_event:signature(), witness_event:proc(), undefined) -> {ok, #state{}}.
init(_, _, _) -> {ok, #state{}}.

-doc false.
-spec attached(mfa(), witness_event:proc(), undefined) -> {ok, #state{}}.
attached(_, _, _) -> {ok, #state{}}.

-doc false.
-spec alphabet(undefined) -> [witness_event:kind() | {witness_event:kind(), ets:match_spec()}].
alphabet(_) ->
    [init, fork, exit, {recv, [{['_', {'EXIT', '_', '_'}], [], [true]}, {['_', {system, '_', {terminate, '_'}}], [], [true]}]}].

-doc false.
-spec handle_event(witness_event:event(), #state{}) -> {ok, #state{}} | {verdict, yes | no, undefined | report()}.
handle_event({init, _, Parent, _, _}, S) -> {ok, S#state{parent = Parent}};
handle_event({fork, _, Child, {M, F, Args}, _}, S = #state{children = Children, ended = Ended, restarts = Restarts}) ->
    Runs = {M, F, length(Args)},
    Counted = case Ended of
        #{Runs := []} -> maps:put(Runs, maps:get(Runs, Restarts, 0) + 1, Restarts);
        #{} -> Restarts
    end,
    {ok, S#state{children = Children#{Child => Runs}, restarts = Counted}};
handle_event({recv, _, _, {'EXIT', Parent, _}, _}, S = #state{parent = Parent}) -> {ok, S#state{told = true}};
handle_event({recv, _, _, {system, _, {terminate, _}}, _}, S) -> {ok, S#state{told = true}};
handle_event({recv, _, _, {'EXIT', Child, Reason}, _}, S = #state{children = Children, ended = Ended}) ->
    case Children of
        #{Child := Runs} ->
            {ok, S#state{children = maps:remove(Child, Children), ended = Ended#{Runs => []}, last = {Runs, Reason}}};
        #{} -> {ok, S}
    end;
handle_event({exit, _, shutdown, _}, #state{told = false, last = {Runs, Reason}, restarts = Restarts})
  when is_map_key(Runs, Restarts), Reason =/= normal, Reason =/= shutdown ->
    {verdict, no, #{child => Runs, reason => Reason, restarts => map_get(Runs, Restarts)}};
handle_event({exit, _, _, _}, _) -> {verdict, yes, undefined};
handle_event(_, S) -> {ok, S}.

-doc false.
-spec handle_end(complete | stopped, #state{}) -> {yes, undefined}.
handle_end(_, _) -> {yes, undefined}.
