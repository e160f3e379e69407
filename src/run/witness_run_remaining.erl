-module(witness_run_remaining).
-moduledoc """
The processes of a system that are still there: where each one is and what it waits for, as the VM tells it at this moment.

A process that waits in a function of OTP or Elixir for another process, for the answer to a call, its start, its end, or the result of
a task, monitors that process meanwhile. If it monitors no other process, that one is known. A process that has made no reduction since an earlier look has done nothing since then. What it answers to
others that look at it costs it some too, so that it may have done nothing for longer than it is said here.
""".

-export([idle/1, look/6, waiting_ms/0, waits/1, describe/1, describe/5, circle/2,
         awaits/1, has_request/2, redact/1, origin/4, format/1, holdings/1, syntax/1]).
-export([shown/1, still_works/1, suspend_circle/4]).


-export_type([look/0, process/0, remaining/0, waiting/0, holds/0]).

-doc """
What the last look has left of each process: its reductions, since when it has done nothing, in milliseconds, and whether it has so much
that it is not asked what it monitors any more.
""".
-type look() :: #{pid() => {Reductions :: reductions(), SinceMs :: integer(), IsLarge :: boolean()}}.

-doc "What is asked of what processes hold: nothing, what they monitor again and again, or all (`m:witness_run_holdings`).".
-type holds() :: none | repeated | all.

-type reductions() :: {reductions, non_neg_integer()} | undefined.

-doc """
- `parent`: the process that has spawned it; `signature`: what it was spawned with; `name`: its registered name or its label;
- `state`: it runs, sleeps, waits for a message, waits for a `request` (a server of OTP with an empty mailbox), or waits for the process
  `awaited`: it has called it and waits for the answer (`calls`), or it waits until that has started (`starts`), has ended (`stops`), or
  has the result of a task (`awaits`); of a process that is suspended, as at the end of a run, it may not be known;
- `place`: the function in which it is, without those of OTP that wait for it;
- `mailbox`: the number of its messages; `messages`: the oldest of them as text, if there are few and they are small; `idle_ms`:
  how long it has done nothing, as far as that is known; `syntax`: the language in which it runs; `suspended`: as at the end of a run, so that it is not known whether it would
  go on; `origin`: what `origin/4` says, in the result of a test;
- for the check `leaks`: what it monitors `repeatedly`, unless that is not known, and after the end of the system what it `holds`.
""".
-type process() :: #{process := pid(), parent := pid() | undefined, signature := mfa() | undefined, name := undefined | term(),
                     state := runs | sleeps | waits | request | awaiting() | unknown, awaited := undefined | pid(),
                     place := undefined | {module(), atom(), arity(), [tuple()]},
                     mailbox := non_neg_integer(), messages := [binary()], idle_ms := non_neg_integer(),
                     syntax := witness_event:syntax(),
                     suspended := boolean(), origin => unicode:chardata(),
                     repeatedly => unknown | [{witness_run_holdings:target(), Name :: atom(), pos_integer()}],
                     holds => witness_run_holdings:holds()}.

-type awaiting() :: calls | starts | stops | awaits.

-doc """
How many there are, how many of them are servers that only wait for a request (`servers`: those that are described), and the others,
as far as they are described.
`applications`: processes of applications that the system has started, if one of the system's waits for them, or they wait for each
other. They are not counted: an application may run on.
`circles`: processes of which each waits for the next one, and the last one for the first, so that none ever goes on. `idle`:
whether none of all these has done anything since the look before; `whole`: whether all of them were looked at.
""".
-type remaining() :: #{count := non_neg_integer(), requests := non_neg_integer(), servers := [process()],
                       processes := [process()], applications := [process()], circles := [[pid(), ...]], idle := boolean(),
                       whole := boolean()}.

-doc """
Processes that have waited for a while for something that is not a request (`true`), and others with messages (`false`). The messages are
those that they have not taken, as far as these can be read cheaply: one that waits probably never will.
""".
-type waiting() :: #{pid() => {IsLong :: boolean(), Messages :: [term()]}}.

