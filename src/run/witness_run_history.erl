-module(witness_run_history).
-moduledoc """
The history of a run, for its report: which process spawned which (`m:witness_run_history_tree`), and the progress of the run
over time (`m:witness_run_history_samples`).

Births and ends come from a separate trace session over the VM's tracing, whatever the run gathers and from which source. So
a history changes nothing that monitors or tracers see. It starts with the run: with the running processes,
or with the first process. A process of Witness spawns the first process. So during that start all new processes
are traced, and those that are not the system's are released afterwards. A log has births and ends itself.

This process waits for no process, and only the end of the run waits for it. When it cannot keep up, it stops tracing, and the
history says from which time on births and ends are unknown.
""".
-behaviour(gen_server).

-export([start_link/2, adopt/2, adopt_children/2, launch/2, add_monitor/3, add_verdict/4, finish/1]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2, format_status/1]).

-export_type([history/0]).

-doc """
The result. Times are nanoseconds of the VM's monotonic clock, also `began`; those of a log are the log's
own, if it has any. `lost`: the time from which births and ends are not known; `log`: whether it is the history of a log.
""".
-type history() :: #{tree := witness_run_history_tree:contents(), course := witness_run_history_samples:series(),
                     began := integer(), ended := integer(), lost := integer() | undefined, log := boolean()}.

-record(history, {run :: pid(),
                  own :: fun((pid()) -> boolean()),
                  redact :: boolean(),
                  rows :: witness_event_wrapper:table(),
                  log :: boolean(),
                  session :: undefined | witness_trace_evm:session(),
                  waiting = none :: none | [term()],   % what was traced while the first process is started
                  root :: undefined | pid(),
                  tree :: witness_run_history_tree:tree(),
                  samples = witness_run_history_samples:new() :: witness_run_history_samples:series(),
                  request :: undefined | gen_server:request_id(),
                  events = 0 :: non_neg_integer(),
                  lost :: undefined | integer(),
                  began :: integer()}).

%% Processes that are kept one by one.
-define(MAX_PROCESSES, 10_000).
%% Limit of the queue length, which is checked after every so many trace messages.
-define(MAX_QUEUE_LENGTH, 200_000).
-define(MESSAGES_PER_CHECK, 1024).
%% Milliseconds that the VM may take to deliver the remaining trace messages.
-define(DRAIN_MS, 5_000).

-doc "Starts the history for the run, which is the calling process.".
-spec start_link(pid(), witness_options:options()) -> gen_server:start_ret().
start_link(Run, Options) ->
    gen_server:start_link(?MODULE, {Run, Options}, [{spawn_opt, [{message_queue_data, off_heap}, {fullsweep_after, 10}]}]).

-doc "Adds the chosen processes, and all that they spawn from now on.".
-spec adopt(pid() | none, fun((pid()) -> boolean())) -> ok.
adopt(none, _) -> ok;
adopt(History, Chosen) -> gen_server:call(History, {adopt, Chosen}, infinity).

-doc "Adds what these processes spawn from now on.".
-spec adopt_children(pid() | none, [pid()]) -> ok.
adopt_children(History, Parents) -> adopt(History, fun(P) -> lists:member(P, Parents) end).

-doc "Adds the first process, which the function starts.".
-spec launch(pid() | none, fun(() -> {ok, pid()})) -> {ok, pid()}.
launch(none, Start) -> Start();
launch(History, Start) ->
    ok = gen_server:call(History, launching, infinity),
    {ok, Root} = Start(),
    ok = gen_server:call(History, {launched, Root}, infinity),
    {ok, Root}.

-doc "A monitor has started.".
-spec add_monitor(pid() | none, witness_run_monitors:reader() | undefined, witness_run_monitors:meta()) -> ok.
add_monitor(none, _, _) -> ok;
add_monitor(History, Reader, Meta) -> gen_server:cast(History, {monitor, reader_process(Reader), monitor_meta(Meta), now_ns()}).

reader_process({Host, _}) -> Host;
reader_process(Reader) -> Reader.

monitor_meta(Meta) -> maps:with([process, spec, name, version], Meta).

-doc "A monitor, or one of its slices, has reached a verdict.".
-spec add_verdict(pid() | none, slice | verdict, witness_run_monitors:meta(), Outcome :: map() | ignored) -> ok.
add_verdict(none, _, _, _) -> ok;
add_verdict(History, Kind, Meta, Outcome) ->
    Verdict = case Outcome of #{verdict := Of} -> Of; _ -> undefined end,
    gen_server:cast(History, {verdict, {Kind, Verdict}, monitor_meta(Meta), now_ns()}).

now_ns() -> erlang:monotonic_time(nanosecond).

