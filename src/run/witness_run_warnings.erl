-module(witness_run_warnings).
-moduledoc "The texts of a run's warnings: what a log lacks, what was skipped, and what was not observed.".

-export([log_warnings/1, gap_warnings/1, time_warnings/1]).
-export([format_process/2, format_loss/2, format_orphans/2, format_crash/1, format_sensitive/1,
         format_missed/1, format_ended_looks/1]).

%% Gaps that a warning names.
-define(MAX_GAPS, 5).

%% Processes that are named.
-define(MAX_NAMED, 5).

-doc "The warnings with their codes. Each of them means that a verdict that was not reached cannot be relied on.".
-spec log_warnings(witness_offline:ended()) -> [{Code :: atom(), unicode:chardata()}].
log_warnings(#{hiding := Hiding, orphans := Orphans, skipped := Skipped, malformed := Malformed, lost := Lost} = Ended) ->
    [{orphans, format_log_orphans(Orphans)} || Orphans =/= []]
        ++ [{gaps, [format_count(Hiding, " gap", " gaps"),
                    " may hide the birth of a process that would have monitors"]} || Hiding > 0]
        ++ [{malformed, format_skipped(Skipped, Malformed)} || Skipped > 0]
        ++ [{lost, ~"the log was truncated before it was read to its end"} || Lost > 0]
        ++ [{unsorted, [format_count(Count, " line was", " lines were"), " read and not judged: a line that was not read may have an earlier time"]}
            || #{unsorted := Count} <- [Ended], Count > 0]
        ++ [{unsaved, ["the position was not saved: ", Text]} || #{unsaved := Text} <- [Ended]].

-doc """
The warnings about gaps: their processes and reasons. An undecided monitor that reads such a process reports the gap itself; other
monitors miss nothing.
""".
-spec gap_warnings(witness_offline:ended()) -> [{Code :: atom(), unicode:chardata()}].
gap_warnings(#{gaps := 0}) -> [];
gap_warnings(#{gaps := Gaps, missing := Missing}) ->
    Named = [[format_process(P, Signature), ": ", witness_text_verdict:gap(Reason)]
             || #{process := P, signature := Signature, reason := Reason} <- lists:sublist(Missing, ?MAX_GAPS)],
    [{gaps, [format_count(Gaps, " gap is", " gaps are"), " in the log: events are missing there: ", lists:join("; ", Named),
             ["; ..." || Gaps > length(Named)]]}].

-doc "The warning about times that go back within a process: deadlines are decided by them.".
-spec time_warnings(witness_offline:ended()) -> [{Code :: atom(), unicode:chardata()}].
time_warnings(#{back := {Place, Nanoseconds}}) ->
    [{times, ["the time at ", Place, " is before that of an earlier event of the same process (by at most ",
              witness_text:exact_duration(Nanoseconds), " in the log), and there are deadlines: if the lines are in no order, use --sort"]}];
time_warnings(#{}) -> [].

-doc "A process with the function that it was spawned with, if that is known.".
-spec format_process(witness_event:proc(), witness_event:signature() | mfa() | undefined) -> unicode:chardata().
format_process(P, undefined) -> witness_event:format_proc(P, witness_event:syntax([]));
format_process(P, {Module, Function, Args}) when is_list(Args) -> format_process(P, {Module, Function, length(Args)});
format_process(P, Function) ->
    Syntax = witness_event:syntax_of_function(Function),
    [witness_event:format_proc(P, Syntax), " (", witness_event:format_function(Function, Syntax), ")"].

format_log_orphans(Orphans) ->
    Named = [format_process(P, undefined) || {P, _} <- lists:sublist(Orphans, ?MAX_NAMED)],
    [format_count(length(Orphans), " process acts whose spawn is", " processes act whose spawns are"), " nowhere in the log: ",
     lists:join(", ", Named), [", ..." || length(Orphans) > ?MAX_NAMED], "; ",
     format_count(lists:sum([Count || {_, Count} <- Orphans]), " event was left out", " events were left out")].

format_skipped(Count, Named) ->
    [format_count(Count, " line was left out: ", " lines were left out: "), lists:join("; ", Named),
     ["; ..." || Count > length(Named)]].

-doc "`What` has ended too early, for this reason.".
-spec format_loss(What :: unicode:chardata(), Reason :: term()) -> unicode:chardata().
format_loss(What, Reason) -> [What, ": ", witness_event:format_reason(Reason, 400, witness_event:syntax_of_reason(Reason))].

-doc "Processes, the first of them with their functions, that may belong to a group.".
-spec format_orphans(Shown :: [{pid(), mfa() | undefined}], Count :: pos_integer()) -> unicode:chardata().
format_orphans(Shown, Count) ->
    Names = [format_process(P, Function) || {P, Function} <- Shown],
    ["it is not known whether ", integer_to_binary(Count), " running process", ["es" || Count > 1],
     " belong", ["s" || Count =:= 1], " to a group, since the process that spawned ", case Count of 1 -> "it"; _ -> "them" end,
     " has ended: ",
     lists:join(", ", Names), [", ..." || Count > length(Shown)],
     ". The groups are inconclusive; attach when these have ended, or use a property without `group`"].

-doc "How a system has crashed.".
-spec format_crash(witness_run_application:end_reason()) -> unicode:chardata().
format_crash(Reason) ->
    case witness_run_application:format_end(Reason) of
        undefined ->
            case witness_event:syntax_of_reason(Reason) of
                erlang -> ["the system ended with ", witness_event:format_term(Reason, 400)];
                elixir -> ["the system ended: ", witness_event:format_reason(Reason, 400, elixir)]
            end;
        Text -> Text
    end.

-doc "How many processes have set the flag `sensitive`.".
-spec format_sensitive(pos_integer()) -> unicode:chardata().
format_sensitive(1) -> ["a process has", format_hidden("it has")];
format_sensitive(N) -> [integer_to_list(N), " processes have", format_hidden("they have")].

format_hidden(Have) -> [" set the flag sensitive: nothing that ", Have, " done since then, or what was spawned then, was observed"].

-doc "How many verdicts of each kind were not reported one by one. A reader must know whether violations are among them.".
-spec format_missed(#{witness_monitor:verdict() => non_neg_integer()}) -> unicode:chardata().
format_missed(#{no := No, inconclusive := Undecided, yes := Yes}) ->
    Kinds = [format_count(N, One, Several) || {N, One, Several} <- [{No, " violation", " violations"},
                                                                    {Undecided, " undecided verdict", " undecided verdicts"},
                                                                    {Yes, " satisfied verdict", " satisfied verdicts"}], N > 0],
    [witness_text:list(Kinds), " more were counted, but are not shown: the connection, or the output here, was too slow for them"].

-doc """
What follows a limit of events that has ended an attached run: which checks have ended, too, although they need no events. Alone they
trace none.
""".
-spec format_ended_looks(#{system := term(), checks := [witness_check:name()], _ => _}) -> unicode:chardata().
format_ended_looks(#{system := System, checks := Checks}) ->
    Ended = [atom_to_binary(Check) || Check <- Checks, lists:member(Check, witness_check:system_checks())],
    case witness_run_attach:is_partial(System) andalso Ended of
        [_ | _] -> ["; ", witness_text:list(Ended), [" has" || length(Ended) =:= 1], [" have" || length(Ended) > 1],
                    " ended, too, and without other checks would need no events"];
        _ -> []
    end.

format_count(1, One, _) -> ["1", One];
format_count(Count, _, Many) -> [integer_to_list(Count), Many].
