defmodule Seats.MixProject do
  use Mix.Project

  def project do
    [
      app: :seats,
      version: "0.1.0",
      elixir: "~> 1.15",
      deps: deps(),
      compilers: Mix.compilers() ++ if(Mix.env() == :test, do: [:witness], else: []),
      witness: [specs: ["specs/seats.hml"]]
    ]
  end

  def application, do: []

  # Where this is not in a checkout of Witness: {:witness, git: "...", only: :test}
  defp deps do
    [{:witness, path: "../../..", only: :test}]
  end
end
