-module(witness_options).
-moduledoc """
The options of a run: one clause for each, and the defaults.

## Errors

`{bad_option, Key, Expected}` for an ill-typed value, `{unknown_option, Key}`,
`{missing_option, Key}`, `{only_for_logs, Key}`, `{not_for_logs, Key}` and `{not_attached, Key}` for an option that does
not fit the `system`, `{not_for_recordings, Key}` for an option of logs that a recording does not have, `{only_inline, Key}` and
`{not_inline, Key}` for an option that needs, or excludes, `instrument => inline`,
`{not_redacted, Key}` for an option that writes contents although `redact` forbids it,
`{source_unavailable, Reason}` if the user asked for `native` and it
cannot be loaded, `{undefined_function, {M, F, Arity}, Hint}` for a system that cannot
be called, `{specification, Diagnostics}`, and the errors of `witness_monitor:check/1` and
`witness_run_application:check/1`.
""".

-export([check/1, format_error/1]).

-export_type([options/0, log/0, signature_pattern/0]).

-doc "The processes that a monitor is for.".
-type signature_pattern() :: {module() | '_', Function :: atom() | '_', arity() | '_'}.

-doc "The place of a log.".
-type log() :: {file, file:name_all()} | standard_input | {recording, Dir :: file:name_all()} | {replay, witness_run_replay:options()}.

-doc """
The complete options of `witness:start/1`. `warnings`: about the options that Witness chose. If Witness is
not installed (`m:witness_remote`), `modules` are its modules by the names that they have there, and specifications are
compiled already.
""".
-type options() :: #{system := {module(), atom(), [term()]} | {application, atom()} | {children, [pid(), ...]} | node
                               | {attach, [witness_run_attach:target(), ...]} | {log, log()},
                     applications := [atom()],
                     scope := tree | node,
                     specs := [file:name_all() | witness_spec:instrumentation_map()],
                     modules => [module()],
                     include := [file:name_all()],
                     monitors := [{signature_pattern(), {module(), term()}}],
                     instrument := outline | central | inline,
                     weave := witness_inline_modules:weave(),
                     source => native | evm,
                     roots := auto | [witness_event:proc()],
                     format => text | json,
                     follow := boolean(),
                     skip_malformed := boolean(),
                     max_atoms := pos_integer(),
                     max_line := pos_integer(),
                     log_file => file:name_all(),
                     block := pos_integer(),
                     save => file:name_all(),
                     from => file:name_all(),
                     on_verdict := undefined | fun((witness:verdict()) -> term()),
                     satisfied := told | counted,
                     owner := pid(),
                     group_leader := pid(),
                     unobserved := [pid()],
                     timestamps := boolean(),
                     hold_back := pos_integer(),
                     memory := pos_integer(),
                     partition_memory := pos_integer(),
                     message_size := pos_integer() | infinity,
                     rate := pos_integer() | infinity,
                     duration := pos_integer() | infinity,
                     batch := pos_integer(),
                     flush := pos_integer(),
                     explain := pos_integer(),
                     max_slices := pos_integer(),
                     slice_idle := pos_integer() | infinity,
                     max_obligations := pos_integer(),
                     max_verdicts := non_neg_integer(),
                     drain := timeout(),
                     halt := boolean(),
                     log := boolean(),
                     log_rate := pos_integer() | infinity,
                     redact := boolean(),
                     replaceable := boolean(),
                     history := boolean(),
                     warnings := [witness:warning()]}.

-define(ONLY_LOGS, [roots, format, follow, skip_malformed, max_atoms, max_line, block, save, from]).
-define(NOT_RECORDINGS, [roots, format, follow, skip_malformed, max_line, block, save, from]).

defaults() ->
    #{scope => tree, applications => [], specs => [], include => [], monitors => [], instrument => outline, weave => default,
      on_verdict => undefined, satisfied => told, owner => self(), group_leader => group_leader(), unobserved => [],
      timestamps => false, hold_back => 100,
      memory => witness_options_memory:available() div 4, message_size => 1 bsl 26, batch => 64, flush => 2,
      rate => infinity, duration => infinity,
      explain => 12, max_slices => 100_000, slice_idle => infinity,
      max_obligations => 1000, max_verdicts => 10_000,
      roots => auto, follow => false, skip_malformed => false, max_atoms => 100_000, max_line => 1 bsl 20, block => 1 bsl 17,
      drain => 30_000, halt => true, log => true, log_rate => 10, redact => false, replaceable => false, history => false}.

