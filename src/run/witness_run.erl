-module(witness_run).
-moduledoc """
One run, as a process: it starts the parts of the run (`m:witness_run_start`), gives the messages that it gets to the state machine
of the run (`m:witness_run_core`), and does what that returns. It decides nothing about verdicts, phases or the end.

The run is linked to the instrument (`m:witness_instrument`), which owns the tracers, and to every monitor's
runner, so it learns of every death. A runner that dies without a report makes
its own verdict inconclusive. The loss of the instrument makes all undecided verdicts
inconclusive. So does the loss of a tracer, unless its events are known to concern only its own
monitors. When the run itself dies, the links end everything else, and with the tracers their sessions.
""".
-behaviour(gen_server).

-export([start_link/1, start/1, await_begin/1, await/2, await_started/2, finish/1, stop/1, verdicts/1, info/1, awaited/1,
         called/1, remaining/1, subscribe/2,
         replace/2, allow/2, format_error/1]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2, format_status/1]).

-export_type([reason/0, error/0]).

-doc """
- `timeout`: the run has not ended, or its applications have not started, in time;
- `stopped`: the run was stopped before its applications had started;
- `{run_died, Reason}`: the process of the run has ended;
- `{not_started, Reason}`: it ended before it began, or Witness could not be started;
- `{not_allowed, What}`: why a process starts nothing for the system (`witness:allow/2`);
- `{not_replaced, What}`: why specifications are not replaced (`witness:replace/2`).
""".
-type reason() :: timeout | stopped | died() | {not_started, Reason :: term()}
                | {not_allowed, off | ended}
                | {not_replaced, messages | functions | signatures | groups | all | inline | log | ended}.

-type died() :: {run_died, Reason :: term()}.

-type error() :: {?MODULE, reason()} | witness_run_start:error() | witness_run_application:error().

%% history: its process, then what it has found, if it was asked for and has not been lost
%% before: the processes of the node that were there before the run, if the run watches all of them
%% look: what the last look at the processes of the system has found; remaining: those that were there when observation ended
-record(run, {options :: witness_options:options(),
              core :: witness_run_core:core(),
              instrument :: witness_instrument:t(),
              counts :: fun(() -> witness_instrument:counts()),
              notifier :: pid(),
              log :: witness_run_log:logging(),
              functions :: witness_trace_functions:watch(),
              history :: none | pid() | witness_run_history:history(),
              maps :: witness_run_maps:maps(),
              gathered :: witness_run_maps:gathered(),
              before :: #{pid() => []},
              look = #{} :: witness_run_remaining:look(),
              remaining = none :: none | witness_run_remaining:remaining(),
              %% so many violations still get the names of processes; the first process may have ended by then
              unnamed :: non_neg_integer(),
              called :: witness_run_names:called(),
              seen :: fun(() -> [witness_instrument:sight()])}).

-define(MAX_NAMED, 100).
%% Milliseconds in which the reader of a log that is given up must report what was found.
-define(GIVEN_UP_MS, 5_000).
%% How long a look at the processes of the system may take.
-define(LOOK_MS, 1_000).
%% The first look for checks at the processes that are still there. Each further one comes when the run has lasted twice as long.
-define(CHECK_MS, 500).
%% Reports of shards and runners arrive in bursts, and are garbage once they are handled.
-define(SPAWN_OPTIONS, [{fullsweep_after, 10}, {message_queue_data, off_heap}]).

-doc "Starts a run. The caller must wait until it has begun (`await_begin/1`); meanwhile other runs may start.".
-spec start_link(witness_options:options()) -> gen_server:start_ret().
start_link(Options) -> gen_server:start_link(?MODULE, Options, [{spawn_opt, ?SPAWN_OPTIONS}]).

-doc """
Starts a run without a supervisor: it ends when its owner does, however the owner ends, and reports nothing. With a link, the exit
of the owner, as the run's parent, might arrive first, and be reported as a crash.
""".
-spec start(witness_options:options()) -> gen_server:start_ret().
start(Options) -> gen_server:start(?MODULE, Options, [{spawn_opt, ?SPAWN_OPTIONS}]).

-doc "Waits until a run has begun. A run that could not begin has ended.".
-spec await_begin(pid()) -> ok | {error, error()}.
await_begin(Run) ->
    case call(Run, begun, infinity) of
        {error, {?MODULE, {run_died, Reason}}} -> {error, {?MODULE, {not_started, Reason}}};
        Begun -> Begun
    end.

