-module(witness_spec).
-moduledoc """
The specification language: compiles `.hml` files to monitors.

A file holds properties: which processes, and a formula of Hennessy-Milner logic with recursion and data over the events
of one process.

```text
reply_is_sum: with calc_server:loop(_)
monitor
  and([_ <- _, calc_server:loop(_)]
    max(X. and([_ ? {_, {add, A, B}}]
      and([_:_ ! {ok, R} when R =/= A + B] ff,
          [_:_ ! {ok, R} when R =:= A + B] X)))).
```

A whole file is one instrumentation map. It becomes one module, with one monitor for each property (its *index* is the
argument of `init/3`), that implements the behaviour `witness_monitor` and also exports `match/1`: the indices of all
properties, those with `none` included, one of whose signature patterns matches a signature.

```text
1> {ok, Map, []} = witness_spec:compile_file("calc.hml").
2> #{module := M, entries := [#{index := 1}]} = Map.
3> M:match({calc_server, loop, [0]}).
[1]
4> {ok, S0} = M:init({calc_server, loop, [0]}, self(), 1).
5> {ok, S1} = M:handle_event({init, self(), undefined, {calc_server, loop, [0]}, 0}, S0).
6> M:describe(S1).
#{bindings => [],formula => <<"max(X. and([_ ? {_, {add, A, B}}] ...
```

## Verdicts

Over the linear time of one process: `[a] f` holds if the next event matches `a` and then `f` holds, or if it does not
match; `<a> f` holds if it matches and then `f` holds. At the complete end of a trace `[a] f` holds and `<a> f` does
not. `yes` and `no` fall as soon as the formula simplifies to `tt` or `ff` and are irrevocable; what is undecided when
watching stops is `inconclusive`.

The information that comes with a verdict is a map:

| key | value |
|---|---|
| `line`, `column` | the action that decided, or the formula where no single one did |
| `action` | the text of that action; it decided by matching, or by not matching |
| `bindings` | variables that are known there, with their values |
| `vacuous` | whether `yes` was reached without any action other than `init` having matched |
| `reason` | why it is `inconclusive` |

Keys that are not known are left out.

## Errors

Errors and warnings are lists of `t:diagnostic/0`, which `format_diagnostic/1` prints as compilers do. Whatever the
input is, it is compiled or there is an error: specifications are data. They run no code, since only patterns and guards
become part of the module, and their size and the number of their names are limited before anything makes atoms.
""".

-export([compile_file/1, compile_string/2, to_erlang/1, unload/1, format_diagnostic/1]).
-export_type([diagnostic/0, entry/0, instrumentation_map/0]).

-doc "An error or a warning with its place; see `m:witness_spec_diagnostic`.".
-type diagnostic() :: witness_spec_diagnostic:diagnostic().

-doc "A property of a file. `action` is `none` where a signature is named only to cut it out of a group.".
-type entry() :: #{index := pos_integer(),
                   name := binary() | undefined,
                   line := pos_integer(),
                   group := boolean(),
                   action := monitor | none,
                   signature := binary()}.

-doc "A compiled file.".
-type instrumentation_map() :: #{file := binary(), module := module(), entries := [entry()]}.

-define(MAX_FINDINGS, 50).

-doc "Compiles a file and loads the generated module. Warnings come with the result.".
-spec compile_file(file:name_all()) -> {ok, instrumentation_map(), [diagnostic()]} | {error, [diagnostic()]}.
compile_file(File) ->
    case witness_spec_scan:file(File) of
        {ok, Source} -> compile_string(name(File), Source);
        {error, Finding} -> {error, witness_spec_diagnostic:located([Finding], name(File), [])}
    end.

-doc "Compiles a specification that is not in a file; `Name` stands for the file in messages.".
-spec compile_string(Name :: binary(), Source :: binary()) ->
    {ok, instrumentation_map(), [diagnostic()]} | {error, [diagnostic()]}.
