-module(witness_clone).
-moduledoc "Repositories of others, for oracles: what git says of a clone, bare or not.".

-export([git/2]).

-doc "The output of git with these arguments, if it succeeds.".
-spec git(file:filename(), [unicode:chardata()]) -> {ok, binary()} | error.
git(Dir, Arguments) ->
    Port = open_port({spawn_executable, os:find_executable("git")},
                     [{args, [unicode:characters_to_list(One) || One <- ["-C", Dir | Arguments]]},
                      binary, exit_status, stderr_to_stdout, hide]),
    output(Port, []).

output(Port, Parts) ->
    receive
        {Port, {data, Data}} -> output(Port, [Data | Parts]);
        {Port, {exit_status, 0}} -> {ok, iolist_to_binary(lists:reverse(Parts))};
        {Port, {exit_status, _}} -> error
    end.
