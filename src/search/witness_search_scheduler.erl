-module(witness_search_scheduler).
-moduledoc """
Runs a program once, by a schedule (`run/1`).

The calling process is the scheduler. It has the world (`m:witness_search_world`), asks the strategy which step comes next, performs it,
lets the process go on that has acted, and waits until that one is parked at its next operation. *Invariant:* when the strategy is asked,
no controlled process runs. So a run is a function of the program and the choices.
""".

-export([run/1, is_result/1]).
-export([tell_place/1]).

-export_type([options/0, result/0, outcome/0, birth/0, entry/0, traced/0]).

-doc """
`start`: the first call; `applications`: those that it starts before, and that are stopped after it; `steps`: the most steps;
`logging`: whether entries for a recording are wanted;
`digests`: whether a digest of all steps is wanted; `tracing`: whether all steps are, the last one first; `profiling`: whether interesting
steps are counted; `signatures`: whether births are wanted in any case, as they are of runs that are traced or logged; `leader`: the
group leader, a process outside; `monitors`: those that read the events; `rows`: those for signatures;
`busy_ms`: how long a process may run without an operation; `crashes`, `normal`, `expect`, `left`, `mailboxes`, `deadlocks`, `timeouts`,
`delivery`: as for `t:witness_search:options/0`.
""".
-type options() :: #{start := witness_search_world:start(), applications => [atom()],
                     strategy := witness_search_strategy:strategy(), steps := pos_integer(),
                     logging := boolean(), digests => boolean(), tracing => boolean(), profiling => boolean(),
                     signatures => boolean(), leader := pid(),
                     monitors => witness_search_monitors:compiled(), rows => witness_event_wrapper:table(),
                     busy_ms := pos_integer(),
                     crashes := witness_search:crashes(), normal := [atom()], expect => term(), left := boolean(),
                     mailboxes => boolean(), deadlocks => boolean(),
                     timeouts := witness_search_world:timeouts(), delivery := witness_search_world:delivery()}.

-doc """
How a run has ended: `returned`: the function has returned, and what is left waits; `left`: the function has returned, it is asked
for that these processes have ended then, and they wait for ever or there were too many steps; `not_taken`: these wait for ever,
and have messages; `violated`: a property; `crashed`: a process has ended by an error that no other one is told of, or the
function has failed, or what else is asked for; `unexpected`: the function has returned another value than the expected one, or
has ended without returning; `deadlock`: the function waits for ever, as do these processes; `circle`: these processes wait for
each other; `steps`: there were too many; `refused`: a process has called a function that cannot be controlled; `halted`: the
program has ended its VM, with this status if it is not zero; `busy`: a process ran for too long without an operation; `exceeded`:
the VM has too much memory or too many atoms, while this process ran there; `lost`: a process was ended from outside.
""".
-type outcome() :: returned | {violated, Spec :: binary(), Name :: binary() | undefined}
                 | {crashed, witness_search_world:id(), Reason :: term()}
                 | {deadlock | circle | left | not_taken, [witness_search_world:id()]}
                 | {unexpected, witness_search_world:id(), {returned, Value :: term()} | {ended, Reason :: term()}}
                 | steps | halted | {halted, witness_search_world:id(), Status :: term()}
                 | {busy | lost | refused | exceeded, witness_search_world:id(), term()}.

-type entry() :: term().

-doc "A birth (`t:witness_search_world:birth/0`), with the `signature` of the process.".
-type birth() :: #{parent := witness_search_world:id() | 0, rank := non_neg_integer(), path := witness_search_world:path(),
                   start := witness_search_world:start(), pid := pid(), signature := witness_event:signature()}.

-doc "A step that was done: what has acted, and what it has touched and done.".
-type traced() :: #{actor := witness_search_world:actor(), step := witness_search_world:step(),
                    touches := [witness_search_conflict:touch()], what := term()}.

-doc """
`choices`: which step came next, where several were possible; `births`: empty if the function has
returned and they were not asked for; `alive`: where the processes were that were alive at the end, likewise; `stops`: it was about to do
what has an entry, so a replay of its entries comes as far;
`unfaithful`: what made the run depend on more than its schedule; `entries`: of each process, the last first; `length`: how many steps.
""".
-type result() :: #{outcome := outcome(), choices := [witness_search_world:step()],
                    length := non_neg_integer(), switches := non_neg_integer(),
                    digest := none | binary(), trace := none | [traced()], profile := none | witness_search_surw:profile(),
                    births := #{witness_search_world:id() => birth()}, taken := witness_search_monitors:taken(),
                    alive := #{witness_search_world:id() => #{stack := [term()], waits := boolean(), stops := boolean(),
                                                              messages := [term()]}},
                    unfaithful := [term()], entries := #{witness_search_world:id() => [entry()]}}.

