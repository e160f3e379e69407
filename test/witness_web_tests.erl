-module(witness_web_tests).
-moduledoc "What a report keeps, and its file. The page itself is tested in a browser (`assets/test`).".

-include_lib("eunit/include/eunit.hrl").
-include_lib("kernel/include/file.hrl").

-define(PAGE, ~"<title>x</title><script id=data>@WITNESS-DATA@</script>").

%% Escaping

no_text_ends_the_script_that_it_stands_in_test_() ->
    [?_test(begin
         Json = witness_web_data:encode(#{text => Text}),
         ?assertEqual(#{~"text" => Text}, json:decode(Json)),
         [?assertEqual(nomatch, binary:match(Json, Char)) || Char <- [~"<", ~">", ~"&", ~"\x{2028}", ~"\x{2029}"]],
         ?assertEqual([], [Byte || <<Byte>> <= Json, Byte < 16#20])
     end) || Text <- [~"</script>", ~"</SCRIPT >", ~"<!--<script>", ~"]]>", ~"&lt;/script&gt;", ~"\"'\\",
                      ~"\x{2028}\x{2029}", ~"\e[31m\n\r\t\0", ~"\\u003c", ~""]].

what_a_system_says_has_no_control_characters_test() ->
    Hostile = ~"</script>\e[2J\x{202E}\x{2066}\n\0",
    Names = #{name => Hostile, spec => <<Hostile/binary, 255>>, log => Hostile, slice => [{Hostile, Hostile}],
              process => {external, Hostile},
              signature => {binary_to_atom(Hostile), binary_to_atom(Hostile), [Hostile]}},
    Event = {recv, {external, Hostile}, {external, Hostile}, {Hostile, binary_to_atom(Hostile)}, undefined},
    Violation = maps:merge(violation(1), Names#{
        event => #{index => 1, event => Event},
        info => #{action => Hostile, bindings => [{Hostile, Hostile}], matched => true},
        source => #{file => Hostile, line => 1, column => 3, text => Hostile},
        steps => [#{index => 1, event => Event, formula => Hostile, bindings => [{Hostile, Hostile}]}]}),
    Data = written(fun(Report) -> ok = witness_web:add(Violation, Report) end,
                   result(#{subject => Hostile, sentence => Hostile})),
    ?assertMatch([_ | _], texts(Data)),
    [?assertEqual({Text, []}, {Text, [Char || <<Char/utf8>> <= Text, is_control(Char)]}) || Text <- texts(Data)].

is_control(Char) ->
    Char < 16#20 orelse (Char >= 16#7F andalso Char < 16#A0) orelse (Char >= 16#2028 andalso Char =< 16#202E)
        orelse (Char >= 16#2066 andalso Char =< 16#2069).

a_message_of_megabytes_is_cut_test() ->
    Large = binary:copy(~"x", 5_000_000),
    Event = {recv, self(), self(), Large, undefined},
    Violation = (violation(1))#{event := #{index => 1, event => Event},
                                steps := [#{index => 1, event => Event, formula => Large,
                                            bindings => [{~"L", Large}]}]},
    ?assert(byte_size(witness_web_data:encode(witness_web_data:explained_violation(Violation))) < 12_000).

%% What is kept

a_report_has_the_steps_that_a_terminal_shows_test() ->
    #{~"properties" := [#{~"name" := ~"sum", ~"spec" := ~"sum.hml:3", ~"count" := 1, ~"places" := [Place]}]} =
        written(fun(Report) -> ok = witness_web:add(violation(1), Report) end, result(#{})),
    ?assertMatch(#{~"line" := 7, ~"column" := 2, ~"says" := ~"this must not happen", ~"function" := ~"calc:loop/1",
                   ~"marked" := [~"[", ~"_ ? _", ~"] ff."], ~"count" := 1}, Place),
    #{~"violations" := [#{~"index" := 2, ~"slice" := [], ~"explanation" := Explanation}]} = Place,
    ?assertMatch(#{~"skipped" := 1, ~"ended" := false, ~"bindings" := [[~"B", ~"x"]],
                   ~"lanes" := [#{~"title" := null, ~"name" := ~"client"}, #{~"title" := ~"calc"}],
                   ~"steps" := [#{~"index" := 2, ~"time" := ~"", ~"own" := 1, ~"from" := 0, ~"to" := 1, ~"ends" := false,
                                  ~"text" := ~"1", ~"formula" := ~"f", ~"bindings" := [[~"A", ~"{1,2}"]]}]}, Explanation).

a_call_and_its_return_are_marks_on_the_lifeline_of_their_process_test() ->
    Client = {external, ~"client"},
    Events = [{call, Client, {m, f, [1]}, undefined}, {return, Client, {m, f, 1}, ok, undefined}],
    Steps = [#{index => Index, event => Event, formula => undefined, bindings => []} || {Index, Event} <- lists:enumerate(Events)],
    #{explanation := #{lanes := Lanes, steps := Drawn}} = witness_web_data:explained_violation((violation(1))#{steps := Steps}),
    ?assertMatch([#{name := ~"client"}], Lanes),
    ?assertMatch([#{own := 0, from := null, to := null, ends := false, text := ~"calls m:f(1)", event := ~"client calls m:f(1)"},
                  #{own := 0, from := null, to := null, ends := false, text := ~"returns m:f/1 -> ok",
                    event := ~"client returns m:f/1 -> ok"}], Drawn).

a_report_tells_the_deadline_that_has_passed_test() ->
    Step = fun(Index, Time) ->
        #{index => Index, event => {recv, self(), self(), 1, Time}, formula => undefined, bindings => []}
    end,
    #{info := Info} = V = violation(1),
    Timed = V#{steps := [Step(1, 100), Step(2, 5_003_000_100)],
              info := (maps:remove(matched, Info))#{deadline => 5_000_000_100}},
    #{~"properties" := [#{~"places" := [#{~"says" := ~"this did not come in time", ~"violations" := [Late, End]}]}]} =
        written(fun(Report) ->
            [ok = witness_web:add(Of, Report) || Of <- [Timed, Timed#{event := undefined}]]
        end, result(#{})),
    [?assertMatch(#{~"explanation" := #{~"ended" := false, ~"deadline" := ~"5.000 s", ~"steps" := [_, #{~"time" := ~"5.003 s"}]}}, Of)
     || Of <- [Late, End]],
    ?assertMatch(#{explanation := #{ended := true, deadline := null}},
                 witness_web_data:explained_violation(V#{event := undefined})).

only_violations_are_kept_test() ->
    ?assertMatch(#{~"properties" := []},
                 written(fun(Report) ->
                     [ok = witness_web:add((violation(1))#{verdict := Verdict}, Report)
                      || Verdict <- [yes, inconclusive]]
                 end, result(#{}))).

what_a_monitor_by_hand_says_is_there_test() ->
    Said = (violation(1))#{info := {left, early}, source := undefined, name := undefined, spec := ~"polite",
                            signature := undefined},
    #{~"properties" := [#{~"name" := null, ~"places" := [Place]}]} =
        written(fun(Report) -> ok = witness_web:add(Said, Report) end, result(#{})),
    #{~"marked" := null, ~"function" := null, ~"violations" := [Violation]} = Place,
    ?assertMatch(#{~"explanation" := #{~"says" := ~"{left,early}"}, ~"signature" := null}, Violation).

violations_are_grouped_by_property_and_place_in_the_order_of_the_first_test() ->
    Other = (violation(1))#{source := #{file => ~"sum.hml", line => 9, column => 2, text => ~"[_ ? _] ff."}},
    #{~"properties" := [#{~"count" := 3, ~"places" := [#{~"line" := 7, ~"count" := 2}, #{~"line" := 9}]},
                        #{~"name" := ~"b"}]} =
        written(fun(Report) ->
            [ok = witness_web:add(V, Report) || V <- [violation(1), Other, (violation(2))#{name := ~"b"}, violation(3)]]
        end, result(#{})).

all_are_counted_and_what_is_kept_is_bounded_test_() ->
    {timeout, 60, fun() ->
        Slice = [{~"Text", binary:copy(~"v", 400)}],
        Many = 30_000,
        #{~"properties" := [#{~"count" := Many, ~"places" := [#{~"count" := Many, ~"violations" := Kept}]}, Other]} =
            written(fun(Report) ->
                [ok = witness_web:add((violation(N))#{slice := Slice}, Report) || N <- lists:seq(1, Many)],
                [ok = witness_web:add((violation(N))#{name := ~"b"}, Report) || N <- lists:seq(1, 5)]
            end, result(#{})),
        ?assertEqual(50, explained(Kept)),
        ?assert(length(Kept) > 10_000),
        ?assert(length(Kept) < Many),
        %% Many of one kind do not hide that there is another.
        #{~"count" := 5, ~"places" := [#{~"violations" := Few}]} = Other,
        ?assertEqual({3, 3}, {length(Few), explained(Few)})
    end}.

explained(Violations) -> length([ok || #{~"explanation" := _} <- Violations]).

%% Each process has been spawned with a function of its own.
places_without_end_are_told_together_test_() ->
    {timeout, 60, fun() ->
        #{~"properties" := [#{~"count" := 1500, ~"places" := Places}]} =
            written(fun(Report) ->
                [ok = witness_web:add((violation(N))#{signature := {calc, loop, lists:duplicate(N, x)}}, Report)
                 || N <- lists:seq(1, 1500)]
            end, result(#{})),
        ?assertEqual(1001, length(Places)),
        ?assertMatch(#{~"count" := 500, ~"marked" := null}, lists:last(Places))
    end}.

a_large_specification_is_shown_in_part_test() ->
    witness_folder:with(fun(Folder) ->
        File = filename:join(Folder, "large.hml"),
        ok = file:write_file(File, [~"a:1\r\n\tb\n", binary:copy(~"%\n", 200_000)]),
        #{cut := true, lines := [~"a:1", ~" b" | Lines]} = witness_web_data:source(File),
        ?assert(length(Lines) < 140_000)
    end).

%% Files

a_report_is_a_file_of_its_owner_alone_test() ->
    witness_folder:with(fun(Folder) ->
        Into = filename:join([Folder, "new", "folder"]),
        {ok, Report} = witness_web:open(Into, options(Folder)),
        ?assertEqual({ok, []}, file:list_dir(Into)),
        {ok, File} = witness_web:write(result(#{}), Report),
        ?assertEqual(filename:join(Into, "report.html"), File),
        {ok, #file_info{mode = Mode}} = file:read_file_info(File),
        ?assertEqual(8#600, Mode band 8#777),
        {ok, _} = witness_web:write(result(#{}), Report),
        ?assertEqual({ok, ["report.html"]}, file:list_dir(Into))
    end).

what_cannot_be_written_is_told_before_anything_runs_test() ->
    witness_folder:with(fun(Folder) ->
        File = filename:join(Folder, "file"),
        ok = file:write_file(File, ~""),
        refused(["file", "directory"], witness_web:open(filename:join(File, "sub"), options(Folder))),
        ok = file:make_dir(filename:join(Folder, "report.html")),
        refused(["report.html", "directory"], witness_web:open(Folder, options(Folder)))
    end).

a_page_that_is_not_there_or_is_none_is_told_test() ->
    witness_folder:with(fun(Folder) ->
        refused(["Node.js", "assets/build"],
                witness_web:open(Folder, #{specs => [], page => filename:join(Folder, "none")})),
        [begin
             Options = options(Folder),
             ok = file:write_file(maps:get(page, Options), Text),
             refused(["page.html is not the page"], witness_web:open(Folder, Options))
         end || Text <- [~"", ~"<html>", <<(?PAGE)/binary, (?PAGE)/binary>>]]
    end).

refused(Words, {error, Text}) ->
    Told = unicode:characters_to_list(Text),
    [?assertMatch({_, [_ | _]}, {Told, string:find(Told, Word)}) || Word <- Words].

%% Helpers

violation(N) ->
    Event = {recv, self(), {external, ~"client"}, N, undefined},
    #{verdict => no, spec => ~"sum.hml:3", name => ~"sum", process => self(), signature => {calc, loop, [N]},
      slice => undefined, log => ~"a.log:1", event => #{index => 2, event => Event}, reason => undefined,
      source => #{file => ~"sum.hml", line => 7, column => 2, text => ~"[_ ? _] ff."},
      info => #{line => 7, column => 2, action => ~"_ ? _", matched => true, bindings => [{~"B", x}], vacuous => false},
      vacuous => false, skipped => 1,
      steps => [#{index => 2, event => Event, formula => ~"f", bindings => [{~"A", {1, 2}}]}]}.

result(More) ->
    maps:merge(#{code => 1, sentence => ~"VIOLATED", facts => [{~"system", ~"returned"}], subject => ~"m:f()",
                 summary => #{verdicts => #{no => 1}, coverage => [],
                              warnings => [#{code => timeout, text => ~"a\nb"}]}}, More).

options(Folder) ->
    Page = filename:join(Folder, "page.html"),
    ok = file:write_file(Page, ?PAGE),
    #{specs => [], page => Page}.

%% The data of a report, as its page reads them.
written(Add, Result) ->
    witness_folder:with(fun(Folder) ->
        {ok, Report} = witness_web:open(Folder, options(Folder)),
        _ = Add(Report),
        {ok, File} = witness_web:write(Result, Report),
        {ok, Html} = file:read_file(File),
        [Before, After] = binary:split(?PAGE, ~"@WITNESS-DATA@"),
        ?assert(byte_size(Html) < 16_000_000),
        json:decode(binary:part(Html, byte_size(Before), byte_size(Html) - byte_size(Before) - byte_size(After)))
    end).

texts(Map) when is_map(Map) -> lists:append([texts(Value) || Value <- maps:values(Map)]);
texts(List) when is_list(List) -> lists:append([texts(Value) || Value <- List]);
texts(Text) when is_binary(Text) -> [Text];
texts(_) -> [].
