-module(witness_tally).
-moduledoc """
What a run counts: monitors, verdicts and the actions that were taken, in all and for each property.

Pure: the run says what has happened, and asks for the numbers of its summary and the warnings that follow from them.
""".

-export([new/1, add/2, started/2, covered/3, verdict/2, satisfied/5, verdicts/1, gaps/1, trusted/1, summary/1, warnings/1]).

-export_type([tally/0]).

%% vacuous: verdicts, of these vacuous; covered: bit `id' is set for an action that was taken.
-record(count, {monitors = 0 :: non_neg_integer(),
                verdicts = 0 :: non_neg_integer(),
                vacuous = 0 :: non_neg_integer(),
                covered = 0 :: non_neg_integer()}).

-record(tally, {properties :: [witness_instrumentation:property()],
                counts = #{} :: #{witness_instrumentation:key() => #count{}},
                verdicts = #{no => 0, yes => 0, inconclusive => 0} :: #{witness_monitor:verdict() => non_neg_integer()},
                slices = 0 :: non_neg_integer(),
                gaps = #{} :: #{Reason :: term() => pos_integer()},
                crashes = 0 :: non_neg_integer()}).

-opaque tally() :: #tally{}.

-doc "Nothing has happened yet to these properties.".
-spec new([witness_instrumentation:property()]) -> tally().
new(Properties) -> #tally{properties = Properties}.

-doc "Further properties, which nothing has happened to.".
-spec add([witness_instrumentation:property()], tally()) -> tally().
add(Properties, T = #tally{properties = Before}) -> T#tally{properties = Before ++ Properties}.

-doc "A monitor of this property was started.".
-spec started(witness_instrumentation:key(), tally()) -> tally().
started(Key, T) -> update(Key, fun(C) -> C#count{monitors = C#count.monitors + 1} end, T).

-doc "A monitor of this property has taken the actions of this bit mask.".
-spec covered(witness_instrumentation:key(), non_neg_integer(), tally()) -> tally().
covered(Key, Mask, T) -> update(Key, fun(C) -> C#count{covered = C#count.covered bor Mask} end, T).

-doc "A verdict, of a monitor or of one of its slices.".
-spec verdict(witness:verdict(), tally()) -> tally().
verdict(V = #{verdict := Verdict, vacuous := Vacuous}, T = #tally{verdicts = Verdicts}) ->
    Count = fun(C) ->
        C#count{verdicts = C#count.verdicts + 1, vacuous = C#count.vacuous + one(Vacuous)}
    end,
    Counted = maps:update_with(Verdict, fun(N) -> N + 1 end, Verdicts),
    T1 = update(witness_instrumentation:key(V), Count, T#tally{verdicts = Counted}),
    T1#tally{slices = T1#tally.slices + one(maps:get(slice, V) =/= undefined),
             gaps = gap(V, T1#tally.gaps), crashes = T1#tally.crashes + one(crashed(V))}.

-doc """
So many monitors of this property were started and satisfied, some of them vacuously, with all the actions that they have taken,
of which there is nothing more to tell.
""".
-spec satisfied(witness_instrumentation:key(), Monitors :: pos_integer(), Vacuous :: non_neg_integer(), Covered :: non_neg_integer(),
                tally()) -> tally().
satisfied(Key, N, Vacuous, Mask, T = #tally{verdicts = Verdicts}) ->
    Count = fun(C) ->
        C#count{monitors = C#count.monitors + N, verdicts = C#count.verdicts + N, vacuous = C#count.vacuous + Vacuous,
                covered = C#count.covered bor Mask}
    end,
    update(Key, Count, T#tally{verdicts = maps:update_with(yes, fun(Yes) -> Yes + N end, Verdicts)}).

gap(#{reason := {gap, Reason}}, Gaps) -> maps:update_with(Reason, fun(N) -> N + 1 end, 1, Gaps);
gap(_, Gaps) -> Gaps.

crashed(#{reason := {crashed, _}}) -> true;
crashed(_) -> false.

one(true) -> 1;
one(false) -> 0.

update(Key, Change, T = #tally{counts = Counts}) -> T#tally{counts = Counts#{Key => Change(count(Key, T))}}.

count(Key, #tally{counts = Counts}) -> maps:get(Key, Counts, #count{}).

-doc "How many verdicts of each kind there were.".
-spec verdicts(tally()) -> #{witness_monitor:verdict() => non_neg_integer()}.
verdicts(#tally{verdicts = Verdicts}) -> Verdicts.

-doc "How many monitors and slices have missed events.".
-spec gaps(tally()) -> non_neg_integer().
gaps(#tally{gaps = Gaps}) -> maps:fold(fun(_, N, Sum) when is_integer(N) -> Sum + N end, 0, Gaps).

-doc "Whether something was monitored, no monitor has missed events, and none has crashed.".
-spec trusted(tally()) -> boolean().
trusted(T = #tally{gaps = Gaps, crashes = Crashes}) -> map_size(Gaps) =:= 0 andalso Crashes =:= 0 andalso monitored(T) > 0.

monitored(#tally{counts = Counts}) -> lists:sum([N || #count{monitors = N} <- maps:values(Counts)]).

-doc "The part of `t:witness:summary/0` that is counted here.".
-spec summary(tally()) -> map().
summary(T = #tally{counts = Counts, verdicts = Verdicts, slices = Slices}) ->
    #{verdicts => Verdicts, slices => Slices, gaps => gaps(T), monitored => monitored(T),
      vacuous => lists:sum([N || #count{vacuous = N} <- maps:values(Counts)]), coverage => coverage(T)}.

%% A property that had no monitor has a warning of its own.
coverage(T = #tally{properties = Properties}) ->
    [#{spec => Spec, name => Name, version => Version,
       actions => [(maps:remove(id, A))#{taken => Mask band (1 bsl Id) =/= 0} || A = #{id := Id} <- Actions]}
     || #{key := Key = {Spec, Name, Version}, actions := Actions = [_ | _]} <- Properties,
        #count{monitors = Monitors, covered = Mask} <- [count(Key, T)], Monitors > 0].

-doc "What is missing, properties that no process met, and those that say nothing of the processes that they met.".
-spec warnings(tally()) -> [witness:warning()].
warnings(T = #tally{properties = Properties, gaps = Gaps}) ->
    [#{code => code(Reason), text => text([missing(N), witness_text_verdict:gap(Reason)])}
     || Reason := N <- maps:iterator(Gaps, ordered)]
    ++ [#{code => nothing_monitored,
       text => text([describe(Key), " monitored nothing: no process had a signature that matches ", Signature])}
     || #{key := Key, signature := Signature} <- Properties, (count(Key, T))#count.monitors =:= 0]
    ++ [#{code => vacuous, text => text([describe(Key), all(N), "no action but the birth has ever matched"])}
        || #{key := Key} <- Properties, #count{verdicts = N, vacuous = N} <- [count(Key, T)], N > 0].

%% A limit that has struck, or a process that has hidden itself.
code(Reason) when Reason =:= memory; Reason =:= message_size; Reason =:= rate; Reason =:= sensitive -> Reason;
code(_) -> gap.

missing(1) -> "a monitor misses events: ";
missing(N) -> [integer_to_list(N), " monitors or slices miss events: "].

all(1) -> " has a vacuous verdict only: ";
all(N) -> [" has vacuous verdicts only, ", integer_to_list(N), " of them: "].

describe({Spec, Name, Version}) ->
    [Spec, [[" (", Name, ")"] || Name =/= undefined], [[", version ", integer_to_list(Version), ","] || Version > 1]].

text(Chars) -> unicode:characters_to_binary(Chars).