%% More are counted only.
-define(MAX_DESCRIBED, 1000).
-define(MAX_SHOWN, 5).
-define(WAITING_MS, 1000).
%% Modules in which a process waits for the sake of the function that has called them.
-define(WAITING, [gen, gen_server, gen_statem, gen_event, supervisor, proc_lib, sys, timer, erlang, erts_internal,
                  'Elixir.GenServer', 'Elixir.Agent', 'Elixir.Task', 'Elixir.Process', 'Elixir.Task.Supervised',
                  'Elixir.DynamicSupervisor']).
%% Functions in which a process waits for one that it monitors, and for nothing else. Those that look again after a while, such as
%% `Task.yield/2', are not among them: the process may go on without what it waits for.
-define(AWAITING, #{{gen, do_call} => calls, {gen, receive_response} => calls, {gen_server, mc_recv} => calls,
                    {proc_lib, sync_start} => starts, {proc_lib, sync_start_monitor} => starts,
                    {proc_lib, stop} => stops, {supervisor, shutdown} => stops, {supervisor, wait_dynamic_children} => stops,
                    {'Elixir.DynamicSupervisor', wait_children} => stops, {'Elixir.Task', shutdown_receive} => stops,
                    {'Elixir.Task', await_receive} => awaits, {'Elixir.Task', await_many} => awaits}).
%% Each of these costs little, whatever the process has. Its monitors and its mailbox may be long: they are read only if needed.
-define(INFO, [status, current_stacktrace, message_queue_len, registered_name, parent]).
-define(ANSWERED_MS, 1).
%% How long processes of a circle may be suspended.
-define(SUSPENDED_MS, 100).
-define(NAME_CHARACTERS, 80).
%% The VM copies all messages of a mailbox. In a process of so many bytes, so many of them cost little.
-define(MAX_MESSAGES, 1000).
-define(MAX_BYTES, 1_000_000).
-define(SHOWN_MESSAGES, 3).
-define(MESSAGE_CHARACTERS, 60).

-doc """
The processes that have done nothing since the last look, and since when, in milliseconds. To ask for anything else about them, or
whether they are traced, costs them reductions, so this is asked first.
""".
-spec idle(look()) -> #{pid() => SinceMs :: integer()}.
idle(Last) -> #{P => Since || P := {Reductions, Since, _} <- Last, reductions(P) =:= Reductions}.

-doc """
Looks at those of the processes that belong to the system, and of its applications at those that they wait for; of very many only at
the oldest. `IsClosed`: whether no other process takes part in the system. `Last`: the look before, and `Idle`: which have done nothing
since then (`idle/1`).
""".
-spec look([pid()], Belongs :: fun((pid()) -> system | application | none), IsClosed :: boolean(), NowMs :: integer(),
           {Last :: look(), Idle :: #{pid() => integer()}}, holds()) ->
    {remaining(), waiting(), look()}.
look(Pids, Belongs, IsClosed, NowMs, {Last, Idle}, Holds) ->
    Candidates = lists:sublist(lists:sort(Pids), ?MAX_DESCRIBED),
    Whole = length(Pids) =:= length(Candidates),
    All = [{To, Process#{idle_ms := NowMs - maps:get(P, Idle, NowMs)}, Messages}
           || P <- Candidates, To <- [Belongs(P)], To =/= none, {Process, Messages} <- [read(P)]],
    {Processes, Large} = hold(Holds, [Process || {system, Process, _} <- All], #{P => [] || P := {_, _, true} <- Last}),
    Awaited = #{P => Other || {_, #{process := P, awaited := Other}, _} <- All, Other =/= undefined},
    Circles = circles(Awaited, IsClosed andalso Whole andalso lists:all(fun is_quiet/1, [Process || {_, Process, _} <- All])),
    Waited = waited_for([P || #{process := P} <- Processes] ++ lists:append(Circles), Awaited, #{}),
    Waiting = #{P => {IsLong, case Messages of unknown -> []; _ -> Messages end}
                || {system, #{process := P, mailbox := Mailbox} = Process, Messages} <- All,
                   IsLong <- [waits_long(Process)], IsLong orelse Mailbox > 0},
    %% What an answer, or that it was suspended, has cost a process is counted when it waits again.
    receive after ?ANSWERED_MS -> ok end,
    Look = #{P => {reductions(P), NowMs - IdleMs, is_map_key(P, Large)} || {_, #{process := P, idle_ms := IdleMs}, _} <- All},
    {Requests, Others} = lists:partition(fun(#{state := State}) -> State =:= request end, Processes),
    {#{count => length(Pids) - length(Candidates) + length(Processes), requests => length(Requests), servers => Requests,
       processes => Others, applications => [Process || {application, #{process := P} = Process, _} <- All, is_map_key(P, Waited)],
       circles => Circles, whole => Whole,
       idle => Whole andalso lists:all(fun(#{process := P}) -> is_map_key(P, Idle) end, Processes)}, Waiting, Look}.

%% Those that have much are not asked again: to find that out has cost something.
hold(none, Processes, Large) -> {Processes, Large};
hold(Holds, Processes, Large) ->
    Tables = case Holds of all -> witness_run_holdings:tables(); repeated -> #{} end,
    {Held, {_, Large1}} = lists:mapfoldl(fun(#{process := P, mailbox := Mailbox} = Process, {Left, Acc}) ->
        {Monitors, Left1} = case Acc of
            #{P := _} -> {large, Left};
            #{} -> witness_run_holdings:monitors(P, Mailbox, Left)
        end,
        Acc1 = case Monitors of large -> Acc#{P => []}; _ -> Acc end,
        Repeatedly = case Monitors of {known, Targets} -> witness_run_holdings:repeated(Targets); _ -> unknown end,
        {add_holds(Holds, P, Monitors, Tables, Process#{repeatedly => Repeatedly}), {Left1, Acc1}}
    end, {witness_run_holdings:new(), Large}, Processes),
    {Held, Large1}.

add_holds(all, P, Monitors, Tables, Process) -> Process#{holds => witness_run_holdings:holds(P, Monitors, Tables)};
add_holds(repeated, _, _, _, Process) -> Process.

%% These, and what they wait for, and so on.
waited_for([], _, Waited) -> Waited;
waited_for([P | Ps], Awaited, Waited) when is_map_key(P, Waited) -> waited_for(Ps, Awaited, Waited);
waited_for([P | Ps], Awaited, Waited) -> waited_for([Other || #{P := Other} <- [Awaited]] ++ Ps, Awaited, Waited#{P => []}).

-doc "After so many milliseconds a process that waits is said to wait for long.".
-spec waiting_ms() -> pos_integer().
waiting_ms() -> ?WAITING_MS.

waits_long(#{idle_ms := IdleMs} = Process) -> waits(Process) andalso IdleMs >= ?WAITING_MS.

-doc "Whether a process waits for another one, or for a message that is not a request.".
-spec waits(process()) -> boolean().
waits(#{state := State}) -> State =:= waits orelse lists:member(State, maps:values(?AWAITING)).

%% It waits for a request or for another process. In a `receive` of its own it may wait for some time only.
is_quiet(#{state := State, idle_ms := IdleMs}) ->
    IdleMs >= ?WAITING_MS andalso (State =:= request orelse lists:member(State, maps:values(?AWAITING))).

%% Each circle once, from its oldest process on. `IsQuiet`: whether no process of the system has done anything for a while.
circles(Awaited, IsQuiet) ->
    lists:usort([Circle || P := _ <- Awaited, {true, [Oldest | _] = Circle} <- [circle(P, Awaited)],
                           Oldest =:= lists:min(Circle), waits_for_itself(Circle, IsQuiet)]).

%% The processes were described one after the other, and may have gone on meanwhile. While all of them are suspended, none does:
%% then each must still wait for the next, and have no answer in its mailbox that it has not taken.
%%
%% A process of its own suspends them. It waits for each one, which takes long if that runs a long NIF meanwhile. So it has a limit,
%% and is killed then. However it ends, the VM resumes what it has suspended. It ends with the run, too.
waits_for_itself(Circle, IsQuiet) ->
    Tag = make_ref(),
    Suspender = spawn_link(?MODULE, suspend_circle, [self(), Tag, Circle, IsQuiet]),
    Waits = receive {Tag, Found} -> Found after ?SUSPENDED_MS -> false end,
    unlink(Suspender),
    exit(Suspender, kill),
    receive {'EXIT', Suspender, _} -> ok after 0 -> ok end,
    receive {Tag, _} -> ok after 0 -> ok end,
    Waits.

-doc false.
-spec suspend_circle(pid(), reference(), [pid(), ...], boolean()) -> ok.
suspend_circle(Caller, Tag, [First | _] = Circle, IsQuiet) ->
    Suspended = [P || P <- Circle, suspend(P)],
    Waits = #{P => {State, Other, Messages} || P <- Suspended, {#{state := State, awaited := Other}, Messages} <- [read(P)],
                                               Other =/= undefined, has_no_answer(Messages)},
    Awaited = #{P => Other || P := {State, Other, _} <- Waits, is_map_key(Other, Waits),
                              State =/= calls orelse IsQuiet orelse has_request(P, element(3, map_get(Other, Waits)))
                                  orelse handles_call(Other)},
    lists:foreach(fun resume/1, Suspended),
    Caller ! {Tag, circle(First, Awaited) =:= {true, Circle}},
    ok.

%% A server that has taken the request may have passed it on: then another process answers it. It has not taken it, or it handles a
%% call, which is this one. Only of a gen_server is it known that it does. If nothing happens any more, no process answers.
-doc "Whether a request of this process is among the messages of a server.".
-spec has_request(pid(), [term()]) -> boolean().
has_request(P, Messages) ->
    lists:any(fun({Request, {From, _}, _}) -> From =:= P andalso (Request =:= '$gen_call' orelse Request =:= system);
                 (_) -> false
              end, Messages).

handles_call(Server) ->
    case process_info(Server, current_stacktrace) of
        {_, Stack} -> lists:any(fun({M, F, _, _}) -> M =:= gen_server andalso F =:= try_handle_call end, Stack);
        undefined -> false
    end.

-doc "Whether a process that waits does so for one that it monitors, and for nothing else, by its stack.".
-spec awaits([term()]) -> boolean().
awaits([{M, F, _, _} | _]) -> is_map_key({M, F}, ?AWAITING);
awaits([]) -> false.

%% It may have ended.
suspend(P) -> try erlang:suspend_process(P) catch error:badarg -> false end.
resume(P) -> try erlang:resume_process(P) catch error:badarg -> true end.

%% Of a mailbox that cannot be read at a small cost, it is not known.
has_no_answer(unknown) -> false;
has_no_answer(Messages) -> not lists:any(fun is_answer/1, Messages).

is_answer({'DOWN', _, _, _, _}) -> true;
is_answer({Started, P, _}) when Started =:= ack; Started =:= nack -> is_pid(P);
is_answer({[alias | _], _}) -> true;
is_answer({Tag, _}) -> is_reference(Tag);
is_answer(_) -> false.

-doc "The processes of which each waits for the next one, and the last one for the first.".
-spec circle(P, #{P => P}) -> {true, [P, ...]} | false.
circle(P, Awaited) -> circle(P, P, [], Awaited).

circle(P, First, Path, Awaited) ->
    case Awaited of
        #{P := First} -> {true, lists:reverse([P | Path])};
        #{P := Next} -> not lists:member(Next, Path) andalso Next =/= P andalso circle(Next, First, [P | Path], Awaited);
        #{} -> false
    end.

%% It costs the process nothing to ask for these alone.
reductions(P) -> process_info(P, reductions).

-doc "What a process does now; `undefined` if it has ended.".
-spec describe(pid()) -> process() | undefined.
describe(P) ->
    case read(P) of
        {Process, _} -> Process;
        undefined -> undefined
    end.

-doc """
The same of a process that is not of this VM, by its stack and its messages. `Waits`: it waits for a message; otherwise it would go on.
""".
-spec describe(pid(), mfa(), [tuple()], Waits :: boolean(), Messages :: [term()]) -> process().
describe(P, Signature, Stack, Waits, Messages) ->
    {State, Awaited} = state(case Waits of true -> waiting; false -> running end, Stack, length(Messages), P),
    Place = place(Stack),
    Syntax = syntax(Signature, Place),
    #{process => P, parent => undefined, signature => Signature, name => undefined, state => State, awaited => Awaited,
      place => Place, mailbox => length(Messages), messages => texts(Messages, Syntax), idle_ms => 0, suspended => false,
      syntax => Syntax}.

syntax(Signature, Place) -> witness_event:syntax([M || {M, _, _} <- [Signature]] ++ [M || {M, _, _, _} <- [Place]]).

%% The process with its messages.
read(P) ->
    case process_info(P, ?INFO) of
        undefined -> undefined;
        [{_, Status}, {_, Stack}, {_, Mailbox}, {_, Registered}, {_, Parent}] ->
            {State, Awaited} = state(Status, Stack, Mailbox, P),
            Messages = messages(P, Mailbox),
            Signature = signature(witness_event_signature:of_process(P), Stack),
            Place = place(Stack),
            Syntax = syntax(Signature, Place),
            {#{process => P, parent => Parent, signature => Signature, name => name(P, Registered),
              state => State, awaited => Awaited, place => Place, mailbox => Mailbox,
              messages => texts(Messages, Syntax), idle_ms => 0, syntax => Syntax, suspended => Status =:= suspended}, Messages}
    end.

texts(unknown, _) -> [];
texts(Messages, Syntax) ->
    [witness_event:format_term(Message, ?MESSAGE_CHARACTERS, Syntax) || Message <- lists:sublist(Messages, ?SHOWN_MESSAGES)].

%% The messages, if they can be read at a small cost and the process is still there.
messages(_, 0) -> [];
messages(P, Mailbox) when Mailbox =< ?MAX_MESSAGES ->
    case process_info(P, memory) of
        {memory, Bytes} when Bytes =< ?MAX_BYTES ->
            case process_info(P, messages) of
                {messages, Messages} -> Messages;
                undefined -> unknown
            end;
        _ -> unknown
    end;
messages(_, _) -> unknown.

%% Of a process that was spawned with a fun, the VM keeps no more; but the fun may still be on its stack.
signature({erlang, apply, _} = Unknown, Stack) ->
    case lists:reverse(Stack) of
        [{M, F, A, _} | _] ->
            case waits_for_others(M) of
                true -> Unknown;
                false -> {M, F, A}
            end;
        [] -> Unknown
    end;
signature(Signature, _) -> Signature.

%% A process that is suspended in such a function of OTP waits there all the same.
state(Status, [{M, sleep, _, _} | _], _, _) when (M =:= timer orelse M =:= 'Elixir.Process'),
                                                 (Status =:= waiting orelse Status =:= suspended) -> {sleeps, undefined};
state(Status, [{M, F, _, _} | _], _, P) when is_map_key({M, F}, ?AWAITING), (Status =:= waiting orelse Status =:= suspended) ->
    {map_get({M, F}, ?AWAITING), monitored(process_info(P, monitors))};
state(Status, Stack, Mailbox, P) when Status =:= waiting; Status =:= suspended ->
    case Mailbox =:= 0 andalso (lists:any(fun is_loop/1, lists:sublist(Stack, 2)) orelse is_hibernating_server(Stack, P)) of
        true -> {request, undefined};
        false when Status =:= waiting -> {waits, undefined};
        false -> {unknown, undefined}
    end;
state(_, _, _, _) -> {runs, undefined}.

%% The only one, which may be monitored more than once.
monitored({monitors, Monitors}) ->
    case lists:usort([monitored_process(Monitor) || Monitor <- Monitors]) of
        [P] -> P;
        _ -> undefined
    end;
monitored(undefined) -> undefined.

monitored_process({process, P}) when is_pid(P) -> P;
monitored_process({process, {Name, Node}}) when Node =:= node() ->
    case whereis(Name) of
        P when is_pid(P) -> P;
        _ -> undefined
    end;
monitored_process(_) -> undefined.

%% In OTP 27 a server that hibernates has no stack, as each supervisor does after it has started.
is_hibernating_server([], P) ->
    process_info(P, current_function) =:= {current_function, {erlang, hibernate, 3}} andalso
        case proc_lib:translate_initial_call(P) of
            {_, init, 1} -> true;
            {Behaviour, _, _} -> lists:member(Behaviour, [supervisor, supervisor_bridge, gen_event])
        end;
is_hibernating_server(_, _) -> false.

is_loop({gen_server, Function, _, _}) -> lists:member(Function, [loop, loop_hibernate]);
is_loop({gen_statem, Function, _, _}) -> lists:member(Function, [loop_receive, loop_hibernate]);
is_loop({gen_event, Function, _, _}) -> lists:member(Function, [fetch_msg, wake_hib]);
is_loop({application_master, Function, _, _}) -> lists:member(Function, [main_loop, loop_it]);
is_loop(_) -> false.

%% A function that has called one of these in its last line is not on the stack any more.
place([]) -> undefined;
place(Stack) ->
    case lists:search(fun({M, _, _, _}) -> not waits_for_others(M) end, Stack) of
        {value, Place} -> Place;
        false -> lists:last([hd(Stack) | [Frame || {M, _, _, _} = Frame <- Stack, M =/= proc_lib]])
    end.

waits_for_others(Module) -> lists:member(Module, ?WAITING) orelse lists:prefix("witness_inline_", atom_to_list(Module)).

name(_, Registered) when is_atom(Registered) -> Registered;
name(P, []) -> proc_lib:get_label(P).

-doc "Without messages, and without the contents of a label.".
-spec redact(process()) -> process().
redact(#{name := Name} = Process) when is_atom(Name) -> Process#{messages := []};
redact(#{name := Label} = Process) -> Process#{name := witness_event_redact:term(Label), messages := []}.

-doc """
By which process it was spawned, for people. `Test`: the processes of the test that has started it. `Called` gives the names of
processes that have ended, and the modules that processes were spawned with (`c:witness_instrument:called/1`): of a process that was
spawned with a fun, the VM does not keep that. With `Redact` labels are left out: they may be data.
""".
-spec origin(process(), Test :: [pid()], Called :: fun((pid()) -> [atom()]), Redact :: boolean()) -> unicode:chardata().
origin(#{parent := undefined}, _, _, _) -> ~"";
origin(#{process := P, parent := Parent, signature := Signature, syntax := Syntax}, Test, Called, Redact) ->
    By = case lists:member(Parent, Test) of
        true -> ~"the test";
        false -> [witness_event:format_proc(Parent, Syntax), spawner(describe(Parent), Parent, Called, Redact)]
    end,
    With = [[~" with a function of ", called(Module)] || {erlang, apply, _} <- [Signature], Module <- Called(P)],
    [~", spawned", With, ~" by ", By].

spawner(undefined, Parent, Called, _) -> [[[$\s, $(, called(Name), $)] || Name <- Called(Parent)], ~", which has ended"];
spawner(Process, _, _, true) -> [$\s, described(redact(Process))];
spawner(Process, _, _, false) -> [$\s, described(Process)].

called(Name) -> witness_event:format_term(Name, ?NAME_CHARACTERS, witness_event:syntax([Name])).

-doc "Whether a process runs, or goes on by itself after a time.".
-spec still_works(process()) -> boolean().
still_works(#{state := State}) -> State =:= runs orelse State =:= sleeps.

-doc "A process as one line.".
-spec format(process()) -> unicode:chardata().
format(#{process := P, mailbox := Mailbox, messages := Messages, idle_ms := Idle, syntax := Syntax} = Process) ->
    [witness_event:format_proc(P, Syntax), $\s, described(Process), ~": ", does(Process),
     [[~", idle for ", witness_text:seconds(Idle)] || Idle >= 1000],
     [[~"; in its mailbox: ", witness_text:count(Mailbox, ~"message", ~"messages"), listed(Messages, Mailbox)] || Mailbox > 0]].

-doc "What a process holds, as the end of such a line.".
-spec holdings(process()) -> unicode:chardata().
holdings(#{holds := Holds, syntax := Syntax}) -> witness_run_holdings:format(Holds, Syntax);
holdings(#{}) -> ~"".

listed([], _) -> ~"";
listed(Messages, Mailbox) -> [~", ", lists:join(~", ", Messages), [~", ..." || Mailbox > length(Messages)]].

described(#{name := Name, signature := Signature, syntax := Syntax}) ->
    lists:join($\s, [format_signature(Signature, Syntax) || Signature =/= undefined]
                    ++ [[$(, witness_event:format_term(Name, ?NAME_CHARACTERS, Syntax), $)] || Name =/= undefined]).

format_signature({erlang, apply, _}, _) -> ~"a fun";
format_signature(Signature, Syntax) -> witness_event:format_function(Signature, Syntax).

does(#{state := runs} = P) -> [~"runs in ", where(P)];
does(#{state := waits} = P) -> [~"waits for a message in ", where(P)];
does(#{state := request}) -> ~"waits for a request";
does(#{state := calls, awaited := undefined} = P) -> [~"waits for the answer to a call in ", where(P)];
does(#{state := calls} = P) -> [~"waits for the answer to its call of ", awaited(P), ~" in ", where(P)];
does(#{state := starts} = P) -> [~"waits until ", awaited(P), ~" has started, in ", where(P)];
does(#{state := stops} = P) -> [~"waits until ", awaited(P), ~" has ended, in ", where(P)];
does(#{state := awaits} = P) -> [~"waits for the result of ", awaited(P), ~" in ", where(P)];
does(#{state := sleeps} = P) -> [~"sleeps in ", where(P)];
does(#{state := unknown} = P) -> [~"is in ", where(P)].

awaited(#{awaited := undefined}) -> ~"another process";
awaited(#{awaited := P, syntax := Syntax}) -> witness_event:format_proc(P, Syntax).

where(#{place := undefined}) -> ~"a function that is not known";
where(#{place := {M, F, A, Location}, syntax := Syntax}) -> [witness_event:format_function({M, F, A}, Syntax), file(Location)].

file(Location) ->
    case {proplists:get_value(file, Location), proplists:get_value(line, Location)} of
        {File, Line} when is_list(File), is_integer(Line) ->
            [~" (", witness_text:clean(filename:basename(File)), $:, integer_to_binary(Line), $)];
        _ -> ~""
    end.

-doc "All of them as lines: at most five, and how many more there are.".
-spec shown(remaining()) -> [unicode:chardata()].
shown(#{count := Count, requests := Requests, processes := Processes, applications := Applications, circles := Circles}) ->
    Deadlocked = lists:append(Circles),
    {First, Others} = lists:partition(fun(#{process := P}) -> lists:member(P, Deadlocked) end, Processes),
    Shown = lists:sublist(First ++ Others, ?MAX_SHOWN),
    More = Count - Requests - length(Shown),
    [format_circle(Circle, syntax(Shown ++ Applications)) || Circle <- lists:sublist(Circles, ?MAX_SHOWN)]
        ++ [format(P) || P <- Shown ++ lists:sublist(Applications, ?MAX_SHOWN)]
        ++ [[witness_text:count(More, ~"other process", ~"other processes")] || More > 0]
        ++ [[witness_text:count(Requests, ~"server waits", ~"servers wait"), ~" for a request"] || Requests > 0].

-doc "The language in which what is said of these processes is written.".
-spec syntax([process()]) -> witness_event:syntax().
syntax(Processes) ->
    case [elixir || #{syntax := elixir} <- Processes] of
        [] -> erlang;
        _ -> elixir
    end.

format_circle([First | _] = Circle, Syntax) ->
    [~"deadlock: ", lists:join(~" waits for ", [witness_event:format_proc(P, Syntax) || P <- Circle ++ [First]])].
