-module(witness_replay_node).
-moduledoc """
The controller of a replay, inside its VM: it starts the first processes, handles every end, and reports the result.

Processes report to it (`witness_replay_interpreter:notify_controller/1`): births, ends, divergences, output. It reports to
`m:witness_replay_vm` over a port, and gets requests over it. *Invariant:* the VM ends, and gives the reason.

A process that waits announces for which one (`m:witness_replay_backpressure`). If nothing runs any more, and processes still
wait, none is left to send what they wait for. If one of them has come to the end of its log without having ended, the recording
was cut there. Then those that wait for it stop there too. Otherwise they have diverged.

The controller has two ways to see that nothing runs. One check is certain (`at_rest/1`). The other one compares several checks
in succession, since a process may compute, load code, or be throttled meanwhile (`confirm/5`).
""".

-export([main/0]).

%% Milliseconds without a message after which the controller checks whether anything still runs.
-define(QUIET_MS, 250).
%% The same before the first check, which finds out whether it is certain that nothing runs.
-define(FIRST_CHECK_MS, 20).
%% The number of equal checks in succession after which nothing runs.
-define(MIN_EQUAL_CHECKS, 4).
%% The next check comes after this many times the duration of the last one.
-define(CHECK_PAUSE_FACTOR, 8).
%% The number of equal checks after which the controller waits no longer for a process that is busy.
-define(MAX_EQUAL_CHECKS, 120).
%% Characters of a term in a report.
-define(MAX_TERM_CHARS, 1000).

-record(state, {port :: port(),
                living = #{} :: #{pos_integer() => pid()},
                begun = 0 :: non_neg_integer(),
                entries = 0 :: non_neg_integer(),
                ends = #{ended => 0, killed => 0, cut => 0} :: #{ended | killed | cut => non_neg_integer()},
                suspected = [] :: [{pos_integer(), pid(), Reason :: term(), map()}],
                cut = #{} :: #{pos_integer() => []},
                throttling_disabled = false :: boolean(),
                check_ms = 0 :: non_neg_integer(),
                seen = none :: none | uncertain | {term(), pos_integer()}}).

-doc "Starts the controller. Called while the VM boots.".
-spec main() -> ok.
main() ->
    _ = spawn(fun listen/0),
    ok.

%% Whatever happens, the VM ends. If the other side has gone, the port reports that, and no process is left to report to.
-spec listen() -> no_return().
listen() ->
    process_flag(trap_exit, true),
    %% Every process reports to the controller. If it fell behind, each of its garbage collections would otherwise move all
    %% queued messages.
    _ = process_flag(message_queue_data, off_heap),
    _ = process_flag(priority, high),
    try
        ok = witness_record_boot:delete(),
        Port = open_port({fd, 3, 4}, [binary, {packet, 4}]),
        receive
            {Port, {data, Data}} ->
                _ = start(witness_event_external:decode(Data), Port),
                wait_for_bye(Port);
            {'EXIT', Port, _} -> ok
        end
    after
        halt(0, [{flush, true}])
    end.

%% Waits until the other side has read all reports.
wait_for_bye(Port) ->
    receive
        {Port, {data, Data}} ->
            case witness_event_external:decode(Data) of
                bye -> ok;
                more -> wait_for_bye(Port)
            end;
        {'EXIT', Port, _} -> ok
    end.

start({start, Job}, Port) ->
    %% A fault here is reported too.
    try run_job(Job, Port) catch Class:Reason:Stack -> tell({failed, {Class, Reason, Stack}}, Port) end.

