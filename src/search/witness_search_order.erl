-module(witness_search_order).
-moduledoc """
The pairs of steps that a failure needs, as they are shown: which process acts, and what it does. Pure.

A step of a pair may not happen in the run that is recorded, because the run has failed before, or since the other step comes first. What
it does is known from a run that has it. There processes may have other pids, so these are translated by the places of the
processes among those that their parents have spawned.
""".

-export([describe/3, step/3]).

-doc "Pairs in a run. `Others`: the runs from which they were taken, which have all of their steps.".
-spec describe([witness_search_reversal:pair()], Run :: witness_search_scheduler:result(),
               Others :: [witness_search_scheduler:result()]) -> [witness_search:pair()].
describe(Pairs, Run, Others) ->
    Here = steps(Run),
    There = lists:foldr(fun(Other, Known) -> maps:merge(Known, steps(Other)) end, #{}, Others),
    [#{first => one(First, Here, There), second => one(Second, Here, There),
       never => [Which || {Which, Name} <- [{first, First}, {second, Second}], not is_map_key(Name, Here)]}
     || {First, Second} <- Pairs].

steps(#{trace := Trace, births := Births}) ->
    Translated = #{Path => Pid || _ := #{path := Path, pid := Pid} <- Births},
    maps:map(fun(_, #{step := Step, what := What}) -> {Step, What, Births, Translated} end,
             maps:from_list(witness_search_reversal:named(lists:reverse(Trace)))).

one(Name, Here, There) ->
    case Here of
        #{Name := {Step, What, Births, _}} -> step(Step, What, Births);
        #{} ->
            #{Name := {Step, What, Births, _}} = There,
            Pids = pids(Births, Here),
            #{pid := Pid} = Described = step(Step, What, Births),
            Described#{pid := translate(Pid, Pids), what := translate(map_get(what, Described), Pids)}
    end.

%% The pids of one run, with those of the same processes in the other one.
pids(Births, Here) ->
    case maps:next(maps:iterator(Here)) of
        {_, {_, _, _, Others}, _} -> #{Pid => Other || _ := #{path := Path, pid := Pid} <- Births, #{Path := Other} <- [Others]};
        none -> #{}
    end.

translate(Pid, Pids) when is_pid(Pid) -> maps:get(Pid, Pids, Pid);
translate([Head | Tail], Pids) -> [translate(Head, Pids) | translate(Tail, Pids)];
translate(Tuple, Pids) when is_tuple(Tuple) -> list_to_tuple(translate(tuple_to_list(Tuple), Pids));
translate(Map, Pids) when is_map(Map) -> #{translate(Key, Pids) => translate(Value, Pids) || Key := Value <- Map};
translate(Other, _) -> Other.

-doc "A step as it is shown.".
-spec step(witness_search_world:step(), What :: term(), #{witness_search_world:id() => witness_search_scheduler:birth()}) ->
    witness_search:step().
step(Step, What, Births) ->
    Id = element(tuple_size(Step), Step),
    {Acts, Of} = case Births of
        #{Id := #{pid := Pid, signature := {Module, _, _}}} -> {Pid, Module};
        #{} -> {undefined, undefined}
    end,
    #{pid => Acts, module => Of, kind => element(1, Step), what => without_fun(What)}.

without_fun({'receive', _}) -> 'receive';
without_fun(What) -> What.
