-module(witness_offline_checkpoint).
-moduledoc """
A position in a log, with everything that was known there, in a file: a later run goes on as if there had been no break.

The file is written beside its final place and then renamed, so that a complete file always exists. No other user may read
it. It is bound to what was checked: going on with other specifications is refused.

A position is data, but it is trusted as much as the programs of its owner: its terms are decoded as they are.
""".

-export([write/3, read/2]).

-define(MAGIC, "witness position 2\n").

-doc "Writes a position. The identity represents what is checked, and how.".
-spec write(file:name_all(), Identity :: binary(), term()) -> ok | {error, unicode:chardata()}.
write(File, Identity, State) ->
    Data = term_to_binary(State, [compressed, {minor_version, 2}]),
    Temporary = <<(unicode:characters_to_binary(File))/binary, ".new">>,
    maybe
        ok ?= write_new(Temporary, [?MAGIC, Identity, erlang:md5(Data), Data]),
        ok ?= file:rename(Temporary, File)
    else
        {error, Reason} -> _ = file:delete(Temporary), name_error(File, Reason)
    end.

write_new(File, Data) ->
    maybe
        {ok, Device} ?= file:open(File, [write, raw, binary]),
        ok ?= file:change_mode(File, 8#600),
        ok ?= file:write(Device, Data),
        ok ?= file:datasync(Device),
        file:close(Device)
    end.

-doc "Reads a position with this identity.".
-spec read(file:name_all(), Identity :: binary()) -> {ok, term()} | {error, unicode:chardata()}.
read(File, Identity) ->
    case file:read_file(File) of
        {ok, <<?MAGIC, Identity:16/binary, Sum:16/binary, Data/binary>>} ->
            case erlang:md5(Data) of
                Sum -> {ok, witness_event_external:decode(Data)};
                _ -> {error, [File, ": the position is damaged"]}
            end;
        {ok, <<?MAGIC, _:32/binary, _/binary>>} ->
            {error, [File, ": the position is one of other specifications, monitors or options"]};
        {ok, _} -> {error, [File, ": a position that witness check has saved is expected"]};
        {error, Reason} -> name_error(File, Reason)
    end.

name_error(File, Reason) -> {error, [File, ": ", file:format_error(Reason)]}.
