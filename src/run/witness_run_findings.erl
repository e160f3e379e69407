-module(witness_run_findings).
-moduledoc """
What a run finds: it takes the reports of monitors, and keeps verdicts, counts and warnings. Pure: what the run is to do is
returned as `t:effect/0`, in order.

*Invariants:* each monitor that was announced ends with exactly one verdict, or with those of its slices. All verdicts are counted,
and at most `max_verdicts` are kept. A run that has missed events stays marked as incomplete. After `close/1` no report changes
anything.
""".

-export([new/4, add_report/2, add_checked/2, end_log/2, handle_exit/3, give_up/2, kill/1, add_remaining/4, conclude/2, close/1]).
-export([warn/3, distrust/3, lose_functions/1, add_hidden/1, subscribe/1, replace/3, settle/2]).
-export([count_live/1, runners/1, verdicts/1, results/1, info/1, versions/1]).

-export_type([findings/0, effect/0, report/0]).

%% of_functions: the properties that read calls or returns; functions_lost: calls and returns may be missing
%% needs_each: whether each verdict is reported by itself; closed: the summary was given
%% out: effects, the last one first
-record(findings, {options :: witness_options:options(),
                   monitors = witness_run_monitors:new() :: witness_run_monitors:readers(),
                   versions :: witness_run_versions:versions(),
                   tally :: witness_run_tally:tally(),
                   checks :: witness_run_checks:checks(),
                   verdicts = [] :: [witness:verdict()],
                   kept = 0 :: non_neg_integer(),
                   warnings :: [witness:warning()],
                   is_complete = true :: boolean(),
                   of_functions :: #{witness_run_maps:key() => []},
                   functions_lost = false :: boolean(),
                   hidden = 0 :: non_neg_integer(),
                   gaps = #{gaps => 0} :: #{gaps := non_neg_integer(), missing => [witness_offline:missing()]},
                   refused :: undefined | binary(),
                   subscribed = false :: boolean(),
                   needs_each :: boolean(),
                   closed = false :: boolean(),
                   out = [] :: [effect()]}).

-opaque findings() :: #findings{}.

-doc """
What the run does:

- `notify`: notifies of a verdict;
- `history_monitor`, `history_verdict`: adds to the history (`m:witness_run_history`);
- `log_gap`: writes gaps into the log for the tree of a process (`witness_run_log:write_gap/3`);
- `unload`: unloads specifications;
- `report_each`: asks the instrument for each verdict, or allows it to count satisfied monitors only;
- `t:witness_run_monitors:effect/0`.
""".
-type effect() :: {notify, witness:verdict()}
                | {history_monitor, witness_run_monitors:reader() | undefined, witness_run_monitors:meta()}
                | {history_verdict, slice | verdict, witness_run_monitors:meta(), Outcome :: map() | ignored}
                | {log_gap, First :: witness_event:proc(), witness_monitor_instance:reason()}
                | {unload, [witness_spec:instrumentation_map(), ...]}
                | {report_each, boolean()}
                | witness_run_monitors:effect().

-doc "The announcement of a monitor; one of its reports; satisfied monitors that are only counted.".
-type report() :: {monitor, witness_run_monitors:reader(), witness_run_monitors:meta()}
                | witness_run_monitors:report()
                | {satisfied, Property :: #{spec := binary(), name := binary() | undefined, _ => _}, Monitors :: pos_integer(),
                   Vacuous :: non_neg_integer(), Covered :: non_neg_integer()}.

-doc "Nothing is found yet. `Warnings`: those of the options and of the specifications.".
-spec new(witness_options:options(), [witness_spec:instrumentation_map()], [witness_run_maps:property()], [witness:warning()]) ->
    findings().
