-module(witness_weave_objects).
-moduledoc """
The object code in folders, read once, and what is known of it.

To parse two hundred files takes longer than to read them. So what follows from their contents alone is kept in the folder
of woven code, under the digest of them all: `CacheDir/folders/KEY`. If that cannot be written, it is computed again each time.
""".

-export([read/2, digest/1]).

-export_type([folder/0]).

-doc """
A folder: its modules, with their files and contents, in the order of their names; the digest of all that; the exported
functions of those modules that load native functions, in order; the digest of each module (`digest/1`).
""".
-type folder() :: #{dir := file:filename(), objects := [{module(), {file:filename(), binary()}}], contents := string(),
                    natives := [mfa()], digests := [{module(), binary()}]}.

%% Must be increased when the kept data changes.
-define(FORMAT, 2).

-doc "Reads folders.".
-spec read([file:filename()], CacheDir :: file:filename_all()) -> {ok, [folder()]} | {error, {file:filename(), file:posix()}}.
read(Dirs, CacheDir) ->
    Cache = unicode:characters_to_list(CacheDir),
    try {ok, [folder(Dir, Cache) || Dir <- Dirs]} catch throw:{file, File, Reason} -> {error, {File, Reason}} end.

folder(Dir, CacheDir) ->
    Objects = [{list_to_atom(filename:basename(Name, ".beam")), {File, witness_weave_store:read(File)}}
               || Name <- filelib:wildcard("*.beam", Dir), File <- [filename:join(Dir, Name)]],
    Contents = witness_weave_store:digest([{Module, erlang:md5(Binary)} || {Module, {_, Binary}} <- Objects]),
    File = filename:join([CacheDir, "folders", witness_weave_store:digest({?FORMAT, erlang:system_info(otp_release), Contents})]),
    _ = witness_weave_cache_bound:mark_used(File),
    {Natives, Digests} = case witness_weave_store:term(File) of
        {ok, {_, _} = Known} -> Known;
        _ ->
            Found = {natives(Objects), [{Module, digest(Binary)} || {Module, {_, Binary}} <- Objects]},
            _ = try
                witness_weave_store:folder(filename:dirname(File)),
                witness_weave_store:write(File, term_to_binary(Found))
            catch
                throw:{file, _, _} -> ok
            end,
            Found
    end,
    #{dir => Dir, objects => Objects, contents => Contents, natives => Natives, digests => Digests}.

natives(Objects) ->
    lists:sort([{Module, F, A} || {Module, {_, Binary}} <- Objects, loads_nif(Module, Binary),
                                  {ok, {_, [{exports, Exports}]}} <- [beam_lib:chunks(Binary, [exports])],
                                  {F, A} <- Exports, F =/= module_info]).

%% A file contains names in plain text, unless all of it is compressed. So few files have to be parsed.
loads_nif(Module, Binary) -> may_name(~"load_nif", Binary) andalso imports_load_nif(Module, Binary).

may_name(Name, <<"FOR1", _/binary>> = Binary) -> binary:match(Binary, Name) =/= nomatch;
may_name(_, _) -> true.

imports_load_nif(Module, Binary) ->
    case beam_lib:chunks(Binary, [imports]) of
        {ok, {Module, [{imports, Imports}]}} -> lists:member({erlang, load_nif, 2}, Imports);
        _ -> false
    end.

-doc """
A digest of what a module does, woven or not. `code:module_md5/1` leaves out the debug information, of which woven code is made.
This digest leaves out where a module was compiled, and with which options: both may differ between two builds of the same
source.
""".
-spec digest(binary()) -> binary().
digest(Binary) ->
    Source = case beam_lib:chunks(Binary, ["Dbgi", "Abst"], [allow_missing_chunks]) of
        {ok, {_, Chunks}} -> [source(Chunk) || {_, Chunk} <- Chunks];
        {error, _, _} -> Binary
    end,
    erlang:md5(term_to_binary({code:module_md5(Binary), Source})).

%% Any other content stays as it is.
source(Chunk) when is_binary(Chunk) ->
    try witness_event_external:decode(Chunk) of
        {debug_info_v1, erl_abstract_code, {Forms, _}} when length(Forms) >= 0 -> placeless(Forms);
        {raw_abstract_v1, Forms} when length(Forms) >= 0 -> placeless(Forms);
        {debug_info_v1, elixir_erl, {elixir_v1, #{} = Map, Specs}} -> {maps:without([file], Map), Specs};
        Term -> Term
    catch
        error:badarg -> Chunk
    end;
source(missing_chunk) -> missing_chunk.

placeless(Forms) ->
    [case Form of {attribute, Anno, file, {_, Line}} -> {attribute, Anno, file, Line}; _ -> Form end || Form <- Forms].
