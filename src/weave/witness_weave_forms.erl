-module(witness_weave_forms).
-moduledoc """
Object code and abstract code of modules.

Woven code has to be the code that runs. So object code that differs from the loaded module is refused, and so are modules
that cannot be replaced without changing what they do.
""".

-export([object/1, forms/1, defines/3, woven/1]).

-doc "The object code that a module was loaded from, or would be loaded from. For a woven module, that of the original.".
-spec object(module()) -> {ok, witness_weave:object()} | {error, witness_weave_error:reason()}.
object(Module) ->
    case witness_weave_loader:original(Module) of
        {ok, _} = Kept -> Kept;
        none -> on_code_path(Module)
    end.

on_code_path(Module) ->
    maybe
        ok ?= check_replaceable(Module, code:which(Module)),
        {Module, Binary, File} ?= code:get_object_code(Module),
        ok ?= check_same(Module, Binary),
        {ok, {Module, File, Binary}}
    else
        error -> {error, {no_object_code, Module}};
        {error, _} = Error -> Error
    end.

check_replaceable(Module, Which) ->
    case {code:is_sticky(Module), woven(Module)} of
        _ when Which =:= preloaded; Which =:= cover_compiled -> {error, {Which, Module}};
        {true, _} -> {error, {sticky, Module}};
        {_, {ok, Runtime}} -> {error, {woven, Module, Runtime}};
        {false, no} when Which =:= non_existing -> {error, {unknown, Module}};
        {false, no} -> ok
    end.

check_same(Module, Binary) ->
    case erlang:module_loaded(Module) andalso Module:module_info(md5) =/= code:module_md5(Binary) of
        true -> {error, {differs, Module}};
        false -> ok
    end.

-doc "Whether a function is in the abstract code of its module. Others that the module exports were added by the compiler.".
-spec defines([erl_parse:abstract_form()], atom(), arity()) -> boolean().
defines(Forms, Function, Arity) ->
    lists:any(fun({function, _, F, A, _}) -> F =:= Function andalso A =:= Arity; (_) -> false end, Forms).

-doc "The run-time module that a module was woven for, if it is loaded and was woven.".
-spec woven(module()) -> {ok, module()} | no.
woven(Module) ->
    case erlang:module_loaded(Module) andalso proplists:get_value(witness_weave, Module:module_info(attributes)) of
        [Runtime] -> {ok, Runtime};
        _ -> no
    end.

-doc "The abstract code in object code, and the options that it was compiled with.".
-spec forms(witness_weave:object()) ->
    {ok, [erl_parse:abstract_form()], [compile:option()]} | {error, witness_weave_error:reason()}.
forms({Module, _File, Binary}) ->
    maybe
        {ok, Backend, Data} ?= debug_info(Module, Binary),
        {ok, Forms} ?= abstract(Module, Backend, Data),
        ok ?= plain(Module, Forms),
        {ok, [Woven || Form <- Forms, {ok, Woven} <- [clean(Form)]], options(Module, Binary, Backend, Data)}
    end.

debug_info(Module, Binary) ->
    case beam_lib:chunks(Binary, [debug_info]) of
        {ok, {Module, [{debug_info, {debug_info_v1, Backend, Data}}]}} -> {ok, Backend, Data};
        {ok, {Module, _}} -> {error, {no_debug_info, Module}};
        {ok, {Other, _}} -> {error, {not_object_code, Module, {object_code_of, Other}}};
        {error, beam_lib, {missing_chunk, _, _}} -> {error, {no_debug_info, Module}};
        {error, beam_lib, {key_missing_or_invalid, _, _}} -> {error, {encrypted, Module}};
        {error, beam_lib, Reason} -> {error, {not_object_code, Module, Reason}}
    end.

abstract(Module, Backend, Data) ->
    maybe
        {module, Backend} ?= code:ensure_loaded(Backend),
        {ok, _Forms} ?= Backend:debug_info(erlang_v1, Module, Data, [])
    else
        {error, _} when Backend =:= erl_abstract_code -> {error, {no_debug_info, Module}};
        {error, missing} -> {error, {no_debug_info, Module}};
        {error, _} -> {error, {no_backend, Module, Backend}}
    end.

%% Loading a module with native functions again would load its library again, which the library may not support.
plain(Module, Forms) ->
    case [Name || {attribute, _, Name, _} <- Forms, Name =:= on_load orelse Name =:= nifs] of
        [on_load | _] -> {error, {on_load, Module}};
        [nifs | _] -> {error, {nif, Module}};
        [] ->
            case loads_nif(Forms) of
                true -> {error, {nif, Module}};
                false -> woven_forms(Module, Forms)
            end
    end.

woven_forms(Module, Forms) ->
    case [Runtime || {attribute, _, witness_weave, Runtime} <- Forms] of
        [Runtime | _] -> {error, {woven, Module, Runtime}};
        [] -> ok
    end.

loads_nif({remote, _, {atom, _, erlang}, {atom, _, load_nif}}) -> true;
loads_nif(Node) when is_tuple(Node) -> loads_nif(tuple_to_list(Node));
loads_nif([Node | Nodes]) -> loads_nif(Node) orelse loads_nif(Nodes);
loads_nif(_) -> false.

%% Options in the source are options of the compiler too.
clean({attribute, Anno, compile, Options}) ->
    {ok, {attribute, Anno, compile, kept_options(lists:flatten([Options]))}};
clean({error, _}) -> none;
clean({warning, _}) -> none;
clean(Form) -> {ok, Form}.

options(Module, Binary, Backend, Data) ->
    {ok, {Module, [{compile_info, Info}]}} = beam_lib:chunks(Binary, [compile_info]),
    [{source, Source} || {source, Source} <- Info] ++ kept_options(options(Backend, Data)).

options(erl_abstract_code, {_Forms, Options}) -> Options;
options(elixir_erl, {elixir_v1, #{compile_opts := Options}, _Specs}) -> [no_auto_import | Options];
options(_, _) -> [].

%% Transforms have been applied, and warnings given; options about output files do not concern woven code.
kept_options(Options) -> [Option || Option <- Options, is_kept(Option)].

is_kept({Name, _}) ->
    not lists:member(Name, [parse_transform, core_transform, outdir, i, d, cwd, makedep_output, makedep_target,
                            debug_info, debug_info_key, error_location, source]);
is_kept({d, _, _}) -> false;
is_kept(Option) ->
    not lists:member(Option, [warnings_as_errors, report, report_errors, report_warnings, return, return_errors,
                              return_warnings, verbose, brief, binary, debug_info, encrypt_debug_info, makedep,
                              'P', 'E', 'S', to_pp, to_exp, to_core, to_asm, from_core, from_asm, from_abstr]).
