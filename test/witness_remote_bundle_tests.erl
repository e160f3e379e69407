-module(witness_remote_bundle_tests).
-moduledoc """
Object code under other names: it loads, does the same, and has none of the old names. The other release of OTP loads it in
`m:witness_remote_SUITE`.
""".
-include_lib("proper/include/proper.hrl").
%% Both define it.
-undef(LET).
-include_lib("eunit/include/eunit.hrl").

-define(CUT, [witness]).

%% On a busy machine the object code of all these modules is not there within the five seconds of EUnit.
what_a_root_names_comes_with_it_test_() ->
    {timeout, 60, fun() ->
        ?assert(lists:keymember(witness_outline_tracer, 1, closure([witness_outline_tracer]))),
        ?assert(lists:keymember(witness_event_signature, 1, closure([witness_outline_tracer]))),
        ?assertNot(lists:keymember(witness_event_signature, 1,
                                   closure([witness_outline_tracer], [witness_event_signature | ?CUT])))
    end}.

%% The module is only passed as an atom, or is in a literal.
a_module_that_is_only_named_comes_too_test_() ->
    {timeout, 60, fun() ->
        Object = object("-module(witness_remote_sample).\n-export([f/0, g/0]).\n"
                        "f() -> witness_options_memory.\ng() -> #{a => [{fun witness_remote_exports:of_module/1, witness_run_tally}]}.\n"),
        {ok, Objects} = witness_remote_bundle:closure([{witness_remote_sample, Object}], ?CUT),
        ?assertEqual([], [witness_remote_sample, witness_options_memory, witness_remote_exports,
                          witness_run_tally] -- [M || {M, _} <- Objects])
    end}.

a_module_without_object_code_is_an_error_test() ->
    ?assertEqual({error, {no_object_code, no_such_module}}, witness_remote_bundle:closure([no_such_module], [])).

%% Of modules that are loaded together, none may run code when it is loaded. A module with native functions does.
what_is_loaded_into_a_target_has_no_native_functions_test_() ->
    {timeout, 60, fun() ->
        {ok, Objects} = witness_remote:objects([]),
        ?assertEqual([], [M || {M, Object} <- Objects,
                               lists:member({erlang, load_nif, 2}, witness_remote_bundle:imports(Object))])
    end}.

%% All modules of Witness: no old name is left, and the loader takes them.
no_old_name_is_left_test_() ->
    {timeout, 60, fun() ->
        {ok, Modules} = application:get_key(witness, modules),
        Ours = [M || M <- Modules, lists:prefix("witness", atom_to_list(M)), M =/= witness, is_list(code:which(M)),
                     lists:suffix("ebin", filename:dirname(code:which(M)))],
        ?assert(length(Ours) > 50),
        Objects = [begin {M, Object, _} = code:get_object_code(M), {M, Object} end || M <- Ours],
        Renaming = #{M => renamed(M) || M <- Ours},
        [begin
             {ok, {_, [{atoms, Atoms}]}} = beam_lib:chunks(Object, [atoms]),
             ?assertEqual({M, []}, {M, [A || {_, A} <- Atoms, is_map_key(A, Renaming)]}),
             ?assert(is_reference(erlang:prepare_loading(M, Object))),
             %% The atoms of literals, which are not in the table of atoms.
             {ok, _, Chunks} = beam_lib:all_chunks(Object),
             [?assertEqual([], [Old || Old <- Ours, has_atom(Old, Literals)])
              || {"LitT", <<_:32, Compressed/binary>>} <- Chunks, Literals <- [zlib:uncompress(Compressed)]]
         end || {M, Object} <- witness_remote_bundle:rename(Objects, Renaming)]
    end}.

%% As in the external format.
has_atom(Atom, Literals) ->
    Text = atom_to_binary(Atom),
    binary:match(Literals, <<119, (byte_size(Text)), Text/binary>>) =/= nomatch.

renamed(M) -> list_to_atom(atom_to_list(M) ++ "$9").

