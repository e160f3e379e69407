-module('Elixir.Witness.Verdict').
-moduledoc """
The verdict of a monitor, or of one of its slices.

- `verdict`: `:no` (violated), `:yes` (satisfied) or `:inconclusive` (undecided)
- `spec`, `name`: where the property is defined, `"file:line"`, or the module of the monitor; and its name, if it has one
- `process`, `signature`: the process that the monitor was started for, with `{module, function, arguments}` that it was spawned
  with; of a property over all processes those of the deciding event
- `slice`: the values of a property with `per`, `[{"Name", value}]`
- `event`: the deciding event, `%{index: 7, event: event}`: the number counts the events that the monitor has read, from 1
- `reason`: why a verdict is inconclusive: `:pending` if something that has to come had not come, `:stopped` if only an event
  could have violated, `{:gap, why}` if events are missing, `{:crashed, why}` if the monitor has crashed, `:max_slices`,
  `:slice_idle`, `:unknown_past` or `:too_many_requests`
- `source`: the deciding place in the specification, `%{file: "a.hml", line: 3, column: 5, text: "..."}`
- `info`: what the monitor says; of a specification a map, such as `%{matched: true, bindings: [{"A", 1}]}`
- `vacuous`: whether the birth of the process has decided alone
- `steps`, `skipped`: the last events up to the deciding one, each `%{index: 6, event: event, formula: "...", bindings: [{"A",
  1}]}`, and the number of earlier ones
- `note`: more about the violation of a check
- `log`: of a log `"file:line"` of the deciding event, of a recording `"folder:process:entry"`
- `version`: of the specifications, 2 after the first `Witness.replace/2`
- `names`, `aliases`: of a violation: names of the processes in `steps`, and the processes of the aliases
- `syntax`: `:elixir` if one of its processes runs a module of Elixir, otherwise `:erlang`

What is not known or not there is `nil`. Texts are strings. An event is the tuple that a monitor is given (`Witness.Monitor`), unchanged.
`Witness.format_verdict/1` writes a verdict for people.

    iex> hd(Witness.Verdict.violations([%Witness.Verdict{verdict: :yes}, %Witness.Verdict{verdict: :no, name: "sum"}])).name
    "sum"
""".

-define(FIELDS, [{verdict, nil}, {spec, nil}, {name, nil}, {process, nil}, {signature, nil}, {slice, nil}, {event, nil},
                 {reason, nil}, {source, nil}, {info, nil}, {vacuous, false}, {steps, []}, {skipped, 0}, {note, nil}, {log, nil},
                 {version, 1}, {names, #{}}, {aliases, #{}}, {syntax, erlang}]).
-export([new/1, violations/1, to_erlang/1]).

-export_type([t/0]).

-type t() :: #{'__struct__' := ?MODULE, verdict := witness_monitor:verdict(), spec := binary(), name := binary() | nil,
               process := witness_event:proc() | nil, signature := witness_event:signature() | nil,
               slice := [{binary(), term()}] | nil,
               event := #{index := pos_integer(), event := witness_event:event()} | nil,
               reason := stopped | pending | max_slices | slice_idle | unknown_past | too_many_requests | {gap, term()}
                         | {crashed, term()} | nil,
               source := #{file := binary(), line := pos_integer(), column := pos_integer() | nil, text := binary()} | nil,
               info := term(), vacuous := boolean(),
               steps := [#{index := pos_integer(), event := witness_event:event(), formula := binary() | nil,
                           bindings := [{binary(), term()}]}],
               skipped := non_neg_integer(), note := binary() | nil, log := binary() | nil, version := pos_integer(),
               names := #{witness_event:proc() => binary()}, aliases := #{reference() => pid()},
               syntax := witness_event:syntax()}.

-include("witness_elixir.hrl").

-doc """
new(verdict)

The struct of a verdict that is a map, as the module `:witness` gives it, and as the metadata of the event `[:witness, :verdict]` of
`:telemetry`.

    iex> %Witness.Verdict{verdict: :no, name: nil} = Witness.Verdict.new(%{verdict: :no, name: :undefined, spec: "a.hml:1"})
    iex> Witness.Verdict.new(%{verdict: :no, name: :undefined, spec: "a.hml:1"}).version
    1
""".
-spec new(witness:verdict() | map()) -> t().
new(Verdict) -> witness_elixir:struct('__struct__'(), Verdict).

-doc """
violations(verdicts)

Those of the verdicts that are violations.
""".
-spec violations([t()]) -> [t()].
violations(Verdicts) -> [V || #{verdict := no} = V <- Verdicts].

-doc false.
-spec to_erlang(t()) -> witness:verdict().
to_erlang(Verdict) -> witness_elixir:to_erlang(maps:filter(fun is_given/2, Verdict)).

%% Fields that a verdict of Erlang lacks, if there is nothing to say.
is_given(Field, nil) -> not lists:member(Field, [note, log]);
is_given(Field, _) -> Field =/= '__struct__'.
