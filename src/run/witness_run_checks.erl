-module(witness_run_checks).
-moduledoc """
Judges what the monitors of checks report (`m:witness_check`). Pure.

A crash is the end of a process by an error, together with the ends of all others by the same error: a link, or a call to the process
that ends, passes an error on. The process that ended first is the one to look at. A crash is *handled* if a process was told of it
(`m:witness_check_crashes`) that has not ended by the same error itself, and that does not leave the message in its mailbox.

*Invariant:* a crash that was handled by a process of the run is no violation. So crashes are kept until all monitors have
reported, and are undecided if events are missing. Of two crashes by the same error, one of them handled, the other one is not
reported.

An answer that came late is judged by what all processes have reported, too (`m:witness_run_late`).

Others judge the processes that are still there (`m:witness_run_remaining`), at several looks and when observation ends:

- a *deadlock* is a circle of processes of which each waits for the next one;
- a mailbox has messages that are *never taken* if nothing happens any more, and its process has waited for something else for a
  while. It *grows* if it was longer at each of several looks, over some seconds (`m:witness_run_growth`);
- a *leak* is a process that is still there a while after the end of the system. So is one of which the monitors of one and the same process
  grow.

If the processes ran before the run, or are only some of the system's (`t:watched/0`), a process that is not watched may end a wait.
*Invariant:* then a violation follows from what the watched processes did while they were watched, and from where they are. A check is
satisfied only if it has seen them for as long as a violation takes.
""".

-export([new/2, monitored/1, add/4, add_remaining/4, conclude/3]).

-export_type([checks/0, watched/0, judged/0, time/0]).

%% looks: when the run has looked first, when it did so last, and at how many of these times that are not too close to each other
%% waits: whether any process waited at the last look
%% told: the ends that processes were told of, with the errors by which these processes have ended themselves, two of them at most;
%% pending: the ends that processes were told of that may take the message
%% unseen: whether there are processes that were not looked at; waiting: those that wait (`true`) or may go on, with the ends that
%% they were told of by messages that they have not taken
%% mailboxes: their growth; monitors: that of monitors of the same process, and whether those of some processes are not known
%% untaken: the processes that have waited for long, and have messages, at the last look
%% leaks: the processes that were there at the last look, and whether that was long after the end of the system
-record(checks, {names :: [witness_check:name()],
                 watched :: watched(),
                 looks = none :: none | {FirstMs :: integer(), LastMs :: integer(), {CountedMs :: integer(), pos_integer()}},
                 waits = false :: boolean(),
                 unseen = false :: boolean(),
                 waiting = #{} :: #{pid() => {IsLong :: boolean(), [witness_check_crashes:ended()]}},
                 circles = [] :: [{[pid(), ...], [witness_run_remaining:process()]}],
                 mailboxes = witness_run_growth:new() :: witness_run_growth:growth(),
                 monitors = {witness_run_growth:new(), true} :: {witness_run_growth:growth(), AreKnown :: boolean()},
                 untaken = {false, []} :: {IsIdle :: boolean(), [witness_run_remaining:process()]},
                 leaks = {false, 0, []} :: {IsLate :: boolean(), Count :: non_neg_integer(), [witness_run_remaining:process()]},
                 crashes = [] :: [crash()],
                 late = witness_run_late:new() :: witness_run_late:late(),
                 told = #{} :: #{witness_check_crashes:ended() => [none | {error, term()}, ...]},
                 pending = #{} :: #{witness_check_crashes:ended() => []},
                 missing = none :: none | {gap, term()}}).

-opaque checks() :: #checks{}.

-type crash() :: #{ended := witness_check_crashes:ended(), origin := term(), outcome := outcome(), meta := meta()}.

-type outcome() :: witness_monitor_instance:outcome().

-type meta() :: witness_run_monitors:meta().

-doc """
Which processes are watched: those of a system that the run starts, or some that run already. Of these it is not known what they
did before, nor what others will do.
""".
-type watched() :: started | attached.

