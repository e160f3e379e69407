-module(witness_inline_coordinator).
-moduledoc """
Inline instrumentation: the process of a run that coordinates all monitors in the processes of the system.

It loads the woven modules, and has births in them observed (`m:witness_inline_registry`). It announces monitors to the run, and
sees the deaths of processes that could not report the end of their monitors. An instrumentation without monitors, which reads no
messages, watches the life of the system as in outline mode: its processes, and when all have ended.

Processes send the results of their monitors to the host, which forwards them to the run in batches. No process waits for the host
to handle them.

## Notes

A process that begins leaves a note (`m:witness_inline_birth_table`). Every 250 ms the host checks which notes are complete. It counts
their monitors, and reports to the run how many there were of each property (`{satisfied, ...}`). If a note was there and not
complete at the previous check, the host announces its monitors to the run, and monitors the process. It does the same for a
process that sends a report. So a process that is killed is found at the second check at the latest.

## Modules that are replaced

If another version of a woven module, which is not woven, is loaded during the run, events of processes that run it are missing,
and these processes cannot notice that. So before the host forwards any results, it compares the modules with what was loaded. What
was found before a module was replaced is complete. From then on everything is inconclusive with the gap
`replaced`. A version that a parse transform has woven is as good as the old one.

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

First the host sets the switch to off: a process that reads it from then on ends its monitors itself. Then the host asks for the state
of every other process that it monitors. The VM answers for that process, which is not suspended, and sends and receives nothing.
The answer comes after all that the process has sent before. A process that does not get to answer delays the end, until the run's
time for that is over. The host restores the original code after all have answered, since a process that runs it is not judged. It
reports the last of them to the run after that.
""".
-behaviour(gen_server).

-export([start_link/1, launch/3, parents/2, alive/1, adopt_node/2, replace/2, stop/1, info/1, counts/1, each/2,
         announced/2]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2, format_status/1]).

-export_type([config/0, life/0]).

%% The most messages of processes in a batch. After each batch the modules are compared once, and the run gets one message.
-define(MANY, 1000).

-doc """
`run`: the calling process; `maps`, and all `monitors` that they may start; `modules`: what to weave, with the entry functions
of each; `dependencies`: the same, as far as they can be woven; `woven`: modules that are woven already; `facts`: what is known of
modules that are not woven; `each`: whether each verdict is delivered by itself (`each/2`); `life`: starts the process that watches
the life of the system, which is linked to the caller, and gives its counts; `scope`: for a `tree`, that process decides whether a
process belongs to the system.
""".
-type config() :: #{run := pid(), maps := [witness_instrument_map:instrumentation()], monitors := [{module(), term()}],
                    modules := [{module(), entries()}], dependencies := [{module(), entries()}], woven := [module()],
                    facts := #{module() => witness_inline_reach:facts()},
                    scope := tree | node, timestamps := boolean(), each := boolean(), explain := pos_integer(), max_slices := pos_integer(),
                    life := fun(() -> life())}.

-type entries() :: all | [{atom(), arity()}].

%% In words.
-define(HEAP, 20_000).
%% Milliseconds between two checks of the notes.
-define(LOOK, 250).

