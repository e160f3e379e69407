-module(witness_cli_run).
-moduledoc """
`witness run` and `witness check`: runs a system in this node, or reads a log, and reports the results.

A run ends when the function has returned and all processes that it has spawned have ended, or the application has stopped. With
`--for` it ends at that time at the latest; with `--no-halt`, or for an application, at an interrupt. So do the end of a log,
and an interrupt for a log that is followed. These are planned ends: the exit code gives the result. A log that is refused ends
the run at that point. Earlier results remain valid, but the exit code is 2.

A run may also be broken off: by `--timeout`, by an interrupt that was not planned, or because the reader of standard
output has gone. Then the summary is still printed, and a result without violations counts as no result (exit code 3).

| Exit code | Meaning |
|---|---|
| 0 | nothing was violated |
| 1 | something was violated |
| 2 | wrong usage or bad input |
| 3 | the result cannot be trusted or says nothing |
""".

-export([run/1]).

-export_type([options/0, code/0]).

-doc """
The options for `witness:start/1`, and how to report the result. Times are in milliseconds. For a system of another `node`,
`with` is used instead of that function. `out`: standard output, if it is open already. `until`: the run ends, as planned, with
the first violation. `report`: an open report, which is written when the run has ended. `must_decide`: a result with an undecided
monitor is none.
""".
-type options() :: #{start := map(),
                     json := boolean(),
                     for := pos_integer() | infinity,
                     timeout := pos_integer() | infinity,
                     with => fun((map()) -> {ok, witness:run()} | {error, term()}),
                     node => node(),
                     out => witness_cli_io:out(),
                     report => witness_web:report(),
                     must_decide => boolean(),
                     subject => unicode:chardata(),
                     until => verdict,
                     on_verdict => fun((witness:verdict()) -> term())}.

%% Why a run has ended before the system.
-type break() :: timeout | interrupted | output_closed.

%% freezer: suspends the system when the run is to end, if the system runs in this VM
-record(state, {options :: options(),
                freezer :: none | witness_trace_freeze:freezer(),
                out :: witness_cli_io:out(),
                header :: witness_cli_json:header(),
                look :: witness_text:look(),
                shown :: ets:table(),     % how many violations of each property were shown
                told = [] :: [witness:warning()],
                reasons :: ets:table(),   % how often each reason has left a monitor undecided
                wanted :: ets:table(),    % what undecided monitors still wait for, and how many
                started = erlang:monotonic_time(millisecond) :: integer(),
                waits = false :: boolean()}).   % whether it was said what the run waits for

-define(MAX_CHARTS, 10).         % violations of a property that are shown with a chart, each of another kind
-define(MAX_SHOWN, 10).          % violations of one kind, of which the first has the chart
-define(MAX_KINDS, 1000).        % kinds of violations that are told apart
-define(MAX_REASONS, 20).        % different reasons, and formulas, that are counted separately
-define(SPARE_PLACES, 64).       % additional processes that the end of a run may need
-define(FIRST_HINT_MS, 5_000).
-define(FIRST_LOOK_MS, 500).
-define(PROGRESS_MS, 1_000).
-define(MAX_PAUSE_MS, 60_000).

-doc "The exit code. For an application, which may be suspended, also the process that resumes it, so that it is stopped in good order.".
-type code() :: 0..3 | {stop, 0..3, witness_trace_freeze:freezer()}.

-doc "Runs the system, or reads the log; returns the exit code, or an error of the user.".
-spec run(options()) -> {ok, code()} | {error, witness:error()}.
run(#{json := Json} = Options) ->
    Waiter = waiter(),
    Freezer = freezer(Options),
    ok = witness_cli_signal:catch_interrupts(fun() -> freeze(Freezer) end),
    State = #state{options = Options, freezer = Freezer, header = witness_cli_json:header(maps:get(node, Options, node())),
                   out = case Options of
                       #{out := Open} -> Open;
                       #{} -> witness_cli_io:open(case Json of true -> json; false -> text end)
                   end,
                   look = witness_cli_io:look(),
                   shown = ets:new(shown, [public]), reasons = ets:new(reasons, [public]), wanted = ets:new(wanted, [public])},
    Start = maps:get(with, Options, fun witness:start/1),
    case Start(start_options(State)) of
        {ok, Run} -> {ok, left(watch(Run, Waiter, early_warnings(Run, State)), State)};
        {error, {witness_run, {not_started, _}} = Error} -> {ok, left(failed(Error), State)};
        {error, _} = Error -> Error
    end.

