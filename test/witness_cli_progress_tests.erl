-module(witness_cli_progress_tests).
-moduledoc "Progress on a terminal, and in lines that become rarer where there is none. The clock is given.".
-include_lib("eunit/include/eunit.hrl").

lines_become_rarer_where_no_terminal_is_test() ->
    %% Something is reached ten times a second, for five minutes.
    Told = told([{T, ["woven: ", integer_to_list(T)]} || T <- lists:seq(0, 300_000, 100)], false),
    ?assertEqual([5, 15, 35, 75, 135, 195, 255], [Second || {Second, _} <- Told]),
    [?assertEqual(iolist_to_binary(io_lib:format("~b s: woven: ~b~n", [S, S * 1000])), Text) || {S, Text} <- Told].

what_is_quick_says_nothing_where_no_terminal_is_test() ->
    ?assertEqual([], told([{T, "text"} || T <- lists:seq(0, 4_999)], false)).

nothing_is_made_up_for_after_a_pause_test() ->
    ?assertEqual([40, 85], [S || {S, _} <- told([{T, "text"} || T <- [0, 40_000, 40_001, 60_000, 84_999, 85_000]], false)]).

on_a_terminal_each_text_takes_the_place_of_the_last_test() ->
    ?assertEqual([{0, ~"\ra\e[K"}, {0, ~"\rb\e[K"}], told([{0, "a"}, {1, "b"}], true)).

processes_that_tell_at_once_give_one_line_test() ->
    Self = self(),
    Clock = clock(),
    Tell = witness_cli_progress:new(#{terminal => false, note => fun(Text) -> Self ! {noted, Text} end, clock => now_of(Clock)}),
    ok = atomics:put(Clock, 1, 5_000),
    Tellers = [spawn_monitor(fun() -> receive go -> Tell("text") end end) || _ <- lists:seq(1, 50)],
    [Pid ! go || {Pid, _} <- Tellers],
    [receive {'DOWN', Ref, process, Pid, Reason} -> ?assertEqual(normal, Reason) end || {Pid, Ref} <- Tellers],
    ?assertMatch([_], noted()).

clock() -> atomics:new(1, []).

now_of(Clock) -> fun() -> 1_000_000 + atomics:get(Clock, 1) end.

%% What is told, with its second, when texts come at these times.
told(Texts, Terminal) ->
    Self = self(),
    Clock = clock(),
    Note = fun(Text) -> Self ! {noted, {atomics:get(Clock, 1) div 1000, iolist_to_binary(Text)}} end,
    Tell = witness_cli_progress:new(#{terminal => Terminal, note => Note, clock => now_of(Clock)}),
    [begin
         ok = atomics:put(Clock, 1, Time),
         ok = Tell(Text)
     end || {Time, Text} <- Texts],
    noted().

noted() -> receive {noted, Noted} -> [Noted | noted()] after 0 -> [] end.
