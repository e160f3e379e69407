-module(witness_search_boot).
-moduledoc """
Writes the boot script of the VM of a search. *Invariant:* atoms have the same numbers in all VMs that search a program, so that the keys
of a map and of a dictionary have the same order in each of them (`m:witness_record_boot`).

Modules that are loaded while the VM boots are loaded in parallel, and how many atoms the VM has after that differs a little. So the script
makes the atoms of all code of the VM, in the order of their names. Atoms that the program makes of texts come later: where there are
several, their order is that in which the program makes them, but their numbers may differ.
""".

-export([write/2]).

%% The format of what is stored.
-define(FORMAT, 1).

-doc "Writes a script into a new folder in the cache. The result is the name for `-boot`; the VM deletes the folder.".
-spec write(witness_record_code:code(), #{cache => file:filename(), _ => _}) -> {ok, file:filename()} | {error, file:posix()}.
write(Code, Options) ->
    maybe
        {ok, Dir} ?= witness_record_boot:folder(Options),
        witness_record_boot:write(Dir, atoms(Code, Options), [], [])
    end.

%% Each folder by itself, so that those of OTP are read once. The names of folders with woven code depend on what is in them.
atoms(#{woven := Woven, plain := Plain, digests := Digests}, Options) ->
    Cache = witness_record_code:cache(maps:with([cache], Options)),
    Fixed = [{filename:dirname(File), beam_lib:md5(File)} || Module <- [?MODULE, kernel, lists], File <- [code:which(Module)]],
    Folders = Fixed ++ [{Dir, woven} || Dir <- Woven] ++ [{Dir, Digests} || Dir <- Plain],
    lists:usort(lists:append([witness_weave_cache:stored({?MODULE, ?FORMAT, Folder}, Cache, fun() -> names_in(Dir) end)
                              || {Dir, _} = Folder <- Folders])).

names_in(Dir) -> lists:usort([Name || File <- filelib:wildcard(filename:join(Dir, "*.beam")), Name <- names(File)]).

%% Names in constant terms are not in the table of atoms.
names(File) ->
    case beam_lib:chunks(File, [atoms, "LitT"], [allow_missing_chunks]) of
        {ok, {_, [{atoms, Atoms}, {_, Chunk}]}} ->
            Named = case is_binary(Chunk) of
                true -> witness_event_external:atoms(witness_event_external:literals(Chunk));
                false -> []
            end,
            [atom_to_binary(Atom) || Atom <- [Name || {_, Name} <- Atoms] ++ Named];
        {error, beam_lib, _} -> []
    end.
