-module(witness_run_maps).
-moduledoc """
Makes instrumentation maps of what a user gives: a specification file is one map, and so is each
monitor given by itself (`m:witness_instrument_map`). Says what an instrument must gather for them, and
names their properties.
""".

-export([of_spec/1, of_monitor/1, properties/2, filter/2, names/2, sources/1, source/2]).
-export([all_monitors/2, functions/2, over_all/1, entries/2, log_name/1, gathered/3, maps/3, replace/4, key/1]).

-export_type([key/0, property/0, sources/0, gathered/0, maps/0]).

-doc "The name of a property in verdicts and warnings. The version is 1 until specifications are replaced.".
-type key() :: {Spec :: binary(), Name :: binary() | undefined, Version :: pos_integer()}.

-doc """
What a source delivers: the filter, and the kinds of events; the properties over all processes; the signatures that it must
distinguish; whether groups are put in order; in how many of the first maps properties may be for groups (0: none is); and
whether the source is the native one.
""".
-type gathered() :: #{filter := witness_trace_filter:filter(), kinds := all | [witness_event:kind()],
                      all := [witness_instrument_map:entry()], names := [witness_trace_native:pattern()],
                      ordered := boolean(), groups := non_neg_integer(), native := boolean()}.

-doc "The maps of a run; those of specifications have the version of the specifications.".
-type maps() :: [{Version :: pos_integer() | fixed, witness_instrument_map:instrumentation()}].

-doc """
A property, the text of its signature patterns and what native code knows of them (`names`), whether it reads calls or returns of functions, and its actions, numbered as in the coverage that its monitors report
(`c:witness_monitor:coverage/1`).
""".
-type property() :: #{key := key(), signature := binary(), names => [witness_options:signature_pattern()],
                      among => [witness_options:signature_pattern()], functions := boolean(),
                      actions := [#{id := pos_integer(), line := pos_integer(), column := pos_integer(),
                                    text := binary(), decides := yes | no | undefined}]}.

-doc "Files of specifications with their lines, by the `spec` of their properties.".
-type sources() :: #{{Spec :: binary(), Version :: pos_integer()} => {File :: binary(), Lines :: tuple()}}.

-doc "What is gathered for these specifications; everything if any others may replace them.".
-spec gathered(witness_options:options(), [witness_spec:instrumentation_map()], witness_run_log:logging()) ->
    gathered().
gathered(#{monitors := Monitors, replaceable := Replaceable} = Options, Specs, Logging) ->
    Hidden = witness_run_log:monitors(Logging),
    Read = Monitors ++ Hidden,
    Filter = filter(Specs, Read),
    #{filter => case Replaceable of true -> Filter#{send := all, recv := all}; false -> Filter end,
      kinds => case Replaceable of true -> all; false -> kinds(Specs, Read) end,
      all => over_all(Specs),
      names => names(Specs, Monitors) ++ [{M, F, A, true, true} || {{M, F, A}, _} <- Hidden]
          ++ [{'_', '_', '_', false, false} || Replaceable],
      ordered => Replaceable orelse Hidden =/= [] orelse lists:any(fun has_group/1, Specs),
      groups => case lists:any(fun has_named_group/1, Specs) of true -> length(Specs); false -> 0 end,
      native => maps:get(source, Options, none) =:= native}.

