-module(witness_text_tests).

-include_lib("eunit/include/eunit.hrl").

control_characters_do_not_survive_test_() ->
    [?_assertEqual(Clean, witness_text:clean(Text)) || {Text, Clean} <- [
        {~"plain gr\x{FC}n", ~"plain gr\x{FC}n"},
        {"a\tb", ~"a b"},
        {~"a\nb", ~"a\\nb"},
        {~"\e[31mred", ~"\\x{1B}[31mred"},
        {[16#9B, "31m"], ~"\\x{9B}31m"},
        {[$a, 16#202E, $b], ~"a\\x{202E}b"},
        {[$a, 16#200B, $b], ~"a\\x{200B}b"}
    ]].

what_is_not_unicode_is_replaced_test_() ->
    [?_assertEqual(Clean, witness_text:clean(Text)) || {Text, Clean} <- [
        {<<"a", 16#FF, "b">>, <<"a", 16#FFFD/utf8, "b">>},
        {<<"a", 16#C3>>, <<"a", 16#FFFD/utf8>>},
        {[$a, 16#D800, $b], <<"a", 16#FFFD/utf8>>}
    ]].

lines_are_never_longer_than_asked_for_and_lose_nothing_but_blanks_test() ->
    Text = ~"and([_:_ ! {ok, R} when R =/= A + B] ff, [_:_ ! {ok, R} when R =:= A + B] X) averyveryverylongwordwithoutanyblank",
    lists:foreach(fun(Columns) ->
        Lines = witness_text:wrap(Text, Columns),
        ?assertEqual([], [Line || Line <- Lines, string:length(Line) > Columns]),
        ?assertEqual(letters(Text), letters(Lines))
    end, lists:seq(1, 120)).

letters(Text) -> [Char || Char <- unicode:characters_to_list(Text), Char =/= $\s].

an_empty_text_is_one_line_test() -> ?assertEqual([[]], witness_text:wrap(~"", 10)).

columns_are_aligned_test() ->
    ?assertEqual([~"a    bc", ~"def  g"],
                 [unicode:characters_to_binary(Line) || Line <- witness_text:columns([["a", "bc"], ["def", "g"]])]).

numbers_come_with_the_right_noun_test() ->
    ?assertEqual([~"0 gaps", ~"1 gap", ~"2 gaps"],
                 [iolist_to_binary(witness_text:count(Number, ~"gap", ~"gaps")) || Number <- [0, 1, 2]]).

colours_are_there_only_where_they_are_wanted_test() ->
    ?assertEqual(~"x", iolist_to_binary(witness_text:style(bad, ~"x", #{colour => false, width => 80}))),
    ?assertEqual(~"\e[1;31mx\e[0m", iolist_to_binary(witness_text:style(bad, ~"x", #{colour => true, width => 80}))).

%% At most seven characters up to a thousand seconds.
a_duration_has_the_digits_that_one_reads_test() ->
    ?assertEqual([~"0.00 ms", ~"0.01 ms", ~"9.99 ms", ~"10 ms", ~"11 ms", ~"999 ms", ~"1.0 s", ~"99.9 s", ~"100 s", ~"3600 s"],
                 [witness_text:duration(Ns) || Ns <- [0, 5_000, 9_994_999, 9_995_000, 11_400_000, 999_499_999, 999_500_000,
                                                      99_949_999_999, 99_950_000_000, 3_600_000_000_000]]).

an_exact_duration_can_be_compared_test() ->
    ?assertEqual([~"0.000 ms", ~"0.001 ms", ~"999.999 ms", ~"1.000 s", ~"5.003 s", ~"3599.999 s", ~"1:00:00 h", ~"2:00:05 h",
                  ~"23:59:59 h", ~"1 d 00:00:00", ~"7 d 13:02:05"],
                 [witness_text:exact_duration(Ns) || Ns <- [0, 1_000, 999_999_499, 999_999_500, 5_003_000_000, 3_599_999_499_999,
                                                            3_599_999_500_000, 7_205_000_000_000, 86_399_400_000_000,
                                                            86_400_000_000_000, 651_725_000_000_000]]).

times_in_values_are_what_one_reads_test_() ->
    Times = #{7 => ~"+1.000 s", 8 => ~"+2.000 s"},
    Text = fun(Value, Syntax) -> unicode:characters_to_binary(witness_text:value(Value, 60, Syntax, Times)) end,
    [?_assertEqual(Expected, Text(Value, erlang)) || {Value, Expected} <- [
        {7, ~"+1.000 s"}, {6, ~"6"}, {7.0, ~"7.0"}, {[], ~"[]"}, {"abc", ~"\"abc\""}, {{}, ~"{}"},
        {[7, 8, 9], ~"[+1.000 s,+2.000 s,9]"}, {{a, [7], "abc"}, ~"{a,[+1.000 s],\"abc\"}"}, {[7 | 8], ~"[+1.000 s|+2.000 s]"},
        {[a, b | 7], ~"[a,b|+1.000 s]"}, {#{a => 7, b => c}, ~"#{a => +1.000 s,b => c}"}, {#{7 => a}, ~"#{7 => a}"}]]
    ++ [?_assertEqual(~"%{:a => +1.000 s}", Text(#{a => 7}, elixir)),
        ?_assertEqual(~"A = +1.000 s, B = [7.0]",
                      unicode:characters_to_binary(witness_text:bindings([{~"A", 7}, {~"B", [7.0]}], erlang, Times)))]
    %% However large they are.
    ++ [{Name, ?_assertMatch({_, true}, begin
            {Microseconds, Shown} = timer:tc(fun() -> Text(Value, erlang) end),
            {Name, string:length(Shown) =< 60 andalso Microseconds < 1_000_000}
        end)} || {Name, Value} <- [
            {"list", [7 | lists:seq(1, 1_000_000)]}, {"tuple", list_to_tuple(lists:duplicate(1_000_000, 7))},
            {"map", #{N => 7 || N <- lists:seq(1, 100_000)}}, {"deep", lists:foldl(fun(_, In) -> [In, 7] end, 7, lists:seq(1, 100_000))},
            {"within", {7, lists:duplicate(1_000_000, 7)}}]].
