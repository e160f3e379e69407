-module(witness_log).
-moduledoc """
Logs: events of a system in a file, as text or as JSON Lines (see `docs/logs.md` for both formats).

A parser takes blocks of whole lines and returns the events in them, with the numbers of their lines:

```
1> Parser = witness_log:parser(#{format => text}).
2> witness_log:parse(~"recv(<0.102.0>,{<0.101.0>,{add,1,2}})\nexit(<0.102.0>,normal)\n", Parser).
#{items => [{1,{recv,<0.102.0>,undefined,{<0.101.0>,{add,1,2}},undefined}},
            {2,{exit,<0.102.0>,normal,undefined}}],
  lines => 2,malformed => [],skipped => 0}
```

A log is data. Nothing in it is run or loaded, nothing in it makes a parser fail, and the number of atoms that it adds to the
VM is bounded. The result shares nothing with the block, so no part of it keeps the block in memory.
""".

-export([format_of/1, guess/1, parser/1, parse/2, line/2, proc/1]).

-export_type([format/0, parser/0, options/0, entry/0, parsed/0, malformed/0]).

-doc "Erlang's notation, an event a line; or JSON Lines.".
-type format() :: text | json.

-doc """
- `format`: that of the blocks;
- `max_atoms`: how many names the log may add to those that the VM knows (100,000);
- `skip_malformed`: whether to go on after a malformed line (`false`).
""".
-type options() :: #{format := format(), max_atoms => pos_integer(), skip_malformed => boolean()}.

-doc "Any number of processes may share a parser; their logs then share the bound on atoms.".
-opaque parser() :: {format(), witness_log_atoms:atoms(), SkipMalformed :: boolean()}.

-doc """
What a line says: an event, a mark of a process, or what holds for the log itself. `receives` says what each `recv` of the log is: a
message that was delivered to its process, or one that the process has taken. `functions` names functions of which the log has all calls
and returns. `root` says that a process, which begins next, needs no spawn in the log. `clock` is a time up to which nothing has happened that
is not in the lines before.
""".
-type entry() :: witness_event:item() | {root, witness_event:proc(), witness_event:ts()} | {receives, taken | delivered} |
                 {functions, [mfa()]} | {clock, Time :: integer()}.

-doc "A line that is not an event: its number, the column of the error (both count from 1), and what is wrong.".
-type malformed() :: {Line :: pos_integer(), Column :: pos_integer(), What :: unicode:chardata()}.

-doc """
The content of a block. Lines count from 1 within it.

`lines` is their number, also of those after an error. Without `skip_malformed`, `malformed` has the first malformed line,
and `items` the lines before it. With it, `malformed` has the first ten, and `skipped` is the number of all malformed lines.
""".
-type parsed() :: #{
    items := [{Line :: pos_integer(), entry()}],
    lines := non_neg_integer(),
    skipped := non_neg_integer(),
    malformed := [malformed()]
}.

