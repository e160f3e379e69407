-module(witness).
-moduledoc """
Runtime verification for the BEAM: the public interface.

A *run* starts a system under observation and checks what each of its processes does
against specifications. Verdicts arrive while the system runs. The run ends when the
system has ended and every event has been analysed.

```erlang
1> {ok, Run} = witness:start(#{system => {calc_demo, main, []}, specs => ["calc.hml"]}).
{ok,<0.151.0>}
2> {ok, Summary} = witness:await(Run, 5000).
{ok,#{outcome => violated, verdicts => #{no => 1, yes => 0, inconclusive => 0}, ...}}
3> [#{verdict := no, steps := Steps}] = witness:verdicts(Run).
4> witness:stop(Run).
```

The process that calls `start/1` owns the run: when it dies, the run ends, and with it
every trace flag and every process of the run. In the supervision tree of an application `m:witness_supervised` owns it. For Elixir
there is the module `Witness`.

Verdicts also go to `logger` (violations, domain `[witness]`) and, where `telemetry` is
loaded, to the event `[witness, verdict]` (`m:witness_run_telemetry`).
""".

-export([start/1, await_started/2, await/2, stop/1, verdicts/1, info/1, subscribe/1, replace/2, allow/2, format_error/1]).

-export_type([run/0, verdict/0, source/0, summary/0, read/0, warning/0, error/0]).

-doc "A run.".
-type run() :: pid().

-doc """
An error of a function of Witness: a module of Witness, and a reason that its function `format_error/1` makes text. The module that
finds the error is the one that explains it.
""".
-type error() :: {module(), Reason :: term()}.

-doc """
The verdict of a monitor, or of one of its slices. `spec` is `file:line`, or the monitor's module;
`process` and `signature` are those of the process that the monitor was started for. For a property over all processes
they are those of the process of the deciding event, and `undefined` if no event decided. `slice` has the
values of a property with `per`, with their names; `event` is the deciding event, `index`
its number among the events that this monitor or slice has read, from 1 (without `over` the first is the
`init`). `reason` says why a verdict is inconclusive: `pending` if observation stopped while something that has to come had not come,
`stopped` if only an event could have violated. `source` is the deciding place in the specification, if that is a single action. `version` is present from 2 on, if specifications were replaced
(`replace/2`). `log` is present if a log was checked: `file:line` of the deciding event, for a recording
`folder:process:entry`. `steps` are the last events up to the
deciding one, each with the remaining formula and its bindings; `skipped` counts earlier ones. `note` says more of a violation of a check.
`names`, of a violation, are those of the processes in `steps`, as far as the VM still knew them: registered names, labels, or modules.
`aliases` are those to which messages were sent in `steps`, with the processes that made them. `syntax` is the language of its processes: that
of Elixir if one of them runs a module of Elixir.
""".
-type verdict() :: #{verdict := witness_monitor:verdict(),
                     spec := binary(), name := binary() | undefined,
                     process := witness_event:proc() | undefined,
                     signature := witness_event:signature() | undefined,
                     slice := undefined | [{Name :: binary(), Value :: term()}],
                     log => binary(), version => pos_integer(),
                     event := undefined | #{index := pos_integer(), event := witness_event:event()},
                     reason := undefined | stopped | pending | max_slices | slice_idle | unknown_past | too_many_requests
                             | {gap, term()} | {crashed, term()},
                     source := undefined | source(),
                     info := witness_monitor:info(), vacuous := boolean(),
                     steps := [#{index := pos_integer(), event := witness_event:event(),
                                 formula := binary() | undefined, bindings := [{binary(), term()}]}],
                     skipped := non_neg_integer(), note => binary(), names => witness_run_names:names(),
                     aliases => #{reference() => pid()}, syntax => witness_event:syntax()}.

-doc "A place in a specification, both numbers from 1, with the text of the line.".
-type source() :: #{file := binary(), line := pos_integer(), column := pos_integer() | undefined, text := binary()}.

-doc "Something that the user should know.".
-type warning() :: #{code := atom(), text := binary()}.

-doc "An event of a log for a monitor, with what the monitor made of it.".
-type read() :: witness_offline:read().

