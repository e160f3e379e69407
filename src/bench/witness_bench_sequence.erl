-module(witness_bench_sequence).
-moduledoc """
Checks that the trace of each process of a model (`m:witness_bench_model`) is sound: complete and in order from
`init` to `exit` (RIARC text, C.5.2).

Between two processes requests are numbered from 1, and so are their responses. Each must follow the previous one, and no
response may precede its request. At the end the last number must have been reached, all processes of the model
must have been spawned, and the last event must be the `exit`. If messages are lost (`loss`), numbers may be missing,
except the last one. If workers crash, their tasks end with that.

This holds whether a `recv` means delivered or taken. The information of `no` is `{Fault, Event}`, or
`{incomplete, Numbers}`.

Its argument is a counter, to which the number of events is added as the process ends, or `undefined`; or
`{Counter, Cost}`, with an additional cost of each event (`witness_bench_work:cost/1`). Its steps are bounded.
""".
-behaviour(witness_monitor).

-export([init/3, handle_event/2, handle_end/2]).

-export_type([argument/0]).

-doc "The counter of events, and the cost of each of them.".
-type argument() :: counters:counters_ref() | undefined
                  | {counters:counters_ref() | undefined, Cost :: binary()}.

%% A channel is {Asked, Answered, Requests}: the last numbers that were seen. If a process has both directions, the key tells
%% them apart: `in' and {in, Process} are those in which it answers. `open' has the unfinished channels.
-record(s, {self, role, key,                       % key: identifies a channel of requests: id | process
            lossy = false, crashing = false, monitors = false,      % messages are lost, workers crash, are monitored
            terms = false, single = false, pipeline = false,        % ends are confirmed; one request each; chains
            remote = false,                                         % members live on another node
            open = #{}, forks = 0, done = 0, downs = 0,
            expected_forks = 0, expected_done,
            phase = new, events = 0, counter, cost = <<>>, paid = 0}).

