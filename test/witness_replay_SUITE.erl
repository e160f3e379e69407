-module(witness_replay_SUITE).
-moduledoc """
Programs of `test/recorded`, recorded several times, and each recording replayed several times: every process does what it
did, and the first one ends with the same result. If that is not so, the replay reports it.

`WITNESS_REPLAY_RECORDINGS` and `WITNESS_REPLAYS` say how often (1 and 2). `WITNESS_REPLAY_DONE` names a file that lists what
is done: the rest is done, for some half an hour, or until `WITNESS_REPLAY_UNTIL`, in seconds since 1970.
`m:witness_replay_elixir_SUITE` has more of them.
""".
-include_lib("kernel/include/file.hrl").
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

suite() -> [{timetrap, {minutes, 15}}].

all() -> [{group, Group} || {Group, _, _} <- groups()].

groups() ->
    [{programs, [],
      [two_messages_overtake_each_other, a_crowd_that_grows,
       what_the_vm_has_compiled_is_the_same | [Case || {Case, _, _} <- programs()]]},
     {funs, [], [funs_are_what_they_are_unrecorded, funs_that_stand_in_are_the_same, a_fun_with_another_environment_diverges,
                 an_exit_with_a_fun_is_compared]},
     {generated, [], [networks_of_processes, impatient_clients_and_kills]},
     {ends, [], [an_application_is_replayed, a_crash_is_replayed,
                 a_killed_vm_is_replayed_to_a_cut, a_recording_that_was_cut_is_replayed_to_there,
                 a_replay_ends_with_its_caller, what_callers_have_left_is_removed, output_is_dropped_or_mirrored,
                 recorded_messages_are_compared]},
     {refused, [],
      [a_changed_module_is_named, a_recording_of_another_user_is_refused, another_build_of_otp_is_refused, damage_is_told,
       a_module_that_is_not_woven_is_refused, a_pattern_in_a_persistent_term_is_the_same,
                    a_recording_without_entries_of_exits_is_replayed, a_recording_without_entries_of_hibernation_is_replayed,
                    wrong_options_are_named]},
     {diverged, [], [another_call_diverges, a_message_that_is_not_sent_is_waited_for, a_process_that_ends_early_diverges,
                     a_process_that_goes_on_diverges, an_exit_that_is_not_made_diverges, another_result_diverges]},
     {kept, [], [a_recording_is_replayed_after_a_build, a_recording_is_replayed_without_its_folders, code_is_kept_only_if_wanted,
                 an_archive_that_leads_elsewhere_is_refused, kept_code_is_only_what_was_recorded]},
     {command, [], [the_command_replays, the_command_tells_a_divergence]}].

programs() ->
    [{selective_receives, witness_recorded_mailbox, selective},
     {registered_names, witness_recorded_mailbox, names},
     {five_thousand_processes, witness_recorded_mailbox, many},
     {senders_far_ahead, witness_recorded_mailbox, ahead},
     {replies_to_aliases, witness_recorded_mailbox, aliases},
     {answers_of_others, witness_recorded_forward, forwarded},
     {hibernation, witness_recorded_mailbox, asleep},
     {spawn_requests, witness_recorded_mailbox, requested},
     {processes_of_proc_lib, witness_recorded_mailbox, tasks},
     {calls_with_timeouts, witness_recorded_server, calls},
     {a_state_machine, witness_recorded_machine, events},
     {restarts_of_a_supervisor, witness_recorded_tree, restarts},
     {deaths_and_signals, witness_recorded_signals, deaths},
     {kills_at_any_point, witness_recorded_signals, kills},
     {timers, witness_recorded_signals, timers},
     {shared_tables, witness_recorded_outside, tables},
     {calls_that_are_not_determined, witness_recorded_outside, calls},
     {ports, witness_recorded_outside, ports},
     {sockets, witness_recorded_outside, sockets},
     {files, witness_recorded_outside, files},
     {benchmarks_of_savina, witness_recorded_root, savina}].

%% Seconds after which no further recording of a program is begun.
-define(SLICE, 2100).
%% How long a replay may take to begin, and to remove its files: the other VM weaves first.
-define(REPLAY_MS, 600_000).

init_per_suite(Config) ->
    Out = filename:join(proplists:get_value(priv_dir, Config), "programs"),
    ok = filelib:ensure_path(Out),
    ok = witness_record_programs:compile(Out),
    [{programs, Out}, {pa, [Out]}, {until, until()} | Config].

until() -> erlang:monotonic_time(second) + times("WITNESS_REPLAY_UNTIL",
                                                 erlang:system_time(second) + ?SLICE) - erlang:system_time(second).

end_per_suite(_) -> ok.

init_per_group(_, Config) -> Config.

end_per_group(_, _) -> ok.

%% --- programs --------------------------------------------------------------------

