-module(witness_log_writer_tests).
-moduledoc "Logs that are written: what is in the file, when, and what becomes of it when something fails.".
-include_lib("kernel/include/file.hrl").
-include_lib("eunit/include/eunit.hrl").

%% --- what is in the file ---------------------------------------------------------

events_are_read_back_as_they_were_test_() ->
    [{Name, in_folder(fun(Dir) ->
        File = filename:join(Dir, Name),
        Log = begun(File),
        [ok = witness_log_writer:write([E], Log) || E <- events()],
        ok = witness_log_writer:close(Log),
        ?assertEqual(events(), read(File, Format))
     end)} || {Name, Format} <- [{"a.log", text}, {"a", text}, {"a.jsonl", json}, {"a.NDJSON", json}]].

what_is_written_by_many_is_whole_test_() ->
    in_folder(fun(Dir) ->
        File = filename:join(Dir, "many.log"),
        Log = begun(File),
        P = self(),
        Events = [[{send, P, P, {Writer, N}, undefined} || N <- lists:seq(1, 300)] || Writer <- lists:seq(1, 8)],
        Writers = [spawn_monitor(fun() -> [ok = witness_log_writer:write([E], Log) || E <- Own] end) || Own <- Events],
        [receive {'DOWN', Ref, process, _, Reason} -> ?assertEqual(normal, Reason) end || {_, Ref} <- Writers],
        ok = witness_log_writer:close(Log),
        Read = read(File, text),
        ?assertEqual(Events, [[E || {send, _, _, {Writer, _}, _} = E <- Read, Writer =:= N] || N <- lists:seq(1, 8)])
    end).

nothing_comes_between_what_is_written_together_test_() ->
    in_folder(fun(Dir) ->
        File = filename:join(Dir, "together.log"),
        Log = begun(File),
        Write = fun(Events) -> [ok = witness_log_writer:write(Events, Log) || _ <- lists:seq(1, 100)] end,
        Pairs = [[{exit, self(), {Name, N}, undefined} || N <- [1, 2]] || Name <- [a, b, c]],
        Writers = [spawn_monitor(fun() -> Write(Pair) end) || Pair <- Pairs],
        [receive {'DOWN', Ref, process, _, _} -> ok end || {_, Ref} <- Writers],
        ok = witness_log_writer:close(Log),
        ?assertEqual([], unpaired(read(File, text)))
    end).

unpaired([{exit, P, {Name, 1}, _}, {exit, P, {Name, 2}, _} | Events]) -> unpaired(Events);
unpaired(Events) -> Events.

%% Its lines are whole, and nothing follows what is missing.
it_becomes_no_larger_than_it_may_test_() ->
    in_folder(fun(Dir) ->
        File = filename:join(Dir, "small.log"),
        {ok, Log} = witness_log_writer:open(File, 500),
        ok = witness_log_writer:begin_log(Log),
        Long = {exit, self(), lists:duplicate(600, x), undefined},
        [begin
             ok = witness_log_writer:write([E], Log),
             ok = witness_log_writer:write_head({receives, delivered}, Log),
             written(Log)
         end || E <- [hd(events()), Long, hd(events())]],
        {error, Why} = witness_log_writer:close(Log),
        ?assertEqual(File ++ ": it may not become larger (log_size)", unicode:characters_to_list(Why)),
        ?assertMatch([_, {receives, delivered}], read(File, text))
    end).

%% The process has no line any more that waits.
written({_, _, Waiting}) -> witness_await:until(fun() -> atomics:get(Waiting, 1) =:= 0 end).

a_head_is_written_once_and_in_its_place_test_() ->
    in_folder(fun(Dir) ->
        File = filename:join(Dir, "head.log"),
        Log = begun(File),
        Head = {receives, delivered},
        erlang:suspend_process(element(1, Log)),
        [begin
             ok = witness_log_writer:write([{exit, self(), N, undefined}], Log),
             ok = witness_log_writer:write_head(Head, Log)
         end || N <- [1, 2, 3]],
        erlang:resume_process(element(1, Log)),
        written(Log),
        ok = witness_log_writer:close(Log),
        [First | Others] = [{exit, self(), N, undefined} || N <- [1, 2, 3]],
        ?assertEqual([First, Head | Others], read(File, text))
    end).

