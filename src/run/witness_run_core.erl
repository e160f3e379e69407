-module(witness_run_core).
-moduledoc """
A run as a state machine: its phases, what ends it, which callers wait for it, and what it has found. Pure: `step/3` takes one input
and the time, and returns what the process of the run (`m:witness_run`) is to do, as data, in order.

A run goes through three phases:

- `running`: until the system has ended (`halt`), or the run is stopped;
- `draining`: nothing is observed any more, monitors handle the remaining events;
- `finished`: every monitor has reported. The run returns results until the owner dies or
  the run is stopped.

*Invariants:*

- the phases go only forward, and a run finishes at most once;
- each caller that waits gets exactly one reply, unless the run ends before;
- the outcome is never `ok` after a loss was reported: of events, of a tracer, of a monitor, or of the log that the run writes;
- the summary is given to the notifier when each monitor that was announced has reported its end; from then on no report of a
  monitor changes anything.
""".

-export([new/5, step/3, phase/1, has_ended/1, observer/1, verdicts/1, runners/1, versions/1, info/2, summary/4]).

-export_type([core/0, input/0, effect/0, phase/0, system/0]).

-type phase() :: running | draining | finished.

-doc "How far the system is. A log that was not read to its end is `running`.".
-type system() :: starting | running | {ended, Reason :: term()}.

%% observer: the process of the instrument; it has ended, or is not needed any more
%% starter: the process that starts the applications, as long as it is needed
%% system_ended_at_ms: when its first process has ended, or its application has stopped
%% root: the first process, if the run starts it
%% closing: how far the notifier is, which first delivers all verdicts and then the summary
%% all_announced: no further monitor is started
%% out: effects, the last one first
-record(core, {options :: witness_options:options(),
               started_at_ms :: integer(),
               ended_at_ms :: undefined | integer(),
               phase = running :: phase(),
               closing = no :: no | flushing | summarizing,
               observer :: undefined | pid(),
               starter :: undefined | pid(),
               system = running :: system(),
               system_ended_at_ms :: undefined | integer(),
               root :: undefined | pid(),
               tree_ended = false :: boolean(),
               all_announced = false :: boolean(),
               tracers = 1 :: pos_integer(),
               findings :: witness_run_findings:findings(),
               awaiting = [] :: [gen_server:from()],
               starting = [] :: [gen_server:from()],
               stopping = [] :: [gen_server:from()],
               out = [] :: [effect()]}).

-opaque core() :: #core{}.

-doc """
A message of the instrument (`m:witness_instrument`), of its monitors, of the process that starts applications, or an exit signal;
and from the process of the run:

- `{call, Request, From}`: a call that waits; `subscribed`: a subscriber needs each verdict;
- `start`: all parts run, so the system may start;
- the results of effects: `{starter, Pid}`, `{launched, Root}`, `{instrument_stopped, How}`, `{rate_exceeded, Text}`,
  `{log_incomplete, Text}`;
- what was enqueued: `all_announced`, `{instrument_lost, Reason}`, `{settled, Version}`;
- `overdue`, `given_up`, `{limit, duration}`, `{limit, Rate}`: a timer has expired;
- `{replaced, Specs, Warnings}`: new monitors have other specifications from now on;
- `flushed`, `summary_delivered`: the notifier has delivered all verdicts, or the summary;
- `owner_died`.

Any other term is ignored.
""".
-type input() ::
    {call, await | await_started | finish | stop, gen_server:from()}
  | start | subscribed | all_announced | overdue | given_up | flushed | summary_delivered | owner_died
  | witness_run_findings:report() | {reports, [witness_run_findings:report()]}
  | {checked, pos_integer(), witness_offline:checked()} | {log_ended, witness_offline:ended()}
  | {ended, Why :: term()} | {system_ended, Reason :: term()}
  | {applications_started, pid()} | {not_started, Reason :: term()}
  | {'EXIT', pid(), Reason :: term()} | {instrument_lost, Reason :: term()}
  | {instrument_stopped, {ok, Most :: pos_integer()} | later | {lost, Reason :: term()}}
  | {starter, pid()} | {launched, Root :: undefined | pid()}
  | {limit, duration | witness_run_limits:rate()} | {rate_exceeded, unicode:chardata()} | {log_incomplete, unicode:chardata()}
  | first_check | check | check_rest | {remaining, witness_run_remaining:remaining(), witness_run_remaining:waiting()}
  | {hidden, pid()} | {tracer_lost, Reason :: term()} | {unwatched, Reason :: atom()}
  | {unrestored, [module()]} | {code_replaced, [module()]} | {orphans, [{pid(), mfa() | undefined}], Count :: pos_integer()}
  | {settled, Version :: pos_integer()} | {replaced, [witness_spec:instrumentation_map()], [witness:warning()]}.

