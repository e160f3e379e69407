-module(witness_spec_sentence_props_tests).
-moduledoc """
Sentences mean what their definitions say: compiled monitors of random sentences read random traces, and give the verdict of
`m:witness_spec_sentence_reference` at the same event.

`WITNESS_SENTENCE_SEED` brings a run back. `WITNESS_SENTENCE_FILES` is the number of files, of which each has a seed of its own.
A difference is made small before it is told.
""".
-include_lib("eunit/include/eunit.hrl").

-import(witness_spec_sentence_reference, [actions/1, match/3, segments/3, variables/1]).

-export([differences/3, told/1, judged/2, got/4, random_text/1]).

-define(FILES, 8).     % each has a property of each form: compiling takes most of the time
-define(TRACES, 100).  % for each property
-define(EVENTS, 18).
-define(TOLD, 5).      % differences

%% Comparing nothing but sentences that are always satisfied would be no comparison, nor would traces in which nothing coincides.
sentences_mean_what_their_definitions_say_test_() ->
    {timeout, 600, fun() ->
        Seed = witness_setting:number("WITNESS_SENTENCE_SEED", erlang:system_time(second)),
        Files = witness_setting:number("WITNESS_SENTENCE_FILES", ?FILES),
        Modes = [whole, per, some, shared],
        Counts = lists:foldl(fun(Mode, All) -> add(agree(Mode, Seed, Files div length(Modes)), All) end, #{}, Modes),
        Wanted = [{Form, Verdict} || Form <- forms(whole), Verdict <- [yes, no]] ++ situations(),
        ?assertEqual({seed, Seed, []}, {seed, Seed, [One || One <- Wanted, not is_map_key(One, Counts)]})
    end}.

%% A value that two actions share is compared by `per`, and by the sentences that follow values.
shared_variables_are_refused_test_() ->
    {timeout, 120, fun() ->
        Seed = witness_setting:number("WITNESS_SENTENCE_SEED", erlang:system_time(second)),
        _ = rand:seed(exsss, Seed),
        Properties = [property(same, Form) || {Scope, Main} = Form <- forms(same), Scope =/= globally orelse not follows(Main)],
        ?assertEqual({seed, Seed, []}, {seed, Seed, [text(P) || P <- Properties, shares(P) =:= (refused(P) =:= ok)]}),
        ?assertMatch({[_ | _], [_ | _]}, lists:partition(fun shares/1, Properties))
    end}.

%% Whether two actions have a variable, and the sentence does not follow its value from one to the other.
shares(#{sentence := {Scope, Main}, per := Per, form := {_, Form}}) ->
    Of = fun(Actions) -> lists:usort(lists:append([variables(A) || A <- Actions])) -- ['K' || Per] end,
    Separate = [[A] || A <- actions(Scope)],
    Actions = actions(Main),
    All = lists:flatmap(Of, Separate ++ case follows(Form) of true -> [Actions]; false -> [[A] || A <- Actions] end),
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
    {lists:foldl(fun add/2, #{}, [#{{Form, Verdict} => 1} || {_, {Verdicts, _}} <- Judged, Verdict <- Verdicts]
                                 ++ [#{Situation => 1} || Trace <- Traces, Situation <- situations(Property, Trace)]),
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
    Lines = [io_lib:format("    @~b ~tp~n", [Time, Event]) || {Event, Time} <- Fewer],
    io_lib:format("~ts~ts  ~tp~n", [text(Property), Lines, Smaller]).

smaller(Module, Property, Trace, Detail) ->
    Without = [lists:sublist(Trace, I - 1) ++ lists:nthtail(I, Trace) || I <- lists:seq(1, length(Trace))],
    case [{Fewer, Other} || Fewer <- Without, {_, {differs, Other}} <- [judge(Module, 1, Property, Fewer)]] of
        [{Fewer, Other} | _] -> smaller(Module, Property, Fewer, Other);
        [] -> {Trace, Detail}
    end.

-doc "The differences in traces of events that are all received and read, for sentences without `per` of one duration.".
judged(Sentences, Duration) ->
    Properties = [written(#{form => none, per => false, over => receives, within => Duration, sentence => Sentence, mode => whole})
                  || {Sentence, _} <- Sentences],
    case compiled(Properties) of
        {ok, #{module := Module} = Map} ->
            Examples = lists:enumerate(lists:zip(Properties, [Traces || {_, Traces} <- Sentences])),
            try
                [{Property, Trace, Detail} || {I, {Property, Traces}} <- Examples, Trace <- Traces,
                                              {_, {differs, Detail}} <- [judge(Module, I, Property, Trace)]]
            after
                witness_spec:unload(Map)
            end;
        {error, _} -> [{Property, [], {refused, Findings}} || Property <- Properties, {error, Findings} <- [refused(Property)]]
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

%% The first `no` of a value is the one that is expected: behind it the slice begins anew, and the definition is about one trace. A
%% monitor may say `yes` at any event. It begins an instance only where the value has an event that matters.
agrees(Expected, Got) ->
    case [Outcome || {Verdict, _} = Outcome <- Got, Verdict =/= yes] of
        [] -> Expected =:= yes;
        [{no, 'end'} | _] -> Expected =:= no;
        [{no, At} | _] -> Expected =:= {no, At};
        _ -> false
    end.

expected(#{sentence := Sentence} = Property, Trace) ->
    [{Key, case witness_spec_sentence_reference:judge(Sentence, Binding, [{Event, Time} || {_, Event, Time} <- Slice]) of
         {no, N} -> {no, element(1, lists:nth(N, Slice))};
         Verdict -> Verdict
     end} || {Key, Binding, Slice} <- slices(Property, Trace)].

%% The events that each instance reads, with their places. One without a value for `per` is for all slices, also for those that
%% begin behind it.
slices(#{per := false} = Property, Trace) -> [{none, #{}, read(Property, #{}, Trace)}];
slices(#{mode := some, begins := Begins} = Property, Trace) ->
    Keys = lists:usort([K || {Event, _} <- Trace, A <- Begins, #{'K' := K} <- [match(A, Event, #{})]]),
    [{K, #{'K' => K}, read(Property, #{'K' => K}, Trace)} || K <- Keys];
slices(#{per := true} = Property, Trace) ->
    Read = read(Property, #{}, Trace),
    [{K, #{'K' => K}, [Item || {_, {_, Message}, _} = Item <- Read, element(2, Message) =:= K]}
     || K <- lists:usort([element(2, Message) || {_, {_, Message}, _} <- Read])].

read(Property, Binding, Trace) ->
    [{I, Event, Time} || {I, {Event, Time}} <- lists:enumerate(Trace), is_read(Event, Binding, Property)].

is_read(Event, Binding, #{over := derived, per := Per, form := Form, actions := Actions}) ->
    not Per andalso reads_all(Form) orelse lists:any(fun(A) -> is(A, Event, Binding) end, Actions);
is_read({_, _}, _, #{over := all}) -> true;
is_read({Kind, _}, _, #{over := receives}) -> Kind =/= send.

%% Those that read all events without `over` and `per`.
reads_all({globally, never}) -> true;
reads_all({Scope, Main}) ->
    lists:member(Scope, [globally, before]) andalso lists:member(Main, [at_least, at_least_within, exactly]).

is(A, Event, Binding) -> match(A, Event, Binding) =/= no.

%% What has to happen in the traces of scopes that begin again, and in those of durations.
situations() -> [again, begin_inside, end_outside, begin_and_end, begin_and_main, end_and_main, at_the_limit, behind_the_limit].

situations(#{sentence := {{Kind, Q, R} = Scope, Main}} = Property, Trace) when Kind =:= until; Kind =:= between ->
    Some = fun(Actions, Event, Binding) -> lists:any(fun(A) -> is(A, Event, Binding) end, Actions) end,
    lists:append([in_slice(segments(Scope, Binding, list_to_tuple([{E, Time} || {_, E, Time} <- Slice])),
                           [[Some(Actions, E, Binding) || Actions <- [[Q], [R], actions(Main)]] || {_, E, _} <- Slice])
                  || {_, Binding, Slice} <- slices(Property, Trace)]);
situations(#{sentence := {_, Main}, duration := D}, Trace) ->
    Times = [Time || D =:= element(tuple_size(Main), Main), {_, Time} <- Trace],
    [at_the_limit || lists:any(fun(Time) -> lists:member(Time + D, Times) end, Times)]
        ++ [behind_the_limit || lists:any(fun(Time) -> lists:member(Time + D + 1, Times) end, Times)].

%% Of an event it says whether it is the Q, the R, an action of the main part.
in_slice(Segments, Events) ->
    Inside = lists:append([S || {S, _, _} <- Segments]),
    [again || [_, _ | _] <- [Segments]]
        ++ [begin_inside || I <- Inside, [true, false, _] <- [lists:nth(I, Events)]]
        ++ [end_outside || {I, [_, true, _]} <- lists:enumerate(Events), not lists:member(I - 1, Inside),
                           not lists:keymember(I - 1, 2, Segments)]
        ++ [begin_and_end || [true, true, _] <- Events]
        ++ [begin_and_main || [true, false, true] <- Events]
        ++ [end_and_main || [_, true, true] <- Events].

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
    {Trace, _} = lists:mapfoldl(fun(A, Time) -> {{event_for(A, Property), Time}, Time + step(D)} end,
                                one([0, 1_000_000_000_000, -1_000_000_000_000_000]),
                                course(rand:uniform(?EVENTS + 1) - 1, Property)),
    [Item || {Event, _} = Item <- Trace, not has_two_slices(Event, Property)].

%% Actions, of which some come as a segment has them.
course(N, _) when N =< 0 -> [];
course(N, #{sentence := {Scope, Main}, actions := Actions} = Property) ->
    Some = case often(50) of
        true -> [one(Actions)];
        false ->
            {Begin, End} = case Scope of
                globally -> {[], []};
                {before, R} -> {[], [R]};
                {behind, Q} -> {[Q], []};
                {_, Q, R} -> {[Q], [R]}
            end,
            Without = one([none | actions(Main)]),
            Begin ++ lists:append([lists:duplicate(one([1, 1, 2, 3, 4]), A) || A <- actions(Main), A =/= Without]) ++ End
    end,
    lists:sublist(Some, N) ++ course(N - length(Some), Property).

%% Such an event has the slice of the action that stands first in `over`, and the definition has no `over`.
has_two_slices(Event, #{mode := some, actions := Actions}) ->
    {Keyed, Others} = lists:partition(fun(A) -> lists:member('K', variables(A)) end, Actions),
    Matches = fun(A) -> is(A, Event, #{}) end,
    lists:any(Matches, Keyed) andalso lists:any(Matches, Others);
has_two_slices(_, _) -> false.

step(D) -> one([0, 0, 1, 1, D div 2, D - 1, D, D + 1]).

%% Often one that matches the action, and another one, too.
event_for({Kind, Parts, Guard}, #{actions := Actions}) ->
    {_, Others, _} = one([A || A <- Actions, element(1, A) =:= Kind]),
    [P1, P2, P3] = [case Part of {lit, _} -> Part; _ -> Other end || {Part, Other} <- lists:zip(Parts, Others)],
    {Kind, {like(P1, kinds()), like(P2, [key()]), case P3 of {lit, _} -> like(P3, [1]); _ -> value(Guard) end}}.

like({lit, Term}, Others) -> case often(10) of true -> one(Others); false -> Term end;
like(_, Others) -> one(Others).

kinds() -> [a, b, c, q, r].

key() -> one([1, 1, 1, 2]).

value({Guard, _}) ->
    case often(50) of
        true -> one(case Guard of more -> [2, 3, 4]; even -> [2, 4]; one_or_three -> [1, 3] end);
        false -> value()
    end;
value(none) -> value().

value() -> one([1, 1, 2, 2, 3, 3, 4, 1.0, z]).

one(List) -> lists:nth(rand:uniform(length(List)), List).

often(Percent) -> rand:uniform(100) =< Percent.

%% Sentences.

%% Modes: `whole` has no `per`, `per` one that all actions bind, and `some` one that those bind with which a slice begins. In these,
%% each action has variables of its own, but for those of `leads` and `open`. In `shared` all actions of the main part have the same
%% names, in `same` those of the scope, too. `always` has to have an `over`, and `some` has none.
forms(shared) -> [{Scope, Main} || {Scope, Main} <- forms(whole), follows(Main), Main =/= open_counter];
forms(some) -> [{Scope, Main} || {Scope, Main} <- forms(whole), Main =/= always];
forms(_) -> [{Scope, Main} || Scope <- scopes(), Main <- mains()] ++ [{globally, never_within}].

scopes() -> [globally, before, behind, until, between].

mains() ->
    [never, always, leads, leads_within, leads_chain, leads_chain_within, precedes, precedes_within, precedes_after_chain,
     precedes_chain, precedes_chain_within, at_most, at_least, at_least_within, exactly, in_any, open_counter, open_keys, unique,
     increasing, strictly_increasing, alternates].

%% A variable of one action has its value in those behind it.
follows(Main) ->
    lists:member(Main, [leads, leads_within, leads_chain, leads_chain_within, open_counter, open_keys, never_within]).

property(Mode, Form) ->
    {D, Duration} = one([{10, "10 ns"}, {1000, "1 us"}, {2_000_000_000, "2 s"}]),
    Property = #{form => Form, mode => Mode, duration => D, within => Duration,
                 per => Mode =:= per orelse Mode =:= some orelse Mode =/= whole andalso often(30),
                 key => always,
                 %% In some, all actions are of one kind, and often coincide.
                 kinds => one([[recv, recv, recv, send, cast], [recv]]),
                 %% Some are the names that an expansion takes if they are free.
                 name => one(["N", "N", "Count", "Seen", "Times", "Last", "Open", "X", "Y"]),
                 over => case Form of
                             _ when Mode =:= some -> derived;
                             {_, always} -> one([all, receives]);
                             _ -> one([derived, derived, derived, all, all, receives])
                         end},
    {Sentence, Begins} = sentence(Form, Property),
    written(Property#{sentence => Sentence, begins => Begins}).

%% The text is drawn once: a smaller example has the same.
written(#{sentence := {Scope, Main}} = Property) ->
    Written = Property#{actions => actions(Main) ++ actions(Scope)},
    Written#{text => iolist_to_binary(write(Written))}.

%% An error: a slice begins with the event that is counted.
is_reached_at_once(globally, {at_least, 1, _, _}, #{per := true, over := derived}) -> true;
is_reached_at_once(globally, {exactly, 1, _}, #{per := true, over := derived}) -> true;
is_reached_at_once(_, _, _) -> false.

%% A sentence, and the actions with which its slices begin.
sentence({Of, Form} = Both, P) ->
    Scope = scope(Of, Form, P),
    Main = main(Form, P#{key := case lists:member(Of, [globally, before]) of true -> always; false -> sometimes end}),
    case ends_itself(Scope, Main) orelse is_reached_at_once(Scope, Main, P) of
        true -> sentence(Both, P);
        false -> {{Scope, Main}, slice_begins(Scope, Main)}
    end.

slice_begins({before, R}, Main) when element(1, Main) =:= at_least; element(1, Main) =:= exactly ->
    [R | slice_begins(globally, Main)];
slice_begins(Scope, Main) when Scope =:= globally; element(1, Scope) =:= before ->
    case Main of
        {precedes, _, [B | _], _} -> [B];
        {alternates, A, B} -> [A, B];
        {never_within, Q, _, _} -> [Q];
        _ -> [hd(actions(Main))]
    end;
slice_begins(Scope, _) -> [element(2, Scope)].

%% The action that ends something is not the one that it ends, or that begins it.
ends_itself(Scope, Main) ->
    Mains = actions(Main),
    case Scope of
        {before, R} -> lists:member(R, Mains);
        {_, Q, R} -> lists:member(R, [Q | Mains]);
        _ -> false
    end orelse case Main of
        {precedes, As, Bs, _} -> As -- Bs =/= As;
        {alternates, A, B} -> A =:= B;
        {open, _, A, B} -> A =:= B;
        _ -> false
    end.

scope(globally, _, _) -> globally;
scope(before, Form, P) -> {before, outer("R", P#{key := case lists:member(Form, [at_least, at_least_within, exactly]) of
                                                            true -> always;
                                                            false -> sometimes
                                                        end})};
scope(behind, _, P) -> {behind, outer("Q", P)};
scope(Kind, _, P) -> {Kind, outer("Q", P), outer("R", P#{key := sometimes})}.

%% The values of a scope are its own.
outer(Suffix, #{mode := shared} = P) -> outer(Suffix, P#{mode := whole});
outer(Suffix, P) -> distinct(case Suffix of "Q" -> q; "R" -> r end, action(Suffix, P)).

%% Often it is none of the others.
distinct(Term, {Kind, [P1, P2, P3], Guard}) -> {Kind, [one([P1, {lit, Term}]), P2, P3], Guard}.

main(Form, P) when Form =:= never; Form =:= always -> {Form, begins("", P)};
main(leads, P) -> {leads, [begins("", P)], [other(one(["", "", "B"]), P)], none};
main(leads_chain, P) -> {leads, begins_chain("A", P), chain("B", P), none};
main(precedes, P) -> {precedes, [other("", P)], [begins("B", P)], none};
main(precedes_after_chain, P) -> {precedes, chain("A", P), [begins("B", P)], none};
main(precedes_chain, P) -> {precedes, [other("", P)], begins_chain("B", P), none};
main(leads_within, #{duration := D} = P) -> setelement(4, main(leads, P), D);
main(leads_chain_within, #{duration := D} = P) -> setelement(4, main(leads_chain, P), D);
main(precedes_within, #{duration := D} = P) -> setelement(4, main(precedes, P), D);
main(precedes_chain_within, #{duration := D} = P) -> setelement(4, main(precedes_chain, P), D);
main(Form, P) when Form =:= at_most; Form =:= exactly -> {Form, one([0, 1, 1, 2, 3]), begins("", P)};
main(at_least, P) -> {at_least, one([1, 1, 2, 3]), begins("", P), none};
main(at_least_within, #{duration := D} = P) -> {at_least, one([1, 1, 2, 3]), begins("", P), D};
main(in_any, #{duration := D} = P) -> {in_any, one([0, 1, 1, 2, 3]), begins("", P), D};
main(open_counter, P) -> {open, one([1, 1, 2, 3]), begins("", P#{mode := whole}), distinct(b, other("B", P#{mode := whole}))};
main(open_keys, P) -> {open, one([1, 1, 2]), with_value("", P), distinct(b, with_value("", P#{key := sometimes}))};
main(unique, #{per := Per} = P) ->
    {Kind, [P1, P2, P3], Guard} = with_value("", P),
    A = {Kind, [one([P1, {var, 'Kind'}]), case Per of true -> P2; false -> one([P2, {var, 'K'}]) end, P3], Guard},
    Names = variables(A) -- ['K' || Per],
    {unique, one([[one(Names)], Names]), A};
main(increasing, #{name := N} = P) -> {increasing, weakly, list_to_atom(N), with_value("", P)};
main(strictly_increasing, #{name := N} = P) -> {increasing, strictly, list_to_atom(N), with_value("", P)};
main(alternates, P) -> {alternates, begins("", P), begins("B", P)};
main(never_within, #{duration := D} = P) -> {never_within, begins("", P), other(one(["", "", "B"]), P), D}.

%% Chains begin with one, two or three actions, of which the last ones may be the same.
begins_chain(Suffix, P) -> [begins(Suffix, P) | lists:nthtail(1, chain(Suffix, P))].

chain(Suffix, P) -> [other([$A - 1 + I || I > 1] ++ Suffix, P) || I <- lists:seq(1, one([1, 2, 2, 2, 3]))].

begins(Suffix, P) -> action(Suffix, P).
other(Suffix, P) -> action(Suffix, P#{key := sometimes}).

%% An action that binds the name of values.
with_value(Suffix, #{name := Value} = P) ->
    N = list_to_atom(Value ++ Suffix),
    {Kind, [P1, P2, _], _} = action(Suffix, P),
    {Kind, [P1, P2, {var, N}], one([none, none, {more, N}, {even, N}, {one_or_three, N}])}.

%% With `shared` variables, all have the same names.
action(Own, #{per := Per, mode := Mode, key := Key, kinds := Kinds, name := Value}) ->
    Suffix = case lists:member(Mode, [shared, same]) of true -> ""; false -> Own end,
    Name = fun(Text) -> {var, list_to_atom(Text ++ Suffix)} end,
    P2 = case Per of
        true when Mode =:= some, Key =:= sometimes -> one([{var, 'K'}, '_', {lit, 1}]);
        true -> {var, 'K'};
        false -> one(['_', '_', {lit, 1}, Name("K")])
    end,
    P3 = one(['_', {lit, 1}, Name(Value), Name(Value), Name(Value)]),
    Guard = case P3 of
        {var, N} -> one([none, none, none, {more, N}, {even, N}, {one_or_three, N}]);
        _ -> none
    end,
    {one(Kinds), [one([{lit, a}, {lit, a}, {lit, b}, {lit, b}, {lit, c}, Name("Kind"), '_']), P2, P3], Guard}.

%% Text.

text(#{text := Text}) -> Text.

-doc "A file with a sentence of each form, drawn with the process's random numbers.".
random_text(Mode) -> iolist_to_binary([text(property(Mode, Form)) || Form <- forms(Mode)]).

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

words({Scope, Main}, Duration) -> [words_of(Main, Duration), scope(Scope)].

scope(globally) -> "";
scope({before, R}) -> [" before ", write_action(R)];
scope({behind, Q}) -> [" after ", write_action(Q)];
scope({until, Q, R}) -> [" after ", write_action(Q), " until ", write_action(R)];
scope({between, Q, R}) -> [" between ", write_action(Q), " and ", write_action(R)].

words_of({never, A}, _) -> ["never ", write_action(A)];
words_of({always, A}, _) -> ["always ", write_action(A)];
words_of({leads, As, Bs, D}, Duration) -> ["always ", write_chain(As), " leads to ", write_chain(Bs), within(D, Duration)];
words_of({precedes, [A | As], Bs, D}, Duration) ->
    [[write_first(A), [[" then ", write_action(Next)] || Next <- As]], " precedes ", write_chain(Bs), within(D, Duration)];
words_of({at_most, N, A}, _) -> ["at most ", integer_to_list(N), " ", write_action(A)];
words_of({at_least, N, A, D}, Duration) -> ["at least ", integer_to_list(N), " ", write_action(A), within(D, Duration)];
words_of({exactly, N, A}, _) -> ["exactly ", integer_to_list(N), " ", write_action(A)];
words_of({in_any, N, A, _}, Duration) -> ["at most ", integer_to_list(N), " ", write_action(A), " in any ", Duration];
words_of({open, N, A, B}, _) -> ["at most ", integer_to_list(N), " open ", write_action(A), " until ", write_action(B)];
words_of({unique, Names, A}, _) -> ["unique ", lists:join(", ", [atom_to_list(Name) || Name <- Names]), " in ", write_action(A)];
words_of({increasing, strictly, V, A}, _) -> ["strictly increasing ", atom_to_list(V), " in ", write_action(A)];
words_of({increasing, weakly, V, A}, _) -> ["increasing ", atom_to_list(V), " in ", write_action(A)];
words_of({alternates, A, B}, _) -> [write_first(A), " alternates with ", write_action(B)];
words_of({never_within, Q, A, D}, Duration) -> ["never ", write_action(A), within(D, Duration), " after ", write_action(Q)].

write_chain(Actions) -> lists:join(" then ", [write_action(A) || A <- Actions]).

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
guard({one_or_three, N}) ->
    V = atom_to_list(N),
    one([[" when ", V, " =:= 1; ", V, " =:= 3"], [" when is_integer(", V, "), ", V, " =:= 1 orelse ", V, " =:= 3"]]).

part('_') -> "_";
part({lit, Term}) -> io_lib:format("~tw", [Term]);
part({var, Name}) -> atom_to_list(Name).
