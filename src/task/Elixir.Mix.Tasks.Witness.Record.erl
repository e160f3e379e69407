-module('Elixir.Mix.Tasks.Witness.Record').
-moduledoc """
Runs the application of the project, or a function, and records what made the run what it was.

    mix witness.record [OPTIONS] [-o DIR] ['Shop.Demo.run(10)']

The project is compiled and configured as by `mix run`. With `--spec FILE.hml` the run is monitored too.

`mix witness.record --help` lists the options.
""".

-define(COMMAND, record).
-define(SHORT_TEXT, ~"Runs the project and records the run").
-include("witness_task.hrl").
