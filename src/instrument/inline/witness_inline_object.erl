-module(witness_inline_object).
-moduledoc """
Weaves files of object code in place: for build tools that compile without Erlang's parse transforms.

The file keeps its other chunks, such as Elixir's debug information and documentation. So it can be woven again for other
specifications, and tools read it as before.
""".

-export([weave/2]).

-doc """
Weaves the module in a file, with the options of `m:witness_inline`; `same` if it was woven for the same functions
before.

## Errors

`{weave, Reason}`: for `witness_weave:format_error/1`; `{compile, Errors}`: as those of a parse transform; `{write,
File, Reason}`.
""".
-spec weave(file:filename(), map()) ->
    {ok, woven | same, module()}
    | {error, {weave, witness_weave_error:reason()} | {compile, [{file:filename(), [tuple()]}]}
              | {write, file:filename(), file:posix()}}.
weave(File, Options) ->
    maybe
        {ok, Code} ?= read(File),
        {ok, {Module, _}} = beam_lib:chunks(Code, [attributes]),
        {ok, Forms, CompileOptions} ?= forms({Module, File, Code}),
        {ok, Woven} ?= transform(Forms, Options),
        true ?= entries(Woven) =/= woven_entries(Code) orelse {ok, same, Module},
        {ok, New} ?= compile(Woven, CompileOptions),
        ok ?= write(File, witness_weave_description:keep(Code, witness_weave_names:keep(Code, New))),
        ok = reload(Module, File),
        {ok, woven, Module}
    end.

read(File) ->
    case file:read_file(File) of
        {ok, Code} -> {ok, Code};
        {error, Reason} -> {error, {write, File, Reason}}
    end.

forms(Object) ->
    case witness_weave:forms(Object) of
        {error, Reason} -> {error, {weave, Reason}};
        Forms -> Forms
    end.

transform(Forms, Options) ->
    case witness_inline:parse_transform(Forms, [{witness_inline, Options}]) of
        {error, Errors, _} -> {error, {compile, Errors}};
        {warning, Woven, _} -> {ok, Woven};
        Woven -> {ok, Woven}
    end.

entries(Forms) -> [Entries || {attribute, _, witness_inline, Entries} <- Forms].

woven_entries(Code) ->
    {ok, {_, [{attributes, Attributes}]}} = beam_lib:chunks(Code, [attributes]),
    case proplists:get_value(witness_inline, Attributes, none) of
        none -> none;
        [all] -> [all];
        Entries -> [Entries]
    end.

compile(Forms, Options) ->
    case compile:noenv_forms(Forms, [binary, return_errors | Options]) of
        {ok, _, Code} -> {ok, Code};
        {error, Errors, _} -> {error, {compile, Errors}}
    end.

%% A reader of the file gets either the old or the new version.
write(File, Code) ->
    New = File ++ ".woven",
    maybe
        ok ?= file:write_file(New, Code),
        ok ?= file:rename(New, File)
    else
        {error, Reason} -> {error, {write, File, Reason}}
    end.

%% A compiler may have loaded what it has compiled.
reload(Module, File) ->
    case erlang:module_loaded(Module) of
        true ->
            _ = code:soft_purge(Module),
            {module, Module} = code:load_abs(filename:rootname(File)),
            ok;
        false -> ok
    end.
