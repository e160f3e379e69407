-module(witness_load_busy).
-moduledoc "A monitor that computes for a while at each event. Its steps are not bounded (`m:witness_monitor_safety`).".
-behaviour(witness_monitor).

-export([init/3, handle_event/2]).

-spec init(witness_event:signature(), pid(), Rounds) -> {ok, Rounds} when Rounds :: pos_integer().
init(_, _, Rounds) -> {ok, Rounds}.

-spec handle_event(witness_event:event(), pos_integer()) -> {ok, pos_integer()} | {verdict, yes, busy}.
handle_event({exit, _, _, _}, _) -> {verdict, yes, busy};
handle_event(_, Rounds) -> ok = witness_bench_work:spin(Rounds), {ok, Rounds}.