compile_string(Name, Source) ->
    maybe
        {ok, Properties, Units, Warnings} ?= analyse(Source),
        {ok, Module} ?= load(Units),
        Map = #{file => Name, module => Module, entries => entries(Properties)},
        {ok, Map, witness_spec_diagnostic:located(Warnings, Name, witness_spec_scan:lines(Source))}
    else
        {error, Findings} -> failed(Findings, Name, Source)
    end.

load(Units) ->
    case witness_spec_module:load(fun(Module) -> witness_spec_build:object(Module, Units) end) of
        {error, pool_exhausted} ->
            {error, [witness_spec_diagnostic:error(undefined, pool_exhausted, "too many specifications are loaded",
                                                   "witness_spec:unload/1 gives the name of a module back")]};
        Result ->
            Result
    end.

-doc "The generated module as Erlang source. Nothing is loaded.".
-spec to_erlang(file:name_all()) -> {ok, iodata()} | {error, [diagnostic()]}.
to_erlang(File) ->
    case witness_spec_scan:file(File) of
        {ok, Source} ->
            maybe
                {ok, _, Units, _} ?= analyse(Source),
                {ok, _} ?= witness_spec_build:object(witness_spec_code_0, Units),
                {ok, [print(Part) || Part <- witness_spec_build:forms(witness_spec_code_0, Units)]}
            else
                {error, Findings} -> failed(Findings, name(File), Source)
            end;
        {error, Finding} ->
            {error, witness_spec_diagnostic:located([Finding], name(File), [])}
    end.

print({Comment, Form}) ->
    [[["%% ", Comment, "\n"] || Comment =/= <<>>],
     unicode:characters_to_binary(erl_pp:form(Form, [{encoding, unicode}])), "\n"].

-doc "Removes the generated module and gives its name back.".
-spec unload(instrumentation_map()) -> ok.
unload(#{module := Module}) -> witness_spec_module:unload(Module).

-doc "A diagnostic as text: place, what is wrong, the line with a caret, a hint.".
-spec format_diagnostic(diagnostic()) -> binary().
format_diagnostic(Diagnostic) -> witness_spec_diagnostic:format(Diagnostic).

%% File names need not be Unicode.
name(File) ->
    case unicode:characters_to_binary(filename:flatten(File)) of
        Name when is_binary(Name) -> Name;
        _ -> unicode:characters_to_binary(io_lib:format("~tp", [File]))
    end.

failed(Findings, Name, Source) ->
    Lines = witness_spec_scan:lines(Source),
    {error, lists:sublist(witness_spec_diagnostic:located(Findings, Name, Lines), ?MAX_FINDINGS)}.

%% Scanner, parser and checker; a specification without errors has at least one property.
analyse(Source) ->
    case witness_spec_scan:string(Source) of
        {ok, Tokens} ->
            {Properties, Malformed} = witness_spec_parse:file(Tokens),
            Findings = Malformed ++ witness_spec_check:properties(Properties),
            case {lists:keymember(error, 1, Findings), Properties} of
                {true, _} ->
                    {error, Findings};
                {false, []} ->
                    {error, [witness_spec_diagnostic:error(undefined, empty, "there is no property in this file",
                                "a property is, for example, `with m:f(_) monitor [_ ? stop] ff.`")]};
                {false, _} ->
                    case witness_spec_build:units(Properties) of
                        {ok, Units} -> {ok, Properties, Units, Findings};
                        {error, Errors} -> {error, Errors ++ Findings}
                    end
            end;
        {error, Findings} ->
            {error, Findings}
    end.

entries(Properties) ->
    [#{index => Index, name => Name, line => Line, group => Group, signature => Text,
       action => case Dialect of none -> none; _ -> monitor end} ||
     {Index, #{name := Name, location := {Line, _}, group := Group, text := Text, dialect := Dialect}} <-
         lists:enumerate(Properties)].
