-module(witness_weave_mutant).
-moduledoc "The weaver with a fault in it, beside the real one.".

-export([load/3, forget/0]).

-define(MODULES, [witness_weave, witness_weave_expr, witness_weave_entry, witness_weave_after, witness_weave_calls]).

-doc """
Loads copies of the modules of the weaver, one of them with a text replaced that stands in it exactly once, and returns
the name of the copy of `witness_weave`.
""".
-spec load(module(), Find :: string(), Replace :: string()) -> module().
load(Mutated, Find, Replace) ->
    Names = #{Module => copy(Module) || Module <- ?MODULES},
    _ = [begin
             Text = case Module of
                 Mutated -> witness_mutant:mutated(Module, Find, Find, Replace);
                 _ -> witness_mutant:text(Module)
             end,
             {ok, Copy, Code} = compile:forms(renamed(witness_weave_source:forms(named(Module, Text)), Names), []),
             {module, Copy} = code:load_binary(Copy, atom_to_list(Copy), Code)
         end || Module := Copy <- Names],
    maps:get(witness_weave, Names).

-doc "Unloads the copies.".
forget() -> [begin code:purge(copy(Module)), code:delete(copy(Module)), code:purge(copy(Module)) end || Module <- ?MODULES].

copy(Module) -> list_to_atom(atom_to_list(Module) ++ "_faulty").

named(Module, Text) -> lists:flatten(string:replace(Text, "?MODULE", atom_to_list(Module), all)).

renamed(Name, Names) when is_map_key(Name, Names) -> maps:get(Name, Names);
renamed(Term, Names) when is_tuple(Term) -> list_to_tuple(renamed(tuple_to_list(Term), Names));
renamed([Head | Tail], Names) -> [renamed(Head, Names) | renamed(Tail, Names)];
renamed(Term, _) -> Term.
