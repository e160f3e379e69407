%% Recordings that are damaged, cut, strange or made to do harm.
-module(witness_log_recording_tests).

-include_lib("eunit/include/eunit.hrl").
-include_lib("kernel/include/file.hrl").

-define(HEAD, 22).

%% --- damage ----------------------------------------------------------------------

a_byte_that_is_flipped_is_an_error_that_says_where_test_() ->
    [{timeout, 120, {atom_to_list(Kind), fun() -> flipped(Kind) end}} || Kind <- kinds()].

flipped(Kind) ->
    with_sample(#{}, fun(Dir) ->
        Name = witness_log_recording_file:name(Dir, Kind),
        {ok, Bytes} = file:read_file(Name),
        {ok, _} = witness_recording_sample:read(Dir),
        Read = fun(At, Flip) ->
            <<Front:At/binary, Byte, Back/binary>> = Bytes,
            ok = file:write_file(Name, [Front, Byte bxor Flip, Back]),
            {error, {witness_log_recording, #{file := File, offset := Offset}} = Error} = read(Dir, {Kind, At, Flip}),
            ?assertEqual(Name, File),
            ?assert(Offset =< At),
            ?assertNotEqual(nomatch, string:find(witness:format_error(Error), Name))
        end,
        %% The first error loads modules, which have atoms.
        _ = Read(0, 1),
        Before = erlang:system_info(atom_count),
        _ = [Read(At, Flip) || At <- lists:seq(0, byte_size(Bytes) - 1), Flip <- [1, 16#80, 16#FF]],
        ?assertEqual(Before, erlang:system_info(atom_count))
    end).

a_file_that_was_cut_is_read_up_to_its_last_whole_block_test_() ->
    [{timeout, 120, {atom_to_list(Kind), fun() -> cut(Kind) end}} || Kind <- [order, data, processes]].

cut(Kind) ->
    with_sample(#{block => 16}, fun(Dir) ->
        {ok, #{entries := Whole, processes := Births}} = witness_recording_sample:read(Dir),
        {Name, Bytes} = contents(Dir, Kind),
        Counts = [begin
             ok = file:write_file(Name, binary:part(Bytes, 0, Size)),
             {ok, #{entries := Read, processes := Known, info := Info}} = read(Dir, {Kind, Size}),
             ?assertMatch(#{complete := false, ended := finished, cut := [Kind]}, Info),
             [?assert(lists:prefix(Entries, maps:get(Id, Whole))) || Id := Entries <- Read],
             ?assert(lists:prefix([P#{ended := false} || P <- Known], [P#{ended := false} || P <- Births])),
             length(Known) + lists:sum([length(Entries) || _ := Entries <- Read])
         end || Size <- lists:seq(0, byte_size(Bytes) - 1)],
        %% The longer, the more, and never all of it.
        ?assertEqual(lists:sort(Counts), Counts),
        ?assert(length(lists:usort(Counts)) > 2),
        ?assert(lists:last(Counts) < length(Births) + lists:sum([length(Entries) || _ := Entries <- Whole]))
    end).

without_its_index_or_its_end_all_is_read_test_() ->
    {timeout, 120, fun() -> with_sample(#{}, fun(Dir) ->
        {ok, #{entries := Whole}} = witness_recording_sample:read(Dir),
        [begin
             {Name, Bytes} = contents(Dir, Kind),
             [begin
                  ok = file:write_file(Name, binary:part(Bytes, 0, Size)),
                  {ok, #{entries := Read, info := Info}} = read(Dir, {Kind, Size}),
                  ?assertEqual(Whole, Read),
                  #{complete := Complete, indexed := Indexed} = Info,
                  ?assertEqual({Kind =:= index, Kind =:= modules}, {Complete, Indexed})
              end || Size <- lists:seq(0, byte_size(Bytes) - 1)],
             ok = file:delete(Name),
             {ok, #{entries := Again}} = read(Dir, Kind),
             ?assertEqual(Whole, Again),
             ok = file:write_file(Name, Bytes)
         end || Kind <- [index, modules]]
    end) end}.

without_a_header_there_is_no_recording_test() ->
    with_sample(#{}, fun(Dir) ->
        {Name, Bytes} = contents(Dir, header),
        [begin
             ok = file:write_file(Name, binary:part(Bytes, 0, Size)),
             ?assertMatch({error, {witness_log_recording, #{file := Name, what := cut}}}, witness_log_recording:open(Dir))
         end || Size <- lists:seq(0, byte_size(Bytes) - 1)],
        ok = file:delete(Name),
        ?assertMatch({error, {witness_log_recording, #{file := Name, what := {posix, enoent}}}}, witness_log_recording:open(Dir))
    end).

what_stands_behind_the_end_is_an_error_test() ->
    with_sample(#{}, fun(Dir) ->
        {Name, Bytes} = contents(Dir, order),
        ok = file:write_file(Name, [Bytes, witness_log_recording_file:block(~"x", none)]),
        Size = byte_size(Bytes),
        ?assertMatch({error, {witness_log_recording, #{file := Name, offset := Size}}}, witness_log_recording:open(Dir))
    end).

files_of_two_recordings_are_not_mixed_test() ->
    with_sample(#{}, fun(Dir) ->
        [begin
             {Name, Bytes} = contents(Dir, Kind),
             <<_:?HEAD/binary, Blocks/binary>> = Bytes,
             ok = file:write_file(Name, [witness_log_recording_file:head(Kind, ~"another0"), Blocks]),
             ?assertMatch({error, {witness_log_recording, #{file := Name, offset := 0}}}, read(Dir, Kind)),
             ok = file:write_file(Name, Bytes)
         end || Kind <- kinds(), Kind =/= header]
    end).

another_version_is_named_test() ->
    with_sample(#{}, fun(Dir) ->
        {Name, <<Magic:8/binary, 2, Rest:9/binary, _:4/binary, Blocks/binary>>} = contents(Dir, header),
        Head = <<Magic/binary, 7, Rest/binary>>,
        ok = file:write_file(Name, [Head, <<(erlang:crc32(Head)):32/little>>, Blocks]),
        {error, Error} = witness_log_recording:open(Dir),
        ?assertMatch({_, #{what := {version, 7}}}, Error),
        ?assertNotEqual(nomatch, string:find(witness:format_error(Error), "version 7"))
    end).

%% It has no places of calls in their order.
the_first_version_is_read_test() ->
    with_sample(#{}, fun(Dir) ->
        {ok, #{entries := Entries}} = witness_recording_sample:read(Dir),
        [begin
             {Name, <<Magic:8/binary, 2, Rest:9/binary, _:4/binary, Blocks/binary>>} = contents(Dir, Kind),
             Head = <<Magic/binary, 1, Rest/binary>>,
             ok = file:write_file(Name, [Head, <<(erlang:crc32(Head)):32/little>>, Blocks])
         end || Kind <- kinds()],
        ?assertMatch({ok, #{entries := Entries}}, witness_recording_sample:read(Dir))
    end).

%% Only a recording with times has the last version, so readers that know no times refuse it, and read all others.
recordings_with_times_have_a_version_of_their_own_test() ->
    [begin
         Dir = witness_recording_sample:folder("version"),
         {ok, _} = witness_record_writer:write(Dir, #{options => Options, calls => #{}}, [], #{modules => [], ended => running}),
         [?assertMatch({Kind, {_, <<_:8/binary, Version, _/binary>>}}, {Kind, contents(Dir, Kind)}) || Kind <- kinds()],
         {ok, R} = witness_log_recording:open(Dir),
         ?assertEqual(Version =:= 3, witness_log_recording:has_times(R)),
         witness_recording_sample:delete(Dir)
     end || {Version, Options} <- [{2, #{contents => true}}, {3, #{contents => true, times => true}}]].

%% The recording was cut between the two.
a_time_without_an_entry_is_left_out_test() ->
    Time = witness_log_recording_entry:encode({time, 300}),
    Timeout = witness_log_recording_entry:encode({timeout, 1}),
    [with_parts([{order, <<1, 0, (byte_size(Bytes)), Bytes/binary>>}], #{}, fun(Dir) ->
         ?assertMatch({ok, #{entries := #{1 := [timeout]}}}, witness_recording_sample:read(Dir)),
         ?assertEqual(#{1 => [{300, timeout}]}, witness_recording_sample:times(Dir))
     end) || Bytes <- [<<Time/binary, Timeout/binary, Time/binary>>, <<Time/binary, Time/binary, Timeout/binary>>]].

%% The process was killed, or the recording ended, before the call had a result.
a_place_without_a_call_is_left_out_test() ->
    Place = witness_log_recording_entry:encode({ordered, 4, 5}),
    Timeout = witness_log_recording_entry:encode({timeout, 1}),
    [with_parts([{order, <<1, 0, (byte_size(Bytes)), Bytes/binary>>}], #{}, fun(Dir) ->
         ?assertMatch({ok, #{entries := #{1 := Read}}}, witness_recording_sample:read(Dir, #{ordered => true}))
     end) || {Bytes, Read} <- [{<<Timeout/binary, Place/binary>>, [timeout]},
                               {<<Place/binary, Timeout/binary>>, [timeout]},
                               {<<Place/binary, Place/binary, Timeout/binary, Place/binary>>, [timeout]}]].

something_else_is_no_recording_test() ->
    with_sample(#{}, fun(Dir) ->
        ok = file:write_file(witness_log_recording_file:name(Dir, header), ~"fork(<0.1.0>,<0.2.0>,{m,f,[]})\n"),
        ?assertMatch({error, {witness_log_recording, #{offset := 0, what := magic}}}, witness_log_recording:open(Dir)),
        ok = file:delete(witness_log_recording_file:name(Dir, header)),
        ok = file:make_dir(witness_log_recording_file:name(Dir, header)),
        ?assertMatch({error, {witness_log_recording, #{what := {posix, eftype}}}}, witness_log_recording:open(Dir))
    end).

%% --- what is made to do harm -----------------------------------------------------

%% Checksums are right; contents are anything.
contents_that_are_anything_are_entries_or_an_error_test_() ->
    [{timeout, 120, {atom_to_list(Kind), fun() -> with_sample(#{}, fun(Dir) -> mutated(Kind, Dir) end) end}} || Kind <- kinds()].

mutated(Kind, Dir) ->
    _ = rand:seed(exsss, 7),
    {Name, <<Head:?HEAD/binary, Blocks/binary>>} = contents(Dir, Kind),
    Contents = unblocked(Blocks),
    Results = [begin
        {Before, [Block | After]} = lists:split(rand:uniform(length(Contents)) - 1, Contents),
        ok = file:write_file(Name, [Head | [witness_log_recording_file:block(B, none) || B <- Before ++ [mutated(Block) | After]]]),
        case read(Dir, {Kind, N}) of
            {ok, _} -> ok;
            {error, {witness_log_recording, #{offset := _}}} -> error
        end
    end || N <- lists:seq(1, 300)],
    ?assert(lists:member(error, Results)).

unblocked(<<Length:32/little, Length:32/little, 0, _:8/binary, Block:Length/binary, Rest/binary>>) -> [Block | unblocked(Rest)];
unblocked(<<>>) -> [].

mutated(Block) ->
    lists:foldl(fun(_, B) ->
        At = rand:uniform(byte_size(B)) - 1,
        <<Before:At/binary, _, After/binary>> = B,
        <<Before/binary, (rand:uniform(256) - 1), After/binary>>
    end, Block, lists:seq(1, rand:uniform(3))).

atoms_of_a_recording_are_bounded_test() ->
    Names = [<<"witness_never_", (integer_to_binary(N))/binary>> || N <- lists:seq(1, 20)],
    Message = <<131, 108, 20:32, (<< <<119, (byte_size(Name)), Name/binary>> || Name <- Names >>)/binary, 106>>,
    with_data(Message, fun(Dir) ->
        {ok, R} = witness_log_recording:open(Dir, #{max_atoms => 10}),
        Before = erlang:system_info(atom_count),
        {error, {witness_log_recording, #{file := File, offset := ?HEAD}} = Error} = witness_recording_sample:entries(1, R),
        ?assertEqual(witness_log_recording_file:name(Dir, data), File),
        ?assertNotEqual(nomatch, string:find(witness:format_error(Error), "more than 10 atoms")),
        ?assertEqual(10, erlang:system_info(atom_count) - Before),
        {ok, More} = witness_log_recording:open(Dir, #{max_atoms => 20}),
        {ok, [{content, Atoms}]} = witness_recording_sample:entries(1, More),
        ?assertEqual(Names, [atom_to_binary(Atom) || Atom <- Atoms])
    end).

%% --- rows for signatures -----------------------------------------------------------

rows_of_a_recording_give_signatures_test() ->
    Birth = fun(Id, Raw) ->
        Item = {birth, #{id => Id, parent => 0, place => Id - 1, pid => self(), signature => Raw}},
        {processes, witness_log_recording_process:encode(Item)}
    end,
    Parts = [Birth(1, {library, start, [{author, 3}]}), Birth(2, {other, start, [author]}), Birth(3, {library, start, 1})],
    Called = fun(Dir, Options) ->
        {ok, R} = witness_log_recording:open(Dir, Options),
        {ok, Processes} = witness_log_recording:processes(R),
        [Of || #{called := Of} <- Processes]
    end,
    Row = {library, start, [{module, args}]},
    Other = {other, start, [module]},
    with_rows([Row], Parts, fun(Dir) ->
        ?assertEqual([{author, start, [3]}, {other, start, [author]}, {library, start, 1}], Called(Dir, #{})),
        ?assertEqual([{author, start, [3]}, {author, start, [author]}, {library, start, 1}], Called(Dir, #{signatures => [Other]}))
    end),
    with_parts(Parts, #{}, fun(Dir) ->
        ?assertEqual([{library, start, [{author, 3}]}, {other, start, [author]}, {library, start, 1}], Called(Dir, #{}))
    end).

wrong_rows_of_a_recording_are_damage_test_() ->
    [fun() ->
         with_rows(Rows, [], fun(Dir) ->
             {error, {witness_log_recording, #{file := File, offset := ?HEAD}} = Error} = witness_log_recording:open(Dir),
             ?assertEqual(witness_log_recording_file:name(Dir, header), File),
             Text = unicode:characters_to_binary(witness:format_error(Error)),
             ?assertMatch({_, _}, binary:match(Text, <<"its rows for signatures: ", Expected/binary>>), Text)
         end)
     end || {Rows, Expected} <- [{wrong, ~"a list of rows is expected"}, {[{m, f, [x]}], ~"{m,f,[x]}: no argument says"},
                                 {[{m, f, [module]} | x], ~"a list of rows is expected"},
                                 {[{m, f, [{module, lists:seq(1, 1000)}]}], ~"{m,f,[{module,[1,2"}]].

with_rows(Rows, Parts, Fun) ->
    with_parts(Parts, #{header => (witness_recording_sample:header(false))#{signatures => Rows}}, Fun).

functions_of_a_recording_are_bounded_test() ->
    Fun = term_to_binary(fun(X) -> X + byte_size(~"f") end),
    <<131, 112, Size:32, Arity, Uniq:16/binary, Rest/binary>> = Fun,
    Others = << <<112, Size:32, Arity, (erlang:md5(<<Uniq/binary, N>>))/binary, Rest/binary>> || N <- lists:seq(1, 20) >>,
    with_data(<<131, 108, 20:32, Others/binary, 106>>, fun(Dir) ->
        {ok, R} = witness_log_recording:open(Dir, #{max_atoms => 10}),
        ?assertMatch({error, {witness_log_recording, #{offset := ?HEAD}}}, witness_recording_sample:entries(1, R))
    end).

%% It is the recorded VM that had the module; they count with the atoms.
functions_of_modules_that_are_not_there_test() ->
    Unique = integer_to_binary(erlang:unique_integer([positive])),
    Named = fun(N) ->
        Name = <<Unique/binary, (integer_to_binary(N))/binary>>,
        <<113, 119, (byte_size(Name)), Name/binary, 119, (byte_size(Name)), Name/binary, 97, 2>>
    end,
    {ok, Fun} = decode(<<131, (Named(1))/binary>>),
    ?assertEqual({arity, 2}, erlang:fun_info(Fun, arity)),
    ?assertEqual({ok, [Fun, Fun]}, decode(<<131, 108, 2:32, (Named(1))/binary, (Named(1))/binary, 106>>)),
    Many = << <<(Named(N))/binary>> || N <- lists:seq(2, 12) >>,
    ?assertMatch({refused, _}, decode(<<131, 108, 11:32, Many/binary, 106>>)).

terms_that_no_vm_writes_are_refused_test_() ->
    Deep = <<131, (binary:copy(<<104, 1>>, 100_000))/binary, 106>>,
    [?_assertMatch({ok, _}, decode(Deep)) |
     [{Name, ?_assertMatch({refused, _}, decode(Bytes))} || {Name, Bytes} <- [
        {"nothing", <<>>},
        {"no version", <<97, 1>>},
        {"compressed, which may expand to anything", <<131, 80, 1_000_000_000:32, (zlib:compress(<<106>>))/binary>>},
        {"a cache of atoms", <<131, 82, 0>>},
        {"an atom by its place", <<131, 75, 0, 0, 1>>},
        {"more than a term", <<131, 106, 106>>},
        {"a list that is longer than it is", <<131, 108, 16#FFFFFFFF:32, 106, 106>>},
        {"a tuple that is larger than it is", <<131, 105, 16#FFFFFFFF:32, 106>>},
        {"a map with a key twice", <<131, 116, 2:32, 97, 1, 106, 97, 1, 106>>},
        {"a number that is none", <<131, 70, 16#7FF0000000000000:64>>},
        {"a name that is no text", <<131, 119, 2, 16#FF, 16#FE>>},
        {"a process of no node", <<131, 88, 97, 1, 0:96>>},
        {"a function without its end", <<131, 112, 100:32, 1>>},
        {"a function of no module", <<131, 113, 97, 1, 97, 1, 97, 1>>}]]].

decode(Bytes) -> witness_log_recording_term:decode(Bytes, witness_log_atoms:new(10)).

%% A gigabyte of zeros in a megabyte. Its head tells less, and its checksums are right.
a_block_does_not_expand_beyond_what_it_tells_test_() ->
    {timeout, 60, fun() -> with_sample(#{}, fun(Dir) ->
        {Name, <<Head:?HEAD/binary, _/binary>>} = contents(Dir, order),
        Z = zlib:open(),
        ok = zlib:deflateInit(Z),
        Zeros = binary:copy(<<0>>, 1_000_000),
        Stored = iolist_to_binary([[zlib:deflate(Z, Zeros) || _ <- lists:seq(1, 1000)], zlib:deflate(Z, [], finish)]),
        Block = <<(2 * byte_size(Stored)):32/little, (byte_size(Stored)):32/little, 1, (erlang:crc32(Stored)):32/little>>,
        ok = file:write_file(Name, [Head, Block, <<(erlang:crc32(Block)):32/little>>, Stored]),
        [ok = file:delete(witness_log_recording_file:name(Dir, Kind)) || Kind <- [index, modules]],
        {_, Most} = with_limit(50_000_000, fun() ->
            ?assertMatch({error, {witness_log_recording, #{offset := ?HEAD, what := block}}}, witness_log_recording:open(Dir))
        end),
        ?assert(Most < 50_000_000)
    end) end}.

a_block_that_tells_to_be_huge_is_refused_test() ->
    with_sample(#{}, fun(Dir) ->
        {Name, <<Head:?HEAD/binary, _/binary>>} = contents(Dir, order),
        Block = <<16#FFFFFFFF:32/little, 1:32/little, 1, (erlang:crc32(~"x")):32/little>>,
        ok = file:write_file(Name, [Head, Block, <<(erlang:crc32(Block)):32/little>>, ~"x"]),
        [ok = file:delete(witness_log_recording_file:name(Dir, Kind)) || Kind <- [index, modules]],
        ?assertMatch({error, {witness_log_recording, #{offset := ?HEAD, what := {block, too_large}}}},
                     witness_log_recording:open(Dir))
    end).

%% An item that tells to be larger than all that there is.
an_item_that_is_not_there_takes_no_memory_test() ->
    Bytes = [witness_log_recording_number:leb(1 bsl 62), 1],
    Part = iolist_to_binary([1, 0, witness_log_recording_number:leb(iolist_size(Bytes)), Bytes]),
    with_parts([{order, <<1, 0, 1, 2:3, 1:5>>}, {data, Part}], #{}, fun(Dir) ->
        {ok, R} = witness_log_recording:open(Dir),
        ?assertMatch({error, {witness_log_recording, #{offset := ?HEAD}}}, witness_recording_sample:entries(1, R))
    end).

%% --- reading ---------------------------------------------------------------------

%% Ten million messages are folded over in the memory of some blocks.
memory_is_bounded_test_() ->
    {timeout, 240, fun() ->
        Order = << <<(witness_log_recording_entry:encode({from, 1 + N rem 5, 1}))/binary>> || N <- lists:seq(1, 4000) >>,
        Size = byte_size(Order),
        Parts = [{order, iolist_to_binary([Id, witness_log_recording_number:leb(N),
                                           witness_log_recording_number:leb(Size), Order])}
                 || N <- lists:seq(0, 249), Id <- lists:seq(1, 10)],
        with_parts(Parts, #{block => 65_536, compress => true}, fun(Dir) ->
            {Count, Most} = with_limit(30_000_000, fun() ->
                {ok, R} = witness_log_recording:open(Dir),
                lists:sum([begin
                               {ok, N} = witness_log_recording:fold(fun({from, _}, N) -> N + 1 end, 0, Id, R),
                               N
                           end || Id <- witness_log_recording:ids(R)])
            end),
            ?assertEqual(10_000_000, Count),
            ?assert(Most < 30_000_000)
        end)
    end}.

%% A block has some kilobytes of the file, and its births would take a hundred megabytes together.
births_of_a_block_are_read_one_at_a_time_test_() ->
    {timeout, 240, fun() ->
        Birth = witness_log_recording_process:encode({birth, (birth(1))#{signature := {sample, loop, [lists:duplicate(60, [])]}}}),
        with_parts([{processes, binary:copy(Birth, 100_000)}], #{block => 65_536, compress => true}, fun(Dir) ->
            {Read, Most} = with_limit(50_000_000, fun() ->
                {ok, R} = witness_log_recording:open(Dir),
                {ok, Processes} = witness_log_recording:processes(R),
                {ok, Born} = witness_log_recording:fold_births(fun(_, #{id := 1}, N) -> N + 1 end, 0, R),
                {ok, #{id := 1}} = witness_log_recording:birth(?HEAD, 1, R),
                none = witness_log_recording:birth(?HEAD, 2, R),
                {length(Processes), Born}
            end),
            ?assertEqual({1, 100_000}, Read),
            ?assert(Most < 50_000_000)
        end)
    end}.

%% Six thousand processes with the same text of 4,000 characters: 400 MB, if each had its own.
an_argument_of_many_processes_is_kept_once_test_() ->
    {timeout, 240, fun() ->
        Text = lists:duplicate(4_000, $a),
        Births = [(birth(Id))#{signature := {sample, loop, [Id, Text, x]}} || Id <- lists:seq(1, 6_000)],
        with_parts([{processes, iolist_to_binary([witness_log_recording_process:encode({birth, Birth}) || Birth <- Births])}],
                   #{block => 65_536, compress => true}, fun(Dir) ->
            {ok, R} = witness_log_recording:open(Dir),
            {Read, Most} = with_limit(60_000_000, fun() ->
                {ok, Processes} = witness_log_recording:processes(R),
                length([Id || #{id := Id, signature := {sample, loop, [Id, Kept, x]}} <- Processes, Kept =:= Text])
            end),
            ?assertEqual(6_000, Read),
            ?assert(Most < 60_000_000)
        end)
    end}.

runs_are_told_once_test() ->
    Entries = [{from, 7}] ++ lists:duplicate(1_000_000, {from, 7}) ++ lists:duplicate(5, timeout),
    with_processes([{birth(1), Entries}], #{}, fun(Dir) ->
        {ok, R} = witness_log_recording:open(Dir),
        ?assertEqual({ok, [{timeout, 5}, {from, 7, 1_000_000}, {from, 7, 1}]},
                     witness_log_recording:fold_runs(fun(Run, Runs) -> [Run | Runs] end, [], 1, R)),
        ?assertEqual({ok, 1_000_006}, witness_log_recording:entries(1, R))
    end).

a_process_that_is_not_there_has_done_nothing_test() ->
    with_sample(#{}, fun(Dir) ->
        {ok, R} = witness_log_recording:open(Dir),
        [begin
             ?assertEqual({ok, []}, witness_recording_sample:entries(Id, R)),
             ?assertEqual({ok, #{}}, witness_log_recording:demand(Id, R)),
             ?assertEqual({ok, 0}, witness_log_recording:entries(Id, R))
         end || Id <- [0, 4, 1 bsl 70]]
    end).

any_process_may_read_test() ->
    with_sample(#{}, fun(Dir) ->
        {ok, R} = witness_log_recording:open(Dir),
        {ok, Mine} = witness_recording_sample:entries(1, R),
        {Pid, Ref} = spawn_monitor(fun() -> exit(witness_recording_sample:entries(1, R)) end),
        receive {'DOWN', Ref, process, Pid, Theirs} -> ?assertEqual({ok, Mine}, Theirs) end
    end).

%% What the processes of a recording were in their VM are the same terms here.
processes_and_references_stay_what_they_are_test() ->
    Terms = [self(), make_ref(), hd(erlang:ports()), fun lists:map/2, fun() -> self() end],
    with_processes([{birth(1), [{content, Term} || Term <- Terms]}], #{}, fun(Dir) ->
        {ok, R} = witness_log_recording:open(Dir),
        ?assertEqual({ok, [{content, Term} || Term <- Terms]}, witness_recording_sample:entries(1, R))
    end).

%% --- samples ---------------------------------------------------------------------

kinds() -> [header, order, data, processes, modules, index].

contents(Dir, Kind) ->
    Name = witness_log_recording_file:name(Dir, Kind),
    {ok, Bytes} = file:read_file(Name),
    {Name, Bytes}.

read(Dir, What) ->
    try
        witness_recording_sample:read(Dir)
    catch
        Class:Reason:Stack -> error({What, Class, Reason, Stack})
    end.

birth(Id) ->
    #{id => Id, parent => Id - 1, place => 0, pid => self(), signature => {sample, loop, [Id]}, time => Id * 1_000_000}.

with_sample(Options, Fun) ->
    with_processes([
        {birth(1), [{spawn, 2}, {from, 2}, {from, 2}, timeout, {content, {tcp, ~"some bytes"}},
                    {result, {erlang, monotonic_time, 0}, -576460751}, {ordered, 3, 3, {result, {ets, lookup, 2}, [{a, 1}]}},
                    {spawn, 3},
                    {raise, {ets, lookup, 2}, error, badarg}, {from, 3}, {named, 2}, {hash, ~"12345678"}, {exit, normal}]},
        {birth(2), [{timed, 2_500_000, {from, 1}}, {contents, {hello, self()}}, {timed, 2_500_001, {sent, self(), hello}}, timeout,
                    {timed, 1 bsl 50, timeout}, {from, 3}, {exit, shutdown}]},
        {birth(3), [{from, 1}, {content, #{key => [1, 2.5]}}, {result, {os, getenv, 1}, false}]}], Options, Fun).

with_processes(Processes, Options, Fun) ->
    _ = rand:seed(exsss, 5),
    with_parts([{Kind, iolist_to_binary(Part)} || {Kind, Part} <- witness_recording_sample:parts(Processes, 30)], Options, Fun).

with_data(External, Fun) ->
    Item = [witness_log_recording_number:leb(byte_size(External)), External],
    Data = iolist_to_binary([1, 0, witness_log_recording_number:leb(iolist_size(Item)), Item]),
    with_parts([{order, <<1, 0, 1, 2:3, 1:5>>}, {data, Data}], #{}, Fun).

with_parts(Parts, Options, Fun) ->
    Dir = witness_recording_sample:folder("damage"),
    try
        ok = witness_recording_sample:write(Dir, Parts, maps:merge(#{header => witness_recording_sample:header(false)}, Options)),
        Fun(Dir)
    after
        witness_recording_sample:delete(Dir)
    end.

%% In a process that ends if its heap and the binaries that it holds become larger; what they were at most, about.
with_limit(Bytes, Fun) ->
    Words = Bytes div erlang:system_info(wordsize),
    {Pid, Ref} = spawn_opt(fun() ->
        Before = erlang:memory(binary),
        Result = Fun(),
        exit({ended, Result, max(0, erlang:memory(binary) - Before)})
    end, [monitor, {max_heap_size, #{size => Words, kill => true, error_logger => false,
                                     include_shared_binaries => true}}]),
    receive
        {'DOWN', Ref, process, Pid, {ended, Result, Most}} -> {Result, Most};
        {'DOWN', Ref, process, Pid, Reason} -> error(Reason)
    end.
