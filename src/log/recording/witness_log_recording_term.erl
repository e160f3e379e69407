-module(witness_log_recording_term).
-moduledoc """
Terms of a recording, which are data from outside, in the VM's external format.

`binary_to_term` alone is unsuitable for such data. Without `safe` it creates atoms without bound. With `safe` a recording is
unreadable in a VM that does not run its program. In both cases a local function takes an entry of a table that is
never freed. So the bytes are walked first. The walk creates the names in the term, as far as the bound on atoms
allows, and refuses everything that no VM writes: unknown tags, compressed terms, references to atom caches. Only
complete terms are left for the VM.

The walk needs no stack: it counts the terms that are still to come. So the depth of a term costs nothing, and as each
term has at least one byte, the walk ends. It also counts the memory of the terms, which may be many times their bytes, and
refuses terms above 512 MiB.
""".

-export([decode/2]).

-export_type([refusal/0]).

%% Limit in words of a term: an empty list in a list takes 16 times its single byte, which compresses to almost nothing.
-define(MAX_WORDS, 67_108_864).

-doc "Why the bytes are not a term, for people.".
-type refusal() :: {refused, unicode:chardata()}.

-doc "The term of these bytes, all of them.".
-spec decode(binary(), witness_log_atoms:atoms()) -> {ok, term()} | refusal().
decode(<<131, External/binary>> = Bytes, Atoms) ->
    case walk(External, 1, ?MAX_WORDS, Atoms) of
        ok ->
            try
                %% Not `safe': that refuses functions of modules that are not loaded, although the walk has counted them.
                {ok, witness_event_external:decode(Bytes)}
            catch
                error:_ -> malformed()
            end;
        {refused, _} = Refused -> Refused
    end;
decode(_, _) ->
    malformed().

malformed() -> {refused, ~"what should be a term is none"}.

%% `Left' terms are still to come; `Room' words remain for their memory.
walk(_, _, Room, _) when Room < 0 -> {refused, ~"a term that would take more than 512 MiB of memory"};
walk(<<>>, 0, _, _) -> ok;
walk(_, 0, _, _) -> malformed();
walk(<<97, _, Rest/binary>>, Left, Room, Atoms) -> walk(Rest, Left - 1, Room, Atoms);
walk(<<98, _:4/binary, Rest/binary>>, Left, Room, Atoms) -> walk(Rest, Left - 1, Room, Atoms);
walk(<<70, _:8/binary, Rest/binary>>, Left, Room, Atoms) -> walk(Rest, Left - 1, Room - 2, Atoms);
walk(<<104, Arity, Rest/binary>>, Left, Room, Atoms) -> walk(Rest, Left - 1 + Arity, Room - 1 - Arity, Atoms);
walk(<<105, Arity:32, Rest/binary>>, Left, Room, Atoms) -> walk(Rest, Left - 1 + Arity, Room - 1 - Arity, Atoms);
walk(<<106, Rest/binary>>, Left, Room, Atoms) -> walk(Rest, Left - 1, Room, Atoms);
walk(<<107, Size:16, _:Size/binary, Rest/binary>>, Left, Room, Atoms) -> walk(Rest, Left - 1, Room - 2 * Size, Atoms);
walk(<<108, Length:32, Rest/binary>>, Left, Room, Atoms) -> walk(Rest, Left + Length, Room - 2 * Length, Atoms);
walk(<<109, Size:32, _:Size/binary, Rest/binary>>, Left, Room, Atoms) -> walk(Rest, Left - 1, Room - words(Size), Atoms);
walk(<<77, Size:32, _, _:Size/binary, Rest/binary>>, Left, Room, Atoms) -> walk(Rest, Left - 1, Room - words(Size), Atoms);
walk(<<110, Size, _, _:Size/binary, Rest/binary>>, Left, Room, Atoms) -> walk(Rest, Left - 1, Room - words(Size), Atoms);
walk(<<111, Size:32, _, _:Size/binary, Rest/binary>>, Left, Room, Atoms) -> walk(Rest, Left - 1, Room - words(Size), Atoms);
walk(<<116, Pairs:32, Rest/binary>>, Left, Room, Atoms) -> walk(Rest, Left - 1 + 2 * Pairs, Room - 5 - 3 * Pairs, Atoms);
%% Native records: whether it is exported, the module, the name, the names of the fields and their values.
walk(<<67, Fields:32, _, Rest/binary>>, Left, Room, Atoms) -> walk(Rest, Left + 1 + 2 * Fields, Room - 3 - 2 * Fields, Atoms);
%% In processes, ports and references the node comes first, then numbers.
walk(<<88, Rest/binary>>, Left, Room, Atoms) -> walk_named(Rest, 12, Left, Room, Atoms);
walk(<<89, Rest/binary>>, Left, Room, Atoms) -> walk_named(Rest, 8, Left, Room, Atoms);
walk(<<120, Rest/binary>>, Left, Room, Atoms) -> walk_named(Rest, 12, Left, Room, Atoms);
walk(<<90, Numbers:16, Rest/binary>>, Left, Room, Atoms) -> walk_named(Rest, 4 + 4 * Numbers, Left, Room, Atoms);
walk(<<112, Size:32, Rest/binary>>, Left, Room, Atoms) when Size >= 4 -> walk_local_fun(Rest, Size - 4, Left, Room, Atoms);
walk(<<113, Rest/binary>>, Left, Room, Atoms) -> walk_external(Rest, Left, Room, Atoms);
walk(Bytes, Left, Room, Atoms) ->
    case atom(Bytes, Atoms) of
        {ok, _, Rest} -> walk(Rest, Left - 1, Room, Atoms);
        {refused, _} = Refused -> Refused
    end.

