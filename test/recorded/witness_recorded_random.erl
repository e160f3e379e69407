-module(witness_recorded_random).
-moduledoc """
Runs a generated program: a term, which says what a process does. Every program ends.

| Step | |
|---|---|
| `{spawn, Steps, Options}` | a child does these |
| `{send, To, Tag}`, `{sends, To, Tags}`, `{send_name, Name, Tag}` | to a process that it knows: itself, its parent, its children, others |
| `{take, Tags, Time}` | receives a message with one of these tags, or with any |
| `{pick, Tags, Which, Time}` | the same, of those with a number that has this remainder (`{Divisor, Remainder}`), or of any |
| `{pick_of, Last, Tags, Time}` | the same, of the last process that it has come to know, or the one before, ... |
| `{timer, Time, Tag}` | a message later |
| `{register, Name}`, `{monitor, To}`, `{link, To}`, `{kill, To, Reason}` | |
| `{count, Key}` | adds to a counter that all share |
| `{busy, N}`, `{trap, Bool}`, `{exit, Reason}`, `hibernate` | |

The sender numbers its messages. A process that has done all its steps takes what is there, so a changed order of messages is seen.
""".

-import(witness_recorded, [message/2, content/1, timeout/0, result/2, ended/2]).

-export([start_all/1, told/1, proceed/2]).

-define(COUNTERS, witness_recorded_counters).

-doc "Runs programs, one after the other, each until all of its processes have ended.".
start_all(Programs) ->
    true = register(witness_recorded_main, self()),
    all(Programs).

-doc "The same. The result is what its processes have noted. They send that to the registered name of the listener.".
told(Programs) -> witness_recorded:listening(fun() -> all(Programs) end).

all(Programs) ->
    ?COUNTERS = ets:new(?COUNTERS, [named_table, public]),
    lists:foreach(fun start/1, Programs).

start(Steps) ->
    %% Each process of the program has this group leader.
    Leader = witness_recorded:spawned(fun() -> receive never -> ok end end),
    Own = group_leader(),
    true = group_leader(Leader, self()),
    _ = child(Steps, []),
    true = group_leader(Own, self()),
    wait(Leader),
    exit(Leader, kill).

wait(Leader) ->
    %% A process that has ended since the list was made may have had children after it was made.
    case [Pid || Pid <- processes(), Pid =/= Leader,
                 lists:member(process_info(Pid, group_leader), [{group_leader, Leader}, undefined])] of
        [] -> ok;
        Pids ->
            lists:foreach(fun(Pid) ->
                Ref = monitor(process, Pid),
                receive {'DOWN', Ref, process, Pid, Reason} = Down ->
                    content(Down),
                    Reason =:= noproc orelse ended(Pid, Reason)
                end
            end, Pids),
            wait(Leader)
    end.

child(Steps, Options) ->
    Parent = self(),
    witness_recorded:spawned(fun() -> proceed(Steps, [self(), Parent]) end, Options).

-doc "What a process still does, with the processes that it knows.".
proceed([], Known) ->
    receive
        Msg ->
            _ = taken(Msg, Known),
            proceed([], Known)
    after 1 -> timeout()
    end;
proceed([hibernate | Steps], Known) ->
    self() ! {awake, self(), {0, self()}},
    erlang:hibernate(?MODULE, proceed, [[{take, [awake], 0} | Steps], Known]);
proceed([Step | Steps], Known) -> proceed(Steps, step(Step, Known)).

step({spawn, Steps, Options}, Known) -> Known ++ [child(Steps, Options)];
step({send, To, Tag}, Known) ->
    known(To, Known) ! numbered(Tag, Known),
    Known;
step({sends, To, Tags}, Known) ->
    lists:foldl(fun(Tag, _) -> step({send, To, Tag}, Known) end, Known, Tags);
step({send_name, Name, Tag}, Known) ->
    _ = try Name ! numbered(Tag, Known) catch error:badarg -> nobody end,
    Known;
