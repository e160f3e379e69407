-module('Elixir.Witness').
-moduledoc """
Runtime verification for the BEAM: runs from Elixir.

A *run* starts a system under observation, and checks what each of its processes does against specifications. Verdicts arrive while the
system runs. The run ends when the system has ended and every event has been analysed.

Here a monitor demands that a process ends normally. It is written in Elixir (`Witness.Monitor`); most properties are specifications in
files, `specs: ["specs/shop.hml"]`.

    iex> defmodule EndsNormally do
    ...>   use Witness.Monitor, events: [:exit]
    ...>
    ...>   @impl true
    ...>   def handle_event({:exit, _process, :normal, _time}, _state), do: {:verdict, :yes, :normal}
    ...>   def handle_event({:exit, _process, reason, _time}, _state), do: {:verdict, :no, reason}
    ...> end
    iex> main = fn -> Process.exit(self(), :kill) end
    iex> {:ok, run} = Witness.start(system: main, monitors: [{:_, EndsNormally}], log: false)
    iex> {:ok, summary} = Witness.await(run)
    iex> summary.outcome
    :violated
    iex> [%Witness.Verdict{verdict: :no, info: :killed, event: %{event: event}}] = Witness.verdicts(run)
    iex> elem(event, 0)
    :exit
    iex> {:ok, %Witness.Summary{}} = Witness.stop(run)

`check/1` does all of this in one call. The process that calls `start/1` owns the run: when it dies, the run ends, and with it every trace
flag and every process of the run.

- a test: `Witness.Case`, which watches what tests of ExUnit start
- a monitor in Elixir: `Witness.Monitor`
- what a run has found: `Witness.Verdict`, `Witness.Summary`
- the command line: `mix help witness.run`, and `mix help` for the other tasks

Violations also go to `Logger`, and all verdicts to `:telemetry` as `[:witness, :verdict]`, if it is loaded.

## In a supervision tree

A run can watch the node, or processes of the application, from the start of a supervisor to its end:

```elixir
children = [
  {Witness, name: Shop.Witness, system: :node, specs: ["specs/shop.hml"]},
  Shop.Till
]

Supervisor.start_link(children, strategy: :one_for_one)
```

`Witness.verdicts(Shop.Witness)` are its verdicts. With `system: {:attach, [Shop.Till]}` the child comes after those that it names, and a
process that is started again is not watched. `child_spec/1` says what happens if the run ends.

The application needs Witness in production then, without `only` and `runtime: false`. Where Witness is there only for some environments,
leave the child out in the others: `children ++ Application.get_env(:shop, :watch, [])`, with
`config :shop, watch: [{Witness, system: :node, specs: ["specs/shop.hml"]}]` in `config/dev.exs`.

## Errors

A function returns `{:error, error}`, and `format_error/1` makes text of the error. Its variant with `!` raises a `Witness.Error` with that
text. A violation is no error.
""".

-export([start/1, 'start!'/1, start_link/1, child_spec/1, check/1, 'check!'/1]).
-export([await_started/1, await_started/2, 'await_started!'/1, 'await_started!'/2, await/1, await/2, 'await!'/1, 'await!'/2,
         stop/1, 'stop!'/1, verdicts/1, info/1, subscribe/1, replace/2, 'replace!'/2, allow/2, 'allow!'/2,
         format_error/1, format_verdict/1]).
-export(['__start_child__'/1, '__message__'/1]).

-export_type([run/0, options/0, error/0, verdict/0, summary/0, warning/0]).

