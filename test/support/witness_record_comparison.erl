-module(witness_record_comparison).
-moduledoc """
Compares what a program has noted of itself (`test/recorded/witness_recorded.erl`) with what the recording says that it did.

The recording's own list of processes maps pids to identifiers. A noted step is the same as a recorded one in these cases:

| Noted | Recorded |
|---|---|
| `{message, From, Msg}` | `{from, Id}` of that process; `{content, Msg}` if it is not recorded, or may be if it is the process itself |
| `{content, Msg}` | `{content, Msg}` |
| `timeout` | `timeout` |
| `{spawn, Pid}` | `{spawn, Id}` |
| `{result, MFA, Value}` | `{result, MFA, Value}` |

Other recorded entries belong to the libraries: names that messages were sent to, results of calls that the process has not
noted at all, and `ets:insert/2`, which it notes with.
""".

-export([both/2, differences/3, journal/1, recorded/1]).

-export_type([strictness/0]).

-doc """
- `exact`: each process has noted every message, timeout and birth, and ends as the recording says;
- `complete`: the same, and no process is killed, so each one had the time to note its last step;
- `verified`: as `exact`, where labels were not believed, since not all code was woven: a message of a process that has
  ended meanwhile is there with its contents;
- `within`: libraries take messages for a process, too: what the process has noted is there in this order;
- `within_verified`: the same, where labels were not believed.
""".
-type strictness() :: complete | exact | verified | within | within_verified.

-doc """
What a program has noted, and what the recording says, with the same pids: the pids of a node that got its name later are not
the ones that they were before.
""".
both(File, Dir) ->
    #{root := Root} = Journal = journal(File),
    Recorded = recorded(Dir),
    case node(Root) of
        nonode@nohost -> {Journal, Recorded};
        Node -> {unnamed(Journal, Node), unnamed(Recorded, Node)}
    end.

unnamed(Pid, Node) when is_pid(Pid), node(Pid) =:= Node; is_pid(Pid), node(Pid) =:= nonode@nohost ->
    [_, Number, Serial] = string:lexemes(pid_to_list(Pid), "<.>"),
    {pid, Number, Serial};
unnamed([Head | Tail], Node) -> [unnamed(Head, Node) | unnamed(Tail, Node)];
unnamed(Tuple, Node) when is_tuple(Tuple) -> list_to_tuple(unnamed(tuple_to_list(Tuple), Node));
unnamed(Map, Node) when is_map(Map) -> #{unnamed(Key, Node) => unnamed(Value, Node) || Key := Value <- Map};
unnamed(Term, _) -> Term.

-doc "What a program has noted: the result of its function, its first process, and for each process its steps.".
journal(File) ->
    {ok, Bytes} = file:read_file(File),
    #{result := Result, root := Root, steps := Steps} = binary_to_term(Bytes),
    #{result => Result, root => Root, born => #{Pid => Parent || {{born, Pid}, Parent} <- Steps},
      ended => #{Pid => Reason || {{ended, Pid}, Reason} <- Steps},
      steps => maps:groups_from_list(fun({{Pid, _}, _}) -> Pid end, fun({_, Step}) -> Step end,
                                     [Step || {{Pid, _}, _} = Step <- Steps, is_pid(Pid)])}.

