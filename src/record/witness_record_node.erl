-module(witness_record_node).
-moduledoc """
Records, inside the VM of the program that is recorded.

`main/0` is what that VM is started with. It talks to `m:witness_record_vm` over two file descriptors, and does what
makes up a recording, in this order:

1. the native recorder and the writer are started;
2. every new process of the VM gets the trace flag `procs` in a session of its own, so that the recorder is told of each birth
   before the child can act, whoever its parent is, and of each end. Who has taken some messages loses the flag again, and
   `m:witness_record_calm` tells its end. Where nothing is woven, everybody has the flags of `m:witness_record_traced`;
3. the first process of the program is spawned. Its identifier is made beforehand (`child/0`) and is the label that it
   is born with, as with every other process that woven code spawns;
4. when that process and its descendants have ended, or the application has, or the program ends its VM, what is still
   in memory is written, with the list of modules.

*Why nothing is lost when the VM is ended.* `halt` in woven code calls `ending/0` first, whoever's process it is, and so
does the VM at a signal that it ends by (SIGUSR1). `init:stop` ends the
supervisors of `kernel`, under one of which this process is, after all applications: `terminate/2` comes to the same
end.

*Why this process does not disturb.* It is outside: it has no identifier, so what it says to a recorded process is
recorded with its content. It says nothing to them.
""".
-behaviour(gen_server).

-export([main/0, ending/0]).
-export_type([tell/0]).
-export([start_link/1, init/1, handle_call/3, handle_cast/2, handle_info/2, terminate/2]).
-export([start_application/1, call/2]).

-doc "Tells whoever looks after this VM (the option `on_told` of `m:witness_record`). Any process may call it.".
-type tell() :: fun((term()) -> ok).

-doc """
Begins to observe the children of these processes, of which one is the first process of the program. The application
`witness` runs in this VM. The error is for whoever began to record.
""".
-callback begin_observing(Argument :: term(), Parents :: [pid(), ...], tell()) -> {ok, Observation :: term()} | {error, term()}.

-doc "Ends it; the result is part of the summary.".
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

%% Milliseconds that the writer may take at the end, before a supervisor loses patience.
-define(SHUTDOWN, 120_000).
%% Processes that the end of a recording may need besides.
-define(PLACES, 8).

-doc "Starts to listen. Called while the VM boots.".
-spec main() -> ok.
main() ->
    Child = #{id => ?MODULE, start => {?MODULE, start_link, [group_leader()]}, restart => temporary, shutdown => ?SHUTDOWN},
    {ok, _} = supervisor:start_child(kernel_safe_sup, Child),
    ok.

-doc "Brings the recording to its end. Called by processes that are about to end the VM.".
-spec ending() -> ok.
ending() ->
    try gen_server:call(?MODULE, ending, infinity) catch exit:_ -> ok end.

-doc false.
start_link(Leader) -> gen_server:start_link({local, ?MODULE}, ?MODULE, Leader, []).

-doc false.
init(Leader) ->
    process_flag(trap_exit, true),
    %% The program may leave no time for who hears that it is to end.
    process_flag(priority, high),
    %% The program has it from here. That of the supervisor is an application's.
    true = group_leader(Leader, self()),
    %% Whoever looks after this VM hears of signals, and passes them on; or is ended by them, and the pipe with it.
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
        stop -> {noreply, stopped(State)}
    end;
