-module(witness_record_times_SUITE).
-moduledoc """
Recordings with times: properties with time have the verdicts of a live run, of its log, and of a replay. What decides has certainly
happened: the system sleeps for longer than a deadline, or a deadline is an hour.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

-define(RUN_TIMEOUT, 600_000).

suite() -> [{timetrap, {minutes, 15}}].

all() ->
    [verdicts_are_those_of_a_live_run, the_end_of_a_recording_tells_the_time,
     deadlines_of_several_processes_are_decided_in_the_recording, events_have_the_times_of_their_entries,
     a_replay_and_a_listing_are_those_of_a_recording_without_times, the_last_part_has_times, tracing_alone_has_times,
     without_times_the_text_says_what_to_do].

init_per_suite(Config) ->
    Programs = filename:join(proplists:get_value(priv_dir, Config), "programs"),
    ok = witness_record_programs:compile(["witness_recorded_times"], Programs),
    true = code:add_patha(Programs),
    {module, _} = code:ensure_loaded(witness_recorded_times),
    {ok, Started} = application:ensure_all_started(witness),
    [{programs, Programs}, {started, Started} | Config].

end_per_suite(Config) ->
    true = code:del_path(proplists:get_value(programs, Config)),
    [ok = application:stop(App) || App <- lists:reverse(proplists:get_value(started, Config))].

%% --- verdicts --------------------------------------------------------------------

properties() -> ~"""
soon: with witness_recorded_times:server() check
  [_ <- _, _] [_ ? {ask, _, 1}] within 1 h <_ : _ ! {answer, 1}> tt.
late: with witness_recorded_times:server() check
  [_ <- _, _] [_ ? {ask, _, 1}] [_ : _ ! _] [_ ? {ask, _, 2}] within 20 ms <_ : _ ! {answer, 2}> tt.
near: with witness_recorded_times:server() check
  [_ <- _, _] [_ ? {ask, _, 1} at T] [_ : _ ! _] [_ ? {ask, _, 2} at U when U - T < 20 ms] ff.
far: with witness_recorded_times:server() check
  [_ <- _, _] [_ ? {ask, _, 1} at T] [_ : _ ! _] [_ ? {ask, _, 2} at U when U - T >= 20 ms] ff.
young: with witness_recorded_times:server() check
  [_ <- _, _ at T] max X. ([_ ** _ at U when U - T < 20 ms] ff and [else] X).
old: with witness_recorded_times:server() check
  [_ <- _, _ at T] max X. ([_ ** _ at U when U - T >= 20 ms] ff and [else] X).
idle: with witness_recorded_times:quiet() check
  [_ <- _, _] within 20 ms <_ ? {answer, _}> tt.
calm: with witness_recorded_times:quiet() check
  [_ <- _, _] during 20 ms [_ ? stop] ff.
recently: with witness_recorded_times:server()
  let Recent = once within 20 ms {_ ? {ask, _, 1}}
  check max X. ([_ ? {ask, _, 2} when Recent] ff and [else] X).
lately: with witness_recorded_times:server()
  let Recent = once within 20 ms {_ ? {ask, _, 1}}
  check max X. ([_ ? {ask, _, 2} when not Recent] ff and [else] X).
