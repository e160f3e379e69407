-module(witness_event_signature).
-moduledoc """
Turns the function and arguments that the VM reports for a spawn into those that the author of the process wrote.

The VM knows the module, function and arguments that a process started with. For most processes of OTP and Elixir these
are internals: a `gen_server` starts in `proc_lib:init_p/5`, with its callback module somewhere in the arguments. The
*signature* of a process is what its author wrote:

| Spawned by | Signature |
|---|---|
| `spawn(m, f, [A, B])`, `proc_lib:start_link(m, f, [A, B])` and the like | `{m, f, [A, B]}` |
| `spawn(fun f/0)`, `spawn(fun m:f/0)` | `{m, f, []}` |
| `spawn(fun() -> ... end)` in `m:start/1` | `{m, '-start/1-fun-0-', []}` |
| `gen_server`, `gen_statem` and others on `gen`, `supervisor`, `supervisor_bridge` | `{Callback, init, [Args]}` |
| `gen_event` | `{gen_event, init, [Name]}`, `undefined` without a name: a manager has no callback module |
| `GenServer`, `Supervisor`, `DynamicSupervisor` with a callback module | `{Callback, init, [Args]}` |
| `Supervisor.start_link(Children, _)` | `{'Elixir.Supervisor.Default', init, [{ok, {Flags, Children}}]}` |
| `Task.start`, `Task.start_link`, `Task.Supervisor.start_child` with a fun | the task's function, as for `spawn` |
| `Agent` | the function that computes the first state, as for `spawn` |

Two kinds of processes receive their function in a message after they were spawned, so that the VM does not know it:

- a task with an awaited result (`Task.async`, `Task.async_stream`, `Task.Supervisor.async` and the like), and a task of
  `Task.Supervisor.start_child` with a module, keeps `{'Elixir.Task.Supervised', reply, Args}`; its function is in the
  first message that it receives, `{_, _, _, _, {M, F, Args}}`;
- a process that another node has spawned here keeps `{erts_internal, dist_spawn_init, [{M, F, Arity}]}`.

Other shapes stay as they are. The internal shapes of OTP and Elixir are known here for
OTP 27 to 29 and Elixir 1.14 to 1.20; tests compare them with real processes.
""".

-export([resolve/1, of_process/1, unknown/1]).

-type mfargs() :: {module(), atom(), [term()]}.

-doc """
The signature for the module, function and arguments of the VM's `spawn` and `spawned` events.

It never fails, and returns unknown shapes unchanged.
""".
-spec resolve(mfargs()) -> witness_event:signature().
resolve({proc_lib, init_p, [_Parent, _Ancestors, M, F, Args]}) when is_atom(M), is_atom(F), is_list(Args) ->
    behaviour(M, F, Args);
resolve({proc_lib, init_p, [_Parent, _Ancestors, Fun]}) when is_function(Fun) ->
    function(Fun, []);
resolve({erlang, apply, [Fun, Args]}) when is_function(Fun), is_list(Args) ->
    function(Fun, Args);
resolve({erlang, apply, [M, F, Args]}) when is_atom(M), is_atom(F), is_list(Args) ->
    resolve({M, F, Args});
%% The function with which a recorder replaces one of the VM (`witness_record_runtime').
resolve({witness_record_runtime, first, [M, F, Args]}) when is_atom(M), is_atom(F), is_list(Args) ->
    resolve({M, F, Args});
resolve({erts_internal, spawn_init, [{M, F, Args}]}) when is_atom(M), is_atom(F), is_list(Args) ->
    resolve({M, F, Args});
resolve({'Elixir.Task.Supervised', noreply, Args} = Raw) ->
    task(Args, Raw);
resolve(Raw) ->
    Raw.

-doc """
The function of the signature that a live process of this node was spawned with, as far as the VM still knows it: an
OTP process keeps it in its dictionary, and a process that was spawned with a fun is in `erlang:apply/2`. `undefined` if the
process has ended.
""".
-spec of_process(pid()) -> mfa() | undefined.
of_process(P) ->
    case {proc_lib:translate_initial_call(P), process_info(P, initial_call)} of
        {_, undefined} -> undefined;
        {{proc_lib, init_p, 5}, {initial_call, MFA}} -> MFA;
        {{Behaviour, Module, 1}, _} when Behaviour =:= supervisor; Behaviour =:= supervisor_bridge -> {Module, init, 1};
        {{gen_event, _, _}, _} -> {gen_event, init, 1};
        {MFA, _} -> MFA
    end.

-doc "A signature with unknown arguments: each of them is `'_'`.".
-spec unknown(mfa()) -> witness_event:signature().
unknown({Module, Function, Arity}) -> {Module, Function, lists:duplicate(Arity, '_')}.

function(Fun, Args) ->
    {module, Module} = erlang:fun_info(Fun, module),
    case erlang:fun_info(Fun, name) of
        {name, Name} when is_atom(Name) -> {Module, Name, Args};
        %% Its code is not loaded, so its name is not known.
        {name, []} -> {erlang, apply, [Fun, Args]}
    end.

%% Functions that run under proc_lib.
behaviour(gen, init_it, [GenMod, _Starter, _Parent, Mod, Args, _Options]) when is_atom(Mod) ->
    callback(GenMod, undefined, Mod, Args);
behaviour(gen, init_it, [GenMod, _Starter, _Parent, Name, Mod, Args, _Options]) when is_atom(Mod) ->
    callback(GenMod, Name, Mod, Args);
behaviour(M, F, Args) ->
    resolve({M, F, Args}).

callback(gen_event, Name, _, _) -> {gen_event, init, [Name]};
callback(gen_server, _, supervisor, {_Name, Mod, Args}) when is_atom(Mod) -> {Mod, init, [Args]};
callback(gen_server, _, supervisor_bridge, [Mod, Args, _Name]) when is_atom(Mod) -> {Mod, init, [Args]};
callback(gen_server, _, 'Elixir.DynamicSupervisor', {Mod, Args, _Name}) when is_atom(Mod) -> {Mod, init, [Args]};
callback(gen_server, _, 'Elixir.Agent.Server', Fun) when is_function(Fun) -> function(Fun, []);
callback(gen_server, _, 'Elixir.Agent.Server', {M, F, Args}) when is_atom(M), is_atom(F), is_list(Args) ->
    resolve({M, F, Args});
callback(_, _, Mod, Args) -> {Mod, init, [Args]}.

%% Before Elixir 1.15 without the ancestors.
task([_Owner, _Ancestors, _Callers, {M, F, Args}], _) when is_atom(M), is_atom(F), is_list(Args) ->
    resolve({M, F, Args});
task([_Owner, _Callers, {M, F, Args}], _) when is_atom(M), is_atom(F), is_list(Args) ->
    resolve({M, F, Args});
task(_, Raw) ->
    Raw.
