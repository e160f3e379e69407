-module(witness_weave_after).
-moduledoc """
The last part of a `try` keeps its size.

The compiler writes a small `after` twice, and makes a function of a large one. That function takes one of the numbers
that funs and comprehensions get their names by. So what is small has to stay small, where weaving has made it larger,
and the reverse: else every later fun of the function would have another name than the one that specifications know.

Whether the compiler takes it for small is not computed here, but asked.
""".

-export([body/3]).

-doc """
The woven body of an `after`, as large as the original one in the eyes of the compiler. `Records`: the attributes of the
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

%% The compiler does not count what comes after an `else`. This one is always taken.
smaller(Body) ->
    G = anno(Body),
    [{'maybe', G, [{maybe_match, G, {atom, G, true}, {atom, G, false}}],
      {'else', G, [{clause, G, [{atom, G, false}], [], Body}]}}].

%% What has become smaller has something smaller in it.
larger(Body) -> [{atom, anno(Body), ok} || _ <- lists:seq(1, 20)] ++ Body.

anno(Body) -> erl_anno:set_generated(true, element(2, hd(Body))).

%% How many functions the compiler makes of the last parts of `try`. Code that it does not accept is no business of the
%% weaver's: it will say so, be it woven or not.
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
