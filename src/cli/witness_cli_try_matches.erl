-module(witness_cli_try_matches).
-moduledoc """
Counts which events of a log the actions of specifications match, and keeps the first ones that come near to an action which matches none
(`m:witness_spec_shape`).

An event is counted once for a place of the text if a monitor of the property has taken an action of this place with it. Many monitors
count at the same time, each in its own process. The first events are those of the log, whichever monitor is faster.
""".

-export([new/1, add/2, result/2, delete/1]).

-export_type([matches/0, action/0]).

-doc "Properties by their place and name.".
-opaque matches() :: #{counts := counters:counters_ref(), near := ets:table(), properties := #{key() => property()}}.

-doc """
A place of the specification with an action. `decides`: the verdict of the action by itself; `matched`: how many events it has matched; `same`: how
many others had its shape, if it has matched none; `near`: the first events that come near to it, with their lines, if none had its shape.
""".
-type action() :: #{line := pos_integer(), column := pos_integer(), text := binary(), decides := yes | no | undefined,
                    matched := non_neg_integer(), same := non_neg_integer(),
                    near := [{Line :: pos_integer(), witness_event:event()}]}.

-type key() :: {Spec :: binary(), Name :: binary() | undefined}.

%% The number of the counter of its events, and the places of its actions. Each has a counter for the events that it has
%% matched, and, next to it, one for those of the same shape.
-type property() :: {pos_integer(), [{Counter :: pos_integer(), Mask :: pos_integer(), [witness_spec_shape:shape()], map()}]}.

-define(MAX_NEAR, 2).

-doc "Nothing was read yet.".
-spec new([{key(), [map()]}]) -> matches().
new(Actions) ->
    {Properties, Last} = lists:mapfoldl(fun number/2, 1, Actions),
    #{counts => counters:new(Last, [write_concurrency]), near => ets:new(near, [public, {write_concurrency, true}]),
      properties => maps:from_list(Properties)}.

number({Key, Actions}, Next) ->
    Places = maps:groups_from_list(fun(#{line := Line, column := Column}) -> {Line, Column} end, Actions),
    {Numbered, Last} = lists:mapfoldl(fun({_, [First | _] = Of}, Counter) ->
        Mask = lists:foldl(fun(#{id := Id}, A) -> A bor (1 bsl Id) end, 0, Of),
        Shapes = lists:uniq([Shape || #{shape := Shape} <- Of]),
        {{Counter, Mask, Shapes, maps:with([line, column, text, decides], First)}, Counter + 2}
    end, Next + 1, lists:sort(maps:to_list(Places))),
    {{Key, {Next, Numbered}}, Last}.

-doc "Counts an event. Any process may call it.".
-spec add(witness:read(), matches()) -> ok.
add(#{spec := Spec, name := Name} = Read, #{properties := Properties, counts := Counts} = Matches) ->
    case Properties of
        #{{Spec, Name} := {Counter, Places}} ->
            ok = counters:add(Counts, Counter, 1),
            lists:foreach(fun(Place) -> add(Place, Read, Matches) end, Places);
        #{} -> ok
    end.

add({Counter, Mask, Shapes, _}, #{taken := Taken, event := Event, place := Place}, #{counts := Counts, near := Near}) ->
    case Taken band Mask of
        0 ->
            %% What is kept of an action that has matched is not shown.
            Compared = case counters:get(Counts, Counter) of
                0 -> [witness_spec_shape:compare(Event, Shape) || Shape <- Shapes];
                _ -> []
            end,
            case {lists:member(same, Compared), lists:member(near, Compared)} of
                {true, _} -> counters:add(Counts, Counter + 1, 1);
                {false, true} -> keep(Counter, Place, Event, Near);
                {false, false} -> ok
            end;
        _ -> counters:add(Counts, Counter, 1)
    end.

%% The first ones of each process: the first of all are among them.
keep(Counter, Place, Event, Near) ->
    case ets:update_counter(Near, {self(), Counter}, 1, {{self(), Counter}, 0}) =< ?MAX_NEAR of
        true ->
            true = ets:insert(Near, {{near, Counter, Place}, Event}),
            ok;
        false -> ok
    end.

-doc "How many events monitors of a property have read, and what its actions have matched.".
-spec result(key(), matches()) -> {non_neg_integer(), [action()]}.
result(Key, #{properties := Properties, counts := Counts, near := Near}) ->
    #{Key := {Counter, Places}} = Properties,
    {counters:get(Counts, Counter), [action(Place, Counts, Near) || Place <- Places]}.

action({Counter, _, _, Action}, Counts, Near) ->
    {Same, Kept} = case counters:get(Counts, Counter) of
        0 -> {counters:get(Counts, Counter + 1), lists:sort(ets:match(Near, {{near, Counter, '$1'}, '$2'}))};
        _ -> {0, []}
    end,
    Action#{matched => counters:get(Counts, Counter), same => Same,
            near => [{Line, Event} || Same =:= 0, [{_, Line}, Event] <- lists:sublist(Kept, ?MAX_NEAR)]}.

-doc "Ends the counting.".
-spec delete(matches()) -> ok.
delete(#{near := Near}) ->
    true = ets:delete(Near),
    ok.
