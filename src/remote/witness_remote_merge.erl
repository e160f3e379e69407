-module(witness_remote_merge).
-moduledoc """
Makes one module of many, so that a target has only one to purge.

To purge a module the VM checks for every process whether it runs the old code. With 100,000 processes that takes up to a second a
module, and there are more than fifty. The merged module is one, whatever it was made of.

The forms of the modules come from their debug information. The function `f` of `m` becomes `'m:f'`, and

| Written | Becomes |
|---|---|
| `f(X)`, `m:f(X)` | `'m:f'(X)` |
| `fun m:f/1` | `fun merged:'m:f'/1`: an external fun, so that the purge kills no process that has one |
| `Module:f(X)`, `fun Module:f/1` | a call of a function that compares `Module` with all `m` that export `f/1`; else as before |
| `spawn(m, f, Args)` and the like | the same with `merged` and `'m:f'` |
| `gen_server:start_link(m, Arg, Options)` | `merged` has the callbacks; the process dictionary has the name of their module |

A module name that is only data, such as the name of a trace session, does not change.
""".

-export([merge/3]).

-define(SERVER, '$witness_callbacks').

%% Functions that take a module, a function and arguments.
-define(SPAWNS, [spawn, spawn_link, spawn_monitor, spawn_opt, start, start_link, start_monitor, apply, hibernate]).
-define(CALLBACKS, [{init, 1}, {handle_continue, 2}, {handle_call, 3}, {handle_cast, 2}, {handle_info, 2}, {terminate, 2},
                    {format_status, 1}]).

