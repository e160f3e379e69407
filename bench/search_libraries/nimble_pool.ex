defmodule Search.NimblePool do
  @moduledoc "Uses of nimble_pool (github.com/dashbitco/nimble_pool) as its README has them. Its resources are references."
  @behaviour NimblePool

  # The functions that are searched, with their arguments, and whether they pass or fail.
  def uses do
    [{:checkouts, [[]], :passed}, {:checkouts, [[lazy: true]], :passed}, {:clients_end, [], :passed}, {:removes, [], :passed},
     {:timeouts, [], :passed}, {:async, [], :passed}, {:idle, [], :passed}]
  end

  # No resource has two clients at once.
  def checkouts(options) do
    pool = pool([pool_size: 2] ++ options)
    busy = :ets.new(:busy, [:public])
    Task.await_many(for _ <- 1..4, do: Task.async(fn -> exclusively(pool, busy, :ok) end))
    :ok = NimblePool.stop(pool)
  end

  # Clients are killed: others get the resource.
  def clients_end do
    pool = pool(pool_size: 1)

    {pid, _} = spawn_monitor(fn -> NimblePool.checkout!(pool, :out, fn _, _ -> receive(do: (:never -> :ok)) end) end)
    kill = Task.async(fn -> Process.exit(pid, :kill) end)
    Task.await_many([kill | for(_ <- 1..2, do: Task.async(fn -> NimblePool.checkout!(pool, :out, fn _, ref -> {ref, :ok} end) end))])
    :ok = NimblePool.stop(pool)
  end

  # Resources are removed, and others take their places.
  def removes do
    pool = pool(pool_size: 1)
    busy = :ets.new(:busy, [:public])
    refs = Task.await_many(for _ <- 1..3, do: Task.async(fn -> exclusively(pool, busy, :remove) end))
    3 = length(Enum.uniq(refs))
    :ok = NimblePool.stop(pool)
  end

  # A client waits for too short a time.
  def timeouts do
    pool = pool(pool_size: 1)
    hold = fn -> NimblePool.checkout!(pool, :out, fn _, ref -> Process.sleep(10) && {ref, :ok} end) end

    short = fn ->
      try do
        NimblePool.checkout!(pool, :out, fn _, ref -> {ref, :ok} end, 5)
      catch
        :exit, {:timeout, _} -> :late
      end
    end

    Task.await_many([Task.async(hold), Task.async(short), Task.async(short)])
    true = is_reference(NimblePool.checkout!(pool, :out, fn _, ref -> {ref, :ok} end))
    :ok = NimblePool.stop(pool)
  end

  # Resources are made in tasks.
  def async do
    pool = pool(pool_size: 2, worker: {__MODULE__, :async})
    busy = :ets.new(:busy, [:public])
    Task.await_many(for _ <- 1..3, do: Task.async(fn -> exclusively(pool, busy, :ok) end))
    :ok = NimblePool.stop(pool)
  end

  # Resources at rest are looked at.
  def idle do
    pool = pool(pool_size: 2, worker_idle_timeout: 10)
    busy = :ets.new(:busy, [:public])
    Task.await_many(for _ <- 1..3, do: Task.async(fn -> exclusively(pool, busy, :ok) end))
    Process.sleep(25)
    exclusively(pool, busy, :ok)
    :ok = NimblePool.stop(pool)
  end

  defp exclusively(pool, busy, how) do
    NimblePool.checkout!(pool, :out, fn _, ref ->
      true = :ets.insert_new(busy, {ref})
      true = :ets.delete(busy, ref)
      {ref, how}
    end)
  end

  defp pool(options) do
    {:ok, _} = Task.Supervisor.start_link(name: NimblePool.TaskSupervisor)
    {:ok, pool} = NimblePool.start_link(Keyword.put_new(options, :worker, {__MODULE__, :made}))
    pool
  end

  @impl NimblePool
  def init_worker(:made), do: {:ok, make_ref(), :made}
  def init_worker(:async), do: {:async, fn -> make_ref() end, :async}

  @impl NimblePool
  def handle_checkout(:out, _, ref, state), do: {:ok, ref, ref, state}

  @impl NimblePool
  def handle_checkin(:ok, _, ref, state), do: {:ok, ref, state}
  def handle_checkin(:remove, _, _, state), do: {:remove, :used, state}

  @impl NimblePool
  def handle_ping(_, _), do: {:remove, :idle}
end