-doc """
What the process of the run does:

- `reply`, `reply_summary`: replies to callers;
- `stop`: ends the run; `stop_and_reply`: ends it, and then replies with the summary;
- `adopt_node`, `launch`, `start_applications`: starts the system;
- `check_remaining`: gives as input which processes of the system are still there; `note_remaining`: also notes them for the summary;
- `stop_instrument`: ends observation; `give_up_instrument`: stops waiting for its monitors, and gives `given_up` some time later;
  `kill`: kills a process;
- `acknowledge`: acknowledges a part of a log when all earlier verdicts have been delivered;
- `freeze_counts`: counts for the last time, since the instrument has ended;
- `check_rate`: compares the number of events with the limit;
- `enqueue`: gives this input after all messages that have arrived; `send_after`: gives it after so many milliseconds;
- `flush`: asks the notifier for `flushed`; `close_log`, `close_history`: every monitor has reported its end;
- `notify_summary`: notifies of the summary, which is then `summary_delivered`;
- `t:witness_run_findings:effect/0`.

The input that is the result of an effect comes before the next effect.
""".
-type effect() ::
    {reply, gen_server:from(), term()} | {reply_summary, [gen_server:from()]} | stop | {stop_and_reply, gen_server:from()}
  | adopt_node | launch | {start_applications, witness_run_application:what()}
  | note_remaining | check_remaining | stop_instrument | give_up_instrument | {acknowledge, pos_integer()} | freeze_counts
  | {check_rate, witness_run_limits:rate()}
  | {enqueue, input()} | {send_after, Ms :: non_neg_integer(), input()}
  | flush | close_log | close_history | notify_summary
  | witness_run_findings:effect().

-doc "A run that begins now, with the process of its instrument. `Warnings`: those of the options and of the specifications.".
-spec new(witness_options:options(), pid(), NowMs :: integer(), [witness:warning()],
          {[witness_spec:instrumentation_map()], [witness_run_maps:property()]}) -> core().
new(Options, Observer, NowMs, Warnings, {Specs, Properties}) ->
    #core{options = Options, observer = Observer, started_at_ms = NowMs,
          findings = witness_run_findings:new(Options, Specs, Properties, Warnings)}.

