-module(witness_run_growth).
-moduledoc """
What grows from one look at the processes to the next, and becomes no smaller: a mailbox, or the monitors of one and the same process. Pure.

Something *grows* if it was larger at each of several looks, over some seconds, and is large now. Fewer are enough if a mark was the same
at most of these looks, such as the oldest message of a mailbox. It has not grown if it is less than half of that at a later look, or if it is
not there.

*Invariant:* what was not seen at a look is neither larger nor smaller than before, if it may be there.
""".

-export([new/0, add/4, grown/1, is_empty/1, is_same_look/2, is_long_enough/2]).

-export_type([growth/0, key/0, mark/0]).

%% sizes: at the last looks, the last one first, as long as they grow; grown: what has grown, as it was then
-record(growth, {sizes = #{} :: #{key() => [{AtMs :: integer(), Size :: pos_integer(), mark()}, ...]},
                 grown = [] :: [{key(), Of :: term(), [pos_integer(), ...]}]}).

-opaque growth() :: #growth{}.

-doc "What has a size: the mailbox of a process, or what it monitors.".
-type key() :: pid() | {pid(), term()}.

-doc "What stays the same while something grows for nothing, if that is known.".
-type mark() :: unknown | {mark, term()}.

-define(LOOKS, 4).
-define(LASTS_MS, 3000).
-define(SIZE, 1000).
-define(MARKED_SIZE, 10).
-define(MARKED_LOOKS, 3).
%% Looks that follow each other sooner count as one.
-define(NEXT_LOOK_MS, 400).

-doc "Nothing has grown yet.".
-spec new() -> growth().
new() -> #growth{}.

-doc "Takes what was seen at a look, each with what is said of it (`Of`), if it grows. `MayBeThere`: whether something was not looked at.".
-spec add(NowMs :: integer(), [{key(), Size :: pos_integer(), mark(), Of :: term()}], MayBeThere :: fun((key()) -> boolean()),
          growth()) -> growth().
add(NowMs, Seen, MayBeThere, #growth{sizes = Before, grown = GrownBefore}) ->
    Unseen = #{Key => Sizes || Key := Sizes <- Before, MayBeThere(Key)},
    Sizes = maps:merge(Unseen, #{Key => add_size({NowMs, Size, Mark}, maps:get(Key, Before, [])) || {Key, Size, Mark, _} <- Seen}),
    Grown = [Known || {Key, _, Last} = Known <- GrownBefore, #{Key := [{_, Size, _} | _]} <- [Sizes], 2 * Size >= lists:last(Last)],
    New = [{Key, Of, [Size || {_, Size, _} <- lists:reverse(Last)]}
           || {Key, _, _, Of} <- Seen, not lists:keymember(Key, 1, Grown), #{Key := Last} <- [Sizes], grows(Last)],
    #growth{sizes = Sizes, grown = Grown ++ New}.

add_size({NowMs, Size, _}, [{AtMs, Last, _} | _] = Before) when NowMs - AtMs < ?NEXT_LOOK_MS, Size >= Last -> Before;
add_size({_, Size, _} = Now, [{_, Last, _} | _] = Before) when Size > Last -> [Now | lists:sublist(Before, 2 * ?LOOKS)];
add_size(Now, _) -> [Now].

grows([{NowMs, Size, _} | _] = Sizes) ->
    {FirstMs, _, _} = lists:last(Sizes),
    Marks = [Mark || {_, _, {mark, Mark}} <- Sizes],
    IsMarked = length(Marks) >= ?MARKED_LOOKS andalso length(lists:usort(Marks)) =:= 1,
    is_long_enough(NowMs - FirstMs, length(Sizes)) andalso (Size >= ?SIZE orelse (Size >= ?MARKED_SIZE andalso IsMarked)).

-doc "What has grown, with its sizes at the looks by which this was known.".
-spec grown(growth()) -> [{key(), Of :: term(), [pos_integer(), ...]}].
grown(#growth{grown = Grown}) -> Grown.

-doc "Whether there was nothing at the last look that may grow.".
-spec is_empty(growth()) -> boolean().
is_empty(#growth{sizes = Sizes}) -> map_size(Sizes) =:= 0.

-doc "Whether two looks follow each other so soon that they count as one.".
-spec is_same_look(FirstMs :: integer(), NextMs :: integer()) -> boolean().
is_same_look(FirstMs, NextMs) -> NextMs - FirstMs < ?NEXT_LOOK_MS.

-doc "Whether growth would be seen in so much time, at so many looks.".
-spec is_long_enough(Ms :: integer(), Looks :: non_neg_integer()) -> boolean().
is_long_enough(Ms, Looks) -> Ms >= ?LASTS_MS andalso Looks >= ?LOOKS.
