-module(witness_record_key).
-moduledoc """
The secret of this account on this machine. By it a replay knows that a recording was made here (`m:witness_record_seal`).

It is 32 random bytes in the file `key` of the cache folder (`WITNESS_CACHE`), for its owner only. A key that others may read,
or that another user owns, is never used; the reason is returned.
""".

-include_lib("kernel/include/file.hrl").

-export([find/0, make/0, own/0, format_error/1]).

-export_type([key/0, reason/0, error/0]).

-type key() :: <<_:256>>.

-doc """
Why there is no key: `none`, nothing was recorded here; `no_crypto`, this Erlang/OTP lacks the application `crypto`; or what is
wrong with the file, as text.
""".
-type reason() :: none | no_crypto | {file, file:filename(), unicode:chardata()}.

-type error() :: {?MODULE, reason()}.

-define(KEY_BYTES, 32).

-doc "Reads the key.".
-spec find() -> {ok, key()} | {error, error()}.
find() ->
    case code:ensure_loaded(crypto) of
        {module, crypto} -> found(name());
        {error, _} -> {error, {?MODULE, no_crypto}}
    end.

found(Name) ->
    maybe
        {ok, #file_info{type = regular, size = ?KEY_BYTES, uid = Owner, mode = Mode}} ?= file:read_link_info(Name, [raw]),
        {mode, 0} ?= {mode, Mode band 8#077},
        {ok, Owner} ?= make_owned(),
        {ok, <<Key:?KEY_BYTES/binary>>} ?= file:read_file(Name),
        {ok, Key}
    else
        {error, enoent} -> {error, {?MODULE, none}};
        {error, Reason} -> file_error(Name, file:format_error(Reason));
        {mode, _} -> file_error(Name, ~"others may read it; delete it, and the next recording makes a new one");
        {ok, #file_info{}} -> file_error(Name, ~"it is no key; delete it, and the next recording makes a new one");
        {ok, _} -> file_error(Name, ~"it belongs to another user")
    end.

file_error(Name, Text) -> {error, {?MODULE, {file, Name, Text}}}.

-doc "Reads the key; makes one if there is none. If two processes make one at the same time, both get the same key.".
-spec make() -> {ok, key()} | {error, error()}.
make() ->
    case find() of
        {error, {?MODULE, none}} -> made(name());
        Found -> Found
    end.

%% The file gets its name when it is complete, and never replaces another one. It is empty until no other account may read it.
made(Name) ->
    Temporary = temporary(Name),
    maybe
        ok ?= filelib:ensure_dir(Name),
        {ok, File} ?= file:open(Temporary, [write, exclusive, raw, binary]),
        Written = maybe
            ok ?= file:change_mode(Temporary, 8#600),
            file:write(File, crypto:strong_rand_bytes(?KEY_BYTES))
        end,
        Closed = file:close(File),
        ok ?= Written,
        ok ?= Closed,
        Linked = file:make_link(Temporary, Name),
        _ = file:delete(Temporary),
        true ?= Linked =:= ok orelse Linked =:= {error, eexist} orelse Linked,
        found(Name)
    else
        {error, Reason} ->
            _ = file:delete(Temporary),
            file_error(Name, file:format_error(Reason))
    end.

name() -> filename:join(filename:dirname(witness_record_code:cache(#{})), "key").

temporary(Name) -> lists:flatten(io_lib:format("~ts.~s.~b", [Name, os:getpid(), erlang:unique_integer([positive])])).

-doc "The number of this VM's user: the owner of a file that this VM makes.".
-spec own() -> {ok, non_neg_integer()} | {error, error()}.
own() ->
    case make_owned() of
        {ok, Own} -> {ok, Own};
        {error, Reason} -> file_error("the cache", file:format_error(Reason))
    end.

make_owned() ->
    File = temporary(filename:join(filename:dirname(name()), "owner")),
    maybe
        ok ?= filelib:ensure_dir(File),
        ok ?= file:write_file(File, ~"", [exclusive]),
        Info = file:read_file_info(File, [raw]),
        ok ?= file:delete(File),
        {ok, #file_info{uid = Own}} ?= Info,
        {ok, Own}
    end.

-doc "A reason as text.".
-spec format_error(reason()) -> unicode:chardata().
format_error(none) -> ~"nothing was recorded by this account on this machine";
format_error(no_crypto) -> ~"this Erlang/OTP has no application crypto, which it takes to know one's own recordings";
format_error({file, Name, Text}) -> [unicode:characters_to_binary(Name), ~": ", Text].
