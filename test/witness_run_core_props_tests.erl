-module(witness_run_core_props_tests).
-moduledoc """
The state machine of a run, under random inputs in random order.

A small world stands around it: it does what the machine says, as the process of a run does, and gives what comes back. It knows
which monitors were announced, which calls wait, and whether a loss was reported, and compares that with what the machine says. It
is more adverse than a real run: reports arrive before announcements and after the end, the system ends twice, timers expire early.

After the random inputs, everything is delivered and the run is stopped: then it must have ended. Planted faults show that each
promise can be broken.
""".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

%% queue: the mailbox; timers: what is to expire
%% calls: how often each call was answered; announced, reported: readers; dead: processes
%% ends: how the monitor of each reader has ended; counted: verdicts that are only counted
%% losing: whether a loss is in the mailbox, which has to count in any summary; loss: whether a loss was reported
%% ended: whether the system has ended
-record(world, {machine :: module(),
                options :: map(),
                stop :: term(),
                rate :: boolean(),
                log :: boolean(),
                core :: term(),
                now = 0 :: integer(),
                queue = [] :: [term()],
                timers = [] :: [term()],
                calls = #{} :: #{term() => non_neg_integer()},
                announced = [] :: [pos_integer()],
                reported = [] :: [pos_integer()],
                dead = [] :: [pid()],
                starter = none :: none | pid(),
                ends = #{} :: #{binary() => [term()]},
                notified = 0 :: non_neg_integer(),
                verdicts = 0 :: non_neg_integer(),
                monitored = 0 :: non_neg_integer(),
                losing = false :: boolean(),
                loss = false :: boolean(),
                ended = false :: boolean(),
                observing = true :: boolean(),
                summaries = 0 :: non_neg_integer(),
                closed = none :: none | term(),
                stopped = false :: boolean()}).

-define(READERS, 7).

runs_keep_their_promises_test_() ->
    {timeout, 300, fun() ->
        ?assertEqual(true, proper:quickcheck(prop(witness_run_core), [{numtests, 3_000}, {to_file, user}]))
    end}.

prop(Machine) ->
    ?FORALL({Setup, Commands}, {setup(), list(command())},
            case run(Machine, Setup, Commands) of
                ok -> true;
                Fault -> ?WHENFAIL(io:format("~p~n", [Fault]), false)
            end).

%% --- planted faults --------------------------------------------------------------

