-module(witness_remote).
-moduledoc """
Attaches to a node where Witness is not installed: watches it, and leaves it as it was.

```erlang
1> {ok, Cookie} = witness_remote_connection:cookie("shop.cookie").
2> {ok, Run} = witness_remote:start(#{node => 'shop@host', cookie => Cookie, watch => [{name, "checkout"}]},
                                    #{specs => ["checkout.hml"]}).
3> witness:stop(Run).
```

Specifications are compiled here. What a run over the source `evm` needs of Witness is loaded into the target under
names that cannot clash (`m:witness_remote_bundle`), by a process there that also removes it again, whatever happens
(`m:witness_remote_cleaner`); the run itself belongs to another one (`m:witness_remote_guard`), which tells what it
finds to a process here (`m:witness_remote_run`), the run of `m:witness`'s functions.

The target needs Erlang/OTP 27 or later, and nothing else. `docs/internals/remote.md` has the life of an attachment.
""".

-export([start/2, objects/1, format_error/1]).

-export_type([target/0]).

-doc """
Where to attach to. `lease`: milliseconds after which the target cleans up if it hears nothing from here, 20,000 without
it: a connection whose loss nobody is told of, and a tool that stands still. `on_leaving` is given lines that say how far the
clean-up is, if there are many processes. What to `watch` is named as the target
names it; without a name it is the whole node.
""".
-type target() :: #{node := node(), cookie := atom(), watch => [{application | name | pid, string()}],
                    lease => pos_integer(), on_leaving => fun((unicode:chardata()) -> term())}.

-define(LEASE, 20_000).