-doc "Takes an input. The time is that of the VM's monotonic clock in milliseconds.".
-spec step(input() | term(), NowMs :: integer(), core()) -> {[effect()], core()}.
step(Input, NowMs, C) ->
    C1 = proceed(NowMs, handle(Input, NowMs, C)),
    {lists:reverse(C1#core.out), C1#core{out = []}}.

-spec phase(core()) -> phase().
phase(#core{phase = Phase}) -> Phase.

-doc "Whether the system has ended: its first process, or its application.".
-spec has_ended(core()) -> boolean().
has_ended(#core{system_ended_at_ms = EndedAt}) -> EndedAt =/= undefined.

-doc "The process of the instrument; `undefined` if it has ended, or is not needed any more.".
-spec observer(core()) -> undefined | pid().
observer(#core{observer = Observer}) -> Observer.

-doc "The verdicts that are kept.".
-spec verdicts(core()) -> [witness:verdict()].
verdicts(#core{findings = F}) -> witness_run_findings:verdicts(F).

-doc "The processes of monitors that have not reported their end.".
-spec runners(core()) -> [pid()].
runners(#core{findings = F}) -> witness_run_findings:runners(F).

-doc "The specifications.".
-spec versions(core()) -> witness_run_versions:versions().
versions(#core{findings = F}) -> witness_run_findings:versions(F).

-doc "See `witness:info/1`.".
-spec info(witness_instrument:counts(), core()) -> map().
info(#{held := Held} = Counts, #core{phase = Phase, system = System, root = Root, findings = F}) ->
    #{monitors := Monitors} = Found = witness_run_findings:info(F),
    maps:merge(maps:without([held, unannounced], Counts),
               Found#{phase => Phase, waiting_for => Held, system => System, root => Root,
                      monitors := Monitors + maps:get(unannounced, Counts, 0)}).

-doc "The summary, also before the end; without `history`. `Seen`: see `c:witness_instrument:seen/1`.".
-spec summary(witness_instrument:counts(), Seen :: fun(() -> [witness_instrument:sight()]), NowMs :: integer(), core()) ->
    witness:summary().
summary(Counts, Seen, NowMs, #core{options = #{system := Kind}, system = System, tracers = Tracers, findings = F} = C) ->
    #core{started_at_ms = StartedAt, ended_at_ms = EndedAt} = C,
    Elapsed = case EndedAt of undefined -> NowMs; _ -> EndedAt end - StartedAt,
    Found = witness_run_findings:results(F),
    witness_run_summary:new(#{counts => Counts, seen => Seen, tracers => Tracers, elapsed_ms => Elapsed},
                            Found#{system => System, is_application => is_tuple(Kind) andalso element(1, Kind) =:= application}).

%% --- inputs ----------------------------------------------------------------------

%% Calls that wait.
handle({call, Call, From}, _, C = #core{phase = finished}) when Call =:= await; Call =:= finish -> emit({reply_summary, [From]}, C);
handle({call, stop, From}, _, C = #core{phase = finished}) -> emit({stop_and_reply, From}, C);
handle({call, await, From}, _, C = #core{awaiting = Awaiting}) -> C#core{awaiting = [From | Awaiting]};
handle({call, finish, From}, NowMs, C = #core{awaiting = Awaiting}) -> drain(NowMs, C#core{awaiting = [From | Awaiting]});
handle({call, stop, From}, NowMs, C = #core{stopping = Stopping}) -> drain(NowMs, C#core{stopping = [From | Stopping]});
handle({call, await_started, From}, _, C = #core{phase = running, system = starting, starting = Starting}) ->
    C#core{starting = [From | Starting]};
handle({call, await_started, From}, _, C) -> emit({reply, From, start_result(C)}, C);
handle(subscribed, _, C = #core{findings = F}) -> set_findings(witness_run_findings:subscribe(F), C);
handle(owner_died, _, C) -> emit(stop, C);
%% Monitors.
handle({Kind, _, _} = Report, _, C) when Kind =:= monitor; Kind =:= slice; Kind =:= verdict -> add_report(Report, C);
handle({reports, Reports}, _, C) -> lists:foldl(fun add_report/2, C, Reports);
handle(all_announced, _, C) -> C#core{all_announced = true};
handle({checked, Number, Checked}, _, C = #core{findings = F}) ->
    emit({acknowledge, Number}, set_findings(witness_run_findings:add_checked(Checked, F), C));
handle({log_ended, #{whole := Whole, tracers := Tracers} = Ended}, NowMs, C = #core{findings = F}) ->
    System = case Whole of true -> {ended, normal}; false -> running end,
    drain(NowMs, C#core{observer = undefined, all_announced = true, system = System, tracers = Tracers,
                        findings = witness_run_findings:end_log(Ended, F)});
%% The system.
handle(start, _, C) -> start_system(C);
handle({starter, Starter}, _, C) -> C#core{starter = Starter};
handle({launched, Root}, _, C) -> C#core{root = Root};
handle({applications_started, _}, _, C = #core{phase = running, system = starting, options = #{system := {application, _}}}) ->
    reply_started(C#core{system = running});
handle({applications_started, _}, _, C = #core{phase = running, system = starting}) ->
    reply_started(emit(launch, C#core{system = running}));
handle({not_started, Reason}, NowMs, C) -> reply_started(end_system(redact(Reason, C), NowMs, C#core{tree_ended = true}));
handle({ended, _}, NowMs, C = #core{options = #{system := {Kind, _}}}) when Kind =:= attach; Kind =:= children ->
    end_system(normal, NowMs, C#core{tree_ended = true});
handle({ended, _}, _, C) -> C#core{tree_ended = true};
handle({system_ended, Reason}, NowMs, C) -> end_system(redact(Reason, C), NowMs, C);
%% Deaths.
handle({'EXIT', Starter, normal}, _, C = #core{starter = Starter}) -> C#core{starter = undefined};
handle({'EXIT', Starter, Reason}, NowMs, C = #core{starter = Starter}) ->
    Text = witness_run_warnings:format_loss("no process watches the application any more", redact(Reason, C)),
    drain(NowMs, distrust(application_lost, Text, C#core{starter = undefined}));
handle({'EXIT', Observer, Reason}, NowMs, C = #core{observer = Observer, phase = Phase}) ->
    lose_instrument(Reason, NowMs, emit(freeze_counts, C#core{observer = undefined, all_announced = Phase =:= draining}));
handle({'EXIT', Pid, Reason}, _, C = #core{findings = F}) -> set_findings(witness_run_findings:handle_exit(Pid, Reason, F), C);
handle({instrument_lost, Reason}, NowMs, C) -> lose_instrument(Reason, NowMs, emit({enqueue, all_announced}, C));
handle({instrument_stopped, How}, _, C) -> end_observation(How, C);
%% Limits.
handle({limit, duration}, NowMs, C = #core{phase = running, options = #{duration := Duration}}) ->
    drain(NowMs, warn(duration, io_lib:format("watching has ended after ~w milliseconds (duration)", [Duration]), C));
handle({limit, duration}, _, C) -> C;
handle({limit, Rate}, _, C = #core{phase = running}) -> emit({check_rate, Rate}, C);
handle({rate_exceeded, Text}, NowMs, C = #core{options = Options}) ->
    give_up(rate, [Text, witness_run_warnings:format_ended_looks(Options)], NowMs, C);
%% What was not observed. If a tracer is lost, its own monitors know it, and other monitors miss nothing.
handle({tracer_lost, Reason}, _, C) -> distrust(tracer_lost, format_tracer_lost(Reason, C), C);
handle({hidden, _}, _, C = #core{findings = F}) -> C#core{findings = witness_run_findings:add_hidden(F)};
handle({unwatched, Reason}, _, C) ->
    distrust(unwatched, ["a group of processes was not watched to its end (", atom_to_binary(Reason), ")"], C);
handle({orphans, Shown, Count}, _, C) -> distrust(orphan, witness_run_warnings:format_orphans(Shown, Count), C);
handle({code_replaced, Modules}, _, C) ->
    distrust(replaced, ["other versions of woven modules were loaded, which are not woven: nothing is known since then "
                        "of processes in ", witness_event:format_term(Modules, 400)], C);
handle({function_replaced, {M, _, _} = Function}, _, C = #core{findings = F}) ->
    distrust(replaced, ["the module ", witness_event:format_term(M, 400), " was loaded anew, and calls of ",
                        witness_event:format_function(Function), " are not seen since then: nothing is known of what "
                        "specifications say about functions"],
             C#core{findings = witness_run_findings:lose_functions(F)});
handle({unrestored, Modules}, _, C) ->
    What = "the original code of modules is in use, and takes the place of the woven one when it is not",
    warn(unrestored, witness_run_warnings:format_loss(What, Modules), C);
handle({log_incomplete, Text}, _, C) -> distrust(log_incomplete, ["the log is not complete: ", Text], C);
%% Specifications.
handle({replaced, Specs, Warnings}, _, C = #core{findings = F}) ->
    {Before, F1} = witness_run_findings:replace(Specs, Warnings, F),
    %% Announcements of monitors that started before the instrument had the new maps are already in the mailbox.
    emit({enqueue, {settled, Before}}, C#core{findings = F1});
handle({settled, Version}, _, C = #core{findings = F}) -> set_findings(witness_run_findings:settle(Version, F), C);
%% The end.
%% What runs already may have waited for long: it shows what has been done since the beginning.
handle(first_check, _, C = #core{phase = running, observer = Observer}) when is_pid(Observer) -> check_remaining(C);
%% The looks become rarer, up to one a minute.
handle(check, NowMs, C = #core{phase = running, observer = Observer, started_at_ms = StartedAt}) when is_pid(Observer) ->
    emit({send_after, min(NowMs - StartedAt, 60_000), check}, check_remaining(C));
handle(check_rest, _, C = #core{phase = running, observer = Observer}) when is_pid(Observer) ->
    emit({send_after, rest_ms(), check_rest}, check_remaining(C));
handle({remaining, Remaining, Waiting}, NowMs, C = #core{findings = F}) ->
    F1 = witness_run_findings:add_remaining(Remaining, Waiting, {NowMs, ended_for(NowMs, C)}, F),
    end_in_vain(Remaining, NowMs, C#core{findings = F1});
%% The instrument ends later: what its monitors have found comes first, and then `log_ended'.
handle(overdue, _, C = #core{phase = draining, observer = Observer}) when is_pid(Observer) ->
    emit(give_up_instrument, C);
handle(overdue, _, C = #core{phase = draining}) -> kill_monitors(C);
handle(given_up, _, C = #core{phase = draining, observer = Observer}) when is_pid(Observer) -> emit({kill, Observer}, C);
%% If a tracer was lost, a monitor may have been announced after all others had ended.
handle(flushed, _, C = #core{phase = draining, closing = flushing}) ->
    C1 = emit(notify_summary, conclude(kill_monitors(C))),
    C1#core{closing = summarizing, findings = witness_run_findings:close(C1#core.findings)};
handle(summary_delivered, _, C = #core{phase = draining, closing = summarizing}) -> finish(C#core{phase = finished});
handle(_, _, C) -> C.

add_report(Report, C = #core{findings = F}) -> set_findings(witness_run_findings:add_report(Report, F), C).

%% --- the beginning ---------------------------------------------------------------

start_system(C = #core{options = #{system := System, scope := Scope, applications := Needed}}) ->
    C1 = case Scope of
        node -> emit(adopt_node, C);
        tree -> C
    end,
    case {System, Needed} of
        %% The run waits only for the application.
        {{application, _}, _} -> emit({start_applications, System}, C1#core{system = starting, tree_ended = true});
        {_, []} -> emit(launch, C1);
        {_, _} -> emit({start_applications, {applications, Needed}}, C1#core{system = starting})
    end.

reply_started(C = #core{starting = Starting}) ->
    Started = start_result(C),
    emit_all([{reply, From, Started} || From <- Starting], C#core{starting = []}).

start_result(#core{system = {ended, {not_started, _, _} = Reason}}) -> {error, {witness_run_application, Reason}};
start_result(#core{system = starting}) -> {error, {witness_run, stopped}};
start_result(_) -> ok.

%% --- the end ---------------------------------------------------------------------

%% How the system has ended first is how it has ended.
end_system(_, _, C = #core{system = {ended, _}}) -> C;
end_system(Reason, NowMs, C) ->
    C1 = C#core{system = {ended, Reason}, system_ended_at_ms = NowMs},
    case is_ended_by_checks(C) of
        true -> emit({send_after, rest_ms(), check_rest}, C1);
        false -> C1
    end.

%% Whether a check is about what is still there when the system has ended.
is_ended_by_checks(#core{options = #{checks := Checks}}) -> lists:member(leaks, Checks) orelse lists:member(mailboxes, Checks).

%% After the end of the system its other processes have so long to end, too. Then it looks so often whether any of them works.
rest_ms() -> 1000.

%% How long ago the system has ended.
ended_for(_, #core{system_ended_at_ms = undefined}) -> none;
ended_for(NowMs, #core{system_ended_at_ms = EndedAt}) -> NowMs - EndedAt.

%% What has done nothing for a while, and does not go on by itself after a time, is waited for in vain.
end_in_vain(#{idle := true, processes := [_ | _] = Processes, servers := Servers}, NowMs, C) ->
    end_in_vain(Processes ++ Servers, NowMs, C);
end_in_vain(#{idle := true, servers := [_ | _] = Servers}, NowMs, C) -> end_in_vain(Servers, NowMs, C);
end_in_vain([_ | _] = Processes, NowMs, C = #core{phase = running, system = {ended, _}}) ->
    InVain = is_ended_by_checks(C) andalso ended_for(NowMs, C) >= rest_ms()
        andalso lists:all(fun(#{idle_ms := Idle} = P) -> Idle >= rest_ms() andalso not witness_run_remaining:still_works(P) end,
                          Processes),
    case InVain of
        true -> drain(NowMs, C);
        false -> C
    end;
end_in_vain(_, _, C) -> C.

%% The tree has ended when the tracers have analysed the end of its last process; the
%% VM reports separately how the first process ended.
proceed(NowMs, C = #core{phase = running, tree_ended = true, system = {ended, _}, options = #{halt := true}}) ->
    proceed(NowMs, drain(NowMs, C));
proceed(_, C = #core{phase = draining, closing = no, observer = undefined, all_announced = true, findings = F}) ->
    case witness_run_findings:count_live(F) of
        0 -> emit_all([flush, close_log, close_history], C#core{closing = flushing});
        _ -> C
    end;
proceed(_, C) -> C.

drain(NowMs, C = #core{phase = running, observer = Observer, tracers = Tracers}) ->
    C1 = (reply_started(C))#core{phase = draining, ended_at_ms = NowMs},
    case Observer of
        undefined -> end_observation({ok, Tracers}, C1);
        _ -> emit(stop_instrument, note_remaining(C1))
    end;
drain(_, C) -> C.

%% A log has no processes, and those that a run was attached to are not to end with it.
note_remaining(C = #core{tree_ended = true, system = {ended, _}}) -> check_remaining(C);
note_remaining(C = #core{options = #{system := {Kind, _}}}) when Kind =/= application -> check_remaining(C);
note_remaining(C = #core{options = #{system := node}}) -> check_remaining(C);
note_remaining(C) -> emit(note_remaining, C).

check_remaining(C = #core{options = #{system := {log, _}}}) -> C;
check_remaining(C = #core{options = #{checks := Checks}}) ->
    case witness_check:needs_looks(Checks) of
        true -> emit(check_remaining, C);
        false -> C
    end.

end_observation({ok, Most}, C) ->
    %% The announcement of every monitor precedes this message in the mailbox.
    emit({enqueue, all_announced}, set_drain_timer(C#core{observer = undefined, tracers = Most}));
end_observation({lost, Reason}, C) ->
    %% Earlier reports are handled first: a verdict that was reached remains.
    emit({enqueue, {instrument_lost, Reason}}, set_drain_timer(emit(freeze_counts, C#core{observer = undefined})));
%% What its monitors have found comes first, and then `log_ended'.
end_observation(later, C) -> set_drain_timer(C).

set_drain_timer(C = #core{options = #{drain := infinity}}) -> C;
set_drain_timer(C = #core{options = #{drain := Drain}}) -> emit({send_after, Drain, overdue}, C).

lose_instrument({shutdown, {given_up, Why}}, NowMs, C) ->
    give_up(Why, ["gathering was given up, since ", witness_text_verdict:gap(Why)], NowMs, C);
lose_instrument({{shutdown, {given_up, _}} = Reason, {gen_server, call, _}}, NowMs, C) -> lose_instrument(Reason, NowMs, C);
lose_instrument(Reason, NowMs, C) -> give_up(tracer_lost, format_tracer_lost(Reason, C), NowMs, C).

%% Events are missing from now on, for all monitors.
give_up(Why, Text, NowMs, C = #core{findings = F}) ->
    drain(NowMs, distrust(Why, Text, set_findings(witness_run_findings:give_up(Why, F), C))).

kill_monitors(C = #core{findings = F}) -> set_findings(witness_run_findings:kill(F), C).

conclude(C = #core{findings = F}) -> set_findings(witness_run_findings:conclude(stopped_at_ms(C), F), C).

stopped_at_ms(#core{tree_ended = true, system = {ended, _}}) -> none;
stopped_at_ms(#core{options = #{system := {log, _}}}) -> none;
stopped_at_ms(#core{ended_at_ms = EndedAt}) -> EndedAt.

finish(C = #core{awaiting = Awaiting, stopping = Stopping}) ->
    C1 = emit({reply_summary, Awaiting ++ Stopping}, C#core{awaiting = [], stopping = []}),
    case Stopping of
        [] -> C1;
        _ -> emit(stop, C1)
    end.

%% --- help ------------------------------------------------------------------------

format_tracer_lost(Reason, C) ->
    witness_run_warnings:format_loss("a tracer has ended, events are missing from then on", redact(Reason, C)).

redact(Reason, #core{options = #{redact := true}}) -> witness_event_redact:term(Reason);
redact(Reason, _) -> Reason.

warn(Code, Text, C = #core{findings = F}) -> C#core{findings = witness_run_findings:warn(Code, Text, F)}.

distrust(Code, Text, C = #core{findings = F}) -> C#core{findings = witness_run_findings:distrust(Code, Text, F)}.

set_findings({Effects, F}, C) -> emit_all(Effects, C#core{findings = F}).

emit(Effect, C = #core{out = Out}) -> C#core{out = [Effect | Out]}.

emit_all(Effects, C) -> lists:foldl(fun emit/2, C, Effects).