-define(MAX_ATOMS, 100_000).
-define(MAX_LISTED, 10).
-define(BOM, 16#EF, 16#BB, 16#BF).

-doc "The format by the name of a file; `.gz` and `.zst` at its end are ignored.".
-spec format_of(file:name_all()) -> {ok, format()} | unknown.
format_of(File) ->
    case lowercase_extension(File) of
        {Root, Extension} when Extension =:= ".gz"; Extension =:= ".zst" -> format_of_extension(lowercase_extension(Root));
        Named -> format_of_extension(Named)
    end.

lowercase_extension(File) ->
    Name = case filename:basename(File) of
        Text when is_list(Text) -> Text;
        Raw -> binary_to_list(Raw)
    end,
    {filename:rootname(Name), string:lowercase(filename:extension(Name))}.

format_of_extension({_, Extension}) when Extension =:= ".jsonl"; Extension =:= ".ndjson"; Extension =:= ".json" -> {ok, json};
format_of_extension({_, Extension}) when Extension =:= ".log"; Extension =:= ".txt"; Extension =:= ".events";
                                    Extension =:= ".text" ->
    {ok, text};
format_of_extension(_) -> unknown.

-doc "The format of a log with these first bytes.".
-spec guess(FirstBytes :: binary()) -> format().
guess(<<?BOM, Rest/binary>>) -> guess(Rest);
guess(<<C, Rest/binary>>) when C =:= $\s; C =:= $\t; C =:= $\r; C =:= $\n -> guess(Rest);
guess(<<"{", _/binary>>) -> json;
guess(_) -> text.

-doc "A parser for blocks of a log.".
-spec parser(options()) -> parser().
parser(#{format := Format} = Options) when Format =:= text; Format =:= json ->
    Atoms = witness_log_atoms:new(maps:get(max_atoms, Options, ?MAX_ATOMS)),
    {Format, Atoms, maps:get(skip_malformed, Options, false)}.

-doc """
The events of a block: whole lines of UTF-8, the last one perhaps without its newline.

A byte order mark at its beginning is skipped, and so are blank lines and, in the text format, comments.
""".
-spec parse(Block :: binary(), parser()) -> parsed().
parse(Block, {Format, Atoms, Skip}) ->
    Begin = case Block of
        <<?BOM, _/binary>> -> 3;
        _ -> 0
    end,
    events(Block, Begin, 1, Format, Atoms, Skip, [], 0, []).

events(Block, At, Line, _, _, _, Items, Skipped, Malformed) when At >= byte_size(Block) ->
    #{items => lists:reverse(Items), lines => Line - 1, skipped => Skipped, malformed => lists:reverse(Malformed)};
events(Block, At, Line, Format, Atoms, Skip, Items, Skipped, Malformed) ->
    case event(Format, Block, At, Atoms) of
        {none, Next} ->
            events(Block, Next, Line + 1, Format, Atoms, Skip, Items, Skipped, Malformed);
        {malformed, Where, What} when Skip ->
            Listed = [{Line, column(Block, At, Where), What} || Skipped < ?MAX_LISTED] ++ Malformed,
            events(Block, next_line(Block, Where), Line + 1, Format, Atoms, Skip, Items, Skipped + 1, Listed);
        {malformed, Where, What} ->
            #{items => lists:reverse(Items), lines => Line + lines(Block, next_line(Block, Where)), skipped => 0,
              malformed => [{Line, column(Block, At, Where), What}]};
        {Item, Next} ->
            events(Block, Next, Line + 1, Format, Atoms, Skip, [{Line, Item} | Items], Skipped, Malformed)
    end.

event(text, Block, At, Atoms) ->
    <<_:At/binary, Rest/binary>> = Block,
    witness_log_text:event(Rest, Block, At, Atoms);
event(json, Block, At, Atoms) ->
    <<_:At/binary, Rest/binary>> = Block,
    witness_log_json:event(Rest, Block, At, Atoms).

next_line(Block, At) ->
    case binary:match(Block, ~"\n", [{scope, {At, byte_size(Block) - At}}]) of
        {Newline, _} -> Newline + 1;
        nomatch -> byte_size(Block)
    end.

lines(Block, At) ->
    Newlines = binary:matches(Block, ~"\n", [{scope, {At, byte_size(Block) - At}}]),
    Unfinished = At < byte_size(Block) andalso binary:last(Block) =/= $\n,
    length(Newlines) + length([last || Unfinished]).

%% A byte that is not part of UTF-8 counts as one character.
column(Block, Begin, Where) -> 1 + characters(binary_part(Block, Begin, Where - Begin), 0).

characters(<<_/utf8, Rest/binary>>, Count) -> characters(Rest, Count + 1);
characters(<<_, Rest/binary>>, Count) -> characters(Rest, Count + 1);
characters(<<>>, Count) -> Count.

-doc """
An entry as a line of a log, with its newline. `parse/2` reads it back as the same item, with two exceptions. Local functions
are read as `{external, Text}`. Identifiers of other nodes change, because the text has only a number for the node.
""".
-spec line(entry(), format()) -> iolist().
line(Item, Format) -> witness_log_line:line(Item, Format).

-doc "The process with this name in a log: `<0.5.0>` is a process of a BEAM, other names are those of processes elsewhere.".
-spec proc(binary()) -> {ok, witness_event:proc()} | error.
proc(<<>>) -> error;
proc(Name) ->
    case unicode:characters_to_binary(Name) of
        Name -> {ok, witness_log_json:process(Name, witness_log_atoms:new(1))};
        _ -> error
    end.
