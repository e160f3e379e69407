-module(witness_exports).
-moduledoc """
Which functions a module has, without loading it: what a specification says of it can be checked before anything runs.
""".

-export([of_module/1]).

-doc """
The functions of a module on the code path, local ones too: a process may be spawned with `fun f/1`. An empty list
where its object code does not tell them, `unknown` where there is no such module.
""".
-spec of_module(module()) -> unknown | [{atom(), arity()}].
of_module(Module) ->
    case erlang:module_loaded(Module) of
        true -> Module:module_info(functions);
        false -> in_file(Module, code:which(Module))
    end.

in_file(_, non_existing) -> unknown;
in_file(Module, File) ->
    case is_list(File) andalso beam_lib:chunks(File, [exports, locals]) of
        {ok, {Module, [{exports, Exports}, {locals, Locals}]}} -> Exports ++ Locals;
        _ -> []
    end.
