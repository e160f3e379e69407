-module(witness_inline_tree_watch).
-moduledoc """
Watches the life of a system that is monitored inline, over the native source: which processes belong to its spawn tree, and
when all of them have ended.

Only processes that spawn are traced (`m:witness_trace_native`, watching). The source puts each child into its table before the
child can act, while its parent is alive. So if no process in the table is alive, the tree has ended. This process checks that when
the processes that it monitors have died: at first the first process of the system, later some of those that are left. If the
processes of a system are short-lived, it checks every few milliseconds.

It is an instrument (`m:witness_instrument`) without monitors.
""".
-behaviour(gen_server).
-behaviour(witness_instrument).

-export([abilities/0]).
-export([start_link/2, launch/3, parents/2, alive/1, scope/1, stop/1, info/1, called/1, seen/1, counts/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% The most processes that are monitored at a time.
-define(MAX_WATCHED, 16).
%% Milliseconds between two regular checks, and at least between two checks after all monitored processes have died.
-define(CHECK_MS, 1000).
-define(MIN_PAUSE_MS, 5).
%% The regular checks take at most one part in this number of the time.
-define(CHECK_SHARE, 50).

%% pausing: whether a check is due after a pause
-record(watch, {run :: pid(),
                session :: witness_trace_native:session(),
                births :: witness_trace_native:partition(),
                watched = #{} :: #{reference() => []},
                checked_ms :: integer(),
                pausing = false :: boolean()}).

-doc false.
-spec abilities() -> witness_instrument:abilities().
abilities() ->
    #{attach => false, parents => true, servers => false, adopt_node => false, alive => true, awaited => false,
      replace => {false, inline}, each => false, acknowledge => false, lives => false, give_up => false, inherit => false,
      called => true,
      seen => true}.

-doc "For the run, with options of `witness_trace_native:open/1`.".
-spec start_link(Run :: pid(), witness_trace_native:options()) -> gen_server:start_ret().
start_link(Run, Options) -> gen_server:start_link(?MODULE, {Run, Options}, []).

-doc "Starts the system's first process.".
-spec launch(pid(), {module(), atom(), [term()]}, GroupLeader :: pid()) -> {ok, pid()}.
launch(Watch, MFA, GroupLeader) -> gen_server:call(Watch, {launch, MFA, GroupLeader}, infinity).

-doc "Watches these processes and what they will spawn.".
-spec parents(pid(), [witness_instrument:parent()]) -> ok.
parents(Watch, Parents) -> gen_server:call(Watch, {parents, witness_instrument:parent_pids(Parents)}, infinity).

-doc "The processes of the system that have not ended.".
-spec alive(pid()) -> [pid()].
alive(Watch) -> lists:filter(scope(Watch), processes()).

-doc "A function that says whether a live process belongs to the system.".
-spec scope(pid()) -> fun((pid()) -> boolean()).
scope(Watch) ->
    Session = get_session(Watch),
    fun(P) -> witness_trace_native:traced(Session, P) end.

-doc "Ends watching.".
-spec stop(pid()) -> ok.
stop(Watch) -> gen_server:call(Watch, stop, infinity).

-doc "This instrumentation reads no events, so no process waits for it.".
-spec info(pid()) -> #{busy := 0, idle := 0, most := 1}.
info(_) -> #{busy => 0, idle => 0, most => 1}.

-doc "A function that counts all processes there were, and those that are alive. It also works after watching has ended.".
-spec counts(pid()) -> fun(() -> #{processes := non_neg_integer(), held := non_neg_integer(), _ => _}).
counts(Watch) ->
    Session = get_session(Watch),
    fun() ->
        _ = witness_trace_native:sweep(Session, 0),
        witness_trace_native:counts(Session)
    end.

-doc "See `c:witness_instrument:called/1`. Names are not known.".
-spec called(pid()) -> fun((pid()) -> [atom()]).
called(Watch) -> witness_trace_native:called(get_session(Watch)).

-doc "See `c:witness_instrument:seen/1`.".
-spec seen(pid()) -> fun(() -> [witness_instrument:sight()]).
seen(Watch) -> witness_trace_native:seen(get_session(Watch)).

get_session(Watch) -> gen_server:call(Watch, session, infinity).

-doc false.
-spec init({pid(), witness_trace_native:options()}) -> {ok, #watch{}}.
init({Run, Options}) ->
    process_flag(trap_exit, true),
    proc_lib:set_label(?MODULE),
    Session = witness_trace_native:open(Options#{watch => true}),
    _ = erlang:send_after(?CHECK_MS, self(), look),
    {ok, take(#watch{run = Run, session = Session, births = witness_trace_native:births(Session), checked_ms = now_ms()})}.

-doc false.
-spec handle_call(term(), gen_server:from(), #watch{}) -> {reply, term(), #watch{}} | {stop, normal, ok, #watch{}}.
handle_call({launch, MFA, GroupLeader}, _, L = #watch{run = Run, session = Session}) ->
    Launcher = witness_instrument_launcher:start_link(MFA, GroupLeader, Run),
    ok = witness_trace_native:launcher(Session, Launcher),
    Root = witness_instrument_launcher:launch_known(Launcher),
    {reply, {ok, Root}, watch([Root], L)};
handle_call({parents, Parents}, _, L = #watch{session = Session}) ->
    {reply, ok, watch([P || P <- Parents, witness_trace_native:parent(Session, P) =:= ok], L)};
handle_call(session, _, L = #watch{session = Session}) ->
    {reply, Session, L};
handle_call(stop, _, L = #watch{session = Session}) ->
    ok = witness_trace_native:close(Session),
    {stop, normal, ok, report_rest(take(L))}.

-doc false.
-spec handle_cast(term(), #watch{}) -> {noreply, #watch{}}.
handle_cast(_, L) -> {noreply, L}.

-doc false.
-spec handle_info(term(), #watch{}) -> {noreply, #watch{}} | {stop, term(), #watch{}}.
handle_info({witness_batch, Items, Status}, L) ->
    {noreply, take(report(Items, Status, L))};
handle_info(witness_data, L) ->
    {noreply, take(L)};
handle_info({'DOWN', Ref, process, _, _}, L = #watch{watched = Watched}) ->
    {noreply, check_soon(L#watch{watched = maps:remove(Ref, Watched)})};
handle_info(pause_ended, L) ->
    {noreply, check(L#watch{pausing = false})};
handle_info(look, L0) ->
    Begin = now_ms(),
    L = check(L0),
    _ = erlang:send_after(max(?CHECK_MS, ?CHECK_SHARE * (now_ms() - Begin)), self(), look),
    {noreply, L};
handle_info({'EXIT', _, normal}, L) -> {noreply, L};
handle_info({'EXIT', _, Reason}, L) -> {stop, Reason, L};
handle_info(_, L) -> {noreply, L}.

now_ms() -> erlang:monotonic_time(millisecond).

%% --- checks ----------------------------------------------------------------------

check_soon(L = #watch{watched = Watched, pausing = Pausing}) when map_size(Watched) > 0; Pausing -> L;
check_soon(L = #watch{checked_ms = Looked}) ->
    case Looked + ?MIN_PAUSE_MS - now_ms() of
        Early when Early > 0 ->
            _ = erlang:send_after(Early, self(), pause_ended),
            L#watch{pausing = true};
        _ -> check(L)
    end.

%% If no process is alive, the source has reported `ended'.
check(L = #watch{session = Session, watched = Watched}) ->
    Alive = witness_trace_native:sweep(Session, ?MAX_WATCHED),
    L1 = L#watch{checked_ms = now_ms()},
    case map_size(Watched) of
        0 -> watch(Alive, L1);
        _ -> L1
    end.

watch(Pids, L = #watch{watched = Watched}) ->
    L#watch{watched = maps:merge(Watched, #{monitor(process, P) => [] || P <- lists:sublist(Pids, ?MAX_WATCHED)})}.

%% --- reports of the source -------------------------------------------------------

take(L = #watch{births = Births}) ->
    _ = witness_trace_native:take(Births),
    L.

report(Items, Status, L = #watch{run = Run}) ->
    Status =:= open orelse Status =:= stopped orelse exit({births_lost, Status}),
    lists:foreach(fun(ended) -> Run ! {ended, self()};
                     ({hidden, P}) -> Run ! {hidden, P}
                  end, Items),
    L.

%% After it is closed, the source delivers what is left.
report_rest(L) ->
    receive
        {witness_batch, Items, stopped} -> report(Items, stopped, L);
        {witness_batch, Items, Status} -> report_rest(take(report(Items, Status, L)));
        witness_data -> report_rest(take(L))
    end.
