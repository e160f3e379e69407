-module(witness_requirements_tests).
-moduledoc """
The requirements of `test/requirements` can be met, and their traces tell right answers from wrong ones: each reference is right, and
each reference with a change that a reader might make is wrong.
""".
-include_lib("eunit/include/eunit.hrl").

-define(LEAST_TRACES, 4).

references_are_right_test_() ->
    [{Name, {timeout, 60, ?_assertMatch(#{result := right, failed := []}, witness_requirements:score(reference(), Name))}} ||
     Name <- witness_requirements:names()].

each_requirement_has_a_text_a_reference_and_traces_of_both_kinds_test() ->
    Names = [lists:flatten(io_lib:format("~2..0b", [N])) || N <- lists:seq(1, 30)],
    ?assertEqual(Names, witness_requirements:names()),
    ?assertEqual(Names, [Name || {Name, _} <- texts()]),
    ?assertEqual([Name ++ ".hml" || Name <- Names], lists:sort(filelib:wildcard("*", reference()))),
    ?assertEqual([], [Name || Name <- Names, Kind <- ["good_", "bad_"], length(traces(Name, Kind)) < ?LEAST_TRACES]).

%% A text in the words of the sentences would be copied.
requirements_do_not_use_the_words_of_the_language_test() ->
    Words = "\\b(never|always|leads to|precedes|at most|at least|exactly|unique|increasing|alternates?|between|in any|open until)\\b",
    ?assertEqual([], [{Name, Word} || {Name, Text} <- texts(),
                                      {match, [Word]} <- [re:run(Text, Words, [caseless, {capture, first, binary}])]]).

an_answer_that_is_never_violated_fails_at_each_bad_trace_test() ->
    #{result := wrong, failed := Failed, warnings := 1, kinds := [logic], lines := 1} = score("03", "with session:init(_) check tt."),
    ?assertEqual(traces("03", "bad_"), Failed).

an_answer_that_is_always_violated_fails_at_each_good_trace_test() ->
    #{result := wrong, failed := Failed} = score("03", "with session:init(_) monitor [_ <- _, _] ff."),
    ?assertEqual(traces("03", "good_"), Failed).

an_answer_about_other_processes_fails_at_each_bad_trace_test() ->
    #{result := wrong, failed := Failed} = score("03", "with seesion:init(_) per C never {_ : _ ! {data, C, _}} after {_ : _ ! {closed, C}}."),
    ?assertEqual(traces("03", "bad_"), Failed).

%% A sum of what is no number ends the monitor, and says nothing of the rest of the trace.
an_answer_that_cannot_be_computed_fails_at_good_traces_test() ->
    #{result := wrong, failed := Failed} =
        score("03", "with session:init(_) over _ : _ ! {data, _, _} let Sum = sum Bytes of {_ : _ ! {data, _, Bytes}}\n"
                    "check max X.([_ : _ ! _ when Sum > 3] ff and [else] X)."),
    ?assert(lists:member("good_data_then_closed", Failed)).

%% The log has delivered messages only, so nothing is known of either kind of trace.
an_answer_that_the_log_cannot_decide_fails_at_each_trace_test() ->
    #{result := wrong, failed := Failed} = score("03", "with session:init(_) over taken _ ? {data, _, _} check [_ ? _] ff."),
    ?assertEqual(traces("03", ""), Failed).

an_answer_that_does_not_compile_is_refused_test() ->
    ?assertMatch(#{result := refused, failed := [], lines := 2}, score("03", "%% No dot.\nwith session:init(_)\n\n  check tt")),
    ?assertMatch(#{result := refused, kinds := []}, score("03", "with 'session")).

an_answer_that_is_not_there_is_missing_test() ->
    witness_folder:with(fun(Folder) -> ?assertMatch(#{result := missing}, witness_requirements:score(Folder, "03")) end).

kinds_are_told_by_the_words_of_the_language_test() ->
    %% Without a dot none of them compiles, which takes less time than their traces.
    Kinds = fun(Source) -> maps:get(kinds, score("03", Source)) end,
    ?assertEqual([sentence], Kinds("with session:init(_) never {_ : _ ! check_in}")),
    ?assertEqual([logic, sentence], Kinds("with session:init(_) never {_ : _ ! a}. with session:init(_) monitor [_ ? _] ff")),
    ?assertEqual([machine], Kinds("with session:init(_) machine state idle: end")).

references_with_a_change_are_wrong_test_() ->
    [{Name ++ ": " ++ From, {timeout, 60, fun() -> is_wrong(Name, From, To) end}} || {Name, From, To} <- changes()].

changes() ->
    [{"01", "{prod, _}", "{prod, []}"},
     {"02", "} before {", "} after {"},
     {"03", "per Channel\n  never {_ : _ ! {data, Channel", "per Channel\n  never {_ ? {data, Channel"},
     {"04", "between {_ : _ ! {backup, started}} and", "after {_ : _ ! {backup, started}} until"},
     {"05", "{_ : _ ! {loaded, Key}}", "{_ ? {loaded, Key}}"},
     {"06", "C > 125", "C >= 125"},
     {"07", "registry", "_"},
     {"08", "_ ** normal", "_ ** _"},
     {"09", "{invoice, Id, _}", "{invoice, _, _}"},
     {"10", "200 ms", "199 ms"},
     {"11", "entries", "_"},
     {"12", " within 10 s", ""},
     {"13", " when Failed(User)", " when Failed(any)"},
     {"14", "within 30 s", "within 31 s"},
     {"15", " when Passed", ""},
     {"16", "{reset_mail, User, _}}", "{reset_mail, User, _}} in any 1 h"},
     {"17", "60 s", "59999 ms"},
     {"18", "{returned, Conn}", "{returned, _}"},
     {"19", " to next_id", ""},
     {"20", "increasing", "strictly increasing"},
     {"21", "{closed, Door}}.", "{closed, Door}}.\nwith lift:init(_) always {_ : _ ! {opened, D}} leads to {_ : _ ! {closed, D}}."},
     {"22", "[_ ? {release, Client}] Free", "[_ ? {release, _}] Free"},
     {"22", "Granted > Asked", "Asked =:= 0"},
     {"23", "2 * Wait", "Wait + 100 ms"},
     {"24", "and [_ ** _] tt\n    and [else] ff", "and [else] Closed"},
     {"25", "=/= Amount", "< Amount"},
     {"26", ", store:init(replica)", ", store:init(_)"},
     {"27", "U - T > Ms", "U - T >= Ms"},
     {"28", "Cart(0)", "Cart(Sum)"},
     {"29", " among peer:init(_)", ""},
     {"30", "Closed(1)", "Closed(0)"}].

is_wrong(Name, From, To) ->
    {ok, Reference} = file:read_file(filename:join(reference(), Name ++ ".hml")),
    Changed = unicode:characters_to_list(string:replace(Reference, From, To)),
    ?assertNotEqual(Changed, unicode:characters_to_list(Reference)),
    ?assertMatch(#{result := wrong}, score(Name, Changed)).

score(Name, Source) ->
    witness_folder:with(fun(Folder) ->
        ok = file:write_file(filename:join(Folder, Name ++ ".hml"), Source),
        witness_requirements:score(Folder, Name)
    end).

reference() -> filename:join(witness_requirements:folder(), "reference").

traces(Name, Kind) ->
    [filename:basename(File, ".log") ||
     File <- lists:sort(filelib:wildcard(filename:join([witness_requirements:folder(), "traces", Name, Kind ++ "*.log"])))].

%% Each number with its text.
texts() ->
    {ok, All} = file:read_file(filename:join(witness_requirements:folder(), "requirements.md")),
    [_ | Parts] = re:split(All, "^## ", [multiline, {return, list}]),
    [list_to_tuple(string:split(Part, "\n")) || Part <- Parts].
