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

-doc "Starts to listen. Called while the VM boots.".
-spec main() -> ok.
main() ->
    _ = spawn(fun listen/0),
    ok.

-spec listen() -> no_return().
listen() ->
    process_flag(trap_exit, true),
    try
        Port = open_port({fd, 3, 4}, [binary, {packet, 4}]),
        receive
            {Port, {data, Data}} ->
                {start, Job} = binary_to_term(Data),
                {Searching, Monitor} = spawn_monitor(?MODULE, search, [Job, self()]),
                relay(Port, Searching, Monitor, now_ms());
            {'EXIT', Port, _} -> ok
        end
    after
        halt(0, [{flush, true}])
    end.

%% Due: from when on the next number of schedules is reported.
relay(Port, Searching, Monitor, Due) ->
    receive
        {schedules, Number} = Progress ->
            Now = now_ms(),
            case Number =:= 0 orelse Now >= Due of
                true ->
                    tell(Progress, Port),
                    relay(Port, Searching, Monitor, Now + ?PROGRESS_MS);
                false -> relay(Port, Searching, Monitor, Due)
            end;
        {'DOWN', Monitor, process, Searching, {searched, Result}} -> bye(Result, Port);
        {'DOWN', Monitor, process, Searching, Reason} -> bye({error, {vm, Reason}}, Port);
        {Port, {data, _}} -> ok;
        {'EXIT', Port, _} -> ok
    end.

%% What a VM has written that has ended may be lost.
bye(Result, Port) ->
    tell(Result, Port),
    receive
        {Port, {data, _}} -> ok;
        {'EXIT', Port, _} -> ok
    end.

tell(What, Port) -> try port_command(Port, term_to_binary(What)) catch error:badarg -> false end.

