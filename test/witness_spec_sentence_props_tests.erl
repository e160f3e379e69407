-module(witness_spec_sentence_props_tests).
-moduledoc """
Sentences mean what their definitions say: compiled monitors of random sentences read random traces, and give the verdict of
`m:witness_spec_sentence_reference` at the same event.

`WITNESS_SENTENCE_SEED` brings a run back. `WITNESS_SENTENCE_FILES` is the number of files, of which each has a seed of its own.
A difference is made small before it is told.
""".
-include_lib("eunit/include/eunit.hrl").

-export([differences/3, told/1, got/4]).

-define(FILES, 36).    % each has a property of each form: compiling takes most of the time
-define(TRACES, 100).  % for each property
-define(EVENTS, 12).
-define(FREQUENT, 10).  % how often each form has each verdict, at least
-define(TOLD, 5).      % differences

%% Comparing nothing but sentences that are always satisfied would be no comparison.
sentences_mean_what_their_definitions_say_test_() ->
    {timeout, 300, fun() ->
        Seed = witness_setting:number("WITNESS_SENTENCE_SEED", erlang:system_time(second)),
        Files = witness_setting:number("WITNESS_SENTENCE_FILES", ?FILES),
        Counts = lists:foldl(fun(Mode, All) -> add(agree(Mode, Seed, Files div 3), All) end, #{}, [whole, per, shared]),
        Rare = [{Form, Verdict} || Form <- forms(whole), Verdict <- [yes, no], maps:get({Form, Verdict}, Counts, 0) < ?FREQUENT],
        ?assertEqual({seed, Seed, []}, {seed, Seed, Rare})
    end}.

%% A value that two actions share is compared by `per`, and by the sentences that follow values.
shared_variables_are_refused_test_() ->
    {timeout, 60, fun() ->
        Seed = witness_setting:number("WITNESS_SENTENCE_SEED", erlang:system_time(second)),
        _ = rand:seed(exsss, Seed),
        Forms = [never_before, never_after, never_until, never_between, precedes, precedes_within, alternates],
        Properties = [property(shared, Form) || Form <- Forms, _ <- lists:seq(1, 8)],
        ?assertEqual({seed, Seed, []}, {seed, Seed, [text(P) || P <- Properties, shares(P) =:= (refused(P) =:= ok)]}),
        ?assertMatch({[_ | _], [_ | _]}, lists:partition(fun shares/1, Properties))
    end}.

shares(#{actions := Actions, per := Per}) ->
    All = lists:append([witness_spec_sentence_reference:variables(A) -- ['K' || Per] || A <- Actions]),
    length(All) > length(lists:usort(All)).

agree(Mode, Seed, Files) ->
    {Counts, Differences} = differences(Mode, Seed, Files),
    [io:put_chars(user, ["\n", atom_to_list(Mode), ", seed ", integer_to_list(Seed), ": ", told(Difference)])
     || Difference <- lists:sublist(Differences, ?TOLD)],
    ?assertEqual({seed, Seed, []}, {seed, Seed, [text(Property) || {Property, _, _} <- lists:sublist(Differences, 1)]}),
    Counts.

-doc "How often each form had each verdict, and the first difference of each property.".
differences(Mode, Seed, Files) ->
    {Counts, Differences} = lists:unzip([file(Mode, {Seed, Mode, N}) || N <- lists:seq(1, Files)]),
    {lists:foldl(fun add/2, #{}, Counts), lists:append(Differences)}.

add(New, Counts) -> maps:merge_with(fun(_, N, M) -> N + M end, New, Counts).

file(Mode, Seed) ->
    _ = rand:seed(exsss, erlang:phash2(Seed, 1 bsl 32)),
    Properties = [property(Mode, Form) || Form <- forms(Mode)],
    Traces = [traces(Property) || Property <- Properties],
    case compiled(Properties) of
        {ok, #{module := Module} = Map} ->
            try
                {Counts, Differences} = lists:unzip([judge_all(Module, I, Property, Some)
                                                     || {I, {Property, Some}} <- lists:enumerate(lists:zip(Properties, Traces))]),
                {lists:foldl(fun add/2, #{}, Counts), lists:append(Differences)}
            after
                witness_spec:unload(Map)
            end;
        {error, _} ->
            {#{}, [{Property, [], {refused, Findings}} || Property <- Properties, {error, Findings} <- [refused(Property)]]}
    end.

judge_all(Module, I, #{form := Form} = Property, Traces) ->
    Judged = [{Trace, judge(Module, I, Property, Trace)} || Trace <- Traces],
    {lists:foldl(fun add/2, #{}, [#{{Form, Verdict} => 1} || {_, {Verdicts, _}} <- Judged, Verdict <- Verdicts]),
     lists:sublist([{Property, Trace, Detail} || {Trace, {_, {differs, Detail}}} <- Judged], 1)}.

refused(Property) ->
    case compiled([Property]) of
        {ok, Map} -> witness_spec:unload(Map);
        {error, _} = Refused -> Refused
    end.

compiled(Properties) ->
    Text = [["p", integer_to_list(I), ": ", text(Property)] || {I, Property} <- lists:enumerate(Properties)],
    case witness_spec:compile_string(~"random", iolist_to_binary(Text), #{max_state => 1_000_000}) of
        {ok, Map, _} -> {ok, Map};
        {error, {witness_spec, Findings}} -> {error, [Finding || #{severity := error} = Finding <- Findings]}
    end.

-doc "A difference as text, with as few events as possible.".
told({Property, Trace, Detail}) ->
    {Fewer, Smaller} = case compiled([Property]) of
        {ok, #{module := Module} = Map} ->
            try smaller(Module, Property, Trace, Detail) after witness_spec:unload(Map) end;
        {error, _} -> {Trace, Detail}
    end,
    io_lib:format("~ts~ts  ~tp~n", [text(Property), [io_lib:format("    @~b ~tp~n", [Time, Event]) || {Event, Time} <- Fewer], Smaller]).

smaller(Module, Property, Trace, Detail) ->
    Without = [lists:sublist(Trace, I - 1) ++ lists:nthtail(I, Trace) || I <- lists:seq(1, length(Trace))],
    case [{Fewer, Other} || Fewer <- Without, {_, {differs, Other}} <- [judge(Module, 1, Property, Fewer)]] of
        [{Fewer, Other} | _] -> smaller(Module, Property, Fewer, Other);
        [] -> {Trace, Detail}
    end.

%% Verdicts. Without `per` there is one; with `per`, one for each value that an event of the trace has.

judge(Module, I, Property, Trace) ->
    Expected = expected(Property, Trace),
    Got = got(Module, I, Property, Trace),
    Verdicts = [case Verdict of yes -> yes; _ -> no end || {_, Verdict} <- Expected],
    Unknown = [{Key, yes} || Key := _ <- Got, not lists:keymember(Key, 1, Expected)],
    {Verdicts, case [{Key, {expected, E}, {got, maps:get(Key, Got, [])}}
                     || {Key, E} <- Expected ++ Unknown, not agrees(E, maps:get(Key, Got, []))] of
        [] -> same;
        Differ -> {differs, Differ}
    end}.

%% The first `no` of a value is the one that is expected. A monitor may say `yes` at any event. It begins an instance only where the
%% value has an event that matters.
agrees(Expected, Got) ->
    case [Outcome || {Verdict, _} = Outcome <- Got, Verdict =/= yes] of
        [] -> Expected =:= yes;
        [{no, 'end'} | _] -> Expected =:= no;
        [{no, At} | _] -> Expected =:= {no, At};
        _ -> false
    end.

expected(#{sentence := Sentence, per := Per} = Property, Trace) ->
    Read = [{I, Event, Time} || {I, {Event, Time}} <- lists:enumerate(Trace), is_read(Event, Property)],
    Slices = case Per of
        true -> [{K, #{'K' => K}, [Item || {_, {_, Message}, _} = Item <- Read, element(2, Message) =:= K]}
                 || K <- lists:usort([element(2, Message) || {_, {_, Message}, _} <- Read])];
        false -> [{none, #{}, Read}]
    end,
    [{Key, case witness_spec_sentence_reference:judge(Sentence, Binding, [{Event, Time} || {_, Event, Time} <- Slice]) of
         {no, N} -> {no, element(1, lists:nth(N, Slice))};
         Verdict -> Verdict
     end} || {Key, Binding, Slice} <- Slices].

%% Without `per`, these read all events.
is_read(_, #{over := derived, per := false, form := Form})
  when Form =:= never; Form =:= at_least; Form =:= at_least_within; Form =:= exactly -> true;
is_read(Event, #{over := derived, actions := Actions}) ->
    lists:any(fun(A) -> witness_spec_sentence_reference:match(A, Event, #{}) =/= no end, Actions);
is_read({_, _}, #{over := all}) -> true;
is_read({Kind, _}, #{over := receives}) -> Kind =/= send.

-doc "For each value, the verdicts with the places of the events that they fall at.".
got(Module, I, #{per := Per}, Trace) ->
    Spec = #{monitor => {Module, I}, process => self(), signature => {m, f, [0]}, explain => 1},
    {ok, Machine} = witness_monitor_machine:new(Spec),
    Told = steps(lists:enumerate([event(Item) || Item <- Trace]), Machine),
    maps:groups_from_list(fun({Key, _}) -> Key end, fun({_, Outcome}) -> Outcome end,
                          [Outcome || {Key, _} = Outcome <- Told, Per =:= (Key =/= none)]).

steps([{I, Event} | Events], Machine) ->
    case witness_monitor_machine:run([Event], Machine) of
        {Outcomes, {ok, Next}} -> outcomes(Outcomes, I) ++ steps(Events, Next);
        {Outcomes, {decided, Final}} -> outcomes(Outcomes ++ [Final], I)
    end;
steps([], Machine) ->
    {Outcomes, Final} = witness_monitor_machine:finish(complete, Machine),
    outcomes(Outcomes ++ [Final], 'end').

outcomes(Outcomes, At) ->
    [case Outcome of
         #{slice := [{_, Key}], verdict := Verdict} -> {Key, {Verdict, At}};
         #{slice := undefined, verdict := Verdict} -> {none, {Verdict, At}}
     end || Outcome <- Outcomes, not is_map_key(slices, Outcome)].

event({{recv, Message}, Time}) -> {recv, self(), undefined, Message, Time};
event({{cast, Message}, Time}) -> {recv, self(), undefined, {'$gen_cast', Message}, Time};
event({{send, Message}, Time}) -> {send, self(), self(), Message, Time}.

%% Traces: events that the actions often match, and times that do not go back.

traces(Property) -> [trace(Property) || _ <- lists:seq(1, ?TRACES)].

trace(#{duration := D} = Property) ->
    {Trace, _} = lists:mapfoldl(fun(_, Time) -> {{event_for(Property), Time}, Time + step(D)} end,
                                one([0, 1_000_000_000_000, -1_000_000_000_000_000]),
                                lists:seq(1, rand:uniform(?EVENTS + 1) - 1)),
    Trace.

step(D) -> one([0, 0, 1, 1, D div 2, D - 1, D, D + 1]).

event_for(#{actions := Actions}) ->
    case rand:uniform(5) of
        1 -> {one([recv, recv, send, cast]), {one(kinds()), key(), value()}};
        _ ->
            {Kind, [P1, P2, P3], _} = one(Actions),
            {Kind, {like(P1, kinds()), like(P2, [key()]), case P3 of {lit, _} -> like(P3, [1]); _ -> value() end}}
    end.

like({lit, Term}, Others) -> case rand:uniform(5) of 1 -> one(Others); _ -> Term end;
like(_, Others) -> one(Others).

kinds() -> [a, b, c].

key() -> one([1, 1, 1, 2]).

value() -> one([1, 1, 2, 2, 3, 3, 4, 1.0, z]).

one(List) -> lists:nth(rand:uniform(length(List)), List).

often(Percent) -> rand:uniform(100) =< Percent.

%% Sentences.

%% Modes: `whole` has no `per`, `per` one that all actions bind; in both, each action has variables of its own, but for those
%% of `leads` and `open`. In `shared` all actions have the same names.
forms(shared) -> [leads, leads_within, open_keys, open_keys];
forms(_) ->
    [never, never_before, never_after, never_until, never_between, leads, leads_within, precedes, precedes_within,
     at_most, at_least, at_least_within, exactly, in_any, open_counter, open_keys, unique, increasing, strictly_increasing,
     alternates].

property(Mode, Form) ->
    {D, Duration} = one([{10, "10 ns"}, {1000, "1 us"}, {2_000_000_000, "2 s"}]),
    Property = #{form => Form, mode => Mode, duration => D, within => Duration,
                 per => Mode =:= per orelse Mode =:= shared andalso often(30),
                 %% Some are the names that an expansion takes if they are free.
                 name => one(["N", "N", "Count", "Seen", "Times", "Last", "Open", "X", "Y"]),
                 over => one([derived, derived, derived, all, all, receives])},
    Sentence = new_sentence(Form, Property),
    %% The text is drawn once: a smaller example has the same.
    Written = Property#{sentence => Sentence, actions => actions(Sentence)},
    Written#{text => iolist_to_binary(write(Written))}.

%% The action that ends something is not the one that it ends, or that begins it.
new_sentence(Form, P) ->
    Sentence = sentence(Form, P),
    case lists:reverse(actions(Sentence)) of
        [Last | Others] when Form =/= never_after, element(1, Sentence) =/= leads ->
            case lists:member(Last, Others) of
                true -> new_sentence(Form, P);
                false -> Sentence
            end;
        _ -> Sentence
    end.

actions(Sentence) ->
    [Action || {Kind, [_, _, _], _} = Action <- tuple_to_list(Sentence), Kind =/= unique].

sentence(never, P) -> {never, action("", P)};
sentence(Form, P) when Form =:= never_before -> {Form, action("", P), action("R", P)};
sentence(never_after, P) -> {never_after, action("", P), action("Q", P)};
sentence(Form, P) when Form =:= never_until; Form =:= never_between -> {Form, action("", P), action("Q", P), action("R", P)};
sentence(leads, P) -> {leads, action("", P), action(one(["", "", "B"]), P), none};
sentence(leads_within, #{duration := D} = P) -> {leads, action("", P), action(one(["", "", "B"]), P), D};
sentence(precedes, P) -> {precedes, action("", P), action("B", P), none};
sentence(precedes_within, #{duration := D} = P) -> {precedes, action("", P), action("B", P), D};
sentence(Form, P) when Form =:= at_most; Form =:= exactly -> {Form, one([0, 1, 1, 2, 3]), action("", P)};
sentence(at_least, P) -> {at_least, one([1, 1, 2, 3]), action("", P), none};
sentence(at_least_within, #{duration := D} = P) -> {at_least, one([1, 1, 2, 3]), action("", P), D};
sentence(in_any, #{duration := D} = P) -> {in_any, one([0, 1, 1, 2, 3]), action("", P), D};
sentence(open_counter, P) -> {open, one([1, 2, 2, 3]), action("", P#{mode := whole}), action("B", P#{mode := whole})};
sentence(open_keys, P) ->
    {open, one([1, 2, 2]), with_value("", P), with_value("", P)};
sentence(unique, #{per := Per} = P) ->
    {Kind, [P1, P2, P3], Guard} = with_value("", P),
    A = {Kind, [one([P1, {var, 'Kind'}]), case Per of true -> P2; false -> one([P2, {var, 'K'}]) end, P3], Guard},
    Names = witness_spec_sentence_reference:variables(A) -- ['K' || Per],
    {unique, one([[one(Names)], Names]), A};
sentence(increasing, #{name := N} = P) -> {increasing, weakly, list_to_atom(N), with_value("", P)};
sentence(strictly_increasing, #{name := N} = P) -> {increasing, strictly, list_to_atom(N), with_value("", P)};
sentence(alternates, P) -> {alternates, action("", P), action("B", P)}.

%% An action that binds the name of values.
with_value(Suffix, #{name := Value} = P) ->
    N = list_to_atom(Value ++ Suffix),
    {Kind, [P1, P2, _], _} = action(Suffix, P),
    {Kind, [P1, P2, {var, N}], one([none, none, {more, N}, {even, N}, {one_or_three, N}])}.

%% With `shared` variables, all actions have the same names.
action(Own, #{per := Per, mode := Mode, name := Value}) ->
    Suffix = case Mode of shared -> ""; _ -> Own end,
    Name = fun(Text) -> {var, list_to_atom(Text ++ Suffix)} end,
    P2 = case Per of
        true -> {var, 'K'};
        false -> one(['_', '_', {lit, 1}, Name("K")])
    end,
    P3 = one(['_', {lit, 1}, Name(Value), Name(Value), Name(Value)]),
    Guard = case P3 of
        {var, N} -> one([none, none, none, {more, N}, {even, N}, {one_or_three, N}]);
        _ -> none
    end,
    {one([recv, recv, recv, send, cast]), [one([{lit, a}, {lit, a}, {lit, b}, {lit, b}, {lit, c}, Name("Kind"), '_']), P2, P3], Guard}.

%% Text.

text(#{text := Text}) -> Text.

write(#{sentence := Sentence, per := Per, over := Over, within := Duration}) ->
    ["with m:f(_)", [" per K" || Per],
     case Over of
         derived -> "";
         all when Per -> " over _ ? {_, K, _}, _ ? cast({_, K, _}), _ : _ ! {_, K, _}";
         all -> one([" over _ ? {_, _, _}, _ ? cast(_), _ : _ ! _", " over {_ ? _}, {_ : _ ! _}"]);
         receives when Per -> " over _ ? {_, K, _}, _ ? cast({_, K, _})";
         receives -> " over _ ? _"
     end,
     "\n  ", words(Sentence, Duration), ".\n"].

words({never, A}, _) -> ["never ", write_action(A)];
words({never_before, A, R}, _) -> ["never ", write_action(A), " before ", write_action(R)];
words({never_after, A, Q}, _) -> ["never ", write_action(A), " after ", write_action(Q)];
words({never_until, A, Q, R}, _) -> ["never ", write_action(A), " after ", write_action(Q), " until ", write_action(R)];
words({never_between, A, Q, R}, _) -> ["never ", write_action(A), " between ", write_action(Q), " and ", write_action(R)];
words({leads, A, B, D}, Duration) -> ["always ", write_action(A), " leads to ", write_action(B), within(D, Duration)];
words({precedes, A, B, D}, Duration) -> [write_first(A), " precedes ", write_action(B), within(D, Duration)];
words({at_most, N, A}, _) -> ["at most ", integer_to_list(N), " ", write_action(A)];
words({at_least, N, A, D}, Duration) -> ["at least ", integer_to_list(N), " ", write_action(A), within(D, Duration)];
words({exactly, N, A}, _) -> ["exactly ", integer_to_list(N), " ", write_action(A)];
words({in_any, N, A, _}, Duration) -> ["at most ", integer_to_list(N), " ", write_action(A), " in any ", Duration];
words({open, N, A, B}, _) -> ["at most ", integer_to_list(N), " open ", write_action(A), " until ", write_action(B)];
words({unique, Names, A}, _) -> ["unique ", lists:join(", ", [atom_to_list(Name) || Name <- Names]), " in ", write_action(A)];
words({increasing, strictly, V, A}, _) -> ["strictly increasing ", atom_to_list(V), " in ", write_action(A)];
words({increasing, weakly, V, A}, _) -> ["increasing ", atom_to_list(V), " in ", write_action(A)];
words({alternates, A, B}, _) -> [write_first(A), " alternates with ", write_action(B)].

within(none, _) -> "";
within(_, Duration) -> [" within ", Duration].

%% A sentence begins with an action in braces, or with a message of OTP.
write_first(A) ->
    Text = iolist_to_binary(write_action(A)),
    case Text of
        <<"_", _/binary>> -> ["{", Text, "}"];
        _ -> Text
    end.

write_action({Kind, Parts, Guard}) ->
    Message = ["{", lists:join(", ", [part(Part) || Part <- Parts]), "}"],
    Plain = case Kind of
        recv -> ["_ ? ", Message];
        cast when Guard =:= none -> one([["_ ? cast(", Message, ")"], ["cast(", Message, ")"]]);
        cast -> ["_ ? cast(", Message, ")"];
        send -> ["_ : _ ! ", Message]
    end,
    case Guard =:= none andalso often(50) of
        true -> Plain;
        false -> ["{", Plain, guard(Guard), "}"]
    end.

guard(none) -> "";
guard({more, N}) -> [" when ", atom_to_list(N), " > 1"];
guard({even, N}) -> [" when ", atom_to_list(N), " rem 2 =:= 0"];
guard({one_or_three, N}) -> one([[" when ", atom_to_list(N), " =:= 1; ", atom_to_list(N), " =:= 3"],
                                 [" when is_integer(", atom_to_list(N), "), ", atom_to_list(N), " =:= 1 orelse ", atom_to_list(N), " =:= 3"]]).

part('_') -> "_";
part({lit, Term}) -> io_lib:format("~tw", [Term]);
part({var, Name}) -> atom_to_list(Name).
