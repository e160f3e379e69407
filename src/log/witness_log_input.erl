-module(witness_log_input).
-moduledoc """
The bytes of a file, or of standard input, in pieces.

A file is read raw, without the file server. A separate port reads standard input; it is open only while a process
waits for input. So the bytes of a pipe arrive as soon as they are written, and bytes that are not needed yet stay in the pipe,
which blocks its writer. (A raw read of `/dev/stdin` would return only when all requested bytes are there, which is
too late for a verdict; and the VM's own reader of standard input is forty times slower.)

The VM must not read standard input itself: `erl` needs the flag `-noinput`, after any `-noshell`. Without it OTP 27
consumes the first bytes.
""".

-export([open/1, read/2, pread/3, go_to/2, find/2, size/1, identity/1, identity_of/1, close/1]).

-export_type([input/0, identity/0]).

-doc "An open file or standard input. The process that opened it reads it.".
-opaque input() :: {file, file:fd()} | standard_input | ended.

-doc "Identifies a file across renaming. Device and inode are 0 if the file system has none.".
-type identity() :: {Device :: integer(), Inode :: integer()}.

-include_lib("kernel/include/file.hrl").

-doc "Opens an input.".
-spec open({file, file:name_all()} | standard_input) -> {ok, input()} | {error, file:posix() | badarg}.
open(standard_input) ->
    case file:read_file_info("/dev/stdin") of
        {ok, #file_info{type = directory}} -> {error, eisdir};
        _ -> {ok, standard_input}
    end;
open({file, File}) ->
    case file:open(File, [raw, binary, read]) of
        {ok, Fd} -> {ok, {file, Fd}};
        {error, Reason} when is_atom(Reason) -> {error, Reason}
    end.

-doc "Reads bytes, at most about so many. Waits until there is at least one.".
-spec read(input(), pos_integer()) -> {ok, binary(), input()} | eof | {error, file:posix()}.
read(I = {file, Fd}, Size) ->
    case file:read(Fd, Size) of
        {ok, Bytes} -> {ok, Bytes, I};
        eof -> eof;
        {error, Reason} -> {error, Reason}
    end;
read(ended, _) -> eof;
read(standard_input, _) ->
    Port = open_port({fd, 0, 0}, [in, stream, binary, eof]),
    Monitor = monitor(port, Port),
    unlink(Port),
    First = receive
                {Port, {data, Bytes}} -> {ok, [Bytes]};
                {Port, eof} -> eof;
                {'DOWN', Monitor, port, Port, Reason} -> {error, Reason}
            end,
    %% The data that the port sends precede its answer to the closing, so none of them is missed here. Closing the port leaves
    %% the file descriptor open.
    catch_closed(Port),
    demonitor(Monitor, [flush]),
    take_data(First, Port).

catch_closed(Port) ->
    try port_close(Port) catch error:badarg -> true end.

take_data({ok, Pieces}, Port) ->
    receive
        {Port, {data, Bytes}} -> take_data({ok, [Bytes | Pieces]}, Port);
        {Port, eof} -> {ok, join(Pieces), ended}
    after 0 -> {ok, join(Pieces), standard_input}
    end;
take_data(eof, _) -> eof;
take_data({error, Reason}, _) when is_atom(Reason) -> {error, Reason}.

join([Bytes]) -> Bytes;
join(Pieces) -> iolist_to_binary(lists:reverse(Pieces)).

-doc "Reads bytes of a file from an offset on, fewer at its end.".
-spec pread(input(), non_neg_integer(), non_neg_integer()) -> {ok, binary()} | {error, file:posix()}.
pread(_, _, 0) -> {ok, ~""};
pread({file, Fd}, Offset, Size) ->
    case file:pread(Fd, Offset, Size) of
        eof -> {ok, ~""};
        Other -> Other
    end.

-doc "Moves to an offset of a file.".
-spec go_to(non_neg_integer(), input()) -> ok | {error, file:posix()}.
go_to(Offset, {file, Fd}) ->
    case file:position(Fd, Offset) of
        {ok, Offset} -> ok;
        {error, Reason} -> {error, Reason}
    end.

-doc "The mark, if the file has the text of the mark before that place. `error`: it does not, or cannot be read.".
-spec find(witness_log_mark:mark() | witness_log_mark:saved(), input()) -> {ok, witness_log_mark:mark()} | error.
find(Mark, Input) ->
    Size = witness_log_mark:size(Mark),
    maybe
        {ok, Head} ?= pread(Input, 0, Size),
        {ok, Tail} ?= pread(Input, witness_log_mark:offset(Mark) - Size, Size),
        witness_log_mark:match(Head, Tail, Mark)
    else
        {error, _} -> error
    end.

-doc "The size of a file in bytes.".
-spec size({file, file:name_all()} | standard_input) -> non_neg_integer() | unknown.
size({file, File}) -> size_of(File);
size(standard_input) -> size_of("/dev/stdin").

size_of(File) ->
    case file:read_file_info(File, [raw, {time, posix}]) of
        {ok, #file_info{type = regular, size = Size}} when is_integer(Size) -> Size;
        _ -> unknown
    end.

-doc "Identifies the file.".
-spec identity(input()) -> identity().
identity({file, Fd}) ->
    case identity_of(Fd) of
        none -> {0, 0};
        Identity -> Identity
    end;
identity(_) -> {0, 0}.

-doc "Identifies the file of a name, if there is one.".
-spec identity_of(file:name_all() | file:fd()) -> identity() | none.
identity_of(File) ->
    case file:read_file_info(File, [raw, {time, posix}]) of
        {ok, #file_info{major_device = Device, inode = Inode}} -> {Device, Inode};
        {error, _} -> none
    end.

-doc "Closes an input.".
-spec close(input()) -> ok.
close({file, Fd}) ->
    _ = file:close(Fd),
    ok;
close(_) -> ok.
