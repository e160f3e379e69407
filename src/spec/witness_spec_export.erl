-module(witness_spec_export).
-moduledoc """
Signature patterns that match no process, since the module or the function does not exist.

The caller of the compiler says which functions a module has (the option `exports`). Two kinds of signatures are valid
without such a function: funs have names of their own, such as `'-start/1-fun-0-'`, and an event manager has the signature
`gen_event:init(Name)`.
""".

-export([properties/2]).

-doc """
Returns the functions of a module that processes can start with; `unknown` if the module is not found, `unreadable`
if its object code cannot be read.
""".
-type exports() :: fun((module()) -> unknown | unreadable | [{atom(), arity()}]).

-export_type([exports/0]).

%% With more wrong characters than these a name does not count as misspelt.
-define(MAX_DISTANCE, 2).
%% Maximum number of functions of one name in a hint.
-define(MAX_NAMED, 3).

-doc "Warnings about the signatures of the properties and of their actions; each module or function is named once.".
-spec properties([witness_spec_parse:property()], exports()) -> [witness_spec_diagnostic:finding()].
properties(Properties, Exports) ->
    Signatures = lists:flatmap(fun signatures/1, Properties),
    {Findings, _} = lists:foldl(fun(Signature, {Found, Known}) ->
        {New, After} = signature(Signature, Exports, Known),
        {New ++ Found, After}
    end, {[], #{}}, Signatures),
    Findings.

signatures(Property) ->
    [Pattern || #{pattern := Pattern} <- witness_spec_parse:property_signatures(Property)]
        ++ case Property of #{over := all} -> []; #{over := Actions} -> lists:flatmap(fun spawned_signatures/1, Actions) end
        ++ case Property of #{formula := Formula} -> spawned_signatures(Formula); _ -> [] end.

spawned_signatures(#{kind := Kind, pattern := {tuple, _, [_, _, _, Signature, _]}}) when Kind =:= fork; Kind =:= init ->
    [Signature];
spawned_signatures(#{kind := _}) -> [];
spawned_signatures({Modality, _, Action, Formula}) when Modality =:= box; Modality =:= dia ->
    spawned_signatures(Action) ++ spawned_signatures(Formula);
spawned_signatures({_, _, _, _, Formula}) -> spawned_signatures(Formula);
spawned_signatures({_, _, Formulas}) when is_list(Formulas) -> lists:flatmap(fun spawned_signatures/1, Formulas);
spawned_signatures(_) -> [].

signature({tuple, _, [{atom, _, _} = Module, Function, Arguments]}, Exports, Known) ->
    {Functions, Findings, After} = functions(Module, Exports, Known),
    case {Functions, Function} of
        {[_ | _], {atom, _, Name}} -> function(Module, Function, {Name, arity(Arguments, 0)}, Findings, After);
        _ -> {Findings, After}
    end;
signature(_, _, Known) ->
    {[], Known}.

arity({cons, _, _, Tail}, Arity) -> arity(Tail, Arity + 1);
arity({nil, _}, Arity) -> Arity.

%% Each module is looked up, and reported, once.
functions({atom, Anno, Module}, Exports, Known) ->
    case Known of
        #{Module := Functions} ->
            {Functions, [], Known};
        _ ->
            case Exports(Module) of
                unknown ->
                    {[], [witness_spec_diagnostic:warning(place(Anno), unknown_module,
                        ["there is no module ", quote_name(Module), " on the code path"],
                        "a process with such a signature can only come from a module that is loaded later")],
                     Known#{Module => []}};
                unreadable ->
                    {[], [witness_spec_diagnostic:warning(place(Anno), unreadable_module,
                        ["the object code of the module ", quote_name(Module), " cannot be read"],
                        "its file is damaged, or compiled for a later release of Erlang/OTP")],
                     Known#{Module => []}};
                Functions ->
                    {Functions, [], Known#{Module => Functions}}
            end
    end.

function({atom, _, Module}, {atom, Anno, _}, {Name, Arity} = Function, Findings, Known) ->
    Functions = map_get(Module, Known),
    Written = atom_to_list(Name),
    Found = lists:member(Function, Functions) orelse lists:prefix("-", Written)
        orelse {Module, Function} =:= {gen_event, {init, 1}},
    case Found of
        true ->
            {Findings, Known};
        false ->
            Text = ["the module ", quote_name(Module), " has no function ", function(Function)],
            {[witness_spec_diagnostic:warning(place(Anno), unknown_function, Text, closest(Written, Arity, Functions))
              | Findings],
             Known#{Module := [Function | Functions]}}
    end.

%% The same name with another arity, or a name that may be the intended one.
closest(Name, Arity, Functions) ->
    Known = [{atom_to_list(Other), Function} || {Other, _} = Function <- Functions],
    Names = [{distance(Name, Other), Other} || Other <- lists:usort([Other || {Other, _} <- Known]),
                                              abs(length(Name) - length(Other)) =< ?MAX_DISTANCE],
    case lists:sort(Names) of
        [{Distance, Like} | _] when Distance =< ?MAX_DISTANCE, Distance * 3 =< length(Name) ->
            Alike = lists:sort([{abs(Of - Arity), Function} || {Other, {_, Of} = Function} <- Known, Other =:= Like]),
            ["it has ", lists:join(" and ", [function(Function) || {_, Function} <- lists:sublist(Alike, ?MAX_NAMED)])];
        _ ->
            "it is the function that a process was spawned with; for a `gen_server` and the like, `init/1`"
    end.

%% How many characters have to be replaced, inserted or removed. A row has the distances between the part of the first
%% name so far and all beginnings of the other.
distance(Name, Other) ->
    lists:last(lists:foldl(fun(C, [First | _] = Row) -> distance_row(C, Other, Row, [First + 1]) end,
                           lists:seq(0, length(Other)), Name)).

distance_row(C, [Other | Others], [Diagonal, Above | Row], [Left | _] = New) ->
    Replaced = case C of Other -> Diagonal; _ -> Diagonal + 1 end,
    distance_row(C, Others, [Above | Row], [lists:min([Replaced, Above + 1, Left + 1]) | New]);
distance_row(_, [], _, New) ->
    lists:reverse(New).

function({Name, Arity}) -> witness_spec_diagnostic:quote(io_lib:format("~tw/~b", [Name, Arity])).

quote_name(Name) -> witness_spec_diagnostic:quote(io_lib:write_atom(Name)).

place(Anno) -> {erl_anno:line(Anno), erl_anno:column(Anno)}.
