-module(witness_replay_tests).
-moduledoc "The parts of a replay that need no VM: what a process has received, exit reasons, funs, and the table of calls.".
-include_lib("eunit/include/eunit.hrl").

-define(P, witness_replay_process).

channel(Sent) ->
    lists:foldl(fun({From, Via, Msg}, P) -> ?P:enqueue(From, Via, Msg, P) end,
                process(false), Sent).

process(Plain) -> ?P:new(1, self(), atomics:new(2, []), Plain, #{size => 0, kill => true}).

the_earliest_message_of_a_sender_that_matches_is_taken_test() ->
    P = channel([{2, none, {a, 1}}, {3, none, {b, 1}}, {2, none, {b, 2}}, {2, none, {b, 3}}]),
    IsB = fun({b, _}) -> true; (_) -> false end,
    {ok, {b, 2}, P1} = ?P:dequeue(2, IsB, P),
    {ok, {b, 3}, P2} = ?P:dequeue(2, IsB, P1),
    {none, P3} = ?P:dequeue(2, IsB, P2),
    {ok, {a, 1}, P4} = ?P:dequeue(2, fun(_) -> true end, P3),
    {ok, {b, 1}, _} = ?P:dequeue(3, IsB, ?P:enqueue(2, none, {b, 4}, P4)).

a_message_to_an_alias_that_has_gone_never_came_test() ->
    Alias = make_ref(),
    Any = fun(_) -> true end,
    P = ?P:alias(Alias, monitor, channel([{2, Alias, {Alias, late}}, {2, none, plain}])),
    ?assertMatch({ok, {Alias, late}, _}, ?P:dequeue(2, Any, P)),
    ?assertMatch({ok, plain, _}, ?P:dequeue(2, Any, ?P:unalias({monitor, Alias}, P))),
    %% A receive that names the alias waits for a message that came in time.
    ?assertMatch({ok, {Alias, late}, _}, ?P:dequeue(2, fun({A, _}) -> A =:= Alias; (_) -> false end,
                                                    ?P:unalias({monitor, Alias}, P))).

%% When it comes, and when it is taken: also if it was sent to an alias, and if others' messages are between.
a_receive_that_skips_a_queue_looks_at_each_message_once_test_() ->
    {timeout, 60, fun() ->
        Alias = make_ref(),
        [?assertEqual({Messages, 2 * Messages + 1}, {Messages, looks(Messages, Sender, Alias)})
         || Messages <- [1_000, 2_000], Sender <- [2, {2, Alias}]]
    end}.

looks(Messages, Sender, Alias) ->
    Looked = counters:new(1, []),
    Take = fun(Wanted) ->
        Match = fun({}, Msg) ->
            ok = counters:add(Looked, 1, 1),
            Wanted =:= any orelse Msg =:= Wanted
        end,
        [Msg] = witness_replay_messages:take(?MODULE, Match, {}, infinity),
        Msg
    end,
    Test = self(),
    {_, Monitor} = spawn_monitor(fun() ->
        ok = witness_replay_tables:delete(),
        ok = witness_replay_backpressure:start(fun(_) -> none end),
        {[], P} = ?P:add_entries([{from, 2, Messages + 1}, {exit, normal}], false, ?P:alias(Alias, explicit, process(true))),
        _ = witness_replay_interpreter:put_state(P),
        [begin self() ! [Sender | N], self() ! [3 | other] end || N <- lists:seq(1, Messages)],
        self() ! [2 | wanted],
        wanted = Take(wanted),
        Test ! {taken, [Take(any) || _ <- lists:seq(1, Messages)]}
    end),
    receive {'DOWN', Monitor, process, _, Reason} -> normal = Reason end,
    ?assertEqual(lists:seq(1, Messages), receive {taken, Taken} -> Taken end),
    counters:get(Looked, 1).

an_alias_is_active_as_long_as_it_was_asked_for_test() ->
    Alias = make_ref(),
    Any = fun(_) -> true end,
    Sent = [{2, Alias, one}, {2, Alias, two}],
    {ok, one, Once} = ?P:dequeue(2, Any, ?P:alias(Alias, once, channel(Sent))),
    ?assertMatch({none, _}, ?P:dequeue(2, Any, Once)),
    {ok, one, Explicit} = ?P:dequeue(2, Any, ?P:unalias({monitor, Alias}, ?P:alias(Alias, explicit, channel(Sent)))),
    ?assertMatch({none, _}, ?P:dequeue(2, Any, ?P:unalias({any, Alias}, Explicit))).

aliases_have_their_process_in_them_test() ->
    Made = fun() ->
        {_, Spawned} = spawn_opt(fun() -> ok end, [{monitor, [{alias, explicit_unalias}]}]),
        Aliases = [alias(), alias([reply]), monitor(process, self(), [{alias, demonitor}]), Spawned],
        exit({made, Aliases, [make_ref(), monitor(process, whereis(init))]})
    end,
    Ends = [spawn_monitor(Made) || _ <- lists:seq(1, 3)],
    All = [receive {'DOWN', Ref, process, Pid, {made, Aliases, Others}} -> {Aliases, Others} end || {Pid, Ref} <- Ends],
    Owners = [lists:usort([witness_replay_proxies:owner(Alias) || Alias <- Aliases]) || {Aliases, _} <- All],
    [?assertMatch([_], Owner) || Owner <- Owners],
    ?assertEqual(3, length(lists:usort(Owners))),
    [?assertEqual(Other, witness_replay_proxies:owner(Other)) || {_, Others} <- All, Other <- Others].

reasons_are_compared_without_stack_traces_test() ->
    Stack = [{m, f, 1, [{line, 3}]}],
    ?assert(witness_replay_reason:same({badarg, Stack}, {badarg, [{n, g, [x], []}]})),
    ?assert(witness_replay_reason:same({{badarg, Stack}, {gen_server, call, [x]}}, {{badarg, []}, {gen_server, call, [x]}})
            =:= false),
    ?assertNot(witness_replay_reason:same({badarg, Stack}, {badarith, Stack})),
    ?assert(witness_replay_reason:has_stack({shutdown, {failed, Stack}})),
    ?assertNot(witness_replay_reason:has_stack({shutdown, [{a, b}]})).

%% A fun of code that was compiled again, with the same funs in it.
funs_of_the_recording_are_found_again_test() ->
    [First, Second] = [compiled(Version) || Version <- [1, 2]],
    File = file(Second),
    {module, M} = code:load_binary(witness_replay_funs, File, First),
    Logged = term_to_binary([M:adder(5), {M:none(), fun lists:sort/1}]),
    true = code:delete(M), _ = code:purge(M),
    {module, M} = code:load_binary(M, File, Second),
    [Adder, {None, _}] = Term = witness_replay_fun:local(binary_to_term(Logged)),
    ?assertEqual({12, none}, {Adder(7), None()}),
    ?assertEqual([M:adder(5), {M:none(), fun lists:sort/1}], Term),
    true = code:delete(M), _ = code:purge(M),
    ok = file:delete(File).

compiled(Version) ->
    Forms = [begin {ok, Tokens, _} = erl_scan:string(Text), {ok, Form} = erl_parse:parse_form(Tokens), Form end
             || Text <- ["-module(witness_replay_funs).", "-export([adder/1, none/0]).",
                         "-vsn(" ++ integer_to_list(Version) ++ ").",
                         "none() -> fun() -> none end.", "adder(N) -> fun(X) -> X + N + " ++
                         case Version of 1 -> "0"; 2 -> "0 * X" end ++ " end."]],
    {ok, _, Binary} = compile:forms(Forms, [debug_info]),
    Binary.

file(Binary) ->
    File = filename:join(filename:basedir(user_cache, "witness"), "witness_replay_funs.beam"),
    ok = filelib:ensure_dir(File),
    ok = file:write_file(File, Binary),
    File.

the_table_is_the_recorders_and_more_test() ->
    ?assertEqual(witness_record_calls:class(ets, lookup, 2), witness_replay_calls:class(ets, lookup, 2)),
    ?assertEqual({effect, none, self}, {witness_replay_calls:class(erlang, exit, 2), witness_replay_calls:class(erlang, self, 0),
                                        witness_replay_calls:known(erlang, self, 0)}),
    %% Calls that only a replay does in another way have stand-ins in a recording too, where they are funs.
    [?assertEqual({Call, true}, {Call, witness_record_calls:possible(erlang, F, A)})
     || {F, A} = Call <- witness_record_calls:steered()],
    ?assertEqual([], [{F, A} || {F, A} <- erlang:module_info(exports), witness_replay_calls:known(erlang, F, A) =/= none,
                                witness_record_calls:class(erlang, F, A) =:= none] -- witness_record_calls:steered()),
    [begin
         ?assertEqual({used, none}, {witness_replay_calls:class(M, F, A), witness_record_calls:class(M, F, A)}),
         ?assert(witness_record_calls:is_steered(M, F, A)),
         [?assert(Possible) || Possible <- [witness_record_calls:possible(M, F, A), witness_replay_calls:possible(M, '_', A)]]
     end || {M, F, A} <- witness_record_calls:users()],
    ?assert(witness_replay_calls:possible(erlang, self, 0)),
    ?assert(witness_replay_calls:possible('_', exit, 2)),
    ?assertNot(witness_replay_calls:possible(lists, self, 0)).

%% A call that leaves no entry may not act on processes of the replay VM.
no_function_that_takes_a_process_is_left_to_the_vm_test() ->
    Acting = [{exit, 2}, {exit_signal, 2}, {unlink, 1}, {demonitor, 1}, {link, 1}, {monitor, 2}, {send, 2}, {process_flag, 3},
              {suspend_process, 1}, {resume_process, 1}, {group_leader, 2}, {hibernate, 3}, {halt, 1}],
    ?assertEqual([], [FA || {F, A} = FA <- Acting, witness_replay_calls:class(erlang, F, A) =:= none]).
