-module(witness_monitor_slices).
-moduledoc """
The live slices of a monitor: a bounded map from keys to values that can remove its oldest member.

Keys are compared exactly (`1` and `1.0` are different data). Below the bound, a slice costs what a
map entry costs. When the bound is reached for the first time, the slices are put in a line by age. The line serves until all
its slices are gone, which takes at least as many removals as it was long. So each removal costs the logarithm of
the bound, amortised, and nothing grows beyond the bound.
""".

-export([new/1, find/2, add/3, update/4, remove/2, to_list/1, youngest/1, from_list/3]).
-export_type([slices/1, key/0, birth/0]).

-type key() :: term().
-doc "The number of a slice; an older slice has a smaller one.".
-type birth() :: pos_integer().
%% `born` is the last number; the line has some of the live slices, older than all others, and ended ones.
-record(slices, {max :: pos_integer(),
                 born = 0 :: non_neg_integer(),
                 alive = #{} :: #{key() => {birth(), Value :: term()}},
                 line = [] :: [{birth(), key()}]}).
-opaque slices(_Value) :: #slices{}.

-doc "No slices; `Max` is the bound.".
-spec new(pos_integer()) -> slices(_).
new(Max) -> #slices{max = Max}.

-doc "Finds a live slice.".
-spec find(key(), slices(Value)) -> {birth(), Value} | none.
find(Key, #slices{alive = Alive}) ->
    case Alive of
        #{Key := Slice} -> Slice;
        #{} -> none
    end.

-doc "Adds a new slice. At the bound, the oldest slice is removed and returned.".
-spec add(key(), Value, slices(Value)) -> {Gone :: [{key(), Value}], slices(Value)}.
add(Key, Value, #slices{max = Max, alive = Alive} = Slices) when map_size(Alive) < Max ->
    {[], insert(Key, Value, Slices)};
add(Key, Value, Slices) ->
    {Oldest, Others} = take_oldest(Slices),
    {[Oldest], insert(Key, Value, Others)}.

insert(Key, Value, #slices{born = Born, alive = Alive} = Slices) when not is_map_key(Key, Alive) ->
    Slices#slices{born = Born + 1, alive = Alive#{Key => {Born + 1, Value}}}.

take_oldest(#slices{alive = Alive, line = []} = Slices) ->
    take_oldest(Slices#slices{line = lists:sort([{Born, Key} || Key := {Born, _} <- Alive])});
take_oldest(#slices{alive = Alive, line = [{Born, Key} | Line]} = Slices) ->
    case Alive of
        #{Key := {Born, Value}} -> {{Key, Value}, Slices#slices{alive = maps:remove(Key, Alive), line = Line}};
        #{} -> take_oldest(Slices#slices{line = Line})
    end.

-doc "Gives a live slice another value; its birth is the one that `find/2` returned.".
-spec update(key(), birth(), Value, slices(Value)) -> slices(Value).
update(Key, Born, Value, #slices{alive = Alive} = Slices) -> Slices#slices{alive = Alive#{Key := {Born, Value}}}.

-doc "Removes a live slice.".
-spec remove(key(), slices(Value)) -> slices(Value).
remove(Key, #slices{alive = Alive} = Slices) when is_map_key(Key, Alive) ->
    Slices#slices{alive = maps:remove(Key, Alive)}.

-doc "All slices, the oldest one first.".
-spec to_list(slices(Value)) -> [{birth(), key(), Value}].
to_list(#slices{alive = Alive}) -> lists:keysort(1, [{Born, Key, Value} || Key := {Born, Value} <- Alive]).

-doc "The number of the youngest slice so far.".
-spec youngest(slices(_)) -> birth() | 0.
youngest(#slices{born = Born}) -> Born.

-doc """
Puts slices with their births into a new map; `Born` is at least the number of the youngest one. The line is made
again when it is needed. If there are more slices than the bound, they stay, and their number does not grow.
""".
-spec from_list(birth() | 0, [{birth(), key(), Value}], slices(Value)) -> slices(Value).
from_list(Born, List, Slices) ->
    Slices#slices{born = Born, alive = #{Key => {Birth, Value} || {Birth, Key, Value} <- List}}.