selective_receives(Config) -> program(?FUNCTION_NAME, Config).
registered_names(Config) -> program(?FUNCTION_NAME, Config).
five_thousand_processes(Config) -> program(?FUNCTION_NAME, Config).
senders_far_ahead(Config) -> program(?FUNCTION_NAME, Config).
replies_to_aliases(Config) -> program(?FUNCTION_NAME, Config).
answers_of_others(Config) -> program(?FUNCTION_NAME, Config).
hibernation(Config) -> program(?FUNCTION_NAME, Config).
spawn_requests(Config) -> program(?FUNCTION_NAME, Config).
processes_of_proc_lib(Config) -> program(?FUNCTION_NAME, Config).
calls_with_timeouts(Config) -> program(?FUNCTION_NAME, Config).
a_state_machine(Config) -> program(?FUNCTION_NAME, Config).
restarts_of_a_supervisor(Config) -> program(?FUNCTION_NAME, Config).
deaths_and_signals(Config) -> program(?FUNCTION_NAME, Config).
kills_at_any_point(Config) -> program(?FUNCTION_NAME, Config).
timers(Config) -> program(?FUNCTION_NAME, Config).
shared_tables(Config) -> program(?FUNCTION_NAME, Config).
calls_that_are_not_determined(Config) -> program(?FUNCTION_NAME, Config).
ports(Config) -> program(?FUNCTION_NAME, Config).
sockets(Config) -> program(?FUNCTION_NAME, Config).
files(Config) -> program(?FUNCTION_NAME, Config).
benchmarks_of_savina(Config) -> program(?FUNCTION_NAME, Config).

