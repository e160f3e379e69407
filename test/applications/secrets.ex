# A program whose messages, states and reasons have a struct with a password that inspect/2 does not show.
defmodule Secrets.User do
  @derive {Inspect, only: [:name]}
  defstruct [:name, :password]
end

defmodule Secrets.Plain do
  defstruct [:name, :size]
end

defmodule Secrets.Till do
  use GenServer
  def start_link(user), do: GenServer.start_link(__MODULE__, user, name: __MODULE__)
  def init(user), do: {:ok, user}
  def handle_call({:ask, user}, _, s), do: {:reply, {:ok, user, "text", ~c"chars", nil, %{a: 1}}, s}
  def handle_cast(:boom, _), do: raise(ArgumentError, "no")
end

defmodule Secrets do
  def secret, do: %Secrets.User{name: "ann", password: "hunter2"}
  # No process handles the end of the server.
  def unhandled do
    {:ok, p} = Secrets.Till.start_link(secret())
    Process.unlink(p)
    GenServer.call(p, {:ask, secret()})
    send(p, {:note, %Secrets.Plain{name: "x", size: 2}, :left})
    GenServer.cast(p, :boom)
    until_gone(p)
  end

  defp until_gone(p), do: if(Process.alive?(p), do: until_gone(p), else: :ok)

  def wrong(x), do: {:ok, _} = x

  def main(arg \\ :left) do
    {:ok, p} = Secrets.Till.start_link(secret())
    Process.unlink(p)
    GenServer.call(p, {:ask, secret()})
    send(self(), {:note, %Secrets.Plain{name: "x", size: 2}, arg})
    receive do {:note, _, _} -> :ok end
    {_, ref} = spawn_monitor(fn -> exit({:shutdown, secret()}) end)
    receive do {:DOWN, ^ref, _, _, _} -> :ok end
    GenServer.call(p, {:ask, :last})
    GenServer.stop(p, {:shutdown, secret()})
  end
end
