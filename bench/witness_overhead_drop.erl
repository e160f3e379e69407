-module(witness_overhead_drop).
-moduledoc """
A tracer in native code (`m:erl_tracer`) that drops every event. `bench/overhead` compiles
its native part.
""".

-export([enabled/3, trace/5]).
-nifs([enabled/3, trace/5]).
-on_load(load/0).

load() -> erlang:load_nif(filename:rootname(code:which(?MODULE)), 0).

-doc false.
enabled(_, _, _) -> erlang:nif_error(not_loaded).
-doc false.
trace(_, _, _, _, _) -> erlang:nif_error(not_loaded).
