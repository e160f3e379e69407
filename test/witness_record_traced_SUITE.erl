-module(witness_record_traced_SUITE).
-moduledoc """
Recordings by the VM's tracing alone: births, ends, what was sent, and the order in which messages came, are those that the
processes have noted. Monitors see in them what they see in a run. What such a recording cannot do is refused.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

suite() -> [{timetrap, {minutes, 3}}].

all() -> [messages_come_in_the_order_of_their_senders, every_message_that_was_taken_had_come, contents_are_kept_only_when_asked_for,
          hashes_are_those_of_the_messages, an_application_is_recorded, a_replay_is_refused, it_is_judged_like_a_run,
          options_that_exclude_each_other].

init_per_suite(Config) ->
    Out = filename:join(proplists:get_value(priv_dir, Config), "traced-programs"),
    ok = witness_record_programs:compile(Out),
    [{programs, Out} | Config].

end_per_suite(_) -> ok.

%% Whatever is taken first: for each pair of processes, messages come in the order in which they were sent.
messages_come_in_the_order_of_their_senders(Config) ->
    {_, #{ids := Ids, entries := Entries}} = recorded(witness_recorded_mailbox, selective, #{contents => true}, Config),
    Pids = #{Id => Pid || Pid := Id <- Ids},
    Pairs = [{From, To} || From := _ <- Entries, To := _ <- Entries],
    Came = [begin
        Got = came(From, map_get(To, Entries)),
        Sent = [Msg || {sent, Pid, Msg} <- map_get(From, Entries), Pid =:= map_get(To, Pids)],
        ?assertEqual({From, To, lists:sublist(Sent, length(Got))}, {From, To, Got}),
        length(Got)
    end || {From, To} <- Pairs],
    %% Senders that had ended are not known; the first process sends to five that are waiting.
    ?assert(lists:sum(Came) >= 5).

came(From, [{from, From}, {contents, Msg} | Entries]) -> [Msg | came(From, Entries)];
came(From, [_ | Entries]) -> came(From, Entries);
came(_, []) -> [].

%% Births, ends and timeouts are exactly what was noted; messages are the same but for their order.
every_message_that_was_taken_had_come(Config) ->
    [begin
         {#{steps := Steps, born := Born, ended := Ended}, #{ids := Ids, parents := Parents, entries := Entries}} =
             recorded(witness_recorded_mailbox, Function, #{contents => true, vm_args => ["+S", Schedulers]}, Config),
         Pids = #{Id => Pid || Pid := Id <- Ids},
         [?assertEqual({Pid, map_get(Parent, Ids)}, {Pid, map_get(map_get(Pid, Ids), Parents)}) || Pid := Parent <- Born],
         [?assertEqual({Pid, {exit, Reason}}, {Pid, lists:last(map_get(map_get(Pid, Ids), Entries))}) || Pid := Reason <- Ended],
         [begin
              Own = map_get(map_get(Pid, Ids), Entries),
              Told = [Msg || {Kind, Msg} <- Own, Kind =:= contents orelse Kind =:= content],
              ?assertEqual([], [Msg || {message, _, Msg} <- Noted] -- Told),
              %% A sender that has ended before is not known any more.
              ?assertEqual([], [map_get(Id, Pids) || {from, Id} <- Own] -- [From || {message, From, _} <- Noted]),
              ?assertEqual({Pid, [Child || {spawn, Child} <- Noted]}, {Pid, [map_get(Id, Pids) || {spawn, Id} <- Own]})
          end || Pid := Noted <- Steps]
     end || Function <- [names, many], Schedulers <- ["1:1", "2:2"]].

contents_are_kept_only_when_asked_for(Config) ->
    {_, #{entries := Entries}} = recorded(witness_recorded_mailbox, selective, #{}, Config),
    Kinds = lists:usort([element(1, Entry) || _ := List <- Entries, Entry <- List, is_tuple(Entry)]),
    ?assertEqual([content, exit, from, spawn], Kinds).

hashes_are_those_of_the_messages(Config) ->
    {_, #{entries := Entries}} = recorded(witness_recorded_mailbox, selective, #{hash => true, contents => true}, Config),
    Hashes = [{Hash, Msg} || _ := List <- Entries, {{hash, Hash}, {contents, Msg}} <- lists:zip(List, tl(List) ++ [none])],
    ?assert(length(Hashes) >= 5),
    [?assertEqual(<<(erlang:phash2(Msg)):32/little, (erlang:phash2([Msg])):32/little>>, Hash) || {Hash, Msg} <- Hashes].

it_is_judged_like_a_run(Config) ->
    true = code:add_patha(proplists:get_value(programs, Config)),
    {ok, Started} = application:ensure_all_started(witness),
    try
        %% To load a module, a process sends and receives messages of its own. So the program runs once before.
        Monitors = [{{witness_recorded_checked, '_', '_'}, {witness_recorded_monitor, []}}],
        Call = {witness_recorded_checked, run, []},
        ok = witness_recorded_checked:run(),
        %% One of its processes, which ends by itself, has a name that is needed again.
        ok = witness_await:until(fun() -> whereis(witness_recorded_checked) =:= undefined end),
        {ok, Live} = witness:start(#{system => Call, monitors => Monitors}),
        {ok, #{outcome := ok}} = witness:await(Live, 60_000),
        Seen = seen(witness:verdicts(Live)),
        {ok, _} = witness:stop(Live),
        {_, Dir} = names(?FUNCTION_NAME, Config),
        {ok, _} = witness_record:record(#{run => Call, dir => Dir, pa => [proplists:get_value(programs, Config)],
                                          tracing_only => true, contents => true}),
        {ok, Check} = witness:start(#{system => {log, {recording, Dir}}, log => false, monitors => Monitors}),
        {ok, #{outcome := ok, gaps := 0}} = witness:await(Check, 60_000),
        ?assert(length(Seen) > 4),
        ?assertEqual(Seen, seen(witness:verdicts(Check))),
        {ok, _} = witness:stop(Check)
    after
        [ok = application:stop(App) || App <- lists:reverse(Started)],
        true = code:del_path(proplists:get_value(programs, Config))
    end.

seen(Verdicts) -> lists:sort([{Verdict, Info} || #{verdict := Verdict, info := Info} <- Verdicts]).

%% The application's processes are children of a process that is not recorded.
an_application_is_recorded(Config) ->
    {_, Dir} = names(?FUNCTION_NAME, Config),
    Programs = proplists:get_value(programs, Config),
    App = witness_recorded_application,
    Resource = {application, App, [{description, "for tests"}, {vsn, "1"}, {modules, [App]}, {registered, []},
                                   {applications, [kernel, stdlib]}, {mod, {App, []}}]},
    ok = file:write_file(filename:join(Programs, atom_to_list(App) ++ ".app"), io_lib:format("~p.~n", [Resource])),
    {ok, #{outcome := recorded, ended := {stopped, App, normal}, born := Born}} =
        witness_record:record(#{app => App, pa => [Programs], dir => Dir, tracing_only => true, contents => true}),
    #{entries := All, parents := Parents} = witness_record_comparison:recorded(Dir),
    ?assertEqual(Born, map_size(All)),
    Pairs = [{Top, Server} || Top := Entries <- All, Server := _ <- All, map_get(Server, Parents) =:= Top,
                              [N * N || N <- lists:seq(1, 10)] =:= [Answer || {answer, Answer} <- came(Server, Entries)]],
    ?assertMatch([_], Pairs).

a_replay_is_refused(Config) ->
    {_, Dir} = names(?FUNCTION_NAME, Config),
    {ok, #{outcome := recorded}} = witness_record:record(#{run => {lists, seq, [1, 2]}, dir => Dir, tracing_only => true}),
    ?assertMatch({error, {witness_replay, tracing_only}}, witness_replay:replay(#{dir => Dir})),
    {ok, R} = witness_log_recording:open(Dir),
    ?assertMatch(#{tracing_only := true, options := #{tracing_only := true}}, witness_log_recording:header(R)).

options_that_exclude_each_other(Config) ->
    {_, Dir} = names(?FUNCTION_NAME, Config),
    Options = #{run => {lists, seq, [1, 2]}, dir => Dir, tracing_only => true},
    ?assertEqual({error, {witness_record, {exclusive, tracing_only, weave}}}, witness_record:record(Options#{weave => [stdlib]})),
    ?assertEqual({error, {witness_option, {bad_option, tracing_only, "true or false"}}},
                 witness_record:record(Options#{tracing_only := yes})).

recorded(Module, Function, Options, Config) ->
    {File, Dir} = names(Function, Config),
    Run = {witness_recorded, run, [Module, Function, File]},
    {ok, Summary} = witness_record:record(Options#{run => Run, dir => Dir, pa => [proplists:get_value(programs, Config)],
                                                   tracing_only => true}),
    ?assertMatch(#{outcome := recorded, ended := {returned, normal}, vm := 0, unwoven := []}, Summary),
    witness_record_comparison:both(File, Dir).

names(Case, Config) ->
    Name = lists:concat(["traced-", Case, "-", erlang:unique_integer([positive])]),
    Path = filename:join(proplists:get_value(priv_dir, Config), Name),
    {Path ++ ".journal", Path ++ ".rec"}.
