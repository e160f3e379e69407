-module(witness_event_elixir_tests).
-moduledoc """
Signatures of real processes of Elixir. The toolchain always has Elixir: where it is missing these tests fail.
""".

-include_lib("eunit/include/eunit.hrl").

-export([load/0, unload/1]).

-define(PROGRAM, 'Elixir.WitnessEventElixir').

program() ->
    ~"""
    defmodule WitnessEventElixir do
      use GenServer

      def start_link(arg), do: GenServer.start_link(__MODULE__, arg)
      def init({:supervisor, children}), do: Supervisor.init(children, strategy: :one_for_one)
      def init({:dynamic, _}), do: DynamicSupervisor.init(strategy: :one_for_one)
      def init(arg), do: {:ok, arg}

      def wait(_ \\ 0), do: Process.sleep(:infinity)

      def start(:spawn), do: spawn(fn -> wait(1) end)
      def start(:spawn_capture), do: spawn(&wait/0)
      def start(:spawn_remote_capture), do: spawn(&__MODULE__.wait/0)
      def start(:spawn_mfa), do: spawn_link(__MODULE__, :wait, [1])

      def start(:server), do: ok(GenServer.start(__MODULE__, [1]))
      def start(:server_link), do: ok(GenServer.start_link(__MODULE__, [1], timeout: 5000))
      def start(:server_local), do: ok(GenServer.start_link(__MODULE__, [1], name: __MODULE__.Named))
      def start(:server_global), do: ok(GenServer.start_link(__MODULE__, [1], name: {:global, make_ref()}))
      def start(:server_via), do: ok(GenServer.start_link(__MODULE__, [1], name: {:via, :global, make_ref()}))

      def start(:supervisor), do: ok(Supervisor.start_link(__MODULE__, {:supervisor, []}))
      def start(:supervisor_named), do: ok(Supervisor.start_link(__MODULE__, {:supervisor, []}, name: __MODULE__.Named))
      def start(:supervisor_children), do: ok(Supervisor.start_link([], strategy: :one_for_all))
      def start(:supervised) do
        supervisor = ok(Supervisor.start_link([{__MODULE__, [1]}], strategy: :one_for_one))
        [{_, pid, _, _}] = Supervisor.which_children(supervisor)
        pid
      end

      def start(:dynamic), do: ok(DynamicSupervisor.start_link(__MODULE__, {:dynamic, 1}))
      def start(:dynamic_named), do: ok(DynamicSupervisor.start_link(__MODULE__, {:dynamic, 1}, name: __MODULE__.Named))
      def start(:dynamic_default), do: ok(DynamicSupervisor.start_link(strategy: :one_for_one))
      def start(:dynamic_child) do
        supervisor = ok(DynamicSupervisor.start_link(strategy: :one_for_one))
        ok(DynamicSupervisor.start_child(supervisor, {__MODULE__, [1]}))
      end
      def start(:task_supervisor), do: ok(Task.Supervisor.start_link())

      def start(:task), do: ok(Task.start(fn -> wait(2) end))
      def start(:task_link), do: ok(Task.start_link(fn -> wait(2) end))
      def start(:task_mfa), do: ok(Task.start(__MODULE__, :wait, [1]))
      def start(:task_link_mfa), do: ok(Task.start_link(__MODULE__, :wait, [1]))
      def start(:task_async), do: Task.async(fn -> wait(3) end).pid
      def start(:task_child), do: ok(Task.Supervisor.start_child(tasks(), fn -> wait(2) end))
      def start(:task_child_mfa), do: ok(Task.Supervisor.start_child(tasks(), __MODULE__, :wait, [1]))
      def start(:task_child_restarted) do
        ok(Task.Supervisor.start_child(tasks(), __MODULE__, :wait, [1], restart: :permanent))
      end
      def start(:task_async_nolink), do: Task.Supervisor.async_nolink(tasks(), __MODULE__, :wait, [1]).pid
      def start(:task_module), do: ok(__MODULE__.Job.start_link(1))

      def start(:agent), do: ok(Agent.start(fn -> 4 end))
      def start(:agent_link), do: ok(Agent.start_link(fn -> 4 end, name: __MODULE__.Named))
      def start(:agent_mfa), do: ok(Agent.start_link(Kernel, :+, [1, 2]))
      def start(:agent_start_mfa), do: ok(Agent.start(Kernel, :+, [1, 2]))

      defp ok({:ok, pid}), do: pid
      defp tasks(), do: ok(Task.Supervisor.start_link())

      defmodule Job do
        use Task
        def start_link(arg), do: Task.start_link(WitnessEventElixir, :wait, [arg])
      end
    end
    """.

