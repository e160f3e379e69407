-module(witness_record_stop).
-moduledoc """
Ends a recording as planned: nothing more is recorded. Then finds out which of the processes that are alive wait.

A recording has what each process did until its last entry. What the process did after it, until the next `receive` or recorded
call, can be computed again. But the recording does not say whether the process had done so when the recording ended. A process
that waits has: it waits in that `receive`, or in that call. So a replay knows that what it sends before was sent
(`m:witness_replay_events`).

Only those that certainly wait are named. A process that waits for a module to be loaded waits before its next step: it is not
named.
""".

-export([seal/1, waiting/0]).
-export([ask/0]).

%% Milliseconds that processes have to answer. A process in native code cannot, and then no process is named.
-define(ANSWER_TIMEOUT_MS, 10_000).
%% Modules through which a process waits for code.
-define(LOADING, [error_handler, code, code_server, erl_prim_loader]).

-doc "Ends the recording: what was recorded is a consistent cut (`witness_record_native:seal/1`).".
-spec seal(Times :: boolean()) -> none | non_neg_integer().
seal(Times) -> witness_record_native:seal(Times).

-doc "The ids of the recorded processes that wait, for `witness_log_recording:waiting/1`.".
-spec waiting() -> binary().
waiting() ->
    {Asker, Monitor} = spawn_monitor(?MODULE, ask, []),
    receive
        {'DOWN', Monitor, process, Asker, {waiting, Ids}} -> witness_log_recording_number:ascending(Ids);
        {'DOWN', Monitor, process, Asker, _} -> <<>>
    after ?ANSWER_TIMEOUT_MS ->
        true = demonitor(Monitor, [flush]),
        exit(Asker, kill),
        <<>>
    end.

-doc false.
-spec ask() -> no_return().
ask() -> exit({waiting, lists:usort(lists:filtermap(fun waiting_id/1, processes()))}).

waiting_id(Pid) ->
    maybe
        Id = witness_record_native:identify(Pid),
        true ?= Id > 0,
        [{status, waiting}, {current_stacktrace, Stack}] ?= process_info(Pid, [status, current_stacktrace]),
        false ?= lists:any(fun({Module, _, _, _}) -> lists:member(Module, ?LOADING) end, Stack),
        {true, Id}
    else
        _ -> false
    end.
