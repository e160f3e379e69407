-module(witness_spec_shape).
-moduledoc """
Events that come near to an action which never matches. The usual mistake is a pattern with the right words in another shape, such as
`{add, A, B}` for a message `{From, {add, 1, 2}}`.

An event has the *same* shape as an action if its pattern matches when each variable and each number matches anything of its kind. So its guard
is left out, and so are values that were bound before. It is *near* if it is of the same kind and has another shape, but has all words of the
pattern's last part: of the message, the exit reason, the signature or the value. Words are atoms, and binaries that are written as text; an
atom and a binary with the same text are the same word. A pattern without words is near to nothing. Pure.
""".

-export([new/1, compare/2]).

-export_type([shape/0]).

-doc "The shape of an action.".
-opaque shape() :: none | {witness_event:kind(), [witness_spec_pattern:expr()], Words :: [binary()]}.

%% Parts of a term that are searched for words.
-define(MAX_PARTS, 1000).
%% Values rather than words.
-define(IS_VALUE(Atom), (Atom =:= true orelse Atom =:= false orelse Atom =:= undefined orelse Atom =:= nil)).

-doc "The shape of an action; `else` has none.".
-spec new(#{kind := witness_event:kind() | 'else' | test, pattern := witness_spec_pattern:expr(), _ => _}) -> shape().
new(#{kind := Kind, pattern := {tuple, _, [_ | Elements]}}) when Kind =/= 'else' ->
    Fields = lists:sublist(Elements, fields(Kind)),
    {Kind, Fields, lists:usort(pattern_words(lists:last(Fields)))};
new(_) -> none.

%% Without the kind in front and the time behind.
fields(exit) -> 2;
fields(call) -> 2;
fields(_) -> 3.

-doc "How an event compares with an action: it has the same shape, it is near, or neither.".
-spec compare(witness_event:event(), shape()) -> same | near | other.
compare(Event, {Kind, Fields, Words}) when element(1, Event) =:= Kind ->
    [_ | Values] = tuple_to_list(Event),
    Parts = lists:sublist(Values, length(Fields)),
    case fits_all(Fields, Parts) of
        true -> same;
        false when Words =:= [] -> other;
        false ->
            {Missing, _} = missing([lists:last(Parts)], Words, ?MAX_PARTS),
            case Missing of [] -> near; _ -> other end
    end;
compare(_, _) -> other.

fits_all([], []) -> true;
fits_all([Pattern | Patterns], [Term | Terms]) -> fits(Pattern, Term) andalso fits_all(Patterns, Terms);
fits_all(_, _) -> false.

fits({match, _, Left, Right}, Term) -> fits(Left, Term) andalso fits(Right, Term);
fits({tuple, _, Patterns}, Term) -> is_tuple(Term) andalso fits_all(Patterns, tuple_to_list(Term));
fits({cons, _, Head, Tail}, Term) -> is_list(Term) andalso Term =/= [] andalso fits(Head, hd(Term)) andalso fits(Tail, tl(Term));
fits({nil, _}, Term) -> Term =:= [];
fits({atom, _, Atom}, Term) -> Term =:= Atom;
fits({Number, _, _}, Term) when Number =:= integer; Number =:= float; Number =:= char -> is_number(Term);
fits({string, _, Text}, Term) -> Term =:= Text;
fits({bin, _, _} = Binary, Term) ->
    case text(Binary) of
        {ok, Text} -> Term =:= Text;
        none -> is_bitstring(Term)
    end;
fits({map, _, Fields}, Term) -> is_map(Term) andalso lists:all(fun(Field) -> fits_field(Field, Term) end, Fields);
fits({op, _, '++', _, _}, Term) -> is_list(Term);
fits({op, _, _, _}, Term) -> is_number(Term);
fits({op, _, _, _, _}, Term) -> is_number(Term);
fits(_, _) -> true.

fits_field({_, _, Key, Value}, Map) ->
    case constant(Key) of
        {ok, Known} -> is_map_key(Known, Map) andalso fits(Value, map_get(Known, Map));
        none -> true
    end.

constant({bin, _, _} = Binary) -> text(Binary);
constant({Kind, _, Value}) when Kind =:= atom; Kind =:= integer; Kind =:= float; Kind =:= char; Kind =:= string -> {ok, Value};
constant({nil, _}) -> {ok, []};
constant(_) -> none.

%% A binary that is written as one text.
text({bin, _, [{bin_element, _, {string, _, Text}, default, Types}]}) ->
    case {Types, unicode:characters_to_binary(Text)} of
        {[utf8], Binary} when is_binary(Binary) -> {ok, Binary};
        {default, _} -> try {ok, list_to_binary(Text)} catch error:badarg -> none end;
        _ -> none
    end;
text({bin, _, []}) -> {ok, <<>>};
text(_) -> none.

pattern_words({atom, _, Atom}) when ?IS_VALUE(Atom) -> [];
pattern_words({atom, _, Atom}) -> [atom_to_binary(Atom)];
pattern_words({bin, _, _} = Binary) -> [Text || {ok, Text} <- [text(Binary)], Text =/= <<>>];
pattern_words({var, _, _}) -> [];
pattern_words({op, _, _, _, _}) -> [];
pattern_words(Pattern) when is_tuple(Pattern) -> pattern_words(lists:nthtail(2, tuple_to_list(Pattern)));
pattern_words(Patterns) when is_list(Patterns) ->
    lists:append([pattern_words(Pattern) || Pattern <- Patterns, is_tuple(Pattern) orelse is_list(Pattern)]);
pattern_words(_) -> [].

%% Which words are not in these terms, and how many parts may still be searched.
missing(_, [], Left) -> {[], Left};
missing(_, Words, 0) -> {Words, 0};
missing([Term | Terms], Words, Left) ->
    {Words1, Left1} = missing_in(Term, Words, Left - 1),
    missing(Terms, Words1, Left1);
%% Also the end of an improper list.
missing(_, Words, Left) -> {Words, Left}.

missing_in(Atom, Words, Left) when is_atom(Atom) -> {lists:delete(atom_to_binary(Atom), Words), Left};
missing_in(Binary, Words, Left) when is_binary(Binary) -> {lists:delete(Binary, Words), Left};
missing_in(Tuple, Words, Left) when is_tuple(Tuple) -> missing(lists:sublist(tuple_to_list(Tuple), Left), Words, Left);
missing_in(List, Words, Left) when is_list(List) -> missing(List, Words, Left);
missing_in(Map, Words, Left) when is_map(Map) ->
    missing(lists:append([[Key, Value] || {Key, Value} <- first(maps:next(maps:iterator(Map)), Left)]), Words, Left);
missing_in(_, Words, Left) -> {Words, Left}.

first(none, _) -> [];
first(_, 0) -> [];
first({Key, Value, Iterator}, Left) -> [{Key, Value} | first(maps:next(Iterator), Left - 1)].
