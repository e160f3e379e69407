-module(witness_trace_sort).
-moduledoc """
Puts the items of a log into the order of their times, for logs that were not written in it.

How far the time of an item may be before the greatest one so far is known (the *window*). So an item goes on as soon as the greatest
time is later by the window, since whatever still comes is as late as this item at least. Items with the same time stay in the order of the log.

Each item that goes on has a rank, which grows, beside its line. Behind a line that has the greatest time so far comes the time before which
nothing comes any more. So it does between what a log says of itself and its events: these wait, and the heads of two logs must not
touch. The state is plain data.
""".

-export([new/1, add/3, pass/3, flush/1, count/1, place/2, too_early/2]).
-export_type([sort/0, sorted/0]).

-doc "`{Rank, Line}` in place of the line of the log. `passed`: what comes behind it has this time at least.".
-type sorted() :: [{{Rank :: pos_integer(), Line :: non_neg_integer()}, witness_log:entry() | {passed, Time :: integer()}}].

%% By the number of the line in all files.
-type held() :: gb_trees:tree({Time :: integer(), pos_integer()}, {Line :: pos_integer(), witness_log:entry()}).

%% head: the last line was one in which a log says something of itself, behind events.
-opaque sort() :: {Window :: non_neg_integer(), Greatest :: integer() | none | {head, integer()}, Rank :: non_neg_integer(),
                   held()}.

-define(IS_HEAD(Item), (element(1, Item) =:= receives orelse element(1, Item) =:= functions)).

%% The most items that wait at a time.
-define(MAX_HELD, 1_000_000).

-doc "The window in nanoseconds.".
-spec new(Window :: non_neg_integer()) -> sort().
new(Window) -> {Window, none, 0, gb_trees:empty()}.

-doc """
Takes items, with lines that are counted from the line `Base`, and returns what goes on. With `Shift` its lines are those of the file: a file that
was rotated begins anew. An event is refused, with its line without the shift, if it has no time, if its time is too far back, or if too many
would have to wait. The items after it were not taken. What is no event, such as a gap, and has no time does not wait: it is about all
that comes behind it.
""".
-spec add([{pos_integer(), witness_log:entry()}], {Base :: non_neg_integer(), Shift :: integer()}, sort()) ->
    {ok, sorted(), sort()}
  | {refused, Line :: pos_integer(), unicode:chardata(), sorted(), Rest :: [{pos_integer(), witness_log:entry()}], sort()}.
add(Items, Place, Sort) -> add(Items, Place, Sort, []).

add([{Line, Item} | _] = Items, {Base, Shift} = Place, {Window, {head, Greatest}, Rank, Held}, Out) when not ?IS_HEAD(Item) ->
    add(Items, Place, {Window, Greatest, Rank + 1, Held}, [{{Rank + 1, Base + Line + Shift}, {passed, Greatest - Window}} | Out]);
add([{Line, Item} | Items], {Base, Shift} = Place, {Window, Greatest, Rank, Held} = Sort, Out) ->
    case time(Item) of
        none when ?IS_HEAD(Item), is_integer(Greatest) ->
            add(Items, Place, {Window, {head, Greatest}, Rank + 1, Held}, [{{Rank + 1, Base + Line + Shift}, Item} | Out]);
        none ->
            add(Items, Place, {Window, Greatest, Rank + 1, Held}, [{{Rank + 1, Base + Line + Shift}, Item} | Out]);
        undefined ->
            refuse(Base + Line, ~"this event has no time, and cannot be sorted: expected one in each line, or no --sort", Items, Sort, Out);
        Time when is_integer(Greatest), Time < Greatest - Window, element(1, Item) =/= clock ->
            refuse(Base + Line, too_early(Greatest - Time, ~"sort"), Items, Sort, Out);
        Time ->
            With = setelement(4, Sort, gb_trees:insert({Time, Base + Line}, {Base + Line + Shift, Item}, Held)),
            {{_, _, _, Held1} = Sort1, Out1} = reach(Time, Base + Line + Shift, With, Out),
            case gb_trees:size(Held1) > ?MAX_HELD of
                false -> add(Items, Place, Sort1, Out1);
                true -> refuse(Base + Line, [~"more than ", integer_to_binary(?MAX_HELD), ~" lines are within sort: expected a shorter time"],
                               Items, setelement(4, Sort1, gb_trees:delete({Time, Base + Line}, Held1)), Out1)
            end
    end;