-doc "Returns the history, and ends its process.".
-spec finish(pid()) -> history().
finish(History) -> gen_server:call(History, finish, infinity).

-doc false.
-spec init({pid(), witness_options:options()}) -> {ok, #history{}}.
init({Run, #{system := System, redact := Redact, signatures := Rows} = Options}) ->
    proc_lib:set_label(?MODULE),
    {ok, Table} = witness_event_wrapper:table(Rows),
    ok = witness_event:use_syntax(maps:get(syntax, Options)),
    IsLog = is_tuple(System) andalso element(1, System) =:= log,
    Session = case IsLog of
        true -> undefined;
        false -> witness_trace_evm:open(self(), #{stamps => always, filter => witness_trace_filter:union([])})
    end,
    self() ! sample,
    {ok, #history{run = Run, own = witness_run_attach:own_predicate(Options), redact = Redact, rows = Table, log = IsLog,
                  session = Session, tree = witness_run_history_tree:new(?MAX_PROCESSES), began = now_ns()}}.

-doc false.
-spec handle_call(term(), gen_server:from(), #history{}) -> {reply, term(), #history{}} | {stop, normal, history(), #history{}}.
handle_call({adopt, Chosen}, _, H) ->
    {reply, ok, adopt_processes(Chosen, H)};
handle_call(launching, _, H = #history{session = undefined}) ->
    {reply, ok, H};
handle_call({launched, _}, _, H = #history{session = undefined}) ->
    {reply, ok, H};
handle_call(launching, _, H = #history{session = Session}) ->
    ok = witness_trace_evm:on_new(Session, true),
    {reply, ok, H#history{waiting = []}};
handle_call({launched, Root}, _, H = #history{session = Session, waiting = Waiting}) ->
    ok = witness_trace_evm:on_new(Session, false),
    {reply, ok, lists:foldr(fun handle_trace/2, H#history{waiting = none, root = Root}, Waiting)};
%% For a log: births and ends in its order, with their places.
handle_call({lives, Lives}, _, H) ->
    {reply, ok, lists:foldl(fun({Place, E}, A) -> handle_event(E, Place, A) end, H, Lives)};
handle_call(finish, _, H0) ->
    H = #history{tree = Tree, samples = Samples, began = Began, lost = Lost, log = IsLog} = drain(H0),
    {stop, normal, #{tree => witness_run_history_tree:to_map(Tree), course => Samples, began => Began, ended => now_ns(),
                     lost => Lost, log => IsLog}, H}.

-doc false.
-spec handle_cast(term(), #history{}) -> {noreply, #history{}}.
handle_cast({monitor, Reader, Meta, Now}, H = #history{tree = Tree}) ->
    {noreply, H#history{tree = witness_run_history_tree:add_monitor(Meta, Reader, {Now, undefined}, Tree)}};
handle_cast({verdict, Verdict, Meta, Now}, H = #history{tree = Tree}) ->
    {noreply, H#history{tree = witness_run_history_tree:add_verdict(Meta, Verdict, {Now, undefined}, Tree)}}.

-doc false.
-spec handle_info(term(), #history{}) -> {noreply, #history{}}.
handle_info(Message, H) when element(1, Message) =:= trace_ts; element(1, Message) =:= trace ->
    {noreply, check_queue(handle_trace(Message, H))};
handle_info(sample, H = #history{run = Run}) ->
    {noreply, H#history{request = gen_server:send_request(Run, info)}};
handle_info(Message, H = #history{request = Request}) when Request =/= undefined ->
    case gen_server:check_response(Message, Request) of
        {reply, #{} = Info} -> {noreply, add_sample(Info, H#history{request = undefined})};
        _ -> {noreply, H}
    end;
handle_info(_, H) ->
    {noreply, H}.

%% A crash report would contain the exit reasons of processes.
-doc false.
-spec format_status(gen_server:format_status()) -> gen_server:format_status().
format_status(Status) -> witness_event_redact:status(Status).

add_sample(#{events := Events, processes := Processes, monitors := Monitors, verdicts := Verdicts, gaps := Gaps},
           H = #history{samples = Samples, began = Began}) ->
    Sample = #{events => Events, processes => Processes, monitors => Monitors, violations => maps:get(no, Verdicts, 0),
               gaps => Gaps},
    Samples1 = witness_run_history_samples:add({(now_ns() - Began) div 1_000_000, Sample}, Samples),
    _ = erlang:send_after(witness_run_history_samples:interval(Samples1), self(), sample),
    H#history{samples = Samples1}.

%% --- processes that run already --------------------------------------------------

%% As with the monitors: when a scan finds no new process, every chosen process is traced, and later ones inherit the tracing.
adopt_processes(Chosen, H = #history{session = Session, tree = Tree}) ->
    New = [P || P <- processes(), not witness_run_history_tree:is_known(P, Tree), P =/= self(), Chosen(P),
                witness_trace_evm:on(Session, P) =:= ok],
    case New of
        [] -> H;
        _ -> adopt_processes(Chosen, H#history{tree = lists:foldl(fun add_running/2, Tree, New)})
    end.

add_running(P, Tree) ->
    Parent = case process_info(P, parent) of
        {parent, Pid} when is_pid(Pid) -> Pid;
        _ -> undefined
    end,
    witness_run_history_tree:add_running(P, Parent, witness_event_signature:of_process(P), Tree).

%% --- trace messages --------------------------------------------------------------

handle_trace(Message, H = #history{waiting = Waiting}) when Waiting =/= none -> H#history{waiting = [Message | Waiting]};
handle_trace(Message, H) ->
    case witness_trace_evm:decode(Message) of
        {_, {init, P, Parent, _, _} = E} -> handle_birth(P, Parent, E, H);
        %% The child may belong to Witness.
        {_, {fork, _, _, _, _}} -> H;
        {_, E} -> handle_event(E, undefined, H);
        ignore -> H
    end.

handle_birth(Root, _, E, H = #history{root = Root}) -> handle_event(E, undefined, H);
handle_birth(P, Parent, E, H = #history{tree = Tree, own = Own, session = Session}) ->
    case witness_run_history_tree:is_known(Parent, Tree) orelse node(Parent) =/= node() orelse not Own(Parent) of
        true -> handle_event(E, undefined, H);
        false ->
            ok = witness_trace_evm:off(Session, P),
            H
    end.

handle_event({fork, Parent, P, Signature, Ts}, Place, H) -> add_birth(P, Parent, Signature, {Ts, Place}, H);
handle_event({init, P, Parent, Signature, Ts}, Place, H) -> add_birth(P, Parent, Signature, {Ts, Place}, H);
handle_event({there, P, Signature}, _, H = #history{tree = Tree}) ->
    H#history{tree = witness_run_history_tree:add_running(P, undefined, mfa(Signature), Tree)};
handle_event({exit, P, Reason, Ts}, Place, H = #history{tree = Tree}) ->
    H#history{tree = witness_run_history_tree:add_exit(P, format_reason(Reason, P, H), {Ts, Place}, Tree)};
handle_event(_, _, H) -> H.

%% The session of the history knows no rows for signatures.
add_birth(P, Parent, Signature, Time, H = #history{tree = Tree, rows = Rows}) ->
    Resolved = case Signature of undefined -> undefined; _ -> witness_event_signature:resolve(Signature, Rows) end,
    H#history{tree = witness_run_history_tree:add_birth(P, Parent, mfa(Resolved), Time, Tree)}.

mfa({M, F, Args}) -> {M, F, length(Args)};
mfa(undefined) -> undefined.

%% Reasons may be large, and have contents.
format_reason(normal, _, _) -> normal;
format_reason(Reason, P, #history{redact = Redact, tree = Tree}) ->
    Shown = case Redact of true -> witness_event_redact:term(Reason); false -> Reason end,
    witness_event:format_reason(Shown, 120, witness_event:syntax_of_function(witness_run_history_tree:function(P, Tree))).

check_queue(H = #history{events = Events}) when Events < ?MESSAGES_PER_CHECK; H#history.session =:= undefined ->
    H#history{events = Events + 1};
check_queue(H = #history{session = Session}) ->
    case process_info(self(), message_queue_len) of
        {message_queue_len, Waiting} when Waiting > ?MAX_QUEUE_LENGTH ->
            ok = witness_trace_evm:close(Session),
            H#history{session = undefined, lost = now_ns(), events = 0};
        _ -> H#history{events = 0}
    end.

%% The VM delivers all outstanding trace messages before it confirms the delivery.
drain(H = #history{session = undefined}) -> H;
drain(H = #history{session = Session}) ->
    Ref = witness_trace_evm:delivered(Session),
    _ = erlang:send_after(?DRAIN_MS, self(), {trace_delivered, all, Ref}),
    Drained = drain(Ref, H),
    ok = witness_trace_evm:close(Session),
    Drained.

drain(Ref, H) ->
    receive
        {trace_delivered, all, Ref} -> H;
        Message when element(1, Message) =:= trace_ts; element(1, Message) =:= trace -> drain(Ref, handle_trace(Message, H));
        {'$gen_cast', Cast} ->
            {noreply, H1} = handle_cast(Cast, H),
            drain(Ref, H1)
    end.
