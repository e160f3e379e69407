-module(witness_error_tests).
-moduledoc """
An error that reaches a user is text, or `{Module, Reason}` where `Module:format_error(Reason)` is its text. Errors of other VMs
never decide which module is called.
""".
-include_lib("eunit/include/eunit.hrl").

-export([format_error/1]).

%% Functions with other errors, or modules of them, and why.
exceptions() ->
    #{{witness_inline, parse_transform, 2} => "the compiler calls it, and has a form of its own, which names the module, too",
      {witness_replay_traced, start, 2} => "it is called in the VM of the replay, and `witness_replay` adds the module",
      {witness_step_place, function, 1} => "that nothing is found is an answer",
      {'Elixir.Witness', start_link, 1} => "that a name is taken has the form of OTP, which `Witness.format_error/1` explains, too",
      {'Elixir.Witness', '__start_child__', 1} => "a supervisor of Elixir prints an exception as its text",
      {witness_log_input, open, 1} => "the command that formats standard input names it",
      {witness_log_input, read, 2} => "the command that formats standard input names it",
      witness_step => "that nothing is found is an answer",
      witness_weave => "`witness_run_inline` explains it to users, with the option that chooses the modules"}.

is_exception({M, _, _} = MFA) -> is_map_key(MFA, exceptions()) orelse is_map_key(M, exceptions()).

%% Those of modules that explain errors, and all that the command line calls.
functions_return_errors_with_their_module_test_() ->
    {timeout, 60, fun() ->
        Types = types(),
        Explaining = [{M, F, A} || M <- own(), exports(M, {format_error, 1}), {F, A} <- M:module_info(exports)],
        Functions = lists:usort(Explaining ++ calls_of_command_line()),
        ?assert(length(Functions) > 100),
        Wrong = [{MFA, Error} || {M, _, _} = MFA <- Functions, Result <- results(MFA, Types), Error <- errors(Result, M, Types),
                                 not is_explained(Error, M, Types)],
        ?assertEqual([], [{MFA, print(Error)} || {MFA, Error} <- Wrong, not is_exception(MFA)]),
        ?assertEqual([], maps:keys(exceptions()) -- lists:append([[M, MFA] || {{M, _, _} = MFA, _} <- Wrong]))
    end}.

%% Where an error is made. A type may leave the module open (`t:witness:error/0`).
modules_of_errors_explain_them_test_() ->
    {timeout, 60, fun() ->
        Own = own(),
        Made = lists:usort([{Module, M} || M <- Own, Module <- made(forms(M)), lists:member(Module, Own)]),
        ?assert(length(Made) > 30),
        ?assertEqual([], [Made1 || {Module, _} = Made1 <- Made, not exports(Module, {format_error, 1})])
    end}.

%% No module that the command line calls makes an error with a tag in the place of the module. The exception adds its name when it
%% returns the error.
no_tag_stands_in_the_place_of_the_module_test_() ->
    {timeout, 60, fun() ->
        Own = own(),
        Modules = lists:usort([M || {M, _, _} <- calls_of_command_line()]) -- [witness_record],
        ?assert(length(Modules) > 20),
        ?assertEqual([], [{M, Tag} || M <- Modules, Tag <- lists:usort(made(forms(M))), not lists:member(Tag, Own)])
    end}.

made({tuple, _, [{atom, _, error}, {tuple, _, [{atom, _, Module} | Reason]} | _]}) -> [Module | made(Reason)];
%% Patterns make nothing.
made({clause, _, _, _, Body}) -> made(Body);
made({Match, _, _, Expr}) when Match =:= match; Match =:= maybe_match -> made(Expr);
made(Form) when is_tuple(Form) -> made(tuple_to_list(Form));
made([Form | Forms]) -> made(Form) ++ made(Forms);
made(_) -> [].

%% --- errors of another VM ------------------------------------------------------------

errors_of_a_run_are_explained_test() ->
    [?assertEqual({ok, Error}, witness_error:check(Error))
     || Error <- [{witness_option, {unknown_option, a}}, {witness_options, {not_attached, scope}}, {witness_run, timeout},
                  {witness_monitor, {monitor_callbacks, a, [{init, 3}]}}, {witness_run_attach, "text"},
                  {witness_run_application, {running_already, a}}, {witness_run_start, {log, ~"text"}}, {witness_spec, []}]].

