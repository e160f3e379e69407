-module(witness_record_source).
-moduledoc """
Data sources: what comes from outside is recorded as far as the program uses it, not as it arrives.

A server takes requests, of which the program may only look at the path, or at one header. If the server is recorded,
all that came over its sockets is. If it is *outside* (`outside` of `m:witness_record`, or any process that is not
recorded), nothing is, and it hands each request over as an *event*:

```
 outside                                     recorded
 server --- deliver/4 --- {Type, Event, Known} ----> a process of the program      recorded: Known
            |  ^  ^--------- read(Event, Part) ------ |                             recorded: what it returns
            |  '------------ answer(Event, Answer) -- |
            v {ok, Answer}
```

The source, a callback module, says what the `Type` of an event is, what of it is `Known` at once, and what the parts are
that can be read: for requests of HTTP, `m:witness_record_httpd`. `Event` is opaque: there is no way to its
data but `read/2`, which is recorded like any other call whose result comes from outside. A part that is read twice is recorded
twice.

Without a recorder these functions do the same.

```erlang
-module(meter).
-behaviour(witness_record_source).
event(#{kind := Kind}) -> {measured, Kind}.
read(value, #{value := Value}) -> Value.
```

```erlang
{ok, stored} = witness_record_source:deliver(meter, archive, #{kind => volts, value => Large}, 5_000).   % outside

receive {measured, Event, volts} ->                                                                      % in the program
    {ok, Value} = witness_record_source:read(Event, value),
    ok = witness_record_source:answer(Event, stored)
end.
```
""".

-export([deliver/4, read/2, answer/2, calls/0]).

-export_type([event/0]).

-doc "What the program has of an event.".
-opaque event() :: {?MODULE, Life :: pid(), Alias :: reference()}.

-doc "The type of an event, and what of its data the program is told at once. Both are recorded.".
-callback event(Data :: term()) -> {Type :: atom(), Known :: term()}.

-doc "A part of the data. It runs in the process that has delivered the event. What it raises, `read/2` returns.".
-callback read(Part :: term(), Data :: term()) -> term().

-doc """
Hands an event to a process of the program, by its pid or its name, answers what it wants to read, and waits for its answer, so
many milliseconds at most.

The caller must not be recorded itself: it takes messages in code that is not woven. It raises `recorded` if it is.
""".
-spec deliver(Source :: module(), To :: pid() | atom(), Data :: term(), timeout()) ->
    {ok, Answer :: term()} | {error, timeout | noproc | {down, Reason :: term()}}.
deliver(Source, To, Data, Timeout) ->
    _ = witness_record_runtime:is_recorded() andalso error(recorded),
    {Type, Known} = Source:event(Data),
    case whereabouts(To) of
        undefined -> {error, noproc};
        Pid ->
            Monitor = monitor(process, Pid),
            Alias = alias(),
            Owner = self(),
            Life = spawn(fun() -> life(Owner) end),
            Pid ! {Type, {?MODULE, Life, Alias}, Known},
            Timer = timer(Timeout, Alias),
            Result = serve(Source, Data, Alias, Monitor),
            _ = unalias(Alias),
            _ = Timer =/= none andalso erlang:cancel_timer(Timer),
            Life ! over,
            _ = demonitor(Monitor, [flush]),
            forget(Alias),
            Result
    end.

whereabouts(Name) when is_atom(Name) -> whereis(Name);
whereabouts(Pid) when is_pid(Pid) -> Pid.

timer(infinity, _) -> none;
timer(Timeout, Alias) -> erlang:start_timer(Timeout, self(), Alias).

serve(Source, Data, Alias, Monitor) ->
    receive
        {Alias, read, Reply, Part} ->
            Reply ! {Reply, try {ok, Source:read(Part, Data)} catch Class:Reason -> {error, {Class, Reason}} end},
            serve(Source, Data, Alias, Monitor);
        {Alias, answer, Reply, Answer} ->
            Reply ! {Reply, ok},
            {ok, Answer};
        {timeout, _, Alias} -> {error, timeout};
        {'DOWN', Monitor, process, _, noproc} -> {error, noproc};
        {'DOWN', Monitor, process, _, Reason} -> {error, {down, Reason}}
    end.

%% What came when it was over. Nothing more can come.
forget(Alias) ->
    receive
        {Alias, _, _, _} -> forget(Alias);
        {timeout, _, Alias} -> forget(Alias)
    after 0 -> ok
    end.

%% While it lives the event can be read. Its owner goes on with other things after that, and cannot be monitored for it.
life(Owner) ->
    Monitor = monitor(process, Owner),
    receive
        over -> ok;
        {'DOWN', Monitor, process, _, _} -> ok
    end.

-doc "A part of an event, as its source defines it. `closed`: it was answered, or nobody waits for an answer any more.".
-spec read(event(), Part :: term()) -> {ok, term()} | {error, closed | {error | exit | throw, Reason :: term()}}.
read(Event, Part) -> asked(Event, read, Part).

-doc "Ends an event; whoever has delivered it gets this answer.".
-spec answer(event(), Answer :: term()) -> ok | {error, closed}.
answer(Event, Answer) -> asked(Event, answer, Answer).

asked({?MODULE, Life, Alias}, What, Term) ->
    Reply = monitor(process, Life, [{alias, reply_demonitor}]),
    Alias ! {Alias, What, Reply, Term},
    receive
        {Reply, Result} -> Result;
        {'DOWN', Reply, process, _, _} -> {error, closed}
    end.

-doc "The calls of the program whose results are recorded.".
-spec calls() -> [mfa()].
calls() -> [{?MODULE, answer, 2}, {?MODULE, read, 2}].
