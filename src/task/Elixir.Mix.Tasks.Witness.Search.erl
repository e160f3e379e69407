-module('Elixir.Mix.Tasks.Witness.Search').
-moduledoc """
Runs a function by one schedule after the other, until a run goes wrong.

    mix witness.search [OPTIONS] [-o DIR] 'Shop.Demo.run(10)'

The project is compiled and configured as by `mix run`. In each schedule its application is started before the function is called,
and stopped afterwards. A schedule decides which process goes on next. The run that goes wrong is a recording, for
`mix witness.replay` and `mix witness.step`. `--spec FILE.hml` names the specifications; crashes and deadlocks are found without one.

`mix witness.search --help` lists the options.
""".

-define(COMMAND, search).
-define(SHORT_TEXT, ~"Searches for a run of the project that goes wrong").
-include("witness_task.hrl").
