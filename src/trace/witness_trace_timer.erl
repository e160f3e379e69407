-module(witness_trace_timer).
-moduledoc """
Notifies the consumers of `m:witness_trace_native` of events that have waited long enough; rests while there are none.

This is a module of its own: if new code of the tracer is loaded, this process does not run in the old code, with which it
would be purged.
""".

-export([start/2]).
-export([init/3]).

%% Milliseconds that events wait on a busy node, so that batches stay large where they are many.
-define(BUSY_WAIT_MS, 100).

-doc "Starts a timer that ends with its owner, or at the message `stop`; it starts to work at `{run, Run}`.".
-spec start(Owner :: pid(), Flush :: pos_integer()) -> pid().
start(Owner, Flush) ->
    Pid = spawn_opt(?MODULE, init, [Owner, Flush, erlang:system_info(schedulers_online)], [link, {priority, low}]),
    true = is_pid(Pid),
    Pid.

-doc false.
-spec init(pid(), pos_integer(), pos_integer()) -> ok.
init(Owner, Flush, Schedulers) ->
    proc_lib:set_label(witness_timer),
    receive {run, Run} -> rest({monitor(process, Owner), Flush, Schedulers, Run}) end.

rest({Owner, _, _, _} = T) ->
    receive
        witness_wake -> tick(T);
        stop -> ok;
        {'DOWN', Owner, process, _, _} -> ok;
        {system, From, Request} -> witness_event_process:system(Request, From, fun rest/1, T)
    end.

tick({Owner, Flush, Schedulers, Run} = T) ->
    receive
        stop -> ok;
        {'DOWN', Owner, process, _, _} -> ok;
        {system, From, Request} -> witness_event_process:system(Request, From, fun tick/1, T)
    after Flush ->
        Age = case erlang:statistics(total_run_queue_lengths) > Schedulers of
            true -> max(1, ?BUSY_WAIT_MS div Flush);
            false -> 1
        end,
        case witness_trace_native:tick(Run, Age) of
            true -> tick(T);
            false -> rest(T)
        end
    end.
