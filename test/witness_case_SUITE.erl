-module(witness_case_SUITE).
-moduledoc """
The tests of an application of Elixir with `Witness.Case` (`test/projects/web`): what its supervisors start for a test, and the process of
a test itself. Tested by Mix in processes of the operating system.
""".

-export([all/0, suite/0, init_per_suite/1, end_per_suite/1]).
-export([what_is_started_for_a_test_fails_it_and_no_other/1, the_process_of_a_test_is_observed/1, a_test_is_searched/1]).

-include_lib("stdlib/include/assert.hrl").

%% So often are the tests run, each time with other ones broken. WITNESS_CASE_RUNS changes it.
-define(RUNS, 2).

suite() -> [{timetrap, {minutes, 60}}].

all() -> [what_is_started_for_a_test_fails_it_and_no_other, the_process_of_a_test_is_observed, a_test_is_searched].

init_per_suite(Config) ->
    Root = witness_checkout:root(filename:dirname(proplists:get_value(data_dir, Config))),
    witness_project:prepare(elixir, "test/projects/web", [{root, Root} | Config]).

end_per_suite(_) -> ok.

what_is_started_for_a_test_fails_it_and_no_other(Config) ->
    Tests = [[$0 + Module, $., $0 + Kind] || Module <- lists:seq(1, 4), Kind <- lists:seq(0, 9)],
    Runs = list_to_integer(os:getenv("WITNESS_CASE_RUNS", integer_to_list(?RUNS))),
    ?assertEqual([], failed(rooms([], Config))),
    [begin
         Broken = [Test || Test <- Tests, rand:uniform(5) =:= 1],
         ?assertEqual(Broken, failed(rooms(Broken, Config)))
     end || _ <- lists:seq(1, Runs)].

rooms(Broken, Config) ->
    {Status, Output} = witness_project:run("mix", ["test", "test/rooms_test.exs"], [{"BROKEN", lists:join(" ", Broken)}], Config),
    ?assertEqual(Broken =:= [], Status =:= 0),
    ?assertMatch({match, _}, re:run(Output, "40 tests|40 passed|/40 passed")),
    ?assertEqual(length(Broken), occurrences("VIOLATION of counts_up", Output)),
    Output.

failed(Output) ->
    case re:run(Output, "^ *[0-9]+\\) test (\\S+) ", [global, multiline, {capture, all_but_first, list}]) of
        {match, Found} -> lists:sort(lists:append(Found));
        nomatch -> []
    end.

occurrences(Pattern, Output) ->
    case re:run(Output, Pattern, [global]) of
        {match, Found} -> length(Found);
        nomatch -> 0
    end.

the_process_of_a_test_is_observed(Config) ->
    {2, Output} = witness_project:run("mix", ["test", "test/itself_test.exs"], [], Config),
    ?assertEqual(["opens"], failed(Output)),
    [?assertMatch({match, _}, re:run(Output, Pattern, [dotall]), #{expected => Pattern})
     || Pattern <- ["test opens twice \\(ItselfTest\\).*VIOLATION of opens_one",
                    "by #PID<[0-9.]+>, ItselfTest.\"test opens twice\"/1",
                    "test opens twice +Web.Desk",
                    "call\\(_, {:open, \"twice 2\", 1}\\)",
                    "code: test \"opens ",
                    "test/itself_test.exs:7: \\(test\\)",
                    "(5 tests, 1 failure|4/5 passed)",
                    "warning: NotTest: nothing was monitored in 2 tests"]].

a_test_is_searched(Config) ->
    {2, Output} = witness_project:run("mix", ["test", "test/search_test.exs"], [], Config),
    ?assertMatch({match, _}, re:run(Output, "(12 tests, 8 failures|4/12 passed)")),
    Failures = maps:from_list([{Name, Text} || Part <- tl(re:split(Output, "^ *[0-9]+\\) test ", [multiline])),
                                               [Name, Text] <- [binary:split(Part, ~" (SearchTest)\n")]]),
    [witness_command:contains(map_get(Name, Failures), Words)
     || {Name, Words} <- [
         {~"an update is lost", [~"FAILED after ", ~"CRASH of #PID<0.1.1>, SearchTest.\"test an update is lost\"(", ~"the function has failed",
                                 ~"left:  1\n", ~"right: 2\n", ~"order  first ", ~"  mix witness.replay /", ~"  mix witness.step /"]},
         {~"the application is outside", [~"GenServer.call(Web.Desk, :anything, 5000)",
                                          ~"processes and applications of the VM of the tests are not in that of the search"]},
         {~"a module without a file", [~"SearchTest.Inside.one/0 is undefined", ~"compile it to a file, for example in test/support"]},
         {~"what is logged is not captured", [~"GenServer.call(ExUnit.CaptureServer, "]},
         {~"a callback fails", [~"(RuntimeError) not at the end"]},
         {~"a specification is violated", [~"FAILED after 1 schedule", ~"VIOLATION of counts_up (specs/room.hml:3)"]},
         {~"an option is wrong", [~"option schedules: expected a number above 0"]},
         {~"nothing can be expected", [~"a test returns nothing that can be expected: use assert"]}]],
    %% The recording has the code of the test, which is in no file.
    {match, [Recording]} = re:run(map_get(~"an update is lost", Failures), "mix witness.replay (\\S+)", [{capture, all_but_first, list}]),
    {0, Replayed} = witness_project:run("mix", ["witness.replay", Recording], [{"MIX_ENV", "test"}], Config),
    witness_command:contains(Replayed, [~"IDENTICAL: "]),
    {0, Stepped} = witness_project:run("mix", ["witness.step", "--command", "goto end", Recording], [{"MIX_ENV", "test"}], Config),
    witness_command:contains(Stepped, [~"SearchTest"]).
