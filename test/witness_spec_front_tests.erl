%% What the language accepts, construct by construct, and which errors it reports where something is wrong.
-module(witness_spec_front_tests).
-include_lib("eunit/include/eunit.hrl").

%% --- over and per: what is read -----------------------------------------------------------------

what_stands_in_over_is_a_list_of_actions_test_() ->
    [{Over, ?_assertEqual(Expected, over(Over))} || {Over, Expected} <- [
        {"_ ? a", ["_ ? a"]},
        {"_ ? a, P : Q ! M, P ** R, P * R", ["_ ? a", "P : Q ! M", "P ** R", "P * R"]},
        %% The comma of a fork or an init, also in braces.
        {"P -> C, m:f(A), _ ? a", ["P -> C, m:f(A)", "_ ? a"]},
        {"P --> C, _, _ ? a", ["P --> C, _", "_ ? a"]},
        {"C <- P, My.App.f(A), C <-- P, _", ["C <- P, My.App.f(A)", "C <-- P, _"]},
        {"{external, N} -> C, _, _ ? a", ["{external, N} -> C, _", "_ ? a"]},
        {"{_ <- _, _}, _ ? a", ["_ <- _, _", "_ ? a"]},
        {"{_ ? a}, {P : Q ! M}", ["_ ? a", "P : Q ! M"]},
        {"_ ? {a, b}", ["_ ? {a, b}"]},
        %% The arrow of a return is no birth.
        {"_ returns m:f/1 -> V, P -> C, m:f(A), _ calls m:f(A, {B}), _ returns My.App.f/0 -> [V], _ ? a",
         ["_ returns m:f/1 -> V", "P -> C, m:f(A)", "_ calls m:f(A, {B})", "_ returns My.App.f/0 -> [V]", "_ ? a"]},
        {"P -> C, _, {_ returns m:f/1 -> {ok, P}}, _ ? a", ["P -> C, _", "_ returns m:f/1 -> {ok, P}", "_ ? a"]},
        {"calls calls m:calls(returns), returns returns m:f/1 -> calls", ["calls calls m:calls(returns)",
                                                                         "returns returns m:f/1 -> calls"]},
        %% Guards.
        {"_ ? A when A > 1, A, _ calls m:f(), _ ? A when A, P returns m:f/1 -> A when A < 1, A, {P calls m:f(A)}, _ ? b",
         ["_ ? A when A > 1, A", "_ calls m:f()", "_ ? A when A", "P returns m:f/1 -> A when A < 1, A", "P calls m:f(A)", "_ ? b"]},
        {"_ ? A when A > 1, A < 3, _ ? b", ["_ ? A when A > 1, A < 3", "_ ? b"]},
        {"_ ? A when A > 1; A < 0, _ : _ ! b", ["_ ? A when A > 1; A < 0", "_ : _ ! b"]},
        {"P -> C, m:f(A) when A, A =/= 2, C <- P, _ when true, C ** R", ["P -> C, m:f(A) when A, A =/= 2",
                                                                       "C <- P, _ when true", "C ** R"]},
        {"_ ? A when {A, A} =:= A, A * 2 > 3, _ ? b", ["_ ? A when {A, A} =:= A, A * 2 > 3", "_ ? b"]},
        {"_ ? A when erlang:is_atom(A), A, _ : _ ! A", ["_ ? A when erlang:is_atom(A), A", "_ : _ ! A"]},
        {"_ ? A when A, {P * R}, _ ? b", ["_ ? A when A", "P * R", "_ ? b"]},
        {"{_ ? A when A}, {_ ? A when is_atom(A), A}, _ ? b", ["_ ? A when A", "_ ? A when is_atom(A), A", "_ ? b"]},
        %% The words of the clauses are names where an operand can stand.
        {"_ ? monitor", ["_ ? monitor"]},
        {"_ ? A when A =:= check, _ ? per", ["_ ? A when A =:= check", "_ ? per"]}]].

