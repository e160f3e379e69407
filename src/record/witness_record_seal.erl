-module(witness_record_seal).
-moduledoc """
The seal of a recording: an authentication code over the names and contents of its files, under the key of this account
(`m:witness_record_key`).

A replay runs code, and a recording says which: its header has the folders and the call; its entries have the results of calls,
and messages, functions included, which the program then calls. So the code covers all of it. The owner of the folder proves
nothing: an account that unpacks an archive of other people owns its files.

The file `seal`:

| Bytes | What |
|---|---|
| 8 | `WITSEAL` and the version, 1 |
| 1 | how many files |
| for each | one byte with the size of its name; its name; its size, 8 bytes, big-endian; its SHA-256 |
| 32 | HMAC-SHA256 of all bytes before |

*Which process writes it.* `m:witness_record_vm`, when the recorded VM has ended in any way: what was written until then is the
recording. The recorded program never loads `crypto` for it. If both VMs are killed together, there is no seal, and a replay needs
trust.

*Anything odd makes the seal invalid:* a file that the seal names and that is not there; one that is there and that the seal does
not name; one that is not a regular file; a folder or file that other users may change while it is used.
""".

-include_lib("kernel/include/file.hrl").

-export([seal/1, add/2, verify/1, format_error/1]).

-export_type([reason/0, error/0]).

-doc """
Why a recording has no valid seal: there is none; a file that is no seal; one that was made with another key, or changed since;
what is wrong with a file of the recording.
""".
-type reason() :: none | damaged | foreign | {file, file:filename_all(), unicode:chardata()}.

-doc "Without a usable key there is no seal.".
-type error() :: {?MODULE, reason()} | witness_record_key:error().

-define(MAGIC, "WITSEAL", 1).
%% All files that a replay ever reads of a recording.
-define(NAMES, ["header", "order", "data", "processes", "modules", "index", "verdicts", "code.zip"]).
-define(MAC_BYTES, 32).
%% The largest seal, in bytes; and how much of a file is read at once.
-define(MAX_SEAL_BYTES, 1_024).
-define(READ_BYTES, 1_048_576).

-type entry() :: {Name :: string(), Size :: non_neg_integer(), Digest :: <<_:256>>}.

-doc "Seals the files that are in the folder of a recording now.".
-spec seal(file:filename_all()) -> ok | {error, error()}.
seal(Dir) ->
    maybe
        {ok, Key} ?= witness_record_key:make(),
        {ok, Entries} ?= entries([Name || Name <- ?NAMES, is_there(Dir, Name)], Dir, []),
        write(Dir, Key, Entries)
    end.

-doc "Adds a file to a seal that is valid for the others. A recording without a seal gets none.".
-spec add(file:filename_all(), Name :: string()) -> ok | {error, error()}.
add(Dir, Name) ->
    maybe
        {ok, Key} ?= witness_record_key:find(),
        {ok, Entries} ?= sealed(Dir, Key),
        {ok, [Entry]} ?= entries([Name], Dir, []),
        write(Dir, Key, lists:keystore(Name, 1, Entries, Entry))
    end.

-doc "Whether this account has made the recording on this machine, and it has not changed since.".
-spec verify(file:filename_all()) -> ok | {error, error()}.
verify(Dir) ->
    maybe
        {ok, Key} ?= witness_record_key:find(),
        {ok, Entries} ?= sealed(Dir, Key),
        {ok, Own} ?= witness_record_key:own(),
        ok ?= private(Dir, file:read_file_info(Dir, [raw]), directory, Own),
        Named = [Name || {Name, _, _} <- Entries],
        ok ?= first_error([private(name(Dir, Name), file:read_link_info(name(Dir, Name), [raw]), regular, Own) || Name <- Named]),
        ok ?= first_error([wrong(Dir, Name, ~"it was put there since it was recorded")
                           || Name <- ?NAMES -- Named, is_there(Dir, Name)]),
        {ok, Now} ?= entries(Named, Dir, []),
        first_error([wrong(Dir, Name, ~"it was changed since it was recorded") || {Name, _, _} <- Entries -- Now])
    end.

first_error(Results) -> hd([Error || {error, _} = Error <- Results] ++ [ok]).

wrong(Dir, Name, Text) -> file_error(name(Dir, Name), Text).

file_error(Name, Text) -> {error, {?MODULE, {file, Name, Text}}}.

name(Dir, Name) -> filename:join(Dir, Name).

%% A file of any type counts: a link that leads nowhere is there, too.
is_there(Dir, Name) -> file:read_link_info(name(Dir, Name), [raw]) =/= {error, enoent}.

