-module(witness_timescales).
-moduledoc """
The ten families of timescales (D. Ulus, *Timescales: A Benchmark Generator for MTL Monitoring Tools*, RV 2019) as
properties with `let`s, with bounds of 10, 100 and 1000, beside Reelay with the same formula and trace.

A trace is random, from a seed, as timescales makes it. At each place some of the propositions p, q, r and s hold. It is a message
`{step, P, Q, R, S}`, and one comes each millisecond. The trace satisfies its formula up to its end, and violates it there. Only the
events in front of the end are measured. Then Witness and Reelay have to find the first violation at the same place.

- `machine`: the events in batches of 100 through `m:witness_monitor_machine`, which keeps the steps of an explanation;
- `module`: the generated module alone;
- `Reelay`: its monitor of discrete time, called from Python;
- `events/s`: of the machine in a second, with the bound with which it is slowest.

All times are nanoseconds of processor time an event, with garbage collection, on one scheduler: other work on the machine has less
influence on them than on the time of the clock. Medians; ratios are medians of the ratios of each repetition.

Formulas of timescales have lower bounds, and `let`s have none. `once [a:b] p` is written `once [:b] p and not once [:a - 1] p`,
likewise `since`, and `not s since [b:] p` is written `(not s since p) and not once [:b - 1] p`. The two differ only where p comes
in the window and then again within the last a - 1 or b - 1, which does not matter in these traces. Reelay gets what Witness gets.

The last family is no formula of timescales: AbsentBR with a count in place of `once`.

Usage: `witness_timescales:main([Python, Script, Events, Repetitions])`.
""".

-export([main/1]).

-define(BOUNDS, [10, 100, 1000]).
-define(BATCH, 100).
-define(EXPLAIN, 12).
-define(SEED, 1).
-define(ANSWER_MS, 600_000).

%% The propositions that hold at a place.
-define(P, 1).
-define(Q, 2).
-define(R, 4).
-define(S, 8).

-spec main([string()]) -> no_return().
main([Python, Script | Numbers]) ->
    [Events, Repetitions] = [list_to_integer(Number) || Number <- Numbers],
    Reelay = open_port({spawn_executable, Python}, [{args, [Script]}, binary, {line, 1000}]),
    {_, Empty} = reelay(Reelay, "{p}", trace(recurrence_globally, 10, Events), Events),
    io:format("OTP ~s: nanoseconds of processor time an event, ~b events, medians of ~b; Reelay with the formula p: ~b ns~n~n",
              [erlang:system_info(otp_release), Events, Repetitions, round(Empty)]),
    io:format("~-12s ~4s  ~-20s ~-20s ~-20s ~8s  ~-13s  ~-20s~n~-12s ~4s ~s ~8s  ~6s ~6s ~s~n",
              ["", "", "machine", "module", "Reelay", "events/s", "1000 to 10", "Reelay to machine", "", "lets",
               [[$\s, bounds()] || _ <- [machine, module, reelay]], "machine", "mach.", "module", [$\s, bounds()]]),
    lists:foreach(fun(Family) -> family(Family, Reelay, Events, Repetitions) end, families()),
    halt(0).

bounds() -> lists:join($\s, [io_lib:format("~6b", [Bound]) || Bound <- ?BOUNDS]).

families() ->
    [absence_after, absence_between, absence_before, always_after, always_between, always_before, recurrence_between,
     recurrence_globally, response_between, response_globally, counted].

name(absence_after) -> "AbsentAQ";
name(absence_between) -> "AbsentBQR";
name(absence_before) -> "AbsentBR";
name(always_after) -> "AlwaysAQ";
name(always_between) -> "AlwaysBQR";
name(always_before) -> "AlwaysBR";
name(recurrence_between) -> "RecurBQR";
name(recurrence_globally) -> "RecurGLB";
name(response_between) -> "RespondBQR";
name(response_globally) -> "RespondGLB";
name(counted) -> "count".

