-module(witness_otp_tree).
-moduledoc "A supervisor, and an application with one.".
-behaviour(supervisor).
-behaviour(application).

-export([init/1, start/2, stop/1]).

init(Tree) -> {ok, Tree}.

start(_, Tree) -> supervisor:start_link({local, ?MODULE}, ?MODULE, Tree).

stop(_) -> persistent_term:put(?MODULE, stopped).
