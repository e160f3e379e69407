-module(witness_record_shared).
-moduledoc """
The calls on memory that processes share: tables, persistent terms, atomics and counters. A recording has their places in one order
(`t:witness_log_recording:ordered/0`), so that it can be told which change a process has read.

`kind/2` is for the recorder, before a call; `accesses/4` for readers, when the result is known.
""".

-export([kind/2, accesses/4]).

-export_type([access/0, memory/0, kind_of_table/0]).

-doc """
What a call reads or changes: `all` of the memory, or the part with this key. `both`: it changes what it has read, and nothing comes
in between. With the value that it has read, or written, where that is known: then a change was read only if the values are the same.
""".
-type access() :: {read | change | both, memory(), {key, term()} | all, {value, term()} | unknown}.

-doc "The place of the key in the objects of a table, and whether a key has one object (`set`, `ordered_set`). `unknown`: it is not known.".
-type kind_of_table() :: {KeyAt :: pos_integer(), IsSet :: boolean() | unknown}.

-doc "A table by its name or identifier; the persistent terms; an array.".
-type memory() :: {ets, atom() | reference()} | persistent_term | {array, term()}.

-doc "Whether a function reads or changes such memory. `none`: neither, or it is no memory of this kind.".
-spec kind(module(), atom()) -> read | change | none.
kind(ets, Function) -> table(Function);
kind(persistent_term, Function) when Function =:= put; Function =:= put_new; Function =:= erase -> change;
kind(persistent_term, get) -> read;
kind(Module, get) when Module =:= atomics; Module =:= counters -> read;
kind(Module, Function) when Module =:= atomics; Module =:= counters ->
    case Function of info -> none; new -> none; _ -> change end;
kind(_, _) -> none.

table(Function) when Function =:= lookup; Function =:= lookup_element; Function =:= member; Function =:= match;
                     Function =:= match_object; Function =:= select; Function =:= select_count; Function =:= select_reverse;
                     Function =:= first; Function =:= first_lookup; Function =:= last; Function =:= last_lookup;
                     Function =:= next; Function =:= next_lookup; Function =:= prev; Function =:= prev_lookup;
                     Function =:= slot -> read;
table(Function) when Function =:= insert; Function =:= insert_new; Function =:= update_counter; Function =:= update_element;
                     Function =:= delete; Function =:= delete_object; Function =:= take; Function =:= internal_delete_all;
                     Function =:= internal_select_delete; Function =:= select_replace; Function =:= new -> change;
table(_) -> none.

-doc "What this call has read or changed.".
-spec accesses(mfa(), [term()], Value :: term(), fun((atom() | reference()) -> kind_of_table())) -> [access()].
accesses({ets, insert, 2}, [Table, Objects], _, Kind) -> written(change, Table, Objects, Kind(Table));
accesses({ets, insert_new, 2}, [Table, Objects], true, Kind) -> written(both, Table, Objects, Kind(Table));
accesses({ets, insert_new, 2}, [Table, Objects], _, Kind) ->
    [{read, Memory, Key, unknown} || {_, Memory, Key, _} <- written(both, Table, Objects, Kind(Table))];
accesses({ets, delete_object, 2}, [Table, Object], _, Kind) ->
    [{change, Memory, Key, unknown} || {_, Memory, Key, _} <- written(change, Table, Object, Kind(Table))];
accesses({ets, new, 2}, _, Table, _) -> [{change, {ets, Table}, all, unknown}];
accesses({ets, delete, 1}, [Table], _, _) -> [{change, {ets, Table}, all, unknown}];
accesses({ets, delete, 2}, [Table, Key], _, _) -> [{change, {ets, Table}, {key, Key}, {value, []}}];
accesses({ets, take, 2}, [Table, Key], _, _) -> [{both, {ets, Table}, {key, Key}, {value, []}}];
accesses({ets, Function, _}, [Table, Key | _], _, _) when Function =:= update_counter; Function =:= update_element ->
    [{both, {ets, Table}, {key, Key}, unknown}];
accesses({ets, lookup, 2}, [Table, Key], Value, Kind) -> [{read, {ets, Table}, {key, Key}, in_set(Value, Kind(Table))}];
accesses({ets, Function, _}, [Table, Key | _], _, _) when Function =:= lookup_element; Function =:= member ->
    [{read, {ets, Table}, {key, Key}, unknown}];
%% A continuation does not name its table.
accesses({ets, _, 1}, [Continuation], _, _) when is_tuple(Continuation); Continuation =:= '$end_of_table' -> [];
accesses({ets, Function, _}, [Table | _], _, _) ->
    [{case Kind of read -> read; change -> both end, {ets, Table}, all, unknown} || Kind <- [table(Function)], Kind =/= none];
accesses({persistent_term, get, 0}, _, _, _) -> [{read, persistent_term, all, unknown}];
accesses({persistent_term, get, 1}, [Key], Value, _) -> [{read, persistent_term, {key, Key}, {value, Value}}];
accesses({persistent_term, put, 2}, [Key, Value], _, _) -> [{change, persistent_term, {key, Key}, {value, Value}}];
accesses({persistent_term, Function, _}, [Key | _], _, _) ->
    [{Kind, persistent_term, {key, Key}, unknown} || Kind <- [kind(persistent_term, Function)], Kind =/= none];
accesses({Module, Function, _}, [Array, Place | Rest], Value, _) when Module =:= atomics; Module =:= counters ->
    {Kind, Known} = case {Function, Rest} of
        {get, _} -> {read, {value, Value}};
        {put, [Written]} -> {change, {value, Written}};
        _ -> {both, unknown}
    end,
    [{Kind, {array, Array}, {key, Place}, Known} || kind(Module, Function) =/= none];
accesses(_, _, _, _) -> [].

written(Kind, Table, Objects, Of) when is_list(Objects) -> lists:append([written(Kind, Table, Object, Of) || Object <- Objects]);
written(Kind, Table, Object, {KeyAt, _} = Of) when tuple_size(Object) >= KeyAt ->
    [{Kind, {ets, Table}, {key, element(KeyAt, Object)}, in_set([Object], Of)}];
written(_, _, _, _) -> [].

%% In another table a key may have several objects.
in_set(Objects, {_, true}) -> {value, Objects};
in_set(_, _) -> unknown.
