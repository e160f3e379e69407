-module(witness_record_handler).
-moduledoc """
The table of calls by which `error_handler` is woven.

The VM calls that module when a function is undefined, and it loads the module. Which process first needs a module is chance,
and no step of the program, so it is not recorded.
""".
-behaviour(witness_weave_calls).

-export([plan/1, load/1, class/3, possible/3]).

-doc "The plan for `error_handler`, made from the plan for all other modules.".
-spec plan(witness_weave:plan()) -> witness_weave:plan().
plan(Plan) -> Plan#{calls => ?MODULE, natives => #{}, except => []}.

-doc "Loads the woven module of a folder. The modules that it calls must be loaded already.".
-spec load(file:filename()) -> ok.
load(Folder) ->
    File = filename:join(Folder, "error_handler.beam"),
    {ok, Object} = file:read_file(File),
    ok = code:unstick_dir(filename:dirname(code:which(error_handler))),
    {module, error_handler} = code:load_binary(error_handler, File, Object),
    ok.

-doc false.
-spec class(module(), atom(), arity()) -> witness_weave_calls:class() | none.
class(code, ensure_loaded, 1) -> unseen;
class(_, _, _) -> none.

-doc false.
-spec possible(module() | '_', atom() | '_', arity() | '_') -> boolean().
possible(Module, Function, Arity) -> class(Module, Function, Arity) =/= none.
