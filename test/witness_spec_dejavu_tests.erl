-module(witness_spec_dejavu_tests).
-moduledoc "Properties of DejaVu over small logs, and how their translations read these.".

-include_lib("eunit/include/eunit.hrl").

%% Each violation binds the user and the file: a value for each user, and one for each file.
users_and_files_are_valuations_test() ->
    Access = ~"prop p : Forall u . Forall f . (access(u,f) -> ([login(u),logout(u)) & [open(f),close(f))))",
    Log = ~"""
        login,ann
        open,plan
        access,ann,plan
        access,bob,plan
        logout,ann
        access,ann,plan
        login,bob
        access,bob,plan
        close,plan
        access,bob,plan
        access,bob,list
        """,
    ?assertEqual({valuations, [4, 6, 10, 11]}, compare(Access, Log, [4, 6, 10, 11])),
    ?assertMatch({differs, _}, compare(Access, Log, [4, 6, 11])),
    Text = text(Access),
    ?assertMatch([_, _], [One || One <- string:split(Text, "(not ", all), string:find(One, ") since {") =/= nomatch]),
    ?assertNotEqual(nomatch, string:find(Text, "{~\"access\", Xu1, Xf2}, _} when (not V2(Xu1)); (not V4(Xf2))] ff")).

%% `q(y)` says nothing of `z`, so it cannot be the left side of a `since` of both.
sides_of_since_with_other_variables_are_valuations_test() ->
    Since = ~"prop p: Forall y . Forall z . (r(y,z) -> (!q(y) S p(z)))",
    Log = ~"""
        r,1,2
        p,2
        r,1,2
        r,1,3
        q,1
        r,1,2
        r,4,2
        p,2
        r,1,2
        """,
    ?assertEqual({valuations, [1, 4, 6]}, compare(Since, Log, [1, 4, 6])),
    Both = ~"prop p: Forall y . Forall z . (r(y,z) -> ((!q(y) & !s(z)) S (p(z) | t(y))))",
    Mixed = <<Log/binary, "\ns,2\nr,1,2\nt,1\nr,1,2\nr,4,2\n">>,
    ?assertEqual({valuations, [1, 4, 6, 11, 14]}, compare(Both, Mixed, [1, 4, 6, 11, 14])).

%% An action in the past may ask for fewer variables than it binds.
an_action_of_the_past_asks_for_a_part_of_its_variables_test() ->
    Opened = ~"prop p : Forall u . Forall f . (read(u,f) -> P (open(u,f) & (!logout(u) S login(u))))",
    Log = ~"""
        open,ann,plan
        read,ann,plan
        login,ann
        open,ann,plan
        logout,ann
        open,ann,list
        read,ann,plan
        read,ann,list
        """,
    ?assertEqual({valuations, [2, 8]}, compare(Opened, Log, [2, 8])).

%% What each event has all variables of is read by slices, too, and must be the same.
slices_are_compared_with_valuations_test() ->
    Log = ~"""
        dispatch,1,0
        success,1,4
        success,1,5
        dispatch,2,6
        fail,2,7
        success,2,7
        """,
    Text = ~"prop p : forall c . success(c) -> !fail(c) S[<=4] dispatch(c)",
    ?assertEqual({both, [3, 6]}, witness_spec_dejavu:compare(Text, witness_spec_dejavu:log(Log, true), [3, 6])).

%% The violating event does not bind the collection.
variables_that_the_violation_does_not_bind_are_no_valuations_test() ->
    ?assertEqual({repeated, [3]},
                 compare(~"prop p : Forall c . Forall i . !(next(i) & P (update(c) & P iterator(c,i)))", ~"iterator,1,2\nupdate,1\nnext,2", [3])).

%% Of the values of `t`, the one that no event has violates the property most often.
a_variable_that_only_ends_something_is_left_out_test() ->
    Ends = ~"prop p : Forall c . Forall t . [begin(c), done(c,t)) & c = \"a\" -> !error",
    ?assertEqual({whole, [3, 5]}, compare(Ends, ~"begin,b\nbegin,a\nerror\ndone,a,1\nerror", [3, 5])).

%% The transitive closure of an event, with its members in another order.
a_transitive_closure_is_a_parameter_test() ->
    Spawned = ~"""
        prop p : Forall x . Forall y . (report(y,x) -> spawned(x,y)) where
          spawned(x,y) := (Exists z . spawn(z,y) & @spawned(x,z)) | spawn(x,y) | @ spawned(x,y)
        """,
    Log = ~"""
        spawn,1,2
        report,2,1
        report,1,2
        spawn,2,3
        report,3,1
        report,3,4
        spawn,5,1
        report,1,5
        report,2,5
        """,
    ?assertEqual({again, [3, 6, 9]}, compare(Spawned, Log, [3, 6, 9])),
    ?assertMatch({outside, "the transitive closure of an event with two" ++ _}, compare(Spawned, <<Log/binary, "\nspawn,4,3\n">>, [3, 6, 9])).

compare(Text, Log, Expected) -> witness_spec_dejavu:compare(Text, witness_spec_dejavu:log(Log, false), Expected).

text(Specification) ->
    [Property] = witness_spec_dejavu_parse:properties(Specification),
    {ok, [Part]} = witness_spec_dejavu_text:translate(Property),
    iolist_to_binary(witness_spec_dejavu_text:text("dejavu", Part)).
