-module(witness_inline_coordinator).
-moduledoc """
Inline instrumentation: the process of a run that coordinates all monitors in the processes of the system.

It loads the woven modules, and has births in them observed (`m:witness_inline_registry`). It announces monitors to the run, and
sees the deaths of processes that could not report the end of their monitors. An instrumentation without monitors, which reads no
messages, watches the life of the system as in outline mode: its processes, and when all have ended.

Processes send the results of their monitors to the coordinator, which forwards them to the run in batches. No process waits for the
coordinator to handle them.

## Notes

A process that begins leaves a note (`m:witness_inline_birth_table`). Every 250 ms the coordinator checks which notes are complete.
It counts their monitors, and reports to the run how many there were of each property (`{satisfied, ...}`). If a note was there and
not complete at the previous check, the coordinator announces its monitors to the run, and monitors the process. It does the same
for a process that sends a report. So a process that is killed is found at the second check at the latest.

## Modules that are replaced

If another version of a woven module, which is not woven, is loaded during the run, events of processes that run it are missing, and
these processes cannot notice that. So before the coordinator forwards any results, it compares the modules with what was loaded.
What was found before a module was replaced is complete. From then on everything is inconclusive with the gap `replaced`. A version
that a parse transform has woven is as good as the old one, unless monitors name functions of the module: these no longer report
their calls.

## Modules that are not woven

The same holds for a process that has called a module that is not woven, and that may have sent or received for it
(`m:witness_inline_outside`): the gap names the module.

## Signals

A process does not see an exit signal that ends it. If it dies before it has reported the end of a monitor, what it has left
(`m:witness_inline_kept`) shows whether it was waiting. If so, its monitors go on here, with its `exit` and the end of the trace.
Otherwise they are `inconclusive` with the gap `signal`. All that a process sends here comes before its `'DOWN'`.

The reason of an `exit` is in that `'DOWN'`. So if a monitor declares that it reads exits, its process waits once for this process
(`{watch, P, Ref}`), until it is monitored: when it is about to wait for a message for the first time.

## Stop

First the coordinator sets the switch to off: a process that reads it from then on ends its monitors itself. Then the coordinator
asks for the state of every other process that it monitors. The VM answers for that process, which is not suspended, and sends and
receives nothing. The answer comes after all that the process has sent before. A process that does not get to answer delays the end,
until the run's time for that is over. The coordinator restores the original code after all have answered, since a process that runs
it is not judged. It reports the last of them to the run after that.
""".
-behaviour(gen_server).
-behaviour(witness_instrument).

-export([abilities/0]).
-export([start_link/1, launch/3, parents/2, alive/1, adopt_node/2, stop/1, info/1, counts/1, each/2, inherit/2, called/1,
         seen/1]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2, format_status/1]).

-export_type([config/0, tree_watch/0]).

%% The most messages of processes in a batch. After each batch the modules are compared once, and the run gets one message.
-define(MAX_MESSAGES, 1000).

-doc """
`run`: the calling process; `maps`, and all `monitors` that they may start; `modules`: what to weave, with the entry functions
of each; `dependencies`: the same, as far as they can be woven; `woven`: modules that are woven already; `functions`: those of
`modules` that report their calls and returns; `facts`: what is known of modules that are not woven; `each`: whether each verdict is
delivered by itself (`each/2`); `life`: starts the process that watches the life of the system, which is linked to the caller, and gives its counts; `scope`: for a `tree`, that process decides whether a
process belongs to the system.
""".
-type config() :: #{run := pid(), maps := [witness_instrument_map:instrumentation()], monitors := [{module(), term()}],
                    modules := [{module(), entries()}], dependencies := [{module(), entries()}], woven := [module()],
                    functions := witness_inline_plan:functions(),
                    facts := #{module() => witness_inline_reach:facts()},
                    scope := tree | node, timestamps := boolean(), each := boolean(), explain := pos_integer(),
                    max_slices := pos_integer(), signatures => witness_event_wrapper:table(),
                    life := fun(() -> tree_watch())}.

