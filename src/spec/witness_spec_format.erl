-module(witness_spec_format).
-moduledoc """
Formats specifications: text to text, on tokens, so nothing that the author wrote is lost.

- `with`, `per ... over`, `among`, each `let`, and `monitor` or `check` begin a line, and a sentence does, indented. `check` or `monitor`
  stays in one line with a formula that fits, and a property stays in one line if its author wrote it so and it fits.
- A sentence that is too long is broken in front of `leads to`, `precedes`, `alternates with` and the word of its scope, and then in front of
  `then`, `within`, `until` and `in`. Where its author has broken it at such a place, it is broken.
- A machine has a line for `machine`, each state, each transition and `end`. Its arrows stand in one column; if a line would be too long,
  those of each state do; if a line of the state would be too long, one space stands in front of each.
- A formula is broken in front of `and` and `or`, after the `(` of a loop or of parentheses, after the commas of `and(...)`, and then between
  modalities. It is broken where it is longer than 100 columns, and where the author has broken it at such a place.
- What is in parentheses is indented by two columns, and what belongs to a list is in the column where it begins.
- Other line breaks are made only where a line is too long: behind commas and in front of words such as `when` and `until`, if that is enough.
- Comments stay between the same tokens, an empty line stays where a line ends, and several become one.
- What is unknown, and what stands in attributes, keeps its lines; each deeper indentation becomes two columns.

The result is read again, and must have the same tokens and comments.
""".

-export([file/1, string/2, text/1, is_specification/1]).

-define(MAX_FINDINGS, 50).

-doc "The text of a specification in a file, and its formatted text.".
-spec file(file:filename()) -> {ok, Source :: binary(), Formatted :: binary()} | {error, witness_spec:error()}.
file(File) ->
    Name = unicode:characters_to_binary(File),
    case witness_spec_scan:file(File) of
        {ok, Source} -> string(Name, Source);
        {error, Finding} -> {error, {witness_spec, witness_spec_diagnostic:locate([Finding], Name, [])}}
    end.

-doc "The same of a specification that is not in a file. `Name` stands in its errors.".
-spec string(Name :: binary(), Source :: binary()) ->
    {ok, Source :: binary(), Formatted :: binary()} | {error, witness_spec:error()}.
string(Name, Given) ->
    Source = witness_spec_scan:without_mark(Given),
    maybe
        ok ?= is_specification(Source),
        {ok, Formatted} ?= text(Source),
        {ok, Source, Formatted}
    else
        {error, Findings} ->
            Located = witness_spec_diagnostic:locate(Findings, Name, witness_spec_scan:lines(Source)),
            {error, {witness_spec, lists:sublist(Located, ?MAX_FINDINGS)}}
    end.

-doc """
The formatted text of a specification. Without errors of the scanner there is one: whether it is a specification says `is_specification/1`.
""".
-spec text(binary()) -> {ok, binary()} | {error, [witness_spec_diagnostic:finding()]}.
text(Source) ->
    maybe
        {ok, Tokens} ?= witness_spec_scan:string(Source),
        Comments = witness_spec_scan:comments(Source),
        Doc = witness_spec_format_layout:file(Tokens, Comments),
        <<Formatted/binary>> = unicode:characters_to_binary(witness_spec_format_doc:render(Doc)),
        {ok, Again} ?= witness_spec_scan:string(Formatted),
        Same = words(Tokens, Comments) =:= words(Again, witness_spec_scan:comments(Formatted)),
        Same orelse error({format, not_the_same_tokens}),
        {ok, Formatted}
    end.

%% Tokens and comments in their order, without places, and with one space in a duration.
words(Tokens, Comments) ->
    Placed = [{witness_spec_scan:location(Token), word(Token)} || Token <- Tokens, element(1, Token) =/= eof],
    [Word || {_, Word} <- lists:merge(Placed, Comments)].

word({dot, _}) -> dot;
word({Kind, _}) -> Kind;
word({Kind, _, Value}) -> {Kind, Value}.

-doc "Whether the parser can read a text: `ok`, or its errors. Files that it includes are not read.".
-spec is_specification(binary()) -> ok | {error, [witness_spec_diagnostic:finding()]}.
is_specification(Source) ->
    maybe
        {ok, Tokens} ?= witness_spec_scan:string(Source),
        {_, Rest, Undeclared} = witness_spec_record:declarations(Tokens, []),
        {_, Malformed} = witness_spec_parse:file(Rest, unicode:characters_to_list(Source)),
        case [Finding || {error, _, syntax, _, _} = Finding <- Undeclared] ++ Malformed of
            [] -> ok;
            Findings -> {error, Findings}
        end
    end.
