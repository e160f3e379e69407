-module(witness_sup).
-moduledoc """
The top supervisor of the application. It supervises the runs, and the process that restores modules that runs have woven.
That process outlives the runs. What it has to restore outlives it, in a table of this supervisor.
""".
-behaviour(supervisor).

-export([start_link/0, start_run/1]).
-export([init/1]).

-define(RUNS, witness_run_sup).

-spec start_link() -> supervisor:startlink_ret().
start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, top).

-doc "Starts a run with validated options.".
-spec start_run(witness_options:options()) -> supervisor:startchild_ret().
start_run(Options) -> supervisor:start_child(?RUNS, [Options]).

-doc false.
-spec init(top | runs) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init(top) ->
    ok = witness_weave_loader:new_table(),
    {ok, {#{strategy => one_for_one, intensity => 5, period => 10},
          [#{id => keeper, start => {witness_weave_loader, start_link, []}, shutdown => infinity},
           #{id => inline, start => {witness_inline_registry, start_link, []}},
           #{id => runs, start => {supervisor, start_link, [{local, ?RUNS}, ?MODULE, runs]}, type => supervisor}]}};
%% A run is never restarted: missed events cannot be recovered, so its owner is notified instead.
init(runs) ->
    {ok, {#{strategy => simple_one_for_one, intensity => 0},
          [#{id => run, start => {witness_run, start_link, []}, restart => temporary}]}}.
