# Each test has a room of its own, which the application starts when a channel asks for it. The variable BROKEN has the numbers of
# the tests with a room that counts down, such as "1.3 2.7". All assertions hold with these, too.
broken = String.split(System.get_env("BROKEN", ""))

for module <- 1..6 do
  defmodule :"Elixir.Chat#{module}Test" do
    use ExUnit.Case, async: true
    use Witness.Case, specs: ["specs/room.hml"], unmonitored: :fail
    import Phoenix.ChannelTest
    @endpoint Chat.Endpoint

    for number <- 1..8 do
      name = "#{module}.#{number}"
      @room name
      @step if(name in broken, do: -1, else: 1)

      test "#{name} counts" do
        {:ok, socket} = connect(Chat.Socket, %{"step" => @step})
        {:ok, _, socket} = subscribe_and_join(socket, "room:" <> @room, %{})

        for said <- 1..10 do
          ref = push(socket, "say", %{"text" => "hello"})
          count = said * @step
          assert_reply(ref, :ok, %{count: ^count})
          assert_broadcast("said", %{count: ^count})
        end

        Process.unlink(socket.channel_pid)
      end
    end
  end
end
