-module(witness_step_SUITE).
-moduledoc """
Stepping through recorded programs: what holds at a step follows from the steps before it, in whichever order they were
reached.

`WITNESS_STEPS` is the number of jumps (50), and `WITNESS_STEPS_SEED` decides where they go. For a state a replay has to
begin again, so the tests ask for one at one in a hundred of these jumps, and at two at least.
""".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

suite() -> [{timetrap, {minutes, 15}}].

root(Config) -> witness_checkout:root(proplists:get_value(priv_dir, Config)).

all() -> [going_back_agrees_with_going_forward, going_back_agrees_with_going_forward_in_elixir, states_agree_when_one_goes_back,
          a_place_is_found, links_and_names_come_and_go, causes_go_back_to_the_beginning,
          the_end_of_a_killed_process_has_a_cause, messages_of_a_run_make_a_sequence, a_diverged_replay_is_stepped_through,
          processes_tell_their_state, calls_are_those_that_the_steps_tell_of, calls_end_as_they_did, calls_have_a_bound,
          calls_of_a_cut_recording_are_found, what_cannot_be_traced_is_said, the_command_steps, the_command_has_a_terminal,
          verdicts_are_gone_to, violations_are_gone_to,
          verdicts_are_placed_at_once, what_is_gone_through_is_not_read_with_its_messages,
          a_pattern_that_never_matches_reads_each_message_once,
          an_interrupt_ends_the_command,
          a_replay_has_its_messages_in_the_report, wrong_commands_are_named].

