-module(witness_event_external_tests).

-include_lib("eunit/include/eunit.hrl").

terms_are_those_of_the_vm_test_() ->
    {timeout, 60, fun() ->
        _ = rand:seed(exsss, {1, 2, 3}),
        [begin
             Bytes = term_to_binary(Term, Options),
             ?assertEqual(Term, witness_event_external:decode_in_parts(Bytes)),
             ?assertEqual(Term, witness_event_external:decode(Bytes))
         end || _ <- lists:seq(1, 2_000), Term <- [term(5)], Options <- [[], [compressed], [{minor_version, 1}]]]
    end}.

%% However they are damaged, nothing is read that the VM refuses, and nothing as something else.
damaged_terms_are_refused_test_() ->
    {timeout, 60, fun() ->
        _ = rand:seed(exsss, {4, 5, 6}),
        [begin
             Damaged = damaged(term_to_binary(term(4))),
             case outcome(fun witness_event_external:decode_in_parts/1, Damaged) of
                 badarg -> ok;
                 Term -> ?assertEqual({Damaged, outcome(fun erlang:binary_to_term/1, Damaged)}, {Damaged, Term})
             end
         end || _ <- lists:seq(1, 20_000)]
    end}.

terms_of_each_size_are_read_test_() ->
    [{timeout, 60, ?_assertEqual(Term, witness_event_external:decode(term_to_binary(Term)))}
     || Size <- [1, 60, 61, 4_000, 199_990, 200_001, 600_000],
     Term <- [lists:duplicate(Size, []), binary:copy(<<7>>, Size), {self(), 1 bsl (4 * Size)}]].

a_fun_that_is_too_large_is_refused_test() ->
    Environment = lists:duplicate(300_000, []),
    Large = term_to_binary([fun() -> Environment end]),
    ?assertError(badarg, witness_event_external:decode_in_parts(Large)).

outcome(Read, Bytes) ->
    try Read(Bytes) catch error:badarg -> badarg end.

damaged(Bytes) ->
    Place = rand:uniform(byte_size(Bytes)) - 1,
    <<Before:Place/binary, Byte, After/binary>> = Bytes,
    case rand:uniform(3) of
        1 -> Before;
        2 -> <<Before/binary, (rand:uniform(256) - 1), After/binary>>;
        %% No new atoms.
        3 -> <<Before/binary, (Byte bxor 1), After/binary>>
    end.

term(0) -> leaf(rand:uniform(14));
term(Depth) ->
    Terms = [term(Depth - 1) || _ <- lists:seq(1, rand:uniform(4) - 1)],
    case rand:uniform(6) of
        1 -> Terms;
        2 -> list_to_tuple(Terms);
        3 -> maps:from_list([{Term, Depth} || Term <- Terms]);
        4 -> [Depth | Terms] ++ tail;
        5 -> fun() -> Terms end;
        6 -> leaf(rand:uniform(14))
    end.

leaf(1) -> rand:uniform(256) - 1;
leaf(2) -> rand:uniform(1 bsl 33) - (1 bsl 32);
leaf(3) -> (rand:uniform(1 bsl 60) - (1 bsl 59)) * rand:uniform(1 bsl 60);
leaf(4) -> -(1 bsl (8 * (250 + rand:uniform(20))));
leaf(5) -> rand:uniform();
leaf(6) -> "a string";
leaf(7) -> rand:bytes(rand:uniform(100));
leaf(8) -> Bits = rand:uniform(100), <<(rand:uniform(1 bsl 60)):Bits>>;
leaf(9) -> self();
leaf(10) -> make_ref();
leaf(11) -> hd(erlang:ports());
%% Damaged, it is another function of this module, which the VM knows from then on.
leaf(12) -> fun ?MODULE:test/0;
leaf(13) -> 'näme';
leaf(14) -> list_to_tuple(lists:seq(1, 200 + rand:uniform(100))).