faults() ->
    [{"a run finishes again", witness_run_core,
      "handle(summary_delivered, _, C = #core{phase = draining, closing = summarizing}) -> finish(C#core{phase = finished});",
      "handle(summary_delivered, _, C) -> finish(C#core{phase = finished});"},
     {"a run that has ended drains again", witness_run_core,
      "drain(_, C) -> C.", "drain(_, C) -> C#core{phase = running}."},
     {"a call that stops the run gets two replies", witness_run_core,
      "C1 = emit({reply_summary, Awaiting ++ Stopping}", "C1 = emit({reply_summary, Awaiting ++ Stopping ++ Stopping}"},
     {"a call that waits is forgotten when the run is stopped", witness_run_core,
      "C1 = emit({reply_summary, Awaiting ++ Stopping}",
      "C1 = emit({reply_summary, case Stopping of [] -> Awaiting; _ -> Stopping end}"},
     {"a call that waits for the start is forgotten when the run drains", witness_run_core,
      "C1 = (reply_started(C))#core{phase = draining", "C1 = C#core{phase = draining"},
     {"the run does not wait for its monitors", witness_run_core,
      "        0 -> emit_all([flush, close_log, close_history], C#core{closing = flushing});\n        _ -> C\n",
      "        _ -> emit_all([flush, close_log, close_history], C#core{closing = flushing})\n"},
     {"a late monitor has no verdict", witness_run_core,
      "emit(notify_summary, conclude(kill_monitors(C)))", "emit(notify_summary, conclude(C))"},
     {"reports after the summary count", witness_run_core,
      "findings = witness_run_findings:close(C1#core.findings)}", "findings = C1#core.findings}"},
     {"a lost tracer is only a warning", witness_run_core,
      "handle({tracer_lost, Reason}, _, C) -> distrust(", "handle({tracer_lost, Reason}, _, C) -> warn("},
     {"a lost instrument is only a warning", witness_run_core,
      "drain(NowMs, distrust(Why, Text, set_findings(witness_run_findings:give_up(Why, F), C))).",
      "drain(NowMs, warn(Why, Text, set_findings(witness_run_findings:give_up(Why, F), C)))."},
     {"a log that was not written is only a warning", witness_run_core,
      "handle({log_incomplete, Text}, _, C) -> distrust(", "handle({log_incomplete, Text}, _, C) -> warn("},
     {"a system that ends twice has not crashed", witness_run_core,
      "end_system(_, _, C = #core{system = {ended, _}}) -> C;", ""},
     {"a verdict without an announcement counts", witness_run_findings,
      "{early, Monitors1} -> F#findings{monitors = Monitors1};",
      "{early, _} -> add_verdict(maps:merge(witness_monitor_machine:failure_outcome(stopped), case Outcome of #{} -> Outcome; _ -> #{} end),"
      "#{spec => ~\"x\", name => ~\"x\"}, F);"},
     {"the end of a monitor is ignored", witness_run_findings,
      "end_monitor(ignored, _, F) -> F;", "end_monitor(_, _, F) when F#findings.kept > 0 -> F;\nend_monitor(ignored, _, F) -> F;"},
     {"more verdicts are kept than allowed", witness_run_findings, "when Kept < Max ->", "when Kept =< Max ->"},
     {"verdicts that are not kept are not counted", witness_run_findings, "keep(_, F) -> F.",
      "keep(V, F = #findings{tally = Tally}) -> F#findings{tally = setelement(4, Tally, maps:update_with(maps:get(verdict, V), "
      "fun(N) -> N - 1 end, element(4, Tally)))}."},
     {"a sensitive process is trusted", witness_run_findings, "hidden = Hidden + 1, is_complete = false", "hidden = Hidden + 1"},
     {"a gap in the log is trusted", witness_run_findings,
      "distrust(log_incomplete, [\"the log", "warn(log_incomplete, [\"the log"}].

faults_are_found_test_() ->
    [witness_mutant:can_be_planted(faults()) |
     [{Name, {timeout, 600, fun() ->
        try
            Machine = case Module of
                witness_run_core -> witness_mutant:load(witness_run_core_mutant, Module, Name, Find, Replace);
                %% The machine calls it by its name.
                _ -> _ = witness_mutant:load(Module, Module, Name, Find, Replace), witness_run_core
            end,
            ?assertEqual(false, proper:quickcheck(prop(Machine), [{numtests, 20_000}, quiet, noshrink]))
        after
            _ = code:purge(Module),
            {module, Module} = code:load_file(Module),
            code:purge(Module)
        end
     end}} || {Name, Module, Find, Replace} <- witness_share:of_all(faults())]].

%% --- inputs ----------------------------------------------------------------------

setup() ->
    ?LET({System, Needed, Halt, Redact, Drain, Max, Scope},
         {oneof([{m, f, []}, {m, f, []}, {application, a}, {attach, [p]}, {log, {file, "x"}}]), oneof([[], [a]]),
          boolean(), boolean(),
          oneof([10, infinity]), integer(0, 3), oneof([tree, node])},
         {#{system => System, applications => Needed, halt => Halt, redact => Redact, drain => Drain, max_verdicts => Max,
           scope => Scope,
            specs => [], checks => [], warnings => [],
            on_verdict => undefined, satisfied => told, history => false, duration => 1000},
          oneof([{ok, 2}, {ok, 2}, {ok, 2}, later, {lost, noproc}, {lost, {shutdown, {given_up, memory}}}]), boolean(), boolean()}).

command() ->
    frequency([{3, {call, oneof([await, await_started, finish])}},
               {1, {call, stop}},
               {12, monitors()},
               {2, {reports, list(monitors())}},
               {5, deliver},
               {2, expire},
               {1, {exit_observer, reason()}},
               {1, {exit_starter, oneof([normal, boom])}},
               {1, loss()},
               {2, system()},
               {1, oneof([subscribed, {limit, duration}, {limit, {1, 2, 3}}, {unrestored, [m]}, {replaced, [], []},
                          {stray, message},
                          flushed, summary_delivered, overdue, given_up])},
               {1, owner_died}]).

