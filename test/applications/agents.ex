defmodule Agents do
  @moduledoc "An agent and a task, for tests that weave them."

  def first(number), do: number

  def main(_) do
    {:ok, agent} = Agent.start_link(Agents, :first, [0])
    :ok = Agent.update(agent, fn number -> number + 1 end)
    1 = Agent.get(agent, & &1)
    :ok = Agent.cast(agent, fn number -> number + 1 end)
    {:ok, task} = Task.start_link(Agents, :first, [7])
    ref = Process.monitor(task)

    receive do
      {:DOWN, ^ref, _, _, _} -> Agent.stop(agent)
    end
  end
end
