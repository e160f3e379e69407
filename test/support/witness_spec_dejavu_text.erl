-module(witness_spec_dejavu_text).
-moduledoc """
Writes properties of DejaVu as properties of Witness.

`translate/1` splits a property where it can, and chooses how each part reads the log:

- `slices`: `per` has the variables of `forall`. Each event has all of them or none, and by `is_local/2` the values of a key may skip
  the events of other keys. The property holds at all events without a key.
- `begun`: likewise, but it may be violated at an event without a key. Such events begin no instance. So the caller begins the next
  instance right behind a violation, by an event of the key that tells nothing.
- `valuations`: each violation is at an event that binds all variables. A past-time operator is a `let` of its variables, and nothing
  else is about values: the log is one instance.
- `{closure, Event}`: likewise, with a rule that is the transitive closure of an event. It is a parameter of a loop, as all rules, and has
  what is above each value. The caller makes sure that no value has two such events.
- `every`: all else. The caller gives each event to each combination of values, as a part of the event, and gets the violations of each
  combination. Then quantifiers are left to the caller. A property without variables has one combination. `ground/1` makes one of a
  property in which `m:witness_spec_dejavu_ground` has replaced the quantifiers by the values of a log.

The past is in the values of the key, and these go on behind verdicts. So one run has all violations.

The rules of `where` are parameters of a loop, since a `let` does not use itself. So is the time at which the right operand of a `Z` held
last. What a loop knows ends with its verdict. So with such a loop there is one instance, and violations count from the place `At` on,
which is a part of the key. Asking again from behind the violation found gives them all.
""".

-export([translate/1, ground/1, text/2, evaluate/3, events/1, necessary/1, map/2, simple/1,
         negate/1, is_loop/1, may_skip/1, is_about_valuations/1]).
-export_type([part/0, event/0]).

-doc """
An event: some of its arguments are variables of the property. Others are local: they are bound by this event, and its comparisons
may use them.
""".
-type event() :: {event, Name :: binary(), [witness_spec_dejavu_parse:argument()], Locals :: [string()], Compared :: [tuple()]}.
-type formula() :: term().
-type part() :: #{reads := slices | begun | valuations | every | {closure, Event :: binary()},
                  variables := [{exists | forall, string(), all | seen}],
                  formula := formula(),
                  clock => watch | told,  % whether windows follow the time of the events, or the time that these tell
                  rules := [{{Name :: binary(), list()}, formula()}]}.

