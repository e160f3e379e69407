-module(witness_sys).
-moduledoc """
The shared set of small systems with specifications and the verdicts that are expected of them.

Every system ends by itself. What happens in it varies from run to run; the verdicts do not. An expectation counts
the verdicts by the name of the property, or by the name of the module for a monitor in Erlang. `system_exit` says
how the first process of the system ends.
""".

-export([all/0, together/0, modules/0, spec_file/1, expected/1, outcome/1, counts/1]).

-export_type([system/0, count/0]).

-doc "How often a property reached a verdict.".
-type count() :: {Property :: binary(), yes | no | inconclusive, pos_integer()}.

-type system() :: #{name := atom(),
                    system := {module(), atom(), [term()]},
                    specs := [file:name()],
                    monitors := [{{module() | '_', atom(), arity() | '_'}, {module(), term()}}],
                    scope := tree,
                    expect := [count()],
                    system_exit := normal | crashed}.

-doc "The verdicts that a system has to get, sorted.".
-spec expected(system()) -> [count()].
expected(#{expect := Expect}) -> Expect.

-doc "What a run should say of the system's first process.".
-spec outcome(system()) -> normal | crashed.
outcome(#{system_exit := Exit}) -> Exit.

-doc "The verdicts of a run in the form of an expectation.".
-spec counts([witness:verdict()]) -> [count()].
counts(Verdicts) ->
    Keys = [{property(V), maps:get(verdict, V)} || V <- Verdicts],
    [{Property, Verdict, length([K || K <- Keys, K =:= Key])} || Key = {Property, Verdict} <- lists:usort(Keys)].

property(#{name := undefined, spec := Spec}) -> Spec;
property(#{name := Name}) -> Name.

-doc "The modules of the systems and what they use. Loading them in advance keeps the code server out of the traces.".
-spec modules() -> [module()].
modules() ->
    lists:usort([binary, ets, gen_event, gen_server, gen_statem, lists, maps, proc_lib, supervisor, sys] ++
                [M || #{system := {M, _, _}} <- all() ++ together()] ++ [M || #{monitors := Ms} <- all(), {_, {M, _}} <- Ms]).

-doc "The path of a specification.".
-spec spec_file(file:name()) -> file:filename().
spec_file(Name) ->
    Source = proplists:get_value(source, module_info(compile), ""),
    Beside = [filename:dirname(Source), filename:dirname(code:which(?MODULE)),
              filename:join(filename:dirname(code:which(?MODULE)), "systems")],
    [File | _] = [F || Dir <- Beside, F <- [filename:join(Dir, Name)], filelib:is_regular(F)],
    File.

-doc "All systems with properties that are each about one process, or a group.".
-spec all() -> [system()].
all() -> systems(plain() ++ ends() ++ otp() ++ protocols() ++ groups() ++ odd()).

-doc "Systems with properties over all processes, which are for central monitoring.".
-spec together() -> [system()].
together() -> systems(transfers() ++ sessions()).

systems(Given) ->
    [system(Name, System, Observers, lists:sort(Expect)) || {Name, System, Observers, Expect} <- Given].

system(Name, System, Observers, Expect) ->
    #{name => Name, system => System, scope => tree,
      specs => [F || F <- Observers, not is_tuple(F)],
      monitors => [M || M <- Observers, is_tuple(M)],
      expect => Expect,
      system_exit => case Name of root_crashes -> crashed; _ -> normal end}.

plain() ->
    [{calc, {witness_sys_calc, one, [none]}, ["calc_server.hml"],
      [{~"reply_is_result", yes, 1}]},
     {calc_wrong, {witness_sys_calc, one, [big_sums]}, ["calc_server.hml"],
      [{~"reply_is_result", no, 1}]},
     {calc_clients, {witness_sys_calc, many, [8, none]}, ["calc_client.hml"],
      [{~"client_gets_sum", yes, 8}]},
     {calc_clients_wrong, {witness_sys_calc, many, [8, {operand, 3}]}, ["calc_client.hml"],
      [{~"client_gets_sum", no, 1}, {~"client_gets_sum", yes, 7}]},
     {calc_queue, {witness_sys_calc, queued, [4, none]}, ["calc_queue.hml"],
      [{~"each_reply_fits", yes, 1}, {~"each_is_answered", yes, 1}]},
     {calc_queue_wrong, {witness_sys_calc, queued, [4, {operand, 2}]}, ["calc_queue.hml"],
      [{~"each_reply_fits", no, 1}, {~"each_is_answered", yes, 1}]},
     {token, {witness_sys_token, farm, [4, 0]}, ["token.hml"],
      [{~"private_token", yes, 4}]},
     {token_leaks, {witness_sys_token, farm, [4, 2]}, ["token.hml", "token_shml.hml"],
      [{~"private_token", no, 1}, {~"private_token", yes, 3},
       {~"private_token_shml", no, 1}, {~"private_token_shml", yes, 3}]},
     {pingpong, {witness_sys_pingpong, pairs, [3, 0]}, ["pingpong.hml"],
      [{~"ping_gets_its_number", yes, 3}, {~"pong_echoes", yes, 3}]},
     {pingpong_wrong, {witness_sys_pingpong, pairs, [3, 7]}, ["pingpong.hml"],
      [{~"ping_gets_its_number", no, 3}, {~"pong_echoes", no, 3}]},
     {ring, {witness_sys_ring, ring, [6, 60, 0]}, ["ring.hml"],
      [{~"token_shrinks", yes, 6}, {~"ends_by_stop", yes, 6}]},
     {ring_faulty, {witness_sys_ring, ring, [6, 60, 3]}, ["ring.hml"],
      [{~"token_shrinks", no, 1}, {~"token_shrinks", yes, 5}, {~"ends_by_stop", yes, 6}]},
     {master, {witness_sys_master, master, [4, 30, none]},
      ["master.hml", {{witness_sys_master, worker, 2}, {witness_sys_counting, task}}],
      [{~"tasks_in_order", yes, 4}, {~"all_sums_right", yes, 1}, {~"worker_answers_its_master", yes, 4},
       {~"witness_sys_counting", yes, 4}]},
     {master_skips, {witness_sys_master, master, [4, 30, {2, 17}]},
      ["master.hml", {{witness_sys_master, worker, 2}, {witness_sys_counting, task}}],
      [{~"tasks_in_order", no, 1}, {~"tasks_in_order", yes, 3}, {~"all_sums_right", no, 1},
       {~"worker_answers_its_master", yes, 4},
       {~"witness_sys_counting", no, 1}, {~"witness_sys_counting", yes, 3}]},
     {storm, {witness_sys_storm, main, [4, 3, 25]},
      ["storm.hml", {{'_', consumer, '_'}, {witness_sys_counting, item}}],
      [{~"items_leave_in_order", yes, 4}, {~"witness_sys_counting", yes, 3}]},
     {mailbox, {witness_sys_mailbox, main, []}, ["mailbox.hml"],
      [{Name, yes, 1} || Name <- [~"delivered_in_order", ~"timeout_is_a_message", ~"timers", ~"vm_messages",
                                  ~"large", ~"hibernates"]]},
     {patterns, {witness_sys_patterns, main, [8]}, ["patterns.hml", "patterns_sinks.hml"],
      [{~"talks", yes, 1}, {~"sinks_in_order", yes, 3}, {~"failing_guard", yes, 1},
       {~"failing_guard_or", no, 1}, {~"first_alternative_fails", yes, 1}]},
     {names, {witness_sys_names, main, []}, ["names.hml"],
      [{Name, yes, 1} || Name <- [~"by_name", ~"by_node", ~"by_pid", ~"by_alias", ~"answers_aliases",
                                  ~"sends_to_the_dead", ~"noproc", ~"counts_down"]]}].

ends() ->
    [{exits, {witness_sys_exits, main, []}, ["exits.hml"],
      [{~"quits_as_told", yes, 6} |
       [{Name, yes, 1} || Name <- [~"returns", ~"divides", ~"throws", ~"told", ~"not_by_normal", ~"trapped",
                                   ~"kill_is_not_trapped", ~"follows_exit", ~"follows_error",
                                   ~"survives_normal"]]]},
     {exits_clean, {witness_sys_exits, main, []}, ["exits_clean.hml"],
      [{~"ends_normally", no, 6}, {~"ends_normally", yes, 3}]},
     {links, {witness_sys_links, main, [3, 5]}, ["links.hml"],
      [{~"burns", yes, 6}, {~"protects", yes, 3}, {~"is_protected", yes, 6}]},
     {nested, {witness_sys_nested, tree, [4, 0]}, ["nested.hml", "nested_forks.hml"],
      [{~"told_its_parent", yes, 30}, {~"two_children", yes, 14}]},
     {nested_wrong, {witness_sys_nested, tree, [4, 1]}, ["nested.hml", "nested_forks.hml"],
      [{~"told_its_parent", no, 8}, {~"told_its_parent", yes, 22}, {~"two_children", yes, 14}]},
     {blips, {witness_sys_blips, burst, [40, 41]}, ["blips.hml"],
      [{~"born_and_gone", yes, 40}]},
     {blips_odd, {witness_sys_blips, burst, [40, 10]}, ["blips.hml"],
      [{~"born_and_gone", no, 4}, {~"born_and_gone", yes, 36}]},
     {chain, {witness_sys_blips, chains, [2, 20]}, ["chain.hml"],
      [{~"link_of_chain", yes, 40}, {~"end_of_chain", yes, 2}]},
     {chain_group, {witness_sys_blips, chains, [2, 20]}, ["chain_group.hml", "chain.hml"],
      [{~"chain_in_order", yes, 2}, {~"link_of_chain", yes, 40}, {~"end_of_chain", yes, 2}]},
     {spawns, {witness_sys_spawns, main, []}, ["spawns_kids.hml", "spawns_root.hml"],
      [{~"kid", yes, 10}, {~"asked", yes, 1}, {~"acking", yes, 1}, {~"forks", yes, 1}]},
     {funs, {witness_sys_funs, main, []}, ["funs.hml"],
      [{~"anonymous", yes, 1}, {~"by_proc_lib", yes, 1}, {~"exported", yes, 1}, {~"arguments", yes, 2}]}].

otp() ->
    [{counter, {witness_sys_counter, one, [none]}, ["counter.hml"],
      [{~"adds", yes, 1}, {~"casts_count", yes, 1}]},
     {counter_forgets, {witness_sys_counter, one, [forgetful]}, ["counter.hml"],
      [{~"adds", yes, 1}, {~"casts_count", no, 1}]},
     {counter_backwards, {witness_sys_counter, one, [backwards]}, ["counter.hml"],
      [{~"adds", no, 1}, {~"casts_count", yes, 1}]},
     {counter_clients, {witness_sys_counter, many, [6, none]}, ["counter_client.hml"],
      [{~"rises", yes, 6}, {~"calls_its_server", yes, 6}]},
     {counter_clients_backwards, {witness_sys_counter, many, [6, backwards]}, ["counter_client.hml"],
      [{~"rises", no, 6}, {~"calls_its_server", yes, 6}]},
     {fragile, {witness_sys_fragile, main, []}, ["fragile.hml", "fragile_caller.hml"],
      [{~"no_abnormal_end", no, 3}, {~"no_abnormal_end", yes, 1}, {~"told_why", yes, 2} |
       [{Name, yes, 1} || Name <- [~"refuses_to_start", ~"ignores", ~"crashes_in_init", ~"crashes_in_call",
                                   ~"stops_after_reply", ~"never_replies", ~"killed"]]]},
     {door, {witness_sys_door, doors, [4, ok]}, ["door.hml"],
      [{~"opens_for_its_code", yes, 4}, {~"ends_locked", yes, 4}]},
     {door_jammed, {witness_sys_door, doors, [4, jammed]}, ["door.hml"],
      [{~"opens_for_its_code", no, 4}, {~"ends_locked", yes, 4}]},
     {bus, {witness_sys_bus, main, [3, ok]}, ["bus.hml"],
      [{~"news_in_order", yes, 3}, {~"manager_forwards", yes, 1}]},
     {bus_lossy, {witness_sys_bus, main, [3, lossy]}, ["bus.hml"],
      [{~"news_in_order", no, 1}, {~"news_in_order", yes, 2}, {~"manager_forwards", yes, 1}]},
     {sup, {witness_sys_sup, main, [3]}, ["sup.hml"],
      [{~"never_crashes", no, 3}, {~"never_crashes", yes, 1}, {~"steady_is_killed", yes, 1},
       {~"restarts", yes, 1}]}].

protocols() ->
    [{mutex, {witness_sys_mutex, main, [5, strict]}, ["mutex.hml", "mutex_client.hml"],
      [{~"one_holder", yes, 1}, {~"client_releases", yes, 5}]},
     {mutex_generous, {witness_sys_mutex, main, [5, generous]}, ["mutex.hml", "mutex_client.hml"],
      [{~"one_holder", no, 1}, {~"client_releases", yes, 5}]},
     {election, {witness_sys_election, main, [[3, 9, 1, 2, 5], ok]}, ["election.hml"],
      [{~"greatest_leads", yes, 1}, {~"others_follow", yes, 4}, {~"drops_smaller", yes, 5}]},
     {election_faulty, {witness_sys_election, main, [[3, 9, 1, 2, 5], faulty]}, ["election.hml"],
      [{~"greatest_leads", yes, 1}, {~"others_follow", yes, 4}, {~"drops_smaller", no, 1},
       {~"drops_smaller", yes, 4}]},
     {commit, {witness_sys_commit, main, [5, [2], careful]}, ["commit.hml", "commit_participants.hml"],
      [{~"no_commit_after_abort", yes, 2}, {~"outcome_respects_vote", yes, 10}]},
     {commit_eager, {witness_sys_commit, main, [5, [2], eager]},
      ["commit_group.hml", "commit.hml", "commit_participants.hml"],
      [{~"no_commit_after_abort", no, 2}, {~"same_outcome", yes, 2},
       {~"outcome_respects_vote", no, 2}, {~"outcome_respects_vote", yes, 8}]},
     {bank, {witness_sys_bank, main, [3, careful]}, ["bank.hml"],
      [{~"total_is_kept", yes, 1}, {~"pays_in_what_was_granted", yes, 3}, {~"refuses_the_impossible", yes, 4},
       {~"never_below_zero", yes, 4}]},
     {bank_careless, {witness_sys_bank, main, [3, careless]}, ["bank.hml"],
      [{~"total_is_kept", no, 1}, {~"pays_in_what_was_granted", yes, 3},
       {~"refuses_the_impossible", no, 1}, {~"refuses_the_impossible", yes, 3},
       {~"never_below_zero", no, 1}, {~"never_below_zero", yes, 3}]}].

groups() ->
    [{gather, {witness_sys_gather, main, [2, 5, 0]}, ["gather.hml"],
      [{~"sent_before_received", yes, 2}, {~"forked_before_born", yes, 2}, {~"each_result_arrives", yes, 2}]},
     {gather_fails, {witness_sys_gather, main, [2, 5, 3]}, ["gather.hml", "gather_children.hml"],
      [{~"sent_before_received", yes, 2}, {~"forked_before_born", yes, 2}, {~"each_result_arrives", no, 2},
       {~"child_sends_result", no, 2}, {~"child_sends_result", yes, 8}, {~"parent_alone", yes, 2}]},
     {office_whole, {witness_sys_office, office, []}, ["office_whole.hml"],
      [{~"no_noise_anywhere", no, 1}]},
     {office_cut, {witness_sys_office, office, []}, ["office_cut.hml"],
      [{~"no_noise_outside", yes, 1}]},
     {office, {witness_sys_office, office, []},
      ["office_named.hml", "office_departments.hml", "office_whole.hml", "office_cut.hml"],
      [{~"office_without_workshop", yes, 1}, {~"workshop_hears_noise", yes, 1}, {~"workshop_alone", yes, 1},
       {~"quiet_department", no, 1}, {~"quiet_department", yes, 1},
       {~"no_noise_anywhere", no, 1}, {~"no_noise_outside", yes, 1}]}].

%% Six clients with twelve transfers each, and then the last one.
transfers() ->
    [{Name, {witness_sys_transfers, main, [6, How]}, ["transfers.hml"],
      [{~"asks_one_after_the_other", yes, 7} | Kept]}
     || {Name, How, Kept} <- [{transfers, correct, [{~"money_is_kept", yes, 73}]},
                              {transfers_lossy, lossy, [{~"money_is_kept", yes, 72}, {~"money_is_kept", no, 1}]},
                              {transfers_generous, generous, [{~"money_is_kept", yes, 73}, {~"money_is_kept", no, 1}]},
                              {transfers_miscounting, miscounting,
                               [{~"money_is_kept", yes, 72}, {~"money_is_kept", no, 1}]}]].

%% Five connections with eight sessions each, and then two with the session that may be granted twice.
sessions() ->
    [{sessions, {witness_sys_sessions, main, [5, correct]}, ["sessions.hml"], [{~"one_at_a_time", yes, 42}]},
     {sessions_hasty, {witness_sys_sessions, main, [5, hasty]}, ["sessions.hml"],
      [{~"one_at_a_time", yes, 40}, {~"one_at_a_time", no, 1}]}].

odd() ->
    [{root_crashes, {witness_sys_crashed, main, [4]}, ["crashed.hml"],
      [{~"root_crashes", no, 1}, {~"child_goes_on", yes, 4}]},
     {faulty_monitors, {witness_sys_pingpong, pairs, [3, 7]},
      ["pingpong.hml" | [{{'_', pong, 1}, {witness_sys_faulty, How}}
                         || How <- [crash, crash_in_init, ignore, undecided, rude]]],
      [{~"witness_sys_faulty", inconclusive, 12}, {~"ping_gets_its_number", no, 3}, {~"pong_echoes", no, 3}]},
     {nothing_monitored, {witness_sys_calc, one, [none]}, ["nothing.hml"], []}].
