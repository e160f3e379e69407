-module(witness_replay_loads).
-moduledoc """
Which code may be loaded while a recording is replayed: what was woven for that, Witness itself, and modules of OTP whose functions the log
answers.

A module that could not be woven is in the folders of the program all the same. A process that diverges, or a call that the log does not
answer, must not have it loaded: it would act on the outside. All code comes into the VM by `erlang:prepare_loading/2` or
`erlang:load_module/2`, and woven code, that of the code server included, asks here first. What is asked for is compared with the files that
may be loaded, byte by byte, since an attribute of a module is what its author says.

A module of OTP whose functions the log answers may be loaded as it is, such as one with native functions: `code:ensure_loaded/1` of it is what a
program does before it calls them. One of the user's is not: its `-on_load` would run, and so would its native code. As the log answers its
functions, a replay needs it for nothing but `module_info`.
""".

-export([start/2, may_load/2]).

-doc "From now on: what is in these folders, and modules of OTP with these calls, as this Erlang/OTP has them.".
-spec start([file:filename()], Calls :: #{mfa() => non_neg_integer()}) -> ok.
start(Folders, Calls) -> persistent_term:put(?MODULE, {Folders, of_otp(#{Module => [] || {Module, _, _} := _ <- Calls})}).

%% The files of modules. The folders are those that OTP has, and not those of a code path, whose names a recording may have chosen.
of_otp(Modules) ->
    Otp = code:lib_dir(),
    Names = #{atom_to_list(Module) ++ ".beam" => Module || Module := [] <- Modules},
    Found = [{map_get(File, Names), Folder ++ [$/ | File]}
             || App <- listed(Otp), Folder <- [lists:append([Otp, "/", App, "/ebin"])], File <- listed(Folder), is_map_key(File, Names)],
    maps:groups_from_list(fun({Module, _}) -> Module end, fun({_, File}) -> File end, Found).

listed(Folder) ->
    case prim_file:list_dir(Folder) of
        {ok, Names} -> [Name || Name <- Names, is_list(Name)];
        {error, _} -> []
    end.

-doc "Whether this object code may be loaded. The code server asks: nothing here may have to be loaded.".
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
