-module(witness_trace_scripted).
-moduledoc """
A source of events for real tracers: a test decides when events occur and when they are delivered.

It behaves like the VM (`m:witness_trace_evm`), as the model in `m:witness_outline_core_props_tests` does. A process is
on in any number of sessions. When an event of it occurs, it goes to each of them, newest session first, with growing
stamps; a child is born, with its `init`, into the sessions of its parent in reverse. What has occurred is in transit
until the test has it delivered, in whatever order it likes, so A4 does not hold; keeping the order of each process is
up to the test. With `handover` stamps, an event has one only while they are on for its process.

The system's first process is born by a launcher (`m:witness_outline_pool`), which is a real process: the function to launch
is `launched/3`. The others need not exist: an event that the source is told of has occurred.
""".
-behaviour(witness_trace).
-behaviour(gen_server).

-export([start_link/0, launched/3, play/2, settle/1, sessions/2]).
-export([open/2, close/1, on/2, share/3, now/0, settle/2, off/2, traced/2, observed/1, decode/1, guarantees/0]).
-export([init/1, handle_call/3, handle_cast/2, handle_info/2]).
-compile({no_auto_import, [now/0]}).

-export_type([step/0]).

-doc """
What happens next: an event occurs, and waits under a name; or what waits under a name is delivered. The `init` of a
child occurs with the fork, and waits under the name that is given for it.
""".
-type step() ::
    {occur, Name :: term(), witness_event:event()}
  | {occur, Name :: term(), {other, witness_event:proc()}}
  | {fork, Name :: term(), witness_event:event(), InitName :: term()}
  | {deliver, Name :: term()}.

