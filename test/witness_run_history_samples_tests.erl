-module(witness_run_history_samples_tests).
-moduledoc "The samples of a run: their number is bounded, and they cover all of it, however long it is.".

-include_lib("eunit/include/eunit.hrl").

%% Adds so many samples, each one interval after the one before.
course(Count) ->
    {Course, _} = lists:foldl(fun(I, {Course, Now}) ->
        {witness_run_history_samples:add({Now, #{events => I}}, Course), Now + witness_run_history_samples:interval(Course)}
    end, {witness_run_history_samples:new(), 0}, lists:seq(1, Count)),
    Course.

few_samples_are_all_there_test() ->
    ?assertEqual([{0, #{events => 1}}, {50, #{events => 2}}, {100, #{events => 3}}],
                 witness_run_history_samples:samples(course(3))).

samples_are_bounded_and_reach_from_the_beginning_to_the_end_test_() ->
    [{integer_to_list(Count), ?_test(begin
         Course = course(Count),
         Samples = witness_run_history_samples:samples(Course),
         Times = [Time || {Time, _} <- Samples],
         ?assert(length(Samples) =< 400),
         ?assertEqual(lists:usort(Times), Times),
         {Last, #{events := Count}} = lists:last(Samples),
         %% No gap between samples is longer than two of the final intervals.
         Gaps = lists:zipwith(fun erlang:'-'/2, tl(Times), lists:droplast(Times)),
         ?assert(hd(Times) =< 2 * witness_run_history_samples:interval(Course)),
         ?assert(lists:max(Gaps) =< 2 * witness_run_history_samples:interval(Course), {Last, lists:max(Gaps)})
     end)} || Count <- [2, 399, 400, 401, 1000, 5000]].
