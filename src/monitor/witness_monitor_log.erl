-module(witness_monitor_log).
-moduledoc """
Passes each event that it reads to a function, which writes it to a log.

It is a monitor like any other, so the log has what monitors see, in the order in which they see it. If events are
missing, the run learns of it. Its cost does not slow other monitors. Its verdict means nothing.
""".
-behaviour(witness_monitor).

-export([alphabet/1, init/3, handle_event/2, handle_end/2]).

-export_type([arg/0, log/0]).

-doc "The functions of which calls and returns are events, and the function that writes.".
-type arg() :: {[mfa()], log()}.

-doc "Takes an event or an `attached`, and the process that this monitor was started for.".
-type log() :: fun((witness_event:item(), First :: witness_event:proc()) -> ok).

-type state() :: {log(), First :: witness_event:proc()}.

-doc false.
-spec alphabet(arg()) -> witness_monitor_alphabet:alphabet().
alphabet({[], _}) -> all;
%% A list leaves out the mark `attached' too, unless it names it.
alphabet({Functions, _}) ->
    [attached, fork, init, exit, send, recv | [{Kind, Function} || Function <- Functions, Kind <- [call, return]]].

-doc false.
-spec init(witness_event:signature(), witness_event:proc(), arg()) -> {ok, state()}.
init(_, First, {_, Log}) -> {ok, {Log, First}}.

-doc false.
-spec handle_event(witness_event:item(), state()) -> {ok, state()}.
handle_event(E, {Log, First} = State) ->
    ok = Log(E, First),
    {ok, State}.

-doc false.
-spec handle_end(complete | stopped, state()) -> {yes, undefined}.
handle_end(_, _) -> {yes, undefined}.
