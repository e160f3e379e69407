-module(witness_log_reader_tests).

-export([digest/0]).

-include_lib("eunit/include/eunit.hrl").

-define(SMALL, #{block => 10, max_line => 30}).

%% --- lines -----------------------------------------------------------------------

lines_are_whole_whatever_the_block_size_test() ->
    Text = ~"one\r\n\nthree\n% four and more of it\nfive",
    [?assertEqual({Text, 5, ok}, read_all(Text, #{block => Block})) || Block <- lists:seq(1, 40)].

blocks_end_with_a_line_test() ->
    Blocks = blocks(with_file(numbered(1000), fun(File) -> events(open(File, #{block => 100})) end)),
    ?assert(length(Blocks) > 50),
    [?assertEqual($\n, binary:last(B)) || B <- Blocks].

an_empty_file_has_no_lines_test() -> ?assertEqual({~"", 0, ok}, read_all(~"", #{})).

newlines_only_test() -> ?assertEqual({~"\n\n\n", 3, ok}, read_all(~"\n\n\n", #{block => 2})).

a_line_as_long_as_allowed_is_a_line_test() ->
    Line = <<(binary:copy(~"x", 30))/binary, "\n">>,
    ?assertEqual({<<"a\n", Line/binary, "b\n">>, 3, ok}, read_all(<<"a\n", Line/binary, "b\n">>, ?SMALL)).

a_line_that_is_too_long_is_told_and_left_out_test() ->
    Long = binary:copy(~"x", 31),
    Events = with_file(<<"a\n", Long/binary, "\nb\n", Long/binary>>, fun(File) -> events(open(File, ?SMALL)) end),
    ?assertMatch([{block, ~"a\n", #{offset := 2, lines := 1}}, {long, 31, #{offset := 34, lines := 2}},
                  {block, ~"b\n", #{offset := 36, lines := 3}}, {long, 31, #{offset := 67, lines := 4}}, eof], Events).

a_line_of_100_mb_takes_no_memory_test_() ->
    {timeout, 60, fun() ->
        with_file(~"", fun(File) ->
            {ok, Fd} = file:open(File, [raw, write]),
            [ok = file:write(Fd, binary:copy(~"x", 1_000_000)) || _ <- lists:seq(1, 100)],
            ok = file:write(Fd, ~"\nend\n"),
            ok = file:close(Fd),
            Before = erlang:memory(binary),
            {long, 100_000_000, _, R} = witness_log_reader:read(open(File, #{})),
            erlang:garbage_collect(),
            ?assert(erlang:memory(binary) - Before < 30_000_000),
            ?assertMatch({block, ~"end\n", #{lines := 2}, _}, witness_log_reader:read(R))
        end)
    end}.

%% --- compression -----------------------------------------------------------------

compressed_text_is_read_whatever_its_name_test_() -> {timeout, 60, fun compressed_text_is_read_whatever_its_name/0}.

compressed_text_is_read_whatever_its_name() ->
    Text = numbered(20_000),
    [?assertEqual({Text, 20_000, ok}, read_all(compress(Kind, Text), #{block => Block}))
     || Kind <- kinds(), Block <- [7, 1000, 262_144]].

members_follow_each_other_test() ->
    [?assertEqual({~"a\nb\nc\n", 3, ok}, read_all([compress(Kind, ~"a\nb"), compress(Kind, ~"\nc\n")], #{}))
     || Kind <- kinds()].

a_short_file_is_not_taken_for_compressed_test() ->
    [?assertMatch({Text, _, ok}, read_all(Text, #{block => 1}))
     || Text <- [<<16#1f>>, ~"(", <<16#28, 16#b5>>, ~"P", ~"P*\n"]].

what_is_cut_off_anywhere_is_truncated_test_() -> {timeout, 60, fun what_is_cut_off_anywhere_is_truncated/0}.

what_is_cut_off_anywhere_is_truncated() ->
    Text = numbered(300),
    [begin
         Bytes = compress(Kind, Text),
         [begin
              Part = binary:part(Bytes, 0, Size),
              {Read, _, {error, {_, {_, {truncated, Kind}}} = Error}} = read_all(Part, #{block => 64}),
              ?assertEqual(Read, binary:part(Text, 0, byte_size(Read))),
              ?assert(is_list(unicode:characters_to_list(witness:format_error(Error))))
          end || Size <- lists:seq(4, byte_size(Bytes) - 1)]
     end || Kind <- kinds()].

what_was_whole_is_read_before_the_error_test_() -> {timeout, 60, fun what_was_whole_is_read_before_the_error/0}.

what_was_whole_is_read_before_the_error() ->
    Text = numbered(100_000),
    [begin
         Bytes = compress(Kind, Text),
         {Read, Lines, {error, {_, {_, {truncated, Kind}}}}} = read_all(binary:part(Bytes, 0, byte_size(Bytes) div 2), #{}),
         ?assert(Lines > 10_000),
         ?assertEqual(Read, binary:part(Text, 0, byte_size(Read)))
     end || Kind <- kinds()].

damage_is_told_test() ->
    _ = rand:seed(exsss, 1),
    Text = numbered(3000),
    [begin
         Bytes = compress(Kind, Text),
         At = 20 + rand:uniform(byte_size(Bytes) - 40),
         <<Before:At/binary, Byte, After/binary>> = Bytes,
         {_, _, Result} = read_all(<<Before/binary, (Byte bxor (1 bsl rand:uniform(7))), After/binary>>, #{}),
         ?assertMatch({error, {_, {_, {How, Kind}}}} when How =:= damaged; How =:= truncated, Result)
     end || Kind <- kinds(), _ <- lists:seq(1, 50)].

garbage_behind_a_member_is_damage_test() ->
    [?assertMatch({_, _, {error, {_, {_, {damaged, Kind}}}}}, read_all([compress(Kind, ~"a\n"), ~"garbage"], #{}))
     || Kind <- kinds()].

zeros_behind_gzip_are_padding_test_() -> {timeout, 60, fun zeros_behind_gzip_are_padding/0}.

zeros_behind_gzip_are_padding() ->
    [?assertEqual({Text, Lines, ok}, read_all([zlib:gzip(Text), binary:copy(<<0>>, Zeros)], #{block => Block}))
     || {Text, Lines} <- [{~"", 0}, {~"a\n", 1}, {numbered(300), 300}], Zeros <- [1, 7, 8, 9, 511, 10_240],
     Block <- [1, 7, 1000, 262_144]].

other_bytes_behind_zeros_are_damage_test() ->
    [?assertMatch({~"a\n", 1, {error, {_, {_, {damaged, gzip}}}}},
                  read_all([zlib:gzip(~"a\n"), binary:copy(<<0>>, Zeros), Behind], #{block => Block}))
     || Behind <- [~"x", zlib:gzip(~"b\n")], Zeros <- [1, 512], Block <- [1, 7, 262_144]].

zeros_in_the_place_of_an_end_are_damage_test() ->
    Bytes = zlib:gzip(numbered(300)),
    [begin
         {_, _, Result} = read_all([binary:part(Bytes, 0, Size), binary:copy(<<0>>, 512)], #{}),
         ?assertMatch({error, {_, {_, {How, gzip}}}} when How =:= damaged; How =:= truncated, Result)
     end || Size <- lists:seq(4, byte_size(Bytes) - 5)].

members_of_each_form_are_read_in_each_cut_test_() ->
    {timeout, 60, fun() ->
        _ = rand:seed(exsss, 3),
        [begin
             {Texts, Members} = lists:unzip([member() || _ <- lists:seq(1, rand:uniform(4))]),
             Text = iolist_to_binary(Texts),
             ?assertEqual({Text, ok}, gunzipped(iolist_to_binary([Members | binary:copy(<<0>>, rand:uniform(30) - 1)])), Members)
         end || _ <- lists:seq(1, 2000)]
    end}.

%% Zeros in the head, in the text, and in the trailer.
member() ->
    Text = case rand:uniform(4) of
        1 -> ~"";
        2 -> binary:copy(<<0>>, rand:uniform(100));
        3 -> rand:bytes(rand:uniform(100));
        4 -> numbered(rand:uniform(50))
    end,
    Z = zlib:open(),
    ok = zlib:deflateInit(Z, lists:nth(rand:uniform(3), [none, best_speed, best_compression]), deflated, -15, 8, default),
    Deflated = zlib:deflate(Z, Text, finish),
    Extra = binary:copy(<<0>>, rand:uniform(20)),
    Head = case rand:uniform(3) of
        1 -> <<31, 139, 8, 0, 0:48>>;
        2 -> <<31, 139, 8, 4, 0:48, (byte_size(Extra)):16/little, Extra/binary>>;
        3 -> <<31, 139, 8, 8, 0:48, "name", 0>>
    end,
    {Text, [Head, Deflated, <<(erlang:crc32(Text)):32/little, (byte_size(Text)):32/little>>]}.

gunzipped(Bytes) ->
    {ok, I} = witness_log_inflate:open(gzip),
    gunzipped(Bytes, I, ~"").

gunzipped(~"", I, Text) ->
    Result = witness_log_inflate:finish(I),
    ok = witness_log_inflate:close(I),
    {Text, Result};
gunzipped(Bytes, I, Text) ->
    Size = min(byte_size(Bytes), rand:uniform(30)),
    <<Piece:Size/binary, Rest/binary>> = Bytes,
    {I1, Text1} = fed(witness_log_inflate:feed(Piece, I), Text),
    gunzipped(Rest, I1, Text1).

fed({more, More, I}, Text) -> fed(witness_log_inflate:feed(~"", I), <<Text/binary, (iolist_to_binary(More))/binary>>);
fed({done, More, I}, Text) -> {I, <<Text/binary, (iolist_to_binary(More))/binary>>}.

%% A frame of one byte; its head asks for a window.
a_window_of_more_than_128_mib_is_refused_without_memory_test() ->
    Frame = fun(Log) -> <<16#28, 16#b5, 16#2f, 16#fd, 0, ((Log - 10) bsl 3), 9, 0, 0, "a">> end,
    [begin
         ?assertEqual({~"a", 1, ok}, read_all(Frame(27), #{})),
         [begin
              Before = erlang:memory(total),
              {Text, _, {error, Error}} = read_all([Good, Frame(Log)], #{}),
              ?assert(erlang:memory(total) - Before < 30_000_000),
              ?assertMatch({_, {_, {window, zstd}}}, Error),
              ?assertMatch({match, _}, re:run(witness:format_error(Error), "more than 128 MiB")),
              ?assert(lists:member(Text, [~"", ~"good\n"]))
          end || Log <- [28, 31, 41], Good <- [~"", compress(zstd, ~"good\n")]]
     end || zstd <- kinds()].

a_bomb_is_a_long_line_test_() ->
    {timeout, 60, fun() ->
        Z = zlib:open(),
        ok = zlib:deflateInit(Z, default, deflated, 31, 8, default),
        Zeros = binary:copy(<<0>>, 1_000_000),
        Begun = [zlib:deflate(Z, Zeros) || _ <- lists:seq(1, 300)],
        Bomb = [Begun, zlib:deflate(Z, ~"", finish)],
        with_file(Bomb, fun(File) ->
            Before = erlang:memory(total),
            {long, 300_000_000, _, _} = witness_log_reader:read(open(File, #{})),
            erlang:garbage_collect(),
            ?assert(erlang:memory(total) - Before < 30_000_000)
        end)
    end}.

a_vm_without_zstd_says_so_test() ->
    case code:ensure_loaded(zstd) of
        {module, _} -> ok;
        {error, _} ->
            {~"", 0, {error, Error}} = read_all(<<16#28, 16#b5, 16#2f, 16#fd, 0>>, #{}),
            Told = ["OTP ", erlang:system_info(otp_release), " cannot"],
            ?assertMatch({match, _}, re:run(witness:format_error(Error), Told))
    end.

%% --- positions -------------------------------------------------------------------

reading_goes_on_at_each_position_test() ->
    Text = numbered(500),
    [with_file(compress(Kind, Text), fun(File) ->
         Events = events(open(File, #{block => 100})),
         [begin
              #{offset := Offset} = Position,
              {ok, R} = witness_log_reader:open({file, File}, #{position => binary_to_term(term_to_binary(Position))}),
              ?assertEqual({binary:part(Text, Offset, byte_size(Text) - Offset), 500, ok}, all(R, Position))
          end || {block, _, Position} <- Events]
     end) || Kind <- [plain | kinds()]].

a_position_of_another_text_is_refused_test() ->
    Positions = fun(File) -> [P || {block, _, P} <- events(open(File, #{block => 2000}))] end,
    [Position | _] = with_file(numbered(500), Positions),
    [with_file(compress(Kind, [~"x", numbered(500)]), fun(File) ->
         ?assertMatch({error, {_, {_, changed}}}, witness_log_reader:open({file, File}, #{position => Position}))
     end) || Kind <- [plain | kinds()]].

%% --- what cannot be read ---------------------------------------------------------

what_cannot_be_opened_is_named_test() ->
    {error, Missing} = witness_log_reader:open({file, "no/such.log"}, #{}),
    ?assertEqual(~"no/such.log: no such file or directory", text(Missing)),
    {error, Folder} = witness_log_reader:open({file, "."}, #{}),
    ?assertEqual(~".: it is a directory", text(Folder)),
    {error, Input} = witness_log_reader:open(standard_input, #{follow => true}),
    ?assertMatch(<<"standard input: ", _/binary>>, text(Input)).

progress_is_that_of_the_file_on_disk_test() ->
    Bytes = zlib:gzip(numbered(1000)),
    with_file(Bytes, fun(File) ->
        R = open(File, #{}),
        ?assertEqual({0, byte_size(Bytes)}, witness_log_reader:progress(R)),
        {block, _, _, R1} = witness_log_reader:read(R),
        ?assertEqual({byte_size(Bytes), byte_size(Bytes)}, witness_log_reader:progress(R1))
    end).

%% --- standard input --------------------------------------------------------------

standard_input_is_read_to_its_end_test_() ->
    {timeout, 60, fun() ->
        Text = numbered(300_000),
        with_file(Text, fun(File) ->
            [?assertEqual(binary:encode_hex(erlang:md5(Text)), through(Command, File))
             || Command <- ["cat \"$1\" | ", "gzip -1 < \"$1\" | ", "< \"$1\" "]]
        end)
    end}.

%% What another VM reads, started as `bin/witness` does it.
through(Command, File) ->
    Erl = "\"$2\" -noshell -noinput -boot no_dot_erlang -pa \"$3\" -pa \"$4\" -run witness_log_reader_tests digest",
    Folders = [filename:dirname(code:which(M)) || M <- [witness_log_reader, ?MODULE]],
    Args = ["-c", [Command, Erl], "sh", File, filename:join([code:root_dir(), "bin", "erl"]) | Folders],
    Port = open_port({spawn_executable, "/bin/sh"}, [{args, Args}, binary, exit_status]),
    output(Port, ~"").

output(Port, Text) ->
    receive
        {Port, {data, More}} -> output(Port, <<Text/binary, More/binary>>);
        {Port, {exit_status, 0}} -> Text
    end.

digest() ->
    {ok, R} = witness_log_reader:open(standard_input, #{}),
    digest(witness_log_reader:read(R), erlang:md5_init()).

digest({block, Block, _, R}, Sum) -> digest(witness_log_reader:read(R), erlang:md5_update(Sum, Block));
digest({eof, _}, Sum) ->
    io:put_chars(binary:encode_hex(erlang:md5_final(Sum))),
    halt(0).

%% --- helpers ---------------------------------------------------------------------

kinds() -> [gzip | [zstd || {module, _} <- [code:ensure_loaded(zstd)]]].

compress(plain, Text) -> Text;
compress(gzip, Text) -> zlib:gzip(Text);
compress(zstd, Text) -> iolist_to_binary(apply(zstd, compress, [Text, #{checksumFlag => true}])).

numbered(N) ->
    iolist_to_binary([[integer_to_list(I * 7919 rem 10_007), $:, integer_to_list(I), $\n] || I <- lists:seq(1, N)]).

text(Error) -> unicode:characters_to_binary(witness:format_error(Error)).

with_file(Bytes, Do) ->
    Unique = [os:getpid(), "_", integer_to_list(erlang:unique_integer([positive]))],
    File = lists:flatten(["/tmp/witness_log_reader_", Unique]),
    ok = file:write_file(File, Bytes),
    try Do(File) after file:delete(File) end.

open(File, Options) ->
    {ok, R} = witness_log_reader:open({file, File}, Options),
    R.

read_all(Bytes, Options) -> with_file(Bytes, fun(File) -> all(open(File, Options), #{lines => 0}) end).

all(R, Start) ->
    Events = events(R),
    Lines = lists:last([Start | [P || {block, _, P} <- Events]]),
    Result = case lists:last(Events) of
                 eof -> ok;
                 Error -> Error
             end,
    {iolist_to_binary(blocks(Events)), maps:get(lines, Lines), Result}.

blocks(Events) -> [B || {block, B, _} <- Events].

events(R) ->
    case witness_log_reader:read(R) of
        {block, Block, Position, R1} -> [{block, Block, Position} | events(R1)];
        {long, Bytes, Position, R1} -> [{long, Bytes, Position} | events(R1)];
        {eof, R1} ->
            ?assertMatch({eof, _}, witness_log_reader:read(R1)),
            ok = witness_log_reader:close(R1),
            [eof];
        {error, Error, R1} ->
            ok = witness_log_reader:close(R1),
            [{error, Error}]
    end.
