-module(cli_searched).
%% Programs for `witness search': what can go wrong, and what cannot.
-export([seats/0, dishes/0, clerks/0, fine/0, endless/0, measured/0, marks/1, kiosks/1, quits/1, collects/0]).
-export([ways/0, many_ways/0, refused_later/0, marks_and_fails/1]).
-export([leaves/0, hall/1, wait_for/1, first_dish/0, ends/1, soup_test/0, all_test_/0]).

-include_lib("stdlib/include/assert.hrl").

%% Two visitors ask for a seat, and the hall forgets for a moment that it has sold it.
seats() ->
    Hall = spawn_link(?MODULE, hall, [free]),
    [spawn_link(fun() -> Hall ! {reserve, Who} end) || Who <- [ann, bob]],
    receive full -> ok after 100 -> ok end.

hall(State) ->
    receive
        {reserve, Who} when State =:= free ->
            self() ! {sell, Who},
            hall(free);
        {reserve, _} -> hall(State);
        {sell, _} -> hall(sold)
    end.

%% The dish depends on which message comes first.
dishes() ->
    Cook = self(),
    [spawn(fun() -> Cook ! Dish end) || Dish <- [soup, cake]],
    First = receive Dish -> Dish end,
    spawn(fun() -> soup = First end),
    receive Second -> Second end.

%% Returns what has come first.
first_dish() ->
    Cook = self(),
    [spawn(fun() -> Cook ! Dish end) || Dish <- [soup, cake]],
    receive Dish -> {first, Dish} end.

soup_test() ->
    {first, Dish} = first_dish(),
    ?assertEqual(soup, Dish).

all_test_() -> {setup, fun() -> ok end, [fun() -> ok end, {"soup comes first", fun soup_test/0}]}.

%% Ends without returning.
ends(Reason) -> exit(Reason).

%% Each of two processes waits for the other one.
clerks() ->
    One = spawn_link(fun() -> receive {other, Other} -> ?MODULE:wait_for(Other) end end),
    Two = spawn_link(fun() -> receive {other, Other} -> ?MODULE:wait_for(Other) end end),
    One ! {other, Two},
    Two ! {other, One},
    wait_for(One).

wait_for(Other) ->
    receive {done, Other} -> ok end.

leaves() -> spawn(?MODULE, wait_for, [self()]).

fine() ->
    Self = self(),
    [spawn_link(fun() -> Self ! {done, N} end) || N <- [1, 2]],
    [receive {done, N} -> ok end || N <- [1, 2]].

endless() ->
    self() ! again,
    receive again -> endless() end.

measured() -> erlang:memory(total) > 0.

%% For a test that waits until the search has begun.
marks(File) -> ok = file:write_file(File, <<>>).

kiosks(N) -> [fine() || _ <- lists:seq(1, N)].

collects() -> collects([]).

collects(Known) -> collects([self(), self() | Known]).

quits(Status) -> halt(Status).

%% Three messages in any order: it ends well in one, and in the others fails in three ways.
ways() ->
    Cook = self(),
    [spawn(fun() -> Cook ! N end) || N <- [1, 2, 3]],
    case {receive One -> One end, receive Two -> Two end, receive Three -> Three end} of
        {1, 2, 3} -> ok;
        {1, 3, 2} -> error(wrong_end);
        {2, _, _} -> error(wrong_begin);
        {3, _, _} -> receive never -> ok end
    end.

%% It fails at once, in as many ways as there are orders of five messages.
many_ways() ->
    Cook = self(),
    [spawn(fun() -> Cook ! N end) || N <- "abcde"],
    error(list_to_atom([receive N -> N end || _ <- "abcde"])).

%% It fails in the first schedule, and is refused in another one.
refused_later() ->
    case first_dish() of
        {first, soup} -> error(soup);
        {first, cake} -> open_port({spawn, "cat"}, [])
    end.

%% Each schedule fails, and says that it has begun.
marks_and_fails(File) ->
    marks(File),
    error(marked).
