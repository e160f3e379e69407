-module('Elixir.Mix.Tasks.Witness.Init').
-moduledoc """
Writes a first specification and a first test of the project, `specs/APP.hml` and `test/APP_witness_test.exs`, and says what to do
next. A file that is there already is not written over.

    mix witness.init
""".

-define(COMMAND, init).
-define(SHORT_TEXT, ~"Writes a first specification and a first test").
-include("witness_task.hrl").
