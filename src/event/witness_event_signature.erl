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
| `Supervisor.start_link(Children, _)` | `{'Elixir.Supervisor.Default', init, [{ok, {Flags, Children}}]}`: that is the module with the callback |
| `DynamicSupervisor.start_link(Options)` without a module | `{'Elixir.Supervisor.Default', init, [{ok, Flags}]}` |
| `Task.Supervisor`, `PartitionSupervisor`, `Registry` | `init` of `'Elixir.Task.Supervisor'`, `'Elixir.PartitionSupervisor'`, `'Elixir.Registry.Supervisor'`; a partition is that of its child, of a registry `'Elixir.Registry.Partition'` |
| `GenStage`, `ConsumerSupervisor` with a callback module | `{Callback, init, [Args]}` |
| `gen_state_machine`, `connection`, `ThousandIsland.Handler` | `{Callback, init, [Args]}` |
| a producer of `Broadway` | `{Producer, init, [Args]}` |
| a processor, a batch processor of `Broadway` | `{Callback, handle_message, _}` with three unknown arguments, `{Callback, handle_batch, _}` with four |
| a connection of `DBConnection` | `{Callback, connect, _}` with an unknown argument |
| a shard of `Phoenix.Tracker` | `{Callback, init, [Args]}` |
| `Task.start`, `Task.start_link`, `Task.Supervisor.start_child` with a fun | the task's function, as for `spawn` |
| `Agent` | the function that computes the first state, as for `spawn` |

Libraries with other wrappers, and those of a project, have rows in a table that a project extends (`m:witness_event_wrapper`).

Some processes receive their function in a message after they were spawned, so that the VM does not know it:

- a task with an awaited result (`Task.async`, `Task.async_stream`, `Task.Supervisor.async` and the like), and a task of
  `Task.Supervisor.start_child` with a module, keeps `{'Elixir.Task.Supervised', reply, Args}`; its function is in the
  first message that it receives, `{_, _, _, _, {M, F, Args}}`;
- a channel of Phoenix keeps `{'Elixir.Phoenix.Channel.Server', init, [{Endpoint, From}]}`; the channel is in its first message;
- a process that another node has spawned here keeps `{erts_internal, dist_spawn_init, [{M, F, Arity}]}`.

Other shapes stay as they are. The internal shapes of OTP and Elixir are known here for
OTP 27 to 29 and Elixir 1.14 to 1.20; tests compare them with real processes.
""".

-export([resolve/1, resolve/2, of_process/1, unknown/1, known/1]).

-export_type([known/0]).

-type mfargs() :: {module(), atom(), [term()]}.

%% A row may lead to another one, but not without end.
-define(MAX_STEPS, 8).

-doc """
The signature for the module, function and arguments of the VM's `spawn` and `spawned` events.

It never fails, and returns unknown shapes unchanged.
""".
-spec resolve(mfargs()) -> witness_event:signature().
resolve(Raw) -> resolve(Raw, witness_event_wrapper:none()).

-doc """
The same with the rows of a project. A signature that was resolved without them is resolved with them too.
""".
-spec resolve(mfargs(), witness_event_wrapper:table()) -> witness_event:signature().
resolve(Raw, Table) -> resolve(Raw, ?MAX_STEPS, Table).

resolve({proc_lib, init_p, [_Parent, _Ancestors, M, F, Args]}, Steps, Table) when is_atom(M), is_atom(F), is_list(Args) ->
    behaviour(M, F, Args, Steps, Table);
resolve({proc_lib, init_p, [_Parent, _Ancestors, Fun]}, _, _) when is_function(Fun) ->
    function(Fun, []);
resolve({erlang, apply, [Fun, Args]}, _, _) when is_function(Fun), is_list(Args) ->
    function(Fun, Args);
resolve({erlang, apply, [M, F, Args]}, Steps, Table) when is_atom(M), is_atom(F), is_list(Args) ->
    resolve({M, F, Args}, Steps, Table);
%% The function with which a recorder replaces one of the VM (`witness_record_runtime').
resolve({witness_record_runtime, first, [M, F, Args]}, Steps, Table) when is_atom(M), is_atom(F), is_list(Args) ->
    resolve({M, F, Args}, Steps, Table);
%% The function of a search that has started applications for it.
resolve({witness_search_applications, call, [_, {M, F, Args}]}, Steps, Table) when is_atom(M), is_atom(F), is_list(Args) ->
    resolve({M, F, Args}, Steps, Table);
%% The process of a search that keeps its applications.
resolve({gen_server, enter_loop, [application_controller, _, _, {local, application_controller}]}, _, _) ->
    {application_controller, start, ['_']};
%% A server of OTP that it starts when the program needs it.
resolve({witness_search_applications, serve, [M, _]}, _, _) when is_atom(M) -> {M, init, [[]]};
resolve({erts_internal, spawn_init, [{M, F, Args}]}, Steps, Table) when is_atom(M), is_atom(F), is_list(Args) ->
    resolve({M, F, Args}, Steps, Table);
resolve({_, _, _} = Signature, Steps, Table) when Steps > 0 ->
    case witness_event_wrapper:unwrap(Signature, Table) of
        {ok, Next} -> resolve(Next, Steps - 1, Table);
        no -> Signature
    end;
resolve(Raw, _, _) ->
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

-doc "A signature, or what is known of one with unknown arguments.".
-type known() :: witness_event:signature() | {unknown, module(), atom(), arity()}.

-doc "What is known of a signature: an argument `'_'` is not known.".
-spec known(witness_event:signature()) -> known();
           (undefined) -> undefined.
known({M, F, Arguments} = Signature) when length(Arguments) >= 0 ->
    case lists:member('_', Arguments) of
        true -> {unknown, M, F, length(Arguments)};
        false -> Signature
    end;
known(Signature) -> Signature.

function(Fun, Args) ->
    {module, Module} = erlang:fun_info(Fun, module),
    case erlang:fun_info(Fun, name) of
        {name, Name} when is_atom(Name) -> {Module, Name, Args};
        %% Its code is not loaded, so its name is not known.
        {name, []} -> {erlang, apply, [Fun, Args]}
    end.

%% Functions that run under proc_lib.
behaviour(gen, init_it, [GenMod, _Starter, _Parent, Mod, Args, _Options], Steps, Table) when is_atom(Mod) ->
    callback(GenMod, undefined, Mod, Args, Steps, Table);
behaviour(gen, init_it, [GenMod, _Starter, _Parent, Name, Mod, Args, _Options], Steps, Table) when is_atom(Mod) ->
    callback(GenMod, Name, Mod, Args, Steps, Table);
behaviour(M, F, Args, Steps, Table) ->
    resolve({M, F, Args}, Steps, Table).

callback(gen_event, Name, _, _, _, _) -> {gen_event, init, [Name]};
callback(_, _, Mod, Args, Steps, Table) -> resolve({Mod, init, [Args]}, Steps, Table).