-doc false.
-spec search(map(), pid()) -> no_return().
search(#{run := Start} = Job, To) ->
    _ = [exit({searched, {error, Reason}}) || {error, Reason} <- [prepare(Job)]],
    {ok, Rows} = witness_event_wrapper:table(maps:get(signatures, Job, [])),
    Monitors = witness_search_monitors:load(maps:get(specs, Job), Rows),
    Run = (maps:with([steps, crashes, normal, expect, left, timeouts, delivery, busy_ms], Job))#{
        rows => Rows,
        start => witness_search_applications:first_call(maps:get(applications, Job, []), Start),
        applications => maps:get(applications, Job, []), leader => swallow_output(), monitors => Monitors},
    ok = witness_search_limit:start(maps:get(memory, Job)),
    ok = witness_search_process:protect(processes()),
    To ! {schedules, 0},
    Begin = now_ms(),
    Until = case Job of #{for := Time} when is_integer(Time) -> Begin + Time; #{} -> infinity end,
    exit({searched, case searched(Run#{digests => maps:get(step_digests, Job, false)}, Job#{until => Until}, To) of
        {ok, Report} -> {ok, Report#{elapsed_ms => now_ms() - Begin}};
        {error, _} = Error -> Error
    end}).

now_ms() -> erlang:monotonic_time(millisecond).

%% The first schedule is the default order. From its length and its profile strategies know what to expect: no schedule depends on
%% another one.
searched(Run, Job, To) ->
    Profiling = lists:member(surw, map_get(strategies, Job)),
    Result = once(Run#{strategy => witness_search_strategy:reversing([]), logging => false, profiling => Profiling}),
    First = maps:with([length, profile], Result),
    Known = add(Result, #{unfaithful => [], digests => [], monitored => 0, seen => signatures(Result)}),
    case Job of
        #{schedule := 1} -> found(1, none, Result, Known, Run, Job);
        #{schedule := Number} ->
            {Name, Strategy} = strategy(Number, First, Job),
            Only = once(Run#{strategy => Strategy, logging => false}),
            found(Number, Name, Only, add(Only, Known), Run, Job);
        #{} ->
            case is_failure(Result, Job) of
                true -> found(1, none, Result, Known, Run, Job);
                false -> schedules(2, Known, First, Run, Job, To)
            end
    end.

prepare(#{calls := Calls, handler := Handler, woven := Woven} = Job) ->
    ok = witness_event:use_syntax(maps:get(syntax, Job, auto)),
    ok = witness_weave_cache:check_use(Woven),
    ok = persistent_term:put(witness_search, #{calls => Calls}),
    ok = witness_record_runtime:set_runtime(witness_search_runtime),
    %% What woven code calls must be loaded before the module is woven that loads modules.
    ok = code:ensure_modules_loaded([witness_search_runtime, witness_search_process, witness_search_messages,
                                     witness_search_results,
                                     witness_search_spawn, witness_search_scheduler, witness_search_identity, witness_search_world,
                                     witness_search_limit, witness_search_recording,
                                     witness_search_strategy, witness_search_random, witness_search_pct, witness_search_pos,
                                     witness_search_surw,
                                     witness_search_conflict, witness_search_memory, witness_search_reversal,
                                     witness_search_applications,
                                     witness_record_calls, witness_replay_calls, witness_weave_runtime,
                                     witness_weave_funs, witness_record_dictionary, witness_record_shared, beam_lib,
                                     prim_eval, calendar]),
    ok = witness_record_handler:load(Handler),
    ok = witness_search_memory:init(),
    Prepared = witness_search_applications:prepare(Job),
    %% An application outside may have set it.
    ok = logger:set_primary_config(level, none),
    ok = persistent_term:put(witness_search, #{calls => Calls, controller => witness_search_applications:controller()}),
    Prepared.

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

schedules(Number, Known, _, _, #{schedules := Most}, _) when Number > Most -> {ok, Known#{outcome => passed, schedules => Most}};
schedules(Number, Known, First, Run, #{until := Until} = Job, To) ->
    To ! {schedules, Number - 1},
    %% An atom is above all numbers.
    case now_ms() >= Until of
        true -> {ok, Known#{outcome => passed, schedules => Number - 1}};
        false -> one(Number, Known, First, Run, Job, To)
    end.

one(Number, Known0, First, Run, Job, To) ->
    {Name, Strategy} = strategy(Number, First, Job),
    Result = once(Run#{strategy => Strategy, logging => false}),
    Known = add(Result, Known0),
    case is_failure(Result, Job) of
        false -> schedules(Number + 1, Known, First, Run, Job, To);
        true -> found(Number, Name, Result, Known, Run, Job)
    end.

strategy(Number, First, #{seed := Seed, strategies := Strategies, depth := Depth}) ->
    Name = lists:nth((Number - 2) rem length(Strategies) + 1, Strategies),
    {Name, witness_search_strategy:new(Name, First#{seed => erlang:phash2({Seed, Number}), depth => Depth})}.

%% With how many processes of each.
signatures(#{births := Births}) ->
    Functions = [{M, F, length(Args)} || _ := #{signature := {M, F, Args}} <- Births],
    Counts = maps:groups_from_list(fun(Function) -> Function end, Functions),
    [{M, F, Arity, length(Of)} || {M, F, Arity} := Of <- Counts].

add(#{digest := Digest, monitored := New} = Result, #{digests := Digests, monitored := Monitored} = Known) ->
    Known#{monitored := Monitored bor New,
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
                #{} -> shrink(Again, Run, ?SHRINK_ROUNDS)
            end,
            Written = once(Run#{strategy => witness_search_strategy:replaying(Smallest), logging => true, tracing => true}),
            Tried = Known#{schedules => Number, number => Number, strategy => Name},
            record(Written, maps:merge(Tried#{reversed => witness_search_order:describe(Reversed, Written, Others)},
                                       explanation(Reversed, Written)), Job);
        false -> {error, {not_repeated, Number}}
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
shrink(#{trace := Trace, length := Length} = Failed, Run, Rounds) ->
    Cause = witness_search_cause:of_run(Failed),
    Try = fun(Pairs) -> once(Run#{strategy => witness_search_strategy:reversing(Pairs), logging => false, tracing => true}) end,
    #{trace := Default} = First = Try([]),
    Named = witness_search_reversal:named(lists:reverse(Trace)),
    Ordered = witness_search_reversal:named(lists:reverse(Default)),
    Happens = #{Name => [] || {Name, _} <- Named},
    Never = [Step || {Name, _} = Step <- Ordered, not is_map_key(Name, Happens)],
    Fails = fun(Some) -> witness_search_cause:of_run(Try(Some)) =:= Cause end,
    Runs = min(?SHRINK_RUNS, ?SHRINK_STEPS div max(1, Length)),
    case smallest([{Named, Ordered}, {Named ++ Never, Ordered}, {Named ++ Never, []}], Fails, Runs) of
        none -> {[], Failed, []};
        Smallest ->
            Smaller = Try(Smallest),
            case Rounds =:= 0 orelse has_steps(Smallest, Smaller) of
                true -> {Smallest, Smaller, [Failed, First]};
                false -> shrink(Smaller, Run, Rounds - 1)
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
    {Pid, Monitor} = spawn_opt(?MODULE, run, [Run], [monitor, {priority, max}]),
    receive
        {'DOWN', Monitor, process, Pid, {ran, Result}} -> Result;
        {'DOWN', Monitor, process, Pid, Reason} -> error(Reason)
    end.

-doc false.
-spec run(witness_search_scheduler:options()) -> no_return().
run(Run) -> exit({ran, witness_search_scheduler:run(Run)}).
