-module(witness_log_tests).
-include_lib("eunit/include/eunit.hrl").

%% Text

every_kind_of_event_is_read_from_text_test_() ->
    P = list_to_pid("<0.102.0>"),
    Q = list_to_pid("<0.808.0>"),
    Name = {external, ~"worker 1"},
    Cases = [
        {"fork(<0.102.0>,<0.808.0>,{m,f,[0]})", {fork, P, Q, {m, f, [0]}, undefined}},
        {"init(<0.808.0>,<0.102.0>,{m,f,[0]}).", {init, Q, P, {m, f, [0]}, undefined}},
        {"init(<0.808.0>,_,{m,f,[]})", {init, Q, undefined, {m, f, []}, undefined}},
        {"init(<0.808.0>, undefined , {m,f,\"ab\"})", {init, Q, undefined, {m, f, "ab"}, undefined}},
        {"exit(<0.102.0>,normal)", {exit, P, normal, undefined}},
        {"exit(<0.102.0>,_)", expected},
        {"send(<0.102.0>,<0.808.0>,{a,B})", expected},
        {"send(<0.102.0>,<0.808.0>,{a,'B'})", {send, P, Q, {a, 'B'}, undefined}},
        {"send(<0.102.0>,registered,m)", {send, P, registered, m, undefined}},
        {"send(<0.102.0>,{name,'n@h'},m)", {send, P, {name, 'n@h'}, m, undefined}},
        {"send(\"worker 1\",\"worker 1\",m)", {send, Name, Name, m, undefined}},
        {"recv(<0.102.0>,m)", {recv, P, undefined, m, undefined}},
        {"recv(<0.102.0>,\"worker 1\",m)", {recv, P, Name, m, undefined}},
        {"recv(<0.102.0>,undefined,m)", {recv, P, undefined, m, undefined}},
        {"call(<0.102.0>,{m,f,[1,\"ab\"]})", {call, P, {m, f, [1, "ab"]}, undefined}},
        {"@17 call(\"worker 1\", {m,f,[]} ).", {call, Name, {m, f, []}, 17}},
        {"return(<0.102.0>,{m,f,2},{ok,[]})", {return, P, {m, f, 2}, {ok, []}, undefined}},
        {"functions([{m,f,1},{m,g,2}])", {functions, [{m, f, 1}, {m, g, 2}]}},
        {"functions( [] ). % none", {functions, []}},
        {"@1 functions([])", expected},
        {"clock(-17). % ns", {clock, -17}},
        {"@1 clock(17)", expected},
        {"gap(<0.102.0>,overload)", {gap, P, overload, unknown, undefined}},
        {"gap(<0.102.0>,overload,3)", {gap, P, overload, 3, undefined}},
        {"attached(<0.102.0>,{m,f,2})", {attached, P, {m, f, 2}, undefined}},
        {"@17 root(\"worker 1\")", {root, Name, 17}},
        {"@17 exit(<0.102.0>,normal)", {exit, P, normal, 17}},
        {"@-576460752303423488\texit(<0.102.0>,normal) . % at last", {exit, P, normal, -576460752303423488}}
    ],
    [{Line, ?_assertEqual(Expected, read(text, Line))} || {Line, Expected} <- Cases].

