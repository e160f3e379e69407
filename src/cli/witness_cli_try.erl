-module(witness_cli_try).
-moduledoc """
`witness compile --try LOG`: what specifications say of a log.

The log is checked as by `witness check` (`m:witness_cli_check`). In addition the events are counted that each action has matched.
""".

-export([run/3, code/1]).

-export_type([trial/0, property/0, action/0]).

-doc "What was found. `interrupted`: the log was not read to its end.".
-type trial() :: #{log := binary(), summary := witness:summary(), properties := [property()], interrupted := boolean()}.

-doc """
A property: how many monitors it had, the slices of these (`undefined` if it has no `per`), how many events they have read, their
verdicts, its actions, and the first violations.
""".
-type property() :: #{spec := binary(), name := binary() | undefined, all := boolean(), syntax := witness_event:syntax(),
                      monitored := non_neg_integer(), slices := non_neg_integer() | undefined, events := non_neg_integer(),
                      verdicts := #{witness_monitor:verdict() => non_neg_integer()}, vacuous := non_neg_integer(),
                      actions := [action()], violations := [witness:verdict()]}.

-doc "As in `t:witness_cli_try_matches:action/0`, with `file:line` for lines, and `undefined` for a recording, which has none.".
-type action() :: #{line := pos_integer(), column := pos_integer(), text := binary(), decides := yes | no | undefined,
                    matched := non_neg_integer(), same := non_neg_integer(),
                    near := [{binary() | undefined, witness_event:event()}]}.

-define(MAX_VIOLATIONS, 5).
-define(PROGRESS_MS, 1_000).

-doc """
Tries specifications, which have no errors, on a log, with the options of the command line. Interrupts are messages to the caller
(`witness_cli_signal:catch_interrupts/0`). An error is text for people, or that of `witness:start/1`.
""".
-spec run([file:filename()], witness_options:log(), Options :: map()) ->
    {ok, trial()} | {error, witness:error() | unicode:chardata()}.
run(Files, Log, Options) ->
    maybe
        {ok, Given} ?= witness_cli_check:properties(Options),
        {ok, Start} ?= witness_cli_check:start(Log, Given#{specs => Files}, Options),
        {ok, Properties} ?= properties(Files, Start, []),
        observed(Log, Start, Properties)
    end.

observed(Log, Start, Properties) ->
    Matches = witness_cli_try_matches:new([{key(Property), Actions} || {Property, Actions} <- Properties]),
    Seen = ets:new(seen, [public]),
    try
        maybe
            {ok, Run} ?= witness:start(observe(Matches, Seen, Properties, with_instrument(Start, Properties))),
            {ok, {Summary, Interrupted}} ?= await(Run),
            {ok, #{log => witness_run_maps:log_name(Log), summary => Summary, interrupted => Interrupted,
                   properties => [result(Property, Log, Summary, Matches, Seen) || {Property, _} <- Properties]}}
        end
    after
        ok = witness_cli_try_matches:delete(Matches),
        true = ets:delete(Seen)
    end.

