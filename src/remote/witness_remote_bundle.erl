-module(witness_remote_bundle).
-moduledoc """
The modules that are loaded into a node where Witness is not installed, under names that cannot clash.

The bundle is computed: the modules of Witness that a root names, directly or not, whether it calls them by name or
passes their name on, except where this graph is cut (`closure/2`). A module is renamed by rewriting
its object code: in the table of atoms and in the literals, every atom that is the name of a module of the bundle is replaced.
So modules, external functions, behaviours and messages that name modules all agree. Nothing else of the code
changes.

The result has the oldest form of each part of the file format, which every supported release reads. For example, an atom
table of OTP 28 is corrupt to OTP 27. Parts that are not needed at run time are removed: documentation,
debug information, attributes, compiler information.

```erlang
1> {ok, Objects} = witness_remote_bundle:closure([witness_run], [witness_spec]).
2> Renamed = witness_remote_bundle:rename(Objects, #{M => names(M) || {M, _} <- Objects}).
```
""".

-export([closure/2, imports/1, rename/2, rename_term/2]).

-export_type([object/0, renaming/0]).

-doc "A module and its object code.".
-type object() :: {module(), binary()}.

-doc "The names of modules, and their new names.".
-type renaming() :: #{module() => atom()}.

%% Chunks that the loader needs, and the lines of the source for stack traces.
-define(KEPT_CHUNKS, ["AtU8", "Code", "StrT", "ImpT", "ExpT", "FunT", "LitT", "Type", "Line"]).

-doc """
The object code of the given modules, which may come with theirs, and of all modules of this application that they name,
directly or not, without those that are cut. An error names a module that has no object code.
""".
-spec closure(Roots :: [module() | object()], Cut :: [module()]) ->
    {ok, [object()]} | {error, {no_object_code, module()}}.
closure(Roots, Cut) ->
    _ = application:load(witness),
    {ok, Ours} = application:get_key(witness, modules),
    try
        {ok, maps:to_list(closure(Roots, Ours -- Cut, #{}))}
    catch
        throw:{no_object_code, _} = Reason -> {error, Reason}
    end.

closure([], _, Found) -> Found;
closure([{Module, Object} | Modules], Ours, Found) ->
    closure(named_modules(Object, Ours) ++ Modules, Ours, Found#{Module => Object});
closure([Module | Modules], Ours, Found) when is_map_key(Module, Found) ->
    closure(Modules, Ours, Found);
closure([Module | Modules], Ours, Found) ->
    case code:get_object_code(Module) of
        {Module, Object, _} -> closure([{Module, Object} | Modules], Ours, Found);
        error -> throw({no_object_code, Module})
    end.

%% Code may use any atom as the name of a module, so every atom that is such a name counts.
named_modules(Object, Ours) ->
    {ok, _, Chunks} = beam_lib:all_chunks(Object),
    Names = lists:append([atom_names(Id, Data) || {Id, Data} <- Chunks, lists:member(Id, ["AtU8", "LitT"])]),
    [M || M <- Ours, lists:member(atom_to_binary(M), Names)].

atom_names("AtU8", Data) -> witness_event_atom_table:decode(Data);
atom_names("LitT", Data) -> [atom_to_binary(Atom) || Atom <- witness_event_external:atoms(witness_event_external:literals(Data))].

-doc "The functions of other modules that a module calls.".
-spec imports(binary()) -> [mfa()].
imports(Object) ->
    {ok, {_, [{imports, Imports}]}} = beam_lib:chunks(Object, [imports]),
    Imports.

-doc "Object code with renamed modules.".
-spec rename([object()], renaming()) -> [object()].
rename(Objects, Renaming) ->
    [{maps:get(Module, Renaming, Module), rename_object(Object, Renaming)} || {Module, Object} <- Objects].

rename_object(Object, Renaming) ->
    {ok, _, Chunks} = beam_lib:all_chunks(Object),
    {ok, Renamed} = beam_lib:build_module([{Id, rename_chunk(Id, Data, Renaming)} || {Id, Data} <- Chunks,
                                                                                     lists:member(Id, ?KEPT_CHUNKS)]),
    Renamed.

rename_chunk("AtU8", Data, Renaming) ->
    witness_event_atom_table:encode([rename_text(Atom, Renaming) || Atom <- witness_event_atom_table:decode(Data)]);
rename_chunk("LitT", Data, Renaming) ->
    encode_literals([rename_term(Literal, Renaming) || Literal <- witness_event_external:literals(Data)]);
rename_chunk(_, Data, _) -> Data.

%% --- atoms -----------------------------------------------------------------------

%% Works on texts: an atom that does not exist on this node need not be created.
rename_text(Text, Renaming) ->
    try binary_to_existing_atom(Text) of
        Atom when is_map_key(Atom, Renaming) -> atom_to_binary(maps:get(Atom, Renaming));
        _ -> Text
    catch
        error:badarg -> Text
    end.

%% --- literals --------------------------------------------------------------------

encode_literals(Literals) ->
    Terms = << <<(byte_size(Term)):32, Term/binary>> || Literal <- Literals, Term <- [term_to_binary(Literal)] >>,
    All = <<(length(Literals)):32, Terms/binary>>,
    <<(byte_size(All)):32, (zlib:compress(All))/binary>>.

-doc "A term with renamed modules, wherever it has their names.".
-spec rename_term(term(), renaming()) -> term().
rename_term(Atom, Renaming) when is_atom(Atom) -> maps:get(Atom, Renaming, Atom);
rename_term([Head | Tail], Renaming) -> [rename_term(Head, Renaming) | rename_term(Tail, Renaming)];
rename_term(Tuple, Renaming) when is_tuple(Tuple) ->
    list_to_tuple(rename_term(tuple_to_list(Tuple), Renaming));
rename_term(Map, Renaming) when is_map(Map) ->
    #{rename_term(Key, Renaming) => rename_term(Value, Renaming) || Key := Value <- Map};
rename_term(Fun, Renaming) when is_function(Fun) ->
    case {erlang:fun_info(Fun, type), erlang:fun_info(Fun, module)} of
        {{type, external}, {module, Module}} when is_map_key(Module, Renaming) ->
            {name, Name} = erlang:fun_info(Fun, name),
            {arity, Arity} = erlang:fun_info(Fun, arity),
            Renamed = maps:get(Module, Renaming),
            fun Renamed:Name/Arity;
        _ -> Fun
    end;
rename_term(Term, _) -> Term.
