-module(witness_search_node).
-moduledoc """
Searches inside a VM of its own: runs the program by one schedule after the other (`m:witness_search_scheduler`), and reports to
`m:witness_search_vm` over a pipe. That VM is started with `main/0`, and ends with the pipe.
""".

-export([main/0]).
-export([search/2, run/1]).

-define(PROGRESS_MS, 250).
-define(MAX_UNFAITHFUL, 20).
%% The most runs in which a failure is made smaller, and steps of all of them.
-define(SHRINK_RUNS, 1_000).
-define(SHRINK_STEPS, 1_000_000).
-define(SHRINK_ROUNDS, 3).
%% Ways to fail that are told apart with `all'.
-define(MAX_FAILURES, 20).
%% Of the scheduler of a run. What a short run makes fits in it, so it collects no garbage.
-define(HEAP_WORDS, 20_000).

-doc "Starts to listen. Called while the VM boots.".
-spec main() -> ok.
main() ->
    _ = spawn(fun listen/0),
    ok.

-spec listen() -> no_return().
listen() ->
    process_flag(trap_exit, true),
    ok = witness_record_boot:delete(),
    try
        Port = open_port({fd, 3, 4}, [binary, {packet, 4}]),
        receive
            {Port, {data, Data}} ->
                {start, Job} = binary_to_term(Data),
                {Searching, Monitor} = spawn_monitor(?MODULE, search, [Job, self()]),
                true = register(?MODULE, self()),
                ?MODULE = ets:new(?MODULE, [named_table, public]),
                ok = witness_search_limit:start(maps:get(memory, Job)),
                relay(Port, Searching, Monitor, none, now_ms());
            {'EXIT', Port, _} -> ok
        end
    after
        %% A native function may never return.
        halt(0, [{flush, false}])
    end.

%% Due: from when on the next number of schedules is reported. The last number is reported while the VM lives: the answer may be
%% that the search is to end. There is no timer here (`witness_search_limit`).
relay(Port, Searching, Monitor, Last, Due) ->
    receive
        {schedules, Number} = Progress ->
            Now = now_ms(),
            case Number =:= 0 orelse Now >= Due of
                true ->
                    tell(Progress, Port),
                    relay(Port, Searching, Monitor, Progress, Now + ?PROGRESS_MS);
                false -> relay(Port, Searching, Monitor, Progress, Due)
            end;
        %% A function outside that may never return (`witness_search_results').
        {calls, From, Called} ->
            tell({calls, Called}, Port),
            From ! {?MODULE, told},
            relay(Port, Searching, Monitor, Last, Due);
        lives ->
            tell(lives, Port),
            _ = Last =:= none orelse tell(Last, Port),
            relay(Port, Searching, Monitor, Last, Due);
        {'DOWN', Monitor, process, Searching, {searched, Result}} -> bye(Result, Port);
        {'DOWN', Monitor, process, Searching, Reason} -> bye({error, {vm, Reason}}, Port);
        {Port, {data, ~"stop"}} ->
            Searching ! {?MODULE, stop},
            relay(Port, Searching, Monitor, Last, Due);
        {'EXIT', Port, _} -> ok
    end.

%% What a VM has written that has ended may be lost.
bye(Result, Port) ->
    tell(Result, Port),
    receive
        {Port, {data, ~"bye"}} -> ok;
        {'EXIT', Port, _} -> ok
    end.

tell(What, Port) -> try port_command(Port, term_to_binary(What)) catch error:badarg -> false end.

