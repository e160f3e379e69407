-module(witness_spec_elixir_string).
-moduledoc """
What is well-formed in a specification for Elixir, but means something else there.

`"abc"` is a list of characters, and what Elixir writes so is a binary. A warning says so where the messages are those of Elixir:
if all signatures of the property name modules of Elixir, in the arguments of a function of Elixir, and in the map of a struct.
A text that must be a list is written `"abc" ++ []`, and begins one in `"abc" ++ Rest`.

`is_integer(X) and X > 1` is `(is_integer(X) and X) > 1` in Erlang, where `and` and `or` bind tighter than comparisons. In Elixir they
do not. A warning says so if the comparison makes no sense with the result of `and` or `or`.
""".

-export([properties/1, binary_hint/1]).

-type finding() :: witness_spec_diagnostic:finding().

-doc "All warnings and errors about these properties.".
-spec properties([witness_spec_parse:property()]) -> [finding()].
properties(Properties) -> lists:flatmap(fun property/1, Properties).

property(Property) ->
    Signatures = witness_spec_parse:property_signatures(Property),
    Elixir = lists:all(fun(#{pattern := Pattern}) -> is_elixir(Pattern) end, Signatures),
    lists:flatmap(fun(Matched) -> matched(Matched, Elixir) end, Signatures ++ witness_spec_parse:property_actions(Property)).

%% The module of `m:f(A)`.
is_elixir({tuple, _, [{atom, _, Module}, _, _]}) -> is_elixir_module(Module);
is_elixir(_) -> false.

is_elixir_module(Module) -> lists:prefix("Elixir.", atom_to_list(Module)).

matched(#{pattern := Pattern, guard := Guard}, Elixir) ->
    precedence(Guard) ++ case Pattern of
        {tuple, _, [{atom, _, Kind}, One, Other, Signature, _]} when Kind =:= fork; Kind =:= init ->
            strings([One, Other], false) ++ strings(Signature, is_elixir(Signature));
        _ -> strings(Pattern, Elixir)
    end ++ compared(Guard, Elixir).

strings({string, Anno, Text}, true) -> [warning(Anno, Text)];
strings({op, _, '++', _, Tail}, Elixir) -> strings(Tail, Elixir);
strings({bin, _, _}, _) -> [];
strings({map, _, Fields}, Elixir) ->
    Struct = Elixir orelse lists:any(fun({_, _, {atom, _, '__struct__'}, {atom, _, Module}}) -> is_elixir_module(Module);
                                        (_) -> false end, Fields),
    strings([[Key, Value] || {_, _, Key, Value} <- Fields], Struct);
strings([Expr | Others], Elixir) -> strings(Expr, Elixir) ++ strings(Others, Elixir);
strings({tuple, _, Elements}, Elixir) -> strings(Elements, Elixir);
strings({cons, _, Head, Tail}, Elixir) -> strings(Head, Elixir) ++ strings(Tail, Elixir);
strings({match, _, Left, Right}, Elixir) -> strings(Left, Elixir) ++ strings(Right, Elixir);
strings({call, _, _, Arguments}, Elixir) -> strings(Arguments, Elixir);
strings(_, _) -> [].

%% Of a guard, what is compared. The argument of a function such as `length` is a list.
compared(_, false) -> [];
compared([Expr | Others], true) -> compared(Expr, true) ++ compared(Others, true);
compared({op, _, Op, Left, Right}, true) ->
    case is_comparison(Op) of
        true -> strings(Left, true) ++ strings(Right, true);
        false -> compared(Left, true) ++ compared(Right, true)
    end;
compared({op, _, _, Operand}, true) -> compared(Operand, true);
compared(_, true) -> [].

warning(Anno, Text) ->
    Location = {erl_anno:line(Anno), erl_anno:column(Anno)},
    case string:find(Text, "#{") of
        nomatch ->
            witness_spec_diagnostic:warning(Location, elixir_string,
                [witness_spec_diagnostic:quote(io_lib:write_string(Text)), " is a list of characters, not a string of Elixir"],
                binary_hint(Text));
        _ ->
            witness_spec_diagnostic:error(Location, elixir,
                [witness_spec_diagnostic:quote(io_lib:write_string(Text)),
                 " is Elixir's notation: a specification puts no values into a string"],
                ["compare a variable with the whole string, or write `<<\"id \"/utf8, Rest/binary>>` for what begins with `id `;",
                 " as plain text it is `", witness_spec_elixir_term:binary(Text), "`"])
    end.

%% The operators of a guard.
precedence([Expr | Others]) -> precedence(Expr) ++ precedence(Others);
precedence({op, Anno, Op, Left, Right}) ->
    [witness_spec_diagnostic:warning({erl_anno:line(Anno), erl_anno:column(Anno)}, precedence,
        ["`", atom_to_list(Joined), "` binds tighter than this comparison"],
        ["write `", atom_to_list(Joined), case Joined of 'and' -> "also"; 'or' -> "else" end,
         "`, which does not, or put the comparison in parentheses"])
     || {{op, _, Joined, _, _}, Other} <- [{Left, Right}, {Right, Left}], Joined =:= 'and' orelse Joined =:= 'or',
        no_boolean(Op, Other)]
        ++ precedence(Left) ++ precedence(Right);
precedence({op, _, _, Operand}) -> precedence(Operand);
precedence(_) -> [].

no_boolean(Op, _) when Op =:= '<'; Op =:= '>'; Op =:= '>='; Op =:= '=<' -> true;
no_boolean(Op, {atom, _, Value}) -> is_comparison(Op) andalso not is_boolean(Value);
no_boolean(Op, {Kind, _, _}) -> is_comparison(Op) andalso lists:member(Kind, [integer, float, string, char, tuple, bin, map]);
no_boolean(_, _) -> false.

is_comparison(Op) -> lists:member(Op, ['=:=', '==', '=/=', '/=']).

-doc "How to write a string of Elixir, and how a list of characters.".
-spec binary_hint(string()) -> unicode:chardata().
binary_hint(Text) ->
    ["a string of Elixir is a binary: write `", witness_spec_elixir_term:binary(Text), "`; a list of characters is `",
     io_lib:write_string(Text), " ++ []`"].
