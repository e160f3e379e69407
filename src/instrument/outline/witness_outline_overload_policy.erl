-module(witness_outline_overload_policy).
-moduledoc """
How much memory the processes of a run take, as far as it is known, and what follows from that. This module is pure:
`m:witness_outline_overload` measures, and does what is decided here.

The VM returns at once how many messages are queued, for thousands of processes. It returns the memory that a process takes
with its messages slowly, since it walks the mailbox. So that is only measured for a few, and otherwise estimated from the
bytes of a message at the last measurement.
""".

-export([new/0, add/3, remove/2, put_queue_lengths/2, put_measurement/4, coarse/1, processes/1, processes/2, totals/1,
         queued_bytes/1, judge/2]).

-export_type([usage/0, kind/0, judgement/0]).

-doc "A tracer, or a process that runs a monitor.".
-type kind() :: tracer | monitor.

%% messages, bytes: at the last measurement; waiting: messages now.
-record(process, {kind :: kind(),
                  messages = 0 :: non_neg_integer(),
                  bytes :: pos_integer(),
                  waiting = 0 :: non_neg_integer()}).

-opaque usage() :: #{pid() => #process{}}.

-doc """
What to do: nothing; end these monitors, the largest first, until no more than so many bytes are taken; or give up
gathering, since the memory is taken by events that have not even reached their monitors.
""".
-type judgement() :: fine | {end_monitors, [pid()], Until :: pos_integer()} | give_up.

%% Bytes of a process that has done nothing yet.
-define(IDLE_BYTES, 24_000).
%% Bytes of a message (an event, or a batch of them), as long as the process has not been measured with enough of them.
-define(EVENT_BYTES, 250).
-define(BATCH_BYTES, 16_000).
%% With fewer messages the mean says little.
-define(MIN_MESSAGES, 16).
%% Bytes. An estimate that differs by more from the last measurement is coarse.
-define(COARSE_BYTES, 65_536).

-doc "No process yet.".
-spec new() -> usage().
new() -> #{}.

-doc "Adds a process.".
-spec add(pid(), kind(), usage()) -> usage().
add(P, Kind, U) -> U#{P => #process{kind = Kind, bytes = ?IDLE_BYTES}}.

-doc "Removes a process that has ended.".
-spec remove(pid(), usage()) -> usage().
remove(P, U) -> maps:remove(P, U).

-doc "How many messages wait for each process. Processes for which that is `undefined` have ended.".
-spec put_queue_lengths(fun((pid()) -> non_neg_integer() | undefined), usage()) -> usage().
put_queue_lengths(Look, U) ->
    maps:filtermap(fun(P, Process) ->
                           case Look(P) of
                               undefined -> false;
                               N -> {true, Process#process{waiting = N}}
                           end
                   end, U).

-doc "A process takes so many bytes with so many messages.".
-spec put_measurement(pid(), Messages :: non_neg_integer(), Bytes :: pos_integer(), usage()) -> usage().
put_measurement(P, Messages, Bytes, U) ->
    #{P := Process} = U,
    U#{P := Process#process{messages = Messages, bytes = Bytes, waiting = Messages}}.

estimate(#process{messages = N, bytes = Bytes, waiting = N}) -> Bytes;
estimate(Process = #process{messages = N, bytes = Bytes, waiting = Waiting}) ->
    max(?IDLE_BYTES, Bytes + (Waiting - N) * message_bytes(Process)).

message_bytes(#process{messages = N, bytes = Bytes}) when N >= ?MIN_MESSAGES -> Bytes div N;
message_bytes(#process{kind = tracer}) -> ?EVENT_BYTES;
message_bytes(#process{kind = monitor}) -> ?BATCH_BYTES.

-doc "The processes with coarse estimates, the coarsest first.".
-spec coarse(usage()) -> [pid()].
coarse(U) ->
    Off = [{abs(estimate(Process) - Bytes), P} || P := Process = #process{bytes = Bytes} <- U,
                                                  abs(estimate(Process) - Bytes) > max(?COARSE_BYTES, Bytes div 4)],
    [P || {_, P} <- lists:reverse(lists:sort(Off))].

-doc "All processes.".
-spec processes(usage()) -> [pid()].
processes(U) -> maps:keys(U).

-spec processes(kind(), usage()) -> [pid()].
processes(Kind, U) -> [P || P := #process{kind = K} <- U, K =:= Kind].

-doc "How many bytes all tracers and all monitors take, approximately.".
-spec totals(usage()) -> {Tracers :: non_neg_integer(), Monitors :: non_neg_integer()}.
totals(U) ->
    maps:fold(fun(_, Process = #process{kind = tracer}, {T, M}) -> {T + estimate(Process), M};
                 (_, Process, {T, M}) -> {T, M + estimate(Process)}
              end, {0, 0}, U).

-doc "How many bytes are queued for tracers, approximately.".
-spec queued_bytes(usage()) -> non_neg_integer().
queued_bytes(U) ->
    maps:fold(fun(_, Process = #process{kind = tracer, waiting = Waiting}, Sum) -> Sum + Waiting * message_bytes(Process);
                 (_, _, Sum) -> Sum
              end, 0, U).

-doc "What follows from a budget of so many bytes.".
-spec judge(pos_integer(), usage()) -> judgement().
judge(Memory, U) ->
    case totals(U) of
        {Tracers, Monitors} when Tracers + Monitors =< Memory -> fine;
        {Tracers, _} when Tracers > Memory div 2 -> give_up;
        {_, _} ->
            %% Monitors take more than half of the budget, so enough is left when some of them are ended.
            Sized = lists:reverse(lists:sort([{estimate(Process), P} || P := Process = #process{kind = monitor} <- U])),
            {end_monitors, [P || {_, P} <- Sized], Memory - Memory div 8}
    end.