-doc false.
-spec search(map(), pid()) -> no_return().
search(#{run := Start} = Job, To) ->
    _ = [exit({searched, {error, Reason}}) || {error, Reason} <- [prepare(Job)]],
    {ok, Rows} = witness_event_wrapper:table(maps:get(signatures, Job, [])),
    Monitors = witness_search_monitors:load(maps:get(specs, Job), Rows),
    Run = (maps:with([steps, crashes, normal, expect, left, mailboxes, deadlocks, timeouts, delivery, busy_ms], Job))#{
        rows => Rows,
        start => witness_search_applications:first_call(maps:get(applications, Job, []), Start),
        applications => maps:get(applications, Job, []), leader => swallow_output(), monitors => Monitors},
    ok = witness_search_process:protect(processes()),
    To ! {schedules, 0},
    Begin = now_ms(),
    Until = case Job of #{for := Time} when is_integer(Time) -> Begin + Time; #{} -> infinity end,
    exit({searched, case searched(Run#{digests => maps:get(step_digests, Job, false)}, Job#{until => Until}, To) of
        {ok, Report} ->
            {ok, Report#{elapsed_ms => now_ms() - Begin, properties => witness_search_monitors:properties(Monitors)}};
        {error, _} = Error -> Error
    end}).

now_ms() -> erlang:monotonic_time(millisecond).

%% The first schedule is the default order. From its length and its profile strategies know what to expect: no schedule depends on
%% another one.
searched(Run, Job, To) ->
    Profiling = lists:member(surw, map_get(strategies, Job)),
    Result = once(Run#{strategy => witness_search_strategy:reversing([]), logging => false, profiling => Profiling,
                        signatures => true}),
    First = maps:with([length, profile], whole(Result, Profiling, Run, Job)),
    Known = add(Result, #{unfaithful => [], digests => [], taken => #{}, seen => signatures(Result), failures => #{},
                          omitted => 0}),
    case Job of
        #{schedule := 1} -> only(found(1, none, Result, Known, Run, Job));
        #{schedule := Number} ->
            {Name, Strategy} = strategy(Number, First, Job),
            Only = once(Run#{strategy => Strategy, logging => false}),
            only(found(Number, Name, Only, add(Only, Known), Run, Job));
        #{} -> judged(1, none, Result, Known, First, Run, Job, To)
    end.

only({ok, Report}) -> {ok, without_failures(Report)};
only({error, _} = Error) -> Error.

without_failures(Report) -> maps:without([failures, omitted], Report).

%% The first run, or if it fails, one that goes on then, as others may do. For `surw` the monitors say what is interesting, so a
%% violation ends it.
whole(Result, Profiling, Run, Job) ->
    case is_failure(Result, Job) of
        true ->
            Unjudged = maps:remove(expect, Run#{crashes => none, left => false, mailboxes => false, deadlocks => false}),
            Monitored = case Profiling of true -> Unjudged; false -> Unjudged#{monitors => none} end,
            once(Monitored#{strategy => witness_search_strategy:reversing([]), logging => false, profiling => Profiling});
        false -> Result
    end.

prepare(#{calls := Calls, handler := Handler, woven := Woven, observed := Observed} = Job) ->
    ok = witness_event:use_syntax(maps:get(syntax, Job, auto)),
    ok = witness_weave_cache:check_use(Woven),
    ok = persistent_term:put(witness_search, #{calls => Calls, observed => Observed}),
    ok = witness_record_runtime:set_runtime(witness_search_runtime),
    %% What woven code calls must be loaded before the module is woven that loads modules.
    ok = code:ensure_modules_loaded([witness_search_runtime, witness_search_process, witness_search_messages,
                                     witness_search_results,
                                     witness_search_spawn, witness_search_scheduler, witness_search_identity, witness_search_world,
                                     witness_search_limit, witness_search_recording, witness_search_events,
                                     witness_search_possible, witness_search_tree,
                                     witness_search_strategy, witness_search_random, witness_search_pct, witness_search_pos,
                                     witness_search_surw,
                                     witness_search_conflict, witness_search_memory, witness_search_reversal,
                                     witness_search_applications, witness_search_outside,
                                     witness_search_circle, witness_run_remaining,
                                     witness_monitor_requests, witness_monitor_expiry, witness_spec_time, witness_spec_value,
                                     witness_spec_window, witness_monitor_past, witness_monitor_bloom,
                                     witness_record_calls, witness_replay_calls, witness_weave_runtime,
                                     witness_weave_funs, witness_record_dictionary, witness_record_shared, beam_lib,
                                     prim_eval, calendar]),
    ok = witness_record_handler:load(Handler),
    ok = witness_search_memory:init(),
    case witness_search_applications:prepare(Job) of
        {ok, Servers} ->
            %% An application outside may have set it.
            ok = logger:set_primary_config(level, none),
            persistent_term:put(witness_search, #{calls => Calls, observed => Observed, servers => Servers});
        {error, _} = Error -> Error
    end.

%% The output of the program is not shown: it would be that of thousands of runs. As in a plain run, its group leader is `user`.
swallow_output() ->
    [Leader | _] = [begin
                        Device = spawn_link(fun swallow/0),
                        true = unregister(Name),
                        true = register(Name, Device),
                        Device
                    end || Name <- [user, standard_error]],
    Leader.

-spec swallow() -> no_return().
swallow() ->
    receive
        {io_request, From, As, Request} ->
            From ! {io_reply, As, witness_search_messages:reply(Request)},
            swallow();
        _ -> swallow()
    end.

schedules(Number, Known, _, _, #{schedules := Most} = Job, _) when Number > Most -> ended(schedules, Most, Known, Job);
schedules(Number, Known, First, Run, Job, To) ->
    To ! {schedules, Number - 1},
    case is_over(Job) of
        false ->
            {Name, Strategy} = strategy(Number, First, Job),
            Result = once(Run#{strategy => Strategy, logging => false}),
            judged(Number, Name, Result, add(Result, Known), First, Run, Job, To);
        Why -> ended(Why, Number - 1, Known, Job)
    end.

%% Why no further schedule begins.
is_over(#{until := Until}) ->
    receive
        {?MODULE, stop} = Stop ->
            self() ! Stop,
            interrupted
    after 0 ->
        %% An atom is above all numbers.
        case now_ms() >= Until of
            true -> time;
            false -> false
        end
    end.

judged(Number, Name, Result, Known, First, Run, #{all := All} = Job, To) ->
    case is_failure(Result, Job) of
        false -> schedules(Number + 1, Known, First, Run, Job, To);
        true when All ->
            case group(Number, Name, Result, Known, Run, Job) of
                {ok, More} -> schedules(Number + 1, More, First, Run, Job, To);
                {ended, Why} -> ended(Why, Number, Known, Job)
            end;
        true -> only(found(Number, Name, Result, Known, Run, Job))
    end.

%% Counts a failure. One that is new is repeated, made smaller and recorded in a folder of its own.
group(Number, Name, #{outcome := Outcome} = Result, #{failures := Failures, omitted := Omitted} = Known, Run,
      #{dir := Dir} = Job) ->
    Cause = witness_search_cause:of_run(Result),
    Place = map_size(Failures) + 1,
    case Failures of
        #{Cause := #{count := Count} = Failure} -> {ok, Known#{failures := Failures#{Cause := Failure#{count := Count + 1}}}};
        #{} when Place > ?MAX_FAILURES -> {ok, Known#{omitted := Omitted + 1}};
        #{} ->
            IsResult = witness_search_scheduler:is_result(Outcome),
            _ = IsResult andalso file:make_dir(Dir) =:= ok andalso file:change_mode(Dir, 8#700),
            case found(Number, Name, Result, #{}, Run, Job#{dir => filename:join(Dir, integer_to_list(Place))}) of
                {ok, Found} when IsResult ->
                    Failure = (maps:remove(schedules, Found))#{count => 1, place => Place},
                    {ok, Known#{failures := Failures#{Cause => Failure}}};
                {ok, Found} -> {ended, {no_result, Found}};
                {error, Reason} -> {ended, {error, Reason}}
            end
    end.

%% What was found is the result, whatever has ended the search.
ended(Why, Schedules, #{failures := Failures} = Known, #{all := All}) when map_size(Failures) =:= 0 ->
    Report = maps:merge((without_failures(Known))#{schedules => Schedules}, #{failures => [] || All}),
    case Why of
        {error, Reason} -> {error, Reason};
        {no_result, Found} -> {ok, maps:merge(Report, Found)};
        interrupted -> {ok, Report#{outcome => interrupted}};
        _ -> {ok, Report#{outcome => passed}}
    end;
ended(Why, Schedules, #{failures := Failures} = Known, _) ->
    Sorted = lists:sort(fun(#{place := One}, #{place := Two}) -> One < Two end, maps:values(Failures)),
    {ok, Known#{outcome => failed, schedules => Schedules, ended => Why,
                failures => [maps:remove(place, Failure) || Failure <- Sorted]}}.

strategy(Number, First, #{period := Period} = Job) when Number > Period ->
    strategy((Number - 1) rem Period + 1, First, Job);
strategy(1, _, _) -> {none, witness_search_strategy:reversing([])};
strategy(Number, First, #{seed := Seed, strategies := Strategies, depth := Depth}) ->
    Name = lists:nth((Number - 2) rem length(Strategies) + 1, Strategies),
    {Name, witness_search_strategy:new(Name, First#{seed => erlang:phash2({Seed, Number}), depth => Depth})}.

%% With how many processes of each.
signatures(#{births := Births}) ->
    Functions = [{M, F, length(Args)} || _ := #{signature := {M, F, Args}} <- Births],
    Counts = maps:groups_from_list(fun(Function) -> Function end, Functions),
    [{M, F, Arity, length(Of)} || {M, F, Arity} := Of <- Counts].

add(#{digest := Digest, taken := New} = Result, #{digests := Digests, taken := Taken} = Known) ->
    Known#{taken := witness_search_monitors:add_taken(Taken, New),
           unfaithful := unfaithful(Result, Known), digests := [Digest || Digest =/= none] ++ Digests}.

%% The same schedule again; then the one with the fewest differences from the first one that fails in the same way. In that one each
%% process writes down what it does. What is no result was not controlled to its end, and would not be the same again.
found(Number, Name, #{outcome := Outcome} = Result, Known, Run, Job) ->
    case witness_search_scheduler:is_result(Outcome) of
        true -> found_again(Number, Name, Result, Known, Run, Job);
        false ->
            {ok, maps:merge(Known#{schedules => Number, number => Number, strategy => Name, processes => processes(Result)},
                            maps:with([outcome, length, switches], Result))}
    end.

found_again(Number, Name, #{choices := Choices} = Result, Known, Run, Job) ->
    Again = once(Run#{strategy => witness_search_strategy:replaying(Choices), logging => false, tracing => true}),
    case witness_search_cause:of_run(Again) =:= witness_search_cause:of_run(Result) andalso maps:get(choices, Again) =:= Choices of
        true ->
            %% The first schedule is the default order itself.
            {Reversed, #{choices := Smallest}, Others} = case Job of
                #{schedule := _} -> {[], Again, []};
                #{} when Number =:= 1 -> {[], Again, []};
                #{} -> shrink(Again, Run, Job, ?SHRINK_ROUNDS)
            end,
            Written = once(Run#{strategy => witness_search_strategy:replaying(Smallest), logging => true, tracing => true}),
            Tried = Known#{schedules => Number, number => Number, strategy => Name},
            record(Written, maps:merge(Tried#{reversed => witness_search_order:describe(Reversed, Written, Others)},
                                       explanation(Reversed, Written)), Job);
        false -> {error, {not_repeated, Number, unfaithful(Again, #{unfaithful => unfaithful(Result, #{unfaithful => []})})}}
    end.

record(#{outcome := Outcome, length := Length, switches := Switches} = Result, Known, #{dir := Dir} = Job) ->
    case witness_search_recording:write(Dir, Result, Job) of
        ok ->
            {ok, Known#{outcome => Outcome, length => Length, switches => Switches, processes => processes(Result),
                        recorded => Dir}};
        {error, Reason} -> {error, {not_written, Reason}}
    end.

%% A violation is explained by a replay.
explanation(_, #{outcome := {violated, _, _}}) -> #{};
explanation(Reversed, Written) -> #{explanation => witness_search_chart:explain(Reversed, Written)}.

%% The pairs, a run with them, and the runs that have all of their steps. A step of these may not be there in the smaller run: then
%% the pairs are those of the smaller run, if this has pairs with steps that are.
shrink(#{trace := Trace, length := Length} = Failed, Run, #{all := All} = Job, Rounds) ->
    Cause = witness_search_cause:of_run(Failed),
    Try = fun(Pairs) -> once(Run#{strategy => witness_search_strategy:reversing(Pairs), logging => false, tracing => true}) end,
    #{trace := Default} = First = Try([]),
    Named = witness_search_reversal:named(lists:reverse(Trace)),
    Ordered = witness_search_reversal:named(lists:reverse(Default)),
    Happens = #{Name => [] || {Name, _} <- Named},
    Never = [Step || {Name, _} = Step <- Ordered, not is_map_key(Name, Happens)],
    %% With `all` the time is for other failures too.
    Fails = fun(Some) -> not (All andalso is_over(Job) =/= false) andalso witness_search_cause:of_run(Try(Some)) =:= Cause end,
    Runs = min(?SHRINK_RUNS, ?SHRINK_STEPS div max(1, Length)),
    case smallest([{Named, Ordered}, {Named ++ Never, Ordered}, {Named ++ Never, []}], Fails, Runs) of
        none -> {[], Failed, []};
        Smallest ->
            Smaller = Try(Smallest),
            case Rounds =:= 0 orelse has_steps(Smallest, Smaller) of
                true -> {Smallest, Smaller, [Failed, First]};
                false -> shrink(Smaller, Run, Job, Rounds - 1)
            end
    end.

%% What never happens in the failed run would have come later. So it may have to wait. And pairs that the default order has may be
%% needed: with other pairs it does not have them.
smallest([{Named, Without} | Others], Fails, Runs) ->
    case witness_search_reversal:shrink(witness_search_reversal:pairs(Named, Without), Fails, Runs) of
        none -> smallest(Others, Fails, Runs);
        Smallest -> Smallest
    end;
smallest([], _, _) -> none.

has_steps(Pairs, #{trace := Trace}) ->
    Steps = maps:from_list(witness_search_reversal:named(lists:reverse(Trace))),
    lists:all(fun({First, Second}) -> is_map_key(First, Steps) andalso is_map_key(Second, Steps) end, Pairs).

is_failure(#{outcome := returned}, _) -> false;
is_failure(#{outcome := halted}, _) -> false;
is_failure(#{outcome := {deadlock, _}}, #{deadlocks := Deadlocks}) -> Deadlocks;
is_failure(_, _) -> true.

unfaithful(#{unfaithful := New}, #{unfaithful := Known}) ->
    lists:sublist(lists:uniq(Known ++ [What || {_, What} <- New]), ?MAX_UNFAITHFUL).

processes(#{births := Births, alive := Alive, outcome := Outcome}) ->
    Named = case Outcome of {_, Id, _} when is_integer(Id) -> [Id]; _ -> [] end,
    #{Id => maps:merge(#{pid => Pid, signature => Signature}, maps:get(Id, Alive, #{}))
      || Id := #{pid := Pid, signature := Signature} <- Births, is_map_key(Id, Alive) orelse lists:member(Id, Named)}.

%% Each run has a process of its own, so that it finds an empty mailbox. No process of the program keeps it from running.
once(Run) ->
    {Pid, Monitor} = spawn_opt(?MODULE, run, [Run], [monitor, {priority, max}, {min_heap_size, ?HEAP_WORDS}]),
    receive
        {'DOWN', Monitor, process, Pid, {ran, Result}} -> Result;
        {'DOWN', Monitor, process, Pid, Reason} -> error(Reason)
    end.

-doc false.
-spec run(witness_search_scheduler:options()) -> no_return().
run(Run) -> exit({ran, witness_search_scheduler:run(Run)}).
