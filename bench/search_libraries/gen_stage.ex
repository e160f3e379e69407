defmodule Search.GenStage.Numbers do
  @moduledoc "Produces the numbers from 1 to the last one."
  use GenStage

  def init({last, options}), do: {:producer, {1, last}, options}

  def handle_demand(demand, {next, last}) do
    stop = min(last, next + demand - 1)
    {:noreply, Enum.to_list(next..stop//1), {stop + 1, last}}
  end
end

defmodule Search.GenStage.Doubles do
  @moduledoc "Doubles each event."
  use GenStage

  def init(options), do: {:producer_consumer, nil, options}
  def handle_events(events, _, state), do: {:noreply, for(n <- events, do: 2 * n), state}
end

defmodule Search.GenStage.Sink do
  @moduledoc "Tells a process of each event. After the last one that it wants it ends."
  use GenStage

  def init({to, most, options}), do: {:consumer, {to, most}, options}

  def handle_events(events, _, {to, most}) do
    for n <- events, do: send(to, {self(), n})
    left = most - length(events)
    if left > 0, do: {:noreply, [], {to, left}}, else: {:stop, :normal, {to, left}}
  end
end

defmodule Search.GenStage.Each do
  @moduledoc "A process for each event."
  use ConsumerSupervisor

  def init({to, producer}) do
    child = %{id: :each, start: {__MODULE__, :start_link, [to]}, restart: :temporary}
    ConsumerSupervisor.init([child], strategy: :one_for_one, subscribe_to: [{producer, max_demand: 2, min_demand: 1}])
  end

  def start_link(to, n), do: Task.start_link(fn -> send(to, {self(), n}) end)
end

defmodule Search.GenStage do
  @moduledoc "Uses of gen_stage (github.com/elixir-lang/gen_stage) as its documentation has them."
  alias Search.GenStage.{Doubles, Each, Numbers, Sink}

  # The functions that are searched, with their arguments, and whether they pass or fail.
  def uses do
    [{:pipeline, [], :passed}, {:shared, [], :passed}, {:broadcast, [false], :passed}, {:broadcast, [true], :failed},
     {:partitions, [], :passed}, {:consumer_ends, [], :passed}, {:producer_ends, [], :passed}, {:supervised, [], :passed},
     {:stream, [], :passed}]
  end

  # The events come in their order.
  def pipeline do
    {:ok, numbers} = GenStage.start_link(Numbers, {6, []})
    {:ok, doubles} = GenStage.start_link(Doubles, subscribe_to: [{numbers, max_demand: 2}])
    {:ok, sink} = GenStage.start_link(Sink, {self(), 100, subscribe_to: [{doubles, max_demand: 3, min_demand: 1}]})
    for n <- 1..6, do: receive(do: ({^sink, m} -> ^m = 2 * n))
    :ok
  end

  # Each event comes to one of two consumers.
  def shared do
    {:ok, numbers} = GenStage.start_link(Numbers, {6, []})
    for _ <- 1..2, do: {:ok, _} = GenStage.start_link(Sink, {self(), 100, subscribe_to: [{numbers, max_demand: 2}]})
    [1, 2, 3, 4, 5, 6] = Enum.sort(for _ <- 1..6, do: receive(do: ({_, n} -> n)))
    receive(do: ({_, n} -> exit({:twice, n})), after: (100 -> :ok))
  end

  # Each event comes to both consumers, if both have subscribed before the demand goes to the producer.
  def broadcast(fault) do
    {:ok, numbers} = GenStage.start_link(Numbers, {4, dispatcher: GenStage.BroadcastDispatcher, demand: :accumulate})
    me = self()

    start = fn ->
      {:ok, sink} = GenStage.start(Sink, {me, 100, []})
      {:ok, _} = GenStage.sync_subscribe(sink, to: numbers, max_demand: 2)
      sink
    end

    [one, two] = for _ <- 1..2, do: Task.async(start)

    sinks =
      if fault do
        later = Task.await(two)
        GenStage.demand(numbers, :forward)
        [Task.await(one), later]
      else
        both = Task.await_many([one, two])
        GenStage.demand(numbers, :forward)
        both
      end

    for sink <- sinks, n <- 1..4, do: receive(do: ({^sink, ^n} -> :ok))
    :ok
  end

  # A consumer for the even numbers, and one for the odd ones.
  def partitions do
    dispatcher = {GenStage.PartitionDispatcher, partitions: 2, hash: fn n -> {n, rem(n, 2)} end}
    {:ok, numbers} = GenStage.start_link(Numbers, {6, dispatcher: dispatcher})

    [even, odd] =
      for partition <- 0..1 do
        {:ok, sink} = GenStage.start_link(Sink, {self(), 100, subscribe_to: [{numbers, partition: partition, max_demand: 2}]})
        sink
      end

    for n <- [2, 4, 6], do: receive(do: ({^even, ^n} -> :ok))
    for n <- [1, 3, 5], do: receive(do: ({^odd, ^n} -> :ok))
    :ok
  end

  # A consumer ends; the other one goes on.
  def consumer_ends do
    {:ok, numbers} = GenStage.start_link(Numbers, {20, []})
    {:ok, _} = GenStage.start(Sink, {self(), 1, subscribe_to: [{numbers, max_demand: 1, cancel: :temporary}]})
    {:ok, other} = GenStage.start(Sink, {self(), 100, subscribe_to: [{numbers, max_demand: 2}]})
    taken = for _ <- 1..4, do: receive(do: ({^other, n} -> n))
    ^taken = Enum.sort(taken)
    :ok
  end

  # The producer ends: the consumer ends too.
  def producer_ends do
    {:ok, numbers} = GenStage.start(Numbers, {4, []})
    {:ok, sink} = GenStage.start(Sink, {self(), 100, subscribe_to: [{numbers, max_demand: 1, min_demand: 0}]})
    ref = Process.monitor(sink)
    :ok = GenStage.stop(numbers)
    receive(do: ({:DOWN, ^ref, _, _, reason} when reason in [:normal, :noproc] -> :ok))
  end

  # A process for each event.
  def supervised do
    {:ok, numbers} = GenStage.start_link(Numbers, {5, []})
    {:ok, _} = ConsumerSupervisor.start_link(Each, {self(), numbers})
    [1, 2, 3, 4, 5] = Enum.sort(for _ <- 1..5, do: receive(do: ({_, n} -> n)))
    :ok
  end

  # The events of two producers as a stream.
  def stream do
    stages = for _ <- 1..2, do: elem(GenStage.start_link(Numbers, {3, []}), 1)
    [1, 1, 2, 2, 3, 3] = for(s <- stages, do: {s, max_demand: 2}) |> GenStage.stream() |> Enum.take(6) |> Enum.sort()
    :ok
  end
end
