-module(witness_run).
-moduledoc """
One run: starts the instrumentation and the system, gathers verdicts, and ends.

A run goes through three phases:

- `running`: until the system has ended (`halt`), or the run is stopped;
- `draining`: nothing is observed any more, monitors handle the remaining events;
- `finished`: every monitor has reported. The run returns results until the owner dies or
  the run is stopped.

The run is linked to the instrumentation, which owns the tracers, and to every monitor's
runner, so it learns of every death. A runner that dies without a report makes
its own verdict inconclusive. The loss of the instrumentation makes all undecided verdicts
inconclusive. So does the loss of a tracer, unless its events are known to concern only its own
monitors. When the run itself dies, the links end everything else, and with the tracers their sessions.
""".
-behaviour(gen_server).

-export([start_link/1, start/1, begun/1, await/2, await_started/2, finish/1, stop/1, verdicts/1, info/1, alive/1, subscribe/1,
         replace/2]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2, format_status/1]).

-record(run, {options :: witness_options:options(),
              phase = running :: running | draining | finished,
              instrumentation :: module(),
              pool :: undefined | pid(),
              notifier :: pid(),
              logging :: witness_run_log:logging(),
              history = none :: none | pid() | witness_run_history:history(),
              versions :: witness_run_versions:versions(),
              maps :: witness_run_maps:maps(),
              gathered :: witness_run_maps:gathered(),
              starter :: undefined | pid(),        % starts the applications, as long as it is needed
              system = running :: starting | running | {ended, term()},
              root :: undefined | pid(),           % the first process, if the run starts it
              tree_ended = false :: boolean(),
              all_announced = false :: boolean(),  % no further monitor is started
              hidden = 0 :: non_neg_integer(),     % processes that are not traced any more
              gaps = #{gaps => 0} :: #{gaps := non_neg_integer(), missing => [witness_offline:missing()]},
              incomplete = false :: boolean(),     % some events were missed
              refused :: undefined | binary(),     % why a log could not be read further
              readers = witness_run_monitors:new() :: witness_run_monitors:readers(),
              tally :: witness_run_tally:tally(),
              verdicts = [] :: [witness:verdict()],
              kept = 0 :: non_neg_integer(),
              warnings = [] :: [witness:warning()],
              counts = fun() -> #{processes => 0, events => 0, held => 0} end :: fun(() -> witness_run_maps:counts()),
              tracers = 1 :: pos_integer(),
              started :: integer(),
              ended :: undefined | integer(),
              subscribed = false :: boolean(),
              each :: boolean(),                   % verdicts are reported one by one
              telling = false :: boolean(),        % the notifier has the summary
              awaiting = [] :: [gen_server:from()],
              starting = [] :: [gen_server:from()],
              stopping = [] :: [gen_server:from()]}).

%% Milliseconds in which the reader of a log that is given up must report what was found.
-define(GIVEN_UP_MS, 5_000).
%% Reports of shards and runners arrive in bursts, and are garbage once they are handled.
-define(OPTIONS, [{fullsweep_after, 10}, {message_queue_data, off_heap}]).

-doc "Starts a run. The caller must wait until it has begun (`begun/1`); meanwhile other runs may start.".
-spec start_link(witness_options:options()) -> gen_server:start_ret().
start_link(Options) -> gen_server:start_link(?MODULE, Options, [{spawn_opt, ?OPTIONS}]).

-doc """
Starts a run without a supervisor: it ends when its owner does, however the owner ends, and reports nothing. With a link, the exit
of the owner, as the run's parent, might arrive first, and be reported as a crash.
""".
-spec start(witness_options:options()) -> gen_server:start_ret().
start(Options) -> gen_server:start(?MODULE, Options, [{spawn_opt, ?OPTIONS}]).

-doc "Waits until a run has begun. A run that could not begin has ended.".
-spec begun(pid()) -> ok | {error, Reason :: term()}.
begun(Run) ->
    case call(Run, begun, infinity) of
        {error, {run_died, Reason}} -> {error, {not_started, Reason}};
        Begun -> Begun
    end.

-spec await(pid(), timeout()) -> {ok, witness:summary()} | {error, timeout | {run_died, term()}}.
await(Run, Timeout) -> call(Run, await, Timeout).

-spec await_started(pid(), timeout()) ->
    ok | {error, timeout | stopped | witness_run_application:end_reason() | {run_died, term()}}.
await_started(Run, Timeout) -> call(Run, await_started, Timeout).

-doc "Ends observation, like `stop/1`, but the run stays, to return results.".
-spec finish(pid()) -> {ok, witness:summary()} | {error, {run_died, term()}}.
finish(Run) -> call(Run, finish, infinity).

-spec stop(pid()) -> {ok, witness:summary()} | {error, {run_died, term()}}.
stop(Run) -> call(Run, stop, infinity).

-spec verdicts(pid()) -> [witness:verdict()].
verdicts(Run) -> gen_server:call(Run, verdicts, infinity).

-spec info(pid()) -> map().
info(Run) -> gen_server:call(Run, info, infinity).

-doc "The live observed processes, without those of Witness.".
-spec alive(pid()) -> [pid()].
alive(Run) -> gen_server:call(Run, alive, infinity).

