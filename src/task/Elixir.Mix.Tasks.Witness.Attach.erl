-module('Elixir.Mix.Tasks.Witness.Attach').
-moduledoc """
Watches a node that runs already, which need not have Witness, and leaves it as it was.

    mix witness.attach [OPTIONS] NODE

`mix witness.attach --help` lists the options.
""".

-define(COMMAND, attach).
-define(SHORT_TEXT, ~"Watches a node that runs already").
-include("witness_task.hrl").
