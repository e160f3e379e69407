# An example that is wrong, in the documentation of a module of Erlang.
[file] = System.argv()
{:ok, module, beam} = :compile.file(String.to_charlist(file), [:binary, :debug_info, :return_errors])
path = Path.join(Path.dirname(file), "#{module}.beam")
File.write!(path, beam)
Code.prepend_path(Path.dirname(file))
ExUnit.start(timeout: :infinity)

defmodule WrongExampleTest do
  use ExUnit.Case
  doctest Wrong
end
