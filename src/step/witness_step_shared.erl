-module(witness_step_shared).
-moduledoc """
What processes have read and changed in memory that they share (`m:witness_record_shared`), over the steps of a run. Pure.

`analyse/1` finds, in one pass over the run in its order:

- the *source* of a call that reads: the last change before it, of the same key or of all. Only a change by another process counts.
  What a process has changed itself is no news to it;
- a *lost change*: a process has read a key, another one has changed it, and then the first one has changed it, without having read
  that, and without a change of its own in between. It has overwritten what it did not know. A call that reads and changes at once (`ets:update_counter/3`) loses nothing.

A call that reads all of a memory has the last lost change there as its source, or else the last change by another process.

Keys and memory are represented by hashes.
""".

-export([new/0, note/2, accesses/2, analyse/1, found/2, last_news/3]).

-export_type([tables/0, access/0, found/0, analysis/0]).

%% For a name or an identifier of a table that was made: its kind. For an identifier that `whereis` returned: the name.
-opaque tables() :: #{atom() | reference() => witness_record_shared:kind_of_table() | atom()}.

-doc "A part of `t:witness_record_shared:access/0`, by hashes.".
-type access() :: {read | change | both, Memory :: non_neg_integer(), Key :: non_neg_integer() | all,
                   Value :: non_neg_integer() | unknown}.

-doc """
What is known of a step. `source`: the step with the change that it has read; `sure`: that had ended when this one began; otherwise the
two were under way at the same time. `lost`: the step that it has overwritten, and the one in which the process had read before that.
""".
-type found() :: #{source => pos_integer(), sure => boolean(), lost => {Change :: pos_integer(), Read :: pos_integer()}}.

-doc "What is known of the steps of a run.".
-opaque analysis() :: #{found := #{pos_integer() => found()}, news := #{pos_integer() => gb_sets:set(pos_integer())}}.

-type change() :: {Step :: pos_integer(), Id :: pos_integer(), End :: non_neg_integer(), Value :: non_neg_integer() | unknown}.

%% Of a memory. whole: the last change of all of it; keys: the last two changes of each key since then. recent: the last change, and
%% the last one by another process than that. lost: the last lost change.
-record(memory, {whole = none :: none | change(),
                 keys = #{} :: #{non_neg_integer() => [change(), ...]},
                 recent = [] :: [change()],
                 lost = none :: none | change()}).

%% reads: for each process the keys that it has read since it has last changed them, the last step of which it may have read the
%% change, and the step in which it did. If it has read all of a memory: also the keys that it has changed since then.
-record(pass, {memories = #{} :: #{non_neg_integer() => #memory{}},
               reads = #{} :: #{pos_integer() => #{{non_neg_integer(), non_neg_integer() | all} =>
                                                       {Up :: pos_integer() | changed, pos_integer()}}},
               found = #{} :: #{pos_integer() => found()},
               news = #{} :: #{pos_integer() => gb_sets:set(pos_integer())}}).

-doc "No table is known.".
-spec new() -> tables().
new() -> #{}.

-doc "The tables after a step.".
-spec note(witness_step_state:what(), tables()) -> tables().
note({call, {ets, whereis, 1}, [Name], Id}, Tables) when is_reference(Id) -> Tables#{Id => Name};
note(_, Tables) -> Tables.

