defmodule Pool.MixProject do
  use Mix.Project

  def project do
    [app: :pool, version: "0.1.0", elixir: "~> 1.15", deps: deps()]
  end

  def application, do: []

  # Where this is not in a checkout of Witness: {:witness, git: "...", only: :test, runtime: false}
  defp deps do
    [{:witness, path: "../../..", only: :test, runtime: false}]
  end
end
