-module(witness_inline_modules).
-moduledoc """
Which modules a run weaves, and the functions of them that its processes may start with.

By default, these are the modules in the folders of those that the signatures name and of the system's own modules. To these come
the *dependencies*: all other modules that these name, directly or not, if the code path has them and they could send, receive
or spawn for a process (`m:witness_inline_reach`). A dependency that cannot be woven is left out, and watched
(`m:witness_inline_outside`).

## Errors

`{weave, Reason}` (`witness_weave:format_error/1`): a module that is not a dependency cannot be woven. Only the user can decide to
leave it out. `{inline, Text}`: text for people. `{functions, Refused}` (`t:refusal/0`): a function that a monitor names would not
report its calls.
""".

-export([choose/6, prepare/2, prepare_possible/2]).
-export_type([weave/0, chosen/0, refusal/0]).

-doc """
What the user chooses. `default`: the folders of the modules that the signatures name, and of the system's own, with their
dependencies, but not those of OTP, Elixir and Witness.
""".
-type weave() :: default | [module() | {application, atom()}].

-doc """
Modules to be woven, with their entry functions; the dependencies, which are woven if they can be; the modules that were woven by
their compiler; and the facts about modules that were found on the way.
""".
-type chosen() :: #{modules := [{module(), witness_inline_plan:entries()}],
                    dependencies := [{module(), witness_inline_plan:entries()}],
                    woven := [module()], facts := #{module() => witness_inline_reach:facts()}}.

-doc """
Why a function reports no calls: there is no such module, or no such function in its code; the module is not woven, or its compiler
has woven it (`m:witness_inline`).
""".
-type refusal() :: {mfa(), no_module | no_function | not_woven | woven_by_compiler}.

-define(RUNTIME, witness_inline_process).

-doc """
The modules of a run, by the signatures of its monitors, and the modules that its system starts with. `Wrappers`: functions that
processes with other signatures start with (`m:witness_event_wrapper`). The monitors' own modules do not belong to the system.
`Functions`: what the monitors name. By default their modules are woven too.
""".
-spec choose(weave(), [witness_inline_plan:pattern()], Wrappers :: [mfa()], System :: [module()], Monitors :: [module()],
             Functions :: [mfa()]) ->
    {ok, chosen()} | {error, {inline, unicode:chardata()} | {weave, witness_weave_error:reason()} | {functions, [refusal(), ...]}}.
choose(Weave, Patterns, Wrappers, System, Monitors, Functions) ->
    Starts = Patterns ++ Wrappers,
    maybe
        {ok, Found} ?= find_modules(Weave, lists:usort([M || {M, _, _} <- Patterns, M =/= '_'] ++ System), Monitors),
        Named = lists:usort(Found ++ modules_of_functions(Weave, Functions, Monitors)),
        {Woven, Modules} = lists:partition(fun is_woven/1, Named),
        Facts = dependencies(Weave, Named, Monitors),
        Dependencies = [M || M := #{acts := true} <- Facts, not lists:member(M, Named)],
        ok ?= check_not_empty(Named, Weave),
        ok ?= check_entries(Woven, Starts),
        Served = [{M, witness_weave_behaviour:entries(M)}
                  || M <- witness_weave_behaviour:servers(imports_of(Named ++ Dependencies)), not lists:member(M, Named),
                     %% If Elixir is not there, such a call fails anyway.
                     code:which(M) =/= non_existing],
        ok ?= check_all_woven(lists:usort([M || {M, _, _} <- Patterns]), Named ++ [M || {M, _} <- Served]),
        ok ?= check_functions(Functions, Modules ++ [M || {M, _} <- Served], Woven),
        {ok, #{modules => Served ++ [{M, witness_inline_plan:entries(M, Starts, [])} || M <- Modules], woven => Woven,
               dependencies => [{M, witness_inline_plan:entries(M, Starts, [])} || M <- Dependencies], facts => Facts}}
    end.