-doc "The time of a look, and for how long the system has ended, in milliseconds.".
-type time() :: {NowMs :: integer(), EndedForMs :: integer() | none}.

-define(MAX_NAMED, 3).
-define(REASON_CHARACTERS, 80).
-define(SERVER_CHARACTERS, 80).
%% What ends by itself has ended then.
-define(LEAKED_MS, 1000).

-doc "The outcome of a monitor as it is reported. `note` says more of a violation.".
-type judged() :: {outcome() | #{note := binary(), _ => _}, meta()}.

-doc "These checks, and no report.".
-spec new([witness_check:name()], watched()) -> checks().
new(Names, Watched) -> #checks{names = Names, watched = Watched}.

-doc "The properties of checks that have no monitors, and are about the whole system.".
-spec monitored(checks()) -> [meta()].
monitored(#checks{names = Names}) -> [meta(Check) || Check <- witness_check:system_checks(), lists:member(Check, Names)].

meta(Check) -> #{spec => witness_check:spec(Check), name => undefined}.

-doc """
Takes the processes that are still there, and those of them that wait, with their messages. A deadlock that was found earlier stays: a
call may be given up later. So does what is known of a process that is suspended now: it can do nothing. A mailbox has not grown if it has
become shorter again, or if its process has ended.
""".
-spec add_remaining(witness_run_remaining:remaining(), witness_run_remaining:waiting(), time(), checks()) -> checks().
add_remaining(Remaining, Waiting, {NowMs, EndedForMs}, C) ->
    C1 = add_waiting(Remaining, Waiting, add_look(Remaining, NowMs, C)),
    add_leaks(Remaining, EndedForMs, add_monitors(Remaining, NowMs, add_mailboxes(Remaining, Waiting, NowMs, C1))).

add_look(#{processes := Processes}, NowMs, C = #checks{looks = Looks}) ->
    C#checks{looks = note_look(NowMs, Looks),
             waits = lists:any(fun witness_run_remaining:waits/1, Processes)}.

note_look(NowMs, none) -> {NowMs, NowMs, {NowMs, 1}};
note_look(NowMs, {FirstMs, _, {CountedMs, Count} = Counted}) ->
    case witness_run_growth:is_same_look(CountedMs, NowMs) of
        true -> {FirstMs, NowMs, Counted};
        false -> {FirstMs, NowMs, {NowMs, Count + 1}}
    end.

add_waiting(#{circles := Circles, processes := Processes, applications := Applications, whole := Whole}, Waiting, C) ->
    #checks{circles = Before, waiting = Known} = C,
    Suspended = [P || #{process := P, suspended := true} <- Processes],
    Told = #{P => {IsLong, [Ended || Message <- Messages, {true, Ended} <- [witness_check_crashes:told(Message)]]}
             || P := {IsLong, Messages} <- Waiting},
    Kept = #{P => Waited || P := {true, _} = Waited <- maps:with(Suspended, Known)},
    Found = [{Circle, [Process || P <- Circle, #{process := Of} = Process <- Processes ++ Applications, Of =:= P]}
             || Circle <- Circles, not lists:keymember(Circle, 1, Before)],
    C#checks{unseen = not Whole, circles = Before ++ Found, waiting = maps:merge(Told, Kept)}.

add_mailboxes(#{processes := Processes, idle := IsIdle}, Messages, NowMs, C) ->
    #checks{mailboxes = Before, waiting = Waiting, untaken = {WasIdle, _}} = C,
    Seen = [{P, Length, oldest(Process, Messages), Process}
            || #{process := P, mailbox := Length} = Process <- Processes, Length > 0],
    Untaken = [Process || {P, _, _, Process} <- Seen, element(1, maps:get(P, Waiting, {false, []}))],
    C#checks{mailboxes = witness_run_growth:add(NowMs, Seen, fun(_) -> false end, Before),
             untaken = {IsIdle orelse WasIdle andalso are_suspended(Processes), Untaken}}.

%% That they were suspended has cost them something, so it is not known whether they have done anything since the last look.
are_suspended(Processes) -> lists:all(fun(#{suspended := IsSuspended}) -> IsSuspended end, Processes).

%% A process that waits passes over all messages that it has. The oldest one is not known of a mailbox that cannot be read cheaply.
oldest(#{process := P, state := waits}, Messages) ->
    case Messages of
        #{P := {_, [Oldest | _]}} -> {mark, erlang:phash2(Oldest)};
        #{} -> unknown
    end;
oldest(_, _) -> unknown.

%% Those of servers, too.
add_monitors(#{processes := Processes, servers := Servers}, NowMs, C = #checks{monitors = {Before, _}}) ->
    All = Processes ++ Servers,
    Seen = [{{P, Target}, Count, unknown, {Process, Name}}
            || #{process := P, repeatedly := [_ | _] = Repeatedly} = Process <- All, {Target, Name, Count} <- Repeatedly],
    Unknown = #{P => [] || #{process := P, repeatedly := unknown} <- All},
    Growth = witness_run_growth:add(NowMs, Seen, fun({P, _}) -> is_map_key(P, Unknown) end, Before),
    C#checks{monitors = {Growth, map_size(Unknown) =:= 0}}.

add_leaks(#{count := Count, processes := Processes, servers := Servers}, EndedForMs, C) ->
    C#checks{leaks = {is_integer(EndedForMs) andalso EndedForMs >= ?LEAKED_MS, Count, Processes ++ Servers}}.

-doc "Takes the outcome of a monitor of a check: it is reported now, or at the end (`keep`).".
-spec add(witness_check:name(), outcome(), meta(), checks()) -> {{report, Reported} | keep, checks()} when
    Reported :: outcome() | #{note := binary(), _ => _}.
add(Check, #{verdict := inconclusive, reason := Reason} = Outcome, _, C = #checks{missing = Missing})
  when Check =:= crashes; Check =:= late ->
    {{report, Outcome}, C#checks{missing = case Missing of none -> gap(Reason); _ -> Missing end}};
add(late, Outcome, Meta, C) ->
    case witness_run_late:add(Outcome, Meta, C#checks.late) of
        {keep, Late} -> {keep, C#checks{late = Late}};
        {satisfied, Late} -> {{report, satisfied(Outcome)}, C#checks{late = Late}}
    end;
add(crashes, #{verdict := no} = Outcome, Meta, C) -> add_crash(Outcome, Meta, C);
add(_, Outcome, Meta, C) -> {{report, explain(Outcome, syntax(Meta))}, C}.

add_crash(#{info := #{crash := Crash, told := Told, more := More}} = Outcome, Meta, C) ->
    Own = case Crash of none -> none; {error, Reason} -> {error, witness_check_crashes:origin(Reason)} end,
    {IsLong, Untaken} = untaken(Meta, C),
    Pending = case IsLong of true -> #{}; false -> maps:with(Untaken, Told) end,
    C1 = note_more(More, maps:fold(fun(Ended, [], Acc) -> tell(Ended, Own, Acc) end,
                                   C#checks{pending = maps:merge(C#checks.pending, Pending)}, maps:without(Untaken, Told))),
    case {Crash, Meta} of
        {none, _} -> {{report, satisfied(Outcome)}, C1};
        {{error, Why}, #{process := P}} ->
            {error, Origin} = Own,
            {keep, C1#checks{crashes = [#{ended => witness_check_crashes:ended(P, Why), origin => Origin, outcome => Outcome,
                                          meta => Meta} | C1#checks.crashes]}}
    end.

untaken(#{process := P}, #checks{waiting = Waiting}) -> maps:get(P, Waiting, {false, []}).

gap({gap, _} = Gap) -> Gap;
gap(_) -> {gap, tracer_lost}.

note_more(true, C = #checks{missing = none}) -> C#checks{missing = {gap, memory}};
note_more(_, C) -> C.

tell(Ended, Own, C = #checks{told = Told}) ->
    Known = maps:get(Ended, Told, []),
    C#checks{told = Told#{Ended => lists:sublist(lists:usort([Own | Known]), 2)}}.

satisfied(Outcome) -> Outcome#{verdict := yes, info := undefined}.

%% What more is to say of a violation.
explain(#{verdict := no, info := #{unanswered := Server, why := Why}} = Outcome, Syntax) ->
    Named = witness_event:format_term(Server, ?SERVER_CHARACTERS, Syntax),
    Outcome#{info := #{processes => [Server || is_pid(Server)]}, note => iolist_to_binary([~"its call of ", Named, why(Why)])};
explain(#{verdict := no, info := #{child := Runs, reason := Reason, restarts := Restarts}} = Outcome, _) ->
    Syntax = witness_event:syntax_of_function(Runs),
    Named = witness_event:format_function(Runs, Syntax),
    Note = [~"it has started ", Named, ~" again ", times(Restarts), ~", and then given up; ", Named, ~" has ended: ",
            witness_event:format_reason(Reason, ?REASON_CHARACTERS, Syntax)],
    Outcome#{info := undefined, note => iolist_to_binary(Note)};
explain(Outcome, _) -> Outcome.

syntax(Meta) -> witness_event:syntax_of_function(maps:get(signature, Meta, undefined)).

times(1) -> ~"once";
times(N) -> [integer_to_binary(N), ~" times"].

why(given_up) -> ~" got no answer in time";
why(never) -> ~" never got an answer".

-doc """
What is reported at the end. `IsComplete`: whether the run has missed no event; `StoppedAtMs`: when observation ended, if it did so
before the system.
""".
-spec conclude(IsComplete :: boolean(), StoppedAtMs :: integer() | none, checks()) -> [judged()].
conclude(IsComplete, StoppedAtMs, C = #checks{names = Names, late = Late}) ->
    Missing = case IsComplete of true -> C#checks.missing; false -> {gap, tracer_lost} end,
    Judged = [{Check, judge_system(Check, StoppedAtMs, C)} || Check <- witness_check:system_checks(), lists:member(Check, Names)],
    lists:append([[{Outcome, maps:merge(meta(Check), Of)} || {Outcome, Of} <- Found] || {Check, Found} <- Judged])
        ++ witness_run_late:conclude(unknown_answers(Missing, C), Late) ++ crashes(Missing, StoppedAtMs, C).

%% A process that is not watched may have answered.
unknown_answers(none, #checks{watched = attached}) -> stopped;
unknown_answers(Missing, _) -> Missing.

judge_system(deadlock, _, #checks{circles = [], unseen = Unseen, waiting = Waiting} = C) ->
    decided(not Unseen andalso not lists:keymember(true, 1, maps:values(Waiting)) andalso is_wait_seen(C));
judge_system(deadlock, _, #checks{circles = Circles}) ->
    [violated(Circle, Processes, lines(Processes)) || {Circle, Processes} <- Circles];
judge_system(mailboxes, StoppedAtMs, #checks{mailboxes = Growth, untaken = {_, Untaken}, unseen = Unseen} = C) ->
    Grown = witness_run_growth:grown(Growth),
    Left = [Process || StoppedAtMs =/= none, #{process := P} = Process <- Untaken, not lists:keymember(P, 1, Grown)],
    Found = [violated([P], [Process], [witness_run_remaining:format(Process), ~"\n  its mailbox grows: ", numbers(Lengths), ~" messages"])
             || {P, Process, Lengths} <- Grown]
        ++ [violated([P], [Process], [~"nothing happens any more, and it does not take its messages: ", witness_run_remaining:format(Process)])
            || are_left_for_ever(C), #{process := P} = Process <- Left],
    case Found of
        [] -> decided(StoppedAtMs =:= none orelse (not Unseen andalso Left =:= [] andalso is_growth_seen(Growth, C)));
        _ -> Found
    end;
judge_system(leaks, StoppedAtMs, #checks{monitors = {Growth, _}} = C) ->
    Grown = maps:groups_from_list(fun({{P, _}, _, _}) -> P end, witness_run_growth:grown(Growth)),
    Found = [grown_monitors(P, Monitors) || P := Monitors <- maps:iterator(Grown, ordered)]
        ++ [still_there(C) || StoppedAtMs =/= none, are_left(C)],
    case Found of
        [] -> decided(StoppedAtMs =:= none orelse is_no_leak(C));
        _ -> Found
    end.

grown_monitors(P, [{_, {#{syntax := Syntax} = Process, _}, _} | _] = Monitors) ->
    violated([P], [Process], [witness_run_remaining:format(Process),
                              [[~"\n  its monitors of ", witness_run_holdings:format_target(Target, Name, Syntax),
                                ~" grow, without a demonitor: ", numbers(Counts)]
                               || {{_, Target}, {_, Name}, Counts} <- Monitors]]).

%% Processes that ran before the run are not to end with it.
are_left(#checks{watched = started, leaks = {IsLate, Count, _}}) -> IsLate andalso Count > 0;
are_left(#checks{watched = attached}) -> false.

is_no_leak(#checks{watched = started, leaks = {_, Count, _}}) -> Count =:= 0;
is_no_leak(#checks{watched = attached, monitors = {Growth, AreKnown}, unseen = Unseen} = C) ->
    not Unseen andalso AreKnown andalso is_growth_seen(Growth, C).

still_there(#checks{leaks = {_, Count, Processes}}) ->
    ByFunction = maps:groups_from_list(fun(#{signature := Signature}) -> Signature end, Processes),
    Sorted = lists:sort([Group || _ := Group <- ByFunction]),
    Unseen = Count - length(Processes),
    violated([P || Group <- Sorted, #{process := P} <- Group], Processes,
             [~"still there after the end of the system:", [leaked(Group) || Group <- Sorted],
              [[~"\n  and ", witness_text:count(Unseen, ~"process that was", ~"processes that were"), ~" not looked at"] || Unseen > 0]]).

%% A process that is not watched may still send what another one waits for.
are_left_for_ever(#checks{watched = started, untaken = {IsIdle, _}}) -> IsIdle;
are_left_for_ever(#checks{watched = attached}) -> false.

%% What a process has done before the first look is not known, so it may have waited for long.
is_wait_seen(#checks{watched = attached, waits = true, looks = {FirstMs, LastMs, _}}) ->
    LastMs - FirstMs >= witness_run_remaining:waiting_ms();
is_wait_seen(_) -> true.

%% It needs as many looks to say that what may grow does not grow as to say that it does.
is_growth_seen(Growth, #checks{watched = attached, looks = {FirstMs, LastMs, {_, Count}}}) ->
    witness_run_growth:is_empty(Growth) orelse witness_run_growth:is_long_enough(LastMs - FirstMs, Count);
is_growth_seen(_, _) -> true.

decided(true) -> [{outcome(yes, undefined), #{}}];
decided(false) -> [{(outcome(inconclusive, undefined))#{reason := stopped}, #{}}].

violated([P | _] = Pids, Processes, Note) ->
    Violated = outcome(no, #{processes => Pids}),
    {Violated#{note => unicode:characters_to_binary(Note), syntax => witness_run_remaining:syntax(Processes)}, #{process => P}}.

outcome(Verdict, Info) ->
    #{verdict => Verdict, reason => undefined, info => Info, vacuous => false, slice => undefined, event => undefined, steps => [],
      skipped => 0}.

%% Some of the processes with the same function.
leaked(Group) ->
    More = length(Group) - ?MAX_NAMED,
    [[[~"\n  ", witness_run_remaining:format(Process), [[~"; spawned by ", witness_event:format_proc(Parent, Syntax)] || is_pid(Parent)],
       witness_run_remaining:holdings(Process)]
      || #{parent := Parent, syntax := Syntax} = Process <- lists:sublist(Group, ?MAX_NAMED)],
     [[~"\n  and ", witness_text:count(More, ~"other", ~"others"), ~" like these"] || More > 0]].

numbers(Numbers) -> witness_text:list([integer_to_binary(N) || N <- Numbers]).

lines(Processes) -> unicode:characters_to_binary(lists:join(~"\n  ", [witness_run_remaining:format(Process) || Process <- Processes])).

crashes(Missing, StoppedAtMs, C = #checks{crashes = Kept}) ->
    ByOrigin = maps:groups_from_list(fun(#{origin := Origin}) -> Origin end, lists:reverse(Kept)),
    Judged = [judge(Sorted, unknown(Missing, StoppedAtMs, lists:last(Sorted)), C)
              || _ := Crashes <- ByOrigin, Sorted <- [lists:sort(fun is_before/2, Crashes)]],
    lists:append(lists:sort(fun([{First, _} | _], [{Second, _} | _]) -> time(First) =< time(Second) end, Judged)).

is_before(#{outcome := First}, #{outcome := Second}) -> time(First) =< time(Second).

%% Events without a time keep the order in which they were reported.
time(#{event := #{event := {exit, _, _, Time}}}) -> Time.

%% A process that is told of an end must run to receive the message. When observation stops, it may not have run yet.
-define(TOLD_MS, 1000).

unknown(none, StoppedAtMs, #{outcome := Last}) when is_integer(StoppedAtMs) ->
    case time(Last) of
        Time when is_integer(Time), Time div 1_000_000 + ?TOLD_MS < StoppedAtMs -> none;
        _ -> stopped
    end;
unknown(Why, _, _) -> Why.

judge([#{outcome := Outcome, meta := Meta} | Others] = Crashes, Missing, C) ->
    Rest = [{satisfied(Other), Of} || #{outcome := Other, meta := Of} <- Others],
    IsPending = lists:any(fun(Crash) -> is_pending(Crash, C) end, Crashes),
    case lists:any(fun(Crash) -> is_handled(Crash, C) end, Crashes) of
        true -> [{satisfied(Outcome), Meta} | Rest];
        false when Missing =/= none -> [{undecided(Missing, Outcome), Meta} | Rest];
        false when IsPending -> [{undecided(stopped, Outcome), Meta} | Rest];
        false ->
            #{process := First} = Meta,
            Ended = [P || #{meta := #{process := P}} <- Others],
            [{Outcome#{info := #{processes => [First | Ended]}, note => note(Ended, syntax(Meta))}, Meta} | Rest]
    end.

undecided(Why, Outcome) -> Outcome#{verdict := inconclusive, info := undefined, reason := Why}.

is_pending(#{ended := {_, Hash} = Ended}, #checks{pending = Pending}) ->
    is_map_key(Ended, Pending) orelse is_map_key({name, Hash}, Pending).

is_handled(#{ended := {_, Hash} = Ended, origin := Origin}, #checks{told = Told}) ->
    lists:any(fun(Own) -> Own =/= {error, Origin} end, maps:get(Ended, Told, []) ++ maps:get({name, Hash}, Told, [])).

note(Ended, Syntax) ->
    {Named, More} = {lists:sublist(Ended, ?MAX_NAMED), max(0, length(Ended) - ?MAX_NAMED)},
    iolist_to_binary([~"no process handled it", [[~"; by the same error ended ", names(Named, More, Syntax)] || Ended =/= []]]).

names(Named, More, Syntax) ->
    witness_text:list([witness_event:format_proc(P, Syntax) || P <- Named]
                      ++ [witness_text:count(More, ~"other process", ~"other processes") || More > 0]).
