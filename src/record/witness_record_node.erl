-module(witness_record_node).
-moduledoc """
Records a program, inside its VM.

That VM is started with `main/0`. This process talks to `m:witness_record_vm` over two file descriptors, and makes the
recording in this order:

1. it starts the native recorder and the writer;
2. it gives every new process of the VM the trace flag `procs`, in a session of its own. So the recorder is notified of each
   birth, from any parent, before the child can act, and of each end. A process that has taken some messages loses the flag again,
   and `m:witness_record_exit_watch` reports its end. If nothing is woven, every process has the flags of `m:witness_record_traced`;
3. it spawns the first process of the program. The identifier is made beforehand (`child/0`) and is the label that the process
   is born with, as for every other process that woven code spawns;
4. when that process and its descendants have ended, or the application has, or the program ends its VM, it writes what is
   still in memory, and the list of modules.

*Why nothing is lost when the VM is ended.* `halt` in woven code calls `finish_now/0` first, in any process. So does the VM if the
signal SIGUSR1 ends it. `init:stop` ends the applications, and then the supervisors of `kernel`. This process is below one of
them, and `terminate/2` finishes the recording in the same way.

*Why this process does not disturb.* It is outside: it has no identifier, so a recorded process would record the contents of
its messages. It sends them none.
""".
-behaviour(gen_server).

-export([main/0]).
-export_type([tell/0]).
-export([start_link/1, init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).
-export([start_application/1, call/2]).

-doc "Reports a term to the process that controls this VM (the option `on_told` of `m:witness_record`). Any process may call it.".
-type tell() :: fun((term()) -> ok).

-doc """
Starts to observe the children of these processes. The first process of the program is one of these children. The application
`witness` runs in this VM. The caller of `witness_record:start/1` gets the error.
""".
-callback begin_observing(Argument :: term(), Parents :: [pid(), ...], tell()) -> {ok, Observation :: term()} | {error, term()}.

-doc "Ends the observation; the result is part of the summary.".
-callback end_observing(Observation :: term()) -> term().

-record(state, {port :: port(),
                writer :: pid() | undefined,
                observation = none :: none | {module(), term()},
                session :: trace:session() | undefined,
                calming :: pid() | undefined,
                freezer :: witness_trace_freeze:freezer() | undefined,
                job = #{} :: map(),
                root :: {pid(), reference()} | undefined,
                living = #{} :: #{reference() => pid()},
                master :: reference() | undefined,
                ended = stopped :: witness_record:ended(),
                naming :: trace:session() | undefined,
                nodes = [] :: [node()],
                phase = waiting :: waiting | running | draining | finished}).

%% Milliseconds that the writer may take at the end, before the supervisor kills this process.
-define(SHUTDOWN_MS, 120_000).
%% Places in the process table that the end of a recording may need besides.
-define(SPARE_PLACES, 8).

-doc "Starts to listen. Called while the VM boots.".
-spec main() -> ok.
main() ->
    Child = #{id => ?MODULE, start => {?MODULE, start_link, [group_leader()]}, restart => temporary, shutdown => ?SHUTDOWN_MS},
    {ok, _} = supervisor:start_child(kernel_safe_sup, Child),
    ok.

-doc "Finishes the recording. Called by processes that are about to end the VM.".
-spec finish_now() -> ok.
finish_now() ->
    try gen_server:call(?MODULE, ending, infinity) catch exit:_ -> ok end.

-doc false.
start_link(Leader) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Leader, []).

