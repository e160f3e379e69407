%% The writer, with a recorder that hands over what it is given, and with the real one.
-module(witness_record_writer_tests).

-include_lib("eunit/include/eunit.hrl").
-include_lib("kernel/include/file.hrl").

-define(KILLS, list_to_integer(os:getenv("WITNESS_RECORD_KILLS", "30"))).
%% After so many seconds no further VM is killed.
-define(SLICE, list_to_integer(os:getenv("WITNESS_RECORD_KILLS_SECONDS", "86400"))).

%% --- writing ---------------------------------------------------------------------

what_is_handed_over_is_written_test() ->
    [with_writer(#{compress => Compress}, fun(Dir, Writer) ->
        Processes = processes(20, 200),
        _ = rand:seed(exsss, 3),
        Parts = witness_recording_sample:parts(Processes, 500),
        [ok = witness_recording_sample:give([Part]) || Part <- Parts],
        {ok, Summary} = witness_record_writer:finish(Writer, [{lists, ~"md5", true}]),
        {ok, Read} = witness_recording_sample:read(Dir),
        ?assertMatch(#{info := #{complete := true, ended := finished, indexed := true}, modules := [{lists, ~"md5", true}]}, Read),
        ?assertEqual(witness_recording_sample:plain(Processes), maps:get(entries, Read)),
        ?assertEqual(20, length(maps:get(processes, Read))),
        [begin
             Size = filelib:file_size(witness_log_recording_file:name(Dir, Kind)),
             Raw = iolist_size([Part || {K, Part} <- Parts, K =:= Kind]),
             ?assertMatch(#{bytes := Size, raw := Raw}, maps:get(Kind, Summary))
         end || Kind <- [order, data, processes]]
    end) || Compress <- [true, false]].

compression_makes_it_smaller_test() ->
    [Small, Large] = [with_writer(#{compress => Compress}, fun(_, Writer) ->
        ok = witness_recording_sample:give(witness_recording_sample:parts(processes(20, 500), 500)),
        {ok, #{data := #{bytes := Bytes}}} = witness_record_writer:finish(Writer, []),
        Bytes
    end) || Compress <- [true, false]],
    ?assert(2 * Small < Large).

%% The names of a VM's atoms, by the order of its table.
all_atoms_are_there_test() ->
    with_writer(#{}, fun(Dir, Writer) ->
        {ok, _} = witness_record_writer:finish(Writer, []),
        {ok, R} = witness_log_recording:open(Dir),
        {ok, Names} = witness_log_recording:atoms(R),
        ?assert(length(Names) > 10_000),
        ?assertEqual(length(Names), length(lists:usort(Names))),
        [?assert(lists:member(atom_to_binary(Atom), Names)) || Atom <- [ok, ?MODULE, 'Ünïcode']],
        ?assertEqual(Names, [atom_to_binary(binary_to_term(<<131, 75, N:24>>)) || N <- lists:seq(0, length(Names) - 1)])
    end).

the_header_says_what_ran_test() ->
    with_writer(#{}, fun(Dir, Writer) ->
        {ok, R} = witness_log_recording:open(Dir),
        Otp = list_to_binary(erlang:system_info(otp_release)),
        ?assertMatch(#{otp := Otp, erts := _, started := _, calls := #{}}, witness_log_recording:header(R)),
        ?assertMatch(#{complete := false, ended := unknown}, witness_log_recording:info(R)),
        {ok, _} = witness_record_writer:finish(Writer, [])
    end).

no_other_user_may_read_it_test() ->
    with_writer(#{}, fun(Dir, Writer) ->
        {ok, _} = witness_record_writer:finish(Writer, []),
        {ok, #file_info{mode = Mode}} = file:read_file_info(Dir),
        ?assertEqual(8#700, Mode band 8#777),
        {ok, Names} = file:list_dir(Dir),
        ?assertEqual(["data", "header", "index", "modules", "order", "processes"], lists:sort(Names)),
        [begin
             {ok, #file_info{mode = M}} = file:read_file_info(filename:join(Dir, Name)),
             ?assertEqual({Name, 8#600}, {Name, M band 8#777})
         end || Name <- Names]
    end).

what_is_there_is_not_overwritten_test() ->
    with_writer(#{}, fun(Dir, Writer) ->
        {ok, _} = witness_record_writer:finish(Writer, []),
        Name = witness_log_recording_file:name(Dir, processes),
        ?assertEqual({error, {file, Name, eexist}}, start(Dir, #{})),
        ?assertMatch({ok, _}, witness_recording_sample:read(Dir))
    end).

a_folder_that_cannot_be_made_is_an_error_test() ->
    Dir = filename:join(witness_recording_sample:folder("none"), "below"),
    ok = witness_recording_sample:state(),
    ?assertEqual({error, {file, Dir, enoent}}, start(Dir, #{})).

%% What processes have buffered is flushed by time: the recording has not ended.
what_is_written_by_time_can_be_read_meanwhile_test() ->
    with_writer(#{flush => 1}, fun(Dir, Writer) ->
        Processes = processes(3, 50),
        ok = witness_recording_sample:give(witness_recording_sample:parts(Processes, 500)),
        Whole = witness_recording_sample:plain(Processes),
        ok = witness_await:until(fun() ->
            {ok, #{entries := Entries, info := #{complete := false}}} = witness_recording_sample:read(Dir),
            Entries =:= Whole
        end),
        {ok, _} = witness_record_writer:finish(Writer, [])
    end).

%% --- the end ---------------------------------------------------------------------

a_recorder_that_has_ended_says_why_test() ->
    with_writer(#{}, fun(Dir, Writer) ->
        Processes = processes(3, 50),
        ok = witness_recording_sample:give(witness_recording_sample:parts(Processes, 500)),
        ok = witness_recording_sample:ended(budget),
        ?assertMatch({ended, budget, #{order := #{}}}, witness_record_writer:finish(Writer, [])),
        {ok, #{entries := Entries, info := Info}} = witness_recording_sample:read(Dir),
        ?assertMatch(#{ended := budget, complete := true}, Info),
        ?assertEqual(witness_recording_sample:plain(Processes), Entries)
    end).

when_its_owner_dies_all_is_written_test() ->
    Dir = witness_recording_sample:folder("owner"),
    ok = witness_recording_sample:state(),
    Processes = processes(3, 50),
    ok = witness_recording_sample:give(witness_recording_sample:parts(Processes, 500)),
    Test = self(),
    {Owner, Ref} = spawn_monitor(fun() ->
        {ok, Writer} = start(Dir, #{}),
        Test ! {writer, Writer},
        receive stop -> exit(killed_by_test) end
    end),
    Writer = receive {writer, W} -> W end,
    WriterRef = monitor(process, Writer),
    Owner ! stop,
    receive {'DOWN', Ref, process, Owner, killed_by_test} -> ok end,
    receive {'DOWN', WriterRef, process, Writer, _} -> ok end,
    {ok, #{entries := Entries, info := Info}} = witness_recording_sample:read(Dir),
    ?assertMatch(#{ended := {owner, killed_by_test}}, Info),
    ?assertEqual(witness_recording_sample:plain(Processes), Entries),
    witness_recording_sample:delete(Dir).

%% The writer makes no index for a large recording; a reader makes it.
an_index_is_made_up_to_a_size_test() ->
    with_writer(#{index => 100}, fun(Dir, Writer) ->
        Processes = processes(10, 100),
        ok = witness_recording_sample:give(witness_recording_sample:parts(Processes, 500)),
        {ok, _} = witness_record_writer:finish(Writer, []),
        ?assertNot(filelib:is_regular(witness_log_recording_file:name(Dir, index))),
        {ok, #{entries := Entries, info := #{complete := true}}} = witness_recording_sample:read(Dir),
        ?assertEqual(witness_recording_sample:plain(Processes), Entries)
    end).

%% --- full disks ------------------------------------------------------------------

a_full_disk_ends_the_recording_and_nothing_else_test_() ->
    {setup, fun small_disk/0, fun unmount/1, fun
        (none) -> [];
        (Mount) -> [{timeout, 60, fun() -> full(Mount) end}]
    end}.

full(Mount) ->
    Dir = filename:join(Mount, "rec"),
    ok = witness_recording_sample:state(),
    {ok, Writer} = start(Dir, #{compress => false, flush => 1}),
    Processes = processes(20, 2000),
    _ = rand:seed(exsss, 3),
    %% In small pieces, as a program gives them.
    [begin
         [{flushed, N}] = ets:lookup(witness_recording_sample, flushed),
         ok = witness_recording_sample:give([Part]),
         ok = witness_await:until(fun() -> ets:lookup_element(witness_recording_sample, flushed, 2) > N orelse is_stopped() end)
     end || Part <- witness_recording_sample:parts(Processes, 500), not is_stopped()],
    ok = witness_await:until(fun is_stopped/0),
    {ended, {file, _, enospc}, _} = witness_record_writer:finish(Writer, []),
    {ok, #{entries := Read, info := #{complete := Complete, cut := []}}} = witness_recording_sample:read(Dir),
    ?assertNot(Complete),
    Whole = witness_recording_sample:plain(Processes),
    ?assert(maps:size(Read) > 0),
    [?assert(lists:prefix(Entries, maps:get(Id, Whole))) || Id := Entries <- Read],
    ?assert(lists:sum([length(Entries) || _ := Entries <- Read]) > 100).

is_stopped() -> ets:lookup(witness_recording_sample, stopped) =:= [{stopped, true}].

%% Only an administrator of the machine can mount one; without it the test is skipped.
small_disk() ->
    Mount = witness_recording_sample:folder("disk"),
    ok = file:make_dir(Mount),
    case os:cmd("mount -t tmpfs -o size=128k tmpfs " ++ Mount ++ " 2>&1 && echo mounted") of
        "mounted\n" -> Mount;
        _ ->
            ok = file:del_dir(Mount),
            none
    end.

unmount(none) -> ok;
unmount(Mount) ->
    "" = os:cmd("umount " ++ Mount),
    ok = file:del_dir(Mount).

%% --- kill -9 ---------------------------------------------------------------------

%% A VM that dies leaves the beginning of what each process did.
a_vm_that_is_killed_leaves_a_prefix_of_each_process_test_() ->
    {timeout, 600 + 20 * ?KILLS, fun() ->
        Counts = kills([N || N <- lists:seq(1, ?KILLS), not is_done(N)], erlang:monotonic_time(second) + ?SLICE, []),
        ?assert(Counts =:= [] orelse lists:sum(Counts) > 0)
    end}.

kills([], _, Counts) -> Counts;
kills([N | Rest] = Left, End, Counts) ->
    case erlang:monotonic_time(second) < End of
        true -> kills(Rest, End, [kill(N) | Counts]);
        false ->
            io:format(user, "~b VMs are still to be killed: the next one goes on there~n", [length(Left)]),
            Counts
    end.

kill(N) ->
    {Thousands, _} = rand:uniform_s(200, rand:seed_s(exsss, N)),
    Count = killed(20 + Thousands),
    done(N),
    Count.

%% If a file is named, it has the numbers that are done: after an interrupt the test goes on there.
is_done(N) ->
    case progress() of
        none -> false;
        File ->
            {ok, Done} = case file:consult(File) of {error, enoent} -> {ok, []}; Read -> Read end,
            lists:member(N, Done)
    end.

done(N) ->
    case progress() of
        none -> ok;
        File ->
            ok = filelib:ensure_dir(File),
            ok = file:write_file(File, io_lib:format("~b.~n", [N]), [append]),
            N rem 50 =:= 0 andalso io:format(user, "killed ~b of ~b~n", [N, ?KILLS])
    end.

progress() ->
    case os:getenv("WITNESS_RECORD_KILLS_DONE", "") of
        "" -> none;
        File -> File
    end.

%% Kills the VM once it has reported so many thousands of entries. Returns how many entries can be read.
killed(Thousands) ->
    Dir = witness_recording_sample:folder("killed"),
    Folders = lists:append([["-pa", filename:dirname(code:which(Module))]
                            || Module <- [witness_record_writer, witness_record_victim]]),
    Erl = filename:join([code:root_dir(), "bin", "erl"]),
    Port = open_port({spawn_executable, Erl}, [
        {args, Folders ++ ["-noinput", "-s", "witness_record_victim", "main", "-extra", Dir]}, exit_status, binary]),
    ok = told(Port, Thousands),
    {os_pid, Pid} = erlang:port_info(Port, os_pid),
    "" = os:cmd("kill -9 " ++ integer_to_list(Pid)),
    ok = ended(Port),
    {ok, R} = witness_log_recording:open(Dir),
    ?assertMatch(#{complete := false, ended := unknown}, witness_log_recording:info(R)),
    Counts = [begin
        {ok, Count} = witness_log_recording:fold(fun(Entry, N) ->
            ?assertEqual({Id, N + 1, witness_record_victim:entry(Id, N + 1)}, {Id, N + 1, Entry}),
            N + 1
        end, 0, Id, R),
        Count
    end || Id <- witness_log_recording:ids(R)],
    witness_recording_sample:delete(Dir),
    lists:sum(Counts).

told(_, Left) when Left < 0 -> ok;
told(Port, Left) ->
    receive
        {Port, {data, Dots}} -> told(Port, Left - byte_size(Dots));
        {Port, {exit_status, Status}} -> error({ended, Status})
    end.

ended(Port) ->
    receive
        {Port, {data, _}} -> ended(Port);
        {Port, {exit_status, Status}} -> ?assertEqual(128 + 9, Status)
    end.

%% --- the rest --------------------------------------------------------------------

processes(Number, Most) ->
    [{#{id => Id, parent => 0, place => Id - 1, pid => self(), signature => {m, f, [Id]}}, entries(Id, Id * Most div Number)}
     || Id <- lists:seq(1, Number)].

entries(Id, Length) ->
    [case (Id + N) rem 7 of
         0 -> {content, {Id, N, lists:seq(1, N rem 30)}};
         1 -> {result, {ets, lookup, 2}, [{key, N}]};
         2 -> timeout;
         _ -> {from, 1 + N rem 9}
     end || N <- lists:seq(1, Length)].

start(Dir, Options) ->
    witness_record_writer:start_link(Dir, witness_recording_sample:header(false), Options#{native => witness_recording_sample}).

with_writer(Options, Fun) ->
    Dir = witness_recording_sample:folder("writer"),
    ok = witness_recording_sample:state(),
    {ok, Writer} = start(Dir, Options),
    try
        Fun(Dir, Writer)
    after
        witness_recording_sample:delete(Dir)
    end.
