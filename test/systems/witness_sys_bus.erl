-module(witness_sys_bus).
-moduledoc """
A `gen_event` manager with handlers that forward what they are told to subscribers, which are plain processes. The
subscribers get every event in order, but a `lossy` bus drops the fourth for the subscriber 2.
""".
-behaviour(gen_event).

-export([main/2, subscriber/2, init/1, handle_event/2, handle_call/2]).

-spec main(pos_integer(), ok | lossy) -> ok.
main(Subscribers, How) ->
    {ok, Bus} = gen_event:start_link(),
    Pids = [{Id, spawn(?MODULE, subscriber, [Id, self()])} || Id <- lists:seq(1, Subscribers)],
    _ = [ok = gen_event:add_handler(Bus, {?MODULE, Id}, {Pid, Id, How}) || {Id, Pid} <- Pids],
    _ = [ok = gen_event:notify(Bus, {news, N}) || N <- lists:seq(1, 5)],
    ok = gen_event:sync_notify(Bus, {news, 6}),
    ok = gen_event:sync_notify(Bus, done),
    _ = [receive {got, Id, _} -> ok end || {Id, _} <- Pids],
    gen_event:stop(Bus).

-spec subscriber(pos_integer(), pid()) -> {got, pos_integer(), [integer()]}.
subscriber(Id, Root) -> Root ! {got, Id, listen([])}.

listen(Got) ->
    receive
        {news, N} -> listen([N | Got]);
        done -> lists:reverse(Got)
    end.

-spec init(term()) -> {ok, term()}.
init(State) -> {ok, State}.

-spec handle_event(term(), term()) -> {ok, term()}.
handle_event({news, 4}, {_, 2, lossy} = State) -> {ok, State};
handle_event(Event, {Pid, _, _} = State) -> Pid ! Event, {ok, State}.

-spec handle_call(term(), term()) -> {ok, ok, term()}.
handle_call(_, State) -> {ok, ok, State}.
