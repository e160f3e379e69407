-module(witness_log_reader).
-moduledoc """
Reads a log in blocks of whole lines, in constant memory however long the log is. The log is a file, or standard input, both
possibly compressed (`witness_log_source`), or a file that grows and is rotated (`witness_log_follow`).

```
1> {ok, R} = witness_log_reader:open({file, "system.log"}, #{}).
2> {block, ~"fork(<0.1.0>,<0.2.0>,{m,f,[]})\n...", Position, R1} = witness_log_reader:read(R).
3> {eof, R2} = witness_log_reader:read(R1).
```

A block ends where a line ends, except the last line of a file, which may have no newline. A line that is longer than
`max_line` is skipped, and reported as `long`. Positions are plain data: a reader that is opened with one continues there.
The process that opened a log reads it.
""".

-export([open/2, read/1, is_between_lines/1, progress/1, close/1, format_error/1]).

-export_type([reader/0, input/0, options/0, position/0, reason/0, error/0]).

-doc "What to read.".
-type input() :: witness_log_source:input().

-doc """
`block`: the approximate size of a block in bytes (262,144). `max_line`: the longest line in bytes (16,777,216). `follow`: go on
when the file grows, and when it is rotated (`false`). `position`: begin there.
""".
-type options() :: #{block => pos_integer(), max_line => pos_integer(), follow => boolean(), position => position()}.

-doc """
A place between two lines: the file, the number of bytes and lines of its (decompressed) text before the place, and
hashes of the first and the last of those bytes (`witness_log_mark`).
""".
-type position() :: #{file := binary(), device := integer(), inode := integer(), copy := boolean(),
                      lines := non_neg_integer(), offset := non_neg_integer(), head := binary(), tail := binary()}.

-doc "What is wrong, and with which log.".
-type reason() :: {Name :: binary(), witness_log_source:reason() | witness_log_follow:reason()}.

-type error() :: {?MODULE, reason()}.

-record(reader, {name :: binary(),
                 module :: witness_log_source | witness_log_follow,
                 text :: witness_log_source:source() | witness_log_follow:follow(),
                 place :: witness_log_source:place(),
                 max_line :: pos_integer(),
                 mark :: witness_log_mark:mark(),                          % where the last block ended
                 lines :: non_neg_integer(),                               % number of lines before it
                 pending = ~"" :: binary(),                                % text that was not searched for lines yet
                 rest = [] :: [binary()],                                  % the beginning of a line, last piece first
                 size = 0 :: non_neg_integer(),                            % bytes of that beginning
                 long = false :: boolean(),                                % it is too long: only the mark moves on
                 ended = no :: no | eof | {next, witness_log_source:place()}}). % reported after the file's last line

-doc "An open log.".
-opaque reader() :: #reader{}.

-define(BLOCK_BYTES, 262_144).
-define(MAX_LINE_BYTES, 16_777_216).

-doc "Opens a log.".
-spec open(input(), options()) -> {ok, reader()} | {error, error()}.
open(Input, Options) ->
    MaxLine = maps:get(max_line, Options, ?MAX_LINE_BYTES),
    %% A line that begins and ends in one piece is never too long.
    Block = min(maps:get(block, Options, ?BLOCK_BYTES), MaxLine),
    Module = case Options of
                 #{follow := true} -> witness_log_follow;
                 #{} -> witness_log_source
             end,
    case Module:open(Input, (maps:with([position], Options))#{block => Block}) of
        {ok, Text} ->
            {ok, #reader{name = name(Input), module = Module, text = Text, max_line = MaxLine,
                         place = Module:place(Text), mark = Module:mark(Text), lines = lines_before(Options)}};
        {error, Reason} -> {error, {?MODULE, {name(Input), Reason}}}
    end.

name(standard_input) -> ~"standard input";
name({file, File}) when is_binary(File) -> File;
name({file, File}) -> unicode:characters_to_binary(filename:flatten(File)).

