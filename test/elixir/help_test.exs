ExUnit.start(timeout: :infinity)

defmodule HelpTest do
  use ExUnit.Case, async: true
  import ExUnit.CaptureIO

  @modules for module <- (Application.load(:witness) && Application.spec(:witness, :modules)),
               match?("Elixir.Witness" <> _, Atom.to_string(module)),
               do: module

  test "every function and callback is documented" do
    assert Witness in @modules and Witness.Monitor in @modules

    for module <- @modules do
      assert {:docs_v1, _, :erlang, "text/markdown", %{"en" => _}, _, docs} = Code.fetch_docs(module)
      public = for {{:function, name, arity}, _, _, doc, _} <- docs, doc != :hidden, do: {name, arity, doc}
      exported = for {name, arity, _} <- public, do: {name, arity}
      assert exported -- (module.__info__(:functions) ++ [behaviour_info: 1]) == []

      for {{kind, name, arity}, _, _, doc, metadata} <- docs, kind in [:function, :callback], doc != :hidden do
        assert is_map(doc) or Map.has_key?(metadata, :equiv), "#{inspect(module)}.#{name}/#{arity} has no documentation"
      end
    end
  end

  test "h shows a function with its options" do
    shown = help("h Witness.start")
    assert shown =~ ~r/^ +start\(options\)$/m
    assert shown =~ "@spec start(options()) :: {:ok, pid()} | {:error, error()}"
    assert shown =~ ~r/^`specs` +\| files of specifications, `\["specs\/shop.hml"\]` +\| `\[\]` *$/m
    for name <- [:system, :specs, :drain, :from], do: assert(shown =~ ~r/^`#{name}` +\|/m)
  end

  test "h shows modules, and functions with several arities" do
    for module <- @modules, do: assert(help("h #{inspect(module)}") =~ inspect(module))
    assert help("h Witness.await") =~ "await(run, timeout)"
    assert help("h Witness.await!/2") =~ "await!(run, timeout)"
    assert help("h Witness.Monitor") =~ "use Witness.Monitor"
    refute help("h Witness.__start_child__") =~ "__start_child__("
  end

  test "b shows the callbacks, and t the types" do
    assert help("b Witness.Monitor") =~ "@callback handle_event(event(), state :: term())"
    assert help("b Witness.Monitor.handle_end/2") =~ "No further event comes."
    assert help("t Witness.Verdict") =~ ~r/@type t\(\) :: %Witness\.Verdict\{/
  end

  test "a table fits on a terminal" do
    for module <- @modules, line <- String.split(help("h #{inspect(module)}"), "\n"), line =~ ~r/^`.*\|/ do
      assert String.length(line) <= 120
    end

    for line <- String.split(help("h Witness.start"), "\n"), line =~ ~r/^`.*\|/ do
      assert String.length(line) <= 120
    end
  end

  defp help(command) do
    capture_io(fn -> Code.eval_string("import IEx.Helpers\n" <> command) end)
  end
end
