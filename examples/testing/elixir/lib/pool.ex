defmodule Pool do
  @moduledoc """
  Lends connections, each to one user at a time.

  With `POOL=buggy` in the environment a connection that is given back twice is there twice, and then lent to two users.
  """

  use GenServer

  def start_link(connections), do: GenServer.start_link(__MODULE__, connections)

  def checkout(pool), do: GenServer.call(pool, :checkout)
  def checkin(pool, connection), do: GenServer.cast(pool, {:checkin, connection})

  @impl true
  def init(connections), do: {:ok, {System.get_env("POOL", "correct"), connections}}

  @impl true
  def handle_call(:checkout, _from, {variant, [connection | free]}),
    do: {:reply, {:lent, connection}, {variant, free}}

  def handle_call(:checkout, _from, {variant, []}), do: {:reply, :empty, {variant, []}}

  @impl true
  def handle_cast({:checkin, connection}, {variant, free}) do
    if variant != "buggy" and connection in free do
      {:noreply, {variant, free}}
    else
      {:noreply, {variant, [connection | free]}}
    end
  end
end
