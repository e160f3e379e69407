-module(witness_log_line).
-moduledoc """
Events as lines of a log, in both formats.
""".

-export([line/2]).

-doc "An item as a line, with its newline.".
-spec line(witness_log:entry(), witness_log:format()) -> iolist().
line({receives, What}, text) -> [~"receives(", atom_to_binary(What), ~")\n"];
line({receives, What}, json) -> [~"{\"event\":\"receives\",\"messages\":\"", atom_to_binary(What), ~"\"}\n"];
line({functions, Functions}, text) -> [~"functions([", witness_log_write:list(Functions), ~"])\n"];
line({functions, Functions}, json) ->
    [~"{\"event\":\"functions\",\"functions\":[", lists:join($,, [text_of(term(Function)) || Function <- Functions]), ~"]}\n"];
line({clock, Time}, text) -> [~"clock(", integer_to_binary(Time), ~")\n"];
line({clock, Time}, json) -> [~"{\"event\":\"clock\",\"time\":", integer_to_binary(Time), ~"}\n"];
line(Item, text) -> text(Item);
line(Item, json) -> [~"{\"event\":\"", json(Item), ~"}\n"].

%% Text

text({recv, P, undefined, Msg, Time}) -> text(Time, ~"recv(", [peer(P), $, | term(Msg)]);
text({recv, P, From, Msg, Time}) -> text(Time, ~"recv(", [peer(P), $,, peer(From), $, | term(Msg)]);
text({send, P, To, Msg, Time}) -> text(Time, ~"send(", [peer(P), $,, peer(To), $, | term(Msg)]);
text({fork, P, Child, Signature, Time}) -> text(Time, ~"fork(", [peer(P), $,, peer(Child), $, | call(Signature)]);
text({init, P, undefined, Signature, Time}) -> text(Time, ~"init(", [peer(P), ~",_," | call(Signature)]);
text({init, P, Parent, Signature, Time}) -> text(Time, ~"init(", [peer(P), $,, peer(Parent), $, | call(Signature)]);
text({exit, P, Reason, Time}) -> text(Time, ~"exit(", [peer(P), $, | term(Reason)]);
text({call, P, Call, Time}) -> text(Time, ~"call(", [peer(P), $, | call(Call)]);
text({return, P, Function, Value, Time}) -> text(Time, ~"return(", [peer(P), $,, term(Function), $, | term(Value)]);
text({gap, P, Reason, unknown, Time}) -> text(Time, ~"gap(", [peer(P), $, | term(Reason)]);
text({gap, P, Reason, Missing, Time}) -> text(Time, ~"gap(", [peer(P), $,, term(Reason), $, | term(Missing)]);
text({attached, P, Function, Time}) -> text(Time, ~"attached(", [peer(P), $, | term(Function)]);
text({root, P, Time}) -> text(Time, ~"root(", peer(P)).

text(undefined, Kind, Arguments) -> [Kind, Arguments, ~")\n"];
text(Time, Kind, Arguments) -> [$@, integer_to_binary(Time), $\s, Kind, Arguments, ~")\n"].

