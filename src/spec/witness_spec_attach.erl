-module(witness_spec_attach).
-moduledoc """
Whether a property can be about a process that ran before it was observed.

For such a process the function that it was spawned with is known, but neither its arguments nor its parent. So the
property must accept any values for them: `_`, or a variable that is not used again. Where the processes are known only when they
are seen, as in a log, and of those with unknown arguments that were seen from their births, `unsure/1` says which ones a property
cannot be about.
""".

-export([properties/1, accepts_any/1, unsure/1]).

-doc "An error for each place that needs unknown values.".
-spec properties([witness_spec_parse:property()]) -> [witness_spec_diagnostic:finding()].
properties(Properties) -> lists:append([property(Property) || Property <- Properties]).

-doc """
Whether a property depends on what is not known of a process with this name: of one that was `attached`, the arguments and the parent;
of an `unknown` one, arguments. The first row that has the name counts. Empty if it never depends on them.
""".
-spec unsure(witness_spec_parse:property()) -> [{attached | unknown, witness_spec_action:name(), boolean()}].
unsure(#{signatures := Signatures} = Property) ->
    Used = used(Property),
    Births = [Pattern || #{pattern := Pattern} <- births(Property)],
    Certain = #{attached => lists:all(fun(Birth) -> is_any_birth(Birth, Used) end, Births),
                unknown => lists:all(fun({tuple, _, [_, _, _, Of | _]}) -> is_any_call(Of, Used) end, Births)},
    Rows = lists:usort([{not (map_get(Kind, Certain) andalso is_any_call(Pattern, Used)), Kind, witness_spec_action:name(Signature),
                         Guard}
                        || Kind <- [attached, unknown], #{pattern := Pattern, guard := Guard} = Signature <- Signatures]),
    [{Kind, Name, IsUnsure} || lists:any(fun({IsUnsure, _, _, _}) -> IsUnsure end, Rows),
                               {IsUnsure, Kind, {M, F, A} = Name, Guard} <- Rows,
                               %% What takes each process with this name. Other patterns may be for some of them only.
                               IsUnsure orelse Guard =:= [] andalso not lists:member('_', [M, F, A])].

used(Property) ->
    occurrences(maps:values(maps:with([signatures, among, over, lets, formula], Property)),
                maps:from_keys(maps:get(per, Property, []), 1)).

property(Property) ->
    Used = used(Property),
    [needed("arguments", Signature) || #{pattern := Pattern} = Signature <- witness_spec_parse:property_signatures(Property),
                                       not is_any_call(Pattern, Used)]
        ++ [needed("parent or arguments", Action) || #{pattern := Pattern} = Action <- births(Property),
                                                     not is_any_birth(Pattern, Used)].

needed(What, #{location := Location}) ->
    witness_spec_diagnostic:error(Location, needs_arguments,
        ["this depends on the ", What, " that a process was spawned with, which are not known of one that was running "
         "already"],
        "write `_` for what is not known, or start the system under observation").

-doc "Whether a signature accepts any arguments.".
-spec accepts_any(witness_spec_action:signature()) -> boolean().
accepts_any(#{pattern := Pattern, guard := Guard}) -> Guard =:= [] andalso is_any_call(Pattern, occurrences(Pattern, #{})).

%% `init` actions, wherever they are.
births(Property) -> [Action || #{kind := init} = Action <- witness_spec_parse:property_actions(Property)].

%% In front of the time there may be the values of `let`s.
is_any_birth({tuple, _, [_, _, Parent, Signature | _]}, Used) -> anything(Parent, Used) andalso is_any_call(Signature, Used).

is_any_call({tuple, _, [_, _, Arguments]}, Used) -> arguments(Arguments, Used);
is_any_call(Pattern, Used) -> anything(Pattern, Used).

arguments({cons, _, Argument, Rest}, Used) -> anything(Argument, Used) andalso arguments(Rest, Used);
arguments({nil, _}, _) -> true;
arguments(Rest, Used) -> anything(Rest, Used).

anything({var, _, '_'}, _) -> true;
anything({var, _, Name}, Used) -> maps:get(Name, Used) =:= 1;
anything(_, _) -> false.

%% How often each variable occurs. Recursion variables count too; that only refuses what is hard to read anyway.
occurrences({var, _, Name}, Used) when is_atom(Name) -> maps:update_with(Name, fun(N) -> N + 1 end, 1, Used);
occurrences(Tuple, Used) when is_tuple(Tuple) -> occurrences(tuple_to_list(Tuple), Used);
occurrences(Map, Used) when is_map(Map) -> occurrences(maps:values(Map), Used);
occurrences([First | Rest], Used) -> occurrences(Rest, occurrences(First, Used));
occurrences(_, Used) -> Used.
