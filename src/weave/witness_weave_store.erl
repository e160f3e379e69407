-module(witness_weave_store).
-moduledoc """
Files of the folder of woven code. Each is complete or missing, even if a writer dies, and however many write it.
An operation that fails throws `{file, File, Reason}`.
""".

-include_lib("kernel/include/file.hrl").

-export([folder/1, write/2, put_file/2, read/1, term/1, size/1, temporary/1, check_result/2, digest/1]).

-doc "Makes a folder that only this user can access.".
-spec folder(file:filename()) -> ok.
folder(Dir) ->
    check_result(filelib:ensure_path(Dir), Dir),
    check_result(file:change_mode(Dir, 8#700), Dir).

-doc "Writes a file under another name first, which no other writer uses.".
-spec write(file:filename(), iodata()) -> ok.
write(File, Bytes) ->
    Temporary = temporary(File),
    try
        put_file(Temporary, Bytes),
        check_result(file:rename(Temporary, File), File)
    catch
        throw:Thrown ->
            _ = file:delete(Temporary),
            throw(Thrown)
    end.

-doc "Writes a file that no other process uses yet.".
-spec put_file(file:filename(), iodata()) -> ok.
put_file(File, Bytes) -> check_result(file:write_file(File, Bytes), File).

-doc "The contents of a file.".
-spec read(file:filename()) -> binary().
read(File) ->
    case file:read_file(File, [raw]) of
        {ok, Bytes} -> Bytes;
        {error, Reason} -> throw({file, File, Reason})
    end.

-doc "The term in a file. A damaged file is treated as a missing one.".
-spec term(file:filename()) -> {ok, term()} | none.
term(File) ->
    case file:read_file(File, [raw]) of
        {ok, Bytes} -> try {ok, witness_event_external:decode(Bytes)} catch error:badarg -> none end;
        {error, _} -> none
    end.

-doc "The size of a file. It does not use the file server, as there may be hundreds of files.".
-spec size(file:filename()) -> non_neg_integer() | none.
size(File) ->
    case file:read_file_info(File, [raw, {time, posix}]) of
        {ok, #file_info{size = Size}} when is_integer(Size) -> Size;
        _ -> none
    end.

-doc "A unique temporary name.".
-spec temporary(file:filename()) -> file:filename().
temporary(File) ->
    lists:flatten(io_lib:format("~ts.~ts.~w", [File, os:getpid(), erlang:unique_integer([positive])])).

-doc "Checks the result of an operation on a file, and throws if it failed.".
-spec check_result(ok | {error, file:posix() | badarg | terminated | system_limit}, file:filename()) -> ok.
check_result(ok, _) -> ok;
check_result({error, Reason}, File) -> throw({file, File, Reason}).

-doc "A name from the digest of a term.".
-spec digest(term()) -> string().
digest(Term) -> binary_to_list(binary:encode_hex(erlang:md5(term_to_binary(Term, [deterministic])), lowercase)).
