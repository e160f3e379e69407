-module(witness_inline_functions_monitor).
-moduledoc "A monitor with the alphabet of its argument. The events are its verdict. `{Alphabet, Function}`: it calls the function at each event.".
-behaviour(witness_monitor).

-export([alphabet/1, init/3, handle_event/2, handle_end/2]).

alphabet({Alphabet, _}) -> Alphabet;
alphabet(Alphabet) -> Alphabet.

init(_, _, {_, Function}) -> {ok, {Function, []}};
init(_, _, _) -> {ok, {{erlang, self, []}, []}}.

handle_event(Event, {{M, F, Args}, Events}) ->
    _ = apply(M, F, Args),
    {ok, {{M, F, Args}, [Event | Events]}}.

handle_end(_, {_, Events}) -> {yes, lists:reverse(Events)}.