-doc "Completes and checks the options of a user.".
-spec check(map()) -> {ok, options()} | {error, term()}.
check(Options) when is_map(Options) ->
    try
        Complete = maps:merge(defaults(), Options),
        is_map_key(system, Complete) orelse throw({missing_option, system}),
        maps:foreach(fun option/2, Complete),
        ok = attachable(Complete),
        {ok, message_size(source(timed(partition_memory(fitting(Complete, Options)))), Options)}
    catch
        throw:Reason -> {error, Reason}
    end;
check(_) -> {error, {bad_option, options, "a map"}}.

%% A monitor of a process that runs already must not expect the beginning.
attachable(#{system := System, monitors := Monitors}) ->
    [throw({monitor_callbacks, Monitor, [{attached, 3}]})
     || witness_run_attach:is_attached(System), {_, {Monitor, _}} <- Monitors,
        not erlang:function_exported(Monitor, attached, 3)],
    ok.

%% Options of logs do not apply to systems that run, and the other way round.
fitting(Complete = #{system := System}, Given) ->
    IsAttached = witness_run_attach:is_attached(System),
    {Unfitting, Wrong} = case System of
        _ when IsAttached ->
            {not_attached, [scope, applications, group_leader | ?ONLY_LOGS]};
        {log, _} -> {not_for_logs, [scope, applications, source, group_leader, unobserved, timestamps, hold_back,
                                    partition_memory, message_size, rate, duration, batch, flush, log_file,
                                    replaceable]};
        _ -> {only_for_logs, ?ONLY_LOGS}
    end,
    [throw({Unfitting, Key}) || Key <- Wrong, is_map_key(Key, Given)],
    [throw({not_redacted, Key}) || #{redact := true} <- [Complete], Key <- [log_file, save], is_map_key(Key, Complete)],
    [throw({not_for_recordings, Key}) || {log, {Kind, _}} <- [System], lists:member(Kind, [recording, replay]), Key <- ?NOT_RECORDINGS,
                                         maps:get(Key, Given, false) =/= false],
    ok = inline(Complete, Given),
    case Complete of
        #{system := {log, standard_input}, follow := true} -> expected(follow, "a file to be followed");
        #{system := {log, standard_input}, from := _} -> expected(from, "a file to go on with");
        #{system := {log, standard_input}, save := _} -> expected(save, "a file to go on with");
        #{system := {log, _}} -> Complete;
        #{} -> application(Complete, Given)
    end.

%% A process that runs already started in code that is not woven.
inline(#{instrument := inline, system := System}, Given) ->
    case System of
        {log, _} -> expected(instrument, "outline or central, for a log");
        _ when System =:= node; element(1, System) =:= attach -> expected(instrument, "outline, for what runs already");
        _ -> ok
    end,
    [throw({not_inline, Key}) || Key <- [log_file, replaceable], maps:get(Key, Given, false) =/= false],
    ok;
inline(_, Given) ->
    is_map_key(weave, Given) andalso throw({only_inline, weave}),
    ok.

%% The application controller starts the processes, so a tree of processes would miss them.
application(#{system := {application, _}}, #{scope := tree}) -> expected(scope, "node, for an application");
application(#{system := {application, _}}, #{applications := [_ | _]}) ->
    expected(applications, "none, where the system is an application");
application(Complete = #{system := {application, _}}, _) -> Complete#{scope => node};
application(#{applications := [_ | _]}, #{scope := tree}) -> expected(scope, "node, where applications are started");
application(Complete = #{applications := [_ | _]}, _) -> Complete#{scope => node};
application(Complete, _) -> Complete.

%% The times of events decide how long a slice has been idle. The events of a log have the times that they have.
timed(Options = #{system := {log, _}}) -> Options;
timed(Options = #{slice_idle := Idle}) when is_integer(Idle) -> Options#{timestamps := true};
timed(Options) -> Options.

%% All partitions together have a quarter of the node's memory; a single partition may use half of that.
partition_memory(Options = #{partition_memory := _}) -> Options;
partition_memory(Options = #{memory := Memory}) -> Options#{partition_memory => max(1, Memory div 2)}.

%% The native source has to measure each message anyway. Over evm messages are measured only if the user asks for it.
message_size(Options = #{source := evm}, Given) when not is_map_key(message_size, Given) ->
    Options#{message_size := infinity};
message_size(Options, _) -> Options.

%% The native source, if it can be loaded, unless the user has chosen. A system that runs already is not exposed to native code.
source(Options = #{system := {log, _}}) ->
    Options#{warnings => []};
source(Options = #{system := System}) ->
    case witness_run_attach:is_attached(System) of
        true ->
            maps:get(source, Options, evm) =:= evm orelse expected(source, "evm, for what is running already"),
            Options#{source => evm, warnings => []};
        false -> best_source(Options)
    end.

best_source(Options = #{source := evm}) ->
    Options#{warnings => []};
best_source(Options) ->
    case {witness_trace_native:available(), Options} of
        {ok, _} -> Options#{source => native, warnings => []};
        {{error, Reason}, #{source := native}} -> throw({source_unavailable, Reason});
        {{error, Reason}, _} ->
            Options#{source => evm,
                     warnings => [#{code => no_native,
                                    text => unicode:characters_to_binary(["events come from the tracing of the VM (evm), since "
                                                                          "the native source is not available: ", Reason])}]}
    end.

option(system, {M, F, Args}) when is_atom(M), is_atom(F), is_list(Args) -> callable(M, F, length(Args));
option(system, {application, App}) when is_atom(App) ->
    case witness_run_application:check(App) of
        ok -> ok;
        {error, Reason} -> throw(Reason)
    end;
option(system, {log, standard_input}) -> ok;
option(system, {log, {replay, #{dir := _}}}) -> ok;
option(system, {log, {Kind, Name}}) when Kind =:= file orelse Kind =:= recording, is_list(Name) orelse is_binary(Name) -> ok;
option(system, node) -> ok;
option(system, {children, [_ | _] = Parents}) ->
    lists:all(fun(P) -> is_pid(P) andalso node(P) =:= node() end, Parents)
        orelse expected(system, "{children, Parents} with processes of this node");
option(system, {attach, [_ | _] = Targets}) -> lists:foreach(fun target/1, Targets);
option(system, _) ->
    expected(system, "{Module, Function, Arguments}, {application, Name}, {children, Parents}, node, {attach, "
                     "Targets}, {log, {file, File}}, {log, {recording, Folder}}, {log, {replay, Options}} or {log, standard_input}");
option(applications, Apps) when is_list(Apps) ->
    lists:all(fun is_atom/1, Apps) orelse expected(applications, "a list of names of applications");
option(applications, _) -> expected(applications, "a list of names of applications");
option(scope, Scope) when Scope =:= tree; Scope =:= node -> ok;
option(scope, _) -> expected(scope, "tree or node");
option(Key, Files) when Key =:= specs; Key =:= include ->
    (is_list(Files) andalso lists:all(fun(F) -> is_list(F) orelse is_binary(F) end, Files))
        orelse expected(Key, "a list of file names");
option(monitors, Monitors) when is_list(Monitors) -> lists:foreach(fun monitor_option/1, Monitors);
option(monitors, _) -> expected(monitors, "a list of {{Module, Function, Arity}, {Monitor, Argument}}");
option(instrument, Mode) when Mode =:= outline; Mode =:= central; Mode =:= inline -> ok;
option(instrument, _) -> expected(instrument, "outline, central or inline");
option(weave, default) -> ok;
option(weave, [_ | _] = Weave) ->
    lists:all(fun({application, App}) -> is_atom(App); (Module) -> is_atom(Module) end, Weave)
        orelse expected(weave, "a list of modules and {application, Name}");
option(weave, _) -> expected(weave, "a list of modules and {application, Name} that is not empty");
option(roots, auto) -> ok;
option(roots, [_ | _] = Roots) ->
    lists:all(fun({external, Name}) -> is_binary(Name); (P) -> is_pid(P) end, Roots)
        orelse expected(roots, "processes, or auto");
option(roots, _) -> expected(roots, "a list of processes that is not empty, or auto");
option(format, Format) when Format =:= text; Format =:= json -> ok;
option(format, _) -> expected(format, "text or json");
option(source, Source) when Source =:= native; Source =:= evm -> ok;
option(source, _) -> expected(source, "native or evm");
option(on_verdict, undefined) -> ok;
option(on_verdict, F) when is_function(F, 1) -> ok;
option(on_verdict, _) -> expected(on_verdict, "a function of one argument");
option(satisfied, How) when How =:= told; How =:= counted -> ok;
option(satisfied, _) -> expected(satisfied, "told or counted");
option(owner, Pid) when is_pid(Pid), node(Pid) =:= node() -> ok;
option(owner, _) -> expected(owner, "a process of this node");
option(group_leader, Pid) when is_pid(Pid) -> ok;
option(group_leader, _) -> expected(group_leader, "a process");
option(unobserved, Pids) when is_list(Pids) ->
    lists:all(fun is_pid/1, Pids) orelse expected(unobserved, "a list of processes");
option(unobserved, _) -> expected(unobserved, "a list of processes");
option(max_verdicts, N) when is_integer(N), N >= 0 -> ok;
option(max_verdicts, _) -> expected(max_verdicts, "a number, 0 or more");
option(Key, infinity) when Key =:= drain; Key =:= message_size; Key =:= rate; Key =:= duration; Key =:= log_rate;
                           Key =:= slice_idle -> ok;
option(Key, N) when Key =:= hold_back; Key =:= memory; Key =:= partition_memory; Key =:= message_size; Key =:= batch;
                    Key =:= flush; Key =:= rate; Key =:= duration; Key =:= log_rate; Key =:= explain; Key =:= drain;
                    Key =:= max_atoms; Key =:= max_line; Key =:= block; Key =:= max_slices; Key =:= slice_idle;
                    Key =:= max_obligations ->
    (is_integer(N) andalso N > 0) orelse expected(Key, "a number above 0");
option(Key, File) when Key =:= save; Key =:= from; Key =:= log_file ->
    is_list(File) orelse is_binary(File) orelse expected(Key, "the name of a file");
option(Key, Value) when Key =:= timestamps; Key =:= halt; Key =:= log; Key =:= follow; Key =:= skip_malformed;
                       Key =:= redact; Key =:= replaceable; Key =:= history ->
    is_boolean(Value) orelse expected(Key, "true or false");
option(Key, _) -> throw({unknown_option, Key}).

target(P) when is_pid(P), node(P) =:= node() -> ok;
target({application, App}) when is_atom(App) -> ok;
target(Name) when is_atom(Name) -> ok;
target(_) -> expected(system, "{attach, Targets} with processes of this node, registered names and {application, App}").

monitor_option({{M, F, A}, {Monitor, _}})
  when is_atom(M), is_atom(F), (A =:= '_' orelse is_integer(A) andalso A >= 0), is_atom(Monitor) ->
    case witness_monitor:check(Monitor) of
        ok -> ok;
        {error, Reason} -> throw(Reason)
    end;
monitor_option(_) ->
    expected(monitors, "a list of {{Module, Function, Arity}, {Monitor, Argument}}").

-spec expected(atom(), string()) -> no_return().
expected(Key, What) -> throw({bad_option, Key, What}).

callable(M, F, Arity) ->
    case code:ensure_loaded(M) of
        {module, M} ->
            erlang:function_exported(M, F, Arity) orelse erlang:is_builtin(M, F, Arity) orelse
                throw({undefined_function, {M, F, Arity}, [A || {G, A} <- M:module_info(exports), G =:= F]}),
            ok;
        {error, Reason} ->
            throw({undefined_module, M, Reason})
    end.

-doc "An error of `check/1` for people.".
-spec format_error(term()) -> unicode:chardata().
format_error({bad_option, Key, Expected}) ->
    io_lib:format("option ~ts: expected ~ts", [Key, Expected]);
format_error({unknown_option, Key}) ->
    io_lib:format("unknown option ~tp", [Key]);
format_error({missing_option, Key}) ->
    io_lib:format("option ~ts is missing", [Key]);
format_error({only_for_logs, Key}) ->
    io_lib:format("option ~ts: only for logs", [Key]);
format_error({not_for_logs, Key}) ->
    io_lib:format("option ~ts: not for logs", [Key]);
format_error({not_for_recordings, Key}) ->
    io_lib:format("option ~ts: only for logs, not for recordings", [Key]);
format_error({only_inline, Key}) ->
    io_lib:format("option ~ts: only where the instrument is inline", [Key]);
format_error({not_inline, Key}) ->
    io_lib:format("option ~ts: not where the instrument is inline", [Key]);
format_error({not_redacted, log_file}) ->
    "a log (log_file) holds the contents of messages, so a run that is redacted has none";
format_error({not_redacted, save}) ->
    "a position (save) holds the contents of messages, so a run that is redacted has none";
format_error({not_attached, Key}) ->
    io_lib:format("option ~ts: not for what is running already", [Key]);
format_error({source_unavailable, Reason}) ->
    ["the native source of events is not available: ", Reason];
format_error(Reason) when element(1, Reason) =:= no_application; element(1, Reason) =:= application_file;
                          element(1, Reason) =:= running_already; element(1, Reason) =:= library_application ->
    witness_run_application:format_error(Reason);
format_error({undefined_module, M, Reason}) ->
    io_lib:format("the module ~ts cannot be loaded (~ts); is its folder on the code path (--pa)?", [M, Reason]);
format_error({undefined_function, {M, F, A}, []}) ->
    io_lib:format("the module ~ts does not export ~ts/~w", [M, F, A]);
format_error({undefined_function, {M, F, A}, Arities}) ->
    io_lib:format("the module ~ts does not export ~ts/~w, but ~ts",
                  [M, F, A, lists:join(", ", [io_lib:format("~ts/~w", [F, B]) || B <- Arities])]).
