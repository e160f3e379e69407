-module(witness_recording_forger).
-moduledoc """
Recordings that no recorder has made: the files of one are taken apart into the contents of their blocks, changed, and put
together again with checksums that are right.
""".

-export([take_apart/1, put_together/2, term/2, change/3, mutated/1, block/2, kinds/0]).

-export_type([files/0]).

-type kind() :: header | order | data | processes | modules | index.

-doc "Of each file its recording, and the contents of its blocks.".
-type files() :: #{kind() => {Id :: binary(), [binary()]}}.

-spec kinds() -> [kind()].
kinds() -> [header, order, data, processes, modules, index].

-doc "What a recording has. A file that is not there is left out.".
-spec take_apart(file:filename()) -> files().
take_apart(Dir) -> maps:from_list([{Kind, contents(Dir, Kind)} || Kind <- kinds(), filelib:is_regular(filename:join(Dir, Kind))]).

contents(Dir, Kind) ->
    {ok, File} = witness_log_recording_file:open(Dir, Kind),
    {ok, Blocks, _} = witness_log_recording_file:fold(fun(_, Bytes, Blocks) -> {ok, [Bytes | Blocks]} end, [],
                                                      witness_log_recording_file:first_offset(), File),
    Id = witness_log_recording_file:recording(File),
    ok = witness_log_recording_file:close(File),
    {Id, lists:reverse(Blocks)}.

-doc "Writes such files into a folder, in the place of those that it has.".
-spec put_together(file:filename(), files()) -> ok.
put_together(Dir, Files) ->
    Z = witness_log_recording_file:compressor(),
    _ = [begin
             Name = filename:join(Dir, Kind),
             _ = file:delete(Name),
             ok = case Files of
                 #{Kind := {Id, Blocks}} ->
                     file:write_file(Name, [witness_log_recording_file:head(Kind, Id)
                                            | [witness_log_recording_file:block(Block, Z) || Block <- Blocks]]);
                 #{} -> ok
             end
         end || Kind <- kinds()],
    zlib:close(Z).

-doc "The term that a file begins with.".
-spec term(kind(), files()) -> term().
term(Kind, Files) ->
    #{Kind := {_, [First | _]}} = Files,
    binary_to_term(First).

-doc "Changes the term that a file begins with.".
-spec change(kind(), fun((term()) -> term()), files()) -> files().
change(Kind, Change, Files) ->
    #{Kind := {Id, [First | Blocks]}} = Files,
    Files#{Kind := {Id, [term_to_binary(Change(binary_to_term(First))) | Blocks]}}.

-doc "A sub-trace as the first one of a process.".
-spec block(Id :: pos_integer(), iodata()) -> binary().
block(Id, Contents) ->
    iolist_to_binary([leb(Id), leb(0), leb(iolist_size(Contents)), Contents]).

leb(N) -> witness_log_recording_number:leb(N).

%% --- mutations -------------------------------------------------------------------

-doc "Changed somewhere, at random (`m:rand`).".
-spec mutated(files()) -> files().
mutated(Files) -> lists:foldl(fun(_, F) -> once(F) end, Files, lists:seq(1, rand:uniform(3))).

once(Files) ->
    Kind = one_of(maps:keys(Files)),
    #{Kind := {Id, Blocks}} = Files,
    case rand:uniform(20) of
        1 -> maps:remove(Kind, Files);
        2 -> Files#{Kind := {Id, []}};
        3 -> Files#{Kind := {Id, Blocks ++ Blocks}};
        4 -> Files#{Kind := {Id, lists:reverse(Blocks)}};
        5 -> Files#{Kind := {rand:bytes(8), Blocks}};
        N when N =< 10, Blocks =/= [] -> structure(Kind, Files);
        _ when Blocks =/= [] ->
            {Before, [Block | After]} = lists:split(rand:uniform(length(Blocks)) - 1, Blocks),
            Files#{Kind := {Id, Before ++ [bytes(Block) | After]}};
        _ -> Files
    end.

%% Of files that begin with a term, some part of it; of others a number that is too large.
structure(Kind, Files) when Kind =:= header; Kind =:= modules ->
    try change(Kind, fun altered/1, Files) catch error:badarg -> Files end;
structure(Kind, Files) ->
    #{Kind := {Id, Blocks}} = Files,
    {Before, [Block | After]} = lists:split(rand:uniform(length(Blocks)) - 1, Blocks),
    At = rand:uniform(byte_size(Block) + 1) - 1,
    <<First:At/binary, Rest/binary>> = Block,
    Number = leb(one_of([0, 1, 127, 1 bsl 20, 1 bsl 31, 1 bsl 40, 1 bsl 63, 1 bsl 64 - 1])),
    Files#{Kind := {Id, Before ++ [<<First/binary, Number/binary, (behind(Rest))/binary>> | After]}}.

behind(<<_, Rest/binary>>) -> Rest;
behind(<<>>) -> <<>>.

bytes(<<>>) -> rand:bytes(3);
bytes(Block) ->
    At = rand:uniform(byte_size(Block)) - 1,
    <<First:At/binary, Byte, Rest/binary>> = Block,
    case rand:uniform(5) of
        1 -> <<First/binary, (Byte bxor (1 bsl (rand:uniform(8) - 1))), Rest/binary>>;
        2 -> <<First/binary, (rand:uniform(256) - 1), Rest/binary>>;
        3 -> First;
        4 -> <<First/binary, (rand:bytes(rand:uniform(20)))/binary, Rest/binary>>;
        5 -> <<First/binary, Byte, First/binary, Rest/binary>>
    end.

altered(Map) when is_map(Map), map_size(Map) > 0 ->
    Key = one_of(maps:keys(Map)),
    case rand:uniform(6) of
        1 -> maps:remove(Key, Map);
        2 -> Map#{Key := strange()};
        3 -> maps:put(strange(), maps:get(Key, Map), maps:remove(Key, Map));
        _ -> Map#{Key := altered(maps:get(Key, Map))}
    end;
altered([_ | _] = List) ->
    case rand:uniform(6) of
        1 -> strange();
        2 -> [strange() | List];
        3 -> List ++ strange();
        4 -> tl(List);
        _ -> [altered(hd(List)) | tl(List)]
    end;
altered(Tuple) when is_tuple(Tuple), tuple_size(Tuple) > 0 ->
    case rand:uniform(4) of
        1 -> strange();
        _ ->
            At = rand:uniform(tuple_size(Tuple)),
            setelement(At, Tuple, altered(element(At, Tuple)))
    end;
altered(_) -> strange().

strange() ->
    one_of([[], #{}, {}, ~"", ~"../x", "relative/ebin", "/", [a | b], [0], -1, 1 bsl 70, 1.5, undefined, '', 'Elixir.Enum', self(),
            make_ref(),
            fun os:cmd/1, <<1:3>>, {erlang, halt, []}, {os, cmd, ["touch x"]}, [[], [[]]], #{a => #{}}, [16#110000], ~"\e[2J"]).

one_of(List) -> lists:nth(rand:uniform(length(List)), List).
