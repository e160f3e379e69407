-module('Elixir.Mix.Tasks.Compile.Witness').
-moduledoc """
A compiler of Mix, which weaves a project for inline monitoring when it is compiled (`m:witness_inline`).

```elixir
def project do
  [app: :shop, version: "0.1.0", deps: deps(),
   compilers: Mix.compilers() ++ [:witness],
   witness: [specs: ["specs/shop.hml"]]]
end
```

It runs after the compilers that precede it in the list, and weaves every module of the project, of Elixir and of Erlang.
A woven module stays as it is, until it is compiled again or the specifications name other functions of it.

The options under `witness` are those of `m:witness_inline`: `specs`, `include`, `entries`. Relative file names start at
the folder of the project. Wrong options are errors of the compiler.
""".

%% Written in Erlang, as `Witness.Case' is. Modules of Elixir are called through a variable.
%% In an umbrella each of its projects is compiled by itself.
-define(ATTRIBUTES, [{recursive, [true]}, {shortdoc, [~"Weaves the project for inline monitoring"]}]).
-include("task/witness_task.hrl").

-doc "What Mix calls.".
-spec run([binary()]) -> {ok | noop | error, [map()]}.
run(_) ->
    Project = 'Elixir.Mix.Project',
    Given = proplists:get_value(witness, Project:config(), []),
    Files = filelib:wildcard(filename:join(binary_to_list(Project:compile_path()), "*.beam")),
    case weave_all(Files, maps:from_list(Given)) of
        {error, Texts} ->
            Shell = shell(),
            [Shell:error(Text) || {_, Text} <- Texts],
            {error, [diagnostic(File, Text) || {File, Text} <- Texts]};
        0 -> {noop, []};
        Woven ->
            Shell = shell(),
            Shell:info(unicode:characters_to_binary(io_lib:format("Woven for inline monitoring: ~b modules", [Woven]))),
            {ok, []}
    end.

shell() ->
    Mix = 'Elixir.Mix',
    Mix:shell().

%% The number of woven modules, or the first error. An error in a specification is the same for each file.
weave_all(Files, Options) ->
    lists:foldl(fun(_, {error, _} = Error) -> Error;
                   (File, Count) ->
                       case witness_inline_object:weave(File, Options) of
                           {ok, woven, _} -> Count + 1;
                           {ok, same, _} -> Count;
                           {error, Reason} -> {error, texts(File, Reason)}
                       end
                end, 0, Files).

texts(_, {compile, Errors}) ->
    [{list_to_binary(File), text([File, format_place(Place), ": ", Module:format_error(Reason)])}
     || {File, Found} <- Errors, {Place, Module, Reason} <- Found];
texts(File, {weave, Reason}) -> [{list_to_binary(File), text([File, ": ", witness_weave:format_error(Reason)])}];
texts(_, {write, File, Reason}) -> [{list_to_binary(File), text([File, ": ", file:format_error(Reason)])}].

format_place(none) -> "";
format_place({Line, Column}) -> io_lib:format(":~b:~b", [Line, Column]);
format_place(Line) -> io_lib:format(":~b", [Line]).

text(Text) -> unicode:characters_to_binary(Text).

diagnostic(File, Text) ->
    #{'__struct__' => 'Elixir.Mix.Task.Compiler.Diagnostic', file => File, source => File, severity => error,
      message => Text, position => 0, compiler_name => ~"witness", span => nil, details => nil, stacktrace => []}.
