-module(witness_spec).
-moduledoc """
The specification language: compiles `.hml` files to monitors.

A file has properties: which processes, and a formula of Hennessy-Milner logic with recursion and data over the events
of one process.

```text
reply_is_sum: with calc_server:loop(_)
monitor
  and([_ <- _, calc_server:loop(_)]
    max(X. and([_ ? {_, {add, A, B}}]
      and([_:_ ! {ok, R} when R =/= A + B] ff,
          [_:_ ! {ok, R} when R =:= A + B] X)))).
```

A whole file is one instrumentation map. It becomes one module that implements the behaviour `witness_monitor`, with one
monitor for each property (its *index* is the argument of `init/3`). The module also exports `match/1`: the indices of all
properties with a signature pattern that matches a signature, including properties with `none`.

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

Formulas are over the linear time of one process. `[a] f` holds if the next event matches `a` and then `f` holds, or if it does
not match; `<a> f` holds if it matches and then `f` holds. At the complete end of a trace `[a] f` holds and `<a> f` does
not. `yes` and `no` are reached as soon as the formula simplifies to `tt` or `ff`, and are irrevocable; what is undecided when
observation stops is `inconclusive`.

The information with a verdict is a map:

| key | value |
|---|---|
| `line`, `column` | the deciding action, or the formula if no single action decided |
| `action` | the text of that action; it decided by matching, or by not matching |
| `matched` | whether that action decided by matching |
| `why` | what the sentence or the machine says where that action violates it |
| `bindings` | variables that are known there, with their values |
| `vacuous` | whether nothing came before this `yes` that the property is about: docs/internals/semantics.md, *Vacuity* |
| `reason` | why it is `inconclusive` |

Keys with unknown values are missing.

## Errors

Errors and warnings are lists of `t:diagnostic/0`, which `format_diagnostic/1` prints as compilers do. Any input
is either compiled or an error: specifications are data. They run no code, since only patterns and guards
become part of the module, and their size and the number of their names are limited before any atoms are created.
""".

-export([compile_file/1, compile_file/2, compile_string/2, compile_string/3, to_object/3, to_erlang/1, to_erlang/2,
         to_core/2, to_drawing/3, actions/2, unload/1, format_diagnostic/1, format_error/1]).
-export_type([diagnostic/0, entry/0, error/0, instrumentation_map/0, options/0]).

-doc "An error or a warning with its place; see `m:witness_spec_diagnostic`.".
-type diagnostic() :: witness_spec_diagnostic:diagnostic().

-doc "What is wrong with a specification. The reason has its errors, and its warnings too.".
-type error() :: {?MODULE, [diagnostic(), ...]}.

-doc """
A property of a file. `action` is `none` if it names a signature only to cut it out of a group. `all`: it has no `with`,
and its one monitor reads all processes; `signature` says so in words. The values of the variables in `per` choose the slice.
`receives`: which messages `_ ? M` is about, if the property says it. `functions` are those of which calls or returns are its events.
`names` is what its signature patterns say without arguments, `among` those of a property about some of all processes.
""".
-type entry() :: #{index := pos_integer(),
                   name := binary() | undefined,
                   line := pos_integer(),
                   all := boolean(),
                   group := boolean(),
                   per := [binary()],
                   receives := any | taken | delivered,
                   functions := [mfa()],
                   action := monitor | none,
                   signature := binary(),
                   names := [witness_spec_action:name(), ...],
                   among => [witness_spec_action:name(), ...]}.

-doc "A compiled file with its lines.".
-type instrumentation_map() :: #{file := binary(), module := module(), entries := [entry()], lines := tuple()}.

-doc """
The options of compilation; each key may be missing:

- `include`: folders where `-include` looks after that of the specification itself; none by default;
- `max_obligations`: limit of the formulas that a monitor must satisfy at a time, 1000 by default; with more it ends
  `inconclusive`;
- `max_state`: limit of the words that the values of parameters of a formula take, and of those of the windows of its `let`s, 10,000 by
  default; with more it ends `inconclusive`;
- `central`: whether one tracer sees all processes (default true); otherwise properties without `with` are errors;
- `receives`: what the source of the events sees of messages that a process receives, `taken` or `delivered`; a property that wants
  the other is an error. Without it, both are accepted;
- `no_functions`: why calls and returns of functions cannot be seen, and what to do; a property about some is an error;
- `attach`: whether it is for processes that were running already: what needs their initial arguments is an error;
- `clocks`: by how many nanoseconds the clocks of processes may differ, 0 by default (`m:witness_spec_clocks`); what compares times in other
  ways than `within` and `during` is an error then;
- `exports`: the functions of modules. With it, a signature with a function that its module does not have gets a
  warning, and so do modules that are unknown or cannot be read.

An unknown option, or one with a wrong value, raises `{bad_option, Key}`.
""".
-type options() :: #{include => [file:name_all()],
                     max_obligations => pos_integer(),
                     max_state => pos_integer(),
                     central => boolean(),
                     attach => boolean(),
                     receives => taken | delivered,
                     no_functions => {unicode:chardata(), unicode:chardata()},
                     clocks => non_neg_integer(),
                     exports => witness_spec_export:exports()}.

