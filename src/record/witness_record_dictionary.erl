-module(witness_record_dictionary).
-moduledoc """
The dictionary of the calling process as its program sees it: without the entries of the recorder, or of the replay. `IsOwn` says of
a key whether it is one of these.
""".

-export([call/3, without_own/2]).

-doc "Does what `get/0`, `get_keys/0`, `get_keys/1` and `erase/0` do.".
-spec call(get | get_keys | erase, [term()], IsOwn :: fun((term()) -> boolean())) -> [term()].
call(get, [], IsOwn) -> entries(get(), IsOwn);
call(get_keys, Args, IsOwn) -> [Key || Key <- erlang:apply(erlang, get_keys, Args), not IsOwn(Key)];
call(erase, [], IsOwn) ->
    All = erase(),
    _ = [put(Key, Value) || {Key, Value} <- All, IsOwn(Key)],
    entries(All, IsOwn).

-doc "The same of what `process_info/1` or `process_info/2` has returned.".
-spec without_own(Info, IsOwn :: fun((term()) -> boolean())) -> Info.
without_own({dictionary, Entries}, IsOwn) when is_list(Entries) -> {dictionary, entries(Entries, IsOwn)};
without_own([_ | _] = Items, IsOwn) -> [without_own(Item, IsOwn) || Item <- Items];
without_own(Item, _) -> Item.

entries(Entries, IsOwn) -> [Entry || {Key, _} = Entry <- Entries, not IsOwn(Key)].
