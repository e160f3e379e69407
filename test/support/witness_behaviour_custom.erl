-module(witness_behaviour_custom).
-moduledoc "A behaviour on `gen` of its own: its processes call a callback module; neither module is woven.".

-export([start/2, init_it/6]).

start(Module, Arg) -> gen:start(?MODULE, nolink, Module, Arg, []).

init_it(Starter, _, _, Module, Arg, _) ->
    {ok, State} = Module:init(Arg),
    proc_lib:init_ack(Starter, {ok, self()}),
    loop(Module, State).

loop(Module, State) ->
    receive
        stop -> ok;
        Message ->
            {noreply, Next} = Module:handle_info(Message, State),
            loop(Module, Next)
    end.
