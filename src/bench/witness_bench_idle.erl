-module(witness_bench_idle).
-moduledoc """
The mean idle time of processes: a monitor that measures, like the tool of the case study of BenchCRV (section 4.2).
Each monitor measures the idle time of its process. The results are merged with weights, since each
monitor has seen another number of messages.

Idle time is the time before a message in which the process had nothing to do.
Each mode shows other events of a process, so it is defined for each:

- `taken` (inline monitoring): a `recv` is a message that the process takes. The process was idle since its previous event, its
  last send, say. A message that has waited in the mailbox is taken at once: the time is that between two of the
  process's own steps, almost 0.
- `delivered` (outline and central): a `recv` is a message that arrives in the mailbox; when it is
  taken is not seen. A process is busy while it has sent fewer messages than it was delivered. A message that arrives
  then has no idle time. Otherwise the process was idle since its last event. This assumes that each message is
  answered by one message, as workers do, and on the whole their master (RIARC text, C.3). A message without
  an answer makes the next one count as one without idle time.

Only a message ends idle time. If a `receive` times out, the process goes on without a message, and the end of the wait is
not seen. That wait is part of the idle time only if the process's next event is a message. It does not count if the process
sends or ends next.

The events must have their times. When its process has ended, the verdict is `yes` with the result. The monitor
computes in whole numbers and its steps are bounded (`m:witness_monitor_safety`).
""".
-behaviour(witness_monitor).

-export([init/3, handle_event/2]).
-export([new/0, add/2, summary/1]).

-export_type([definition/0, found/0, idle/0]).

-doc "The meaning of a `recv`.".
-type definition() :: taken | delivered.

-doc "The result of a monitor: messages, the sum of the idle times before them in nanoseconds, and the sum of their squares.".
-type found() :: {idle, Messages :: non_neg_integer(), Sum :: non_neg_integer(), Squares :: non_neg_integer()}.

-doc "The results of many monitors: all messages, and the means of the monitors, all with the same weight.".
-opaque idle() :: {Messages :: witness_bench_welford:welford(), Monitors :: witness_bench_welford:welford()}.

-record(s, {definition :: definition(), last = undefined :: undefined | integer(), open = 0 :: non_neg_integer(),
            messages = 0 :: non_neg_integer(), sum = 0 :: non_neg_integer(), squares = 0 :: non_neg_integer()}).

-doc false.
-spec init(witness_event:signature(), witness_event:proc(), definition()) -> {ok, #s{}}.
init(_, _, Definition) when Definition =:= taken; Definition =:= delivered -> {ok, #s{definition = Definition}}.

-doc false.
-spec handle_event(witness_event:event(), #s{}) -> {ok, #s{}} | {verdict, yes, found()}.
handle_event({recv, _, _, _, Time}, S = #s{definition = delivered, open = Open}) when Open > 0 ->
    {ok, S#s{last = Time, open = Open + 1, messages = S#s.messages + 1}};
handle_event({recv, _, _, _, Time}, S = #s{last = Last, sum = Sum, squares = Squares, messages = Messages}) ->
    %% Clocks of two processors may differ by some nanoseconds.
    Idle = max(0, Time - Last),
    {ok, S#s{last = Time, open = 1, messages = Messages + 1, sum = Sum + Idle, squares = Squares + Idle * Idle}};
handle_event({send, _, _, _, Time}, S = #s{open = Open}) -> {ok, S#s{last = Time, open = max(0, Open - 1)}};
handle_event({exit, _, _, _}, #s{messages = Messages, sum = Sum, squares = Squares}) ->
    {verdict, yes, {idle, Messages, Sum, Squares}};
handle_event({_, _, _, _, Time}, S) -> {ok, S#s{last = Time}}.

-doc "Results of no monitor.".
-spec new() -> idle().
new() -> {witness_bench_welford:new(), witness_bench_welford:new()}.

-doc "Adds a monitor. A monitor that has seen no message has no idle time.".
-spec add(found(), idle()) -> idle().
add({idle, 0, 0, 0}, Idle) -> Idle;
add({idle, N, Sum, Squares}, {Messages, Monitors}) ->
    %% The squared distances from the mean, without a difference of floats.
    Found = {N, Sum / N, (N * Squares - Sum * Sum) / N},
    {witness_bench_welford:merge(Found, Messages), witness_bench_welford:add(Sum / N, Monitors)}.

-doc """
Mean and deviation of the idle time before a message in nanoseconds, with the number of a monitor's messages as its
weight; the number of messages and monitors; and the deviation of the means of the monitors.
""".
-spec summary(idle()) -> #{mean_ns := float(), deviation_ns := float(), count := non_neg_integer(),
                           monitors := non_neg_integer(), monitors_deviation_ns := float()}.
summary({Messages, Monitors}) ->
    #{mean_ns => witness_bench_welford:mean(Messages), deviation_ns => witness_bench_welford:deviation(Messages),
      count => witness_bench_welford:count(Messages), monitors => witness_bench_welford:count(Monitors),
      monitors_deviation_ns => witness_bench_welford:deviation(Monitors)}.