terms_are_read_test_() ->
    Cases = [
        {"-16#fF", -255}, {"1_000_000", 1000000}, {"$a", $a}, {"$\\n", $\n}, {"-$a", -$a}, {"2#1_01", 5},
         {"36#Zz", 1295},
        {"123456789012345678901234567890", 123456789012345678901234567890}, {"+5", 5},
        {"1.5e-3", 1.5e-3}, {"1.0E22", 1.0e22}, {"-0.0", -0.0}, {"1_0.2_5", 10.25},
        {"\"a\\x{e9}\\x41\\101\\e\\^A\\s\\q\"", [$a, 16#E9, $A, $A, 27, 1, 32, $q]}, {"\"é\"", [16#E9]}, {"\"\"", []},
        {"<<>>", <<>>}, {"<< 1, -1 , 300 >>", <<1, 255, 44>>}, {"<<\"é\">>", <<16#E9>>},
         {"<<\"é\"/utf8,5:3>>", <<"é"/utf8, 5:3>>},
        {"<<\"a\\n\">>", <<"a\n">>}, {"<<$a,16#10:16>>", <<$a, 0, 16>>}, {"~\"é\"", <<"é"/utf8>>},
        {"[]", []}, {"[1,2|3]", [1, 2 | 3]}, {"[ 1 | [ 2 ] ]", [1, 2]}, {"{ }", {}}, {"#{ }", #{}},
        {"#{a=>1, a => 2,#{}=>{}}", #{a => 2, #{} => {}}},
        {"fun lists:map/2", fun lists:map/2}, {"fun 'lists':'map' /2", expected},
        {"#Fun<m.0.1>", {external, ~"#Fun<m.0.1>"}}, {"#Fun<'a>b'.0.1>", {external, ~"#Fun<'a>b'.0.1>"}},
        {"[#Record<\"#m:p{x = \\\"}>\\\"}\">]", [{external, ~"#Record<\"#m:p{x = \\\"}>\\\"}\">"}]}, {"#Record<\"a\" >", expected},
        {"'it\\'s'", 'it\'s'}, {"''", ''}, {"ünï", 'ünï'}, {"a@B_1", a@B_1}, {"'日本'", '日本'}
    ],
    [{Text, ?_assertEqual(Expected, read_term(Text))} || {Text, Expected} <- Cases].

processes_of_other_nodes_are_equal_when_their_texts_are_test() ->
    #{items := [{1, {send, P, Q, [R1, R1, R2, O1, O2], _}}]} =
        parse(text, ~"send(<2.5.0>,<3.5.0>,[#Ref<2.1.2.3>,#Ref<2.1.2.3>,#Ref<2.1.2.4>,#Port<2.7>,#Port<2.8>])"),
    ?assert(is_pid(P) andalso is_pid(Q) andalso P =/= Q),
    ?assert(is_reference(R1) andalso is_reference(R2) andalso R1 =/= R2),
    ?assert(is_port(O1) andalso is_port(O2) andalso O1 =/= O2),
    ?assertEqual({ok, P}, witness_log:proc(~"<2.5.0>")),
    ?assertEqual(~"send(<2.5.0>,<3.5.0>,#Ref<2.1.2.3>)\n", iolist_to_binary(witness_log:line({send, P, Q, R1,
        undefined}, text))).

%% JSON Lines

every_kind_of_event_is_read_from_json_test_() ->
    P = {external, ~"p1"},
    Q = list_to_pid("<0.5.0>"),
    Cases = [
        {~B|{"event":"send","process":"p1","to":"<0.5.0>","message":{"a":[1,2.5,"x",true,null]}}|,
         {send, P, Q, #{~"a" => [1, 2.5, ~"x", true, null]}, undefined}},
        {~B|{"event":"send","process":"p1","to":{"term":"{name,'n@h'}"},"term":"{ok,<0.5.0>}","time":5}|,
         {send, P, {name, 'n@h'}, {ok, Q}, 5}},
        {~B| { "message" : null , "event" : "recv" , "process" : "p1" } |, {recv, P, undefined, null, undefined}},
        {~B|{"event":"recv","process":"p1","from":"<0.5.0>","message":1e2,"time":null}|,
         {recv, P, Q, 100.0, undefined}},
        {~B|{"event":"fork","process":"p1","child":"<0.5.0>","module":"m","function":"f","args":["x"]}|,
         {fork, P, Q, {m, f, [~"x"]}, undefined}},
        {~B|{"event":"fork","process":"p1","child":"<0.5.0>","module":"m","function":"f"}|,
         {fork, P, Q, {m, f, []}, undefined}},
        {~B|{"event":"init","process":"<0.5.0>","parent":"p1","signature":"{m,f,[1]}"}|,
         {init, Q, P, {m, f, [1]}, undefined}},
        {~B|{"event":"init","process":"p1","parent":null,"signature":"{m,f,[1]}","host":{"n":[{}]}}|,
         {init, P, undefined, {m, f, [1]}, undefined}},
        {~B|{"event":"exit","process":"p1","reason":"normal"}|, {exit, P, ~"normal", undefined}},
        {~B|{"event":"exit","process":"p1","term":"normal"}|, {exit, P, normal, undefined}},
        {~B|{"event":"call","process":"p1","module":"m","function":"f","args":[1,"x"],"time":3}|,
         {call, P, {m, f, [1, ~"x"]}, 3}},
        {~B|{"event":"call","process":"p1","module":"m","function":"f"}|, {call, P, {m, f, []}, undefined}},
        {~B|{"event":"call","process":"<0.5.0>","signature":"{m,f,[{a}]}"}|, {call, Q, {m, f, [{a}]}, undefined}},
        {~B|{"event":"return","process":"p1","module":"m","function":"f","arity":2,"value":{"a":1}}|,
         {return, P, {m, f, 2}, #{~"a" => 1}, undefined}},
        {~B|{"event":"return","process":"p1","signature":"{m,f,2}","term":"{ok,3}"}|, {return, P, {m, f, 2}, {ok, 3}, undefined}},
        {~B|{"event":"functions","functions":["{m,f,1}","{m,g,2}"]}|, {functions, [{m, f, 1}, {m, g, 2}]}},
        {~B|{"functions":[],"event":"functions","process":7}|, {functions, []}},
        {~B|{"event":"clock","time":-17}|, {clock, -17}},
        {~B|{"event":"gap","process":"p1","reason":"overload","missing":3}|, {gap, P, overload, 3, undefined}},
        {~B|{"event":"gap","process":"p1","reason":"overload"}|, {gap, P, overload, unknown, undefined}},
        {~B|{"event":"attached","process":"p1","module":"m","function":"f","arity":1}|,
         {attached, P, {m, f, 1}, undefined}},
        {~B|{"event":"attached","process":"p1","signature":"{m,f,1}"}|, {attached, P, {m, f, 1}, undefined}},
        {~B|{"event":"root","process":"p1","time":17}|, {root, P, 17}},
        {~B|{"\u0065vent":"exit","process":"\ud83d\ude00\"\\\/\n","reason":-0}|,
         {exit, {external, <<"\x{1F600}\"\\/\n"/utf8>>}, 0, undefined}}
    ],
    [{binary_to_list(Line), ?_assertEqual(Expected, read(json, Line))} || {Line, Expected} <- Cases].

%% Lines

lines_are_counted_whatever_they_end_in_test_() ->
    Exit = {exit, {external, ~"p"}, 1, undefined},
    [{lists:flatten(io_lib:format("~p", [Block])),
      ?_assertEqual(#{items => [{Line, Exit} || Line <- Lines], lines => Count, skipped => 0, malformed => []},
          parse(text, Block))}
     || {Block, Lines, Count} <- [
        {~"", [], 0},
        {~"\n", [], 1},
        {~"exit(\"p\",1)", [1], 1},
        {~"exit(\"p\",1)\nexit(\"p\",1)", [1, 2], 2},
        {~"exit(\"p\",1)\r\n\r\n  \t\n% a comment é\r\nexit(\"p\",1)\r\n", [1, 5], 5},
        {~"exit(\"p\",1).\r\n", [1], 1},
        {<<16#EF, 16#BB, 16#BF, "exit(\"p\",1)">>, [1], 1},
        {<<16#EF, 16#BB, 16#BF>>, [], 0}
     ]].

a_malformed_line_ends_the_block_test() ->
    Block = ~"exit(\"p\",1)\n\nexit(\"p\"\nexit(\"p\",2)\nexit(\"p\",3)",
    #{items := [{1, _}], lines := 5, skipped := 0, malformed := [{3, 9, What}]} = parse(text, Block),
    ?assertEqual(~"expected `,` or `)`, found the end of the line", unicode:characters_to_binary(What)).

malformed_lines_are_skipped_when_asked_test_() ->
    [{atom_to_list(Format), fun() ->
        Bad = lists:duplicate(15, ~"?\n"),
        Parser = witness_log:parser(#{format => Format, skip_malformed => true}),
        #{items := [{1, Item}, {17, Item}], lines := 18, skipped := 16, malformed := Malformed} =
            witness_log:parse(iolist_to_binary([Good, $\n, Bad, Good, $\n, ~"{"]), Parser),
        ?assertMatch([{2, 1, _}, {3, 1, _} | _], Malformed),
        ?assertEqual(10, length(Malformed))
     end} || {Format, Good} <- [{text, ~"exit(\"p\",1)"}, {json, ~B|{"event":"exit","process":"p","reason":1}|}]].

%% What was read does not keep the block in memory.
nothing_refers_to_the_block_test_() ->
    Long = binary:copy(~"x", 200),
    [{atom_to_list(Format), fun() ->
        #{items := [{1, {send, _, {external, To}, Msg, _}}]} = parse(Format,
            iolist_to_binary([Line, binary:copy(~"\n", 10000)])),
        ?assertEqual({200, 200}, {binary:referenced_byte_size(To), binary:referenced_byte_size(Msg)})
     end} || {Format, Line} <- [
        {text, [~"send(\"p\",\"", Long, ~"\",<<\"", Long, ~"\">>)"]},
        {json, [~B|{"event":"send","process":"p","to":"|, Long, ~B|","message":"|, Long, ~B|"}|]}]].

%% Errors

malformed_text_is_placed_test_() ->
    Event = ~"expected an event: fork, init, exit, send, recv, call, return, gap, attached, root, receives, functions or clock",
    Deep = binary:copy(~"{", 1001),
    placed(text, [
        {~"foo(1)", 1, [Event, ~", found `f`"]},
        {~"  {send}", 3, [Event, ~", found `{`"]},
        {~"@ exit(\"p\",1)", 2, ~"expected a time in nanoseconds, below 2^63, and a blank"},
        {~"@1exit(\"p\",1)", 3, ~"expected a time in nanoseconds, below 2^63, and a blank, found `e`"},
        {~"@1 @2 exit(\"p\",1)", 4, [Event, ~", found `@`"]},
        {~"@99999999999999999999999 exit(\"p\",1)", 21,
         ~"expected a time in nanoseconds, below 2^63, and a blank, found `9`"},
        {~"@1 ", 4, [Event, ~", found the end of the line"]},
        {~"exit(\"p\",X)", 10, ~"expected a term (an atom that begins like a variable needs single quotes), found `X`"},
        {~"exit(\"p\",1) exit", 13, ~"expected the end of the line, found `e`"},
        {~"exit(\"p\",1)..", 13, ~"expected the end of the line, found `.`"},
        {~"exit(\"p\")", 6, ~"expected exit(Process,Reason)"},
        {~"exit(\"é\", )", 11, ~"expected a term, found `)`"},
        {~"exit(\"p", 8, ~"expected the closing \", found the end of the line"},
        {~"exit(\"p\r\n", 8, ~"expected the closing \", found the end of the line"},
        {~"exit(1,2)", 6, ~"expected a process: <0.102.0>, or a name such as \"worker 1\", found `1`"},
        {~"exit(<0.1>,2)", 6, ~"expected a process such as <0.102.0>, found `<`"},
        {~"exit(<0.999999999999.0>,2)", 6, ~"expected a process such as <0.102.0>, found `<`"},
        {~"exit(<0.18446744073709551621.0>,2)", 6, ~"expected a process such as <0.102.0>, found `<`"},
        {~"exit(<0.5.18446744073709551616>,2)", 6, ~"expected a process such as <0.102.0>, found `<`"},
        {~"exit(<1.2.99999999999>,2)", 6, ~"a process whose number is too large"},
        {~"fork(\"p\", q,{m,f,[]})", 11, ~"expected a process: <0.102.0>, or a name such as \"worker 1\", found `q`"},
        {~"fork(\"p\",\"q\", {m,f,[1|2]})", 15,
         ~"expected what it was spawned with: {module,function,[Argument]}, found `{`"},
        {~"init(\"p\",1,{m,f,[]})", 10, ~"expected the process that is the parent, or _, found `1`"},
        {~"send(\"p\",{a,1},m)", 10,
         ~"expected a destination: a process, a port, an atom, {Name,Node} or a reference, found `{`"},
        {~"recv(\"p\",q,m)", 10, ~"expected a sender: a process, a port or undefined, found `q`"},
        {~"gap(\"p\",1)", 9, ~"expected the reason, an atom, found `1`"},
        {~"gap(\"p\",a,-1)", 11, ~"expected how many are missing: a number, or unknown, found `-`"},
        {~"attached(\"p\",{m,f,[]})", 14, ~"expected a function: {module,function,Arity}, found `{`"},
        {~"call(\"p\")", 6, ~"expected call(Process,{m,f,[Argument]})"},
        {~"call(1,{m,f,[]})", 6, ~"expected a process: <0.102.0>, or a name such as \"worker 1\", found `1`"},
        {~"call(\"p\",{m,f,2})", 10, ~"expected what it calls: {module,function,[Argument]}, found `{`"},
        {~"call(\"p\", {m,f,[1|2]})", 11, ~"expected what it calls: {module,function,[Argument]}, found `{`"},
        {~"call(\"p\",{m,\"f\",[]})", 10, ~"expected what it calls: {module,function,[Argument]}, found `{`"},
        {~"return(\"p\",{m,f,1})", 8, ~"expected return(Process,{m,f,Arity},Value)"},
        {~"return(\"p\",{m,f,[]},1)", 12, ~"expected a function: {module,function,Arity}, found `{`"},
        {~"return(p,{m,f,1},1)", 8, ~"expected a process: <0.102.0>, or a name such as \"worker 1\", found `p`"},
        {~"functions()", 11, ~"expected a term, found `)`"},
        {~"functions([],[])", 11, ~"expected functions([{m,f,Arity},...])"},
        {~"functions({m,f,1})", 11, ~"expected functions: [{module,function,Arity},...], found `{`"},
        {~"functions([{m,f,1}|{m,g,2}])", 11, ~"expected functions: [{module,function,Arity},...], found `[`"},
        {~"functions([{m,f,1},{m,g,-2}])", 11, ~"expected functions: [{module,function,Arity},...], found `[`"},
        {~"clock()", 7, ~"expected a term, found `)`"},
        {~"clock(1,2)", 7, ~"expected clock(Nanoseconds)"},
        {~"clock(now)", 7, ~"expected a time in nanoseconds, an integer below 2^63, found `n`"},
        {~"clock(9223372036854775808)", 7, ~"expected a time in nanoseconds, an integer below 2^63, found `9`"},
        {~"exit(\"p\",{a b})", 13, ~"expected `,` or `}`, found `b`"},
        {~"exit(\"p\",[a|b,c])", 14, ~"expected `]`, found `,`"},
        {~"exit(\"p\",#{a})", 13, ~"expected `=>`, found `}`"},
        {~"exit(\"p\",#{a=>1=>2})", 16, ~"expected `,` or `}`, found `=`"},
        {~"exit(\"p\",<<1:999>>)", 14, ~"expected a number of bits, at most 256"},
        {~"exit(\"p\",<<a>>)", 12, ~"expected an integer or a string, found `a`"},
        {~"exit(\"p\",<<\"日\">>)", 12, ~"characters above 255 in a binary without /utf8"},
        {~"exit(\"p\",\"\\x{110000}\")", 11, ~"an escape that is no character"},
        {~"exit(\"p\",1.0e400)", 10, ~"a float that is too large"},
        {~"exit(\"p\",37#1)", 10, ~"a base that is not from 2 to 36"},
        {~"exit(\"p\",fun m:f/256)", 18, ~"expected an arity, at most 255, found `2`"},
        {~"exit(\"p\",fun() -> ok end)", 10, ~"expected fun m:f/1, found `f`"},
        {~"exit(\"p\",halt())", 14, ~"expected `,` or `)`, found `(`"},
        {[~"exit(\"p\",", binary:copy(~"9", 10001), ~")"], 10, ~"a number of more than 10000 digits"},
        {[~"exit(\"p\",", binary:copy(~"a", 256), ~")"], 10, ~"an atom of more than 255 characters"},
        {[~"exit(\"p\",'", binary:copy(<<"e", 16#301/utf8>>, 128), ~"')"], 10, ~"an atom of more than 255 characters"},
        {~"exit(\"p\",#Port<0.18446744073709551616>)", 10,
         ~"expected a port such as #Port<0.5>, found numbers that no such has"},
        {~"exit(\"p\",#Ref<0.1.2.18446744073709551616>)", 10,
         ~"expected a reference, found numbers that no such has"},
        {~"exit(\"p\",#Ref<2.1.2.3.4.5.6>)", 10, ~"a reference of more than five numbers"},
        {[~"exit(\"p\",", Deep], 1010, ~"more than 1000 levels of nesting"},
        {<<"exit(\"é\",\""/utf8, 16#E9, "\")">>, 11, ~"bytes that are not UTF-8"},
        {<<"exit(\"p\",", 16#C3, $), $\n>>, 10, ~"bytes that are not UTF-8"},
        {<<"% caf", 16#E9>>, 6, ~"bytes that are not UTF-8"},
        {<<16#FF, 16#FE, "e", 0>>, 1, ~"bytes that are not UTF-8"},
        {<<"e", 0, "x", 0>>, 1, [Event, ~", found `e`"]},
        {<<"exit(\"p\",", 0, ")">>, 10, ~"expected a term"}
    ]).

malformed_json_is_placed_test_() ->
    Deep = binary:copy(~"[", 1001),
    placed(json, [
        {~"x", 1, ~"expected an object: `{`, found `x`"},
        {~"{", 2, ~"expected the name of a field, in quotes, found the end of the line"},
        {~B|{"event":"exit","process":"p","reason":1|, 41, ~"expected `,` or `}`, found the end of the line"},
        {~B|{"event":"exit","process":"p","reason":1}}|, 42, ~"expected the end of the line, found `}`"},
        {~B|{"event":"exit","process":"p","reason":nil}|, 40, ~"expected a JSON value, found `n`"},
        {~B|{"event":"exit","process":"p","reason":01}|, 40, ~"expected a number without leading zeros, found `0`"},
        {~B|{"event":"exit","process":"p","reason":-}|, 41, ~"expected a digit, found `}`"},
        {~B|{"event":"exit","process":"p","reason":1.}|, 42, ~"expected a digit, found `}`"},
        {~B|{"event":"exit","process":"p","reason":1e}|, 42, ~"expected an exponent, found `}`"},
        {~B|{"event":"exit","process":"p","reason":1e999}|, 40, ~"a float that is too large"},
        {~B|{"event":"exit","process":"p","reason":[1,]}|, 43, ~"expected a JSON value, found `]`"},
        {~B|{"event":"exit","process":"p","reason":{a:1}}|, 41, ~"expected a name in quotes, found `a`"},
        {~B|{"event":"exit","process":"p","reason":"é\x"}|, 43,
         ~"expected an escape such as \\n or \\u00e9, found `x`"},
        {~B|{"event":"exit","process":"p","reason":"\ud800"}|, 41, ~"expected an escape that is a character"},
        {~B|{"event":"exit","process":"p","reason":"abc|, 44, ~"expected the closing \", found the end of the line"},
        {~B|{"process":"p","reason":1}|, 1, ~"expected a field \"event\""},
        {~B|  {"event":"exit","process":"p"}|, 3, ~"expected a field \"reason\""},
        {~B|{"event":"exit","reason":1}|, 1, ~"expected a field \"process\""},
        {~B|{"event":"crash","process":"p"}|, 10,
         ~"expected an event: fork, init, exit, send, recv, call, return, gap, attached, root, receives, functions or clock, found `\"`"},
        {~B|{"event":1,"process":"p"}|, 10,
         ~"expected an event: fork, init, exit, send, recv, call, return, gap, attached, root, receives, functions or clock, found `1`"},
        {~B|{"event":"exit","event":"exit","process":"p","reason":1}|, 25, ~"a second field \"event\""},
        {~B|{"event":"exit","process":7,"reason":1}|, 27, ~"expected the name of a process, a string"},
        {~B|{"event":"exit","process":{"term":"a"},"reason":1}|, 27,
         ~"expected a process: <0.102.0>, or a name such as \"worker 1\", found `{`"},
        {~B|{"event":"exit","process":"p","term":1}|, 38, ~"expected a term in Erlang's notation, a string"},
        {~B|{"event":"exit","process":"p","term":"{a"}|, 38,
         ~"in the term, behind 2 bytes: expected `,` or `}`, found the end of the line"},
        {~B|{"event":"exit","process":"p","reason":1,"term":"a"}|, 49, ~"expected only one of \"reason\" and \"term\""},
        {~B|{"event":"exit","process":"p","reason":1,"time":1.5}|, 49,
         ~"expected a time in nanoseconds, an integer below 2^63"},
        {~B|{"event":"fork","process":"p","child":"q","module":1}|, 52, ~"expected a name, a string"},
        {~B|{"event":"fork","process":"p","child":"q","module":"m","function":"f","args":1}|, 78,
         ~"expected what it was spawned with: {module,function,[Argument]}, found `1`"},
        {~B|{"event":"fork","process":"p","child":"q","signature":"{m,f}"}|, 55,
         ~"expected what it was spawned with: {module,function,[Argument]}, found `\"`"},
        {~B|{"event":"call","process":"p","module":"m","function":"f","args":{}}|, 66,
         ~"expected what it calls: {module,function,[Argument]}, found `{`"},
        {~B|{"event":"call","process":"p","signature":"{m,f,1}"}|, 43,
         ~"expected what it calls: {module,function,[Argument]}, found `\"`"},
        {~B|{"event":"call","process":"p","signature":"{m,f,[]}","module":"m"}|, 43,
         ~"expected only one of \"module\" and \"signature\""},
        {~B|{"event":"call","process":"p","function":"f"}|, 1, ~"expected a field \"module\""},
        {~B|{"event":"call","process":"p","module":"m","function":7}|, 55, ~"expected a name, a string"},
        {~B|{"event":"return","process":"p","module":"m","function":"f","arity":-1,"value":1}|, 69,
         ~"expected a function: {module,function,Arity}, found `-`"},
        {~B|{"event":"return","process":"p","module":"m","function":"f","arity":1}|, 1, ~"expected a field \"value\""},
        {~B|{"event":"return","process":"p","signature":"{m,f,1}","value":1,"term":"1"}|, 72,
         ~"expected only one of \"value\" and \"term\""},
        {~B|{"event":"return","module":"m","function":"f","arity":1,"value":1}|, 1, ~"expected a field \"process\""},
        {~B|{"event":"clock"}|, 10, ~"expected a field \"time\" beside this event"},
        {~B|{"event":"clock","time":null}|, 10, ~"expected a field \"time\" beside this event"},
        {~B|{"event":"clock","time":"1"}|, 25, ~"expected a time in nanoseconds, an integer below 2^63"},
        {~B|{"event":"functions"}|, 1, ~"expected a field \"functions\""},
        {~B|{"event":"functions","functions":"{m,f,1}"}|, 34,
         ~"expected functions in Erlang's notation, an array of strings"},
        {~B|{"event":"functions","functions":["{m,f,1}",7]}|, 34,
         ~"expected functions in Erlang's notation, an array of strings"},
        {~B|{"event":"functions","functions":["{m,f,1}","{m,f}"]}|, 34,
         ~"expected functions: [{module,function,Arity},...], found `[`"},
        {~B|{"event":"functions","functions":["{m,f"]}|, 34,
         ~"in the term, behind 4 bytes: expected `,` or `}`, found the end of the line"},
        {~B|{"event":"gap","process":"p","reason":"a","missing":"b"}|, 53,
         ~"expected how many are missing: a number, or unknown, found `\"`"},
        {[~B|{"event":"exit","process":"p","reason":|, Deep], 1040, ~"more than 1000 levels of nesting"},
        {[~B|{"event":"exit","process":"p","reason":|, binary:copy(~"9", 10001), $}], 40,
         ~"a number of more than 10000 digits"},
        {<<"{\"event\":\"", 16#FF, "\"}">>, 11, ~"bytes that are not UTF-8"}
    ]).

placed(Format, Cases) ->
    [{lists:sublist(binary_to_list(iolist_to_binary(Line)), 60), fun() ->
        Text = iolist_to_binary(Line),
        #{items := [], malformed := [{2, At, Said}]} = parse(Format, <<"\n", Text/binary>>),
        ?assertEqual({Column, iolist_to_binary(What)}, {At, unicode:characters_to_binary(Said)})
     end} || {Line, Column, What} <- Cases].

%% Bounds

atoms_are_bounded_test_() ->
    Term = fun(Name) -> iolist_to_binary([~B|{"event":"exit","process":"p","term":"|, Name, ~B|"}|]) end,
    Text = fun(Name) -> iolist_to_binary([~"exit(\"p\",", Name, ~")"]) end,
    [{atom_to_list(Format), fun() ->
        Parser = witness_log:parser(#{format => Format, max_atoms => 2}),
        Names = [iolist_to_binary([Prefix, integer_to_binary(N)]) || N <- [1, 2, 3]],
        [One, Two, Three] = [Line(Name) || Name <- Names],
        #{malformed := []} = witness_log:parse(One, Parser),
        #{malformed := []} = witness_log:parse(Two, Parser),
        #{malformed := [{1, _, What}]} = witness_log:parse(Three, Parser),
        {match, _} = re:run(What, "more than 2 atoms that are not known$"),
        %% Those that are there take none.
        #{malformed := []} = witness_log:parse(One, Parser),
        ?assertError(badarg, binary_to_existing_atom(lists:last(Names)))
     end} || {Format, Line, Prefix} <- [{text, Text, ~"unheard_of_in_text_"}, {json, Term, ~"unheard_of_in_json_"}]].

functions_and_nodes_are_bounded_like_atoms_test_() ->
    [{Prefix, fun() ->
        Parser = witness_log:parser(#{format => text, max_atoms => 1}),
        Lines = [["exit(\"p\",", Prefix, integer_to_list(N), Suffix, ")\n"] || N <- [171, 171, 172]],
        #{items := [{1, Item}, {2, Item}], malformed := [{3, 10, What}]} = witness_log:parse(iolist_to_binary(Lines),
            Parser),
        {match, _} = re:run(What, "^more than 1 atoms")
     end} || {Prefix, Suffix} <- [{"fun lists:map/", ""}, {"<", ".1.0>"}, {"#Ref<2", ".1.2.3>"}, {"#Port<3", ".1>"}]].

formats_are_known_by_name_and_by_their_beginning_test_() ->
    [?_assertEqual(Expected, witness_log:format_of(Name)) || {Name, Expected} <- [
        {"a.log", {ok, text}}, {"d.json/a.TXT.gz", {ok, text}}, {~"a.events.zst", {ok, text}}, {"a.jsonl", {ok, json}},
        {"a.ndjson.gz", {ok, json}}, {"a.json", {ok, json}}, {"a", unknown}, {"a.gz", unknown}, {"a.dat", unknown},
         {<<"\xff.log">>, {ok, text}}]] ++
    [?_assertEqual(Expected, witness_log:guess(Bytes)) || {Bytes, Expected} <- [
        {~"{\"event\"", json}, {~"\r\n  {", json}, {<<16#EF, 16#BB, 16#BF, "{">>, json}, {~"fork(", text},
         {~"% {", text}, {~"", text}]].

names_of_processes_are_those_of_a_log_test_() ->
    [?_assertEqual(Expected, witness_log:proc(Name)) || {Name, Expected} <- [
        {~"<0.5.0>", {ok, list_to_pid("<0.5.0>")}}, {~"p1", {ok, {external, ~"p1"}}},
         {~"<0.5", {ok, {external, ~"<0.5"}}},
        {~"", error}, {<<16#FF>>, error}]].

the_functions_of_calls_are_bounded_like_atoms_test_() ->
    Name = fun(N) -> "unheard_of_function_" ++ integer_to_list(N) end,
    [{atom_to_list(Format), fun() ->
        Parser = witness_log:parser(#{format => Format, max_atoms => 2}),
        #{items := [_, _], malformed := [{3, _, What}]} =
            witness_log:parse(iolist_to_binary([[Line(Name(First + N)), $\n] || N <- [1, 2, 3]]), Parser),
        ?assertMatch({match, _}, re:run(What, "more than 2 atoms that are not known$")),
        ?assertError(badarg, list_to_existing_atom(Name(First + 3)))
     end} || {Format, First, Line} <- [
        {text, 10, fun(F) -> ["call(\"p\",{m,", F, ",[]})"] end},
        {text, 20, fun(F) -> ["return(\"p\",{m,", F, ",0},1)"] end},
        {text, 30, fun(F) -> ["functions([{m,", F, ",0}])"] end},
        {json, 40, fun(F) -> ["{\"event\":\"call\",\"process\":\"p\",\"module\":\"m\",\"function\":\"", F, "\"}"] end},
        {json, 50, fun(F) -> ["{\"event\":\"return\",\"process\":\"p\",\"signature\":\"{m,", F, ",0}\",\"value\":1}"] end},
        {json, 60, fun(F) -> ["{\"event\":\"functions\",\"functions\":[\"{m,", F, ",0}\"]}"] end}]].

%% The examples of docs/logs.md are read, and its terms.
the_documentation_is_read_test() ->
    {ok, Page} = file:read_file("docs/logs.md"),
    Items = fun(Format) ->
        {match, Blocks} = re:run(Page, ["```", atom_to_binary(Format), "\\n(.*?)```"],
                                 [dotall, global, {capture, all_but_first, binary}]),
        [begin #{items := Read, malformed := []} = parse(Format, Block), [Item || {_, Item} <- Read] end || [Block] <- Blocks]
    end,
    [Calls, Text] = Items(text),
    [JsonCalls, Json] = Items(json),
    ?assertEqual({5, 5}, {length(Text), length(Json)}),
    ?assertMatch([{functions, _}, {init, _, _, _, _}, {call, _, _, _}, {return, _, _, 30, _}], Calls),
    ?assertEqual(Calls, JsonCalls),
    [_, Terms] = string:split(Page, "| | Examples |"),
    [Table, _] = string:split(Terms, "\n\n"),
    {match, Examples} = re:run(Table, "`([^`]+)`", [global, {capture, all_but_first, binary}]),
    ?assert(length(Examples) > 25),
    [?assertNotEqual({expected, Term}, {read_term(unicode:characters_to_list(string:replace(Term, "\\|", "|"))),
     Term}) ||
     [Term] <- Examples].

%% Helpers

read(Format, Line) ->
    case parse(Format, unicode:characters_to_binary(Line)) of
        #{items := [{1, Item}], malformed := []} -> Item;
        #{items := [], malformed := [_]} -> expected
    end.

read_term(Text) ->
    case read(text, ["exit(\"p\",", Text, ")"]) of
        {exit, _, Term, _} -> Term;
        expected -> expected
    end.

parse(Format, Block) -> witness_log:parse(Block, witness_log:parser(#{format => Format})).

%% The VM has a number of its own for a node that it does not know.
a_process_of_another_node_is_shown_as_in_the_log_test() ->
    #{items := [{1, E}]} = parse(text, ~"recv(<9021.5.0>,{#Ref<77.1.2.3>,#Port<9021.4>})"),
    ?assertEqual(~"<9021.5.0> ? {#Ref<77.1.2.3>,#Port<9021.4>}", witness_event:format(E)).
