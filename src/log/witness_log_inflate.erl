-module(witness_log_inflate).
-moduledoc """
The text of a log that may be compressed, a piece at a time.

The first bytes of a log tell its compression, not its name: gzip (`m:witness_log_gzip`), zstd (also
several frames, one after the other, and skippable ones), or none. However much a piece of input expands to, a call
returns a bounded piece of text, and the next call continues from there. So a decompression bomb never takes much memory.

```
1> {ok, I} = witness_log_inflate:open(gzip).
2> {more, ~"fork(", I1} = witness_log_inflate:feed(Bytes, I).     % there is more text before more input is needed
3> {done, ~"...", I2} = witness_log_inflate:feed(~"", I1).        % it is out: the next piece of input, please
4> ok = witness_log_inflate:finish(I2).                           % all members are complete
```
""".

-export([kind/1, open/1, feed/2, finish/1, close/1]).

-export_type([inflate/0, kind/0, reason/0]).

-doc "The compression of a log.".
-type kind() :: plain | gzip | zstd.

-doc "A decompressor.".
-opaque inflate() :: plain | {gzip, witness_log_gzip:gzip()} | {zstd, zstd(), Left :: iodata()}.

-type zstd() :: term(). % OTP 27 has no module of this name

-doc "The data are damaged or truncated, their frames need more than 128 MiB, or this VM cannot read zstd.".
-type reason() :: {damaged, kind()} | {truncated, kind()} | {window, zstd} | {no_zstd, Release :: string()}.

-define(GZIP, 16#1f, 16#8b).
-define(ZSTD, 16#28, 16#b5, 16#2f, 16#fd).
%% The largest window of a frame is 2^27 bytes, as for `zstd -d`: a decoder needs that much memory.
-define(WINDOW_LOG, 27).
%% The head of a frame with a window of 2^41 bytes, which no decoder accepts.
-define(TOO_LARGE, <<?ZSTD, 0, (31 bsl 3)>>).

-doc "The compression of data with these first bytes. `more`: there are too few to decide.".
-spec kind(binary()) -> kind() | more.
kind(<<?GZIP, _/binary>>) -> gzip;
kind(<<?ZSTD, _/binary>>) -> zstd;
kind(<<5:4, _:4, 16#2a, 16#4d, 16#18, _/binary>>) -> zstd;
kind(Bytes) when byte_size(Bytes) >= 4 -> plain;
kind(Bytes) ->
    Begins = fun(Magic) -> binary:longest_common_prefix([Bytes, Magic]) =:= byte_size(Bytes) end,
    case Bytes =:= ~"" orelse lists:any(Begins, [<<?GZIP>>, <<?ZSTD>>]) orelse skippable(Bytes) of
        true -> more;
        false -> plain
    end.

skippable(<<5:4, Low:4, Rest/binary>>) ->
    binary:longest_common_prefix([<<Low, Rest/binary>>, <<Low, 16#2a, 16#4d, 16#18>>]) =:= 1 + byte_size(Rest);
skippable(_) -> false.

-doc "A decompressor. The process that opened it uses it.".
-spec open(kind()) -> {ok, inflate()} | {error, reason()}.
open(plain) -> {ok, plain};
open(gzip) -> {ok, {gzip, witness_log_gzip:open()}};
open(zstd) ->
    case code:ensure_loaded(zstd) of
        {module, _} -> {ok, {zstd, zstd_context(), []}};
        {error, _} -> {error, {no_zstd, erlang:system_info(otp_release)}}
    end.

-doc """
The next piece of text. `more`: there is more text, call again without bytes; `done`: input is needed.

## Errors
`{damaged, Kind}`: the input is not gzip or zstd from here on. With zstd, up to 128 KiB of the preceding text are lost
too. `{window, zstd}`: a frame needs more memory than is allowed, and none was allocated.
""".
-spec feed(binary(), inflate()) -> {more | done, Text :: iodata(), inflate()} | {error, reason()}.
feed(Bytes, plain) -> {done, Bytes, plain};
feed(Bytes, {gzip, Gzip}) ->
    case witness_log_gzip:feed(Bytes, Gzip) of
        {How, Text, Gzip1} -> {How, Text, {gzip, Gzip1}};
        {error, Reason} -> {error, {Reason, gzip}}
    end;
feed(Bytes, {zstd, Context, Left}) ->
    try zstd_stream(Context, [Left, Bytes]) of
        {continue, Left1, Text} -> {more, Text, {zstd, Context, Left1}};
        {continue, Text} -> {done, Text, {zstd, Context, []}}
    catch
        error:{zstd_error, What} -> {error, {zstd_reason(What), zstd}}
    end.

-doc "Whether the data were complete, at the end of the input.".
-spec finish(inflate()) -> ok | {error, reason()}.
finish(plain) -> ok;
finish({gzip, Gzip}) ->
    case witness_log_gzip:finish(Gzip) of
        ok -> ok;
        {error, Reason} -> {error, {Reason, gzip}}
    end;
finish({zstd, Context, _}) ->
    %% The module zstd does not say whether a frame is complete. But it refuses a byte that begins no frame, for the same reason
    %% as at the beginning, only between frames. Within a frame it takes the byte, or reports an error of the frame.
    case refusal(Context, <<0>>) =:= refusal(<<0>>) of
        true -> ok;
        false -> {error, {truncated, zstd}}
    end.

%% zstd reports its reasons as text of its own.
zstd_reason(What) ->
    case refusal(?TOO_LARGE) of
        What -> window;
        _ -> damaged
    end.

refusal(Bytes) ->
    Fresh = zstd_context(),
    What = refusal(Fresh, Bytes),
    ok = zstd(close, [Fresh]),
    What.

refusal(Context, Bytes) ->
    try zstd_stream(Context, Bytes) of
        _ -> none
    catch
        error:{zstd_error, What} -> What
    end.

-doc "Frees the memory of the decompressor.".
-spec close(inflate()) -> ok.
close(plain) -> ok;
close({gzip, Gzip}) -> witness_log_gzip:close(Gzip);
close({zstd, Context, _}) -> zstd(close, [Context]).

%% Calls that OTP 27 lacks.
zstd_context() ->
    {ok, Context} = zstd(context, [decompress, #{windowLogMax => ?WINDOW_LOG}]),
    Context.

zstd_stream(Context, Bytes) -> zstd(stream, [Context, Bytes]).

%% If there is no such module, no decompressor was opened.
zstd(Function, Arguments) ->
    Module = zstd,
    apply(Module, Function, Arguments).