-doc "What a recording says: for each pid its identifier, its parent's pid, and entries.".
recorded(Dir) ->
    {ok, R} = witness_log_recording:open(Dir),
    Info = #{complete := true} = witness_log_recording:info(R),
    {ok, Processes} = witness_log_recording:processes(R),
    Ids = [Id || #{id := Id} <- Processes],
    %% All cursors are read at once, since one block has the parts of thousands of processes.
    Entries = witness_log_recording:with_cursors(fun(Open) -> #{Id => entries(Open(Id)) || Id <- Ids} end, R),
    #{info => Info, ids => #{Pid => Id || #{id := Id, pid := Pid} <- Processes},
      parents => #{Id => Parent || #{id := Id, parent := Parent} <- Processes}, entries => Entries}.

entries({ok, none}) -> [];
entries({ok, Cursor}) -> entries(witness_log_recording_cursor:next(Cursor), []).

entries({ok, Run, Cursor}, Before) -> entries(witness_log_recording_cursor:next(Cursor), several(Run) ++ Before);
entries(done, Before) -> lists:reverse(Before).

several({from, From, N}) -> lists:duplicate(N, {from, From});
several({timeout, N}) -> lists:duplicate(N, timeout);
several(Entry) -> [Entry].

-doc "The differences: an empty list if the recording is right.".
-spec differences(map(), map(), strictness()) -> [term()].
differences(#{steps := Steps, born := Born, ended := Ended, root := Root}, #{ids := Ids} = Recorded, Strictness) ->
    [{not_recorded, Pid} || Pid <- maps:keys(Steps) ++ maps:keys(Born), not is_map_key(Pid, Ids)] ++
        [Difference || Pid := Id <- Ids,
                       Difference <- process(Pid, Id, maps:get(Pid, Steps, []), Root, Recorded, Strictness)] ++
        [{parent, Pid, Parent, Other} || Pid := Parent <- Born, #{Pid := _} <- [Ids],
                                         Other <- [parent(Pid, Recorded)], Other =/= maps:get(Parent, Ids)] ++
        [{ended, Pid, Reason, Other} || Pid := Reason <- Ended, #{Pid := Id} <- [Ids],
                                        Other <- [last(Id, Recorded)], Other =/= {exit, Reason}].

parent(Pid, #{ids := Ids, parents := Parents}) -> maps:get(maps:get(Pid, Ids), Parents).

last(Id, #{entries := Entries}) ->
    case maps:get(Id, Entries) of
        [] -> none;
        List -> lists:last(List)
    end.

process(Pid, Id, Steps, Root, #{entries := Entries, ids := Ids}, Strictness) ->
    Noted = lists:usort([MFA || {result, MFA, _} <- Steps]),
    Kept = [Entry || Entry <- maps:get(Id, Entries), counts(Entry, Noted)],
    Rest = case {Strictness, Pid} of
        {within, _} -> anything;
        {within_verified, _} -> anything;
        %% The last step of the root is to write the file, and it goes on after that.
        {_, Root} -> outside;
        {complete, _} -> noted;
        {_, _} -> ended
    end,
    Known = Steps =/= [] orelse lists:member(Strictness, [complete, within, within_verified]),
    Same = fun(Step, Entry) ->
        same(Step, Entry, Pid, Ids) orelse lists:member(Strictness, [verified, within_verified]) andalso late(Step, Entry)
    end,
    case match(Steps, Kept, Rest, Same) of
        ok -> [];
        {differ, Step, Entry} when Known -> [{process, Pid, Id, {noted, Step}, {recorded, Entry}}];
        {differ, _, _} -> []
    end.

counts({named, _}, _) -> false;
counts({result, {ets, insert, 2}, _}, _) -> false;
counts({result, MFA, _}, Noted) -> lists:member(MFA, Noted);
counts({raise, _, _, _}, _) -> false;
counts({Kind, _}, _) when Kind =:= hash; Kind =:= contents -> false;
counts({sent, _, _}, _) -> false;
counts(_, _) -> true.

%% The first place where both differ, as far as any of the alternatives leads.
match([{either, Alternatives} | Steps], Entries, Rest, Same) ->
    Results = [match(Alternative ++ Steps, Entries, Rest, Same) || Alternative <- Alternatives],
    case lists:member(ok, Results) of
        true -> ok;
        false -> lists:last(Results)
    end;
match([Step | Steps], [Entry | Entries], Rest, Same) ->
    case Same(Step, Entry) of
        true -> match(Steps, Entries, Rest, Same);
        false when Rest =:= anything -> match([Step | Steps], Entries, Rest, Same);
        false -> {differ, Step, Entry}
    end;
match([Step | _], [], _, _) -> {differ, Step, none};
match([], _, anything, _) -> ok;
match([], Entries, outside, _) ->
    case [Entry || {Kind, _} = Entry <- Entries, Kind =:= from orelse Kind =:= spawn] of
        [] -> ok;
        [Entry | _] -> {differ, none, Entry}
    end;
match([], [{exit, _}], _, _) -> ok;
%% A process that was killed may have had no time to note its last step.
match([], [_, {exit, Reason}], ended, _) when Reason =/= normal -> ok;
match([], [Entry | _], _, _) -> {differ, none, Entry};
match([], [], _, _) -> {differ, none, no_exit}.

same({message, '_', _}, {from, _}, _, _) -> true;
same({message, Self, Msg}, {content, Other}, Self, _) -> alike(Msg, Other);
same({message, From, _}, {from, Id}, _, Ids) -> maps:get(From, Ids, none) =:= Id;
same({message, From, Msg}, {content, Other}, _, Ids) -> not is_map_key(From, Ids) andalso alike(Msg, Other);
same({content, Msg}, {content, Other}, _, _) -> alike(Msg, Other);
same(timeout, timeout, _, _) -> true;
same({spawn, Pid}, {spawn, Id}, _, Ids) -> maps:get(Pid, Ids, none) =:= Id;
same({result, MFA, Value}, {result, MFA, Other}, _, _) -> Value =:= Other;
same(_, _, _, _) -> false.

late({message, _, Msg}, {content, Other}) -> alike(Msg, Other);
late(_, _) -> false.

alike('_', _) -> true;
alike(Same, Same) -> true;
alike(A, B) when is_tuple(A), is_tuple(B), tuple_size(A) =:= tuple_size(B) ->
    lists:all(fun({X, Y}) -> alike(X, Y) end, lists:zip(tuple_to_list(A), tuple_to_list(B)));
alike(_, _) -> false.
