-module(witness_search_suites).
-moduledoc """
Searches the programs of Concuerror's test suites for errors, beside Concuerror:
`main([Source, Work, Schedules, Seed, Seconds, Errors | Names])`, as for `bench/search`.

The suites say of each *scenario*, a function with a bound, whether Concuerror finds an error. Several scenarios may be the same
function. So each function is searched once. It has an error if one of its scenarios has one. Concuerror's errors are ends of
processes by any reason other than `normal`, processes that wait for ever, and runs that do not end; any timeout may come at any moment.
The options of the search say the same. With `crashes` or `waits` for `Errors` only these count, on our side and in the stored results,
so that a program with several errors is asked more than once.

A line says of each function

| Column | |
|---|---|
| first | the verdict |
| scenarios | the number of scenarios with this function |
| name | `suite/module:function` |
| ours | schedules, seconds |
| Concuerror's | interleavings, seconds; `-`: its time was over, or it has failed |
| rest | the outcome |

The verdicts: `found`: it has an error, and the search has found one; `missed`: it has one, and the search has not; `passed`: it has
none, nor did the search find one; `alarm`: it has none, and the search reports one; `differs`: the search says what the VM does, and the
suites something else, for the reason that the last lines give; `failed`: the search itself has failed; `refused`: the
program does what cannot be controlled; `late`: its time was over; `unknown`: the suites do not say, or Concuerror is to refuse it.

The seconds are those from a shell's view until the first error or the end: a VM that starts and ends is measured, and is added to our
searches, which share one.
""".

-export([main/1]).

%% Events of a run, as Concuerror bounds them.
-define(STEPS, 500).
-define(BUSY_MS, 5_000).
%% Interleavings from which on their rate says something.
-define(MANY, 100).

%% always: in each of Concuerror's interleavings.
-type error() :: always | boolean() | unknown.

-spec main([string()]) -> no_return().
main([Source, Work, Schedules, Seed, Seconds, Errors | Names]) ->
    {ok, Out} = file:open("/dev/fd/3", [append, raw]),
    Concuerror = filename:join([Source, "bin", "concuerror"]),
    How = #{source => Source, work => Work, schedules => list_to_integer(Schedules), seed => list_to_integer(Seed),
            ms => 1000 * list_to_integer(Seconds), errors => list_to_existing_atom(Errors), start => start_seconds(),
            concuerror => case filelib:is_regular(Concuerror) of true -> Concuerror; false -> none end},
    Rows = [row(Function, How, Out) || Program <- witness_concuerror:programs(Source, Names),
                                       Function <- functions(witness_concuerror:load(Program, Work))],
    ok = say(Out, "~n~ts", [totals(Rows)]),
    halt(case Rows of [_ | _] -> 0; [] -> 1 end).

say(Out, Format, Args) -> file:write(Out, unicode:characters_to_binary(io_lib:format(Format, Args))).

start_seconds() ->
    Erl = filename:join([code:root_dir(), "bin", "erl"]),
    Args = ["-noshell", "-pa", filename:dirname(code:which(witness_search)), "-s", "erlang", "halt"],
    median([Time || _ <- lists:seq(1, 5), {_, Time, _} <- [command(Erl, Args, 10_000)]]).

%% --- functions -------------------------------------------------------------------

