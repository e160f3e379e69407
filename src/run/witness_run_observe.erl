-module(witness_run_observe).
-moduledoc "Starts the instrument that the options of a run ask for: it observes a system, or reads a log.".

-export([start_link/4, clocks/1]).

-doc """
Starts the instrument of a run, which is the calling process (`m:witness_instrument`). An error of a log is text for people; the
others are those of `witness_run_inline:start_link/4`. The instrument notes the stop time.
""".
-spec start_link(witness_options:options(), [witness_spec:instrumentation_map()],
                 {witness_run_maps:maps(), witness_run_maps:gathered()}, witness_monitor_stop_time:stop_time()) ->
    {ok, witness_instrument:started()} | {error, unicode:chardata() | witness_run_inline:error()}.
start_link(Options, Specs, {VersionedMaps, Gathered}, StopTime) ->
    Maps = [Map || {_, Map} <- VersionedMaps],
    case Options of
        #{system := {log, Input}} -> start_log(Input, Options, Specs, Maps, Gathered);
        #{instrument := inline} -> start_inline(Options, Specs, Maps, Gathered);
        #{source := Source} ->
            Common = #{run => self(), maps => Maps, signatures => table(Options), looks => only_looks(Maps, Options),
                       stop_time => StopTime},
            {ok, start_link_source(Source, Options, Gathered, Common)}
    end.

%% Without monitors a run that is attached only looks at its processes. One that starts its system counts their births and exits.
only_looks([], #{system := System, instrument := outline, replaceable := false}) -> witness_run_attach:is_partial(System);
only_looks(_, _) -> false.

%% Those of a project.
table(#{signatures := Rows}) ->
    {ok, Table} = witness_event_wrapper:table(Rows),
    Table.

start_link_source(native, Options, #{filter := Filter, names := Names} = Gathered, Common) ->
    Given = maps:with([timestamps, memory, partition_memory, message_size, batch, flush], Options),
    Config = maps:merge(maps:with([explain, max_slices, slice_idle, memory, partition_memory, drain], Options),
                        maps:merge(Common, central_config(Options, Gathered))),
    {ok, Pid} = witness_outline_dispatcher:start_link(
                  Config#{source_options => Given#{names => Names, filter => Filter, signatures => table(Options),
                                                   shards => shard_count(Options), servers => has_servers(Options)}}),
    Session = witness_outline_dispatcher:session(Pid),
    {witness_outline_dispatcher, Pid, fun() -> witness_outline_dispatcher:counts(Session) end};
start_link_source(evm, Options = #{timestamps := Timestamps, system := System},
                  #{filter := Filter, ordered := Ordered, groups := Groups} = Gathered, Common) ->
    Counters = counters:new(2, [write_concurrency]),
    Held = atomics:new(1, []),
    %% Only a group has to put events in order.
    Stamps = case Timestamps orelse Ordered of
        true -> always;
        false -> handover
    end,
    Config = maps:merge(maps:with([explain, hold_back, memory, message_size, max_slices, slice_idle, drain], Options),
                        maps:merge(Common, central_config(Options, Gathered))),
    {ok, Pid} = witness_outline_pool:start_link(
                  Config#{source => witness_trace_evm, groups => Groups, attached => witness_run_attach:is_partial(System),
                          %% What is ordered over several processes must end for all of them at the same moment.
                          cut => not Ordered andalso not is_map_key(central, Config),
                          source_options => #{stamps => Stamps, filter => Filter, births => not maps:get(looks, Common, false)},
                          counters => Counters, held => Held}),
    {witness_outline_pool, Pid, fun() -> #{processes => counters:get(Counters, 1), events => counters:get(Counters, 2),
                                      held => atomics:get(Held, 1)} end}.

start_inline(Options = #{monitors := Monitors}, Specs, Maps, #{filter := #{functions := Functions}}) ->
    Run = self(),
    witness_run_inline:start_link(Options, Specs,
                               #{run => Run, maps => Maps, signatures => table(Options), functions => Functions,
                                 monitors => witness_run_maps:all_monitors(Specs, Monitors),
                                 names => [{M, F, A} || {M, F, A, _, _} <- witness_run_maps:names(Specs, Monitors)]},
                               fun() -> start_tree_watch(Run, Options) end).

%% The process that watches the life of the system has no monitors, and reads no messages. A whole node never ends: then the
%% process is there to count the processes of the node.
start_tree_watch(Run, #{source := native, scope := tree} = Options) ->
    {ok, Pid} = witness_inline_tree_watch:start_link(Run, #{names => [], memory => maps:get(memory, Options),
                                                            signatures => table(Options)}),
    {witness_inline_tree_watch, Pid, witness_inline_tree_watch:counts(Pid)};
