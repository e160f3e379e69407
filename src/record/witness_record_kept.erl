-module(witness_record_kept).
-moduledoc """
The code of a recorded program, kept with its recording. So the recording is replayed after the program was built again, in another
folder, and on another machine with the same Erlang/OTP.

The file `code.zip` has the modules of the folders that the user has named (`pa`), as they were when the recording began, with the
`.app` files of these folders:

```
1/shop/ebin/shop.beam      the number of the folder, its last two names, the file
1/shop/ebin/shop.app
2/orders/ebin/orders.beam
```

Of modules with the same name only that of the first folder is kept: the others do not run. The modules of OTP, of Elixir and of
libraries outside these folders are not kept.

*Trust.* The seal of a recording covers the archive (`m:witness_record_seal`). A replay reads it only if it may run the code of the
recording. *Invariant:* `unpack/2` writes into its own folder only, whatever names the archive has.
""".

-include_lib("stdlib/include/zip.hrl").

-export([archive/3, file/1, write/2, modules/1, unpack/2]).

-define(FILE_NAME, "code.zip").
%% What `m:witness_weave_cache_bound` takes for the list of a set: its time is that of the last use.
-define(LIST, "woven").

-doc "The archive of those of these folders that the user has named, in their order.".
-spec archive([witness_weave_objects:folder()], User :: [file:filename()], Cache :: file:filename_all()) -> binary().
archive(Folders, User, Cache) ->
    Kept = [Folder || Dir <- User, #{dir := Of} = Folder <- Folders, Of =:= Dir, not lists:prefix(code:lib_dir(), Dir)],
    Apps = [{Dir, apps(Dir)} || #{dir := Dir} <- Kept],
    Of = {?MODULE, [{layout(Dir), Contents} || #{dir := Dir, contents := Contents} <- Kept], [Files || {_, Files} <- Apps]},
    witness_weave_cache:stored(Of, Cache, fun() -> pack(lists:zip(Kept, Apps), 1, #{}, []) end).

apps(Dir) ->
    [{filename:basename(File), Bytes} || File <- filelib:wildcard(filename:join(Dir, "*.app")), {ok, Bytes} <- [file:read_file(File)]].

%% The folder of an application is found by these names.
layout(Dir) ->
    Names = filename:split(Dir),
    filename:join(lists:nthtail(max(0, length(Names) - 2), Names)).

pack([], _, _, Entries) ->
    {ok, {_, Zip}} = zip:create(?FILE_NAME, lists:append(lists:reverse(Entries)), [memory]),
    Zip;
pack([{#{dir := Dir, objects := Objects}, {Dir, Apps}} | Folders], N, Known, Entries) ->
    Name = fun(File) -> filename:join([integer_to_list(N), layout(Dir), File]) end,
    New = [{Module, Name(filename:basename(File)), Bytes} || {Module, {File, Bytes}} <- Objects, not is_map_key(Module, Known)],
    pack(Folders, N + 1, maps:merge(Known, #{Module => [] || {Module, _, _} <- New}),
         [[{File, Bytes} || {_, File, Bytes} <- New] ++ [{Name(File), Bytes} || {File, Bytes} <- Apps] | Entries]).

-doc "The file of the archive.".
-spec file(file:filename_all()) -> file:filename_all().
file(Dir) -> filename:join(Dir, ?FILE_NAME).

-doc "Writes an archive into the folder of a recording, if there is one and has none yet. If it cannot be written, there is none.".
-spec write(file:filename_all(), binary()) -> ok | {error, file:posix() | badarg | terminated | system_limit}.
write(Dir, Archive) ->
    File = file(Dir),
    case {filelib:is_regular(filename:join(Dir, "header")), filelib:file_size(File)} of
        {true, Size} when Size =/= byte_size(Archive) ->
            case file:write_file(File, Archive) of
                ok -> file:change_mode(File, 8#600);
                {error, _} = Error ->
                    _ = file:delete(File),
                    Error
            end;
        _ -> ok
    end.

-doc "The names of the modules in the archive of a recording; none without one. Nothing is unpacked.".
-spec modules(file:filename_all()) -> [binary()].
modules(Dir) ->
    case zip:list_dir(file(Dir)) of
        {ok, Entries} ->
            [unicode:characters_to_binary(filename:basename(Name, ".beam"))
             || #zip_file{name = Name} <- Entries, filename:extension(Name) =:= ".beam"];
        {error, _} -> []
    end.

-doc """
The folders of the archive of a recording, unpacked in the cache, in their order. `none`: it has no archive. The recording is trusted.
""".
-spec unpack(file:filename_all(), Cache :: file:filename_all()) ->
    {ok, [file:filename()]} | none | {error, {file:filename_all(), unicode:chardata()}}.
unpack(Dir, Cache) ->
    File = file(Dir),
    case file:read_file(File) of
        {ok, Archive} ->
            try {ok, unpacked(Archive, unicode:characters_to_list(Cache))}
            catch
                throw:{file, Name, Reason} -> {error, {Name, file:format_error(Reason)}};
                throw:malformed -> {error, {File, ~"it is not the code of a recording"}}
            end;
        {error, enoent} -> none;
        {error, Reason} -> {error, {File, file:format_error(Reason)}}
    end.

unpacked(Archive, Cache) ->
    Set = filename:join([Cache, "sets", "code-" ++ binary_to_list(binary:encode_hex(crypto:hash(sha256, Archive), lowercase))]),
    _ = witness_weave_cache_bound:mark_used(filename:join(Set, ?LIST)),
    case witness_weave_store:term(filename:join(Set, ?LIST)) of
        {ok, Layouts} when is_list(Layouts) -> [filename:join(Set, Layout) || Layout <- Layouts];
        _ -> unpack_to(Set, files(Archive))
    end.

%% Each file in a folder with a number, its last names, and nothing that leads out of it.
files(Archive) ->
    case zip:unzip(Archive, [memory]) of
        {ok, Files} -> [{parts(Name), Bytes} || {Name, Bytes} <- Files];
        {error, _} -> throw(malformed)
    end.

parts(Name) ->
    Parts = filename:split(Name),
    case Parts of
        [Number, _ | _] when length(Parts) =< 4 ->
            [throw(malformed) || Part <- Parts, Part =:= ".." orelse Part =:= "." orelse lists:any(fun(C) -> C < 32 end, Part)],
            case {string:to_integer(Number), filename:extension(lists:last(Parts))} of
                {{N, []}, Extension} when N > 0, Extension =:= ".beam" orelse Extension =:= ".app" -> {N, Parts};
                _ -> throw(malformed)
            end;
        _ -> throw(malformed)
    end.

unpack_to(Set, Files) ->
    New = witness_weave_store:temporary(Set),
    Layouts = [Layout || {_, Layout} <- lists:usort([{N, filename:join(lists:droplast(Parts))} || {{N, Parts}, _} <- Files])],
    [witness_weave_store:folder(filename:join(New, Layout)) || Layout <- ["." | Layouts]],
    [witness_weave_store:put_file(filename:join([New | Parts]), Bytes) || {{_, Parts}, Bytes} <- Files],
    witness_weave_store:put_file(filename:join(New, ?LIST), term_to_binary(Layouts)),
    case file:rename(New, Set) of
        ok -> ok;
        {error, Reason} ->
            %% Another process has unpacked the same.
            _ = file:del_dir_r(New),
            filelib:is_regular(filename:join(Set, ?LIST)) orelse throw({file, Set, Reason})
    end,
    [filename:join(Set, Layout) || Layout <- Layouts].
