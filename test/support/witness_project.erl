-module(witness_project).
-moduledoc """
Projects of rebar3 and Mix that use Witness, for suites: copies of examples, built and run as their teams would do it,
in processes of the operating system.
""".

-export([prepare/3, run/4]).

-define(RUN_MS, 240_000).

-doc """
Copies the `erlang` or the `elixir` project of a folder of examples. Each builds Witness for itself, from the sources
of this checkout.
""".
prepare(erlang, Examples, Config) ->
    Folder = copied("erlang", Examples, Config),
    Checkout = filename:join(Folder, "_checkouts/witness"),
    ok = filelib:ensure_dir(Checkout),
    ok = file:make_symlink(proplists:get_value(root, Config), Checkout),
    [{project, Folder} | Config];
prepare(elixir, Examples, Config) ->
    case os:find_executable("mix") of
        false -> {skip, "there is no mix on the path"};
        _ ->
            Folder = copied("elixir", Examples, Config),
            Mix = filename:join(Folder, "mix.exs"),
            {ok, Text} = file:read_file(Mix),
            Root = io_lib:format("path: ~tp", [proplists:get_value(root, Config)]),
            ok = file:write_file(Mix, re:replace(Text, ~"path: \"[./]+\"", Root, [unicode])),
            [{project, Folder} | Config]
    end.

copied(Name, Examples, Config) ->
    From = filename:join([proplists:get_value(root, Config), Examples, Name]),
    %% Suites share this folder.
    To = filename:join([proplists:get_value(priv_dir, Config), Examples, Name]),
    Files = ["rebar.config", "mix.exs"]
        ++ [filename:join(Folder, File) || Folder <- ["src", "lib", "test", "specs"],
                                           {ok, Inside} <- [file:list_dir(filename:join(From, Folder))],
                                           File <- Inside],
    [begin
         ok = filelib:ensure_dir(filename:join(To, File)),
         {ok, _} = file:copy(filename:join(From, File), filename:join(To, File))
     end || File <- Files, filelib:is_regular(filename:join(From, File))],
    To.

-doc "Runs a program in the project: its exit code and what it has printed.".
-spec run(string(), [string()], [{string(), string() | false}], proplists:proplist()) -> {non_neg_integer(), binary()}.
run(Program, Arguments, Variables, Config) ->
    %% The VM of the suite has a folder of the toolchain in front that is not for users, and the build a place of its
    %% own.
    Path = filename:join(code:root_dir(), "bin") ++ ":" ++ os:getenv("PATH"),
    Rebar = case os:find_executable("rebar3") of false -> ""; File -> File end,
    Executable = os:find_executable(Program),
    Port = open_port({spawn_executable, Executable},
                     [{args, Arguments}, {cd, proplists:get_value(project, Config)}, exit_status, binary, hide,
                      stderr_to_stdout,
                      {env, [{"PATH", Path}, {"MIX_REBAR3", Rebar}, {"REBAR_COLOR", "none"}, {"REBAR_PROFILE", false},
                             {"ERL_LIBS", false}, {"ERL_FLAGS", false}
                             | lists:ukeysort(1, Variables ++ [{"MIX_ENV", false}])]}]),
    {Status, Output} = collect(Port, []),
    ct:pal("~ts ~tp with ~tp~nexit code ~b~n~ts", [Program, Arguments, Variables, Status, Output]),
    {Status, Output}.

collect(Port, Output) ->
    receive
        {Port, {data, Data}} -> collect(Port, [Output, Data]);
        {Port, {exit_status, Status}} -> {Status, iolist_to_binary(Output)}
    after ?RUN_MS -> ct:fail({still_running, iolist_to_binary(Output)})
    end.
