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

%% For a name or an identifier of a table that was made: the place of its key. For an identifier that `whereis` returned: the name.
-opaque tables() :: #{atom() | reference() => pos_integer() | atom()}.

-doc "A part of `t:witness_record_shared:access/0`, by hashes.".
-type access() :: {read | change | both, Memory :: non_neg_integer(), Key :: non_neg_integer() | all}.

-doc """
What is known of a step. `source`: the step with the change that it has read; `sure`: that had ended when this one began; otherwise the
two were under way at the same time. `lost`: the step that it has overwritten, and the one in which the process had read before that.
""".
-type found() :: #{source => pos_integer(), sure => boolean(), lost => {Change :: pos_integer(), Read :: pos_integer()}}.

-doc "What is known of the steps of a run.".
-opaque analysis() :: #{found := #{pos_integer() => found()}, news := #{pos_integer() => gb_sets:set(pos_integer())}}.

-type change() :: {Step :: pos_integer(), Id :: pos_integer(), End :: non_neg_integer()}.

%% Of a memory. whole: the last change of all of it; keys: the last change of each key since then. recent: the last change, and the
%% last one by another process than that. lost: the last lost change.
-record(memory, {whole = none :: none | change(),
                 keys = #{} :: #{non_neg_integer() => change()},
                 recent = [] :: [change()],
                 lost = none :: none | change()}).

%% reads: for each process the keys that it has read since it has last changed them, and the steps. If it has read all of a memory:
%% also the keys that it has changed since it has read them.
-record(pass, {memories = #{} :: #{non_neg_integer() => #memory{}},
               reads = #{} ::
                   #{pos_integer() => #{{non_neg_integer(), non_neg_integer() | all} => pos_integer() | {changed, pos_integer()}}},
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
    {hashes(MFA, Args, Table, Tables), Tables#{Table => proplists:get_value(keypos, Options, 1)}};
accesses({call, MFA, Args, Value}, Tables) -> {hashes(MFA, Args, Value, Tables), Tables};
accesses(_, Tables) -> {[], Tables}.

hashes(MFA, Args, Value, Tables) ->
    [{Kind, hash(named(Memory, Tables)), case Key of {key, Term} -> hash(Term); all -> all end}
     || {Kind, Memory, Key} <- witness_record_shared:accesses(MFA, Args, Value, fun(Table) -> key_at(Table, Tables) end)].

hash(Term) -> erlang:phash2(Term, 1 bsl 32).

named({ets, Table} = Memory, Tables) ->
    case Tables of
        #{Table := Name} when is_atom(Name) -> {ets, Name};
        #{} -> Memory
    end;
named(Memory, _) -> Memory.

key_at(Table, Tables) ->
    case Tables of
        #{Table := At} when is_integer(At) -> At;
        #{Table := Name} when is_map_key(Name, Tables), Name =/= Table -> key_at(Name, Tables);
        #{} -> 1
    end.

%% --- the pass over a run ---------------------------------------------------------

-doc "Goes through a run: `Fold` folds over its steps (`witness_step_trace:fold_briefs/3`).".
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

access({read, Memory, Key}, N, Id, Begin, _, P) -> note_read(Memory, Key, N, Id, find_source(Memory, Key, N, Id, Begin, P));
access({both, Memory, Key}, N, Id, Begin, End, P) ->
    note_change(Memory, Key, {N, Id, End}, find_source(Memory, Key, N, Id, Begin, P));
access({change, Memory, Key}, N, Id, _, End, P) -> note_change(Memory, Key, {N, Id, End}, find_lost(Memory, Key, {N, Id, End}, P)).

find_source(Memory, Key, N, Id, Begin, #pass{memories = Memories, found = Found, news = News} = P) ->
    case Memories of
        #{Memory := M} ->
            case source(Key, Id, M) of
                {Step, Other, End} when Other =/= Id ->
                    P#pass{found = Found#{N => #{source => Step, sure => End =< Begin}},
                           news = News#{Id => gb_sets:add(N, maps:get(Id, News, gb_sets:new()))}};
                _ -> P
            end;
        #{} -> P
    end.

source(all, Id, #memory{recent = Recent, lost = none}) -> first([Change || {_, Other, _} = Change <- Recent, Other =/= Id]);
%% Also one of its own: it is what went wrong.
source(all, _, #memory{lost = {Step, _, End}}) -> {Step, 0, End};
source(Key, _, #memory{keys = Keys, whole = Whole}) -> maps:get(Key, Keys, Whole).

first([Change | _]) -> Change;
first([]) -> none.

note_read(Memory, Key, N, Id, #pass{reads = Reads} = P) ->
    P#pass{reads = Reads#{Id => (maps:get(Id, Reads, #{}))#{{Memory, Key} => N}}}.

find_lost(Memory, Key, {N, Id, _} = Change, #pass{memories = Memories, reads = Reads, found = Found} = P) when Key =/= all ->
    Own = maps:get(Id, Reads, #{}),
    Read = last_read(Memory, Key, Own),
    case Memories of
        %% What was read before all of it was made anew was something else.
        #{Memory := #memory{keys = #{Key := {Step, Other, _}}, whole = Whole} = M}
          when Read > 0, Step > Read, Other =/= Id, Whole =:= none orelse Read > element(1, Whole) ->
            P#pass{found = Found#{N => #{lost => {Step, Read}}}, memories = Memories#{Memory := M#memory{lost = Change}}};
        #{} -> P
    end;
find_lost(_, _, _, P) -> P.

last_read(Memory, Key, Own) ->
    All = maps:get({Memory, all}, Own, 0),
    case Own of
        #{{Memory, Key} := {changed, Change}} when Change > All -> 0;
        #{{Memory, Key} := Read} when is_integer(Read) -> max(Read, All);
        #{} -> All
    end.

note_change(Memory, Key, {N, Id, _} = Change, #pass{memories = Memories, reads = Reads} = P) ->
    M = #memory{recent = Recent} = maps:get(Memory, Memories, #memory{}),
    M1 = M#memory{recent = [Change | first_of_other(Id, Recent)]},
    P#pass{memories = Memories#{Memory => case Key of
               all -> M1#memory{whole = Change, keys = #{}, lost = none};
               _ -> M1#memory{keys = (M1#memory.keys)#{Key => Change}}
           end},
           reads = case Reads of
               #{Id := #{{Memory, all} := _} = Own} when Key =/= all -> Reads#{Id := Own#{{Memory, Key} => {changed, N}}};
               #{Id := Own} -> Reads#{Id := maps:remove({Memory, Key}, Own)};
               #{} -> Reads
           end}.

first_of_other(Id, Recent) -> lists:sublist([Change || {_, Other, _} = Change <- Recent, Other =/= Id], 1).
