-module(witness_bench_papers).
-moduledoc """
Figures of the RIARC and BenchCRV papers, to compare with ours. They were measured on other machines, with more schedulers, so
they are ratios to compare the shape of results, and never a claim about absolute times.
""".

-export([overhead/2, growth/0, variability/0]).

-doc "Sentences about the overheads of a shape in the papers, for high or moderate concurrency.".
-spec overhead(high | moderate | none, Shape :: binary()) -> [binary()].
overhead(high, ~"steady") ->
    [~"RIARC text, table 3 (500k x 100, 16 schedulers), inline / RIARC:",
     ~"  response time +4 / +95 %, memory +1 / +23 %, utilisation +0 / +123 %",
     ~"RIARC text, figure 17, duration: central +862 %, inline +1 %, RIARC +73 %"];
overhead(high, ~"burst") ->
    [~"RIARC text, table 3 (500k x 100, 16 schedulers), inline / RIARC:",
     ~"  response time +55 / +97 %, memory +16 / +56 %, utilisation +0 / +123 %",
     ~"RIARC text, figure 17, duration: central +843 %, inline +31 %, RIARC +85 %",
     ~"RIARC text, figure 8 (100k x 100, 4 schedulers, with monitors): latency of inline 1093 ms, of RIARC 1547 ms"];
overhead(high, ~"pulse") ->
    [~"RIARC text, figure 14 (100k x 100, 4 schedulers, with monitors): latency of inline 212 ms, of RIARC 538 ms"];
overhead(moderate, ~"steady") ->
    [~"RIARC text, table 3 (5k x 10k, 16 schedulers), inline / RIARC:",
     ~"  response time +246 / +194 %, memory +1 / +8 %, utilisation +3 / +52 %"];
overhead(moderate, ~"burst") ->
    [~"RIARC text, table 3 (5k x 10k, 16 schedulers), inline / RIARC:",
     ~"  response time +193 / +190 %, memory +1 / +10 %, utilisation +4 / +50 %"];
overhead(_, _) -> [].

-doc "How much steeper metrics grow with bursts than with steady loads (BenchCRV text, appendix A).".
-spec growth() -> #{atom() => number()}.
growth() -> #{response_mean_ns => 2.8, system_memory_mean => 1.9}.

-doc "Coefficients of variation with a fixed seed and three repetitions, in per cent (BenchCRV text, 4.1).".
-spec variability() -> #{atom() => number()}.
variability() -> #{system_utilisation => 0.17, system_memory_mean => 0.15, response_mean_ns => 0.52}.
