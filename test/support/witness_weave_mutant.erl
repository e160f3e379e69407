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
             Text = text(Module),
             Faulty = case Module of
                 Mutated ->
                     length(string:split(Text, Find, all)) =:= 2 orelse
                         error({the_fault_cannot_be_planted_any_more, Module, Find}),
                     lists:flatten(string:replace(Text, Find, Replace));
                 _ ->
                     Text
             end,
             {ok, Copy, Code} = compile:forms(renamed(witness_weave_source:forms(Faulty), Names), []),
             {module, Copy} = code:load_binary(Copy, atom_to_list(Copy), Code)
         end || Module := Copy <- Names],
    maps:get(witness_weave, Names).

-doc "Unloads the copies.".
forget() -> [begin code:purge(copy(Module)), code:delete(copy(Module)), code:purge(copy(Module)) end || Module <- ?MODULES].

copy(Module) -> list_to_atom(atom_to_list(Module) ++ "_faulty").

text(Module) ->
    {ok, Binary} = file:read_file(proplists:get_value(source, Module:module_info(compile))),
    lists:flatten(string:replace(unicode:characters_to_list(Binary), "?MODULE", atom_to_list(Module), all)).

renamed(Name, Names) when is_map_key(Name, Names) -> maps:get(Name, Names);
renamed(Term, Names) when is_tuple(Term) -> list_to_tuple(renamed(tuple_to_list(Term), Names));
renamed([Head | Tail], Names) -> [renamed(Head, Names) | renamed(Tail, Names)];
renamed(Term, _) -> Term.
