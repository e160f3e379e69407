defmodule SeatsTest do
  use ExUnit.Case

  # The modules were woven when they were compiled: the run loads nothing.
  test "sells each seat once" do
    {:ok, run} = :witness.start(%{system: {Seats, :evening, []}, instrument: :inline, specs: ["specs/seats.hml"]})
    {:ok, summary} = :witness.await(run, 10_000)
    {:ok, _} = :witness.stop(run)
    assert summary.outcome == :ok
  end

  # Where there is no run, they do what they always did.
  test "needs no run" do
    assert Seats.evening() == :ok
  end
end
