-module(witness_rebar3_plugin_SUITE).
-moduledoc """
The plugin of rebar3 in a project with this checkout in `_checkouts`, as its team would call it, with an empty HOME.
""".

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([run_has_the_exit_codes/1, recordings_are_replayed_and_stepped_through/1, a_search_has_the_code_of_the_project/1,
         signatures_of_the_project_are_used/1,
         wrong_configuration_is_named/1,
         the_rest_of_the_command_line_passes_unchanged/1, ctrl_c_ends_with_the_summary/1]).

-include_lib("stdlib/include/assert.hrl").

suite() -> [{timetrap, {minutes, 10}}].

all() ->
    [run_has_the_exit_codes, recordings_are_replayed_and_stepped_through, a_search_has_the_code_of_the_project,
     signatures_of_the_project_are_used,
     wrong_configuration_is_named,
     the_rest_of_the_command_line_passes_unchanged, ctrl_c_ends_with_the_summary].

init_per_suite(Config) ->
    Root = witness_checkout:root(filename:dirname(proplists:get_value(data_dir, Config))),
    Folder = filename:join(proplists:get_value(priv_dir, Config), "calc"),
    Examples = filename:join(Root, "examples/calculator"),
    Copied = [{filename:join(Examples, Name), filename:join([Folder, To, Name])}
              || {To, Pattern} <- [{"src", "*.erl"}, {"specs", "sum.hml"}], Name <- filelib:wildcard(Pattern, Examples)],
    [begin ok = filelib:ensure_dir(To), {ok, _} = file:copy(From, To) end || {From, To} <- Copied],
    ok = file:write_file(filename:join(Folder, "src/calc.app.src"),
                         ~"{application, calc, [{description, \"A calculator\"}, {vsn, \"1\"}, {applications, [kernel, stdlib]}]}.\n"),
    configure(Folder, ~"[{specs, [\"specs/sum.hml\"]}]"),
    ok = filelib:ensure_path(filename:join(Folder, "_checkouts")),
    ok = file:make_symlink(Root, filename:join(Folder, "_checkouts/witness")),
    [{project, Folder} | Config].

end_per_suite(_) -> ok.

run_has_the_exit_codes(Config) ->
    #{exit := 0, stdout := Holds} = rebar3(["witness", "run", "calculator_demo:main(correct)"], Config),
    contains(Holds, [~"add(1, 2) is 3", ~"OK: nothing was violated."]),
    #{exit := 1, stdout := Violated} = rebar3(["witness", "run", "calculator_demo:main(buggy)"], Config),
    contains(Violated, [~"VIOLATION of answer_is_the_sum (specs/sum.hml:3)"]),
    #{exit := 2, stderr := Wrong} = rebar3(["witness", "run", "--nope"], Config),
    contains(Wrong, [~"witness run: there is no option --nope"]),
    #{exit := 3, stdout := Nothing} = rebar3(["witness", "run", "lists:seq(1, 2)"], Config),
    contains(Nothing, [~"NO RESULT: nothing was monitored."]).

recordings_are_replayed_and_stepped_through(Config) ->
    #{exit := 1} = rebar3(["witness", "record", "--contents", "-o", "a.rec", "calculator_demo:main(buggy)"], Config),
    #{exit := 0, stdout := Replayed} = rebar3(["witness", "replay", "--check", "a.rec"], Config),
    contains(Replayed, [~"IDENTICAL"]),
    #{exit := 0, stdout := Stepped} = rebar3(["witness", "step", "--command", "next", "a.rec"], Config),
    contains(Stepped, [~"begins: calculator_demo:main(buggy)"]),
    #{exit := 1} = rebar3(["witness", "check", "a.rec"], Config),
    ok.

a_search_has_the_code_of_the_project(Config) ->
    #{exit := 1, stdout := Found} = rebar3(["witness", "search", "-o", "found.rec", "calculator_demo:main(buggy)"], Config),
    contains(Found, [~"VIOLATION of answer_is_the_sum (specs/sum.hml:3)", ~"\n  rebar3 witness replay --spec specs/sum.hml ",
                     ~"\n  rebar3 witness step --spec specs/sum.hml "]),
    #{exit := 0, stdout := Passed} = rebar3(["witness", "search", "--schedules", "20", "calculator_demo:main(correct)"], Config),
    contains(Passed, [~"OK: nothing went wrong in 20 schedules"]).

