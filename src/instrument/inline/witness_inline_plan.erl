-module(witness_inline_plan).
-moduledoc """
How a module is woven for inline monitoring, and with which entry functions: those that monitored processes may start with.
""".

-export([new/2, entries/3, compiled_entries/1]).
-export_type([entries/0, pattern/0, functions/0]).

-type entries() :: all | [{atom(), arity()}].
-type pattern() :: {module() | '_', Function :: atom() | '_', arity() | '_'}.

-doc "The functions that report their calls and returns.".
-type functions() :: #{mfa() => witness_weave_entry:reports()}.

%% What woven code calls.
-define(RUNTIME, witness_inline_process).
%% The attribute in which a module that was woven by its compiler (`m:witness_inline') has its entry functions.
-define(ATTRIBUTE, witness_inline).

-doc "How to weave a module for inline monitoring, if processes may start with these entries.".
-spec new(entries(), functions()) -> witness_weave:plan().
new(Entries, Functions) ->
    #{runtime => ?RUNTIME, entries => Entries, announces => true, waits => blocked, functions => Functions}.

-doc """
The functions of a module that these patterns name, with further ones that may be of any module. A pattern with the function of a
fun adds none: no call names that function.
""".
-spec entries(module(), [pattern() | witness_trace_native:pattern()], [{atom(), arity()}]) -> entries().
entries(Module, Named, More) ->
    Patterns = [{element(1, P), element(2, P), element(3, P)} || P <- Named],
    Begins = [{F, A} || {M, F, A} <- Patterns, M =:= '_' orelse M =:= Module, not is_fun(F)],
    case lists:any(fun({F, _}) -> F =:= '_' end, Begins) of
        true -> all;
        false ->
            lists:usort(More ++ [{F, Arity} || {F, A} <- Begins,
                                       Arity <- case A of '_' -> arities(Module, F); _ -> [A] end])
    end.

is_fun('_') -> false;
is_fun(F) -> lists:prefix("-", atom_to_list(F)).

arities(Module, Function) ->
    case code:ensure_loaded(Module) of
        {module, Module} -> [A || {F, A} <- Module:module_info(exports), F =:= Function];
        {error, _} -> []
    end.

-doc "The functions that processes may start with, of a module that was compiled with the parse transform.".
-spec compiled_entries(module()) -> entries().
compiled_entries(Module) ->
    case proplists:get_value(?ATTRIBUTE, Module:module_info(attributes), []) of
        [all] -> all;
        Entries -> Entries
    end.
