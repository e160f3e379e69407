-module(witness_cli_json).
-moduledoc """
The output of `--json`: one JSON object a line.

Every object has `v` (1), `type`, `run` (a text that is the same in all objects of a run), `node`, and `time` (UTC, as
in RFC 3339).

- `verdict`: `verdict` (`no`, `yes`, `inconclusive`), `spec` (`file:line`), `name`, `process`, `signature`, `slice`
  (`null`, or `Name = Value, ...`), `event` (`null`, or `index`, `kind`, `text`), `log` (`null`, or `file:line` of the
  event in the log that was checked), `source` (`null`, or the deciding place:
  `file`, `line`, `column`, `text` of the line), `explanation`, `vacuous`, `note` (`null`, or what a check says more), `names`
  (registered names, labels or modules of processes in the explanation, by process). `explanation` is a list of steps, each with
  `index`, `after_ns` (nanoseconds after the first of these steps, `null` if not known), `kind`, `text`, `formula` and `bindings`;
  before them may stand how many are not shown (`skipped`), and after them `decision` or `reason`;
- `warning`: `code`, `text`;
- `summary`, the last one: `processes`, `tracers`, `events`, `slices`, `verdicts` (`no`, `yes`, `inconclusive`), `properties` (of each
  one that had a monitor: `spec`, `name`, `monitored`, `verdicts`, `vacuous`), `undecided`,
  `vacuous`, `gaps`, `missing`, `coverage`, `warnings`, `alive`, `elapsed_ms`. `alive` says which processes were still
  there when the run ended before its system (`null` otherwise): `count`, `requests` (servers that wait for a request), `circles`
  (processes of which each waits for the next) and `processes`, each with `process`, `signature`, `name`, `state`, `awaited`, `place`, `mailbox`, `messages`, `idle_ms` and `text`;
  `applications` has those of applications that these wait for. `undecided` has an object for each property and each
  reason that left slices of it undecided: `spec`, `name`, `reason`, `count` (the number of these slices) and `told` (how many
  of them have a `verdict` of their own: the first 100 of a monitor and reason, and the first 1000 of a property). `witness attach`
  counts here also undecided monitors with a verdict that was not sent (the warning `verdicts_missed`). `coverage`
  has an object for each property that was monitored: `spec`, `name` and `actions`, each with `line`, `column`, `text`,
  `decides` (`no`, `yes` or `null`: the verdict if it matches) and `taken`, whether it ever matched;
- `diagnostic`, of `witness compile` and `witness format`: `severity` (`error`, `warning`), `file`, `line`, `column`, `end_column`, `code`,
  `text`, `source`, `hint`. Lines and columns count from 1, columns in Unicode code points; `end_column` is the first
  column after the word at `column`; `code` is a short name for the kind of finding;
- `recording`, of `witness record`: `dir`, `outcome` (`recorded`, or why the recording has ended before the program), `ended`
  (how the program has ended), `status` (of its VM), `processes`, `files` (bytes of each; `null` if the VM has not reported
  them), `unwoven` (modules), `replayable`, `refused` (why it cannot be replayed, a list of texts), `options` (with which it can
  be replayed, if it is recorded again), `elapsed_ms`;
- `replay`, of `witness replay`: `dir`, `outcome` (`identical`, `diverged`, or `stopped` by `--until`: then the numbers are
  `null`), `at` (where it was stopped), `verdicts` (`null` without `--check`, or if nothing was to be compared; otherwise a list
  of the differing ones, each with `process`, `spec`, `name`, `slice`, `recorded` and `replayed`, both lists), `complete`
  (whether the recording is), `processes`, `entries`, `killed`, `cut`, `stopped` (numbers of processes; the last ones were alive
  when the recording ended as planned), `changed` (modules), `kept` (whether the code was that which is kept with the recording), `messages` (what
  was compared of them: `contents`, `hash` or `none`), `divergences` (each with `id`, `process`, `signature`, `text`, `position`, `log`, `program`, `stack`, `recent`),
  `elapsed_ms`;
- `search`, of `witness search`: `outcome` (`passed`, `unmonitored`, `failed`, `violated`, `crashed`, `deadlock`, `left`, `not_taken`, `unexpected`,
  `halted`, `steps`, `busy`, `exceeded`, `lost`,
  `refused` or `interrupted`), `schedules` (how many there were), `seed`, `strategies`; of a run that went wrong also `number`, `strategy` (`null`: that of
  no strategy), `length` (steps), `switches`, `spec` and `name` of the property, `process` and `signature` of the process, `reason`,
  `processes`: those that were alive, as in a `summary`; `reversed`: pairs of steps that are enough for the failure if the `first` comes
  before the `second`, both texts; `never` names those that do not happen in the run; `explanation`: the steps that led to it, each with
  `index`, `kind` (of the event, or `step`), `text` and its `pairs`: the number and the `place` (`first`, `second`); it is `null` for a
  violation; `dir` (of the recording); these are `null` if nothing went wrong; `unfaithful`, of what
  is not controlled: each with `kind`, `what`, `text`; `warnings`: properties without a monitor, each with `code`, `text`; `elapsed_ms`. With `--all` the outcome is `failed` if there are `failures`: each
  has `count` (of schedules) and the fields of one run, from `outcome` and `number` to `dir`; `omitted`: how many schedules failed in other
  ways; `ended`: why there were no more (`schedules`, `time`, `interrupted`, `no_result`, `error`). These are `null` without it. Before it come the objects of the replay, if a specification was violated;
- `specification`, of `witness compile`: `file`, `properties`, each with `line`, `name`, `signature`, `group`, `per`
  (names), `monitor`; and `expand`, `erlang`, `dot`, `mermaid`, each the text if it was requested;
- `trial`, of `witness compile --try`: `log`, `outcome` (`ok`, `violated`, `untrusted`: it cannot be trusted or says nothing, `refused`: the log is
  wrong), `interrupted`, `refused` (where and why, or `null`), `events`, `processes`, `properties`, `warnings` (each with `code`, `text`) and
  `elapsed_ms`. A property has `spec`, `name`, `monitored`, `slices` (`null` without `per`), `events` (those that its monitors have read),
  `verdicts`, `vacuous`, `actions` and `violations`. An action has `line`, `column`, `text`, `decides`, `matched` (the number of events), and if that
  is 0, `same_shape` (how many events differ from it by values only) and `near` (the first events with the same words in another shape,
  each with `log`, which is `null` for a recording, and `text`). The first violations have `log`, `process`, `line` and `column` of the specification, `kind` and `text` of the event,
  or `null`, and `deadline` (whether a deadline has passed);
- `format`, of `witness format`: `file`, `changed` (whether its layout is another one), `written`, `text` (of standard input).

An explanation is a list of objects. Steps have `index`, `kind` and `text` of the event, the `formula` that was still to
be satisfied after it, and `bindings`. Before them there may be an object of the kind `skipped`, and after them one of
the kind `decision` (`line`, `column`, `text` of the action, `bindings`) or `reason` (why there is no decision). If a deadline decided,
`decision` also has `deadline_ns`: nanoseconds from the first of these steps to the deadline. If a machine was violated with a text, it has
this text as `why`.

Terms are text, cut to a limit. A `text` is for people, in the notation of the language of its process (option `--syntax`). All other
fields that programs read are in Erlang's notation. Fields that do not apply are `null`.
""".

