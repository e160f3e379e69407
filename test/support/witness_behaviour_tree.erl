-module(witness_behaviour_tree).
-moduledoc "A supervisor, for `m:witness_behaviour_systems`.".
-behaviour(supervisor).

-export([init/1]).

init(supervisor) -> {ok, {#{}, []}}.
