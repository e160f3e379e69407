-module(witness_outline_adoption).
-moduledoc """
Which of the processes that run already a tracer adopts, and in which groups they are.

The processes that were chosen are adopted. If one of them is read by a group, the group reads what that process has spawned
before, directly or not, as it reads what it will spawn. So these processes are adopted too, chosen or not, and each is
assigned below its parent (`witness_outline_map:assign/3`), as if its birth had been seen.

## Why none is missed

Each look at all processes may show new ones whose parents were not on yet. When it shows none, every process is on that
should be, and what comes later inherits the session. What a process that is on has spawned is on by birth, and stays so
until its fork is read, which is after this: it is not adopted twice.

If an ancestor of a process has ended before it was seen, the process may belong to a group or not
(`m:witness_outline_origins`). Such an *orphan* is told to the caller: no group is complete then. There are three exceptions.
An ancestor beyond that is known, and in no group. Or the process has another group leader than all processes of groups, as
those of other applications have: group leaders are inherited. Or it is adopted, and a property names it: then it is in no
group that another process has begun in the same map.
""".

-export([adopt/3]).

-export_type([rules/1]).

-doc """
`adopt` switches a process on, with the label of its parent if that one was adopted, and gives its own label. `groups`:
in so many of the first maps properties may be for groups; if it is 0, origins make no difference.
""".
-type rules(T) :: #{chosen := fun((pid()) -> boolean()), own := fun((pid()) -> boolean()), groups := non_neg_integer(),
                    traced := fun((pid(), T) -> boolean() | dead),
                    adopt := fun((pid(), witness_outline_map:label() | none, T) -> {witness_outline_map:label() | dead, T})}.

