-module(witness_instrumentation).
-moduledoc """
What a user gives, as instrumentation maps: a specification file is one map, and so is each
monitor given by itself (`m:witness_outline_map`); and the instrumentation that they are
given to, which depends on the source of events.
""".

-export([start_link/2, of_spec/1, of_monitor/1, properties/2, filter/2, names/2, sources/1, source/2, own/1]).

-export_type([key/0, property/0, sources/0, counts/0]).

-doc "Names a property in verdicts and warnings.".
-type key() :: {Spec :: binary(), Name :: binary() | undefined}.

-doc """
A property, the text of its signature patterns, and its actions, numbered as in the coverage that its monitors report
(`c:witness_monitor:coverage/1`).
""".
-type property() :: #{key := key(), signature := binary(),
                      actions := [#{id := pos_integer(), line := pos_integer(), column := pos_integer(),
                                    text := binary(), decides := yes | no | undefined}]}.

-doc "Files of specifications with their lines, by the `spec` of their properties.".
-type sources() :: #{Spec :: binary() => {File :: binary(), Lines :: tuple()}}.

-doc "What was seen so far: processes, events, and processes that are alive of those that the run waits for.".
-type counts() :: #{processes := non_neg_integer(), events := non_neg_integer(), held := non_neg_integer()}.

-doc """
Starts the instrumentation of a run, which is the calling process: the module that it is (all have the functions of
`m:witness_outline`), its process, and what counts for it, also when it has ended.
""".
-spec start_link(witness_options:options(), [witness_spec:instrumentation_map()]) ->
    {module(), pid(), fun(() -> counts())}.
start_link(Options = #{source := Source, monitors := Monitors}, Specs) ->
    start_link(Source, Options, Specs,
               #{run => self(), filter => filter(Specs, Monitors),
                 maps => [of_spec(S) || S <- Specs] ++ [of_monitor(M) || M <- Monitors]}).

