-module(witness_spec_module).
-moduledoc """
The bounded pool of module names for generated code: `witness_spec_code_1` to `witness_spec_code_1024`.

Module names are atoms and are never freed, so generated modules share these. A name is taken while a module of
that name is loaded, has old code left, or is on the code path: no module is ever replaced. A process that holds a lock
(a registered name) compiles and loads under a name, so that two compilations cannot choose the same
one. The lock ends with its process, however that ends, and needs no application to run.
""".

-export([load/1, unload/1]).

-define(POOL_MODULES, 1024).
-define(LOCK, witness_spec_module_lock).

-doc """
Loads the object code that `Compile` makes under a free name. `Compile` gets the name and returns the object code, or a
result to be returned instead.
""".
-spec load(fun((module()) -> {ok, binary()} | Failure)) -> {ok, module()} | {error, pool_exhausted} | Failure.
load(Compile) ->
    Self = self(),
    {Pid, Monitor} = spawn_monitor(fun() -> lock(), Self ! {self(), claim(Compile, 1)} end),
    receive
        {Pid, Result} -> demonitor(Monitor, [flush]), Result;
        {'DOWN', Monitor, process, Pid, Reason} -> error(Reason)
    end.

%% The process that holds the name does not live long; others wait for its death.
lock() ->
    try
        true = register(?LOCK, self())
    catch
        error:badarg ->
            Monitor = monitor(process, ?LOCK),
            receive {'DOWN', Monitor, process, _, _} -> lock() end
    end.

claim(_, N) when N > ?POOL_MODULES ->
    {error, pool_exhausted};
claim(Compile, N) ->
    Module = list_to_atom("witness_spec_code_" ++ integer_to_list(N)),
    case is_free(Module) of
        true ->
            case Compile(Module) of
                {ok, Code} ->
                    {module, Module} = code:load_binary(Module, "", Code),
                    {ok, Module};
                Failure ->
                    Failure
            end;
        false ->
            claim(Compile, N + 1)
    end.

is_free(Module) ->
    code:is_loaded(Module) =:= false andalso (not erlang:check_old_code(Module) orelse code:soft_purge(Module))
        andalso code:which(Module) =:= non_existing.

-doc """
Removes a generated module. Its name is free again at once, or, if a process still runs its code, as soon as that
process has left it: such a process is not killed.
""".
-spec unload(module()) -> ok.
unload(Module) ->
    "witness_spec_code_" ++ _ = atom_to_list(Module),
    _ = code:delete(Module),
    _ = code:soft_purge(Module),
    ok.
