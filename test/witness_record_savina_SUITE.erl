-module(witness_record_savina_SUITE).
-moduledoc """
The benchmarks of Savina, with processes that note what they do (`m:witness_record_noting`). For each process the recording
says exactly the same, entry by entry.

`WITNESS_RECORD_SAVINA` is the set of parameters (`small`; `make record-savina`: `somns`). With other parameters than the
small ones each benchmark has a recording of its own.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

suite() -> [{timetrap, {minutes, 60}}].

all() -> [{group, one_scheduler}, {group, two_schedulers}].

groups() -> [{Group, [], [recordings_say_what_the_processes_noted]} || {group, Group} <- all()].

init_per_suite(Config) ->
    Out = filename:join(proplists:get_value(priv_dir, Config), ?MODULE_STRING),
    ok = witness_record_programs:compile_noting(Out),
    [{programs, Out} | Config].

end_per_suite(_) -> ok.

init_per_group(one_scheduler, Config) -> [{schedulers, "1:1"} | Config];
init_per_group(two_schedulers, Config) -> [{schedulers, "2:2"} | Config].

end_per_group(_, _) -> ok.

recordings_say_what_the_processes_noted(Config) ->
    case list_to_existing_atom(os:getenv("WITNESS_RECORD_SAVINA", "small")) of
        small -> recorded(names(), small, Config);
        Set -> lists:foreach(fun(Name) -> recorded([Name], Set, Config) end, names())
    end.

names() ->
    case os:getenv("WITNESS_SAVINA", "") of
        "" -> witness_savina:names();
        Some -> [list_to_existing_atom(Name) || Name <- string:lexemes(Some, ",")]
    end.

recorded(Names, Set, Config) ->
    Programs = proplists:get_value(programs, Config),
    Unique = integer_to_list(erlang:unique_integer([positive])),
    [File, Dir] = [filename:join(Programs, Kind ++ Unique) || Kind <- ["journal-", "rec-"]],
    Run = {witness_recorded, run, [witness_recorded_ends, {savina, [Names, Set]}, File]},
    %% In the end the first process reads all that was noted, which is recorded too.
    {ok, Summary} = witness_record:record(#{run => Run, dir => Dir, pa => [Programs], budget => 4_000_000_000,
                                            vm_args => ["+S", proplists:get_value(schedulers, Config)]}),
    ?assertMatch(#{outcome := recorded, ended := {returned, normal}, vm := 0, unwoven := []}, Summary),
    {#{result := Results} = Journal, Recorded} = witness_record_comparison:both(File, Dir),
    ?assertEqual(Names, [Name || {Name, {ok, _}} <- Results]),
    ?assertEqual([], lists:sublist(witness_record_comparison:differences(Journal, Recorded, complete), 5)),
    Benchmarks = lists:zip(Names, benchmarks(Journal)),
    lists:foreach(fun({Name, Pids}) ->
        {Messages, Others} = noted(Pids, Journal),
        io:format("~p: ~b processes noted ~b messages and ~b other steps~n", [Name, length(Pids), Messages, Others]),
        ?assert({Name, Messages, Others} > {Name, 2, length(Pids)}),
        ?assertEqual({Name, []}, {Name, [Fault || Fault <- [dropped, doubled, moved], is_missed(Fault, Pids, Journal, Recorded)]})
    end, Benchmarks),
    ok = file:del_dir_r(Dir),
    ok = file:delete(File).

%% The processes of each benchmark: its first one is a child of the process that runs all benchmarks, in turn.
benchmarks(#{root := Root, born := Born, steps := Steps}) ->
    [family(First, Born) || {spawn, First} <- maps:get(Root, Steps)].

family(First, Born) ->
    Children = maps:groups_from_list(fun({_, Parent}) -> Parent end, fun({Child, _}) -> Child end, maps:to_list(Born)),
    family([First], Children, []).

family([], _, All) -> All;
family([Pid | Pids], Children, All) -> family(maps:get(Pid, Children, []) ++ Pids, Children, [Pid | All]).

noted(Pids, #{steps := Steps}) ->
    All = lists:append([maps:get(Pid, Steps, []) || Pid <- Pids]),
    Messages = length([message || {message, _, _} <- All]),
    {Messages, length(All) - Messages}.

%% --- the comparison can fail ----------------------------------------------------------

%% The comparison finds one message more or less, or of another sender, in the entries of one of these processes.
is_missed(Fault, Pids, #{root := Root} = Journal, #{ids := Ids, entries := Entries} = Recorded) ->
    {Pid, Before, From, After} = hd([{Pid, Before, From, After} || Pid <- Pids,
        {Before, [{from, From} | After]} <-
            [lists:splitwith(fun(Entry) -> element(1, Entry) =/= from end, tuples(maps:get(maps:get(Pid, Ids), Entries)))]]),
    Other = maps:get(Root, Ids),
    Wrong = case Fault of
        dropped -> Before ++ After;
        doubled -> Before ++ [{from, From}, {from, From} | After];
        moved -> Before ++ [{from, Other} | After]
    end,
    Faulty = Recorded#{entries := Entries#{maps:get(Pid, Ids) := [untupled(Entry) || Entry <- Wrong]}},
    witness_record_comparison:differences(Journal, Faulty, complete) =:= [].

tuples(Entries) -> [case Entry of timeout -> {timeout}; _ -> Entry end || Entry <- Entries].

untupled({timeout}) -> timeout;
untupled(Entry) -> Entry.
