-module(witness_spec_draw_tests).
-moduledoc """
Drawings of states that are given here. Whatever a specification holds, a drawing keeps its structure: its lines have
one of a few shapes, with labels in between that cannot end early.
""".
-include_lib("eunit/include/eunit.hrl").

a_loop_with_a_violation_test() ->
    Nodes = [node(1, 'and', ~"max X. ...", [{box, ~"_ ? bad", {verdict, no}}, {box, ~"_ ? good", {node, 1, []}}])],
    ?assertEqual(
       ~"""
       digraph monitors {
         node [shape=box, style=rounded, fontname="monospace"];
         edge [fontname="monospace"];
         subgraph cluster_1 {
           label="loop: with m:f(_)";
           start1 [shape=point]; start1 -> s1;
           s1 [label="s1: max X. ..."];
           satisfied1 [label="satisfied", peripheries=2, color=darkgreen];
           violated1 [label="violated", peripheries=2, color=red];
           s1 -> violated1 [label="_ ? bad"];
           s1 -> s1 [label="_ ? good"];
           s1 -> satisfied1 [label="otherwise", style=dotted];
         }
       }

       """, draw(dot, [{~"loop", Nodes}])),
    ?assertEqual(
       ~"""
       flowchart TD
         subgraph property1["loop#58; with m#58;f(#95;)"]
           start1(( )) --> s1
           s1["s1#58; max X. ..."]
           satisfied1((("satisfied")))
           violated1((("violated")))
           s1 -->|"#95; ? bad"| violated1
           s1 -->|"#95; ? good"| s1
           s1 -.->|"otherwise"| satisfied1
         end

       """, draw(mermaid, [{~"loop", Nodes}])).

%% What happens where an action does not match is drawn for every combination of modality and operator.
no_match_is_drawn_test_() ->
    [{lists:flatten(io_lib:format("~p in ~p", [Modality, Operator])), fun() ->
        Drawn = draw(dot, [{~"p", [node(1, Operator, ~"f", [{Modality, ~"a", {node, 1, []}}])]}]),
        ?assertEqual(Expected, [Line || <<"    s1 -> ", Line/binary>> <- lines(Drawn)])
     end} || {Modality, Operator, Expected} <- [
        {box, 'and', [~"s1 [label=\"a\"];", ~"satisfied1 [label=\"otherwise\", style=dotted];"]},
        {dia, 'or', [~"s1 [label=\"a\"];", ~"violated1 [label=\"otherwise\", style=dotted];"]},
        {box, 'or', [~"s1 [label=\"a\"];", ~"satisfied1 [label=\"not a\", style=dotted];"]},
        {dia, 'and', [~"s1 [label=\"a\"];", ~"violated1 [label=\"not a\", style=dotted];"]}]].

%% With a part, what is left when no action matches is that part.
a_part_takes_the_place_of_otherwise_test() ->
    Nodes = [(node(1, 'and', ~"f", [{box, ~"a", {verdict, no}}]))#{children := [{node, 2, []}]},
             node(2, 'or', ~"g", [{dia, ~"b", {verdict, yes}}])],
    Drawn = lines(draw(dot, [{~"p", Nodes}])),
    ?assertEqual([~"violated1 [label=\"a\"];", ~"s2 [label=\"and\", style=bold];"],
                 [L || <<"    s1 -> ", L/binary>> <- Drawn]),
    ?assertEqual([~"satisfied1 [label=\"b\"];", ~"violated1 [label=\"otherwise\", style=dotted];"],
                 [L || <<"    s2 -> ", L/binary>> <- Drawn]).

a_constant_decides_at_once_test() ->
    Drawn = draw(dot, [{~"p", [node(1, {constant, yes}, ~"tt", [])]}]),
    ?assertEqual([~"satisfied1 [label=\"any event\"];"], [L || <<"    s1 -> ", L/binary>> <- lines(Drawn)]).

only_verdicts_that_can_fall_are_drawn_test() ->
    Drawn = draw(mermaid, [{~"p", [node(1, 'and', ~"f", [{box, ~"a", {node, 1, []}}])]}]),
    ?assertNotEqual(nomatch, string:find(Drawn, ~"satisfied1")),
    ?assertEqual(nomatch, string:find(Drawn, ~"violated1")).