another_vm_does_not_choose_the_module_test() ->
    [?assertEqual(error, witness_error:check(Error))
     || Error <- [{?MODULE, reason}, {file, enoent}, {witness_no_such_module, reason}, {witness, {?MODULE, reason}},
                  {"witness_run", timeout},
                  %% This one calls a module that its reason names.
                  {witness_weave, {not_compiled, a, [{"a.erl", [{1, ?MODULE, reason}]}]}},
                  {witness_run_inline, {weave, {not_compiled, a, [{"a.erl", [{1, ?MODULE, reason}]}]}}}]],
    %% The VM of a replay sends reasons, too.
    ?assertError(function_clause, witness_replay:format_error({untrusted, {?MODULE, reason}, []})),
    ?assertNot(erlang:get(?MODULE) =:= called).

%% Called only if another VM chooses the module.
format_error(reason) ->
    put(?MODULE, called),
    "text".

reasons_that_the_module_does_not_know_are_refused_test() ->
    [?assertEqual(error, witness_error:check(Error))
     || Error <- [{witness_run, reason}, {witness_run_attach, {no, text}}, {witness_run_attach, [-1]}, {witness_spec, [diagnostic]},
                  {witness_option, {bad_option, "name", self()}}, {witness_run, timeout, more}, timeout]].

print(Type) -> lists:flatten(erl_pp:attribute({attribute, 1, type, {error, Type, []}})).

exports(M, Function) -> lists:member(Function, M:module_info(exports)).

own() ->
    _ = application:load(witness),
    {ok, Modules} = application:get_key(witness, modules),
    [M || M <- Modules, lists:member("src", filename:split(source(M)))].

source(M) -> proplists:get_value(source, M:module_info(compile), "").

folder(M) -> filename:dirname(source(M)).

calls_of_command_line() ->
    Own = own(),
    lists:usort([{M, F, A} || Caller <- Own, filename:basename(folder(Caller)) =:= "cli",
                              {ok, {_, [{imports, Imports}]}} <- [beam_lib:chunks(code:which(Caller), [imports])],
                              {M, F, A} <- Imports, lists:member(M, Own), folder(M) =/= folder(Caller)]).

%% --- types -------------------------------------------------------------------------

%% Specifications of functions, and types, from the debug information.
types() -> maps:from_list(lists:append([types(M) || M <- own()])).

forms(M) ->
    {ok, {M, [{abstract_code, {raw_abstract_v1, Forms}}]}} = beam_lib:chunks(code:which(M), [abstract_code]),
    Forms.

types(M) ->
    Forms = forms(M),
    [{{M, F, A}, Clauses} || {attribute, _, spec, {{F, A}, Clauses}} <- Forms]
        ++ [{{M, type, Name, length(Variables)}, Type} || {attribute, _, Kind, {Name, Type, Variables}} <- Forms,
                                                          lists:member(Kind, [type, opaque, nominal])].

results(MFA, Types) -> [result(Clause) || #{MFA := Clauses} <- [Types], Clause <- Clauses].

result({type, _, bounded_fun, [Fun, _]}) -> result(Fun);
result({type, _, 'fun', [_, Result]}) -> Result.

%% What stands beside `error` in a type.
errors({type, _, union, Parts}, M, Types) -> lists:append([errors(Part, M, Types) || Part <- Parts]);
errors({type, _, tuple, [{atom, _, error}, Error | _]}, _, _) -> [Error];
errors({type, _, tuple, [Part | _]}, M, Types) -> errors(Part, M, Types);
errors(Named, M, Types) ->
    case resolve(Named, M, Types) of
        {Type, Of} -> errors(Type, Of, Types);
        unknown -> []
    end.

is_explained({type, _, union, Parts}, M, Types) -> lists:all(fun(Part) -> is_explained(Part, M, Types) end, Parts);
is_explained({ann_type, _, [_, Type]}, M, Types) -> is_explained(Type, M, Types);
is_explained({remote_type, _, [{atom, _, unicode}, {atom, _, chardata}, []]}, _, _) -> true;
is_explained({type, _, tuple, [{atom, _, Module}, _]}, _, _) ->
    lists:member(Module, own()) andalso exports(Module, {format_error, 1});
is_explained({type, _, tuple, [{type, _, module, []}, _]}, _, _) -> true;
is_explained(Named, M, Types) ->
    case resolve(Named, M, Types) of
        {Type, Of} -> is_explained(Type, Of, Types);
        unknown -> false
    end.

%% The definition of a type without variables, and its module.
resolve({user_type, _, Name, []}, M, Types) -> definition({M, type, Name, 0}, Types);
resolve({remote_type, _, [{atom, _, M}, {atom, _, Name}, []]}, _, Types) -> definition({M, type, Name, 0}, Types);
resolve(_, _, _) -> unknown.

definition({M, type, _, _} = Key, Types) ->
    case Types of
        #{Key := Type} -> {Type, M};
        #{} -> unknown
    end.