elixir_test_() ->
    {setup, fun load/0, fun unload/1, [
        {"a process has the signature that its author wrote", tests(as_written())},
        {"a supervisor without a module shows its children", tests(without_a_module())},
        {"a task that is told its function by message keeps its own", tests(told_by_message())}
    ]}.

as_written() ->
    Init = fun(Args) -> {?PROGRAM, init, [Args]} end,
    Wait = {?PROGRAM, wait, [1]},
    [
        {spawn, anonymous},
        {spawn_capture, {?PROGRAM, wait, []}},
        {spawn_remote_capture, {?PROGRAM, wait, []}},
        {spawn_mfa, Wait},
        {server, Init([1])},
        {server_link, Init([1])},
        {server_local, Init([1])},
        {server_global, Init([1])},
        {server_via, Init([1])},
        {supervisor, Init({supervisor, []})},
        {supervisor_named, Init({supervisor, []})},
        {supervised, Init([1])},
        {dynamic, Init({dynamic, 1})},
        {dynamic_named, Init({dynamic, 1})},
        {dynamic_child, Init([1])},
        {task, anonymous},
        {task_link, anonymous},
        {task_mfa, Wait},
        {task_link_mfa, Wait},
        {task_child, anonymous},
        {task_child_restarted, Wait},
        {task_module, Wait},
        {agent, anonymous},
        {agent_link, anonymous},
        {agent_mfa, {'Elixir.Kernel', '+', [1, 2]}},
        {agent_start_mfa, {'Elixir.Kernel', '+', [1, 2]}}
    ].

without_a_module() ->
    [
        {supervisor_children, fun({'Elixir.Supervisor.Default', init, [{ok, {_Flags, []}}]}) -> ok end},
        {dynamic_default, fun({'Elixir.Supervisor.Default', init, [{ok, _Flags}]}) -> ok end},
        {task_supervisor, fun({'Elixir.Task.Supervisor', init, [_]}) -> ok end}
    ].

%% A version of Elixir that makes the function known at the spawn should be noticed here.
told_by_message() ->
    Reply = fun({'Elixir.Task.Supervised', reply, [_Owner | _]}) -> ok end,
    [{task_async, Reply}, {task_async_nolink, Reply}, {task_child_mfa, Reply}].

tests(Cases) -> [{atom_to_list(Case), fun() -> expect(Expected, Case) end} || {Case, Expected} <- Cases].

expect(Check, Case) when is_function(Check) -> Check(signature(Case));
expect(anonymous, Case) ->
    {Module, Function, Args} = signature(Case),
    ?assertMatch({?PROGRAM, "-start/1-fun-" ++ _, []}, {Module, atom_to_list(Function), Args});
expect(Expected, Case) -> ?assertEqual(Expected, signature(Case)).

signature(Case) -> witness_event_births:signature(fun() -> ?PROGRAM:start(Case) end).

%% Elixir is on the path for these tests alone, and does not tell of its applications.
load() ->
    #{level := Level} = logger:get_primary_config(),
    ok = logger:set_primary_config(level, warning),
    Paths = [filename:join([library(), App, "ebin"]) || App <- ["elixir", "logger"]],
    ok = code:add_pathsz(Paths),
    {ok, Started} = application:ensure_all_started(elixir),
    Modules = [Module || {Module, _} <- 'Elixir.Code':compile_string(program())],
    {Level, Paths, Started, Modules}.

unload({Level, Paths, Started, Modules}) ->
    [{true, false} = {code:delete(Module), code:purge(Module)} || Module <- Modules],
    [ok = application:stop(App) || App <- lists:reverse(Started)],
    [code:del_path(Path) || Path <- Paths],
    logger:set_primary_config(level, Level).

%% The script of Elixir says where its library is, in the command line that it would run.
library() ->
    Elixir = os:find_executable("elixir"),
    ?assert(is_list(Elixir)),
    Command = os:cmd("ELIXIR_CLI_DRY_RUN=1 '" ++ Elixir ++ "' -e ok"),
    {match, [Library]} = re:run(Command, "-pa (.*)/elixir/ebin", [{capture, all_but_first, list}, ungreedy]),
    Library.