-doc "What a call reads and changes.".
-spec accesses(witness_step_state:what(), tables()) -> {[access()], tables()}.
accesses({call, {ets, new, 2} = MFA, [_, Options] = Args, Table}, Tables) ->
    IsSet = not (lists:member(bag, Options) orelse lists:member(duplicate_bag, Options)),
    {hashes(MFA, Args, Table, Tables), Tables#{Table => {proplists:get_value(keypos, Options, 1), IsSet}}};
accesses({call, MFA, Args, Value}, Tables) -> {hashes(MFA, Args, Value, Tables), Tables};
accesses(_, Tables) -> {[], Tables}.

hashes(MFA, Args, Value, Tables) ->
    [{Kind, hash(named(Memory, Tables)), case Key of {key, Term} -> hash(Term); all -> all end,
      case Known of {value, Of} -> hash(Of); unknown -> unknown end}
     || {Kind, Memory, Key, Known} <- witness_record_shared:accesses(MFA, Args, Value, fun(Table) -> kind(Table, Tables) end)].

hash(Term) -> erlang:phash2(Term, 1 bsl 32).

named({ets, Table} = Memory, Tables) ->
    case Tables of
        #{Table := Name} when is_atom(Name) -> {ets, Name};
        #{} -> Memory
    end;
named(Memory, _) -> Memory.

kind(Table, Tables) ->
    case Tables of
        #{Table := {_, _} = Kind} -> Kind;
        #{Table := Name} when is_map_key(Name, Tables), Name =/= Table -> kind(Name, Tables);
        #{} -> {1, unknown}
    end.

%% --- the pass over a run ---------------------------------------------------------

-doc "Goes through a run: `Fold` folds over its steps, with their numbers, processes and parts of states.".
-spec analyse(fun((Add, Acc) -> Acc)) -> analysis()
    when Add :: fun((pos_integer(), pos_integer(), witness_step_state:brief(), Acc) -> Acc).
analyse(Fold) ->
    #pass{found = Found, news = News} = Fold(fun add/4, #pass{}),
    #{found => Found, news => News}.

-doc "What is known of a step.".
-spec found(pos_integer(), analysis()) -> found().
found(N, #{found := Found}) -> maps:get(N, Found, #{}).

-doc "The last step of a process before this one that has read what another process had changed; 0: none.".
-spec last_news(Id :: pos_integer(), Before :: pos_integer(), analysis()) -> non_neg_integer().
last_news(Id, N, #{news := News}) ->
    case News of
        #{Id := Steps} -> case gb_sets:smaller(N, Steps) of {found, Step} -> Step; none -> 0 end;
        #{} -> 0
    end.

add(N, Id, {access, Accesses, Begin, End}, P) ->
    lists:foldl(fun(Access, A) -> access(Access, N, Id, Begin, End, A) end, P, Accesses);
add(_, Id, {exit, _, _}, #pass{reads = Reads} = P) -> P#pass{reads = maps:remove(Id, Reads)};
add(_, _, _, P) -> P.

access({read, Memory, Key, Value}, N, Id, Begin, _, P) ->
    {Up, P1} = find_source(Memory, Key, Value, N, Id, Begin, P),
    note_read(Memory, Key, Up, N, Id, P1);
access({both, Memory, Key, Value}, N, Id, Begin, End, P) ->
    {_, P1} = find_source(Memory, Key, unknown, N, Id, Begin, P),
    note_change(Memory, Key, {N, Id, End, Value}, P1);
access({change, Memory, Key, Value}, N, Id, _, End, P) ->
    Change = {N, Id, End, Value},
    note_change(Memory, Key, Change, find_lost(Memory, Key, Change, P)).

%% With the last step that may have been read.
find_source(Memory, Key, Value, N, Id, Begin, #pass{memories = Memories, found = Found, news = News} = P) ->
    case Memories of
        #{Memory := M} ->
            {Up, Change, Sure} = source(Key, Value, N, Id, Begin, M),
            {Up, case Change of
                {Step, Other, _, _} when Other =/= Id ->
                    P#pass{found = Found#{N => #{source => Step, sure => Sure}},
                           news = News#{Id => gb_sets:add(N, maps:get(Id, News, gb_sets:new()))}};
                _ -> P
            end};
        #{} -> {N, P}
    end.

source(all, _, N, Id, Begin, #memory{recent = Recent, lost = none}) ->
    known(N, first([Change || {_, Other, _, _} = Change <- Recent, Other =/= Id]), Begin);
%% Also one of its own: it is what went wrong.
source(all, _, N, _, Begin, #memory{lost = {Step, _, End, Value}}) -> known(N, {Step, 0, End, Value}, Begin);
source(Key, Value, N, _, Begin, #memory{keys = Keys, whole = Whole}) ->
    case Keys of
        %% The two were under way at the same time. If the values differ, the call has read what was there before.
        #{Key := [{Step, _, End, Written} | Before]} when End > Begin, Value =/= unknown, Written =/= unknown, Value =/= Written ->
            {_, Change, Sure} = known(N, first(Before ++ [Whole]), Begin),
            {Step - 1, Change, Sure};
        #{Key := [{_, _, _, Written} = Change | _]} when Value =/= unknown, Value =:= Written -> {N, Change, true};
        #{Key := [Change | _]} -> known(N, Change, Begin);
        #{} -> known(N, Whole, Begin)
    end.

known(N, none, _) -> {N, none, true};
known(N, {_, _, End, _} = Change, Begin) -> {N, Change, End =< Begin}.

first([Change | _]) -> Change;
first([]) -> none.

note_read(Memory, Key, Up, N, Id, #pass{reads = Reads} = P) ->
    P#pass{reads = Reads#{Id => (maps:get(Id, Reads, #{}))#{{Memory, Key} => {Up, N}}}}.

find_lost(Memory, Key, {N, Id, _, _} = Change, #pass{memories = Memories, reads = Reads, found = Found} = P) when Key =/= all ->
    {Up, Read} = last_read(Memory, Key, maps:get(Id, Reads, #{})),
    case Memories of
        %% What was read before all of it was made anew was something else.
        #{Memory := #memory{keys = #{Key := [{Step, Other, _, _} | _]}, whole = Whole} = M}
          when Read > 0, Step > Up, Other =/= Id, Whole =:= none orelse Read > element(1, Whole) ->
            P#pass{found = Found#{N => #{lost => {Step, Read}}}, memories = Memories#{Memory := M#memory{lost = Change}}};
        #{} -> P
    end;
find_lost(_, _, _, P) -> P.

last_read(Memory, Key, Own) ->
    {_, AllRead} = All = maps:get({Memory, all}, Own, {0, 0}),
    case Own of
        #{{Memory, Key} := {changed, Change}} when Change > AllRead -> {0, 0};
        #{{Memory, Key} := {Up, _} = Read} when is_integer(Up) -> max(Read, All);
        #{} -> All
    end.

note_change(Memory, Key, {N, Id, _, _} = Change, #pass{memories = Memories, reads = Reads} = P) ->
    M = #memory{recent = Recent} = maps:get(Memory, Memories, #memory{}),
    M1 = M#memory{recent = [Change | first_of_other(Id, Recent)]},
    P#pass{memories = Memories#{Memory => case Key of
               all -> M1#memory{whole = Change, keys = #{}, lost = none};
               _ -> M1#memory{keys = add_change(Key, Change, M1#memory.keys)}
           end},
           reads = case Reads of
               #{Id := #{{Memory, all} := _} = Own} when Key =/= all -> Reads#{Id := Own#{{Memory, Key} => {changed, N}}};
               #{Id := Own} -> Reads#{Id := maps:remove({Memory, Key}, Own)};
               #{} -> Reads
           end}.

add_change(Key, Change, Keys) -> Keys#{Key => [Change | lists:sublist(maps:get(Key, Keys, []), 1)]}.

first_of_other(Id, Recent) -> lists:sublist([Change || {_, Other, _, _} = Change <- Recent, Other =/= Id], 1).
