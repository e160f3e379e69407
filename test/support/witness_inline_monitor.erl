-module(witness_inline_monitor).
-moduledoc """
A monitor that does what its argument says: `events` are its verdict, at the end of the process or when watching stops; with
`{does, Kind, Fun}` it calls the fun at each event of the kind.
""".
-behaviour(witness_monitor).

-export([init/3, handle_event/2, handle_end/2]).

init(_, _, {init, Fun}) -> Fun();
init(_, _, Arg) -> {ok, {Arg, []}}.

handle_event(Event, {Arg, Events}) ->
    case Arg of
        {does, Kind, Fun} when Kind =:= element(1, Event) -> Fun();
        _ -> ok
    end,
    {ok, {Arg, [Event | Events]}}.

handle_end(How, {_, Events}) ->
    {case How of complete -> yes; stopped -> inconclusive end, lists:reverse(Events)}.
