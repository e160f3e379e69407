-module(witness_searched_test).
%% What tests search (`witness_test:search/3`).
-include_lib("stdlib/include/assert.hrl").
-export([first/0, first/1, fine/0, waits/0, opens/0, measures/0, hidden/0]).

%% Which message comes first depends on the schedule.
first() ->
    Self = self(),
    [spawn(fun() -> Self ! Name end) || Name <- [ann, bob]],
    receive Name -> Name end.

first(Expected) -> ?assertEqual(Expected, first()).

hidden() -> fun bob_is_first/0.

bob_is_first() -> first(ann).

fine() -> ok.

waits() -> receive never -> ok end.

opens() -> gen_tcp:listen(0, []).

measures() -> erlang:memory(total) > 0.