each_property_has_its_group_and_what_is_not_monitored_none_test() ->
    Nodes = fun(Number) -> [node(Number, 'and', ~"f", [{box, ~"a", {verdict, no}}])] end,
    Entries = [entry(1, undefined), (entry(2, undefined))#{action := none}, entry(3, ~"last")],
    Units = [unit(1, Nodes(1)), #{index => 2, signatures => []}, unit(3, Nodes(2))],
    Drawn = unicode:characters_to_binary(witness_spec_draw:draw(mermaid, Entries, Units)),
    ?assertEqual([~"property1[\"line 1#58; with m#58;f(#95;)\"]", ~"property3[\"last#58; with m#58;f(#95;)\"]"],
                 [Line || <<"  subgraph ", Line/binary>> <- lines(Drawn)]).

states_stand_in_the_order_of_their_numbers_test() ->
    Nodes = [node(N, 'and', ~"f", [{box, ~"a", {verdict, no}}]) || N <- [3, 10, 2]],
    ?assertEqual([~"s2", ~"s3", ~"s10"],
                 [Name || Line <- lines(draw(mermaid, [{~"p", Nodes}])),
                          {match, [Name]} <- [re:run(Line, ~B"^    (s\d+)\[", [{capture, all_but_first, binary}])]]).

actions_with_the_same_way_share_an_arrow_test() ->
    Leaves = [{box, iolist_to_binary([$a, integer_to_list(N)]), {verdict, no}} || N <- lists:seq(1, 10)],
    Drawn = fun(Format, Count) -> draw(Format, [{~"p", [node(1, 'and', ~"f", lists:sublist(Leaves, Count))]}]) end,
    ?assertNotEqual(nomatch, string:find(Drawn(dot, 2), ~"s1 -> violated1 [label=\"a1\\na2\"];")),
    ?assertNotEqual(nomatch, string:find(Drawn(mermaid, 2), ~"s1 -->|\"a1<br/>a2\"| violated1")),
    ?assertNotEqual(nomatch, string:find(Drawn(dot, 10), ~"a8\\nand 2 more\"")).

long_texts_are_cut_test() ->
    Long = binary:copy(~"x", 1000),
    Drawn = draw(dot, [{Long, [node(1, 'and', Long, [{box, Long, {verdict, no}}])]}]),
    ?assert(lists:all(fun(Line) -> byte_size(Line) < 120 end, lines(Drawn))),
    ?assertNotEqual(nomatch, string:find(Drawn, ~"xxx...")).

%% The label of each line is put in place of what it holds, in front of the test of the structure.
nothing_in_a_text_ends_a_label_test_() ->
    [{lists:flatten(io_lib:format("~w ~tp", [Format, Text])), fun() ->
        Drawn = fun(T) ->
            draw(Format, [{T, [node(1, 'and', T, [{box, T, {node, 2, []}}, {dia, T, {verdict, no}}]),
                               node(2, {constant, yes}, T, [])]}])
        end,
        ?assertEqual(structure(Format, Drawn(~"t")), structure(Format, Drawn(Text)))
     end} || Format <- [dot, mermaid], Text <- hostile()].

hostile() ->
    [~"\"", ~"\\", ~"\\\"", ~"a\\", ~"\"];x[\"", ~"\"]\nend\n", ~"\r\n", ~"#quot;", ~"#34;", ~"&quot;&#34;", ~"`code`",
     ~"%%{init: {}}%%", ~"style x:#fff;", ~"--> |x|", ~"<script>", ~"[a](b)", ~"1. list", ~"end", ~"subgraph",
     ~"\\N\\G\\l", <<0, 1, 27, 127>>, <<16#2028/utf8, 16#9b/utf8, 16#1F600/utf8, "grün"/utf8>>].

structure(dot, Drawn) ->
    [re:replace(Line, ~B"""
     "(?:[^"\\]|\\.)*"
     """, "L", [global, unicode, {return, binary}]) || Line <- lines(Drawn)];
%% Mermaid knows no escape inside a label: it ends at the first quotation mark.
structure(mermaid, Drawn) ->
    [re:replace(Line, ~B"""
     "[A-Za-z0-9 ,.(){}?]*(?:(?:#\d+;|<br/>)[A-Za-z0-9 ,.(){}?]*)*"
     """, "L", [global, unicode, {return, binary}]) || Line <- lines(Drawn)].

%% Input

draw(Format, Properties) ->
    Numbered = lists:enumerate(Properties),
    Entries = [entry(Index, Name) || {Index, {Name, _}} <- Numbered],
    Units = [unit(Index, Nodes) || {Index, {_, Nodes}} <- Numbered],
    unicode:characters_to_binary(witness_spec_draw:draw(Format, Entries, Units)).

lines(Text) -> binary:split(Text, ~"\n", [global]).

entry(Index, Name) ->
    #{index => Index, name => Name, line => Index, all => false, group => false, action => monitor, signature => ~"m:f(_)",
      per => []}.

unit(Index, Nodes = [#{number := First} | _]) ->
    #{index => Index, signatures => [], start => {node, First, []}, nodes => Nodes}.

node(Number, Operator, Text, Leaves) ->
    #{number => Number, location => {1, 1}, text => Text, scope => [], variables => [], operator => Operator,
      children => [], leaves => [{Modality, #{text => Action}, Target} || {Modality, Action, Target} <- Leaves]}.