%% What the target needs for a run over `evm': what these name, directly or not.
-define(ROOTS, [witness_remote_guard, witness_run, witness_trace_evm]).

%% But not the compiler of specifications, the other sources of events, what reads and writes logs, what weaves modules, and
%% what starts Witness where it is installed.
-define(CUT, [witness_app, witness_sup, witness_exports, witness_spec, witness_log_writer, witness_monitor_log,
              witness_inline, witness_inline_host, witness_inline_life, witness_inline_modules, witness_inline_monitors,
              witness_inline_notes, witness_inline_process, witness_monitor_lane, witness_outline_births, witness_outline_lane,
              witness_outline_offline, witness_reading, witness_record_runtime, witness_replaying, witness_trace_native,
              witness_weave, witness_weave_keeper]).

%% What is called first, whose name the merged module has.
-define(GUARD, witness_remote_guard).

%% This is also the name of the application, and a word in reports.
-define(WORD, witness).

-doc """
Attaches, with the options of `witness:start/1` as far as they are for a system that runs elsewhere: `specs` are files
here, `monitors` are not there yet, and the source is `evm`. The result can be given to `witness:await/2`,
`witness:stop/1` and `witness:info/1`. An error is for `format_error/1`; nothing is left at the target then.
""".
-spec start(target(), map()) -> {ok, witness:run()} | {error, term()}.
start(Target = #{node := Node, cookie := Cookie}, Options) ->
    maybe
        ok ?= witness_remote_connection:open(Node, Cookie),
        ok ?= witness_remote_connection:check(Node),
        {ok, System} ?= system(Target, Options),
        {ok, Specs, Compiled, Warnings} ?= compile(Node, Options),
        {ok, All} ?= objects(Compiled),
        Names = [M || {M, _} <- All],
        Objects = few(All, Compiled),
        ok ?= witness_remote_connection:has(Node, external(Objects, Names)),
        witness_remote_run:start(#{
            node => Node, lease => maps:get(lease, Target, ?LEASE), objects => Objects, names => Names, absent => ?CUT,
            specs => Specs, warnings => Warnings, owner => self(),
            on_leaving => maps:get(on_leaving, Target, fun(_) -> ok end),
            on_verdict => maps:get(on_verdict, Options, fun(_) -> ok end),
            options => (maps:without([specs, include, on_verdict, owner], Options))#{system => System}})
    end.

system(_, #{system := System}) -> {ok, System};
system(#{node := Node, watch := [_ | _] = Watched}, _) -> resolve(Watched, Node, []);
system(_, _) -> {ok, node}.

resolve([], _, Targets) -> {ok, {attach, lists:reverse(Targets)}};
resolve([{Kind, Text} | Watched], Node, Targets) ->
    case {Kind, there(Kind, Node, Text)} of
        {application, {ok, App}} -> resolve(Watched, Node, [{application, App} | Targets]);
        {_, {ok, Target}} -> resolve(Watched, Node, [Target | Targets]);
        {_, {error, {lost, _}} = Lost} -> Lost;
        {_, {error, _}} ->
            {error, {remote, ["at ", atom_to_binary(Node), " there is no ", kind(Kind), " ", Text]}}
    end.

%% A name that is no atom at the target is nobody's there, and does not become one.
there(pid, Node, Text) -> witness_remote_connection:call(Node, erlang, list_to_pid, [Text]);
there(_, Node, Text) -> witness_remote_connection:call(Node, erlang, list_to_existing_atom, [Text]).

kind(application) -> "application";
kind(name) -> "process that is registered as";
kind(pid) -> "process".

-doc "The modules that are loaded into a target with these specifications.".
-spec objects([witness_remote_bundle:object()]) -> {ok, [witness_remote_bundle:object()]} | {error, term()}.
objects(Specs) -> witness_remote_bundle:closure(?ROOTS ++ Specs, [?WORD | ?CUT]).

%% Modules of OTP that the bundle calls. Libraries that it only uses where they are need not be there.
external(Objects, Names) ->
    lists:usort(lists:append([called(Object) || {_, Object} <- Objects])) -- (Names ++ [?WORD, telemetry | ?CUT]).

called(Object) -> lists:usort([M || {M, _, _} <- witness_remote_bundle:imports(Object)]).

%% Everything in one module, but for the specifications, and what these call, which they have by its own name. Without debug
%% information modules stay what they are: it takes longer to leave the target then.
few(All, Specs) ->
    Apart = apart(Specs, maps:from_list(All), #{}),
    Rest = [Object || {M, _} = Object <- All, not is_map_key(M, maps:from_list(Specs))],
    case merged(Rest) of
        {ok, Merged} -> [Merged | maps:to_list(Apart)];
        {error, {no_debug_info, _}} -> All
    end.

apart([], _, Apart) -> Apart;
apart([{M, _} | Objects], All, Apart) when is_map_key(M, Apart) -> apart(Objects, All, Apart);
apart([{M, Object} | Objects], All, Apart) ->
    apart([{C, map_get(C, All)} || C <- called(Object), is_map_key(C, All)] ++ Objects, All, Apart#{M => Object}).

%% It takes some seconds, and is the same for all specifications.
merged(Objects) ->
    Key = {?MODULE, erlang:md5(term_to_binary(lists:sort(Objects)))},
    case persistent_term:get(Key, none) of
        none ->
            Result = witness_remote_merge:merge(?GUARD, [{init, 3}], Objects),
            persistent_term:put(Key, Result),
            Result;
        Result -> Result
    end.

%% Each under a name of its own, which is none of this node's.
compile(Node, Options) ->
    Compile = (maps:with([include, max_obligations], Options))#{exports => fun(M) -> exports(Node, M) end,
                                                                    attach => not is_map_key(system, Options),
                                                                    central => maps:get(instrument, Options, outline) =:= central},
    Files = lists:enumerate(maps:get(specs, Options, [])),
    compile(Files, Compile, [], [], []).

compile([], _, Specs, Objects, Warnings) -> {ok, lists:reverse(Specs), Objects, Warnings};
compile([{Number, File} | Files], Options, Specs, Objects, Warnings) ->
    Module = binary_to_atom(<<"witness_remote_spec_", (integer_to_binary(Number))/binary>>),
    case witness_spec:to_object(File, Module, Options) of
        {ok, {Map, Object}, Diagnostics} ->
            New = [#{code => specification, text => witness_spec:format_diagnostic(D)} || D <- Diagnostics],
            compile(Files, Options, [Map | Specs], [{Module, Object} | Objects], Warnings ++ New);
        {error, Diagnostics} -> {error, {specification, Diagnostics}}
    end.

%% What the target has; if it does not say, there is nothing to warn of.
exports(Node, Module) ->
    try
        witness_exports:of_module(Module, fun(M, F, Args) ->
            {ok, Result} = witness_remote_connection:call(Node, M, F, Args),
            Result
        end)
    catch
        error:{badmatch, {error, _}} -> []
    end.

-doc "An error of `start/2` for people. `{lost, _}`: the attachment has begun, and was broken off.".
-spec format_error(term()) -> unicode:chardata().
format_error({remote, Text}) -> Text;
format_error({lost, Text}) -> Text;
format_error({no_object_code, Module}) -> ["the object code of ", atom_to_binary(Module), " is not on the code path"];
format_error(Reason) -> witness:format_error(Reason).
