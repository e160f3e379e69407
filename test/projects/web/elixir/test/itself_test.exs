# The process of a test is observed itself.
defmodule ItselfTest do
  use ExUnit.Case, async: true
  use Witness.Case, specs: ["specs/itself.hml"]

  for {name, rooms} <- [once: 1, twice: 2] do
    test "opens #{name}" do
      for n <- 1..unquote(rooms), do: assert({:ok, _} = Web.Desk.open("#{unquote(name)} #{n}", 1))
    end
  end
end

defmodule NodeTest do
  use Witness.Case, specs: ["specs/room.hml"], scope: :node, unmonitored: :fail, async: false

  # Nothing else tells that the room is opened for this test.
  test "watches all" do
    Web.Desk.request(Web.Desk, "node", 1)
    assert_receive {:opened, {:ok, room}}
    assert Web.Room.say(room) == 1
  end
end

defmodule NotTest do
  use Witness.Case, specs: ["specs/room.hml"]

  test "does not watch all" do
    Web.Desk.request(Web.Desk, "not", 1)
    assert_receive {:opened, {:ok, _}}
  end

  test "allows what is not there" do
    assert_raise ExUnit.AssertionError, ~r/no process Web.Nothing on this node/, fn -> Witness.Case.allow(Web.Nothing) end
    other = spawn_link(fn -> Process.sleep(:infinity) end)
    assert_raise ExUnit.AssertionError, ~r/not the process of a test/, fn -> Witness.Case.allow(Web.Desk, other) end
    Process.unlink(other)
    Process.exit(other, :kill)
  end
end
