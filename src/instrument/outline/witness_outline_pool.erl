-module(witness_outline_pool).
-moduledoc """
Outline instrumentation: the tracers of one run and the pool that lends them.

The pool creates tracers on demand, takes them back when their partition has ended, and ends those that were idle for a
while. It is the parent of every tracer. If a tracer ends without having been told to, that is a fault of Witness, and
events are lost from then on. So the pool ends too, and the run, which is linked to it, ends every monitor with a gap.
The same happens when gathering is given up for lack of memory (`m:witness_outline_overload`), or when tracers do not come to an end
in time (`m:witness_outline_drain`).
""".
-behaviour(gen_server).
-behaviour(witness_instrument).

-export([abilities/0]).
-export([start_link/1, launch/3, parents/2, alive/1, scope/1, adopt_node/2, attach/3, replace/2, stop/1, info/1, called/1,
         seen/1]).
-export([tracer/1, give_back/2]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).

%% Milliseconds between two sweeps, and the most tracers that one sweep ends, of those that were idle since the last one:
%% ending a session blocks code loading for about a millisecond.
-define(SWEEP_MS, 1000).
-define(MAX_SWEPT, 100).

%% The most rounds of `settle/3' (a system that never stands still would need more), and how many in a row have to agree.
-define(MAX_ROUNDS, 30).
-define(AGREEING_ROUNDS, 2).

%% free: idle tracers; least: the fewest that were idle since the last sweep; going: idle tracers that were told to stop;
%% replacing: the call that waits until these tracers have the new maps
%% is_cut: the sessions have ended, and those of new tracers end at once
-record(pool, {config :: witness_outline_tracer:config(),
               root :: witness_outline_tracer:handle(),
               free = [] :: [witness_outline_tracer:handle()],
               idle = 0 :: non_neg_integer(),
               least = 0 :: non_neg_integer(),
               busy = #{} :: #{pid() => witness_trace:session()},
               going = #{} :: #{pid() => []},
               replacing :: undefined | {Round :: 1 | 2, gen_server:from(), Tag :: reference(), #{pid() => []}},
               is_cut = false :: boolean(),
               most = 1 :: pos_integer()}).

-doc false.
-spec abilities() -> witness_instrument:abilities().
abilities() ->
    #{attach => true, parents => true, servers => false, adopt_node => true, alive => true, awaited => false, replace => true,
      each => false, acknowledge => false, lives => false, give_up => false, inherit => false, called => true,
      seen => true}.

-doc """
Starts the instrumentation of a run, which is the calling process. The configuration is that of `m:witness_outline_tracer`,
without `pool`, and with `memory`, in bytes, in place of `budget`. With `central` there is one tracer only. `attached`, `cut` and
`drain` bound the time that `stop/1` takes (`m:witness_outline_drain`). If that is over, the pool ends the tracers and itself.
""".
-spec start_link(map()) -> gen_server:start_ret().
start_link(Config) ->
    gen_server:start_link(?MODULE, Config#{called => witness_instrument_called:new()}, []).

-doc "Starts the system's first process under observation.".
-spec launch(pid(), {module(), atom(), [term()]}, GroupLeader :: pid()) -> {ok, pid()}.
launch(Pool, MFA, GroupLeader) -> witness_outline_tracer:launch(root(Pool), MFA, GroupLeader).

-doc "Observes what these processes will spawn, directly or not. The run waits for these too, but no monitor reads them.".
-spec parents(pid(), [witness_instrument:parent()]) -> ok.
parents(Pool, Parents) -> witness_outline_tracer:parents(root(Pool), witness_instrument:parent_pids(Parents)).

-doc "The processes that are observed and have not ended.".
-spec alive(pid()) -> [pid()].
alive(Pool) -> gen_server:call(Pool, alive, infinity).

-doc "A function that tells whether a process is observed; only for runs without monitors, where no process is handed over.".
-spec scope(pid()) -> fun((pid()) -> boolean()).
scope(Pool) ->
    #{source := Source, session := Session} = gen_server:call(Pool, session, infinity),
    fun(P) -> Source:traced(Session, P) =:= true end.

-doc "Observes every process of the node for which `Own` is false, with all that they spawn.".
-spec adopt_node(pid(), fun((pid()) -> boolean())) -> ok.
adopt_node(Pool, Own) -> witness_outline_tracer:adopt_node(root(Pool), Own).

-doc """
Observes the chosen processes, which run already, and all that they spawn from now on; if a group reads them, also those
that they have spawned before. Their monitors begin with an `attached`. `Held`: whether the run waits for their end. Returns
the observed processes that were not chosen. If groups may lack further processes, the tracer sends `orphans` to the run.
""".
-spec attach(pid(), witness_instrument:chosen(), Held :: boolean()) -> {ok, [pid()]}.
attach(Pool, Chosen, Held) -> witness_outline_tracer:attach(root(Pool), Chosen, Held).

-doc """
From now on new processes have these maps, each of them either all of the old ones or all of the new ones. When the call
returns, no monitor is started by the old maps any more, and each one that was has been reported to the run.
""".
-spec replace(pid(), [witness_instrument_map:instrumentation()]) -> ok.
replace(Pool, Maps) -> gen_server:call(Pool, {replace, Maps}, infinity).

-doc "See `c:witness_instrument:called/1`.".
-spec called(pid()) -> fun((pid()) -> [atom()]).
called(Pool) ->
    Called = gen_server:call(Pool, called, infinity),
    fun(P) -> witness_instrument_called:find(P, Called) end.

-doc "See `c:witness_instrument:seen/1`.".
-spec seen(pid()) -> fun(() -> [witness_instrument:sight()]).
seen(Pool) ->
    Called = gen_server:call(Pool, called, infinity),
    fun() -> witness_instrument_called:seen(Called) end.

root(Pool) -> gen_server:call(Pool, root, infinity).

-doc """
Ends observation in good order. When the call returns, all gathered events have been handed to
their monitors, also to those of new processes, and every monitor has been notified that
watching has ended. If the system goes on spawning meanwhile, it is cut off at an arbitrary point. The tracers then analyse what they
have gathered until then.
""".
-spec stop(pid()) -> ok.
stop(Pool) -> gen_server:call(Pool, stop, infinity).

-doc "How many tracers own a partition now, how many are idle, and how many owned one at most at the same time.".
-spec info(pid()) -> #{busy := non_neg_integer(), idle := non_neg_integer(), most := pos_integer()}.
info(Pool) -> gen_server:call(Pool, info, infinity).

-doc false.
-spec tracer(pid()) -> witness_outline_tracer:handle() | stopping.
tracer(Pool) -> gen_server:call(Pool, tracer, infinity).

-doc false.
-spec give_back(pid(), witness_outline_tracer:handle()) -> ok.
give_back(Pool, Handle) -> gen_server:cast(Pool, {give_back, Handle}).

-doc false.
-spec init(map()) -> {ok, #pool{}}.
init(Config0) ->
    process_flag(trap_exit, true),
    proc_lib:set_label(witness_pool),
    Config = (maps:remove(memory, Config0))#{pool => self(), budget => witness_outline_overload:start_link(Config0)},
    erlang:send_after(?SWEEP_MS, self(), sweep),
    {ok, #pool{config = Config, root = start_tracer(Config)}}.

start_tracer(Config = #{budget := Budget}) ->
    Handle = {Pid, _, _} = witness_outline_tracer:start_link(Config),
    ok = witness_outline_overload:watch(tracer, Pid, Budget),
    Handle.

%% Ends all sessions. Each tracer has the events of its processes up to its own cut, and nothing after it: a tracer finds every
%% process dead from then on (`traced', `share'), so it does not hand it over, and has all that is known of it.
cut(P = #pool{config = #{source := Source}, root = {_, Root, _}, busy = Busy, free = Free}) ->
    lists:foreach(fun(Session) -> ok = Source:close(Session) end,
                  [Root | maps:values(Busy)] ++ [Session || {_, Session, _} <- Free]),
    P#pool{is_cut = true}.

-doc false.
-spec handle_call(term(), gen_server:from(), #pool{}) ->
    {reply, term(), #pool{}} | {noreply, #pool{}} | {stop, normal, term(), #pool{}}.
handle_call(tracer, _, P = #pool{free = [Handle | Free], idle = Idle, least = Least}) ->
    {reply, Handle, lend(Handle, P#pool{free = Free, idle = Idle - 1, least = min(Least, Idle - 1)})};
handle_call(tracer, _, P = #pool{config = Config = #{source := Source}, is_cut = IsCut}) ->
    Handle = {_, Session, _} = start_tracer(Config),
    _ = IsCut andalso Source:close(Session),
    {reply, Handle, lend(Handle, P#pool{least = 0})};
handle_call(root, _, P = #pool{root = Root}) ->
    {reply, Root, P};
handle_call(called, _, P = #pool{config = #{called := Called}}) ->
    {reply, Called, P};
%% A tracer may be waiting for the pool at this time, so the pool does not wait for tracers.
handle_call({replace, Maps}, From, P = #pool{config = Config}) ->
    {noreply, replace(1, From, P#pool{config = Config#{maps := Maps}})};
handle_call(session, _, P = #pool{config = #{source := Source}, root = {_, Session, _}}) ->
    {reply, #{source => Source, session => Session}, P};
handle_call(info, _, P = #pool{busy = Busy, idle = Idle, most = Most}) ->
    {reply, #{busy => map_size(Busy) + 1, idle => Idle, most => Most}, P};
handle_call(alive, _, P = #pool{config = #{source := Source}}) ->
    {reply, Source:observed(sessions(P)), P};
handle_call(stop, _, P0 = #pool{config = Config}) ->
    ok = witness_outline_drain:watch(Config),
    %% Tracers wait for the pool, and all of them have a higher priority than the system from now on.
    process_flag(priority, high),
    Time = reach_now(P0),
    {Settled, P} = settle(0, ?MAX_ROUNDS, P0#pool{config = Config#{priority => high}}),
    _ = Settled andalso witness_outline_drain:note(Time, Config),
    Pids = tracers(P),
    Tag = make_ref(),
    lists:foreach(fun(Pid) -> witness_outline_tracer:stop(Pid, Tag) end, Pids),
    ok = await_all(Pids, Tag, P),
    {stop, normal, ok, P}.

%% Set before the tracer receives `take': it may see events of its new partition earlier than that.
lend({Pid, Session, Lent}, P = #pool{busy = Busy, most = Most}) ->
    ok = atomics:put(Lent, 1, 1),
    Busy1 = Busy#{Pid => Session},
    P#pool{busy = Busy1, most = max(Most, map_size(Busy1) + 1)}.

-doc false.
-spec handle_cast(term(), #pool{}) -> {noreply, #pool{}}.
handle_cast({give_back, Handle = {Pid, _, _}}, P = #pool{busy = Busy, free = Free, idle = Idle}) ->
    {noreply, P#pool{busy = maps:remove(Pid, Busy), free = [Handle | Free], idle = Idle + 1}}.

-doc false.
-spec handle_info(term(), #pool{}) -> {noreply, #pool{}} | {stop, term(), #pool{}}.
handle_info(sweep, P = #pool{free = Free, idle = Idle, least = Least, going = Going}) ->
    erlang:send_after(?SWEEP_MS, self(), sweep),
    %% The tracers that were given back first are at the end.
    {Kept, Gone} = lists:split(Idle - min(Least, ?MAX_SWEPT), Free),
    Tag = make_ref(),
    lists:foreach(fun({Pid, _, _}) -> witness_outline_tracer:stop(Pid, Tag) end, Gone),
    Idle1 = Idle - length(Gone),
    Going1 = maps:merge(Going, #{Pid => [] || {Pid, _, _} <- Gone}),
    {noreply, P#pool{free = Kept, idle = Idle1, least = Idle1, going = Going1}};
handle_info({stopped, _, _}, P) ->
    {noreply, P};
handle_info({replaced, Pid, Tag}, P = #pool{replacing = {Round, From, Tag, Pids}}) ->
    case maps:remove(Pid, Pids) of
        Left when map_size(Left) > 0 -> {noreply, P#pool{replacing = {Round, From, Tag, Left}}};
        _ when Round =:= 1 -> {noreply, replace(2, From, P)};
        _ ->
            gen_server:reply(From, ok),
            {noreply, P#pool{replacing = undefined}}
    end;
handle_info({'EXIT', Pid, normal}, P = #pool{going = Going}) when is_map_key(Pid, Going) ->
    {noreply, P#pool{going = maps:remove(Pid, Going)}};
handle_info({'EXIT', Pid, Reason}, P) ->
    {stop, exit_reason(Pid, Reason), P}.

exit_reason(_, {shutdown, {given_up, _}} = Reason) -> Reason;
exit_reason(Pid, Reason) -> {tracer_ended, Pid, Reason}.

%% All that has happened before this time is in the mailboxes of the tracers, if the VM says so soon.
reach_now(P = #pool{config = #{source := Source} = Config}) ->
    Sessions = sessions(P),
    Ask = fun() -> Source:reached(Sessions, Source:observed(Sessions)) end,
    witness_outline_drain:reach(Ask, fun(Ref) -> {reached, Ref} end, Config).

%% Events that tracers have gathered may name new processes. These need tracers of their own, to which their events are
%% routed. The VM may also report a little later what an ended process did. A message may be on its way between two
%% tracers while both have nothing left to do. The next round comes after that message, so two rounds in a row have to
%% agree. When the sessions have ended, no further report comes, and nothing is waited for.
settle(?AGREEING_ROUNDS, _, P) -> {not P#pool.is_cut, P};
settle(_, 0, P) -> {false, P};
settle(Agreeing, Rounds, P = #pool{busy = Busy, root = {Root, _, _}}) ->
    Tag = make_ref(),
    Pids = [Root | maps:keys(Busy)],
    lists:foreach(fun(Pid) -> witness_outline_tracer:sync(Pid, Tag) end, Pids),
    case sync_round(Pids, Tag, settled, P) of
        {settled, P1} -> settle(Agreeing + 1, Rounds - 1, P1);
        {waiting, P1 = #pool{is_cut = true}} -> settle(Agreeing + 1, Rounds - 1, P1);
        {waiting, P1} -> timer:sleep(1), settle(0, Rounds - 1, P1);
        {moved, P1} -> settle(0, Rounds - 1, P1)
    end.

sync_round([], _, State, P) -> {State, P};
sync_round([Pid | Pids], Tag, State, P) ->
    receive
        {synced, Pid, Tag, Other} -> sync_round(Pids, Tag, combine_states(State, Other), P);
        {'$gen_call', From, tracer} ->
            {reply, Handle, P1} = handle_call(tracer, From, P),
            gen_server:reply(From, Handle),
            sync_round([Pid | Pids], Tag, moved, P1);
        {'$gen_cast', {give_back, _} = GiveBack} ->
            {noreply, P1} = handle_cast(GiveBack, P),
            sync_round([Pid | Pids], Tag, State, P1);
        cut -> sync_round([Pid | Pids], Tag, State, cut(P));
        overdue -> witness_outline_drain:give_up(tracers(P));
        {'EXIT', Tracer, Reason} when not is_map_key(Tracer, P#pool.going); Reason =/= normal ->
            exit(exit_reason(Tracer, Reason))
    end.

combine_states(moved, _) -> moved;
combine_states(_, moved) -> moved;
combine_states(waiting, _) -> waiting;
combine_states(settled, Other) -> Other.

%% When all tracers have answered, none assigns a process by the old maps any more. But a tracer may have been given a
%% process that another one assigned before. When all have answered a second time, they have handled that too.
replace(Round, From, P = #pool{config = #{maps := Maps}}) ->
    Pids = tracers(P),
    Tag = make_ref(),
    lists:foreach(fun(Pid) -> witness_outline_tracer:replace(Pid, Maps, Tag) end, Pids),
    P#pool{replacing = {Round, From, Tag, maps:from_keys(Pids, [])}}.

-doc false.
-spec terminate(term(), #pool{}) -> ok.
terminate(_, P) ->
    %% After a good end no tracer is left. If the reason is `normal' (`sys:terminate/2'), links alone do not end tracers.
    lists:foreach(fun(Pid) -> exit(Pid, kill) end, tracers(P)).

sessions(#pool{busy = Busy, free = Free, root = {_, Root, _}}) ->
    [Root | maps:values(Busy)] ++ [Session || {_, Session, _} <- Free].

tracers(#pool{busy = Busy, free = Free, root = {Root, _, _}}) ->
    [Root | maps:keys(Busy)] ++ [Pid || {Pid, _, _} <- Free].

%% The end of the run: all tracers have been told to stop and are awaited. If one dies instead, the pool ends, as it would
%% at any other time. A tracer that asks for another one for a new process gets `stopping': its own `stop' is in its
%% mailbox.
await_all([], _, _) -> ok;
await_all([Pid | Pids], Tag, P) ->
    receive
        {stopped, Pid, Tag} ->
            receive {'EXIT', Pid, normal} -> await_all(Pids, Tag, P) end;
        {'EXIT', Pid, Reason} ->
            exit(exit_reason(Pid, Reason));
        cut -> await_all([Pid | Pids], Tag, cut(P));
        overdue -> witness_outline_drain:give_up([Pid | Pids]);
        {'$gen_call', From, tracer} ->
            gen_server:reply(From, stopping),
            await_all([Pid | Pids], Tag, P)
    end.