new(Options = #{system := System, specs := Files, checks := Names}, Specs, Properties, Warnings) ->
    Checks = witness_run_checks:new(Names, case witness_run_attach:is_partial(System) of true -> attached; false -> started end),
    %% A check without monitors is counted as one.
    Keys = [key(Of) || Of <- witness_run_checks:monitored(Checks)],
    Tally = lists:foldl(fun witness_run_tally:add_monitor/2,
                        witness_run_tally:new(Properties ++ [#{key => Key, signature => ~"", actions => []} || Key <- Keys]), Keys),
    #findings{options = Options, versions = witness_run_versions:new(Specs, Files), tally = Tally, checks = Checks,
              warnings = Warnings, of_functions = of_functions(Properties),
              needs_each = witness_run_inline:needs_each_verdict(Options, 0)}.

of_functions(Properties) -> #{Key => [] || #{key := Key, functions := true} <- Properties}.

%% --- monitors --------------------------------------------------------------------

-doc "Takes a report.".
-spec add_report(report(), findings()) -> {[effect()], findings()}.
add_report(Report, F) -> take_effects(add(Report, F)).

-doc "A process has ended. The monitors that it ran, and that have not reported their end, are inconclusive.".
-spec handle_exit(pid(), Reason :: term(), findings()) -> {[effect()], findings()}.
handle_exit(Pid, Reason, F = #findings{monitors = Monitors}) ->
    {Reports, Monitors1} = witness_run_monitors:handle_exit(Pid, Reason, Monitors),
    take_effects(add_all(Reports, F#findings{monitors = Monitors1})).

-doc "Events are missing from now on, for all monitors.".
-spec give_up(Why :: atom(), findings()) -> {[effect()], findings()}.
give_up(Why, F = #findings{monitors = Monitors}) ->
    {Reports, Effects, Monitors1} = witness_run_monitors:give_up(Why, Monitors),
    take_effects(add_all(Reports, emit_all(Effects, F#findings{monitors = Monitors1}))).

-doc "Ends all monitors that have not reported their end.".
-spec kill(findings()) -> {[effect()], findings()}.
kill(F = #findings{monitors = Monitors}) ->
    {Reports, Effects} = witness_run_monitors:kill(Monitors),
    take_effects(add_all(Reports, emit_all(Effects, F))).

-doc """
All monitors have reported: what the checks have kept until now is judged. `StoppedAtMs`: when observation ended, if it did so before
the system.
""".
-spec conclude(StoppedAtMs :: integer() | none, findings()) -> {[effect()], findings()}.
conclude(StoppedAtMs, F = #findings{checks = Checks, tally = Tally, is_complete = IsComplete}) ->
    Judged = witness_run_checks:conclude(IsComplete, StoppedAtMs, Checks),
    %% A check without monitors was counted as one monitor. It may have found more than one violation.
    More = lists:append([tl([Of || {_, #{spec := Judge}} <- Judged, Judge =:= Spec])
                         || #{spec := Spec} = Of <- witness_run_checks:monitored(Checks)]),
    Tally1 = lists:foldl(fun(Of, T) -> witness_run_tally:add_monitor(key(Of), T) end, Tally, More),
    take_effects(lists:foldl(fun({Outcome, Meta}, A) -> add_verdict(Outcome, Meta, A) end, F#findings{tally = Tally1}, Judged)).

-doc "Takes the processes that are still there, now or when observation ends.".
-spec add_remaining(witness_run_remaining:remaining(), witness_run_remaining:waiting(), witness_run_checks:time(), findings()) ->
    findings().
add_remaining(Remaining, Waiting, Time, F = #findings{checks = Checks}) ->
    F#findings{checks = witness_run_checks:add_remaining(Remaining, Waiting, Time, Checks)}.

-doc "The summary is given: later reports are ignored, and later monitors are killed.".
-spec close(findings()) -> findings().
close(F) -> F#findings{closed = true}.

add_all(Reports, F) -> lists:foldl(fun add/2, F, Reports).

%% A monitor is announced once, and reports its end once.
add({monitor, Reader, _}, F = #findings{closed = true}) ->
    %% Happens only after a tracer was lost: its last messages may arrive this late.
    case is_pid(Reader) of
        true -> emit({kill, Reader}, F);
        false -> F
    end;
add(_, F = #findings{closed = true}) -> F;
add({monitor, Reader, Meta}, F = #findings{monitors = Monitors, tally = Tally, options = #{redact := Redact}}) ->
    Known = case Redact of true -> witness_run_redaction:meta(Meta); false -> Meta end,
    {Reports, Effects, Monitors1} = witness_run_monitors:announce(Reader, Known, Monitors),
    F1 = case witness_run_log:is_hidden(Meta) of
        true -> F;
        false -> emit({history_monitor, Reader, Meta}, F#findings{tally = witness_run_tally:add_monitor(key(Meta), Tally)})
    end,
    add_all(Reports, change_users(Meta, 1, emit_all(Effects, F1#findings{monitors = Monitors1})));
add({satisfied, Property, Monitors, Vacuous, Covered}, F = #findings{tally = Tally}) ->
    F#findings{tally = witness_run_tally:add_satisfied_monitors(key(Property), Monitors, Vacuous, Covered, Tally)};
add({Kind, _, Outcome} = Report, F = #findings{monitors = Monitors}) ->
    case witness_run_monitors:take_report(Report, Monitors) of
        {early, Monitors1} -> F#findings{monitors = Monitors1};
        {Meta, Monitors1} when Kind =:= slice -> add_slice(Outcome, Meta, F#findings{monitors = Monitors1});
        {Meta, Monitors1} ->
            F1 = change_users(Meta, -1, emit({history_verdict, verdict, Meta, Outcome}, F#findings{monitors = Monitors1})),
            case witness_run_log:is_hidden(Meta) of
                true -> end_hidden(Outcome, Meta, F1);
                false -> end_monitor(Outcome, Meta, F1)
            end
    end.

add_slice({undecided, Reason, N}, Meta, F) -> count_undecided(Reason, N, Meta, F);
add_slice(Outcome, Meta, F) -> add_verdict(Outcome, Meta, emit({history_verdict, slice, Meta, Outcome}, F)).

%% A monitor that writes the log is reported only if it has missed something.
end_hidden(#{reason := Reason}, _, F) when Reason =:= undefined; Reason =:= stopped; Reason =:= pending -> F;
end_hidden(#{reason := Reason}, #{process := First}, F) ->
    Why = case Reason of
        {gap, Gap} -> witness_text_verdict:gap(Gap);
        {crashed, Crash} -> witness_run_warnings:format_loss("what writes it has crashed", Crash)
    end,
    distrust(log_incomplete, ["the log is not complete: ", Why], emit({log_gap, First, Reason}, F)).

end_monitor(ignored, _, F) -> F;
end_monitor(Outcome = #{covered := Mask}, Meta, F) ->
    F1 = add_coverage(Meta, Mask, F),
    case Outcome of
        #{verdict := _} -> judge(maps:remove(covered, Outcome), Meta, F1);
        #{slices := _} -> F1
    end.

%% The verdict of a check may depend on what other processes have reported.
judge(Outcome, Meta = #{spec := Spec}, F = #findings{checks = Checks}) ->
    case witness_check:of_spec(Spec) of
        {ok, Check} ->
            case witness_run_checks:add(Check, Outcome, Meta, Checks) of
                {{report, Judged}, Checks1} -> add_verdict(Judged, Meta, F#findings{checks = Checks1});
                {keep, Checks1} -> F#findings{checks = Checks1}
            end;
        error -> add_verdict(Outcome, Meta, F)
    end.

add_coverage(Property, Mask, F = #findings{tally = Tally}) ->
    F#findings{tally = witness_run_tally:add_coverage(key(Property), Mask, Tally)}.

count_undecided(Reason, N, Property, F = #findings{tally = Tally, options = #{redact := Redact}}) ->
    Shown = case Redact of true -> witness_run_redaction:reason(Reason); false -> Reason end,
    F#findings{tally = witness_run_tally:add_undecided(key(Property), Shown, N, Tally)}.

change_users(Meta, Change, F = #findings{versions = Versions}) ->
    unload(witness_run_versions:change_users(key(Meta), Change, Versions), F).

unload({[], Versions}, F) -> F#findings{versions = Versions};
unload({Specs, Versions}, F) -> emit({unload, Specs}, F#findings{versions = Versions}).

%% --- logs ------------------------------------------------------------------------

-doc "Takes what was found in a part of a log: its monitors run in other processes, and their verdicts are in the log's order.".
-spec add_checked(witness_offline:checked(), findings()) -> {[effect()], findings()}.
add_checked(_, F = #findings{closed = true}) -> {[], F};
add_checked(#{started := Started, monitors := Monitors, covered := Covered, counted := Counted, found := Found}, F) ->
    #findings{options = #{system := {log, Input}}} = F,
    File = witness_run_maps:log_name(Input),
    F1 = lists:foldl(fun start_monitors/2, F, Started),
    F2 = lists:foldl(fun({Property, Mask}, A) -> add_coverage(Property, Mask, A) end, F1, Covered),
    F3 = emit_all([{history_monitor, undefined, Meta} || Meta <- Monitors], lists:foldl(fun add_counts/2, F2, Counted)),
    take_effects(lists:foldl(fun({Kind, Meta, Place, #{verdict := _} = Outcome}, A) ->
                                     At = <<File/binary, (format_place(Place))/binary>>,
                                     judge(Outcome, Meta#{log => At}, emit({history_verdict, Kind, Meta, Outcome}, A));
                                (_, A) -> A
                             end, F3, Found)).

start_monitors({Property, N}, F = #findings{tally = Tally}) ->
    F#findings{tally = witness_run_tally:add_monitors(key(Property), N, Tally)}.

add_counts({Property, Monitors, Slices, Vacuous, Undecided}, F = #findings{tally = Tally}) ->
    maps:fold(fun(Reason, N, A) -> count_undecided(Reason, N, Property, A) end,
              F#findings{tally = witness_run_tally:add_satisfied(key(Property), {Monitors, Slices}, Vacuous, Tally)}, Undecided).

format_place({Process, Entry}) -> <<$:, (integer_to_binary(Process))/binary, $:, (integer_to_binary(Entry))/binary>>;
format_place(Line) -> <<$:, (integer_to_binary(Line))/binary>>.

-doc "The log has ended.".
-spec end_log(witness_offline:ended(), findings()) -> findings().
end_log(#{refused := Refused} = Ended, F) ->
    F1 = F#findings{refused = case Refused of undefined -> undefined; _ -> text(Refused) end,
                    gaps = maps:with([gaps, missing], Ended)},
    F2 = lists:foldl(fun({Code, Text}, A) -> warn(Code, Text, A) end, F1,
                     witness_run_warnings:gap_warnings(Ended) ++ witness_run_warnings:time_warnings(Ended)),
    lists:foldl(fun({Code, Text}, A) -> distrust(Code, Text, A) end, F2, witness_run_warnings:log_warnings(Ended)).

%% --- verdicts --------------------------------------------------------------------

add_verdict(Outcome0, Meta, F = #findings{options = #{system := System}, versions = Versions, tally = Tally}) ->
    Outcome = doubt(Outcome0, Meta, F),
    %% For a property over all processes, the outcome has the deciding process.
    Whole = maps:merge(maps:merge(#{process => undefined, signature => undefined}, Outcome), Meta),
    Found = case witness_run_names:aliases(Whole, is_log(System)) of
        Aliases when map_size(Aliases) > 0 -> Whole#{aliases => Aliases};
        _ -> Whole
    end,
    Source = witness_run_maps:source(Found, witness_run_versions:sources(Versions)),
    V = redact(Found#{syntax => witness_run_names:syntax(Found), source => Source}, F),
    case witness_run_tally:is_reported(V, Tally) of
        true ->
            keep(V, emit({notify, V}, F#findings{tally = witness_run_tally:add_verdict(V, Tally)}));
        false ->
            #{reason := Reason} = V,
            F#findings{tally = witness_run_tally:add_undecided(key(V), Reason, 1, Tally)}
    end.

%% A call that is missing may have made it so.
doubt(Outcome, Meta, #findings{functions_lost = true, of_functions = OfFunctions}) ->
    case is_map_key(key(Meta), OfFunctions) of
        true -> Outcome#{verdict := inconclusive, reason := {gap, code_replaced}, info := undefined, vacuous := false};
        false -> Outcome
    end;
doubt(Outcome, _, _) -> Outcome.

is_log({log, _}) -> true;
is_log(_) -> false.

%% Redaction precedes every notification.
redact(V, #findings{options = #{redact := true}, versions = Versions}) ->
    witness_run_redaction:verdict(witness_run_versions:is_written(key(V), Versions), V);
redact(V, _) -> V.

keep(V, F = #findings{verdicts = Verdicts, kept = Kept, options = #{max_verdicts := Max}}) when Kept < Max ->
    ask_for_each(F#findings{verdicts = [V | Verdicts], kept = Kept + 1});
keep(_, F) -> F.

-doc "Each verdict is needed from now on, for a subscriber.".
-spec subscribe(findings()) -> {[effect()], findings()}.
subscribe(F) -> take_effects(ask_for_each(F#findings{subscribed = true})).

%% Some instruments need not report verdicts that are not shown.
ask_for_each(F = #findings{options = Options, subscribed = Subscribed, kept = Kept, needs_each = Before}) ->
    case Subscribed orelse witness_run_inline:needs_each_verdict(Options, Kept) of
        Before -> F;
        Each -> emit({report_each, Each}, F#findings{needs_each = Each})
    end.

%% --- warnings and specifications -------------------------------------------------

-doc "Adds a warning. The same warning is given once.".
-spec warn(Code :: atom(), unicode:chardata(), findings()) -> findings().
warn(Code, Text, F = #findings{warnings = Warnings}) ->
    Warning = #{code => Code, text => text(Text)},
    F#findings{warnings = (Warnings -- [Warning]) ++ [Warning]}.

-doc "Adds a warning that events are missing. Even a few missing events might have shown a violation.".
-spec distrust(Code :: atom(), unicode:chardata(), findings()) -> findings().
distrust(Code, Text, F) -> warn(Code, Text, F#findings{is_complete = false}).

-doc "From now on calls and returns of functions are missing: no property that reads some is decided any more.".
-spec lose_functions(findings()) -> findings().
lose_functions(F) -> F#findings{functions_lost = true}.

-doc "A process is not traced any more. The processes that it spawns now may have had monitors, and are not seen at all.".
-spec add_hidden(findings()) -> findings().
add_hidden(F = #findings{hidden = Hidden}) -> F#findings{hidden = Hidden + 1, is_complete = false}.

-doc "Replaces the specifications. Returns the version that was replaced.".
-spec replace([witness_spec:instrumentation_map()], [witness:warning()], findings()) -> {Replaced :: pos_integer(), findings()}.
replace(Specs, New, F = #findings{versions = Before, tally = Tally, warnings = Warnings}) ->
    {Properties, Versions} = witness_run_versions:replace(Specs, Before),
    {witness_run_versions:number(Before),
     F#findings{versions = Versions, of_functions = maps:merge(F#findings.of_functions, of_functions(Properties)),
                tally = witness_run_tally:add_properties(Properties, Tally),
                warnings = Warnings ++ (New -- Warnings)}}.

-doc "All monitors of this version, and of earlier ones, were announced.".
-spec settle(Version :: pos_integer(), findings()) -> {[effect()], findings()}.
settle(Version, F = #findings{versions = Versions}) -> take_effects(unload(witness_run_versions:settle(Version, Versions), F)).

%% --- reading ---------------------------------------------------------------------

-doc "How many monitors have not reported their end.".
-spec count_live(findings()) -> non_neg_integer().
count_live(#findings{monitors = Monitors}) -> witness_run_monitors:count(Monitors).

-doc "The processes of monitors that have not reported their end.".
-spec runners(findings()) -> [pid()].
runners(#findings{monitors = Monitors}) -> witness_run_monitors:runners(Monitors).

-doc "The verdicts that are kept, in the order in which they were reached.".
-spec verdicts(findings()) -> [witness:verdict()].
verdicts(#findings{verdicts = Verdicts}) -> lists:reverse(Verdicts).

-doc "The part of `t:witness_run_summary:results/0` that is known here.".
-spec results(findings()) -> map().
results(#findings{options = #{max_verdicts := Max}, tally = Tally, warnings = Warnings, is_complete = IsComplete, hidden = Hidden,
                  gaps = Gaps, refused = Refused, kept = Kept}) ->
    #{tally => Tally, warnings => Warnings, is_complete => IsComplete, hidden => Hidden, gaps => Gaps, refused => Refused,
      kept => Kept, max_verdicts => Max}.

-doc "The part of `witness:info/1` that is known here.".
-spec info(findings()) -> map().
info(#findings{monitors = Monitors, tally = Tally, warnings = Warnings}) ->
    #{monitors => length([Meta || Meta <- witness_run_monitors:metas(Monitors), not witness_run_log:is_hidden(Meta)]),
      verdicts => witness_run_tally:verdicts(Tally), gaps => witness_run_tally:gaps(Tally), warnings => Warnings}.

-doc "The specifications.".
-spec versions(findings()) -> witness_run_versions:versions().
versions(#findings{versions = Versions}) -> Versions.

key(Of) -> witness_run_maps:key(Of).

text(Chars) -> unicode:characters_to_binary(Chars).

emit(Effect, F = #findings{out = Out}) -> F#findings{out = [Effect | Out]}.

emit_all(Effects, F) -> lists:foldl(fun emit/2, F, Effects).

take_effects(F = #findings{out = Out}) -> {lists:reverse(Out), F#findings{out = []}}.
