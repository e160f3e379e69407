-module(witness_search_monitors).
-moduledoc """
The monitors of a search: those of an offline run (`m:witness_offline_core`), as data in the scheduler. They read each event when it
happens, so a run ends with the step that violates a property.

The events are those of a recording that has the contents of messages: `recv` is a message that the process takes.
""".

-export([compile/2, functions/1, load/2, properties/1, new/1, read/2, is_wanted/2, taken/1, add_taken/2, coverage/3]).

-export_type([object/0, compiled/0, monitors/0, taken/0]).

-type object() :: {witness_spec:instrumentation_map(), binary()}.

-type compiled() :: none | #{log := witness_offline_core:config(), properties := [witness_run_maps:property()],
                             alphabets := [witness_monitor_alphabet:compiled()],
                             specs := #{non_neg_integer() => witness_monitor_machine:prepared()}}.

-doc "The properties that have had a monitor, by their number, each with the bits of the actions that were taken.".
-type taken() :: #{non_neg_integer() => non_neg_integer()}.

-opaque monitors() :: none | {witness_offline_core:state(), Lines :: non_neg_integer(), taken(),
                              #{witness_offline_core:shard() =>
                                    {witness_monitor_machine:prepared(), witness_offline_shard:monitors()}}}.

%% Steps of explanations, which are made of the recording.
-define(EXPLAIN_STEPS, 1).

-doc "Compiles specifications. The result is for `load/2`, in another VM, which needs no compiler then.".
-spec compile([file:filename()], witness_spec:options()) ->
    {ok, [object()], [witness_spec:diagnostic()]} | {error, witness_spec:error()}.
compile(Files, Options) -> compile(lists:enumerate(Files), Options, [], []).

compile([{Number, File} | Files], Options, Objects, Diagnostics) ->
    case witness_spec:to_object(File, list_to_atom("witness_search_spec_" ++ integer_to_list(Number)), Options) of
        {ok, Object, More} -> compile(Files, Options, [Object | Objects], [More | Diagnostics]);
        {error, _} = Error -> Error
    end;
compile([], _, Objects, Diagnostics) -> {ok, lists:reverse(Objects), lists:append(lists:reverse(Diagnostics))}.

