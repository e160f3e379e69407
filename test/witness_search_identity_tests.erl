-module(witness_search_identity_tests).
-moduledoc "What the references of a searched program say.".
-include_lib("eunit/include/eunit.hrl").

-define(I, witness_search_identity).

%% Where the numbers of processes are small, whatever the table of processes of the VM is that looks.
an_alias_has_its_owner_test() ->
    [?assertEqual({ok, ?I:pid(Id)}, witness_event_alias:owner(?I:alias(Number, Id)), {Number, Id})
     || Number <- [1, 1 bsl 18, 1 bsl 40], Id <- [1, 2, 1000, 1 bsl 18, 1 bsl 27]],
    Foreign = fun(Id) -> witness_event_alias:foreign_owner(?I:alias(Id, Id)) end,
    [?assertEqual({ok, ?I:pid(Id)}, Foreign(Id), Id) || Id <- [1, 2, 1000, 1 bsl 17 - 1]],
    [?assertEqual(none, Foreign(Id), Id) || Id <- [1 bsl 17, 1 bsl 18, 1 bsl 27]].

other_references_have_none_test() ->
    [?assertEqual(none, witness_event_alias:owner(Reference))
     || Reference <- [?I:reference(1), ?I:reference(1 bsl 40), make_ref()]].

all_are_different_test() ->
    Made = [?I:reference(Number) || Number <- lists:seq(1, 100)]
        ++ [?I:alias(Number, Id) || Number <- lists:seq(101, 150), Id <- [1, 2]],
    ?assertEqual(length(Made), length(lists:usort(Made))).
