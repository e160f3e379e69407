-module(witness_log_write).
-moduledoc """
Terms as text in Erlang's notation, on one line and in full, as `witness_log_term` reads it.
""".

-export([term/1, list/1, quote/1]).

-define(IS_LOWER(C), (C >= $a andalso C =< $z)).
-define(IS_UPPER(C), (C >= $A andalso C =< $Z)).
-define(IS_DIGIT(C), (C >= $0 andalso C =< $9)).
-define(IS_NAME(C), (?IS_LOWER(C) orelse ?IS_UPPER(C) orelse ?IS_DIGIT(C) orelse C =:= $_ orelse C =:= $@)).
%% A character that is written unchanged between quotes.
-define(IS_SHOWN(C), (C >= $\s andalso C < 16#7F orelse C >= 16#A0 andalso C < 16#D800 orelse ?IS_HIGH(C))).
-define(IS_HIGH(C), (C > 16#DFFF andalso C =< 16#10FFFF)).
-define(IS_NAMED(C), (C =:= $\n orelse C =:= $\t orelse C =:= $\r)).

-doc "A term, as UTF-8.".
-spec term(term()) -> iodata().
term(Atom) when is_atom(Atom) -> name(atom_to_binary(Atom));
term(Integer) when is_integer(Integer) -> integer_to_binary(Integer);
term(Pid) when is_pid(Pid) -> witness_event_term:identifier(Pid);
term(Tuple) when is_tuple(Tuple) -> [${, list(tuple_to_list(Tuple)), $}];
term([]) -> ~"[]";
term(List) when is_list(List) ->
    case is_string(List) of
        true -> quote(List);
        false -> [$[, list(List), $]]
    end;
term(Binary) when is_bitstring(Binary) -> bits(Binary);
term(Float) when is_float(Float) -> float_to_binary(Float, [short]);
term(Map) when is_map(Map) -> [~"#{", pairs(maps:next(maps:iterator(Map)), []), $}];
term(Reference) when is_reference(Reference) -> witness_event_term:identifier(Reference);
term(Port) when is_port(Port) -> witness_event_term:identifier(Port);
term(Fun) when is_function(Fun) -> function(Fun);
%% Native records, since OTP 29: no test of OTP 27 tells them from a term of a later kind.
term(Other) -> [~"#Record<", quote(unicode:characters_to_list(io_lib:format("~0tp", [Other]))), $>].

-doc "Terms with commas between them, and the tail of an improper list.".
-spec list(maybe_improper_list()) -> iodata().
list([]) -> [];
list([Term]) -> term(Term);
list([Term | Tail]) when is_list(Tail) -> [term(Term), $, | list(Tail)];
list([Term | Tail]) -> [term(Term), $| | term(Tail)].

pairs(none, _) -> [];
pairs({Key, Value, Iterator}, Before) -> [Before, term(Key), ~"=>", term(Value) | pairs(maps:next(Iterator), $,)].

name(<<C, Rest/binary>> = Name) when ?IS_LOWER(C) ->
    case is_name(Rest) andalso Name =/= ~"fun" of
        true -> Name;
        false -> between($', characters(Name))
    end;
name(Name) ->
    between($', characters(Name)).

characters(Name) -> [C || <<C/utf8>> <= Name].

is_name(<<C, Rest/binary>>) when ?IS_NAME(C) -> is_name(Rest);
is_name(Rest) -> Rest =:= <<>>.

is_string([C | Chars]) when is_integer(C), ?IS_SHOWN(C); ?IS_NAMED(C) -> Chars =:= [] orelse is_string(Chars);
is_string(_) -> false.

-doc "A string of any characters.".
-spec quote([char()]) -> iolist().
quote(Chars) -> between($", Chars).

between(Quote, Chars) -> [Quote, << <<(escape(C, Quote))/binary>> || C <- Chars >>, Quote].

escape(Quote, Quote) -> <<$\\, Quote>>;
escape($\\, _) -> ~"\\\\";
escape($\n, _) -> ~"\\n";
escape($\t, _) -> ~"\\t";
escape($\r, _) -> ~"\\r";
escape(C, _) when ?IS_SHOWN(C) -> <<C/utf8>>;
escape(C, _) -> <<"\\x{", (integer_to_binary(C, 16))/binary, "}">>.

%% Remaining bits that are not a whole byte are a separate segment.
bits(<<>>) -> ~"<<>>";
bits(Binary) when is_binary(Binary) ->
    case is_text(Binary) of
        ascii -> [~"<<\"", Binary, ~"\">>"];
        {text, Chars} -> [~"<<", quote(Chars), ~"/utf8>>"];
        no -> [~"<<", segments(Binary), ~">>"]
    end;
bits(Bits) ->
    Whole = bit_size(Bits) div 8,
    Left = bit_size(Bits) rem 8,
    <<Bytes:Whole/binary, Last:Left>> = Bits,
    Before = [[segments(Bytes), $,] || Bytes =/= <<>>],
    [~"<<", Before, integer_to_binary(Last), $:, integer_to_binary(Left), ~">>"].

segments(Bytes) -> lists:join($,, [integer_to_binary(Byte) || <<Byte>> <= Bytes]).

is_text(Binary) -> is_text(Binary, Binary).

is_text(<<C, Rest/binary>>, Binary) when C >= $\s, C < 16#7F, C =/= $", C =/= $\\ -> is_text(Rest, Binary);
is_text(<<>>, _) -> ascii;
is_text(_, Binary) ->
    case unicode:characters_to_list(Binary) of
        Chars when is_list(Chars) ->
            case is_string(Chars) of
                true -> {text, Chars};
                false -> no
            end;
        _ -> no
    end.

function(Fun) ->
    case erlang:fun_info(Fun, type) of
        {type, external} ->
            {module, Module} = erlang:fun_info(Fun, module),
            {name, Name} = erlang:fun_info(Fun, name),
            {arity, Arity} = erlang:fun_info(Fun, arity),
            [~"fun ", term(Module), $:, term(Name), $/, integer_to_binary(Arity)];
        {type, local} ->
            << <<C/utf8>> || C <- erlang:fun_to_list(Fun) >>
    end.
