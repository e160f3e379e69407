-module(witness_record_soak_SUITE).
-moduledoc """
Recordings under load: full message rate for `WITNESS_RECORD_SOAK_SECONDS` (6; `make record-soak`: 600) in memory that
does not grow, a writer that does not come to write, and a disk that is full. Whatever becomes of the recording, the program does
what it does, and nothing is missing from what the recording says that it has.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

-define(PAIRS, 4).
%% What the second half of a run may have more than the first one.
-define(NOISE, 24_000_000).

suite() -> [{timetrap, {seconds, 300 + 3 * seconds()}}].

all() -> [memory_is_bounded, a_writer_that_is_held_up_ends_the_recording, a_full_disk_ends_the_recording].

seconds() -> list_to_integer(os:getenv("WITNESS_RECORD_SOAK_SECONDS", "6")).

init_per_suite(Config) ->
    Out = filename:join(proplists:get_value(priv_dir, Config), "programs"),
    ok = witness_record_programs:compile(Out),
    [{programs, Out} | Config].

end_per_suite(_) -> ok.

memory_is_bounded(Config) ->
    {File, Dir} = names(?FUNCTION_NAME, Config),
    Load = {witness_recorded_load, run, [?PAIRS, seconds(), File]},
    {ok, Summary} = witness_record:record(options(Load, Dir, #{}, Config)),
    ?assertMatch(#{outcome := recorded, ended := {returned, normal}, vm := 0, unwoven := []}, Summary),
    #{samples := Samples, messages := Messages} = read(File),
    {First, Second} = lists:split(length(Samples) div 2, Samples),
    Peaks = #{Key => {peak(Key, First), peak(Key, Second)} || Key <- [vm, resident, used]},
    #{budget := Budget} = hd(Samples),
    {ok, R} = witness_log_recording:open(Dir),
    Taken = lists:sum([N || Id <- witness_log_recording:ids(R), {ok, Demand} <- [witness_log_recording:demand(Id, R)],
                            _ := N <- Demand]),
    report("~b s at full rate: ~.1f million messages a second; MB at most, first and second half: memory ~s, "
           "resident ~s, held by the recorder ~s of ~b; files ~s MB",
           [seconds(), Messages / seconds() / 1.0e6] ++ [megabytes(maps:get(Key, Peaks)) || Key <- [vm, resident, used]]
           ++ [Budget div 1_000_000, files(Dir)]),
    ok = file:del_dir_r(Dir),
    %% Those of the pairs; and those in which the first process is told of their ends.
    ?assertEqual(Messages + 2 * ?PAIRS, Taken),
    [?assert({Key, Later} =< {Key, Before + ?NOISE}) || Key := {Before, Later} <- Peaks],
    ?assert(peak(used, Samples) =< Budget).

a_writer_that_is_held_up_ends_the_recording(Config) ->
    {File, Dir} = names(?FUNCTION_NAME, Config),
    Budget = 4_000_000,
    Load = {witness_recorded_load, held_up, [?PAIRS, File]},
    {ok, Summary} = witness_record:record(options(Load, Dir, #{budget => Budget}, Config)),
    ?assertMatch(#{outcome := {ended, budget}, ended := {returned, normal}, vm := 0}, Summary),
    %% What processes held when it ended comes on top, once.
    {Most, AtEnd} = read(File),
    ?assert(Most =< Budget),
    ?assert(AtEnd > Budget div 2 andalso AtEnd =< 2 * Budget),
    is_readable(Dir).

a_full_disk_ends_the_recording(Config) ->
    {File, _} = names(?FUNCTION_NAME, Config),
    Mount = filename:join(proplists:get_value(priv_dir, Config), "small"),
    ok = file:make_dir(Mount),
    %% More than the writer takes at a time, however long it had no turn: so there are entries before the disk is full.
    case os:cmd("mount -t tmpfs -o size=4m tmpfs " ++ Mount ++ " 2>&1 && echo mounted") of
        "mounted\n" ->
            try
                Dir = filename:join(Mount, "rec"),
                Load = {witness_recorded_load, run, [?PAIRS, ended, File]},
                {ok, Summary} = witness_record:record(options(Load, Dir, #{compress => false}, Config)),
                ?assertMatch(#{outcome := {ended, {file, _, enospc}}, ended := {returned, normal}, vm := 0}, Summary),
                ?assertMatch(#{messages := N} when N > 10_000, read(File)),
                is_readable(Dir)
            after
                "" = os:cmd("umount " ++ Mount)
            end;
        _ -> {skip, "who administers the machine can make a small disk"}
    end.

%% What there is can be read to the end, and is a beginning.
is_readable(Dir) ->
    {ok, R} = witness_log_recording:open(Dir),
    Counts = [begin
        {ok, N} = witness_log_recording:fold(fun(_, N) -> N + 1 end, 0, Id, R),
        N
    end || Id <- witness_log_recording:ids(R)],
    ?assert(lists:sum(Counts) > 1000).

options(Run, Dir, More, Config) ->
    More#{run => Run, dir => Dir, pa => [proplists:get_value(programs, Config)]}.

names(Case, Config) ->
    Name = filename:join(proplists:get_value(priv_dir, Config), atom_to_list(Case)),
    {Name ++ ".result", Name ++ ".rec"}.

read(File) ->
    {ok, Bytes} = file:read_file(File),
    binary_to_term(Bytes).

peak(Key, Samples) -> lists:max([maps:get(Key, Sample) || Sample <- Samples]).

megabytes({Before, Later}) -> io_lib:format("~b and ~b", [Before div 1_000_000, Later div 1_000_000]).

files(Dir) ->
    {ok, Names} = file:list_dir(Dir),
    io_lib:format("~b", [lists:sum([filelib:file_size(filename:join(Dir, Name)) || Name <- Names]) div 1_000_000]).

%% To be seen where the suite runs.
report(Format, Arguments) ->
    Text = io_lib:format(Format, Arguments),
    ct:pal("~s", [Text]),
    io:format(user, "~s~n", [Text]).
