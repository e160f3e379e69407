-module(witness_spec_sentence_reference_tests).
-moduledoc """
What sentences mean, in examples that are small enough to be judged by hand. The definition agrees with each one, and so does a
monitor.

An example has a word for each event: the actions that it is, the value of those that have one, and its time in nanoseconds where it is
not that of the event in front. A dot is an event that is no action. Behind a bar there is the event at which the sentence is violated.
""".
-include_lib("eunit/include/eunit.hrl").

-define(LETTERS, "abcdqr").

the_definition_agrees_with_examples_test_() ->
    [{lists:flatten(io_lib:format("~tp ~ts", [{Scope, Main}, Example])),
      ?_assertEqual(Verdict, witness_spec_sentence_reference:judge({Scope, Main}, #{}, Trace))}
     || {Scope, Main, Examples} <- examples(), Example <- Examples, {Trace, Verdict} <- [read(Example)]].

monitors_agree_with_examples_test_() ->
    {timeout, 60, fun() ->
        Sentences = [{{Scope, Main}, [Trace || Example <- Examples, {Trace, _} <- [read(Example)]]}
                     || {Scope, Main, Examples} <- examples()],
        ?assertEqual([], [lists:flatten(witness_spec_sentence_props_tests:told(Difference))
                          || Difference <- witness_spec_sentence_props_tests:judged(Sentences, "10 ns")])
    end}.

read(Example) ->
    case string:split(Example, " | ") of
        [Text] -> {trace(Text), yes};
        [Text, "end"] -> {trace(Text), no};
        [Text, I] -> {trace(Text), {no, list_to_integer(I)}}
    end.

trace(Text) ->
    {Trace, _} = lists:mapfoldl(fun(Word, Now) ->
        [Is | At] = string:lexemes(Word, "@"),
        Time = case At of [] -> Now; [Digits] -> list_to_integer(Digits) end,
        Value = case [C || C <- Is, C >= $0, C =< $9] of [] -> 0; Number -> list_to_integer(Number) end,
        Flags = [case lists:member(Letter, Is) of true -> 1; false -> 0 end || Letter <- ?LETTERS],
        {{{recv, list_to_tuple(Flags ++ [Value])}, Time}, Time}
    end, 0, string:lexemes(Text, " ")),
    Trace.

action(Letter) -> action(Letter, '_').

action(Letter, Value) -> {recv, [case Other of Letter -> {lit, 1}; _ -> '_' end || Other <- ?LETTERS] ++ [Value], none}.

examples() ->
    [A, B, C, D, Q, R] = [action(Letter) || Letter <- ?LETTERS],
    [AV, BV, CV, QV] = [action(Letter, {var, 'V'}) || Letter <- "abcq"],
    Before = {before, R},
    Behind = {behind, Q},
    Until = {until, Q, R},
    Between = {between, Q, R},
    [
    {globally, {never, A}, ["", "b . b", "b a | 2"]},
    {Before, {never, A}, ["a", "a r | 2", "r a r", "b a . r | 4", "ar", "a ar | 2", "b r"]},
    {Behind, {never, A}, ["a q", "q a | 2", "qa", "q qa | 2"]},
    {Until, {never, A},
     ["q a | 2", "q r a", "q ar", "q r q a | 4", "qr a", "q qr a", "q q r a", "a q b r q qa | 6", "qa", "r q a | 3"]},
    {Between, {never, A}, ["q a", "q a r | 3", "q a q r | 4", "q ar", "q r a r", "q r q a b r | 6", "qr a r"]},

    {globally, {always, A}, ["", "a a", "a b | 2", "ab"]},
    {Before, {always, A}, ["b", "b r | 2", "a r b", "r", "a b a r | 4"]},
    {Behind, {always, A}, ["b q a", "q b | 2", "q q | 2", "q qa"]},
    {Until, {always, A}, ["q a r b q b | 6", "q r", "q a ar b", "q q | 2"]},
    {Between, {always, A}, ["q b", "q b r | 3", "q a r", "q q r | 3"]},

    {globally, {leads, [A], [B], none}, ["a | end", "a b", "ab | end", "ab b", "a a b", "b a | end"]},
    {Before, {leads, [A], [B], none}, ["a", "a r | 2", "a b r", "a br | 2", "a b r a", "r a"]},
    {Behind, {leads, [A], [B], none}, ["a q", "q a | end", "q a b", "qa", "a q b"]},
    {Until, {leads, [A], [B], none},
     ["q a r | 3", "q a | end", "q a b r", "q a b r q a r | 7", "q a br | 3", "q ar", "q a q b r", "q a b r a"]},
    {Between, {leads, [A], [B], none}, ["q a", "q a r | 3", "q a b r q a", "q a b r q a r | 7"]},

    {globally, {leads, [A], [B], 10}, ["a b@10", "a .@10 | end", "a .@11 | 2", "a b@11 | 2", "a a@5 b@10", "a b@10 a@20 .@31 | 4"]},
    {Before, {leads, [A], [B], 10}, ["a .@11 r@20 | 3", "a b@11 r@20 | 3", "a .@50", "a b@10 r@11 a@12 .@50"]},
    {Behind, {leads, [A], [B], 10}, ["q a .@11 | 3", "q a | end", "q a b@10 .@30"]},
    {Until, {leads, [A], [B], 10},
     ["q a .@11 r@12 | 3", "q a .@10 r@10 | 4", "q a r@11 | 3", "q a b@10 r", "q a r@3 | 3", "q a@5 r@6 .@30 | 3"]},
    {Between, {leads, [A], [B], 10}, ["q a b@11", "q a b@11 r@12 | 4", "q a b@10 r@50"]},

    {globally, {leads, [A, B], [C, D], none},
     ["a b | end", "a", "a b c | end", "a b c d", "a b d c | end", "ab", "a a b c d", "a b cd | end", "a b c d b",
      "a b c a b d | end", "abc b c d"]},
    {globally, {leads, [A, B], [C, D], 10}, ["a b@5 c@10 d@15", "a b@5 c@10 d@16 | 4", "a b@5 c@16 | 3", "a .@50 b@51 | end"]},
    {Until, {leads, [A, B], [C, D], none}, ["q a r b", "q a b r | 4", "q a b c d r q a b c r | 11", "q a b c dr | 5", "a q b r"]},
    {globally, {leads, [A, BV], [CV], none}, ["a b1 c2 | end", "a b1 c2 c1"]},
    {globally, {leads, [AV], [BV], none}, ["a1 b2 | end", "a1 b2 b1"]},
    {Until, {leads, [AV, BV], [CV], none}, ["q a1 b2 r", "q a1 b2 b1 c2 r | 6", "q a1 a2 b1 b2 c2 c1 r", "q a1 r q b1 r"]},

    {globally, {precedes, [A], [B], none}, ["b | 1", "a b", "ab", "a b b"]},
    {Before, {precedes, [A], [B], none}, ["b r | 2", "b", "a b r", "b a r | 3", "a r b", "br"]},
    {Behind, {precedes, [A], [B], none}, ["a q b | 3", "qa b | 2", "q a b", "b q", "q ab"]},
    {Until, {precedes, [A], [B], none}, ["q b | 2", "q a b r q b | 6", "q a b r b", "a q b | 3", "q a q b"]},
    {Between, {precedes, [A], [B], none}, ["q b a", "q b a r | 4", "q a b r b r"]},
    {globally, {precedes, [A], [B], 10}, ["a b@10", "a b@11 | 2", "a a@5 b@15"]},
    {Until, {precedes, [A], [B], 10}, ["a q@1 b@2 | 3", "q a@5 b@15 r q a@20 r q@21 b@22 | 9"]},

    {globally, {precedes, [A, B], [C], none}, ["c | 1", "a b c", "a bc", "abc | 1", "ab c | 2", "b a c | 3", "a b . c c"]},
    {Until, {precedes, [A, B], [C], none}, ["a q b c | 4", "q a b c r q c | 7", "q a r q b c | 6"]},
    {Between, {precedes, [A, B], [C], none}, ["q a c", "q a c r | 4"]},
    {globally, {precedes, [A], [B, C], none},
     ["b", "b c | 2", "bc", "bc c | 2", "a b c", "b a c | 3", "b a b c | 4", "ab c", "c b"]},
    {Until, {precedes, [A], [B, C], none}, ["q b r c", "q b r q c", "q b c r | 3", "a q b c | 4", "q b cr"]},
    {Between, {precedes, [A], [B, C], none}, ["q b c", "q b c r | 4"]},
    {globally, {precedes, [A], [B, C], 10}, ["a b@10 c@50", "a b@11 c@50 | 3"]},

    {globally, {at_most, 1, A}, ["a", "a a | 2"]},
    {Before, {at_most, 1, A}, ["a a", "a a r | 3", "a r a", "a ar"]},
    {Behind, {at_most, 1, A}, ["a q a", "q a a | 3"]},
    {Until, {at_most, 1, A}, ["q a r a q a", "q a a | 3", "q a q a | 4"]},
    {Between, {at_most, 1, A}, ["q a a", "q a a r | 4", "q a r q a r"]},

    {globally, {at_least, 2, A, none}, [" | end", "a | end", "a a"]},
    {Before, {at_least, 2, A, none}, ["r | 1", "a r a | 2", "a a r", "a", "a ar | 2"]},
    {Behind, {at_least, 2, A, none}, ["a a", "a a q a | end", "q a a", "qa a | end"]},
    {Until, {at_least, 2, A, none}, ["q a r | 3", "q a | end", "q a a r q a r | 7", "q a q a r", "q a ar | 3", "a a", "qr"]},
    {Between, {at_least, 2, A, none}, ["q a", "q r | 2", "q a a r", "qr"]},

    {globally, {at_least, 2, A, 10}, ["a a@10", "a a@11 | 2", "a@3 a@13", ". a@5 a@11 | 3", ". a | end"]},
    {Before, {at_least, 2, A, 10}, [". a@5 a@10 r@20", ". a@5 a@11 r@12 | 4", "a r@1 | 2"]},
    {Behind, {at_least, 2, A, 10}, ["q@5 a@10 a@15", "q@5 a@10 a@16 | 3", "q a | end", ". q@20 q@25 a a@31 | 5"]},
    {Until, {at_least, 2, A, 10}, ["q@5 a a@16 | 3", "q@5 a r@6 | 3", "q a a r q@50 a .@61 | 7", "q a a r q@50 a a@60 r"]},
    {Between, {at_least, 2, A, 10}, ["q a .@11", "q a a@11 r | 4"]},

    {globally, {exactly, 1, A}, [" | end", "a", "a a | 2"]},
    {Before, {exactly, 1, A}, ["a a", "r | 1", "a r a", "a a r | 3"]},
    {Behind, {exactly, 1, A}, ["a", "a q | end", "a q a"]},
    {Until, {exactly, 1, A}, ["q r | 2", "q a a | 3", "q a", "q | end"]},
    {Between, {exactly, 1, A}, ["q", "q a a", "q a a r | 4", "q a r q r | 5"]},

    {globally, {in_any, 1, A, 10}, ["a a@10 | 2", "a a@11"]},
    {Before, {in_any, 1, A, 10}, ["a a@1 r@30 | 3", "a r a"]},
    {Behind, {in_any, 1, A, 10}, ["a q a", "q a a | 3"]},
    {Until, {in_any, 1, A, 10}, ["q a r q a", "q a@1 a@11 | 3", "q a@1 a@12"]},
    {Between, {in_any, 1, A, 10}, ["q a a r | 4", "q a a"]},

    {globally, {open, 1, A, B}, ["a a | 2", "a b a", "b a a | 3", "ab ab"]},
    {Before, {open, 1, A, B}, ["a a r | 3", "a b a r"]},
    {Behind, {open, 1, A, B}, ["a q a", "q a b a", "q b a a | 4"]},
    {Until, {open, 1, A, B}, ["q a r q a", "q a a | 3", "a q a"]},
    {Between, {open, 1, A, B}, ["q a a", "q a a r | 4", "q a b a r", "q a b r a a r"]},
    {globally, {open, 1, AV, BV}, ["a1 a1", "a1 a2 | 2", "a1 b2 a2 | 3", "a1 b1 a2"]},
    {Between, {open, 1, AV, BV}, ["q a1 a2 b1 r | 5", "q a1 b1 a2 r", "q a1 a2 b1"]},
    {Until, {open, 1, AV, BV}, ["q a1 r q a2", "q a1 b2 a2 | 4"]},

    {globally, {unique, ['V'], AV}, ["a1 a2", "a1 a1 | 2"]},
    {Before, {unique, ['V'], AV}, ["a1 a1", "a1 a1 r | 3", "a1 r a1 r"]},
    {Behind, {unique, ['V'], AV}, ["a1 q a1", "q a1 q a1 | 4"]},
    {Until, {unique, ['V'], AV}, ["q a1 r q a1", "q a1 a1 | 3"]},
    {Between, {unique, ['V'], AV}, ["q a1 a1 r | 4", "q a1 r a1 r"]},

    {globally, {increasing, weakly, 'V', AV}, ["a2 a1 | 2", "a1 a1"]},
    {globally, {increasing, strictly, 'V', AV}, ["a1 a1 | 2", "a1 a2"]},
    {Before, {increasing, weakly, 'V', AV}, ["a2 a1", "a2 a1 r | 3", "a2 r a1 r"]},
    {Behind, {increasing, weakly, 'V', AV}, ["a2 q a1", "q a2 a1 | 3"]},
    {Until, {increasing, strictly, 'V', AV}, ["q a2 r q a1", "q a2 b a1 | 4"]},
    {Between, {increasing, strictly, 'V', AV}, ["q a2 a1", "q a2 a1 r | 4"]},

    {globally, {alternates, A, B}, ["a b a", "b | 1", "a a | 2", "ab | 1"]},
    {Before, {alternates, A, B}, ["b r | 2", "a b r b"]},
    {Behind, {alternates, A, B}, ["a q a b", "q b | 2"]},
    {Until, {alternates, A, B}, ["q a r q a", "q a r q b | 5", "a q b | 3"]},
    {Between, {alternates, A, B}, ["q b", "q b r | 3", "q a r"]},

    {globally, {never_within, Q, A, 10},
     ["q a | 2", "q a@10 | 2", "q a@11", "qa", "q q@5 a@15 | 3", "a q", "q a@11 q@12 .@13 a@22 | 5"]},
    {globally, {never_within, A, A, 10}, ["a a@10 | 2", "a a@11"]},
    {globally, {never_within, QV, AV, 10}, ["q1 a2", "q1 a1 | 2", "q1 q2 a1 | 3"]}
    ].
