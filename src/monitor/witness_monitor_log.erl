-module(witness_monitor_log).
-moduledoc """
Passes each event that it reads to a function, which writes it to a log.

It is a monitor like any other, so the log has what monitors see, in the order in which they see it. If events are
missing, the run learns of it. Its cost does not slow other monitors. Its verdict means nothing.
""".
-behaviour(witness_monitor).

-export([init/3, handle_event/2, handle_end/2]).

-export_type([log/0]).

-doc "Takes an event, and the process that this monitor was started for.".
-type log() :: fun((witness_event:event(), First :: witness_event:proc()) -> ok).

-type state() :: {log(), First :: witness_event:proc()}.

-doc false.
-spec init(witness_event:signature(), witness_event:proc(), log()) -> {ok, state()}.
init(_, First, Log) -> {ok, {Log, First}}.

-doc false.
-spec handle_event(witness_event:event(), state()) -> {ok, state()}.
handle_event(E, {Log, First} = State) ->
    ok = Log(E, First),
    {ok, State}.

-doc false.
-spec handle_end(complete | stopped, state()) -> {yes, undefined}.
handle_end(_, _) -> {yes, undefined}.
