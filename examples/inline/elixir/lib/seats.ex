defmodule Seats do
  @moduledoc """
  Sells seats, each once.

  With `SEATS=buggy` in the environment a seat that is asked for while it is held is sold to whoever asks.
  """

  use GenServer

  def start_link(free), do: GenServer.start_link(__MODULE__, free)

  def hold(seats, seat), do: GenServer.cast(seats, {:hold, seat})
  def sell(seats, seat), do: GenServer.call(seats, {:sell, seat})

  @impl true
  def init(free), do: {:ok, {System.get_env("SEATS", "correct"), free, []}}

  @impl true
  def handle_call({:sell, seat}, _from, {variant, free, held}) do
    cond do
      seat in held and variant == "buggy" -> {:reply, {:sold, seat}, {variant, free, held}}
      seat in held -> {:reply, {:sold, seat}, {variant, free, List.delete(held, seat)}}
      seat in free -> {:reply, {:sold, seat}, {variant, List.delete(free, seat), held}}
      true -> {:reply, :taken, {variant, free, held}}
    end
  end

  @impl true
  def handle_cast({:hold, seat}, {variant, free, held}),
    do: {:noreply, {variant, List.delete(free, seat), [seat | held]}}

  @doc "An evening at the box office: its agents are tasks."
  def evening do
    {:ok, seats} = start_link([:a1, :a2])
    hold(seats, :a1)

    sold =
      for seat <- [:a1, :a2, :a1] do
        Task.async(fn -> sell(seats, seat) end) |> Task.await()
      end

    [{:sold, :a1}, {:sold, :a2} | _] = sold
    GenServer.stop(seats)
  end
end