-export([header/1, verdict/2, warning/2, summary/2, recording/2, replay/2, search/2, diagnostic/2, specification/4, trial/2,
         formatted/5]).

-export_type([header/0]).

-doc "The fields that all objects of a run start with.".
-type header() :: #{v := 1, run := binary(), node := binary()}.

-define(MAX_TERM_CHARS, 2000).

-doc "The header of a new run on a node.".
-spec header(node()) -> header().
header(Node) ->
    Time = integer_to_binary(os:system_time(microsecond), 36),
    Run = string:lowercase(<<Time/binary, $-, (list_to_binary(os:getpid()))/binary>>),
    #{v => 1, run => Run, node => atom_to_binary(Node)}.

-doc "A verdict.".
-spec verdict(witness:verdict(), header()) -> iolist().
verdict(#{verdict := Verdict, spec := Spec, name := Name, process := Process, signature := Signature,
          slice := Slice, event := Event, source := Source, vacuous := Vacuous} = V, Header) ->
    line(verdict, Header, [{verdict, Verdict}, {spec, text(Spec)}, {name, text(Name)},
                           {process, known(fun witness_event:format_proc/1, Process)},
                           {signature, known(fun witness_event:format_signature/1, Signature)}, {slice, slice(Slice)},
                           {event, event(Event, V)}, {log, text(maps:get(log, V, undefined))}, {source, source(Source)},
                           {explanation, explanation(V)}, {vacuous, Vacuous}, {note, text(maps:get(note, V, undefined))},
                           {names, names(V)}]).

