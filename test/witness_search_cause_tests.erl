-module(witness_search_cause_tests).
-moduledoc "Which failures of a search are the same one.".
-include_lib("eunit/include/eunit.hrl").

same_test_() ->
    [{Title, ?_assertEqual(cause(One), cause(Two))}
     || {Title, One, Two} <- [
         {"other values, at the same line", {crashed, 1, {{badmatch, 1}, stack(7)}}, {crashed, 2, {{badmatch, {two}}, stack(7)}}},
         {"a library called from the same line", {crashed, 1, {badarg, [lists() | stack(7)]}}, {crashed, 2, {badarg, [lists() | stack(7)]}}},
         {"the same exit of processes that began with the same function", {crashed, 1, {lost, a}}, {crashed, 2, {lost, b}}},
         {"the same error of a server, whichever request found it", {crashed, 1, {{{badmatch, 1}, stack(7)}, {gen_server, call, [a]}}},
          {crashed, 1, {{{badmatch, 2}, stack(7)}, {gen_server, call, [b]}}}},
         {"more processes wait at the same lines", {deadlock, [1, 2]}, {deadlock, [1, 2, 3]}},
         {"a server waits for a request, too", {deadlock, [1, 2]}, {deadlock, [1, 2, 5]}},
         {"numbers", {unexpected, 1, {returned, {ok, 1}}}, {unexpected, 1, {returned, {ok, 2}}}},
         {"the same property", {violated, ~"a.hml:1", ~"a"}, {violated, ~"a.hml:1", ~"a"}}]].

different_test_() ->
    [{Title, ?_assertNotEqual(cause(One), cause(Two))}
     || {Title, One, Two} <- [
         {"another line", {crashed, 1, {{badmatch, 1}, stack(7)}}, {crashed, 1, {{badmatch, 1}, stack(8)}}},
         {"a library called from another line", {crashed, 1, {badarg, [lists() | stack(7)]}}, {crashed, 1, {badarg, [lists() | stack(8)]}}},
         {"another error at the same line", {crashed, 1, {{badmatch, 1}, stack(7)}}, {crashed, 1, {{case_clause, 1}, stack(7)}}},
         {"another error of a server", {crashed, 1, {{badarg, stack(7)}, {gen_server, call, []}}},
          {crashed, 1, {{badarg, stack(8)}, {gen_server, call, []}}}},
         {"the same exit of processes with other functions", {crashed, 1, {lost, a}}, {crashed, 4, {lost, a}}},
         {"processes wait at other lines", {deadlock, [1, 2]}, {deadlock, [1, 4]}},
         {"a deadlock, and processes that are left", {deadlock, [1, 2]}, {left, [1, 2]}},
         {"processes that are left, and their messages", {left, [1, 2]}, {not_taken, [1, 2]}},
         {"another atom in a value", {unexpected, 1, {returned, {error, timeout}}}, {unexpected, 1, {returned, {error, noproc}}}},
         {"another status", {halted, 1, 1}, {halted, 1, abort}},
         {"another property of the same file", {violated, ~"a.hml:1", ~"a"}, {violated, ~"a.hml:3", ~"b"}},
         {"two kinds of failure", steps, {halted, 1, 1}}]].

%% Processes 2 and 3 wait at one line, and 4 at another one; 5 is a server.
cause(Outcome) ->
    Birth = fun(Function) -> #{pid => self(), signature => {my, Function, []}} end,
    Wait = fun(Line) -> #{waits => true, stack => stack(Line), messages => [Line]} end,
    Server = #{waits => true, stack => [{gen_server, loop, 5, []}, {proc_lib, init_p_do_apply, 3, []}], messages => []},
    witness_search_cause:of_run(#{outcome => Outcome,
                                  births => #{1 => Birth(main), 2 => Birth(main), 3 => Birth(main), 4 => Birth(other),
                                              5 => Birth(init)},
                                  alive => #{1 => Wait(1), 2 => Wait(2), 3 => Wait(2), 4 => Wait(4), 5 => Server}}).

stack(Line) -> [{my_own_module, f, 1, [{file, "my_own_module.erl"}, {line, Line}]}].

lists() -> {lists, nth, 2, [{file, "lists.erl"}, {line, 200}]}.
