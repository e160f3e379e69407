defmodule GenStage do
  @moduledoc "As the library of this name: its own module has the callbacks, and calls those of the author."

  def start_link(module, args), do: GenServer.start_link(__MODULE__, {module, args})

  def init({module, args}) do
    {:producer, state} = module.init(args)
    {:ok, {module, state}}
  end

  def handle_call(request, _from, {module, state}) do
    {:reply, reply, state} = module.handle_call(request, state)
    {:reply, reply, {module, state}}
  end

  def handle_cast(_, state), do: {:noreply, state}
  def handle_info(_, state), do: {:noreply, state}
  def terminate(_, _), do: :ok
end

defmodule Wrapped.Library do
  @moduledoc "A server for the modules that use it, as a project may have one."
  use GenServer

  def start_link(module, args), do: GenServer.start_link(__MODULE__, {:start, module, args})

  @impl true
  def init({:start, module, args}), do: {:ok, {module, module.setup(args)}}

  @impl true
  def handle_call(request, _from, {module, state}), do: {:reply, {module, request}, {module, state}}
end

defmodule Wrapped.Options do
  @moduledoc "The same with a list of options, and with a map."
  use GenServer

  def start_link(module, options), do: GenServer.start_link(__MODULE__, [name: :any, module: module] ++ options)
  def start_map(module, args), do: GenServer.start_link(__MODULE__, %{args: args, module: module, other: 1})

  @impl true
  def init(options), do: {:ok, options}

  @impl true
  def handle_call(request, _from, state), do: {:reply, request, state}
end

defmodule Wrapped.Stage do
  def init(number), do: {:producer, number}
  def handle_call(request, number), do: {:reply, {request, number}, number}
end

defmodule Wrapped.Cart do
  def setup(items), do: items
end

defmodule Wrapped do
  @moduledoc "One process of each kind, and twelve tasks."

  def main(_) do
    {:ok, stage} = GenStage.start_link(Wrapped.Stage, 7)
    {:ok, cart} = Wrapped.Library.start_link(Wrapped.Cart, [:book])
    {:ok, option} = Wrapped.Options.start_link(Wrapped.Option, limit: 3)
    {:ok, map} = Wrapped.Options.start_map(Wrapped.Map, 5)
    {:ok, supervisor} = Supervisor.start_link([], strategy: :one_for_one)
    servers = [stage, cart, option, map]
    Enum.each(servers, fn server -> GenServer.call(server, :hello) end)
    Enum.each(1..12, fn number -> work(number) end)
    Enum.each([supervisor | servers], &GenServer.stop/1)
  end

  defp work(number) do
    {:ok, task} = Task.start_link(__MODULE__, :job, [number])
    ref = Process.monitor(task)

    receive do
      {:DOWN, ^ref, _, _, _} -> :ok
    end
  end

  def job(number), do: number
end
