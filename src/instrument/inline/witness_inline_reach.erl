-module(witness_inline_reach).
-moduledoc """
What modules do, according to their object code: which other modules they name, and whether they send, receive or spawn.

A module *acts* if weaving it could show something: it sends, has a `receive`, calls a function that is woven
(`m:witness_weave_calls`), or calls a function of a module that is known only at run time. A monitored process may call a module
that does not act without weaving it: there is nothing to see. In doubt a module acts. That costs at most the weaving of the
module, or a monitor that stays undecided.

A module is *foreign* if it is neither OTP's, Elixir's nor Witness's: what these modules send and receive for a process by
themselves is not an event of inline monitoring.
""".

-export([facts/1, facts_of_code/1, not_foreign/0, on_path/1, reachable/3, is_foreign/3, is_own/2, is_library/2]).
-export_type([facts/0, path/0, known/0]).

-doc "`on_load`: whether the module runs code when it is loaded; `names`: the atoms in its code.".
-type facts() :: #{acts := boolean(), on_load := boolean(), names := [atom()]}.

-doc "Foreign modules on the code path, with their folders.".
-type path() :: #{module() => file:filename()}.

-doc "Modules that are not foreign: Witness's modules, and the folders of the libraries of OTP and Elixir.".
-opaque known() :: #{own := #{module() => []}, libraries := [file:filename()]}.

%% Calls that weaving makes visible; the other classes only hide what is Witness's.
-define(CLASSES, [send, spawn, spawn_request, start, call, cast, reply, request]).

-doc "The facts about a module. A module without object code may do anything.".
-spec facts(module()) -> facts().
facts(Module) ->
    case code:get_object_code(Module) of
        {Module, Code, _} -> facts_of_code(Code);
        error -> unknown_facts()
    end.

unknown_facts() -> #{acts => true, on_load => true, names => []}.

-doc "The facts about object code.".
-spec facts_of_code(binary()) -> facts().
facts_of_code(Code) ->
    try beam_disasm:file(Code) of
        {beam_file, _, _, _, _, Functions} ->
            Instructions = [I || {function, _, _, _, Is} <- Functions, I <- Is],
            {ok, {_, [{atoms, Atoms}]}} = beam_lib:chunks(Code, [atoms]),
            #{acts => lists:any(fun is_action/1, Instructions), on_load => lists:member(on_load, Instructions),
              names => maps:keys(lists:foldl(fun literals/2, maps:from_keys([A || {_, A} <- Atoms], []), Instructions))};
        {error, _, _} -> unknown_facts()
    catch
        _:_ -> unknown_facts()
    end.

is_action(send) -> true;
is_action(Instruction) when is_tuple(Instruction) ->
    case element(1, Instruction) of
        Name when Name =:= loop_rec; Name =:= apply; Name =:= apply_last; Name =:= wait; Name =:= wait_timeout -> true;
        _ -> lists:any(fun is_acting/1, tl(tuple_to_list(Instruction)))
    end;
is_action(_) -> false.

%% An operand: a function that is called, or a literal, which may contain one as a fun.
is_acting({extfunc, M, F, A}) -> lists:member(witness_weave_calls:class(M, F, A), ?CLASSES);
is_acting({literal, Term}) -> lists:any(fun is_acting_fun/1, leaves(Term, []));
is_acting(List) when is_list(List) -> lists:any(fun is_acting/1, List);
is_acting({list, List}) -> is_acting(List);
is_acting(_) -> false.

is_acting_fun(Fun) when is_function(Fun) ->
    [{module, M}, {name, F}, {arity, A}] = [erlang:fun_info(Fun, Item) || Item <- [module, name, arity]],
    is_acting({extfunc, M, F, A});
is_acting_fun(_) -> false.

literals({literal, Term}, Names) ->
    maps:merge(Names, maps:from_keys([M || Leaf <- leaves(Term, []),
                                           M <- case is_function(Leaf) of
                                                    true -> [element(2, erlang:fun_info(Leaf, module))];
                                                    false -> [Leaf]
                                                end, is_atom(M)], []));
