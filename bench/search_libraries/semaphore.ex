defmodule Search.Semaphore do
  @moduledoc "Uses of semaphore (github.com/discord/semaphore) as its README has them."

  # The functions that are searched, with their arguments, and whether they pass or fail.
  def uses do
    [{:calls, [], :passed}, {:acquires, [], :passed}, {:linksafe, [], :passed}, {:killed, [], :failed}]
  end

  # At most two processes at a time.
  def calls do
    start()
    inside = :counters.new(1, [])

    work = fn ->
      Semaphore.call(:work, 2, fn ->
        :counters.add(inside, 1, 1)
        true = :counters.get(inside, 1) <= 2
        :counters.sub(inside, 1, 1)
      end)
    end

    Task.await_many(for _ <- 1..4, do: Task.async(work))
    0 = Semaphore.count(:work)
    :ok
  end

  def acquires do
    start()
    Task.await_many(for _ <- 1..3, do: Task.async(fn -> if Semaphore.acquire(:work, 1), do: Semaphore.release(:work) end))
    0 = Semaphore.count(:work)
    :ok
  end

  def linksafe do
    start()

    Task.await_many(
      for _ <- 1..3 do
        Task.async(fn -> if Semaphore.acquire_linksafe(:work, 1, 2), do: Semaphore.release_linksafe(:work, 1) end)
      end
    )

    0 = Semaphore.count(:work)
    :ok
  end

  # A process is killed that may have the semaphore: the sweeper releases it, and once. It does not if the process is killed
  # between the two changes of the tables.
  def killed do
    start()
    {pid, ref} = spawn_monitor(fn -> Semaphore.call_linksafe(:work, 1, fn -> receive(do: (:never -> :ok)) end) end)
    {_, other} = spawn_monitor(fn -> Process.exit(pid, :kill) end)
    receive(do: ({:DOWN, ^ref, _, _, _} -> :ok))
    receive(do: ({:DOWN, ^other, _, _, _} -> :ok))
    Process.sleep(20_000)
    0 = Semaphore.count(:work)
    :ok
  end

  defp start, do: {:ok, _} = Semaphore.start_link()
end
