-module(witness_remote).
-moduledoc """
Attaches to a node where Witness is not installed: observes the node, and leaves it as it was.

```erlang
1> {ok, Cookie} = witness_remote_connection:read_cookie("shop.cookie").
2> {ok, Run} = witness_remote:start(#{node => 'shop@host', cookie => Cookie, watch => [{name, "checkout"}]},
                                    #{specs => ["checkout.hml"]}).
3> witness:stop(Run).
```

Specifications are compiled here. The modules that a run over the source `evm` needs are loaded into the target under
names that cannot clash (`m:witness_remote_bundle`). A process there loads them and always removes them again
(`m:witness_remote_cleaner`). Another process owns the run (`m:witness_remote_guard`), and reports its results
to a process here (`m:witness_remote_run`), which is the run for `m:witness`'s functions.

The target needs Erlang/OTP 27 or later, and nothing else. `docs/internals/remote.md` has the life of an attachment.
""".

-export([start/2, objects/1, format_error/1]).

-export_type([target/0, reason/0]).

-doc """
The target of an attachment. `lease`: milliseconds without a message from here, after which the target cleans up (default 20,000).
It covers an unreported loss of the connection, and a tool that hangs. `on_leaving` is given lines about the progress of the
clean-up, if there are many processes. The names in `watch` are those of the target;
without `watch` the whole node is observed.
""".
-type target() :: #{node := node(), cookie := atom(), watch => [{application | name | pid, string()}],
                    lease => pos_integer(), on_leaving => fun((unicode:chardata()) -> term())}.

-define(DEFAULT_LEASE_MS, 20_000).

-doc """
- `{remote, Text}`: the target cannot be reached, or cannot be attached to;
- `{lost, Text}`: the attachment had begun, and was lost;
- `{no_object_code, Module}`: a module that the target needs is not on the code path here.
""".
-type reason() :: {remote | lost, unicode:chardata()} | {no_object_code, module()}.

