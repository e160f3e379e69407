-module(witness_exports).
-moduledoc """
Which functions a module has, without loading it: what a specification says of it can be checked before anything runs.
""".

-export([of_module/1, of_module/2]).

-export_type([functions/0]).

-doc "What is known of a module: `unknown` if there is none, `unreadable` if its object code is no such here.".
-type functions() :: unknown | unreadable | [{atom(), arity()}].

-doc "How a function of the node is called whose modules are asked for.".
-type call() :: fun((module(), Function :: atom(), Args :: [term()]) -> term()).

-doc #{equiv => of_module(Module, fun erlang:apply/3)}.
-spec of_module(module()) -> functions().
of_module(Module) -> of_module(Module, fun erlang:apply/3).

-doc """
The functions of a module on the code path, local ones too: a process may be spawned with `fun f/1`. An empty list
where its object code does not tell them, `unknown` where there is no such module, `unreadable` where its file is
damaged or of a later release of OTP.
""".
-spec of_module(module(), call()) -> functions().
of_module(Module, Call) ->
    case Call(erlang, module_loaded, [Module]) of
        true -> Call(Module, module_info, [functions]);
        false -> in_file(Module, Call(code, which, [Module]), Call)
    end.

in_file(_, non_existing, _) -> unknown;
in_file(Module, File, Call) when is_list(File) ->
    try Call(beam_lib, chunks, [File, [exports, locals]]) of
        {ok, {Module, [{exports, Exports}, {locals, Locals}]}} -> Exports ++ Locals;
        {error, beam_lib, Reason} -> not_told(Reason);
        _ -> []
    catch
        %% What OTP makes of names that it cannot decode.
        error:{badmatch, {'EXIT', _}} -> unreadable
    end;
in_file(_, _, _) -> [].

%% Local functions may have been left out. What cannot be opened as a file may be in an archive.
not_told({missing_chunk, _, "LocT"}) -> [];
not_told({file_error, _, _}) -> [];
not_told(_) -> unreadable.
