%% Writes numbered lines to a log at full speed, and rotates it at random, as an operating-system process of its own.
-module(witness_log_follow_writer).

-export([main/1]).

-export([start/5]).

-define(LINES, 150).

%% Its lines come back as messages of the port; a number that is sent to the port says how far the log was read.
start(File, Seed, Last, Keep, Ways) ->
    Erl = filename:join([code:root_dir(), "bin", "erl"]),
    Args = ["-noinput", "-boot", "no_dot_erlang", "-pa", filename:dirname(code:which(?MODULE)),
            "-run", ?MODULE_STRING, "main", File | [integer_to_list(N) || N <- [Seed, Last, Keep]]]
        ++ [atom_to_list(Way) || Way <- Ways],
    open_port({spawn_executable, Erl}, [{args, Args}, binary, exit_status, stream]).

main([File, Seed, Last, Keep | Ways]) ->
    _ = rand:seed(exsss, list_to_integer(Seed)),
    Told = open_port({fd, 0, 1}, [{line, 100}, binary]),
    S = #{file => File, fd => open(File), told => Told, read => -1, first => 0, keep => list_to_integer(Keep),
          ways => [list_to_existing_atom(W) || W <- Ways]},
    write(0, list_to_integer(Last), S),
    halt(0).

open(File) ->
    {ok, Fd} = file:open(File, [raw, binary, write, append]),
    Fd.

write(N, Last, #{fd := Fd}) when N > Last -> ok = file:write(Fd, ~"end\n");
write(N, Last, S = #{fd := Fd}) ->
    Next = min(Last + 1, N + rand:uniform(?LINES)),
    Text = [[integer_to_binary(I), lists:duplicate(rand:uniform(20), $.), $\n] || I <- lists:seq(N, Next - 1)],
    written(iolist_to_binary(Text), Fd),
    write(Next, Last, turned(N, Next, S)).

%% Sometimes in the middle of a line.
written(Text, Fd) ->
    {Begin, End} = split_binary(Text, rand:uniform(byte_size(Text))),
    ok = file:write(Fd, Begin),
    ok = file:write(Fd, End).

%% A follower that has seen nothing cannot know what it has missed.
turned(0, _, S) -> seen(S);
turned(_, Next, S = #{ways := Ways}) ->
    case rand:uniform(8) of
        1 ->
            S1 = turn(lists:nth(rand:uniform(length(Ways)), Ways), Next, S),
            S1#{first => Next};
        _ -> S
    end.

turn(rename, _, S = #{file := File, fd := Fd, keep := Keep}) ->
    ok = file:close(Fd),
    shift(File, Keep),
    ok = file:rename(File, File ++ ".1"),
    S#{fd := open(File)};
turn(copy, _, S = #{file := File, keep := Keep}) ->
    shift(File, Keep),
    {ok, _} = file:copy(File, File ++ ".1"),
    cut(S);
turn(cut, _, S) -> cut(seen(S));
turn(replace, _, S0 = #{file := File, fd := Fd}) ->
    S = seen(S0),
    ok = file:close(Fd),
    ok = file:delete(File),
    S#{fd := open(File)}.

%% What is gone before anybody could look cannot be missed: so the follower must have seen this file.
seen(S = #{read := Read, first := First}) when Read >= First -> S;
seen(S = #{told := Told}) ->
    receive {Told, {data, {eol, Read}}} -> seen(S#{read := binary_to_integer(Read)}) end.

cut(S = #{fd := Fd}) ->
    {ok, 0} = file:position(Fd, 0),
    ok = file:truncate(Fd),
    S.

shift(File, Keep) ->
    Name = fun(N) -> File ++ "." ++ integer_to_list(N) end,
    Exists = fun Exists(N) -> case filelib:is_file(Name(N)) of true -> Exists(N + 1); false -> N - 1 end end,
    Highest = Exists(1),
    [ok = file:rename(Name(N), Name(N + 1)) || N <- lists:seq(min(Highest, Keep), 1, -1)],
    _ = file:delete(Name(Keep + 1)),
    ok.
