-module(witness_outline_usage).
-moduledoc """
How much memory the processes of a run take, as far as it is known, and what follows from that. Pure:
`m:witness_outline_budget` looks, and does what is decided here.

How many messages wait for a process can be asked of thousands of them in no time. How much memory it takes with them
can only be asked of a few, since the VM walks the mailbox. So that is estimated from what a message took when it was
asked last.
""".

-export([new/0, add/3, remove/2, waiting/2, measured/4, stale/1, processes/1, processes/2, totals/1,
         behind/1, judge/2]).

-export_type([usage/0, kind/0, judgement/0]).

-doc "A tracer, or what runs a monitor.".
-type kind() :: tracer | monitor.

%% messages, bytes: when it was measured last; waiting: messages now.
-record(process, {kind :: kind(),
                  messages = 0 :: non_neg_integer(),
                  bytes :: pos_integer(),
                  waiting = 0 :: non_neg_integer()}).

-opaque usage() :: #{pid() => #process{}}.

-doc """
What to do: nothing; end these monitors, the largest first, until no more than so many bytes are taken; or give up
gathering, since what takes the memory are events that are not even with their monitors yet.
""".
-type judgement() :: fine | {end_monitors, [pid()], Until :: pos_integer()} | give_up.

%% Bytes of a process that has done nothing yet.
-define(IDLE, 24_000).
%% Bytes of a message, as long as the process has not been measured with some: an event, or a batch of them.
-define(EVENT, 250).
-define(BATCH, 16_000).
%% Of fewer messages the mean says little.
-define(SOME, 16).
%% An estimate that is off by this much may be wrong by as much.
-define(COARSE, 65_536).

-doc "Nobody takes anything.".
-spec new() -> usage().
new() -> #{}.

-doc "There is another process.".
-spec add(pid(), kind(), usage()) -> usage().
add(P, Kind, U) -> U#{P => #process{kind = Kind, bytes = ?IDLE}}.

-doc "It has ended.".
-spec remove(pid(), usage()) -> usage().
remove(P, U) -> maps:remove(P, U).

-doc "How many messages wait for each process. Those for which that is `undefined` have ended.".
-spec waiting(fun((pid()) -> non_neg_integer() | undefined), usage()) -> usage().
waiting(Look, U) ->
    maps:filtermap(fun(P, Process) ->
                           case Look(P) of
                               undefined -> false;
                               N -> {true, Process#process{waiting = N}}
                           end
                   end, U).

-doc "What a process takes with so many messages.".
-spec measured(pid(), Messages :: non_neg_integer(), Bytes :: pos_integer(), usage()) -> usage().
measured(P, Messages, Bytes, U) ->
    #{P := Process} = U,
    U#{P := Process#process{messages = Messages, bytes = Bytes, waiting = Messages}}.

estimate(#process{messages = N, bytes = Bytes, waiting = N}) -> Bytes;
estimate(Process = #process{messages = N, bytes = Bytes, waiting = Waiting}) ->
    max(?IDLE, Bytes + (Waiting - N) * each(Process)).

each(#process{messages = N, bytes = Bytes}) when N >= ?SOME -> Bytes div N;
each(#process{kind = tracer}) -> ?EVENT;
each(#process{kind = monitor}) -> ?BATCH.

-doc "Processes whose estimates are coarse, the coarsest first.".
-spec stale(usage()) -> [pid()].
stale(U) ->
    Off = [{abs(estimate(Process) - Bytes), P} || P := Process = #process{bytes = Bytes} <- U,
                                                  abs(estimate(Process) - Bytes) > max(?COARSE, Bytes div 4)],
    [P || {_, P} <- lists:reverse(lists:sort(Off))].

-doc "All of them.".
-spec processes(usage()) -> [pid()].
processes(U) -> maps:keys(U).

-spec processes(kind(), usage()) -> [pid()].
processes(Kind, U) -> [P || P := #process{kind = K} <- U, K =:= Kind].

-doc "How many bytes all tracers and all monitors take, about.".
-spec totals(usage()) -> {Tracers :: non_neg_integer(), Monitors :: non_neg_integer()}.
totals(U) ->
    maps:fold(fun(_, Process = #process{kind = tracer}, {T, M}) -> {T + estimate(Process), M};
                 (_, Process, {T, M}) -> {T, M + estimate(Process)}
              end, {0, 0}, U).

-doc "How many bytes wait for tracers, about.".
-spec behind(usage()) -> non_neg_integer().
behind(U) ->
    maps:fold(fun(_, Process = #process{kind = tracer, waiting = Waiting}, Sum) -> Sum + Waiting * each(Process);
                 (_, _, Sum) -> Sum
              end, 0, U).

-doc "What follows from a budget of so many bytes.".
-spec judge(pos_integer(), usage()) -> judgement().
judge(Memory, U) ->
    case totals(U) of
        {Tracers, Monitors} when Tracers + Monitors =< Memory -> fine;
        {Tracers, _} when Tracers > Memory div 2 -> give_up;
        {_, _} ->
            %% More than half of it is the monitors', so that enough will be left without some of them.
            Sized = lists:reverse(lists:sort([{estimate(Process), P} || P := Process = #process{kind = monitor} <- U])),
            {end_monitors, [P || {_, P} <- Sized], Memory - Memory div 8}
    end.