%% The process starts in a function of another module. Without the row there is nothing to monitor.
signatures_of_the_project_are_used(Config) ->
    Folder = proplists:get_value(project, Config),
    ok = file:write_file(filename:join(Folder, "src/cart.erl"), ~"""
        -module(cart).
        -export([pay/1, start/1]).
        pay(Number) ->
            {Pid, Ref} = spawn_monitor(cart, start, [{author, Number}]),
            Pid ! pay,
            receive {'DOWN', Ref, process, _, _} -> ok end.
        start(_) -> receive pay -> ok end.
        """),
    ok = file:write_file(filename:join(Folder, "specs/cart.hml"), ~"cart: with author:start(3)\nover _ ? pay\ncheck [_ ? pay] ff.\n"),
    configure(Folder, ~"[{specs, [\"specs/cart.hml\"]}]"),
    #{exit := 3} = rebar3(["witness", "record", "--contents", "-o", "plain.rec", "cart:pay(3)"], Config),
    #{exit := 3} = rebar3(["witness", "check", "plain.rec"], Config),
    configure(Folder, ~"[{specs, [\"specs/cart.hml\"]}, {signatures, [{cart, start, [{module, args}]}]}]"),
    [begin
         #{exit := 1, stdout := Text} = rebar3(["witness" | Arguments], Config),
         contains(Text, [~"VIOLATION of cart (specs/cart.hml:1)", ~"author:start(3)"])
     end || Arguments <- [["run", "cart:pay(3)"], ["record", "-o", "own.rec", "cart:pay(3)"], ["check", "plain.rec"],
                          ["replay", "--spec", "specs/cart.hml", "plain.rec"]]],
    configure(Folder, ~"[{signatures, [{cart, start, [wrong]}]}]"),
    #{exit := 2, stderr := Error} = rebar3(["witness", "run", "cart:pay(3)"], Config),
    configure(Folder, ~"[{specs, [\"specs/sum.hml\"]}]"),
    contains(Error, [~"rebar3 witness: option witness of rebar.config: signatures: {cart,start,[wrong]}: no argument says where"]).

wrong_configuration_is_named(Config) ->
    Folder = proplists:get_value(project, Config),
    configure(Folder, ~"[{spec, []}]"),
    #{exit := 2, stderr := Error} = rebar3(["witness", "compile"], Config),
    configure(Folder, ~"[{specs, [\"specs/sum.hml\"]}]"),
    contains(Error, [~"rebar3 witness: option witness of rebar.config: there is no key spec: there are specs, signatures, run"]),
    #{exit := 0, stdout := Text} = rebar3(["witness", "compile"], Config),
    contains(Text, [~"specs/sum.hml: 1 property"]).

the_rest_of_the_command_line_passes_unchanged(Config) ->
    #{exit := 0, stdout := Overview} = rebar3(["witness"], Config),
    contains(Overview, [~"Usage: witness COMMAND ..."]),
    #{exit := 0, stdout := Help} = rebar3(["witness", "run", "--help"], Config),
    contains(Help, [~"--must-decide"]),
    #{exit := 2, stderr := Error} = rebar3(["witness", "größe"], Config),
    contains(Error, [~"witness: there is no command 'größe'"]),
    #{exit := 0, stdout := Json} = rebar3(["witness", "run", "--json", "calculator_demo:main(correct)"], Config),
    [#{~"type" := ~"verdict"}, #{~"type" := ~"summary"}] = [json:decode(Line) || Line <- binary:split(Json, ~"\n", [global, trim])].

ctrl_c_ends_with_the_summary(Config) ->
    Line = "stty -a > before; rebar3 witness run 'timer:sleep(infinity)'; code=$?; stty -a > after; cmp before after && exit $code",
    Port = witness_command:start([{cd, proplists:get_value(project, Config)} | Config], "/dev/null", "env",
                                 variables(Config) ++ ["SHELL=" ++ os:find_executable("bash"), "script", "-qec", Line, "/dev/null"]),
    Shown = witness_command:until(Port, ~"nothing happens", ~""),
    true = port_command(Port, [3]),
    {3, Text} = witness_command:collect(Port, Shown),
    contains(Text, [~"interrupted: the run comes to its end", ~"watched "]),
    ?assertEqual(nomatch, binary:match(Text, ~"BREAK")).

configure(Folder, Options) ->
    ok = file:write_file(filename:join(Folder, "rebar.config"),
                         [~"{erl_opts, [debug_info]}.\n{project_plugins, [witness]}.\n{witness, ", Options, ~"}.\n"]).

rebar3(Arguments, Config) ->
    witness_command:run([{cd, proplists:get_value(project, Config)} | Config], "env", variables(Config) ++ ["rebar3" | Arguments]).

%% What is woven once is not woven again. rebar3 prints only errors of its own.
variables(Config) ->
    Home = filename:join(proplists:get_value(priv_dir, Config), "home"),
    ok = filelib:ensure_path(Home),
    Cache = os:getenv("WITNESS_CACHE", filename:join(os:getenv("XDG_CACHE_HOME", os:getenv("HOME", "") ++ "/.cache"), "witness")),
    lists:append([["-u", Name] || Name <- ["ERL_LIBS", "ERL_FLAGS", "REBAR_PROFILE", "REBAR_BASE_DIR"]])
        ++ ["HOME=" ++ Home, "WITNESS_CACHE=" ++ Cache, "QUIET=1"].

contains(Text, Words) -> witness_command:contains(Text, Words).
