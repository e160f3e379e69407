-module(witness_event_term).
-moduledoc """
Terms of the system as text for people: short, readable, and harmless to terminals.

The text is that of the Erlang shell, with guarantees that `io_lib` does not give together:

- it never has more characters (code points) than the limit; longer text ends in `...`;
- the limit bounds the work, whatever the size of the term: of a map with a million keys, or a list within a thousand
  lists, only the beginning is read;
- it is UTF-8 on one line; every character that moves the cursor, starts an escape sequence, is invisible or
  changes the direction of text becomes an escape such as `\e` or `\x{202E}`;
- no term makes it fail.

A list is shown as a string if its shown part is printable for this VM (`io:printable_range/0`), a binary if
its shown part is printable UTF-8. Maps of up to 64 keys are sorted by key. Integers of more than some 900 digits
are shown in base 16. If the text is not cut, and has no processes, ports, references or local functions, Erlang reads it
back as the same term.
""".

-export([format/2, call/2, function/4, text/2, identifier/1]).

%% Finished text; a binary is ASCII, so that its size is its number of characters.
-type chunk() :: binary() | [char()].

%% The work that remains, in order.
-type work() :: [
    {text, chunk()}
  | {term, term()}
  | {rest, term(), Close :: chunk()}                       % what follows an element of a list, and the list's end
  | {tuple, tuple(), Next :: pos_integer()}
  | {pairs, maps:iterator(), Before :: chunk()}
  | {bits, bitstring(), Before :: chunk()}
].

-define(SORTED_KEYS, 64).
-define(DECIMAL_BYTES, 375).

%% Characters that have an escape of one letter.
-define(IS_NAMED(C), (C >= $\b andalso C =< $\r orelse C =:= $\e)).

