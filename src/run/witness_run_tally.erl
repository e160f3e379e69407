-module(witness_run_tally).
-moduledoc """
Counts for a run: monitors, verdicts and the actions that were taken, in total and for each property.

Pure: the run reports what has happened, and asks for the numbers of its summary and the resulting warnings.
""".

-export([new/1, add/2, started/2, started/3, counted/4, undecided/4, is_told/2, covered/3, verdict/2, satisfied/5, verdicts/1, gaps/1,
         missing/1, trusted/1, summary/1, warnings/1]).

-export_type([tally/0, missing/0]).

%% undecided: slices
%% vacuous: the vacuous ones among the verdicts; covered: bit `id' is set for an action that was taken.
-record(count, {monitors = 0 :: non_neg_integer(),
                verdicts = 0 :: non_neg_integer(),
                vacuous = 0 :: non_neg_integer(),
                covered = 0 :: non_neg_integer()}).

-record(tally, {properties :: [witness_run_maps:property()],
                counts = #{} :: #{witness_run_maps:key() => #count{}},
                verdicts = #{no => 0, yes => 0, inconclusive => 0} :: #{witness_monitor:verdict() => non_neg_integer()},
                slices = 0 :: non_neg_integer(),
                undecided = #{} :: #{{witness_run_maps:key(), witness_monitor_instance:reason()} => {Told :: non_neg_integer(), Untold :: non_neg_integer()}},
                gaps = #{} :: #{Reason :: term() => pos_integer()},
                missing = [] :: [missing()],
                crashes = 0 :: non_neg_integer()}).

-opaque tally() :: #tally{}.

-doc "A process with missing events.".
-type missing() :: #{process := witness_event:proc() | undefined, signature := witness_event:signature() | undefined, reason := term(),
                     count := unknown}.

%% Undecided slices of a property that are reported one by one.
-define(TOLD, 1000).
%% Reasons that are counted separately; crashes can have any reason.
-define(REASONS, 100).
%% Processes that are named in `missing'.
-define(NAMED, 20).
%% Processes that are named in a warning.
-define(SHOWN, 5).

-doc "The counts of these properties, all 0.".
-spec new([witness_run_maps:property()]) -> tally().
new(Properties) -> #tally{properties = Properties}.

