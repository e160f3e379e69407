-module(witness).
-moduledoc """
Runtime verification for the BEAM: the public interface.

A *run* starts a system under observation and checks what each of its processes does
against specifications. Verdicts come while it runs; when the system has ended and every
event has been analysed, the run has ended.

```erlang
1> {ok, Run} = witness:start(#{system => {calc_demo, main, []}, specs => ["calc.hml"]}).
{ok,<0.151.0>}
2> {ok, Summary} = witness:await(Run, 5000).
{ok,#{outcome => violated, verdicts => #{no => 1, yes => 0, inconclusive => 0}, ...}}
3> [#{verdict := no, steps := Steps}] = witness:verdicts(Run).
4> witness:stop(Run).
```

The process that calls `start/1` owns the run: when it dies, the run ends, and with it
every trace flag and every process of the run.

Verdicts also go to `logger` (violations, domain `[witness]`) and, where `telemetry` is
loaded, to the event `[witness, verdict]` (`m:witness_telemetry`).
""".

-export([start/1, await_started/2, await/2, stop/1, verdicts/1, info/1, subscribe/1, replace/2, format_error/1]).

-export_type([run/0, verdict/0, source/0, summary/0, warning/0]).

-doc "A run.".
-type run() :: pid().

-doc """
What a monitor found, or one of its slices. `spec` is `file:line`, or the monitor's module;
`process` and `signature` are those of the process that it was started for, or, of a property over all processes,
of the one whose event decided, and `undefined` where no event did; `slice` are the
values of a property with `per`, with their names; `event` is the one that decided, `index`
counts the events that this monitor or slice has read from 1 (without `over` that is the
`init`). `reason` says why a verdict is inconclusive. `source` is where in the specification
it was decided, where that is one action; `version` is there from 2 on, where specifications were replaced
(`replace/2`); `log`, where a log was checked, `file:line` of what decided, of a recording
`folder:process:entry`. `steps` are the last events up to the
deciding one, each with the formula that was left after it and its bindings; `skipped` counts earlier ones.
""".
-type verdict() :: #{verdict := witness_monitor:verdict(),
                     spec := binary(), name := binary() | undefined,
                     process := witness_event:proc() | undefined,
                     signature := witness_event:signature() | undefined,
                     slice := undefined | [{Name :: binary(), Value :: term()}],
                     log => binary(), version => pos_integer(),
                     event := undefined | #{index := pos_integer(), event := witness_event:event()},
                     reason := undefined | stopped | max_slices | slice_idle | {gap, term()} | {crashed, term()},
                     source := undefined | source(),
                     info := witness_monitor:info(), vacuous := boolean(),
                     steps := [#{index := pos_integer(), event := witness_event:event(),
                                 formula := binary() | undefined, bindings := [{binary(), term()}]}],
                     skipped := non_neg_integer()}.

-doc "A place in a specification, both numbers from 1, with the text of the line.".
-type source() :: #{file := binary(), line := pos_integer(), column := pos_integer() | undefined, text := binary()}.

-doc "Something that the user should know.".
-type warning() :: #{code := atom(), text := binary()}.

-doc """
A run in numbers. `processes` and `events`: seen; `tracers`: at most alive at the same time;
`monitored`: monitors started; `slices`: of these monitors, each with a verdict of its own; `undecided`: how many slices of each
property were left undecided for each reason, and how many of these were told as verdicts: the first 100 of a monitor and reason,
and the first 1000 of a property;
`gaps`: those in a log; else verdicts that met one. `missing`: the first of them, with process and signature where these are known.
`coverage` says of the actions of each property that was
monitored whether any of its monitors has taken them, and which verdict an action decides by
itself. `outcome` is `refused` if a log was wrong, `refused`
says where and why, and `lines` how many were read; else `violated` if a
verdict is `no`; else `untrusted` if events are missing, a part of Witness or a monitor
crashed, the system crashed, or nothing was monitored; else `ok`. `elapsed_ms`: until the
system had ended and all its events were gathered.
""".
-type summary() :: #{processes := non_neg_integer(), tracers := pos_integer(),
                     events := non_neg_integer(),
                     verdicts := #{witness_monitor:verdict() => non_neg_integer()},
                     vacuous := non_neg_integer(), gaps := non_neg_integer(),
                     missing => [witness_outline_offline:missing() | witness_tally:missing()],
                     monitored := non_neg_integer(), slices := non_neg_integer(),
                     undecided => [#{spec := binary(), name := binary() | undefined, version := pos_integer(),
                                     reason := undefined | stopped | max_slices | slice_idle | {gap, term()} | {crashed, term()},
                                     count := pos_integer(), told := non_neg_integer()}],
                     coverage := [#{spec := binary(), name := binary() | undefined, version := pos_integer(),
                                    actions := [#{line := pos_integer(), column := pos_integer(), text := binary(),
                                                  decides := yes | no | undefined, taken := boolean()}]}],
                     warnings := [warning()],
                     elapsed_ms := non_neg_integer(), outcome := ok | violated | untrusted | refused,
                     refused := undefined | binary(), lines => non_neg_integer(), history => witness_history:history(),
                     system := undefined | starting | normal | {crashed, term()}}.

