-module(witness_record_calls_tests).
-moduledoc "The table of recorded calls is complete and says one thing of each function.".
-include_lib("eunit/include/eunit.hrl").

-define(C, witness_record_calls).

%% A function of this OTP that the table lacks fails here.
every_function_of_the_vm_is_known_test_() ->
    [{atom_to_list(Module), fun() -> ?assertEqual([], unknown(Module, left(Module))) end} || Module <- modules()].

a_function_that_is_forgotten_is_found_test() ->
    ?assertEqual([{erlang, abs, 1}], unknown(erlang, left(erlang) -- [{erlang, abs, 1}])).

nothing_is_left_that_has_a_row_test() ->
    ?assertEqual([], [MFA || Module <- modules(), {M, F, A} = MFA <- left(Module), ?C:class(M, F, A) =/= none]),
    [?assertEqual(left(Module), lists:uniq(left(Module))) || Module <- modules()].

modules() -> [erlang, ets, os, persistent_term, atomics, counters, erts_internal].

left(Module) -> [{Module, F, A} || {F, Arities} <- ?C:left(Module), A <- Arities].

unknown(Module, Left) ->
    [{Module, F, A} || {F, A} <- Module:module_info(exports), ?C:class(Module, F, A) =:= none] -- Left.

numbers_are_those_of_the_list_test() ->
    Calls = ?C:calls(),
    ?assertEqual(lists:seq(0, map_size(Calls) - 1), lists:sort(maps:values(Calls))),
    Listed = maps:without(maps:keys(maps:get(natives, ?C:plan())), Calls),
    [?assertEqual(Number, ?C:number(M, F, A)) || {M, F, A} := Number <- Listed],
    [case ?C:class(M, F, A) of
         {Class, Given} -> ?assertEqual({Number, true}, {Given, Class =:= result orelse Class =:= foreign});
         Class -> ?assert(lists:member(Class, [send, spawn, information, leave, hibernate]))
     end || {M, F, A} := Number <- Listed].

%% Existing recordings contain these numbers: new functions come at the end of the list.
numbers_stay_test() ->
    ?assertEqual(1, ?C:version()),
    [?assertEqual({MFA, Number}, {MFA, ?C:number(M, F, A)})
     || {{M, F, A} = MFA, Number} <- [{{erlang, monotonic_time, 0}, 0}, {{erlang, group_leader, 0}, 14}, {{ets, lookup, 2}, 15},
                                      {{counters, add, 3}, 26}, {{erlang, alias, 0}, 27}, {{erlang, time_offset, 1}, 129},
                                      {{erts_debug, set_internal_state, 2}, 291}]].

%% What sends or spawns can have a result, or fail.
whatever_sends_or_spawns_has_a_number_test() ->
    [?assert(is_integer(?C:number(erlang, F, A)))
     || {F, A} <- erlang:module_info(exports), Class <- [?C:class(erlang, F, A)], Class =:= spawn orelse Class =:= send].

frequent_ones_take_one_byte_test() ->
    [?assert(?C:number(M, F, A) < 31) || {M, F, A} <- [{erlang, make_ref, 0}, {erlang, monitor, 2}, {ets, insert, 2}]].

possible_test_() ->
    [?_assertEqual({Call, Possible}, {Call, erlang:apply(?C, possible, Call)})
     || {Possible, Calls} <- [
            {true, [['_', '_', '_'], [erlang, '_', 0], ['_', lookup, 2], [ets, '_', '_'], ['_', '_', 3], [prim_file, '_', 1]]},
            {false, [[lists, '_', '_'], ['_', handle_call, 3], ['_', init, 1], [erlang, '_', 17], [ets, fun2ms, 1]]}],
        Call <- Calls].

%% Modules with native functions are known by their object code.
native_modules_test() ->
    Dir = filename:dirname(code:which(crypto)),
    %% The result for a folder cannot be stored there, and is found all the same.
    {ok, Folders} = witness_weave_objects:read([Dir], "/dev/null/nowhere"),
    #{natives := Natives} = Plan = ?C:plan(Folders),
    Calls = ?C:calls(Plan),
    ?assert(is_map_key({crypto, strong_rand_bytes, 1}, Natives)),
    ?assertNot(is_map_key({crypto, module_info, 0}, Natives)),
    ?assertEqual(lists:seq(0, map_size(Calls) - 1), lists:sort(maps:values(Calls))),
    ?assertEqual([{code, ensure_loaded, 1}, {witness_record_source, answer, 2}, {witness_record_source, read, 2}],
                 maps:keys(maps:get(natives, ?C:plan()))).