%% A monitor's own module does not belong to the system. A module that the user names is woven in any case.
dependencies(default, Named, Monitors) ->
    witness_inline_reach:reachable(Named, maps:without(Monitors, witness_inline_reach:on_path(witness_inline_reach:not_foreign())),
                                   #{});
dependencies(_, _, _) -> #{}.

%% A module of these that is only a dependency could be left out.
modules_of_functions(default, Functions, Monitors) ->
    NotForeign = witness_inline_reach:not_foreign(),
    [M || M <- lists:usort([M || {M, _, _} <- Functions]), not lists:member(M, Monitors),
          witness_inline_reach:is_foreign(M, code:which(M), NotForeign)];
modules_of_functions(_, _, _) -> [].

%% What a function does not report, no other part of the run can see. The functions of a module are those of its source: an exported
%% one that the compiler has added reports nothing.
check_functions(Functions, Modules, Woven) ->
    Named = maps:groups_from_list(fun({M, _, _}) -> M end, Functions),
    maybe
        {ok, Forms} ?= forms_of([M || M := _ <- Named, lists:member(M, Modules)], #{}),
        [] ?= [{Function, Why} || {M, _, _} = Function <- Functions, Why <- refused(Function, Forms, lists:member(M, Woven))],
        ok
    else
        {error, _} = Error -> Error;
        Refused -> {error, {functions, Refused}}
    end.

forms_of([], Found) -> {ok, Found};
forms_of([M | Modules], Found) ->
    case witness_weave:forms(M) of
        {ok, Forms, _} -> forms_of(Modules, Found#{M => Forms});
        {error, Reason} -> {error, {weave, Reason}}
    end.

refused(_, _, true) -> [woven_by_compiler];
refused({M, F, A}, Forms, false) ->
    case Forms of
        #{M := Code} -> [no_function || not witness_weave_forms:defines(Code, F, A)];
        #{} -> [case code:which(M) of non_existing -> no_module; _ -> not_woven end]
    end.

find_modules(default, Known, Monitors) ->
    NotForeign = witness_inline_reach:not_foreign(),
    Folders = lists:usort([filename:dirname(File) || M <- Known, File <- [code:which(M)], is_list(File), File =/= ""]),
    {ok, lists:usort([M || Folder <- Folders, not witness_inline_reach:is_library(Folder, NotForeign),
                           File <- filelib:wildcard("*.beam", Folder), M <- [list_to_atom(filename:rootname(File))],
                           not lists:member(M, Monitors), not witness_inline_reach:is_own(M, NotForeign)])};
find_modules(Weave, _, _) ->
    Modules = [case Of of {application, App} -> modules(App); M -> [M] end || Of <- Weave],
    case [App || {{application, App}, unknown} <- lists:zip(Weave, Modules)] of
        [] -> {ok, lists:usort(lists:append(Modules))};
        [App | _] -> {error, {inline, io_lib:format("option weave: there is no application ~tp", [App])}}
    end.

modules(App) ->
    _ = application:load(App),
    case application:get_key(App, modules) of
        {ok, Modules} -> Modules;
        undefined -> unknown
    end.

%% To ask for the modules of runs may restore those of an earlier one. So the answer for a module that is woven is computed twice.
is_woven(Module) ->
    _ = code:ensure_loaded(Module),
    is_woven_for_no_run(Module) andalso is_woven_for_no_run(Module).

is_woven_for_no_run(Module) ->
    witness_weave:woven(Module) =:= {ok, ?RUNTIME} andalso not is_map_key(Module, loaded_for_runs()).

%% Modules that are woven for other runs were not woven by their compiler.
loaded_for_runs() ->
    case witness_weave_loader:status() of
        {error, not_started} -> #{};
        Kept -> Kept
    end.

check_not_empty([_ | _], _) -> ok;
check_not_empty([], default) ->
    {error, {inline, "there is no module to be woven: neither the specifications nor the system name one that is not OTP's, "
                     "Elixir's or Witness's; name them " ++ option_text()}};
check_not_empty([], _) -> {error, {inline, "option weave: no module is named"}}.

%% Processes of a module that is not woven would silently not be monitored. A `gen_event' manager starts being monitored when
%% its first woven handler is added. A module that does not exist is reported elsewhere.
check_all_woven(Patterns, Woven) ->
    case [M || M <- Patterns -- ['_', gen_event], not lists:member(M, Woven), is_list(code:which(M)), not is_woven(M)] of
        [] -> ok;
        [M | _] ->
            {error, {inline, [name(M), " is named by a specification or monitor, but is not woven: name it, too, ", option_text()]}}
    end.

option_text() -> "with the option weave".

%% A module that was woven for other specifications may have other entry functions than these need.
check_entries(Woven, Patterns) ->
    case [{M, F, A} || M <- Woven,
                       {F, A} <- missing(witness_inline_plan:entries(M, Patterns, []), witness_inline_plan:compiled_entries(M))] of
        [] -> ok;
        [{M, F, A} | _] ->
            {error, {inline, io_lib:format("~ts was woven when it was compiled, but not for processes that begin with ~ts: "
                                           "name that in the options of witness_inline",
                                           [name(M), case F of all -> "any of its functions"; _ -> function(M, F, A) end])}}
    end.

missing(_, all) -> [];
missing(all, _) -> [{all, 0}];
missing(Entries, Woven) -> Entries -- Woven.

name(Module) -> witness_event:format_term(Module, 200).
function(M, F, A) -> witness_event:format_function({M, F, A}).

imports_of(Modules) ->
    lists:usort([Imported || M <- Modules, {M1, Code, _} <- [code:get_object_code(M)], M1 =:= M,
                             {ok, {_, [{imports, Imports}]}} <- [beam_lib:chunks(Code, [imports])],
                             {Imported, _, _} <- Imports]).

-doc "Weaves and compiles the modules, several at a time. The error is that of the first module that has one.".
-spec prepare([{module(), witness_inline_plan:entries()}], witness_inline_plan:functions()) ->
    {ok, [witness_weave:prepared()]} | {error, {weave, term()}}.
prepare(Modules, Functions) -> prepare(Modules, #{woven => [M || {M, _} <- Modules]}, Functions, []).

-doc "Weaves and compiles those modules that can be.".
-spec prepare_possible([{module(), witness_inline_plan:entries()}], witness_inline_plan:functions()) -> [witness_weave:prepared()].
prepare_possible(Modules, Functions) ->
    lists:append([case prepare([One], Functions) of {ok, Prepared} -> Prepared; {error, _} -> [] end || One <- Modules]).

prepare([], _, _, Prepared) -> {ok, lists:reverse(Prepared)};
prepare(Modules, Plan, Functions, Prepared) ->
    {Now, Later} = lists:split(min(length(Modules), erlang:system_info(schedulers_online)), Modules),
    case results([worker(M, maps:merge(Plan, witness_inline_plan:new(Entries, Functions))) || {M, Entries} <- Now], Prepared) of
        {ok, More} -> prepare(Later, Plan, Functions, More);
        {error, Reason} -> {error, {weave, Reason}}
    end.

worker(Module, Plan) ->
    Caller = self(),
    spawn_monitor(fun() -> Caller ! {self(), witness_weave:prepare(Module, Plan)} end).

results([], Prepared) -> {ok, Prepared};
results([{Pid, Ref} | Workers], Prepared) ->
    Result = receive
        {Pid, Answer} -> demonitor(Ref, [flush]), Answer;
        {'DOWN', Ref, process, Pid, Reason} -> exit(Reason)
    end,
    %% Every worker answers.
    Others = results(Workers, Prepared),
    case {Result, Others} of
        {{ok, One}, {ok, More}} -> {ok, [One | More]};
        {{error, _}, _} -> Result;
        {_, Error} -> Error
    end.
