-module(witness_weave_funs).
-moduledoc """
Gives funs of woven code the properties of those of the original code: same order, hash, text, and place in maps.

The VM orders, hashes and prints a fun by its module, its index, its `uniq` and its environment. Index and `uniq` are in the
chunk `FunT` of the object code. The compiler makes `uniq` from a digest of the code, so woven code has another one. `keep/2`
writes those of the original into the woven object code. It finds a fun by its name, arity and number of free variables: weaving
adds no fun and renames none (`m:witness_weave_expr`).

This is safe: `uniq` is not part of the digest that the loader computes, by which the VM distinguishes funs of two versions of a
module. That digest (`new_uniq`) is the only part of a fun that still differs. The attribute `witness_weave_digest` of the woven
module contains the digest of the original. `call/2` shows that digest where a program reads digests, in `fun_info` and
`term_to_binary`, and accepts it in `binary_to_term`.
""".

-export([keep/2, call/2]).

-define(DIGEST, witness_weave_digest).

%% An entry of the chunk: six words.
-record(lambda, {name, arity, label, index, free, uniq}).

-doc "The woven object code with the index and the `uniq` of the original's funs.".
-spec keep(Original :: binary(), Woven :: binary()) -> binary().
keep(Original, Woven) ->
    {ok, _, Chunks} = beam_lib:all_chunks(Woven),
    Known = #{identity(Lambda, Names) => Lambda || {Names, Lambdas} <- [table(Original)], Lambda <- lists:reverse(Lambdas)},
    {Names, Lambdas} = table(Woven),
    {ok, Kept} = beam_lib:build_module([chunk(Chunk, Original, keep_funs(Lambdas, Names, Known)) || Chunk <- Chunks]),
    Kept.

chunk({"FunT", _}, _, Lambdas) -> {"FunT", <<(length(Lambdas)):32, << <<(encode(Lambda))/binary>> || Lambda <- Lambdas >>/binary>>};
chunk({"Attr", Attributes}, Original, _) ->
    {"Attr", term_to_binary(binary_to_term(Attributes) ++ [{?DIGEST, [code:module_md5(Original)]}])};
chunk(Chunk, _, _) -> Chunk.

