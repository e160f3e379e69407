-module(witness_event_alias).
-moduledoc """
Which process an alias belongs to.

A reply to a call of OTP goes to an alias, which is a reference. The VM puts the identifier of the process that made an alias into
the reference, so that the message finds its way (`ErtsPidRef` in the VM's `global.h`). The external format shows its words, and
`#Ref<0.0.1283.1.2.3>` has them as its second and third number: the alias belongs to `<0.10.0>`.

The identifier in the reference is the VM's own, in which the bits of the process's number are permuted (`erl_ptab.h`).
With a table of `2^K` processes (`+P`), the lowest `K - 3` bits are moved up by three, and the next three below them. `K` of another VM
is not known. Then only those processes are named for which every `K` from the default on gives the same number.
""".

-export([owner/1, foreign_owner/1]).

-define(NEW_PID_EXT, 88).
-define(NEWER_REFERENCE_EXT, 90).
-define(SMALL_ATOM_UTF8_EXT, 119).
-define(ATOM_UTF8_EXT, 118).
%% The references of aliases have five words, all others have fewer. 32-bit VMs, where they have four, are not supported.
-define(ALIAS_WORDS, 5).
-define(PID_TAG, 3).
-define(CACHE_LINE_BITS, 3).      % a cache line has eight entries of the VM's table
-define(DEFAULT_LIMIT_BITS, 20).  % the default of +P is 1,048,576
-define(ID_BITS, 28).             % of the process's number; the rest is its serial

-doc """
The process that made an alias. `none` for references that are no aliases, and for those of another VM if the process's number
depends on the option `+P` of that VM. The result is exact if the alias is of this VM.
""".
-spec owner(reference()) -> {ok, pid()} | none.
owner(Reference) when node(Reference) =:= node() ->
    %% The layout is not documented. It is used only if an alias of this process is read correctly.
    Own = alias(),
    true = unalias(Own),
    Bits = limit_bits(erlang:system_info(process_limit)),
    case owner(Own, Bits) =:= {ok, self()} of
        true -> owner(Reference, Bits);
        false -> none
    end;
owner(Reference) -> foreign_owner(Reference).

-doc """
The same for an alias that is not of this VM, although its node may have the same name: one of a log. The other VM is assumed to
have at least the default of `+P`.
""".
-spec foreign_owner(reference()) -> {ok, pid()} | none.
foreign_owner(Reference) -> owner(Reference, unknown).

owner(Reference, LimitBits) ->
    case term_to_binary(Reference) of
        <<131, ?NEWER_REFERENCE_EXT, ?ALIAS_WORDS:16, ?SMALL_ATOM_UTF8_EXT, Size, Name:Size/binary, Rest/binary>> ->
            owner(<<?SMALL_ATOM_UTF8_EXT, Size, Name/binary>>, Rest, LimitBits);
        <<131, ?NEWER_REFERENCE_EXT, ?ALIAS_WORDS:16, ?ATOM_UTF8_EXT, Size:16, Name:Size/binary, Rest/binary>> ->
            owner(<<?ATOM_UTF8_EXT, Size:16, Name/binary>>, Rest, LimitBits);
        _ -> none
    end.

owner(Node, <<Creation:32, _:96, Low:32, High:32>>, LimitBits) when Low band 15 =:= ?PID_TAG ->
    case number(((High bsl 32) bor Low) bsr 4, LimitBits) of
        {ok, Number} ->
            Id = Number band ((1 bsl ?ID_BITS) - 1),
            {ok, binary_to_term(<<131, ?NEW_PID_EXT, Node/binary, Id:32, (Number bsr ?ID_BITS):32, Creation:32>>)};
        none -> none
    end;
owner(_, _, _) -> none.

%% Undoes the permutation.
number(Internal, unknown) ->
    Id = Internal band ((1 bsl ?ID_BITS) - 1),
    case Id band ((1 bsl ?CACHE_LINE_BITS) - 1) =:= 0 andalso Id < (1 bsl ?DEFAULT_LIMIT_BITS) of
        true -> {ok, (Internal - Id) bor (Id bsr ?CACHE_LINE_BITS)};
        false -> none
    end;
number(Internal, Bits) ->
    Index = Internal band ((1 bsl Bits) - 1),
    Middle = Index band ((1 bsl ?CACHE_LINE_BITS) - 1),
    {ok, (Internal - Index) bor (Middle bsl (Bits - ?CACHE_LINE_BITS)) bor (Index bsr ?CACHE_LINE_BITS)}.

%% The VM rounds its limit up to a power of two. At the largest one it reports one less.
limit_bits(Limit) -> length(integer_to_list(Limit - 1, 2)).
