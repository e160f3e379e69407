-module(witness_remote_exports).
-moduledoc """
The functions of a module, without loading it: so a specification can be checked before anything runs.
""".

-export([of_module/1, of_module/2]).

-export_type([functions/0]).

-doc "What is known of a module: `unknown` if there is none, `unreadable` if this node cannot read its object code.".
-type functions() :: unknown | unreadable | [{atom(), arity()}].

-doc "Calls a function in the node of the modules.".
-type call() :: fun((module(), Function :: atom(), Args :: [term()]) -> term()).

-doc #{equiv => of_module(Module, fun erlang:apply/3)}.
-spec of_module(module()) -> functions().
of_module(Module) -> of_module(Module, fun erlang:apply/3).

-doc """
The functions of a module on the code path, local ones too: a process may be spawned with `fun f/1`. The list is empty
if the object code does not name them. The result is `unknown` if there is no such module, and `unreadable` if its file is
damaged or of a later release of OTP.
""".
-spec of_module(module(), call()) -> functions().
of_module(Module, Call) ->
    case Call(erlang, module_loaded, [Module]) of
        true -> Call(Module, module_info, [functions]);
        false -> functions_in_file(Module, Call(code, which, [Module]), Call)
    end.

functions_in_file(_, non_existing, _) -> unknown;
functions_in_file(Module, File, Call) when is_list(File) ->
    try Call(beam_lib, chunks, [File, [exports, locals]]) of
        {ok, {Module, [{exports, Exports}, {locals, Locals}]}} -> Exports ++ Locals;
        {error, beam_lib, Reason} -> functions_after_error(Reason);
        _ -> []
    catch
        %% The result of OTP for names that it cannot decode.
        error:{badmatch, {'EXIT', _}} -> unreadable
    end;
functions_in_file(_, _, _) -> [].

%% The table of local functions may be missing. A file that cannot be opened may be in an archive.
functions_after_error({missing_chunk, _, "LocT"}) -> [];
functions_after_error({file_error, _, _}) -> [];
functions_after_error(_) -> unreadable.
