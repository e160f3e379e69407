-module(witness_behaviour_observed).
-moduledoc """
A system that is monitored inline. Its monitor logs every event in the table in which the processes log what they do.
""".
-behaviour(witness_monitor).

-export([gather/3, run/2, init/3, handle_event/2, handle_end/2]).

-define(WAIT_MS, 30_000).

-doc """
Runs the fun, with a table, as a system of woven modules. For each process with one of the signatures it returns the
events, and what the process has logged itself (`{logged, self()}`); and the verdicts. Messages of events are `{recv,
Message}` and `{send, To, Message}`, others `{init, Signature}`, `{fork, Child, Signature}`, `{exit, Reason}`.
""".
-spec gather([module()], [mfa()], fun((ets:table()) -> term())) -> {#{pid() => {[term()], [term()]}}, [map()]}.
gather(Modules, Signatures, Fun) ->
    Log = ets:new(?MODULE, [public, ordered_set]),
    {ok, Run} = witness:start(#{system => {?MODULE, run, [Fun, Log]}, instrument => inline, weave => Modules, log => false,
                                monitors => [{Signature, {?MODULE, Log}} || Signature <- Signatures]}),
    {ok, _} = witness:await(Run, ?WAIT_MS),
    Verdicts = witness:verdicts(Run),
    {ok, _} = witness:stop(Run),
    All = [{Who, What} || {_, Who, What} <- ets:tab2list(Log)],
    ets:delete(Log),
    {#{P => {of_process({seen, P}, All), of_process({logged, P}, All)} || {{seen, P}, _} <- All}, Verdicts}.

of_process(Who, All) -> [What || {Who1, What} <- All, Who1 =:= Who].

run(Fun, Log) -> Fun(Log).

init(_, _, Log) -> {ok, Log}.

handle_event(Event, Log) ->
    ets:insert(Log, {erlang:unique_integer([monotonic]), {seen, element(2, Event)}, seen(Event)}),
    {ok, Log}.

seen({init, _, _, Signature, _}) -> {init, Signature};
seen({fork, _, Child, Signature, _}) -> {fork, Child, Signature};
seen({exit, _, Reason, _}) -> {exit, Reason};
seen({send, _, To, Message, _}) -> {send, To, Message};
seen({recv, _, _, Message, _}) -> {recv, Message}.

handle_end(How, _) -> {yes, How}.
