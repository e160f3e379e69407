-module(witness_spec_translated).
-moduledoc """
What comparisons with other tools share: properties that were translated from theirs, and formulas of first order.

A variable that a quantifier binds goes into the event that has it. Events are `{event, Name, Arguments, Locals, Compared}`: the locals are
bound by this event, and its comparisons may use them. A `t:language/0` says what else its formulas are.
""".

-export([monitored/3, combinations/1, bind/3, conjunction/1, connective/3]).
-export_type([language/0]).

-doc """
The variables without a quantifier in a formula or a list of formulas; the members of a conjunction; and, for a variable in another
formula, the part that may bind it, with what is around that part.
""".
-type language() :: #{free := fun((formula() | [formula()]) -> [string()]),
                      conjuncts := fun((formula()) -> [formula(), ...]),
                      inside := fun((Variable :: string(), formula()) -> {fun((formula()) -> formula()), formula()} | none)}.
-type formula() :: term().

-doc "Compiles properties for a while. They are printed if this variable of the environment is set.".
-spec monitored(iodata(), Shown :: string(), fun((module()) -> Result)) -> Result.
monitored(Properties, Shown, Fun) ->
    Text = iolist_to_binary(Properties),
    [io:format("~ts~n", [Text]) || os:getenv(Shown, "") =/= ""],
    case witness_spec:compile_string(~"translated", Text, #{max_state => 1_000_000}) of
        {ok, #{module := Module} = Map, _} ->
            try
                Fun(Module)
            after
                witness_spec:unload(Map)
            end;
        {error, {witness_spec, Findings}} ->
            error({compile, Text, [Message || #{severity := error, message := Message} <- Findings], Findings})
    end.

-doc "The guard for a constant, or a connective of what `Write` writes one after the other.".
-spec connective(boolean() | tuple(), Writing, fun((formula(), Writing) -> {iodata(), Writing})) -> {iodata(), Writing}.
connective(F, Writing, _) when is_boolean(F) -> {atom_to_list(F), Writing};
connective({'not', F}, Writing, Write) ->
    {Text, More} = Write(F, Writing),
    {["(not ", Text, ")"], More};
connective({Operator, F, G}, Writing, Write) ->
    {Left, Writing1} = Write(F, Writing),
    {Right, Writing2} = Write(G, Writing1),
    {["(", Left, case Operator of 'and' -> " andalso "; 'or' -> " orelse " end, Right, ")"], Writing2}.

-doc "All lists with one member of each list.".
-spec combinations([[Value]]) -> [[Value]].
combinations([]) -> [[]];
combinations([Values | Others]) -> [[Value | Rest] || Value <- Values, Rest <- combinations(Others)].

-doc "`exists Variable. F` without the quantifier.".
-spec bind(Variable :: string(), formula(), language()) -> {ok, formula()} | none.
bind(Variable, F, Language) -> bind(Variable, [], F, Language).

bind(Variable, Compared, F, #{free := Free} = Language) ->
    case lists:member(Variable, Free(Compared) ++ Free(F)) of
        false -> {ok, F};
        true -> bound(Variable, Compared, F, Language)
    end.

bound(Variable, Compared, {'or', F, G}, Language) ->
    case {bind(Variable, Compared, F, Language), bind(Variable, Compared, G, Language)} of
        {{ok, Left}, {ok, Right}} -> {ok, {'or', Left, Right}};
        _ -> none
    end;
bound(Variable, Compared, {'and', _, _} = F, #{free := Free, conjuncts := Conjuncts} = Language) ->
    {With, Without} = lists:partition(fun(Member) -> lists:member(Variable, Free(Member)) end, Conjuncts(F)),
    {More, Others} = lists:partition(fun is_comparison/1, With),
    case Others of
        [One] -> wrap(fun(Bound) -> conjunction([Bound | Without]) end, bind(Variable, Compared ++ More, One, Language));
        _ -> none
    end;
bound(Variable, Compared, {event, Name, Arguments, Locals, Before} = Event, #{free := Free}) ->
    case lists:member(Variable, Free(Event)) of
        true -> {ok, {event, Name, Arguments, [Variable | Locals], Before ++ Compared}};
        false -> none
    end;
bound(Variable, Compared, F, #{inside := Inside} = Language) ->
    case Inside(Variable, F) of
        {Around, G} -> wrap(Around, bind(Variable, Compared, G, Language));
        none -> none
    end.

wrap(Around, {ok, F}) -> {ok, Around(F)};
wrap(_, none) -> none.

is_comparison({compare, _, _, _}) -> true;
is_comparison({'not', F}) -> is_comparison(F);
is_comparison(_) -> false.

-spec conjunction([formula()]) -> formula().
conjunction([]) -> true;
conjunction([F]) -> F;
conjunction([F | Members]) -> {'and', F, conjunction(Members)}.
