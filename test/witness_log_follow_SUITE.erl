-module(witness_log_follow_SUITE).
-moduledoc """
A program that writes, rotates and truncates at full speed, and a follower that sees each number once, or is told of a
loss. `WITNESS_FOLLOW_RUNS` (2) says how many runs of each case there are, `WITNESS_FOLLOW_SEED` (1) with which they
begin.
""".

-import(witness_setting, [number/2]).
-export([all/0, suite/0, init_per_testcase/2]).
-export([rename/1, copy/1, rename_and_taken_up/1, copy_and_taken_up/1]).
-export([losses_are_told/1, losses_are_told_when_taken_up/1]).

-define(LAST, 12_000).
-define(ALL, 100_000).

suite() -> [{timetrap, {minutes, 2}}].

all() ->
    [rename, copy, rename_and_taken_up, copy_and_taken_up, losses_are_told, losses_are_told_when_taken_up].

init_per_testcase(Case, Config) ->
    Folder = filename:join(proplists:get_value(priv_dir, Config), Case),
    ok = filelib:ensure_path(Folder),
    [{folder, Folder} | Config].

rename(Config) -> exact(runs(Config, ?ALL, [rename], never)).
copy(Config) -> exact(runs(Config, ?ALL, [copy], never)).
rename_and_taken_up(Config) -> exact(runs(Config, ?ALL, [rename], often)).
copy_and_taken_up(Config) -> exact(runs(Config, ?ALL, [copy], often)).

losses_are_told(Config) -> lossy(Config, never).
losses_are_told_when_taken_up(Config) -> lossy(Config, often).

lossy(Config, Stops) -> [sound(runs(Config, 2, [Way, cut, replace], Stops)) || Way <- [rename, copy]].

%% Every number once, in order.
exact(Runs) -> [{Seed, []} = {Seed, losses(Seen)} || {Seed, Seen} <- sound(Runs)].

losses([N, {lost, Reason}, M | Seen]) -> [{N, Reason, M} | losses([M | Seen])];
losses([_ | Seen]) -> losses(Seen);
losses([]) -> [].

%% Numbers are left out only where a loss was told, and never come again.
sound(Runs) ->
    _ = [sound(Seed, -1, Seen) || {Seed, Seen} <- Runs],
    Runs.

sound(_, ?LAST, []) -> ok;
sound(Seed, N, [{lost, Reason} | Seen]) -> sound_after(Seed, N, Reason, Seen);
sound(Seed, N, [M | Seen]) when M =:= N + 1 -> sound(Seed, M, Seen);
sound(Seed, N, Seen) -> ct:fail({seed, Seed, after_number, N, lists:sublist(Seen, 5)}).

sound_after(_, _, _, []) -> ok;
sound_after(Seed, N, _, [{lost, Reason} | Seen]) -> sound_after(Seed, N, Reason, Seen);
sound_after(Seed, N, _, [M | Seen]) when M > N -> sound(Seed, M, Seen);
sound_after(Seed, N, Reason, [M | _]) -> ct:fail({seed, Seed, after_number, N, Reason, again, M}).

%% --- the follower ----------------------------------------------------------------

runs(Config, Keep, Ways, Stops) ->
    First = number("WITNESS_FOLLOW_SEED", 1),
    [{Seed, run(Config, Seed, Keep, Ways, Stops)}
     || Seed <- lists:seq(First, First + number("WITNESS_FOLLOW_RUNS", 2) - 1)].

run(Config, Seed, Keep, Ways, Stops) ->
    Folder = filename:join(proplists:get_value(folder, Config), integer_to_list(Seed)),
    ok = filelib:ensure_path(Folder),
    File = filename:join(Folder, "system.log"),
    _ = rand:seed(exsss, Seed),
    process_flag(trap_exit, true), % the writer's end of the pipe may close first
    %% It is there before the file is.
    {ok, Reader} = open(File, #{}),
    Writer = witness_log_follow_writer:start(File, Seed, ?LAST, Keep, Ways),
    Seen = follow(Reader, #{file => File, writer => Writer, stops => Stops}, []),
    ok = file:del_dir_r(Folder),
    Seen.

open(File, Options) ->
    Block = lists:nth(rand:uniform(4), [20, 100, 1000, 100_000]),
    witness_log_reader:open({file, File}, Options#{follow => true, block => Block}).

follow(Reader, S = #{writer := Writer}, Seen) ->
    case witness_log_reader:read(Reader) of
        {block, Block, Position, Reader1} ->
            case numbers(Block) of
                {Numbers, the_end} -> ended(Reader1, S, lists:reverse(Seen, Numbers));
                {Numbers, more} ->
                    tell(Writer, Numbers),
                    stop(Reader1, Position, S, lists:reverse(Numbers, Seen))
            end;
        {wait, Reader1} ->
            receive {Writer, {exit_status, Status}} when Status =/= 0 -> ct:fail({writer, Status})
            after rand:uniform(3) -> follow(Reader1, S, Seen)
            end;
        {lost, Reason, Reader1} -> follow(Reader1, S, [{lost, Reason} | Seen])
    end.

numbers(Block) ->
    Lines = [hd(string:split(Line, ".")) || Line <- string:split(string:trim(Block, trailing, "\n"), "\n", all)],
    case lists:last(Lines) of
        ~"end" -> {[binary_to_integer(N) || N <- lists:droplast(Lines)], the_end};
        _ -> {[binary_to_integer(N) || N <- Lines], more}
    end.

tell(_, []) -> ok;
tell(Writer, Numbers) ->
    try port_command(Writer, [integer_to_binary(lists:last(Numbers)), $\n]) catch error:badarg -> true end.

stop(Reader, Position, S = #{stops := often, file := File}, Seen) ->
    case rand:uniform(5) of
        1 ->
            ok = witness_log_reader:close(Reader),
            {ok, Reader1} = open(File, #{position => binary_to_term(term_to_binary(Position))}),
            follow(Reader1, S, Seen);
        _ -> follow(Reader, S, Seen)
    end;
stop(Reader, _, S, Seen) -> follow(Reader, S, Seen).

ended(Reader, #{writer := Writer}, Seen) ->
    receive
        {Writer, {exit_status, 0}} -> ok;
        {'EXIT', Writer, epipe} -> ok
    end,
    ok = witness_log_reader:close(Reader),
    Seen.
