-module(witness_outline_adoption).
-moduledoc """
Decides which running processes a tracer adopts, and to which groups they belong.

The chosen processes are adopted. If a group reads one of them, the group reads what that process has spawned before,
directly or not, as it reads what it will spawn. So these processes are adopted too, chosen or not. Each is assigned below
its parent (`witness_instrument_map:assign/3`), as if its birth had been seen.

## Why no process is missed

Each scan of all processes may find new ones with parents that were not on yet. When a scan finds none, every process that
should be is on, and later ones inherit the session. The children of a process that is on are on by birth, and stay so
until their forks are read, which is after this. So they are not adopted twice.

If an ancestor of a process ended before it was seen, the process may belong to a group or not
(`m:witness_outline_origins`). Such an *orphan* is reported to the caller, since no group is complete then. There are three
exceptions:

- An ancestor beyond that is known, and in no group.
- The process has another group leader than all processes of groups, as processes of other applications have: group
  leaders are inherited.
- The process is adopted, and a property names it: then it is in no group that another process has begun in the same map.
""".

-export([adopt/3]).

-export_type([rules/1]).

-doc """
`adopt` switches a process on, with the label of its parent if that was adopted, and returns the label of the process.
`groups`: so many of the first maps may have properties for groups; if it is 0, origins make no difference.
""".
-type rules(T) :: #{chosen := fun((pid()) -> boolean()), own := fun((pid()) -> boolean()), groups := non_neg_integer(),
                    traced := fun((pid(), T) -> boolean() | dead),
                    adopt := fun((pid(), witness_instrument_map:label() | none, T) -> {witness_instrument_map:label() | dead, T})}.