start_tree_watch(Run, #{source := Source} = Options) ->
    Nothing = #{filter => witness_trace_filter:union([]), names => [], ordered => false, groups => 0, all => [], kinds => [],
                native => Source =:= native},
    start_link_source(Source, Options#{timestamps := false}, Nothing, #{run => Run, maps => [], signatures => table(Options)}).

has_servers(#{on_behalf := OnBehalf}) -> OnBehalf.

%% Shards of the native source: one for each scheduler; central instrumentation has none.
shard_count(#{instrument := central}) -> 0;
shard_count(_) -> erlang:system_info(schedulers_online).

central_config(#{instrument := central}, #{all := All, kinds := Kinds, names := Names}) ->
    #{central => All, kinds => Kinds, grouped => lists:any(fun({_, _, _, Group, _}) -> Group end, Names)};
central_config(_, _) -> #{}.

start_log(Input, Options = #{monitors := Monitors}, Specs, Maps, #{all := All} = Gathered) ->
    Properties = witness_run_maps:entries(Specs, Monitors),
    case check_deadlines(Input, [Entry || #{group := true} = Entry <- Properties] ++ All) of
        ok -> start_log(Input, Options, Specs, Maps, Properties, Gathered);
        {error, _} = Error -> Error
    end.

check_deadlines({replay, #{dir := Dir}}, Several) -> witness_run_replay:check_deadlines(Several, Dir);
check_deadlines(_, _) -> ok.

start_log(Input, Options = #{instrument := Mode, roots := Roots, monitors := Monitors}, Specs, Maps, Properties,
          #{all := All, filter := #{functions := Functions}}) ->
    Spread = erlang:system_info(schedulers_online),
    Feed = maps:with([format, follow, clock, block, max_line, max_atoms, skip_malformed, signatures], Options),
    Config = #{run => self(), file => witness_run_maps:log_name(Input), each => witness_run_inline:needs_each_verdict(Options, 0),
               feed => Feed#{input => log_input(Input, Functions, Options), parsers => Spread},
               log => (skew(Options))#{maps => Maps, signatures => table(Options),
                        properties => Properties, all => All,
                        wants => wants(Input, Specs, Monitors), attached => attached(Input), mode => Mode,
                        spread => Spread, roots => Roots},
               identity => identity(Options, Specs)},
    Given = maps:merge(maps:with([explain, max_slices, slice_idle, memory, save, from, on_read], Options), sort(Options)),
    case witness_offline:start_link(maps:merge(Given, Config)) of
        {ok, Pid, Counter} ->
            {ok, {witness_offline, Pid, fun() -> witness_offline:counts(Counter) end}};
        {error, _} = Error -> Error
    end.

skew(#{skew := Milliseconds} = Options) when is_integer(Milliseconds) ->
    (maps:with([clock], Options))#{skew => erlang:convert_time_unit(Milliseconds, millisecond, nanosecond)};
%% In a sorted log no time goes back.
skew(#{sort := _} = Options) -> (maps:with([clock], Options))#{skew => 0};
skew(_) -> #{}.

sort(#{sort := Milliseconds}) -> #{sort => erlang:convert_time_unit(Milliseconds, millisecond, nanosecond)};
sort(_) -> #{}.

%% Where a recording begins is chance, and no part of its processes was asked for.
attached({Recording, _}) when Recording =:= recording; Recording =:= replay -> ignored;
attached(_) -> monitored.

%% What recordings have is known, so the compiler has compared it.
wants({Recording, _}, _, _) when Recording =:= recording; Recording =:= replay -> [];
wants(_, Specs, Monitors) ->
    [Wanted || #{file := File, entries := Entries} <- Specs, #{line := Line} = Entry <- Entries,
               Wanted <- wants(Entry, [File, $:, integer_to_list(Line)])]
        ++ [{function, Function, [~"the monitor ", witness_event:format_term(Module, 200)]}
            || {_, {Module, _} = Monitor} <- Monitors, Function <- witness_monitor_alphabet:functions(Monitor)].

wants(#{receives := What, functions := Functions}, Property) ->
    [{What, Property} || What =/= any] ++ [{function, Function, Property} || Function <- Functions].

%% A recording is data; a run replays it only if the user asks for a replay.
log_input({replay, #{dir := Dir} = Replay}, Functions, Options) ->
    {events, Dir, witness_run_replay:events(maps:merge((maps:with([signatures], Options))#{functions => Functions}, Replay))};
log_input(Input, _, _) -> Input.

-doc "By how much the clocks of a log may differ, for the compiler of specifications.".
-spec clocks(#{clocks := non_neg_integer(), _ => _}) -> #{clocks := non_neg_integer()}.
clocks(#{clocks := Milliseconds}) -> #{clocks => erlang:convert_time_unit(Milliseconds, millisecond, nanosecond)}.

%% What a saved position depends on: the compiled code of specifications, with the records that they include, the code of
%% other monitors, and their limits. It is computed only if needed.
identity(Options = #{monitors := Monitors}, Specs) when is_map_key(save, Options); is_map_key(from, Options) ->
    Compile = maps:merge(maps:with([include, max_obligations, max_state], Options), clocks(Options)),
    Code = [begin
                {ok, Text} = witness_spec:to_erlang(File, Compile),
                unicode:characters_to_binary(Text)
            end || #{file := File} <- Specs],
    Handwritten = [{Pattern, Monitor, Module:module_info(md5)} || {Pattern, {Module, _} = Monitor} <- Monitors],
    Bounds = maps:with([instrument, explain, max_slices, slice_idle, roots, format, sort, skip_malformed, signatures], Options),
    erlang:md5(term_to_binary({Code, Handwritten, Bounds}, [deterministic]));
identity(_, _) -> <<>>.
