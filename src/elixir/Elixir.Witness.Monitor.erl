-module('Elixir.Witness.Monitor').
-moduledoc """
A monitor that is written in Elixir: a state machine that reads the events of one process, and gives a verdict.

```elixir
defmodule Polite do
  @moduledoc "A process says `:bye` before it ends."
  use Witness.Monitor

  @impl true
  def init(_signature, _process, _arg), do: {:ok, :silent}

  @impl true
  def handle_event({:send, _process, _to, :bye, _time}, _state), do: {:ok, :said_bye}
  def handle_event({:exit, _process, _reason, _time}, :said_bye), do: {:verdict, :yes, nil}
  def handle_event({:exit, _process, reason, _time}, :silent), do: {:verdict, :no, {:left, reason}}
  def handle_event(_event, state), do: {:ok, state}
end
```

A run starts one for each process that its function and arity choose, `:_` for any:

    Witness.check(system: &Shop.main/0, monitors: [{{Till, :init, 1}, Polite}])

`mix witness.run --monitor 'Till.init/1=Polite' 'Shop.main()'` does the same, and
`use Witness.Case, specs: [{{Till, :init, 1}, {Polite, []}}]` in a test.

## Events

| Event | Meaning |
|---|---|
| `{:init, process, parent, {module, function, args}, time}` | it was spawned: the first event |
| `{:fork, process, child, {module, function, args}, time}` | it has spawned a process |
| `{:send, process, to, message, time}` | it has sent a message |
| `{:recv, process, from, message, time}` | a message has arrived in its mailbox |
| `{:exit, process, reason, time}` | it has ended: the last event |

`to` is a process, a port, a name, `{name, node}`, or an alias; `time` is in nanoseconds. What is not known, such as a sender, is `:undefined`, not `nil`: events are given as they are, since each one
costs time. The function of a `GenServer` is the `init/1` of its module.

A monitor must not wait, send or receive. If its callbacks call only functions that take bounded time, and do not call themselves, it
shares a process with others, and costs less. If a callback raises, the verdict is `:inconclusive`.

## use Witness.Monitor

It sets `@behaviour Witness.Monitor`, and defines

- `init/3`, which returns `{:ok, arg}`: the state is the argument with which the monitor was given, `{Polite, arg}`. It can be overridden;
- with `use Witness.Monitor, events: [:send, :exit]` the callback `alphabet/1`: other events are not given to the monitor, and if no
  monitor wants them, they are not even gathered.

The other callbacks are optional, except `handle_event/2`.

## Where Witness is a dependency of tests only

`use` is needed when the monitor is compiled, not when it runs. With `{:witness, ..., only: [:dev, :test], runtime: false}` the module
is missing when `lib` is compiled for production. So either

- keep monitors beside the tests, in `test/support`, with `elixirc_paths: elixirc_paths(Mix.env())` in `mix.exs`, or
- let the monitor exist only with Witness: `if Code.ensure_loaded?(Witness.Monitor) do defmodule Polite do ... end end`, or
- write it without `use`: a module with `init/3` and `handle_event/2` is a monitor, and nothing of Witness is needed to compile it.

## Without a run

A monitor is a module with functions, so a test of one needs no process:

    iex> defmodule Thrifty do
    ...>   use Witness.Monitor, events: [:send]
    ...>
    ...>   @impl true
    ...>   def handle_event({:send, _, _, {:pay, sum}, _}, limit) when sum > limit, do: {:verdict, :no, sum}
    ...>   def handle_event(_event, limit), do: {:ok, limit}
    ...> end
    iex> {:ok, state} = Thrifty.init({Till, :init, [[]]}, self(), 10)
    iex> Thrifty.handle_event({:send, self(), self(), {:pay, 7}, 0}, state)
    {:ok, 10}
    iex> Thrifty.handle_event({:send, self(), self(), {:pay, 12}, 0}, state)
    {:verdict, :no, 12}
    iex> Thrifty.alphabet(10)
    [:send]
""".

-export(['MACRO-__using__'/2]).

-export_type([signature/0, process/0, event/0, verdict/0, started/0]).

-doc "The function and the arguments that a process was spawned with.".
-type signature() :: {module(), Function :: atom(), Args :: [term()]}.

-doc "A process; in a log of another system `{:external, name}`.".
-type process() :: pid() | {external, binary()}.

-doc "What a process has done, or what was done to it.".
-type event() :: witness_event:event().

-doc "Violated, satisfied or undecided. A verdict is final: the monitor ends with it.".
-type verdict() :: no | yes | inconclusive.

-doc "`:ignore`: this process is not to be monitored after all. `filter` and `:slices` are for `c:slice/2`.".
-type started() :: {ok, State :: term()} | {ok, State :: term(), Filter :: term()} | {slices, Filter :: term()} | ignore.

-doc "Called at the start, with the argument from the option `monitors`.".
-callback init(signature(), process(), Arg :: term()) -> started().