start_link(native, Options = #{monitors := Monitors}, Specs, #{filter := Filter} = Common) ->
    Given = maps:with([timestamps, memory, partition_memory, message_size, batch, flush], Options),
    Config = maps:merge(maps:with([explain, max_slices, partition_memory], Options), maps:without([filter], Common)),
    {ok, Pid} = witness_outline_births:start_link(
                  Config#{source_options => Given#{names => names(Specs, Monitors), filter => Filter}}),
    Session = witness_outline_births:session(Pid),
    {witness_outline_births, Pid, fun() -> witness_outline_births:counts(Session) end};
start_link(evm, Options = #{timestamps := Timestamps}, Specs, #{filter := Filter} = Common) ->
    Counters = counters:new(2, [write_concurrency]),
    Held = atomics:new(1, []),
    %% Only a group has to put events in order.
    Stamps = case Timestamps orelse lists:any(fun has_group/1, Specs) of
        true -> always;
        false -> handover
    end,
    Config = maps:merge(maps:with([explain, hold_back, memory, max_slices], Options), maps:without([filter], Common)),
    {ok, Pid} = witness_outline:start_link(
                  Config#{source => witness_trace_evm, source_options => #{stamps => Stamps, filter => Filter},
                          counters => Counters, held => Held}),
    {witness_outline, Pid, fun() -> #{processes => counters:get(Counters, 1), events => counters:get(Counters, 2),
                                      held => atomics:get(Held, 1)} end}.

has_group(#{entries := Entries}) -> lists:any(fun(#{group := Group}) -> Group end, Entries).

-spec of_spec(witness_spec:instrumentation_map()) -> witness_outline_map:instrumentation().
of_spec(Map = #{module := Module, entries := Entries}) ->
    Compiled = #{Index => entry(Map, E) || E = #{index := Index} <- Entries},
    fun(Signature) -> [maps:get(Index, Compiled) || Index <- Module:match(Signature)] end.

entry(_, #{action := none}) -> none;
entry(#{file := File, module := Module}, E = #{index := Index, name := Name, group := Group}) ->
    #{monitor => {Module, Index}, spec => spec(File, E), name => Name, group => Group}.

spec(File, #{line := Line}) -> <<File/binary, $:, (integer_to_binary(Line))/binary>>.

-spec of_monitor({witness_options:signature_pattern(), {module(), term()}}) ->
    witness_outline_map:instrumentation().
of_monitor({{M, F, A}, Monitor = {Module, _}}) ->
    Entry = #{monitor => Monitor, spec => atom_to_binary(Module), name => undefined, group => false},
    fun({M1, F1, Args}) when (M =:= '_' orelse M =:= M1), (F =:= '_' orelse F =:= F1) ->
            case A =:= '_' orelse (is_list(Args) andalso A =:= length(Args)) of
                true -> [Entry];
                false -> []
            end;
       (_) -> []
    end.

-doc "All properties that may be monitored, in the order in which they were given.".
-spec properties([witness_spec:instrumentation_map()],
                 [{witness_options:signature_pattern(), {module(), term()}}]) -> [property()].
properties(Maps, Monitors) ->
    [#{key => {spec(File, E), Name}, signature => Signature, actions => actions(Module, Index)}
     || #{file := File, module := Module, entries := Entries} <- Maps,
        E = #{action := monitor, index := Index, name := Name, signature := Signature} <- Entries]
    ++ [#{key => {atom_to_binary(Module), undefined},
          signature => unicode:characters_to_binary(io_lib:format("~tw:~tw/~tw", [M, F, A])),
          actions => actions(Module, Arg)}
        || {{M, F, A}, {Module, Arg}} <- Monitors].

%% What a monitor says of itself is for people, and no reason not to run.
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
    Compiled = [{Module, Index} || #{module := Module, entries := Entries} <- Maps,
                                   #{action := monitor, index := Index} <- Entries],
    witness_trace_filter:union([witness_monitor_alphabet:of_monitor(Monitor) || Monitor <- Compiled ++ [M || {_, M} <- Monitors]]).

-doc """
The names of all signatures that somebody names, `none` included, and whether a group may be named by them
(`witness_trace_native:open/1`).
""".
-spec names([witness_spec:instrumentation_map()],
            [{witness_options:signature_pattern(), {module(), term()}}]) -> [witness_trace_native:pattern()].
names(Maps, Monitors) ->
    lists:usort([{M, F, A, Group} || #{entries := Entries} <- Maps, #{names := Names, group := Group} <- Entries,
                                     {M, F, A} <- Names]
                ++ [{M, F, A, false} || {{M, F, A}, _} <- Monitors]).

-spec sources([witness_spec:instrumentation_map()]) -> sources().
sources(Maps) ->
    #{spec(File, E) => {File, Lines} || #{file := File, lines := Lines, entries := Entries} <- Maps, E <- Entries}.

-doc "Where in its specification a verdict was decided, with the text of that line.".
-spec source(#{spec := binary(), info := witness_monitor:info(), _ => _}, sources()) -> witness:source() | undefined.
source(#{spec := Spec, info := #{line := Line} = Info}, Sources) when is_map_key(Spec, Sources) ->
    {File, Lines} = maps:get(Spec, Sources),
    #{file => File, line => Line, column => maps:get(column, Info, undefined), text => element(Line, Lines)};
source(_, _) -> undefined.

-doc """
Whether a process is Witness's own: one that runs a module of this application, or one of
those named. They are never observed.
""".
-spec own([pid()]) -> fun((pid()) -> boolean()).
own(Unobserved) ->
    {ok, Modules} = application:get_key(witness, modules),
    fun(P) ->
            Calls = [proc_lib:translate_initial_call(P) | [MFA || {_, MFA} <- [process_info(P, initial_call)]]],
            lists:member(P, Unobserved)
                orelse lists:any(fun(Call) -> lists:member(module(Call), Modules) end, Calls)
    end.

module({supervisor, M, _}) -> M;
module({M, _, _}) -> M.
