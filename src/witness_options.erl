-module(witness_options).
-moduledoc """
The options of a run (`m:witness_option_schema`): their checks and defaults. What depends on several options, or on code, is here.

## Errors

An error is `{witness_options, Reason}` with one of these reasons:

- `{only_for_logs, Key}`, `{not_for_logs, Key}`, `{not_attached, Key}`: an option that does not fit the `system`;
- `{not_attached_checks, Checks}`: checks that need a system which the run starts;
- `{not_for_recordings, Key}`: an option of logs that a recording does not have;
- `{only_inline, Key}`, `{not_inline, Key}`: an option that needs, or excludes, `instrument => inline`;
- `{not_redacted, Key}`: an option that writes contents although `redact` forbids it;
- `{source_unavailable, Text}`: the user asked for `native`, and it cannot be loaded;
- `{undefined_module, M, Reason}`, `{undefined_function, {M, F, Arity}, Arities}`: a system that cannot be called.

The others are those of `witness_option:check/2`, `witness_monitor:check/1`, `witness_event_wrapper:table/1` and
`witness_run_application:check/1`. An ill-typed
value is `{witness_option, {bad_option, Key, Expected}}`, also if its type depends on other options.
""".

-export([check/1, check_checks/2, signatures/1, format_error/1]).

-export_type([options/0, log/0, signature_pattern/0, reason/0, error/0]).

-doc "The processes that a monitor is for.".
-type signature_pattern() :: {module() | '_', Function :: atom() | '_', arity() | '_'}.

-doc "The place of a log.".
-type log() :: {file, file:name_all()} | standard_input | {recording, Dir :: file:name_all()}
    | {replay, witness_run_replay:options()}.

-doc """
The complete options of `witness:start/1`. `warnings`: about the options that Witness chose. If Witness is
not installed (`m:witness_remote`), `modules` are its modules by the names that they have there, and specifications are
compiled already. `recorded`: the program is recorded meanwhile (`m:witness_recorded_run`).
""".
-type options() :: #{system := {module(), atom(), [term()]} | {application, atom()} | node
                               | {children, [witness_instrument:parent(), ...]}
                               | {attach, [witness_run_attach:target(), ...]} | {log, log()},
                     applications := [atom()],
                     scope := tree | node,
                     on_behalf := boolean(),
                     specs := [file:name_all() | witness_spec:instrumentation_map()],
                     modules => [module()], recorded => true,
                     include := [file:name_all()],
                     monitors := [{signature_pattern(), {module(), term()}}],
                     signatures := [witness_event_wrapper:row()],
                     checks := [witness_check:name()],
                     instrument := outline | central | inline,
                     weave := witness_inline_modules:weave(),
                     source => native | evm,
                     roots := auto | [witness_event:proc()],
                     format => text | json,
                     follow := boolean(),
                     skew := non_neg_integer() | infinity,
                     sort => non_neg_integer(),
                     clocks := non_neg_integer(),
                     clock := boolean(),
                     skip_malformed := boolean(),
                     max_atoms := pos_integer(),
                     max_line := pos_integer(),
                     log_file => file:name_all(),
                     log_size := pos_integer() | infinity,
                     block := pos_integer(),
                     save => file:name_all(),
                     from => file:name_all(),
                     on_verdict := undefined | fun((witness:verdict()) -> term()),
                     on_read => fun((witness:read()) -> term()),
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
                     max_state := pos_integer(),
                     max_verdicts := non_neg_integer(),
                     drain := timeout(),
                     halt := boolean(),
                     log := boolean(),
                     log_rate := pos_integer() | infinity,
                     redact := boolean(),
                     syntax := auto | witness_event:syntax(),
                     replaceable := boolean(),
                     history := boolean(),
                     warnings := [witness:warning()]}.

-doc "What is wrong with the options of a run; see above.".
-type reason() :: {only_for_logs | not_for_logs | not_attached | not_for_recordings | only_inline | not_inline | not_redacted,
                   Option :: atom()}
                | {not_attached_checks, [witness_check:name(), ...]}
                | {source_unavailable, unicode:chardata()}
                | {undefined_module, module(), Reason :: term()} | {undefined_function, mfa(), [arity()]}.

-type error() :: {?MODULE, reason()} | witness_option:error() | witness_monitor:error() | witness_run_application:error()
               | witness_event_wrapper:error().

%% Of a name in an error.
-define(NAME_CHARS, 200).

defaults() ->
    (witness_option:defaults(witness_option_schema:run()))#{
        signatures => witness_event_wrapper:configured(), memory => witness_options_memory:available_bytes() div 4, owner => self(),
        group_leader => group_leader()}.

