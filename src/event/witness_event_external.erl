-module(witness_event_external).
-moduledoc """
Reads terms in the VM's external format without crashing the VM.

In OTP 28 and earlier, `binary_to_term/1` corrupts the calling process if its reductions run out while the term is built,
although they were enough to measure it. The next garbage collection ends the VM by a segmentation fault (erlang/otp, issue
11404; OTP 29.1 does not). Measuring and building take one reduction per 128 elements of the term, or per some kilobytes of its
binaries. So at most twice its bytes are counted.

So a process yields before it reads a term, which renews its 4,000 reductions. That is enough for 256,000 bytes. Of larger terms,
`binary_to_term/1` reads only the leaves.
""".

-export([decode/1, decode_in_parts/1, literals/1, atoms/1]).

%% Bytes for which a single reduction is enough; every process has one.
-define(FREE_BYTES, 60).
%% Bytes for which the reductions after a yield are enough, with a margin.
-define(YIELD_BYTES, 200_000).

-doc "The term of these bytes, as `binary_to_term/1` returns it. Error: `badarg`.".
-spec decode(binary()) -> term().
-if(?OTP_RELEASE >= 29).
decode(Bytes) -> binary_to_term(Bytes).
-else.
decode(<<131, 80, Size:32, _/binary>> = Bytes) -> decode(Bytes, Size);
decode(Bytes) -> decode(Bytes, byte_size(Bytes)).

decode(Bytes, Size) when Size =< ?FREE_BYTES ->
    binary_to_term(Bytes);
decode(Bytes, Size) when Size =< ?YIELD_BYTES ->
    true = erlang:yield(),
    binary_to_term(Bytes);
decode(Bytes, _) ->
    decode_in_parts(Bytes).
-endif.

-doc """
The same for terms of every size. A fun with an environment of more than 200,000 bytes is refused with `badarg`, and so are
formats that no VM since OTP 22 writes.
""".
-spec decode_in_parts(binary()) -> term().
decode_in_parts(<<131, 80, Size:32, Compressed/binary>>) ->
    try zlib:uncompress(Compressed) of
        External when byte_size(External) =:= Size -> whole(External);
        _ -> error(badarg)
    catch
        error:_ -> error(badarg)
    end;
decode_in_parts(<<131, External/binary>>) -> whole(External);
decode_in_parts(_) -> error(badarg).

whole(External) ->
    try term(External) of
        {Term, _} -> Term
    catch
        error:_ -> error(badarg)
    end.

term(<<97, N, Rest/binary>>) -> {N, Rest};
term(<<98, N:32/signed, Rest/binary>>) -> {N, Rest};
term(<<70, N/float, Rest/binary>>) -> {N, Rest};
term(<<110, Size, Sign, Digits:Size/binary, Rest/binary>>) -> {integer(Sign, Digits), Rest};
term(<<111, Size:32, Sign, Digits:Size/binary, Rest/binary>>) -> {integer(Sign, Digits), Rest};
term(<<106, Rest/binary>>) -> {[], Rest};
term(<<107, Size:16, Bytes:Size/binary, Rest/binary>>) -> {binary_to_list(Bytes), Rest};
term(<<108, Length:32, Rest/binary>>) -> list(Length, Rest);
term(<<109, Size:32, Bytes:Size/binary, Rest/binary>>) -> {binary:copy(Bytes), Rest};
term(<<77, Size:32, Last, Bytes:Size/binary, Rest/binary>>) when Size > 0, Last > 0, Last =< 8 ->
    Bits = 8 * (Size - 1) + Last,
    <<Kept:Bits/bitstring, _/bitstring>> = binary:copy(Bytes),
    {Kept, Rest};
term(<<104, Arity, Rest/binary>>) -> tuple(Arity, Rest);
term(<<105, Arity:32, Rest/binary>>) -> tuple(Arity, Rest);
term(<<116, Pairs:32, Rest/binary>>) ->
    {Elements, Rest1} = elements(2 * Pairs, Rest),
    Map = maps:from_list(pairs(Elements)),
    Pairs = map_size(Map),
    {Map, Rest1};
term(<<112, Size:32, _/binary>> = Bytes) -> leaf(1 + Size, Bytes);
term(<<88, Rest/binary>> = Bytes) -> named(1, 12, Rest, Bytes);
term(<<89, Rest/binary>> = Bytes) -> named(1, 8, Rest, Bytes);
term(<<120, Rest/binary>> = Bytes) -> named(1, 12, Rest, Bytes);
term(<<90, Numbers:16, Rest/binary>> = Bytes) -> named(3, 4 + 4 * Numbers, Rest, Bytes);
term(<<113, Rest/binary>> = Bytes) ->
    Module = atom(Rest),
    <<_:Module/binary, Rest1/binary>> = Rest,
    leaf(1 + Module + atom(Rest1) + 2, Bytes);
term(Bytes) ->
    leaf(atom(Bytes), Bytes).

integer(0, Digits) -> binary:decode_unsigned(Digits, little);
integer(_, Digits) -> -binary:decode_unsigned(Digits, little).

list(0, Bytes) -> term(Bytes);
list(Left, Bytes) ->
    {First, Rest} = term(Bytes),
    {List, Rest1} = list(Left - 1, Rest),
    {[First | List], Rest1}.

tuple(Arity, Bytes) ->
    {Elements, Rest} = elements(Arity, Bytes),
    {list_to_tuple(Elements), Rest}.

elements(0, Rest) -> {[], Rest};
elements(Left, Bytes) ->
    {First, Rest} = term(Bytes),
    {Others, Rest1} = elements(Left - 1, Rest),
    {[First | Others], Rest1}.

pairs([Key, Value | Rest]) -> [{Key, Value} | pairs(Rest)];
pairs([]) -> [].

%% A process, port or reference: its node, and numbers.
named(Before, Numbers, Node, Bytes) -> leaf(Before + atom(Node) + Numbers, Bytes).

%% Bytes of an atom.
atom(<<119, Size, _/binary>>) -> 2 + Size;
atom(<<118, Size:16, _/binary>>) -> 3 + Size;
atom(<<100, Size:16, _/binary>>) -> 3 + Size;
atom(<<115, Size, _/binary>>) -> 2 + Size.

leaf(Size, Bytes) when Size =< ?YIELD_BYTES ->
    <<Leaf:Size/binary, Rest/binary>> = Bytes,
    true = Size =< ?FREE_BYTES orelse erlang:yield(),
    {Term, Used} = binary_to_term(<<131, Leaf/binary>>, [used]),
    Used = 1 + Size,
    {Term, Rest}.

-doc "The constant terms of a module, from the chunk `LitT` of its object code. A size of 0 means uncompressed (OTP 28 and later).".
-spec literals(Chunk :: binary()) -> [term()].
literals(<<0:32, _:32, Terms/binary>>) -> [decode(Term) || <<Size:32, Term:Size/binary>> <= Terms];
literals(<<_:32, Compressed/binary>>) -> literals(<<0:32, (zlib:uncompress(Compressed))/binary>>).

-doc "The atoms in a term; for a fun its module.".
-spec atoms(term()) -> [atom()].
atoms(Atom) when is_atom(Atom) -> [Atom];
atoms([Head | Tail]) -> atoms(Head) ++ atoms(Tail);
atoms(Tuple) when is_tuple(Tuple) -> atoms(tuple_to_list(Tuple));
atoms(Map) when is_map(Map) -> atoms(maps:to_list(Map));
atoms(Fun) when is_function(Fun) -> [element(2, erlang:fun_info(Fun, module))];
atoms(_) -> [].
