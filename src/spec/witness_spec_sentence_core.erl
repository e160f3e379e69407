-module(witness_spec_sentence_core).
-moduledoc """
What sentences expand to: `let`s and a formula, as text of the language (docs/internals/semantics.md, *Sentences*).

A scope cuts *segments* out of a trace, and the main part of a sentence is a formula about a segment. In a segment that `r` ends, each loop
has a way out for `r`, and each obligation that is open there is violated. From the beginning of the trace on (no scope, or
`before`) what came before is kept in `let`s, which know it also where slices begin late or anew. Behind a `q` it is kept in the loop.

`between` and `before` are about segments that end: the main part, or no `r` comes any more.
""".

-export([lists/2, begins/2, name/1, alternatives/1, names/1, both/2, fresh/2, why/3]).
-export_type([context/0]).

-doc """
`write` gives the text of an action with more tests in its guard, and whether it has a guard. `known` are the names that the core does not
take.
""".
-type context() :: #{write := fun((role(), guard()) -> {unicode:chardata(), none | guarded}),
                     actions := #{role() => witness_spec_action:action()}, roles := [role(), ...], per := [atom()],
                     given := ordsets:ordset(atom()), known := ordsets:ordset(atom())}.
-type role() :: witness_spec_sentence:role().
-type form() :: witness_spec_sentence:form().
-type guard() :: [[unicode:chardata()]].
-type formula() :: tt | ff | {'and' | 'or', [formula(), ...]}
    | {box | dia, 'else' | {unicode:chardata(), none | guarded}, formula()}
    | {max | min, Name :: string(), data(), formula()} | {again, Name :: string(), Argument :: [unicode:chardata()]}
    | {within | during, Duration :: string(), formula()}.
-type data() :: [{Name :: string(), First :: string()}].  % the parameter of a loop, if it has one

