-module(witness_cli_step_parse_tests).
-moduledoc "Commands of the stepper: what lines mean, what is wrong with them, and what completes them.".
-include_lib("eunit/include/eunit.hrl").

-define(PARSED(Command, Line), ?_assertEqual({ok, Command}, witness_cli_step_parse:parse(Line))).
-define(WRONG(Text, Line), ?_assertMatch({_, {match, _}, _}, wrong(Line, Text))).

wrong(Line, Text) ->
    {error, Said} = witness_cli_step_parse:parse(Line),
    {Line, re:run(unicode:characters_to_binary(Said), Text), Said}.

lines_are_understood_test_() ->
    [?PARSED(nothing, ""), ?PARSED(nothing, "  # a note"), ?PARSED(quit, "quit\n"), ?PARSED(quit, "q"),
     ?PARSED({go, forward, 1, any, any}, "next"), ?PARSED({go, back, 3, take, ~"<0.1.0>"}, "back 3 take of <0.1.0>"),
     ?PARSED({go, forward, 1, exit, any}, "n exit"),
     ?PARSED({goto, {step, 0}}, "goto start"), ?PARSED({goto, last}, "goto end"), ?PARSED({goto, {step, 12}}, "g 12"),
     ?PARSED({goto, {place, ~"2", 5}}, "goto 2:5"), ?PARSED({goto, {place, ~"<0.85.0>", 5}}, "goto <0.85.0>:5"),
     ?PARSED({goto, {place, ~"shop", 5}}, "goto shop:5"),
     ?PARSED({goto, {function, ~"shop:loop/1"}}, "goto shop:loop/1"),
     ?PARSED({goto, {function, ~"Shop.Server.handle_call/3"}}, "goto Shop.Server.handle_call/3"),
     ?PARSED({break, {line, ~"src/shop.erl", 12}}, "break src/shop.erl:12"),
     ?PARSED({break, {message, ~"{add, message, _}"}}, "break message {add, message, _}"),
     ?PARSED({break, {formula, ~"shop.hml"}}, "break formula shop.hml"),
     ?PARSED({calls, {~"shop", ~"sell", 2}, 20}, "calls shop:sell/2"),
     ?PARSED({calls, {~"Shop.Server", ~"sell", any}, infinity}, "calls Shop.Server.sell all"),
     ?PARSED({calls, {~"shop", ~"half!", 0}, 3}, "calls shop:'half!'/0 3"),
     ?PARSED({sequence, infinity, mermaid}, "sequence all mermaid"), ?PARSED({sequence, 20, text}, "sequence"),
     ?PARSED({why, 7, infinity}, "why 7 all"), ?PARSED({why, here, 20}, "why"),
     ?PARSED({continue, back}, "continue back"), ?PARSED({verdict, any, forward}, "verdict"),
     ?PARSED({verdict, any, back}, "verdict back"), ?PARSED({verdict, violated, forward}, "verdict violated"),
     ?PARSED({verdict, violated, back}, "verdict violated back"), ?PARSED({state, ~"shop"}, "state shop")].

what_is_wrong_is_said_test_() ->
    [?WRONG("no command 'jump'", "jump"), ?WRONG("back or breaks|back or break or breaks", "b"),
     ?WRONG("interprets modules", "int:i(shop)"),
     ?WRONG("expected: goto", "goto"), ?WRONG("expected: goto", "goto shop.erl:0"), ?WRONG("expected: next", "next 0"),
     ?WRONG("expected: next", "next often"), ?WRONG("expected: break", "break 12"), ?WRONG("expected: delete", "delete all"),
     ?WRONG("expected: calls", "calls shop"), ?WRONG("expected: calls", "calls shop:sell/2 0"),
     ?WRONG("expected: calls", "calls shop:sell/1000"),
     ?WRONG("expected: mailbox", "mailbox"), ?WRONG("UTF-8", <<255>>)].

every_command_has_help_and_is_documented_test() ->
    {ok, Guide} = file:read_file(filename:join(witness_checkout:root(filename:absname("")), "docs/step.md")),
    [begin
         ?assertMatch({ok, [_ | _]}, witness_cli_step_parse:help(Name)),
         ?assertMatch({_, _}, binary:match(Guide, <<"`", Name/binary>>), Name)
     end || {Name, _, _} <- witness_cli_step_parse:commands()],
    ?assertMatch({error, _}, witness_cli_step_parse:help(~"jump")).

words_are_completed_test() ->
    Complete = fun(Line) -> witness_cli_step_parse:complete(Line, [~"<0.1.0>", ~"1"]) end,
    ?assertEqual({~"mai", [~"mailbox"]}, Complete(~"mai")),
    ?assertEqual({~"<", [~"<0.1.0>"]}, Complete(~"mailbox <")),
    ?assertEqual({~"", [~"<0.1.0>", ~"1"]}, Complete(~"next 2 take of ")),
    ?assertEqual({~"ti", [~"timeout"]}, Complete(~"next ti")),
    ?assertEqual({~"a", [~"all"]}, Complete(~"calls shop:sell/2 a")),
    ?assertEqual({~"x", []}, Complete(~"x")).

messages_are_matched_test() ->
    {ok, Test} = witness_step_place:message(~"{add, X, [X | _], #{a := <<\"b\">>}}"),
    ?assert(Test(#{what => {recv, 1, {add, 1, [1, 2], #{a => ~"b", c => d}}}})),
    ?assert(Test(#{what => {send, self(), 1, {add, 1, [1], #{a => ~"b"}}, sure}})),
    ?assertNot(Test(#{what => {recv, 1, {add, 1, [2], #{a => ~"b"}}}})),
    ?assertNot(Test(#{what => timeout})),
    [?assertMatch({error, _}, witness_step_place:message(Wrong)) || Wrong <- [~"{add", ~"1, 2", ~"f(X)", ~"'"]].
