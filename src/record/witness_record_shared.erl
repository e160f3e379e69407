-module(witness_record_shared).
-moduledoc """
The calls on memory that processes share: tables, persistent terms, atomics and counters. A recording has their places in one order
(`t:witness_log_recording:ordered/0`), so that it can be told which change a process has read.

`kind/2` is for the recorder, before a call; `accesses/4` for readers, when the result is known.
""".

-export([kind/2, accesses/4]).

-export_type([access/0, memory/0]).

-doc """
What a call reads or changes: `all` of the memory, or the part with this key. `both`: it changes what it has read, and nothing comes
in between.
""".
-type access() :: {read | change | both, memory(), {key, term()} | all}.

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

-doc """
What this call has read or changed. `KeyAt`: the place of the key in the objects of a table.
""".
-spec accesses(mfa(), [term()], Value :: term(), fun((atom() | reference()) -> pos_integer())) -> [access()].
accesses({ets, insert, 2}, [Table, Objects], _, KeyAt) ->
    [{change, {ets, Table}, {key, Key}} || Key <- keys(Objects, KeyAt(Table))];
accesses({ets, insert_new, 2}, [Table, Objects], Value, KeyAt) ->
    Kind = case Value of true -> both; _ -> read end,
    [{Kind, {ets, Table}, {key, Key}} || Key <- keys(Objects, KeyAt(Table))];
accesses({ets, delete_object, 2}, [Table, Object], _, KeyAt) ->
    [{change, {ets, Table}, {key, Key}} || Key <- keys(Object, KeyAt(Table))];
accesses({ets, new, 2}, _, Table, _) -> [{change, {ets, Table}, all}];
accesses({ets, delete, 1}, [Table], _, _) -> [{change, {ets, Table}, all}];
accesses({ets, Function, _}, [Table, Key | _], _, _)
  when Function =:= update_counter; Function =:= update_element; Function =:= take ->
    [{both, {ets, Table}, {key, Key}}];
accesses({ets, Function, _}, [Table, Key | _], _, _) when Function =:= lookup; Function =:= lookup_element; Function =:= member ->
    [{read, {ets, Table}, {key, Key}}];
accesses({ets, delete, 2}, [Table, Key], _, _) -> [{change, {ets, Table}, {key, Key}}];
%% A continuation does not name its table.
accesses({ets, Function, 1}, [Continuation], _, _) when is_tuple(Continuation); Continuation =:= '$end_of_table' ->
    _ = Function,
    [];
accesses({ets, Function, _}, [Table | _], _, _) ->
    [{case Kind of read -> read; change -> both end, {ets, Table}, all} || Kind <- [table(Function)], Kind =/= none];
accesses({persistent_term, get, 0}, _, _, _) -> [{read, persistent_term, all}];
accesses({persistent_term, Function, _}, [Key | _], _, _) ->
    [{Kind, persistent_term, {key, Key}} || Kind <- [kind(persistent_term, Function)], Kind =/= none];
accesses({Module, Function, _}, [Array, Place | _], _, _) when Module =:= atomics; Module =:= counters ->
    Kind = case Function of get -> read; put -> change; _ -> both end,
    [{Kind, {array, Array}, {key, Place}} || kind(Module, Function) =/= none];
accesses(_, _, _, _) -> [].

keys(Objects, KeyAt) when is_list(Objects) -> [element(KeyAt, Object) || Object <- Objects, tuple_size(Object) >= KeyAt];
keys(Object, KeyAt) when tuple_size(Object) >= KeyAt -> [element(KeyAt, Object)];
keys(_, _) -> [].
