-module(witness_event_atom_table).
-moduledoc """
The table of atoms of object code: the chunk `AtU8`. All places in the code that name a module or a function name an atom of this
table, so a change of an atom there renames them.

Works on texts: an atom that does not exist on this node need not be created.
""".

-export([decode/1, encode/1]).

-doc "The texts of the atoms. The first atom is the module's own name.".
-spec decode(binary()) -> [binary()].
%% OTP 28 and later write a negative count, and lengths that may take more than a byte.
decode(<<Count:32/signed, Rest/binary>>) when Count < 0 -> decode_long(-Count, Rest);
decode(<<Count:32, Rest/binary>>) -> decode_short(Count, Rest).

decode_short(0, _) -> [];
decode_short(Count, <<Length, Text:Length/binary, Rest/binary>>) -> [Text | decode_short(Count - 1, Rest)].

decode_long(0, _) -> [];
decode_long(Count, <<Length:4, 0:1, _:3, Text:Length/binary, Rest/binary>>) ->
    [Text | decode_long(Count - 1, Rest)];
decode_long(Count, <<High:3, 0:1, 1:1, _:3, Low, Rest/binary>>) ->
    Length = High bsl 8 bor Low,
    <<Text:Length/binary, Others/binary>> = Rest,
    [Text | decode_long(Count - 1, Others)].

-doc "The table in its oldest form, which every release reads. An atom of more than 255 bytes is only for releases that write such atoms.".
-spec encode([binary()]) -> binary().
encode(Texts) ->
    Count = length(Texts),
    case lists:all(fun(Text) -> byte_size(Text) < 256 end, Texts) of
        true -> <<Count:32, (<< <<(byte_size(Text)), Text/binary>> || Text <- Texts >>)/binary>>;
        false ->
            <<(-Count):32, (<< <<(encode_length(byte_size(Text)))/binary, Text/binary>> || Text <- Texts >>)/binary>>
    end.

encode_length(Length) when Length < 16 -> <<Length:4, 0:4>>;
encode_length(Length) -> <<(Length bsr 8):3, 2#01000:5, (Length band 255)>>.
