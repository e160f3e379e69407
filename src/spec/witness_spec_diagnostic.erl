-module(witness_spec_diagnostic).
-moduledoc """
Errors and warnings about a specification, with their places.

The scanner, the parser and the checker know positions and words; they make a `t:finding/0`. `locate/3` adds the file and
the text of the line once, at the end.
""".

-export([error/4, error/3, warning/4, locate/3, format/1, quote/1, similar/2]).
-export_type([finding/0, location/0, diagnostic/0]).

-doc "Line and column, both counted from 1; a column counts Unicode code points.".
-type location() :: {Line :: pos_integer(), Column :: pos_integer()}.

-doc "What is wrong and where, without the file. A finding without a place concerns the whole file.".
-type finding() :: {error | warning, location() | undefined, Code :: atom(), Text :: unicode:chardata(),
                    Hint :: unicode:chardata() | undefined}.

-doc "A finding with its file and the offending line; all texts are UTF-8 binaries.".
-type diagnostic() :: #{severity := error | warning,
                        file := binary(),
                        line := pos_integer() | undefined,
                        column := pos_integer() | undefined,
                        code := atom(),
                        text := binary(),
                        source := binary() | undefined,
                        hint := binary() | undefined}.

%% Words that are less like what was written are other words.
-define(MIN_SIMILARITY, 0.8).
%% Limits in characters: of a source line, and of a token that is quoted in a text.
-define(MAX_LINE_CHARACTERS, 120).
-define(MAX_QUOTE_CHARACTERS, 40).

-doc "An error with a hint on what to do.".
-spec error(location() | undefined, atom(), unicode:chardata(), unicode:chardata() | undefined) -> finding().
error(Location, Code, Text, Hint) -> {error, Location, Code, Text, Hint}.

-doc "An error that explains itself.".
-spec error(location() | undefined, atom(), unicode:chardata()) -> finding().
error(Location, Code, Text) -> {error, Location, Code, Text, undefined}.

-doc "A warning: the specification is used, but probably does not say what was meant.".
-spec warning(location() | undefined, atom(), unicode:chardata(), unicode:chardata() | undefined) -> finding().
warning(Location, Code, Text, Hint) -> {warning, Location, Code, Text, Hint}.

-doc "The words that are much like what was written.".
-spec similar(Written :: string(), [Word]) -> [Word] when Word :: atom() | string().
similar(Written, Words) ->
    [Word || Word <- Words, string:jaro_similarity(Written, letters(Word)) > ?MIN_SIMILARITY].

letters(Word) when is_atom(Word) -> atom_to_list(Word);
letters(Word) -> Word.

-doc """
Findings as diagnostics of one file, in the order of their places, each once. `Lines` are the lines of the source; it is
empty if the source could not be read.
""".
-spec locate([finding()], File :: binary(), Lines :: [binary()]) -> [diagnostic()].
locate(Findings, File, Lines) ->
    Table = list_to_tuple(Lines),
    Sorted = lists:usort([{place(Location), Finding} || {_, Location, _, _, _} = Finding <- Findings]),
    [diagnostic(Finding, File, Table) || {_, Finding} <- Sorted].

place(undefined) -> {0, 0};
place(Location) -> Location.

diagnostic({Severity, Location, Code, Text, Hint}, File, Table) ->
    {Line, Column} = case Location of undefined -> {undefined, undefined}; _ -> Location end,
    #{severity => Severity, file => File, line => Line, column => Column, code => Code, text => text(Text),
      source => source(Line, Table), hint => case Hint of undefined -> undefined; _ -> text(Hint) end}.

source(Line, Table) when is_integer(Line), Line =< tuple_size(Table) -> element(Line, Table);
source(_, _) -> undefined.

text(Chardata) -> <<_/binary>> = unicode:characters_to_binary(Chardata).

-doc """
A diagnostic as compilers print it:

```text
calc.hml:3:12: error: expected `]`, found `.`
    [_ ? {add, A, B} ff.
                       ^
  hint
```

Long lines are cut around the column; control characters, which could change what a terminal shows, become `?`.
""".
-spec format(diagnostic()) -> binary().
format(#{severity := Severity, file := File, text := Text} = Diagnostic) ->
    iolist_to_binary([plain(File), position(Diagnostic), ": ", atom_to_binary(Severity), ": ", plain(Text),
                      excerpt(Diagnostic), hint(Diagnostic)]).

position(#{line := undefined}) -> "";
position(#{line := Line, column := undefined}) -> [":", integer_to_binary(Line)];
position(#{line := Line, column := Column}) -> [":", integer_to_binary(Line), ":", integer_to_binary(Column)].

excerpt(#{source := Source, column := Column}) when is_binary(Source), is_integer(Column) ->
    {Before, After, Cut} = window(unicode:characters_to_list(Source), Column - 1),
    Margin = [case C of $\t -> $\t; _ -> $\s end || C <- Before],
    text(["\n  ", Cut, clean(Before), clean(After), "\n  ", [$\s || _ <- Cut], Margin, "^"]);
excerpt(_) ->
    "".

%% The text before and after the column; Cut marks text that was left out at the front.
window(Chars, Offset) ->
    {Before, After} = lists:split(min(Offset, length(Chars)), Chars),
    case length(Before) - ?MAX_LINE_CHARACTERS div 2 of
        Excess when Excess > ?MAX_LINE_CHARACTERS div 2 ->
            {lists:nthtail(Excess, Before), lists:sublist(After, ?MAX_LINE_CHARACTERS div 2), "..."};
        _ -> {Before, lists:sublist(After, ?MAX_LINE_CHARACTERS), ""}
    end.

hint(#{hint := undefined}) -> "";
hint(#{hint := Hint}) -> ["\n  ", plain(Hint)].

plain(Text) -> text(clean(unicode:characters_to_list(Text))).

clean(Chars) -> [case control(C) of true -> $?; false -> C end || C <- Chars].

%% C0 and C1 controls, and the characters that reorder or hide the text around them.
control($\t) -> false;
control(C) when C < 32; C >= 127, C < 160 -> true;
control(C) when C >= 16#200B, C =< 16#200F; C >= 16#2028, C =< 16#202E; C >= 16#2066, C =< 16#2069; C =:= 16#FEFF ->
    true;
control(_) -> false.

-doc "A piece of source, quoted for a text: in backticks, on one line, cut to a few characters.".
-spec quote(unicode:chardata()) -> unicode:chardata().
quote(Text) ->
    Chars = clean(unicode:characters_to_list(Text)),
    case length(Chars) > ?MAX_QUOTE_CHARACTERS of
        true -> ["`", lists:sublist(Chars, ?MAX_QUOTE_CHARACTERS), "...`"];
        false -> ["`", Chars, "`"]
    end.
