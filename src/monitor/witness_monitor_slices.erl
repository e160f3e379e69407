-module(witness_monitor_slices).
-moduledoc """
The live slices of a monitor: a bounded map from keys to values that can give up its oldest member.

Keys are compared exactly (`1` and `1.0` are different data). As long as the bound is not reached, a slice costs what a
map costs. When it is reached for the first time, the slices are put in a line by their age; the line serves until all
that stood in it are gone, which takes at least as many removals as it was long. So each removal costs the logarithm of
the bound, spread over them, and nothing grows beyond the bound.
""".

-export([new/1, find/2, add/3, update/4, remove/2, to_list/1, born/1, from_list/3]).
-export_type([slices/1, key/0, birth/0]).

-type key() :: term().
-doc "The number of a slice; who was born before has a smaller one.".
-type birth() :: pos_integer().
%% `born` numbers the slices; the line holds some of them, older than all others, and dead ones.
-record(slices, {max :: pos_integer(),
                 born = 0 :: non_neg_integer(),
                 alive = #{} :: #{key() => {birth(), Value :: term()}},
                 line = [] :: [{birth(), key()}]}).
-opaque slices(_Value) :: #slices{}.

-doc "No slices; there may be so many.".
-spec new(pos_integer()) -> slices(_).
new(Max) -> #slices{max = Max}.

-doc "A slice that is there.".
-spec find(key(), slices(Value)) -> {birth(), Value} | none.
find(Key, #slices{alive = Alive}) ->
    case Alive of
        #{Key := Slice} -> Slice;
        #{} -> none
    end.

-doc "Adds a slice that is not there. If there is no room, the oldest one goes, which is returned.".
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

-doc "Gives a slice another value, as `find/2` has given it with its birth.".
-spec update(key(), birth(), Value, slices(Value)) -> slices(Value).
update(Key, Born, Value, #slices{alive = Alive} = Slices) -> Slices#slices{alive = Alive#{Key := {Born, Value}}}.

-doc "Removes a slice that is there.".
-spec remove(key(), slices(Value)) -> slices(Value).
remove(Key, #slices{alive = Alive} = Slices) when is_map_key(Key, Alive) ->
    Slices#slices{alive = maps:remove(Key, Alive)}.

-doc "All slices, the oldest one first.".
-spec to_list(slices(Value)) -> [{birth(), key(), Value}].
to_list(#slices{alive = Alive}) -> lists:keysort(1, [{Born, Key, Value} || Key := {Born, Value} <- Alive]).

-doc "The number of the youngest slice that there has been.".
-spec born(slices(_)) -> birth() | 0.
born(#slices{born = Born}) -> Born.

-doc """
Slices with their births in a map that is new, where `Born` is the youngest one's number or greater. The line is made
again when it is needed. If they are more than there may be, they stay, and none is added to their number.
""".
-spec from_list(birth() | 0, [{birth(), key(), Value}], slices(Value)) -> slices(Value).
from_list(Born, List, Slices) ->
    Slices#slices{born = Born, alive = #{Key => {Birth, Value} || {Birth, Key, Value} <- List}}.
