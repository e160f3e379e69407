-module(witness_app).
-moduledoc "The application: a supervisor of runs.".
-behaviour(application).

-export([start/2, stop/1]).

-doc false.
-spec start(application:start_type(), term()) -> supervisor:startlink_ret().
start(_, _) -> witness_sup:start_link().

-doc false.
-spec stop(term()) -> ok.
stop(_) -> witness_run_notifier:hide_verdicts().
