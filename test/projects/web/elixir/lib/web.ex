defmodule Web do
  @moduledoc "An application as web frameworks make them: its supervisors start a process for each user, room and job."
  use Application

  @impl true
  def start(_type, _args) do
    Supervisor.start_link(
      [
        {Registry, keys: :unique, name: Web.Names},
        {Registry, keys: :duplicate, name: Web.PubSub},
        {DynamicSupervisor, name: Web.Rooms, max_restarts: 1_000},
        {PartitionSupervisor, child_spec: DynamicSupervisor, name: Web.Partitions},
        {Task.Supervisor, name: Web.Tasks}
      ] ++ for(name <- [Web.Desk, Web.Desk1, Web.Desk2, Web.Desk3, Web.Desk4], do: Supervisor.child_spec({Web.Desk, name}, id: name)),
      strategy: :one_for_one
    )
  end
end

defmodule Web.Room do
  @moduledoc "Counts what is said in a room, up or down by its step, and sends the count to the listeners of the room."
  use GenServer, restart: :transient

  def start_link({name, step}), do: GenServer.start_link(__MODULE__, {name, step}, name: via(name))
  def say(room), do: GenServer.call(room, :say)
  def via(name), do: {:via, Registry, {Web.Names, name}}

  @impl true
  def init({name, step}), do: {:ok, %{name: name, count: 0, step: step}}

  @impl true
  def handle_call(:say, _from, room) do
    room = %{room | count: room.count + room.step}
    Registry.dispatch(Web.PubSub, room.name, fn listeners ->
      for {pid, _} <- listeners, do: send(pid, {:said, room.count})
    end)
    {:reply, room.count, room}
  end

  @impl true
  def handle_cast(:crash, room), do: {:stop, :crash, room}
end

defmodule Web.Desk do
  @moduledoc "Opens rooms for others: itself, in a task, when it is asked later, and with a message that is no call."
  use GenServer

  def start_link(name), do: GenServer.start_link(__MODULE__, [], name: name)
  def open(name, step), do: GenServer.call(__MODULE__, {:open, name, step})
  def open_soon(name, step), do: GenServer.call(__MODULE__, {:open_soon, name, step})
  def open_in_task(name, step), do: GenServer.call(__MODULE__, {:open_in_task, name, step})
  def request(desk, name, step), do: send(desk, {:open, name, step, self()})

  @impl true
  def init([]), do: {:ok, []}

  @impl true
  def handle_call({:open, name, step}, _from, desk), do: {:reply, start(name, step), desk}
  def handle_call({:open_soon, name, step}, from, desk), do: {:noreply, desk, {:continue, {name, step, from}}}

  def handle_call({:open_in_task, name, step}, from, desk) do
    Task.Supervisor.start_child(Web.Tasks, fn -> GenServer.reply(from, start(name, step)) end)
    {:noreply, desk}
  end

  @impl true
  def handle_continue({name, step, from}, desk) do
    GenServer.reply(from, start(name, step))
    {:noreply, desk}
  end

  @impl true
  def handle_info({:open, name, step, from}, desk) do
    send(from, {:opened, start(name, step)})
    {:noreply, desk}
  end

  def handle_info(_, desk), do: {:noreply, desk}

  defp start(name, step), do: DynamicSupervisor.start_child(Web.Rooms, {Web.Room, {name, step}})
end
