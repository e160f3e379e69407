-module(witness_bench_rival).
-moduledoc """
A tool of another make, as a user would put it beside the modes of Witness (`m:witness_bench_adapter`): one process that
gets all events from the VM's tracing and keeps a monitor for each process.

Its options plant faults. `lose`: each so many events one is lost, and not reported; `gaps`: so many gaps are reported;
`forget`: monitors of so many processes are not started; `silent`: no verdicts are given; `started`, `found`: what
callbacks return in place of what they should; `fault`: `start`, `await`, `hang`, `halt`, `kill` or `stop` (of the whole
VM, by a signal) or `crash`. `pid_file` names a file into which the number of the VM is written.
""".
-behaviour(witness_bench_adapter).

-export([start/2, await/1, probe/1, stop/1]).

start(?MODULE, Setting = #{system := {M, F, Args}, options := Options}) ->
    ok = identify(Options),
    case Options of
        #{fault := start} -> {error, "the rival does not start"};
        #{started := Other} -> Other;
        #{} ->
            Tool = spawn_link(fun() -> tool(maps:with([monitors, options, verdict], Setting), #{}, 0, []) end),
            Session = trace:session_create(?MODULE, Tool, []),
            First = spawn(fun() -> receive '$go' -> apply(M, F, Args) end end),
            1 = trace:process(Session, First, true, [send, 'receive', procs, set_on_spawn]),
            Tool ! {first, First, {M, F, Args}},
            First ! '$go',
            {ok, {Tool, Session, Options}, First}
    end.

identify(#{pid_file := File}) -> file:write_file(File, os:getpid());
identify(_) -> ok.

await({_, _, #{found := Other}}) -> Other;
await({_, _, #{fault := await}}) -> {error, "the rival has lost its way"};
await({_, _, #{fault := hang, tell := Pid}}) -> Pid ! hanging, receive never -> ok end;
await({_, _, #{fault := hang}}) -> receive never -> ok end;
await({_, _, #{fault := crash}}) -> error(rival);
await({_, _, #{fault := halt}}) -> halt(7);
await({_, _, #{fault := kill}}) -> os:cmd("kill -KILL " ++ os:getpid());
await({_, _, #{fault := stop}}) ->
    %% Its threads stop one after the other: this one may go on for a while.
    _ = os:cmd("kill -STOP " ++ os:getpid()),
    receive nothing -> ok end;
await({Tool, Session, Options}) ->
    Ref = trace:delivered(Session, all),
    receive {trace_delivered, all, Ref} -> ok end,
    {Events, Verdicts} = ask(Tool),
    Found = #{Verdict => length([V || V <- Verdicts, V =:= Verdict]) || Verdict <- [yes, no, inconclusive]},
    Gaps = maps:get(gaps, Options, 0),
    Facts = #{events => Events, gaps => Gaps},
    {ok, case Options of
             #{silent := true} -> Facts;
             #{} -> Facts#{verdicts => Found}
         end}.

probe({Tool, _, _}) ->
    {Events, _} = ask(Tool),
    #{events => Events, tracers => 1, gaps => 0}.

stop({Tool, Session, _}) ->
    trace:session_destroy(Session),
    unlink(Tool),
    exit(Tool, kill).

ask(Tool) ->
    Ref = monitor(process, Tool),
    Tool ! {ask, self(), Ref},
    receive {Ref, Answer} -> demonitor(Ref, [flush]), Answer end.

tool(Setting, Monitors, Events, Verdicts) ->
    receive
        {first, First, Signature} ->
            tool(Setting, started(First, {init, First, undefined, Signature, undefined}, Setting, Monitors), Events, Verdicts);
        {ask, From, Ref} ->
            From ! {Ref, {Events, Verdicts}},
            tool(Setting, Monitors, Events, Verdicts);
        Trace when element(1, Trace) =:= trace ->
            event(event(Trace), Setting, Monitors, Events, Verdicts)
    end.

event(none, Setting, Monitors, Events, Verdicts) -> tool(Setting, Monitors, Events, Verdicts);
event(Event, Setting = #{options := Options, verdict := Told}, Monitors, Events, Verdicts) ->
    P = element(2, Event),
    case {started(P, Event, Setting, Monitors), Options} of
        {Known, #{lose := Each}} when Events rem Each =:= Each - 1 -> tool(Setting, Known, Events + 1, Verdicts);
        {#{P := {Module, State}} = Known, _} ->
            case Module:handle_event(Event, State) of
                {ok, Next} -> tool(Setting, Known#{P := {Module, Next}}, Events + 1, Verdicts);
                {verdict, Verdict, Info} ->
                    ok = Told(Verdict, Info),
                    tool(Setting, Known#{P := done}, Events + 1, [Verdict | Verdicts])
            end;
        {Known, _} -> tool(Setting, Known, Events + 1, Verdicts)
    end.

started(P, {init, P, _, {M, F, Args} = Signature, _} = Event, #{monitors := Monitors, options := Options}, Known) ->
    Forget = maps:get(forget, Options, 0),
    case lists:keyfind({M, F, length(Args)}, 1, Monitors) of
        {_, {Module, Arg}} when map_size(Known) >= Forget ->
            {ok, State} = Module:init(Signature, P, Arg),
            case Event of
                {init, P, undefined, _, _} ->
                    {ok, Next} = Module:handle_event(Event, State),
                    Known#{P => {Module, Next}};
                _ -> Known#{P => {Module, State}}
            end;
        _ -> Known#{P => done}
    end;
started(_, _, _, Known) -> Known.

%% What it sends itself, and that a `receive' has waited long enough.
event({trace, _, 'receive', Message}) when Message =:= '$go'; Message =:= timeout -> none;
event({trace, P, spawn, C, {M, F, Args}}) -> {fork, P, C, {M, F, Args}, undefined};
event({trace, P, spawned, Parent, {M, F, Args}}) -> {init, P, Parent, {M, F, Args}, undefined};
event({trace, P, exit, Reason}) -> {exit, P, Reason, undefined};
event({trace, P, send, Message, To}) -> {send, P, To, Message, undefined};
event({trace, P, 'receive', Message}) -> {recv, P, undefined, Message, undefined};
event(_) -> none.
