-module('Elixir.Mix.Tasks.Witness.Check').
-moduledoc """
Checks what a log says that processes did, or what a recording has.

    mix witness.check [OPTIONS] LOG

`LOG` is a file, `-` for standard input, or the folder of a recording. `--spec FILE.hml` names the specifications.

`mix witness.check --help` lists the options.
""".

-define(COMMAND, check).
-define(SHORT_TEXT, ~"Checks a log or a recording against specifications").
-include("witness_task.hrl").
