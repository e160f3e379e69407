-module(witness_log_recording_refusal_tests).
-include_lib("eunit/include/eunit.hrl").

-define(R, witness_log_recording_refusal).

header() -> #{node => nonode@nohost, code => #{pa => [], weave => []}, digests => #{}, calls => #{{lists, member, 2} => 1}}.

text(Reasons) -> unicode:characters_to_binary([?R:format(Reason) || Reason <- Reasons]).

what_can_be_replayed_has_no_reason_test() ->
    ?assertEqual([], ?R:reasons(header(), #{})),
    ?assertEqual([], ?R:reasons(header(), #{modules => [{lists, ~"md5", false}, {shop, ~"md5", true}, {witness_sup, ~"md5", false}],
                                            unwoven => [], nodes => []})).

each_reason_is_found_test() ->
    ?assertEqual([{node, a@b}], ?R:reasons((header())#{node => a@b}, #{})),
    ?assertEqual([{node, a@b}], ?R:reasons(header(), #{nodes => [a@b, a@b]})),
    ?assertEqual([tracing_only], ?R:reasons((header())#{tracing_only => true}, #{modules => [{shop, ~"md5", false}]})),
    ?assertEqual([late], ?R:reasons((header())#{late => true}, #{})),
    ?assertEqual([no_code], ?R:reasons(maps:remove(code, header()), #{})),
    ?assertEqual([{unwoven, [{shop, unknown}]}], ?R:reasons(header(), #{modules => [{shop, ~"md5", false}]})),
    %% It is not there any more, and it was.
    ?assertEqual([{unwoven, [{made, memory}]}],
                 ?R:reasons(header(), #{modules => [{shop, ~"md5", true}], unwoven => [{made, memory}]})),
    ?assertEqual([{unwoven, [{witness_of_a_user, memory}]}], ?R:reasons(header(), #{modules => [{witness_sup, ~"md5", false}],
                                                                                    unwoven => [{witness_of_a_user, memory}]})),
    %% Without an end, it is those that could not be woven.
    ?assertEqual([{unwoven, [{shop, unknown}]}], ?R:reasons((header())#{unwoven => [shop]}, #{})).

what_was_asked_for_is_told_from_what_was_not_test() ->
    ?assertEqual([late, tracing_only], [Reason || Reason <- [late, tracing_only, no_code, {node, a@b}, {unwoven, [{m, memory}]}],
                                                  ?R:is_chosen(Reason)]).

options_are_complete_test() ->
    Modules = [{crypto, {otp, crypto}}, {public_key, {otp, public_key}}, {pubkey_ssh, {otp, public_key}},
               {far, {folder, "/far/ebin"}},
               {plain, {no_debug_info, "/plain/ebin/plain.beam", false}}, {named, {no_debug_info, "/named/named.beam", true}}],
    ?assertEqual(["--weave", "crypto", "--weave", "public_key", "--pa", "/far/ebin", "--pa", "/plain/ebin"],
                 ?R:options([{unwoven, Modules}])),
    Text = text(?R:reasons(header(), #{unwoven => Modules})),
    [?assertNotEqual(nomatch, string:find(Text, Part))
     || Part <- [~"--weave crypto --weave public_key", ~"--pa /far/ebin", ~"+debug_info",
                 ~"and record it again with --pa /plain/ebin"]].

%% A long list is for the recording, not for the reader of one line.
names_are_bounded_test() ->
    Modules = [{list_to_atom("shop_" ++ integer_to_list(N)), memory} || N <- lists:seq(1, 50)],
    ?assertNotEqual(nomatch, string:find(text([{unwoven, Modules}]), ~", 42 more")).

%% What a recording says is data: whatever it is, the answer is one, and no text has control characters.
anything_is_an_answer_test() ->
    [begin
         Reasons = ?R:reasons(Header, End),
         ?assertEqual(nomatch, re:run(text(Reasons), "[\\x00-\\x1f]"))
     end || Header <- [#{}, #{node => 7, code => x, digests => y, calls => z, unwoven => w},
                       (header())#{unwoven => [1, {}, 'a\nb']}],
            End <- [#{}, #{modules => x}, #{modules => [a | b], unwoven => [a | b], nodes => [a | b]},
                    #{unwoven => [x, {a, b}, {m, {folder, 7}}, {m2, {folder, "a\e[31m"}}, {m3, {otp, "x"}}, {1, memory}]},
                    #{nodes => [1, 'a\n@b'], modules => [{m, 1, false}, {2, 3, false}]}]].