%% The parts of a module.
-record(part, {file :: tuple() | none,
               exports :: [{atom(), arity()}],
               imports :: #{{atom(), arity()} => module()},
               server :: boolean(),
               functions :: [tuple()],
               defined :: #{{atom(), arity()} => []}}).

-record(scope, {merged :: module(),
                module :: module(),
                part :: #part{},
                parts :: #{module() => #part{}}}).

-doc """
One object that has the functions of all of these. It has the name of `Entry`, and exports the functions of `Entry` also by their
own names. An error names a module without debug information.
""".
-spec merge(Entry :: module(), [{atom(), arity()}], [witness_remote_bundle:object()]) ->
    {ok, witness_remote_bundle:object()} | {error, {no_debug_info, module()}}.
merge(Entry, Entries, Objects) ->
    try #{Module => part(Module, Object) || {Module, Object} <- Objects} of
        Parts ->
            Functions = [merge_functions(#scope{merged = Entry, module = Module, part = Part, parts = Parts})
                         || Module := Part <- Parts],
            Given = entry_functions(Entry, Entries, Parts),
            Dynamic = dispatcher_functions(Functions, Parts),
            Named = named_functions(Functions, Entry, #{}),
            Exports = [{merged_name(Module, F), A} || Module := #part{defined = Defined} <- Parts, {F, A} := _ <- Defined,
                                                      is_map_key(merged_name(Module, F), Named)]
                ++ [{F, A} || {function, _, F, A, _} <- Given],
            Forms = [{attribute, 1, module, Entry}, {attribute, 1, export, Exports} | Given] ++ Dynamic
                ++ lists:append(Functions) ++ [{eof, 1}],
            %% That compiler pass would take a third of the time, for little gain.
            {ok, Entry, Object} = compile:forms(Forms, [binary, deterministic, no_docs, no_ssa_opt_alias]),
            {ok, {Entry, Object}}
    catch
        throw:{no_debug_info, _} = Reason -> {error, Reason}
    end.

part(Module, Object) ->
    case beam_lib:chunks(Object, [abstract_code]) of
        {ok, {_, [{abstract_code, {raw_abstract_v1, Raw}}]}} -> part(erl_expand_records:module(Raw, []));
        _ -> throw({no_debug_info, Module})
    end.

part(Forms) ->
    Functions = [F || {function, _, _, _, _} = F <- Forms],
    #part{file = case [F || {attribute, _, file, _} = F <- Forms] of [F | _] -> F; [] -> none end,
          exports = lists:append([E || {attribute, _, export, E} <- Forms]),
          imports = #{F => Module || {attribute, _, import, {Module, Fs}} <- Forms, F <- Fs},
          server = [] =/= [B || {attribute, _, behaviour, gen_server = B} <- Forms],
          functions = Functions,
          defined = #{{F, A} => [] || {function, _, F, A, _} <- Functions}}.

%% Function names are made of those of the bundle, so these atoms are few.
merged_name(Module, Function) -> binary_to_atom(<<(atom_to_binary(Module))/binary, $:, (atom_to_binary(Function))/binary>>).

merge_functions(S = #scope{module = Module, part = #part{file = File, functions = Functions}}) ->
    [File || File =/= none]
        ++ [{function, Anno, merged_name(Module, F), A, merge_expr(Clauses, S)} || {function, Anno, F, A, Clauses} <- Functions].

%% --- expressions -----------------------------------------------------------------

%% Patterns and guards call no functions of modules.
merge_expr({clause, Anno, Patterns, Guards, Body}, S) ->
    {clause, Anno, Patterns, Guards, merge_expr(Body, S)};
merge_expr({call, Anno, {atom, At, F}, Args}, S = #scope{module = Module, part = Part}) ->
    case resolve({F, length(Args)}, Part) of
        defined -> {call, Anno, {atom, At, merged_name(Module, F)}, merge_expr(Args, S)};
        {imported, From} -> merge_expr({call, Anno, {remote, At, {atom, At, From}, {atom, At, F}}, Args}, S);
        builtin -> merge_expr({call, Anno, {remote, At, {atom, At, erlang}, {atom, At, F}}, Args}, S)
    end;
merge_expr({call, Anno, {remote, At, {atom, _, M} = Module, {atom, _, F} = Function}, Args}, S) ->
    case is_defined(M, F, length(Args), S) of
        true -> {call, Anno, {atom, At, merged_name(M, F)}, merge_expr(Args, S)};
        false -> {call, Anno, {remote, At, Module, Function}, merge_expr(merge_arguments(M, F, Args, S), S)}
    end;
merge_expr({call, Anno, {remote, At, Module, {atom, _, F} = Function}, Args}, S = #scope{parts = Parts}) ->
    case exporting_modules(F, length(Args), Parts) of
        [] -> {call, Anno, {remote, At, merge_expr(Module, S), Function}, merge_expr(Args, S)};
        _ -> {call, Anno, {atom, At, dispatcher_name(F)}, merge_expr([Module | Args], S)}
    end;
merge_expr({'fun', Anno, {function, F, A}} = Fun, S = #scope{module = Module, part = Part}) when is_atom(F) ->
    case resolve({F, A}, Part) of
        defined -> {'fun', Anno, {function, merged_name(Module, F), A}};
        {imported, From} -> merge_expr({'fun', Anno, {function, {atom, Anno, From}, {atom, Anno, F}, {integer, Anno, A}}}, S);
        builtin -> Fun
    end;
merge_expr({'fun', Anno, {function, {atom, _, M}, {atom, _, F}, {integer, _, A} = Arity}} = Fun, S = #scope{merged = Merged}) ->
    case is_defined(M, F, A, S) of
        true -> {'fun', Anno, {function, {atom, Anno, Merged}, {atom, Anno, merged_name(M, F)}, Arity}};
        false -> Fun
    end;
merge_expr({'fun', Anno, {function, {var, _, _} = Module, {atom, At, F}, {integer, _, A}}} = Fun, #scope{parts = Parts}) ->
    case exporting_modules(F, A, Parts) of
        [] -> Fun;
        _ ->
            Args = [{var, Anno, binary_to_atom(<<"Witness", (integer_to_binary(N))/binary>>)} || N <- lists:seq(1, A)],
            {'fun', Anno, {clauses, [{clause, Anno, Args, [], [{call, Anno, {atom, At, dispatcher_name(F)}, [Module | Args]}]}]}}
    end;
merge_expr(Tuple, S) when is_tuple(Tuple) -> list_to_tuple(merge_expr(tuple_to_list(Tuple), S));
merge_expr([First | Rest], S) -> [merge_expr(First, S) | merge_expr(Rest, S)];
merge_expr(Other, _) -> Other.

resolve(F, #part{defined = Defined, imports = Imports}) ->
    case {Defined, Imports} of
        {#{F := _}, _} -> defined;
        {_, #{F := Module}} -> {imported, Module};
        _ -> builtin
    end.

is_defined(M, F, A, #scope{parts = Parts}) ->
    case Parts of
        #{M := #part{defined = Defined}} -> is_map_key({F, A}, Defined);
        #{} -> false
    end.

%% Arguments that name a module with functions that are called later.
merge_arguments(gen_server, Start, [{atom, At, M}, Arg | Options], #scope{merged = Merged, parts = Parts})
  when Start =:= start; Start =:= start_link; Start =:= start_monitor ->
    #{M := #part{server = true}} = Parts,
    [{atom, At, Merged}, {tuple, At, [{atom, At, M}, Arg]} | Options];
merge_arguments(sys, handle_system_msg, [Request, From, Parent, {atom, At, _} | Rest], #scope{merged = Merged}) ->
    [Request, From, Parent, {atom, At, Merged} | Rest];
merge_arguments(Module, F, [{atom, At, M}, {atom, _, G} | Rest] = Args, #scope{merged = Merged, parts = Parts})
  when Module =:= erlang; Module =:= proc_lib ->
    case lists:member(F, ?SPAWNS) andalso is_map_key(M, Parts) of
        true -> [{atom, At, Merged}, {atom, At, merged_name(M, G)} | Rest];
        false -> Args
    end;
merge_arguments(_, _, Args, _) -> Args.

%% --- modules that are known only at run time -------------------------------------

exporting_modules(F, A, Parts) -> [M || M := #part{exports = Exports} <- Parts, lists:member({F, A}, Exports)].

dispatcher_name(F) -> binary_to_atom(<<"?:", (atom_to_binary(F))/binary>>).

dispatcher_functions(Functions, Parts) ->
    Known = #{dispatcher_name(F) => F || #part{exports = Exports} <- maps:values(Parts), {F, _} <- Exports},
    [dispatcher_function(map_get(Name, Known), A, Parts) || {Name, A} <- lists:usort(called_dispatchers(Functions, Known, []))].

called_dispatchers({call, _, {atom, _, Name}, Args}, Known, Found) when is_map_key(Name, Known) ->
    called_dispatchers(Args, Known, [{Name, length(Args) - 1} | Found]);
called_dispatchers(Tuple, Known, Found) when is_tuple(Tuple) -> called_dispatchers(tuple_to_list(Tuple), Known, Found);
called_dispatchers([First | Rest], Known, Found) -> called_dispatchers(Rest, Known, called_dispatchers(First, Known, Found));
called_dispatchers(_, _, Found) -> Found.

dispatcher_function(F, A, Parts) ->
    Args = variables(A),
    Clauses = [clause([{atom, 1, M}], {call, 1, {atom, 1, merged_name(M, F)}, Args}) || M <- exporting_modules(F, A, Parts)]
        ++ [clause([{var, 1, 'M'}], {call, 1, {remote, 1, {var, 1, 'M'}, {atom, 1, F}}, Args})],
    Module = {var, 1, 'Module'},
    {function, 1, dispatcher_name(F), A + 1, [clause([Module | Args], {'case', 1, Module, Clauses})]}.

variables(A) -> [{var, 1, binary_to_atom(<<"A", (integer_to_binary(N))/binary>>)} || N <- lists:seq(1, A)].

clause(Patterns, Body) -> {clause, 1, Patterns, [], [Body]}.

%% Functions that are only named here, to be called later. The compiler removes those that are neither called nor named.
named_functions({function, {atom, _, Merged}, {atom, _, Name}, _}, Merged, Found) -> Found#{Name => []};
named_functions(Tuple, Merged, Found) when is_tuple(Tuple) -> named_functions(tuple_to_list(Tuple), Merged, Found);
named_functions([{atom, _, Merged}, {atom, _, Name} | Rest], Merged, Found) -> named_functions(Rest, Merged, Found#{Name => []});
named_functions([First | Rest], Merged, Found) -> named_functions(Rest, Merged, named_functions(First, Merged, Found));
named_functions(_, _, Found) -> Found.

%% --- functions that are called by their own names --------------------------------

entry_functions(Entry, Entries, Parts) ->
    [{function, 1, F, A, [clause(variables(A), {call, 1, {atom, 1, merged_name(Entry, F)}, variables(A)})]} || {F, A} <- Entries]
        ++ [{function, 1, F, A, [clause(variables(A), {call, 1, {atom, 1, merged_name(M, F)}, variables(A)})]}
            || M := #part{exports = Exports} <- Parts, lists:member({system_continue, 3}, Exports),
               {F, A} <- Exports, lists:prefix("system_", atom_to_list(F))]
        ++ [callback_function(F, A, [M || M := #part{server = true, exports = Exports} <- Parts, lists:member({F, A}, Exports)])
            || {F, A} <- ?CALLBACKS].

callback_function(init, 1, Modules) ->
    Clauses = [clause([{tuple, 1, [{atom, 1, M}, {var, 1, 'Arg'}]}],
                      {block, 1, [erlang_call(put, [{atom, 1, ?SERVER}, {atom, 1, M}]),
                                  {call, 1, {atom, 1, merged_name(M, init)}, [{var, 1, 'Arg'}]}]}) || M <- Modules],
    {function, 1, init, 1, Clauses};
callback_function(F, A, Modules) ->
    Args = variables(A),
    Clauses = [clause([{atom, 1, M}], {call, 1, {atom, 1, merged_name(M, F)}, Args}) || M <- Modules] ++ default_clauses(F),
    {function, 1, F, A, [{clause, 1, Args, [], [{'case', 1, erlang_call(get, [{atom, 1, ?SERVER}]), Clauses}]}]}.

%% The default of gen_server for a missing callback.
default_clauses(terminate) -> [clause([{var, 1, '_'}], {atom, 1, ok})];
default_clauses(format_status) -> [clause([{var, 1, '_'}], {var, 1, 'A1'})];
default_clauses(_) -> [].

erlang_call(F, Args) -> {call, 1, {remote, 1, {atom, 1, erlang}, {atom, 1, F}}, Args}.
