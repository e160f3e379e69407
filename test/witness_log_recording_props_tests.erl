%% Recordings are read back as they were written, whatever the sizes of their parts and blocks. However they are cut, what
%% is read is a prefix.
-module(witness_log_recording_props_tests).
-include_lib("proper/include/proper.hrl").
-include_lib("eunit/include/eunit.hrl").

-export([programs/0]).

a_recording_is_read_back_test_() ->
    {timeout, 120, ?_assert(check(?FORALL({Processes, Sizes, Seed}, {programs(), sizes(), seed()}, begin
        with_recording(Processes, Sizes, Seed, fun(Dir) -> as_written(Processes, Sizes, Dir) end)
    end)))}.

%% A prefix of the parts that a recorder hands over is a recording that was cut there.
a_prefix_of_what_was_handed_over_is_a_prefix_for_each_process_test_() ->
    {timeout, 120, ?_assert(check(?FORALL({Processes, Sizes, Seed, Kept}, {programs(), sizes(), seed(), range(0, 100)}, begin
        _ = rand:seed(exsss, Seed),
        Parts = witness_recording_sample:parts(Processes, maps:get(part, Sizes), maps:get(full, Sizes)),
        Prefix = lists:sublist(Parts, Kept * length(Parts) div 100),
        with_parts(Prefix, Sizes#{'end' => false}, fun(Dir) ->
            {ok, #{entries := Entries, info := #{complete := false}}} = witness_recording_sample:read(Dir),
            are_prefixes(Entries, Processes) andalso
                (Kept < 100 orelse Entries =:= witness_recording_sample:plain(Processes))
        end)
    end)))}.

%% Sub-traces of a process may be in any order.
parts_in_any_order_are_put_together_test_() ->
    {timeout, 120, ?_assert(check(?FORALL({Processes, Sizes, Seed}, {programs(), sizes(), seed()}, begin
        _ = rand:seed(exsss, Seed),
        Parts = witness_recording_sample:parts(Processes, maps:get(part, Sizes), maps:get(full, Sizes)),
        Mixed = [Part || {_, Part} <- lists:sort([{rand:uniform(), Part} || Part <- Parts])],
        with_parts(Mixed, Sizes, fun(Dir) -> as_written(Processes, Sizes, Dir) end)
    end)))}.

demand_and_number_are_those_of_the_entries_test_() ->
    {timeout, 120, ?_assert(check(?FORALL({Processes, Sizes, Seed}, {programs(), sizes(), seed()}, begin
        with_recording(Processes, Sizes, Seed, fun(Dir) ->
            {ok, R} = witness_log_recording:open(Dir),
            lists:all(fun({#{id := Id}, Entries}) ->
                Froms = [From || {from, From} <- Entries],
                Demand = #{From => length([F || F <- Froms, F =:= From]) || From <- Froms},
                {ok, Demand} =:= witness_log_recording:demand(Id, R) andalso
                    {ok, length(Entries)} =:= witness_log_recording:entries(Id, R)
            end, Processes)
        end)
    end)))}.

%% An entry has the last time in front of it. Places in the order of calls do not matter for that, nor where parts and blocks end.
times_are_read_back_test_() ->
    {timeout, 120, ?_assert(check(?FORALL({Processes, Sizes, Seed, Kept}, {timed_programs(), sizes(), seed(), range(0, 100)}, begin
        _ = rand:seed(exsss, Seed),
        Parts = witness_recording_sample:parts(Processes, maps:get(part, Sizes), maps:get(full, Sizes)),
        Expected = #{Id => with_times(Entries, undefined) || {#{id := Id}, [_ | _] = Entries} <- Processes},
        Births = [{Id, Time} || {#{id := Id, time := Time}, _} <- Processes],
        with_parts(Parts, Sizes, fun(Dir) ->
            {ok, #{entries := Entries, processes := Read}} = witness_recording_sample:read(Dir),
            Expected =:= witness_recording_sample:times(Dir) andalso Entries =:= witness_recording_sample:plain(Processes)
                andalso Births =:= [{Id, Time} || #{id := Id, time := Time} <- Read]
        end) andalso
            with_parts(lists:sublist(Parts, Kept * length(Parts) div 100), Sizes#{'end' => false}, fun(Dir) ->
                lists:all(fun({Id, Read}) -> lists:prefix(Read, maps:get(Id, Expected)) end,
                          maps:to_list(witness_recording_sample:times(Dir)))
            end)
    end)))}.

with_times([{timed, Time, Entry} | Entries], _) -> with_times([Entry | Entries], Time);
with_times([Entry | Entries], Time) -> [{Time, witness_recording_sample:bare(Entry)} | with_times(Entries, Time)];
with_times([], _) -> [].

terms_are_read_as_by_the_vm_test_() ->
    {timeout, 120, ?_assert(check(?FORALL(Term, message(), begin
        {ok, Term} =:= witness_log_recording_term:decode(term_to_binary(Term), witness_log_atoms:new(1))
    end)))}.

damaged_terms_are_terms_or_refused_test_() ->
    {timeout, 120, ?_assert(check(?FORALL({Term, Place, Byte}, {message(), non_neg_integer(), byte()}, begin
        Bytes = term_to_binary(Term),
        <<Before:(Place rem byte_size(Bytes))/binary, _, After/binary>> = Bytes,
        case witness_log_recording_term:decode(<<Before/binary, Byte, After/binary>>, witness_log_atoms:new(1000)) of
            {ok, _} -> true;
            {refused, What} -> is_list(unicode:characters_to_list(What))
        end
    end)))}.

ascending_numbers_are_read_back_test_() ->
    {timeout, 120, ?_assert(check(?FORALL(Given, list(range(0, 1 bsl 40)), begin
        Numbers = lists:usort(Given),
        {ok, Numbers} =:= witness_log_recording_number:read_ascending(witness_log_recording_number:ascending(Numbers)) andalso
            malformed =:= witness_log_recording_number:read_ascending(<<0>>) andalso
            malformed =:= witness_log_recording_number:read_ascending(<<1:1, 0:7>>)
    end)))}.

numbers_are_read_back_test_() ->
    Number = ?LET(Bits, range(0, 64), range(0, (1 bsl Bits) - 1)),
    {timeout, 120, ?_assert(check(?FORALL({N, Rest}, {Number, binary()}, begin
        Bytes = witness_log_recording_number:leb(N),
        Signed = N - (1 bsl 63),
        {N, Rest} =:= witness_log_recording_number:read(<<Bytes/binary, Rest/binary>>) andalso
            more =:= witness_log_recording_number:read(binary:part(Bytes, 0, byte_size(Bytes) - 1)) andalso
            Signed =:= witness_log_recording_number:unzigzag(witness_log_recording_number:zigzag(Signed))
    end)))}.

%% --- what must hold --------------------------------------------------------------

as_written(Processes, #{indexed := Indexed}, Dir) ->
    {ok, #{entries := Entries, processes := Read, info := Info}} = witness_recording_sample:read(Dir),
    Expected = [Birth#{called => Signature, ended => lists:keymember(exit, 1, [E || E <- Es, is_tuple(E)])}
                || {#{signature := Signature} = Birth, Es} <- Processes],
    Plain = witness_recording_sample:plain(Processes),
    {ok, #{entries := Placed}} = witness_recording_sample:read(Dir, #{ordered => true}),
    ?WHENFAIL(io:format("~tp~n~tp~n~tp~n~tp~n", [Plain, Entries, Read, Info]),
              Entries =:= Plain andalso Read =:= Expected andalso
                  Placed =:= #{Id => Own || {#{id := Id}, [_ | _] = Own} <- Processes} andalso
                  maps:get(complete, Info) andalso maps:get(indexed, Info) =:= Indexed).

are_prefixes(Entries, Processes) ->
    Whole = witness_recording_sample:plain(Processes),
    lists:all(fun({Id, Read}) -> lists:prefix(Read, maps:get(Id, Whole)) end, maps:to_list(Entries)).

with_recording(Processes, Sizes, Seed, Fun) ->
    _ = rand:seed(exsss, Seed),
    with_parts(witness_recording_sample:parts(Processes, maps:get(part, Sizes), maps:get(full, Sizes)), Sizes, Fun).

with_parts(Parts, #{block := Block, compress := Compress, full := Full, indexed := Indexed} = Sizes, Fun) ->
    Dir = witness_recording_sample:folder("props"),
    try
        Options = #{header => witness_recording_sample:header(Full), block => Block, compress => Compress, index => Indexed,
                    'end' => maps:get('end', Sizes, true)},
        ok = witness_recording_sample:write(Dir, [{Kind, iolist_to_binary(Part)} || {Kind, Part} <- Parts], Options),
        Fun(Dir)
    after
        witness_recording_sample:delete(Dir)
    end.

check(Property) -> proper:quickcheck(Property, [{numtests, 100}, {to_file, user}, nocolors]).

%% --- recordings ------------------------------------------------------------------

seed() -> non_neg_integer().

sizes() ->
    ?LET({Part, Block, Compress, Full, Indexed}, {oneof([1, 3, 20, 1000]), oneof([1, 100, 5000]), boolean(), boolean(), boolean()},
         #{part => Part, block => Block, compress => Compress, full => Full, indexed => Indexed}).

programs() ->
    ?LET(Lists, resize(12, list(list(entry()))), [process(Id, Entries) || {Id, Entries} <- lists:enumerate(Lists)]).

timed_programs() ->
    ?LET(Lists, resize(12, list({list(oneof([entry(), {timed, moment(), entry()}])), moment()})),
         [begin
              {Birth, Did} = process(Id, Entries),
              {Birth#{time => Time}, Did}
          end || {Id, {Entries, Time}} <- lists:enumerate(Lists)]).

moment() -> oneof([range(0, 40), range(0, 1 bsl 40), range(0, (1 bsl 64) - 1)]).

process(Id, Entries) ->
    {#{id => Id, parent => Id - 1, place => Id rem 3, pid => self(), signature => {m, loop, [Id, ~"x"]}}, Entries}.

entry() ->
    frequency([{5, {from, id()}}, {2, timeout}, {2, {content, message()}}, {1, {spawn, id()}},
               {3, {result, call(), frequency([{1, short()}, {1, message()}])}}, {1, {raise, call(), error, message()}},
               {1, {named, oneof([0, id()])}}, {1, {hash, binary(8)}}, {1, {contents, message()}},
               {1, {sent, message(), message()}}, {1, waited}, {1, {exit, message()}}, {2, ordered()}]).

ordered() ->
    ?LET({Begin, Length, Entry}, {oneof([range(0, 300), range(0, 1 bsl 60)]), oneof([0, 1, range(0, 1 bsl 60)]),
                                  oneof([{result, call(), oneof([short(), message()])}, {raise, call(), error, message()}])},
         {ordered, Begin, Begin + Length, Entry}).

id() -> oneof([range(1, 5), range(25, 40), range(1, 1 bsl 40)]).
call() -> oneof(maps:keys(witness_recording_sample:calls())).
short() -> oneof([true, false, undefined, ok, [], error, infinity, none, integer(), range(-(1 bsl 63), (1 bsl 63) - 1), 1 bsl 64]).

message() ->
    oneof([term(), self(), make_ref(), fun lists:map/2, fun(X) -> X end, 1.5, <<5:3>>, #{a => 1, [2] => ~"b"},
           lists:duplicate(300, $x), list_to_tuple(lists:duplicate(300, 1)), lists:last(erlang:ports()),
           binary:copy(~"y", 500), 1 bsl 3000, 'ünïcode']).
