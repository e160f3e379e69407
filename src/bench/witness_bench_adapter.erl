-module(witness_bench_adapter).
-moduledoc """
A mode of a benchmark: the tool that observes the system while it is measured. `m:witness_bench_witness` has the modes of
Witness; with this behaviour another tool can be compared with them.

An adapter starts the system under its tool, returns the first process, waits until the tool has analysed
everything, and returns its findings. Everything else, load, measures, samples and the order of the benchmarks, is the
same for all modes. A benchmark runs in a fresh VM, so an adapter may load, patch and trace what it wants, and need not
clean up after a failure.

```erlang
-module(my_tool_bench).
-behaviour(witness_bench_adapter).
-export([start/2, await/1, stop/1]).

start(_, #{system := {M, F, Args}, monitors := Monitors}) ->
    {ok, Tool} = my_tool:start([{Signature, Monitor} || {Signature, Monitor} <- Monitors]),
    {ok, Tool, my_tool:spawn(Tool, M, F, Args)}.

await(Tool) ->
    #{accepted := Yes, rejected := No, events := Events} = my_tool:finish(Tool),
    {ok, #{events => Events, gaps => 0, verdicts => #{yes => Yes, no => No, inconclusive => 0}}}.

stop(Tool) -> my_tool:stop(Tool).
```

The function must be the process's own first one: `spawn(M, F, Args)`, or the tool's equivalent. The
monitors are callback modules (`m:witness_monitor`). A tool with a language of its own uses them as it can: it calls
them from an automaton of its own, say, or has monitors that do the same. With the analysis `none` they only
count. `verdicts` are those of its monitors. The models do what the monitors check, so a `no` means a wrong trace, and makes the
benchmark an error. If no event is missing (`gaps` is 0), the sum must be the number of the processes
that have these signatures; an adapter that does not know it leaves `verdicts` out. Then it is not known whether the traces were
sound: the result does not say so, and its field `sound` is empty.

The result of a callback is checked: anything that is not described here makes the benchmark an error, with the
returned term.

Measurements must see the system alone: the tool must send no message to the model's processes.
""".

-export([check/1, started/2, found/2]).

-export_type([setting/0, facts/0, failure/0, probed/0]).

-doc """
The system's first function, the modules that its processes run in, which monitors read which processes, and
whether events need the time at which they occurred. A monitor's verdict may be passed to `verdict` with its `info`: the
analysis of idle times needs that, and a `no` or a crash is reported to people with it. `options`: what the user gives for a
mode, unchanged.
""".
-type setting() :: #{system := {module(), atom(), [term()]}, modules := [module()],
                     monitors := [{mfa(), {Monitor :: module(), Arg :: term()}}], timestamps := boolean(),
                     verdict := fun((yes | no | inconclusive | crashed, Info :: term()) -> ok), options := map()}.

-doc """
The findings of a tool: events that it has seen, monitors that miss some, verdicts; `incomplete`: it has reported that it does
not see everything, so that processes may have no monitor; how many tracers were alive at most; `trouble`: text for
people.
""".
-type facts() :: #{events := non_neg_integer(), gaps := non_neg_integer(),
                   verdicts => #{yes := non_neg_integer(), no := non_neg_integer(), inconclusive := non_neg_integer()},
                   incomplete => boolean(), tracers => non_neg_integer(), trouble => [binary()]}.

-doc "Why a tool has no result: a text for people, or the reason of the system's crash.".
-type failure() :: {mode, binary()} | {system, Reason :: term()}.

-doc "The progress while the system runs.".
-type probed() :: witness_bench_collector:probed().

-doc """
Starts the system under observation. Returns when the first process exists, with that process. An unknown
mode, like every other problem, is an error, reported to people.
""".
-callback start(Mode :: term(), setting()) -> {ok, State :: term(), First :: pid()} | {error, unicode:chardata()}.

-doc """
Called after the system has ended, in the process that called `start/2`. Waits until the last event is analysed and the last
monitor done. `{system, Reason}`: the system has crashed; this is needed only if it ended before `start/2` returned.
""".
-callback await(State :: term()) -> {ok, facts()} | {error, unicode:chardata() | {system, Reason :: term()}}.

