%% A task of Mix, written in Erlang. It defines ?ATTRIBUTES, or only ?SHORT_TEXT, which `mix help' lists. Its documentation is what
%% `mix help witness.COMMAND' shows. The module `Mix.Tasks.Witness.COMMAND' also defines ?COMMAND, which it runs.
-export([run/1]).

-ifndef(ATTRIBUTES).
-define(ATTRIBUTES, [{shortdoc, [?SHORT_TEXT]}]).
-endif.
-include("../elixir/witness_elixir.hrl").

-ifdef(COMMAND).
-doc "What Mix calls.".
-spec run([binary()]) -> ok.
run(Arguments) -> witness_task_mix:run(?COMMAND, Arguments).
-endif.
