-module(witness_run_start).
-moduledoc """
The beginning of a run, in its process: compiles the specifications, starts the parts of the run, and has the processes observed
that run already.

*Invariant:* if a part cannot start, no specification that was compiled here stays loaded, and an earlier log is not replaced.
""".

-export([receives/1, no_functions/1, start/1, compile/2, unload/2, format_error/1]).

-export_type([parts/0, error/0]).

-doc """
The parts of a run. `history`: its process; `warnings`: those of the options and of the specifications; `adopts`: whether the
processes to observe run already, so the run starts none.
""".
-type parts() :: #{instrument := witness_instrument:t(), counts := fun(() -> witness_instrument:counts()),
                   log := witness_run_log:logging(), history := none | pid(), notifier := pid(),
                   functions := witness_trace_functions:watch(),
                   maps := witness_run_maps:maps(), gathered := witness_run_maps:gathered(),
                   specs := [witness_spec:instrumentation_map()], properties := [witness_run_maps:property()],
                   warnings := [witness:warning()], started_at_ms := integer(), adopts := boolean()}.

-doc """
Why a run cannot start:

- `{witness_spec, Diagnostics}`: the first file with errors;
- `{witness_run_start, {log, Text}}`: the log cannot be read, or cannot be written;
- `{witness_run_start, {functions, Text}}`: calls of functions cannot be observed;
- `{witness_run_attach, Text}`: a process is not there, or is Witness's own;
- `{witness_run_inline, Reason}`: the system cannot be instrumented inline.
""".
-type error() :: witness_spec:error() | {?MODULE, {log | functions, binary()}} | witness_run_attach:error()
               | witness_run_inline:error().

-define(WHERE_FUNCTIONS, "`run` sees them over the source native, and over evm, as `attach` does, with central monitors (`--instrument central`)").

-define(WHERE_REPLAYED, "`replay --spec` sees them, and `check --replay` of a recording without `--contents` (in a program {log, {replay, #{dir => Dir}}})").

