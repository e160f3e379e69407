-module(witness_replay_fuzz).
-moduledoc """
Generated programs, recorded and replayed: networks of processes (`witness_recorded_random`), and servers with impatient
clients that are killed at any point (`witness_recorded_patience`). One recording has several of them, one after the other.

Number N of a kind is always the same program, on one scheduler if N is odd. What comes of it differs from recording to recording.
""".

-export([kinds/0, number/4, slice/5]).

%% Minutes after which nothing new is begun.
-define(SLICE, 17).

-doc "What is generated.".
-spec kinds() -> [networks | patience].
kinds() -> [networks, patience].

-doc """
Records a program into a folder that is deleted again, unless a replay is not as it should be, and replays it some times: what was
not as it should be.
""".
-spec number(networks | patience, pos_integer(), Replays :: pos_integer(), #{pa := file:filename(), dir := file:filename()}) ->
    [term()].
number(Kind, N, Replays, #{pa := Out, dir := Dir}) ->
    Schedulers = case N rem 2 of 1 -> "1:1"; 0 -> "2:2" end,
    {ok, #{outcome := recorded, unwoven := []}} = witness_record:record(#{
        run => {witness_recorded_root, run, program(Kind, N)}, dir => Dir, pa => [Out],
        vm_args => ["+S", Schedulers, "-kernel", "logger_level", "none"]}),
    Count = processes(Dir),
    Wrong = [Result || _ <- lists:seq(1, Replays), Result <- [witness_replay:replay(#{dir => Dir})], not is_same(Result, Count)],
    _ = [ok = file:del_dir_r(Dir) || Wrong =:= []],
    Wrong.

is_same({ok, #{outcome := identical, complete := true, cut := 0, processes := Count}}, Count) -> true;
is_same(_, _) -> false.

program(networks, N) -> [witness_recorded_random, {told, [witness_record_generator:programs(10, N)]}];
program(patience, N) -> [witness_recorded_patience, {run, [N]}].

processes(Dir) ->
    {ok, Recording} = witness_log_recording:open(Dir),
    {ok, Processes} = witness_log_recording:processes(Recording),
    length(Processes).

-doc """
The numbers up to the last one, but for those that a file says are done, until the slice is over. Those that are left, and what was not
as it should be.
""".
-spec slice(networks | patience, Last :: pos_integer(), Replays :: pos_integer(), Done :: file:filename(),
            #{pa := file:filename(), dir := file:filename()}) -> {Left :: non_neg_integer(), Wrong :: [{pos_integer(), term()}]}.
slice(Kind, Last, Replays, Done, Folders) ->
    Left = [N || N <- lists:seq(1, Last), not lists:member({Kind, N, Replays}, done(Done))],
    End = erlang:monotonic_time(second) + ?SLICE * 60,
    slice(Kind, Left, Replays, Done, End, Folders, []).

slice(_, [], _, _, _, _, Wrong) -> {0, lists:reverse(Wrong)};
slice(Kind, [N | Ns] = Left, Replays, Done, End, #{dir := Dir} = Folders, Wrong) ->
    case erlang:monotonic_time(second) > End of
        true -> {length(Left), lists:reverse(Wrong)};
        false ->
            Name = filename:join(Dir, io_lib:format("~s-~b-~s", [Kind, N, os:getpid()])),
            case number(Kind, N, Replays, Folders#{dir := Name}) of
                [] ->
                    ok = filelib:ensure_dir(Done),
                    ok = file:write_file(Done, io_lib:format("~p.~n", [{Kind, N, Replays}]), [append]),
                    slice(Kind, Ns, Replays, Done, End, Folders, Wrong);
                Differ ->
                    io:format(user, "~s ~b, in ~ts:~n~p~n", [Kind, N, Name, hd(Differ)]),
                    slice(Kind, Ns, Replays, Done, End, Folders, [{N, Differ} | Wrong])
            end
    end.

done(File) ->
    case file:consult(File) of
        {ok, Done} -> Done;
        {error, enoent} -> []
    end.