-doc false.
-spec init(witness_event:signature(), pid(), argument()) -> {ok, #s{}}.
init(Signature, P, {Counter, Cost}) when is_binary(Cost) ->
    {ok, (role(Signature, P))#s{counter = Counter, cost = Cost}};
init(Signature, P, Counter) -> {ok, (role(Signature, P))#s{counter = Counter}}.

role({witness_bench_master, start, [Model, _, _]}, P) ->
    #{kind := Kind, n := N, stages := Stages, group := Group, crash := Crash, loss := Loss, nodes := Nodes} = Model,
    {Forks, Done} = case Kind of
        pipeline -> {N * Stages, N};
        peers -> {N * Group, N * Group};
        _ -> {N, N}
    end,
    #s{self = P, role = master, key = case Kind of peers -> process; _ -> id end,
       single = Kind =:= tasks, pipeline = Kind =:= pipeline, remote = Nodes =:= 2, terms = Kind =:= master_worker,
       lossy = Loss > 0, crashing = Crash > 0, monitors = Crash > 0 orelse Loss > 0,
       expected_forks = Forks, expected_done = Done};
role({witness_bench_worker, _, [_, _, Requests, _, Failures]}, P) ->
    {Crashing, Lossy} = case Failures of
        none -> {false, false};
        {_, Crash, Loss} -> {Crash > 0, Loss > 0}
    end,
    (answering(worker, Requests, P))#s{terms = true, crashing = Crashing, lossy = Lossy};
role({witness_bench_tasks, _, _}, P) -> answering(task, 1, P);
role({witness_bench_pipeline, _, [_, _, Requests | _]}, P) -> answering(stage, Requests, P);
role({witness_bench_tree, _, [_, _, Requests, Depth, Branch | _]}, P) ->
    Children = case Depth of 0 -> 0; _ -> Branch end,
    (answering(tree, Requests, P))#s{expected_forks = Children, expected_done = 1 + Children};
%% A peer has requests to and from every other one, and answers the master.
role({witness_bench_peers, _, [Master, _, _, Peers | _]}, P) ->
    #s{self = P, role = peer, key = process, open = #{{in, Master} => {0, 0, 1}}, expected_done = 2 * (Peers - 1) + 1}.

answering(Role, Requests, P) ->
    #s{self = P, role = Role, key = process, open = #{in => {0, 0, Requests}}, expected_done = 1}.

-doc false.
-spec handle_event(witness_event:event(), #s{}) -> {ok, #s{}} | {verdict, yes | no, term()}.
handle_event(E, S = #s{events = Events, cost = <<>>}) -> step(E, S#s{events = Events + 1});
handle_event(E, S = #s{events = Events, cost = Cost}) -> step(E, S#s{events = Events + 1, paid = erlang:phash2(Cost)}).

step({init, P, _, _, _}, S = #s{self = P, phase = new}) -> {ok, S#s{phase = alive}};
step(E, S = #s{phase = new}) -> fault(before_init, E, S);
step(E, S = #s{self = P}) when element(2, E) =/= P -> fault(foreign, E, S);
%% The last stage of a pipeline answers. The others pass on: that is a request to the next one and an answer to the previous one.
step({send, P, _, {P, {chunk, {_, N, Requests}, _, _}}, _} = E, S = #s{role = stage}) ->
    handle_answer(in, N, Requests, E, S);
step({send, P, To, {P, {chunk, {Id, N, Requests}, _, _}}, _} = E, S) -> handle_request(out(To, Id, S), N, Requests, E, S);
step({send, P, To, {P, {join, {Id, N, Requests}, _}}, _} = E, S = #s{role = master}) ->
    handle_request(out(To, Id, S), N, Requests, E, S);
step({recv, _, _, {From, {chunk, {_, N, Requests}, _, _}}, _} = E, S) -> handle_request(in(From, S), N, Requests, E, S);
step({recv, _, _, {From, {join, {_, N, Requests}, _}}, _} = E, S = #s{role = peer}) ->
    handle_request(in(From, S), N, Requests, E, S);
step({recv, _, _, {From, {ack, {Id, N, Requests}, _, _}}, _} = E, S) when N < Requests ->
    handle_answer(out(From, Id, S), N, Requests, E, S);
step({recv, _, _, {From, {'end', {Id, N, N}, _, _}}, _} = E, S) -> handle_answer(out(From, Id, S), N, N, E, S);
step({send, P, To, {P, {ack, {_, N, Requests}, _, _}}, _} = E, S) when N < Requests ->
    handle_answer(in(To, S), N, Requests, E, S);
step({send, P, To, {P, {'end', {_, N, N}, _, _}}, _} = E, S) -> handle_answer(in(To, S), N, N, E, S);
step({recv, _, _, {_, {term, {_, N, N}}}, _} = E, S = #s{role = worker, open = Open, done = Done}) ->
    case Open of
        #{in := {N, N, N}} -> {ok, S#s{open = #{}, done = Done + 1}};
        #{} -> fault(term, E, S)
    end;
step({send, P, _, {P, {term, {Id, N, N}}}, _} = E, S = #s{role = master, terms = true, open = Open}) ->
    case Open of
        #{Id := {N, N, N}} when S#s.monitors -> {ok, S#s{open = Open#{Id := told}}};
        #{Id := {N, N, N}} -> {ok, S#s{open = maps:remove(Id, Open), done = S#s.done + 1}};
        #{} -> fault(term, E, S)
    end;
step({fork, _, C, {_, _, Args}, _} = E, S) -> handle_fork(C, Args, E, S);
%% The VM sends this to a process that spawns on another node. Inline this is a fork.
step({recv, _, _, {spawn_reply, _, ok, _}, _}, S = #s{remote = true, forks = Forks}) -> {ok, S#s{forks = Forks + 1}};
step({recv, _, _, {'DOWN', _, process, C, Reason}, _} = E, S = #s{role = master, monitors = true}) ->
    down(C, Reason, E, S);
step({exit, _, crash, _}, S = #s{role = worker, crashing = true, open = #{in := {Asked, _, _}}}) when Asked > 0 ->
    sound(S);
step({exit, _, normal, _}, S = #s{forks = F, expected_forks = F, done = D, expected_done = D, open = Open,
                                  downs = Downs})
  when map_size(Open) =:= Downs -> sound(S);
step({exit, _, normal, _}, S) ->
    fault(incomplete, {S#s.forks, S#s.expected_forks, S#s.done, S#s.expected_done, map_size(S#s.open)}, S);
step(E, S) -> fault(unexpected, E, S).

in(Process, #s{role = peer}) -> {in, Process};
in(_, _) -> in.

out(_, Id, #s{key = id}) -> Id;
out(Process, _, _) -> Process.

%% --- requests and responses ------------------------------------------------------

handle_request(Key, N, Requests, E, S = #s{open = Open, lossy = Lossy}) ->
    case Open of
        #{Key := {Asked, Answered, Requests}} when N =:= Asked + 1; Lossy, N > Asked ->
            ask(N =< Requests, Open#{Key := {N, Answered, Requests}}, E, S);
        #{Key := {down, Asked, Requests}} when N =:= Asked + 1; Lossy, N > Asked ->
            ask(N =< Requests, Open#{Key := {down, N, Requests}}, E, S);
        %% A peer learns of the others by a message, and the first request to it may come earlier.
        #{} when N =:= 1, not is_map_key(Key, Open), S#s.role =:= peer, Key =/= in ->
            ask(true, Open#{Key => {1, 0, Requests}}, E, S);
        %% A worker on another node was forked, but its identifier is not known yet.
        #{} when S#s.remote, not is_map_key(Key, Open), N =:= 1 orelse Lossy ->
            ask(N =< Requests, Open#{Key => {N, 0, Requests}}, E, S);
        #{} -> fault(request, E, S)
    end.

ask(true, Open, _, S) -> {ok, S#s{open = Open}};
ask(false, _, E, S) -> fault(request, E, S).

handle_answer(Key, N, Requests, E, S = #s{open = Open, lossy = Lossy}) ->
    case Open of
        #{Key := {Asked, Answered, Requests}} when N =< Asked, N =:= Answered + 1 orelse Lossy andalso N > Answered ->
            handle_answer(N =:= Requests, Key, {Asked, N, Requests}, S);
        #{} -> fault(response, E, S)
    end.

handle_answer(Last, Key, Channel, S = #s{open = Open, terms = Terms}) when not Last; Terms ->
    {ok, S#s{open = Open#{Key := Channel}}};
handle_answer(true, Key, _, S = #s{open = Open, done = Done}) ->
    {ok, S#s{open = maps:remove(Key, Open), done = Done + 1}}.

%% --- members ---------------------------------------------------------------------

handle_fork(C, [_, _, Requests | _], _, S = #s{role = tree, open = Open, forks = Forks}) when not is_map_key(C, Open) ->
    {ok, S#s{forks = Forks + 1, open = Open#{C => {0, 0, Requests}}}};
handle_fork(C, _, _, S = #s{role = master, key = process, open = Open, forks = Forks}) when not is_map_key(C, Open) ->
    {ok, S#s{forks = Forks + 1, open = Open#{C => {0, 0, 1}}}};
handle_fork(C, [_, Id, Requests | _], _, S = #s{role = master, key = id, open = Open, forks = Forks, monitors = Monitors})
  when not is_map_key(Id, Open) ->
    Opened = Open#{Id => {0, 0, case S#s.single of true -> 1; false -> Requests end}},
    {ok, S#s{forks = Forks + 1, open = case Monitors of true -> Opened#{C => Id}; false -> Opened end}};
%% Another stage of the same pipeline.
handle_fork(_, [_, Id | _], _, S = #s{role = master, key = id, open = Open, forks = Forks, pipeline = true})
  when is_map_key(Id, Open) ->
    {ok, S#s{forks = Forks + 1}};
handle_fork(C, _, E, S) -> fault(fork, {C, E}, S).

%% The master may not have taken the message yet, and goes on to send to the dead worker.
down(C, Reason, E, S = #s{open = Open, done = Done}) ->
    case Open of
        #{C := Id} when Reason =:= normal, map_get(Id, Open) =:= told ->
            {ok, S#s{open = maps:remove(Id, maps:remove(C, Open)), done = Done + 1}};
        #{C := Id} when Reason =:= crash, S#s.crashing ->
            {Asked, _, Requests} = map_get(Id, Open),
            Left = (maps:remove(C, Open))#{Id := {down, Asked, Requests}},
            {ok, S#s{open = Left, done = Done + 1, downs = S#s.downs + 1}};
        #{} -> fault(down, E, S)
    end.

%% --- verdicts --------------------------------------------------------------------

sound(S) ->
    ok = count(S),
    {verdict, yes, sound}.

fault(Fault, What, S) ->
    ok = count(S),
    {verdict, no, {Fault, What}}.

count(#s{counter = undefined}) -> ok;
count(#s{counter = Counter, events = Events}) -> counters:add(Counter, 1, Events).

%% The exit decides a sound trace.
-doc false.
handle_end(complete, S) ->
    ok = count(S),
    {no, no_exit};
handle_end(stopped, S) ->
    ok = count(S),
    {inconclusive, stopped}.