%% sessions: of each process that lives, as {Tracer, Stamped}, newest first
%% script: what is still to be played; waiting: the callers that wait until it is
-record(vm, {stamp = 0 :: integer(),
             tracers = [] :: [pid()],
             sessions = #{} :: #{witness_event:proc() => [{pid(), boolean()}]},
             script = [] :: [step()],
             waiting = [] :: [gen_server:from()],
             transit = #{} :: #{term() => [{pid(), witness_event:proc(), witness_trace:stamped()}]}}).

-spec start_link() -> gen_server:start_ret().
start_link() -> gen_server:start_link(?MODULE, [], []).

-doc "What the launcher runs: its fork is reported, and the `init` of the first process.".
launched(Source, Root, Signature) ->
    {parent, Launcher} = process_info(self(), parent),
    play(Source, [{fork, fork, {fork, Launcher, Root, Signature, 0}, init}, {deliver, fork}, {deliver, init}]).

-doc "Takes steps, one after the other. Returns at once: tracers go on meanwhile, and may switch between two steps.".
-spec play(pid(), [step()]) -> ok.
play(Source, Steps) -> gen_server:cast(Source, {play, Steps}).

-doc """
Waits until all steps were taken, and lets the tracers get as far as they can: each of them empties its mailbox, as many
times as there are messages one after the other in a handover.
""".
-spec settle(pid()) -> ok.
settle(Source) -> settle_rounds(Source, 5).

settle_rounds(_, 0) -> ok;
settle_rounds(Source, N) ->
    Ref = make_ref(),
    Tracers = gen_server:call(Source, tracers, infinity),
    Pinged = [{T, monitor(process, T)} || T <- Tracers],
    lists:foreach(fun(T) -> T ! {scripted, ping, {self(), Ref}} end, Tracers),
    %% One that was idle may go meanwhile.
    lists:foreach(fun({T, Monitor}) ->
        receive
            {pong, T, Ref} -> demonitor(Monitor, [flush]);
            {'DOWN', Monitor, process, T, _} -> gone
        end
    end, Pinged),
    settle_rounds(Source, N - 1).

-doc "The tracers with a session in which a process is on.".
-spec sessions(pid(), witness_event:proc()) -> [pid()].
sessions(Source, P) -> gen_server:call(Source, {sessions, P}).

%% --- the behaviour ---------------------------------------------------------------

-spec open(pid(), map()) -> witness_trace:session().
open(Tracer, #{source := Source, stamps := Stamps}) ->
    put(?MODULE, Source),                           % for now/0, which has no session
    ok = gen_server:call(Source, {open, Tracer}),
    {Source, Tracer, Stamps}.

-spec close(witness_trace:session()) -> ok.
close({Source, Tracer, _}) -> gen_server:call(Source, {close, Tracer}).

-spec on(witness_trace:session(), witness_event:proc()) -> ok | dead.
on({Source, Tracer, Stamps}, P) -> gen_server:call(Source, {first, P, Tracer, Stamps =:= always}).

-spec share(witness_trace:session(), witness_trace:session(), witness_event:proc()) -> {cut, integer()} | dead.
share({Source, From, _}, {_, To, _}, P) ->
    %% Three steps, as on the VM: events may occur between them.
    _ = gen_server:call(Source, {stamp, P, From, true}),
    case gen_server:call(Source, {on, P, To, true}) of
        ok -> {cut, now()};
        dead -> dead
    end.

-spec now() -> integer().
now() -> gen_server:call(get(?MODULE), now).

-spec settle(witness_trace:session(), witness_event:proc()) -> ok.
settle({_, _, always}, _) -> ok;
settle({Source, Tracer, handover}, P) ->
    _ = gen_server:call(Source, {stamp, P, Tracer, false}),
    ok.

-spec off(witness_trace:session(), witness_event:proc()) -> ok.
off({Source, Tracer, _}, P) -> gen_server:call(Source, {off, P, Tracer}).

-spec traced(witness_trace:session(), witness_event:proc()) -> boolean() | dead.
traced({Source, Tracer, _}, P) -> gen_server:call(Source, {traced, P, Tracer}).

-spec observed([witness_trace:session()]) -> [witness_event:proc()].
observed(Sessions) -> [P || P <- processes(), lists:any(fun(Session) -> traced(Session, P) =:= true end, Sessions)].

%% Tracers decode their messages themselves, so a ping tells that those before it were handled. It may be answered
%% twice, since a tracer may look twice at what it decodes.
-spec decode(term()) -> witness_trace:stamped() | ignore.
decode({scripted, ping, {From, Ref}}) -> From ! {pong, self(), Ref}, ignore;
decode({scripted, _, Stamped}) -> Stamped;
decode(_) -> ignore.

-spec guarantees() -> witness_trace:guarantees().
guarantees() ->
    #{sets => true, inheritance => true, single => false, fork_first => false, birth => false, causal => false}.

%% --- the source ------------------------------------------------------------------

-doc false.
init([]) -> {ok, #vm{}}.

-doc false.
handle_call({open, Tracer}, _, Vm = #vm{tracers = Tracers}) ->
    {reply, ok, Vm#vm{tracers = [Tracer | Tracers]}};
handle_call({close, Tracer}, _, Vm = #vm{tracers = Tracers}) ->
    {reply, ok, Vm#vm{tracers = lists:delete(Tracer, Tracers)}};
handle_call(tracers, _, Vm = #vm{tracers = Tracers, script = []}) ->
    {reply, Tracers, Vm};
handle_call(tracers, From, Vm = #vm{waiting = Waiting}) ->
    {noreply, Vm#vm{waiting = [From | Waiting]}};
handle_call({sessions, P}, _, Vm = #vm{sessions = Sessions}) ->
    {reply, [Tracer || {Tracer, _} <- maps:get(P, Sessions, [])], Vm};
handle_call(now, _, Vm = #vm{stamp = Stamp}) ->
    {reply, Stamp, Vm#vm{stamp = Stamp + 1}};
handle_call({first, P, Tracer, Stamped}, _, Vm = #vm{sessions = Sessions}) ->
    {reply, ok, Vm#vm{sessions = Sessions#{P => [{Tracer, Stamped}]}}};
handle_call({_, P, _, _}, _, Vm = #vm{sessions = Sessions}) when not is_map_key(P, Sessions) ->
    {reply, dead, Vm};
handle_call({on, P, Tracer, Stamped}, _, Vm = #vm{sessions = Sessions}) ->
    Now = case lists:keytake(Tracer, 1, map_get(P, Sessions)) of
        {value, _, _} -> lists:keyreplace(Tracer, 1, map_get(P, Sessions), {Tracer, Stamped});
        false -> [{Tracer, Stamped} | map_get(P, Sessions)]
    end,
    {reply, ok, Vm#vm{sessions = Sessions#{P := Now}}};
handle_call({stamp, P, Tracer, Stamped}, _, Vm = #vm{sessions = Sessions}) ->
    Now = lists:keyreplace(Tracer, 1, map_get(P, Sessions), {Tracer, Stamped}),
    {reply, ok, Vm#vm{sessions = Sessions#{P := Now}}};
handle_call({off, P, Tracer}, _, Vm = #vm{sessions = Sessions}) ->
    {reply, ok, Vm#vm{sessions = case Sessions of
        #{P := Now} -> Sessions#{P := lists:keydelete(Tracer, 1, Now)};
        #{} -> Sessions
    end}};
handle_call({traced, P, Tracer}, _, Vm = #vm{sessions = Sessions}) ->
    {reply, case Sessions of
        #{P := Now} -> lists:keymember(Tracer, 1, Now);
        #{} -> dead
    end, Vm}.

-doc false.
handle_cast({play, Steps}, Vm = #vm{script = Script}) ->
    self() ! next,
    {noreply, Vm#vm{script = Script ++ Steps}}.

%% Calls of tracers come between the steps.
-doc false.
handle_info(next, Vm = #vm{script = [Step | Script]}) ->
    self() ! next,
    {noreply, step(Step, Vm#vm{script = Script})};
handle_info(next, Vm = #vm{script = [], waiting = Waiting, tracers = Tracers}) ->
    lists:foreach(fun(From) -> gen_server:reply(From, Tracers) end, Waiting),
    {noreply, Vm#vm{waiting = []}}.

step({occur, Name, E}, Vm0) ->
    Vm = #vm{sessions = Sessions} = occur(Name, E, Vm0),
    case E of
        {exit, P, _, _} -> Vm#vm{sessions = maps:remove(P, Sessions)};
        _ -> Vm
    end;
step({fork, Name, {fork, P, Child, Signature, Ts} = E, InitName}, Vm0) ->
    Vm = #vm{sessions = Sessions} = occur(Name, E, Vm0),
    Born = Vm#vm{sessions = Sessions#{Child => lists:reverse(map_get(P, Sessions))}},
    occur(InitName, {init, Child, P, Signature, Ts}, Born);
step({deliver, Name}, Vm = #vm{transit = Transit}) ->
    {Copies, Rest} = maps:take(Name, Transit),
    lists:foreach(fun({Tracer, P, Stamped}) -> Tracer ! {scripted, P, Stamped} end, Copies),
    Vm#vm{transit = Rest}.

occur(Name, E, Vm = #vm{stamp = Stamp, sessions = Sessions, transit = Transit}) ->
    P = element(2, E),
    {Copies, Stamp1} = lists:mapfoldl(fun({Tracer, true}, U) -> {{Tracer, P, {U, E}}, U + 1};
                                         ({Tracer, false}, U) -> {{Tracer, P, {none, E}}, U}
                                      end, Stamp, map_get(P, Sessions)),
    Vm#vm{stamp = Stamp1, transit = Transit#{Name => Copies}}.
