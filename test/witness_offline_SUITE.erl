-module(witness_offline_SUITE).
-moduledoc """
Logs from text to verdicts: `witness check` as a process of the operating system, `witness:start/1`, and where it has
to be driven more finely than either allows (block sizes, moments of death) the server `m:witness_offline`.

`WITNESS_OFFLINE_EVENTS` is how many events the longer log has in the test of memory (1,500,000).
""".
-include_lib("stdlib/include/assert.hrl").

-behaviour(witness_monitor).

-export([all/0, suite/0, groups/0, init_per_suite/1, end_per_suite/1]).
-export([
    monitors_record_their_exact_sequence/1,
    specifications_see_their_exact_sequence/1
]).
-export([
    blocks_shards_and_modes_make_no_difference/1,
    schedulers_and_modes_make_no_difference/1,
    undecided_slices_are_told_up_to_a_bound/1, what_is_satisfied_is_counted_where_it_is_not_told/1,
    a_position_counts_what_is_satisfied_once/1
]).
-export([
    a_malformed_line_is_pointed_at/1,
    a_malformed_line_that_is_skipped_gives_no_result/1,
    a_violation_counts_more_than_a_skipped_line/1,
    malformed_lines_are_all_counted_and_some_are_named/1,
    an_event_after_the_exit_is_refused/1,
    a_second_init_is_refused/1,
    a_spawn_of_a_known_process_is_refused/1,
    an_impossible_event_can_be_skipped/1,
    a_truncated_last_line_is_refused/1,
    a_last_line_without_newline_counts/1,
    bytes_of_other_encodings_are_refused/1,
    one_atom_too_many_is_refused/1,
    processes_without_spawn_give_no_result/1,
    an_empty_log_gives_no_result/1,
    logs_that_cannot_be_read_are_named/1,
    specifications_that_cannot_be_read_are_named/1,
    standard_input_is_read/1,
    a_truncated_gzip_gives_what_was_whole/1,
    a_damaged_gzip_is_refused/1,
    json_has_line_and_column/1,
    outcomes_of_slices_survive_a_refusal/1,
    a_gap_that_waited_ends_the_monitor/1
]).
-export([
    a_line_of_100_mb_is_refused_in_bounded_memory/1,
    a_line_of_100_mb_can_be_skipped/1,
    long_lines_below_the_limit_take_bounded_memory/1,
    long_items_that_wait_take_bounded_memory/1,
    a_gzip_bomb_takes_bounded_memory/1,
    a_slow_reader_of_verdicts_takes_bounded_memory/1,
    memory_does_not_grow_with_the_log/1
]).
-export([
    killed_at_any_moment_nothing_is_lost_or_doubled/1,
    killed_by_the_system_nothing_is_lost_or_doubled/1,
    a_position_counts_the_monitors_that_live/1,
    a_position_at_the_end_goes_on_when_the_log_grows/1,
    a_changed_specification_is_refused/1,
    a_changed_record_is_refused/1,
    a_damaged_position_is_refused/1,
    a_position_of_another_log_is_refused/1,
    a_position_that_cannot_be_written_gives_no_result/1,
    no_other_user_may_read_a_position/1
]).
%% Called in VMs of their own.
-export([measured/1, written/2]).
-export([init/3, handle_event/2, handle_end/2]).

-define(LIMIT_MS, 60_000).
-define(M, list_to_pid("<0.1.0>")).
%% Of positions.
-define(IDENTITY, <<0:128>>).

suite() -> [{timetrap, {minutes, 3}}].

all() -> [{group, Group} || {Group, _, _} <- groups()].

groups() ->
    [{permutations, [], [monitors_record_their_exact_sequence, specifications_see_their_exact_sequence]},
     {determinism, [], [blocks_shards_and_modes_make_no_difference, schedulers_and_modes_make_no_difference,
                        what_is_satisfied_is_counted_where_it_is_not_told, undecided_slices_are_told_up_to_a_bound]},
     {refused, [parallel],
      [a_malformed_line_is_pointed_at, a_malformed_line_that_is_skipped_gives_no_result,
       a_violation_counts_more_than_a_skipped_line, malformed_lines_are_all_counted_and_some_are_named,
       an_event_after_the_exit_is_refused, a_second_init_is_refused, a_spawn_of_a_known_process_is_refused,
       an_impossible_event_can_be_skipped, a_truncated_last_line_is_refused, a_last_line_without_newline_counts,
       bytes_of_other_encodings_are_refused, one_atom_too_many_is_refused, processes_without_spawn_give_no_result,
       an_empty_log_gives_no_result, logs_that_cannot_be_read_are_named, specifications_that_cannot_be_read_are_named,
       standard_input_is_read, a_truncated_gzip_gives_what_was_whole, a_damaged_gzip_is_refused,
           json_has_line_and_column,
       outcomes_of_slices_survive_a_refusal, a_gap_that_waited_ends_the_monitor]},
     {memory, [], [a_line_of_100_mb_is_refused_in_bounded_memory, a_line_of_100_mb_can_be_skipped,
                   long_lines_below_the_limit_take_bounded_memory, long_items_that_wait_take_bounded_memory,
                   a_gzip_bomb_takes_bounded_memory, a_slow_reader_of_verdicts_takes_bounded_memory,
                   memory_does_not_grow_with_the_log]},
     {positions, [parallel], [killed_at_any_moment_nothing_is_lost_or_doubled,
                              killed_by_the_system_nothing_is_lost_or_doubled,
                      a_position_counts_the_monitors_that_live, a_position_counts_what_is_satisfied_once,
                      a_position_at_the_end_goes_on_when_the_log_grows,
                      a_changed_specification_is_refused, a_changed_record_is_refused, a_damaged_position_is_refused,
                      a_position_of_another_log_is_refused, a_position_that_cannot_be_written_gives_no_result,
                      no_other_user_may_read_a_position]}].

init_per_suite(Config0) ->
    Config = [{root, witness_checkout:root(proplists:get_value(data_dir, Config0))} | Config0],
    {ok, _} = application:ensure_all_started(witness),
    %% The first call may have to build Witness, and says so.
    #{exit := 0} = execute(Config, executable(Config), ["--version"]),
    write(Config, "good.hml", good()),
    write(Config, "slices.hml", slices()),
    Config.

end_per_suite(_) -> ok.

%% --- specifications and logs -----------------------------------------------------

good() ->
    """
    all_good: with m:w(_)
    monitor
      [_ <- _, _] max X.([_ ? {_, bad}] ff and [_ ? {_, good}] X and [_ -> _, _] X and [_ : _ ! _] X).

    with m:h(_)
    monitor
      [_ <- _, _] max X.([_ ? {_, bad}] ff and [_ ? {_, good}] X).
    """.

%% The groups of a worker and its helper, in slices.
slices() ->
    """
    not_thrice: with m:w(_) group
    per Key over _ ? {Key, _}
    monitor
      [_ ? _] [_ ? _] [_ ? _] ff.
    """.

begins(P, Parent, Signature) -> {init, P, Parent, Signature, undefined}.
fork(P, C, Signature) -> {fork, P, C, Signature, undefined}.
recv(P, Message) -> {recv, P, undefined, Message, undefined}.
ends(P) -> {exit, P, normal, undefined}.

%% A worker that is violated at line 5, and one that is not.
small() ->
    [begins(?M, undefined, {m, main, []}), fork(?M, pid(2), {m, w, [1]}), begins(pid(2), ?M, {m, w, [1]}),
     recv(pid(2), {1, good}), recv(pid(2), {1, bad}), ends(pid(2)), fork(?M, pid(3), {m, w, [2]}),
     recv(pid(3), {2, good}), ends(pid(3)), ends(?M)].

%% The same without the violation.
satisfied() -> [Item || Item <- small(), Item =/= recv(pid(2), {1, bad})].

