-module(witness_step_why_SUITE).
-moduledoc "The chain of causes leads from a symptom to its cause: in recorded programs with a fault, and in those without it.".
-include_lib("stdlib/include/assert.hrl").

-compile(export_all).

suite() -> [{timetrap, {minutes, 5}}].

all() -> [a_timer_that_was_cancelled_too_late_is_stale, a_timer_leads_to_its_start, a_stale_message_leads_to_the_timer_before,
          a_message_leads_to_the_timer_that_was_not_cancelled, which_of_two_timers_it_was_is_left_open,
          a_timer_of_another_process_is_found, a_call_leads_through_servers_to_the_one_that_sleeps,
          a_server_that_has_not_taken_the_request_leads_to_what_it_does, a_late_answer_leads_to_what_was_done_before,
          a_call_that_is_answered_has_no_note, a_deadlock_is_noted, an_error_that_was_caught_leads_to_the_call,
          a_request_without_a_behaviour_is_followed, a_process_that_has_done_nothing_leads_to_its_birth,
          an_update_that_overwrites_another_one_is_noted, counters_overwrite_nothing, what_was_read_of_others_is_a_cause,
          what_was_read_of_itself_is_no_cause,
          a_message_that_lost_a_race_is_noted,
          a_message_that_lost_a_race_and_was_never_taken_is_noted, ordered_messages_are_no_race, notes_are_printed].

init_per_suite(Config) ->
    Priv = filename:join(proplists:get_value(priv_dir, Config), "causes"),
    Out = filename:join(Priv, "programs"),
    ok = filelib:ensure_path(Out),
    Source = filename:join([witness_checkout:root(proplists:get_value(priv_dir, Config)), "test", "recorded",
                            "witness_recorded_causes.erl"]),
    {ok, _} = compile:file(Source, [{outdir, Out}, debug_info]),
    [{priv, Priv}, {programs, Out} | Config].

end_per_suite(_) -> ok.

recorded(Program, Config) ->
    Name = re:replace(io_lib:format("~w", [Program]), "[^a-z_]", "_", [global, {return, list}]),
    Dir = filename:join(proplists:get_value(priv, Config), Name ++ ".rec"),
    case filelib:is_dir(Dir) of
        true -> ok;
        false ->
            {ok, #{outcome := recorded}} =
                witness_record:record(#{run => {witness_recorded_causes, main, [Program]}, dir => Dir,
                                        pa => [proplists:get_value(programs, Config)]})
    end,
    Dir.

%% The chain from the first step that passes the test.
why(Program, Test, Config) -> in_why(Program, Test, fun(Chain, _) -> Chain end, Config).

