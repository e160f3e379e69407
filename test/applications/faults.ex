defmodule Faults do
  @moduledoc """
  Systems with one fault each that no specification names, and their repaired twins, as Elixir writes them. The process at fault
  says so before it goes wrong.
  """
  use GenServer

  def at_fault, do: :persistent_term.put(:witness_checks_system, self())

  # --- crashes that nothing handles, and their twins

  def a_task_raises do
    {:ok, task} = Task.start(fn -> at_fault() && raise("boom") end)
    ends(task)
  end

  def a_server_raises_in_a_cast do
    {:ok, server} = GenServer.start(__MODULE__, :at_fault)
    GenServer.cast(server, :crash)
    ends(server)
  end

  def a_task_is_awaited do
    3 = Task.await(Task.async(fn -> 1 + 2 end))
  end

  def a_task_that_raises_is_caught do
    Process.flag(:trap_exit, true)
    task = Task.async(fn -> raise("boom") end)
    {:exit, {%RuntimeError{}, _}} = Task.yield(task, :infinity)
  end

  # --- calls without an answer, and their twins

  def a_timeout_is_caught do
    {:ok, server} = GenServer.start(__MODULE__, :quiet)

    caller =
      spawn(fn ->
        at_fault()

        try do
          GenServer.call(server, :never, 20)
        catch
          :exit, {:timeout, _} -> :ok
        end
      end)

    ends(caller)
    GenServer.stop(server)
  end

  def calls_are_answered do
    {:ok, agent} = Agent.start(fn -> 1 end)
    1 = Agent.get(agent, & &1)
    Agent.stop(agent)
  end

  # --- deadlocks

  def servers_call_each_other do
    {:ok, first} = GenServer.start(__MODULE__, :quiet)
    {:ok, second} = GenServer.start(__MODULE__, {:next, first})
    :ok = GenServer.call(first, {:next, second})
    GenServer.call(first, :forward, :infinity)
  end

  def a_server_awaits_a_task_that_calls_it do
    {:ok, server} = GenServer.start(__MODULE__, :quiet)
    GenServer.call(server, {:await, :infinity}, :infinity)
  end

  # --- supervisors that give up, and their twins

  def a_child_raises_again_and_again do
    Process.flag(:trap_exit, true)
    {:ok, supervisor} = Supervisor.start_link([{__MODULE__, :crashes}], strategy: :one_for_one, max_restarts: 2)
    receive do: ({:EXIT, ^supervisor, :shutdown} -> :ok)
  end

  def a_dynamic_child_raises_once do
    {:ok, supervisor} = DynamicSupervisor.start_link(strategy: :one_for_one)
    {:ok, child} = DynamicSupervisor.start_child(supervisor, {__MODULE__, :quiet})
    GenServer.cast(child, :crash)
    ends(child)
    DynamicSupervisor.stop(supervisor, :shutdown)
  catch
    :exit, _ -> :ok
  end

  # --- what is still there, and their twins

  def an_agent_is_not_stopped do
    {:ok, _} = Agent.start(fn -> at_fault() end)
  end

  def an_agent_is_stopped do
    {:ok, agent} = Agent.start(fn -> 0 end)
    Agent.stop(agent)
  end

  def a_server_with_a_table_is_not_stopped do
    {:ok, server} = GenServer.start(__MODULE__, :at_fault, name: Faults.Kitchen)
    GenServer.call(server, {:open, :orders})
  end

  # --- monitors, of servers that have the name of the system, and go on

  def a_server_monitors_at_each_request, do: ask_often(:a_server_monitors_at_each_request, :monitor)

  def a_server_demonitors_after_each_request, do: ask_often(:a_server_demonitors_after_each_request, :monitor_and_demonitor)

  defp ask_often(name, what) do
    {:ok, server} = GenServer.start(__MODULE__, :quiet, name: name)
    ask_again(server, what)
  end

  defp ask_again(server, what) do
    for _ <- 1..5, do: :ok = GenServer.call(server, what)
    Process.sleep(1)
    ask_again(server, what)
  end

  # --- mailboxes

  def a_message_of_a_task_is_left do
    spawn(fn ->
      at_fault()
      Task.async(fn -> :not_awaited end)
      receive do: (:never -> :ok)
    end)
  end

  def init(:at_fault), do: at_fault() && {:ok, :quiet}
  def init(:crashes), do: {:ok, :quiet, {:continue, :crash}}
  def init(state), do: {:ok, state}

  def start_link(argument), do: GenServer.start_link(__MODULE__, argument)

  def handle_continue(:crash, _), do: raise("boom")

  def handle_call({:next, next}, _, _), do: {:reply, :ok, {:next, next}}
  def handle_call(:forward, _, {:next, next}), do: {:reply, GenServer.call(next, :forward, :infinity), {:next, next}}
  def handle_call(:never, _, state), do: {:noreply, state}

  def handle_call(:monitor, {client, _}, state) do
    Process.monitor(client)
    {:reply, :ok, state}
  end

  def handle_call(:monitor_and_demonitor, {client, _}, state) do
    client |> Process.monitor() |> Process.demonitor([:flush])
    {:reply, :ok, state}
  end

  def handle_call({:open, table}, _, state) do
    :ets.insert(:ets.new(table, []), {:soup, 1})
    {:reply, :ok, state}
  end

  def handle_call(:what, _, state), do: {:reply, :ok, state}

  def handle_call({:await, timeout}, _, state) do
    server = self()
    task = Task.async(fn -> GenServer.call(server, :what, :infinity) end)
    {:reply, Task.await(task, timeout), state}
  end

  def handle_cast(:crash, _), do: raise("boom")

  defp ends(process) do
    if Process.alive?(process) do
      receive do
      after
        5 -> ends(process)
      end
    end
  end
end
