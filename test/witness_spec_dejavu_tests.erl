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
    ?assertEqual({ground, [3, 6, 9]}, compare(Spawned, <<Log/binary, "\nspawn,4,3\nreport,3,4\n">>, [3, 6, 9])).

%% The violating event is not about the village, and a rule joins two maps.
quantifiers_of_rules_have_the_values_of_the_log_test() ->
    Served = ~"""
        prop p : Forall x . (exists y . P road(x,y)) -> Exists y . linked(x,y) & P shop(y) where
          linked(x,y) := @linked(x,y) | road(x,y) | Exists z . @linked(x,z) & road(z,y)
        """,
    Log = ~"""
        shop,c
        road,b,c
        road,a,b
        road,d,b
        road,b,c
        road,a,b
        road,d,b
        """,
    ?assertEqual({ground, [3, 4]}, compare(Served, Log, [3, 4])),
    ?assertMatch({differs, _}, compare(Served, Log, [3])).

%% A variable has seen what the events with this variable had, at this place too.
values_seen_are_those_of_the_variable_test() ->
    Seen = ~"prop p : forall x . exists y . x < y & P a(x,y)",
    ?assertEqual({ground, [2, 3, 4, 6]}, compare(Seen, ~"b,9\na,2,1\na,3,1\na,2,7\na,3,7\na,7,1", [2, 3, 4, 6])),
    ?assertMatch({outside, _}, compare(~"prop p : Exists x . forall y . (y < x & a(y))", ~"a,1", [])).

%% `Z` needs an earlier place, and its distance is told by the events, which may go back.
since_an_earlier_place_is_the_time_of_a_loop_test() ->
    Again = ~"prop p : Forall m . dis(m) -> !(!suc(m) Z[<=5] dis(m))",
    Log = ~"""
        dis,1,10
        dis,2,11
        dis,1,15
        dis,1,21
        suc,1,22
        dis,1,23
        dis,2,3
        """,
    ?assertEqual({again, [3, 7]}, timed(Again, Log, [3, 7])),
    ?assertMatch({outside, _}, timed(~"prop p : Forall m . dis(m) -> !(!suc(m) Z dis(m))", Log, [])).

windows_follow_the_told_time_where_times_go_back_test() ->
    Done = ~"prop p : done -> P[<=5] begun",
    Log = ~"""
        begun,100
        done,105
        done,106
        done,50
        begun,40
        done,107
        done,44
        """,
    ?assertEqual({whole, [3, 6]}, timed(Done, Log, [3, 6])),
    ?assertMatch({outside, _}, timed(~"prop p : done -> !error S[<=5] begun", <<"error,99\n", Log/binary>>, [])).

%% Of the pairs of values only those can be violated for which there is each event, and a pair skips the events of others.
many_pairs_of_values_skip_what_does_not_concern_them_test() ->
    Fifo = ~"prop p : Forall x . Forall y . (exit(y) & P (enter(y) & @ P enter(x))) -> @ P exit(x)",
    Numbers = lists:seq(1, 2000),
    Log = iolist_to_binary([io_lib:format("enter,~b~n", [N]) || N <- Numbers] ++ ["exit,1\nexit,2\nexit,4\n"]),
    ?assertEqual({repeated, [2003]}, compare(Fifo, Log, [2003])).

timed(Text, Log, Expected) -> witness_spec_dejavu:compare(Text, witness_spec_dejavu:log(Log, true), Expected).

compare(Text, Log, Expected) -> witness_spec_dejavu:compare(Text, witness_spec_dejavu:log(Log, false), Expected).

text(Specification) ->
    [Property] = witness_spec_dejavu_parse:properties(Specification),
    {ok, [Part]} = witness_spec_dejavu_text:translate(Property),
    iolist_to_binary(witness_spec_dejavu_text:text("dejavu", Part)).
