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

-export([format/2, call/2, function/4, text/2, identifier/1, other/2, are_unknown/1]).

%% What remains to be written, beside text.
-type item() ::
    {term, term()}
  | {rest, term(), Close :: witness_event_bounded:chunk()}     % what follows an element of a list, and the list's end
  | {tuple, tuple(), Next :: pos_integer()}
  | {pairs, maps:iterator(), Before :: witness_event_bounded:chunk()}
  | {bits, bitstring(), Before :: witness_event_bounded:chunk()}.

%% Characters that have an escape of one letter.
-define(IS_NAMED(C), (C >= $\b andalso C =< $\r orelse C =:= $\e)).

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

-doc "Whether all arguments are unknown (`witness_event_signature:unknown/1`).".
-spec are_unknown(Args :: [term()]) -> boolean().
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
        true -> write([{text, escape(witness_event_bounded:prefix(Text, Limit), none)}], Limit);
        false -> format(Text, Limit)
    end.

-spec write(witness_event_bounded:work(item()), Limit :: non_neg_integer()) -> binary().
write(Work, Limit) -> witness_event_bounded:write(Work, Limit, fun expand/2).

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
term(Integer, Left) when is_integer(Integer) -> [{text, witness_event_bounded:integer(Integer, "16#", Left)}];
term(Float, _) when is_float(Float) -> [{text, float_to_binary(Float, [short])}];
term([], _) -> [{text, ~"[]"}];
term(List, Left) when is_list(List) ->
    case is_string(List, Left) of
        true -> [{text, ~"\""}, {text, escape(witness_event_bounded:prefix(List, Left), $")}, {text, ~"\""}];
        false -> [{text, ~"["} | elements(List, ~"]")]
    end;
term(Tuple, _) when is_tuple(Tuple) -> [{text, ~"{"}, {tuple, Tuple, 1}];
term(Map, _) when is_map(Map) -> [{text, ~"#{"}, {pairs, witness_event_bounded:iterator(Map), ~""}];
term(<<>>, _) -> [{text, ~"<<>>"}];
term(Bits, Left) when is_bitstring(Bits) ->
    case is_binary(Bits) andalso is_text(Bits, Left) of
        true -> [{text, ~"<<\""} | quoted(witness_event_bounded:prefix(Bits, Left))];
        false -> [{text, ~"<<"}, {bits, Bits, ~""}]
    end;
term(Fun, _) when is_function(Fun) -> [{text, escape(erlang:fun_to_list(Fun), none)}];
term(Identifier, _) when is_pid(Identifier); is_port(Identifier); is_reference(Identifier) -> [{text, identifier(Identifier)}];
term(Other, Left) -> [{text, other(Other, Left)}].

-doc """
A term of a type that Witness does not know, such as a native record of OTP 29: as `io_lib` writes it, without harmful characters.
""".
-spec other(term(), Left :: non_neg_integer()) -> string().
other(Term, Left) -> escape(lists:flatten(io_lib:format("~0tp", [Term], [{chars_limit, Left + 1}])), none).

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

quoted(Chars) ->
    Close = case lists:any(fun(Char) -> Char > 16#7F end, Chars) of
        true -> ~"\"/utf8>>";
        false -> ~"\">>"
    end,
    [{text, escape(Chars, $")}, {text, Close}].

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

%% Escapes every character that could harm a terminal, and the quote, as Erlang's scanner reads them.
escape([], _) -> [];
escape([Quote | Rest], Quote) -> [$\\, Quote | escape(Rest, Quote)];
escape([$\\ | Rest], Quote) when Quote =/= none -> "\\\\" ++ escape(Rest, Quote);
escape([C | Rest], Quote) when ?IS_NAMED(C) -> [$\\, witness_event_bounded:letter(C) | escape(Rest, Quote)];
escape([C | Rest], Quote) ->
    case ?IS_CONTROL(C) orelse witness_event_bounded:is_hidden(C) of
        true -> "\\x{" ++ integer_to_list(C, 16) ++ "}" ++ escape(Rest, Quote);
        false -> [C | escape(Rest, Quote)]
    end.