step({take, Tags, Time}, Known) -> take(Tags, Time, Known);
step({pick, Tags, Which, Time}, Known) -> pick(maps:from_keys(Tags, []), Which, Time, Known);
step({pick_of, Last, Tags, Time}, Known) ->
    pick_of(lists:nth(Last rem length(Known) + 1, lists:reverse(Known)), maps:from_keys(Tags, []), Time, Known);
step({timer, Time, Tag}, Known) ->
    _ = erlang:send_after(Time, self(), {timer, Tag}),
    Known;
step({register, Name}, Known) ->
    _ = try register(Name, self()) catch error:badarg -> false end,
    Known;
step({monitor, To}, Known) ->
    _ = monitor(process, known(To, Known)),
    Known;
step({link, To}, Known) ->
    _ = try link(known(To, Known)) catch error:noproc -> false end,
    Known;
step({kill, To, Reason}, Known) ->
    exit(known(To, Known), Reason),
    Known;
step({count, Key}, Known) ->
    _ = result({ets, update_counter, 4}, ets:update_counter(?COUNTERS, Key, 1, {Key, 0})),
    Known;
step({busy, N}, Known) ->
    busy(N),
    Known;
step({trap, Bool}, Known) ->
    _ = process_flag(trap_exit, Bool),
    Known;
step({exit, Reason}, _) -> exit(Reason).

numbered(Tag, Known) ->
    Number = case get(?MODULE) of undefined -> 1; Last -> Last + 1 end,
    put(?MODULE, Number),
    {Tag, self(), {Number, lists:last(Known)}}.

%% The first process's parent waits for the program, and takes nothing of it: no process may know it.
known(I, Known) ->
    case lists:nth(I rem length(Known) + 1, Known) of
        Pid when Pid =:= self() -> self();
        Pid -> case lists:member(Pid, outside()) of true -> self(); false -> Pid end
    end.

outside() -> [whereis(Name) || Name <- [witness_recorded_main, witness_recorded_listener]].

take(any, Time, Known) ->
    receive Msg -> taken(Msg, Known) after Time -> late(Known) end;
take(Tags, 0, Known) ->
    receive
        {Tag, _, _} = Msg when is_map_key(Tag, #{a => 1, b => 1}), hd(Tags) =:= Tag -> taken(Msg, Known);
        {Tag, _, _} = Msg when tl(Tags) =:= [Tag] -> taken(Msg, Known)
    after 0 -> late(Known)
    end;
take([Tag | _], Time, Known) ->
    receive
        {Tag, _, _} = Msg -> taken(Msg, Known);
        {'DOWN', _, _, _, _} = Msg -> taken(Msg, Known);
        {timer, Tag} = Msg -> taken(Msg, Known)
    after Time -> late(Known)
    end.

pick(Tags, any, Time, Known) ->
    receive {Tag, _, {_, _}} = Msg when is_map_key(Tag, Tags) -> taken(Msg, Known) after Time -> late(Known) end;
pick(Tags, {Divisor, Remainder}, Time, Known) ->
    receive
        {Tag, _, {N, _}} = Msg when N rem Divisor =:= Remainder, is_map_key(Tag, Tags) -> taken(Msg, Known)
    after Time -> late(Known)
    end.

pick_of(From, Tags, Time, Known) ->
    receive {Tag, From, {_, _}} = Msg when is_map_key(Tag, Tags) -> taken(Msg, Known) after Time -> late(Known) end.

taken({_, From, {_, Other}} = Msg, Known) when is_pid(From), is_pid(Other) ->
    message(From, Msg),
    lists:uniq(Known ++ [From, Other]);
taken(Msg, Known) ->
    content(Msg),
    Known.

late(Known) ->
    timeout(),
    Known.

busy(0) -> ok;
busy(N) -> busy(N - 1).
