-module(witness_run_monitors).
-moduledoc """
The monitors of a run that have not reported their end.

A *reader* identifies a monitor. It is the process that runs the monitor. If one process, the *host*, runs or reports for
very many monitors, it is the host with an id. Reports of a reader that arrive before its announcement are kept until then.

Pure: what the run is to do is returned as `t:effect/0`. The run is linked to every announced process, so it learns of every death.
""".

-export([new/0, announce/3, take_report/2, handle_exit/3, give_up/2, kill/1, metas/1, runners/1, count/1]).
-export_type([reader/0, meta/0, report/0, effect/0, readers/0]).

-type reader() :: pid() | {Host :: pid(), Id :: term()}.

-doc """
The process that the monitor reads; a monitor that reads all processes has none. The version is that of the specifications
(`t:witness_run_maps:key/0`).
""".
-type meta() :: #{process => witness_event:proc(), signature => witness_event:signature(),
                  spec := binary() | log, name := binary() | undefined, version => pos_integer()}.

-doc "A report of a reader: any number of verdicts of slices, then how the monitor itself ended.".
-type report() :: {slice, reader(), witness_monitor_sliced:outcome()}
                | {verdict, reader(), witness_monitor_runner:outcome()}.

-doc """
What the run does: links to the process of monitors; notifies a runner that events are missing
(`witness_monitor_runner:report_gap/2`); kills a runner.
""".
-type effect() :: {link, pid()} | {gap, Runner :: pid(), Why :: atom()} | {kill, Runner :: pid()}.

%% early: reports of readers that are not announced yet, the last one first
%% hosts: the hosts that the run is linked to
%% lost: why every undecided monitor misses events
-record(readers, {live = #{} :: #{reader() => meta()},
                  early = #{} :: #{reader() => [report()]},
                  hosts = #{} :: #{pid() => []},
                  lost = none :: none | atom()}).

-opaque readers() :: #readers{}.

-spec new() -> readers().
new() -> #readers{}.

