-module(witness_inline_host).
-moduledoc """
Inline instrumentation: the process of a run that answers for all monitors that run in the processes of the system.

It loads the woven modules, has births in them observed (`m:witness_inline_registry`), announces monitors to the run, and
sees the deaths of processes that could not say what has become of their monitors. The life of the system, its processes and
when all have ended, is watched as in outline mode, by an instrumentation without monitors that reads no messages.

What monitors find goes from the process that they run in to here, and on to the run, as much at a time as there is. Nothing
waits for this process.

## Notes

A process that begins leaves a note (`m:witness_inline_notes`). A few times a second it is looked which of them are complete: these
monitors are counted, and the run is told how many there were of each property (`{satisfied, ...}`). A monitor whose note was
there, and not complete, at the last look already is announced to the run, and its process monitored, from which on it is known by
itself; so is each one that has something to tell. So whoever is killed is found after two looks at the latest.

## Modules that are replaced

Whoever loads another version of a woven module, which is not woven, during the run takes events away from processes that go
on in it, and nobody in the process can tell. So before anything that monitors have found is handed on, the modules are
compared with what was loaded: what was found before a module was replaced is known to be whole, and from then on
everything is inconclusive with the gap `replaced`. A version that a parse transform has woven is as good as the old one.

## What is not woven

The same goes for a process that has called a module that is not woven and may have sent or received for it
(`m:witness_inline_outside`): the gap names the module.

## Signals

What ends a process from outside, its own code cannot see. When it is dead, and has not reported the end of a monitor, what it has
left (`m:witness_inline_kept`) says whether it waited then: if so, its monitors go on here, with its `exit` and the end of the trace;
otherwise they are `inconclusive` with the gap `signal`. All that a process sends here comes before its `'DOWN'`.

The reason of an `exit` is in that `'DOWN'`. So a process with a monitor that says of itself that it reads exits waits for this process
once, when it is about to wait for a message for the first time (`{watch, P, Ref}`), until it is monitored.

## Stop

The switch is off first: who looks at it from then on ends by itself. Every other process that is monitored is asked for its
state, which the VM answers for it; it is not suspended, and sends and receives nothing. The answer comes after all that the
process has sent before. A process that does not get to answer delays the end, until the run has waited for long enough. The
original code is restored when all have answered, since a process that runs it is not judged, and before the run is
told of the last of them.
""".
-behaviour(gen_server).

-export([start_link/1, launch/3, parents/2, alive/1, adopt_node/2, replace/2, stop/1, info/1, counts/1, each/2,
         announced/2]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2, terminate/2, format_status/1]).

-export_type([config/0, life/0]).

%% Messages of processes that are dealt with together: the run is told of them at once, and the modules are compared once.
-define(MANY, 1000).

-doc """
`run`: the calling process; `maps`, and all monitors that they may start; `modules`: what to weave, with the entry functions
of each; `dependencies`: the same, as far as it can be woven; `woven`: modules that are woven already; `facts`: what is known of
modules that are not woven; `each`: whether each verdict is to be told by itself (`each/2`); `life`: starts what watches the life of the system, whose process is
linked to the caller, and what it counts; `scope`: for a `tree`, whether a process belongs to it is asked of the same.
""".
-type config() :: #{run := pid(), maps := [witness_outline_map:instrumentation()], monitors := [{module(), term()}],
                    modules := [{module(), entries()}], dependencies := [{module(), entries()}], woven := [module()],
                    facts := #{module() => witness_inline_reach:facts()},
                    scope := tree | node, timestamps := boolean(), each := boolean(), explain := pos_integer(), max_slices := pos_integer(),
                    life := fun(() -> life())}.

-type entries() :: all | [{atom(), arity()}].

%% In words.
-define(HEAP, 20_000).
%% Milliseconds between two looks at the notes.
-define(LOOK, 250).

