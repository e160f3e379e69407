-module(witness_otp_lock).
-moduledoc "A lock with a code: a state machine with postponed events, state time-outs and entry calls.".
-behaviour(gen_statem).

-export([callback_mode/0, init/1, locked/3, open/3]).

callback_mode() -> [state_functions, state_enter].

init(Code) -> {ok, locked, #{code => Code, typed => [], opened => 0}}.

locked(enter, _, Data) -> {keep_state, Data#{typed := []}};
locked(cast, {button, B}, #{code := Code, typed := Typed, opened := N} = Data) ->
    case [B | Typed] of
        All when length(All) < length(Code) -> {keep_state, Data#{typed := All}};
        All -> case lists:reverse(All) of
            Code -> {next_state, open, Data#{opened := N + 1}};
            _ -> {keep_state, Data#{typed := []}}
        end
    end;
locked({call, From}, opened, #{opened := N}) -> {keep_state_and_data, {reply, From, N}};
locked({call, _}, pass, _) -> {keep_state_and_data, postpone}.

open(enter, _, _) -> {keep_state_and_data, {state_timeout, 20, lock}};
open(state_timeout, lock, Data) -> {next_state, locked, Data};
open(cast, {button, _}, _) -> {keep_state_and_data, postpone};
open({call, From}, pass, #{opened := N}) -> {keep_state_and_data, {reply, From, {passed, N}}};
open({call, From}, opened, #{opened := N}) -> {keep_state_and_data, {reply, From, N}}.
