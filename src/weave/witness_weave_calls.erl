-module(witness_weave_calls).
-moduledoc """
The calls that are woven, as data.

Each of them has a class. The class is the name of the function of the run-time module that does the call instead
(`witness_weave_runtime`). To weave another function, add a row here, and a clause for its meaning there. A function without a row
is left as it is.

This is the table of plans that name no other one, and the behaviour of all tables.
""".

-export([class/3, possible/3, is_any/2, rows/0]).

-export_type([class/0, name/0]).

-type name() :: send | spawn | spawn_request | start | call | cast | reply | request | dictionary | hibernate
              | information | wait | token | make_fun | halt | load | digest | effect | unseen | leave | sleep.

-doc "The class of a function. `none`: calls of it are left as they are.".
-callback class(module(), atom(), arity()) -> class() | none.

-doc """
Whether a call can be one of those that are woven, as far as is known: `'_'` means a module, a function or an arity
that is known only when the call is made.
""".
-callback possible(module() | '_', atom() | '_', arity() | '_') -> boolean().

-doc """
The effect of a call that an observer needs to know: the name of a function of `witness_weave_runtime`. If there is a number, it is
the first argument of that function.
""".
-type class() :: name() | {result | foreign, Number :: non_neg_integer()}.

-doc false.
-spec class(module(), atom(), arity()) -> name() | none.
class(Module, Function, Arity) ->
    case rows(Module) of
        #{Function := {Class, Arities}} ->
            case lists:member(Arity, Arities) of
                true -> Class;
                false -> none
            end;
        #{} ->
            none
    end.

-doc false.
-spec possible(module() | '_', atom() | '_', arity() | '_') -> boolean().
possible(Module, Function, Arity) ->
    is_any({Module, Function, Arity}, rows()).

-doc "Whether one of these functions fits a call, in which `'_'` stands for what is known only when it is made.".
-spec is_any({module() | '_', atom() | '_', arity() | '_'}, [mfa()]) -> boolean().
is_any({Module, Function, Arity}, Functions) ->
    lists:any(fun({M, F, A}) ->
                  (Module =:= '_' orelse Module =:= M) andalso (Function =:= '_' orelse Function =:= F) andalso
                      (Arity =:= '_' orelse Arity =:= A)
              end, Functions).

-doc "Every function that has a class.".
-spec rows() -> [mfa()].
rows() -> [{Module, Function, Arity} || Module <- modules(), Function := {_, Arities} <- rows(Module), Arity <- Arities].

modules() -> [erlang, proc_lib, timer | witness_weave_behaviour_calls:modules()].

rows(erlang) ->
    #{'!' => {send, [2]},
      send => {send, [2, 3]},
      send_nosuspend => {send, [2, 3]},
      spawn => {spawn, [1, 2, 3, 4]},
      spawn_link => {spawn, [1, 2, 3, 4]},
      spawn_monitor => {spawn, [1, 2, 3, 4]},
      spawn_opt => {spawn, [2, 3, 4, 5]},
      spawn_request => {spawn_request, [1, 2, 3, 4, 5]},
      get => {dictionary, [0]},
      get_keys => {dictionary, [0, 1]},
      erase => {dictionary, [0]},
      make_fun => {make_fun, [3]},
      hibernate => {hibernate, [0, 3]}};
rows(proc_lib) ->
    #{spawn => {spawn, [1, 2, 3, 4]},
      spawn_link => {spawn, [1, 2, 3, 4]},
      spawn_opt => {spawn, [2, 3, 4, 5]},
      start => {start, [3, 4, 5]},
      start_link => {start, [3, 4, 5]},
      start_monitor => {start, [3, 4, 5]},
      hibernate => {hibernate, [3]}};
rows(timer) ->
    #{sleep => {sleep, [1]}};
rows(Module) ->
    witness_weave_behaviour_calls:rows(Module).
