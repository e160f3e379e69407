-module(witness_spec_time).
-moduledoc """
Time in specifications: durations as they are written, and the deadlines of `within` and `during`.

In a formula, `within 5 s f` is `{within, Meta, {duration, Nanoseconds}, [], f}`, of the same shape as a fixpoint. Two hidden variables
carry what monitors know of time (`m:witness_spec_node`): `_@Deadline` is the deadline of all obligations in `f`, and `_@Now` is the time
of the last event, kept only where a deadline begins before the next event.

A generated monitor calls the others (docs/internals/semantics.md, *Time*).
""".

-export([durations/1, is_duration/1, is_unknown_unit/2, units/0, deadline/4, now/2, passed/2, next/3, pass/4]).
-export_type([deadline/0, deadlines/0]).

-doc """
When, and the verdict of an obligation that is open then. It is relative to the next event before any event was read (`start`), and not
known (`undefined`) if it began at an event without a time.
""".
-type deadline() :: {At :: integer() | {start | undefined, Nanoseconds :: integer()}, no | yes}.

-doc "What deadlines decide of a node or a state: that of its modalities, with what to say of each verdict; what cannot pass yet is `open`.".
-type deadlines() :: open | {deadline(), No :: place(), Yes :: place()} | {'and' | 'or', [deadlines()]}.

-doc "The place, and the single action that has not come in time, or that was forbidden until then.".
-type place() :: #{line := pos_integer(), column := pos_integer(), action => binary()}.

-type leaf_deadlines() :: fun((witness_spec_formula:leaf()) -> deadlines()).

-define(UNITS, [{ns, 1}, {us, 1_000}, {ms, 1_000_000}, {s, 1_000_000_000}, {min, 60_000_000_000}, {h, 3_600_000_000_000},
                {d, 86_400_000_000_000}]).

-doc "The units of durations, for people.".
-spec units() -> unicode:chardata().
units() -> ["the units of time are ", lists:join(", ", [["`", atom_to_list(Unit), "`"] || {Unit, _} <- ?UNITS])].

-doc """
Makes one token of a number and a unit that follows it in the same line: an integer in nanoseconds with the text of both. In Erlang, no
atom stands behind a number.
""".
-spec durations([witness_spec_scan:token()]) -> [witness_spec_scan:token()].
durations([{Kind, Anno, Number} = Token, {atom, UnitAnno, Unit} = Next | Rest]) when Kind =:= integer; Kind =:= float ->
    Gap = erl_anno:column(UnitAnno) - erl_anno:column(Anno) - length(erl_anno:text(Anno)),
    case {lists:keyfind(Unit, 1, ?UNITS), erl_anno:line(Anno) =:= erl_anno:line(UnitAnno)} of
        %% The product of a greater float is none.
        {{Unit, Nanoseconds}, true} when is_integer(Number); Number < 1.0e290 ->
            Text = erl_anno:text(Anno) ++ lists:duplicate(Gap, $\s) ++ erl_anno:text(UnitAnno),
            [{integer, erl_anno:set_text(Text, Anno), round(Number * Nanoseconds)} | durations(Rest)];
        _ ->
            [Token | durations([Next | Rest])]
    end;
durations([Token | Rest]) -> [Token | durations(Rest)];
durations([]) -> [].

-doc "Whether the token is a duration.".
-spec is_duration(witness_spec_scan:token()) -> boolean().
is_duration({integer, Anno, _}) ->
    Text = erl_anno:text(Anno),
    lists:any(fun({Unit, _}) -> lists:suffix(atom_to_list(Unit), Text) end, ?UNITS)
        andalso lists:member(hd(lists:reverse(string:trim(lists:reverse(Text)))), "0123456789");
is_duration(_) -> false.

-doc "Whether the second token was meant as the unit of the first one, but is none: `5 sec`, or `5 S`.".
-spec is_unknown_unit(witness_spec_scan:token(), witness_spec_scan:token()) -> boolean().
is_unknown_unit({Kind, Anno, _}, {Word, WordAnno, Name}) when
        Kind =:= integer orelse Kind =:= float, Word =:= atom orelse Word =:= var ->
    Lower = string:lowercase(atom_to_list(Name)),
    erl_anno:line(Anno) =:= erl_anno:line(WordAnno)
        andalso (Word =:= atom orelse lists:any(fun({Unit, _}) -> atom_to_list(Unit) =:= Lower end, ?UNITS));
is_unknown_unit(_, _) -> false.

-doc "The deadline of what begins at this time (`start`: with the next event) inside of another deadline, or of none.".
-spec deadline(Now :: integer() | undefined | start, Nanoseconds :: integer(), no | yes, Outer :: deadline() | none) ->
    deadline().
