-module(witness_log_recording_process).
-moduledoc """
Births and ends of processes in the file `processes`, as bytes (`docs/internals/record.md`).
""".

-export([encode/1, decode/2]).

-export_type([item/0, birth/0]).

-doc """
A process that was born: its id; that of the process that spawned it (0: none that is recorded), whose child it is with
this number (0 is its first one); its pid in the recorded VM; what it was spawned with.
""".
-type birth() :: #{id := pos_integer(), parent := non_neg_integer(), place := non_neg_integer(), pid := term(),
                   signature := term()}.

-doc """
A record of the file. `signature`: what a process that was spawned with a fun is called, which only the recorded VM knows;
`early`: something that it did before what is kept is missing, in a recording that begins late.
""".
-type item() :: {birth, birth()} | {ended | early, Id :: pos_integer()} | {signature, Id :: pos_integer(), term()}.

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
encode({signature, Id, Signature}) ->
    External = term_to_binary(Signature),
    <<3, (leb(Id))/binary, (leb(byte_size(External)))/binary, External/binary>>.

leb(N) -> witness_log_recording_number:leb(N).

-doc "The records of a block.".
-spec decode(binary(), witness_log_atoms:atoms()) -> {ok, [item()]} | {malformed, unicode:chardata()}.
decode(Bytes, Atoms) -> decode(Bytes, Atoms, []).

decode(<<>>, _, Records) -> {ok, lists:reverse(Records)};
decode(<<1, Rest/binary>>, Atoms, Records) ->
    maybe
        {[Id, Parent, Place, Size], Rest1} ?= witness_log_recording_number:several(4, Rest),
        true ?= Id > 0,
        <<External:Size/binary, Rest2/binary>> ?= Rest1,
        {ok, {Pid, Signature}} ?= witness_log_recording_term:decode(External, Atoms),
        Birth = #{id => Id, parent => Parent, place => Place, pid => Pid, signature => Signature},
        decode(Rest2, Atoms, [{birth, Birth} | Records])
    else
        {refused, What} -> {malformed, What};
        _ -> {malformed, ~"a birth is damaged"}
    end;
decode(<<2, Rest/binary>>, Atoms, Records) ->
    case witness_log_recording_number:read(Rest) of
        {Id, Rest1} when Id > 0 -> decode(Rest1, Atoms, [{ended, Id} | Records]);
        _ -> {malformed, ~"an end is damaged"}
    end;
decode(<<3, Rest/binary>>, Atoms, Records) ->
    maybe
        {[Id, Size], Rest1} ?= witness_log_recording_number:several(2, Rest),
        true ?= Id > 0,
        <<External:Size/binary, Rest2/binary>> ?= Rest1,
        {ok, Signature} ?= witness_log_recording_term:decode(External, Atoms),
        decode(Rest2, Atoms, [{signature, Id, Signature} | Records])
    else
        {refused, What} -> {malformed, What};
        _ -> {malformed, ~"a signature is damaged"}
    end;
decode(<<4, Rest/binary>>, Atoms, Records) ->
    case witness_log_recording_number:read(Rest) of
        {Id, Rest1} when Id > 0 -> decode(Rest1, Atoms, [{early, Id} | Records]);
        _ -> {malformed, ~"an early birth is damaged"}
    end;
decode(<<Kind, _/binary>>, _, _) ->
    {malformed, [~"no record has the kind ", integer_to_binary(Kind)]}.
