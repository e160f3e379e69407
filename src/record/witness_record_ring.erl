-module(witness_record_ring).
-moduledoc """
The last part of what a recorder has gathered, as data: what is older or more than a limit is dropped.

The input is the parts that the recorder hands over (`witness_record_native:take/1`), in their order. The output is the parts of a
recording that begins late (`parts/1`), and refers to nothing outside of it:

- sub-traces are numbered from 0 again;
- entries and their data fit each other: if one of the two is lost, the other is left out. The two streams are cut at different
  places. So for each process the ring counts the terms that dropped entries refer to, and the terms that were dropped;
- a run of messages names its sender, which an earlier entry may have named;
- a process of which something was dropped is marked as `early`: of every other one everything is there.

The birth of a process is kept as long as the process is alive, and until its end is as old as the oldest part. So beyond the
limit the ring keeps the births of live processes, and two numbers for each. The end of a process arrives before the last of what
it did: when a flush has brought that, the end takes its place (`place_ends/1`).
""".

-export([new/3, add/3, place_ends/1, parts/1, size/1]).

-export_type([ring/0, limit/0]).

-doc "The oldest parts are dropped beyond these bytes, and these milliseconds.".
-type limit() :: #{bytes := pos_integer(), time := pos_integer() | infinity}.

%% Where the kept entries of a process begin. reader: what the entries before have named. surplus: how many dropped terms kept
%% entries refer to; negative if dropped entries refer to terms that are kept.
-record(begin_at, {reader :: witness_log_recording_entry:reader(),
                   surplus = 0 :: integer()}).