-spec replace(pid(), [file:name_all()]) -> {ok, [witness:warning()]} | {error, term()}.
replace(Run, Files) -> call(Run, {replace, Files}, infinity).

-spec subscribe(pid()) -> {ok, reference()}.
subscribe(Run) -> gen_server:call(Run, {subscribe, self()}, infinity).

call(Run, Request, Timeout) ->
    try
        gen_server:call(Run, Request, Timeout)
    catch
        exit:{timeout, _} -> {error, timeout};
        exit:{Reason, {gen_server, call, _}} -> {error, {run_died, Reason}}
    end.

-doc false.
-spec init(witness_options:options()) -> {ok, witness_options:options(), {continue, begin_run}}.
init(Options = #{owner := Owner}) ->
    process_flag(trap_exit, true),
    proc_lib:set_label(witness_run),
    monitor(process, Owner),
    {ok, Options, {continue, begin_run}}.

begin_run(Options = #{specs := Files, monitors := Monitors}) ->
    case compile(Files, compile_options(Options), [], []) of
        {ok, Specs, Warnings} ->
            maybe
                {ok, Chosen} ?= chosen(Options),
                {ok, Logging} ?= witness_run_log:open(Options),
                Maps = witness_run_maps:maps(Options, Specs, Logging),
                Gathered = witness_run_maps:gathered(Options, Specs, Logging),
                {ok, {Module, Pool, Counts}} ?= witness_run_maps:start_link(Options, Specs, Maps, Gathered),
                ok ?= witness_run_log:start(Logging),
                ok = witness_run_limits:start(Options),
                History = case Options of
                    #{history := true} -> {ok, Historian} = witness_run_history:start_link(self(), Options), Historian;
                    #{} -> none
                end,
                R = #run{options = Options, history = History, versions = witness_run_versions:new(Specs, Files), maps = Maps, gathered = Gathered,
                         instrumentation = Module, pool = Pool, counts = Counts, logging = Logging,
                         tally = witness_run_tally:new(witness_run_maps:properties(Specs, Monitors)),
                         warnings = maps:get(warnings, Options) ++ Warnings,
                         notifier = witness_run_notifier:start_link(Options),
                         each = witness_run_inline:is_each_told(Options, 0),
                         started = erlang:monotonic_time(millisecond)},
                observing(Chosen, R)
            else
                {error, Why} ->
                    ok = unload(Specs, Files),
                    {noreply, {refused, case Why of Text when is_list(Text); is_binary(Text) -> {log, text(Text)}; _ -> Why end}}
            end;
        {error, {Diagnostics, Specs}} ->
            ok = unload(Specs, Files),
            {noreply, {refused, {specification, Diagnostics}}}
    end.

%% When the caller has the run, all processes that run already are observed.
observing(none, R = #run{options = #{system := {children, Parents}}, instrumentation = Module, pool = Pool, history = History}) ->
    ok = witness_run_history:parents(History, Parents),
    ok = Module:parents(Pool, lists:usort(Parents)),
    {noreply, R};
observing(none, R) -> {noreply, R, {continue, start}};
observing(Chosen, R = #run{options = #{system := System} = Options, instrumentation = Module, pool = Pool, history = History}) ->
    ok = witness_run_history:adopt(History, Chosen),
    {ok, Others} = Module:attach(Pool, #{chosen => Chosen, own => witness_run_maps:own(Options)}, System =/= node),
    Known = maps:from_keys(Others, []),
    ok = witness_run_history:adopt(History, fun(P) -> is_map_key(P, Known) end),
    {noreply, R}.

compile_options(Options = #{system := System, instrument := Instrument}) ->
    Given = (maps:with([include, max_obligations], Options))#{central => Instrument =:= central},
    case System of
        %% The modules of a log's system need not be on this node.
        {log, _} -> Given;
        _ -> Given#{exports => fun witness_remote_exports:of_module/1, attach => witness_run_attach:is_attached(System)}
    end.

compile([], _, Specs, Warnings) -> {ok, lists:reverse(Specs), Warnings};
compile([Map | Files], Options, Specs, Warnings) when is_map(Map) ->
    compile(Files, Options, [Map | Specs], Warnings);
compile([File | Files], Options, Specs, Warnings) ->
    case witness_spec:compile_file(File, Options) of
        {ok, Map, Diagnostics} ->
            New = [#{code => specification, text => text(witness_spec:format_diagnostic(D))} || D <- Diagnostics],
            compile(Files, Options, [Map | Specs], Warnings ++ New);
        {error, Diagnostics} ->
            {error, {Diagnostics, Specs}}
    end.

%% The run unloads only the specifications that it has compiled.
unload(Specs, Given) -> lists:foreach(fun witness_spec:unload/1, Specs -- Given).

text(Chars) -> unicode:characters_to_binary(Chars).

-doc false.
-spec handle_continue(begin_run, witness_options:options()) ->
                         {noreply, #run{} | {refused, term()}} | {noreply, #run{}, {continue, start}};
                     (start, #run{}) -> {noreply, #run{}}.
handle_continue(begin_run, Options) -> begin_run(Options);
handle_continue(start, R = #run{options = Options, instrumentation = Module, pool = Pool}) ->
    #{system := System, scope := Scope, applications := Needed} = Options,
    _ = Scope =:= node andalso adopt_node(Module, Pool, witness_run_maps:own(Options), R),
    case {System, Needed} of
        %% The run waits only for the application.
        {{application, _}, _} -> {noreply, starting(System, R#run{tree_ended = true})};
        {_, []} -> {noreply, launch(R)};
        {_, _} -> {noreply, starting({applications, Needed}, R)}
    end.

adopt_node(Module, Pool, Own, #run{history = History}) ->
    ok = witness_run_history:adopt(History, fun(P) -> not Own(P) end),
    Module:adopt_node(Pool, Own).

starting(What, R) -> R#run{system = starting, starter = witness_run_application:start_link(What, self())}.

launch(R = #run{options = #{system := System, group_leader := GroupLeader}, instrumentation = Module, pool = Pool,
               history = History}) ->
    %% If the instrumentation has died meanwhile, the link reports it.
    try
        _ = is_pid(History) andalso Module =:= witness_offline andalso witness_offline:lives(Pool, History),
        witness_run_history:launch(History, fun() -> Module:launch(Pool, System, GroupLeader) end)
    of
        {ok, Root} -> R#run{system = running, root = Root}
    catch
        exit:_ -> R#run{system = running}
    end.

%% The predicate for processes that run already; `none` if the run starts the system.
chosen(Options = #{system := node}) ->
    Own = witness_run_maps:own(Options),
    {ok, fun(P) -> not Own(P) end};
chosen(Options = #{system := {attach, Targets}}) ->
    witness_run_attach:chosen(Targets, witness_run_maps:own(Options));
chosen(_) -> {ok, none}.

-doc false.
-spec handle_call(term(), gen_server:from(), #run{} | {refused, term()}) ->
    {noreply, #run{}} | {reply, term(), #run{}} | {stop, shutdown, term(), #run{} | {refused, term()}}.
handle_call(begun, _, {refused, Reason} = Refused) -> {stop, shutdown, {error, Reason}, Refused};
handle_call(begun, _, R) -> {reply, ok, R};
handle_call(Wait, _, R = #run{phase = finished}) when Wait =:= await; Wait =:= finish ->
    {reply, {ok, summary(R)}, R};
handle_call(finish, From, R = #run{awaiting = Awaiting}) ->
    proceed(drain(R#run{awaiting = [From | Awaiting]}));
handle_call(await, From, R = #run{awaiting = Awaiting}) ->
    {noreply, R#run{awaiting = [From | Awaiting]}};
handle_call(await_started, From, R = #run{phase = running, system = starting, starting = Starting}) ->
    {noreply, R#run{starting = [From | Starting]}};
handle_call(await_started, _, R) ->
    {reply, is_started(R), R};
handle_call(stop, _, R = #run{phase = finished}) ->
    {stop, shutdown, {ok, summary(R)}, R};
handle_call(stop, From, R = #run{stopping = Stopping}) ->
    proceed(drain(R#run{stopping = [From | Stopping]}));
handle_call({replace, Files}, _, R) ->
    {Reply, R1} = replaced(Files, R),
    {reply, Reply, R1};
handle_call(verdicts, _, R = #run{verdicts = Verdicts}) ->
    {reply, lists:reverse(Verdicts), R};
handle_call(alive, _, R = #run{phase = running, instrumentation = Module, pool = Pool, options = Options})
  when is_pid(Pool) ->
    Own = witness_run_maps:own(Options#{unobserved := []}),
    {reply, [P || P <- Module:alive(Pool), not Own(P)], R};
handle_call(alive, _, R) ->
    {reply, [], R};
handle_call({subscribe, Pid}, _, R = #run{notifier = Notifier}) ->
    {reply, {ok, witness_run_notifier:subscribe(Notifier, Pid)}, each_is_told(R#run{subscribed = true})};
handle_call(info, _, R = #run{phase = Phase, readers = Readers, tally = Tally, counts = Counts}) ->
    #{held := Held} = Counted = Counts(),
    {reply, (maps:without([held, unannounced], Counted))#{
              phase => Phase, waiting_for => Held, monitors => counted(Readers) + maps:get(unannounced, Counted, 0), verdicts => witness_run_tally:verdicts(Tally),
              gaps => witness_run_tally:gaps(Tally),
              system => R#run.system, root => R#run.root, warnings => R#run.warnings}, R}.

-doc false.
-spec handle_cast(term(), #run{}) -> {noreply, #run{}}.
handle_cast(_, R) -> {noreply, R}.

-doc false.
-spec handle_info(term(), #run{} | {refused, term()}) ->
    {noreply, #run{} | {refused, term()}} | {stop, shutdown, #run{} | {refused, term()}}.
handle_info({Kind, _, _} = Report, R) when Kind =:= monitor; Kind =:= slice; Kind =:= verdict ->
    proceed(report(Report, R));
handle_info({reports, Reports}, R) ->
    proceed(lists:foldl(fun report/2, R, Reports));
%% The process that gave the table away has died; its exit signal arrives later.
handle_info({'ETS-TRANSFER', Notes, Host, notes}, R) ->
    Announced = witness_inline_coordinator:announced(Host, Notes),
    ok = witness_inline_birth_table:delete(Notes),
    proceed(lists:foldl(fun report/2, R, Announced));
handle_info({checked, Number, Checked}, R = #run{pool = Pool, notifier = Notifier}) ->
    R1 = checked(Checked, R),
    ok = witness_run_notifier:reached(Notifier, fun() -> witness_offline:told(Pool, Number) end),
    {noreply, R1};
handle_info({log_ended, Ended}, R) ->
    proceed(drain(log_ended(Ended, R#run{pool = undefined, all_announced = true})));
handle_info({ended, _}, R = #run{options = #{system := {Kind, _}}}) when Kind =:= attach; Kind =:= children ->
    proceed(R#run{tree_ended = true, system = {ended, normal}});
handle_info({ended, _}, R) ->
    proceed(R#run{tree_ended = true});
handle_info({system_ended, Reason}, R) ->
    proceed(R#run{system = {ended, shown(Reason, R)}});
handle_info({applications_started, _}, R = #run{phase = running, options = #{system := {application, _}}}) ->
    {noreply, told_started(R#run{system = running})};
handle_info({applications_started, _}, R = #run{phase = running}) ->
    {noreply, told_started(launch(R))};
handle_info({not_started, Reason}, R) ->
    proceed(told_started(R#run{system = {ended, shown(Reason, R)}, tree_ended = true}));
handle_info({'EXIT', Starter, normal}, R = #run{starter = Starter}) ->
    {noreply, R#run{starter = undefined}};
handle_info({'EXIT', Starter, Reason}, R = #run{starter = Starter}) ->
    Text = ["no process watches the application any more: ", witness_event:format_term(shown(Reason, R), 400)],
    proceed(drain(incomplete(application_lost, Text, R#run{starter = undefined})));
handle_info({'EXIT', Pool, Reason}, R = #run{pool = Pool}) ->
    proceed(lost(Reason, let_go(R#run{pool = undefined, all_announced = R#run.phase =:= draining})));
handle_info({limit, duration}, R = #run{phase = running, options = #{duration := Duration}}) ->
    Text = io_lib:format("watching has ended after ~w milliseconds (duration)", [Duration]),
    proceed(drain(warning(duration, Text, R)));
handle_info({limit, Rate}, R = #run{phase = running, counts = Counts}) ->
    #{events := Events} = Counts(),
    case witness_run_limits:rate(Events, Rate) of
        {ok, Next} ->
            ok = witness_run_limits:again(Next),
            {noreply, R};
        {exceeded, Text} -> proceed(given_up(rate, Text, R))
    end;
handle_info({hidden, _}, R = #run{hidden = Hidden}) ->
    %% The processes that it spawns now may have had monitors, and are not seen at all.
    {noreply, R#run{hidden = Hidden + 1, incomplete = true}};
handle_info({tracer_lost, Reason}, R) ->
    %% The monitors of that tracer know it; other monitors miss nothing.
    {noreply, incomplete(tracer_lost, tracer_lost(Reason, R), R)};
handle_info({unrestored, Modules}, R) ->
    {noreply, warning(unrestored, ["the original code of modules is in use, and takes the place of the woven one when it is not: ",
                                   witness_event:format_term(Modules, 400)], R)};
handle_info({code_replaced, Modules}, R) ->
    {noreply, incomplete(replaced, ["other versions of woven modules were loaded, which are not woven: nothing is known since then "
                                    "of processes in ", witness_event:format_term(Modules, 400)], R)};
handle_info({unwatched, Reason}, R) ->
    Text = ["a group of processes was not watched to its end (", atom_to_binary(Reason), ")"],
    {noreply, incomplete(unwatched, Text, R)};
handle_info({orphans, Shown, Count}, R) ->
    {noreply, incomplete(orphan, orphans(Shown, Count), R)};
handle_info({'EXIT', Notifier, Reason}, R = #run{notifier = Notifier}) ->
    {stop, Reason, R};
%% The run has lost only its history.
handle_info({'EXIT', Historian, _}, R = #run{history = Historian}) ->
    {noreply, R#run{history = none}};
handle_info({'EXIT', Pid, Reason}, R = #run{readers = Readers}) ->
    {Reports, Readers1} = witness_run_monitors:ended(Pid, Reason, Readers),
    proceed(lists:foldl(fun report/2, R#run{readers = Readers1}, Reports));
handle_info({lost, Reason}, R) ->
    proceed(lost(Reason, announced(R)));
handle_info({settled, Version}, R) ->
    {noreply, R#run{versions = witness_run_versions:settled(Version, R#run.versions)}};
handle_info(all_announced, R) ->
    proceed(R#run{all_announced = true});
handle_info({flushed, Notifier}, R = #run{phase = draining, notifier = Notifier, telling = false}) ->
    ok = witness_run_notifier:summary(Notifier, summary(R)),
    {noreply, R#run{telling = true}};
handle_info({told, _}, R = #run{phase = draining}) ->
    finished(R#run{phase = finished});
%% The findings of the log's monitors come first, and then `log_ended'.
handle_info(overdue, R = #run{phase = draining, pool = Pool, instrumentation = witness_offline}) when is_pid(Pool) ->
    ok = witness_offline:give_up(Pool),
    _ = erlang:send_after(?GIVEN_UP_MS, self(), given_up),
    {noreply, R};
handle_info(given_up, R = #run{phase = draining, pool = Pool}) when is_pid(Pool) ->
    _ = exit(Pool, kill),
    {noreply, R};
handle_info(overdue, R = #run{phase = draining, readers = Readers}) ->
    %% A log is still being read if its process is alive.
    _ = is_pid(R#run.pool) andalso exit(R#run.pool, kill),
    proceed(lists:foldl(fun report/2, R, witness_run_monitors:kill(Readers)));
handle_info({'DOWN', _, process, _, _}, R) ->
    {stop, shutdown, R};
handle_info(_, {refused, _} = Refused) ->
    {noreply, Refused};
handle_info(_, R) ->
    {noreply, R}.

-doc false.
-spec terminate(term(), #run{} | {refused, term()} | witness_options:options()) -> ok.
terminate(_, R = #run{versions = Versions, readers = Readers, history = History}) ->
    _ = is_pid(History) andalso exit(History, kill),
    _ = witness_run_monitors:kill(Readers),
    _ = stop_pool(R),
    %% All notifications were delivered, or never will be. With the reason `normal' the link does not end the notifier.
    exit(R#run.notifier, kill),
    witness_run_versions:unload(Versions);
terminate(_, _) ->
    ok.

%% A crash report would contain all verdicts, and the contents of messages.
-doc false.
-spec format_status(gen_server:format_status()) -> gen_server:format_status().
format_status(Status) -> witness_event_redact:status(Status).

%% --- phases ----------------------------------------------------------------------

%% The tree has ended when the tracers have analysed the end of its last process; the
%% VM reports separately how the first process ended.
proceed(R = #run{phase = running, tree_ended = true, system = {ended, _}, options = #{halt := true}}) ->
    proceed(drain(R));
proceed(R = #run{phase = draining, all_announced = true, readers = Readers, notifier = Notifier}) ->
    case witness_run_monitors:count(Readers) of
        0 ->
            ok = witness_run_notifier:flush(Notifier),
            {noreply, close_history(close_log(R))};
        _ -> {noreply, R}
    end;
proceed(R) ->
    {noreply, R}.

told_started(R = #run{starting = Starting}) ->
    Started = is_started(R),
    lists:foreach(fun(From) -> gen_server:reply(From, Started) end, Starting),
    R#run{starting = []}.

is_started(#run{system = {ended, {not_started, _, _} = Reason}}) -> {error, Reason};
is_started(#run{system = starting}) -> {error, stopped};
is_started(_) -> ok.

drain(R0 = #run{phase = running, options = #{drain := Drain}}) ->
    R = told_started(R0),
    R1 = R#run{phase = draining, ended = erlang:monotonic_time(millisecond)},
    Stopped = stop_pool(R1),
    _ = is_integer(Drain) andalso erlang:send_after(Drain, self(), overdue),
    case Stopped of
        {ok, R2} -> announced(R2);
        %% Earlier reports are handled first: a verdict that was reached remains.
        {lost, Reason, R2} ->
            self() ! {lost, Reason},
            R2;
        %% The findings of the log's monitors come first, and then `log_ended'.
        {later, R2} -> R2
    end;
drain(R) -> R.

%% The announcement of every monitor precedes this message in the mailbox.
announced(R) ->
    self() ! all_announced,
    R.

stop_pool(R = #run{pool = undefined}) -> {ok, R};
stop_pool(R = #run{pool = Pool, instrumentation = witness_offline}) ->
    ok = witness_offline:stop(Pool),
    {later, R};
stop_pool(R = #run{pool = Pool, instrumentation = Module}) ->
    try
        #{most := Most} = Module:info(Pool),
        ok = Module:stop(Pool),
        {ok, R#run{pool = undefined, tracers = Most}}
    catch
        exit:Reason -> {lost, Reason, let_go(R#run{pool = undefined})}
    end.

%% The counting function may have a handle of an open trace session, which lasts as long as a handle exists.
let_go(R = #run{counts = Counts}) ->
    Last = Counts(),
    erlang:garbage_collect(),
    R#run{counts = fun() -> Last end}.

lost({shutdown, {given_up, Why}}, R) ->
    given_up(Why, ["gathering was given up, since ", witness_text_verdict:gap(Why)], R);
lost({{shutdown, {given_up, _}} = Reason, {gen_server, call, _}}, R) -> lost(Reason, R);
lost(Reason, R) -> given_up(tracer_lost, tracer_lost(Reason, R), R).

%% Events are missing from now on, for all monitors.
given_up(Why, Text, R = #run{readers = Readers}) ->
    {Reports, Readers1} = witness_run_monitors:give_up(Why, Readers),
    drain(incomplete(Why, Text, lists:foldl(fun report/2, R#run{readers = Readers1}, Reports))).

tracer_lost(Reason, R) ->
    ["a tracer has ended, events are missing from then on: ", witness_event:format_term(shown(Reason, R), 400)].

%% Even a few missing events might have shown a violation.
incomplete(Code, Text, R) -> (warning(Code, Text, R))#run{incomplete = true}.

warning(Code, Text, R = #run{warnings = Warnings}) ->
    Warning = #{code => Code, text => text(Text)},
    R#run{warnings = (Warnings -- [Warning]) ++ [Warning]}.

close_log(R = #run{logging = Logging}) ->
    case witness_run_log:close(Logging) of
        ok -> R#run{logging = none};
        {error, Text} -> incomplete(log_incomplete, ["the log is not complete: ", Text], R#run{logging = none})
    end.

%% Every monitor has reported its end.
close_history(R = #run{history = Historian}) when is_pid(Historian) ->
    R#run{history = try witness_run_history:finish(Historian) catch exit:_ -> none end};
close_history(R) -> R.

finished(R = #run{awaiting = Awaiting, stopping = Stopping}) ->
    Summary = summary(R),
    lists:foreach(fun(From) -> gen_server:reply(From, {ok, Summary}) end, Awaiting ++ Stopping),
    R1 = R#run{awaiting = [], stopping = []},
    case Stopping of
        [] -> {noreply, R1};
        _ -> {stop, shutdown, R1}
    end.

%% --- replacing specifications ----------------------------------------------------

%% The new specifications are compiled and compared with what is gathered before anything is changed.
replaced(_, R = #run{options = #{system := {log, _}}}) -> {{error, {not_replaced, log}}, R};
replaced(_, R = #run{phase = Phase, pool = Pool}) when Phase =/= running; Pool =:= undefined ->
    {{error, {not_replaced, ended}}, R};
replaced(Files, R = #run{options = Options, versions = Versions, maps = Maps, gathered = Gathered}) ->
    case compile(Files, compile_options(Options), [], []) of
        {ok, Specs, Warnings} ->
            maybe
                {ok, Maps1} ?= witness_run_maps:replaced(Specs, witness_run_versions:number(Versions) + 1, Maps, Gathered),
                ok ?= give(Maps1, R),
                {{ok, Warnings}, replaced(Specs, Warnings, Maps1, R)}
            else
                {error, Why} ->
                    ok = unload(Specs, Files),
                    {{error, {not_replaced, Why}}, R}
            end;
        {error, {Diagnostics, Specs}} ->
            ok = unload(Specs, Files),
            {{error, {specification, Diagnostics}}, R}
    end.

give(Maps, #run{instrumentation = Module, pool = Pool}) ->
    try Module:replace(Pool, [Map || {_, Map} <- Maps])
    catch exit:_ -> {error, ended}
    end.

replaced(Specs, Warnings, Maps, R = #run{versions = Before, tally = Tally}) ->
    {Properties, Versions} = witness_run_versions:replace(Specs, Before),
    %% Announcements of monitors that started before the instrumentation had the new maps are already in the mailbox.
    self() ! {settled, witness_run_versions:number(Before)},
    R#run{versions = Versions, maps = Maps, tally = witness_run_tally:add(Properties, Tally),
          warnings = R#run.warnings ++ (Warnings -- R#run.warnings)}.

%% --- verdicts --------------------------------------------------------------------

key(Of) -> witness_run_maps:key(Of).

%% A monitor is announced once, and reports its end once.
report({monitor, Reader, _}, R = #run{phase = finished}) ->
    %% Happens only after a tracer was lost: its last messages may arrive this late.
    _ = is_pid(Reader) andalso exit(Reader, kill),
    R;
report({monitor, Reader, Meta}, R = #run{readers = Readers, versions = Versions}) ->
    Known = case R#run.options of #{redact := true} -> witness_run_redaction:meta(Meta); #{} -> Meta end,
    _ = witness_run_log:is_hidden(Meta) orelse witness_run_history:monitor(historian(R), Reader, Meta),
    {Reports, Readers1} = witness_run_monitors:announce(Reader, Known, Readers),
    lists:foldl(fun report/2,
                R#run{readers = Readers1, versions = witness_run_versions:used(key(Meta), 1, Versions),
                      tally = started(Meta, R#run.tally)},
                Reports);
%% Many satisfied monitors at once, which are only counted.
report({satisfied, Property, Monitors, Vacuous, Covered}, R = #run{tally = Tally}) ->
    R#run{tally = witness_run_tally:satisfied(key(Property), Monitors, Vacuous, Covered, Tally)};
report({Kind, _, Outcome} = Report, R = #run{readers = Readers, versions = Versions}) ->
    case witness_run_monitors:report(Report, Readers) of
        {early, Readers1} -> R#run{readers = Readers1};
        {Meta, Readers1} when Kind =:= slice, element(1, Outcome) =:= undecided ->
            {undecided, Reason, N} = Outcome,
            R#run{readers = Readers1, tally = undecided(Reason, N, Meta, R#run.tally, R)};
        {Meta, Readers1} when Kind =:= slice ->
            ok = witness_run_history:verdict(historian(R), slice, Meta, Outcome),
            verdict(Outcome, Meta, R#run{readers = Readers1});
        {Meta, Readers1} ->
            ok = witness_run_history:verdict(historian(R), verdict, Meta, Outcome),
            R1 = R#run{readers = Readers1, versions = witness_run_versions:used(key(Meta), -1, Versions)},
            case witness_run_log:is_hidden(Meta) of
                true -> logged(Outcome, Meta, R1);
                false -> ended(Outcome, Meta, R1)
            end
    end.

undecided(Reason, N, Meta, Tally, R) ->
    Shown = case R of
        #run{options = #{redact := true}} -> witness_run_redaction:reason(Reason);
        _ -> Reason
    end,
    witness_run_tally:undecided(key(Meta), Shown, N, Tally).

historian(#run{history = History}) when is_pid(History) -> History;
historian(_) -> none.

started(Meta, Tally) ->
    case witness_run_log:is_hidden(Meta) of
        true -> Tally;
        false -> witness_run_tally:started(key(Meta), Tally)
    end.

counted(Readers) -> length([Meta || Meta <- witness_run_monitors:metas(Readers), not witness_run_log:is_hidden(Meta)]).

%% A monitor that writes the log is reported only if it has missed something.
logged(#{reason := Reason}, _, R) when Reason =:= undefined; Reason =:= stopped -> R;
logged(#{reason := Reason}, #{process := First}, R = #run{logging = Logging}) ->
    ok = witness_run_log:gap(First, Reason, Logging),
    Why = case Reason of
        {gap, Gap} -> witness_text_verdict:gap(Gap);
        {crashed, Crash} -> ["what writes it has crashed: ", witness_event:format_term(Crash, 400)]
    end,
    incomplete(log_incomplete, ["the log is not complete: ", Why], R).

ended(ignored, _, R) -> R;
ended(Outcome = #{covered := Mask}, Meta, R = #run{tally = Tally}) ->
    R1 = R#run{tally = witness_run_tally:covered(key(Meta), Mask, Tally)},
    case Outcome of
        #{verdict := _} -> verdict(maps:remove(covered, Outcome), Meta, R1);
        #{slices := _} -> R1
    end.

%% The monitors of a log run in other processes: their findings arrive in the order of the log.
checked(#{started := Started, monitors := Monitors, covered := Covered, counted := Counted, found := Found}, R = #run{tally = Tally, options = Options}) ->
    #{system := {log, Input}} = Options,
    File = witness_run_maps:log_name(Input),
    T1 = lists:foldl(fun({Property, N}, T) -> witness_run_tally:started(key(Property), N, T) end, Tally, Started),
    T2 = lists:foldl(fun({Property, Mask}, T) -> witness_run_tally:covered(key(Property), Mask, T) end, T1, Covered),
    T3 = lists:foldl(fun({Property, Of, Slices, Vacuous, Undecided}, T) ->
        Satisfied = witness_run_tally:counted(key(Property), {Of, Slices}, Vacuous, T),
        maps:fold(fun(Reason, N, A) -> undecided(Reason, N, Property, A, R) end, Satisfied, Undecided)
    end, T2, Counted),
    lists:foreach(fun(Meta) -> witness_run_history:monitor(historian(R), undefined, Meta) end, Monitors),
    lists:foldl(fun({Kind, Meta, Place, #{verdict := _} = Outcome}, A) ->
                        ok = witness_run_history:verdict(historian(R), Kind, Meta, Outcome),
                        verdict(Outcome, Meta#{log => <<File/binary, (place(Place))/binary>>}, A);
                   (_, A) -> A
                end, R#run{tally = T3}, Found).

place({Process, Entry}) -> <<$:, (integer_to_binary(Process))/binary, $:, (integer_to_binary(Entry))/binary>>;
place(Line) -> <<$:, (integer_to_binary(Line))/binary>>.

log_ended(#{whole := Whole, tracers := Tracers, refused := Refused} = Ended, R0) ->
    R = R0#run{refused = case Refused of undefined -> undefined; _ -> text(Refused) end, tracers = Tracers,
               system = case Whole of true -> {ended, normal}; false -> running end},
    Told = lists:foldl(fun({Code, Text}, A) -> warning(Code, Text, A) end, R#run{gaps = maps:with([gaps, missing], Ended)},
                       witness_reading:gaps(Ended)),
    lists:foldl(fun({Code, Text}, A) -> incomplete(Code, Text, A) end, Told, witness_reading:missing(Ended)).

verdict(Outcome, Meta, R = #run{versions = Versions, notifier = Notifier, tally = Tally}) ->
    %% For a property over all processes, the outcome has the deciding process.
    Found = maps:merge(maps:merge(#{process => undefined, signature => undefined}, Outcome), Meta),
    V = redacted(Found#{source => witness_run_maps:source(Found, witness_run_versions:sources(Versions))}, R),
    case witness_run_tally:is_told(V, Tally) of
        true ->
            ok = witness_run_notifier:verdict(Notifier, V),
            keep(V, R#run{tally = witness_run_tally:verdict(V, Tally)});
        false ->
            #{reason := Reason} = V,
            R#run{tally = witness_run_tally:undecided(key(V), Reason, 1, Tally)}
    end.

%% Redaction precedes every notification.
redacted(V, #run{options = #{redact := true}, versions = Versions}) ->
    witness_run_redaction:verdict(witness_run_versions:is_written(key(V), Versions), V);
redacted(V, _) -> V.

shown(Reason, #run{options = #{redact := true}}) -> witness_event_redact:term(Reason);
shown(Reason, _) -> Reason.

keep(V, R = #run{verdicts = Verdicts, kept = Kept, options = #{max_verdicts := Max}}) when Kept < Max ->
    each_is_told(R#run{verdicts = [V | Verdicts], kept = Kept + 1});
keep(_, R) -> R.

%% Monitors of a log, and those in the processes of the system, need not report verdicts that are not shown. If the host has
%% died, the link reports it.
each_is_told(R = #run{options = Options, subscribed = Subscribed, kept = Kept, each = Before}) ->
    case Subscribed orelse witness_run_inline:is_each_told(Options, Kept) of
        Before -> R;
        Each ->
            #run{instrumentation = Module, pool = Pool, phase = Phase} = R,
            _ = (Module =:= witness_inline_coordinator andalso Phase =:= running orelse Module =:= witness_offline)
                andalso is_pid(Pool) andalso try Module:each(Pool, Each) catch exit:_ -> ok end,
            R#run{each = Each}
    end.

%% --- summary ---------------------------------------------------------------------

summary(R = #run{tally = Tally, counts = Counts, system = System}) ->
    #{processes := Processes, events := Events} = Counted = Counts(),
    History = case R#run.history of #{} = Told -> #{history => Told}; _ -> #{} end,
    #{gaps := Gaps} = R#run.gaps,
    (maps:merge(maps:merge(witness_run_tally:summary(Tally), maps:with([lines], Counted)), History))#{
      gaps => max(Gaps, witness_run_tally:gaps(Tally)), missing => maps:get(missing, R#run.gaps, witness_run_tally:missing(Tally)),
      processes => Processes, tracers => R#run.tracers, events => Events,
      warnings => warnings(R), elapsed_ms => ended_at(R) - R#run.started, outcome => outcome(R), refused => R#run.refused,
      system => case System of
          {ended, Reason} -> case crashed(R) of true -> {crashed, Reason}; false -> normal end;
          starting -> starting;
          running -> undefined
      end}.

outcome(#run{refused = Refused}) when Refused =/= undefined -> refused;
outcome(R = #run{tally = Tally, incomplete = Incomplete}) ->
    case witness_run_tally:verdicts(Tally) of
        #{no := No} when No > 0 -> violated;
        #{} -> case witness_run_tally:trusted(Tally) andalso not Incomplete andalso not crashed(R) of
            true -> ok;
            false -> untrusted
        end
    end.

ended_at(#run{ended = undefined}) -> erlang:monotonic_time(millisecond);
ended_at(#run{ended = Ended}) -> Ended.

%% A stopped application ends with `normal'; one with a top supervisor that gave up ends with `shutdown'.
crashed(#run{system = {ended, normal}}) -> false;
crashed(#run{system = {ended, shutdown}, options = #{system := System}}) -> element(1, System) =:= application;
crashed(#run{system = {ended, {shutdown, _}}}) -> false;
crashed(#run{system = {ended, _}}) -> true;
crashed(_) -> false.

warnings(R = #run{tally = Tally}) ->
    R#run.warnings
        ++ [#{code => system_crashed, text => text(how_ended(Reason))} || {ended, Reason} <- [R#run.system], crashed(R)]
        ++ [#{code => sensitive, text => text(hidden(Hidden))} || #run{hidden = Hidden} <- [R], Hidden > 0]
        ++ witness_run_tally:warnings(Tally)
        ++ [#{code => verdicts_dropped,
              text => text(io_lib:format("only the first ~w verdicts are kept", [R#run.kept]))}
            || #{max_verdicts := Max} <- [R#run.options], Max > 0, R#run.kept >= Max,
               lists:sum(maps:values(witness_run_tally:verdicts(Tally))) > R#run.kept].

orphans(Shown, Count) ->
    Names = [[witness_event:format_term(P, 40)
              | [[" (", witness_event_term:function(M, F, A, 120), ")"] || {M, F, A} <- [Function]]]
             || {P, Function} <- Shown],
    ["it is not known whether ", integer_to_binary(Count), " running process", ["es" || Count > 1],
     " belong", ["s" || Count =:= 1], " to a group, since the process that spawned ", case Count of 1 -> "it"; _ -> "them" end, " has ended: ",
     lists:join(", ", Names), [", ..." || Count > length(Shown)],
     ". The groups are inconclusive; attach when these have ended, or use a property without `group`"].

how_ended(Reason) ->
    case witness_run_application:ended(Reason) of
        undefined -> ["the system ended with ", witness_event:format_term(Reason, 400)];
        Told -> Told
    end.

hidden(1) -> ["a process has", hid("it has")];
hidden(N) -> [integer_to_list(N), " processes have", hid("they have")].

hid(Have) -> [" set the flag sensitive: nothing that ", Have, " done since then, or what was spawned then, was observed"].
