-module(witness_monitor_bloom).
-moduledoc """
A set of terms in bounded memory that may also have terms that were never put in (B. Bloom, *Space/time trade-offs in hash coding with
allowable errors*, CACM 13(7), 1970). Pure.

A term has three bits of one word (F. Putze, P. Sanders, J. Singler, *Cache-, hash- and space-efficient Bloom filters*, WEA 2007), so that it
costs one update of a map. There are 131,072 words of 58 bits, which take four megabytes at most. With 100,000 terms the set has one of
3,000 other terms, with a million one of 23, with three millions one of three. What was put in is in it for ever. Terms that are
equal by `=:=` are the same.
""".

-export([new/0, put/2, has/2, is_valid/1]).
-export_type([bloom/0]).

-define(WORDS, (1 bsl 17)).
%% So many bits are a number that needs no memory of its own.
-define(BITS, 58).

-doc "The words that are not zero. Plain data, and the same in each VM.".
-type bloom() :: #{Word :: non_neg_integer() => Bits :: pos_integer()}.

-spec new() -> bloom().
new() -> #{}.

-spec put(term(), bloom()) -> bloom().
put(Term, Bloom) ->
    Word = word(Term),
    Bits = bits(Term),
    case Bloom of
        #{Word := Before} when Before band Bits =:= Bits -> Bloom;
        #{Word := Before} -> Bloom#{Word := Before bor Bits};
        #{} -> Bloom#{Word => Bits}
    end.

-spec has(term(), bloom()) -> boolean().
has(Term, Bloom) ->
    Word = word(Term),
    case Bloom of
        #{Word := Before} ->
            Bits = bits(Term),
            Before band Bits =:= Bits;
        #{} -> false
    end.

-doc "Whether a term is such a set.".
-spec is_valid(bloom() | term()) -> boolean().
is_valid(Bloom) when is_map(Bloom) ->
    lists:all(fun({Word, Bits}) -> is_integer(Word) andalso is_integer(Bits) andalso Bits > 0 end, maps:to_list(Bloom));
is_valid(_) -> false.

word(Term) -> erlang:phash2(Term, ?WORDS).

%% A hash of something else, so that it does not depend on the word.
bits(Term) ->
    Hash = erlang:phash2([Term], ?BITS * ?BITS * ?BITS),
    (1 bsl (Hash rem ?BITS)) bor (1 bsl (Hash div ?BITS rem ?BITS)) bor (1 bsl (Hash div (?BITS * ?BITS))).
