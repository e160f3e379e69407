-module(witness_spec_machine).
-moduledoc """
State machines with data, in place of `monitor f`, `check f` and sentences.

```text
machine    = "machine" [ data ] { state } "end"
state      = [ "hot" ] "state" name [ "within" duration ] ":" [ transition { ";" transition } ]
transition = ( action | "else" ) "->" target
target     = name [ updates ] | "stay" [ updates ] | "violated" [ string ] | "satisfied"
updates    = "(" V "=" expression { "," V "=" expression } ")"
```

Only a hot state has a deadline. `else` is the last transition of its state. An action is that of a modality, with or without braces;
`call(...)`, `cast(...)`, `info(...)` and `reply(...)` alone are what they are in sentences. The arrow of a transition is the first one that
belongs to no action.

This module reads machines. `m:witness_spec_machine_check` says what is wrong with one, and `m:witness_spec_machine_core` makes a formula
of it.
""".

-export([begins/1, begins_state/1, ends_action/2, read/2, is_change/1]).
-export_type([machine/0, state/0, transition/0, target/0, update/0]).

-import(witness_spec_scan, [refuse/3, expected/3]).

-type token() :: witness_spec_scan:token().
-type location() :: witness_spec_diagnostic:location().
-doc "What was read. The first state is where it begins. `text` is its header, `variables` are all that stand in it.".
-type machine() :: #{location := location(), text := binary(), variables := ordsets:ordset(atom()), data := [update()],
                     states := [state(), ...]}.
-doc "A state. `text` is its header; `hot` says that it has to be left, `{within, Duration}` by when.".
-type state() :: #{name := atom(), location := location(), text := binary(), hot := false | true | {within, token()},
                   transitions := [transition()]}.
-doc "A transition. The tokens are those of its action without braces; `arrow` is the place of the target.".
-type transition() :: #{action := 'else' | witness_spec_action:action(), tokens := [token()], location := location(),
                        text := binary(), target := target(), updates := [update()], arrow := location()}.
-type target() :: {state, atom()} | stay | satisfied | {violated, Why :: binary() | none}.
-doc "A name of data with the tokens of its value.".
-type update() :: {atom(), location(), [token(), ...]}.

-define(MAX_TRANSITIONS, 200).

-doc "Whether a machine begins here, where no operand can.".
-spec begins([token()]) -> boolean().
begins([{atom, _, Word} | _]) -> Word =:= machine;
begins(_) -> false.