%% The same options as in the run, so that the actions have the same numbers.
properties([File | Files], Start, Found) ->
    Clocks = witness_run_observe:clocks(maps:merge(#{clocks => 0}, Start)),
    case witness_spec:actions(File, maps:merge(maps:with([include], Start), Clocks)) of
        {ok, Entries} ->
            Of = [{Entry#{spec => unicode:characters_to_binary([File, $:, integer_to_binary(Line)])}, Actions}
                  || {#{action := monitor, line := Line} = Entry, Actions} <- Entries],
            properties(Files, Start, Found ++ Of);
        {error, _} = Error -> Error
    end;
properties([], _, Found) -> {ok, Found}.

key(#{spec := Spec, name := Name}) -> {Spec, Name}.

%% Properties over all processes need it, and other verdicts are the same.
with_instrument(#{instrument := _} = Start, _) -> Start;
with_instrument(Start, Properties) ->
    case lists:any(fun({#{all := All}, _}) -> All end, Properties) of
        true -> Start#{instrument => central};
        false -> Start
    end.

%% Slices are counted by their verdicts.
observe(Matches, Seen, Properties, Start) ->
    IsSliced = lists:any(fun({#{per := Per}, _}) -> Per =/= [] end, Properties),
    Start#{log => false, max_verdicts => 0, satisfied => case IsSliced of true -> told; false -> counted end,
           on_read => fun(Read) -> witness_cli_try_matches:add(Read, Matches) end,
           on_verdict => fun(Verdict) -> add_verdict(Verdict, Seen) end}.

add_verdict(#{slice := Slice} = V, Seen) ->
    _ = Slice =/= undefined andalso ets:update_counter(Seen, {slices, key(V)}, 1, {{slices, key(V)}, 0}),
    add_violation(V, Seen).

add_violation(#{verdict := no} = V, Seen) ->
    Count = ets:update_counter(Seen, {violations, key(V)}, 1, {{violations, key(V)}, 0}),
    _ = Count =< ?MAX_VIOLATIONS andalso ets:insert(Seen, {{violation, key(V), Count}, V#{steps := []}}),
    ok;
add_violation(_, _) -> ok.

%% Another process waits for the run, so that this one receives interrupts meanwhile.
await(Run) ->
    Self = self(),
    {Waiter, Monitor} = spawn_monitor(fun() -> Self ! {awaited, self(), witness:await(Run, infinity)} end),
    IsTerminal = witness_cli_io:terminal(stderr),
    Result = await(Run, Waiter, Monitor, {IsTerminal, now_ms()}),
    _ = IsTerminal andalso witness_cli_io:note(~"\e[K"),
    true = demonitor(Monitor, [flush]),
    true = exit(Waiter, kill),
    Result.

await(Run, Waiter, Monitor, {IsTerminal, Started} = Progress) ->
    receive
        {awaited, Waiter, {ok, Summary}} ->
            _ = witness:stop(Run),
            {ok, {Summary, false}};
        {awaited, Waiter, {error, _} = Error} -> Error;
        {'DOWN', Monitor, process, Waiter, Reason} -> {error, {witness_run, {run_died, Reason}}};
        Stop when Stop =:= interrupt; Stop =:= output_closed -> stop(Run);
        {'EXIT', Port, _} when is_port(Port) -> stop(Run)
    after ?PROGRESS_MS ->
        _ = IsTerminal andalso witness_cli_io:note([witness_cli_render:progress(witness:info(Run), now_ms() - Started), $\r]),
        await(Run, Waiter, Monitor, Progress)
    end.

now_ms() -> erlang:monotonic_time(millisecond).

stop(Run) ->
    case witness:stop(Run) of
        {ok, Summary} -> {ok, {Summary, true}};
        {error, _} = Error -> Error
    end.

result(#{all := All, per := Per, names := Names} = Property, Log, Summary, Matches, Seen) ->
    Key = key(Property),
    None = #{monitored => 0, vacuous => 0, verdicts => #{no => 0, yes => 0, inconclusive => 0}},
    Counts = case [Of || Of <- maps:get(properties, Summary, []), key(Of) =:= Key] of
        [Found | _] -> maps:with(maps:keys(None), Found);
        [] -> None
    end,
    {Events, Actions} = witness_cli_try_matches:result(Key, Matches),
    Untold = lists:sum([Count - Told || #{count := Count, told := Told} = Of <- maps:get(undecided, Summary, []), key(Of) =:= Key]),
    Counts#{spec => element(1, Key), name => element(2, Key), all => All, events => Events,
            actions => [put_places(Action, Log) || Action <- Actions],
            syntax => witness_event:syntax([M || {M, _, _} <- Names, M =/= '_']),
            slices => case Per of [] -> undefined; _ -> Untold + ets:lookup_element(Seen, {slices, Key}, 2, 0) end,
            violations => [V || N <- lists:seq(1, ?MAX_VIOLATIONS), {_, V} <- ets:lookup(Seen, {violation, Key, N})]}.

put_places(#{near := Near} = Action, Log) -> Action#{near := [{place(Line, Log), Event} || {Line, Event} <- Near]}.

%% What counts the events of a recording is not their place in it.
place(_, {recording, _}) -> undefined;
place(Line, Log) -> <<(witness_run_maps:log_name(Log))/binary, $:, (integer_to_binary(Line))/binary>>.

-doc """
The exit code. A violation is no failure of a specification. If the log is wrong, it is 2. It is 3 if nothing was
violated and that cannot be trusted or says nothing, or if the log was not read to its end.
""".
-spec code(trial()) -> 0 | 2 | 3.
code(#{summary := #{outcome := refused}}) -> 2;
code(#{interrupted := true}) -> 3;
code(#{summary := #{outcome := untrusted}}) -> 3;
code(#{}) -> 0.
