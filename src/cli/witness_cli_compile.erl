-module(witness_cli_compile).
-moduledoc """
`witness compile`: checks specifications without running anything, and prints their properties, what their
sentences and machines expand to, the generated Erlang, or a drawing of their monitors' states.

Errors and warnings go to standard error, or with `--json` as lines to standard output. The exit code is 0 when all
files are correct, and 2 otherwise. With `--try LOG` it also says what the files say of a log (`m:witness_cli_try`,
which has the exit codes then), and with `--watch` it does so again whenever one of the files changes
(`m:witness_cli_watch`). With folders of compiled modules (`--pa`) there are also warnings for signatures with
functions that these modules do not have. Without such folders nothing is known of the system.
""".

-export([run/1, run/2]).

-export_type([options/0]).

-type form() :: expand | erlang | dot | mermaid.

-doc """
The files, which form of them to print instead of a list of their properties, and whether to print JSON, which has all
requested forms.
""".
-type options() :: #{files := [string()], json := boolean(), form() := boolean(), watch := boolean(),
                     pa => [string()], include => [string()], 'try' => string(), atom() => term()}.

-doc "Compiles the files; returns the exit code, or an error in the options.".
-spec run(options()) -> {ok, 0 | 2 | 3} | {error, unicode:chardata()}.
run(Options) -> run(Options, fun witness_cli_watch:wait/0).

-doc "The same, with what waits for the next look at the files (`--watch`).".
-spec run(options(), witness_cli_watch:wait()) -> {ok, 0 | 2 | 3} | {error, unicode:chardata()}.
run(#{json := Json} = Options, Wait) ->
    Include = maps:get(include, Options, []),
    maybe
        ok ?= one_form(Options),
        {ok, Log} ?= log(Options),
        ok ?= without_log(Log, Options),
        {ok, Paths} ?= witness_cli_setup:add_paths(maps:get(pa, Options, [])),
        ok ?= witness_cli_setup:check_folders("--include", Include),
        {ok, Given} ?= witness_cli_call:signatures(Options),
        Exports = witness_event_wrapper:exports(fun witness_remote_exports:of_module/1, maps:get(signatures, Given, [])),
        Known = case Paths of [] -> #{}; _ -> #{exports => Exports} end,
        Out = witness_cli_io:open(case Json of true -> json; false -> text end),
        Round = fun() -> round(Log, Options, Known#{include => Include}, Out) end,
        {ok, watch(Log, Options, Round, Wait, Out)}
    end.

%% A folder is a recording, as for `check`.
log(#{'try' := standard_input, watch := true}) ->
    {error, ~"--watch reads the log again and again, so it cannot be standard input"};
log(#{'try' := standard_input}) -> {ok, standard_input};
log(#{'try' := Name}) -> {ok, {case filelib:is_dir(Name) of true -> recording; false -> file end, Name}};
log(#{}) -> {ok, none}.

%% What says how a log is read.
without_log(none, Options) ->
    Names = witness_cli_check:arguments() ++ [max_slices, slice_idle, max_obligations, max_state, syntax],
    case [Name || Name <- Names, maps:get(Name, Options, false) =/= false] of
        [] -> ok;
        [Name | _] -> {error, [witness_cli_options:name_option([~"option ", atom_to_binary(Name)]), ~" is for a log: name it with --try LOG"]}
    end;
without_log(_, _) -> ok.

watch(_, #{watch := false} = Options, Round, _, _) ->
    _ = is_map_key('try', Options) andalso witness_cli_signal:catch_interrupts(),
    {_, Code} = Round(),
    Code;
watch(Log, #{files := Files, json := Json} = Options, Round, Wait, Out) ->
    ok = witness_cli_signal:catch_interrupts(),
    Watched = fun() ->
        lists:append([witness_cli_watch:sources(File, maps:get(include, Options, [])) || File <- Files])
            ++ [{log, Name} || {_, Name} <- [Log]]
    end,
    First = atomics:new(1, []),
    witness_cli_watch:run(Watched, fun() ->
        IsNext = atomics:add_get(First, 1, 1) > 1,
        witness_cli_io:print(Out, [case witness_cli_io:terminal(stdout) of true -> ~"\e[H\e[2J"; false -> [~"\n" || IsNext] end || not Json]),
        Round()
    end, Wait).

%% An interrupt of a trial ends the watching, too.
round(Log, #{files := Files} = Options, Known, Out) ->
    Header = witness_cli_json:header(node()),
    case lists:max([file(File, Options, Known, Out, Header) || File <- Files]) of
        0 when Log =/= none -> trial(Log, Options, Out, Header);
        Code -> {go_on, Code}
    end.

trial(Log, #{files := Files} = Options, Out, Header) ->
    case witness_cli_try:run(Files, Log, Options) of
        {ok, #{interrupted := Interrupted} = Trial} ->
            witness_cli_io:print(Out, case Options of
                #{json := true} -> witness_cli_json:trial(Trial, Header);
                #{json := false} -> witness_cli_try_text:text(Trial, witness_cli_io:look())
            end),
            _ = [problem(Text) || #{summary := #{refused := Text}} <- [Trial], Text =/= undefined],
            {case Interrupted of true -> stop; false -> go_on end, witness_cli_try:code(Trial)};
        {error, {witness_spec, Diagnostics}} ->
            diagnostics(Diagnostics, Options, Out, Header),
            {go_on, 2};
        {error, {_, _} = Error} ->
            problem(witness_cli_options:name_option(witness:format_error(Error))),
            {go_on, 2};
        {error, Text} ->
            problem(Text),
            {go_on, 2}
    end.

problem(Text) -> witness_cli_io:note([~"witness compile: ", witness_text:clean(Text), $\n]).

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
            _ = [witness_cli_io:print(Out, result(File, Entries, Forms, Options, Header)) || is_shown(Forms, Options)],
            0;
        {error, {witness_spec, Diagnostics}} ->
            diagnostics(Diagnostics, Options, Out, Header),
            2
    end.

%% A trial names the properties itself.
is_shown(Forms, #{'try' := _, json := false}) -> map_size(Forms) > 0;
is_shown(_, _) -> true.

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
