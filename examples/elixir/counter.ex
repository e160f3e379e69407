defmodule Counter do
  @moduledoc """
  A counter that many processes share.

  `increment/1` is one request, and safe. `value/1` followed by `set/2` is not: another process can do the same in
  between, and one of the two increments is lost.
  """

  use GenServer

  def start_link(initial), do: GenServer.start_link(__MODULE__, initial)

  def increment(counter), do: GenServer.call(counter, :increment)
  def value(counter), do: GenServer.call(counter, :value)
  def set(counter, count), do: GenServer.call(counter, {:set, count})
  def stop(counter), do: GenServer.stop(counter)

  @impl true
  def init(initial), do: {:ok, initial}

  @impl true
  def handle_call(:increment, _from, count), do: {:reply, {:count, count + 1}, count + 1}
  def handle_call({:set, count}, _from, _old), do: {:reply, {:count, count}, count}
  def handle_call(:value, _from, count), do: {:reply, count, count}
end

defmodule CounterDemo do
  @moduledoc "Two tasks that count together, with the safe request and with the unsafe pair."

  @visits 10

  @doc "Every visit is counted."
  def safe, do: report(count(&Counter.increment/1))

  @doc "Starts again, with a new counter, until visits got lost; the first time they nearly always do."
  def lossy(tries \\ 1000)

  def lossy(tries) when tries > 0 do
    case count(fn counter -> Counter.set(counter, Counter.value(counter) + 1) end) do
      @visits -> lossy(tries - 1)
      lost_some -> report(lost_some)
    end
  end

  defp report(counted), do: IO.puts("#{@visits} visits, #{counted} counted")

  defp count(visit) do
    {:ok, counter} = Counter.start_link(0)
    tasks = for _ <- 1..2, do: Task.async(fn -> visits(counter, visit) end)
    # Both tasks wait for the start signal, so that neither has finished before the other is there.
    for task <- tasks, do: send(task.pid, :go)
    Task.await_many(tasks)
    counted = Counter.value(counter)
    Counter.stop(counter)
    counted
  end

  defp visits(counter, visit) do
    receive do
      :go -> for _ <- 1..div(@visits, 2), do: visit.(counter)
    end
  end
end
