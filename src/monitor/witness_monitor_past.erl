-module(witness_monitor_past).
-moduledoc """
The keys of a monitor with slices that have had events and have no live slice, where that matters for what comes. Pure.

There are as many as slices may be alive. One more, and the one that was put in least recently is forgotten. From then on a key is *forgotten* if it
is one of these, or, in a Bloom filter, looks like one (`m:witness_monitor_bloom`). With a limit for idle time (`m:witness_monitor_expiry`)
a key is forgotten for about as long: then it is as one that has had no event.
""".

-export([new/2, find/2, put/3, remove/2, keys/1, pass/2, save/1, load/2]).
-export_type([past/0, entry/0, saved/0]).

-doc """
`over`: it has no further slice. Otherwise the next slice begins with these values, or ends at once because they are not known.
""".
-type entry() :: over | witness_spec_value:past() | witness_spec_value:unknown().

-type key() :: witness_monitor_slices:key().

-record(past, {keys :: witness_monitor_slices:slices(entry()),
               limit :: non_neg_integer() | infinity,
               forgotten = none :: forgotten()}).
-opaque past() :: #past{}.

%% Those forgotten since a time, and those forgotten before, since there is a limit.
-type forgotten() :: none | {witness_monitor_bloom:bloom(), witness_monitor_bloom:bloom(), Since :: integer() | none}.

-doc "The keys, the next one to be forgotten first, and those that are forgotten.".
-type saved() :: {[{key(), entry()}], forgotten()}.

-doc "No keys; `Max` is the bound.".
-spec new(pos_integer(), Idle :: pos_integer() | infinity) -> past().
new(Max, Idle) ->
    #past{keys = witness_monitor_slices:new(Max), limit = case Idle of
        infinity -> infinity;
        Milliseconds -> erlang:convert_time_unit(Milliseconds, millisecond, nanosecond)
    end}.

-doc "What is known of a key.".
-spec find(key(), past()) -> none | forgotten | entry().
find(Key, #past{keys = Keys, forgotten = Forgotten}) ->
    case witness_monitor_slices:find(Key, Keys) of
        {_, Entry} -> Entry;
        none when Forgotten =:= none -> none;
        none ->
            {Now, Before, _} = Forgotten,
            case witness_monitor_bloom:has(Key, Now) orelse witness_monitor_bloom:has(Key, Before) of
                true -> forgotten;
                false -> none
            end
    end.

-doc "Puts a key in, or in again with another entry. The key that is forgotten for it comes first.".
-spec put(key(), entry(), past()) -> {[key()], past()}.
put(Key, Entry, Past) ->
    Without = #past{keys = Keys, forgotten = Forgotten} = remove(Key, Past),
    {Gone, Next} = witness_monitor_slices:add(Key, Entry, Keys),
    {[Other || {Other, _} <- Gone], Without#past{keys = Next, forgotten = lists:foldl(fun forget/2, Forgotten, Gone)}}.

forget(Gone, none) -> forget(Gone, {witness_monitor_bloom:new(), witness_monitor_bloom:new(), none});
forget({Key, _}, {Now, Before, Since}) -> {witness_monitor_bloom:put(Key, Now), Before, Since}.

-doc "The key is as one that has had no event, or has a live slice.".
-spec remove(key(), past()) -> past().
remove(Key, #past{keys = Keys} = Past) ->
    case witness_monitor_slices:find(Key, Keys) of
        none -> Past;
        _ -> Past#past{keys = witness_monitor_slices:remove(Key, Keys)}
    end.

-doc "The keys that are not forgotten, the next one to be forgotten first.".
-spec keys(past()) -> [{key(), entry()}].
keys(#past{keys = Keys}) -> [{Key, Entry} || {_, Key, Entry} <- witness_monitor_slices:to_list(Keys)].

-doc "The trace has come to this time.".
-spec pass(integer(), past()) -> past().
pass(_, #past{forgotten = Forgotten, limit = Limit} = Past) when Forgotten =:= none; Limit =:= infinity -> Past;
pass(Now, #past{forgotten = {New, Old, none}} = Past) -> Past#past{forgotten = {New, Old, Now}};
pass(Now, #past{forgotten = {New, _, Since}, limit = Limit} = Past) when Now - Since > Limit ->
    Past#past{forgotten = {witness_monitor_bloom:new(), New, Now}};
pass(_, Past) -> Past.

-doc "As plain data.".
-spec save(past()) -> saved().
save(#past{forgotten = Forgotten} = Past) -> {keys(Past), Forgotten}.

-doc "Loads saved data into a new one. `IsEntry` says whether a key has such values. Raises an error for malformed data.".
-spec load(saved() | term(), {fun((key(), term()) -> boolean()), past()}) -> past().
load({Keys, Forgotten}, {IsEntry, None}) ->
    true = lists:all(fun({_, over}) -> true;
                        ({_, {verdict, inconclusive, _}}) -> true;
                        ({Key, Entry}) -> IsEntry(Key, Entry)
                     end, Keys),
    true = is_forgotten(Forgotten),
    lists:foldl(fun({Key, Entry}, Past) -> element(2, put(Key, Entry, Past)) end, None#past{forgotten = Forgotten}, Keys).

is_forgotten(none) -> true;
is_forgotten({Now, Before, Since}) ->
    witness_monitor_bloom:is_valid(Now) andalso witness_monitor_bloom:is_valid(Before)
        andalso (Since =:= none orelse is_integer(Since)).
