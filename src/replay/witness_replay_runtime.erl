-module(witness_replay_runtime).
-moduledoc """
The functions that woven code calls while it is replayed (`m:witness_weave_runtime`), in the process that runs it.

A replayed process has its state in its dictionary, under a key that the program does not see. It is the key of the recorder, so
the dictionary has the same order. Any other process is outside, and its calls pass through: a `receive` receives.

*Invariant:* the next entry of the log of a process answers what it asks for:

| The program | The log | Then |
|---|---|---|
| receives | `from` X | the earliest message of X that matches; it waits until there is one |
| receives | `content` M | M, which has to match |
| receives | `timeout` | the time is over |
| calls a function of the table | `result`, `raise` of this function | that; nothing is executed |
| sends to a name | `named` | to the process that had the name |
| spawns | `spawn` C | a process that is C |
| anything | `exit`, but not `normal` | it was killed at some point before this, and ends here |
| anything | nothing more | the recording was cut here, and so it ends here |
| anything | anything else | a divergence |

The functions here only find the process and pass on the call: to `m:witness_replay_messages` (receives and sends),
`m:witness_replay_results` (calls) and `m:witness_replay_life` (spawns).

Processes have the pids and references of the recording: the VM knows none of them. A send goes to the live process of the
receiver, with the sender's identifier. There are no links, monitors, exit signals and timers: their consequences are in the
log.
""".
-behaviour(witness_weave_runtime).

-export([take/4, self/0, stack/1, caught/1, send/3, spawn/3, dictionary/3, information/3, result/4, foreign/4, wait/3, token/3,
         make_fun/3, digest/3, halt/3, load/3, effect/3, used/3, unseen/3, leave/3, leaving/2, hibernate/3, apply/3, function/3]).
-compile({no_auto_import, [self/0, apply/3, spawn/3, halt/3]}).

-include("src/replay/witness_replay_process.hrl").

-doc false.
take(Module, Match, Bound, Time) -> witness_replay_messages:take(Module, Match, Bound, Time).

-doc false.
wait(prim_eval, 'receive', [Match, Time]) -> witness_replay_messages:wait(Match, Time).

-doc false.
send(erlang, Function, Args) -> witness_replay_messages:send(Function, Args, get(?KEY)).

-doc false.
-spec self() -> pid().
self() ->
    case get(?KEY) of
        #process{pid = Pid} -> Pid;
        _ -> erlang:self()
    end.

-doc false.
spawn(erlang, Function, Args) ->
    case get(?KEY) of
        #process{} = P -> witness_replay_life:spawned(Function, Args, P);
        _ -> erlang:apply(erlang, Function, Args)
    end.

-doc false.
hibernate(erlang, hibernate, Args) ->
    case get(?KEY) of
        #process{} = P -> witness_replay_life:hibernate(Args, P);
        _ -> erlang:apply(erlang, hibernate, Args)
    end.

-doc false.
result(_, Module, Function, Args) -> witness_replay_results:result(Module, Function, Args).

-doc false.
foreign(_, Module, Function, Args) -> witness_replay_results:foreign(Module, Function, Args).

-doc false.
effect(erlang, Function, Args) -> witness_replay_results:effect(Function, Args, get(?KEY)).

-doc false.
used(Module, Function, Args) -> witness_replay_compiled:used(Module, Function, Args).

-doc false.
halt(erlang, halt, Args) -> witness_replay_results:halt(Args, get(?KEY)).

-doc false.
leave(erlang, Function, Args) ->
    ok = leaving(Function, Args),
    erlang:apply(erlang, Function, Args).

-doc false.
leaving(Function, Args) -> witness_replay_results:leaving(Function, Args, get(?KEY)).

%% The code that a program loads itself was not woven: such a recording is refused.
-doc false.
load(erlang, Function, [Module, Code] = Args) when is_atom(Module), is_binary(Code) ->
    case witness_replay_loads:may_load(Module, Code) of
        true -> erlang:apply(erlang, Function, Args);
        false -> {error, badfile}
    end;
load(erlang, Function, Args) -> erlang:apply(erlang, Function, Args).

-doc false.
unseen(Module, Function, Args) -> witness_replay_interpreter:unseen(Module, Function, Args).

%% --- what a process sees of itself -----------------------------------------------

-doc false.
information(erlang, process_info, Args) -> shown(result(0, erlang, process_info, Args)).

shown({dictionary, Entries}) when is_list(Entries) -> {dictionary, [Entry || Entry <- Entries, not is_own(Entry)]};
shown([_ | _] = Items) -> [shown(Item) || Item <- Items];
shown(Item) -> Item.

is_own({?KEY, _}) -> true;
is_own(_) -> false.

-doc false.
dictionary(erlang, get, []) -> [Entry || Entry <- get(), not is_own(Entry)];
dictionary(erlang, get_keys, Args) -> [Key || Key <- erlang:apply(erlang, get_keys, Args), Key =/= ?KEY];
dictionary(erlang, erase, []) ->
    All = erase(),
    _ = [put(?KEY, P) || {?KEY, P} <- All],
    [Entry || Entry <- All, not is_own(Entry)].

%% The same as in the recorded VM.
-doc false.
token(erlang, Function, Args) ->
    case witness_record_runtime:is_token_call(Function, Args) of
        true -> witness_record_runtime:without_token(Function, Args);
        false -> erlang:apply(erlang, Function, Args)
    end.

-doc false.
stack(Stack) -> witness_replay_interpreter:stack(Stack).

-doc false.
caught({'EXIT', {Reason, [Frame | _] = Stack}}) when tuple_size(Frame) =:= 4 -> {'EXIT', {Reason, stack(Stack)}};
caught(Value) -> Value.

%% --- calls that are known only at run time ---------------------------------------

-doc false.
apply(erlang, apply, [Module, Function, Args]) ->
    apply(Module, Function, Args);
apply(erlang, apply, [Fun, Args]) when is_function(Fun, length(Args)) ->
    case erlang:fun_info(Fun, type) of
        {type, external} -> apply(element(2, erlang:fun_info(Fun, module)), element(2, erlang:fun_info(Fun, name)), Args);
        _ -> erlang:apply(Fun, Args)
    end;
apply(Module, Function, Args) ->
    case get(?KEY) of
        #process{} ->
            case class(Module, Function, length(Args)) of
                none -> erlang:apply(Module, Function, Args);
                self -> self();
                {Class, Number} -> ?MODULE:Class(Number, Module, Function, Args);
                Class -> ?MODULE:Class(Module, Function, Args)
            end;
        _ -> erlang:apply(Module, Function, Args)
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
            case persistent_term:get(witness_replay_interpreter, off) of
                #{calls := #{{Module, Function, Arity} := Number}} -> {foreign, Number};
                _ -> none
            end;
        Class -> Class
    end.