monitors() ->
    Reader = integer(1, ?READERS),
    frequency([{4, {monitor, Reader}},
               {2, {slice, Reader, oneof([no, yes, yes, {undecided, stopped, 2}])}},
               {4, {verdict, Reader, oneof([ignored, sliced, {yes, undefined}, {yes, undefined}, {yes, undefined}, {no, undefined},
                                            {inconclusive, stopped}, {inconclusive, {gap, late}},
                                            {inconclusive, {crashed, boom}}])}},
               {1, {exit, Reader, reason()}},
               {1, {satisfied, #{spec => ~"a.hml:9", name => ~"s"}, 2, 0, 0}}]).

reason() -> oneof([normal, noproc, killed, {shutdown, {gap, late}}, {shutdown, {given_up, memory}}]).

loss() ->
    oneof([{tracer_lost, killed}, {hidden, process(9)}, {unwatched, overflow}, {orphans, [{process(9), undefined}], 1},
           {code_replaced, [m]},
           {log_incomplete, "x"}]).

system() ->
    oneof([{ended, all}, {system_ended, normal}, {system_ended, shutdown}, {system_ended, boom}, {applications_started, process(8)},
           {not_started, {not_started, a, boom}}, checked, {log_ended, boolean()}]).

process(N) -> list_to_pid("<0.9999." ++ integer_to_list(N) ++ ">").

observer() -> process(1).

%% The last reader is the monitor that writes the log. Some have a process, and some have the same host.
reader(N) when N > 4, N < ?READERS -> {process(20), N};
reader(N) -> process(10 + N).

runner(N) -> case reader(N) of {Host, _} -> Host; Runner -> Runner end.

meta(?READERS) -> #{process => process(30), signature => {m, f, []}, spec => log, name => undefined};
meta(N) -> #{process => process(30 + N), signature => {m, f, []}, spec => ~"a.hml:1", name => integer_to_binary(N)}.

outcome(Verdict, Reason) -> (witness_monitor_machine:failure_outcome(Reason))#{verdict := Verdict, covered := 0}.

slice({undecided, _, _} = Undecided) -> Undecided;
slice(Verdict) -> (maps:remove(covered, outcome(Verdict, undefined)))#{slice := [{~"N", 1}]}.

%% --- a run -----------------------------------------------------------------------

run(Machine, {Options, Stop, Rate, Log}, Commands) ->
    Property = #{key => {~"a.hml:1", ~"1", 1}, signature => ~"m:f()", actions => []},
    W = #world{machine = Machine, options = Options, stop = Stop, rate = Rate, log = Log,
               core = Machine:new(Options, observer(), 0, [], {[], [Property]})},
    try
        Begun = case Options of #{system := {attach, _}} -> W; _ -> input(start, W) end,
        judge(complete(lists:foldl(fun command/2, Begun, Commands), 100)),
        ok
    catch
        throw:Fault -> Fault;
        error:Reason:Stack -> {crashed, Reason, Stack}
    end.

command(_, W = #world{stopped = true}) -> W;
command({call, Call}, W = #world{calls = Calls}) ->
    From = {self(), map_size(Calls)},
    input({call, Call, From}, W#world{calls = Calls#{From => 0}});
command({reports, Reports}, W) ->
    {Inputs, W1} = lists:mapfoldl(fun report/2, W, [Report || Report <- Reports, element(1, Report) =/= exit]),
    input({reports, lists:append(Inputs)}, W1);
command(deliver, W = #world{queue = []}) -> W;
command(deliver, W = #world{queue = [Input | Queue]}) -> input(Input, W#world{queue = Queue});
command(expire, W = #world{timers = []}) -> W;
command(expire, W = #world{timers = [Input | Timers]}) -> input(Input, W#world{timers = Timers});
command({exit_observer, Reason}, W) -> die(observer(), Reason, W);
command({exit_starter, Reason}, W = #world{starter = Starter}) when is_pid(Starter) -> die(Starter, Reason, W);
command({exit_starter, _}, W) -> W;
%% A log has no system, and only logs have what follows.
command({What, _}, W = #world{options = #{system := {log, _}}}) when What =:= ended; What =:= system_ended; What =:= not_started;
                                                                    What =:= applications_started ->
    W;
command({log_ended, Whole}, W = #world{options = #{system := {log, _}}, observing = true}) ->
    Ended = #{whole => Whole, tracers => 1, refused => undefined, gaps => 0, hiding => 0, missing => [], orphans => [],
              skipped => 0,
              malformed => [], lost => 0},
    input({log_ended, Ended}, W#world{observing = false, ended = Whole});
command({log_ended, _}, W) -> W;
command(checked, W = #world{options = #{system := {log, _}}, closed = none, verdicts = Verdicts, monitored = Monitored}) ->
    P = #{spec => ~"a.hml:9", name => ~"log", process => process(40), signature => {m, f, []}},
    Checked = #{started => [{P, 4}], monitors => [P], covered => [{P, 1}], counted => [{P, 2, 0, 0, #{stopped => 1}}],
                found => [{verdict, P, 3, outcome(yes, undefined)}]},
    input({checked, 1, Checked}, W#world{verdicts = Verdicts + 2, monitored = Monitored + 4});
command(checked, W) -> W;
command(Report, W) when element(1, Report) =:= monitor; element(1, Report) =:= slice; element(1, Report) =:= verdict;
                        element(1, Report) =:= exit; element(1, Report) =:= satisfied ->
    case report(Report, W) of
        {[{satisfied, _, _, _, _} = Input], W1} -> input({reports, [Input]}, W1);
        {Inputs, W1} -> lists:foldl(fun input/2, W1, Inputs)
    end;
command(Input, W) -> input(Input, W).

%% A reader is announced once, and reports its end once, before its process dies.
report({monitor, N}, W = #world{announced = Announced, monitored = Monitored, closed = Closed}) ->
    case lists:member(N, Announced) of
        true -> {[], W};
        false when Closed =/= none -> {[{monitor, reader(N), meta(N)}], W};
        false ->
            {[{monitor, reader(N), meta(N)}],
             W#world{announced = [N | Announced], monitored = Monitored + case N of ?READERS -> 0; _ -> 1 end}}
    end;
report({Kind, N, What}, W = #world{reported = Reported, dead = Dead}) when Kind =:= slice; Kind =:= verdict ->
    case lists:member(N, Reported) orelse lists:member(runner(N), Dead) of
        true -> {[], W};
        false when Kind =:= slice, N =:= ?READERS -> {[], W};
        false when Kind =:= slice -> {[{slice, reader(N), slice(What)}], W};
        false ->
            End = case What of
                {Verdict, Reason} -> outcome(Verdict, Reason);
                _ when N =:= ?READERS -> outcome(inconclusive, stopped);
                ignored -> ignored;
                sliced -> #{slices => 1, covered => 0}
            end,
            {[{verdict, reader(N), End}], W#world{reported = [N | Reported]}}
    end;
report({exit, N, Reason}, W = #world{dead = Dead}) ->
    Runner = runner(N),
    case lists:member(Runner, Dead) of
        true -> {[], W};
        false -> {[{'EXIT', Runner, Reason}], W#world{dead = [Runner | Dead]}}
    end;
report({satisfied, _, N, _, _} = Report, W = #world{closed = none, verdicts = Verdicts, monitored = Monitored}) ->
    {[Report], W#world{verdicts = Verdicts + N, monitored = Monitored + N}};
report(Report, W) -> {[Report], W}.

die(Pid, Reason, W = #world{dead = Dead}) ->
    case lists:member(Pid, Dead) of
        true -> W;
        false -> input({'EXIT', Pid, Reason}, W#world{dead = [Pid | Dead]})
    end.

%% Everything is delivered, and the run is stopped.
complete(_, 0) -> throw(endless);
complete(W = #world{stopped = true}, _) -> W;
complete(W = #world{queue = [_ | _]}, N) -> complete(command(deliver, W), N - 1);
complete(W = #world{timers = [_ | _]}, N) -> complete(command(expire, W), N - 1);
complete(W = #world{machine = Machine, core = Core, dead = Dead, announced = Announced, reported = Reported}, N) ->
    Left = [Reader || Reader <- Announced, not lists:member(Reader, Reported), not lists:member(runner(Reader), Dead)],
    case {Machine:phase(Core), Machine:observer(Core)} of
        {draining, Observer} when is_pid(Observer) -> complete(die(Observer, killed, W), N - 1);
        {draining, undefined} when Left =/= [] -> complete(command({verdict, hd(Left), {yes, undefined}}, W), N - 1);
        _ -> complete(command({call, stop}, W), N - 1)
    end.

%% --- the machine and what it says ------------------------------------------------

input(_, W = #world{stopped = true}) -> W;
input(Input, W0 = #world{machine = Machine, core = Core, now = Now}) ->
    W = note(Input, W0),
    {Effects, Core1} = Machine:step(Input, Now, Core),
    forward({Machine:phase(Core), Machine:phase(Core1)}),
    check(perform(Effects, W#world{core = Core1, now = Now + 1})).

forward({Phase, Phase}) -> ok;
forward({running, draining}) -> ok;
forward({draining, finished}) -> ok;
forward(Back) -> throw({not_forward, Back}).

perform([], W) -> W;
perform([Effect | Effects], W) ->
    W1 = #world{stopped = Stopped} = act(Effect, W),
    Stopped andalso Effects =/= [] andalso throw({after_the_end, Effects}),
    perform(Effects, W1).

act({reply, From, _}, W) -> answer(From, W);
act({reply_summary, _}, #world{losing = true, loss = false}) -> throw(summary_before_a_loss);
act({reply_summary, Callers}, W) -> lists:foldl(fun answer/2, W, Callers);
act({stop_and_reply, From}, W) -> (answer(From, W))#world{stopped = true};
act(stop, W) -> W#world{stopped = true};
act(launch, W) -> input({launched, process(2)}, W);
act({start_applications, _}, W) -> input({starter, process(3)}, W#world{starter = process(3)});
act(stop_instrument, W = #world{stop = later, options = #{system := System}}) when element(1, System) =/= log ->
    act(stop_instrument, W#world{stop = {ok, 1}});
act(stop_instrument, W = #world{stop = {lost, Reason}}) ->
    W1 = input({instrument_stopped, {lost, Reason}}, W#world{losing = true}),
    W1#world{queue = W1#world.queue ++ [{'EXIT', observer(), Reason}], dead = [observer() | W1#world.dead]};
act(stop_instrument, W = #world{stop = Stop}) -> input({instrument_stopped, Stop}, W#world{observing = Stop =:= later});
act(give_up_instrument, W = #world{timers = Timers}) -> W#world{timers = Timers ++ [given_up]};
act({check_rate, _}, W = #world{rate = true}) -> input({rate_exceeded, "x"}, W);
act({enqueue, Input}, W = #world{queue = Queue}) -> W#world{queue = Queue ++ [Input]};
act({send_after, _, Input}, W = #world{timers = Timers}) -> W#world{timers = Timers ++ [Input]};
act(flush, W = #world{queue = Queue, announced = Announced, ends = Ends}) ->
    [is_map_key(maps:get(name, meta(N)), Ends) orelse throw({not_awaited, N}) || N <- Announced],
    W#world{queue = Queue ++ [flushed]};
act(close_log, W = #world{log = true}) -> input({log_incomplete, "x"}, W#world{log = false});
act(notify_summary, W = #world{queue = Queue, summaries = N}) ->
    W#world{queue = Queue ++ [summary_delivered], summaries = N + 1, closed = counts(W)};
act({notify, _}, #world{closed = Closed}) when Closed =/= none -> throw(verdict_after_the_summary);
act({notify, _}, W = #world{notified = N}) -> W#world{notified = N + 1};
act({history_verdict, slice, _, _}, W = #world{verdicts = N}) -> W#world{verdicts = N + 1};
act({history_verdict, verdict, #{name := ~"log"}, _}, W = #world{verdicts = N}) -> W#world{verdicts = N + 1};
act({history_verdict, verdict, #{name := Name}, Outcome}, W = #world{ends = Ends, verdicts = N}) ->
    New = case Outcome of #{verdict := _} when Name =/= undefined -> 1; _ -> 0 end,
    (loss(Outcome, W))#world{ends = maps:update_with(Name, fun(E) -> [Outcome | E] end, [Outcome], Ends), verdicts = N + New};
act({link, Pid}, W = #world{dead = Dead, queue = Queue}) ->
    case lists:member(Pid, Dead) of
        true -> W#world{queue = Queue ++ [{'EXIT', Pid, noproc}]};
        false -> W
    end;
act({kill, Pid}, W = #world{dead = Dead, queue = Queue}) ->
    case lists:member(Pid, Dead) of
        true -> W;
        false -> W#world{queue = Queue ++ [{'EXIT', Pid, killed}], dead = [Pid | Dead]}
    end;
act(_, W) -> W.

answer(From, W = #world{calls = Calls}) ->
    #{From := Before} = Calls,
    Before =:= 0 orelse throw({two_replies, From}),
    W#world{calls = Calls#{From := 1}}.

loss(#{reason := {Kind, _}}, W) when Kind =:= gap; Kind =:= crashed -> W#world{loss = true};
loss(_, W) -> W.

%% What the machine is told.
note({Loss, _}, W) when Loss =:= tracer_lost; Loss =:= hidden; Loss =:= unwatched; Loss =:= code_replaced; Loss =:= log_incomplete;
                        Loss =:= rate_exceeded ->
    W#world{loss = true};
note({instrument_lost, _}, W) -> W#world{loss = true};
note({orphans, _, _}, W) -> W#world{loss = true};
note({'EXIT', Starter, Reason}, W = #world{starter = Starter}) when Reason =/= normal -> W#world{loss = true, starter = none};
note({'EXIT', Pid, _}, W = #world{observing = true, stop = Stop}) ->
    case Pid =:= observer() of
        true -> W#world{loss = true, observing = false, stop = case Stop of later -> {ok, 1}; _ -> Stop end};
        false -> W
    end;
note({system_ended, Reason}, W = #world{ended = false, options = #{system := System}}) ->
    Crash = Reason =:= boom orelse Reason =:= shutdown andalso element(1, System) =:= application,
    W#world{ended = true, loss = W#world.loss orelse Crash};
note({not_started, _}, W = #world{ended = false}) -> W#world{ended = true, loss = true};
note({ended, _}, W = #world{options = #{system := {attach, _}}}) -> W#world{ended = true};
note(_, W) -> W.

%% After each input.
check(W = #world{machine = Machine, core = Core, loss = Loss, notified = Notified, closed = Closed}) ->
    #world{options = #{max_verdicts := Max}} = W,
    Kept = length(Machine:verdicts(Core)),
    Kept =:= min(Max, Notified) orelse throw({kept, Kept, Notified}),
    #{outcome := Outcome} = summary(W),
    Loss andalso Outcome =:= ok andalso throw(ok_after_a_loss),
    Closed =:= none orelse Closed =:= counts(W) orelse throw({changed, Closed, counts(W)}),
    W.

%% What was given with the summary, but for warnings.
counts(W = #world{machine = Machine, core = Core}) ->
    {maps:with([verdicts, monitored, slices, gaps, undecided, coverage], summary(W)), Machine:verdicts(Core)}.

summary(#world{machine = Machine, core = Core, now = Now}) ->
    Machine:summary(#{processes => 1, events => 1, held => 0}, fun() -> [] end, Now, Core).

%% At the end. If the owner dies, the run ends at once, and calls that wait fail.
judge(#world{summaries = 0}) -> ok;
judge(W = #world{machine = Machine, core = Core, summaries = Summaries, calls = Calls}) ->
    #world{announced = Announced, ends = Ends, reported = Reported} = W,
    Summaries =:= 1 orelse throw({summaries, Summaries}),
    _ = Machine:phase(Core) =:= finished andalso [throw({no_reply, From}) || From := 0 <- Calls],
    [case maps:get(maps:get(name, meta(N)), Ends, []) of
         [Outcome] -> lists:member(N, Reported) orelse is_loss(Outcome) orelse throw({invented, N, Outcome});
         Other -> throw({ends, N, Other})
     end || N <- Announced],
    %% Undecided slices that are only counted are in no history.
    #{verdicts := Counts, monitored := Monitored, undecided := Undecided} = summary(W),
    Sum = lists:sum(maps:values(Counts)) - lists:sum([Count - Told || #{count := Count, told := Told} <- Undecided]),
    {Sum, Monitored} =:= {W#world.verdicts, W#world.monitored}
        orelse throw({counted, {Sum, Monitored}, {W#world.verdicts, W#world.monitored}}),
    ok.

is_loss(#{verdict := inconclusive, reason := {Kind, _}}) -> Kind =:= gap orelse Kind =:= crashed;
is_loss(_) -> false.