""".

expected() ->
    [{~"calm", yes}, {~"far", no}, {~"idle", no}, {~"late", no}, {~"lately", no}, {~"near", yes}, {~"old", no}, {~"recently", yes},
     {~"soon", yes}, {~"young", yes}].

verdicts_are_those_of_a_live_run(Config) ->
    Spec = write("verdicts", properties(), Config),
    Log = file(".log", Config),
    Call = {witness_recorded_times, run, []},
    Live = judged(#{system => Call, specs => [Spec], log_file => Log}),
    ?assertEqual(expected(), Live),
    ?assertEqual(expected(), judged(#{system => {log, {file, Log}}, specs => [Spec]})),
    Dir = recorded(Call, #{times => true}, Config),
    [?assertEqual({How, expected()}, {How, judged(#{system => {log, From}, specs => [Spec], instrument => Mode})})
     || Mode <- [outline, central], {How, From} <- [{recording, {recording, Dir}}, {replay, {replay, #{dir => Dir}}}]].

%% Nothing happens after the birth of a process. The recording is stopped when its deadline has certainly passed.
the_end_of_a_recording_tells_the_time(Config) ->
    Spec = write("end", [~"idle: with witness_recorded_times:stays(_) check [_ <- _, _] within 20 ms <_ ? {answer, _}> tt.\n",
                         ~"open: with witness_recorded_times:stays(_) check [_ <- _, _] within 1 h <_ ? {answer, _}> tt.\n"], Config),
    [begin
         Dir = file(".rec", Config),
         Slept = file(".slept", Config),
         Call = {witness_recorded_times, Function, [Slept]},
         {ok, Recording} = witness_record:start(options(Dir, Call, #{times => true}, Config)),
         ok = witness_await:until(fun() -> filelib:is_regular(Slept) end),
         ok = witness_record:stop(Recording),
         {ok, #{outcome := recorded, ended := stopped}} = witness_record:await(Recording, infinity),
         [?assertEqual({Function, From, [{~"idle", no}, {~"open", inconclusive}]},
                       {Function, From, judged(#{system => {log, From}, specs => [Spec]})})
          || From <- [{recording, Dir}, {replay, #{dir => Dir}}]],
         %% A recording that was cut does not say up to which time nothing is missing.
         ok = file:delete(filename:join(Dir, "modules")),
         ?assertEqual([{~"idle", inconclusive}, {~"open", inconclusive}], judged(#{system => {log, {recording, Dir}}, specs => [Spec]}))
     end || Function <- [stays, has_child]].

%% A replay has the events of several processes in another order than that of their times.
deadlines_of_several_processes_are_decided_in_the_recording(Config) ->
    Untimed = ~"first: with witness_recorded_times:run() group check [_ <- _, _ at T] max X. ([_ ? {answer, 1} at U when U > T] ff and [else] X).\n",
    Timed = ~"team: with witness_recorded_times:run() group check [_ <- _, _] within 20 ms min X. (<_ ? {answer, 2}> tt or <else> X).\n",
    [Of, Plain] = [write(Name, Text, Config) || {Name, Text} <- [{"team", [Untimed, Timed]}, {"first", Untimed}]],
    Dir = recorded({witness_recorded_times, run, []}, #{times => true}, Config),
    ?assertEqual([{~"first", no}, {~"team", no}], judged(#{system => {log, {recording, Dir}}, specs => [Of]})),
    ?assertEqual([{~"first", no}], judged(#{system => {log, {replay, #{dir => Dir}}}, specs => [Plain]})),
    {error, Error} = witness:start(#{system => {log, {replay, #{dir => Dir}}}, specs => [Of], log => false}),
    [?assertNotEqual(nomatch, string:find(witness:format_error(Error), Word)) || Word <- ["team.hml:2", "--replay", Dir]].

%% --- times -----------------------------------------------------------------------

%% Each event has one, they do not go back, and those of the replay are the same.
events_have_the_times_of_their_entries(Config) ->
    Dir = recorded({witness_recorded_times, run, []}, #{times => true}, Config),
    Told = events(Dir),
    Times = [witness_event:ts(Event) || {Event, _} <- Told],
    ?assert(lists:all(fun is_integer/1, Times)),
    ?assertEqual(lists:sort(Times), Times),
    Asked = [witness_event:ts(Event) || {{recv, _, _, {ask, _, _}, _} = Event, _} <- Told],
    ?assertMatch([A, B] when B - A >= 40_000_000, Asked),
    {ok, #{outcome := identical, ended_at := End}, Replayed} =
        witness_replay:fold(fun(Event, Place, Events) -> [{Event, Place} | Events] end, [], #{dir => Dir}),
    ?assert(End >= lists:last(Times)),
    ?assertEqual(lists:sort(Told), lists:sort(Replayed)).

a_replay_and_a_listing_are_those_of_a_recording_without_times(Config) ->
    Call = {witness_recorded_times, run, []},
    [Timed, Untimed] = Dirs = [recorded(Call, Options, Config) || Options <- [#{times => true}, #{contents => true}]],
    [?assertMatch({ok, #{outcome := identical, complete := true, messages := contents}}, witness_replay:replay(#{dir => Dir}))
     || Dir <- Dirs],
    Listing = fun(Dir, Options) ->
        #{exit := 0, stdout := Text} = witness(Config, ["log" | Options] ++ [Dir]),
        [_ | Lines] = binary:split(Text, ~"\n", [global]),
        lists:join(~"\n", Lines)
    end,
    Plain = fun(Text) -> iolist_to_binary(re:replace(Text, "<[0-9.]+>|-?[0-9]{6,}|#Ref<[0-9.]+>", "_", [global])) end,
    ?assertEqual(Plain(Listing(Untimed, [])), Plain(Listing(Timed, []))),
    Entries = fun(Dir) ->
        [json:decode(Line) || Line <- binary:split(iolist_to_binary(Listing(Dir, ["--json"])), ~"\n", [global, trim_all])]
    end,
    ?assert(lists:all(fun(Entry) -> is_integer(maps:get(~"time", Entry, none)) end, Entries(Timed))),
    ?assertNot(lists:any(fun(Entry) -> is_map_key(~"time", Entry) end, Entries(Untimed))),
    #{exit := 0, stdout := Sequence} = witness(Config, ["log", "--sequence", Timed]),
    witness_command:contains(Sequence, [~"sequenceDiagram"]).

the_last_part_has_times(Config) ->
    Dir = recorded({witness_recorded_times, run, []}, #{times => true, last => {bytes, 1_000_000}}, Config),
    Times = [witness_event:ts(Event) || {Event, _} <- events(Dir)],
    ?assert(length(Times) > 10),
    ?assert(lists:all(fun is_integer/1, Times)),
    ?assertEqual(lists:sort(Times), Times),
    Spec = write("last", properties(), Config),
    ?assertEqual(expected(), judged(#{system => {log, {recording, Dir}}, specs => [Spec]})).

tracing_alone_has_times(Config) ->
    Dir = recorded({witness_recorded_times, run, []}, #{times => true, tracing_only => true}, Config),
    Times = [witness_event:ts(Event) || {Event, _} <- events(Dir)],
    ?assert(lists:all(fun is_integer/1, Times)),
    ?assertEqual(lists:sort(Times), Times),
    Spec = write("traced", properties(), Config),
    ?assertEqual(expected(), judged(#{system => {log, {recording, Dir}}, specs => [Spec]})).

without_times_the_text_says_what_to_do(Config) ->
    Dir = recorded({witness_recorded_times, run, []}, #{contents => true}, Config),
    Spec = write("without", properties(), Config),
    [begin
         ?assertEqual([{Name, inconclusive} || {Name, _} <- expected()], judged(#{system => {log, From}, specs => [Spec]})),
         #{exit := 0, stdout := Text} = witness(Config, ["check", "--spec", Spec] ++ Arguments ++ [Dir]),
         witness_command:contains(Text, [~"an event had no time", ~"record --times"])
     end || {From, Arguments} <- [{{recording, Dir}, []}, {{replay, #{dir => Dir}}, ["--replay"]}]].

%% --- helpers ---------------------------------------------------------------------

%% The verdict of each property, of which there is one monitor.
judged(Options) ->
    {ok, Run} = witness:start(Options#{log => false}),
    {ok, _} = witness:await(Run, ?RUN_TIMEOUT),
    Verdicts = lists:sort([{Name, Verdict} || #{name := Name, verdict := Verdict} <- witness:verdicts(Run)]),
    {ok, _} = witness:stop(Run),
    Verdicts.

recorded(Call, Options, Config) ->
    Dir = file(".rec", Config),
    {ok, #{outcome := recorded}} = witness_record:record(options(Dir, Call, Options, Config)),
    Dir.

options(Dir, Call, Options, Config) -> Options#{run => Call, dir => Dir, pa => [proplists:get_value(programs, Config)]}.

events(Dir) ->
    {ok, R} = witness_log_recording:open(Dir),
    {ok, Told} = witness_log_recording_events:fold(fun(Event, Place, Events) -> [{Event, Place} | Events] end, [], R),
    lists:reverse(Told).

write(Name, Text, Config) ->
    File = filename:join(proplists:get_value(priv_dir, Config), Name ++ ".hml"),
    ok = file:write_file(File, Text),
    File.

file(Extension, Config) ->
    filename:join(proplists:get_value(priv_dir, Config), "f-" ++ integer_to_list(erlang:unique_integer([positive])) ++ Extension).

root(Config) -> witness_checkout:root(proplists:get_value(data_dir, Config)).

witness(Config, Arguments) -> witness_command:run(Config, filename:join([root(Config), "bin", "witness"]), Arguments).
