-module(witness_bench_shape).
-moduledoc """
Load shapes: how the creation of the members of a system is distributed along the timeline, which has `t` units of time
(BenchCRV text, section 3.1; RIARC text, C.2).

| Shape | Density of arrivals |
|---|---|
| `steady` | constant: a homogeneous Poisson process |
| `{pulse, Spread}` | normal, with mean t/2 and standard deviation `Spread` |
| `{burst, Pinch}` | log-normal, with mean m = t/2 and standard deviation `Pinch`: μ = ln(m²/√(p² + m²)), σ = √ln(1 + p²/m²) |
| `{ramp, From, To}` | linear, from one rate to the other; only their ratio counts |
| `{counts, Counts}` | as in these units of time, constant within each |

`Spread` and `Pinch` are those of a timeline of 100 units, as in the papers, with values of 25 and 100. On a timeline of
another length they are scaled with it: a `Spread` of 25 is t/4, whatever t is, so that the shape stays the same.

A density is cut to [0, t], and each of n arrivals is drawn from it independently of the others. So the sum is n, and for
`steady` the arrivals of each unit of time are a Poisson process that is known to have n arrivals.
`counts` with the sum n are taken as they are.
""".

-export([order/4, weights/2, csv/1]).

-export_type([shape/0]).

-doc "A load shape.".
-type shape() :: steady | {pulse, Spread :: number()} | {burst, Pinch :: number()}
               | {ramp, From :: number(), To :: number()} | {counts, [non_neg_integer()]}.

-doc "The Order queue: how many members are created in each of `T` units of time, `N` in total.".
-spec order(shape(), N :: non_neg_integer(), T :: pos_integer(), witness_bench_random:stream()) -> [non_neg_integer()].
order({counts, Counts} = Shape, N, T, Stream) ->
    case lists:sum(Counts) of
        N -> Counts;
        _ -> drawn(weights(Shape, T), N, T, Stream)
    end;
order(Shape, N, T, Stream) -> drawn(weights(Shape, T), N, T, Stream).

%% Inversion: the place of a uniform number among the cumulated weights.
drawn(Weights, N, T, Stream) ->
    {Sums, Total} = lists:mapfoldl(fun(W, Sum) -> {Sum + W, Sum + W} end, 0.0, Weights),
    Bounds = list_to_tuple(Sums),
    Counts = counters:new(T, []),
    ok = draw(N, Bounds, T, Total, Stream, Counts),
    [counters:get(Counts, I) || I <- lists:seq(1, T)].

draw(0, _, _, _, _, _) -> ok;
draw(N, Bounds, T, Total, Stream, Counts) ->
    {U, Next} = witness_bench_random:uniform(Stream),
    counters:add(Counts, unit(U * Total, Bounds, 1, T), 1),
    draw(N - 1, Bounds, T, Total, Next, Counts).

%% The first unit with a cumulated weight above X.
unit(_, _, I, I) -> I;
unit(X, Bounds, From, To) ->
    Middle = (From + To) div 2,
    case element(Middle, Bounds) > X of
        true -> unit(X, Bounds, From, Middle);
        false -> unit(X, Bounds, Middle + 1, To)
    end.

-doc "The average share of the arrivals in each of `T` units of time; the sum is 1.".
-spec weights(shape(), T :: pos_integer()) -> [float()].
weights({counts, Counts}, _) -> scaled(Counts);
weights({ramp, From, To}, T) -> scaled([From + (To - From) * (I - 0.5) / T || I <- lists:seq(1, T)]);
weights(Shape, T) ->
    Cumulated = [distribution(Shape, X, T) || X <- lists:seq(0, T)],
    scaled(lists:zipwith(fun erlang:'-'/2, tl(Cumulated), lists:droplast(Cumulated))).

scaled(Weights) ->
    Sum = lists:sum(Weights),
    [W / Sum || W <- Weights].

%% The probability of at most X.
distribution(steady, X, T) -> X / T;
distribution({pulse, Spread}, X, T) -> witness_bench_statistics:cdf({normal, T / 2, Spread * T / 100}, X);
distribution({burst, Pinch}, X, T) ->
    M = T / 2,
    P = Pinch * T / 100,
    Mean = math:log(M * M / math:sqrt(P * P + M * M)),
    witness_bench_statistics:cdf({log_normal, Mean, math:sqrt(math:log(1 + P * P / (M * M)))}, X).

-doc """
Reads arrivals: a line of text for each unit of time from the first to the last, with the number of arrivals in it, or
with both, `Unit,Arrivals`. Units count from 0, and missing ones have no arrivals. Skipped are empty lines, a
byte-order mark, and a first line without a field that begins as a number.

An error has the line (from 1) and what was expected.
""".
-spec csv(binary()) -> {ok, [non_neg_integer()]} | {error, Line :: non_neg_integer(), Text :: binary()}.
csv(<<16#FEFF/utf8, Text/binary>>) -> csv(Text);
csv(Text) ->
    case unicode:characters_to_binary(Text) of
        Text -> units(Text);
        _ -> {error, 0, ~"a text in UTF-8 is expected"}
    end.

units(Text) ->
    Lines = [{I, [trim(Field) || Field <- binary:split(Line, ~",", [global])]}
             || {I, Line} <- lists:enumerate(binary:split(Text, ~"\n", [global])), trim(Line) =/= ""],
    try arrivals(headless(Lines), 0, []) of
        [] -> {error, 0, ~"at least one arrival is expected"};
        Counts -> {ok, lists:reverse(Counts)}
    catch
        throw:{Line, Expected} -> {error, Line, Expected}
    end.

headless([{_, Fields} | Lines] = All) ->
    case lists:any(fun([C | _]) -> C >= $0 andalso C =< $9 orelse lists:member(C, "+-."); ([]) -> false end, Fields) of
        true -> All;
        false -> Lines
    end;
headless([]) -> [].

arrivals([], _, Counts) -> lists:dropwhile(fun(C) -> C =:= 0 end, Counts);
arrivals([{Line, Fields} | Lines], Unit, Counts) ->
    {At, Count} = case [number(F) || F <- Fields] of
        [C] when is_integer(C) -> {Unit, C};
        [U, C] when is_integer(U), is_integer(C) -> {U, C};
        _ -> throw({Line, ~"ARRIVALS or UNIT,ARRIVALS is expected, whole numbers of at most 11 digits"})
    end,
    At >= Unit orelse throw({Line, ~"a unit of time after that of the line before is expected"}),
    At < 1_000_000 orelse throw({Line, ~"a unit of time below 1000000 is expected"}),
    arrivals(Lines, At + 1, [Count | lists:duplicate(At - Unit, 0) ++ Counts]).

trim(Field) -> string:trim(binary_to_list(Field), both, " \t\r").

number(Field) ->
    case length(Field) < 12 andalso string:to_integer(Field) of
        {N, ""} when N >= 0 -> N;
        _ -> error
    end.