-doc """
A run in numbers. `processes` and `events`: observed; `tracers`: maximum alive at the same time;
`monitored`: monitors started; `slices`: of these monitors, each with a verdict of its own. `undecided`: for each property and
reason, how many slices were left undecided, and how many of these were reported as verdicts. Reported are at most the first 100
of a monitor and reason, and the first 1000 of a property.
`gaps`: of a log its gaps, otherwise the verdicts that met a gap. `missing`: the first of them, with process and signature if known.
`properties` has the numbers of monitors and verdicts of each property that had a monitor.
`coverage` says of each action of the monitored properties whether any monitor has taken it, and which verdict the action
decides by itself. `alive`: which processes were still there, if observation ended before the system did. If a log was wrong,
`outcome` is `refused`; the key `refused`
says where and why, and `lines` how many were read. Otherwise `outcome` is `violated` if a
verdict is `no`; otherwise `untrusted` if events are missing, a part of Witness or a monitor
crashed, the system crashed, or nothing was monitored; otherwise `ok`. `elapsed_ms`: until the
system had ended and all its events were gathered.
""".
-type summary() :: #{processes := non_neg_integer(), tracers := pos_integer(),
                     events := non_neg_integer(),
                     verdicts := #{witness_monitor:verdict() => non_neg_integer()},
                     vacuous := non_neg_integer(), gaps := non_neg_integer(),
                     missing => [witness_offline:missing() | witness_run_tally:missing()],
                     monitored := non_neg_integer(), slices := non_neg_integer(),
                     undecided => [#{spec := binary(), name := binary() | undefined, version := pos_integer(),
                                     reason := undefined | stopped | pending | max_slices | slice_idle | unknown_past
                                             | too_many_requests | {gap, term()} | {crashed, term()},
                                     count := pos_integer(), told := non_neg_integer()}],
                     properties => [#{spec := binary(), name := binary() | undefined, version := pos_integer(),
                                      monitored := pos_integer(), vacuous := non_neg_integer(),
                                      verdicts := #{witness_monitor:verdict() => non_neg_integer()}}],
                     coverage := [#{spec := binary(), name := binary() | undefined, version := pos_integer(),
                                    actions := [#{line := pos_integer(), column := pos_integer(), text := binary(),
                                                  decides := yes | no | undefined, taken := boolean()}]}],
                     warnings := [warning()],
                     elapsed_ms := non_neg_integer(), outcome := ok | violated | untrusted | refused,
                     refused := undefined | binary(), lines => non_neg_integer(), history => witness_run_history:history(),
                     alive => witness_run_remaining:remaining(),
                     system := undefined | starting | normal | {crashed, term()}}.

