-module(witness_search_chart).
-moduledoc """
Which steps of a failed run explain it: the messages and births of the processes that have failed, and the steps of its pairs. Pure.
`m:witness_search_text` draws them.
""".

-export([explain/2]).

-export_type([explanation/0, row/0, role/0]).

-doc "The step is the first or the second one of the pair with this number.".
-type role() :: {first | second, pos_integer()}.

-doc "A step of the run: its event as in a log, or what else a process does, or what happens to it.".
-type row() :: #{index := pos_integer(), event := event(), role := [role()]}.

-type event() :: witness_event:event() | {step, pid(), witness_search:step(), undefined}.

-doc """
`skipped`: how many earlier steps are left out; `decided`: the last step is the failure itself; `modules`: those of the processes.
""".
-type explanation() :: #{steps := [row()], skipped := non_neg_integer(), decided := boolean(),
                         modules := #{pid() => module()}}.

%% Rows of an explanation.
-define(MAX_ROWS, 24).
%% Processes of a deadlock that are followed.
-define(MAX_PROCESSES, 5).

%% failed: the processes that have failed; concerned: these, and those of the pairs, with the receivers of their messages.
%% last: the last step, if it is the failure. taken:
%% how often a process has taken such a message of a sender. spawned: how many children each has so far.
-record(chart, {failed :: [witness_search_world:id()],
                concerned :: [witness_search_world:id()],
                births :: #{witness_search_world:id() => witness_search_scheduler:birth()},
                roles :: #{witness_search_reversal:name() => [role()]},
                children :: #{{witness_search_world:id() | 0, non_neg_integer()} => witness_search_world:id()},
                last :: none | witness_search_reversal:name(),
                taken :: #{term() => pos_integer()},
                spawned = #{} :: #{witness_search_world:id() => non_neg_integer()}}).

-doc """
Explains a run that was traced. `Pairs`: steps that are enough if they come in this order.

The rows are the messages that a failed process takes, and those that others take from it; messages between the processes of the pairs;
messages to one of them that it never takes; the births and ends of these processes; the steps of the pairs.
""".
-spec explain([witness_search_reversal:pair()], witness_search_scheduler:result()) -> explanation().
explain(Pairs, #{trace := [_ | _] = Trace, births := Births, outcome := Outcome} = Result) ->
    Steps = witness_search_reversal:named(lists:reverse(Trace)),
    Failed = failed(Outcome, Result),
    Roles = maps:groups_from_list(fun({Name, _}) -> Name end, fun({_, Role}) -> Role end,
                                  [{Name, {Which, Number}} || {Number, {First, Second}} <- lists:enumerate(Pairs),
                                                              {Which, Name} <- [{first, First}, {second, Second}]]),
    Acting = lists:append([[acting(Step) | receivers(Traced)]
                           || {Name, #{step := Step} = Traced} <- Steps, is_map_key(Name, Roles)]),
    {Last, _} = lists:last(Steps),
    Chart = #chart{failed = Failed, concerned = lists:uniq(Failed ++ [Id || Id <- Acting, is_integer(Id)]), births = Births,
                   roles = Roles, last = case is_step(Outcome) of true -> Last; false -> none end,
                   children = #{{Parent, Rank} => Id || Id := #{parent := Parent, rank := Rank} <- Births}, taken = taken(Steps)},
    {Rows, _} = lists:mapfoldl(fun rows/2, Chart, Steps),
    First = [row(birth(1, Chart), []) || is_concerned(1, Chart)],
    {Shown, Skipped} = cut(First ++ lists:append(Rows)),
    #{steps => [Row#{index => Index} || {Index, Row} <- lists:enumerate(Shown)], skipped => Skipped, decided => is_step(Outcome),
      modules => modules(Shown, Births)};
explain(_, _) -> #{steps => [], skipped => 0, decided => false, modules => #{}}.

modules(Rows, Births) ->
    Pids = #{Pid => [] || #{event := Event} <- Rows, Pid <- tuple_to_list(Event), is_pid(Pid)},
    #{Pid => Module || _ := #{pid := Pid, signature := {Module, _, _}} <- Births, is_map_key(Pid, Pids)}.

failed({_, Ids}, Result) when is_list(Ids) -> waiting(Ids, Result);
failed({_, Id, _}, _) when is_integer(Id) -> [Id];
failed(_, _) -> [].

%% Not those that are servers and wait for a request.
waiting(Ids, Result) -> lists:sublist([Id || #{id := Id} <- witness_search_cause:waiting(Ids, Result)], ?MAX_PROCESSES).

%% Whether the run has ended with a step that has failed.
is_step({crashed, _, _}) -> true;
is_step({unexpected, _, {ended, _}}) -> true;
is_step(_) -> false.

%% The process that acts, or to which something happens.
acting({timer, _}) -> none;
acting(Step) -> element(tuple_size(Step), Step).

%% The process that a message is for.
receivers(#{what := {send, _, _, _}, touches := Touches}) -> [Id || {changes, {mailbox, Id}} <- Touches];
receivers(_) -> [].

taken(Steps) ->
    lists:foldl(fun({_, #{step := {process, Id}, what := {From, _, Content}}}, Taken) when is_integer(From) ->
                        maps:update_with({From, Id, Content}, fun(N) -> N + 1 end, 1, Taken);
                   (_, Taken) -> Taken
                end, #{}, Steps).

rows({Name, #{step := Step, what := What} = Traced}, #chart{roles = Roles, last = Last} = C) ->
    Id = acting(Step),
    {Event, Is, C1} = event(Step, What, Traced, C),
    Role = maps:get(Name, Roles, []),
    Shown = Is orelse Role =/= [] orelse Name =:= Last,
    {Born, C2} = born(Step, What, C1),
    {[row(case Event of
              none -> {step, pid(Id, C), witness_search_order:step(Step, What, C#chart.births), undefined};
              _ -> Event
          end, Role) || Shown, Id =/= none] ++ Born, C2}.

row(Event, Role) -> #{event => Event, role => Role}.

%% The event of a step, whether it is shown if it is none of a pair, and what is known after it.
event({process, Id}, {From, _, Content}, _, C) when is_integer(From) ->
    {{recv, pid(Id, C), pid(From, C), Content, undefined},
     is_failed(Id, C) orelse is_failed(From, C) orelse is_concerned(Id, C) andalso is_concerned(From, C), C};
event({process, Id}, {outside, _, Content}, _, C) ->
    {{recv, pid(Id, C), undefined, Content, undefined}, is_failed(Id, C) andalso not is_loading(Content), C};
event({process, Id}, {send, To, Content, _}, Traced, #chart{taken = Taken} = C) ->
    Receivers = receivers(Traced),
    Event = {send, pid(Id, C), case Receivers of [Receiver | _] -> pid(Receiver, C); [] -> To end, Content, undefined},
    Key = {Id, case Receivers of [Of | _] -> Of; [] -> none end, Content},
    case Taken of
        #{Key := N} when N > 1 -> {Event, false, C#chart{taken = Taken#{Key := N - 1}}};
        #{Key := _} -> {Event, false, C#chart{taken = maps:remove(Key, Taken)}};
        #{} -> {Event, is_concerned(Id, C) orelse Receivers =/= [] andalso is_concerned(hd(Receivers), C), C}
    end;
event({process, Id}, {ended, Reason}, _, C) -> {{exit, pid(Id, C), Reason, undefined}, is_concerned(Id, C), C};
event(_, _, _, C) -> {none, false, C}.

%% The VM loads a module for the process that needs it.
is_loading({code_server, _}) -> true;
is_loading(_) -> false.

%% The child of the step.
born({process, Id}, {spawn, _, _, _}, #chart{children = Children, spawned = Spawned} = C) ->
    Rank = maps:get(Id, Spawned, 0),
    {[row(birth(Child, C), []) || #{{Id, Rank} := Child} <- [Children], is_concerned(Child, C)],
     C#chart{spawned = Spawned#{Id => Rank + 1}}};
born(_, _, C) -> {[], C}.

birth(Id, #chart{births = Births} = C) ->
    #{Id := #{pid := Pid, parent := Parent, signature := Signature}} = Births,
    {init, Pid, case Parent of 0 -> undefined; _ -> pid(Parent, C) end, Signature, undefined}.

pid(Id, #chart{births = Births}) ->
    case Births of
        #{Id := #{pid := Pid}} -> Pid;
        #{} -> undefined
    end.

is_failed(Id, #chart{failed = Failed}) -> lists:member(Id, Failed).

is_concerned(Id, #chart{concerned = Concerned}) -> lists:member(Id, Concerned).

%% The last rows, and those of the pairs.
cut(Rows) ->
    {Earlier, Last} = lists:split(max(0, length(Rows) - ?MAX_ROWS), Rows),
    Kept = [Row || #{role := [_ | _]} = Row <- Earlier],
    {Kept ++ Last, length(Earlier) - length(Kept)}.