-doc """
Starts a system under observation, or checks a log of what a system did.

| Option | Value | Default |
|---|---|---|
| `system` | `{Module, Function, Args}`, called in a new process; `{application, Name}`, started with all that it needs; `{children, Processes}`, `{attach, Targets}` or `node`, see below; or a log, `{log, {file, Name}}` or `{log, standard_input}`; or a recording, `{log, {recording, Folder}}`, or a replay of one, `{log, {replay, Options}}` (`t:witness_replaying:options/0`) | |
| `scope` | `tree`: that process and all that it spawns, directly or not; `node`: every process of the node but Witness's own | `tree`; for an application `node` |
| `applications` | those that are started, with all that they need, before the function is called, under observation: the scope is `node` then | `[]` |
| `specs` | specification files (`.hml`) | `[]` |
| `include` | folders of record definitions, for `-include` in specifications, besides a specification's own | `[]` |
| `monitors` | `{{Module, Function, Arity}, {Monitor, Arg}}`, `'_'` for any: callback modules (`m:witness_monitor`) for processes with this signature | `[]` |
| `on_verdict` | a function, called with each `t:verdict/0` in a process of its own | none |
| `satisfied` | `told`, or `counted`: `on_verdict` does not need the verdicts `yes`. If nothing else needs them either (no subscriber, no telemetry, no `history`, `max_verdicts` reached), checks of logs and inline monitors only count them, which is much cheaper | `told` |
| `weave` | with `inline`: the modules to be woven, and `{application, Name}` for all of one | the modules in the folders of those that the signatures name, and of the system's own, but those of OTP, Elixir and Witness |
| `instrument` | `outline`: a tracer for each partition; `central`: one for all, with all monitors in its process, which properties over several processes (`per` without `with`) need; `inline`: monitors are woven into the code of the processes, see below | `outline` |
| `source` | where events come from: `native`, the tracer in C, or `evm`, the messages of the VM's tracing | `native` where it can be loaded, otherwise `evm` with a warning |
| `timestamps` | whether all events carry their time; without it, over `evm` those of partitions with several processes do, and no others | `false` |
| `memory` | bytes. Over `native` what events may take while they wait: what comes beyond is left out, and who misses it ends inconclusive. Over `evm` what all tracers and monitors may take together, with their mailboxes: beyond it the largest monitors end inconclusive, or, if it is the tracers that take it, all of them, and the system goes on unobserved (see *Limits*). Of a log, what the monitors of a property may take on each scheduler | a quarter of what the node may use |
| `partition_memory` | bytes that the events of one partition may take while they wait, likewise (`native`) | half of `memory` |
| `message_size` | bytes, or `infinity`; a larger message is a gap in the trace of its process | 64 MB; over `evm` `infinity`, since to measure a message takes about half a microsecond |
| `rate` | events a second, or `infinity`; with more in some second gathering is given up | `infinity` |
| `duration` | milliseconds, or `infinity`, after which watching ends as planned: what is undecided is `stopped` | `infinity` |
| `batch`, `flush` | how many events of a partition, or how many milliseconds, pass at most before it is read (`native`) | `64`, `2` |
| `hold_back` | milliseconds that events of a partition with several processes wait to be put in order (`evm`) | `100` |
| `explain` | steps kept for an explanation | `12` |
| `max_slices` | slices of a monitor that are alive at the same time; one more ends the oldest, inconclusive | `100000` |
| `slice_idle` | milliseconds, or `infinity`, by the times of the events (which all events have then): a slice of whose value no event has come for longer ends, inconclusive, with the next event that its monitor reads | `infinity` |
| `max_obligations` | parts of a formula that a monitor keeps at the same time; with more it ends inconclusive | `1000` |
| `max_verdicts` | verdicts kept for `verdicts/1`; 0 where nobody asks for them | `10000` |
| `drain` | milliseconds that monitors may need after the end, or `infinity` | `30000` |
| `halt` | whether the run ends with the system, or only with `stop/1` | `true` |
| `log` | whether violations are logged | `true` |
| `log_rate` | violations of a property that are logged in a second at most, ten times as many of all properties; of the others it is logged how many they were | `10` |
| `redact` | whether messages, arguments, reasons and values are told by their shape only, wherever they are told (`docs/operations.md`); not with `log_file` or `save` | `false` |
| `log_file` | a file that is written with all that is traced, to be checked again: as JSON Lines if its name ends in `.jsonl`, `.ndjson` or `.json`. Each tree of processes is one partition then, whose bounds are those of all its processes. A process that ran before has no parent in a log, so a `group` reads more in the run than in its log | none |
| `replaceable` | whether to gather everything, so that `replace/2` takes any specifications (over `native` but for new groups); otherwise it takes those that need no more than what the first ones need | `false` |
| `history` | whether the summary has the `history` of the run: who has spawned whom, and how far the run had come as time went on (`t:witness_history:history/0`) | `false` |
| `group_leader` | of the system's first process | the caller's |
| `unobserved` | processes that scope `node` leaves out | `[]` |

## Inline

With `instrument => inline` modules are rewritten when the run is started, from their debug information, and loaded, and
their original code is restored at its end; modules that were compiled with `m:witness_inline` are taken as they are. The
processes that are born in them run their monitors themselves: an event is judged before the process goes on, and no other
process takes part. All of the system that is born in such a module is monitored, whoever has spawned it.

- An event is what the process can see: `recv` is a message that a `receive` takes, `send` and `fork` what woven code does.
  What is done in modules that are not woven is not seen.
- A process that is ended by a signal cannot say so: its monitors end inconclusive with the gap `signal`. Signals that a
  process sees, and whatever it raises, are its `exit`.
- A monitor's crash is caught, but what a monitor written by hand does otherwise it does in the process of the system: one
  that never returns stops that process.
- A module belongs to one run at a time. Groups, `per` without `with`, `log_file`, `replaceable` and `replace/2` are not for
  such runs, and neither is what runs already.
- Where the original code of a module is in use at the end, the woven code stays until it is not, and the summary says so.
  It observes nothing any more.

## Applications

An application is started when every process of the node is observed, so that each process that it spawns is seen from its
first event. `start/1` returns before it has started, and `await_started/2` waits until then. The run ends
when the application has stopped: a stop is a normal end, a crash or a top supervisor that gave up (reason `shutdown`) is none,
and so is a start that fails. What was started for it goes on, and so does the application after `stop/1`.

## Limits

A limit that strikes is told by a warning of the summary whose `code` is its name: `memory`, `message_size`, `rate`,
`duration`. But for `duration`, which is a planned end, every monitor that misses events because of it is inconclusive
with the reason `{gap, Limit}`, and the outcome is `untrusted`. The system is never stopped, and never waits.

Where gathering is given up (`rate`, over `evm` also `memory`), nothing more is traced, monitors work off what they
have, and the run ends; the system goes on, if it is not the end of the run that ends its node.

A process that sets its flag `sensitive` is not traced any more by the VM. Its monitors, or those of its group, have the
gap `sensitive`; a warning with that code says of how many processes this is so, and that what they spawn meanwhile is
not observed either.

## What runs already

`{children, Processes}` observes what these processes of this node spawn from then on, and their descendants, from their
first events; nobody monitors the processes themselves. The run ends when all of them have ended, these processes
included.

`{attach, Targets}` observes processes of this node that run already, and all that they spawn from then on: processes,
registered names, and `{application, Name}` with all that belongs to it, its supervision tree first of all. The run ends
when all of these have ended. `node` observes every process of the node, those to come included, until `stop/1`. When
`start/1` returns, everything is observed; nothing was suspended, asked or sent a message.

The trace of such a process begins with `{attached, Process, {Module, Function, Arity}, Time}`, in the place of its
`init`: the function is what the VM still knows of its signature, its arguments are not known. So a specification that
depends on them is refused, and a monitor that was written by hand needs the callback `attached/3`
(`m:witness_monitor`). Messages that the process had received before are no events; those that it sends or receives
later all are. Events come from `evm` always.

If a process that was named, or one of the application or node, is read by a property with `group`, what that process has
spawned before is attached to as well, directly or not, and belongs to the group as if its birth had been seen. Descendants are
known by the parent that the VM keeps of each process. If the parent of a process has ended, it is not known whether the
process belongs to a group: groups are then inconclusive (`{gap, orphan}`), and a warning names such processes. A
process is no such orphan if an ancestor that is known is in no group, or if its group leader is that of no process of a group.

## Logs

Of these options, a log has what concerns specifications, monitors and verdicts; and

| Option | Value | Default |
|---|---|---|
| `format` | `text` or `json` | told by the name of the file, or by its beginning |
| `roots` | the processes that began it all, or `auto`: those that are found in the log | `auto` |
| `follow` | whether to go on as the file grows; a run that follows ends with `stop/1` | `false` |
| `skip_malformed` | whether to leave out, count and report what is wrong; otherwise it ends the run | `false` |
| `max_atoms` | atoms that the log may bring with it | `100000` |
| `max_line` | bytes of the longest line | 1 MB |
| `block` | bytes that are read at a time | 128 KB |
| `save` | a file, in which the position in the log is saved every 5 seconds and at the end, with all that is known there | none |
| `from` | such a file, to go on where it was saved, with the same specifications, monitors and options | none |

A recording has `max_atoms` only, and is read as data: no code of it runs. One that was made without the contents of messages
(`docs/record.md`) is refused; `{replay, Options}` runs the recorded code again, and finds them so. What this account has not recorded on this
machine it replays with the option `trust` only (`docs/threat-model.md`).

## Errors

Whatever a user can get wrong is `{error, Reason}`; `format_error/1` tells it to people. See
`m:witness_options`. Nothing has been started then.
""".
-spec start(map()) -> {ok, run()} | {error, term()}.
start(Options) ->
    case witness_options:check(Options) of
        {ok, Checked} ->
            case application:ensure_all_started(witness) of
                {ok, _} -> started(witness_sup:start_run(Checked));
                {error, Reason} -> {error, {not_started, Reason}}
            end;
        {error, _} = Error -> Error
    end.

