-module(witness_sys_faulty).
-moduledoc """
A monitor with faults of its own, chosen by its argument: `crash` when it is told of a message, `crash_in_init`,
`ignore`, `undecided` until the end (it has no `handle_end/2`), `rude`: returns what no monitor may.
""".
-behaviour(witness_monitor).

-export([init/3, handle_event/2]).

-spec init(witness_event:signature(), witness_event:proc(), atom()) -> {ok, atom()} | ignore.
init(_, _, ignore) -> ignore;
init(_, _, crash_in_init) -> error(on_purpose);
init(_, _, Arg) -> {ok, Arg}.

-spec handle_event(witness_event:event(), atom()) -> term().
handle_event({recv, _, _, _, _}, crash) -> error(on_purpose);
handle_event({recv, _, _, _, _}, rude) -> rude;
handle_event(_, State) -> {ok, State}.
