-module(witness_exports).
-moduledoc """
Which functions a module has, without loading it: what a specification says of it can be checked before anything runs.
""".

-export([of_module/1, of_module/2]).

-doc "How a function of the node is called whose modules are asked for.".
-type call() :: fun((module(), Function :: atom(), Args :: [term()]) -> term()).

-doc #{equiv => of_module(Module, fun erlang:apply/3)}.
-spec of_module(module()) -> unknown | [{atom(), arity()}].
of_module(Module) -> of_module(Module, fun erlang:apply/3).

-doc """
The functions of a module on the code path, local ones too: a process may be spawned with `fun f/1`. An empty list
where its object code does not tell them, `unknown` where there is no such module.
""".
-spec of_module(module(), call()) -> unknown | [{atom(), arity()}].
of_module(Module, Call) ->
    case Call(erlang, module_loaded, [Module]) of
        true -> Call(Module, module_info, [functions]);
        false -> in_file(Module, Call(code, which, [Module]), Call)
    end.

in_file(_, non_existing, _) -> unknown;
in_file(Module, File, Call) ->
    case is_list(File) andalso Call(beam_lib, chunks, [File, [exports, locals]]) of
        {ok, {Module, [{exports, Exports}, {locals, Locals}]}} -> Exports ++ Locals;
        _ -> []
    end.