started({ok, Run}) when is_pid(Run) ->
    case witness_run:begun(Run) of
        ok -> {ok, Run};
        {error, _} = Error -> Error
    end;
started({error, Reason}) -> {error, {not_started, Reason}}.

-doc """
Waits until the applications that the run starts have started, with what they need. An error is that they did not start
(`{not_started, Application, Reason}`), or that the run was stopped before.
""".
-spec await_started(run(), timeout()) ->
    ok | {error, timeout | stopped | {not_started, atom(), term()} | {run_died, term()}}.
await_started(Run, Timeout) -> witness_run:await_started(Run, Timeout).

-doc """
Waits until the run has ended and every event has been analysed, and every verdict told.

With `halt => true` a run ends when the system's first process and all its descendants
have ended, or the application has stopped.
Where gathering had to be given up, the run ends before the system does.
""".
-spec await(run(), timeout()) -> {ok, summary()} | {error, timeout | {run_died, term()}}.
await(Run, Timeout) -> witness_run:await(Run, Timeout).

-doc """
Ends the run. What is undecided is `inconclusive` (`stopped`). The system goes on,
unobserved, if it has not ended.
""".
-spec stop(run()) -> {ok, summary()} | {error, {run_died, term()}}.
stop(Run) -> witness_run:stop(Run).

