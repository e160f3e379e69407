-module(witness_recorded_relay).
-moduledoc "Compiled without debug information, so it runs as it is in a recorded program.".

-export([relay/1]).

relay(To) ->
    receive
        stop -> ok;
        Msg -> To ! {relayed, Msg}, relay(To)
    end.
