-module(witness_cli_step_watch).
-moduledoc """
Watches over a process that goes through a run: what takes longer than a second is told on standard error, also where no terminal is, and an
interrupt ends it with what had been reached.

The process itself only says what it does (`busy/1`, and the function that `progress/0` gives), by which it waits for nothing, and that it
has done it (`idle/0`): then it waits until the line of progress is gone. The caller of `run/1` hears of the time and of interrupts.
""".

-export([run/1, run/2, busy/1, idle/0, progress/0]).

%% After which time the first line is printed; how often the next ones are, without a terminal and on one; how often the work is looked at.
-define(FIRST_MS, 1_000).
-define(LINES_MS, 5_000).
-define(TERMINAL_MS, 200).
-define(LOOK_MS, 200).

-doc "Runs the function in a process of its own. `interrupted`: it was ended before it had come to its end, and what it had reached was told.".
-spec run(fun(() -> Result)) -> {ok, Result} | interrupted.
run(Fun) -> run(Fun, #{terminal => witness_cli_io:terminal(stderr), note => fun witness_cli_io:note/1}).

-doc "The same, where what is told is given to a function, on a terminal or not.".
-spec run(fun(() -> Result), #{terminal := boolean(), note := fun((unicode:chardata()) -> term())}) -> {ok, Result} | interrupted.
run(Fun, Options) ->
    Said = ets:new(?MODULE, [public, {write_concurrency, true}]),
    ok = witness_cli_signal:catch_interrupts(),
    Self = self(),
    {Pid, Monitor} = spawn_monitor(fun() ->
        %% With the caller it ends, and with it all that it has opened.
        true = link(Self),
        _ = put(?MODULE, {Self, Said}),
        Result = Fun(),
        true = unlink(Self),
        Self ! {?MODULE, self(), Result}
    end),
    watched(Pid, Monitor, Said, Options#{told => none}).

watched(Pid, Monitor, Said, #{terminal := Terminal, note := Note} = State) ->
    receive
        {?MODULE, Pid, Result} ->
            true = demonitor(Monitor, [flush]),
            _ = cleared(State),
            {ok, Result};
        {'DOWN', Monitor, process, Pid, Reason} -> erlang:error(Reason);
        {?MODULE, idle, Pid, Ref} ->
            _ = cleared(State),
            Pid ! Ref,
            watched(Pid, Monitor, Said, State#{told := none});
        interrupt ->
            _ = cleared(State),
            _ = Note([~"interrupted: ", reached(Said), $\n]),
            true = unlink(Pid),
            true = exit(Pid, kill),
            receive {'DOWN', Monitor, process, Pid, _} -> interrupted end
    after ?LOOK_MS ->
        case is_due(Said, State) of
            {true, Since, Text} ->
                _ = Note(told(Text, Terminal)),
                watched(Pid, Monitor, Said, State#{told := {Since, now_ms()}});
            _ -> watched(Pid, Monitor, Said, State)
        end
    end.

%% Once for what has just begun to take long, and then from time to time.
is_due(Said, #{terminal := Terminal, told := Told}) ->
    case ets:lookup(Said, busy) of
        [{_, Since, Text}] ->
            Pause = case Terminal of true -> ?TERMINAL_MS; false -> ?LINES_MS end,
            Due = case Told of
                {Since, At} -> now_ms() - At >= Pause;
                _ -> now_ms() - Since >= ?FIRST_MS
            end,
            case Due of true -> {true, Since, Text}; false -> wait end;
        [] -> idle
    end.

told(Text, true) -> [$\r, Text, ~"\e[K"];
told(Text, false) -> [Text, $\n].

cleared(#{terminal := true, told := {_, _}, note := Note}) -> Note(~"\r\e[K");
cleared(_) -> ok.

reached(Said) ->
    case ets:lookup(Said, busy) of
        [{_, _, Text}] -> [Text, ~"; nothing more is known"];
        [] -> ~"nothing was being done"
    end.

now_ms() -> erlang:monotonic_time(millisecond).

-doc "From now on this process does this.".
-spec busy(unicode:chardata()) -> ok.
busy(Text) ->
    case get(?MODULE) of
        undefined -> ok;
        {_, Said} ->
            true = ets:insert(Said, {busy, now_ms(), Text}),
            ok
    end.

-doc "It has done that, and prints next: on a terminal that would stand in the line of progress, which would then be cleared with it.".
-spec idle() -> ok.
idle() ->
    case get(?MODULE) of
        undefined -> ok;
        {Watcher, Said} ->
            true = ets:delete(Said, busy),
            Ref = make_ref(),
            %% The watcher does not end before this process, which is linked with it.
            Watcher ! {?MODULE, idle, self(), Ref},
            receive Ref -> ok end
    end.

-doc "How far it has come: a function that any process may call.".
-spec progress() -> fun((unicode:chardata()) -> ok).
progress() ->
    case get(?MODULE) of
        undefined -> fun(_) -> ok end;
        {_, Said} ->
            fun(Text) ->
                _ = ets:update_element(Said, busy, {3, Text}),
                ok
            end
    end.
