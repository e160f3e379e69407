-module(witness_record_heap_tests).
-moduledoc "The heap of a recorded process follows its mailbox, and nothing that the program has chosen is changed.".
-include_lib("eunit/include/eunit.hrl").

-define(KEY, '$witness_record_heap').

a_short_mailbox_changes_nothing_test() ->
    alone([], fun(Before) ->
        filled(255),
        ok = witness_record_heap:fit(),
        ?assertEqual({Before, undefined}, {least(), get(?KEY)})
    end).

a_long_mailbox_has_a_heap_in_proportion_until_it_is_short_again_test() ->
    alone([], fun(Before) ->
        filled(1000),
        ok = witness_record_heap:fit(),
        ?assert(least() >= 8000),
        ?assertEqual({Before, least()}, get(?KEY)),
        filled(9000),
        ok = witness_record_heap:fit(),
        ?assert(least() >= 80_000),
        ?assertEqual({Before, least()}, get(?KEY)),
        emptied(),
        ok = witness_record_heap:fit(),
        ?assertEqual({Before, undefined}, {least(), get(?KEY)})
    end).

there_is_a_bound_test() ->
    alone([{message_queue_data, off_heap}], fun(_) ->
        filled(400_000),
        ok = witness_record_heap:fit(),
        ok = witness_record_heap:fit(),
        ?assert(least() >= 1_000_000),
        ?assert(least() < 2_000_000)
    end).

a_process_with_a_limit_is_left_alone_test() ->
    alone([{max_heap_size, #{size => 1_000_000, kill => true}}], fun(Before) ->
        filled(1000),
        ok = witness_record_heap:fit(),
        ?assertEqual({Before, undefined}, {least(), get(?KEY)})
    end).

a_heap_that_is_large_enough_is_left_alone_test() ->
    alone([{min_heap_size, 100_000}], fun(Before) ->
        filled(1000),
        ok = witness_record_heap:fit(),
        ?assertEqual({Before, undefined}, {least(), get(?KEY)})
    end).

what_the_program_has_set_since_stays_test_() ->
    [{atom_to_list(Then), fun() ->
        alone([], fun(_) ->
            filled(1000),
            ok = witness_record_heap:fit(),
            _ = process_flag(min_heap_size, 2000),
            Own = least(),
            case Then of longer -> filled(9000); short -> emptied() end,
            ok = witness_record_heap:fit(),
            ?assertEqual({Own, undefined}, {least(), get(?KEY)})
        end)
     end} || Then <- [longer, short]].

%% In a process of its own, with the least size of its heap.
alone(Options, Do) ->
    {_, Ref} = spawn_opt(fun() -> Do(least()) end, [monitor | Options]),
    receive {'DOWN', Ref, process, _, Reason} -> ?assertEqual(normal, Reason) end.

filled(N) -> lists:foreach(fun(I) -> self() ! I end, lists:seq(1, N)).

emptied() -> receive _ -> emptied() after 0 -> ok end.

least() ->
    {garbage_collection, Info} = process_info(self(), garbage_collection),
    proplists:get_value(min_heap_size, Info).