%% Arguments are written as a list, even if they could be a string.
call({Module, Function, Args}) -> [${, term(Module), $,, term(Function), ~",[", witness_log_write:list(Args), ~"]}"].

peer({external, Name} = P) when is_binary(Name) ->
    case unicode:characters_to_list(Name) of
        Chars when is_list(Chars), Chars =/= [] -> witness_log_write:quote(Chars);
        _ -> term(P)
    end;
peer(P) ->
    term(P).

term(Term) -> witness_log_write:term(Term).

%% JSON Lines

json({recv, P, undefined, Msg, Time}) -> [~"recv", process(P), content(~"message", Msg) | time(Time)];
json({recv, P, From, Msg, Time}) ->
    [~"recv", process(P), field(~"from", name(From)), content(~"message", Msg) | time(Time)];
json({send, P, To, Msg, Time}) -> [~"send", process(P), field(~"to", name(To)), content(~"message", Msg) | time(Time)];
json({fork, P, Child, Signature, Time}) ->
    [~"fork", process(P), field(~"child", name(Child)), signature(Signature) | time(Time)];
json({init, P, undefined, Signature, Time}) -> [~"init", process(P), signature(Signature) | time(Time)];
json({init, P, Parent, Signature, Time}) ->
    [~"init", process(P), field(~"parent", name(Parent)), signature(Signature) | time(Time)];
json({exit, P, Reason, Time}) -> [~"exit", process(P), content(~"reason", Reason) | time(Time)];
json({call, P, Call, Time}) -> [~"call", process(P), signature(Call) | time(Time)];
json({return, P, Function, Value, Time}) -> [~"return", process(P), function(Function), content(~"value", Value) | time(Time)];
json({gap, P, Reason, Missing, Time}) ->
    [~"gap", process(P), field(~"reason", string(atom_to_binary(Reason))), missing(Missing) | time(Time)];
json({attached, P, Function, Time}) -> [~"attached", process(P), function(Function) | time(Time)];
json({root, P, Time}) -> [~"root", process(P) | time(Time)].

%% The caller has written the kind, with its opening quote.
process(P) -> [~"\",\"process\":", name(P)].

field(Name, Value) -> [~",\"", Name, ~"\":", Value].

time(undefined) -> [];
time(Time) -> field(~"time", integer_to_binary(Time)).

missing(unknown) -> [];
missing(Missing) -> field(~"missing", integer_to_binary(Missing)).

call_fields(Module, Function) ->
    [field(~"module", string(atom_to_binary(Module))), field(~"function", string(atom_to_binary(Function)))].

function({Module, Function, Arity}) -> [call_fields(Module, Function), field(~"arity", integer_to_binary(Arity))].

signature({Module, Function, Args} = Signature) ->
    case value(Args) of
        none -> field(~"signature", text_of(call(Signature)));
        Value -> [call_fields(Module, Function), field(~"args", Value)]
    end.

%% A term without an equivalent in JSON is written in Erlang's notation.
content(Name, Term) ->
    case value(Term) of
        none -> field(~"term", text_of(term(Term)));
        Value -> field(Name, Value)
    end.

%% A string that looks like a process identifier, or is not text, would be read back differently: it is written as a term.
name(P) when is_pid(P) -> [$", term(P), $"];
name({external, Name} = P) when is_binary(Name) ->
    case Name of
        <<"<", _/binary>> -> object(P);
        _ ->
            case value(Name) of
                none -> object(P);
                Value -> Value
            end
    end;
name(Other) ->
    object(Other).

object(Term) -> [~"{\"term\":", text_of(term(Term)), $}].

text_of(Text) -> string(iolist_to_binary(Text)).

string(Text) -> json:encode_binary(Text).

%% The JSON that is read back as this term, or `none'. The check for that comes first: leaving by an exception
%% would take longer.
value(Term) ->
    case is_json(Term) of
        true -> encode(Term);
        false -> none
    end.

is_json(Binary) when is_binary(Binary) -> is_text(Binary);
is_json(Number) when is_number(Number) -> true;
is_json([First | Rest]) -> is_json(First) andalso is_json_list(Rest);
is_json([]) -> true;
is_json(Map) when is_map(Map) -> are_members(maps:next(maps:iterator(Map)));
is_json(Atom) -> Atom =:= true orelse Atom =:= false orelse Atom =:= null.

is_json_list([First | Rest]) -> is_json(First) andalso is_json_list(Rest);
is_json_list(Tail) -> Tail =:= [].

are_members({Key, Value, Iterator}) ->
    is_binary(Key) andalso is_text(Key) andalso is_json(Value) andalso are_members(maps:next(Iterator));
are_members(none) -> true.

is_text(<<C, Rest/binary>>) when C < 16#80 -> is_text(Rest);
is_text(<<_/utf8, Rest/binary>>) -> is_text(Rest);
is_text(Rest) -> Rest =:= <<>>.

encode(Binary) when is_binary(Binary) -> string(Binary);
encode(Integer) when is_integer(Integer) -> integer_to_binary(Integer);
encode(Float) when is_float(Float) -> float_to_binary(Float, [short]);
encode([]) -> ~"[]";
encode([First | Rest]) -> [$[, encode(First), [[$,, encode(Next)] || Next <- Rest], $]];
encode(Map) when is_map(Map) -> [${, members(maps:next(maps:iterator(Map)), []), $}];
encode(Atom) -> atom_to_binary(Atom).

members(none, _) -> [];
members({Key, Value, Iterator}, Before) ->
    [Before, string(Key), $:, encode(Value) | members(maps:next(Iterator), $,)].
