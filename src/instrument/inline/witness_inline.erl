-module(witness_inline).
-moduledoc """
A parse transform that weaves modules for inline monitoring when they are compiled.

```erlang
%% rebar.config
{erl_opts, [debug_info,
            {parse_transform, witness_inline},
            {witness_inline, #{specs => ["specs/calc.hml"]}}]}.
```

or, in one module, `-compile([{parse_transform, witness_inline}, {witness_inline, #{specs => ["specs/calc.hml"]}}]).` Witness
must be on the code path of the compiler.

Woven code does what it did before; each process pays one read of its dictionary for an event. Nothing more happens
until a run with `instrument => inline` is started for specifications that name the module (`witness:start/1`). The run
then neither needs debug information nor loads code. Processes that start during the run are monitored.

## Options

A map, `#{}` without one.

| Key | Value | Default |
|---|---|---|
| `specs` | specification files, relative to the compiler's working folder: processes may start with the functions they name | `[]` |
| `include` | folders for `-include` in them | `[]` |
| `entries` | further such functions: `all` exported ones, or `{Function, Arity}` of any module | `all` without `specs`, otherwise `[]` |

A run may use other specifications, as long as its processes start with these functions. Otherwise the run refuses to start.

## Errors

Wrong options and wrong specifications are compiler errors, with their locations.
""".

-export([parse_transform/2, entries/1, plan/1]).
-export([format_error/1]).

-define(RUNTIME, witness_inline_process).

-type located() :: {erl_anno:location() | none, module(), term()}.

-doc false.
-spec parse_transform([erl_parse:abstract_form()], [compile:option()]) ->
    [erl_parse:abstract_form()] | {error, [{file:filename(), [located()]}], []}
    | {warning, [erl_parse:abstract_form()], [{file:filename(), [located()]}]}.
parse_transform(Forms, Options) ->
    case [Module || {attribute, _, module, Module} <- Forms] of
        [Module | _] -> woven(Module, Forms, Options);
        %% The compiler reports that.
        [] -> Forms
    end.

woven(Module, Forms, Options) ->
    Place = {attribute, Anno, file, {File, _}} = lists:keyfind(file, 3, Forms),
    try
        Given = maps:merge(#{specs => [], include => []}, given(Options)),
        maps:foreach(fun check/2, Given),
        {Patterns, Warnings} = patterns(Given),
        Entries = entries(Module, Patterns, maps:get(entries, Given, default(Given))),
        Woven = [attribute(Form, Entries) || Form <- weave(Forms, Entries)],
        case Warnings of
            [] -> lists:append(Woven);
            _ -> {warning, lists:append(Woven), located(Warnings)}
        end
    catch
        throw:{specification, Diagnostics} -> {error, located(Diagnostics), []};
        throw:{?MODULE, Reason} -> {error, [{File, [{erl_anno:location(Anno), ?MODULE, Reason}]}], []};
        error:{receive_in_record, _, _} = Reason ->
            {error, [{element(1, element(4, Place)), [{erl_anno:location(Anno), ?MODULE, {weave, Reason}}]}], []}
    end.

given(Options) ->
    lists:foldr(fun({?MODULE, Given}, _) when is_map(Given) -> Given;
                   ({?MODULE, Wrong}, _) -> throw({?MODULE, {bad_options, Wrong}});
                   (_, Given) -> Given
                end, #{}, Options).

check(Key, Files) when Key =:= specs; Key =:= include ->
    (is_list(Files) andalso lists:all(fun(F) -> is_list(F) orelse is_binary(F) end, Files))
        orelse throw({?MODULE, {bad_option, Key, "a list of file names"}});
check(entries, all) -> ok;
check(entries, Entries) ->
    (is_list(Entries) andalso lists:all(fun({F, A}) -> is_atom(F) andalso is_integer(A) andalso A >= 0;
                                           (_) -> false
                                        end, Entries))
        orelse throw({?MODULE, {bad_option, entries, "all, or a list of {Function, Arity}"}});
check(Key, _) ->
    throw({?MODULE, {unknown_option, Key}}).

default(#{specs := []}) -> all;
default(_) -> [].

patterns(#{specs := Files, include := Include}) ->
    lists:foldl(fun(File, {Patterns, Warnings}) ->
        %% No module is ever loaded under this name.
        case witness_spec:to_object(File, witness_spec_code_0, #{include => Include, central => false}) of
            {ok, {#{entries := Entries}, _}, Diagnostics} ->
                {[Name || #{names := Names} <- Entries, Name <- Names] ++ Patterns, Diagnostics ++ Warnings};
            {error, Diagnostics} ->
                throw({specification, Diagnostics})
        end
    end, {[], []}, Files).

entries(_, _, all) -> all;
entries(Module, Patterns, More) -> witness_inline_modules:entries(Module, Patterns, More).

weave(Forms, Entries) ->
    witness_weave:weave(Forms, plan(Entries)).

%% A run asks the module for its entries.
attribute({attribute, Anno, module, _} = Form, Entries) ->
    [Form, {attribute, erl_anno:set_generated(true, Anno), ?MODULE, Entries}];
attribute(Form, _) ->
    [Form].

-doc "How to weave a module for inline monitoring, if processes may start with these functions.".
-spec plan(all | [{atom(), arity()}]) -> witness_weave:plan().
plan(Entries) -> #{runtime => ?RUNTIME, entries => Entries, announces => true, waits => blocked}.

-doc "The functions that processes may start with, of a module that was compiled with the parse transform.".
-spec entries(module()) -> all | [{atom(), arity()}].
entries(Module) ->
    case proplists:get_value(?MODULE, Module:module_info(attributes), []) of
        [all] -> all;
        Entries -> Entries
    end.

located(Diagnostics) ->
    [{binary_to_list(File), [{place(D), ?MODULE, {specification, D}}]} || #{file := File} = D <- Diagnostics].

place(#{line := undefined}) -> none;
place(#{line := Line, column := undefined}) -> Line;
place(#{line := Line, column := Column}) -> {Line, Column}.

-doc "An error of the parse transform as text, for the compiler.".
-spec format_error(term()) -> unicode:chardata().
format_error({specification, #{text := Text, hint := undefined}}) -> Text;
format_error({specification, #{text := Text, hint := Hint}}) -> [Text, " (", Hint, ")"];
format_error({bad_options, _}) -> "witness_inline: expected a map of options";
format_error({bad_option, Key, Expected}) -> io_lib:format("witness_inline: option ~tp: expected ~ts", [Key, Expected]);
format_error({unknown_option, Key}) ->
    io_lib:format("witness_inline: unknown option ~tp; there are specs, include and entries", [Key]);
format_error({weave, Reason}) -> witness_weave:format_error(Reason).
