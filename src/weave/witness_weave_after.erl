-module(witness_weave_after).
-moduledoc """
Keeps the size of the `after` part of a `try` in the compiler's classification.

The compiler writes a small `after` twice, and makes a function of a large one. That function takes one of the numbers
in the names of funs and comprehensions. So an `after` that weaving has made larger has to stay small, and the reverse. Otherwise
every later fun of the function would have another name than the one that specifications use.

This module does not compute whether an `after` is small: it runs the compiler to find out.
""".

-export([body/3]).

-doc """
The woven body of an `after`, which the compiler classifies as the original one. `Records`: the attributes of the
module that define them.
""".
-spec body(Original :: [erl_parse:abstract_expr()], Woven :: [erl_parse:abstract_expr()],
           Records :: [erl_parse:abstract_form()]) -> [erl_parse:abstract_expr()].
body(Same, Same, _) ->
    Same;
body(Original, Woven, Records) ->
    Functions = functions(Original, Records),
    [Kept | _] = [Body || Make <- [fun(Same) -> Same end, fun smaller/1, fun larger/1],
                          Body <- [Make(Woven)], functions(Body, Records) =:= Functions],
    Kept.

%% The compiler does not count what comes after an `else`. This `else` is always taken.
smaller(Body) ->
    G = anno(Body),
    [{'maybe', G, [{maybe_match, G, {atom, G, true}, {atom, G, false}}],
      {'else', G, [{clause, G, [{atom, G, false}], [], Body}]}}].

%% A woven body is smaller only if it contains one that `smaller/1' has changed. Filler makes it large again.
larger(Body) -> [{atom, anno(Body), ok} || _ <- lists:seq(1, 20)] ++ Body.

anno(Body) -> erl_anno:set_generated(true, element(2, hd(Body))).

%% How many functions the compiler makes of `after' parts. Code that it does not accept is not handled here: the compiler reports
%% it, woven or not.
functions(Body, Records) ->
    Try = {'try', 1, [{atom, 1, ok}], [], [], Body},
    Forms = [{attribute, 1, module, ?MODULE} | Records] ++ [{function, 1, f, 0, [{clause, 1, [], [], [Try]}]}],
    try v3_core:module(erl_expand_records:module(Forms, []), []) of
        {ok, Core, _} -> length(lists:usort(names(Core, [])))
    catch
        error:_ -> not_accepted
    end.

names(Name, Names) when is_atom(Name) ->
    case atom_to_list(Name) of
        "after$^" ++ _ -> [Name | Names];
        _ -> Names
    end;
names([Term | Terms], Names) -> names(Terms, names(Term, Names));
names(Term, Names) when is_tuple(Term) -> names(tuple_to_list(Term), Names);
names(_, Names) -> Names.