run_job(#{dir := Dir, calls := Calls, mirror := Mirror} = Job, Port) ->
    ok = witness_event:use_syntax(maps:get(syntax, Job, auto)),
    maybe
        ok ?= witness_weave_cache:check_use(maps:get(woven, Job)),
        ok = witness_replay_loads:start([filename:dirname(code:which(?MODULE)), maps:get(handler, Job) | maps:get(woven, Job)],
                                        Calls),
        {ok, Recording} ?= witness_log_recording:open(Dir, #{max_atoms => 1_000_000, ordered => maps:get(whole, Job, false),
                                                            signatures => maps:get(signatures, Job, [])}),
        {ok, Born} ?= witness_replay_process_table:read(Recording),
        _ = witness_replay_log:start(Recording),
        receive {witness_replay_log, ready} -> ok end,
        Options = maps:get(options, witness_log_recording:header(Recording), #{}),
        ok = witness_replay_interpreter:init(#{
            calls => Calls, mirror => Mirror, announced => maps:get(contents, Options, false),
            marked => with_results(witness_record_calls:added(), Recording),
            compiled => with_results([{re, compile, 2}], Recording) =/= [],
            checked => lists:any(fun(Option) -> maps:get(Option, Options, false) end, [hash, contents])}),
        ok = witness_record_runtime:set_runtime(witness_replay_runtime),
        ok = witness_replay_compiled:start(),
        ok = witness_replay_heap:start(maps:get(max_heap_size, witness_log_recording:header(Recording), none)),
        ok = witness_replay_breakpoint:start(maps:get(limits, Job, none)),
        ok = handler(Job),
        Run = maps:get(run, witness_log_recording:header(Recording), none),
        Firsts = [{Id, full_signature(Signature, Run)} || {Id, Signature} <- Born],
        ok = case Job of
            #{events := true, observed := Observed} -> witness_replay_emitter:start(Port, maps:get(whole, Job, false), Observed);
            #{} -> ok
        end,
        {ok, Traced} ?= start_trace(Job),
        Result = loop(start_first(Firsts, #state{port = Port})),
        ok = witness_replay_emitter:finish(),
        _ = [tell({calls, witness_replay_traced:finish(Traced)}, Port) || Traced =/= none],
        tell(Result, Port)
    else
        {error, {witness_log_recording, _} = Error} -> tell(unreadable(Error), Port);
        {error, {not_in_use, _} = Reason} -> tell({failed, Reason}, Port);
        {error, Reason} -> tell({refused, Reason}, Port)
    end.

%% Functions that were added to the table of calls later have no results in the recording.
with_results(Functions, Recording) ->
    #{calls := Calls} = witness_log_recording:header(Recording),
    [Function || Function <- Functions, is_map_key(Function, Calls)].

%% The module that the VM calls when a function is not there. Woven, it can be used when all that it needs is loaded.
handler(#{handler := Folder}) ->
    ok = code:ensure_modules_loaded([beam_lib, prim_eval, witness_replay_fun, witness_record_dictionary]),
    witness_record_handler:load(Folder).

start_trace(#{calls_of := Function, woven := Woven}) ->
    case witness_replay_traced:start(Function, Woven) of
        {error, Reason} -> {error, {traced, Reason}};
        Started -> Started
    end;
start_trace(#{}) -> {ok, none}.

tell(Message, Port) -> true = port_command(Port, term_to_binary(Message)).

%% Starts the processes without a recorded parent.
start_first([], State) -> State;
start_first([{Id, {_, _, Args} = MFA} | Firsts], State) when is_list(Args) ->
    Start = witness_replay_fun:local(MFA),
    ok = witness_replay_backpressure:count_live(),
    ok = witness_replay_emitter:report_birth(Id, Start),
    start_first(Firsts, add_live(Id, witness_replay_spawn:start_first(Id, Start, fun witness_replay_runtime:apply/3), State));
start_first([{Id, _} | _], _) ->
    {diverged, report(Id, 1, ~"a process begins", ~"its arguments are too large to be in the recording", [], [])}.

%% Arguments that are too large for a birth are in the header, if they are those of the function that was recorded.
full_signature({Module, Function, Arity}, {Module, Function, Args} = Run) when is_integer(Arity), length(Args) =:= Arity -> Run;
full_signature(Signature, _) -> Signature.

add_live(Id, Proxy, #state{living = Living, begun = Begun} = State) ->
    _ = monitor(process, Proxy),
    State#state{living = Living#{Id => Proxy}, begun = Begun + 1, seen = none}.

loop({diverged, Divergence}) -> {finished, #{outcome => diverged, divergence => Divergence, processes => 0, entries => 0,
                                                 cut => 0, killed => 0}};
loop(#state{living = Living} = State) when map_size(Living) =:= 0 -> explain(lists:reverse(State#state.suspected), State);
loop(#state{port = Port} = State) ->
    receive
        {witness_replay, {begun, Id, Proxy}} -> loop(add_live(Id, Proxy, State));
        {witness_replay, {ended, Id, How, At}} -> loop(handle_end(Id, How, At, State));
        {witness_replay, {diverged, #{at := At} = Divergence}} ->
            #{entries := Entries} = Summary = summary(diverged, State),
            {finished, Summary#{entries := Entries + At - 1, divergence => divergence(Divergence)}};
        {witness_replay, {suspected, Pid, Reason, Divergence}} ->
            loop(State#state{suspected = [{maps:get(id, Divergence), Pid, Reason, Divergence} | State#state.suspected]});
        {witness_replay, {unreadable, Error}} -> unreadable(Error);
        {witness_replay, {output, Request}} ->
            _ = [tell({output, Text}, Port) || Text <- output_text(Request)],
            loop(State);
        {'DOWN', _, process, Proxy, Reason} when Reason =/= killed, Reason =/= noproc ->
            case [Id || Id := Living <- State#state.living, Living =:= Proxy] of
                [] -> loop(State);
                [Id | _] -> {failed, {process, Id, Reason}}
            end;
        %% `noproc': the VM has ended the process before this one had it under a monitor.
        {'DOWN', _, process, Proxy, _} ->
            case witness_replay_heap:take_bounded(Proxy) of
                none -> loop(State);
                Process -> loop(handle_kill(Process, State))
            end;
        {Port, {data, Data}} ->
            handle_request(witness_event_external:decode(Data), State);
        {{witness_state, Ref}, Reply} ->
            tell({answer, Ref, Reply}, Port),
            loop(State);
        {'EXIT', Port, _} -> {failed, alone};
        {'EXIT', _, Reason} -> {failed, {reader, Reason}}
    after quiet_ms(State) ->
        %% A process that waits for the consumer of events does not wait for the program.
        case witness_replay_emitter:is_behind() orelse witness_replay_breakpoint:is_on() of
            true -> loop(State#state{seen = uncertain});
            false ->
                Begin = erlang:monotonic_time(millisecond),
                Look = check(State),
                judge(Look, State#state{check_ms = erlang:monotonic_time(millisecond) - Begin})
        end
    end.

%% To check very many processes takes long, and most of the time is theirs.
quiet_ms(#state{seen = none, check_ms = Last}) -> max(?FIRST_CHECK_MS, ?CHECK_PAUSE_FACTOR * Last);
quiet_ms(#state{check_ms = Last}) -> max(?QUIET_MS, ?CHECK_PAUSE_FACTOR * Last).

handle_request(more, State) ->
    ok = witness_replay_emitter:acknowledge(),
    loop(State);
handle_request({limits, Limits}, #state{living = Living} = State) ->
    ok = witness_replay_breakpoint:raise(Limits, maps:values(Living)),
    loop(State);
handle_request({look, Ref, Id}, #state{port = Port, living = Living} = State) ->
    tell({answer, Ref, case Living of #{Id := Proxy} -> witness_replay_breakpoint:inspect(Proxy); #{} -> none end}, Port),
    loop(State);
%% The process may not have started yet.
handle_request({ask, Ref, Id}, State) ->
    _ = [ok = witness_replay_breakpoint:ask(Pid, Ref) || {Pid, _} <- [witness_replay_proxies:proxy(Id)]],
    loop(State).

%% A process has ended with another reason than the recorded one: a signal with the recorded reason has to explain that. Another
%% process has sent it, or has ended with that reason.
explain([], State) -> {finished, summary(identical, State)};
explain([{Id, Pid, Reason, Divergence} | Suspected], State) ->
    case witness_replay_interpreter:has_exit_signal(Pid, Reason)
        orelse witness_replay_log:has_same_exit(Id, Reason) of
        true -> explain(Suspected, State);
        false -> {finished, (summary(diverged, State))#{divergence => divergence(Divergence)}}
    end.

unreadable({Module, Reason}) -> {failed, {unreadable, unicode:characters_to_binary(Module:format_error(Reason))}}.

%% The controller has killed the process, which reported its own end at the same time.
handle_end(Id, _, _, #state{living = Living} = State) when not is_map_key(Id, Living) -> State;
handle_end(Id, How, At, #state{living = Living, ends = Ends, entries = Entries, cut = Cut} = State) ->
    #{How := N} = Ends,
    State#state{living = maps:remove(Id, Living), ends = Ends#{How := N + 1}, entries = Entries + At, seen = none,
                cut = case How of cut -> Cut#{Id => []}; _ -> Cut end}.

%% Live processes have passed entries, too.
summary(Outcome, #state{living = Living, begun = Begun, entries = Entries, ends = #{killed := Killed, cut := Cut}}) ->
    #{outcome => Outcome, processes => Begun, killed => Killed, cut => Cut,
      entries => lists:sum([Entries | [position(Proxy) - 1 || Proxy <- maps:values(Living)]])}.

%% --- when nothing runs -----------------------------------------------------------

%% A process that waits, for a message or until another one has taken some, announces that. A throttled process often checks
%% whether it still is, so its reductions do not count.
check(#state{seen = none} = State) -> at_rest(State);
check(#state{living = Living}) ->
    States = witness_replay_backpressure:states(maps:keys(Living)),
    Waits = maps:map(fun(_, {_, For}) -> For; (_, begins) -> none end, States),
    Busy = #{Id => Proxy || Id := Proxy <- Living, not is_map_key(Id, Waits)},
    Spinning = #{Id => Proxy || Id := Proxy <- Busy, may_spin(Proxy)},
    Others = [reductions(Proxy) || Id := Proxy <- Living, not is_map_key(Id, Spinning), not is_held(Id, States)],
    {{Waits, maps:keys(Spinning), Others}, States, Busy, Spinning}.

judge(false, State) -> loop(State#state{seen = uncertain});
judge({true, Waits}, State) -> handle_stuck(Waits, State);
%% Several checks have to find the same: a message may be on its way, and code may be being loaded.
judge({{Waits, _, _} = Now, States, Busy, Spinning}, #state{seen = {Now, N}} = State) ->
    %% The other processes may wait for those that are not spawned yet.
    case N + 1 >= ?MIN_EQUAL_CHECKS andalso lists:member(begins, maps:values(States)) of
        true ->
            ok = witness_replay_backpressure:raise_limit(),
            loop(State#state{seen = none});
        false -> confirm(N + 1, Waits, Busy, Spinning, State#state{seen = {Now, N + 1}})
    end;
judge({Now, _, _, _}, State) -> loop(State#state{seen = {Now, 1}}).

%% Whether all wait for messages, and no message is on its way: then nothing will ever run. Only replayed processes send to one
%% another. When a send returns, the message is in the mailbox, and a receiver that waits there was woken. Each process is seen
%% twice without having run in between, at rest and with an empty mailbox. So when the last one was seen for the first time,
%% none ran, and none had anything to take. If the controller does not know a process, one that it knows has spawned it,
%% directly or through others. But a parent notifies the controller first, and the controller has no message left.
at_rest(#state{living = Living}) ->
    Ids = maps:keys(Living),
    maybe
        {true, Waits} ?= waits(Ids),
        {true, Resting} ?= resting(maps:values(Living), []),
        {true, Waits} ?= waits(Ids),
        {true, Resting} ?= resting(maps:values(Living), []),
        {message_queue_len, 0} ?= process_info(self(), message_queue_len),
        {true, Waits}
    else
        _ -> false
    end.

%% The process that each one waits for; `false` if one does not wait.
waits(Ids) -> waits(Ids, #{}).

waits([], Waits) -> {true, Waits};
waits([Id | Ids], Waits) ->
    case witness_replay_backpressure:states([Id]) of
        #{Id := {waits, For}} -> waits(Ids, Waits#{Id => For});
        #{} -> false
    end.

%% How much they have run so far; `false` if one is not at rest.
resting([], Reductions) -> {true, Reductions};
resting([Proxy | Proxies], Reductions) ->
    case process_info(Proxy, [status, message_queue_len, reductions]) of
        [{status, waiting}, {message_queue_len, 0}, {reductions, R}] -> resting(Proxies, [R | Reductions]);
        _ -> false
    end.

is_held(Id, States) ->
    case States of
        #{Id := {held, _}} -> true;
        #{Id := begins} -> true;
        #{} -> false
    end.

reductions(Proxy) -> process_info(Proxy, [reductions, message_queue_len]).

%% A process that has ended would have reported it. So the VM has ended it, because it has another limit than the recorded VM.
confirm(N, Waits, Busy, Spinning, State) when N >= ?MIN_EQUAL_CHECKS ->
    case [Id || Id := Proxy <- Busy, not is_process_alive(Proxy)] of
        [Id | _] -> {failed, {process, Id, killed}};
        [] -> resolve(N, Waits, Busy, Spinning, State)
    end;
confirm(_, _, _, _, State) -> loop(State).

%% A process without an entry left that computes forever was killed meanwhile. As long as others wait for it, it may have
%% something to send first.
resolve(N, Waits, Busy, Spinning, State) when map_size(Spinning) > 0, map_size(Spinning) =:= map_size(Busy) ->
    case N < ?MAX_EQUAL_CHECKS andalso lists:any(fun(For) -> is_map_key(For, Spinning) end, maps:values(Waits)) of
        true -> loop(State);
        false -> loop(maps:fold(fun(_, Proxy, S) ->
            %% It may just have ended by itself: then it reports that.
            case witness_replay_heap:take_bounded(Proxy) of
                none -> S;
                Process ->
                    exit(Proxy, kill),
                    handle_kill(Process, S)
            end
        end, State, Spinning))
    end;
resolve(_, Waits, Busy, _, #state{living = Living, throttling_disabled = false} = State) when map_size(Busy) =:= 0 ->
    case lists:keymember(held, 1, maps:values(witness_replay_backpressure:states(maps:keys(Living)))) of
        true ->
            ok = witness_replay_backpressure:disable(),
            loop(State#state{throttling_disabled = true, seen = none});
        false -> handle_stuck(Waits, State)
    end;
resolve(_, Waits, Busy, _, State) when map_size(Busy) =:= 0 -> handle_stuck(Waits, State);
resolve(N, Waits, Busy, Spinning, State) when N >= ?MAX_EQUAL_CHECKS, map_size(Spinning) =:= 0 ->
    report_waiting(lists:sort(maps:keys(Busy)), Waits, State);
resolve(_, _, _, _, State) -> loop(State).

%% A process that had nothing left but its end was killed, by the controller or by its bound.
handle_kill(Process, State) ->
    {Id, How, At} = witness_replay_process:forced_end(Process),
    ok = witness_replay_emitter:report_kill(Process),
    _ = [ok = witness_replay_backpressure:handle_exit(Id, Flow) || {_, Flow} <- [witness_replay_proxies:lookup(Id)]],
    ok = witness_replay_proxies:delete(Id, witness_replay_process_table:pid(Id)),
    ok = witness_replay_log:forget(Id),
    handle_end(Id, How, At, State).

handle_stuck(Waits, #state{cut = Cut, living = Living} = State) ->
    Stopped = closure(Waits, Cut),
    case [Id || Id <- maps:keys(Living), not is_map_key(Id, Stopped)] of
        [] ->
            loop(maps:fold(fun(Id, Proxy, S) ->
                exit(Proxy, kill),
                handle_end(Id, cut, 0, S)
            end, State, Living));
        Left -> report_waiting(lists:sort(Left), Waits, State)
    end.

report_waiting(Ids, Waits, State) ->
    Waiting = [waiting_report(Id, maps:get(Id, Waits, none), State) || Id <- lists:sublist(Ids, 10)],
    {finished, (summary(diverged, State))#{waiting => Waiting}}.

%% The processes that wait, directly or through others, for one that has come to the end of a log that was cut.
closure(Waits, Stopped) ->
    case maps:filter(fun(Id, For) -> is_map_key(For, Stopped) andalso not is_map_key(Id, Stopped) end, Waits) of
        More when map_size(More) =:= 0 -> Stopped;
        More -> closure(Waits, maps:merge(Stopped, maps:map(fun(_, _) -> [] end, More)))
    end.

%% Whether its log has nothing left but an end that may be a signal's. A process with another end comes to it, however long it
%% computes.
may_spin(Proxy) ->
    case witness_replay_interpreter:state_of(Proxy) of
        none -> false;
        Process -> witness_replay_process:may_be_killed(Process)
    end.

position(Proxy) ->
    case witness_replay_interpreter:state_of(Proxy) of
        none -> 1;
        Process -> witness_replay_process:position(Process)
    end.

waiting_report(Id, For, #state{living = Living}) ->
    #{Id := Proxy} = Living,
    Stack = case process_info(Proxy, current_stacktrace) of {current_stacktrace, Frames} -> Frames; undefined -> [] end,
    {Log, Program} = case known(For) of
        {Pid, _} ->
            {[~"takes a message of ", term(Pid, syntax(Id))],
             case is_map_key(For, Living) of
                 true -> ~"waits for it, and the other one waits too";
                 false -> ~"waits for it, and the other one has ended"
             end};
        none -> {~"nothing that this process would wait for", ~"waits in code that is not woven"}
    end,
    report(Id, position(Proxy), Log, Program, witness_replay_stack:of_program(Stack), []).

%% --- reports ---------------------------------------------------------------------

divergence(#{id := Id, at := At, log := Log, program := Program, stack := Stack, recent := Recent}) ->
    Syntax = syntax(Id),
    report(Id, At, entry(Log, Syntax), program(Program, Syntax), Stack, [entry(Entry, Syntax) || Entry <- Recent]).

report(Id, At, Log, Program, Stack, Recent) ->
    Syntax = syntax(Id),
    {Pid, Signature} = case known(Id) of none -> {unknown, unknown}; Known -> Known end,
    #{id => Id, process => term(Pid, erlang), signature => start_text(Signature, erlang), position => At,
      text => unicode:characters_to_binary([term(Pid, Syntax), ~", ", start_text(Signature, Syntax)]),
      log => unicode:characters_to_binary(Log), program => unicode:characters_to_binary(Program),
      stack => [frame(Frame, Syntax) || Frame <- lists:sublist(Stack, 12)],
      recent => [unicode:characters_to_binary(Entry) || Entry <- Recent]}.

%% The language of a process.
syntax(Id) ->
    case known(Id) of
        {_, {_, _, Args} = Signature} when is_list(Args) -> witness_event:syntax_of_function(resolved(Signature));
        {_, {Module, _, _}} when is_atom(Module) -> witness_event:syntax([Module]);
        _ -> witness_event:syntax([])
    end.

%% As its author wrote it.
resolved(Signature) -> witness_replay_process_table:signature(witness_replay_fun:local(Signature)).

start_text({_, _, Args} = Signature, Syntax) when is_list(Args) -> signature(resolved(Signature), Syntax);
start_text(Other, Syntax) -> signature(Other, Syntax).

signature({Module, Function, Args}, Syntax) when is_atom(Module), is_atom(Function), is_list(Args) ->
    signature({Module, Function, length(Args)}, Syntax);
signature({Module, Function, Arity}, elixir) when is_atom(Module), is_atom(Function), is_integer(Arity) ->
    witness_event:format_function({Module, Function, Arity}, elixir);
signature({Module, Function, Arity}, _) -> unicode:characters_to_binary(io_lib:format("~tw:~tw/~tw", [Module, Function, Arity]));
signature(Other, Syntax) -> term(Other, Syntax).

frame({Module, Function, Arity, Location}, Syntax) ->
    Where = case {lists:keyfind(file, 1, Location), lists:keyfind(line, 1, Location)} of
        {{_, File}, {_, Line}} -> [~" (", File, $:, integer_to_binary(Line), $)];
        _ -> []
    end,
    unicode:characters_to_binary([signature({Module, Function, Arity}, Syntax), Where]);
frame(Other, Syntax) -> term(Other, Syntax).

entry(done, _) -> ~"nothing more";
entry({from, Id, _}, Syntax) -> entry({from, Id}, Syntax);
entry({from, Id}, Syntax) -> [~"takes a message of ", process(Id, Syntax)];
entry({content, Message}, Syntax) -> [~"takes ", term(Message, Syntax), ~" from outside"];
entry({timeout, _}, _) -> ~"the time of a receive is over";
entry(timeout, _) -> ~"the time of a receive is over";
entry({spawn, Id}, Syntax) -> [~"spawns ", process(Id, Syntax)];
entry({result, {erlang, hibernate, _}, Awake}, _) -> case Awake of true -> ~"wakes up"; _ -> ~"hibernates" end;
entry({result, {erlang, Leave, _}, _}, _) when Leave =:= exit; Leave =:= raise -> ~"raises an exit";
entry({result, MFA, Value}, Syntax) -> [~"calls ", signature(MFA, Syntax), ~", which returns ", term(Value, Syntax)];
entry({raise, MFA, Class, Reason}, Syntax) ->
    [~"calls ", signature(MFA, Syntax), ~", which raises ", term({Class, Reason}, Syntax)];
entry({named, 0}, _) -> ~"sends to a name, of a process outside";
entry({named, Id}, Syntax) -> [~"sends to a name, of ", process(Id, Syntax)];
entry({hash, _}, _) -> ~"the message has another hash";
entry({contents, Message}, Syntax) -> [~"the message is ", term(Message, Syntax)];
entry({sent, To, Message}, Syntax) -> [~"sends ", term(Message, Syntax), ~" to ", term(To, Syntax)];
entry(waited, _) -> ~"waits for a message, and is ended by a signal";
entry({exit, Reason}, Syntax) -> [~"ends: ", witness_event:format_reason(Reason, ?MAX_TERM_CHARS, Syntax)].

program({'receive', infinity}, _) -> ~"waits for a message";
program({'receive', Time}, Syntax) -> [~"waits for a message for at most ", term(Time, Syntax), ~" ms"];
program({call, Module, Function, Args}, elixir) ->
    [~"calls ", witness_event_inspect:call({Module, Function, Args}, ?MAX_TERM_CHARS)];
program({call, Module, Function, Args}, Syntax) ->
    Given = [term(Arg, Syntax) || Arg <- Args],
    [~"calls ", atom_to_binary(Module), $:, atom_to_binary(Function), $(, lists:join(~", ", Given), $)];
program({send, To}, Syntax) -> [~"sends to the name ", term(To, Syntax)];
program({took, Message}, Syntax) -> [~"takes ", term(Message, Syntax)];
program({exits, Reason}, Syntax) -> [~"ends: ", witness_event:format_reason(Reason, ?MAX_TERM_CHARS, Syntax)].

process(Id, Syntax) ->
    case known(Id) of
        {Pid, Signature} -> [term(Pid, Syntax), ~", ", start_text(Signature, Syntax)];
        none -> [~"process ", integer_to_binary(Id)]
    end.

known(Id) when is_integer(Id) -> witness_replay_process_table:lookup(Id);
known(none) -> none.

term(Term, Syntax) -> unicode:characters_to_binary(witness_event:format_term(Term, ?MAX_TERM_CHARS, Syntax)).

%% The output of the program. Functions that format it run here.
output_text({put_chars, Text}) -> text(fun() -> Text end);
output_text({put_chars, _, Text}) -> text(fun() -> Text end);
output_text({put_chars, _, Module, Function, Args}) -> text(fun() -> apply(Module, Function, Args) end);
output_text({requests, Requests}) when is_list(Requests) -> lists:append([output_text(Request) || Request <- Requests]);
output_text(_) -> [].

text(Make) ->
    try unicode:characters_to_binary(Make()) of
        Text when is_binary(Text) -> [Text];
        _ -> []
    catch
        _:_ -> []
    end.
