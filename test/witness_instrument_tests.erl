-module(witness_instrument_tests).
-moduledoc """
The plug point: a run knows no instrument by name, and each instrument has the callbacks of the abilities that it names.
""".
-include_lib("eunit/include/eunit.hrl").

%% What each ability needs.
callbacks() ->
    #{attach => {attach, 3}, parents => {parents, 2}, servers => {servers, 3}, adopt_node => {adopt_node, 2}, alive => {alive, 1},
      awaited => {awaited, 1}, replace => {replace, 2},
      each => {each, 2}, acknowledge => {acknowledge, 2}, lives => {lives, 2}, give_up => {give_up, 1}, inherit => {inherit, 2},
      called => {called, 1}, seen => {seen, 1}}.

every_ability_has_a_callback_test() ->
    ?assertEqual(lists:sort(witness_instrument:behaviour_info(optional_callbacks)), lists:sort(maps:values(callbacks()))).

instruments_have_the_callbacks_of_their_abilities_test_() ->
    [{atom_to_list(Module), fun() ->
        Abilities = Module:abilities(),
        ?assertEqual(lists:sort(maps:keys(callbacks())), lists:sort(maps:keys(Abilities))),
        {module, Module} = code:ensure_loaded(Module),
        ?assertEqual([], [Ability || Ability := true <- Abilities, {F, A} <- [maps:get(Ability, callbacks())],
                                     not erlang:function_exported(Module, F, A)])
    end} || Module <- instruments()].

all_kinds_are_instruments_test() ->
    ?assertEqual([witness_inline_coordinator, witness_inline_tree_watch, witness_offline, witness_outline_dispatcher,
                  witness_outline_pool], instruments()).

%% Only the modules that make the instrument from the options know its name.
a_run_calls_no_instrument_by_name_test() ->
    Kinds = ["witness_outline", "witness_central", "witness_inline", "witness_offline"],
    ?assertEqual([], [{M, Call} || M <- modules("witness_run") -- [witness_run_observe, witness_run_inline],
                                   {Module, _, _} = Call <- calls(M), Kind <- Kinds, lists:prefix(Kind, atom_to_list(Module))]).

calls(Module) ->
    {ok, {Module, [{imports, Imports}]}} = beam_lib:chunks(code:which(Module), [imports]),
    Imports.

instruments() ->
    [M || M <- modules("witness_"), {behaviour, Behaviours} <- M:module_info(attributes),
     lists:member(witness_instrument, Behaviours)].

modules(Prefix) ->
    _ = application:load(witness),
    {ok, Modules} = application:get_key(witness, modules),
    lists:sort([M || M <- Modules, lists:prefix(Prefix, atom_to_list(M))]).