-spec await(pid(), timeout()) -> {ok, witness:summary()} | {error, {?MODULE, timeout | died()}}.
await(Run, Timeout) -> call(Run, await, Timeout).

-spec await_started(pid(), timeout()) -> ok | {error, {?MODULE, timeout | stopped | died()} | witness_run_application:error()}.
await_started(Run, Timeout) -> call(Run, await_started, Timeout).

-doc "Ends observation, like `stop/1`, but the run stays, to return results.".
-spec finish(pid()) -> {ok, witness:summary()} | {error, {?MODULE, died()}}.
finish(Run) -> call(Run, finish, infinity).

-spec stop(pid()) -> {ok, witness:summary()} | {error, {?MODULE, died()}}.
stop(Run) -> call(Run, stop, infinity).

-spec verdicts(pid()) -> [witness:verdict()].
verdicts(Run) -> gen_server:call(Run, verdicts, infinity).

-spec info(pid()) -> map().
info(Run) -> gen_server:call(Run, info, infinity).

-doc "The live observed processes that the run waits for, without those of Witness.".
-spec awaited(pid()) -> [pid()].
awaited(Run) -> gen_server:call(Run, awaited, infinity).

-doc "See `c:witness_instrument:called/1`.".
-spec called(pid()) -> fun((pid()) -> [atom()]).
called(Run) -> gen_server:call(Run, called, infinity).

-doc """
The processes of the system that are still there, and what each one does; `none` once observation has ended, or if the run has no
time to look.
""".
-spec remaining(pid()) -> witness_run_remaining:remaining() | none.
remaining(Run) -> try gen_server:call(Run, remaining, ?LOOK_MS) catch exit:_ -> none end.

-spec replace(pid(), [file:name_all()]) -> {ok, [witness:warning()]} | {error, error()}.
replace(Run, Files) -> call(Run, {replace, Files}, infinity).

-spec allow(pid(), pid()) -> ok | {error, error()}.
allow(Run, Process) -> call(Run, {allow, Process}, infinity).

-spec subscribe(pid(), witness_run_notifier:form()) -> {ok, reference()}.
subscribe(Run, Form) -> gen_server:call(Run, {subscribe, self(), Form}, infinity).

call(Run, Request, Timeout) ->
    try
        gen_server:call(Run, Request, Timeout)
    catch
        exit:{timeout, _} -> {error, {?MODULE, timeout}};
        exit:{Reason, {gen_server, call, _}} -> {error, {?MODULE, {run_died, Reason}}}
    end.

-doc false.
-spec init(witness_options:options()) -> {ok, witness_options:options(), {continue, start_parts}}.
init(Options = #{owner := Owner}) ->
    process_flag(trap_exit, true),
    proc_lib:set_label(witness_run),
    ok = witness_event:use_syntax(maps:get(syntax, Options)),
    monitor(process, Owner),
    {ok, Options, {continue, start_parts}}.

-doc false.
-spec handle_continue(start_parts, witness_options:options()) -> {noreply, #run{} | {refused, term()}} | {stop, shutdown, #run{}}.
handle_continue(start_parts, Options) ->
    case witness_run_start:start(Options) of
        {ok, #{instrument := Instrument, counts := Counts, notifier := Notifier, log := Log, functions := Functions,
               history := History} = Parts} ->
            #{specs := Specs, properties := Properties, warnings := Warnings, maps := Maps, gathered := Gathered,
              started_at_ms := Now} = Parts,
            Core = witness_run_core:new(Options, witness_instrument:process(Instrument), Now, Warnings, {Specs, Properties}),
            R = #run{options = Options, core = Core, instrument = Instrument, counts = Counts, notifier = Notifier, log = Log,
                     functions = Functions, history = History, maps = Maps, gathered = Gathered, before = before(Options),
                     unnamed = ?MAX_NAMED,
                     called = called(witness_run_names:of_system(Options), witness_instrument:called(Instrument)),
                     seen = witness_instrument:seen(Instrument)},
            ok = schedule_checks(Options),
            case Parts of
                #{adopts := true} -> {noreply, R};
                #{adopts := false} -> no_reply(step(start, R))
            end;
        {error, Reason} -> {noreply, {refused, Reason}}
    end.