deadline(Now, Nanoseconds, Verdict, Outer) ->
    Own = {case is_integer(Now) of true -> Now + Nanoseconds; false -> {Now, Nanoseconds} end, Verdict},
    case Outer of
        none -> Own;
        {Earlier, _} when is_integer(Earlier), Earlier =< element(1, Own) -> Outer;
        {{Now, Less}, _} when Less =< Nanoseconds -> Outer;
        %% That is the time of the first event, which was too late for the other deadline already.
        {{start, Less}, Passed} when is_integer(Now), Less =< Nanoseconds -> {Now + Less, Passed};
        _ -> Own
    end.

-doc "When something began, at an event of this time.".
-spec now(integer() | undefined | start, witness_event:ts()) -> integer() | undefined.
now(start, Time) -> Time;
now(Began, _) -> Began.

-doc """
The deadline at an event of this time, if it has not passed; otherwise the verdict of what it belongs to, which is `inconclusive` if a time
is missing.
""".
-spec passed(deadline(), witness_event:ts()) -> deadline() | no | yes | inconclusive.
passed({At, Verdict}, Time) when is_integer(At), is_integer(Time), Time > At -> Verdict;
passed({At, _} = Deadline, Time) when is_integer(At), is_integer(Time) -> Deadline;
passed({{start, Nanoseconds}, Verdict}, Time) when is_integer(Time) -> passed({Time + Nanoseconds, Verdict}, Time);
passed(_, _) -> inconclusive.

-doc "The first deadline of the state that is at this time or later (`c:witness_monitor:next_deadline/2`).".
-spec next(leaf_deadlines(), From :: integer(), witness_spec_formula:state()) -> integer() | none.
next(Deadlines, From, State) -> lists:min([At || At <- times(tree(Deadlines, State)), At >= From] ++ [none]).

times({{At, _}, _, _}) when is_integer(At) -> [At];
times({leaf, _, Of}) -> times(Of);
times({Operator, Members}) when Operator =:= 'and'; Operator =:= 'or' -> lists:append([times(Member) || Member <- Members]);
times(_) -> [].

tree(Deadlines, {fresh, State}) -> tree(Deadlines, State);
tree(Deadlines, {Operator, Members}) when Operator =:= 'and'; Operator =:= 'or' ->
    {Operator, [tree(Deadlines, Member) || Member <- witness_spec_formula:members(Members)]};
tree(_, {failed, _, _}) -> open;
tree(Deadlines, Leaf) ->
    case Deadlines(Leaf) of
        open -> open;
        Of -> {leaf, Leaf, Of}
    end.

-doc """
The verdict if the next event, or the end, comes at this time or later: that of the first deadline that decides, one after the other
(`c:witness_monitor:handle_time/2`).
""".
-spec pass(leaf_deadlines(), witness_spec_formula:text(), Time :: integer(), witness_spec_formula:state()) ->
    open | {verdict, no | yes, witness_spec_formula:info()}.
pass(Deadlines, Text, Time, State) ->
    Tree = tree(Deadlines, State),
    case first([At || At <- lists:usort(times(Tree)), At < Time], Tree) of
        open -> open;
        {Verdict, {Leaf, Place, At}} ->
            {_, Bindings} = Text(Leaf),
            {verdict, Verdict, Place#{deadline => At, bindings => Bindings,
                                      vacuous => Verdict =:= yes andalso element(1, State) =:= fresh}}
    end.

first([At | Later], Tree) ->
    case decided(Tree, none, At) of
        open -> first(Later, Tree);
        Decided -> Decided
    end;
first([], _) -> open.

%% As in Kleene's logic. Nothing was decided at an earlier deadline, so at this one or with it something is.
decided({leaf, Leaf, Of}, none, At) -> decided(Of, Leaf, At);
decided({{Passed, Verdict}, No, Yes}, Leaf, At) when is_integer(Passed), Passed =< At ->
    {Verdict, {Leaf, case Verdict of no -> No; yes -> Yes end, Passed}};
decided({Operator, Members}, Leaf, At) when Operator =:= 'and'; Operator =:= 'or' ->
    Results = [decided(Member, Leaf, At) || Member <- Members],
    case lists:keyfind(witness_spec_formula:zero(Operator), 1, [Result || Result <- Results, Result =/= open]) of
        false -> case lists:member(open, Results) of true -> open; false -> latest(Results) end;
        Decided -> Decided
    end;
decided(_, _, _) -> open.

latest([Result]) -> Result;
latest([{_, {_, _, At}} = One, {_, {_, _, Other}} | Results]) when At >= Other -> latest([One | Results]);
latest([_ | Results]) -> latest(Results).