%% A fun that the original does not have gets an index after all others, so that no two have the same one.
keep_funs(Lambdas, Names, Known) ->
    Next = lists:max([-1 | [Index || #lambda{index = Index} <- maps:values(Known) ++ Lambdas]]) + 1,
    Uniq = hd([Uniq || #lambda{uniq = Uniq} <- maps:values(Known)] ++ [none]),
    {Kept, _} = lists:mapfoldl(fun(Lambda, New) ->
        case maps:get(identity(Lambda, Names), Known, none) of
            #lambda{index = Index, uniq = Same} -> {Lambda#lambda{index = Index, uniq = Same}, New};
            none when Uniq =:= none -> {Lambda, New};
            none -> {Lambda#lambda{index = New, uniq = Uniq}, New + 1}
        end
    end, Next, Lambdas),
    Kept.

identity(#lambda{name = Name, arity = Arity, free = Free}, Names) -> {maps:get(Name, Names), Arity, Free}.

table(Object) ->
    case beam_lib:chunks(Object, [atoms, "FunT"], [allow_missing_chunks]) of
        {ok, {_, [{atoms, Atoms}, {"FunT", <<_:32, Table/binary>>}]}} ->
            {maps:from_list(Atoms),
             [#lambda{name = Name, arity = Arity, label = Label, index = Index, free = Free, uniq = Uniq}
              || <<Name:32, Arity:32, Label:32, Index:32, Free:32, Uniq:32>> <= Table]};
        {ok, _} -> {#{}, []}
    end.

encode(#lambda{name = Name, arity = Arity, label = Label, index = Index, free = Free, uniq = Uniq}) ->
    <<Name:32, Arity:32, Label:32, Index:32, Free:32, Uniq:32>>.

%% --- digests ---------------------------------------------------------------------

%% In the external format: NEW_FUN_EXT, its size, arity, digest, index, number of variables, and a module's name in one of four
%% forms.
-define(FUN, 112).
-define(IS_NAME(Tag), (Tag =:= 119 orelse Tag =:= 118 orelse Tag =:= 115 orelse Tag =:= 100)).

-doc """
A function of `erlang` that shows digests of the code of funs, or reads them. It uses the digests of the original code in the
place of those of woven code.

In the external format it looks for a digest after each byte that may start a fun. It replaces the digest if it is that of the
module that is named after it. Bytes that are not a fun do not contain 16 bytes of such a digest at this place by chance.
""".
-spec call(atom(), [term()]) -> term().
call(fun_info, [Fun, Item]) ->
    case erlang:fun_info(Fun, Item) of
        {new_uniq, Digest} -> {new_uniq, show(Digest, Fun)};
        Info -> Info
    end;
call(fun_info, [Fun]) ->
    [case Info of {new_uniq, Digest} -> {new_uniq, show(Digest, Fun)}; _ -> Info end || Info <- erlang:fun_info(Fun)];
call(term_to_binary, Args) -> rewrite(erlang:apply(erlang, term_to_binary, Args), fun original_digest/2, Args);
call(term_to_iovec, Args) ->
    Vector = erlang:apply(erlang, term_to_iovec, Args),
    Bytes = iolist_to_binary(Vector),
    case rewrite(Bytes, fun original_digest/2, Args) of
        Bytes -> Vector;
        Rewritten -> [Rewritten]
    end;
call(binary_to_term, [Bytes | Options]) when is_binary(Bytes) ->
    Rewritten = rewrite(Bytes, fun woven_digest/2, []),
    case erlang:apply(erlang, binary_to_term, [Rewritten | Options]) of
        %% Compressed again, it may have another size. Then no bytes followed it; otherwise it would not have been rewritten.
        {Term, Used} when Used =:= byte_size(Rewritten), Used =/= byte_size(Bytes), Rewritten =/= Bytes, Options =/= [] ->
            case lists:member(used, hd(Options)) of
                true -> {Term, byte_size(Bytes)};
                false -> {Term, Used}
            end;
        Decoded -> Decoded
    end;
call(Function, Args) -> erlang:apply(erlang, Function, Args).

show(Digest, Fun) ->
    {module, Module} = erlang:fun_info(Fun, module),
    original_digest(Module, Digest).

original_digest(Module, Digest) ->
    case is_loaded(Module) andalso {erlang:get_module_info(Module, md5), original(Module)} of
        {Digest, {ok, Original}} -> Original;
        _ -> Digest
    end.

woven_digest(Module, Digest) ->
    case is_loaded(Module) andalso original(Module) of
        {ok, Digest} -> erlang:get_module_info(Module, md5);
        _ -> Digest
    end.

is_loaded(Module) -> erlang:module_loaded(Module).

original(Module) ->
    case lists:keyfind(?DIGEST, 1, erlang:get_module_info(Module, attributes)) of
        {?DIGEST, [Digest]} -> {ok, Digest};
        _ -> none
    end.

rewrite(<<131, 80, Size:32, Compressed/binary>> = Bytes, Other, Args) ->
    try zlib:uncompress(Compressed) of
        Plain ->
            case rewrite(Plain, Other, []) of
                Plain -> Bytes;
                New -> <<131, 80, Size:32, (compress(New, Args))/binary>>
            end
    catch
        error:_ -> Bytes
    end;
rewrite(Bytes, Other, _) ->
    case binary:matches(Bytes, <<?FUN>>) of
        [] -> Bytes;
        Places ->
            case lists:flatmap(fun({At, 1}) -> change_fun(At, Bytes, Other) end, Places) of
                [] -> Bytes;
                Changed -> iolist_to_binary(parts(0, Changed, Bytes))
            end
    end.

compress(Plain, [_, Options]) ->
    case lists:keyfind(compressed, 1, Options) of
        {compressed, Level} -> compress_at(Level, Plain);
        false -> zlib:compress(Plain)
    end;
compress(Plain, _) -> zlib:compress(Plain).

compress_at(Level, Plain) ->
    Stream = zlib:open(),
    ok = zlib:deflateInit(Stream, Level),
    Compressed = iolist_to_binary(zlib:deflate(Stream, Plain, finish)),
    ok = zlib:close(Stream),
    Compressed.

change_fun(At, Bytes, Other) ->
    case Bytes of
        <<_:At/binary, ?FUN, Size:32, _, Digest:16/binary, _:8/binary, Tag, Rest/binary>> when Size >= 30,
        Size - 30 =< byte_size(Rest), ?IS_NAME(Tag) ->
            case module(Tag, Rest) of
                none -> [];
                Module -> [{At + 6, New} || New <- [Other(Module, Digest)], New =/= Digest]
            end;
        _ -> []
    end.

module(Tag, <<Size, Name:Size/binary, _/binary>>) when Tag =:= 119; Tag =:= 115 -> existing_atom(Tag, Name);
module(Tag, <<Size:16, Name:Size/binary, _/binary>>) when Tag =:= 118; Tag =:= 100 -> existing_atom(Tag, Name);
module(_, _) -> none.

existing_atom(Tag, Name) ->
    Encoding = case Tag of 119 -> utf8; 118 -> utf8; _ -> latin1 end,
    try binary_to_existing_atom(Name, Encoding) catch error:_ -> none end.

parts(From, [{At, New} | Changed], Bytes) -> [binary:part(Bytes, From, At - From), New | parts(At + 16, Changed, Bytes)];
parts(From, [], Bytes) -> [binary:part(Bytes, From, byte_size(Bytes) - From)].
