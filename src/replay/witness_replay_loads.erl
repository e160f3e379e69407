-module(witness_replay_loads).
-moduledoc """
Decides which code may be loaded during a replay: modules that were woven for it, Witness itself, and modules of OTP with
functions that the log answers.

A module that could not be woven is still in the folders of the program. A process that diverges, or a call that the log does
not answer, must not load it: it would act on the outside. *Invariant:* a module that is not woven does not run, whatever its
name. All code comes into the VM by `erlang:prepare_loading/2` or `erlang:load_module/2`. Woven code, including that of the code
server, calls `may_load/2` first (by `m:witness_replay_runtime`). It compares the object code with the files that may be loaded,
byte by byte, since the attributes of a module say what its author wants.

A module of OTP with functions that the log answers, such as native ones, may be loaded as it is: a program calls
`code:ensure_loaded/1` for it before it calls them. Such a module of the user may not be loaded: its `-on_load` would run, and
so would its native code. The log answers its functions, so a replay needs it only for `module_info`.
""".

-export([start/2, may_load/2]).

-doc """
From now on these may be loaded: what is in these folders, and modules of OTP with these calls, as this Erlang/OTP has them.
""".
-spec start([file:filename()], Calls :: #{mfa() => non_neg_integer()}) -> ok.
start(Folders, Calls) -> persistent_term:put(?MODULE, {Folders, of_otp(#{Module => [] || {Module, _, _} := _ <- Calls})}).

%% The files of modules. The folders are those of OTP. Those of a code path are not used, since a recording may have chosen
%% their names.
of_otp(Modules) ->
    Otp = code:lib_dir(),
    Names = #{atom_to_list(Module) ++ ".beam" => Module || Module := [] <- Modules},
    Found = [{map_get(File, Names), Folder ++ [$/ | File]}
             || App <- listed(Otp), Folder <- [lists:append([Otp, "/", App, "/ebin"])], File <- listed(Folder),
             is_map_key(File, Names)],
    maps:groups_from_list(fun({Module, _}) -> Module end, fun({_, File}) -> File end, Found).

listed(Folder) ->
    case prim_file:list_dir(Folder) of
        {ok, Names} -> [Name || Name <- Names, is_list(Name)];
        {error, _} -> []
    end.

-doc "Whether this object code may be loaded. The code server calls this, so nothing here may have to be loaded.".
-spec may_load(module(), binary()) -> boolean().
may_load(Module, Code) ->
    case persistent_term:get(?MODULE, none) of
        none -> true;
        {Folders, Otp} ->
            Name = [$/ | atom_to_list(Module)] ++ ".beam",
            is_one([Folder ++ Name || Folder <- Folders] ++ of_otp(Module, Otp), Code)
    end.

of_otp(Module, Files) ->
    case Files of
        #{Module := Found} -> Found;
        #{} -> []
    end.

is_one([File | Files], Code) -> prim_file:read_file(File) =:= {ok, Code} orelse is_one(Files, Code);
is_one([], _) -> false.
