-module(witness_spec_reelay_text).
-moduledoc """
A formula of `m:witness_spec_reelay_gen` and its traces, as Reelay reads them, and as a property with its events.

Reelay has discrete time and dense time, but no traces of points. So in the mode `gaps` a place is one tick of discrete time, and in
the mode `times` a short pulse of dense time. The proposition `event` is true there and nowhere else, and all operators depend on
it: `once c` is `once (event and c)`, and `c since d` is `(event implies c) since (event and d)`. Places are alternately `even` and
`odd`. So the place before an `odd` one is the last `even` one.
""".

-export([request/2, property/2, question/1, events/2]).

-type example() :: witness_spec_reelay_gen:example().

-doc "The request to `test/oracles/reelay/values.py` for the places of a trace, and which values of the answer belong to a place.".
-spec request([witness_spec_reelay_gen:item(), ...], example()) -> {json:encode_value(), [boolean()]}.
request(Places, #{mode := Mode, formula := Formula}) when Mode =:= events; Mode =:= units ->
    {#{mode => discrete, formula => binary(plain(Formula)), rows => [names(Holds) || #{holds := Holds} <- Places]},
     [true || _ <- Places]};
request([#{grid := First} | _] = Places, #{mode := gaps, formula := Formula}) ->
    {Rows, _} = lists:mapfoldl(fun({#{grid := Grid}, Row}, Next) -> {lists:duplicate(Grid - Next, []) ++ [Row], Grid + 1} end,
                               First, lists:zip(Places, marked(Places))),
    All = lists:append(Rows),
    {#{mode => discrete, formula => binary(["{event} and ", sampled(Formula, fun(Bound) -> Bound end)]), rows => All},
     [Row =/= [] || Row <- All]};
request(Places, #{mode := times, formula := Formula}) ->
    {Scale, Ties, Starts} = starts(Places),
    Length = fun(Bound) -> Scale * tau(Bound, 0) + 2 * Ties end,
    {#{mode => dense, formula => binary(["{event} and ", sampled(Formula, Length)]),
       rows => [[Start | Row] || {Start, Row} <- lists:zip(Starts, marked(Places))]},
     [true || _ <- Places]}.

binary(Text) -> iolist_to_binary(Text).

names(Holds) -> [list_to_binary(name(I)) || I <- Holds].

name(I) -> [$a + I - 1].

marked(Places) ->
    [[~"event", element(1 + I rem 2, {~"even", ~"odd"}) | names(Holds)] || {I, #{holds := Holds}} <- lists:enumerate(Places)].

%% The time as a small number in the same order: a unit is 1000, whatever it is in nanoseconds, and a nanosecond is 1.
tau(Grid, Shift) -> 1000 * Grid + Shift.

%% The time of a place is the greatest so far. Places of the same time get pulses one after the other: that with the rank R starts
%% at `Scale * Tau + 2 * R`, and R is at most `Ties`. So the times of two places differ by `Bound` or less exactly if their pulses
%% start at most `Scale * Bound + 2 * Ties` apart: if the times differ by 1 more, the starts differ by at least `Scale - 4 * Ties`
%% more, and the length of a pulse is 1. Reelay has bounds as floats of 24 bits, which is enough.
starts(Places) ->
    {Taus, _} = lists:mapfoldl(fun(#{grid := Grid, shift := Shift}, Greatest) ->
                                       Now = max(Greatest, tau(Grid, Shift)),
                                       {Now, Now}
                               end, tau(-1, 0), Places),
    {Ranked, _} = lists:mapfoldl(fun(Tau, {Tau, Rank}) -> {{Tau, Rank + 1}, {Tau, Rank + 1}};
                                    (Tau, _) -> {{Tau, 0}, {Tau, 0}}
                                 end, none, Taus),
    Ties = lists:max([Rank || {_, Rank} <- Ranked]),
    Scale = 4 * Ties + 4,
    %% Reelay's time begins with 0.
    {Scale, Ties, [Scale * (Tau - tau(-1, -2)) + 2 * Rank || {Tau, Rank} <- Ranked]}.

%% Formulas for Reelay. It has no constants, wants parentheses around operands that are no atoms, and reads `[0:0]` as no bound.
plain(true) -> "({a} or (not ({a})))";
plain(false) -> "({a} and (not ({a})))";
plain({prop, I}) -> ["{", name(I), "}"];
plain({'not', F}) -> ["(not ", operand(plain(F)), ")"];
plain({previously, F}) -> ["(pre ", operand(plain(F)), ")"];
plain({Op, 0, F}) when Op =:= once; Op =:= historically -> plain(F);
plain({since, 0, _, G}) -> plain(G);
plain({since, Bound, F, G}) -> ["(", plain(F), " since", window(Bound), " ", plain(G), ")"];
plain({Op, F, G}) when Op =:= 'and'; Op =:= 'or'; Op =:= implies -> ["(", plain(F), " ", atom_to_list(Op), " ", plain(G), ")"];
plain({Op, Bound, F}) -> ["(", atom_to_list(Op), window(Bound), " ", operand(plain(F)), ")"].

operand(["{" | _] = Atom) -> Atom;
operand(Text) -> ["(", Text, ")"].

window(none) -> "";
window(Bound) -> io_lib:format("[0:~b]", [Bound]).

%% The same, of ticks or pulses with `event` alone.
sampled(Constant, _) when is_boolean(Constant) -> plain(Constant);
sampled({prop, _} = F, _) -> plain(F);
sampled({'not', F}, Length) -> ["(not (", sampled(F, Length), "))"];
sampled({previously, F}, Length) ->
    Before = sampled(F, Length),
    Last = fun(Here, There) -> ["({", Here, "} and ((not {", There, "}) since ({", There, "} and ", Before, ")))"] end,
    ["(", Last("odd", "even"), " or ", Last("even", "odd"), ")"];
sampled({since, Bound, F, G}, Length) ->
    Begin = ["({event} and ", sampled(G, Length), ")"],
    case sampled_window(Bound, Length) of
        here -> Begin;
        %% In dense time, Reelay's `since` is false where the second operand is true and the first one is not.
        Window -> ["(", Begin, " or (({event} implies ", sampled(F, Length), ") since", Window, " ", Begin, "))"]
    end;
sampled({Op, F, G}, Length) when Op =:= 'and'; Op =:= 'or'; Op =:= implies ->
    ["(", sampled(F, Length), " ", atom_to_list(Op), " ", sampled(G, Length), ")"];
sampled({Op, Bound, F}, Length) ->
    Operand = ["({event} ", case Op of once -> "and"; historically -> "implies" end, " ", sampled(F, Length), ")"],
    case sampled_window(Bound, Length) of
        here -> Operand;
        Window -> ["(", atom_to_list(Op), Window, " ", Operand, ")"]
    end.

sampled_window(none, _) -> "";
sampled_window(Bound, Length) ->
    case Length(Bound) of
        0 -> here;
        Scaled -> window(Scaled)
    end.

-doc "The property with this name. The style of the example chooses among the ways to write it.".
-spec property(string(), example()) -> iodata().
property(Name, #{formula := Formula, over := Over, traces := Traces, style := Style} = Example) ->
    _ = rand:seed(exsss, Style),
    {Value, Writing} = value(question(Example), Formula, #{example => Example, lets => [], known => #{}}),
    #{lets := Lets} = Writing,
    Step = ["_ ? ", step(case Traces of [_] -> #{}; _ -> #{key => "K"} end)],
    [Name, ": with m:f(_)", [" per K" || [_, _ | _] <- [Traces]], [[" over ", one([["{", Step, "}"], Step])] || Over], "\n",
     [["  let ", Let, " = ", Text, "\n"] || {Let, Text} <- lists:reverse(Lets)],
     "  ", one(["check ", "monitor "]), asked(question(Example), Value), ".\n"].

-doc """
What the property asks:

- `every`: the verdict is `no` at the first step with a wrong expected value;
- `pattern`: the same, with the value in a pattern;
- `carried`: the same, but the value at the step before must be the expected one, too;
- `{first, Value}`: the verdict is `no` at the first step with this value.
""".
-spec question(example()) -> every | pattern | carried | {first, boolean()}.
question(#{question := Question}) -> Question;
question(#{style := Style}) ->
    element(1 + Style rem 8, {every, every, every, pattern, pattern, carried, {first, true}, {first, false}}).

%% The value in a guard is an expression; in a pattern it is a variable.
value(pattern, Formula, Writing) -> variable(Formula, Writing);
value(_, Formula, Writing) -> expression(Formula, Writing).

asked(every, Value) ->
    [" max X.(", box([step(#{expected => "E"}), " when E =/= ", Value]), " ff and [else] X)"];
asked(pattern, Value) ->
    [" max X.(", box(step(#{expected => Value})), " X and ",
     box([step(#{expected => "E"}), " when E =/= ", Value]), " ff and [else] X)"];
asked(carried, Value) ->
    Step = step(#{expected => "E", before => "O"}),
    [" max X(W = false).(", box([Step, " when E =/= ", Value, " orelse O =/= W"]), " ff and ",
     box([Step, " when E =:= ", Value, ", O =:= W"]), " X(", Value, ") and [else] X(W))"];
asked({first, true}, Value) -> [" max X.(", box([step(#{}), " when ", Value]), " ff and [else] X)"];
asked({first, false}, Value) -> [" max X.(", box([step(#{}), " when not ", Value]), " ff and [else] X)"].

box(Receive) -> one([["[{_ ? ", Receive, "}]"], ["[_ ? ", Receive, "]"]]).

%% A message: the key of the slice, its number, four propositions, the values that are expected here and at the step before.
step(Fields) ->
    ["{step, ", lists:join(", ", [maps:get(Field, Fields, "_") || Field <- [key, number, 1, 2, 3, 4, expected, before]]), "}"].

one(Texts) -> lists:nth(rand:uniform(length(Texts)), Texts).

often(Percent) -> rand:uniform(100) =< Percent.

%% A condition: actions, or an expression.
condition(F, #{example := #{over := Over}} = Writing) ->
    case is_action(F, Over) of
        true ->
            case often(75) of
                true -> {actions(F, Over), Writing};
                false -> expression(F, Writing)
            end;
        false ->
            case F of
                {'and', G, H} -> conjunction(G, H, F, Writing);
                _ -> expression(F, Writing)
            end
    end.

%% An action never matches an event that is no step.
is_action(F, Over) ->
    case witness_spec_reelay_gen:evaluate(F, []) of
        past -> false;
        Nowhere -> Over orelse not Nowhere
    end.

actions({'or', F, G} = Both, Over) ->
    case is_action(F, Over) andalso is_action(G, Over) andalso often(60) of
        true -> [actions(F, Over), " or ", actions(G, Over)];
        false -> guarded(Both)
    end;
actions({prop, I}, _) ->
    Bound = step(#{I => "P"}),
    ["{_ ? ", one([step(#{I => "true"}), [Bound, " when P"], [Bound, " when P =:= true"]]), "}"];
actions({'not', {prop, I}}, _) ->
    ["{_ ? ", one([step(#{I => "false"}), [step(#{I => "P"}), " when not P"]]), "}"];
actions(true, _) -> one(["{_ ? _}", ["{_ ? ", step(#{}), "}"]]);
actions(F, _) -> guarded(F).

guarded(F) -> ["{_ ? ", step(named(F)), " when ", guard(F), "}"].

named(F) -> maps:from_list([{I, lists:nth(I, witness_spec_reelay_gen:propositions())} || I <- used(F)]).

used({prop, I}) -> [I];
used({_, F}) -> used(F);
used({_, F, G}) -> lists:usort(used(F) ++ used(G));
used(_) -> [].

guard(Constant) when is_boolean(Constant) -> atom_to_list(Constant);
guard({prop, I}) -> lists:nth(I, witness_spec_reelay_gen:propositions());
guard({'not', F}) -> negation(guard(F));
guard({Op, F, G}) -> binary_operator(Op, guard(F), guard(G)).

negation(Text) -> one([["(not ", Text, ")"], ["(", Text, " =:= false)"], ["not(", Text, ")"]]).

binary_operator('and', F, G) -> ["(", F, one([" andalso ", " and "]), G, ")"];
binary_operator('or', F, G) -> ["(", F, one([" orelse ", " or "]), G, ")"];
binary_operator(implies, F, G) -> one([["(not ", F, " orelse ", G, ")"], ["(", F, " =< ", G, ")"]]).

%% An action with a guard that has the value of a `let`.
conjunction(F, G, Both, #{example := #{over := Over}} = Writing) ->
    case is_action(F, Over) andalso often(50) of
        true ->
            {Text, More} = expression(G, Writing),
            {["{_ ? ", step(named(F)), " when ", guard(F), one([" andalso ", ", "]), Text, "}"], More};
        false ->
            expression(Both, Writing)
    end.

%% A guard expression, with parentheses if it is not a variable, a constant or a negation.
expression(Constant, Writing) when is_boolean(Constant) -> {atom_to_list(Constant), Writing};
expression({'not', F}, Writing) ->
    {Text, More} = expression(F, Writing),
    {negation(Text), More};
expression({Op, F, G}, Writing) when Op =:= 'and'; Op =:= 'or'; Op =:= implies ->
    {Left, Writing1} = expression(F, Writing),
    {Right, Writing2} = expression(G, Writing1),
    {binary_operator(Op, Left, Right), Writing2};
expression(F, #{known := Known} = Writing) ->
    case Known of
        #{F := Text} -> {Text, Writing};
        #{} ->
            {Text, #{known := Now} = More} = past(F, Writing),
            {Text, case often(80) of
                true -> More#{known := Now#{F => Text}};
                false -> More
            end}
    end.

past({prop, _} = F, Writing) -> here(F, Writing);
past({previously, F}, Writing) ->
    {Condition, More} = condition(F, Writing),
    add(["previously ", Condition], More);
past({once, Bound, F}, Writing) ->
    {Condition, More} = condition(F, Writing),
    once(duration(Bound, More), Condition, More);
past({historically, Bound, F}, Writing) ->
    case often(75) of
        true ->
            {Condition, More} = condition({'not', F}, Writing),
            {Text, Last} = once(duration(Bound, More), Condition, More),
            {["(not ", Text, ")"], Last};
        false ->
            %% At as many places as there are.
            {Condition, Writing1} = condition(F, Writing),
            Window = duration(Bound, Writing1),
            {Number, Unit} = one([{"count ", ""}, {"sum ", "3 of "}]),
            {Held, Writing2} = add([Number, Window, Unit, Condition], Writing1),
            {All, Writing3} = add([Number, Window, Unit, "true"], Writing2),
            {["(", Held, " =:= ", All, ")"], Writing3}
    end;
past({since, Bound, F, G}, Writing) ->
    {Left, Writing1} = condition(F, Writing),
    {Right, Writing2} = condition(G, Writing1),
    add([Left, " since ", duration(Bound, Writing2), Right], Writing2).

%% A variable that has the value of the formula at this place.
here(F, Writing) ->
    {Condition, More} = condition_here(F, Writing),
    Window = one(["within 1 events ", "within 1 event "]),
    case rand:uniform(5) of
        1 -> add(["false since ", Condition], More);
        2 -> add([Condition, " since ", Window, Condition], More);
        _ -> once(Window, Condition, More)
    end.

%% A proposition is known by an action.
condition_here({prop, _} = F, #{example := #{over := Over}} = Writing) -> {actions(F, Over), Writing};
condition_here(F, Writing) -> condition(F, Writing).

variable(F, Writing) ->
    {Condition, More} = condition_here(F, Writing),
    add([one(["once within 1 events ", "false since "]), Condition], More).

%% How many places there are says the same.
once(Window, Condition, Writing) ->
    {Text, Test} = case rand:uniform(12) of
        1 -> {["true since ", Window, Condition], ""};
        2 -> {["count ", Window, Condition], " > 0"};
        3 -> {["count ", Window, Condition], " =/= 0"};
        4 -> {["sum ", Window, "2 of ", Condition], " >= 2"};
        5 -> {[one(["max ", "min "]), Window, "1 of ", Condition], " =:= 1"};
        6 -> {["mean ", Window, "3 of ", Condition], " =/= none"};
        _ -> {["once ", Window, Condition], ""}
    end,
    {Let, More} = add(Text, Writing),
    {case Test of "" -> Let; _ -> ["(", Let, Test, ")"] end, More}.

add(Text, #{lets := Lets} = Writing) ->
    Let = ["V", integer_to_list(length(Lets) + 1)],
    {Let, Writing#{lets := [{Let, Text} | Lets]}}.

duration(none, _) -> "";
duration(Bound, #{example := #{mode := Mode, unit := Unit}}) ->
    case Mode =:= events orelse Mode =:= units andalso often(50) of
        true -> io_lib:format("within ~b events ", [Bound + 1]);
        false -> io_lib:format("within ~b ~s ", [Bound, Unit])
    end.

-doc """
The events of the traces, with the values that are expected at the steps, one list for each trace. Traces are interleaved; the first
birth comes in front.
""".
-spec events(example(), [[boolean()]]) -> [witness_event:event()].
events(#{traces := Traces, unit := Unit, style := Style, mode := Mode}, Expected) ->
    Base = element(1 + Style rem 3, {0, 1_000_000_000_000, -1_000_000_000_000_000_000}),
    Keys = case Traces of [_] -> [0]; _ -> lists:seq(1, length(Traces)) end,
    {Births, Others} = lists:unzip([lists:partition(fun(Event) -> element(1, Event) =:= init end,
                                                    stepped(Trace, Values, Key, Base, nanoseconds(Unit)))
                                    || {Key, Trace, Values} <- lists:zip3(Keys, Traces, Expected)]),
    lists:sublist(lists:append(Births), 1) ++ interleaved([latest(Events, Mode) || Events <- Others], Style, 1).

nanoseconds(~"us") -> 1_000;
nanoseconds(~"ms") -> 1_000_000;
nanoseconds(~"s") -> 1_000_000_000;
nanoseconds(~"min") -> 60_000_000_000;
nanoseconds(~"h") -> 3_600_000_000_000;
nanoseconds(~"d") -> 86_400_000_000_000.

stepped(Trace, Values, Key, Base, Unit) ->
    {Events, {[], _, _}} = lists:mapfoldl(
        fun(#{kind := Kind, holds := Holds, grid := Grid, shift := Shift}, {Left, Before, N} = State) ->
                At = Base + Grid * Unit + Shift,
                case {Kind, Left} of
                    {birth, _} -> {{init, self(), undefined, {m, f, [0]}, At}, State};
                    {noise, _} -> {{send, self(), self(), noise, At}, State};
                    {step, [Value | Rest]} ->
                        [A, B, C, D] = [lists:member(I, Holds) || I <- [1, 2, 3, 4]],
                        {{recv, self(), undefined, {step, Key, N, A, B, C, D, Value, Before}, At}, {Rest, Value, N + 1}}
                end
        end, {Values, false, 1}, Trace),
    Events.

%% Each event with the greatest time of its trace so far.
latest(Events, events) -> [{0, Event} || Event <- Events];
latest(Events, _) ->
    {Timed, _} = lists:mapfoldl(fun({send, _, _, noise, _} = Event, Latest) -> {{Latest, Event}, Latest};
                                   ({recv, _, _, _, At} = Event, Latest) -> {{max(At, Latest), Event}, max(At, Latest)}
                                end, -1 bsl 64, Events),
    Timed.

%% A window ends at the greatest time of all traces, but Reelay reads each by itself. So the latest one goes last.
interleaved(Lists, Style, N) ->
    case [List || [_ | _] = List <- Lists] of
        [] -> [];
        Left ->
            Least = lists:min([Latest || [{Latest, _} | _] <- Left]),
            Next = [I || {I, [{Latest, _} | _]} <- lists:enumerate(Left), Latest =:= Least],
            {Before, [[{_, Event} | Rest] | After]} =
                lists:split(lists:nth(erlang:phash2({Style, N}, length(Next)) + 1, Next) - 1, Left),
            [Event | interleaved(Before ++ [Rest | After], Style, N + 1)]
    end.