%% A property over all processes may have no deciding process.
known(_, undefined) -> null;
known(Format, Value) -> Format(Value).

%% In the order of the processes.
names(V) -> {[{witness_event:format_proc(P), text(Name)} || {P, Name} <- lists:sort(maps:to_list(maps:get(names, V, #{})))]}.

slice(undefined) -> null;
slice(Values) -> text(lists:join(~", ", [[Name, ~" = ", term(Value)] || {Name, Value} <- Values])).

source(undefined) -> null;
source(#{file := File, line := Line, column := Column, text := Text}) ->
    {[{file, text(File)}, {line, Line}, {column, null(Column)}, {text, text(Text)}]}.

event(undefined, _) -> null;
event(#{index := Index, event := Event}, V) ->
    {[{index, Index}, {kind, witness_event:kind(Event)}, {text, event_text(Event, V)}]}.

event_text(Event, V) -> witness_event:format(Event, ?MAX_TERM_CHARS, witness_text_verdict:syntax(V)).

explanation(#{steps := Steps, skipped := Skipped} = V) ->
    [{[{kind, skipped}, {text, iolist_to_binary(witness_text:count(Skipped, ~"earlier event", ~"earlier events"))}]}
     || Skipped > 0] ++ [step(Step, hd(Steps), V) || Step <- Steps] ++ last(V).

step(#{index := Index, event := Event, formula := Formula, bindings := Bindings}, #{event := First}, V) ->
    {[{index, Index}, {after_ns, elapsed(witness_event:ts(First), witness_event:ts(Event))}, {kind, witness_event:kind(Event)},
      {text, event_text(Event, V)},
      {formula, text(Formula)}, {bindings, bindings(Bindings)}]}.

elapsed(First, Time) when is_integer(First), is_integer(Time) -> Time - First;
elapsed(_, _) -> null.

last(#{verdict := inconclusive} = V) -> [{[{kind, reason}, {text, witness_text_verdict:reason(V)}]}];
last(#{info := #{line := _} = Info, steps := Steps} = V) ->
    Get = fun(Key) -> maps:get(Key, Info, undefined) end,
    [{[{kind, decision}, {line, null(Get(line))}, {column, null(Get(column))}, {text, text(Get(action))},
       {bindings, bindings(maps:get(bindings, Info, []))}]
      ++ [{why, text(Why)} || #{why := Why} <- [Info]]
      ++ [{deadline_ns, elapsed(witness_event:ts(First), At)}
          || At <- [witness_text_verdict:deadline(V)], At =/= undefined, #{event := First} <- lists:sublist(Steps, 1)]}];
last(#{info := Info}) when Info =:= undefined; is_map(Info) -> [];
last(#{info := Info} = V) ->
    [{[{kind, decision}, {text, witness_event:format_term(Info, ?MAX_TERM_CHARS, witness_text_verdict:syntax(V))}]}].

bindings(Bindings) -> {[{text(Name), term(Value)} || {Name, Value} <- Bindings]}.

-doc "A warning.".
-spec warning(witness:warning(), header()) -> iolist().
warning(#{code := Code, text := Text}, Header) -> line(warning, Header, [{code, Code}, {text, text(Text)}]).

-doc "The summary of a run.".
-spec summary(witness:summary(), header()) -> iolist().
summary(#{processes := Processes, tracers := Tracers, events := Events, slices := Slices, verdicts := Verdicts,
          vacuous := Vacuous, gaps := Gaps, coverage := Coverage, warnings := Warnings, elapsed_ms := Elapsed} = Summary,
        Header) ->
    line(summary, Header, [{processes, Processes}, {tracers, Tracers}, {events, Events}, {slices, Slices},
                           {verdicts, verdicts(Verdicts)},
                           {properties, [property(Of) || Of <- maps:get(properties, Summary, [])]},
                           {undecided, [undecided(Of) || Of <- maps:get(undecided, Summary, [])]},
                           {vacuous, Vacuous}, {gaps, Gaps}, {missing, [missing(Gap) || Gap <- maps:get(missing, Summary, [])]},
                           {coverage, [covered(Property) || Property <- Coverage]},
                           {warnings, [{[{code, Code}, {text, text(Text)}]} || #{code := Code, text := Text} <- Warnings]},
                           {alive, case Summary of #{alive := Remaining} -> remaining(Remaining); #{} -> null end},
                           {elapsed_ms, Elapsed}]).

verdicts(Verdicts) -> {[{Verdict, maps:get(Verdict, Verdicts, 0)} || Verdict <- [no, yes, inconclusive]]}.

property(#{spec := Spec, name := Name, monitored := Monitored, verdicts := Verdicts, vacuous := Vacuous}) ->
    {[{spec, text(Spec)}, {name, text(Name)}, {monitored, Monitored}, {verdicts, verdicts(Verdicts)}, {vacuous, Vacuous}]}.

remaining(#{count := Count, requests := Requests, circles := Circles, processes := Processes, applications := Applications}) ->
    {[{count, Count}, {requests, Requests}, {circles, [[text(witness_event:format_proc(P)) || P <- Circle] || Circle <- Circles]},
      {processes, [remaining_process(Process) || Process <- Processes]},
      {applications, [remaining_process(Process) || Process <- Applications]}]}.

remaining_process(#{process := P, signature := Signature, name := Name, state := State, awaited := Awaited, place := Place,
                    mailbox := Mailbox, messages := Messages, idle_ms := Idle} = Process) ->
    {[{process, text(witness_event:format_proc(P))},
      {signature, case Signature of undefined -> null; _ -> text(witness_event:format_function(Signature)) end},
      {name, case Name of undefined -> null; _ -> term(Name) end}, {state, State},
      {awaited, case Awaited of undefined -> null; _ -> text(witness_event:format_proc(Awaited)) end},
      {place, case Place of {M, F, A, _} -> text(witness_event:format_function({M, F, A})); undefined -> null end},
      {mailbox, Mailbox}, {messages, Messages}, {idle_ms, Idle},
      {text, text([witness_run_remaining:format(Process), witness_run_remaining:holdings(Process)])}]}.

undecided(#{spec := Spec, name := Name, reason := Reason, count := Count, told := Told}) ->
    {[{spec, text(Spec)}, {name, text(Name)}, {reason, witness_text_verdict:reason(#{reason => Reason, info => undefined})},
      {count, Count}, {told, Told}]}.

missing(#{process := P, signature := Signature, reason := Reason, count := Count}) ->
    {[{process, case P of undefined -> null; _ -> text(witness_event:format_proc(P)) end}, {signature, case Signature of
         undefined -> null;
         {Module, Function, Args} when is_list(Args) -> text(witness_event:format_function({Module, Function, length(Args)}));
         _ -> text(witness_event:format_function(Signature))
     end}, {reason, case Reason of {Why, _} -> Why; _ -> Reason end}]
     ++ [{module, Module} || {not_woven, Module} <- [Reason]]
     ++ [{text, text(witness_text_verdict:gap(Reason))}, {count, case Count of unknown -> null; _ -> Count end}]}.

covered(#{spec := Spec, name := Name, actions := Actions}) ->
    {[{spec, text(Spec)}, {name, text(Name)},
      {actions, [{[{line, Line}, {column, Column}, {text, text(Text)}, {decides, null(Decides)}, {taken, Taken}]}
                 || #{line := Line, column := Column, text := Text, decides := Decides, taken := Taken} <- Actions]}]}.

-doc "The summary of a recording, with its folder and duration.".
-spec recording(map(), header()) -> iolist().
recording(#{dir := Dir, outcome := Outcome, ended := Ended, vm := Status, unwoven := Unwoven, elapsed_ms := Elapsed} = Summary,
          Header) ->
    Files = case Summary of
        #{files := Known} when is_map(Known) ->
            {[{Kind, maps:get(bytes, maps:get(Kind, Known))} || Kind <- [order, data, processes]]};
        #{} -> null
    end,
    Refused = maps:get(refused, Summary, []),
    line(recording, Header, [{dir, text(Dir)}, {outcome, as_text(Outcome)}, {ended, as_text(Ended)}, {status, Status},
                             {processes, maps:get(born, Summary, null)}, {files, Files}, {unwoven, Unwoven},
                             {replayable, replayable(Summary)},
                             {refused, [text(witness_log_recording_refusal:format(Reason)) || Reason <- Refused]},
                             {options, [text(Option) || Option <- witness_log_recording_refusal:options(Refused)]},
                             {elapsed_ms, Elapsed}]).

%% A recording without an end is replayed as far as it goes.
replayable(#{refused := Refused}) -> Refused =:= [];
replayable(#{}) -> null.

-doc "The result of a replay.".
-spec replay(map(), header()) -> iolist().
replay(#{dir := Dir, outcome := Outcome, complete := Complete, processes := Processes, entries := Entries, killed := Killed,
         cut := Cut, stopped := Stopped, changed := Changed, elapsed_ms := Elapsed} = Report, Header) ->
    Divergences = [Divergence || #{divergence := Divergence} <- [Report]] ++ maps:get(waiting, Report, []),
    Differing = case Report of #{differing := Differ} -> [{maps:to_list(One)} || One <- Differ]; #{} -> null end,
    line(replay, Header,
         [{dir, text(Dir)}, {outcome, Outcome}, {at, text(maps:get(at, Report, undefined))}, {verdicts, Differing},
          {complete, Complete}, {processes, Processes},
          {entries, Entries}, {killed, Killed}, {cut, Cut}, {stopped, Stopped}, {changed, Changed},
          {kept, case Report of #{kept := _} -> true; #{} -> false end}, {messages, maps:get(messages, Report, null)},
          {divergences, [{maps:to_list(Divergence)} || Divergence <- Divergences]}, {elapsed_ms, Elapsed}]).

-doc "The result of a search.".
-spec search(witness_search_text:report(), header()) -> iolist().
search(#{schedules := Schedules, seed := Seed, strategies := Strategies, unfaithful := Unfaithful, elapsed_ms := Elapsed} = Report,
       Header) ->
    {Outcome, Found} = found(Report),
    line(search, Header,
         [{outcome, Outcome}, {schedules, Schedules}, {seed, Seed}, {strategies, Strategies}] ++ Found
         ++ [{failures, case Report of
                  #{failures := _} -> [failure(Failure) || Failure <- witness_search_text:failures(Report)];
                  #{} -> null
              end},
             {omitted, maps:get(omitted, Report, null)},
             {ended, case Report of #{ended := {Why, _}} -> Why; _ -> maps:get(ended, Report, null) end},
             {unfaithful, [{[{kind, Fault}, {what, term(What)}, {text, text(witness_search_unfaithful:format(One))}]}
                           || {Fault, What} = One <- Unfaithful]},
             {coverage, [covered(Property) || Property <- maps:get(coverage, Report, [])]},
             {warnings, [{[{code, Code}, {text, text(Text)}]} || #{code := Code, text := Text} <- maps:get(warnings, Report, [])]},
             {elapsed_ms, Elapsed}]).

failure(#{count := Count} = Failure) ->
    {Outcome, Found} = found(Failure),
    {[{outcome, Outcome}, {count, Count} | Found]}.

%% What is known of a run.
found(#{outcome := Outcome, dir := Dir} = Report) ->
    Processes = maps:get(processes, Report, #{}),
    {Kind, Spec, Name, Process, Reason} = case Outcome of
        {violated, Of, Property} -> {violated, text(Of), text(Property), #{}, null};
        {circle, _} -> {deadlock, null, null, #{}, null};
        {How, Ids} when is_list(Ids) -> {How, null, null, #{}, null};
        {How, Id, Why} -> {How, null, null, maps:get(Id, Processes, #{}), term(Why)};
        _ -> {Outcome, null, null, #{}, null}
    end,
    {Kind,
         [{number, maps:get(number, Report, null)},
          {strategy, case Report of #{strategy := none} -> null; _ -> maps:get(strategy, Report, null) end},
          {length, maps:get(length, Report, null)}, {switches, maps:get(switches, Report, null)}, {spec, Spec}, {name, Name},
          {process, case Process of #{pid := Pid} -> text(witness_event:format_proc(Pid)); #{} -> null end},
          {signature, case Process of
              #{signature := Signature} -> text(witness_event:format_signature(Signature));
              #{} -> null
          end},
          {reason, Reason},
          {processes, case Report of
              #{processes := _} -> [remaining_process(witness_search_cause:describe(One))
                                    || _ := #{stack := _} = One <- maps:iterator(Processes, ordered)];
              #{} -> null
          end},
          {reversed, case Report of
              #{reversed := Pairs} -> [{[{Place, text(witness_search_text:step(map_get(Place, Pair)))}
                                         || Place <- [first, second]] ++ [{never, map_get(never, Pair)}]} || Pair <- Pairs];
              #{} -> null
          end},
          {explanation, case Report of
              #{explanation := #{steps := Steps} = Explanation} ->
                  [found_step(Step, witness_search_text:syntax(Explanation)) || Step <- Steps];
              #{} -> null
          end},
          {dir, case Report of #{recorded := _} -> text(Dir); #{} -> null end}]}.

%% Of a step that is no event it is only known what the process does.
found_step(#{index := Index, event := Event, role := Roles} = Step, Syntax) ->
    {[{index, Index}, {kind, case Event of {step, _, _, _} -> step; _ -> witness_event:kind(Event) end},
      {text, text(witness_search_text:event(Step, Syntax))},
      {pairs, [{[{pair, Number}, {place, Which}]} || {Which, Number} <- Roles]}]}.

as_text(Atom) when is_atom(Atom) -> Atom;
as_text(Term) -> term(Term).

-doc "A diagnostic of the compiler of specifications.".
-spec diagnostic(witness_spec:diagnostic(), header()) -> iolist().
diagnostic(#{severity := Severity, file := File, line := Line, column := Column, code := Code, text := Text,
             source := Source, hint := Hint}, Header) ->
    line(diagnostic, Header, [{severity, Severity}, {file, text(File)}, {line, null(Line)}, {column, null(Column)},
                              {end_column, end_column(Source, Column)}, {code, Code}, {text, text(Text)},
                              {source, text(Source)}, {hint, text(Hint)}]).

%% An editor marks a range: the name, quoted text or number at the column, or one character.
end_column(Source, Column) when is_binary(Source), is_integer(Column) ->
    Chars = unicode:characters_to_list(Source),
    Rest = lists:nthtail(min(Column - 1, length(Chars)), Chars),
    Word = ~B"""
    ^(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[\p{L}\p{N}_@]+)
    """,
    case re:run(Rest, Word, [unicode, {capture, first, binary}]) of
        {match, [Found]} -> Column + length(unicode:characters_to_list(Found));
        nomatch -> Column + 1
    end;
end_column(_, _) -> null.

-doc "The properties of a file, with its entries and the requested forms.".
-spec specification(File :: unicode:chardata(), [witness_spec:entry()],
                    #{expand | erlang | dot | mermaid => unicode:chardata()}, header()) -> iolist().
specification(File, Entries, Forms, Header) ->
    Properties = [{[{line, Line}, {name, text(Name)}, {signature, text(Signature)}, {all, All}, {group, Group},
                    {per, [text(Variable) || Variable <- Per]}, {monitor, Action =:= monitor}]}
                  || #{line := Line, name := Name, signature := Signature, all := All, group := Group, per := Per,
                       action := Action} <- Entries],
    line(specification, Header, [{file, text(File)}, {properties, Properties}
                                 | [{Form, text(maps:get(Form, Forms, undefined))} || Form <- [expand, erlang, dot, mermaid]]]).

-doc "What specifications say of a log.".
-spec trial(witness_cli_try:trial(), header()) -> iolist().
trial(#{log := Log, interrupted := Interrupted, properties := Properties,
        summary := #{outcome := Outcome, refused := Refused, events := Events, processes := Processes, warnings := Warnings,
                     elapsed_ms := Elapsed}}, Header) ->
    line(trial, Header, [{log, text(Log)}, {outcome, Outcome}, {interrupted, Interrupted}, {refused, text(Refused)},
                         {events, Events}, {processes, Processes}, {properties, [tried(Property) || Property <- Properties]},
                         {warnings, [{[{code, Code}, {text, text(Text)}]} || #{code := Code, text := Text} <- Warnings]},
                         {elapsed_ms, Elapsed}]).

tried(#{slices := Slices, events := Events, actions := Actions, violations := Violations, syntax := Syntax} = Property) ->
    {Fields} = property(Property),
    {Fields ++ [{slices, null(Slices)}, {events, Events},
                {actions, [{[{line, Line}, {column, Column}, {text, text(Text)}, {decides, null(Decides)}, {matched, Matched},
                             {same_shape, Same},
                             {near, [near_event(Event, Syntax) || Event <- Near]}]}
                           || #{line := Line, column := Column, text := Text, decides := Decides, matched := Matched, same := Same,
                                near := Near} <- Actions]},
                {violations, [tried_violation(V) || V <- Violations]}]}.

near_event({Place, Event}, Syntax) ->
    {[{log, text(Place)}, {text, witness_event:format(Event, ?MAX_TERM_CHARS, Syntax)}]}.

tried_violation(#{process := Process, source := Source, event := Event} = V) ->
    {Line, Column} = case Source of
        #{line := L, column := C} -> {L, null(C)};
        undefined -> {null, null}
    end,
    {Kind, Text} = case Event of
        #{event := E} -> {witness_event:kind(E), event_text(E, V)};
        undefined -> {null, null}
    end,
    {[{log, text(maps:get(log, V, undefined))}, {process, known(fun witness_event:format_proc/1, Process)}, {line, Line},
      {column, Column}, {kind, Kind}, {text, Text}, {deadline, case V of #{info := #{deadline := _}} -> true; #{} -> false end}]}.

-doc "What was formatted: whether that changes the text, whether the file was written, and the new text of what is no file.".
-spec formatted(File :: unicode:chardata(), Changed :: boolean(), Written :: boolean(), binary() | undefined, header()) -> iolist().
formatted(File, Changed, Written, Text, Header) ->
    line(format, Header, [{file, text(File)}, {changed, Changed}, {written, Written}, {text, text(Text)}]).

%% Internal

line(Type, #{v := Version, run := Run, node := Node}, Fields) ->
    Time = list_to_binary(calendar:system_time_to_rfc3339(os:system_time(millisecond), [{unit, millisecond}, {offset, "Z"}])),
    Object = {[{v, Version}, {type, Type}, {run, Run}, {node, Node}, {time, Time} | Fields]},
    [json:encode(Object, fun encode/2), $\n].

%% Objects are lists of pairs in a tuple, which keeps the order of their fields.
encode({Pairs}, Encode) -> json:encode_key_value_list(Pairs, Encode);
encode(Value, Encode) -> json:encode_value(Value, Encode).

term(Term) -> witness_event:format_term(Term, ?MAX_TERM_CHARS).

null(undefined) -> null;
null(Value) -> Value.

%% JSON is Unicode, but files may contain anything.
text(undefined) -> null;
text(Text) ->
    case unicode:characters_to_binary(Text) of
        Valid when is_binary(Valid) -> Valid;
        _ -> witness_text:clean(Text)
    end.