-doc "A monitor was started. Returns its earlier reports.".
-spec announce(reader(), meta(), readers()) -> {[report()], [effect()], readers()}.
announce(Reader, Meta, R = #readers{live = Live, early = Early, lost = Lost}) ->
    {Missed, Gaps} = add_gap(Lost, Reader, {[], []}),
    {Links, Hosts} = link_to(Reader, R#readers.hosts),
    {lists:reverse(maps:get(Reader, Early, []), Missed), Gaps ++ Links,
     R#readers{live = Live#{Reader => Meta}, early = maps:remove(Reader, Early), hosts = Hosts}}.

%% A runner reports itself how its monitor ends.
add_gap(none, _, Missed) -> Missed;
add_gap(Why, Runner, {Reports, Effects}) when is_pid(Runner) -> {Reports, [{gap, Runner, Why} | Effects]};
add_gap(Why, Reader, {Reports, Effects}) ->
    {[{verdict, Reader, witness_monitor_machine:failure_outcome({gap, Why})} | Reports], Effects}.

%% A link to a dead process gives an exit message at once. That means nothing to readers that have had their verdict.
link_to({Host, _}, Hosts) when is_map_key(Host, Hosts) -> {[], Hosts};
link_to({Host, _}, Hosts) -> {[{link, Host}], Hosts#{Host => []}};
link_to(Runner, Hosts) -> {[{link, Runner}], Hosts}.

-doc """
Takes a report. Returns the meta data of its reader; or `early` if the reader is not announced. An early report is kept, except
that of a host's reader after `give_up/2`: that reader may have had its verdict.
""".
-spec take_report(report(), readers()) -> {meta(), readers()} | {early, readers()}.
take_report({Kind, Reader, _} = Report, R = #readers{live = Live}) ->
    case Live of
        #{Reader := Meta} when Kind =:= slice -> {Meta, R};
        #{Reader := Meta} -> {Meta, R#readers{live = maps:remove(Reader, Live)}};
        #{} when is_tuple(Reader), R#readers.lost =/= none -> {early, R};
        #{} -> {early, keep_early(Report, R)}
    end.

keep_early({_, Reader, _} = Report, R = #readers{early = Early}) ->
    R#readers{early = maps:update_with(Reader, fun(Before) -> [Report | Before] end, [Report], Early)}.

-doc """
Takes an exit signal of a process. Returns the verdicts that its monitors still lack. Reports that the process had sent have
arrived before its exit signal.
""".
-spec handle_exit(pid(), Reason :: term(), readers()) -> {[report()], readers()}.
handle_exit(Pid, Reason, R = #readers{live = Live}) when is_map_key(Pid, Live) ->
    {[{verdict, Pid, death_outcome(Reason)}], R};
handle_exit(Host, Reason, R = #readers{live = Live, hosts = Hosts}) when is_map_key(Host, Hosts) ->
    %% If a later reader names this host again, the run links to it again, and gets an exit message at once.
    {[{verdict, Reader, host_death_outcome(Reason)} || {H, _} = Reader := _ <- Live, H =:= Host],
     R#readers{hosts = maps:remove(Host, Hosts)}};
handle_exit(Pid, Reason, R = #readers{early = Early}) when Reason =/= normal, Reason =/= noproc ->
    %% A runner may die before it is announced; after the announcement, the link to the dead process says `noproc'.
    case [reported || {verdict, _, _} <- maps:get(Pid, Early, [])] of
        [] -> {[], keep_early({verdict, Pid, death_outcome(Reason)}, R)};
        [reported] -> {[], R}
    end;
handle_exit(_, _, R) ->
    {[], R}.

%% A link to a dead process says `noproc'. A runner without a verdict can only end by an exit signal, most likely a kill.
death_outcome({shutdown, {gap, _} = Gap}) -> witness_monitor_machine:failure_outcome(Gap);
death_outcome({shutdown, {given_up, Why}}) -> witness_monitor_machine:failure_outcome({gap, Why});
death_outcome(noproc) -> witness_monitor_machine:failure_outcome({crashed, killed});
death_outcome(Reason) -> witness_monitor_machine:failure_outcome({crashed, Reason}).

%% The end of a host is not the fault of its monitors.
host_death_outcome({shutdown, {Why, _}} = Reason) when Why =:= gap; Why =:= given_up -> death_outcome(Reason);
host_death_outcome(_) -> witness_monitor_machine:failure_outcome({gap, tracer_lost}).

-doc "Events are missing from here on, for all monitors, also those that are announced later.".
-spec give_up(Why :: atom(), readers()) -> {[report()], [effect()], readers()}.
give_up(Why, R = #readers{live = Live}) ->
    {Reports, Effects} = maps:fold(fun(Reader, _, Missed) -> add_gap(Why, Reader, Missed) end, {[], []}, Live),
    {Reports, Effects, R#readers{lost = Why}}.

-doc "Kills the remaining runners. Returns the verdicts of all monitors that were too slow.".
-spec kill(readers()) -> {[report()], [effect()]}.
kill(#readers{live = Live, lost = Lost} = R) ->
    Reason = case Lost of none -> {crashed, overdue}; _ -> {gap, Lost} end,
    {[{verdict, Reader, witness_monitor_machine:failure_outcome(Reason)} || Reader := _ <- Live],
     [{kill, Runner} || Runner <- runners(R)]}.

-doc "The meta data of the monitors that have not reported their end.".
-spec metas(readers()) -> [meta()].
metas(#readers{live = Live}) -> maps:values(Live).

-doc "The processes that each run a monitor which has not reported its end.".
-spec runners(readers()) -> [pid()].
runners(#readers{live = Live}) -> [Reader || Reader := _ <- Live, is_pid(Reader)].

-spec count(readers()) -> non_neg_integer().
count(#readers{live = Live}) -> map_size(Live).