add([], _, Sort, Out) ->
    {ok, lists:reverse(Out), Sort}.

time(Item) when ?IS_HEAD(Item) -> none;
time(Item) when element(1, Item) =:= gap; element(1, Item) =:= attached; element(1, Item) =:= root ->
    case witness_event:ts(Item) of undefined -> none; Time -> Time end;
time(Event) -> witness_event:ts(Event).

refuse(Line, What, Rest, Sort, Out) -> {refused, Line, What, lists:reverse(Out), Rest, Sort}.

%% The log has come to this time with this line.
reach(Time, Line, {Window, Greatest, Rank, Held}, Out) when Greatest =:= none; Time > Greatest ->
    {Rank1, Held1, Out1} = release(Time - Window, Rank, Held, Out),
    {{Window, Time, Rank1 + 1, Held1}, [{{Rank1 + 1, Line}, {passed, Time - Window}} | Out1]};
reach(_, _, {Window, Greatest, Rank, Held}, Out) ->
    {Rank1, Held1, Out1} = release(Greatest - Window, Rank, Held, Out),
    {{Window, Greatest, Rank1, Held1}, Out1}.

release(Until, Rank, Held, Out) ->
    case not gb_trees:is_empty(Held) andalso gb_trees:smallest(Held) of
        {{Time, _}, _} when Time =< Until ->
            {_, {Line, Item}, Rest} = gb_trees:take_smallest(Held),
            release(Until, Rank + 1, Rest, [{{Rank + 1, Line}, Item} | Out]);
        _ -> {Rank, Held, Out}
    end.

-doc "The greatest time is this one, if it is not greater, without a further line: what goes on because of that.".
-spec pass(Time :: integer(), Line :: non_neg_integer(), sort()) -> {sorted(), sort()}.
pass(Time, _, {_, {head, Greatest}, _, _} = Sort) when Time =< Greatest -> {[], Sort};
pass(Time, Line, {Window, {head, Greatest}, Rank, Held}) -> pass(Time, Line, {Window, Greatest, Rank, Held});
pass(Time, Line, Sort) ->
    {Sort1, Out} = reach(Time, Line, Sort, []),
    {lists:reverse(Out), Sort1}.

-doc "Nothing comes any more: all items that wait, in order.".
-spec flush(sort()) -> {sorted(), sort()}.
flush({Window, {head, Greatest}, Rank, Held}) -> flush({Window, Greatest, Rank, Held});
flush({Window, Greatest, Rank, Held}) ->
    {Rank1, Held1, Out} = release(infinity, Rank, Held, []),
    {lists:reverse(Out), {Window, Greatest, Rank1, Held1}}.

-doc "The place behind all that has gone on, with this line.".
-spec place(Line, sort()) -> {Rank :: pos_integer(), Line}.
place(Line, {_, _, Rank, _}) -> {Rank + 1, Line}.

-doc "How many items wait.".
-spec count(sort()) -> non_neg_integer().
count({_, _, _, Held}) -> gb_trees:size(Held).

-doc "The text for an event that is by so many nanoseconds further back than this option allows.".
-spec too_early(pos_integer(), Option :: binary()) -> unicode:chardata().
too_early(Back, Option) ->
    [~"the time of this event is ", duration(Back), ~" before the greatest one so far (with --clock, that of the clock), which is more than --",
     Option, ~" allows"].

duration(Nanoseconds) when Nanoseconds < 1_000_000 -> [integer_to_binary(Nanoseconds), ~" ns"];
duration(Nanoseconds) -> [integer_to_binary(Nanoseconds div 1_000_000), ~" ms"].
