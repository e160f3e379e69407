-module(witness_log_source).
-moduledoc """
The text of a file or of standard input, decompressed, in pieces of bounded size.

A piece is never delayed to make it larger: everything that a pipe has delivered is returned before more is awaited.
""".

-export([open/2, read/1, mark/1, place/1, progress/1, close/1]).

-export_type([source/0, input/0, options/0, place/0, reason/0]).

-doc "What to read.".
-type input() :: {file, file:name_all()} | standard_input.

-doc """
A file in a position: numbers that identify it across renaming, 0 if there are none. `copy`: it is a
copy of a followed log, made before the log was truncated.
""".
-type place() :: #{device := integer(), inode := integer(), copy := boolean()}.

-doc "`block`: bytes of a read, and approximately of the largest piece. `position`: begin there.".
-type options() :: #{block := pos_integer(), position => witness_log_mark:saved()}.

-doc "`changed`: the text is not that of the position. `no_position`: standard input cannot be continued.".
-type reason() :: witness_log_inflate:reason() | file:posix() | badarg | changed | no_position.

-record(source, {input :: witness_log_input:input(),
                 total :: non_neg_integer() | unknown,
                 read = 0 :: non_neg_integer(),                                 % bytes of the input
                 block :: pos_integer(),
                 mark = witness_log_mark:new() :: witness_log_mark:mark(),      % where reading begins
                 ready = ~"" :: binary(),                                       % text after it that was read with it
                 first = ~"" :: binary(),                                       % while the kind is not known
                 inflate = unknown :: witness_log_inflate:inflate() | unknown,
                 more = false :: boolean(),                                     % it has text without further input
                 failed = no :: no | reason()}).                                % reported after the text before it

-doc "An open log. The process that opened it reads it.".
-opaque source() :: #source{}.