pid(N) -> list_to_pid("<0." ++ integer_to_list(N) ++ ".0>").

text(Items) -> iolist_to_binary([witness_log:line(Item, text) || Item <- Items]).

%% Workers, of which some have a helper, in a random order that is sound, with forks as late as their process allows.
random(Seed, Workers) ->
    Items = in_order(Seed, Workers),
    late(Items, rand:seed_s(exsss, Seed), []).

%% The same with every fork before what it leads to.
in_order(Seed, Workers) ->
    {Lives, State} = lists:mapfoldl(fun worker/2, rand:seed_s(exsss, Seed), lists:seq(1, Workers)),
    Master = [begins(?M, undefined, {m, main, []})]
        ++ [fork(?M, pid(10 * W), {m, w, [W]}) || W <- lists:seq(1, Workers)]
        ++ [ends(?M)],
    mixed([Master], maps:from_list([{element(2, hd(Life)), Life} || Life <- lists:append(Lives)]), [], State).

worker(W, State0) ->
    P = pid(10 * W),
    H = pid(10 * W + 1),
    {Before, State1} = messages(P, State0),
    {After, State2} = messages(P, State1),
    {Helped, State3} = messages(H, State2),
    {Dice, State} = rand:uniform_s(3, State3),
    Init = [begins(P, ?M, {m, w, [W]})],
    Lives = case Dice of
        1 -> [Init ++ Before ++ [fork(P, H, {m, h, [W]})] ++ After ++ [ends(P)],
              [begins(H, P, {m, h, [W]})] ++ Helped ++ [ends(H)]];
        _ -> [Init ++ Before ++ After ++ [ends(P)]]
    end,
    {Lives, State}.

messages(P, State0) ->
    {Count, State} = rand:uniform_s(6, State0),
    lists:mapfoldl(fun(_, S0) ->
        {Key, S1} = rand:uniform_s(5, S0),
        {Dice, S2} = rand:uniform_s(20, S1),
        {recv(P, {Key, case Dice of 1 -> bad; _ -> good end}), S2}
    end, State, lists:seq(1, Count)).

%% A process takes part once it was forked.
mixed([], _, Items, _) -> lists:reverse(Items);
mixed(Active, Later, Items, State0) ->
    {N, State} = rand:uniform_s(min(10, length(Active)), State0),
    {Before, [[Item | Life] | After]} = lists:split(N - 1, Active),
    Rest = Before ++ [Life || Life =/= []] ++ After,
    case Item of
        {fork, _, C, _, _} -> mixed(Rest ++ [map_get(C, Later)], Later, [Item | Items], State);
        _ -> mixed(Rest, Later, [Item | Items], State)
    end.

%% Forks move behind what others do: each is put off for some items, or until its own process does something.
late([], _, Put) -> [Fork || {_, Fork} <- Put];
late([Item | Items], State0, Put0) ->
    P = element(2, Item),
    {Due, Put} = lists:partition(fun({Left, Fork}) -> Left =:= 0 orelse element(2, Fork) =:= P end, Put0),
    {Most, State} = rand:uniform_s(40, State0),
    Later = [{Left - 1, Fork} || {Left, Fork} <- Put],
    [Fork || {_, Fork} <- Due] ++ case element(1, Item) of
        fork -> late(Items, State, Later ++ [{Most, Item}]);
        _ -> [Item | late(Items, State, Later)]
    end.

%%% every log, every set-up: a sample through the whole pipeline (the rest: witness_offline_core_tests)

%% Monitors written in Erlang are for one process each.
monitors_record_their_exact_sequence(Config) ->
    [begin
        File = write(Config, "single." ++ atom_to_list(Format), log(Log, Format)),
        {Summary, Verdicts} = checked(#{system => {log, {file, File}}, format => Format, instrument => Mode,
                                        monitors => [{{sys, P, 0}, {?MODULE, P}} || [P] <- SetUp]}),
        ?assertEqual(lists:sort([recorded(Partition, Log, File) || Partition <- SetUp]),
                     lists:sort([{P, Line, Events} || #{process := P, verdict := yes, info := Events,
                                                        log := Line} <- Verdicts])),
        ?assertMatch(#{processes := 3, events := 16, lines := 16, outcome := ok}, Summary)
     end || Log <- sample(1500), Mode <- [outline, central], SetUp <- [[[p], [q], [r]], [[p], [r]], [[q]]],
            Format <- [text, json]],
    ok.

