{:ok, _} = Application.ensure_all_started(:witness)
ExUnit.start(timeout: :infinity)

defmodule Polite do
  use Witness.Monitor

  @impl true
  def init(_signature, _process, _arg), do: {:ok, :silent}

  @impl true
  def handle_event({:send, _process, _to, :bye, _time}, _state), do: {:ok, :said_bye}
  def handle_event({:exit, _process, _reason, _time}, :said_bye), do: {:verdict, :yes, nil}
  def handle_event({:exit, _process, reason, _time}, :silent), do: {:verdict, :no, {:left, reason}}
  def handle_event(_event, state), do: {:ok, state}
end

defmodule Counting do
  use Witness.Monitor, events: [:recv, :exit]

  @impl true
  def attached(_function, _process, limit), do: {:ok, limit}

  @impl true
  def handle_event({:recv, _, _, _, _}, 0), do: {:verdict, :no, nil}
  def handle_event({:recv, _, _, _, _}, left), do: {:ok, left - 1}
  def handle_event({:exit, _, _, _}, left), do: {:verdict, :yes, left}

  @impl true
  def handle_end(_, left), do: {:inconclusive, {:left, left}}

  @impl true
  def describe(left), do: %{formula: "at most #{left} more", bindings: [{"Left", left}]}
end

defmodule Plain do
  # Nothing of Witness is needed to compile it.
  def init(_signature, _process, _arg), do: {:ok, nil}
  def handle_event({:exit, _, reason, _}, _), do: {:verdict, if(reason == :normal, do: :yes, else: :no), reason}
  def handle_event(_, state), do: {:ok, state}
end

defmodule MonitorTest do
  use ExUnit.Case
  import ExUnit.CaptureIO

  defp check(main, monitors) do
    {_, verdicts} = Witness.check!(system: main, monitors: monitors, log: false)
    verdicts
  end

  test "a monitor decides" do
    parent = self()
    assert [%{verdict: :no, info: {:left, :normal}, spec: "Polite"} = verdict] = check(fn -> :ok end, [{:_, Polite}])
    text = Witness.format_verdict(verdict)
    assert text =~ ~r/^VIOLATION of Polite$/m
    assert text =~ "the monitor says: {:left, :normal}"
    assert [%{verdict: :yes, info: nil}] = check(fn -> send(parent, :bye) end, [{{:_, :_, :_}, {Polite, []}}])
    assert [%{verdict: :no}] = check(fn -> exit(:oops) end, [{:_, Plain}])
  end

  test "the state is the argument, and steps are described" do
    main = fn ->
      send(self(), 1)
      send(self(), 2)
      # A message has come when the process looks into its mailbox.
      receive do: (2 -> :ok)
    end

    assert [%{verdict: :no, info: nil, steps: steps} = verdict] = check(main, [{:_, {Counting, 1}}])
    assert %{formula: "at most 0 more", bindings: [{"Left", 0}]} = Enum.find(steps, &is_binary(&1.formula))
    refute Witness.format_verdict(verdict) =~ "the monitor says"
    assert [%{verdict: :yes, info: 3}] = check(main, [{:_, {Counting, 5}}])
    # Other events are not even given to it.
    assert [:recv, :recv] = for(%{event: event} <- steps, do: elem(event, 0))
  end

  test "a process that runs already needs attached/3" do
    pid = spawn(fn -> receive do: (:end -> :ok) end)
    assert {:error, error} = Witness.start(system: {:attach, [pid]}, monitors: [{:_, Polite}])
    assert Witness.format_error(error) == "the module Polite is no monitor: it does not export attached/3 (see Witness.Monitor)"
    run = Witness.start!(system: {:attach, [pid]}, monitors: [{:_, {Counting, 0}}], log: false)
    send(pid, :end)
    assert %{outcome: :violated} = Witness.await!(run, 60_000)
    # Stopped before its end.
    other = spawn(fn -> Process.sleep(:infinity) end)
    run = Witness.start!(system: {:attach, [other]}, monitors: [{:_, {Counting, 0}}], log: false)
    {:ok, ref} = Witness.subscribe(run)
    Witness.stop!(run)
    assert_receive {:witness, ^ref, {:verdict, %{verdict: :inconclusive, reason: :stopped, info: {:left, 0}}}}, 60_000
  end

  test "a monitor that raises is undecided" do
    defmodule Raising do
      use Witness.Monitor
      @impl true
      def handle_event(_, _), do: raise("no bread")
    end

    assert [%{verdict: :inconclusive, reason: {:crashed, {:error, %RuntimeError{message: "no bread"}, _}}}] =
             check(fn -> :ok end, [{:_, Raising}])
  end

  test "the compiler of Elixir checks callbacks" do
    assert compile("use Witness.Monitor") =~ "function handle_event/2 required by behaviour Witness.Monitor is not implemented"

    assert compile("use Witness.Monitor\n@impl true\ndef handle_event(_, s), do: {:ok, s}\n@impl true\ndef handle_ned(_, _), do: 1") =~
             "got \"@impl true\" for function handle_ned/2 but no behaviour specifies such callback"

    assert compile("use Witness.Monitor, events: [:exit]\n@impl true\ndef handle_event(_, s), do: {:ok, s}") == ""

    assert compile("""
           use Witness.Monitor, events: [:exit]
           @impl true
           def init(_, _, arg), do: {:ok, [arg]}
           @impl true
           def handle_event(_, s), do: {:ok, s}
           @impl true
           def alphabet(_), do: :all
           """) == ""
  end

  test "wrong options of use are errors of the compiler" do
    for {options, text} <- [
          {"events: [:recv, :receive]", "events: expected a list of :init, :fork, :send, :recv and :exit, got :receive"},
          {"events: :recv", "events: expected a list of :init, :fork, :send, :recv and :exit, got :recv"},
          {"event: [:recv]", "expected no option but events, got [event: [:recv]]"}
        ] do
      error = assert_raise ArgumentError, fn -> compile("use Witness.Monitor, #{options}") end
      assert error.message == "use Witness.Monitor, " <> text
    end
  end

  test "nothing of Witness is needed to run a monitor" do
    [{_, beam}] = Code.compile_string("defmodule Alone do\nuse Witness.Monitor\n@impl true\ndef handle_event(_, s), do: {:ok, s}\nend")
    {:ok, {_, [imports: imports]}} = :beam_lib.chunks(beam, [:imports])
    assert [] = for({module, _, _} <- imports, Atom.to_string(module) =~ ~r/witness/i, do: module)
  end

  defp compile(body) do
    capture_io(:stderr, fn -> Code.compile_string("defmodule M#{System.unique_integer([:positive])} do\n#{body}\nend") end)
  end
end
