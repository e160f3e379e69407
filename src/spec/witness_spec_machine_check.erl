-module(witness_spec_machine_check).
-moduledoc """
What is wrong with a machine: names that are not there or twice, and states that cannot be left, are errors. Warnings are about what
can never happen, and about transitions for one event of which only the first counts.

What is wrong with the actions, guards and values themselves is found where all formulas are checked.
""".

-export([check/2]).

-import(witness_spec_diagnostic, [warning/4]).

-type machine() :: witness_spec_machine:machine().


-doc "The warnings. Throws the first error, a `t:witness_spec_diagnostic:finding/0`. The property has the `over` that counts.".
-spec check(machine(), witness_spec_parse:property()) -> [witness_spec_diagnostic:finding()].
check(#{data := Data, states := States, location := Location} = Machine, #{over := Over} = Property) ->
    once([{atom_to_list(Name), Place} || {Name, Place, _} <- Data], "there is data with the name"),
    once([{written(Name), Place} || #{name := Name, location := Place} <- States], "there is a state with the name"),
    Names = [Name || #{name := Name} <- States],
    [transition(T, Names, [Name || {Name, _, _} <- Data]) || #{transitions := Ts} <- States, T <- Ts],
    [last_else(Ts) || #{transitions := Ts} <- States],
    [left(State) || State <- States],
    Over =/= [] orelse
        fail(Location, "no transition of this machine has an action", "as in `state idle: _ ? start -> busy`, or say with `over` what it reads"),
    begins(hd(States), Property),
    unreachable(States) ++ unused(Machine) ++ never_violated(Machine)
        ++ lists:append([compared(Ts, scope(Data, Property)) || #{transitions := Ts} <- States]).

once([{Name, _} = First | Others], What) ->
    [fail(Place, [What, " `", Name, "` already"], "give each one a name of its own") || {Same, Place} <- Others, Same =:= Name],
    once([Other || Other <- Others, Other =/= First], What);
once([], _) -> ok.

transition(#{target := Target, arrow := Arrow, updates := Updates}, Names, Data) ->
    [fail(Arrow, ["there is no state `", written(Name), "`"], similar(Name, Names ++ [stay, violated, satisfied], Names, fun written/1))
     || {state, Name} <- [Target], not lists:member(Name, Names)],
    [fail(Place, ["the machine has no data `", atom_to_list(Name), "`"],
          case Data of
              [] -> ["its first value stands behind `machine`, as in `machine (", atom_to_list(Name), " = 0)`"];
              _ -> similar(Name, Data, Data, fun atom_to_list/1)
          end) || {Name, Place, _} <- Updates, not lists:member(Name, Data)],
    once([{atom_to_list(Name), Place} || {Name, Place, _} <- Updates], "there is a new value of").

similar(Name, Words, All, Write) ->
    case witness_spec_diagnostic:similar(atom_to_list(Name), Words) of
        [Word | _] -> ["did you mean `", Write(Word), "`?"];
        [] -> ["there is ", lists:join(", ", [["`", Write(Word), "`"] || Word <- lists:sublist(All, 5)]), [", ..." || length(All) > 5]]
    end.

last_else(Transitions) ->
    case lists:dropwhile(fun(#{action := Action}) -> Action =/= 'else' end, Transitions) of
        [_, #{location := Place} | _] -> fail(Place, "no event comes here: `else` is in front", "`else` is the last transition of its state");
        _ -> ok
    end.

%% What begins a hot state anew gives it more time, but only if there is a time.
left(#{hot := false}) -> ok;
left(#{hot := Hot, name := Name, location := Place, transitions := Transitions}) ->
    lists:any(fun(#{target := stay}) -> false;
                 (#{target := {state, Same}}) -> Same =/= Name orelse Hot =/= true;
                 (_) -> true
              end, Transitions)
        orelse fail(Place, ["the hot state `", written(Name), "` can never be left"],
                    "give it a transition to another state, or leave out `hot`").

%% A slice begins with an event that has a value for each variable of `per`.
begins(_, #{per := []}) -> ok;
begins(#{transitions := Transitions}, #{per := Per, over := Over}) ->
    [fail(Place, ["this action does not bind `", atom_to_list(Name), "`"],
          "it is one of the first state: `per` makes a machine for each value, and an event without one begins none")
     || #{action := #{pattern := Pattern, location := Place}} <- Transitions, Name <- Per,
        not lists:member(Name, witness_spec_pattern:variables(Pattern))],
    [fail(Place, ["this `else` of the first state is also about events without `", atom_to_list(Name), "`"],
          "`per` makes a machine for each value, and an event without one begins none")
     || #{action := 'else', location := Place} = T <- Transitions, witness_spec_machine:is_change(T), is_list(Over),
        #{pattern := Pattern} <- Over, Name <- Per, not lists:member(Name, witness_spec_pattern:variables(Pattern))],
    ok.

unreachable([#{name := First} | _] = States) ->
    Next = #{Name => [Other || #{target := {state, Other}} <- Ts] || #{name := Name, transitions := Ts} <- States},
    Reached = reached([First], Next, []),
    [warning(Place, unreachable_state, ["the state `", written(Name), "` is never reached"], "no transition leads to it from the first state")
     || #{name := Name, location := Place} <- States, not lists:member(Name, Reached)].

reached([Name | Names], Next, Reached) ->
    case lists:member(Name, Reached) of
        true -> reached(Names, Next, Reached);
        false -> reached(map_get(Name, Next) ++ Names, Next, [Name | Reached])
    end;
reached([], _, Reached) -> Reached.

%% A value that only gives itself another value is not used.
unused(#{data := Data, states := States}) ->
    Transitions = [T || #{transitions := Ts} <- States, T <- Ts],
    [warning(Place, unused_data, ["the data `", atom_to_list(Name), "` is never used"], "use it in an action or its guard, or leave it out")
     || {Name, Place, _} <- Data,
        not lists:any(fun({Other, _, First}) -> Other =/= Name andalso uses(Name, First) end, Data),
        not lists:any(fun(#{tokens := Tokens, updates := Updates}) ->
            uses(Name, Tokens) orelse lists:any(fun({Other, _, Value}) -> Other =/= Name andalso uses(Name, Value) end, Updates)
        end, Transitions)].

uses(Name, Tokens) -> lists:any(fun({var, _, Same}) -> Same =:= Name; (_) -> false end, Tokens).

never_violated(#{location := Location, states := States}) ->
    [warning(Location, never_violated, "this machine can never be violated",
             "a transition may lead to `violated`, and a `hot state` has to be left")
     || not lists:any(fun(#{hot := Hot, transitions := Ts}) ->
            Hot =/= false orelse lists:any(fun(#{target := {violated, _}}) -> true; (_) -> false end, Ts)
        end, States)].

%% The first transition counts.
compared([#{action := #{location := {Line, Column}} = Action} = First | Others], Scope) ->
    Where = io_lib:format("the one of line ~b, column ~b ", [Line, Column]),
    lists:append([
        case {witness_spec_overlap:covers(Action, Other, Scope), same_end(First, T)} of
            {true, _} ->
                [warning(Place, never_taken, "this transition can never be taken", [Where, "comes first, and matches all that this one does"])];
            {false, false} ->
                [warning(Place, overlapping_transitions, "this transition can match the same event as an earlier one",
                         [Where, "counts then: put the more special one first, or give one a guard"])
                 || witness_spec_overlap:overlapping(Action, Other, Scope), not witness_spec_overlap:covers(Other, Action, Scope)];
            {false, true} -> []
        end || #{action := #{location := Place} = Other} = T <- Others])
        ++ compared(Others, Scope);
compared(_, _) -> [].

same_end(#{target := Target, updates := One}, #{target := Same, updates := Other}) ->
    Target =:= Same andalso plain(One) =:= plain(Other).

plain(Updates) -> lists:sort([{Name, [witness_spec_scan:token_text(Token) || Token <- Value]} || {Name, _, Value} <- Updates]).

scope(Data, Property) -> ordsets:union(witness_spec_sentence:given(Property), ordsets:from_list([Name || {Name, _, _} <- Data])).

written(Name) -> lists:flatten(io_lib:format("~tw", [Name])).

-spec fail(witness_spec_diagnostic:location(), unicode:chardata(), unicode:chardata()) -> no_return().
fail(Place, Text, Hint) -> throw(witness_spec_diagnostic:error(Place, syntax, Text, Hint)).