%% In the queue, the oldest first: a piece of a stream, or the end of a process, each with its time.
%% begins: of processes of which something was dropped. ending: processes that have ended, and may have more to come.
-record(ring, {limit :: limit(),
               full :: boolean(),
               rows :: witness_event_wrapper:table(),
               queue = queue:new() :: queue:queue({integer(), order | data | ended, binary() | pos_integer()}),
               size = 0 :: non_neg_integer(),
               begins = #{} :: #{pos_integer() => #begin_at{}},
               births = #{} :: #{pos_integer() => Records :: iodata()},
               ending = [] :: [{integer(), pos_integer()}],
               ended = #{} :: #{pos_integer() => []}}).

-opaque ring() :: #ring{}.

-doc "An empty ring. `Full`: ids take eight bytes; `Rows`: those for signatures.".
-spec new(limit(), Full :: boolean(), Rows :: witness_event_wrapper:table()) -> ring().
new(Limit, Full, Rows) -> #ring{limit = Limit, full = Full, rows = Rows}.

-doc "How many bytes of entries and data are kept.".
-spec size(ring()) -> non_neg_integer().
size(#ring{size = Size}) -> Size.

-doc "Adds what was taken at this time, in milliseconds.".
-spec add([{witness_record_native:stream(), binary()}], Now :: integer(), ring()) -> ring().
add(Parts, Now, R) ->
    trim(Now, lists:foldl(fun({processes, Part}, A) -> processes(Part, Now, A);
                                ({Kind, Part}, A) -> enqueue(Now, Kind, Part, byte_size(Part), A)
                             end, R, Parts)).

-doc "Gives ends of processes their place. Must be called when all that was gathered until now has been added.".
-spec place_ends(ring()) -> ring().
place_ends(#ring{ending = Ending} = R) ->
    lists:foldr(fun({Now, Id}, A) -> enqueue(Now, ended, Id, 0, A) end, R#ring{ending = []}, Ending).

enqueue(Now, Kind, What, Size, #ring{queue = Queue, size = All} = R) ->
    R#ring{queue = queue:in({Now, Kind, What}, Queue), size = All + Size}.

processes(<<1, Rest/binary>> = All, Now, #ring{births = Births, rows = Rows} = R) ->
    {[Id, _, _, Size], Rest1} = witness_log_recording_number:several(4, Rest),
    <<_:Size/binary, Rest2/binary>> = Rest1,
    Record = binary:copy(binary:part(All, 0, byte_size(All) - byte_size(Rest2))),
    processes(Rest2, Now, R#ring{births = Births#{Id => [Record | witness_record_names:signatures(Record, Rows)]}});
processes(<<2, Rest/binary>>, Now, #ring{ending = Ending, ended = Ended} = R) ->
    {Id, Rest1} = witness_log_recording_number:read(Rest),
    processes(Rest1, Now, R#ring{ending = [{Now, Id} | Ending], ended = Ended#{Id => []}});
processes(<<5, _/binary>> = All, Now, #ring{births = Births} = R) ->
    {[Id, _], Rest} = witness_log_recording_number:several(2, binary:part(All, 1, byte_size(All) - 1)),
    Record = binary:copy(binary:part(All, 0, byte_size(All) - byte_size(Rest))),
    processes(Rest, Now, R#ring{births = Births#{Id := [map_get(Id, Births), Record]}});
processes(<<>>, _, R) -> R.

%% --- dropping --------------------------------------------------------------------

trim(Now, #ring{queue = Queue, size = Size, limit = #{bytes := Most, time := Time}} = R) ->
    case queue:peek(Queue) of
        %% Nothing is left of what this process did.
        {value, {_, ended, _} = Oldest} -> trim(Now, drop(Oldest, R#ring{queue = queue:drop(Queue)}));
        {value, {Then, _, _} = Oldest} when Size > Most; is_integer(Time), Now - Then > Time ->
            trim(Now, drop(Oldest, R#ring{queue = queue:drop(Queue)}));
        _ -> R
    end.

drop({_, ended, Id}, #ring{births = Births, begins = Begins, ended = Ended} = R) ->
    R#ring{births = maps:remove(Id, Births), begins = maps:remove(Id, Begins), ended = maps:remove(Id, Ended)};
drop({_, Kind, Part}, #ring{size = Size} = R) ->
    each_subtrace(fun(Id, Bytes, A) -> count_dropped(Kind, Id, Bytes, A) end, R#ring{size = Size - byte_size(Part)}, Part).

count_dropped(order, Id, Bytes, R) ->
    #begin_at{reader = Reader, surplus = Surplus} = At = begin_of(Id, R),
    {Needs, Reader1} = count_needed(Bytes, Reader, 0),
    put_begin(Id, At#begin_at{reader = Reader1, surplus = Surplus - Needs}, R);
count_dropped(data, Id, Bytes, R) ->
    #begin_at{surplus = Surplus} = At = begin_of(Id, R),
    put_begin(Id, At#begin_at{surplus = Surplus + items(Bytes, 0)}, R).

begin_of(Id, #ring{begins = Begins, full = Full}) ->
    case Begins of
        #{Id := At} -> At;
        #{} -> #begin_at{reader = witness_log_recording_entry:reader(Full)}
    end.

put_begin(Id, At, #ring{begins = Begins} = R) -> R#ring{begins = Begins#{Id => At}}.

count_needed(<<>>, Reader, Sum) -> {Sum, Reader};
count_needed(Bytes, Reader, Sum) ->
    {Entry, Rest, Reader1} = witness_log_recording_entry:next(Bytes, Reader),
    count_needed(Rest, Reader1, Sum + needs(Entry)).

needs({content, N}) -> N;
needs({result, _, data}) -> 1;
needs({raise, _}) -> 1;
needs(Mark) when Mark =:= exit; Mark =:= sent; Mark =:= contents -> 1;
needs(_) -> 0.

items(<<>>, Count) -> Count;
items(Bytes, Count) ->
    {_, Rest} = item(Bytes),
    items(Rest, Count + 1).

item(Bytes) ->
    {Size, Rest} = witness_log_recording_number:read(Bytes),
    Whole = byte_size(Bytes) - byte_size(Rest) + Size,
    <<Item:Whole/binary, Rest1/binary>> = Bytes,
    {Item, Rest1}.

each_subtrace(_, Acc, <<>>) -> Acc;
each_subtrace(Fun, Acc, Bytes) ->
    {[Id, _, Size], Rest} = witness_log_recording_number:several(3, Bytes),
    <<Trace:Size/binary, Rest1/binary>> = Rest,
    each_subtrace(Fun, Fun(Id, Trace, Acc), Rest1).

%% --- keeping ---------------------------------------------------------------------

%% Of a process: the numbers of its next sub-traces; how many of the next terms that entries refer to were dropped, so that these
%% entries are left out; how many of the next terms are left out, since their entries were dropped.
-record(kept, {order = 0 :: non_neg_integer(),
               data = 0 :: non_neg_integer(),
               reader :: witness_log_recording_entry:reader(),
               no_data = 0 :: non_neg_integer(),
               no_entry = 0 :: non_neg_integer()}).

-doc "The parts of a recording of what is kept.".
-spec parts(ring()) -> [{witness_record_native:stream(), iodata()}].
parts(#ring{queue = Queue, births = Births, ended = Ended} = R) ->
    {Parts, _} = queue:fold(fun
        ({_, Kind, Part}, {Done, All}) when Kind =:= order; Kind =:= data ->
            {New, All1} = each_subtrace(fun(Id, Bytes, A) -> renumber(Kind, Id, Bytes, A, R) end, {[], All}, Part),
            {[{Kind, lists:reverse(New)} | Done], All1};
        (_, Acc) -> Acc
    end, {[], #{}}, Queue),
    [{processes, [Records, [witness_log_recording_process:encode({early, Id}) || is_map_key(Id, R#ring.begins)],
                  [witness_log_recording_process:encode({ended, Id}) || is_map_key(Id, Ended)]]}
     || {Id, Records} <- lists:sort(maps:to_list(Births))] ++ lists:reverse(Parts).

renumber(Kind, Id, Bytes, {New, All}, R) ->
    K = case All of
        #{Id := Known} -> Known;
        #{} ->
            #begin_at{reader = Reader, surplus = Surplus} = begin_of(Id, R),
            #kept{reader = Reader, no_data = max(0, Surplus), no_entry = max(0, -Surplus)}
    end,
    {Kept, K1} = case Kind of
        order -> entries(Bytes, K, R#ring.full, []);
        data -> without_entry(Bytes, K)
    end,
    case {iolist_size(Kept), Kind} of
        {0, _} -> {New, All#{Id => K1}};
        {_, order} -> {[subtrace(Id, K1#kept.order, Kept) | New], All#{Id => K1#kept{order = K1#kept.order + 1}}};
        {_, data} -> {[subtrace(Id, K1#kept.data, Kept) | New], All#{Id => K1#kept{data = K1#kept.data + 1}}}
    end.

subtrace(Id, Number, Bytes) ->
    [[witness_log_recording_number:leb(N) || N <- [Id, Number, iolist_size(Bytes)]], Bytes].

entries(<<>>, K, _, Kept) -> {lists:reverse(Kept), K};
entries(Bytes, #kept{reader = Reader, no_data = NoData} = K, Full, Kept) ->
    {Entry, Rest, Reader1} = witness_log_recording_entry:next(Bytes, Reader),
    K1 = K#kept{reader = Reader1},
    case needs(Entry) of
        _ when NoData =:= 0 -> entries(Rest, K1, Full, [encode(Entry, Full) | Kept]);
        N when N =< NoData -> entries(Rest, K1#kept{no_data = NoData - N}, Full, Kept);
        N -> entries(Rest, K1#kept{no_data = 0}, Full, [encode({content, N - NoData}, Full) | Kept])
    end.

%% A run names its sender. So the sub-trace differs from the recorder's, but its entries are the same.
encode(Entry, Full) -> witness_log_recording_entry:encode(Entry, Full).

without_entry(Bytes, #kept{no_entry = 0} = K) -> {Bytes, K};
without_entry(<<>>, K) -> {<<>>, K};
without_entry(Bytes, #kept{no_entry = N} = K) ->
    {_, Rest} = item(Bytes),
    without_entry(Rest, K#kept{no_entry = N - 1}).
