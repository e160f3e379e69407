-module(witness_record_vm).
-moduledoc """
Controls the VM of a program that is recorded, from outside.

That VM has the standard input, output and error of this one, so that a program reads and prints as in a plain run. This process
and the VM exchange messages over two more file descriptors:

```
this process                                   witness_record_node, there
     | ------------------ {start, Job} ------------------> |
     | <------- running | {refused, Reason} -------------- |
     | <------- {told, What} ----------------------------- |  any number of times, from the observer of the program
     | <------- {finished, Summary} ---------------------- |  the VM ends
     | ------------------ {keep, Ref} --------------------> |  any number of times
     | <------- {kept, Ref, Result} ----------------------- |
     | ------------------ stop ---------------------------> |  at any time: come to an end
```

If the VM ends without `finished`, it was halted or killed: what was written until then can be read. If this process, or its
owner, is gone, the pipe ends, which is `stop` for the other side. So no VM is left behind.

When the VM has ended, this process seals the recording (`m:witness_record_seal`).
""".
-behaviour(gen_server).

-export([start/2, await/2, stop/1, keep/1, arguments/3]).
-export([init/1, handle_continue/2, handle_call/3, handle_cast/2, handle_info/2]).

-record(state, {job :: map(),
                code :: witness_record_code:code(),
                options :: witness_record:options(),
                owner :: reference() | gone,
                port :: port() | undefined,
                started = none :: none | gen_server:from() | running,
                waiting = [] :: [gen_server:from()],
                keeping = #{} :: #{reference() => gen_server:from()},
                told = none :: none | {finished, map()} | {refused, term()},
                result = none :: none | {ok, witness_record:summary()} | {error, witness_record:reason()}}).

-doc "Starts the VM; returns when the program runs.".
-spec start(witness_record:options(), witness_record_code:code()) ->
    {ok, pid()} | {error, witness_record:reason()}.
start(Options, Code) ->
    {ok, Pid} = gen_server:start(?MODULE, {self(), Options, Code}, []),
    case gen_server:call(Pid, started, infinity) of
        ok -> {ok, Pid};
        {error, _} = Error ->
            ok = gen_server:stop(Pid),
            Error
    end.

-doc "Waits for the end of the VM.".
-spec await(pid(), timeout()) -> {ok, witness_record:summary()} | {error, witness_record:reason() | timeout}.
await(Pid, Timeout) ->
    try
        gen_server:call(Pid, await, Timeout)
    catch
        exit:{timeout, _} -> {error, timeout}
    end.

-doc "Ends the program and the recording.".
-spec stop(pid()) -> ok.
stop(Pid) -> gen_server:cast(Pid, stop).

-doc "Writes what is in memory; returns the folder.".
-spec keep(pid()) -> witness_record_flight:kept() | {error, ended}.
keep(Pid) -> gen_server:call(Pid, keep, infinity).