init_per_suite(Config) ->
    Priv = filename:join(proplists:get_value(priv_dir, Config), "steps"),
    Out = filename:join(Priv, "programs"),
    ok = filelib:ensure_path(Out),
    Source = filename:join([root(Config), "test", "recorded", "witness_recorded_steps.erl"]),
    {ok, _} = compile:file(Source, [{outdir, Out}, debug_info]),
    Dir = filename:join(Priv, "steps.rec"),
    {ok, #{outcome := recorded}} = witness_record:record(#{run => {witness_recorded_steps, main, [1500]}, dir => Dir, pa => [Out]}),
    {ok, Session} = witness_step:open(#{dir => Dir}),
    Count = witness_step:size(Session),
    ok = witness_step:close(Session),
    [{recording, Dir}, {programs, Out}, {count, Count} | Config].

end_per_suite(_) -> ok.

opened(Config) -> opened(Config, #{}).

opened(Config, Options) ->
    {ok, Session} = witness_step:open(Options#{dir => proplists:get_value(recording, Config)}),
    Session.

to(N, S) ->
    {ok, There} = witness_step:goto(N, S),
    There.

%% --- going -----------------------------------------------------------------------

%% The contents of mailboxes, the work of each process, and its links follow from the steps alone.
going_back_agrees_with_going_forward(Config) ->
    S = opened(Config),
    %% The file has states, and steps after the last one.
    ?assert(witness_step:size(S) > 5_000),
    agrees(jumps(), S),
    ok = witness_step:close(S).

going_back_agrees_with_going_forward_in_elixir(Config) ->
    case os:find_executable("elixirc") of
        false -> {skip, "there is no elixirc on the path"};
        _ ->
            Project = witness_record_elixir_SUITE:project(steps, "[Starling, Starling.Once]", Config),
            {_, Dir} = witness_record_elixir_SUITE:names(steps, Config),
            #{exit := 0} = witness_record_elixir_SUITE:witness(Config, ["record", "--mix", Project, "-o", Dir]),
            ok = witness_cli_setup:load_elixir('Elixir.Starling', []),
            {ok, S} = witness_step:open(#{dir => Dir}),
            ?assertMatch(#{outcome := identical}, witness_step:report(S)),
            agrees(jumps(), S),
            ok = witness_step:close(S)
    end.

jumps() -> list_to_integer(os:getenv("WITNESS_STEPS", "50")).

seeded() ->
    Seed = list_to_integer(os:getenv("WITNESS_STEPS_SEED", integer_to_list(erlang:unique_integer([positive])))),
    ct:pal("seed ~b", [Seed]),
    rand:seed_s(exsss, Seed).

points(Jumps, From, To) ->
    {Points, _} = lists:mapfoldl(fun(_, R0) ->
        {N, R} = rand:uniform_s(To - From + 1, R0),
        {From + N - 1, R}
    end, seeded(), lists:seq(1, Jumps)),
    Points.

agrees(Jumps, S) ->
    %% A thousand jumps take longer than a case of the gate may.
    ct:timetrap({hours, 1}),
    Count = witness_step:size(S),
    Steps = forward(S),
    ?assertEqual(lists:seq(1, Count), [N || #{number := N} <- Steps]),
    Events = #{N => Step || #{number := N} = Step <- Steps},
    Points = points(Jumps, 1, Count),
    Pids = #{Id => Pid || #{id := Id, pid := Pid} <- witness_step:processes(to(Count, S))},
    Expected = expected(lists:usort(Points ++ [N - 1 || N <- Points]), Steps, Pids),
    lists:foldl(fun(N, Before) ->
        Here = to(N, Before),
        {Entries, Boxes, _} = maps:get(N, Expected),
        ?assertEqual({N, maps:get(N, Events)}, {N, witness_step:step(Here)}),
        ?assertEqual({N, Entries}, {N, witness_step:entries(Here)}),
        [?assertEqual({N, Id, maps:get(Id, Boxes, [])},
                      {N, Id, [Sent || #{number := Sent} <- witness_step:mailbox(Id, Here)]}) || Id := _ <- Entries],
        {ok, Back} = witness_step:back(Here),
        {Living, _, Links} = maps:get(N - 1, Expected),
        ?assertEqual({N, maps:get(N - 1, Events, none)}, {N, witness_step:step(Back)}),
        [?assertEqual({N, Id, lists:sort([Pid || {Own, Pid} <- Links, Own =:= Id])},
                      {N, Id, lists:sort(maps:get(links, witness_step:links(Id, Back)))}) || Id := _ <- Living],
        {ok, Forward} = witness_step:next(Back),
        ?assertEqual(witness_step:step(Here), witness_step:step(Forward)),
        Back
    end, S, Points).

%% One step after the other, to the end.
forward(S) ->
    case witness_step:next(S) of
        {ok, There} -> [witness_step:step(There) | forward(There)];
        {error, none} -> []
    end.

expected(Points, Steps, Pids) ->
    Ids = #{Pid => Id || Id := Pid <- Pids},
    expected(Points, Steps, 0, {#{}, #{}, []}, {Pids, Ids}, #{}).

expected([N | Points], Steps, N, So, Who, Found) -> expected(Points, Steps, N, So, Who, Found#{N => So});
expected([], _, _, _, _, Found) -> Found;
expected(Points, [#{number := N} = Step | Steps], _, So, Who, Found) ->
    expected(Points, Steps, N, expect(Step, So, Who), Who, Found).

%% A link is there twice: each of the two processes has it.
expect(#{id := Id, entry := Entry, number := N, cause := Cause, what := What}, {Entries, Boxes, Links}, {Pids, Ids}) ->
    Now = Entries#{Id => Entry},
    #{Id := Own} = Pids,
    Both = fun(Pid) -> [{Id, Pid} | [{Other, Own} || #{Pid := Other} <- [Ids], is_map_key(Other, Entries)]] end,
    case What of
        {spawn, Child, _, Tied} ->
            Tie = [Link || lists:member(link, Tied), Link <- [{Id, maps:get(Child, Pids)}, {Child, Own}]],
            {Now#{Child => 0}, Boxes, lists:usort(Tie ++ Links)};
        {send, _, To, Message, _} when is_map_key(To, Entries) ->
            case Message of
                {'EXIT', _, _} -> {Now, Boxes, Links};
                {'DOWN', _, _, _, _} -> {Now, Boxes, Links};
                _ -> {Now, Boxes#{To => maps:get(To, Boxes, []) ++ [N]}, Links}
            end;
        {recv, From, _} when is_integer(From) ->
            true = lists:member(Cause, maps:get(Id, Boxes)),
            {Now, Boxes#{Id := lists:delete(Cause, maps:get(Id, Boxes))}, Links};
        {recv, outside, {'EXIT', Pid, _}} -> {Now, Boxes, Links -- Both(Pid)};
        {call, {erlang, link, _}, [Pid | _], true} -> {Now, Boxes, lists:usort(Both(Pid) ++ Links)};
        {effect, {erlang, link, _}, [Pid | _]} -> {Now, Boxes, lists:usort(Both(Pid) ++ Links)};
        {call, {erlang, unlink, _}, [Pid], _} -> {Now, Boxes, Links -- Both(Pid)};
        {effect, {erlang, unlink, _}, [Pid]} -> {Now, Boxes, Links -- Both(Pid)};
        {exit, _, _} -> {maps:remove(Id, Entries), maps:remove(Id, Boxes),
                         [Link || {Holder, Pid} = Link <- Links, Holder =/= Id, Pid =/= Own]};
        _ -> {Now, Boxes, Links}
    end.

%% The shop has what was put last of the puts that it has taken, in whichever direction the step was reached.
states_agree_when_one_goes_back(Config) ->
    S = opened(Config),
    Puts = [{N, Apples} || #{number := N, id := 2, what := {recv, 1, {'$gen_cast', {put, apples, Apples}}}} <- forward(S)],
    %% Between any two steps the shop may have taken nothing: then its state does not say which step this is.
    Points = [lists:nth(N, Puts) || N <- points(max(2, jumps() div 100), 1, length(Puts))],
    Ended = lists:foldl(fun({N, Apples}, Before) ->
        {Answer, Asked} = witness_step:process_state(2, to(N, Before)),
        ?assertEqual({N, {ok, {ok, #{apples => Apples}}}}, {N, Answer}),
        Asked
    end, S, lists:usort(Points) ++ lists:reverse(lists:usort(Points)) ++ Points),
    ok = witness_step:close(Ended).

a_place_is_found(Config) ->
    S = opened(Config),
    Count = proplists:get_value(count, Config),
    ?assertEqual(none, witness_step:step(S)),
    ?assertEqual({error, none}, witness_step:back(S)),
    ?assertEqual({error, none}, witness_step:goto(Count + 1, S)),
    {ok, Last} = witness_step:goto(last, S),
    ?assertEqual(Count, witness_step:at(Last)),
    ?assertEqual({error, none}, witness_step:next(Last)),
    ?assertMatch(#{id := 3, entry := 7, what := {recv, 1, {add, 7}}}, witness_step:step(to({3, 7}, Last))),
    {ok, Put} = witness_step_place:function(~"witness_recorded_steps:counter/2"),
    {ok, First} = witness_step:next(Put, S),
    ?assertMatch(#{id := 3, what := {recv, 1, {add, 1}}}, witness_step:step(First)),
    %% A text that was never an atom.
    Unknown = <<"m", (binary:encode_hex(rand:bytes(8)))/binary, ":counter/2">>,
    ?assertEqual({error, unknown}, witness_step_place:function(Unknown)),
    {ok, Line} = witness_step:next(witness_step_place:line(~"recorded/witness_recorded_steps.erl", 12), S),
    ?assertMatch(#{id := 1, what := {call, {erlang, register, 2}, _, true}}, witness_step:step(Line)),
    ?assertEqual({error, none}, witness_step:next(witness_step_place:line(~"other/witness_recorded_steps.erl", 12), S)),
    {ok, Third} = witness_step:find_process(~"3", Last),
    ?assertEqual({error, none}, witness_step:find_process(~"3", S)),
    ?assertEqual({ok, Third}, witness_step:find_process(~"steps_counter", to({3, 7}, S))),
    ok = witness_step:close(S).

%% --- links, mailboxes, states ----------------------------------------------------

links_and_names_come_and_go(Config) ->
    S = opened(Config),
    Pids = #{Id => maps:get(pid, witness_step:process(Id, S)) || Id <- [1, 2, 3]},
    #{1 := Main, 2 := Shop, 3 := Counter} = Pids,
    Running = to({3, 7}, S),
    ?assertMatch(#{links := [Main], names := [steps_counter]}, witness_step:links(3, Running)),
    ?assertMatch(#{links := [Shop, Counter], names := []}, witness_step:links(1, Running)),
    ?assertMatch(#{names := [steps_shop]}, witness_step:links(2, Running)),
    {ok, Last} = witness_step:goto(last, S),
    {ok, Ended} = witness_step:latest(fun(#{id := Id, what := What}) -> Id =:= 3 andalso element(1, What) =:= exit end, Last),
    ?assertMatch(#{links := [], names := [], monitors := []}, witness_step:links(3, Ended)),
    {ok, Before} = witness_step:back(Ended),
    ?assertMatch(#{links := [Main], names := [steps_counter]}, witness_step:links(3, Before)),
    %% A call monitors the server until it has the answer.
    Asks = fun(#{what := {send, _, 2, {'$gen_call', _, _}, _}}) -> true; (_) -> false end,
    {ok, Asked} = witness_step:next(Asks, Running),
    ?assertMatch(#{monitors := [{_, _}]}, witness_step:links(1, Asked)),
    {ok, Answered} = witness_step:next(witness_step_place:kind(take, 1), Asked),
    {ok, Unmonitored} = witness_step:next(witness_step_place:kind(call, 1), Answered),
    ?assertMatch(#{monitors := []}, witness_step:links(1, Unmonitored)),
    ?assertEqual([1], [Id || #{id := Id, born := Born} <- witness_step:processes(to(1, S)), Born =< 1]),
    ok = witness_step:close(S).

causes_go_back_to_the_beginning(Config) ->
    S = opened(Config),
    {ok, Answer} = witness_step:next(fun(#{what := {recv, 3, {sum, _}}}) -> true; (_) -> false end, S),
    Chain = witness_step:why(Answer),
    ?assertMatch([#{what := {recv, 3, {sum, 1125750}}}, #{id := 3, what := {send, _, 1, {sum, 1125750}, sure}},
                  #{id := 3, what := {recv, 1, {get, _}}}, #{id := 1, what := {send, _, 3, {get, _}, sure}} | _], Chain),
    ?assertMatch(#{number := 1, what := {born, _}, cause := 0}, lists:last(Chain)),
    ?assertEqual(lists:sublist(Chain, 2), witness_step:why(2, Answer)),
    Numbers = [N || #{number := N} <- Chain],
    ?assertEqual(lists:reverse(lists:usort(Numbers)), Numbers),
    ?assertEqual([], witness_step:why(S)),
    ok = witness_step:close(S).

the_end_of_a_killed_process_has_a_cause(Config) ->
    S = opened(Config),
    {ok, Told} = witness_step:next(fun(#{what := {recv, outside, {'EXIT', _, killed}}}) -> true; (_) -> false end, S),
    ?assertMatch([#{id := 1}, #{id := 3, what := {exit, killed, killed}},
                  #{id := 1, what := {effect, {erlang, exit, 2}, [_, kill]}} | _],
                 witness_step:why(Told)),
    ok = witness_step:close(S).

messages_of_a_run_make_a_sequence(Config) ->
    S = opened(Config),
    {ok, Last} = witness_step:goto(last, S),
    All = witness_step:messages(infinity, all, Last),
    ?assert(length(All) > 3000),
    ?assertEqual(lists:nthtail(length(All) - 5, All), witness_step:messages(5, all, Last)),
    [?assertMatch(#{id := From, what := {send, _, To, Message, sure}}, witness_step:step(Sent, S))
     || #{from := From, to := To, sent := Sent, message := Message} <- All, From > 0],
    ?assertEqual([], [M || #{from := From, to := To} = M <- witness_step:messages(infinity, [3], Last), From =/= 3, To =/= 3]),
    ?assertEqual([], witness_step:messages(infinity, all, S)),
    ok = witness_step:close(S).

a_diverged_replay_is_stepped_through(Config) ->
    Out = filename:join(proplists:get_value(programs, Config), "changed"),
    ok = filelib:ensure_path(Out),
    {ok, Source} = file:read_file(filename:join([root(Config), "test", "recorded", "witness_recorded_steps.erl"])),
    File = filename:join(Out, "witness_recorded_steps.erl"),
    ok = file:write_file(File, string:replace(Source, "register(steps_counter, Counter)", "is_process_alive(Counter)")),
    {ok, _} = compile:file(File, [{outdir, Out}, debug_info]),
    S = opened(Config, #{pa => [Out], allow_changed => true}),
    ?assertMatch(#{outcome := diverged, divergence := #{id := 1}}, witness_step:report(S)),
    {ok, Last} = witness_step:goto(last, S),
    {ok, Spawned} = witness_step:latest(witness_step_place:kind(spawn, 1), Last),
    ?assertMatch(#{what := {spawn, 3, {witness_recorded_steps, counter, [0, none]}, [link]}}, witness_step:step(Spawned)),
    ok = witness_step:close(S).

%% The state of a server comes from sys, that of a process without a behaviour from its stack. A process in a call says so.
processes_tell_their_state(Config) ->
    S = opened(Config),
    Put = fun(N) -> fun(#{id := 2, what := {recv, 1, {'$gen_cast', {put, apples, Apples}}}}) -> Apples =:= N; (_) -> false end end,
    {ok, Later} = witness_step:next(Put(20), S),
    {{ok, Answer20}, S1} = witness_step:process_state(2, Later),
    ?assertEqual({ok, #{apples => 20}}, Answer20),
    %% Forward, the same replay goes on; back, another one goes there.
    {ok, Last} = witness_step:next(Put(40), S1),
    {{ok, {ok, #{apples := 40}}}, S2} = witness_step:process_state(2, Last),
    {ok, Before} = witness_step:back(Put(7), S2),
    {{ok, {ok, #{apples := 7}}}, S3} = witness_step:process_state(2, Before),
    {ok, Added} = witness_step:goto({3, 7}, S3),
    {{ok, {in_receive, Stack, Values}}, S4} = witness_step:process_state(3, Added),
    ?assertMatch([{witness_recorded_steps, counter, 2, _} | _], Stack),
    [?assertMatch({_, _}, binary:match(Values, Value), Value) || Value <- [~"{added,7}", ~" 28"]],
    %% At a step of its own: at those of others it may have come to its next `receive`.
    {ok, First} = witness_step:goto(1, S4),
    {ok, Adds} = witness_step:next(fun(#{id := 1, what := {send, _, 3, {add, 8}, _}}) -> true; (_) -> false end, First),
    {{ok, {elsewhere, [_ | _], _}}, S5} = witness_step:process_state(1, Adds),
    {ok, Ended} = witness_step:goto(last, S5),
    ?assertMatch({{error, none}, _}, witness_step:process_state(2, Ended)),
    ok = witness_step:close(S5).

%% --- calls -----------------------------------------------------------------------

%% Each call comes after the step by which its process got the arguments, and no other step has a call.
calls_are_those_that_the_steps_tell_of(Config) ->
    S0 = opened(Config),
    {{ok, Puts, true}, S1} = witness_step:calls({~"witness_recorded_steps", ~"put_in", 3}, S0),
    Casts = [{N, Id, Entry, integer_to_binary(Apples)}
             || #{number := N, id := Id, entry := Entry, what := {recv, 1, {'$gen_cast', {put, apples, Apples}}}} <- forward(S1)],
    ?assertEqual(1500, length(Casts)),
    ?assertEqual(Casts, [{N, Id, Entry, Apples}
                         || #{number := N, id := Id, entry := Entry, args := [~"apples", Apples, _]} <- Puts]),
    [?assertEqual({returned, <<"#{apples => ", Apples/binary, "}">>}, Result)
     || #{args := [_, Apples, _], result := Result} <- Puts],
    %% The second time nothing is replayed.
    ?assertEqual({{ok, Puts, true}, S1}, witness_step:calls({~"witness_recorded_steps", ~"put_in", 3}, S1)),
    {{ok, Counts, true}, S2} = witness_step:calls({~"witness_recorded_steps", ~"counter", any}, S1),
    Taken = [N || #{number := N, id := 3, what := {recv, 1, Message}} <- forward(S2), element(1, Message) =/= never_taken],
    #{born := Born} = witness_step:process(3, S2),
    ?assertEqual([Born | Taken], [N || #{number := N} <- Counts]),
    %% It was killed while it waited.
    ?assertEqual([none], lists:usort([Result || #{result := Result} <- Counts])),
    ok = witness_step:close(S2).

recorded_calls(Times, Config) ->
    Out = proplists:get_value(programs, Config),
    Source = filename:join([root(Config), "test", "recorded", "witness_recorded_traced.erl"]),
    {ok, _} = compile:file(Source, [{outdir, Out}, debug_info]),
    Dir = filename:join(proplists:get_value(priv_dir, Config), ["traced", integer_to_list(Times), ".rec"]),
    case filelib:is_dir(Dir) of
        true -> ok;
        false -> {ok, #{outcome := recorded}} = witness_record:record(#{run => {witness_recorded_traced, main, [Times]}, dir => Dir,
                                                                        pa => [Out]})
    end,
    Dir.

calls_end_as_they_did(Config) ->
    {ok, S0} = witness_step:open(#{dir => recorded_calls(3, Config)}),
    {{ok, Halves, true}, S1} = witness_step:calls({~"witness_recorded_traced", ~"half", 1}, S0),
    %% From the outermost call inwards. An exception passes through all callers.
    ?assertEqual([{[~"4"], {returned, ~"1"}}, {[~"2"], {returned, ~"1"}}, {[~"1"], {returned, ~"1"}},
                  {[~"6"], {raised, error, ~"{odd,3}"}}, {[~"3"], {raised, error, ~"{odd,3}"}}],
                 [{Args, Result} || #{id := 1, args := Args, result := Result} <- Halves]),
    {{ok, [#{result := {raised, throw, ~"thrown"}}], true}, S2} = witness_step:calls({~"witness_recorded_traced", ~"throws", 0},
                                                                                     S1),
    %% A result of megabytes is not kept whole.
    {{ok, [#{result := {returned, Large}}], true}, S3} = witness_step:calls({~"witness_recorded_traced", ~"large", 1}, S2),
    ?assert(string:length(Large) =< 1000),
    {{ok, [], true}, S4} = witness_step:calls({~"witness_recorded_traced", ~"unused", 0}, S3),
    ok = witness_step:close(S4).

%% A tail-recursive function in which no process waits: calls beyond a bound are not kept, and the run goes on as before.
calls_have_a_bound(Config) ->
    {ok, S0} = witness_step:open(#{dir => recorded_calls(300_000, Config)}),
    {{ok, Calls, false}, S1} = witness_step:calls({~"witness_recorded_traced", ~"count", 1}, S0),
    ?assertEqual([integer_to_binary(N) || N <- lists:seq(300_000, 290_001, -1)], [N || #{args := [N]} <- Calls]),
    ok = witness_step:close(S1).

%% Without its end, the recording does not say which modules there were.
calls_of_a_cut_recording_are_found(Config) ->
    Whole = recorded_calls(3, Config),
    Dir = filename:join(proplists:get_value(priv_dir, Config), "traced_cut.rec"),
    ok = filelib:ensure_path(Dir),
    {ok, Names} = file:list_dir(Whole),
    [{ok, _} = file:copy(filename:join(Whole, Name), filename:join(Dir, Name)) || Name <- Names -- ["modules"]],
    {ok, Order} = file:read_file(filename:join(Dir, "order")),
    ok = file:write_file(filename:join(Dir, "order"), binary:part(Order, 0, byte_size(Order) - 1)),
    {ok, S0} = witness_step:open(#{dir => Dir, trust => true}),
    ?assertMatch(#{complete := false}, witness_step:report(S0)),
    {{ok, [_, _, _ | _], true}, S1} = witness_step:calls({~"witness_recorded_traced", ~"half", 1}, S0),
    ok = witness_step:close(S1).

what_cannot_be_traced_is_said(Config) ->
    {ok, S} = witness_step:open(#{dir => recorded_calls(3, Config)}),
    [begin
         {{error, Why}, S} = witness_step:calls(Function, S),
         ?assertMatch({match, _}, re:run(unicode:characters_to_binary(Why), Text), {Text, Why})
     end || {Function, Text} <- [{{~"no_such_module", ~"half", 1}, "no module no_such_module"},
                                 {{~"../witness_recorded_traced", ~"half", 1}, "no module"},
                                 {{~"witness_replay_runtime", ~"take", 1}, "no module"},
                                 {{~"witness_recorded_traced", ~"half", 2}, "no such function: it has .*half/1"},
                                 {{~"ets", ~"insert", 2}, "not written in Erlang"},
                                 {{~"lists", ~"map", 2}, "the replay itself"}]],
    ok = witness_step:close(S).

%% --- the command -----------------------------------------------------------------

stepped(Commands, Config) ->
    Program = filename:join([root(Config), "bin", "witness"]),
    witness_command:run(Config, Program, ["replay", "--step"] ++ lists:append([["--command", Command] || Command <- Commands])
                                         ++ [proplists:get_value(recording, Config)]).

the_command_steps(Config) ->
    Commands = ["next 2 take of 3", "mailbox 3", "links steps_counter", "processes", "list 1", "goto end", "why",
                "sequence 3 mermaid",
                "goto start", "goto witness_recorded_steps:counter/2", "break witness_recorded_steps.erl:12", "breaks",
                "continue back",
                "delete 1", "breaks", "goto end", "stack 3", "help why", "goto start", "calls witness_recorded_steps:put_in/3 2",
                "calls witness_recorded_steps:init", "quit", "nonsense"],
    #{exit := Code, stdout := Out, stderr := Errors} = stepped(Commands, Config),
    ?assertEqual({0, nomatch}, {Code, binary:match(Errors, ~"there is no")}),
    ?assertEqual(nomatch, binary:match(Out, <<"\e">>)),
    [?assertMatch({_, _}, binary:match(Out, Text), Text)
     || Text <- [~"takes of", ~"{add,2}", ~"linked with", ~"steps_counter", ~"=> ", ~"<- ", ~"sequenceDiagram", ~"before the first",
                 ~"register(steps_counter", ~"there is no breakpoint", ~"why [N] [all]",
                 ~"witness_recorded_steps:put_in(apples, 2, #{apples => 1}) -> #{apples => 2}",
                 ~"and 1498 calls more: calls witness_recorded_steps:put_in/3 all",
                 ~"witness_recorded_steps:init([]) -> {ok,#{}}"]].

%% A terminal that `script` makes: completion, an empty line, a history, and the end.
the_command_has_a_terminal(Config) ->
    Program = filename:join([root(Config), "bin", "witness"]),
    Words = [[$', Word, $'] || Word <- [Program, "replay", "--step", proplists:get_value(recording, Config)]],
    Line = ["TERM=xterm; export TERM; " | lists:join(" ", Words)],
    Port = witness_command:start(Config, "/dev/null", "script", ["-qec", Line, "/dev/null"]),
    %% The history of lines is one of OTP 28 and later.
    Again = case erlang:system_info(otp_release) of
        "27" -> [{~"(4/", <<"next 2\r">>}];
        _ -> [{~"(4/", <<"\e[A">>}, {~"next 2", <<"\r">>}]
    end,
    typed([{~"(0/", <<"ne\t2\r">>}, {~"(2/", <<"\r">>}] ++ Again ++
          [{~"(6/", <<"processes\r">>}, {~"waiting", <<"jump\r">>}, {~"no command 'jump'", <<"back 5\r">>},
           {~"(1/", <<"quit\r">>}], Port, Config),
    {Code, Rest} = witness_command:collect(Port, ~""),
    ?assertEqual({0, Rest}, {Code, Rest}).

typed([], _, _) -> ok;
typed([{Seen, Keys} | More], Port, Config) ->
    _ = witness_command:until(Port, Seen, ~""),
    true = port_command(Port, Keys),
    typed(More, Port, Config).

verdicts_are_gone_to(Config) ->
    Spec = filename:join(proplists:get_value(programs, Config), "sum.hml"),
    ok = file:write_file(Spec, ["no_seven: with witness_recorded_steps:counter(_, _)\ncheck\n  [_ <- _, witness_recorded_steps:counter(_, _)]\n",
                                "  max X.([_ ? {add, N} when N =/= 7] X and [_ ? {add, N} when N =:= 7] ff).\n"]),
    Out = ["--spec", Spec],
    Program = filename:join([root(Config), "bin", "witness"]),
    Commands = ["verdict", "goto start", "break formula " ++ Spec, "continue", "verdict"],
    #{exit := 3, stdout := Shown, stderr := Errors} =
        witness_command:run(Config, Program,
                            ["replay", "--step"] ++ Out ++ lists:append([["--command", Command] || Command <- Commands])
                                             ++ [proplists:get_value(recording, Config)]),
    ?assertMatch([_, _, _], binary:split(Shown, ~"3:7 ", [global])),
    ?assertMatch({_, _}, binary:match(Shown, ~"violated: no_seven")),
    ?assertMatch({_, _}, binary:match(Errors, ~"no verdict behind")).

%% Verdicts of another kind are passed by, in both directions.
violations_are_gone_to(Config) ->
    Spec = filename:join(proplists:get_value(programs, Config), "born.hml"),
    Head = ": with witness_recorded_steps:counter(_, _)\ncheck\n  ",
    ok = file:write_file(Spec, ["born", Head, "<_ <- _, witness_recorded_steps:counter(_, _)> tt.\n",
                                "no_seven", Head, "[_ <- _, witness_recorded_steps:counter(_, _)]\n",
                                "  max X.([_ ? {add, N} when N =/= 7] X and [_ ? {add, N} when N =:= 7] ff).\n"]),
    Run = fun(Commands) ->
        witness_command:run(Config, filename:join([root(Config), "bin", "witness"]),
                            ["replay", "--step", "--spec", Spec] ++ lists:append([["--command", Command] || Command <- Commands])
                            ++ [proplists:get_value(recording, Config)])
    end,
    #{exit := 0, stdout := First} = Run(["verdict"]),
    ?assertMatch({_, _}, binary:match(First, ~"satisfied: born")),
    #{exit := 0, stdout := Violated} = Run(["verdict violated", "goto end", "verdict violated back"]),
    ?assertMatch([_, _, _], binary:split(Violated, ~"violated: no_seven", [global])),
    ?assertEqual(nomatch, binary:match(Violated, ~"satisfied")),
    #{exit := 3, stderr := Errors} = Run(["verdict violated", "verdict violated"]),
    ?assertMatch({_, _}, binary:match(Errors, ~"there is no violation behind this event")).

%% --- work ------------------------------------------------------------------------

%% Ten times as many verdicts take little more time than the replay that finds them.
verdicts_are_placed_at_once(Config) ->
    S = opened(Config),
    [Few, Many] = [begin
        Spec = filename:join(proplists:get_value(programs, Config), "each.hml"),
        ok = file:write_file(Spec, io_lib:format("each: with witness_recorded_steps:counter(_, _) per N over _ ? {add, N}\ncheck\n"
                                                 "  max X.([_ ? {add, N} when N > ~b] X and [_ ? {add, N} when N =< ~b] ff).\n",
                                                 [Slices, Slices])),
        reductions(fun() ->
            {ok, Verdicts} = witness_cli_step_verdicts:find(#{specs => [Spec], monitors => []},
                                                            #{dir => proplists:get_value(recording, Config)}, S),
            ?assertEqual(Slices, length([N || {N, no, _} <- Verdicts]))
        end)
    end || Slices <- [20, 200]],
    ct:pal("~b and ~b reductions", [Few, Many]),
    ?assert(Many < 4 * Few),
    ok = witness_step:close(S).

reductions(Fun) ->
    {reductions, Before} = process_info(self(), reductions),
    _ = Fun(),
    {reductions, After} = process_info(self(), reductions),
    After - Before.

%% The memory that the collector frees measures what was made. While stepping, it does not depend on the size of the messages.
what_is_gone_through_is_not_read_with_its_messages(Config) ->
    [Small, Large] = [begin
        S = large(200, Words, Config),
        {ok, Middle} = witness_step:goto(witness_step:size(S) div 2, S),
        Made = words(fun() ->
            {error, none} = witness_step:find_process(~"none", Middle),
            {ok, _} = witness_step:goto({1, 100}, Middle),
            [_ | _] = witness_step:processes(Middle),
            _ = witness_step:entries(Middle),
            _ = [witness_step:mailbox(Id, Middle) || Id <- [1, 2]]
        end),
        ok = witness_step:close(S),
        Made
    end || Words <- [10, 1_000]],
    ct:pal("~b and ~b words", [Small, Large]),
    %% One message is shown: the contents of a mailbox.
    ?assert(Large < Small + 100_000).

large(Messages, Words, Config) ->
    Dir = filename:join(proplists:get_value(priv_dir, Config),
                        "large-" ++ integer_to_list(erlang:unique_integer([positive])) ++ ".rec"),
    {ok, #{outcome := recorded}} = witness_record:record(#{run => {witness_recorded_steps, large, [Messages, Words]}, dir => Dir,
                                                           pa => [proplists:get_value(programs, Config)]}),
    {ok, S} = witness_step:open(#{dir => Dir}),
    S.

words(Fun) ->
    {Pid, Monitor} = spawn_monitor(fun() -> receive go -> ok end end),
    Pid ! go,
    receive {'DOWN', Monitor, process, Pid, _} -> ok end,
    true = garbage_collect(),
    {_, Before, _} = erlang:statistics(garbage_collection),
    _ = Fun(),
    true = garbage_collect(),
    {_, After, _} = erlang:statistics(garbage_collection),
    After - Before.

a_pattern_that_never_matches_reads_each_message_once(Config) ->
    {Messages, Words} = {200, 1_000},
    S = large(Messages, Words, Config),
    {ok, Test} = witness_step_place:message(~"{never, X, X}"),
    Made = words(fun() -> ?assertEqual({error, none}, witness_step:next(Test, S)) end),
    ct:pal("~b words", [Made]),
    %% For each element, a message of two words is sent and taken; reading it makes a few times that.
    ?assert(Made < 10 * Messages * 2 * (2 * Words)),
    ok = witness_step:close(S).

%% At its end the command says what it was doing.
an_interrupt_ends_the_command(Config) ->
    Errors = filename:join(proplists:get_value(priv_dir, Config), "interrupted"),
    Program = filename:join([root(Config), "bin", "witness"]),
    Port = witness_command:start(Config, Errors, Program, ["replay", "--step", proplists:get_value(recording, Config)]),
    Output = witness_command:until(Port, ~" events of ", ~""),
    ok = witness_command:signal_group(Port, "INT"),
    {3, _} = witness_command:collect(Port, Output),
    {ok, Said} = file:read_file(Errors),
    ?assertMatch({_, _}, binary:match(Said, ~"interrupted: nothing was being done")).

%% Also for a recording without contents, the report shows each message with its sender and its receiver.
a_replay_has_its_messages_in_the_report(Config) ->
    Spec = filename:join(proplists:get_value(programs, Config), "no_three.hml"),
    ok = file:write_file(Spec, ["no_three: with witness_recorded_steps:counter(_, _)\ncheck\n",
                                "  [_ <- _, witness_recorded_steps:counter(_, _)]\n",
                                "  max X.([_ ? {add, N} when N =/= 3] X and [_ ? {add, N} when N =:= 3] ff).\n"]),
    Into = filename:join(proplists:get_value(programs, Config), "report"),
    Program = filename:join([root(Config), "bin", "witness"]),
    #{exit := 1} = witness_command:run(Config, Program, ["replay", "--spec", Spec, "--report", Into,
                                                         proplists:get_value(recording, Config)]),
    {ok, Page} = file:read_file(filename:join(Into, "report.html")),
    {match, [Data]} = re:run(Page, "<script[^>]* id=\"?data\"?[^>]*>(.*?)</script>", [{capture, all_but_first, binary}, dotall]),
    #{~"properties" := [#{~"places" := [#{~"violations" := [#{~"explanation" := Explained}]}]}]} = json:decode(Data),
    #{~"skipped" := 0, ~"lanes" := Lanes, ~"steps" := Steps} = Explained,
    [Counter] = lists:usort([Own || #{~"own" := Own} <- Steps]),
    #{~"title" := ~"witness_recorded_steps"} = lists:nth(Counter + 1, Lanes),
    ?assertMatch([{_, Counter, ~"{add,1}"}, {_, Counter, ~"{add,2}"}, {_, Counter, ~"{add,3}"}],
                 [{From, To, Text} || #{~"from" := From, ~"to" := To, ~"text" := <<"{add,", _/binary>> = Text} <- Steps]).

wrong_commands_are_named(Config) ->
    #{exit := 2, stderr := Errors} = stepped(["goto 1000000", "mailbox nobody", "int:i(shop)", "jump"], Config),
    [?assertMatch({_, _}, binary:match(Errors, Text), Text)
     || Text <- [~"the last one is", ~"no process 'nobody'", ~"interprets modules", ~"no command 'jump'"]],
    ?assertMatch(#{exit := 3}, stepped(["back"], Config)),
    ?assertMatch(#{exit := 2}, stepped(["jump", "back"], Config)).
