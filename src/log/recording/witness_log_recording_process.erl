-module(witness_log_recording_process).
-moduledoc """
Births and ends of processes in the file `processes`, as bytes (`docs/internals/record.md`).
""".

-export([encode/1, fold/5]).

-export_type([item/0, birth/0, room/0]).

-doc """
A process that was born: its id; the id of the process that spawned it (0: none that is recorded), and its number among
the children of that process (0 is the first); its pid in the recorded VM; what it was spawned with.
""".
-type birth() :: #{id := pos_integer(), parent := non_neg_integer(), place := non_neg_integer(), pid := term(),
                   signature := term()}.

-doc """
A record of the file. `signature`: the name of a process that was spawned with a fun, which only the recorded VM knows;
`early`: in a recording that begins late, earlier entries of the process are missing; `born_at`: the time of its birth, in nanoseconds
since the recording was opened.
""".
-type item() :: {birth, birth()} | {ended | early, Id :: pos_integer()} | {signature, Id :: pos_integer(), term()}
              | {born_at, Id :: pos_integer(), Time :: non_neg_integer()}.

-doc "Limits that remain: records, and the words that they take.".
-type room() :: {Records :: non_neg_integer() | infinity, Words :: integer() | infinity}.

%% Words of a kept record, without its terms.
-define(RECORD_WORDS, 8).
%% Words of a kept birth, without its arguments.
-define(BIRTH_WORDS, 40).
%% No function has more arguments.
-define(MAX_ARITY, 255).

-doc "A record as bytes.".
-spec encode(item()) -> binary().
encode({birth, #{id := Id, parent := Parent, place := Place, pid := Pid, signature := Signature}}) ->
    External = term_to_binary({Pid, Signature}),
    Numbers = << <<(leb(N))/binary>> || N <- [Id, Parent, Place, byte_size(External)] >>,
    <<1, Numbers/binary, External/binary>>;
encode({ended, Id}) ->
    <<2, (leb(Id))/binary>>;
encode({early, Id}) ->
    <<4, (leb(Id))/binary>>;
encode({born_at, Id, Time}) ->
    <<5, (leb(Id))/binary, (leb(Time))/binary>>;
encode({signature, Id, Signature}) ->
    External = term_to_binary(Signature),
    <<3, (leb(Id))/binary, (leb(byte_size(External)))/binary, External/binary>>.

leb(N) -> witness_log_recording_number:leb(N).

-doc """
Folds over the records of a block while they stay within the limits of their number and their words in memory. Returns what
remains of the limits. Checking takes the memory of one record at most. An argument that equals that of the preceding process
shares its term.
""".
-spec fold(fun((item(), Acc) -> Acc), Acc, binary(), witness_log_atoms:atoms(), room()) ->
    {ok, Acc, room()} | {malformed, unicode:chardata()}.
fold(Fun, Acc, Bytes, Atoms, Room) -> fold(Fun, Acc, Bytes, Atoms, Room, []).

fold(_, Acc, <<>>, _, Room, _) -> {ok, Acc, Room};
fold(_, _, _, _, {Left, Words}, _) when Left =:= 0; Words < 0 -> {malformed, ~"more processes than a file of this size can hold"};
fold(Fun, Acc, Bytes, Atoms, {Left, Words}, Before) ->
    case record(Bytes, Atoms) of
        {ok, {birth, #{signature := {Module, Function, Args}} = Birth}, Rest} when length(Args) =< ?MAX_ARITY ->
            {Shared, Own} = share(Args, Before, 0),
            Item = {birth, Birth#{signature := {Module, Function, Shared}}},
            fold(Fun, Fun(Item, Acc), Rest, Atoms, {subtract(1, Left), subtract(?BIRTH_WORDS + Own, Words)}, Shared);
        {ok, Item, Rest} ->
            fold(Fun, Fun(Item, Acc), Rest, Atoms, {subtract(1, Left), subtract(?RECORD_WORDS + erts_debug:flat_size(Item), Words)},
                 Before);
        {malformed, _} = Malformed -> Malformed
    end.

%% Replaces arguments by equal ones of another process. Also returns the words of the others.
share([], _, Words) -> {[], Words};
share([Arg | Args], [Arg1 | Before], Words) when Arg =:= Arg1 ->
    {Shared, Own} = share(Args, Before, Words + 2),
    {[Arg1 | Shared], Own};
share([Arg | Args], Before, Words) ->
    {Shared, Own} = share(Args, tail(Before), Words + 2 + erts_debug:flat_size(Arg)),
    {[Arg | Shared], Own}.

tail([_ | Rest]) -> Rest;
tail(_) -> [].

subtract(_, infinity) -> infinity;
subtract(N, Left) -> Left - N.

record(<<1, Rest/binary>>, Atoms) ->
    maybe
        {[Id, Parent, Place, Size], Rest1} ?= witness_log_recording_number:several(4, Rest),
        true ?= Id > 0,
        <<External:Size/binary, Rest2/binary>> ?= Rest1,
        {ok, {Pid, Signature}} ?= witness_log_recording_term:decode(External, Atoms),
        {ok, {birth, #{id => Id, parent => Parent, place => Place, pid => Pid, signature => Signature}}, Rest2}
    else
        {refused, What} -> {malformed, What};
        _ -> {malformed, ~"a birth is damaged"}
    end;
record(<<2, Rest/binary>>, _) ->
    case witness_log_recording_number:read(Rest) of
        {Id, Rest1} when Id > 0 -> {ok, {ended, Id}, Rest1};
        _ -> {malformed, ~"an end is damaged"}
    end;
record(<<3, Rest/binary>>, Atoms) ->
    maybe
        {[Id, Size], Rest1} ?= witness_log_recording_number:several(2, Rest),
        true ?= Id > 0,
        <<External:Size/binary, Rest2/binary>> ?= Rest1,
        {ok, Signature} ?= witness_log_recording_term:decode(External, Atoms),
        {ok, {signature, Id, Signature}, Rest2}
    else
        {refused, What} -> {malformed, What};
        _ -> {malformed, ~"a signature is damaged"}
    end;
record(<<4, Rest/binary>>, _) ->
    case witness_log_recording_number:read(Rest) of
        {Id, Rest1} when Id > 0 -> {ok, {early, Id}, Rest1};
        _ -> {malformed, ~"an early birth is damaged"}
    end;
record(<<5, Rest/binary>>, _) ->
    case witness_log_recording_number:several(2, Rest) of
        {[Id, Time], Rest1} when Id > 0 -> {ok, {born_at, Id, Time}, Rest1};
        _ -> {malformed, ~"the time of a birth is damaged"}
    end;
record(<<Kind, _/binary>>, _) ->
    {malformed, [~"no record has the kind ", integer_to_binary(Kind)]}.
