-module(witness_replay_fuzz).
-moduledoc """
Generated programs, recorded and replayed: networks of processes (`witness_recorded_random`), and servers with impatient
clients that are killed at any point (`witness_recorded_patience`). One recording has several of them, one after the other.

Number N of a kind is always the same program, on one scheduler if N is odd. Its effect differs from recording to recording.
""".

-export([kinds/0, number/4, slice/5, digest/3, each/5]).

%% Minutes after which nothing new is begun.
-define(SLICE, 17).

-doc "What is generated.".
-spec kinds() -> [networks | patience].
kinds() -> [networks, patience].

-doc """
Records a program into a folder and replays it some times. Returns the results that are not as they should be. If there are
none, it deletes the folder.
""".
-spec number(networks | patience, pos_integer(), Replays :: pos_integer(), #{pa := file:filename(), dir := file:filename()}) ->
    [term()].
number(Kind, N, Replays, #{pa := Out, dir := Dir}) ->
    Schedulers = case N rem 2 of 1 -> "1:1"; 0 -> "2:2" end,
    {ok, #{outcome := recorded, unwoven := []}} = witness_record:record(#{
        run => {witness_recorded_root, run, program(Kind, N)}, dir => Dir, pa => [Out],
        vm_args => ["+S", Schedulers, "-kernel", "logger_level", "none"]}),
    %% A program that did nothing would be replayed without fault.
    {Noted, _} = result(Dir),
    true = Noted > 0,
    Count = processes(Dir),
    Wrong = [Result || _ <- lists:seq(1, Replays), Result <- [witness_replay:replay(#{dir => Dir})], not is_same(Result, Count)],
    _ = [ok = file:del_dir_r(Dir) || Wrong =:= []],
    Wrong.

is_same({ok, #{outcome := identical, complete := true, cut := 0, processes := Count}}, Count) -> true;
is_same(_, _) -> false.

program(networks, N) -> [witness_recorded_random, {told, [witness_record_generator:programs(10, N)]}];
program(patience, N) -> [witness_recorded_patience, {run, [N]}].

%% How many steps its processes have noted, and their hash: the exit reason of the first one.
result(Dir) ->
    {ok, Recording} = witness_log_recording:open(Dir),
    {ok, {result, Result}} =
        witness_log_recording:fold(fun({exit, Reason}, _) -> Reason; (_, Found) -> Found end, none, 1, Recording),
    Result.

processes(Dir) ->
    {ok, Recording} = witness_log_recording:open(Dir),
    {ok, Processes} = witness_log_recording:processes(Recording),
    length(Processes).

-doc """
Runs the numbers up to the last one, except those that a file lists as done, until the slice is over. Returns how many are
left, and what was wrong.
""".
-spec slice(networks | patience, Last :: pos_integer(), Replays :: pos_integer(), Done :: file:filename(),
            #{pa := file:filename(), dir := file:filename()}) -> {Left :: non_neg_integer(), Wrong :: [{pos_integer(), term()}]}.
slice(Kind, Last, Replays, Done, #{pa := Out, dir := Dir} = Folders) ->
    One = fun(N) ->
        Name = filename:join(Dir, io_lib:format("~s-~b-~s", [Kind, N, os:getpid()])),
        Wrong = number(Kind, N, Replays, Folders#{dir := Name}),
        _ = [io:format(user, "~s ~b, in ~ts:~n~p~n", [Kind, N, Name, hd(Wrong)]) || Wrong =/= []],
        Wrong
    end,
    Key = fun(N) ->
        [Module | _] = Program = program(Kind, N),
        {Kind, N, Replays, digest(Program, Module, Out)}
    end,
    each(One, lists:seq(1, Last), Key, Done, erlang:monotonic_time(second) + ?SLICE * 60).

-doc "Identifies a program: its arguments, and its code.".
-spec digest(term(), module(), Out :: file:filename()) -> non_neg_integer().
digest(Program, Module, Out) ->
    {ok, Md5} = beam_lib:md5(filename:join(Out, atom_to_list(Module) ++ ".beam")),
    erlang:phash2({Program, Md5}).

-doc """
Does something for each number with a key that is not in a file yet, as long as there is time. If a result is right, its key
is written to the file at once: an interrupt loses one number at most. Returns how many are left, and what was wrong.
""".
-spec each(fun((pos_integer()) -> [term()]), [pos_integer()], fun((pos_integer()) -> term()), Done :: file:filename(),
           End :: integer()) ->
    {Left :: non_neg_integer(), Wrong :: [{pos_integer(), [term()]}]}.
each(One, Numbers, Key, File, End) ->
    Done = maps:from_keys(done(File), []),
    left(One, [{N, Of} || N <- Numbers, Of <- [Key(N)], not is_map_key(Of, Done)], File, End, []).

left(_, [], _, _, Wrong) -> {0, lists:reverse(Wrong)};
left(One, [{N, Key} | Left], File, End, Wrong) ->
    case erlang:monotonic_time(second) > End of
        true -> {length(Left) + 1, lists:reverse(Wrong)};
        false ->
            case One(N) of
                [] ->
                    ok = filelib:ensure_dir(File),
                    %% The key has a line of its own, whatever was cut before.
                    ok = file:write_file(File, io_lib:format("~n~w.~n", [Key]), [append]),
                    left(One, Left, File, End, Wrong);
                Differ -> left(One, Left, File, End, [{N, Differ} | Wrong])
            end
    end.

%% An entry that was cut while it was written is no term, so its program is not done.
done(File) ->
    case file:read_file(File) of
        {ok, Text} ->
            [Term || Line <- string:split(Text, ~"\n", all), {ok, Tokens, _} <- [erl_scan:string(unicode:characters_to_list(Line))],
                     {ok, Term} <- [erl_parse:parse_term(Tokens)]];
        {error, enoent} -> []
    end.
