-module(witness_monitor_bloom_tests).
-include_lib("eunit/include/eunit.hrl").

-define(TERMS, 100_000).

%% As many as a monitor forgets at first, and as many that it has never seen.
what_was_put_in_is_in_and_others_are_mostly_not_test_() ->
    {timeout, 60, fun() ->
        Bloom = lists:foldl(fun(N, Before) -> witness_monitor_bloom:put({key, N}, Before) end, witness_monitor_bloom:new(),
                            lists:seq(1, ?TERMS)),
        ?assertEqual([], [N || N <- lists:seq(1, ?TERMS), not witness_monitor_bloom:has({key, N}, Bloom)]),
        Others = length([N || N <- lists:seq(?TERMS + 1, 2 * ?TERMS), witness_monitor_bloom:has({key, N}, Bloom)]),
        ?assert(Others < ?TERMS div 1_000),
        ?assert(erts_debug:flat_size(Bloom) * erlang:system_info(wordsize) < 6_000_000),
        ?assertEqual(Bloom, binary_to_term(term_to_binary(Bloom)))
    end}.

numbers_are_compared_exactly_test() ->
    Bloom = witness_monitor_bloom:put(1, witness_monitor_bloom:new()),
    ?assert(witness_monitor_bloom:has(1, Bloom)),
    ?assertNot(witness_monitor_bloom:has(1.0, Bloom)),
    ?assertNot(witness_monitor_bloom:has(1, witness_monitor_bloom:new())).
