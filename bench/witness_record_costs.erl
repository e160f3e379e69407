-module(witness_record_costs).
-moduledoc """
What recording costs: `main([Programs, Schedulers, Set, Samples, Milliseconds, Names, Options, Against])`, where `Programs` is
the folder of the benchmarks of `m:witness_savina`, and the others are as for `bench/record`.

They are compared with the program by itself (`plain`), or traced by native code that drops what it gets (`dropped`,
`m:witness_overhead_drop`): births, ends and messages of all processes that are born.

A sample is a VM of its own. It runs a benchmark to warm up, and then as often as takes so many milliseconds without
recording; its time is that of the second part, by the clock. Both kinds of VM are started alike, except for what is
recorded.

The table has for each benchmark:

- the medians without and with recording, and the ratio of these, with the range of the middle half of the ratios of
  pairs;
- the ratio of the medians of the running time of the schedulers' threads. Other work of the machine disturbs it less,
  and it includes the writer's part, but not what other threads do;
- the running time of all other threads while it was recorded (files, large collections), as a part of the recorded time;
- bytes of ordering, before compression, for each message that the recording has a sender for;
- all bytes that were recorded in a second, before compression.

Under it are the geometric mean of the ratios and the worst one, by the clock and by the schedulers' time. The mean has the interval
that holds it with a confidence of 95 per cent (bootstrap: the same pairs of all benchmarks are drawn). The schedulers' time is 0
if the system does not report what threads have run.
""".

-export([main/1, sample/5, messages/1]).

-spec main([string()]) -> no_return().
main([Programs, Schedulers, Set0, Samples, Milliseconds, Names, Options0, Against]) ->
    Set = list_to_atom(Set0),
    Work = filename:join(Programs, "work"),
    ok = filelib:ensure_path(Work),
    Given = #{programs => Programs, schedulers => Schedulers, set => Set, work => Work, options => term(Options0),
              against => case Against of "plain" -> plain; "dropped" -> dropped end},
    N = list_to_integer(Samples),
    io:format("OTP ~s, ~s scheduler(s), parameters ~w, ~w sample(s) of at least ~s ms, options ~w, against ~s~n",
              [erlang:system_info(otp_release), Schedulers, Set, N, Milliseconds, maps:get(options, Given), Against]),
    io:format("~-22s ~6s ~10s ~10s ~7s ~15s ~7s ~7s ~8s ~8s~n",
              ["", "runs", Against ++ " ms", "recorded", "ratio", "middle half", "by CPU", "others", "B/msg", "MB/s"]),
    Measured = [{Name, benchmark(Name, N, list_to_integer(Milliseconds), Given)} || Name <- witness_savina_times:chosen(Names)],
    summed("by the clock", wall, Measured),
    summed("by the schedulers' time", schedulers, Measured),
    ok = file:del_dir_r(Work),
    halt(0).

summed(By, Key, Measured) ->
    case [{Ratio, Name, Pairs} || {Name, Pairs} <- Measured, Ratio <- [ratio(Key, Pairs)], Ratio > 0] of
        [] -> ok;
        Ratios ->
            {Most, Worst, _} = lists:last(lists:keysort(1, Ratios)),
            Benchmarks = [Pairs || {_, _, Pairs} <- Ratios],
            Mean = fun(Drawn) ->
                Logs = [math:log(ratio(Key, [lists:nth(I, Pairs) || I <- Drawn])) || Pairs <- Benchmarks],
                math:exp(lists:sum(Logs) / length(Logs))
            end,
            Samples = lists:seq(1, length(hd(Benchmarks))),
            {Low, High} = witness_bench_statistics:bootstrap(Samples, Mean, 0.95, 1),
            io:format("~s: geometric mean ~.3f (95 %: ~.3f to ~.3f), worst ~.3f (~w)~n",
                      [By, Mean(Samples), Low, High, Most, Worst])
    end.

%% For the medians.
ratio(Key, Pairs) ->
    witness_savina_times:quartile(2, [map_get(Key, Recorded) || {_, Recorded} <- Pairs])
        / max(1, witness_savina_times:quartile(2, [map_get(Key, Against) || {Against, _} <- Pairs])).

term(Text) ->
    {ok, Tokens, _} = erl_scan:string(Text ++ "."),
    {ok, Term} = erl_parse:parse_term(Tokens),
    Term.