%% --- the file --------------------------------------------------------------------

an_earlier_log_stays_until_the_new_one_is_begun_test_() ->
    in_folder(fun(Dir) ->
        File = filename:join(Dir, "earlier.log"),
        ok = file:write_file(File, "earlier"),
        {ok, Log} = witness_log_writer:open(File),
        ?assertEqual({ok, ~"earlier"}, file:read_file(File)),
        ok = witness_log_writer:begin_log(Log),
        ?assertEqual({ok, ~""}, file:read_file(File)),
        ok = witness_log_writer:close(Log)
    end).

only_its_owner_may_read_a_log_test_() ->
    in_folder(fun(Dir) ->
        File = filename:join(Dir, "private.log"),
        ok = file:write_file(File, ""),
        ok = file:change_mode(File, 8#644),
        {ok, Log} = witness_log_writer:open(File),
        ?assertEqual([8#600, 8#644], lists:sort([mode(F) || F <- files(Dir)])),
        ok = witness_log_writer:begin_log(Log),
        ?assertEqual([8#600], [mode(F) || F <- files(Dir)]),
        ok = witness_log_writer:close(Log)
    end).

mode(File) ->
    {ok, #file_info{mode = Mode}} = file:read_file_info(File),
    Mode band 8#777.

a_link_stays_and_what_it_stands_for_is_replaced_test_() ->
    in_folder(fun(Dir) ->
        Link = filename:join(Dir, "link.log"),
        ok = file:make_symlink("other.log", Link),
        Log = begun(Link),
        ok = witness_log_writer:write(events(), Log),
        ok = witness_log_writer:close(Log),
        ?assertEqual({ok, "other.log"}, file:read_link(Link)),
        ?assertEqual(events(), read(filename:join(Dir, "other.log"), text)),
        ?assertEqual(2, length(files(Dir)))
    end).

what_cannot_be_written_is_told_at_once_test_() ->
    in_folder(fun(Dir) ->
        ok = file:write_file(filename:join(Dir, "file"), ""),
        [begin
             {error, Text} = witness_log_writer:open(filename:join(Dir, Name)),
             ?assertNotEqual({Name, nomatch}, {Name, string:find(Text, Expected)})
         end || {Name, Expected} <- [{"", "illegal operation on a directory"},
                                     {"nowhere/a.log", "no such file or directory"},
                                     {"file/a.log", "not a directory"},
                                     {"a.log.gz", "without .gz"},
                                     {"a.jsonl.ZST", "without .ZST"}]],
        ?assertEqual(1, length(files(Dir)))
    end).

%% --- ends ------------------------------------------------------------------------

a_log_that_is_not_begun_leaves_nothing_test_() ->
    in_folder(fun(Dir) ->
        ended(fun() -> {ok, Log} = witness_log_writer:open(filename:join(Dir, "a.log")), Log end),
        ?assertEqual([], files(Dir))
    end).

what_was_written_before_the_opener_died_is_there_test_() ->
    in_folder(fun(Dir) ->
        File = filename:join(Dir, "died.log"),
        Events = events(),
        ended(fun() ->
            Log = begun(File),
            ok = witness_log_writer:write(Events, Log),
            Log
        end),
        ?assertEqual(Events, read(File, text))
    end).

%% Kills the process that opened a log, and waits until the log has ended.
ended(Open) ->
    Self = self(),
    Opener = spawn(fun() -> Self ! {opened, Open()}, receive never -> ok end end),
    Log = receive {opened, Opened} -> Opened end,
    Ref = monitor(process, element(1, Log)),
    exit(Opener, kill),
    receive {'DOWN', Ref, process, _, Reason} -> ?assertEqual(normal, Reason) end.

a_full_disk_is_told_at_the_end_test() ->
    Log = begun("/dev/full"),
    [ok = witness_log_writer:write(events(), Log) || _ <- lists:seq(1, 100)],
    {error, Text} = witness_log_writer:close(Log),
    ?assertEqual(~"/dev/full: no space left on device", unicode:characters_to_binary(Text)).

what_is_closed_as_a_whole_is_there_or_is_not_test_() ->
    in_folder(fun(Dir) ->
        File = filename:join(Dir, "whole.log"),
        Log = begun(File),
        ok = witness_log_writer:write(events(), Log),
        ok = witness_log_writer:close_whole(Log),
        ?assertEqual(events(), read(File, text)),
        %% A device is not deleted.
        Full = begun("/dev/full"),
        ok = witness_log_writer:write(events(), Full),
        ?assertMatch({error, _}, witness_log_writer:close_whole(Full)),
        ?assertMatch({ok, _}, file:read_file_info("/dev/full"))
    end).

%% 8 MB; about half of it may wait.
a_process_that_writes_too_fast_waits_test_() ->
    in_folder(fun(Dir) ->
        File = filename:join(Dir, "fast.log"),
        Log = begun(File),
        E = {exit, self(), binary:copy(~"x", 1_000_000), undefined},
        erlang:suspend_process(element(1, Log)),
        Self = self(),
        Write = fun(N) -> ok = witness_log_writer:write([E], Log), Self ! N end,
        {P, Ref} = spawn_monitor(fun() -> lists:foreach(Write, lists:seq(1, 8)) end),
        [receive N -> ok end || N <- [1, 2, 3, 4]],
        waits(P),
        receive 5 -> error(has_not_waited) after 0 -> ok end,
        erlang:resume_process(element(1, Log)),
        receive {'DOWN', Ref, process, P, Reason} -> ?assertEqual(normal, Reason) end,
        ok = witness_log_writer:close(Log),
        ?assertEqual(lists:duplicate(8, E), read(File, text))
    end).

waits(P) -> witness_await:until(fun() -> {status, Status} = process_info(P, status), Status =:= waiting end).

a_process_that_writes_to_a_dead_log_exits_test_() ->
    in_folder(fun(Dir) ->
        process_flag(trap_exit, true),
        {Writer, _, _} = Log = begun(filename:join(Dir, "dead.log")),
        exit(Writer, kill),
        receive {'EXIT', Writer, killed} -> ok end,
        Large = {exit, self(), binary:copy(~"x", 5_000_000), undefined},
        ?assertExit({log_ended, _}, witness_log_writer:write([Large], Log)),
        ?assertExit({log_ended, _}, witness_log_writer:close(Log))
    end).

%% ---------------------------------------------------------------------------------

begun(File) ->
    {ok, Log} = witness_log_writer:open(File),
    ok = witness_log_writer:begin_log(Log),
    Log.

events() ->
    P = self(),
    C = list_to_pid("<0.12345.0>"),
    [{init, P, undefined, {m, f, [1, "two"]}, undefined}, {fork, P, C, {m, g, []}, 17}, {init, C, P, {m, g, []}, 18},
     {send, C, P, #{~"a" => 'B c', [1.5 | x] => 7}, -3}, {recv, P, C, <<1, 2, 255>>, undefined},
     {exit, C, {error, "not\nthere"}, undefined}, {gap, P, overflow, 3, undefined}].

read(File, Format) ->
    {ok, Log} = file:read_file(File),
    #{items := Items, malformed := []} = witness_log:parse(Log, witness_log:parser(#{format => Format})),
    [Item || {_, Item} <- Items].

files(Dir) -> filelib:wildcard(filename:join(Dir, "*")).

in_folder(Test) -> {timeout, 30, fun() -> witness_folder:with(Test) end}.