-doc "The module and process of an instrumentation, and the function that gives its counts.".
-type life() :: {module(), pid(), fun(() -> #{processes := non_neg_integer(), held := non_neg_integer(), _ => _})}.

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
-record(host, {config :: config(),
               life :: life(),
               switch :: atomics:atomics_ref(),
               events :: counters:counters_ref(),
               known :: ets:table(),
               notes :: witness_inline_birth_table:notes(),
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

-doc """
Weaves and loads the modules, and observes processes that are born in them from then on.

## Errors

`{weave, Reason}` (`witness_weave:format_error/1`); `{observed, Module, Host}`: another run observes the module already.
""".
-spec start_link(config()) -> gen_server:start_ret().
start_link(Config) ->
    %% What arrives here is small and soon garbage: a large heap avoids frequent collections.
    gen_server:start_link(?MODULE, Config,
                          [{spawn_opt, [{message_queue_data, off_heap}, {min_heap_size, ?HEAP}, {fullsweep_after, 10}]}]).

-doc "Starts the system's first process.".
-spec launch(pid(), {module(), atom(), [term()]}, GroupLeader :: pid()) -> {ok, pid()}.
launch(Host, MFA, GroupLeader) -> live(Host, launch, [MFA, GroupLeader]).

-doc "Observes the processes that these will spawn, directly or not. The run waits for them too.".
-spec parents(pid(), [pid()]) -> ok.
parents(Host, Parents) -> live(Host, parents, [Parents]).

-doc "The processes of the system that have not ended.".
-spec alive(pid()) -> [pid()].
alive(Host) -> live(Host, alive, []).

-doc "The system is every process of the node for which `Own` is false, with all that they spawn.".
-spec adopt_node(pid(), fun((pid()) -> boolean())) -> ok.
adopt_node(Host, Own) -> live(Host, adopt_node, [Own]).

-doc "As in outline mode.".
-spec info(pid()) -> #{busy := non_neg_integer(), idle := non_neg_integer(), most := pos_integer()}.
info(Host) -> live(Host, info, []).

live(Host, Function, Args) ->
    {Module, Pid, _} = gen_server:call(Host, life, infinity),
    apply(Module, Function, [Pid | Args]).

-doc "The specifications determine what is woven, so others cannot replace them.".
-spec replace(pid(), [witness_instrument_map:instrumentation()]) -> {error, inline}.
replace(_, _) -> {error, inline}.

-doc """
Ends observation in good order. When it returns, every monitor has been announced to the run. The outcomes of undecided monitors
follow. Before the last of them, the host restores the original code where that is not in use, and reports to the run the
modules that wait for that.
""".
-spec stop(pid()) -> ok.
stop(Host) -> gen_server:call(Host, stop, infinity).

-doc """
The run's counts. The function also works after this process has ended. `unannounced`: monitors that have begun, and that have
not been announced to the run yet.
""".
-spec counts(pid()) -> fun(() -> #{processes := non_neg_integer(), events := non_neg_integer(), held := non_neg_integer(),
                                   unannounced := non_neg_integer()}).
counts(Host) ->
    {{_, _, Counts}, Events, Notes} = gen_server:call(Host, counted, infinity),
    fun() ->
        maps:with([processes, events, held, unannounced],
                  (Counts())#{events => counters:get(Events, 1), unannounced => witness_inline_birth_table:count(Notes)})
    end.

-doc """
Whether each verdict is delivered by itself from now on. Otherwise, if the only monitor of a process is satisfied, it is only
counted.
""".
-spec each(pid(), boolean()) -> ok.
each(Host, Each) -> gen_server:call(Host, {each, Each}, infinity).

-doc """
The announcements of monitors that are in notes. If their host has died, the notes are the run's: the host has not compared the
modules for them.
""".
-spec announced(Host :: pid(), witness_inline_birth_table:notes()) -> [report()].
announced(Host, Notes) ->
    lists:append([announcements(Host, P, Signature, Entries) || {P, Signature, Entries, _, _} <- witness_inline_birth_table:all(Notes)]).

-doc false.
-spec init(config()) -> {ok, #host{}} | {error, term()}.
init(Config = #{run := Run, modules := Modules, dependencies := Dependencies, woven := Woven, each := Each, life := Start}) ->
    process_flag(trap_exit, true),
    proc_lib:set_label(?MODULE),
    Known = ets:new(?MODULE, [public, {write_concurrency, true}, {read_concurrency, true}]),
    H = #host{config = Config, known = Known, kept = witness_inline_kept:new(), notes = witness_inline_birth_table:new(Run),
              switch = atomics:new(3, []),
              events = counters:new(1, [write_concurrency]),
              life = {?MODULE, self(), fun() -> #{processes => 0, held => 0} end}},
    maybe
        {ok, Prepared} ?= witness_inline_modules:prepare(Modules),
        ok ?= loaded(Prepared),
        Also = also_loaded(witness_inline_modules:available(Dependencies)),
        Life = Start(),
        Everything = Woven ++ [M || {M, _} <- Modules] ++ [M || #{module := M} <- Also],
        Outside = outside(Everything, Config),
        Births = births(Life, witness_inline_outside:session(Outside), H),
        ok ?= claimed(Everything, Births, Life),
        %% A process that asked before the claim is in the table now. A process that asks before the switch is on is not observed.
        true = ets:insert(Known, [{P, old} || P <- processes()]),
        ok = each_is(Each, H),
        ok = atomics:put(H#host.switch, 1, 1),
        _ = erlang:send_after(?LOOK, self(), look),
        {ok, H#host{life = Life, outside = Outside, code = code(Woven, Prepared ++ Also), prepared = maps:get(prepared, Births),
                 marks = witness_inline_monitors:keys(maps:values(maps:get(prepared, Births)))}}
    end.

loaded(Prepared) ->
    case witness_weave:load(Prepared, self()) of
        ok -> ok;
        {error, Reason} -> {error, {weave, Reason}}
    end.

%% A module that another run has claimed, or that cannot be loaded now, is treated as one that cannot be woven.
also_loaded(Prepared) -> [P || P <- Prepared, witness_weave:load([P], self()) =:= ok].

outside(Woven, #{facts := Facts, monitors := Monitors}) ->
    witness_inline_outside:open(Woven, Facts, [M || {M, _} <- Monitors]).

claimed(Modules, Births, {Module, Pid, _}) ->
    case witness_inline_registry:claim(Modules, Births) of
        ok -> ok;
        Error -> ok = Module:stop(Pid), Error
    end.

each_is(Each, #host{switch = Switch}) -> atomics:put(Switch, 2, case Each of true -> 1; false -> 0 end).

births({Module, Pid, _}, Session, #host{config = Config, switch = Switch, events = Events, known = Known, notes = Notes, kept = Kept}) ->
    #{maps := Maps, monitors := Monitors, timestamps := Stamped, scope := Scope} = Config,
    Common = maps:with([explain, max_slices, slice_idle], Config),
    #{host => self(), outside => Session, switch => Switch, events => Events, stamped => Stamped, known => Known, notes => Notes, kept => Kept, maps => Maps,
      scope => case Scope of node -> fun(_) -> true end; tree -> Module:observed(Pid) end,
      prepared => #{M => witness_inline_monitors:prepare(Common#{monitor => M}) || M <- Monitors}}.

-doc false.
handle_call(life, _, H = #host{life = Life}) ->
    {reply, Life, H};
handle_call(counted, _, H = #host{life = Life, events = Events, notes = Notes}) ->
    {reply, {Life, Events, Notes}, H};
handle_call({each, Each}, _, H) ->
    {reply, each_is(Each, H), H};
handle_call(stop, From, H = #host{life = {Module, Pid, _}, switch = Switch}) ->
    ok = atomics:put(Switch, 1, 0),
    ok = Module:stop(Pid),
    case compared(all_announced(arrived(H))) of
        #host{undecided = Undecided} = H1 when map_size(Undecided) =:= 0 ->
            {stop, normal, ok, told(restored(H1))};
        H1 ->
            H2 = told(H1),
            gen_server:reply(From, ok),
            {noreply, H2, {continue, stopped}}
    end.

-doc false.
handle_cast(_, H) -> {noreply, H}.

-doc false.
handle_info(Message, H) when element(1, Message) =:= told; element(1, Message) =:= lost; element(1, Message) =:= 'DOWN';
                             element(1, Message) =:= watch ->
    {noreply, told(arrived(of_process(Message, H)))};
handle_info({trace, _, call, _} = Call, H = #host{outside = Outside}) ->
    {noreply, H#host{outside = witness_inline_outside:called(Call, Outside)}};
handle_info(look, H = #host{switch = Switch}) ->
    ok = atomics:add(Switch, 3, 1),
    _ = erlang:send_after(?LOOK, self(), look),
    {noreply, told(looked(arrived(H)))};
handle_info({'EXIT', Life, Reason}, H = #host{life = {_, Life, _}}) -> {stop, Reason, H};
handle_info({'EXIT', _, normal}, H) -> {noreply, H};
handle_info({'EXIT', _, Reason}, H) -> {stop, Reason, H};
handle_info(_, H) -> {noreply, H}.

%% All that is in the mailbox, up to a maximum.
arrived(H) -> arrived(?MANY, H).

arrived(0, H) -> H;
arrived(Most, H) ->
    receive
        {told, _, _} = Message -> arrived(Most - 1, of_process(Message, H));
        {lost, _} = Message -> arrived(Most - 1, of_process(Message, H));
        {watch, _, _} = Message -> arrived(Most - 1, of_process(Message, H));
        {'DOWN', _, process, _, _} = Message -> arrived(Most - 1, of_process(Message, H))
    after 0 -> H
    end.

%% A process that reports something is announced before.
of_process({told, P, Told}, H) -> decided(P, Told, announced_now(P, H));
of_process({lost, P}, H) -> missed(P, dictionary, announced_now(P, H));
of_process({watch, P, Ref}, H = #host{watched = Watched, undecided = Undecided}) ->
    %% The process may wait only after it is monitored.
    H1 = case is_map_key(P, Undecided) orelse is_map_key(P, Watched) of
        true -> H;
        false -> H#host{watched = Watched#{P => monitor(process, P)}}
    end,
    Ref ! {watched, Ref},
    H1;
of_process({'DOWN', _, process, P, Reason}, H = #host{known = Known, watched = Watched}) when is_map_key(P, Watched) ->
    %% A process without a note, or with a complete one, needs nothing more.
    Died = case witness_inline_birth_table:open(P, H#host.notes) of
        [P] -> died(P, Reason, announced_now(P, H));
        [] -> H#host{watched = maps:remove(P, Watched)}
    end,
    true = ets:delete(Known, P),
    Died;
of_process({'DOWN', _, process, P, Reason}, H = #host{known = Known}) ->
    true = ets:delete(Known, P),
    died(P, Reason, H).

%% The monitors of the process have priority: what it has reported itself is known by now.
died(P, Reason, H = #host{undecided = Undecided, kept = Kept, events = Events, config = #{timestamps := Stamped}}) ->
    case Undecided of
        #{P := {_, Ns, #{life := {_, Cell}} = Dead}} ->
            {Told, Count} = witness_inline_monitors:died(Dead#{reason => known(Reason)}, Stamped, Kept),
            ok = counters:add(Events, 1, Count),
            ok = witness_inline_kept:delete({P, Cell}, Kept),
            reports(reported(P, [One || One <- Told, lists:member(element(2, One), Ns)]), H#host{undecided = maps:remove(P, Undecided)});
        #{} -> H
    end.

%% The reason that the VM gives for a process that was dead already.
known(noproc) -> unknown;
known(Reason) -> {ok, Reason}.

%% --- notes -----------------------------------------------------------------------

%% Complete notes come first; the next check finds a note that is completed after that. The two reads see each note in the order of
%% its changes: either it was complete before, or it is taken and the process that would complete it sends a report.
looked(H0 = #host{notes = Notes, begun = Before}) ->
    H = completed(H0),
    Open = witness_inline_birth_table:open(Notes),
    {Staying, Begun} = lists:partition(fun(P) -> is_map_key(P, Before) end, Open),
    lists:foldl(fun announced_now/2, H#host{begun = maps:from_keys(Begun, [])}, Staying).

%% No note stays. If a process completes its note before the open ones are read, the last `completed/1' finds it. If it does so later,
%% its note is taken, and it sends a report.
all_announced(H0 = #host{notes = Notes}) ->
    H = completed(H0),
    completed(lists:foldl(fun announced_now/2, H#host{begun = #{}}, witness_inline_birth_table:open(Notes))).

%% A process is always in one of the two tables. So if it loses its dictionary, it does not get monitors again.
announced_now(P, H = #host{known = Known, notes = Notes}) ->
    true = ets:insert(Known, {P, seen}),
    noted(witness_inline_birth_table:take(P, Notes), H).

noted(none, H) -> H;
noted({P, Signature, Entries, Found, Life}, H = #host{undecided = Undecided, watched = Watched, prepared = Prepared}) ->
    {Ref, Others} = case maps:take(P, Watched) of
        error -> {monitor(process, P), Watched};
        Taken -> Taken
    end,
    Dead = #{process => P, signature => Signature, life => Life,
             entries => [{Entry, map_get(Monitor, Prepared)} || {_, #{monitor := Monitor}} = Entry <- Entries]},
    H1 = reports(announcements(self(), P, Signature, Entries),
                 H#host{watched = Others, undecided = Undecided#{P => {Ref, [N || {N, _} <- Entries], Dead}}}),
    case Found of
        none -> H1;
        %% The modules may have been replaced before this verdict.
        {N, Vacuous, Covered} -> decided(P, [{verdict, N, satisfied(Vacuous, Covered)}], H1)
    end.

%% This outcome is never explained to a user.
satisfied(Vacuous, Covered) ->
    (witness_monitor_machine:failed(undefined))#{verdict := yes, vacuous := Vacuous, covered := Covered}.

%% The modules are compared after the notes were read: if none is replaced by then, none was replaced when these monitors ended.
completed(H0 = #host{notes = Notes}) ->
    case witness_inline_birth_table:complete(Notes) of
        [] -> H0;
        Complete ->
            H = compared(H0),
            {Whole, Doubtful} = lists:partition(fun({P, _, _}) -> missing(P, H) =:= none end, Complete),
            lists:foldl(fun({P, _, _}, Acc) -> announced_now(P, Acc) end, counted(Whole, H), Doubtful)
    end.

counted(Complete, H = #host{notes = Notes, known = Known}) ->
    Counts = lists:foldl(fun({P, Entries, {N, Vacuous, Covered}}, Acc) ->
        _ = is_process_alive(P) andalso begin
            true = ets:insert(Known, {P, seen}),
            monitor(process, P)
        end,
        _ = witness_inline_birth_table:take(P, Notes),
        {N, Entry} = lists:keyfind(N, 1, Entries),
        Property = maps:with([spec, name, version], Entry),
        {Monitors, Vacuously, Mask} = maps:get(Property, Acc, {0, 0, 0}),
        Acc#{Property => {Monitors + 1, Vacuously + case Vacuous of true -> 1; false -> 0 end, Mask bor Covered}}
    end, #{}, Complete),
    reports([{satisfied, Property, Monitors, Vacuous, Covered} || Property := {Monitors, Vacuous, Covered} <- Counts], H).

announcements(Host, P, Signature, Entries) ->
    [{monitor, {Host, {P, N}}, meta(P, Signature, Entry)} || {N, Entry} <- Entries].

meta(P, Signature, #{spec := Spec, name := Name} = Entry) ->
    maps:merge(#{process => P, signature => Signature, spec => Spec, name => Name}, maps:with([version], Entry)).

reported(P, Told) -> [{Kind, {self(), {P, N}}, Outcome} || {Kind, N, Outcome} <- Told].

reports(New, H = #host{reports = Reports}) -> H#host{reports = lists:reverse(New, Reports)}.

decided(P, Told, H = #host{undecided = Undecided}) ->
    case Undecided of
        #{P := {Monitor, Ns, Dead}} ->
            %% The VM's monitor stays. At the `'DOWN'', the process is no longer in `undecided'.
            reports(reported(P, Told), H#host{undecided = case Ns -- [N || {verdict, N, _} <- Told] of
                                                        [] -> maps:remove(P, Undecided);
                                                        Left -> Undecided#{P := {Monitor, Left, Dead}}
                                                    end});
        %% The host has asked it for its state, and has judged it by that.
        #{} -> H
    end.

%% The verdicts that the process could not report.
missed(P, Why, H = #host{undecided = Undecided}) ->
    case maps:take(P, Undecided) of
        {{_, Ns, _}, Left} -> reports(reported(P, unexplained(Ns, {gap, Why})), H#host{undecided = Left});
        error -> H
    end.

unexplained(Ns, Reason) -> [{verdict, N, witness_monitor_machine:failed(Reason)} || N <- Ns].

%% --- reports to the run ----------------------------------------------------------

told(H = #host{reports = []}) -> H;
told(H0 = #host{config = #{run := Run}}) ->
    H = #host{reports = Reports} = compared(H0),
    Run ! {reports, lists:reverse([whole(R, H) || R <- Reports])},
    H#host{reports = []}.

%% Why the process may have done more than was seen.
missing(_, #host{replaced = [_ | _]}) -> replaced;
missing(P, #host{outside = Outside}) ->
    case witness_inline_outside:suspect(P, Outside) of
        none -> none;
        Module -> {not_woven, Module}
    end.

%% If an event may be missing, there is no verdict.
whole({monitor, _, _} = Report, _) -> Report;
%% The modules were compared before these were counted.
whole({satisfied, _, _, _, _} = Report, _) -> Report;
whole({verdict, _, ignored} = Report, _) -> Report;
whole({Kind, {_, {P, _}} = Reader, Outcome}, H) -> {Kind, Reader, case missing(P, H) of none -> Outcome; Why -> unknown(Outcome, Why) end}.

unknown({undecided, {gap, _}, _} = Outcome, _) -> Outcome;
unknown({undecided, _, N}, Why) -> {undecided, {gap, Why}, N};
unknown(#{slices := _}, Why) -> witness_monitor_machine:failed({gap, Why});
unknown(#{reason := {gap, _}} = Outcome, _) -> Outcome;
unknown(Outcome, Why) -> Outcome#{verdict := inconclusive, reason := {gap, Why}, vacuous := false}.

%% The run gets one message for each replaced module.
compared(H0 = #host{outside = Before}) ->
    unchanged(H0#host{outside = witness_inline_outside:settle(Before)}).

unchanged(H = #host{code = Code, replaced = Replaced, config = #{run := Run}}) ->
    case [M || M := Digest <- Code, digest(M) =/= Digest, digest(M) =/= none] of
        [] -> H;
        Others ->
            {Woven, New} = lists:partition(fun(M) -> witness_weave:woven(M) =/= no end, Others),
            _ = New =:= [] orelse (Run ! {code_replaced, lists:sort(New)}),
            H#host{code = maps:merge(maps:without(New, Code), #{M => digest(M) || M <- Woven}), replaced = New ++ Replaced}
    end.

code(Woven, Prepared) ->
    maps:merge(#{M => digest(M) || M <- Woven}, #{M => code:module_md5(Object) || #{module := M, woven := Object} <- Prepared}).

digest(Module) ->
    case erlang:module_loaded(Module) of
        true -> Module:module_info(md5);
        false -> none
    end.

%% --- stop ------------------------------------------------------------------------

-doc false.
-spec handle_continue(stopped, #host{}) -> {stop, normal, #host{}} | {noreply, #host{}, {continue, stopped}}.
handle_continue(stopped, H = #host{undecided = Undecided, marks = Marks}) ->
    {P, {Ref, _, _}, _} = maps:next(maps:iterator(Undecided)),
    Asked = process_info(P, [{dictionary, Key} || Key <- ['$witness_inline' | Marks]]),
    %% It may have reported the rest before. If it is dead, its `'DOWN'' comes.
    H0 = case Asked of
        undefined -> receive {'DOWN', Ref, process, P, _} = Down -> of_process(Down, arrived(1 bsl 59, H)) end;
        _ -> H
    end,
    H1 = arrived(H0),
    H2 = case maps:take(P, H1#host.undecided) of
        error -> H1;
        {{_, Ns, _}, Left} -> reports(reported(P, outcomes(Ns, Asked, H1)), H1#host{undecided = Left})
    end,
    case H2 of
        #host{undecided = Others} when map_size(Others) > 0 -> {noreply, told(H2), {continue, stopped}};
        _ ->
            {stop, normal, told(restored(compared(H2)))}
    end.

%% The modules are not compared after that: `compared/1' was called after the last answer.
restored(H = #host{config = #{run := Run}}) ->
    ok = witness_inline_registry:release(self()),
    _ = case witness_weave:restore(self()) of
        {in_use, Modules} -> Run ! {unrestored, Modules};
        _ -> ok
    end,
    H#host{code = #{}, outside = witness_inline_outside:close(H#host.outside)}.

outcomes(Ns, [{_, undefined} | _], _) -> unexplained(Ns, {gap, dictionary});
outcomes(_, [{_, State} | Marks], #host{events = Events}) when is_tuple(State) ->
    Taken = [{Key, Id} || {{dictionary, Key}, Id} <- Marks, is_integer(Id)],
    {Told, Count} = witness_inline_monitors:stopped(Taken, State),
    ok = counters:add(Events, 1, Count),
    Told;
%% A monitor is running, and its result comes too late. If it has run for longer than the time between two checks, it has not
%% handled what had happened, like a monitor that a tracer waits for in vain.
outcomes(Ns, [{_, Begun} | _], #host{switch = Switch}) when is_integer(Begun) ->
    unexplained(Ns, case atomics:get(Switch, 3) of Begun -> stopped; _ -> {crashed, overdue} end).

-doc false.
-spec terminate(term(), #host{}) -> ok.
terminate(Reason, #host{switch = Switch, notes = Notes}) ->
    ok = atomics:put(Switch, 1, 0),
    %% After a good end no note is left. Otherwise the run gets them.
    _ = Reason =:= normal andalso witness_inline_birth_table:delete(Notes),
    ok.

%% A crash report would contain the arguments of processes.
-doc false.
-spec format_status(gen_server:format_status()) -> gen_server:format_status().
format_status(Status) -> witness_event_redact:status(Status).
