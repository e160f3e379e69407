-module(witness_deadlines_SUITE).
-moduledoc """
Deadlines in systems that run: they pass while nothing happens, and none passes before the events that meet it are read, whatever the
load.

`WITNESS_DEADLINES_REQUESTS` says how many near misses there are; `make deadlines` has a million.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

-define(RUN_TIMEOUT, 3_600_000).
%% How close the answers come to their deadline.
-define(NEAR_US, 60).

suite() -> [{timetrap, {hours, 1}}].

all() -> [{group, native}, {group, evm}, a_log_tells_the_time, a_clock_tells_the_time,
          times_of_a_log_may_go_back_as_far_as_asked_for, times_that_go_back_within_a_process_are_told, clocks_of_a_log_may_differ,
          nothing_passes_before_what_waits, a_silent_log_asks_the_clock, what_waits_at_an_interrupt_is_told].

groups() ->
    Both = [a_deadline_passes_while_nothing_happens, what_has_passed_is_decided_at_a_stop, nothing_in_time_is_late],
    [{native, [], Both}, {evm, [], Both}].

init_per_group(Source, Config) -> witness_source:init(Source, Config).

end_per_group(_, _) -> ok.

init_per_suite(Config) ->
    ok = code:ensure_modules_loaded([?MODULE, witness_deadlines_system, witness_await]),
    {ok, _} = application:ensure_all_started(witness),
    Config.

end_per_suite(_) -> ok.

%% Alone, with slices, in a group.
properties() ->
    [{~"alone", 2, ~"""
      alone: with witness_deadlines_system:init(_) over _ ? {ask, _, _}, _ : _ ! {answer, _} check
        <_ ? {ask, _, _}> within 30 ms min X. (<_ : _ ! {answer, _}> tt or <_ ? {ask, _, _}> X).
      """},
     {~"sliced", 6, ~"""
      sliced: with witness_deadlines_system:init(_) per N over _ ? {ask, _, N}, _ : _ ! {answer, N} check
        [_ ? {ask, _, N}] within 30 ms <_ : _ ! {answer, N}> tt.
      """},
     {~"grouped", 3, ~"""
      grouped: with witness_deadlines_system:quiet(_) group per N over _ ? {ask, _, N}, _ : _ ! {answer, N} check
        [_ ? {ask, _, N}] and([_ ? {ask, _, N}] within 30 ms <_ : _ ! {answer, N}> tt).
      """}].

a_deadline_passes_while_nothing_happens(Config) ->
    [passes(Mode, Chosen, Config) || Mode <- [outline, central], Chosen <- chosen()].

%% Two may read the same process. A group does not have processes that others name.
chosen() -> [[P] || P <- properties()] ++ [lists:droplast(properties())].

passes(Mode, Chosen, Config) ->
    File = write(quiet, lists:join($\n, [Text || {_, _, Text} <- Chosen]), Config),
    Log = filename:join(proplists:get_value(priv_dir, Config), lists:concat([quiet, erlang:unique_integer([positive]), ".log"])),
    {ok, Run} = start({witness_deadlines_system, quiet, [self()]}, File, #{instrument => Mode, log_file => Log}, Config),
    {Client, _} = asked(),
    Expected = lists:sort([{Name, Count} || {Name, Count, _} <- Chosen]),
    ok = witness_await:until(fun() ->
        case violations(Run) of Expected -> true; Others -> {Mode, Others} end
    end),
    [?assertMatch(#{verdict := no, event := undefined, info := #{deadline := At}} when is_integer(At), V)
     || #{verdict := no} = V <- witness:verdicts(Run)],
    Client ! finish,
    {ok, #{outcome := violated}} = witness:await(Run, ?RUN_TIMEOUT),
    ?assertEqual(Expected, violations(Run)),
    {ok, _} = witness:stop(Run),
    ?assertMatch({violated, Expected}, check(Log, File, #{instrument => Mode})).

check(Log, File, More) ->
    {ok, Run} = witness:start(maps:merge(#{system => {log, {file, Log}}, specs => [File], log => false}, More)),
    {ok, #{outcome := Outcome}} = witness:await(Run, ?RUN_TIMEOUT),
    Violations = violations(Run),
    {ok, _} = witness:stop(Run),
    {Outcome, Violations}.

%% Nothing is decided that was not told. All deadlines before the stop are, in the run and in its log, although the system is
%% silent.
what_has_passed_is_decided_at_a_stop(Config) ->
    [stops(Mode, Chosen, Config) || Mode <- [outline, central], Chosen <- chosen()],
    {Name, Count, Text} = lists:keyfind(~"sliced", 1, properties()),
    Later = re:replace(Text, "sliced: (.*)30 ms", "later: \\g{1}1 h", [dotall, {return, binary}]),
    {ok, Run} = start({witness_deadlines_system, quiet, [self()]}, write(stop, [Text, $\n, Later], Config), #{}, Config),
    {Client, _} = asked(),
    ok = witness_await:until(fun() -> case violations(Run) of [{Name, Count}] -> true; Others -> Others end end),
    {ok, _} = witness:stop(Run),
    Client ! finish,
    ok.

stops(Mode, Chosen, Config) ->
    File = write(stops, lists:join($\n, [Text || {_, _, Text} <- Chosen]), Config),
    Log = filename:join(proplists:get_value(priv_dir, Config), lists:concat([stops, erlang:unique_integer([positive]), ".log"])),
    Test = self(),
    {ok, Run} = start({witness_deadlines_system, quiet, [Test]}, File,
                      #{instrument => Mode, log_file => Log, on_verdict => fun(V) -> Test ! {verdict, V} end}, Config),
    {Client, Servers} = asked(),
    %% Each server that says this was given its messages before. So at least 30 ms have passed since the last request.
    [{message_queue_len, 3} = process_info(Server, message_queue_len) || Server <- Servers],
    ok = timer:sleep(31),
    {ok, #{outcome := violated}} = witness:stop(Run),
    Client ! finish,
    Expected = lists:sort([{Name, Count} || {Name, Count, _} <- Chosen]),
    ?assertEqual({Mode, Expected}, {Mode, counts(told())}),
    ?assertMatch({violated, Expected}, check(Log, File, #{instrument => Mode})).

%% A process that has not ended waits until the end of the log, or until a line of another one tells the time.
a_log_tells_the_time(Config) ->
    {Log, File} = log(Config),
    Place = fun(More) ->
        {ok, Run} = witness:start(maps:merge(#{system => {log, {file, Log}}, specs => [File], log => false}, More)),
        {ok, #{outcome := violated}} = witness:await(Run, ?RUN_TIMEOUT),
        Places = [{At, D, E} || #{verdict := no, log := At, info := #{deadline := D}, event := E} <- witness:verdicts(Run)],
        {ok, _} = witness:stop(Run),
        [{lists:last(string:split(At, ":", trailing)), D, E} || {At, D, E} <- Places]
    end,
    [begin
         ?assertEqual([{~"11", 5_000_000_010, undefined}], Place(More)),
         ?assertEqual([{~"9", 5_000_000_010, undefined}], Place(More#{skew => 200})),
         ?assertEqual([{~"11", 5_000_000_010, undefined}], Place(More#{skew => 1900}))
     end || More <- [#{}, #{instrument => central}, #{block => 1}]].

%% A time alone is as good as an event, and is told at its line where lines tell the time.
a_clock_tells_the_time(Config) ->
    File = write(clock, ~"asked: with shop:init(_) over _ ? _, _ : _ ! _ check [_ ? {ask, _}] within 5 s <_ : _ ! {answer, _}> tt.", Config),
    Log = filename:join(proplists:get_value(priv_dir, Config), "clock.log"),
    [begin
         ok = file:write_file(Log, [~"@0 init(<0.90.0>, _, {shop, init, [a]}).\n@10 recv(<0.90.0>, {ask, 1}).\n" | Lines]),
         {ok, Run} = witness:start(maps:merge(#{system => {log, {file, Log}}, specs => [File], log => false}, More)),
         {ok, #{refused := undefined}} = witness:await(Run, ?RUN_TIMEOUT),
         ?assertEqual({Lines, More, Expected}, {Lines, More, [lists:last(string:split(At, ":", trailing))
                                                              || #{verdict := no, log := At} <- witness:verdicts(Run)]}),
         {ok, _} = witness:stop(Run)
     end || {Lines, More, Expected} <-
                [{["clock(5000000010)\n"], #{}, []}, {["clock(5000000011)\n"], #{}, [~"3"]},
                 {["clock(5000000011)\n"], #{instrument => central}, [~"3"]},
                 {["clock(5000000011)\n", later(20)], #{}, [~"4"]},
                 {["clock(9000000000)\n", "clock(5)\n"], #{skew => 10_000}, [~"4"]},
                 %% It may be back by any time.
                 {[later(5_000_000_011), "clock(5)\n"], #{skew => 0}, [~"3"]},
                 {[later(5_000_000_011), "clock(5)\n"], #{sort => 0}, [~"3"]},
                 %% At the end of a log the greatest one says up to when the log has all processes.
                 {[later(5_000_000_011), "clock(5000000010)\n"], #{}, []},
                 {[later(5_000_000_012), "clock(5000000011)\n", "clock(5)\n"], #{block => 1}, [~"5"]},
                 {[later(5_000_000_011), "clock(5000000010)\n", "@20 exit(<0.91.0>, normal).\n"], #{}, []},
                 {["clock(5000000010)\n", later(5_000_000_011), "@5000000012 send(<0.91.0>, <0.90.0>, hello).\n"], #{}, []},
                 {["clock(10000000010)\n", later(9_000_000_000)], #{skew => 5_000}, [~"4"]},
                 {["clock(10000000011)\n", later(9_000_000_000)], #{skew => 5_000}, [~"3"]},
                 {["clock(10000000010)\n", later(9_000_000_000)], #{sort => 5_000}, [~"4"]},
                 {["clock(10000000011)\n", later(9_000_000_000)], #{sort => 5_000}, [~"3"]}]].

later(Time) -> ["@", integer_to_binary(Time), " init(<0.91.0>, _, {shop, other, []})\n"].

times_of_a_log_may_go_back_as_far_as_asked_for(Config) ->
    {Log, File} = log(Config),
    ?assertEqual(~":10: the time of this event is 100 ms before the greatest one so far (with --clock, that of the clock), which is more than --skew allows",
                 refused(Log, File, 99)),
    ?assertMatch({violated, [{~"answered", 1}]}, check(Log, File, #{skew => 100})),
    %% Whether there are deadlines or not.
    Untimed = write(untimed, ~"untimed: with shop:init(_) check [_ ? nothing] ff.", Config),
    ?assertEqual(refused(Log, File, 99), refused(Log, Untimed, 99)),
    ?assertMatch({ok, []}, check(Log, Untimed, #{skew => 100})),
    Near = filename:join(proplists:get_value(priv_dir, Config), "near.log"),
    ok = file:write_file(Near, ~"@2 fork(<0.90.0>, <0.91.0>, {shop, init, [a]}).\n@0 init(<0.91.0>, <0.90.0>, {shop, init, [a]}).\n"),
    [?assertEqual(~":2: the time of this event is 2 ns before the greatest one so far (with --clock, that of the clock), which is more than --skew allows",
                  refused(Near, Properties, 0)) || Properties <- [File, Untimed]].

%% Times go back by up to an hour. A request from more than an hour ago is late without a further line, one from less is not. A line
%% is read then as before; its time is that of tomorrow, since the clock may be read between the time and the line.
a_silent_log_asks_the_clock(Config) ->
    File = write(clock, ~"""
    answered: with shop:init(_) per N over _ ? {ask, N}, _ : _ ! {answer, N} check
      [_ ? {ask, N}] within 20 ms <_ : _ ! {answer, N}> tt.
    """, Config),
    Log = filename:join(proplists:get_value(priv_dir, Config), "silent.log"),
    Timed = fun(Minutes, Lines) ->
        Time = integer_to_binary(os:system_time(nanosecond) + Minutes * 60_000_000_000),
        [[$@, Time, $\s, Line, $\n] || Line <- Lines]
    end,
    Begin = [~"init(<0.90.0>, undefined, {main, run, []})", ~"fork(<0.90.0>, <0.91.0>, {shop, init, [a]})",
             ~"init(<0.91.0>, <0.90.0>, {shop, init, [a]})", ~"recv(<0.91.0>, <0.90.0>, {ask, 1})"],
    [begin
         ok = file:write_file(Log, [Timed(-70, Begin), Timed(-30, [~"recv(<0.91.0>, <0.90.0>, {ask, 2})"])]),
         {ok, Run} = witness:start(More#{system => {log, {file, Log}}, specs => [File], log => false, follow => true,
                                         clock => true}),
         Late = fun() ->
             [begin
                  ?assertMatch(#{verdict := no, event := undefined, info := #{deadline := _}}, V),
                  N
              end || #{slice := [{_, N}]} = V <- witness:verdicts(Run)]
         end,
         ok = witness_await:until(fun() -> Late() =/= [] end),
         ?assertEqual([1], Late()),
         ok = file:write_file(Log, Timed(24 * 60, [~"recv(<0.91.0>, <0.90.0>, {ask, 3})"]), [append]),
         ok = witness_await:until(fun() -> length(Late()) > 1 end),
         ?assertEqual([1, 2], Late()),
         {ok, #{outcome := violated, refused := undefined}} = witness:stop(Run)
     end || Hour <- [3_600_000],
            More <- [#{skew => Hour}, #{sort => Hour}, #{skew => Hour, instrument => central}, #{sort => Hour, block => 1}]],
    %% Times that are not those of the clock say nothing about it.
    ok = file:write_file(Log, [[~"@-576460751234567890 ", Line, $\n] || Line <- Begin]),
    {ok, Other} = witness:start(#{system => {log, {file, Log}}, specs => [File], log => false, follow => true, clock => true,
                                  skew => 0}),
    {ok, #{refused := Refused}} = witness:await(Other, ?RUN_TIMEOUT),
    {ok, _} = witness:stop(Other),
    ?assertEqual(~":1: this is no time of a system clock: with --clock nanoseconds since 1970 are expected",
                 string:prefix(unicode:characters_to_binary(Refused), Log)),
    %% It needs to know how far times go back, and a log that grows.
    [?assertMatch({error, {witness_option, {bad_option, clock, _}}},
                  witness:start(Less#{system => {log, {file, Log}}, specs => [File], clock => true}))
     || Less <- [#{follow => true}, #{skew => 0}, #{}]].

%% The line of the answer is of another machine: with 200 ms between the clocks, it is not known whether it came in 5 s.
clocks_of_a_log_may_differ(Config) ->
    File = write(clocks, ~"asked: with shop:init(_) over _ ? _, _ : _ ! _ check [_ ? {ask, _}] within 5 s <_ : _ ! {answer, _}> tt.", Config),
    Log = filename:join(proplists:get_value(priv_dir, Config), "clocks.log"),
    Begin = "@0 init(\"p\", _, {shop, init, [a]}).\n@10 recv(\"p\", {ask, 1}).\n",
    Found = fun(More) ->
        {ok, Run} = witness:start(maps:merge(#{system => {log, {file, Log}}, specs => [File], log => false}, More)),
        {ok, #{refused := undefined}} = witness:await(Run, ?RUN_TIMEOUT),
        Verdicts = [{Verdict, maps:get(reason, Info, none)} || #{verdict := Verdict, info := Info} <- witness:verdicts(Run)],
        {ok, _} = witness:stop(Run),
        Verdicts
    end,
    [begin
         ok = file:write_file(Log, [Begin, "@", integer_to_list(Time), " send(\"p\", \"q\", {answer, 1}).\n"]),
         ?assertEqual({Time, More, Expected}, {Time, More, Found(More#{clocks => 200})})
     end || {Time, Expected} <- [{4_800_000_010, [{yes, none}]}, {4_800_000_011, [{inconclusive, skew}]},
                                 {5_200_000_010, [{inconclusive, skew}]}, {5_200_000_011, [{no, none}]}],
            More <- [#{}, #{skew => 0}, #{sort => 0}, #{instrument => central}]],
    %% With the same clocks only does a saved position mean the same.
    Position = filename:join(proplists:get_value(priv_dir, Config), "clocks.position"),
    ok = file:write_file(Log, [Begin]),
    [] = [Verdict || {no, Verdict} <- Found(#{clocks => 200, save => Position})],
    Resumed = fun(More) -> witness:start(More#{system => {log, {file, Log}}, specs => [File], log => false, from => Position}) end,
    {error, Refused} = Resumed(#{}),
    ?assertNotEqual(nomatch, string:find(witness:format_error(Refused), "other specifications, monitors or options")),
    {ok, Run} = Resumed(#{clocks => 200}),
    {ok, _} = witness:stop(Run),
    %% Only a log has the lines of several machines; and what compares times in other ways is refused before it is read.
    Start = fun(System, Spec, Clocks) -> witness:start(#{system => System, specs => [Spec], clocks => Clocks}) end,
    {error, {witness_options, {only_for_logs, clocks}}} = Start({?MODULE, all, []}, File, 1),
    {error, {witness_option, {bad_option, clocks, _}}} = Start({log, {file, Log}}, File, -1),
    At = write(at, ~"at: with shop:init(_) over _ ? _ check [_ ? a at T] [_ ? b at U when U - T > 5 s] ff.", Config),
    {error, {witness_spec, [_ | _] = Findings}} = Start({log, {file, "no.log"}}, At, 1),
    [clocks_time] = lists:usort([Code || #{severity := error, code := Code} <- Findings]).

%% What waits for its spawn, or until the first process is known, comes later, and its times are earlier ones.
nothing_passes_before_what_waits(Config) ->
    Formula = fun(Scope, Request) ->
        write(waits, [~"it: ", Scope, ~" over begin ", Request, ~", _ : _ ! {ans, Id} check [", Request, ~"] within 2 s <_ : _ ! {ans, Id}> tt."],
              Config)
    end,
    Late = ["@1000000000 init(\"main\",_,{m,main,[]})\n@2000000000 send(\"main\",\"w\",{req,1})\n"
            "@2500000000 send(\"w\",\"main\",{ans,1})\n@5000000000 fork(\"main\",\"w\",{m,w,[]})\n"
            "@6000000000 exit(\"w\",normal)\n@6000000000 exit(\"main\",normal)\n"],
    Root = ["@1000000000 recv(\"front\",{req,0})\n@1000000000 init(\"w\",_,{m,w,[]})\n@2000000000 recv(\"w\",{req,1})\n"
            "@2500000000 send(\"front\",\"w\",{ans,1})\n@5000000000 recv(\"w\",{x,1})\n@6000000000 send(\"w\",\"front\",{ans,0})\n"],
    [begin
         Log = filename:join(proplists:get_value(priv_dir, Config), "waits.log"),
         ok = file:write_file(Log, Lines),
         File = Formula(Scope, Request),
         [?assertEqual({More, Expected}, {More, violations_of(Log, File, More)})
          || Block <- [1, 1000], Times <- [#{}, #{skew => 0}, #{sort => 0}, #{sort => 60_000}],
             More <- [Times#{instrument => central, block => Block}]]
     end || {Lines, Scope, Request, Expected} <- [{Late, ~"per Id", ~"_ : _ ! {req, Id}", []},
                                                  {Late, ~"with m:main(_) group per Id", ~"_ : _ ! {req, Id}", []},
                                                  {Root, ~"per Id", ~"_ ? {req, Id}", [0]}]].

violations_of(Log, File, More) ->
    {ok, Run} = witness:start(More#{system => {log, {file, Log}}, specs => [File], log => false}),
    {ok, _} = witness:await(Run, ?RUN_TIMEOUT),
    Violated = [Id || #{verdict := no, slice := [{_, Id}]} <- witness:verdicts(Run)],
    {ok, _} = witness:stop(Run),
    Violated.

%% A line that was not read may come before it.
what_waits_at_an_interrupt_is_told(Config) ->
    File = write(waits, ~"never: with m:main() over _ ? bad check [_ ? _] ff.", Config),
    Log = filename:join(proplists:get_value(priv_dir, Config), "interrupted.log"),
    ok = file:write_file(Log, ~"@1000000000 init(<0.1.0>,_,{m,main,[]})\n@5000000000 recv(<0.1.0>,good)\n@5000000001 recv(<0.1.0>,bad)\n"),
    {ok, Run} = witness:start(#{system => {log, {file, Log}}, specs => [File], log => false, follow => true, sort => 1000}),
    ok = witness_await:until(fun() -> maps:with([lines, processes], witness:info(Run)) =:= #{lines => 3, processes => 1} end),
    {ok, #{outcome := untrusted, verdicts := #{no := 0, inconclusive := 1}, warnings := Warnings}} = witness:stop(Run),
    ?assertMatch([~"2 lines were read and not judged: a line that was not read may have an earlier time"],
                 [Text || #{code := unsorted, text := Text} <- Warnings]).

%% Where nothing depends on times, or it was said how far they go back, there is nothing to warn of.
times_that_go_back_within_a_process_are_told(Config) ->
    {Log, File} = log(Config),
    Untimed = write(untimed, ~"untimed: with shop:init(_) check [_ ? nothing] ff.", Config),
    Warned = fun(Spec, More) ->
        {ok, Run} = witness:start(More#{system => {log, {file, Log}}, specs => [Spec], log => false}),
        {ok, #{warnings := Warnings}} = witness:await(Run, ?RUN_TIMEOUT),
        {ok, _} = witness:stop(Run),
        [Text || #{code := times, text := Text} <- Warnings]
    end,
    Expected = iolist_to_binary(["the time at ", Log, ":10 is before that of an earlier event of the same process (by at most 100.000 ms in the "
                                 "log), and there are deadlines: if the lines are in no order, use --sort"]),
    [?assertEqual([Expected], Warned(File, More)) || More <- [#{}, #{block => 1}, #{instrument => central}]],
    ?assertEqual([], Warned(Untimed, #{})),
    [?assertEqual([], Warned(File, More)) || More <- [#{skew => 100}, #{sort => 100}]].

%% The place in the log, and why it is not read any further.
refused(Log, File, Skew) ->
    {ok, Run} = witness:start(#{system => {log, {file, Log}}, specs => [File], log => false, skew => Skew}),
    {ok, #{refused := Refused}} = witness:await(Run, ?RUN_TIMEOUT),
    {ok, _} = witness:stop(Run),
    string:prefix(unicode:characters_to_binary(Refused), Log).

log(Config) ->
    Log = filename:join(proplists:get_value(priv_dir, Config), "times.log"),
    ok = file:write_file(Log, ~"""
    @0 init(<0.90.0>, undefined, {main, run, []}).
    @1 fork(<0.90.0>, <0.91.0>, {shop, init, [a]}).
    @2 init(<0.91.0>, <0.90.0>, {shop, init, [a]}).
    @3 fork(<0.90.0>, <0.92.0>, {shop, init, [b]}).
    @4 init(<0.92.0>, <0.90.0>, {shop, init, [b]}).
    @10 recv(<0.91.0>, <0.90.0>, {ask, 1}).
    @2000000000 recv(<0.92.0>, <0.90.0>, {ask, 1}).
    @3000000000 send(<0.92.0>, <0.90.0>, {answer, 1}).
    @6000000000 send(<0.90.0>, <0.92.0>, {ask, 2}).
    @5900000000 send(<0.90.0>, <0.92.0>, {ask, 3}).
    @6800000000 send(<0.90.0>, <0.92.0>, {ask, 2}).

    """),
    {Log, write(log, ~"""
    answered: with shop:init(_) over _ ? {ask, _}, _ : _ ! {answer, _} check
      <_ ? {ask, N}> within 5 s min X. (<_ : _ ! {answer, N}> tt or <_ ? {ask, _}> X).
    """, Config)}.

asked() -> receive {asked, Client, Servers} -> {Client, Servers} end.

told() -> receive {verdict, V} -> [V | told()] after 0 -> [] end.

violations(Run) -> counts(witness:verdicts(Run)).

counts(Verdicts) ->
    Names = [Name || #{verdict := no, name := Name} <- Verdicts],
    lists:sort([{Name, length([N || N <- Names, N =:= Name])} || Name <- lists:usort(Names)]).

%% Another property says the same by the times of the events alone. Of each request exactly one of them is violated.
nothing_in_time_is_late(Config) ->
    Requests = witness_setting:number("WITNESS_DEADLINES_REQUESTS", 4000),
    Specs = [["late: ", scope(), "[_ ? {work, N}] within ", integer_to_binary(?NEAR_US), " us <_ : _ ! {answer, N}> tt.\n"],
             ["in_time: ", scope(), "[_ ? {work, N} at T] [_ : _ ! {answer, N} at U when U - T =< ", integer_to_binary(?NEAR_US),
              " us] ff.\n"]],
    [begin
         Table = ets:new(verdicts, [public, {write_concurrency, true}]),
         Note = fun(#{verdict := no, name := Name, slice := [{_, N}]}) -> true = ets:insert_new(Table, {{Name, N}}); (_) -> ok end,
         {ok, Run} = start({witness_deadlines_system, near, [Requests div 4, ?NEAR_US]}, write(near, Spec, Config),
                           #{instrument => Mode, on_verdict => Note, max_verdicts => 10}, Config),
         {ok, Summary} = witness:await(Run, ?RUN_TIMEOUT),
         {ok, _} = witness:stop(Run),
         Late = slices(~"late", Table),
         InTime = slices(~"in_time", Table),
         ct:pal("~p ~p: ~b late, ~b in time of ~b~n", [Mode, proplists:get_value(source, Config), length(Late), length(InTime), Requests]),
         ?assertEqual([], ordsets:intersection(Late, InTime)),
         case Spec of
             [_, _] ->
                 ?assertEqual({Summary, 4 * (Requests div 4)}, {Summary, length(Late) + length(InTime)}),
                 ?assert(Late =/= []),
                 ?assert(InTime =/= []);
             _ -> ok
         end,
         ets:delete(Table)
     end || Mode <- [outline, central], Spec <- [Specs]].

slices(Name, Table) -> ordsets:from_list([N || {{Of, N}} <- ets:tab2list(Table), Of =:= Name]).

scope() -> "with witness_deadlines_system:init(_) per N over _ ? {work, N}, _ : _ ! {answer, N} check\n  ".

start(System, File, More, Config) ->
    witness:start(maps:merge(#{system => System, specs => [File], source => proplists:get_value(source, Config), log => false,
                               scope => tree, max_slices => 1_000_000}, More)).

write(Name, Text, Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), lists:concat([Name, "_", proplists:get_value(source, Config), ".hml"])),
    ok = file:write_file(File, Text),
    File.
