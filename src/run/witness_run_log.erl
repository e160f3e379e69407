-module(witness_run_log).
-moduledoc """
The log of a run: what is traced, in a file, so that it can be checked again.

Besides the maps of the user there is a hidden map. Its monitors (`m:witness_monitor_log`) write what they read. Its
groups are whole trees of processes, so the log has each tree in one order, the order in which a group of the user
would see it. If a process ran before and is not observed, each of its children begins a tree, and is a `root` of the log: the
run has no event of the parent, so the log has none either.

Hidden monitors appear in no result. When one of them misses events or has crashed, nothing more is written of its tree. Each
live process of the tree gets a `gap`, and the run is notified that its log is not complete.
""".

-export([open/3, start/1, close/1, map/1, monitors/1, is_hidden/1, write_gap/3]).

-export_type([logging/0]).

-doc "The log of a run, or `none`.".
-type logging() :: none | #{log := witness_log_writer:log(), functions := [mfa()], watch := witness_trace_functions:watch(),
                            stop_time := witness_monitor_stop_time:stop_time(), trees := ets:table()}.

-doc """
Opens the log that the options ask for, for the run that calls. It has all calls and returns of these functions, as long as the watch says
that they are observed. An error is text for people.
""".
-spec open(#{log_file => file:name_all(), _ => _}, {[mfa()], witness_trace_functions:watch()},
           witness_monitor_stop_time:stop_time()) -> {ok, logging()} | {error, unicode:chardata()}.
open(#{log_file := File, log_size := MaxBytes}, {Functions, Watch}, StopTime) ->
    maybe
        {ok, Log} ?= witness_log_writer:open(File, MaxBytes),
        %% The live processes, each with the first process of its tree.
        {ok, #{log => Log, functions => Functions, watch => Watch, stop_time => StopTime,
               trees => ets:new(witness_run_log, [public, {write_concurrency, auto}])}}
    end;
open(#{}, _, _) -> {ok, none}.

-doc "Replaces an earlier log of this name. Called when nothing can prevent the start of the run any more.".
-spec start(logging()) -> ok | {error, unicode:chardata()}.
start(none) -> ok;
start(#{log := Log, functions := Functions, stop_time := StopTime}) ->
    maybe
        ok ?= witness_log_writer:begin_log(Log),
        Begin = erlang:monotonic_time(nanosecond),
        %% A run that is instrumented inline has no log. If no later clock says more, as where the node was killed, the end of
        %% the log decides nothing.
        witness_log_writer:write([{receives, delivered}] ++ [{functions, Functions} || Functions =/= []]
                                 ++ [{clock, Begin} || witness_monitor_stop_time:is_wanted(StopTime)], Log)
    end.

-doc """
Closes the log when every hidden monitor has ended. If processes go on, the last line has the time at which watching has stopped: the system
may have been silent. An error says why the log is not complete.
""".
-spec close(logging()) -> ok | {error, unicode:chardata()}.
close(none) -> ok;
close(#{log := Log, trees := Trees} = Logging) ->
    GoesOn = ets:info(Trees, size) > 0,
    true = ets:delete(Trees),
    try
        _ = GoesOn andalso write_stop(Logging),
        witness_log_writer:close(Log)
    catch exit:{log_ended, Reason} ->
        {error, ["it was not written to its end: ", witness_event:format_term(Reason, 400)]}
    end.

%% Calls that are not observed any more may have happened until then, too.
write_stop(#{stop_time := StopTime, log := Log} = Logging) ->
    case witness_monitor_stop_time:read(StopTime) of
        unknown -> ok;
        Time ->
            ok = write_head(Logging),
            witness_log_writer:write([{clock, Time}], Log)
    end.

-doc "The hidden map, if there is one.".
-spec map(logging()) -> [witness_instrument_map:instrumentation()].
map(Logging) ->
    [fun(_) -> {unless_read, [#{monitor => Monitor, spec => log, name => undefined, group => true}]} end
     || {_, Monitor} <- monitors(Logging)].

-doc "The hidden monitor, and the signatures that it is for.".
-spec monitors(logging()) -> [{witness_options:signature_pattern(), {module(), term()}}].
monitors(none) -> [];
monitors(#{functions := Functions} = Logging) ->
    [{{'_', '_', '_'}, {witness_monitor_log, {Functions, fun(E, First) -> write(E, First, Logging) end}}}].

-doc "Whether a monitor writes the log.".
-spec is_hidden(#{spec := binary() | log, _ => _}) -> boolean().
is_hidden(#{spec := Spec}) -> Spec =:= log.

%% If the functions are still observed now, no call before this event was missing. Otherwise the log has a head first that does not
%% name them.
write(E, First, Logging) ->
    ok = write_head(Logging),
    write_event(E, First, Logging).

write_head(#{watch := Watch, log := Log}) ->
    case witness_trace_functions:replaced(Watch) of
        none -> ok;
        _ -> witness_log_writer:write_head({receives, delivered}, Log)
    end.

%% The parent is not observed: its `fork` is no event of the run.
write_event({init, First, Parent, _, Ts} = E, First, #{log := Log, trees := Trees}) when Parent =/= undefined ->
    ets:insert(Trees, {First, First}),
    witness_log_writer:write([{root, First, Ts}, E], Log);
write_event(E, First, #{log := Log, trees := Trees}) ->
    _ = case E of
        {init, P, _, _, _} -> ets:insert(Trees, {P, First});
        {attached, P, _, _} -> ets:insert(Trees, {P, First});
        {fork, _, Child, _, _} -> ets:insert(Trees, {Child, First});
        {exit, P, _, _} -> ets:delete(Trees, P);
        _ -> true
    end,
    witness_log_writer:write([E], Log).

-doc "Events are missing from the tree that begins with a process. Has no effect if the log is closed.".
-spec write_gap(First :: witness_event:proc(), witness_monitor_instance:reason(), logging()) -> ok.
write_gap(_, _, none) -> ok;
write_gap(First, Reason, #{log := Log, trees := Trees}) ->
    Why = case Reason of
        {gap, Gap} when is_atom(Gap) -> Gap;
        _ -> monitor_crashed
    end,
    Alive = lists:usort([First | [P || [P] <- ets:match(Trees, {'$1', First})]]),
    true = ets:match_delete(Trees, {'_', First}),
    witness_log_writer:write([{gap, P, Why, unknown, undefined} || P <- Alive], Log).
