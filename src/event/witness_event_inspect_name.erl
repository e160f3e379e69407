-module(witness_event_inspect_name).
-moduledoc """
Names and characters as Elixir writes them: atoms, keys, functions, and what is between quotes.

Names are text here, so that the name inside another one, `run` in `-run/2-fun-0-`, makes no atom. Elixir writes a name without
quotes if it is an identifier, an operator or an alias. Of the letters beyond ASCII this module knows those of Latin-1 and Latin
Extended-A; another name is quoted, which Elixir reads as the same atom.

No text has a character that could harm a terminal. Elixir leaves some of those as they are, such as U+00AD.
""".

-export([literal/1, key/1, call/1, is_alias/1, parent/1, escape/2, escape_character/1]).

%% Operators that can be called.
-define(OPERATORS,
        ["&", "!", "^", "not", "+", "-", "@", "<-", "\\\\", "when", "|", "=", "||", "|||", "or", "&&", "&&&", "and", "==", "!=",
         "=~", "===", "!==", "<", "<=", ">=", ">", "|>", "<<<", ">>>", "<~", "~>", "<<~", "~>>", "<~>", "in", "++", "--", "<>", "+++",
         "---", "*", "/", "**"]).
%% Those that need quotes as an atom, and those that need quotes when they are called.
-define(QUOTED_OPERATORS, ["::", "^^^", "~~~", "<|>"]).
-define(NOT_CALLABLE, ["%", "%{}", "{}", "<<>>", "...", "..", ".", "..//", "->"]).