functions(#{scenarios := Scenarios} = Program) ->
    [{Program, Function, [Scenario || Scenario <- Scenarios, element(1, Scenario) =:= Function]}
     || Function <- lists:uniq([element(1, Scenario) || Scenario <- Scenarios])].

row({#{name := Name} = Program, Function, Scenarios}, How, Out) ->
    Full = lists:flatten(io_lib:format("~s:~s", [Name, Function])),
    Error = has_error([expected(Scenario, Program, How) || Scenario <- Scenarios]),
    {Outcome, Schedules, Searching, Time} = ours(Program, Function, How),
    {Interleavings, Rival} = theirs([], Program, hd(Scenarios), How),
    %% All but the first interleaving.
    Exploring = case is_integer(Interleavings) andalso Interleavings >= ?MANY of
        true ->
            {_, First} = theirs(["-i", "1"], Program, hd(Scenarios), How),
            Rival - First;
        false -> none
    end,
    Verdict = differing(verdict(Error =:= always orelse Error, Outcome), Full),
    ok = say(Out, "~-8w~4b ~-70s ~6b ~7.2f ~8s ~7s  ~ts~n",
             [Verdict, length(Scenarios), Full, Schedules, Time, text(Interleavings), text(Rival),
              lists:flatten(io_lib:format("~0P", [Outcome, 20]))]),
    #{verdict => Verdict, always => Error =:= always, scenarios => length(Scenarios), name => Full, schedules => Schedules,
      searching => Searching, seconds => Time, interleavings => Interleavings, rival => Rival,
      exploring => Exploring}.

text(none) -> "-";
text(Number) when is_float(Number) -> io_lib:format("~.2f", [Number]);
text(Number) -> integer_to_list(Number).

verdict(unknown, _) -> unknown;
verdict(_, late) -> late;
verdict(_, {error, _}) -> failed;
verdict(_, {refused, _, _}) -> refused;
verdict(true, passed) -> missed;
verdict(true, _) -> found;
verdict(false, passed) -> passed;
verdict(false, _) -> alarm.

differing(Verdict, Name) when Verdict =:= missed; Verdict =:= alarm ->
    case differences() of
        #{Name := _} -> differs;
        #{} -> Verdict
    end;
differing(Verdict, _) -> Verdict.

%% Where the VM does something else than the suites expect.
differences() ->
    #{"basic_tests/ets_delete:ets_delete_bad" =>
          "any process may delete a public table, so the other one does, and ends with `wrong`: that is an error",
      "basic_tests/group_leader:test1" => "a process that has ended may become a group leader: that is no error",
      "basic_tests/monitor_info:test1" =>
          "a 'DOWN' that is on its way when its monitor is removed is dropped, and the removal returns true: nothing waits for it",
      "basic_tests/curious_builtins:test3" => "erlang:get_stacktrace/0 is no function of this release: that is an error",
      "basic_tests/stacktrace_vs_exit:test" => "erlang:get_stacktrace/0 is no function of this release: that is an error",
      "basic_tests/transparent_instrumentation:test" => "it calls a module of Concuerror, which is not there"}.

-spec has_error([error()]) -> error().
has_error(Errors) ->
    hd([Error || Error <- [true, always, unknown, false], lists:member(Error, Errors)]).

%% What the last line of the stored result says.
-spec expected(tuple(), witness_concuerror:program(), map()) -> error().
expected(Scenario, #{name := Name} = Program, #{source := Source, errors := Errors}) ->
    [Function, Bound | Flags] = tuple_to_list(Scenario),
    [Suite, Module] = filename:split(Name),
    File = lists:flatten(io_lib:format("~s-~s-~w~s-~s.txt",
                                       [Module, Function, Bound, [<<"-bpor">> || is_bpor(Scenario)], reduction(Flags)])),
    case {lists:member(crash, Flags), file:read_file(filename:join([Source, "tests", "suites", Suite, "results", File]))} of
        {false, {ok, Text}} ->
            case re:run(Text, "Summary: (\\d+) errors, (\\d+)/", [{capture, all_but_first, list}]) of
                {match, ["0", _]} -> false;
                {match, [Wrong, All]} -> kind(Errors, Text, Wrong =:= All, Program);
                nomatch -> unknown
            end;
        {_, _} -> unknown
    end.

%% The result has all errors, unless the module says that the first one is enough.
kind(any, _, true, _) -> always;
kind(any, _, false, _) -> true;
kind(Errors, Text, _, #{options := Options}) ->
    Ends = re:run(Text, "exited abnormally|called halt") =/= nomatch,
    Waits = re:run(Text, "Blocked at a 'receive'") =/= nomatch,
    case Errors of
        crashes when Ends -> true;
        waits when Waits -> true;
        _ when not Ends, not Waits -> unknown;
        _ ->
            case lists:member({keep_going, false}, Options) of
                true -> unknown;
                false -> false
            end
    end.

is_bpor(Scenario) -> lists:member(bpor, tuple_to_list(Scenario)).

reduction(Flags) ->
    hd([atom_to_list(Flag) || Flag <- [dpor, optimal, source, persistent], lists:member(Flag, Flags)] ++ ["nodpor"]).

%% --- ours ------------------------------------------------------------------------

ours(#{ebin := Ebin, module := Module, options := Given}, Function, How) ->
    #{work := Work, ms := Ms, start := Start, errors := Errors} = How,
    Dir = filename:join(Work, "found"),
    _ = file:del_dir_r(Dir),
    Options = maps:merge(maps:with([schedules, seed], How), of_errors(Errors, options(Given))),
    Own = self(),
    {Pid, Monitor} = spawn_monitor(fun() ->
        exit({searched, timer:tc(fun() ->
            witness_search:search(Options#{run => {Module, Function, []}, pa => [Ebin], dir => Dir,
                                           on_schedules => fun(Number) -> Own ! {schedules, Number} end})
        end)})
    end),
    Result = receive
        {'DOWN', Monitor, process, Pid, {searched, {Time, Searched}}} -> {Searched, Time / 1.0e6};
        {'DOWN', Monitor, process, Pid, Reason} -> {{error, Reason}, 0.0}
    after Ms ->
        exit(Pid, kill),
        {late, Ms / 1000}
    end,
    Last = last(0),
    case Result of
        {{ok, #{outcome := Outcome, schedules := Schedules, elapsed_ms := Searching}}, Seconds} ->
            {outcome(Outcome, Errors, ignored(Given)), Schedules, Searching / 1000, Start + Seconds};
        {Other, Seconds} -> {Other, Last, 0.0, Start + Seconds}
    end.

%% A run that is too long, and one that ends its VM, are no failures if these do not count.
outcome(steps, any, Ignored) ->
    case lists:member(depth_bound, Ignored) of
        true -> passed;
        false -> steps
    end;
outcome(steps, _, _) -> passed;
outcome({halted, _, _}, waits, _) -> passed;
outcome(Outcome, _, _) -> Outcome.

last(Number) -> receive {schedules, Next} -> last(Next) after 0 -> Number end.

options(Given) ->
    Ignored = ignored(Given),
    Waits = not lists:member(deadlock, Ignored) andalso not lists:member({assertions_only, true}, Given),
    #{timeouts => any, left => Waits, deadlocks => Waits,
      steps => proplists:get_value(depth_bound, Given, ?STEPS), busy_ms => proplists:get_value(timeout, Given, ?BUSY_MS),
      delivery => case lists:member({instant_delivery, false}, Given) of true -> pairwise; false -> causal end,
      normal => values_of(treat_as_normal, Given),
      crashes => case {lists:member(abnormal_exit, Ignored), lists:member({assertions_only, true}, Given)} of
          {true, _} -> none;
          {false, true} -> assertions;
          {false, false} -> any
      end}.

of_errors(any, Options) -> Options;
of_errors(crashes, Options) -> Options#{left := false, deadlocks := false};
of_errors(waits, Options) -> Options#{crashes := none}.

ignored(Given) -> values_of(ignore_error, Given).

values_of(Key, Given) -> lists:append([case What of [_ | _] -> What; _ -> [What] end || {Of, What} <- Given, Of =:= Key]).

%% --- Concuerror ------------------------------------------------------------------

theirs(_, _, _, #{concuerror := none}) -> {none, none};
theirs(More, #{ebin := Ebin, module := Module}, Scenario, #{concuerror := Command, work := Work, ms := Ms}) ->
    [Function, Bound | Flags] = tuple_to_list(Scenario),
    Report = filename:join(Work, "report.txt"),
    _ = file:delete(Report),
    Args = ["-q", "--assume_racing", "false",
            "--dpor", case reduction(Flags) of "dpor" -> "optimal"; "nodpor" -> "none"; Name -> Name end]
        ++ lists:append([["-f", Beam] || Beam <- filelib:wildcard(filename:join(Ebin, "*.beam"))])
        ++ More ++ ["--output", Report, "-m", atom_to_list(Module), "-t", atom_to_list(Function)]
        ++ case Bound of
               inf -> [];
               _ -> ["-b", integer_to_list(Bound), "-c", case is_bpor(Scenario) of true -> "bpor"; false -> "delay" end]
           end,
    case command(Command, Args, Ms) of
        {Status, Seconds, _} when Status =:= 0; Status =:= 1 ->
            {ok, Text} = file:read_file(Report),
            case re:run(Text, "Summary: \\d+ errors, (\\d+)/", [{capture, all_but_first, list}]) of
                {match, [Number]} -> {list_to_integer(Number), Seconds};
                nomatch -> {none, none}
            end;
        _ -> {none, none}
    end.

%% A command that takes too long is killed.
command(Command, Args, Ms) ->
    Limit = ["-s", "KILL", integer_to_list(max(1, Ms div 1000)), Command | Args],
    {Time, Status} = timer:tc(fun() ->
        Port = open_port({spawn_executable, os:find_executable("timeout")}, [exit_status, stderr_to_stdout, {args, Limit}]),
        ended(Port)
    end),
    {Status, Time / 1.0e6, Command}.

ended(Port) ->
    receive
        {Port, {exit_status, Status}} -> Status;
        {Port, {data, _}} -> ended(Port)
    end.

%% --- totals ----------------------------------------------------------------------

totals(Rows) ->
    Known = [Row || #{verdict := Verdict} = Row <- Rows, Verdict =/= unknown],
    Found = [Row || #{verdict := found} = Row <- Rows],
    Erroneous = [Row || #{verdict := Verdict} = Row <- Rows, Verdict =:= found orelse Verdict =:= missed],
    Both = [Row || #{rival := Rival} = Row <- Found, is_float(Rival)],
    Exhausted = [Row || #{verdict := passed, exploring := Time} = Row <- Rows, Time =/= none],
    [io_lib:format("~b functions, ~b scenarios", [length(Rows), scenarios(Rows)]),
     [io_lib:format(", ~b ~w", [length(Of), Verdict])
      || Verdict <- lists:usort([Is || #{verdict := Is} <- Rows]), Of <- [[Row || #{verdict := Is} = Row <- Rows, Is =:= Verdict]]],
     "\n",
     [io_lib:format("found        ~.1f % of ~b functions with an error, ~.1f % of ~b scenarios~n",
                    [share(length(Found), length(Erroneous)), length(Erroneous), share(scenarios(Found), scenarios(Erroneous)),
                     scenarios(Erroneous)]) || Erroneous =/= []],
     [io_lib:format("schedules    ~w in the median to an error, ~b at most~n",
                    [median(values(schedules, Found)), lists:max(values(schedules, Found))]) || Found =/= []],
     [io_lib:format("             ~b of these functions have schedules without an error: ~w in the median, ~.1f % within 10 schedules~n",
                    [length(Some), median(values(schedules, Some)),
                     share(length([1 || #{schedules := Few} <- Some, Few =< 10]), length(Some))])
      || Some <- [[Row || #{always := false} = Row <- Found]], Some =/= []],
     [io_lib:format("alarms       ~b of ~b functions without an error~n",
                    [length([1 || #{verdict := alarm} <- Known]),
                     length([1 || #{verdict := Is} <- Known, Is =:= alarm orelse Is =:= passed])])],
     [io_lib:format("seconds      ~.2f in the median to an error, Concuerror ~.2f (~b functions); ahead in ~.1f %~n",
                    [median(values(seconds, Both)), median(values(rival, Both)), length(Both),
                     share(length([1 || #{seconds := Own, rival := Rival} <- Both, Own < Rival]), length(Both))]) || Both =/= []],
     rates(Exhausted),
     [io_lib:format("differs      ~s: ~s~n", [Name, map_get(Name, differences())]) || #{verdict := differs, name := Name} <- Rows]].

rates([]) -> [];
rates(Exhausted) ->
    [Ours, Theirs] = [rate(Count, Time, Exhausted) || {Count, Time} <- [{schedules, searching}, {interleavings, exploring}]],
    io_lib:format("a second     ~b schedules, Concuerror ~b interleavings, ratio ~.1f (~b functions without an error)~n",
                  [round(Ours), round(Theirs), Ours / Theirs, length(Exhausted)]).

rate(Count, Time, Rows) -> lists:sum(values(Count, Rows)) / max(0.001, lists:sum(values(Time, Rows))).

values(Key, Rows) -> [Value || #{Key := Value} <- Rows].

scenarios(Rows) -> lists:sum(values(scenarios, Rows)).

share(Part, Whole) -> 100 * Part / Whole.

median(Values) -> lists:nth((length(Values) + 1) div 2, lists:sort(Values)).
