-module(witness_otp_memory).
-moduledoc "Programs with memory that processes share, and with tables on disk.".

-include_lib("stdlib/include/ms_transform.hrl").

-export([ets_kinds/0, ets_match/0, ets_heir/0, ets_counters/0, ets_files/0, ets_shared/0, dets/0, disk_log/0, wrap_log/0,
         mnesia_ram/0, mnesia_disc/0,
         mnesia_events/0, persistent_terms/0, counters/0, atomics/0, dictionary/0]).

-record(person, {name, age, town}).

ets_kinds() ->
    [begin
        Table = ets:new(any, [Kind, public, {keypos, 1}]),
        _ = witness_otp_program:each(fun(N) -> ets:insert(Table, [{N rem 5, N}, {N rem 5, a}]) end, lists:seq(1, 20)),
        true = ets:delete(Table, 4),
        {Kind, ets:info(Table, size), lists:sort(ets:tab2list(Table)), ets:member(Table, 3)}
     end || Kind <- [set, ordered_set, bag, duplicate_bag]].

ets_match() ->
    Table = ets:new(people, [named_table, {keypos, #person.name}]),
    true = ets:insert(people, [#person{name = N, age = N * 7 rem 90, town = lists:nth(1 + N rem 3, [here, there, nowhere])}
                               || N <- lists:seq(1, 300)]),
    Old = ets:select(Table, ets:fun2ms(fun(#person{name = Name, age = A, town = here}) when A > 60 -> {Name, A} end)),
    {First, Continuation} = ets:select(Table, [{#person{_ = '_'}, [], ['$_']}], 50),
    Rest = all(ets:select(Continuation)),
    Deleted = ets:match_delete(Table, #person{town = there, _ = '_'}),
    Replaced = ets:select_replace(Table, ets:fun2ms(fun(#person{age = 7} = P) -> P#person{age = 8} end)),
    {length(Old), length(First) + length(Rest), Deleted, Replaced, ets:match(Table, #person{name = '$1', age = 8, _ = '_'}),
     ets:foldl(fun(#person{age = A}, Sum) -> Sum + A end, 0, Table), ets:select_count(Table, [{'_', [], [true]}])}.

all('$end_of_table') -> [];
all({Some, Continuation}) -> Some ++ all(ets:select(Continuation)).

ets_heir() ->
    Me = self(),
    {Pid, Monitor} = spawn_monitor(fun() ->
        Table = ets:new(inherited, [{heir, Me, with_love}]),
        ets:insert(Table, {key, value}),
        Given = ets:new(given, []),
        ets:insert(Given, {other, thing}),
        true = ets:give_away(Given, Me, freely)
    end),
    receive {'DOWN', Monitor, process, Pid, normal} -> ok end,
    receive {'ETS-TRANSFER', Given, Pid, freely} -> ok end,
    receive
        {'ETS-TRANSFER', Table, Pid, with_love} ->
            {ets:lookup(Table, key), ets:tab2list(Given), ets:info(Table, owner) =:= Me}
    end.

ets_counters() ->
    Table = ets:new(count, [public, {write_concurrency, true}]),
    Last = witness_otp_program:each(fun(_) ->
        lists:last([ets:update_counter(Table, key, {2, 1}, {key, 0}) || _ <- lists:seq(1, 50)])
    end, lists:seq(1, 8)),
    true = ets:update_element(Table, key, {2, 1000}),
    {lists:max(Last), ets:take(Table, key), ets:lookup(Table, key), ets:insert_new(Table, {key, 1}),
     ets:insert_new(Table, {key, 2})}.

ets_files() ->
    File = filename:join(witness_otp_program:folder(), "table"),
    Table = ets:new(kept, [ordered_set]),
    true = ets:insert(Table, [{N, N * N} || N <- lists:seq(1, 100)]),
    ok = ets:tab2file(Table, File, [{extended_info, [md5sum]}]),
    {ok, Read} = ets:file2tab(File, [{verify, true}]),
    {ets:last(Read), ets:lookup_element(Read, 9, 2), ets:prev(Read, 50), ets:next(Read, 50), ets:slot(Read, 3)}.

%% Readers read what writers write.
ets_shared() ->
    Table = ets:new(shared, [public, ordered_set]),
    Writers = [spawn_monitor(fun() -> [ets:insert(Table, {{N, M}, M}) || M <- lists:seq(1, 40)] end) || N <- lists:seq(1, 4)],
    Seen = witness_otp_program:each(fun(_) -> erlang:yield(), length(ets:tab2list(Table)) end, lists:seq(1, 6)),
    [receive {'DOWN', M, process, P, normal} -> ok end || {P, M} <- Writers],
    {Seen, ets:info(Table, size)}.

dets() ->
    File = filename:join(witness_otp_program:folder(), "dets"),
    {ok, Table} = dets:open_file(stored, [{file, File}, {type, bag}]),
    _ = witness_otp_program:each(fun(N) -> ok = dets:insert(Table, [{N rem 7, N}]) end, lists:seq(1, 30)),
    ok = dets:delete(Table, 3),
    ok = dets:sync(Table),
    Matched = dets:match(Table, {2, '$1'}),
    ok = dets:close(Table),
    {ok, Again} = dets:open_file(File),
    Sum = dets:foldl(fun({_, N}, Sum) -> Sum + N end, 0, Again),
    Size = dets:info(Again, size),
    ok = dets:close(Again),
    {lists:sort(Matched), Sum, Size}.

disk_log() ->
    File = filename:join(witness_otp_program:folder(), "log"),
    {ok, Log} = disk_log:open([{name, noted}, {file, File}]),
    _ = witness_otp_program:each(fun(N) -> ok = disk_log:log(noted, {entry, N}) end, lists:seq(1, 20)),
    ok = disk_log:alog_terms(Log, [{more, 1}, {more, 2}]),
    ok = disk_log:sync(Log),
    {_, Terms} = disk_log:chunk(Log, start),
    ok = disk_log:close(Log),
    {length(Terms), lists:sum([N || {_, N} <- Terms])}.

wrap_log() ->
    Dir = witness_otp_program:folder(),
    {ok, Log} = disk_log:open([{name, wraps}, {file, filename:join(Dir, "wrap")}, {type, wrap}, {size, {500, 3}}, {notify, true}]),
    [ok = disk_log:log(Log, {entry, N, binary:copy(<<"x">>, 100)}) || N <- lists:seq(1, 20)],
    ok = disk_log:close(Log),
    {length(wraps()), lists:sort(filelib:wildcard("*", Dir))}.

wraps() -> receive {disk_log, _, _, {wrap, N}} -> [N | wraps()] after 0 -> [] end.

mnesia_ram() ->
    ok = mnesia:start(),
    {atomic, ok} = mnesia:create_table(account, [{attributes, [id, sum]}]),
    {atomic, ok} = mnesia:create_table(person, [{attributes, record_info(fields, person)}, {index, [town]}]),
    ok = mnesia:wait_for_tables([account, person], 5000),
    {atomic, ok} = mnesia:transaction(fun() -> [ok = mnesia:write({account, N, 100}) || N <- [1, 2, 3]], ok end),
    Moves = witness_otp_program:each(fun(N) -> mnesia:transaction(fun() -> move(1 + N rem 3, 1 + (N + 1) rem 3, N * 9) end) end,
                                     lists:seq(1, 12)),
    ok = mnesia:dirty_write(#person{name = ann, age = 3, town = here}),
    Found = mnesia:dirty_index_read(person, here, #person.town),
    Sum = lists:sum([S || N <- [1, 2, 3], {account, _, S} <- mnesia:dirty_read(account, N)]),
    stopped = mnesia:stop(),
    {Sum, length([ok || {atomic, ok} <- Moves]), length(Found)}.

move(From, To, Sum) ->
    [{account, From, Has}] = mnesia:wread({account, From}),
    [{account, To, Had}] = mnesia:read(account, To, write),
    if Has < Sum -> mnesia:abort(not_enough); true -> ok end,
    ok = mnesia:write({account, From, Has - Sum}),
    ok = mnesia:write({account, To, Had + Sum}).

mnesia_disc() ->
    Dir = witness_otp_program:folder(),
    application:load(mnesia),
    ok = application:set_env(mnesia, dir, Dir),
    ok = mnesia:create_schema([node()]),
    ok = mnesia:start(),
    {atomic, ok} = mnesia:create_table(kept, [{disc_copies, [node()]}, {attributes, [key, value]}]),
    {atomic, ok} = mnesia:create_table(only, [{disc_only_copies, [node()]}, {attributes, [key, value]}]),
    ok = mnesia:wait_for_tables([kept, only], 5000),
    [{atomic, ok} = mnesia:transaction(fun() -> mnesia:write({T, N, N * N}) end) || N <- lists:seq(1, 20), T <- [kept, only]],
    stopped = mnesia:stop(),
    ok = mnesia:start(),
    ok = mnesia:wait_for_tables([kept, only], 5000),
    {atomic, All} = mnesia:transaction(fun() -> mnesia:foldl(fun({_, _, V}, S) -> V + S end, 0, kept) end),
    Got = mnesia:activity(async_dirty, fun() -> mnesia:read(only, 7) end),
    stopped = mnesia:stop(),
    {All, Got}.

mnesia_events() ->
    ok = mnesia:start(),
    {atomic, ok} = mnesia:create_table(seen, [{type, ordered_set}, {attributes, [key, value]}]),
    {ok, _} = mnesia:subscribe({table, seen, detailed}),
    _ = witness_otp_program:each(fun(N) -> mnesia:sync_transaction(fun() -> mnesia:write({seen, N, x}) end) end, lists:seq(1, 5)),
    Events = [receive {mnesia_table_event, {write, seen, {seen, N, x}, [], _}} -> N end || _ <- lists:seq(1, 5)],
    mnesia:stop(),
    lists:sum(Events).

persistent_terms() ->
    persistent_term:put({?MODULE, key}, lists:seq(1, 100)),
    Sums = witness_otp_program:each(fun(N) -> N + lists:sum(persistent_term:get({?MODULE, key})) end, [1, 2, 3]),
    {Sums, persistent_term:get(none, default), persistent_term:erase({?MODULE, key}), catch persistent_term:get({?MODULE, key})}.

counters() ->
    Counters = counters:new(2, [write_concurrency]),
    _ = witness_otp_program:each(fun(N) -> counters:add(Counters, 1, N), counters:sub(Counters, 2, 1) end, lists:seq(1, 50)),
    {counters:get(Counters, 1), counters:get(Counters, 2), maps:get(size, counters:info(Counters))}.

atomics() ->
    Atomics = atomics:new(1, [{signed, false}]),
    Drawn = witness_otp_program:each(fun(_) -> atomics:add_get(Atomics, 1, 1) end, lists:seq(1, 30)),
    Is = atomics:compare_exchange(Atomics, 1, 30, 7),
    {lists:sort(Drawn) =:= lists:seq(1, 30), hd(Drawn), Is, atomics:exchange(Atomics, 1, 9)}.

dictionary() ->
    put(a, 1),
    Pids = [spawn(fun() -> put(n, N), receive stop -> ok end end) || N <- lists:seq(1, 3)],
    receive after 5 -> ok end,
    Seen = [element(2, process_info(Pid, dictionary)) || Pid <- Pids],
    [Pid ! stop || Pid <- Pids],
    {[proplists:get_value(n, D) || D <- Seen], get_keys(1), erase(a), get(a)}.
