-module(witness_replay_calls).
-moduledoc """
The calls that a replay handles, and the plan for weaving them.

They are the calls of a recording (`m:witness_record_calls`), which the log answers, and the calls in the table below. Some of
these have no result of interest, so a recording leaves them alone, but they must not act on processes of the VM that replays.
*Invariant:* a process asks the log for exactly the calls that the log answers.

| Class | What | In a replay |
|---|---|---|
| `effect` | signals to processes, output of the VM itself, the limit of a heap | nothing happens except what the log says |
| `hibernate` | waits for a message of the VM | goes on at once, or ends if it was ended there |
| `used` | functions that take patterns that the VM has compiled | called with what this VM has compiled (`m:witness_replay_compiled`) |
| `self` | the pid of the process | as recorded; a direct call is woven in another way (`m:witness_weave_core`) |

`m:witness_replay_runtime` has a function for each class. For calls that are known only at run time, it asks `known/3`.
""".
-behaviour(witness_weave_calls).

-export([plan/1, class/3, known/3, possible/3]).

-doc "The plan by which the modules of folders are woven for a replay.".
-spec plan([witness_weave_objects:folder()]) -> witness_weave:plan().
plan(Folders) ->
    Recording = witness_record_calls:plan(Folders),
    (maps:with([natives, callbacks, except], Recording))#{
        runtime => witness_replay_runtime, calls => ?MODULE, tables => [witness_record_calls, witness_record_handler],
        sends => routed, receives => replaced}.

-doc false.
-spec class(module(), atom(), arity()) -> witness_weave_calls:class() | none.
class(erlang, self, 0) -> none;
class(Module, Function, Arity) -> known(Module, Function, Arity).

-doc "The same, with `self/0`.".
-spec known(module(), atom(), arity()) -> witness_weave_calls:class() | none | self.
known(erlang, Function, Arity) ->
    case own() of
        #{{Function, Arity} := Class} -> Class;
        #{} -> witness_record_calls:class(erlang, Function, Arity)
    end;
known(Module, Function, Arity) ->
    case witness_record_calls:is_user(Module, Function, Arity) of
        true -> used;
        false -> witness_record_calls:class(Module, Function, Arity)
    end.

own() ->
    #{{self, 0} => self,
      {exit, 2} => effect, {exit, 3} => effect, {exit_signal, 2} => effect, {exit_signal, 3} => effect,
      {unlink, 1} => effect, {demonitor, 1} => effect, {display, 1} => effect, {display_string, 1} => effect,
      {display_string, 2} => effect,
      {process_flag, 2} => effect,
      {hibernate, 0} => hibernate, {hibernate, 3} => hibernate}.

-doc false.
-spec possible(module() | '_', atom() | '_', arity() | '_') -> boolean().
possible(Module, Function, Arity) ->
    witness_record_calls:possible(Module, Function, Arity) orelse
        witness_weave_calls:is_any({Module, Function, Arity},
                                   witness_record_calls:users() ++ [{erlang, F, A} || {F, A} <- maps:keys(own())]).
