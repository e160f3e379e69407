-module(witness_run_tally).
-moduledoc """
Counts for a run: monitors, verdicts and the actions that were taken, in total and for each property.

Pure: the run reports what has happened, and asks for the numbers of its summary and the resulting warnings.
""".

-export([new/1, add_properties/2, add_monitor/2, add_monitors/3, add_satisfied/4, add_undecided/4, is_reported/2,
         add_coverage/3, add_verdict/2, add_satisfied_monitors/5, verdicts/1, gaps/1, missing/1, is_trusted/1, summary/1,
         warnings/2, unmatched/1]).

-export_type([tally/0, missing/0]).

%% undecided: slices
%% vacuous: the vacuous ones among the verdicts; covered: bit `id' is set for an action that was taken.
-record(count, {monitors = 0 :: non_neg_integer(),
                verdicts = #{no => 0, yes => 0, inconclusive => 0} :: verdicts(),
                vacuous = 0 :: non_neg_integer(),
                covered = 0 :: non_neg_integer()}).

-record(tally, {properties :: [witness_run_maps:property()],
                counts = #{} :: #{witness_run_maps:key() => #count{}},
                verdicts = #{no => 0, yes => 0, inconclusive => 0} :: verdicts(),
                slices = 0 :: non_neg_integer(),
                undecided = #{} :: #{{witness_run_maps:key(), witness_monitor_instance:reason()} =>
                                       {Reported :: non_neg_integer(), Unreported :: non_neg_integer()}},
                gaps = #{} :: #{Reason :: term() => pos_integer()},
                missing = [] :: [missing()],
                crashes = 0 :: non_neg_integer()}).

-opaque tally() :: #tally{}.

-type verdicts() :: #{witness_monitor:verdict() => non_neg_integer()}.

-doc "A process with missing events.".
-type missing() :: #{process := witness_event:proc() | undefined, signature := witness_event:signature() | undefined,
                     reason := term(),
                     count := unknown}.

%% How many undecided slices of a property are reported one by one.
-define(MAX_REPORTED, 1000).
%% Reasons that are counted separately; crashes can have any reason.
-define(MAX_REASONS, 100).
%% Processes that are named in `missing'.
-define(MAX_MISSING, 20).
%% Properties without a monitor for which near signatures are looked for.
-define(MAX_COMPARED, 20).
%% Processes that are named in a warning.
-define(MAX_SHOWN, 5).

-doc "The counts of these properties, all 0.".
-spec new([witness_run_maps:property()]) -> tally().
new(Properties) -> #tally{properties = Properties}.