%% In a replay no process waits for time, so the messages that came later would come first.
two_messages_overtake_each_other(Config) ->
    Dir = recorded({witness_recorded_root, run, [witness_recorded_forward, reversed]}, #{}, Config),
    {ok, Recording} = witness_log_recording:open(Dir),
    {ok, {result, Order}} = witness_log_recording:fold(fun({exit, Reason}, _) -> Reason; (_, Found) -> Found end,
                                                           none, 1, Recording),
    ?assert(lists:any(fun({First, Second}) -> index(Second, Order) < index(First, Order) end,
                      [{{N, first}, {N, second}} || N <- lists:seq(1, 5)])),
    [?assertMatch({ok, #{outcome := identical, cut := 0}}, witness_replay:replay(#{dir => Dir})) || _ <- [1, 2]].

%% Twenty times as many processes live at once as may to begin with, and all of them wait again and again.
a_crowd_that_grows(Config) ->
    Tree = #{nodes => 20_000, children => 10, mean => 50, deviation => 10, turns => 1},
    Dir = recorded({witness_savina_cobwebbed_tree, run, [Tree]}, #{}, Config),
    ?assertMatch({ok, #{outcome := identical, complete := true, processes := 19_991}}, witness_replay:replay(#{dir => Dir})).

index(Element, List) -> length(lists:takewhile(fun(Other) -> Other =/= Element end, List)).

%% The comparison includes the exit reason of the first process, which is its result. A compiled pattern names memory of its
%% VM: in a replay the program gets the recorded one, and what uses it gets one of the replay VM.
what_the_vm_has_compiled_is_the_same(Config) ->
    [begin
         Dir = recorded({witness_recorded_root, run, [witness_recorded_compiled, patterns]}, Options, Config),
         {ok, Recording} = witness_log_recording:open(Dir),
         {ok, Ended} = witness_log_recording:fold(fun({exit, Reason}, _) -> Reason; (_, Found) -> Found end, none, 1, Recording),
         ?assertMatch({result, {Used, Used, true, _, _, _}}, Ended),
         [?assertMatch({ok, #{outcome := identical, complete := true}}, witness_replay:replay(#{dir => Dir})) || _ <- [1, 2]]
     end || Options <- [#{}, #{contents => true}, #{hash => true}]].

program(Case, Config) ->
    {Case, Module, Function} = lists:keyfind(Case, 1, programs()),
    program(Case, Module, Function, Config).

program(Case, Module, Function, Config) ->
    Replays = times("WITNESS_REPLAYS", 2),
    One = fun(_) -> recorded_and_replayed([Module, Function], Replays, Config) end,
    Numbers = lists:seq(1, times("WITNESS_REPLAY_RECORDINGS", 1)),
    case os:getenv("WITNESS_REPLAY_DONE", "") of
        "" -> lists:foreach(One, Numbers);
        Done ->
            ct:timetrap({minutes, 40}),
            Digest = witness_replay_fuzz:digest(Function, Module, hd(proplists:get_value(pa, Config))),
            {Left, []} = witness_replay_fuzz:each(One, Numbers, fun(N) -> {Case, N, Replays, Digest} end, Done,
                                                  proplists:get_value(until, Config)),
            io:format(user, "~s: ~b left~n", [Case, Left])
    end.

recorded_and_replayed(Arguments, Replays, Config) ->
    Dir = recorded({witness_recorded_root, run, Arguments}, #{}, Config),
    Processes = processes(Dir),
    Counts = [begin
                  {ok, Report} = witness_replay:replay(#{dir => Dir}),
                  ?assertMatch({identical, #{complete := true, cut := 0, changed := [], processes := Processes}},
                               {maps:get(outcome, Report), Report}),
                  maps:get(entries, Report)
              end || _ <- lists:seq(1, Replays)],
    ?assertMatch([_], lists:uniq(Counts)),
    [].

times(Name, Default) ->
    case os:getenv(Name) of
        false -> Default;
        Number -> list_to_integer(Number)
    end.

recorded(Run, Options, Config) ->
    Dir = dir(Config),
    {ok, #{outcome := _}} =
        witness_record:record(maps:merge(#{run => Run, dir => Dir, pa => proplists:get_value(pa, Config)}, Options)),
    Dir.

dir(Config) ->
    filename:join(proplists:get_value(priv_dir, Config), "replay-" ++ integer_to_list(erlang:unique_integer([positive]))).

processes(Dir) ->
    {ok, Recording} = witness_log_recording:open(Dir),
    {ok, Processes} = witness_log_recording:processes(Recording),
    length(Processes).

%% --- generated -------------------------------------------------------------------

networks_of_processes(Config) -> generated(networks, Config).
impatient_clients_and_kills(Config) -> generated(patience, Config).

%% As many as are wanted. If a file lists what is done, one slice of the rest.
generated(Kind, Config) ->
    Folders = #{pa => proplists:get_value(programs, Config), dir => proplists:get_value(priv_dir, Config)},
    Replays = times("WITNESS_REPLAYS", 2),
    case os:getenv("WITNESS_REPLAY_DONE", "") of
        "" -> ?assertEqual([], witness_replay_fuzz:number(Kind, 1, Replays, Folders#{dir := dir(Config)}));
        Done ->
            ct:timetrap({minutes, 30}),
            {Left, Wrong} = witness_replay_fuzz:slice(Kind, times("WITNESS_REPLAY_RECORDINGS", 1), Replays, Done, Folders),
            ?assertEqual([], Wrong),
            io:format(user, "~s: ~b left~n", [Kind, Left])
    end.

%% --- funs ------------------------------------------------------------------------

%% Their order, hashes, text and digests are those that the program shows in a VM that is not recorded. The same holds if
%% contents or hashes of messages are kept.
funs_are_what_they_are_unrecorded(Config) ->
    code:purge(witness_recorded_funs),
    {module, _} = code:load_abs(filename:join(proplists:get_value(programs, Config), "witness_recorded_funs")),
    [begin
         Dir = recorded({witness_recorded_root, run, [witness_recorded_funs, {shown, [Number]}]}, Options, Config),
         {ok, Recording} = witness_log_recording:open(Dir),
         {ok, {result, Recorded}} = witness_log_recording:fold(fun({exit, Reason}, _) -> Reason; (_, Found) -> Found end,
                                                               none, 1, Recording),
         %% The order of a large map depends on the numbers of its atoms.
         Plain = maps:remove(large_map, witness_recorded_funs:shown(Number)),
         [?assertEqual({Number, What, Of}, {Number, What, plainly(maps:get(What, Recorded))})
          || What := Of0 <- Plain, Of <- [plainly(Of0)]],
         ?assertMatch({Options, {ok, #{outcome := identical, messages := Messages}}},
                      {Options, witness_replay:replay(#{dir => Dir})})
     end || {Number, Options, Messages} <- [{1, #{}, none}, {2, #{contents => true}, contents}, {3, #{hash => true}, hash},
                                            {4, #{hash => true, contents => true}, contents}, {5, #{}, none}]].

%% In the log a fun has the digest of the code that was recorded.
plainly(Term) -> unicode:characters_to_binary(io_lib:format("~p", [Term])).

funs_that_stand_in_are_the_same(Config) ->
    [begin
         Dir = recorded({witness_recorded_root, run, [witness_recorded_funs, stand_ins]}, Options, Config),
         ?assertMatch({Options, {ok, #{outcome := identical}}}, {Options, witness_replay:replay(#{dir => Dir})})
     end || Options <- [#{}, #{contents => true}, #{hash => true}]].

a_fun_with_another_environment_diverges(Config) ->
    Replayed = fun(Value, Options) ->
        Run = fun(Body) ->
            compiled(["main() -> Self = self(), spawn(fun() -> Self ! ", Body, " end), receive F -> {element(1, F()), 1} end."],
                     Config)
        end,
        Fun = fun(Of) -> ["begin X = ", Of, ", fun() -> {X, self()} end end"] end,
        Dir = dir(Config),
        {ok, #{outcome := recorded}} =
            witness_record:record(Options#{run => {witness_replayed, main, []}, dir => Dir,
                                           pa => [Run(Fun("length(get_keys())"))]}),
        {ok, Report} = witness_replay:replay(#{dir => Dir, pa => [Run(Fun(Value))], allow_changed => true}),
        maps:with([outcome, messages], Report)
    end,
    ?assertEqual(#{outcome => identical, messages => contents}, Replayed("length(get_keys())", #{contents => true})),
    ?assertEqual(#{outcome => identical, messages => contents}, Replayed("length(get_keys()) + 0", #{contents => true})),
    ?assertEqual(#{outcome => diverged, messages => contents}, Replayed("length(get_keys()) + 1", #{contents => true})),
    ?assertEqual(#{outcome => diverged, messages => hash}, Replayed("length(get_keys()) + 1", #{hash => true})),
    %% Without hashes, messages are not compared.
    ?assertEqual(#{outcome => identical, messages => none}, Replayed("length(get_keys()) + 1", #{})).

an_exit_with_a_fun_is_compared(Config) ->
    Ending = fun(Value) ->
        compiled(["main() -> X = ", Value, ", exit({stopped, #{fun() -> X end => [fun() -> {X, fun() -> X end} end]}})."], Config)
    end,
    Dir = dir(Config),
    {ok, #{outcome := recorded}} =
        witness_record:record(#{run => {witness_replayed, main, []}, dir => Dir, pa => [Ending("length(get_keys())")]}),
    Outcome = fun(Options) -> {ok, #{outcome := Found}} = witness_replay:replay(Options#{dir => Dir}), Found end,
    ?assertEqual(identical, Outcome(#{})),
    ?assertEqual(diverged, Outcome(#{pa => [Ending("length(get_keys()) + 1")], allow_changed => true})).

%% --- ends ------------------------------------------------------------------------

an_application_is_replayed(Config) ->
    App = witness_recorded_application,
    Resource = {application, App, [{description, "for tests"}, {vsn, "1"}, {modules, [App]}, {registered, []},
                                   {applications, [kernel, stdlib]}, {mod, {App, []}}]},
    Programs = proplists:get_value(programs, Config),
    ok = file:write_file(filename:join(Programs, atom_to_list(App) ++ ".app"), io_lib:format("~p.~n", [Resource])),
    Dir = dir(Config),
    {ok, #{outcome := recorded}} = witness_record:record(#{app => App, dir => Dir, pa => [Programs]}),
    Self = self(),
    Mirror = fun(Text) -> Self ! {text, unicode:characters_to_binary(Text)} end,
    ?assertMatch({ok, #{outcome := identical, complete := true}}, witness_replay:replay(#{dir => Dir, mirror => Mirror})),
    ?assertEqual(~"answered 385\n", receive {text, Text} -> Text after 0 -> none end).

a_crash_is_replayed(Config) ->
    Dir = recorded({witness_recorded_ends, crashing, []}, #{}, Config),
    ?assertMatch({ok, #{outcome := identical, processes := 1}}, witness_replay:replay(#{dir => Dir})).

a_killed_vm_is_replayed_to_a_cut(Config) ->
    Dir = recorded({witness_recorded_ends, halting, [kill]}, #{}, Config),
    ?assertMatch({ok, #{outcome := identical, complete := false, cut := 2}}, witness_replay:replay(#{dir => Dir})).

%% Wherever the files of the recording end.
a_recording_that_was_cut_is_replayed_to_there(Config) ->
    Dir = recorded({witness_recorded_root, run, [witness_recorded_mailbox, selective]}, #{compress => false}, Config),
    {ok, Order} = file:read_file(filename:join(Dir, "order")),
    ok = file:delete(filename:join(Dir, "modules")),
    lists:foreach(fun(Part) ->
        ok = file:write_file(filename:join(Dir, "order"), binary:part(Order, 0, byte_size(Order) * Part div 100)),
        ?assertMatch({ok, #{outcome := identical, complete := false}}, witness_replay:replay(#{dir => Dir, trust => true}))
    end, [0, 30, 99]).

%% The other VM has the folder of its boot script among its arguments.
a_replay_ends_with_its_caller(Config) ->
    Dir = recorded({witness_recorded_root, run, [witness_recorded_mailbox, selective]}, #{}, Config),
    Cache = filename:join(proplists:get_value(priv_dir, Config), "cache_of_the_caller"),
    ok = file:make_symlink(witness_record_code:cache(#{}), Cache),
    %% Again and again: one replay may be over before it is seen.
    Caller = spawn(fun Again() -> {ok, _} = witness_replay:replay(#{dir => Dir, cache => Cache}), Again() end),
    Running = fun() -> os:cmd("pgrep -f '" ++ Cache ++ "/[b]oot'") =/= "" end,
    witness_await:until(Running, ?REPLAY_MS),
    exit(Caller, kill),
    witness_await:until(fun() -> not Running() andalso filelib:wildcard("boot.*", Cache) -- others(Cache) =:= [] end, ?REPLAY_MS).

%% A replay a day later removes them.
what_callers_have_left_is_removed(Config) ->
    Dir = recorded({witness_recorded_root, run, [witness_recorded_mailbox, selective]}, #{}, Config),
    Cache = witness_record_code:cache(#{}),
    [Old, New] = Left = [filename:join(Cache, ["boot.none.", integer_to_list(erlang:unique_integer([positive]))])
                         || _ <- [old, new]],
    [ok = file:make_dir(Folder) || Folder <- Left],
    ok = file:write_file(filename:join(Old, "atoms"), "left"),
    ok = file:write_file_info(Old, #file_info{mtime = erlang:system_time(second) - 90_000}, [{time, posix}]),
    ?assertMatch({ok, #{outcome := identical}}, witness_replay:replay(#{dir => Dir})),
    ?assertEqual([false, true], [filelib:is_dir(Folder) || Folder <- Left]),
    ok = file:del_dir(New).

%% Replays of other VMs that use the same cache.
others(Cache) -> filelib:wildcard("boot.*", Cache) -- filelib:wildcard("boot." ++ os:getpid() ++ ".*", Cache).

output_is_dropped_or_mirrored(Config) ->
    Dir = recorded({witness_recorded_ends, late, []}, #{}, Config),
    Self = self(),
    Mirror = fun(Text) -> Self ! {text, unicode:characters_to_binary(Text)} end,
    ?assertMatch({ok, #{outcome := identical}}, witness_replay:replay(#{dir => Dir, mirror => Mirror})),
    ?assertEqual(~"last words\n", receive {text, Text} -> Text after 0 -> none end).

recorded_messages_are_compared(Config) ->
    [begin
         Dir = recorded({witness_recorded_root, run, [witness_recorded_mailbox, selective]}, #{Kept => true}, Config),
         ?assertMatch({Kept, {ok, #{outcome := identical}}}, {Kept, witness_replay:replay(#{dir => Dir})})
     end || Kept <- [hash, contents]].

%% --- refused ---------------------------------------------------------------------

a_changed_module_is_named(Config) ->
    {Dir, Ebin} = varied("1", "case get(nothing) of undefined -> 1 end", Config),
    ?assertEqual({error, {witness_replay, {changed, [witness_replayed]}}}, witness_replay:replay(#{dir => Dir, pa => [Ebin]})),
    ?assertMatch({ok, #{outcome := identical, changed := [witness_replayed]}},
                 witness_replay:replay(#{dir => Dir, pa => [Ebin], allow_changed => true})).

%% In the folder is another module since.
a_recording_is_replayed_after_a_build(Config) ->
    {Dir, Ebin} = rebuilt(#{}, Config),
    ?assertMatch({ok, #{outcome := identical, changed := [], kept := [witness_replayed]}}, witness_replay:replay(#{dir => Dir})),
    %% What the user names counts as it is.
    ?assertEqual({error, {witness_replay, {changed, [witness_replayed]}}}, witness_replay:replay(#{dir => Dir, pa => [Ebin]})),
    {ok, #{outcome := diverged, changed := [witness_replayed]}} = witness_replay:replay(#{dir => Dir, allow_changed => true}).

%% As on another machine: neither its folders nor the cache are there, and the recording is somewhere else.
a_recording_is_replayed_without_its_folders(Config) ->
    {Dir, Ebin} = rebuilt(#{}, Config),
    ok = file:del_dir_r(Ebin),
    Moved = dir(Config),
    ok = file:rename(Dir, Moved),
    Cache = dir(Config),
    [?assertMatch({ok, #{outcome := identical, kept := all}}, witness_replay:replay(#{dir => Moved, cache => Cache}))
     || _ <- [1, 2]].

code_is_kept_only_if_wanted(Config) ->
    {Dir, _} = rebuilt(#{keep_code => false}, Config),
    ?assertEqual({error, {witness_replay, {changed, [witness_replayed]}}}, witness_replay:replay(#{dir => Dir})).

an_archive_that_leads_elsewhere_is_refused(Config) ->
    {Dir, _} = rebuilt(#{}, Config),
    File = filename:join(Dir, "code.zip"),
    ?assertMatch({ok, _}, file:read_file(File)),
    Cache = dir(Config),
    lists:foreach(fun(Bytes) ->
        ok = file:write_file(File, Bytes),
        ?assertMatch({error, {witness_record_seal, _}, _}, untrusted(witness_replay:replay(#{dir => Dir, cache => Cache}))),
        {error, {witness_replay, {kept, File, Text}} = Error} = witness_replay:replay(#{dir => Dir, cache => Cache, trust => true}),
        ?assertEqual(~"it is not the code of a recording", Text),
        ?assertMatch({_, _}, binary:match(unicode:characters_to_binary(witness_replay:format_error(element(2, Error))), ~"code.zip"))
    end, [~"no archive" | [zipped(Name) || Name <- ["../x.beam", "/tmp/x.beam", "1/../../x.beam", "1/app/ebin/deep/x.beam", "x.beam",
                                                    "0/app/ebin/x.beam", "1/app/ebin/x.so", "-1/app/x.beam", "1/app/./../x.app"]]]),
    ?assertEqual([], filelib:wildcard(filename:join([Cache, "sets", "code-*"]))).

%% A module that the recording does not name, or with another digest.
kept_code_is_only_what_was_recorded(Config) ->
    {Dir, Ebin} = rebuilt(#{}, Config),
    {ok, Beam} = file:read_file(filename:join(Ebin, "witness_replayed.beam")),
    {ok, [{Name, Kept}]} = zip:unzip(filename:join(Dir, "code.zip"), [memory]),
    lists:foreach(fun(Files) ->
        {ok, {_, Zip}} = zip:create("code.zip", Files, [memory]),
        ok = file:write_file(filename:join(Dir, "code.zip"), Zip),
        {error, {witness_replay, {kept, _, Text}}} = witness_replay:replay(#{dir => Dir, cache => dir(Config), trust => true}),
        ?assertMatch({_, _}, binary:match(iolist_to_binary(Text), ~" is not one that was recorded"))
    end, [[{Name, Beam}], [{Name, Kept}, {filename:join(filename:dirname(Name), "witness_other.beam"), Kept}]]).

untrusted({error, {witness_replay, {untrusted, Why, Named}}}) -> {error, Why, Named}.

zipped(Name) ->
    {ok, {_, Zip}} = zip:create("code.zip", [{"1/app/ebin/witness_replayed.beam", ~"code"}, {Name, ~"code"}], [memory]),
    Zip.

%% A recording, and its folder, in which the module was compiled again.
rebuilt(Options, Config) ->
    Ebin = variant("1", Config),
    Dir = dir(Config),
    {ok, #{outcome := recorded}} =
        witness_record:record(Options#{run => {witness_replayed, main, []}, dir => Dir, pa => [Ebin]}),
    Other = variant("erlang:system_time()", Config),
    {ok, _} = file:copy(filename:join(Other, "witness_replayed.beam"), filename:join(Ebin, "witness_replayed.beam")),
    {Dir, Ebin}.

a_recording_of_another_user_is_refused(Config) ->
    {Dir, _} = varied("1", "1", Config),
    File = filename:join(Dir, "data"),
    %% If this user may not give a file away, a link to it takes its place, which has the same effect.
    case file:change_owner(File, 12345) of
        ok -> ok;
        {error, eperm} -> ok = file:rename(File, Dir ++ ".data"), ok = file:make_symlink(Dir ++ ".data", File)
    end,
    ?assertMatch({error, {witness_replay, {untrusted, {witness_record_seal, {file, File, _}}, _}}},
                 witness_replay:replay(#{dir => Dir})),
    {2, Text} = witness_command(["replay", Dir]),
    ?assertMatch({_, _}, binary:match(Text, ~"--trust")),
    {Code, Trusted} = witness_command(["replay", "--trust", Dir]),
    ?assertEqual({0, nomatch}, {Code, binary:match(Trusted, ~"--trust")}).

another_build_of_otp_is_refused(Config) ->
    {Dir, _} = varied("1", "1", Config),
    header(Dir, fun(Header) -> Header#{erts := ~"1.2.3"} end),
    ?assertMatch({error, {witness_replay, {release, _, _}}}, witness_replay:replay(#{dir => Dir})),
    header(Dir, fun(Header) -> Header#{erts := list_to_binary(erlang:system_info(version)), node := a@b} end),
    ?assertEqual({error, {witness_replay, {node, a@b}}}, witness_replay:replay(#{dir => Dir})),
    header(Dir, fun(Header) -> Header#{node := nonode@nohost, late => true} end),
    ?assertEqual({error, {witness_replay, late}}, witness_replay:replay(#{dir => Dir})),
    header(Dir, fun(Header) -> maps:without([digests, late], Header) end),
    ?assertEqual({error, {witness_replay, no_code}}, witness_replay:replay(#{dir => Dir})).

header(Dir, Change) ->
    {ok, File} = witness_log_recording_file:open(Dir, header),
    {ok, Bytes, _} = witness_log_recording_file:read(witness_log_recording_file:first_offset(), File),
    Id = witness_log_recording_file:recording(File),
    ok = witness_log_recording_file:close(File),
    Block = witness_log_recording_file:block(term_to_binary(Change(binary_to_term(Bytes))), none),
    ok = file:write_file(filename:join(Dir, "header"), [witness_log_recording_file:head(header, Id), Block]).

damage_is_told(Config) ->
    {Dir, _} = varied("1", "1", Config),
    File = filename:join(Dir, "order"),
    {ok, Order} = file:read_file(File),
    Last = byte_size(Order) - 1,
    <<Before:Last/binary, Byte>> = Order,
    ok = file:write_file(File, <<Before/binary, (Byte bxor 1)>>),
    {error, Reason} = witness_replay:replay(#{dir => Dir, trust => true}),
    ?assertMatch({_, _}, binary:match(unicode:characters_to_binary(witness:format_error(Reason)), ~"damaged")),
    ?assertMatch({error, {witness_log_recording, _}}, witness_replay:replay(#{dir => filename:join(Dir, "none")})).

a_module_that_is_not_woven_is_refused(Config) ->
    Unwoven = witness_record_programs:unwoven(proplists:get_value(programs, Config)),
    Dir = recorded({witness_recorded_root, run, [witness_recorded_mailbox, relayed]},
                   #{pa => [proplists:get_value(programs, Config), Unwoven]}, Config),
    ?assertMatch({error, {witness_replay, {unwoven, [{witness_recorded_relay, {no_debug_info, _, true}}]}}},
                 witness_replay:replay(#{dir => Dir})).

%% Since OTP 28 it is native code that holds a compiled pattern. The log has the reference, and a replay has a pattern of its
%% own for it.
a_pattern_in_a_persistent_term_is_the_same(Config) ->
    Ebin = compiled("main() -> {ok, Made} = re:compile(\"b+\"), persistent_term:put(?MODULE, Made), "
                    "{match, [{1, 2}]} = re:run(\"abbc\", persistent_term:get(?MODULE)).", Config),
    Dir = dir(Config),
    {ok, #{outcome := recorded, ended := {returned, normal}}} =
        witness_record:record(#{run => {witness_replayed, main, []}, dir => Dir, pa => [Ebin]}),
    ?assertMatch({ok, #{outcome := identical}}, witness_replay:replay(#{dir => Dir})).

%% The log has no number for such calls, as in recordings of earlier builds.
a_recording_without_entries_of_exits_is_replayed(Config) ->
    Child = fun(Does) ->
        compiled(["main() -> {Pid, Ref} = spawn_monitor(fun() -> ", Does, " end), exit(Pid, stopped), "
                  "receive {'DOWN', Ref, process, Pid, stopped} -> ok end."], Config)
    end,
    Dir = dir(Config),
    {ok, #{outcome := recorded, ended := {returned, normal}}} =
        witness_record:record(#{run => {witness_replayed, main, []}, dir => Dir,
                                pa => [Child("(fun Forever() -> Forever() end)()")]}),
    Changed = #{dir => Dir, pa => [Child("exit(another)")], allow_changed => true},
    ?assertMatch({ok, #{outcome := identical, killed := 1}}, witness_replay:replay(Changed)),
    Added = witness_record_calls:added(),
    header(Dir, fun(#{calls := Calls} = Header) -> Header#{calls := maps:without(Added, Calls)} end),
    ?assertMatch({ok, #{outcome := identical, killed := 1}}, witness_replay:replay(#{dir => Dir, trust => true})),
    ?assertMatch({ok, #{outcome := identical, killed := 1}}, witness_replay:replay(Changed#{trust => true})).

a_recording_without_entries_of_hibernation_is_replayed(Config) ->
    Child = fun(Does) ->
        compiled(["-export([next/0]).\nnext() -> receive go -> ok end.\n"
                  "main() -> {Pid, Ref} = spawn_monitor(fun() -> ", Does,
                  " end), Pid ! go, receive {'DOWN', Ref, process, Pid, normal} -> ok end."],
                 Config)
    end,
    Dir = dir(Config),
    {ok, #{outcome := recorded, ended := {returned, normal}}} =
        witness_record:record(#{run => {witness_replayed, main, []}, dir => Dir, pa => [Child("next()")]}),
    Changed = #{dir => Dir, pa => [Child("erlang:hibernate(witness_replayed, next, [])")], allow_changed => true, trust => true},
    ?assertMatch({ok, #{outcome := diverged}}, witness_replay:replay(Changed)),
    Added = witness_record_calls:added(),
    [begin
         header(Dir, fun(#{calls := Calls} = Header) -> Header#{calls := maps:without(Without, Calls)} end),
         ?assertMatch({ok, #{outcome := identical}}, witness_replay:replay(Changed))
     end || Without <- [[Call || {_, hibernate, _} = Call <- Added], Added]].

wrong_options_are_named(_) ->
    ?assertEqual({error, {witness_option, {missing_option, dir}}}, witness_replay:replay(#{})),
    ?assertEqual({error, {witness_option, {bad_option, allow_changed, "true or false"}}},
                 witness_replay:replay(#{dir => "x", allow_changed => yes})).

%% --- diverged --------------------------------------------------------------------

%% The child of a small program does something else than what was recorded.
varied(Recorded, Replayed, Config) ->
    [First, Second] = [variant(Body, Config) || Body <- [Recorded, Replayed]],
    Dir = dir(Config),
    {ok, #{outcome := recorded}} = witness_record:record(#{run => {witness_replayed, main, []}, dir => Dir, pa => [First]}),
    {Dir, Second}.

variant(Body, Config) ->
    compiled([
        "main() ->\n"
        "    Self = self(),\n"
        "    Child = spawn(fun() -> receive {go, From} -> From ! {first, self()}, From ! {done, self(), begin ", Body,
        " end} end end),\n"
        "    Child ! {go, Self},\n"
        "    receive {first, Child} -> ok end,\n"
        "    exit({result, receive {done, Child, Value} -> Value end}).\n"], Config).

compiled(Main, Config) ->
    Ebin = dir(Config),
    ok = filelib:ensure_path(Ebin),
    Source = filename:join(Ebin, "witness_replayed.erl"),
    ok = file:write_file(Source, ["-module(witness_replayed).\n-export([main/0]).\n", Main, "\n"]),
    {ok, _} = compile:file(Source, [debug_info, {outdir, Ebin}]),
    Ebin.

diverged(Recorded, Replayed, Config) ->
    {Dir, Ebin} = varied(Recorded, Replayed, Config),
    ?assertMatch({error, {witness_replay, {changed, _}}}, witness_replay:replay(#{dir => Dir, pa => [Ebin]})),
    {ok, #{outcome := diverged} = Report} = witness_replay:replay(#{dir => Dir, pa => [Ebin], allow_changed => true}),
    ct:pal("~p", [Report]),
    Report.

another_call_diverges(Config) ->
    #{entries := Entries, divergence := #{signature := Signature, position := 2, log := Log, program := Program, stack := Stack,
                                          recent := [Recent]}} =
        diverged("erlang:system_time()", "erlang:monotonic_time()", Config),
    ?assertMatch({_, _}, binary:match(Log, ~"erlang:system_time/0")),
    %% The child has taken its message, and the other one has spawned it, at least.
    ?assert(Entries >= 2),
    ?assertEqual({~"witness_replayed:'-main/0-fun-0-'/0", ~"calls erlang:monotonic_time()"}, {Signature, Program}),
    ?assertMatch({_, _}, binary:match(hd(Stack), ~"witness_replayed.erl")),
    ?assertMatch(<<"takes a message of <0.", _/binary>>, Recent).

a_message_that_is_not_sent_is_waited_for(Config) ->
    #{waiting := [#{program := Program}]} = diverged("1", "exit(normal)", Config),
    ?assertEqual(~"waits for it, and the other one has ended", Program).

a_process_that_ends_early_diverges(Config) ->
    #{divergence := #{program := Program}} = diverged("erlang:system_time()", "1", Config),
    ?assertEqual(~"ends: normal", Program).

a_process_that_goes_on_diverges(Config) ->
    #{divergence := #{log := Log}} = diverged("1", "receive never -> ok after 0 -> 1 end", Config),
    ?assertEqual(~"ends: normal", Log).

%% A process that ends by itself was not killed, and one that was may have been killed before it does something else. The
%% program may also catch what is raised.
an_exit_that_is_not_made_diverges(Config) ->
    Ending = fun(Own, Others) ->
        ["begin {Pid, Ref} = spawn_monitor(fun() -> (catch exit(caught)), ", Own, " end), ", Others,
         "receive {'DOWN', Ref, process, Pid, Reason} -> Reason end end"]
    end,
    #{divergence := #{log := Log, recent := [Recent]}} =
        diverged(Ending("exit(stopped)", ""), Ending("receive never -> ok after 0 -> ok end", ""), Config),
    ?assertEqual({~"raises an exit", ~"raises an exit"}, {Log, Recent}),
    {Dir, Ebin} = varied(Ending("receive never -> ok end", "exit(Pid, stopped), "),
                         Ending("self() ! x, receive x -> ok end", "exit(Pid, stopped), "), Config),
    ?assertMatch({ok, #{outcome := identical, killed := 1}},
                 witness_replay:replay(#{dir => Dir, pa => [Ebin], allow_changed => true})).

%% The first process has another result.
another_result_diverges(Config) ->
    #{divergence := #{log := Log, program := Program}} = diverged("one", "two", Config),
    ?assertEqual({~"ends: {result,one}", ~"ends: {result,two}"}, {Log, Program}).

%% --- command ---------------------------------------------------------------------

the_command_replays(Config) ->
    {Dir, _} = varied("1", "1", Config),
    {0, Text} = witness_command(["replay", Dir]),
    ?assertMatch({_, _}, binary:match(Text, ~"IDENTICAL")),
    %% Standard error comes first, for example that the command is built.
    {0, Output} = witness_command(["replay", "--json", Dir]),
    Json = lists:last(string:split(string:trim(Output), ~"\n", all)),
    ?assertMatch(#{~"type" := ~"replay", ~"outcome" := ~"identical", ~"processes" := 2}, json:decode(Json)).

the_command_tells_a_divergence(Config) ->
    {Dir, Ebin} = varied("erlang:system_time()", "1", Config),
    {2, Refused} = witness_command(["replay", "--pa", Ebin, Dir]),
    ?assertMatch({_, _}, binary:match(Refused, ~"witness_replayed")),
    {1, Text} = witness_command(["replay", "--pa", Ebin, "--allow-changed", Dir]),
    ?assertMatch({_, _}, binary:match(Text, ~"DIVERGED")).

witness_command(Arguments) ->
    Witness = filename:join([witness_checkout:root(filename:dirname(code:which(?MODULE))), "bin", "witness"]),
    Port = open_port({spawn_executable, Witness}, [{args, Arguments}, exit_status, stderr_to_stdout, binary]),
    output(Port, []).

output(Port, Gathered) ->
    receive
        {Port, {data, Data}} -> output(Port, [Gathered | Data]);
        {Port, {exit_status, Status}} -> {Status, iolist_to_binary(Gathered)}
    end.
