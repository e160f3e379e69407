# Programs that are searched: those with a fault (`true`) go wrong in some order, and their repaired twins (`false`) in none.
defmodule Searched.Counter do
  use GenServer

  def start_link(n, opts \\ []), do: GenServer.start_link(__MODULE__, n, opts)

  @impl true
  def init(n), do: {:ok, n}

  @impl true
  def handle_call(:get, _, n), do: {:reply, n, n}
  def handle_call({:put, n}, _, _), do: {:reply, :ok, n}
  def handle_call(:bump, _, n), do: {:reply, n + 1, n + 1}
end

defmodule Searched do
  alias Searched.Counter

  # Two clients count in a server, each with two calls.
  def server(fault) do
    {:ok, counter} = Counter.start_link(0)

    bump = fn
      true -> GenServer.call(counter, {:put, GenServer.call(counter, :get) + 1})
      false -> GenServer.call(counter, :bump)
    end

    Task.await_many(for _ <- 1..2, do: Task.async(fn -> bump.(fault) end))
    2 = GenServer.call(counter, :get)
    :ok
  end

  # Two tasks have a result; only the later one is awaited.
  def task(fault) do
    table = :ets.new(:results, [:public])
    [one, two] = for i <- 1..2, do: Task.async(fn -> :ets.insert(table, {i, i * i}) end)
    true = Task.await(two)
    unless fault, do: true = Task.await(one)
    [{1, 1}, {2, 4}] = Enum.sort(:ets.tab2list(table))
    :ok
  end

  # A task has its result, and is still a child of its supervisor.
  def task_supervisor(fault) do
    {:ok, tasks} = Task.Supervisor.start_link(max_children: 1)
    4 = Task.await(Task.Supervisor.async_nolink(tasks, fn -> 2 + 2 end))

    case Task.Supervisor.start_child(tasks, fn -> :ok end) do
      {:ok, _} -> :ok
      {:error, :max_children} when not fault -> :ok
    end
  end

  # A task is given up, and its result may have come before.
  def shutdown(fault) do
    {:ok, agent} = Agent.start_link(fn -> [] end)
    task = Task.async(fn -> Agent.update(agent, &[:done | &1]) end)
    _ = Agent.get(agent, & &1)

    case Task.yield(task, 0) || Task.shutdown(task) do
      nil -> if fault, do: [] = Agent.get(agent, & &1)
      {:ok, :ok} -> [:done] = Agent.get(agent, & &1)
    end

    :ok
  end

  # Two processes change the state of an agent, each with two calls.
  def agent(fault) do
    {:ok, agent} = Agent.start_link(fn -> 0 end)

    bump = fn
      true ->
        n = Agent.get(agent, & &1)
        Agent.update(agent, fn _ -> n + 1 end)

      false ->
        Agent.update(agent, &(&1 + 1))
    end

    Task.await_many(for _ <- 1..2, do: Task.async(fn -> bump.(fault) end))
    2 = Agent.get(agent, & &1)
    :ok
  end

  # Two processes look whether a key is free, and take it.
  def registry(fault) do
    {:ok, _} = Registry.start_link(keys: :unique, name: Searched.Names)

    take = fn ->
      case Registry.lookup(Searched.Names, :key) do
        [] ->
          case Registry.register(Searched.Names, :key, self()) do
            {:ok, _} -> :ok
            {:error, {:already_registered, _}} when not fault -> :ok
          end

        [_] ->
          :ok
      end
    end

    Task.await_many(for _ <- 1..2, do: Task.async(take))
    :ok
  end

  # A server is called by its name in a registry, and has ended.
  def via(fault) do
    {:ok, _} = Registry.start_link(keys: :unique, name: Searched.Servers)
    name = {:via, Registry, {Searched.Servers, :counter}}
    {:ok, _} = GenServer.start(Counter, 0, name: name)

    ask = fn ->
      try do
        0 = GenServer.call(name, :get)
      catch
        :exit, _ when not fault -> 0
      end
    end

    Task.await_many([Task.async(ask), Task.async(fn -> GenServer.stop(name) end)])
    :ok
  end

  # A subscriber is told of what comes after it has subscribed.
  def subscribe(fault) do
    {:ok, _} = Registry.start_link(keys: :duplicate, name: Searched.Topics)

    subscriber =
      Task.async(fn ->
        {:ok, _} = Registry.register(Searched.Topics, :news, nil)
        receive(do: ({:news, n} -> n), after: (1000 -> :none))
      end)

    other = Task.async(fn -> Registry.count(Searched.Topics) end)
    _ = Task.await(other)
    unless fault, do: subscribed()
    Registry.dispatch(Searched.Topics, :news, fn all -> for {pid, _} <- all, do: send(pid, {:news, 1}) end)
    1 = Task.await(subscriber)
    :ok
  end

  defp subscribed do
    if Registry.lookup(Searched.Topics, :news) == [] do
      Process.sleep(1)
      subscribed()
    end
  end

  # Two processes start the same child.
  def dynamic(fault) do
    {:ok, supervisor} = DynamicSupervisor.start_link(strategy: :one_for_one)
    child = %{id: Counter, start: {Counter, :start_link, [0, [name: Counter]]}}

    ensure = fn ->
      if Process.whereis(Counter) == nil do
        case DynamicSupervisor.start_child(supervisor, child) do
          {:ok, _} -> :ok
          {:error, {:already_started, _}} when not fault -> :ok
        end
      end
    end

    later = fn ->
      _ = DynamicSupervisor.count_children(supervisor)
      ensure.()
    end

    Task.await_many([Task.async(ensure), Task.async(later)])
    0 = GenServer.call(Counter, :get)
    :ok
  end

  # A child is called by its name while its supervisor starts it again.
  def restart(fault) do
    children = [%{id: Counter, start: {Counter, :start_link, [0, [name: Counter]]}}]
    {:ok, supervisor} = Supervisor.start_link(children, strategy: :one_for_one)

    ask = fn ->
      try do
        0 = GenServer.call(Counter, :get)
      catch
        :exit, _ when not fault -> 0
      end
    end

    kill = fn -> if pid = Process.whereis(Counter), do: Process.exit(pid, :kill) end
    Task.await_many([Task.async(ask), Task.async(kill)])
    :ok = Supervisor.stop(supervisor)
  end
end
