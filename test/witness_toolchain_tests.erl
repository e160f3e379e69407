-module(witness_toolchain_tests).
-moduledoc "What `bin/toolchain env` sets in the shell of a user, where other projects are built, too.".

-include_lib("eunit/include/eunit.hrl").

%% Only the path, the locale, and variables of Witness: none by which rebar3, Mix or the VM would do something else.
a_shell_gets_no_variable_of_another_tool_test() ->
    Set = [Name || Line <- string:lexemes(env(), "\n"), [Name] <- [variable(Line)]],
    ?assert(lists:member("PATH", Set)),
    ?assertEqual(["WITNESS_BUILD", "WITNESS_PLT"], lists:sort(Set) -- ["PATH", "LC_ALL"]).

%% rebar.config.script and bin/toolchain name the same folder, so what rebar3 builds in this checkout is what runs.
the_build_of_a_release_is_where_rebar3_builds_test() ->
    {match, [Folder]} = re:run(env(), "WITNESS_BUILD=(\\S+)", [{capture, all_but_first, list}]),
    {ok, Config} = file:script(filename:join(root(), "rebar.config.script"), [{'CONFIG', config()}]),
    ?assertEqual(Folder, proplists:get_value(base_dir, Config)).

config() ->
    {ok, Config} = file:consult(filename:join(root(), "rebar.config")),
    Config.

env() -> os:cmd(filename:join(root(), "bin/toolchain") ++ " env 2> /dev/null").

%% Each line sets one variable.
variable(Line) ->
    case re:run(Line, "^export ([A-Z_]+)=", [{capture, all_but_first, list}]) of
        {match, Name} -> Name;
        nomatch -> [Line]
    end.

root() -> witness_checkout:root(filename:dirname(code:which(?MODULE))).
