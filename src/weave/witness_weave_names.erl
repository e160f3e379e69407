-module(witness_weave_names).
-moduledoc """
Gives named funs and comprehensions of woven code the names that they have in the original code.

The compiler makes a function of each, and calls it `-F/A-Name/B-N-`: N counts such functions of `F/A`, after the compiler has left
out code that cannot be reached. It leaves out less of woven code, where it knows less: nothing of the result of a call that is
woven, nor of a variable of a `receive` that says when it blocks (`m:witness_weave_blocks`). Each function that is there in addition
moves the numbers of those behind it.

So `keep/2` compares the names without N, which differ unless the source has two functions of the same name in `F/A`. If both
codes have as many functions of such a name, these are the same functions in the same order, and get the numbers of the original.
""".

-export([keep/2]).

-doc "The woven object code with the names of the original's functions.".
-spec keep(Original :: binary(), Woven :: binary()) -> binary().
keep(Original, Woven) when is_binary(Woven) ->
    case renamed(numbers(functions(Original)), numbers(functions(Woven))) of
        New when map_size(New) =:= 0 -> Woven;
        New ->
            {ok, _, Chunks} = beam_lib:all_chunks(Woven),
            {ok, Kept} = beam_lib:build_module([chunk(Chunk, New) || Chunk <- Chunks]),
            Kept
    end.

functions(Object) ->
    case beam_lib:chunks(Object, [locals], [allow_missing_chunks]) of
        {ok, {_, [{locals, missing_chunk}]}} -> [];
        {ok, {_, [{locals, Locals}]}} -> lists:usort([atom_to_binary(Name) || {Name, _} <- Locals])
    end.

numbers(Names) ->
    maps:groups_from_list(fun({Name, _}) -> Name end, fun({_, N}) -> N end, lists:sort(lists:filtermap(fun numbered/1, Names))).

%% Not `-F/A-fun-N-', which is numbered before anything is left out.
numbered(Name) ->
    case re:run(Name, ~"^(-.+/[0-9]+-.+/[0-9]+-)([0-9]+)-$", [dotall, {capture, all_but_first, binary}]) of
        {match, [Base, N]} -> {true, {Base, binary_to_integer(N)}};
        nomatch -> false
    end.

renamed(Original, Woven) ->
    #{name(Base, From) => name(Base, To)
      || Base := Numbers <- Woven, Same <- [maps:get(Base, Original, [])], length(Same) =:= length(Numbers),
         {From, To} <- lists:zip(Numbers, Same), From =/= To}.

name(Base, N) -> <<Base/binary, (integer_to_binary(N))/binary, "-">>.

chunk({"AtU8", Data}, New) ->
    {"AtU8", witness_event_atom_table:encode([maps:get(Atom, New, Atom) || Atom <- witness_event_atom_table:decode(Data)])};
chunk(Chunk, _) -> Chunk.
