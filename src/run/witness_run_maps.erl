-module(witness_run_maps).
-moduledoc """
Makes instrumentation maps of what a user gives: a specification file is one map, and so is each
monitor given by itself (`m:witness_instrument_map`). Starts the instrumentation for these maps,
which depends on the source of events.
""".

-export([start_link/4, of_spec/1, of_monitor/1, properties/2, filter/2, names/2, sources/1, source/2, own/1]).
-export([log_name/1, gathered/3, maps/3, replaced/4, key/1]).

-export_type([key/0, property/0, sources/0, counts/0, gathered/0, maps/0]).

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
A property, the text of its signature patterns, and its actions, numbered as in the coverage that its monitors report
(`c:witness_monitor:coverage/1`).
""".
-type property() :: #{key := key(), signature := binary(),
                      actions := [#{id := pos_integer(), line := pos_integer(), column := pos_integer(),
                                    text := binary(), decides := yes | no | undefined}]}.

-doc "Files of specifications with their lines, by the `spec` of their properties.".
-type sources() :: #{{Spec :: binary(), Version :: pos_integer()} => {File :: binary(), Lines :: tuple()}}.

-doc """
Observed so far: processes, events, and the number of live processes that the run waits for. For a log also the
lines and bytes that were read, and its size in bytes.
""".
-type counts() :: #{processes := non_neg_integer(), events := non_neg_integer(), held := non_neg_integer(),
                    lines => non_neg_integer(), read => non_neg_integer(), size => pos_integer() | unknown}.

-doc """
Starts the instrumentation of a run, which is the calling process. Returns its module (all have the functions of
`m:witness_outline_pool`), its process, and a function that counts, also when the process has ended. An error is text for people.
""".
-spec start_link(witness_options:options(), [witness_spec:instrumentation_map()], maps(), gathered()) ->
    {ok, {module(), pid(), fun(() -> counts())}} | {error, unicode:chardata()}.
start_link(Options, Specs, VersionedMaps, Gathered) ->
    Maps = [Map || {_, Map} <- VersionedMaps],
    case Options of
        #{system := {log, Input}} -> start_log(Input, Options, Specs, Maps);
        #{instrument := inline} -> start_inline(Options, Specs, Maps);
        #{source := Source} -> {ok, start_link_source(Source, Options, Gathered, #{run => self(), maps => Maps})}
    end.

-doc "What is gathered for these specifications; everything if any others may replace them.".
-spec gathered(witness_options:options(), [witness_spec:instrumentation_map()], witness_run_log:logging()) ->
    gathered().
gathered(#{monitors := Monitors, replaceable := Replaceable} = Options, Specs, Logging) ->
    Hidden = witness_run_log:monitors(Logging),
    Read = Monitors ++ Hidden,
    #{filter => case Replaceable of true -> witness_trace_filter:none(); false -> filter(Specs, Read) end,
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
-spec replaced([witness_spec:instrumentation_map()], Version :: pos_integer(), maps(), gathered()) ->
    {ok, maps()} | {error, messages | signatures | groups | all}.
replaced(Specs, Version, Maps, #{filter := Filter, names := Names, ordered := Ordered, native := IsNative} = Gathered) ->
    Needed = filter(Specs, []),
    maybe
        ok ?= needs(all, over_all(Specs) =:= [] andalso maps:get(all, Gathered) =:= []),
        ok ?= needs(messages, lists:all(fun(Kind) -> covers(maps:get(Kind, Filter), maps:get(Kind, Needed)) end,
                                        [send, recv])),
        ok ?= needs(signatures, not IsNative orelse lists:all(fun(Name) -> is_named(Name, Names) end,
                                                              names(Specs, []))),
        ok ?= needs(groups, Ordered orelse IsNative orelse not lists:any(fun has_group/1, Specs)),
        {ok, [case Of of fixed -> {fixed, Map}; _ -> {Of, witness_instrument_map:retire(Map)} end || {Of, Map} <- Maps]
             ++ [{Version, of_spec(S, #{version => Version})} || S <- Specs]}
    end.

needs(_, true) -> ok;
needs(What, false) -> {error, What}.

covers(all, _) -> true;
covers(_, all) -> false;
covers(Clauses, Needed) -> Needed -- Clauses =:= [].

is_named({M, F, A, Group, _}, Names) ->
    lists:any(fun({M1, F1, A1, Group1, _}) ->
                      lists:member(M1, ['_', M]) andalso lists:member(F1, ['_', F]) andalso lists:member(A1, ['_', A])
                          andalso (Group1 orelse not Group)
              end, Names).

-doc "The property that a monitor or verdict is of.".
-spec key(#{spec := binary(), name := binary() | undefined, _ => _}) -> key().
key(#{spec := Spec, name := Name} = Of) -> {Spec, Name, maps:get(version, Of, 1)}.

start_link_source(native, Options, #{filter := Filter, names := Names} = Gathered, Common) ->
    Given = maps:with([timestamps, memory, partition_memory, message_size, batch, flush], Options),
    Config = maps:merge(maps:with([explain, max_slices, slice_idle, memory, partition_memory, drain], Options),
                        maps:merge(Common, central(Options, Gathered))),
    {ok, Pid} = witness_outline_dispatcher:start_link(
                  Config#{source_options => Given#{names => Names, filter => Filter,
                                                   shards => shards(Options)}}),
    Session = witness_outline_dispatcher:session(Pid),
    {witness_outline_dispatcher, Pid, fun() -> witness_outline_dispatcher:counts(Session) end};
start_link_source(evm, Options = #{timestamps := Timestamps},
                  #{filter := Filter, ordered := Ordered, groups := Groups} = Gathered, Common) ->
    Counters = counters:new(2, [write_concurrency]),
    Held = atomics:new(1, []),
    %% Only a group has to put events in order.
    Stamps = case Timestamps orelse Ordered of
        true -> always;
        false -> handover
    end,
    Config = maps:merge(maps:with([explain, hold_back, memory, message_size, max_slices, slice_idle, drain], Options),
                        maps:merge(Common, central(Options, Gathered))),
    {ok, Pid} = witness_outline_pool:start_link(
                  Config#{source => witness_trace_evm, groups => Groups, source_options => #{stamps => Stamps, filter => Filter},
                          counters => Counters, held => Held}),
    {witness_outline_pool, Pid, fun() -> #{processes => counters:get(Counters, 1), events => counters:get(Counters, 2),
                                      held => atomics:get(Held, 1)} end}.

start_inline(Options = #{monitors := Monitors}, Specs, Maps) ->
    Run = self(),
    witness_run_inline:start_link(Options, Specs,
                               #{run => Run, maps => Maps, monitors => all_monitors(Specs, Monitors),
                                 names => [{M, F, A} || {M, F, A, _, _} <- names(Specs, Monitors)]},
                               fun() -> start_life(Run, Options) end).

%% The process that watches the life of the system has no monitors, and reads no messages. A whole node never ends: then the
%% process is there to count the processes of the node.
start_life(Run, #{source := native, scope := tree} = Options) ->
    {ok, Pid} = witness_inline_tree_watch:start_link(Run, #{names => [], memory => maps:get(memory, Options)}),
    {witness_inline_tree_watch, Pid, witness_inline_tree_watch:counts(Pid)};
start_life(Run, #{source := Source} = Options) ->
    Nothing = #{filter => witness_trace_filter:union([]), names => [], ordered => false, groups => 0, all => [], kinds => [],
                native => Source =:= native},
    start_link_source(Source, Options#{timestamps := false}, Nothing, #{run => Run, maps => []}).

%% Shards of the native source: one for each scheduler; central instrumentation has none.
shards(#{instrument := central}) -> 0;
shards(_) -> erlang:system_info(schedulers_online).

central(#{instrument := central}, #{all := All, kinds := Kinds, names := Names}) ->
    #{central => All, kinds => Kinds, grouped => lists:any(fun({_, _, _, Group, _}) -> Group end, Names)};
central(_, _) -> #{}.

%% Properties over all processes.
over_all(Specs) -> [entry(S, E) || S = #{entries := Entries} <- Specs, E = #{all := true} <- Entries].

has_group(#{entries := Entries}) -> lists:any(fun(#{group := Group, all := All}) -> Group orelse All end, Entries).

has_named_group(#{entries := Entries}) -> lists:any(fun(#{group := Group}) -> Group end, Entries).

start_log(Input, Options = #{instrument := Mode, roots := Roots, monitors := Monitors}, Specs, Maps) ->
    Spread = erlang:system_info(schedulers_online),
    Feed = maps:with([format, follow, block, max_line, max_atoms, skip_malformed], Options),
    Properties = [entry(S, E) || S = #{entries := Entries} <- Specs, E = #{action := monitor} <- Entries]
        ++ [monitor_entry(Monitor) || {_, Monitor} <- Monitors],
    Config = #{run => self(), file => log_name(Input), each => witness_run_inline:is_each_told(Options, 0), feed => Feed#{input => input(Input), parsers => Spread},
               log => #{maps => Maps, properties => Properties, all => over_all(Specs), mode => Mode, spread => Spread, roots => Roots},
               identity => identity(Options, Specs)},
    Given = maps:with([explain, max_slices, slice_idle, memory, save, from], Options),
    case witness_offline:start_link(maps:merge(Given, Config)) of
        {ok, Pid, Counter} ->
            {ok, {witness_offline, Pid, fun() -> witness_offline:counts(Counter) end}};
        {error, _} = Error -> Error
    end.

%% A recording is data; a run replays it only if the user asks for a replay.
input({replay, #{dir := Dir} = Replay}) -> {events, Dir, witness_run_replay:events(Replay)};
input(Input) -> Input.

%% What a saved position depends on: the compiled code of specifications, with the records that they include, the code of
%% other monitors, and their limits. It is computed only if needed.
identity(Options = #{monitors := Monitors}, Specs) when is_map_key(save, Options); is_map_key(from, Options) ->
    Compile = maps:with([include, max_obligations], Options),
    Code = [begin
                {ok, Text} = witness_spec:to_erlang(File, Compile),
                unicode:characters_to_binary(Text)
            end || #{file := File} <- Specs],
    Handwritten = [{Pattern, Monitor, Module:module_info(md5)} || {Pattern, {Module, _} = Monitor} <- Monitors],
    Bounds = maps:with([instrument, explain, max_slices, slice_idle, roots, format, skip_malformed], Options),
    erlang:md5(term_to_binary({Code, Handwritten, Bounds}, [deterministic]));
identity(_, _) -> <<>>.

-doc "The name of a log in errors.".
-spec log_name(witness_options:log()) -> binary().
log_name({replay, #{dir := Dir}}) -> log_name({recording, Dir});
log_name({Kind, File}) when Kind =:= file; Kind =:= recording ->
    case unicode:characters_to_binary(File) of
        Name when is_binary(Name) -> Name;
        _ -> ~"the log"
    end;
log_name(standard_input) -> ~"standard input".

-spec of_spec(witness_spec:instrumentation_map()) -> witness_instrument_map:instrumentation().
of_spec(Map) -> of_spec(Map, #{}).

of_spec(Map = #{module := Module, entries := Entries}, Version) ->
    Compiled = #{Index => versioned(entry(Map, E), Version) || E = #{index := Index, all := false} <- Entries},
    fun(Signature) -> [maps:get(Index, Compiled) || Index <- Module:match(Signature)] end.

versioned(none, _) -> none;
versioned(Entry, Version) -> maps:merge(Entry, Version).

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
    #{monitor => Monitor, spec => atom_to_binary(Module), name => undefined, group => false}.

-doc "All properties that may be monitored, in the order in which the user gave them.".
-spec properties([witness_spec:instrumentation_map()],
                 [{witness_options:signature_pattern(), {module(), term()}}]) -> [property()].
properties(Maps, Monitors) ->
    [#{key => {spec(File, E), Name, 1}, signature => Signature, actions => actions(Module, Index)}
     || #{file := File, module := Module, entries := Entries} <- Maps,
        E = #{action := monitor, index := Index, name := Name, signature := Signature} <- Entries]
    ++ [#{key => {atom_to_binary(Module), undefined, 1},
          signature => unicode:characters_to_binary(io_lib:format("~tw:~tw/~tw", [M, F, A])),
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

kinds(Maps, Monitors) ->
    Kinds = [witness_monitor_alphabet:kinds(Monitor) || Monitor <- all_monitors(Maps, Monitors)],
    case lists:member(all, Kinds) of
        true -> all;
        false -> lists:usort(lists:append(Kinds))
    end.

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
    lists:usort([{M, F, A, Group, false} || #{entries := Entries} <- Maps, #{names := Names, group := Group} <- Entries,
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

-doc """
Whether a process belongs to Witness: it runs a module of this application, whatever the modules are called here,
or it is one of the named processes. They are never observed.
""".
-spec own(#{unobserved := [pid()], _ => _}) -> fun((pid()) -> boolean()).
own(#{unobserved := Unobserved} = Options) ->
    Modules = case Options of
        #{modules := Here} -> Here;
        #{} ->
            {ok, Installed} = application:get_key(witness, modules),
            Installed
    end,
    fun(P) ->
            Calls = [proc_lib:translate_initial_call(P) | [MFA || {_, MFA} <- [process_info(P, initial_call)]]],
            lists:member(P, Unobserved)
                orelse lists:any(fun(Call) -> lists:member(module(Call), Modules) end, Calls)
    end.

module({supervisor, M, _}) -> M;
module({M, _, _}) -> M.