%% All set-ups are those of specifications. A chain of as many actions as there are events tells them in its
%% explanation.
specifications_see_their_exact_sequence(Config) ->
    [begin
        File = write(Config, "chain.log", log(Log, text)),
        Spec = write(Config, "chain.hml", chains(SetUp, Log)),
        {_, Verdicts} = checked(#{system => {log, {file, File}}, instrument => Mode, specs => [Spec], explain => 100}),
        ?assertEqual(lists:sort([recorded(Partition, Log, File) || Partition <- SetUp]),
                     lists:sort([{P, Line, [E || #{event := E} <- Steps]}
                                 || #{process := P, verdict := no, steps := Steps, log := Line} <- Verdicts]))
     end || Log <- sample(14_000), Mode <- [outline, central], SetUp <- witness_offline_system:set_ups(), SetUp =/= []],
    ok.

%% Each log that many later.
sample(Each) ->
    [Log || {N, Log} <- lists:enumerate(witness_offline_system:logs(witness_offline_system:lives())),
     N rem Each =:= 77].

log(Log, Format) -> [witness_log:line(Item, Format) || E <- Log, Item <- witness_offline_system:items(E)].

recorded(Partition, Log, File) ->
    {P, [{_, {start, P, _}} | Told]} = witness_offline_system:expected_of(Partition, Log),
    {Line, complete} = lists:last(Told),
    {P, <<(unicode:characters_to_binary(File))/binary, $:, (integer_to_binary(Line))/binary>>,
     [E || {_, E} <- Told, E =/= complete]}.

chains(SetUp, Log) ->
    [[case [Partition || Partition <- SetUp, lists:member(P, Partition)] of
          [[P | Rest] = Partition] ->
              {_, [_ | Told]} = witness_offline_system:expected_of(Partition, Log),
              ["with sys:", atom_to_list(P), "()", [" group" || Rest =/= []], " monitor ",
               [action(E) || {_, E} <- Told, E =/= complete], "ff.\n"];
          [_] -> [];
          [] -> ["with sys:", atom_to_list(P), "() none.\n"]
      end || P <- [p, q, r]]].

action({init, _, _, _, _}) -> "[_ <- _, _] ";
action({fork, _, _, _, _}) -> "[_ -> _, _] ";
action({send, _, _, _, _}) -> "[_ : _ ! _] ";
action({recv, _, _, _, _}) -> "[_ ? _] ";
action({exit, _, _, _}) -> "[_ ** _] ".

%%% the same verdicts in the same order, however the work is divided

blocks_shards_and_modes_make_no_difference(Config) ->
    Specs = compiled(Config),
    File = write(Config, "random.log", text(random(1, 300))),
    Whole = found(File, Specs, #{}),
    ?assert(length([violated || #{verdict := no} <- Whole]) > 50),
    ?assert(length(lists:usort([P || #{process := P, verdict := no} <- Whole])) > 40),
    [?assertEqual(Whole, found(File, Specs, Options), Options)
     || {Block, Spread, Parsers} <- [{64, 2, 2}, {300, 1, 1}, {1000, 3, 2}, {5000, 2, 3}, {20_000, 1, 2},
                                     {1 bsl 18, 2, 2}],
        Mode <- [outline, central],
        Options <- [#{block => Block, spread => Spread, parsers => Parsers, mode => Mode}]],
    unload(Specs).

schedulers_and_modes_make_no_difference(Config) ->
    _ = write(Config, "random.log", text(random(2, 700))),
    Runs = [{"+S 1:1", "outline"}, {"+S 2:2", "outline"}, {"+S 2:2", "central"}],
    [First | Others] = [told(check(Config, ["--json", "--instrument", Mode, "--spec", "good.hml", "--spec",
                                            "slices.hml",
                                            "random.log"], [{"WITNESS_ERL_FLAGS", Flags}]))
                        || {Flags, Mode} <- Runs],
    ?assert(length([violated || #{~"verdict" := ~"no"} <- First]) > 200),
    [?assertEqual(First, Other, Run) || {Run, Other} <- lists:zip(tl(Runs), Others)],
    ok.

%% The numbers are the same, and so is, in its order, what is told all the same.
what_is_satisfied_is_counted_where_it_is_not_told(Config) ->
    File = write(Config, "counted.log", text(random(3, 300))),
    Options = #{system => {log, {file, File}}, specs => [path(Config, Spec) || Spec <- ["good.hml", "slices.hml"]],
                max_verdicts => 0},
    Numbers = fun(Summary) -> maps:without([elapsed_ms, warnings], Summary) end,
    {All, Told} = heard(Options),
    #{slices := Slices, verdicts := #{yes := Yes, no := No}} = All,
    ?assert(Slices > 100 andalso Yes > 100 andalso No > 50, All),
    ?assertEqual(Yes, length([yes || #{verdict := yes} <- Told])),
    {Without, Unsatisfied} = heard(Options#{satisfied => counted}),
    ?assertEqual(Numbers(All), Numbers(Without)),
    ?assertEqual([V || V = #{verdict := Verdict} <- Told, Verdict =/= yes],
                 [V || V = #{verdict := Verdict} <- Unsatisfied, Verdict =/= yes]),
    %% Only what a monitor with slices says that has had none is told.
    ?assertEqual([], [V || V = #{verdict := yes, vacuous := false} <- Unsatisfied]),
    {Silent, []} = checked(Options),
    ?assertEqual(Numbers(All), Numbers(Silent)),
    %% Those that are kept are the first ones.
    {Kept, First} = checked(Options#{max_verdicts := 100}),
    ?assertEqual(Numbers(All), Numbers(Kept)),
    ?assertEqual(lists:sublist(Told, 100), First).

%% Three processes with 600 open slices each: in the log of a run, in a run of each kind, and for people.
undecided_slices_are_told_up_to_a_bound(Config) ->
    Spec = write(Config, "open.hml", "with witness_offline_waiting:waits(_) per Key over _ ? {Key, _}\n"
                                     "monitor max X.([_ ? {_, open}] X and [_ ? {_, bad}] ff).\n"),
    P = [pid(N) || N <- [2, 3, 4]],
    Lives = [[fork(?M, Pid, {witness_offline_waiting, waits, [1]})] ++ [recv(Pid, {Key, open}) || Key <- lists:seq(1, 600)]
             || Pid <- P],
    File = write(Config, "open.log", text([begins(?M, undefined, {m, main, []}) | lists:append(Lives)])),
    Log = #{system => {log, {file, File}}, specs => [Spec]},
    Live = #{system => {witness_offline_waiting, run, []}, specs => [Spec], halt => false, source => evm},
    [begin
        {Summary, Verdicts} = stopped(Options),
        #{undecided := [Undecided]} = Summary,
        ?assertMatch(#{slices := 1800, verdicts := #{inconclusive := 1800}, outcome := ok}, Summary, Options),
        ?assertMatch(#{count := 1800, told := 300, reason := stopped}, Undecided, Options),
        ?assertEqual(300, length(Verdicts)),
        ?assertEqual([lists:seq(1, 100)],
                     lists:usort([lists:sort([Key || #{process := Of, slice := [{_, Key}]} <- Verdicts, Of =:= Pid])
                                   || #{process := Pid} <- Verdicts]))
    end || Options <- [Log, Log#{instrument => central}, Live, Live#{instrument => central}, Live#{instrument => inline}]],
    #{exit := 0, stdout := Text} = check(Config, ["--spec", "open.hml", "open.log"]),
    contains(Text, [~"1800 undecided: watching stopped before a decision"]),
    #{exit := 0, stdout := Json} = check(Config, ["--json", "--spec", "open.hml", "open.log"]),
    ?assertEqual(300, length([Line || Line = #{~"type" := ~"verdict"} <- lines(Json)])),
    ?assertMatch([#{~"undecided" := [#{~"count" := 1800, ~"told" := 300}]}], [L || L = #{~"type" := ~"summary"} <- lines(Json)]).

%% A run ends when all of its processes wait; they end behind it.
stopped(#{system := {log, _}} = Options) -> checked(Options);
stopped(Options) ->
    {ok, Run} = witness:start(Options#{log => false, system := {witness_offline_waiting, run, [{self(), 600}]}}),
    Waiting = [receive {waits, Pid} -> Pid after ?LIMIT_MS -> ct:fail(not_waiting) end || _ <- [1, 2, 3, 4]],
    {ok, Summary} = witness_run:finish(Run),
    Verdicts = witness:verdicts(Run),
    {ok, _} = witness:stop(Run),
    [Pid ! over || Pid <- Waiting],
    {Summary, Verdicts}.

heard(Options) ->
    Self = self(),
    Ref = make_ref(),
    {Summary, []} = checked(Options#{on_verdict => fun(V) -> Self ! {Ref, V} end}),
    {Summary, all_heard(Ref)}.

all_heard(Ref) -> receive {Ref, V} -> [V | all_heard(Ref)] after 0 -> [] end.

%% Verdicts as JSON tells them, without what differs from run to run. A position has the births of no processes but those that are
%% monitored, so the other ones have no names after it.
told(#{exit := 1, stdout := Output}) -> verdicts(Output).

verdicts(Output) ->
    [Verdict#{~"log" := lists:last(binary:split(Log, ~":"))}
     || Line = #{~"type" := ~"verdict", ~"log" := Log} <- lines(Output),
         Verdict <- [maps:without([~"run", ~"time", ~"names"], Line)]].

lines(Output) -> [json:decode(Line) || Line <- binary:split(Output, ~"\n", [global, trim_all])].

%%% wrong logs

%% What was found before the line stands, and what comes after it is not read.
a_malformed_line_is_pointed_at(Config) ->
    _ = write(Config, "malformed.log", [text(small()), "recv(<0.1.0>,{good)\n", text([recv(?M, x)])]),
    #{exit := 2, stdout := Text, stderr := Error} = check(Config, ["--spec", "good.hml", "malformed.log"]),
    contains(Error, [~"witness check: malformed.log:11:19: expected "]),
    contains(Text, [~"VIOLATION of all_good", ~"at malformed.log:5\n", ~"REFUSED", ~"1 violation was seen"]).

a_malformed_line_that_is_skipped_gives_no_result(Config) ->
    _ = write(Config, "skipped.log", ["nonsense\n", text(satisfied()), "recv(<0.1.0>\n"]),
    #{exit := 3, stdout := Text, stderr := ~""} = check(Config, ["--skip-malformed", "--spec", "good.hml",
                                                                 "skipped.log"]),
    contains(Text, [~"2 lines were left out: skipped.log:1:1: expected an event", ~"skipped.log:11:13: ",
                    ~"2 satisfied",
                    ~"NO RESULT"]).

a_violation_counts_more_than_a_skipped_line(Config) ->
    _ = write(Config, "both.log", ["nonsense\n", text(small())]),
    #{exit := 1, stdout := Text} = check(Config, ["--skip-malformed", "--spec", "good.hml", "both.log"]),
    contains(Text, [~"1 line was left out: both.log:1:1: expected", ~"at both.log:6\n", ~"VIOLATED"]).

malformed_lines_are_all_counted_and_some_are_named(Config) ->
    Lines = [["nonsense\n", text([recv(?M, N)])] || N <- lists:seq(1, 50_000)],
    _ = write(Config, "every.log", [text([begins(?M, undefined, {m, w, []})]), Lines]),
    #{exit := 3, stdout := Text} = check(Config, ["--skip-malformed", "--json", "--spec", "good.hml", "every.log"]),
    Summary = lists:last(lines(Text)),
    ?assertEqual(50_001, maps:get(~"events", Summary)),
    [Warning] = [Told || #{~"code" := ~"malformed", ~"text" := Told} <- maps:get(~"warnings", Summary)],
    contains(Warning, [~"50000 lines were left out: every.log:2:1: ", ~"every.log:20:1: ", ~"; ..."]),
    ?assertEqual(nomatch, binary:match(Warning, ~"every.log:22:1")).

an_event_after_the_exit_is_refused(Config) ->
    refused(Config, "after", [text(small()), text([recv(pid(2), x)])], ~"after.log:11: <0.2.0> has ended", 5).

a_second_init_is_refused(Config) ->
    refused(Config, "init", [text(lists:droplast(small())), text([begins(?M, undefined, {m, main, []})])],
            ~"init.log:10: init of <0.1.0>, which has begun already", 5).

a_spawn_of_a_known_process_is_refused(Config) ->
    refused(Config, "fork", [text(lists:droplast(small())), text([fork(?M, ?M, {m, main, []})])], ~"fork.log:10: ", 5),
    {Before, After} = lists:split(5, small()),
    refused(Config, "alive", [text(Before), text([fork(?M, pid(2), {m, w, [1]})]), text(After)],
            ~"alive.log:6: fork of <0.2.0>, which is alive", 5).

refused(Config, Name, Log, Error, Violated) ->
    _ = write(Config, Name ++ ".log", Log),
    #{exit := 2, stdout := Text, stderr := Errors} = check(Config, ["--spec", "good.hml", Name ++ ".log"]),
    contains(Errors, [Error]),
    contains(Text, [[~"at ", Name, ~".log:", integer_to_binary(Violated), $\n], ~"REFUSED"]).

%% Everything else is as if the line were not there.
an_impossible_event_can_be_skipped(Config) ->
    _ = write(Config, "impossible.log", [text(lists:droplast(satisfied())),
                                         text([begins(?M, undefined, {m, w, []}), ends(?M)])]),
    #{exit := 3, stdout := Text} = check(Config, ["--skip-malformed", "--spec", "good.hml", "impossible.log"]),
    contains(Text, [~"1 line was left out: impossible.log:9: init of <0.1.0>, which has begun already",
                    ~"2 satisfied"]).

a_truncated_last_line_is_refused(Config) ->
    refused(Config, "cut", [text(small()), "recv(<0.1.0>,hel"], ~"cut.log:11:17: expected ", 5).

a_last_line_without_newline_counts(Config) ->
    _ = write(Config, "newline.log", string:trim(text(satisfied()), trailing)),
    #{exit := 0, stdout := Text} = check(Config, ["--spec", "good.hml", "newline.log"]),
    contains(Text, [~"9 lines, to its end", ~"watched   3 processes, 10 events", ~"2 satisfied"]).

bytes_of_other_encodings_are_refused(Config) ->
    refused(Config, "latin1", [text(small()), <<"recv(<0.1.0>,\"caf", 16#E9, "\")\n">>],
            ~"latin1.log:11:18: bytes that are not UTF-8", 5),
    _ = write(Config, "utf16.log", unicode:characters_to_binary(text(small()), utf8, {utf16, little})),
    #{exit := 2, stderr := Error} = check(Config, ["--spec", "good.hml", "utf16.log"]),
    contains(Error, [~"utf16.log:1:"]),
    %% A mark at the beginning is none of them.
    _ = write(Config, "mark.log", [<<16#EF, 16#BB, 16#BF>>, text(satisfied())]),
    #{exit := 0} = check(Config, ["--spec", "good.hml", "mark.log"]),
    #{exit := 3, stdout := Text} = check(Config, ["--skip-malformed", "--spec", "good.hml", "utf16.log"]),
    contains(Text, [~"left out"]).

%% Atoms that the VM knows already do not count.
one_atom_too_many_is_refused(Config) ->
    Atoms = [["recv(<0.1.0>,never_heard_of_", integer_to_list(N), ")\n"] || N <- lists:seq(1, 11)],
    _ = write(Config, "atoms.log", [text(small()), text([begins(pid(5), undefined, {m, main, []})]),
                                    string:replace(Atoms, "0.1.0", "0.5.0", all)]),
    #{exit := 2, stderr := Error, stdout := Text} = check(Config, ["--max-atoms", "10", "--spec", "good.hml",
                                                                   "atoms.log"]),
    contains(Error, [~"atoms.log:22:14: more than 10 atoms"]),
    contains(Text, [~"at atoms.log:5\n"]),
    #{exit := 1} = check(Config, ["--max-atoms", "11", "--spec", "good.hml", "atoms.log"]).

processes_without_spawn_give_no_result(Config) ->
    _ = write(Config, "orphans.log", [text(satisfied()), text([recv(pid(8), x), ends(pid(8)), recv(pid(9), x)])]),
    #{exit := 3, stdout := Text} = check(Config, ["--spec", "good.hml", "orphans.log"]),
    contains(Text, [~"2 processes act whose spawns are nowhere in the log: <0.8.0>, <0.9.0>; 3 events were left out",
                    ~"2 satisfied"]),
    _ = write(Config, "orphan.log", [text(small()), text([recv(pid(8), x)])]),
    #{exit := 1, stdout := Violated} = check(Config, ["--spec", "good.hml", "orphan.log"]),
    contains(Violated, [~"1 process acts whose spawn is nowhere in the log: <0.8.0>; 1 event was left out",
                        ~"VIOLATED"]).

an_empty_log_gives_no_result(Config) ->
    [begin
        _ = write(Config, "empty.log", Content),
        #{exit := 3, stdout := Text} = check(Config, ["--spec", "good.hml", "empty.log"]),
        contains(Text, [~"NO RESULT: nothing was monitored"])
     end || Content <- ["", "\n\n% nothing\n"]],
    ok.

logs_that_cannot_be_read_are_named(Config) ->
    [begin
        #{exit := 2, stderr := Error, stdout := ~""} = check(Config, ["--spec", "good.hml", Log]),
        contains(Error, [~"witness check: ", Log, Why])
     end || {Log, Why} <- [{"no.log", ~"no such file"}, {".", ~"directory"}, {"no/such.log", ~"no such file"}]],
    ok.

specifications_that_cannot_be_read_are_named(Config) ->
    _ = write(Config, "spec.log", text(small())),
    #{exit := 2, stderr := Missing} = check(Config, ["--spec", "no.hml", "spec.log"]),
    contains(Missing, [~"no.hml: error: cannot read the file"]),
    _ = write(Config, "wrong.hml", "with m:w(_) monitor [_ <- ."),
    #{exit := 2, stderr := Wrong} = check(Config, ["--spec", "wrong.hml", "spec.log"]),
    contains(Wrong, [~"wrong.hml:1:27"]).

standard_input_is_read(Config) ->
    Log = write(Config, "input.log", text(small())),
    Piped = fun(Command) -> execute(Config, "/bin/sh", ["-c", Command, "sh", executable(Config), Log]) end,
    #{exit := 1, stdout := Text} = Piped("cat \"$2\" | \"$1\" check --spec good.hml -"),
    contains(Text, [~"at standard input:5\n"]),
    #{exit := 1} = Piped("gzip -c \"$2\" | \"$1\" check --spec good.hml -"),
    #{exit := 2, stderr := Error} = Piped("(cat \"$2\"; echo nonsense) | \"$1\" check --spec good.hml -"),
    contains(Error, [~"witness check: standard input:11:1: expected an event"]).

a_truncated_gzip_gives_what_was_whole(Config) ->
    Items = small() ++ [begins(pid(5), undefined, {m, main, []})]
        ++ [recv(pid(5), rand:bytes(100)) || _ <- lists:seq(1, 5000)],
    Whole = zlib:gzip(text(Items)),
    _ = write(Config, "cut.log.gz", binary:part(Whole, 0, byte_size(Whole) - 1000)),
    #{exit := 2, stdout := Text, stderr := Error} = check(Config, ["--spec", "good.hml", "cut.log.gz"]),
    contains(Error, [~"cut.log.gz: "]),
    contains(Text, [~"at cut.log.gz:5\n", ~"REFUSED"]).

a_damaged_gzip_is_refused(Config) ->
    Items = small() ++ [begins(pid(5), undefined, {m, main, []})]
        ++ [recv(pid(5), rand:bytes(20)) || _ <- lists:seq(1, 100)],
    _ = write(Config, "damaged.log.gz", flipped(200, zlib:gzip(text(Items)))),
    #{exit := 2, stderr := Error} = check(Config, ["--spec", "good.hml", "damaged.log.gz"]),
    contains(Error, [~"damaged.log.gz"]),
    ?assertEqual(nomatch, binary:match(Error, ~"the system goes on")).

json_has_line_and_column(Config) ->
    Json = [witness_log:line(Item, json) || Item <- small()],
    _ = write(Config, "small.jsonl", Json),
    #{exit := 1, stdout := Text} = check(Config, ["--spec", "good.hml", "small.jsonl"]),
    contains(Text, [~"at small.jsonl:5\n"]),
    _ = write(Config, "wrong.jsonl", [Json, "{\"event\":\"recv\",\"process\":17}\n"]),
    #{exit := 2, stderr := Error} = check(Config, ["--spec", "good.hml", "wrong.jsonl"]),
    contains(Error, [~"witness check: wrong.jsonl:11:27: "]).

%% The monitor ends with the log, after its slice was violated.
outcomes_of_slices_survive_a_refusal(Config) ->
    Items = [begins(?M, undefined, {m, w, [1]})] ++ [recv(?M, {K, good}) || K <- [1, 1, 1, 2]],
    _ = write(Config, "slices.log", [text(Items), "nonsense\n"]),
    #{exit := 2, stdout := Text} = check(Config, ["--spec", "slices.hml", "slices.log"]),
    contains(Text, [~"VIOLATION of not_thrice", ~"slice Key = 1\n", ~"at slices.log:4\n", ~"REFUSED"]).

%% In the log the gap comes before events of the same group. It waits for the spawn of its process.
a_gap_that_waited_ends_the_monitor(Config) ->
    Items = [begins(?M, undefined, {m, w, [1]}), {gap, pid(2), lost, unknown, undefined}]
        ++ [recv(?M, {K, good}) || K <- [1, 1, 1, 2]] ++ [fork(?M, pid(2), {m, x, []}), ends(pid(2)), ends(?M)],
    _ = write(Config, "gap.log", text(Items)),
    #{exit := 1, stdout := Text} = check(Config, ["--spec", "slices.hml", "gap.log"]),
    contains(Text, [~"VIOLATION of not_thrice", ~"at gap.log:5\n", ~"2 monitors or slices miss events", ~"VIOLATED"]).

%%% memory

a_line_of_100_mb_is_refused_in_bounded_memory(Config) ->
    Long = long(Config),
    {#{outcome := refused, refused := Error, verdicts := #{no := 1}}, Peak} =
        peak(Config, #{system => {log, {file, Long}}}),
    contains(Error, [~"long.log:11: a line of at most 1048576 bytes is expected, this one has 100000000"]),
    below(250, Peak).

a_line_of_100_mb_can_be_skipped(Config) ->
    Long = long(Config),
    {#{outcome := violated, lines := 12, events := 12}, Peak} =
        peak(Config, #{system => {log, {file, Long}}, skip_malformed => true}),
    below(250, Peak).

long(Config) ->
    File = path(Config, "long.log"),
    ok = file:write_file(File, [text(small()), lists:duplicate(1000, binary:copy(~"x", 100_000)), $\n,
                                text([begins(pid(5), undefined, {m, w, [3]})])]),
    File.

%% A string takes sixteen times its bytes.
long_lines_below_the_limit_take_bounded_memory(Config) ->
    File = path(Config, "longer.log.gz"),
    Line = ["recv(<0.1.0>,\"", binary:copy(~"x", 1_000_000), "\")\n"],
    ok = file:write_file(File, zlib:gzip([text(lists:droplast(small())), lists:duplicate(60, Line)])),
    {#{outcome := violated, lines := 69, events := 70}, Peak} = peak(Config, #{system => {log, {file, File}}}),
    below(1000, Peak).

%% The lines wait for a spawn that never comes. A part of the 1.6 GB is kept, and the garbage collector copies it.
long_items_that_wait_take_bounded_memory(Config) ->
    File = path(Config, "waiting.log.gz"),
    Line = ["recv(<0.9.0>,\"", binary:copy(~"x", 1_000_000), "\")\n"],
    ok = file:write_file(File, zlib:gzip([text(small()), lists:duplicate(100, Line)])),
    {#{outcome := violated, lines := 110, warnings := Warnings}, Peak} = peak(Config, #{system => {log, {file, File}}}),
    ?assertMatch([_], [orphans || #{code := orphans} <- Warnings]),
    below(1500, Peak).

a_gzip_bomb_takes_bounded_memory(Config) ->
    File = path(Config, "bomb.log.gz"),
    Zeros = zlib:gzip(binary:copy(<<0>>, 50_000_000)),
    ok = file:write_file(File, [zlib:gzip(text(small())) | lists:duplicate(10, Zeros)]),
    {#{outcome := refused, refused := Error, verdicts := #{no := 1}}, Peak} =
        peak(Config, #{system => {log, {file, File}}}),
    contains(Error, [~"bomb.log.gz:11: a line of at most", ~"has 500000000"]),
    below(250, Peak).

%% The callback takes the first verdict, and blocks until no more of the log is read.
a_slow_reader_of_verdicts_takes_bounded_memory(Config) ->
    Items = [[fork(?M, pid(N), {m, w, [N]}), recv(pid(N), {1, bad}), ends(pid(N))] || N <- lists:seq(2, 50_001)],
    File = write(Config, "verdicts.log", text(lists:flatten([begins(?M, undefined, {m, main, []}), Items]))),
    {#{outcome := violated, lines := 150_001, verdicts := #{no := 50_000}, stood := Lines}, Peak} =
        peak(Config, #{system => {log, {file, File}}, slow => true, max_verdicts => 0}),
    ?assert(Lines < 75_000, #{lines => Lines}),
    below(250, Peak).

%% Processes that come and go, verdicts, and names that are remembered until there are too many of them.
memory_does_not_grow_with_the_log(Config) ->
    Longest = list_to_integer(os:getenv("WITNESS_OFFLINE_EVENTS", "1500000")),
    Peaks = [begin
        File = path(Config, "load.log"),
        "" = fresh("~s:written(~tp, ~tp)", [?MODULE, File, Events]),
        {#{outcome := ok, events := Events, verdicts := #{yes := Verdicts}}, Peak} =
            peak(Config, #{system => {log, {file, File}}, max_verdicts => 0,
                           specs => [filename:join([proplists:get_value(root, Config), "bench", "witness_logs.hml"])]}),
        ?assertEqual((Events - 1) div 43, Verdicts),
        ok = file:delete(File),
        {Events, Peak}
    end || Events <- [rounds(Longest div 3), rounds(Longest)]],
    ct:pal("peaks in MB: ~w", [Peaks]),
    [{_, Short}, {_, Long}] = Peaks,
    %% A heap of the reader may be one step larger or not. Keeping three words of each event would exceed the limit.
    ?assert(Long =< 1.2 * Short, Peaks).

-define(WORKERS, 100).

%% Events of whole rounds of workers, as many as that.
rounds(Events) -> 1 + 43 * ?WORKERS * (Events div (43 * ?WORKERS)).

%% A hundred workers at a time, each of which is spawned, answers ten requests, and ends.
written(File, Events) ->
    {ok, Device} = file:open(File, [raw, binary, write, {delayed_write, 1 bsl 20, 1000}]),
    Write = fun(Items) -> ok = file:write(Device, text(Items)) end,
    Write([begins(?M, undefined, {log_master, run, []})]),
    lists:foreach(fun(Round) ->
        Workers = [pid(Round * ?WORKERS + N) || N <- lists:seq(1, ?WORKERS)],
        Signature = {log_worker, loop, [Round]},
        Write(lists:append([[fork(?M, W, Signature), begins(W, ?M, Signature)] || W <- Workers])),
        [Write(lists:append([requested(W, N) || W <- Workers])) || N <- lists:seq(1, 10)],
        Write([ends(W) || W <- Workers])
    end, lists:seq(1, Events div (43 * ?WORKERS))),
    ok = file:close(Device).

below(Limit, Peak) -> ?assert(Peak < Limit, #{peak_mb => Peak}).

%% The summary and the peak of memory in MB of a VM of its own, two schedulers as in the gate.
peak(Config, Options) ->
    Given = maps:merge(#{specs => [path(Config, "good.hml")], log => false}, Options),
    Said = fresh("~s:measured(~tp)", [?MODULE, base64:encode(term_to_binary(Given))]),
    [_, Encoded] = string:split(Said, "MEASURED "),
    binary_to_term(base64:decode(string:trim(Encoded))).

fresh(Call, Arguments) ->
    Paths = lists:append([["-pa", Dir] || Dir <- code:get_path(), filename:basename(Dir) =/= "."]),
    Eval = lists:flatten([io_lib:format(Call, Arguments), ", halt(0)."]),
    Port = open_port({spawn_executable, filename:join([code:root_dir(), "bin", "erl"])},
                     [{args, ["-noshell", "+S", "2:2" | Paths] ++ ["-eval", Eval]}, binary, exit_status,
                      stderr_to_stdout]),
    {0, Said} = collect(Port, ~""),
    binary_to_list(Said).

measured(Encoded) ->
    Given = binary_to_term(base64:decode(Encoded)),
    {Stood, Run} = case Given of
        #{slow := true} -> slow(maps:remove(slow, Given));
        #{} ->
            {ok, Started} = witness:start(Given),
            {0, Started}
    end,
    {ok, Summary} = witness:await(Run, infinity),
    {ok, Status} = file:read_file("/proc/self/status"),
    {match, [Peak]} = re:run(Status, "VmHWM:\\s*(\\d+)", [{capture, all_but_first, list}]),
    Measured = {Summary#{stood => Stood}, list_to_integer(Peak) div 1024},
    io:format("MEASURED ~ts~n", [base64:encode(term_to_binary(Measured))]).

%% How many lines were read while the first verdict was being told.
slow(Given) ->
    Self = self(),
    Hold = fun(_) ->
        case put(held, true) of
            true -> ok;
            undefined ->
                Self ! {held, self()},
                receive go_on -> ok end
        end
    end,
    {ok, Run} = witness:start(Given#{on_verdict => Hold}),
    receive
        {held, Notifier} ->
            Lines = stands(Run, -1),
            Notifier ! go_on,
            {Lines, Run}
    end.

%% Reading waits or is over when the number of lines has not changed for 300 ms.
stands(Run, Before) ->
    case witness:info(Run) of
        #{lines := Before} -> Before;
        #{lines := Lines} ->
            timer:sleep(300),
            stands(Run, Lines)
    end.

requested(W, N) ->
    Request = {?M, {request, N}},
    Reply = {reply, N, ~"done"},
    [{send, ?M, W, Request, undefined}, {recv, W, ?M, Request, undefined},
     {send, W, ?M, Reply, undefined}, {recv, ?M, W, Reply, undefined}].

%%% positions

%% A position, and a death some blocks later, again and again until the end of the log.
killed_at_any_moment_nothing_is_lost_or_doubled(Config) ->
    Specs = compiled(Config),
    Position = path(Config, "killed.position"),
    Deaths = [begin
        File = write(Config, "killed.log", text(Log)),
        Whole = found(File, Specs, #{block => 400}),
        lists:sum([begin
            _ = file:delete(Position),
            lives(File, Specs, #{block => 400, save => Position}, Before, Whole, 0, 0, rand:seed_s(exsss, Seed))
        end || Seed <- lists:seq(1, 6)])
    end || {Before, Log} <- [{fun before/2, in_order(3, 150)}, {fun(_, _) -> unknown end, random(3, 150)}]],
    unload(Specs),
    ct:pal("deaths: ~w", [Deaths]),
    [?assert(Count > 20, Deaths) || Count <- Deaths],
    ok.

%% How often it dies until the end. Known: so many verdicts have been told by now.
lives(File, Specs, Options = #{save := Position}, Before, Whole, Known, Deaths, State0) ->
    {Some, State1} = rand:uniform_s(15, State0),
    {More, State} = rand:uniform_s(15, State1),
    Saved = Before(Whole, Options),
    Pid = offline(File, Specs, Options),
    {Ended, Found} = case reports(Some, Pid, []) of
        {more, First} ->
            Pid ! save,
            case More rem 3 of
                %% What is reported now is never received, so no position may be after it.
                0 -> turns(50, Pid), {more, First};
                _ -> reports(More, Pid, First)
            end;
        Last -> Last
    end,
    From = case Saved of
        unknown -> length(lists:takewhile(fun(Verdict) -> [Verdict] =/= lists:sublist(Found, 1) end, Whole));
        _ -> Saved
    end,
    ?assertEqual(lists:sublist(Whole, From + 1, length(Found)), Found),
    case Ended of
        ended ->
            ?assert(From =< Known),
            ?assertEqual(length(Whole), From + length(Found)),
            Deaths;
        more ->
            ?assert(Found =:= [] orelse From =< Known),
            die(Pid),
            Again = case filelib:is_regular(Position) of
                true -> Options#{from => Position};
                false -> Options
            end,
            Now = case Found of [] -> Known; _ -> max(Known, From + length(Found)) end,
            lives(File, Specs, Again, Before, Whole, Now, Deaths + 1, State)
    end.

%% Lets the server do what it can; it may end.
turns(0, _) -> ok;
turns(Left, Pid) ->
    try sys:get_state(Pid) of
        _ -> turns(Left - 1, Pid)
    catch
        exit:_ -> ok
    end.

%% In a log that is in order: the number of verdicts before the position at which the server goes on.
before(Whole, #{from := Position}) ->
    {ok, #{line := Last}} = witness_offline_checkpoint:read(Position, ?IDENTITY),
    length([Line || #{line := Line} <- Whole, Line =< Last]);
before(_, #{}) -> 0.

die(Pid) ->
    Ref = monitor(process, Pid),
    unlink(Pid),
    exit(Pid, kill),
    receive {'DOWN', Ref, process, Pid, _} -> flush() end.

flush() ->
    receive
        {checked, _, _} -> flush();
        {log_ended, _} -> flush()
    after 0 -> ok
    end.

%% As a user has it: a log that grows, and a process that is gone from one moment to the next.
killed_by_the_system_nothing_is_lost_or_doubled(Config) ->
    Log = text(random(5, 400)),
    Name = write(Config, "whole.log", Log),
    Specs = ["--spec", "good.hml", "--spec", "slices.hml"],
    Whole = told(check(Config, ["--json", "whole.log" | Specs])),
    ok = file:delete(Name),
    Lines = binary:split(Log, ~"\n", [global, trim]),
    Runs = [begin
        Grows = write(Config, Number ++ ".grows.log", part(Lines, 0.0, 0.5)),
        Position = path(Config, Number ++ ".position"),
        Port = open(Config, executable(Config), ["check", "--json", "--follow", "--save", Position, Grows | Specs], []),
        {Grows, Position, Port, Death}
    end || {Number, Death} <- [{"1", 0.6}, {"2", 0.8}]],
    lists:foreach(fun({Grows, Position, Port, Death}) ->
        witness_await:until(fun() -> filelib:is_regular(Position) end),
        ok = file:write_file(Grows, part(Lines, 0.5, 0.9), [append]),
        Said = until(Port, round(Death * length(Whole)), ~""),
        kill_vm(Port),
        {3, Rest} = collect(Port, Said),
        ok = file:write_file(Grows, part(Lines, 0.9, 1.0), [append]),
        First = verdicts(whole_lines(Rest)),
        ?assertEqual(lists:sublist(Whole, length(First)), First),
        Second = told(check(Config, ["--json", "--from", Position, Grows | Specs])),
        Before = length(Whole) - length(Second),
        ?assert(Before > 0),
        ?assert(Before =< length(First)),
        ?assertEqual(lists:nthtail(Before, Whole), Second)
    end, Runs).

%% The lines from one share of them to another.
part(Lines, From, To) ->
    Count = length(Lines),
    [[Line, $\n] || Line <- lists:sublist(Lines, round(From * Count) + 1, round(To * Count) - round(From * Count))].

%% What the program has printed by the time that so many verdicts are there.
until(Port, Count, Said) ->
    case length(binary:matches(Said, ~"\"type\":\"verdict\"")) >= Count of
        true -> Said;
        false ->
            receive {Port, {data, Data}} -> until(Port, Count, <<Said/binary, Data/binary>>)
            after ?LIMIT_MS -> ct:fail({not_printed, Count, Said})
            end
    end.

%% The last line may be a part of one.
whole_lines(Output) -> iolist_to_binary([[Line, $\n] || Line <- lists:droplast(binary:split(Output, ~"\n", [global]))]).

%% `bin/witness` is a shell; its only child is the VM.
kill_vm(Port) ->
    {os_pid, Shell} = erlang:port_info(Port, os_pid),
    Id = integer_to_list(Shell),
    {ok, Children} = file:read_file(filename:join(["/proc", Id, "task", Id, "children"])),
    [Vm] = string:lexemes(binary_to_list(Children), " "),
    "" = os:cmd("kill -KILL " ++ Vm).

a_position_counts_the_monitors_that_live(Config) ->
    {Before, After} = lists:split(3, satisfied()),
    _ = saved(Config, "alive.log", Before),
    ok = file:write_file(path(Config, "alive.log"), text([Item || Item <- After, element(2, Item) =:= pid(2)]),
                         [append]),
    #{exit := 0, stdout := Text} = check(Config, ["--from", "alive.log.position", "--spec", "good.hml", "alive.log"]),
    contains(Text, [~"monitors  1: 1 satisfied", ~"OK: nothing was violated"]),
    ?assertEqual(nomatch, string:find(Text, ~"(all_good) monitored nothing")).

%% What was undecided at the end of the first run is judged in the second.
a_position_counts_what_is_satisfied_once(Config) ->
    {Before, After} = lists:split(500, random(4, 100)),
    File = write(Config, "counts.log", text(Before)),
    Position = File ++ ".position",
    Options = #{system => {log, {file, File}}, specs => [path(Config, "good.hml")], max_verdicts => 0},
    Counted = fun(#{verdicts := Verdicts}) -> maps:without([inconclusive], Verdicts) end,
    {First, []} = checked(Options#{save => Position}),
    File = write(Config, "counts.log", text(Before ++ After)),
    {Second, []} = checked(Options#{from => Position}),
    {Whole, []} = checked(Options),
    ?assert(lists:all(fun(Summary) -> map_get(yes, Counted(Summary)) > 0 end, [First, Second])),
    ?assertEqual(Counted(Whole), maps:merge_with(fun(_, A, B) -> A + B end, Counted(First), Counted(Second))).

a_position_at_the_end_goes_on_when_the_log_grows(Config) ->
    Items = random(6, 60),
    _ = write(Config, "all.log", text(Items)),
    Whole = told(check(Config, ["--json", "--spec", "good.hml", "--spec", "slices.hml", "all.log"])),
    {Begin, Rest} = lists:split(length(Items) div 3, Items),
    {Middle, End} = lists:split(length(Rest) div 2, Rest),
    File = write(Config, "more.log", ""),
    Position = path(Config, "more.position"),
    {Told, _} = lists:mapfoldl(fun(Part, From) ->
        ok = file:write_file(File, text(Part), [append]),
        #{stdout := Output} = check(Config, ["--json", "--save", Position, "--spec", "good.hml", "--spec",
                                             "slices.hml", "more.log"
                                             | From]),
        {[Verdict || Verdict = #{~"verdict" := Decided} <- verdicts(Output), Decided =/= ~"inconclusive"],
         ["--from", Position]}
    end, [], [Begin, Middle, End]),
    ?assertEqual(Whole, lists:append(Told)).

a_changed_specification_is_refused(Config) ->
    Spec = write(Config, "changes.hml", good()),
    _ = write(Config, "changes.log", text(small())),
    #{exit := 1} = check(Config, ["--save", "changes.position", "--spec", Spec, "changes.log"]),
    From = fun(Options) -> check(Config, ["--from", "changes.position", "changes.log" | Options]) end,
    _ = write(Config, "changes.hml", string:replace(good(), "good}] X and [_ -> _, _] X",
                                                    "good}] X and [_ -> _, m:h(_)] X")),
    [begin
        #{exit := 2, stdout := ~"", stderr := Error} = From(Options),
        contains(Error, [~"changes.position: the position is one of other specifications"])
     end || Options <- [["--spec", Spec], ["--spec", Spec, "--spec", "slices.hml"], ["--spec", "slices.hml"],
                        ["--spec", "good.hml", "--instrument", "central"]]],
    _ = write(Config, "changes.hml", good()),
    #{exit := Exit, stderr := ~""} = From(["--spec", Spec]),
    ?assert(Exit =:= 0 orelse Exit =:= 3).

%% The specification is the same, but not what it becomes.
a_changed_record_is_refused(Config) ->
    _ = write(Config, "record.hrl", "-record(message, {key, value})."),
    _ = write(Config, "record.hml",
              "-include(\"record.hrl\").\nwith m:w(_) monitor [_ <- _, _] [_ ? #message{value = bad}] ff."),
    _ = write(Config, "record.log", text(satisfied())),
    #{exit := 0} = check(Config, ["--save", "record.position", "--spec", "record.hml", "record.log"]),
    _ = write(Config, "record.hrl", "-record(message, {value, key})."),
    #{exit := 2, stderr := Error} = check(Config, ["--from", "record.position", "--spec", "record.hml", "record.log"]),
    contains(Error, [~"record.position: the position is one of other specifications"]).

a_damaged_position_is_refused(Config) ->
    Position = saved(Config, "damage.log", small()),
    {ok, Data} = file:read_file(Position),
    From = fun(Damaged) ->
        ok = file:write_file(Position, Damaged),
        check(Config, ["--from", Position, "--spec", "good.hml", "damage.log"])
    end,
    [begin
        #{exit := 2, stdout := ~"", stderr := Error} = From(Damaged),
        contains(Error, [[~"witness check: ", Position, ~": "]])
     end || Damaged <- [~"", ~"nonsense", binary:part(Data, 0, byte_size(Data) - 1), binary:part(Data, 0, 60),
                        [Data, 0],
                        flipped(byte_size(Data) div 2, Data), flipped(3, Data), flipped(45, Data)]],
    #{exit := 2, stderr := Missing} = check(Config, ["--from", "no.position", "--spec", "good.hml", "damage.log"]),
    contains(Missing, [~"no.position: no such file"]).

flipped(At, Data) ->
    <<Before:At/binary, Byte, After/binary>> = Data,
    <<Before/binary, (Byte bxor 1), After/binary>>.

a_position_of_another_log_is_refused(Config) ->
    Position = saved(Config, "one.log", small()),
    From = fun(Log) -> check(Config, ["--from", Position, "--spec", "good.hml", Log]) end,
    _ = write(Config, "other.log", text([begins(?M, undefined, {m, w, [1]}) | tl(small())])),
    #{exit := 2, stderr := Other} = From("other.log"),
    contains(Other, [~"other.log: "]),
    _ = write(Config, "one.log", text(lists:sublist(small(), 5))),
    #{exit := 2, stderr := Shorter} = From("one.log"),
    contains(Shorter, [~"one.log: "]).

a_position_that_cannot_be_written_gives_no_result(Config) ->
    _ = write(Config, "unsaved.log", text(satisfied())),
    #{exit := Exit, stdout := Text, stderr := Error} =
        check(Config, ["--save", "no/such/position", "--spec", "good.hml", "unsaved.log"]),
    ?assert(Exit =:= 2 orelse Exit =:= 3),
    contains([Text, Error], [~"no/such/position"]).

%% Neither a position nor the file that becomes one.
no_other_user_may_read_a_position(Config) ->
    Position = saved(Config, "mode.log", small()),
    {ok, Info} = file:read_file_info(Position),
    ?assertEqual(8#600, element(8, Info) band 8#777),
    ?assertEqual([], filelib:wildcard(Position ++ ".*")).

%% Checks a log to its end, and saves the position there.
saved(Config, Name, Items) ->
    Log = write(Config, Name, text(Items)),
    Position = Log ++ ".position",
    #{exit := Exit} = check(Config, ["--save", Position, "--spec", "good.hml", Log]),
    ?assert(Exit < 2),
    Position.

%%% the server

compiled(Config) ->
    [begin
        {ok, Map, _} = witness_spec:compile_file(path(Config, Name), #{}),
        Map
     end || Name <- ["good.hml", "slices.hml"]].

unload(Specs) -> lists:foreach(fun witness_spec:unload/1, Specs).

offline(File, Specs, Options) ->
    Maps = [witness_run_maps:of_spec(Spec) || Spec <- Specs],
    Properties = [E || Map <- Maps, Signature <- [{m, w, [1]}, {m, h, [1]}], E <- Map(Signature)],
    Log = #{maps => Maps, properties => Properties, mode => maps:get(mode, Options, outline),
            spread => maps:get(spread, Options, 2), roots => auto},
    Feed = maps:merge(#{input => {file, File}, parsers => 2, max_line => 1 bsl 20},
                      maps:with([block, parsers], Options)),
    Config = #{run => self(), file => ~"log", feed => Feed, log => Log, explain => 5, max_slices => 1000,
               identity => ?IDENTITY},
    {ok, Pid, _} = witness_offline:start_link(maps:merge(Config, maps:with([save, from], Options))),
    {ok, Pid} = witness_offline:launch(Pid, none, group_leader()),
    Pid.

%% Everything that is found in a log.
found(File, Specs, Options) ->
    {ended, Found} = reports(infinity, offline(File, Specs, Options), []),
    Found.

%% So many reports at most.
reports(0, _, Found) -> {more, Found};
reports(Left, Pid, Found) ->
    receive
        {checked, Number, #{found := New}} ->
            ok = witness_offline:acknowledge(Pid, Number),
            reports(left(Left), Pid, Found ++ [verdict(Verdict) || Verdict <- New, is_verdict(Verdict)]);
        {log_ended, #{refused := undefined, orphans := []}} -> {ended, Found}
    after ?LIMIT_MS -> ct:fail({no_report, Found})
    end.

left(infinity) -> infinity;
left(Count) -> Count - 1.

is_verdict({_, _, _, Outcome}) -> is_map_key(verdict, Outcome).

verdict({Kind, Meta, Line, Outcome}) ->
    maps:merge(Meta#{kind => Kind, line => Line}, maps:with([verdict, slice, steps, event, reason], Outcome)).

%%% witness:start/1

checked(Options) ->
    {ok, Run} = witness:start(Options#{log => false}),
    {ok, Summary} = witness:await(Run, ?LIMIT_MS),
    Verdicts = witness:verdicts(Run),
    {ok, _} = witness:stop(Run),
    {Summary, Verdicts}.

%%% a monitor that tells what it has seen

init(_, _, _) -> {ok, []}.

handle_event(E, Events) -> {ok, [E | Events]}.

handle_end(complete, Events) -> {yes, lists:reverse(Events)};
handle_end(stopped, Events) -> {no, lists:reverse(Events)}.

%%% bin/witness

executable(Config) -> filename:join([proplists:get_value(root, Config), "bin", "witness"]).

path(Config, Name) -> filename:join(proplists:get_value(priv_dir, Config), Name).

write(Config, Name, Content) ->
    File = path(Config, Name),
    ok = file:write_file(File, unicode_or_bytes(Content)),
    File.

%% Specifications are text, logs are bytes, some of which are no text.
unicode_or_bytes(Content) ->
    try iolist_to_binary(Content) catch error:badarg -> unicode:characters_to_binary(Content) end.

check(Config, Arguments) -> check(Config, Arguments, []).

check(Config, Arguments, Environment) -> execute(Config, executable(Config), ["check" | Arguments], Environment).

execute(Config, Program, Arguments) -> execute(Config, Program, Arguments, []).

execute(Config, Program, Arguments, Environment) ->
    Errors = path(Config, "stderr-" ++ integer_to_list(erlang:unique_integer([positive]))),
    {Status, Output} = collect(open(Config, Program, Arguments, [{"STDERR_FILE", Errors} | Environment]), ~""),
    {ok, Error} = file:read_file(Errors),
    ct:pal("~ts ~tp~nexit code ~b~n~ts~nstandard error:~n~ts",
           [Program, Arguments, Status, shortened(Output), shortened(Error)]),
    #{exit => Status, stdout => Output, stderr => Error}.

shortened(<<Text:2000/binary, _, _/binary>>) -> [Text, "..."];
shortened(Text) -> Text.

%% A port cannot tell the two outputs of a program apart, so a shell sends one of them to a file.
open(Config, Program, Arguments, Environment) ->
    open_port({spawn_executable, "/bin/sh"},
              [{args, ["-c", "exec \"$@\" 2>\"${STDERR_FILE:-/dev/null}\"", "sh", Program | Arguments]},
               {env, [{"PATH", filename:join(code:root_dir(), "bin") ++ ":" ++ os:getenv("PATH")} | Environment]},
               {cd, proplists:get_value(priv_dir, Config)}, exit_status, binary, hide]).

collect(Port, Output) ->
    receive
        {Port, {data, Data}} -> collect(Port, <<Output/binary, Data/binary>>);
        {Port, {exit_status, Status}} -> {Status, Output}
    after ?LIMIT_MS -> ct:fail({still_running, Output})
    end.

contains(Text, Words) ->
    [?assertNotEqual(nomatch, string:find(Text, Word), #{word => Word, text => Text}) || Word <- Words].