%% What `Fun` makes of the chain and of the session that it is from: the numbers of steps are those of one session.
in_why(Program, Test, Fun, Config) ->
    {ok, S} = witness_step:open(#{dir => recorded(Program, Config)}),
    ?assertMatch(#{outcome := identical}, witness_step:report(S)),
    {ok, There} = witness_step:next(Test, S),
    Chain = witness_step:why(There),
    %% Each entry names the next one, and the birth of the program is the last one.
    ?assertEqual([N || #{number := N} <- tl(Chain)] ++ [0], [Cause || #{cause := Cause} <- Chain]),
    ?assertMatch(#{id := 1, what := {born, _}}, lists:last(Chain)),
    Result = Fun(Chain, There),
    ok = witness_step:close(S),
    Result.

is_end_of(Id) -> fun(#{id := Own, what := {exit, _, _}}) -> Own =:= Id; (_) -> false end.

gives_up(#{what := {exit, ended, {timeout, {gen_server, call, _}}}, id := Id}) -> Id > 1;
gives_up(_) -> false.

notes(Chain) -> lists:append([Notes || #{notes := Notes} <- Chain]).

%% --- timers ----------------------------------------------------------------------

a_timer_that_was_cancelled_too_late_is_stale(Config) ->
    ?assertMatch([#{what := {exit, ended, {took, old}}, notes := []},
                  #{number := 5, what := {recv, outside, {timeout, Ref, old}}, notes := [{cancelled_too_late, 4}]},
                  #{number := 2, what := {call, {erlang, start_timer, 3}, [1, _, old], Ref}, notes := []},
                  #{number := 1}],
                 why(stale_timer, is_end_of(1), Config)).

a_timer_leads_to_its_start(Config) ->
    Chain = why(timer, is_end_of(1), Config),
    ?assertMatch([_, #{what := {recv, outside, {timeout, Ref, new}}},
                  #{what := {call, {erlang, start_timer, 3}, [1, _, new], Ref}}, #{number := 1}], Chain),
    ?assertEqual([], notes(Chain)).

a_stale_message_leads_to_the_timer_before(Config) ->
    ?assertMatch([_, #{number := 6, what := {recv, outside, expired}, notes := [{cancelled_too_late, 4}]},
                  #{number := 2, what := {call, {erlang, send_after, 3}, [1, _, expired], _}}, #{number := 1}],
                 why(stale_message, is_end_of(1), Config)).

a_message_leads_to_the_timer_that_was_not_cancelled(Config) ->
    Chain = why(message, is_end_of(1), Config),
    ?assertMatch([_, #{what := {recv, outside, expired}},
                  #{number := 4, what := {call, {erlang, send_after, 3}, [1, _, expired], _}}, #{number := 1}], Chain),
    ?assertEqual([], notes(Chain)).

which_of_two_timers_it_was_is_left_open(Config) ->
    ?assertMatch([_, #{what := {recv, outside, expired}, notes := [{one_timer_of, [2, 3]}]}, #{number := 3} | _],
                 why(two_timers, is_end_of(1), Config)).

a_timer_of_another_process_is_found(Config) ->
    Chain = why(named_timer, is_end_of(1), Config),
    ?assertMatch([_, #{id := 1, what := {recv, outside, expired}},
                  #{id := 2, what := {call, {erlang, send_after, 3}, [1, witness_recorded_causes, expired], _}},
                  #{id := 1, what := {spawn, 2, _, _}} | _], Chain),
    ?assertEqual([], notes(Chain)).

%% --- calls -----------------------------------------------------------------------

%% The servers are D (2), C (3) and B (4), and A (5) calls B.
a_call_leads_through_servers_to_the_one_that_sleeps(Config) ->
    Chain = why({servers, sleep}, fun gives_up/1, Config),
    ?assertMatch([#{id := 5, what := {exit, ended, {timeout, _}}},
                  #{id := 5, what := timeout, notes := [{no_answer, #{server := 4, request := _, taken := _, answered := 0}}]},
                  #{id := 4, what := {send, _, 3, {'$gen_call', _, work}, sure},
                    notes := [{no_answer, #{server := 3, answered := 0}}]},
                  #{id := 3, what := {send, _, 2, {'$gen_call', _, work}, sure},
                    notes := [{no_answer, #{server := 2, taken := Taken, answered := 0}}]},
                  #{id := 2, number := Taken, what := {recv, 3, {'$gen_call', _, work}},
                    notes := [{last, #{until := none, stack := [{timer, sleep, 1, _},
                                                                {witness_recorded_causes, handle_call, 3, _} | _]}}]},
                  #{id := 3, what := {recv, 4, {'$gen_call', _, work}}, notes := []},
                  #{id := 4, what := {recv, 5, {'$gen_call', _, work}}, notes := []},
                  #{id := 5, what := {send, _, 4, {'$gen_call', _, work}, sure}, notes := []} | _], Chain).

a_server_that_has_not_taken_the_request_leads_to_what_it_does(Config) ->
    Chain = why({servers, busy}, fun gives_up/1, Config),
    ?assertMatch([#{id := 5}, #{id := 5, what := timeout}, #{id := 4, what := {send, _, 3, _, _}},
                  #{id := 3, what := {send, _, 2, _, _}, notes := [{no_answer, #{server := 2, taken := 0, answered := 0}}]},
                  #{id := 2, what := {recv, 1, {'$gen_cast', sleep}},
                    notes := [{last, #{until := none, stack := [{witness_recorded_causes, handle_cast, 2, _} | _]}}]},
                  #{id := 1, what := {send, _, 2, {'$gen_cast', sleep}, sure}} | _], Chain).

a_late_answer_leads_to_what_was_done_before(Config) ->
    Chain = why({late, sleep}, fun gives_up/1, Config),
    ?assertMatch([#{id := 5}, #{id := 5, what := timeout, notes := [{no_answer, #{server := 4}}]},
                  #{id := 4, what := {send, _, 3, _, _}},
                  #{id := 3, what := {send, _, 2, _, _}, notes := [{no_answer, #{answered := Answered}}]},
                  #{id := 2, what := timeout, stack := [{timer, sleep, 1, _} | _],
                    notes := [{last, #{until := answer, step := Answered}}]} | _] when Answered > 0, Chain),
    %% The end of A orders its request and the later one of the program. The replay takes the message about the end before that end.
    ?assertEqual([], [Race || {race, _} = Race <- notes(Chain)]).

a_call_that_is_answered_has_no_note(Config) ->
    Chain = why({servers, prompt}, is_end_of(5), Config),
    ?assertMatch([#{id := 5}, #{id := 5, what := {recv, 4, _}}, #{id := 4, what := {send, _, 5, {_, done}, sure}},
                  #{id := 4, what := {recv, 3, {_, done}}} | _], Chain),
    ?assertEqual([], notes(Chain)).

a_deadlock_is_noted(Config) ->
    Chain = why(deadlock, fun gives_up/1, Config),
    ?assertMatch([#{id := 4}, #{id := 4, what := timeout}, #{id := 2, what := {send, _, 3, _, _}, notes := [{no_answer, _}]},
                  #{id := 3, what := {send, _, 2, _, _}, notes := [{no_answer, #{server := 2, taken := 0}}, {deadlock, [2, 3]}]},
                  #{id := 3, what := {recv, 2, _}} | _], Chain).

%% The reason of the end says nothing of the call, nor does the message that led to it.
an_error_that_was_caught_leads_to_the_call(Config) ->
    Chain = why(caught, is_end_of(1), Config),
    ?assertMatch([#{id := 1, what := {exit, ended, failed}}, #{id := 1, what := {recv, 3, {answer, failed}}},
                  #{id := 3, what := {send, _, 1, {answer, failed}, sure}},
                  #{id := 3, what := timeout, notes := [{no_answer, #{server := 2}}]},
                  #{id := 2, notes := [{last, #{stack := [{timer, sleep, 1, _} | _]}}]} | _], Chain).

a_request_without_a_behaviour_is_followed(Config) ->
    Chain = why(plain, is_end_of(1), Config),
    ?assertMatch([#{id := 1, what := {exit, ended, no_answer}}, #{id := 1, what := timeout, notes := [{no_answer, #{server := 2}}]},
                  #{id := 2, what := timeout, notes := [{last, #{until := answer}}]} | _], Chain).

a_process_that_has_done_nothing_leads_to_its_birth(Config) ->
    Chain = why(silent, is_end_of(1), Config),
    ?assertMatch([#{id := 1}, #{id := 1, what := timeout, notes := [{no_answer, #{server := 2, taken := 0}}]},
                  #{id := 1, what := {spawn, 2, _, _},
                    notes := [{last, #{process := 2, until := none, stack := [{witness_recorded_causes, silent, 0, _} | _]}}]} | _],
                 Chain).

%% --- tables ----------------------------------------------------------------------

%% The second process that writes has read before the first one wrote.
an_update_that_overwrites_another_one_is_noted(Config) ->
    in_why(lost_update, is_end_of(1), fun(Chain, S) ->
        ?assertMatch([#{what := {exit, ended, {counted, 1}}, notes := []},
                      #{id := 1, what := {call, {ets, lookup_element, 3}, _, 1}, notes := []},
                      #{id := 3, what := {call, {ets, insert, 2}, [_, {n, 1}], true}, notes := [{overwrites, _}]},
                      #{id := 3, what := {call, {ets, lookup, 2}, [_, n], [{n, 0}]}, notes := []},
                      #{id := 1, what := {call, {ets, insert, 2}, [_, {n, 0}], true}, notes := []} | _], Chain),
        [{overwrites, #{change := Change, read := Read}}] = notes(Chain),
        ?assertMatch(#{id := 2, what := {call, {ets, insert, 2}, [_, {n, 1}], true}}, witness_step:step(Change, S)),
        ?assertMatch(#{id := 3, what := {call, {ets, lookup, 2}, _, _}}, witness_step:step(Read, S))
    end, Config).

counters_overwrite_nothing(Config) ->
    Chain = why(counters, is_end_of(1), Config),
    ?assertMatch([#{what := {exit, ended, {counted, 2}}},
                  #{id := 1, what := {call, {ets, lookup_element, 3}, _, 2}},
                  #{id := 3, what := {call, {ets, update_counter, 3}, _, 2}},
                  #{id := 2, what := {call, {ets, update_counter, 3}, _, 1}} | _], Chain),
    ?assertEqual([], notes(Chain)).

what_was_read_of_others_is_a_cause(Config) ->
    Chain = why(whole_table, is_end_of(1), Config),
    ?assertMatch([#{what := {exit, ended, {found, [{written, true}]}}},
                  #{id := 1, what := {call, {ets, _, _}, _, _}},
                  #{id := 2, what := {call, {ets, insert, 2}, [_, {written, true}], true}} | _], Chain).

what_was_read_of_itself_is_no_cause(Config) ->
    ?assertMatch([#{what := {exit, ended, {found, [{own, true}]}}}, #{what := {born, _}}], why(own_table, is_end_of(1), Config)).

%% --- races -----------------------------------------------------------------------

a_message_that_lost_a_race_is_noted(Config) ->
    Chain = why(race, fun(#{what := {recv, _, {value, _}}}) -> true; (_) -> false end, Config),
    [#{number := Taken, id := 1, what := {recv, Winner, {value, Value}}, notes := [{race, Race}]} | _] = Chain,
    Loser = 5 - Winner,
    ?assertMatch(#{from := Loser, message := {value, _}}, Race),
    ?assert(map_get(taken, Race) > Taken),
    ?assertEqual({value, 3 - Value}, map_get(message, Race)).

a_message_that_lost_a_race_and_was_never_taken_is_noted(Config) ->
    Chain = why(lost_race, fun(#{what := {recv, _, {value, _}}}) -> true; (_) -> false end, Config),
    ?assertMatch([#{notes := [{race, #{message := {value, _}, taken := 0}}]} | _], Chain).

ordered_messages_are_no_race(Config) ->
    [?assertEqual([], notes(why(no_race, fun(#{what := {recv, _, {value, N}}}) -> N =:= Value; (_) -> false end, Config)))
     || Value <- [1, 2]].

%% --- the command -----------------------------------------------------------------

notes_are_printed(Config) ->
    Shown = fun(Program, Commands) ->
        Root = witness_checkout:root(proplists:get_value(priv_dir, Config)),
        #{exit := 0, stdout := Out} =
            witness_command:run(Config, filename:join([Root, "bin", "witness"]),
                                ["replay", "--step"] ++ lists:append([["--command", Command] || Command <- Commands])
                                ++ [recorded(Program, Config)]),
        Out
    end,
    [?assertMatch({match, _}, re:run(Out, Text), {Text, Out})
     || {Out, Texts} <- [{Shown(stale_timer, ["goto end", "why"]),
                          ["\n       a stale timer: the process cancelled it before, at 4, when it had fired already\n"]},
                         {Shown(two_timers, ["goto end", "why"]), ["one of these timers sent it, .*: 2, 3\n"]},
                         {Shown({servers, sleep}, ["goto end", "back exit of 5", "why"]),
                          ["waits for <.*>, which takes [0-9]+ at [0-9]+ and never answers it\n", "does nothing after that, and is here\n",
                           "           in timer:sleep/1"]},
                         {Shown(deadlock, ["goto end", "back exit of 4", "why"]), ["a deadlock: <.*>, <.*> wait for each other\n"]},
                         {Shown(lost_update, ["goto end", "why"]), ["overwrites what it does not know: it has read at [0-9]+, and since then, at [0-9]+, "
                                                                    "<.*> calls ets:insert\\(#Ref<.*>,{n,1}\\), which returns true\n"]},
                         {Shown(race, ["next take", "why"]), ["a race: {value,.} of <.*>, sent at [0-9]+, is taken later, at [0-9]+\n"]}],
        Text <- Texts].
