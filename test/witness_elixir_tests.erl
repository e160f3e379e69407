-module(witness_elixir_tests).
-moduledoc """
Data of Witness for Elixir. What real Elixir makes of it is the matter of `witness_elixir_api_SUITE`.
""".
-include_lib("eunit/include/eunit.hrl").

the_module_for_elixir_has_all_functions_of_the_erlang_interface_test() ->
    Witness = 'Elixir.Witness',
    ?assertEqual([], witness:module_info(exports) -- Witness:module_info(exports)).

structs_have_a_field_for_all_that_the_erlang_interface_has_test_() ->
    [{atom_to_list(Struct), fun() ->
        Fields = maps:remove('__struct__', Struct:'__struct__'()),
        ?assertEqual(lists:sort(keys(Type, 0, witness)), lists:sort(maps:keys(Fields))),
        %% The order is that in which Elixir shows them.
        Infos = Struct:'__info__'(struct),
        ?assertEqual(Fields, #{Field => Default || #{field := Field, default := Default} <- Infos}),
        ?assertEqual(lists:sort(['__struct__' | maps:keys(Fields)]), keys(t, 0, Struct))
    end} || {Struct, Type} <- [{'Elixir.Witness.Verdict', verdict}, {'Elixir.Witness.Summary', summary}]].

%% The keys of a type that is a map.
keys(Name, Arity, Module) ->
    {ok, {_, [{abstract_code, {_, Forms}}]}} = beam_lib:chunks(code:which(Module), [abstract_code]),
    [Fields] = [Fields || {attribute, _, type, {Of, {type, _, map, Fields}, Variables}} <- Forms, Of =:= Name,
                          length(Variables) =:= Arity],
    lists:sort([Key || {type, _, _, [{atom, _, Key}, _]} <- Fields]).

callbacks_are_those_of_the_erlang_behaviour_test() ->
    Monitor = 'Elixir.Witness.Monitor',
    [?assertEqual(lists:sort(witness_monitor:behaviour_info(Key)), lists:sort(Monitor:behaviour_info(Key)))
     || Key <- [callbacks, optional_callbacks]].

what_is_not_known_is_nil_test() ->
    ?assertEqual(#{a => nil, b => [#{c => nil}], d => {undefined}},
                 witness_elixir:from_erlang(#{a => undefined, b => [#{c => undefined}], d => {undefined}})).

values_of_a_system_are_not_changed_test() ->
    Values = #{info => #{a => undefined}, slice => [undefined], bindings => [{~"A", undefined}, undefined], signature => [undefined],
               names => #{undefined => undefined}},
    ?assertEqual(Values, witness_elixir:from_erlang(Values)),
    ?assertEqual(#{info => nil, slice => nil}, witness_elixir:from_erlang(#{info => undefined, slice => undefined})),
    ?assertEqual(Values, witness_elixir:to_erlang(Values)).

what_is_known_to_another_version_only_is_left_out_test() ->
    Verdict = 'Elixir.Witness.Verdict',
    ?assertNot(is_map_key(run, Verdict:new(#{run => self(), verdict => no}))).

%% The header answers what the compiler of Elixir would.
info_names_functions_and_macros_test() ->
    Monitor = 'Elixir.Witness.Monitor',
    ?assertEqual([{'__using__', 1}], Monitor:'__info__'(macros)),
    ?assertEqual([], Monitor:'__info__'(functions)),
    ?assertEqual(nil, Monitor:'__info__'(struct)),
    Verdict = 'Elixir.Witness.Verdict',
    ?assertEqual([{'__struct__', 0}, {'__struct__', 1}, {new, 1}, {to_erlang, 1}, {violations, 1}], Verdict:'__info__'(functions)),
    ?assertError({badkey, nope}, Verdict:'__struct__'([{nope, 1}])),
    Task = 'Elixir.Mix.Tasks.Witness.Run',
    ?assertMatch([{shortdoc, [_]}], Task:'__info__'(attributes)),
    ?assertEqual([{run, 1}], Task:'__info__'(functions)).
