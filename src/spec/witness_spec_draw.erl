-module(witness_spec_draw).
-moduledoc """
Draws the states of generated monitors, for Graphviz (`dot`) and for Mermaid (`flowchart`).

A box is a state (`m:witness_spec_node`): the name of its function in the generated module, and its formula. An arrow is
an action that leads to another state or to a verdict. If several match an event, all are followed, since the `and` or `or`
of the state combines their results. Actions with the same source and target share an arrow, one in each line.

A dotted arrow is taken when no action matches: in a conjunction of `[a] f` nothing remains to be satisfied, in a
disjunction of `<a> f` nothing can be satisfied any more. If `[a] f` is in a disjunction or `<a> f` in a
conjunction, the dotted arrow is for that action alone (`not a`). A thick arrow leads to another combination inside the
same formula, which reads the same event.

Of a machine the boxes are its states, and the arrows its transitions (`m:witness_spec_machine_draw`).

Text of the specification is cut, and escaped for the language of the drawing: nothing in it ends a label.
""".

-export([draw/3]).

-export_type([format/0, drawn/0]).

-doc "The language of the drawing.".
-type format() :: dot | mermaid.

-doc "What is drawn of a property: that of its unit, or a machine.".
-type drawn() :: #{index := pos_integer(), start := target(), nodes := [witness_spec_node:state_node() | state()],
                   term() => term()}.
-doc "A state of a machine, with the text of its transitions.".
-type state() :: #{number := number_of(), text := binary(), arrows := [{binary(), target()}]}.
-type target() :: {verdict, yes | no} | {node, number_of(), list()}.
%% A state of a machine has the index of its property.
-type number_of() :: non_neg_integer() | {pos_integer(), pos_integer()}.

-type place() :: {state, number_of()} | yes | no.

%% `else`: no action matches; `part`: a combination inside the formula.
-type edge() :: {{From :: place(), To :: place(), action | 'else' | part}, Text :: unicode:chardata()}.

-define(MAX_FORMULA_CHARACTERS, 60).
-define(MAX_ACTION_CHARACTERS, 50).
-define(MAX_LINES, 8).

