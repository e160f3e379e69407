-module(witness_record_needs).
-moduledoc """
Which applications of OTP a program uses without naming them: those of the modules that it calls, and that are not in its folders.

If a module of OTP is not woven, the recording cannot be replayed, and this would be known only after the run. So this looks for
such modules before. It starts from the module of the function that is called, and from those in which the applications start.
It follows the names of modules in each module, to other modules of the user's folders. The modules of OTP that these call say
which further applications are woven. If a module calls a function that starts applications, so do the names in it.

A call is not found if its module is only known when it is made. Then the summary of the recording names the application
(`m:witness_record_unwoven`).
""".

-export([apps/1]).

-doc "The applications, in the order of their names, without those that are always woven.".
-spec apps(witness_record:options()) -> [atom()].
apps(#{tracing_only := true}) -> [];
apps(Options) ->
    Dirs = witness_record_code:user(Options),
    %% If several have the same name, the first one is loaded.
    Files = maps:from_list(lists:reverse([{list_to_atom(filename:basename(Name, ".beam")), filename:join(Dir, Name)}
                                          || Dir <- Dirs, Name <- filelib:wildcard("*.beam", Dir)])),
    Reached = reached(roots(Options, Dirs), Files, #{}),
    {Calls, Started} = lists:unzip(maps:values(Reached)),
    lists:usort([App || Module <- lists:umerge(Calls), not is_map_key(Module, Files), App <- app(Module)]
                ++ [App || App <- lists:usort(lists:append(Started)), is_library(App)]) -- [kernel, stdlib].

roots(Options, Dirs) ->
    %% A module may be one of the arguments.
    lists:append([[Module | witness_event_external:atoms(Args)] || #{run := {Module, _, Args}} <- [Options]])
        ++ [Module || App <- [App || #{app := App} <- [Options]] ++ maps:get(applications, Options, []), Dir <- Dirs,
                      {ok, [{application, _, Keys}]} <- [file:consult(filename:join(Dir, atom_to_list(App) ++ ".app"))],
                      {Module, _} <- [proplists:get_value(mod, Keys, none)]].

%% For each module: the modules that it calls, and the names of applications that it may start.
reached([], _, Reached) -> Reached;
reached([Module | Modules], Files, Reached) when is_map_key(Module, Files), not is_map_key(Module, Reached) ->
    case beam_lib:chunks(map_get(Module, Files), [imports, atoms]) of
        {ok, {_, [{imports, Imports}, {atoms, Atoms}]}} ->
            Calls = lists:usort([Called || {Called, _, _} <- Imports]),
            Names = [Atom || {_, Atom} <- Atoms] ++ literals(map_get(Module, Files)),
            Started = case lists:any(fun starts/1, Imports) of true -> Names; false -> [] end,
            reached(Names ++ Modules, Files, Reached#{Module => {Calls, Started}});
        {error, beam_lib, _} -> reached(Modules, Files, Reached#{Module => {[], []}})
    end;
reached([_ | Modules], Files, Reached) -> reached(Modules, Files, Reached).

%% The names in constant terms, such as the children that a supervisor starts. They are not in the table of atoms.
literals(File) ->
    case beam_lib:chunks(File, ["LitT"], [allow_missing_chunks]) of
        {ok, {_, [{_, Chunk}]}} when is_binary(Chunk) ->
            lists:usort(witness_event_external:atoms(witness_event_external:literals(Chunk)));
        _ -> []
    end.

starts({Module, Function, _}) ->
    lists:member(Module, [application, 'Elixir.Application'])
        andalso lists:member(Function, [start, start_boot, ensure_started, ensure_all_started]).

%% Whether it is an application of OTP with processes of its own.
is_library(App) ->
    maybe
        Dir = code:lib_dir(App),
        true ?= is_list(Dir) andalso filename:dirname(Dir) =:= code:lib_dir(),
        {ok, [{application, App, Keys}]} ?= file:consult(filename:join([Dir, "ebin", atom_to_list(App) ++ ".app"])),
        lists:keymember(mod, 1, Keys)
    else
        _ -> false
    end.

%% A library of OTP: `APP-VERSION/ebin' with an `.app' file.
app(Module) ->
    maybe
        false ?= lists:member(Module, erlang:pre_loaded()),
        File = code:where_is_file(atom_to_list(Module) ++ ".beam"),
        true ?= is_list(File),
        Ebin = filename:dirname(filename:absname(File)),
        true ?= filename:dirname(filename:dirname(Ebin)) =:= code:lib_dir(),
        [Name | _] = string:split(filename:basename(filename:dirname(Ebin)), "-"),
        true ?= filelib:is_regular(filename:join(Ebin, Name ++ ".app")),
        [list_to_atom(Name)]
    else
        _ -> []
    end.
