%% What happens to a log between two looks of its follower, step by step.
-module(witness_log_follow_tests).

-include_lib("eunit/include/eunit.hrl").

follow_test_() ->
    [{atom_to_list(Name), fun() -> in_folder(fun(File) -> case_of(Name, File) end) end}
     || Name <- [awaited, unfinished_line, three_rotations, dates, old, written_after_it_was_renamed,
                 empty_files_between, copied, copied_twice, copied_before_the_first_look, copied_while_it_is_read,
                 copy_begun, cut, cut_and_grown,
                 replaced, numbers_that_count_up, other_files, renamed_before_the_next_is_there,
                 taken_up_after_rotation, taken_up_after_a_copy, taken_up_in_vain, compressed]].

case_of(awaited, File) ->
    R = open(File),
    ?assertMatch({[], _}, look(R)),
    write(File, ~"1\n2\n"),
    ?assertMatch({[~"1\n2\n"], _}, look(R));
case_of(unfinished_line, File) ->
    write(File, ~"1\n2"),
    {[~"1\n"], R} = look(open(File)),
    write(File, ~"2"),
    {[], R1} = look(R),
    rename(File, ".1"),
    {[], R2} = look(R1),
    write(File, ~"3\n"),
    ?assertMatch({[~"22", ~"3\n"], _}, look(R2));
case_of(three_rotations, File) ->
    {[~"1\n"], R} = started(File),
    [rotate(File, Text) || Text <- [~"2\n", ~"3\n", ~"4\n"]],
    ?assertMatch({[~"2\n", ~"3\n", ~"4\n"], _}, look(R));
case_of(dates, File) ->
    {[~"1\n"], R} = started(File),
    [begin rename(File, Date), write(File, Text) end
     || {Date, Text} <- [{"-20261121", ~"2\n"}, {"-20261122", ~"3\n"}, {"-20270101", ~"4\n"}]],
    ?assertMatch({[~"2\n", ~"3\n", ~"4\n"], _}, look(R));
case_of(old, File) ->
    {[~"1\n"], R} = started(File),
    rename(File, ".old"),
    write(File, ~"2\n"),
    {[~"2\n"], R1} = look(R),
    rename(File, ".old"),
    write(File, ~"3\n"),
    rename(File, ".old"),
    write(File, ~"4\n"),
    ?assertMatch({[{lost, replaced}, ~"4\n"], _}, look(R1));
case_of(written_after_it_was_renamed, File) ->
    {[~"1\n"], R} = started(File),
    rename(File, ".1"),
    write(File, ~""),
    {[], R1} = look(R),
    write(File ++ ".1", ~"2\n"),
    {[~"2\n"], R2} = look(R1),
    write(File ++ ".1", ~"3\n"),
    write(File, ~"4\n"),
    ?assertMatch({[~"3\n", ~"4\n"], _}, look(R2));
case_of(empty_files_between, File) ->
    {[~"1\n"], R} = started(File),
    [rotate(File, Text) || Text <- [~"", ~"", ~"2\n"]],
    ?assertMatch({[~"2\n"], _}, look(R));
case_of(copied, File) ->
    {[~"1\n"], R} = started(File),
    write(File, ~"2\n"),
    copy(File),
    ok = file:write_file(File, ~"3\n4\n5\n"),
    ?assertMatch({[~"2\n", ~"3\n4\n5\n"], _}, look(R));
case_of(copied_twice, File) ->
    {[~"1\n"], R} = started(File),
    [begin write(File, Text), copy(File) end || Text <- [~"2\n", ~"3\n"]],
    write(File, ~"4\n"),
    ?assertMatch({[~"2\n", ~"3\n", ~"4\n"], _}, look(R));
case_of(copied_before_the_first_look, File) ->
    write(File, ~""),
    {[], R} = look(open(File)),
    [begin write(File, Text), copy(File) end || Text <- [~"1\n", ~"2\n"]],
    write(File, ~"3\n"),
    ?assertMatch({[~"1\n", ~"2\n", ~"3\n"], _}, look(R));
case_of(copied_while_it_is_read, File) ->
    {[~"1\n"], R} = started(File),
    write(File, ~"2\n"),
    copy(File),
    {[~"2\n"], R1} = look(R),
    write(File, ~"3\n4\n"),
    %% The next copy is half made.
    rename(File ++ ".1", File, ".2"),
    write(File ++ ".1", ~"3\n"),
    {[~"3\n", ~"4\n"], R2} = look(R1),
    write(File ++ ".1", ~"4\n5\n"),
    ok = file:write_file(File, ~""),
    write(File, ~"6\n"),
    ?assertMatch({[~"5\n", ~"6\n"], _}, look(R2));
case_of(copy_begun, File) ->
    {[~"1\n"], R} = started(File),
    copy(File),
    rename(File ++ ".1", File, ".2"),
    write(File ++ ".1", ~""),
    {[], R1} = look(R),
    write(File ++ ".1", ~"2\n"),
    write(File, ~"3\n"),
    ?assertMatch({[~"2\n", ~"3\n"], _}, look(R1));