-doc "The verdicts so far, oldest first.".
-spec verdicts(run()) -> [verdict()].
verdicts(Run) -> witness_run:verdicts(Run).

-doc """
How far the run has come. `root`: the system's first process, where the run has started it. `warnings`: those so far, such as those about the specifications. Of a log also the lines and
bytes that were read, and its size in bytes.
""".
-spec info(run()) -> #{phase := running | draining | finished, processes := non_neg_integer(),
                       events := non_neg_integer(), waiting_for := non_neg_integer(),
                       lines => non_neg_integer(), read => non_neg_integer(), size => pos_integer() | unknown,
                       monitors := non_neg_integer(), verdicts := map(), gaps := non_neg_integer(), system := term(), root => undefined | pid(),
                       warnings := [warning()]}.
info(Run) -> witness_run:info(Run).

-doc """
Verdicts and the summary as messages `{witness, Ref, {verdict, V} | {summary, S}}` to the
caller. A caller whose mailbox is full misses verdicts; `{witness, Ref, {missed, N}}` says so.
""".
-spec subscribe(run()) -> {ok, reference()}.
subscribe(Run) -> witness_run:subscribe(Run).

-doc """
Replaces the specifications of a run while it goes on, by those of these files: a process that is born from now on gets
the new ones, all of them or, if its birth has been dealt with, none. Monitors that have begun go on to their end with
the specification that they began with, groups with all their descendants. Monitors given as modules stay.

Verdicts and coverage of the new ones have a `version`, 2 after the first time: places in files are those of that
version. The warnings are those about the new specifications, which the summary has too.

## Errors

The run goes on as it was.

- `{specification, Diagnostics}`: they are wrong;
- `{not_replaced, messages | signatures | groups}`: they need what the run does not gather, since nobody wanted it when
  it was started. With the option `replaceable` everything is gathered; new groups then still need source `evm`;
- `{not_replaced, all}`: they have properties over all processes, or those that the run began with do;
- `{not_replaced, log | ended}`: a log is checked, or the run does not watch any more;
- `{run_died, Reason}`.
""".
-spec replace(run(), Specs :: [file:name_all()]) -> {ok, [warning()]} | {error, term()}.
replace(Run, Specs) -> witness_run:replace(Run, Specs).