%% Traces are literals: they are not on the heap of the process that is measured.
family(Family, Reelay, Events, Repetitions) ->
    Cases = [begin
        Trace = trace(Family, Bound, Events),
        persistent_term:put({?MODULE, Bound}, batches(events(Trace))),
        {Bound, Trace, formula(Family, Bound), compiled(Family, Bound)}
    end || Bound <- ?BOUNDS],
    Measured = [{Key, Time} || _ <- lists:seq(1, Repetitions), Case <- Cases, {Key, Time} <- measure(Case, Reelay, Events)],
    Times = fun(Kind, Bound) -> [Time || {Key, Time} <- Measured, Key =:= {Kind, Bound}] end,
    Time = fun(Kind, Bound) -> median(Times(Kind, Bound)) end,
    Ratio = fun({Kind, Bound}, {Under, Least}) ->
        median(lists:zipwith(fun(A, B) -> A / B end, Times(Kind, Bound), Times(Under, Least)))
    end,
    {Lets, _} = property(Family, 10),
    io:format("~-12s ~4b~s ~8b  ~6.2f ~6.2f ~s~n",
              [name(Family), length(Lets),
               [io_lib:format(" ~6b", [round(Time(Kind, Bound))]) || Kind <- [machine, module, reelay], Bound <- ?BOUNDS],
               round(1.0e9 / lists:max([Time(machine, Bound) || Bound <- ?BOUNDS])),
               Ratio({machine, 1000}, {machine, 10}), Ratio({module, 1000}, {module, 10}),
               [io_lib:format(" ~6.2f", [Ratio({reelay, Bound}, {machine, Bound})]) || Bound <- ?BOUNDS]]),
    [persistent_term:erase({?MODULE, Bound}) || Bound <- ?BOUNDS].

measure({Bound, Trace, Formula, Monitor}, Reelay, Events) ->
    {Place, Machine} = run(machine, Monitor, Bound, Events),
    {Place, Own} = run(module, Monitor, Bound, Events),
    {Place, Other} = reelay(Reelay, Formula, Trace, Events),
    true = Place > Events,
    [{{machine, Bound}, Machine}, {{module, Bound}, Own}, {{reelay, Bound}, Other}].

median(List) -> lists:nth((length(List) + 1) div 2, lists:sort(List)).

%% --- runs ------------------------------------------------------------------------

%% The place of the first violation, and the processor time of an event in front of the end of the trace.
run(Kind, Monitor, Bound, Events) ->
    {Pid, Ref} = spawn_monitor(fun() ->
        {Measured, Last} = lists:split(Events div ?BATCH, persistent_term:get({?MODULE, Bound})),
        Run = start(Kind, Monitor),
        Begin = erlang:statistics(runtime),
        Next = through(Measured, Run),
        exit({result, {first(Last, Next, Events), milliseconds(Begin) * 1.0e6 / Events}})
    end),
    receive {'DOWN', Ref, process, Pid, Reason} -> {result, Result} = Reason, Result end.

milliseconds({Begin, _}) ->
    {End, _} = erlang:statistics(runtime),
    End - Begin.

start(machine, Monitor) ->
    {ok, Machine} = witness_monitor_machine:new(#{monitor => Monitor, process => self(), signature => {?MODULE, loop, [1]},
                                                  explain => ?EXPLAIN}),
    {machine, Machine};
start(module, {Module, Arg}) ->
    {ok, State} = Module:init({?MODULE, loop, [1]}, self(), Arg),
    {fun Module:handle_event/2, State}.

through(Batches, {machine, Machine}) ->
    {machine, lists:foldl(fun(Batch, M) ->
        {[], {ok, Next}} = witness_monitor_machine:run(Batch, M),
        Next
    end, Machine, Batches)};
through(Batches, {Handle, State}) -> {Handle, lists:foldl(fun(Batch, S) -> each(Batch, Handle, S) end, State, Batches)}.

each([Event | Events], Handle, State) ->
    {ok, Next} = Handle(Event, State),
    each(Events, Handle, Next);
each([], _, State) -> State.

first(Batches, Run, Before) -> place(lists:append(Batches), Run, Before + 1).

