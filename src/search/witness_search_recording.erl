-module(witness_search_recording).
-moduledoc """
Writes a run of a search as a recording, which `m:witness_replay` and all other readers take. The entries of each process are those that
the recorder would have written.
""".

-export([write/3]).

-define(MAX_SIGNATURE_BYTES, 4096).

-doc "Writes the files into a folder of this name.".
-spec write(file:filename(), witness_search_scheduler:result(), map()) -> ok | {error, term()}.
write(Dir, #{births := Births, entries := Entries, alive := Alive, outcome := Outcome}, #{woven := Woven} = Job) ->
    Ids = lists:sort(maps:keys(Births)),
    {Data, Order} = lists:unzip([parts(Id, lists:reverse(maps:get(Id, Entries, []))) || Id <- Ids]),
    Processes = [[witness_log_recording_process:encode(birth(Id, map_get(Id, Births))) || Id <- Ids],
                 [witness_log_recording_process:encode({ended, Id}) || Id <- Ids, not is_map_key(Id, Alive)]],
    Modules = [{Module, Module:module_info(md5), is_list(File) andalso lists:member(filename:dirname(File), Woven)}
               || {Module, File} <- code:all_loaded()],
    Waiting = [Id || Id := #{stops := true} <- maps:iterator(Alive, ordered)],
    case witness_record_writer:write(Dir, header(Job), [{processes, Processes}, {data, Data}, {order, Order}],
                                     #{modules => Modules, ended => running,
                                       more => #{stopped => stopped(Outcome), waiting => differences(Waiting, -1), unwoven => [],
                                                 nodes => []}}) of
        {ok, _} -> ok;
        {error, Reason} -> {error, Reason}
    end.

stopped(returned) -> {returned, normal};
stopped(halted) -> halted;
stopped(_) -> stopped.

differences(Ids, Before) -> iolist_to_binary(numbers(Ids, Before)).

numbers([Id | Ids], Before) -> [witness_log_recording_number:leb(Id - Before) | numbers(Ids, Id)];
numbers([], _) -> [].

header(Job) ->
    maps:merge(#{options => #{}, arguments => [], max_heap_size => erlang:system_info(max_heap_size), full_ids => false},
               maps:with([run, applications, calls, unwoven, code, digests, signatures], Job)).

birth(Id, #{parent := Parent, rank := Rank, start := {Module, Function, Args} = Start, pid := Pid}) ->
    Signature = case byte_size(term_to_binary(Start)) > ?MAX_SIGNATURE_BYTES andalso Parent > 0 of
        true -> {Module, Function, length(Args)};
        false -> Start
    end,
    {birth, #{id => Id, parent => Parent, place => Rank, pid => Pid, signature => Signature}}.

%% The sub-trace of a process in each file.
parts(Id, Entries) ->
    {Items, Bytes} = lists:unzip([encode(Entry) || Entry <- Entries]),
    {sub_trace(Id, [item(Item) || Of <- Items, Item <- Of]), sub_trace(Id, Bytes)}.

sub_trace(Id, Contents) ->
    Bytes = iolist_to_binary(Contents),
    [[leb(Id), leb(0), leb(byte_size(Bytes)), Bytes] || Bytes =/= <<>>].

item(Term) ->
    Bytes = term_to_binary(Term),
    [leb(byte_size(Bytes)), Bytes].

leb(N) -> witness_log_recording_number:leb(N).

encode({from, Id}) -> plain({from, Id, 1});
encode({content, Content}) -> with(Content, {content, 1});
encode(timeout) -> plain({timeout, 1});
encode({spawn, Id}) -> plain({spawn, Id});
encode({named, Id}) -> plain({named, Id});
encode(waited) -> plain(waited);
encode({exit, Reason}) -> with(Reason, exit);
encode({raise, Call, Raised}) -> with(Raised, {raise, Call});
encode({result, Call, Value}) ->
    case is_short(Value) of
        true -> plain({result, Call, {value, Value}});
        false -> with(Value, {result, Call, data})
    end.

is_short(Value) when is_integer(Value) -> abs(Value) < 1 bsl 62;
is_short(Value) -> lists:member(Value, [true, false, undefined, ok, [], error, infinity, none]).

plain(Entry) -> {[], witness_log_recording_entry:encode(Entry)}.

with(Term, Entry) -> {[Term], witness_log_recording_entry:encode(Entry)}.
