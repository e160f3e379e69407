-module(witness_run_inline).
-moduledoc "Makes inline instrumentation from the options of a run.".

-export([start_link/4, is_each_told/2, format_error/1]).

-doc """
Starts the instrumentation of a run, which is the calling process; `Life` starts the process that watches the life of the system.

## Errors

- `{inline, Text}`: text for people;
- `{weave, Reason}`: a module cannot be woven, or cannot be loaded;
- `{observed, Module, Host}`: another run observes the module.
""".
-spec start_link(witness_options:options(), [witness_spec:instrumentation_map()], Common :: map(),
                 fun(() -> witness_inline_coordinator:life())) ->
    {ok, {module(), pid(), fun(() -> map())}} | {error, term()}.
start_link(Options, Specs, #{names := Names, monitors := Monitors} = Common, Life) ->
    #{weave := Weave, scope := Scope} = Options,
    maybe
        ok ?= alone(Specs),
        {ok, Chosen} ?= witness_inline_modules:choose(Weave, Names, modules(Options), [M || {M, _} <- Monitors]),
        Config = maps:merge(maps:with([timestamps, explain, max_slices, slice_idle], Options),
                            maps:with([run, maps], Common)),
        {ok, Host} ?= witness_inline_coordinator:start_link(maps:merge(Config#{life => Life, scope => Scope, monitors => Monitors,
                                                                       each => is_each_told(Options, 0)},
                                                                Chosen)),
        {ok, {witness_inline_coordinator, Host, witness_inline_coordinator:counts(Host)}}
    end.

%% An inline monitor sees only the process that it runs in.
alone(Specs) ->
    case [{File, Line} || #{file := File, entries := Entries} <- Specs, #{group := true, line := Line} <- Entries] of
        [] -> ok;
        [{File, Line} | _] ->
            {error, {inline, [witness_text:clean(File), $:, integer_to_list(Line), ": a group reads several processes, and "
                              "an inline monitor only the one that it runs in: instrument it as outline or central"]}}
    end.

modules(#{system := {Module, _, _}}) -> [Module];
modules(#{system := {application, App}}) ->
    _ = application:load(App),
    case application:get_key(App, modules) of
        {ok, Modules} -> lists:sublist(Modules, 1);
        undefined -> []
    end;
modules(_) -> [].

-doc """
Whether each verdict must be reported by itself when `Kept` verdicts are kept. Subscribers and telemetry also need each
verdict, but are not known here.
""".
-spec is_each_told(witness_options:options(), Kept :: non_neg_integer()) -> boolean().
is_each_told(#{max_verdicts := Max, on_verdict := Callback, satisfied := Satisfied, history := History}, Kept) ->
    Kept < Max orelse (Callback =/= undefined andalso Satisfied =:= told) orelse History.

-doc "An error for people.".
-spec format_error(term()) -> unicode:chardata().
format_error({inline, Text}) -> Text;
format_error({weave, {owned, Module, _}}) -> [name(Module), " is woven for another run already"];
format_error({weave, Reason}) ->
    [witness_weave:format_error(Reason), " (which modules are to be woven says the option weave)"];
format_error({observed, Module, Host}) ->
    io_lib:format("~ts is observed by another run already (~tp)", [name(Module), Host]).

name(Module) -> witness_event:format_term(Module, 200).
