-module(witness_cli_step_watch_tests).
-moduledoc "What takes long is told, and an interrupt ends it with what was reached.".
-include_lib("eunit/include/eunit.hrl").

-define(W, witness_cli_step_watch).

watch(Fun, Terminal) ->
    Self = self(),
    Watcher = spawn(fun() ->
        Result = ?W:run(fun() -> Fun(Self) end,
                        #{terminal => Terminal, note => fun(Text) -> Self ! {noted, unicode:characters_to_binary(Text)} end}),
        Self ! {result, Result}
    end),
    Watcher.

noted() -> receive {noted, Text} -> Text end.

restored(Test) ->
    {setup, fun() -> ok end,
     fun(_) -> gen_event:swap_handler(erl_signal_server, {witness_cli_signal, []}, {erl_signal_handler, []}) end,
     {timeout, 60, Test}}.

what_is_short_is_not_told_test_() -> restored(fun what_is_short_is_not_told/0).

%% It is told of what takes a second. Where the machine stands still for that long, it is not short.
what_is_short_is_not_told() ->
    _ = watch(fun(_) ->
        Begun = erlang:monotonic_time(millisecond),
        ok = ?W:busy(~"looks"),
        ok = (?W:progress())(~"has come to 1 of 9"),
        ok = ?W:idle(),
        {found, erlang:monotonic_time(millisecond) - Begun}
    end, false),
    {ok, {found, Ms}} = receive {result, Result} -> Result end,
    Noted = receive {noted, Text} -> Text after 0 -> none end,
    case Ms < 1000 of
        true -> ?assertEqual(none, Noted);
        false -> what_is_short_is_not_told()
    end.

what_takes_long_is_told_and_an_interrupt_says_what_was_reached_test_() ->
    restored(fun() ->
        Watcher = watch(fun(Test) ->
            ok = ?W:busy(~"looks"),
            Progress = ?W:progress(),
            ok = Progress(~"has come to 7 of 9"),
            Test ! {worker, self()},
            receive {on, Text} -> ok = Progress(Text), Test ! done end,
            receive never -> ok end
        end, false),
        Worker = receive {worker, Pid} -> Pid end,
        Monitor = monitor(process, Worker),
        %% Where it stands still, a line comes before the progress is known, or comes again.
        ?assertEqual(~"has come to 7 of 9\n", last([~"looks\n"])),
        Worker ! {on, ~"has come to 8 of 9"},
        receive done -> ok end,
        Watcher ! interrupt,
        ?assertEqual(~"interrupted: has come to 8 of 9; nothing more is known\n",
                     last([~"has come to 7 of 9\n", ~"has come to 8 of 9\n"])),
        ?assertEqual(interrupted, receive {result, Result} -> Result end),
        ?assertEqual(killed, receive {'DOWN', Monitor, process, Worker, Reason} -> Reason end)
    end).

on_a_terminal_the_line_is_written_over_and_removed_test_() ->
    restored(fun() ->
        _ = watch(fun(Test) ->
            ok = ?W:busy(~"looks"),
            Test ! {worker, self()},
            receive go_on -> ok end,
            ok = ?W:idle(),
            Test ! {noted, ~"prints"},
            done
        end, true),
        Worker = receive {worker, Pid} -> Pid end,
        ?assertEqual(~"\rlooks\e[K", noted()),
        Worker ! go_on,
        ?assertEqual(~"\r\e[K", last([~"\rlooks\e[K"])),
        ?assertEqual(~"prints", noted()),
        ?assertEqual({ok, done}, receive {result, Result} -> Result end)
    end).

%% The first line that is none of these.
last(Others) ->
    Noted = noted(),
    case lists:member(Noted, Others) of
        true -> last(Others);
        false -> Noted
    end.
