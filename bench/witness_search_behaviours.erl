-module(witness_search_behaviours).
-moduledoc """
Searches programs with planted races and their repaired twins: `main([Folder, Seeds, Schedules | Names])`, as for
`bench/search-behaviours`. The programs are in `test/searched`.

A line says of each program: its name, in how many seeds the race was found, the median and the most schedules that this took, the
milliseconds of the search until then (median), and in how many seeds the twin passed all schedules.
""".

-export([main/1, programs/0]).

-doc "The programs: what they use, their module, their names.".
-spec programs() -> [{string(), module(), [atom(), ...]}].
programs() ->
    [{"register/2, whereis/1", witness_searched, [register, name]},
     {"link/1, exit signals", witness_searched, [links]},
     {"tables", witness_searched, [update]},
     {"gen_server", witness_searched, [call, notify, deadlock]},
     {"gen_statem", witness_searched, [machine]},
     {"gen_event", witness_searched, [event]},
     {"proc_lib", witness_searched, [acknowledge]},
     {"supervisor", witness_searched, [restart]},
     {"GenServer", 'Elixir.Searched', [server]},
     {"Task", 'Elixir.Searched', [task, shutdown]},
     {"Task.Supervisor", 'Elixir.Searched', [task_supervisor]},
     {"Agent", 'Elixir.Searched', [agent]},
     {"Registry", 'Elixir.Searched', [registry, via, subscribe]},
     {"DynamicSupervisor", 'Elixir.Searched', [dynamic]},
     {"Supervisor", 'Elixir.Searched', [restart]}].

-spec main([string()]) -> no_return().
main([Folder, Seeds, Schedules | Names]) ->
    How = #{pa => [Folder], seeds => lists:seq(1, list_to_integer(Seeds)), schedules => list_to_integer(Schedules)},
    ok = witness_cli_setup:load_elixir('Elixir.Searched', [Folder]),
    io:format("~-22s ~-16s ~7s ~7s ~7s ~7s ~7s~n", ["uses", "program", "found", "median", "most", "ms", "twin"]),
    Rows = [row(Uses, Module, Name, How) || {Uses, Module, Programs} <- programs(), Name <- Programs,
                                            Names =:= [] orelse lists:member(atom_to_list(Name), Names)],
    halt(case Rows =/= [] andalso lists:all(fun(Good) -> Good end, Rows) of true -> 0; false -> 1 end).

row(Uses, Module, Name, #{seeds := Seeds} = How) ->
    Found = [{Schedules, Ms} || Seed <- Seeds, #{outcome := Outcome, schedules := Schedules, elapsed_ms := Ms, unfaithful := []}
                                    <- [search(Module, Name, true, Seed, How)], Outcome =/= passed],
    Passed = length([Seed || Seed <- Seeds, #{outcome := passed, unfaithful := []} <- [search(Module, Name, false, Seed, How)]]),
    {Taken, Times} = lists:unzip(Found),
    io:format("~-22s ~-16s ~3b/~-3b ~7w ~7w ~7w ~3b/~-3b~n",
              [Uses, Name, length(Found), length(Seeds), median(Taken), lists:max([0 | Taken]), median(Times), Passed,
               length(Seeds)]),
    length(Found) =:= length(Seeds) andalso Passed =:= length(Seeds).

search(Module, Name, Fault, Seed, #{pa := [Folder] = Pa, schedules := Schedules}) ->
    Dir = filename:join(Folder, lists:concat([Module, "-", Name, "-", Fault, "-", Seed, ".rec"])),
    {ok, Report} = witness_search:search(#{run => {Module, Name, [Fault]}, pa => Pa, dir => Dir, seed => Seed,
                                           schedules => Schedules}),
    Report.

median([]) -> none;
median(List) -> lists:nth((length(List) + 1) div 2, lists:sort(List)).
