-module(witness_spec_machine_core).
-moduledoc """
The formula that a machine is short for, and the same formula as text.

One loop has the state and the data as parameters. Each transition is a modality with the name of its state in its guard, and `[else]`
leaves the machine as it is. Transitions of one state that may match the same event are a *chain*: `<a> f or ([a] ff and g)` is `f` for an
event that matches `a`, and otherwise `g`.

Entering a hot state adds an obligation: a loop over the transitions of this state only, which has to come to one that leaves it. This loop stands
inside of the other one, behind the action that enters. So its data have names of their own, and so have variables that this action has, too.

Everything is made of tokens, those of the author and a few more: so the formula and the text say the same, and each part of
the formula has the place of what its author wrote. The size is linear in that of the machine, but for the transitions of hot states, which
are repeated for each transition that enters one.
""".

-export([over/3, formula/2, braced/2]).
-export_type([seen/0]).

-type machine() :: witness_spec_machine:machine().
-type property() :: witness_spec_parse:property().
-type token() :: witness_spec_scan:token().
-type part() :: {witness_spec_parse:formula(), unicode:chardata()}.
-doc "An action of `over`, with its text.".
-type seen() :: {witness_spec_action:action(), unicode:chardata()}.

%% A modality of a state: its action, the text of that, and what follows.
-type item() :: {witness_spec_action:action(), unicode:chardata(), part()}.

