-module(cli_library).
-moduledoc "A library for the tests of the command line: it receives for the process that calls it.".

-export([await/0]).

await() -> receive {told, _} -> ok end.
