-module(witness_spec_scan).
-moduledoc """
Turns the bytes of a specification into tokens, within limits.

The limits are checked before Erlang's own scanner runs, since it makes an atom of every name. Tokens have their place
and their text, so that messages and explanations can quote their author.
""".

-export([file/1, without_mark/1, max_bytes/0, string/1, string/2, comments/1, lines/1, location/1, after_token/1, token_text/1,
         text/2, closing/1, ends_operand/1, refuse/3, expected/3]).
-export_type([token/0]).

-doc "A token of `m:erl_scan`, with line, column and text; the last one is `{eof, Anno}`, right after the others.".
-type token() :: erl_scan:token() | {eof, erl_anno:anno()}.

-define(MAX_BYTES, 1_000_000).
-define(MAX_NAMES, 10_000).
-define(MAX_ALIASES, 1_000).
-define(MAX_DEPTH, 2_000).
%% Texts that are kept for messages and explanations are cut to this many characters.
-define(MAX_TEXT, 240).

-doc "Reads a file, never more of it than the limit.".
-spec file(file:name_all()) -> {ok, binary()} | {error, witness_spec_diagnostic:finding()}.
file(File) ->
    case file:open(File, [read, raw, binary]) of
        {ok, Device} ->
            try
                case read(Device, <<>>) of
                    {ok, Source} -> {ok, without_mark(Source)};
                    {error, _} = Error -> Error
                end
            after
                file:close(Device)
            end;
        {error, Reason} ->
            {error, unreadable(Reason)}
    end.

-doc "The text behind a byte order mark, with which some editors begin a file.".
-spec without_mark(binary()) -> binary().
without_mark(<<16#ef, 16#bb, 16#bf, Source/binary>>) -> Source;
without_mark(Source) -> Source.

-doc "How many bytes a specification has at most.".
-spec max_bytes() -> pos_integer().
max_bytes() -> ?MAX_BYTES.

%% A pipe returns what is available, so one read is not enough.
read(_, Source) when byte_size(Source) > ?MAX_BYTES ->
    {ok, Source};
read(Device, Source) ->
    case file:read(Device, ?MAX_BYTES + 1 - byte_size(Source)) of
        {ok, More} -> read(Device, <<Source/binary, More/binary>>);
        eof -> {ok, Source};
        {error, Reason} -> {error, unreadable(Reason)}
    end.

unreadable(Reason) ->
    witness_spec_diagnostic:error(undefined, unreadable, ["cannot read the file: ", file:format_error(Reason)]).

-doc "The lines of a source, up to the first character that is not UTF-8.".
-spec lines(binary()) -> [binary()].
lines(Source) ->
    [string:trim(Line, trailing, "\r") || Line <- binary:split(to_unicode(Source), <<"\n">>, [global])].

to_unicode(Source) ->
    case unicode:characters_to_binary(Source) of
        Valid when is_binary(Valid) -> Valid;
        {_, Valid, _} -> Valid
    end.

-doc #{equiv => string(Source, <<>>)}.
-spec string(binary()) -> {ok, [token()]} | {error, [witness_spec_diagnostic:finding()]}.
string(Source) -> string(Source, <<>>).

-doc "Scans a source. The limits include other sources, scanned `Before`.".
-spec string(binary(), Before :: binary()) -> {ok, [token()]} | {error, [witness_spec_diagnostic:finding()]}.
string(Source, Before) when byte_size(Source) + byte_size(Before) > ?MAX_BYTES ->
    failure(undefined, too_large, io_lib:format("a specification has at most ~b bytes", [?MAX_BYTES]), undefined);
string(Source, Before) ->
    case unicode:characters_to_list(Source) of
        Chars when is_list(Chars) ->
            case binary:match(Source, <<0>>) of
                nomatch -> characters(Chars, unicode:characters_to_list(Before));
                {Place, 1} ->
                    failure(position(unicode:characters_to_list(binary:part(Source, 0, Place))), nul,
                            "this is a NUL byte, which no text has",
                            "is it a specification? its encoding has to be UTF-8")
            end;
        {_, Valid, _} ->
            failure(position(Valid), not_utf8, "this byte is not UTF-8", "save the file in the encoding UTF-8")
    end.

-doc "The comments of a text that `string/1` has accepted, with their places.".
-spec comments(binary()) -> [{witness_spec_diagnostic:location(), string()}].
comments(Source) ->
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Source), {1, 1}, [text, return_comments]),
    [{erl_anno:location(Anno), string:trim(Text, trailing)} || {comment, Anno, Text} <- Tokens].