-define(VERDICT, 'Elixir.Witness.Verdict').
-define(SUMMARY, 'Elixir.Witness.Summary').
-define(ERROR, 'Elixir.Witness.Error').
%% As functions of Elixir have it.
-define(TIMEOUT_MS, 5_000).
%% What functions with `!' do. It is no function, so that each has the type of its result.
-define(UNWRAP(Call), case Call of {ok, Result} -> Result; {error, Error} -> raise(Error) end).
-define(UNWRAP_OK(Call), case Call of ok -> ok; {error, Error} -> raise(Error) end).
-define(LOOK, #{colour => false, width => 100}).

-doc "A run, or the name of one that was started with `start_link/1`.".
-type run() :: pid() | atom() | {global, term()} | {via, module(), term()}.

-doc "A keyword list, or a map. What is `nil` has its default.".
-type options() :: [{atom(), term()}] | #{atom() => term()}.

-doc "A module of Witness that has found the error, and a reason; `format_error/1` makes it text.".
-type error() :: witness:error().

-type verdict() :: 'Elixir.Witness.Verdict':t().

-type summary() :: 'Elixir.Witness.Summary':t().

-doc "Something that the user should know.".
-type warning() :: #{code := atom(), text := binary()}.

-include("witness_elixir.hrl").

-doc """
start(options)

Starts a system under observation, or checks a log of what a system did.

    iex> {:ok, run} = Witness.start(system: {Enum, :sum, [[1, 2]]}, checks: [:crashes])
    iex> {:ok, summary} = Witness.await(run)
    iex> {summary.outcome, summary.system}
    {:ok, :normal}
    iex> for verdict <- Witness.verdicts(run), do: {verdict.verdict, verdict.spec}
    [yes: "check crashes"]
    iex> {:error, error} = Witness.start(system: {Enum, :summ, [[1, 2]]})
    iex> Witness.format_error(error)
    "the module Enum does not export summ/1"

## The system

| `system` | What the run watches |
|---|---|
| `{module, function, args}` | a new process that calls it, and all that it spawns |
| `fn -> ... end`, `&Shop.main/0` | the same |
| `{:application, :shop}` | an application from its start, with all that it needs |
| `:node` | every process of the node, also later ones |
| `{:attach, [pid, Name]}` | processes that run already, and all that they spawn |
| `{:attach, [{:application, :shop}]}` | an application that runs already |
| `{:children, [pid]}` | what these processes spawn from now on |
| `{:log, {:file, "shop.jsonl"}}` | a log, or `{:log, :standard_input}` |
| `{:log, {:recording, "shop.rec"}}` | a recording |
| `{:log, {:replay, dir: "shop.rec"}}` | a replay of a recording |

The run ends when what it watches has ended, or the application has stopped; with `:node` it ends with `stop/1`.

## Options

| Option | Value | Default |
|---|---|---|
| `system` | see above | required |
| `specs` | files of specifications, `["specs/shop.hml"]` | `[]` |
| `monitors` | `[{{module, function, arity}, monitor}]`, see below | `[]` |
| `checks` | what is checked without a specification, see below | `[]` |
| `on_verdict` | a function that is called with each `%Witness.Verdict{}` | none |
| `scope` | `:tree`, the descendants of the first process, or `:node` | `:tree` |
| `applications` | started under observation before the function is called | `[]` |
| `include` | folders for `-include` in specifications | `[]` |
| `on_read` | of a log: a function that is called with each event for a monitor | none |
| `satisfied` | `:counted`: `on_verdict` does not need the verdicts `:yes` | `:told` |
| `instrument` | `:outline`, `:central` or `:inline`, see below | `:outline` |
| `weave` | with `:inline`: modules, and `{:application, name}` | see below |
| `source` | `:native`, the tracer in C, or `:evm` | `:native`, if it can be loaded |
| `timestamps` | whether all events have their time | `true`, but `false` if inline |
| `memory` | bytes for events, tracers and monitors | a quarter of the node's |
| `partition_memory` | bytes for the events of one partition | half of `memory` |
| `message_size` | bytes, or `:infinity`: a larger message is a gap | 64 MB |
| `rate` | events a second at which gathering is given up | `:infinity` |
| `duration` | milliseconds after which observation ends as planned | `:infinity` |
| `batch` | events of a partition that are read together (`:native`) | `64` |
| `flush` | milliseconds after which fewer are read (`:native`) | `2` |
| `hold_back` | milliseconds in which events are put in order (`:evm`) | `100` |
| `explain` | steps kept for an explanation | `12` |
| `max_slices` | slices of a monitor that are alive at the same time | `100000` |
| `slice_idle` | milliseconds after which a slice without events ends | `:infinity` |
| `max_obligations` | parts of a formula that a monitor keeps | `1000` |
| `max_state` | words that parameters and windows of a formula take | `10000` |
| `max_verdicts` | verdicts kept for `verdicts/1` | `10000` |
| `drain` | milliseconds that monitors may need after the end | `30000` |
| `halt` | whether the run ends with the system | `true` |
| `log` | whether violations are logged | `true` |
| `log_rate` | violations of a property that are logged per second | `10` |
| `redact` | whether outputs have shapes in the place of contents | `false` |
| `syntax` | the language of texts: `:erlang`, `:elixir`, `:auto` | `:auto` |
| `log_file` | a file to which all that is traced is written | none |
| `log_size` | bytes that this file has at most | `:infinity` |
| `signatures` | rows for servers that wrap an author's module | as configured |
| `on_behalf` | whether what servers start for the system is observed too | `false` |
| `replaceable` | whether `replace/2` takes any specifications | `false` |
| `history` | whether the summary has the history of the run | `false` |
| `owner` | the process with which the run ends | the caller |
| `group_leader` | of the system's first process | the caller's |
| `unobserved` | processes that scope `:node` leaves out | `[]` |

Of logs:

| Option | Value | Default |
|---|---|---|
| `format` | `:text` or `:json` | by the name of the file |
| `roots` | the first processes of the system, or `:auto` | `:auto` |
| `follow` | whether to go on as the file grows | `false` |
| `skew` | milliseconds that times may go back, so that each line tells the time | `:infinity` |
| `sort` | milliseconds that times may go back: the log is sorted by them | none |
| `clock` | whether a silent log asks the system clock for deadlines | `false` |
| `clocks` | milliseconds by which the clocks of the processes differ at most | `0` |
| `skip_malformed` | whether to skip and count malformed lines | `false` |
| `max_atoms` | atoms that the log may create | `100000` |
| `max_line` | bytes of the longest line | 1 MB |
| `block` | bytes that are read at a time | 128 KB |
| `save` | a file in which the position in the log is saved | none |
| `from` | such a file: the run continues at its position | none |

- `monitors`: a monitor is a module (`Witness.Monitor`), or `{module, arg}` with the argument of its `init/3`. Any part of the
  pattern may
  be `:_`, and so may the whole.
- `checks`: `:crashes`, `:calls`, `:late`, `:restarts`, and of a system that is started also `:deadlock`, `:mailboxes` and
  `:leaks`. Of
  `:attach`, `:node` and `:children` only `:calls`, `:late`, `:deadlock`, `:mailboxes` and `:leaks`.
- `instrument`: a tracer for each partition (`:outline`); one for all (`:central`), which properties over several processes need; or
  monitors in the code of the processes (`:inline`), which is woven as it is loaded.
- `on_behalf`: what a process that runs already, such as a `DynamicSupervisor` or a `Task.Supervisor`, starts while it handles a call of
  the system; see also `allow/2`. It needs `source: :native`.
- `weave`: by default the modules in the folders of the modules that signatures name, and of the module of `system`, without OTP,
  Elixir
  and Witness. So give `{module, function, args}` with `:inline`.

`h :witness.start/1` says more of each option.
""".
-spec start(options()) -> {ok, pid()} | {error, error()}.
start(Options) ->
    case to_erlang(Options) of
        {ok, Given} -> witness:start(Given);
        {error, _} = Error -> Error
    end.

-doc """
start!(options)

`start/1` that returns the run, or raises.

    iex> Witness.start!(system: {Enum, :sum, [[1, 2]]}, tracers: 4)
    ** (Witness.Error) unknown option tracers
""".
-spec 'start!'(options()) -> pid().
'start!'(Options) -> ?UNWRAP(start(Options)).

-doc """
start_link(options)

Starts a run that is linked to the caller, for a supervision tree. It takes the options of `start/1` and

- `name`: an atom, `{:global, name}` or `{:via, module, name}`, by which the other functions find the run.

The run ends with the process that is returned. When its supervisor ends that process, what was seen before is judged still.

    iex> {:ok, _} = Witness.start_link(system: {:attach, [self()]}, checks: [:calls], name: MyWatch)
    iex> Witness.info(MyWatch).phase
    :running
    iex> Witness.stop!(MyWatch).verdicts
    %{no: 0, yes: 0, inconclusive: 1}
""".
-spec start_link(options()) -> {ok, pid()} | {error, error() | {already_started, pid()}}.
start_link(Options) ->
    case to_erlang(Options) of
        {ok, #{name := Name} = Given} -> witness_supervised:start_link(Name, maps:remove(name, Given));
        {ok, Given} -> witness_supervised:start_link(Given);
        {error, _} = Error -> Error
    end.

-doc """
child_spec(options)

The child `{Witness, options}` of a supervisor, with the options of `start_link/1`. The `id` is the name, or `Witness`.

It is `:temporary`: if the run ends, it is not restarted, and so never ends the application. A run that is started again has missed
events; if you want that, use `Supervisor.child_spec({Witness, options}, restart: :permanent)`. Wrong options, and processes that are not
there, are an error of the supervisor's start.

    iex> Witness.child_spec(name: Shop.Witness, system: :node).id
    Shop.Witness
    iex> Supervisor.child_spec({Witness, system: :node}, restart: :permanent).restart
    :permanent
""".
-spec child_spec(options()) -> supervisor:child_spec().
child_spec(Options) ->
    Given = case to_erlang(Options) of {ok, Map} -> Map; {error, _} -> #{} end,
    Spec = witness_supervised:child_spec(Given),
    Spec#{id := maps:get(name, Given, ?MODULE), start := {?MODULE, '__start_child__', [Options]}}.

%% A supervisor prints an exception with a stack as its message.
-doc false.
-spec '__start_child__'(options()) ->
    {ok, pid()} | {error, {'Elixir.Witness.Error':t(), erlang:stacktrace()} | {already_started, pid()}}.
'__start_child__'(Options) ->
    case start_link(Options) of
        {error, {already_started, _}} = Error -> Error;
        {error, Reason} -> {error, {?ERROR:exception([{reason, Reason}]), [{?MODULE, start_link, 1, []}]}};
        Started -> Started
    end.

-doc """
check(options)

Starts a run, waits for its end, and returns its summary and its verdicts. It takes the options of `start/1`. A system that does not end
needs the option `duration`.

    iex> main = fn -> spawn(fn -> raise "no bread" end) end
    iex> {:ok, {summary, verdicts}} = Witness.check(system: main, checks: [:crashes], log: false)
    iex> summary.outcome
    :violated
    iex> [violation] = Witness.Verdict.violations(verdicts)
    iex> Witness.format_verdict(violation) =~ "no process handled it"
    true
""".
-spec check(options()) -> {ok, {summary(), [verdict()]}} | {error, error()}.
check(Options) ->
    case start(Options) of
        {ok, Run} ->
            try await(Run, infinity) of
                {ok, Summary} -> {ok, {Summary, verdicts(Run)}};
                {error, _} = Error -> Error
            after
                %% It has ended; an error says that it has died.
                _ = witness:stop(Run)
            end;
        {error, _} = Error -> Error
    end.

-doc """
check!(options)

`check/1` that returns `{summary, verdicts}`, or raises if there was no run. It does not raise for a violation.
""".
-spec 'check!'(options()) -> {summary(), [verdict()]}.
'check!'(Options) -> ?UNWRAP(check(Options)).

-doc #{equiv => await_started(Run, 5000)}.
-spec await_started(run()) -> ok | {error, error()}.
await_started(Run) -> await_started(Run, ?TIMEOUT_MS).

-doc """
await_started(run, timeout)

Waits until the applications that the run starts have started, by default 5 seconds. It is an error if they did not start, if the run was
stopped before, or if the time is over.

    iex> {:ok, run} = Witness.start(system: {:application, :inets}, checks: [:crashes], log: false)
    iex> Witness.await_started(run)
    :ok
    iex> Application.stop(:inets)
    iex> Witness.stop!(run).outcome
    :ok
""".
-spec await_started(run(), timeout()) -> ok | {error, error()}.
await_started(Run, Timeout) -> witness:await_started(Run, Timeout).

-doc #{equiv => 'await_started!'(Run, 5000)}.
-spec 'await_started!'(run()) -> ok.
'await_started!'(Run) -> 'await_started!'(Run, ?TIMEOUT_MS).

-doc """
await_started!(run, timeout)

`await_started/2` that returns `:ok`, or raises.
""".
-spec 'await_started!'(run(), timeout()) -> ok.
'await_started!'(Run, Timeout) -> ?UNWRAP_OK(await_started(Run, Timeout)).

-doc #{equiv => await(Run, 5000)}.
-spec await(run()) -> {ok, summary()} | {error, error()}.
await(Run) -> await(Run, ?TIMEOUT_MS).

-doc """
await(run, timeout)

Waits until the run has ended, by default 5 seconds: every event has been analysed, and every verdict has been notified. After the error
`{:witness_run, :timeout}` the run goes on.

    iex> {:ok, run} = Witness.start(system: fn -> Process.sleep(:infinity) end, checks: [:crashes])
    iex> {:error, error} = Witness.await(run, 10)
    iex> error
    {:witness_run, :timeout}
    iex> Process.exit(Witness.info(run).root, :kill)
    iex> Witness.await!(run).system
    {:crashed, :killed}
""".
-spec await(run(), timeout()) -> {ok, summary()} | {error, error()}.
await(Run, Timeout) -> summary(witness:await(Run, Timeout)).

-doc #{equiv => 'await!'(Run, 5000)}.
-spec 'await!'(run()) -> summary().
'await!'(Run) -> 'await!'(Run, ?TIMEOUT_MS).

-doc """
await!(run, timeout)

`await/2` that returns the summary, or raises.
""".
-spec 'await!'(run(), timeout()) -> summary().
'await!'(Run, Timeout) -> ?UNWRAP(await(Run, Timeout)).

-doc """
stop(run)

Ends the run. Undecided verdicts are `:inconclusive` (`:stopped`). If the system has not ended, it goes on unobserved.
""".
-spec stop(run()) -> {ok, summary()} | {error, error()}.
stop(Run) -> summary(witness:stop(Run)).

-doc """
stop!(run)

`stop/1` that returns the summary, or raises.
""".
-spec 'stop!'(run()) -> summary().
'stop!'(Run) -> ?UNWRAP(stop(Run)).

-doc """
verdicts(run)

The verdicts so far, oldest first.
""".
-spec verdicts(run()) -> [verdict()].
verdicts(Run) -> [?VERDICT:new(Verdict) || Verdict <- witness:verdicts(Run)].

-doc """
info(run)

The progress of the run: its `phase` (`:running`, `:draining` or `:finished`), the numbers of processes, events, monitors and verdicts so
far, `warnings`, and `root`, the system's first process, if the run has started it.
""".
-spec info(run()) -> map().
info(Run) -> witness_elixir:from_erlang(witness:info(Run)).

-doc """
subscribe(run)

Sends verdicts and the summary to the caller, as messages `{:witness, ref, {:verdict, verdict}}` and `{:witness, ref, {:summary, summary}}`.
If the mailbox of the caller is full, it misses verdicts; `{:witness, ref, {:missed, count}}` says how many.

    iex> main = fn -> receive do: (:go -> spawn(fn -> raise "no bread" end)) end
    iex> {:ok, run} = Witness.start(system: main, checks: [:crashes], log: false)
    iex> {:ok, ref} = Witness.subscribe(run)
    iex> send(Witness.info(run).root, :go)
    iex> receive do: ({:witness, ^ref, {:verdict, %Witness.Verdict{verdict: :no, spec: spec}}} -> spec)
    "check crashes"
    iex> receive do: ({:witness, ^ref, {:summary, %Witness.Summary{outcome: outcome}}} -> outcome)
    :violated
""".
-spec subscribe(run()) -> {ok, reference()}.
subscribe(Run) -> witness_run:subscribe(Run, fun ?MODULE:'__message__'/1).

-doc false.
-spec '__message__'({verdict, witness:verdict()} | {summary, witness:summary()}) -> {verdict, verdict()} | {summary, summary()}.
'__message__'({verdict, Verdict}) -> {verdict, ?VERDICT:new(Verdict)};
'__message__'({summary, Summary}) -> {summary, ?SUMMARY:new(Summary)}.

-doc """
replace(run, specs)

Replaces the specifications of a running run by those of these files, and returns the warnings about them. A process that starts from now
on gets all of the new ones. Monitors that have started keep their specification to their end. `h :witness.replace/2` lists the errors.
""".
-spec replace(run(), [binary() | string()]) -> {ok, [warning()]} | {error, error()}.
replace(Run, Specs) -> witness:replace(Run, Specs).

-doc """
replace!(run, specs)

`replace/2` that returns the warnings, or raises.
""".
-spec 'replace!'(run(), [binary() | string()]) -> [warning()].
'replace!'(Run, Specs) -> ?UNWRAP(replace(Run, Specs)).

-doc """
allow(run, pid)

Observes what this process of the node spawns from now on, as part of the system of a run with `on_behalf`: for a process that starts
something for the system without being called by it. `h :witness.allow/2` lists the errors.
""".
-spec allow(run(), pid()) -> ok | {error, error()}.
allow(Run, Process) -> witness:allow(Run, Process).

-doc """
allow!(run, pid)

`allow/2` that returns `:ok`, or raises.

    iex> run = Witness.start!(system: fn -> Process.sleep(:infinity) end, checks: [:crashes])
    iex> {:error, error} = Witness.allow(run, self())
    iex> Witness.format_error(error) =~ "start it with the option on_behalf"
    true
""".
-spec 'allow!'(run(), pid()) -> ok.
'allow!'(Run, Process) -> ?UNWRAP_OK(allow(Run, Process)).

-doc """
format_error(error)

An error as text for people, a string. It may be that of any function of Witness, also `{:already_started, pid}` of `start_link/1`.

    iex> {:error, error} = Witness.start(system: :node, checks: [:crashes])
    iex> Witness.format_error(error) =~ "there are only calls"
    true
""".
-spec format_error(error() | {already_started, pid()}) -> binary().
format_error(Error) -> witness_elixir:format_error(Error).

-doc """
format_verdict(verdict)

A verdict as the command line shows it, with a chart of the events, as a string.
""".
-spec format_verdict(verdict()) -> binary().
format_verdict(Verdict) ->
    witness_elixir:text(witness_text_verdict:verdict(?VERDICT:to_erlang(Verdict), ?LOOK)).

summary({ok, Summary}) -> {ok, ?SUMMARY:new(Summary)};
summary({error, _} = Error) -> Error.

-spec raise(error()) -> no_return().
raise(Error) -> error(?ERROR:exception([{reason, Error}])).

%% --- options -----------------------------------------------------------------------

%% Of an option that is there twice, the first value counts, as in `Keyword'.
to_erlang(Options) when is_list(Options) ->
    case lists:all(fun({Key, _}) -> is_atom(Key); (_) -> false end, Options) of
        true -> to_erlang(maps:from_list(lists:reverse(Options)));
        false -> no_options()
    end;
