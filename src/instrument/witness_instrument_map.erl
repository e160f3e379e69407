-module(witness_instrument_map).
-moduledoc """
Instrumentation maps: which monitors read a new process, and which tracer owns it
(RIARC text, section 3.5; Algorithm 2).

Each specification file is one map, and each monitor given by itself is another. Maps are
independent: what one map names never changes what the monitors of another one see. A map
that does not name a process leaves it to the groups of its parent. A map that names it
starts new monitors. `none` cuts it, with its descendants, out of the groups.

A new process goes to a tracer of its own when it has monitors and shares none of them
with its parent; otherwise it stays with the tracer of its parent.
""".

-export([new/2, assign/3, retire/1, label/2, groups/2, with_readers/2, starts/1]).

-export_type([instrumentation/0, entry/0, label/0, reader/0, member/0]).

-doc """
One map: a function that returns the entries that name a signature, `[]` if none does. `unless_read`: they only count for a
process that no group of the map reads. A `retired` map starts no monitors any more; its groups go on as they began.
""".
-type instrumentation() :: match() | {retired, match()}.

-type match() :: fun((witness_event:signature()) -> [entry()] | {unless_read, [entry()]}).

-doc """
A monitor to start; `none` cuts the process out of the map's groups. The `spec` of a monitor that writes a log is `log`.
`version` counts how often the specifications of the run were replaced, from 2.
""".
-type entry() :: none | #{monitor := {module(), Arg :: term()},
                          spec := binary() | log, name := binary() | undefined, group := boolean(),
                          version => pos_integer()}.

-doc "Represents a monitor that was started: its runner, or any other term that its tracers know it by.".
-type reader() :: term().

-doc "A monitor that reads a process: the number of its map, the term that represents it, whether it reads descendants.".
-type member() :: {pos_integer(), reader(), Group :: boolean()}.

-doc "A monitor that must be started for a process.".
-type start() :: {pos_integer(), entry()}.

%% held: the process belongs to the spawn tree that the run waits for.
%% read: whether monitors that read all processes read it.
%% readers: the monitors that the process's events go to.
-record(label, {held :: boolean(),
                read = true :: boolean(),
                readers = [] :: [reader()],
                members = [] :: [member()],
                start = [] :: [start()]}).

-opaque label() :: #label{}.

-doc "The label of a process without a traced parent. Without a signature it is there for its children only: no monitor reads it.".
-spec new([instrumentation()], #{held := boolean(), signature => witness_event:signature()}) -> label().
new(Maps, #{held := Held, signature := Signature}) ->
    {_, Label} = assign(Signature, #label{held = Held}, Maps),
    Label;
new(_, #{held := Held}) ->
    #label{held = Held, read = false}.

-doc "Which tracer owns a child, and which monitors read it.".
-spec assign(witness_event:signature(), Parent :: label(), [instrumentation()]) -> {own | shared, label()}.
assign(Signature, #label{held = Held, members = Members}, Maps) ->
    {Start, Inherited} = assign(Signature, Members, Maps, 1, [], []),
    Readers = [Runner || {_, Runner, _} <- Inherited],
    Label = #label{held = Held, readers = Readers, members = Inherited, start = Start},
    case {Start, Inherited} of
        {[_ | _], []} -> {own, Label};
        _ -> {shared, Label}
    end.

assign(_, _, [], _, Start, Inherited) ->
    {lists:reverse(Start), lists:reverse(Inherited)};
assign(Signature, Members, [{retired, Match} | Maps], N, Start, Inherited) ->
    case [M || M = {I, _, true} <- Members, I =:= N] of
        [] -> assign(Signature, Members, Maps, N + 1, Start, Inherited);
        Groups ->
            %% As always, a process that the map names is in none of its groups.
            Left = case entries_for(Match(Signature), Groups) of [] -> Groups; _ -> [] end,
            assign(Signature, Members, Maps, N + 1, Start, Left ++ Inherited)
    end;
assign(Signature, Members, [Match | Maps], N, Start, Inherited) ->
    Groups = [M || M = {I, _, true} <- Members, I =:= N],
    case entries_for(Match(Signature), Groups) of
        [] ->
            assign(Signature, Members, Maps, N + 1, Start, Groups ++ Inherited);
        Entries ->
            New = case lists:member(none, Entries) of
                true -> [];
                false -> [{N, E} || E <- Entries]
            end,
            assign(Signature, Members, Maps, N + 1, lists:reverse(New, Start), Inherited)
    end.

entries_for({unless_read, Entries}, []) -> Entries;
entries_for({unless_read, _}, _) -> [];
entries_for(Entries, _) -> Entries.

-doc "A map that starts no monitors any more. Maps that replace it may come behind it.".
-spec retire(instrumentation()) -> instrumentation().
retire({retired, _} = Map) -> Map;
retire(Map) -> {retired, Map}.

-doc "The monitors that must be started when the process is adopted.".
-spec starts(label()) -> [start()].
starts(#label{start = Start}) -> Start.

-doc "The label with the monitors that were started for it.".
-spec with_readers([member()], label()) -> label().
with_readers(Started, Label = #label{readers = Readers, members = Members}) ->
    Label#label{readers = [Runner || {_, Runner, _} <- Started] ++ Readers,
                members = Started ++ Members, start = []}.

-doc "Parts of a label.".
-spec label(held | read, label()) -> boolean();
           (readers, label()) -> [reader()];
           (members, label()) -> [member()].
label(held, #label{held = Held}) -> Held;
label(read, #label{read = Read}) -> Read;
label(readers, #label{readers = Readers}) -> Readers;
label(members, #label{members = Members}) -> Members.

-doc "The groups of the first `Maps` maps that read the process.".
-spec groups(non_neg_integer(), label()) -> [reader()].
groups(Maps, #label{members = Members}) -> [Reader || {N, Reader, true} <- Members, N =< Maps].
