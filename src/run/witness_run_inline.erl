-module(witness_run_inline).
-moduledoc "Makes inline instrumentation from the options of a run.".

-export([start_link/4, needs_each_verdict/2, format_error/1]).

-export_type([error/0]).

-doc """
Why a system cannot be instrumented inline.

- `{inline, Text}`: text for people;
- `{weave, Reason}`: a module cannot be woven, or cannot be loaded;
- `{observed, Module, Host}`: another run observes the module;
- `{functions, Refused}`: these functions report no calls. The run says why, with the places of properties.
""".
-type reason() :: {inline, unicode:chardata()} | {weave, witness_weave_error:reason()} | {observed, module(), Host :: pid()}
                | {functions, [witness_inline_modules:refusal(), ...]}.

-type error() :: {?MODULE, reason()}.

-doc """
Starts the instrumentation of a run, which is the calling process; `StartTreeWatch` starts the process that watches the life of the
system.
""".
-spec start_link(witness_options:options(), [witness_spec:instrumentation_map()], Common :: map(),
                 fun(() -> witness_inline_coordinator:tree_watch())) ->
    {ok, witness_instrument:started()} | {error, error()}.
start_link(Options, Specs, #{names := Names, monitors := Monitors, functions := Functions} = Common, StartTreeWatch) ->
    #{weave := Weave, scope := Scope, signatures := Rows} = Options,
    #{signatures := Table} = Common,
    maybe
        ok ?= check_no_groups(Specs),
        {ok, Chosen} ?= witness_inline_modules:choose(Weave, Names, witness_event_wrapper:functions(Table),
                                                      system_modules(Options) ++ [M || {M, _, _} <- Rows, is_list(code:which(M))],
                                                      [M || {M, _} <- Monitors], lists:sort(maps:keys(Functions))),
        Config = maps:merge(maps:with([timestamps, explain, max_slices, slice_idle], Options),
                            maps:with([run, maps, signatures, functions], Common)),
        {ok, Host} ?= witness_inline_coordinator:start_link(maps:merge(Config#{life => StartTreeWatch, scope => Scope,
                                                                               monitors => Monitors,
                                                                               each => needs_each_verdict(Options, 0)},
                                                                Chosen)),
        {ok, {witness_inline_coordinator, Host, witness_inline_coordinator:counts(Host)}}
    else
        {error, Reason} -> {error, {?MODULE, Reason}}
    end.

%% An inline monitor sees only the process that it runs in.
check_no_groups(Specs) ->
    case [{File, Line} || #{file := File, entries := Entries} <- Specs, #{group := true, line := Line} <- Entries] of
        [] -> ok;
        [{File, Line} | _] ->
            {error, {inline, [witness_text:clean(File), $:, integer_to_list(Line), ": a group reads several processes, and "
                              "an inline monitor only the one that it runs in: instrument it as outline or central"]}}
    end.

system_modules(#{system := {Module, _, _}}) -> [Module];
system_modules(#{system := {application, App}}) ->
    _ = application:load(App),
    case application:get_key(App, modules) of
        {ok, Modules} -> lists:sublist(Modules, 1);
        undefined -> []
    end;
system_modules(_) -> [].

-doc """
Whether each verdict must be reported by itself when `Kept` verdicts are kept. Subscribers and telemetry also need each
verdict, but are not known here.
""".
-spec needs_each_verdict(witness_options:options(), Kept :: non_neg_integer()) -> boolean().
needs_each_verdict(#{max_verdicts := Max, on_verdict := Callback, satisfied := Satisfied, history := History}, Kept) ->
    Kept < Max orelse (Callback =/= undefined andalso Satisfied =:= told) orelse History.

-doc "A reason as text.".
-spec format_error(reason()) -> unicode:chardata().
format_error({inline, Text}) -> Text;
format_error({weave, {owned, Module, _}}) ->
    [name(Module), " is woven for another run already, and only one run at a time can weave a module: tests that are monitored "
     "inline must not run at the same time (in ExUnit: async: false)"];
format_error({weave, Reason}) ->
    [witness_weave:format_error(Reason), " (which modules are to be woven says the option weave)"];
format_error({functions, Refused}) ->
    ["no calls are reported of ", lists:join(", ", [witness_event:format_function(Function) || {Function, _} <- Refused])];
format_error({observed, Module, Host}) ->
    io_lib:format("~ts is observed by another run already (~tp)", [name(Module), Host]).

name(Module) -> witness_event:format_term(Module, 200).