%% The modules that the target needs for a run over `evm': these, and those that they name, directly or not.
-define(ROOTS, [witness_remote_guard, witness_run, witness_trace_evm]).

%% The modules that it does not need: the compiler of specifications, the other sources of events, reading and writing of logs,
%% weaving, and the start of an installed Witness.
-define(EXCLUDED, [witness_app, witness_sup, witness_remote_exports, witness_spec, witness_log_writer, witness_monitor_log,
                   witness_inline, witness_inline_coordinator, witness_inline_tree_watch, witness_inline_modules,
                   witness_inline_monitors, witness_inline_birth_table, witness_inline_process, witness_offline_shard,
                   witness_outline_dispatcher, witness_outline_shard, witness_offline,
                   witness_record_runtime, witness_run_replay, witness_search_applications, witness_trace_native, witness_weave,
                   witness_weave_loader]).

%% The module that is called first; the merged module has its name.
-define(GUARD, witness_remote_guard).

%% This atom is also the name of the application, and a word in reports.
-define(APPLICATION, witness).

-doc """
Attaches, with those options of `witness:start/1` that apply to a system that runs elsewhere: `specs` are files
here, `monitors` are not supported yet, `checks` are those of processes that run already (docs/checks.md), and the source is `evm`. The result can be given to `witness:await/2`,
`witness:stop/1` and `witness:info/1`. The errors are `{witness_remote, Reason}` and those of `witness:start/1`; nothing is left at
the target then.
""".
-spec start(target(), map()) -> {ok, witness:run()} | {error, witness:error()}.
start(Target = #{node := Node, cookie := Cookie}, Given) ->
    maybe
        {ok, Options} ?= witness_options:signatures(Given),
        {ok, Checks} ?= checks(Options),
        ok ?= witness_remote_connection:open(Node, Cookie),
        ok ?= witness_remote_connection:check_release(Node),
        ok = hide_structs(Node),
        {ok, System} ?= system(Target, Options),
        {ok, Specs, Compiled, Warnings} ?= compile(Node, Options),
        {ok, All} ?= objects(Compiled),
        Names = [M || {M, _} <- All],
        Objects = merge_objects(All, Compiled, Checks),
        ok ?= witness_remote_connection:check_modules(Node, external_modules(Objects, Names)),
        witness_remote_run:start(#{
            node => Node, lease => maps:get(lease, Target, ?DEFAULT_LEASE_MS), objects => Objects, names => Names,
            absent => ?EXCLUDED, specs => Specs, warnings => Warnings, owner => self(),
            on_leaving => maps:get(on_leaving, Target, fun(_) -> ok end),
            on_verdict => maps:get(on_verdict, Options, fun(_) -> ok end),
            options => (maps:without([specs, include, on_verdict, owner], Options))#{system => System}})
    end.

%% Structs of the target hide their fields here, if their authors implement `Inspect`: their code need not be on this node's path.
hide_structs(Node) ->
    case witness_remote_connection:call(Node, code, all_available, []) of
        {ok, Modules} when is_list(Modules) ->
            witness_event_inspect_hidden:add([list_to_binary(Name) || {"Elixir.Inspect." ++ _ = Name, _, _} <- Modules,
                                                                      io_lib:latin1_char_list(Name)]);
        _ -> ok
    end.

%% What cannot be had is refused before anything is sent.
checks(Options) ->
    Checks = maps:get(checks, Options, []),
    case witness_options:check_checks(maps:get(system, Options, node), Checks) of
        ok -> {ok, Checks};
        {error, _} = Error -> Error
    end.

system(_, #{system := System}) -> {ok, System};
system(#{node := Node, watch := [_ | _] = Watched}, _) -> resolve(Watched, Node, []);
system(_, _) -> {ok, node}.

resolve([], _, Targets) -> {ok, {attach, lists:reverse(Targets)}};
resolve([{Kind, Text} | Watched], Node, Targets) ->
    case {Kind, resolve_target(Kind, Node, Text)} of
        {application, {ok, App}} -> resolve(Watched, Node, [{application, App} | Targets]);
        {_, {ok, Target}} -> resolve(Watched, Node, [Target | Targets]);
        {_, {error, {?MODULE, {lost, _}}} = Lost} -> Lost;
        {_, {error, _}} ->
            {error, {?MODULE, {remote, ["at ", atom_to_binary(Node), " there is no ", format_kind(Kind), " ", Text]}}}
    end.

%% A name that is not an atom at the target is registered for no process there, and does not become an atom.
resolve_target(pid, Node, Text) -> witness_remote_connection:call(Node, erlang, list_to_pid, [Text]);
resolve_target(_, Node, Text) -> witness_remote_connection:call(Node, erlang, list_to_existing_atom, [Text]).

format_kind(application) -> "application";
format_kind(name) -> "process that is registered as";
format_kind(pid) -> "process".

-doc "The modules that are loaded into a target with these specifications.".
-spec objects([witness_remote_bundle:object()]) -> {ok, [witness_remote_bundle:object()]} | {error, {?MODULE, reason()}}.
objects(Specs) ->
    case witness_remote_bundle:closure(?ROOTS ++ Specs, [?APPLICATION | ?EXCLUDED]) of
        {ok, _} = Found -> Found;
        {error, Reason} -> {error, {?MODULE, Reason}}
    end.

%% Modules of OTP that the bundle calls. Libraries that are used only if present may be missing.
external_modules(Objects, Names) ->
    lists:usort(lists:append([called_modules(Object) || {_, Object} <- Objects]))
        -- (Names ++ [?APPLICATION, telemetry | ?EXCLUDED]).

called_modules(Object) -> lists:usort([M || {M, _, _} <- witness_remote_bundle:imports(Object)]).

%% Everything in one module, except the specifications, the modules that these call by name, and the monitors of checks, which are
%% there only if they are asked for. Without debug information modules stay separate: it takes longer to leave the target then.
merge_objects(All, Specs, Checks) ->
    Monitors = check_monitors(witness_check:attached_checks()),
    Named = check_monitors(Checks),
    Separate = separate_objects(Specs ++ [Object || {M, _} = Object <- All, lists:member(M, Named)], maps:from_list(All), #{}),
    Rest = [Object || {M, _} = Object <- All, not lists:keymember(M, 1, Specs), not lists:member(M, Monitors)],
    case merge_cached(Rest) of
        {ok, Merged} -> [Merged | maps:to_list(Separate)];
        {error, {no_debug_info, _}} -> All
    end.

check_monitors(Checks) -> [Monitor || {_, {Monitor, _}} <- witness_check:monitors(Checks)].

separate_objects([], _, Separate) -> Separate;
separate_objects([{M, _} | Objects], All, Separate) when is_map_key(M, Separate) -> separate_objects(Objects, All, Separate);
separate_objects([{M, Object} | Objects], All, Separate) ->
    separate_objects([{C, map_get(C, All)} || C <- called_modules(Object), is_map_key(C, All)] ++ Objects, All,
                     Separate#{M => Object}).

%% Merging takes some seconds, and the result is the same for all specifications.
merge_cached(Objects) ->
    Merge = fun() -> witness_remote_merge:merge(?GUARD, [{init, 3}], Objects) end,
    Of = {witness_remote_merge:module_info(md5), compile:module_info(md5), erlang:md5(term_to_binary(lists:sort(Objects)))},
    witness_weave_cache:stored({?MODULE, Of}, witness_weave_cache:default_dir(), Merge).

%% Compiles each under a name of its own, which no module of this node has.
compile(Node, Options = #{signatures := Rows}) ->
    Compile = (maps:merge(maps:with([include, max_obligations, max_state], Options), witness_run_start:receives(Options)))#{
        exports => witness_event_wrapper:exports(fun(M) -> exports(Node, M) end, Rows),
        attach => not is_map_key(system, Options), central => maps:get(instrument, Options, outline) =:= central},
    Files = lists:enumerate(maps:get(specs, Options, [])),
    compile(Files, Compile, [], [], []).

compile([], _, Specs, Objects, Warnings) -> {ok, lists:reverse(Specs), Objects, Warnings};
compile([{Number, File} | Files], Options, Specs, Objects, Warnings) ->
    Module = binary_to_atom(<<"witness_remote_spec_", (integer_to_binary(Number))/binary>>),
    case witness_spec:to_object(File, Module, Options) of
        {ok, {Map, Object}, Diagnostics} ->
            New = [#{code => specification, text => witness_spec:format_diagnostic(D)} || D <- Diagnostics],
            compile(Files, Options, [Map | Specs], [{Module, Object} | Objects], Warnings ++ New);
        {error, _} = Error -> Error
    end.

%% The functions of the target; if it does not answer, there is no warning.
exports(Node, Module) ->
    try
        witness_remote_exports:of_module(Module, fun(M, F, Args) ->
            {ok, Result} = witness_remote_connection:call(Node, M, F, Args),
            Result
        end)
    catch
        error:{badmatch, {error, _}} -> []
    end.

-doc "A reason as text.".
-spec format_error(reason()) -> unicode:chardata().
format_error({remote, Text}) -> Text;
format_error({lost, Text}) -> Text;
format_error({no_object_code, Module}) -> ["the object code of ", atom_to_binary(Module), " is not on the code path"].
