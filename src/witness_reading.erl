-module(witness_reading).
-moduledoc "The warnings about a log that was read: what it lacks, and what was skipped.".

-export([missing/1, gaps/1]).

%% Gaps that a warning names.
-define(GAPS, 5).

%% Processes that are named.
-define(NAMED, 5).

-doc "The warnings with their codes. Each of them means that a verdict that was not reached cannot be relied on.".
-spec missing(witness_offline:ended()) -> [{Code :: atom(), unicode:chardata()}].
missing(#{hiding := Hiding, orphans := Orphans, skipped := Skipped, malformed := Malformed, lost := Lost} = Ended) ->
    [{orphans, orphans(Orphans)} || Orphans =/= []]
        ++ [{gaps, [count(Hiding, " gap", " gaps"), " may hide the birth of a process that would have monitors"]} || Hiding > 0]
        ++ [{malformed, skipped(Skipped, Malformed)} || Skipped > 0]
        ++ [{lost, ~"the log was truncated before it was read to its end"} || Lost > 0]
        ++ [{unsaved, ["the position was not saved: ", Text]} || #{unsaved := Text} <- [Ended]].

-doc """
The warnings about gaps: their processes and reasons. An undecided monitor that reads such a process reports the gap itself; other
monitors miss nothing.
""".
-spec gaps(witness_offline:ended()) -> [{Code :: atom(), unicode:chardata()}].
gaps(#{gaps := 0}) -> [];
gaps(#{gaps := Gaps, missing := Missing}) ->
    Named = [[witness_event:format_proc(P), called(Signature), ": ", witness_text_verdict:gap(Reason)]
             || #{process := P, signature := Signature, reason := Reason} <- lists:sublist(Missing, ?GAPS)],
    [{gaps, [count(Gaps, " gap is", " gaps are"), " in the log: events are missing there: ", lists:join("; ", Named),
             ["; ..." || Gaps > length(Named)]]}].

called(undefined) -> [];
called({Module, Function, Args}) when is_list(Args) -> called({Module, Function, length(Args)});
called({_, _, _} = Function) -> [" (", witness_event:format_function(Function), ")"].

orphans(Orphans) ->
    Named = [witness_event:format_proc(P) || {P, _} <- lists:sublist(Orphans, ?NAMED)],
    [count(length(Orphans), " process acts whose spawn is", " processes act whose spawns are"), " nowhere in the log: ",
     lists:join(", ", Named), [", ..." || length(Orphans) > ?NAMED], "; ",
     count(lists:sum([Count || {_, Count} <- Orphans]), " event was left out", " events were left out")].

skipped(Count, Named) ->
    [count(Count, " line was left out: ", " lines were left out: "), lists:join("; ", Named),
     ["; ..." || Count > length(Named)]].

count(1, One, _) -> ["1", One];
count(Count, _, Many) -> [integer_to_list(Count), Many].