to_erlang(Options) when is_map(Options) -> {ok, #{Key => option(Key, Value) || Key := Value <- Options, Value =/= nil}};
to_erlang(_) -> no_options().

no_options() -> {error, {witness_option, {bad_option, options, "a keyword list"}}}.

%% What has another form in Elixir. All values are checked afterwards.
option(system, Fun) when is_function(Fun, 0) ->
    case erlang:fun_info(Fun, type) of
        {type, external} -> {fun_info(module, Fun), fun_info(name, Fun), []};
        {type, local} -> {erlang, apply, [Fun, []]}
    end;
option(system, {log, {replay, Options}}) when is_list(Options) ->
    {log, {replay, #{Key => replay_option(Key, Value) || {Key, Value} <- Options, Value =/= nil}}};
option(monitors, Monitors) when is_list(Monitors) -> [monitor(Monitor) || Monitor <- Monitors];
option(on_verdict, Fun) when is_function(Fun, 1) -> fun(Verdict) -> Fun(?VERDICT:new(Verdict)) end;
option(_, Value) -> Value.

fun_info(Key, Fun) ->
    {Key, Value} = erlang:fun_info(Fun, Key),
    Value.

replay_option(vm_args, Arguments) when is_list(Arguments) -> [unicode:characters_to_list(Argument) || Argument <- Arguments];
replay_option(_, Value) -> Value.

monitor({'_', Monitor}) -> monitor({{'_', '_', '_'}, Monitor});
monitor({Pattern, Module}) when is_atom(Module) -> {Pattern, {Module, []}};
monitor(Monitor) -> Monitor.
