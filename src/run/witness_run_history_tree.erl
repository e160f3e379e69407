-module(witness_run_history_tree).
-moduledoc """
Which process spawned which, when each process was born and has ended, and which monitors read it: in bounded memory, for
any number of processes. Pure.

The first processes are kept one by one, up to a limit. Later ones are counted together with others of
the same function, below the nearest ancestor that is kept.

Both the parent and the child may report a birth, in either order, and a child may be reported before its parent. So parents
are looked up at the end.
""".

-export([new/1, add_running/4, add_birth/5, add_exit/4, add_monitor/4, add_verdict/4, is_known/2, function/2, to_map/1]).

-export_type([tree/0, time/0, contents/0, process/0, monitor/0, group/0]).

-doc "Nanoseconds, and the place in a log; either may not be known.".
-type time() :: {Ns :: integer() | undefined, Place :: pos_integer() | undefined}.

-doc "`born` is `undefined` if the process ran before, `ended` if its end was not seen.".
-type process() :: #{process := witness_event:proc(), parent := pos_integer() | undefined,
                     function := mfa() | undefined, born := time() | undefined, ended := time() | undefined,
                     reason := term()}.

-doc "`process`: its number in the list of processes, `undefined` if it is not there; `reader`: the process of the monitor.".
-type monitor() :: #{process := pos_integer() | undefined, spec := binary(), name := binary() | undefined,
                     reader := pid() | undefined, began := time(), ended := time() | undefined,
                     verdict := witness_monitor:verdict() | undefined, violations := non_neg_integer()}.

-doc "Processes that were not kept.".
-type group() :: #{parent := pos_integer() | undefined, function := mfa() | others | undefined, count := pos_integer(),
                   ended := non_neg_integer()}.

-doc """
All that is kept. The number of a process is its place in the list, from 1. `violations`: those of monitors that are not in the
list, or that read a process that is not in the list.
""".
-type contents() :: #{processes := [process()], groups := [group()], monitors := [monitor()], violations := non_neg_integer()}.

-record(row, {index :: pos_integer(), parent :: witness_event:proc() | undefined, function :: mfa() | undefined,
              born :: time() | undefined, ended :: time() | undefined, reason :: term()}).

%% grouped: processes that are alive and not kept one by one, with their groups
%% violations: of monitors that were not kept
-record(tree, {limit :: pos_integer(),
               rows = #{} :: #{witness_event:proc() => #row{}},
               grouped = #{} :: #{witness_event:proc() => term()},
               groups = #{} :: #{term() => {pos_integer(), Ended :: non_neg_integer()}},
               monitors = #{} :: #{term() => {pos_integer(), map()}},
               violations = 0 :: non_neg_integer()}).

-opaque tree() :: #tree{}.

%% Limit of separate groups.
-define(MAX_GROUPS, 500).

-doc "An empty tree that keeps up to `Limit` processes, and twice as many monitors.".
-spec new(Limit :: pos_integer()) -> tree().
new(Limit) -> #tree{limit = Limit}.

-doc "A process that ran before. Its parent may still be known.".
-spec add_running(witness_event:proc(), Parent :: witness_event:proc() | undefined, mfa() | undefined, tree()) -> tree().
add_running(P, Parent, Function, T) -> add_process(P, Parent, Function, undefined, T).

-doc "A process was born.".
-spec add_birth(witness_event:proc(), Parent :: witness_event:proc() | undefined, mfa() | undefined, time(), tree()) -> tree().
add_birth(P, Parent, Function, Time, T) -> add_process(P, Parent, Function, Time, T).