characters(Chars, Before) ->
    case witness_spec_names:has_more_names(Before ++ "\n" ++ Chars, ?MAX_NAMES) of
        true ->
            failure(undefined, too_many_names,
                    io_lib:format("a specification has at most ~b different names", [?MAX_NAMES]),
                    "split it into several files");
        false ->
            scan(Chars)
    end.

scan(Chars) ->
    case erl_scan:string(Chars, {1, 1}, [text]) of
        {ok, Tokens, _} ->
            case glued(Tokens) of
                none -> aliases(witness_spec_time:durations(Tokens));
                {Kind, Location} -> unscannable(Location, erl_scan, {illegal, Kind}, Chars)
            end;
        {error, {Location, Module, Reason}, _} -> unscannable(Location, Module, Reason, Chars)
    end.

%% The first number with a name right behind it. OTP 27 reads two tokens, later releases refuse it.
glued([{Kind, Anno, _}, {Next, Behind, _} = Name | Tokens]) when
        Kind =:= integer orelse Kind =:= float, Next =:= atom orelse Next =:= var ->
    {Line, Column} = erl_anno:location(Anno),
    case erl_anno:location(Behind) =:= {Line, Column + length(erl_anno:text(Anno))} of
        true -> {Kind, {Line, Column}};
        false -> glued([Name | Tokens])
    end;
glued([_ | Tokens]) -> glued(Tokens);
glued([]) -> none.

%% The scanner places an unterminated string after its opening quote.
unscannable({Line, Column}, Module, Reason, Chars) ->
    Quoted = case Reason of {unterminated, What, _} -> What =/= char; _ -> false end,
    Start = case Quoted andalso Column > 1 andalso lists:sublist(lists:nth(Line, rows(Chars)), Column - 1, 1) of
        [C] when C =:= $"; C =:= $' -> {Line, Column - 1};
        _ -> {Line, Column}
    end,
    Hint = case Reason of
        {illegal, Number} when Number =:= integer; Number =:= float -> "a unit of time stands apart from its number, as in `5 s`";
        _ -> undefined
    end,
    Finding = witness_spec_diagnostic:error(Start, syntax, shorten(Module:format_error(Reason)), Hint),
    {error, [witness_spec_elixir:explain(Finding, from(Start, Chars), Start, Start)]}.

%% The text from a place on.
from({Line, Column}, Chars) -> lists:nthtail(Column - 1, lists:append(lists:join("\n", lists:nthtail(Line - 1, rows(Chars))))).

shorten(Text) ->
    [case C of $\n -> $\s; _ -> C end || C <- lists:sublist(lists:flatten(Text), 100)].

failure(Location, Code, Text, Hint) -> {error, [witness_spec_diagnostic:error(Location, Code, Text, Hint)]}.

%% The place after these characters.
position(Chars) ->
    Rows = rows(Chars),
    {length(Rows), length(lists:last(Rows)) + 1}.

%% Not string:split/3: it treats "\r\n" as one character.
rows(Chars) ->
    case lists:splitwith(fun(C) -> C =/= $\n end, Chars) of
        {Row, [$\n | Rest]} -> [Row | rows(Rest)];
        {Row, []} -> [Row]
    end.

aliases(Tokens) ->
    case witness_spec_names:has_more_aliases(Tokens, ?MAX_ALIASES) of
        true ->
            failure(undefined, too_many_names,
                    io_lib:format("a specification names at most ~b modules of Elixir", [?MAX_ALIASES]),
                    "split it into several files");
        false ->
            depth(Tokens, [], 0)
    end.

