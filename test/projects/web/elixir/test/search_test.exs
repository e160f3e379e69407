Application.put_env(:web, :configured, here: true)

defmodule SearchTest.Inside do
  def one, do: 1
end

defmodule SearchTest do
  use ExUnit.Case, async: true, parameterize: [%{by: 1}]
  use Witness.Case

  setup_all do
    {:ok, step: 1}
  end

  # One for each schedule, and one outside.
  setup %{by: by, step: 1} do
    counter = start_supervised!({Agent, fn -> 0 end})
    on_exit(fn -> refute Process.alive?(counter) end)
    {:ok, counter: counter, by: by}
  end

  defp read_and_write(counter, by) do
    n = Agent.get(counter, & &1)
    Agent.update(counter, fn _ -> n + by end)
  end

  @tag witness_search: 50
  test "an update is lost", %{counter: counter, by: by} do
    for(_ <- 1..2, do: Task.async(fn -> read_and_write(counter, by) end)) |> Task.await_many()
    assert Agent.get(counter, & &1) == 2
  end

  @tag witness_search: [schedules: 50, seed: 3], tmp_dir: true
  test "no update is lost", %{counter: counter, by: by, tmp_dir: tmp_dir} do
    for(_ <- 1..2, do: Task.async(fn -> Agent.update(counter, &(&1 + by)) end)) |> Task.await_many()
    assert Agent.get(counter, & &1) == 2
    refute_receive :never
    assert is_binary(tmp_dir)
    assert Application.get_env(:web, :configured) == [here: true]
  end

  @tag witness_search: 5
  test "the application is outside" do
    GenServer.call(Web.Desk, :anything)
  end

  @tag witness_search: [schedules: 20, applications: [:web]]
  test "the application runs inside" do
    {:ok, room} = Web.Desk.open_in_task(:hall, 1)
    for(_ <- 1..2, do: Task.async(fn -> Web.Room.say(room) end)) |> Task.await_many()
    assert Web.Room.say(room) == 3
  end

  @tag witness_search: 5
  test "a module without a file" do
    assert SearchTest.Inside.one() == 1
  end

  @tag witness_search: 5
  test "what is printed is captured" do
    assert ExUnit.CaptureIO.capture_io(fn -> IO.puts("here") end) == "here\n"
  end

  @tag witness_search: 5
  test "what is logged is not captured" do
    ExUnit.CaptureLog.capture_log(fn -> require(Logger) && Logger.error("here") end)
  end

  @tag witness_search: 5
  test "a callback fails" do
    on_exit(fn -> raise "not at the end" end)
  end

  # The body runs in the search alone, where the application has not started these.
  @tag witness_search: [schedules: 5, specs: ["specs/room.hml"]]
  test "a specification is violated" do
    start_supervised!({Registry, keys: :unique, name: Web.Names})
    start_supervised!({Registry, keys: :duplicate, name: Web.PubSub})
    assert Web.Room.say(start_supervised!({Web.Room, {:hall, -1}})) == -1
  end

  @tag witness_search: [schedules: 0]
  test "an option is wrong" do
  end

  @tag witness_search: [expect: 1]
  test "nothing can be expected" do
  end

  @tag witness_search: false
  test "is no search", %{counter: counter} do
    assert Agent.get(counter, & &1) == 0
  end
end