-doc """
Starts a system under observation, or checks a log of what a system did.

| Option | Value | Default |
|---|---|---|
| `system` | `{Module, Function, Args}`, called in a new process; `{application, Name}`, started with all that it needs; `{children, Processes}`, `{attach, Targets}` or `node`, see below; or a log, `{log, {file, Name}}` or `{log, standard_input}`; or a recording, `{log, {recording, Folder}}`, or a replay of one, `{log, {replay, Options}}` (`t:witness_run_replay:options/0`) | required |
| `scope` | `tree`: that process and all that it spawns, directly or not; `node`: every process of the node but Witness's own | `tree`; for an application `node` |
| `on_behalf` | whether what running processes start on behalf of the system is observed too, see below (`native`) | `false` |
| `applications` | applications that are started under observation before the function is called, with all that they need: the scope is `node` then | `[]` |
| `specs` | specification files (`.hml`) | `[]` |
| `include` | folders of record definitions, for `-include` in specifications, besides a specification's own | `[]` |
| `monitors` | `{{Module, Function, Arity}, {Monitor, Arg}}`, `'_'` for any: callback modules (`m:witness_monitor`) for processes with this signature | `[]` |
| `signatures` | `{Module, Function, Arguments}`: which arguments of a library's function say what the author's module runs (`m:witness_event_wrapper`) | those of `config :witness, signatures: [...]`, the parameter `signatures` of the application `witness` |
| `checks` | what is checked without a specification (docs/checks.md): `crashes`, `calls`, `late`, `restarts`, and of a system that is started `deadlock`, `mailboxes` and `leaks`; of one that runs already, and of `{children, _}`, only `calls`, `late`, `deadlock`, `mailboxes` and `leaks` | `[]` |
| `on_verdict` | a function, called with each `t:verdict/0` in a process of its own | none |
| `on_read` | of a log: a function, called with each event for a monitor (`t:read/0`), in the process of the monitor; it must not raise | none |
| `satisfied` | `told`, or `counted`: `on_verdict` does not need the verdicts `yes`. If nothing else needs them either (no subscriber, no telemetry, no `history`, `max_verdicts` reached), checks of logs, inline monitors and runs at other nodes only count them, which is much cheaper | `told` |
| `weave` | with `inline`: the modules to be woven, and `{application, Name}` for all of one | the modules in the folders of the modules that the signatures name and of the system's own module, without OTP, Elixir and Witness |
| `instrument` | `outline`: a tracer for each partition; `central`: one tracer for all, with all monitors in its process, which properties over several processes (`per` without `with`) need; `inline`: monitors are woven into the code of the processes, see below | `outline` |
| `source` | where events come from: `native`, the tracer in C, or `evm`, the messages of the VM's tracing | `native` where it can be loaded, otherwise `evm` with a warning |
| `timestamps` | whether all events carry their time, which charts show; without it, over `evm` only the events of partitions with several processes do | `true`, but `false` if inline |
| `memory` | bytes. Over `native`: limit of the events that wait; excess events are dropped, and the monitors that miss them end inconclusive. Over `evm`: limit of all tracers and monitors together, with their mailboxes. Above it the largest monitors end inconclusive; if the tracers take the memory, all monitors end inconclusive, and the system goes on unobserved (see *Limits*). Of a log: limit of the monitors of a property on each scheduler | a quarter of what the node may use |
| `partition_memory` | bytes that the events of one partition may take while they wait, likewise (`native`) | half of `memory` |
| `message_size` | bytes, or `infinity`; a larger message is a gap in the trace of its process | 64 MB; over `evm` `infinity`, since measuring a message takes about half a microsecond |
| `rate` | events a second, or `infinity`; if a second has more, gathering is given up | `infinity` |
| `duration` | milliseconds, or `infinity`, after which observation ends as planned: the reason of undecided verdicts is `stopped` | `infinity` |
| `batch`, `flush` | how many events of a partition, or how many milliseconds, pass at most before it is read (`native`) | `64`, `2` |
| `hold_back` | milliseconds that events of a partition with several processes wait to be put in order (`evm`) | `100` |
| `explain` | steps kept for an explanation | `12` |
| `max_slices` | slices of a monitor that are alive at the same time; one more ends the oldest, inconclusive | `100000` |
| `slice_idle` | milliseconds, or `infinity`, by the times of the events (all events have times then): if a slice has had no event for longer, it ends inconclusive at the next event that its monitor reads | `infinity` |
| `max_obligations` | parts of a formula that a monitor keeps at the same time; with more it ends inconclusive | `1000` |
| `max_state` | words of memory that the parameters of a formula and the windows of its `let`s may take; with more it ends inconclusive | `10000` |
| `max_verdicts` | verdicts kept for `verdicts/1`; 0 if they are not needed | `10000` |
| `drain` | milliseconds that monitors may need after the end, or `infinity` | `30000` |
| `halt` | whether the run ends with the system, or only with `stop/1` | `true` |
| `log` | whether violations are logged | `true` |
| `log_rate` | violations of a property that are logged per second at most, ten times as many for all properties together; of the others the number is logged | `10` |
| `redact` | whether messages, arguments, reasons and values are replaced by their shapes in every output (`docs/operations.md`); not with `log_file` or `save` | `false` |
| `syntax` | the notation of terms, functions and processes in all texts: that of the module that a process runs (`auto`), or always that of `erlang` or `elixir` | `auto` |
| `log_file` | a file to which everything that is traced is written, to be checked again: as JSON Lines if its name ends in `.jsonl`, `.ndjson` or `.json`. Each tree of processes is one partition then, with the limits of all its processes together. A process that ran before has no parent in a log, so a `group` reads more in the run than in its log | none |
| `log_size` | bytes that this file has at most. What would make it larger is missing, and the run cannot be trusted | `infinity` |
| `replaceable` | whether to gather everything, so that `replace/2` takes any specifications (over `native` except new groups); otherwise it takes only those that need no more than the first ones | `false` |
| `history` | whether the summary has the `history` of the run: which process spawned which, and the progress of the run over time (`t:witness_run_history:history/0`) | `false` |
| `owner` | the process of this node with which the run ends | the caller |
| `group_leader` | of the system's first process | the caller's |
| `unobserved` | processes that scope `node` leaves out | `[]` |

## Inline

With `instrument => inline`, starting the run rewrites modules from their debug information and loads them; the end of the run
restores their original code. Modules that were compiled with `m:witness_inline` are taken as they are. A process that starts
in a woven module runs its monitors itself: it judges an event before it goes on, and no other process takes part. All
processes of the system that start in such a module are monitored, whichever process spawned them.

- Events are those that the process itself can see: `recv` is a message that a `receive` takes, `send` and `fork` are done
  by woven code. What modules that are not woven do is not seen.
- A process that a signal ends cannot report that: its monitors end inconclusive with the gap `signal`. Signals that a
  process handles, and exceptions that it raises, are its `exit`.
- A monitor's crash is caught. Everything else that a monitor written by hand does, it does in the process of the system: a
  monitor that never returns stops that process.
- A module belongs to one run at a time. Such runs do not support groups, `per` without `with`, `log_file`, `replaceable`,
  `replace/2`, and systems that run already.
- If the original code of a module is still in use at the end, the woven code stays until it is not, and the summary says so.
  The woven code observes nothing any more.

## Applications

An application is started when every process of the node is observed, so that each process that it spawns is seen from its
first event. `start/1` returns before the application has started; `await_started/2` waits for that. The run ends
when the application has stopped. A stop is a normal end. A crash, a top supervisor that gave up (reason `shutdown`) and a failed
start are not. Applications that were started for it go on, and so does the application after `stop/1`.

## Limits

When a limit is reached, the summary has a warning with the limit as its `code`: `memory`, `message_size`, `rate`,
`duration`. `duration` is a planned end. For the others, every monitor that misses events is inconclusive
with the reason `{gap, Limit}`, and the outcome is `untrusted`. The system is never stopped, and never waits.

If gathering is given up (`rate`, over `evm` also `memory`), nothing more is traced, monitors drain what they have, and
the run ends. The system goes on, unless the end of the run ends its node.

The VM stops tracing a process that sets its flag `sensitive`. The monitors of the process, or of its group, have the
gap `sensitive`. A warning with that code says how many such processes there are, and that processes that they spawn meanwhile
are not observed either.

## What runs already

`{children, Processes}` observes what these processes of this node spawn from then on, and their descendants, from their
first events; the named processes themselves are not monitored. One that is named as `{Process, {Module, Function, Args}}` is monitored
itself over `native`, as if it had been spawned with this function when the run starts; it must wait meanwhile. The run ends when all
observed and all named processes have ended.

With `on_behalf`, and likewise for a system that is started with the scope `tree`, this also holds for what a process that runs already
starts while it handles a call of an observed process: what `supervisor:start_child/2` starts, or `DynamicSupervisor`,
`Task.Supervisor` and any other `gen_server`. Several runs at the same time each observe only what is started for them. If such a process is
restarted by its supervisor, the new one is observed, too. The run does not wait for these processes. `allow/2` names processes
that start something for the system without a call. The source must be `native`, over `evm` there is no such process.

`{attach, Targets}` observes processes of this node that run already, and all that they spawn from then on. Targets are processes,
registered names, and `{application, Name}` with everything that belongs to it, above all its supervision tree. The run ends
when all of these have ended. `node` observes every process of the node, future ones included, until `stop/1`. When
`start/1` returns, everything is observed; no process was suspended, called or sent a message.

The trace of such a process begins with `{attached, Process, {Module, Function, Arity}, Time}` instead of its
`init`: the function is what the VM still knows of its signature, its arguments are not known. So a specification that
depends on arguments is refused, and a monitor written by hand needs the callback `attached/3`
(`m:witness_monitor`). Messages that the process received before are no events; all that it sends or receives
later are. The source is always `evm`.

If a property with `group` reads a process that was named, or one of the application or node, its earlier descendants are
attached to as well. They belong to the group as if their births had been seen. Descendants are
found by the parent that the VM keeps for each process. If the parent of a process has ended, it is not known whether the
process belongs to a group: groups are then inconclusive (`{gap, orphan}`), and a warning names such processes. A
process is not an orphan if a known ancestor is in no group, or if no process of a group has the same group leader.

## Logs

A log takes the options above that concern specifications, monitors and verdicts, and these:

| Option | Value | Default |
|---|---|---|
| `format` | `text` or `json` | by the name of the file, or by its beginning |
| `roots` | the first processes of the system, or `auto`: those that are found in the log | `auto` |
| `follow` | whether to go on as the file grows; a run that follows ends with `stop/1` | `false` |
| `skew` | milliseconds, or `infinity`: how far times may go back in the log; with a limit, each line tells which deadlines have passed, in all processes, and a time further back ends the run | `infinity` |
| `sort` | milliseconds: the lines are in no order, and are sorted by their times, which go back by so much at most; each line then tells which deadlines have passed | none |
| `clock` | whether times are those of the system clock (nanoseconds since 1970): while a followed log is silent, it says which deadlines have passed. Needs `skew` or `sort` | `false` |
| `clocks` | milliseconds by which the clocks of the processes differ at most: a deadline that depends on it is `inconclusive` | `0` |
| `skip_malformed` | whether to skip, count and report malformed lines; otherwise the first one ends the run | `false` |
| `max_atoms` | atoms that the log may create | `100000` |
| `max_line` | bytes of the longest line | 1 MB |
| `block` | bytes that are read at a time | 128 KB |
| `save` | a file in which the position in the log is saved every 5 seconds and at the end, with the state at that position | none |
| `from` | such a file: the run continues at its position, with the same specifications, monitors and options | none |

A recording has `max_atoms` only, and is read as data: no code of it runs. A recording without the contents of messages
(`docs/record.md`) is refused; `{replay, Options}` runs the recorded code again, which restores the contents. A recording that
this account has not made on this machine is replayed with the option `trust` only (`docs/threat-model.md`).

## Errors

Every user error is `{error, {Module, Reason}}`; `format_error/1` makes `{Module, Reason}` text for people. Nothing has been started
then.

| Error | See |
|---|---|
| `{witness_option, Reason}` | an unknown or ill-typed option, or one that is missing: `t:witness_option:reason/0` |
| `{witness_options, Reason}` | options that do not fit each other or the system: `m:witness_options` |
| `{witness_spec, Diagnostics}` | a specification with errors: `t:witness_spec:diagnostic/0` |
| `{witness_monitor, Reason}` | a module that is no monitor: `t:witness_monitor:reason/0` |
| `{witness_run_application, Reason}` | an application that cannot be run, or did not start: `t:witness_run_application:reason/0` |
| `{witness_run_attach, Text}` | a process that cannot be observed |
| `{witness_run_inline, Reason}` | a module that cannot be woven, or is observed by another run |
| `{witness_run_start, {log, Text}}` | a log that cannot be read, or cannot be written |
| `{witness_run, Reason}` | a run that has died or did not start, or a time that is over: `t:witness_run:reason/0` |
""".
-spec start(map()) -> {ok, run()} | {error, error()}.
start(Options) ->
    case witness_options:check(Options) of
        {ok, Checked} ->
            case application:ensure_all_started(witness) of
                {ok, _} -> await_begin(witness_sup:start_run(Checked));
                {error, Reason} -> not_started(Reason)
            end;
        {error, _} = Error -> Error
    end.

