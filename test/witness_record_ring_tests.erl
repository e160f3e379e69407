%% A recording that is limited keeps the last part of what each process did, and can be read as a recording.
-module(witness_record_ring_tests).

-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-define(PROCESSES, 4).

everything_is_kept_within_the_limit_test_() -> {timeout, 60, fun everything_is_kept_within_the_limit/0}.

everything_is_kept_within_the_limit() ->
    Lives = [{Id, life(Id)} || Id <- [1, 2]],
    Kept = kept(Lives, #{bytes => 1_000_000, time => infinity}, 3),
    ?assertEqual(maps:from_list(Lives), entries(Kept)),
    ?assertEqual([], early(Kept)).

life(Id) ->
    [{spawn, Id + 10}, {content, {hello, Id}}, {content, again}, {from, 1}, {contents, a}, {from, 1}, {contents, b}, timeout,
     {sent, self(), c}, {exit, normal}].

%% Wherever it is cut: a suffix of each process, and the same births.
what_is_kept_is_a_suffix_of_each_process_test_() ->
    {timeout, 120, fun() -> ?assert(proper:quickcheck(suffixes(), [{numtests, 60}, {to_file, user}])) end}.

suffixes() ->
    ?FORALL({Lives, Bytes, Chunk}, {vector(?PROCESSES, list(entry())), choose(1, 400), choose(1, 6)},
        begin
            Given = lists:enumerate(Lives),
            Kept = kept(Given, #{bytes => Bytes, time => infinity}, Chunk),
            Read = entries(Kept),
            Suffixes = [{Id, Entries, maps:get(Id, Read, [])} || {Id, Entries} <- Given,
                                                                 not lists:suffix(maps:get(Id, Read, []), Entries)],
            %% A process that is not early misses no entry.
            Whole = [Id || {Id, Entries} <- Given, not lists:member(Id, early(Kept)), maps:get(Id, Read, []) =/= Entries],
            Unknown = maps:keys(Read) -- [Id || {Id, _} <- Given],
            ?WHENFAIL(io:format("~p~n~p~n", [Suffixes, Unknown]), Suffixes =:= [] andalso Whole =:= [] andalso Unknown =:= [])
        end).

entry() ->
    oneof([{from, choose(1, ?PROCESSES)}, {content, message()}, timeout, {sent, main, message()}, {contents, message()},
           {spawn, choose(1, ?PROCESSES)}, {result, {ets, lookup, 2}, oneof([ok, {a, 1}])}]).

message() -> oneof([a, {b, 1}, "text"]).

what_is_too_old_goes_test_() -> {timeout, 60, fun what_is_too_old_goes/0}.

what_is_too_old_goes() ->
    R0 = witness_record_ring:new(#{bytes => 1_000_000, time => 100}, false, witness_event_wrapper:none()),
    [One, Two] = [[{data, subtrace(1, N, items(Part))}, {order, order(1, N, Part, none)}]
                  || {N, Part} <- [{0, [{content, a}]}, {1, [{content, b}]}]],
    R1 = witness_record_ring:add(Two, 200, witness_record_ring:add([birth(1) | One], 50, R0)),
    ?assertEqual(#{1 => [{content, b}]}, entries(read(R1))),
    ?assertEqual([1], early(read(R1))),
    R2 = witness_record_ring:add([], 1000, R1),
    ?assertEqual({0, #{}}, {witness_record_ring:size(R2), entries(read(R2))}).


%% Times are whole wherever the front was dropped, and the time of a birth stays with it.
times_stay_with_what_is_kept_test_() -> {timeout, 60, fun times_stay_with_what_is_kept/0}.

times_stay_with_what_is_kept() ->
    BornAt = {processes, witness_log_recording_process:encode({born_at, 1, 77})},
    Timed = fun(N) -> << <<(witness_log_recording_entry:encode(Entry))/binary>> || Entry <- [{time, N * 1000}, sent] >> end,
    Sent = fun(N) -> [{data, subtrace(1, N, item({main, N}))}, {order, subtrace(1, N, Timed(N))}] end,
    [begin
         R0 = witness_record_ring:new(#{bytes => Bytes, time => infinity}, false, witness_event_wrapper:none()),
         R1 = witness_record_ring:add([birth(1), BornAt], 0, R0),
         R2 = lists:foldl(fun(N, R) -> witness_record_ring:add(Sent(N), 1, R) end, R1, lists:seq(0, 9)),
         with_ring(R2, fun(Dir, {ok, #{processes := Processes}}) ->
             #{1 := Kept} = witness_recording_sample:times(Dir),
             ?assert(length(Kept) > 0),
             ?assert(Bytes > 1000 orelse length(Kept) < 10),
             ?assertEqual([{N * 1000, {sent, main, N}} || N <- lists:seq(10 - length(Kept), 9)], Kept),
             ?assertMatch([#{id := 1, time := 77}], Processes)
         end)
     end || Bytes <- [60, 100, 101, 102, 103, 150, 10_000]].

%% When its last entries are dropped, a process that has ended is forgotten, together with its births.
a_process_that_has_ended_is_forgotten_test_() -> {timeout, 60, fun a_process_that_has_ended_is_forgotten/0}.

a_process_that_has_ended_is_forgotten() ->
    R0 = witness_record_ring:new(#{bytes => 10, time => infinity}, false, witness_event_wrapper:none()),
    Ended = {processes, witness_log_recording_process:encode({ended, 1})},
    R1 = witness_record_ring:add([birth(1), birth(2), {data, data([{exit, a}])}, {order, order(1, 0, [{exit, a}], none)}], 2,
                                 witness_record_ring:add([Ended], 1, R0)),
    More = [{content, "a text that is longer than what is kept"}],
    %% It is known until all that it did has come, and has been dropped.
    {ok, #{processes := [#{id := 1, ended := true}, #{id := 2}]}} = read(R1),
    R2 = witness_record_ring:add([{data, subtrace(2, 0, items(More))}, {order, order(2, 0, More, none)}], 3,
                                 witness_record_ring:place_ends(R1)),
    R3 = witness_record_ring:add([], 4, R2),
    {ok, #{processes := Processes}} = read(R3),
    ?assertMatch([#{id := 2, early := true}], Processes).

%% --- helpers ---------------------------------------------------------------------

%% What a recorder hands over: data first, in pieces of its own, each whole.
kept(Lives, Limit, Chunk) ->
    R0 = witness_record_ring:new(Limit, false, witness_event_wrapper:none()),
    R1 = witness_record_ring:add([birth(Id) || {Id, _} <- Lives], 0, R0),
    Pieces = in_turn([pieces(Id, Entries, Chunk) || {Id, Entries} <- Lives]),
    R2 = lists:foldl(fun(Piece, R) -> witness_record_ring:add([Piece], 1, R) end, R1, Pieces),
    ?assert(witness_record_ring:size(R2) =< maps:get(bytes, Limit)),
    read(R2).

%% The next one of each list, in turn.
in_turn(Lists) ->
    case [List || List <- Lists, List =/= []] of
        [] -> [];
        Left -> [hd(List) || List <- Left] ++ in_turn([tl(List) || List <- Left])
    end.

%% Data comes up to one chunk before its entries.
pieces(Id, Entries, Chunk) ->
    Data = [{data, subtrace(Id, N, items(Part))}
            || {N, Part} <- lists:enumerate(0, [P || P <- chunks(Entries, Chunk + 1), items(P) =/= <<>>])],
    {Order, _} = lists:mapfoldl(fun({N, Part}, Last) -> {{order, order(Id, N, Part, Last)}, last(Part, Last)} end, none,
                                lists:enumerate(0, chunks(Entries, Chunk))),
    mixed(Data, Order).

%% Never less than half of the data before the entries.
mixed([A, B | Data], [Entries | Order]) -> [A, B, Entries | mixed(Data, Order)];
mixed(Data, Order) -> Data ++ Order.

chunks([], _) -> [];
chunks(Entries, Size) ->
    {Part, Rest} = lists:split(min(Size, length(Entries)), Entries),
    [Part | chunks(Rest, Size)].

order(Id, Number, Entries, Last) -> subtrace(Id, Number, encoded(Entries, Last)).

encoded([{from, Id} | Entries], Id) -> [witness_log_recording_entry:encode({again, 1}) | encoded(Entries, Id)];
encoded([{from, Id} | Entries], _) -> [witness_log_recording_entry:encode({from, Id, 1}) | encoded(Entries, Id)];
encoded([{content, _}, {content, _} | Entries], Last) ->
    [witness_log_recording_entry:encode({content, 2}) | encoded(Entries, Last)];
encoded([Entry | Entries], Last) ->
    [witness_log_recording_entry:encode(case Entry of
        {content, _} -> {content, 1};
        timeout -> {timeout, 1};
        {sent, _, _} -> sent;
        {contents, _} -> contents;
        {exit, _} -> exit;
        {result, MFA, ok} -> {result, maps:get(MFA, witness_recording_sample:calls()), {value, ok}};
        {result, MFA, _} -> {result, maps:get(MFA, witness_recording_sample:calls()), data};
        {spawn, _} -> Entry
    end) | encoded(Entries, Last)];
encoded([], _) -> [].

last(Entries, Last) -> lists:foldl(fun({from, Id}, _) -> Id; (_, Id) -> Id end, Last, Entries).

data(Entries) -> subtrace(1, 0, items(Entries)).

items(Entries) -> iolist_to_binary([item(Term) || Entry <- Entries, Term <- terms(Entry)]).

terms({content, Term}) -> [Term];
terms({contents, Term}) -> [Term];
terms({exit, Term}) -> [Term];
terms({sent, To, Term}) -> [{To, Term}];
terms({result, _, ok}) -> [];
terms({result, _, Term}) -> [Term];
terms(_) -> [].

item(Term) ->
    External = term_to_binary(Term),
    [witness_log_recording_number:leb(byte_size(External)), External].

subtrace(Id, Number, Bytes) ->
    iolist_to_binary([[witness_log_recording_number:leb(N) || N <- [Id, Number, iolist_size(Bytes)]], Bytes]).

birth(Id) ->
    Birth = #{id => Id, parent => 0, place => 0, pid => list_to_pid(lists:concat(["<0.", Id + 1000, ".0>"])),
              signature => {m, f, []}},
    {processes, witness_log_recording_process:encode({birth, Birth})}.

read(Ring) -> with_ring(Ring, fun(_, Read) -> Read end).

with_ring(Ring, Fun) ->
    Dir = witness_recording_sample:folder("ring"),
    {ok, _} = witness_record_writer:write(Dir, witness_recording_sample:header(false), witness_record_ring:parts(Ring),
                                          #{modules => [], ended => running}),
    try
        {ok, R} = witness_log_recording:open(Dir),
        #{complete := true, ended := finished} = witness_log_recording:info(R),
        {ok, Processes} = witness_log_recording:processes(R),
        Fun(Dir, {ok, #{processes => Processes, entries => maps:from_list([begin
            {ok, Entries} = witness_recording_sample:entries(Id, R),
            {Id, Entries}
        end || Id <- witness_log_recording:ids(R)])}})
    after
        witness_recording_sample:delete(Dir)
    end.

entries({ok, #{entries := Entries}}) -> Entries.

early({ok, #{processes := Processes}}) -> [Id || #{id := Id, early := true} <- Processes].