literals(Instruction, Names) when is_tuple(Instruction) -> literals(tuple_to_list(Instruction), Names);
literals([Operand | Operands], Names) -> literals(Operands, literals(Operand, Names));
literals(_, Names) -> Names.

%% Works for improper lists, too.
leaves([Head | Tail], Leaves) -> leaves(Tail, leaves(Head, Leaves));
leaves(Tuple, Leaves) when is_tuple(Tuple) -> leaves(tuple_to_list(Tuple), Leaves);
leaves(Map, Leaves) when is_map(Map) -> leaves(maps:to_list(Map), Leaves);
leaves(Leaf, Leaves) when is_atom(Leaf); is_function(Leaf) -> [Leaf | Leaves];
leaves(_, Leaves) -> Leaves.

-doc "Searches the code path, so a caller asks once for many modules.".
-spec not_foreign() -> known().
not_foreign() ->
    Own = case application:get_key(witness, modules) of {ok, Modules} -> Modules; undefined -> [] end,
    Elixir = [filename:dirname(filename:dirname(filename:dirname(File)))
              || File <- [code:which('Elixir.Kernel')], is_list(File), File =/= ""],
    #{own => maps:from_keys(Own, []), libraries => [Root ++ "/" || Root <- [code:lib_dir() | Elixir]]}.

-doc "All foreign modules that the code server would find now.".
-spec on_path(known()) -> path().
on_path(Known) ->
    lists:foldr(fun(Folder, Path) ->
        maps:merge(Path, #{M => Folder || File <- filelib:wildcard("*.beam", Folder),
                                          M <- [list_to_atom(filename:rootname(File))], not is_own(M, Known)})
    end, #{}, [Folder || Folder <- code:get_path(), not is_library(filename:absname(Folder), Known)]).

-doc """
Adds the facts about these modules, and about those of the path that they name, directly or not. A name is an atom, so it may also
be in a child specification. If a module's application can be started, the module also names the application's callback module.
""".
-spec reachable([module()], path(), Known :: #{module() => facts()}) -> #{module() => facts()}.
reachable(Modules, Path, Before) ->
    Known = add_named(Modules, Path, Before),
    case [M || M <- callbacks(Known, Path), is_map_key(M, Path), not is_map_key(M, Known)] of
        [] -> Known;
        More -> reachable(More, Path, Known)
    end.

add_named([], _, Known) -> Known;
add_named([M | Rest], Path, Known) when is_map_key(M, Known) -> add_named(Rest, Path, Known);
add_named([M | Rest], Path, Known) ->
    #{names := Names} = Facts = facts(M),
    add_named([Name || Name <- Names, is_map_key(Name, Path)] ++ Rest, Path, Known#{M => Facts}).

callbacks(Known, Path) ->
    [M || Folder <- lists:usort([Folder || M <- maps:keys(Known), #{M := Folder} <- [Path]]),
          File <- filelib:wildcard("*.app", Folder), {ok, [{application, _, Keys}]} <- [file:consult(filename:join(Folder, File))],
          is_list(Keys), {mod, {M, _}} <- Keys, is_atom(M)].

-doc "Whether a module that is loaded from this place is foreign.".
-spec is_foreign(module(), file:filename() | preloaded | cover_compiled | non_existing, known()) -> boolean().
is_foreign(_, non_existing, _) -> false;
is_foreign(_, preloaded, _) -> false;
is_foreign(Module, File, Known) ->
    not is_own(Module, Known) andalso not (is_list(File) andalso is_library(filename:dirname(File), Known)).

-doc "Compiled specifications, and the modules of Witness's own application.".
-spec is_own(module(), known()) -> boolean().
is_own(Module, #{own := Own}) -> is_map_key(Module, Own) orelse lists:prefix("witness_spec_code_", atom_to_list(Module)).

-doc "Whether a folder is one of OTP's or Elixir's libraries. Elixir's are in one folder, as those of OTP are.".
-spec is_library(file:filename(), known()) -> boolean().
is_library(Folder, #{libraries := Libraries}) -> lists:any(fun(Root) -> lists:prefix(Root, Folder) end, Libraries).