%% A module calls itself and the other by name, by a fun, and by an atom in a literal.
a_renamed_module_does_the_same_test() ->
    One = object("-module(witness_remote_one).\n-export([all/1, here/1]).\n"
                 "all(X) -> [?MODULE:here(X), witness_remote_two:there(X), (funs())(X)] ++ literal(X).\n"
                 "here(X) -> {?MODULE, X}.\nfuns() -> fun witness_remote_two:there/1.\n"
                 "literal(X) -> [M:F(X) || {M, F} <- [{witness_remote_one, here}, {witness_remote_two, there}]] "
                 "++ [F(X) || F <- [fun witness_remote_one:here/1]] ++ [[witness_remote_one | improper], #{witness_remote_two => 'ü'}].\n"),
    Two = object("-module(witness_remote_two).\n-export([there/1]).\nthere(X) -> {?MODULE, X}.\n"),
    Renaming = #{witness_remote_one => 'one$9', witness_remote_two => 'two$9'},
    Renamed = witness_remote_bundle:rename([{witness_remote_one, One}, {witness_remote_two, Two}], Renaming),
    [{module, M} = code:load_binary(M, "", Object) || {M, Object} <- Renamed],
    try
        ?assertEqual([{'one$9', 1}, {'two$9', 1}, {'two$9', 1}, {'one$9', 1}, {'two$9', 1}, {'one$9', 1},
                      ['one$9' | improper], #{'two$9' => 'ü'}], 'one$9':all(1)),
        ?assertNot(erlang:module_loaded(witness_remote_one))
    after
        [begin true = code:delete(M), code:purge(M) end || {M, _} <- Renamed]
    end.

%% The atoms of a table are read back, of whatever kind they are, in the form that this release writes and in the oldest one.
atoms_of_any_kind_are_kept_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_atoms(), [{to_file, user}, {numtests, 100}]))}.

prop_atoms() ->
    ?FORALL(Texts, non_empty(list(resize(40, list(oneof([range($a, $z), range(16#c0, 16#ff), range(16#4e00, 16#4eff)]))))),
        begin
            Atoms = [list_to_atom([$a | Text]) || Text <- Texts],
            Object = object(io_lib:format("-module(witness_remote_atoms).\n-export([f/1]).\n~ts", [
                [[io_lib:format("f(~w) -> ~tp", [I, A]), case I of _ when I < length(Atoms) -> ";\n"; _ -> ".\n" end]
                 || {I, A} <- lists:enumerate(Atoms)]])),
            [Old | _] = Atoms,
            [{M, Renamed}] = witness_remote_bundle:rename([{witness_remote_atoms, Object}],
                                                          #{witness_remote_atoms => 'atoms$9', Old => 'old$9'}),
            {module, M} = code:load_binary(M, "", Renamed),
            Result = [M:f(I) || I <- lists:seq(1, length(Atoms))],
            true = code:delete(M),
            _ = code:purge(M),
            Result =:= [case A of Old -> 'old$9'; _ -> A end || A <- Atoms]
        end).

terms_are_renamed_wherever_a_name_stands_test_() ->
    {timeout, 60, ?_assert(proper:quickcheck(prop_terms(), [{to_file, user}, {numtests, 200}, {max_size, 25}]))}.

prop_terms() ->
    ?FORALL(Term, term(lists),
        begin
            There = witness_remote_bundle:rename_term(Term, #{lists => 'lists$9'}),
            not occurs(lists, There) andalso
                witness_remote_bundle:rename_term(There, #{'lists$9' => lists}) =:= Term
        end).

term(Name) ->
    ?SIZED(Size, term(Size, oneof([Name, integer(), binary(), float(), b, [], exactly(fun lists:map/2), exactly(fun maps:map/2)]))).

term(0, Leaf) -> Leaf;
term(Size, Leaf) ->
    Smaller = ?LAZY(term(Size div 3, Leaf)),
    oneof([Leaf, list(Smaller), ?LAZY({Smaller, Smaller}), ?LAZY([Smaller | Smaller]), map(Smaller, Smaller)]).

occurs(Name, Name) -> true;
occurs(Name, [Head | Tail]) -> occurs(Name, Head) orelse occurs(Name, Tail);
occurs(Name, Tuple) when is_tuple(Tuple) -> occurs(Name, tuple_to_list(Tuple));
occurs(Name, Map) when is_map(Map) -> occurs(Name, maps:to_list(Map));
occurs(Name, Fun) when is_function(Fun) -> erlang:fun_info(Fun, module) =:= {module, Name};
occurs(_, _) -> false.

closure(Roots) -> closure(Roots, ?CUT).

closure(Roots, Cut) ->
    {ok, Objects} = witness_remote_bundle:closure(Roots, Cut),
    Objects.

object(Source) ->
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(Source)),
    {ok, _, Object} = compile:forms(forms(Tokens), [binary]),
    Object.

%% A scanner without a preprocessor does not know `?MODULE'.
forms(Tokens) ->
    [{atom, _, Module} | _] = tl(tl(lists:dropwhile(fun({atom, _, module}) -> false; (_) -> true end, Tokens))),
    forms(with_module(Tokens, Module), []).

with_module([{'?', _}, {var, Anno, 'MODULE'} | Tokens], Module) -> [{atom, Anno, Module} | with_module(Tokens, Module)];
with_module([Token | Tokens], Module) -> [Token | with_module(Tokens, Module)];
with_module([], _) -> [].

forms([], []) -> [];
forms([{dot, _} = Dot | Tokens], Form) ->
    {ok, Parsed} = erl_parse:parse_form(lists:reverse([Dot | Form])),
    [Parsed | forms(Tokens, [])];
forms([Token | Tokens], Form) -> forms(Tokens, [Token | Form]).
