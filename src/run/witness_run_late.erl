-module(witness_run_late).
-moduledoc """
Which answers came late: to a call that its process had given up (`m:witness_check_late`). Pure.

*Invariant:* a violation is a call that its process has given up without an answer, and the answer was sent. If there may be one that
is not known, a call that was given up is undecided.
""".

-export([new/0, add/3, conclude/2]).

-export_type([late/0]).

%% given_up: what the processes have reported that have given calls up, with these calls; waiting: those that wait for answers when
%% observation stops; more: whether there were more answers than are kept
-record(late, {given_up = [] :: [{#{reference() => witness_check_late:call()}, reported()}],
               waiting = [] :: [reported()],
               answers = #{} :: #{reference() => {witness_event:proc(), witness_event:ts()}},
               more = false :: boolean()}).

-opaque late() :: #late{}.

-type reported() :: {witness_monitor_instance:outcome(), witness_run_monitors:meta()}.

-define(MAX_ANSWERS, 100_000).
-define(SERVER_CHARACTERS, 80).

-doc "No report.".
-spec new() -> late().
new() -> #late{}.

-doc "Takes the report of a process: it is judged at the end (`keep`), or its process has given no call up.".
-spec add(witness_monitor_instance:outcome(), witness_run_monitors:meta(), late()) -> {keep | satisfied, late()}.
add(#{info := undefined}, _, L) -> {satisfied, L};
add(#{info := #{given_up := Calls, waits := Waits, answers := Sent, more := More}} = Outcome, #{process := P} = Meta, L) ->
    #late{given_up = GivenUp, waiting = Waiting} = L1 = add_answers(P, Sent, L#late{more = L#late.more orelse More}),
    if
        Waits -> {keep, L1#late{waiting = [{Outcome, Meta} | Waiting]}};
        map_size(Calls) > 0 -> {keep, L1#late{given_up = [{Calls, {Outcome, Meta}} | GivenUp]}};
        true -> {satisfied, L1}
    end.

add_answers(_, Sent, L = #late{answers = Answers}) when map_size(Answers) + map_size(Sent) > ?MAX_ANSWERS -> L#late{more = true};
add_answers(P, Sent, L = #late{answers = Answers}) ->
    L#late{answers = maps:merge(Answers, #{Call => {P, Time} || Call := Time <- Sent})}.

-doc "What is reported at the end. `Missing`: why there may be answers that are not known.".
-spec conclude(Missing :: none | witness_monitor_instance:reason(), late()) ->
    [{witness_monitor_instance:outcome() | #{note := binary(), _ => _}, witness_run_monitors:meta()}].
conclude(Missing, #late{given_up = GivenUp, waiting = Waiting, answers = Answers, more = More}) ->
    Unknown = case More of true when Missing =:= none -> {gap, memory}; _ -> Missing end,
    [judge(Calls, Reported, Unknown, Answers) || {Calls, Reported} <- lists:reverse(GivenUp)]
        ++ [undecided(stopped, Reported) || Reported <- lists:reverse(Waiting)].

undecided(Reason, {Outcome, Meta}) -> {Outcome#{verdict := inconclusive, reason := Reason, info := undefined}, Meta}.

judge(Calls, {Outcome, Meta} = Reported, Unknown, Answers) ->
    case lists:sort([{Asked, To, By, Answered} || Call := {To, Asked} <- Calls, #{Call := {By, Answered}} <- [Answers]]) of
        [] when Unknown =:= none -> {Outcome#{info := undefined}, Meta};
        [] -> undecided(Unknown, Reported);
        [{_, _, By, _} = First | Others] ->
            Syntax = witness_event:syntax_of_function(maps:get(signature, Meta, undefined)),
            {Outcome#{verdict := no, info := #{processes => [By]}, note => note(First, length(Others), Syntax)}, Meta}
    end.

note({Asked, To, By, Answered}, More, Syntax) ->
    iolist_to_binary([~"it had given up its call of ", witness_event:format_term(To, ?SERVER_CHARACTERS, Syntax), ~" when the answer came",
                      [[~" from ", witness_event:format_proc(By, Syntax)] || By =/= To],
                      [[~", ", witness_text:duration(Answered - Asked), ~" after the call"] || is_integer(Asked), is_integer(Answered)],
                      [[~"; so it was with ", witness_text:count(More, ~"other call", ~"other calls")] || More > 0]]).
