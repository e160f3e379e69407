-module('Elixir.Mix.Tasks.Witness.Report').
-moduledoc """
Draws what benchmarks have measured, as a page for a browser.

    mix witness.report [OPTIONS] DIR

`mix witness.report --help` lists the options.
""".

-define(COMMAND, report).
-define(SHORT_TEXT, ~"Draws what benchmarks have measured").
-include("witness_task.hrl").