per_names_the_variables_of_slices_test() ->
    ?assertMatch(#{per := [], per_at := [], over := all}, property("with m:f(_) monitor ff.")),
    ?assertMatch(#{per := [], per_at := [], over := [_]}, property("with m:f(_) over _ ? a monitor ff.")),
    ?assertMatch(#{per := ['Id', 'N'], per_at := [{1, 17}, {2, 1}], over := [_], group := false},
                 property("with m:f(_) per Id,\nN over _ ? {Id, N} monitor ff.")),
    ?assertMatch(#{per := ['X'], group := true, over := [_, _]},
                 property("with m:f(A) when A > 1, m:g(A) group per X over _ ? X when X > 1, _ : _ ! X check ff.")),
    ?assertMatch(#{per := ['X'], over := [#{begins := true}, #{begins := false}, #{begins := true}]},
                 property("with m:f(_) per X over begin _ ? X when X > 1, {_ : _ ! X}, begin {_ ** X} check ff.")),
    ?assertMatch(#{over := [#{begins := false}, #{begins := true}]},
                 property("with m:f(_) per X over _ ? C when is_map(C), begin {_ ? {X, b}} check ff.")),
    ?assertMatch(#{per := [], over := all, dialect := none}, property("with m:f(_) none.")).

without_with_a_property_is_about_all_processes_test() ->
    ?assertMatch(#{name := undefined, all := false}, property("with m:f(_) per X over _ ? X check ff.")),
    ?assertMatch(#{name := undefined, all := true, group := true, per := ['X', 'Y'], per_at := [{1, 5}, {1, 8}],
                   over := [#{begins := true}, #{begins := false}],
                   signatures := [#{pattern := {var, _, '_'}, guard := []}]},
                 property("per X, Y over begin _ ? {X, Y}, _ ** _ check ff.")),
    ?assertMatch(#{name := ~"it", all := true, location := {1, 1}}, property("it: per X over _ ? X monitor ff.")),
    {[#{name := ~"it"}, #{name := ~"that", all := false}, #{name := undefined, all := true}], []} =
        read("it: per X over _ ? X check ff, that: with m:f(_) check ff, per X over _ ? X check ff."),
    %% An error in one property affects that property only.
    {[#{name := ~"c"}], [_]} = read("a: with m:f(_) check nothing. c: per X over _ ? X check ff.").

some_of_all_processes_test() ->
    ?assertMatch(#{all := true, among := all}, property("per X over _ ? X check ff.")),
    ?assertMatch(#{all := true, over := [_, _], among := [#{pattern := {tuple, _, _}}, #{guard := [_]}], text := ~"all m:f(_), m:g(N) when N > 1",
                   signatures := [#{pattern := {var, _, '_'}}], lets := [#{name := 'V'}]},
                 property("per X over _ ? X, _ : _ ! {X, among} when X > 1 among m:f(_), m:g(N) when N > 1 let V = count {_ ? _} check ff.")),
    ?assertMatch([#{signature := ~"all m:among(_)", names := [{'_', '_', '_'}]}], entries("per X over _ ? {X} among m:among(_) check ff.")).

a_compiled_property_tells_the_variables_of_its_slices_test() ->
    ?assertMatch([#{per := [<<"From">>, <<"N">>]}, #{per := []}], entries(
        "with m:f(_) per From, N over _ ? {From, N} monitor [_ ? _] ff.\nwith m:g(_) monitor [_ <- _, _] [_ ? _] ff.")).

faults_of_over_and_per_test_() ->
    each_is_reported_where_it_stands([
        {"with m:f(_) over monitor ff.", [{1, 18, syntax}]},
        {"with m:f(_) over", [{1, 17, syntax}]},
        {"with m:f(_) over _ ? a", [{1, 23, syntax}]},
        {"with m:f(_) over _ ? a, monitor ff.", [{1, 25, syntax}]},
        {"with m:f(_) over _ ? a _ ? b monitor ff.", [{1, 24, syntax}]},
        {"with m:f(_) over _ ? {a monitor ff.", [{1, 35, syntax}]},
        {"with m:f(_) over P -> C monitor ff.", [{1, 24, syntax}]},
        {"with m:f(_) over _ ? a none.", [{1, 24, syntax}]},
        {"with m:f(_) per X over _ ? X none.", [{1, 30, syntax}]},
        {"with m:f(_) over begin _ ? a monitor ff.", [{1, 18, syntax}]},
        {"with m:f(_) per X over _ ? X, begin _ ? a monitor ff.", [{1, 31, syntax}]},
        {"with m:f(_) per X over _ ? X, begin monitor ff.", [{1, 37, syntax}]},
        {"with m:f(_) per X none.", [{1, 13, syntax}]},
        {"with m:f(_) per X over _ ? X among m:f(_) check ff.", [{1, 30, syntax}]},
        {"with m:f(_) among m:f(_) check ff.", [{1, 13, syntax}]},
        {"per X among m:f(_) over _ ? X check ff.", [{1, 7, syntax}]},
        {"per X over _ ? X among check ff.", [{1, 24, syntax}]},
        {"per X over _ ? X among m:f(_) among m:f(_) check ff.", [{1, 31, syntax}]},
        {"per X over _ ? X let V = count {_ ? X} among m:f(_) check ff.", [{1, 40, syntax}]},
        {"with m:f(_) per X monitor ff.", [{1, 13, syntax}]},
        {"with m:f(_) per over _ ? a monitor ff.", [{1, 17, syntax}]},
        {"with m:f(_) per _ over _ ? a monitor ff.", [{1, 17, syntax}]},
        {"with m:f(_) per X, over _ ? X monitor ff.", [{1, 20, syntax}]},
        {"with m:f(_) per X Y over _ ? X monitor ff.", [{1, 13, syntax}]},
        {"with m:f(_) over _ ? X per X monitor ff.", [{1, 24, syntax}]},
        {"with m:f(_) over _ ? X group monitor ff.", [{1, 24, syntax}]},
        {"with m:f(_) group group monitor ff.", [{1, 19, syntax}]},
        {"per X monitor ff.", [{1, 1, syntax}]},
        {"per X group over _ ? {X} monitor ff.", [{1, 1, syntax}]},
        {"per X over _ ? {X} none.", [{1, 20, syntax}]},
        {"per X over _ ? {Y} monitor ff.", [{1, 5, unused_per}]},
        {"with m:f(_) over taken _ : _ ! stop monitor [_ : _ ! stop] ff.", [{1, 18, needless_receives}]},
        {"with m:f(_) over taken monitor ff.", [{1, 24, syntax}]},
        {"with m:f(_) over taken delivered _ ? a monitor ff.", [{1, 34, syntax}]},
        {"over _ ? a monitor ff.", [{1, 1, syntax}]}]).

faults_of_the_requests_of_replies_test_() ->
    each_is_reported_where_it_stands([
        {"with m:f(_) monitor [_ ? reply(_, _) to a] ff.", [{1, 38, needless_request}]},
        {"with m:f(_) monitor [_ : _ ! {reply, a} to a] ff.", [{1, 41, needless_request}]},
        {"with m:f(_) monitor [_ : _ ! call(_, _) to a] ff.", [{1, 41, needless_request}]},
        {"with m:f(_) monitor [_ ** normal to a] ff.", [{1, 34, needless_request}]},
        {"with m:f(_) monitor [_ -> _, m:f() to a] ff.", [{1, 36, needless_request}]},
        {"with m:f(_) over _ ? {a} to a monitor [_ ? _] ff.", [{1, 26, needless_request}]},
        {"with m:f(_) monitor [_ : _ ! reply(_, _) to] ff.", [{1, 44, syntax}]},
        {"with m:f(_) monitor [_ : _ ! reply(_, _) to when true] ff.", [{1, 45, syntax}]},
        {"with m:f(_) monitor [_ : _ ! reply(_, _) to a b] ff.", [{1, 47, syntax}]},
        {"with m:f(_) monitor [_ : _ ! reply(_, _) to a to b] ff.", [{1, 47, syntax}]},
        {"with m:f(_) check [_ : _ ! reply(_, _) at T to a] ff.", [{1, 45, syntax}]},
        {"with m:f(_) monitor [_ : _ ! reply(_, _) to call(_, a)] ff.", [{1, 45, wrapped_request}]},
        {"with m:f(_) over _ : _ ! reply(_, _) to monitor monitor ff.", []},
        {"with m:f(_) over _ : _ ! reply(_, _) to monitor ff.", [{1, 49, syntax}]},
        {"with m:f(_) monitor [_ : _ ! reply(_, _) to #{A := 1}] ff.", [{1, 47, unbound_variable}]},
        {"with m:f(_) monitor [_ : _ ! reply(_, _) to A when B] ff.", [{1, 52, unbound_variable}]},
        {"with m:f(_) per F over _ : _ ! reply(F, _) to F monitor [_ : _ ! _] ff.", [{1, 47, message_pattern}]},
        {"with m:f(_) per Id over _ : _ ! reply(_, Id) to x, _ : _ ! reply(_, _) to Id at T monitor [_ : _ ! _] ff.",
         [{1, 81, needless_time}]}]).

%% Behind an operand `to` is that of a reply; elsewhere it is an atom.
to_may_be_an_atom_test_() ->
    Trace = [{recv, p, undefined, {'$gen_call', {c, 1}, to}, 0}, {send, p, c, {1, ok}, 1}],
    [?_assertEqual({Formula, Verdict}, {Formula, judged(Formula, Trace)}) || {Formula, Verdict} <- [
        {"[_ ? _] [_ : _ ! reply({_, _}, ok) to to] ff", no},
        {"[_ ? _] [_ : _ ! reply({_, _}, ok) to A when A =:= to] ff", no},
        {"[_ ? _] [_ : _ ! reply({_, _}, ok) to too] ff", yes},
        {"[_ ? _] [{_ : _ ! reply({_, _}, ok) to to}] ff", no},
        {"[_ ? _] ([_ : _ ! to] ff and [_ : _ ! {1, _}] ff)", no},
        {"[_ ? _] [_ : to ! _] ff", yes},
        {"[_ ? call(_, to)] [_ : _ ! reply(_, _) to _] ff", yes},
        {"[_ ? _] [_ : _ ! reply({_, Tag}, _) to A = B at T when Tag =:= 1, A =:= B, T =:= 1] ff", no}]].

%% What the machine of a monitor says, which knows requests.
judged(Formula, Trace) ->
    {ok, #{module := Module} = Map, _} = compile(["with m:f(_) check ", Formula, "."]),
    {ok, Machine} = witness_monitor_machine:new(#{monitor => {Module, 1}, process => p, signature => {m, f, [1]}, explain => 1}),
    Judged = case witness_monitor_machine:run(Trace, Machine) of
        {[], {decided, #{verdict := Verdict}}} -> Verdict;
        {[], {ok, _}} -> open
    end,
    witness_spec:unload(Map),
    Judged.

a_pattern_that_ends_early_is_said_to_be_incomplete_test_() ->
    [{Action, fun() ->
        {error, {witness_spec, [#{text := Text}]}} = done(["with m:f(_) monitor [", Action, "] ff."]),
        ?assertEqual(<<"this pattern or guard is not complete">>, Text)
     end} || Action <- ["_ ? a, when b", "_ ? a when b,", "_ ? A = ", "_ ? a when b and", "_ ? call(A =, b)"]].

%% --- Elixir's names -------------------------------------------------------------------------

elixir_names_of_modules_are_those_of_the_code_test_() ->
    Module = 'Elixir.My.App_2',
    [{Source, ?_assertEqual([1], matching(Source, {Module, init, [1]}))} || Source <- [
        "with My.App_2.init(_) none.", "with My.App_2.init(1) when true none.",
        "with m:f(A) when A > 1, My.App_2.init(_) none.",
        "with My.App_2.F(_) none.", "with m:f(), My.App_2.init(A) group monitor [_ <- _, _] [_ ? _] ff."]]
    ++ [?_assertEqual([1], matching("with My.init() none.", {'Elixir.My', init, []})),
        ?_assertEqual([1], matching("with A.B.C.D.'valid?'() none.", {'Elixir.A.B.C.D', 'valid?', []})),
        ?_assertEqual(no, verdict("[_ -> _, My.App_2.init(N)] [C <- _, My.App_2.init(N)] ff",
                                  [{fork, p, c, {Module, init, [1]}, 0}, {init, c, p, {Module, init, [1]}, 0}]))].

faults_of_elixir_names_test_() ->
    each_is_reported_where_it_stands([
        {"with my.app.init(_) none.", [{1, 6, syntax}]},
        {"with My.App none.", [{1, 6, syntax}]},
        {"with My.App.init none.", [{1, 6, syntax}]},
        {"with My.App:init(_) none.", [{1, 6, syntax}]},
        {"with My.app.init(_) none.", [{1, 6, syntax}]},
        {"with My._App.init(_) none.", [{1, 9, syntax}]},
        {"with _.init(_) none.", [{1, 6, syntax}]},
        {"with My.App.init(_)x none.", [{1, 20, syntax}]},
        {["with ", lists:duplicate(70, "Abcd."), "f() none."], [{1, 6, syntax}]},
        {["with ", lists:join(", ", [["A", integer_to_list(N), ".B.f()"] || N <- lists:seq(1, 1001)]), " none."],
         [{undefined, undefined, too_many_names}]}]).

%% --- Messages of OTP -----------------------------------------------------------------------

-define(FROM, {client, [alias | ref]}).

each_pattern_of_otp_matches_its_message_test_() ->
    Ref = make_ref(),
    Matching = [{"call(F, R)", {'$gen_call', ?FROM, r}}, {"call({_, T}, {a, B})", {'$gen_call', ?FROM, {a, 1}}},
                {"cast(M)", {'$gen_cast', m}}, {"notify(E)", {notify, e}},
                {"sync_notify(F, E)", {self(), ?FROM, {sync_notify, e}}},
                {"call(F, H, R)", {self(), ?FROM, {call, h, r}}},
                {"reply(_, R)", {Ref, r}}, {"reply(_, R)", {[alias | Ref], r}},
                {"reply(_, R)", {[[alias | Ref] | label], r}}, {"reply({_, T}, R)", {Ref, r}},
                {"info(M)", m}, {"info(_)", {Ref, r}}, {"info({ok, _} = M)", {ok, 1}},
                {"info(<<A, _/binary>>)", <<"ab">>},
                {"call(F, R) when R =:= r; R =:= s", {'$gen_call', ?FROM, s}},
                {"info(M) when M =:= r; M =:= s", s}, {"reply(_, R) when R; R =:= s", {Ref, s}}],
    Other = [{"call(F, R)", {'$gen_cast', {?FROM, r}}}, {"call(F, F)", {'$gen_call', ?FROM, r}}, {"cast(M)", {cast, m}},
             {"reply(_, R)", {not_a_tag, r}}, {"reply(_, R)", {"string", r}}, {"reply(_, R)", {["nested"], r}},
             {"reply(_, R)", {[], r}}, {"reply(_, R)", {[[] | Ref], r}}, {"reply(_, R)", {{alias, Ref}, r}},
             {"reply(_, R)", {Ref, r, s}}, {"reply(_, R) when R; R =:= s", {Ref, r}},
             {"reply(_, R) when true; true", {a, r}},
             {"info(M)", {'$gen_cast', m}}, {"info(_)", {[alias | Ref], r}}, {"info({_, R})", {[[alias | Ref] | l], r}},
             {"info({_, _})", {notify, e}}, {"info(M) when true; true", {notify, e}}, {"notify(E)", {notify, e, e}}],
    [{Pattern, ?_assertEqual(Expected, verdict(["[", Action, Pattern, "] ff"], [{Kind, p, q, Message, 0}]))} ||
        {Expected, Cases} <- [{no, Matching}, {yes, Other}], {Pattern, Message} <- Cases,
        {Action, Kind} <- [{"_ ? ", recv}, {"_ : _ ! ", send}]].

%% The variable of the signature, of an action in front, of `per`.
a_reply_can_be_told_by_what_is_bound_test() ->
    Reply = fun(Tag) -> {send, p, q, {Tag, r}, 0} end,
    Call = {recv, p, q, {'$gen_call', {q, tag}, r}, 0},
    Behind = "[_ ? call(F, _)] [_ : _ ! reply(F, R) when R =:= r] ff",
    ?assertEqual(no, verdict(Behind, [Call, Reply(tag)])),
    ?assertEqual(yes, verdict(Behind, [Call, Reply(other)])),
    ?assertEqual(no, verdict("with m:f(F)", {m, f, [{q, tag}]}, "[_ : _ ! reply(F, _)] ff", [Reply(tag)])),
    ?assertEqual(yes, verdict("with m:f(F)", {m, f, [not_from]}, "[_ : _ ! reply(F, _)] ff", [Reply(tag)])),
    %% Two replies, one behind the other, of different calls.
    ?assertEqual(no, verdict("[_ : _ ! reply(_, _)] [_ : _ ! reply(_, _)] ff", [Reply(make_ref()), Reply(make_ref())])).

%% The tag is the key; the rest of the language sees an ordinary variable of `per`.
a_call_can_be_the_key_of_slices_test() ->
    Source = "with m:f(_) per F over _ ? call(F, _), _ : _ ! reply(F, _), _ : _ ! call(F, _, _) monitor "
             "[_ ? call(F, A)] [_ : _ ! reply(F, R) when R =/= A] ff.",
    {ok, #{module := M, entries := [#{per := [<<"F">>]}]} = Map, _} = compile(Source),
    {slices, Filter} = M:init({m, f, [1]}, p, 1),
    Ref = make_ref(),
    Call = {recv, p, q, {'$gen_call', {q, Ref}, a}, 0},
    Reply = {send, p, q, {Ref, b}, 0},
    ?assertEqual({slice, {Ref}}, M:slice(Call, Filter)),
    ?assertEqual({slice, {Ref}}, M:slice(Reply, Filter)),
    ?assertEqual({slice, {Ref}}, M:slice({send, p, q, {p, {p, Ref}, {call, h, r}}, 0}, Filter)),
    ?assertEqual(skip, M:slice({send, p, q, {ok, b}, 0}, Filter)),
    ?assertEqual(no, run(M, M:instance({Ref}, Filter), [Call, Reply])),
    ?assertEqual(yes, run(M, M:instance({Ref}, Filter), [Call, setelement(4, Reply, {Ref, a})])),
    ok = witness_spec:unload(Map).

faults_of_messages_of_otp_test_() ->
    Keyed = "with m:f(_) per F over _ ? call(F, _), _:_ ! reply(F, _) monitor ",
    each_is_reported_where_it_stands([
        {"with m:f(_) monitor [_ ? call(F)] ff.", [{1, 26, message_pattern}]},
        {"with m:f(_) monitor [_ ? cast()] ff.", [{1, 26, message_pattern}]},
        {"with m:f(_) monitor [_ ? call(A, B, C, D)] ff.", [{1, 26, message_pattern}]},
        {"with m:f(_) monitor [_ ? reply(_)] ff.", [{1, 26, message_pattern}]},
        {"with m:f(_) monitor [_ ? info(A, B)] ff.", [{1, 26, message_pattern}]},
        {"with m:f(_) monitor [_ ? notify(A, B)] ff.", [{1, 26, message_pattern}]},
        {"with m:f(_) monitor [_ ? sync_notify(A)] ff.", [{1, 26, message_pattern}]},
        {"with m:f(_) monitor [_ ? cast(,)] ff.", [{1, 31, syntax}]},
        {"with m:f(_) monitor [_ ? cast(foo())] ff.", [{1, 31, not_a_pattern}]},
        {"with m:f(_) monitor [_ ? cast(M) M] ff.", [{1, 34, syntax}]},
        {"with m:f(_) monitor [_ ? cast(M] ff.", [{1, 32, syntax}]},
        %% Whole messages only.
        {"with m:f(_) monitor [_ ? {x, cast(M)}] ff.", [{1, 30, not_a_pattern}]},
        {"with m:f(_) monitor [_ ? cast(M) = N] ff.", [{1, 26, not_a_pattern}]},
        {"with m:f(_) monitor [_ ? cast(cast(M))] ff.", [{1, 31, not_a_pattern}]},
        {"with m:f(_) monitor [cast(M) ? a] ff.", [{1, 22, not_a_pattern}]},
        {"with m:f(_) monitor [_ : cast(M) ! a] ff.", [{1, 26, not_a_pattern}]},
        {"with m:f(_) monitor [_ ** info(M)] ff.", [{1, 27, not_a_pattern}]},
        {"with m:f(cast(_)) none.", [{1, 10, not_a_pattern}]},
        %% The client that is answered.
        {"with m:f(_) monitor [_ : _ ! reply(F, R)] ff.", [{1, 36, unbound_variable}]},
        {"with m:f(F), m:g() monitor [_ : _ ! reply(F, R)] ff.", [{1, 43, unbound_variable}]},
        {"with m:f(_) monitor and([_ ? call(F, _)] ff, [_ : _ ! reply(F, R)] ff).", [{1, 61, unbound_variable}]},
        {"with m:f(_) over _ ? call(F, _), _:_ ! reply(F, _) monitor [_ ? a] ff.", [{1, 46, unbound_variable}]},
        {"with m:f(_) monitor [_ : _ ! reply({P, T}, R)] ff.", [{1, 36, message_pattern}]},
        {"with m:f(_) monitor [_ : _ ! reply({_, T} = F, R)] ff.", [{1, 36, message_pattern}]},
        {"with m:f(_) monitor [_ : _ ! reply(a, R)] ff.", [{1, 36, message_pattern}]},
        %% Messages that are no info.
        {"with m:f(_) monitor [_ ? info({notify, E})] ff.", [{1, 31, message_pattern}]},
        {"with m:f(_) monitor [_ ? info({'$gen_call', F, R})] ff.", [{1, 31, message_pattern}]},
        {"with m:f(_) monitor [_ ? info({'$gen_cast', M})] ff.", [{1, 31, message_pattern}]},
        {"with m:f(_) monitor [_ ? info({system, F, R})] ff.", [{1, 31, message_pattern}]},
        %% A variable that represents a call.
        {[Keyed, "[_ ? call(F, R) when element(1, F) =:= R] ff."], [{1, 98, message_pattern}]},
        {[Keyed, "[F ? call(F, R)] ff."], [{1, 67, message_pattern}]},
        {[Keyed, "[_ ? call(_, F)] ff."], [{1, 79, message_pattern}]},
        {[Keyed, "[_ ? {'$gen_call', F, _}] ff."], [{1, 85, message_pattern}]},
        {"with m:f(_) per F over _ ? {'$gen_call', F, _}, _:_ ! reply(F, _) monitor [_ ? a] ff.",
         [{1, 42, message_pattern}]}]).

what_takes_the_compiler_long_is_bounded_test_() ->
    Infos = fun(Count) -> ["with m:f(_) monitor [_ ? info({a, _})] ff and ",
                           lists:join(" and ", lists:duplicate(Count, "[_ ? info(_)] ff")), "."] end,
    Over = fun(Count) -> ["with m:f(_) over _ ? a", lists:duplicate(Count - 1, ", _ ? b"), " monitor [_ ? a] ff."] end,
    [?_assertMatch([{1, _, too_large}], errors(done(Infos(201)))),
     ?_assertMatch([{1, 13, too_large}], errors(done(Over(1001)))),
     ?_assertMatch([], errors(done(Over(1000)))),
     ?_assertMatch([{2, _, too_large}], errors(done([Infos(1), $\n, Infos(200)])))].

%% --- Records -----------------------------------------------------------------------------------

-define(RECORDS, "-record(r, {a, b = {1, x} :: {integer(), t()}, c :: list()}).\n"
                 "-record(s, {d}).\n-record(none, {}).\n").

records_are_tuples_test_() ->
    [{Action, ?_assertEqual(Expected, verdict(?RECORDS "with m:f(_)", {m, f, [1]}, ["[_ ? ", Action, "] ff"],
                                              [{recv, p, q, Message, 0}]))} ||
     {Expected, Action, Message} <- [
        {no, "#r{}", {r, 1, 2, 3}}, {yes, "#r{}", {r, 1, 2}}, {yes, "#r{}", {s, 1, 2, 3}}, {no, "#none{}", {none}},
        {no, "#r{c = 3, a = 1}", {r, 1, 2, 3}}, {yes, "#r{c = 3, a = 1}", {r, 3, 2, 1}},
        {no, "#r{a = A, c = A}", {r, 1, 2, 1}}, {yes, "#r{a = A, c = A}", {r, 1, 2, 3}},
        {no, "#r{b = 2, _ = X}", {r, 1, 2, 1}}, {yes, "#r{b = 2, _ = X}", {r, 1, 2, 3}},
        {no, "#r{a = 1, b = 2, c = 3, _ = 4}", {r, 1, 2, 3}},
        {no, "#r{a = #s{d = #r{_ = 0}}}", {r, {s, {r, 0, 0, 0}}, 2, 3}},
        {no, "{tag, [#s{} = S | _]} when S =:= {s, 1}", {tag, [{s, 1}, 2]}},
        {no, "#{#r.c := 1}", #{4 => 1}}, {no, "#r.b", 3}, {no, "cast(#s{d = 1})", {'$gen_cast', {s, 1}}},
        {no, "R when R#r.c =:= 3", {r, 1, 2, 3}}, {yes, "R when R#r.c =:= 3", {s, 1, 2, 3}},
        {yes, "R when R#r.c =:= 3", {r, 1, 2, 3, 4}}, {yes, "R when not (R#r.c =:= 4)", {s, 1, 2, 3}},
        {no, "R when R#r.c =:= 3 orelse is_atom(R)", a}, {no, "R when R#r.c =:= 3; is_atom(R)", a},
        {no, "R when is_atom(R) orelse R#r.a#s.d > 1", {r, {s, 2}, 2, 3}},
        {no, "R when R#r.a#s.d > 1 orelse R#r.b =:= 2", {r, x, 2, 3}},
        {no, "{A, B} when A#s.d < B#s.d, A#s.d > 0", {{s, 1}, {s, 2}}},
        {no, "R when element(#r.b, R) =:= 2", {x, 1, 2}},
        {no, "R when is_record(R, r)", {r, 1, 2, 3}}, {yes, "R when is_record(R, r)", {r, 1, 2}},
        {no, "R when erlang:is_record(R, s), R#s.d", {s, true}}, {no, "R when is_record(R, x, 2)", {x, 1}}]]
    ++ [?_assertEqual([1], matching(?RECORDS "with m:f(#s{d = D}) when D > 1 none.", {m, f, [{s, 2}]})),
        ?_assertEqual([], matching(?RECORDS "with m:f(S) when S#s.d > 1 none.", {m, f, [{s, 1}]})),
        ?_assertEqual(no, verdict(?RECORDS "with m:f(_) over _ ? #s{}", {m, f, [1]}, "[_ ? #s{d = 1}] ff",
                                  [{recv, p, q, {s, 1}, 0}]))].

faults_of_records_test_() ->
    With = "\nwith m:f(_) monitor ",
    each_is_reported_where_it_stands([
        {[?RECORDS, "with m:f(_) monitor [_ ? #x{}] ff."], [{4, 26, unknown_record}]},
        {[?RECORDS, "with m:f(_) monitor [_ ? #r{x = 1}] ff."], [{4, 29, unknown_field}]},
        {[?RECORDS, "with m:f(_) monitor [_ ? #r{a = 1, b = 2, a = 3}] ff."], [{4, 43, duplicate_field}]},
        {[?RECORDS, "with m:f(_) monitor [_ ? #r{_ = 1, _ = 2}] ff."], [{4, 36, duplicate_field}]},
        {[?RECORDS, "with m:f(_) monitor [_ ? #r{A = 1}] ff."], [{4, 29, not_a_pattern}]},
        {[?RECORDS, "with m:f(_) monitor [_ ? #r.x] ff."], [{4, 29, unknown_field}]},
        {[?RECORDS, "with m:f(_) monitor [_ ? R#r.a] ff."], [{4, 27, not_a_pattern}]},
        {[?RECORDS, "with m:f(_) monitor [_ ? R#r{a = 1}] ff."], [{4, 27, not_a_pattern}]},
        {[?RECORDS, "with m:f(_) monitor [_ ? R when R#x.a] ff."], [{4, 34, unknown_record}]},
        {[?RECORDS, "with m:f(_) monitor [_ ? R when R#r.x] ff."], [{4, 37, unknown_field}]},
        {[?RECORDS, "with m:f(_) monitor [_ ? R when is_record(R, x)] ff."], [{4, 46, unknown_record}]},
        {[?RECORDS, "with m:f(_) monitor [_ ? R when R =:= #s{d = 1}] ff."], [{4, 39, not_a_guard}]},
        {[?RECORDS, "with m:f(_) monitor [_ ? R when R#s{d = 1} =:= R] ff."], [{4, 34, not_a_guard}]},
        {[?RECORDS, "with m:f(_) monitor [_ ? #{#s{} := 1}] ff."], [{4, 28, not_a_guard}]},
        {[?RECORDS, "with m:f(#x{}) none.\nwith m:f() over _ ? #y{} monitor [_ ? #z{}] ff."],
         [{4, 10, unknown_record}, {5, 21, unknown_record}]},
        %% Declarations.
        {["-record(r, {a, b, a}).", With, "[_ ? a] ff."], [{1, 19, duplicate_field}]},
        {["-record(r, {a}).\n-record(r, {a}).", With, "[_ ? a] ff."], [{2, 1, duplicate_record}]},
        {["-record(r, [a]).", With, "[_ ? a] ff."], [{1, 12, syntax}]},
        {["-record(R, {a}).", With, "[_ ? a] ff."], [{1, 9, syntax}]},
        {["-record(r, {1}).", With, "[_ ? a] ff."], [{1, 13, syntax}]},
        {["-record(r, a).", With, "[_ ? a] ff."], [{1, 12, syntax}]},
        {"-record(r, {a})", [{1, 16, syntax}]},
        {["-define(x, 1).", With, "[_ ? a] ff."], [{1, 2, syntax}]},
        {["-include(x).", With, "[_ ? a] ff."], [{1, 2, syntax}]},
        {["-include_lib(\"x/y.hrl\").", With, "[_ ? a] ff."], [{1, 2, not_supported}]},
        {"with m:f(_) none.\n-record(r, {a}).\nwith m:f(_) monitor [_ ? #r{}] ff.",
         [{2, 1, syntax}, {3, 26, unknown_record}]},
        %% A wrong declaration is one error, not one for each use; the others are found.
        {["-record(r, {1}).\n-record(s, {2}).", With, "[_ ? #r{}] [_ ? {] ff."],
         [{1, 13, syntax}, {2, 13, syntax}, {3, 38, syntax}]},
        {"-record(r, {a}).", [{undefined, undefined, empty}]}]).

records_are_bounded_test_() ->
    Names = lists:join(",", [["f", integer_to_list(N)] || N <- lists:seq(1, 100)]),
    Declared = ["-record(r, {", Names, "}).\n"],
    Nested = fun Nest(0) -> "1"; Nest(N) -> ["#r{_ = ", Nest(N - 1), "}"] end,
    Chain = ["R", lists:duplicate(800, "#r.f1")],
    [?_assertMatch({ok, _, _}, done([Declared, "with m:f(_) monitor [_ <- _, _] [_ ? ", Nested(1), "] ff."]))
     | [?_assertMatch({error, {witness_spec, [#{code := too_large, line := 2}]}},
                      done([Declared, "with m:f(_) monitor ", Formula, "."])) ||
        Formula <- [["[_ ? ", Nested(2), "] ff"], ["[_ ? ", Nested(500), "] ff"],
                    [lists:duplicate(1500, "[_ ? #r{}] "), "ff"], ["[_ ? R when ", Chain, " =:= 1] ff"]]]].

%% --- Included files ------------------------------------------------------------------------------

included_files_declare_records_test_() ->
    Uses = fun(Record) -> ["with m:f(_) monitor [_ <- _, _] [_ ? #", Record, "{}] ff."] end,
    in_folders([
        {"a.hrl", "%% A comment.\n-ifndef(A).\n-define(A, true).\n"
                  "-record(a, {x, y = ?DEFAULT(1, 2) :: ?TYPE, z = fun() -> a, b end}).\n"
                  "-type t() :: #a{}.\n-spec f() -> ok.\nf() -> #other{}.\n-endif.\n"},
        {"nested.hrl", "-include(\"sub/deep.hrl\"). -include(\"a.hrl\")."},
        {"sub/deep.hrl", "-include(\"deeper.hrl\").\n-record(deep, {x :: #deeper{}})."},
        {"sub/deeper.hrl", "-record(deeper, {x})."},
        {"loop.hrl", "-include(\"loop.hrl\"). -include(\"pool.hrl\"). -record(loop, {x})."},
        {"pool.hrl", "-include(\"loop.hrl\"). -include(\"./pool.hrl\"). -record(pool, {x})."},
        {"macros.hrl", "-record(ok, {x}). -record(fields, {x, ?MORE}). -record(?NAME, {x}). -record(bad, {x, 1})."
                       " -record(two, {x}). -record(two, {y}). -record(twice, {x, x}). -record(undone, {x"},
        {"outside.hrl", "-include(\"../x.hrl\"). -include(\"missing.hrl\"). -include(\"/etc/hosts\")."
                        " -record(out, {x})."},
        {"../declared/other.hrl", "-record(other, {x}). -include(\"a.hrl\")."},
        {"latin1.hrl", <<"-record(latin1, {x}). % ", 233>>},
        {"open.hrl", "-record(a, {x}). 'open"},
        {"large.hrl", lists:duplicate(1_000_001, "%")},
        {"half1.hrl", lists:duplicate(600_000, "%")},
        {"half2.hrl", lists:duplicate(600_000, "%")},
        {"names1.hrl", [["-export(a", integer_to_list(N), ").\n"] || N <- lists:seq(1, 6000)]},
        {"names2.hrl", [["-export(b", integer_to_list(N), ").\n"] || N <- lists:seq(1, 6000)]}],
        [{Name, fun(Compile) -> ?assertEqual(Expected, Compile(Source)) end} || {Name, Expected, Source} <- [
            {"one file", [], ["-include(\"a.hrl\").\n", Uses("a")]},
            {"a file of a file", [], ["-include(\"nested.hrl\").\n", Uses("deeper"), "\n", Uses("a")]},
            {"files that include each other", [], ["-include(\"loop.hrl\").\n", Uses("pool"), "\n", Uses("loop")]},
            {"a declared folder", [], ["-include(\"other.hrl\").\n", Uses("other")]},
            {"the same file twice", [], ["-include(\"a.hrl\"). -include(\"./a.hrl\").\n", Uses("a")]},
            {"what cannot be read and is not needed", [],
             ["-include(\"macros.hrl\"). -include(\"outside.hrl\").\n", Uses("ok"), "\n", Uses("out")]},
            {"the same record", [], ["-include(\"sub/deeper.hrl\"). -include(\"sub/deep.hrl\").\n", Uses("deeper")]},
            {"a field that is a macro", [{2, 38, unknown_record}], ["-include(\"macros.hrl\").\n", Uses("fields")]},
            {"a record that is no record", [{2, 38, unknown_record}], ["-include(\"macros.hrl\").\n", Uses("bad")]},
            {"a record in two ways", [{2, 38, unknown_record}], ["-include(\"macros.hrl\").\n", Uses("two")]},
            {"a record with a field twice", [{2, 38, unknown_record}], ["-include(\"macros.hrl\").\n", Uses("twice")]},
            {"a record that does not end", [{2, 38, unknown_record}], ["-include(\"macros.hrl\").\n", Uses("undone")]},
            {"a record of what was left out", [{2, 38, unknown_record}], ["-include(\"outside.hrl\").\n", Uses("x")]},
            {"a record of the specification", [{2, 1, duplicate_record}],
             ["-include(\"a.hrl\").\n-record(a, {x}).\n", Uses("a")]},
            {"another one than the specification's", [{2, 10, duplicate_record}],
             ["-record(a, {x}).\n-include(\"a.hrl\").\n", Uses("a")]},
            {"a missing file", [{1, 10, include}], ["-include(\"missing.hrl\").\n", Uses("a")]},
            {"a folder", [{1, 10, include}], ["-include(\"sub\").\n", Uses("a")]},
            {"no name", [{1, 10, include}], ["-include(\"\").\n", Uses("a")]},
            {"an absolute path", [{1, 10, include}], ["-include(\"/etc/hosts\").\n", Uses("a")]},
            {"a path upwards", [{1, 10, include}], ["-include(\"../declared/other.hrl\").\n", Uses("other")]},
            {"a path down and upwards", [{1, 10, include}], ["-include(\"sub/../a.hrl\").\n", Uses("a")]},
            {"a device", [{1, 10, include}], ["-include(\"\\0\").\n", Uses("a")]},
            {"what is not UTF-8", [{1, 10, not_utf8}], ["-include(\"latin1.hrl\").\n", Uses("latin1")]},
            {"what cannot be scanned", [{1, 10, syntax}], ["-include(\"open.hrl\").\n", Uses("a")]},
            {"too large", [{1, 10, too_large}], ["-include(\"large.hrl\").\n", Uses("a")]},
            {"together too large", [{2, 10, too_large}],
             ["-include(\"half1.hrl\").\n-include(\"half2.hrl\").\n", Uses("a")]},
            {"together too many names", [{2, 10, too_many_names}],
             ["-include(\"names1.hrl\").\n-include(\"names2.hrl\").\n", Uses("a")]}]]).

too_many_files_are_refused_test_() ->
    Name = fun(N) -> [integer_to_list(N), ".hrl"] end,
    in_folders([{Name(N), ["-include(\"", Name(N + 1), "\")."]} || N <- lists:seq(1, 101)],
               [{"too many", fun(Compile) ->
                    ?assertEqual([{1, 10, too_large}], Compile("-include(\"1.hrl\").\nwith m:f(_) none.")),
                    ?assertEqual([], Compile("-include(\"2.hrl\").\nwith m:f(_) none."))
                 end}]).

%% Names that only a refused file has never become atoms.
an_included_file_makes_no_atoms_without_bound_test_() ->
    Records = [["-record(witness_front_", integer_to_list(N), ", {x}).\n"] || N <- lists:seq(1, 12_000)],
    in_folders([{"many.hrl", Records}],
               [{"atoms", fun(Compile) ->
                    Compile("-include(\"missing.hrl\").\nwith m:f(_) none."),
                    Atoms = erlang:system_info(atom_count),
                    ?assertEqual([{1, 10, too_many_names}], Compile("-include(\"many.hrl\").\nwith m:f(_) none.")),
                    ?assert(erlang:system_info(atom_count) - Atoms < 50)
                end}]).

what_is_not_in_a_file_has_no_folder_of_its_own_test() ->
    {error, {witness_spec, [#{code := include, hint := Hint}]}} = done("-include(\"rebar.config\").\nwith m:f(_) none."),
    ?assertEqual(<<"there is no folder to look in; the option `include` declares some">>, Hint).

%% --- Reserved variables ----------------------------------------------------------------------------

reserved_variables_are_refused_wherever_they_stand_test_() ->
    each_is_reported_where_it_stands([
        {"with m:f(_@1) none.", [{1, 10, reserved_variable}]},
        {"with m:f(_) monitor [_@ ? a] ff.", [{1, 22, reserved_variable}]},
        {"with m:f(_) monitor max _@X. [_ ? a] _@X.", [{1, 25, reserved_variable}, {1, 38, reserved_variable}]},
        {"with m:f(_) per _@1 over _ ? _@1 monitor [_ ? a] ff.",
         [{1, 17, reserved_variable}, {1, 30, reserved_variable}]},
        {"-record(r, {a = _@1}).\nwith m:f(_a@1) none.", []}]).

%% --- Parameters ------------------------------------------------------------------------------------

mistakes_in_parameters_are_reported_where_they_stand_test_() ->
    each_is_reported_where_it_stands([
        {"with m:f(_) over _ ? _ check max X(N = 0).([_ ? a] X(N + 1) and <_ ? N> tt).", []},
        {"with m:f(_) over _ ? _ check max X(N = 0, M = N).([_ ? a] X(M, N) and <_ ? N> tt).", []},
        {"with m:f(_) over _ ? _ check min(X(N = #{}). <_ ? A> X(N#{A => maps:get(A, N, 0) + 1}) or <_ ? N> tt).", []},
        {"with m:f(N) over _ ? _ monitor max X(N = 0).[_ ? {N}] X(N).", [{1, 38, bound_parameter}]},
        {"with m:f(_) over _ ? _ monitor max X(N = 0, N = 1).[_ ? {N}] X(N, N).", [{1, 45, bound_parameter}]},
        {"with m:f(_) over _ ? _ monitor [_ ? N] max X(N = 0).[_ ? {N}] X(N).", [{1, 46, bound_parameter}]},
        {"with m:f(_) over _ ? _ monitor max X(N = M).[_ ? {N}] X(N).", [{1, 42, unbound_variable}]},
        {"with m:f(_) over _ ? _ monitor max X(N = M, M = 0).[_ ? {N}] X(N, M).", [{1, 42, unbound_variable}]},
        {"with m:f(_) over _ ? _ monitor max X(N = 0).[_ ? {N}] X(M).", [{1, 57, unbound_variable}]},
        {"with m:f(_) over _ ? _ monitor max X(N = 0).[_ ? {N}] X.", [{1, 55, wrong_parameters}]},
        {"with m:f(_) over _ ? _ monitor max X(N = 0).[_ ? {N}] X(1, 2).", [{1, 55, wrong_parameters}]},
        {"with m:f(_) over _ ? _ monitor max X. [_ ? _] X(1).", [{1, 47, wrong_parameters}]},
        {"with m:f(_) over _ ? _ monitor max X(N = 0).X(N).", [{1, 45, unguarded_recursion}]},
        {"with m:f(_) over _ ? _ monitor max X(N).[_ ? {N}] X(N).", [{1, 38, syntax}]},
        {"with m:f(_) over _ ? _ monitor max X(n = 0).[_ ? a] X(1).", [{1, 38, syntax}]},
        {"with m:f(_) over _ ? _ monitor max X().[_ ? a] X.", [{1, 37, syntax}]},
        {"with m:f(_) over _ ? _ monitor max X(N =).[_ ? a] X(N).", [{1, 41, syntax}]},
        {"with m:f(_) over _ ? _ monitor max X(N = 0) [_ ? a] X(N).", [{1, 45, syntax}]},
        {"with m:f(_) over _ ? _ monitor max X(N = 0).[_ ? {N}] X(lists:seq(1, N)).", [{1, 57, not_a_value}]},
        {"with m:f(_) over _ ? _ monitor max X(N = 0).[_ ? {N}] X(self() ! N).", [{1, 64, not_a_value}]},
        {"with m:f(_) over _ ? _ monitor max X(N = 0).[_ ? {N}] X(f(N)).", [{1, 57, not_a_value}]},
        {"with m:f(_) over _ ? _ monitor max X(N = 0).[_ ? {N}] X(N#r.f).", [{1, 58, not_a_value}]},
        {"with m:f(_) over _ ? _ monitor max X(N = 0).[_ ? {N}] X(_).", [{1, 57, not_a_value}]},
        %% The next property is still read.
        {"with m:f(_) over _ ? _ monitor max X(N = 0).[_ ? {N}] Y(N).\nwith m:f(_) none", [{1, 55, unbound_recursion_variable}, {2, 17, syntax}]}]).

%% What cannot be computed, and what is too large, leaves the formula open, unless the rest decides it.
values_have_bounds_test_() ->
    Events = [{recv, p, q, N, 0} || N <- [1, 2, three, 4]],
    Source = fun(Formula) -> ["with m:f(_) check ", Formula, "."] end,
    [{Formula, ?_assertEqual(Expected, with_options(Source(Formula), Options, Events))} || {Formula, Options, Expected} <- [
        {"max X(N = 0).[_ ? A] X(N + A)", #{}, inconclusive},
        {"max X(N = 0).([_ ? A when is_integer(A)] X(N + A) and [_ ? A when is_atom(A)] X(N))", #{}, open},
        {"max X(N = 0).([_ ? A] X(N + A) and [_ ? three] ff)", #{}, no},
        {"max X(N = 0).([_ ? A] X(N + A) or <_ ? three> tt)", #{}, yes},
        {"max X(N = hd([])).[_ ? {N}] X(N)", #{}, inconclusive},
        {"[_ ? _] max X(N = hd([])).[_ ? {N}] X(N)", #{}, inconclusive},
        {"max X(N = []).[_ ? A] X([A | N])", #{}, open},
        {"max X(N = []).[_ ? A] X([A | N])", #{max_state => 9}, inconclusive},
        {"max X(N = []).[_ ? A] X([A | N])", #{max_state => 11}, open}]].

what_a_parameter_lacks_is_said_test() ->
    {ok, #{module := Module} = Map, _} = compile("with m:f(_) over _ ? _ check\n max X(N = 0).[_ ? A] X(N + A)."),
    {ok, State, _} = Module:init({m, f, [1]}, p, 1),
    {verdict, inconclusive, Info} = Module:handle_event({recv, p, q, a, 0}, State),
    ?assertMatch(#{reason := argument, line := 2, column := 23}, Info),
    ?assertEqual(~"the value of a parameter or `let` could not be computed (line 2, column 23)",
                 witness_text_verdict:reason(#{reason => undefined, info => Info})),
    witness_spec:unload(Map).

%% --- Time ------------------------------------------------------------------------------------------

mistakes_about_time_are_reported_where_they_stand_test_() ->
    each_is_reported_where_it_stands([
        {"with m:f(_) over _ ? _ check [_ ? a at T] within 1.5 s <{_ ? b at U when U > T + 250 ms}> tt.", []},
        {"with m:f(_) over _ ? _ check during 1 h [_ ? {at, 2 d} at T] ff and within 5_000 ns <_ ? at> tt.", []},
        {"with m:f(5 s) over _ ? {7 d} check max X(N = 2 min). [_ ? {N} at T] (X(T + 1 us) and <_ ? at at _> tt).", []},
        {"with m:f(_) over _ ? _ check within 5 <_ ? a> tt.", [{1, 37, syntax}]},
        {"with m:f(_) over _ ? _ check within 5\n s <_ ? a> tt.", [{1, 37, syntax}]},
        {"with m:f(_) over _ ? _ check within 5 X.", [{1, 37, syntax}]},
        {"with m:f(_) over _ ? _ check within 5 tt.", [{1, 37, syntax}]},
        {"with m:f(_) over _ ? _ check within 5s <_ ? a> tt.", [{1, 37, syntax}]},
        {"with m:f(_) over _ ? _ check within 5 sec <_ ? a> tt.", [{1, 39, syntax}]},
        {"with m:f(_) over _ ? _ check within 5 S <_ ? a> tt.", [{1, 39, syntax}]},
        {"with m:f(_) over _ ? _ check within 1 min 30 s <_ ? a> tt.", [{1, 43, syntax}]},
        {"with m:f(_) over _ ? _ check within D <_ ? a> tt.", [{1, 37, syntax}]},
        {"with m:f(_) over _ ? _ check within -5 s <_ ? a> tt.", [{1, 37, syntax}]},
        {"with m:f(_) over _ ? _ check within 5 s.", [{1, 40, syntax}]},
        {"with m:f(_) over _ ? _ check within.", [{1, 36, syntax}]},
        {"with m:f(_) over _ ? _ check [_ ? A when A > 5\n s] ff.", [{2, 2, syntax}]},
        {"with m:f(_) over _ ? _ check [_ ? A when A > 5 sec] ff.", [{1, 48, syntax}]},
        {"with m:f(_) over _ ? a at T check [_ ? a] ff.", [{1, 27, needless_time}]},
        {"with m:f(_) over _ ? a check max X.([_ ? a] X and within 5 s [_ ? a] X).", [{1, 70, timed_loop}]},
        {"with m:f(_) over _ ? a check max X(N = 0).during 5 s min Y.(<_ ? a> Y or <_ ? {N}> X(N)).", [{1, 84, timed_loop}]},
        {"with m:f(_) over _ ? a check max X. within 5 s X.", [{1, 48, timed_loop}]},
        {"with m:f(_) over _ ? a monitor within 5 s [_ ? a] ff and during 1 d [_ ? a] ff.",
         [{1, 32, not_shml}, {1, 58, not_shml}]},
        {"with m:f(_) over _ ? _ check [_ ? a at] ff.", [{1, 37, syntax}]},
        {"with m:f(_) over _ ? _ check [_ ? a at 5 s] ff.", [{1, 37, syntax}]},
        {"with m:f(_) over _ ? _ check [_ ? a at T + 5 s] ff.", [{1, 37, syntax}]},
        {"with m:f(_) over _ ? _ check [_ ? {a} at T at U] ff.", [{1, 39, syntax}]},
        {"with m:f(_) over _ ? _ check [_ ? A when A > 3 at T] ff.", [{1, 48, syntax}]},
        {"with m:f(_) over _ ? _ check [_ ? at T] ff.", [{1, 35, syntax}]},
        {"with m:f(_) over _ ? _ check [_ ? a] [_ ? b when T > 5 s] ff.", [{1, 50, unbound_variable}]},
        %% As Elixir writes it.
        {"with A.B.init(_) over _ ? _ check [_ ? x at t when t > 5] ff.", [{1, 42, syntax}]},
        {"with A.B.init(_) over _ ? _ check [_ ? {:ok, x} at T] ff.", [{1, 40, elixir}]},
        {"with A.B.init(_) over _ ? _ check [_ ? x at T when T != 5 s] ff.", [{1, 54, elixir}]},
        {"with A.B.init(_) over _ ? _ check within :timer.seconds(5) <_ ? a> tt.", [{1, 42, syntax}]}]).

%% The code alone does not say which mistake was found.
mistakes_about_time_have_hints_test_() ->
    [{Formula, fun() ->
        {error, {witness_spec, [#{text := Text, hint := Hint}]}} = done(["with m:f(_) over _ ? _ check ", Formula, "."]),
        ?assertEqual([], [Part || Part <- Parts, nomatch =:= string:find([Text, ": ", Hint], Part)])
     end} || {Formula, Parts} <- [
        {"within 5 <_ ? a> tt", ["`5` is not a duration", "`within 5 s`", "`ns`, `us`, `ms`, `s`, `min`, `h`, `d`"]},
        {"during 1.5 <_ ? a> tt", ["`1.5` is not a duration", "`during 1.5 s`"]},
        {"within D <_ ? a> tt", ["expected a duration, found `D`", "`within 5 s`"]},
        {"within 5 sec <_ ? a> tt", ["`sec` is not a unit of time", "`within 5 s`"]},
        {"[_ ? A when A > 5 sec] ff", ["`sec` is not a unit of time", "`min`"]},
        {"within 1 min 30 s <_ ? a> tt", ["one number with one unit", "`90 s`"]},
        {"within 1.5s <_ ? a> tt", ["as in `"]},
        {"[_ ? a at t] ff", ["one variable behind `at`", "`[P ? M at T]`"]},
        {"[_ ? A when A > 3 at T] ff", ["one variable behind `at`", "`[P ? M at T]`"]},
        {"max X. [_ ? a] within 5 s [_ ? a] X", ["`X` begins outside of the `within`", "line 1, column 45", "`(f and X)`"]},
        {"max X(N = M). [_ ? a] X(1)", ["`M` is not bound", "a value knows"]},
        {"max X(N = 1). [_ ? a] X(M)", ["`M` is not bound", "a value knows"]},
        {"max X(N = 1). [_ ? a when M] X(N)", ["`M` is not bound", "a guard knows"]}]].

what_is_suspicious_about_time_is_a_warning_test_() ->
    [{Formula, fun() ->
        {ok, _, Warnings} = done(["with m:f(T) over _ ? _ check ", Formula, "."]),
        ?assertEqual(Expected, [{Column, Code} || #{column := Column, code := Code} <- Warnings])
     end} || {Formula, Expected} <- [
        {"within 5 s within 6 s <_ ? a> tt", [{41, never_passes}]},
        {"within 5 s during 5 s <_ ? a> tt", [{41, never_passes}]},
        {"during 5 s (within 6 s <_ ? a> tt and [_ ? b] ff)", [{42, never_passes}]},
        {"within 5 s within 4999 ms <_ ? a> tt", []},
        {"within 5 s <_ ? a> within 6 s <_ ? a> tt", []},
        {"[_ ? a at T] ff", [{40, bound_time}]},
        {"[_ ? U at U] ff", [{40, bound_time}]},
        {"[_ ? a at U] [_ ? b at U] ff", [{53, bound_time}]},
        {"max X(U = 0). [_ ? b at U] X(U + 1) and [_ ? c] ff", [{54, bound_time}]},
        {"max X. [_ ? b at U when U > T] X and [_ ? c] ff", []},
        {"[_ ? a at _] ff", []}]].

%% Whether the next event is late, the time passes without one, or the trace ends.
a_deadline_names_the_action_that_has_not_come_test_() ->
    [{Formula, fun() ->
        {ok, #{module := Module} = Map, _} = compile(["with m:f(_) check\n ", Formula, "."]),
        {ok, Start} = Module:init({m, f, [1]}, p, 1),
        {ok, State} = Module:handle_event({recv, p, q, c, 1_000}, Start),
        {verdict, Verdict, Passed} = Module:handle_time(1_000 + 5_000_000_001, State),
        {verdict, Verdict, Late} = Module:handle_event({recv, p, q, a, 1_000 + 5_000_000_001}, State),
        {Verdict, End} = Module:handle_end(complete, State),
        open = Module:handle_time(1_000 + 5_000_000_000, State),
        [?assertEqual(Expected#{deadline => 5_000_001_000}, maps:with([line, column, action, deadline], Info))
         || Info <- [Passed, Late, End]],
        witness_spec:unload(Map)
     end} || {Formula, Expected} <- [
        {"<_ ? c> within 5 s <_ ? a> tt", #{line => 2, column => 22, action => ~"_ ? a"}},
        {"<_ ? c> during 5 s [_ ? a] ff", #{line => 2, column => 22, action => ~"_ ? a"}},
        {"<_ ? c> within 5 s [_ ? a] <_ ? b> tt", #{line => 2, column => 10}},
        {"<_ ? c> during 5 s <_ ? a> tt", #{line => 2, column => 10}},
        {"<_ ? c> within 5 s (<_ ? a> tt or <_ ? b> tt)", #{line => 2, column => 10}}]].

%% The deadline around a modality and one inside begin with the first event.
deadlines_of_the_first_event_are_compared_test_() ->
    [{Formula, fun() ->
        {ok, #{module := Module} = Map, _} = compile(["with m:f(_) check ", Formula, "."]),
        {ok, Start} = Module:init({m, f, [1]}, p, 1),
        {ok, State} = Module:handle_event({recv, p, q, b, 10}, Start),
        ?assertMatch({Expected, #{deadline := At}}, Module:handle_end(complete, State)),
        witness_spec:unload(Map)
     end} || {Formula, Expected, At} <- [
        {"within 5 ns ((during 3 ns [_ ? b] [_ ? _] ff) and [_ ? a] ff)", yes, 13},
        {"within 5 ns ((during 8 ns [_ ? b] [_ ? _] ff) and [_ ? a] ff)", no, 15},
        {"within 5 ns ((during 5 ns [_ ? b] [_ ? _] ff) and [_ ? a] ff)", no, 15},
        {"within 9 ns ((during 5 ns (within 3 ns [_ ? b] [_ ? _] ff and [_ ? c] ff)) and [_ ? a] ff)", no, 13},
        %% The combination between has no modality of its own.
        {"within 9 ns ((during 5 ns (within 8 ns <_ ? b> <_ ? _> tt or within 7 ns <_ ? c> tt)) and [_ ? a] ff)", yes, 15},
        {"within 9 ns ((during 5 ns (within 3 ns <_ ? b> <_ ? _> tt or within 3 ns <_ ? c> tt)) and [_ ? a] ff)", no, 13},
        {"within 4 ns ((during 5 ns (within 8 ns <_ ? b> <_ ? _> tt or within 7 ns <_ ? c> tt)) and [_ ? a] ff)", no, 14}]].

durations_are_integers_of_nanoseconds_test_() ->
    [?_assertEqual(no, verdict(["[_ ? ", integer_to_list(Ns), "] ff and [_ ? A when A =:= ", Written, "] ff and [_ ? ", Written, "] ff"],
                               [{recv, p, q, Ns, 0}])) || {Ns, Written} <- [
        {5, "5 ns"}, {5_000, "5 us"}, {250_000_000, "250 ms"}, {5_000_000_000, "5 s"}, {120_000_000_000, "2  min"},
        {3_600_000_000_000, "1 h"}, {604_800_000_000_000, "7 d"}, {1_500_000_000, "1.5 s"}, {16_000_000, "16#10 ms"},
        {1_000_000_000, "1_000 ms"}, {0, "0 d"}, {1, "0.6 ns"}]].

%% --- Options ----------------------------------------------------------------------------------------

the_bound_on_obligations_is_an_option_test() ->
    Source = "with m:f(_) check max X.([_ <- _, _] X and [_ ? A] X and [_ ? A] max Y.(<_ ? A> Y or <_ ? _> Y)).",
    Events = [{recv, p, q, N, 0} || N <- lists:seq(1, 20)],
    ?assertEqual(open, with_options(Source, #{}, Events)),
    ?assertEqual(inconclusive, with_options(Source, #{max_obligations => 3}, Events)).

the_lines_come_with_the_result_test() ->
    {ok, #{lines := Lines} = Map, _} = compile("%% first\r\nwith m:f(_)\n  none."),
    ?assertEqual({<<"%% first">>, <<"with m:f(_)">>, <<"  none.">>}, Lines),
    witness_spec:unload(Map).

functions_that_are_not_there_are_told_with_the_option_test() ->
    Told = fun(Options) ->
        {ok, Map, Warnings} = witness_spec:compile_string(<<"t">>, <<"with m:f(_) none.">>, Options),
        witness_spec:unload(Map),
        [Code || #{code := Code} <- Warnings]
    end,
    ?assertEqual([], Told(#{})),
    ?assertEqual([], Told(#{exports => fun(m) -> [{f, 1}] end})),
    ?assertEqual([unknown_function], Told(#{exports => fun(m) -> [{f, 2}] end})).

a_wrong_option_is_named_test_() ->
    [?_assertError({bad_option, Key}, witness_spec:compile_string(<<"t">>, <<"with m:f(_) none.">>, #{Key => Value})) ||
     {Key, Value} <- [{include, "folder"}, {include, folder}, {max_obligations, 0}, {max_obligations, infinity}, {max_state, 0},
                      {exports, []}, {other, 1}]]
    ++ [?_assertError({bad_option, other}, witness_spec:compile_file("no/such.hml", #{other => 1}))].

errors_are_told_before_warnings_are_cut_test() ->
    Source = [lists:duplicate(60, "with m:f(_) check tt.\n"), "with m:f(_) check X."],
    {error, {witness_spec, Findings}} = done(Source),
    ?assertEqual(50, length(Findings)),
    ?assertMatch([#{code := unbound_recursion_variable, line := 61}], [F || #{severity := error} = F <- Findings]).

%% --- What the tests share ------------------------------------------------------------------------------

%% --- else, definitions ---------------------------------------------------------------------------

else_and_definitions_are_accepted_test_() ->
    [{Source, ?_assertEqual([], [Code || #{code := Code} <- findings(Source)])} || Source <- [
        "with m:f(_) over _ ? _ check max X.([_ ? a] ff and [else] X).",
        "with m:f(_) over _ ? _ check <{else}> tt or <_ ? a> ff.",
        %% Alone it matches every event; two have the same others.
        "with m:f(_) over _ ? _ check [else] ff.",
        "with m:f(_) over _ ? _ check [_ ? a] tt and [else] tt and [else] ff.",
        "action A = _ ? a. action B(P, N) = P ? {b, N} when N > 1. with m:f(_) over A, B(_, _) check [A] tt and [B(Q, N) when N < 9] [B(Q, N)] ff.",
        "with m:f(_) per K over begin B(K), {A} check [B(_)] [A] ff. action A = _ ? a. action B(K) = _ ? {b, K}.",
        "with m:f(_) over _ ? N when N > 1, B(_), {A} check [B(_)] [A] ff. action A = _ ? a. action B(K) = _ ? {b, K}.",
        "define F(X, V) = [_ ? V] X and [else] ff. with m:f(_) over _ ? _ check max X.(F(X, a) and F(F(X, b), {1})).",
        "define F(X) = max Y(N = 0).([_ ? a] Y(N + 1) and [_ ? b] X and [else] ff). "
        "with m:f(_) over _ ? _ check max X(N = 0).([_ ? N] F(X(N + 1)) and [else] ff).",
        "define F(T) = [_ ? _ at T] T2(T). define T2(T) = [_ ? N when N > T] ff. with m:f(_) over _ ? _ check F(U)."]].

mistakes_with_else_and_definitions_have_places_test_() ->
    [{Source, ?_assertMatch({Code, Column, {match, _}}, found(Code, Text, Source))} || {Code, Column, Text, Source} <- [
        {syntax, 25, "stands alone", "with m:f(_) check [else ? x] ff."},
        {syntax, 18, "no place in `over`", "with m:f(_) over else check [_ ? a] ff."},
        {syntax, 12, "needs no name", "action A = else. with m:f(_) check [A] ff."},
        {else_birth, 20, "matches the birth", "with m:f(_) check [else] ff."},
        {loop_ends, 26, "describes `_ : _ ! b`, so .* column 42, with `yes`", "with m:f(_) over _ ? a,  _ : _ ! b check max X.([_ ? a] X)."},
        {duplicate_definition, 31, "`F` already.*line 1", "define F = [_ ? a] ff. define F = tt. with m:f(_) check F."},
        {recursive_definition, 30, "uses itself: `[FG]` -> `[FG]` -> `[FG]`", "define F = [_ ? a] G. define G = F. with m:f(_) check F."},
        {wrong_definition, 52, "`A` is an action.*defined in line 1, column 8", "action A = _ ? a. with m:f(_) over _ ? _ check [A] A."},
        {wrong_definition, 43, "`F` is a formula", "define F = [_ ? a] ff. with m:f(_) check [F] ff."},
        {wrong_arguments, 45, "one parameter, and not 2.*line 1, column 8, as `F.P.`", "define F(P) = [_ ? P] ff. with m:f(_) check F(1, 2)."},
        {wrong_arguments, 46, "has to be a formula.*`F`, defined in line 1", "define F(X) = [_ ? a] X. with m:f(_) check F(1)."},
        {wrong_arguments, 23, "takes no arguments", "define F(X) = [_ ? a] X(1). with m:f(_) check F(tt)."},
        {wrong_arguments, 59, "has an `at`", "action A = _ ? a at T. with m:f(_) over _ ? _ check [A at U] ff."},
        {not_a_pattern, 49, "`N . 1` has no place where `P` stands.*line 1, column 20", "define F(P) = [_ ? P] ff. with m:f(N) check F(N + 1)."},
        {not_a_value, 54, "no place where `N`.*part of a guard", "action A(N) = _ ? M when M > N. with m:f(_) check [A(_)] ff."},
        {not_a_value, 54, "`_` has no value", "with m:f(_) over _ ? _ check max X(N = 0). [_ ? N] X(_)."},
        {mixed_parameter, 23, "is a formula here, and not in line 1, column 20", "define F(P) = [_ ? P] P. with m:f(_) check F(tt)."},
        {bound_parameter, 13, "is a parameter already", "define F(P, P) = [_ ? P] ff. with m:f(_) check F(1, 1)."},
        {bound_parameter, 15, "parameter of this definition", "define F(X) = max X.([_ ? a] X). with m:f(_) check F(1)."},
        {unbound_variable, 28, "not bound in this definition", "define F = [_ ? a when 1 < N] ff. with m:f(N) check F."},
        {unbound_recursion_variable, 20, "not bound in this definition", "define F = [_ ? a] X. with m:f(_) check max X. [_ ? _] F."},
        {taken_name, 42, "name of a definition.*line 1", "define F = [_ ? a] ff. with m:f(_) check max F. [_ ? _] F."},
        {syntax, 39, "not an action", "with m:f(_) over _ ? _ check [_ ? b] [B] ff."},
        {unused_definition, 8, "not used", "define F = [_ ? a] ff. with m:f(_) over _ ? _ check [_ ? a] ff."},
        {syntax, 10, "expected a parameter", "define F(1) = [_ ? a] ff. with m:f(_) check F(1)."},
        {syntax, 10, "expected `=`", "define F [_ ? a] ff. with m:f(_) check F."},
        %% What is wrong inside a definition names its use.
        {not_shml, 12, "definition `F`, used in line 1, column 44", "define F = <_ ? a> ff. with m:f(_) monitor F."}]].

definitions_are_bounded_test_() ->
    Doubled = fun(N, Kind) ->
        [["define F", integer_to_list(I), Kind(integer_to_list(I - 1))] || I <- lists:seq(1, N)]
            ++ ["with m:f(_) over _ ? _ check F", integer_to_list(N)]
    end,
    [?_assertMatch({too_large, {match, _}}, bounded(Text, Source)) || {Text, Source} <- [
        {"used more than 3000 times", ["define F0 = [_ ? a] ff. ", Doubled(20, fun(I) -> [" = F", I, " and F", I, ". "] end), "."]},
        {"at most 10000 elements", ["define F0(P) = [_ ? P] ff. ", Doubled(30, fun(I) -> ["(P) = F", I, "({P, P}). "] end), "(a)."]},
        {"more than 200000 elements", ["define F0(P) = [_ ? P] ff. ", Doubled(11, fun(I) -> ["(P) = F", I, "(P) and F", I, "(P). "] end),
                                       "({", lists:join(",", lists:duplicate(150, "a")), "})."]}]].

bounded(Text, Source) ->
    [#{code := Code, text := Found} | _] = findings(Source),
    {Code, re:run(Found, Text)}.

%% The first finding of this code.
found(Code, Text, Source) ->
    case [{Column, re:run([Found, $\s, case Hint of undefined -> ""; _ -> Hint end], Text, [unicode])}
          || #{code := Of, column := Column, text := Found, hint := Hint} <- findings(Source), Of =:= Code] of
        [{Column, Match} | _] -> {Code, Column, Match};
        [] -> findings(Source)
    end.

findings(Source) ->
    case compile(Source) of
        {ok, Map, Warnings} -> witness_spec:unload(Map), Warnings;
        {error, {witness_spec, Findings}} -> Findings
    end.

property(Source) ->
    {[Property], []} = read(Source),
    Property.

read(Source) ->
    {ok, Tokens} = witness_spec_scan:string(unicode:characters_to_binary(Source)),
    witness_spec_parse:file(Tokens, unicode:characters_to_list(Source)).

over(Over) ->
    #{over := Actions} = property(["with m:f(_) over ", Over, " monitor ff."]),
    [binary_to_list(Text) || #{text := Text} <- Actions].

entries(Source) ->
    {ok, #{entries := Entries} = Map, _} = compile(Source),
    witness_spec:unload(Map),
    Entries.

matching(Source, Signature) ->
    {ok, #{module := Module} = Map, _} = compile(Source),
    Indices = Module:match(Signature),
    witness_spec:unload(Map),
    Indices.

verdict(Formula, Events) -> verdict("with m:f(_)", {m, f, [1]}, Formula, Events).

verdict(With, Signature, Formula, Events) ->
    {ok, #{module := Module} = Map, _} = compile([With, " monitor ", Formula, "."]),
    State = case Module:init(Signature, self(), 1) of {ok, Start} -> Start; {ok, Start, _} -> Start end,
    Verdict = run(Module, State, Events),
    witness_spec:unload(Map),
    Verdict.

with_options(Source, Options, Events) ->
    {ok, #{module := Module} = Map, _} = witness_spec:compile_string(<<"t">>, iolist_to_binary(Source), Options),
    {ok, State} = Module:init({m, f, [1]}, self(), 1),
    Verdict = run(Module, State, Events),
    witness_spec:unload(Map),
    Verdict.

run(_, _, []) -> open;
run(Module, State, [Event | Events]) ->
    case Module:handle_event(Event, State) of
        {ok, Next} -> run(Module, Next, Events);
        {verdict, Verdict, _} -> Verdict
    end.

each_is_reported_where_it_stands(Cases) ->
    [{lists:sublist(lists:flatten(Source), 200), ?_assertEqual(Expected, errors(done(Source)))} ||
        {Source, Expected} <- Cases].

errors({ok, _, _}) -> [];
errors({error, {witness_spec, Diagnostics}}) ->
    [begin
         ?assert(is_binary(witness_spec:format_diagnostic(Diagnostic))),
         {Line, Column, Code}
     end || #{severity := error, line := Line, column := Column, code := Code} = Diagnostic <- Diagnostics].

done(Source) ->
    Result = compile(Source),
    case Result of {ok, Map, _} -> witness_spec:unload(Map); _ -> ok end,
    Result.

compile(Source) -> witness_spec:compile_string(<<"test.hml">>, unicode:characters_to_binary(Source)).

%% Tests that compile specifications in a folder with these files; beside it is a folder that is declared.
in_folders(Files, Tests) ->
    {setup,
     fun() ->
         Unique = [os:getpid(), "-", integer_to_list(erlang:unique_integer([positive]))],
         Folder = filename:join(filename:basedir(user_cache, "witness_test"), lists:flatten(Unique)),
         [begin
              Path = filename:join([Folder, "own", File]),
              ok = filelib:ensure_dir(Path),
              ok = file:write_file(Path, Content)
          end || {File, Content} <- Files],
         Folder
     end,
     fun(Folder) -> ok = file:del_dir_r(Folder) end,
     fun(Folder) ->
         [{Name, {timeout, 60, fun() -> Test(fun(Source) -> in_folder(Folder, Source) end) end}} ||
             {Name, Test} <- Tests]
     end}.

in_folder(Folder, Source) ->
    File = filename:join([Folder, "own", "test.hml"]),
    ok = file:write_file(File, unicode:characters_to_binary(Source)),
    Result = witness_spec:compile_file(File, #{include => [filename:join(Folder, "declared")]}),
    case Result of {ok, Map, _} -> witness_spec:unload(Map); _ -> ok end,
    errors(Result).