%% A file that other users may change could be changed after it was compared.
private(_, {ok, #file_info{type = Type, uid = Own, mode = Mode}}, Type, Own) when Mode band 8#022 =:= 0 -> ok;
private(Name, {ok, #file_info{type = Type, uid = Own}}, Type, Own) -> file_error(Name, ~"other users may change it");
private(Name, {ok, #file_info{type = Type}}, Type, _) -> file_error(Name, ~"it belongs to another user");
private(Name, {ok, #file_info{}}, directory, _) -> file_error(Name, ~"it is no folder");
private(Name, {ok, #file_info{}}, _, _) -> file_error(Name, ~"it is no regular file");
private(Name, {error, enoent}, _, _) -> file_error(Name, ~"it is gone");
private(Name, {error, Reason}, _, _) -> file_error(Name, file:format_error(Reason)).

%% --- the contents of files -------------------------------------------------------

-spec entries([string()], file:filename_all(), [entry()]) -> {ok, [entry()]} | {error, error()}.
entries([], _, Entries) -> {ok, lists:reverse(Entries)};
entries([Name | Names], Dir, Entries) ->
    maybe
        File = name(Dir, Name),
        %% A device or a pipe would have no end.
        {ok, #file_info{type = regular}} ?= file:read_link_info(File, [raw]),
        {ok, Device} ?= file:open(File, [read, raw, binary]),
        Read = digest(Device, crypto:hash_init(sha256), 0),
        _ = file:close(Device),
        {ok, Size, Digest} ?= Read,
        entries(Names, Dir, [{Name, Size, Digest} | Entries])
    else
        {ok, #file_info{}} -> wrong(Dir, Name, ~"it is no regular file");
        {error, Reason} -> wrong(Dir, Name, file:format_error(Reason))
    end.

digest(Device, State, Size) ->
    case file:read(Device, ?READ_BYTES) of
        {ok, Part} -> digest(Device, crypto:hash_update(State, Part), Size + byte_size(Part));
        eof -> {ok, Size, crypto:hash_final(State)};
        {error, _} = Error -> Error
    end.

%% --- the file --------------------------------------------------------------------

write(Dir, Key, Entries) ->
    Named = [[byte_size(N), N, <<Size:64>>, Digest] || {Name, Size, Digest} <- Entries, N <- [list_to_binary(Name)]],
    Bytes = iolist_to_binary([?MAGIC, length(Entries), Named]),
    File = name(Dir, "seal"),
    Temporary = name(Dir, "seal.new"),
    _ = file:delete(Temporary),
    maybe
        {ok, Device} ?= file:open(Temporary, [write, exclusive, raw, binary]),
        Private = file:change_mode(Temporary, 8#600),
        Written = file:write(Device, [Bytes, code(Key, Bytes)]),
        Closed = file:close(Device),
        ok ?= Private,
        ok ?= Written,
        ok ?= Closed,
        ok ?= file:rename(Temporary, File)
    else
        {error, Reason} ->
            _ = file:delete(Temporary),
            file_error(File, file:format_error(Reason))
    end.

code(Key, Bytes) -> crypto:mac(hmac, sha256, Key, Bytes).

-spec sealed(file:filename_all(), witness_record_key:key()) -> {ok, [entry()]} | {error, error()}.
sealed(Dir, Key) ->
    File = name(Dir, "seal"),
    maybe
        {ok, #file_info{type = regular, size = Size}} ?= file:read_link_info(File, [raw]),
        true ?= Size > ?MAC_BYTES andalso Size =< ?MAX_SEAL_BYTES,
        {ok, Read} ?= file:read_file(File),
        {<<?MAGIC, Count, Named/binary>> = Bytes, Code} ?= split_binary(Read, byte_size(Read) - ?MAC_BYTES),
        true ?= crypto:hash_equals(code(Key, Bytes), Code) orelse foreign,
        {ok, Entries} ?= named(Count, Named, []),
        {ok, Entries}
    else
        {error, enoent} -> {error, {?MODULE, none}};
        {error, Reason} -> file_error(File, file:format_error(Reason));
        foreign -> {error, {?MODULE, foreign}};
        _ -> {error, {?MODULE, damaged}}
    end.

named(0, <<>>, Entries) -> {ok, lists:reverse(Entries)};
named(Left, <<N, Name:N/binary, Size:64, Digest:32/binary, Rest/binary>>, Entries) when Left > 0 ->
    named(Left - 1, Rest, [{binary_to_list(Name), Size, Digest} | Entries]);
named(_, _, _) -> error.

-doc "A reason as text.".
-spec format_error(reason()) -> unicode:chardata().
format_error(none) -> ~"it has no seal: another account or machine has recorded it, or an older Witness, or its end was cut off";
format_error(damaged) -> ~"its seal is damaged";
format_error(foreign) -> ~"its seal is not of this account on this machine";
format_error({file, Name, Text}) -> [text(Name), ~": ", Text].

text(Name) ->
    case unicode:characters_to_binary(Name) of
        Text when is_binary(Text) -> Text;
        _ -> witness_event:format_term(Name, 500)
    end.