%% Characters that take no place or change the direction of others.
-define(IS_HIDDEN(C),
    (C =:= 16#AD orelse C =:= 16#61C orelse C =:= 16#180E orelse C >= 16#200B andalso C =< 16#200F
        orelse C >= 16#2028 andalso C =< 16#202E orelse C >= 16#2060 andalso C =< 16#206F orelse C =:= 16#FEFF
        orelse C >= 16#FFF9 andalso C =< 16#FFFB orelse C >= 16#E0000 andalso C =< 16#E0FFF)).

-define(IS_CONTROL(C), (C < 16#20 orelse C >= 16#7F andalso C < 16#A0)).

-doc "A term as at most `Limit` characters.".
-spec format(term(), Limit :: non_neg_integer()) -> binary().
format(Term, Limit) -> write([{term, Term}], Limit).

-doc "A call, `m:f(A1,A2)`, or `MyApp.Server.init(A1)` for a module of Elixir.".
-spec call({module(), atom(), Args :: [term()]}, Limit :: non_neg_integer()) -> binary().
call({Module, Function, Args}, Limit) ->
    case are_unknown(Args) of
        true -> function(Module, Function, length(Args), Limit);
        false -> write(name(Module, Function) ++ [{text, ~"("} | elements(Args, ~")")], Limit)
    end.

%% Whether all arguments are unknown (`witness_event_signature:unknown/1`).
are_unknown(['_']) -> true;
are_unknown(['_' | Args]) -> are_unknown(Args);
are_unknown(_) -> false.

-doc "A function, `m:f/1`, or `MyApp.Server.init/1` for a module of Elixir.".
-spec function(module(), atom(), arity(), Limit :: non_neg_integer()) -> binary().
function(Module, Function, Arity, Limit) ->
    write(name(Module, Function) ++ [{text, ~"/"}, {term, Arity}], Limit).

-doc "Text of the system without quotes, with harmful characters escaped. A binary that is not text is shown as a binary.".
-spec text(binary(), Limit :: non_neg_integer()) -> binary().
text(Text, Limit) ->
    case is_text(Text, Limit) of
        true -> write([{text, escape(unicode:characters_to_list(prefix(Text, Limit)), none)}], Limit);
        false -> format(Text, Limit)
    end.

%% A stack of work instead of recursion: the depth of a term costs nothing. Every step writes something or is followed
%% by one that does, and no step reads more of a term than can still be written. So the limit bounds the work.
-spec write(work(), Limit :: non_neg_integer()) -> binary().
write(Work, Limit) -> write(Work, Limit, Limit, []).

write([], _, _, Written) ->
    encode(lists:reverse(Written));
write([{text, Text} | Work], Left, Limit, Written) ->
    case Left - size_of(Text) of
        Less when Less >= 0 -> write(Work, Less, Limit, [Text | Written]);
        _ -> cut(lists:reverse(Written, [Text]), Limit)
    end;
write([Item | Work], Left, Limit, Written) ->
    write(expand(Item, Left) ++ Work, Left, Limit, Written).

size_of(Text) when is_binary(Text) -> byte_size(Text);
size_of(Text) -> length(Text).

cut(Written, Limit) ->
    Room = max(Limit - 3, 0),
    Kept = lists:sublist(unicode:characters_to_list(Written), Room),
    encode([Kept, lists:duplicate(Limit - Room, $.)]).

%% Only Unicode is written.
encode(Text) ->
    <<_/binary>> = unicode:characters_to_binary(Text).

%% An item of work as its parts.
expand({term, Term}, Left) -> term(Term, Left);
expand({rest, [], Close}, _) -> [{text, Close}];
expand({rest, [Head | Tail], Close}, _) -> [{text, ~","}, {term, Head}, {rest, Tail, Close}];
expand({rest, Tail, Close}, _) -> [{text, ~"|"}, {term, Tail}, {text, Close}];
expand({tuple, Tuple, Next}, _) when Next > tuple_size(Tuple) -> [{text, ~"}"}];
expand({tuple, Tuple, 1}, _) -> [{term, element(1, Tuple)}, {tuple, Tuple, 2}];
expand({tuple, Tuple, Next}, _) -> [{text, ~","}, {term, element(Next, Tuple)}, {tuple, Tuple, Next + 1}];
expand({pairs, Iterator, Before}, _) ->
    case maps:next(Iterator) of
        {Key, Value, Next} ->
            [{text, Before}, {term, Key}, {text, ~" => "}, {term, Value}, {pairs, Next, ~","}];
        none ->
            [{text, ~"}"}]
    end;
expand({bits, <<>>, _}, _) ->
    [{text, ~">>"}];
expand({bits, <<Byte, Rest/bitstring>>, Before}, _) ->
    [{text, Before}, {term, Byte}, {bits, Rest, ~","}];
expand({bits, Rest, Before}, _) ->
    Size = bit_size(Rest),
    <<Bits:Size>> = Rest,
    [{text, Before}, {term, Bits}, {text, ~":"}, {term, Size}, {text, ~">>"}].

term(Atom, _) when is_atom(Atom) -> [{text, atom(Atom)}];
term(Integer, Left) when is_integer(Integer) -> [{text, integer(Integer, Left)}];
term(Float, _) when is_float(Float) -> [{text, float_to_binary(Float, [short])}];
term([], _) -> [{text, ~"[]"}];
term(List, Left) when is_list(List) ->
    case is_string(List, Left) of
        true -> [{text, ~"\""}, {text, escape(prefix(List, Left), $")}, {text, ~"\""}];
        false -> [{text, ~"["} | elements(List, ~"]")]
    end;
term(Tuple, _) when is_tuple(Tuple) -> [{text, ~"{"}, {tuple, Tuple, 1}];
term(Map, _) when is_map(Map) -> [{text, ~"#{"}, {pairs, iterator(Map), ~""}];
term(<<>>, _) -> [{text, ~"<<>>"}];
term(Bits, Left) when is_bitstring(Bits) ->
    case is_binary(Bits) andalso is_text(Bits, Left) of
        true -> [{text, ~"<<\""} | quoted(unicode:characters_to_list(prefix(Bits, Left)))];
        false -> [{text, ~"<<"}, {bits, Bits, ~""}]
    end;
term(Fun, _) when is_function(Fun) -> [{text, escape(erlang:fun_to_list(Fun), none)}];
term(Identifier, _) -> [{text, identifier(Identifier)}].

-doc """
A process, port or reference as text. If it was read from a log, where a number identifies another node, the result is the text
of the log: its node is `NUMBER@log`.
""".
-spec identifier(pid() | port() | reference()) -> string().
identifier(Pid) when is_pid(Pid) -> numbered(Pid, pid_to_list(Pid));
identifier(Port) when is_port(Port) -> numbered(Port, port_to_list(Port));
identifier(Reference) when is_reference(Reference) -> numbered(Reference, ref_to_list(Reference)).

numbered(Identifier, Text) when node(Identifier) =:= node() -> Text;
numbered(Identifier, Text) ->
    case string:split(atom_to_list(node(Identifier)), "@") of
        [[C | _] = Number, "log"] when C >= $1, C =< $9 ->
            [Open, Behind] = string:split(Text, "<"),
            [_, Rest] = string:split(Behind, "."),
            Open ++ "<" ++ Number ++ "." ++ Rest;
        _ -> Text
    end.

%% The elements of a list, which may be improper, and its end.
elements([Head | Tail], Close) -> [{term, Head}, {rest, Tail, Close}];
elements(Rest, Close) -> [{rest, Rest, Close}].

iterator(Map) when map_size(Map) =< ?SORTED_KEYS -> maps:iterator(Map, ordered);
iterator(Map) -> maps:iterator(Map).

quoted(Chars) ->
    Close = case lists:any(fun(Char) -> Char > 16#7F end, Chars) of
        true -> ~"\"/utf8>>";
        false -> ~"\">>"
    end,
    [{text, escape(Chars, $")}, {text, Close}].

%% The time for decimal digits grows with the square of the size, so large integers are shown in base 16.
integer(Integer, Left) ->
    case erlang:external_size(Integer) =< ?DECIMAL_BYTES of
        true -> integer_to_binary(Integer);
        false -> hexadecimal(Integer, Left)
    end.

hexadecimal(Integer, Left) when Integer < 0 -> [$- | hexadecimal(-Integer, Left)];
hexadecimal(Integer, Left) ->
    Bytes = binary:encode_unsigned(Integer),
    Digits = binary:encode_hex(binary:part(Bytes, 0, min(byte_size(Bytes), Left + 1))),
    "16#" ++ string:trim(binary_to_list(Digits), leading, "0").

%% The quotes and escapes are those that the scanner reads. `io_lib` leaves only hidden characters unescaped.
atom(Atom) -> escape(io_lib:write_atom(Atom), none).

%% A module of Elixir is shown by its alias if the function needs no quotes, as in Elixir's syntax.
name(Module, Function) when is_atom(Module), is_atom(Function) ->
    case {atom_to_list(Module), io_lib:write_atom(Function)} of
        {_, [$' | _]} -> [{text, atom(Module)}, {text, ~":"}, {text, atom(Function)}];
        {"Elixir." ++ Alias, Name} ->
            case is_alias(Alias) of
                true -> [{text, Alias}, {text, ~"."}, {text, Name}];
                false -> [{text, atom(Module)}, {text, ~":"}, {text, Name}]
            end;
        {_, Name} -> [{text, atom(Module)}, {text, ~":"}, {text, Name}]
    end;
name(Module, Function) ->
    [{term, Module}, {text, ~":"}, {term, Function}].

is_alias([First | Rest]) when First >= $A, First =< $Z -> is_alias_rest(Rest);
is_alias(_) -> false.

is_alias_rest([$. | Rest]) -> is_alias(Rest);
is_alias_rest([C | Rest]) when C >= $a, C =< $z; C >= $A, C =< $Z; C >= $0, C =< $9; C =:= $_ -> is_alias_rest(Rest);
is_alias_rest(Rest) -> Rest =:= [].

%% Whether the elements that can still be written form a string.
is_string(List, Left) -> is_string(List, Left, highest()).

is_string([], _, _) -> true;
is_string([C | Rest], Left, Highest) when is_integer(C), C >= 0, C =< Highest ->
    is_char(C) andalso (Left =:= 0 orelse is_string(Rest, Left - 1, Highest));
is_string(_, _, _) -> false.

highest() ->
    case io:printable_range() of
        unicode -> 16#10FFFF;
        latin1 -> 16#FF
    end.

%% Whether the characters that can still be written are text in UTF-8.
is_text(<<>>, _) -> true;
is_text(<<C/utf8, Rest/binary>>, Left) -> is_char(C) andalso (Left =:= 0 orelse is_text(Rest, Left - 1));
is_text(_, _) -> false.

is_char(C) when ?IS_NAMED(C) -> true;
is_char(C) when ?IS_CONTROL(C) -> false;
is_char(C) -> C < 16#D800 orelse C > 16#DFFF andalso C band 16#FFFE =/= 16#FFFE.

%% One character more than can be written, so that the cut is detected.
prefix(List, Left) when is_list(List) -> lists:sublist(List, Left + 1);
prefix(Binary, Left) -> binary:part(Binary, 0, prefix_size(Binary, Left + 1, 0)).

prefix_size(_, 0, Size) -> Size;
prefix_size(Binary, Count, Size) ->
    case Binary of
        <<_:Size/binary, C/utf8, _/binary>> -> prefix_size(Binary, Count - 1, Size + byte_size(<<C/utf8>>));
        _ -> Size
    end.

%% Escapes every character that could harm a terminal, and the quote, as Erlang's scanner reads them.
escape([], _) -> [];
escape([Quote | Rest], Quote) -> [$\\, Quote | escape(Rest, Quote)];
escape([$\\ | Rest], Quote) when Quote =/= none -> "\\\\" ++ escape(Rest, Quote);
escape([C | Rest], Quote) when ?IS_NAMED(C) -> [$\\, letter(C) | escape(Rest, Quote)];
escape([C | Rest], Quote) when ?IS_CONTROL(C); ?IS_HIDDEN(C) ->
    "\\x{" ++ integer_to_list(C, 16) ++ "}" ++ escape(Rest, Quote);
escape([C | Rest], Quote) -> [C | escape(Rest, Quote)].

letter($\b) -> $b;
letter($\t) -> $t;
letter($\n) -> $n;
letter($\v) -> $v;
letter($\f) -> $f;
letter($\r) -> $r;
letter($\e) -> $e.
