defmodule Chat.MixProject do
  use Mix.Project

  @of_phoenix ~w(phoenix phoenix_template phoenix_pubsub plug plug_crypto telemetry mime websock websock_adapter jason)a

  def project, do: [app: :chat, version: "0.1.0", elixir: "~> 1.15", deps: deps()]
  def application, do: [mod: {Chat, []}, extra_applications: [:logger]]

  # bench/phoenix puts them here.
  defp deps do
    for(name <- @of_phoenix, do: {name, path: "deps/#{name}", override: true}) ++
      [{:witness, path: System.fetch_env!("WITNESS_ROOT"), only: :test, runtime: false}]
  end
end