-doc "The options with the rows for signatures that they name, or else those of this node. They are checked.".
-spec signatures(map()) -> {ok, map()} | {error, witness_option:error() | witness_event_wrapper:error()}.
signatures(Options) ->
    Rows = maps:get(signatures, Options, witness_event_wrapper:configured()),
    {ok, Option} = witness_option:find(signatures, witness_option_schema:run()),
    maybe
        ok ?= witness_option:check(#{signatures => Rows}, [Option]),
        {ok, _} ?= witness_event_wrapper:table(Rows),
        {ok, Options#{signatures => Rows}}
    end.

-doc "Completes and checks the options of a user.".
-spec check(map()) -> {ok, options()} | {error, error()}.
check(Options) when is_map(Options) ->
    Complete = maps:merge(defaults(), Options),
    maybe
        ok ?= witness_option:check(Complete, witness_option_schema:run()),
        {ok, _} ?= witness_event_wrapper:table(maps:get(signatures, Complete)),
        try
            ok = check_system(maps:get(system, Complete)),
            ok = lists:foreach(fun check_monitor/1, maps:get(monitors, Complete)),
            ok = check_attachable(Complete),
            Fit = check_fit(Complete, Options),
            {ok, set_message_size(set_on_behalf(set_source(set_timestamps(add_checks(set_partition_memory(Fit))))), Options)}
        catch
            throw:{error, _} = Error -> Error
        end
    end;
check(Options) -> witness_option:check(Options, witness_option_schema:run()).

%% A monitor of a process that runs already must not expect the beginning.
check_attachable(#{system := System, monitors := Monitors}) ->
    [throw({error, {witness_monitor, {monitor_callbacks, Monitor, [{attached, 3}]}}})
     || witness_run_attach:is_attached(System), {_, {Monitor, _}} <- Monitors,
        not erlang:function_exported(Monitor, attached, 3)],
    ok.

%% Options of logs do not apply to systems that run, and the other way round.
check_fit(Complete = #{system := System}, Given) ->
    Kind = kind(System),
    [throw_error({misplaced_error(Kind, Systems), Name}) || #{name := Name, systems := Systems} <- witness_option_schema:run(),
                                                            is_map_key(Name, Given), not lists:member(Kind, Systems),
                                                            not is_switched_off(Kind, Systems, maps:get(Name, Given))],
    [throw_error({not_redacted, Name}) || #{redact := true} <- [Complete], Name <- excluded_by(redact), is_map_key(Name, Complete)],
    ok = check_inline(Complete, Given),
    case Complete of
        #{sort := _, skew := Skew} when Skew =/= infinity -> throw_bad_option(skew, "either skew or sort: in a log that is sorted no time goes back");
        #{clock := true, follow := false} -> throw_bad_option(clock, "a log that is followed (follow)");
        #{clock := true, skew := infinity} when not is_map_key(sort, Complete) ->
            throw_bad_option(clock, "skew, or sort: how far times may go back");
        #{system := {log, standard_input}, follow := true} -> throw_bad_option(follow, "a file to be followed");
        #{system := {log, standard_input}, from := _} -> throw_bad_option(from, "a file to go on with");
        #{system := {log, standard_input}, save := _} -> throw_bad_option(save, "a file to go on with");
        #{system := {log, _}} -> Complete;
        #{} -> check_application(Complete, Given)
    end.

kind({log, {Recording, _}}) when Recording =:= recording; Recording =:= replay -> recording;
kind({log, _}) -> log;
kind(System) ->
    case witness_run_attach:is_attached(System) of
        true -> attached;
        false -> started
    end.

misplaced_error(attached, _) -> not_attached;
misplaced_error(started, _) -> only_for_logs;
misplaced_error(recording, [log]) -> not_for_recordings;
misplaced_error(_, _) -> not_for_logs.

%% The command line gives switches of logs to recordings, too.
is_switched_off(recording, [log], Value) -> Value =:= false;
is_switched_off(_, _, _) -> false.

excluded_by(What) -> [Name || #{name := Name, not_with := Excluded} <- witness_option_schema:run(), lists:member(What, Excluded)].

%% A process that runs already started in code that is not woven.
check_inline(#{instrument := inline, system := System}, Given) ->
    case System of
        {log, _} -> throw_bad_option(instrument, "outline or central, for a log");
        _ when System =:= node; element(1, System) =:= attach -> throw_bad_option(instrument, "outline, for what runs already");
        _ -> ok
    end,
    [throw_error({not_inline, Name}) || Name <- excluded_by(inline), maps:get(Name, Given, false) =/= false],
    ok;
check_inline(_, Given) ->
    [throw_error({only_inline, Name}) || #{name := Name, only_with := inline} <- witness_option_schema:run(),
                                         is_map_key(Name, Given)],
    ok.

%% The application controller starts the processes, so a tree of processes would miss them.
check_application(#{system := {application, _}}, #{scope := tree}) -> throw_bad_option(scope, "node, for an application");
check_application(#{system := {application, _}}, #{applications := [_ | _]}) ->
    throw_bad_option(applications, "none, where the system is an application");
check_application(Complete = #{system := {application, _}}, _) -> Complete#{scope => node};
check_application(#{applications := [_ | _]}, #{scope := tree}) -> throw_bad_option(scope, "node, where applications are started");
check_application(Complete = #{applications := [_ | _]}, _) -> Complete#{scope => node};
check_application(Complete, _) -> Complete.

add_checks(Options = #{checks := []}) -> Options;
add_checks(Options = #{system := System, checks := Checks, monitors := Monitors}) ->
    case check_checks(System, Checks) of
        ok -> Options#{monitors := Monitors ++ witness_check:monitors(lists:usort(Checks))};
        {error, _} = Error -> throw(Error)
    end.

-doc "Whether the option `checks` may have this value for a system.".
-spec check_checks(System :: term(), Checks :: term()) -> ok | {error, error()}.
check_checks(System, Checks) ->
    {ok, Option} = witness_option:find(checks, witness_option_schema:run()),
    case witness_option:check(#{checks => Checks}, [Option]) of
        ok -> check_sound(System, Checks);
        {error, _} = Error -> Error
    end.

check_sound({log, _}, Checks) ->
    case Checks -- witness_check:system_checks() of
        Checks -> ok;
        _ -> {error, {witness_option, {bad_option, checks, "crashes, calls, late or restarts, for what the run does not start"}}}
    end;
check_sound(System, Checks) ->
    Unsound = [Check || Check <- lists:usort(Checks), not lists:member(Check, witness_check:attached_checks())],
    case witness_run_attach:is_partial(System) andalso Unsound =/= [] of
        true -> {error, {?MODULE, {not_attached_checks, Unsound}}};
        false -> ok
    end.

%% The times of events decide how long a slice has been idle, and which process has ended first by an error. The events of a log
%% have the times that they have.
set_timestamps(Options = #{system := {log, _}}) -> maps:merge(#{timestamps => false}, Options);
set_timestamps(Options = #{slice_idle := Idle}) when is_integer(Idle) -> Options#{timestamps => true};
set_timestamps(Options = #{checks := Checks, instrument := Instrument}) ->
    case lists:member(crashes, Checks) of
        true -> Options#{timestamps => true};
        %% Inline the time of an event would cost a quarter of what the event costs (docs/inline.md).
        false -> maps:merge(#{timestamps => Instrument =/= inline}, Options)
    end.

%% All partitions together have a quarter of the node's memory; a single partition may use half of that.
set_partition_memory(Options = #{partition_memory := _}) -> Options;
set_partition_memory(Options = #{memory := Memory}) -> Options#{partition_memory => max(1, Memory div 2)}.

%% The native source has to measure each message anyway. Over evm messages are measured only if the user asks for it.
set_message_size(Options = #{source := evm}, Given) when not is_map_key(message_size, Given) ->
    Options#{message_size := infinity};
set_message_size(Options, _) -> Options.

%% The native source, if it can be loaded, unless the user has chosen. A system that runs already is not exposed to native code.
set_source(Options = #{system := {log, _}}) ->
    Options#{warnings => []};
set_source(Options = #{system := System}) ->
    case witness_run_attach:is_attached(System) of
        true ->
            maps:get(source, Options, evm) =:= evm orelse throw_bad_option(source, "evm, for what is running already"),
            Options#{source => evm, warnings => []};
        false -> choose_source(Options)
    end.

%% Only the native source knows what a process is doing when it spawns. Where the whole node is observed, there is nothing to add.
set_on_behalf(Options = #{on_behalf := true, source := native, scope := tree}) ->
    case witness_trace_filter:knows_servers() of
        true -> Options;
        false -> without_on_behalf(Options, "it is not known how a gen_server of this release handles messages")
    end;
set_on_behalf(#{on_behalf := true, source := evm, scope := tree, warnings := []}) ->
    throw_bad_option(on_behalf, "false, over evm");
set_on_behalf(Options) -> Options#{on_behalf => false}.

without_on_behalf(Options = #{warnings := Warnings}, Why) ->
    Text = ["what running processes start for the system is not observed: ", Why],
    Options#{on_behalf := false, warnings := [#{code => on_behalf, text => unicode:characters_to_binary(Text)} | Warnings]}.

choose_source(Options = #{source := evm}) ->
    Options#{warnings => []};
choose_source(Options) ->
    case {witness_trace_native:available(), Options} of
        {ok, _} -> Options#{source => native, warnings => []};
        {{error, Reason}, #{source := native}} -> throw_error({source_unavailable, Reason});
        {{error, Reason}, _} ->
            Options#{source => evm,
                     warnings => [#{code => no_native,
                                    text => unicode:characters_to_binary(["events come from the tracing of the VM (evm), since "
                                                                          "the native source is not available: ", Reason])}]}
    end.

check_system({M, F, Args}) when is_atom(M), is_atom(F), is_list(Args) -> check_callable(M, F, length(Args));
check_system({application, App}) when is_atom(App) ->
    case witness_run_application:check(App) of
        ok -> ok;
        {error, _} = Error -> throw(Error)
    end;
check_system({log, standard_input}) -> ok;
check_system({log, {replay, #{dir := _}}}) -> ok;
check_system({log, {Kind, Name}}) when Kind =:= file orelse Kind =:= recording, is_list(Name) orelse is_binary(Name) -> ok;
check_system(node) -> ok;
check_system({children, [_ | _] = Parents}) ->
    lists:all(fun is_parent/1, Parents)
        orelse throw_bad_option(system, "{children, Parents} with processes of this node, each alone or as {Process, {Module, Function, Arguments}}"),
    ok;
check_system({attach, [_ | _] = Targets}) -> lists:foreach(fun check_target/1, Targets);
check_system(_) ->
    {ok, Option} = witness_option:find(system, witness_option_schema:run()),
    throw_bad_option(system, witness_option:expected(Option)).

is_parent({P, {M, F, Args}}) when is_atom(M), is_atom(F), is_list(Args) -> is_parent(P);
is_parent(P) -> is_pid(P) andalso node(P) =:= node().

check_target(P) when is_pid(P), node(P) =:= node() -> ok;
check_target({application, App}) when is_atom(App) -> ok;
check_target(Name) when is_atom(Name) -> ok;
check_target(_) ->
    throw_bad_option(system, "{attach, Targets} with processes of this node, registered names and {application, App}").

check_monitor({_, {Monitor, _}}) ->
    case witness_monitor:check(Monitor) of
        ok -> ok;
        {error, _} = Error -> throw(Error)
    end.

-spec throw_bad_option(atom(), string()) -> no_return().
throw_bad_option(Key, What) -> throw({error, {witness_option, {bad_option, Key, What}}}).

-spec throw_error(reason()) -> no_return().
throw_error(Reason) -> throw({error, {?MODULE, Reason}}).

check_callable(M, F, Arity) ->
    case code:ensure_loaded(M) of
        {module, M} ->
            erlang:function_exported(M, F, Arity) orelse erlang:is_builtin(M, F, Arity) orelse
                throw_error({undefined_function, {M, F, Arity}, [A || {G, A} <- M:module_info(exports), G =:= F]}),
            ok;
        {error, Reason} ->
            throw_error({undefined_module, M, Reason})
    end.

-doc "A reason as text.".
-spec format_error(reason()) -> unicode:chardata().
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
format_error({not_attached_checks, Checks}) ->
    ["option checks: of a system that the run does not start there are only ", names(witness_check:attached_checks()),
     [["; not ", atom_to_binary(Check), ", since ", witness_check:why_not_attached(Check)] || Check <- Checks]];
format_error({source_unavailable, Reason}) ->
    ["the native source of events is not available: ", Reason];
format_error({undefined_module, M, Reason}) ->
    io_lib:format("the module ~ts cannot be loaded (~ts); is its folder on the code path (--pa)?", [witness_text:name(M, ?NAME_CHARS), Reason]);
format_error({undefined_function, {M, F, A}, []}) ->
    io_lib:format("the module ~ts does not export ~ts/~w", [witness_text:name(M, ?NAME_CHARS), F, A]);
format_error({undefined_function, {M, F, A}, Arities}) ->
    io_lib:format("the module ~ts does not export ~ts/~w, but ~ts",
                  [witness_text:name(M, ?NAME_CHARS), F, A, lists:join(", ", [io_lib:format("~ts/~w", [F, B]) || B <- Arities])]).

names(Names) -> witness_text:list([atom_to_binary(Name) || Name <- Names]).
