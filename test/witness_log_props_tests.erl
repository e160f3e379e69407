%% What is written to a log is read back as the same item, in both formats.
-module(witness_log_props_tests).
-include_lib("proper/include/proper.hrl").
-export([item/0]).
-include_lib("eunit/include/eunit.hrl").

an_item_that_is_written_as_text_is_read_back_test_() -> {timeout, 60, ?_assert(check(read_back(text)))}.
an_item_that_is_written_as_json_is_read_back_test_() -> {timeout, 60, ?_assert(check(read_back(json)))}.

a_block_of_items_is_read_back_in_order_test_() ->
    Property = ?FORALL({Items, Format, End}, {few(item()), format(), oneof([<<"\n">>, <<"\r\n">>])}, begin
        Lines = [[string:trim(iolist_to_binary(witness_log:line(Item, Format)), trailing, "\n"), End] || Item <- Items],
        #{items := Read, lines := Count} = Parsed = parse(iolist_to_binary(Lines), Format),
        ?WHENFAIL(io:format("~p~n~tp~n", [Parsed, Lines]),
                  Read =:= lists:enumerate(Items) andalso Count =:= length(Items))
    end),
    {timeout, 60, ?_assert(check(Property))}.

%% JSON as others write it is read as by the VM's own reader.
json_is_read_as_by_another_reader_test_() ->
    Property = ?FORALL({Value, Encode}, {json(), encoder()}, begin
        Json = iolist_to_binary(Encode(Value)),
        Line = <<"{\"message\" : ", Json/binary, ",\"process\":\"p\",\"event\":\"recv\"}">>,
        Expected = json:decode(Json),
        #{items := Items} = Parsed = parse(Line, json),
        ?WHENFAIL(io:format("~p~n~ts~n", [Parsed, Line]),
                  Items =:= [{1, {recv, {external, <<"p">>}, undefined, Expected, undefined}}])
    end),
    {timeout, 60, ?_assert(check(Property))}.

%% Terms as others write them are read as by the VM's own reader.
terms_are_read_as_by_another_reader_test_() ->
    Property = ?FORALL({Term, Format}, {plain_term(), oneof(["~p", "~tp", "~w", "~tw"])}, begin
        Text = lists:flatten(string:replace(io_lib:format(Format, [Term]), "\n", " ", all)),
        {ok, Tokens, _} = erl_scan:string(Text ++ "."),
        {ok, Expected} = erl_parse:parse_term(Tokens),
        Line = unicode:characters_to_binary(["recv(\"p\",", Text, ")."]),
        #{items := Items} = Parsed = parse(Line, text),
        ?WHENFAIL(io:format("~p~n~ts~n", [Parsed, Line]),
                  Items =:= [{1, {recv, {external, <<"p">>}, undefined, Expected, undefined}}])
    end),
    {timeout, 60, ?_assert(check(Property))}.

check(Property) -> proper:quickcheck(Property, [{numtests, 1000}, {to_file, user}, nocolors]).

