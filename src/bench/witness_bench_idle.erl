-module(witness_bench_idle).
-moduledoc """
The mean idle time of processes: a monitor that measures, as the tool of the case study of BenchCRV does (section 4.2).
Each monitor knows the idle time of its process; what they have found is put together with their weights, since each
has seen another number of messages.

Idle time is the time that a process does not spend with messages: what passes before a message, in which the process
had nothing left to do. Of the events of a process each mode shows something else, so it is defined for each:

- `taken` (inline monitoring): a `recv` is a message that the process takes. It was idle since its event before, its last
  send, say, until then. A message that has waited in the mailbox is taken at once: the time is that between two of the
  process's own steps, next to nothing.
- `delivered` (outline and central): a `recv` is a message that comes into the mailbox, and nobody sees when it is
  taken. A process has something to do as long as it has sent less messages than it was delivered; a message that comes
  then finds it busy, and is one without idle time. Otherwise it was idle since its last event. So each message is taken
  to be answered by one message, as it is by workers and on the whole by their master (RIARC text, C.3); a message that
  is not answered makes the next one count as none.

Idle is only what a message ends. Where a process waits for a message and goes on without one, because a time limit of its
`receive` has struck, nobody sees the end of the wait: it is part of the idle time only if a message is its process's next
event, and does not count if the process sends, say, or ends.

The events must have their times. When its process has ended, the verdict is `yes` with what it has found. The monitor
computes in whole numbers and its steps are bounded (`m:witness_monitor_bounded`).
""".
-behaviour(witness_monitor).

-export([init/3, handle_event/2]).
-export([new/0, add/2, summary/1]).

-export_type([definition/0, found/0, idle/0]).

-doc "How an event of receiving is to be read.".
-type definition() :: taken | delivered.

-doc "What a monitor has found: messages, the sum of the idle times before them in nanoseconds, and that of their squares.".
-type found() :: {idle, Messages :: non_neg_integer(), Sum :: non_neg_integer(), Squares :: non_neg_integer()}.

-doc "Those of many monitors: all messages, and the means of the monitors, which all weigh the same.".
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

-doc "Of no monitor.".
-spec new() -> idle().
new() -> {witness_bench_welford:new(), witness_bench_welford:new()}.

-doc "One more monitor. One that has seen no message has no idle time.".
-spec add(found(), idle()) -> idle().
add({idle, 0, 0, 0}, Idle) -> Idle;
add({idle, N, Sum, Squares}, {Messages, Monitors}) ->
    %% The squares of the distances from the mean, without a difference of floats.
    Found = {N, Sum / N, (N * Squares - Sum * Sum) / N},
    {witness_bench_welford:merge(Found, Messages), witness_bench_welford:add(Sum / N, Monitors)}.

-doc """
Mean and deviation of the idle time before a message in nanoseconds, each monitor with the number of its messages as its
weight; how many these are, and of how many monitors; and the deviation of the means of the monitors.
""".
-spec summary(idle()) -> #{mean_ns := float(), deviation_ns := float(), count := non_neg_integer(),
                           monitors := non_neg_integer(), monitors_deviation_ns := float()}.
summary({Messages, Monitors}) ->
    #{mean_ns => witness_bench_welford:mean(Messages), deviation_ns => witness_bench_welford:deviation(Messages),
      count => witness_bench_welford:count(Messages), monitors => witness_bench_welford:count(Monitors),
      monitors_deviation_ns => witness_bench_welford:deviation(Monitors)}.