-doc """
The alphabet of a machine if its author gives none: the actions of its transitions, and those of the `let`s in front. What is known only inside of
the machine (data, `let`s, times) is left out, and a guard with it too. A slice begins with an event that the first state
describes, if nothing else can happen there.
""".
-spec over(machine(), OfLets :: [witness_spec_action:action()], property()) -> [seen()].
over(#{states := [#{hot := Hot, transitions := First} | Others], data := Data}, Known,
     #{per := Per, lets := Lets} = Property) ->
    Begins = Per =/= [] andalso Hot =:= false
        andalso [T || #{action := 'else'} = T <- First, witness_spec_machine:is_change(T)] =:= [],
    Inside = ordsets:from_list([Name || {Name, _, _} <- Data] ++ [Name || #{name := Name} <- Lets]),
    Own = [seen(T, Mark, Inside, witness_spec_sentence:given(Property))
           || {Mark, Ts} <- [{Begins, First} | [{false, Ts} || #{transitions := Ts} <- Others]],
              #{action := Action} = T <- Ts, Action =/= 'else'],
    OfLets = [{Action#{begins => false}, Text}
              || #{kind := Kind, text := Text} = Action <- Known, Kind =/= test],
    %% An event with a value for the variables of `per` belongs to it, also if another action describes it without.
    {With, Without} = lists:partition(fun({#{pattern := Pattern}, _}) ->
        ordsets:is_subset(ordsets:from_list(Per), witness_spec_pattern:variables(Pattern))
    end, Own ++ OfLets),
    lists:uniq(fun({_, Text}) -> unicode:characters_to_binary(Text) end, With ++ Without).

seen(#{location := Location, text := Text} = Transition, Begins, Inside, Given) ->
    {Main, Alternatives} = split(witness_spec_sentence:untimed(whole(Transition))),
    Open = [case Token of
                {var, Anno, Name} -> {var, Anno, case lists:member(Name, Inside) of true -> '_'; false -> Name end};
                _ -> Token
            end || Token <- Main],
    Known = ordsets:union(variables(Open), Given),
    Kept = case ordsets:is_subset(variables(lists:append(Alternatives)), Known) of
        true -> join(Open, [], Alternatives);
        false -> Open
    end,
    {(action(Kept))#{location := Location, text := Text, begins => Begins}, print(Kept)}.

variables(Tokens) -> ordsets:from_list([Name || {var, _, Name} <- Tokens, Name =/= '_']).

-doc "The formula of a machine. The property has the `over` that counts.".
-spec formula(machine(), property()) -> part().
formula(#{location := Location, text := Text, variables := Variables, data := Data, states := [First | _] = States},
        #{per := Per, over := Over, lets := Lets, defined := Defined} = Property) ->
    Given = witness_spec_sentence:given(Property),
    Outside = ordsets:union(Given, ordsets:from_list([Name || #{name := Name} <- Lets])),
    Taken = ordsets:union([Variables, Outside, ordsets:from_list(Defined)]),
    Own = [Name || {Name, _, _} <- Data],
    Local = ordsets:subtract(Variables, ordsets:union(Outside, ordsets:from_list(['_' | Own ++ Defined]))),
    {[Loop, State, Inner, Rest | New], _} =
        lists:mapfoldl(fun new/2, Taken, ["X", "State", "Y", "Z" | [atom_to_list(Name) || Name <- Own ++ Local]]),
    {Names, Others} = lists:split(length(Own), New),
    C = #{meta => {Location, Text}, loop => Loop, state => State, inner => Inner, alphabet => alphabet(Over, Given),
          table => #{Name => One || #{name := Name} = One <- States}, data => Own,
          names => maps:from_list(lists:zip(Own, Names)), local => maps:from_list(lists:zip(Local, Others)),
          scope => ordsets:union(Given, ordsets:from_list([State | Own ++ Names]))},
    Parameters = [{State, Location, scanned(name(First), Location)} | Data],
    Otherwise = otherwise(box, again(Location, [{var, erl_anno:new(Location), State}], [], #{}, C), C),
    Members = lists:append([members(One, C) || One <- States]) ++ [Otherwise],
    Looped = fixpoint(max, {Location, Text}, Loop, Parameters, 'and', Members, "\n  "),
    all_of('and', {Location, Text},
           [fixpoint(max, {Location, Text}, Rest, [], 'and', [otherwise(box, called({Location, Text}, Rest, []), C)], "")
            || Per =/= [], [T || #{transitions := Ts} <- States, #{target := satisfied} = T <- Ts] =/= []]
           ++ [Looped | obligation(First, Data, map_get(names, C), C)]).

new(Name, Taken) ->
    New = list_to_atom(witness_spec_sentence_core:fresh(Name, #{known => Taken})),
    {New, ordsets:add_element(New, Taken)}.

%% The members of the loop for one state.

members(#{transitions := Transitions} = State, #{scope := Scope} = C) ->
    combined(box, lists:append([items(T, State, C) || T <- Transitions]), Scope).

items(#{action := 'else', target := stay, updates := []}, _, _) -> [];
items(#{action := 'else', location := Location, text := Text} = T, State, #{alphabet := Alphabet} = C) ->
    Follows = follows(T, State, C),
    [begin
         Tokens = join(scanned(Any, Location), test(State, Location, C), []),
         {explained(T, (action(Tokens))#{location := Location, text := Text, implied => true}), print(Tokens), Follows}
     end || Any <- Alphabet];
items(#{location := Location, text := Text} = T, State, C) ->
    {Main, Alternatives} = split(whole(T)),
    Tokens = join(Main, test(State, Location, C), Alternatives),
    [{explained(T, (action(Tokens))#{location := Location, text := Text}), print(Tokens), follows(T, State, C)}].

explained(#{target := {violated, Why}}, Action) when is_binary(Why) -> Action#{why => Why};
explained(_, Action) -> Action.

test(State, Location, #{state := Variable}) -> scanned([atom_to_list(Variable), " =:= ", name(State)], Location).

follows(#{target := {violated, _}, arrow := Arrow}, _, _) -> {{ff, {Arrow, ~"violated"}}, "ff"};
follows(#{target := satisfied, arrow := Arrow}, _, _) -> {{tt, {Arrow, ~"satisfied"}}, "tt"};
follows(#{target := stay, arrow := Arrow, updates := Updates}, State, C) ->
    again(Arrow, scanned(name(State), Arrow), Updates, #{}, C);
follows(#{target := {state, Name}, arrow := Arrow, updates := Updates, tokens := Tokens}, _,
        #{table := Table, data := Data, names := Names, local := Local} = C) ->
    #{Name := #{location := Location, text := Text} = State} = Table,
    Values = lists:zip3(Data, lists:duplicate(length(Data), Arrow), values(Arrow, Updates, #{}, C)),
    Inside = C#{names := maps:merge(Names, maps:with(variables(Tokens), Local))},
    all_of('and', {Location, Text},
           [again(Arrow, scanned(name(State), Arrow), Updates, #{}, C) | obligation(State, Values, #{}, Inside)]).

%% The loop with other parameters.
again(Place, State, Updates, Names, #{loop := Loop, meta := {_, Text}} = C) ->
    called({Place, Text}, Loop, [State | values(Place, Updates, Names, C)]).

called(Meta, Loop, Values) ->
    {{var, Meta, Loop, [{unicode:characters_to_binary(print(Value)), value(Value)} || Value <- Values]},
     [atom_to_list(Loop), [["(", lists:join(", ", [print(Value) || Value <- Values]), ")"] || Values =/= []]]}.

%% The tokens for the value of each data; what has no new one keeps its own.
values(Place, Updates, Names, #{data := Data}) ->
    [renamed(case lists:keyfind(Name, 1, Updates) of
                 {_, _, Tokens} -> Tokens;
                 false -> [{var, erl_anno:new(Place), Name}]
             end, Names) || Name <- Data].

renamed(Tokens, Names) ->
    [case Token of
         {var, Anno, Name} -> {var, Anno, maps:get(Name, Names, Name)};
         _ -> Token
     end || Token <- Tokens].

%% What has to happen in a hot state that begins with these values. In front of the loop, they know each other by their new names.

obligation(#{hot := false}, _, _, _) -> [];
obligation(#{hot := Hot, location := Location, text := Text, transitions := Transitions}, Values, Known,
           #{inner := Inner, names := Names, scope := Scope} = C) ->
    Meta = {Location, Text},
    Stays = fun(Place, Updates) -> called({Place, Text}, Inner, values(Place, Updates, Names, C)) end,
    Left = fun(#{target := stay, arrow := Arrow, updates := Updates}) -> Stays(Arrow, Updates);
              (#{arrow := Arrow}) -> {{tt, {Arrow, Text}}, "tt"}
           end,
    Items = [begin
                 Tokens = renamed(whole(T), Names),
                 {(action(Tokens))#{location := Place, text := Written, implied => true}, print(Tokens), Left(T)}
             end || #{action := Action, location := Place, text := Written} = T <- Transitions, Action =/= 'else'],
    Else = case [T || #{action := 'else'} = T <- Transitions] of
        [T] -> Left(T);
        [] -> Stays(Location, [])
    end,
    Parameters = [{map_get(Name, Names), Place, renamed(Tokens, Known)} || {Name, Place, Tokens} <- Values],
    Members = combined(dia, Items, Scope) ++ [otherwise(dia, Else, C)],
    {Formula, Shown} = Loop = fixpoint(min, Meta, Inner, Parameters, 'or', Members, ""),
    [case Hot of
         true -> Loop;
         {within, {integer, _, Nanoseconds} = Duration} ->
             {{within, Meta, {duration, Nanoseconds}, [], Formula}, ["within ", witness_spec_scan:token_text(Duration), " ", Shown]}
     end].

%% Modalities of which the first that matches counts, and those of a chain once more, so that `else` leaves their events to them.

-spec combined(box | dia, [item()], ordsets:ordset(atom())) -> [part()].
combined(Modality, Items, Scope) ->
    Numbered = lists:enumerate(Items),
    {Some, Others} = lists:partition(fun({N, Item}) ->
        lists:all(fun({M, Other}) -> M =:= N orelse are_independent(Item, Other, Scope) end, Numbered)
    end, Numbered),
    [Apart, Chained] = [[Item || {_, Item} <- Part] || Part <- [Some, Others]],
    [modal(Modality, Item) || Item <- Apart]
        ++ [chain(Modality, Chained) || Chained =/= []]
        ++ [modal(Modality, copy(Item, case Modality of box -> tt; dia -> ff end)) || Item <- Chained].

chain(Modality, [Last]) -> modal(Modality, Last);
chain(Modality, [{#{location := Location, text := Text}, _, _} = First | Others]) ->
    Meta = {Location, Text},
    all_of('or', Meta, [modal(dia, First), all_of('and', Meta, [modal(box, copy(First, ff)), chain(Modality, Others)])]).

copy({#{location := Location, text := Text} = Action, Shown, _}, Constant) ->
    {Action#{implied => true}, Shown, {{Constant, {Location, Text}}, atom_to_list(Constant)}}.

%% Which of two ways out of a hot state counts makes no difference. Which events the name of an action stands for is not known here.
are_independent({#{implied := true}, _, {{tt, _}, _}}, {#{implied := true}, _, {{tt, _}, _}}, _) -> true;
are_independent({One, _, _}, {Other, _, _}, Scope) -> are_disjoint(One, Other, Scope).

are_disjoint(#{kind := One}, #{kind := Other}, _) when One =:= use; Other =:= use -> false;
are_disjoint(One, Other, Scope) -> witness_spec_overlap:disjoint(One, Other, Scope).

modal(Modality, {#{location := Location, text := Text} = Action, Shown, {Formula, Follows}}) ->
    {{Modality, {Location, Text}, Action, Formula},
     case Modality of
         box -> ["[", Shown, "] ", Follows];
         dia -> ["<", braced(Action, Shown), "> ", Follows]
     end}.

-doc "The text of an action where a guard needs braces.".
-spec braced(witness_spec_action:action(), unicode:chardata()) -> unicode:chardata().
braced(#{guard := []}, Shown) -> Shown;
braced(_, Shown) -> ["{", Shown, "}"].

otherwise(Modality, {Formula, Follows}, #{meta := {Location, _} = Meta}) ->
    Else = (witness_spec_action:action(scanned("else", Location), Location))#{text := ~"else", implied => true},
    {{Modality, Meta, Else, Formula}, [case Modality of box -> "[else] "; dia -> "<else> " end, Follows]}.

all_of(_, _, [Single]) -> Single;
all_of(Operator, Meta, Parts) ->
    {Formulas, Texts} = lists:unzip(Parts),
    {{Operator, Meta, Formulas}, ["(", lists:join([" ", atom_to_list(Operator), " "], Texts), ")"]}.

fixpoint(Fixpoint, Meta, Name, Parameters, Operator, Members, Break) ->
    {Formula, Body} = case Members of
        [{Only, Text}] -> {Only, Text};
        _ ->
            {Formulas, Texts} = lists:unzip(Members),
            {{Operator, Meta, Formulas}, lists:join([case Break of "" -> " "; _ -> Break end, atom_to_list(Operator), " "], Texts)}
    end,
    {{Fixpoint, Meta, Name, [{Parameter, Place, value(Tokens)} || {Parameter, Place, Tokens} <- Parameters], Formula},
     [atom_to_list(Fixpoint), " ", atom_to_list(Name),
      [["(", lists:join(", ", [[atom_to_list(Parameter), " = ", print(Tokens)] || {Parameter, _, Tokens} <- Parameters]), ")"]
       || Parameters =/= []],
      ".(", Break, Body, ")"]}.

%% Actions for all events of the alphabet. They bind nothing.
alphabet(all, _) -> [witness_spec_action:any(Kind) || Kind <- [fork, init, exit, send, recv]];
alphabet(Over, Given) ->
    lists:uniq([case Action of
                    #{kind := use, name := Name, arguments := []} -> atom_to_list(Name);
                    #{kind := use, name := Name, arguments := Arguments} ->
                        Shown = [case ordsets:is_subset(witness_spec_pattern:variables(Pattern), Given) of
                                     true -> Text;
                                     false -> "_"
                                 end || {Text, Pattern} <- Arguments],
                        unicode:characters_to_list([atom_to_list(Name), "(", lists:join(", ", Shown), ")"]);
                    #{kind := Kind} ->
                        case witness_spec_action:called(Action) of
                            none -> witness_spec_action:any(Kind);
                            Called -> witness_spec_action:any(Called)
                        end
                end || Action <- Over]).

%% Tokens.

%% The tokens of an action, with what sentences may leave out.
whole(#{tokens := Tokens, location := Location}) ->
    {Prefix, _} = witness_spec_sentence:prefix(Tokens),
    scanned(Prefix, Location) ++ Tokens.

action(Tokens) -> witness_spec_action:action(Tokens, behind(Tokens)).

value(Tokens) -> witness_spec_pattern:expression(Tokens, "a value", behind(Tokens)).

behind(Tokens) -> witness_spec_scan:after_token(lists:last(Tokens)).

%% The tokens in front of the guard, and those of its alternatives.
split(Tokens) ->
    case witness_spec_pattern:split_guard(Tokens) of
        {Main, [_ | Guard]} -> {Main, [Tests || {Tests, _} <- witness_spec_pattern:split(Guard, ';', behind(Tokens))]};
        {Main, []} -> {Main, []}
    end.

%% An action with one more test in each alternative of its guard.
join(Main, [], []) -> Main;
join([First | _] = Main, Test, Alternatives) ->
    Place = witness_spec_scan:location(First),
    Guard = case Alternatives of
        [] -> [Test];
        _ when Test =:= [] -> Alternatives;
        _ -> [Test ++ scanned(",", Place) ++ Tests || Tests <- Alternatives]
    end,
    Main ++ scanned("when", Place) ++ lists:append(lists:join(scanned(";", Place), Guard)).

name(#{name := Name}) -> io_lib:format("~tw", [Name]).

%% Tokens that the author did not write, from a place on.
-spec scanned(unicode:chardata(), witness_spec_diagnostic:location()) -> [token()].
scanned(Text, {Line, Column}) ->
    {ok, Tokens} = witness_spec_scan:string(<<_/binary>> = unicode:characters_to_binary(Text)),
    [setelement(2, Token, erl_anno:set_location({Line, Column + erl_anno:column(Anno) - 1}, Anno))
     || Token <- Tokens, element(1, Token) =/= eof, Anno <- [element(2, Token)]].

%% What stands together stays together. A variable may have another name than its author gave it.
-spec print([token()]) -> unicode:chardata().
print([First | Others]) ->
    {Texts, _} = lists:mapfoldl(fun(Token, Before) ->
        Joined = witness_spec_scan:after_token(Before) =:= witness_spec_scan:location(Token) orelse is_separator(Token),
        {[case Joined of true -> ""; false -> " " end, text(Token)], Token}
    end, First, Others),
    [text(First) | Texts].

is_separator({Symbol, _}) -> Symbol =:= ',' orelse Symbol =:= ';';
is_separator(_) -> false.

text({var, _, Name}) -> atom_to_list(Name);
text(Token) -> witness_spec_scan:token_text(Token).