%% Later passes recurse over nested terms, so nesting is bounded here, once.
depth([Token | _], _, Depth) when Depth > ?MAX_DEPTH ->
    failure(location(Token), too_deep, io_lib:format("brackets are nested more than ~b deep", [?MAX_DEPTH]), undefined);
depth([Token | Rest], Seen, Depth) ->
    depth(Rest, [Token | Seen], max(0, Depth + depth_change(Token)));
depth([], Seen, _) ->
    End = case Seen of [] -> {1, 1}; [Last | _] -> after_token(Last) end,
    {ok, lists:reverse(Seen, [{eof, erl_anno:new(End)}])}.

depth_change({Bracket, _}) when Bracket =:= '('; Bracket =:= '['; Bracket =:= '{'; Bracket =:= '<<' -> 1;
depth_change({Bracket, _}) when Bracket =:= ')'; Bracket =:= ']'; Bracket =:= '}'; Bracket =:= '>>' -> -1;
depth_change(_) -> 0.

-doc "Where a token begins.".
-spec location(token()) -> witness_spec_diagnostic:location().
location(Token) ->
    Anno = element(2, Token),
    {erl_anno:line(Anno), erl_anno:column(Anno)}.

-doc "The place right after a token.".
-spec after_token(token()) -> witness_spec_diagnostic:location().
after_token(Token) ->
    {Line, Column} = location(Token),
    case rows(token_text(Token)) of
        [Row] -> {Line, Column + length(Row)};
        Rows -> {Line + length(Rows) - 1, length(lists:last(Rows)) + 1}
    end.

-doc "A token as it was written, without the white space that is part of a final dot.".
-spec token_text(token()) -> string().
token_text({dot, _}) ->
    ".";
token_text(Token) ->
    case erl_anno:text(element(2, Token)) of
        undefined -> "";
        Text -> Text
    end.

-doc """
The source text from the first token up to, and without, `End`: on one line, without comments, with white space as one
space, cut to a limit.
""".
-spec text([token()], End :: witness_spec_diagnostic:location()) -> binary().
text(Tokens, End) ->
    <<_/binary>> = unicode:characters_to_binary(text(Tokens, End, none, 0)).

text([Token | Rest], End, Previous, Length) ->
    case location(Token) of
        End -> [];
        _ when Length > ?MAX_TEXT -> "...";
        Location ->
            Gap = case Previous =:= none orelse Previous =:= Location of true -> ""; false -> " " end,
            Text = [case C < $\s of true -> $\s; false -> C end || C <- token_text(Token)],
            Kept = case length(Text) > ?MAX_TEXT of true -> lists:sublist(Text, ?MAX_TEXT) ++ "..."; false -> Text end,
            [Gap, Kept | text(Rest, End, after_token(Token), Length + length(Gap) + length(Kept))]
    end;
text([], _, _, _) ->
    [].

-doc "Whether a pattern or an expression can end with this token.".
-spec ends_operand(token()) -> boolean().
ends_operand({Kind, _, _}) ->
    lists:member(Kind, [atom, var, integer, float, char, string, sigil_suffix]);
ends_operand({Symbol, _}) ->
    lists:member(Symbol, ['else', ')', ']', '}', '>>']).

-doc "The bracket that closes an opening one; `none` for every other token.".
-spec closing(token()) -> atom().
closing({'(', _}) -> ')';
closing({'[', _}) -> ']';
closing({'{', _}) -> '}';
closing({'<<', _}) -> '>>';
closing(_) -> none.

-doc "Throws the error that a token is wrong where it stands.".
-spec refuse(token(), Text :: unicode:chardata(), Hint :: unicode:chardata()) -> no_return().
refuse(Token, Text, Hint) -> throw(witness_spec_diagnostic:error(location(Token), syntax, Text, Hint)).

-doc "Throws the error that something else is expected than the first of these tokens.".
-spec expected(unicode:chardata(), [token(), ...], Hint :: unicode:chardata()) -> no_return().
expected(What, [{eof, _} = End | _], Hint) -> refuse(End, ["expected ", What, ", found the end of the file"], Hint);
expected(What, [Token | _], Hint) ->
    refuse(Token, ["expected ", What, ", found ", witness_spec_diagnostic:quote(token_text(Token))], Hint).
