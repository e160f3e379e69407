-module(witness_savina_times).
-moduledoc """
How long the benchmarks of `m:witness_savina` take: `main([Set, Samples, Milliseconds, Names])`, names separated
by commas, or `all`.

Each runs to warm up, twice as often each time, until that takes so many milliseconds; as many runs make a sample. Then
samples are taken in turn, so that a disturbance of the machine does not affect one benchmark alone.
The table has, for each run of a benchmark: the median of the samples' wall-clock, the fastest and the slowest,
the middle half's width over the median, and the median of the CPU time that the node took.
""".

-export([main/1, chosen/1, sample/3, quartile/2]).

-spec main([string()]) -> no_return().
main([Set0, Samples, Milliseconds, Names]) ->
    Set = set(Set0),
    Chosen = chosen(Names),
    N = list_to_integer(Samples),
    io:format("OTP ~s, ~w scheduler(s), parameters ~w, ~w sample(s) of at least ~s ms~n",
              [erlang:system_info(otp_release), erlang:system_info(schedulers_online), Set, N, Milliseconds]),
    Repeated = [{Name, repetitions(Name, Set, list_to_integer(Milliseconds))} || Name <- Chosen],
    Taken = [{Name, told(Round, Name, sample(Name, Set, Runs))} || Round <- lists:seq(1, N), {Name, Runs} <- Repeated],
    table(Repeated, maps:groups_from_list(fun({Name, _}) -> Name end, fun({_, Sample}) -> Sample end, Taken)),
    halt(0).

set("savina") -> savina;
set("somns") -> somns;
set("small") -> small.

-doc "The benchmarks that were named, with commas between them, or `all`. Ends the VM if one is not known.".
-spec chosen(string()) -> [witness_savina:name()].
chosen("all") -> witness_savina:names();
chosen(Names) ->
    Known = #{atom_to_list(Name) => Name || Name <- witness_savina:names()},
    [case Known of
         #{Text := Name} -> Name;
         #{} ->
             io:format(standard_error, "there is no benchmark ~ts; there are ~ts~n",
                       [Text, lists:join(", ", maps:keys(Known))]),
             halt(2)
     end || Text <- string:split(Names, ",", all)].

repetitions(Name, Set, Milliseconds) ->
    _ = told(0, Name, sample(Name, Set, 1)),
    repetitions(Name, Set, Milliseconds, 1).

repetitions(Name, Set, Milliseconds, Runs) ->
    case sample(Name, Set, Runs) of
        #{wall := Wall} when Wall * Runs < Milliseconds * 1000 -> repetitions(Name, Set, Milliseconds, 2 * Runs);
        #{} -> Runs
    end.

told(Round, Name, Sample = #{wall := Wall}) ->
    io:format(standard_error, "~w: ~w ~.2f ms~n", [Round, Name, Wall / 1000]),
    Sample.

-doc "So many runs: microseconds of wall-clock and of CPU time, each divided by the runs.".
-spec sample(witness_savina:name(), witness_savina:set(), Runs :: pos_integer()) -> #{wall := float(), cpu := float()}.
sample(Name, Set, Runs) ->
    Parameters = witness_savina:parameters(Name, Set),
    {Cpu0, _} = statistics(runtime),
    Begin = erlang:monotonic_time(microsecond),
    lists:foreach(fun(_) -> {ok, _} = witness_savina:run(Name, Parameters) end, lists:seq(1, Runs)),
    Wall = erlang:monotonic_time(microsecond) - Begin,
    {Cpu, _} = statistics(runtime),
    #{wall => Wall / Runs, cpu => (Cpu - Cpu0) * 1000 / Runs}.

table(Repeated, Samples) ->
    io:format("~-22s ~6s ~11s ~11s ~11s ~8s ~11s~n", ["", "runs", "median ms", "least", "most", "half", "CPU ms"]),
    lists:foreach(fun({Name, Runs}) ->
        Walls = [Wall || #{wall := Wall} <- maps:get(Name, Samples)],
        Median = quartile(2, Walls),
        Half = (quartile(3, Walls) - quartile(1, Walls)) / Median,
        io:format("~-22w ~6w ~11.2f ~11.2f ~11.2f ~6.1f % ~11.2f~n",
                  [Name, Runs, Median / 1000, lists:min(Walls) / 1000, lists:max(Walls) / 1000, Half * 100,
                   quartile(2, [Cpu || #{cpu := Cpu} <- maps:get(Name, Samples)]) / 1000])
    end, Repeated).

-doc "The first, second (median) or third quartile, between the two nearest numbers in proportion.".
-spec quartile(1..3, [number(), ...]) -> number().
quartile(Q, Numbers) -> witness_bench_statistics:quantile(Q / 4, Numbers).
