-module(witness_bench_special).
-moduledoc """
The special functions that the distributions of `m:witness_bench_statistics` need.

Relative errors are below 1e-10 for the arguments of statistics (positive shapes up to some millions); arguments outside
the domain raise `function_clause`.
""".

-export([log_gamma/1, digamma/1, trigamma/1, gamma_p/2, gamma_q/2, beta_i/3]).

-define(TINY, 1.0e-300).
-define(EPSILON, 1.0e-15).
-define(TERMS, 100_000).

-doc "The logarithm of the gamma function, for `X > 0` (Lanczos, g = 7).".
-spec log_gamma(number()) -> float().
log_gamma(X) when X > 0, X < 0.5 -> math:log(math:pi() / math:sin(math:pi() * X)) - log_gamma(1 - X);
log_gamma(X) when X >= 0.5 ->
    Y = X - 1,
    {Sum, _} = lists:foldl(fun(C, {S, I}) -> {S + C / (Y + I), I + 1} end, {0.99999999999980993, 1},
                           [676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059,
                            12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7]),
    T = Y + 7.5,
    0.5 * math:log(2 * math:pi()) + (Y + 0.5) * math:log(T) - T + math:log(Sum).

-doc "The derivative of `log_gamma/1`.".
-spec digamma(number()) -> float().
digamma(X) when X > 0, X < 10 -> digamma(X + 1) - 1 / X;
digamma(X) when X >= 10 ->
    S = 1 / (X * X),
    math:log(X) - 0.5 / X
        - S * (1 / 12 - S * (1 / 120 - S * (1 / 252 - S * (1 / 240 - S * (1 / 132 - S * 691 / 32760))))).

-doc "The derivative of `digamma/1`.".
-spec trigamma(number()) -> float().
trigamma(X) when X > 0, X < 10 -> trigamma(X + 1) + 1 / (X * X);
trigamma(X) when X >= 10 ->
    S = 1 / (X * X),
    1 / X + S / 2 + S / X * (1 / 6 - S * (1 / 30 - S * (1 / 42 - S * (1 / 30 - S * (5 / 66 - S * 691 / 2730))))).

-doc "The regularised lower incomplete gamma function P(a, x).".
-spec gamma_p(number(), number()) -> float().
gamma_p(A, X) when A > 0, X =< 0 -> 0.0;
gamma_p(A, X) when A > 0, X < A + 1 -> gamma_series(A, X);
gamma_p(A, X) when A > 0 -> 1.0 - gamma_fraction(A, X).

-doc "Its complement, Q(a, x) = 1 - P(a, x), exact for small values too.".
-spec gamma_q(number(), number()) -> float().
gamma_q(A, X) when A > 0, X =< 0 -> 1.0;
gamma_q(A, X) when A > 0, X < A + 1 -> 1.0 - gamma_series(A, X);
gamma_q(A, X) when A > 0 -> gamma_fraction(A, X).

gamma_series(A, X) -> series(A, X, 1 / A, 1 / A, ?TERMS) * scale(A, X).

series(A, X, Term, Sum, Left) when Left > 0, abs(Term) > abs(Sum) * ?EPSILON ->
    Next = Term * X / (A + 1),
    series(A + 1, X, Next, Sum + Next, Left - 1);
series(_, _, _, Sum, _) -> Sum.

%% Lentz's continued fraction.
gamma_fraction(A, X) ->
    B = X + 1 - A,
    fraction(A, 1, B, 1 / ?TINY, 1 / nonzero(B), 1 / nonzero(B)) * scale(A, X).

fraction(A, I, B, C, D, H) when I < ?TERMS ->
    An = -I * (I - A),
    B1 = B + 2,
    D1 = 1 / nonzero(An * D + B1),
    C1 = nonzero(B1 + An / C),
    Delta = D1 * C1,
    case abs(Delta - 1) < ?EPSILON of
        true -> H * Delta;
        false -> fraction(A, I + 1, B1, C1, D1, H * Delta)
    end;
fraction(_, _, _, _, _, H) -> H.

scale(A, X) -> exp(-X + A * math:log(X) - log_gamma(A)).

exp(X) when X < -700 -> 0.0;
exp(X) -> math:exp(X).

nonzero(X) when abs(X) < ?TINY -> ?TINY;
nonzero(X) -> X.

-doc "The regularised incomplete beta function I_x(a, b).".
-spec beta_i(number(), number(), number()) -> float().
beta_i(A, B, X) when A > 0, B > 0, X =< 0 -> 0.0;
beta_i(A, B, X) when A > 0, B > 0, X >= 1 -> 1.0;
beta_i(A, B, X) when A > 0, B > 0 ->
    Front = exp(log_gamma(A + B) - log_gamma(A) - log_gamma(B) + A * math:log(X) + B * math:log(1 - X)),
    case X < (A + 1) / (A + B + 2) of
        true -> Front * beta_fraction(A, B, X) / A;
        false -> 1.0 - Front * beta_fraction(B, A, 1 - X) / B
    end.

beta_fraction(A, B, X) ->
    D = 1 / nonzero(1 - (A + B) * X / (A + 1)),
    beta_fraction(A, B, X, 1, 1.0, D, D).

beta_fraction(A, B, X, M, C, D, H) when M < ?TERMS ->
    Even = M * (B - M) * X / ((A + 2 * M - 1) * (A + 2 * M)),
    D1 = 1 / nonzero(1 + Even * D),
    C1 = nonzero(1 + Even / C),
    Odd = -(A + M) * (A + B + M) * X / ((A + 2 * M) * (A + 2 * M + 1)),
    D2 = 1 / nonzero(1 + Odd * D1),
    C2 = nonzero(1 + Odd / C1),
    Delta = D2 * C2,
    case abs(Delta - 1) < ?EPSILON of
        true -> H * D1 * C1 * Delta;
        false -> beta_fraction(A, B, X, M + 1, C2, D2, H * D1 * C1 * Delta)
    end;
beta_fraction(_, _, _, _, _, _, H) -> H.