handle_info({'EXIT', Port, _}, #state{port = Port} = State) -> {noreply, stopped(State)};
handle_info({'DOWN', Ref, process, _, Reason}, #state{root = {_, Ref}} = State) -> {noreply, root_ended(Reason, State)};
handle_info({'DOWN', Ref, process, _, Reason}, #state{master = Ref} = State) ->
    {noreply, leave(finish({stopped, application(State), text(Reason)}, State))};
handle_info({'DOWN', Ref, process, _, _}, #state{phase = draining, living = Living} = State)
  when is_map_key(Ref, Living) ->
    case maps:remove(Ref, Living) of
        Left when map_size(Left) =:= 0 -> {noreply, look(State#state{living = Left})};
        Left -> {noreply, State#state{living = Left}}
    end;
handle_info({trace, _, call, {erlang, setnode, [Node | _]}}, #state{nodes = Nodes} = State) ->
    {noreply, State#state{nodes = [Node | Nodes]}};
handle_info(_, State) -> {noreply, State}.

-doc false.
terminate(_, State) -> finish(halted, State).

%% --- begin -----------------------------------------------------------------------

begin_job(Job, State) ->
    maybe
        ok ?= woven(Job),
        ok ?= native(Job),
        ok = application:set_env(maps:get(environment, Job, []), [{persistent, true}]),
        ok ?= outside(maps:get(outside, Job, [])),
        ok = observable(Job),
        Session = trace:session_create(?MODULE, witness_record_native:tracer(), []),
        Calming = telling(Session, Job),
        {ok, Writer} ?= (writer(Job)):start_link(maps:get(dir, Job), header(Job), maps:with([compress, last], Job)),
        Freezer = witness_trace_freeze:start(?PLACES, fun is_own/1),
        %% Every process of the recorder exists by now: what this process spawns from here on is the program's.
        {ok, Observation} ?= observed(Job, State),
        ok = tracing(Session, Job),
        Begun = State#state{freezer = Freezer, job = Job, naming = naming(), writer = Writer, observation = Observation, session = Session,
                            calming = Calming,
                            phase = running},
        tell(running, Begun#state.port),
        Begun#state{root = root(first(Job), Job)}
    else
        {error, Reason} ->
            tell({refused, Reason}, State#state.port),
            leave(State#state{phase = finished})
    end.

%% What woven code needs.
telling(_, #{tracing_only := true}) -> undefined;
telling(Session, Job) ->
    ok = witness_record_loads:start(maps:get(calls, Job)),
    {ok, Calming} = witness_record_calm:start_link(Session),
    ok = witness_record_runtime:start(maps:merge(maps:with([calls, contents, hash], Job), (starting())#{calming => Calming})),
    ok = handler(Job),
    Calming.

%% A VM becomes a node by a call that a process below this supervisor makes. None of the program's processes is.
naming() ->
    Session = trace:session_create(witness_record_naming, self(), []),
    _ = trace:function(Session, {erlang, setnode, 2}, true, []),
    _ = trace:process(Session, whereis(kernel_sup), true, [call, set_on_spawn]),
    Session.

tracing(Session, #{tracing_only := true} = Job) ->
    witness_record_traced:start(Session, (maps:with([contents, hash], Job))#{adopting => controller()});
tracing(Session, Job) ->
    _ = trace:process(Session, new, true, [procs]),
    case Job of #{unwoven := [_ | _]} -> witness_record_native:verify(on); #{} -> ok end.

root({M, F, Args}, #{tracing_only := true}) -> witness_record_traced:first(M, F, Args);
root({M, F, Args}, _) ->
    {Root, Ref, _} = witness_record_runtime:root(M, F, Args),
    {Root, Ref}.

%% It is started before applications are recorded. To load the module is none of what the first process does.
observable(#{observer := _} = Job) ->
    _ = [code:ensure_loaded(Module) || #{run := {Module, _, _}} <- [Job]],
    {ok, _} = application:ensure_all_started(witness),
    ok;
observable(_) -> ok.

%% Everybody whom the recorder needs is there, so that only the program's processes are born of those who are named.
observed(#{observer := {Module, Argument}}, #state{port = Port}) ->
    Tell = fun(What) -> tell({told, What}, Port) end,
    case Module:begin_observing(Argument, [self(), controller()], Tell) of
        {ok, Observation} -> {ok, {Module, Observation}};
        {error, Reason} -> {error, {observer, Reason}}
    end;
observed(_, _) -> {ok, none}.

ended_observation({Module, Observation}) -> #{observed => Module:end_observing(Observation)};
ended_observation(none) -> #{}.

%% Nobody is recorded yet, and whom these processes spawn will not be.
outside([]) -> ok;
outside([App | Apps]) ->
    case application:ensure_all_started(App) of
        {ok, _} -> outside(Apps);
        {error, Reason} -> {error, {application, App, {not_started, Reason}}}
    end.

starting() -> #{adopting => controller(), ending => fun ending/0, loading => fun witness_record_loads:notice/2}.

%% The processes of applications are its children, whether this recorder starts them or the program.
controller() -> whereis(application_controller).

%% A folder that is not looked into first would mean a recording with nothing in it.
woven(#{woven := []}) -> ok;
woven(#{woven := Folders}) ->
    case witness_weave_cache:in_use(Folders) of
        ok -> ok;
        {error, Reason} -> {error, {weave, Reason}}
    end.

writer(#{last := _}) -> witness_record_last;
writer(_) -> witness_record_writer.

native(Job) ->
    maybe
        ok ?= witness_record_native:available(),
        witness_record_native:start(maps:with([budget, full_ids], Job))
    else
        {error, Reason} -> {error, {native, Reason}}
    end.

%% The VM calls this module when another one is to be loaded. It calls the recorder, so that must not have to be loaded.
handler(#{handler := Folder}) ->
    ok = code:ensure_modules_loaded([witness_record_runtime, witness_record_room, witness_record_calm,
                                     witness_record_calls, witness_record_loads, witness_record_native, witness_weave_runtime, witness_weave_funs]),
    witness_record_handler:load(Folder).

header(Job) ->
    Options = maps:with([outside, contents, hash, full_ids, compress, budget, last, tracing_only], Job),
    maps:merge(#{options => Options, arguments => init:get_plain_arguments(),
                 max_heap_size => erlang:system_info(max_heap_size), full_ids => maps:get(full_ids, Job, false)},
               maps:with([run, app, applications, calls, unwoven, code, digests, tracing_only], Job)).

first(#{run := {M, F, Args}, applications := [_ | _] = Apps}) -> {?MODULE, call, [Apps, {M, F, Args}]};
first(#{run := MFA}) -> MFA;
first(#{app := App}) -> {?MODULE, start_application, [App]}.

-doc false.
-spec start_application(atom()) -> no_return().
start_application(App) -> exit({witness_started, application:ensure_all_started(App)}).

-doc false.
-spec call([atom()], {module(), atom(), [term()]}) -> term().
call(Apps, {M, F, Args}) ->
    [{ok, _} = application:ensure_all_started(App) || App <- Apps],
    apply(M, F, Args).

%% --- end -------------------------------------------------------------------------

root_ended({witness_started, {ok, _}}, #state{job = #{app := App}} = State) ->
    case application_controller:get_master(App) of
        undefined -> leave(finish({stopped, App, normal}, State));
        Master -> State#state{master = monitor(process, Master)}
    end;
root_ended({witness_started, {error, Reason}}, #state{job = #{app := App}} = State) ->
    leave(finish({stopped, App, text(Reason)}, State));
root_ended(Reason, State) -> look(State#state{phase = draining, ended = {returned, text(Reason)}}).

application(#state{job = #{app := App}}) -> App.

%% Another process waits for it.
keep(Ref, #state{job = #{last := _} = Job, writer = Writer, port = Port, phase = Phase} = State)
  when Phase =:= running; Phase =:= draining ->
    Modules = modules(Job),
    _ = spawn(fun() -> tell({kept, Ref, try witness_record_last:keep(Writer, Modules) catch exit:_ -> {error, ended} end}, Port) end),
    State;
keep(Ref, #state{port = Port} = State) ->
    tell({kept, Ref, {error, ended}}, Port),
    State.

text(normal) -> normal;
text(Reason) -> witness_event:format_term(Reason, 2000).

%% What the root has left behind may still work. Whatever those have spawned before they ended is found then. If nobody was
%% born meanwhile, everybody who is alive was in the list; otherwise one of it may have ended, and left a child.
look(#state{ended = Ended} = State) ->
    #{born := Before} = witness_record_native:info(),
    Living = [Pid || Pid <- processes(), in_tree(Pid)],
    case {Living, witness_record_native:info()} of
        {[], #{born := Before}} -> leave(finish(Ended, State));
        {[], #{}} -> look(State);
        {_, #{}} -> State#state{living = #{monitor(process, Pid) => Pid || Pid <- Living}}
    end.

%% Processes that applications have started on behalf of recorded ones do not hold the recording open.
in_tree(Pid) -> witness_record_native:identify(Pid) > 0 andalso application:get_application(Pid) =:= undefined.

%% Once: whoever ends the recording first says how it ended.
%% The program goes on while the recording is brought to its end, unless it is suspended: it might spawn without end.
stopped(#state{freezer = undefined} = State) -> leave(finish(stopped, State));
stopped(#state{freezer = Freezer} = State) ->
    ok = witness_trace_freeze:freeze(Freezer),
    Finished = finish(stopped, State),
    %% An application is stopped in good order.
    _ = is_application(State) andalso witness_trace_freeze:thaw(Freezer, 0),
    leave(Finished).

is_application(#state{job = #{app := _}}) -> true;
is_application(#state{job = Job}) -> maps:get(applications, Job, []) =/= [].

%% Processes of the recorder, and monitors.
is_own(P) ->
    case process_info(P, [initial_call, dictionary]) of
        undefined -> false;
        [{initial_call, {M, _, _}}, {dictionary, Dictionary}] ->
            lists:any(fun(Module) -> lists:prefix("witness", atom_to_list(Module)) end,
                      [M | [First || {First, _, _} <- [proplists:get_value('$initial_call', Dictionary)]]])
    end.

finish(Ended, #state{phase = Phase, writer = Writer, session = Session, job = Job} = State)
  when Phase =:= running; Phase =:= draining ->
    Observed = ended_observation(State#state.observation),
    _ = [ok = witness_record_calm:settle(Calming) || Calming <- [State#state.calming], is_pid(Calming)],
    ok = witness_record_stop:seal(),
    Unwoven = unwoven(Job),
    More = #{stopped => Ended, waiting => waiting(Job), unwoven => Unwoven, nodes => nodes_of(State)},
    Modules = modules(Job),
    {Outcome, Written} = case (writer(Job)):finish(Writer, Modules, More) of
        {ok, Summary} -> {recorded, Summary};
        {ended, Reason, Summary} -> {{ended, Reason}, Summary}
    end,
    true = trace:session_destroy(Session),
    #{born := Born} = witness_record_native:info(),
    tell({finished, Observed#{outcome => Outcome, ended => Ended, files => Written, born => Born,
                              unwoven => [Module || {Module, _} <- Unwoven],
                              refused => witness_log_recording_refusal:reasons(written(Job), More#{modules => Modules})}},
         State#state.port),
    State#state{phase = finished};
finish(_, State) -> State.

%% By tracing alone nothing is replayed.
waiting(#{tracing_only := true}) -> <<>>;
waiting(#{}) -> witness_record_stop:waiting().

%% An application, and what it needs, is stopped in good order.
leave(State) ->
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

%% What stands in the file `header'.
written(#{last := _} = Job) -> (header(Job))#{late => true};
written(Job) -> header(Job).

%% What this VM was called while it was a node.
nodes_of(#state{naming = Naming, nodes = Nodes}) ->
    _ = [receive {trace_delivered, all, Ref} -> ok end || Naming =/= undefined, Ref <- [trace:delivered(Naming, all)]],
    lists:usort([node() || is_alive()] ++ Nodes ++ named_since()).

named_since() ->
    receive {trace, _, call, {erlang, setnode, [Node | _]}} -> [Node | named_since()] after 0 -> [] end.

tell(Message, Port) ->
    try port_command(Port, term_to_binary(Message)) of true -> ok catch error:badarg -> ok end.
