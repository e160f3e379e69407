-module(witness_instrument_called_tests).
-moduledoc "What is remembered of processes that have ended: for how many of them, and as long as there is a table.".

-include_lib("eunit/include/eunit.hrl").

%% The run may ask after its instrument has ended.
a_table_that_is_gone_knows_nothing_test() ->
    Self = self(),
    {P, Ref} = spawn_monitor(fun() -> Self ! {called, witness_instrument_called:new()} end),
    Called = receive {called, New} -> New end,
    receive {'DOWN', Ref, process, P, normal} -> ok end,
    ok = witness_instrument_called:add_birth(P, {lists, map, []}, Called),
    ok = witness_instrument_called:add_name(P, till, Called),
    ?assertEqual([], witness_instrument_called:find(P, Called)).

a_name_precedes_a_module_test() ->
    Called = witness_instrument_called:new(),
    ok = witness_instrument_called:add_birth(self(), {lists, map, []}, Called),
    ?assertEqual([lists], witness_instrument_called:find(self(), Called)),
    ok = witness_instrument_called:add_name(self(), till, Called),
    ?assertEqual([till], witness_instrument_called:find(self(), Called)).

%% The VM numbers processes one after the other.
the_last_births_have_places_of_their_own_test() ->
    Called = witness_instrument_called:new(),
    Pids = [list_to_pid(lists:concat(["<0.", N, ".0>"])) || N <- lists:seq(1000, 17_383)],
    [ok = witness_instrument_called:add_birth(P, {lists, map, []}, Called) || P <- Pids],
    ?assertEqual([], [P || P <- Pids, witness_instrument_called:find(P, Called) =/= [lists]]),
    ok = witness_instrument_called:add_birth(list_to_pid("<0.17384.0>"), {maps, map, []}, Called),
    ?assertEqual([], witness_instrument_called:find(hd(Pids), Called)).
