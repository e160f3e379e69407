-module('Elixir.Witness.Summary').
-moduledoc """
A run in numbers.

- `outcome`: `:violated` if a verdict is `:no`; otherwise `:untrusted` if events are missing, a part of Witness, a monitor or the
  system has crashed, or nothing was monitored; otherwise `:ok`. If a log was wrong, `:refused`
- `system`: how the system has ended: `:normal`, `{:crashed, reason}`, `:starting`, or `nil` if it has not
- `verdicts`, `vacuous`: how many there are, `%{no: 1, yes: 0, inconclusive: 0}`; how many are vacuous
- `monitored`, `slices`: monitors that were started, and their slices
- `processes`, `events`, `tracers`: how many were observed; the most tracers that were alive at the same time
- `properties`: the numbers of each property that had a monitor
- `coverage`: of each action of the monitored properties, whether any monitor has taken it (`taken`), and what it decides by
  itself (`decides`)
- `undecided`: for each property and reason how many slices were left undecided (`count`), and how many of these were reported
  (`told`)
- `gaps`, `missing`: of a log its gaps, otherwise the verdicts that met a gap; the first of them
- `warnings`: what you should know: `[%{code: :limit, text: "..."}]`
- `alive`: which processes were still there, if observation ended before the system did
- `refused`, `lines`: of a log: what is wrong with it, and how many lines were read
- `elapsed_ms`: until the system had ended and all its events were gathered
- `history`: with the option `history`, as in Erlang (`t:witness_run_history:history/0`)

What is not known or not there is `nil`. Texts are strings. A test may demand both a good outcome and no warning:

    {:ok, %Witness.Summary{outcome: :ok, warnings: []}} = Witness.await(run)
""".

-define(FIELDS, [{outcome, nil}, {system, nil}, {verdicts, #{no => 0, yes => 0, inconclusive => 0}}, {vacuous, 0}, {monitored, 0},
                 {slices, 0}, {processes, 0}, {events, 0}, {tracers, 0}, {properties, []}, {coverage, []}, {undecided, []},
                 {gaps, 0}, {missing, []}, {warnings, []}, {alive, nil}, {refused, nil}, {lines, nil}, {elapsed_ms, 0},
                 {history, nil}]).
-export([new/1]).

-export_type([t/0]).

-type t() :: #{'__struct__' := ?MODULE, outcome := ok | violated | untrusted | refused,
               system := starting | normal | {crashed, term()} | nil,
               verdicts := #{witness_monitor:verdict() => non_neg_integer()}, vacuous := non_neg_integer(),
               monitored := non_neg_integer(), slices := non_neg_integer(), processes := non_neg_integer(),
               events := non_neg_integer(), tracers := non_neg_integer(), properties := [map()], coverage := [map()],
               undecided := [map()], gaps := non_neg_integer(), missing := [map()],
               warnings := [#{code := atom(), text := binary()}], alive := map() | nil, refused := binary() | nil,
               lines := non_neg_integer() | nil, elapsed_ms := non_neg_integer(), history := map() | nil}.

-include("witness_elixir.hrl").

-doc """
new(summary)

The struct of a summary that is a map, as the module `:witness` gives it.

    iex> Witness.Summary.new(%{outcome: :ok, refused: :undefined, events: 3})
    ...> |> Map.take([:outcome, :refused, :events])
    %{outcome: :ok, refused: nil, events: 3}
""".
-spec new(witness:summary() | map()) -> t().
new(Summary) -> witness_elixir:struct('__struct__'(), Summary).
