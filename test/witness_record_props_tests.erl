-module(witness_record_props_tests).
-moduledoc """
Generated programs: trees of processes that spawn, send, wait for some messages and not for others, lose patience,
register, monitor, link and kill each other. Each notes what it does, and the recording says exactly the same.

A property holds for some programs one after the other in one VM, since starting that takes longer than running them.
`WITNESS_RECORD_PROGRAMS` is the number of programs (default 60).
""".
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(TOGETHER, 20).

recordings_say_what_programs_noted_test_() ->
    {timeout, 3600, fun() ->
        Programs = list_to_integer(os:getenv("WITNESS_RECORD_PROGRAMS", "60")),
        with_programs(fun(Out) ->
            ?assert(proper:quickcheck(prop_recorded(Out), [{numtests, max(1, Programs div ?TOGETHER)}, {to_file, user},
                                                           {max_size, 40}, noshrink]))
        end)
    end}.

with_programs(Fun) ->
    Out = filename:join(filename:basedir(user_cache, "witness"), "record-props-" ++ os:getpid()),
    ok = filelib:ensure_path(Out),
    try
        ok = witness_record_programs:compile(Out),
        Fun(Out)
    after
        ok = file:del_dir_r(Out)
    end.

prop_recorded(Out) ->
    ?FORALL({Programs, Schedulers}, {vector(?TOGETHER, witness_record_generator:program()), oneof(["1:1", "2:2"])},
        begin
            Unique = integer_to_list(erlang:unique_integer([positive])),
            Dir = filename:join(Out, "rec-" ++ Unique),
            File = filename:join(Out, "journal-" ++ Unique),
            Run = {witness_recorded, run, [witness_recorded_random, {start_all, [Programs]}, File]},
            Options = #{run => Run, dir => Dir, pa => [Out],
                        vm_args => ["+S", Schedulers, "-kernel", "logger_level", "none"]},
            {ok, #{outcome := recorded}} = witness_record:record(Options),
            {Journal, Recorded} = witness_record_comparison:both(File, Dir),
            Differences = witness_record_comparison:differences(Journal, Recorded, exact),
            ok = file:del_dir_r(Dir),
            ok = file:delete(File),
            ?WHENFAIL(io:format("~p~n", [Differences]), Differences =:= [])
        end).
