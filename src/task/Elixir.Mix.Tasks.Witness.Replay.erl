-module('Elixir.Mix.Tasks.Witness.Replay').
-moduledoc """
Does what was recorded again, and says whether it went the same way.

    mix witness.replay [OPTIONS] DIR

`mix witness.replay --help` lists the options.
""".

-define(COMMAND, replay).
-define(SHORT_TEXT, ~"Replays a recording").
-include("witness_task.hrl").
