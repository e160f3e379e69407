-module(witness_cli_compile).
-moduledoc """
`witness compile`: checks specifications without running anything, and prints their properties, what their
sentences expand to, the generated Erlang, or a drawing of their monitors' states.

Errors and warnings go to standard error, or with `--json` as lines to standard output. The exit code is 0 when all
files are correct, and 2 otherwise. With folders of compiled modules (`--pa`) there are also warnings for signatures
with functions that these modules do not have. Without such folders nothing is known of the system.
""".

-export([run/1]).

-export_type([options/0]).

-type form() :: expand | erlang | dot | mermaid.

-doc """
The files, which form of them to print instead of a list of their properties, and whether to print JSON, which has all
requested forms.
""".
-type options() :: #{files := [string()], json := boolean(), form() := boolean(),
                     pa => [string()], include => [string()]}.

-doc "Compiles the files; returns the exit code, or an error in the options.".
-spec run(options()) -> {ok, 0 | 2} | {error, unicode:chardata()}.
run(#{files := Files, json := Json} = Options) ->
    Include = maps:get(include, Options, []),
    maybe
        ok ?= one_form(Options),
        {ok, Paths} ?= witness_cli_setup:add_paths(maps:get(pa, Options, [])),
        ok ?= witness_cli_setup:check_folders("--include", Include),
        {ok, Given} ?= witness_cli_call:signatures(Options),
        Exports = witness_event_wrapper:exports(fun witness_remote_exports:of_module/1, maps:get(signatures, Given, [])),
        Known = case Paths of [] -> #{}; _ -> #{exports => Exports} end,
        Out = witness_cli_io:open(case Json of true -> json; false -> text end),
        Header = witness_cli_json:header(node()),
        {ok, lists:max([file(File, Options, Known#{include => Include}, Out, Header) || File <- Files])}
    end.

%% A form is for another program, which reads one thing at a time.
one_form(#{json := true}) -> ok;
one_form(#{files := Files} = Options) ->
    case forms(Options) of
        [_, _ | _] = Forms ->
            Named = [option(Form) || Form <- Forms],
            {error, [witness_text:list(Named), ~" exclude each other, except with --json"]};
        [Form] when Form =:= dot orelse Form =:= mermaid, length(Files) > 1 -> {error, [option(Form), ~" draws one file"]};
        _ -> ok
    end.

forms(Options) -> [Form || Form <- [expand, erlang, dot, mermaid], maps:get(Form, Options)].

option(Form) -> [~"--", atom_to_binary(Form)].

file(File, Options, Given, Out, Header) ->
    case compiled(File, forms(Options), Given) of
        {ok, Entries, Forms, Warnings} ->
            diagnostics(Warnings, Options, Out, Header),
            witness_cli_io:print(Out, result(File, Entries, Forms, Options, Header)),
            0;
        {error, {witness_spec, Diagnostics}} ->
            diagnostics(Diagnostics, Options, Out, Header),
            2
    end.

compiled(File, Wanted, Given) ->
    maybe
        {ok, #{entries := Entries} = Map, Warnings} ?= witness_spec:compile_file(File, Given),
        ok = witness_spec:unload(Map),
        {ok, Forms} ?= forms(Wanted, File, Given, #{}),
        {ok, Entries, Forms, Warnings}
    end.

forms([], _, _, Forms) -> {ok, Forms};
forms([Form | Others], File, Given, Forms) ->
    Result = case Form of
        expand -> witness_spec:to_core(File, Given);
        erlang -> witness_spec:to_erlang(File, Given);
        Drawing -> witness_spec:to_drawing(File, Drawing, Given)
    end,
    case Result of
        {ok, Text} -> forms(Others, File, Given, Forms#{Form => Text});
        {error, _} = Error -> Error
    end.

diagnostics(Diagnostics, #{json := true}, Out, Header) ->
    witness_cli_io:print(Out, [witness_cli_json:diagnostic(Diagnostic, Header) || Diagnostic <- Diagnostics]);
diagnostics(Diagnostics, #{json := false}, _, _) ->
    witness_cli_io:note([[string:trim(witness_spec:format_diagnostic(Diagnostic), trailing, "\n"), $\n]
                         || Diagnostic <- Diagnostics]).

result(File, Entries, Forms, #{json := true}, Header) ->
    witness_cli_json:specification(File, Entries, Forms, Header);
result(_, _, Forms, _, _) when map_size(Forms) > 0 ->
    [[string:trim(Text, trailing, "\n"), $\n] || Text <- maps:values(Forms)];
result(File, Entries, _, _, _) ->
    Monitors = length([Entry || #{action := monitor} = Entry <- Entries]),
    [witness_text:clean(File), ~": ", witness_text:count(Monitors, ~"property", ~"properties"), $\n,
     [[~"  ", Line, $\n] || Line <- witness_text:columns([row(Entry) || Entry <- Entries])]].

row(#{line := Line, name := Name, signature := Signature} = Entry) ->
    Shown = case Name of undefined -> ~"(no name)"; _ -> witness_text:clean(Name) end,
    [[~"line ", integer_to_binary(Line)], Shown,
     [whom(Entry), witness_text:clean(Signature), kind(Entry), per(Entry)]].

whom(#{all := true}) -> ~"";
whom(#{}) -> ~"with ".

kind(#{action := none}) -> ~", not monitored";
kind(#{group := true}) -> ~", with its descendants";
kind(#{}) -> ~"".

per(#{per := []}) -> ~"";
per(#{per := Variables}) -> [~", for each value of ", lists:join(~", ", Variables)].
