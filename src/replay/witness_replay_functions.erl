-module(witness_replay_functions).
-moduledoc """
Which functions report their calls in a replay and in a search.

A function of a woven module reports its calls itself (`m:witness_weave_entry`). A function of the VM does not, so the run time reports
those that it performs for woven code, `is_performed/1`. *Invariant:* of a function that is not refused, every call is reported that the
program makes in woven code. So these are refused:

- functions of the VM that woven code calls by itself, since their result follows from their arguments;
- functions that modules of the VM call which are not woven, `?INSIDE`: a call of `counters:add/3` is one of `atomics:add/3`;
- functions of modules that Witness or the VM calls in processes of the program, `?OWN`, and of modules that load code, which is no step
  of the program;
- what the compiler makes no call of (`witness_trace_functions:is_visible/1`), if the module is none of the user's.

What a module with native functions does is outside. If such a module can call one of the functions, it is *hiding*: each call of it is
a gap.
""".

-export([check_option/1, observe/3, refused/3, woven/1, is_performed/1, format_error/1]).

-export_type([observed/0, refusal/0]).

-doc "The functions, and the modules that hide calls of some.".
-type observed() :: #{functions := witness_trace_filter:functions(), hiding := #{module() => []}}.

-doc "A function that cannot be observed, and why.".
-type refusal() :: {mfa(), built_in | inside | own | native | no_module | not_woven | no_function | invisible}.

%% Modules with functions of the VM for programs.
-define(PERFORMED, [atomics, counters, erlang, ets, os, persistent_term]).

%% Rows of the table that the modules `erlang`, `erts_internal`, `atomics` and `counters` call. They also call some functions of
%% persistent_term, but not in processes of a program.
-define(INSIDE, [{atomics, add, 3}, {atomics, add_get, 3}, {atomics, get, 2}, {atomics, info, 1}, {atomics, new, 2},
                 {atomics, put, 3},
                 {erlang, alias, 1}, {erlang, display_string, 2}, {erlang, dist_ctrl_put_data, 2}, {erlang, garbage_collect, 2},
                 {erlang, localtime_to_universaltime, 2}, {erlang, make_ref, 0}, {erlang, module_loaded, 1},
                 {erlang, monitor_node, 3},
                 {erlang, processes_next, 1}, {erlang, system_flag, 2}, {erlang, system_info, 1}, {ets, safe_fixtable, 2}]).

-define(OWN, [auth, beam_lib, binary, calendar, code, code_server, error_handler, error_logger, erts_debug, kernel_refc, lists,
              net_kernel, re, unicode]).

%% Modules of the VM with native functions, and what other modules of the VM with native functions call of servers of the VM.
-define(NATIVE, [prim_buffer, prim_file, prim_inet, prim_net, prim_socket, prim_zip, zlib]).
-define(SERVERS, #{erl_prim_loader => [{erlang, whereis, 1}, {persistent_term, get, 1}], init => [],
                   erts_code_purger => [], socket_registry => [{erlang, whereis, 1}]}).

-doc "Whether the option of a replay names functions.".
-spec check_option(term()) -> ok | {error, witness_option:error()}.
check_option(Functions) ->
    IsOne = fun({{M, F, A}, Kinds}) when is_atom(M), is_atom(F), is_integer(A) ->
                    lists:member(Kinds, [[call], [return], [call, return]]);
               (_) -> false
            end,
    case is_map(Functions) andalso lists:all(IsOne, maps:to_list(Functions)) of
        true -> ok;
        false -> {error, {witness_option, {bad_option, functions, "a map, such as #{{ets, insert, 2} => [call, return]}"}}}
    end.

-doc """
Observes these functions, if all their calls are reported where the modules of the folders are woven. `User`: the folders of the user.
""".
-spec observe(witness_trace_filter:functions(), [witness_weave_objects:folder()], User :: [file:filename()]) ->
    {ok, observed()} | {refused, [refusal(), ...]}.
