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

-export([parse_transform/2]).
-export([format_error/1]).

-type located() :: {erl_anno:location() | none, module(), term()}.

-doc false.
-spec parse_transform([erl_parse:abstract_form()], [compile:option()]) ->
    [erl_parse:abstract_form()] | {error, [{file:filename(), [located()]}], []}
    | {warning, [erl_parse:abstract_form()], [{file:filename(), [located()]}]}.
parse_transform(Forms, Options) ->
    case [Module || {attribute, _, module, Module} <- Forms] of
        [Module | _] -> weave_module(Module, Forms, Options);
        %% The compiler reports that.
        [] -> Forms
    end.

weave_module(Module, Forms, Options) ->
    Place = {attribute, Anno, file, {File, _}} = lists:keyfind(file, 3, Forms),
    try
        Given = maps:merge(witness_option:defaults(witness_option_schema:inline()), given_options(Options)),
        ok = check(Given),
        {Patterns, Warnings} = patterns(Given),
        Entries = entries(Module, Patterns, maps:get(entries, Given, default(Given))),
        Woven = [attribute(Form, Entries) || Form <- weave(Forms, Entries)],
        case Warnings of
            [] -> lists:append(Woven);
            _ -> {warning, lists:append(Woven), add_locations(Warnings)}
        end
    catch
        throw:{specification, Diagnostics} -> {error, add_locations(Diagnostics), []};
        throw:{?MODULE, Reason} -> {error, [{File, [{erl_anno:location(Anno), ?MODULE, Reason}]}], []};
        error:{receive_in_record, _, _} = Reason ->
            {error, [{element(1, element(4, Place)), [{erl_anno:location(Anno), ?MODULE, {weave, Reason}}]}], []}
    end.

given_options(Options) ->
    lists:foldr(fun({?MODULE, Given}, _) when is_map(Given) -> Given;
                   ({?MODULE, Wrong}, _) -> throw({?MODULE, {bad_options, Wrong}});
                   (_, Given) -> Given
                end, #{}, Options).

check(Options) ->
    case witness_option:check(Options, witness_option_schema:inline()) of
        ok -> ok;
        {error, {witness_option, Reason}} -> throw({?MODULE, Reason})
    end.

default(#{specs := []}) -> all;
default(_) -> [].

patterns(#{specs := Files, include := Include}) ->
    lists:foldl(fun(File, {Patterns, Warnings}) ->
        %% No module is ever loaded under this name.
        case witness_spec:to_object(File, witness_spec_code_0, #{include => Include, central => false, receives => taken}) of
            {ok, {#{entries := Entries}, _}, Diagnostics} ->
                {[Name || #{names := Names} <- Entries, Name <- Names] ++ Patterns, Diagnostics ++ Warnings};
            {error, {witness_spec, Diagnostics}} ->
                throw({specification, Diagnostics})
        end
    end, {[], []}, Files).

entries(_, _, all) -> all;
entries(Module, Patterns, More) -> witness_inline_plan:entries(Module, Patterns, More).

weave(Forms, Entries) ->
    witness_weave:weave(Forms, witness_inline_plan:new(Entries, #{})).

%% A run asks the module for its entries.
attribute({attribute, Anno, module, _} = Form, Entries) ->
    [Form, {attribute, erl_anno:set_generated(true, Anno), ?MODULE, Entries}];
attribute(Form, _) ->
    [Form].

add_locations(Diagnostics) ->
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
