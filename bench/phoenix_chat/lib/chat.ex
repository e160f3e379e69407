defmodule Chat do
  @moduledoc "A chat of Phoenix: a channel for each user, a room that counts what is said, and a task for each broadcast."
  use Application

  @impl true
  def start(_type, _args) do
    Supervisor.start_link(
      [
        {Phoenix.PubSub, name: Chat.PubSub},
        {DynamicSupervisor, name: Chat.Rooms},
        {Registry, keys: :unique, name: Chat.Names},
        {Task.Supervisor, name: Chat.Tasks},
        Chat.Endpoint
      ],
      strategy: :one_for_one
    )
  end
end

defmodule Chat.Endpoint do
  use Phoenix.Endpoint, otp_app: :chat
  socket "/socket", Chat.Socket, websocket: true
end

defmodule Chat.Socket do
  use Phoenix.Socket
  channel "room:*", Chat.Channel

  def connect(params, socket, _info), do: {:ok, assign(socket, :step, params["step"])}
  def id(_socket), do: nil
end

defmodule Chat.Room do
  @moduledoc "Counts up, or down with the step -1."
  use GenServer

  def start_link({name, step}), do: GenServer.start_link(__MODULE__, step, name: {:via, Registry, {Chat.Names, name}})
  def say(room), do: GenServer.call(room, :say)

  def find(name, step) do
    case DynamicSupervisor.start_child(Chat.Rooms, {__MODULE__, {name, step}}) do
      {:ok, room} -> room
      {:error, {:already_started, room}} -> room
    end
  end

  @impl true
  def init(step), do: {:ok, {0, step}}

  @impl true
  def handle_call(:say, _from, {count, step}), do: {:reply, count + step, {count + step, step}}
end

defmodule Chat.Channel do
  use Phoenix.Channel

  def join("room:" <> name, _params, socket), do: {:ok, assign(socket, :room, Chat.Room.find(name, socket.assigns.step))}

  def handle_in("say", %{"text" => text}, socket) do
    count = Chat.Room.say(socket.assigns.room)
    Task.Supervisor.start_child(Chat.Tasks, fn -> Chat.Endpoint.broadcast!(socket.topic, "said", %{text: text, count: count}) end)
    {:reply, {:ok, %{count: count}}, socket}
  end
end

defmodule Chat.ErrorJSON do
  def render(template, _assigns), do: %{error: template}
end