-doc "Whether a transition does more than to leave the machine as it is.".
-spec is_change(transition()) -> boolean().
is_change(#{target := stay, updates := []}) -> false;
is_change(_) -> true.

-doc "Reads a machine, and the tokens behind it. `Action` reads the tokens of an action. Throws a `t:witness_spec_diagnostic:finding/0`.".
-spec read([token(), ...], Action :: fun(([token()], End :: location()) -> witness_spec_action:action())) -> {machine(), [token()]}.
read([First | Tokens], Action) ->
    {Data, Behind} = case Tokens of
        [{'(', _} | _] -> updates(Tokens);
        _ -> {[], Tokens}
    end,
    begins_state(Behind) orelse expected("a state", Behind, ["as in `machine state idle: _ ? start -> busy`", similar(Behind, [state, hot])]),
    {States, [Next | _] = Rest} = states(Behind, Action),
    length([T || #{transitions := Ts} <- States, T <- Ts]) =< ?MAX_TRANSITIONS orelse
        throw(witness_spec_diagnostic:error(witness_spec_scan:location(First), too_large,
                                            io_lib:format("a machine has at most ~b transitions", [?MAX_TRANSITIONS]))),
    End = witness_spec_scan:location(Next),
    Own = lists:takewhile(fun(Token) -> witness_spec_scan:location(Token) < End end, [First | Tokens]),
    {#{location => witness_spec_scan:location(First), data => Data,
       text => <<(witness_spec_scan:text([First | Tokens], witness_spec_scan:location(hd(Behind))))/binary, " ...">>, states => States,
       variables => ordsets:from_list([Name || {var, _, Name} <- Own])}, Rest}.

-doc "Whether a state begins here.".
-spec begins_state([token()]) -> boolean().
begins_state([{atom, _, state} | Behind]) -> is_named(Behind);
begins_state([{atom, _, hot}, {atom, _, state} | Behind]) -> is_named(Behind);
begins_state(_) -> false.

is_named([{atom, _, _} | _]) -> true;
is_named(_) -> false.

states([{'end', _} | Rest], _) -> {[], Rest};
states(Tokens, Action) ->
    {State, Behind} = state(Tokens, Action),
    {States, Rest} = states(Behind, Action),
    {[State | States], Rest}.

state([{atom, _, hot}, {atom, _, state}, {atom, _, Name} = Token | Tokens] = All, Action) ->
    {Hot, Behind} = case Tokens of
        [{atom, _, within} | Duration] -> deadline(Duration);
        _ -> {true, Tokens}
    end,
    state(Name, Token, Hot, All, Behind, Action);
state([{atom, _, state}, {atom, _, _}, {atom, _, within} = Within | _], _) ->
    refuse(Within, "only a hot state has a deadline", "write `hot state` in front of its name: it has to be left in this time");
state([{atom, _, state}, {atom, _, Name} = Token | Tokens] = All, Action) -> state(Name, Token, false, All, Tokens, Action).

deadline([{integer, _, _} = Duration | Tokens]) ->
    witness_spec_time:is_duration(Duration) orelse expected("a duration", [Duration], witness_spec_time:units()),
    {{within, Duration}, Tokens};
deadline(Tokens) -> expected("a duration", Tokens, witness_spec_time:units()).

state(Name, Token, Hot, [First | _] = All, [{':', _} = Colon | Tokens], Action) ->
    not lists:member(Name, [stay, violated, satisfied]) orelse
        refuse(Token, ["`", atom_to_list(Name), "` is no name of a state"], "it is what a transition may lead to"),
    {Transitions, Rest} = case ends_state(Tokens) of
        true -> {[], Tokens};
        false -> transitions(Tokens, Action)
    end,
    {#{name => Name, location => witness_spec_scan:location(First), hot => Hot, transitions => Transitions,
       text => witness_spec_scan:text(All, witness_spec_scan:location(Colon))}, Rest};
state(_, _, _, _, Tokens, _) -> expected("`:` behind the name of the state", Tokens, ["as in `state idle:`", similar(Tokens, [within])]).

ends_state([{'end', _} | _]) -> true;
ends_state(Tokens) -> begins_state(Tokens).

transitions(Tokens, Action) ->
    {Transition, Rest} = transition(Tokens, Action),
    case {Rest, ends_state(Rest)} of
        {[{';', _} = Semicolon | More], _} ->
            ends_state(More) andalso refuse(Semicolon, "no `;` stands behind the last transition of a state", "leave it out"),
            {Transitions, After} = transitions(More, Action),
            {[Transition | Transitions], After};
        {_, true} -> {[Transition], Rest};
        _ -> expected("`;` and another transition, a state, or `end`", Rest,
                      ["`end` stands behind the last state", similar(Rest, [state, hot, 'end'])])
    end.

transition([First | _] = Tokens, Action) ->
    {Taken, Behind} = witness_spec_pattern:split_before(Tokens, fun ends_action/2),
    case {Taken, Behind} of
        {[_ | _], [{'->', _} = Arrow | Target]} ->
            {Reached, Updates, [Next | _] = Rest} = target(Target),
            Own = bare(Taken),
            Read = case Own of
                [{'else', _}] -> 'else';
                _ -> Action(Own, witness_spec_scan:location(Arrow))
            end,
            {#{action => Read, tokens => Own, location => witness_spec_scan:location(First), target => Reached,
               text => witness_spec_scan:text(Taken, witness_spec_scan:location(Arrow)), updates => Updates,
               arrow => witness_spec_scan:location(hd(Target ++ [Next]))}, Rest};
        {[], _} -> expected("an action", Behind, "as in `_ ? start -> busy`");
        _ -> expected("`->` and what comes then", Behind, "as in `_ ? start -> busy`")
    end.

