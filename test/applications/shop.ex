defmodule Shop do
  @moduledoc """
  A shop with carts, for tests of applications: an application of Elixir with the three things that most have, a registry with
  partitions, a supervisor of tasks and one of servers that come and go.
  """

  defmodule Application do
    use Elixir.Application

    def start(_type, _args) do
      children = [
        {Registry, keys: :unique, name: Shop.Registry, partitions: 4},
        {Task.Supervisor, name: Shop.Tasks},
        {DynamicSupervisor, name: Shop.Carts, strategy: :one_for_one, max_restarts: 1000}
      ]

      Supervisor.start_link(children, strategy: :one_for_one, name: Shop.Supervisor)
    end
  end

  defmodule Cart do
    use GenServer, restart: :transient

    def start_link(name), do: GenServer.start_link(__MODULE__, name, name: Shop.cart(name))

    @impl true
    def init(name), do: {:ok, {name, 0}}

    @impl true
    def handle_call({:add, _}, from, {name, sum}) when sum > 100, do: exit({:too_heavy, name, from})
    def handle_call({:add, price}, _from, {name, sum}), do: {:reply, {name, sum + price}, {name, sum + price}}
    def handle_call(:pay, _from, {name, sum}), do: {:stop, :normal, {name, :paid, sum}, {name, sum}}
  end

  def cart(name), do: {:via, Registry, {Shop.Registry, name}}

  def open(name), do: DynamicSupervisor.start_child(Shop.Carts, {Shop.Cart, name})

  def add(name, price), do: GenServer.call(cart(name), {:add, price})

  def pay(name), do: GenServer.call(cart(name), :pay)

  def worth(prices), do: Enum.sum(prices)

  @doc "Each customer fills a cart by tasks of its own, and pays. What the customers were told."
  def customers(number, prices) do
    1..number
    |> Enum.map(fn name -> Elixir.Task.Supervisor.async(Shop.Tasks, Shop, :customer, [name, prices]) end)
    |> Elixir.Task.await_many(60_000)
  end

  def customer(name, prices) do
    {:ok, _} = open(name)
    me = self()

    for price <- prices do
      {:ok, _} = Task.Supervisor.start_child(Shop.Tasks, fn -> send(me, {:added, add(name, price)}) end)
    end

    sums = for _ <- prices, do: receive(do: ({:added, {^name, sum}} -> sum))
    {pay(name), Enum.max(sums)}
  end

  @doc "A cart that breaks under its load is restarted, and empty."
  def break(name) do
    {:ok, first} = open(name)
    {^name, 101} = add(name, 101)

    try do
      add(name, 1)
    catch
      :exit, {{:too_heavy, ^name, _}, _} -> :ok
    end

    ref = Process.monitor(first)
    receive(do: ({:DOWN, ^ref, _, _, _} -> :ok))
    again(name, first)
  end

  # The supervisor starts it anew on its own account: until then the name is no process's, or still that of the dead.
  defp again(name, first) do
    _ = DynamicSupervisor.which_children(Shop.Carts)

    case Registry.lookup(Shop.Registry, name) do
      [{pid, _}] when pid != first -> pay(name)
      _ -> again(name, first)
    end
  end
end