-doc "An error of `start/1`, `await_started/2`, `await/2` or `replace/2` for people.".
-spec format_error(term()) -> unicode:chardata().
format_error({Kind, Text}) when Kind =:= log; Kind =:= attach -> Text;
format_error(Reason) when element(1, Reason) =:= inline; element(1, Reason) =:= weave; element(1, Reason) =:= observed ->
    witness_inlined:format_error(Reason);
format_error({specification, Diagnostics}) ->
    lists:join("\n", [witness_spec:format_diagnostic(D) || D <- Diagnostics]);
format_error({not_replaced, log}) -> "specifications are not replaced while a log is checked";
format_error({not_replaced, ended}) ->
    "the run does not watch any more: there are no processes for other specifications";
format_error({not_replaced, all}) ->
    "properties over all processes (`per` without `with`) are there from the beginning of a run to its end";
format_error({not_replaced, inline}) ->
    "specifications are not replaced in a run that is instrumented inline: what is woven follows from them";
format_error({not_replaced, What}) ->
    ["the run does not gather the ", atom_to_binary(What), " that these specifications need: start it with the "
     "option replaceable",
     [", over the source evm" || What =/= messages]];
format_error(timeout) -> "the run has not ended, or its application not started, in time";
format_error(stopped) -> "the run was stopped before its application had started";
format_error({not_started, App, Reason}) -> witness_application:ended({not_started, App, Reason});
format_error({run_died, Reason}) ->
    ["the run has died: ", witness_event:format_term(Reason, 400)];
format_error({not_started, Reason}) ->
    ["Witness could not start: ", witness_event:format_term(Reason, 400)];
format_error(Reason) when element(1, Reason) =:= monitor_not_found; element(1, Reason) =:= monitor_callbacks ->
    witness_monitor:format_error(Reason);
format_error(Reason) -> witness_options:format_error(Reason).
