-module(witness_bench_response).
-moduledoc """
The measurements that the processes of a model make themselves: response times, how late members were created, how many
are alive, how many messages were sent.

A benchmark must not change what it measures. So nothing here sends a message, which would be an event of the trace and
wait in the mailbox of its receiver. Processes write to shared counters, and measure one request in
ten (BenchCRV text, section 3.3, which finds that to be within 1.4 % of all of them).

```erlang
Measures = witness_bench_response:new(#{}),              % an argument of each process of the model
R0 = witness_bench_response:open(Measures),              % in a process that sends requests
{Stamp, R1} = witness_bench_response:start(R0),          % Stamp goes with the request, and comes back with the response
R2 = witness_bench_response:stop(Stamp, R1),             % the response was taken
ok = witness_bench_response:close(R2),                   % at the end of the process
#{response := #{mean_ns := _, p99 := _}} = witness_bench_response:summary(Measures).
```

A response time lasts from just before the request is sent until its response is taken from the mailbox. Mean and
deviation are those of `m:witness_bench_welford`, for each process, merged as it ends; percentiles come from a histogram
(`m:witness_bench_histogram`). A process that ends without `close/1` is missing only in the mean and deviation, and `unclosed`
is the number of its missing responses.

The measures belong to the process that made them, and to its node: processes of another node measure
nothing with them.
""".

-export([new/1, open/1, start/1, stop/2, close/1, lag/2, count_created/1, count_ended/1, messages/2]).
-export([first_opened/1, live/1, sent/1, members/1, histogram/1, summary/1]).

-export_type([measures/0, local/0, stamp/0, summary/0]).

%% Totals: members that were created, and that have ended; messages that were sent; the sum of lags and their number.
-define(BORN, 1).
-define(DIED, 2).
-define(MESSAGES, 3).
-define(LAG, 4).
-define(LAGS, 5).
%% How many processes have opened, and when the first one did.
-define(OPENED, 1).
-define(BEGUN, 2).
%% A process adds its messages to the total when it has so many.
-define(BATCH_MESSAGES, 128).

-record(measures, {node :: node(),
                   share :: 0..16#ffffffff | all,       % of 2^32 requests
                   responses :: witness_bench_histogram:histogram(),
                   lags :: witness_bench_histogram:histogram(),
                   totals :: counters:counters_ref(),
                   marks :: atomics:atomics_ref(),
                   merged :: ets:table()}).             % {Scheduler, Welford}

-record(local, {measures :: #measures{}, share :: 0..16#ffffffff | all, random :: integer(),
                untold = 0 :: non_neg_integer(), found = {0, 0.0, 0.0} :: witness_bench_welford:welford()}).

-doc "Small, and never changed: an argument of each process.".
-opaque measures() :: #measures{}.

-doc "The state of one process.".
-opaque local() :: #local{}.

-doc "When a request was sent, if it is in the sample.".
-type stamp() :: integer() | undefined.

-doc "Times in nanoseconds; `count` are the responses in the sample.".
-type summary() :: #{response := #{mean_ns := float(), deviation_ns := float(), p50 := non_neg_integer(),
                                   p95 := non_neg_integer(), p99 := non_neg_integer(), p999 := non_neg_integer(),
                                   max := non_neg_integer(), count := non_neg_integer(), unclosed := non_neg_integer()},
                     lag := #{mean_ns := float(), p99 := non_neg_integer(), max := non_neg_integer()},
                     members := non_neg_integer(), messages := non_neg_integer()}.