benchmark(Name, Samples, Milliseconds, Given) ->
    Runs = repetitions(Name, Milliseconds, Given, 1),
    %% The first recording weaves what is not in the cache.
    _ = taken(recorded, Name, 1, Given),
    Pairs = [pair(I, Name, Runs, Given) || I <- lists:seq(1, Samples)],
    Plain = witness_savina_times:quartile(2, [Wall || {#{wall := Wall}, _} <- Pairs]),
    Recorded = witness_savina_times:quartile(2, [Wall || {_, #{wall := Wall}} <- Pairs]),
    Each = [B / A || {#{wall := A}, #{wall := B}} <- Pairs],
    {_, #{order := Order, bytes := Bytes, messages := Messages, seconds := Seconds}} = lists:last(Pairs),
    Others = witness_savina_times:quartile(2, [Other || {_, #{others := Other}} <- Pairs]) / Recorded,
    io:format("~-22w ~6w ~10.2f ~10.2f ~7.3f ~7.3f-~7.3f ~7.3f ~7.3f ~8.2f ~8.2f~n",
              [Name, Runs, Plain / 1000, Recorded / 1000, ratio(wall, Pairs), witness_savina_times:quartile(1, Each),
               witness_savina_times:quartile(3, Each), ratio(schedulers, Pairs), Others, Order / max(1, Messages),
               Bytes / Seconds / 1.0e6]),
    Pairs.

repetitions(Name, Milliseconds, Given, Runs) ->
    case taken(maps:get(against, Given), Name, Runs, Given) of
        #{wall := Wall} when Wall * Runs < Milliseconds * 1000 ->
            repetitions(Name, Milliseconds, Given, max(2 * Runs, min(10 * Runs, ceil(Milliseconds * 1000 / Wall))));
        #{} -> Runs
    end.

pair(I, Name, Runs, Given) when I rem 2 =:= 1 ->
    Plain = taken(maps:get(against, Given), Name, Runs, Given),
    {Plain, taken(recorded, Name, Runs, Given)};
pair(_, Name, Runs, Given) ->
    Recorded = taken(recorded, Name, Runs, Given),
    {taken(maps:get(against, Given), Name, Runs, Given), Recorded}.

%% Microseconds of a run, and for a recording the cost of writing.
taken(How, Name, Runs, #{set := Set, work := Work} = Given) ->
    File = filename:join(Work, "sample"),
    _ = file:delete(File),
    More = run(How, {?MODULE, sample, [Name, Set, Runs, How, File]}, Given),
    {ok, Bytes} = file:read_file(File),
    Sample = maps:merge(binary_to_term(Bytes), More),
    io:format(standard_error, "~w ~w ~.2f ms~n", [Name, How, maps:get(wall, Sample) / 1000]),
    Sample.

run(recorded, MFA, #{programs := Programs, schedulers := Schedulers, work := Work, options := Options}) ->
    Dir = filename:join(Work, "recording"),
    %% A failed recording may have left it.
    _ = file:del_dir_r(Dir),
    {ok, #{outcome := recorded, ended := {returned, normal}} = Summary} =
        witness_record:record(Options#{run => MFA, dir => Dir, pa => [Programs],
                                       vm_args => ["+S", Schedulers ++ ":" ++ Schedulers]}),
    #{files := #{order := #{raw := Order}, data := #{raw := Data}, processes := #{raw := Processes}}} = Summary,
    Messages = messages(Dir),
    ok = file:del_dir_r(Dir),
    #{order => Order, bytes => Order + Data + Processes, messages => Messages};
run(_, {M, F, Args}, #{programs := Programs, schedulers := Schedulers}) ->
    Call = lists:flatten(io_lib:format("~w:~w(~s)", [M, F, lists:join(",", [io_lib:format("~p", [A]) || A <- Args])])),
    Port = open_port({spawn_executable, filename:join([code:root_dir(), "bin", "erl"])},
                     [nouse_stdio, exit_status, {args, ["-noshell", "+Bi", "+fnu", "-boot", "no_dot_erlang", "-mode",
                                                       "interactive", "+S", Schedulers ++ ":" ++ Schedulers,
                                                       "-pa", Programs, "-eval", Call ++ ", halt(0)."]}]),
    receive {Port, {exit_status, Status}} -> 0 = Status, #{} end.

-doc "Messages that a recording has a sender for.".
-spec messages(file:filename()) -> non_neg_integer().
messages(Dir) ->
    {ok, R} = witness_log_recording:open(Dir),
    lists:sum([lists:sum(maps:values(Demand)) || Id <- witness_log_recording:ids(R),
                                                 {ok, Demand} <- [witness_log_recording:demand(Id, R)]]).

-doc "What the VM of a sample runs.".
-spec sample(witness_savina:name(), witness_savina:set(), Runs :: pos_integer(), plain | dropped | recorded, file:filename()) ->
    ok.
sample(Name, Set, Runs, dropped, File) ->
    {module, _} = code:ensure_loaded(witness_overhead_drop),
    Session = trace:session_create(?MODULE, {witness_overhead_drop, none}, []),
    _ = trace:process(Session, new, true, [procs, 'receive']),
    {_, Ref} = spawn_monitor(?MODULE, sample, [Name, Set, Runs, plain, File]),
    receive {'DOWN', Ref, process, _, normal} -> true = trace:session_destroy(Session), ok end;
sample(Name, Set, Runs, _, File) ->
    Begin = erlang:monotonic_time(microsecond),
    _ = witness_savina_times:sample(Name, Set, max(1, Runs div 10)),
    Before = threads(),
    Sample = witness_savina_times:sample(Name, Set, Runs),
    After = threads(),
    Seconds = (erlang:monotonic_time(microsecond) - Begin) / 1.0e6,
    Ran = #{Kind => (maps:get(Kind, After) - maps:get(Kind, Before)) / Runs / 1000 || Kind <- [schedulers, others]},
    ok = file:write_file(File, term_to_binary((maps:merge(Sample, Ran))#{seconds => Seconds})).

%% Nanoseconds that threads of this VM have run, if the system reports it (Linux).
threads() ->
    Tasks = "/proc/self/task",
    Threads = case file:list_dir(Tasks) of {ok, Names} -> Names; {error, _} -> [] end,
    lists:foldl(fun(Thread, Sums) ->
        Read = fun(Name) -> file:read_file(filename:join([Tasks, Thread, Name])) end,
        case {Read("comm"), Read("schedstat")} of
            {{ok, Name}, {ok, Line}} ->
                Kind = case string:find(Name, "sched_") of nomatch -> others; _ -> schedulers end,
                Sums#{Kind := maps:get(Kind, Sums) + binary_to_integer(hd(binary:split(Line, <<" ">>)))};
            _ -> Sums
        end
    end, #{schedulers => 0, others => 0}, Threads).