%% labels: of the processes that were adopted
%% seen: the other processes that this scan has come to. `unknown': the process may belong to a group or not
%% orphans: processes that are, or may be, descendants of an unknown process, with their group leaders
-record(adoption, {rules :: rules(term()),
                   origins = witness_outline_origins:new() :: witness_outline_origins:origins(),
                   labels = #{} :: #{pid() => witness_instrument_map:label()},
                   seen = #{} :: #{pid() => none | unknown},
                   orphans = #{} :: #{pid() => Leader :: pid()}}).

-doc """
Adopts all processes that should be. `Processes` lists those of the node. Returns the labels of the adopted processes, and
the groups that may be incomplete, with the orphans that they may lack.
""".
-spec adopt(fun(() -> [pid()]), rules(T), T) ->
    {#{pid() => witness_instrument_map:label()}, {[witness_instrument_map:reader()], [pid()]}, T}.
adopt(Processes, Rules, T) -> scan(Processes, #adoption{rules = Rules}, T).

scan(Processes, A0 = #adoption{labels = Before}, T0) ->
    All = Processes(),
    {A, T} = lists:foldl(fun visit/2, {update_origins(All, A0#adoption{seen = #{}}), T0}, All),
    case map_size(A#adoption.labels) =:= map_size(Before) of
        true -> {A#adoption.labels, incomplete_groups(A), T};
        false -> scan(Processes, A, T)
    end.

update_origins(_, A = #adoption{rules = #{groups := 0}}) -> A;
update_origins(All, A = #adoption{origins = Origins}) -> A#adoption{origins = witness_outline_origins:add(All, Origins)}.

visit(P, {A, T}) ->
    {_, A1, T1} = find_label(P, A, T),
    {A1, T1}.

%% Parents first: a label depends on that of the parent.
find_label(P, A = #adoption{labels = Labels}, T) when is_map_key(P, Labels) -> {map_get(P, Labels), A, T};
find_label(P, A = #adoption{seen = Seen}, T) when is_map_key(P, Seen) -> {map_get(P, Seen), A, T};
find_label(P, A = #adoption{rules = #{traced := Traced}}, T) ->
    case Traced(P, T) of
        %% A process that is on has spawned it into the session, and so are its own children: its label is not needed.
        true -> note_seen(P, unknown, A, T);
        _ ->
            {Parent, A1, T1} = parent_label(P, A, T),
            adopt_or_leave(Parent, P, A1, T1)
    end.

parent_label(_, A = #adoption{rules = #{groups := 0}}, T) -> {none, A, T};
parent_label(P, A = #adoption{origins = Origins}, T) ->
    case witness_outline_origins:of_process(P, Origins) of
        outside -> {none, A, T};
        unknown -> {unknown, A, T};
        %% If the ancestor belongs to a group, a process between the two may have been cut out of that group.
        {beyond, Ancestor} ->
            {Label, A1, T1} = find_label(Ancestor, A, T),
            {case Label =:= unknown orelse is_grouped(Label, A) of true -> unknown; false -> none end, A1, T1};
        Parent -> find_label(Parent, A, T)
    end.

adopt_or_leave(Parent, P, A = #adoption{rules = #{chosen := Chosen, own := Own}}, T) ->
    case Chosen(P) orelse is_grouped(Parent, A) andalso not Own(P) of
        true -> adopt_process(Parent, P, A, T);
        false -> leave_out(Parent, P, A, T)
    end.

adopt_process(Parent, P, A = #adoption{rules = #{adopt := Adopt}, labels = Labels}, T) ->
    case Adopt(P, case Parent of unknown -> none; _ -> Parent end, T) of
        {dead, T1} ->
            %% Its children are in no group, or in one from which this process may have cut them.
            note_seen(P, case is_grouped(Parent, A) of true -> unknown; false -> none end, A, T1);
        {Label, T1} ->
            {Label, (note_orphan(Parent, P, A))#adoption{labels = Labels#{P => Label}}, T1}
    end.

leave_out(unknown, P, A = #adoption{rules = #{own := Own}}, T) ->
    case Own(P) of
        true -> note_seen(P, none, A, T);
        false -> note_seen(P, unknown, note_orphan(unknown, P, A), T)
    end;
leave_out(_, P, A, T) -> note_seen(P, none, A, T).

note_seen(P, What, A = #adoption{seen = Seen}, T) -> {What, A#adoption{seen = Seen#{P => What}}, T}.

%% A process that has ended meanwhile does nothing that a group could miss.
note_orphan(unknown, P, A = #adoption{orphans = Orphans}) ->
    case process_info(P, group_leader) of
        {group_leader, Leader} -> A#adoption{orphans = Orphans#{P => Leader}};
        undefined -> A
    end;
note_orphan(_, _, A) -> A.

incomplete_groups(#adoption{orphans = Orphans}) when map_size(Orphans) =:= 0 -> {[], []};
incomplete_groups(A = #adoption{rules = #{groups := Maps}}) ->
    {Groups, Orphans} = lists:unzip([incomplete_groups(N, A) || N <- lists:seq(1, Maps)]),
    {lists:usort(lists:append(Groups)), lists:usort(lists:append(Orphans))}.

incomplete_groups(N, #adoption{labels = Labels, orphans = Orphans}) ->
    Groups = #{P => Readers || P := Label <- Labels, Readers <- [readers(N, Label)], Readers =/= []},
    Leaders = #{process_info(P, group_leader) => [] || P := _ <- Groups},
    %% The group leader of a member that has ended is unknown.
    Any = is_map_key(undefined, Leaders),
    case [P || P := Leader <- Orphans, Any orelse is_map_key({group_leader, Leader}, Leaders), not is_named(P, N, Labels)] of
        [] -> {[], []};
        Doubtful -> {lists:append(maps:values(Groups)), Doubtful}
    end.

readers(N, Label) -> [Reader || {I, Reader, true} <- witness_instrument_map:label(members, Label), I =:= N].

%% An orphan inherits nothing: only properties that name it read it.
is_named(P, N, Labels) ->
    case Labels of
        #{P := Label} -> lists:keymember(N, 1, witness_instrument_map:label(members, Label));
        #{} -> false
    end.

is_grouped(Label, _) when Label =:= none; Label =:= unknown -> false;
is_grouped(Label, #adoption{rules = #{groups := Maps}}) -> witness_instrument_map:groups(Maps, Label) =/= [].