-doc "Opens an input. Reads only the text before the position.".
-spec open(input(), options()) -> {ok, source()} | {error, reason()}.
open(standard_input, #{position := _}) -> {error, no_position};
open(From, Options = #{block := Block}) ->
    case witness_log_input:open(From) of
        {ok, Input} ->
            seek(Options, #source{input = Input, total = witness_log_input:size(From), block = Block});
        {error, Reason} -> {error, Reason}
    end.

seek(#{position := Position}, S) ->
    case go_to(Position, read_first(S)) of
        {error, Reason, S1} ->
            ok = close(S1),
            {error, Reason};
        S1 -> {ok, S1}
    end;
seek(#{}, S) -> {ok, S}.

-doc "The next piece of the text; waits for it. After an error nothing more can be read.".
-spec read(source()) -> {text, binary(), source()} | {eof, source()} | {error, reason(), source()}.
read(S = #source{failed = Reason}) when Reason =/= no -> {error, Reason, S};
read(S = #source{ready = Text}) when Text =/= ~"" -> {text, Text, S#source{ready = ~""}};
read(S = #source{inflate = unknown}) ->
    case read_first(S) of
        {first, _, First, S1} -> expand(First, [], 0, S1);
        Error -> Error
    end;
read(S = #source{more = true}) -> expand(~"", [], 0, S);
read(S = #source{inflate = Inflate}) ->
    case input(S) of
        {ok, Bytes, S1} -> expand(Bytes, [], 0, S1);
        eof -> end_input(witness_log_inflate:finish(Inflate), S);
        {error, Reason} -> fail(Reason, S)
    end.

end_input(ok, S) -> {eof, S};
end_input({error, Reason}, S) -> fail(Reason, S).

fail(Reason, S) -> {error, Reason, S#source{failed = Reason}}.

input(S = #source{input = Input, read = Read, block = Block}) ->
    case witness_log_input:read(Input, Block) of
        {ok, Bytes, Input1} -> {ok, Bytes, S#source{input = Input1, read = Read + byte_size(Bytes)}};
        Other -> Other
    end.

%% --- the first bytes -------------------------------------------------------------

%% Finds the compression, and the first bytes.
read_first(S = #source{first = First}) ->
    case input(S) of
        {ok, Bytes, S1} ->
            First1 = <<First/binary, Bytes/binary>>,
            case witness_log_inflate:kind(First1) of
                more -> read_first(S1#source{first = First1});
                Kind -> open_first(Kind, First1, S1)
            end;
        eof -> open_first(plain, First, S);
        {error, Reason} -> fail(Reason, S)
    end.

open_first(Kind, First, S) ->
    case witness_log_inflate:open(Kind) of
        {ok, Inflate} -> {first, Kind, First, S#source{inflate = Inflate, first = ~""}};
        {error, Reason} -> fail(Reason, S)
    end.

go_to(Position, {first, plain, _, S = #source{input = Input}}) ->
    Offset = witness_log_mark:offset(Position),
    maybe
        {ok, Mark} ?= witness_log_input:find(Position, Input),
        ok ?= witness_log_input:go_to(Offset, Input),
        S#source{mark = Mark, read = Offset}
    else
        error -> fail(changed, S);
        {error, Reason} -> fail(Reason, S)
    end;
go_to(Position, {first, _, First, S}) -> skip(Position, witness_log_mark:new(), expand(First, [], 0, S));
go_to(_, Error) -> Error.

%% Compressed text is read up to the position.
skip(Position, Mark, {text, Text, S}) ->
    case witness_log_mark:offset(Position) - witness_log_mark:offset(Mark) of
        Left when Left > byte_size(Text) -> skip(Position, witness_log_mark:add(Text, Mark), read(S));
        Left ->
            <<Before:Left/binary, After/binary>> = Text,
            check_mark(Position, witness_log_mark:add(Before, Mark), S#source{ready = After})
    end;
skip(Position, Mark, {eof, S}) -> check_mark(Position, Mark, S);
skip(_, _, Error) -> Error.

check_mark(Position, Mark, S) ->
    case witness_log_mark:save(Mark) =:= maps:with([offset, head, tail], Position) of
        true -> S#source{mark = Mark};
        false -> fail(changed, S)
    end.

%% --- text ------------------------------------------------------------------------

%% Reads further input only when all the text of the last input has been returned.
expand(Bytes, Texts, Size, S = #source{inflate = Inflate, block = Block}) ->
    case witness_log_inflate:feed(Bytes, Inflate) of
        {How, Text, Inflate1} ->
            S1 = S#source{inflate = Inflate1, more = How =:= more},
            Size1 = Size + iolist_size(Text),
            case How of
                more when Size1 < Block -> expand(~"", [Texts, Text], Size1, S1);
                _ -> text([Texts, Text], S1)
            end;
        {error, Reason} -> text(Texts, S#source{failed = Reason})
    end.

text(Texts, S) ->
    case iolist_to_binary(Texts) of
        ~"" -> read(S);
        Text -> {text, Text, S}
    end.

%% --- the rest --------------------------------------------------------------------

-doc "The place where reading begins.".
-spec mark(source()) -> witness_log_mark:mark().
mark(#source{mark = Mark}) -> Mark.

-doc "Identifies the file.".
-spec place(source()) -> place().
place(#source{input = Input}) ->
    {Device, Inode} = witness_log_input:identity(Input),
    #{device => Device, inode => Inode, copy => false}.

-doc "How many bytes of the input were read, and how many it has.".
-spec progress(source()) -> {non_neg_integer(), non_neg_integer() | unknown}.
progress(#source{read = Read, total = Total}) -> {Read, Total}.

-doc "Closes an input.".
-spec close(source()) -> ok.
close(#source{input = Input, inflate = unknown}) -> witness_log_input:close(Input);
close(#source{input = Input, inflate = Inflate}) ->
    ok = witness_log_inflate:close(Inflate),
    witness_log_input:close(Input).
