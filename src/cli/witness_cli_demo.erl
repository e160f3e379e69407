-module(witness_cli_demo).
-moduledoc """
`witness demo`: a bug of a real system, found and shown.

The system is `examples/http_service`, a web service that sells seats, and `http_service_demo:main/0` sends it HTTP
requests. The demonstration compiles it in memory and runs it exactly as `witness run` would, with two specifications:
`bug.hml`, which the service violates when requests race, and `holds.hml`, which it satisfies. The demonstration succeeds if
the run finds precisely this.
""".

-export([run/1]).

-define(EXAMPLE, "examples/http_service").
-define(BUG, "bug.hml").
-define(HOLDS, "holds.hml").

-doc "Runs the demonstration; returns 0 if it has found the expected result.".
-spec run(#{json := boolean(), _ => _}) -> 0 | 3.
run(#{json := Json}) ->
    Out = witness_cli_io:open(text),
    Say = case Json of
        true -> fun witness_cli_io:note/1;
        false -> fun(Text) -> witness_cli_io:print(Out, Text) end
    end,
    case example() of
        {ok, Folder} ->
            case compile(Folder) of
                ok -> show(Folder, Json, Say);
                {error, Problem} -> failed(Problem)
            end;
        error -> failed("the folder " ?EXAMPLE " is missing: the demonstration needs a checkout of Witness")
    end.

failed(Problem) ->
    witness_cli_io:note([~"witness demo: ", Problem, $\n]),
    3.

show(Folder, Json, Say) ->
    Say(introduction(Folder)),
    Self = self(),
    Found = make_ref(),
    Options = #{start => #{system => {http_service_demo, main, []}, scope => node,
                           specs => [filename:join(Folder, File) || File <- [?BUG, ?HOLDS]]},
                json => Json, for => infinity, timeout => 60_000,
                on_verdict => fun(#{verdict := Verdict, spec := Spec}) -> Self ! {Found, Verdict, Spec} end},
    case witness_cli_run:run(Options) of
        {ok, Code} ->
            case {Code, lists:usort([file(Spec) || {no, Spec} <- take_verdicts(Found)])} of
                {1, [?BUG]} -> Say(conclusion()), 0;
                {_, Violated} ->
                    %% A run that cannot write its output is broken off.
                    case witness_cli_io:wait_for_delivery() of
                        delivered -> failed(unexpected(Violated));
                        {lost, _} -> 3
                    end
            end;
        {error, Error} -> failed(witness:format_error(Error))
    end.

%% The run has sent every verdict before it ended.
take_verdicts(Found) ->
    receive
        {Found, Verdict, Spec} -> [{Verdict, Spec} | take_verdicts(Found)]
    after 0 -> []
    end.

%% `path/file:line` without path and line.
file(Spec) -> filename:basename(unicode:characters_to_list(hd(string:split(Spec, ":", trailing)))).

unexpected([]) -> ~"the bug was not found, which is a fault of Witness or of this machine's timing: please report it";
unexpected(Files) -> [~"violations were found where none should be, or the run had a fault; violated: ", lists:join(~", ", Files)].

introduction(Folder) ->
    {ok, Property} = file:read_file(filename:join(Folder, ?BUG)),
    [~"""
     A small web service sells seats. Booking after booking, every seat is sold once: its tests pass.
     Now requests come in at the same time, and Witness watches the processes of the service.


     """,
     "The property, from " ?EXAMPLE "/" ?BUG ":\n\n",
     [[~"    ", witness_text:clean(Line), $\n] || Line <- string:split(string:trim(Property), ~"\n", all)],
     "\nThe run:\n\n"
     "    bin/witness run --spec " ?EXAMPLE "/" ?BUG " --spec " ?EXAMPLE "/" ?HOLDS " 'http_service_demo:main()'\n\n"].

conclusion() ->
    ~"""

    That is the bug. Read the chart from the top: who asked the server for what, what it answered, and which message broke the
    property. Each worker did the right things in the right order; the fault is between two of them.

    To go on:
      examples/http_service/README.md   the service, and how to repair it
      bin/witness run --help            watch a system of your own
      bin/witness compile FILE.hml      check a specification


    """.

%% The example is in the checkout, above the source of this module or above its compiled file.
example() ->
    Source = proplists:get_value(source, ?MODULE:module_info(compile), ""),
    find_above([filename:dirname(Source), filename:dirname(code:which(?MODULE))]).

find_above([]) -> error;
find_above([Folder | Others]) ->
    Example = filename:join(Folder, ?EXAMPLE),
    case {filelib:is_dir(Example), filename:dirname(Folder)} of
        {true, _} -> {ok, shorten(Example)};
        {false, Folder} -> find_above(Others);
        {false, Parent} -> find_above([Parent | Others])
    end.

%% A relative path, if the command is run in the checkout.
shorten(Example) ->
    case file:get_cwd() of
        {ok, Current} ->
            case string:prefix(Example, Current ++ "/") of
                nomatch -> Example;
                Relative -> Relative
            end;
        {error, _} -> Example
    end.

compile(Folder) ->
    Files = filelib:wildcard(filename:join(Folder, "*.erl")),
    Results = [{File, compile:file(File, [binary, debug_info, return_errors])} || File <- Files],
    case [{File, Errors} || {File, {error, Errors, _}} <- Results] of
        [] ->
            lists:foreach(fun load/1, Results);
        [{File, Errors} | _] ->
            {error, [File, ~" does not compile: ", witness_event:format_term(Errors, 400)]}
    end.

load({File, {ok, Module, Code}}) ->
    {module, Module} = code:load_binary(Module, File, Code).