-doc "A drawing of all monitored properties, from the entries of a file and its units.".
-spec draw(format(), [witness_spec:entry()], [drawn()]) -> binary().
draw(Format, Entries, Units) ->
    Titles = #{Index => title(Entry) || #{index := Index} = Entry <- Entries},
    Pictures = [picture(Format, Index, maps:get(Index, Titles), Start, lists:sort(fun earlier/2, Nodes)) ||
                #{index := Index, start := {node, Start, _}, nodes := Nodes} <- Units],
    <<_/binary>> = unicode:characters_to_binary(whole(Format, Pictures)).

earlier(#{number := A}, #{number := B}) -> A =< B.

title(#{line := Line, name := Name, signature := Signature, all := All}) ->
    Named = case Name of undefined -> ["line ", integer_to_binary(Line)]; _ -> Name end,
    [Named, case All of true -> ": "; false -> ": with " end, Signature].

picture(Format, Index, Title, Start, Nodes) ->
    Edges = lists:append([edges(Node) || Node <- Nodes]),
    Arrows = lists:uniq([Way || {Way, _} <- Edges]),
    Verdicts = [Verdict || Verdict <- [yes, no], lists:keymember(Verdict, 2, Arrows)],
    group(Format, Index, short(Title, ?MAX_FORMULA_CHARACTERS),
          [begins(Format, Index, Start)]
          ++ [state(Format, Number, short([[[id(0, {state, Number}), ": "] || is_integer(Number)], Text], ?MAX_FORMULA_CHARACTERS)) ||
              #{number := Number, text := Text} <- Nodes]
          ++ [verdict(Format, Index, Verdict) || Verdict <- Verdicts]
          ++ [arrow(Format, Index, Way, labels([Text || {Same, Text} <- Edges, Same =:= Way])) || Way <- Arrows]).

labels(Texts) ->
    Shown = [short(Text, ?MAX_ACTION_CHARACTERS) || Text <- lists:uniq(Texts)],
    case length(Shown) - ?MAX_LINES of
        More when More > 0 -> lists:sublist(Shown, ?MAX_LINES) ++ [["and ", integer_to_binary(More), " more"]];
        _ -> Shown
    end.

-spec edges(witness_spec_node:state_node() | state()) -> [edge()].
edges(#{number := Number, arrows := Arrows}) ->
    [{{{state, Number}, to(Target), action}, Text} || {Text, Target} <- Arrows];
edges(#{number := Number, operator := {constant, Verdict}}) ->
    [{{{state, Number}, Verdict, action}, "any event"}];
edges(#{number := Number, operator := Operator, leaves := Leaves, children := Children}) ->
    From = {state, Number},
    {Neutral, Zero, Unit} = case Operator of 'and' -> {box, no, yes}; 'or' -> {dia, yes, no} end,
    [{{From, to(Target), action}, Text} || {_, #{text := Text}, Target} <- Leaves]
        ++ [{{From, Zero, 'else'}, ["not ", Text]} || {Modality, #{text := Text}, _} <- Leaves, Modality =/= Neutral]
        ++ [{{From, to(Child), part}, atom_to_list(Operator)} || Child <- Children]
        ++ [{{From, Unit, 'else'}, "otherwise"} ||
            Children =:= [], lists:all(fun({Modality, _, _}) -> Modality =:= Neutral end, Leaves),
            not lists:any(fun({_, #{kind := 'else'}, _}) -> true; (_) -> false end, Leaves)].

to({verdict, Verdict}) -> Verdict;
to({node, Number, _}) -> {state, Number}.

word(yes) -> "satisfied";
word(no) -> "violated".

id(_, {state, {Index, Number}}) -> ["m", integer_to_binary(Index), "_", integer_to_binary(Number)];
id(_, {state, Number}) -> ["s", integer_to_binary(Number)];
id(Index, Verdict) -> [word(Verdict), integer_to_binary(Index)].

short(Text, Limit) ->
    case string:length(Text) > Limit of
        true -> [string:slice(Text, 0, Limit - 3), "..."];
        false -> Text
    end.

%% Graphviz.

whole(dot, Pictures) ->
    ["digraph monitors {\n"
     "  node [shape=box, style=rounded, fontname=\"monospace\"];\n"
     "  edge [fontname=\"monospace\"];\n",
     Pictures, "}\n"];
%% Mermaid.
whole(mermaid, Pictures) ->
    ["flowchart TD\n", Pictures].

group(dot, Index, Title, Lines) ->
    ["  subgraph cluster_", integer_to_binary(Index), " {\n    label=", quote(dot, [Title]), ";\n",
     [["    ", Line, ";\n"] || Line <- Lines], "  }\n"];
group(mermaid, Index, Title, Lines) ->
    ["  subgraph property", integer_to_binary(Index), "[", quote(mermaid, [Title]), "]\n",
     [["    ", Line, "\n"] || Line <- Lines], "  end\n"].

begins(dot, Index, Start) ->
    From = ["start", integer_to_binary(Index)],
    [From, " [shape=point]; ", From, " -> ", id(Index, {state, Start})];
begins(mermaid, Index, Start) ->
    ["start", integer_to_binary(Index), "(( )) --> ", id(Index, {state, Start})].

state(dot, Number, Text) -> [id(0, {state, Number}), " [label=", quote(dot, [Text]), "]"];
state(mermaid, Number, Text) -> [id(0, {state, Number}), "[", quote(mermaid, [Text]), "]"].

verdict(dot, Index, Verdict) ->
    [id(Index, Verdict), " [label=\"", word(Verdict), "\", peripheries=2, color=", colour(Verdict), "]"];
verdict(mermaid, Index, Verdict) ->
    [id(Index, Verdict), "(((\"", word(Verdict), "\")))"].

colour(yes) -> "darkgreen";
colour(no) -> "red".

arrow(dot, Index, {From, To, Kind}, Labels) ->
    Style = case Kind of action -> ""; 'else' -> ", style=dotted"; part -> ", style=bold" end,
    [id(Index, From), " -> ", id(Index, To), " [label=", quote(dot, Labels), Style, "]"];
arrow(mermaid, Index, {From, To, Kind}, Labels) ->
    Line = case Kind of action -> " -->|"; 'else' -> " -.->|"; part -> " ==>|" end,
    [id(Index, From), Line, quote(mermaid, Labels), "| ", id(Index, To)].

%% A label of several lines.
quote(Format, Lines) ->
    Break = case Format of dot -> "\\n"; mermaid -> "<br/>" end,
    Escaped = [[escape(Format, visible(Char)) || Char <- unicode:characters_to_list(Line)] || Line <- Lines],
    [$", lists:join(Break, Escaped), $"].

visible(Char) when Char < $\s; Char >= 16#7F, Char < 16#A0; Char =:= 16#2028; Char =:= 16#2029 -> $\s;
visible(Char) -> Char.

%% Labels know backslash sequences and the entities of HTML.
escape(dot, $") -> "\\\"";
escape(dot, $\\) -> "\\\\";
escape(dot, $&) -> "&amp;";
escape(dot, Char) -> Char;
%% Some versions read labels as Markdown, and look for directives and styles everywhere in the text: every character that is
%% not known to be harmless is written as an entity.
escape(mermaid, Char) when Char >= $a, Char =< $z; Char >= $A, Char =< $Z; Char >= $0, Char =< $9 -> Char;
escape(mermaid, Char) ->
    case lists:member(Char, " ,.?(){}") of
        true -> Char;
        false -> [$#, integer_to_binary(Char), $;]
    end.