await_begin({ok, Run}) when is_pid(Run) ->
    case witness_run:await_begin(Run) of
        ok -> {ok, Run};
        {error, _} = Error -> Error
    end;
await_begin({error, Reason}) -> not_started(Reason).

not_started(Reason) -> {error, {witness_run, {not_started, Reason}}}.

-doc """
Waits until the applications that the run starts have started, with what they need. It is an error if they did not start
(`{witness_run_application, {not_started, Application, Reason}}`), if the run was stopped before (`{witness_run, stopped}`), or if
the time is over (`{witness_run, timeout}`).
""".
-spec await_started(run(), timeout()) -> ok | {error, error()}.
await_started(Run, Timeout) -> witness_run:await_started(Run, Timeout).

-doc """
Waits until the run has ended: every event has been analysed, and every verdict has been notified.

With `halt => true` a run ends when the system's first process and all its descendants
have ended, or the application has stopped.
If gathering was given up, the run ends before the system does.

The errors are `{witness_run, timeout}`, after which the run goes on, and `{witness_run, {run_died, Reason}}`.
""".
-spec await(run(), timeout()) -> {ok, summary()} | {error, error()}.
await(Run, Timeout) -> witness_run:await(Run, Timeout).

-doc """
Ends the run. Undecided verdicts are `inconclusive` (`stopped`). If the system has not ended, it goes on
unobserved. The error is `{witness_run, {run_died, Reason}}`.
""".
-spec stop(run()) -> {ok, summary()} | {error, error()}.
stop(Run) -> witness_run:stop(Run).