case_of(cut, File) ->
    {[~"1\n"], R} = started(File),
    ok = file:write_file(File, ~""),
    {[{lost, truncated}], R1} = look(R),
    write(File, ~"2\n"),
    ?assertMatch({[~"2\n"], _}, look(R1));
case_of(cut_and_grown, File) ->
    {[~"1\n"], R} = started(File),
    ok = file:write_file(File, ~"2\n3\n4\n"),
    ?assertMatch({[{lost, truncated}, ~"2\n3\n4\n"], _}, look(R));
case_of(replaced, File) ->
    {[~"1\n"], R} = started(File),
    ok = file:delete(File),
    {[], R1} = look(R),
    write(File, ~"2\n"),
    ?assertMatch({[{lost, replaced}, ~"2\n"], _}, look(R1));
case_of(numbers_that_count_up, File) ->
    %% A program that counts up: this order is not the one that is known, and times tell.
    {[~"1\n"], R} = started(File),
    rename(File, ".1"),
    write(File, ~"2\n"),
    rename(File, ".2"),
    ok = file:change_time(File ++ ".1", {{2026, 1, 1}, {0, 0, 0}}),
    write(File, ~"3\n"),
    ?assertMatch({[{lost, replaced}, ~"3\n"], _}, look(R));
case_of(other_files, File) ->
    {[~"1\n"], R} = started(File),
    [write(File ++ End, ~"no\n") || End <- [".gz", ".1.gz", ".note", "-x.1", ".1x"]],
    rotate(File, ~"2\n"),
    ?assertMatch({[~"2\n"], _}, look(R));
case_of(renamed_before_the_next_is_there, File) ->
    %% The look sees a log that is there for a moment, the next one sees it renamed.
    {[~"1\n"], R} = started(File),
    rotate(File, ~""),
    {[], R1} = look(R),
    rotate(File, ~""),
    {[], R2} = look(R1),
    write(File ++ ".1", ~"2\n"),
    rename(File, ".0"),
    {[~"2\n"], R3} = look(R2),
    write(File, ~"3\n"),
    ?assertMatch({[~"3\n"], _}, look(R3));
case_of(taken_up_after_rotation, File) ->
    {Position, R} = started_at(File),
    ok = witness_log_reader:close(R),
    write(File, ~"2\n"),
    [rotate(File, Text) || Text <- [~"3\n", ~"4\n"]],
    ?assertMatch({[~"2\n", ~"3\n", ~"4\n"], _}, look(open(File, #{position => Position})));
case_of(taken_up_after_a_copy, File) ->
    {Position, R} = started_at(File),
    ok = witness_log_reader:close(R),
    write(File, ~"2\n"),
    copy(File),
    write(File, ~"3\n"),
    ?assertMatch({[~"2\n", ~"3\n"], _}, look(open(File, #{position => Position})));
case_of(taken_up_in_vain, File) ->
    {Position, R} = started_at(File),
    ok = witness_log_reader:close(R),
    ok = file:write_file(File, ~"2\n"),
    R1 = open(File, #{position => Position}),
    {lost, truncated, R2} = witness_log_reader:read(R1),
    ?assertMatch({block, ~"2\n", #{lines := 1}, _}, witness_log_reader:read(R2));
case_of(compressed, File) ->
    ok = file:write_file(File, zlib:gzip(~"1\n")),
    {error, Error, _} = witness_log_reader:read(open(File)),
    ?assertMatch({match, _}, re:run(witness:format_error(Error), "gzip, and cannot be followed")).

%% --- steps -----------------------------------------------------------------------

open(File) -> open(File, #{}).

open(File, Options) ->
    {ok, R} = witness_log_reader:open({file, File}, Options#{follow => true}),
    R.

started(File) ->
    write(File, ~"1\n"),
    look(open(File)).

started_at(File) ->
    write(File, ~"1\n"),
    {block, ~"1\n", Position, R} = witness_log_reader:read(open(File)),
    {Position, R}.

%% All that there is at the moment.
look(R) ->
    case witness_log_reader:read(R) of
        {wait, R1} -> {[], R1};
        {block, Text, _, R1} -> look(Text, R1);
        {lost, Reason, R1} -> look({lost, Reason}, R1)
    end.

look(First, R) ->
    {Rest, R1} = look(R),
    {[First | Rest], R1}.

write(File, Text) -> ok = file:write_file(File, Text, [append]).

rename(File, Suffix) -> rename(File, File, Suffix).

rename(From, File, Suffix) -> ok = file:rename(From, File ++ Suffix).

rotate(File, Text) ->
    shift(File, 9),
    rename(File, ".1"),
    write(File, Text).

copy(File) ->
    shift(File, 9),
    {ok, _} = file:copy(File, File ++ ".1"),
    ok = file:write_file(File, ~"").

shift(_, 0) -> ok;
shift(File, N) ->
    _ = file:rename(File ++ "." ++ integer_to_list(N), File ++ "." ++ integer_to_list(N + 1)),
    shift(File, N - 1).

in_folder(Do) ->
    witness_folder:with(fun(Folder) -> Do(filename:join(Folder, "system.log")) end).
