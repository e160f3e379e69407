-module(witness_overhead).
-moduledoc """
What observation costs: the system's own wall-clock, from its start to its end, under a
saturated master-worker load (`witness_load:flat/4`), in one run and interleaved:

- `untraced`: without any tracing, the unit of the ratios of time and memory;
- `drop native`: a tracer in native code that throws each event away
  (`m:witness_overhead_drop`), the least that tracing costs;
- `drop process`: a bare tracer process that throws each event away;
- `native empty`, `evm empty`: Witness with a monitor for every process that reads its events
  and checks nothing, over both sources;
- `native sequence`, `evm sequence`: the same with one that checks that its trace is sound
  (`m:witness_load_monitor`);
- `native history`: `native sequence` with the history that a report has;
- `native untimed`, `evm untimed`: `native sequence` and `evm sequence` without the times of events;
- `native both`: `native sequence` with the checks without a specification;
- `native checks`, `evm checks`: the checks without a specification, and nothing else;
- `native tenth`: the same with one that reads one message in ten, so that the VM leaves
  out the others (`m:witness_overhead_tenth`);
- `native workers`, `native workers tenth`: `native sequence` and `native tenth` with monitors for the workers alone, not
  for the master, which takes part in every message;
- `predecessor`: detectEr, if it is on the code path (`m:witness_overhead_predecessor`).

The table also has the time until the last monitor had its verdict, and the most memory that the whole
node took, from the start until then: `erlang:memory(total)`, which a process of high priority
reads every few milliseconds. That includes the system, Witness, the events that wait in native
code, and the code of OTP. It leaves out the table of tracees of the native source (some
megabytes, once) and about 200 bytes for each process that is alive.

The numbers are medians. Usage:
`witness_overhead:main([Workers, Alive, Requests, Repetitions, Variants])`, variants
separated by commas. What cannot be run here is left out.
""".

-export([main/1, measure/1, median/1]).
-export_type([result/0]).

%% Milliseconds between two reads of the memory.
-define(LOOK, 10).
-define(CHECKS, [crashes, deadlock]).

-type load() :: [non_neg_integer()].

%% Times in microseconds, memory in bytes; undecided: monitors that never had a verdict.
-type result() :: #{system := integer(), done := integer(), peak := integer(), undecided := non_neg_integer()}.

-spec main([string()]) -> no_return().
main([Workers, Alive, Requests, Repetitions, Variants]) ->
    Load = [list_to_integer(A) || A <- [Workers, Alive, Requests]],
    N = list_to_integer(Repetitions),
    io:format("OTP ~s, ~w scheduler(s): ~s workers, ~s alive, ~s requests each, medians of ~s~n",
              [erlang:system_info(otp_release), erlang:system_info(schedulers_online), Workers, Alive, Requests,
               Repetitions]),
    {Here, Absent} = lists:partition(fun available/1, string:split(Variants, ",", all)),
    _ = Absent =:= [] orelse io:format("not available here: ~ts~n", [lists:join(", ", Absent)]),
    lists:foreach(fun(V) -> measured(V, [min(hd(Load), 200) | tl(Load)]) end, Here),
    Results = [{V, repeated(I, V, Load)} || I <- lists:seq(1, N), V <- Here],
    table(Here, maps:groups_from_list(fun({V, _}) -> V end, fun({_, R}) -> R end, Results)),
    halt(0).

available("drop native") -> code:ensure_loaded(witness_overhead_drop) =:= {module, witness_overhead_drop};
available("native " ++ _) -> witness_trace_native:available() =:= ok;
available("predecessor") -> witness_overhead_predecessor:available();
available(_) -> true.

%% Long loads report their progress.
repeated(I, V, Load) ->
    R = #{system := T} = measured(V, Load),
    io:format(standard_error, "~w: ~ts ~.2f s~n", [I, V, T / 1.0e6]),
    R.

%% --- the table -------------------------------------------------------------------

