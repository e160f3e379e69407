-module(witness_savina_logistic_map).
-moduledoc """
LogisticMapSeries: `series` workers compute `terms` terms each of x -> rate * x * (1 - x); the i-th from 0
begins with 0.0025 i, at the rate `rate / 100 + 0.0025 i`. The benchmark's main process sends all workers all
requests for a next term, then asks for the last one. A worker calls the computer of its rate, a `gen_server`,
for each term, while the other requests wait in its mailbox. `rate` is in hundredths, as with SOMns: 346 is
Savina's 3.46.

Verified: each worker's last term is that of the same computation without processes, to the last bit.
""".
-behaviour(witness_savina).
-behaviour(gen_server).

-export([sets/0, run/1]).
-export([series/4]).
-export([init/1, handle_call/3, handle_cast/2]).

-import(witness_savina_processes, [start/3, start_server/2, gather/3, await/1, verify/3]).

-define(INCREMENT, 0.0025).

-spec sets() -> #{atom() => witness_savina:parameters()}.
sets() ->
    #{savina => #{terms => 25_000, series => 10, rate => 346},
      somns => #{terms => 25_000, series => 10, rate => 346},
      small => #{terms => 30, series => 4, rate => 346}}.

-spec run(witness_savina:parameters()) -> witness_savina:result().
run(#{terms := Terms, series := Series, rate := Percent}) ->
    Given = [{I, Percent / 100 + I * ?INCREMENT, I * ?INCREMENT} || I <- lists:seq(0, Series - 1)],
    Computers = [start_server(?MODULE, Rate) || {_, Rate, _} <- Given],
    Workers = [start(?MODULE, series, [self(), I, Computer, X])
               || {{I, _, X}, Computer} <- lists:zip(Given, Computers)],
    next(Terms, Workers),
    _ = [Worker ! get || Worker <- Workers],
    Results = gather(Series, fun({term, I, X}, All) -> All#{I => X} end, #{}),
    _ = [gen_server:cast(Computer, stop) || Computer <- Computers],
    await(Series),
    verify(terms, #{I => iterate(Terms, Rate, X) || {I, Rate, X} <- Given}, Results),
    #{sum => lists:sum([X || {_, X} <- lists:sort(maps:to_list(Results))])}.

next(0, _) -> ok;
next(Left, Workers) ->
    _ = [Worker ! next || Worker <- Workers],
    next(Left - 1, Workers).

iterate(0, _, X) -> X;
iterate(Left, Rate, X) -> iterate(Left - 1, Rate, term(Rate, X)).

term(Rate, X) -> Rate * X * (1 - X).

%% On the heap, each garbage collection would scan all requests that wait.
-doc false.
series(Main, I, Computer, X) ->
    process_flag(message_queue_data, off_heap),
    worker(Main, I, Computer, X).

worker(Main, I, Computer, X) ->
    receive
        next -> worker(Main, I, Computer, gen_server:call(Computer, {compute, X}, infinity));
        get -> Main ! {term, I, X}
    end.

-doc false.
init(Rate) -> {ok, Rate}.

-doc false.
handle_call({compute, X}, _, Rate) -> {reply, term(Rate, X), Rate}.

-doc false.
handle_cast(stop, Rate) -> {stop, normal, Rate}.
