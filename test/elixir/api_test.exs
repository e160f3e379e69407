{:ok, _} = Application.ensure_all_started(:witness)
ExUnit.start(timeout: :infinity)

defmodule Till do
  use GenServer

  def start_link(options), do: GenServer.start_link(__MODULE__, options, name: options[:name])
  def pay(till, sum), do: GenServer.call(till, {:pay, sum})

  def main(sums) do
    {:ok, till} = start_link([])
    for sum <- sums, do: pay(till, sum)
    GenServer.stop(till)
  end

  def main, do: main([1, 20])

  @impl true
  def init(_), do: {:ok, 0}
  @impl true
  def handle_call({:pay, sum}, _from, total), do: {:reply, {:paid, sum}, total + sum}
end

defmodule ApiTest do
  use ExUnit.Case
  @moduletag :tmp_dir

  @small """
  small: with Till.init(_)
  over _ : _ ! reply(_, _)
  check max Ready.([_ : _ ! reply(_, {paid, N}) when N < 10] Ready and [_ : _ ! reply(_, {paid, N}) when N >= 10] ff).
  """

  setup %{tmp_dir: dir} do
    spec = Path.join(dir, "small.hml")
    File.write!(spec, @small)
    %{spec: spec}
  end

  test "a violation of a specification", %{spec: spec} do
    assert {:ok, {%Witness.Summary{} = summary, [verdict]}} =
             Witness.check(system: &Till.main/0, specs: [spec], log: false)

    assert %{outcome: :violated, system: :normal, verdicts: %{no: 1, yes: 0}, refused: nil, history: nil} = summary
    assert [%{name: "small", monitored: 1}] = summary.properties
    assert [_ | _] = summary.coverage
    assert %Witness.Verdict{verdict: :no, name: "small", signature: {Till, :init, [[]]}, syntax: :elixir} = verdict
    assert %{slice: nil, reason: nil, note: nil, log: nil, version: 1} = verdict
    assert verdict.spec == spec <> ":1"
    assert %{line: 3, text: "check max Ready" <> _} = verdict.source
    assert {"N", 20} in verdict.info.bindings
    assert %{event: {:send, pid, _, {_, {:paid, 20}}, _}} = verdict.event
    assert pid == verdict.process
    assert %{formula: nil} = List.last(verdict.steps)
    assert [_ | _] = for(%{formula: formula} when is_binary(formula) <- verdict.steps, do: formula)

    text = Witness.format_verdict(verdict)
    assert text =~ "VIOLATION of small (#{spec}:1)"
    assert text =~ "with N = 20"
    assert text =~ "Till.init([])"
    # As the Erlang interface has it, with all that was not known.
    assert Witness.Verdict.new(Witness.Verdict.to_erlang(verdict)) == verdict
  end

  test "systems are functions, local or of a module", %{spec: spec} do
    for {system, outcome} <- [
          {fn -> Till.main([1]) end, :ok},
          {fn -> Till.main([11]) end, :violated},
          {&Till.main/0, :violated},
          {{Till, :main, [[2]]}, :ok}
        ] do
      assert {%{outcome: ^outcome}, _} = Witness.check!(system: system, specs: [spec], log: false)
    end
  end

  test "options may be a map, nil is the default, and the first of two counts", %{spec: spec} do
    assert {%{outcome: :violated}, _} = Witness.check!(%{system: &Till.main/0, specs: [spec], log: false, on_verdict: nil})
    assert {%{outcome: :ok}, _} = Witness.check!(system: fn -> Till.main([1]) end, system: nil, specs: [spec], scope: nil)
  end

  test "wrong options are errors with a text" do
    for {options, text} <- [
          {[system: :node, tracers: 3], "unknown option tracers"},
          {[], "option system is expected, and not there"},
          {[system: {Till, :mian, []}], "the module Till does not export mian/0"},
          {[system: {Tilll, :main, []}], "the module Tilll cannot be loaded (nofile); is its folder on the code path (--pa)?"},
          {[system: &Till.main/0, monitors: [{{Till, :init, 1}, Till}]],
           "the module Till is no monitor: it does not export init/3, handle_event/2 (see Witness.Monitor)"},
          {[:system], "option options: expected a keyword list"},
          {:node, "option options: expected a keyword list"},
          {[system: &Till.main/0, name: Watch], "unknown option name"}
        ] do
      assert {:error, error} = Witness.start(options)
      assert Witness.format_error(error) == text
      assert {:error, ^error} = Witness.check(options)
      assert_raise Witness.Error, text, fn -> Witness.start!(options) end
      assert_raise Witness.Error, text, fn -> Witness.check!(options) end
      assert %Witness.Error{reason: ^error} = catch_error(Witness.start!(options))
    end

    assert {:error, {:witness_spec, _} = error} = Witness.start(system: :node, specs: ["none.hml"])
    assert Witness.format_error(error) =~ "none.hml: error: cannot read the file"
  end

  test "a run that has ended", %{spec: spec} do
    run = Witness.start!(system: &Till.main/0, specs: [spec], log: false)
    assert :ok = Witness.await_started!(run)
    assert %{outcome: :violated} = Witness.await!(run, 60_000)
    assert %{phase: :finished} = Witness.info(run)
    assert %{outcome: :violated} = Witness.stop!(run)

    for function <- [&Witness.await/1, &Witness.stop/1, &Witness.await_started/1, &Witness.replace(&1, [spec])] do
      assert {:error, {:witness_run, {:run_died, _}}} = function.(run)
    end

    for function <- [&Witness.await!/1, &Witness.stop!/1, &Witness.await_started!/1, &Witness.replace!(&1, [spec])] do
      assert_raise Witness.Error, fn -> function.(run) end
    end
  end

  test "on_verdict and subscribers get structs", %{spec: spec} do
    test = self()
    main = fn -> receive do: (:go -> Till.main()) end
    tell = fn verdict -> send(test, {:told, verdict}) end
    run = Witness.start!(system: main, specs: [spec], log: false, on_verdict: tell)
    {:ok, ref} = Witness.subscribe(run)
    send(Witness.info(run).root, :go)
    assert_receive {:told, %Witness.Verdict{verdict: :no} = verdict}, 60_000
    assert_receive {:witness, ^ref, {:verdict, ^verdict}}, 60_000
    assert_receive {:witness, ^ref, {:summary, %Witness.Summary{outcome: :violated}}}, 60_000
    assert Witness.verdicts(run) == [verdict]
  end

  test "specifications are replaced", %{spec: spec, tmp_dir: dir} do
    main = fn -> receive do: (:go -> Till.main([5])) end
    run = Witness.start!(system: main, specs: [spec], log: false)
    smaller = Path.join(dir, "smaller.hml")
    File.write!(smaller, String.replace(@small, "10", "5"))
    assert {:ok, []} = Witness.replace(run, [smaller])
    assert {:error, {:witness_spec, _}} = Witness.replace(run, ["none.hml"])
    assert [] = Witness.replace!(run, [smaller])
    send(Witness.info(run).root, :go)
    assert %{outcome: :violated} = Witness.await!(run, 60_000)
    assert [%{version: 3}] = Witness.verdicts(run)
  end

  test "a log is written and checked, with the names of Elixir", %{spec: spec, tmp_dir: dir} do
    log = Path.join(dir, "till.jsonl")
    assert {%{outcome: :violated}, _} = Witness.check!(system: &Till.main/0, specs: [spec], log: false, log_file: log)
    assert {%{outcome: :violated, lines: lines}, [verdict]} = Witness.check!(system: {:log, {:file, log}}, specs: [spec], log: false)
    assert lines > 3
    assert verdict.log =~ log <> ":"
    assert {:error, error} = Witness.start(system: {:log, {:replay, dir: "none.rec", nope: 1}}, specs: [spec], vm_args: [])
    assert is_binary(Witness.format_error(error))

    File.write!(log, "no log\n")
    assert {%{outcome: :refused, refused: refused}, []} = Witness.check!(system: {:log, {:file, log}}, specs: [spec])
    assert is_binary(refused)
  end

  test "everything that is not known is nil, at any depth", %{spec: spec} do
    main = fn ->
      spawn_link(fn -> Process.sleep(:infinity) end)
      Till.main([1])
      Process.sleep(:infinity)
    end

    run = Witness.start!(system: main, specs: [spec], checks: [:crashes, :deadlock], history: true)
    {:ok, _} = Witness.subscribe(run)
    summary = Witness.stop!(run)
    refute inspect(Map.drop(summary, [:__struct__, :history]), limit: :infinity, printable_limit: :infinity) =~ ":undefined"
    assert %{alive: %{processes: _}, history: %{tree: _, log: false}, system: nil} = summary
    refute inspect(Witness.verdicts(run_again(spec)), limit: :infinity) =~ ":undefined"
  end

  defp run_again(spec) do
    run = Witness.start!(system: fn -> Till.main([1]) end, specs: [spec], checks: [:crashes])
    Witness.await!(run, 60_000)
    run
  end
end
