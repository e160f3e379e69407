# The examples in the documentation of all modules of Witness that have a name of Elixir.
{:ok, _} = Application.ensure_all_started(:witness)
ExUnit.start(timeout: :infinity)

defmodule ExamplesTest do
  use ExUnit.Case
  @moduletag capture_log: true

  for module <- Application.spec(:witness, :modules), match?("Elixir." <> _, Atom.to_string(module)) do
    doctest module
  end
end
