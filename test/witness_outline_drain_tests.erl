-module(witness_outline_drain_tests).
-moduledoc "The stop time of a run.".
-include_lib("eunit/include/eunit.hrl").

the_time_is_known_if_the_vm_answers_test() ->
    Before = erlang:monotonic_time(nanosecond),
    Time = reach(fun() -> self() ! {reached, here}, here end, #{stop_time => witness_monitor_stop_time:new()}),
    ?assert(Time >= Before andalso Time =< erlang:monotonic_time(nanosecond)),
    ?assertEqual(unknown, reach(fun() -> exit(asked) end, #{stop_time => witness_monitor_stop_time:none()})),
    ?assertEqual(unknown, reach(fun() -> exit(asked) end, #{})).

%% The tracers need some of the time in which a run has to end. Here there is none, so the answer comes too late.
the_answer_is_not_awaited_for_longer_than_the_run_may_take_test() ->
    Answer = fun() -> erlang:send_after(4_000, self(), {reached, late}), late end,
    ?assertEqual(unknown, reach(Answer, #{drain => 0, stop_time => witness_monitor_stop_time:new()})).

reach(Ask, Config) -> witness_outline_drain:reach(Ask, fun(Ref) -> {reached, Ref} end, Config).
