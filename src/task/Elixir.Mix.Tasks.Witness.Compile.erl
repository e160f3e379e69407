-module('Elixir.Mix.Tasks.Witness.Compile').
-moduledoc """
Checks specifications, and warns of functions that the project does not have.

    mix witness.compile [OPTIONS] [FILE.hml ...]

`--dot` and `--mermaid` draw the monitors.

`mix witness.compile --help` lists the options.
""".

-define(COMMAND, compile).
-define(SHORT_TEXT, ~"Checks specifications against the project").
-include("witness_task.hrl").
