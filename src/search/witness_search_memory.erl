-module(witness_search_memory).
-moduledoc """
What the program of a run has in this VM besides processes: tables, arrays, persistent terms; and which processes of this VM run it.

The program has references of its own to tables and arrays, as to everything else (`m:witness_search_identity`): those of the VM would
differ from run to run. All of it is in one table, which is empty between two runs.
""".

-export([init/0, add/2, is_controlled/1, virtual_pid/1, keep_term/1, is_kept/1, keep_heir/2, heirs/0, keep_outside/1,
         is_kept_outside/1, is_own_term/1, real/2, virtual/1, virtual/2, clear/0]).

-define(TABLE, ?MODULE).

-doc "Makes the table. Its owner is the caller.".
-spec init() -> ok.
init() ->
    _ = ets:new(?TABLE, [named_table, public]),
    ok.

-doc "This process of the VM runs a process of the program.".
-spec add(pid(), Virtual :: pid()) -> true.
add(Real, Virtual) -> ets:insert(?TABLE, {Real, Virtual}).

-spec is_controlled(pid()) -> boolean().
is_controlled(Real) -> ets:member(?TABLE, Real).

-doc "The pid that the program knows; of a process outside, its own.".
-spec virtual_pid(pid()) -> pid().
virtual_pid(Real) -> ets:lookup_element(?TABLE, Real, 2, Real).

-doc "The program is about to put or erase this persistent term. It is as before when the run has ended.".
-spec keep_term(term()) -> true.
keep_term(Key) ->
    Before = case persistent_term:get(Key, ?MODULE) of ?MODULE -> none; Value -> {is, Value} end,
    ets:insert_new(?TABLE, {{term, Key}, Before}) orelse true.

-doc "Whether a persistent term is Witness's, which the program does not see.".
-spec is_own_term(term()) -> boolean().
is_own_term(Key) when is_atom(Key) -> lists:prefix("witness_", atom_to_list(Key));
is_own_term({Key, _}) when is_atom(Key) -> is_own_term(Key);
is_own_term(_) -> false.

-spec is_kept(term()) -> boolean().
is_kept(Key) -> ets:member(?TABLE, {term, Key}).

-doc "A process of the program is the heir of a table of this VM. `Data` is for its message.".
-spec keep_heir(ets:table(), Data :: term()) -> true.
keep_heir(Table, Data) -> ets:insert(?TABLE, {heirs, (heirs())#{Table => Data}}).

-doc "These tables, with the data.".
-spec heirs() -> #{ets:table() => Data :: term()}.
heirs() -> ets:lookup_element(?TABLE, heirs, 2, #{}).

-doc "The program is about to change a table of a process outside. It is as before when the run has ended.".
-spec keep_outside(ets:table()) -> true.
keep_outside(Table) -> ets:member(?TABLE, {outside, Table}) orelse ets:insert(?TABLE, {{outside, Table}, objects(Table)}).

%% `ets:tab2list/1' is woven: what a controlled process does in it would be recorded.
objects(Table) -> ets:match_object(Table, '_').

-doc "Whether the program has changed this table of a process outside.".
-spec is_kept_outside(ets:table()) -> boolean().
is_kept_outside(Table) -> ets:member(?TABLE, {outside, Table}).

-doc "The arguments of a call with the references of this VM.".
-spec real(module(), [term()]) -> [term()].
real(counters, [{Kind, Ref} | Args]) -> [{Kind, real(Ref)} | Args];
real(Module, [Ref | Args]) when is_reference(Ref), Module =/= persistent_term -> [real(Ref) | Args];
real(_, Args) -> Args.

real(Ref) -> ets:lookup_element(?TABLE, {virtual, Ref}, 2, Ref).

-doc "The reference that the program has of a table.".
-spec virtual(ets:table()) -> ets:table().
virtual(Table) -> virtual(Table, fun() -> Table end).

-doc "A result with the references of the program. `Make` makes the one of a table or array that is new.".
-spec virtual(Value, fun(() -> reference())) -> Value.
virtual({Kind, Real}, Make) when is_reference(Real) -> {Kind, virtual(Real, Make)};
virtual(Real, Make) when is_reference(Real) ->
    case ets:lookup(?TABLE, {real, Real}) of
        [{_, Ref}] -> Ref;
        [] ->
            Ref = Make(),
            true = ets:insert(?TABLE, [{{real, Real}, Ref}, {{virtual, Ref}, Real}]),
            Ref
    end;
virtual(Value, _) -> Value.

-doc "The program has ended: nothing of it remains.".
-spec clear() -> ok.
clear() ->
    _ = [case Before of none -> persistent_term:erase(Key); {is, Value} -> persistent_term:put(Key, Value) end
         || [Key, Before] <- ets:match(?TABLE, {{term, '$1'}, '$2'})],
    _ = [restore(Table, Before) || [Table, Before] <- ets:match(?TABLE, {{outside, '$1'}, '$2'})],
    true = ets:delete_all_objects(?TABLE),
    ok.

%% Processes outside find the other objects there at any time.
restore(Table, Before) ->
    Now = objects(Table),
    _ = [true = ets:delete_object(Table, Object) || Object <- Now -- Before],
    true = ets:insert(Table, Before -- Now).