-doc "The first maps of a run.".
-spec maps(witness_options:options(), [witness_spec:instrumentation_map()], witness_run_log:logging()) -> maps().
maps(#{monitors := Monitors}, Specs, Logging) ->
    [{1, of_spec(S)} || S <- Specs] ++ [{fixed, of_monitor(M)} || M <- Monitors]
        ++ [{fixed, Map} || Map <- witness_run_log:map(Logging)].

-doc """
The maps with the specifications of this version in place of the earlier ones. An error says what these need that is not
gathered. Maps keep their numbers, because groups that are read already refer to them.
""".
-spec replace([witness_spec:instrumentation_map()], Version :: pos_integer(), maps(), gathered()) ->
    {ok, maps()} | {error, messages | functions | signatures | groups | all}.
replace(Specs, Version, Maps, #{filter := Filter, names := Names, ordered := Ordered, native := IsNative} = Gathered) ->
    Needed = filter(Specs, []),
    maybe
        ok ?= require(all, over_all(Specs) =:= [] andalso maps:get(all, Gathered) =:= []),
        ok ?= require(messages, lists:all(fun(Kind) -> is_gathered(maps:get(Kind, Filter), maps:get(Kind, Needed)) end,
                                          [send, recv])),
        ok ?= require(functions, are_traced(maps:get(functions, Filter), maps:get(functions, Needed))),
        ok ?= require(signatures, not IsNative orelse lists:all(fun(Name) -> is_named(Name, Names) end,
                                                                names(Specs, []))),
        ok ?= require(groups, Ordered orelse IsNative orelse not lists:any(fun has_group/1, Specs)),
        {ok, [case Of of fixed -> {fixed, Map}; _ -> {Of, witness_instrument_map:retire(Map)} end || {Of, Map} <- Maps]
             ++ [{Version, of_spec(S, #{version => Version})} || S <- Specs]}
    end.

require(_, true) -> ok;
require(What, false) -> {error, What}.

is_gathered(all, _) -> true;
is_gathered(_, all) -> false;
is_gathered(Clauses, Needed) -> Needed -- Clauses =:= [].

are_traced(Traced, Needed) ->
    maps:fold(fun(Function, Kinds, AreAll) -> AreAll andalso Kinds -- maps:get(Function, Traced, []) =:= [] end, true, Needed).

is_named({M, F, A, Group, _}, Names) ->
    lists:any(fun({M1, F1, A1, Group1, _}) ->
                      lists:member(M1, ['_', M]) andalso lists:member(F1, ['_', F]) andalso lists:member(A1, ['_', A])
                          andalso (Group1 orelse not Group)
              end, Names).

-doc "The property that a monitor or verdict is of.".
-spec key(#{spec := binary(), name := binary() | undefined, _ => _}) -> key().
key(#{spec := Spec, name := Name} = Of) -> {Spec, Name, maps:get(version, Of, 1)}.

-doc "The properties over all processes.".
-spec over_all([witness_spec:instrumentation_map()]) -> [witness_instrument_map:entry()].
over_all(Specs) -> [entry(S, E) || S = #{entries := Entries} <- Specs, E = #{all := true} <- Entries].

has_group(#{entries := Entries}) -> lists:any(fun(#{group := Group, all := All}) -> Group orelse All end, Entries).

has_named_group(#{entries := Entries}) -> lists:any(fun(#{group := Group}) -> Group end, Entries).

-doc "The name of a log in errors.".
-spec log_name(witness_options:log()) -> binary().
log_name({replay, #{dir := Dir}}) -> log_name({recording, Dir});
log_name({Kind, File}) when Kind =:= file; Kind =:= recording ->
    case unicode:characters_to_binary(File) of
        Name when is_binary(Name) -> Name;
        _ -> ~"the log"
    end;
log_name(standard_input) -> ~"standard input".

-doc "The properties that are monitored, with their monitors.".
-spec entries([witness_spec:instrumentation_map()], [{witness_options:signature_pattern(), {module(), term()}}]) ->
    [witness_instrument_map:entry()].
entries(Specs, Monitors) ->
    [entry(S, E) || S = #{entries := Entries} <- Specs, E = #{action := monitor} <- Entries]
        ++ [monitor_entry(Monitor) || {_, Monitor} <- Monitors].

-spec of_spec(witness_spec:instrumentation_map()) -> witness_instrument_map:instrumentation().
of_spec(Map) -> of_spec(Map, #{}).

of_spec(Map = #{module := Module, entries := Entries}, Version) ->
    Compiled = #{Index => add_version(entry(Map, E), Version) || E = #{index := Index, all := false} <- Entries},
    fun(Signature) -> [maps:get(Index, Compiled) || Index <- matching(Signature, Module, Compiled)] end.

%% If an argument that is not known decides, the monitor is started, and ends inconclusive; nothing is left out of groups for that.
matching(Signature, Module, Compiled) ->
    case witness_event_signature:known(Signature) of
        {unknown, _, _, _} = Known ->
            Unsure = [Index || Index := _ <- Compiled, witness_monitor:is_unsure({Module, Index}, Known)],
            lists:usort((Module:match(Signature) -- Unsure) ++ [Index || Index <- Unsure, map_get(Index, Compiled) =/= none]);
        _ -> Module:match(Signature)
    end.

add_version(none, _) -> none;
add_version(Entry, Version) -> maps:merge(Entry, Version).

entry(_, #{action := none}) -> none;
entry(#{file := File, module := Module}, E = #{index := Index, name := Name, group := Group}) ->
    #{monitor => {Module, Index}, spec => spec(File, E), name => Name, group => Group}.

spec(File, #{line := Line}) -> <<File/binary, $:, (integer_to_binary(Line))/binary>>.

-spec of_monitor({witness_options:signature_pattern(), {module(), term()}}) ->
    witness_instrument_map:instrumentation().
of_monitor({{M, F, A}, Monitor}) ->
    Entry = monitor_entry(Monitor),
    fun({M1, F1, Args}) when (M =:= '_' orelse M =:= M1), (F =:= '_' orelse F =:= F1) ->
            case A =:= '_' orelse (is_list(Args) andalso A =:= length(Args)) of
                true -> [Entry];
                false -> []
            end;
       (_) -> []
    end.

monitor_entry(Monitor = {Module, _}) ->
    #{monitor => Monitor, spec => witness_check:spec(Module), name => undefined, group => false}.

-doc "All properties that may be monitored, in the order in which the user gave them.".
-spec properties([witness_spec:instrumentation_map()],
                 [{witness_options:signature_pattern(), {module(), term()}}]) -> [property()].
properties(Maps, Monitors) ->
    [#{key => {spec(File, E), Name, 1}, signature => Signature, names => maps:get(names, E, []), among => maps:get(among, E, []),
       functions => witness_monitor_alphabet:functions({Module, Index}) =/= [], actions => actions(Module, Index)}
     || #{file := File, module := Module, entries := Entries} <- Maps,
        E = #{action := monitor, index := Index, name := Name, signature := Signature} <- Entries]
    ++ [#{key => {witness_check:spec(Module), undefined, 1},
          signature => unicode:characters_to_binary(io_lib:format("~tw:~tw/~tw", [M, F, A])),
          names => [{M, F, A}],
          functions => witness_monitor_alphabet:functions({Module, Arg}) =/= [],
          actions => actions(Module, Arg)}
        || {{M, F, A}, {Module, Arg}} <- Monitors].

%% The description that a monitor gives of itself is for people: an error in it does not stop the run.
actions(Module, Arg) ->
    try
        true = erlang:function_exported(Module, coverage, 1),
        [A || A = #{id := Id, line := _, column := _, text := _, decides := _} <- Module:coverage(Arg),
              is_integer(Id), Id > 0]
    catch
        _:_ -> []
    end.

-doc "What a source has to deliver for all of these monitors together.".
-spec filter([witness_spec:instrumentation_map()],
             [{witness_options:signature_pattern(), {module(), term()}}]) -> witness_trace_filter:filter().
filter(Maps, Monitors) ->
    witness_trace_filter:union([witness_monitor_alphabet:of_monitor(Monitor) || Monitor <- all_monitors(Maps, Monitors)]).

-doc "The functions of which some of these monitors read calls or returns.".
-spec functions([witness_spec:instrumentation_map()], [{witness_options:signature_pattern(), {module(), term()}}]) -> [mfa()].
functions(Maps, Monitors) ->
    lists:usort(lists:flatmap(fun witness_monitor_alphabet:functions/1, all_monitors(Maps, Monitors))).

kinds(Maps, Monitors) ->
    Kinds = [witness_monitor_alphabet:kinds(Monitor) || Monitor <- all_monitors(Maps, Monitors)],
    case lists:member(all, Kinds) of
        true -> all;
        false -> lists:usort(lists:append(Kinds))
    end.

-doc "The monitors of all properties.".
-spec all_monitors([witness_spec:instrumentation_map()], [{witness_options:signature_pattern(), {module(), term()}}]) ->
    [{module(), term()}].
all_monitors(Maps, Monitors) ->
    [{Module, Index} || #{module := Module, entries := Entries} <- Maps, #{action := monitor, index := Index} <- Entries]
        ++ [M || {_, M} <- Monitors].

-doc """
The signatures that any specification or monitor names, including those with `none`. For each: whether a group may have it, and
whether a monitor that needs a process of its own may read it (`witness_trace_native:open/1`).
""".
-spec names([witness_spec:instrumentation_map()],
            [{witness_options:signature_pattern(), {module(), term()}}]) -> [witness_trace_native:pattern()].
names(Maps, Monitors) ->
    lists:usort([{M, F, A, Group, Timed} || #{module := Module, entries := Entries} <- Maps,
                                            #{names := Names, group := Group, index := Index} <- Entries,
                                            %% A shard has no clock for deadlines.
                                            Timed <- [witness_monitor:is_timed({Module, Index})],
                                            {M, F, A} <- Names]
                ++ [{M, F, A, false, not witness_monitor_safety:is_bounded(Module)}
                    || {{M, F, A}, {Module, _}} <- Monitors]).

-spec sources([witness_spec:instrumentation_map()]) -> sources().
sources(Maps) ->
    #{{spec(File, E), 1} => {File, Lines} || #{file := File, lines := Lines, entries := Entries} <- Maps, E <- Entries}.

-doc "The deciding place in the specification of a verdict, with the text of that line.".
-spec source(#{spec := binary(), info := witness_monitor:info(), _ => _}, sources()) -> witness:source() | undefined.
source(#{spec := Spec, info := #{line := Line} = Info} = Found, Sources) ->
    Key = {Spec, maps:get(version, Found, 1)},
    case Sources of
        #{Key := {File, Lines}} ->
            #{file => File, line => Line, column => maps:get(column, Info, undefined), text => element(Line, Lines)};
        #{} -> undefined
    end;
source(_, _) -> undefined.