lines_before(#{position := #{lines := Lines}}) -> Lines;
lines_before(#{}) -> 0.

-doc """
The next lines. `long`: a line of so many bytes was skipped here, and counts as a line. When following: `wait`, there
is no new text, call again later; `lost`, bytes are missing here, since they were gone before they could be read.

## Errors
After an error nothing more can be read; all complete lines before it were returned.
""".
-spec read(reader()) ->
    {block, binary(), position(), reader()} | {long, pos_integer(), position(), reader()}
  | {lost, witness_log_follow:lost(), reader()} | {wait, reader()} | {eof, reader()} | {error, error(), reader()}.
read(R = #reader{pending = Bytes}) when Bytes =/= ~"" -> lines(Bytes, R#reader{pending = ~""});
read(R = #reader{ended = What}) when What =/= no -> continue(What, R);
read(R = #reader{module = Module, text = Text, name = Name}) ->
    case Module:read(Text) of
        {text, Bytes, Text1} -> lines(Bytes, R#reader{text = Text1});
        {eof, Text1} -> handle_end(eof, R#reader{text = Text1});
        {wait, Text1} -> {wait, R#reader{text = Text1}};
        {next, Place, Text1} -> handle_end({next, Place}, R#reader{text = Text1});
        {moved, Place, Text1} -> read(R#reader{text = Text1, place = Place});
        {lost, Reason, Place, Text1} -> {lost, Reason, next_file(Place, drop_rest(R#reader{text = Text1}))};
        {error, Reason, Text1} -> {error, {?MODULE, {Name, Reason}}, drop_rest(R#reader{text = Text1})}
    end.

%% --- lines -----------------------------------------------------------------------

lines(Bytes, R = #reader{long = true, size = Size, mark = Mark}) ->
    case first_newline(Bytes) of
        none -> read(R#reader{size = Size + byte_size(Bytes), mark = witness_log_mark:add(Bytes, Mark)});
        At ->
            <<Line:(At + 1)/binary, Rest/binary>> = Bytes,
            long_line(Size + At, R#reader{pending = Rest, mark = witness_log_mark:add(Line, Mark)})
    end;
lines(Bytes, R = #reader{size = Size, max_line = MaxLine}) when Size + byte_size(Bytes) > MaxLine ->
    case first_newline(Bytes) of
        At when is_integer(At), Size + At =< MaxLine -> whole_lines(Bytes, R);
        _ -> lines(Bytes, drop_beginning(R))
    end;
lines(Bytes, R) -> whole_lines(Bytes, R).

%% The beginning of a line that is too long is dropped.
drop_beginning(R = #reader{rest = Rest, mark = Mark}) ->
    R#reader{rest = [], long = true, mark = lists:foldr(fun witness_log_mark:add/2, Mark, Rest)}.

long_line(Bytes, R = #reader{lines = Lines}) ->
    R1 = R#reader{long = false, size = 0, lines = Lines + 1},
    {long, Bytes, position(R1), R1}.

whole_lines(Bytes, R = #reader{rest = Rest, size = Size}) ->
    case last_newline(Bytes, byte_size(Bytes) - 1) of
        none -> read(R#reader{rest = [Bytes | Rest], size = Size + byte_size(Bytes)});
        At ->
            <<Lines:(At + 1)/binary, Begun/binary>> = Bytes,
            block(join(Rest, Lines), R#reader{rest = [Begun || Begun =/= ~""], size = byte_size(Begun)})
    end.

join([], Lines) -> Lines;
join(Rest, Lines) -> iolist_to_binary(lists:reverse(Rest, [Lines])).

block(Lines, R = #reader{mark = Mark, lines = Before}) ->
    R1 = R#reader{mark = witness_log_mark:add(Lines, Mark), lines = Before + count_lines(Lines)},
    {block, Lines, position(R1), R1}.

count_lines(Lines) ->
    length(binary:matches(Lines, ~"\n")) + unfinished_lines(binary:last(Lines)).

unfinished_lines($\n) -> 0;
unfinished_lines(_) -> 1.

first_newline(Bytes) ->
    case binary:match(Bytes, ~"\n") of
        {At, 1} -> At;
        nomatch -> none
    end.

last_newline(_, -1) -> none;
last_newline(Bytes, At) ->
    case binary:at(Bytes, At) of
        $\n -> At;
        _ -> last_newline(Bytes, At - 1)
    end.

%% --- ends ------------------------------------------------------------------------

%% The end of a file ends its last line.
handle_end(What, R = #reader{size = 0}) -> continue(What, R);
handle_end(What, R = #reader{long = true, size = Size}) -> long_line(Size, R#reader{ended = What});
handle_end(What, R = #reader{rest = Rest}) -> block(join(Rest, ~""), R#reader{rest = [], size = 0, ended = What}).

continue(eof, R) -> {eof, R#reader{ended = eof}};
continue({next, Place}, R) -> read(next_file(Place, R#reader{ended = no})).

next_file(Place, R) -> R#reader{place = Place, mark = witness_log_mark:new(), lines = 0}.

%% The beginning of a line without its end is not a line.
drop_rest(R) -> R#reader{rest = [], size = 0, long = false}.

position(#reader{name = Name, place = Place, mark = Mark, lines = Lines}) ->
    (maps:merge(Place, witness_log_mark:save(Mark)))#{file => Name, lines => Lines}.

%% --- the rest --------------------------------------------------------------------

-doc "How many bytes were read, as they are on disk, and how many there are in total.".
-spec progress(reader()) -> {non_neg_integer(), non_neg_integer() | unknown}.
progress(#reader{module = Module, text = Text}) -> Module:progress(Text).

-doc "Whether everything that was read was given: no line has begun.".
-spec is_between_lines(reader()) -> boolean().
is_between_lines(#reader{pending = Pending, size = Size, long = Long}) -> Pending =:= ~"" andalso Size =:= 0 andalso not Long.

-doc "Closes the log.".
-spec close(reader()) -> ok.
close(#reader{module = Module, text = Text}) -> Module:close(Text).

-doc "A reason as text, with the name of the log.".
-spec format_error(reason()) -> unicode:chardata().
format_error({Name, Reason}) -> [Name, ~": ", describe(Reason)].

describe({damaged, Kind}) -> [~"the ", atom_to_binary(Kind), ~" data is damaged here; what stands before was read"];
describe({truncated, Kind}) -> [~"the ", atom_to_binary(Kind), ~" data ends in the middle; what was whole was read"];
describe({window, zstd}) ->
    ~"a zstd frame needs a window of more than 128 MiB here; what stands before was read: compress it without --long or --ultra";
describe({no_zstd, Release}) ->
    [~"it is compressed with zstd, which Erlang/OTP ", Release, ~" cannot read: take OTP 28 or later, or `zstd -dc`"];
describe({follow_compressed, Kind}) -> [~"it is compressed with ", atom_to_binary(Kind), ~", and cannot be followed"];
describe(follow_input) -> ~"standard input cannot be followed, and needs not to be: it is read until it ends";
describe(no_position) -> ~"it cannot be taken up at a position: what was read of it is gone";
describe(changed) -> ~"it is not what it was when the position was saved: the text before the position is another";
describe(eisdir) -> ~"it is a directory";
describe(Posix) -> file:format_error(Posix).