-doc "`sample`: the part of the requests that is measured, above 0 up to 1.0 (0.1).".
-spec new(#{sample => number()}) -> measures().
new(Options) ->
    Share = case maps:get(sample, Options, 0.1) of
        Part when is_number(Part), Part > 0, Part < 1 -> round(Part * 16#ffffffff);
        Part when Part == 1 -> all
    end,
    Merged = ets:new(?MODULE, [public, {write_concurrency, true}]),
    %% There are dirty schedulers, too. No process of a model runs there, but no row may be missing.
    true = ets:insert(Merged, [{Id, witness_bench_welford:new()} || Id <- lists:seq(0, rows() - 1)]),
    #measures{node = node(), share = Share, responses = witness_bench_histogram:new(),
              lags = witness_bench_histogram:new(), totals = counters:new(5, [write_concurrency]),
              marks = atomics:new(?BEGUN, []), merged = Merged}.

rows() -> erlang:system_info(schedulers).

-doc "The state of this process.".
-spec open(measures()) -> local().
open(M = #measures{node = Node, share = Share, marks = Marks}) when Node =:= node() ->
    Number = atomics:add_get(Marks, ?OPENED, 1),
    Number =:= 1 andalso atomics:put(Marks, ?BEGUN, erlang:monotonic_time()),
    %% Each process has a stream of its own, separate from the streams that decide what the model does.
    #local{measures = M, share = Share, random = rand:mwc59_seed(Number)};
open(M) ->
    #local{measures = M, share = 0, random = rand:mwc59_seed(1)}.

-doc "A request is about to be sent. The stamp goes with it.".
-spec start(local()) -> {stamp(), local()}.
start(L = #local{share = all}) -> {erlang:monotonic_time(), count_message(L)};
start(L = #local{share = Share, random = Random}) ->
    Next = rand:mwc59(Random),
    case rand:mwc59_value32(Next) < Share of
        true -> {erlang:monotonic_time(), count_message(L#local{random = Next})};
        false -> {undefined, count_message(L#local{random = Next})}
    end.

-doc "A response was taken, with the stamp of its request.".
-spec stop(stamp(), local()) -> local().
stop(undefined, L) -> count_message(L);
stop(Stamp, L = #local{measures = #measures{responses = Responses}, found = Found}) ->
    Time = erlang:convert_time_unit(erlang:monotonic_time() - Stamp, native, nanosecond),
    ok = witness_bench_histogram:add(Time, Responses),
    count_message(L#local{found = witness_bench_welford:add(Time, Found)}).

%% A request, or a response.
count_message(L = #local{untold = Untold}) when Untold < ?BATCH_MESSAGES -> L#local{untold = Untold + 1};
count_message(L = #local{untold = Untold, measures = M}) ->
    ok = messages(M, Untold + 1),
    L#local{untold = 0}.

-doc "The process ends: its measurements are merged.".
-spec close(local()) -> ok.
close(#local{measures = M = #measures{node = Node, merged = Merged}, untold = Untold, found = Found}) when Node =:= node() ->
    ok = messages(M, Untold),
    Found =:= witness_bench_welford:new() orelse merge(erlang:system_info(scheduler_id) rem rows(), Found, Merged),
    ok;
close(_) -> ok.

%% Retries, without waiting, if another process has changed the row meanwhile.
merge(Id, Found, Merged) ->
    [{Id, Before}] = ets:lookup(Merged, Id),
    After = witness_bench_welford:merge(Before, Found),
    case ets:select_replace(Merged, [{{Id, Before}, [], [{{Id, {const, After}}}]}]) of
        1 -> true;
        0 -> merge(Id, Found, Merged)
    end.

-doc "A member was created so many nanoseconds later than planned.".
-spec lag(measures(), integer()) -> ok.
lag(#measures{node = Node, lags = Lags, totals = Totals}, Nanoseconds) when Node =:= node() ->
    Lag = max(0, Nanoseconds),
    ok = witness_bench_histogram:add(Lag, Lags),
    ok = counters:add(Totals, ?LAG, Lag),
    counters:add(Totals, ?LAGS, 1);
lag(_, _) -> ok.

-doc "A member was created.".
-spec count_created(measures()) -> ok.
count_created(M) -> count(?BORN, 1, M).

-doc "A member has ended.".
-spec count_ended(measures()) -> ok.
count_ended(M) -> count(?DIED, 1, M).

-doc """
Adds messages that are neither requests nor responses: `start/1` and `stop/2` count those.
A process calls it periodically, or as it ends.
""".
-spec messages(measures(), non_neg_integer()) -> ok.
messages(M, N) -> count(?MESSAGES, N, M).

count(Index, N, #measures{node = Node, totals = Totals}) when Node =:= node() -> counters:add(Totals, Index, N);
count(_, _, _) -> ok.

-doc "When the first process has opened, in native units: the system had just started.".
-spec first_opened(measures()) -> integer() | undefined.
first_opened(#measures{marks = Marks}) ->
    case atomics:get(Marks, ?OPENED) of
        0 -> undefined;
        _ -> atomics:get(Marks, ?BEGUN)
    end.

-doc "How many members are alive.".
-spec live(measures()) -> non_neg_integer().
live(#measures{totals = Totals}) -> max(0, counters:get(Totals, ?BORN) - counters:get(Totals, ?DIED)).

-doc "How many members were created so far.".
-spec members(measures()) -> non_neg_integer().
members(#measures{totals = Totals}) -> counters:get(Totals, ?BORN).

-doc "How many messages were sent so far; up to 128 may be missing for each process that sends requests.".
-spec sent(measures()) -> non_neg_integer().
sent(#measures{totals = Totals}) -> counters:get(Totals, ?MESSAGES).

-doc "The number of response times for each class, with its first and last time in nanoseconds. Empty classes are left out.".
-spec histogram(measures()) -> [{First :: non_neg_integer(), Last :: non_neg_integer(), Count :: pos_integer()}].
histogram(#measures{responses = Responses}) -> witness_bench_histogram:counts(Responses).

-doc "All measurements. Those of processes that still run may be incomplete.".
-spec summary(measures()) -> summary().
summary(M = #measures{responses = Responses, lags = Lags, totals = Totals, merged = Merged}) ->
    All = witness_bench_welford:merge([W || {_, W} <- ets:tab2list(Merged)]),
    Count = witness_bench_histogram:count(Responses),
    [P50, P95, P99, P999] = witness_bench_histogram:percentiles([0.5, 0.95, 0.99, 0.999], Responses),
    [LagP99] = witness_bench_histogram:percentiles([0.99], Lags),
    #{response => #{mean_ns => witness_bench_welford:mean(All), deviation_ns => witness_bench_welford:deviation(All),
                    p50 => P50, p95 => P95, p99 => P99, p999 => P999, max => witness_bench_histogram:most(Responses),
                    count => Count, unclosed => Count - witness_bench_welford:count(All)},
      lag => #{mean_ns => counters:get(Totals, ?LAG) / max(1, counters:get(Totals, ?LAGS)), p99 => LagP99,
               max => witness_bench_histogram:most(Lags)},
      members => members(M), messages => sent(M)}.
