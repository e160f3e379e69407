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
`m:witness_replay_results` (calls) and `m:witness_replay_spawn` (spawns, and calls that spawn inside).

Processes have the pids and references of the recording: the VM knows none of them. A send goes to the live process of the
receiver, with the sender's identifier. There are no links, monitors, exit signals and timers: their consequences are in the
log.
""".
-behaviour(witness_weave_runtime).

-export([take/4, self/0, stack/1, caught/1, send/3, spawn/3, dictionary/3, information/3, result/4, foreign/4, wait/3, token/3,
         make_fun/3, digest/3, halt/3, load/3, effect/3, used/3, unseen/3, leave/3, leaving/2, hibernate/3, apply/3, function/3,
         called/3, returned/4]).
-compile({no_auto_import, [self/0, apply/3, spawn/3, halt/3]}).

-doc false.
take(Module, Match, Bound, Time) -> witness_replay_messages:take(Module, Match, Bound, Time).

-doc false.
wait(prim_eval, 'receive', [Match, Time]) -> witness_replay_messages:wait(Match, Time).

-doc false.
send(erlang, Function, Args) -> witness_replay_messages:send(Function, Args).

-doc false.
-spec self() -> pid().
self() ->
    case witness_replay_interpreter:current() of
        none -> erlang:self();
        P -> witness_replay_process:pid(P)
    end.

-doc false.
spawn(erlang, Function, Args) ->
    case witness_replay_interpreter:current() of
        none -> erlang:apply(erlang, Function, Args);
        P -> witness_replay_spawn:spawn_child(Function, Args, fun ?MODULE:apply/3, P)
    end.

-doc false.
hibernate(erlang, hibernate, Args) ->
    case witness_replay_interpreter:current() of
        none -> erlang:apply(erlang, hibernate, Args);
        P -> witness_replay_spawn:hibernate(Args, fun ?MODULE:apply/3, P)
    end.

-doc false.
result(_, Module, Function, Args) -> witness_replay_results:result(Module, Function, Args).

-doc false.
foreign(_, Module, Function, Args) -> witness_replay_spawn:foreign(Module, Function, Args, fun ?MODULE:apply/3).

-doc false.
effect(erlang, Function, Args) -> witness_replay_results:effect(Function, Args, witness_replay_interpreter:current()).

-doc false.
used(Module, Function, Args) -> witness_replay_compiled:call(Module, Function, Args).

-doc false.
halt(erlang, halt, Args) -> witness_replay_results:halt(Args, witness_replay_interpreter:current()).

-doc false.
leave(erlang, Function, Args) ->
    ok = leaving(Function, Args),
    erlang:apply(erlang, Function, Args).

-doc false.
leaving(Function, Args) -> witness_replay_results:take_exit_mark(Function, Args, witness_replay_interpreter:current()).

%% The code that a program loads itself was not woven: such a recording is refused.
-doc false.
load(erlang, Function, [Module, Code] = Args) when is_atom(Module), is_binary(Code) ->
    case witness_replay_loads:may_load(Module, Code) of
        true -> erlang:apply(erlang, Function, Args);
        false -> {error, badfile}
    end;
load(erlang, Function, Args) -> erlang:apply(erlang, Function, Args).

-doc false.
unseen(Module, Function, Args) -> witness_replay_interpreter:call_outside(Module, Function, Args).

-doc false.
called(Module, Function, Args) -> witness_replay_results:called(Module, Function, Args).

-doc false.
returned(Module, Function, Arity, Value) -> witness_replay_results:returned({Module, Function, Arity}, Value).

%% --- what a process sees of itself -----------------------------------------------

-doc false.
information(erlang, process_info, Args) ->
    witness_record_dictionary:without_own(result(0, erlang, process_info, Args), fun is_own_key/1).

-doc false.
dictionary(erlang, Function, Args) -> witness_record_dictionary:call(Function, Args, fun is_own_key/1).

is_own_key(Key) -> Key =:= witness_replay_interpreter:key().

%% The same as in the recorded VM.
-doc false.
token(erlang, Function, Args) -> witness_record_runtime:token(erlang, Function, Args).

-doc false.
stack(Stack) -> witness_replay_stack:of_program(Stack).

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
    case witness_replay_interpreter:current() =/= none andalso class(Module, Function, length(Args)) of
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
            case witness_replay_interpreter:call_number(Module, Function, Arity) of
                none -> none;
                Number -> {foreign, Number}
            end;
        Class -> Class
    end.