table(Variants, Results) ->
    Medians = #{V => #{Key => median([maps:get(Key, R) || R <- Rs]) || Key <- [system, done, peak, undecided]}
                || V := Rs <- Results},
    io:format("~-20s ~9s ~11s ~14s ~13s ~11s   system s, all~n",
              ["", "system s", "x untraced", "x drop native", "done after s", "x memory"]),
    lists:foreach(fun(V) ->
        #{V := #{system := T, done := Done, peak := Peak, undecided := Undecided}} = Medians,
        io:format("~-20ts ~9.2f ~11s ~14s ~13.2f ~11s   ~ts~ts~n",
                  [V, T / 1.0e6, ratio(T, system, "untraced", Medians), ratio(T, system, "drop native", Medians), Done / 1.0e6,
                   ratio(Peak, peak, "untraced", Medians),
                   lists:join(" ", [io_lib:format("~.2f", [S / 1.0e6]) || #{system := S} <- maps:get(V, Results)]),
                   [io_lib:format(" (~w monitors without a verdict)", [Undecided]) || Undecided > 0]])
    end, Variants).

ratio(Value, Key, Unit, Medians) ->
    case Medians of
        #{Unit := #{Key := Of}} -> io_lib:format("~.2f", [Value / Of]);
        #{} -> "-"
    end.

-doc "The lower one of two.".
-spec median([T, ...]) -> T.
median(List) -> lists:nth((length(List) + 1) div 2, lists:sort(List)).

%% --- one run ---------------------------------------------------------------------

-spec measured(string(), load()) -> result().
measured(Variant, Load) -> measure(fun() -> run(Variant, Load) end).

-doc "Measures a function that returns `{SystemMicroseconds, DoneMicroseconds, Undecided}`, and how far the memory rises.".
-spec measure(fun(() -> {integer(), integer(), non_neg_integer()})) -> result().
measure(Run) ->
    lists:foreach(fun erlang:garbage_collect/1, processes()),
    Looker = spawn_opt(fun() -> look(erlang:memory(total)) end, [link, {priority, high}]),
    {System, Done, Undecided} = Run(),
    Looker ! {stop, self()},
    Peak = receive {Looker, Most} -> Most end,
    #{system => System, done => Done, peak => Peak, undecided => Undecided}.

look(Most) ->
    receive
        {stop, Caller} -> Caller ! {self(), Most}
    after ?LOOK ->
        look(max(Most, erlang:memory(total)))
    end.

run("untraced", Load) ->
    {_, Ref} = spawn_monitor(witness_load, flat, [self() | Load]),
    T = system(),
    receive {'DOWN', Ref, process, _, normal} -> {T, T, 0} end;
run("drop native", Load) ->
    dropped({witness_overhead_drop, none}, Load);
run("drop process", Load) ->
    Tracer = spawn_opt(fun Drop() -> receive _ -> Drop() end end, [{message_queue_data, off_heap}]),
    Result = dropped(Tracer, Load),
    Ref = monitor(process, Tracer),
    exit(Tracer, kill),
    receive {'DOWN', Ref, process, _, _} -> Result end;
run("native empty", Load) -> watched(native, {witness_load_monitor, empty}, Load);
run("native sequence", Load) -> watched(native, {witness_load_monitor, check}, Load);
run("native workers", Load) -> watched(native, {witness_load_monitor, check}, #{}, [node], Load);
run("native workers tenth", Load) -> watched(native, {witness_overhead_tenth, none}, #{}, [node], Load);
run("native history", Load) -> watched(native, {witness_load_monitor, check}, #{history => true}, [flat, node], Load);
run("native untimed", Load) -> watched(native, {witness_load_monitor, check}, #{timestamps => false}, [flat, node], Load);
run("evm untimed", Load) -> watched(evm, {witness_load_monitor, check}, #{timestamps => false}, [flat, node], Load);
run("native both", Load) ->
    Monitors = [{{witness_load, F, '_'}, {witness_load_monitor, check}} || F <- [flat, node]],
    watched(native, #{monitors => Monitors, checks => ?CHECKS}, 3 + hd(Load), Load);
run("native tenth", Load) -> watched(native, {witness_overhead_tenth, none}, Load);
run("evm empty", Load) -> watched(evm, {witness_load_monitor, empty}, Load);
run("evm sequence", Load) -> watched(evm, {witness_load_monitor, check}, Load);
run("native checks", Load) -> checked(native, Load);
run("evm checks", Load) -> checked(evm, Load);
run("predecessor", Load) -> witness_overhead_predecessor:run(Load).

dropped(Tracer, Load) ->
    Self = self(),
    Session = trace:session_create(drop, Tracer, []),
    System = spawn(fun() -> receive go -> apply(witness_load, flat, [Self | Load]) end end),
    1 = trace:process(Session, System, true, [procs, send, 'receive', set_on_spawn]),
    System ! go,
    T = system(),
    trace:session_destroy(Session),
    {T, T, 0}.

%% Each process has a monitor of the check `crashes`, and the system one of `deadlock`.
checked(Source, Load) -> watched(Source, #{checks => ?CHECKS}, 2, Load).

watched(Source, Monitor, Load) -> watched(Source, Monitor, #{}, [flat, node], Load).

watched(Source, Monitor, More, Functions, Load) ->
    watched(Source, More#{monitors => [{{witness_load, F, '_'}, Monitor} || F <- Functions]}, length(Functions) - 1, Load).

%% `Beside`: how many monitors there are beside those of the workers.
watched(Source, More, Beside, Load) ->
    Begin = erlang:monotonic_time(microsecond),
    {ok, Run} = witness:start(More#{system => {witness_load, flat, [self() | Load]}, source => Source, max_verdicts => 0,
                                    drain => infinity, log => false}),
    T = system(),
    {ok, #{verdicts := #{no := 0, inconclusive := 0, yes := Sound}}} = witness:await(Run, infinity),
    Done = erlang:monotonic_time(microsecond) - Begin,
    {ok, _} = witness:stop(Run),
    Sound = hd(Load) + Beside,
    {T, Done, 0}.

system() -> receive {done, _, _, T} -> T end.
