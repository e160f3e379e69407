-module(witness_spec_machine_draw).
-moduledoc "The states of machines as their authors named them, for `m:witness_spec_draw`.".

-export([unit/2]).

-doc "The nodes of a machine in place of those of its formula. A transition that changes nothing has no arrow.".
-spec unit(Index :: pos_integer(), witness_spec_machine:machine()) -> witness_spec_draw:drawn().
unit(Index, #{states := States}) ->
    Numbers = #{Name => N || {N, #{name := Name}} <- lists:enumerate(States)},
    #{index => Index, start => {node, {Index, 1}, []},
      nodes => [#{number => {Index, N}, text => Text,
                  arrows => [arrow({Index, N}, T, Index, Numbers) || T <- Ts, witness_spec_machine:is_change(T)]}
                || {N, #{text := Text, transitions := Ts}} <- lists:enumerate(States)]}.

arrow(Own, #{text := Text, target := Target}, Index, Numbers) ->
    {Text, case Target of
        {state, Name} -> {node, {Index, map_get(Name, Numbers)}, []};
        stay -> {node, Own, []};
        satisfied -> {verdict, yes};
        {violated, _} -> {verdict, no}
    end}.
