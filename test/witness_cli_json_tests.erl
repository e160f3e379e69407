-module(witness_cli_json_tests).

-include_lib("eunit/include/eunit.hrl").

-define(HEADER, #{v => 1, run => ~"r", node => ~"n@h"}).

a_verdict_has_the_fields_that_are_promised_test() ->
    Verdict = decoded(witness_cli_json:verdict(verdict(), ?HEADER)),
    ?assertMatch(#{~"v" := 1, ~"type" := ~"verdict", ~"run" := ~"r", ~"node" := ~"n@h", ~"verdict" := ~"no",
                   ~"spec" := ~"sum.hml:3", ~"name" := ~"sum", ~"signature" := ~"calc:loop(1)", ~"slice" := null,
                   ~"event" := #{~"index" := 2, ~"kind" := ~"recv", ~"text" := _}, ~"vacuous" := false}, Verdict),
    ?assertMatch(#{~"log" := null}, Verdict),
    ?assertEqual([~"event", ~"explanation", ~"log", ~"name", ~"names", ~"node", ~"note", ~"process", ~"run", ~"signature", ~"slice",
                  ~"source", ~"spec", ~"time", ~"type", ~"v", ~"vacuous", ~"verdict"], lists:sort(maps:keys(Verdict))),
    ?assertMatch({match, _}, re:run(maps:get(~"time", Verdict), "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$")),
    ?assertMatch([#{~"kind" := ~"skipped"},
                  #{~"index" := 2, ~"after_ns" := 0, ~"formula" := ~"f", ~"bindings" := #{~"A" := ~"{1,2}"}},
                  #{~"kind" := ~"decision", ~"line" := 7, ~"column" := 2, ~"text" := ~"_ ? _", ~"bindings" := #{~"B" := ~"x"}}],
                 maps:get(~"explanation", Verdict)).

a_call_and_its_return_are_steps_test() ->
    Steps = [#{index => Index, event => Event, formula => undefined, bindings => []}
             || {Index, Event} <- lists:enumerate([{call, self(), {m, f, [1]}, 5}, {return, self(), {m, f, 1}, {ok, "a"}, 8}])],
    V = (verdict())#{steps := Steps, skipped := 0, event := maps:with([index, event], lists:last(Steps))},
    P = witness_event:format_proc(self()),
    [Call, Return] = [<<P/binary, Text/binary>> || Text <- [~" calls m:f(1)", ~" returns m:f/1 -> {ok,\"a\"}"]],
    ?assertMatch(#{~"event" := #{~"index" := 2, ~"kind" := ~"return", ~"text" := Return},
                   ~"explanation" := [#{~"kind" := ~"call", ~"text" := Call, ~"after_ns" := 0},
                                      #{~"kind" := ~"return", ~"text" := Return, ~"after_ns" := 3} | _]},
                 decoded(witness_cli_json:verdict(V, ?HEADER))).

a_verdict_says_where_in_the_specification_it_was_decided_test() ->
    ?assertMatch(#{~"source" := null}, decoded(witness_cli_json:verdict((verdict())#{source := undefined}, ?HEADER))),
    ?assertMatch(#{~"source" := #{~"file" := ~"sum.hml", ~"line" := 7, ~"column" := 2, ~"text" := ~"[_ ? _] ff."}},
                 decoded(witness_cli_json:verdict(verdict(), ?HEADER))).

a_deadline_that_decided_is_counted_from_the_first_step_test() ->
    Event = {recv, self(), self(), 1, 100},
    #{info := Info} = V = verdict(),
    Timed = V#{steps := [#{index => 2, event => Event, formula => ~"f", bindings => []}], info := Info#{deadline => 5_000_000_100}},
    ?assertMatch(#{~"kind" := ~"decision", ~"deadline_ns" := 5_000_000_000},
                 lists:last(maps:get(~"explanation", decoded(witness_cli_json:verdict(Timed, ?HEADER))))),
    ?assertNot(is_map_key(~"deadline_ns", lists:last(maps:get(~"explanation", decoded(witness_cli_json:verdict(V, ?HEADER)))))).

%% The text of an author, for people too, without what could do harm in a terminal.
why_a_machine_was_violated_is_said_test() ->
    #{info := Info} = V = verdict(),
    Explained = V#{info := Info#{why => ~"a \e[1mlocked\e[0m user"}},
    Decision = fun(Verdict) -> lists:last(maps:get(~"explanation", decoded(witness_cli_json:verdict(Verdict, ?HEADER)))) end,
    ?assertMatch(#{~"why" := <<"a ", _/binary>>}, Decision(Explained)),
    ?assertNot(is_map_key(~"why", Decision(V))),
    Text = iolist_to_binary(witness_text_verdict:verdict(Explained, #{colour => false, width => 80})),
    ?assertMatch({_, _}, binary:match(Text, ~"locked")),
    ?assertEqual(nomatch, binary:match(Text, ~"\e")).

a_slice_is_its_names_and_values_test() ->
    ?assertMatch(#{~"slice" := ~"Id = 1, Who = {a,\"b\"}"},
                 decoded(witness_cli_json:verdict((verdict())#{slice := [{~"Id", 1}, {~"Who", {a, "b"}}]}, ?HEADER))).

what_is_about_all_processes_need_not_have_one_test() ->
    ?assertMatch(#{~"process" := null, ~"signature" := null},
                 decoded(witness_cli_json:verdict((verdict())#{process := undefined, signature := undefined}, ?HEADER))),
    ?assertMatch(#{~"process" := _, ~"signature" := null},
                 decoded(witness_cli_json:verdict((verdict())#{signature := undefined}, ?HEADER))).

an_inconclusive_verdict_says_why_test() ->
    Verdict = (verdict())#{verdict := inconclusive, reason := stopped, event := undefined, steps := [], skipped := 0,
                           name := undefined, info := undefined},
    ?assertMatch(#{~"event" := null, ~"name" := null, ~"explanation" := [#{~"kind" := ~"reason", ~"text" := _}]},
                 decoded(witness_cli_json:verdict(Verdict, ?HEADER))).

whatever_the_system_says_an_object_stays_on_its_line_and_is_unicode_test_() ->
    [?_assertMatch(#{~"type" := ~"verdict"}, decoded(witness_cli_json:verdict(Verdict, ?HEADER))) || Verdict <- [
        (verdict())#{name := <<255, "\n", 0>>, spec := <<"\r\n", 200, ":1">>},
        (verdict())#{info := {own, "\n", <<255>>, self()}},
        (verdict())#{event := #{index => 1, event => {exit, self(), [<<255>>, 'a\nb', "\x{1F600}" | improper], 1}}},
        (verdict())#{process := {external, ~"p\n"}, signature := {'Elixir.My', 'f\n', [lists:seq(1, 100_000)]}}
    ]].

a_summary_has_the_fields_that_are_promised_test() ->
    Actions = [#{line => 1, column => 2, text => ~"_ ? a", decides => no, taken => true},
               #{line => 1, column => 9, text => ~"_ ? b", decides => undefined, taken => false}],
    Summary = #{processes => 1, tracers => 2, events => 3, verdicts => #{no => 1}, vacuous => 0, gaps => 0, monitored => 4,
                slices => 6,
                undecided => [#{spec => ~"a.hml:1", name => undefined, version => 1, reason => max_slices, count => 9, told => 7}],
                properties => [#{spec => ~"a.hml:1", name => undefined, version => 1, monitored => 4, vacuous => 0,
                                 verdicts => #{no => 1, yes => 0, inconclusive => 3}}],
                coverage => [#{spec => ~"a.hml:1", name => undefined, actions => Actions}],
                warnings => [#{code => timeout, text => ~"late"}], elapsed_ms => 5, outcome => violated, system => normal},
    Line = decoded(witness_cli_json:summary(Summary, ?HEADER)),
    ?assertMatch(#{~"alive" := null}, Line),
    ?assertMatch(#{~"type" := ~"summary", ~"processes" := 1, ~"tracers" := 2, ~"events" := 3,
                   ~"verdicts" := #{~"no" := 1, ~"yes" := 0, ~"inconclusive" := 0}, ~"vacuous" := 0, ~"gaps" := 0,
                   ~"warnings" := [#{~"code" := ~"timeout", ~"text" := ~"late"}], ~"elapsed_ms" := 5, ~"slices" := 6,
                   ~"undecided" := [#{~"spec" := ~"a.hml:1", ~"name" := null, ~"count" := 9, ~"told" := 7,
                                      ~"reason" := ~"another slice took its place: there were more than max_slices allows"}],
                   ~"properties" := [#{~"spec" := ~"a.hml:1", ~"name" := null, ~"monitored" := 4, ~"vacuous" := 0,
                                       ~"verdicts" := #{~"no" := 1, ~"yes" := 0, ~"inconclusive" := 3}}],
                   ~"coverage" := [#{~"spec" := ~"a.hml:1", ~"name" := null, ~"actions" := [
                       #{~"line" := 1, ~"column" := 2, ~"text" := ~"_ ? a", ~"decides" := ~"no", ~"taken" := true},
                       #{~"decides" := null, ~"taken" := false}]}]}, Line),
    ?assertEqual(19, map_size(Line)).

a_warning_has_code_and_text_test() ->
    ?assertMatch(#{~"type" := ~"warning", ~"code" := ~"nothing_monitored", ~"text" := ~"x"},
                 decoded(witness_cli_json:warning(#{code => nothing_monitored, text => ~"x"}, ?HEADER))).

a_diagnostic_without_a_place_has_null_for_it_test() ->
    Diagnostic = #{severity => error, file => ~"a.hml", line => undefined, column => undefined, code => unreadable,
                   text => ~"no such file", source => undefined, hint => undefined},
    ?assertMatch(#{~"type" := ~"diagnostic", ~"severity" := ~"error", ~"line" := null, ~"end_column" := null,
                   ~"source" := null, ~"hint" := null}, decoded(witness_cli_json:diagnostic(Diagnostic, ?HEADER))).

a_diagnostic_marks_the_word_at_its_place_test_() ->
    Source = <<"with größe:f('a b', \"c\\\"d\", Max_1) X <"/utf8>>,
    [?_assertMatch({Column, #{~"end_column" := End}},
                   {Column, decoded(witness_cli_json:diagnostic(diagnostic(Source, Column), ?HEADER))})
     || {Column, End} <- [{1, 5}, {5, 6}, {6, 11}, {11, 12}, {14, 19}, {21, 27}, {29, 34}, {36, 37}, {38, 39}, {39, 40},
                          {50, 51}]].

diagnostic(Source, Column) ->
    #{severity => warning, file => ~"a.hml", line => 1, column => Column, code => c, text => ~"t", source => Source,
      hint => undefined}.

a_specification_has_the_forms_that_were_asked_for_test() ->
    Entry = #{index => 1, name => ~"sum", line => 3, all => false, group => false, action => monitor, signature => ~"m:f(_)",
              per => [~"Id"]},
    ?assertMatch(#{~"type" := ~"specification", ~"file" := ~"a.hml", ~"erlang" := null, ~"dot" := ~"digraph",
                   ~"mermaid" := null,
                   ~"properties" := [#{~"line" := 3, ~"name" := ~"sum", ~"signature" := ~"m:f(_)", ~"group" := false,
                   ~"per" := [~"Id"], ~"monitor" := true}]},
                 decoded(witness_cli_json:specification("a.hml", [Entry], #{dot => "digraph"}, ?HEADER))).

decoded(Line) ->
    [Object, ~""] = binary:split(iolist_to_binary(Line), ~"\n", [global]),
    json:decode(Object).

verdict() ->
    Event = {recv, self(), undefined, {add, 1}, 10},
    #{verdict => no, spec => ~"sum.hml:3", name => ~"sum", process => self(), signature => {calc, loop, [1]},
      slice => undefined, event => #{index => 2, event => Event}, reason => undefined, vacuous => false, skipped => 1,
      source => #{file => ~"sum.hml", line => 7, column => 2, text => ~"[_ ? _] ff."},
      info => #{line => 7, column => 2, action => ~"_ ? _", bindings => [{~"B", x}]},
      steps => [#{index => 2, event => Event, formula => ~"f", bindings => [{~"A", {1, 2}}]}]}.
