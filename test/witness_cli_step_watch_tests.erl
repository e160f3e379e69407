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

what_is_short_is_not_told_test_() ->
    restored(fun() ->
        _ = watch(fun(_) ->
            ok = ?W:busy(~"looks"),
            ok = (?W:progress())(~"has come to 1 of 9"),
            ok = ?W:idle(),
            found
        end, false),
        ?assertEqual({ok, found}, receive {result, Result} -> Result end),
        ?assertEqual(none, receive {noted, Text} -> Text after 0 -> none end)
    end).

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
        ?assertEqual(~"has come to 7 of 9\n", noted()),
        Worker ! {on, ~"has come to 8 of 9"},
        receive done -> ok end,
        Watcher ! interrupt,
        ?assertEqual(~"interrupted: has come to 8 of 9; nothing more is known\n", noted()),
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
        ?assertEqual(~"\r\e[K", last(~"\rlooks\e[K")),
        ?assertEqual(~"prints", noted()),
        ?assertEqual({ok, done}, receive {result, Result} -> Result end)
    end).

last(Again) -> case noted() of Again -> last(Again); Other -> Other end.
