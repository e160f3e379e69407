-module(witness_inline_birth_table_tests).
-moduledoc "A note says what is known of a process, wherever it was killed.".
-include_lib("eunit/include/eunit.hrl").

-define(ENTRIES, [{1, #{monitor => {m, x}, spec => ~"x", name => undefined, group => false}}]).

-define(LIFE, {undefined, cell}).

%% A process that does this, and then waits.
process(Does) ->
    Self = self(),
    P = spawn(fun() ->
        Self ! {self(), Does()},
        receive after infinity -> ok end
    end),
    receive {P, Result} -> {P, Result} end.

killed(P) ->
    exit(P, kill),
    _ = witness_await:down(P),
    ok.

born(Notes) -> witness_inline_birth_table:insert({m, f, [1]}, ?ENTRIES, ?LIFE, Notes).
satisfied(Notes) -> witness_inline_birth_table:put_verdict(1, false, 5, Notes).

a_process_that_is_killed_has_left_its_note_test() ->
    Notes = witness_inline_birth_table:new(self()),
    {Open, true} = process(fun() -> born(Notes) end),
    {Complete, {true, true}} = process(fun() -> {born(Notes), satisfied(Notes)} end),
    ok = killed(Open),
    ok = killed(Complete),
    ?assertEqual([Open], witness_inline_birth_table:open_processes(Notes)),
    ?assertEqual([{Complete, ?ENTRIES, {1, false, 5}}], witness_inline_birth_table:complete_notes(Notes)),
    ?assertEqual(1, witness_inline_birth_table:count(Notes)),
    ?assertEqual({Open, {m, f, [1]}, ?ENTRIES, none, ?LIFE}, witness_inline_birth_table:take(Open, Notes)),
    ?assertEqual(none, witness_inline_birth_table:take(Open, Notes)),
    ok = witness_inline_birth_table:delete(Notes).

no_process_is_born_twice_test() ->
    Notes = witness_inline_birth_table:new(self()),
    ?assertEqual({true, false}, {born(Notes), born(Notes)}),
    ok = witness_inline_birth_table:delete(Notes).

%% Then the host has to be told.
a_note_that_was_taken_is_not_completed_test() ->
    Notes = witness_inline_birth_table:new(self()),
    true = born(Notes),
    {_, _, _, none, ?LIFE} = witness_inline_birth_table:take(self(), Notes),
    ?assertNot(satisfied(Notes)),
    ?assertEqual([], witness_inline_birth_table:all(Notes)),
    ok = witness_inline_birth_table:delete(Notes).

without_a_host_there_is_nothing_to_be_done_test() ->
    Notes = witness_inline_birth_table:new(self()),
    true = born(Notes),
    ok = witness_inline_birth_table:delete(Notes),
    ?assertEqual({gone, false, 0}, {born(Notes), satisfied(Notes), witness_inline_birth_table:count(Notes)}).

the_run_gets_the_notes_of_a_host_that_dies_test() ->
    Self = self(),
    {Host, Notes} = process(fun() -> witness_inline_birth_table:new(Self) end),
    true = born(Notes),
    ok = killed(Host),
    receive {'ETS-TRANSFER', Notes, Host, notes} -> ok end,
    ?assertMatch([{monitor, {Host, {Self, 1}}, #{process := Self, signature := {m, f, [1]}, spec := ~"x"}}],
                 witness_inline_coordinator:inherit(Host, Notes)),
    ?assertEqual(undefined, ets:info(Notes, size)).
