-module(witness_record_exit_watch_tests).
-moduledoc "Of processes that have lost their trace flag every birth and every end is recorded, once, and as the VM would have told it.".
-include_lib("eunit/include/eunit.hrl").

-define(C, witness_record_exit_watch).
-define(R, witness_record_native).

calm_test_() ->
    {foreach, fun() -> ok = ?R:available() end, fun(_) -> ?R:stop() end,
     [{timeout, 60, {atom_to_list(Name), Test}} || {Name, Test} <- tests()]}.

tests() ->
    [{ends_have_the_reason_that_the_vm_tells, fun ends_have_the_reason_that_the_vm_tells/0},
     {the_monitor_is_there_before_the_flag_goes, fun the_monitor_is_there_before_the_flag_goes/0},
     {a_process_that_ends_while_its_flag_is_taken_off_has_one_exit,
      fun a_process_that_ends_while_its_flag_is_taken_off_has_one_exit/0},
     {ends_that_were_not_told_yet_are_waited_for, fun ends_that_were_not_told_yet_are_waited_for/0},
     {children_of_a_process_without_the_flag_are_recorded, fun children_of_a_process_without_the_flag_are_recorded/0},
     {after_settling_each_process_keeps_its_flag, fun after_settling_each_process_keeps_its_flag/0}].