-doc "The parts of a property: it is violated where one of them is.".
-spec translate(witness_spec_dejavu_parse:property()) -> {ok, [part()]} | {outside, Reason :: string()}.
translate(#{formula := Formula, rules := Rules}) ->
    try
        {Variables, Matrix} = pull(eliminate(Formula)),
        case closure(maps:to_list(Rules)) of
            {ok, Event} -> {ok, [of_closure(Event, Variables, earlier(Matrix))]};
            none -> translate(Variables, Matrix, Rules)
        end
    catch
        throw:{outside, Reason} -> {outside, Reason}
    end.

-doc "The part for a property without quantifiers.".
-spec ground(witness_spec_dejavu_parse:property()) -> {ok, [part()]} | {outside, Reason :: string()}.
ground(#{formula := Formula, rules := Rules}) ->
    try
        Eliminated = maps:map(fun(_, {[], Body}) -> {[], eliminate(Body)} end, Rules),
        {ok, [part([], earlier(eliminate(Formula)), Eliminated)]}
    catch
        throw:{outside, Reason} -> {outside, Reason}
    end.

%% `R(x,y) := @R(x,y) | E(x,y) | Exists z . @R(x,z) & E(z,y)`, in any order.
closure([{Name, {[X, Y], Body}}]) ->
    R = fun(A, B) -> {previous, {rule, Name, [{var, A}, {var, B}]}} end,
    Members = members('or', Body),
    case {Members -- [R(X, Y)], [Event || {event, Event, [_, _]} <- Members]} of
        {[_, _] = Rest, [Event]} ->
            case Rest -- [{event, Event, [{var, X}, {var, Y}]}] of
                [{exists, Z, all, Both}] ->
                    case members('and', Both) -- [R(X, Z), {event, Event, [{var, Z}, {var, Y}]}] of
                        [] -> {ok, Event};
                        _ -> none
                    end;
                _ -> none
            end;
        _ -> none
    end;
closure(_) -> none.

members(Operator, {Operator, F, G}) -> members(Operator, F) ++ members(Operator, G);
members(_, F) -> [F].

of_closure(Event, Variables, Matrix) ->
    used(Matrix),
    Part = #{reads => {closure, Event}, variables => Variables, formula => Matrix, rules => []},
    try violations(Matrix) of
        Violations ->
            Others = [Name || {{event, Name, _, _, _}, _} <- Violations, Name =/= Event],
            [throw({outside, "a transitive closure that changes at a violation"}) || length(Others) =/= length(Violations)],
            Part
    catch
        throw:unfit -> throw({outside, "a transitive closure for values that the violation does not bind"})
    end.

translate(Variables, Matrix, Rules) ->
    Used = maps:map(fun(_, {Parameters, Body}) ->
        case pull(eliminate(Body)) of
            {[], Plain} -> {Parameters, Plain};
            _ -> throw({outside, "a rule with a quantifier"})
        end
    end, Rules),
    Parts = case lists:all(fun({Quantifier, _, _}) -> Quantifier =:= forall end, Variables) of
        true -> conjuncts(Matrix);
        false -> [Matrix]
    end,
    {ok, about_valuations([part(Variables, earlier(Part), Used) || Part <- Parts])}.

%% If one part is about valuations, it takes those with it that can be so.
about_valuations(Parts) ->
    case lists:any(fun(#{reads := Reads}) -> Reads =:= valuations end, Parts) of
        false -> Parts;
        true ->
            {[#{} = First | _] = About, Others} = lists:partition(fun is_about_valuations/1, Parts),
            [First#{reads := valuations, formula := all([F || #{formula := F} <- About]),
                    variables := lists:uniq(lists:append([Variables || #{variables := Variables} <- About]))} | Others]
    end.

part(Variables, Matrix, Rules) ->
    Instances = instances(Matrix, Rules),
    Free = free([Matrix | [Body || {_, Body} <- Instances]]),
    Bound = [Quantified || {_, Variable, _} = Quantified <- Variables, lists:member(Variable, Free)],
    case Free -- [Variable || {_, Variable, _} <- Bound] of
        [] -> ok;
        Others -> throw({outside, "free variables: " ++ lists:join(", ", Others)})
    end,
    Part = #{variables => Bound, formula => Matrix, rules => Instances},
    Universal = [Variable || {forall, Variable, _} <- Bound],
    IsUniversal = Bound =/= [] andalso Instances =:= [] andalso length(Universal) =:= length(Bound),
    IsNeutral = lists:all(fun({Quantifier, Variable, Among}) ->
        Among =:= all andalso not is_compared(Variable, Matrix) orelse is_neutral(Quantifier, Variable, Part)
    end, Bound),
    IsSliced = IsNeutral andalso IsUniversal andalso is_sliced(Universal, Matrix),
    Part#{reads => case IsSliced andalso evaluate(Matrix, fun without_key/1, unknown) of
        true -> slices;
        unknown -> begun;
        false ->
            case Bound =/= [] andalso is_about_valuations(Part) of
                true -> valuations;
                false when IsNeutral -> every;
                false -> throw({outside, "a comparison or `seen` about values that no event has"})
            end
    end}.

%% Quantifiers: those of a variable that one event binds go into this event.

eliminate({event, Name, Arguments}) -> {event, Name, Arguments, [], []};
eliminate({exists, Variable, Among, F}) ->
    Inner = eliminate(F),
    case bind(Variable, Inner) of
        {ok, Without} -> Without;
        none -> unheard_of(Variable, Among, Inner)
    end;
eliminate({forall, Variable, Among, F}) ->
    Inner = eliminate(F),
    case bind(Variable, negate(Inner)) of
        {ok, Without} -> {'not', Without};
        none -> negate(unheard_of(Variable, Among, negate(Inner)))
    end;
eliminate({since, Window, true, G}) -> eliminate({once, Window, G});
eliminate(F) -> map(fun eliminate/1, F).

%% `exists` without the quantifier, if events with the variable can only make the formula false: a value that no event has is the
%% best one.
unheard_of(Variable, Among, F) ->
    case Among =:= all andalso is_against(Variable, F, positive) andalso nowhere(Variable, F) of
        Constant when is_boolean(Constant) -> {exists, Variable, Among, F};
        Without -> Without
    end.

is_against(Variable, {event, _, Arguments, _, _} = Event, Sign) ->
    not lists:member(Variable, free(Event)) orelse Sign =:= negative andalso lists:member({var, Variable}, Arguments);
is_against(Variable, {'not', F}, positive) -> is_against(Variable, F, negative);
is_against(Variable, {'not', F}, negative) -> is_against(Variable, F, positive);
is_against(Variable, F, Sign) ->
    case operands(F) of
        [] -> not lists:member(Variable, free(F));
        Operands -> lists:all(fun(G) -> is_against(Variable, G, Sign) end, Operands)
    end.

nowhere(Variable, {event, _, Arguments, _, _} = Event) -> not lists:member({var, Variable}, Arguments) andalso Event;
nowhere(Variable, F) -> simple(map(fun(G) -> nowhere(Variable, G) end, F)).

-doc "A formula without the constants that do not change it.".
-spec simple(formula()) -> formula().
simple({'not', F}) when is_boolean(F) -> not F;
simple({'and', false, _}) -> false;
simple({'and', _, false}) -> false;
simple({'and', true, F}) -> F;
simple({'and', F, true}) -> F;
simple({'or', F, G}) -> negate(simple({'and', negate(F), negate(G)}));
simple({since, Window, true, G}) -> simple({once, Window, G});
simple({once, _, false}) -> false;
simple({once, always, true}) -> true;
simple({since, _, _, false}) -> false;
simple({zince, _, _, false}) -> false;
simple({previous, false}) -> false;
simple(F) -> F.

-doc "A formula with other operands.".
-spec map(fun((formula()) -> formula()), formula()) -> formula().
map(Fun, {Operator, F}) when Operator =:= 'not'; Operator =:= previous -> {Operator, Fun(F)};
map(Fun, {Operator, F, G}) when Operator =:= 'and'; Operator =:= 'or' -> {Operator, Fun(F), Fun(G)};
map(Fun, {once, Window, F}) -> {once, Window, Fun(F)};
map(Fun, {Operator, Window, F, G}) when Operator =:= since; Operator =:= zince -> {Operator, Window, Fun(F), Fun(G)};
map(_, F) -> F.

bind(Variable, F) ->
    witness_spec_translated:bind(Variable, F, #{free => fun free/1, conjuncts => fun conjuncts/1, inside => fun binding/2}).

%% The part of a formula that may bind a variable.
binding(_, {once, Window, F}) -> {fun(G) -> {once, Window, G} end, F};
binding(_, {previous, F}) -> {fun(G) -> {previous, G} end, F};
binding(Variable, {since, Window, F, G}) ->
    case lists:member(Variable, free(F)) of
        true -> none;
        false -> {fun(Bound) -> {since, Window, F, Bound} end, G}
    end;
binding(_, {'not', F}) ->
    case negate(F) of
        {'not', _} -> none;
        Other -> {fun(G) -> G end, Other}
    end;
binding(_, _) -> none.

-doc "The opposite of a formula; `not` goes inwards.".
-spec negate(formula()) -> formula().
negate(F) when is_boolean(F) -> not F;
negate({'not', F}) -> F;
negate({'and', F, G}) -> {'or', negate(F), negate(G)};
negate({'or', F, G}) -> {'and', negate(F), negate(G)};
negate({exists, Variable, Among, F}) -> {forall, Variable, Among, negate(F)};
negate({forall, Variable, Among, F}) -> {exists, Variable, Among, negate(F)};
negate(F) -> {'not', F}.

conjuncts({'and', F, G}) -> conjuncts(F) ++ conjuncts(G);
conjuncts({'not', F} = Not) ->
    case negate(F) of
        {'and', _, _} = Both -> conjuncts(Both);
        _ -> [Not]
    end;
conjuncts({'or', F, G} = Or) ->
    %% An implication of a conjunction is a conjunction of implications.
    case {conjuncts(F), conjuncts(G)} of
        {[_], [_, _ | _] = Members} -> [{'or', F, Member} || Member <- Members];
        _ -> [Or]
    end;
conjuncts(F) -> [F].

free(Formulas) when is_list(Formulas) -> lists:usort(lists:append([free(F) || F <- Formulas]));
free({event, _, Arguments, Locals, Compared}) ->
    lists:usort([Variable || {var, Variable} <- Arguments] ++ free(Compared)) -- Locals;
free({compare, _, A, B}) -> [Variable || {var, Variable} <- [A, B]];
free({rule, _, Arguments}) -> [Variable || {var, Variable} <- Arguments];
free({Quantifier, Variable, _, F}) when Quantifier =:= exists; Quantifier =:= forall -> free(F) -- [Variable];
free({Operator, _, F, G}) when Operator =:= since; Operator =:= zince -> free([F, G]);
free({once, _, F}) -> free(F);
free({_, F}) -> free(F);
free({_, F, G}) -> free([F, G]);
free(_) -> [].

%% All other quantifiers go to the front.
pull({Quantifier, Variable, Among, F}) when Quantifier =:= exists; Quantifier =:= forall ->
    {Variables, Matrix} = pull(F),
    {[{Quantifier, Variable, Among} | Variables], Matrix};
pull({'not', F}) ->
    {Variables, Matrix} = pull(F),
    {[{case Quantifier of exists -> forall; forall -> exists end, Variable, Among} || {Quantifier, Variable, Among} <- Variables],
     {'not', Matrix}};
pull({Operator, F, G}) when Operator =:= 'and'; Operator =:= 'or' ->
    {Left, F1} = pull(F),
    {Right, G1} = pull(G),
    {Left ++ Right, {Operator, F1, G1}};
pull({previous, F}) ->
    {Variables, Matrix} = pull(F),
    {Variables, {previous, Matrix}};
pull({once, Window, F}) ->
    {Variables, Matrix} = pull(F),
    {only_exists(Variables), {once, Window, Matrix}};
pull({since, Window, F, G}) ->
    {Left, F1} = pull(F),
    {Right, G1} = pull(G),
    [throw({outside, "a quantifier on the left of `S`"}) || Left =/= []],
    {only_exists(Right), {since, Window, F1, G1}};
pull({zince, _, F, G} = Zince) ->
    [throw({outside, "a quantifier in `Z`"}) || {[_ | _], _} <- [pull(F), pull(G)]],
    {[], Zince};
pull(F) -> {[], F}.

only_exists(Variables) ->
    [throw({outside, "a quantifier in the past that no event binds"}) || {forall, _, _} <- Variables],
    Variables.

%% `previous` goes inwards; then it is only about events, values of the past, and rules.

earlier({previous, F}) -> before(F);
earlier(F) -> map(fun earlier/1, F).

before(true) -> later;
before(false) -> false;
before({'not', F}) -> {'and', later, {'not', before(F)}};
before({Operator, F, G}) when Operator =:= 'and'; Operator =:= 'or' -> {Operator, before(F), before(G)};
before({zince, _, _, _}) -> throw({outside, "the past of a `Z`"});
before({compare, _, _, _} = F) -> {'and', later, F};
before({previous, F}) ->
    case before(F) of
        {previous, _} = Twice -> {previous, Twice};
        Other -> before(Other)
    end;
before(F) -> {previous, earlier(F)}.

%% The rules with the arguments that they are used with.
instances(Matrix, Rules) -> instances(used(Matrix), Rules, []).

instances([], _, Done) -> lists:reverse(Done);
instances([{rule, Name, Arguments} | Others], Rules, Done) ->
    case lists:keymember({Name, Arguments}, 1, Done) of
        true -> instances(Others, Rules, Done);
        false ->
            #{Name := {Parameters, Body}} = Rules,
            Of = earlier(substitute(Body, maps:from_list(lists:zip(Parameters, Arguments)))),
            instances(Others ++ used(Of), Rules, [{{Name, Arguments}, Of} | Done])
    end.

used({rule, _, _} = Rule) -> [Rule];
used({previous, {rule, _, _} = Rule}) -> [Rule];
used({Operator, F}) when Operator =:= 'not' -> used(F);
used({Operator, F, G}) when Operator =:= 'and'; Operator =:= 'or' -> used(F) ++ used(G);
used(F) ->
    [throw({outside, "the past of a rule"}) || {rule, _, _} <- subformulas(F)],
    [].

substitute({event, Name, Arguments, Locals, Compared}, Values) ->
    {event, Name, [given(A, Values) || A <- Arguments], Locals, [substitute(C, Values) || C <- Compared]};
substitute({compare, Operator, A, B}, Values) -> {compare, Operator, given(A, Values), given(B, Values)};
substitute({rule, Name, Arguments}, Values) -> {rule, Name, [given(A, Values) || A <- Arguments]};
substitute(F, Values) -> map(fun(G) -> substitute(G, Values) end, F).

given({var, Variable} = Argument, Values) -> maps:get(Variable, Values, Argument);
given(Argument, _) -> Argument.

subformulas(F) -> [F | lists:append([subformulas(G) || G <- operands(F)])].

operands({Operator, F}) when Operator =:= 'not'; Operator =:= previous -> [F];
operands({Operator, F, G}) when Operator =:= 'and'; Operator =:= 'or' -> [F, G];
operands({once, _, F}) -> [F];
operands({Operator, _, F, G}) when Operator =:= since; Operator =:= zince -> [F, G];
operands(_) -> [].

is_compared(Variable, F) ->
    lists:any(fun({compare, Operator, A, B} = Compare) ->
                      lists:member({var, Variable}, [A, B]) andalso (Operator =/= "=" orelse length(free(Compare)) > 1);
                 (_) -> false
              end, subformulas(F)).

%% Whether a value of the variable changes nothing as long as no event has it: what is quantified is true (`forall`) or false
%% (`exists`), whatever comparisons say.
is_neutral(Quantifier, Variable, #{formula := F}) ->
    Happens = fun(Event) -> not lists:member(Variable, free(Event)) andalso unknown end,
    evaluate(F, Happens, always) =:= (Quantifier =:= forall).

-doc """
The value of a formula as far as it is known. `Happens` says whether an event is never (`false`), or perhaps (`unknown`). The past is
what follows from that at all places (`always`), at this place only (`unknown`), or that nothing has happened (`initial`).
""".
-spec evaluate(formula(), fun((event()) -> false | unknown), always | unknown | initial) -> boolean() | unknown.
evaluate(F, _, _) when is_boolean(F) -> F;
evaluate({event, _, _, _, _} = Event, Happens, _) -> Happens(Event);
evaluate({'not', F}, Happens, Past) -> inverse(evaluate(F, Happens, Past));
evaluate({'and', F, G}, Happens, Past) -> minimum(evaluate(F, Happens, Past), evaluate(G, Happens, Past));
evaluate({'or', F, G}, Happens, Past) ->
    inverse(minimum(inverse(evaluate(F, Happens, Past)), inverse(evaluate(G, Happens, Past))));
evaluate({once, {before, _}, F}, Happens, Past) -> was_so(evaluate(F, Happens, Past), Past) =/= false andalso unknown;
evaluate({once, _, F}, Happens, Past) -> was_so(evaluate(F, Happens, Past), Past);
evaluate({since, _, _, G}, Happens, Past) -> was_so(evaluate(G, Happens, Past), Past);
evaluate({previous, F}, Happens, always) -> evaluate(F, Happens, always) =/= false andalso unknown;
evaluate({previous, _}, _, initial) -> false;
evaluate(_, _, _) -> unknown.

%% What is true now was so once; what never is was never.
was_so(true, _) -> true;
was_so(false, Past) when Past =:= always; Past =:= initial -> false;
was_so(_, _) -> unknown.

inverse(unknown) -> unknown;
inverse(Value) -> not Value.

minimum(false, _) -> false;
minimum(_, false) -> false;
minimum(true, Value) -> Value;
minimum(Value, true) -> Value;
minimum(unknown, unknown) -> unknown.

-doc "Whether a part is a loop with parameters.".
-spec is_loop(part()) -> boolean().
is_loop(#{formula := F, rules := Rules}) -> Rules =/= [] orelse zinces(F) =/= [].

zinces(F) -> [Zince || {zince, _, _, _} = Zince <- subformulas(F)].

-doc "Events that happen in each log in which the formula is ever true.".
-spec necessary(formula()) -> [event()].
necessary({event, _, _, _, _} = Event) -> [Event];
necessary({'and', F, G}) -> lists:uniq(necessary(F) ++ necessary(G));
necessary({'or', F, G}) -> [Event || Event <- necessary(F), lists:member(Event, necessary(G))];
necessary({previous, F}) -> necessary(F);
necessary({once, _, F}) -> necessary(F);
necessary({since, _, _, G}) -> necessary(G);
necessary({'not', F}) ->
    case negate(F) of
        {'not', _} -> [];
        Other -> necessary(Other)
    end;
necessary(_) -> [].

-doc "The events of a part.".
-spec events(part()) -> [event()].
events(#{formula := F, rules := Rules}) -> lists:usort(lists:append([all_events(G) || G <- [F | [Body || {_, Body} <- Rules]]])).

all_events(F) -> [Event || {event, _, _, _, _} = Event <- subformulas(F)].

-doc "Whether a combination of values may skip the events that have none of them, and all events in front of those.".
-spec may_skip(part()) -> boolean().
may_skip(#{formula := F} = Part) -> not is_loop(Part) andalso holds_elsewhere(F).

holds_elsewhere(F) ->
    evaluate(F, fun(_) -> false end, unknown) =:= true andalso evaluate(F, fun without_key/1, initial) =:= true andalso is_local(F).

%% Whether a key may skip the events of other keys, and has no violations in front of its first event.
is_sliced(Variables, F) ->
    Events = all_events(F),
    Own = [Event || Event <- Events, is_own(Event)],
    Places = lists:usort([{Name, place(Arguments, Variables)} || {event, Name, Arguments, _, _} <- Own]),
    lists:all(fun(Event) -> free(Event) =:= [] orelse is_own(Event) andalso Variables -- free(Event) =:= [] end, Events)
        andalso length(lists:ukeysort(1, Places)) =:= length(Places)
        andalso [Name || {event, Name, _, _, _} <- Events -- Own, lists:keymember(Name, 1, Places)] =:= []
        andalso holds_elsewhere(F).

%% At an event without a key.
without_key(Event) -> not is_own(Event) andalso unknown.

is_own({event, _, Arguments, Locals, _}) -> [Variable || {var, Variable} <- Arguments] -- Locals =/= [].

place(Arguments, Variables) ->
    [{Variable, I} || {I, {var, Variable}} <- lists:enumerate(Arguments), lists:member(Variable, Variables)].

%% No operator may notice the places that are skipped. `elsewhere/1` says what a formula is there.
is_local({once, Window, F}) -> is_local(F) andalso is_rare(Window, F, F);
is_local({since, Window, F, G}) ->
    is_local({'and', F, G}) andalso elsewhere(F) =:= true andalso is_rare(Window, G, {'and', F, G});
is_local({previous, F}) -> is_local(F) andalso elsewhere(F) =:= same;
is_local({zince, _, _, _}) -> false;
is_local({'not', F}) -> is_local(F);
is_local({Operator, F, G}) when Operator =:= 'and'; Operator =:= 'or' -> is_local(F) andalso is_local(G);
is_local(_) -> true.

%% Is false at places that are skipped, or what it was before, and false in front of all others. In front of the first event with
%% the key no condition holds that compares variables. Then it has to be false there, too.
is_rare(Window, F, Conditions) ->
    Happens = case [Compare || {compare, _, _, _} = Compare <- subformulas(Conditions)] of
        [] -> fun(_) -> false end;
        _ -> fun without_key/1
    end,
    lists:member(elsewhere(F), [false | [same || Window =:= always]]) andalso evaluate(F, Happens, initial) =:= false.

%% At a place without an event of this value: a constant, or the same as at the place before.
elsewhere(F) when is_boolean(F) -> F;
elsewhere(later) -> true;
elsewhere({event, _, _, _, _}) -> false;
elsewhere({compare, _, _, _}) -> same;
elsewhere({'not', F}) ->
    case elsewhere(F) of
        Value when is_boolean(Value) -> not Value;
        Value -> Value
    end;
elsewhere({'and', F, G}) -> least(elsewhere(F), elsewhere(G));
elsewhere({'or', F, G}) -> elsewhere({'not', {'and', {'not', F}, {'not', G}}});
elsewhere({once, always, F}) ->
    case elsewhere(F) of
        false -> same;
        Value -> Value
    end;
elsewhere({since, always, F, G}) ->
    case {elsewhere(F), elsewhere(G)} of
        {_, true} -> true;
        {true, Value} when Value =:= false; Value =:= same -> same;
        {false, false} -> false;
        _ -> unknown
    end;
elsewhere(_) -> unknown.

least(false, _) -> false;
least(_, false) -> false;
least(true, Value) -> Value;
least(Value, true) -> Value;
least(same, same) -> same;
least(_, _) -> unknown.

-doc "The text of a part as a property with this name.".
-spec text(string(), part()) -> iodata().
text(Name, #{reads := valuations, formula := F} = Part) ->
    {Actions, #{lets := Lets}} = actions(fun message/2, violations(F), writing(Part, [])),
    [Name, ": with dejavu:log()\nper Log over _ ? {event, _, _, _, {Log}}\n", written(Lets),
     "monitor\n  max Log.(\n", [["    [", Action, "] ff and\n"] || Action <- Actions], "    [else] Log).\n"];
text(Name, #{reads := {closure, Event}, formula := F} = Part) ->
    Violations = [{Violation, [[asked | Others] || Others <- Alternatives]} || {Violation, Alternatives} <- violations(F)],
    {Actions, #{lets := Lets}} = actions(fun numbered/2, Violations, writing(Part#{reads := valuations}, [])),
    [Name, ": with dejavu:log()\nper At over begin _ ? {event, 1, _, _, {At}}, _ ? {event, _, _, _, {At}}\n", written(Lets),
     "monitor\n  max Log(Above = #{}).(\n", [["    [", Action, "] ff and\n"] || Action <- Actions],
     "    [", message(Event, ["Z", "Y"]), "] Log(Above#{Y => maps:put(Z, true, maps:get(Z, Above, #{}))}) and\n",
     "    [else] Log(Above)).\n"];
text(Name, #{reads := Reads, variables := Variables, formula := F, rules := Rules} = Part) ->
    Numbered = [{Key, "R" ++ integer_to_list(I)} || {I, {Key, _}} <- lists:enumerate(Rules)],
    {_, Parameters} = lists:unzip(Numbered),
    Writing = writing(Part, Numbered),
    {Holds, Writing1} = expression(F, Writing),
    {Bodies, Writing2} = lists:mapfoldl(fun({_, Body}, W) -> expression(Body, W) end, Writing1, Rules),
    {Zinces, #{lets := Lets}} = case lists:uniq(zinces(F)) of
        [] -> {[], Writing2};
        [{zince, _, While, Last}] when Rules =:= [], Reads =:= every ->
            lists:mapfoldl(fun expression/2, Writing2, [Last, {'and', negate(Last), While}, {'and', negate(Last), negate(While)}]);
        _ -> throw({outside, "several `Z`"})
    end,
    Per = [name(Variable) || {_, Variable, _} <- Variables],
    [Name, ": with dejavu:log()\n",
     case Reads of
         every ->
             Key = lists:join(", ", ["At" | Per]),
             Every = fun(Place) -> ["_ ? {event, ", Place, ", _, _, {", Key, "}}"] end,
             ["per ", Key, " over ", [["begin ", Every("1"), ", "] || is_loop(Part)], Every("_")];
         _ ->
             ["per ", lists:join(", ", Per), " over ",
              lists:join(", ", lists:usort([pattern(Event) || Event <- events(Part)])
                         ++ [["_ ? {begun, ", lists:join(", ", Per), "}"] || Reads =:= begun])]
     end, "\n",
     written(Lets),
     case Rules of
         [] when Zinces =/= [] ->
             ["monitor max Log(Last = none).(\n",
              "  [_ ? {event, N, T, _, _} when N >= At, not ", Holds, "] ff",
              [["\n  and [_ ? {event, _, T, _, _} when ", When, "] Log(", Next, ")"]
               || {When, Next} <- lists:zip(Zinces, ["T", "Last", "none"])], ").\n"];
         [] when Reads =:= begun -> ["monitor max Log.([_ ? {event, _, _, _, _} when not ", Holds, "] ff and [else] Log).\n"];
         [] -> ["monitor [_ ? {event, _, _, _, _} when not ", Holds, "] ff.\n"];
         _ ->
             ["monitor max Log", loop([[Rule, " = false"] || Rule <- Parameters]), ".(\n",
              "  [_ ? {event, N, _, _, _} when N >= At, not ", Holds, "] ff\n",
              "  and [else] Log", loop(Bodies), ").\n"]
     end].

writing(Part, Parameters) ->
    #{reads => map_get(reads, Part), clock => maps:get(clock, Part, watch), lets => [], known => #{},
      parameters => maps:from_list(Parameters), rules => maps:from_list(map_get(rules, Part))}.

written(Lets) -> [["let ", Let, " = ", Text, "\n"] || {Let, Text} <- lists:reverse(Lets)].

loop(Values) -> ["(", lists:join(", ", Values), ")"].

name(Variable) -> [$X | Variable].

pattern({event, Name, Arguments, Locals, _}) -> message(Name, [case A of
                                                                  {var, Variable} ->
                                                                      case lists:member(Variable, Locals) of
                                                                          true -> "_";
                                                                          false -> name(Variable)
                                                                      end;
                                                                  {value, Value} -> literal(Value)
                                                              end || A <- Arguments]).

message(Name, Arguments) -> message("_", Name, Arguments).

numbered(Name, Arguments) -> message("N", Name, Arguments).

message(Number, Name, Arguments) ->
    lists:flatten(["_ ? {event, ", Number, ", _, {", lists:join(", ", [literal(Name) | Arguments]), "}, _}"]).

literal(Value) when is_binary(Value) -> ["~\"", Value, "\""];
literal(Value) -> integer_to_list(Value).

action(Event) -> ["{", action(fun message/2, Event, [[]]), "}"].

%% An action with more guards, of which there are alternatives.
action(Message, {event, Name, Arguments, Locals, Compared}, Alternatives) ->
    Needed = free(Compared),
    Texts = [case A of
                 {value, Value} -> literal(Value);
                 {var, Variable} ->
                     Once = [One || {var, Other} = One <- Arguments, Other =:= Variable],
                     case lists:member(Variable, Locals) andalso not lists:member(Variable, Needed) andalso length(Once) =:= 1 of
                         true -> "_";
                         false -> name(Variable)
                     end
             end || A <- Arguments],
    Guards = [[comparison(C) || C <- Compared] ++ Guard || Guard <- Alternatives],
    [Message(Name, Texts), [[" when ", lists:join("; ", [lists:join(", ", Tests) || Tests <- Guards])] || not lists:member([], Guards)]].

comparison({'not', F}) -> ["not ", comparison(F)];
comparison({compare, Operator, A, B}) ->
    Erlang = case Operator of "=" -> "=:="; "<=" -> "=<"; _ -> Operator end,
    ["(", operand(A), " ", Erlang, " ", operand(B), ")"].

operand({var, Variable}) -> name(Variable);
operand({value, Value}) -> literal(Value).

expression(F, Writing) when is_boolean(F); element(1, F) =:= 'not'; element(1, F) =:= 'and'; element(1, F) =:= 'or' ->
    witness_spec_translated:connective(F, Writing, fun expression/2);
expression({compare, _, _, _} = F, Writing) -> {comparison(F), Writing};
expression({previous, {rule, Name, Arguments}}, #{parameters := Parameters} = Writing) ->
    #{{Name, Arguments} := Parameter} = Parameters,
    {Parameter, Writing};
expression({rule, _, [X, Y]}, #{reads := valuations} = Writing) ->
    {io_lib:format("(is_map_key(~ts, Above) andalso is_map_key(~ts, map_get(~ts, Above)))", [operand(Y), operand(X), operand(Y)]), Writing};
expression({rule, Name, Arguments}, #{rules := Rules} = Writing) ->
    %% A rule that uses itself at the same place is not well-formed.
    #{{Name, Arguments} := Body} = Rules,
    expression(Body, Writing);
expression({zince, _, _, _}, #{reads := valuations}) -> throw(unfit);
expression({zince, {within, Seconds}, F, _}, Writing) ->
    {Left, More} = expression(F, Writing),
    {io_lib:format("(~ts andalso is_integer(Last) andalso T - Last =< ~b)", [Left, Seconds]), More};
expression({zince, _, _, _}, _) -> throw({outside, "`Z` without the greatest distance"});
expression(asked, Writing) -> {"N >= At", Writing};
expression(F, #{known := Known} = Writing) ->
    case Known of
        #{F := Text} -> {Text, Writing};
        #{} ->
            {Text, #{known := Now} = More} = temporal(F, Writing),
            {Text, More#{known := Now#{F => Text}}}
    end.

temporal({event, _, _, _, _} = Event, #{reads := Reads} = Writing) ->
    [throw(unfit) || Reads =:= valuations, free(Event) -- bound(Event) =/= []],
    add(["once within 1 event ", action(Event)], free(Event), Writing);
temporal(later, Writing) -> add("once within 1 event {_ ? {event, N, _, _, _} when N > 1}", [], Writing);
temporal({previous, F}, Writing) ->
    {Condition, More} = condition(F, free(F), Writing),
    add(["previously ", Condition], free(F), More);
temporal({once, {within, Seconds}, F}, #{clock := told} = Writing) ->
    {Now, Writing1} = expression(now, Writing),
    {Condition, Writing2} = condition(F, free(F), Writing1),
    {Last, Writing3} = add(["max ", Now, " of ", Condition], free(F), Writing2),
    {io_lib:format("(is_integer(~ts) andalso ~ts - ~ts =< ~b)", [Last, Now, Last, Seconds]), Writing3};
temporal({since, {within, _}, _, _}, #{clock := told}) -> throw({outside, "`S` with a time, and the times of the log go back"});
temporal({once, {before, Seconds}, F}, Writing) ->
    {Now, Writing1} = expression(now, Writing),
    {Condition, Writing2} = condition(F, free(F), Writing1),
    {First, Writing3} = add(["min ", Now, " of ", Condition], free(F), Writing2),
    {io_lib:format("(is_integer(~ts) andalso ~ts - ~ts > ~b)", [First, Now, First, Seconds]), Writing3};
temporal(now, Writing) -> add("max within 1 event T of {_ ? {event, _, T, _, _}}", [], Writing);
temporal({once, Window, F}, Writing) ->
    {Condition, More} = condition(F, free(F), Writing),
    add(["once ", window(Window), Condition], free(F), More);
temporal({since, Window, F, G} = Since, Writing) ->
    try
        {Left, Writing1} = condition(F, free(Since), Writing),
        {Right, Writing2} = condition(G, free(Since), Writing1),
        add([Left, " since ", window(Window), Right], free(Since), Writing2)
    catch
        throw:unfit when Window =:= always -> by_places(conjuncts(F), disjuncts(G), Writing)
    end;
temporal({last, F}, Writing) ->
    {Actions, More} = actions(fun numbered/2, branches(F, free(F)), Writing),
    add(["max N of ", lists:join(" or ", [["{", Action, "}"] || Action <- Actions])], free(F), More).

window(always) -> "";
window({within, Seconds}) -> io_lib:format("within ~b s ", [Seconds]);
window({before, _}) -> throw({outside, "`S` with `>`, and something on its left"}).

%% If the operands of `since` have other variables: the last place of the right one is behind that of each one on the left.
by_places(Lefts, Rights, Writing) when length(Lefts) > 1; length(Rights) > 1 ->
    expression(any([all([{since, always, Left, Right} || Left <- Lefts]) || Right <- Rights]), Writing);
by_places([Left], [Right], Writing) ->
    {Stopped, Writing1} = expression({last, negate(Left)}, Writing),
    {Begun, Writing2} = expression({last, Right}, Writing1),
    {io_lib:format("(is_integer(~ts) andalso (~ts =:= none orelse ~ts =< ~ts))", [Begun, Stopped, Stopped, Begun]), Writing2}.

all([F]) -> F;
all([F | Others]) -> {'and', F, all(Others)}.

any(Formulas) -> negate(all([negate(F) || F <- Formulas])).

disjuncts(F) -> [negate(G) || G <- conjuncts(negate(F))].

%% A condition of a `let` with these variables.
condition(F, Variables, #{reads := valuations} = Writing) ->
    try
        {Actions, More} = actions(fun message/2, branches(F, Variables), Writing),
        {lists:join(" or ", [["{", Action, "}"] || Action <- Actions]), More}
    catch
        throw:unfit ->
            [throw(unfit) || not is_about(F, Variables)],
            {Text, Writing1} = expression(F, Writing),
            {["(", Text, ")"], Writing1}
    end;
condition({event, _, _, _, _} = F, _, Writing) -> {action(F), Writing};
condition({'or', {event, _, _, _, _} = F, {event, _, _, _, _} = G}, _, Writing) -> {[action(F), " or ", action(G)], Writing};
condition(F, _, Writing) ->
    {Text, More} = expression(F, Writing),
    {["(", Text, ")"], More}.

%% A formula as actions with guards: each is an event that binds these variables, or none of them, and what else has to hold.
branches(F, Variables) -> grouped([Branch || One <- disjuncts(F), Branch <- branch(conjuncts(One), Variables)]).

grouped(Branches) ->
    [{Event, [Others || {Same, Others} <- Branches, Same =:= Event]} || Event <- lists:uniq([Event || {Event, _} <- Branches])].

branch(Members, Variables) ->
    Events = [{Event, Others} || {event, _, _, _, _} = Event <- Members, Others <- [lists:delete(Event, Members)],
                                 Variables -- bound(Event) =:= []
                                     orelse is_about(Event, []) andalso is_about(all([true | Others]), Variables)],
    case {Events, [Member || Member <- Members, length(disjuncts(Member)) > 1]} of
        {[First | _], _} -> [First];
        {[], [Or | _]} ->
            Rest = lists:delete(Or, Members),
            [Branch || One <- disjuncts(Or), Branch <- branch(conjuncts(all([One | Rest])), Variables)];
        {[], []} -> throw(unfit)
    end.

bound({event, _, Arguments, Locals, _}) -> [Variable || {var, Variable} <- Arguments] -- Locals.

%% Whether a guard speaks only of `let`s with all of these variables, or without any.
is_about({Operator, F, G}, Variables) when Operator =:= 'and'; Operator =:= 'or' ->
    is_about(F, Variables) andalso is_about(G, Variables);
is_about({'not', F}, Variables) -> is_about(F, Variables);
is_about({compare, _, _, _} = F, _) -> free(F) =:= [];
is_about(F, Variables) -> lists:member(free(F), [[], Variables]).

actions(Message, Branches, Writing) ->
    lists:mapfoldl(fun({Event, Alternatives}, Now) ->
        {Guards, More} = lists:mapfoldl(fun(Others, W) -> lists:mapfoldl(fun expression/2, W, Others) end, Now, Alternatives),
        {action(Message, Event, Guards), More}
    end, Writing, Branches).

add(Text, Variables, #{reads := Reads, lets := Lets} = Writing) ->
    Let = ["V", integer_to_list(length(Lets) + 1),
           [["(", lists:join(", ", [name(Variable) || Variable <- Variables]), ")"] || Reads =:= valuations, Variables =/= []]],
    {Let, Writing#{lets := [{Let, Text} | Lets]}}.

%% The events at which a part is violated, and what else has to hold there. Each binds all variables that this speaks of.
violations(F) -> grouped([Branch || One <- disjuncts(negate(F)), Branch <- branch(conjuncts(One), free(One))]).

-doc "Whether a part can be about valuations, however it was chosen to read the log.".
-spec is_about_valuations(part()) -> boolean().
is_about_valuations(#{variables := Variables, rules := Rules} = Part) ->
    Rules =:= [] andalso lists:all(fun({Quantifier, _, _}) -> Quantifier =:= forall end, Variables) andalso
    try text("", Part#{reads => valuations}) of
        _ -> true
    catch
        throw:unfit -> false
    end.