-doc "Returns the progress. Called periodically, in another process; it may take its time.".
-callback probe(State :: term()) -> probed().

-doc """
Ends the tool. Called after `await/1`, and when the system or the tool has failed. It is not called if the process that called
`start/2` is killed: what has to end then is linked to that process.
""".
-callback stop(State :: term()) -> term().

-optional_callbacks([probe/1]).

-doc "Whether a module is an adapter.".
-spec check(module()) -> ok | {error, unicode:chardata()}.
check(Module) ->
    case code:ensure_loaded(Module) of
        {module, Module} ->
            case [FA || FA = {F, A} <- [{start, 2}, {await, 1}, {stop, 1}], not erlang:function_exported(Module, F, A)] of
                [] -> ok;
                Missing ->
                    {error, io_lib:format("the module ~ts is no adapter: it does not export ~ts (see witness_bench_adapter)",
                                          [Module, lists:join(", ", [io_lib:format("~ts/~w", [F, A]) || {F, A} <- Missing])])}
            end;
        {error, Reason} ->
            {error, io_lib:format("the adapter ~ts cannot be loaded (~tp); is its folder on the code path (--pa)?",
                                  [Module, Reason])}
    end.

-doc "Checks the result of `start/2` of a module.".
-spec started(module(), term()) -> {ok, State :: term(), First :: pid()} | {error, failure()}.
started(_, {ok, State, First}) when is_pid(First) -> {ok, State, First};
started(_, {error, Reason}) -> {error, failure(Reason)};
started(Module, Other) ->
    {error, returned(Module, "start/2", Other, "{ok, State, First}, a process, or {error, Text}")}.

-doc "Checks the result of `await/1` of a module.".
-spec found(module(), term()) -> {ok, facts()} | {error, failure()}.
found(Module, {ok, #{} = Facts}) ->
    Checks = #{events => fun is_count/1, gaps => fun is_count/1, tracers => fun is_count/1, verdicts => fun is_verdicts/1,
               incomplete => fun is_boolean/1, trouble => fun is_trouble/1},
    Needed = [{Key, missing} || Key <- [events, gaps], not is_map_key(Key, Facts)],
    Wrong = [{Key, Value} || Key := Value <- maps:iterator(Facts, ordered),
                             not is_map_key(Key, Checks) orelse not (map_get(Key, Checks))(Value)],
    case Needed ++ Wrong of
        [] -> {ok, Facts};
        [{Key, missing} | _] -> {error, wrong(Module, ["without ", atom_to_binary(Key)])};
        [{Key, Value} | _] -> {error, wrong(Module, [term(Key), " => ", term(Value)])}
    end;
found(_, {error, Reason}) -> {error, failure(Reason)};
found(Module, Other) -> {error, returned(Module, "await/1", Other, "{ok, Facts} or {error, Text}")}.

is_count(N) -> is_integer(N) andalso N >= 0.

is_verdicts(#{yes := Yes, no := No, inconclusive := Undecided} = Verdicts) when map_size(Verdicts) =:= 3 ->
    is_count(Yes) andalso is_count(No) andalso is_count(Undecided);
is_verdicts(_) -> false.

is_trouble(Texts) when length(Texts) >= 0 -> lists:all(fun is_text/1, Texts);
is_trouble(_) -> false.

is_text(Text) -> is_binary(Text) andalso is_binary(unicode:characters_to_binary(Text)).

wrong(Module, What) ->
    {mode, unicode:characters_to_binary([atom_to_binary(Module), ":await/1 returned facts ", What,
                                         "; see the type facts() of witness_bench_adapter"])}.

returned(Module, Function, Value, Expected) ->
    {mode, unicode:characters_to_binary([atom_to_binary(Module), $:, Function, " returned ", term(Value),
                                         "; expected ", Expected])}.

failure({system, _} = Crash) -> Crash;
failure(Reason) ->
    try unicode:characters_to_binary(Reason) of
        Text when is_binary(Text) -> {mode, Text};
        _ -> {mode, said(Reason)}
    catch
        error:badarg -> {mode, said(Reason)}
    end.

said(Reason) -> unicode:characters_to_binary(["the tool says: ", term(Reason)]).

term(Term) -> witness_event:format_term(Term, 400).
