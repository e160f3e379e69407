-module(witness_bench_witness).
-moduledoc """
The modes of Witness, and the mode without observation.

| Mode | Is |
|---|---|
| `untraced` | the system is not observed: the baseline of all comparisons |
| `inline` | monitors are woven into the processes |
| `inline_members` | the same, but the first process has no monitor, and is not woven |
| `central_evm`, `central_native` | one tracer for all, over the VM's messages, or in C |
| `outline_evm`, `outline_native` | a tracer for each process: RIARC |

The options of a mode are options of `witness:start/1` (`memory`, say).
""".
-behaviour(witness_bench_adapter).

-export([modes/0, is_watching/1, watches/2]).
-export([start/2, await/1, probe/1, stop/1]).

-export_type([mode/0, state/0]).

-doc "A run, or the monitor of the first process.".
-type state() :: {untraced, reference()} | {mode(), witness:run()}.

-type mode() :: untraced | inline | inline_members | central_evm | central_native | outline_evm | outline_native.

-doc "In the order of their tables.".
-spec modes() -> [mode()].
modes() -> [untraced, inline_members, inline, central_native, central_evm, outline_native, outline_evm].

-doc "Whether there are monitors.".
-spec is_watching(mode() | {adapter, module()}) -> boolean().
is_watching(Mode) -> Mode =/= untraced.

-doc "Whether processes with this role have one.".
-spec watches(root | member, mode() | {adapter, module()}) -> boolean().
watches(root, inline_members) -> false;
watches(_, Mode) -> is_watching(Mode).

-doc false.
-spec start(mode(), witness_bench_adapter:setting()) ->
    {ok, state(), pid()} | {error, unicode:chardata()}.
start(untraced, #{system := {M, F, Args}}) ->
    {First, Ref} = spawn_monitor(M, F, Args),
    {ok, {untraced, Ref}, First};
start(Mode, #{system := System, modules := Modules, monitors := Monitors, timestamps := Timestamps, verdict := Told,
              options := Given}) ->
    Options = #{system => System, monitors => Monitors, timestamps => Timestamps, max_verdicts => 0, drain => infinity,
                log => false,
                on_verdict => fun(#{reason := {crashed, Reason}}) -> Told(crashed, Reason);
                                 (#{verdict := Verdict, info := Info}) -> Told(Verdict, Info)
                              end},
    case witness:start(maps:merge(maps:merge(Options, Given), instrument(Mode, Modules))) of
        {ok, Run} -> first(Mode, Run);
        {error, Error} -> {error, witness:format_error(Error)}
    end.

instrument(inline, Modules) -> #{instrument => inline, weave => Modules};
instrument(inline_members, [_First | Modules]) -> #{instrument => inline, weave => Modules};
instrument(central_evm, _) -> #{instrument => central, source => evm};
instrument(central_native, _) -> #{instrument => central, source => native};
instrument(outline_evm, _) -> #{instrument => outline, source => evm};
instrument(outline_native, _) -> #{instrument => outline, source => native}.

first(Mode, Run) ->
    case witness:info(Run) of
        #{root := Root} when is_pid(Root) -> {ok, {Mode, Run}, Root};
        #{} ->
            {ok, #{warnings := Warnings}} = witness:stop(Run),
            {error, ["the system could not be started", [["; ", Text] || #{text := Text} <- Warnings]]}
    end.

-doc false.
-spec await(state()) -> {ok, witness_bench_adapter:facts()} | {error, unicode:chardata() | {system, term()}}.
await({untraced, Ref}) ->
    receive
        {'DOWN', Ref, process, _, normal} ->
            {ok, #{events => 0, gaps => 0, verdicts => #{yes => 0, no => 0, inconclusive => 0}}};
        {'DOWN', Ref, process, _, Reason} ->
            {error, {system, Reason}}
    end;
await({Mode, Run}) ->
    case witness:await(Run, infinity) of
        {ok, #{system := {crashed, Reason}}} -> {error, {system, Reason}};
        {ok, #{events := Events, verdicts := Verdicts = #{inconclusive := Undecided}, tracers := Tracers, outcome := Outcome,
               warnings := Warnings}} ->
            {ok, #{events => Events, gaps => Undecided, verdicts => Verdicts, incomplete => Outcome =:= untrusted,
                   tracers => case is_inline(Mode) of true -> 0; false -> Tracers end,
                   trouble => [Text || #{text := Text} <- Warnings]}};
        {error, Error} -> {error, witness:format_error(Error)}
    end.

-doc false.
-spec probe(state()) -> witness_bench_adapter:probed().
probe({untraced, _}) -> #{events => 0, tracers => 0, gaps => 0};
probe({Mode, Run}) ->
    #{events := Events, verdicts := #{inconclusive := Undecided}} = Info = witness:info(Run),
    #{events => Events, tracers => tracers(Mode, Info), gaps => Undecided}.

is_inline(Mode) -> Mode =:= inline orelse Mode =:= inline_members.

%% Each process has a monitor, and each live monitor has the tracer that owns its process.
tracers(Mode, #{monitors := Monitors}) when Mode =:= outline_evm; Mode =:= outline_native -> Monitors;
tracers(Mode, _) when Mode =:= central_evm; Mode =:= central_native -> 1;
tracers(_, _) -> 0.

-doc false.
-spec stop(state()) -> ok.
stop({untraced, _}) -> ok;
stop({_, Run}) ->
    _ = witness:stop(Run),
    ok.