-doc """
The same for a process that ran before it was watched, with the function that is known of it. No `:init` comes, and its past is not known.
Without this callback the monitor cannot be used with `system: :node` and `system: {:attach, targets}`.
""".
-callback attached({module(), Function :: atom(), arity()}, process(), Arg :: term()) -> started().

-doc "The next event. `info` is anything: people see it with the verdict.".
-callback handle_event(event(), State :: term()) -> {ok, State :: term()} | {verdict, verdict(), Info :: term()}.

-doc """
No further event comes. `:complete`: the process has ended, and all its events were seen; `:stopped`: observation has ended before. Without
this callback the verdict is `:inconclusive`.
""".
-callback handle_end(complete | stopped, State :: term()) -> {verdict(), Info :: term()}.

-doc """
The next event, or the end, comes at this time or later, in nanoseconds of the times of events: has a deadline decided? It is called before each
event that has a time, and whenever a source tells the time.
""".
-callback handle_time(Time :: integer(), State :: term()) -> open | {verdict, verdict(), Info :: term()}.

-doc "The first deadline that is at this time or later. `c:handle_time/2` is called when a time after it is known.".
-callback next_deadline(From :: integer(), State :: term()) -> integer() | none.

-doc "Whether the monitor has deadlines. Without this callback, one with `c:handle_time/2` has some.".
-callback is_timed(Arg :: term()) -> boolean().

-doc """
The events that the monitor wants, by their kinds, or by match specifications of the VM over `[to, message]` (`:send`) and `[from, message]`
(`:recv`).
""".
-callback alphabet(Arg :: term()) -> all | [Kind :: atom() | {Kind :: atom(), ets:match_spec() | mfa()}].

-doc """
The state machines that an event is for: none, the one with this key, which is started if there is none, the one with this key if there is
one, or all. A monitor that has started with `{:slices, filter}` has one machine for each key, a tuple of values. Of others only `:skip` and
`:all` may be returned.
""".
-callback slice(event(), Filter :: term()) -> skip | all | {slice | live, Key :: tuple()}.

-doc "The first state of the machine with this key.".
-callback instance(Key :: tuple(), Filter :: term()) -> State :: term().

-doc "Names for the values of a key, strings.".
-callback slice_names(Filter :: term()) -> [binary()].

-doc "What remains to be satisfied, for explanations: `formula` is a string, `bindings` a list of `{\"Name\", value}`.".
-callback describe(State :: term()) -> #{formula := binary(), bindings := [{Name :: binary(), Value :: term()}]}.

-doc "The actions of the monitor with their places in its source, and what their occurrence decides (`m:witness_monitor`).".
-callback coverage(Arg :: term()) ->
    [#{id := pos_integer(), line := pos_integer(), column := pos_integer(), text := binary(), decides := yes | no | undefined}].

-optional_callbacks([attached/3, handle_time/2, next_deadline/2, is_timed/1, handle_end/2, slice/2, instance/2, slice_names/1,
                     alphabet/1, coverage/1, describe/1]).

-define(KINDS, [init, fork, send, recv, exit]).

-include("witness_elixir.hrl").

%% quote do
%%   @behaviour Witness.Monitor
%%   @impl true
%%   def init(_signature, _process, arg), do: {:ok, arg}
%%   defoverridable init: 3
%%   # with events: [...]
%%   @impl true
%%   def alphabet(_arg), do: [...]
%%   defoverridable alphabet: 1
%% end
-doc false.
'MACRO-__using__'(_Caller, Options) ->
    Arg = {arg, [], ?MODULE},
    {'__block__', [], [attribute(behaviour, ?MODULE) | callback(init, [ignored(), ignored(), Arg], {ok, Arg})]
                      ++ [Form || Events <- events(Options), Form <- callback(alphabet, [ignored()], Events)]}.

events([]) -> [];
events([{events, Events}]) when is_list(Events) ->
    case Events -- ?KINDS of
        [] -> [Events];
        [Other | _] -> raise([~"events: expected a list of :init, :fork, :send, :recv and :exit, got ", text(Other)])
    end;
events([{events, Other}]) -> raise([~"events: expected a list of :init, :fork, :send, :recv and :exit, got ", text(Other)]);
events(Other) -> raise([~"expected no option but events, got ", text(Other)]).

text(Term) -> witness_event:format_term(Term, 200, elixir).

-spec raise(unicode:chardata()) -> no_return().
raise(Text) ->
    Error = 'Elixir.ArgumentError',
    error(Error:exception([{message, unicode:characters_to_binary([~"use Witness.Monitor, " | Text])}])).

callback(Name, Arguments, Body) ->
    [attribute(impl, true), macro(def, [{Name, [{context, ?MODULE}], Arguments}, [{do, Body}]]),
     macro(defoverridable, [[{Name, length(Arguments)}]])].

attribute(Name, Value) -> macro('@', [{Name, [{context, ?MODULE}], [Value]}]).

macro(Name, Arguments) ->
    {Name, [{context, ?MODULE}, {imports, [{Arity, 'Elixir.Kernel'} || Arity <- [1, 2], Arity =:= length(Arguments)]}], Arguments}.

ignored() -> {'_', [], ?MODULE}.