-type entries() :: all | [{atom(), arity()}].

%% In words.
-define(MIN_HEAP_WORDS, 20_000).
%% Milliseconds between two checks of the notes.
-define(CHECK_MS, 250).

-doc "The module and process of an instrumentation, and the function that gives its counts.".
-type tree_watch() :: {module(), pid(), fun(() -> #{processes := non_neg_integer(), held := non_neg_integer(), _ => _})}.

-type report() :: {monitor, {pid(), {pid(), pos_integer()}}, Meta :: map()}
                | {slice, {pid(), {pid(), pos_integer()}}, witness_monitor_sliced:outcome() | witness_monitor_sliced:undecided()}
                | {verdict, {pid(), {pid(), pos_integer()}}, witness_monitor_runner:outcome()}
                | {satisfied, Property :: map(), Monitors :: pos_integer(), Vacuous :: non_neg_integer(),
                   Covered :: non_neg_integer()}.

%% outside: the modules that are not woven, and the processes that have called them
%% code: the digests of the woven modules; replaced: those that are loaded in another version, which is not woven
%% undecided: the monitors of each process that have not reported their end, and what is needed when it is dead
%% watched: processes that are monitored already, and not announced
%% reports: for the run, the last one first
%% begun: processes with a note that was there and not complete at the last check
-record(coordinator, {config :: config(),
                      tree_watch :: tree_watch(),
                      switch :: atomics:atomics_ref(),
                      events :: counters:counters_ref(),
                      known :: ets:table(),
                      birth_table :: witness_inline_birth_table:table(),
                      kept :: witness_inline_kept:table(),
                      prepared = #{} :: #{{module(), term()} => witness_inline_monitors:prepared()},
                      watched = #{} :: #{pid() => reference()},
                      begun = #{} :: #{pid() => []},
                      marks = [] :: [atom()],
                      outside :: undefined | witness_inline_outside:outside(),
                      code = #{} :: #{module() => binary()},
                      replaced = [] :: [module()],
                      reports = [] :: [report()],
                      undecided = #{} :: #{pid() => {reference(), [pos_integer(), ...], map()}}}).

-doc false.
-spec abilities() -> witness_instrument:abilities().
abilities() ->
    #{attach => false, parents => true, servers => false, adopt_node => true, alive => true, awaited => false,
      replace => {false, inline}, each => true, acknowledge => false, lives => false, give_up => false, inherit => true,
      called => true,
      seen => true}.

-doc """
Weaves and loads the modules, and observes processes that are born in them from then on.

## Errors

`{weave, Reason}` (`witness_weave:format_error/1`); `{observed, Module, Coordinator}`: another run observes the module already.
""".
-spec start_link(config()) -> gen_server:start_ret().
start_link(Config) ->
    %% What arrives here is small and soon garbage: a large heap avoids frequent collections.
    gen_server:start_link(?MODULE, Config,
                          [{spawn_opt, [{message_queue_data, off_heap}, {min_heap_size, ?MIN_HEAP_WORDS}, {fullsweep_after, 10}]}]).

-doc "Starts the system's first process.".
-spec launch(pid(), {module(), atom(), [term()]}, GroupLeader :: pid()) -> {ok, pid()}.
launch(Coordinator, MFA, GroupLeader) -> call_tree_watch(Coordinator, launch, [MFA, GroupLeader]).

-doc "Observes the processes that these will spawn, directly or not. The run waits for them too.".
-spec parents(pid(), [witness_instrument:parent()]) -> ok.
parents(Coordinator, Parents) -> call_tree_watch(Coordinator, parents, [Parents]).

-doc "The processes of the system that have not ended.".
-spec alive(pid()) -> [pid()].
alive(Coordinator) -> call_tree_watch(Coordinator, alive, []).

-doc "The system is every process of the node for which `Own` is false, with all that they spawn.".
-spec adopt_node(pid(), fun((pid()) -> boolean())) -> ok.
adopt_node(Coordinator, Own) -> call_tree_watch(Coordinator, adopt_node, [Own]).

-doc "As in outline mode.".
-spec info(pid()) -> #{busy := non_neg_integer(), idle := non_neg_integer(), most := pos_integer()}.
info(Coordinator) -> call_tree_watch(Coordinator, info, []).

-doc "See `c:witness_instrument:called/1`: what the process that watches the system remembers.".
-spec called(pid()) -> fun((pid()) -> [atom()]).
called(Coordinator) ->
    Watch = gen_server:call(Coordinator, life, infinity),
    witness_instrument:called(witness_instrument:new(Watch)).

-doc "See `c:witness_instrument:seen/1`: what the process that watches the system has counted.".
-spec seen(pid()) -> fun(() -> [witness_instrument:sight()]).
seen(Coordinator) ->
    Watch = gen_server:call(Coordinator, life, infinity),
    witness_instrument:seen(witness_instrument:new(Watch)).

call_tree_watch(Coordinator, Function, Args) ->
    {Module, Pid, _} = gen_server:call(Coordinator, life, infinity),
    apply(Module, Function, [Pid | Args]).

-doc """
Ends observation in good order. When it returns, every monitor has been announced to the run. The outcomes of undecided monitors
follow. Before the last of them, the coordinator restores the original code where that is not in use, and reports to the run the
modules that wait for that.
""".
-spec stop(pid()) -> ok.
stop(Coordinator) -> gen_server:call(Coordinator, stop, infinity).

-doc """
The run's counts. The function also works after this process has ended. `unannounced`: monitors that have begun, and that have
not been announced to the run yet.
""".
-spec counts(pid()) -> fun(() -> #{processes := non_neg_integer(), events := non_neg_integer(), held := non_neg_integer(),
                                   unannounced := non_neg_integer()}).
counts(Coordinator) ->
    {{_, _, Counts}, Events, BirthTable} = gen_server:call(Coordinator, counted, infinity),
    fun() ->
        maps:with([processes, events, held, unannounced],
                  (Counts())#{events => counters:get(Events, 1), unannounced => witness_inline_birth_table:count(BirthTable)})
    end.

-doc """
Whether each verdict is delivered by itself from now on. Otherwise, if the only monitor of a process is satisfied, it is only
counted.
""".
-spec each(pid(), boolean()) -> ok.
each(Coordinator, Each) -> gen_server:call(Coordinator, {each, Each}, infinity).
-doc """
The announcements of monitors that are in notes. If their coordinator has died, the notes are the run's: the coordinator has not
compared the modules for them.
""".
-spec inherit(Coordinator :: pid(), witness_inline_birth_table:table()) -> [report()].
inherit(Coordinator, BirthTable) ->
    Reports = lists:append([announcements(Coordinator, P, Signature, Entries)
                            || {P, Signature, Entries, _, _} <- witness_inline_birth_table:all(BirthTable)]),
    ok = witness_inline_birth_table:delete(BirthTable),
    Reports.

-doc false.
-spec init(config()) -> {ok, #coordinator{}} | {error, term()}.
init(Config = #{run := Run, modules := Modules, dependencies := Dependencies, functions := Functions, woven := Woven, each := Each,
                life := Start}) ->
    process_flag(trap_exit, true),
    proc_lib:set_label(?MODULE),
    Known = ets:new(?MODULE, [public, {write_concurrency, true}, {read_concurrency, true}]),
    C = #coordinator{config = Config, known = Known, kept = witness_inline_kept:new(),
                     birth_table = witness_inline_birth_table:new(Run), switch = atomics:new(3, []),
                     events = counters:new(1, [write_concurrency]),
                     tree_watch = {?MODULE, self(), fun() -> #{processes => 0, held => 0} end}},
    maybe
        {ok, Prepared} ?= witness_inline_modules:prepare(Modules, Functions),
        ok = load_run_time(),
        ok ?= load_modules(Prepared),
        Also = load_dependencies(witness_inline_modules:prepare_possible(Dependencies, Functions)),
        Life = Start(),
        Everything = Woven ++ [M || {M, _} <- Modules] ++ [M || #{module := M} <- Also],
        Outside = open_outside(Everything, Config),
        Observer = new_observer(Life, witness_inline_outside:session(Outside), C),
        ok ?= claim(Everything, Observer, Life),
        %% A process that asked before the claim is in the table now. A process that asks before the switch is on is not observed.
        true = ets:insert(Known, [{P, old} || P <- processes()]),
        ok = put_each(Each, C),
        ok = atomics:put(C#coordinator.switch, 1, 1),
        _ = erlang:send_after(?CHECK_MS, self(), look),
        {ok, C#coordinator{tree_watch = Life, outside = Outside, code = digests(Woven, Prepared ++ Also),
                           prepared = maps:get(prepared, Observer),
                           marks = witness_inline_monitors:mark_keys(maps:values(maps:get(prepared, Observer)))}}
    end.

%% Monitored processes run these modules. A process that had to load one would send a message for it, which another run might see.
load_run_time() ->
    {ok, Own} = application:get_key(witness, modules),
    _ = code:ensure_modules_loaded([M || M <- Own, Prefix <- ["witness_inline", "witness_monitor", "witness_event"],
                                         lists:prefix(Prefix, atom_to_list(M))]),
    ok.

load_modules(Prepared) ->
    case witness_weave:load(Prepared, self()) of
        ok -> ok;
        {error, Reason} -> {error, {weave, Reason}}
    end.

%% A module that another run has claimed, or that cannot be loaded now, is treated as one that cannot be woven.
load_dependencies(Prepared) -> [P || P <- Prepared, witness_weave:load([P], self()) =:= ok].

open_outside(Woven, #{facts := Facts, monitors := Monitors}) ->
    witness_inline_outside:open(Woven, Facts, [M || {M, _} <- Monitors]).

claim(Modules, Observer, {Module, Pid, _}) ->
    case witness_inline_registry:claim(Modules, Observer) of
        ok -> ok;
        Error -> ok = Module:stop(Pid), Error
    end.

put_each(Each, #coordinator{switch = Switch}) -> atomics:put(Switch, 2, case Each of true -> 1; false -> 0 end).

new_observer({Instrument, Pid, _}, Session, #coordinator{config = Config, switch = Switch, events = Events, known = Known,
                                                     birth_table = BirthTable, kept = Kept}) ->
    #{maps := Maps, monitors := Monitors, timestamps := Stamped, scope := Scope} = Config,
    Common = maps:with([explain, max_slices, slice_idle], Config),
    Traits = #{Module => witness_inline_traits:of_module(Module) || Module <- lists:usort([Module || {Module, _} <- Monitors])},
    #{coordinator => self(), outside => Session, switch => Switch, events => Events, stamped => Stamped, known => Known,
      birth_table => BirthTable, kept => Kept, maps => Maps, signatures => witness_event_wrapper:of_config(Config),
      scope => case Scope of node -> fun(_) -> true end; tree -> Instrument:scope(Pid) end,
      prepared => #{M => witness_inline_monitors:prepare(Common#{monitor => M}, map_get(Module, Traits))
                    || {Module, _} = M <- Monitors}}.

-doc false.
handle_call(life, _, C = #coordinator{tree_watch = Life}) ->
    {reply, Life, C};
handle_call(counted, _, C = #coordinator{tree_watch = Life, events = Events, birth_table = BirthTable}) ->
    {reply, {Life, Events, BirthTable}, C};
handle_call({each, Each}, _, C) ->
    {reply, put_each(Each, C), C};
handle_call(stop, From, C = #coordinator{tree_watch = {Module, Pid, _}, switch = Switch}) ->
    ok = atomics:put(Switch, 1, 0),
    ok = Module:stop(Pid),
    case compare_modules(announce_all(drain(C))) of
        #coordinator{undecided = Undecided} = C1 when map_size(Undecided) =:= 0 ->
            {stop, normal, ok, send_reports(restore(C1))};
        C1 ->
            C2 = send_reports(C1),
            gen_server:reply(From, ok),
            {noreply, C2, {continue, stopped}}
    end.

-doc false.
handle_cast(_, C) -> {noreply, C}.

-doc false.
handle_info({'EXIT', _, Report}, C) when element(1, Report) =:= told; element(1, Report) =:= lost; element(1, Report) =:= watch ->
    {noreply, send_reports(drain(handle_report(Report, C)))};
handle_info({'DOWN', _, process, _, _} = Message, C) ->
    {noreply, send_reports(drain(handle_report(Message, C)))};
handle_info({trace, _, call, _} = Call, C = #coordinator{outside = Outside}) ->
    {noreply, C#coordinator{outside = witness_inline_outside:handle_call(Call, Outside)}};
handle_info(look, C = #coordinator{switch = Switch}) ->
    ok = atomics:add(Switch, 3, 1),
    _ = erlang:send_after(?CHECK_MS, self(), look),
    {noreply, send_reports(check_notes(drain(C)))};
handle_info({'EXIT', Life, Reason}, C = #coordinator{tree_watch = {_, Life, _}}) -> {stop, Reason, C};
handle_info({'EXIT', _, normal}, C) -> {noreply, C};
handle_info({'EXIT', _, Reason}, C) -> {stop, Reason, C};
handle_info(_, C) -> {noreply, C}.

%% All that is in the mailbox, up to a maximum.
drain(C) -> drain(?MAX_MESSAGES, C).

drain(0, C) -> C;
drain(Most, C) ->
    receive
        {'EXIT', P, {told, P, _} = Report} -> drain(Most - 1, handle_report(Report, C));
        {'EXIT', _, {lost, _} = Report} -> drain(Most - 1, handle_report(Report, C));
        {'EXIT', P, {watch, P, _} = Report} -> drain(Most - 1, handle_report(Report, C));
        {'DOWN', _, process, _, _} = Message -> drain(Most - 1, handle_report(Message, C))
    after 0 -> C
    end.

%% A process that reports something is announced before.
handle_report({told, P, Told}, C) -> add_outcomes(P, Told, announce(P, C));
handle_report({lost, P}, C) -> add_gaps(P, dictionary, announce(P, C));
handle_report({watch, P, Ref}, C = #coordinator{watched = Watched, undecided = Undecided}) ->
    %% The process may wait only after it is monitored.
    C1 = case is_map_key(P, Undecided) orelse is_map_key(P, Watched) of
        true -> C;
        false -> C#coordinator{watched = Watched#{P => monitor(process, P)}}
    end,
    Ref ! {watched, Ref},
    C1;
handle_report({'DOWN', _, process, P, Reason}, C = #coordinator{known = Known, watched = Watched}) when is_map_key(P, Watched) ->
    %% A process without a note, or with a complete one, needs nothing more.
    Died = case witness_inline_birth_table:open_processes(P, C#coordinator.birth_table) of
        [P] -> handle_death(P, Reason, announce(P, C));
        [] -> C#coordinator{watched = maps:remove(P, Watched)}
    end,
    true = ets:delete(Known, P),
    Died;
handle_report({'DOWN', _, process, P, Reason}, C = #coordinator{known = Known}) ->
    true = ets:delete(Known, P),
    handle_death(P, Reason, C).

%% The monitors of the process have priority: what it has reported itself is known by now.
handle_death(P, Reason, C = #coordinator{undecided = Undecided, kept = Kept, events = Events, config = #{timestamps := Stamped}}) ->
    case Undecided of
        #{P := {_, Ns, #{life := {_, Cell}} = Dead}} ->
            {Told, Count} = witness_inline_monitors:finish_dead(Dead#{reason => exit_reason(Reason)}, Stamped, Kept),
            ok = counters:add(Events, 1, Count),
            ok = witness_inline_kept:delete({P, Cell}, Kept),
            add_reports(to_reports(P, [One || One <- Told, lists:member(element(2, One), Ns)]),
                        C#coordinator{undecided = maps:remove(P, Undecided)});
        #{} -> C
    end.

%% The reason that the VM gives for a process that was dead already.
exit_reason(noproc) -> unknown;
exit_reason(Reason) -> {ok, Reason}.

%% --- notes -----------------------------------------------------------------------

%% Complete notes come first; the next check finds a note that is completed after that. The two reads see each note in the order of
%% its changes: either it was complete before, or it is taken and the process that would complete it sends a report.
check_notes(C0 = #coordinator{birth_table = BirthTable, begun = Before}) ->
    C = count_complete(C0),
    Open = witness_inline_birth_table:open_processes(BirthTable),
    {Staying, Begun} = lists:partition(fun(P) -> is_map_key(P, Before) end, Open),
    lists:foldl(fun announce/2, C#coordinator{begun = maps:from_keys(Begun, [])}, Staying).

%% No note stays. If a process completes its note before the open ones are read, the last `count_complete/1' finds it. If it does so
%% later, its note is taken, and it sends a report.
announce_all(C0 = #coordinator{birth_table = BirthTable}) ->
    C = count_complete(C0),
    count_complete(lists:foldl(fun announce/2, C#coordinator{begun = #{}}, witness_inline_birth_table:open_processes(BirthTable))).

%% A process is always in one of the two tables. So if it loses its dictionary, it does not get monitors again.
announce(P, C = #coordinator{known = Known, birth_table = BirthTable}) ->
    true = ets:insert(Known, {P, seen}),
    add_note(witness_inline_birth_table:take(P, BirthTable), C).

add_note(none, C) -> C;
add_note({P, Signature, Entries, Found, Life}, C = #coordinator{undecided = Undecided, watched = Watched, prepared = Prepared}) ->
    {Ref, Others} = case maps:take(P, Watched) of
        error -> {monitor(process, P), Watched};
        Taken -> Taken
    end,
    Dead = #{process => P, signature => Signature, life => Life,
             entries => [{Entry, map_get(Monitor, Prepared)} || {_, #{monitor := Monitor}} = Entry <- Entries]},
    C1 = add_reports(announcements(self(), P, Signature, Entries),
                     C#coordinator{watched = Others, undecided = Undecided#{P => {Ref, [N || {N, _} <- Entries], Dead}}}),
    case Found of
        none -> C1;
        %% The modules may have been replaced before this verdict.
        {N, Vacuous, Covered} -> add_outcomes(P, [{verdict, N, satisfied_outcome(Vacuous, Covered)}], C1)
    end.

%% This outcome is never explained to a user.
satisfied_outcome(Vacuous, Covered) ->
    (witness_monitor_machine:failure_outcome(undefined))#{verdict := yes, vacuous := Vacuous, covered := Covered}.

%% The modules are compared after the notes were read: if none is replaced by then, none was replaced when these monitors ended.
count_complete(C0 = #coordinator{birth_table = BirthTable}) ->
    case witness_inline_birth_table:complete_notes(BirthTable) of
        [] -> C0;
        Complete ->
            C = compare_modules(C0),
            {Whole, Doubtful} = lists:partition(fun({P, _, _}) -> gap_reason(P, C) =:= none end, Complete),
            lists:foldl(fun({P, _, _}, Acc) -> announce(P, Acc) end, count_satisfied(Whole, C), Doubtful)
    end.

count_satisfied(Complete, C = #coordinator{birth_table = BirthTable, known = Known}) ->
    Counts = lists:foldl(fun({P, Entries, {N, Vacuous, Covered}}, Acc) ->
        _ = is_process_alive(P) andalso begin
            true = ets:insert(Known, {P, seen}),
            monitor(process, P)
        end,
        _ = witness_inline_birth_table:take(P, BirthTable),
        {N, Entry} = lists:keyfind(N, 1, Entries),
        Property = maps:with([spec, name, version], Entry),
        {Monitors, Vacuously, Mask} = maps:get(Property, Acc, {0, 0, 0}),
        Acc#{Property => {Monitors + 1, Vacuously + case Vacuous of true -> 1; false -> 0 end, Mask bor Covered}}
    end, #{}, Complete),
    add_reports([{satisfied, Property, Monitors, Vacuous, Covered} || Property := {Monitors, Vacuous, Covered} <- Counts], C).

announcements(Coordinator, P, Signature, Entries) ->
    [{monitor, {Coordinator, {P, N}}, meta(P, Signature, Entry)} || {N, Entry} <- Entries].

meta(P, Signature, #{spec := Spec, name := Name} = Entry) ->
    maps:merge(#{process => P, signature => Signature, spec => Spec, name => Name}, maps:with([version], Entry)).

to_reports(P, Told) -> [{Kind, {self(), {P, N}}, Outcome} || {Kind, N, Outcome} <- Told].

add_reports(New, C = #coordinator{reports = Reports}) -> C#coordinator{reports = lists:reverse(New, Reports)}.

add_outcomes(P, Told, C = #coordinator{undecided = Undecided}) ->
    case Undecided of
        #{P := {Monitor, Ns, Dead}} ->
            %% The VM's monitor stays. At the `'DOWN'', the process is no longer in `undecided'.
            add_reports(to_reports(P, Told), C#coordinator{undecided = case Ns -- [N || {verdict, N, _} <- Told] of
                                                                     [] -> maps:remove(P, Undecided);
                                                                     Left -> Undecided#{P := {Monitor, Left, Dead}}
                                                                 end});
        %% The coordinator has asked it for its state, and has judged it by that.
        #{} -> C
    end.

%% The verdicts that the process could not report.
add_gaps(P, Why, C = #coordinator{undecided = Undecided}) ->
    case maps:take(P, Undecided) of
        {{_, Ns, _}, Left} -> add_reports(to_reports(P, inconclusive_outcomes(Ns, {gap, Why})), C#coordinator{undecided = Left});
        error -> C
    end.

inconclusive_outcomes(Ns, Reason) -> [{verdict, N, witness_monitor_machine:failure_outcome(Reason)} || N <- Ns].

%% --- reports to the run ----------------------------------------------------------

send_reports(C = #coordinator{reports = []}) -> C;
send_reports(C0 = #coordinator{config = #{run := Run}}) ->
    C = #coordinator{reports = Reports} = compare_modules(C0),
    Run ! {reports, lists:reverse([correct_report(R, C) || R <- Reports])},
    C#coordinator{reports = []}.

%% Why the process may have done more than was seen.
gap_reason(_, #coordinator{replaced = [_ | _]}) -> replaced;
gap_reason(P, #coordinator{outside = Outside}) ->
    case witness_inline_outside:suspect(P, Outside) of
        none -> none;
        Module -> {not_woven, Module}
    end.

%% If an event may be missing, there is no verdict.
correct_report({monitor, _, _} = Report, _) -> Report;
%% The modules were compared before these were counted.
correct_report({satisfied, _, _, _, _} = Report, _) -> Report;
correct_report({verdict, _, ignored} = Report, _) -> Report;
correct_report({Kind, {_, {P, _}} = Reader, Outcome}, C) ->
    {Kind, Reader, case gap_reason(P, C) of none -> Outcome; Why -> correct_outcome(Outcome, Why) end}.

correct_outcome({undecided, {gap, _}, _} = Outcome, _) -> Outcome;
correct_outcome({undecided, _, N}, Why) -> {undecided, {gap, Why}, N};
correct_outcome(#{slices := _}, Why) -> witness_monitor_machine:failure_outcome({gap, Why});
correct_outcome(#{reason := {gap, _}} = Outcome, _) -> Outcome;
correct_outcome(Outcome, Why) -> Outcome#{verdict := inconclusive, reason := {gap, Why}, vacuous := false}.

%% The run gets one message for each replaced module.
compare_modules(C0 = #coordinator{outside = Before}) ->
    compare_woven(C0#coordinator{outside = witness_inline_outside:settle(Before)}).

compare_woven(C = #coordinator{code = Code, replaced = Replaced, config = #{run := Run, functions := Functions}}) ->
    case [M || M := Digest <- Code, digest(M) =/= Digest, digest(M) =/= none] of
        [] -> C;
        Others ->
            {Woven, New} = lists:partition(fun(M) -> witness_weave:woven(M) =/= no andalso not reports(M, Functions) end, Others),
            _ = New =:= [] orelse (Run ! {code_replaced, lists:sort(New)}),
            C#coordinator{code = maps:merge(maps:without(New, Code), #{M => digest(M) || M <- Woven}), replaced = New ++ Replaced}
    end.

reports(Module, Functions) -> lists:any(fun({M, _, _}) -> M =:= Module end, maps:keys(Functions)).

digests(Woven, Prepared) ->
    maps:merge(#{M => digest(M) || M <- Woven}, #{M => code:module_md5(Object) || #{module := M, woven := Object} <- Prepared}).

digest(Module) ->
    case erlang:module_loaded(Module) of
        true -> Module:module_info(md5);
        false -> none
    end.

%% --- stop ------------------------------------------------------------------------

-doc false.
-spec handle_continue(stopped, #coordinator{}) -> {stop, normal, #coordinator{}} | {noreply, #coordinator{}, {continue, stopped}}.
handle_continue(stopped, C = #coordinator{undecided = Undecided, marks = Marks}) ->
    {P, {Ref, _, _}, _} = maps:next(maps:iterator(Undecided)),
    Asked = process_info(P, [{dictionary, Key} || Key <- ['$witness_inline' | Marks]]),
    %% It may have reported the rest before. If it is dead, its `'DOWN'' comes.
    C0 = case Asked of
        undefined -> receive {'DOWN', Ref, process, P, _} = Down -> handle_report(Down, drain(1 bsl 59, C)) end;
        _ -> C
    end,
    C1 = drain(C0),
    C2 = case maps:take(P, C1#coordinator.undecided) of
        error -> C1;
        {{_, Ns, _}, Left} -> add_reports(to_reports(P, judge_stopped(Ns, Asked, C1)), C1#coordinator{undecided = Left})
    end,
    case C2 of
        #coordinator{undecided = Others} when map_size(Others) > 0 -> {noreply, send_reports(C2), {continue, stopped}};
        _ ->
            {stop, normal, send_reports(restore(compare_modules(C2)))}
    end.

%% The modules are not compared after that: `compare_modules/1' was called after the last answer.
restore(C = #coordinator{config = #{run := Run}}) ->
    ok = witness_inline_registry:release(self()),
    _ = case witness_weave:restore(self()) of
        {in_use, Modules} -> Run ! {unrestored, Modules};
        _ -> ok
    end,
    C#coordinator{code = #{}, outside = witness_inline_outside:close(C#coordinator.outside)}.

judge_stopped(Ns, [{_, undefined} | _], _) -> inconclusive_outcomes(Ns, {gap, dictionary});
judge_stopped(_, [{_, State} | Marks], #coordinator{events = Events}) when is_tuple(State) ->
    Taken = [{Key, Id} || {{dictionary, Key}, Id} <- Marks, is_integer(Id)],
    {Told, Count} = witness_inline_monitors:stop(Taken, State),
    ok = counters:add(Events, 1, Count),
    Told;
%% A monitor is running, and its result comes too late. If it has run for longer than the time between two checks, it has not
%% handled what had happened, like a monitor that a tracer waits for in vain.
judge_stopped(Ns, [{_, Begun} | _], #coordinator{switch = Switch}) when is_integer(Begun) ->
    inconclusive_outcomes(Ns, case atomics:get(Switch, 3) of Begun -> stopped; _ -> {crashed, overdue} end).

-doc false.
-spec terminate(term(), #coordinator{}) -> ok.
terminate(Reason, #coordinator{switch = Switch, birth_table = BirthTable}) ->
    ok = atomics:put(Switch, 1, 0),
    %% After a good end no note is left. Otherwise the run gets them.
    _ = Reason =:= normal andalso witness_inline_birth_table:delete(BirthTable),
    ok.

%% A crash report would contain the arguments of processes.
-doc false.
-spec format_status(gen_server:format_status()) -> gen_server:format_status().
format_status(Status) -> witness_event_redact:status(Status).