place([Event | Events], {machine, Machine}, Place) ->
    case witness_monitor_machine:run([Event], Machine) of
        {[], {ok, Next}} -> place(Events, {machine, Next}, Place + 1);
        {[], {decided, #{verdict := no}}} -> Place
    end;
place([Event | Events], {Handle, State}, Place) ->
    case Handle(Event, State) of
        {ok, Next} -> place(Events, {Handle, Next}, Place + 1);
        {verdict, no, _} -> Place
    end.

reelay(Reelay, Formula, Trace, Events) ->
    Request = #{formula => iolist_to_binary(Formula), trace => binary:encode_hex(Trace), measured => Events},
    port_command(Reelay, [json:encode(Request), $\n]),
    receive
        {Reelay, {data, {eol, Answer}}} ->
            #{~"first" := First, ~"seconds" := Seconds} = json:decode(Answer),
            {First, Seconds * 1.0e9 / Events}
    after ?ANSWER_MS -> error(no_answer)
    end.

%% --- properties ------------------------------------------------------------------

compiled(Family, Bound) ->
    {Lets, Forbidden} = property(Family, Bound),
    Text = ["p: with witness_timescales:loop(_)\n", [["  let ", Name, " = ", Value, "\n"] || {Name, Value} <- Lets],
            "  monitor max X.(", [["[{_ ? ", Step, " when ", Guard, "}] ff and "] || {Step, Guard} <- Forbidden], "[else] X).\n"],
    File = iolist_to_binary(["timescales", integer_to_list(erlang:unique_integer([positive])), ".hml"]),
    {ok, #{module := Module, entries := [#{index := Index}]}, _} = witness_spec:compile_string(File, iolist_to_binary(Text)),
    {Module, Index}.

%% The `let`s, and what is forbidden.
property(absence_after, Bound) ->
    {[{"After", ["once ", within(Bound), q()]}, {"Clear", [not_p(), " since ", q()]}], [{"_", "After, not Clear"}]};
property(absence_between, Bound) -> between(not_p(), Bound);
property(absence_before, Bound) -> {[{"P", ["once ", within(Bound), p()]}], [{"{step, _, _, true, _}", "P"}]};
property(always_after, Bound) ->
    {[{"After", ["once ", within(Bound), q()]}, {"Clear", [p(), " since ", q()]}], [{"_", "After, not Clear"}]};
property(always_between, Bound) -> between(p(), Bound);
property(always_before, Bound) -> {[{"Not", ["once ", within(Bound), not_p()]}], [{"{step, _, _, true, _}", "Not"}]};
property(recurrence_between, Bound) ->
    {[{"Begun", ["once ", q()]}, {"Recent", ["once ", within(Bound), p(), " or ", q()]}, {"Kept", ["Recent since ", q()]}],
     [{"{step, _, false, true, _}", "Begun, not Kept"}]};
property(recurrence_globally, Bound) -> {[{"Recent", ["once ", within(Bound), p()]}], [{"_", "not Recent"}]};
property(response_between, Bound) ->
    {[{"Begun", ["once ", q()]} | response(Bound)]
     ++ [{"Kept", ["{_ ? {step, _, _, _, true} when Answer, not Early} or {_ ? {step, _, _, _, false} when Recent} or "
                   "{_ ? {step, _, _, _, false} when not Open} since ", q()]}],
     [{"{step, _, false, true, _}", "Begun, not Kept"}]};
property(response_globally, Bound) ->
    {response(Bound),
     [{"{step, _, _, _, true}", "not Answer"}, {"{step, _, _, _, true}", "Early"}, {"_", "Open, not Recent"}]};
property(counted, Bound) -> {[{"P", ["count ", within(Bound), p()]}], [{"{step, _, _, true, _}", "P > 0"}]}.

between(Meanwhile, Bound) ->
    {[{"Begun", ["once ", q()]}, {"Clear", [Meanwhile, " since ", within(Bound), q()]},
      {"Early", ["once ", within(lower(Bound) - 1), q()]}],
     [{"{step, _, false, true, _}", "Begun, not Clear"}, {"{step, _, false, true, _}", "Begun, Early"}]}.

response(Bound) ->
    [{"Answer", ["once ", within(Bound), p()]}, {"Early", ["once ", within(lower(Bound) - 1), p()]},
     {"Open", ["{_ ? {step, _, _, _, false}} since ", p()]}, {"Recent", ["once ", within(Bound - 1), p()]}].

p() -> "{_ ? {step, true, _, _, _}}".
not_p() -> "{_ ? {step, false, _, _, _}}".
q() -> "{_ ? {step, _, true, _, _}}".

within(Bound) -> io_lib:format("within ~b ms ", [Bound]).

%% 3 for 10, as in timescales.
lower(Bound) -> 3 * Bound div 10.

%% As Reelay writes it.
formula(Family, Bound) -> io_lib:format("historically(~s)", [always(Family, Bound)]).

always(absence_after, Bound) -> [once(Bound, "{q}"), " -> ((not {p}) since {q})"];
always(absence_between, Bound) -> [between(), " -> ", since("(not {p})", Bound)];
always(absence_before, Bound) -> io_lib:format("{r} -> (historically[:~b] (not {p}))", [Bound]);
always(always_after, Bound) -> [once(Bound, "{q}"), " -> ({p} since {q})"];
always(always_between, Bound) -> [between(), " -> ", since("{p}", Bound)];
always(always_before, Bound) -> io_lib:format("{r} -> (historically[:~b] {p})", [Bound]);
always(recurrence_between, Bound) -> [between(), " -> (", once(Bound, "({p} or {q})"), " since {q})"];
always(recurrence_globally, Bound) -> once(Bound, "{p}");
always(response_between, Bound) -> [between(), " -> (", answered(Bound), " since {q})"];
always(response_globally, Bound) -> answered(Bound);
always(counted, Bound) -> always(absence_before, Bound).

between() -> "({r} and not {q} and once {q})".

since(Meanwhile, Bound) -> io_lib:format("((~s since[:~b] {q}) and not ~s)", [Meanwhile, Bound, once(lower(Bound) - 1, "{q}")]).

answered(Bound) ->
    ["(({s} -> (", once(Bound, "{p}"), " and not ", once(lower(Bound) - 1, "{p}"), ")) and not (((not {s}) since {p}) and not ",
     once(Bound - 1, "{p}"), "))"].

once(Bound, What) -> io_lib:format("(once[:~b] ~s)", [Bound, What]).

%% --- traces ----------------------------------------------------------------------

%% A byte a place. Behind the events that are measured the last round goes on, and then there is a violation.
trace(Family, Bound, Events) ->
    _ = rand:seed(exsss, {?SEED, erlang:phash2(Family), Bound}),
    iolist_to_binary([rounds(Family, Bound, Events), violation(Family, Bound)]).

rounds(_, _, Events) when Events =< 0 -> [];
rounds(Family, Bound, Events) ->
    Round = lists:flatten(round(Family, Bound)),
    [Round | rounds(Family, Bound, Events - length(Round))].

round(absence_after, Bound) -> [?Q, times(Bound, 0), coins(Bound)];
round(absence_between, Bound) -> [?Q, times(random(lower(Bound), Bound - 1), 0), ?R, coins(1)];
round(absence_before, Bound) -> [coins(Bound), times(Bound, 0), ?R];
round(always_after, Bound) -> [?P bor ?Q, times(Bound, ?P), coins(Bound)];
round(always_between, Bound) -> [?P bor ?Q, times(random(lower(Bound), Bound - 1), ?P), ?P bor ?R, 0];
round(always_before, Bound) -> [coins(Bound), times(Bound, ?P), ?P bor ?R];
round(recurrence_between, Bound) ->
    Gaps = [random(1, Bound) - 1 || _ <- lists:seq(1, random(1, 7))],
    [?Q, [[times(Gap, 0), ?P] || Gap <- Gaps], times(lists:last(Gaps), 0), ?R, times(lists:last(Gaps), 0)];
round(recurrence_globally, Bound) -> [?P, times(random(1, Bound) - 1, 0)];
round(response_between, Bound) ->
    [?Q, 0, [[?P, times(random(lower(Bound), Bound - 1), 0), ?S, 0] || _ <- lists:seq(1, random(1, 7))], ?R];
round(response_globally, Bound) -> [?P, times(random(lower(Bound), Bound - 1), 0), ?S];
round(counted, Bound) -> round(absence_before, Bound).

violation(absence_after, Bound) -> [?Q, times(Bound - 1, 0), ?P];
violation(absence_between, Bound) -> [?Q, times(Bound - 1, 0), ?P, ?R];
violation(absence_before, Bound) -> [?P, times(Bound - 1, 0), ?R];
violation(always_after, Bound) -> [?P bor ?Q, times(Bound - 1, ?P), 0];
violation(always_between, Bound) -> [?P bor ?Q, times(Bound + 1, ?P), ?P bor ?R];
violation(always_before, Bound) -> [0, times(Bound - 1, ?P), ?P bor ?R];
violation(recurrence_between, Bound) -> [?Q, times(Bound + 1, 0), ?R];
violation(recurrence_globally, Bound) -> times(Bound + 1, 0);
violation(response_between, Bound) -> [?Q, ?P, times(Bound + 1, 0), ?R];
violation(response_globally, Bound) -> [?P, times(Bound, 0)];
violation(counted, Bound) -> violation(absence_before, Bound).

times(Times, Place) -> lists:duplicate(Times, Place).

coins(Times) -> [?P * random(0, 1) || _ <- lists:seq(1, Times)].

random(Least, Most) -> Least + rand:uniform(Most - Least + 1) - 1.

%% Messages are shared: there are but sixteen.
events(Trace) ->
    Steps = list_to_tuple([{step, Place band ?P > 0, Place band ?Q > 0, Place band ?R > 0, Place band ?S > 0}
                           || Place <- lists:seq(0, 15)]),
    [{recv, self(), undefined, element(Place + 1, Steps), 1_000_000 * Time}
     || {Time, Place} <- lists:enumerate(binary_to_list(Trace))].

batches(Events) ->
    try lists:split(?BATCH, Events) of
        {Batch, Later} -> [Batch | batches(Later)]
    catch
        error:badarg -> [Events]
    end.