-doc "The `let`s, and `check` with the formula, each a line.".
-spec lists(witness_spec_sentence:sentence(), context()) -> [unicode:chardata(), ...].
lists(#{form := Form, scope := Scope}, C) ->
    {Lets, Formula} = scoped(Scope, Form, C#{depth => 1, leave => none, only => #{}}),
    Lets ++ [["check ", text(Formula)]].

-doc "The actions with which slices begin: the events that matter first.".
-spec begins(form(), witness_spec_sentence:scope()) -> [role(), ...].
begins(_, Scope) when Scope =:= 'after'; Scope =:= until; Scope =:= between -> [q];
begins({precedes, _}, _) -> [b];
begins(alternates, _) -> [a, b];
begins({exactly, _}, before) -> [a, r];
begins({at_least, _, _}, before) -> [a, r];
begins(_, _) -> [a].

-doc "What is wrong where this action violates the sentence, if the action alone does not say it.".
-spec why(witness_spec_sentence:sentence(), role(), #{role() => witness_spec_action:action()}) -> #{why => binary()}.
why(#{form := Form, scope := Scope}, Role, Actions) ->
    Of = fun(One) -> #{One := #{text := Text}} = Actions, ["`", Text, "`"] end,
    Told = case Form of
        {leads, none} when is_map_key({b, 2}, Actions) -> {leads, chain};
        _ -> Form
    end,
    case why(Told, Scope, Role, Of) of
        "" -> #{};
        Text -> #{why => unicode:characters_to_binary(Text)}
    end.

why({precedes, none}, _, b, Of) -> ["there is no ", Of(a), " before it"];
why({precedes, Duration}, _, b, Of) -> ["there is no ", Of(a), " in the ", Duration, " before it"];
why({precedes, _}, _, {b, _}, Of) -> ["there is no ", Of(a), " before ", Of(b)];
why(never, _, r, Of) -> [Of(a), " came before it"];
why(always, _, r, Of) -> ["something else than ", Of(a), " came before it"];
why({leads, none}, _, r, Of) -> [Of(b), " has not come"];
why({leads, chain}, _, r, Of) -> ["not all has come that ", Of(a), " leads to"];
why({leads, Duration}, _, r, Of) -> ["what ", Of(a), " leads to has not come in ", Duration];
why({at_least, N, _}, _, r, Of) -> [Of(a), " came less than ", times(N), " before it"];
why({exactly, N}, _, r, Of) when N > 0 -> [Of(a), " did not come ", times(N), " before it"];
why(_, _, r, _) -> "what the sentence forbids came before it";
why(never, Scope, a, Of) when Scope =:= 'after'; Scope =:= until -> [Of(q), " came before it"];
why({never_within, Duration}, _, a, Of) -> [Of(q), " came in the ", Duration, " before it"];
why({Kind, N}, _, a, _) when Kind =:= at_most; Kind =:= exactly -> ["it came more than ", times(N)];
why({in_any, N, Duration}, _, a, _) -> ["it came more than ", times(N), " in ", Duration];
why({unique, Names}, _, a, _) -> ["the same ", names(Names), " came before it"];
why({increasing, strictly, V}, _, a, _) -> ["`", atom_to_list(V), "` is not greater than the one before"];
why({increasing, equal, V}, _, a, _) -> ["`", atom_to_list(V), "` is smaller than the one before"];
why(alternates, _, a, Of) -> ["there is no ", Of(b), " behind the one before"];
why(alternates, _, b, Of) -> ["there is no ", Of(a), " for it"];
why({open, N}, _, a, _) -> [integer_to_list(N), " ", case N of 1 -> "is"; _ -> "are" end, " open"];
why(_, _, _, _) -> "".

times(1) -> "once";
times(N) -> [integer_to_list(N), " times"].

%% Scopes.

scoped(globally, Form, C) ->
    {Lets, Formula} = main(Form, first, C),
    {Lets, lasting(Form, Formula, C)};
%% A slice may begin behind the first `r`, or begin anew there.
scoped(before, Form, C) ->
    Ends = fresh("Ends", C),
    Own = C#{leave := tt, only := #{r => [[[Ends, " =:= 1"]]], others => [[[Ends, " =:= 0"]]]}},
    {Lets, Formula} = main(Form, first, Own),
    {['let'(Ends, "count ", r, [], C) | Lets], if_ended(lasting(Form, Formula, Own), Own)};
scoped('after', {never_within, Duration}, C) ->
    Inner = deeper(C),
    {[], loop([box(q, {'and', [here(C), {during, Duration, loop([box(a, ff, Inner)], Inner)}]}, C)], C)};
scoped('after', Form, C) ->
    Inner = deeper(C),
    {Lets, Formula} = main(Form, behind, Inner),
    {Lets, loop([box(q, lasting(Form, Formula, Inner), C)], C)};
scoped(Scope, Form, C) ->
    Inner = (deeper(C))#{leave := here(C)},
    {Lets, Formula} = main(Form, behind, Inner),
    Segment = case Scope of
        until -> Formula;
        between -> if_ended(Formula, Inner)
    end,
    {Lets, loop(unless([r], q, [], Segment, C) ++ [box(r, here(C), C) || not are_disjoint(q, r, C)], C)}.

%% What is violated only if the segment ends.
if_ended(Formula, #{depth := Depth} = C) ->
    {'or', [Formula, loop([box(r, ff, C)], C#{depth := Depth + 1})]}.

%% A slice that has come to a decision would begin again.
lasting(Form, Formula, #{per := [_ | _], depth := Depth} = C) when element(1, Form) =:= at_least; element(1, Form) =:= exactly ->
    {'and', [loop([], C#{depth := Depth + 1}), Formula]};
lasting(_, Formula, _) -> Formula.

%% The main part, in a segment that begins with the trace (`first`) or `behind` a `q`.

main(never, _, C) -> {[], segment([box_in(a, ff, C)], C)};
main(always, _, #{depth := Depth} = C) ->
    X = loop_name(Depth, C),
    {[], {max, X, [], {'and', lists:append([box_in(a, here(C), C)]) ++ leaving(C) ++ [{box, 'else', ff}]}}};
main({at_most, N}, From, C) -> counted("", N, From, C);
main({in_any, N, Duration}, first, C) -> counted(limited(Duration), N, first, C);
main({in_any, N, Duration}, behind, C) ->
    %% The last events are those of the segment.
    [Count, In] = [fresh(Name, C) || Name <- ["Count", "In"]],
    Most = integer_to_list(N),
    {['let'(Count, ["count ", limited(Duration)], a, [], C)],
     segment([{In, "0"}], [box_in(a, [[[In, " >= ", Most], [Count, " > ", Most]]], ff, C),
                           box_in(a, [[[In, " < ", Most]], [[Count, " =< ", Most]]], here(["min(", In, " + 1, ", Most, ")"], C), C)], C)};
main({at_least, N, Duration}, From, C) ->
    {Lets, Reached} = reached(N, From, C),
    {Lets, alongside(limited(Duration, Reached), From, C)};
main({exactly, 0}, From, C) -> main(never, From, C);
main({exactly, N}, From, C) ->
    {Lets, AtMost} = counted("", N, From, C),
    {_, Reached} = reached(N, From, C),
    {Lets, {'and', [AtMost, Reached]}};
main({leads, Duration}, _, C) ->
    {[First | Others], Second} = chains(C),
    Own = (deeper(C))#{leave := case C of #{leave := none} -> none; _ -> tt end},
    Then = chain(Others, limited(Duration, answers(Second, last(Others, Own))), Own),
    {[], segment([box_in(First, {'and', [here(C), Then]}, C)], C)};
main({precedes, Duration}, first, C) ->
    {Causes, [Effect | Others]} = chains(C),
    Seen = fresh("Seen", C),
    {causes(Causes, none, 1, Seen, Duration, C),
     segment(only_if(Effect, [[["not ", Seen]]], chain(Others, ff, deeper(C)), C), C)};
main({precedes, Duration}, behind, C) ->
    {Causes, Effects} = chains(C),
    Seen = fresh("Seen", C),
    {['let'(Seen, ["once ", limited(Duration)], a, [], C) || Duration =/= none],
     preceded(Causes, Effects, case Duration of none -> none; _ -> Seen end, C)};
main(alternates, _, C) ->
    Open = fresh("Open", C),
    Not = [[["not ", Open]]],
    Is = [[[Open]]],
    {[], segment([{Open, "false"}], [box_in(b, Not, ff, C), box_in(a, Is, ff, C), box_in(a, Not, here("true", C), C),
                                     box_in(b, Is, here("false", C), C)], C)};
main({unique, Names}, first, C) ->
    Times = [fresh("Times", C), "(", names(Names), ")"],
    {['let'(Times, "count ", a, [], C)], segment(only_if(a, [[[Times, " > 1"]]], ff, C), C)};
main({unique, Names}, behind, C) ->
    Seen = fresh("Seen", C),
    Key = key(Names),
    {[], segment([{Seen, "#{}"}],
                 [box_in(a, [[["is_map_key(", Key, ", ", Seen, ")"]]], ff, C),
                  box_in(a, [[["not is_map_key(", Key, ", ", Seen, ")"]]], here([Seen, "#{", Key, " => true}"], C), C)], C)};
main({increasing, How, Name}, _, C) ->
    Last = fresh("Last", C),
    V = atom_to_list(Name),
    {Wrong, Right} = case How of strictly -> {" =< ", " > "}; equal -> {" < ", " >= "} end,
    {[], segment([{Last, "[]"}],
                 [box_in(a, [[[Last, " =/= []"], [V, Wrong, "hd(", Last, ")"]]], ff, C),
                  box_in(a, [[[Last, " =:= []"]], [[V, Right, "hd(", Last, ")"]]], here(["[", V, "]"], C), C)], C)};
main({open, N}, _, #{actions := #{a := #{pattern := A}, b := #{pattern := B}}, given := Given} = C) ->
    Open = fresh("Open", C),
    Most = integer_to_list(N),
    Both = ordsets:intersection(witness_spec_pattern:variables(A), witness_spec_pattern:variables(B)),
    {First, Closed, Full, More, Opened} = case ordsets:subtract(Both, Given) of
        [] -> {"0", ["max(0, ", Open, " - 1)"], [[[Open, " >= ", Most]]], [[[Open, " < ", Most]]], [Open, " + 1"]};
        Names ->
            Key = key(Names),
            Size = ["map_size(", Open, ")"],
            IsOpen = ["is_map_key(", Key, ", ", Open, ")"],
            {"#{}", ["maps:remove(", Key, ", ", Open, ")"], [[[Size, " >= ", Most], ["not ", IsOpen]]],
             [[[Size, " < ", Most]], [IsOpen]], [Open, "#{", Key, " => true}"]}
    end,
    {[], segment([{Open, First}], [box_in(b, [], here(Closed, C), C), unless_in([b], a, Full, ff, C),
                                   unless_in([b], a, More, here(Opened, C), C)], C)}.

counted(Window, N, first, C) ->
    Count = fresh("Count", C),
    {['let'(Count, ["count ", Window], a, [], C)], segment(only_if(a, [[[Count, " > ", integer_to_list(N)]]], ff, C), C)};
counted("", 0, behind, C) -> main(never, behind, C);
counted("", N, behind, C) ->
    Count = fresh("Count", C),
    Most = integer_to_list(N),
    {[], segment([{Count, "0"}], [box_in(a, [[[Count, " >= ", Most]]], ff, C),
                                  box_in(a, [[[Count, " < ", Most]]], here([Count, " + 1"], C), C)], C)}.

%% There come so many, before an `r`.
reached(N, first, C) ->
    Count = fresh("Count", C),
    #{depth := Depth} = Own = deeper(C),
    {['let'(Count, "count ", a, [], C)],
     {min, loop_name(Depth, Own), [], {'or', dia_in(a, [[[Count, " >= ", integer_to_list(N)]]], tt, Own) ++ dia_in(a, [], here(Own), Own)
                                                 ++ missed(Own) ++ [{dia, 'else', here(Own)}]}}};
reached(1, behind, C) -> {[], eventually(a, tt, deeper(C))};
reached(N, behind, C) ->
    #{depth := Depth} = Own = deeper(C),
    Count = fresh("Count", C),
    Last = integer_to_list(N - 1),
    {[], {min, loop_name(Depth, Own), [{Count, "0"}],
          {'or', dia_in(a, [[[Count, " >= ", Last]]], tt, Own)
                     ++ dia_in(a, [[[Count, " < ", Last]]], here([Count, " + 1"], Own), Own)
                     ++ missed(Own) ++ [{dia, 'else', here(Count, Own)}]}}}.

%% What is decided before the segment ends has the next segment behind it, too.
alongside(Formula, behind, #{leave := {again, _, _}} = C) -> {'and', [segment([], C), Formula]};
alongside(Formula, _, _) -> Formula.

%% The actions on both sides.
chains(#{roles := Roles}) ->
    {[Role || Role <- Roles, hd(name(Role)) =:= $A], [Role || Role <- Roles, hd(name(Role)) =:= $B]}.

%% Behind the next of these the next of those..., and then the formula.
chain([], Formula, _) -> Formula;
chain([Role | Roles], Formula, C) ->
    segment([box_in(Role, chain(Roles, Formula, deeper(C)), C)], C).

%% As many loops deeper.
last(Roles, #{depth := Depth} = C) -> C#{depth := Depth + length(Roles)}.

answers([Role], C) -> eventually(Role, tt, C);
answers([Role | Roles], C) -> eventually(Role, answers(Roles, deeper(C)), C).

causes([Role], Before, _, Seen, Duration, C) ->
    ['let'(Seen, ["once ", limited(Duration)], Role, [[[Before]] || Before =/= none], C)];
causes([Role | Roles], Before, N, Seen, Duration, C) ->
    [Was, WasBefore] = [fresh(Name ++ [integer_to_list(N) || N > 1], C) || Name <- ["Was", "Before"]],
    ['let'(Was, "once ", Role, [[[Before]] || Before =/= none], C), ["let ", WasBefore, " = previously ", Was]
     | causes(Roles, WasBefore, N + 1, Seen, Duration, C)].

%% Up to the last cause, an effect is wrong; behind it, if it is too late.
preceded([Cause | Causes], [Effect | Others] = Effects, Seen, C) ->
    Wrong = chain(Others, ff, deeper(C)),
    Then = case {Causes, Seen} of
        {[], none} -> rest(C);
        {[], _} -> segment(only_if(Effect, [[["not ", Seen]]], chain(Others, ff, deeper(deeper(C))), deeper(C)), deeper(C));
        _ -> preceded(Causes, Effects, Seen, deeper(C))
    end,
    First = case Causes of
        [] -> unless_in([Cause], Effect, [], Wrong, C);
        _ -> box_in(Effect, Wrong, C)
    end,
    segment([box_in(Cause, Then, C), First], C).

%% Nothing more can be violated in the segment.
rest(#{leave := none, per := []}) -> tt;
rest(C) -> segment([], deeper(C)).

%% `F` follows only with the guard. The other member makes an event of the author's action one that has matched it.
only_if(Role, Guard, F, C) -> [box_in(Role, Guard, F, C), box_in(Role, here(C), C)].

%% Loops.

%% Through a segment. All other events go round the loop.
segment(Members, C) -> segment([], Members, C).

segment(Data, Members, #{depth := Depth} = C) ->
    {max, loop_name(Depth, C), Data,
     {'and', lists:append(Members) ++ leaving(C) ++ [{box, 'else', here([Name || {Name, _} <- Data], C)}]}}.

loop(Members, C) -> segment([], [Members], C#{leave := none}).

leaving(#{leave := none}) -> [];
leaving(#{leave := Leave} = C) -> [box(r, Leave, C)].

eventually(Role, Then, #{depth := Depth} = C) ->
    {min, loop_name(Depth, C), [], {'or', dia_in(Role, [], Then, C) ++ missed(C) ++ [{dia, 'else', here(C)}]}}.

missed(#{leave := none}) -> [];
missed(C) -> [dia(r, [], ff, C)].

here(C) -> here([], C).

here(Argument, #{depth := Depth} = C) ->
    {again, loop_name(Depth, C), case Argument of [] -> []; _ -> [Argument] end}.

deeper(#{depth := Depth} = C) -> C#{depth := Depth + 1}.

loop_name(Depth, C) when Depth =< 3 -> fresh(lists:nth(Depth, ["X", "Y", "Z"]), C);
loop_name(Depth, C) -> fresh("W" ++ [integer_to_list(Depth - 3) || Depth > 4], C).

limited(none) -> "";
limited(Duration) -> ["within ", Duration, " "].

limited(none, Formula) -> Formula;
limited(Duration, Formula) -> {within, Duration, Formula}.

%% Modalities. In a segment, an event that ends it is nothing else.

box_in(Role, F, C) -> box_in(Role, [], F, C).

box_in(Role, Guard, F, C) -> unless_in([], Role, Guard, F, C).

unless_in(Others, Role, Guard, F, #{leave := none} = C) -> unless(Others, Role, Guard, F, C);
unless_in(Others, Role, Guard, F, C) -> unless([r | Others], Role, Guard, F, C).

%% `[Role] F`, but not for an event that one of the others matches, too. What the guard excludes is left to other members.
unless(Others, Role, Guard, F, C) ->
    case [Other || Other <- Others, not are_disjoint(Other, Role, C)] of
        [] -> [box(Role, Guard, F, C)];
        Met -> [{'or', [dia(Other, [], tt, C) || Other <- Met] ++ [box(Role, Guard, F, C)]}, box(Role, Guard, tt, C)]
    end.

dia_in(Role, Guard, F, #{leave := Leave} = C) ->
    case Leave =:= none orelse are_disjoint(r, Role, C) of
        true -> [dia(Role, Guard, F, C)];
        false -> [{'and', [box(r, [], ff, C), dia(Role, Guard, F, C)]}, dia(Role, Guard, ff, C)]
    end.

%% Which events the name of an action stands for is not known here. The guards of `before` tell its end apart.
are_disjoint(r, _, #{only := #{r := _}}) -> true;
are_disjoint(One, Other, #{actions := Actions, given := Given}) ->
    case {map_get(One, Actions), map_get(Other, Actions)} of
        {#{kind := Kind}, #{kind := Same}} when Kind =:= use; Same =:= use -> false;
        {First, Second} -> witness_spec_overlap:disjoint(First, Second, Given)
    end.

box(Role, F, C) -> box(Role, [], F, C).

box(Role, Guard, F, C) -> {box, written(Role, Guard, C), F}.

dia(Role, Guard, F, C) -> {dia, written(Role, Guard, C), F}.

written(Role, Guard, #{write := Write, only := Only}) ->
    More = case {Role, Only} of
        {r, #{r := Tests}} -> Tests;
        {_, #{others := Tests}} -> Tests;
        _ -> []
    end,
    Write(Role, both(More, Guard)).

'let'(Name, Value, Role, Guard, #{write := Write}) ->
    {Text, _} = Write(Role, Guard),
    ["let ", Name, " = ", Value, "{", Text, "}"].

key([Name]) -> atom_to_list(Name);
key(Names) -> ["{", names(Names), "}"].

-doc "Variables with commas between them.".
-spec names([atom()]) -> unicode:chardata().
names(Names) -> lists:join(", ", [atom_to_list(Name) || Name <- Names]).

-doc "The name of an action in a core.".
-spec name(role()) -> string().
name({Role, N}) -> name(Role) ++ integer_to_list(N);
name(a) -> "A";
name(b) -> "B";
name(q) -> "Q";
name(r) -> "R".

-doc "A guard with more tests in each of its alternatives.".
-spec both([Tests], [Tests]) -> [Tests] when Tests :: [term()].
both([], Guard) -> Guard;
both(Guard, []) -> Guard;
both(Guard, More) -> [Tests ++ Others || Tests <- Guard, Others <- More].

-doc "A guard as text.".
-spec alternatives(guard()) -> unicode:chardata().
alternatives(Guard) -> lists:join("; ", [lists:join(", ", Tests) || Tests <- Guard]).

-doc "A name for a variable that is none of the known ones.".
-spec fresh(unicode:chardata(), #{known := [atom()], term() => term()}) -> string().
fresh(Name, #{known := Known}) -> fresh(lists:flatten(Name), 1, [atom_to_list(Variable) || Variable <- Known]).

fresh(Name, N, Known) ->
    Tried = case N of 1 -> Name; _ -> Name ++ integer_to_list(N) end,
    case lists:member(Tried, Known) of
        false -> Tried;
        true -> fresh(Name, N + 1, Known)
    end.

%% Formulas as text.

-spec text(formula()) -> unicode:chardata().
text({'or', Formulas}) -> lists:join(" or ", [in('or', Formula) || Formula <- Formulas]);
text({'and', Formulas}) -> lists:join(" and ", [in('and', Formula) || Formula <- Formulas]);
text({box, 'else', Formula}) -> ["[else] ", unit(Formula)];
text({dia, 'else', Formula}) -> ["<else> ", unit(Formula)];
text({box, {Action, _}, Formula}) -> ["[", Action, "] ", unit(Formula)];
text({dia, {Action, none}, Formula}) -> ["<", Action, "> ", unit(Formula)];
text({dia, {Action, guarded}, Formula}) -> ["<{", Action, "}> ", unit(Formula)];
text({again, Name, Arguments}) -> [Name, [["(", Argument, ")"] || Argument <- Arguments]];
text({Fixpoint, Name, Data, Formula}) ->
    [atom_to_list(Fixpoint), " ", Name, [["(", V, " = ", First, ")"] || {V, First} <- Data], ".(", text(Formula), ")"];
text({Timed, Duration, Formula}) -> [atom_to_list(Timed), " ", Duration, " ", unit(Formula)];
text(Constant) -> atom_to_list(Constant).

%% Members of a conjunction in another one are members of this one.
in(Operator, {Operator, _} = Formula) -> text(Formula);
in(_, Formula) -> unit(Formula).

unit({Operator, _} = Formula) when Operator =:= 'and'; Operator =:= 'or' -> ["(", text(Formula), ")"];
unit(Formula) -> text(Formula).