%% Of the time for which a process may run without an operation.
-define(SLICES, 10).
%% Milliseconds for which a process is asked where it is, when it has run for too long.
-define(ANSWER_MS, 1_000).

-record(run, {world :: witness_search_world:world(),
              strategy :: witness_search_strategy:strategy(),
              options :: options(),
              monitors :: witness_search_monitors:monitors(),
              violated = none :: none | outcome(),
              possible :: witness_search_possible:possible(),
              choices = [] :: [witness_search_world:step()],
              length = 0 :: non_neg_integer(),
              switches = 0 :: non_neg_integer(),
              counts = none :: none | #{witness_search_world:actor() => pos_integer()},
              trace = none :: none | [traced()],
              digest = none :: none | binary(),
              last = none :: none | witness_search_world:step(),
              stopping = false :: boolean(),
              ids = #{} :: #{pid() => witness_search_world:id()},
              reals = #{} :: #{witness_search_world:id() => pid()},
              births = #{} :: #{witness_search_world:id() => witness_search_world:birth()},
              slice_ms :: non_neg_integer(),
              unfaithful = [] :: [term()],
              entries = #{} :: #{witness_search_world:id() => [entry()]}}).

-doc "Whether the run was controlled to its end; if not, it says nothing about the program, and would not be the same again.".
-spec is_result(outcome()) -> boolean().
is_result({How, _, _}) -> not lists:member(How, [busy, lost, refused, exceeded]);
is_result(_) -> true.

-doc "Runs the program once. When this returns, none of its processes is left, unless the run is no result: then the VM has to end.".
-spec run(options()) -> result().
run(#{start := Start, leader := Leader, strategy := Strategy} = Options) ->
    World0 = witness_search_world:new(maps:with([timeouts, delivery], Options)),
    {Id, World} = witness_search_world:first(#{start => Start, leader => Leader}, World0),
    {ok, Monitors} = witness_search_monitors:read(fun() -> witness_search_events:first(World) end,
                                                  witness_search_monitors:new(maps:get(monitors, Options, none))),
    Run = #run{world = World, strategy = Strategy, options = Options, monitors = Monitors,
               slice_ms = map_get(busy_ms, Options) div ?SLICES,
               possible = witness_search_possible:new(maps:get(timeouts, Options, late)),
               digest = case Options of #{digests := true} -> <<>>; #{} -> none end,
               counts = case Options of #{profiling := true} -> #{}; #{} -> none end,
               trace = case Options of #{tracing := true} -> []; #{} -> none end},
    ok = witness_search_limit:watch(),
    {Outcome, Ended} = try loop(begin_process(Id, Start, [], Run)) catch throw:{?MODULE, How, S} -> {outcome(How, S), S} end,
    ok = witness_search_limit:end_watch(),
    Result = result(Outcome, Ended),
    ok = clear(Outcome, Ended),
    %% A module may be loaded here, which needs the persistent terms of the VM.
    Result#{births => births(Outcome, Ended)}.

%% The process may have ended the run after a call that violates a property.
outcome(How, #run{violated = none}) -> How;
outcome(How, #run{violated = Violated}) -> case is_result(How) of true -> Violated; false -> How end.

loop(#run{violated = {_, _, _} = Violated} = S) -> throw({?MODULE, Violated, S});
loop(#run{world = World0, possible = Possible0} = S0) ->
    {Changes, World} = witness_search_world:changes(World0),
    Possible = witness_search_possible:change(Changes, Possible0),
    go_on(witness_search_possible:kind(Possible), S0#run{world = World, possible = Possible}).

go_on(none, S) -> quiet(S);
go_on(times, #run{world = World, length = Length, options = #{steps := Most, left := Left} = Options} = S) ->
    case Left orelse maps:get(mailboxes, Options, false) orelse witness_search_world:is_alive(1, World) orelse is_stopping(S) of
        true when Length < Most -> loop(step(S));
        true -> goes_on(S);
        false -> returned(S)
    end;
go_on(steps, #run{length = Length, options = #{steps := Most}} = S) when Length >= Most -> goes_on(S);
go_on(steps, S) -> loop(step(S)).

%% What would end after more steps is not told from what never ends.
goes_on(#run{world = World} = S) ->
    case circle(false, S) of
        none ->
            case witness_search_world:is_alive(1, World) orelse left(witness_search_world:alive(World), S) of
                [_ | _] = Left -> {{left, Left}, S};
                _ -> {steps, S}
            end;
        Ids -> {{circle, Ids}, S}
    end.

circle(IsQuiet, #run{world = World, options = #{deadlocks := true}} = S) ->
    witness_search_circle:find(World, fun(Id) -> real(Id, S) end, IsQuiet);
circle(_, _) -> none.

%% Nothing can happen any more.
quiet(#run{world = World} = S) ->
    Ids = witness_search_world:alive(World),
    case witness_search_world:is_alive(1, World) orelse is_stopping(S) of
        true -> {{deadlock, Ids}, S};
        false ->
            case {circle(true, S), left(Ids, S), not_taken(Ids, S)} of
                {none, [], []} -> returned(S);
                {none, [], NotTaken} -> {{not_taken, NotTaken}, S};
                {none, Left, _} -> {{left, Left}, S};
                {Circle, _, _} -> {{circle, Circle}, S}
            end
    end.

%% Those of applications that are to be stopped wait until they are.
left(Ids, #run{world = World, options = #{left := true, leader := Leader} = Options} = S) ->
    Own = [Id || Id <- Ids, not is_of_server(Id, S)],
    case maps:get(applications, Options, []) =/= [] andalso controller(S) =/= none of
        true -> [Id || Id <- Own, witness_search_world:leader(Id, World) =:= Leader];
        false -> Own
    end;
left(_, _) -> [].

not_taken(Ids, #run{world = World, options = #{mailboxes := true}} = S) ->
    [Id || Id <- Ids, witness_search_world:messages(Id, World) =/= [], not is_of_server(Id, S)];
not_taken(_, _) -> [].

%% A server of OTP, which each VM has from its start on, or one of its processes. Applications are the program's.
is_of_server(1, _) -> false;
is_of_server(Id, #run{births = Births} = S) ->
    case Births of
        #{Id := #{parent := 0}} -> true;
        #{Id := #{parent := Parent}} -> Parent =/= controller(S) andalso is_of_server(Parent, S)
    end.

%% The function has returned, and nothing happens any more. The applications that were started for it are stopped, as at the end of
%% their VM, if all other processes have ended: one that may still call them would fail.
returned(#run{world = World, options = #{normal := Normal} = Options} = S) ->
    case controller(S) of
        none -> {returned, S};
        Id ->
            case maps:get(applications, Options, []) =/= [] andalso are_alone(Id, S) of
                true ->
                    loop(S#run{world = witness_search_world:tell(Id, witness_search_applications:ending(), World), stopping = true,
                               options = Options#{normal := [shutdown, killed | Normal]}});
                false -> {returned, S}
            end
    end.

controller(#run{world = World}) -> witness_search_world:adopted(application_controller, World).

is_stopping(#run{stopping = Stopping} = S) -> Stopping andalso controller(S) =/= none.

%% Whether each process but the controller belongs to an application: it has another group leader then.
are_alone(Controller, #run{world = World, options = #{leader := Leader}}) ->
    lists:all(fun(Id) -> Id =:= Controller orelse witness_search_world:leader(Id, World) =/= Leader end,
              witness_search_world:alive(World)).

step(#run{world = World, possible = Possible, choices = Choices, length = Length, options = Options, monitors = Monitors} = S0) ->
    {Step, Strategy} = choose(S0),
    Digest = digest(S0#run.digest, Step, World),
    {Effects, World1} = witness_search_world:step(Step, World),
    Counted = trace(Step, count_switch(Step, count_interesting(Step, S0))),
    S = Counted#run{strategy = Strategy, possible = witness_search_possible:seen(Possible), length = Length + 1, world = World1,
                    digest = Digest,
                    choices = case witness_search_possible:size(Possible) of 1 -> Choices; _ -> [Step | Choices] end},
    Failed = failure([Ending || Effect <- Effects, Ending <- ending(Effect)], World, Options, S),
    Read = witness_search_monitors:read(fun() -> witness_search_events:of_step(Step, World, Effects, World1) end, Monitors),
    case {Failed, Read} of
        {_, {violated, _, _} = Violated} -> throw({?MODULE, Violated, apply_last(Effects, S)});
        {none, {ok, Next}} -> apply_effects(Effects, S#run{monitors = Next});
        {Other, _} -> throw({?MODULE, Other, apply_last(Effects, S)})
    end.

%% What comes after a failure is not monitored.
apply_last(Effects, #run{monitors = Monitors} = S) ->
    (apply_effects(Effects, S#run{monitors = witness_search_monitors:new(none)}))#run{monitors = Monitors}.

apply_effects([Effect], S) -> apply_effect(Effect, S);
apply_effects(Effects, S) -> lists:foldl(fun apply_effect/2, S, Effects).

%% The VM ends with the process that keeps the applications: it ends by itself if a permanent one has ended.
failure([], _, _, _) -> none;
failure(Endings, World, Options, S) -> ended_controller(Endings, World, failed(Endings, World, Options), S).

ended_controller(Endings, World, none, #run{stopping = false}) ->
    Controller = witness_search_world:adopted(application_controller, World),
    case lists:keyfind(Controller, 2, Endings) of
        {_, _, Reason} -> {halted, Controller, {application_controller, Reason}};
        false -> none
    end;
ended_controller(_, _, Failed, _) -> Failed.

is_interesting(Step, World, Options) ->
    witness_search_monitors:is_wanted(fun() ->
        {Effects, After} = witness_search_world:step(Step, World),
        witness_search_events:of_step(Step, World, Effects, After)
    end, maps:get(monitors, Options, none)).

count_interesting(_, #run{counts = none} = S) -> S;
count_interesting(Step, #run{counts = Counts, world = World, options = Options} = S) ->
    case is_interesting(Step, World, Options) of
        true -> S#run{counts = maps:update_with(witness_search_world:actor(Step, World), fun(N) -> N + 1 end, 1, Counts)};
        false -> S
    end.

%% A strategy may let a process wait for another one in a loop, for ever. So in the second half of the steps all take turns: a run
%% that has not ended then runs for ever in a fair order.
choose(#run{possible = Possible, length = Length, strategy = Strategy, options = #{steps := Most}}) when 2 * Length > Most ->
    {witness_search_possible:nth(Length rem witness_search_possible:size(Possible) + 1, Possible), Strategy};
choose(#run{world = World, possible = Possible, strategy = Strategy, options = Options}) ->
    witness_search_strategy:choose(Possible, #{actor => fun(Step) -> witness_search_world:actor(Step, World) end,
                                               touches => fun(Step) -> witness_search_conflict:touches(Step, World) end,
                                               interesting => fun(Step) -> is_interesting(Step, World, Options) end},
                                   Strategy).

digest(none, _, _) -> none;
digest(Before, Step, World) ->
    erlang:md5([Before, term_to_binary({Step, witness_search_world:describe(Step, World)}, [deterministic])]).

%% Another one acts than the last one, although that one could.
count_switch(Step, #run{last = Step} = S) -> S;
count_switch(Step, #run{last = Last, possible = Possible, switches = Switches} = S) ->
    Forced = not is_same(Step, Last) andalso could_go_on(Last, Possible),
    S#run{last = Step, switches = case Forced of true -> Switches + 1; false -> Switches end}.

%% The same one acts in a step of a process and in its timeout.
is_same({One, Id}, {Other, Id}) -> One =:= Other orelse is_integer(Id);
is_same(One, Other) -> One =:= Other.

could_go_on(none, _) -> false;
could_go_on({_, Id}, Possible) when is_integer(Id) ->
    witness_search_possible:is_member({process, Id}, Possible) orelse witness_search_possible:is_member({timeout, Id}, Possible);
could_go_on(Step, Possible) -> witness_search_possible:is_member(Step, Possible).

trace(_, #run{trace = none} = S) -> S;
trace(Step, #run{trace = Trace, world = World} = S) ->
    S#run{trace = [traced(witness_search_world:actor(Step, World), Step, World) | Trace]}.

traced(Actor, Step, World) ->
    #{actor => Actor, step => Step, touches => witness_search_conflict:touches(Step, World),
      what => witness_search_world:describe(Step, World)}.

%% The first end of a process that is a failure.
failed([{How, Id, Reason} | Endings], World, Options) ->
    case is_crash(How, Id, Reason, World, Options) of
        true -> {crashed, Id, Reason};
        %% The function has not returned: then nothing is expected any more.
        false when Id =:= 1, is_map_key(expect, Options) -> {unexpected, Id, {ended, Reason}};
        false -> failed(Endings, World, Options)
    end;
failed([], _, _) -> none.

ending({ended, Id, Reason}) -> [{ended, Id, Reason}];
ending({kill, Id, Reason, _}) -> [{killed, Id, Reason}];
ending(_) -> [].

is_crash(How, Id, Reason, World, #{crashes := unnoticed}) ->
    %% The function of the run has failed if a signal has ended its process; any other process is ended by one that knows that.
    case {Id, How} of
        {1, killed} -> Reason =/= normal;
        {1, ended} -> is_failure(Id, Reason);
        {_, killed} -> false;
        {_, ended} -> is_failure(Id, Reason) andalso not witness_search_world:is_told(Id, World)
    end;
is_crash(_, _, Reason, _, #{crashes := any, normal := Normal}) -> not lists:member(kind(Reason), [normal | Normal]);
is_crash(_, _, Reason, _, #{crashes := assertions}) ->
    case kind(Reason) of
        {Name, _} when is_atom(Name) -> lists:prefix("assert", atom_to_list(Name));
        _ -> false
    end;
is_crash(_, _, _, _, #{crashes := none}) -> false.

kind(Reason) when is_tuple(Reason), tuple_size(Reason) > 0 -> element(1, Reason);
kind(Reason) -> Reason.

is_failure(1, Reason) -> Reason =/= normal andalso Reason =/= shutdown andalso not is_shutdown(Reason);
is_failure(_, {_, [Frame | _]}) when is_tuple(Frame), tuple_size(Frame) =:= 4 -> true;
is_failure(_, _) -> false.

is_shutdown({shutdown, _}) -> true;
is_shutdown(_) -> false.

%% Its tables are gone when this VM says that it has ended.
apply_effect({ended, Id, Reason}, S) ->
    Real = real(Id, S),
    Inherited = inherited(Real),
    Real ! {witness_search, ended},
    transfer(Inherited, Id, await_end(Real, log(Id, {exit, Reason}, S)));
apply_effect({answer, Id, Answer}, S) ->
    real(Id, S) ! {witness_search, Answer},
    await_parking(Id, S);
apply_effect({start, Id, Start, Options}, #run{world = World} = S) ->
    Begun = begin_process(Id, Start, Options, S),
    case witness_search_world:birth(Id, World) of
        #{parent := 0} -> settle(Id, Begun);
        #{} -> Begun
    end;
apply_effect({kill, Id, Reason, Status}, S0) ->
    %% A process that hibernates has noted that before.
    Waited = [waited || {waits, #{take := true}, _} <- [Status]],
    S = log(Id, {exit, Reason}, lists:foldl(fun(Entry, Acc) -> log(Id, Entry, Acc) end, S0, Waited)),
    Real = real(Id, S),
    Inherited = inherited(Real),
    true = exit(Real, kill),
    transfer(Inherited, Id, await_end(Real, S)).

%% A server of the VM is there before the program: what it and its children do until they wait is no choice.
settle(Id, #run{world = World} = S) ->
    case [Step || {Kind, Other} = Step <- witness_search_world:steps(World), Kind =:= process, Other >= Id] of
        [Step | _] ->
            {Effects, Next} = witness_search_world:step(Step, World),
            settle(Id, lists:foldl(fun apply_effect/2, S#run{world = Next}, Effects));
        [] -> S
    end.

%% Tables of this process that get a new owner with its end.
inherited(Real) -> [{Table, Data} || Table := Data <- witness_search_memory:heirs(), ets:info(Table, owner) =:= Real].

transfer(Inherited, Id, S) ->
    lists:foldl(fun({Table, Data}, #run{world = World, ids = Ids} = Acc) ->
        case ets:info(Table, owner) of
            Owner when is_map_key(Owner, Ids) ->
                Message = {'ETS-TRANSFER', witness_search_memory:virtual(Table), witness_search_world:pid(Id, World), Data},
                Acc#run{world = witness_search_world:tell(map_get(Owner, Ids), Message, World)};
            _ -> Acc
        end
    end, S, Inherited).

real(Id, #run{reals = Reals}) -> map_get(Id, Reals).

begin_process(Id, Start, Options, #run{world = World, ids = Ids, reals = Reals, births = Births,
                                       options = #{logging := Logging}} = S) ->
    Born = #{pid := Pid} = witness_search_world:birth(Id, World),
    Real = witness_search_spawn:start({Id, Pid}, Start, Logging, Options, fun witness_search_runtime:apply/3),
    true = witness_search_memory:add(Real, Pid),
    await_parking(Id, S#run{ids = Ids#{Real => Id}, reals = Reals#{Id => Real}, births = Births#{Id => Born},
                            world = witness_search_world:set_real(Id, Real, World)}).

%% The process that runs now comes to its next operation. Mostly it does so at once, and the clock is not read.
await_parking(Id, S) -> await_parking(Id, {1, none}, S#run.slice_ms, S).

%% A VM that does not run for a while, on a machine that sleeps, finds one slice over, and no more. A process that asks or logs
%% something goes on, and its time too.
await_parking(Id, {Slice, none}, S) -> await_parking(Id, {Slice, now_ms()}, S#run.slice_ms, S);
await_parking(Id, {Slice, Began}, S) ->
    case {Began + S#run.slice_ms - now_ms(), Slice} of
        {Left, _} when Left > 0 -> await_parking(Id, {Slice, Began}, Left, S);
        {_, ?SLICES} -> throw({?MODULE, {busy, Id, where_at_last(Id, S)}, S});
        {_, _} -> await_parking(Id, {Slice + 1, none}, S)
    end.

await_parking(Id, Slice, Left, #run{world = World, unfaithful = Unfaithful} = S) ->
    receive
        {parks, Id, {halt, [Status | _]}} when Status =/= 0 -> throw({?MODULE, {halted, Id, Status}, S});
        {parks, Id, {halt, _}} -> throw({?MODULE, halted(Id, S), S});
        {parks, Id, {refuse, What}} -> throw({?MODULE, {refused, Id, {What, where(real(Id, S))}}, S});
        {parks, Id, Operation} -> S#run{world = witness_search_world:park(Id, Operation, World)};
        {asks, Id, Question} ->
            {Answer, World1} = witness_search_world:query(Question, Id, World),
            real(Id, S) ! {witness_search, Answer},
            await_parking(Id, Slice, S#run{world = World1});
        {reports, Id, What} -> await_parking(Id, Slice, read_report(What, Id, S));
        {returns, Id, Value} -> await_parking(Id, Slice, returned(Id, Value, S));
        {logs, Id, Entry} -> await_parking(Id, Slice, log(Id, Entry, S));
        {unfaithful, Id, What} -> await_parking(Id, Slice, S#run{unfaithful = add_unfaithful({Id, What}, Unfaithful)});
        looks -> await_parking(Id, Slice, S);
        {exceeds, What} -> throw({?MODULE, {exceeded, Id, {What, where_at_last(Id, S)}}, S});
        {'DOWN', _, process, Real, Reason} when is_map_key(Real, S#run.ids) ->
            throw({?MODULE, {lost, map_get(Real, S#run.ids), Reason}, S})
    after Left -> await_parking(Id, {element(1, Slice), now_ms() - S#run.slice_ms}, S)
    end.

%% If a call violates a property, its process comes to its next operation all the same.
read_report(What, Id, #run{violated = none, world = World, monitors = Monitors} = S) ->
    case witness_search_monitors:read(fun() -> [witness_search_events:of_report(What, Id, World)] end, Monitors) of
        {ok, Next} -> S#run{monitors = Next};
        {violated, _, _} = Violated -> S#run{violated = Violated}
    end;
read_report(_, _, S) -> S.

%% Then the function does not return.
halted(Id, #run{options = #{expect := _}}) -> {halted, Id, 0};
halted(_, _) -> halted.

returned(Id, Value, #run{options = Options} = S) ->
    case Options of
        #{expect := Expected} when Value =/= Expected -> throw({?MODULE, {unexpected, Id, {returned, Value}}, S});
        #{} -> S#run{options = maps:remove(expect, Options)}
    end.

now_ms() -> erlang:monotonic_time(millisecond).

%% A call in a loop is named once.
add_unfaithful(What, [What | _] = Known) -> Known;
add_unfaithful(What, Known) -> [What | Known].

await_end(Real, #run{ids = Ids} = S) ->
    receive {'DOWN', _, process, Real, _} -> ok end,
    S#run{ids = maps:remove(Real, Ids)}.

log(Id, Entry, #run{entries = Entries, options = #{logging := true}} = S) ->
    S#run{entries = Entries#{Id => [Entry | maps:get(Id, Entries, [])]}};
log(_, _, S) -> S.

where(Real) ->
    case process_info(Real, current_stacktrace) of
        {_, Stack} -> witness_search_results:of_program(Stack);
        undefined -> []
    end.

%% A process in a native function does not say where it is, unless a dirty scheduler runs it. Its last call outside is that
%% function.
where_at_last(Id, #run{unfaithful = Unfaithful} = S) ->
    Real = real(Id, S),
    {Pid, Monitor} = spawn_opt(?MODULE, tell_place, [Real], [monitor, {priority, max}]),
    receive
        {'DOWN', Monitor, process, Pid, {is_at, Stack}} -> Stack
    after ?ANSWER_MS ->
        true = demonitor(Monitor, [flush]),
        true = exit(Pid, kill),
        lists:sublist([{Module, Function, Arity, []} || {Of, {foreign, {Module, Function, Arity}}} <- Unfaithful, Of =:= Id], 1)
    end.

-doc false.
-spec tell_place(pid()) -> no_return().
tell_place(Real) -> exit({is_at, where(Real)}).

%% What a run says of later ones. Signals come after their sender.
profile(#run{counts = none}) -> none;
profile(#run{counts = Counts, births = Births}) ->
    Parents = #{Path => maps:get(path, map_get(Parent, Births)) || _ := #{path := Path, parent := Parent} <- Births, Parent =/= 0},
    #{counts => Counts, parents => maps:merge(#{Signal => From || {signal, From, _} = Signal := _ <- Counts}, Parents)}.

result(Outcome, #run{world = World, trace = Trace, choices = Choices, length = Length, switches = Switches, digest = Digest,
                     unfaithful = Unfaithful, entries = Entries, ids = Ids} = S) ->
    #{outcome => Outcome, choices => lists:reverse(Choices), length => Length, switches => Switches, digest => Digest,
      taken => witness_search_monitors:taken(S#run.monitors),
      trace => Trace, profile => profile(S), unfaithful => lists:reverse(Unfaithful),
      entries => Entries,
      alive => #{Id => #{stack => stack(Id, Real, Outcome), waits => waits(Id, World), stops => stops(Id, World),
                         messages => messages(Id, Outcome, World)}
                 || is_looked_at(Outcome, S), Real := Id <- Ids, witness_search_world:is_alive(Id, World)}}.

%% The processes of most runs are not.
is_looked_at(Outcome, #run{trace = Trace, options = #{logging := Logging} = Options}) ->
    Outcome =/= returned orelse Logging orelse Trace =/= none orelse maps:get(signatures, Options, false).

births(Outcome, #run{births = Births, options = Options} = S) ->
    case is_looked_at(Outcome, S) of
        true ->
            Rows = maps:get(rows, Options, witness_event_wrapper:none()),
            #{Id => Birth#{signature => witness_event_signature:resolve(Start, Rows)} || Id := #{start := Start} = Birth <- Births};
        false -> #{}
    end.

stack(Id, _, {busy, Id, Stack}) -> Stack;
stack(Id, _, {exceeded, Id, {_, Stack}}) -> Stack;
stack(_, Real, _) -> where(Real).

%% They are copied with the result. That would take as much memory as they have, and there may be none left.
messages(_, {exceeded, _, _}, _) -> [];
messages(Id, _, World) -> witness_search_world:messages(Id, World).

waits(Id, World) ->
    case witness_search_world:status(Id, World) of
        {waits, _, _} -> true;
        _ -> false
    end.

%% Operations that have an entry when they are done, whatever their arguments.
-define(WITH_ENTRY, ['receive', ended, shared, spawn, link, monitor, timer, cancel_timer, read_timer, register, unregister, whereis,
                     is_alive, information, unalias, leader, registered, processes]).

stops(Id, World) ->
    case witness_search_world:status(Id, World) of
        {wants, Operation} when is_tuple(Operation) -> lists:member(element(1, Operation), ?WITH_ENTRY);
        {wants, Operation} -> lists:member(Operation, ?WITH_ENTRY);
        running -> false;
        _ -> true
    end.

%% The next run finds nothing of this one. After a run without a result there is none: a process in a native function does not end
%% before that returns.
clear(Outcome, #run{ids = Ids} = S) ->
    _ = [true = exit(Real, kill) || Real := _ <- Ids],
    _ = [await_end(Real, S) || is_result(Outcome), Real := _ <- Ids],
    witness_search_memory:clear().
