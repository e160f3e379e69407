-module(witness_search_libraries).
-moduledoc """
Searches uses of libraries: `main([Folder, Seed, Schedules, Timeouts, Delivery | Libraries])`, as for `bench/search-libraries`. A library
is compiled in `Folder`, in a folder of its name, together with its driver (`bench/search_libraries`). The driver says which uses must
pass, and which ones show a fault.

A line says of each use: the library, the function with its arguments, the number of schedules, schedules a second, and how the search has
ended; with `!` if that is not what the driver says.
""".

-export([main/1]).

-spec main([string()]) -> no_return().
main([Folder, Seed, Schedules, Timeouts, Delivery | Libraries]) ->
    How = #{seed => list_to_integer(Seed), schedules => list_to_integer(Schedules),
            timeouts => list_to_atom(Timeouts), delivery => list_to_atom(Delivery)},
    io:format("~-17s ~-30s ~9s ~8s    ~s~n", ["library", "use", "schedules", "a second", "outcome"]),
    Good = [row(Library, Use, Expected, Folder, How) || Library <- Libraries, {Use, Expected} <- uses(Library, Folder)],
    halt(case lists:all(fun(IsGood) -> IsGood end, Good) of true -> 0; false -> 1 end).

%% A driver in Elixir is a module of Elixir.
uses(Library, Folder) ->
    Pa = filename:join(Folder, Library),
    ok = witness_cli_setup:load_elixir(?MODULE, [Pa]),
    true = code:add_patha(Pa),
    [Driver] = filelib:wildcard("{search_" ++ Library ++ ",Elixir.Search.*Pool,Elixir.Search.GenStage,Elixir.Search.Semaphore}.beam", Pa),
    Module = list_to_atom(filename:basename(Driver, ".beam")),
    [{{Module, Name, Args}, Expected} || {Name, Args, Expected} <- Module:uses()].

row(Library, {_, Name, Args} = Use, Expected, Folder, How) ->
    Text = lists:flatten(io_lib:format("~s(~ts)", [Name, lists:join(",", [io_lib:format("~tw", [Arg]) || Arg <- Args])])),
    Dir = filename:join(Folder, lists:concat([Library, "-", erlang:unique_integer([positive]), ".rec"])),
    Report = case witness_search:search(How#{run => Use, pa => [filename:join(Folder, Library)], dir => Dir}) of
        {ok, Found} -> Found;
        {error, Reason} -> #{outcome => {error, Reason}, schedules => 0, elapsed_ms => 1, unfaithful => []}
    end,
    #{outcome := Outcome, schedules := Schedules, elapsed_ms := Ms, unfaithful := Unfaithful} = Report,
    IsGood = ended(Outcome) =:= Expected andalso Unfaithful =:= [],
    io:format("~-17s ~-30ts ~9b ~8b  ~s ~ts~n", [Library, Text, Schedules, Schedules * 1000 div max(1, Ms),
                                                 case IsGood of true -> " "; false -> "!" end, said(Outcome, Dir)]),
    _ = [io:format("  unfaithful: ~0tp~n", [What]) || What <- Unfaithful],
    IsGood.

ended(passed) -> passed;
ended({Kind, _}) when Kind =:= deadlock -> failed;
ended({crashed, _, _}) -> failed;
ended(_) -> none.

said(passed, _) -> "passed";
said(Outcome, Dir) -> io_lib:format("~0tP ~ts", [Outcome, 25, Dir]).
