-module(witness_text).
-moduledoc """
Small tools for text that a terminal shows: colours, columns, wrapping, and the removal of harmful characters.

Text from outside, such as the names of a specification or the paths of files, goes through `clean/1`. So
no printed text moves the cursor, starts an escape sequence or changes the direction of the text. The
colours that `style/3` puts around text are the only escape sequences that are ever printed.
""".

-export([style/3, clean/1, cut/2, pad/2, wrap/2, count/3, seconds/1, duration/1, exact_duration/1, list/1, columns/1, bindings/3,
         value/4, has_time/2, name/2]).

-export_type([style/0, look/0, times/0]).

-doc "Times of events, with what one reads in their place: `+5.003 s`.".
-type times() :: #{integer() => unicode:chardata()}.

-doc "The kind of a piece of text, which decides its colour.".
-type style() :: bad | good | doubtful | faint | strong.

-doc "How text is shown: with colours or without, and the columns that a line may take. Renderers may know more.".
-type look() :: #{colour := boolean(), width := pos_integer(), _ => _}.

-doc "The text in the colour of its kind, or unchanged if the look has no colours.".
-spec style(style(), unicode:chardata(), look()) -> unicode:chardata().
style(_, Text, #{colour := false}) -> Text;
style(Style, Text, #{colour := true}) -> [~"\e[", colour_code(Style), ~"m", Text, ~"\e[0m"].

colour_code(bad) -> ~"1;31";
colour_code(good) -> ~"32";
colour_code(doubtful) -> ~"33";
colour_code(faint) -> ~"2";
colour_code(strong) -> ~"1".

-doc "The text on one line, without control characters; invalid Unicode is replaced.".
-spec clean(unicode:chardata()) -> binary().
clean(Text) -> << <<(escape_harmful(Char))/binary>> || <<Char/utf8>> <= to_valid(Text) >>.

to_valid(Text) ->
    case unicode:characters_to_binary(Text) of
        Valid when is_binary(Valid) -> Valid;
        {_, Before, <<_, Rest/binary>>} -> <<Before/binary, "\x{FFFD}"/utf8, (to_valid(Rest))/binary>>;
        {_, Before, _} -> <<Before/binary, "\x{FFFD}"/utf8>>
    end.

escape_harmful(Char) when Char < 16#20; Char >= 16#7F, Char < 16#A0 -> escape(Char);
escape_harmful(Char) when Char =:= 16#61C; Char >= 16#200B, Char =< 16#200F; Char >= 16#2028, Char =< 16#202E -> escape(Char);
escape_harmful(Char) when Char >= 16#2066, Char =< 16#206F; Char =:= 16#FEFF -> escape(Char);
escape_harmful(Char) -> <<Char/utf8>>.

escape($\t) -> ~" ";
escape($\n) -> ~"\\n";
escape(Char) -> unicode:characters_to_binary(io_lib:format("\\x{~.16B}", [Char])).

-doc "The text cut to a number of characters; a text that is cut ends in `...`.".
-spec cut(unicode:chardata(), pos_integer()) -> unicode:chardata().
cut(Text, Limit) ->
    case string:length(Text) =< Limit of
        true -> Text;
        false -> [string:slice(Text, 0, max(0, Limit - 3)), ~"..."]
    end.

-doc "The text with blanks after it up to a number of columns.".
-spec pad(unicode:chardata(), non_neg_integer()) -> unicode:chardata().
pad(Text, Columns) -> [Text, lists:duplicate(max(0, Columns - string:length(Text)), $\s)].

-doc """
The text as lines of at most `Columns` characters. If the second half of a line has a blank or a comma, the line breaks after
it. Never an empty list.
""".
-spec wrap(unicode:chardata(), pos_integer()) -> [unicode:chardata(), ...].
wrap(Text, Columns) -> break_lines(string:to_graphemes(Text), Columns).

break_lines(Text, Columns) ->
    case length(Text) =< Columns of
        true -> [Text];
        false ->
            {Line, Rest} = lists:split(Columns, Text),
            case split_at_blank(lists:reverse(Line), [], Columns div 2) of
                none -> [Line | break_lines(Rest, Columns)];
                {Before, After} -> [Before | break_lines(trim_blanks(After ++ Rest), Columns)]
            end
    end.

trim_blanks([$\s | Text]) -> trim_blanks(Text);
trim_blanks(Text) -> Text.

split_at_blank(_, Later, Limit) when length(Later) >= Limit -> none;
split_at_blank([$\s | Before], Later, _) -> {lists:reverse(Before), Later};
split_at_blank([$, | _] = Before, Later, _) -> {lists:reverse(Before), Later};
split_at_blank([Char | Before], Later, Limit) -> split_at_blank(Before, [Char | Later], Limit);
split_at_blank([], _, _) -> none.

-doc "A time that is given in milliseconds.".
-spec seconds(Milliseconds :: non_neg_integer()) -> unicode:chardata().
seconds(Milliseconds) when Milliseconds < 1000 -> [integer_to_binary(Milliseconds), ~" ms"];
seconds(Milliseconds) -> [float_to_binary(Milliseconds / 1000, [{decimals, 1}]), ~" s"].

-doc "A time that is given in nanoseconds, with so many digits as one reads.".
-spec duration(Nanoseconds :: non_neg_integer()) -> binary().
%% The limits are where one more digit would be rounded to.
duration(Ns) when Ns < 9_995_000 -> unit(Ns / 1_000_000, 2, ~" ms");
duration(Ns) when Ns < 999_500_000 -> unit(Ns / 1_000_000, 0, ~" ms");
duration(Ns) when Ns < 99_950_000_000 -> unit(Ns / 1_000_000_000, 1, ~" s");
duration(Ns) -> unit(Ns / 1_000_000_000, 0, ~" s").

unit(Number, Decimals, Unit) -> <<(float_to_binary(Number, [{decimals, Decimals}]))/binary, Unit/binary>>.

-doc "The same with all digits that matter where times are compared: `5.003 s`, `2:00:05 h`, `7 d 00:00:05`.".
-spec exact_duration(Nanoseconds :: non_neg_integer()) -> binary().
exact_duration(Ns) when Ns < 999_999_500 -> unit(Ns / 1_000_000, 3, ~" ms");
exact_duration(Ns) when Ns < 3_599_999_500_000 -> unit(Ns / 1_000_000_000, 3, ~" s");
exact_duration(Ns) ->
    {Days, {Hours, Minutes, Seconds}} = calendar:seconds_to_daystime(max(3600, Ns div 1_000_000_000)),
    iolist_to_binary(case Days of
        0 -> io_lib:format("~b:~2..0b:~2..0b h", [Hours, Minutes, Seconds]);
        _ -> io_lib:format("~b d ~2..0b:~2..0b:~2..0b", [Days, Hours, Minutes, Seconds])
    end).

-doc "A number with its noun: `1 gap`, `2 gaps`.".
-spec count(non_neg_integer(), unicode:chardata(), unicode:chardata()) -> unicode:chardata().
count(1, One, _) -> [~"1 ", One];
count(Number, _, Many) -> [integer_to_binary(Number), ~" ", Many].

-doc "Parts as an enumeration: `a`, `a and b`, `a, b and c`.".
-spec list([unicode:chardata()]) -> unicode:chardata().
list([]) -> ~"";
list([One]) -> One;
list(Parts) ->
    {Init, [Last]} = lists:split(length(Parts) - 1, Parts),
    [lists:join(~", ", Init), ~" and ", Last].

-doc "Rows as lines: the cells of each column but the last are padded to the same number of columns.".
-spec columns([[unicode:chardata()]]) -> [unicode:chardata()].
columns(Rows) ->
    Widths = lists:foldl(fun widths/2, [], Rows),
    [string:trim(row(Row, Widths), trailing) || Row <- Rows].

widths(Row, Widths) -> max_widths([string:length(Cell) || Cell <- Row], Widths).

max_widths([A | As], [B | Bs]) -> [max(A, B) | max_widths(As, Bs)];
max_widths([], Bs) -> Bs;
max_widths(As, []) -> As.

row([Cell], _) -> [Cell];
row([Cell | Cells], [Width | Widths]) -> [pad(Cell, Width), ~"  ", row(Cells, Widths)];
row([], _) -> [].

-doc "Bindings as text: `A = 1, B = 2`.".
-spec bindings([{Name :: binary(), Value :: term()}], witness_event:syntax(), times()) -> unicode:chardata().
bindings(Bindings, Syntax, Times) ->
    lists:join(~", ", [[clean(Name), ~" = ", value(Value, 80, Syntax, Times)] || {Name, Value} <- Bindings]).

-doc "A value as text of at most so many characters, in which times of events are what one reads.".
-spec value(term(), Limit :: pos_integer(), witness_event:syntax(), times()) -> unicode:chardata().
value(Value, Limit, Syntax, Times) ->
    case has_time(Value, Times) of
        true -> cut(unicode:characters_to_binary(with_times(Value, Limit, Syntax, Times)), Limit);
        false -> witness_event:format_term(Value, Limit, Syntax)
    end.

%% Values may be large: what comes later is cut anyway.
-define(MAX_LOOK, 200).

-doc "Whether a time is among the first parts of a value.".
-spec has_time(term(), times()) -> boolean().
has_time(Value, Times) -> map_size(Times) > 0 andalso find_time(Value, Times, ?MAX_LOOK) =:= found.

find_time(_, _, 0) -> 0;
find_time(Time, Times, _) when is_map_key(Time, Times) -> found;
find_time([Head | Tail], Times, Left) ->
    case find_time(Head, Times, Left - 1) of
        found -> found;
        More -> find_time(Tail, Times, More)
    end;
find_time(Tuple, Times, Left) when is_tuple(Tuple), tuple_size(Tuple) =< ?MAX_LOOK ->
    find_time(tuple_to_list(Tuple), Times, Left - 1);
find_time(Map, Times, Left) when is_map(Map), map_size(Map) =< ?MAX_LOOK -> find_time(maps:values(Map), Times, Left - 1);
find_time(_, _, Left) -> Left - 1.

with_times(Time, _, _, Times) when is_map_key(Time, Times) -> map_get(Time, Times);
with_times(Value, Limit, Syntax, Times) ->
    Part = fun(Inner) -> with_times(Inner, Limit, Syntax, Times) end,
    case {has_time(Value, Times), Value} of
        {false, _} -> witness_event:format_term(Value, Limit, Syntax);
        {true, [_ | _]} -> [$[, parts(Value, Part, ?MAX_LOOK), $]];
        {true, #{}} ->
            [case Syntax of elixir -> ~"%{"; erlang -> ~"#{" end,
             lists:join($,, [[Part(Key), ~" => ", Part(Inner)] || Key := Inner <- maps:iterator(Value, ordered)]), $}];
        {true, _} -> [${, parts(tuple_to_list(Value), Part, ?MAX_LOOK), $}]
    end.

parts([Last], Part, _) -> Part(Last);
parts(_, _, 0) -> ~"...";
parts([Head | Tail], Part, Left) when is_list(Tail) -> [Part(Head), $,, parts(Tail, Part, Left - 1)];
parts([Head | Tail], Part, _) -> [Part(Head), $|, Part(Tail)].

-doc "A name as Erlang writes it, or as Elixir does, if it is one of its modules: `Shop.Till`. Only names of Erlang have a limit.".
-spec name(atom(), Limit :: pos_integer()) -> binary().
name(Name, Limit) ->
    case atom_to_binary(Name) of
        <<"Elixir.", Module/binary>> -> clean(Module);
        _ -> witness_event:format_term(Name, Limit)
    end.
