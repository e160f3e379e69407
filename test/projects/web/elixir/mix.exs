defmodule Web.MixProject do
  use Mix.Project

  def project do
    [app: :web, version: "0.1.0", elixir: "~> 1.15", deps: deps()]
  end

  def application, do: [mod: {Web, []}, extra_applications: [:logger]]

  defp deps do
    [{:witness, path: "../../../..", only: :test, runtime: false}]
  end
end