-doc "The functions of which the specifications have calls or returns. Both are reported of each.".
-spec functions([object()]) -> witness_trace_filter:functions().
functions(Objects) ->
    maps:from_keys([Function || {#{entries := Entries}, _} <- Objects, #{functions := Functions} <- Entries, Function <- Functions],
                   [call, return]).

-doc "Loads what was compiled. `Rows`: those for signatures.".
-spec load([object()], Rows :: witness_event_wrapper:table()) -> compiled().
load([], _) -> none;
load(Objects, Rows) ->
    [{module, Module} = code:load_binary(Module, "", Object) || {#{module := Module}, Object} <- Objects],
    Maps = [Map || {Map, _} <- Objects],
    Properties = witness_run_maps:entries(Maps, []),
    #{log => #{maps => [witness_run_maps:of_spec(Map) || Map <- Maps], properties => Properties,
               all => witness_run_maps:over_all(Maps), mode => outline, spread => 1, roots => auto, signatures => Rows},
      properties => witness_run_maps:properties(Maps, []),
      alphabets => [witness_monitor_alphabet:compile(witness_monitor_alphabet:of_monitor(Monitor))
                    || #{monitor := Monitor} <- Properties],
      specs => #{Number => witness_monitor_machine:prepare(#{monitor => Monitor, explain => ?EXPLAIN_STEPS})
                 || {Number, #{monitor := Monitor}} <- lists:enumerate(0, Properties)}}.

-doc "What is monitored, in the order of the specifications.".
-spec properties(compiled()) -> [witness_run_maps:property()].
properties(none) -> [];
properties(#{properties := Properties}) -> Properties.

-doc "The monitors before the first event.".
-spec new(compiled()) -> monitors().
new(none) -> none;
new(#{log := Log, specs := Specs}) ->
    {witness_offline_core:new(Log), 0, #{}, #{Shard => {Spec, witness_offline_shard:none(Spec)} || Shard := Spec <- Specs}}.

-doc "Whether a monitor may match one of the events that a function makes. Without monitors each step is of interest.".
-spec is_wanted(fun(() -> [witness_event:item()]), compiled()) -> boolean().
is_wanted(_, none) -> true;
is_wanted(Make, #{alphabets := Alphabets}) ->
    lists:any(fun(Event) ->
        lists:any(fun(Alphabet) -> witness_monitor_alphabet:slice(Event, Alphabet) =:= all end, Alphabets)
    end, Make()).

-doc "Reads the events that a function makes, in their order; without monitors it makes none. `violated`: which property.".
-spec read(fun(() -> [witness_event:item()]), monitors()) ->
    {ok, monitors()} | {violated, Spec :: binary(), Name :: binary() | undefined}.
read(_, none) -> {ok, none};
read(Make, Monitors) -> read_events(Make(), Monitors).

read_events([], Monitors) -> {ok, Monitors};
read_events(Events, {Core, Line, Marks, Shards}) ->
    {ok, Read} = witness_offline_core:items(lists:enumerate(Events), Line, Core),
    {#{operations := Operations, started := New}, Taken} = witness_offline_core:take(Read),
    Known = lists:foldl(fun({_, Shard, _}, M) -> mark(Shard, 0, M) end, Marks, New),
    perform(lists:sort(maps:to_list(Operations)), Taken, Line + length(Events), Known, Shards).

perform([{Shard, Operations} | More], Core, Line, Marks, Shards) ->
    #{Shard := {Spec, Machines}} = Shards,
    {Told, _, Machines1} = witness_offline_shard:perform(Operations, Machines, Spec),
    Marked = take(Shard, Marks, Shards),
    case [Outcome || {_, _, _, #{verdict := no} = Outcome} <- Told] of
        [] -> perform(More, Core, Line, Marked, Shards#{Shard := {Spec, Machines1}});
        _ ->
            #{spec := Of, name := Name} = witness_offline_core:property(Shard, Core),
            {violated, Of, Name}
    end;
perform([], Core, Line, Marks, Shards) -> {ok, {Core, Line, Marks, Shards}}.

%% The marks are in the dictionary of this process, and do not say of which property they are. Those of a single one stay there.
take(_, Marks, Shards) when map_size(Shards) =:= 1 -> Marks;
take(Shard, Marks, _) -> mark(Shard, witness_monitor_machine:take_marks(), Marks).

mark(Shard, Mask, Marks) -> maps:update_with(Shard, fun(Before) -> Before bor Mask end, Mask, Marks).

-doc "Which properties have had a monitor, and what these have matched. For the process that has read the events.".
-spec taken(monitors()) -> taken().
taken(none) -> #{};
taken({_, _, #{0 := _} = Marks, Shards}) when map_size(Shards) =:= 1 -> mark(0, witness_monitor_machine:read_marks(), Marks);
taken({_, _, Marks, _}) -> Marks.

-doc "Both.".
-spec add_taken(taken(), taken()) -> taken().
add_taken(One, Two) -> maps:fold(fun mark/3, One, Two).

-doc """
What the monitors of all runs have matched, as in `t:witness:summary/0`; warnings about properties that have had no monitor, and about those
of which no action has matched; and whether no property has had a monitor. `Seen`: the signatures of processes that there were.
""".
-spec coverage([witness_run_maps:property()], taken(), Seen :: [witness_instrument:sight()]) ->
    #{coverage := [map()], warnings := [witness:warning()], unmonitored := boolean()}.
coverage(Properties, Taken, Seen) ->
    Tally = lists:foldl(fun({Number, #{key := Key}}, T) ->
        case Taken of
            #{Number := Mask} -> witness_run_tally:add_coverage(Key, Mask, witness_run_tally:add_monitor(Key, T));
            #{} -> T
        end
    end, witness_run_tally:new(Properties), lists:enumerate(0, Properties)),
    #{coverage := Coverage} = witness_run_tally:summary(Tally),
    #{coverage => Coverage, unmonitored => Properties =/= [] andalso map_size(Taken) =:= 0,
      warnings => witness_run_tally:warnings(Tally, fun() -> Seen end) ++ witness_run_tally:unmatched(Tally)}.