schedule_checks(#{checks := []}) -> ok;
schedule_checks(#{system := System}) ->
    _ = witness_run_attach:is_partial(System) andalso (self() ! {input, first_check}),
    _ = erlang:send_after(?CHECK_MS, self(), {input, check}),
    ok.

before(#{scope := node}) -> maps:from_keys(processes(), []);
before(#{scope := tree}) -> #{}.

-doc false.
-spec handle_call(term(), gen_server:from(), #run{} | {refused, term()}) ->
    {noreply, #run{}} | {reply, term(), #run{}} | {stop, shutdown, #run{}} | {stop, shutdown, term(), #run{} | {refused, term()}}.
handle_call(begun, _, {refused, Reason} = Refused) -> {stop, shutdown, {error, Reason}, Refused};
handle_call(begun, _, R) -> {reply, ok, R};
handle_call(Call, From, R) when Call =:= await; Call =:= await_started; Call =:= finish; Call =:= stop ->
    case step({call, Call, From}, R) of
        {stop_and_reply, R1} -> {stop, shutdown, {ok, summary(R1)}, R1};
        Next -> no_reply(Next)
    end;
handle_call({replace, Files}, _, R) ->
    case compile(Files, R) of
        {ok, Specs, Warnings, Maps} -> reply({ok, Warnings}, step({replaced, Specs, Warnings}, R#run{maps = Maps}));
        {error, _} = Error -> {reply, Error, R}
    end;
handle_call({allow, _}, _, R = #run{options = #{on_behalf := false}}) ->
    {reply, {error, {?MODULE, {not_allowed, off}}}, R};
handle_call({allow, Process}, _, R = #run{instrument = Instrument}) ->
    {reply, case is_observing(R) of
                true -> witness_instrument:servers(Instrument, [Process], true);
                false -> {error, {?MODULE, {not_allowed, ended}}}
            end, R};
handle_call({subscribe, Pid, Form}, _, R = #run{notifier = Notifier}) ->
    Ref = witness_run_notifier:subscribe(Notifier, Pid, Form),
    reply({ok, Ref}, step(subscribed, R));
handle_call(verdicts, _, R = #run{core = Core}) ->
    {reply, witness_run_core:verdicts(Core), R};
handle_call(info, _, R = #run{core = Core, counts = Counts}) ->
    {reply, witness_run_core:info(Counts(), Core), R};
handle_call(awaited, _, R = #run{instrument = Instrument}) ->
    Own = own_predicate(R),
    Awaited = fun() -> try witness_instrument:awaited(Instrument) catch exit:_ -> [] end end,
    {reply, [P || is_observing(R), P <- Awaited(), not Own(P)], R};
handle_call(called, _, R = #run{called = Called}) -> {reply, Called, R};
handle_call(remaining, _, R) ->
    case is_observing(R) of
        true ->
            {Remaining, Waiting, R1} = look(R),
            reply(Remaining, step({remaining, Remaining, Waiting}, R1));
        false -> {reply, none, R}
    end.

reply(Reply, {continue, R}) -> {reply, Reply, R}.

no_reply({continue, R}) -> {noreply, R};
no_reply({stop, R}) -> {stop, shutdown, R}.

-doc false.
-spec handle_cast(term(), #run{}) -> {noreply, #run{}}.
handle_cast(_, R) -> {noreply, R}.

-doc false.
-spec handle_info(term(), #run{} | {refused, term()}) ->
    {noreply, #run{} | {refused, term()}} | {stop, Reason :: term(), #run{} | {refused, term()}}.
handle_info({'DOWN', _, process, _, _}, {refused, _} = Refused) -> {stop, shutdown, Refused};
handle_info(_, {refused, _} = Refused) -> {noreply, Refused};
handle_info({'DOWN', _, process, _, _}, R) -> no_reply(step(owner_died, R));
%% The process that gave the table away has died; its exit signal arrives later.
handle_info({'ETS-TRANSFER', Table, Dead, _}, R0) ->
    R = #run{instrument = Instrument} = check_functions(R0),
    no_reply(step({reports, witness_instrument:inherit(Instrument, Dead, Table)}, R));
%% Verdicts would be lost.
handle_info({'EXIT', Notifier, Reason}, R = #run{notifier = Notifier}) -> {stop, Reason, R};
%% The run has lost only its history.
handle_info({'EXIT', History, _}, R = #run{history = History}) -> {noreply, R#run{history = none}};
handle_info({flushed, Notifier}, R = #run{notifier = Notifier}) -> no_reply(step(flushed, R));
handle_info({told, Notifier}, R = #run{notifier = Notifier}) -> no_reply(step(summary_delivered, R));
handle_info({input, Input}, R) -> no_reply(step(Input, R));
handle_info(Message, R0) when is_tuple(Message) ->
    R = #run{unnamed = Unnamed, called = Called, options = Options} = check_functions(R0),
    {Named, Left} = witness_run_names:add(Message, Unnamed, Called, Options),
    no_reply(step(Named, R#run{unnamed = Left}));
%% No part of the run sends any other message.
handle_info(_, R) -> {noreply, R}.

%% A report that is there now was made of events before now. If the functions are still observed, none of their calls was missing.
check_functions(R = #run{functions = Functions}) ->
    case witness_trace_functions:replaced(Functions) of
        none -> R;
        {replaced, Function} ->
            {continue, R1} = step({function_replaced, Function}, R#run{functions = witness_trace_functions:none()}),
            R1
    end.

-doc false.
-spec terminate(term(), #run{} | {refused, term()} | witness_options:options()) -> ok.
terminate(_, #run{core = Core, instrument = Instrument, history = History, notifier = Notifier}) ->
    _ = is_pid(History) andalso exit(History, kill),
    lists:foreach(fun(Runner) -> exit(Runner, kill) end, witness_run_core:runners(Core)),
    _ = witness_run_core:observer(Core) =/= undefined andalso stop_instrument(Instrument),
    %% All notifications were delivered, or never will be. With the reason `normal' the link does not end the notifier.
    exit(Notifier, kill),
    unload(witness_run_versions:compiled(witness_run_core:versions(Core)));
terminate(_, _) ->
    ok.

%% A crash report would contain all verdicts, and the contents of messages.
-doc false.
-spec format_status(gen_server:format_status()) -> gen_server:format_status().
format_status(Status) -> witness_event_redact:status(Status).

%% --- inputs and effects ----------------------------------------------------------

step(Input, R = #run{core = Core}) ->
    {Effects, Core1} = witness_run_core:step(Input, now_ms(), Core),
    perform(Effects, R#run{core = Core1}).

%% Returns how the process goes on: `stop_and_reply', if it ends and then replies to the current call.
perform([], R) -> {continue, R};
perform([stop], R) -> {stop, R};
perform([{stop_and_reply, _}], R) -> {stop_and_reply, R};
perform([Effect | Effects], R) ->
    case perform_effect(Effect, R) of
        ok -> perform(Effects, R);
        %% The result of an effect comes before the next one.
        {input, Input, R1} ->
            {continue, R2} = step(Input, R1),
            perform(Effects, R2);
        {state, R1} -> perform(Effects, R1)
    end.

%% Does what `t:witness_run_core:effect/0` says. Returns the input that is the result, if there is one.
perform_effect({notify, Verdict}, #run{notifier = Notifier}) -> witness_run_notifier:notify_verdict(Notifier, Verdict);
perform_effect({history_monitor, Reader, Meta}, R) -> witness_run_history:add_monitor(history_process(R), Reader, Meta);
perform_effect({history_verdict, Kind, Meta, Outcome}, R) ->
    witness_run_history:add_verdict(history_process(R), Kind, Meta, Outcome);
perform_effect({link, Pid}, _) -> link(Pid), ok;
perform_effect({gap, Runner, Why}, _) -> witness_monitor_runner:report_gap(Runner, Why);
perform_effect({kill, Pid}, _) -> exit(Pid, kill), ok;
perform_effect({unload, Specs}, _) -> unload(Specs);
perform_effect({log_gap, First, Reason}, #run{log = Log}) -> witness_run_log:write_gap(First, Reason, Log);
%% If the process of the instrument has died, the link reports it.
perform_effect({report_each, Each}, R = #run{instrument = Instrument}) ->
    _ = is_pid(observer(R)) andalso try witness_instrument:each(Instrument, Each) catch exit:_ -> ok end,
    ok;
perform_effect({reply, From, Reply}, _) -> gen_server:reply(From, Reply);
perform_effect({reply_summary, Callers}, R) ->
    Summary = summary(R),
    lists:foreach(fun(From) -> gen_server:reply(From, {ok, Summary}) end, Callers);
perform_effect(adopt_node, #run{options = Options, instrument = Instrument, history = History}) ->
    Own = witness_run_attach:own_predicate(Options),
    ok = witness_run_history:adopt(History, fun(P) -> not Own(P) end),
    witness_instrument:adopt_node(Instrument, Own);
perform_effect({start_applications, What}, R) -> {input, {starter, witness_run_application:start_link(What, self())}, R};
perform_effect(launch, R = #run{options = Options}) ->
    Root = launch(R),
    {input, {launched, Root}, R#run{called = called(Root, Options, R)}};
perform_effect(stop_instrument, R = #run{instrument = Instrument}) -> {input, {instrument_stopped, stop_instrument(Instrument)}, R};
perform_effect(give_up_instrument, R = #run{instrument = Instrument}) ->
    ok = witness_instrument:give_up(Instrument),
    perform_effect({send_after, ?GIVEN_UP_MS, given_up}, R);
perform_effect({acknowledge, Number}, #run{instrument = Instrument, notifier = Notifier}) ->
    witness_run_notifier:call_when_delivered(Notifier, fun() -> witness_instrument:acknowledge(Instrument, Number) end);
perform_effect(freeze_counts, R) -> {state, freeze_counts(R)};
perform_effect(note_remaining, R) ->
    {Remaining, Waiting, R1} = look(R),
    {input, {remaining, Remaining, Waiting}, R1#run{remaining = Remaining}};
perform_effect(check_remaining, R) ->
    {Remaining, Waiting, R1} = look(R),
    {input, {remaining, Remaining, Waiting}, R1};
perform_effect({check_rate, Rate}, R = #run{counts = Counts}) ->
    #{events := Events} = Counts(),
    case witness_run_limits:check_rate(Events, Rate) of
        {ok, Next} -> witness_run_limits:schedule_check(Next);
        {exceeded, Text} -> {input, {rate_exceeded, Text}, R}
    end;
perform_effect({enqueue, Input}, _) -> self() ! {input, Input}, ok;
perform_effect({send_after, Ms, Input}, _) -> _ = erlang:send_after(Ms, self(), {input, Input}), ok;
perform_effect(flush, #run{notifier = Notifier}) -> witness_run_notifier:flush(Notifier);
perform_effect(close_log, R = #run{log = Log}) ->
    case witness_run_log:close(Log) of
        ok -> {state, R#run{log = none}};
        {error, Text} -> {input, {log_incomplete, Text}, R#run{log = none}}
    end;
perform_effect(close_history, R = #run{history = History}) when is_pid(History) ->
    {state, R#run{history = try witness_run_history:finish(History) catch exit:_ -> none end}};
perform_effect(close_history, _) -> ok;
perform_effect(notify_summary, R = #run{notifier = Notifier}) -> witness_run_notifier:notify_summary(Notifier, summary(R)).

%% If the instrument has died meanwhile, the link reports it.
launch(#run{options = #{system := System, group_leader := GroupLeader}, instrument = Instrument, history = History}) ->
    try
        _ = is_pid(History) andalso witness_instrument:lives(Instrument, History),
        witness_run_history:launch(History, fun() -> witness_instrument:launch(Instrument, System, GroupLeader) end)
    of
        {ok, Root} -> Root
    catch
        exit:_ -> undefined
    end.

%% The first process may have ended before the run knows it, and not every instrument remembers it.
called(Root, #{system := {Module, _, _}}, #run{called = Called}) -> called(Called, fun(P) -> [Module || P =:= Root] end);
called(_, _, #run{called = Called}) -> Called.

called(First, Second) -> fun(P) -> case First(P) of [] -> Second(P); Names -> Names end end.

stop_instrument(Instrument) ->
    try witness_instrument:stop(Instrument)
    catch exit:Reason -> {lost, Reason}
    end.

%% The counting function may have a handle of an open trace session, which lasts as long as a handle exists.
freeze_counts(R = #run{counts = Counts}) ->
    Last = Counts(),
    erlang:garbage_collect(),
    R#run{counts = fun() -> Last end}.

summary(#run{core = Core, counts = Counts, history = History, remaining = Remaining, seen = Seen}) ->
    Summary = witness_run_core:summary(Counts(), Seen, now_ms(), Core),
    maps:merge(Summary, #{Key => Value || {Key, #{} = Value} <- [{history, History}, {alive, Remaining}]}).

%% Processes that Witness and the node need are none of the system's.
look(R = #run{options = #{redact := Redact, checks := Checks} = Options, core = Core, before = Others, look = Last}) ->
    Idle = witness_run_remaining:idle(Last),
    Own = own_predicate(R),
    OfSystem = witness_run_attach:system_predicate(Options),
    {Observed, AreAll} = observed(R),
    Processes = [P || P <- Observed, not is_map_key(P, Others)],
    Belongs = fun(P) ->
        case Own(P) of
            true -> none;
            false -> case OfSystem(P) of true -> system; false -> application end
        end
    end,
    IsClosed = AreAll andalso not witness_run_attach:is_partial(maps:get(system, Options)),
    Holds = case {lists:member(leaks, Checks), witness_run_core:has_ended(Core)} of
        {false, _} -> none;
        {true, false} -> repeated;
        {true, true} -> all
    end,
    {#{whole := Whole} = Seen, Waiting, Look} =
        witness_run_remaining:look(Processes, Belongs, IsClosed, now_ms(), {Last, Idle}, Holds),
    Remaining = Seen#{whole := Whole andalso AreAll},
    Shown = case Redact of true -> maps:map(fun redact_remaining/2, Remaining); false -> Remaining end,
    {Shown, Waiting, R#run{look = Look}}.

redact_remaining(Of, Described) when Of =:= processes; Of =:= servers; Of =:= applications ->
    [witness_run_remaining:redact(Process) || Process <- Described];
redact_remaining(_, Value) -> Value.

own_predicate(#run{options = Options}) -> witness_run_attach:own_predicate(Options#{unobserved := []}).

%% If the process of the instrument has died, the link reports it, and these are not all processes.
observed(#run{instrument = Instrument}) ->
    try {witness_instrument:alive(Instrument), true} catch exit:_ -> {[], false} end.

observer(#run{core = Core}) -> witness_run_core:observer(Core).

is_observing(R = #run{core = Core}) -> witness_run_core:phase(Core) =:= running andalso is_pid(observer(R)).

history_process(#run{history = History}) when is_pid(History) -> History;
history_process(_) -> none.

now_ms() -> erlang:monotonic_time(millisecond).

unload(Specs) -> lists:foreach(fun witness_spec:unload/1, Specs).

%% --- replacing specifications ----------------------------------------------------

%% The new specifications are compiled and compared with what is gathered before anything is changed.
compile(Files, R = #run{instrument = Instrument, options = Options}) ->
    maybe
        true ?= witness_instrument:can(replace, Instrument),
        true ?= is_observing(R) orelse {false, ended},
        {ok, Specs, Warnings} ?= witness_run_start:compile(Files, Options),
        case replace_maps(Specs, R) of
            {ok, Maps} -> {ok, Specs, Warnings, Maps};
            {error, Why} ->
                ok = witness_run_start:unload(Specs, Files),
                {error, {?MODULE, {not_replaced, Why}}}
        end
    else
        {false, Reason} -> {error, {?MODULE, {not_replaced, Reason}}};
        {error, _} = Error -> Error
    end.

replace_maps(Specs, #run{core = Core, instrument = Instrument, maps = Maps, gathered = Gathered}) ->
    Version = witness_run_versions:number(witness_run_core:versions(Core)) + 1,
    maybe
        {ok, Replaced} ?= witness_run_maps:replace(Specs, Version, Maps, Gathered),
        ok ?= try witness_instrument:replace(Instrument, [Map || {_, Map} <- Replaced]) catch exit:_ -> {error, ended} end,
        {ok, Replaced}
    end.

%% --- errors ----------------------------------------------------------------------

-doc "A reason as text.".
-spec format_error(reason()) -> unicode:chardata().
format_error({not_replaced, log}) -> "specifications are not replaced while a log is checked";
format_error({not_replaced, ended}) ->
    "the run does not watch any more: there are no processes for other specifications";
format_error({not_replaced, all}) ->
    "properties over all processes (`per` without `with`) are there from the beginning of a run to its end";
format_error({not_replaced, inline}) ->
    "specifications are not replaced in a run that is instrumented inline: what is woven follows from them";
format_error({not_replaced, functions}) ->
    "the run does not observe all functions that these specifications name: name them in those of its start";
format_error({not_replaced, What}) ->
    ["the run does not gather the ", atom_to_binary(What), " that these specifications need: start it with the "
     "option replaceable",
     [", over the source evm" || What =/= messages]];
format_error({not_allowed, off}) ->
    "what other processes start is not observed by this run: start it with the option on_behalf, over the source native";
format_error({not_allowed, ended}) -> "the run does not observe any more";
format_error(timeout) -> "the run has not ended, or its application not started, in time";
format_error(stopped) -> "the run was stopped before its application had started";
format_error({run_died, Reason}) ->
    ["the run has died: ", witness_event:format_term(Reason, 400)];
format_error({not_started, Reason}) ->
    ["Witness could not start: ", witness_event:format_term(Reason, 400)].