-doc false.
init(Leader) ->
    process_flag(trap_exit, true),
    %% The program may leave little time for the process that has to finish the recording.
    process_flag(priority, high),
    %% The program inherits this group leader. The supervisor's is that of an application.
    true = group_leader(Leader, self()),
    %% The process that controls this VM gets the signals, and passes them on; or they end it, and the pipe with it.
    [ok = os:set_signal(Signal, ignore) || Signal <- [sigterm, sighup, sigquit]],
    {ok, #state{port = open_port({fd, 3, 4}, [binary, {packet, 4}])}}.

-doc false.
handle_call(ending, _, State) -> {reply, ok, finish(halted, State)}.

-doc false.
handle_cast(_, State) -> {noreply, State}.

-doc false.
handle_info({Port, {data, Data}}, #state{port = Port} = State) ->
    case binary_to_term(Data) of
        {start, Job} -> {noreply, begin_job(Job, State)};
        {keep, Ref} -> {noreply, keep(Ref, State)};
        stop -> {noreply, handle_stop(State)}
    end;
handle_info({'EXIT', Port, _}, #state{port = Port} = State) -> {noreply, handle_stop(State)};
handle_info({'DOWN', Ref, process, _, Reason}, #state{root = {_, Ref}} = State) -> {noreply, handle_root_exit(Reason, State)};
handle_info({'DOWN', Ref, process, _, Reason}, #state{master = Ref} = State) ->
    {noreply, end_vm(finish({stopped, application(State), reason_text(Reason)}, State))};
handle_info({'DOWN', Ref, process, _, _}, #state{phase = draining, living = Living} = State)
  when is_map_key(Ref, Living) ->
    case maps:remove(Ref, Living) of
        Left when map_size(Left) =:= 0 -> {noreply, check_live(State#state{living = Left})};
        Left -> {noreply, State#state{living = Left}}
    end;
handle_info({trace, _, call, {erlang, setnode, [Node | _]}}, #state{nodes = Nodes} = State) ->
    {noreply, State#state{nodes = [Node | Nodes]}};
handle_info(_, State) -> {noreply, State}.

-doc false.
terminate(_, State) -> finish(halted, State).

%% --- begin -----------------------------------------------------------------------

begin_job(Job, State) ->
    ok = witness_event:use_syntax(maps:get(syntax, Job, auto)),
    maybe
        ok ?= check_woven(Job),
        ok ?= native(Job),
        ok = application:set_env(maps:get(environment, Job, []), [{persistent, true}]),
        ok ?= start_outside(maps:get(outside, Job, [])),
        ok = prepare_observer(Job),
        Session = trace:session_create(?MODULE, witness_record_native:tracer(), []),
        Calming = start_runtime(Session, Job),
        {ok, Writer} ?= (writer(Job)):start_link(maps:get(dir, Job), header(Job), maps:with([compress, last], Job)),
        Freezer = witness_trace_freeze:start(?SPARE_PLACES, fun is_own/1),
        %% Every process of the recorder exists by now: what this process spawns from here on is the program's.
        {ok, Observation} ?= start_observation(Job, State),
        ok = start_tracing(Session, Job),
        Begun = State#state{freezer = Freezer, job = Job, naming = trace_naming(), writer = Writer, observation = Observation,
                            session = Session, calming = Calming, phase = running},
        report(running, Begun#state.port),
        Begun#state{root = start_root(first_call(Job), Job)}
    else
        {error, Reason} ->
            report({refused, Reason}, State#state.port),
            end_vm(State#state{phase = finished})
    end.

%% Starts what woven code needs.
start_runtime(_, #{tracing_only := true}) -> undefined;
start_runtime(Session, Job) ->
    ok = witness_record_loads:start(maps:get(calls, Job)),
    {ok, Calming} = witness_record_exit_watch:start_link(Session),
    ok = witness_record_runtime:start(maps:merge(maps:with([calls, contents, hash], Job),
                                                 (runtime_options())#{calming => Calming})),
    ok = handler(Job),
    Calming.

%% A VM becomes a node by a call in a process below this supervisor. No process of the program is below it.
trace_naming() ->
    Session = trace:session_create(witness_record_naming, self(), []),
    _ = trace:function(Session, {erlang, setnode, 2}, true, []),
    _ = trace:process(Session, whereis(kernel_sup), true, [call, set_on_spawn]),
    Session.

start_tracing(Session, #{tracing_only := true} = Job) ->
    witness_record_traced:start(Session, (maps:with([contents, hash], Job))#{adopting => controller()});
start_tracing(Session, Job) ->
    _ = trace:process(Session, new, true, [procs]),
    case Job of #{unwoven := [_ | _]} -> witness_record_native:verify(on); #{} -> ok end.

start_root({M, F, Args}, #{tracing_only := true}) -> witness_record_traced:spawn_first(M, F, Args);
start_root({M, F, Args}, _) ->
    {Root, Ref, _} = witness_record_runtime:root(M, F, Args),
    {Root, Ref}.

%% `witness' is started before applications are recorded. Loading the module is no step of the first process.
prepare_observer(#{observer := _} = Job) ->
    _ = [code:ensure_loaded(Module) || #{run := {Module, _, _}} <- [Job]],
    {ok, _} = application:ensure_all_started(witness),
    ok;
prepare_observer(_) -> ok.

%% Every process that the recorder needs exists, so from now on only the program's processes are children of these two.
start_observation(#{observer := {Module, Argument}}, #state{port = Port}) ->
    Tell = fun(What) -> report({told, What}, Port) end,
    case Module:begin_observing(Argument, [self(), controller()], Tell) of
        {ok, Observation} -> {ok, {Module, Observation}};
        {error, Reason} -> {error, {observer, Reason}}
    end;
start_observation(_, _) -> {ok, none}.

end_observation({Module, Observation}) -> #{observed => Module:end_observing(Observation)};
end_observation(none) -> #{}.

%% Nothing is recorded yet, and the children of these processes will not be.
start_outside([]) -> ok;
start_outside([App | Apps]) ->
    case application:ensure_all_started(App) of
        {ok, _} -> start_outside(Apps);
        {error, Reason} -> {error, {application, App, {not_started, Reason}}}
    end.

runtime_options() -> #{adopting => controller(), ending => fun finish_now/0, loading => fun witness_record_loads:notice/2}.

%% The processes of applications are its children, whether this recorder or the program starts them.
controller() -> whereis(application_controller).

%% If a folder did not come first in the code path, the recording would have nothing in it.
check_woven(#{woven := []}) -> ok;
check_woven(#{woven := Folders}) ->
    case witness_weave_cache:check_use(Folders) of
        ok -> ok;
        {error, Reason} -> {error, {weave, Reason}}
    end.

writer(#{last := _}) -> witness_record_flight;
writer(_) -> witness_record_writer.

native(Job) ->
    maybe
        ok ?= witness_record_native:available(),
        witness_record_native:start(maps:with([budget, full_ids, times], Job))
    else
        {error, Reason} -> {error, {native, Reason}}
    end.

%% The VM calls this module when another one must be loaded. It calls the recorder, which must therefore be loaded before.
handler(#{handler := Folder}) ->
    ok = code:ensure_modules_loaded([witness_record_runtime, witness_record_dictionary, witness_record_heap,
                                     witness_record_exit_watch,
                                     witness_record_calls, witness_record_loads, witness_record_native, witness_weave_runtime,
                                     witness_weave_funs]),
    witness_record_handler:load(Folder).

header(Job) ->
    Options = maps:with([outside, contents, hash, full_ids, times, compress, budget, last, tracing_only], Job),
    maps:merge(#{options => Options, arguments => init:get_plain_arguments(),
                 max_heap_size => erlang:system_info(max_heap_size), full_ids => maps:get(full_ids, Job, false)},
               maps:with([run, app, applications, calls, unwoven, code, digests, tracing_only, signatures], Job)).

first_call(#{run := {M, F, Args}, applications := [_ | _] = Apps}) -> {?MODULE, call, [Apps, {M, F, Args}]};
first_call(#{run := MFA}) -> MFA;
first_call(#{app := App}) -> {?MODULE, start_application, [App]}.

-doc false.
-spec start_application(atom()) -> no_return().
start_application(App) -> exit({witness_started, application:ensure_all_started(App)}).

-doc false.
-spec call([atom()], {module(), atom(), [term()]}) -> term().
call(Apps, {M, F, Args}) ->
    [{ok, _} = application:ensure_all_started(App) || App <- Apps],
    apply(M, F, Args).

%% --- end -------------------------------------------------------------------------

handle_root_exit({witness_started, {ok, _}}, #state{job = #{app := App}} = State) ->
    case application_controller:get_master(App) of
        undefined -> end_vm(finish({stopped, App, normal}, State));
        Master -> State#state{master = monitor(process, Master)}
    end;
handle_root_exit({witness_started, {error, Reason}}, #state{job = #{app := App}} = State) ->
    end_vm(finish({stopped, App, reason_text(Reason)}, State));
handle_root_exit(Reason, State) -> check_live(State#state{phase = draining, ended = {returned, reason_text(Reason)}}).

application(#state{job = #{app := App}}) -> App.

%% Another process waits for the writer.
keep(Ref, #state{job = #{last := _} = Job, writer = Writer, port = Port, phase = Phase} = State)
  when Phase =:= running; Phase =:= draining ->
    Modules = modules(Job),
    _ = spawn(fun() ->
        report({kept, Ref, try witness_record_flight:keep(Writer, Modules) catch exit:_ -> {error, ended} end}, Port)
    end),
    State;
keep(Ref, #state{port = Port} = State) ->
    report({kept, Ref, {error, ended}}, Port),
    State.

reason_text(normal) -> normal;
reason_text(Reason) -> witness_event:format_reason(Reason, 2000, witness_event:syntax_of_reason(Reason)).

%% Processes that the root has left behind may still work. When they have ended, this looks again, and finds what they have
%% spawned. If none is alive and none was born meanwhile, all have ended; otherwise one may have ended and left a child.
check_live(#state{ended = Ended} = State) ->
    #{born := Before} = witness_record_native:info(),
    Living = [Pid || Pid <- processes(), in_tree(Pid)],
    case {Living, witness_record_native:info()} of
        {[], #{born := Before}} -> end_vm(finish(Ended, State));
        {[], #{}} -> check_live(State);
        {_, #{}} -> State#state{living = #{monitor(process, Pid) => Pid || Pid <- Living}}
    end.

%% Processes that applications have started for recorded ones do not keep the recording open.
in_tree(Pid) -> witness_record_native:identify(Pid) > 0 andalso application:get_application(Pid) =:= undefined.

%% Only the first call of `finish/2' has an effect, and says how the recording ended.
%% The program is suspended while the recording is finished: otherwise it might spawn without end.
handle_stop(#state{freezer = undefined} = State) -> end_vm(finish(stopped, State));
handle_stop(#state{freezer = Freezer} = State) ->
    ok = witness_trace_freeze:freeze(Freezer),
    Finished = finish(stopped, State),
    %% An application is stopped in order, so its processes must run.
    _ = is_application(State) andalso witness_trace_freeze:thaw(Freezer, 0),
    end_vm(Finished).

is_application(#state{job = #{app := _}}) -> true;
is_application(#state{job = Job}) -> maps:get(applications, Job, []) =/= [].

%% Whether it is a process of the recorder, or a monitor.
is_own(P) ->
    case process_info(P, [initial_call, dictionary]) of
        undefined -> false;
        [{initial_call, {M, _, _}}, {dictionary, Dictionary}] ->
            lists:any(fun(Module) -> lists:prefix("witness", atom_to_list(Module)) end,
                      [M | [First || {First, _, _} <- [proplists:get_value('$initial_call', Dictionary)]]])
    end.

finish(Ended, #state{phase = Phase, writer = Writer, session = Session, job = Job} = State)
  when Phase =:= running; Phase =:= draining ->
    Observed = end_observation(State#state.observation),
    _ = [ok = witness_record_exit_watch:settle(Calming) || Calming <- [State#state.calming], is_pid(Calming)],
    EndedAt = witness_record_stop:seal(maps:get(times, Job, false)),
    Unwoven = unwoven(Job),
    Timed = case EndedAt of none -> #{}; _ -> #{ended_at => EndedAt} end,
    More = Timed#{stopped => Ended, waiting => waiting(Job), unwoven => Unwoven, nodes => nodes_of(State)},
    Modules = modules(Job),
    {Outcome, Written} = case (writer(Job)):finish(Writer, Modules, More) of
        {ok, Summary} -> {recorded, Summary};
        {ended, Reason, Summary} -> {{ended, Reason}, Summary}
    end,
    true = trace:session_destroy(Session),
    #{born := Born} = witness_record_native:info(),
    report({finished, Observed#{outcome => Outcome, ended => Ended, files => Written, born => Born,
                              unwoven => [Module || {Module, _} <- Unwoven],
                              refused => witness_log_recording_refusal:reasons(final_header(Job), More#{modules => Modules})}},
         State#state.port),
    State#state{phase = finished};
finish(_, State) -> State.

%% A recording by tracing alone is not replayed.
waiting(#{tracing_only := true}) -> <<>>;
waiting(#{}) -> witness_record_stop:waiting().

%% An application, and what it needs, is stopped in order.
end_vm(State) ->
    case is_application(State) of
        true ->
            ok = init:stop(),
            State;
        false -> halt(0, [{flush, true}])
    end.

modules(#{woven := Folders}) ->
    [{Module, Module:module_info(md5), is_list(File) andalso lists:member(filename:dirname(File), Folders)}
     || {Module, File} <- code:all_loaded()].

unwoven(#{tracing_only := true}) -> [];
unwoven(#{unwoven := Names}) ->
    Noticed = witness_record_loads:noticed(),
    witness_record_unwoven:why(lists:ukeysort(1, Noticed ++ [{Name, unknown} || Name <- Names, code:is_loaded(Name) =/= false])).

%% The contents of the file `header'.
final_header(#{last := _} = Job) -> (header(Job))#{late => true};
final_header(Job) -> header(Job).

%% The names of this VM while it was a node.
nodes_of(#state{naming = Naming, nodes = Nodes}) ->
    _ = [receive {trace_delivered, all, Ref} -> ok end || Naming =/= undefined, Ref <- [trace:delivered(Naming, all)]],
    lists:usort([node() || is_alive()] ++ Nodes ++ drain_names()).

drain_names() ->
    receive {trace, _, call, {erlang, setnode, [Node | _]}} -> [Node | drain_names()] after 0 -> [] end.

report(Message, Port) ->
    try port_command(Port, term_to_binary(Message)) of true -> ok catch error:badarg -> ok end.
