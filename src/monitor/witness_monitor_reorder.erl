-module(witness_monitor_reorder).
-moduledoc """
Puts the events of several processes in order within a hold-back window.

The events of one process arrive in order; those of different processes may overtake each
other on their way from the VM. They wait until the source's clock has passed their
time by the window, and are then released by their strict time stamps. If an event arrives
after a later one was released, it is *late*: its place in the order is lost, so the
trace has a gap. It is never put in the wrong place.
""".

-export([new/0, add/2, release/2, release_all/1]).

-export_type([order/0]).

-doc "Waiting events by stamp, and the last stamp that was released.".
-opaque order() :: {gb_trees:tree(integer(), witness_event:event()), integer() | none}.

-spec new() -> order().
new() -> {gb_trees:empty(), none}.

-doc "Adds an event. `late`: a later one has been released already.".
-spec add({integer(), witness_event:event()}, order()) -> {ok, order()} | late.
add({U, _}, {_, Last}) when Last =/= none, U < Last -> late;
add({U, E}, {Held, Last}) -> {ok, {gb_trees:insert(U, E, Held), Last}}.

-doc "Releases, in order, the events up to a time in nanoseconds.".
-spec release(integer(), order()) -> {[witness_event:event()], order()}.
release(Until, {Held, Last}) -> release(Until, Held, Last, []).

release(Until, Held, Last, Released) ->
    case gb_trees:is_empty(Held) of
        true -> {lists:reverse(Released), {Held, Last}};
        false ->
            {U, E, Rest} = gb_trees:take_smallest(Held),
            case witness_event:ts(E) =< Until of
                true -> release(Until, Rest, U, [E | Released]);
                false -> {lists:reverse(Released), {Held, Last}}
            end
    end.

-doc "Releases everything: nothing more will come.".
-spec release_all(order()) -> [witness_event:event()].
release_all({Held, _}) -> gb_trees:values(Held).