%% The run ends before the system does, which may leave no time for the end. So the system is suspended, by a freezer that is
%% started before the system.
freezer(#{start := #{system := {log, _}}}) -> none;
freezer(#{with := _}) -> none;
freezer(_) ->
    _ = process_flag(priority, high),
    %% Witness's own processes do not belong to the system.
    _ = application:ensure_all_started(witness),
    witness_trace_freeze:start(?SPARE_PLACES, witness_run_attach:own_predicate(#{unobserved => []})).

freeze(none) -> ok;
freeze(Freezer) -> witness_trace_freeze:freeze(Freezer).

left(Code, #state{freezer = Freezer} = State) ->
    case application(State) of
        [_] when Freezer =/= none -> {stop, Code, Freezer};
        _ -> Code
    end.

%% Errors in a specification are reported at once, not only when the run has ended.
early_warnings(Run, #state{options = #{json := Json}, out = Out, header = Header, look = Look} = State) ->
    #{warnings := Warnings} = witness:info(Run),
    case Json of
        true -> witness_cli_io:print(Out, [witness_cli_json:warning(Warning, Header) || Warning <- Warnings]);
        false -> witness_cli_io:note([witness_cli_render:warning(Warning, Look) || Warning <- Warnings])
    end,
    State#state{told = Warnings}.

start_options(#state{options = #{start := Start} = Options} = State) ->
    OnVerdict = until(Options, maps:get(on_verdict, Options, fun(_) -> ok end)),
    Told = (patience(Options, Start))#{log => false, max_verdicts => 0, history => is_map_key(report, Options),
                                       satisfied => satisfied(State), on_verdict => fun(Verdict) ->
        print_verdict(Verdict, State),
        _ = [witness_web:add(Verdict, Report) || #{report := Report} <- [Options]],
        OnVerdict(Verdict)
    end},
    case is_log(State) orelse is_elsewhere(State) of
        true -> Told;
        false ->
            Told#{group_leader => system_output(Options),
                  %% These processes work for the output of the command line, so they do not belong to the system.
                  unobserved => [Pid || Name <- [user, user_drv, standard_error], Pid <- [whereis(Name)], is_pid(Pid)]}
    end.

%% Monitors with a backlog at the end get as much time again as the run had, but at most the usual time.
patience(#{timeout := Timeout}, Start) when is_integer(Timeout) ->
    #{drain := Patience} = witness_option:defaults(witness_option_schema:run()),
    maps:merge(#{drain => min(Timeout, Patience)}, Start);
patience(_, Start) -> Start.

%% Text output shows only the number of satisfied monitors. Output to a file may be kept, so there each one is reported.
satisfied(#state{options = #{json := false} = Options} = State)
  when not is_map_key(report, Options), not is_map_key(on_verdict, Options) ->
    case is_elsewhere(State) andalso not is_map_key(node, Options) of
        true -> told;
        false -> counted
    end;
satisfied(_) -> told.

until(#{until := verdict}, OnVerdict) ->
    Self = self(),
    fun(#{verdict := no} = Verdict) -> OnVerdict(Verdict), Self ! {time, planned};
       (Verdict) -> OnVerdict(Verdict)
    end;
until(#{}, OnVerdict) -> OnVerdict.

is_log(#state{options = #{start := #{system := {log, _}}}}) -> true;
is_log(_) -> false.

is_recording(#state{options = #{start := #{system := {log, {Kind, _}}}}}) when Kind =:= recording; Kind =:= replay -> true;
is_recording(_) -> false.

is_elsewhere(#state{options = Options}) -> is_map_key(with, Options).

system_output(#{json := true}) -> whereis(standard_error);
system_output(#{json := false}) -> group_leader().

%% Watching

%% Another process waits for the run, so that this one can receive interrupts meanwhile. It is spawned before the
%% system, which may use up the process limit.
waiter() ->
    Self = self(),
    spawn_monitor(fun() -> receive {run, Run} -> Self ! {awaited, witness:await(Run, infinity)} end end).

-spec watch(witness:run(), {pid(), reference()}, #state{}) -> 0..3.
watch(Run, {Pid, Waiter}, #state{options = #{for := For, timeout := Timeout}} = State) ->
    Pid ! {run, Run},
    after_time(For, planned),
    after_time(Timeout, timeout),
    _ = witness_cli_io:terminal(stderr) andalso first_hint(State),
    _ = first_look(State),
    wait(Run, Waiter, State).

first_hint(State) ->
    ends_at_interrupt(State) andalso
        witness_cli_io:note([~"The run ends ",
                             [[~"when the application ", name(App), ~" stops, or "] || App <- application(State)],
                             ~"at an interrupt (Ctrl-C).\n"]),
    case is_log(State) of
        true -> after_time(?PROGRESS_MS, progress);
        false -> after_time(?FIRST_HINT_MS, {hint, ?FIRST_HINT_MS})
    end.

%% A run that is to end by itself, and in which nothing happens, says what it waits for, also where no terminal is.
first_look(State) ->
    ends_at_interrupt(State) orelse is_log(State) orelse is_elsewhere(State)
        orelse after_time(?FIRST_LOOK_MS, look).

ends_at_interrupt(#state{options = #{start := Start}} = State) ->
    not maps:get(halt, Start, true) orelse maps:get(follow, Start, false) orelse application(State) =/= []
        orelse is_attached(State).

application(#state{options = #{start := #{system := {application, App}}}}) -> [App];
application(_) -> [].

name(App) -> witness_text:clean(atom_to_binary(App)).

after_time(infinity, _) -> ok;
after_time(Time, What) ->
    _ = erlang:send_after(Time, self(), {time, What}),
    ok.

wait(Run, Waiter, State) ->
    receive
        {awaited, {ok, Summary}} ->
            System = system_left(Run, Summary, State),
            _ = witness:stop(Run),
            goes_on(System),
            finish(Summary, overtime(State), State);
        {awaited, {error, Error}} -> failed(Error);
        {'DOWN', Waiter, process, _, Reason} -> failed({witness_run, {run_died, Reason}});
        {time, planned} -> stop(Run, none, State);
        {time, timeout} -> stop(Run, timeout, State);
        interrupt ->
            witness_cli_io:note(~"interrupted: the run comes to its end; once more ends it at once\n"),
            stop(Run, case ends_at_interrupt(State) of true -> none; false -> interrupted end, State);
        output_closed -> stop(Run, output_closed, State);
        {'EXIT', Port, _} when is_port(Port) -> stop(Run, output_closed, State);
        {time, {hint, Pause}} ->
            hint(Run, State),
            Next = min(2 * Pause, ?MAX_PAUSE_MS),
            after_time(Next, {hint, Next}),
            wait(Run, Waiter, State);
        {time, look} ->
            after_time(min(max(elapsed(State), ?FIRST_LOOK_MS), ?MAX_PAUSE_MS), look),
            wait(Run, Waiter, look(Run, State));
        {time, progress} ->
            witness_cli_io:note([witness_cli_render:progress(witness:info(Run), elapsed(State)), $\r]),
            after_time(?PROGRESS_MS, progress),
            wait(Run, Waiter, State);
        {'EXIT', _, _} -> wait(Run, Waiter, State)
    end.

%% The system, if it still runs when nothing is monitored any more. It goes on to its end, although its VM would end with the run.
system_left(Run, #{system := undefined}, State) ->
    case application(State) of
        [App] -> application_controller:get_master(App);
        [] ->
            %% A process that reads a log is not a system.
            case is_log(State) of true -> undefined; false -> maps:get(root, witness:info(Run), undefined) end
    end;
system_left(_, _, _) -> undefined.

goes_on(undefined) -> ok;
goes_on(System) ->
    witness_cli_io:note(~"nothing is watched any more; the system goes on to its end\n"),
    Ref = monitor(process, System),
    goes_on_until(Ref).

goes_on_until(Ref) ->
    receive
        {'DOWN', Ref, process, _, _} -> ok;
        {time, End} when End =:= planned; End =:= timeout -> ok;
        interrupt -> ok;
        output_closed -> ok
    end.

%% Monitors with a backlog are given up after as much time again as the run may take, at about the same moment as the run.
overtime(#state{options = #{timeout := Timeout}} = State) when is_integer(Timeout) ->
    case elapsed(State) >= Timeout of true -> timeout; false -> none end;
overtime(_) -> none.

elapsed(#state{started = Started}) -> erlang:monotonic_time(millisecond) - Started.

-spec stop(witness:run(), none | break(), #state{}) -> 0..3.
stop(Run, Break, #state{freezer = Freezer} = State) ->
    Alive = alive(Run, Break, State),
    ok = freeze(Freezer),
    case witness:stop(Run) of
        {ok, #{alive := _} = Summary} -> finish(maps:merge(Summary, Alive), Break, State);
        {ok, Summary} -> finish(Summary, Break, State);
        {error, Error} -> failed(Error)
    end.

%% A process that was not suspended before says more: whether it waits, and since when. An interrupt has suspended all of them.
alive(_, interrupted, _) -> #{};
alive(_, _, #state{freezer = none}) -> #{};
alive(Run, _, _) ->
    case witness_run:remaining(Run) of
        #{} = Remaining -> #{alive => Remaining};
        none -> #{}
    end.

failed(Error) ->
        %% The run has ended with its application: `m:witness_cli` handles that.
    {Status, _} = init:get_status(),
    Status =/= stopping orelse error(stopping),
    witness_cli_io:note([~"witness run: ", witness:format_error(Error), $\n]),
    3.

hint(Run, State) ->
    #{phase := Phase, processes := Processes, events := Events, waiting_for := Waiting, system := System,
      verdicts := Verdicts} = witness:info(Run),
    Seconds = elapsed(State) div 1000,
    witness_cli_io:note(
        [integer_to_binary(Seconds), ~" s: ", witness_text:count(Processes, ~"process", ~"processes"), ~" and ",
         witness_text:count(Events, ~"event", ~"events"), ~" seen, ",
         witness_text:count(maps:get(no, Verdicts, 0), ~"violation", ~"violations"), ~"; ",
         system(System, application(State)),
         [[~", ", witness_text:count(Waiting, ~"process of its tree still runs", ~"processes of its tree still run")]
          || is_integer(Waiting), Waiting > 0],
         [~"; nothing is watched any more" || Phase =/= running], $\n]).

%% Says once what is still there, until something happens again. Each look says for the next one which processes have done nothing.
%% If a deadlock is found that is to be found, the run is not waited for, whatever other processes do.
look(Run, #state{waits = Waits, options = #{start := Start}} = State) ->
    Remaining = witness_run:remaining(Run),
    case Remaining of
        #{circles := [_ | _]} -> _ = lists:member(deadlock, maps:get(checks, Start, [])) andalso (self() ! {time, planned});
        _ -> ok
    end,
    case Remaining of
        #{idle := true, count := Count} when Count > 0, Waits -> State;
        #{idle := true, count := Count} when Count > 0 ->
            witness_cli_io:note([[witness_text:seconds(elapsed(State)), ~": nothing happens, and the run has not ended; still there:\n"]
                                 | [[~"  ", Line, $\n] || Line <- witness_run_remaining:shown(Remaining)]]),
            State#state{waits = true};
        _ -> State#state{waits = false}
    end.

is_attached(#state{options = Options}) -> is_map_key(with, Options).

system(starting, []) -> ~"the applications that the function needs are starting";
system(running, []) -> ~"the function has not returned";
system(_, []) -> ~"the function has returned";
system(starting, [App]) -> [~"the application ", name(App), ~" is starting"];
system(running, [App]) -> [~"the application ", name(App), ~" runs"];
system(_, [App]) -> [~"the application ", name(App), ~" has stopped"].

%% Verdicts: these functions are called in a process of the run, one at a time

print_verdict(#{verdict := Verdict} = V, #state{options = #{json := true}, out = Out, header = Header} = State) ->
    count_reason(Verdict, V, State),
    witness_cli_io:print(Out, witness_cli_json:verdict(V, Header));
print_verdict(#{verdict := no, spec := Spec, name := Name} = V, #state{out = Out, look = Look, shown = Table}) ->
    Property = {Spec, Name},
    case count_key(witness_text_verdict:kind(V), {Spec, Name, others}, ?MAX_KINDS, Table) of
        1 ->
            Charts = ets:update_counter(Table, Property, 1, {Property, 0}),
            Shown = case Charts =< ?MAX_CHARTS of true -> V; false -> brief(V) end,
            witness_cli_io:print(Out, witness_text_verdict:verdict(Shown, Look));
        Count when Count =< ?MAX_SHOWN ->
            witness_cli_io:print(Out, witness_text_verdict:verdict(brief(V), Look));
        Count ->
            is_power_of_ten(Count)
                andalso witness_cli_io:print(Out, [witness_text_verdict:property(V), ~": ", integer_to_binary(Count),
                                                   ~" such violations so far\n\n"])
    end;
print_verdict(#{verdict := Verdict} = V, State) -> count_reason(Verdict, V, State).

brief(V) -> V#{steps := [], info := undefined, source := undefined}.

is_power_of_ten(1) -> true;
is_power_of_ten(N) when N rem 10 =:= 0 -> is_power_of_ten(N div 10);
is_power_of_ten(_) -> false.

count_reason(inconclusive, V = #{spec := Spec, name := Name}, #state{reasons = Reasons, wanted = Wanted}) ->
    _ = count_key(witness_text_verdict:reason(V), ~"other reasons", ?MAX_REASONS, Reasons),
    _ = count_key({Spec, Name, wanted(V)}, others, ?MAX_REASONS, Wanted),
    ok;
count_reason(_, _, _) -> ok.

wanted(#{reason := pending, info := #{action := Action}}) -> {to_come, Action};
wanted(#{steps := Steps}) ->
    case [Formula || #{formula := Formula} <- lists:reverse(Steps), Formula =/= undefined] of
        [Last | _] -> {to_hold, Last};
        [] -> none
    end.

%% Keys beyond so many are counted as the other one.
count_key(Key, Other, Max, Table) ->
    Counted = case ets:member(Table, Key) orelse ets:info(Table, size) < Max of
        true -> Key;
        false -> Other
    end,
    ets:update_counter(Table, Counted, 1, {Counted, 0}).

%% The end

finish(Summary, Break, #state{options = #{json := Json} = Options, out = Out, header = Header, look = Look} = State) ->
    Code = code(Summary, Break, Options),
    is_log(State) andalso witness_cli_io:terminal(stderr) andalso witness_cli_io:note(~"\e[K"),
    All = maps:update_with(warnings, fun(Warnings) -> Warnings ++ break_warnings(Break, State) end,
                           maps:merge(Summary#{attached => is_attached(State), recording => is_recording(State),
                                              must_decide => maps:get(must_decide, Options, false),
                                              wanted => ets:tab2list(State#state.wanted)},
                                      #{application => App || App <- application(State)})),
    Warnings = maps:get(warnings, All) -- State#state.told,
    refused(All, State),
    case Json of
        true ->
            witness_cli_io:print(Out, [witness_cli_json:warning(Warning, Header) || Warning <- Warnings]),
            witness_cli_io:print(Out, witness_cli_json:summary(All, Header));
        false ->
            witness_cli_io:print(Out, [witness_cli_render:warning(Warning, Look) || Warning <- Warnings]),
            witness_cli_io:print(Out, witness_cli_render:summary(All, {Code, reasons(All, State)}, Look))
    end,
    report(All, Code, State).

%% Includes the reasons of slices that were only counted.
reasons(Summary, #state{reasons = Reasons}) ->
    lists:foldl(fun(#{reason := Why, count := Count, told := Told}, A) ->
        Reason = witness_text_verdict:reason(#{reason => Why, info => undefined}),
        maps:update_with(Reason, fun(N) -> N + Count - Told end, Count - Told, A)
    end, maps:from_list(ets:tab2list(Reasons)),
                [Undecided || Undecided = #{count := Count, told := Told} <- maps:get(undecided, Summary, []), Count > Told]).

%% The exit code: a report that was requested and could not be written is not a success.
report(Summary, Code, #state{options = #{report := Report} = Options} = State) ->
    Plain = #{colour => false, width => 100},
    Result = {Code, reasons(Summary, State)},
    case witness_web:write(#{code => Code, sentence => witness_cli_render:sentence(Summary, Result, Plain),
                             facts => witness_cli_render:facts(Summary, Result)
                                 ++ [{~"refused", Text} || #{refused := Text} <- [Summary], is_binary(Text)],
                             subject => subject(Options), summary => Summary},
                           Report) of
        {ok, File} ->
            witness_cli_io:note([~"the report is ", witness_text:clean(File), $\n]),
            Code;
        {error, Problem} ->
            witness_cli_io:note([~"witness: --report: ", Problem, $\n]),
            case Code of 0 -> 3; _ -> Code end
    end;
report(_, Code, _) -> Code.

%% The system that was run, or the log that was read.
subject(#{subject := Subject}) -> Subject;
subject(#{start := Start}) -> system_text(Start).

system_text(#{system := {application, App}}) -> [~"application ", atom_to_binary(App)];
system_text(#{system := {log, standard_input}}) -> ~"standard input";
system_text(#{system := {log, {recording, Folder}}}) -> [~"recording ", Folder];
system_text(#{system := {log, {replay, #{dir := Folder}}}}) -> [~"replay of ", Folder];
system_text(#{system := {log, {file, File}}}) -> [~"log ", File];
system_text(#{system := {Module, Function, Args} = Called, redact := true}) ->
    witness_event:format_function({Module, Function, length(Args)}, witness_event:syntax_of_function(Called));
system_text(#{system := {_, _, _} = Called}) -> witness_event:format_signature(Called, witness_event:syntax_of_function(Called)).

%% A violation takes precedence, however the run has ended, but bad input takes precedence over it.
code(#{outcome := refused}, _, _) -> 2;
code(#{outcome := violated}, _, _) -> 1;
code(#{outcome := untrusted}, _, _) -> 3;
code(#{outcome := ok, verdicts := #{inconclusive := Undecided}}, _, #{must_decide := true}) when Undecided > 0 -> 3;
code(#{outcome := ok}, none, _) -> 0;
code(#{outcome := ok}, _, _) -> 3.

refused(#{refused := undefined}, _) -> ok;
refused(#{refused := Text}, State) ->
    Command = case State of
        #state{options = #{start := #{system := {log, {replay, _}}}}} -> ~"replay";
        #state{} -> ~"check"
    end,
    witness_cli_io:note([~"witness ", Command, ~": ", witness_text:clean(Text), $\n]).

-spec break_warnings(none | break(), #state{}) -> [witness:warning()].
break_warnings(none, _) -> [];
break_warnings(timeout, #state{options = #{timeout := Timeout}}) ->
    [#{code => timeout, text => unicode:characters_to_binary(
        [~"the run had not ended after ", seconds(Timeout), ~" (--timeout) and was broken off"])}];
break_warnings(interrupted, _) -> [#{code => interrupted, text => ~"the run was interrupted"}];
break_warnings(output_closed, _) -> [#{code => output_closed, text => ~"standard output has no reader any more"}].

seconds(Milliseconds) -> [io_lib:format("~w", [Milliseconds / 1000]), ~" s"].
