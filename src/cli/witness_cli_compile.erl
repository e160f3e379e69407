-module(witness_cli_compile).
-moduledoc """
`witness compile`: checks specifications without running anything, and shows what they say.

Errors and warnings go to standard error, or with `--json` as lines to standard output. The exit code is 0 when all
files are correct, and 2 otherwise.
""".

-export([run/1]).

-export_type([options/0]).

-doc "The files, whether to print the generated Erlang, and whether to print JSON.".
-type options() :: #{files := [string()], erlang := boolean(), json := boolean()}.

-doc "Compiles the files; the exit code.".
-spec run(options()) -> 0 | 2.
run(#{files := Files, json := Json} = Options) ->
    Out = witness_cli_io:open(case Json of true -> json; false -> text end),
    Header = witness_cli_json:header(),
    lists:max([file(File, Options, Out, Header) || File <- Files]).

file(File, Options, Out, Header) ->
    case compiled(File, Options) of
        {ok, Entries, Erlang, Warnings} ->
            diagnostics(Warnings, Options, Out, Header),
            witness_cli_io:print(Out, result(File, Entries, Erlang, Options, Header)),
            0;
        {error, Diagnostics} ->
            diagnostics(Diagnostics, Options, Out, Header),
            2
    end.

compiled(File, #{erlang := Wanted}) ->
    case witness_spec:compile_file(File) of
        {ok, #{entries := Entries} = Map, Warnings} ->
            ok = witness_spec:unload(Map),
            case Wanted andalso witness_spec:to_erlang(File) of
                false -> {ok, Entries, undefined, Warnings};
                {ok, Erlang} -> {ok, Entries, Erlang, Warnings};
                {error, _} = Error -> Error
            end;
        {error, _} = Error -> Error
    end.

diagnostics(Diagnostics, #{json := true}, Out, Header) ->
    witness_cli_io:print(Out, [witness_cli_json:diagnostic(Diagnostic, Header) || Diagnostic <- Diagnostics]);
diagnostics(Diagnostics, #{json := false}, _, _) ->
    witness_cli_io:note([[string:trim(witness_spec:format_diagnostic(Diagnostic), trailing, "\n"), $\n]
                         || Diagnostic <- Diagnostics]).

result(File, Entries, Erlang, #{json := true}, Header) ->
    witness_cli_json:specification(File, Entries, Erlang, Header);
result(_, _, Erlang, #{erlang := true}, _) -> [string:trim(Erlang, trailing, "\n"), $\n];
result(File, Entries, _, _, _) ->
    Monitors = length([Entry || #{action := monitor} = Entry <- Entries]),
    [witness_cli_text:clean(File), ~": ", witness_cli_text:count(Monitors, ~"property", ~"properties"), $\n,
     [[~"  ", Line, $\n] || Line <- witness_cli_text:columns([row(Entry) || Entry <- Entries])]].

row(#{line := Line, name := Name, signature := Signature} = Entry) ->
    Shown = case Name of undefined -> ~"(no name)"; _ -> witness_cli_text:clean(Name) end,
    [[~"line ", integer_to_binary(Line)], Shown, [~"with ", witness_cli_text:clean(Signature), kind(Entry)]].

kind(#{action := none}) -> ~", not monitored";
kind(#{group := true}) -> ~", with its descendants";
kind(#{}) -> ~"".
