-module(witness_options_tests).
-include_lib("eunit/include/eunit.hrl").

the_defaults_are_complete_test() ->
    {ok, Options} = check(#{}),
    ?assertMatch(#{scope := tree, specs := [], include := [], monitors := [], max_slices := 100_000,
                   max_obligations := 1000, max_verdicts := 10_000, explain := 12, halt := true}, Options).

what_is_given_stays_test() ->
    Given = #{include => ["a", ~"b"], max_slices => 1, max_obligations => 7, max_verdicts => 0, drain => infinity},
    {ok, Options} = check(Given),
    ?assertEqual(Given, maps:with(maps:keys(Given), Options)).

an_ill_typed_option_is_named_test_() ->
    [{lists:flatten(io_lib:format("~p", [Option])), fun() ->
         [{Key, _}] = maps:to_list(Option),
         {error, Reason = {bad_option, Key, _}} = check(Option),
         Text = unicode:characters_to_list(witness:format_error(Reason)),
         ?assertMatch({match, _}, re:run(Text, "^option " ++ atom_to_list(Key) ++ ": expected "))
     end} || Option <- [#{include => "include"}, #{include => dir}, #{include => [dir]}, #{specs => [1]},
                        #{max_slices => 0}, #{max_slices => infinity}, #{max_obligations => 0},
                        #{max_obligations => 1.5}, #{max_verdicts => -1}, #{scope => galaxy}, #{halt => yes}, #{system => nothing}, #{monitors => [{a, b}]}]].

an_unknown_option_is_named_test() ->
    ?assertEqual({error, {unknown_option, max_slice}}, check(#{max_slice => 1})).

check(Options) -> witness_options:check(maps:merge(#{system => {erlang, node, []}}, Options)).