%% Words of a binary or a large integer of so many bytes.
words(Size) -> 8 + Size div 8.

atom(<<119, Size, Name:Size/binary, Rest/binary>>, Atoms) -> intern(Name, Rest, Atoms);
atom(<<118, Size:16, Name:Size/binary, Rest/binary>>, Atoms) -> intern(Name, Rest, Atoms);
atom(<<100, Size:16, Name:Size/binary, Rest/binary>>, Atoms) -> intern(latin1(Name), Rest, Atoms);
atom(<<115, Size, Name:Size/binary, Rest/binary>>, Atoms) -> intern(latin1(Name), Rest, Atoms);
atom(_, _) -> malformed().

latin1(Name) -> unicode:characters_to_binary(Name, latin1).

%% Bytes that are not UTF-8 are not a name, and must not count.
intern(Name, Rest, Atoms) ->
    case unicode:characters_to_binary(Name) of
        Name ->
            case witness_log_atoms:intern(Name, Atoms) of
                {refused, _} = Refused -> Refused;
                Atom -> {ok, Atom, Rest}
            end;
        _ -> malformed()
    end.

walk_named(Bytes, Behind, Left, Room, Atoms) ->
    case atom(Bytes, Atoms) of
        {ok, _, <<_:Behind/binary, Rest/binary>>} -> walk(Rest, Left - 1, Room - words(Behind), Atoms);
        {ok, _, _} -> malformed();
        {refused, _} = Refused -> Refused
    end.

walk_external(Bytes, Left, Room, Atoms) ->
    maybe
        {ok, Module, Rest} ?= atom(Bytes, Atoms),
        {ok, Function, <<97, Arity, Rest1/binary>>} ?= atom(Rest, Atoms),
        true ?= is_function(witness_log_atoms:function(Module, Function, Arity, Atoms)),
        walk(Rest1, Left - 1, Room - 2, Atoms)
    else
        {refused, _} = Refused -> Refused;
        false -> refused_function();
        _ -> malformed()
    end.

%% A local function: the VM keeps its entry in the table of its module forever, so it counts as a name, too. After
%% it come the module, two integers, the process that made it, and its variables.
walk_local_fun(Bytes, Size, Left, Room, Atoms) when byte_size(Bytes) >= Size ->
    maybe
        <<_Arity, Place:20/binary, Variables:32, Rest/binary>> ?= Bytes,
        {ok, Module, _} ?= atom(Rest, Atoms),
        Key = <<"fun ", (binary:encode_hex(erlang:md5([atom_to_binary(Module), ~":", Place])))/binary>>,
        true ?= is_atom(witness_log_atoms:intern(Key, Atoms)),
        walk(Rest, Left + 3 + Variables, Room - 8 - Variables, Atoms)
    else
        {refused, _} = Refused -> Refused;
        false -> refused_function();
        _ -> malformed()
    end;
walk_local_fun(_, _, _, _, _) ->
    malformed().

refused_function() -> {refused, ~"more functions and atoms that are not known than allowed"}.