-doc "The verdicts so far, oldest first.".
-spec verdicts(run()) -> [verdict()].
verdicts(Run) -> witness_run:verdicts(Run).

-doc """
The progress of the run. `root`: the system's first process, if the run has started it. `warnings`: those so far, such as those
about the specifications. For a log also the lines and bytes that were read, and its size in bytes.
""".
-spec info(run()) -> #{phase := running | draining | finished, processes := non_neg_integer(),
                       events := non_neg_integer(), waiting_for := non_neg_integer(),
                       lines => non_neg_integer(), read => non_neg_integer(), size => pos_integer() | unknown,
                       monitors := non_neg_integer(), verdicts := map(), gaps := non_neg_integer(), system := term(),
                       root => undefined | pid(),
                       warnings := [warning()]}.
info(Run) -> witness_run:info(Run).

-doc """
Sends verdicts and the summary to the caller, as messages `{witness, Ref, {verdict, V} | {summary, S}}`.
If the mailbox of the caller is full, it misses verdicts; `{witness, Ref, {missed, N}}` says how many.
""".
-spec subscribe(run()) -> {ok, reference()}.
subscribe(Run) -> witness_run:subscribe(Run, fun(Message) -> Message end).

-doc """
Observes what this process of the node spawns from now on, as part of the system of a run with `on_behalf`: for a process that starts
something for the system without being called by it. The process itself is not observed. If it belongs to the system, nothing changes.

## Errors

- `{witness_run, {not_allowed, off}}`: the run is without `on_behalf`;
- `{witness_run, {not_allowed, ended}}`: it does not observe any more;
- `{witness_run, {run_died, Reason}}`.
""".
-spec allow(run(), pid()) -> ok | {error, error()}.
allow(Run, Process) -> witness_run:allow(Run, Process).

