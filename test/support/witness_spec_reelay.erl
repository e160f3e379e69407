-module(witness_spec_reelay).
-moduledoc """
Values of `let` against Reelay: for random past-time formulas and traces, both say at each place whether the formula is true.

A formula becomes a property with a `let` for each temporal operator (`m:witness_spec_reelay_text`). Each event has Reelay's value,
and the property is violated at the first event with another value. The last event of each trace has the wrong value. So a verdict
at exactly this event says that all values are the same.

`test/oracles/reelay/run` calls `main/0`.
""".

-export([main/0]).

-define(PROPERTIES, 25).  % in a file: in a larger one, each takes longer to compile
-define(DIFFERENCES, 5).  % that are made small and printed
-define(PROGRESS, 10_000).

-doc """
Compares `WITNESS_REELAY_PAIRS` formulas with traces (default 100,000) from `WITNESS_REELAY_SEED`. The exit code is 1 after a
difference. `WITNESS_REELAY_PYTHON` is a Python with Reelay, and runs the script `WITNESS_REELAY_VALUES`.
""".
main() ->
    Pairs = witness_setting:number("WITNESS_REELAY_PAIRS", 100_000),
    Seed = witness_setting:number("WITNESS_REELAY_SEED", erlang:system_time(second)),
    io:format("~b pairs, seed ~b~n", [Pairs, Seed]),
    Files = (Pairs + ?PROPERTIES - 1) div ?PROPERTIES,
    Workers = erlang:system_info(schedulers_online),
    Begin = erlang:monotonic_time(second),
    Main = self(),
    ToShow = counters:new(1, []),
    counters:put(ToShow, 1, ?DIFFERENCES),
    Running = [begin
                   {_, Monitor} = spawn_monitor(fun() -> worker(Main, Seed, ToShow, lists:seq(I, Files, Workers)) end),
                   Monitor
               end || I <- lists:seq(1, Workers)],
    {Counts, Differences} = collect(Running, #{}, 0),
    io:format("~ts~n~b differences in ~b pairs, ~b s~n",
              [lists:join(", ", [io_lib:format("~w ~b", [Key, N]) || {Key, N} <- lists:sort(maps:to_list(Counts))]),
               Differences, maps:get(pairs, Counts, 0), erlang:monotonic_time(second) - Begin]),
    halt(min(1, Differences)).

collect([], Counts, Differences) -> {Counts, Differences};
collect(Running, Before, Differences) ->
    receive
        {file, New, Texts} ->
            io:put_chars(Texts),
            Counts = add(New, Before),
            Done = maps:get(pairs, Counts, 0),
            [io:format("~b pairs, ~b differences~n", [Done, Differences + length(Texts)]) || Done rem ?PROGRESS =:= 0],
            collect(Running, Counts, Differences + length(Texts));
        {'DOWN', Monitor, process, _, normal} ->
            collect(lists:delete(Monitor, Running), Before, Differences);
        {'DOWN', _, process, _, Reason} ->
            io:format("a worker has crashed: ~tp~n", [Reason]),
            halt(1)
    end.

add(New, Counts) -> maps:merge_with(fun(_, N, M) -> N + M end, New, Counts).

%% Each worker has a Reelay of its own.
worker(Main, Seed, ToShow, Files) ->
    Reelay = open_port({spawn_executable, os:getenv("WITNESS_REELAY_PYTHON")},
                       [{args, [os:getenv("WITNESS_REELAY_VALUES")]}, {line, 100_000}, binary, exit_status]),
    lists:foreach(fun(N) ->
                          _ = rand:seed(exsss, erlang:phash2({Seed, N}, 1 bsl 32)),
                          Examples = [witness_spec_reelay_gen:example() || _ <- lists:seq(1, ?PROPERTIES)],
                          {Counts, Differences} = compare(Examples, Reelay),
                          Main ! {file, Counts, [shown(Difference, Reelay, ToShow, {Seed, N}) || Difference <- Differences]}
                  end, Files).

%% The text of a difference, if there were not enough of them.
shown(Difference, Reelay, ToShow, Seed) ->
    case counters:get(ToShow, 1) > 0 of
        true ->
            counters:sub(ToShow, 1, 1),
            format(smaller(Difference, Reelay), Reelay, Seed);
        false -> ""
    end.

%% What was compared, and the examples that differ, with the reason.
compare(Examples, Reelay) ->
    %% Reelay works while the properties are compiled.
    lists:foreach(fun(Example) -> ask(Example, Reelay) end, Examples),
    Compiled = compile(Examples),
    Answered = [{Example, answers(Example, Reelay)} || Example <- Examples],
    case Compiled of
        {ok, #{module := Module} = Map} ->
            try
                Judged = [{Example, judge(Module, Index, Example, Values)}
                          || {Index, {Example, Values}} <- lists:enumerate(Answered)],
                {lists:foldl(fun(One, All) -> add(counts(One), All) end, #{}, Answered),
                 [Difference || {_, Result} = Difference <- Judged, Result =/= same]}
            after
                witness_spec:unload(Map)
            end;
        {error, Reason} when length(Examples) =:= 1 ->
            {#{pairs => 1}, [{hd(Examples), {compile, Reason}}]};
        {error, _} ->
            Each = [compare([Example], Reelay) || Example <- Examples],
            {lists:foldl(fun({Counts, _}, All) -> add(Counts, All) end, #{refused_files => 1}, Each),
             lists:append([Differences || {_, Differences} <- Each])}
    end.

compile(Examples) ->
    Text = [witness_spec_reelay_text:property("p" ++ integer_to_list(I), Example) || {I, Example} <- lists:enumerate(Examples)],
    try witness_spec:compile_string(~"random", iolist_to_binary(Text), #{max_state => 1_000_000}) of
        {ok, Map, _} -> {ok, Map};
        {error, {witness_spec, Findings}} -> {error, [Finding || #{severity := error} = Finding <- Findings]}
    catch
        Class:Reason:Stack -> {error, {Class, Reason, Stack}}
    end.

%% How the examples are spread.
counts({#{mode := Mode, traces := Traces, over := Over} = Example, Values}) ->
    Text = iolist_to_binary(witness_spec_reelay_text:property("p", Example)),
    {True, False} = lists:partition(fun(Value) -> Value end, lists:append(Values)),
    #{pairs => 1, traces => length(Traces), {mode, Mode} => 1, {over, Over} => 1,
      {question, witness_spec_reelay_text:question(Example)} => 1, lets => length(binary:matches(Text, ~"  let ")),
      {value, true} => length(True), {value, false} => length(False)}.

%% Reelay's answers come in the order of the requests.
ask(Example, Reelay) ->
    lists:foreach(fun([]) -> ok;
                     (Places) ->
                          {Request, _} = witness_spec_reelay_text:request(Places, Example),
                          true = port_command(Reelay, [json:encode(Request), $\n])
                  end, witness_spec_reelay_gen:places(Example)).

%% The values at the steps of each trace.
answers(Example, Reelay) -> [values(Places, Example, Reelay) || Places <- witness_spec_reelay_gen:places(Example)].

values([], _, _) -> [];
values(Places, Example, Reelay) ->
    {_, ArePlaces} = witness_spec_reelay_text:request(Places, Example),
    At = [Value || {Value, true} <- lists:zip(answer(Reelay), ArePlaces)],
    [Value || {Value, #{kind := step}} <- lists:zip(At, Places)].

answer(Reelay) ->
    receive
        {Reelay, {data, {eol, <<"error", _/binary>> = Error}}} -> error({reelay, Error});
        {Reelay, {data, {eol, Line}}} -> [Digit =:= $1 || <<Digit>> <= Line];
        {Reelay, Other} -> error({reelay, Other})
    end.

%% Whether the verdicts of the property are those that follow from Reelay's values.
judge(Module, Index, Example, Values) ->
    {Given, Numbers} = case witness_spec_reelay_text:question(Example) of
        {first, Value} -> {Values, [first(Value, Steps, 1) || Steps <- Values]};
        _ -> {[but_last(Steps) || Steps <- Values], [length(Steps) || Steps <- Values]}
    end,
    Expected = [{Key, Number} || {Key, {Number, [_ | _]}} <- lists:enumerate(lists:zip(Numbers, Values))],
    case verdicts(Module, Index, Example, Given) of
        Expected -> same;
        Got -> {verdicts, {expected, Expected}, {got, Got}}
    end.

first(_, [], _) -> none;
first(Value, [Value | _], N) -> N;
first(Value, [_ | Values], N) -> first(Value, Values, N + 1).

but_last([]) -> [];
but_last(Values) -> lists:droplast(Values) ++ [not lists:last(Values)].

%% For each trace with a step: the number of the step with the verdict `no`, or `none` for a `yes` at the end.
verdicts(Module, Index, #{traces := Traces, style := Style} = Example, Values) ->
    Spec = #{monitor => {Module, Index}, process => self(), signature => {m, f, [0]}, explain => 1},
    {ok, Machine} = witness_monitor_machine:new(Spec),
    Events = witness_spec_reelay_text:events(Example, Values),
    {Before, After} = lists:split(Style rem (length(Events) + 1), Events),
    {Outcomes, Final} = case witness_monitor_machine:run(Before, Machine) of
        {Some, {ok, Next}} ->
            case witness_monitor_machine:run(After, reloaded(Next, Spec, Style)) of
                {Others, {ok, Last}} ->
                    {Rest, End} = witness_monitor_machine:finish(complete, Last),
                    {Some ++ Others ++ Rest, End};
                {Others, {decided, End}} -> {Some ++ Others, End}
            end;
        {Some, {decided, End}} -> {Some, End}
    end,
    case Traces of
        [_] -> [{1, verdict(Final)} || Values =/= [[]]];
        %% After a verdict, the next event of the slice begins a new trace.
        _ -> lists:ukeysort(1, [{Key, verdict(Outcome)} || #{slice := [{_, Key}]} = Outcome <- Outcomes])
    end.

verdict(#{verdict := no, event := #{event := {recv, _, _, Message, _}}}) -> element(3, Message);
verdict(#{verdict := yes, event := undefined}) -> none;
verdict(Other) -> Other.

%% Some machines are saved and loaded between two events.
reloaded(Machine, Spec, Style) when Style rem 4 =:= 0 ->
    Saved = witness_monitor_machine:save(Machine),
    {ok, Loaded} = witness_monitor_machine:load(binary_to_term(term_to_binary(Saved)), Spec),
    Loaded;
reloaded(Machine, _, _) -> Machine.

%% An example that differs, and of which no example with one thing less does.
smaller({Example, _} = Difference, Reelay) ->
    case first_difference(witness_spec_reelay_gen:smaller(Example), Reelay) of
        none -> Difference;
        Smaller -> smaller(Smaller, Reelay)
    end.

first_difference([], _) -> none;
first_difference([Example | Others], Reelay) ->
    case compare([Example], Reelay) of
        {_, [Difference]} -> Difference;
        {_, []} -> first_difference(Others, Reelay)
    end.

format({#{mode := Mode, formula := Formula, traces := Traces, unit := Unit} = Example, Detail}, Reelay, Seed) ->
    ask(Example, Reelay),
    Values = answers(Example, Reelay),
    Requests = [element(1, witness_spec_reelay_text:request(Places, Example))
                || [_ | _] = Places <- witness_spec_reelay_gen:places(Example)],
    [io_lib:format("~ndifference (file ~w), ~w, a unit is 1 ~s~n  formula ~tp~n", [Seed, Mode, Unit, Formula]),
     [io_lib:format("  for Reelay ~ts~n", [Text]) || #{formula := Text} <- Requests],
     witness_spec_reelay_text:property("difference", Example),
     [["  trace\n", [item(Item) || Item <- Trace]] || Trace <- Traces],
     io_lib:format("  Reelay  ~ts~n  Witness ~ts~n  ~tp~n", [bits(Values), witness_values(Example, Values), Detail])].

item(#{kind := Kind, holds := Holds, grid := Grid, shift := Shift}) ->
    Names = [lists:nth(I, witness_spec_reelay_gen:propositions()) || I <- Holds],
    io_lib:format("    ~w at ~b units ~b ns: ~ts~n", [Kind, Grid, Shift, lists:join(" ", Names)]).

bits(Values) -> lists:join(" | ", [[bit(Value) || Value <- Steps] || Steps <- Values]).

bit(true) -> $1;
bit(false) -> $0;
bit(neither) -> $?.

%% Witness's values at the steps, or why there are none.
witness_values(Example, Values) ->
    Every = Example#{question => every},
    case compile([Every]) of
        {ok, #{module := Module} = Map} ->
            try
                bits([corrected(Module, Every, Key, Values, Steps, length(Steps)) || {Key, Steps} <- lists:enumerate(Values)])
            catch
                Class:Reason -> io_lib:format("~tp", [{Class, Reason}])
            after
                witness_spec:unload(Map)
            end;
        {error, _} -> "are not known"
    end.

%% Expected values are corrected until no step is wrong any more.
corrected(_, _, _, _, Now, Left) when Left < 0 -> Now;
corrected(Module, Example, Key, Values, Now, Left) ->
    Given = lists:sublist(Values, Key - 1) ++ [[Value =:= true || Value <- Now] | lists:nthtail(Key, Values)],
    case lists:keyfind(Key, 1, verdicts(Module, 1, Example, Given)) of
        {Key, N} when is_integer(N) ->
            First = lists:nth(N, lists:nth(Key, Values)),
            Corrected = case lists:nth(N, Now) of First -> not First; _ -> neither end,
            corrected(Module, Example, Key, Values, lists:sublist(Now, N - 1) ++ [Corrected | lists:nthtail(N, Now)], Left - 1);
        _ -> Now
    end.
