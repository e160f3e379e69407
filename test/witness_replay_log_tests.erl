-module(witness_replay_log_tests).
-moduledoc "What processes of a replay ask of its recording.".
-include_lib("eunit/include/eunit.hrl").

with(Processes, Fun) ->
    Dir = witness_recording_sample:folder("log"),
    Births = [{#{id => Id, parent => 0, place => Id, pid => Id, signature => {m, f, []}}, Entries} || {Id, Entries} <- Processes],
    ok = witness_recording_sample:write(Dir, witness_recording_sample:parts(Births, 1000, false),
                                        #{header => witness_recording_sample:header(false)}),
    {ok, Recording} = witness_log_recording:open(Dir),
    Reader = witness_replay_log:start(Recording),
    receive {witness_replay_log, ready} -> ok end,
    try
        Fun(Recording)
    after
        true = unlink(Reader),
        Monitor = monitor(process, Reader),
        true = exit(Reader, kill),
        receive {'DOWN', Monitor, process, Reader, _} -> ok end,
        witness_recording_sample:delete(Dir)
    end.

crashed(N, Line) -> {{bad, N}, [{m, f, 1, [{line, Line}]}]}.

%% A tree of processes that a crash has ended: each of them asks whether another one has its reason. Reasons are the same but
%% for stack traces.
exit_reasons_of_others_are_read_once_test() ->
    Last = 60,
    Processes = [{1, []}, {2, [{exit, normal}]}, {3, [{exit, normal}]}, {4, [{exit, killed}]}]
        ++ [{N, [timeout, {exit, crashed(N div 2, N)}]} || N <- lists:seq(5, Last)],
    with(Processes, fun(Recording) ->
        Session = trace:session_create(?MODULE, self(), []),
        Pass = {witness_log_recording, fold_runs, 4},
        1 = trace:function(Session, Pass, true, [call_count]),
        Shared = fun witness_replay_log:has_same_exit/2,
        %% 5 is alone with its reason, and so is the last one.
        ?assertEqual([{5, false}, {Last, false}],
                     [{N, false} || N <- lists:seq(5, Last), not Shared(N, crashed(N div 2, 1))]),
        ?assertEqual([false, true, false, true],
                     [Shared(4, killed), Shared(5, killed), Shared(5, {bad, 3}), Shared(1, crashed(3, 0))]),
        {call_count, Passes} = trace:info(Session, Pass, call_count),
        true = trace:session_destroy(Session),
        ?assertEqual(length(witness_log_recording:ids(Recording)), Passes)
    end).