-doc "Adds further properties, with counts of 0.".
-spec add([witness_run_maps:property()], tally()) -> tally().
add(Properties, T = #tally{properties = Before}) -> T#tally{properties = Before ++ Properties}.

-doc "A monitor of this property was started.".
-spec started(witness_run_maps:key(), tally()) -> tally().
started(Key, T) -> started(Key, 1, T).

-doc "As many monitors of this property were started.".
-spec started(witness_run_maps:key(), non_neg_integer(), tally()) -> tally().
started(Key, N, T) -> update(Key, fun(C) -> C#count{monitors = C#count.monitors + N} end, T).

-doc "A monitor of this property has taken the actions of this bit mask.".
-spec covered(witness_run_maps:key(), non_neg_integer(), tally()) -> tally().
covered(Key, Mask, T) -> update(Key, fun(C) -> C#count{covered = C#count.covered bor Mask} end, T).

-doc "A verdict, of a monitor or of one of its slices.".
-spec verdict(witness:verdict(), tally()) -> tally().
verdict(V = #{verdict := Verdict, vacuous := Vacuous}, T = #tally{verdicts = Verdicts}) ->
    Count = fun(C) ->
        C#count{verdicts = C#count.verdicts + 1, vacuous = C#count.vacuous + one(Vacuous)}
    end,
    Counted = maps:update_with(Verdict, fun(N) -> N + 1 end, Verdicts),
    T1 = update(witness_run_maps:key(V), Count, T#tally{verdicts = Counted}),
    T1#tally{slices = T1#tally.slices + one(maps:get(slice, V) =/= undefined),
             gaps = gap(V, 1, T1#tally.gaps), missing = misses(V, T1#tally.missing), crashes = T1#tally.crashes + one(crashed(V)),
             undecided = case V of
                 #{verdict := inconclusive, slice := Slice, reason := Reason} when Slice =/= undefined ->
                     left({1, 0}, {witness_run_maps:key(V), Reason}, T1#tally.undecided);
                 #{} -> T1#tally.undecided
             end}.

-doc "Whether a verdict is reported: of the undecided slices of a property only the first thousand are.".
-spec is_told(witness:verdict(), tally()) -> boolean().
is_told(#{verdict := inconclusive, slice := Slice} = V, #tally{undecided = Undecided}) when Slice =/= undefined ->
    Key = witness_run_maps:key(V),
    lists:sum([Told || {Of, _} := {Told, _} <- Undecided, Of =:= Key]) < ?TOLD;
is_told(_, _) -> true.

-doc "Counts slices of this property that were left undecided for this reason and are not reported one by one.".
-spec undecided(witness_run_maps:key(), witness_monitor_instance:reason(), pos_integer(), tally()) -> tally().
undecided(Key, Reason, N, T = #tally{verdicts = Verdicts, slices = Slices, gaps = Gaps, crashes = Crashes, undecided = Undecided}) ->
    Of = #{reason => Reason},
    T1 = update(Key, fun(C) -> C#count{verdicts = C#count.verdicts + N} end, T),
    T1#tally{verdicts = maps:update_with(inconclusive, fun(Before) -> Before + N end, Verdicts), slices = Slices + N,
             gaps = gap(Of, N, Gaps), crashes = Crashes + N * one(crashed(Of)), undecided = left({0, N}, {Key, Reason}, Undecided)}.

left({Told, Untold}, {Key, Reason}, Undecided) ->
    Of = case map_size(Undecided) < ?REASONS orelse is_map_key({Key, Reason}, Undecided) of
        true -> {Key, Reason};
        false -> {Key, {crashed, various}}
    end,
    maps:update_with(Of, fun({A, B}) -> {A + Told, B + Untold} end, {Told, Untold}, Undecided).

-doc """
Counts monitors of this property that were started and satisfied, some of them vacuously, with all the actions that they have
taken. They make no further report.
""".
-spec satisfied(witness_run_maps:key(), Monitors :: pos_integer(), Vacuous :: non_neg_integer(), Covered :: non_neg_integer(),
                tally()) -> tally().
satisfied(Key, N, Vacuous, Mask, T) ->
    counted(Key, {N, 0}, Vacuous, covered(Key, Mask, started(Key, N, T))).

-doc "Counts satisfied monitors and slices of this property, some of them vacuous. They make no further report.".
-spec counted(witness_run_maps:key(), {Monitors :: non_neg_integer(), Slices :: non_neg_integer()}, Vacuous :: non_neg_integer(),
              tally()) -> tally().
counted(Key, {Monitors, OfSlices}, Vacuous, T = #tally{verdicts = Verdicts, slices = Slices}) ->
    N = Monitors + OfSlices,
    Count = fun(C) -> C#count{verdicts = C#count.verdicts + N, vacuous = C#count.vacuous + Vacuous} end,
    update(Key, Count, T#tally{verdicts = maps:update_with(yes, fun(Yes) -> Yes + N end, Verdicts), slices = Slices + OfSlices}).

gap(#{reason := {gap, Reason}}, N, Gaps) -> maps:update_with(Reason, fun(Before) -> Before + N end, N, Gaps);
gap(_, _, Gaps) -> Gaps.

misses(#{reason := {gap, Reason}, process := P, signature := Signature}, Missing) when length(Missing) < ?NAMED ->
    One = #{process => P, signature => Signature, reason => Reason, count => unknown},
    case lists:member(One, Missing) of
        true -> Missing;
        false -> [One | Missing]
    end;
misses(_, Missing) -> Missing.

crashed(#{reason := {crashed, _}}) -> true;
crashed(_) -> false.

one(true) -> 1;
one(false) -> 0.

update(Key, Change, T = #tally{counts = Counts}) -> T#tally{counts = Counts#{Key => Change(count(Key, T))}}.

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
-spec trusted(tally()) -> boolean().
trusted(T = #tally{gaps = Gaps, crashes = Crashes}) -> map_size(Gaps) =:= 0 andalso Crashes =:= 0 andalso monitored(T) > 0.

monitored(#tally{counts = Counts}) -> lists:sum([N || #count{monitors = N} <- maps:values(Counts)]).

-doc "The part of `t:witness:summary/0` that is counted here.".
-spec summary(tally()) -> map().
summary(T = #tally{counts = Counts, verdicts = Verdicts, slices = Slices}) ->
    #{verdicts => Verdicts, slices => Slices, undecided => undecided(T), gaps => gaps(T), monitored => monitored(T),
      vacuous => lists:sum([N || #count{vacuous = N} <- maps:values(Counts)]), coverage => coverage(T)}.

undecided(#tally{undecided = Undecided}) ->
    [#{spec => Spec, name => Name, version => Version, reason => Reason, count => Told + Untold, told => Told}
     || {{Spec, Name, Version}, Reason} := {Told, Untold} <- maps:iterator(Undecided, ordered)].

%% A property that had no monitor has a warning of its own.
coverage(T = #tally{properties = Properties}) ->
    [#{spec => Spec, name => Name, version => Version,
       actions => [(maps:remove(id, A))#{taken => Mask band (1 bsl Id) =/= 0} || A = #{id := Id} <- Actions]}
     || #{key := Key = {Spec, Name, Version}, actions := Actions = [_ | _]} <- Properties,
        #count{monitors = Monitors, covered = Mask} <- [count(Key, T)], Monitors > 0].

-doc "Warnings about missing events, properties that matched no process, and properties with vacuous verdicts only.".
-spec warnings(tally()) -> [witness:warning()].
warnings(T = #tally{properties = Properties, gaps = Gaps}) ->
    [#{code => code(Reason), text => text([miss(N), witness_text_verdict:gap(Reason), named(Reason, T)])}
     || Reason := N <- maps:iterator(Gaps, ordered)]
    ++ [#{code => nothing_monitored,
       text => text([describe(Key), " monitored nothing: no process had a signature that matches ", Signature])}
     || #{key := Key, signature := Signature} <- Properties, (count(Key, T))#count.monitors =:= 0]
    ++ [#{code => vacuous, text => text([describe(Key), all(N), "no action but the birth has ever matched"])}
        || #{key := Key} <- Properties, #count{verdicts = N, vacuous = N} <- [count(Key, T)], N > 0].

%% A limit that was reached, or a process that has set its flag `sensitive'.
code(Reason) when Reason =:= memory; Reason =:= message_size; Reason =:= rate; Reason =:= sensitive -> Reason;
code(_) -> gap.

miss(1) -> "a monitor misses events: ";
miss(N) -> [integer_to_list(N), " monitors or slices miss events: "].

%% Names the first of them.
named(Reason, #tally{missing = Missing}) ->
    Named = [[witness_event:format_proc(P), called(Signature)]
             || #{process := P, signature := Signature, reason := Of} <- lists:reverse(Missing), P =/= undefined, Of =:= Reason],
    case lists:sublist(Named, ?SHOWN) of
        [] -> [];
        Shown -> [": ", lists:join(", ", Shown), [", ..." || length(Named) > ?SHOWN]]
    end.

called(undefined) -> [];
called({Module, Function, Args}) when is_list(Args) -> called({Module, Function, length(Args)});
called(Function) -> [" (", witness_event:format_function(Function), ")"].

all(1) -> " has a vacuous verdict only: ";
all(N) -> [" has vacuous verdicts only, ", integer_to_list(N), " of them: "].

describe({Spec, Name, Version}) ->
    [Spec, [[" (", Name, ")"] || Name =/= undefined], [[", version ", integer_to_list(Version), ","] || Version > 1]].

text(Chars) -> unicode:characters_to_binary(Chars).