%% labels: of the processes that were adopted
%% seen: the others that this look has come to. `unknown': a group may have it, or not
%% orphans: processes that are, or may be, descendants of an unknown process
-record(adoption, {rules :: rules(term()),
                   origins = witness_outline_origins:new() :: witness_outline_origins:origins(),
                   labels = #{} :: #{pid() => witness_outline_map:label()},
                   seen = #{} :: #{pid() => none | unknown},
                   orphans = #{} :: #{pid() => Leader :: pid()}}).

-doc """
Adopts all that should be. `Processes` lists those of the node. Gives the labels of the adopted processes, and the groups that
may not be complete, with the orphans that they may lack.
""".
-spec adopt(fun(() -> [pid()]), rules(T), T) ->
    {#{pid() => witness_outline_map:label()}, {[witness_outline_map:reader()], [pid()]}, T}.
adopt(Processes, Rules, T) -> look(Processes, #adoption{rules = Rules}, T).

look(Processes, A0 = #adoption{labels = Before}, T0) ->
    All = Processes(),
    {A, T} = lists:foldl(fun each/2, {origins(All, A0#adoption{seen = #{}}), T0}, All),
    case map_size(A#adoption.labels) =:= map_size(Before) of
        true -> {A#adoption.labels, incomplete(A), T};
        false -> look(Processes, A, T)
    end.

origins(_, A = #adoption{rules = #{groups := 0}}) -> A;
origins(All, A = #adoption{origins = Origins}) -> A#adoption{origins = witness_outline_origins:look(All, Origins)}.

each(P, {A, T}) ->
    {_, A1, T1} = place(P, A, T),
    {A1, T1}.

%% Parents first: a label depends on that of the parent.
place(P, A = #adoption{labels = Labels}, T) when is_map_key(P, Labels) -> {map_get(P, Labels), A, T};
place(P, A = #adoption{seen = Seen}, T) when is_map_key(P, Seen) -> {map_get(P, Seen), A, T};
place(P, A = #adoption{rules = #{traced := Traced}}, T) ->
    case Traced(P, T) of
        %% Born into the session by one that is on, as its children are: its label is not asked for.
        true -> seen(P, unknown, A, T);
        _ ->
            {Parent, A1, T1} = parent(P, A, T),
            below(Parent, P, A1, T1)
    end.

parent(_, A = #adoption{rules = #{groups := 0}}, T) -> {none, A, T};
parent(P, A = #adoption{origins = Origins}, T) ->
    case witness_outline_origins:of_process(P, Origins) of
        outside -> {none, A, T};
        unknown -> {unknown, A, T};
        %% If a group has the ancestor, one of those between may have been cut out of it.
        {beyond, Ancestor} ->
            {Label, A1, T1} = place(Ancestor, A, T),
            {case Label =:= unknown orelse is_grouped(Label, A) of true -> unknown; false -> none end, A1, T1};
        Parent -> place(Parent, A, T)
    end.

below(Parent, P, A = #adoption{rules = #{chosen := Chosen, own := Own}}, T) ->
    case Chosen(P) orelse is_grouped(Parent, A) andalso not Own(P) of
        true -> adopted(Parent, P, A, T);
        false -> left(Parent, P, A, T)
    end.

adopted(Parent, P, A = #adoption{rules = #{adopt := Adopt}, labels = Labels}, T) ->
    case Adopt(P, case Parent of unknown -> none; _ -> Parent end, T) of
        {dead, T1} ->
            %% What it has spawned is a stranger's, or belongs to a group from which this process would perhaps have cut it.
            seen(P, case is_grouped(Parent, A) of true -> unknown; false -> none end, A, T1);
        {Label, T1} ->
            {Label, (orphan(Parent, P, A))#adoption{labels = Labels#{P => Label}}, T1}
    end.

left(unknown, P, A = #adoption{rules = #{own := Own}}, T) ->
    case Own(P) of
        true -> seen(P, none, A, T);
        false -> seen(P, unknown, orphan(unknown, P, A), T)
    end;
left(_, P, A, T) -> seen(P, none, A, T).

seen(P, What, A = #adoption{seen = Seen}, T) -> {What, A#adoption{seen = Seen#{P => What}}, T}.

%% One that has ended meanwhile does nothing that a group could miss.
orphan(unknown, P, A = #adoption{orphans = Orphans}) ->
    case process_info(P, group_leader) of
        {group_leader, Leader} -> A#adoption{orphans = Orphans#{P => Leader}};
        undefined -> A
    end;
orphan(_, _, A) -> A.

incomplete(#adoption{orphans = Orphans}) when map_size(Orphans) =:= 0 -> {[], []};
incomplete(A = #adoption{rules = #{groups := Maps}}) ->
    {Groups, Orphans} = lists:unzip([incomplete(N, A) || N <- lists:seq(1, Maps)]),
    {lists:usort(lists:append(Groups)), lists:usort(lists:append(Orphans))}.

incomplete(N, #adoption{labels = Labels, orphans = Orphans}) ->
    Groups = #{P => Readers || P := Label <- Labels, Readers <- [readers(N, Label)], Readers =/= []},
    Leaders = #{process_info(P, group_leader) => [] || P := _ <- Groups},
    %% The leader of a member that has ended is not known any more.
    Any = is_map_key(undefined, Leaders),
    case [P || P := Leader <- Orphans, Any orelse is_map_key({group_leader, Leader}, Leaders), not is_named(P, N, Labels)] of
        [] -> {[], []};
        Doubtful -> {lists:append(maps:values(Groups)), Doubtful}
    end.

readers(N, Label) -> [Reader || {I, Reader, true} <- witness_outline_map:label(members, Label), I =:= N].

%% An orphan inherits nothing: it is read by what names it.
is_named(P, N, Labels) ->
    case Labels of
        #{P := Label} -> lists:keymember(N, 1, witness_outline_map:label(members, Label));
        #{} -> false
    end.

is_grouped(Label, _) when Label =:= none; Label =:= unknown -> false;
is_grouped(Label, #adoption{rules = #{groups := Maps}}) -> witness_outline_map:groups(Maps, Label) =/= [].
