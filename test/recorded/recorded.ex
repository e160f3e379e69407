# What the programs in Erlang do here, with the libraries of Elixir. Each process notes its steps (witness_recorded.erl).
defmodule Recorded.Counter do
  use GenServer

  def start_link(parent), do: GenServer.start_link(__MODULE__, parent, name: __MODULE__)

  @impl true
  def init(parent) do
    if parent != nil, do: :witness_recorded.born(parent)
    {:ok, %{n: 0, log: []}}
  end

  @impl true
  def handle_call({:bump, who}, {from, _}, state) do
    :witness_recorded.message(from, :_)
    state = %{state | n: state.n + 1, log: [{who, state.n} | state.log]}
    if rem(state.n, 17) == 0 do
      Process.sleep(3)
      :witness_recorded.timeout()
    end
    {:reply, state.n, state}
  end

  def handle_call(:log, {from, _}, state) do
    :witness_recorded.message(from, :_)
    {:reply, Enum.reverse(state.log), state}
  end

  @impl true
  def handle_cast({:note, from, n}, state) do
    :witness_recorded.message(from, :_)
    {:noreply, %{state | log: [n | state.log]}}
  end
end

defmodule Recorded do
  alias Recorded.Counter

  def main do
    me = self()

    {:ok, supervisor} =
      Supervisor.start_link(
        [{Counter, nil}, {Task.Supervisor, name: Recorded.Tasks}, {Registry, keys: :unique, name: Recorded.Names}],
        strategy: :one_for_one
      )

    {:ok, agent} = Agent.start_link(fn -> [] end)
    tasks = for i <- 1..5, do: Task.async(fn -> work(me, i, agent) end)
    results = Task.await_many(tasks)
    for task <- tasks, do: :witness_recorded.either([[{:spawn, task.pid}], []])

    streamed =
      Recorded.Tasks
      |> Task.Supervisor.async_stream(1..8, fn x -> {x, unique(), :rand.uniform(1000)} end,
        ordered: false,
        max_concurrency: 3
      )
      |> Enum.to_list()

    killed = Task.Supervisor.async_nolink(Recorded.Tasks, fn -> Process.exit(self(), :kill) end)
    {:exit, :killed} = Task.yield(killed, 5_000)
    :witness_recorded.content({:DOWN, :_, :process, killed.pid, :killed})
    log = GenServer.call(Counter, :log)
    :witness_recorded.message(Process.whereis(Counter), :_)
    list = Agent.get(agent, & &1)
    :witness_recorded.message(agent, :_)
    IO.puts("elixir says #{length(list)}")
    :ok = Supervisor.stop(supervisor)
    :ok = Agent.stop(agent)
    {length(results), length(streamed), length(log), length(list)}
  end

  defp work(parent, i, agent) do
    :witness_recorded.born(parent)
    {:ok, _} = Registry.register(Recorded.Names, {:worker, i}, i)
    counter = Process.whereis(Counter)

    for j <- 1..10 do
      GenServer.cast(Counter, {:note, self(), j})

      reply =
        try do
          n = GenServer.call(Counter, {:bump, {i, j}}, 2)
          :witness_recorded.message(counter, :_)
          n
        catch
          :exit, {:timeout, _} ->
            :witness_recorded.timeout()
            :timeout
        end

      Agent.update(agent, &[{i, j, reply} | &1])
      :witness_recorded.message(agent, :_)
      reply
    end
  end

  defp unique do
    :witness_recorded.result({:erlang, :unique_integer, 0}, System.unique_integer())
  end

  # A generic server of Elixir, whose processes note all that they do.
  def exactly do
    me = self()
    {:ok, counter} = Counter.start_link(me)
    :witness_recorded.either([[{:spawn, counter}, {:message, counter, {:ack, counter, {:ok, counter}}}]])

    clients =
      for i <- 1..3 do
        :witness_recorded.spawned(fn ->
          for j <- 1..20 do
            GenServer.cast(counter, {:note, self(), j})
            GenServer.call(counter, {:bump, i})
            :witness_recorded.message(counter, :_)
          end

          send(me, {:done, self()})
        end)
      end

    for client <- clients do
      receive do
        {:done, ^client} = done -> :witness_recorded.message(client, done)
      end
    end

    log = GenServer.call(counter, :log)
    :witness_recorded.message(counter, :_)
    Process.unlink(counter)
    Process.exit(counter, :shutdown)
    length(log)
  end
end
