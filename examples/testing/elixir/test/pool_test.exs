defmodule PoolTest do
  use ExUnit.Case, async: true
  use Witness.Case, specs: ["specs/pool.hml"]

  setup do
    %{pool: start_supervised!({Pool, [:db1, :db2]})}
  end

  # All assertions hold with the bug too.
  test "gives and takes", %{pool: pool} do
    {:lent, first} = Pool.checkout(pool)
    Pool.checkin(pool, first)
    Pool.checkin(pool, first)
    assert {:lent, _} = Pool.checkout(pool)
    assert {:lent, _} = Pool.checkout(pool)
  end

  test "lends to users", %{pool: pool} do
    for _ <- 1..2 do
      task =
        Task.async(fn ->
          {:lent, connection} = Pool.checkout(pool)
          Pool.checkin(pool, connection)
        end)

      assert Task.await(task) == :ok
    end
  end

  @tag witness: false
  test "is not watched", %{pool: pool} do
    assert {:lent, _} = Pool.checkout(pool)
  end

  @tag witness: [specs: [], unmonitored: :ignore]
  test "watches a part of itself" do
    lent =
      Witness.Case.check("specs/pool.hml", fn ->
        {:ok, pool} = Pool.start_link([:db1])
        Pool.checkout(pool)
      end)

    assert lent == {:lent, :db1}
  end
end

defmodule ManyPoolsTest do
  use Witness.Case, async: true, specs: "specs/pool.hml"

  for size <- 1..4 do
    test "a pool of #{size} lends all" do
      {:ok, pool} = Pool.start_link(Enum.to_list(1..unquote(size)))
      for n <- 1..unquote(size), do: assert(Pool.checkout(pool) == {:lent, n})
      assert Pool.checkout(pool) == :empty
    end
  end
end
