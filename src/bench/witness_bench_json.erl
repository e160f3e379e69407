-module(witness_bench_json).
-moduledoc """
Reads JSON that a person has written, and reports errors with their places.

The text becomes maps with binary keys, lists, binaries, numbers, `true`, `false` and `null`: it creates no atoms. A
byte-order mark at its beginning is skipped. If the text is not JSON, the error has the line and the column. If a value is not
as expected, or a key occurs twice in an object, it has the path: `model.n`, `steps[2]` (places in lists count from 1).
""".

-export([decode/1, lines/1, path/1]).
-export([object/3, list/4, text/2, one_of/3, one_of/4, integer/4, number/4, wrong/2, wrong/3, no_key/3]).

-export_type([path/0, wrong/0]).

-doc "Keys and places in lists, the outermost first.".
-type path() :: [binary() | pos_integer()].

-doc "Thrown by the checks below.".
-type wrong() :: {wrong, path(), Expected :: unicode:chardata()}.

-define(MAX_BYTES, 1_000_000).

-doc "The value of a text.".
-spec decode(binary()) -> {ok, json:decode_value()} | {error, unicode:chardata()}.
decode(Text) when byte_size(Text) > ?MAX_BYTES -> {error, io_lib:format("more than ~b bytes", [?MAX_BYTES])};
decode(<<16#FEFF/utf8, Text/binary>>) -> decode(Text);
decode(Text) ->
    Finish = fun(Fields, Outer) -> {{object, Fields}, Outer} end,
    try json:decode(Text, none, #{object_finish => Finish}) of
        {Value, none, Rest} ->
            case string:trim(Rest) of
                <<>> -> single(Value);
                _ ->
                    At = byte_size(Text) - byte_size(string:trim(Rest, leading)),
                    {error, at(Text, At, ~"the end of the text is expected")}
            end
    catch
        error:unexpected_end -> {error, at(Text, byte_size(Text), ~"the text ends within a value")};
        error:{What, _}:Stack when What =:= invalid_byte; What =:= unexpected_sequence ->
            {error, at(Text, position(Stack), ~"this is no JSON")}
    end.

single(Value) ->
    try {ok, maps(Value, [])}
    catch throw:{wrong, Path, Problem} -> {error, [path(Path), ~": ", Problem]}
    end.

%% The fields of an object are in reverse.
maps({object, Fields}, Path) ->
    lists:foldr(fun({Key, Value}, Map) ->
        is_map_key(Key, Map) andalso wrong(Path ++ [Key], ~"this key stands twice in one object"),
        Map#{Key => maps(Value, Path ++ [Key])}
    end, #{}, Fields);
maps(Values, Path) when is_list(Values) -> [maps(Value, Path ++ [I]) || {I, Value} <- lists:enumerate(Values)];
maps(Value, _) -> Value.

position([{json, _, _, Info} | _]) ->
    case proplists:get_value(error_info, Info) of
        #{cause := #{position := Position}} -> Position;
        _ -> 0
    end.

%% Lines and columns count from 1, columns in characters.
at(Text, Position, What) ->
    Before = binary:part(Text, 0, min(Position, byte_size(Text))),
    Lines = binary:split(Before, ~"\n", [global]),
    io_lib:format("line ~b, column ~b: ~ts", [length(Lines), length_of(lists:last(Lines)) + 1, What]).

length_of(Line) ->
    case unicode:characters_to_list(Line) of
        Chars when is_list(Chars) -> length(Chars);
        _ -> byte_size(Line)
    end.

-doc "An object as readable JSON, one field a line.".
-spec lines(#{atom() => json:encode_value()}) -> iolist().
lines(Object) ->
    Fields = [[~"  ", json:encode(atom_to_binary(Key)), ~": ", json:encode(Value)]
              || {Key, Value} <- lists:sort(maps:to_list(Object))],
    [~"{\n", lists:join(~",\n", Fields), ~"\n}\n"].

-doc "A path as text.".
-spec path(path()) -> unicode:chardata().
path([]) -> ~"the experiment";
path([First | Rest]) -> [step(First) | [inner(Step) || Step <- Rest]].

inner(Key) when is_binary(Key) -> [$., Key];
inner(Place) -> step(Place).

step(Key) when is_binary(Key) -> Key;
step(Place) -> [$[, integer_to_binary(Place), $]].

-doc "Throws an error of a check.".
-spec wrong(path(), unicode:chardata()) -> no_return().
wrong(Path, Expected) -> throw({wrong, Path, Expected}).

-doc "The same, with the value that was found.".
-spec wrong(path(), json:decode_value(), unicode:chardata()) -> no_return().
wrong(Path, Value, Expected) -> wrong(Path, [Expected, ~" is expected, not ", shown(Value)]).

shown(Value) ->
    Text = try iolist_to_binary(json:encode(Value)) catch error:_ -> io_lib:format("~0tp", [Value]) end,
    case string:length(Text) =< 60 of
        true -> Text;
        false -> [string:slice(Text, 0, 57), ~"..."]
    end.

-doc """
The fields of an object, each through the check for its key, which is given the path. A check with a default, `{Check,
Default}`, is skipped if the key is missing.
""".
-spec object(json:decode_value(), path(), #{binary() => Check | {Check, Default :: term()}}) -> #{binary() => term()}
        when Check :: fun((json:decode_value(), path()) -> term()).
object(Object, Path, Checks) when is_map(Object) ->
    [no_key(Path, Key, maps:keys(Checks)) || Key <- lists:sort(maps:keys(Object)), not is_map_key(Key, Checks)],
    maps:map(fun(Key, Check) ->
        case {Object, Check} of
            {#{Key := Value}, {Function, _}} -> Function(Value, Path ++ [Key]);
            {#{Key := Value}, Function} -> Function(Value, Path ++ [Key]);
            {#{}, {_, Default}} -> Default;
            {#{}, _} -> wrong(Path ++ [Key], ~"is missing")
        end
    end, Checks);
object(Value, Path, _) -> wrong(Path, Value, ~"an object").

-doc "Throws the error of an unknown key of the object at the path.".
-spec no_key(path(), binary(), [binary(), ...]) -> no_return().
no_key(Path, Key, Known) -> wrong(Path ++ [Key], [~"there is no such key", similar(Key, lists:sort(Known))]).

similar(Key, Known) ->
    case lists:max([{string:jaro_similarity(string:slice(Key, 0, 100), Other), Other} || Other <- Known]) of
        {Similarity, Other} when Similarity > 0.8 -> [~"; did you mean ", Other, ~"?"];
        _ -> [~"; there are ", lists:join(~", ", Known)]
    end.

-doc "A list that is not empty, without duplicates, each value through the check; at most so many.".
-spec list(json:decode_value(), path(), fun((json:decode_value(), path()) -> T), pos_integer()) -> [T, ...].
list([_ | _] = Values, Path, Check, Most) when length(Values) =< Most ->
    Numbered = lists:enumerate(Values),
    Checked = [{I, Check(Value, Path ++ [I])} || {I, Value} <- Numbered],
    lists:foldl(fun({I, Value}, Seen) ->
        is_map_key(Value, Seen) andalso wrong(Path ++ [I], ~"stands twice in the list"),
        Seen#{Value => I}
    end, #{}, Checked),
    [Value || {_, Value} <- Checked];
list(Value, Path, _, Most) -> wrong(Path, Value, io_lib:format("a list of 1 to ~b values", [Most])).

-doc "A text of 1 to 1,000 characters.".
-spec text(json:decode_value(), path()) -> binary().
text(<<_, _/binary>> = Text, Path) ->
    case string:length(Text) =< 1000 of
        true -> Text;
        false -> wrong(Path, ~"a text of at most 1000 characters is expected")
    end;
text(Value, Path) -> wrong(Path, Value, ~"a text").

-doc "The value of one of the texts.".
-spec one_of(json:decode_value(), path(), [{binary(), T}]) -> T.
one_of(Value, Path, Values) -> one_of(Value, Path, Values, []).

-doc "The same; the error also names the other possibilities.".
-spec one_of(json:decode_value(), path(), [{binary(), T}], Else :: [unicode:chardata()]) -> T.
one_of(Value, Path, Values, Else) ->
    case lists:keyfind(Value, 1, Values) of
        {_, Meaning} when is_binary(Value) -> Meaning;
        _ -> wrong(Path, Value, alternatives([[$", Name, $"] || {Name, _} <- Values] ++ Else))
    end.

alternatives([One]) -> One;
alternatives(All) -> [lists:join(~", ", lists:droplast(All)), ~" or ", lists:last(All)].

-doc "A whole number within two bounds, both included.".
-spec integer(json:decode_value(), path(), integer(), integer()) -> integer().
integer(Value, _, Least, Most) when is_integer(Value), Value >= Least, Value =< Most -> Value;
integer(Value, Path, Least, Most) -> wrong(Path, Value, io_lib:format("a whole number from ~b to ~b", [Least, Most])).

-doc "A number within two bounds, both included.".
-spec number(json:decode_value(), path(), number(), number()) -> number().
number(Value, _, Least, Most) when is_number(Value), Value >= Least, Value =< Most -> Value;
number(Value, Path, Least, Most) -> wrong(Path, Value, io_lib:format("a number from ~w to ~w", [Least, Most])).
