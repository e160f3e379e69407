-module(witness_record_SUITE).
-moduledoc """
Programs that note each of their steps (`test/recorded`), recorded in a VM of their own: the recording says exactly the
same. And how a recording begins and ends.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

suite() -> [{timetrap, {minutes, 5}}].

all() -> [{group, Group} || {Group, _, _} <- groups()].

groups() ->
    Programs = [Case || {Case, _, _, _} <- programs()],
    [{one_scheduler, [], Programs}, {two_schedulers, [], Programs},
     {options, [], [contents_and_hashes_are_those_of_the_messages, full_identifiers_change_nothing,
                    modules_that_were_not_woven_are_named, receives_of_new_references_pass_what_waits]},
     {ends, [], [savina, halting_keeps_all, stopping_keeps_all, stop_ends_it, a_killed_vm_leaves_what_was_written,
                 processes_that_live_longer_are_waited_for, a_crash_is_recorded, a_recording_ends_with_its_owner]},
     {command, [], [results_and_output_are_those_of_a_plain_run, json_has_standard_output_for_itself, an_application_is_recorded,
                    an_interrupt_ends_it, a_planned_end_is_no_error, what_is_wrong_is_named]}].

%% Case, function of a program, and how closely its processes note what they do.
programs() ->
    [{selective_receives, witness_recorded_mailbox, selective, exact},
     {registered_names, witness_recorded_mailbox, names, exact},
     {five_thousand_processes, witness_recorded_mailbox, many, exact},
     {replies_to_aliases, witness_recorded_mailbox, aliases, exact},
     {hibernation, witness_recorded_mailbox, asleep, exact},
     {spawn_requests, witness_recorded_mailbox, requested, exact},
     {births_of_every_form, witness_recorded_mailbox, born, exact},
     {processes_of_proc_lib, witness_recorded_mailbox, tasks, exact},
     {a_relay_that_is_not_woven, witness_recorded_mailbox, relayed, verified},
     {calls_with_timeouts, witness_recorded_server, calls, exact},
     {a_state_machine, witness_recorded_machine, events, late_timers},
     {restarts_of_a_supervisor, witness_recorded_tree, restarts, exact},
     {deaths_and_signals, witness_recorded_signals, deaths, exact},
     {kills_at_any_point, witness_recorded_signals, kills, exact},
     {timers, witness_recorded_signals, timers, within},
     {ends_that_go_from_link_to_link, witness_recorded_signals, chains, exact},
     {messages_that_look_like_signals, witness_recorded_signals, forged, exact},
     {monitors_that_are_given_up, witness_recorded_signals, patience, exact},
     {shared_tables, witness_recorded_outside, tables, exact},
     {shared_memory, witness_recorded_shared, memory, exact},
     {an_application_that_is_started_and_stopped, witness_recorded_services, application, within},
     {servers_and_sys, witness_recorded_services, system, within},
     {functions_that_are_values, witness_recorded_dynamic, functions, within},
     {calls_that_are_not_determined, witness_recorded_outside, calls, exact},
     {ports, witness_recorded_outside, ports, within},
     {sockets, witness_recorded_outside, sockets, within},
     {files, witness_recorded_outside, files, within},
     {another_node, witness_recorded_outside, node, within_verified}].

init_per_suite(Config) ->
    Out = filename:join(proplists:get_value(priv_dir, Config), "programs"),
    ok = filelib:ensure_path(Out),
    ok = witness_record_programs:compile(Out),
    [{programs, Out} | Config].

end_per_suite(_) -> ok.

init_per_group(one_scheduler, Config) -> [{vm_args, ["+S", "1:1"]} | Config];
init_per_group(_, Config) -> [{vm_args, ["+S", "2:2"]} | Config].

end_per_group(_, _) -> ok.

%% --- programs --------------------------------------------------------------------

selective_receives(Config) -> program(?FUNCTION_NAME, Config).
registered_names(Config) -> program(?FUNCTION_NAME, Config).
five_thousand_processes(Config) -> program(?FUNCTION_NAME, Config).
replies_to_aliases(Config) -> program(?FUNCTION_NAME, Config).
hibernation(Config) -> program(?FUNCTION_NAME, Config).
spawn_requests(Config) -> program(?FUNCTION_NAME, Config).
births_of_every_form(Config) -> program(?FUNCTION_NAME, Config).
processes_of_proc_lib(Config) -> program(?FUNCTION_NAME, Config).
a_relay_that_is_not_woven(Config) -> program(?FUNCTION_NAME, Config).
calls_with_timeouts(Config) -> program(?FUNCTION_NAME, Config).
a_state_machine(Config) -> program(?FUNCTION_NAME, Config).
restarts_of_a_supervisor(Config) -> program(?FUNCTION_NAME, Config).
deaths_and_signals(Config) -> program(?FUNCTION_NAME, Config).
kills_at_any_point(Config) -> program(?FUNCTION_NAME, Config).
timers(Config) -> program(?FUNCTION_NAME, Config).
ends_that_go_from_link_to_link(Config) -> program(?FUNCTION_NAME, Config).
messages_that_look_like_signals(Config) -> program(?FUNCTION_NAME, Config).
monitors_that_are_given_up(Config) -> program(?FUNCTION_NAME, Config).
shared_memory(Config) -> program(?FUNCTION_NAME, Config).
an_application_that_is_started_and_stopped(Config) -> program(?FUNCTION_NAME, Config).
servers_and_sys(Config) -> program(?FUNCTION_NAME, Config).
functions_that_are_values(Config) -> program(?FUNCTION_NAME, Config).
shared_tables(Config) -> program(?FUNCTION_NAME, Config).
calls_that_are_not_determined(Config) -> program(?FUNCTION_NAME, Config).
ports(Config) -> program(?FUNCTION_NAME, Config).
sockets(Config) -> program(?FUNCTION_NAME, Config).
files(Config) -> program(?FUNCTION_NAME, Config).
another_node(Config) -> program(?FUNCTION_NAME, Config).

program(Case, Config) ->
    {Case, Module, Function, Strictness} = lists:keyfind(Case, 1, programs()),
    File = file(Case, ".journal", Config),
    Dir = file(Case, ".rec", Config),
    {ok, Summary} = witness_record:record(options(Dir, {witness_recorded, run, [Module, Function, File]}, Config)),
    ct:pal("~p", [Summary]),
    ?assertMatch(#{outcome := recorded, ended := {returned, normal}, vm := 0}, Summary),
    {Journal = #{result := Result}, Recorded = #{entries := Entries}} = witness_record_comparison:both(File, Dir),
    ct:pal("result ~tp, ~b processes, ~b entries",
           [Result, map_size(Entries), lists:sum([length(List) || _ := List <- Entries])]),
    ?assertEqual([], lists:sublist(differences(Journal, Recorded, Strictness), 5)).

%% A state machine that has cancelled a timer too late takes its message, and tells none of its callbacks.
differences(Journal, #{entries := Entries} = Recorded, late_timers) ->
    case witness_record_comparison:differences(Journal, Recorded, exact) of
        [{process, _, Id, _, {recorded, {content, {timeout, Ref, _}} = Late}} | _] when is_reference(Ref) ->
            differences(Journal, Recorded#{entries := Entries#{Id := lists:delete(Late, maps:get(Id, Entries))}}, late_timers);
        Differences -> Differences
    end;
differences(Journal, Recorded, Strictness) -> witness_record_comparison:differences(Journal, Recorded, Strictness).

options(Dir, Run, Config) ->
    Out = proplists:get_value(programs, Config),
    Unwoven = [witness_record_programs:unwoven(Out) || {_, _, [_, relayed, _]} <- [Run]],
    #{run => Run, dir => Dir, pa => [Out | Unwoven], vm_args => proplists:get_value(vm_args, Config)}.

%% Each group has files of its own.
file(Case, Extension, Config) ->
    Unique = integer_to_list(erlang:unique_integer([positive])),
    filename:join(proplists:get_value(priv_dir, Config), atom_to_list(Case) ++ "-" ++ Unique ++ Extension).

%% --- options ---------------------------------------------------------------------

contents_and_hashes_are_those_of_the_messages(Config) ->
    [begin
         {Journal, #{ids := Ids, entries := Entries} = Recorded} = recorded(witness_recorded_mailbox, selective, Option, Config),
         %% A message of a process that has ended is there with its contents in any case.
         ?assertEqual([], witness_record_comparison:differences(Journal, Recorded, verified)),
         [?assertEqual({Pid, Noted}, {Pid, lists:sublist(told(Option, maps:get(maps:get(Pid, Ids), Entries)), length(Noted))})
          || Pid := Steps <- maps:get(steps, Journal),
             Noted <- [[told(Option, Msg) || {message, _, Msg} <- Steps]]]
     end || Option <- [contents, hash]].

told(contents, Entries) when is_list(Entries) ->
    [Msg || {Kind, Msg} <- Entries, Kind =:= contents orelse Kind =:= content];
told(hash, Entries) when is_list(Entries) ->
    lists:append([case Entry of {hash, Hash} -> [Hash]; {content, Msg} -> [told(hash, Msg)]; _ -> [] end || Entry <- Entries]);
told(contents, Msg) -> Msg;
told(hash, Msg) -> <<(erlang:phash2(Msg)):32/little, (erlang:phash2([Msg])):32/little>>.

full_identifiers_change_nothing(Config) ->
    {Journal, Recorded} = recorded(witness_recorded_mailbox, selective, full_ids, Config),
    ?assertEqual([], witness_record_comparison:differences(Journal, Recorded, exact)).

recorded(Module, Function, Option, Config) ->
    File = file(Function, ".journal", Config),
    Dir = file(Function, ".rec", Config),
    Options = options(Dir, {witness_recorded, run, [Module, Function, File]}, Config),
    {ok, #{outcome := recorded}} = witness_record:record(Options#{Option => true}),
    witness_record_comparison:both(File, Dir).

%% From a folder that was not named, from a file, made by the program: known even when they are gone.
modules_that_were_not_woven_are_named(Config) ->
    Folder = witness_record_programs:unwoven(proplists:get_value(programs, Config)),
    [begin
         File = file(Case, ".journal", Config),
         Dir = file(Case, ".rec", Config),
         Run = {witness_recorded, run, [witness_recorded_dynamic, {Case, Args}, File]},
         {ok, #{outcome := recorded, unwoven := Unwoven}} = witness_record:record(options(Dir, Run, Config)),
         ?assertEqual(Modules, Unwoven),
         {Journal, Recorded} = witness_record_comparison:both(File, Dir),
         ?assertEqual([], witness_record_comparison:differences(Journal, Recorded, within_verified))
     end || {Case, Args, Modules} <- [{found, [Folder], [witness_recorded_relay]}, {loaded, [Folder], [witness_recorded_relay]},
                                      {made, [], [witness_recorded_made]}]],
    Call = io_lib:format("witness_recorded:run(witness_recorded_dynamic, {found, [~p]}, ~p)",
                         [Folder, file(found, ".journal", Config)]),
    #{exit := 3, stdout := Output} =
        witness(Config, ["record", "-o", file(found, ".rec", Config), "--pa", proplists:get_value(programs, Config),
                         lists:flatten(Call)]),
    witness_command:contains(Output, [~"NOT REPLAYABLE", ~"witness_recorded_relay", ~"compile them with +debug_info",
                                      ~"record it again with --pa "]).

%% What is counted is work, not time: each message that a receive looks at is a reduction.
receives_of_new_references_pass_what_waits(Config) ->
    Waiting = 100_000,
    File = file(?FUNCTION_NAME, ".journal", Config),
    Run = {witness_recorded, run, [witness_recorded_marks, {work, [Waiting]}, File]},
    {ok, #{outcome := recorded}} = record(?FUNCTION_NAME, Run, Config),
    #{result := Work} = witness_record_comparison:journal(File),
    ct:pal("~p", [Work]),
    {Looking, Passing} = lists:partition(fun({_, Reductions}) -> Reductions > Waiting end, Work),
    %% Of births the run-time module makes the reference.
    ?assertEqual([spawn_monitor, spawn_request, unknown], [Name || {Name, _} <- Looking]),
    ?assertEqual([monitor, alias, own_alias, make_ref, call], [Name || {Name, _} <- Passing]).

%% --- ends ------------------------------------------------------------------------

savina(Config) ->
    File = file(?FUNCTION_NAME, ".results", Config),
    {ok, #{outcome := recorded, ended := {returned, normal}}} =
        record(?FUNCTION_NAME, {witness_recorded_ends, savina, [File]}, Config),
    {ok, Results} = file:read_file(File),
    Recorded = [{Name, verified(Result)} || {Name, {ok, Result}} <- binary_to_term(Results)],
    Plain = [{Name, verified(Result)} || Name <- witness_savina:names(),
                                         {ok, Result} <- [witness_savina:run(Name, small)]],
    ?assertEqual(Plain, Recorded).

%% What does not depend on the schedule.
verified(Result) -> maps:without([denied, returned, waiting, kept, height, found], Result).

halting_keeps_all(Config) -> ends_by_itself(halt, 5, Config).

stopping_keeps_all(Config) -> ends_by_itself(stop, 6, Config).

ends_by_itself(How, Status, Config) ->
    Dir = file(How, ".rec", Config),
    {ok, Summary} = witness_record:record(options(Dir, {witness_recorded_ends, halting, [How]}, Config)),
    ?assertMatch(#{outcome := recorded, ended := halted, vm := Status}, Summary),
    #{entries := Entries} = witness_record_comparison:recorded(Dir),
    ?assertEqual(200, lists:sum([length([from || {from, _} <- List]) || _ := List <- Entries])).

a_killed_vm_leaves_what_was_written(Config) ->
    Dir = file(?FUNCTION_NAME, ".rec", Config),
    %% Signal 0 does nothing: it does what it has to do, and waits.
    {ok, Recording} = witness_record:start(options(Dir, {witness_recorded_ends, halting, [{signal, "0"}]}, Config)),
    {links, Links} = process_info(Recording, links),
    [{os_pid, Vm}] = [erlang:port_info(Port, os_pid) || Port <- Links, is_port(Port)],
    %% What processes have buffered is written by time.
    ok = witness_await:until(fun() -> case taken(Dir) of 200 -> true; Taken -> Taken end end),
    "" = os:cmd("kill -KILL " ++ integer_to_list(Vm)),
    {ok, Summary} = witness_record:await(Recording, infinity),
    ?assertMatch(#{outcome := {ended, {vm, 137}}, ended := halted, vm := 137}, Summary),
    {ok, R} = witness_log_recording:open(Dir),
    ?assertMatch(#{complete := false}, witness_log_recording:info(R)),
    ?assertEqual(200, taken(Dir)).

taken(Dir) ->
    {ok, R} = witness_log_recording:open(Dir),
    {ok, Processes} = witness_log_recording:processes(R),
    lists:sum([N || #{id := Id} <- Processes, {ok, Demand} <- [witness_log_recording:demand(Id, R)], _ := N <- Demand]).

stop_ends_it(Config) ->
    Dir = file(?FUNCTION_NAME, ".rec", Config),
    {ok, Recording} = witness_record:start(options(Dir, {witness_recorded_ends, forever, []}, Config)),
    ?assertEqual({error, {witness_record, timeout}}, witness_record:await(Recording, 0)),
    ok = witness_record:stop(Recording),
    ?assertMatch({ok, #{outcome := recorded, ended := stopped}}, witness_record:await(Recording, infinity)),
    #{entries := _} = witness_record_comparison:recorded(Dir).

processes_that_live_longer_are_waited_for(Config) ->
    Dir = file(?FUNCTION_NAME, ".rec", Config),
    {ok, #{outcome := recorded}} = witness_record:record(options(Dir, {witness_recorded_ends, late, []}, Config)),
    #{entries := Entries} = witness_record_comparison:recorded(Dir),
    ?assertEqual(3, map_size(Entries)),
    ?assertEqual([{exit, normal}], lists:uniq([lists:last(List) || _ := List <- Entries])).

a_crash_is_recorded(Config) ->
    Dir = file(?FUNCTION_NAME, ".rec", Config),
    {ok, Summary} = witness_record:record(options(Dir, {witness_recorded_ends, crashing, []}, Config)),
    ?assertMatch(#{outcome := recorded, ended := {returned, <<"{program_is_wrong,", _/binary>>}}, Summary),
    #{entries := #{1 := Entries}} = witness_record_comparison:recorded(Dir),
    ?assertMatch({exit, {program_is_wrong, [_ | _]}}, lists:last(Entries)).

a_recording_ends_with_its_owner(Config) ->
    Dir = file(?FUNCTION_NAME, ".rec", Config),
    Self = self(),
    {Owner, Ref} = spawn_monitor(fun() ->
        {ok, Recording} = witness_record:start(options(Dir, {witness_recorded_ends, forever, []}, Config)),
        Self ! {started, self(), Recording},
        receive never -> ok end
    end),
    Looking = receive {started, Owner, Recording} -> monitor(process, Recording) end,
    exit(Owner, kill),
    receive {'DOWN', Ref, process, Owner, killed} -> ok end,
    receive {'DOWN', Looking, process, _, normal} -> ok end,
    #{entries := _} = witness_record_comparison:recorded(Dir).

record(Case, Run, Config) -> witness_record:record(options(file(Case, ".rec", Config), Run, Config)).

%% --- the command -----------------------------------------------------------------

results_and_output_are_those_of_a_plain_run(Config) ->
    Out = proplists:get_value(programs, Config),
    %% It builds itself the first time, and says so.
    #{exit := 0} = witness(Config, ["--version"]),
    Plain = witness_command:run(Config, "/bin/sh", ["-c", "echo typed | erl -noshell -pa '" ++ Out ++
                                                         "' -s witness_recorded_ends printing -s init stop"]),
    Dir = file(?FUNCTION_NAME, ".rec", Config),
    Command = ["echo typed | '", witness(Config), "' record -o '", Dir, "' --pa '", Out,
               "' 'witness_recorded_ends:printing()'"],
    Recorded = witness_command:run(Config, "/bin/sh", ["-c", Command]),
    ?assertMatch(#{exit := 0}, Recorded),
    #{stdout := Printed, stderr := Error} = Plain,
    #{stdout := <<Printed:(byte_size(Printed))/binary, Summary/binary>>, stderr := Error} = Recorded,
    witness_command:contains(Summary, [~"recorded"]).

json_has_standard_output_for_itself(Config) ->
    Dir = file(?FUNCTION_NAME, ".rec", Config),
    #{exit := 0, stdout := Output} =
        witness(Config, ["record", "--json", "-o", Dir, "--pa", proplists:get_value(programs, Config),
                         "witness_recorded_ends:late()"]),
    ?assertMatch(#{~"v" := 1, ~"type" := ~"recording", ~"outcome" := ~"recorded", ~"processes" := 3},
                 json:decode(Output)).

%% Its processes are descendants of the application controller, which is none of the program's.
an_application_is_recorded(Config) ->
    Dir = file(?FUNCTION_NAME, ".rec", Config),
    Programs = proplists:get_value(programs, Config),
    App = witness_recorded_application,
    Resource = {application, App, [{description, "for tests"}, {vsn, "1"}, {modules, [App]}, {registered, []},
                                   {applications, [kernel, stdlib]}, {mod, {App, []}}]},
    ok = file:write_file(filename:join(Programs, atom_to_list(App) ++ ".app"), io_lib:format("~p.~n", [Resource])),
    #{exit := 0, stdout := Output} = witness(Config, ["record", "-o", Dir, "--pa", Programs, "--app", atom_to_list(App)]),
    witness_command:contains(Output, [~"answered 385", ~"recorded"]),
    #{entries := All, parents := Parents} = witness_record_comparison:recorded(Dir),
    %% One takes the answers of the other, which is its child, and that one its requests.
    Takes = fun(Id) -> [From || {from, From} <- maps:get(Id, All)] end,
    Pairs = [{Top, Server} || Top := _ <- All, Server := _ <- All, maps:get(Server, Parents) =:= Top,
                              Takes(Top) =:= lists:duplicate(10, Server), Takes(Server) =:= lists:duplicate(10, Top)],
    ?assertMatch([_], Pairs).

an_interrupt_ends_it(Config) ->
    Dir = file(?FUNCTION_NAME, ".rec", Config),
    Errors = filename:join(proplists:get_value(priv_dir, Config), "interrupted"),
    Port = witness_command:start(Config, Errors, witness(Config),
                                 ["record", "-o", Dir, "--pa", proplists:get_value(programs, Config),
                                  "witness_recorded_ends:forever()"]),
    Before = witness_command:until(Port, ~"running", ~""),
    ok = witness_command:signal(Port, "INT"),
    ?assertMatch({3, _}, witness_command:collect(Port, Before)),
    #{entries := _} = witness_record_comparison:recorded(Dir).

%% With and without monitors. What was recorded until then is whole, and replays.
a_planned_end_is_no_error(Config) ->
    Spec = file(?FUNCTION_NAME, ".hml", Config),
    ok = file:write_file(Spec, ~"ends: with witness_recorded_ends:forever() over _ ** _ check <_ ** _> tt.\n"),
    [begin
         Dir = file(?FUNCTION_NAME, Ending, Config),
         #{exit := Code, stdout := Text} =
             witness(Config, ["record", "--for", "1", "-o", Dir, "--pa", proplists:get_value(programs, Config) | Options]
                     ++ ["witness_recorded_ends:forever()"]),
         ?assertEqual({Options, Expected}, {Options, Code}),
         witness_command:contains(Text, [~"program   was stopped", ~"RECORDED" | Words]),
         #{exit := 0, stdout := Replayed} = witness(Config, ["replay", Dir]),
         witness_command:contains(Replayed, [~"IDENTICAL"])
     end || {Ending, Options, Expected, Words} <- [{".rec", [], 0, []}, {"_monitored.rec", ["--spec", Spec], 0, [~"1 undecided"]},
                                                   {"_decided.rec", ["--spec", Spec, "--must-decide"], 3, [~"NO RESULT"]}]].

what_is_wrong_is_named(Config) ->
    Out = proplists:get_value(programs, Config),
    Full = proplists:get_value(priv_dir, Config),
    Call = "witness_recorded_ends:late()",
    [begin
         #{exit := Code, stdout := ~"", stderr := Error} = witness(Config, ["record" | Arguments]),
         ?assertEqual(2, Code),
         witness_command:contains(Error, [~"witness record: " | Words])
     end || {Arguments, Words} <- [
         {[], [~"'mod:fun(args)', --app APP or --mix DIR is expected"]},
         {["--pa", Out, Call, "--app", "kernel"], [~"exclude each other"]},
         {["--pa", Out, "-o", Full, Call], [~"a folder that is empty"]},
         {["--pa", "nowhere", Call], [~"--pa: there is no folder nowhere"]},
         {["--pa", Out, "witness_recorded_ends:lat()"], [~"lat"]},
         {["--app", "nobody_has_this"], [~"nobody_has_this"]},
         {["--pa", Out, "--config", "nowhere.config", Call], [~"nowhere.config"]},
         {["--pa", Out, "--weave", "nobody_has_this", Call], [~"nobody_has_this"]},
         {["--contets", Call], [~"did you mean --contents?"]}]],
    ok.

witness(Config) ->
    filename:join([witness_checkout:root(proplists:get_value(data_dir, Config)), "bin", "witness"]).

witness(Config, Arguments) -> witness_command:run(Config, witness(Config), Arguments).
