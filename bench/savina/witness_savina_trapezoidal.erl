-module(witness_savina_trapezoidal).
-moduledoc """
TrapezoidalApproximation: the benchmark's main process divides the range from `left` to `right` into `pieces`
trapezoids. It gives each of `workers` the same number of them, and the first ones one more if that does not
divide; it adds up the areas in the order of the workers. Both sides of each trapezoid are computed, as in
Savina.

Verified: one area of each worker; their sum differs from the integral by Gauss's rule with three points on
20,000 pieces by no more than the error of the trapezoidal rule, (right - left)^3 / (12 pieces^2) times a bound
on the second derivative between 1 and 5, where the default range lies.
""".
-behaviour(witness_savina).

-export([sets/0, run/1]).
-export([worker/2]).

-import(witness_savina_processes, [start/3, gather/3, verify/3]).

%% Above |f''| from 1 to 5; its largest values are near 5.
-define(CURVATURE, 7_000).
-define(ROUNDING, 1.0e-8).

-spec sets() -> #{atom() => witness_savina:parameters()}.
sets() ->
    #{savina => #{workers => 100, pieces => 10_000_000, left => 1, right => 5},
      somns => #{workers => 100, pieces => 1_000_000, left => 1, right => 5},
      small => #{workers => 10, pieces => 5_000, left => 1, right => 5}}.

-spec run(witness_savina:parameters()) -> witness_savina:result().
run(#{workers := N, pieces := Pieces, left := Left, right := Right}) ->
    Width = (Right - Left) / Pieces,
    Workers = [start(?MODULE, worker, [self(), Place]) || Place <- lists:seq(1, N)],
    _ = [Worker ! {work, Left + From * Width, To - From, Width}
         || {Place, Worker} <- lists:enumerate(0, Workers),
            {From, To} <- [{share(Place, N, Pieces), share(Place + 1, N, Pieces)}]],
    Areas = gather(N, fun({area, Place, Area}, All) -> [{Place, Area} | All] end, []),
    {Places, InOrder} = lists:unzip(lists:sort(Areas)),
    verify(workers, lists:seq(1, N), Places),
    Sum = lists:sum(InOrder),
    Error = ?ROUNDING + math:pow(Right - Left, 3) / (12.0 * Pieces * Pieces) * ?CURVATURE,
    Integral = gauss(20_000, Left, Right),
    verify(area, {Integral, Error}, {case abs(Sum - Integral) =< Error of true -> Integral; false -> Sum end, Error}),
    #{area => Sum}.

%% The number of pieces before the worker's.
share(Place, N, Pieces) -> Place * (Pieces div N) + min(Place, Pieces rem N).

gauss(Pieces, Left, Right) ->
    Half = (Right - Left) / Pieces / 2,
    Side = Half * math:sqrt(0.6),
    lists:sum([Half * (5 * f(X - Side) + 8 * f(X) + 5 * f(X + Side)) / 9
               || I <- lists:seq(0, Pieces - 1), X <- [Left + (2 * I + 1) * Half]]).

-doc false.
worker(Main, Place) ->
    receive {work, Left, Pieces, Width} -> Main ! {area, Place, area(0, Pieces, Left, Width, 0.0)} end.

area(Pieces, Pieces, _, _, Sum) -> Sum;
area(I, Pieces, Left, Width, Sum) ->
    X = Left + I * Width,
    area(I + 1, Pieces, Left, Width, Sum + 0.5 * (f(X) + f(X + Width)) * Width).

f(X) ->
    math:sin(math:pow(X, 3) - 1) / (X + 1) * math:sqrt(1 + math:exp(math:sqrt(2 * X))).