%% Each way to end, of one that has the flag and of one that has not.
ends_have_the_reason_that_the_vm_tells() ->
    Ends = [fun() -> ok end, fun() -> exit(bye) end, fun() -> throw(ball) end, fun() -> error(bad) end,
            fun() -> exit({shutdown, 1}) end, fun() -> exit(self(), kill), receive never -> ok end end,
            fun() -> spawn_link(fun() -> exit(linked) end), receive never -> ok end end],
    recorded(fun(Session, Calm) ->
        [begin
             {Flagged, Id1} = child(fun(_) -> receive go -> End() end end),
             {Without, Id2} = child(fun(Me) -> calm(Me, Calm), receive go -> End() end end),
             Without ! {self(), ready}, receive {ready, Without} -> ok end,
             _ = sys:get_state(Calm),
             ?assertEqual({flags, [procs]}, trace:info(Session, Flagged, flags)),
             ?assertEqual({flags, []}, trace:info(Session, Without, flags)),
             [begin P ! go, witness_await:down(P) end || P <- [Flagged, Without]],
             {Id1, Id2}
         end || End <- Ends]
    end, fun(Pairs, #{entries := Entries}) ->
        [?assertEqual([exit_of(Id1, Entries)], [Exit || {exit, _} = Exit <- maps:get(Id2, Entries)]) || {Id1, Id2} <- Pairs]
    end).

exit_of(Id, Entries) -> lists:last(maps:get(Id, Entries)).

%% The answer to the question says that it is.
the_monitor_is_there_before_the_flag_goes() ->
    recorded(fun(_, Calm) ->
        Watching = trace:session_create(watching, self(), []),
        1 = trace:process(Watching, Calm, true, [call, running]),
        [trace:function(Watching, MFA, true, []) || MFA <- [{erlang, monitor, 2}, {erlang, process_info, 2}, {trace, process, 4}]],
        {P, Id} = child(fun(Me) -> calm(Me, Calm), receive go -> ok end end),
        P ! {self(), ready}, receive {ready, P} -> ok end,
        _ = sys:get_state(Calm),
        _ = trace:delivered(Watching, Calm),
        receive {trace_delivered, Calm, _} -> ok end,
        true = trace:session_destroy(Watching),
        P ! go,
        witness_await:down(P),
        Done = fun Done() ->
            receive
                {trace, Calm, call, Call} -> [Call | Done()];
                {trace, Calm, out, _} -> [out | Done()]
            after 0 -> []
            end
        end,
        ?assertMatch([{erlang, monitor, [process, P]}, out, {erlang, process_info, [P, _]}, {trace, process, [_, P, false, _]}],
                     without_waits(lists:dropwhile(fun(What) -> What =:= out end, Done()))),
        Id
    end, fun(Id, #{entries := Entries}) -> ?assertEqual({exit, normal}, lists:last(maps:get(Id, Entries))) end).

%% It may wait for the answer, and when all is done.
without_waits([{erlang, process_info, _} = Asked | Then]) -> [Asked | [Call || Call <- Then, Call =/= out]];
without_waits([What | Then]) -> [What | without_waits(Then)];
without_waits([]) -> [].

%% Without the yield some of these monitors come too late. What holds the process on its scheduler takes no reductions.
a_monitor_is_there_after_a_yield_test() ->
    Long = lists:seq(1, 1_000_000),
    Reasons = [begin
        Self = self(),
        P = spawn_opt(fun() -> receive stop -> ok end end, [{scheduler, 1}]),
        spawn_opt(fun() ->
            Ref = monitor(process, P),
            true = erlang:yield(),
            {priority, _} = process_info(P, priority),
            Self ! is_set,
            _ = erts_debug:flat_size(Long),
            receive {'DOWN', Ref, _, _, Reason} -> Self ! {reason, Reason} end
        end, [{scheduler, erlang:system_info(schedulers_online)}]),
        receive is_set -> P ! stop end,
        receive {reason, Reason} -> Reason end
    end || _ <- lists:seq(1, 50)],
    ?assertEqual([normal], lists:usort(Reasons)).

a_process_that_ends_while_its_flag_is_taken_off_has_one_exit() ->
    recorded(fun(_, Calm) ->
        Children = [child(fun(Me) ->
            calm = told(Me, 64),
            ok = ?C:ask(Calm),
            [erlang:yield() || _ <- lists:seq(1, I rem 5)],
            exit({reason, Me})
        end) || I <- lists:seq(1, 2000)],
        [begin witness_await:down(P), Id end || {P, Id} <- Children]
    end, fun(Ids, #{entries := Entries}) ->
        [?assertEqual([{exit, {reason, Id}}], [Exit || {exit, _} = Exit <- maps:get(Id, Entries)]) || Id <- Ids]
    end).

%% The question comes before what the monitors have to say.
ends_that_were_not_told_yet_are_waited_for() ->
    recorded(fun(_, Calm) ->
        Children = [child(fun(Me) -> calm(Me, Calm), receive stop -> ok end end) || _ <- lists:seq(1, 500)],
        [begin P ! {self(), ready}, receive {ready, P} -> ok end end || {P, _} <- Children],
        _ = sys:get_state(Calm),
        true = erlang:suspend_process(Calm),
        Asked = gen_server:send_request(Calm, settle),
        [begin P ! stop, witness_await:down(P) end || {P, _} <- Children],
        #{ended := 0} = ?R:info(),
        true = erlang:resume_process(Calm),
        {reply, ok} = gen_server:receive_response(Asked, infinity),
        #{ended := 500} = ?R:info(),
        [Id || {_, Id} <- Children]
    end, fun(Ids, #{entries := Entries}) ->
        [?assertEqual({exit, normal}, lists:last(maps:get(Id, Entries))) || Id <- Ids]
    end).

%% Those that it has announced, and others.
children_of_a_process_without_the_flag_are_recorded() ->
    recorded(fun(_, Calm) ->
        Self = self(),
        {P, Id} = child(fun(Me) ->
            calm(Me, Calm),
            receive go -> ok end,
            {A, IdA} = child(fun(_) -> ok end),
            B = spawn(fun() -> Self ! {unannounced, ?R:identify()} end),
            witness_await:down(A), witness_await:down(B),
            Self ! {announced, IdA}
        end),
        P ! {self(), ready}, receive {ready, P} -> ok end,
        _ = sys:get_state(Calm),
        P ! go,
        witness_await:down(P),
        IdB = receive {unannounced, I} -> I end,
        {Id, receive {announced, I1} -> [I1, IdB] end}
    end, fun({Parent, [A, B] = Ids}, #{births := Births, entries := Entries}) ->
        ?assert(A > Parent andalso B > A),
        ?assertEqual([Parent, Parent], [maps:get(parent, maps:get(Id, Births)) || Id <- Ids]),
        ?assertEqual(Ids, [Id || {spawn, Id} <- maps:get(Parent, Entries)])
    end).

after_settling_each_process_keeps_its_flag() ->
    recorded(fun(Session, Calm) ->
        ok = ?C:settle(Calm),
        {P, Id} = child(fun(Me) -> calm(Me, Calm), receive go -> ok end end),
        P ! {self(), ready}, receive {ready, P} -> ok end,
        _ = sys:get_state(Calm),
        ?assertEqual({flags, [procs]}, trace:info(Session, P, flags)),
        P ! go,
        witness_await:down(P),
        Id
    end, fun(Id, #{entries := Entries}) -> ?assertEqual({exit, normal}, lists:last(maps:get(Id, Entries))) end).

%% --- a recording -----------------------------------------------------------------

%% All that were born have ended, each once.
recorded(Do, Check) ->
    ok = ?R:start(#{}),
    Session = trace:session_create(?MODULE, ?R:tracer(), []),
    {ok, Calm} = ?C:start_link(Session),
    _ = trace:process(Session, new, true, [procs]),
    %% A session that is left behind would be cleaned up while the recorder has the VM stand still.
    Result = try
        Done = Do(Session, Calm),
        ok = ?C:settle(Calm),
        Done
    after
        ok = gen_server:stop(Calm),
        true = trace:session_destroy(Session)
    end,
    #{born := Born, ended := Ended} = ?R:info(),
    ok = ?R:stop(),
    Decoded = #{births := Births, ends := Ends} = witness_record_native_tests:decode(taken(), false),
    ?assertEqual({Born, Born}, {Ended, map_size(Births)}),
    ?assertEqual(lists:sort(maps:keys(Births)), lists:sort(Ends)),
    Check(Result, Decoded).

taken() ->
    case ?R:take(100) of
        {[], _} -> [];
        {Taken, _} -> Taken ++ taken()
    end.

child(Fun) ->
    Id = ?R:child(),
    {spawn(fun() -> Fun(Id) end), Id}.

%% Takes messages until it is told to be calm, and asks for it.
calm(Me, Calm) ->
    calm = told(Me, 64),
    ok = ?C:ask(Calm),
    receive {From, ready} -> From ! {ready, self()} end.

told(Me, 1) -> ?R:took(Me, 1);
told(Me, N) ->
    ok = ?R:took(Me, 1),
    told(Me, N - 1).
