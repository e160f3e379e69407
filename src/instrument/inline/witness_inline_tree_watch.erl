-module(witness_inline_tree_watch).
-moduledoc """
Watches the life of a system that is monitored inline, over the native source: which processes belong to its spawn tree, and
when all of them have ended.

Only processes that spawn are traced (`m:witness_trace_native`, watching). The source puts each child into its table before the
child can act, while its parent is alive. So if no process in the table is alive, the tree has ended. This process checks that when
the processes that it monitors have died: at first the first process of the system, later some of those that are left. If the
processes of a system are short-lived, it checks every few milliseconds.

As an instrumentation it has the functions of `m:witness_outline_pool` that an instrumentation without monitors needs.
""".
-behaviour(gen_server).

-export([start_link/2, launch/3, parents/2, alive/1, observed/1, stop/1, info/1, counts/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).

%% The most processes that are monitored at a time.
-define(WATCHED, 16).
%% Milliseconds between two regular checks, and at least between two checks after all monitored processes have died.
-define(LOOK, 1000).
-define(PAUSE, 5).
%% The regular checks take at most one part in this number of the time.
-define(SHARE, 50).

%% pausing: whether a check is due after a pause
-record(life, {run :: pid(),
               session :: witness_trace_native:session(),
               births :: witness_trace_native:partition(),
               watched = #{} :: #{reference() => []},
               looked :: integer(),
               pausing = false :: boolean()}).

-doc "For the run, with options of `witness_trace_native:open/1`.".
-spec start_link(Run :: pid(), witness_trace_native:options()) -> gen_server:start_ret().
start_link(Run, Options) -> gen_server:start_link(?MODULE, {Run, Options}, []).

-doc "Starts the system's first process.".
-spec launch(pid(), {module(), atom(), [term()]}, GroupLeader :: pid()) -> {ok, pid()}.
launch(Life, MFA, GroupLeader) -> gen_server:call(Life, {launch, MFA, GroupLeader}, infinity).

-doc "Watches these processes and what they will spawn.".
-spec parents(pid(), [pid()]) -> ok.
parents(Life, Parents) -> gen_server:call(Life, {parents, Parents}, infinity).

-doc "The processes of the system that have not ended.".
-spec alive(pid()) -> [pid()].
alive(Life) -> lists:filter(observed(Life), processes()).

-doc "A function that says whether a live process belongs to the system.".
-spec observed(pid()) -> fun((pid()) -> boolean()).
observed(Life) ->
    Session = session(Life),
    fun(P) -> witness_trace_native:traced(Session, P) end.

-doc "Ends watching.".
-spec stop(pid()) -> ok.
stop(Life) -> gen_server:call(Life, stop, infinity).

-doc "This instrumentation reads no events, so no process waits for it.".
-spec info(pid()) -> #{busy := 0, idle := 0, most := 1}.
info(_) -> #{busy => 0, idle => 0, most => 1}.

-doc "A function that counts all processes there were, and those that are alive. It also works after watching has ended.".
-spec counts(pid()) -> fun(() -> #{processes := non_neg_integer(), held := non_neg_integer(), _ => _}).
counts(Life) ->
    Session = session(Life),
    fun() ->
        _ = witness_trace_native:sweep(Session, 0),
        witness_trace_native:counts(Session)
    end.

session(Life) -> gen_server:call(Life, session, infinity).

-doc false.
-spec init({pid(), witness_trace_native:options()}) -> {ok, #life{}}.
init({Run, Options}) ->
    process_flag(trap_exit, true),
    proc_lib:set_label(?MODULE),
    Session = witness_trace_native:open(Options#{watch => true}),
    _ = erlang:send_after(?LOOK, self(), look),
    {ok, take(#life{run = Run, session = Session, births = witness_trace_native:births(Session), looked = now_ms()})}.

-doc false.
-spec handle_call(term(), gen_server:from(), #life{}) -> {reply, term(), #life{}} | {stop, normal, ok, #life{}}.
handle_call({launch, MFA, GroupLeader}, _, L = #life{run = Run, session = Session}) ->
    Launcher = witness_instrument_launcher:start_link(MFA, GroupLeader, Run),
    ok = witness_trace_native:launcher(Session, Launcher),
    Root = witness_instrument_launcher:launch_known(Launcher),
    {reply, {ok, Root}, watched([Root], L)};
handle_call({parents, Parents}, _, L = #life{session = Session}) ->
    {reply, ok, watched([P || P <- Parents, witness_trace_native:parent(Session, P) =:= ok], L)};
handle_call(session, _, L = #life{session = Session}) ->
    {reply, Session, L};
handle_call(stop, _, L = #life{session = Session}) ->
    ok = witness_trace_native:close(Session),
    {stop, normal, ok, told_all(take(L))}.

-doc false.
-spec handle_cast(term(), #life{}) -> {noreply, #life{}}.
handle_cast(_, L) -> {noreply, L}.

-doc false.
-spec handle_info(term(), #life{}) -> {noreply, #life{}} | {stop, term(), #life{}}.
handle_info({witness_batch, Items, Status}, L) ->
    {noreply, take(told(Items, Status, L))};
handle_info(witness_data, L) ->
    {noreply, take(L)};
handle_info({'DOWN', Ref, process, _, _}, L = #life{watched = Watched}) ->
    {noreply, due(L#life{watched = maps:remove(Ref, Watched)})};
handle_info(pause_ended, L) ->
    {noreply, looked(L#life{pausing = false})};
handle_info(look, L0) ->
    Begin = now_ms(),
    L = looked(L0),
    _ = erlang:send_after(max(?LOOK, ?SHARE * (now_ms() - Begin)), self(), look),
    {noreply, L};
handle_info({'EXIT', _, normal}, L) -> {noreply, L};
handle_info({'EXIT', _, Reason}, L) -> {stop, Reason, L};
handle_info(_, L) -> {noreply, L}.

now_ms() -> erlang:monotonic_time(millisecond).

%% --- checks ----------------------------------------------------------------------

due(L = #life{watched = Watched, pausing = Pausing}) when map_size(Watched) > 0; Pausing -> L;
due(L = #life{looked = Looked}) ->
    case Looked + ?PAUSE - now_ms() of
        Early when Early > 0 ->
            _ = erlang:send_after(Early, self(), pause_ended),
            L#life{pausing = true};
        _ -> looked(L)
    end.

%% If no process is alive, the source has reported `ended'.
looked(L = #life{session = Session, watched = Watched}) ->
    Alive = witness_trace_native:sweep(Session, ?WATCHED),
    L1 = L#life{looked = now_ms()},
    case map_size(Watched) of
        0 -> watched(Alive, L1);
        _ -> L1
    end.

watched(Pids, L = #life{watched = Watched}) ->
    L#life{watched = maps:merge(Watched, #{monitor(process, P) => [] || P <- lists:sublist(Pids, ?WATCHED)})}.

%% --- reports of the source -------------------------------------------------------

take(L = #life{births = Births}) ->
    _ = witness_trace_native:take(Births),
    L.

told(Items, Status, L = #life{run = Run}) ->
    Status =:= open orelse Status =:= stopped orelse exit({births_lost, Status}),
    lists:foreach(fun(ended) -> Run ! {ended, self()};
                     ({hidden, P}) -> Run ! {hidden, P}
                  end, Items),
    L.

%% After it is closed, the source delivers what is left.
told_all(L) ->
    receive
        {witness_batch, Items, stopped} -> told(Items, stopped, L);
        {witness_batch, Items, Status} -> told_all(take(told(Items, Status, L)));
        witness_data -> told_all(take(L))
    end.