-doc "Starts the parts of the run that calls.".
-spec start(witness_options:options()) -> {ok, parts()} | {error, error()}.
start(Options = #{specs := Files, monitors := Monitors, warnings := Given}) ->
    case compile(Files, Options) of
        {ok, Specs, Warnings} ->
            maybe
                {ok, Chosen} ?= choose(Options),
                Functions = witness_run_maps:functions(Specs, Monitors),
                {ok, Watch} ?= watch(Functions, Specs, Options),
                StopTime = stop_time(Specs, Options),
                {ok, Log} ?= witness_run_log:open(Options, {Functions, Watch}, StopTime),
                Maps = witness_run_maps:maps(Options, Specs, Log),
                Gathered = witness_run_maps:gathered(Options, Specs, Log),
                {ok, {_, _, Counts} = Started} ?= witness_run_observe:start_link(Options, Specs, {Maps, Gathered}, StopTime),
                Instrument = witness_instrument:new(Started),
                ok ?= witness_run_log:start(Log),
                ok = add_servers(Options, Instrument),
                ok = witness_run_limits:start(Options),
                History = start_history(Options),
                Parts = #{instrument => Instrument, counts => Counts, log => Log, history => History, functions => Watch,
                          maps => Maps, gathered => Gathered, specs => Specs,
                          properties => witness_run_maps:properties(Specs, Monitors), warnings => Given ++ Warnings,
                          notifier => witness_run_notifier:start_link(Options),
                          started_at_ms => erlang:monotonic_time(millisecond)},
                {ok, Parts#{adopts => adopt_running(Chosen, Options, Instrument, History)}}
            else
                {error, Why} ->
                    ok = unload(Specs, Files),
                    {error, case Why of
                         Text when is_list(Text); is_binary(Text) -> {?MODULE, {log, text(Text)}};
                         {witness_run_inline, {functions, Refused}} -> refusals(Refused, Specs);
                         _ -> Why
                     end}
            end;
        {error, _} = Error -> Error
    end.

%% Only deadlines depend on it, those of this run or of another one that reads its log.
stop_time(Specs, #{monitors := Monitors} = Options) ->
    case is_timed_log(Options) orelse lists:any(fun witness_monitor:is_timed/1, witness_run_maps:all_monitors(Specs, Monitors)) of
        true -> witness_monitor_stop_time:new();
        false -> witness_monitor_stop_time:none()
    end.

is_timed_log(#{log_file := _, timestamps := Timed}) -> Timed;
is_timed_log(#{}) -> false.

%% The run loses the functions that it observes as soon as other code takes their place.
watch([], _, _) -> {ok, witness_trace_functions:none()};
watch(Functions, Specs, #{system := System, instrument := Instrument} = Options) ->
    case no_functions(Options) of
        %% Woven functions report their calls, and the coordinator notices new code.
        none when element(1, System) =:= log; Instrument =:= inline -> {ok, witness_trace_functions:none()};
        none ->
            case witness_trace_functions:open(Functions) of
                {ok, Watch} -> {ok, Watch};
                {error, Refused} -> {error, refusals(Refused, Specs)}
            end;
        {Why, Hint} ->
            {error, {?MODULE, {functions, text(["calls and returns of functions cannot be seen here: ", Why, "; ", Hint])}}}
    end.

refusals(Refused, Specs) -> {?MODULE, {functions, text(lists:join("\n", [refusal(One, Specs) || One <- Refused]))}}.

refusal({Function, Why}, Specs) ->
    Places = [[File, $:, integer_to_list(Line), ": "] || #{file := File, entries := Entries} <- Specs,
                                                         #{line := Line, functions := Functions} <- Entries,
                                                         lists:member(Function, Functions)],
    [case Places of [First | _] -> First; [] -> "" end,
     "the calls of ", witness_event:format_function(Function), " cannot be observed: ", refused(Why)].

refused(not_woven) ->
    "inline, a function reports its calls itself, and its module is not woven: name the module with the option weave (kernel, stdlib "
    "and the modules of the virtual machine cannot be woven), or observe the system with central monitors (`--instrument central`)";
refused(woven_by_compiler) ->
    "its module was woven when it was compiled (witness_inline), and such modules do not report calls: compile it without that, and the "
    "run weaves it, or observe the system with central monitors (`--instrument central`)";
refused(Why) -> witness_trace_functions:explain(Why).

start_history(#{history := true} = Options) ->
    {ok, History} = witness_run_history:start_link(self(), Options),
    History;
start_history(_) -> none.

%% The predicate for processes that run already; `none` if the run starts the system.
choose(Options = #{system := node}) ->
    Own = witness_run_attach:own_predicate(Options),
    {ok, fun(P) -> not Own(P) end};
choose(Options = #{system := {attach, Targets}}) ->
    witness_run_attach:chosen_predicate(Targets, witness_run_attach:own_predicate(Options));
choose(_) -> {ok, none}.

%% When the caller has the run, all processes that run already are observed.
adopt_running(none, #{system := {children, Parents}, scope := Scope} = Options, Instrument, History) ->
    ok = witness_run_history:adopt_children(History, witness_instrument:parent_pids(Parents)),
    ok = witness_instrument:parents(Instrument, lists:usort(Parents)),
    ok = case Scope of
        tree -> ok;
        node -> witness_instrument:adopt_node(Instrument, witness_run_attach:own_predicate(Options))
    end,
    true;
adopt_running(none, _, _, _) -> false;
adopt_running(Chosen, #{system := System} = Options, Instrument, History) ->
    ok = witness_run_history:adopt(History, Chosen),
    Own = witness_run_attach:own_predicate(Options),
    {ok, Others} = witness_instrument:attach(Instrument, #{chosen => Chosen, own => Own}, System =/= node),
    Known = maps:from_keys(Others, []),
    ok = witness_run_history:adopt(History, fun(P) -> is_map_key(P, Known) end),
    true.

%% They are there before the system has called any of them: its parents wait for the run, and its first process is not started yet.
add_servers(#{on_behalf := true} = Options, Instrument) ->
    witness_instrument:servers(Instrument, witness_run_attach:servers(Options), false);
add_servers(_, _) -> ok.

-doc "Compiles specifications, those that are compiled already excepted. If one has errors, none of them stays loaded.".
-spec compile([file:name_all() | witness_spec:instrumentation_map()], witness_options:options()) ->
    {ok, [witness_spec:instrumentation_map()], [witness:warning()]}
  | {error, witness_spec:error()}.
compile(Files, Options) ->
    case compile(Files, compile_options(Options), [], []) of
        {ok, _, _} = Compiled -> Compiled;
        {error, Error, Specs} ->
            ok = unload(Specs, Files),
            {error, Error}
    end.

compile_options(Options = #{system := System, instrument := Instrument, signatures := Rows}) ->
    Named = maps:with([include, max_obligations, max_state], Options),
    Seen = case no_functions(Options) of none -> #{}; Why -> #{no_functions => Why} end,
    Given = (maps:merge(maps:merge(Named, Seen), receives(Options)))#{central => Instrument =:= central},
    case System of
        %% The modules of a log's system need not be on this node.
        {log, _} -> maps:merge(Given, witness_run_observe:clocks(Options));
        _ -> Given#{exports => witness_event_wrapper:exports(fun witness_remote_exports:of_module/1, Rows),
                    attach => witness_run_attach:is_attached(System)}
    end.

-doc "What is seen of messages that a process receives. A log may be of both kinds, and says it itself.".
-spec receives(#{system => _, instrument => _, _ => _}) -> #{receives => taken | delivered}.
receives(#{system := {log, {Recording, _}}}) when Recording =:= recording; Recording =:= replay -> #{receives => taken};
receives(#{system := {log, _}}) -> #{};
receives(#{instrument := inline}) -> #{receives => taken};
receives(#{}) -> #{receives => delivered}.

-doc "Why calls and returns of functions are not seen, and what to do; `none` if they are. A log says it itself.".
-spec no_functions(#{system => _, instrument => _, source => _, _ => _}) ->
    none | {Why :: string(), Hint :: string()}.
no_functions(#{system := {log, {recording, _}}}) ->
    {"a recording has the results of some calls, and a replay makes all calls again",
     ?WHERE_REPLAYED};
no_functions(#{system := {log, _}}) -> none;
no_functions(#{recorded := true}) ->
    {"a recorded program calls the recorder in place of some functions", "record it first; then " ++ ?WHERE_REPLAYED};
no_functions(#{instrument := outline, source := evm}) ->
    {"over the source evm, outline monitors might miss the return of a call", ?WHERE_FUNCTIONS};
no_functions(#{}) -> none.

compile([], _, Specs, Warnings) -> {ok, lists:reverse(Specs), Warnings};
compile([Map | Files], Options, Specs, Warnings) when is_map(Map) ->
    compile(Files, Options, [Map | Specs], Warnings);
compile([File | Files], Options, Specs, Warnings) ->
    case witness_spec:compile_file(File, Options) of
        {ok, Map, Diagnostics} ->
            New = [#{code => specification, text => text(witness_spec:format_diagnostic(D))} || D <- Diagnostics],
            compile(Files, Options, [Map | Specs], Warnings ++ New);
        {error, Error} ->
            {error, Error, Specs}
    end.

-doc "Unloads those of the specifications that the run has compiled. `Given`: what the user gave for them.".
-spec unload([witness_spec:instrumentation_map()], Given :: [file:name_all() | witness_spec:instrumentation_map()]) -> ok.
unload(Specs, Given) -> lists:foreach(fun witness_spec:unload/1, Specs -- Given).

-doc "A reason as text.".
-spec format_error({log | functions, binary()}) -> unicode:chardata().
format_error({_, Text}) -> Text.

text(Chars) -> unicode:characters_to_binary(Chars).
