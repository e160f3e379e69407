-module(witness_trace_log).
-moduledoc """
The source of events that is a log: recorded items come in, and go out to tracers in causal order.

A log keeps the order of each process, but may have the spawn of a process after the first events of that process (RIARC
text, section 4.1 and appendix B.1). This module corrects that: the items of a process wait until the `fork` that made it
was delivered. It is pure data; nothing is traced and no process runs:

```
1> Log0 = witness_trace_log:new(#{roots => [P], top => t}).
2> {ok, Log1} = witness_trace_log:add(1, {recv, Q, undefined, hello, undefined}, Log0).
3> {none, Log2} = witness_trace_log:next(Log1).               % Q is not spawned yet
4> {ok, Log3} = witness_trace_log:add(2, {fork, P, Q, {m, f, []}, undefined}, Log2).
5> {root, P, undefined, 2, Log4} = witness_trace_log:next(Log3).
6> {deliver, t, 2, {fork, P, Q, {m, f, []}, undefined}, Log5} = witness_trace_log:next(Log4).
7> {deliver, t, 2, {init, Q, P, {m, f, []}, undefined}, Log6} = witness_trace_log:next(Log5).
8> {deliver, t, 1, {recv, Q, undefined, hello, undefined}, Log7} = witness_trace_log:next(Log6).
9> {none, Log8} = witness_trace_log:next(Log7).
```

One item is added, then `next/1` is called until it returns `none`. Of the items that can be delivered, it always returns the
one that came first. So a causal log passes as it is, and siblings, or anything else that is concurrent, are not reordered.

## Guarantees

- Every item is delivered once, to the tracer that its process has at that moment. Items of one process keep their
  order.
- A `fork` is delivered before every item of the child. Between the two the child may be given a tracer of its own
  (`on/3`); without that it has the tracer of its parent.
- The first item delivered of a forked process is its `init`. If the log has none, it is made from the fork.
- At most `waiting` items wait, and not more than 64 MB. If there are more, the process that has waited longest loses its
  items. If its spawn comes later, a `gap` tells how many are missing. Its `init` and its `exit` are kept, so that it can
  start and end.
- State is kept for processes that live or wait, and the names of the last 10,000 that have ended.

## Roots

A root is a process that needs no spawn in the log. `roots` names the roots, or `auto` finds them in the log. Each process
that begins with an `attached`, with an `init` without a known parent, or behind a `root`, is one. So is the first process of all that
nothing in the window (the first `window` items) has spawned. Until that process is known, its items wait.

## Names that are used again

Once a process has ended, a `fork` (or, with `auto`, an item that makes a root) may use its name again. Items after this are
those of the new process. Each of the two is a *life* of the name. If a life begins while an earlier one still waits for its
spawn, the earlier one is an orphan: its events can no longer be delivered without mixing them up with those of the new one.
For the same reason, if its spawn comes at last, a `gap` is delivered in place of that.
""".

-export([new/1, add/3, next/1, on/3, off/2, traced/3, settle/1, is_waiting/1, finish/1, is_plain/2, guarantees/0, save/1, load/1]).

-export_type([log/0, tracer/0, line/0, root/0]).

-doc "The receiver of items; only compared and passed on.".
-type tracer() :: term().

-doc "A mark in the log: the process begins next, and needs no spawn.".
-type root() :: {root, witness_event:proc(), witness_event:ts()}.

-doc "The place of an item in the log; only passed on.".
-type line() :: pos_integer().

%% The reader of a process from now on. `off`: its items are left out.
-type reader() :: {live, tracer()} | off.

%% An item that is not delivered at once, with the number of its arrival. Child: see child().
-type entry() :: {Seq :: pos_integer(), line(), witness_event:item(), child()}.

