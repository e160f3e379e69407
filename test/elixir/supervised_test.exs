ExUnit.start(timeout: :infinity)

defmodule Till do
  use GenServer

  def start_link(_), do: GenServer.start_link(__MODULE__, [], name: __MODULE__)
  def pay(sum), do: GenServer.call(__MODULE__, {:pay, sum})
  @impl true
  def init(_), do: {:ok, 0}
  @impl true
  def handle_call({:pay, sum}, _from, total), do: {:reply, {:paid, sum}, total + sum}
end

defmodule Small do
  use Witness.Monitor, events: [:send]

  @impl true
  def attached(_, _, arg), do: {:ok, arg}
  @impl true
  def handle_event({:send, _, _, {_, {:paid, sum}}, _}, limit) when sum > limit, do: {:verdict, :no, sum}
  def handle_event(_, limit), do: {:ok, limit}
  @impl true
  def handle_end(how, limit), do: {:inconclusive, {how, limit}}
end

defmodule Shop.Application do
  use Application

  @impl true
  def start(_, options), do: Supervisor.start_link([Till, {Witness, options}], strategy: :one_for_one)
end

defmodule SupervisedTest do
  use ExUnit.Case
  @moduletag :tmp_dir
  @moduletag capture_log: true

  defp options(more) do
    test = self()
    default = [system: {:attach, [Till]}, monitors: [{:_, {Small, 10}}], on_verdict: &send(test, {:told, &1})]
    Keyword.merge(default, more)
  end

  defp start(children), do: Supervisor.start_link(children, strategy: :one_for_one)

  test "a run watches from the start of its supervisor to its end", %{tmp_dir: dir} do
    log = Path.join(dir, "till.jsonl")
    {:ok, supervisor} = start([Till, {Witness, options(name: Watch, log_file: log)}])
    assert %{phase: :running} = Witness.info(Watch)
    Till.pay(3)
    assert {:error, {:witness_run, :timeout}} = Witness.await(Watch, 1)
    Supervisor.stop(supervisor)
    # It was stopped in order: undecided monitors have ended, and the log is complete.
    assert_receive {:told, %Witness.Verdict{verdict: :inconclusive, reason: :stopped, info: {:stopped, 10}}}, 60_000
    assert File.read!(log) =~ "{paid,3}"
    assert {:ok, {%{outcome: :ok}, _}} = Witness.check(system: {:log, {:file, log}}, monitors: [{:_, {Small, 10}}])
    assert Process.whereis(Watch) == nil
    assert DynamicSupervisor.which_children(:witness_run_sup) == []
  end

  test "with the node, a process is watched also when it is started again" do
    {:ok, supervisor} = start([{Witness, options(name: Watch, system: :node)}, told(Till, [])])
    assert_receive {:started, first}, 60_000
    Till.pay(30)
    assert_receive {:told, %Witness.Verdict{verdict: :no, process: ^first}}, 60_000
    Process.exit(first, :kill)
    assert_receive {:started, second}, 60_000
    Till.pay(31)
    assert_receive {:told, %Witness.Verdict{verdict: :no, process: ^second, info: 31, signature: {Till, :init, [[]]}}}, 60_000
    Supervisor.stop(supervisor)
  end

  test "verdicts are there while it runs" do
    {:ok, supervisor} = start([Till, {Witness, options(name: {:global, Watch})}])
    Till.pay(30)
    assert_receive {:told, %Witness.Verdict{verdict: :no, info: 30} = verdict}, 60_000
    assert [^verdict] = Witness.verdicts({:global, Watch})
    Supervisor.stop(supervisor)
  end

  test "a run that ends does not end the application" do
    {:ok, supervisor} = start([Till, {Witness, options([])}])
    till = Process.whereis(Till)
    [pid] = for {Witness, pid, _, _} <- Supervisor.which_children(supervisor), do: pid
    [{_, run, _, _}] = DynamicSupervisor.which_children(:witness_run_sup)
    gone = Process.monitor(pid)
    Process.exit(run, :kill)
    assert_receive {:DOWN, ^gone, _, _, :killed}, 60_000
    assert [{Till, ^till, _, _}] = Supervisor.which_children(supervisor)

    # And when it is killed, the run ends with it.
    {:ok, pid} = Supervisor.start_child(supervisor, {Witness, options([])})
    [{_, run, _, _}] = DynamicSupervisor.which_children(:witness_run_sup)
    gone = Process.monitor(run)
    Process.exit(pid, :kill)
    assert_receive {:DOWN, ^gone, _, _, _}, 60_000
    assert Process.whereis(Till) == till
    Supervisor.stop(supervisor)
  end

  test "it is restarted if that is wanted" do
    {:ok, supervisor} = start([Till, told({Witness, options(name: Watch)}, restart: :permanent)])
    assert_receive {:started, first}, 60_000
    assert Process.whereis(Watch) == first
    {:ok, _} = Witness.stop(Watch)
    assert_receive {:started, second}, 60_000
    assert second != first
    assert %{phase: :running} = Witness.info(Watch)
    Supervisor.stop(supervisor)
  end

  # The test is told of each start.
  defp told(child, overrides) do
    %{start: start} = spec = Supervisor.child_spec(child, overrides)
    %{spec | start: {__MODULE__, :start_told, [self(), start]}}
  end

  def start_told(test, {module, function, arguments}) do
    {:ok, pid} = apply(module, function, arguments)
    send(test, {:started, pid})
    {:ok, pid}
  end

  test "a start that fails says why" do
    Process.flag(:trap_exit, true)

    for {options, text} <- [
          {[system: {:attach, [Nowhere]}], "no process is registered as Nowhere"},
          {[system: :node, tracers: 1], "unknown option tracers"},
          {[:node], "option options: expected a keyword list"}
        ] do
      assert {:error, {:shutdown, {:failed_to_start_child, Witness, reason}}} = start([Till, {Witness, options}])
      assert Exception.format_exit(reason) =~ "** (Witness.Error) " <> text
      assert {:error, error} = Witness.start_link(options)
      assert Witness.format_error(error) == text
    end

    {:ok, supervisor} = start([Till, {Witness, options(name: Watch)}])
    watch = Process.whereis(Watch)
    assert {:error, {:already_started, ^watch}} = Supervisor.start_child(supervisor, {Witness, options(name: Watch)})
    assert {:error, {:already_started, ^watch} = error} = Witness.start_link(options(name: Watch))
    assert Witness.format_error(error) == "a process with this name runs already: #{inspect(watch)}"
    Supervisor.stop(supervisor)
  end

  test "an application starts Witness if it has not been started" do
    Application.stop(:witness)
    {:ok, _} = Application.ensure_all_started(:logger)
    options = options(name: Watch, system: :node)

    :ok =
      :application.load(
        {:application, :shop, applications: [:kernel, :stdlib, :elixir], modules: [], registered: [], mod: {Shop.Application, options}}
      )

    :ok = Application.start(:shop)
    Till.pay(30)
    assert_receive {:told, %Witness.Verdict{verdict: :no, process: till}}, 60_000
    assert till == Process.whereis(Till)
    :ok = Application.stop(:shop)
    assert Process.whereis(Watch) == nil
  end
end