-define(MAX_FINDINGS, 50).

-doc #{equiv => compile_file(File, #{})}.
-spec compile_file(file:name_all()) -> {ok, instrumentation_map(), [diagnostic()]} | {error, error()}.
compile_file(File) -> compile_file(File, #{}).

-doc "Compiles a file and loads the generated module. The result has the warnings.".
-spec compile_file(file:name_all(), options()) ->
    {ok, instrumentation_map(), [diagnostic()]} | {error, error()}.
compile_file(File, Options) -> from_file(File, Options, fun load/3).

-doc #{equiv => compile_string(Name, Source, #{})}.
-spec compile_string(Name :: binary(), Source :: binary()) ->
    {ok, instrumentation_map(), [diagnostic()]} | {error, error()}.
compile_string(Name, Source) -> compile_string(Name, Source, #{}).

-doc """
Compiles a specification that is not in a file. `Name` replaces the file name in messages; `-include` looks only in the
folders of the options.
""".
-spec compile_string(Name :: binary(), Source :: binary(), options()) ->
    {ok, instrumentation_map(), [diagnostic()]} | {error, error()}.
compile_string(Name, Source, Options) -> from_source(Name, Source, [], options(Options), fun load/3).

load(Properties, Units, Options) ->
    case witness_spec_module:load(fun(Module) -> witness_spec_build:object(Module, Units, Options) end) of
        {ok, Module} ->
            {ok, #{module => Module, entries => entries(Properties)}};
        {error, pool_exhausted} ->
            {error, [witness_spec_diagnostic:error(undefined, pool_exhausted, "too many specifications are loaded",
                                                   "witness_spec:unload/1 gives the name of a module back")]};
        {error, Findings} ->
            {error, Findings}
    end.

-doc "The object code of the generated module, under the given name. Nothing is loaded.".
-spec to_object(file:name_all(), module(), options()) ->
    {ok, {instrumentation_map(), Object :: binary()}, [diagnostic()]} | {error, error()}.
to_object(File, Module, Options) ->
    Made = from_file(File, Options, fun(Properties, Units, Checked) ->
        maybe
            {ok, Object} ?= witness_spec_build:object(Module, Units, Checked),
            {ok, #{module => Module, entries => entries(Properties), object => Object}}
        end
    end),
    maybe
        {ok, #{object := Object} = Map, Diagnostics} ?= Made,
        {ok, {maps:remove(object, Map), Object}, Diagnostics}
    end.

-doc #{equiv => to_erlang(File, #{})}.
-spec to_erlang(file:name_all()) -> {ok, iodata()} | {error, error()}.
to_erlang(File) -> to_erlang(File, #{}).

-doc "The generated module as Erlang source. Nothing is loaded.".
-spec to_erlang(file:name_all(), options()) -> {ok, iodata()} | {error, error()}.
to_erlang(File, Options) ->
    text(from_file(File, Options, fun(_, Units, Checked) ->
        maybe
            {ok, _} ?= witness_spec_build:object(witness_spec_code_0, Units, Checked),
            {ok, #{text => [print(Part) || Part <- witness_spec_build:forms(witness_spec_code_0, Units, Checked)]}}
        end
    end)).

-doc """
The properties with what their sentences and machines expand to, as text of the language. Of any other property only the place is told.
Nothing is loaded.
""".
-spec to_core(file:name_all(), options()) -> {ok, iodata()} | {error, error()}.
to_core(File, Options) ->
    text(from_file(File, Options, fun(Properties, _, _) -> {ok, #{text => lists:join("\n", [core(P) || P <- Properties])}} end)).

core(#{core := Core}) -> [Core, "\n"];
core(#{location := {Line, _}}) -> ["%% The property of line ", integer_to_list(Line), " has no sentence and no machine.\n"].

-doc "The states of the monitors, or of machines, as a drawing, without `clocks`. Nothing is loaded.".
-spec to_drawing(file:name_all(), Format :: dot | mermaid, options()) -> {ok, iodata()} | {error, error()}.
to_drawing(File, Format, Options) ->
    text(from_file(File, Options#{clocks => 0}, fun(Properties, Units, _) ->
        Machines = #{Index => witness_spec_machine_draw:unit(Index, Machine)
                     || {Index, #{machine := Machine}} <- lists:enumerate(Properties)},
        {ok, #{text => witness_spec_draw:draw(Format, entries(Properties),
                                              [maps:get(Index, Machines, Unit) || #{index := Index} = Unit <- Units])}}
    end)).

-doc "The properties with their actions (`witness_spec_explain:actions/1`). Nothing is loaded.".
-spec actions(file:name_all(), options()) -> {ok, [{entry(), [map()]}]} | {error, error()}.
actions(File, Options) ->
    Made = from_file(File, Options, fun(Properties, Units, _) ->
        {ok, #{actions => lists:zip(entries(Properties), [witness_spec_explain:actions(Unit) || Unit <- Units])}}
    end),
    case Made of
        {ok, #{actions := Actions}, _} -> {ok, Actions};
        {error, _} = Error -> Error
    end.

text({ok, #{text := Text}, _}) -> {ok, Text};
text({error, _} = Error) -> Error.

print({Comment, Form}) ->
    [[["%% ", Comment, "\n"] || Comment =/= <<>>],
     unicode:characters_to_binary(erl_pp:form(Form, [{encoding, unicode}])), "\n"].

-doc "Removes the generated module and releases its name.".
-spec unload(instrumentation_map()) -> ok.
unload(#{module := Module}) -> witness_spec_module:unload(Module).

-doc "A diagnostic as text: place, what is wrong, the line with a caret, a hint.".
-spec format_diagnostic(diagnostic()) -> binary().
format_diagnostic(Diagnostic) -> witness_spec_diagnostic:format(Diagnostic).

-doc "All diagnostics of an error as text.".
-spec format_error([diagnostic()]) -> unicode:chardata().
format_error(Diagnostics) -> lists:join("\n", [format_diagnostic(D) || D <- Diagnostics]).

%% File names need not be Unicode.
name(File) ->
    case unicode:characters_to_binary(filename:flatten(File)) of
        Name when is_binary(Name) -> Name;
        _ -> unicode:characters_to_binary(io_lib:format("~tp", [File]))
    end.

options(Options) when is_map(Options) ->
    maps:foreach(fun(Key, Value) -> option(Key, Value) orelse error({bad_option, Key}) end, Options),
    maps:merge(#{include => [], max_obligations => 1000, max_state => 10_000, attach => false, central => true, clocks => 0},
               Options).

option(include, Folders) -> is_list(Folders) andalso lists:all(fun(F) -> is_list(F) orelse is_binary(F) end, Folders);
option(Limit, Count) when Limit =:= max_obligations; Limit =:= max_state -> is_integer(Count) andalso Count > 0;
option(Key, Value) when Key =:= attach; Key =:= central -> is_boolean(Value);
option(receives, Receives) -> Receives =:= taken orelse Receives =:= delivered;
option(clocks, Nanoseconds) -> is_integer(Nanoseconds) andalso Nanoseconds >= 0;
option(no_functions, Why) -> tuple_size(Why) =:= 2;
option(exports, Exports) -> is_function(Exports, 1);
option(_, _) -> false.

from_file(File, Options, Use) ->
    Checked = options(Options),
    case witness_spec_scan:file(File) of
        {ok, Source} -> from_source(name(File), Source, [filename:dirname(File)], Checked, Use);
        {error, Finding} -> {error, {?MODULE, witness_spec_diagnostic:locate([Finding], name(File), [])}}
    end.

%% The result of `Use` for a specification without errors, as a map.
from_source(Name, Source, Folders, #{include := Include} = Options, Use) ->
    Lines = witness_spec_scan:lines(Source),
    maybe
        {ok, Properties, Units, Warnings} ?= analyse(Source, Options#{include := Folders ++ Include}),
        {ok, Made} ?= Use(Properties, Units, Options),
        {ok, Made#{file => Name, lines => list_to_tuple(Lines)},
         limit_warnings(witness_spec_diagnostic:locate(Warnings, Name, Lines), Name)}
    else
        {error, Findings} ->
            {error, {?MODULE, shorten(witness_spec_diagnostic:locate(Findings, Name, Lines))}}
    end.

%% Each warning has its line, so a small file with a long line might have very large warnings.
limit_warnings(Warnings, Name) when length(Warnings) > ?MAX_FINDINGS ->
    {Kept, Others} = lists:split(?MAX_FINDINGS, Warnings),
    Text = io_lib:format("there are ~b warnings more, which are not shown", [length(Others)]),
    Kept ++ witness_spec_diagnostic:locate([witness_spec_diagnostic:warning(undefined, more, Text, undefined)], Name, []);
limit_warnings(Warnings, _) -> Warnings.

%% Keeps errors rather than warnings.
shorten(Diagnostics) ->
    {Errors, Warnings} = lists:partition(fun(#{severity := Severity}) -> Severity =:= error end, Diagnostics),
    Kept = lists:sublist(Errors ++ Warnings, ?MAX_FINDINGS),
    [Diagnostic || Diagnostic <- Diagnostics, lists:member(Diagnostic, Kept)].

%% Scanner, parser and checker; a specification without errors has at least one property.
analyse(Source, #{include := Folders, attach := Attach, central := Central, clocks := Clocks} = Options) ->
    maybe
        {ok, Tokens} ?= witness_spec_scan:string(Source),
        {Records, Rest, Undeclared} = witness_spec_record:declarations(Tokens, Folders),
        {Parsed, Malformed} = witness_spec_parse:file(Rest, unicode:characters_to_list(Source)),
        {Written, Uses, Undefined} = witness_spec_define:expand(Parsed, Rest),
        %% If a declaration is wrong, names that are unknown because of it are not reported.
        {Plain, Unknown} = case Undeclared of [] -> witness_spec_record:expand(Written, Records); _ -> {[], []} end,
        {Expanded, Misused} = witness_spec_otp:expand(Plain),
        Properties = witness_spec_let:name_values(Expanded),
        Checked = witness_spec_check:properties(Properties, Options),
        Unattachable = case Attach of true -> witness_spec_attach:properties(Properties); false -> [] end,
        Apart = case Central of true -> []; false -> witness_spec_check:check_apart(Properties) end,
        Unseen = case Options of
            #{receives := Receives} -> witness_spec_check:check_receives(Properties, Receives);
            #{} -> []
        end,
        Untraced = case Options of
            #{no_functions := Why} -> witness_spec_check:check_functions(Properties, Why);
            #{} -> []
        end,
        Unordered = case Clocks of 0 -> []; _ -> witness_spec_clocks:check(Properties) end,
        %% What uses a definition may be in a property with an error.
        Misnamed = [Finding || {_, _, Code, _, _} = Finding <- Undefined, Malformed =:= [] orelse Code =/= unused_definition],
        Findings = Undeclared ++ Malformed ++ Misnamed
            ++ witness_spec_define:with_uses(Unknown ++ Misused ++ Checked ++ Unattachable ++ Apart ++ Unseen ++ Untraced
                                             ++ Unordered, Uses),
        ok ?= check_sound(Properties, Findings),
        Whole = witness_spec_else:properties(witness_spec_let:put_values(Properties)),
        {ok, Units} ?= witness_spec_build:units(case Clocks of 0 -> Whole; _ -> witness_spec_clocks:properties(Whole, Clocks) end),
        {ok, Properties, Units, Findings}
    end.

check_sound(Properties, Findings) ->
    case lists:keymember(error, 1, Findings) of
        true ->
            {error, Findings};
        false when Properties =:= [] ->
            {error, [witness_spec_diagnostic:error(undefined, empty, "there is no property in this file",
                        "a property is, for example, `with m:f(_) monitor [_ <- _, _] [_ ? stop] ff.`")]};
        false ->
            ok
    end.

entries(Properties) ->
    [add_among(Among, #{index => Index, name => Name, line => Line, all => All, group => Group andalso not All,
       per => [atom_to_binary(V) || V <- Per], receives => case Receives of {Word, _} -> Word; any -> any end,
       functions => functions(Over), signature => Text, action => case Dialect of none -> none; _ -> monitor end,
       names => lists:usort([witness_spec_action:name(Signature) || Signature <- Signatures])}) ||
     {Index, #{name := Name, location := {Line, _}, among := Among, all := All, group := Group, per := Per, over := Over,
               receives := Receives, text := Text, dialect := Dialect, signatures := Signatures}} <- lists:enumerate(Properties)].

functions(all) -> [];
functions(Over) -> lists:usort([Function || Action <- Over, {_, Function} <- [witness_spec_action:called(Action)]]).

add_among(all, Entry) -> Entry;
add_among(Among, Entry) -> Entry#{among => [witness_spec_action:name(Signature) || Signature <- Among]}.