read_back(Format) ->
    ?FORALL(Item, item(), begin
        Line = iolist_to_binary(witness_log:line(Item, Format)),
        Parsed = parse(Line, Format),
        ?WHENFAIL(io:format("~tp~n~ts~n", [Parsed, Line]),
                  Parsed =:= #{items => [{1, Item}], lines => 1, skipped => 0, malformed => []})
    end).

parse(Block, Format) -> witness_log:parse(Block, witness_log:parser(#{format => Format})).

format() -> oneof([text, json]).

%% Items

item() ->
    oneof([
        {fork, proc(), proc(), signature(), stamp()},
        {init, proc(), oneof([undefined, proc()]), signature(), stamp()},
        {exit, proc(), data(), stamp()},
        {send, proc(), destination(), data(), stamp()},
        {recv, proc(), origin(), data(), stamp()},
        {gap, proc(), name(), oneof([unknown, non_neg_integer()]), stamp()},
        {attached, proc(), function(), stamp()},
        {root, proc(), stamp()},
        {call, proc(), signature(), stamp()},
        {return, proc(), function(), data(), stamp()},
        {receives, oneof([taken, delivered])},
        {functions, few(function())},
        {clock, oneof([integer(), exactly(erlang:monotonic_time()), exactly(erlang:system_time(nanosecond))])}
    ]).

stamp() -> oneof([undefined, integer(), exactly(erlang:monotonic_time()), exactly(erlang:system_time(nanosecond))]).
proc() -> oneof([pid_term(), {external, oneof([text(), binary(), exactly(<<"<0.5.0>">>), exactly(<<"p1">>)])}]).
destination() -> oneof([proc(), name(), {name(), name()}, ref(), port_term()]).
origin() -> oneof([undefined, proc(), port_term()]).
signature() -> {name(), name(), few(data())}.
function() -> {name(), name(), range(0, 255)}.

pid_term() ->
    oneof([?LET({N, S}, {range(0, 1 bsl 28 - 1), range(0, 8191)},
        list_to_pid(lists:flatten(io_lib:format("<0.~b.~b>", [N, S])))),
           elsewhere(<<"<~b.~b.~b>">>, 3)]).

ref() -> oneof([exactly(make_ref()), exactly(alias()), elsewhere(<<"#Ref<~b.~b.~b.~b>">>, 4)]).

port_term() -> oneof([exactly(hd(erlang:ports())), elsewhere(<<"#Port<~b.~b>">>, 2)]).

%% Of other nodes, as a log has them.
elsewhere(Format, Count) ->
    ?LET({Node, Numbers}, {range(1, 3), vector(Count - 1, range(0, 1 bsl 32 - 1))}, begin
        {ok, Value} = witness_log_term:text(iolist_to_binary(io_lib:format(Format, [Node | Numbers])),
         witness_log_atoms:new(10)),
        Value
    end).

%% Names are few, since atoms are never given back.
name() ->
    oneof([ok, 'an atom', 'fun', 'end', '', 'Upper', '_', 'it\'s', 'a\\b', 'line\nbreak', 'é', 'ünï', 'łódź', '日本',
        'x@y',
           'Elixir.My.App', undefined, true, null, '<0.1.0>', a1, '1a', 'tab\t', '\x{202e}', '%', '"']).

data() -> ?SIZED(Size, data(Size)).

data(0) -> simple();
data(Size) ->
    frequency([
        {4, simple()},
        {2, ?LAZY(few(data(Size div 3)))},
        {2, ?LET(List, ?LAZY(few(data(Size div 3))), list_to_tuple(List))},
        {1, ?LAZY(?LET({List, Tail}, {non_empty(few(data(Size div 3))), simple()}, List ++ Tail))},
        {1, ?LET(Pairs, ?LAZY(few({data(Size div 3), data(Size div 3)})), maps:from_list(Pairs))},
        {1, json()}
    ]).

simple() ->
    oneof([proc(), name(), ref(), port_term(), numbers(), text(), binary(), bitstring(), characters(), large(),
           exactly(fun lists:map/2), exactly(fun 'no such':'Function é'/3)]).

numbers() -> oneof([integer(), float(), exactly(-0.0), exactly(0.0), exactly(1.0e22), exactly(1.7e308),
    exactly(5.0e-324)]).
large() -> ?LET({Sign, Bytes}, {oneof([1, -1]), binary()}, Sign * binary:decode_unsigned(<<1, Bytes/binary>>)).
characters() -> oneof([list(character()), list(range(32, 126)),
    list(oneof([$", $\\, $\n, $\r, 0, 27, 127, 233, 16#1F600, $a, $']))]).
character() -> oneof([range(0, 16#D7FF), range(16#E000, 16#10FFFF)]).
text() -> ?LET(Chars, characters(), unicode:characters_to_binary(Chars)).

json() -> ?SIZED(Size, json(Size)).

json(0) -> oneof([integer(), large(), float(), text(), true, false, null]);
json(Size) ->
    frequency([
        {3, json(0)},
        {1, ?LAZY(few(json(Size div 3)))},
        {1, ?LET(Pairs, ?LAZY(few({text(), json(Size div 3)})), maps:from_list(Pairs))}
    ]).

encoder() ->
    oneof([exactly(fun json:encode/1), exactly(fun escaped/1)]).

%% Everything beyond ASCII as escapes.
escaped(Value) -> json:encode(Value, fun
    (Text, _) when is_binary(Text) -> json:encode_binary_escape_all(Text);
    (Other, Encode) -> json:encode_value(Other, Encode)
end).

%% Terms that the VM's own parser of terms reads.
plain_term() -> ?SIZED(Size, plain_term(Size)).

plain_term(0) -> oneof([name(), integer(), large(), float(), binary(), bitstring(), text(), characters()]);
plain_term(Size) ->
    frequency([
        {3, plain_term(0)},
        {1, ?LAZY(few(plain_term(Size div 3)))},
        {1, ?LET(List, ?LAZY(few(plain_term(Size div 3))), list_to_tuple(List))},
        {1, ?LAZY(?LET({List, Tail}, {non_empty(few(plain_term(Size div 3))), plain_term(0)}, List ++ Tail))},
        {1, ?LET(Pairs, ?LAZY(few({plain_term(Size div 3), plain_term(Size div 3)})), maps:from_list(Pairs))}
    ]).

%% What is nested is short, so that terms do not become huge.
few(Type) -> ?LET(Count, range(0, 4), vector(Count, Type)).