bare([{'{', _} | _] = Tokens) ->
    case witness_spec_pattern:split_enclosed(Tokens) of
        {Inside, _, []} -> Inside;
        _ -> Tokens
    end;
bare(Tokens) -> Tokens.

-doc """
Whether the action of a transition ends here, behind these tokens in reverse. `P -> C, m:f(A)` and `P returns m:f/1 -> V` have an arrow
themselves.
""".
-spec ends_action([token()], Taken :: [token()]) -> boolean().
ends_action([{'->', _} | Target], Taken) -> is_target(Target) orelse is_action(Taken);
ends_action([{Symbol, _} | _], _) -> Symbol =:= 'end' orelse Symbol =:= dot orelse Symbol =:= eof;
ends_action(_, _) -> false.

is_target([{atom, _, Name}, {string, _, _} | _]) -> Name =:= violated;
is_target([{atom, _, _}, {'(', _} | _] = Tokens) ->
    {_, _, Behind} = witness_spec_pattern:split_enclosed(tl(Tokens)),
    is_end(Behind);
is_target([{atom, _, _} | Behind]) -> is_end(Behind);
is_target(_) -> false.

is_end([{';', _} | _]) -> true;
is_end(Tokens) -> ends_state(Tokens).

is_action(Taken) ->
    lists:any(fun({Symbol, _}) -> lists:member(Symbol, ['?', '!', '<-', '->']); (_) -> false end, Taken).

target([{atom, _, violated}, {string, _, ""} | Rest]) -> {{violated, none}, [], Rest};
target([{atom, _, violated}, {string, _, Why} | Rest]) -> {{violated, unicode:characters_to_binary(Why)}, [], Rest};
target([{atom, _, violated} | Rest]) -> {{violated, none}, [], without_updates(Rest)};
target([{atom, _, satisfied} | Rest]) -> {satisfied, [], without_updates(Rest)};
target([{atom, _, Name} | Rest]) ->
    {Updates, Behind} = case Rest of
        [{'(', _} | _] -> updates(Rest);
        _ -> {[], Rest}
    end,
    {case Name of stay -> stay; _ -> {state, Name} end, Updates, Behind};
target(Tokens) -> expected("what comes then", Tokens, "a state, `stay`, `violated` or `satisfied`").

without_updates([{'(', _} = Open | _]) -> refuse(Open, "no data is needed behind the end", "leave it out");
without_updates(Tokens) -> Tokens.

updates([Open | _] = Tokens) ->
    {Inside, Close, Rest} = witness_spec_pattern:split_enclosed(Tokens),
    Inside =/= [] orelse refuse(Open, "there is nothing in these parentheses", "leave them out, or write `(N = 0)`"),
    {[update(Part, End) || {Part, End} <- witness_spec_pattern:split(Inside, ',', witness_spec_scan:location(Close))], Rest}.

update([{var, _, Name} = Token, {'=', _} | [_ | _] = Value], _) when Name =/= '_' ->
    {Name, witness_spec_scan:location(Token), Value};
update(Tokens, End) ->
    expected("data with its value", Tokens ++ [{eof, erl_anno:new(End)} || Tokens =:= []], "it is written `N = 0`").

similar([Token | _], Words) ->
    case witness_spec_diagnostic:similar(witness_spec_scan:token_text(Token), Words) of
        [Word | _] -> ["; did you mean `", atom_to_list(Word), "`?"];
        [] -> ""
    end.