-define(IS_DIGIT(C), (C >= $0 andalso C =< $9)).
-define(IS_LOWER(C), (C >= $a andalso C =< $z)).
-define(IS_UPPER(C), (C >= $A andalso C =< $Z)).
%% Letters of Latin-1 and Latin Extended-A, without those that Elixir does not allow in a name.
-define(IS_LATIN(C),
        (C >= 16#C0 andalso C =< 16#17E andalso C =/= 16#D7 andalso C =/= 16#F7 andalso C =/= 16#132 andalso C =/= 16#133
            andalso C =/= 16#138 andalso C =/= 16#13F andalso C =/= 16#140 andalso C =/= 16#149)).
-define(IS_NAME(C), (?IS_LOWER(C) orelse ?IS_UPPER(C) orelse ?IS_DIGIT(C) orelse C =:= $_ orelse C =:= $@ orelse ?IS_LATIN(C))).

-doc "An atom: `:ok`, `nil`, `Shop.Pool`, `:\"two words\"`.".
-spec literal(Name :: string()) -> string().
literal(Name) when Name =:= "nil"; Name =:= "true"; Name =:= "false" -> Name;
literal(Name) ->
    case class(Name) of
        alias -> without_elixir(Name);
        Class when Class =:= quoted; Class =:= quoted_operator -> [$: | in_quotes(Name)];
        _ -> [$: | Name]
    end.

without_elixir("Elixir.Elixir" = Name) -> Name;
without_elixir("Elixir.Elixir." ++ _ = Name) -> Name;
without_elixir("Elixir." ++ Alias) -> Alias;
without_elixir("Elixir") -> "Elixir".

-doc "A key of a keyword list or of a map: `name:`.".
-spec key(Name :: string()) -> string().
key(Name) ->
    case class(Name) of
        Class when Class =:= alias; Class =:= quoted; Class =:= quoted_operator -> in_quotes(Name) ++ ":";
        _ -> Name ++ ":"
    end.

-doc "A function behind the point of its module.".
-spec call(Name :: string()) -> string().
call(Name) ->
    case class(Name) of
        Class when Class =:= identifier; Class =:= operator; Class =:= quoted_operator -> Name;
        _ -> in_quotes(Name)
    end.

in_quotes(Name) -> [$" | escape(Name, $")] ++ "\"".

-doc "Whether a name is that of a module of Elixir.".
-spec is_alias(Name :: string()) -> boolean().
is_alias("Elixir." ++ Alias) -> is_alias_part(Alias);
is_alias(_) -> false.

is_alias_part([First | Rest]) when ?IS_UPPER(First) -> is_alias_rest(Rest);
is_alias_part(_) -> false.

is_alias_rest([$. | Rest]) -> is_alias_part(Rest);
is_alias_rest([C | Rest]) when ?IS_LOWER(C); ?IS_UPPER(C); ?IS_DIGIT(C); C =:= $_ -> is_alias_rest(Rest);
is_alias_rest(Rest) -> Rest =:= [].

class(Name) ->
    case {lists:member(Name, ?OPERATORS), lists:member(Name, ?QUOTED_OPERATORS), lists:member(Name, ?NOT_CALLABLE)} of
        {true, _, _} -> operator;
        {_, true, _} -> quoted_operator;
        {_, _, true} -> not_callable;
        _ -> class_of_letters(Name)
    end.

class_of_letters("Elixir") -> alias;
class_of_letters([First | Rest] = Name) when ?IS_LOWER(First); ?IS_UPPER(First); ?IS_LATIN(First); First =:= $_ ->
    case {is_alias(Name), lists:splitwith(fun(C) -> ?IS_NAME(C) end, Rest)} of
        {true, _} -> alias;
        {false, {Letters, End}} when End =:= ""; End =:= "?"; End =:= "!" ->
            case is_upper(First) orelse lists:member($@, Letters) of
                true -> not_callable;
                false -> identifier
            end;
        _ -> quoted
    end;
class_of_letters(_) -> quoted.

is_upper(C) -> string:lowercase([C]) =/= [C].

-doc "The function, and its arity, that an anonymous function is in, from the name of the latter: `-run/2-fun-0-`.".
-spec parent(Name :: string()) -> {Function :: string(), Arity :: string()} | none.
parent([$- | Name]) ->
    case string:split(Name, "/", trailing) of
        [Function, Behind] ->
            case string:split(Behind, "-", all) of
                [Arity, _, _, ""] ->
                    case lists:all(fun(C) -> ?IS_DIGIT(C) end, Arity) of
                        true -> {Function, Arity};
                        false -> none
                    end;
                _ -> none
            end;
        _ -> none
    end;
parent(_) -> none.

-doc "Characters as between quotes of that kind.".
-spec escape(string(), Quote :: char()) -> string().
escape([], _) -> [];
escape([Quote | Rest], Quote) -> [$\\, Quote | escape(Rest, Quote)];
escape("#{" ++ Rest, Quote) -> "\\#{" ++ escape(Rest, Quote);
escape([C | Rest], Quote) when C >= 7, C =< $\r; C =:= $\e; C =:= $\d; C =:= $\\ ->
    [$\\, witness_event_bounded:letter(C) | escape(Rest, Quote)];
escape([C | Rest], Quote) -> escape_character(C) ++ escape(Rest, Quote).

-doc "A character that may be harmful, as its number.".
-spec escape_character(char()) -> string().
escape_character(0) -> "\\0";
escape_character(C) when C < $\s; C =:= $\d -> "\\x" ++ hexadecimal(C, 2);
escape_character(C) when C < $\d -> [C];
escape_character(C) ->
    case is_shown(C) of
        true -> [C];
        false when C < 16#10000 -> "\\u" ++ hexadecimal(C, 4);
        false -> "\\u{" ++ hexadecimal(C, 6) ++ "}"
    end.

%% Beside what is hidden, Elixir escapes spaces that look like others, and what is no character.
is_shown(C) ->
    C > 16#A0 andalso not witness_event_bounded:is_hidden(C) andalso C =/= 16#34F andalso (C < 16#2000 orelse C > 16#200A)
        andalso C =/= 16#205F andalso C =/= 16#FFFC andalso C =/= 16#FFFE andalso C =/= 16#FFFF.

hexadecimal(C, Digits) -> lists:flatten(string:pad(integer_to_list(C, 16), Digits, leading, $0)).
