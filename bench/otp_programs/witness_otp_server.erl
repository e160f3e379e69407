-module(witness_otp_server).
-moduledoc "A counter: a server of OTP with each callback.".
-behaviour(gen_server).

-export([start_link/1]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2, code_change/3, format_status/1]).

start_link({Name, First}) -> gen_server:start_link({local, Name}, ?MODULE, First, []);
start_link(First) -> gen_server:start_link(?MODULE, First, []).

init(First) ->
    process_flag(trap_exit, true),
    {ok, First, {continue, one_more}}.

handle_continue(one_more, N) -> {noreply, N + 1}.

handle_call(get, _, N) -> {reply, N, N};
handle_call({later, Ms}, From, N) ->
    _ = erlang:send_after(Ms, self(), {answer, From}),
    {noreply, N};
handle_call(never, _, N) -> {noreply, N};
handle_call(hibernate, _, N) -> {reply, N, N, hibernate};
handle_call(crash, _, _) -> error(crash);
handle_call(stop, _, N) -> {stop, normal, N, N}.

handle_cast({add, M}, N) -> {noreply, N + M}.

handle_info({answer, From}, N) ->
    gen_server:reply(From, N),
    {noreply, N};
handle_info({'EXIT', _, _}, N) -> {noreply, N + 1000};
handle_info(timeout, N) -> {noreply, N + 1}.

terminate(_, _) -> ok.

code_change(_, N, Extra) -> {ok, N + Extra}.

format_status(Status) -> Status.