-doc "The function that a process was spawned with, if it is known.".
-spec function(witness_event:proc(), tree()) -> mfa() | undefined.
function(P, #tree{rows = Rows}) ->
    case Rows of
        #{P := #row{function = Function}} -> Function;
        #{} -> undefined
    end.

-doc "Whether a process was reported. A process that is not kept is known only until it ends.".
-spec is_known(witness_event:proc(), tree()) -> boolean().
is_known(P, #tree{rows = Rows, grouped = Grouped}) -> is_map_key(P, Rows) orelse is_map_key(P, Grouped).

add_process(P, Parent, Function, Born, T = #tree{limit = Limit, rows = Rows, grouped = Grouped, groups = Groups}) ->
    case is_known(P, T) of
        %% A log that begins with a process also has its birth.
        true when is_map_key(P, Rows) ->
            Row = #row{born = Before} = map_get(P, Rows),
            T#tree{rows = Rows#{P := Row#row{born = case Before of undefined -> Born; _ -> Before end}}};
        true -> T;
        false when map_size(Rows) < Limit ->
            Row = #row{index = map_size(Rows) + 1, parent = Parent, function = Function, born = Born},
            T#tree{rows = Rows#{P => Row}};
        false ->
            Key = group_key({ancestor(Parent, T), Function}, Groups),
            T#tree{grouped = Grouped#{P => Key},
                   groups = maps:update_with(Key, fun({N, Ended}) -> {N + 1, Ended} end, {1, 0}, Groups)}
    end.

group_key(Key, Groups) when is_map_key(Key, Groups); map_size(Groups) < ?MAX_GROUPS -> Key;
group_key(_, _) -> {undefined, others}.

ancestor(P, #tree{rows = Rows}) when is_map_key(P, Rows) -> P;
ancestor(P, #tree{grouped = Grouped}) ->
    case Grouped of
        #{P := {Ancestor, _}} -> Ancestor;
        #{} -> undefined
    end.

-doc "A process has ended.".
-spec add_exit(witness_event:proc(), Reason :: term(), time(), tree()) -> tree().
add_exit(P, Reason, Time, T = #tree{rows = Rows, grouped = Grouped, groups = Groups}) ->
    case Rows of
        #{P := #row{ended = undefined} = Row} -> T#tree{rows = Rows#{P := Row#row{ended = Time, reason = Reason}}};
        #{P := _} -> T;
        #{} ->
            case maps:take(P, Grouped) of
                {Key, Rest} ->
                    {N, Ended} = map_get(Key, Groups),
                    T#tree{grouped = Rest, groups = Groups#{Key := {N, Ended + 1}}};
                error -> T
            end
    end.

-doc "A monitor has started.".
-spec add_monitor(witness_run_monitors:meta(), Reader :: pid() | undefined, time(), tree()) -> tree().
add_monitor(Meta, Reader, Time, T = #tree{limit = Limit, monitors = Monitors}) when map_size(Monitors) < 2 * Limit ->
    store_monitor(Meta, new_monitor(Reader, Time), T);
add_monitor(_, _, _, T) -> T.

new_monitor(Reader, Time) -> #{reader => Reader, began => Time, ended => undefined, verdict => undefined, violations => 0}.

store_monitor(Meta, Monitor, T = #tree{monitors = Monitors}) ->
    T#tree{monitors = Monitors#{monitor_key(Meta) => {map_size(Monitors) + 1, Monitor}}}.

monitor_key(#{spec := Spec, name := Name} = Meta) -> {maps:get(process, Meta, undefined), Spec, Name, maps:get(version, Meta, 1)}.

-doc "A monitor has ended with its verdict, or one of its slices has.".
-spec add_verdict(witness_run_monitors:meta(), {slice | verdict, witness_monitor:verdict() | undefined}, time(), tree()) -> tree().
add_verdict(Meta, {Kind, Verdict}, Time, T = #tree{monitors = Monitors}) ->
    Key = monitor_key(Meta),
    case Monitors of
        #{Key := {Number, #{violations := Before} = Monitor}} ->
            Counted = Monitor#{violations := Before + violation_count(Verdict)},
            Updated = case Kind of
                slice -> Counted;
                verdict -> Counted#{ended := Time, verdict := Verdict}
            end,
            T#tree{monitors = Monitors#{Key := {Number, Updated}}};
        #{} -> T#tree{violations = T#tree.violations + violation_count(Verdict)}
    end.

violation_count(no) -> 1;
violation_count(_) -> 0.

-doc "All of it.".
-spec to_map(tree()) -> contents().
to_map(#tree{rows = Rows, groups = Groups, monitors = Monitors, violations = Violations}) ->
    Number = fun(P) -> case Rows of #{P := #row{index = Index}} -> Index; #{} -> undefined end end,
    Ordered = lists:sort([{Index, P} || P := #row{index = Index} <- Rows]),
    {Kept, Others} = lists:partition(fun({_, {P, _, _, _}, _}) -> P =:= undefined orelse is_map_key(P, Rows) end,
                                     lists:sort([{I, Key, M} || Key := {I, M} <- Monitors])),
    #{processes => [process_to_map(P, map_get(P, Rows), Number) || {_, P} <- Ordered],
      groups => [#{parent => Number(Ancestor), function => Function, count => N, ended => Ended}
                 || {Ancestor, Function} := {N, Ended} <- maps:iterator(Groups, ordered)],
      monitors => [Monitor#{process => Number(P), spec => Spec, name => Name} || {_, {P, Spec, Name, _}, Monitor} <- Kept],
      violations => Violations + lists:sum([N || {_, _, #{violations := N}} <- Others])}.

process_to_map(P, #row{parent = Parent, function = Function, born = Born, ended = Ended, reason = Reason}, Number) ->
    #{process => P, parent => Number(Parent), function => Function, born => Born, ended => Ended, reason => Reason}.