-doc """
Replaces the specifications of a running run by those of these files. A process that starts from now on gets all of
the new ones, or none if its birth has already been handled. Monitors that have started keep
their specification to their end, groups with all their descendants. Monitors given as modules stay.

Verdicts and coverage of the new specifications have a `version`, 2 after the first replacement; places in files are those
of that version. The result has the warnings about the new specifications; the summary has them too.

## Errors

The run goes on as it was.

- `{witness_spec, Diagnostics}`: they are wrong;
- `{witness_run, {not_replaced, messages | signatures | groups}}`: they need what the run does not gather, since no specification
  needed it at the start. With the option `replaceable` everything is gathered; new groups then still need source `evm`;
- `{witness_run, {not_replaced, functions}}`: they name functions that the first ones did not name;
- `{witness_run, {not_replaced, all}}`: the new or the first specifications have properties over all processes;
- `{witness_run, {not_replaced, inline | log | ended}}`: the run is instrumented inline, checks a log, or does not observe any more;
- `{witness_run, {run_died, Reason}}`.
""".
-spec replace(run(), Specs :: [file:name_all()]) -> {ok, [warning()]} | {error, error()}.
replace(Run, Specs) -> witness_run:replace(Run, Specs).

-doc "An error as text for people. It may be that of any function of Witness.".
-spec format_error(error()) -> unicode:chardata().
format_error({Module, Reason}) -> Module:format_error(Reason).
