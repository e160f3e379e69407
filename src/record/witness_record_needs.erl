-module(witness_record_needs).
-moduledoc """
Which applications of OTP a program uses without naming them: what its modules call that is in none of its folders.

A module of OTP that is not woven makes a recording that cannot be replayed, and that would be known when the program has run. So it is looked for
before. From the module of the function that is called, and those that the applications begin with, each module of the user's folders is
reached whose name another one knows. What these call, in modules of OTP, says which applications are woven besides. So do the names that a
module knows which starts applications.

A call whose module is only known when it is made is not found. Then the summary of the recording names the application
(`m:witness_record_unwoven`).
""".

-export([apps/1]).

-doc "The applications, in the order of their names, without those that are always woven.".
-spec apps(witness_record:options()) -> [atom()].
apps(#{tracing_only := true}) -> [];
apps(Options) ->
    Dirs = witness_record_code:user(Options),
    %% Of those with the same name, the first one is loaded.
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

%% For each module the modules that it calls, and what may be the applications that it starts.
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
        {ok, {_, [{_, Chunk}]}} when is_binary(Chunk) -> lists:usort(witness_event_external:atoms(witness_event_external:literals(Chunk)));
        _ -> []
    end.

starts({Module, Function, _}) ->
    lists:member(Module, [application, 'Elixir.Application'])
        andalso lists:member(Function, [start, start_boot, ensure_started, ensure_all_started]).

%% One that has processes of its own.
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