-doc "Adds further properties, with counts of 0.".
-spec add_properties([witness_run_maps:property()], tally()) -> tally().
add_properties(Properties, T = #tally{properties = Before}) -> T#tally{properties = Before ++ Properties}.

-doc "A monitor of this property was started.".
-spec add_monitor(witness_run_maps:key(), tally()) -> tally().
add_monitor(Key, T) -> add_monitors(Key, 1, T).

-doc "As many monitors of this property were started.".
-spec add_monitors(witness_run_maps:key(), non_neg_integer(), tally()) -> tally().
add_monitors(Key, N, T) -> update_count(Key, fun(C) -> C#count{monitors = C#count.monitors + N} end, T).

-doc "A monitor of this property has taken the actions of this bit mask.".
-spec add_coverage(witness_run_maps:key(), non_neg_integer(), tally()) -> tally().
add_coverage(Key, Mask, T) -> update_count(Key, fun(C) -> C#count{covered = C#count.covered bor Mask} end, T).

-doc "A verdict, of a monitor or of one of its slices.".
-spec add_verdict(witness:verdict(), tally()) -> tally().
add_verdict(V = #{verdict := Verdict, vacuous := Vacuous}, T = #tally{verdicts = Verdicts}) ->
    T1 = update_count(witness_run_maps:key(V), fun(C) -> count_verdicts(Verdict, 1, to_integer(Vacuous), C) end,
                      T#tally{verdicts = add_to(Verdict, 1, Verdicts)}),
    T1#tally{slices = T1#tally.slices + to_integer(maps:get(slice, V) =/= undefined),
             gaps = count_gap(V, 1, T1#tally.gaps), missing = add_missing(V, T1#tally.missing),
             crashes = T1#tally.crashes + to_integer(is_crash(V)),
             undecided = case V of
                 #{verdict := inconclusive, slice := Slice, reason := Reason} when Slice =/= undefined ->
                     count_undecided({1, 0}, {witness_run_maps:key(V), Reason}, T1#tally.undecided);
                 #{} -> T1#tally.undecided
             end}.

-doc "Whether a verdict is reported: of the undecided slices of a property only the first thousand are.".
-spec is_reported(witness:verdict(), tally()) -> boolean().
is_reported(#{verdict := inconclusive, slice := Slice} = V, #tally{undecided = Undecided}) when Slice =/= undefined ->
    Key = witness_run_maps:key(V),
    lists:sum([Reported || {Of, _} := {Reported, _} <- Undecided, Of =:= Key]) < ?MAX_REPORTED;
is_reported(_, _) -> true.

-doc "Counts slices of this property that were left undecided for this reason and are not reported one by one.".
-spec add_undecided(witness_run_maps:key(), witness_monitor_instance:reason(), pos_integer(), tally()) -> tally().
add_undecided(Key, Reason, N, T = #tally{verdicts = Verdicts, slices = Slices, gaps = Gaps, crashes = Crashes,
                                         undecided = Undecided}) ->
    Of = #{reason => Reason},
    T1 = update_count(Key, fun(C) -> count_verdicts(inconclusive, N, 0, C) end, T),
    T1#tally{verdicts = add_to(inconclusive, N, Verdicts), slices = Slices + N,
             gaps = count_gap(Of, N, Gaps), crashes = Crashes + N * to_integer(is_crash(Of)),
             undecided = count_undecided({0, N}, {Key, Reason}, Undecided)}.

count_undecided({Reported, Unreported}, {Key, Reason}, Undecided) ->
    Of = case map_size(Undecided) < ?MAX_REASONS orelse is_map_key({Key, Reason}, Undecided) of
        true -> {Key, Reason};
        false -> {Key, {crashed, various}}
    end,
    maps:update_with(Of, fun({A, B}) -> {A + Reported, B + Unreported} end, {Reported, Unreported}, Undecided).

-doc """
Counts monitors of this property that were started and satisfied, some of them vacuously, with all the actions that they have
taken. They make no further report.
""".
-spec add_satisfied_monitors(witness_run_maps:key(), Monitors :: pos_integer(), Vacuous :: non_neg_integer(),
                             Covered :: non_neg_integer(), tally()) -> tally().
add_satisfied_monitors(Key, N, Vacuous, Mask, T) ->
    add_satisfied(Key, {N, 0}, Vacuous, add_coverage(Key, Mask, add_monitors(Key, N, T))).

-doc "Counts satisfied monitors and slices of this property, some of them vacuous. They make no further report.".
-spec add_satisfied(witness_run_maps:key(), {Monitors :: non_neg_integer(), Slices :: non_neg_integer()},
                    Vacuous :: non_neg_integer(), tally()) -> tally().
add_satisfied(Key, {Monitors, OfSlices}, Vacuous, T = #tally{verdicts = Verdicts, slices = Slices}) ->
    N = Monitors + OfSlices,
    update_count(Key, fun(C) -> count_verdicts(yes, N, Vacuous, C) end,
                 T#tally{verdicts = add_to(yes, N, Verdicts), slices = Slices + OfSlices}).

count_verdicts(Verdict, N, Vacuous, C = #count{verdicts = Verdicts, vacuous = Before}) ->
    C#count{verdicts = add_to(Verdict, N, Verdicts), vacuous = Before + Vacuous}.

add_to(Verdict, N, Verdicts) -> maps:update_with(Verdict, fun(Before) -> Before + N end, Verdicts).

count_gap(#{reason := {gap, Reason}}, N, Gaps) -> maps:update_with(Reason, fun(Before) -> Before + N end, N, Gaps);
count_gap(_, _, Gaps) -> Gaps.

add_missing(#{reason := {gap, Reason}, process := P, signature := Signature}, Missing) when length(Missing) < ?MAX_MISSING ->
    One = #{process => P, signature => Signature, reason => Reason, count => unknown},
    case lists:member(One, Missing) of
        true -> Missing;
        false -> [One | Missing]
    end;
add_missing(_, Missing) -> Missing.

is_crash(#{reason := {crashed, _}}) -> true;
is_crash(_) -> false.

to_integer(true) -> 1;
to_integer(false) -> 0.

update_count(Key, Change, T = #tally{counts = Counts}) -> T#tally{counts = Counts#{Key => Change(count(Key, T))}}.

count(Key, #tally{counts = Counts}) -> maps:get(Key, Counts, #count{}).

-doc "The number of verdicts of each kind.".
-spec verdicts(tally()) -> #{witness_monitor:verdict() => non_neg_integer()}.
verdicts(#tally{verdicts = Verdicts}) -> Verdicts.

-doc "The number of monitors and slices that have missed events.".
-spec gaps(tally()) -> non_neg_integer().
gaps(#tally{gaps = Gaps}) -> maps:fold(fun(_, N, Sum) when is_integer(N) -> Sum + N end, 0, Gaps).

-doc "The first processes with monitors that have missed events, and the reasons.".
-spec missing(tally()) -> [missing()].
missing(#tally{missing = Missing}) -> lists:reverse(Missing).

-doc "Whether something was monitored, no monitor has missed events, and none has crashed.".
-spec is_trusted(tally()) -> boolean().
is_trusted(T = #tally{gaps = Gaps, crashes = Crashes}) -> map_size(Gaps) =:= 0 andalso Crashes =:= 0 andalso monitor_count(T) > 0.

monitor_count(#tally{counts = Counts}) -> lists:sum([N || #count{monitors = N} <- maps:values(Counts)]).

-doc "The part of `t:witness:summary/0` that is counted here.".
-spec summary(tally()) -> map().
summary(T = #tally{counts = Counts, verdicts = Verdicts, slices = Slices}) ->
    #{verdicts => Verdicts, slices => Slices, undecided => undecided_counts(T), gaps => gaps(T), monitored => monitor_count(T),
      vacuous => lists:sum([N || #count{vacuous = N} <- maps:values(Counts)]), coverage => coverage(T),
      properties => properties(T)}.

%% A property that had no monitor has a warning of its own.
properties(T = #tally{properties = Properties}) ->
    [#{spec => Spec, name => Name, version => Version, monitored => Monitors, verdicts => Verdicts, vacuous => Vacuous}
     || #{key := Key = {Spec, Name, Version}} <- Properties,
        #count{monitors = Monitors, verdicts = Verdicts, vacuous = Vacuous} <- [count(Key, T)], Monitors > 0].

undecided_counts(#tally{undecided = Undecided}) ->
    [#{spec => Spec, name => Name, version => Version, reason => Reason, count => Reported + Unreported, told => Reported}
     || {{Spec, Name, Version}, Reason} := {Reported, Unreported} <- maps:iterator(Undecided, ordered)].

coverage(T = #tally{properties = Properties}) ->
    [#{spec => Spec, name => Name, version => Version,
       actions => [(maps:remove(id, A))#{taken => Mask band (1 bsl Id) =/= 0} || A = #{id := Id} <- Actions]}
     || #{key := Key = {Spec, Name, Version}, actions := Actions = [_ | _]} <- Properties,
        #count{monitors = Monitors, covered = Mask} <- [count(Key, T)], Monitors > 0].

-doc """
Warnings about missing events, properties that matched no process, and properties with vacuous verdicts only. `Seen` gives the
signatures that there were.
""".
-spec warnings(tally(), Seen :: fun(() -> [witness_instrument:sight()])) -> [witness:warning()].
warnings(T = #tally{properties = Properties, gaps = Gaps}, Seen) ->
    [#{code => warning_code(Reason),
       text => text([format_misses(N), witness_text_verdict:gap(Reason), format_processes(Reason, T)])}
     || Reason := N <- maps:iterator(Gaps, ordered)]
    ++ unmonitored([P || #{key := Key} = P <- Properties, (count(Key, T))#count.monitors =:= 0], Seen)
    ++ unread([P#{names := Among} || #{among := [_ | _] = Among} = P <- Properties], Seen)
    ++ [#{code => vacuous, text => text([format_property(Key), format_vacuous(N), "no action but the birth has ever matched"])}
        || #{key := Key} <- Properties,
           #count{verdicts = #{no := 0, inconclusive := 0, yes := N}, vacuous = N} <- [count(Key, T)], N > 0].

unmonitored([], _) -> [];
unmonitored(Properties, Seen) ->
    Sights = Seen(),
    [#{code => nothing_monitored,
       text => text([format_property(Key), " monitored nothing: no process had a signature that matches ", Signature,
                     %% To compare names takes time.
                     [witness_run_nearest:format(maps:get(names, Property, []), Sights) || N =< ?MAX_COMPARED]])}
     || {N, #{key := Key, signature := Signature} = Property} <- lists:enumerate(Properties)].

%% A property about some of all processes always has a monitor.
unread([], _) -> [];
unread(Properties, Seen) ->
    Sights = Seen(),
    unmonitored([P || #{names := Names} = P <- Properties,
                      not lists:any(fun(Sight) -> witness_run_nearest:is_named(Sight, Names) end, Sights)], fun() -> Sights end).

-doc """
Warnings about properties that had a monitor, and no action of them has matched. An action that violates by itself should never match: a
property without others is none of them.
""".
-spec unmatched(tally()) -> [witness:warning()].
unmatched(T) ->
    [#{code => vacuous, text => text([format_property({Spec, Name, Version}), " says nothing here: none of its actions has ever matched"])}
     || #{spec := Spec, name := Name, version := Version, actions := Actions} <- coverage(T),
        not lists:any(fun(#{taken := IsTaken}) -> IsTaken end, Actions),
        lists:any(fun(#{decides := Decides}) -> Decides =/= no end, Actions)].

%% A limit that was reached, a process that has set its flag `sensitive', or one that a signal has ended with inline monitors in it.
warning_code(Reason) when Reason =:= memory; Reason =:= message_size; Reason =:= rate; Reason =:= sensitive -> Reason;
warning_code(Reason) when Reason =:= signal; Reason =:= signal_reason; Reason =:= signal_state -> signal;
warning_code(_) -> gap.

format_misses(1) -> "a monitor misses events: ";
format_misses(N) -> [integer_to_list(N), " monitors or slices miss events: "].

%% Names the first of them.
format_processes(Reason, #tally{missing = Missing}) ->
    Named = [witness_run_warnings:format_process(P, Signature)
             || #{process := P, signature := Signature, reason := Of} <- lists:reverse(Missing), P =/= undefined, Of =:= Reason],
    case lists:sublist(Named, ?MAX_SHOWN) of
        [] -> [];
        Shown -> [": ", lists:join(", ", Shown), [", ..." || length(Named) > ?MAX_SHOWN]]
    end.

format_vacuous(1) -> " has a vacuous verdict only: ";
format_vacuous(N) -> [" has vacuous verdicts only, ", integer_to_list(N), " of them: "].

format_property({Spec, Name, Version}) ->
    [Spec, [[" (", Name, ")"] || Name =/= undefined], [[", version ", integer_to_list(Version), ","] || Version > 1]].

text(Chars) -> unicode:characters_to_binary(Chars).
