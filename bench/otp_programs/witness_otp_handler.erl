-module(witness_otp_handler).
-moduledoc "Handles events of a manager, and those of the logger.".
-behaviour(gen_event).

-export([init/1, handle_event/2, handle_call/2, handle_info/2, terminate/2]).
-export([log/2]).

init({_, {gave, N}}) -> {ok, N};
init(N) -> {ok, N}.

handle_event(crash, _) -> error(crash);
handle_event(gone, _) -> remove_handler;
handle_event(N, Sum) -> {ok, Sum + N}.

handle_call(sum, Sum) -> {ok, Sum, Sum}.

handle_info(N, Sum) when is_integer(N) -> {ok, Sum + N};
handle_info(_, Sum) -> {ok, Sum}.

terminate(swap, Sum) -> {gave, Sum};
terminate(_, _) -> ok.

log(#{level := Level, msg := Message, meta := #{pid := Pid, time := Time}}, #{config := #{to := To}}) ->
    true = is_integer(Time),
    To ! {logged, Level, Message, Pid =:= self()}.