-doc "The module and process of an instrumentation, and what counts for it.".
-type life() :: {module(), pid(), fun(() -> #{processes := non_neg_integer(), held := non_neg_integer(), _ => _})}.

-type report() :: {monitor, {pid(), {pid(), pos_integer()}}, Meta :: map()}
                | {slice, {pid(), {pid(), pos_integer()}}, witness_monitor_sliced:outcome() | witness_monitor_sliced:undecided()}
                | {verdict, {pid(), {pid(), pos_integer()}}, witness_monitor_runner:outcome()}
                | {satisfied, Property :: map(), Monitors :: pos_integer(), Vacuous :: non_neg_integer(),
                   Covered :: non_neg_integer()}.

%% outside: the modules that are not woven, and the processes that have called them
%% code: the digests of the woven modules; replaced: those that are loaded in another version, which is not woven
%% undecided: the monitors of each process that have not reported their end, and what is to be known when it is dead
%% watched: processes that are not announced, and monitored already
%% reports: for the run, the last one first
%% begun: whose notes were there and not complete at the last look
-record(host, {config :: config(),
               life :: life(),
               switch :: atomics:atomics_ref(),
               events :: counters:counters_ref(),
               known :: ets:table(),
               notes :: witness_inline_notes:notes(),
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
Weaves and loads the modules, and observes what is born in them from then on.

## Errors

`{weave, Reason}` (`witness_weave:format_error/1`); `{observed, Module, Host}`: another run observes the module already.
""".
-spec start_link(config()) -> gen_server:start_ret().
start_link(Config) ->
    %% What comes here is small and is garbage at once: it is not worth to be collected often.
    gen_server:start_link(?MODULE, Config,
                          [{spawn_opt, [{message_queue_data, off_heap}, {min_heap_size, ?HEAP}, {fullsweep_after, 10}]}]).

-doc "Starts the system's first process.".
-spec launch(pid(), {module(), atom(), [term()]}, GroupLeader :: pid()) -> {ok, pid()}.
launch(Host, MFA, GroupLeader) -> live(Host, launch, [MFA, GroupLeader]).

-doc "Observes what these processes will spawn, directly or not. The run waits for them too.".
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

-doc "What is woven follows from the specifications, so others cannot take their place.".
-spec replace(pid(), [witness_outline_map:instrumentation()]) -> {error, inline}.
replace(_, _) -> {error, inline}.

-doc """
Ends observation in good order. When it returns the run was told of every monitor. The outcomes of monitors that are
undecided follow; before the last of them the original code is restored, as far as it is not in use, and the run is told of
the modules that wait for that.
""".
-spec stop(pid()) -> ok.
stop(Host) -> gen_server:call(Host, stop, infinity).

-doc """
What counts for the run; it can be asked also when this process has ended. `unannounced`: monitors that are at work and that the
run was not told of yet.
""".
-spec counts(pid()) -> fun(() -> #{processes := non_neg_integer(), events := non_neg_integer(), held := non_neg_integer(),
                                   unannounced := non_neg_integer()}).
counts(Host) ->
    {{_, _, Counts}, Events, Notes} = gen_server:call(Host, counted, infinity),
    fun() ->
        maps:with([processes, events, held, unannounced],
                  (Counts())#{events => counters:get(Events, 1), unannounced => witness_inline_notes:count(Notes)})
    end.

-doc """
Whether each verdict is told by itself from now on. Otherwise monitors that are satisfied are counted only, those that
processes have one of.
""".
-spec each(pid(), boolean()) -> ok.
each(Host, Each) -> gen_server:call(Host, {each, Each}, infinity).

-doc """
The announcements of monitors that are in notes. They are the run's when their host has died: what became of them was not
compared with what is loaded.
""".
-spec announced(Host :: pid(), witness_inline_notes:notes()) -> [report()].
announced(Host, Notes) ->
    lists:append([announcements(Host, P, Signature, Entries) || {P, Signature, Entries, _, _} <- witness_inline_notes:all(Notes)]).

-doc false.
-spec init(config()) -> {ok, #host{}} | {error, term()}.
init(Config = #{run := Run, modules := Modules, dependencies := Dependencies, woven := Woven, each := Each, life := Start}) ->
    process_flag(trap_exit, true),
    proc_lib:set_label(?MODULE),
    Known = ets:new(?MODULE, [public, {write_concurrency, true}, {read_concurrency, true}]),
    H = #host{config = Config, known = Known, kept = witness_inline_kept:new(), notes = witness_inline_notes:new(Run),
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
        %% Whoever has asked before it was claimed is there now; whoever asks until the switch is on is told no.
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

%% One that another run has, or that cannot be loaded now, is as good as one that cannot be woven.
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

%% All that is in the mailbox, up to a number.
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

%% Who has something to tell is announced before.
of_process({told, P, Told}, H) -> decided(P, Told, announced_now(P, H));
of_process({lost, P}, H) -> missed(P, dictionary, announced_now(P, H));
of_process({watch, P, Ref}, H = #host{watched = Watched, undecided = Undecided}) ->
    %% Monitored first: then it may wait.
    H1 = case is_map_key(P, Undecided) orelse is_map_key(P, Watched) of
        true -> H;
        false -> H#host{watched = Watched#{P => monitor(process, P)}}
    end,
    Ref ! {watched, Ref},
    H1;
of_process({'DOWN', _, process, P, Reason}, H = #host{known = Known, watched = Watched}) when is_map_key(P, Watched) ->
    %% A process without a note, or with a complete one, needs nothing more.
    Died = case witness_inline_notes:open(P, H#host.notes) of
        [P] -> died(P, Reason, announced_now(P, H));
        [] -> H#host{watched = maps:remove(P, Watched)}
    end,
    true = ets:delete(Known, P),
    Died;
of_process({'DOWN', _, process, P, Reason}, H = #host{known = Known}) ->
    true = ets:delete(Known, P),
    died(P, Reason, H).

%% Its own monitors are the last to say something: what it has told is known.
died(P, Reason, H = #host{undecided = Undecided, kept = Kept, events = Events, config = #{timestamps := Stamped}}) ->
    case Undecided of
        #{P := {_, Ns, #{life := {_, Cell}} = Dead}} ->
            {Told, Count} = witness_inline_monitors:died(Dead#{reason => known(Reason)}, Stamped, Kept),
            ok = counters:add(Events, 1, Count),
            ok = witness_inline_kept:delete({P, Cell}, Kept),
            reports(reported(P, [One || One <- Told, lists:member(element(2, One), Ns)]), H#host{undecided = maps:remove(P, Undecided)});
        #{} -> H
    end.

%% Of a process that was dead already the VM says so instead.
known(noproc) -> unknown;
known(Reason) -> {ok, Reason}.

%% --- notes -----------------------------------------------------------------------

%% What is complete comes first: who is complete after that is looked at the next time. Both are in the order of all that is
%% done to a note: it was complete before, or whoever completes it has to tell.
looked(H0 = #host{notes = Notes, begun = Before}) ->
    H = completed(H0),
    Open = witness_inline_notes:open(Notes),
    {Staying, Begun} = lists:partition(fun(P) -> is_map_key(P, Before) end, Open),
    lists:foldl(fun announced_now/2, H#host{begun = maps:from_keys(Begun, [])}, Staying).

%% Nobody stays in the notes: who completes his own when it was looked which are open already is found after that, and who
%% does so later has to tell.
all_announced(H0 = #host{notes = Notes}) ->
    H = completed(H0),
    completed(lists:foldl(fun announced_now/2, H#host{begun = #{}}, witness_inline_notes:open(Notes))).

%% One of the tables always has it, so that it never has monitors once more, should it lose its dictionary.
announced_now(P, H = #host{known = Known, notes = Notes}) ->
    true = ets:insert(Known, {P, seen}),
    noted(witness_inline_notes:take(P, Notes), H).

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
        %% The modules may have been replaced before.
        {N, Vacuous, Covered} -> decided(P, [{verdict, N, satisfied(Vacuous, Covered)}], H1)
    end.

%% Nobody is to see its explanation.
satisfied(Vacuous, Covered) ->
    (witness_monitor_machine:failed(undefined))#{verdict := yes, vacuous := Vacuous, covered := Covered}.

%% The modules are compared after the notes were read: if none is replaced by then, none was when these monitors ended.
completed(H0 = #host{notes = Notes}) ->
    case witness_inline_notes:complete(Notes) of
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
        _ = witness_inline_notes:take(P, Notes),
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
            %% The monitor stays: at the death of the process nothing is known of it any more.
            reports(reported(P, Told), H#host{undecided = case Ns -- [N || {verdict, N, _} <- Told] of
                                                        [] -> maps:remove(P, Undecided);
                                                        Left -> Undecided#{P := {Monitor, Left, Dead}}
                                                    end});
        %% It was asked for its state, and was judged by that.
        #{} -> H
    end.

%% What the process did not get to say.
missed(P, Why, H = #host{undecided = Undecided}) ->
    case maps:take(P, Undecided) of
        {{_, Ns, _}, Left} -> reports(reported(P, unexplained(Ns, {gap, Why})), H#host{undecided = Left});
        error -> H
    end.

unexplained(Ns, Reason) -> [{verdict, N, witness_monitor_machine:failed(Reason)} || N <- Ns].

%% --- what the run is told --------------------------------------------------------

told(H = #host{reports = []}) -> H;
told(H0 = #host{config = #{run := Run}}) ->
    H = #host{reports = Reports} = compared(H0),
    Run ! {reports, lists:reverse([whole(R, H) || R <- Reports])},
    H#host{reports = []}.

%% Why it is not known whether a process has done more than was seen.
missing(_, #host{replaced = [_ | _]}) -> replaced;
missing(P, #host{outside = Outside}) ->
    case witness_inline_outside:suspect(P, Outside) of
        none -> none;
        Module -> {not_woven, Module}
    end.

%% Where an event may be missing there is no verdict.
whole({monitor, _, _} = Report, _) -> Report;
%% They were counted before.
whole({satisfied, _, _, _, _} = Report, _) -> Report;
whole({verdict, _, ignored} = Report, _) -> Report;
whole({Kind, {_, {P, _}} = Reader, Outcome}, H) -> {Kind, Reader, case missing(P, H) of none -> Outcome; Why -> unknown(Outcome, Why) end}.

unknown({undecided, {gap, _}, _} = Outcome, _) -> Outcome;
unknown({undecided, _, N}, Why) -> {undecided, {gap, Why}, N};
unknown(#{slices := _}, Why) -> witness_monitor_machine:failed({gap, Why});
unknown(#{reason := {gap, _}} = Outcome, _) -> Outcome;
unknown(Outcome, Why) -> Outcome#{verdict := inconclusive, reason := {gap, Why}, vacuous := false}.

%% The run is told once of each module.
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
    %% It may have said the rest before. One that is dead is told of.
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

%% Nothing is compared after that: the last who have answered had done so before.
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
%% A monitor is at work: what it makes of its event comes too late.
%% One that is at work for longer than a look has not come to the end of what had happened, as one that a tracer waits for in vain.
outcomes(Ns, [{_, Begun} | _], #host{switch = Switch}) when is_integer(Begun) ->
    unexplained(Ns, case atomics:get(Switch, 3) of Begun -> stopped; _ -> {crashed, overdue} end).

-doc false.
-spec terminate(term(), #host{}) -> ok.
terminate(Reason, #host{switch = Switch, notes = Notes}) ->
    ok = atomics:put(Switch, 1, 0),
    %% After a good end nobody is left in it. Otherwise it is the run's.
    _ = Reason =:= normal andalso witness_inline_notes:delete(Notes),
    ok.

%% A report of a crash would hold the arguments of processes.
-doc false.
-spec format_status(gen_server:format_status()) -> gen_server:format_status().
format_status(Status) -> witness_event_redact:status(Status).
