-module(witness_leftovers).
-moduledoc """
A hook of Common Test that fails a suite which leaves processes behind. Later suites share the VM, and what waits there for ever
can be taken for a part of the system that they observe. What is ending gets the time to end.
""".

-export([id/1, init/2, pre_init_per_suite/3, post_end_per_suite/4]).

%% How long the processes of a suite may take to end.
-define(ENDING_MS, 60_000).
%% The most processes that a failure names.
-define(SHOWN, 20).

-doc false.
-spec id(term()) -> atom().
id(_) -> ?MODULE.

-doc false.
-spec init(term(), term()) -> {ok, [pid()]}.
init(_, _) -> {ok, []}.

-doc false.
-spec pre_init_per_suite(module(), term(), term()) -> {term(), [pid()]}.
pre_init_per_suite(_, Config, _) -> {Config, running()}.

-doc false.
-spec post_end_per_suite(module(), term(), term(), [pid()]) -> {term(), [pid()]}.
post_end_per_suite(Suite, _, Return, Before) ->
    None = fun() -> case running() -- [self() | Before] of [] -> true; Left -> Left end end,
    try witness_await:until(None, ?ENDING_MS) of
        ok -> {Return, Before}
    catch
        error:{not_reached, #{last_value := Left}} ->
            {{fail, {left_behind, Suite, length(Left), lists:sublist([shown(P) || P <- Left], ?SHOWN)}}, Before}
    end.

%% Applications and Common Test end their own processes.
running() -> [P || P <- processes(), application:get_application(P) =:= undefined, not is_of_common_test(P)].

is_of_common_test(P) ->
    case process_info(P, {dictionary, ct_process_type}) of
        {_, Type} -> Type =/= undefined;
        undefined -> false
    end.

shown(P) -> {P, [process_info(P, Item) || Item <- [initial_call, current_function, registered_name, label, links]]}.
