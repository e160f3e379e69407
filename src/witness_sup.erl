-module(witness_sup).
-moduledoc """
Supervises the runs. A run is never restarted: what was missed meanwhile cannot be made
good, so its owner is told instead.
""".
-behaviour(supervisor).

-export([start_link/0, start_run/1]).
-export([init/1]).

-spec start_link() -> supervisor:startlink_ret().
start_link() -> supervisor:start_link({local, ?MODULE}, ?MODULE, []).

-doc "Starts a run with validated options.".
-spec start_run(witness_options:options()) -> supervisor:startchild_ret().
start_run(Options) -> supervisor:start_child(?MODULE, [Options]).

-doc false.
-spec init([]) -> {ok, {supervisor:sup_flags(), [supervisor:child_spec()]}}.
init([]) ->
    {ok, {#{strategy => simple_one_for_one, intensity => 0},
          [#{id => run, start => {witness_run, start_link, []}, restart => temporary}]}}.
