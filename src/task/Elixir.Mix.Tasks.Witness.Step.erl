-module('Elixir.Mix.Tasks.Witness.Step').
-moduledoc """
Goes through a recorded run by commands, forward and back; `help` shows them.

    mix witness.step [OPTIONS] DIR

`mix witness.step --help` lists the options.
""".

-define(COMMAND, step).
-define(SHORT_TEXT, ~"Steps through a recording, forward and back").
-include("witness_task.hrl").
