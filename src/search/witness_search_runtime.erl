-module(witness_search_runtime).
-moduledoc """
The functions that woven code calls in a search (`m:witness_weave_runtime`), in the process that runs it.

A controlled process performs its operations one at a time, when the schedule chooses it (`m:witness_search_process`). What only the
process itself can notice needs no choice. If the run is recorded, each function writes the entry that `m:witness_record_runtime` would
write there. So a replay of the recording finds the entries that it asks for.

The functions here find the process and pass on the call: to `m:witness_search_messages` (receives and sends), `m:witness_search_results`
(calls) and `m:witness_search_spawn` (spawns, and what a process does first and last).
""".
-behaviour(witness_weave_runtime).

-export([take/4, self/0, stack/1, caught/1, send/3, spawn/3, dictionary/3, information/3, result/4, foreign/4, wait/3, token/3,
         make_fun/3, digest/3, halt/3, load/3, effect/3, used/3, unseen/3, leave/3, leaving/2, hibernate/3, apply/3, function/3,
         called/3, returned/4]).
-compile({no_auto_import, [self/0, apply/3, spawn/3, halt/3]}).

-doc false.
take(_, Match, Bound, Time) -> witness_search_messages:take(Match, Bound, Time).

-doc false.
wait(prim_eval, 'receive', [Match, Time]) -> witness_search_messages:wait(Match, Time).

-doc false.
send(erlang, Function, Args) -> witness_search_messages:send(Function, Args).

-doc false.
-spec self() -> pid().
self() ->
    case witness_search_process:current() of
        none -> erlang:self();
        C -> witness_search_process:pid(C)
    end.

-doc false.
spawn(erlang, Function, Args) ->
    case witness_search_process:current() of
        none -> erlang:apply(erlang, Function, Args);
        C -> witness_search_spawn:spawn_child(Function, Args, C)
    end.

-doc false.
hibernate(erlang, hibernate, Args) ->
    case witness_search_process:current() of
        none -> erlang:apply(erlang, hibernate, Args);
        C -> witness_search_spawn:hibernate(Args, fun ?MODULE:apply/3, C)
    end.

-doc false.
result(Number, Module, Function, Args) ->
    case witness_search_process:current() of
        none -> erlang:apply(Module, Function, Args);
        C -> observe(Module, Function, Args, fun() -> witness_search_results:result(Number, Module, Function, Args, C) end, C)
    end.

%% A call that the run time performs.
observe(Module, Function, Args, Perform, C) ->
    MFA = {Module, Function, length(Args)},
    case persistent_term:get(witness_search) of
        #{observed := #{functions := #{MFA := _}}} ->
            ok = witness_search_process:report({call, {Module, Function, Args}}, C),
            Value = Perform(),
            ok = witness_search_process:report({return, MFA, Value}, C),
            Value;
        #{} -> Perform()
    end.

-doc false.
called(Module, Function, Args) -> report({call, {Module, Function, Args}}).

-doc false.
returned(Module, Function, Arity, Value) -> report({return, {Module, Function, Arity}, Value}).

report(What) ->
    case witness_search_process:current() of
        none -> ok;
        C -> witness_search_process:report(What, C)
    end.

%% What happens inside is outside.
-doc false.
foreign(Number, Module, Function, Args) ->
    case witness_search_process:current() of
        none -> erlang:apply(Module, Function, Args);
        C ->
            _ = case persistent_term:get(witness_search) of
                #{observed := #{hiding := #{Module := _}}} -> witness_search_process:report(hidden, C);
                #{} -> ok
            end,
            witness_search_results:foreign(Number, Module, Function, Args, C)
    end.

-doc false.
effect(erlang, Function, Args) ->
    case witness_search_process:current() of
        none -> erlang:apply(erlang, Function, Args);
        C -> observe(erlang, Function, Args, fun() -> witness_search_results:effect(Function, Args, C) end, C)
    end.

-doc false.
used(Module, Function, Args) -> erlang:apply(Module, Function, Args).

-doc false.
halt(erlang, halt, Args) ->
    case witness_search_process:current() of
        none -> erlang:apply(erlang, halt, Args);
        C -> witness_search_spawn:halt(Args, C)
    end.

-doc false.
leave(erlang, Function, Args) ->
    _ = leaving(Function, Args),
    erlang:apply(erlang, Function, Args).

%% The entry of an exit that the process raises itself.
-doc false.
leaving(exit, [normal]) -> ok;
leaving(raise, [exit, normal, _]) -> ok;
leaving(Function, [Class | _] = Args) when Function =:= exit; Class =:= exit ->
    case witness_search_process:current() of
        none -> ok;
        C -> witness_search_process:log({result, witness_record_calls:number(erlang, Function, length(Args)), ok}, C)
    end;
leaving(_, _) -> ok.

-doc false.
load(erlang, Function, Args) -> erlang:apply(erlang, Function, Args).

-doc false.
unseen(Module, Function, Args) ->
    case witness_search_process:current() of
        none -> erlang:apply(Module, Function, Args);
        _ -> witness_search_process:outside(Module, Function, Args)
    end.

%% --- what a process sees of itself -----------------------------------------------

-doc false.
information(erlang, process_info, Args) ->
    case witness_search_process:current() of
        none -> witness_record_dictionary:without_own(erlang:apply(erlang, process_info, Args), fun is_own_key/1);
        C -> witness_search_results:information(Args, C)
    end.

-doc false.
dictionary(erlang, Function, Args) -> witness_record_dictionary:call(Function, Args, fun is_own_key/1).

is_own_key(Key) -> Key =:= witness_search_process:key().

-doc false.
token(erlang, Function, Args) -> witness_record_runtime:token(erlang, Function, Args).

-doc false.
stack(Stack) -> witness_search_results:of_program(Stack).

-doc false.
caught({'EXIT', {Reason, [Frame | _] = Stack}}) when tuple_size(Frame) =:= 4 -> {'EXIT', {Reason, stack(Stack)}};
caught(Value) -> Value.

%% --- calls that are known only at run time ---------------------------------------

-doc false.
apply(erlang, apply, [Module, Function, Args]) -> apply(Module, Function, Args);
apply(erlang, apply, [Fun, Args]) when is_function(Fun, length(Args)) ->
    case erlang:fun_info(Fun, type) of
        {type, external} -> apply(element(2, erlang:fun_info(Fun, module)), element(2, erlang:fun_info(Fun, name)), Args);
        _ -> erlang:apply(Fun, Args)
    end;
apply(Module, Function, Args) ->
    case witness_search_process:current() =/= none andalso class(Module, Function, length(Args)) of
        false -> erlang:apply(Module, Function, Args);
        none -> erlang:apply(Module, Function, Args);
        self -> self();
        {Class, Number} -> ?MODULE:Class(Number, Module, Function, Args);
        Class -> ?MODULE:Class(Module, Function, Args)
    end.

-doc false.
make_fun(erlang, make_fun, [Module, Function, Arity]) -> function(Module, Function, Arity).

-doc false.
digest(erlang, Function, Args) -> witness_weave_funs:call(Function, Args).

-doc false.
function(Module, Function, Arity) ->
    case class(Module, Function, Arity) of
        none -> erlang:make_fun(Module, Function, Arity);
        _ -> witness_record_runtime:stand_in(Module, Function, Arity)
    end.

class(Module, Function, Arity) ->
    case witness_replay_calls:known(Module, Function, Arity) of
        none ->
            case persistent_term:get(witness_search, off) of
                #{calls := #{{Module, Function, Arity} := Number}} -> {foreign, Number};
                _ -> none
            end;
        Class -> Class
    end.