-doc """
The arguments of a VM that runs this code, and Witness beside it. Of the folders after `-pa` the last one takes precedence. While
the VM boots, when it loads only modules of OTP, it is the first one.
""".
-spec arguments(Boot :: file:filename(), witness_record:options(), witness_record_code:code()) -> [string()].
arguments(Boot, Options, #{woven := Woven, plain := Plain}) ->
    Own = filename:dirname(code:which(?MODULE)),
    ["-noshell", "+Bi", "+fnu", "-boot", Boot, "-mode", "interactive"]
        ++ maps:get(vm_args, Options, [])
        ++ [Argument || #{config := File} <- [Options], Argument <- ["-config", filename:absname(File)]]
        ++ ["-pa", Own | lists:reverse(Plain)] ++ lists:reverse(Woven).

-doc false.
init({Owner, Options, Code}) ->
    State = #state{job = job(Options, Code), code = Code, options = Options, owner = monitor(process, Owner)},
    {ok, State, {continue, open}}.

job(Options, Code) ->
    Given = maps:with([run, app, applications, environment, contents, hash, times, full_ids, compress, budget, observer, last,
                       tracing_only, syntax, signatures], Options),
    Used = maps:with([woven, unwoven, calls, handler, outside, digests], Code),
    %% A replay determines the code of the program again, with these options.
    Again = #{pa => witness_record_code:user(Options), weave => maps:get(weave, Options, [])
                  ++ [compiler || is_map_key(observer, Options)]},
    maps:merge(Given#{dir => filename:absname(maps:get(dir, Options)), code => Again}, Used).

-doc false.
handle_continue(open, #state{options = Options, code = Code, job = Job} = State) ->
    process_flag(trap_exit, true),
    Arguments = arguments("no_dot_erlang", Options, Code) ++ ["-s", "witness_record_node", "main"],
    Port = open_port({spawn_executable, erl()}, [nouse_stdio, exit_status, binary, {packet, 4}, {args, Arguments}]),
    {noreply, send_to_vm(Port, {start, Job}, State#state{port = Port})}.

erl() -> filename:join([code:root_dir(), "bin", "erl"]).

%% A VM that has ended cannot get a message; its exit status will arrive.
send_to_vm(Port, Message, State) ->
    try port_command(Port, term_to_binary(Message)) of
        true -> State
    catch
        error:badarg -> State
    end.

-doc false.
handle_call(started, From, #state{result = none, started = none} = State) -> {noreply, State#state{started = From}};
handle_call(started, _, #state{result = none} = State) -> {reply, ok, State};
handle_call(await, From, #state{result = none, waiting = Waiting} = State) ->
    {noreply, State#state{waiting = [From | Waiting]}};
handle_call(await, _, #state{result = Result} = State) -> {reply, Result, State};
handle_call(keep, From, #state{result = none, port = Port, keeping = Keeping} = State) ->
    Ref = make_ref(),
    {noreply, send_to_vm(Port, {keep, Ref}, State#state{keeping = Keeping#{Ref => From}})};
handle_call(keep, _, State) -> {reply, {error, ended}, State};
handle_call(started, _, #state{result = {error, _} = Error} = State) -> {reply, Error, State};
handle_call(started, _, State) -> {reply, ok, State}.

-doc false.
handle_cast(stop, State) -> {noreply, send_stop(State)}.

send_stop(#state{result = none, port = Port} = State) -> send_to_vm(Port, stop, State);
send_stop(State) -> State.

-doc false.
handle_info({Port, {data, Data}}, #state{port = Port} = State) ->
    %% It comes from our own code, in a VM that runs with the rights of this one.
    {noreply, handle_report(witness_event_external:decode(Data), State)};
handle_info({Port, {exit_status, Status}}, #state{port = Port} = State) -> handle_exit(Status, State);
handle_info({'DOWN', Owner, process, _, _}, #state{owner = Owner, result = none} = State) ->
    {noreply, send_stop(State#state{owner = gone})};
handle_info({'DOWN', Owner, process, _, _}, #state{owner = Owner} = State) -> {stop, normal, State};
handle_info(_, State) -> {noreply, State}.

handle_report(running, #state{started = {_, _} = From} = State) ->
    gen_server:reply(From, ok),
    handle_report(running, State#state{started = running});
%% From now on the recording is there, whatever happens.
handle_report(running, State) ->
    _ = keep_code(State),
    State#state{started = running};
handle_report({told, What}, #state{options = #{on_told := Tell}} = State) ->
    _ = Tell(What),
    State;
handle_report({kept, Ref, Result}, #state{keeping = Keeping} = State) ->
    {From, Others} = maps:take(Ref, Keeping),
    gen_server:reply(From, Result),
    State#state{keeping = Others};
handle_report({finished, _} = Told, State) -> State#state{told = Told};
handle_report({refused, _} = Told, State) -> State#state{told = Told}.

handle_exit(Status, #state{owner = gone} = State) ->
    _ = seal(result(Status, State), State),
    {stop, normal, State};
handle_exit(Status, #state{started = Started, waiting = Waiting} = State) ->
    Result = seal(result(Status, State), State),
    [gen_server:reply(From, Result) || From <- Waiting],
    [gen_server:reply(From, {error, ended}) || _ := From <- State#state.keeping],
    case Started of
        {_, _} when element(1, Result) =:= error -> gen_server:reply(Started, Result);
        {_, _} -> gen_server:reply(Started, ok);
        _ -> ok
    end,
    {noreply, State#state{result = Result, waiting = []}}.

%% Nothing is written any more, however the VM has ended, and until now only this account could write.
seal({ok, Summary}, #state{job = #{dir := Dir}} = State) ->
    Kept = case keep_code(State) of
        ok -> #{};
        {error, Reason} -> #{not_kept => Reason}
    end,
    case witness_record_seal:seal(Dir) of
        ok -> {ok, maps:merge(Summary, Kept)};
        {error, Error} -> {ok, maps:merge(Summary, Kept#{unsealed => Error})}
    end;
seal(Error, _) -> Error.

keep_code(#state{job = #{dir := Dir}, code = #{archive := Archive}}) -> witness_record_kept:write(Dir, Archive);
keep_code(#state{}) -> ok.

result(Status, #state{told = {finished, Summary}}) -> {ok, Summary#{vm => Status}};
result(_, #state{told = {refused, Reason}}) -> {error, Reason};
result(Status, #state{told = none, started = running, job = Job}) ->
    %% It is not known which modules were loaded: only the header counts.
    {ok, #{outcome => {ended, {vm, Status}}, ended => halted, vm => Status, unwoven => [],
           refused => witness_log_recording_refusal:reasons(case Job of #{last := _} -> Job#{late => true}; _ -> Job end, #{})}};
result(Status, #state{told = none}) -> {error, {vm, {exit_status, Status}}}.
