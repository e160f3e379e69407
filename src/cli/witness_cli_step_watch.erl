-module(witness_cli_step_watch).
-moduledoc """
Watches over a process that goes through a run. If an operation takes longer than a second, it is reported on standard error,
also without a terminal. An interrupt ends the process, and its progress is printed.

The process itself reports, without waiting, what it does (`busy/1`, and the function that `progress/0` returns). When it has
done it (`idle/0`), it waits until the line of progress is erased. The caller of `run/1` handles timing and interrupts.
""".

-export([run/1, run/2, busy/1, idle/0, progress/0]).

%% Milliseconds: until the first line; between lines without a terminal, and on one; between two checks of the work.
-define(FIRST_MS, 1_000).
-define(LINES_MS, 5_000).
-define(TERMINAL_MS, 200).
-define(CHECK_MS, 200).

-doc "Runs the function in a process of its own. `interrupted`: it was ended early, and its progress was printed.".
-spec run(fun(() -> Result)) -> {ok, Result} | interrupted.
run(Fun) -> run(Fun, #{terminal => witness_cli_io:terminal(stderr), note => fun witness_cli_io:note/1}).

-doc "The same, with the function that prints, and whether it prints to a terminal.".
-spec run(fun(() -> Result), #{terminal := boolean(), note := fun((unicode:chardata()) -> term())}) -> {ok, Result} | interrupted.
run(Fun, Options) ->
    Said = ets:new(?MODULE, [public, {write_concurrency, true}]),
    ok = witness_cli_signal:catch_interrupts(),
    Self = self(),
    Syntax = witness_event:used_syntax(),
    {Pid, Monitor} = spawn_monitor(fun() ->
        ok = witness_event:use_syntax(Syntax),
        %% Linked, so that the process and all that it has opened end with the caller.
        true = link(Self),
        _ = put(?MODULE, {Self, Said}),
        Result = Fun(),
        true = unlink(Self),
        Self ! {?MODULE, self(), Result}
    end),
    watch(Pid, Monitor, Said, Options#{told => none}).

watch(Pid, Monitor, Said, #{terminal := Terminal, note := Note} = State) ->
    receive
        {?MODULE, Pid, Result} ->
            true = demonitor(Monitor, [flush]),
            _ = clear_line(State),
            {ok, Result};
        {'DOWN', Monitor, process, Pid, Reason} -> erlang:error(Reason);
        {?MODULE, idle, Pid, Ref} ->
            _ = clear_line(State),
            Pid ! Ref,
            watch(Pid, Monitor, Said, State#{told := none});
        interrupt ->
            _ = clear_line(State),
            _ = Note([~"interrupted: ", last_activity(Said), $\n]),
            true = unlink(Pid),
            true = exit(Pid, kill),
            receive {'DOWN', Monitor, process, Pid, _} -> interrupted end
    after ?CHECK_MS ->
        case is_due(Said, State) of
            {true, Since, Text} ->
                _ = Note(progress_text(Text, Terminal)),
                watch(Pid, Monitor, Said, State#{told := {Since, now_ms()}});
            false -> watch(Pid, Monitor, Said, State)
        end
    end.

%% Once when an operation has taken longer than `?FIRST_MS', and then from time to time.
is_due(Said, #{terminal := Terminal, told := Told}) ->
    case ets:lookup(Said, busy) of
        [{_, Since, Text}] ->
            Pause = case Terminal of true -> ?TERMINAL_MS; false -> ?LINES_MS end,
            Due = case Told of
                {Since, At} -> now_ms() - At >= Pause;
                _ -> now_ms() - Since >= ?FIRST_MS
            end,
            case Due of true -> {true, Since, Text}; false -> false end;
        [] -> false
    end.

progress_text(Text, true) -> [$\r, Text, ~"\e[K"];
progress_text(Text, false) -> [Text, $\n].

clear_line(#{terminal := true, told := {_, _}, note := Note}) -> Note(~"\r\e[K");
clear_line(_) -> ok.

last_activity(Said) ->
    case ets:lookup(Said, busy) of
        [{_, _, Text}] -> [Text, ~"; nothing more is known"];
        [] -> ~"nothing was being done"
    end.

now_ms() -> erlang:monotonic_time(millisecond).

-doc "From now on this process does what the text says.".
-spec busy(unicode:chardata()) -> ok.
busy(Text) ->
    case get(?MODULE) of
        undefined -> ok;
        {_, Said} ->
            true = ets:insert(Said, {busy, now_ms(), Text}),
            ok
    end.

-doc "The process has done that, and prints next. On a terminal its output must not be in the line of progress, which is erased later.".
-spec idle() -> ok.
idle() ->
    case get(?MODULE) of
        undefined -> ok;
        {Watcher, Said} ->
            true = ets:delete(Said, busy),
            Ref = make_ref(),
            %% The watcher is linked with this process, so it does not end before it.
            Watcher ! {?MODULE, idle, self(), Ref},
            receive Ref -> ok end
    end.

-doc "Returns a function for progress reports, which any process may call.".
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
