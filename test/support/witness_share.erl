-module(witness_share).
-moduledoc """
The share of long tests that a version of the project runs. Each version has its turn, and so many versions one after the other run
all. `bin/gate` sets the variables of the environment; where they are not set, all is run.

- `WITNESS_SHARE`: 4, if each version runs every fourth;
- `WITNESS_TURN`: a number that is greater by one for the next version;
- `WITNESS_SHARED`: with blanks between them, the names of suites of which each group has only its share of cases, and `MODULE/inside`
  for a suite or a module of unit tests that asks for the share of what it repeats itself.
""".

-export([of_all/1, inside/2, cases/2]).

-doc "The share of these, or all of them. At least one.".
-spec of_all([T]) -> [T].
of_all(All) ->
    Share = witness_setting:number("WITNESS_SHARE", 1),
    Turn = witness_setting:number("WITNESS_TURN", 0),
    case [One || {I, One} <- lists:enumerate(All), I rem Share =:= Turn rem Share] of
        [] when All =/= [] -> [lists:nth(1 + Turn div Share rem length(All), All)];
        Mine -> Mine
    end.

-doc "The share of what a module repeats, if that is shared.".
-spec inside(module(), [T]) -> [T].
inside(Module, All) -> share(atom_to_list(Module) ++ "/inside", All).

-doc "The share of the cases of a suite or a group, if those of the suite are shared. Groups stay: each has its own share.".
-spec cases(module(), [Member]) -> [Member] when Member :: atom() | tuple().
cases(Suite, Members) ->
    {Cases, Groups} = lists:partition(fun erlang:is_atom/1, Members),
    share(atom_to_list(Suite), Cases) ++ Groups.

share(Name, All) ->
    case lists:member(Name, string:lexemes(os:getenv("WITNESS_SHARED", ""), " ")) of
        true -> of_all(All);
        false -> All
    end.