observe(Functions, Folders, User) ->
    case refused(Functions, Folders, User) of
        [] -> {ok, #{functions => Functions, hiding => hiding(Functions, Folders)}};
        Refused -> {refused, Refused}
    end.

-doc "Those of the functions that cannot be observed there.".
-spec refused(witness_trace_filter:functions(), [witness_weave_objects:folder()], User :: [file:filename()]) -> [refusal()].
refused(Functions, Folders, User) ->
    [{Function, Why} || Function <- lists:sort(maps:keys(Functions)), Why <- refuse(Function, Folders, User)].

refuse({M, F, A} = Function, Folders, User) ->
    case {is_performed(Function), witness_replay_calls:known(M, F, A), modules(M, Folders)} of
        {true, _, _} -> unseen(Function);
        {false, Class, _} when Class =/= none -> [case is_row(Function) of true -> inside; false -> built_in end];
        {false, none, Objects} ->
            case {lists:member(M, erlang:pre_loaded()), erlang:is_builtin(M, F, A), Objects} of
                {true, false, _} -> [case erlang:function_exported(M, F, A) of true -> built_in; false -> no_function end];
                {_, true, _} -> [built_in];
                {false, false, []} -> [case code:which(M) of non_existing -> no_module; _ -> not_woven end];
                {false, false, [{Dir, {File, Code}, Natives} | _]} ->
                    IsUsers = lists:member(Dir, User),
                    case [native || lists:keymember(M, 1, Natives)] ++ [own || not IsUsers, lists:member(M, ?OWN)]
                             ++ [Why || not IsUsers, Why <- unseen(Function)] of
                        [] -> unwoven(Function, witness_weave:forms({M, File, Code}));
                        Refused -> Refused
                    end
            end
    end.

unseen(Function) -> [invisible || not witness_trace_functions:is_visible(Function)].

modules(M, Folders) ->
    [{Dir, Object, Natives} || #{dir := Dir, objects := Objects, natives := Natives} <- Folders,
                               {Module, Object} <- Objects, Module =:= M].

%% A function reports its calls if it is in the source of a module that can be woven. The compiler adds others: `module_info/0`.
unwoven({_, F, A}, {ok, Forms, _}) -> [no_function || not witness_weave_forms:defines(Forms, F, A)];
unwoven(_, {error, _}) -> [not_woven].

-doc "Whether the run time performs the calls of a function of the VM, and no other code of the VM makes any.".
-spec is_performed(mfa()) -> boolean().
is_performed({M, _, _} = Function) ->
    lists:member(M, ?PERFORMED) andalso is_row(Function) andalso not lists:member(Function, ?INSIDE).

is_row({M, F, A}) ->
    case witness_replay_calls:known(M, F, A) of
        {result, _} -> true;
        effect -> true;
        _ -> false
    end.

-doc "The functions that report their calls themselves.".
-spec woven(witness_trace_filter:functions()) -> witness_trace_filter:functions().
woven(Functions) -> maps:filter(fun(Function, _) -> not is_performed(Function) end, Functions).

%% The modules that are not woven and can call one of the functions.
hiding(Functions, _) when map_size(Functions) =:= 0 -> #{};
hiding(Functions, Folders) ->
    Vm = #{M => imports(filename:join([code:lib_dir(erts), "ebin", atom_to_list(M) ++ ".beam"])) || M <- ?NATIVE},
    Loading = #{M => imports(Object) || #{natives := Natives, objects := Objects} <- Folders, {M, {_, Object}} <- Objects,
                                        lists:keymember(M, 1, Natives)},
    Calls = maps:merge(maps:merge(Vm, ?SERVERS), Loading),
    maps:from_keys(reaching(fun(Called) -> is_map_key(Called, Functions) end, Calls, []), []).

%% Those that call one of the functions, or a module that does.
reaching(IsWanted, Calls, Found) ->
    case [M || M := Imports <- Calls, Imports =:= unknown orelse lists:any(IsWanted, Imports)] of
        Found -> Found;
        More -> reaching(fun({M, _, _} = Called) -> IsWanted(Called) orelse lists:member(M, More) end, Calls, More)
    end.

imports(File) ->
    case beam_lib:chunks(File, [imports]) of
        {ok, {_, [{imports, Imports}]}} -> Imports;
        {error, _, _} -> unknown
    end.

-doc "Why functions cannot be observed, as text.".
-spec format_error([refusal(), ...]) -> unicode:chardata().
format_error(Refused) ->
    lists:join("; ", [[~"the calls of ", witness_event:format_function(Function), ~" cannot be observed: ", why(Why, Function)]
                      || {Function, Why} <- Refused]).

why(built_in, _) ->
    ~"it is a function of the VM with a result that follows from its arguments, or with events of its own, so it is not recorded";
why(inside, _) -> ~"other functions of the VM call it, and that is not seen";
why(own, _) -> ~"Witness or the VM calls functions of its module in the processes of the program";
why(native, _) -> ~"its module has native functions, and what it calls itself is not seen";
why(no_module, _) -> ~"there is no such module in the folders of the program";
why(not_woven, {M, _, _}) ->
    [~"its module ", atom_to_binary(M),
     ~" is not woven (where the program is recorded or searched, name its application with --weave; compile it with debug_info)"];
why(Why, _) -> witness_trace_functions:explain(Why).
