-module(witness_run_monitors).
-moduledoc """
The monitors of a run that have not reported their end.

A *reader* identifies a monitor. It is the process that runs the monitor. If one process, the *host*, runs or reports for
very many monitors, it is the host with an id. Reports of a reader that arrive before its announcement are kept until then.
The run is linked to every announced process, so it learns of every death.
""".

-export([new/0, announce/3, report/2, ended/3, give_up/2, kill/1, metas/1, count/1]).
-export_type([reader/0, meta/0, report/0, readers/0]).

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
-spec announce(reader(), meta(), readers()) -> {[report()], readers()}.
announce(Reader, Meta, R = #readers{live = Live, early = Early, lost = Lost}) ->
    Reports = lists:reverse(maps:get(Reader, Early, [])),
    {Reports ++ missed(Lost, Reader, []),
     linked(Reader, R#readers{live = Live#{Reader => Meta}, early = maps:remove(Reader, Early)})}.

%% A runner reports itself how its monitor ends.
missed(none, _, Reports) -> Reports;
missed(Why, Runner, Reports) when is_pid(Runner) -> ok = witness_monitor_runner:gap(Runner, Why), Reports;
missed(Why, Reader, Reports) -> [{verdict, Reader, witness_monitor_machine:failed({gap, Why})} | Reports].

%% A link to a dead process gives an exit message at once. That means nothing to readers that have had their verdict.
linked({Host, _}, R = #readers{hosts = Hosts}) when is_map_key(Host, Hosts) -> R;
linked({Host, _}, R = #readers{hosts = Hosts}) -> link(Host), R#readers{hosts = Hosts#{Host => []}};
linked(Runner, R) -> link(Runner), R.

-doc """
Takes a report. Returns the meta data of its reader; or `early` if the reader is not announced. An early report is kept, except
that of a host's reader after `give_up/2`: that reader may have had its verdict.
""".
-spec report(report(), readers()) -> {meta(), readers()} | {early, readers()}.
report({Kind, Reader, _} = Report, R = #readers{live = Live}) ->
    case Live of
        #{Reader := Meta} when Kind =:= slice -> {Meta, R};
        #{Reader := Meta} -> {Meta, R#readers{live = maps:remove(Reader, Live)}};
        #{} when is_tuple(Reader), R#readers.lost =/= none -> {early, R};
        #{} -> {early, early(Report, R)}
    end.

early({_, Reader, _} = Report, R = #readers{early = Early}) ->
    R#readers{early = maps:update_with(Reader, fun(Before) -> [Report | Before] end, [Report], Early)}.

-doc """
Takes an exit signal of a process. Returns the verdicts that its monitors still lack. Reports that the process had sent have
arrived before its exit signal.
""".
-spec ended(pid(), Reason :: term(), readers()) -> {[report()], readers()}.
ended(Pid, Reason, R = #readers{live = Live}) when is_map_key(Pid, Live) ->
    {[{verdict, Pid, died(Reason)}], R};
ended(Host, Reason, R = #readers{live = Live, hosts = Hosts}) when is_map_key(Host, Hosts) ->
    %% If a later reader names this host again, the run links to it again, and gets an exit message at once.
    {[{verdict, Reader, host_died(Reason)} || {H, _} = Reader := _ <- Live, H =:= Host],
     R#readers{hosts = maps:remove(Host, Hosts)}};
ended(Pid, Reason, R = #readers{early = Early}) when Reason =/= normal, Reason =/= noproc ->
    %% A runner may die before it is announced; after the announcement, the link to the dead process says `noproc'.
    case [reported || {verdict, _, _} <- maps:get(Pid, Early, [])] of
        [] -> {[], early({verdict, Pid, died(Reason)}, R)};
        [reported] -> {[], R}
    end;
ended(_, _, R) ->
    {[], R}.

%% A link to a dead process says `noproc'. A runner without a verdict can only end by an exit signal, most likely a kill.
died({shutdown, {gap, _} = Gap}) -> witness_monitor_machine:failed(Gap);
died({shutdown, {given_up, Why}}) -> witness_monitor_machine:failed({gap, Why});
died(noproc) -> witness_monitor_machine:failed({crashed, killed});
died(Reason) -> witness_monitor_machine:failed({crashed, Reason}).

%% The end of a host is not the fault of its monitors.
host_died({shutdown, {Why, _}} = Reason) when Why =:= gap; Why =:= given_up -> died(Reason);
host_died(_) -> witness_monitor_machine:failed({gap, tracer_lost}).

-doc "Events are missing from here on, for all monitors, also those that are announced later.".
-spec give_up(Why :: atom(), readers()) -> {[report()], readers()}.
give_up(Why, R = #readers{live = Live}) ->
    {maps:fold(fun(Reader, _, Reports) -> missed(Why, Reader, Reports) end, [], Live), R#readers{lost = Why}}.

-doc "Kills the remaining runners. Returns the verdicts of all monitors that were too slow.".
-spec kill(readers()) -> [report()].
kill(#readers{live = Live, lost = Lost}) ->
    Reason = case Lost of none -> {crashed, overdue}; _ -> {gap, Lost} end,
    [begin
         _ = is_pid(Reader) andalso exit(Reader, kill),
         {verdict, Reader, witness_monitor_machine:failed(Reason)}
     end || Reader := _ <- Live].

-doc "The meta data of the monitors that have not reported their end.".
-spec metas(readers()) -> [meta()].
metas(#readers{live = Live}) -> maps:values(Live).

-spec count(readers()) -> non_neg_integer().
count(#readers{live = Live}) -> map_size(Live).
