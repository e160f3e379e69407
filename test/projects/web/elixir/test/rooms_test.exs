# What the supervisors of the application start for a test fails this test, and no other one. The variable BROKEN of the
# environment has the numbers of the tests with a broken room, such as "1.3 2.7".
broken = String.split(System.get_env("BROKEN", ""))

for module <- 1..4 do
  defmodule :"Elixir.Rooms#{module}Test" do
    use ExUnit.Case, async: true
    use Witness.Case, specs: ["specs/room.hml"], unmonitored: :fail
    @desk :"Elixir.Web.Desk#{module}"

    for {kind, number} <- Enum.with_index([:dynamic, :partition, :desk, :soon, :task_of_desk, :task, :async, :nested, :restarted, :allowed]) do
      name = "#{module}.#{number}"
      @kind kind
      @room name
      @step if(name in broken, do: -1, else: 1)

      test "#{name} #{kind}" do
        {:ok, _} = Registry.register(Web.PubSub, @room, [])
        room = open(@kind, @room, @step)
        for n <- 1..20, do: assert(Web.Room.say(room) == n * @step)
        assert_received {:said, _}
      end
    end

    defp child(name, step), do: {Web.Room, {name, step}}

    defp open(:dynamic, name, step), do: opened(DynamicSupervisor.start_child(Web.Rooms, child(name, step)))

    defp open(:partition, name, step) do
      opened(DynamicSupervisor.start_child({:via, PartitionSupervisor, {Web.Partitions, self()}}, child(name, step)))
    end

    defp open(:desk, name, step), do: opened(Web.Desk.open(name, step))
    defp open(:soon, name, step), do: opened(Web.Desk.open_soon(name, step))
    defp open(:task_of_desk, name, step), do: opened(Web.Desk.open_in_task(name, step))

    defp open(:task, name, step) do
      test = self()
      {:ok, _} = Task.Supervisor.start_child(Web.Tasks, fn -> send(test, {:opened, Web.Desk.open(name, step)}) end)
      assert_receive {:opened, {:ok, room}}
      room
    end

    defp open(:async, name, step) do
      opened(Task.await(Task.Supervisor.async(Web.Tasks, fn -> DynamicSupervisor.start_child(Web.Rooms, child(name, step)) end)))
    end

    defp open(:nested, name, step) do
      {:ok, supervisor} = DynamicSupervisor.start_child(Web.Rooms, {DynamicSupervisor, []})
      opened(DynamicSupervisor.start_child(supervisor, child(name, step)))
    end

    # Only the process that replaces the first one is broken.
    defp open(:restarted, name, step) do
      room = opened(DynamicSupervisor.start_child(Web.Rooms, child(name, step)))
      monitor = Process.monitor(room)
      ExUnit.CaptureLog.capture_log(fn ->
        GenServer.cast(room, :crash)
        assert_receive {:DOWN, ^monitor, _, _, _}
      end)
      again(room, name)
    end

    defp open(:allowed, name, step) do
      Witness.Case.allow(@desk)
      Web.Desk.request(@desk, name, step)
      assert_receive {:opened, {:ok, room}}
      room
    end

    defp opened({:ok, room}), do: room

    defp again(room, name) do
      case Registry.lookup(Web.Names, name) do
        [{pid, _}] when pid != room -> pid
        _ -> Process.sleep(1) && again(room, name)
      end
    end
  end
end
