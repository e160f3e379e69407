-module(witness_record_source).
-moduledoc """
Data sources: of what comes from outside, a recording has what the program uses, not what arrives.

A server takes requests, of which the program may use only the path, or one header. If the server is recorded, so is everything
that arrives over its sockets. If it is *outside* (`outside` of `m:witness_record`, or any process that is not recorded), nothing
of that is recorded, and the server delivers each request as an *event*:

```
 outside                                     recorded
 server --- deliver/4 --- {Type, Event, Known} ----> a process of the program      recorded: Known
            |  ^  ^--------- read(Event, Part) ------ |                             recorded: what it returns
            |  '------------ answer(Event, Answer) -- |
            v {ok, Answer}
```

The source, a callback module, defines the `Type` of an event, what of it is `Known` at once, and which parts can be read (for
HTTP requests: `m:witness_record_httpd`). `Event` is opaque: only `read/2` gives access to its data. It is recorded like any other
call with a result from outside. A part that is read twice is recorded twice.

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

-export([deliver/4, read/2, answer/2]).

-export_type([event/0]).

-doc "An event, as the program has it.".
-opaque event() :: {?MODULE, Life :: pid(), Alias :: reference()}.

-doc "The type of an event, and what the program gets of its data at once. Both are recorded.".
-callback event(Data :: term()) -> {Type :: atom(), Known :: term()}.

-doc "A part of the data. It runs in the process that has delivered the event. If it raises, `read/2` returns the exception.".
-callback read(Part :: term(), Data :: term()) -> term().

-doc """
Delivers an event to a process of the program, by its pid or its name; answers its calls of `read/2`, and waits for its answer,
for at most so many milliseconds.

The caller must not be recorded itself, since it takes messages in code that is not woven. If it is, this raises `recorded`.
""".
-spec deliver(Source :: module(), To :: pid() | atom(), Data :: term(), timeout()) ->
    {ok, Answer :: term()} | {error, timeout | noproc | {down, Reason :: term()}}.
deliver(Source, To, Data, Timeout) ->
    _ = witness_record_runtime:is_recorded() andalso error(recorded),
    {Type, Known} = Source:event(Data),
    case to_pid(To) of
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

to_pid(Name) when is_atom(Name) -> whereis(Name);
to_pid(Pid) when is_pid(Pid) -> Pid.

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

%% Drops what arrived after the end. Nothing more can arrive.
forget(Alias) ->
    receive
        {Alias, _, _, _} -> forget(Alias);
        {timeout, _, Alias} -> forget(Alias)
    after 0 -> ok
    end.

%% The event can be read while this process lives. Its owner lives on with other work, so it cannot be monitored instead.
life(Owner) ->
    Monitor = monitor(process, Owner),
    receive
        over -> ok;
        {'DOWN', Monitor, process, _, _} -> ok
    end.

-doc "A part of an event, as its source defines it. `closed`: it was answered, or its source has stopped waiting.".
-spec read(event(), Part :: term()) -> {ok, term()} | {error, closed | {error | exit | throw, Reason :: term()}}.
read(Event, Part) -> ask(Event, read, Part).

-doc "Ends an event with this answer, which `deliver/4` returns.".
-spec answer(event(), Answer :: term()) -> ok | {error, closed}.
answer(Event, Answer) -> ask(Event, answer, Answer).

ask({?MODULE, Life, Alias}, What, Term) ->
    Reply = monitor(process, Life, [{alias, reply_demonitor}]),
    Alias ! {Alias, What, Reply, Term},
    receive
        {Reply, Result} -> Result;
        {'DOWN', Reply, process, _, _} -> {error, closed}
    end.