%% The child that the delivery of a fork makes: one without waiting items (`none'), the life with this number, or one that
%% is known without the fork (`known'). All items that are no forks have `none' as well.
-type child() :: none | known | pos_integer().

%% The fork that made a process, until the first of its own items is delivered.
-type origin() :: none | {line(), witness_event:event()}.

%% What remains of dropped items: the init among them, where the others began, and the exit, even if it came later.
-type lost() :: {Init :: none | entry(), First :: none | {Seq :: pos_integer(), line()}, Exit :: none | entry()}.

%% A process that is not simply alive. While its reader is `unknown`, it waits for its fork.
%% forked: the parent, if its fork was seen; is_reported: whether a root was reported, or need not be.
%% count: its items so far, while it waits; size: the words of its waiting items; exited: its exit has come, so the next
%% life may begin.
-record(life, {id :: pos_integer(),
               reader = unknown :: unknown | reader(),
               origin = none :: origin(),
               forked = none :: none | witness_event:proc(),
               is_reported = true :: boolean(),
               items = queue:new() :: queue:queue(entry()),
               count = 0 :: non_neg_integer(),
               size = 0 :: non_neg_integer(),
               lost = none :: none | lost(),
               exited = false :: boolean()}).

%% By their numbers. Only the oldest can have a reader, and all but the newest have exited.
-type lives() :: gb_trees:tree(Id :: pos_integer(), #life{}).

%% A process is alive and none of its items waits; or it is born and none of its items was delivered; or it has lives.
-type process() :: reader() | {born, reader(), origin()} | {lives, lives()}.

%% now: an item that is delivered next, since its process waits for nothing.
%% ready: the first items of lives that have a reader; waits: of those that have none.
%% held: how many items of lives without a reader wait, size: their words; lost: how many lives have lost their items;
%% dropped: lives that were given up.
%% ended: names of processes that have ended, which count if nothing else is known of the name; exits: these in the order
%% of their ends.
%% window: items until the root is decided, and the first root that is known without that.
%% auto: whether roots are found in the log; roots: those that were given, those that were marked and have not begun, and
%% processes that were unknown when they were switched on; `forked': its fork is in the log all the same, and was seen.
-record(log, {procs = #{} :: #{witness_event:proc() => process()},
              now = none :: none | {line(), witness_event:item(), child()},
              ready = gb_sets:empty() :: gb_sets:set({pos_integer(), witness_event:proc()}),
              waits = gb_trees:empty() :: gb_trees:tree(pos_integer(), {witness_event:proc(), Life :: pos_integer()}),
              held = 0 :: non_neg_integer(),
              size = 0 :: non_neg_integer(),
              lost = 0 :: non_neg_integer(),
              dropped = [] :: [{pos_integer(), witness_event:proc(), Count :: pos_integer()}],
              seq = 0 :: non_neg_integer(),
              ended = #{} :: #{witness_event:proc() => pos_integer()},
              exits = queue:new() :: queue:queue({witness_event:proc(), pos_integer()}),
              exit_count = 0 :: non_neg_integer(),
              window = closed :: closed | {Left :: pos_integer(), FirstRoot :: pos_integer() | infinity},
              auto :: boolean(),
              roots = #{} :: #{witness_event:proc() => awaited | marked | told | forked},
              top :: tracer(),
              waiting :: pos_integer()}).

-doc "A log that is being read. Opaque; see `save/1` for data.".
-opaque log() :: #log{}.

-define(MAX_ENDED, 10_000).

%% Words: the most that may wait, however few items it is.
-define(MAX_WAITING_WORDS, 8_000_000).

%% Items that do not change which processes live.
-define(IS_PLAIN(Item), (element(1, Item) =:= recv orelse element(1, Item) =:= send orelse element(1, Item) =:= call
                         orelse element(1, Item) =:= return)).

-doc """
A log of which nothing was read. `top` is the tracer of the roots. At most `waiting` items wait for the spawn of their
process, and at most so many processes with dropped items are remembered.
""".
-spec new(#{roots := auto | [witness_event:proc()], top := tracer(),
            waiting => pos_integer(), window => pos_integer()}) -> log().
new(#{roots := auto, top := Top} = Options) ->
    #log{top = Top, waiting = maps:get(waiting, Options, 100_000), auto = true,
         window = {maps:get(window, Options, 10_000), infinity}};
new(#{roots := Roots, top := Top} = Options) ->
    #log{top = Top, waiting = maps:get(waiting, Options, 100_000), auto = false,
         roots = #{P => awaited || P <- Roots}}.

-doc "The guarantees of this source: all, except that a send comes before the receive that it causes.".
-spec guarantees() -> witness_trace:guarantees().
guarantees() ->
    #{sets => true, inheritance => true, single => true, fork_first => true, birth => true, causal => false}.

%% --- items come in ---------------------------------------------------------------

-doc """
Adds the next item of the log, or its mark that a process is a root. `next/1` must have returned `none` before.

`{error, What, Log}`: the item is impossible after those before it, or too many processes wait; it is left out.
""".
-spec add(line(), witness_event:item() | root(), log()) -> {ok, log()} | {error, unicode:chardata(), log()}.
add(Line, Item, #log{now = none, window = closed} = Log) ->
    take(Line, Item, Log);
add(Line, Item, #log{now = none} = Log) ->
    case take(Line, Item, Log) of
        {ok, Log1} -> {ok, narrow(Log1)};
        Refused -> Refused
    end.

take(_, {root, P, _}, Log) ->
    await_root(P, Log);
take(Line, Item, #log{procs = Procs} = Log) ->
    P = element(2, Item),
    case Procs of
        #{P := {live, _}} when ?IS_PLAIN(Item) ->
            {ok, Log#log{now = {Line, Item, none}}};
        _ ->
            case refusal(Item, P, Log) of
                none -> {ok, place(Line, Item, P, Log)};
                What -> {error, What, Log}
            end
    end.

place(Line, Item, P, Log) ->
    case Log#log.procs of
        #{P := {lives, Lives}} ->
            {Child, Log1} = reserve(Item, true, Log),
            queue(Line, Item, P, Child, newest(Lives), Log1);
        #{P := _} ->
            {Child, Log1} = reserve(Item, false, Log),
            Log1#log{now = {Line, Item, Child}};
        #{} ->
            {Child, Log1} = reserve(Item, true, Log),
            {Id, Log2} = number(Log1),
            queue(Line, Item, P, Child, #life{id = Id}, Log2)
    end.

number(#log{seq = Seq} = Log) -> {Seq + 1, Log#log{seq = Seq + 1}}.

%% The life that a fork will start, if something is known of it before the fork is delivered.
reserve({fork, P, C, _, _}, Waits, Log) ->
    case Log#log.procs of
        #{C := {lives, Lives}} -> reserve(P, C, newest(Lives), Log);
        #{C := _} -> {known, note_fork(C, Log)};
        #{} when Waits -> begin_life(P, C, Log);
        #{} -> {none, Log}
    end;
reserve(_, _, Log) ->
    {none, Log}.

reserve(P, C, #life{id = Id, reader = unknown, forked = none} = Life, Log) ->
    {Id, put_life(C, Life#life{forked = P}, Log)};
reserve(P, C, #life{exited = true}, Log) -> begin_life(P, C, Log);
reserve(_, C, _, Log) -> {known, note_fork(C, Log)}.

note_fork(C, #log{roots = Roots} = Log) -> Log#log{roots = Roots#{C := forked}}.

begin_life(P, C, Log) ->
    {Id, Log1} = number(remove_mark(C, Log)),
    {Id, put_life(C, #life{id = Id, forked = P}, Log1)}.

newest(Lives) -> element(2, gb_trees:largest(Lives)).

oldest(Lives) -> element(2, gb_trees:smallest(Lives)).

%% The life with this number, if the name still has it.
life(P, Id, #log{procs = Procs}) ->
    case Procs of
        #{P := {lives, Lives}} -> gb_trees:lookup(Id, Lives);
        #{} -> none
    end.

put_life(P, #life{id = Id} = Life, #log{procs = Procs} = Log) ->
    Lives = case Procs of
                #{P := {lives, Before}} -> Before;
                #{} -> gb_trees:empty()
            end,
    Log#log{procs = Procs#{P => {lives, gb_trees:enter(Id, Life, Lives)}}}.

remove_life(P, Id, #log{procs = Procs} = Log) ->
    #{P := {lives, Lives}} = Procs,
    case gb_trees:size(Lives) of
        1 -> Log#log{procs = maps:remove(P, Procs)};
        _ -> Log#log{procs = Procs#{P := {lives, gb_trees:delete(Id, Lives)}}}
    end.

%% Appends an item to the newest life.
queue(Line, Item, P, Child, Life0, Log0) ->
    {Seq, Log1} = number(Log0),
    Root = is_root(Item, P, Life0, Log1),
    Life = Life0#life{count = Life0#life.count + 1, exited = element(1, Item) =:= exit},
    {Life1, Log2} = hold({Seq, Line, Item, Child}, P, Life, Log1),
    Log3 = put_life(P, Life1, Log2),
    case Root of
        true -> make_root(P, Seq, Life1#life.id, Log3);
        false -> limit_waiting(Log3)
    end.

hold(Entry, _, #life{lost = {_, _, _} = Lost} = Life, Log) ->
    %% A child that it would have made is an orphan, too.
    {Life#life{lost = add_lost(Entry, Lost)}, unfork(Entry, Log)};
hold(Entry, _, #life{reader = Reader, items = Items} = Life, Log) when Reader =/= unknown ->
    {Life#life{items = queue:in(Entry, Items)}, Log};
hold({Seq, _, Item, _} = Entry, P, #life{id = Id, items = Items, count = Count, size = Size} = Life, Log) ->
    Words = erts_debug:flat_size(Item),
    Waits = case Count of
                1 -> gb_trees:insert(Seq, {P, Id}, Log#log.waits);
                _ -> Log#log.waits
            end,
    {Life#life{items = queue:in(Entry, Items), size = Size + Words},
     Log#log{waits = Waits, held = Log#log.held + 1, size = Log#log.size + Words}}.

%% --- what is refused -------------------------------------------------------------

refusal(Item, P, #log{lost = Lost, waiting = Waiting, auto = Auto} = Log) ->
    case arrival(P, Log) of
        %% A root may use the name of a process that has ended.
        ended when Auto, not is_map_key(P, Log#log.procs) ->
            case begins_alone(Item) orelse is_marked(P, Log) of
                true -> impossible(Item, {fresh, none}, Log);
                false -> [name(P), " has ended: nothing can follow"]
            end;
        ended -> [name(P), " has ended: nothing can follow"];
        {Arrived, unknown} when Lost > Waiting -> too_many(Item, P, Arrived, Log);
        {Arrived, _} -> impossible(Item, Arrived, Log)
    end.

too_many(Item, P, Arrived, #log{waiting = Waiting, procs = Procs} = Log) ->
    Life = case Procs of
               #{P := {lives, Lives}} -> newest(Lives);
               #{} -> #life{id = 1}
           end,
    case is_root(Item, P, Life, Log) of
        true -> impossible(Item, Arrived, Log);
        false -> ["more than ", integer_to_binary(Waiting), " processes whose spawn is not in the log; ", name(P),
                  " may be one"]
    end.

%% What has come of a name so far: of its last life in the log, whether delivered or not. `{fresh, Parent}': nothing, or
%% only its fork.
arrival(P, #log{procs = Procs, ended = Ended}) ->
    case Procs of
        #{P := {born, _, Origin}} -> {{fresh, parent(Origin)}, known};
        #{P := {lives, Lives}} -> arrival(newest(Lives));
        #{P := _} -> {begun, known};
        #{} when is_map_key(P, Ended) -> ended;
        #{} -> {{fresh, none}, unknown}
    end.

parent(none) -> none;
parent({_, {fork, Parent, _, _, _}}) -> Parent.

arrival(#life{exited = true}) -> ended;
arrival(#life{count = 0, reader = unknown, forked = Parent}) -> {{fresh, Parent}, unknown};
arrival(#life{reader = unknown}) -> {begun, unknown};
arrival(#life{}) -> {begun, known}.

impossible({init, P, _, _, _}, begun, _) ->
    ["init of ", name(P), ", which has begun already"];
impossible({init, P, Named, _, _}, {fresh, Parent}, _) ->
    contradiction(P, Parent, Named);
impossible({fork, P, P, _, _}, _, _) ->
    [name(P), " cannot be spawned by itself"];
impossible({fork, P, C, _, _}, _, #log{procs = Procs} = Log) ->
    case Procs of
        #{C := {born, _, {_, _}}} -> second_fork(C);
        #{C := {lives, Lives}} -> impossible_child(P, C, newest(Lives), Log);
        #{C := _} -> fork_of_alive(C, Log);
        #{} -> none
    end;
impossible(_, _, _) ->
    none.

impossible_child(P, C, #life{reader = unknown, forked = none} = Life, _) -> contradiction(C, P, named_parent(Life));
impossible_child(_, _, #life{exited = true}, _) -> none;
impossible_child(_, C, #life{forked = none}, Log) -> fork_of_alive(C, Log);
impossible_child(_, C, #life{}, _) -> second_fork(C).

%% A process that was given as a root, or switched on, may be spawned in the log all the same.
fork_of_alive(C, #log{roots = Roots}) ->
    case Roots of
        #{C := told} -> none;
        #{} -> ["fork of ", name(C), ", which is alive"]
    end.

second_fork(C) -> ["second fork of ", name(C)].

contradiction(_, none, _) -> none;
contradiction(_, _, undefined) -> none;
contradiction(_, Parent, Parent) -> none;
contradiction(P, Parent, Named) ->
    [name(P), " was spawned by ", name(Parent), ", but its init names ", name(Named)].

named_parent(#life{lost = {{_, _, {init, _, Parent, _, _}, _}, _, _}}) -> Parent;
named_parent(#life{items = Items}) ->
    case queue:peek(Items) of
        {value, {_, _, {init, _, Parent, _, _}, _}} -> Parent;
        _ -> undefined
    end.

name({external, Name}) -> witness_event_term:text(Name, 200);
name(P) -> witness_event:format_term(P, 200).

%% --- roots -----------------------------------------------------------------------

is_root(Item, P, #life{reader = unknown, count = 0, forked = Forked}, #log{auto = Auto, roots = Roots}) ->
    case Roots of
        #{P := awaited} -> true;
        #{P := marked} -> Forked =:= none;
        #{} -> Auto andalso Forked =:= none andalso begins_alone(Item)
    end;
is_root(_, _, _, _) ->
    false.

remove_mark(P, #log{roots = Roots} = Log) ->
    case Roots of
        #{P := marked} -> Log#log{roots = maps:remove(P, Roots)};
        #{} -> Log
    end.

%% Given roots are the only ones.
await_root(_, #log{auto = false} = Log) ->
    {ok, Log};
await_root(P, #log{procs = Procs, roots = Roots} = Log) ->
    case arrival(P, Log) of
        ended when not is_map_key(P, Procs) -> {ok, Log#log{roots = Roots#{P => marked}}};
        {{fresh, none}, unknown} -> {ok, Log#log{roots = Roots#{P => marked}}};
        {{fresh, Parent}, _} -> {error, [name(P), " is no root: it was spawned by ", name(Parent)], Log};
        ended -> {error, [name(P), " has ended: nothing can follow"], Log};
        {begun, _} -> {error, ["root of ", name(P), ", which has begun already"], Log}
    end.

is_marked(P, #log{roots = Roots}) ->
    case Roots of
        #{P := marked} -> true;
        #{} -> false
    end.

begins_alone({init, _, undefined, _, _}) -> true;
begins_alone({attached, _, _, _}) -> true;
begins_alone(_) -> false.

make_root(P, Seq, Id, #log{window = Window, roots = Roots, top = Top} = Log) ->
    Log1 = case Window of
               {Left, infinity} -> Log#log{window = {Left, Seq}};
               _ -> Log
           end,
    Log2 = case Roots of
               #{P := awaited} -> note_known(P, Id, Log1);
               #{} -> remove_mark(P, Log1)
           end,
    adopt(P, Id, {live, Top}, none, false, Log2).

%% A process is known without its fork, which may have been seen before.
note_known(P, Id, #log{roots = Roots} = Log) ->
    Seen = case life(P, Id, Log) of
               {value, #life{forked = none}} -> told;
               {value, #life{}} -> forked
           end,
    Log#log{roots = Roots#{P => Seen}}.

-doc "Whether items wait for the spawn of their process, or have been given up for it: then earlier ones may be delivered later.".
-spec is_waiting(log()) -> boolean().
is_waiting(#log{held = Held, lost = Lost}) -> Held > 0 orelse Lost > 0.

-doc "Decides now which process is the root, if that is open: the log has ended, or there is nothing to read for now.".
-spec settle(log()) -> log().
settle(#log{window = closed} = Log) ->
    Log;
settle(#log{window = {_, First}} = Log) ->
    case candidate(gb_trees:next(gb_trees:iterator(Log#log.waits)), First, Log) of
        {P, Seq, Id} -> make_root(P, Seq, Id, Log#log{window = closed});
        none when First =:= infinity -> Log;
        none -> Log#log{window = closed}
    end.

%% The first waiting process that no process has spawned, unless a root came before it.
candidate({Seq, {P, Id}, Iterator}, First, Log) when Seq < First ->
    case life(P, Id, Log) of
        {value, #life{forked = none}} -> {P, Seq, Id};
        {value, #life{}} -> candidate(gb_trees:next(Iterator), First, Log)
    end;
candidate(_, _, _) ->
    none.

%% The root is known early if no process waits that came before it.
narrow(#log{window = {Left, First}, waits = Waits} = Log) ->
    case First =/= infinity andalso gb_trees:is_empty(Waits) of
        true -> Log#log{window = closed};
        false when Left > 1 -> Log#log{window = {Left - 1, First}};
        false -> (settle(Log))#log{window = closed}
    end;
narrow(Log) ->
    Log.

%% --- the bound -------------------------------------------------------------------

limit_waiting(#log{held = Held, waiting = Waiting, size = Size} = Log) when Held =< Waiting, Size =< ?MAX_WAITING_WORDS -> Log;
limit_waiting(#log{window = {_, _}} = Log) -> limit_waiting((settle(Log))#log{window = closed});
limit_waiting(Log) -> drop_items(Log).

%% The life that has waited longest loses its items.
drop_items(#log{waits = Waits} = Log) ->
    {_, {P, Id}} = gb_trees:smallest(Waits),
    {value, Life} = life(P, Id, Log),
    Lost = Life#life{items = queue:new(), size = 0, lost = queue:fold(fun add_lost/2, {none, none, none}, Life#life.items)},
    release(Life, put_life(P, Lost, Log)).

add_lost({_, _, {init, _, _, _, _}, _} = Entry, {none, First, Exit}) -> {Entry, First, Exit};
add_lost({_, _, {exit, _, _, _}, _} = Entry, {Init, First, none}) -> {Init, First, Entry};
add_lost({Seq, Line, _, _}, {Init, none, none}) -> {Init, {Seq, Line}, none};
add_lost(_, Lost) -> Lost.

%% The items of a life wait no longer. Other forks can claim the children that these items fork.
release(#life{items = Items, count = Count, size = Size}, #log{waits = Waits, held = Held, lost = Lost} = Log) ->
    {value, {Seq, _, _, _}} = queue:peek(Items),
    queue:fold(fun unfork/2,
               Log#log{waits = gb_trees:delete(Seq, Waits), held = Held - Count, size = Log#log.size - Size,
                       lost = Lost + 1}, Items).

unfork({_, _, {fork, _, C, _, _}, Id}, Log) when is_integer(Id) ->
    case life(C, Id, Log) of
        {value, #life{reader = unknown, count = 0}} -> remove_life(C, Id, Log);
        {value, #life{reader = unknown} = Life} -> put_life(C, Life#life{forked = none}, Log);
        _ -> Log
    end;
unfork(_, Log) ->
    Log.

%% If a later life of the same name overtakes a life, the latter stays an orphan.
give_up_older(P, Id, #log{procs = Procs} = Log) ->
    #{P := {lives, Lives}} = Procs,
    case gb_trees:smallest(Lives) of
        {Id, _} -> Log;
        {Older, Life} -> give_up_older(P, Id, remove_life(P, Older, give_up(P, Life, Log)))
    end.

give_up(P, #life{id = Id, count = Count, lost = Lost} = Life, Log) ->
    Log1 = case Lost of
               none -> release(Life, Log);
               _ -> Log
           end,
    Log1#log{dropped = [{Id, P, Count} | Log1#log.dropped]}.

%% --- readers of lives ------------------------------------------------------------

%% From now on the items of this life can be delivered.
adopt(P, Id, Reader, Origin, Told, Log0) ->
    Log = give_up_older(P, Id, Log0),
    {value, Life} = life(P, Id, Log),
    Items = deliverable(P, Life),
    case queue:peek(Items) of
        empty ->
            remove_waiting(Life, Log#log{procs = (Log#log.procs)#{P => {born, Reader, Origin}}});
        {value, {Seq, _, _, _}} ->
            Life1 = Life#life{reader = Reader, origin = Origin, is_reported = Told, items = Items, lost = none},
            Log1 = remove_waiting(Life, put_life(P, Life1, Log)),
            Log1#log{ready = gb_sets:add_element({Seq, P}, Log1#log.ready)}
    end.

remove_waiting(#life{count = 0}, Log) -> Log;
remove_waiting(#life{lost = {_, _, _}}, #log{lost = Lost} = Log) -> Log#log{lost = Lost - 1};
remove_waiting(#life{items = Items, count = Count, size = Size}, #log{waits = Waits, held = Held} = Log) ->
    {value, {Seq, _, _, _}} = queue:peek(Items),
    Log#log{waits = gb_trees:delete(Seq, Waits), held = Held - Count, size = Log#log.size - Size}.

%% A gap replaces the lost items.
deliverable(_, #life{lost = none, items = Items}) ->
    Items;
deliverable(P, #life{lost = {Init, First, Exit}, count = Count}) ->
    Missing = Count - length([kept || Entry <- [Init, Exit], Entry =/= none]),
    Gaps = case First of
               {Seq, Line} -> [{Seq, Line, {gap, P, orphaned, Missing, undefined}, none}];
               none -> []
           end,
    queue:from_list([Init || Init =/= none] ++ Gaps ++ [Exit || Exit =/= none]).

%% --- items go out ----------------------------------------------------------------

-doc """
The item to be delivered next, with its tracer and its line. An `init` that is made from a fork has the line of that
fork, a `gap` that of the first item that is missing.

`root`: this process is a root, and its first item follows. The tuple has the signature, if that item is its `init`, the function,
if it is `attached`, and the line.
""".
-spec next(log()) -> {deliver, tracer(), line(), witness_event:item(), log()}
                   | {root, witness_event:proc(), witness_event:signature() | {attached, mfa()} | undefined, line(), log()}
                   | {none, log()}.
next(#log{now = {Line, Item, Child}, procs = Procs} = Log) ->
    P = element(2, Item),
    case Procs of
        #{P := {live, Tracer}} when ?IS_PLAIN(Item) ->
            {deliver, Tracer, Line, Item, Log#log{now = none}};
        #{P := {born, Reader, Origin}} ->
            begin_with(Origin, Item, Reader, Log#log{procs = Procs#{P := Reader}});
        #{P := Reader} ->
            perform(Reader, Line, Item, Child, Log#log{now = none})
    end;
next(#log{ready = Ready} = Log) ->
    case gb_sets:is_empty(Ready) of
        true -> {none, Log};
        false -> step(gb_sets:take_smallest(Ready), Log)
    end.

%% The init that comes before the first item of a process, if it has to be made.
begin_with({Line, {fork, Parent, C, Signature, Ts}}, Item, Reader, Log) when element(1, Item) =/= init ->
    deliver(Reader, Line, {init, C, Parent, Signature, Ts}, Log);
begin_with(_, _, _, Log) ->
    next(Log).

step({{_, P}, Ready}, #log{procs = Procs} = Log) ->
    #{P := {lives, Lives}} = Procs,
    Life = oldest(Lives),
    {{value, {_, Line, Item, Child}}, Items} = queue:out(Life#life.items),
    case Life of
        #life{is_reported = false} ->
            {root, P, beginning(Item), Line, put_life(P, Life#life{is_reported = true}, Log)};
        #life{origin = {_, _} = Origin, reader = Reader} ->
            begin_with(Origin, Item, Reader, put_life(P, Life#life{origin = none}, Log));
        #life{reader = Reader} ->
            Rest = put_rest(P, Life#life{items = Items}, Log#log{ready = Ready}),
            perform(Reader, Line, Item, Child, Rest)
    end.

beginning({init, _, _, Signature, _}) -> Signature;
beginning({attached, _, Function, _}) -> {attached, Function};
beginning(_) -> undefined.

%% The state of a life when its first item is out. After an exit nothing is left: later items are of a later life.
put_rest(P, #life{items = Items, reader = Reader, exited = Exited} = Life, Log) ->
    case queue:peek(Items) of
        {value, {Seq, _, _, _}} ->
            put_life(P, Life, Log#log{ready = gb_sets:add_element({Seq, P}, Log#log.ready)});
        empty when Exited ->
            Log;
        empty ->
            Log#log{procs = (Log#log.procs)#{P := Reader}}
    end.

perform(Reader, Line, {fork, P, C, _, Ts} = Fork, Child, Log) ->
    case birth(C, Child, Reader, {Line, Fork}, Log) of
        {ok, Log1} -> deliver(Reader, Line, Fork, Log1);
        overtaken -> deliver(Reader, Line, {gap, P, orphaned, 1, Ts}, Log)
    end;
perform(Reader, Line, {exit, P, _, _} = Exit, _, Log) ->
    deliver(Reader, Line, Exit, end_process(P, Log));
perform(Reader, Line, Item, _, Log) ->
    deliver(Reader, Line, Item, Log).

deliver({live, Tracer}, Line, Item, Log) -> {deliver, Tracer, Line, Item, Log};
deliver(off, _, _, Log) -> next(Log).

birth(C, none, Reader, Origin, #log{procs = Procs} = Log) ->
    {ok, Log#log{procs = Procs#{C => {born, Reader, Origin}}}};
birth(C, Id, Reader, Origin, #log{roots = Roots} = Log) ->
    %% A root may have its fork in the log, but when it has ended, another process may have its name.
    case life(C, Id, Log) of
        {value, #life{reader = unknown}} -> {ok, adopt(C, Id, Reader, Origin, true, Log)};
        {value, #life{}} -> {ok, Log};
        none when is_map_key(C, Roots) -> {ok, Log};
        none -> overtaken
    end.

%% The process has ended; what remains of its name is of later lives.
end_process(P, #log{procs = Procs, roots = Roots, ended = Ended, exits = Exits, exit_count = Count, seq = Seq} = Log) ->
    Left = case Procs of
               #{P := {lives, Lives}} -> remove_life(P, (oldest(Lives))#life.id, Log);
               #{} -> Log#log{procs = maps:remove(P, Procs)}
           end,
    forget(Left#log{roots = maps:remove(P, Roots), seq = Seq + 1, ended = Ended#{P => Seq + 1},
                    exits = queue:in({P, Seq + 1}, Exits), exit_count = Count + 1}).

%% The oldest of the names that are remembered is forgotten, unless it ended again since.
forget(#log{exit_count = Count} = Log) when Count =< ?MAX_ENDED ->
    Log;
forget(#log{ended = Ended, exits = Exits, exit_count = Count} = Log) ->
    {{value, {P, Seq}}, Exits1} = queue:out(Exits),
    Ended1 = case Ended of
                 #{P := Seq} -> maps:remove(P, Ended);
                 #{} -> Ended
             end,
    Log#log{ended = Ended1, exits = Exits1, exit_count = Count - 1}.

-doc """
What is left at the end of the log, after `settle/1` and the items that it made deliverable: the processes without a spawn,
in the order in which they appeared, with the number of their items.
""".
-spec finish(log()) -> {[{witness_event:proc(), Count :: pos_integer()}], log()}.
finish(#log{procs = Procs, dropped = Dropped} = Log) ->
    Waiting = [{Id, P, Count} || P := {lives, Lives} <- Procs,
                                 #life{id = Id, reader = unknown, count = Count} <- gb_trees:values(Lives), Count > 0],
    Known = #{P => Process || P := Process <- Procs, is_known(Process)},
    {[{P, Count} || {_, P, Count} <- lists:sort(Waiting ++ Dropped)],
     Log#log{procs = Known, waits = gb_trees:empty(), held = 0, size = 0, lost = 0, dropped = []}}.

is_known({lives, Lives}) -> (oldest(Lives))#life.reader =/= unknown;
is_known(_) -> true.

%% --- readers of processes --------------------------------------------------------

-doc """
From now on the items of this process go to this tracer (TRACE in the RIARC text). If it is called for a child right after
its fork was delivered, this holds for all items of the child. A process that has ended stays ended.
""".
-spec on(witness_event:proc(), tracer(), log()) -> log().
on(P, Tracer, #log{procs = Procs, ended = Ended, roots = Roots} = Log) ->
    case reader(P, Log) of
        unknown ->
            #{P := {lives, Lives}} = Procs,
            #life{id = Id} = oldest(Lives),
            adopt(P, Id, {live, Tracer}, none, true, note_known(P, Id, Log));
        none when is_map_key(P, Ended) -> Log;
        none -> Log#log{procs = Procs#{P => {born, {live, Tracer}, none}}, roots = Roots#{P => told}};
        _ -> set_reader({live, Tracer}, P, Log)
    end.

-doc "From now on the items of this process are left out, and its children are not traced either (CLEAR).".
-spec off(witness_event:proc(), log()) -> log().
off(P, Log) ->
    case reader(P, Log) of
        {live, _} -> set_reader(off, P, Log);
        _ -> Log
    end.

set_reader(Reader, P, #log{procs = Procs} = Log) ->
    case Procs of
        #{P := {born, _, Origin}} -> Log#log{procs = Procs#{P := {born, Reader, Origin}}};
        #{P := {lives, Lives}} -> put_life(P, (oldest(Lives))#life{reader = Reader}, Log);
        #{P := _} -> Log#log{procs = Procs#{P := Reader}}
    end.

%% The reader of a process. `unknown`: none yet, it waits; `none`: nothing is known of it.
reader(P, #log{procs = Procs}) ->
    case Procs of
        #{P := {born, Reader, _}} -> Reader;
        #{P := {lives, Lives}} -> (oldest(Lives))#life.reader;
        #{P := Reader} -> Reader;
        #{} -> none
    end.

-doc "Whether this process is alive and its items go to this tracer. `dead`: it has ended.".
-spec traced(tracer(), witness_event:proc(), log()) -> boolean() | dead.
traced(Tracer, P, #log{ended = Ended} = Log) ->
    case reader(P, Log) of
        none when is_map_key(P, Ended) -> dead;
        Reader -> Reader =:= {live, Tracer}
    end.

-doc """
Whether a send, a receive, a call or a return of this process would be delivered at once, alone, and would change nothing here. Then a caller
that knows its tracer need not add it. This holds until its exit, or until it is switched off.
""".
-spec is_plain(witness_event:proc(), log()) -> boolean().
is_plain(P, #log{procs = Procs, window = closed}) ->
    case Procs of
        #{P := {live, _}} -> true;
        #{} -> false
    end;
is_plain(_, _) ->
    false.

%% --- checkpoints -----------------------------------------------------------------

-doc "The log as plain data, of maps, lists and tuples only. `next/1` must have returned `none` before.".
-spec save(log()) -> term().
save(#log{now = none} = Log) ->
    #{procs => maps:map(fun(_, Process) -> save_process(Process) end, Log#log.procs),
      ready => gb_sets:to_list(Log#log.ready),
      waits => gb_trees:to_list(Log#log.waits),
      held => Log#log.held,
      size => Log#log.size,
      lost => Log#log.lost,
      dropped => Log#log.dropped,
      seq => Log#log.seq,
      ended => Log#log.ended,
      exits => queue:to_list(Log#log.exits),
      window => Log#log.window,
      auto => Log#log.auto,
      roots => Log#log.roots,
      top => Log#log.top,
      waiting => Log#log.waiting}.

-doc "The log that was saved.".
-spec load(term()) -> log().
load(#{procs := Procs, ready := Ready, waits := Waits, held := Held, size := Size, lost := Lost, dropped := Dropped,
       seq := Seq, ended := Ended, exits := Exits, window := Window, auto := Auto, roots := Roots, top := Top,
       waiting := Waiting}) ->
    #log{procs = maps:map(fun(_, Process) -> load_process(Process) end, Procs),
         ready = gb_sets:from_ordset(Ready), waits = gb_trees:from_orddict(Waits), held = Held, size = Size, lost = Lost,
         dropped = Dropped, seq = Seq, ended = Ended, exits = queue:from_list(Exits), exit_count = length(Exits),
         window = Window, auto = Auto, roots = Roots, top = Top, waiting = Waiting}.

save_process({lives, Lives}) -> {lives, [save_life(Life) || Life <- gb_trees:values(Lives)]};
save_process(Process) -> Process.

save_life(#life{id = Id, reader = Reader, origin = Origin, forked = Forked, is_reported = Told, items = Items, count = Count,
                size = Size, lost = Lost, exited = Exited}) ->
    {Id, {Reader, Origin, Forked, Told, queue:to_list(Items), Count, Size, Lost, Exited}}.

load_process({lives, Lives}) -> {lives, gb_trees:from_orddict([load_life(Life) || Life <- Lives])};
load_process(Process) -> Process.

load_life({Id, {Reader, Origin, Forked, Told, Items, Count, Size, Lost, Exited}}) ->
    {Id, #life{id = Id, reader = Reader, origin = Origin, forked = Forked, is_reported = Told, items = queue:from_list(Items),
               count = Count, size = Size, lost = Lost, exited = Exited}}.
