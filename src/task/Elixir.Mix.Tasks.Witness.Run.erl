-module('Elixir.Mix.Tasks.Witness.Run').
-moduledoc """
Runs the application of the project, or a function, and watches it.

    mix witness.run [OPTIONS] ['Shop.Demo.run(10)']

The project is compiled and configured as by `mix run`. `--spec FILE.hml` names the specifications.

`mix witness.run --help` lists the options.
""".

-define(COMMAND, run).
-define(SHORT_TEXT, ~"Runs the project and watches it").
-include("witness_task.hrl").
